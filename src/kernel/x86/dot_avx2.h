/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 256-bit registers, AVX2 form: vpmaddubsw multiplies
 * bytes into 16-bit pairs, pairs of some code groups are added as 16-bit words, then vpmaddwd
 * makes 32-bit sums of them. No saturation: a word holds at most 2 * 8 * 15 * 127 = 30480 for 8
 * groups of 4-bit codes, 2 * 2 * 63 * 127 = 32004 for 2 groups of up to 6-bit codes, 2 * 126 *
 * 127 = 32004 for one group of codes up to 126; all below 32768. 8-bit codes (byte + 128) are
 * taken as two planes of 4 bits. The same names with AVX-VNNI: dot_avxvnni.h. Users:
 * mul_integer_256.h, mul_expanded_256.h, attend_256.h. */
#ifndef PITH_KERNEL_X86_DOT_AVX2_H
#define PITH_KERNEL_X86_DOT_AVX2_H

#include "kernel/x86/lanes_256.h"

enum {
    DOT_PAIRS = 1,       /* codes of 5 and 6 bits go two groups at a time (dot_pair), of 7 one */
    DOT_BYTE_PLANES = 2, /* planes of an 8-bit code */
    DOT_TOKENS = 5,      /* tokens of a tile; words, weights and temporaries fill 16 registers */
    DOT_PAIR_TOKENS = 3,
    DOT_SINGLE_TOKENS = 4
};

/* Keeps gcc from adding all terms in a tree at the end, which needs more registers than there are.
 * */
ALWAYS_INLINE void dot_keep(lanes16 *v) {
    __asm__("" : "+x"(v->low), "+x"(v->high));
}

/* words += w . x; at most 8 groups of 4-bit codes. */
ALWAYS_INLINE void dot_step(lanes16 *words, lanes16 w, __m256i x) {
    words->low = _mm256_add_epi16(words->low, _mm256_maddubs_epi16(w.low, x));
    words->high = _mm256_add_epi16(words->high, _mm256_maddubs_epi16(w.high, x));
    dot_keep(words);
}

/* sum += factor * words */
ALWAYS_INLINE void dot_end(lanes16 *sum, lanes16 words, const int factor) {
    const __m256i f = _mm256_set1_epi16((int16_t)factor);
    sum->low = _mm256_add_epi32(sum->low, _mm256_madd_epi16(words.low, f));
    sum->high = _mm256_add_epi32(sum->high, _mm256_madd_epi16(words.high, f));
    dot_keep(sum);
}

/* sum += w0 . x0 + w1 . x1; codes of up to 6 bits. */
ALWAYS_INLINE void dot_pair(lanes16 *sum, lanes16 w0, lanes16 w1, __m256i x0, __m256i x1) {
    lanes16 words;
    words.low =
        _mm256_add_epi16(_mm256_maddubs_epi16(w0.low, x0), _mm256_maddubs_epi16(w1.low, x1));
    words.high =
        _mm256_add_epi16(_mm256_maddubs_epi16(w0.high, x0), _mm256_maddubs_epi16(w1.high, x1));
    dot_end(sum, words, 1);
}

/* sum += w . x; codes of up to 7 bits. */
ALWAYS_INLINE void dot_single(lanes16 *sum, lanes16 w, __m256i x) {
    lanes16 words = {_mm256_maddubs_epi16(w.low, x), _mm256_maddubs_epi16(w.high, x)};
    dot_end(sum, words, 1);
}

#endif
