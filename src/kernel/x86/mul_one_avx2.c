/* SPDX-License-Identifier: Apache-2.0
 * AVX2 products with one token of the types that most files are made of (contract: pith_mul in
 * kernel.h; layouts: panel.h; more tokens and other types: mul_integer_256.h).
 *
 * One token leaves registers free, and its product is bound by how many instructions a code costs.
 * So all chains stay in registers, a load of nibbles serves both its code groups, and the 16-bit
 * words of a group (dot_avx2.h) meet their integer sub-scale in the vpmaddwd that makes 32-bit sums
 * of them: scale * dot is exact below 2^24, in integers as in floats.
 *
 *   4-bit codes  a word holds all 8 code groups of 32 k, at most 30480
 *   5-bit codes  4 code groups, 4 * 2 * 31 * 127 = 31496
 *   6-bit codes  2 code groups, 2 * 2 * 63 * 127 = 32004
 *   Q8_0         one: |w| times x with the sign of w, at most 2 * 128 * 127 = 32512
 *
 * Memory is read strictly in order: gcc, left alone, starts several code groups at once, which
 * costs registers, and then the processor's streams are slow to follow (`stored` keeps the order).
 * They do better without software prefetch, by up to a third for any distance and hint that was
 * tried (Zen 4, huge pages). */
#include "kernel/x86/mul_one_avx2.h"

#include "kernel/chain_form.h"
#include "kernel/x86/dot_avx2.h"

enum { GROUPS = 8 };

/* sum += words times the factors of their rows (each twice in its 32 bits). */
ALWAYS_INLINE void sum_add(lanes16 *sum, lanes16 words, lanes16 factor) {
    sum->low = _mm256_add_epi32(sum->low, _mm256_madd_epi16(words.low, factor.low));
    sum->high = _mm256_add_epi32(sum->high, _mm256_madd_epi16(words.high, factor.high));
}

ALWAYS_INLINE lanes16 ones(void) {
    return (lanes16){_mm256_set1_epi16(1), _mm256_set1_epi16(1)};
}

/* Low and high nibbles of a code group's bytes. */
typedef struct nibble_pair {
    lanes16 low, high;
} nibble_pair;

ALWAYS_INLINE nibble_pair nibbles_of(const uint8_t *q) {
    const __m256i four = _mm256_set1_epi8(15);
    lanes16 v = lanes_load(q);
    return (nibble_pair){lanes_and(v, four), lanes_and(lanes_shift(v, -4), four)};
}

/* Bit `bit` of each byte of h as a fifth bit. */
ALWAYS_INLINE lanes16 with_fifth(lanes16 code, lanes16 h, const int bit) {
    return lanes_or(code, lanes_and(lanes_shift(h, 4 - bit), _mm256_set1_epi8(16)));
}

/* ---- 32 k a block ---- */

/* Codes of a block times x. h: NULL without fifth bits. */
ALWAYS_INLINE lanes16 dot_nibbles(const uint8_t (*q)[64], const uint8_t *h, const int8_t *x,
                                  const bool is_five) {
    lanes16 sum = lanes_set(0), words = lanes_set(0), fifth = words;
    if (is_five) fifth = lanes_load(h);
    UNROLL for (int g = 0; g < 4; g++) {
        nibble_pair v = nibbles_of(q[g]);
        if (is_five) v.low = with_fifth(v.low, fifth, g);
        if (is_five) v.high = with_fifth(v.high, fifth, g + 4);
        dot_step(&words, v.low, broadcast4(x + 4 * g));
        dot_step(&words, v.high, broadcast4(x + 4 * g + 16));
        if (is_five && g == 1) {
            sum_add(&sum, words, ones());
            words = lanes_set(0);
        }
    }
    sum_add(&sum, words, ones());
    return sum;
}

ALWAYS_INLINE lanes16 dot_bytes(const int8_t (*q)[64], const int8_t *x) {
    lanes16 sum = lanes_set(0);
    UNROLL for (int g = 0; g < 8; g++) {
        lanes16 w = lanes_load(q[g]);
        __m256i four = broadcast4(x + 4 * g);
        lanes16 words = {
            _mm256_maddubs_epi16(_mm256_abs_epi8(w.low), _mm256_sign_epi8(four, w.low)),
            _mm256_maddubs_epi16(_mm256_abs_epi8(w.high), _mm256_sign_epi8(four, w.high))};
        sum_add(&sum, words, ones());
    }
    return sum;
}

/* The integer dot product of a block: of values, or of codes where the type has minima. */
ALWAYS_INLINE lanes16 dot_block(const uint8_t *block, const int8_t *x, int32_t x_sum,
                                const pith_type type) {
    const pith_panel_q4_0 *q4_0 = (const void *)block;
    const pith_panel_q4_1 *q4_1 = (const void *)block;
    const pith_panel_q5_0 *q5_0 = (const void *)block;
    const pith_panel_q5_1 *q5_1 = (const void *)block;
    const pith_panel_q8_0 *q8_0 = (const void *)block;
    lanes16 sum;
    if (type == PITH_TYPE_Q8_0) return dot_bytes(q8_0->q, x);
    if (type == PITH_TYPE_Q4_1) return dot_nibbles(q4_1->q, NULL, x, false);
    if (type == PITH_TYPE_Q5_1) return dot_nibbles(q5_1->q, q5_1->h, x, true);
    if (type == PITH_TYPE_Q4_0)
        sum = dot_nibbles(q4_0->q, NULL, x, false);
    else
        sum = dot_nibbles(q5_0->q, q5_0->h, x, true);
    __m256i bias = _mm256_slli_epi32(_mm256_set1_epi32(x_sum), type == PITH_TYPE_Q4_0 ? 3 : 4);
    return (lanes16){_mm256_sub_epi32(sum.low, bias), _mm256_sub_epi32(sum.high, bias)};
}

ALWAYS_INLINE size_t block_bytes(const pith_type type) {
    switch (type) {
    case PITH_TYPE_Q4_0: return sizeof(pith_panel_q4_0);
    case PITH_TYPE_Q4_1: return sizeof(pith_panel_q4_1);
    case PITH_TYPE_Q5_0: return sizeof(pith_panel_q5_0);
    case PITH_TYPE_Q5_1: return sizeof(pith_panel_q5_1);
    default: return sizeof(pith_panel_q8_0);
    }
}

/* All blocks begin with d; m follows where there is one. */
ALWAYS_INLINE void panel_small(const pith_mul *args, const uint8_t *block, float *y,
                               const pith_type type) {
    const pith_q8 *q8 = args->q8;
    const int8_t *x = q8->q;
    floats16 acc = ps_all(0.0f), acc_min = acc;
    for (size_t j = 0; j < args->k / PITH_GROUP; j++, x += PITH_GROUP) {
        const uint16_t *half = (const uint16_t *)(const void *)block;
        floats16 dot = ps_of(dot_block(block, x, q8->sum[j], type));
        acc = ps_fma(dot, ps_mul(ps_load_f16(half), ps_all(q8->d[j])), acc);
        if (has_minima(type)) {
            floats16 d_sum = ps_all(q8->d[j] * (float)q8->sum[j]);
            acc_min = ps_fma(ps_load_f16(half + PITH_PANEL_ROWS), d_sum, acc_min);
        }
        block += block_bytes(type);
    }
    ps_store(y, has_minima(type) ? ps_add(acc, acc_min) : acc);
}

ALWAYS_INLINE void mul_small(const pith_mul *args, const pith_type type) {
    const uint8_t *panel = args->w;
    for (uint32_t p = 0; p < args->n_panel; p++, panel += args->panel_bytes)
        panel_small(args, panel, args->y + PITH_PANEL_ROWS * (size_t)p, type);
}

/* ---- Q4_K, Q5_K ---- */

/* What a super-block needs besides nibbles. Fifth bits are copied first, for the sake of order:
 * read from the panel between nibbles they ran at half the speed. */
typedef struct k_scalars {
    uint8_t scale[GROUPS][16], minimum[GROUPS][16]; /* 6 bits */
    float d_sum[GROUPS];                            /* d * sum of the token */
    uint8_t h[8][64];                               /* Q5_K */
} k_scalars;

ALWAYS_INLINE void k_scalars_read(k_scalars *v, const uint8_t (*scales)[64], const float *d,
                                  const int32_t *sum) {
    const __m256i six = _mm256_set1_epi8(63), four = _mm256_set1_epi8(15),
                  two = _mm256_set1_epi8(0x30);
    lanes16 s0 = lanes_load(scales[0]), s1 = lanes_load(scales[1]), s2 = lanes_load(scales[2]);
    lanes_store(v->scale[0], lanes_and(s0, six));
    lanes_store(v->minimum[0], lanes_and(s1, six));
    lanes_store(v->scale[4], lanes_or(lanes_and(s2, four), lanes_and(lanes_shift(s0, -2), two)));
    lanes_store(v->minimum[4], lanes_or(lanes_and(lanes_shift(s2, -4), four),
                                        lanes_and(lanes_shift(s1, -2), two)));
    __m256i sums = _mm256_loadu_si256((const __m256i *)(const void *)sum);
    _mm256_storeu_ps(v->d_sum, _mm256_mul_ps(_mm256_loadu_ps(d), _mm256_cvtepi32_ps(sums)));
    stored();
}

/* A byte a row as factors of words. */
ALWAYS_INLINE lanes16 factors_of(const uint8_t *bytes) {
    const __m256i low = _mm256_setr_epi8(0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1, 4,
                                         -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1);
    const __m256i high =
        _mm256_setr_epi8(8, -1, 8, -1, 9, -1, 9, -1, 10, -1, 10, -1, 11, -1, 11, -1, 12, -1, 12, -1,
                         13, -1, 13, -1, 14, -1, 14, -1, 15, -1, 15, -1);
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)bytes));
    return (lanes16){_mm256_shuffle_epi8(v, low), _mm256_shuffle_epi8(v, high)};
}

/* Groups 2 * c and 2 * c + 1, which share bytes. */
ALWAYS_INLINE void group_pair(const uint8_t *block, const k_scalars *v, const int8_t *x,
                              const int c, lanes16 sum[2], const pith_type type) {
    const pith_panel_q4_k *b4 = (const void *)block;
    const pith_panel_q5_k *b5 = (const void *)block;
    const bool is_five = type == PITH_TYPE_Q5_K;
    lanes16 words[2] = {lanes_set(0), lanes_set(0)};
    sum[0] = sum[1] = lanes_set(0);
    UNROLL for (int i = 0; i < 8; i++) {
        nibble_pair w = nibbles_of(is_five ? b5->q[8 * c + i] : b4->q[8 * c + i]);
        if (is_five) {
            lanes16 h = lanes_load(v->h[i]);
            w = (nibble_pair){with_fifth(w.low, h, 2 * c), with_fifth(w.high, h, 2 * c + 1)};
        }
        stored();
        dot_step(&words[0], w.low, broadcast4(x + 4 * i));
        dot_step(&words[1], w.high, broadcast4(x + 4 * i + 32));
        if (i == 7 || (is_five && i == 3)) {
            UNROLL for (int s = 0; s < 2; s++) {
                sum_add(&sum[s], words[s], factors_of(v->scale[2 * c + s]));
                words[s] = lanes_set(0);
            }
        }
    }
}

ALWAYS_INLINE void super_k(const uint8_t *block, const pith_q8 *q8, size_t g, floats16 *acc,
                           floats16 *acc_min, const pith_type type) {
    const pith_panel_q4_k *b = (const void *)block; /* what is used of it is the same in Q5_K */
    const pith_panel_q5_k *b5 = (const void *)block;
    _Alignas(32) k_scalars v;
    floats16 s = ps_all(0.0f), u = s, d = ps_load_f16(b->d), dmin = ps_load_f16(b->dmin);
    k_scalars_read(&v, b->scales, q8->d + g, q8->sum + g);
    UNROLL for (int i = 0; i < 8; i++) {
        if (type != PITH_TYPE_Q5_K) break;
        lanes_store(v.h[i], lanes_load(b5->h[i]));
        stored();
    }
    UNROLL for (int c = 0; c < GROUPS / 2; c++) {
        lanes16 sum[2];
        group_pair(block, &v, q8->q + (g + 2 * (size_t)c) * PITH_GROUP, c, sum, type);
        stored();
        UNROLL for (int j = 2 * c; j < 2 * c + 2; j++) {
            s = ps_fma(ps_of(sum[j % 2]), ps_all(q8->d[g + (size_t)j]), s);
            u = ps_fma(ps_of_u8(v.minimum[j]), ps_all(v.d_sum[j]), u);
        }
    }
    *acc = ps_fma(s, d, *acc);
    *acc_min = ps_fma(u, dmin, *acc_min);
}

ALWAYS_INLINE void mul_k(const pith_mul *args, const pith_type type) {
    const size_t bytes = type == PITH_TYPE_Q4_K ? sizeof(pith_panel_q4_k) : sizeof(pith_panel_q5_k);
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *block = (const uint8_t *)args->w + p * args->panel_bytes;
        floats16 acc = ps_all(0.0f), acc_min = acc;
        for (size_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, block += bytes)
            super_k(block, args->q8, g, &acc, &acc_min, type);
        ps_store(args->y + PITH_PANEL_ROWS * (size_t)p, ps_sub(acc, acc_min));
    }
}

/* ---- Q6_K ---- */

/* Codes of the quarters of a half: 32 k of 8 rows each. */
ALWAYS_INLINE void six_bits(const pith_panel_q6_k_part *part, size_t at, __m256i code[4]) {
    const __m256i four = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    __m256i low0 = _mm256_loadu_si256((const __m256i *)(const void *)(part->low[0] + at)),
            low1 = _mm256_loadu_si256((const __m256i *)(const void *)(part->low[1] + at)),
            high = _mm256_loadu_si256((const __m256i *)(const void *)(part->high + at));
    code[0] = _mm256_or_si256(_mm256_and_si256(low0, four),
                              _mm256_and_si256(_mm256_slli_epi16(high, 4), two));
    code[1] = _mm256_or_si256(_mm256_and_si256(low1, four),
                              _mm256_and_si256(_mm256_slli_epi16(high, 2), two));
    code[2] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low0, 4), four),
                              _mm256_and_si256(high, two));
    code[3] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low1, 4), four),
                              _mm256_and_si256(_mm256_srli_epi16(high, 2), two));
}

/* Of the 4 groups of a half: factors of words ([..][0]: of the first 16 k), and what the codes'
 * offset of 32 adds, 32 * (scales * sums of x). */
typedef struct q6_scalars {
    __m256i factor[4][2][2], bias[4][2]; /* [..]: rows 0..7, 8..15 */
} q6_scalars;

ALWAYS_INLINE void q6_scalars_read(q6_scalars *v, const int8_t (*scales)[16],
                                   const int16_t *sum16) {
    const __m256i first = _mm256_broadcastsi128_si256(
                      _mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13)),
                  second = _mm256_add_epi8(first, _mm256_set1_epi8(2));
    for (int j = 0; j < 4; j++) {
        __m128i s0 = _mm_loadu_si128((const __m128i *)(const void *)scales[2 * j]),
                s1 = _mm_loadu_si128((const __m128i *)(const void *)scales[2 * j + 1]);
        __m256i sums = broadcast4((const int8_t *)(const void *)(sum16 + 2 * j));
        __m256i both[2] = {_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(s0, s1)),
                           _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(s0, s1))};
        UNROLL for (int h = 0; h < 2; h++) {
            v->bias[j][h] = _mm256_slli_epi32(_mm256_madd_epi16(both[h], sums), 5);
            v->factor[j][0][h] = _mm256_shuffle_epi8(both[h], first);
            v->factor[j][1][h] = _mm256_shuffle_epi8(both[h], second);
        }
    }
    stored();
}

/* Scale * dot of the quarters of a half, rows 8 h .. 8 h + 7: eight rows at a time, so that the
 * sums of all four stay in registers and memory is read strictly in order (panel.h). */
ALWAYS_INLINE void quarters(const pith_panel_q6_k_part *part, const q6_scalars *v, const int8_t *x,
                            const int h, __m256i sum[4]) {
    UNROLL for (int i = 0; i < 8; i += 2) {
        __m256i a[4], b[4];
        stored();
        six_bits(&part[i], 32 * (size_t)h, a);
        UNROLL for (int j = 0; j < 4; j++) {
            a[j] = _mm256_maddubs_epi16(a[j], broadcast4(x + 32 * j + 4 * i));
        }
        stored();
        six_bits(&part[i + 1], 32 * (size_t)h, b);
        UNROLL for (int j = 0; j < 4; j++) {
            __m256i words = _mm256_add_epi16(
                a[j], _mm256_maddubs_epi16(b[j], broadcast4(x + 32 * j + 4 * i + 4)));
            __m256i dot = _mm256_madd_epi16(words, v->factor[j][i / 4][h]);
            sum[j] = i ? _mm256_add_epi32(sum[j], dot) : _mm256_sub_epi32(dot, v->bias[j][h]);
        }
    }
}

ALWAYS_INLINE floats16 super_q6_k(const pith_panel_q6_k *b, const pith_q8 *q8, size_t g,
                                  floats16 acc) {
    __m256 s[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    floats16 d = ps_load_f16(b->d);
    for (int f = 0; f < 2; f++, g += 4) {
        q6_scalars v;
        q6_scalars_read(&v, b->scales + 8 * f, q8->sum16 + 2 * g);
        UNROLL for (int h = 0; h < 2; h++) {
            __m256i sum[4];
            quarters(b->part[f], &v, q8->q + g * PITH_GROUP, h, sum);
            UNROLL for (int j = 0; j < 4; j++) {
                __m256 d_x = _mm256_broadcast_ss(q8->d + g + j);
                s[h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[j]), d_x, s[h]);
            }
        }
    }
    return ps_fma((floats16){s[0], s[1]}, d, acc);
}

void pith_mul_one_q6_k_avx2(const pith_mul *args) {
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const pith_panel_q6_k *b = (const void *)((const uint8_t *)args->w + p * args->panel_bytes);
        floats16 acc = ps_all(0.0f);
        for (size_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, b++)
            acc = super_q6_k(b, args->q8, g, acc);
        ps_store(args->y + PITH_PANEL_ROWS * (size_t)p, acc);
    }
}

void pith_mul_one_q4_0_avx2(const pith_mul *args) {
    mul_small(args, PITH_TYPE_Q4_0);
}
void pith_mul_one_q4_1_avx2(const pith_mul *args) {
    mul_small(args, PITH_TYPE_Q4_1);
}
void pith_mul_one_q5_0_avx2(const pith_mul *args) {
    mul_small(args, PITH_TYPE_Q5_0);
}
void pith_mul_one_q5_1_avx2(const pith_mul *args) {
    mul_small(args, PITH_TYPE_Q5_1);
}
void pith_mul_one_q8_0_avx2(const pith_mul *args) {
    mul_small(args, PITH_TYPE_Q8_0);
}
void pith_mul_one_q4_k_avx2(const pith_mul *args) {
    mul_k(args, PITH_TYPE_Q4_K);
}
void pith_mul_one_q5_k_avx2(const pith_mul *args) {
    mul_k(args, PITH_TYPE_Q5_K);
}
