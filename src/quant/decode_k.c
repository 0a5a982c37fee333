/* SPDX-License-Identifier: Apache-2.0
 * The K types Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K to f32 (drawn in docs/formats.md).
 * A super-block is 256 elements in two halves of 128 (Q2_K, Q3_K, Q6_K) or four chunks of 64
 * (Q4_K, Q5_K); groups of 16 or 32 elements share an integer scale that multiplies the block's
 * f16 scale d. Products are formed in the order (d * scale) * code - (dmin * min), which fixes
 * every bit. Pictures: docs/formats.md. Read next: decode_iq.c. */
#include "quant/block.h"
#include "quant/codec.h"

void pith_decode_q2_k(const void *src, float *dst, size_t n) {
    const pith_block_q2_k *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d), dmin = pith_load_f16(b->dmin);
        for (int s = 0; s < 16; s++, dst += 16) { /* group s: half s/8, bit pair (s%8)/2 */
            const uint8_t *qs = b->qs + 32 * (s / 8) + 16 * (s % 2);
            int shift = 2 * (s % 8 / 2);
            float scale = d * (float)(b->scales[s] & 15),
                  minimum = dmin * (float)(b->scales[s] >> 4);
            for (int j = 0; j < 16; j++) dst[j] = scale * (float)(qs[j] >> shift & 3) - minimum;
        }
    }
}

void pith_decode_q3_k(const void *src, float *dst, size_t n) {
    const pith_block_q3_k *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int s = 0; s < 16; s++, dst += 16) {
            const uint8_t *qs = b->qs + 32 * (s / 8) + 16 * (s % 2),
                          *hmask = b->hmask + 16 * (s % 2);
            int shift = 2 * (s % 8 / 2), bit = s / 2;
            int low = s < 8 ? b->scales[s] & 15 : b->scales[s - 8] >> 4;
            int high = b->scales[8 + s % 4] >> 2 * (s / 4) & 3;
            float scale = d * (float)((low | high << 4) - 32);
            for (int j = 0; j < 16; j++) {
                int code = (qs[j] >> shift & 3) | (hmask[j] >> bit & 1) << 2;
                dst[j] = scale * (float)(code - 4);
            }
        }
    }
}

void pith_decode_q4_k(const void *src, float *dst, size_t n) {
    const pith_block_q4_k *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d), dmin = pith_load_f16(b->dmin);
        for (int s = 0; s < 8; s++, dst += 32) { /* even s: low nibbles, odd s: high nibbles */
            const uint8_t *qs = b->qs + 32 * (s / 2);
            int shift = 4 * (s % 2), scale_code, min_code;
            pith_scale_min_get(b->scales, s, &scale_code, &min_code);
            float scale = d * (float)scale_code, minimum = dmin * (float)min_code;
            for (int j = 0; j < 32; j++) dst[j] = scale * (float)(qs[j] >> shift & 15) - minimum;
        }
    }
}

void pith_decode_q5_k(const void *src, float *dst, size_t n) {
    const pith_block_q5_k *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d), dmin = pith_load_f16(b->dmin);
        for (int s = 0; s < 8; s++, dst += 32) {
            const uint8_t *qs = b->qs + 32 * (s / 2);
            int shift = 4 * (s % 2), scale_code, min_code;
            pith_scale_min_get(b->scales, s, &scale_code, &min_code);
            float scale = d * (float)scale_code, minimum = dmin * (float)min_code;
            for (int j = 0; j < 32; j++) {
                int code = (qs[j] >> shift & 15) | (b->qh[j] >> s & 1) << 4;
                dst[j] = scale * (float)code - minimum;
            }
        }
    }
}

void pith_decode_q6_k(const void *src, float *dst, size_t n) {
    const pith_block_q6_k *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int s = 0; s < 16;
             s++, dst += 16) { /* half s/8, quarter g of that half, 16 of its 32 */
            int half = s / 8, g = s % 8 / 2, l = 16 * (s % 2);
            const uint8_t *ql = b->ql + 64 * half + 32 * (g % 2) + l, *qh = b->qh + 32 * half + l;
            int low_shift = 4 * (g / 2), high_shift = 2 * g;
            float scale = d * (float)b->scales[s];
            for (int j = 0; j < 16; j++) {
                int code = (ql[j] >> low_shift & 15) | (qh[j] >> high_shift & 3) << 4;
                dst[j] = scale * (float)(code - 32);
            }
        }
    }
}

void pith_decode_q8_k(const void *src, float *dst, size_t n) {
    const pith_block_q8_k *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++, dst += PITH_BLOCK_SUPER) {
        float d = pith_load_f32(b->d);
        for (int j = 0; j < PITH_BLOCK_SUPER; j++) dst[j] = d * (float)b->qs[j];
    }
}
