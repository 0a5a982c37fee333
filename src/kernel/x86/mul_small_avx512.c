/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products of the 32-element types Q4_0 Q4_1 Q5_0 Q5_1 Q8_0, and IQ4_NL and MXFP4 (for
 * mul_expanded_avx512.c), with up to 8 tokens at a time (contract: pith_mul in kernel.h; layouts:
 * panel.h), and their unpackers for more (mul_wide_avx512.c).
 *
 *   acc[t]   = fma(cvt(sum of 8 vpdpbusd + bias), d_w * d_x, acc[t])
 *   acc_m[t] = fma(m_w, d_x * sum, acc_m[t])                            Q4_1, Q5_1
 *
 * Codes stay unsigned; the signed types start their integer sum at -offset * sum(x) instead.
 * Scales, biases and d * sum of 16 groups of the tokens are laid out on the stack first, one line a
 * token, so that the loop reads them with constant offsets. Registers: 8 integer sums, 8 acc, 8
 * acc_m, 2 weights, constants. Tail: any k / 32. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/mul_few_avx512.h"
#include "kernel/x86/x86.h"
#include "quant/grid.h"

enum { CHUNK = 16 };

typedef enum kind { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4 } kind;

ALWAYS_INLINE size_t block_bytes(kind type) {
    switch (type) {
    case Q4_0: return sizeof(pith_panel_q4_0);
    case Q4_1: return sizeof(pith_panel_q4_1);
    case Q5_0: return sizeof(pith_panel_q5_0);
    case Q5_1: return sizeof(pith_panel_q5_1);
    case IQ4_NL: return sizeof(pith_panel_iq4_nl);
    case MXFP4: return sizeof(pith_panel_mxfp4);
    default: return sizeof(pith_panel_q8_0);
    }
}

ALWAYS_INLINE size_t codes_offset(kind type) {
    switch (type) {
    case Q4_0: return offsetof(pith_panel_q4_0, q);
    case Q4_1: return offsetof(pith_panel_q4_1, q);
    case Q5_0: return offsetof(pith_panel_q5_0, q);
    case Q5_1: return offsetof(pith_panel_q5_1, q);
    case IQ4_NL: return offsetof(pith_panel_iq4_nl, q);
    case MXFP4: return offsetof(pith_panel_mxfp4, q);
    default: return offsetof(pith_panel_q8_0, q);
    }
}

ALWAYS_INLINE bool has_minima(kind type) {
    return type == Q4_1 || type == Q5_1;
}
ALWAYS_INLINE bool has_fifth_bits(kind type) {
    return type == Q5_0 || type == Q5_1;
}
ALWAYS_INLINE int offset_shift(kind type) {
    return type == Q4_0 ? 3 : type == Q5_0 || type == MXFP4 ? 4 : 7;
}
ALWAYS_INLINE bool has_book(kind type) {
    return type == IQ4_NL || type == MXFP4;
}

/* What the nibbles mean, plus the offset. */
ALWAYS_INLINE __m512i book_of(kind type) {
    const int8_t *values = type == MXFP4 ? pith_book_fp4 : pith_book_iq4;
    __m128i book = _mm_loadu_si128((const __m128i *)(const void *)values);
    return _mm512_add_epi8(_mm512_broadcast_i32x4(book),
                           _mm512_set1_epi8((char)(1 << offset_shift(type))));
}

/* Scales of a block: halves, or the exponents of MXFP4 (2^(e - 128), subnormal for 0 and 1). */
ALWAYS_INLINE __m512 scale_of(const uint8_t *w, kind type) {
    if (type != MXFP4) return load_f16((const uint16_t *)(const void *)w);
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)w));
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i tiny = _mm512_slli_epi32(_mm512_add_epi32(e, _mm512_set1_epi32(1)), 21);
    __mmask16 is_tiny = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_tiny, tiny));
}

/* What 16 groups of a tile's tokens need besides codes. */
typedef struct scalars {
    float d[FEW_TOKENS][CHUNK];
    int32_t bias[FEW_TOKENS][CHUNK]; /* -offset * sum; signed types */
    float d_sum[FEW_TOKENS][CHUNK];  /* d * sum; types with minima */
} scalars;

ALWAYS_INLINE void scalars_read(scalars *s, const pith_q8 *q8, size_t at, uint32_t n, int tokens,
                                kind type) {
    __mmask16 in = (__mmask16)((1u << n) - 1);
    UNROLL for (int t = 0; t < tokens; t++, at += q8->d_stride) {
        __m512 d = _mm512_maskz_loadu_ps(in, q8->d + at);
        __m512i sum = _mm512_maskz_loadu_epi32(in, q8->sum + at);
        _mm512_store_ps(s->d[t], d);
        if (has_minima(type))
            _mm512_store_ps(s->d_sum[t], _mm512_mul_ps(d, _mm512_cvtepi32_ps(sum)));
        else
            _mm512_store_si512(
                s->bias[t], _mm512_sub_epi32(_mm512_setzero_si512(),
                                             _mm512_slli_epi32(sum, (unsigned)offset_shift(type))));
    }
    stored();
}

/* Code groups i and i + 4 of a block, unsigned. */
ALWAYS_INLINE void weights(const uint8_t *codes, __m512i h, int i, kind type, __m512i *low,
                           __m512i *high) {
    const __m512i nibble = _mm512_set1_epi8(15), fifth = _mm512_set1_epi8(16);
    if (type == Q8_0) {
        *low = _mm512_xor_si512(load_codes(codes + 64 * i), _mm512_set1_epi8((char)0x80));
        *high = _mm512_xor_si512(load_codes(codes + 64 * (i + 4)), _mm512_set1_epi8((char)0x80));
        return;
    }
    __m512i v = load_codes(codes + 64 * i);
    *low = _mm512_and_si512(v, nibble);
    *high = _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble);
    if (has_book(type)) {
        *low = _mm512_shuffle_epi8(book_of(type), *low);
        *high = _mm512_shuffle_epi8(book_of(type), *high);
    }
    if (has_fifth_bits(type)) { /* low | (h turned & 16) */
        __m512i h_low = _mm512_rolv_epi32(h, _mm512_set1_epi32(4 - i)),
                h_high = _mm512_rorv_epi32(h, _mm512_set1_epi32(i));
        *low = join(*low, h_low, fifth);
        *high = join(*high, h_high, fifth);
    }
}

/* One block: 32 k of 16 rows with T tokens. */
ALWAYS_INLINE void block(const uint8_t *w, const tile_rows *x, const scalars *s, uint32_t g,
                         __m512 *acc, __m512 *acc_min, const int T, const kind type) {
    const uint8_t *codes = w + codes_offset(type);
    __m512i sum[FEW_TOKENS], h = _mm512_setzero_si512(), low, high;
    if (has_fifth_bits(type)) h = load_codes(codes - 64);
    UNROLL for (int t = 0; t < T; t++) {
        sum[t] = has_minima(type) ? _mm512_setzero_si512() : _mm512_set1_epi32(s->bias[t][g]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        weights(codes, h, i, type, &low, &high);
        UNROLL for (int t = 0; t < T; t++) {
            DOT(sum[t], low, tile_row(x, t) + 4 * i);
        }
        UNROLL for (int t = 0; t < T; t++) {
            DOT(sum[t], high, tile_row(x, t) + 16 + 4 * i);
        }
    }
    if (has_minima(type)) {
        __m512 m = load_f16((const uint16_t *)(const void *)(w + offsetof(pith_panel_q4_1, m)));
        UNROLL for (int t = 0; t < T; t++) {
            acc_min[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(s->d_sum[t][g]), acc_min[t]);
        }
    }
    __m512 d = scale_of(w, type);
    UNROLL for (int t = 0; t < T; t++) {
        acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]),
                                 _mm512_mul_ps(d, _mm512_set1_ps(s->d[t][g])), acc[t]);
    }
}

ALWAYS_INLINE void tile(const pith_mul *args, const uint8_t *w, float *y, const int T,
                        const kind type) {
    _Alignas(64) scalars s;
    __m512 acc[FEW_TOKENS], acc_min[FEW_TOKENS];
    tile_rows x = tile_rows_at(args->q8, 0, T);
    UNROLL for (int t = 0; t < T; t++) {
        acc[t] = acc_min[t] = _mm512_setzero_ps();
    }
    for (uint32_t g0 = 0; g0 < args->k / PITH_GROUP; g0 += CHUNK) {
        uint32_t n = args->k / PITH_GROUP - g0;
        if (n > CHUNK) n = CHUNK;
        scalars_read(&s, args->q8, g0, n, T, type);
        for (uint32_t g = 0; g < n; g++, w += block_bytes(type)) {
            prefetch(w, (int)block_bytes(type), T, args->prefetch);
            block(w, &x, &s, g, acc, acc_min, T, type);
            tile_rows_next(&x);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        if (has_minima(type)) acc[t] = _mm512_add_ps(acc[t], acc_min[t]);
        _mm512_storeu_ps(y + (size_t)t * args->y_stride, acc[t]);
    }
}

ALWAYS_INLINE void unpack(expanded *out, const uint8_t *w, int n, const kind type) {
    for (int j = 0; j < n; j++, w += block_bytes(type)) {
        const uint8_t *codes = w + codes_offset(type);
        const uint16_t *half = (const uint16_t *)(const void *)w;
        __m512i h = has_fifth_bits(type) ? load_codes(codes - 64) : _mm512_setzero_si512(), low,
                high;
        UNROLL for (int i = 0; i < 4; i++) {
            weights(codes, h, i, type, &low, &high);
            _mm512_store_si512(out->code[j][i], low);
            _mm512_store_si512(out->code[j][i + 4], high);
        }
        _mm512_store_ps(out->f.d[j], load_f16(half));
        if (has_minima(type))
            _mm512_store_ps(out->f.minimum[j][0], load_f16(half + PITH_PANEL_ROWS));
    }
}

ALWAYS_INLINE void few_tokens(const pith_mul *args, const uint8_t *w, float *y, const kind type) {
    switch (args->n) {
    case 1: tile(args, w, y, 1, type); break;
    case 2: tile(args, w, y, 2, type); break;
    case 3: tile(args, w, y, 3, type); break;
    case 4: tile(args, w, y, 4, type); break;
    case 5: tile(args, w, y, 5, type); break;
    case 6: tile(args, w, y, 6, type); break;
    case 7: tile(args, w, y, 7, type); break;
    case 8: tile(args, w, y, 8, type); break;
    default: break;
    }
}

/* Up to SOME_TOKENS. */
ALWAYS_INLINE void mul_some(const pith_mul *args, const kind type) {
    for (uint32_t p = 0; p < args->n_panel; p++) {
        const uint8_t *w = (const uint8_t *)args->w + p * args->panel_bytes;
        for (uint32_t t = 0; t < args->n; t += FEW_TOKENS) {
            pith_q8 q8;
            pith_mul part = tokens_from(args, t, &q8);
            few_tokens(&part, w, part.y + PITH_PANEL_ROWS * (size_t)p, type);
        }
    }
}

ALWAYS_INLINE void mul(const pith_mul *args, const wide_type *wide, const kind type) {
    if (args->n > SOME_TOKENS)
        pith_mul_wide_avx512(args, wide);
    else
        mul_some(args, type);
}

static void unpack_q4_0(expanded *out, const uint8_t *w, int n) {
    unpack(out, w, n, Q4_0);
}

const wide_type pith_wide_q4_0 = {unpack_q4_0, 8 * sizeof(pith_panel_q4_0), WIDE_SIGNED, 3, 0};

void pith_mul_q4_0_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q4_0, Q4_0);
}

static void unpack_q4_1(expanded *out, const uint8_t *w, int n) {
    unpack(out, w, n, Q4_1);
}

const wide_type pith_wide_q4_1 = {unpack_q4_1, 8 * sizeof(pith_panel_q4_1), WIDE_AFFINE, 0, 0};

void pith_mul_q4_1_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q4_1, Q4_1);
}

static void unpack_q5_0(expanded *out, const uint8_t *w, int n) {
    unpack(out, w, n, Q5_0);
}

const wide_type pith_wide_q5_0 = {unpack_q5_0, 8 * sizeof(pith_panel_q5_0), WIDE_SIGNED, 4, 0};

void pith_mul_q5_0_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q5_0, Q5_0);
}

static void unpack_q5_1(expanded *out, const uint8_t *w, int n) {
    unpack(out, w, n, Q5_1);
}

const wide_type pith_wide_q5_1 = {unpack_q5_1, 8 * sizeof(pith_panel_q5_1), WIDE_AFFINE, 0, 0};

void pith_mul_q5_1_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q5_1, Q5_1);
}

static void unpack_q8_0(expanded *out, const uint8_t *w, int n) {
    unpack(out, w, n, Q8_0);
}

const wide_type pith_wide_q8_0 = {unpack_q8_0, 8 * sizeof(pith_panel_q8_0), WIDE_SIGNED, 7, 0};

void pith_mul_q8_0_avx512(const pith_mul *args) {
    mul(args, &pith_wide_q8_0, Q8_0);
}

void pith_mul_few_iq4_nl_avx512(const pith_mul *args) {
    mul_some(args, IQ4_NL);
}

void pith_mul_few_mxfp4_avx512(const pith_mul *args) {
    mul_some(args, MXFP4);
}
