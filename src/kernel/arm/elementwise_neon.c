/* SPDX-License-Identifier: Apache-2.0
 * NEON: activations, gates, sums, scaling, the kernels of elementwise.h with vectors of this tier;
 * and rotation, whose pairs each instruction set takes apart in its own way. Same bits as
 * ref/elementwise_ref.c. Read next: elementwise.h. */
#include "kernel/arm/vector_math_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/elementwise.h"

void pith_silu_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_silu);
}
void pith_gelu_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_gelu);
}
void pith_gelu_erf_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_gelu_erf);
}
void pith_relu2_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_relu2);
}
void pith_silu_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_silu);
}
void pith_gelu_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_gelu);
}
void pith_gelu_erf_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_gelu_erf);
}
void pith_relu2_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_relu2);
}
void pith_exp_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_exp);
}
void pith_add_neon(float *y, const float *a, const float *b, uint32_t n) {
    add(y, a, b, n);
}
void pith_mul_elements_neon(float *y, const float *a, const float *b, uint32_t n) {
    mul_elements(y, a, b, n);
}
void pith_scale_neon(float *y, const float *x, float s, uint32_t n) {
    scale(y, x, s, n);
}
void pith_softcap_neon(float *y, const float *x, float s, uint32_t n) {
    softcap(y, x, s, n);
}

/* Rotates 4 pairs: a' = fma(a, c, -(b * s)), b' = fma(a, s, b * c). */
ALWAYS_INLINE void rotate(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s) {
    float32x4_t x = *a, y = *b;
    *a = vec_fma(x, c, vnegq_f32(vmulq_f32(y, s)));
    *b = vec_fma(x, s, vmulq_f32(y, c));
}

/* Neighbouring pairs: loads and stores take them apart and together. A last part of 1 to 3 pairs
 * goes through a buffer. */
void pith_rope_norm_neon(float *x, const float *table, uint32_t n_rot) {
    uint32_t n = n_rot / 2 * 2;
    for (uint32_t i = 0; i < n; i += 8) {
        float in[8] = {0}, factors[8] = {0}, *at = x + i;
        const float *from = table + i;
        if (n - i < 8) {
            at = memcpy(in, x + i, (n - i) * sizeof *x);
            from = memcpy(factors, table + i, (n - i) * sizeof *x);
        }
        float32x4x2_t v = vld2q_f32(at), cs = vld2q_f32(from);
        rotate(&v.val[0], &v.val[1], cs.val[0], cs.val[1]);
        vst2q_f32(at, v);
        if (n - i < 8) memcpy(x + i, in, (n - i) * sizeof *x);
    }
}

/* Halves: a from the first, b from the second; 4 pairs of the table are taken apart into cosines
 * and sines. */
void pith_rope_neox_neon(float *x, const float *table, uint32_t n_rot) {
    uint32_t half = n_rot / 2;
    for (uint32_t i = 0; i < half; i += 4) {
        uint32_t left = half - i;
        float32x4_t t0 = load_n(table + 2 * i, 2 * left),
                    t1 = left > 2 ? load_n(table + 2 * i + 4, 2 * left - 4) : t0;
        float32x4_t a = load_n(x + i, left), b = load_n(x + half + i, left);
        rotate(&a, &b, vuzp1q_f32(t0, t1), vuzp2q_f32(t0, t1));
        store_n(x + i, left, a);
        store_n(x + half + i, left, b);
    }
}
