/* SPDX-License-Identifier: Apache-2.0
 *
 * pith_hash: SipHash-1-3 (Aumasson and Bernstein 2012, one compression and three finalization
 * rounds), keyed by the seed. Chosen over faster mixers because maps are filled from untrusted
 * files: with a seed that the file's author does not know, keys that collide cannot be prepared.
 *
 * Invariant: bytes are read as little-endian words, so the value is the same on every platform.
 * It is no message authentication. Read next: map.c.
 *
 * pith_checksum: four lanes of rotate and multiply over 32 bytes at a time, joined by pith_hash. A
 * step of a lane can be undone, so a change of one word always changes the lane.
 */
#include "base/text.h"

static uint64_t rotate(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static uint64_t read_word(const uint8_t *bytes, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t pith_hash(const void *data, size_t size, uint64_t seed) {
    const uint8_t *bytes = data;
    uint64_t key[2] = {seed, ~seed};
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    size_t i = 0;
    for (; size - i >= 8; i += 8) {
        uint64_t word = read_word(bytes + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)(size & 0xFF) << 56;
    if (size > i) last |= read_word(bytes + i, size - i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xFF;
    for (int n = 0; n < 3; n++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t pith_checksum(const void *data, size_t size) {
    enum { N_LANES = 4, STRIDE = 8 * N_LANES };
    static const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio */
    const uint8_t *bytes = data;
    uint64_t lanes[N_LANES] = {1, 2, 3, 4};
    size_t i = 0;
    for (; size - i >= STRIDE; i += STRIDE) {
        for (int k = 0; k < N_LANES; k++)
            lanes[k] = rotate(lanes[k] ^ read_word(bytes + i + 8 * k, 8), 29) * odd;
    }
    uint64_t hash = pith_hash(bytes + i, size - i, size);
    for (int k = 0; k < N_LANES; k++) hash = pith_hash(&lanes[k], sizeof lanes[k], hash);
    return hash;
}
