/* SPDX-License-Identifier: Apache-2.0
 * The 32-element types Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1 to f32 (drawn in docs/formats.md).
 * Byte j of qs holds element j in its low nibble and element j + 16 in its high nibble; bit i of
 * qh is the fifth bit of element i. One loop a block, fixed trip counts, so that compilers can
 * vectorize. Read next: decode_k.c. */
#include "quant/block.h"
#include "quant/codec.h"

void pith_decode_q4_0(const void *src, float *dst, size_t n) {
    const pith_block_q4_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d);
        for (int j = 0; j < 16; j++) dst[j] = (float)((b->qs[j] & 15) - 8) * d;
        for (int j = 0; j < 16; j++) dst[j + 16] = (float)((b->qs[j] >> 4) - 8) * d;
    }
}

void pith_decode_q4_1(const void *src, float *dst, size_t n) {
    const pith_block_q4_1 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d), m = pith_load_f16(b->m);
        for (int j = 0; j < 16; j++) dst[j] = (float)(b->qs[j] & 15) * d + m;
        for (int j = 0; j < 16; j++) dst[j + 16] = (float)(b->qs[j] >> 4) * d + m;
    }
}

/* Codes 0..31 of a Q5 block. */
static void unpack_q5(const uint8_t qs[16], const uint8_t qh[4], int codes[32]) {
    uint32_t high = pith_load_u32(qh);
    for (int j = 0; j < 16; j++) codes[j] = (qs[j] & 15) | (int)(high >> j & 1u) << 4;
    for (int j = 0; j < 16; j++) codes[j + 16] = qs[j] >> 4 | (int)(high >> (j + 16) & 1u) << 4;
}

void pith_decode_q5_0(const void *src, float *dst, size_t n) {
    const pith_block_q5_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d);
        int codes[32];
        unpack_q5(b->qs, b->qh, codes);
        for (int j = 0; j < 32; j++) dst[j] = (float)(codes[j] - 16) * d;
    }
}

void pith_decode_q5_1(const void *src, float *dst, size_t n) {
    const pith_block_q5_1 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d), m = pith_load_f16(b->m);
        int codes[32];
        unpack_q5(b->qs, b->qh, codes);
        for (int j = 0; j < 32; j++) dst[j] = (float)codes[j] * d + m;
    }
}

void pith_decode_q8_0(const void *src, float *dst, size_t n) {
    const pith_block_q8_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d);
        for (int j = 0; j < 32; j++) dst[j] = (float)b->qs[j] * d;
    }
}

/* s, the sum of the block, is there for products only. */
void pith_decode_q8_1(const void *src, float *dst, size_t n) {
    const pith_block_q8_1 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d);
        for (int j = 0; j < 32; j++) dst[j] = (float)b->qs[j] * d;
    }
}
