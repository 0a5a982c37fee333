/* SPDX-License-Identifier: Apache-2.0
 * AVX-VNNI attention over int8 pages: the kernel of attend_256.h, compiled with the dot product of
 * dot_avxvnni.h (vpdpbusd). Float pages have no integer products, so this tier keeps the avx2
 * kernels for them. Contract: pith_attend in kernel.h; bits: ref/attend_ref.c. Read next:
 * attend_256.h. */
#include "kernel/x86/dot_avxvnni.h"

#include "kernel/x86/attend_256.h"
#include "kernel/x86/x86.h"

void pith_attend_i8_avxvnni(const pith_attend *args) {
    attend(args, I8);
}
