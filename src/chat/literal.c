/* SPDX-License-Identifier: Apache-2.0
 *
 * Literals.
 *
 * Owns the escapes of strings (Python's: \n \t \r \a \b \f \v \\ \' \" \ooo \xhh \uhhhh \Uhhhhhhhh
 * and a backslash before a newline; any other backslash stays) and the reading of integers and
 * floats.
 *
 * Two \u escapes that are a surrogate pair become the one character they mean; half a pair becomes
 * U+FFFD, because output is UTF-8. Integers beyond 64 bits are refused: the engine has no larger
 * ones.
 */
#include "chat/literal.h"

#include "chat/number_text.h"

/* `n` hexadecimal digits at the start of text. */
static bool read_hex(pith_span text, size_t n, uint32_t *code) {
    *code = 0;
    if (text.size < n) return false;
    for (size_t i = 0; i < n; i++) {
        char c = text.data[i];
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0) return false;
        *code = *code * 16 + (uint32_t)digit;
    }
    return true;
}

static pith_span after(pith_span text, size_t n) {
    return (pith_span){text.data + n, text.size - n};
}

/* \x, \u or \U; text starts behind the letter. Sets how much of it was used; false: the digits are
 * missing. */
static bool read_code(pith_span text, char letter, uint32_t *code, size_t *used) {
    size_t n = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    uint32_t low;
    if (!read_hex(text, n, code) || *code > 0x10FFFF) return false;
    *used = n;
    bool is_high = *code >= 0xD800 && *code < 0xDC00;
    if (is_high && text.size >= n + 6 && text.data[n] == '\\' && text.data[n + 1] == 'u' &&
        read_hex(after(text, n + 2), 4, &low) && low >= 0xDC00 && low < 0xE000) {
        *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
        *used = n + 6;
    }
    return true;
}

static size_t read_octal(pith_span text, uint32_t *code) {
    size_t n = 0;
    *code = 0;
    while (n < 3 && n < text.size && text.data[n] >= '0' && text.data[n] <= '7') {
        *code = *code * 8 + (uint32_t)(text.data[n++] - '0');
    }
    return n;
}

/* What follows a backslash. Returns how many bytes of text it is, 0 after a failure. */
static size_t append_escape(pith_parser *parser, pith_builder *builder, pith_span text) {
    static const char letters[] = "ntrabfv\\'\"", meanings[] = "\n\t\r\a\b\f\v\\'\"";
    char letter = text.data[0];
    uint32_t code;
    size_t used;
    for (size_t i = 0; letters[i] != 0; i++) {
        if (letters[i] != letter) continue;
        pith_builder_bytes(builder, &meanings[i], 1, false);
        return 1;
    }
    if (letter == '\n') return 1;
    if (letter >= '0' && letter <= '7') {
        used = read_octal(text, &code);
        pith_builder_char(builder, code, false);
        return used;
    }
    if (letter == 'x' || letter == 'u' || letter == 'U') {
        if (read_code(after(text, 1), letter, &code, &used)) {
            pith_builder_char(builder, code, false);
            return 1 + used;
        }
        pith_parser_fail(parser, "the escape \\%c in a string lacks digits or is not a character",
                         letter);
        return 0;
    }
    if (letter == 'N') {
        pith_parser_fail(parser,
                         "the escape \\N in a string is not supported; write the character or \\u");
        return 0;
    }
    size_t size = pith_utf8_decode(text.data, text.size, &code);
    pith_builder_text(builder, "\\");
    pith_builder_bytes(builder, text.data, size, false);
    return size;
}

static bool append_literal(pith_parser *parser, pith_builder *builder, pith_span text) {
    size_t from = 0, at = 0;
    while (at < text.size) {
        if (text.data[at] != '\\') {
            at++;
            continue;
        }
        pith_builder_bytes(builder, text.data + from, at - from, false);
        size_t used = append_escape(parser, builder,
                                    after(text, at + 1)); /* the lexer saw a byte behind it */
        if (used == 0) return false;
        at += 1 + used;
        from = at;
    }
    pith_builder_bytes(builder, text.data + from, at - from, false);
    return true;
}

bool pith_literal_string(pith_parser *parser) {
    pith_builder builder;
    pith_builder_init(&builder, &parser->program->heap);
    while (pith_parser_is(parser, PITH_TOKEN_STRING)) {
        if (!append_literal(parser, &builder, parser->token->text)) return false;
        parser->token++;
    }
    pith_string *string = pith_builder_finish(&builder);
    if (string == NULL) return pith_parser_no_memory(parser);
    return pith_parser_emit_const(parser, pith_value_string(string));
}

bool pith_literal_number(pith_parser *parser) {
    pith_span text = parser->token->text;
    int64_t integer;
    double real;
    if (pith_parser_is(parser, PITH_TOKEN_INT)) {
        if (!pith_int_parse(text, 0, &integer)) {
            return pith_parser_fail(parser, "the integer %.*s does not fit into 64 bits",
                                    (int)(text.size < 60 ? text.size : 60), text.data);
        }
        parser->token++;
        return pith_parser_emit_const(parser, pith_int(integer));
    }
    if (!pith_float_parse(text, &real)) return pith_parser_fail_expected(parser, "a number");
    parser->token++;
    return pith_parser_emit_const(parser, pith_float(real));
}
