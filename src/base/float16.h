/* SPDX-License-Identifier: Apache-2.0
 * IEEE binary16 and bfloat16 conversions, round to nearest even (IEEE 754-2019; drawn in
 * docs/formats.md, "Scalars"). In software, so that every machine gives the same bits. */
#ifndef PITH_BASE_FLOAT16_H
#define PITH_BASE_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline float pith_f32_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t pith_bits_of_f32(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Exact; subnormals, infinities and NaN included. */
static inline float pith_f32_of_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7FFFu;
    if (rest >= 0x7C00u) return pith_f32_of_bits(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
    if (rest >= 0x0400u) return pith_f32_of_bits(sign | ((rest << 13) + 0x38000000u));
    float magnitude = (float)rest * 0x1p-24f;
    return pith_f32_of_bits(sign | pith_bits_of_f32(magnitude));
}

static inline uint16_t pith_f16_of_f32(float f) {
    uint32_t u = pith_bits_of_f32(f), sign = u >> 16 & 0x8000u, a = u & 0x7FFFFFFFu;
    if (a > 0x7F800000u) return (uint16_t)(sign | 0x7E00u | (a >> 13 & 0x3FFu));
    if (a >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u);
    if (a < 0x38800000u) { /* subnormal result: add a float whose unit in the last place is 2^-24 */
        float magnitude = pith_f32_of_bits(a) + 0.5f;
        return (uint16_t)(sign | (pith_bits_of_f32(magnitude) - 0x3F000000u));
    }
    uint32_t odd = a >> 13 & 1u;
    return (uint16_t)(sign | (a - 0x38000000u + 0xFFFu + odd) >> 13);
}

static inline float pith_f32_of_bf16(uint16_t h) {
    return pith_f32_of_bits((uint32_t)h << 16);
}

static inline uint16_t pith_bf16_of_f32(float f) {
    uint32_t u = pith_bits_of_f32(f);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(u >> 16 | 64u);
    return (uint16_t)((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
}

#endif
