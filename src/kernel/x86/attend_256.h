/* SPDX-License-Identifier: Apache-2.0
 * Scores and loads of attend_rows.h with 256-bit registers, for the tiers avx2 and avxvnni. The
 * file that includes this has included dot_avx2.h or dot_avxvnni.h.
 *
 * Rows go in blocks of up to 3. Scores: 8 tokens a register; float K has the contract's four chains
 * over d (3 rows x 4 chains), int8 K the integer dot product of the tier over 32 d with codes made
 * unsigned. Values: 3 rows x 4 vectors of d. */
#ifndef PITH_KERNEL_X86_ATTEND_256_H
#define PITH_KERNEL_X86_ATTEND_256_H

#include "kernel/x86/lanes_256.h"
#include "kernel/x86/vector_math_avx2.h"

enum { ATTEND_ROWS = 3, ATTEND_LOADS = 1 };

#include "kernel/attend_rows.h"

ALWAYS_INLINE vec load_k(const void *k, size_t index, kind type) {
    return type == F32 ? vec_load((const float *)k + index)
                       : vec_load_f16((const uint16_t *)k + index);
}

/* chain c += K[tokens][d] * q[d] */
ALWAYS_INLINE void score_step(const pith_attend *args, __m256 chain[ATTEND_ROWS][4], const float *q,
                              size_t k_index, const int c, const int R, const kind type) {
    __m256 k = load_k(args->page.k, k_index, type);
    UNROLL for (int r = 0; r < R; r++) {
        chain[r][c] =
            _mm256_fmadd_ps(k, _mm256_broadcast_ss(q + (size_t)r * args->q_stride), chain[r][c]);
    }
}

/* Tokens 8 e .. 8 e + 7 of float K. */
ALWAYS_INLINE void scores_float(const pith_attend *args, block *b, uint32_t row, uint32_t e,
                                const int R, const kind type) {
    const size_t base = (size_t)(e / 2) * args->head_dim * 16 + e % 2 * 8;
    const float *q = args->q + row * args->q_stride;
    __m256 chain[ATTEND_ROWS][4];
    uint32_t d = 0;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 4; c++) {
            chain[r][c] = _mm256_setzero_ps();
        }
    }
    for (; d + 4 <= args->head_dim; d += 4) {
        if (e % 2 == 0) ask_ahead(b->ahead_k, base + d * 16, 64, type);
        UNROLL for (int c = 0; c < 4; c++) {
            score_step(args, chain, q + d + c, base + (d + (uint32_t)c) * 16, c, R, type);
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (d + (uint32_t)c < args->head_dim)
            score_step(args, chain, q + d + c, base + (d + (uint32_t)c) * 16, c, R, type);
    }
    UNROLL for (int r = 0; r < R; r++) {
        __m256 *c = chain[r];
        _mm256_storeu_ps(b->p[r] + 8 * e,
                         _mm256_add_ps(_mm256_add_ps(c[0], c[1]), _mm256_add_ps(c[2], c[3])));
    }
}

/* 32 d of 16 tokens: plane `plane` of the codes K + 128 with R rows. */
ALWAYS_INLINE void dot_plane(lanes16 *sum, const int8_t *k, const int8_t *q, size_t q_stride,
                             const int plane, const int R) {
    const __m256i sign = _mm256_set1_epi8((char)0x80), nibble = _mm256_set1_epi8(15);
    lanes16 words[ATTEND_ROWS];
    UNROLL for (int r = 0; r < R; r++) {
        words[r] = lanes_set(0);
    }
    UNROLL for (int g = 0; g < 8; g++) {
        lanes16 code = lanes_load(k + 64 * g);
        code = (lanes16){_mm256_xor_si256(code.low, sign), _mm256_xor_si256(code.high, sign)};
        if (DOT_BYTE_PLANES == 2) code = lanes_and(plane ? lanes_shift(code, -4) : code, nibble);
        UNROLL for (int r = 0; r < R; r++) {
            dot_step(&words[r], code, broadcast4(q + (size_t)r * q_stride + 4 * g));
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        dot_end(&sum[r], words[r], plane ? 16 : 1);
    }
}

/* Tokens 16 i .. 16 i + 15 of int8 K: per 32 d an exact integer dot, then acc = fma(dot, d_q,
 * acc); times k_scale. */
ALWAYS_INLINE void scores_i8(const pith_attend *args, block *b, uint32_t row, uint32_t i,
                             const int R) {
    const pith_q8 *q8 = args->q8;
    const int8_t *k = (const int8_t *)args->page.k + (size_t)i * args->head_dim * 16;
    const int8_t *q = q8->q + (args->first_q8 + row) * q8->q_stride;
    const size_t at = (args->first_q8 + row) * q8->d_stride;
    floats16 acc[ATTEND_ROWS];
    UNROLL for (int r = 0; r < R; r++) {
        acc[r] = ps_all(0.0f);
    }
    for (uint32_t g = 0; g < args->head_dim / PITH_GROUP; g++, k += 512, q += PITH_GROUP) {
        lanes16 sum[ATTEND_ROWS];
        ask_ahead(b->ahead_k, 16 * (size_t)i * args->head_dim + 512 * (size_t)g, 512, I8);
        UNROLL for (int r = 0; r < R; r++) {
            sum[r] = lanes_set(-128 * q8->sum[at + (size_t)r * q8->d_stride + g]);
        }
        UNROLL for (int plane = 0; plane < DOT_BYTE_PLANES; plane++) {
            dot_plane(sum, k, q, q8->q_stride, plane, R);
        }
        UNROLL for (int r = 0; r < R; r++) {
            acc[r] =
                ps_fma(ps_of(sum[r]), ps_all(q8->d[at + (size_t)r * q8->d_stride + g]), acc[r]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        ps_store(b->p[r] + 16 * i, ps_mul(acc[r], ps_load(args->page.k_scale + 16 * i)));
    }
}

ALWAYS_INLINE void scores(const pith_attend *args, block *b, uint32_t row, uint32_t first,
                          uint32_t last, const int R, const kind type) {
    for (uint32_t i = first / 16; 16 * i < last; i++) {
        if (type == I8) {
            scores_i8(args, b, row, i, R);
        } else {
            scores_float(args, b, row, 2 * i, R, type);
            scores_float(args, b, row, 2 * i + 1, R, type);
        }
    }
}

/* n of 8 values. */
ALWAYS_INLINE vec load_v_n(const void *v, size_t index, uint32_t n, kind type) {
    uint16_t half[8] = {0};
    int8_t bytes[8] = {0};
    if (type == F32) return load_n((const float *)v + index, n);
    if (type == F16) {
        const uint16_t *at = (const uint16_t *)v + index;
        if (n < 8) at = memcpy(half, at, n * sizeof *half);
        return vec_load_f16(at);
    }
    const int8_t *at = (const int8_t *)v + index;
    if (n < 8) at = memcpy(bytes, at, n);
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}

ALWAYS_INLINE void load_v(vec *out, const void *v, size_t index, uint32_t n, const int C,
                          const kind type) {
    (void)C;
    *out = load_v_n(v, index, n, type);
}

ALWAYS_INLINE void attend(const pith_attend *args, const kind type) {
    uint32_t row = 0;
    for (; row + 3 <= args->n; row += 3) attend_block(args, row, 3, type);
    if (args->n - row == 2) attend_block(args, row, 2, type);
    if (args->n - row == 1) attend_block(args, row, 1, type);
}

#endif
