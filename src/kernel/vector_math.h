/* SPDX-License-Identifier: Apache-2.0
 * ref/scalar_math.h on whole vectors: the same operations in the same order, so the same bits.
 * Where the scalar code branches, both sides are computed and one is chosen. One source for all
 * tiers: it is included by vector_math_avx2.h, vector_math_avx512.h and vector_math_neon.h, which
 * define `vec` (VEC_LANES floats), `vec_mask` and the operations. */
#ifndef PITH_KERNEL_VECTOR_MATH_H
#define PITH_KERNEL_VECTOR_MATH_H

#include "kernel/inline.h"
#include "kernel/ref/scalar_math.h"

/* Vectors that hold the 16 virtual lanes of norms, sums and scores: lanes VEC_LANES * h .. in h. */
enum { N_VEC = 16 / VEC_LANES };

/* How many of the elements from i on exist, of n. */
ALWAYS_INLINE uint32_t left_of(uint32_t n, uint32_t i) {
    return i < n ? n - i : 0;
}

ALWAYS_INLINE vec vec_exp(vec x) {
    vec t = vec_fma(x, vec_set(PITH_LOG2_E), vec_set(PITH_ROUND_MAGIC));
    vec n = vec_sub(t, vec_set(PITH_ROUND_MAGIC));
    vec r = vec_fma(n, vec_set(-PITH_LN2_LOW), vec_fma(n, vec_set(-PITH_LN2_HIGH), x));
    vec q = vec_fma(vec_set(PITH_EXP_6), r, vec_set(PITH_EXP_5));
    q = vec_fma(q, r, vec_set(PITH_EXP_4));
    q = vec_fma(q, r, vec_set(PITH_EXP_3));
    q = vec_fma(q, r, vec_set(PITH_EXP_2));
    q = vec_fma(q, r, vec_set(1.0f));
    q = vec_fma(q, r, vec_set(1.0f));
    vec y = vec_times_power(q, t);
    y = vec_choose(vec_greater(x, vec_set(PITH_EXP_MAX)), vec_set(INFINITY), y);
    y = vec_keep(vec_not_less(x, vec_set(PITH_EXP_MIN)), y);
    return vec_choose(vec_is_nan(x), x, y);
}

ALWAYS_INLINE vec vec_tanh(vec x) {
    vec s = vec_mul(x, x), a = vec_abs(x);
    vec p = vec_fma(vec_set(PITH_TANH_4), s, vec_set(PITH_TANH_3));
    p = vec_fma(p, s, vec_set(PITH_TANH_2));
    p = vec_fma(p, s, vec_set(PITH_TANH_1));
    p = vec_fma(p, s, vec_set(PITH_TANH_0));
    vec small = vec_fma(vec_mul(x, s), p, x);
    vec e = vec_add(vec_exp(vec_add(a, a)), vec_set(1.0f));
    vec large = vec_copy_sign(vec_sub(vec_set(1.0f), vec_div(vec_set(2.0f), e)), x);
    return vec_choose(vec_less(a, vec_set(PITH_TANH_EDGE)), small, large);
}

ALWAYS_INLINE vec vec_silu(vec x) {
    return vec_div(x, vec_add(vec_set(1.0f), vec_exp(vec_negate(x))));
}

ALWAYS_INLINE vec vec_gelu(vec x) {
    vec inner = vec_fma(vec_mul(x, x), vec_set(PITH_GELU_A), vec_set(PITH_GELU_B));
    return vec_div(x, vec_add(vec_set(1.0f), vec_exp(vec_mul(x, inner))));
}

ALWAYS_INLINE vec vec_gelu_erf(vec x) {
    vec z = vec_mul(vec_abs(x), vec_set(PITH_SQRT_HALF));
    vec t = vec_div(vec_set(1.0f), vec_fma(z, vec_set(PITH_ERFC_T), vec_set(1.0f)));
    vec p = vec_fma(vec_set(PITH_ERFC_9), t, vec_set(PITH_ERFC_8));
    p = vec_fma(p, t, vec_set(PITH_ERFC_7));
    p = vec_fma(p, t, vec_set(PITH_ERFC_6));
    p = vec_fma(p, t, vec_set(PITH_ERFC_5));
    p = vec_fma(p, t, vec_set(PITH_ERFC_4));
    p = vec_fma(p, t, vec_set(PITH_ERFC_3));
    p = vec_fma(p, t, vec_set(PITH_ERFC_2));
    p = vec_fma(p, t, vec_set(PITH_ERFC_1));
    vec e = vec_mul(vec_set(0.5f), vec_exp(vec_negate(vec_mul(z, z))));
    vec h = vec_mul(e, vec_mul(p, t));
    vec_mask negative = vec_less(x, vec_set(0.0f));
    return vec_mul(x, vec_choose(negative, h, vec_sub(vec_set(1.0f), h)));
}

ALWAYS_INLINE vec vec_relu2(vec x) {
    vec m = vec_keep(vec_not_less(x, vec_set(0.0f)), x);
    return vec_mul(m, m);
}

#endif
