/* SPDX-License-Identifier: Apache-2.0
 * Attention of query rows over one KV page with 256-bit registers, for the tiers avx2 and avxvnni
 * (contract: pith_attend in kernel.h; bits: attend_ref.c). The file that includes this has included
 * dot_avx2.h or dot_avxvnni.h.
 *
 * Rows go in blocks of up to 3, which share every load of K and V. Scores: 8 tokens a register;
 * float K has the contract's four chains over d (3 rows x 4 chains), int8 K the integer dot
 * product of the tier over 32 d with codes made unsigned. Values: 3 rows x 4 vectors of d stay
 * in registers while the tokens pass in order. What all rows of a block see is done together,
 * the edges row by row. Slots outside a row's range are computed but never used. */
#ifndef PITH_KERNEL_X86_ATTEND_256_H
#define PITH_KERNEL_X86_ATTEND_256_H

#include "kernel/x86/lanes_256.h"
#include "kernel/x86/vector_math_avx2.h"

typedef enum kind { F32, F16, I8 } kind;

enum { TOKENS = PITH_PAGE_TOKENS, ROWS = 3, EIGHTS = TOKENS / 8 };

/* Scores, then weights, of a block of rows. */
typedef struct block {
    float p[ROWS][TOKENS];
    uint32_t begin[ROWS], end[ROWS];
} block;

ALWAYS_INLINE __m256 load_k(const void *k, size_t index, kind type) {
    if (type == F32) return _mm256_loadu_ps((const float *)k + index);
    return _mm256_cvtph_ps(
        _mm_loadu_si128((const __m128i *)(const void *)((const uint16_t *)k + index)));
}

/* chain c += K[tokens][d] * q[d] */
ALWAYS_INLINE void score_step(const pith_attend *args, __m256 chain[ROWS][4], const float *q,
                              size_t k_index, const int c, const int R, const kind type) {
    __m256 k = load_k(args->page.k, k_index, type);
    UNROLL for (int r = 0; r < R; r++) {
        chain[r][c] =
            _mm256_fmadd_ps(k, _mm256_broadcast_ss(q + (size_t)r * args->q_stride), chain[r][c]);
    }
}

/* Tokens 8 e .. 8 e + 7 of float K. */
ALWAYS_INLINE void scores_float(const pith_attend *args, block *b, uint32_t row, uint32_t e,
                                const int R, const kind type) {
    const size_t base = (size_t)(e / 2) * args->head_dim * 16 + e % 2 * 8;
    const float *q = args->q + row * args->q_stride;
    __m256 chain[ROWS][4];
    uint32_t d = 0;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 4; c++) {
            chain[r][c] = _mm256_setzero_ps();
        }
    }
    for (; d + 4 <= args->head_dim; d += 4) {
        UNROLL for (int c = 0; c < 4; c++) {
            score_step(args, chain, q + d + c, base + (d + (uint32_t)c) * 16, c, R, type);
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (d + (uint32_t)c < args->head_dim)
            score_step(args, chain, q + d + c, base + (d + (uint32_t)c) * 16, c, R, type);
    }
    UNROLL for (int r = 0; r < R; r++) {
        __m256 *c = chain[r];
        _mm256_storeu_ps(b->p[r] + 8 * e,
                         _mm256_add_ps(_mm256_add_ps(c[0], c[1]), _mm256_add_ps(c[2], c[3])));
    }
}

/* 32 d of 16 tokens: plane `plane` of the codes K + 128 with R rows. */
ALWAYS_INLINE void dot_plane(lanes16 *sum, const int8_t *k, const int8_t *q, size_t q_stride,
                             const int plane, const int R) {
    const __m256i sign = _mm256_set1_epi8((char)0x80), nibble = _mm256_set1_epi8(15);
    lanes16 words[ROWS];
    UNROLL for (int r = 0; r < R; r++) {
        words[r] = lanes_set(0);
    }
    UNROLL for (int g = 0; g < 8; g++) {
        lanes16 code = lanes_load(k + 64 * g);
        code = (lanes16){_mm256_xor_si256(code.low, sign), _mm256_xor_si256(code.high, sign)};
        if (DOT_BYTE_PLANES == 2) code = lanes_and(plane ? lanes_shift(code, -4) : code, nibble);
        UNROLL for (int r = 0; r < R; r++) {
            dot_step(&words[r], code, broadcast4(q + (size_t)r * q_stride + 4 * g));
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        dot_end(&sum[r], words[r], plane ? 16 : 1);
    }
}

/* Tokens 16 i .. 16 i + 15 of int8 K: per 32 d an exact integer dot, then acc = fma(dot, d_q,
 * acc); times k_scale. */
ALWAYS_INLINE void scores_i8(const pith_attend *args, block *b, uint32_t row, uint32_t i,
                             const int R) {
    const pith_q8 *q8 = args->q8;
    const int8_t *k = (const int8_t *)args->page.k + (size_t)i * args->head_dim * 16;
    const int8_t *q = q8->q + (args->first_q8 + row) * q8->q_stride;
    const size_t at = (args->first_q8 + row) * q8->d_stride;
    floats16 acc[ROWS];
    UNROLL for (int r = 0; r < R; r++) {
        acc[r] = ps_all(0.0f);
    }
    for (uint32_t g = 0; g < args->head_dim / PITH_GROUP; g++, k += 512, q += PITH_GROUP) {
        lanes16 sum[ROWS];
        UNROLL for (int r = 0; r < R; r++) {
            sum[r] = lanes_set(-128 * q8->sum[at + (size_t)r * q8->d_stride + g]);
        }
        UNROLL for (int plane = 0; plane < DOT_BYTE_PLANES; plane++) {
            dot_plane(sum, k, q, q8->q_stride, plane, R);
        }
        UNROLL for (int r = 0; r < R; r++) {
            acc[r] =
                ps_fma(ps_of(sum[r]), ps_all(q8->d[at + (size_t)r * q8->d_stride + g]), acc[r]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        ps_store(b->p[r] + 16 * i, ps_mul(acc[r], ps_load(args->page.k_scale + 16 * i)));
    }
}

/* Lanes of tokens 8 e .. 8 e + 7 that [begin, end) covers. */
ALWAYS_INLINE __m256 visible(uint32_t begin, uint32_t end, uint32_t e) {
    const __m256i t = _mm256_add_epi32(_mm256_set1_epi32((int)(8 * e)),
                                       _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i early = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)begin), t);
    return _mm256_castsi256_ps(
        _mm256_andnot_si256(early, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)end), t)));
}

/* Scores of row r of the block -> weights exp(s - m); m and l of row `row`. int8: weights times
 * v_scale. */
ALWAYS_INLINE void soften(const pith_attend *args, block *b, uint32_t row, uint32_t r,
                          const kind type) {
    __m256 top = ps_set(-INFINITY), sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t e = 0; e < EIGHTS; e++) {
        __m256 s = _mm256_mul_ps(_mm256_loadu_ps(b->p[r] + 8 * e), ps_set(args->scale));
        if (args->softcap > 0.0f)
            s = _mm256_mul_ps(ps_set(args->softcap),
                              ps_tanh(_mm256_div_ps(s, ps_set(args->softcap))));
        top = ps_choose(visible(b->begin[r], b->end[r], e), _mm256_max_ps(s, top), top);
        _mm256_storeu_ps(b->p[r] + 8 * e, s);
    }
    float m = ps_largest(top) + 0.0f;
    if (b->begin[r] < b->end[r] && m == -INFINITY) m = NAN;
    for (uint32_t e = 0; e < EIGHTS; e++) {
        __m256 in = visible(b->begin[r], b->end[r], e);
        __m256 p =
            _mm256_and_ps(in, ps_exp(_mm256_sub_ps(_mm256_loadu_ps(b->p[r] + 8 * e), ps_set(m))));
        sums[e % 2] = _mm256_add_ps(sums[e % 2], p);
        if (type == I8)
            p = _mm256_and_ps(in, _mm256_mul_ps(p, _mm256_loadu_ps(args->page.v_scale + 8 * e)));
        _mm256_storeu_ps(b->p[r] + 8 * e, p);
    }
    args->m[row] = m;
    args->l[row] = ps_fold(sums[0], sums[1]);
}

/* n of 8 values. */
ALWAYS_INLINE __m256 load_v(const void *v, size_t index, uint32_t n, kind type) {
    uint16_t half[8] = {0};
    int8_t bytes[8] = {0};
    if (type == F32) return load_n((const float *)v + index, n);
    if (type == F16) {
        const uint16_t *at = (const uint16_t *)v + index;
        if (n < 8) at = memcpy(half, at, n * sizeof *half);
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
    }
    const int8_t *at = (const int8_t *)v + index;
    if (n < 8) at = memcpy(bytes, at, n);
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}

/* o[r][d .. d + 8 C) over tokens [from, to) for R rows of a block from row r0. */
ALWAYS_INLINE void values_at(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                             uint32_t d, uint32_t from, uint32_t to, const int R, const int C,
                             const kind type) {
    __m256 o[ROWS][4];
    float *out = args->o + (row + r0) * args->o_stride + d;
    const uint32_t last = args->head_dim_v - d -
                          8 * (uint32_t)(C - 1); /* values in the last vector, 8 or fewer count */
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            o[r][c] = load_n(out + (size_t)r * args->o_stride + 8 * c, c + 1 < C ? 8 : last);
        }
    }
    for (uint32_t t = from; t < to; t++) {
        UNROLL for (int c = 0; c < C; c++) {
            __m256 v = load_v(args->page.v, (size_t)t * args->head_dim_v + d + 8 * (uint32_t)c,
                              c + 1 < C ? 8 : last, type);
            UNROLL for (int r = 0; r < R; r++) {
                o[r][c] =
                    _mm256_fmadd_ps(_mm256_broadcast_ss(&b->p[r0 + (uint32_t)r][t]), v, o[r][c]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            store_n(out + (size_t)r * args->o_stride + 8 * c, c + 1 < C ? 8 : last, o[r][c]);
        }
    }
}

ALWAYS_INLINE void values(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                          uint32_t from, uint32_t to, const int R, const kind type) {
    uint32_t d = 0, width = args->head_dim_v;
    if (from >= to) return;
    for (; d + 32 <= width; d += 32) values_at(args, b, row, r0, d, from, to, R, 4, type);
    for (; d < width; d += 8) values_at(args, b, row, r0, d, from, to, R, 1, type);
}

ALWAYS_INLINE void scores(const pith_attend *args, block *b, uint32_t row, uint32_t first,
                          uint32_t last, const int R, const kind type) {
    memset(b->p, 0, sizeof b->p);
    for (uint32_t i = first / 16; 16 * i < last; i++) {
        if (type == I8) {
            scores_i8(args, b, row, i, R);
        } else {
            scores_float(args, b, row, 2 * i, R, type);
            scores_float(args, b, row, 2 * i + 1, R, type);
        }
    }
}

ALWAYS_INLINE void attend_block(const pith_attend *args, uint32_t row, const int R,
                                const kind type) {
    block b;
    uint32_t first = TOKENS, last = 0, common_begin = 0, common_end = TOKENS;
    for (uint32_t r = 0; r < (uint32_t)R; r++) {
        bool some = args->begin[row + r] < args->end[row + r];
        b.begin[r] = some ? (uint32_t)args->begin[row + r] : 0;
        b.end[r] = some ? (uint32_t)args->end[row + r] : 0;
        if (some && b.begin[r] < first) first = b.begin[r];
        if (b.end[r] > last) last = b.end[r];
        if (b.begin[r] > common_begin) common_begin = b.begin[r];
        if (b.end[r] < common_end) common_end = b.end[r];
        memset(args->o + (row + r) * args->o_stride, 0, args->head_dim_v * sizeof(float));
    }
    scores(args, &b, row, first, last, R, type);
    for (uint32_t r = 0; r < (uint32_t)R; r++) soften(args, &b, row + r, r, type);
    bool shared = common_begin < common_end;
    for (uint32_t r = 0; r < (uint32_t)R; r++)
        values(args, &b, row, r, b.begin[r], shared ? common_begin : b.end[r], 1, type);
    if (!shared) return;
    values(args, &b, row, 0, common_begin, common_end, R, type);
    for (uint32_t r = 0; r < (uint32_t)R; r++)
        values(args, &b, row, r, common_end, b.end[r], 1, type);
}

ALWAYS_INLINE void attend(const pith_attend *args, const kind type) {
    uint32_t row = 0;
    for (; row + 3 <= args->n; row += 3) attend_block(args, row, 3, type);
    if (args->n - row == 2) attend_block(args, row, 2, type);
    if (args->n - row == 1) attend_block(args, row, 1, type);
}

#endif
