/* SPDX-License-Identifier: Apache-2.0
 * Products with many tokens on AMX tiles, for the kernels named in mul_amx.c. */
#ifndef PITH_KERNEL_X86_MUL_TILES_AMX_H
#define PITH_KERNEL_X86_MUL_TILES_AMX_H

#include "kernel/x86/mul_avx512.h"

/* Tokens of a tile: args->n may not be smaller. */
enum { AMX_TOKENS = 16 };

/* The exact contract, any type. */
void pith_mul_tiles_amx(const pith_mul *args, const wide_type *type);
/* The fast contract, types in blocks of 256. */
void pith_mul_fast_tiles_amx(const pith_mul *args, const wide_type *type);

#endif
