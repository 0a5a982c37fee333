/* SPDX-License-Identifier: Apache-2.0
 *
 * Which properties a character has.
 *
 * ASCII comes from a table; everything else from utf8proc's general category, except White_Space,
 * which is a property of its own (25 characters, stable since Unicode 6.3) and is listed here.
 * Invariant: a character has at most one of LETTER, NUMBER, MARK, PUNCT, SYMBOL, CONTROL; SPACE
 * may come with CONTROL or alone. Scripts (Han, ...) are not known here: patterns that need them
 * go through PCRE2. Read next: word_split.c.
 */
#include "token/char_class.h"

#include <utf8proc.h>

enum {
    UP = PITH_CHAR_LETTER | PITH_CHAR_UPPER,
    LO = PITH_CHAR_LETTER | PITH_CHAR_LOWER,
    BOTH = PITH_CHAR_UPPER | PITH_CHAR_LOWER,
    DI = PITH_CHAR_NUMBER | PITH_CHAR_DIGIT,
    PU = PITH_CHAR_PUNCT,
    SY = PITH_CHAR_SYMBOL,
    CT = PITH_CHAR_CONTROL,
    SP = PITH_CHAR_SPACE,
    WS = PITH_CHAR_SPACE | PITH_CHAR_CONTROL,
    NL = PITH_CHAR_SPACE | PITH_CHAR_CONTROL | PITH_CHAR_NEWLINE
};

/* clang-format off */
const uint16_t pith_char_ascii[128] = {
    CT, CT, CT, CT, CT, CT, CT, CT, CT, WS, NL, WS, WS, NL, CT, CT,
    CT, CT, CT, CT, CT, CT, CT, CT, CT, CT, CT, CT, CT, CT, CT, CT,
    SP, PU, PU, PU, SY, PU, PU, PU, PU, PU, PU, SY, PU, PU, PU, PU,
    DI, DI, DI, DI, DI, DI, DI, DI, DI, DI, PU, PU, SY, SY, SY, PU,
    PU, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP,
    UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, UP, PU, PU, PU, SY, PU,
    SY, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO,
    LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, LO, PU, SY, PU, SY, CT,
};

static const uint16_t category_bits[] = {
    [UTF8PROC_CATEGORY_CN] = 0,
    [UTF8PROC_CATEGORY_LU] = UP,
    [UTF8PROC_CATEGORY_LL] = LO,
    [UTF8PROC_CATEGORY_LT] = UP,
    [UTF8PROC_CATEGORY_LM] = PITH_CHAR_LETTER | BOTH,
    [UTF8PROC_CATEGORY_LO] = PITH_CHAR_LETTER | BOTH,
    [UTF8PROC_CATEGORY_MN] = PITH_CHAR_MARK | BOTH,
    [UTF8PROC_CATEGORY_MC] = PITH_CHAR_MARK | BOTH,
    [UTF8PROC_CATEGORY_ME] = PITH_CHAR_MARK | BOTH,
    [UTF8PROC_CATEGORY_ND] = DI,
    [UTF8PROC_CATEGORY_NL] = PITH_CHAR_NUMBER,
    [UTF8PROC_CATEGORY_NO] = PITH_CHAR_NUMBER,
    [UTF8PROC_CATEGORY_PC] = PU, [UTF8PROC_CATEGORY_PD] = PU, [UTF8PROC_CATEGORY_PS] = PU,
    [UTF8PROC_CATEGORY_PE] = PU, [UTF8PROC_CATEGORY_PI] = PU, [UTF8PROC_CATEGORY_PF] = PU,
    [UTF8PROC_CATEGORY_PO] = PU,
    [UTF8PROC_CATEGORY_SM] = SY, [UTF8PROC_CATEGORY_SC] = SY, [UTF8PROC_CATEGORY_SK] = SY,
    [UTF8PROC_CATEGORY_SO] = SY,
    [UTF8PROC_CATEGORY_ZS] = 0, [UTF8PROC_CATEGORY_ZL] = 0, [UTF8PROC_CATEGORY_ZP] = 0,
    [UTF8PROC_CATEGORY_CC] = CT, [UTF8PROC_CATEGORY_CF] = CT, [UTF8PROC_CATEGORY_CS] = CT,
    [UTF8PROC_CATEGORY_CO] = CT,
};
/* clang-format on */

static bool is_wide_space(uint32_t code) {
    if (code >= 0x2000 && code <= 0x200A) return true;
    return code == 0x85 || code == 0xA0 || code == 0x1680 || code == 0x2028 || code == 0x2029 ||
           code == 0x202F || code == 0x205F || code == 0x3000;
}

uint16_t pith_char_class(uint32_t code) {
    if (code < 0x80) return pith_char_ascii[code];
    if (code == PITH_UTF8_INVALID) return PITH_CHAR_SYMBOL;
    if (code > 0x10FFFF) return 0;
    uint16_t bits = category_bits[utf8proc_category((utf8proc_int32_t)code)];
    if ((!bits || bits == CT) && is_wide_space(code)) return bits | PITH_CHAR_SPACE;
    return bits;
}

uint16_t pith_char_class_beyond_ascii(const char *text, size_t size, size_t *char_size) {
    uint32_t code;
    *char_size = pith_utf8_decode(text, size, &code);
    return pith_char_class(code);
}
