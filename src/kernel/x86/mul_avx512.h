/* SPDX-License-Identifier: Apache-2.0
 * What the AVX-512 product kernels share: the product instruction, addressing of a tile of tokens,
 * loads.
 *
 * A tile is up to 12 tokens with one panel. Weights are unpacked once per tile; each 64-byte
 * code group meets each token in one vpdpbusd whose activation operand is 4 bytes broadcast from
 * memory. Users: mul_*_avx512.c, and attend_avx512.c for int8 scores. */
#ifndef PITH_KERNEL_X86_MUL_AVX512_H
#define PITH_KERNEL_X86_MUL_AVX512_H

#include "kernel/expanded.h"
#include "kernel/inline.h"
#include "kernel/kernel.h"
#include "kernel/panel.h"

#include <immintrin.h>

/* Up to SOME_TOKENS each panel is met with FEW_TOKENS at a time, its codes unpacked on the fly:
 * from the second time on it lies in the cache. More tokens repay unpacking to memory. */
enum { TILE_MAX = 12, FEW_TOKENS = 8, SOME_TOKENS = 32 };

/* Software prefetch of weights, for few tokens. One or two are bound by memory: lines go to L1
 * where the caller wants it (pith_mul.prefetch). More are bound by products: lines go to L2,
 * further ahead, since the tokens' rows want L1 for themselves. Distances: measured on Zen 4. */
enum { PREFETCH_L1_TOKENS = 2, AHEAD_L1 = 4096, AHEAD_L2 = 6144 };

/* acc += sum of 4 products of bytes (w unsigned, x signed) in each 32-bit lane. As text, because
 * gcc 12 copies and spills accumulators around the intrinsic, and doesn't fold the broadcast. */
#define DOT(acc, w, x)                                                                             \
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"                                                         \
            : "+v"(acc)                                                                            \
            : "v"(w), "m"(*(const int32_t *)(const void *)(x)))

/* Rows of a tile: row t is base[t / 3] + (t % 3) * stride, so that 12 rows need 5 registers. */
typedef struct tile_rows {
    const int8_t *base[4];
    size_t stride;
} tile_rows;

ALWAYS_INLINE tile_rows tile_rows_at(const pith_q8 *q8, uint32_t t0, int n) {
    tile_rows rows = {{0}, q8->q_stride};
    UNROLL for (int i = 0; i < 4; i++) {
        rows.base[i] = q8->q + (t0 + (uint32_t)(3 * i < n ? 3 * i : 0)) * q8->q_stride;
    }
    return rows;
}

ALWAYS_INLINE const int8_t *tile_row(const tile_rows *rows, int t) {
    return rows->base[t / 3] + (size_t)(t % 3) * rows->stride;
}

/* The product for at most FEW_TOKENS tokens from t on. q8: room for what it points at. */
ALWAYS_INLINE pith_mul tokens_from(const pith_mul *args, uint32_t t, pith_q8 *q8) {
    pith_mul part = *args;
    *q8 = *args->q8;
    q8->q += t * q8->q_stride;
    q8->d += t * q8->d_stride;
    q8->sum += t * q8->d_stride;
    q8->sum16 += 2 * t * q8->d_stride;
    part.q8 = q8;
    part.n = args->n - t < FEW_TOKENS ? args->n - t : FEW_TOKENS;
    part.y += t * args->y_stride;
    return part;
}

/* Moves all rows on by one group. The barrier keeps gcc from making twelve pointers of them. */
ALWAYS_INLINE void tile_rows_next(tile_rows *rows) {
    UNROLL for (int i = 0; i < 4; i++) {
        rows->base[i] += PITH_GROUP;
        __asm__("" : "+r"(rows->base[i]));
    }
}

ALWAYS_INLINE __m512 load_f16(const uint16_t *half) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)half));
}

/* What was stored is read back from memory: gcc would rather take vectors apart lane by lane. */
ALWAYS_INLINE void stored(void) {
    __asm__ volatile("" ::: "memory");
}

ALWAYS_INLINE __m512i load_codes(const void *codes) {
    return _mm512_loadu_si512(codes);
}

/* a | (b & mask) */
ALWAYS_INLINE __m512i join(__m512i a, __m512i b, __m512i mask) {
    return _mm512_ternarylogic_epi32(a, b, mask, 0xF8);
}

/* *acc = fma(a, b, *acc) */
ALWAYS_INLINE void fma_store(float *acc, __m512 a, __m512 b) {
    _mm512_store_ps(acc, _mm512_fmadd_ps(a, b, _mm512_load_ps(acc)));
}

/* 16 unsigned bytes as floats. */
ALWAYS_INLINE __m512 bytes_to_ps(const uint8_t *bytes) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)(const void *)bytes)));
}

/* is_wanted: pith_mul.prefetch. */
ALWAYS_INLINE void prefetch(const void *at, int bytes, const int T, bool is_wanted) {
    if (T <= PREFETCH_L1_TOKENS && !is_wanted) return;
    UNROLL for (int i = 0; i < bytes; i += 64) {
        if (T <= PREFETCH_L1_TOKENS)
            _mm_prefetch((const char *)at + AHEAD_L1 + i, _MM_HINT_T0);
        else
            _mm_prefetch((const char *)at + AHEAD_L2 + i, _MM_HINT_T1);
    }
}

/* ---- Many tokens (mul_wide_avx512.c) ---- */

enum { WIDE_GROUPS = EXPANDED_GROUPS };

typedef enum wide_shape {
    WIDE_SIGNED, /* d per group, codes with an offset */
    WIDE_AFFINE, /* d and minimum per group */
    WIDE_SUPER,  /* integer scale and minimum per group, d and dmin per 8 groups */
    WIDE_SCALED, /* the same without minima, codes with an offset */
    WIDE_HALVES, /* two integer scales per group, d per 8 groups, codes with an offset */
    WIDE_PAIRS,  /* two integer scales and minima per group, d and dmin per 8 groups */
    WIDE_FLOATS  /* two float scales per group, codes with an offset */
} wide_shape;

typedef struct wide_type {
    expand_fn *unpack;
    size_t chunk_bytes; /* panel bytes of 256 k */
    wide_shape shape;
    int offset_shift; /* codes are value + (1 << offset_shift) */
    int code_max;     /* largest magnitude of a value; blocks of 256 (fast contract) */
} wide_type;

/* Beside their unpackers: mul_small_avx512.c, mul_super_avx512.c, mul_q6_k_avx512.c,
 * mul_expanded_avx512.c. */
extern const wide_type pith_wide_q4_0, pith_wide_q4_1, pith_wide_q5_0, pith_wide_q5_1,
    pith_wide_q8_0, pith_wide_q4_k, pith_wide_q5_k, pith_wide_q6_k, pith_wide_iq4_nl,
    pith_wide_iq4_xs, pith_wide_mxfp4, pith_wide_nvfp4, pith_wide_q2_k, pith_wide_q3_k,
    pith_wide_iq1_s, pith_wide_iq1_m, pith_wide_iq2_xxs, pith_wide_iq2_xs, pith_wide_iq2_s,
    pith_wide_iq3_xxs, pith_wide_iq3_s, pith_wide_tq1_0, pith_wide_tq2_0, pith_wide_q1_0,
    pith_wide_q2_0;

/* Any number of tokens and panels. */
void pith_mul_wide_avx512(const pith_mul *args, const wide_type *type);
/* In the fast contract (mul_fast_avx512.c). */
void pith_mul_fast_wide_avx512(const pith_mul *args, const wide_type *type);
/* Codes of 256 k become codes + zero (0: signed bytes; 128) under the scale d[0]. Types in blocks
 * of 256. */
void pith_requantize_avx512(expanded *w, const wide_type *type, int zero);

#endif
