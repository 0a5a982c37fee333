/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products of the 256-element types with minima, Q4_K and Q5_K (contract: pith_mul in
 * kernel.h; layouts: panel.h).
 *
 *   per group:        s[t]     = fma(cvt(sum of 8 vpdpbusd) * scale, d_x, s[t])
 *                     u[t]     = fma(m, d_x * sum, u[t])
 *   per super-block:  acc[t]   = fma(s[t], d_w, acc[t])
 *                     acc_m[t] = fma(u[t], dmin_w, acc_m[t])
 *
 * Codes stay unsigned. A group's bits are turned (32-bit rotation) to where the mask is; the count
 * is data, so that one loop body does all 8 groups. Registers: 8 integer sums, 8 s, weight, masks,
 * counts. acc lives on the stack, touched once per super-block. Minima have a loop of their own.
 * Read next: mul_q6_k_avx512.c. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/x86.h"

typedef enum kind { Q4_K, Q5_K } kind;

enum { GROUPS = 8 };

ALWAYS_INLINE size_t block_bytes(kind type) {
    return type == Q4_K ? sizeof(pith_panel_q4_k) : sizeof(pith_panel_q5_k);
}

/* What one super-block needs besides codes. */
typedef struct scalars {
    float d[FEW_TOKENS][GROUPS];
    float d_sum[FEW_TOKENS][GROUPS]; /* d * sum */
    uint8_t scale[GROUPS][16];       /* unpacked 6-bit scales and minima of 16 rows */
    uint8_t minimum[GROUPS][16];
    bool prefetch; /* as in pith_mul */
} scalars;

ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, const int T) {
    UNROLL for (int t = 0; t < T; t++) {
        __m256 d = _mm256_loadu_ps(q8->d + at + (size_t)t * q8->d_stride);
        const int32_t *sums = q8->sum + at + (size_t)t * q8->d_stride;
        __m256i sum = _mm256_loadu_si256((const __m256i *)(const void *)sums);
        _mm256_store_ps(v->d[t], d);
        _mm256_store_ps(v->d_sum[t], _mm256_mul_ps(d, _mm256_cvtepi32_ps(sum)));
    }
}

/* The 6-bit fields: 64 bytes are 4 groups of 16 rows. */
ALWAYS_INLINE void scales_unpack(scalars *v, const uint8_t (*scales)[64]) {
    const __m512i six = _mm512_set1_epi8(63), four = _mm512_set1_epi8(15);
    const __m512i high = _mm512_set1_epi8(0x30);
    __m512i s0 = load_codes(scales[0]), s1 = load_codes(scales[1]), s2 = load_codes(scales[2]);
    __m512i low = _mm512_and_si512(s2, four), up = _mm512_and_si512(_mm512_srli_epi16(s2, 4), four);
    _mm512_store_si512(v->scale[0], _mm512_and_si512(s0, six));
    _mm512_store_si512(v->minimum[0], _mm512_and_si512(s1, six));
    _mm512_store_si512(v->scale[4], join(low, _mm512_srli_epi16(s0, 2), high));
    _mm512_store_si512(v->minimum[4], join(up, _mm512_srli_epi16(s1, 2), high));
    stored();
}

/* Code group i of group j, unsigned. */
ALWAYS_INLINE __m512i weight(const uint8_t *w, int j, int i, const kind type) {
    const __m512i nibble_turn = _mm512_set1_epi32(4 * (j & 1)),
                  fifth_turn = _mm512_set1_epi32(j - 4);
    const pith_panel_q5_k *b5 = (const void *)w;
    const pith_panel_q4_k *b4 = (const void *)w;
    const uint8_t *q = type == Q5_K ? b5->q[8 * (j >> 1)] : b4->q[8 * (j >> 1)];
    __m512i low = _mm512_rorv_epi32(load_codes(q + 64 * i), nibble_turn);
    low = _mm512_and_si512(low, _mm512_set1_epi8(15));
    if (type == Q4_K) return low;
    __m512i fifth = _mm512_rorv_epi32(load_codes(b5->h[i]), fifth_turn);
    return join(low, fifth, _mm512_set1_epi8(0x10));
}

ALWAYS_INLINE void group(const uint8_t *w, const tile_rows *x, const scalars *v, int j, __m512 *s,
                         const int T, const kind type) {
    __m512i sum[FEW_TOKENS];
    UNROLL for (int t = 0; t < T; t++) {
        sum[t] = _mm512_setzero_si512();
    }
    UNROLL for (int i = 0; i < 8; i++) {
        __m512i code = weight(w, j, i, type);
        UNROLL for (int t = 0; t < T; t++) {
            DOT(sum[t], code, tile_row(x, t) + 4 * i);
        }
    }
    __m512 scale = bytes_to_ps(v->scale[j]);
    UNROLL for (int t = 0; t < T; t++) {
        __m512 p = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[t]), scale);
        s[t] = _mm512_fmadd_ps(p, _mm512_set1_ps(v->d[t][j]), s[t]);
    }
}

/* acc_m of one super-block: u over its groups, then times dmin. */
ALWAYS_INLINE void add_minima(const uint8_t *w, const scalars *v, float (*acc)[16], const int T) {
    __m512 u[FEW_TOKENS], dmin = load_f16(((const pith_panel_q4_k *)(const void *)w)->dmin);
    UNROLL for (int t = 0; t < T; t++) {
        u[t] = _mm512_setzero_ps();
    }
    for (int j = 0; j < GROUPS; j++) {
        __m512 m = bytes_to_ps(v->minimum[j]);
        UNROLL for (int t = 0; t < T; t++) {
            u[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(v->d_sum[t][j]), u[t]);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        fma_store(acc[t], u[t], dmin);
    }
}

ALWAYS_INLINE void super_block(const uint8_t *w, tile_rows *x, scalars *v, float (*acc)[16],
                               float (*acc_min)[16], const int T, const kind type) {
    __m512 s[FEW_TOKENS], d = load_f16((const uint16_t *)(const void *)w);
    const size_t group_bytes = block_bytes(type) / GROUPS;
    scales_unpack(v, ((const pith_panel_q4_k *)(const void *)w)->scales);
    add_minima(w, v, acc_min, T);
    UNROLL for (int t = 0; t < T; t++) {
        s[t] = _mm512_setzero_ps();
    }
    for (int j = 0; j < GROUPS; j++) {
        prefetch(w + (size_t)j * group_bytes, (int)group_bytes, T, v->prefetch);
        group(w, x, v, j, s, T, type);
        tile_rows_next(x);
    }
    UNROLL for (int t = 0; t < T; t++) {
        fma_store(acc[t], s[t], d);
    }
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, float *y, const int T,
                        const kind type) {
    _Alignas(64) scalars v;
    _Alignas(64) float acc[FEW_TOKENS][16] = {{0}}, acc_min[FEW_TOKENS][16] = {{0}};
    tile_rows x = tile_rows_at(args->q8, 0, T);
    v.prefetch = args->prefetch;
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, w += block_bytes(type)) {
        scalars_read(&v, args->q8, g, T);
        super_block(w, &x, &v, acc, acc_min, T, type);
    }
    UNROLL for (int t = 0; t < T; t++) {
        __m512 result = _mm512_sub_ps(_mm512_load_ps(acc[t]), _mm512_load_ps(acc_min[t]));
        _mm512_storeu_ps(y + (size_t)t * args->y_stride, result);
    }
}

ALWAYS_INLINE void unpack(expanded *out, const uint8_t *w, const kind type) {
    const pith_panel_q4_k *b = (const void *)w; /* the fields used here are the same in Q5_K */
    _Alignas(64) scalars v;
    scales_unpack(&v, b->scales);
    _mm512_store_ps(out->f.d[0], load_f16(b->d));
    _mm512_store_ps(out->f.dmin, load_f16(b->dmin));
    for (int j = 0; j < GROUPS; j++) {
        UNROLL for (int i = 0; i < 8; i++) {
            _mm512_store_si512(out->code[j][i], weight(w, j, i, type));
        }
        _mm512_store_ps(out->f.scale[j][0], bytes_to_ps(v.scale[j]));
        _mm512_store_ps(out->f.minimum[j][0], bytes_to_ps(v.minimum[j]));
    }
}

ALWAYS_INLINE void few_tokens(const pith_mul *args, const uint8_t *w, float *y, const kind type) {
    switch (args->n) {
    case 1: tile(args, w, y, 1, type); break;
    case 2: tile(args, w, y, 2, type); break;
    case 3: tile(args, w, y, 3, type); break;
    case 4: tile(args, w, y, 4, type); break;
    case 5: tile(args, w, y, 5, type); break;
    case 6: tile(args, w, y, 6, type); break;
    case 7: tile(args, w, y, 7, type); break;
    case 8: tile(args, w, y, 8, type); break;
    default: break;
    }
}

ALWAYS_INLINE void mul(const pith_mul *args, const wide_type *wide, const kind type) {
    if (args->n > SOME_TOKENS) {
        pith_mul_wide_avx512(args, wide);
        return;
    }
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *w = (const uint8_t *)args->w + p * args->panel_bytes;
        for (uint32_t t = 0; t < args->n; t += FEW_TOKENS) {
            pith_q8 q8;
            pith_mul part = tokens_from(args, t, &q8);
            few_tokens(&part, w, part.y + PITH_PANEL_ROWS * (size_t)p, type);
        }
    }
}

static void unpack_q4_k(expanded *out, const uint8_t *w, int n) {
    (void)n; /* always 8 */
    unpack(out, w, Q4_K);
}

const wide_type pith_wide_q4_k = {unpack_q4_k, sizeof(pith_panel_q4_k), WIDE_SUPER, 0, 15};

void pith_mul_fast_q4_k_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_q4_k);
}

void pith_mul_q4_k_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q4_k, Q4_K);
}

static void unpack_q5_k(expanded *out, const uint8_t *w, int n) {
    (void)n; /* always 8 */
    unpack(out, w, Q5_K);
}

const wide_type pith_wide_q5_k = {unpack_q5_k, sizeof(pith_panel_q5_k), WIDE_SUPER, 0, 31};

void pith_mul_fast_q5_k_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_q5_k);
}

void pith_mul_q5_k_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q5_k, Q5_K);
}
