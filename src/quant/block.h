/* SPDX-License-Identifier: Apache-2.0
 * The bytes of one block of every quantized tensor type, and the small readers and writers that
 * the codecs share. Fields are byte arrays: a block has alignment 1 (files may place it anywhere)
 * and reads the same on every machine. Pictures with nibble order: docs/formats.md, "Tensor
 * types". Invariant: sizeof(block) is the size in the file; the type table takes its sizes from
 * here. */
#ifndef PITH_QUANT_BLOCK_H
#define PITH_QUANT_BLOCK_H

#include "base/float16.h"

#include <stddef.h>

/* Elements of one block. */
enum {
    PITH_BLOCK_SMALL = 32,  /* legacy types, IQ4_NL, MXFP4 */
    PITH_BLOCK_SUPER = 256, /* K, IQ and ternary types */
    PITH_BLOCK_NVFP4 = 64,
    PITH_BLOCK_Q1_0 = 128,
    PITH_BLOCK_Q2_0 = 64
};

/* clang-format off */
/*                    offset order; f16 and u32 are little-endian */
typedef struct pith_block_q4_0    { uint8_t d[2], qs[16]; } pith_block_q4_0;
typedef struct pith_block_q4_1    { uint8_t d[2], m[2], qs[16]; } pith_block_q4_1;
typedef struct pith_block_q5_0    { uint8_t d[2], qh[4], qs[16]; } pith_block_q5_0;
typedef struct pith_block_q5_1    { uint8_t d[2], m[2], qh[4], qs[16]; } pith_block_q5_1;
typedef struct pith_block_q8_0    { uint8_t d[2]; int8_t qs[32]; } pith_block_q8_0;
typedef struct pith_block_q8_1    { uint8_t d[2], s[2]; int8_t qs[32]; } pith_block_q8_1;
typedef struct pith_block_q2_k    { uint8_t scales[16], qs[64], d[2], dmin[2]; } pith_block_q2_k;
typedef struct pith_block_q3_k    { uint8_t hmask[32], qs[64], scales[12], d[2]; } pith_block_q3_k;
typedef struct pith_block_q4_k    { uint8_t d[2], dmin[2], scales[12], qs[128]; } pith_block_q4_k;
typedef struct pith_block_q5_k    { uint8_t d[2], dmin[2], scales[12], qh[32], qs[128];
} pith_block_q5_k;
typedef struct pith_block_q6_k    { uint8_t ql[128], qh[64]; int8_t scales[16]; uint8_t d[2];
} pith_block_q6_k;
typedef struct pith_block_q8_k    { uint8_t d[4]; int8_t qs[256]; uint8_t bsums[32];
} pith_block_q8_k;
typedef struct pith_block_iq1_s   { uint8_t d[2], qs[32], qh[16]; } pith_block_iq1_s;
typedef struct pith_block_iq1_m   { uint8_t qs[32], qh[16], scales[8]; } pith_block_iq1_m;
typedef struct pith_block_iq2_xxs { uint8_t d[2], qs[64]; } pith_block_iq2_xxs;
typedef struct pith_block_iq2_xs  { uint8_t d[2], qs[64], scales[8]; } pith_block_iq2_xs;
typedef struct pith_block_iq2_s   { uint8_t d[2], qs[32], signs[32], qh[8], scales[8];
} pith_block_iq2_s;
typedef struct pith_block_iq3_xxs { uint8_t d[2], qs[64], signs[32]; } pith_block_iq3_xxs;
typedef struct pith_block_iq3_s   { uint8_t d[2], qs[64], qh[8], signs[32], scales[4];
} pith_block_iq3_s;
typedef struct pith_block_iq4_nl  { uint8_t d[2], qs[16]; } pith_block_iq4_nl;
typedef struct pith_block_iq4_xs  { uint8_t d[2], scales_h[2], scales_l[4], qs[128];
} pith_block_iq4_xs;
typedef struct pith_block_tq1_0   { uint8_t qs[48], qh[4], d[2]; } pith_block_tq1_0;
typedef struct pith_block_tq2_0   { uint8_t qs[64], d[2]; } pith_block_tq2_0;
typedef struct pith_block_mxfp4   { uint8_t e, qs[16]; } pith_block_mxfp4;
typedef struct pith_block_nvfp4   { uint8_t d[4], qs[32]; } pith_block_nvfp4;
typedef struct pith_block_q1_0    { uint8_t d[2], qs[16]; } pith_block_q1_0;
typedef struct pith_block_q2_0    { uint8_t d[2], qs[16]; } pith_block_q2_0;
/* clang-format on */

_Static_assert(sizeof(pith_block_q4_0) == 18 && sizeof(pith_block_q4_1) == 20, "Q4 blocks");
_Static_assert(sizeof(pith_block_q5_0) == 22 && sizeof(pith_block_q5_1) == 24, "Q5 blocks");
_Static_assert(sizeof(pith_block_q8_0) == 34 && sizeof(pith_block_q8_1) == 36, "Q8 blocks");
_Static_assert(sizeof(pith_block_q2_k) == 84 && sizeof(pith_block_q3_k) == 110, "Q2_K, Q3_K");
_Static_assert(sizeof(pith_block_q4_k) == 144 && sizeof(pith_block_q5_k) == 176, "Q4_K, Q5_K");
_Static_assert(sizeof(pith_block_q6_k) == 210 && sizeof(pith_block_q8_k) == 292, "Q6_K, Q8_K");
_Static_assert(sizeof(pith_block_iq1_s) == 50 && sizeof(pith_block_iq1_m) == 56, "IQ1 blocks");
_Static_assert(sizeof(pith_block_iq2_xxs) == 66 && sizeof(pith_block_iq2_xs) == 74, "IQ2 blocks");
_Static_assert(sizeof(pith_block_iq2_s) == 82 && sizeof(pith_block_iq3_xxs) == 98,
               "IQ2_S, IQ3_XXS");
_Static_assert(sizeof(pith_block_iq3_s) == 110 && sizeof(pith_block_iq4_nl) == 18, "IQ3_S, IQ4_NL");
_Static_assert(sizeof(pith_block_iq4_xs) == 136 && sizeof(pith_block_tq1_0) == 54, "IQ4_XS, TQ1_0");
_Static_assert(sizeof(pith_block_tq2_0) == 66 && sizeof(pith_block_mxfp4) == 17, "TQ2_0, MXFP4");
_Static_assert(sizeof(pith_block_nvfp4) == 36 && sizeof(pith_block_q1_0) == 18, "NVFP4, Q1_0");
_Static_assert(sizeof(pith_block_q2_0) == 18, "Q2_0");

static inline uint16_t pith_load_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t pith_load_u32(const uint8_t *p) {
    return (uint32_t)pith_load_u16(p) | (uint32_t)pith_load_u16(p + 2) << 16;
}

static inline uint64_t pith_load_u64(const uint8_t *p) {
    return (uint64_t)pith_load_u32(p) | (uint64_t)pith_load_u32(p + 4) << 32;
}

static inline float pith_load_f16(const uint8_t *p) {
    return pith_f32_of_f16(pith_load_u16(p));
}
static inline float pith_load_f32(const uint8_t *p) {
    return pith_f32_of_bits(pith_load_u32(p));
}

static inline void pith_store_u16(uint8_t *p, uint32_t value) {
    p[0] = (uint8_t)(value & 0xFFu);
    p[1] = (uint8_t)(value >> 8 & 0xFFu);
}

static inline void pith_store_u32(uint8_t *p, uint32_t value) {
    pith_store_u16(p, value & 0xFFFFu);
    pith_store_u16(p + 2, value >> 16);
}

/* Stores f as f16 and returns the value that a reader will get. */
static inline float pith_store_f16(uint8_t *p, float f) {
    uint16_t half = pith_f16_of_f32(f);
    pith_store_u16(p, half);
    return pith_f32_of_f16(half);
}

/* The 6-bit scale and minimum of group j (0..7) of 32 elements, of Q4_K and Q5_K. */
static inline void pith_scale_min_get(const uint8_t scales[12], int j, int *scale, int *minimum) {
    int k = j & 3;
    if (j < 4) {
        *scale = scales[k] & 63;
        *minimum = scales[k + 4] & 63;
    } else {
        *scale = (scales[k + 8] & 15) | (scales[k] >> 6) << 4;
        *minimum = scales[k + 8] >> 4 | (scales[k + 4] >> 6) << 4;
    }
}

/* The f16 bits that IQ1_M keeps in the top nibbles of its four scale words. */
static inline uint16_t pith_iq1_m_scale(const uint8_t scales[8]) {
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++) bits |= (uint32_t)(scales[2 * i + 1] >> 4) << 4 * i;
    return (uint16_t)bits;
}

/* Scale of an MXFP4 block: 2^(e - 128); e = 0 and 1 give subnormal numbers. */
static inline float pith_f32_of_e8m0_half(uint8_t e) {
    return pith_f32_of_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

/* Half the value of an unsigned E4M3 byte (bit 7 unused; 0x7F is not a number and reads as 0). */
static inline float pith_f32_of_ue4m3_half(uint8_t x) {
    uint32_t exponent = x >> 3 & 15u, mantissa = x & 7u;
    if ((x & 0x7Fu) == 0x7Fu) return 0.0f;
    if (exponent == 0) return (float)mantissa * 0x1p-10f;
    return pith_f32_of_bits((exponent + 119u) << 23 | mantissa << 20);
}

#endif
