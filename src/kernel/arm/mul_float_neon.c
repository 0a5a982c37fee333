/* SPDX-License-Identifier: Apache-2.0
 * NEON products of F32, F16 and BF16 weights with float activations (contract: pith_mul in
 * kernel.h; panels [k][16]).
 *
 * The four chains of the contract need 4 registers for 4 rows of one token; chain c takes lane c of
 * a register with 4 activations. With one token all 16 rows go together (16 chains); with more, 8
 * rows and 3 tokens (24 chains, 3 activations, 2 weights), so that each weight is widened once for
 * 3 tokens. Tail: k % 4 values continue the chains in order. */
#include "kernel/arm/arm.h"
#include "kernel/inline.h"

#include <arm_neon.h>

typedef enum kind { F32, F16, BF16 } kind;

enum { TILE = 3, QUADS = 4, AHEAD = 1024 };

ALWAYS_INLINE size_t value_bytes(kind type) {
    return type == F32 ? 4 : 2;
}

/* 4 weights. */
ALWAYS_INLINE float32x4_t widen(const uint8_t *w, kind type) {
    if (type == F32) return vld1q_f32((const float *)(const void *)w);
    uint16x4_t half = vld1_u16((const uint16_t *)(const void *)w);
    if (type == F16) return vcvt_f32_f16(vreinterpret_f16_u16(half));
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}

/* acc + w * lane `lane` (constant) of x */
ALWAYS_INLINE float32x4_t fma_lane(float32x4_t acc, float32x4_t w, float32x4_t x, const int lane) {
    switch (lane) {
    case 0: return vfmaq_laneq_f32(acc, w, x, 0);
    case 1: return vfmaq_laneq_f32(acc, w, x, 1);
    case 2: return vfmaq_laneq_f32(acc, w, x, 2);
    default: return vfmaq_laneq_f32(acc, w, x, 3);
    }
}

/* One k: chain c of T tokens with Q times 4 rows of a panel. */
ALWAYS_INLINE void step(float32x4_t chain[TILE][QUADS][4], const uint8_t *w, const float32x4_t *x,
                        const int c, const int T, const int Q, const kind type) {
    UNROLL for (int q = 0; q < Q; q++) {
        float32x4_t v = widen(w + (size_t)q * 4 * value_bytes(type), type);
        UNROLL for (int t = 0; t < T; t++) {
            chain[t][q][c] = fma_lane(chain[t][q][c], v, x[t], c);
        }
    }
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, const float *x, float *y,
                        const int T, const int Q, const kind type) {
    float32x4_t chain[TILE][QUADS][4], at[TILE];
    const size_t row = PITH_PANEL_ROWS * value_bytes(type);
    uint32_t k = 0;
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int i = 0; i < 4 * Q; i++) {
            chain[t][i / 4][i % 4] = vdupq_n_f32(0.0f);
        }
    }
    for (; k + 4 <= args->k; k += 4, w += 4 * row) {
        if (T == 1) {
            UNROLL for (size_t i = 0; i < 4 * row; i += 64) {
                __builtin_prefetch(w + AHEAD + i);
            }
        }
        UNROLL for (int t = 0; t < T; t++) {
            at[t] = vld1q_f32(x + (size_t)t * args->x_stride + k);
        }
        UNROLL for (int c = 0; c < 4; c++) {
            step(chain, w + (size_t)c * row, at, c, T, Q, type);
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (k + (uint32_t)c >= args->k) break;
        UNROLL for (int t = 0; t < T; t++) {
            at[t] = vdupq_n_f32(x[(size_t)t * args->x_stride + k + (uint32_t)c]);
        }
        step(chain, w + (size_t)c * row, at, c, T, Q, type);
    }
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int q = 0; q < Q; q++) {
            float32x4_t *c = chain[t][q];
            vst1q_f32(y + (size_t)t * args->y_stride + 4 * q,
                      vaddq_f32(vaddq_f32(c[0], c[1]), vaddq_f32(c[2], c[3])));
        }
    }
}

ALWAYS_INLINE void mul(const pith_mul *args, const kind type) {
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *w = (const uint8_t *)args->w + p * args->panel_bytes;
        const uint8_t *w_high = w + 8 * value_bytes(type);
        for (uint32_t t = 0; t < args->n;) {
            const float *x = args->x + t * args->x_stride;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            if (args->n - t >= 3) {
                tile(args, w, x, y, 3, 2, type);
                tile(args, w_high, x, y + 8, 3, 2, type);
                t += 3;
            } else if (args->n - t == 2) {
                tile(args, w, x, y, 2, 2, type);
                tile(args, w_high, x, y + 8, 2, 2, type);
                t += 2;
            } else {
                tile(args, w, x, y, 1, 4, type);
                t += 1;
            }
        }
    }
}

void pith_mul_f32_neon(const pith_mul *args) {
    mul(args, F32);
}
void pith_mul_f16_neon(const pith_mul *args) {
    mul(args, F16);
}
void pith_mul_bf16_neon(const pith_mul *args) {
    mul(args, BF16);
}
