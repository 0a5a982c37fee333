/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 256-bit registers, AVX2 form: bytes are multiplied into 16-bit pairs (vpmaddubsw), two code
 * groups are added there, then pairs become 32-bit sums (vpmaddwd with ones).
 * No saturation: codes of up to 6 bits give at most 2 * (63 * 127 + 63 * 127) = 32004 < 32768 for two groups. 8-bit codes
 * use |w| and the sign moved to x, one group at a time: 2 * 128 * 127 = 32512.
 * The same names with AVX-VNNI: dot_avxvnni.h. Users: mul_integer_256.h, attend_256.h. */
#ifndef PITH_KERNEL_X86_DOT_AVX2_H
#define PITH_KERNEL_X86_DOT_AVX2_H

#include "kernel/x86/lanes_256.h"

enum { DOT_TOKENS = 3 /* tokens of a tile: sums, weights and temporaries fill 16 registers */ };

/* Offset that signed bytes get to become codes, as a shift; -1: they stay signed. */
enum { DOT_BYTE_SHIFT = -1 };

ALWAYS_INLINE __m256i dot_pairs(__m256i sum, __m256i pairs) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* sum += w0 . x0 + w1 . x1; codes unsigned, up to 6 bits. */
ALWAYS_INLINE void dot_codes(lanes *sum, lanes w0, lanes w1, __m256i x0, __m256i x1) {
    __m256i low =
        _mm256_add_epi16(_mm256_maddubs_epi16(w0.low, x0), _mm256_maddubs_epi16(w1.low, x1));
    __m256i high =
        _mm256_add_epi16(_mm256_maddubs_epi16(w0.high, x0), _mm256_maddubs_epi16(w1.high, x1));
    sum->low = dot_pairs(sum->low, low);
    sum->high = dot_pairs(sum->high, high);
}

/* Signed bytes as dot_bytes wants them. */
ALWAYS_INLINE lanes dot_bytes_prepare(lanes w) {
    return w;
}

/* sum += w . x; bytes from dot_bytes_prepare. */
ALWAYS_INLINE void dot_bytes(lanes *sum, lanes w, __m256i x) {
    __m256i low = _mm256_maddubs_epi16(_mm256_abs_epi8(w.low), _mm256_sign_epi8(x, w.low));
    __m256i high = _mm256_maddubs_epi16(_mm256_abs_epi8(w.high), _mm256_sign_epi8(x, w.high));
    sum->low = dot_pairs(sum->low, low);
    sum->high = dot_pairs(sum->high, high);
}

#endif
