/* SPDX-License-Identifier: Apache-2.0
 * Products in the fast contract, plain C: the definition (pith_mul in kernel.h).
 *
 * 256 k of 16 rows are unpacked as for the exact contract (group_ref.h), then requantized: each row
 * gets codes in [-127, 127] under one scale. The bound of a row's values comes from its scales and
 * the type's largest code, not from its codes: no pass over them, and whole scales are used by
 * nearly every block anyway. Invariant: code * factor + start lies in [0, 65535], so that tiers
 * may compute it in 16 bits. Not here: unpackers (mul_integer_ref.c, mul_expanded_ref.c). */
#include "kernel/ref/group_ref.h"
#include "kernel/ref/scalar_math.h"

enum {
    ROWS = PITH_PANEL_ROWS,
    K = PITH_FAST_BLOCK,
    N_GROUP = K / 32,
    N_HALF = K / 16,
    N_SUM = K / PITH_FAST_GROUP,
    HALF_CODE = 128 * 256 + 128 /* 128 and a half, in 256ths */
};

typedef struct fast_block {
    int16_t code[K][ROWS];
    float scale[ROWS];
} fast_block;

/* value = scale * code + start, of 16 k of a row. */
typedef struct affine {
    float scale, start;
} affine;

static affine affine_of(const pith_group *w, const pith_group_format *f, int half, int r) {
    affine a = {w->d[0][r] * (float)w->scale[half][r], 0.0f};
    if (f->minimum_sign)
        a.start = -(w->dmin[r] * (float)w->minimum[f->sum == PITH_SUM_HALVES ? half : 0][r]);
    return a;
}

static uint32_t larger(uint32_t amax, float x) {
    uint32_t bits = pith_magnitude_bits(x);
    return bits > amax ? bits : amax;
}

/* Codes of row r. */
static void requantize_row(const pith_group *w, const pith_group_format *f, int r,
                           fast_block *out) {
    affine a[N_HALF];
    uint32_t amax = 0;
    float inverse;
    for (int i = 0; i < N_HALF; i++) {
        a[i] = affine_of(&w[i / 2], f, i % 2, r);
        amax =
            larger(larger(amax, a[i].start), pith_fma(a[i].scale, (float)f->code_max, a[i].start));
    }
    if (!pith_q8_scale(amax, &out->scale[r], &inverse)) {
        for (int k = 0; k < K; k++) out->code[k][r] = 0;
        return;
    }
    inverse *= 256.0f;
    for (int i = 0; i < N_HALF; i++) {
        int32_t factor = (int32_t)pith_round(a[i].scale * inverse),
                start = (int32_t)pith_round(a[i].start * inverse) + HALF_CODE;
        for (int k = 16 * i; k < 16 * i + 16; k++)
            out->code[k][r] = (int16_t)((w[i / 2].code[k % 32][r] * factor + start) / 256 - 128);
    }
}

static void add_block(const fast_block *w, const int8_t *x, const float *d, float acc[ROWS]) {
    for (int r = 0; r < ROWS; r++) {
        float u = 0.0f;
        for (int i = 0; i < N_SUM; i++) {
            int32_t dot = 0;
            for (int k = i * PITH_FAST_GROUP; k < (i + 1) * PITH_FAST_GROUP; k++)
                dot += w->code[k][r] * x[k];
            u = pith_fma((float)dot, d[i], u);
        }
        acc[r] = pith_fma(u, w->scale[r], acc[r]);
    }
}

static void mul_panel(const pith_mul *args, const pith_group_format *f, uint32_t panel, float *y) {
    const uint8_t *block = (const uint8_t *)args->w + panel * args->panel_bytes;
    pith_group w[N_GROUP];
    fast_block fast;
    memset(w, 0, sizeof w);
    for (uint32_t t = 0; t < args->n; t++) memset(y + t * args->y_stride, 0, ROWS * sizeof *y);
    for (uint32_t b = 0; b < args->k / K; b++, block += f->block_bytes) {
        for (uint32_t i = 0; i < N_GROUP; i++) f->unpack(block, i, &w[i]);
        for (int r = 0; r < ROWS; r++) requantize_row(w, f, r, &fast);
        for (size_t t = 0; t < args->n; t++)
            add_block(&fast, args->q8->q + t * args->q8->q_stride + (size_t)b * K,
                      args->q8->d + t * args->q8->d_stride + (size_t)b * N_SUM,
                      y + t * args->y_stride);
    }
}

void pith_mul_fast_groups_ref(const pith_mul *args, const pith_group_format *format) {
    for (uint32_t p = 0; p < args->n_panel; p++)
        mul_panel(args, format, p, args->y + ROWS * (size_t)p);
}
