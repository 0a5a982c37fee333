/* SPDX-License-Identifier: Apache-2.0
 * AVX2 products of F32, F16 and BF16 weights with float activations (contract: pith_mul in
 * kernel.h; panels [k][16]).
 *
 * The four chains of the contract need 4 registers for 8 rows of one token. With one token all 16
 * rows go together; with more, 8 rows and 3 tokens (12 chains, a weight, an activation), so that
 * each weight is widened once for 3 tokens. Tail: k % 4 values continue the chains in order. */
#include "kernel/x86/lanes_256.h"
#include "kernel/x86/x86.h"

typedef enum kind { F32, F16, BF16 } kind;

enum { TILE = 3, AHEAD = 4096 };

ALWAYS_INLINE size_t value_bytes(kind type) {
    return type == F32 ? 4 : 2;
}

/* 8 weights. */
ALWAYS_INLINE __m256 widen(const uint8_t *w, kind type) {
    if (type == F32) return _mm256_loadu_ps((const float *)(const void *)w);
    __m128i half = _mm_loadu_si128((const __m128i *)(const void *)w);
    if (type == F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* T tokens with H halves (8 rows each) of a panel. */
ALWAYS_INLINE void step(__m256 chain[TILE][2][4], const uint8_t *w, const float *x, size_t x_stride,
                        const int c, const int T, const int H, const kind type) {
    UNROLL for (int h = 0; h < H; h++) {
        __m256 v = widen(w + (size_t)h * 8 * value_bytes(type), type);
        UNROLL for (int t = 0; t < T; t++) {
            chain[t][h][c] =
                _mm256_fmadd_ps(v, _mm256_broadcast_ss(x + (size_t)t * x_stride), chain[t][h][c]);
        }
    }
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, const float *x, float *y,
                        const int T, const int H, const kind type) {
    __m256 chain[TILE][2][4];
    const size_t row = PITH_PANEL_ROWS * value_bytes(type);
    uint32_t k = 0;
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int i = 0; i < 4 * H; i++) {
            chain[t][i / 4][i % 4] = _mm256_setzero_ps();
        }
    }
    for (; k + 4 <= args->k; k += 4, w += 4 * row) {
        if (T == 1) {
            UNROLL for (size_t i = 0; i < 4 * row; i += 64) {
                _mm_prefetch((const char *)w + AHEAD + i, _MM_HINT_T0);
            }
        }
        UNROLL for (int c = 0; c < 4; c++) {
            step(chain, w + (size_t)c * row, x + k + c, args->x_stride, c, T, H, type);
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (k + (uint32_t)c < args->k)
            step(chain, w + (size_t)c * row, x + k + c, args->x_stride, c, T, H, type);
    }
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int h = 0; h < H; h++) {
            __m256 *c = chain[t][h],
                   sum = _mm256_add_ps(_mm256_add_ps(c[0], c[1]), _mm256_add_ps(c[2], c[3]));
            _mm256_storeu_ps(y + (size_t)t * args->y_stride + 8 * h, sum);
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
                tile(args, w, x, y, 3, 1, type);
                tile(args, w_high, x, y + 8, 3, 1, type);
                t += 3;
            } else if (args->n - t == 2) {
                tile(args, w, x, y, 2, 1, type);
                tile(args, w_high, x, y + 8, 2, 1, type);
                t += 2;
            } else {
                tile(args, w, x, y, 1, 2, type);
                t += 1;
            }
        }
    }
}

void pith_mul_f32_avx2(const pith_mul *args) {
    mul(args, F32);
}
void pith_mul_f16_avx2(const pith_mul *args) {
    mul(args, F16);
}
void pith_mul_bf16_avx2(const pith_mul *args) {
    mul(args, BF16);
}
