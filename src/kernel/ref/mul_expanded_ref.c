/* SPDX-License-Identifier: Apache-2.0
 * Products of the types whose codes stand for other numbers, or whose groups are many things at
 * once: IQ, FP4, ternary, Q2_K, Q3_K, Q1_0, Q2_0, plain C: the definition (contract: pith_mul in
 * kernel.h). Each type is a function that writes one group of a panel block as small signed codes
 * and scales; mul_integer_ref.c adds groups up.
 *
 * What is a fraction in the file is made whole first, and the power of two goes to d, where it
 * costs no bit: IQ2 (1/2 + s) / 4 is (2 s + 1) / 8; IQ3_XXS (1/2 + s) / 2 is (2 s + 1) / 4; IQ1
 * grid +- 1/8 is (8 grid +- 1) / 8. The largest sum of a group, all below 2^24:
 *   IQ4_XS 32 * 127 * 127 * 32 = 16516096    IQ3_XXS 31 * 62 * 127 * 32    IQ2 31 * 43 * 127 * 32
 * Not here: sums (mul_integer_ref.c), layouts (panel.h, panel_ref.c). */
#include "kernel/panel.h"
#include "kernel/ref/group_ref.h"
#include "kernel/ref/ref.h"
#include "quant/block.h"
#include "quant/grid.h"

enum { ROWS = PITH_PANEL_ROWS };

/* Byte b of row r of a field that is kept in units. */
static uint32_t byte_of(const uint8_t (*units)[64], uint32_t r, uint32_t b) {
    return units[b / 4][4 * r + b % 4];
}

static uint32_t u16_of(const uint8_t (*units)[64], uint32_t r, uint32_t b) {
    return byte_of(units, r, b) | byte_of(units, r, b + 1) << 8;
}

static uint32_t u32_of(const uint8_t (*units)[64], uint32_t r, uint32_t b) {
    return u16_of(units, r, b) | u16_of(units, r, b + 2) << 16;
}

/* A field of one unit as units. */
#define UNITS(field) ((const uint8_t(*)[64])(const void *)(field))

static void read_f16(float *out, const uint16_t *half, float factor) {
    for (int r = 0; r < ROWS; r++) out[r] = pith_f32_of_f16(half[r]) * factor;
}

static void set_scale(pith_group *out, uint32_t r, int first, int second) {
    out->scale[0][r] = first;
    out->scale[1][r] = second;
}

/* Nibbles of 16 bytes: low ones are k = 0..15, high ones k = 16..31, looked up in a book. */
static void unpack_book(pith_group *out, const uint8_t (*q)[64], const int8_t book[16]) {
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t b = 0; b < 16; b++) {
            out->code[b][r] = book[byte_of(q, r, b) & 15];
            out->code[b + 16][r] = book[byte_of(q, r, b) >> 4];
        }
}

/* Two-bit fields `field` of 32 bytes. */
static void unpack_pairs(pith_group *out, const uint8_t (*q)[64], uint32_t field, int offset) {
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t k = 0; k < 32; k++)
            out->code[k][r] = (int16_t)((int)(byte_of(q, r, k) >> 2 * field & 3) - offset);
}

/* The 8 sign bits that a 7-bit sign index stands for: itself and its parity. */
static uint32_t signs_of_index(uint32_t index) {
    uint32_t parity = index ^ index >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return index | (parity & 1u) << 7;
}

/* n elements from k on: magnitudes (bytes of run) with signs. */
static void put_run(pith_group *out, uint32_t r, uint32_t k, uint32_t n, uint64_t run,
                    uint32_t signs) {
    for (uint32_t i = 0; i < n; i++) {
        int value = (int)(run >> 8 * i & 0xFFu);
        out->code[k + i][r] = (int16_t)(signs >> i & 1u ? -value : value);
    }
}

/* 8 elements of IQ1: 8 times a grid value, and delta. */
static void put_run_iq1(pith_group *out, uint32_t r, uint32_t k, uint32_t index, int delta) {
    uint64_t run = pith_grid_iq1s[index];
    for (uint32_t i = 0; i < 8; i++) {
        int value = (int)((run >> 8 * i & 0xFFu) ^ 0x80u) - 0x80; /* sign-extends the byte */
        out->code[k + i][r] = (int16_t)(8 * value + delta);
    }
}

static void unpack_iq4_nl(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq4_nl *b = block;
    (void)index;
    unpack_book(out, b->q, pith_book_iq4);
    for (uint32_t r = 0; r < ROWS; r++) set_scale(out, r, 1, 1);
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_iq4_xs(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq4_xs *b = block;
    unpack_book(out, b->q + 4 * index, pith_book_iq4);
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t low = u32_of(UNITS(b->scales_l), r, 0) >> 4 * index & 15,
                 high = (uint32_t)b->scales_h[r] >> 2 * index & 3;
        int scale = (int)(low | high << 4) - 32;
        set_scale(out, r, scale, scale);
    }
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_mxfp4(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_mxfp4 *b = block;
    (void)index;
    unpack_book(out, b->q, pith_book_fp4);
    for (uint32_t r = 0; r < ROWS; r++) {
        set_scale(out, r, 1, 1);
        out->d[0][r] = pith_f32_of_e8m0_half(b->e[r]);
    }
}

/* Sub-blocks 2 * index and 2 * index + 1 of 16 elements: 8 bytes each, low nibbles first. */
static void unpack_nvfp4(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_nvfp4 *b = block;
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t s = 2 * index + half;
            for (uint32_t i = 0; i < 8; i++) {
                uint32_t byte = byte_of(b->q, r, 8 * s + i);
                out->code[16 * half + i][r] = pith_book_fp4[byte & 15];
                out->code[16 * half + 8 + i][r] = pith_book_fp4[byte >> 4];
            }
            out->d[half][r] = pith_f32_of_ue4m3_half((uint8_t)byte_of(UNITS(b->d), r, s));
        }
}

static void unpack_q2_k(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q2_k *b = block;
    unpack_pairs(out, b->q + 8 * (index / 4), index % 4, 0);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t byte = byte_of(b->scales, r, 2 * index + half);
            out->scale[half][r] = (int32_t)(byte & 15);
            out->minimum[half][r] = (int32_t)(byte >> 4);
        }
    read_f16(out->d[0], b->d, 1.0f);
    read_f16(out->dmin, b->dmin, 1.0f);
}

static void unpack_q3_k(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q3_k *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < 32; k++) {
            const pith_panel_q3_k_part *part = &b->part[k / 4];
            int low = part->q[index / 4][4 * r + k % 4] >> 2 * (index % 4) & 3,
                high = part->h[4 * r + k % 4] >> index & 1;
            out->code[k][r] = (int16_t)((low | high << 2) - 4);
        }
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t s = 2 * index + half, low = byte_of(b->scales, r, s % 8) >> 4 * (s / 8) & 15,
                     high = byte_of(b->scales, r, 8 + s % 4) >> 2 * (s / 4) & 3;
            out->scale[half][r] = (int32_t)(low | high << 4) - 32;
        }
    }
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_iq2_xxs(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq2_xxs *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t packed = u32_of(b->q, r, 8 * index + 4);
        int scale = (int)(2 * (packed >> 28) + 1);
        for (uint32_t l = 0; l < 4; l++)
            put_run(out, r, 8 * l, 8, pith_grid_iq2xxs[byte_of(b->q, r, 8 * index + l)],
                    signs_of_index(packed >> 7 * l & 127));
        set_scale(out, r, scale, scale);
    }
    read_f16(out->d[0], b->d, 0.125f);
}

/* Scales of IQ2_XS and IQ2_S: a nibble for 16 elements. */
static void set_scale_nibbles(pith_group *out, uint32_t r, uint32_t byte) {
    set_scale(out, r, (int)(2 * (byte & 15) + 1), (int)(2 * (byte >> 4) + 1));
}

static void unpack_iq2_xs(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq2_xs *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t l = 0; l < 4; l++) {
            uint32_t v = u16_of(b->q, r, 8 * index + 2 * l);
            put_run(out, r, 8 * l, 8, pith_grid_iq2xs[v & 511], signs_of_index(v >> 9));
        }
        set_scale_nibbles(out, r, byte_of(b->scales, r, index));
    }
    read_f16(out->d[0], b->d, 0.125f);
}

static void unpack_iq2_s(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq2_s *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t l = 0; l < 4; l++) {
            uint32_t high = byte_of(b->h, r, index) >> 2 * l & 3,
                     low = byte_of(b->q, r, 4 * index + l);
            put_run(out, r, 8 * l, 8, pith_grid_iq2s[low | high << 8],
                    byte_of(b->signs, r, 4 * index + l));
        }
        set_scale_nibbles(out, r, byte_of(b->scales, r, index));
    }
    read_f16(out->d[0], b->d, 0.125f);
}

static void unpack_iq3_xxs(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq3_xxs *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t packed = u32_of(b->signs, r, 4 * index);
        int scale = (int)(2 * (packed >> 28) + 1);
        for (uint32_t i = 0; i < 8; i++)
            put_run(out, r, 4 * i, 4, pith_grid_iq3xxs[byte_of(b->q, r, 8 * index + i)],
                    signs_of_index(packed >> 7 * (i / 2) & 127) >> 4 * (i % 2));
        set_scale(out, r, scale, scale);
    }
    read_f16(out->d[0], b->d, 0.25f);
}

static void unpack_iq3_s(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq3_s *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        int nibble = (int)(u32_of(UNITS(b->scales), r, 0) >> 4 * index & 15);
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t high = byte_of(b->h, r, index) >> i & 1, low = byte_of(b->q, r, 8 * index + i);
            put_run(out, r, 4 * i, 4, pith_grid_iq3s[low | high << 8],
                    byte_of(b->signs, r, 4 * index + i / 2) >> 4 * (i % 2));
        }
        set_scale(out, r, 2 * nibble + 1, 2 * nibble + 1);
    }
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_iq1_s(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq1_s *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t qh = u16_of(b->h, r, 2 * index);
        int scale = (int)(2 * (qh >> 12 & 7) + 1);
        for (uint32_t l = 0; l < 4; l++)
            put_run_iq1(out, r, 8 * l, byte_of(b->q, r, 4 * index + l) | (qh >> 3 * l & 7) << 8,
                        qh >> 15 ? -1 : 1);
        set_scale(out, r, scale, scale);
    }
    read_f16(out->d[0], b->d, 0.125f);
}

static void unpack_iq1_m(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_iq1_m *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t word = u16_of(b->scales, r, 2 * (index / 2)) >> 6 * (index % 2), d = 0;
        for (uint32_t l = 0; l < 4; l++) {
            uint32_t nibble = byte_of(b->h, r, 2 * index + l / 2) >> 4 * (l % 2) & 15;
            put_run_iq1(out, r, 8 * l, byte_of(b->q, r, 4 * index + l) | (nibble & 7) << 8,
                        nibble & 8 ? -1 : 1);
            d |= u16_of(b->scales, r, 2 * l) >> 12 << 4 * l;
        }
        set_scale(out, r, (int)(2 * (word & 7) + 1), (int)(2 * (word >> 3 & 7) + 1));
        out->d[0][r] = pith_f32_of_f16((uint16_t)d) * 0.125f;
    }
}

/* Digit n of five (four) base-3 digits of a byte, -1 .. 1. */
static int16_t digit_of(uint32_t byte, uint32_t n) {
    uint32_t power = 1;
    for (uint32_t i = 0; i < n; i++) power *= 3;
    return (int16_t)((int)((byte * power & 0xFF) * 3 >> 8) - 1);
}

static void unpack_tq1_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_tq1_0 *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < 32; k++) {
            uint32_t at = 32 * index + k;
            if (at < 160)
                out->code[k][r] = digit_of(byte_of(b->q, r, k), index);
            else if (at < 240)
                out->code[k][r] = digit_of(byte_of(b->q, r, 32 + at % 16), (at - 160) / 16);
            else
                out->code[k][r] = digit_of(byte_of(UNITS(b->h), r, at % 4), (at - 240) / 4);
        }
        set_scale(out, r, 1, 1);
    }
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_tq2_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_tq2_0 *b = block;
    unpack_pairs(out, b->q + 8 * (index / 4), index % 4, 1);
    for (uint32_t r = 0; r < ROWS; r++) set_scale(out, r, 1, 1);
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_q1_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q1_0 *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < 32; k++)
            out->code[k][r] = byte_of(b->q, r, 4 * index + k / 8) >> k % 8 & 1 ? 1 : -1;
        set_scale(out, r, 1, 1);
    }
    read_f16(out->d[0], b->d, 1.0f);
}

static void unpack_q2_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q2_0 *b = block;
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < 32; k++)
            out->code[k][r] =
                (int16_t)((int)(byte_of(b->q, r, 8 * index + k / 4) >> 2 * (k % 4) & 3) - 1);
        set_scale(out, r, 1, 1);
    }
    read_f16(out->d[0], b->d, 1.0f);
}

void pith_mul_iq4_nl_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &(pith_group_format){unpack_iq4_nl, sizeof(pith_panel_iq4_nl), 1,
                                                   PITH_SUM_SMALL, 0, 0});
}

static const pith_group_format iq4_xs = {
    unpack_iq4_xs, sizeof(pith_panel_iq4_xs), 8, PITH_SUM_SUPER, 0, 127};

void pith_mul_iq4_xs_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq4_xs);
}

void pith_mul_fast_iq4_xs_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq4_xs);
}

void pith_mul_mxfp4_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &(pith_group_format){unpack_mxfp4, sizeof(pith_panel_mxfp4), 1,
                                                   PITH_SUM_SMALL, 0, 0});
}

void pith_mul_nvfp4_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &(pith_group_format){unpack_nvfp4, sizeof(pith_panel_nvfp4), 2,
                                                   PITH_SUM_FLOATS, 0, 0});
}

static const pith_group_format q2_k = {
    unpack_q2_k, sizeof(pith_panel_q2_k), 8, PITH_SUM_HALVES, -1, 3};

void pith_mul_q2_k_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &q2_k);
}

void pith_mul_fast_q2_k_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &q2_k);
}

static const pith_group_format q3_k = {
    unpack_q3_k, sizeof(pith_panel_q3_k), 8, PITH_SUM_SUPER, 0, 4};

void pith_mul_q3_k_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &q3_k);
}

void pith_mul_fast_q3_k_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &q3_k);
}

static const pith_group_format iq1_s = {
    unpack_iq1_s, sizeof(pith_panel_iq1_s), 8, PITH_SUM_SUPER, 0, 9};

void pith_mul_iq1_s_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq1_s);
}

void pith_mul_fast_iq1_s_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq1_s);
}

static const pith_group_format iq1_m = {
    unpack_iq1_m, sizeof(pith_panel_iq1_m), 8, PITH_SUM_SUPER, 0, 9};

void pith_mul_iq1_m_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq1_m);
}

void pith_mul_fast_iq1_m_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq1_m);
}

static const pith_group_format iq2_xxs = {
    unpack_iq2_xxs, sizeof(pith_panel_iq2_xxs), 8, PITH_SUM_SUPER, 0, 43};

void pith_mul_iq2_xxs_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq2_xxs);
}

void pith_mul_fast_iq2_xxs_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq2_xxs);
}

static const pith_group_format iq2_xs = {
    unpack_iq2_xs, sizeof(pith_panel_iq2_xs), 8, PITH_SUM_SUPER, 0, 43};

void pith_mul_iq2_xs_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq2_xs);
}

void pith_mul_fast_iq2_xs_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq2_xs);
}

static const pith_group_format iq2_s = {
    unpack_iq2_s, sizeof(pith_panel_iq2_s), 8, PITH_SUM_SUPER, 0, 43};

void pith_mul_iq2_s_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq2_s);
}

void pith_mul_fast_iq2_s_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq2_s);
}

static const pith_group_format iq3_xxs = {
    unpack_iq3_xxs, sizeof(pith_panel_iq3_xxs), 8, PITH_SUM_SUPER, 0, 62};

void pith_mul_iq3_xxs_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq3_xxs);
}

void pith_mul_fast_iq3_xxs_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq3_xxs);
}

static const pith_group_format iq3_s = {
    unpack_iq3_s, sizeof(pith_panel_iq3_s), 8, PITH_SUM_SUPER, 0, 15};

void pith_mul_iq3_s_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &iq3_s);
}

void pith_mul_fast_iq3_s_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &iq3_s);
}

static const pith_group_format tq1_0 = {
    unpack_tq1_0, sizeof(pith_panel_tq1_0), 8, PITH_SUM_SUPER, 0, 1};

void pith_mul_tq1_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &tq1_0);
}

void pith_mul_fast_tq1_0_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &tq1_0);
}

static const pith_group_format tq2_0 = {
    unpack_tq2_0, sizeof(pith_panel_tq2_0), 8, PITH_SUM_SUPER, 0, 2};

void pith_mul_tq2_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &tq2_0);
}

void pith_mul_fast_tq2_0_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &tq2_0);
}

void pith_mul_q1_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q1_0, sizeof(pith_panel_q1_0), 4, PITH_SUM_SMALL, 0, 0});
}

void pith_mul_q2_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q2_0, sizeof(pith_panel_q2_0), 2, PITH_SUM_SMALL, 0, 0});
}
