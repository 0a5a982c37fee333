/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 256-bit registers, AVX-VNNI form: vpdpbusd adds 4 products of bytes to a 32-bit sum.
 * As text, because gcc 12 copies accumulators around the intrinsic. The kernel check compiles the same kernels with
 * PITH_EMULATE_AVXVNNI for machines that have the instruction in its AVX-512 encoding only.
 * The same names without VNNI: dot_avx2.h. Users: mul_integer_256.h, attend_256.h. */
#ifndef PITH_KERNEL_X86_DOT_AVXVNNI_H
#define PITH_KERNEL_X86_DOT_AVXVNNI_H

#include "kernel/x86/lanes_256.h"

enum { DOT_TOKENS = 4 };

/* Offset that signed bytes get to become codes, as a shift; -1: they stay signed. */
enum { DOT_BYTE_SHIFT = 7 };

#if defined(PITH_EMULATE_AVXVNNI)
#define DOT_ENCODING "%{evex%}"
#else
#define DOT_ENCODING "%{vex%}"
#endif

ALWAYS_INLINE __m256i dot_step(__m256i sum, __m256i w, __m256i x) {
    __asm__(DOT_ENCODING " vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x));
    return sum;
}

/* sum += w0 . x0 + w1 . x1; codes unsigned. */
ALWAYS_INLINE void dot_codes(lanes *sum, lanes w0, lanes w1, __m256i x0, __m256i x1) {
    sum->low = dot_step(dot_step(sum->low, w0.low, x0), w1.low, x1);
    sum->high = dot_step(dot_step(sum->high, w0.high, x0), w1.high, x1);
}

/* Signed bytes as dot_bytes wants them. */
ALWAYS_INLINE lanes dot_bytes_prepare(lanes w) {
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    return (lanes){_mm256_xor_si256(w.low, sign), _mm256_xor_si256(w.high, sign)};
}

/* sum += w . x; bytes from dot_bytes_prepare. */
ALWAYS_INLINE void dot_bytes(lanes *sum, lanes w, __m256i x) {
    sum->low = dot_step(sum->low, w.low, x);
    sum->high = dot_step(sum->high, w.high, x);
}

#endif
