/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 128-bit registers, SMMLA form: a register ("cell") holds 2
 * rows of 2 tokens and gets the products of 8 k of each in one instruction, 32 of them. Cells stay
 * in that order until the end: factors of rows and tokens are laid out for it.
 *
 *   cell     t0.r0  t0.r1  t1.r0  t1.r1
 *   x        t0: 8 k | t1: 8 k             two tokens, woven once per chunk (tokens_read)
 *   weights  r0: 8 k | r1: 8 k             two code groups, woven when unpacked
 *
 * Codes always come unpacked: tiles of fewer than 3 tokens are the dotprod tier's. The same names
 * with SDOT: dot_dotprod.h. User: tiles_128.h. */
#ifndef PITH_KERNEL_ARM_DOT_I8MM_H
#define PITH_KERNEL_ARM_DOT_I8MM_H

#include "kernel/arm/codes_128.h"
#include "kernel/expanded.h"

#include <string.h>

enum {
    CELL_TOKENS = 2,
    TILE = 6,           /* tokens */
    PART_TOKENS = TILE, /* of a tile's part, which has PART_QUADS of rows */
    PART_QUADS = 2,
    FOLDS = 1, /* codes may have 8 bits: scales of a few bits go into them (tiles_128.h) */
    PAIR_BYTES = 2 * GROUPS * PITH_GROUP
};

/* Pairs of tokens over a chunk: [3 pairs][32][2 tokens][8 k]. */
typedef struct tokens {
    _Alignas(64) int8_t pair[TILE / 2][PAIR_BYTES];
} tokens;

/* 8 bytes through a general register: storing a vector takes a vector pipe too. */
ALWAYS_INLINE void copy_8(void *to, const void *from) {
    uint64_t v;
    memcpy(&v, from, sizeof v);
    __asm__("" : "+r"(v));
    memcpy(to, &v, sizeof v);
}

/* A float twice, the same way. */
ALWAYS_INLINE void copy_twice(void *to, const float *from) {
    uint32_t bits;
    memcpy(&bits, from, sizeof bits);
    uint64_t v = bits | (uint64_t)bits << 32;
    __asm__("" : "+r"(v));
    memcpy(to, &v, sizeof v);
}

/* Tokens t0 .. t0 + T - 1 of n groups; of the tokens only the first `valid` exist: the last one
 * stands for the others. */
ALWAYS_INLINE void tokens_read(tokens *x, const pith_q8 *q8, size_t t0, uint32_t valid, size_t g0,
                               int n, const int T) {
    for (uint32_t p = 0; p < (uint32_t)T / 2; p++) {
        const uint32_t first = 2 * p < valid ? 2 * p : valid - 1,
                       second = 2 * p + 1 < valid ? 2 * p + 1 : valid - 1;
        const int8_t *a = q8->q + (t0 + first) * q8->q_stride + g0 * PITH_GROUP,
                     *b = q8->q + (t0 + second) * q8->q_stride + g0 * PITH_GROUP;
        for (int k = 0; k < n * PITH_GROUP; k += 16) {
            int64x2_t v = vreinterpretq_s64_s8(vld1q_s8(a + k)),
                      w = vreinterpretq_s64_s8(vld1q_s8(b + k));
            vst1q_s8(x->pair[p] + 2 * k, vreinterpretq_s8_s64(vzip1q_s64(v, w)));
            vst1q_s8(x->pair[p] + 2 * k + 16, vreinterpretq_s8_s64(vzip2q_s64(v, w)));
        }
    }
}

/* Two code groups of group j into unpacked codes: [8 groups][4][8 pairs of rows][2 rows][8 k]. */
ALWAYS_INLINE void unpacked_store(int8_t *out, int j, int i, int quad, int8x16_t first,
                                  int8x16_t second) {
    int8_t *at = out + (size_t)(8 * j + i) * 64 + 32 * (size_t)quad;
    int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    vst1q_s8(at, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
    vst1q_s8(at + 16, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
}

/* Unpacked codes of n groups that were expanded. */
ALWAYS_INLINE const int8_t *unpacked_from(const expanded *e, int8_t *codes, int n) {
    for (int j = 0; j < n; j++) {
        const int8_t(*group)[64] = (const int8_t(*)[64])e->code[j];
        UNROLL for (int i = 0; i < 8; i += 2) {
            UNROLL for (int q = 0; q < 4; q++) {
                unpacked_store(codes, j, i, q, vld1q_s8(group[i] + 16 * q),
                               vld1q_s8(group[i + 1] + 16 * q));
            }
        }
    }
    return codes;
}

/* Factors of 4 rows as the cells of a tile need them. */
ALWAYS_INLINE void factor_store(float *out, int quad, float32x4_t rows) {
    vst1q_f32(out + 8 * quad, vcombine_f32(vget_low_f32(rows), vget_low_f32(rows)));
    vst1q_f32(out + 8 * quad + 4, vcombine_f32(vget_high_f32(rows), vget_high_f32(rows)));
}

/* A scalar of each token of a part: those of its columns of cells, in memory [2 X tokens][2]. */
typedef struct columns {
    float32x4_t pair[TILE / 2];
} columns;

ALWAYS_INLINE columns columns_load(const float *scalar, const int X) {
    columns d;
    UNROLL for (int x = 0; x < X; x++) {
        d.pair[x] = vld1q_f32(scalar + 4 * x);
    }
    return d;
}

ALWAYS_INLINE float32x4_t times_column(float32x4_t a, columns d, const int x) {
    return vmulq_f32(a, d.pair[x]);
}

/* fma(a, d of column x, acc) */
ALWAYS_INLINE float32x4_t fma_column(float32x4_t a, columns d, const int x, float32x4_t acc) {
    return vfmaq_f32(acc, a, d.pair[x]);
}

/* The scalar of token t. */
ALWAYS_INLINE void scalar_store(float *out, uint32_t t, float value) {
    copy_twice(out + 2 * (size_t)t, &value);
}

/* Cells of 4 Q rows and T tokens -> rows of y; only `valid` tokens are written. */
ALWAYS_INLINE void cells_store(float *y, size_t y_stride, const float32x4_t (*cell)[4],
                               uint32_t valid, const int T, const int Q) {
    UNROLL for (int x = 0; x < T / 2; x++) {
        UNROLL for (int q = 0; q < Q; q++) {
            float32x4_t a = cell[x][2 * q], b = cell[x][2 * q + 1];
            float *at = y + (size_t)(2 * x) * y_stride + 4 * q;
            if (2 * (uint32_t)x < valid)
                vst1q_f32(at, vcombine_f32(vget_low_f32(a), vget_low_f32(b)));
            if (2 * (uint32_t)x + 1 < valid)
                vst1q_f32(at + y_stride, vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
        }
    }
}

/* The sums of a group's second part start anew. Loads are scarce here, so only where
 * they must. */
ALWAYS_INLINE bool parts_apart(pith_type type) {
    return type == FORM_FLOATS;
}

/* Where all sums start. */
ALWAYS_INLINE int32x4_t dot_start(void) {
    return vdupq_n_s32(MAGIC_BITS);
}

/* sum[x][i] += code groups first .. last - 1 (even) of group j4 + jj: row pairs from quad
 * `quad`, token pairs x. */
ALWAYS_INLINE void dot_part(int32x4_t (*sum)[4], const chunk *w, const tokens *x,
                            const int32_t *start, int j4, const int jj, const int first,
                            const int last, const int quad, const int T, const int Q,
                            const bool wide, const pith_type type) {
    const int8_t *codes = w->unpacked + (size_t)(j4 + jj) * 512 + 32 * (size_t)quad;
    const size_t at = (size_t)(j4 + jj) * 64;
    (void)start;
    (void)wide;
    UNROLL for (int c = 0; c < T / 2; c++) {
        UNROLL for (int i = 0; i < 2 * Q; i++) {
            if (first == 0 || parts_apart(type)) sum[c][i] = start_load(w);
        }
    }
    UNROLL for (int e = first / 2; e < last / 2; e++) {
        int8x16_t v[TILE / 2];
        UNROLL for (int c = 0; c < T / 2; c++) {
            v[c] = vld1q_s8(x->pair[c] + at + 16 * e);
        }
        UNROLL for (int i = 0; i < 2 * Q; i++) {
            int8x16_t code = vld1q_s8(codes + 128 * e + 16 * i);
            UNROLL for (int c = 0; c < T / 2; c++) {
                sum[c][i] = vmmlaq_s32(sum[c][i], v[c], code);
            }
        }
        sums_keep(sum, T / 2, 2 * Q);
    }
}

#endif
