/* SPDX-License-Identifier: Apache-2.0
 * A 32-bit word of each of 16 rows in four 128-bit registers, for expand_types.h and
 * expand_grids.h. A unit of a panel is such words; a word's 4 bytes are 4 consecutive k where a
 * field holds codes. For every ARM tier; the same names on x86: words_avx2.h, words_avx512.h. */
#ifndef PITH_KERNEL_ARM_WORDS_NEON_H
#define PITH_KERNEL_ARM_WORDS_NEON_H

#include "kernel/arm/vector_math_neon.h"
#include "kernel/book_index.h"

enum {
    WORDS_OFFSET = 0, /* products take signed codes (expand_types.h) */
    WORDS_AHEAD = 2048
};

/* Quads of rows. */
typedef struct words16 {
    uint32x4_t q[4];
} words16;

ALWAYS_INLINE uint8x16_t as_bytes(uint32x4_t v) {
    return vreinterpretq_u8_u32(v);
}

ALWAYS_INLINE uint32x4_t as_words(uint8x16_t v) {
    return vreinterpretq_u32_u8(v);
}

/* Where a panel is read from front to back: a later line comes to L1. */
ALWAYS_INLINE void words_ahead(const void *unit) {
    __builtin_prefetch((const char *)unit + WORDS_AHEAD);
}

ALWAYS_INLINE words16 words_load(const void *unit) {
    const uint8_t *at = unit;
    return (words16){{as_words(vld1q_u8(at)), as_words(vld1q_u8(at + 16)),
                      as_words(vld1q_u8(at + 32)), as_words(vld1q_u8(at + 48))}};
}

ALWAYS_INLINE words16 words_next(const void *unit) {
    words_ahead(unit);
    return words_load(unit);
}

ALWAYS_INLINE void words_store(void *unit, words16 v) {
    uint8_t *at = unit;
    UNROLL for (int i = 0; i < 4; i++) {
        vst1q_u8(at + 16 * i, as_bytes(v.q[i]));
    }
}

ALWAYS_INLINE words16 words_all(uint32_t value) {
    uint32x4_t all = vdupq_n_u32(value);
    return (words16){{all, all, all, all}};
}

ALWAYS_INLINE words16 words_of_u16(const uint16_t *at) {
    return (words16){{vmovl_u16(vld1_u16(at)), vmovl_u16(vld1_u16(at + 4)),
                      vmovl_u16(vld1_u16(at + 8)), vmovl_u16(vld1_u16(at + 12))}};
}

ALWAYS_INLINE words16 words_of_u8(const uint8_t *at) {
    uint8x16_t v = vld1q_u8(at);
    uint16x8_t low = vmovl_u8(vget_low_u8(v)), high = vmovl_high_u8(v);
    return (words16){{vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low),
                      vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)}};
}

ALWAYS_INLINE words16 words_and(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = vandq_u32(a.q[i], b.q[i]);
    }
    return a;
}

ALWAYS_INLINE words16 words_or(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = vorrq_u32(a.q[i], b.q[i]);
    }
    return a;
}

ALWAYS_INLINE words16 words_xor(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = veorq_u32(a.q[i], b.q[i]);
    }
    return a;
}

ALWAYS_INLINE words16 words_add(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = vaddq_u32(a.q[i], b.q[i]);
    }
    return a;
}

/* Byte by byte. */
ALWAYS_INLINE words16 bytes_add(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = as_words(vaddq_u8(as_bytes(a.q[i]), as_bytes(b.q[i])));
    }
    return a;
}

ALWAYS_INLINE words16 bytes_sub(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = as_words(vsubq_u8(as_bytes(a.q[i]), as_bytes(b.q[i])));
    }
    return a;
}

/* n may be a variable: shifts by a register, to the right by a negative number. */
ALWAYS_INLINE words16 words_left(words16 v, int n) {
    UNROLL for (int i = 0; i < 4; i++) {
        v.q[i] = vshlq_u32(v.q[i], vdupq_n_s32(n));
    }
    return v;
}

ALWAYS_INLINE words16 words_right(words16 v, int n) {
    return words_left(v, -n);
}

/* All bits where a == b. */
ALWAYS_INLINE words16 words_equal(words16 a, words16 b) {
    UNROLL for (int i = 0; i < 4; i++) {
        a.q[i] = vceqq_u32(a.q[i], b.q[i]);
    }
    return a;
}

/* All bits of each byte that is at least c (unsigned). */
ALWAYS_INLINE words16 bytes_at_least(words16 v, uint8_t c) {
    UNROLL for (int i = 0; i < 4; i++) {
        v.q[i] = as_words(vcgeq_u8(as_bytes(v.q[i]), vdupq_n_u8(c)));
    }
    return v;
}

ALWAYS_INLINE words16 bytes_at(uint8x16_t table, words16 index) {
    UNROLL for (int i = 0; i < 4; i++) {
        index.q[i] = as_words(vqtbl1q_u8(table, as_bytes(index.q[i])));
    }
    return index;
}

/* table[b] for each byte b, which is below 16. */
ALWAYS_INLINE words16 bytes_look(const void *table, words16 v) {
    return bytes_at(vld1q_u8(table), v);
}

/* Byte `which` of each word, four times. */
ALWAYS_INLINE words16 words_spread(words16 v, int which) {
    static const uint32_t first[4] = {0, 0x04040404, 0x08080808, 0x0C0C0C0C};
    uint8x16_t order = vaddq_u8(as_bytes(vld1q_u32(first)), vdupq_n_u8((uint8_t)which));
    UNROLL for (int i = 0; i < 4; i++) {
        v.q[i] = as_words(vqtbl1q_u8(as_bytes(v.q[i]), order));
    }
    return v;
}

/* The entry of each row. */
ALWAYS_INLINE words16 words_look(const uint32_t *table, const uint8_t *at, const bool is_byte) {
    words16 v;
    UNROLL for (int i = 0; i < 4; i++) {
        v.q[i] = vld1q_dup_u32(table + index_at(at, 4 * i, is_byte));
        v.q[i] = vld1q_lane_u32(table + index_at(at, 4 * i + 1, is_byte), v.q[i], 1);
        v.q[i] = vld1q_lane_u32(table + index_at(at, 4 * i + 2, is_byte), v.q[i], 2);
        v.q[i] = vld1q_lane_u32(table + index_at(at, 4 * i + 3, is_byte), v.q[i], 3);
    }
    return v;
}

/* Entries of rows r and r + 1. */
ALWAYS_INLINE uint32x4_t two_entries(const uint64_t *table, const uint8_t *at, int r,
                                     const bool is_byte) {
    return vreinterpretq_u32_u64(vcombine_u64(vld1_u64(table + index_at(at, r, is_byte)),
                                              vld1_u64(table + index_at(at, r + 1, is_byte))));
}

/* The halves of the 8 bytes of each row's entry. */
ALWAYS_INLINE void words_look_two(const uint64_t *table, const uint8_t *at, const bool is_byte,
                                  words16 two[2]) {
    UNROLL for (int i = 0; i < 4; i++) {
        uint32x4_t a = two_entries(table, at, 4 * i, is_byte),
                   b = two_entries(table, at, 4 * i + 2, is_byte);
        two[0].q[i] = vuzp1q_u32(a, b);
        two[1].q[i] = vuzp2q_u32(a, b);
    }
}

/* Byte j of each word is negated where bit j (half 1: j + 4) of the same byte of `signs` is set. */
ALWAYS_INLINE words16 bytes_negate(words16 v, words16 signs, int half) {
    const uint8x16_t bits = as_bytes(vdupq_n_u32(half ? 0x80402010u : 0x08040201u));
    UNROLL for (int i = 0; i < 4; i++) {
        uint8x16_t minus = vtstq_u8(as_bytes(signs.q[i]), bits);
        v.q[i] = as_words(vsubq_u8(veorq_u8(as_bytes(v.q[i]), minus), minus));
    }
    return v;
}

/* Words as signed numbers. */
ALWAYS_INLINE void words_to_ps(float *out, words16 v) {
    UNROLL for (int i = 0; i < 4; i++) {
        vst1q_f32(out + 4 * i, vcvtq_f32_s32(vreinterpretq_s32_u32(v.q[i])));
    }
}

ALWAYS_INLINE void words_bits_to_ps(float *out, words16 v, float factor) {
    UNROLL for (int i = 0; i < 4; i++) {
        vst1q_f32(out + 4 * i, vmulq_n_f32(vreinterpretq_f32_u32(v.q[i]), factor));
    }
}

ALWAYS_INLINE void halves_to_ps(float *out, const uint16_t *half, float factor) {
    UNROLL for (int i = 0; i < 4; i++) {
        vst1q_f32(out + 4 * i, vmulq_n_f32(vec_load_f16(half + 4 * i), factor));
    }
}

/* Words that hold the bits of a half. */
ALWAYS_INLINE void words_half_to_ps(float *out, words16 v, float factor) {
    UNROLL for (int i = 0; i < 4; i++) {
        float16x4_t half = vreinterpret_f16_u16(vmovn_u32(v.q[i]));
        vst1q_f32(out + 4 * i, vmulq_n_f32(vcvt_f32_f16(half), factor));
    }
}

#endif
