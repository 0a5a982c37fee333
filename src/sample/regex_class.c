/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters, escapes and classes of regular expressions.
 *
 * An escape is one code point (\n \t \xHH \uHHHH \u{H..} \cX, or a sign that stands for itself) or
 * a set (\d \w \s and \p). Letters and digits without a meaning are refused, so that what another
 * dialect means by them (\A, \h, \1) is never taken for a character.
 *
 * Two \u escapes that form a surrogate pair are one code point; a surrogate alone is no character
 * and is refused.
 */
#include "sample/regex_parser.h"

#include <string.h>

bool pith_regex_read_code(pith_regex_parser *parser, uint32_t *code) {
    size_t size =
        pith_utf8_decode(parser->text.data + parser->at, parser->text.size - parser->at, code);
    if (*code == PITH_UTF8_INVALID) {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, parser->at, "ill-formed UTF-8");
    }
    parser->at += size;
    return true;
}

/* n hexadecimal digits at `at`; PITH_UTF8_INVALID where they are not there. */
static uint32_t hex_at(pith_span text, size_t at, size_t n) {
    uint32_t value = 0;
    if (at + n > text.size) return PITH_UTF8_INVALID;
    for (size_t i = 0; i < n; i++) {
        char c = text.data[at + i];
        uint32_t digit;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            digit = (uint32_t)((c | 0x20) - 'a') + 10;
        } else {
            return PITH_UTF8_INVALID;
        }
        value = value << 4 | digit;
    }
    return value;
}

static bool broken_escape(pith_regex_parser *parser, size_t offset) {
    return pith_regex_fail(parser, PITH_ERROR_FORMAT, offset, "the escape is broken");
}

/* Behind \u. */
static bool read_unicode(pith_regex_parser *parser, size_t offset, uint32_t *code) {
    pith_span text = parser->text;
    if (parser->at < text.size && text.data[parser->at] == '{') {
        size_t n = 0;
        while (n < 7 && hex_at(text, parser->at + 1 + n, 1) != PITH_UTF8_INVALID) n++;
        *code = hex_at(text, parser->at + 1, n);
        size_t close = parser->at + 1 + n;
        if (n == 0 || n > 6 || close >= text.size || text.data[close] != '}' || *code > 0x10FFFF) {
            return broken_escape(parser, offset);
        }
        parser->at = close + 1;
    } else {
        *code = hex_at(text, parser->at, 4);
        if (*code == PITH_UTF8_INVALID) return broken_escape(parser, offset);
        parser->at += 4;
        if (*code >= 0xD800 && *code <= 0xDBFF && parser->at + 6 <= text.size &&
            memcmp(text.data + parser->at, "\\u", 2) == 0) {
            uint32_t low = hex_at(text, parser->at + 2, 4);
            if (low >= 0xDC00 && low <= 0xDFFF) {
                *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
                parser->at += 6;
            }
        }
    }
    if (*code >= 0xD800 && *code <= 0xDFFF) {
        return pith_regex_fail(parser, PITH_ERROR_UNSUPPORTED, offset,
                               "half a surrogate pair is no character");
    }
    return true;
}

/* Behind \p or \P. */
static bool read_property(pith_regex_parser *parser, bool negated, size_t offset,
                          pith_code_set *set) {
    pith_span text = parser->text;
    const char *close = NULL;
    if (parser->at < text.size && text.data[parser->at] == '{') {
        close = memchr(text.data + parser->at, '}', text.size - parser->at);
    }
    if (close == NULL) return broken_escape(parser, offset);
    const char *start = text.data + parser->at + 1;
    pith_code_set property = {0};
    pith_error reason = {0};
    pith_status status =
        pith_code_set_add_property(&property, (pith_span){start, (size_t)(close - start)}, &reason);
    pith_code_set_settle(&property);
    if (negated) pith_code_set_negate(&property);
    pith_code_set_add_all(set, &property);
    pith_code_set_deinit(&property);
    parser->at = (size_t)(close - text.data) + 1;
    return status == PITH_OK || pith_regex_fail(parser, status, offset, reason.text);
}

static bool refuse_escape(pith_regex_parser *parser, char c, size_t offset) {
    const char *what = "an escape that has no meaning";
    if (c == 'b' || c == 'B') what = "word borders are not supported";
    if ((c >= '1' && c <= '9') || c == 'k') what = "references to groups are not supported";
    return pith_regex_fail(parser, PITH_ERROR_UNSUPPORTED, offset, what);
}

/* The escapes that are one letter for one code point. */
static bool simple_escape(char c, bool in_class, uint32_t *code) {
    switch (c) {
    case 't': *code = '\t'; return true;
    case 'n': *code = '\n'; return true;
    case 'v': *code = '\v'; return true;
    case 'f': *code = '\f'; return true;
    case 'r': *code = '\r'; return true;
    case 'b': *code = '\b'; return in_class;
    default: break;
    }
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool digit = c >= '0' && c <= '9';
    *code = (uint8_t)c;
    return !letter && !digit && (uint8_t)c < 0x80;
}

bool pith_regex_read_escape(pith_regex_parser *parser, bool in_class, pith_code_set *set,
                            uint32_t *code, bool *is_code) {
    size_t offset = parser->at++;
    if (parser->at >= parser->text.size) return broken_escape(parser, offset);
    char c = parser->text.data[parser->at++];
    char after = parser->at < parser->text.size ? parser->text.data[parser->at] : 0;
    *is_code = true;
    if (simple_escape(c, in_class, code)) return true;
    switch (c) {
    case 'p':
    case 'P': *is_code = false; return read_property(parser, c == 'P', offset, set);
    case 'u': return read_unicode(parser, offset, code);
    case 'x':
        *code = hex_at(parser->text, parser->at, 2);
        if (*code == PITH_UTF8_INVALID) return broken_escape(parser, offset);
        parser->at += 2;
        return true;
    case 'c':
        if (!((after | 0x20) >= 'a' && (after | 0x20) <= 'z')) return broken_escape(parser, offset);
        *code = (uint32_t)after & 0x1F;
        parser->at++;
        return true;
    case '0':
        *code = 0;
        return (after >= '0' && after <= '9') ? broken_escape(parser, offset) : true;
    default: break;
    }
    *is_code = false;
    bool class_letter = c != '.' && pith_code_set_add_class(set, c);
    return class_letter || refuse_escape(parser, c, offset);
}

/* One member of a class: a code point, or a set that has been added. */
static bool read_member(pith_regex_parser *parser, pith_code_set *set, uint32_t *code,
                        bool *is_code) {
    if (parser->text.data[parser->at] == '\\') {
        return pith_regex_read_escape(parser, true, set, code, is_code);
    }
    *is_code = true;
    return pith_regex_read_code(parser, code);
}

bool pith_regex_read_class(pith_regex_parser *parser, pith_code_set *set) {
    size_t offset = parser->at++;
    pith_span text = parser->text;
    bool negated = parser->at < text.size && text.data[parser->at] == '^';
    if (negated) parser->at++;
    while (parser->at < text.size && text.data[parser->at] != ']') {
        uint32_t first, last;
        bool first_is_code, last_is_code;
        size_t start = parser->at;
        if (!read_member(parser, set, &first, &first_is_code)) return false;
        last = first;
        if (first_is_code && parser->at + 1 < text.size && text.data[parser->at] == '-' &&
            text.data[parser->at + 1] != ']') {
            size_t dash = parser->at++;
            if (!read_member(parser, set, &last, &last_is_code)) return false;
            if (!last_is_code) { /* as in [a-\d]: three members */
                pith_code_set_add(set, '-', '-');
                last = first;
            } else if (last < first) {
                return pith_regex_fail(parser, PITH_ERROR_FORMAT, dash,
                                       "the range is out of order");
            }
        }
        if (first_is_code) pith_code_set_add(set, first, last);
        if (parser->at <= start) return broken_escape(parser, start);
    }
    if (parser->at >= text.size) {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, offset, "a [ without its ]");
    }
    parser->at++;
    pith_code_set_settle(set);
    if (negated) pith_code_set_negate(set);
    return true;
}
