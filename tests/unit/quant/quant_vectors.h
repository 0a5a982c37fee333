/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the quant room share: CRC-32, the linear congruential generator of the
 * published vectors, a generator for properties, hex. Functions are inline: each test is a
 * program of its own. */
#ifndef PITH_TEST_QUANT_VECTORS_H
#define PITH_TEST_QUANT_VECTORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quant/quant.h"

/* CRC-32 of zlib: reflected polynomial 0xEDB88320, all ones in and out. Start with crc = 0. */
static inline uint32_t test_crc(uint32_t crc, const void *data, size_t size) {
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1u ? 0xEDB88320u : 0u);
    }
    return ~crc;
}

static inline uint32_t test_lcg(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

/* Uniform in [-1, 1). */
static inline float test_uniform(uint32_t *state) {
    return (float)((int32_t)(test_lcg(state) >> 8) - 8388608) / 8388608.0f;
}

/* About normal with variance 1: the sum of twelve uniform numbers in [-1/2, 1/2). */
static inline float test_normal(uint32_t *state) {
    float sum = 0.0f;
    for (int i = 0; i < 12; i++) sum += 0.5f * test_uniform(state);
    return sum;
}

static inline int test_hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of the hex text at *text, which is moved past it; at most room. */
static inline size_t test_hex_read(const char **text, uint8_t *out, size_t room) {
    size_t size = 0;
    const char *p = *text;
    while (test_hex_digit(p[0]) >= 0 && test_hex_digit(p[1]) >= 0) {
        assert_true(size < room);
        out[size++] = (uint8_t)(test_hex_digit(p[0]) << 4 | test_hex_digit(p[1]));
        p += 2;
    }
    *text = p;
    return size;
}

#endif
