/* SPDX-License-Identifier: Apache-2.0
 * Scalar types to f32: F32, F16, BF16, F64 and the integers (drawn in docs/formats.md).
 * F16, BF16 and I8, I16 are exact; F64, I32, I64 round to nearest even, as the C conversion does.
 * Bytes are little-endian in files; they are read byte by byte, which compilers turn into one
 * load. It does not refuse inf or NaN: validate.c does. Read next: decode_legacy.c. */
#include "quant/block.h"
#include "quant/codec.h"

void pith_decode_f32(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = pith_load_f32(p + 4 * i);
}

/* All three cases of pith_f32_of_f16 at once, without a branch, so that the loop can be vectorized:
 * 2^112 moves the exponent from bias 15 to bias 127 and makes subnormals normal (exact: a power of
 * two); an exponent of all ones is then put back. */
void pith_decode_f16(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) {
        uint32_t half = pith_load_u16(p + 2 * i), rest = half & 0x7FFFu;
        uint32_t finite = pith_bits_of_f32(pith_f32_of_bits(rest << 13) * 0x1p112f);
        uint32_t special = rest >= 0x7C00u ? 0x7F800000u : 0u;
        dst[i] = pith_f32_of_bits((half & 0x8000u) << 16 | finite | special);
    }
}

void pith_decode_bf16(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = pith_f32_of_bf16(pith_load_u16(p + 2 * i));
}

void pith_decode_f64(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = pith_load_u64(p + 8 * i);
        double value;
        memcpy(&value, &bits, sizeof value);
        dst[i] = (float)value;
    }
}

void pith_decode_i8(const void *src, float *dst, size_t n) {
    const int8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = (float)p[i];
}

void pith_decode_i16(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = (float)(int16_t)pith_load_u16(p + 2 * i);
}

void pith_decode_i32(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = (float)(int32_t)pith_load_u32(p + 4 * i);
}

void pith_decode_i64(const void *src, float *dst, size_t n) {
    const uint8_t *p = src;
    for (size_t i = 0; i < n; i++) dst[i] = (float)(int64_t)pith_load_u64(p + 8 * i);
}
