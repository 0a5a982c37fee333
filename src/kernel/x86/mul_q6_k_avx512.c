/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI product of Q6_K (contract: pith_mul in kernel.h; layout: panel.h).
 *
 *   per group:        p    = cvt(sum of 4 vpdpbusd + bias_0) * scale_0
 *                     p    = fma(cvt(sum of the next 4 + bias_1), scale_1, p)
 *                     s[t] = fma(p, d_x, s[t])
 *   per super-block:  acc[t] = fma(s[t], d_w, acc[t])
 *
 * Codes stay unsigned, so each integer sum starts at -32 * (sum of its 16 x). One or two tokens
 * walk a half of 128 k at once, reading each line of weights a single time; more tokens walk group
 * by group with the bits turned by a count, as in mul_super_avx512.c. Registers there: 8 sums, 8 p,
 * weight, masks, counts; s and acc live on the stack. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/x86.h"

enum { GROUPS = 8 };

/* What one super-block needs besides codes. */
typedef struct scalars {
    float d[FEW_TOKENS][GROUPS];
    int32_t bias[FEW_TOKENS][2 * GROUPS]; /* -32 * sum16 */
    bool prefetch;                        /* as in pith_mul */
} scalars;

ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, const int T) {
    UNROLL for (int t = 0; t < T; t++) {
        size_t row = at + (size_t)t * q8->d_stride;
        __m256i sums = _mm256_loadu_si256((const __m256i *)(const void *)(q8->sum16 + 2 * row));
        __m512i sum = _mm512_slli_epi32(_mm512_cvtepi16_epi32(sums), 5);
        _mm256_store_ps(v->d[t], _mm256_loadu_ps(q8->d + row));
        _mm512_store_si512(v->bias[t], _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
    stored();
}

ALWAYS_INLINE __m512 scale_of(const pith_panel_q6_k *b, int sub_block) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)b->scales[sub_block]);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

/* One code group of each of the four groups of a half. */
ALWAYS_INLINE void four_weights(const pith_panel_q6_k_part *part, __m512i code[4]) {
    const __m512i nibble = _mm512_set1_epi8(15), two = _mm512_set1_epi8(0x30);
    __m512i a = load_codes(part->low[0]), b = load_codes(part->low[1]), h = load_codes(part->high);
    code[0] = join(_mm512_and_si512(a, nibble), _mm512_slli_epi16(h, 4), two);
    code[1] = join(_mm512_and_si512(b, nibble), _mm512_slli_epi16(h, 2), two);
    code[2] = join(_mm512_and_si512(_mm512_srli_epi16(a, 4), nibble), h, two);
    code[3] = join(_mm512_and_si512(_mm512_srli_epi16(b, 4), nibble), _mm512_srli_epi16(h, 2), two);
}

/* Half f of a block, T <= 2. */
ALWAYS_INLINE void half_few(const pith_panel_q6_k *b, const tile_rows *x, const scalars *v, int f,
                            float (*s)[16], const int T) {
    __m512 p[4][2];
    UNROLL for (int part = 0; part < 2; part++) {
        __m512i sum[4][2];
        UNROLL for (int i = 0; i < 4; i++) {
            UNROLL for (int t = 0; t < T; t++) {
                sum[i][t] = _mm512_set1_epi32(v->bias[t][8 * f + 2 * i + part]);
            }
        }
        UNROLL for (int g = 4 * part; g < 4 * part + 4; g++) {
            __m512i code[4];
            prefetch(&b->part[f][g], g == 0 ? 384 : 192, T, v->prefetch);
            four_weights(&b->part[f][g], code);
            UNROLL for (int i = 0; i < 4; i++) {
                UNROLL for (int t = 0; t < T; t++) {
                    DOT(sum[i][t], code[i], tile_row(x, t) + 32 * i + 4 * g);
                }
            }
        }
        UNROLL for (int i = 0; i < 4; i++) {
            __m512 scale = scale_of(b, 8 * f + 2 * i + part);
            UNROLL for (int t = 0; t < T; t++) {
                __m512 dot = _mm512_cvtepi32_ps(sum[i][t]);
                p[i][t] = part ? _mm512_fmadd_ps(dot, scale, p[i][t]) : _mm512_mul_ps(dot, scale);
            }
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        UNROLL for (int t = 0; t < T; t++) {
            fma_store(s[t], p[i][t], _mm512_set1_ps(v->d[t][4 * f + i]));
        }
    }
}

/* Code group g of group j. */
ALWAYS_INLINE __m512i weight(const pith_panel_q6_k *b, int j, int g) {
    const pith_panel_q6_k_part *part = &b->part[j >> 2][g];
    const __m512i low_turn = _mm512_set1_epi32(2 * (j & 2)),
                  high_turn = _mm512_set1_epi32(2 * (j & 3) - 4);
    __m512i low = _mm512_rorv_epi32(load_codes(part->low[j & 1]), low_turn);
    __m512i high = _mm512_rorv_epi32(load_codes(part->high), high_turn);
    return join(_mm512_and_si512(low, _mm512_set1_epi8(15)), high, _mm512_set1_epi8(0x30));
}

/* Group j of a block. */
ALWAYS_INLINE void group_many(const pith_panel_q6_k *b, const tile_rows *x, const scalars *v, int j,
                              float (*s)[16], const int T) {
    __m512 p[FEW_TOKENS];
    UNROLL for (int part = 0; part < 2; part++) {
        __m512i sum[FEW_TOKENS];
        UNROLL for (int t = 0; t < T; t++) {
            sum[t] = _mm512_set1_epi32(v->bias[t][2 * j + part]);
        }
        UNROLL for (int g = 4 * part; g < 4 * part + 4; g++) {
            __m512i code = weight(b, j, g);
            UNROLL for (int t = 0; t < T; t++) {
                DOT(sum[t], code, tile_row(x, t) + 4 * g);
            }
        }
        __m512 scale = scale_of(b, 2 * j + part);
        UNROLL for (int t = 0; t < T; t++) {
            __m512 dot = _mm512_cvtepi32_ps(sum[t]);
            p[t] = part ? _mm512_fmadd_ps(dot, scale, p[t]) : _mm512_mul_ps(dot, scale);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        fma_store(s[t], p[t], _mm512_set1_ps(v->d[t][j]));
    }
}

ALWAYS_INLINE void super_block(const uint8_t *w, tile_rows *x, const scalars *v, float (*s)[16],
                               const int T) {
    const pith_panel_q6_k *b = (const void *)w;
    for (int f = 0; T <= 2 && f < 2; f++) {
        half_few(b, x, v, f, s, T);
        for (int i = 0; i < 4; i++) tile_rows_next(x);
    }
    for (int j = 0; T > 2 && j < GROUPS; j++) {
        prefetch(w + (size_t)j * (sizeof *b / GROUPS), sizeof *b / GROUPS, T, v->prefetch);
        group_many(b, x, v, j, s, T);
        tile_rows_next(x);
    }
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, float *y, const int T) {
    _Alignas(64) scalars v;
    _Alignas(64) float acc[FEW_TOKENS][16] = {{0}}, s[FEW_TOKENS][16] = {{0}};
    tile_rows x = tile_rows_at(args->q8, 0, T);
    v.prefetch = args->prefetch;
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, w += sizeof(pith_panel_q6_k)) {
        __m512 d = load_f16(((const pith_panel_q6_k *)(const void *)w)->d);
        scalars_read(&v, args->q8, g, T);
        super_block(w, &x, &v, s, T);
        UNROLL for (int t = 0; t < T; t++) {
            fma_store(acc[t], _mm512_load_ps(s[t]), d);
            _mm512_store_ps(s[t], _mm512_setzero_ps());
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        _mm512_storeu_ps(y + (size_t)t * args->y_stride, _mm512_load_ps(acc[t]));
    }
}

static void unpack(expanded *out, const uint8_t *w, int n) {
    const pith_panel_q6_k *b = (const void *)w;
    (void)n; /* always 8 */
    _mm512_store_ps(out->f.d[0], load_f16(b->d));
    for (int f = 0; f < 2; f++)
        for (int g = 0; g < 8; g++) {
            __m512i code[4];
            four_weights(&b->part[f][g], code);
            UNROLL for (int i = 0; i < 4; i++) {
                _mm512_store_si512(out->code[4 * f + i][g], code[i]);
            }
        }
    for (int s = 0; s < 2 * GROUPS; s++)
        _mm512_store_ps(out->f.scale[s / 2][s % 2], scale_of(b, s));
}

ALWAYS_INLINE void few_tokens(const pith_mul *args, const uint8_t *w, float *y) {
    switch (args->n) {
    case 1: tile(args, w, y, 1); break;
    case 2: tile(args, w, y, 2); break;
    case 3: tile(args, w, y, 3); break;
    case 4: tile(args, w, y, 4); break;
    case 5: tile(args, w, y, 5); break;
    case 6: tile(args, w, y, 6); break;
    case 7: tile(args, w, y, 7); break;
    case 8: tile(args, w, y, 8); break;
    default: break;
    }
}

const wide_type pith_wide_q6_k = {unpack, sizeof(pith_panel_q6_k), WIDE_HALVES, 5, 32};

void pith_mul_fast_q6_k_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_q6_k);
}

void pith_mul_q6_k_avx512(const pith_mul *args) {
    if (args->n > SOME_TOKENS) {
        pith_mul_wide_avx512(args, &pith_wide_q6_k);
        return;
    }
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *w = (const uint8_t *)args->w + p * args->panel_bytes;
        for (uint32_t t = 0; t < args->n; t += FEW_TOKENS) {
            pith_q8 q8;
            pith_mul part = tokens_from(args, t, &q8);
            few_tokens(&part, w, part.y + PITH_PANEL_ROWS * (size_t)p);
        }
    }
}
