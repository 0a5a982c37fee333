/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 256-bit registers, AVX-VNNI form: vpdpbusd adds 4
 * products of bytes to a 32-bit sum. As text, because gcc 12 copies accumulators around the
 * intrinsic. The kernel check compiles the same kernels with PITH_EMULATE_AVXVNNI for machines
 * that have the instruction in its AVX-512 encoding only. The same names without VNNI:
 * dot_avx2.h. Users: mul_integer_256.h, attend_256.h. */
#ifndef PITH_KERNEL_X86_DOT_AVXVNNI_H
#define PITH_KERNEL_X86_DOT_AVXVNNI_H

#include "kernel/x86/lanes_256.h"

enum {
    DOT_PAIRS = 0,
    DOT_BYTE_PLANES = 1, /* planes of an 8-bit code */
    DOT_TOKENS = 5,      /* tokens of a tile: sums and weights fill 15 registers */
    DOT_PAIR_TOKENS = 5,
    DOT_SINGLE_TOKENS = 5
};

#if defined(PITH_EMULATE_AVXVNNI)
#define DOT_ENCODING "%{evex%}"
#else
#define DOT_ENCODING "%{vex%}"
#endif

/* words += w . x; codes unsigned. */
ALWAYS_INLINE void dot_step(lanes16 *words, lanes16 w, __m256i x) {
    __asm__(DOT_ENCODING " vpdpbusd %2, %1, %0" : "+x"(words->low) : "x"(w.low), "x"(x));
    __asm__(DOT_ENCODING " vpdpbusd %2, %1, %0" : "+x"(words->high) : "x"(w.high), "x"(x));
}

/* sum += factor * words; here factor is always 1. */
ALWAYS_INLINE void dot_end(lanes16 *sum, lanes16 words, const int factor) {
    (void)factor;
    sum->low = _mm256_add_epi32(sum->low, words.low);
    sum->high = _mm256_add_epi32(sum->high, words.high);
}

/* Not used: DOT_PAIRS is 0. */
ALWAYS_INLINE void dot_pair(lanes16 *sum, lanes16 w0, lanes16 w1, __m256i x0, __m256i x1) {
    dot_step(sum, w0, x0);
    dot_step(sum, w1, x1);
}

ALWAYS_INLINE void dot_single(lanes16 *sum, lanes16 w, __m256i x) {
    dot_step(sum, w, x);
}

#endif
