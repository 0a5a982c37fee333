/* SPDX-License-Identifier: Apache-2.0
 * ref/scalar_math.h on 4 lanes: the same operations in the same order, so the same bits. Where
 * the scalar code branches, both sides are computed and one is chosen. For every ARM tier. */
#ifndef PITH_KERNEL_ARM_VECTOR_MATH_NEON_H
#define PITH_KERNEL_ARM_VECTOR_MATH_NEON_H

#include "kernel/inline.h"
#include "kernel/ref/scalar_math.h"

#include <arm_neon.h>

/* The first n floats (n may be above 4), others 0; nothing past them is read. */
ALWAYS_INLINE float32x4_t load_n(const float *x, uint32_t n) {
    float lanes[4] = {0};
    if (n >= 4) return vld1q_f32(x);
    for (uint32_t i = 0; i < n; i++) lanes[i] = x[i];
    return vld1q_f32(lanes);
}

/* Stores the first n lanes. */
ALWAYS_INLINE void store_n(float *y, uint32_t n, float32x4_t v) {
    float lanes[4];
    if (n >= 4) {
        vst1q_f32(y, v);
        return;
    }
    vst1q_f32(lanes, v);
    for (uint32_t i = 0; i < n; i++) y[i] = lanes[i];
}

ALWAYS_INLINE float32x4_t ps_set(float x) {
    return vdupq_n_f32(x);
}

/* a * b + c, rounded once. */
ALWAYS_INLINE float32x4_t ps_fma(float32x4_t a, float32x4_t b, float32x4_t c) {
    return vfmaq_f32(c, a, b);
}

/* mask ? yes : no */
ALWAYS_INLINE float32x4_t ps_choose(uint32x4_t mask, float32x4_t yes, float32x4_t no) {
    return vbslq_f32(mask, yes, no);
}

/* x where the mask is set, else +0. */
ALWAYS_INLINE float32x4_t ps_and(uint32x4_t mask, float32x4_t x) {
    return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(x)));
}

/* Larger of two; `old` where x is NaN. */
ALWAYS_INLINE float32x4_t ps_larger(float32x4_t x, float32x4_t old) {
    return ps_choose(vcgtq_f32(x, old), x, old);
}

ALWAYS_INLINE float32x4_t ps_exp(float32x4_t x) {
    float32x4_t t = ps_fma(x, ps_set(PITH_LOG2_E), ps_set(PITH_ROUND_MAGIC));
    float32x4_t n = vsubq_f32(t, ps_set(PITH_ROUND_MAGIC));
    float32x4_t r = ps_fma(n, ps_set(-PITH_LN2_LOW), ps_fma(n, ps_set(-PITH_LN2_HIGH), x));
    float32x4_t q = ps_fma(ps_set(PITH_EXP_6), r, ps_set(PITH_EXP_5));
    q = ps_fma(q, r, ps_set(PITH_EXP_4));
    q = ps_fma(q, r, ps_set(PITH_EXP_3));
    q = ps_fma(q, r, ps_set(PITH_EXP_2));
    q = ps_fma(q, r, ps_set(1.0f));
    q = ps_fma(q, r, ps_set(1.0f));
    uint32x4_t scale = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    float32x4_t y = vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(q), scale));
    y = ps_choose(vcgtq_f32(x, ps_set(PITH_EXP_MAX)), ps_set(INFINITY), y);
    y = ps_choose(vcltq_f32(x, ps_set(PITH_EXP_MIN)), ps_set(0.0f), y);
    return ps_choose(vceqq_f32(x, x), y, x);
}

ALWAYS_INLINE float32x4_t ps_tanh(float32x4_t x) {
    float32x4_t s = vmulq_f32(x, x), a = vabsq_f32(x);
    float32x4_t p = ps_fma(ps_set(PITH_TANH_4), s, ps_set(PITH_TANH_3));
    p = ps_fma(p, s, ps_set(PITH_TANH_2));
    p = ps_fma(p, s, ps_set(PITH_TANH_1));
    p = ps_fma(p, s, ps_set(PITH_TANH_0));
    float32x4_t small = ps_fma(vmulq_f32(x, s), p, x);
    float32x4_t e = vaddq_f32(ps_exp(vaddq_f32(a, a)), ps_set(1.0f));
    float32x4_t large = vsubq_f32(ps_set(1.0f), vdivq_f32(ps_set(2.0f), e));
    large = ps_choose(vdupq_n_u32(0x80000000u), x, large); /* the sign of x */
    return ps_choose(vcltq_f32(a, ps_set(PITH_TANH_EDGE)), small, large);
}

ALWAYS_INLINE float32x4_t ps_silu(float32x4_t x) {
    return vdivq_f32(x, vaddq_f32(ps_set(1.0f), ps_exp(vnegq_f32(x))));
}

ALWAYS_INLINE float32x4_t ps_gelu(float32x4_t x) {
    float32x4_t inner = ps_fma(vmulq_f32(x, x), ps_set(PITH_GELU_A), ps_set(PITH_GELU_B));
    return vdivq_f32(x, vaddq_f32(ps_set(1.0f), ps_exp(vmulq_f32(x, inner))));
}

ALWAYS_INLINE float32x4_t ps_gelu_erf(float32x4_t x) {
    float32x4_t z = vmulq_f32(vabsq_f32(x), ps_set(PITH_SQRT_HALF));
    float32x4_t t = vdivq_f32(ps_set(1.0f), ps_fma(z, ps_set(PITH_ERFC_T), ps_set(1.0f)));
    float32x4_t p = ps_fma(ps_set(PITH_ERFC_9), t, ps_set(PITH_ERFC_8));
    p = ps_fma(p, t, ps_set(PITH_ERFC_7));
    p = ps_fma(p, t, ps_set(PITH_ERFC_6));
    p = ps_fma(p, t, ps_set(PITH_ERFC_5));
    p = ps_fma(p, t, ps_set(PITH_ERFC_4));
    p = ps_fma(p, t, ps_set(PITH_ERFC_3));
    p = ps_fma(p, t, ps_set(PITH_ERFC_2));
    p = ps_fma(p, t, ps_set(PITH_ERFC_1));
    float32x4_t e = vmulq_f32(ps_set(0.5f), ps_exp(vnegq_f32(vmulq_f32(z, z))));
    float32x4_t h = vmulq_f32(e, vmulq_f32(p, t));
    float32x4_t factor = ps_choose(vcltq_f32(x, ps_set(0.0f)), h, vsubq_f32(ps_set(1.0f), h));
    return vmulq_f32(x, factor);
}

ALWAYS_INLINE float32x4_t ps_relu2(float32x4_t x) {
    float32x4_t m = ps_choose(vcltq_f32(x, ps_set(0.0f)), ps_set(0.0f), x);
    return vmulq_f32(m, m);
}

/* pith_fold_lanes: lanes 4 i .. 4 i + 3 in s[i]. */
ALWAYS_INLINE float ps_fold(const float32x4_t s[4]) {
    float32x4_t s4 = vaddq_f32(vaddq_f32(s[0], s[2]), vaddq_f32(s[1], s[3]));
    float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

/* 4 floats of binary16. */
ALWAYS_INLINE float32x4_t ps_load_f16(const uint16_t *half) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half)));
}

/* Magnitudes of 4 floats as integers: NaN and infinity come out on top. */
ALWAYS_INLINE uint32x4_t ps_magnitude(float32x4_t x) {
    return vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x7FFFFFFFu));
}

/* int8 codes of 16 values: rounded to nearest even. */
ALWAYS_INLINE int8x16_t codes_of(const float32x4_t x[4], float inverse) {
    int16x4_t q[4];
    UNROLL for (int i = 0; i < 4; i++) {
        q[i] = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(x[i], inverse)));
    }
    return vcombine_s8(vqmovn_s16(vcombine_s16(q[0], q[1])), vqmovn_s16(vcombine_s16(q[2], q[3])));
}

#endif
