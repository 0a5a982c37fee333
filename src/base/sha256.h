/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 (FIPS 180-4): the digest by which model files are known everywhere. Fed in pieces of any
 * size; plain C, the same on every platform. */
#ifndef PITH_BASE_SHA256_H
#define PITH_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { PITH_SHA256_BYTES = 32, PITH_SHA256_TEXT = 65 };

typedef struct pith_sha256 {
    uint32_t state[8];
    uint64_t size;     /* bytes fed so far */
    uint8_t block[64]; /* the first size % 64 bytes wait here */
} pith_sha256;

void pith_sha256_init(pith_sha256 *hash);
void pith_sha256_append(pith_sha256 *hash, const void *data, size_t size);
/* The digest in small hexadecimal digits and a NUL; the hash is used up. */
void pith_sha256_text(pith_sha256 *hash, char out[PITH_SHA256_TEXT]);

#endif
