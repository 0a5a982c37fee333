/* SPDX-License-Identifier: Apache-2.0
 * The float functions that define pith's numbers, one value at a time: fused multiply-add, exp,
 * tanh, the activations. Every tier does the same operations in the same order, so its results have
 * the same bits. Coefficients are our own minimax fits (least squares reweighted until the error is
 * level), stored as the floats that are used.
 *
 * Errors, measured over all arguments that matter (tests/check): exp below 1.1 ulp; tanh, silu and
 * gelu below 4 ulp; gelu_erf below 3e-7 * |x|. NaN in gives NaN out; no payload is promised. */
#ifndef PITH_KERNEL_REF_SCALAR_MATH_H
#define PITH_KERNEL_REF_SCALAR_MATH_H

#include "base/float16.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* a * b + c, rounded once. Not fmaf(): some C libraries round it twice, and a call for each
 * product is slow where the instruction is missing. In double the product is exact; the sum is
 * rounded to odd by its exact error (TwoSum), after which one more rounding, to float, is right
 * (Boldo and Melquiond, "Emulation of FMA", 2008). */
static inline float pith_fma(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    double product = (double)a * (double)b, addend = (double)c;
    double sum = product + addend, back = sum - product;
    double error = (product - (sum - back)) + (addend - back);
    /* Not exact and even: to the odd neighbour on the side of the error. No branch: which way it
     * goes is chance. NaN errors (the sum is infinite or NaN already) compare false. */
    uint64_t bits, inexact = (uint64_t)((error < 0.0) | (error > 0.0));
    uint64_t outward = (uint64_t)((error > 0.0) == (sum > 0.0));
    memcpy(&bits, &sum, sizeof bits);
    bits += (2 * outward - 1) & (0 - (inexact & ~bits & 1u));
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
#endif
}

#define PITH_ROUND_MAGIC                                                                           \
    12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */

/* Nearest integer, ties to even, for |x| < 2^22. */
static inline float pith_round(float x) {
    return (x + PITH_ROUND_MAGIC) - PITH_ROUND_MAGIC;
}

/* exp(x) = 2^n exp(r), n = nearest(x / ln 2), r = x - n ln 2 in two steps, exp(r) = 1 + r + r^2
 * q(r), |r| <= 0.3475. */
#define PITH_LOG2_E   0x1.715476p+0f
#define PITH_LN2_HIGH 0x1.62e4p-1f
#define PITH_LN2_LOW  0x1.7f7d1cp-20f
#define PITH_EXP_2    0x1.fffffcp-2f
#define PITH_EXP_3    0x1.55549p-3f
#define PITH_EXP_4    0x1.5558fap-5f
#define PITH_EXP_5    0x1.123b6ap-7f
#define PITH_EXP_6    0x1.6a21acp-10f
#define PITH_EXP_MIN  -87.3f /* below: 0 */
#define PITH_EXP_MAX  88.7f  /* above: infinity */

static inline float pith_exp(float x) {
    float t = pith_fma(x, PITH_LOG2_E, PITH_ROUND_MAGIC);
    float n = t - PITH_ROUND_MAGIC;
    float r = pith_fma(n, -PITH_LN2_LOW, pith_fma(n, -PITH_LN2_HIGH, x));
    float q = pith_fma(PITH_EXP_6, r, PITH_EXP_5);
    q = pith_fma(q, r, PITH_EXP_4);
    q = pith_fma(q, r, PITH_EXP_3);
    q = pith_fma(q, r, PITH_EXP_2);
    q = pith_fma(q, r, 1.0f);
    q = pith_fma(q, r, 1.0f);
    float y = pith_f32_of_bits(pith_bits_of_f32(q) + (pith_bits_of_f32(t) << 23)); /* times 2^n */
    if (x != x) return x;
    if (x < PITH_EXP_MIN) return 0.0f;
    return x > PITH_EXP_MAX ? INFINITY : y;
}

/* tanh(x): x + x^3 P(x^2) for |x| < 0.625, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x. */
#define PITH_TANH_EDGE 0.625f
#define PITH_TANH_0    -0x1.555532p-2f
#define PITH_TANH_1    0x1.1106d8p-3f
#define PITH_TANH_2    -0x1.b8306p-5f
#define PITH_TANH_3    0x1.51ceb6p-6f
#define PITH_TANH_4    -0x1.74331p-8f

static inline float pith_tanh(float x) {
    float s = x * x, a = fabsf(x);
    if (a < PITH_TANH_EDGE) {
        float p = pith_fma(PITH_TANH_4, s, PITH_TANH_3);
        p = pith_fma(p, s, PITH_TANH_2);
        p = pith_fma(p, s, PITH_TANH_1);
        p = pith_fma(p, s, PITH_TANH_0);
        return pith_fma(x * s, p, x);
    }
    return copysignf(1.0f - 2.0f / (pith_exp(a + a) + 1.0f), x);
}

/* x / (1 + exp(-x)) */
static inline float pith_silu(float x) {
    return x / (1.0f + pith_exp(-x));
}

/* x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3); A = -2 sqrt(2/pi) 0.044715, B = -2
 * sqrt(2/pi). */
#define PITH_GELU_A -0x1.2444f2p-4f
#define PITH_GELU_B -0x1.988454p+0f

static inline float pith_gelu(float x) {
    float inner = pith_fma(x * x, PITH_GELU_A, PITH_GELU_B);
    return x / (1.0f + pith_exp(x * inner));
}

/* x Phi(x), Phi(-|x|) = h = erfc(z) / 2, z = |x| / sqrt 2, erfc(z) = exp(-z^2) t P(t), t = 1 / (1
 * + 0.4 z). */
#define PITH_SQRT_HALF 0x1.6a09e6p-1f
#define PITH_ERFC_T    0.4f
#define PITH_ERFC_1    0x1.cdcd34p-3f
#define PITH_ERFC_2    0x1.d4ac84p-3f
#define PITH_ERFC_3    0x1.7b78dap-3f
#define PITH_ERFC_4    0x1.06586p-2f
#define PITH_ERFC_5    -0x1.0214a4p-4f
#define PITH_ERFC_6    0x1.273678p-2f
#define PITH_ERFC_7    -0x1.604e96p-4f
#define PITH_ERFC_8    -0x1.ee1e0ap-5f
#define PITH_ERFC_9    0x1.9d470ap-6f

static inline float pith_gelu_erf(float x) {
    float z = fabsf(x) * PITH_SQRT_HALF, t = 1.0f / pith_fma(z, PITH_ERFC_T, 1.0f);
    float p = pith_fma(PITH_ERFC_9, t, PITH_ERFC_8);
    p = pith_fma(p, t, PITH_ERFC_7);
    p = pith_fma(p, t, PITH_ERFC_6);
    p = pith_fma(p, t, PITH_ERFC_5);
    p = pith_fma(p, t, PITH_ERFC_4);
    p = pith_fma(p, t, PITH_ERFC_3);
    p = pith_fma(p, t, PITH_ERFC_2);
    p = pith_fma(p, t, PITH_ERFC_1);
    float h = (0.5f * pith_exp(-(z * z))) * (p * t);
    return x * (x < 0.0f ? h : 1.0f - h);
}

/* max(x, 0)^2; NaN stays. */
static inline float pith_relu2(float x) {
    float m = x < 0.0f ? 0.0f : x;
    return m * m;
}

/* Sum of 16 lanes in the one order that every tier uses: halves are added until one is left. */
static inline float pith_fold_lanes(const float lanes[16]) {
    float s[16];
    memcpy(s, lanes, sizeof s);
    for (int width = 8; width > 0; width /= 2)
        for (int l = 0; l < width; l++) s[l] += s[l + width];
    return s[0];
}

/* Scale of a group of int8 activations and its reciprocal, from the largest magnitude as float
 * bits. A group too small for its reciprocal to be finite becomes zero; one with an infinity or
 * NaN gets the scale NaN and zero codes, so that the fault shows in every product. */
static inline bool pith_q8_scale(uint32_t amax_bits, float *d, float *inverse) {
    *d = pith_f32_of_bits(amax_bits) / 127.0f;
    *inverse = *d > 0.0f ? 1.0f / *d : 0.0f;
    if (amax_bits >= 0x7F800000u) {
        *d = pith_f32_of_bits(0x7FC00000u);
        *inverse = 0.0f;
        return false;
    }
    if (isinf(*inverse)) *d = *inverse = 0.0f;
    return *inverse > 0.0f;
}

static inline uint32_t pith_magnitude_bits(float x) {
    return pith_bits_of_f32(x) & 0x7FFFFFFFu;
}

/* One int8 code; x finite, |x * inverse| at most a little above 127. */
static inline int8_t pith_q8_code(float x, float inverse) {
    float q = pith_round(x * inverse);
    q = q > 127.0f ? 127.0f : q;
    q = q < -127.0f ? -127.0f : q;
    return (int8_t)q;
}

#endif
