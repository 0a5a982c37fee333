/* SPDX-License-Identifier: Apache-2.0
 * NEON activations, gates, sums, scaling and rotation: 4 elements at a time, the last ones in part.
 * Formulas and bits: vector_math_neon.h. Results may overwrite inputs, since each vector is read
 * before it is written. Same bits as ref/elementwise_ref.c. */
#include "kernel/arm/arm.h"
#include "kernel/arm/vector_math_neon.h"

typedef float32x4_t (*vector_fn)(float32x4_t x);

ALWAYS_INLINE void map(float *y, const float *x, uint32_t n, vector_fn f) {
    for (uint32_t i = 0; i < n; i += 4) store_n(y + i, n - i, f(load_n(x + i, n - i)));
}

ALWAYS_INLINE void gate(float *y, const float *x, const float *up, uint32_t n, vector_fn f) {
    for (uint32_t i = 0; i < n; i += 4)
        store_n(y + i, n - i, vmulq_f32(f(load_n(x + i, n - i)), load_n(up + i, n - i)));
}

void pith_silu_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_silu);
}
void pith_gelu_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_gelu);
}
void pith_gelu_erf_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_gelu_erf);
}
void pith_relu2_mul_neon(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_relu2);
}
void pith_silu_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_silu);
}
void pith_gelu_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_gelu);
}
void pith_gelu_erf_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_gelu_erf);
}
void pith_relu2_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_relu2);
}
void pith_exp_neon(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_exp);
}

void pith_add_neon(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 4)
        store_n(y + i, n - i, vaddq_f32(load_n(a + i, n - i), load_n(b + i, n - i)));
}

void pith_mul_elements_neon(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 4)
        store_n(y + i, n - i, vmulq_f32(load_n(a + i, n - i), load_n(b + i, n - i)));
}

void pith_scale_neon(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 4)
        store_n(y + i, n - i, vmulq_f32(load_n(x + i, n - i), ps_set(s)));
}

void pith_softcap_neon(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 4) {
        float32x4_t ratio = vdivq_f32(load_n(x + i, n - i), ps_set(s));
        store_n(y + i, n - i, vmulq_f32(ps_set(s), ps_tanh(ratio)));
    }
}

/* Rotates 4 pairs: a' = fma(a, c, -(b * s)), b' = fma(a, s, b * c). */
ALWAYS_INLINE void rotate(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s) {
    float32x4_t x = *a, y = *b;
    *a = ps_fma(x, c, vnegq_f32(vmulq_f32(y, s)));
    *b = ps_fma(x, s, vmulq_f32(y, c));
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
