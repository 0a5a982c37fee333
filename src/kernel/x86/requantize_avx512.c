/* SPDX-License-Identifier: Apache-2.0
 * Requantizing for the fast contract (pith_mul in kernel.h; the definition: ref/mul_fast_ref.c):
 * 256 k of a panel, unpacked, become in place codes under one scale a row. Users:
 * mul_fast_avx512.c, mul_tiles_amx.c.
 *
 * It is 16-bit arithmetic, code' = (code * factor + start) >> 8, even bytes and odd bytes apart;
 * factor and start are a row's, so a 32-bit lane, which holds 4 k of one row, has each twice. The
 * sum lies in [0, 65535] when the value zero is to become code 128; when it is to become 0, the
 * same sum less 32768, whose high byte is the signed code. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/vector_math_avx512.h"

enum { GROUPS = WIDE_GROUPS };

/* value = scale * code + start, of 16 k (of 32, where a shape has no halves). */
typedef struct affine {
    __m512 scale, start;
} affine;

ALWAYS_INLINE int n_half(const wide_shape shape) {
    return shape == WIDE_HALVES || shape == WIDE_PAIRS ? 2 : 1;
}

ALWAYS_INLINE affine affine_of(const factors *f, int j, int half, const wide_shape shape) {
    affine a = {_mm512_mul_ps(_mm512_load_ps(f->d[0]), _mm512_load_ps(f->scale[j][half])),
                _mm512_setzero_ps()};
    if (shape == WIDE_SUPER || shape == WIDE_PAIRS)
        a.start = _mm512_sub_ps(
            a.start, _mm512_mul_ps(_mm512_load_ps(f->dmin), _mm512_load_ps(f->minimum[j][half])));
    return a;
}

/* The low word of each lane, twice. */
ALWAYS_INLINE __m512i word_twice(__m512i v) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, v, _mm512_slli_epi32(v, 16));
}

ALWAYS_INLINE void requantize_codes(uint8_t (*code)[64], int n, __m512i factor, __m512i start) {
    const __m512i low = _mm512_set1_epi16(0xFF), high = _mm512_set1_epi16((short)0xFF00);
    UNROLL for (int g = 0; g < n; g++) {
        __m512i v = _mm512_load_si512(code[g]);
        __m512i even = _mm512_and_si512(v, low), odd = _mm512_srli_epi16(v, 8);
        even = _mm512_add_epi16(_mm512_mullo_epi16(even, factor), start);
        odd = _mm512_add_epi16(_mm512_mullo_epi16(odd, factor), start);
        _mm512_store_si512(code[g], join(_mm512_srli_epi16(even, 8), odd, high));
    }
}

ALWAYS_INLINE void requantize_shape(expanded *w, const wide_type *type, int zero,
                                    const wide_shape shape) {
    const __m512 most = vec_set((float)type->code_max);
    affine a[GROUPS][2];
    __m512i amax = _mm512_setzero_si512();
    for (int j = 0; j < GROUPS; j++) UNROLL for (int half = 0; half < n_half(shape); half++) {
            affine *at = &a[j][half];
            *at = affine_of(&w->f, j, half, shape);
            __m512 end = _mm512_fmadd_ps(at->scale, most, at->start);
            amax = _mm512_max_epu32(amax, vec_magnitude(end));
            amax = _mm512_max_epu32(amax, vec_magnitude(at->start));
        }
    __m512 d, inverse;
    __mmask16 used = vec_q8_scale(amax, &d, &inverse);
    inverse = _mm512_mul_ps(inverse, vec_set(256.0f));
    _mm512_store_ps(w->f.d[0], d);
    bool has_offset = shape == WIDE_SCALED || shape == WIDE_HALVES;
    const __m512i offset = _mm512_set1_epi32(has_offset ? 1 << type->offset_shift : 0);
    for (int j = 0; j < GROUPS; j++) UNROLL for (int half = 0; half < n_half(shape); half++) {
            const affine *at = &a[j][half];
            __m512i factor = _mm512_maskz_cvtps_epi32(used, _mm512_mul_ps(at->scale, inverse));
            __m512i start = _mm512_maskz_cvtps_epi32(used, _mm512_mul_ps(at->start, inverse));
            start = _mm512_add_epi32(start, _mm512_set1_epi32(zero * 256 + 128));
            start = _mm512_sub_epi32(start, _mm512_mullo_epi32(factor, offset));
            requantize_codes(w->code[j] + 4 * half, 8 / n_half(shape), word_twice(factor),
                             word_twice(start));
        }
}

void pith_requantize_avx512(expanded *w, const wide_type *type, int zero) {
    switch (type->shape) {
    case WIDE_SUPER: requantize_shape(w, type, zero, WIDE_SUPER); break;
    case WIDE_SCALED: requantize_shape(w, type, zero, WIDE_SCALED); break;
    case WIDE_HALVES: requantize_shape(w, type, zero, WIDE_HALVES); break;
    case WIDE_PAIRS: requantize_shape(w, type, zero, WIDE_PAIRS); break;
    default: break; /* no type in blocks of 256 */
    }
    stored();
}
