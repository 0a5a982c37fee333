/* SPDX-License-Identifier: Apache-2.0
 * Prototypes of the x86 kernels, a block per tier. Contracts: kernel.h; each gives the bits of its reference. */
#ifndef PITH_KERNEL_X86_X86_H
#define PITH_KERNEL_X86_X86_H

#include "kernel/kernel.h"

/* avx512 */
void pith_mul_q4_0_avx512(const pith_mul *args);
void pith_mul_q4_1_avx512(const pith_mul *args);
void pith_mul_q5_0_avx512(const pith_mul *args);
void pith_mul_q5_1_avx512(const pith_mul *args);
void pith_mul_q8_0_avx512(const pith_mul *args);
void pith_mul_q4_k_avx512(const pith_mul *args);
void pith_mul_q5_k_avx512(const pith_mul *args);
void pith_mul_q6_k_avx512(const pith_mul *args);

#endif
