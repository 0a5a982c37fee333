/* SPDX-License-Identifier: Apache-2.0
 * How this thread rounds. Kernels are defined for round to nearest without flushing to zero, and
 * an application may have chosen otherwise for its own threads. The C library's fesetenv does
 * not reach the SSE control word everywhere, so the words are set directly where we know them.
 * The x87 unit is left alone: pith has no long double. */
#ifndef PITH_BASE_FLOAT_MODE_H
#define PITH_BASE_FLOAT_MODE_H

#include <stdint.h>

#if defined(__x86_64__)

/* Sets the default mode and returns the one before. MXCSR: all exceptions masked. */
static inline uint64_t pith_float_mode_begin(void) {
    uint64_t before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1F80u);
    return before;
}

static inline void pith_float_mode_end(uint64_t before) {
    __builtin_ia32_ldmxcsr((unsigned)before);
}

#elif defined(__aarch64__)

static inline void pith_float_mode_end(uint64_t before) {
    __asm__ __volatile__("msr fpcr, %0" ::"r"(before));
}

static inline uint64_t pith_float_mode_begin(void) {
    uint64_t before;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(before));
    pith_float_mode_end(0);
    return before;
}

#else

#include <fenv.h>

static inline uint64_t pith_float_mode_begin(void) {
    int before = fegetround();
    (void)fesetround(FE_TONEAREST);
    return (uint64_t)(uint32_t)before;
}

static inline void pith_float_mode_end(uint64_t before) {
    (void)fesetround((int)(uint32_t)before);
}

#endif

#endif
