/* SPDX-License-Identifier: Apache-2.0
 * Products with few tokens of types whose codes need not be expanded first then (mul_few_avx512.c,
 * mul_small_avx512.c). Called by mul_expanded_avx512.c only. */
#ifndef PITH_KERNEL_X86_MUL_FEW_AVX512_H
#define PITH_KERNEL_X86_MUL_FEW_AVX512_H

#include "kernel/kernel.h"

/* Two tokens at a time meet a panel; beyond FEW_PAIRS tokens expanding is faster (Zen 4). */
enum { FEW_PAIRS = 6 };
void pith_mul_few_iq4_xs_avx512(const pith_mul *args);
void pith_mul_few_q2_k_avx512(const pith_mul *args);
void pith_mul_few_q3_k_avx512(const pith_mul *args);
void pith_mul_few_tq2_0_avx512(const pith_mul *args);

/* args->n is 1 .. SOME_TOKENS (mul_avx512.h). */
void pith_mul_few_iq4_nl_avx512(const pith_mul *args);
void pith_mul_few_mxfp4_avx512(const pith_mul *args);

#endif
