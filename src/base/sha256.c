/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 as FIPS 180-4 defines it: blocks of 64 bytes, 64 rounds over a schedule of words, a
 * closing block that holds the length in bits.
 *
 * Invariant: words are read and written big-endian by shifts, so the digest is the same on every
 * machine; nothing is allocated. It tells damage and forgery of files apart from the file that was
 * published; it is no password hash. Read next: hash.c, for maps.
 */
#include "base/sha256.h"

#include <string.h>

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static void fill_schedule(uint32_t w[64], const uint8_t *block) {
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void mix_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
                    f = state[5], g = state[6], h = state[7];
    fill_schedule(w, block);
    for (int i = 0; i < 64; i++) {
        uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) +
                     rounds[i] + w[i];
        uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
        h = g, g = f, f = e, e = d + t;
        d = c, c = b, b = a, a = t + u;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void pith_sha256_init(pith_sha256 *hash) {
    /* the fractions of the square roots of the first eight primes */
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(hash, 0, sizeof *hash);
    memcpy(hash->state, first, sizeof first);
}

void pith_sha256_append(pith_sha256 *hash, const void *data, size_t size) {
    const uint8_t *at = data;
    size_t waiting = (size_t)(hash->size % sizeof hash->block);
    hash->size += size;
    if (waiting) {
        size_t n = sizeof hash->block - waiting < size ? sizeof hash->block - waiting : size;
        memcpy(hash->block + waiting, at, n);
        at += n;
        size -= n;
        if (waiting + n < sizeof hash->block) return;
        mix_block(hash->state, hash->block);
    }
    for (; size >= sizeof hash->block; at += sizeof hash->block, size -= sizeof hash->block)
        mix_block(hash->state, at);
    if (size) memcpy(hash->block, at, size);
}

void pith_sha256_text(pith_sha256 *hash, char out[PITH_SHA256_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    uint8_t end[72] = {0x80};
    uint64_t bits = hash->size * 8;
    size_t waiting = (size_t)(hash->size % 64), zeros = (waiting < 56 ? 56 : 120) - waiting;
    for (size_t i = 0; i < 8; i++) end[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
    pith_sha256_append(hash, end, zeros + 8);
    for (size_t i = 0; i < PITH_SHA256_BYTES; i++) {
        uint32_t byte = hash->state[i / 4] >> (24 - 8 * (i % 4)) & 0xFF;
        out[2 * i] = digits[byte >> 4];
        out[2 * i + 1] = digits[byte & 15];
    }
    out[PITH_SHA256_TEXT - 1] = 0;
}
