/* SPDX-License-Identifier: Apache-2.0
 * Products with one token (decoding) of the usual types (mul_one_avx2.c). args->n is 1. Called by
 * mul_integer_avx2.c and mul_integer_avxvnni.c only. */
#ifndef PITH_KERNEL_X86_MUL_ONE_AVX2_H
#define PITH_KERNEL_X86_MUL_ONE_AVX2_H

#include "kernel/kernel.h"

void pith_mul_one_q4_0_avx2(const pith_mul *args);
void pith_mul_one_q4_1_avx2(const pith_mul *args);
void pith_mul_one_q5_0_avx2(const pith_mul *args);
void pith_mul_one_q5_1_avx2(const pith_mul *args);
void pith_mul_one_q8_0_avx2(const pith_mul *args);
void pith_mul_one_q4_k_avx2(const pith_mul *args);
void pith_mul_one_q5_k_avx2(const pith_mul *args);
void pith_mul_one_q6_k_avx2(const pith_mul *args);

#endif
