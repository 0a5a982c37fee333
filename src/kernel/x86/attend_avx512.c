/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 attention: scores and loads of attend_rows.h with 512-bit registers.
 *
 * Rows go in blocks of up to 6. Scores: a K panel is 16 tokens wide, so a register holds the scores
 * of 16 tokens; float K has the contract's four chains over d (6 rows x 4 chains), int8 K one
 * vpdpbusd a 4 bytes of d with codes made unsigned (+128, taken back by 128 * sum(q)). Values: 6
 * rows x 4 vectors of d. Read next: attend_rows.h. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/vector_math_avx512.h"
#include "kernel/x86/x86.h"

enum { ATTEND_ROWS = 6, ATTEND_LOADS = 1 };

#include "kernel/attend_rows.h"

ALWAYS_INLINE vec load_k(const void *k, size_t index, kind type) {
    return type == F32 ? vec_load((const float *)k + index)
                       : vec_load_f16((const uint16_t *)k + index);
}

/* Panel `panel` of float K with R rows from `row`. */
ALWAYS_INLINE void scores_float(const pith_attend *args, block *b, uint32_t row, uint32_t panel,
                                const int R, const kind type) {
    const size_t base = (size_t)panel * args->head_dim * 16;
    const float *q = args->q + row * args->q_stride;
    __m512 chain[ATTEND_ROWS][4];
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 4; c++) {
            chain[r][c] = _mm512_setzero_ps();
        }
    }
    uint32_t d = 0;
    for (; d + 4 <= args->head_dim; d += 4) {
        ask_ahead(b->ahead_k, base + d * 16, 64, type);
        UNROLL for (int c = 0; c < 4; c++) {
            __m512 k = load_k(args->page.k, base + (d + (uint32_t)c) * 16, type);
            UNROLL for (int r = 0; r < R; r++) {
                __m512 x = _mm512_set1_ps(q[(size_t)r * args->q_stride + d + (uint32_t)c]);
                chain[r][c] = _mm512_fmadd_ps(k, x, chain[r][c]);
            }
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (d + (uint32_t)c >= args->head_dim) continue;
        __m512 k = load_k(args->page.k, base + (d + (uint32_t)c) * 16, type);
        UNROLL for (int r = 0; r < R; r++) {
            __m512 x = _mm512_set1_ps(q[(size_t)r * args->q_stride + d + (uint32_t)c]);
            chain[r][c] = _mm512_fmadd_ps(k, x, chain[r][c]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        __m512 low = _mm512_add_ps(chain[r][0], chain[r][1]),
               high = _mm512_add_ps(chain[r][2], chain[r][3]);
        _mm512_storeu_ps(b->p[r] + 16 * panel, _mm512_add_ps(low, high));
    }
}

/* Panel `panel` of int8 K: per 32 d an exact integer dot, then acc = fma(dot, d_q, acc); times
 * k_scale. */
ALWAYS_INLINE void scores_i8(const pith_attend *args, block *b, uint32_t row, uint32_t panel,
                             const int R) {
    const pith_q8 *q8 = args->q8;
    const size_t base = (size_t)panel * args->head_dim * 16;
    const int8_t *k = (const int8_t *)args->page.k + base;
    const int8_t *q = q8->q + (args->first_q8 + row) * q8->q_stride;
    const size_t at = (args->first_q8 + row) * q8->d_stride;
    __m512 acc[ATTEND_ROWS], k_scale = _mm512_loadu_ps(args->page.k_scale + 16 * panel);
    UNROLL for (int r = 0; r < R; r++) {
        acc[r] = _mm512_setzero_ps();
    }
    for (uint32_t i = 0; i < args->head_dim / PITH_GROUP; i++, k += 512, q += PITH_GROUP) {
        __m512i dot[ATTEND_ROWS];
        ask_ahead(b->ahead_k, base + 512 * (size_t)i, 512, I8);
        UNROLL for (int r = 0; r < R; r++) {
            dot[r] = _mm512_set1_epi32(-128 * q8->sum[at + (size_t)r * q8->d_stride + i]);
        }
        UNROLL for (int g = 0; g < 8; g++) {
            __m512i code = _mm512_xor_si512(load_codes(k + 64 * g), _mm512_set1_epi8((char)0x80));
            UNROLL for (int r = 0; r < R; r++) {
                DOT(dot[r], code, q + (size_t)r * q8->q_stride + 4 * g);
            }
        }
        UNROLL for (int r = 0; r < R; r++) {
            __m512 d = _mm512_set1_ps(q8->d[at + (size_t)r * q8->d_stride + i]);
            acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r]), d, acc[r]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        _mm512_storeu_ps(b->p[r] + 16 * panel, _mm512_mul_ps(acc[r], k_scale));
    }
}

ALWAYS_INLINE void scores(const pith_attend *args, block *b, uint32_t row, uint32_t first,
                          uint32_t last, const int R, const kind type) {
    for (uint32_t i = first / 16; 16 * i < last; i++) {
        if (type == I8)
            scores_i8(args, b, row, i, R);
        else
            scores_float(args, b, row, i, R, type);
    }
}

ALWAYS_INLINE vec load_v_n(const void *v, size_t index, uint32_t n, kind type) {
    const __mmask16 in = first_lanes(n);
    if (type == F32) return _mm512_maskz_loadu_ps(in, (const float *)v + index);
    if (type == F16)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(in, (const uint16_t *)v + index));
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(in, (const int8_t *)v + index)));
}

ALWAYS_INLINE void load_v(vec *out, const void *v, size_t index, uint32_t n, const int C,
                          const kind type) {
    (void)C;
    *out = load_v_n(v, index, n, type);
}

ALWAYS_INLINE void attend(const pith_attend *args, const kind type) {
    for (uint32_t row = 0; row < args->n;) {
        uint32_t left = args->n - row;
        uint32_t take = left >= 9 || left == 6 ? 6 : left > 4 ? 4 : left;
        switch (take) {
        case 1: attend_block(args, row, 1, type); break;
        case 2: attend_block(args, row, 2, type); break;
        case 3: attend_block(args, row, 3, type); break;
        case 4: attend_block(args, row, 4, type); break;
        default: attend_block(args, row, 6, type); break;
        }
        row += take;
    }
}

void pith_attend_f32_avx512(const pith_attend *args) {
    attend(args, F32);
}
void pith_attend_f16_avx512(const pith_attend *args) {
    attend(args, F16);
}
void pith_attend_i8_avx512(const pith_attend *args) {
    attend(args, I8);
}
