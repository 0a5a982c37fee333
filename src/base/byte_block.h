/* SPDX-License-Identifier: Apache-2.0
 * 64 bytes looked at side by side: every question is answered by a mask, bit i for byte i. Vector
 * instructions that every processor of a family has (SSE2, NEON), else eight bytes a word;
 * PITH_PLAIN_BYTE_BLOCK asks for the latter. */
#ifndef PITH_BASE_BYTE_BLOCK_H
#define PITH_BASE_BYTE_BLOCK_H

#include <stdint.h>
#include <string.h>

enum { PITH_BYTE_BLOCK = 64 };

/* Index of the lowest bit of a mask that has one. */
static inline unsigned pith_lowest_bit(uint64_t mask) {
#if defined(__GNUC__) && !defined(PITH_PLAIN_BYTE_BLOCK)
    return (unsigned)__builtin_ctzll(mask);
#else
    static const uint8_t index[64] = {
        0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28, 62, 5,  39, 46, 44, 42,
        22, 9,  24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
        23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12};
    return index[((mask & (~mask + 1)) * UINT64_C(0x022FDD63CC95386D)) >> 58]; /* de Bruijn */
#endif
}

/* Index of the highest bit of a mask that has one. */
static inline unsigned pith_highest_bit(uint64_t mask) {
#if defined(__GNUC__) && !defined(PITH_PLAIN_BYTE_BLOCK)
    return 63u ^ (unsigned)__builtin_clzll(mask);
#else
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    return pith_lowest_bit(mask ^ mask >> 1);
#endif
}

static inline unsigned pith_count_bits(uint64_t mask) {
    mask -= mask >> 1 & UINT64_C(0x5555555555555555);
    mask = (mask & UINT64_C(0x3333333333333333)) + (mask >> 2 & UINT64_C(0x3333333333333333));
    mask = (mask + (mask >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (unsigned)((mask * UINT64_C(0x0101010101010101)) >> 56);
}

/* Says that the cache line at `place` will be read soon. Changes nothing but time. */
static inline void pith_prefetch(const void *place) {
#if defined(__GNUC__) && !defined(PITH_PLAIN_BYTE_BLOCK)
    __builtin_prefetch(place);
#else
    (void)place;
#endif
}

#if defined(__x86_64__) && !defined(PITH_PLAIN_BYTE_BLOCK)

#include <emmintrin.h>

typedef struct pith_byte_block {
    __m128i parts[4];
} pith_byte_block;

static inline pith_byte_block pith_byte_block_load(const char *data) {
    pith_byte_block block;
    for (int i = 0; i < 4; i++)
        block.parts[i] = _mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i));
    return block;
}

/* Bytes whose bits `fold` are set first and that then lie in first..last. */
static inline uint64_t pith_byte_block_between(const pith_byte_block *block, uint8_t fold,
                                               uint8_t first, uint8_t last) {
    const __m128i most = _mm_set1_epi8((char)(last - first)), start = _mm_set1_epi8((char)first);
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i folded = _mm_or_si128(block->parts[i], _mm_set1_epi8((char)fold));
        __m128i from = _mm_sub_epi8(folded, start), least = _mm_min_epu8(from, most);
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(from, least)) << (16 * i);
    }
    return mask;
}

static inline uint64_t pith_byte_block_equal(const pith_byte_block *block, uint8_t byte) {
    const __m128i wanted = _mm_set1_epi8((char)byte);
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++)
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block->parts[i], wanted))
                << (16 * i);
    return mask;
}

/* Bytes from 0x80. */
static inline uint64_t pith_byte_block_high(const pith_byte_block *block) {
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++)
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(block->parts[i]) << (16 * i);
    return mask;
}

#elif defined(__aarch64__) && !defined(PITH_PLAIN_BYTE_BLOCK)

#include <arm_neon.h>

typedef struct pith_byte_block {
    uint8x16_t parts[4];
} pith_byte_block;

static inline pith_byte_block pith_byte_block_load(const char *data) {
    pith_byte_block block;
    for (int i = 0; i < 4; i++) block.parts[i] = vld1q_u8((const uint8_t *)data + 16 * i);
    return block;
}

/* One bit of each byte of four vectors of 00 and FF. */
static inline uint64_t pith_byte_block_mask(const uint8x16_t parts[4]) {
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t weight = vld1q_u8(weights);
    uint8x16_t low = vpaddq_u8(vandq_u8(parts[0], weight), vandq_u8(parts[1], weight));
    uint8x16_t high = vpaddq_u8(vandq_u8(parts[2], weight), vandq_u8(parts[3], weight));
    low = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(low, low)), 0);
}

static inline uint64_t pith_byte_block_between(const pith_byte_block *block, uint8_t fold,
                                               uint8_t first, uint8_t last) {
    uint8x16_t inside[4];
    for (int i = 0; i < 4; i++) {
        uint8x16_t folded = vorrq_u8(block->parts[i], vdupq_n_u8(fold));
        inside[i] =
            vcleq_u8(vsubq_u8(folded, vdupq_n_u8(first)), vdupq_n_u8((uint8_t)(last - first)));
    }
    return pith_byte_block_mask(inside);
}

static inline uint64_t pith_byte_block_equal(const pith_byte_block *block, uint8_t byte) {
    return pith_byte_block_between(block, 0, byte, byte);
}

static inline uint64_t pith_byte_block_high(const pith_byte_block *block) {
    return pith_byte_block_between(block, 0, 0x80, 0xFF);
}

#else

typedef struct pith_byte_block {
    uint64_t words[8]; /* first byte lowest */
} pith_byte_block;

static inline pith_byte_block pith_byte_block_load(const char *data) {
    pith_byte_block block = {{0}};
    for (unsigned i = 0; i < PITH_BYTE_BLOCK; i++)
        block.words[i / 8] |= (uint64_t)(uint8_t)data[i] << (8 * (i % 8));
    return block;
}

/* The high bits of a word's bytes as the eight low bits of a number. */
static inline uint64_t pith_byte_block_gather(uint64_t word) {
    return ((word >> 7 & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline uint64_t pith_byte_block_high(const pith_byte_block *block) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < 8; i++) mask |= pith_byte_block_gather(block->words[i]) << (8 * i);
    return mask;
}

/* High bits of the bytes that are at least `least`: of the lower seven bits by addition, then by
 * the high bits of both. */
static inline uint64_t pith_byte_block_reach(uint64_t word, uint8_t least) {
    const uint64_t ones = UINT64_C(0x0101010101010101), low = word & ones * 0x7F;
    uint64_t seven = low + ones * (uint8_t)(0x80 - (least & 0x7F));
    return least & 0x80 ? seven & word : seven | word;
}

static inline uint64_t pith_byte_block_between(const pith_byte_block *block, uint8_t fold,
                                               uint8_t first, uint8_t last) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t word = block->words[i] | fold * UINT64_C(0x0101010101010101);
        uint64_t inside = pith_byte_block_reach(word, first);
        if (last < 0xFF) inside &= ~pith_byte_block_reach(word, (uint8_t)(last + 1));
        mask |= pith_byte_block_gather(inside) << (8 * i);
    }
    return mask;
}

static inline uint64_t pith_byte_block_equal(const pith_byte_block *block, uint8_t byte) {
    return pith_byte_block_between(block, 0, byte, byte);
}

#endif
#endif
