/* SPDX-License-Identifier: Apache-2.0
 * Bytes as little-endian words, the same value on every platform. */
#ifndef PITH_TOKEN_BYTE_WORDS_H
#define PITH_TOKEN_BYTE_WORDS_H

#include <stdint.h>

static inline uint64_t pith_load_4(const char *data) {
    const unsigned char *b = (const unsigned char *)data;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
}

static inline uint64_t pith_load_8(const char *data) {
    const unsigned char *b = (const unsigned char *)data;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

#endif
