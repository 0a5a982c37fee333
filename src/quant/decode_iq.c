/* SPDX-License-Identifier: Apache-2.0
 * The IQ types to f32 (drawn in docs/formats.md). A short run of 8 (or 4) elements is one index
 * into a code book (grid.h); its signs are 8 stored bits, or a 7-bit index whose eighth bit makes
 * the number of minus signs even. IQ1 types add a delta of +-1/8 to every element of a run
 * instead of signs. IQ4_NL and IQ4_XS look single nibbles up in a book of 16 uneven steps. Every
 * stored byte pattern decodes to something: no index can leave its table. Encoders exist for the
 * IQ4 types only. Read next: decode_ternary_fp4.c. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/grid.h"

const int8_t pith_book_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

/* The 8 sign bits that a 7-bit sign index stands for. */
static uint32_t signs_of_index(uint32_t index) {
    uint32_t parity = index ^ index >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return index | (parity & 1u) << 7;
}

/* y[k] = scale * magnitude k of the run, negated where bit k of signs is set. */
static void put_run_8(float *y, float scale, uint64_t run, uint32_t signs) {
    for (int k = 0; k < 8; k++) {
        float value = scale * (float)(int)(run >> 8 * k & 0xFFu);
        y[k] = signs >> k & 1u ? -value : value;
    }
}

static void put_run_4(float *y, float scale, uint32_t run, uint32_t signs) {
    for (int k = 0; k < 4; k++) {
        float value = scale * (float)(int)(run >> 8 * k & 0xFFu);
        y[k] = signs >> k & 1u ? -value : value;
    }
}

/* y[k] = scale * (signed element k + delta), IQ1. */
static void put_run_iq1(float *y, float scale, uint64_t run, float delta) {
    for (int k = 0; k < 8; k++) {
        int element = (int)((run >> 8 * k & 0xFFu) ^ 0x80u) - 0x80; /* sign-extends the byte */
        y[k] = scale * ((float)element + delta);
    }
}

void pith_decode_iq2_xxs(const void *src, float *dst, size_t n) {
    const pith_block_iq2_xxs *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int ib = 0; ib < 8; ib++) {
            const uint8_t *qs = b->qs + 8 * ib;
            uint32_t packed = pith_load_u32(qs + 4);
            float scale = d * (0.5f + (float)(packed >> 28)) * 0.25f;
            for (int l = 0; l < 4; l++, dst += 8) {
                uint32_t signs = signs_of_index(packed >> 7 * l & 127u);
                put_run_8(dst, scale, pith_grid_iq2xxs[qs[l]], signs);
            }
        }
    }
}

void pith_decode_iq2_xs(const void *src, float *dst, size_t n) {
    const pith_block_iq2_xs *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int g = 0; g < 32; g++, dst += 8) { /* run g; 2 runs a scale nibble */
            uint32_t v = pith_load_u16(b->qs + 2 * g);
            int nibble = b->scales[g / 4] >> 4 * (g / 2 % 2) & 15;
            float scale = d * (0.5f + (float)nibble) * 0.25f;
            put_run_8(dst, scale, pith_grid_iq2xs[v & 511u], signs_of_index(v >> 9));
        }
    }
}

void pith_decode_iq2_s(const void *src, float *dst, size_t n) {
    const pith_block_iq2_s *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int g = 0; g < 32; g++, dst += 8) {
            int high = b->qh[g / 4] >> 2 * (g % 4) & 3;
            int nibble = b->scales[g / 4] >> 4 * (g / 2 % 2) & 15;
            float scale = d * (0.5f + (float)nibble) * 0.25f;
            put_run_8(dst, scale, pith_grid_iq2s[b->qs[g] | high << 8], b->signs[g]);
        }
    }
}

void pith_decode_iq3_xxs(const void *src, float *dst, size_t n) {
    const pith_block_iq3_xxs *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int ib = 0; ib < 8; ib++) {
            uint32_t packed = pith_load_u32(b->signs + 4 * ib);
            float scale = d * (0.5f + (float)(packed >> 28)) * 0.5f;
            for (int l = 0; l < 4; l++, dst += 8) {
                const uint8_t *qs = b->qs + 8 * ib + 2 * l;
                uint32_t signs = signs_of_index(packed >> 7 * l & 127u);
                put_run_4(dst, scale, pith_grid_iq3xxs[qs[0]], signs);
                put_run_4(dst + 4, scale, pith_grid_iq3xxs[qs[1]], signs >> 4);
            }
        }
    }
}

void pith_decode_iq3_s(const void *src, float *dst, size_t n) {
    const pith_block_iq3_s *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int g = 0; g < 64; g++, dst += 4) { /* run g of 4 elements, bit g%8 of qh[g/8] */
            int high = b->qh[g / 8] >> g % 8 & 1;
            int nibble = b->scales[g / 16] >> 4 * (g / 8 % 2) & 15;
            float scale = d * (float)(1 + 2 * nibble);
            uint32_t signs = (uint32_t)b->signs[g / 2] >> 4 * (g % 2);
            put_run_4(dst, scale, pith_grid_iq3s[b->qs[g] | high << 8], signs);
        }
    }
}

void pith_decode_iq1_s(const void *src, float *dst, size_t n) {
    const pith_block_iq1_s *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        for (int ib = 0; ib < 8; ib++) {
            uint32_t qh = pith_load_u16(b->qh + 2 * ib);
            float scale = d * (float)(2 * (qh >> 12 & 7u) + 1), delta = qh >> 15 ? -0.125f : 0.125f;
            for (int l = 0; l < 4; l++, dst += 8) {
                uint32_t index = b->qs[4 * ib + l] | (qh >> 3 * l & 7u) << 8;
                put_run_iq1(dst, scale, pith_grid_iq1s[index], delta);
            }
        }
    }
}

void pith_decode_iq1_m(const void *src, float *dst, size_t n) {
    const pith_block_iq1_m *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_f32_of_f16(pith_iq1_m_scale(b->scales));
        for (int g = 0; g < 32; g++, dst += 8) { /* run g; 2 runs a 3-bit scale, 4 scales a word */
            int code = pith_load_u16(b->scales + 2 * (g / 8)) >> 3 * (g / 2 % 4) & 7;
            int nibble = b->qh[g / 2] >> 4 * (g % 2) & 15;
            float scale = d * (float)(2 * code + 1), delta = nibble & 8 ? -0.125f : 0.125f;
            put_run_iq1(dst, scale, pith_grid_iq1s[b->qs[g] | (nibble & 7) << 8], delta);
        }
    }
}

void pith_decode_iq4_nl(const void *src, float *dst, size_t n) {
    const pith_block_iq4_nl *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SMALL; i++, b++, dst += PITH_BLOCK_SMALL) {
        float d = pith_load_f16(b->d);
        for (int j = 0; j < 16; j++) dst[j] = d * (float)pith_book_iq4[b->qs[j] & 15];
        for (int j = 0; j < 16; j++) dst[j + 16] = d * (float)pith_book_iq4[b->qs[j] >> 4];
    }
}

void pith_decode_iq4_xs(const void *src, float *dst, size_t n) {
    const pith_block_iq4_xs *b = src;
    for (size_t i = 0; i < n / PITH_BLOCK_SUPER; i++, b++) {
        float d = pith_load_f16(b->d);
        uint32_t scales_h = pith_load_u16(b->scales_h);
        for (int ib = 0; ib < 8; ib++, dst += 32) {
            const uint8_t *qs = b->qs + 16 * ib;
            int low = b->scales_l[ib / 2] >> 4 * (ib % 2) & 15,
                high = (int)(scales_h >> 2 * ib & 3u);
            float scale = d * (float)((low | high << 4) - 32);
            for (int j = 0; j < 16; j++) dst[j] = scale * (float)pith_book_iq4[qs[j] & 15];
            for (int j = 0; j < 16; j++) dst[j + 16] = scale * (float)pith_book_iq4[qs[j] >> 4];
        }
    }
}
