/* SPDX-License-Identifier: Apache-2.0
 * Products of F32, F16 and BF16 weights with float activations, plain C: the definition (contract:
 * pith_mul in kernel.h). Panels are [k][16]. Four chains a row: chain c takes k % 4 == c in
 * increasing k; y = (c0 + c1) + (c2 + c3).
 * Invariant: weights become f32 exactly, so the three types share one order. Not here: quantized
 * weights (mul_integer_ref.c). */
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { ROWS = PITH_PANEL_ROWS, TILE = 8, SPAN = 32 };

typedef void (*widen_fn)(float *out, const void *panel, size_t first, size_t n);

static void widen_f32(float *out, const void *panel, size_t first, size_t n) {
    memcpy(out, (const float *)panel + first, n * sizeof *out);
}

static void widen_f16(float *out, const void *panel, size_t first, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = pith_f32_of_f16(((const uint16_t *)panel)[first + i]);
}

static void widen_bf16(float *out, const void *panel, size_t first, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = pith_f32_of_bf16(((const uint16_t *)panel)[first + i]);
}

/* Tokens t0 .. t0 + n - 1 (n <= TILE) with one panel, SPAN k at a time. */
static void mul_tile(const pith_mul *args, widen_fn widen, uint32_t p, uint32_t t0, uint32_t n) {
    const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
    float chain[TILE][4][ROWS] = {{{0}}}, w[SPAN * ROWS];
    for (uint32_t k0 = 0; k0 < args->k; k0 += SPAN) {
        uint32_t n_k = args->k - k0 < SPAN ? args->k - k0 : SPAN;
        widen(w, panel, (size_t)k0 * ROWS, (size_t)n_k * ROWS);
        for (uint32_t t = 0; t < n; t++) {
            const float *x = args->x + (t0 + t) * args->x_stride + k0;
            for (uint32_t k = 0; k < n_k; k++)
                for (int r = 0; r < ROWS; r++)
                    chain[t][k % 4][r] =
                        pith_fma(w[k * ROWS + (uint32_t)r], x[k], chain[t][k % 4][r]);
        }
    }
    for (uint32_t t = 0; t < n; t++) {
        float *y = args->y + (t0 + t) * args->y_stride + ROWS * (size_t)p;
        for (int r = 0; r < ROWS; r++)
            y[r] = (chain[t][0][r] + chain[t][1][r]) + (chain[t][2][r] + chain[t][3][r]);
    }
}

static void mul(const pith_mul *args, widen_fn widen) {
    for (uint32_t p = 0; p < args->n_panel; p++)
        for (uint32_t t = 0; t < args->n; t += TILE)
            mul_tile(args, widen, p, t, args->n - t < TILE ? args->n - t : TILE);
}

void pith_mul_f32_ref(const pith_mul *args) {
    mul(args, widen_f32);
}
void pith_mul_f16_ref(const pith_mul *args) {
    mul(args, widen_f16);
}
void pith_mul_bf16_ref(const pith_mul *args) {
    mul(args, widen_bf16);
}
