/* SPDX-License-Identifier: Apache-2.0
 * AVX2 attention over f32, f16 and int8 pages: the kernels of attend_256.h, compiled with the dot
 * product of dot_avx2.h (vpmaddubsw) for int8 scores. Contract: pith_attend in kernel.h; bits:
 * ref/attend_ref.c. Only the names and the choice of dot product live here. Tail and registers:
 * attend_256.h. Read next: attend_256.h. */
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
