/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 products of F32, F16 and BF16 weights with float activations (contract: pith_mul in
 * kernel.h; panels [k][16]). Each token has the four chains of the contract in four registers; a
 * weight vector (16 rows of one k) is widened once and meets 6 tokens. The activation is a
 * broadcast memory operand. One to four tokens leave registers for nothing else: they are bound
 * by memory and prefetch their panel. Tail: k % 4 values continue the chains in order. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/x86.h"

typedef enum kind { F32, F16, BF16 } kind;

enum { TILE = 6 };

ALWAYS_INLINE size_t value_bytes(kind type) {
    return type == F32 ? 4 : 2;
}

ALWAYS_INLINE __m512 widen(const uint8_t *w, kind type) {
    if (type == F32) return _mm512_loadu_ps(w);
    if (type == F16) return load_f16((const uint16_t *)(const void *)w);
    __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)w);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, const float *x, float *y,
                        const int T, const kind type) {
    __m512 chain[TILE][4];
    const size_t row = PITH_PANEL_ROWS * value_bytes(type);
    uint32_t k = 0;
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int c = 0; c < 4; c++) {
            chain[t][c] = _mm512_setzero_ps();
        }
    }
    for (; k + 4 <= args->k; k += 4, w += 4 * row) {
        if (T <= 4) prefetch(w, (int)(4 * row), 1, args->prefetch);
        UNROLL for (int c = 0; c < 4; c++) {
            __m512 v = widen(w + (size_t)c * row, type);
            UNROLL for (int t = 0; t < T; t++) {
                chain[t][c] = _mm512_fmadd_ps(
                    v, _mm512_set1_ps(x[(size_t)t * args->x_stride + k + (uint32_t)c]),
                    chain[t][c]);
            }
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (k + (uint32_t)c >= args->k) continue;
        __m512 v = widen(w + (size_t)c * row, type);
        UNROLL for (int t = 0; t < T; t++) {
            chain[t][c] = _mm512_fmadd_ps(
                v, _mm512_set1_ps(x[(size_t)t * args->x_stride + k + (uint32_t)c]), chain[t][c]);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        __m512 low = _mm512_add_ps(chain[t][0], chain[t][1]),
               high = _mm512_add_ps(chain[t][2], chain[t][3]);
        _mm512_storeu_ps(y + (size_t)t * args->y_stride, _mm512_add_ps(low, high));
    }
}

ALWAYS_INLINE void mul(const pith_mul *args, const kind type) {
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *w = (const uint8_t *)args->w + p * args->panel_bytes;
        uint32_t t = 0;
        for (; t < args->n;) {
            const float *x = args->x + t * args->x_stride;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            switch (args->n - t) {
            case 1:
                tile(args, w, x, y, 1, type);
                t += 1;
                break;
            case 2:
                tile(args, w, x, y, 2, type);
                t += 2;
                break;
            case 3:
                tile(args, w, x, y, 3, type);
                t += 3;
                break;
            case 4:
            case 5:
                tile(args, w, x, y, 4, type);
                t += 4;
                break;
            default:
                tile(args, w, x, y, 6, type);
                t += 6;
                break;
            }
        }
    }
}

void pith_mul_f32_avx512(const pith_mul *args) {
    mul(args, F32);
}
void pith_mul_f16_avx512(const pith_mul *args) {
    mul(args, F16);
}
void pith_mul_bf16_avx512(const pith_mul *args) {
    mul(args, BF16);
}
