/* SPDX-License-Identifier: Apache-2.0
 * Code groups ([16 rows][4 bytes]) in four registers of 4 rows, for packing (pack_panels.h). One
 * load takes 16 bytes of each of 16 rows and makes 4 groups: 4 x 4 dwords are transposed for every
 * 4 rows. The same names on x86: x86/pack_groups_avx2.h. */
#ifndef PITH_KERNEL_ARM_PACK_GROUPS_NEON_H
#define PITH_KERNEL_ARM_PACK_GROUPS_NEON_H

#include "kernel/pack_rows.h"

#include <arm_neon.h>

typedef struct group16 {
    uint32x4_t rows[4]; /* rows 4 i .. 4 i + 3 in rows[i] */
} group16;

ALWAYS_INLINE group16 group_load(const void *at) {
    const uint32_t *p = at;
    return (group16){{vld1q_u32(p), vld1q_u32(p + 4), vld1q_u32(p + 8), vld1q_u32(p + 12)}};
}

ALWAYS_INLINE void group_store(void *at, group16 group) {
    uint8_t *p = at;
    for (int i = 0; i < 4; i++) vst1q_u8(p + 16 * i, vreinterpretq_u8_u32(group.rows[i]));
}

ALWAYS_INLINE uint32x4_t load_row(const rows16 *rows, size_t offset, size_t r) {
    return vreinterpretq_u32_u8(vld1q_u8(rows->first + r * rows->stride + offset));
}

ALWAYS_INLINE uint32x4_t join_low(uint32x4_t a, uint32x4_t b) {
    return vcombine_u32(vget_low_u32(a), vget_low_u32(b));
}

ALWAYS_INLINE uint32x4_t join_high(uint32x4_t a, uint32x4_t b) {
    return vcombine_u32(vget_high_u32(a), vget_high_u32(b));
}

/* 16 bytes at `offset` of every row -> 4 groups. */
ALWAYS_INLINE void load_groups(const rows16 *rows, size_t offset, group16 group[4]) {
    UNROLL for (size_t i = 0; i < 4; i++) {
        uint32x4_t a = load_row(rows, offset, 4 * i), b = load_row(rows, offset, 4 * i + 1);
        uint32x4_t c = load_row(rows, offset, 4 * i + 2), d = load_row(rows, offset, 4 * i + 3);
        uint32x4_t ab_low = vzip1q_u32(a, b), ab_high = vzip2q_u32(a, b);
        uint32x4_t cd_low = vzip1q_u32(c, d), cd_high = vzip2q_u32(c, d);
        group[0].rows[i] = join_low(ab_low, cd_low);
        group[1].rows[i] = join_high(ab_low, cd_low);
        group[2].rows[i] = join_low(ab_high, cd_high);
        group[3].rows[i] = join_high(ab_high, cd_high);
    }
}

/* [16 rows][4 bytes] -> [4][16 rows], 64 bytes */
ALWAYS_INLINE void store_bytes_apart(void *out, group16 group) {
    uint8x16_t v[4];
    uint8_t *to = out;
    for (int i = 0; i < 4; i++) v[i] = vreinterpretq_u8_u32(group.rows[i]);
    uint8x16_t even_low = vuzp1q_u8(v[0], v[1]), even_high = vuzp1q_u8(v[2], v[3]);
    uint8x16_t odd_low = vuzp2q_u8(v[0], v[1]), odd_high = vuzp2q_u8(v[2], v[3]);
    vst1q_u8(to, vuzp1q_u8(even_low, even_high));
    vst1q_u8(to + 16, vuzp1q_u8(odd_low, odd_high));
    vst1q_u8(to + 32, vuzp2q_u8(even_low, even_high));
    vst1q_u8(to + 48, vuzp2q_u8(odd_low, odd_high));
}

/* [16 rows][2 words] -> [2][16 rows], 64 bytes */
ALWAYS_INLINE void store_words_apart(void *out, group16 group) {
    uint16x8_t v[4];
    uint8_t *to = out;
    for (int i = 0; i < 4; i++) v[i] = vreinterpretq_u16_u32(group.rows[i]);
    vst1q_u8(to, vreinterpretq_u8_u16(vuzp1q_u16(v[0], v[1])));
    vst1q_u8(to + 16, vreinterpretq_u8_u16(vuzp1q_u16(v[2], v[3])));
    vst1q_u8(to + 32, vreinterpretq_u8_u16(vuzp2q_u16(v[0], v[1])));
    vst1q_u8(to + 48, vreinterpretq_u8_u16(vuzp2q_u16(v[2], v[3])));
}

/* Bit 4g + j of each dword -> bit g of byte j. Seen as addresses of bits, g2 g1 g0 j1 j0 becomes j1
 * j0 g2 g1 g0: four exchanges of two address bits. An exchange swaps the bits `low` with those
 * above them. */
ALWAYS_INLINE uint32x4_t spread_quad(uint32x4_t x) {
    uint32x4_t t = vandq_u32(veorq_u32(x, vshrq_n_u32(x, 1)), vdupq_n_u32(0x22222222u));
    x = veorq_u32(x, veorq_u32(t, vshlq_n_u32(t, 1)));
    t = vandq_u32(veorq_u32(x, vshrq_n_u32(x, 3)), vdupq_n_u32(0x0A0A0A0Au));
    x = veorq_u32(x, veorq_u32(t, vshlq_n_u32(t, 3)));
    t = vandq_u32(veorq_u32(x, vshrq_n_u32(x, 6)), vdupq_n_u32(0x00CC00CCu));
    x = veorq_u32(x, veorq_u32(t, vshlq_n_u32(t, 6)));
    t = vandq_u32(veorq_u32(x, vshrq_n_u32(x, 12)), vdupq_n_u32(0x0000F0F0u));
    return veorq_u32(x, veorq_u32(t, vshlq_n_u32(t, 12)));
}

ALWAYS_INLINE group16 spread_bits(group16 v) {
    for (int i = 0; i < 4; i++) v.rows[i] = spread_quad(v.rows[i]);
    return v;
}

#endif
