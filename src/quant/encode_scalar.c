/* SPDX-License-Identifier: Apache-2.0
 * f32 to the scalar types. F16 and BF16 round to nearest even; F32 and F64 are exact; integers
 * round to nearest even and stay within their range, NaN becomes 0. Importance weights mean
 * nothing here and are ignored. Read next: encode_legacy.c. */
#include "quant/block.h"
#include "quant/codec.h"

#include <math.h>

void pith_encode_f32(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) pith_store_u32(p + 4 * i, pith_bits_of_f32(src[i]));
}

void pith_encode_f16(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) pith_store_u16(p + 2 * i, pith_f16_of_f32(src[i]));
}

void pith_encode_bf16(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) pith_store_u16(p + 2 * i, pith_bf16_of_f32(src[i]));
}

void pith_encode_f64(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) {
        double value = (double)src[i];
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        pith_store_u32(p + 8 * i, (uint32_t)(bits & 0xFFFFFFFFu));
        pith_store_u32(p + 8 * i + 4, (uint32_t)(bits >> 32));
    }
}

/* Nearest integer within low..high; the limits need not be exact floats. */
static int64_t integer_of(float x, int64_t low, int64_t high) {
    if (isnan(x)) return 0;
    if (x <= (float)low) return low;
    if (x >= (float)high) return high;
    return (int64_t)rintf(x);
}

void pith_encode_i8(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    int8_t *p = dst;
    for (size_t i = 0; i < n; i++) p[i] = (int8_t)integer_of(src[i], INT8_MIN, INT8_MAX);
}

void pith_encode_i16(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) {
        pith_store_u16(p + 2 * i, (uint16_t)integer_of(src[i], INT16_MIN, INT16_MAX));
    }
}

void pith_encode_i32(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) {
        pith_store_u32(p + 4 * i, (uint32_t)integer_of(src[i], INT32_MIN, INT32_MAX));
    }
}

void pith_encode_i64(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i++) {
        uint64_t value = (uint64_t)integer_of(src[i], INT64_MIN, INT64_MAX);
        pith_store_u32(p + 8 * i, (uint32_t)(value & 0xFFFFFFFFu));
        pith_store_u32(p + 8 * i + 4, (uint32_t)(value >> 32));
    }
}
