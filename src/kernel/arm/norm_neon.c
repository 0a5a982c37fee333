/* SPDX-License-Identifier: Apache-2.0
 * NEON: RMS and layer normalisation and the largest value, the kernels of norm.h with vectors of
 * this tier. Contract: pith_norm_args in kernel.h; bits: ref/norm_ref.c. Only the names live here.
 * Read next: norm.h. */
#include "kernel/arm/vector_math_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/norm.h"

void pith_rms_norm_neon(const pith_norm_args *args) {
    rms_norm(args);
}
void pith_layer_norm_neon(const pith_norm_args *args) {
    layer_norm(args);
}
float pith_max_neon(const float *x, uint32_t n) {
    return max_of(x, n);
}
