/* SPDX-License-Identifier: Apache-2.0
 * What the machine can do (contract: kernel_bench.h): loops of nothing but the instruction in question,
 * written as text so that no compiler removes or spills anything. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#endif

#include "kernel_bench.h"

#include "cpu/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_seconds(void) {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

void *bench_alloc(size_t n) {
#if defined(_WIN32)
    return calloc(1, n);
#else
    size_t huge = (size_t)2 << 20;
    void *memory = aligned_alloc(huge, (n + huge - 1) / huge * huge);
    if (!memory) return NULL;
    madvise(memory, (n + huge - 1) / huge * huge, MADV_HUGEPAGE);
    return memset(memory, 0, n);
#endif
}

void bench_free(void *memory) {
    free(memory);
}

double bench_hertz(void) {
    double best = HUGE_VAL;
    for (int run = 0; run < 9; run++) {
        double start = bench_seconds();
        uint64_t x = 3;
        for (int i = 0; i < 100000; i++) {
            x *= 0x9E3779B97F4A7C15u;
#if defined(__GNUC__)
            __asm__ volatile("" : "+r"(x));
#endif
        }
        double t = bench_seconds() - start;
        if (t < best) best = t;
    }
    return 3.0 * 100000 / best;
}

/* One word a line moves the whole line. `ahead` bytes of software prefetch; 0: none. */
static uint64_t read_lines(const uint8_t *memory, size_t n, size_t ahead) {
    uint64_t sum[8] = {0}, word;
    for (size_t i = 0; i + 512 <= n; i += 512) {
        for (size_t j = 0; j < 8; j++) {
#if defined(__GNUC__)
            if (ahead) __builtin_prefetch(memory + i + 64 * j + ahead);
#endif
            memcpy(&word, memory + i + 64 * j, sizeof word);
            sum[j] ^= word;
        }
    }
    for (int j = 1; j < 8; j++) sum[0] ^= sum[j];
    return sum[0];
}

double bench_read_bandwidth(const uint8_t *memory, size_t n) {
    static const size_t ahead[] = {0, 2048, 4096, 6144};
    double best = HUGE_VAL;
    volatile uint64_t sink = 0;
    for (int run = 0; run < 12; run++) {
        double start = bench_seconds();
        sink ^= read_lines(memory, n, ahead[run % 4]);
        double t = bench_seconds() - start;
        if (t < best) best = t;
    }
    (void)sink;
    return 1e-9 * (double)n / best;
}

#if defined(__x86_64__) || defined(__aarch64__)

/* loop: 12 chains of `macs` multiplications and additions, 100000 times. */
static double rate(void (*loop)(void), double macs) {
    double best = HUGE_VAL;
    for (int run = 0; run < 7; run++) {
        double start = bench_seconds();
        loop();
        double t = bench_seconds() - start;
        if (t < best) best = t;
    }
    return 1e-9 * 12 * 100000 * macs / best;
}

#endif

#if defined(__x86_64__)

/* 12 independent chains, 100000 times. */
#define CHAINS(instruction)                                                                        \
    __asm__ volatile("mov $100000, %%ecx\n1:\n .irp k,0,1,2,3,4,5,6,7,8,9,10,11\n " instruction    \
                     "\n .endr\n dec %%ecx\n jnz 1b\n vzeroupper" ::                               \
                         : "ecx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",  \
                           "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

static void dot_512(void) {
    CHAINS("vpdpbusd %%zmm12, %%zmm13, %%zmm\\k");
}
static void dot_256(void) {
    CHAINS("%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm\\k");
}
static void fma_512(void) {
    CHAINS("vfmadd231ps %%zmm12, %%zmm13, %%zmm\\k");
}
static void fma_256(void) {
    CHAINS("vfmadd231ps %%ymm12, %%ymm13, %%ymm\\k");
}
/* The three instructions that stand for a dot product without VNNI. */
static void maddubs_256(void) {
    CHAINS("vpmaddubsw %%ymm12, %%ymm13, %%ymm14\n vpmaddwd %%ymm14, %%ymm13, %%ymm15\n vpaddd "
           "%%ymm15, %%ymm\\k, %%ymm\\k");
}

void bench_peaks(uint32_t features, double *integer, double *real) {
    *integer = *real = 1.0;
    if (features & PITH_CPU_AVX2) {
        *integer = rate(maddubs_256, 32);
        *real = rate(fma_256, 8);
    }
    if (features & PITH_CPU_AVXVNNI) *integer = rate(dot_256, 32);
    if (features & PITH_CPU_AVX512) { /* AMX products are held against this too */
        *integer = rate(dot_512, 64);
        *real = rate(fma_512, 16);
    }
}

#elif defined(__aarch64__)

/* 12 independent chains, 100000 times. SDOT and SMMLA by number: the file is baseline. */
#define CHAINS(instruction)                                                                        \
    uint32_t n = 100000;                                                                           \
    __asm__ volatile("1:\n .irp k,0,1,2,3,4,5,6,7,16,17,18,19\n " instruction                      \
                     "\n .endr\n subs %w0, %w0, #1\n b.ne 1b"                                      \
                     : "+r"(n)::"cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16",       \
                       "v17", "v18", "v19", "v20", "v21")

static void dot_neon(void) {
    CHAINS("smlal v\\k\\().8h, v20.8b, v21.8b");
}
static void dot_sdot(void) {
    CHAINS(".inst 0x4e959680 + \\k"); /* sdot vk.4s, v20.16b, v21.16b */
}
static void dot_smmla(void) {
    CHAINS(".inst 0x4e95a680 + \\k"); /* smmla vk.4s, v20.16b, v21.16b */
}
static void fma_neon(void) {
    CHAINS("fmla v\\k\\().4s, v20.4s, v21.4s");
}

void bench_peaks(uint32_t features, double *integer, double *real) {
    *integer = *real = 1.0;
    if (features & PITH_CPU_NEON) {
        *integer = rate(dot_neon, 8);
        *real = rate(fma_neon, 4);
    }
    if (features & PITH_CPU_DOTPROD) *integer = rate(dot_sdot, 16);
    if (features & PITH_CPU_I8MM) *integer = rate(dot_smmla, 32);
}

#else

void bench_peaks(uint32_t features, double *integer, double *real) {
    (void)features;
    *integer = *real = 1.0;
}

#endif
