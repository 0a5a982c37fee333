/* SPDX-License-Identifier: Apache-2.0
 * Activations, gates, sums, scaling and rotation, plain C: the definition (contracts in
 * kernel.h, formulas in scalar_math.h). Invariant: element i of a result depends on element i of
 * the inputs only (rotation: on its pair), so results may overwrite inputs. */
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

void pith_silu_mul_ref(float *y, const float *gate, const float *up, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_silu(gate[i]) * up[i];
}

void pith_gelu_mul_ref(float *y, const float *gate, const float *up, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_gelu(gate[i]) * up[i];
}

void pith_gelu_erf_mul_ref(float *y, const float *gate, const float *up, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_gelu_erf(gate[i]) * up[i];
}

void pith_relu2_mul_ref(float *y, const float *gate, const float *up, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_relu2(gate[i]) * up[i];
}

void pith_silu_ref(float *y, const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_silu(x[i]);
}

void pith_gelu_ref(float *y, const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_gelu(x[i]);
}

void pith_gelu_erf_ref(float *y, const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_gelu_erf(x[i]);
}

void pith_relu2_ref(float *y, const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_relu2(x[i]);
}

void pith_exp_ref(float *y, const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = pith_exp(x[i]);
}

void pith_add_ref(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

void pith_mul_elements_ref(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

void pith_scale_ref(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = x[i] * s;
}

void pith_softcap_ref(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = s * pith_tanh(x[i] / s);
}

/* Rotates the pair (*a, *b). */
static void rotate(float *a, float *b, float cosine, float sine) {
    float x = *a, y = *b;
    *a = pith_fma(x, cosine, -(y * sine));
    *b = pith_fma(x, sine, y * cosine);
}

void pith_rope_norm_ref(float *x, const float *table, uint32_t n_rot) {
    for (uint32_t i = 0; i < n_rot / 2; i++)
        rotate(&x[2 * i], &x[2 * i + 1], table[2 * i], table[2 * i + 1]);
}

void pith_rope_neox_ref(float *x, const float *table, uint32_t n_rot) {
    uint32_t half = n_rot / 2;
    for (uint32_t i = 0; i < half; i++) rotate(&x[i], &x[i + half], table[2 * i], table[2 * i + 1]);
}
