/* SPDX-License-Identifier: Apache-2.0
 * Fields of 16 rows' words, and the scales of types that are kept in units (layouts: panel.h), as
 * factors (expanded.h). One source for all tiers: the file that includes this has included
 * words_avx2.h, words_avx512.h or words_neon.h. Users: expand_types.h, x86/codes_256.h. */
#ifndef PITH_KERNEL_EXPAND_SCALES_H
#define PITH_KERNEL_EXPAND_SCALES_H

#include "kernel/expanded.h"
#include "kernel/panel.h"

/* A byte in all four bytes of all words. */
ALWAYS_INLINE words16 bytes_all(int value) {
    return words_all((uint32_t)(value & 255) * 0x01010101u);
}

/* A field of `mask` bits from bit n on of each word. */
ALWAYS_INLINE words16 field_of(words16 v, int n, uint32_t mask) {
    return words_and(words_right(v, n), words_all(mask));
}

/* The field in each byte. */
ALWAYS_INLINE words16 byte_field(words16 v, int n, uint32_t mask) {
    return field_of(v, n, mask * 0x01010101u);
}

/* A scale for both halves of a group. */
ALWAYS_INLINE void set_scale(float (*scale)[16], words16 v) {
    words_to_ps(scale[0], v);
    words_to_ps(scale[1], v);
}

ALWAYS_INLINE void set_scale_one(factors *f) {
    for (int j = 0; j < EXPANDED_GROUPS; j++) set_scale(f->scale[j], words_all(1));
}

/* 2^(e - 128): bits (e - 1) << 23, but subnormal for e = 0 and 1. */
ALWAYS_INLINE words16 bits_of_e8m0_half(words16 e) {
    words16 normal = words_left(words_add(e, words_all((uint32_t)-1)), 23);
    words16 tiny = words_left(words_add(e, words_all(1)), 21);
    words16 is_tiny = words_equal(words_right(e, 1), words_all(0));
    return words_xor(normal, words_and(words_xor(normal, tiny), is_tiny));
}

ALWAYS_INLINE void scales_iq4_xs(factors *f, const pith_panel_iq4_xs *b) {
    words16 low = words_load(b->scales_l), high = words_of_u16(b->scales_h);
    for (int j = 0; j < EXPANDED_GROUPS; j++) {
        words16 two = words_left(field_of(high, 2 * j, 3), 4);
        words16 scale = words_or(field_of(low, 4 * j, 15), two);
        set_scale(f->scale[j], words_add(scale, words_all((uint32_t)-32)));
    }
    halves_to_ps(f->d[0], b->d, 1.0f);
}

ALWAYS_INLINE void scales_q2_k(factors *f, const pith_panel_q2_k *b) {
    for (int s = 0; s < 16; s++) {
        words16 v = words_load(b->scales[s / 4]);
        words_to_ps(f->scale[s / 2][s % 2], field_of(v, 8 * (s % 4), 15));
        words_to_ps(f->minimum[s / 2][s % 2], field_of(v, 8 * (s % 4) + 4, 15));
    }
    halves_to_ps(f->d[0], b->d, 1.0f);
    halves_to_ps(f->dmin, b->dmin, 1.0f);
}

ALWAYS_INLINE void scales_q3_k(factors *f, const pith_panel_q3_k *b) {
    words16 high = words_load(b->scales[2]);
    for (int s = 0; s < 16; s++) {
        words16 low = words_load(b->scales[s % 8 / 4]);
        low = field_of(low, 8 * (s % 4) + 4 * (s / 8), 15);
        words16 two = words_left(field_of(high, 8 * (s % 4) + 2 * (s / 4), 3), 4);
        words_to_ps(f->scale[s / 2][s % 2],
                    words_add(words_or(low, two), words_all((uint32_t)-32)));
    }
    halves_to_ps(f->d[0], b->d, 1.0f);
}

#endif
