/* SPDX-License-Identifier: Apache-2.0
 * Unicode properties as one set of bits per character, as far as tokenizers ask for them. */
#ifndef PITH_TOKEN_CHAR_CLASS_H
#define PITH_TOKEN_CHAR_CLASS_H

#include "base/text.h"

enum {
    PITH_CHAR_LETTER = 1,    /* L: Lu Ll Lt Lm Lo */
    PITH_CHAR_NUMBER = 2,    /* N: Nd Nl No */
    PITH_CHAR_SPACE = 4,     /* property White_Space, newlines too */
    PITH_CHAR_NEWLINE = 8,   /* only \r and \n */
    PITH_CHAR_MARK = 16,     /* M: Mn Mc Me */
    PITH_CHAR_PUNCT = 32,    /* P */
    PITH_CHAR_SYMBOL = 64,   /* S; ill-formed bytes too, as U+FFFD is one */
    PITH_CHAR_UPPER = 128,   /* Lu Lt Lm Lo M: may stand in the head of a cased word */
    PITH_CHAR_LOWER = 256,   /* Ll Lm Lo M: may stand in its tail */
    PITH_CHAR_DIGIT = 512,   /* Nd */
    PITH_CHAR_CONTROL = 1024 /* Cc Cf Cs Co */
};

extern const uint16_t pith_char_ascii[128];

/* Bits of any code point; PITH_UTF8_INVALID is a symbol. */
uint16_t pith_char_class(uint32_t code);

/* Bits of the character at text[at], at < end; *size: its bytes (1 for an ill-formed byte). */
uint16_t pith_char_class_beyond_ascii(const char *text, size_t size, size_t *char_size);
static inline uint16_t pith_char_at(const char *text, size_t at, size_t end, size_t *size) {
    unsigned char byte = (unsigned char)text[at];
    if (byte < 0x80) {
        *size = 1;
        return pith_char_ascii[byte];
    }
    return pith_char_class_beyond_ascii(text + at, end - at, size);
}

#endif
