/* SPDX-License-Identifier: Apache-2.0
 * The fast lane of the commonest pre-tokenizers: 64 characters of ASCII at once, as bit masks. */
#ifndef PITH_TOKEN_ASCII_SPLIT_H
#define PITH_TOKEN_ASCII_SPLIT_H

#include "base/text.h"

typedef enum pith_ascii_shape {
    PITH_ASCII_GPT2,
    PITH_ASCII_GPT2_DIGITS, /* every digit is a piece, and the text between digits stands alone */
    PITH_ASCII_Q2,          /* cl100k shape, single digits */
    PITH_ASCII_L3           /* ... digits by threes */
} pith_ascii_shape;

/* Writes the ends of the pieces from `at`, where a piece starts, while they are certain, 64 bytes
 * are left of the text and 64 of the room. Returns how many; 0: none is certain (other than ASCII
 * near by, or a longer piece), ask the scanner. */
size_t pith_ascii_split(pith_ascii_shape shape, pith_span text, size_t at, size_t *ends,
                        size_t room);

#endif
