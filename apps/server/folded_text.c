/* SPDX-License-Identifier: Apache-2.0
 * Folding by utf8proc: compatible forms are decomposed without case, marks are put in their order,
 * and all is composed again (Unicode's NFKC_Casefold). On top of it come quotes, hyphens and white
 * space, and Turkish letters i, of which only the languages know which is which.
 * Invariant: a stretch that is composed begins at an ASCII character, so that equal words give
 * equal stretches wherever they stand; one of many characters is cut before a base character.
 * Read next: private_marks.c. */
#include "server/folded_text.h"

#include <utf8proc.h>

enum {
    STRETCH = 96,     /* characters that are composed together */
    DECOMPOSED = 24,  /* the longest decomposition has 18 */
    DOT_ABOVE = 0x307 /* what is left of a Turkish capital i without its case */
};
static const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE |
                                         UTF8PROC_CASEFOLD | UTF8PROC_IGNORE | UTF8PROC_LUMP;

typedef struct folder {
    pith_buffer *out;
    bool after_space, after_i;
    int32_t codes[STRETCH + DECOMPOSED];
    size_t n;
} folder;

static bool is_space(uint32_t c) {
    return c <= 0x20 || c == 0x7F || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static bool is_double_quote(uint32_t c) {
    return (c >= 0x201C && c <= 0x201F) || c == 0xAB || c == 0xBB || c == 0x301D || c == 0x301E;
}

static void emit(folder *f, uint32_t code) {
    char bytes[4];
    bool is_dot = code == DOT_ABOVE && f->after_i, space = is_space(code);
    if (is_double_quote(code)) code = '"';
    if (!space && !is_dot)
        pith_buffer_append(f->out, bytes, pith_utf8_encode(code, bytes));
    else if (space && !f->after_space)
        pith_buffer_append(f->out, " ", 1);
    f->after_space = space;
    f->after_i = code == 'i';
}

static unsigned class_of(int32_t code) {
    return (unsigned)utf8proc_get_property(code)->combining_class & 0xFF;
}

/* Marks on one base are in the order of their classes. */
static void put_in_order(folder *f) {
    for (size_t i = 1; i < f->n; i++) {
        int32_t code = f->codes[i];
        unsigned class = class_of(code);
        size_t at = i;
        for (; class > 0 && at > 0 && class_of(f->codes[at - 1]) > class; at--)
            f->codes[at] = f->codes[at - 1];
        f->codes[at] = code;
    }
}

static void flush(folder *f) {
    if (f->n > 1) {
        put_in_order(f);
        utf8proc_ssize_t n = utf8proc_normalize_utf32(f->codes, (utf8proc_ssize_t)f->n,
                                                      UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        f->n = n > 0 ? (size_t)n : 0;
    }
    for (size_t i = 0; i < f->n; i++) emit(f, (uint32_t)f->codes[i]);
    f->n = 0;
}

/* What is never composed with the character before it: no mark, also none that has a place of its
 * own, and no vowel or final of Hangul. */
static bool is_base(int32_t code) {
    utf8proc_category_t kind = utf8proc_category(code);
    bool is_mark = kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
                   kind == UTF8PROC_CATEGORY_ME;
    return !is_mark && class_of(code) == 0 && !(code >= 0x1160 && code <= 0x11FF);
}

static void take(folder *f, uint32_t code) {
    int bound = 0;
    if (code == 0x130 || code == 0x131) code = 'i';
    if (code < 0x80) {
        flush(f);
        f->codes[f->n++] = (int32_t)(code >= 'A' && code <= 'Z' ? code + 32 : code);
        return;
    }
    if (f->n >= STRETCH || (f->n >= STRETCH / 2 && is_base((int32_t)code))) flush(f);
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)code, f->codes + f->n,
                                                 DECOMPOSED, options, &bound);
    if (n < 0 || n > DECOMPOSED) f->codes[f->n] = (int32_t)code, n = 1;
    f->n += (size_t)n;
}

void pith_folded_text_append(pith_buffer *out, const char *text, size_t size) {
    folder f = {.out = out, .after_space = true};
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += pith_utf8_decode(text + at, size - at, &code);
        if (code != PITH_UTF8_INVALID) take(&f, code);
    }
    flush(&f);
}
