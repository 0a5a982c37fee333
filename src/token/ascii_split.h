/* SPDX-License-Identifier: Apache-2.0
 * The fast lane of the commonest pre-tokenizers: 64 characters of ASCII at once, as bit masks. */
#ifndef PITH_TOKEN_ASCII_SPLIT_H
#define PITH_TOKEN_ASCII_SPLIT_H

#include "base/text.h"

enum { PITH_ASCII_BLOCK = 64 };

typedef enum pith_ascii_shape {
    PITH_ASCII_GPT2,
    PITH_ASCII_GPT2_DIGITS, /* every digit is a piece, and the text between digits stands alone */
    PITH_ASCII_Q2,          /* cl100k shape, single digits */
    PITH_ASCII_L3           /* ... digits by threes */
} pith_ascii_shape;

/* Writes the ends of pieces that lie in the 64 bytes from `at`, where a piece starts, as far as
 * they are certain; at most 64. 0: none is (other than ASCII near by, or a longer piece); ask the
 * scanner. */
size_t pith_ascii_split(pith_ascii_shape shape, const char *text, size_t at, size_t *ends);

#endif
