/* SPDX-License-Identifier: Apache-2.0
 * The scale of requantized rows on whole vectors: pith_q8_scale of ref/scalar_math.h, one row a
 * lane (fast contract: pith_mul in kernel.h). The file that includes this has included
 * vector_math_avx2.h or vector_math_neon.h. Users: x86/requantize_256.h, arm/requantize_128.h. */
#ifndef PITH_KERNEL_FAST_SCALE_H
#define PITH_KERNEL_FAST_SCALE_H

#include <math.h>

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
