/* SPDX-License-Identifier: Apache-2.0
 * NEON attention over f32, f16 and int8 pages: the kernels of attend_128.h, compiled with the dot
 * product of dot_neon.h (smull, smlal) for int8 scores. Contract: pith_attend in kernel.h; bits:
 * ref/attend_ref.c. Only the names and the choice of dot product live here. Tail and registers:
 * attend_128.h. Read next: attend_128.h. */
#include "kernel/arm/dot_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/attend_128.h"

void pith_attend_f32_neon(const pith_attend *args) {
    attend(args, F32);
}
void pith_attend_f16_neon(const pith_attend *args) {
    attend(args, F16);
}
void pith_attend_i8_neon(const pith_attend *args) {
    attend(args, I8);
}
