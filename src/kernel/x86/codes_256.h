/* SPDX-License-Identifier: Apache-2.0
 * Panel blocks taken apart with 256-bit registers (layouts: panel.h): code groups as unsigned
 * bytes, scales and minima as floats. `type` is always a constant. One chunk is 256 k: a
 * super-block, or up to 8 blocks of 32. */
#ifndef PITH_KERNEL_X86_CODES_256_H
#define PITH_KERNEL_X86_CODES_256_H

#include "kernel/chain_form.h"
#include "kernel/expanded.h"
#include "kernel/x86/words_avx2.h"
#include "quant/grid.h"

#include "kernel/expand_scales.h"

enum { GROUPS = EXPANDED_GROUPS };

/* Types that are expanded first (mul_expanded_256.h) are multiplied in one of these forms, each
 * named by a type that has it. */
#define FORM_GROUP       PITH_TYPE_Q5_0  /* d a group, codes + 16 */
#define FORM_HALVES      PITH_TYPE_Q6_K  /* two scales a group, codes + 32 */
#define FORM_HALVES_BOOK PITH_TYPE_IQ2_S /* two scales a group, codes + 64 */
#define FORM_FLOATS      PITH_TYPE_NVFP4 /* two float scales a group, codes + 32 */

ALWAYS_INLINE bool is_super(pith_type type) {
    return has_super_chain(type) || type == FORM_HALVES_BOOK;
}

/* Two scales a group. */
ALWAYS_INLINE bool has_halves(pith_type type) {
    return type == PITH_TYPE_Q2_K || type == PITH_TYPE_Q3_K || type == PITH_TYPE_Q6_K ||
           type == FORM_HALVES_BOOK || type == FORM_FLOATS;
}

/* Codes have 1 << this added; -1: nothing. */
ALWAYS_INLINE int offset_shift(pith_type type) {
    switch (type) {
    case PITH_TYPE_TQ2_0: return 0;
    case PITH_TYPE_Q3_K: return 2;
    case PITH_TYPE_Q4_0: return 3;
    case PITH_TYPE_MXFP4:
    case FORM_GROUP: return 4;
    case FORM_HALVES:
    case FORM_FLOATS: return 5;
    case FORM_HALVES_BOOK: return 6;
    case PITH_TYPE_Q8_0:
    case PITH_TYPE_IQ4_NL:
    case PITH_TYPE_IQ4_XS: return 7;
    default: return -1;
    }
}

/* Codes are indexes into the book of IQ4. */
ALWAYS_INLINE bool is_iq4(pith_type type) {
    return type == PITH_TYPE_IQ4_NL || type == PITH_TYPE_IQ4_XS;
}

/* Bytes of a panel block. */
ALWAYS_INLINE size_t block_bytes(pith_type type) {
    switch (type) {
    case PITH_TYPE_Q4_0: return sizeof(pith_panel_q4_0);
    case PITH_TYPE_Q4_1: return sizeof(pith_panel_q4_1);
    case PITH_TYPE_Q5_0: return sizeof(pith_panel_q5_0);
    case PITH_TYPE_Q5_1: return sizeof(pith_panel_q5_1);
    case PITH_TYPE_Q8_0: return sizeof(pith_panel_q8_0);
    case PITH_TYPE_IQ4_NL: return sizeof(pith_panel_iq4_nl);
    case PITH_TYPE_MXFP4: return sizeof(pith_panel_mxfp4);
    case PITH_TYPE_IQ4_XS: return sizeof(pith_panel_iq4_xs);
    case PITH_TYPE_TQ2_0: return sizeof(pith_panel_tq2_0);
    case PITH_TYPE_Q2_K: return sizeof(pith_panel_q2_k);
    case PITH_TYPE_Q3_K: return sizeof(pith_panel_q3_k);
    case PITH_TYPE_Q4_K: return sizeof(pith_panel_q4_k);
    case PITH_TYPE_Q5_K: return sizeof(pith_panel_q5_k);
    default: return sizeof(pith_panel_q6_k);
    }
}

ALWAYS_INLINE size_t chunk_bytes(pith_type type) {
    return is_super(type) ? block_bytes(type) : GROUPS * block_bytes(type);
}

/* Nibbles of a code group, low or high. */
ALWAYS_INLINE lanes16 nibbles(const uint8_t *q, const bool high) {
    lanes16 v = lanes_load(q);
    return lanes_and(high ? lanes_shift(v, -4) : v, _mm256_set1_epi8(15));
}

/* Where bit `bit` of a byte is set: 16. */
ALWAYS_INLINE lanes16 fifth(const uint8_t *h, int bit) {
    const __m256i mask = _mm256_set1_epi8((char)(1 << bit));
    lanes16 v = lanes_and(lanes_load(h), mask);
    v = (lanes16){_mm256_cmpeq_epi8(v.low, mask), _mm256_cmpeq_epi8(v.high, mask)};
    return lanes_and(v, _mm256_set1_epi8(16));
}

/* The same for a bit that is a constant. */
ALWAYS_INLINE lanes16 fifth_at(const uint8_t *h, const int bit) {
    return lanes_and(lanes_shift(lanes_load(h), 4 - bit), _mm256_set1_epi8(16));
}

/* Where bit `bit` of a byte is set: 4. */
ALWAYS_INLINE lanes16 third(const uint8_t *h, int bit) {
    const __m256i mask = _mm256_set1_epi8((char)(1 << bit));
    lanes16 v = lanes_and(lanes_load(h), mask);
    v = (lanes16){_mm256_cmpeq_epi8(v.low, mask), _mm256_cmpeq_epi8(v.high, mask)};
    return lanes_and(v, _mm256_set1_epi8(4));
}

/* Two-bit fields of a code group. */
ALWAYS_INLINE lanes16 pairs_of_bits(const uint8_t *q, const int field) {
    return lanes_and(lanes_shift(lanes_load(q), -2 * field), _mm256_set1_epi8(3));
}

/* Code group i (0..7, constant) of group j = j4 + jj (jj 0..3, constant) of a chunk; unsigned, but
 * Q8_0 signed, types with a book its indexes. */
ALWAYS_INLINE lanes16 code_group(const uint8_t *chunk, int j4, const int jj, const int i,
                                 const pith_type type) {
    const int j = j4 + jj;
    const uint8_t *block = is_super(type) ? chunk : chunk + (size_t)j * block_bytes(type);
    switch (type) {
    case PITH_TYPE_Q4_0:
        return nibbles(((const pith_panel_q4_0 *)(const void *)block)->q[i % 4], i >= 4);
    case PITH_TYPE_Q4_1:
        return nibbles(((const pith_panel_q4_1 *)(const void *)block)->q[i % 4], i >= 4);
    case PITH_TYPE_Q5_0: {
        const pith_panel_q5_0 *b = (const void *)block;
        return lanes_or(nibbles(b->q[i % 4], i >= 4), fifth_at(b->h, i));
    }
    case PITH_TYPE_Q5_1: {
        const pith_panel_q5_1 *b = (const void *)block;
        return lanes_or(nibbles(b->q[i % 4], i >= 4), fifth_at(b->h, i));
    }
    case PITH_TYPE_Q8_0: return lanes_load(((const pith_panel_q8_0 *)(const void *)block)->q[i]);
    case PITH_TYPE_IQ4_NL:
        return nibbles(((const pith_panel_iq4_nl *)(const void *)block)->q[i % 4], i >= 4);
    case PITH_TYPE_MXFP4:
        return nibbles(((const pith_panel_mxfp4 *)(const void *)block)->q[i % 4], i >= 4);
    case PITH_TYPE_IQ4_XS:
        return nibbles(((const pith_panel_iq4_xs *)(const void *)block)->q[4 * j + i % 4], i >= 4);
    case PITH_TYPE_Q2_K: /* j4 is the half, jj the field */
        return pairs_of_bits(((const pith_panel_q2_k *)(const void *)block)->q[2 * j4 + i], jj);
    case PITH_TYPE_TQ2_0:
        return pairs_of_bits(((const pith_panel_tq2_0 *)(const void *)block)->q[2 * j4 + i], jj);
    case PITH_TYPE_Q3_K: {
        const pith_panel_q3_k_part *part = &((const pith_panel_q3_k *)(const void *)block)->part[i];
        return lanes_or(pairs_of_bits(part->q[j4 >> 2], jj), third(part->h, j));
    }
    case PITH_TYPE_Q4_K:
        return nibbles(((const pith_panel_q4_k *)(const void *)block)->q[8 * (j >> 1) + i],
                       jj % 2 == 1);
    case PITH_TYPE_Q5_K: {
        const pith_panel_q5_k *b = (const void *)block;
        return lanes_or(nibbles(b->q[8 * (j >> 1) + i], jj % 2 == 1), fifth(b->h[i], j));
    }
    default: { /* Q6_K: j4 is the half, jj the quarter */
        const pith_panel_q6_k_part *part =
            &((const pith_panel_q6_k *)(const void *)block)->part[j4 >> 2][i];
        lanes16 high = lanes_shift(lanes_load(part->high), 4 - 2 * jj);
        return lanes_or(nibbles(part->low[jj % 2], jj >= 2),
                        lanes_and(high, _mm256_set1_epi8(0x30)));
    }
    }
}

ALWAYS_INLINE void factors_small(factors *f, const uint8_t *chunk, int n, const pith_type type) {
    for (int j = 0; j < n; j++) {
        const uint16_t *half =
            (const uint16_t *)(const void *)(chunk + (size_t)j * block_bytes(type));
        if (type == PITH_TYPE_MXFP4)
            words_bits_to_ps(f->d[j], bits_of_e8m0_half(words_of_u8((const uint8_t *)half)), 1.0f);
        else
            ps_store(f->d[j], ps_load_f16(half));
        if (has_minima(type)) ps_store(f->minimum[j][0], ps_load_f16(half + PITH_PANEL_ROWS));
    }
}

/* The 6-bit fields of Q4_K and Q5_K: 32 bytes are 2 groups of 16 rows. */
ALWAYS_INLINE void factors_k(factors *f, const uint8_t *chunk) {
    const pith_panel_q4_k *b = (const void *)chunk; /* the fields used here are the same in Q5_K */
    const __m256i six = _mm256_set1_epi8(63), four = _mm256_set1_epi8(15),
                  two = _mm256_set1_epi8(0x30);
    uint8_t scale[GROUPS][16], minimum[GROUPS][16];
    lanes16 s0 = lanes_load(b->scales[0]), s1 = lanes_load(b->scales[1]),
            s2 = lanes_load(b->scales[2]);
    lanes_store(scale[0], lanes_and(s0, six));
    lanes_store(minimum[0], lanes_and(s1, six));
    lanes_store(scale[4], lanes_or(lanes_and(s2, four), lanes_and(lanes_shift(s0, -2), two)));
    lanes_store(minimum[4], lanes_or(lanes_and(lanes_shift(s2, -4), four),
                                     lanes_and(lanes_shift(s1, -2), two)));
    stored();
    for (int j = 0; j < GROUPS; j++) {
        ps_store(f->scale[j][0], ps_of_u8(scale[j]));
        ps_store(f->minimum[j][0], ps_of_u8(minimum[j]));
    }
    ps_store(f->d[0], ps_load_f16(b->d));
    ps_store(f->dmin, ps_load_f16(b->dmin));
}

ALWAYS_INLINE void factors_q6_k(factors *f, const uint8_t *chunk) {
    const pith_panel_q6_k *b = (const void *)chunk;
    for (int s = 0; s < 2 * GROUPS; s++) ps_store(f->scale[s / 2][s % 2], ps_of_i8(b->scales[s]));
    ps_store(f->d[0], ps_load_f16(b->d));
}

ALWAYS_INLINE void factors_tq2_0(factors *f, const uint8_t *chunk) {
    set_scale_one(f);
    halves_to_ps(f->d[0], ((const pith_panel_tq2_0 *)(const void *)chunk)->d, 1.0f);
}

ALWAYS_INLINE void factors_read(factors *f, const uint8_t *chunk, int n, const pith_type type) {
    switch (type) {
    case PITH_TYPE_Q6_K: factors_q6_k(f, chunk); break;
    case PITH_TYPE_Q4_K:
    case PITH_TYPE_Q5_K: factors_k(f, chunk); break;
    case PITH_TYPE_Q2_K: scales_q2_k(f, (const void *)chunk); break;
    case PITH_TYPE_Q3_K: scales_q3_k(f, (const void *)chunk); break;
    case PITH_TYPE_IQ4_XS: scales_iq4_xs(f, (const void *)chunk); break;
    case PITH_TYPE_TQ2_0: factors_tq2_0(f, chunk); break;
    default: factors_small(f, chunk, n, type); break;
    }
    stored();
}

#endif
