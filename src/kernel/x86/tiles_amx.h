/* SPDX-License-Identifier: Apache-2.0
 * The tile instructions of AMX, int8. Eight registers, each up to 16 rows of 64 bytes; their
 * shapes are loaded at the start of a kernel call and released at its end, so that no state is left
 * between calls and the system need not save tiles of threads that wait.
 *
 *   register  0..3  sums    16 tokens x 16 rows of int32
 *             4, 5  tokens  16 x `depth` bytes of q8 rows
 *             6, 7  codes   depth / 4 x [16 rows][4 k]: code groups of a panel as they lie
 *
 * As text: gcc 12 believes that its intrinsic reads 8 bytes of the 64 of a configuration and drops
 * stores to the rest. As macros: a register's number is part of the instruction, without
 * optimization too. The kernel check compiles the kernels with PITH_EMULATE_AMX and puts functions
 * in place of these (tests/check/emulated_tiles.h). Users: mul_tiles_amx.c. */
#ifndef PITH_KERNEL_X86_TILES_AMX_H
#define PITH_KERNEL_X86_TILES_AMX_H

#include "kernel/inline.h"

#include <stddef.h>
#include <stdint.h>

enum { TILE_ROWS = 16, TILE_BYTES = 64, N_TILES = 8 };

/* What LDTILECFG reads (Intel SDM vol. 2A). */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; /* of a row, per register */
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "tile_config");

typedef int32_t tile_sums[TILE_ROWS][TILE_ROWS];

#if !defined(PITH_EMULATE_AMX)
#define TILES_LOAD(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(config)))
#define TILES_RELEASE()    __asm__ volatile("tilerelease")
#define TILE_ZERO(t)       __asm__ volatile("tilezero %%tmm" #t : :)
/* Rows at `at`, `stride` bytes apart. The operand that is told is a tile of codes; rows of q8 lie
 * apart, but nothing here writes them. */
#define TILE_LOAD(t, at, stride)                                                                   \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                                               \
                     :                                                                             \
                     : "r"(at), "r"((size_t)(stride)),                                             \
                       "m"(*(const uint8_t(*)[TILE_ROWS * TILE_BYTES])(const void *)(at)))
/* *sums = register t */
#define TILE_STORE(t, sums)                                                                        \
    __asm__ volatile("tilestored %%tmm" #t ", (%1,%2,1)"                                           \
                     : "=m"(*(sums))                                                               \
                     : "r"(sums), "r"((size_t)TILE_BYTES))
/* c[token][row] += sum over k of tokens[token][k] * codes[k][row], all signed */
#define TILE_DOT(c, tokens, codes)                                                                 \
    __asm__ volatile("tdpbssd %%tmm" #codes ", %%tmm" #tokens ", %%tmm" #c : :)
#endif

/* depth: bytes of k of one product, a multiple of 4 up to 64. */
ALWAYS_INLINE tile_config tile_config_of(unsigned depth) {
    tile_config config = {.palette = 1};
    for (int t = 0; t < N_TILES; t++) {
        config.bytes[t] = (uint16_t)(t == 4 || t == 5 ? depth : TILE_BYTES);
        config.rows[t] = (uint8_t)(t >= 6 ? depth / 4 : TILE_ROWS);
    }
    return config;
}

#endif
