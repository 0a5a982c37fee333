/* SPDX-License-Identifier: Apache-2.0
 * Constant tables that several IQ and FP4 codecs share. An entry of a grid holds the elements of
 * one short run of a row: element k is byte k, counted from the low end of the number (so the
 * tables mean the same on every machine). IQ2 and IQ3 grids hold magnitudes, signs are stored
 * apart in the block; the IQ1 grid holds the signed values -1, 0, +1 as two's complement bytes. */
#ifndef PITH_QUANT_GRID_H
#define PITH_QUANT_GRID_H

#include <stdint.h>

extern const uint64_t pith_grid_iq2xxs[256]; /* 8 x {8, 25, 43} */
extern const uint64_t pith_grid_iq2xs[512];  /* 8 x {8, 25, 43} */
extern const uint64_t pith_grid_iq2s[1024];  /* 8 x {8, 25, 43} */
extern const uint64_t pith_grid_iq1s[2048];  /* 8 x {-1, 0, 1} */
extern const uint32_t pith_grid_iq3xxs[256]; /* 4 x {4, 12, 20, 28, 36, 44, 52, 62} */
extern const uint32_t pith_grid_iq3s[512];   /* 4 x {1, 3, 5, 7, 9, 11, 13, 15} */
extern const int8_t pith_book_iq4[16]; /* the values of a nibble of IQ4_NL and IQ4_XS, ascending */
extern const int8_t pith_book_fp4[16]; /* twice the values of E2M1: 0 .. 12, then -0 .. -12 */

#endif
