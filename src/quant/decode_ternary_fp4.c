/* SPDX-License-Identifier: Apache-2.0
 * The ternary types TQ1_0 TQ2_0, the 4-bit float types MXFP4 NVFP4 and the low-bit types Q1_0
 * Q2_0 to f32 (drawn in docs/formats.md). TQ1_0 keeps five base-3 digits in a byte as a binary
 * fraction: digit n is read by multiplying the byte by 3^n (mod 256) and taking the carry of a
 * further times 3. FP4 books hold doubled values, so scales are read as half of what their bits
 * say. Read next: validate.c. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/grid.h"

const int8_t pith_book_fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Digits 0 .. digits - 1 of `count` packed bytes in element order: all digits 0, then all 1, ... */
static void unpack_trits(const uint8_t *bytes, int count, int digits, float d, float *y) {
    uint32_t power = 1;
    for (int digit = 0; digit < digits; digit++, power *= 3, y += count) {
        for (int j = 0; j < count; j++) {
            uint32_t q = bytes[j] * power & 0xFFu;
            y[j] = (float)((int)(q * 3 >> 8) - 1) * d;
        }
    }
}

void pith_decode_tq1_0(const void *src, float *dst, size_t n) {
    const pith_block_tq1_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++, dst += PITH_BLOCK_SUPER) {
        float d = pith_load_f16(b->d);
        unpack_trits(b->qs, 32, 5, d, dst);
        unpack_trits(b->qs + 32, 16, 5, d, dst + 160);
        unpack_trits(b->qh, 4, 4, d, dst + 240);
    }
}

void pith_decode_tq2_0(const void *src, float *dst, size_t n) {
    const pith_block_tq2_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int g = 0; g < 8; g++, dst += 32) { /* half g/4, bit pair g%4 */
            const uint8_t *qs = b->qs + 32 * (g / 4);
            for (int j = 0; j < 32; j++) dst[j] = (float)((qs[j] >> 2 * (g % 4) & 3) - 1) * d;
        }
    }
}

void pith_decode_mxfp4(const void *src, float *dst, size_t n) {
    const pith_block_mxfp4 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_f32_of_e8m0_half(b->e);
        for (int j = 0; j < 16; j++) dst[j] = d * (float)pith_book_fp4[b->qs[j] & 15];
        for (int j = 0; j < 16; j++) dst[j + 16] = d * (float)pith_book_fp4[b->qs[j] >> 4];
    }
}

/* Code 8 is minus zero in the standard; readers of this format give +0 * scale, which is 0. */
void pith_decode_nvfp4(const void *src, float *dst, size_t n) {
    const pith_block_nvfp4 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_NVFP4; i++, b++) {
        for (int s = 0; s < 4; s++, dst += 16) {
            const uint8_t *qs = b->qs + 8 * s;
            float d = pith_f32_of_ue4m3_half(b->d[s]);
            for (int j = 0; j < 8; j++) dst[j] = d * (float)pith_book_fp4[qs[j] & 15];
            for (int j = 0; j < 8; j++) dst[j + 8] = d * (float)pith_book_fp4[qs[j] >> 4];
        }
    }
}

void pith_decode_q1_0(const void *src, float *dst, size_t n) {
    const pith_block_q1_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_Q1_0; i++, b++, dst += PITH_BLOCK_Q1_0) {
        uint32_t minus = pith_bits_of_f32(pith_load_f16(b->d)) ^ 0x80000000u;
        for (int j = 0; j < PITH_BLOCK_Q1_0; j++) { /* bit 1 turns -d into +d */
            uint32_t bit = (uint32_t)b->qs[j / 8] >> j % 8 & 1u;
            dst[j] = pith_f32_of_bits(minus ^ bit << 31);
        }
    }
}

void pith_decode_q2_0(const void *src, float *dst, size_t n) {
    const pith_block_q2_0 *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_Q2_0; i++, b++, dst += PITH_BLOCK_Q2_0) {
        float d = pith_load_f16(b->d);
        for (int j = 0; j < PITH_BLOCK_Q2_0; j++) {
            dst[j] = (float)((b->qs[j / 4] >> 2 * (j % 4) & 3) - 1) * d;
        }
    }
}
