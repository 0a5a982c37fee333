/* SPDX-License-Identifier: Apache-2.0
 * Panel blocks: 16 rows of a weight matrix side by side, as kernels read them. Pictures:
 * docs/formats.md, "Panels".
 *
 * Invariant: a panel block holds exactly the bytes of the 16 file blocks of its rows (r = row in
 * the panel), permuted: first the scale fields, then the rest in groups of 4 consecutive bytes of
 * 16 rows = 64 bytes. One field of Q5_0 and Q5_1 (h) is also permuted bit by bit. Multi-byte fields
 * are little-endian, as in files.
 * Packing lives in ref/panel_ref.c and pack_panels.h, use in mul_*.c and expand_*.h. */
#ifndef PITH_KERNEL_PANEL_H
#define PITH_KERNEL_PANEL_H

#include <stdint.h>

/* 32 elements of 16 rows. A code group is [16][4]: row r, byte j. Low nibble: k = 4g + j, high
 * nibble: k = 4g + j + 16. */
typedef struct pith_panel_q4_0 {
    uint16_t d[16];
    uint8_t q[4][64];
} pith_panel_q4_0;
typedef struct pith_panel_q4_1 {
    uint16_t d[16], m[16];
    uint8_t q[4][64];
} pith_panel_q4_1;
/* h: bit g of byte [r][j] is the fifth bit of k = 4g + j, g = 0..7 (the file has it as bit k of
 * a 32-bit word). */
typedef struct pith_panel_q5_0 {
    uint16_t d[16];
    uint8_t h[64], q[4][64];
} pith_panel_q5_0;
typedef struct pith_panel_q5_1 {
    uint16_t d[16], m[16];
    uint8_t h[64], q[4][64];
} pith_panel_q5_1;
/* Group g = 0..7: k = 4g + j. */
typedef struct pith_panel_q8_0 {
    uint16_t d[16];
    int8_t q[8][64];
} pith_panel_q8_0;

/* 256 elements of 16 rows. Byte i of row r's 12 scale bytes is at 16 i + r, counted through
 * `scales`; so with S0 = bytes 0..3, S1 = 4..7, S2 = 8..11 and j = 0..3:
 *   scale of group j:    S0[j] & 63    of group j + 4:   (S2[j] & 15) | (S0[j] >> 6) << 4
 *   minimum of group j:  S1[j] & 63    of group j + 4:   S2[j] >> 4 | (S1[j] >> 6) << 4
 * q[8c + g]: low nibble k = 64c + 4g + j, high nibble k = 64c + 32 + 4g + j.
 * h[g]: bit i of [r][j] is the fifth bit of k = 32i + 4g + j. */
typedef struct pith_panel_q4_k {
    uint16_t d[16], dmin[16];
    uint8_t scales[3][64], q[32][64];
} pith_panel_q4_k;
typedef struct pith_panel_q5_k {
    uint16_t d[16], dmin[16];
    uint8_t scales[3][64], h[8][64], q[32][64];
} pith_panel_q5_k;
/* Half f = k / 128, quarter i = k % 128 / 32, g = k % 32 / 4.
 * part[f][g].low[i % 2]: low nibble for i < 2, high nibble for i >= 2. part[f][g].high: bits 2i,
 * 2i + 1. scales[s]: 16 rows of sub-block s = k / 16.
 * The three groups that belong together lie together, so that a product reads memory strictly in
 * order: with separate planes, as in files, it ran at 40 % of the bandwidth on Zen 4, whatever was
 * prefetched. */
typedef struct pith_panel_q6_k_part {
    uint8_t low[2][64], high[64];
} pith_panel_q6_k_part;
typedef struct pith_panel_q6_k {
    uint16_t d[16];
    int8_t scales[16][16];
    pith_panel_q6_k_part part[2][8];
} pith_panel_q6_k;

/* The types below are kept the plainest way: words of scales first, then every other field in units
 * of 4 consecutive bytes of 16 rows, in the order of the file: byte b of a field of row r is
 * field[b / 4][4 * r + b % 4]. So a unit is 16 little-endian 32-bit words, one a row, and code
 * groups lie as above where a field holds codes. Meaning of the fields: docs/formats.md, "Tensor
 * types". */
typedef struct pith_panel_iq4_nl {
    uint16_t d[16];
    uint8_t q[4][64];
} pith_panel_iq4_nl;
typedef struct pith_panel_iq4_xs {
    uint16_t d[16], scales_h[16];
    uint8_t scales_l[64], q[32][64];
} pith_panel_iq4_xs;
typedef struct pith_panel_mxfp4 {
    uint8_t e[16], q[4][64];
} pith_panel_mxfp4;
typedef struct pith_panel_nvfp4 { /* 64 elements */
    uint8_t d[64], q[8][64];
} pith_panel_nvfp4;
typedef struct pith_panel_q2_k {
    uint16_t d[16], dmin[16];
    uint8_t scales[4][64], q[16][64];
} pith_panel_q2_k;
/* Groups that belong together lie together, for the reason told above: part[g] holds units g of the
 * third bits, g and 8 + g of the two-bit codes. */
typedef struct pith_panel_q3_k_part {
    uint8_t h[64], q[2][64];
} pith_panel_q3_k_part;
typedef struct pith_panel_q3_k {
    uint16_t d[16];
    uint8_t scales[3][64];
    pith_panel_q3_k_part part[8];
} pith_panel_q3_k;
typedef struct pith_panel_iq1_s {
    uint16_t d[16];
    uint8_t q[8][64], h[4][64];
} pith_panel_iq1_s;
typedef struct pith_panel_iq1_m {
    uint8_t q[8][64], h[4][64], scales[2][64];
} pith_panel_iq1_m;
typedef struct pith_panel_iq2_xxs {
    uint16_t d[16];
    uint8_t q[16][64]; /* even: 4 indexes; odd: 4 sign indexes and a scale */
} pith_panel_iq2_xxs;
typedef struct pith_panel_iq2_xs {
    uint16_t d[16];
    uint8_t q[16][64], scales[2][64];
} pith_panel_iq2_xs;
typedef struct pith_panel_iq2_s {
    uint16_t d[16];
    uint8_t q[8][64], signs[8][64], h[2][64], scales[2][64];
} pith_panel_iq2_s;
typedef struct pith_panel_iq3_xxs {
    uint16_t d[16];
    uint8_t q[16][64], signs[8][64];
} pith_panel_iq3_xxs;
typedef struct pith_panel_iq3_s {
    uint16_t d[16];
    uint8_t q[16][64], h[2][64], signs[8][64], scales[64];
} pith_panel_iq3_s;
typedef struct pith_panel_tq1_0 {
    uint16_t d[16];
    uint8_t q[12][64], h[64];
} pith_panel_tq1_0;
typedef struct pith_panel_tq2_0 {
    uint16_t d[16];
    uint8_t q[16][64];
} pith_panel_tq2_0;
typedef struct pith_panel_q1_0 { /* 128 elements */
    uint16_t d[16];
    uint8_t q[4][64];
} pith_panel_q1_0;
typedef struct pith_panel_q2_0 { /* 64 elements */
    uint16_t d[16];
    uint8_t q[4][64];
} pith_panel_q2_0;

_Static_assert(sizeof(pith_panel_q4_0) == 16 * 18 && sizeof(pith_panel_q4_1) == 16 * 20, "Q4");
_Static_assert(sizeof(pith_panel_q5_0) == 16 * 22 && sizeof(pith_panel_q5_1) == 16 * 24, "Q5");
_Static_assert(sizeof(pith_panel_q8_0) == 16 * 34 && sizeof(pith_panel_q4_k) == 16 * 144,
               "Q8, Q4_K");
_Static_assert(sizeof(pith_panel_q5_k) == 16 * 176 && sizeof(pith_panel_q6_k) == 16 * 210, "K");
_Static_assert(sizeof(pith_panel_q2_k) == 16 * 84 && sizeof(pith_panel_q3_k) == 16 * 110, "K");
_Static_assert(sizeof(pith_panel_iq4_nl) == 16 * 18 && sizeof(pith_panel_iq4_xs) == 16 * 136,
               "IQ4");
_Static_assert(sizeof(pith_panel_mxfp4) == 16 * 17 && sizeof(pith_panel_nvfp4) == 16 * 36, "FP4");
_Static_assert(sizeof(pith_panel_iq1_s) == 16 * 50 && sizeof(pith_panel_iq1_m) == 16 * 56, "IQ1");
_Static_assert(sizeof(pith_panel_iq2_xxs) == 16 * 66 && sizeof(pith_panel_iq2_xs) == 16 * 74 &&
                   sizeof(pith_panel_iq2_s) == 16 * 82,
               "IQ2");
_Static_assert(sizeof(pith_panel_iq3_xxs) == 16 * 98 && sizeof(pith_panel_iq3_s) == 16 * 110,
               "IQ3");
_Static_assert(sizeof(pith_panel_tq1_0) == 16 * 54 && sizeof(pith_panel_tq2_0) == 16 * 66, "TQ");
_Static_assert(sizeof(pith_panel_q1_0) == 16 * 18 && sizeof(pith_panel_q2_0) == 16 * 18, "low bit");

#endif
