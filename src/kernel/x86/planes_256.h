/* SPDX-License-Identifier: Apache-2.0
 * The integer dot products of one group of 32 k of 16 rows with a tile of tokens, 256-bit
 * registers. Codes come from the panel or from a chunk that was unpacked; types differ in how
 * many code groups may be added before words overflow (dot_avx2.h): 4-bit planes of a whole
 * group, or two groups at a time. The file that includes this has included dot_avx2.h or
 * dot_avxvnni.h. */
#ifndef PITH_KERNEL_X86_PLANES_256_H
#define PITH_KERNEL_X86_PLANES_256_H

#include "kernel/x86/codes_256.h"

enum { TILE = DOT_TOKENS, MAX_CODES = GROUPS * DOT_BYTE_PLANES * 512 };

/* 256 k of a panel. */
typedef struct chunk {
    const uint8_t *panel;    /* packed codes, or */
    const uint8_t *unpacked; /* [GROUPS][8][64]; NULL: not unpacked */
    factors f;
} chunk;

/* How a type is multiplied: two groups at a time, or in planes of codes. */
ALWAYS_INLINE bool in_pairs(pith_type type) {
    return DOT_PAIRS &&
           (type == PITH_TYPE_Q5_0 || type == PITH_TYPE_Q5_1 || type == PITH_TYPE_Q5_K ||
            type == PITH_TYPE_Q6_K || type == PITH_TYPE_MXFP4 || type == FORM_FLOATS);
}

/* One code group at a time. */
ALWAYS_INLINE bool in_singles(pith_type type) {
    return DOT_PAIRS && type == FORM_HALVES_BOOK;
}

ALWAYS_INLINE int n_plane(pith_type type) {
    return type == PITH_TYPE_Q8_0 || is_iq4(type) ? DOT_BYTE_PLANES : 1;
}
ALWAYS_INLINE int tile_tokens(pith_type type) {
    if (in_singles(type)) return DOT_SINGLE_TOKENS;
    return in_pairs(type) || n_plane(type) > 1 ? DOT_PAIR_TOKENS : DOT_TOKENS;
}

/* book[code] + offset, or a nibble of that. */
ALWAYS_INLINE lanes16 look_up(lanes16 code, const int8_t *book, int offset, const int plane,
                              const bool in_planes) {
    __m128i all = _mm_loadu_si128((const __m128i *)(const void *)book);
    __m256i table = _mm256_broadcastsi128_si256(_mm_add_epi8(all, _mm_set1_epi8((char)offset)));
    if (in_planes && plane) table = _mm256_srli_epi16(table, 4);
    if (in_planes) table = _mm256_and_si256(table, _mm256_set1_epi8(15));
    return (lanes16){_mm256_shuffle_epi8(table, code.low), _mm256_shuffle_epi8(table, code.high)};
}

/* Code group i of group j4 + jj as unsigned bytes; 8-bit codes: value + 128, or a nibble of that.
 */
ALWAYS_INLINE lanes16 code_plane(const uint8_t *panel, int j4, const int jj, const int i,
                                 const int plane, const pith_type type) {
    const __m256i sign = _mm256_set1_epi8((char)0x80), nibble = _mm256_set1_epi8(15);
    lanes16 code = code_group(panel, j4, jj, i, type);
    if (type == PITH_TYPE_MXFP4) return look_up(code, pith_book_fp4, 16, 0, false);
    if (is_iq4(type)) return look_up(code, pith_book_iq4, 128, plane, n_plane(type) > 1);
    if (type != PITH_TYPE_Q8_0) return code;
    code = (lanes16){_mm256_xor_si256(code.low, sign), _mm256_xor_si256(code.high, sign)};
    if (DOT_BYTE_PLANES == 1) return code;
    return lanes_and(plane ? lanes_shift(code, -4) : code, nibble);
}

ALWAYS_INLINE size_t unpacked_at(int j, int i, int plane, pith_type type) {
    return (size_t)((j * n_plane(type) + plane) * 8 + i) * 64;
}

ALWAYS_INLINE lanes16 code_at(const chunk *w, int j4, const int jj, const int i, const int plane,
                              const bool wide, const pith_type type) {
    if (wide) return lanes_load(w->unpacked + unpacked_at(j4 + jj, i, plane, type));
    return code_plane(w->panel, j4, jj, i, plane, type);
}

/* Pointers that gcc keeps in registers, instead of computing addresses anew for every load. */
ALWAYS_INLINE void rows_at(const int8_t **row, const int8_t *x, size_t stride, const int T) {
    UNROLL for (int t = 0; t < T; t++) {
        row[t] = x + (size_t)t * stride;
        __asm__("" : "+r"(row[t]));
    }
}

/* sum[t] += code groups first .. last - 1 of group j4 + jj. x: the tile's first token at this
 * group. */
ALWAYS_INLINE void dot_groups(const chunk *w, int j4, const int jj, const int first, const int last,
                              const int8_t *x, size_t stride, lanes16 *sum, const int T,
                              const bool wide, const pith_type type) {
    const int8_t *row[TILE];
    rows_at(row, x, stride, T);
    UNROLL for (int plane = 0; plane < n_plane(type); plane++) {
        lanes16 words[TILE];
        UNROLL for (int t = 0; t < T; t++) {
            words[t] = lanes_set(0);
        }
        UNROLL for (int i = first; i < last; i++) {
            lanes16 code = code_at(w, j4, jj, i, plane, wide, type);
            UNROLL for (int t = 0; t < T; t++) {
                dot_step(&words[t], code, broadcast4(row[t] + 4 * i));
            }
        }
        UNROLL for (int t = 0; t < T; t++) {
            dot_end(&sum[t], words[t], plane ? 16 : 1);
        }
        if (n_plane(type) > 1) stored(); /* else gcc mixes the planes and runs out of registers */
    }
}

ALWAYS_INLINE void dot_group_pairs(const chunk *w, int j4, const int jj, const int first,
                                   const int last, const int8_t *x, size_t stride, lanes16 *sum,
                                   const int T, const bool wide, const pith_type type) {
    const int8_t *row[TILE];
    rows_at(row, x, stride, T);
    UNROLL for (int i = first; i < last; i += 2) {
        lanes16 w0 = code_at(w, j4, jj, i, 0, wide, type),
                w1 = code_at(w, j4, jj, i + 1, 0, wide, type);
        UNROLL for (int t = 0; t < T; t++) {
            const int8_t *at = row[t] + 4 * i;
            dot_pair(&sum[t], w0, w1, broadcast4(at), broadcast4(at + 4));
        }
    }
}

ALWAYS_INLINE void dot_group_singles(const chunk *w, int j4, const int jj, const int first,
                                     const int last, const int8_t *x, size_t stride, lanes16 *sum,
                                     const int T, const bool wide, const pith_type type) {
    const int8_t *row[TILE];
    rows_at(row, x, stride, T);
    UNROLL for (int i = first; i < last; i++) {
        lanes16 code = code_at(w, j4, jj, i, 0, wide, type);
        UNROLL for (int t = 0; t < T; t++) {
            dot_single(&sum[t], code, broadcast4(row[t] + 4 * i));
        }
    }
}

ALWAYS_INLINE void unpack(uint8_t *out, const uint8_t *panel, int n, const pith_type type) {
    for (int j4 = 0; j4 < n; j4 += 4) {
        UNROLL for (int jj = 0; jj < 4; jj++) {
            if (j4 + jj >= n) break;
            UNROLL for (int i = 0; i < 8; i++) {
                UNROLL for (int plane = 0; plane < n_plane(type); plane++) {
                    lanes_store(out + unpacked_at(j4 + jj, i, plane, type),
                                code_plane(panel, j4, jj, i, plane, type));
                }
            }
        }
    }
}

#endif
