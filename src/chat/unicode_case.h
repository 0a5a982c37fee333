/* SPDX-License-Identifier: Apache-2.0
 * Properties of characters and case mappings, as Python's str methods use them. */
#ifndef PITH_CHAT_UNICODE_CASE_H
#define PITH_CHAT_UNICODE_CASE_H

#include "chat/string_value.h"

/* In the order of unicode_tables.py. TITLE: letters such as U+01C5. IGNORABLE: what does not end a
 * word for the final sigma. */
enum pith_unicode_flag {
    PITH_UNICODE_ALPHA = 1 << 0,
    PITH_UNICODE_DECIMAL = 1 << 1,
    PITH_UNICODE_DIGIT = 1 << 2,
    PITH_UNICODE_NUMERIC = 1 << 3,
    PITH_UNICODE_SPACE = 1 << 4,
    PITH_UNICODE_PRINTABLE = 1 << 5,
    PITH_UNICODE_UPPER = 1 << 6,
    PITH_UNICODE_LOWER = 1 << 7,
    PITH_UNICODE_TITLE = 1 << 8,
    PITH_UNICODE_IGNORABLE = 1 << 9
};
enum { PITH_UNICODE_CASED = PITH_UNICODE_UPPER | PITH_UNICODE_LOWER | PITH_UNICODE_TITLE };

/* The flags of a code point; 0 for PITH_UTF8_INVALID. */
uint32_t pith_unicode_flags(uint32_t code);
/* The one-character mappings; the code itself where there is none. */
uint32_t pith_unicode_to_lower(uint32_t code);
uint32_t pith_unicode_to_upper(uint32_t code);

typedef enum pith_case_style {
    PITH_CASE_LOWER,
    PITH_CASE_UPPER,
    PITH_CASE_TITLE,      /* first letter of each word, as str.title() */
    PITH_CASE_TITLE_WORD, /* first letter after a space or bracket, as the filter `title` */
    PITH_CASE_CAPITALIZE, /* first letter of the string */
    PITH_CASE_SWAP
} pith_case_style;
/* The whole string in another case, with expansions (U+00DF to SS) and the final sigma. Keeps the
 * safe mark. */
pith_string *pith_unicode_change(pith_heap *heap, const pith_string *string, pith_case_style style);

/* ---- tables (unicode_tables.c) ---- */

/* Codes first, first + stride, ... last map to themselves + delta. */
typedef struct pith_case_range {
    uint32_t first, last;
    int32_t stride, delta;
} pith_case_range;
typedef struct pith_case_expansion {
    uint32_t code;
    uint16_t to[3]; /* 0 behind the end */
} pith_case_expansion;

extern const uint32_t pith_unicode_runs[];     /* first code << 10 | flags, up to the next one */
extern const uint16_t pith_unicode_ascii[128]; /* the flags once more, for the common case */
extern const pith_case_range pith_unicode_upper[], pith_unicode_lower[], pith_unicode_title[];
extern const pith_case_expansion pith_unicode_upper_full[], pith_unicode_title_full[];
extern const size_t pith_unicode_runs_n, pith_unicode_upper_n, pith_unicode_lower_n,
    pith_unicode_title_n;
extern const size_t pith_unicode_upper_full_n, pith_unicode_title_full_n;

#endif
