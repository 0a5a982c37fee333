/* SPDX-License-Identifier: Apache-2.0
 * Activations, gates, sums, scaling and rotation, a vector at a time, the last one in part. One
 * source for all tiers: the file that includes this has included the vectors of its tier
 * (x86/vector_math_avx2.h, ...) before. Formulas: vector_math.h. Results may overwrite inputs,
 * since each vector is read before it is written. Same bits as ref/elementwise_ref.c. */
#ifndef PITH_KERNEL_ELEMENTWISE_H
#define PITH_KERNEL_ELEMENTWISE_H

typedef vec (*vector_fn)(vec x);

ALWAYS_INLINE void map(float *y, const float *x, uint32_t n, vector_fn f) {
    for (uint32_t i = 0; i < n; i += VEC_LANES) store_n(y + i, n - i, f(load_n(x + i, n - i)));
}

ALWAYS_INLINE void gate(float *y, const float *x, const float *up, uint32_t n, vector_fn f) {
    for (uint32_t i = 0; i < n; i += VEC_LANES)
        store_n(y + i, n - i, vec_mul(f(load_n(x + i, n - i)), load_n(up + i, n - i)));
}

ALWAYS_INLINE void add(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i += VEC_LANES)
        store_n(y + i, n - i, vec_add(load_n(a + i, n - i), load_n(b + i, n - i)));
}

ALWAYS_INLINE void mul_elements(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i += VEC_LANES)
        store_n(y + i, n - i, vec_mul(load_n(a + i, n - i), load_n(b + i, n - i)));
}

ALWAYS_INLINE void scale(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i += VEC_LANES)
        store_n(y + i, n - i, vec_mul(load_n(x + i, n - i), vec_set(s)));
}

ALWAYS_INLINE void softcap(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i += VEC_LANES) {
        vec ratio = vec_div(load_n(x + i, n - i), vec_set(s));
        store_n(y + i, n - i, vec_mul(vec_set(s), vec_tanh(ratio)));
    }
}

#endif
