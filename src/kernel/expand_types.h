/* SPDX-License-Identifier: Apache-2.0
 * The types that are expanded before they are multiplied, except those with code books
 * (expand_grids.h): up to 256 k of a panel (layouts: panel.h) -> bytes and factors (expanded.h).
 * One source for all tiers: the file that includes this has included words_avx2.h, words_avx512.h
 * or words_neon.h. Meaning of the fields: docs/formats.md; the same in plain C:
 * ref/mul_expanded_ref.c.
 *
 * Where products want unsigned codes (WORDS_OFFSET), every function writes them plus an offset, by
 * the range of the type; Q2_K has none. A type with one scale for 32 k fills both halves of
 * `scale`. */
#ifndef PITH_KERNEL_EXPAND_TYPES_H
#define PITH_KERNEL_EXPAND_TYPES_H

#include "kernel/expand_scales.h"
#include "quant/grid.h"

/* WORDS_OFFSET of the tier: 1, or 0 where codes are signed bytes. */
enum {
    OFFSET_GROUP = 16 * WORDS_OFFSET,
    OFFSET_SMALL = 32 * WORDS_OFFSET,
    OFFSET_BOOK = 64 * WORDS_OFFSET,
    OFFSET_WIDE = 128 * WORDS_OFFSET
};

/* A book of 16 values with the offset added. */
ALWAYS_INLINE void read_book(uint8_t out[16], const int8_t book[16], int offset) {
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)(book[i] + offset);
}

/* 16 bytes of nibbles of each row: low ones are k = 0..15, high ones k = 16..31. */
ALWAYS_INLINE void expand_book(uint8_t (*code)[64], const uint8_t (*q)[64],
                               const uint8_t book[16]) {
    UNROLL for (int i = 0; i < 4; i++) {
        words16 v = words_next(q[i]);
        words_store(code[i], bytes_look(book, byte_field(v, 0, 15)));
        words_store(code[i + 4], bytes_look(book, byte_field(v, 4, 15)));
    }
}

static inline void expand_iq4_nl(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq4_nl *b = (const void *)panel;
    uint8_t book[16];
    read_book(book, pith_book_iq4, OFFSET_WIDE);
    for (int j = 0; j < n; j++, b++) {
        expand_book(out->code[j], b->q, book);
        halves_to_ps(out->f.d[j], b->d, 1.0f);
    }
}

static inline void expand_iq4_xs(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq4_xs *b = (const void *)panel;
    uint8_t book[16];
    read_book(book, pith_book_iq4, OFFSET_WIDE);
    for (int j = 0; j < n; j++) expand_book(out->code[j], b->q + 4 * j, book);
    scales_iq4_xs(&out->f, b);
}

static inline void expand_mxfp4(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_mxfp4 *b = (const void *)panel;
    uint8_t book[16];
    read_book(book, pith_book_fp4, OFFSET_GROUP);
    for (int j = 0; j < n; j++, b++) {
        expand_book(out->code[j], b->q, book);
        words_bits_to_ps(out->f.d[j], bits_of_e8m0_half(words_of_u8(b->e)), 1.0f);
    }
}

/* Half of an unsigned E4M3: its 7 bits as the top of a float of exponent 127 more, times 2^119;
 * 0x7F reads as 0. */
ALWAYS_INLINE void set_ue4m3_half(float *out, words16 byte) {
    words16 x = words_and(byte, words_all(127));
    words16 bits = words_left(x, 20), is_nan = words_equal(x, words_all(127));
    words_bits_to_ps(out, words_xor(bits, words_and(bits, is_nan)), 0x1p119f);
}

/* Two groups a block; 16 k lie in 8 bytes, low nibbles first. */
static inline void expand_nvfp4(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_nvfp4 *b = (const void *)panel;
    uint8_t book[16];
    read_book(book, pith_book_fp4, OFFSET_SMALL);
    for (int j = 0; j < n; j += 2, b++) {
        words16 d = words_next(b->d);
        for (int s = 0; s < 4; s++) {
            uint8_t(*code)[64] = out->code[j + s / 2] + 4 * (s % 2);
            for (int i = 0; i < 2; i++) {
                words16 v = words_next(b->q[2 * s + i]);
                words_store(code[i], bytes_look(book, byte_field(v, 0, 15)));
                words_store(code[i + 2], bytes_look(book, byte_field(v, 4, 15)));
            }
            set_ue4m3_half(out->f.scale[j + s / 2][s % 2], field_of(d, 8 * s, 255));
        }
    }
}

/* Two-bit fields of 2 x 32 bytes: k = 128 f + 32 i + l is field i of byte 32 f + l. */
ALWAYS_INLINE void expand_pairs(expanded *out, const uint8_t (*q)[64], int offset) {
    for (int f = 0; f < 2; f++)
        for (int g = 0; g < 8; g++) {
            words16 v = words_next(q[8 * f + g]);
            UNROLL for (int i = 0; i < 4; i++) {
                words_store(out->code[4 * f + i][g],
                            bytes_add(byte_field(v, 2 * i, 3), bytes_all(offset)));
            }
        }
}

static inline void expand_q2_k(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_q2_k *b = (const void *)panel;
    (void)n; /* always 8 */
    expand_pairs(out, b->q, 0);
    scales_q2_k(&out->f, b);
}

static inline void expand_q3_k(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_q3_k *b = (const void *)panel;
    (void)n; /* always 8 */
    for (int g = 0; g < 8; g++) {
        words16 h = words_next(b->part[g].h);
        for (int f = 0; f < 2; f++) {
            words16 v = words_next(b->part[g].q[f]);
            UNROLL for (int i = 0; i < 4; i++) {
                words16 high = words_left(byte_field(h, 4 * f + i, 1), 2);
                words16 code = words_or(byte_field(v, 2 * i, 3), high);
                words_store(out->code[4 * f + i][g], bytes_add(code, bytes_all(OFFSET_SMALL - 4)));
            }
        }
    }
    scales_q3_k(&out->f, b);
}

/* Five base-3 digits: byte * 3^n mod 256 is below 86 for digit 0, below 171 for 1. */
ALWAYS_INLINE words16 digit_codes(words16 v) {
    words16 code = bytes_sub(bytes_all(OFFSET_SMALL - 1), bytes_at_least(v, 86));
    return bytes_sub(code, bytes_at_least(v, 171));
}

ALWAYS_INLINE words16 times_three(words16 v) {
    return bytes_add(v, bytes_add(v, v));
}

static inline void expand_tq1_0(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_tq1_0 *b = (const void *)panel;
    (void)n; /* always 8 */
    for (int g = 0; g < 8; g++) {
        words16 v = words_next(b->q[g]);
        for (int digit = 0; digit < 5; digit++, v = times_three(v))
            words_store(out->code[digit][g], digit_codes(v));
    }
    for (int g = 0; g < 4; g++) {
        words16 v = words_next(b->q[8 + g]);
        for (int digit = 0; digit < 5; digit++, v = times_three(v))
            words_store(out->code[5 + digit / 2][4 * (digit % 2) + g], digit_codes(v));
    }
    words16 v = words_load(b->h);
    for (int digit = 0; digit < 4; digit++, v = times_three(v))
        words_store(out->code[7][4 + digit], digit_codes(v));
    set_scale_one(&out->f);
    halves_to_ps(out->f.d[0], b->d, 1.0f);
}

static inline void expand_tq2_0(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_tq2_0 *b = (const void *)panel;
    (void)n; /* always 8 */
    expand_pairs(out, b->q, OFFSET_SMALL - 1);
    set_scale_one(&out->f);
    halves_to_ps(out->f.d[0], b->d, 1.0f);
}

/* Four groups a block; a bit is +1 or -1. */
static inline void expand_q1_0(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_q1_0 *b = (const void *)panel;
    for (int j = 0; j < n; j++) {
        const pith_panel_q1_0 *block = b + j / 4;
        words16 v = words_next(block->q[j % 4]);
        for (int i = 0; i < 8; i++) {
            words16 one = bytes_negate(bytes_all(-1), words_spread(v, i / 2), i % 2);
            words_store(out->code[j][i], bytes_add(one, bytes_all(OFFSET_GROUP)));
        }
        halves_to_ps(out->f.d[j], block->d, 1.0f);
    }
}

/* Two groups a block; a byte holds 4 consecutive k. */
static inline void expand_q2_0(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_q2_0 *b = (const void *)panel;
    for (int j = 0; j < n; j++) {
        const pith_panel_q2_0 *block = b + j / 2;
        for (int i = 0; i < 8; i++) {
            words16 v = words_load(block->q[2 * (j % 2) + i / 4]);
            words16 byte = field_of(v, 8 * (i % 4), 255);
            words16 apart = words_or(words_or(byte, words_left(byte, 6)),
                                     words_or(words_left(byte, 12), words_left(byte, 18)));
            apart = words_and(apart, bytes_all(3));
            words_store(out->code[j][i], bytes_add(apart, bytes_all(OFFSET_GROUP - 1)));
        }
        halves_to_ps(out->f.d[j], block->d, 1.0f);
    }
}

#endif
