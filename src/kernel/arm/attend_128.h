/* SPDX-License-Identifier: Apache-2.0
 * Attention of query rows over one KV page with 128-bit registers, for the tiers neon and dotprod
 * (contract: pith_attend in kernel.h; bits: attend_ref.c). The file that includes this has included
 * dot_neon.h or dot_dotprod.h.
 *
 * Rows go in blocks of up to 4, which share every load of K and V. Scores: 4 tokens a register;
 * float K has the contract's four chains over d (4 rows x 4 chains), chain c taking lane c of 4
 * values of q; int8 K is a code group, multiplied as in mul_integer_128.h. Values: 4 rows x 4
 * vectors of d stay in registers while the tokens pass in order. What all rows of a block see is
 * done together, the edges row by row. Slots outside a row's range are computed but never used. */
#ifndef PITH_KERNEL_ARM_ATTEND_128_H
#define PITH_KERNEL_ARM_ATTEND_128_H

#include "kernel/arm/vector_math_neon.h"

typedef enum kind { F32, F16, I8 } kind;

enum { TOKENS = PITH_PAGE_TOKENS, ROWS = 4 };

/* Scores, then weights, of a block of rows. */
typedef struct block {
    float p[ROWS][TOKENS];
    uint32_t begin[ROWS], end[ROWS];
} block;

ALWAYS_INLINE float32x4_t load_k(const void *k, size_t index, kind type) {
    return type == F32 ? vld1q_f32((const float *)k + index)
                       : ps_load_f16((const uint16_t *)k + index);
}

/* chain c += K[tokens][d] * lane c of q[r], for C times 4 tokens. */
ALWAYS_INLINE void score_step(const pith_attend *args, float32x4_t chain[ROWS][4][4],
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
    float32x4_t chain[ROWS][4][4], v[ROWS];
    uint32_t d = 0;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 4 * C; c++) {
            chain[r][c / 4][c % 4] = ps_set(0.0f);
        }
    }
    for (; d < args->head_dim; d += 4) {
        uint32_t left = args->head_dim - d;
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
    float32x4_t acc[ROWS][2];
    tokens x;
    tokens_read(&x, q8, args->first_q8 + row, (uint32_t)R, 0, 8, R);
    UNROLL for (int r = 0; r < R; r++) {
        acc[r][0] = acc[r][1] = ps_set(0.0f);
    }
    for (uint32_t g = 0; g < args->head_dim / PITH_GROUP; g++) {
        int32x4_t sum[4][4];
        dot_part(sum, &k, &x, NULL, (int)g, 0, 0, 8, 2 * h, R, 2, true, PITH_TYPE_Q8_0);
        UNROLL for (int r = 0; r < R; r++) {
            float32x4_t d = ps_set(q8->d[at + (size_t)r * q8->d_stride + g]);
            UNROLL for (int c = 0; c < 2; c++) {
                float32x4_t dot =
                    vsubq_f32(vreinterpretq_f32_s32(sum[r][c]), ps_set(PITH_ROUND_MAGIC));
                acc[r][c] = ps_fma(dot, d, acc[r][c]);
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

/* Lanes of tokens 4 e .. 4 e + 3 that [begin, end) covers. */
ALWAYS_INLINE uint32x4_t visible(uint32_t begin, uint32_t end, uint32_t e) {
    static const uint32_t lane[4] = {0, 1, 2, 3};
    const uint32x4_t t = vaddq_u32(vdupq_n_u32(4 * e), vld1q_u32(lane));
    return vandq_u32(vcgeq_u32(t, vdupq_n_u32(begin)), vcltq_u32(t, vdupq_n_u32(end)));
}

/* Scores of row r of the block -> weights exp(s - m); m and l of row `row`. int8: weights times
 * v_scale. */
ALWAYS_INLINE void soften(const pith_attend *args, block *b, uint32_t row, uint32_t r,
                          const kind type) {
    float32x4_t top = ps_set(-INFINITY), sums[4];
    float lanes[4], m = -INFINITY;
    for (uint32_t e = 0; e < TOKENS / 4; e++) {
        float32x4_t s = vmulq_f32(vld1q_f32(b->p[r] + 4 * e), ps_set(args->scale));
        if (args->softcap > 0.0f)
            s = vmulq_f32(ps_set(args->softcap), ps_tanh(vdivq_f32(s, ps_set(args->softcap))));
        top = ps_choose(visible(b->begin[r], b->end[r], e), ps_larger(s, top), top);
        vst1q_f32(b->p[r] + 4 * e, s);
    }
    vst1q_f32(lanes, top);
    for (int i = 0; i < 4; i++) m = lanes[i] > m ? lanes[i] : m;
    m = b->begin[r] < b->end[r] && m == -INFINITY ? NAN : m + 0.0f;
    UNROLL for (int i = 0; i < 4; i++) {
        sums[i] = ps_set(0.0f);
    }
    for (uint32_t i = 0; i < TOKENS / 16; i++) UNROLL for (uint32_t q = 0; q < 4; q++) {
            const uint32_t e = 4 * i + q;
            uint32x4_t in = visible(b->begin[r], b->end[r], e);
            float32x4_t p = ps_and(in, ps_exp(vsubq_f32(vld1q_f32(b->p[r] + 4 * e), ps_set(m))));
            sums[q] = vaddq_f32(sums[q], p);
            if (type == I8) p = ps_and(in, vmulq_f32(p, vld1q_f32(args->page.v_scale + 4 * e)));
            vst1q_f32(b->p[r] + 4 * e, p);
        }
    args->m[row] = m;
    args->l[row] = ps_fold(sums);
}

/* 4 C values of V from `index`; with C = 1 only n of them exist. */
ALWAYS_INLINE void load_v(float32x4_t *out, const void *v, size_t index, uint32_t n, const int C,
                          const kind type) {
    uint16_t half[4] = {0};
    int8_t bytes[8] = {0};
    if (type == F32) {
        UNROLL for (int c = 0; c < C; c++) {
            out[c] = load_n((const float *)v + index + 4 * c, C > 1 ? 4 : n);
        }
    } else if (type == F16) {
        const uint16_t *at = (const uint16_t *)v + index;
        if (C == 1 && n < 4) at = memcpy(half, at, n * sizeof *half);
        UNROLL for (int c = 0; c < C; c++) {
            out[c] = ps_load_f16(at + 4 * c);
        }
    } else if (C == 1) {
        memcpy(bytes, (const int8_t *)v + index, n < 4 ? n : 4);
        out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(bytes)))));
    } else {
        int8x16_t codes = vld1q_s8((const int8_t *)v + index);
        int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
        out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
        out[1] = vcvtq_f32_s32(vmovl_high_s16(low));
        out[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
        out[3] = vcvtq_f32_s32(vmovl_high_s16(high));
    }
}

/* o[r][d .. d + 4 C) over tokens [from, to) for R rows of a block from row r0. C is 4, or 1. */
ALWAYS_INLINE void values_at(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                             uint32_t d, uint32_t from, uint32_t to, const int R, const int C,
                             const kind type) {
    float32x4_t o[ROWS][4], v[4];
    float *out = args->o + (row + r0) * args->o_stride + d;
    const uint32_t left = C > 1 ? 4 : args->head_dim_v - d;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            o[r][c] = load_n(out + (size_t)r * args->o_stride + 4 * c, left);
        }
    }
    for (uint32_t t = from; t < to; t++) {
        load_v(v, args->page.v, (size_t)t * args->head_dim_v + d, left, C, type);
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int c = 0; c < C; c++) {
                o[r][c] = vfmaq_n_f32(o[r][c], v[c], b->p[r0 + (uint32_t)r][t]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            store_n(out + (size_t)r * args->o_stride + 4 * c, left, o[r][c]);
        }
    }
}

ALWAYS_INLINE void values(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                          uint32_t from, uint32_t to, const int R, const kind type) {
    uint32_t d = 0, width = args->head_dim_v;
    if (from >= to) return;
    for (; d + 16 <= width; d += 16) values_at(args, b, row, r0, d, from, to, R, 4, type);
    for (; d < width; d += 4) values_at(args, b, row, r0, d, from, to, R, 1, type);
}

ALWAYS_INLINE void scores(const pith_attend *args, block *b, uint32_t row, uint32_t first,
                          uint32_t last, const int R, const kind type) {
    const int C = R == 1 ? 4 : R == 2 ? 2 : 1;
    memset(b->p, 0, sizeof b->p);
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

ALWAYS_INLINE void attend_block(const pith_attend *args, uint32_t row, const int R,
                                const kind type) {
    block b;
    uint32_t first = TOKENS, last = 0, common_begin = 0, common_end = TOKENS;
    for (uint32_t r = 0; r < (uint32_t)R; r++) {
        bool some = args->begin[row + r] < args->end[row + r];
        b.begin[r] = some ? (uint32_t)args->begin[row + r] : 0;
        b.end[r] = some ? (uint32_t)args->end[row + r] : 0;
        if (some && b.begin[r] < first) first = b.begin[r];
        if (b.end[r] > last) last = b.end[r];
        if (b.begin[r] > common_begin) common_begin = b.begin[r];
        if (b.end[r] < common_end) common_end = b.end[r];
        memset(args->o + (row + r) * args->o_stride, 0, args->head_dim_v * sizeof(float));
    }
    scores(args, &b, row, first, last, R, type);
    for (uint32_t r = 0; r < (uint32_t)R; r++) soften(args, &b, row + r, r, type);
    bool shared = common_begin < common_end;
    for (uint32_t r = 0; r < (uint32_t)R; r++)
        values(args, &b, row, r, b.begin[r], shared ? common_begin : b.end[r], 1, type);
    if (!shared) return;
    values(args, &b, row, 0, common_begin, common_end, R, type);
    for (uint32_t r = 0; r < (uint32_t)R; r++)
        values(args, &b, row, r, common_end, b.end[r], 1, type);
}

ALWAYS_INLINE void attend(const pith_attend *args, const kind type) {
    uint32_t row = 0;
    for (; row + 4 <= args->n; row += 4) attend_block(args, row, 4, type);
    if (args->n - row == 3) attend_block(args, row, 3, type);
    if (args->n - row == 2) attend_block(args, row, 2, type);
    if (args->n - row == 1) attend_block(args, row, 1, type);
}

#endif
