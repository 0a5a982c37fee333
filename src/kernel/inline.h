/* SPDX-License-Identifier: Apache-2.0
 * How vector kernels make one source serve several types and tile sizes: functions that are always
 * inlined into callers that pass constants, loops over registers that are always unrolled, and
 * loops that never are. */
#ifndef PITH_KERNEL_INLINE_H
#define PITH_KERNEL_INLINE_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
/* A loop that clang leaves rolled up is slower, not wrong. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define ROLLED _Pragma("GCC unroll 1")
#endif

#endif
