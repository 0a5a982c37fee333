/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products of Q2_K, Q3_K, IQ4_XS and TQ2_0 with few tokens, two at a time, codes
 * straight from the panel (contract: pith_mul in kernel.h; layouts: panel.h). More tokens, and the
 * other types that are expanded first: mul_expanded_avx512.c.
 *
 *   per group:        p    = cvt(sum of 4 vpdpbusd + bias_0) * scale_0
 *                     p    = fma(cvt(sum of the next 4 + bias_1), scale_1, p)
 *                     s[t] = fma(p, d_x, s[t])                    one sum where there is one scale
 *   Q2_K:             u[t] = fma(m_0 * sum16_0 + m_1 * sum16_1, d_x, u[t])
 *   per super-block:  acc[t] = fma(s[t], d_w, acc[t]), the same for u and dmin
 *
 * Codes are unsigned; signed types start each integer sum at -offset * (sum of its x). Two-bit
 * types walk a half of 128 k at once, so that each line is read a single time: 8 sums, 8 p, 4
 * weights. */
#include "kernel/x86/mul_few_avx512.h"
#include "kernel/x86/mul_avx512.h"
#include "quant/grid.h"

typedef enum kind { IQ4_XS, Q2_K, Q3_K, TQ2_0 } kind;

enum { GROUPS = 8, MOST = PREFETCH_L1_TOKENS };

ALWAYS_INLINE size_t block_bytes(kind type) {
    switch (type) {
    case IQ4_XS: return sizeof(pith_panel_iq4_xs);
    case Q2_K: return sizeof(pith_panel_q2_k);
    case Q3_K: return sizeof(pith_panel_q3_k);
    default: return sizeof(pith_panel_tq2_0);
    }
}

/* Of what lies before the codes. */
ALWAYS_INLINE size_t head_bytes(kind type) {
    switch (type) {
    case IQ4_XS: return offsetof(pith_panel_iq4_xs, q);
    case Q2_K: return offsetof(pith_panel_q2_k, q);
    case Q3_K: return offsetof(pith_panel_q3_k, part);
    default: return offsetof(pith_panel_tq2_0, q);
    }
}

/* What one super-block needs besides codes. */
typedef struct scalars {
    float d[MOST][GROUPS];
    int32_t bias[MOST][2 * GROUPS];   /* -offset * sum16 */
    float half_sum[MOST][2 * GROUPS]; /* sum16; Q2_K */
    bool prefetch;                    /* as in pith_mul */
} scalars;

ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, const int T,
                                const kind type) {
    const int shift = type == IQ4_XS ? 7 : type == Q3_K ? 2 : 0;
    UNROLL for (int t = 0; t < T; t++) {
        size_t row = at + (size_t)t * q8->d_stride;
        __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)(q8->sum16 + 2 * row));
        __m512i sum = _mm512_cvtepi16_epi32(halves);
        _mm256_store_ps(v->d[t], _mm256_loadu_ps(q8->d + row));
        if (type == Q2_K) _mm512_store_ps(v->half_sum[t], _mm512_cvtepi32_ps(sum));
        sum = _mm512_slli_epi32(sum, (unsigned)shift);
        _mm512_store_si512(v->bias[t], _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
    stored();
}

/* A field of each word as floats, minus `offset`. */
ALWAYS_INLINE __m512 field_to_ps(__m512i word, int bit, int mask, int offset) {
    __m512i v = _mm512_and_si512(_mm512_srli_epi32(word, (unsigned)bit), _mm512_set1_epi32(mask));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(v, _mm512_set1_epi32(offset)));
}

/* Of sub-block s of 16 k. */
ALWAYS_INLINE __m512 scale_of(const uint8_t *w, int s, const kind type) {
    if (type == Q2_K) {
        const pith_panel_q2_k *b = (const void *)w;
        return field_to_ps(load_codes(b->scales[s / 4]), 8 * (s % 4), 15, 0);
    }
    const pith_panel_q3_k *b = (const void *)w;
    __m512i low = load_codes(b->scales[s % 8 / 4]), high = load_codes(b->scales[2]);
    low = _mm512_srli_epi32(low, (unsigned)(8 * (s % 4) + 4 * (s / 8)));
    high = _mm512_srli_epi32(high, (unsigned)(8 * (s % 4) + 2 * (s / 4)));
    low = _mm512_and_si512(low, _mm512_set1_epi32(15));
    high = _mm512_slli_epi32(_mm512_and_si512(high, _mm512_set1_epi32(3)), 4);
    return field_to_ps(_mm512_or_si512(low, high), 0, 63, 32);
}

/* What a shift of 16-bit lanes by an immediate takes. */
#if defined(__clang__)
typedef unsigned shift_count;
#else
typedef int shift_count;
#endif

/* Bit n of each byte as bit 2. */
ALWAYS_INLINE __m512i third_bit(__m512i h, const int n) {
    h = n < 2   ? _mm512_slli_epi16(h, (shift_count)(2 - n))
        : n > 2 ? _mm512_srli_epi16(h, (shift_count)(n - 2))
                : h;
    return _mm512_and_si512(h, _mm512_set1_epi8(4));
}

/* Code group g of each of the four groups of half f. */
ALWAYS_INLINE void four_weights(const uint8_t *w, const int f, int g, __m512i code[4],
                                bool is_ahead, const kind type) {
    const pith_panel_q3_k_part *part = &((const pith_panel_q3_k *)(const void *)w)->part[g];
    const uint8_t *q = type == Q3_K   ? part->q[f]
                       : type == Q2_K ? ((const pith_panel_q2_k *)(const void *)w)->q[8 * f + g]
                                      : ((const pith_panel_tq2_0 *)(const void *)w)->q[8 * f + g];
    __m512i v = load_codes(q), h = _mm512_setzero_si512();
    if (type != Q3_K)
        prefetch(q, 64, 1, is_ahead);
    else if (f == 0)
        prefetch(part, sizeof *part, 1, is_ahead);
    if (type == Q3_K) h = load_codes(part->h);
    UNROLL for (int i = 0; i < 4; i++) {
        code[i] = _mm512_and_si512(_mm512_srli_epi16(v, (shift_count)(2 * i)), _mm512_set1_epi8(3));
        if (type == Q3_K) code[i] = _mm512_or_si512(code[i], third_bit(h, 4 * f + i));
    }
}

/* Half f of a two-bit type. x: rows at its first group. */
ALWAYS_INLINE void half(const uint8_t *w, const tile_rows *x, const scalars *v, const int f,
                        __m512 *s, const int T, const kind type) {
    __m512i sum[4][MOST];
    __m512 p[4][MOST];
    UNROLL for (int part = 0; part < 2; part++) {
        UNROLL for (int i = 0; i < 4; i++) {
            UNROLL for (int t = 0; t < T; t++) {
                __m512i bias = _mm512_set1_epi32(v->bias[t][8 * f + 2 * i + part]);
                if (type == Q2_K) bias = _mm512_setzero_si512();
                sum[i][t] = type == TQ2_0 && part ? _mm512_add_epi32(sum[i][t], bias) : bias;
            }
        }
        UNROLL for (int g = 4 * part; g < 4 * part + 4; g++) {
            __m512i code[4];
            four_weights(w, f, g, code, v->prefetch, type);
            UNROLL for (int i = 0; i < 4; i++) {
                UNROLL for (int t = 0; t < T; t++) {
                    DOT(sum[i][t], code[i], tile_row(x, t) + 32 * i + 4 * g);
                }
            }
        }
        UNROLL for (int i = 0; i < 4; i++) {
            __m512 scale = _mm512_setzero_ps();
            if (type != TQ2_0) scale = scale_of(w, 8 * f + 2 * i + part, type);
            UNROLL for (int t = 0; t < T; t++) {
                __m512 dot = _mm512_cvtepi32_ps(sum[i][t]);
                if (type == TQ2_0)
                    p[i][t] = dot;
                else
                    p[i][t] =
                        part ? _mm512_fmadd_ps(dot, scale, p[i][t]) : _mm512_mul_ps(dot, scale);
            }
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        UNROLL for (int t = 0; t < T; t++) {
            s[t] = _mm512_fmadd_ps(p[i][t], _mm512_set1_ps(v->d[t][4 * f + i]), s[t]);
        }
    }
}

/* Group j of IQ4_XS. */
ALWAYS_INLINE void group(const uint8_t *w, const tile_rows *x, const scalars *v, int j, __m512 *s,
                         const int T) {
    const pith_panel_iq4_xs *b = (const void *)w;
    const __m128i values = _mm_loadu_si128((const __m128i *)(const void *)pith_book_iq4);
    const __m512i nibble = _mm512_set1_epi8(15),
                  book = _mm512_xor_si512(_mm512_broadcast_i32x4(values),
                                          _mm512_set1_epi8((char)0x80));
    __m512i sum[MOST];
    UNROLL for (int t = 0; t < T; t++) {
        sum[t] = _mm512_set1_epi32(v->bias[t][2 * j] + v->bias[t][2 * j + 1]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        __m512i q = load_codes(b->q[4 * j + i]);
        __m512i low = _mm512_shuffle_epi8(book, _mm512_and_si512(q, nibble));
        __m512i high = _mm512_shuffle_epi8(book, _mm512_and_si512(_mm512_srli_epi16(q, 4), nibble));
        prefetch(b->q[4 * j + i], 64, 1, v->prefetch);
        UNROLL for (int t = 0; t < T; t++) {
            DOT(sum[t], low, tile_row(x, t) + 4 * i);
            DOT(sum[t], high, tile_row(x, t) + 16 + 4 * i);
        }
    }
    __m512i low = _mm512_srli_epi32(load_codes(b->scales_l), 4u * (unsigned)j),
            high = _mm512_cvtepu16_epi32(
                _mm256_loadu_si256((const __m256i *)(const void *)b->scales_h));
    low = _mm512_and_si512(low, _mm512_set1_epi32(15));
    high = _mm512_and_si512(_mm512_srli_epi32(high, 2u * (unsigned)j), _mm512_set1_epi32(3));
    __m512 scale = field_to_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 4)), 0, 63, 32);
    UNROLL for (int t = 0; t < T; t++) {
        __m512 p = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[t]), scale);
        s[t] = _mm512_fmadd_ps(p, _mm512_set1_ps(v->d[t][j]), s[t]);
    }
}

ALWAYS_INLINE void add_minima(const pith_panel_q2_k *b, const scalars *v, __m512 *acc,
                              const int T) {
    __m512 u[MOST], dmin = load_f16(b->dmin);
    UNROLL for (int t = 0; t < T; t++) {
        u[t] = _mm512_setzero_ps();
    }
    UNROLL for (int j = 0; j < GROUPS; j++) {
        __m512i word = load_codes(b->scales[j / 2]);
        __m512 first = field_to_ps(word, 16 * (j % 2) + 4, 15, 0),
               second = field_to_ps(word, 16 * (j % 2) + 12, 15, 0);
        UNROLL for (int t = 0; t < T; t++) {
            const float *sum = v->half_sum[t] + 2 * j;
            __m512 m = _mm512_fmadd_ps(second, _mm512_set1_ps(sum[1]),
                                       _mm512_mul_ps(first, _mm512_set1_ps(sum[0])));
            u[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(v->d[t][j]), u[t]);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        acc[t] = _mm512_fmadd_ps(u[t], dmin, acc[t]);
    }
}

ALWAYS_INLINE void super_block(const uint8_t *w, tile_rows *x, const scalars *v, __m512 *acc,
                               const int T, const kind type) {
    __m512 s[MOST], d = load_f16((const uint16_t *)(const void *)w);
    UNROLL for (int t = 0; t < T; t++) {
        s[t] = _mm512_setzero_ps();
    }
    for (int j = 0; type == IQ4_XS && j < GROUPS; j++) {
        group(w, x, v, j, s, T);
        tile_rows_next(x);
    }
    if (type != IQ4_XS) {
        UNROLL for (int f = 0; f < 2; f++) {
            half(w, x, v, f, s, T, type);
            for (int i = 0; i < 4; i++) tile_rows_next(x);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        acc[t] = _mm512_fmadd_ps(s[t], d, acc[t]);
    }
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, float *y, const int T,
                        const kind type) {
    _Alignas(64) scalars v;
    __m512 acc[MOST], acc_min[MOST];
    tile_rows x = tile_rows_at(args->q8, 0, T);
    v.prefetch = args->prefetch;
    UNROLL for (int t = 0; t < T; t++) {
        acc[t] = acc_min[t] = _mm512_setzero_ps();
    }
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, w += block_bytes(type)) {
        prefetch(w, (int)head_bytes(type), T, args->prefetch);
        scalars_read(&v, args->q8, g, T, type);
        if (type == Q2_K) add_minima((const void *)w, &v, acc_min, T);
        super_block(w, &x, &v, acc, T, type);
    }
    UNROLL for (int t = 0; t < T; t++) {
        if (type == Q2_K) acc[t] = _mm512_sub_ps(acc[t], acc_min[t]);
        _mm512_storeu_ps(y + (size_t)t * args->y_stride, acc[t]);
    }
}

ALWAYS_INLINE void mul(const pith_mul *args, const kind type) {
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *w = (const uint8_t *)args->w + p * args->panel_bytes;
        for (uint32_t t = 0; t < args->n; t += MOST) {
            pith_q8 q8;
            pith_mul part = tokens_from(args, t, &q8);
            if (args->n - t == 1)
                tile(&part, w, part.y + PITH_PANEL_ROWS * (size_t)p, 1, type);
            else
                tile(&part, w, part.y + PITH_PANEL_ROWS * (size_t)p, 2, type);
        }
    }
}

void pith_mul_few_iq4_xs_avx512(const pith_mul *args) {
    mul(args, IQ4_XS);
}

void pith_mul_few_q2_k_avx512(const pith_mul *args) {
    mul(args, Q2_K);
}

void pith_mul_few_q3_k_avx512(const pith_mul *args) {
    mul(args, Q3_K);
}

void pith_mul_few_tq2_0_avx512(const pith_mul *args) {
    mul(args, TQ2_0);
}
