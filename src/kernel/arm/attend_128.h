/* SPDX-License-Identifier: Apache-2.0
 * Scores and loads of attend_rows.h with 128-bit registers, for the tiers neon and dotprod. The
 * file that includes this has included dot_neon.h or dot_dotprod.h.
 *
 * Rows go in blocks of up to 4. Scores: 4 tokens a register; float K has the contract's four chains
 * over d (4 rows x 4 chains), chain c taking lane c of 4 values of q; int8 K is a code group,
 * multiplied as in mul_integer_128.h. Values: 4 rows x 4 vectors of d. */
#ifndef PITH_KERNEL_ARM_ATTEND_128_H
#define PITH_KERNEL_ARM_ATTEND_128_H

#include "kernel/arm/vector_math_neon.h"

enum { ATTEND_ROWS = 4, ATTEND_LOADS = 4 };

#include "kernel/attend_rows.h"

ALWAYS_INLINE vec load_k(const void *k, size_t index, kind type) {
    return type == F32 ? vld1q_f32((const float *)k + index)
                       : vec_load_f16((const uint16_t *)k + index);
}

/* chain c += K[tokens][d] * lane c of q[r], for C times 4 tokens. */
ALWAYS_INLINE void score_step(const pith_attend *args, float32x4_t chain[ATTEND_ROWS][4][4],
                              const float32x4_t *q, size_t k_index, const int c, const int R,
                              const int C, const kind type) {
    UNROLL for (int i = 0; i < C; i++) {
        float32x4_t k = load_k(args->page.k, k_index + 4 * (size_t)i, type);
        UNROLL for (int r = 0; r < R; r++) {
            chain[r][i][c] = fma_token(k, q[r], c, chain[r][i][c]);
        }
    }
}

/* Tokens 4 e .. 4 e + 4 C - 1 of float K. */
ALWAYS_INLINE void scores_float(const pith_attend *args, block *b, uint32_t row, uint32_t e,
                                const int R, const int C, const kind type) {
    const size_t base = (size_t)(e / 4) * args->head_dim * 16 + e % 4 * 4;
    const float *q = args->q + row * args->q_stride;
    float32x4_t chain[ATTEND_ROWS][4][4], v[ATTEND_ROWS];
    uint32_t d = 0;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 4 * C; c++) {
            chain[r][c / 4][c % 4] = vec_set(0.0f);
        }
    }
    for (; d < args->head_dim; d += 4) {
        uint32_t left = args->head_dim - d;
        if (e % 4 == 0) ask_ahead(b->ahead_k, base + d * 16, 64, type);
        UNROLL for (int r = 0; r < R; r++) {
            v[r] = load_n(q + (size_t)r * args->q_stride + d, left);
        }
        UNROLL for (int c = 0; c < 4; c++) {
            if ((uint32_t)c >= left) break;
            score_step(args, chain, v, base + (d + (uint32_t)c) * 16, c, R, C, type);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int i = 0; i < C; i++) {
            float32x4_t *c = chain[r][i];
            vst1q_f32(b->p[r] + 4 * e + 4 * i,
                      vaddq_f32(vaddq_f32(c[0], c[1]), vaddq_f32(c[2], c[3])));
        }
    }
}

/* Tokens 16 i + 8 h .. + 7 of int8 K: per 32 d an exact integer dot, then acc = fma(dot, d_q,
 * acc); times k_scale. */
ALWAYS_INLINE void scores_i8(const pith_attend *args, block *b, uint32_t row, uint32_t i,
                             const int h, const int R) {
    const pith_q8 *q8 = args->q8;
    const size_t at = (args->first_q8 + row) * q8->d_stride;
    chunk k = {NULL, (const int8_t *)args->page.k + (size_t)i * args->head_dim * 16, dot_start()};
    float32x4_t acc[ATTEND_ROWS][2];
    tokens x;
    tokens_read(&x, q8, args->first_q8 + row, (uint32_t)R, 0, 8, R);
    UNROLL for (int r = 0; r < R; r++) {
        acc[r][0] = acc[r][1] = vec_set(0.0f);
    }
    for (uint32_t g = 0; g < args->head_dim / PITH_GROUP; g++) {
        int32x4_t sum[4][4];
        if (h == 0)
            ask_ahead(b->ahead_k, 16 * (size_t)i * args->head_dim + 512 * (size_t)g, 512, I8);
        dot_part(sum, &k, &x, NULL, (int)g, 0, 0, 8, 2 * h, R, 2, true, PITH_TYPE_Q8_0);
        UNROLL for (int r = 0; r < R; r++) {
            float32x4_t d = vec_set(q8->d[at + (size_t)r * q8->d_stride + g]);
            UNROLL for (int c = 0; c < 2; c++) {
                float32x4_t dot =
                    vsubq_f32(vreinterpretq_f32_s32(sum[r][c]), vec_set(PITH_ROUND_MAGIC));
                acc[r][c] = vec_fma(dot, d, acc[r][c]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 2; c++) {
            const uint32_t t = 16 * i + 8 * (uint32_t)h + 4 * (uint32_t)c;
            vst1q_f32(b->p[r] + t, vmulq_f32(acc[r][c], vld1q_f32(args->page.k_scale + t)));
        }
    }
}

ALWAYS_INLINE void scores(const pith_attend *args, block *b, uint32_t row, uint32_t first,
                          uint32_t last, const int R, const kind type) {
    const int C = R == 1 ? 4 : R == 2 ? 2 : 1;
    for (uint32_t i = first / 16; 16 * i < last; i++) {
        if (type == I8) {
            UNROLL for (int h = 0; h < 2; h++) {
                scores_i8(args, b, row, i, h, R);
            }
        } else {
            for (uint32_t e = 4 * i; e < 4 * i + 4; e += (uint32_t)C)
                scores_float(args, b, row, e, R, C, type);
        }
    }
}

ALWAYS_INLINE void load_v(vec *out, const void *v, size_t index, uint32_t n, const int C,
                          const kind type) {
    uint16_t half[4] = {0};
    int8_t bytes[8] = {0};
    if (type == F32) {
        UNROLL for (int c = 0; c < C; c++) {
            out[c] = load_n((const float *)v + index + 4 * c, n);
        }
    } else if (type == F16) {
        const uint16_t *at = (const uint16_t *)v + index;
        if (C == 1 && n < 4) at = memcpy(half, at, n * sizeof *half);
        UNROLL for (int c = 0; c < C; c++) {
            out[c] = vec_load_f16(at + 4 * c);
        }
    } else if (C < 4) {
        const int8_t *at = (const int8_t *)v + index;
        if (C == 1) at = memcpy(bytes, at, n < 4 ? n : 4);
        int16x8_t words = vmovl_s8(vld1_s8(at));
        out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
        if (C == 2) out[1] = vcvtq_f32_s32(vmovl_high_s16(words));
    } else {
        int8x16_t codes = vld1q_s8((const int8_t *)v + index);
        int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
        out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
        out[1] = vcvtq_f32_s32(vmovl_high_s16(low));
        out[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
        out[3] = vcvtq_f32_s32(vmovl_high_s16(high));
    }
}

ALWAYS_INLINE void attend(const pith_attend *args, const kind type) {
    uint32_t row = 0;
    for (; row + 4 <= args->n; row += 4) attend_block(args, row, 4, type);
    if (args->n - row == 3) attend_block(args, row, 3, type);
    if (args->n - row == 2) attend_block(args, row, 2, type);
    if (args->n - row == 1) attend_block(args, row, 1, type);
}

#endif
