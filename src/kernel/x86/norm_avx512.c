/* SPDX-License-Identifier: Apache-2.0
 * AVX-512: RMS and layer normalisation and the largest value, the kernels of norm.h with vectors of
 * this tier. Contract: pith_norm_args in kernel.h; bits: ref/norm_ref.c. Only the names live here.
 * Read next: norm.h. */
#include "kernel/x86/vector_math_avx512.h"

#include "kernel/norm.h"
#include "kernel/x86/x86.h"

void pith_rms_norm_avx512(const pith_norm_args *args) {
    rms_norm(args);
}
void pith_layer_norm_avx512(const pith_norm_args *args) {
    layer_norm(args);
}
float pith_max_avx512(const float *x, uint32_t n) {
    return max_of(x, n);
}
