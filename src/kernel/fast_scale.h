/* SPDX-License-Identifier: Apache-2.0
 * The scale of requantized rows on whole vectors: pith_q8_scale of ref/scalar_math.h, one row a
 * lane; and the code that bounds a row's values (fast contract: pith_mul in kernel.h). The file
 * that includes this has included vector_math_avx2.h or vector_math_neon.h. Users:
 * x86/requantize_256.h, arm/requantize_128.h. */
#ifndef PITH_KERNEL_FAST_SCALE_H
#define PITH_KERNEL_FAST_SCALE_H

#include "kernel/kernel.h"

#include <math.h>

/* Largest magnitude of a code without its offset; the same numbers: ref/mul_*_ref.c. */
ALWAYS_INLINE float fast_code_max(pith_type type) {
    switch (type) {
    case PITH_TYPE_TQ1_0: return 1.0f;
    case PITH_TYPE_TQ2_0: return 2.0f;
    case PITH_TYPE_Q2_K: return 3.0f;
    case PITH_TYPE_Q3_K: return 4.0f;
    case PITH_TYPE_IQ1_S:
    case PITH_TYPE_IQ1_M: return 9.0f;
    case PITH_TYPE_Q4_K:
    case PITH_TYPE_IQ3_S: return 15.0f;
    case PITH_TYPE_Q5_K: return 31.0f;
    case PITH_TYPE_Q6_K: return 32.0f;
    case PITH_TYPE_IQ2_XXS:
    case PITH_TYPE_IQ2_XS:
    case PITH_TYPE_IQ2_S: return 43.0f;
    case PITH_TYPE_IQ3_XXS: return 62.0f;
    default: return 127.0f; /* IQ4_XS */
    }
}

/* amax: magnitudes, so NaN and infinity have d = NaN, inverse = 0. A reciprocal that overflows, as
 * that of 0 does, makes both 0. */
ALWAYS_INLINE void vec_row_scale(vec amax, vec *d, vec *inverse) {
    const vec infinite = vec_set(INFINITY);
    vec_mask finite = vec_less(amax, infinite);
    vec x = vec_keep(finite, vec_div(amax, vec_set(127.0f))), y = vec_div(vec_set(1.0f), x);
    vec_mask used = vec_less(y, infinite);
    *inverse = vec_keep(used, y);
    *d = vec_choose(finite, vec_keep(used, x), vec_set(NAN));
}

#endif
