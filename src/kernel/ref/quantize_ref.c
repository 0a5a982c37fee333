/* SPDX-License-Identifier: Apache-2.0
 * Float activations -> int8 rows with a scale and sums per group of 32, plain C: the definition
 * (pith_q8 in kernel.h). Invariant: codes lie in [-127, 127]; the codes from k to the next
 * multiple of 64 are zero; a group that holds a NaN or an infinity has d = NaN and zero codes
 * (scalar_math.h), so the fault reaches every product. */
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { GROUP = PITH_GROUP, FAST = PITH_FAST_GROUP };

static int32_t quantize_half(const float *x, float inverse, int8_t *q) {
    int32_t sum = 0;
    for (int i = 0; i < GROUP / 2; i++) {
        q[i] = pith_q8_code(x[i], inverse);
        sum += q[i];
    }
    return sum;
}

static uint32_t amax_of(const float *x, int n) {
    uint32_t amax = 0;
    for (int i = 0; i < n; i++)
        amax = pith_magnitude_bits(x[i]) > amax ? pith_magnitude_bits(x[i]) : amax;
    return amax;
}

static void quantize_group(const float *x, const pith_q8 *out, size_t row, size_t index) {
    int8_t *q = out->q + row * out->q_stride + GROUP * index;
    size_t at = row * out->d_stride + index;
    float inverse;
    int32_t low = 0, high = 0;
    if (pith_q8_scale(amax_of(x, GROUP), &out->d[at], &inverse)) {
        low = quantize_half(x, inverse, q);
        high = quantize_half(x + GROUP / 2, inverse, q + GROUP / 2);
    } else {
        memset(q, 0, GROUP);
    }
    out->sum[at] = low + high;
    out->sum16[2 * at] = (int16_t)low;
    out->sum16[2 * at + 1] = (int16_t)high;
}

void pith_quantize_ref(const float *x, size_t x_stride, uint32_t n, uint32_t k, const pith_q8 *out,
                       uint32_t first_row) {
    size_t n_group = k / GROUP;
    for (size_t t = 0; t < n; t++) {
        size_t row = first_row + t;
        for (size_t i = 0; i < n_group; i++)
            quantize_group(x + t * x_stride + GROUP * i, out, row, i);
        if (n_group % 2 == 1) memset(out->q + row * out->q_stride + GROUP * n_group, 0, GROUP);
    }
}

void pith_quantize_fast_ref(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                            const pith_q8 *out, uint32_t first_row) {
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < k / FAST; i++) {
            const float *from = x + t * x_stride + FAST * i;
            int8_t *q = out->q + (first_row + t) * out->q_stride + FAST * i;
            size_t at = (first_row + t) * out->d_stride + i;
            float inverse;
            bool used = pith_q8_scale(amax_of(from, FAST), &out->d[at], &inverse);
            out->sum[at] = 0;
            for (int j = 0; j < FAST; j++) {
                q[j] = used ? pith_q8_code(from[j], inverse) : 0;
                out->sum[at] += q[j];
            }
        }
}
