/* SPDX-License-Identifier: Apache-2.0
 * Attention over int8 pages with SDOT: the kernel of attend_128.h, compiled with the dot product of
 * dot_dotprod.h. Float pages have no integer products, so this tier keeps the neon kernels for
 * them. Contract: pith_attend in kernel.h; bits: ref/attend_ref.c. Read next: attend_128.h. */
#include "kernel/arm/dot_dotprod.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/attend_128.h"

void pith_attend_i8_dotprod(const pith_attend *args) {
    attend(args, I8);
}
