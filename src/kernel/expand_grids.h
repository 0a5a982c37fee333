/* SPDX-License-Identifier: Apache-2.0
 * The types with code books, IQ1 IQ2 IQ3, expanded: 256 k of a panel (layouts: panel.h) -> bytes
 * and factors (expanded.h). One source for all tiers, as expand_types.h.
 *
 * An index is 8 (IQ3: 4) consecutive k of a row, so the entries of 16 rows make two code groups
 * (IQ3: one). Indexes that are more than a byte of the panel are put together for all 256 k first.
 * Signs are 8 bits a run, or a 7-bit index whose parity is the eighth. Fractions become whole, the
 * power of two goes to d (ref/mul_expanded_ref.c says why that is exact). */
#ifndef PITH_KERNEL_EXPAND_GRIDS_H
#define PITH_KERNEL_EXPAND_GRIDS_H

#include "kernel/expand_types.h"

/* The 8 sign bits that 7-bit indexes stand for: in byte 0 of each word. */
ALWAYS_INLINE words16 signs_of_index(words16 index) {
    static const uint8_t parity[16] = {0,   128, 128, 0,   128, 0,   0,   128,
                                       128, 0,   0,   128, 0,   128, 128, 0};
    words16 four = words_and(words_xor(index, words_right(index, 4)), words_all(15));
    return words_or(index, bytes_look(parity, four));
}

/* Code group of 4 k: entries of 4 bytes. signs: spread. */
ALWAYS_INLINE void expand_four(uint8_t *code, words16 v, words16 signs, int half, int offset) {
    words_store(code, bytes_add(bytes_negate(v, signs, half), bytes_all(offset)));
}

/* Two code groups: entries of 8 bytes. signs: in byte 0. */
ALWAYS_INLINE void expand_eight(uint8_t (*code)[64], const uint64_t *grid, const uint8_t *at,
                                const bool is_byte, words16 signs) {
    words16 two[2], spread = words_spread(signs, 0);
    words_look_two(grid, at, is_byte, two);
    expand_four(code[0], two[0], spread, 0, OFFSET_BOOK);
    expand_four(code[1], two[1], spread, 1, OFFSET_BOOK);
}

/* Indexes of 256 k: words of 16 rows. */
enum { EIGHTS = 32, FOURS = 64 };

/* 2 * v + 1 */
ALWAYS_INLINE words16 odd(words16 v) {
    return words_or(words_left(v, 1), words_all(1));
}

static inline void expand_iq2_xxs(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq2_xxs *b = (const void *)panel;
    for (int j = 0; j < n; j++) {
        words16 packed = words_next(b->q[2 * j + 1]);
        words_ahead(b->q[2 * j]);
        for (int l = 0; l < 4; l++)
            expand_eight(out->code[j] + 2 * l, pith_grid_iq2xxs, b->q[2 * j] + l, true,
                         signs_of_index(field_of(packed, 7 * l, 127)));
        set_scale(out->f.scale[j], odd(words_right(packed, 28)));
    }
    halves_to_ps(out->f.d[0], b->d, 0.125f);
}

/* Scales of IQ2_XS and IQ2_S: a nibble for 16 k. */
ALWAYS_INLINE void expand_scale_nibbles(expanded *out, const uint8_t (*scales)[64]) {
    for (int s = 0; s < 16; s++)
        words_to_ps(out->f.scale[s / 2][s % 2],
                    odd(field_of(words_load(scales[s / 8]), 4 * (s % 8), 15)));
}

static inline void expand_iq2_xs(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq2_xs *b = (const void *)panel;
    uint8_t at[EIGHTS][64];
    for (int i = 0; i < EIGHTS; i++)
        words_store(at[i], field_of(words_load(b->q[i / 2]), 16 * (i % 2), 511));
    for (int i = 0; i < 4 * n; i++) {
        words16 v = i % 2 ? words_load(b->q[i / 2]) : words_next(b->q[i / 2]);
        expand_eight(out->code[i / 4] + 2 * (i % 4), pith_grid_iq2xs, at[i], false,
                     signs_of_index(field_of(v, 16 * (i % 2) + 9, 127)));
    }
    expand_scale_nibbles(out, b->scales);
    halves_to_ps(out->f.d[0], b->d, 0.125f);
}

/* Bytes of `low` with two bits of `high` above. */
static inline void join_iq2_s(uint8_t at[EIGHTS][64], const pith_panel_iq2_s *b) {
    for (int i = 0; i < EIGHTS; i++) {
        words16 two = words_left(field_of(words_load(b->h[i / 16]), 2 * (i % 16), 3), 8);
        words_store(at[i], words_or(field_of(words_load(b->q[i / 4]), 8 * (i % 4), 255), two));
    }
}

static inline void expand_iq2_s(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq2_s *b = (const void *)panel;
    uint8_t at[EIGHTS][64];
    join_iq2_s(at, b);
    for (int i = 0; i < 4 * n; i++) {
        words16 signs = words_right(words_next(b->signs[i / 4]), 8 * (i % 4));
        words_ahead(b->q[i / 4]);
        expand_eight(out->code[i / 4] + 2 * (i % 4), pith_grid_iq2s, at[i], false, signs);
    }
    expand_scale_nibbles(out, b->scales);
    halves_to_ps(out->f.d[0], b->d, 0.125f);
}

static inline void expand_iq3_xxs(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq3_xxs *b = (const void *)panel;
    for (int j = 0; j < n; j++) {
        words16 packed = words_next(b->signs[j]);
        words_ahead(b->q[2 * j]);
        words_ahead(b->q[2 * j + 1]);
        for (int i = 0; i < 8; i++) {
            words16 signs = words_spread(signs_of_index(field_of(packed, 7 * (i / 2), 127)), 0);
            words16 v = words_look(pith_grid_iq3xxs, b->q[2 * j + i / 4] + i % 4, true);
            expand_four(out->code[j][i], v, signs, i % 2, OFFSET_BOOK);
        }
        set_scale(out->f.scale[j], odd(words_right(packed, 28)));
    }
    halves_to_ps(out->f.d[0], b->d, 0.25f);
}

/* Bytes with a ninth bit above. */
static inline void join_iq3_s(uint8_t at[FOURS][64], const pith_panel_iq3_s *b) {
    for (int i = 0; i < FOURS; i++) {
        words16 bit = words_left(field_of(words_load(b->h[i / 32]), i % 32, 1), 8);
        words_store(at[i], words_or(field_of(words_load(b->q[i / 4]), 8 * (i % 4), 255), bit));
    }
}

static inline void expand_iq3_s(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq3_s *b = (const void *)panel;
    words16 scales = words_load(b->scales);
    uint8_t at[FOURS][64];
    join_iq3_s(at, b);
    for (int j = 0; j < n; j++) {
        words16 signs = words_next(b->signs[j]);
        words_ahead(b->q[2 * j]);
        words_ahead(b->q[2 * j + 1]);
        for (int i = 0; i < 8; i++)
            expand_four(out->code[j][i], words_look(pith_grid_iq3s, at[8 * j + i], false),
                        words_spread(signs, i / 2), i % 2, OFFSET_SMALL);
        set_scale(out->f.scale[j], odd(field_of(scales, 4 * j, 15)));
    }
    halves_to_ps(out->f.d[0], b->d, 1.0f);
}

/* Two code groups of IQ1: 8 * grid + delta + offset. Where bit 0 of `minus` is set, delta is -1. */
ALWAYS_INLINE void expand_ternary(uint8_t (*code)[64], const uint8_t *at, words16 minus) {
    words16 is_minus = words_equal(words_and(minus, words_all(1)), words_all(1)), two[2];
    words16 delta = bytes_sub(bytes_all(OFFSET_SMALL + 1), words_and(is_minus, bytes_all(2)));
    words_look_two(pith_grid_iq1s, at, false, two);
    for (int i = 0; i < 2; i++)
        words_store(code[i], bytes_add(words_and(words_left(two[i], 3), bytes_all(0xF8)), delta));
}

/* Bytes with three bits above. Those of run i: from bit `step` * (i % 4) on of half i / 4 % 2 of
 * a word. */
ALWAYS_INLINE void join_iq1(uint8_t at[EIGHTS][64], const uint8_t (*q)[64], const uint8_t (*h)[64],
                            const int step) {
    for (int i = 0; i < EIGHTS; i++) {
        int bit = 16 * (i / 4 % 2) + step * (i % 4);
        words16 three = words_left(field_of(words_load(h[i / 8]), bit, 7), 8);
        words_ahead(q[i / 4]);
        words_store(at[i], words_or(field_of(words_load(q[i / 4]), 8 * (i % 4), 255), three));
    }
}

static inline void expand_iq1_s(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq1_s *b = (const void *)panel;
    uint8_t at[EIGHTS][64];
    join_iq1(at, b->q, b->h, 3);
    for (int j = 0; j < n; j++) {
        words16 h = words_right(words_next(b->h[j / 2]), 16 * (j % 2));
        for (int l = 0; l < 4; l++)
            expand_ternary(out->code[j] + 2 * l, at[4 * j + l], words_right(h, 15));
        set_scale(out->f.scale[j], odd(field_of(h, 12, 7)));
    }
    halves_to_ps(out->f.d[0], b->d, 0.125f);
}

/* The top nibbles of four 16-bit words, the lowest first: bits of a half. */
ALWAYS_INLINE words16 iq1_m_half(words16 first, words16 second) {
    words16 low = words_or(field_of(first, 12, 15), field_of(first, 24, 0xF0));
    words16 high = words_or(field_of(second, 12, 15), field_of(second, 24, 0xF0));
    return words_or(low, words_left(high, 8));
}

static inline void expand_iq1_m(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq1_m *b = (const void *)panel;
    uint8_t at[EIGHTS][64];
    join_iq1(at, b->q, b->h, 4);
    for (int i = 0; i < 4 * n; i++) {
        words16 minus = words_right(words_load(b->h[i / 8]), 4 * (i % 8) + 3);
        expand_ternary(out->code[i / 4] + 2 * (i % 4), at[i], minus);
    }
    for (int s = 0; s < 16; s++) {
        words16 v = words_load(b->scales[s / 8]);
        words_to_ps(out->f.scale[s / 2][s % 2],
                    odd(field_of(v, 16 * (s / 4 % 2) + 3 * (s % 4), 7)));
    }
    words16 d = iq1_m_half(words_load(b->scales[0]), words_load(b->scales[1]));
    words_half_to_ps(out->f.d[0], d, 0.125f);
}

#endif
