/* SPDX-License-Identifier: Apache-2.0
 * One token of one KV head into its page, plain C: the definition (layout: pith_kv_page in
 * kernel.h; picture: docs/formats.md). Invariant: only slot t of the page is written. int8: one
 * scale for the whole K vector and one for V, by the rule of quantize_ref.c with the vector as
 * its group. */
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { PANEL = 16 };

void pith_kv_put_f32_ref(const pith_kv_put *args) {
    float *k =
        (float *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    float *v = (float *)args->v + (size_t)args->t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim; d++) k[(size_t)d * PANEL] = args->k_row[d];
    memcpy(v, args->v_row, args->head_dim_v * sizeof *v);
}

void pith_kv_put_f16_ref(const pith_kv_put *args) {
    uint16_t *k =
        (uint16_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    uint16_t *v = (uint16_t *)args->v + (size_t)args->t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim; d++)
        k[(size_t)d * PANEL] = pith_f16_of_f32(args->k_row[d]);
    for (uint32_t d = 0; d < args->head_dim_v; d++) v[d] = pith_f16_of_f32(args->v_row[d]);
}

static float vector_scale(const float *x, uint32_t n, float *inverse) {
    uint32_t amax = 0;
    float d;
    for (uint32_t i = 0; i < n; i++)
        amax = pith_magnitude_bits(x[i]) > amax ? pith_magnitude_bits(x[i]) : amax;
    (void)pith_q8_scale(amax, &d, inverse);
    return d;
}

void pith_kv_put_i8_ref(const pith_kv_put *args) {
    int8_t *k = (int8_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL +
                args->t % PANEL * 4;
    int8_t *v = (int8_t *)args->v + (size_t)args->t * args->head_dim_v;
    float inverse;
    args->k_scale[args->t] = vector_scale(args->k_row, args->head_dim, &inverse);
    for (uint32_t d = 0; d < args->head_dim; d++)
        k[(size_t)(d / 4) * PANEL * 4 + d % 4] =
            inverse > 0.0f ? pith_q8_code(args->k_row[d], inverse) : 0;
    args->v_scale[args->t] = vector_scale(args->v_row, args->head_dim_v, &inverse);
    for (uint32_t d = 0; d < args->head_dim_v; d++)
        v[d] = inverse > 0.0f ? pith_q8_code(args->v_row[d], inverse) : 0;
}
