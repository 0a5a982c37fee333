/* SPDX-License-Identifier: Apache-2.0
 * An expanded super-block (expanded.h) -> codes + 128 under one scale a row, in place, with 256-bit
 * registers (fast contract: pith_mul in kernel.h; definition: ref/mul_fast_ref.c). `type` is always
 * a constant. User: mul_fast_avxvnni.c.
 *
 * code' = (code * factor + start) >> 8 in 16-bit words, even bytes and odd bytes apart. A 32-bit
 * lane holds 4 k of one row, so factor and start of a row stand twice in it. What words wrap in a
 * product or in an offset, the sum wraps back: it lies in [0, 65535]. */
#ifndef PITH_KERNEL_X86_REQUANTIZE_256_H
#define PITH_KERNEL_X86_REQUANTIZE_256_H

#include "kernel/x86/expansion_256.h"
#include "kernel/x86/vector_math_avx2.h"

#include "kernel/fast_scale.h"

/* value = scale * code + start, of 16 k (of 32, where a form has no halves). */
typedef struct affine {
    floats16 scale, start;
} affine;

ALWAYS_INLINE int n_half(pith_type type) {
    return has_halves(form_of(type)) ? 2 : 1;
}

/* What expanded codes have too much. */
ALWAYS_INLINE int code_offset(pith_type type) {
    int shift = offset_shift(form_of(type));
    return shift < 0 ? 0 : 1 << shift;
}

/* Larger of magnitudes, by their bits. */
ALWAYS_INLINE lanes16 larger(lanes16 amax, floats16 x) {
    return (lanes16){vec_bits_larger(amax.low, vec_magnitude(x.low)),
                     vec_bits_larger(amax.high, vec_magnitude(x.high))};
}

ALWAYS_INLINE affine affine_read(const factors *f, int j, int half, lanes16 *amax,
                                 const pith_type type) {
    affine a = {ps_mul(ps_load(f->d[0]), ps_load(f->scale[j][half])), ps_all(0.0f)};
    if (has_minima(type)) {
        a.start = ps_sub(a.start, ps_mul(ps_load(f->dmin), ps_load(f->minimum[j][half])));
        *amax = larger(*amax, a.start);
    }
    *amax = larger(*amax, ps_fma(a.scale, ps_all(fast_code_max(type)), a.start));
    return a;
}

/* Rounded to nearest even. NaN becomes INT32_MIN, whose low word is 0. */
ALWAYS_INLINE lanes16 rounded(floats16 v) {
    return (lanes16){_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high)};
}

ALWAYS_INLINE __m256i word_twice(__m256i v) {
    return _mm256_blend_epi16(v, _mm256_slli_epi32(v, 16), 0xAA);
}

/* The low word of each lane, twice. */
ALWAYS_INLINE lanes16 words_twice(lanes16 v) {
    return (lanes16){word_twice(v.low), word_twice(v.high)};
}

ALWAYS_INLINE __m256i requantized(__m256i code, __m256i factor, __m256i start) {
    const __m256i low = _mm256_set1_epi16(0xFF);
    __m256i even = _mm256_and_si256(code, low), odd = _mm256_srli_epi16(code, 8);
    even = _mm256_add_epi16(_mm256_mullo_epi16(even, factor), start);
    odd = _mm256_add_epi16(_mm256_mullo_epi16(odd, factor), start);
    return _mm256_or_si256(_mm256_srli_epi16(even, 8), _mm256_andnot_si256(low, odd));
}

/* n code groups; by: 256 * reciprocal of the rows' scales. */
ALWAYS_INLINE void requantize_codes(uint8_t (*code)[64], int n, const affine *a, floats16 by,
                                    const pith_type type) {
    lanes16 factor = rounded(ps_mul(a->scale, by)), start = rounded(ps_mul(a->start, by));
    start = words_add(start, lanes_set(128 * 256 + 128));
    if (code_offset(type) > 0) {
        const __m256i offset = _mm256_set1_epi32(code_offset(type));
        start.low = _mm256_sub_epi32(start.low, _mm256_mullo_epi32(factor.low, offset));
        start.high = _mm256_sub_epi32(start.high, _mm256_mullo_epi32(factor.high, offset));
    }
    factor = words_twice(factor);
    start = words_twice(start);
    UNROLL for (int g = 0; g < n; g++) {
        lanes16 v = lanes_load(code[g]);
        v.low = requantized(v.low, factor.low, start.low);
        v.high = requantized(v.high, factor.high, start.high);
        lanes_store(code[g], v);
    }
}

/* The scale of a row becomes d[0]. */
ALWAYS_INLINE void requantize(expanded *w, const pith_type type) {
    const int halves = n_half(type);
    affine a[GROUPS][2];
    lanes16 amax = lanes_set(0);
    floats16 d, by;
    for (int j = 0; j < GROUPS; j++)
        for (int half = 0; half < halves; half++)
            a[j][half] = affine_read(&w->f, j, half, &amax, type);
    vec_row_scale(_mm256_castsi256_ps(amax.low), &d.low, &by.low);
    vec_row_scale(_mm256_castsi256_ps(amax.high), &d.high, &by.high);
    ps_store(w->f.d[0], d);
    by = ps_mul(by, ps_all(256.0f));
    for (int j = 0; j < GROUPS; j++) UNROLL for (int half = 0; half < halves; half++) {
            requantize_codes(w->code[j] + 4 * half, 8 / halves, &a[j][half], by, type);
        }
    stored();
}

#endif
