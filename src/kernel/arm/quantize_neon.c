/* SPDX-License-Identifier: Apache-2.0
 * NEON quantization of activations, one group at a time (rules: quantize_ref.c). Magnitudes
 * are compared as integers, so NaN and infinity come out on top; the scale is computed by the
 * reference's function. A half of 16 codes is one register, its sum one instruction. */
#include "kernel/arm/arm.h"
#include "kernel/arm/vector_math_neon.h"

enum { GROUP = PITH_GROUP };

ALWAYS_INLINE void quantize_group(const float *x, const pith_q8 *out, size_t row, size_t index) {
    int8_t *q = out->q + row * out->q_stride + GROUP * index;
    size_t at = row * out->d_stride + index;
    float32x4_t v[8];
    uint32x4_t amax = vdupq_n_u32(0);
    int8x16_t low = vdupq_n_s8(0), high = vdupq_n_s8(0);
    float inverse;
    UNROLL for (int i = 0; i < 8; i++) {
        v[i] = vld1q_f32(x + 4 * i);
        amax = vmaxq_u32(amax, vec_magnitude(v[i]));
    }
    if (pith_q8_scale(vmaxvq_u32(amax), &out->d[at], &inverse)) {
        low = codes_of(v, inverse);
        high = codes_of(v + 4, inverse);
    }
    vst1q_s8(q, low);
    vst1q_s8(q + GROUP / 2, high);
    int16_t sum_low = vaddlvq_s8(low), sum_high = vaddlvq_s8(high);
    out->sum[at] = sum_low + sum_high;
    out->sum16[2 * at] = sum_low;
    out->sum16[2 * at + 1] = sum_high;
}

void pith_quantize_neon(const float *x, size_t x_stride, uint32_t n, uint32_t k, const pith_q8 *out,
                        uint32_t first_row) {
    size_t n_group = k / GROUP;
    for (size_t t = 0; t < n; t++) {
        size_t row = first_row + t;
        for (size_t i = 0; i < n_group; i++)
            quantize_group(x + t * x_stride + GROUP * i, out, row, i);
        if (n_group % 2 == 1) memset(out->q + row * out->q_stride + GROUP * n_group, 0, GROUP);
    }
}

/* A group of the fast contract: 64 values. */
ALWAYS_INLINE void quantize_64(const float *x, const pith_q8 *out, size_t row, size_t index) {
    int8_t *q = out->q + row * out->q_stride + PITH_FAST_GROUP * index;
    size_t at = row * out->d_stride + index;
    float32x4_t v[16];
    uint32x4_t amax = vdupq_n_u32(0);
    int32_t sum = 0;
    float inverse;
    UNROLL for (int i = 0; i < 16; i++) {
        v[i] = vld1q_f32(x + 4 * i);
        amax = vmaxq_u32(amax, vec_magnitude(v[i]));
    }
    bool used = pith_q8_scale(vmaxvq_u32(amax), &out->d[at], &inverse);
    UNROLL for (int i = 0; i < 4; i++) {
        int8x16_t code = used ? codes_of(v + 4 * i, inverse) : vdupq_n_s8(0);
        vst1q_s8(q + 16 * i, code);
        sum += vaddlvq_s8(code);
    }
    out->sum[at] = sum;
}

void pith_quantize_fast_neon(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                             const pith_q8 *out, uint32_t first_row) {
    for (size_t t = 0; t < n; t++, x += x_stride)
        for (size_t i = 0; i < k / PITH_FAST_GROUP; i++)
            quantize_64(x + PITH_FAST_GROUP * i, out, first_row + t, i);
}
