/* SPDX-License-Identifier: Apache-2.0
 * AVX2 attention: the kernels of attend_256.h; int8 scores with the dot product of dot_avx2.h.
 * Contract: pith_attend in kernel.h. */
#include "kernel/x86/dot_avx2.h"

#include "kernel/x86/attend_256.h"
#include "kernel/x86/x86.h"

void pith_attend_f32_avx2(const pith_attend *args) {
    attend(args, F32);
}
void pith_attend_f16_avx2(const pith_attend *args) {
    attend(args, F16);
}
void pith_attend_i8_avx2(const pith_attend *args) {
    attend(args, I8);
}
