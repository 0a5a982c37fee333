/* SPDX-License-Identifier: Apache-2.0
 * Vectors of 4 floats for every ARM tier: the operations that kernel/vector_math.h and the other
 * sources shared by all tiers are written in. Each is one IEEE operation a lane, so what is built
 * of them has the bits of the scalar code. Same names: x86/vector_math_avx2.h. */
#ifndef PITH_KERNEL_ARM_VECTOR_MATH_NEON_H
#define PITH_KERNEL_ARM_VECTOR_MATH_NEON_H

#include "kernel/inline.h"

#include <arm_neon.h>
#include <string.h>

typedef float32x4_t vec;
typedef uint32x4_t vec_mask; /* all bits of a lane, or none */
typedef uint32x4_t vec_bits;

enum { VEC_LANES = 4 };

/* ---- Memory ---- */

ALWAYS_INLINE vec vec_load(const float *x) {
    return vld1q_f32(x);
}
ALWAYS_INLINE void vec_store(float *y, vec v) {
    vst1q_f32(y, v);
}

/* The first n floats (n may be above 4), others 0; nothing past them is read. */
ALWAYS_INLINE vec load_n(const float *x, uint32_t n) {
    float lanes[4] = {0};
    if (n >= 4) return vld1q_f32(x);
    for (uint32_t i = 0; i < n; i++) lanes[i] = x[i];
    return vld1q_f32(lanes);
}

/* Stores the first n lanes. */
ALWAYS_INLINE void store_n(float *y, uint32_t n, vec v) {
    float lanes[4];
    if (n >= 4) {
        vst1q_f32(y, v);
        return;
    }
    vst1q_f32(lanes, v);
    for (uint32_t i = 0; i < n; i++) y[i] = lanes[i];
}

ALWAYS_INLINE vec vec_load_f16(const uint16_t *half) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half)));
}
ALWAYS_INLINE void vec_store_f16(uint16_t *half, vec v) {
    vst1_u16(half, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}

/* ---- Arithmetic ---- */

ALWAYS_INLINE vec vec_set(float x) {
    return vdupq_n_f32(x);
}
ALWAYS_INLINE vec vec_add(vec a, vec b) {
    return vaddq_f32(a, b);
}
ALWAYS_INLINE vec vec_sub(vec a, vec b) {
    return vsubq_f32(a, b);
}
ALWAYS_INLINE vec vec_mul(vec a, vec b) {
    return vmulq_f32(a, b);
}
ALWAYS_INLINE vec vec_div(vec a, vec b) {
    return vdivq_f32(a, b);
}
/* a * b + c, rounded once. */
ALWAYS_INLINE vec vec_fma(vec a, vec b, vec c) {
    return vfmaq_f32(c, a, b);
}
ALWAYS_INLINE vec vec_abs(vec x) {
    return vabsq_f32(x);
}
ALWAYS_INLINE vec vec_negate(vec x) {
    return vnegq_f32(x);
}

/* ---- Choice ---- */

/* a < b, a > b: false where one is NaN. */
ALWAYS_INLINE vec_mask vec_less(vec a, vec b) {
    return vcltq_f32(a, b);
}
ALWAYS_INLINE vec_mask vec_greater(vec a, vec b) {
    return vcgtq_f32(a, b);
}
/* !(a < b): true where one is NaN. */
ALWAYS_INLINE vec_mask vec_not_less(vec a, vec b) {
    return vmvnq_u32(vcltq_f32(a, b));
}
ALWAYS_INLINE vec_mask vec_is_nan(vec x) {
    return vmvnq_u32(vceqq_f32(x, x));
}
/* mask ? yes : no */
ALWAYS_INLINE vec vec_choose(vec_mask mask, vec yes, vec no) {
    return vbslq_f32(mask, yes, no);
}
/* x where the mask is set, else +0. */
ALWAYS_INLINE vec vec_keep(vec_mask mask, vec x) {
    return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(x)));
}
/* Lanes e of which begin <= first + e < end. */
ALWAYS_INLINE vec_mask vec_between(uint32_t begin, uint32_t end, uint32_t first) {
    static const uint32_t lane[4] = {0, 1, 2, 3};
    const uint32x4_t t = vaddq_u32(vdupq_n_u32(first), vld1q_u32(lane));
    return vandq_u32(vcgeq_u32(t, vdupq_n_u32(begin)), vcltq_u32(t, vdupq_n_u32(end)));
}
/* v in the first n lanes, `old` in the others. */
ALWAYS_INLINE vec vec_keep_n(vec old, vec v, uint32_t n) {
    return n >= 4 ? v : vec_choose(vec_between(0, n, 0), v, old);
}
/* Larger of two; `old` where x is NaN. */
ALWAYS_INLINE vec vec_larger(vec x, vec old) {
    return vec_choose(vcgtq_f32(x, old), x, old);
}
/* |x| with the sign of `sign`; x >= 0. */
ALWAYS_INLINE vec vec_copy_sign(vec x, vec sign) {
    return vec_choose(vdupq_n_u32(0x80000000u), sign, x);
}
/* x * 2^n: n is in the low bits of t, which is PITH_ROUND_MAGIC + n. */
ALWAYS_INLINE vec vec_times_power(vec x, vec t) {
    uint32x4_t n = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(x), n));
}

/* ---- All lanes together ---- */

/* pith_fold_lanes: lanes 4 h .. 4 h + 3 in s[h]. */
ALWAYS_INLINE float vec_fold(const vec s[4]) {
    vec s4 = vaddq_f32(vaddq_f32(s[0], s[2]), vaddq_f32(s[1], s[3]));
    float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}
/* Largest lane; none is NaN. */
ALWAYS_INLINE float vec_largest(vec v) {
    return vmaxvq_f32(v);
}

/* Magnitudes as integers: NaN and infinity come out on top. */
ALWAYS_INLINE vec_bits vec_magnitude(vec x) {
    return vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x7FFFFFFFu));
}
ALWAYS_INLINE vec_bits vec_bits_larger(vec_bits a, vec_bits b) {
    return vmaxq_u32(a, b);
}
ALWAYS_INLINE uint32_t vec_bits_largest(vec_bits v) {
    return vmaxvq_u32(v);
}

/* int8 codes of 16 values: x * inverse rounded to nearest even. */
ALWAYS_INLINE int8x16_t codes_of(const vec x[4], float inverse) {
    int16x4_t q[4];
    UNROLL for (int i = 0; i < 4; i++) {
        q[i] = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(x[i], inverse)));
    }
    return vcombine_s8(vqmovn_s16(vcombine_s16(q[0], q[1])), vqmovn_s16(vcombine_s16(q[2], q[3])));
}
ALWAYS_INLINE void vec_store_codes(int8_t code[16], const vec x[4], float inverse) {
    vst1q_s8(code, codes_of(x, inverse));
}

#include "kernel/vector_math.h"

#endif
