/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 attention of query rows over one KV page (contract: pith_attend in kernel.h; bits:
 * attend_ref.c).
 *
 * Rows go in blocks of up to 6, which share every load of K and V. Scores: a K panel is 16
 * tokens wide, so a register holds the scores of 16 tokens; float K has the contract's four
 * chains over d (6 rows x 4 chains), int8 K one vpdpbusd a 4 bytes of d with codes made unsigned
 * (+128, taken back by 128 * sum(q)). Values: 6 rows x 4 vectors of d stay in registers while
 * the tokens pass in order. Rows of a block see different ranges: what all see is done together,
 * the edges row by row, each row in increasing t. Slots outside a row's range are computed but
 * never used. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/vector_math_avx512.h"
#include "kernel/x86/x86.h"

typedef enum kind { F32, F16, I8 } kind;

enum { TOKENS = PITH_PAGE_TOKENS, PANELS = 4, ROWS = 6 };

/* Scores, then weights, of a block of rows. */
typedef struct block {
    float p[ROWS][TOKENS];
    uint32_t begin[ROWS], end[ROWS];
} block;

/* ---- Scores ---- */

ALWAYS_INLINE __m512 load_k(const void *k, size_t index, kind type) {
    return type == F32 ? _mm512_loadu_ps((const float *)k + index)
                       : load_f16((const uint16_t *)k + index);
}

/* Panel `panel` of float K with R rows from `row`. */
ALWAYS_INLINE void scores_float(const pith_attend *args, block *b, uint32_t row, uint32_t panel,
                                const int R, const kind type) {
    const size_t base = (size_t)panel * args->head_dim * 16;
    const float *q = args->q + row * args->q_stride;
    __m512 chain[ROWS][4];
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < 4; c++) {
            chain[r][c] = _mm512_setzero_ps();
        }
    }
    uint32_t d = 0;
    for (; d + 4 <= args->head_dim; d += 4) {
        UNROLL for (int c = 0; c < 4; c++) {
            __m512 k = load_k(args->page.k, base + (d + (uint32_t)c) * 16, type);
            UNROLL for (int r = 0; r < R; r++) {
                __m512 x = _mm512_set1_ps(q[(size_t)r * args->q_stride + d + (uint32_t)c]);
                chain[r][c] = _mm512_fmadd_ps(k, x, chain[r][c]);
            }
        }
    }
    UNROLL for (int c = 0; c < 3; c++) {
        if (d + (uint32_t)c >= args->head_dim) continue;
        __m512 k = load_k(args->page.k, base + (d + (uint32_t)c) * 16, type);
        UNROLL for (int r = 0; r < R; r++) {
            __m512 x = _mm512_set1_ps(q[(size_t)r * args->q_stride + d + (uint32_t)c]);
            chain[r][c] = _mm512_fmadd_ps(k, x, chain[r][c]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        __m512 low = _mm512_add_ps(chain[r][0], chain[r][1]),
               high = _mm512_add_ps(chain[r][2], chain[r][3]);
        _mm512_storeu_ps(b->p[r] + 16 * panel, _mm512_add_ps(low, high));
    }
}

/* Panel `panel` of int8 K: per 32 d an exact integer dot, then acc = fma(dot, d_q, acc); times
 * k_scale. */
ALWAYS_INLINE void scores_i8(const pith_attend *args, block *b, uint32_t row, uint32_t panel,
                             const int R) {
    const pith_q8 *q8 = args->q8;
    const int8_t *k = (const int8_t *)args->page.k + (size_t)panel * args->head_dim * 16;
    const int8_t *q = q8->q + (args->first_q8 + row) * q8->q_stride;
    const size_t at = (args->first_q8 + row) * q8->d_stride;
    __m512 acc[ROWS], k_scale = _mm512_loadu_ps(args->page.k_scale + 16 * panel);
    UNROLL for (int r = 0; r < R; r++) {
        acc[r] = _mm512_setzero_ps();
    }
    for (uint32_t i = 0; i < args->head_dim / PITH_GROUP; i++, k += 512, q += PITH_GROUP) {
        __m512i dot[ROWS];
        UNROLL for (int r = 0; r < R; r++) {
            dot[r] = _mm512_set1_epi32(-128 * q8->sum[at + (size_t)r * q8->d_stride + i]);
        }
        UNROLL for (int g = 0; g < 8; g++) {
            __m512i code = _mm512_xor_si512(load_codes(k + 64 * g), _mm512_set1_epi8((char)0x80));
            UNROLL for (int r = 0; r < R; r++) {
                DOT(dot[r], code, q + (size_t)r * q8->q_stride + 4 * g);
            }
        }
        UNROLL for (int r = 0; r < R; r++) {
            __m512 d = _mm512_set1_ps(q8->d[at + (size_t)r * q8->d_stride + i]);
            acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r]), d, acc[r]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        _mm512_storeu_ps(b->p[r] + 16 * panel, _mm512_mul_ps(acc[r], k_scale));
    }
}

/* Lanes of panel `panel` that [begin, end) covers. */
ALWAYS_INLINE __mmask16 visible(uint32_t begin, uint32_t end, uint32_t panel) {
    const __m512i t =
        _mm512_add_epi32(_mm512_set1_epi32((int)(16 * panel)),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm512_cmpge_epu32_mask(t, _mm512_set1_epi32((int)begin)) &
           _mm512_cmplt_epu32_mask(t, _mm512_set1_epi32((int)end));
}

/* Scores of row r of the block -> weights exp(s - m); m and l of row `row`. int8: weights times
 * v_scale. */
ALWAYS_INLINE void soften(const pith_attend *args, block *b, uint32_t row, uint32_t r,
                          const kind type) {
    __m512 s[PANELS], top = ps_set(-INFINITY), lanes = _mm512_setzero_ps();
    UNROLL for (uint32_t i = 0; i < PANELS; i++) {
        s[i] = _mm512_mul_ps(_mm512_loadu_ps(b->p[r] + 16 * i), ps_set(args->scale));
        if (args->softcap > 0.0f) {
            __m512 cap = ps_set(args->softcap);
            s[i] = _mm512_mul_ps(cap, ps_tanh(_mm512_div_ps(s[i], cap)));
        }
        top = _mm512_mask_max_ps(top, visible(b->begin[r], b->end[r], i), s[i], top);
    }
    float m = _mm512_reduce_max_ps(top) + 0.0f;
    if (b->begin[r] < b->end[r] && m == -INFINITY) m = NAN;
    UNROLL for (uint32_t i = 0; i < PANELS; i++) {
        __mmask16 in = visible(b->begin[r], b->end[r], i);
        __m512 p = _mm512_maskz_mov_ps(in, ps_exp(_mm512_sub_ps(s[i], ps_set(m))));
        lanes = _mm512_mask_add_ps(lanes, in, lanes, p);
        if (type == I8)
            p = _mm512_mul_ps(p, _mm512_maskz_loadu_ps(in, args->page.v_scale + 16 * i));
        _mm512_storeu_ps(b->p[r] + 16 * i, p);
    }
    args->m[row] = m;
    args->l[row] = ps_fold(lanes);
}

/* ---- Values ---- */

ALWAYS_INLINE __m512 load_v(const void *v, size_t index, __mmask16 in, kind type) {
    if (type == F32) return _mm512_maskz_loadu_ps(in, (const float *)v + index);
    if (type == F16)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(in, (const uint16_t *)v + index));
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(in, (const int8_t *)v + index)));
}

/* o[r][d .. d + 16 C) over tokens [from, to) for R rows of a block from row r0. */
ALWAYS_INLINE void values_at(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                             uint32_t d, uint32_t from, uint32_t to, const int R, const int C,
                             const kind type) {
    __m512 o[ROWS][4];
    __mmask16 in[4];
    float *out = args->o + (row + r0) * args->o_stride + d;
    UNROLL for (int c = 0; c < C; c++) {
        uint32_t start = d + 16 * (uint32_t)c;
        in[c] = start < args->head_dim_v ? first_lanes(args->head_dim_v - start) : 0;
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            o[r][c] = _mm512_maskz_loadu_ps(in[c], out + (size_t)r * args->o_stride + 16 * c);
        }
    }
    for (uint32_t t = from; t < to; t++) {
        UNROLL for (int c = 0; c < C; c++) {
            __m512 v = load_v(args->page.v, (size_t)t * args->head_dim_v + d + 16 * (uint32_t)c,
                              in[c], type);
            UNROLL for (int r = 0; r < R; r++) {
                o[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(b->p[r0 + (uint32_t)r][t]), v, o[r][c]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            _mm512_mask_storeu_ps(out + (size_t)r * args->o_stride + 16 * c, in[c], o[r][c]);
        }
    }
}

/* All d over tokens [from, to). */
ALWAYS_INLINE void values(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                          uint32_t from, uint32_t to, const int R, const kind type) {
    uint32_t d = 0, width = args->head_dim_v;
    if (from >= to) return;
    for (; d + 64 <= width; d += 64) values_at(args, b, row, r0, d, from, to, R, 4, type);
    if (d + 32 < width) { /* 33 to 63 left */
        values_at(args, b, row, r0, d, from, to, R, 2, type);
        d += 32;
    }
    if (d < width) values_at(args, b, row, r0, d, from, to, R, 2, type);
}

/* ---- A block of R rows ---- */

ALWAYS_INLINE void clear_outputs(const pith_attend *args, uint32_t row, const int R) {
    for (uint32_t r = row; r < row + (uint32_t)R; r++)
        for (uint32_t d = 0; d < args->head_dim_v; d += 16)
            _mm512_mask_storeu_ps(args->o + r * args->o_stride + d,
                                  first_lanes(args->head_dim_v - d), _mm512_setzero_ps());
}

ALWAYS_INLINE void attend_block(const pith_attend *args, uint32_t row, const int R,
                                const kind type) {
    block b;
    uint32_t first = TOKENS, last = 0, common_begin = 0, common_end = TOKENS;
    for (uint32_t r = 0; r < (uint32_t)R; r++) {
        int32_t begin = args->begin[row + r], end = args->end[row + r];
        b.begin[r] = begin < end ? (uint32_t)begin : 0;
        b.end[r] = begin < end ? (uint32_t)end : 0;
        if (begin < end && b.begin[r] < first) first = b.begin[r];
        if (b.end[r] > last) last = b.end[r];
        if (b.begin[r] > common_begin) common_begin = b.begin[r];
        if (b.end[r] < common_end) common_end = b.end[r];
    }
    clear_outputs(args, row, R);
    for (uint32_t i = 0; i < PANELS; i++) {
        if (16 * i + 16 <= first || 16 * i >= last) {
            UNROLL for (int r = 0; r < R; r++) {
                _mm512_storeu_ps(b.p[r] + 16 * i, _mm512_setzero_ps());
            }
        } else if (type == I8) {
            scores_i8(args, &b, row, i, R);
        } else {
            scores_float(args, &b, row, i, R, type);
        }
    }
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
    for (uint32_t row = 0; row < args->n;) {
        uint32_t left = args->n - row;
        uint32_t take = left >= 9 || left == 6 ? 6 : left > 4 ? 4 : left;
        switch (take) {
        case 1: attend_block(args, row, 1, type); break;
        case 2: attend_block(args, row, 2, type); break;
        case 3: attend_block(args, row, 3, type); break;
        case 4: attend_block(args, row, 4, type); break;
        default: attend_block(args, row, 6, type); break;
        }
        row += take;
    }
}

void pith_attend_f32_avx512(const pith_attend *args) {
    attend(args, F32);
}
void pith_attend_f16_avx512(const pith_attend *args) {
    attend(args, F16);
}
void pith_attend_i8_avx512(const pith_attend *args) {
    attend(args, I8);
}
