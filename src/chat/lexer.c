/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting a template into tokens.
 *
 * Owns the rules about white space that belong to tags:
 *   {%- -%} {{- -}} {#- -#}   take all white space on their side
 *   {% and {#   take the blanks between them and the start of their line (lstrip_blocks); not {%+
 *   %} and #}   take one newline behind them (trim_blocks); not +%}
 *
 *       text ..... {%-   set x = 1   -%} ..... text {{ x }} text
 *       DATA       BLOCK_BEGIN ...   BLOCK_END DATA PRINT_BEGIN ...
 *
 * Inside a tag, an end such as }} counts only outside of brackets, so {{ {'a': {}} }} works.
 * The inside of {% raw %} gives DATA.
 *
 * Invariants: every turn of a loop advances or ends the work; nothing recurses; tokens point into
 * the source.
 */
#include "chat/lexer.h"

#include "base/memory.h"
#include "chat/unicode_case.h"

#include <string.h>

typedef struct lexer {
    const char *source;
    size_t size, at;
    uint32_t line;
    size_t line_known_at; /* `line` is the line of this offset */
    bool line_starting;   /* nothing but taken white space since the last newline */
    pith_tokens *tokens;
    pith_error *error;
    char open[64]; /* brackets that are open in this tag; deeper ones are only counted */
    size_t n_open;
} lexer;

size_t pith_lexer_normalize(pith_span source, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < source.size; i++) {
        char c = source.data[i];
        if (c == '\r') {
            if (i + 1 < source.size && source.data[i + 1] == '\n') i++;
            c = '\n';
        }
        out[n++] = c;
    }
    return n > 0 && out[n - 1] == '\n' ? n - 1 : n;
}

void pith_tokens_deinit(pith_tokens *tokens) {
    pith_free(tokens->items);
    *tokens = (pith_tokens){0};
}

/* ---- small steps ---- */

static uint32_t line_at(lexer *lx, size_t offset) {
    if (offset < lx->line_known_at) {
        lx->line_known_at = 0;
        lx->line = 1;
    }
    for (; lx->line_known_at < offset; lx->line_known_at++)
        lx->line += lx->source[lx->line_known_at] == '\n';
    return lx->line;
}

static bool emit(lexer *lx, pith_token_kind kind, size_t from, size_t to) {
    pith_tokens *tokens = lx->tokens;
    if (tokens->n == tokens->capacity) {
        size_t capacity = tokens->capacity == 0 ? 64 : tokens->capacity * 2;
        pith_token *items =
            pith_realloc(tokens->items, capacity * sizeof *items); /* at most one per source byte */
        if (items == NULL) {
            pith_fail_memory(lx->error, "the tokens of a template", capacity * sizeof *items);
            return false;
        }
        tokens->items = items;
        tokens->capacity = capacity;
    }
    tokens->items[tokens->n++] = (pith_token){
        .kind = kind, .line = line_at(lx, from), .text = {lx->source + from, to - from}};
    return true;
}

static bool fail_at(lexer *lx, size_t offset, const char *what) {
    pith_fail(lx->error, PITH_ERROR_TEMPLATE, "line %u: %s", line_at(lx, offset), what);
    return false;
}

static bool looks_at(const lexer *lx, size_t at, const char *text) {
    size_t n = strlen(text);
    return n <= lx->size - at && memcmp(lx->source + at, text, n) == 0;
}

static size_t skip_space(const lexer *lx, size_t at) {
    while (at < lx->size) {
        uint32_t code;
        size_t n = pith_utf8_decode(lx->source + at, lx->size - at, &code);
        if ((pith_unicode_flags(code) & PITH_UNICODE_SPACE) == 0) break;
        at += n;
    }
    return at;
}

/* The start of the white space that ends at `to`, not before `from`. */
static size_t space_before(const lexer *lx, size_t from, size_t to) {
    while (to > from) {
        size_t start = to - 1;
        while (start > from && to - start < 4 && ((unsigned char)lx->source[start] & 0xC0) == 0x80)
            start--;
        uint32_t code;
        if (pith_utf8_decode(lx->source + start, to - start, &code) != to - start) break;
        if ((pith_unicode_flags(code) & PITH_UNICODE_SPACE) == 0) break;
        to = start;
    }
    return to;
}

/* Emits the text before a tag, less what the tag's sign takes. */
static bool emit_data(lexer *lx, size_t from, size_t to, char sign, bool is_print) {
    if (sign == '-') {
        to = space_before(lx, from, to);
    } else if (sign != '+' && !is_print) {
        size_t start = to;
        while (start > from && lx->source[start - 1] != '\n') start--;
        bool at_line_start = start > from || lx->line_starting;
        if (at_line_start && space_before(lx, start, to) == start) to = start;
    }
    return from == to || emit(lx, PITH_TOKEN_DATA, from, to);
}

/* Behind a tag's end at `at` (after the last brace): what its sign takes. */
static size_t behind_tag(lexer *lx, size_t at, char sign, bool takes_newline) {
    size_t end = at;
    if (sign == '-') {
        end = skip_space(lx, at);
    } else if (sign != '+' && takes_newline && at < lx->size && lx->source[at] == '\n') {
        end = at + 1;
    }
    lx->line_starting = end > at && lx->source[end - 1] == '\n';
    return end;
}

/* ---- inside a tag ---- */

/* Digits with single underscores between them from `at` on; the end, or `at` if none is there. */
static size_t scan_digits(const lexer *lx, size_t at) {
    size_t end = at;
    while (end < lx->size) {
        char c = lx->source[end];
        bool is_digit = c >= '0' && c <= '9';
        bool is_gap = c == '_' && end > at && end + 1 < lx->size && lx->source[end + 1] >= '0' &&
                      lx->source[end + 1] <= '9' && lx->source[end - 1] != '_';
        if (!is_digit && !is_gap) break;
        end++;
    }
    return end;
}

/* The end of a float that starts at `at`, or `at`. */
static size_t scan_float(const lexer *lx, size_t at) {
    if (at > 0 && lx->source[at - 1] == '.') return at;
    size_t whole = scan_digits(lx, at), end = whole;
    if (end < lx->size && lx->source[end] == '.') {
        size_t fraction = scan_digits(lx, end + 1);
        if (fraction > end + 1) end = fraction;
    }
    if (end < lx->size && (lx->source[end] | 0x20) == 'e') {
        size_t digits = end + 1;
        if (digits < lx->size && (lx->source[digits] == '+' || lx->source[digits] == '-')) digits++;
        size_t exponent = scan_digits(lx, digits);
        if (exponent > digits) return exponent;
    }
    return end > whole ? end : at;
}

static bool is_digit_of(char c, int base) {
    int digit = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                         : 99;
    return digit < base;
}

static size_t scan_int(const lexer *lx, size_t at) {
    char letter = at + 1 < lx->size ? (char)(lx->source[at + 1] | 0x20) : 0;
    int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (lx->source[at] == '0' && base != 0) {
        size_t end = at + 2;
        for (;;) {
            size_t digit = end < lx->size && lx->source[end] == '_' ? end + 1 : end;
            if (digit >= lx->size || !is_digit_of(lx->source[digit], base)) break;
            end = digit + 1;
        }
        return end > at + 2 ? end : at + 1;
    }
    size_t end = scan_digits(lx, at);
    if (lx->source[at] != '0') return end;
    size_t zeros = at; /* 007 is 00 and 7, which the parser refuses */
    while (zeros < end && (lx->source[zeros] == '0' || lx->source[zeros] == '_')) zeros++;
    return lx->source[zeros - 1] == '_' ? zeros - 1 : zeros;
}

static size_t scan_name(const lexer *lx, size_t at) {
    while (at < lx->size) {
        uint32_t code;
        size_t n = pith_utf8_decode(lx->source + at, lx->size - at, &code);
        uint32_t flags = pith_unicode_flags(code);
        if (code != '_' &&
            (flags & (PITH_UNICODE_ALPHA | PITH_UNICODE_NUMERIC | PITH_UNICODE_DECIMAL)) == 0)
            break;
        at += n;
    }
    return at;
}

static bool lex_string(lexer *lx) {
    char quote = lx->source[lx->at];
    size_t end = lx->at + 1;
    while (end < lx->size && lx->source[end] != quote) end += lx->source[end] == '\\' ? 2 : 1;
    if (end >= lx->size) return fail_at(lx, lx->at, "a string is not closed");
    if (!emit(lx, PITH_TOKEN_STRING, lx->at + 1, end)) return false;
    lx->at = end + 1;
    return true;
}

static const struct operator_text {
    char text[3];
    uint8_t kind;
} operators[] = {
    /* longer ones first */
    {"**", PITH_TOKEN_POWER},
    {"//", PITH_TOKEN_FLOOR_DIVIDE},
    {"==", PITH_TOKEN_EQUAL},
    {"!=", PITH_TOKEN_UNEQUAL},
    {">=", PITH_TOKEN_GREATER_EQUAL},
    {"<=", PITH_TOKEN_LESS_EQUAL},
    {"+", PITH_TOKEN_ADD},
    {"-", PITH_TOKEN_SUBTRACT},
    {"*", PITH_TOKEN_MULTIPLY},
    {"/", PITH_TOKEN_DIVIDE},
    {"%", PITH_TOKEN_MODULO},
    {"~", PITH_TOKEN_TILDE},
    {"<", PITH_TOKEN_LESS},
    {">", PITH_TOKEN_GREATER},
    {"=", PITH_TOKEN_ASSIGN},
    {".", PITH_TOKEN_DOT},
    {":", PITH_TOKEN_COLON},
    {"|", PITH_TOKEN_PIPE},
    {",", PITH_TOKEN_COMMA},
    {";", PITH_TOKEN_SEMICOLON},
    {"(", PITH_TOKEN_PAREN_OPEN},
    {")", PITH_TOKEN_PAREN_CLOSE},
    {"[", PITH_TOKEN_BRACKET_OPEN},
    {"]", PITH_TOKEN_BRACKET_CLOSE},
    {"{", PITH_TOKEN_BRACE_OPEN},
    {"}", PITH_TOKEN_BRACE_CLOSE},
};

/* Keeps track of brackets; false after a failure. */
static bool balance(lexer *lx, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (lx->n_open < sizeof lx->open) lx->open[lx->n_open] = c;
        lx->n_open++;
    } else if (c == ')' || c == ']' || c == '}') {
        char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
        if (lx->n_open == 0) return fail_at(lx, lx->at, "a bracket is closed that was not opened");
        lx->n_open--;
        if (lx->n_open < sizeof lx->open && lx->open[lx->n_open] != opening) {
            return fail_at(lx, lx->at, "a bracket is closed by one of another kind");
        }
    }
    return true;
}

static bool lex_operator(lexer *lx) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!looks_at(lx, lx->at, operators[i].text)) continue;
        size_t n = strlen(operators[i].text);
        if (n == 1 && !balance(lx, operators[i].text[0])) return false;
        if (!emit(lx, (pith_token_kind)operators[i].kind, lx->at, lx->at + n)) return false;
        lx->at += n;
        return true;
    }
    return fail_at(lx, lx->at, "there is a character that no expression may contain");
}

static bool lex_one(lexer *lx) {
    char c = lx->source[lx->at];
    if (c == '"' || c == '\'') return lex_string(lx);
    size_t end;
    pith_token_kind kind = PITH_TOKEN_FLOAT;
    if (c >= '0' && c <= '9') {
        end = scan_float(lx, lx->at);
        if (end == lx->at) {
            end = scan_int(lx, lx->at);
            kind = PITH_TOKEN_INT;
        }
    } else {
        end = scan_name(lx, lx->at);
        kind = PITH_TOKEN_NAME;
    }
    if (end == lx->at) return lex_operator(lx);
    if (!emit(lx, kind, lx->at, end)) return false;
    lx->at = end;
    return true;
}

/* From behind the opening braces to behind the closing ones. */
static bool lex_tag(lexer *lx, bool is_print) {
    const char *closing = is_print ? "}}" : "%}";
    lx->n_open = 0;
    for (;;) {
        lx->at = skip_space(lx, lx->at);
        if (lx->at >= lx->size) return fail_at(lx, lx->size, "the template ends inside of a tag");
        char sign = lx->source[lx->at];
        if (sign != '-' && (sign != '+' || is_print)) sign = 0;
        if (lx->n_open == 0 && looks_at(lx, lx->at + (sign != 0), closing)) {
            size_t end = lx->at + (sign != 0) + 2;
            if (!emit(lx, is_print ? PITH_TOKEN_PRINT_END : PITH_TOKEN_BLOCK_END, lx->at, end))
                return false;
            lx->at = behind_tag(lx, end, sign, !is_print);
            return true;
        }
        if (!lex_one(lx)) return false;
    }
}

/* ---- outside of tags ---- */

static bool lex_comment(lexer *lx, size_t content) {
    lx->at = lx->size; /* like Jinja, a comment that opens at the very end needs no closing */
    if (content == lx->size) return true;
    for (size_t end = content; end + 1 < lx->size; end++) {
        if (!looks_at(lx, end, "#}")) continue;
        char sign = end > content ? lx->source[end - 1] : 0;
        lx->at = behind_tag(lx, end + 2, sign == '-' || sign == '+' ? sign : 0, true);
        return true;
    }
    return fail_at(lx, content, "a comment is not closed by #}");
}

/* Whether `at`, behind {% and its sign, holds `word` and a tag's end; *end is behind that, *sign is
 * the end's. */
static bool is_word_tag(const lexer *lx, size_t at, const char *word, bool allows_plus, size_t *end,
                        char *sign) {
    at = skip_space(lx, at);
    if (!looks_at(lx, at, word)) return false;
    at = skip_space(lx, at + strlen(word));
    *sign = 0;
    if (at < lx->size && (lx->source[at] == '-' || (lx->source[at] == '+' && allows_plus)))
        *sign = lx->source[at++];
    if (!looks_at(lx, at, "%}")) return false;
    *end = at + 2;
    return true;
}

/* Text up to {% endraw %}. content: behind {% raw %}. */
static bool lex_raw(lexer *lx, size_t content) {
    lx->at = lx->size; /* as with comments */
    if (content == lx->size) return true;
    for (size_t at = content; at + 1 < lx->size; at++) {
        if (!looks_at(lx, at, "{%")) continue;
        size_t inside = at + 2, end;
        char before = inside < lx->size ? lx->source[inside] : 0, sign;
        if (before == '-' || before == '+') inside++;
        if (!is_word_tag(lx, inside, "endraw", true, &end, &sign)) continue;
        if (!emit_data(lx, content, at, before, false)) return false;
        lx->at = behind_tag(lx, end, sign, true);
        return true;
    }
    return fail_at(lx, content, "{% raw %} is not closed by {% endraw %}");
}

/* The tag that starts at `at`; the text before it starts at lx->at. */
static bool lex_at_tag(lexer *lx, size_t at) {
    char type = lx->source[at + 1];
    size_t inside = at + 2, end;
    char sign = inside < lx->size ? lx->source[inside] : 0, end_sign;
    if (sign == '-' || sign == '+') inside++;
    if (!emit_data(lx, lx->at, at, sign, type == '{')) return false;
    if (type == '#') return lex_comment(lx, inside);
    if (type == '%' && is_word_tag(lx, inside, "raw", false, &end, &end_sign)) {
        return lex_raw(lx, behind_tag(lx, end, end_sign, false));
    }
    if (!emit(lx, type == '{' ? PITH_TOKEN_PRINT_BEGIN : PITH_TOKEN_BLOCK_BEGIN, at, inside))
        return false;
    lx->at = inside;
    return lex_tag(lx, type == '{');
}

static bool lex_all(lexer *lx) {
    size_t at = 0;
    while (at + 1 < lx->size) {
        char type = lx->source[at] == '{' ? lx->source[at + 1] : 0;
        if (type == '{' || type == '%' || type == '#') {
            if (!lex_at_tag(lx, at)) return false;
            at = lx->at;
        } else {
            at++;
        }
    }
    if (lx->at < lx->size && !emit(lx, PITH_TOKEN_DATA, lx->at, lx->size)) return false;
    return emit(lx, PITH_TOKEN_END, lx->size, lx->size);
}

pith_status pith_lexer_run(pith_span source, pith_tokens *out, pith_error *error) {
    pith_error own;
    lexer lx = {.source = source.data,
                .size = source.size,
                .line = 1,
                .line_starting = true,
                .tokens = out,
                .error = error != NULL ? error : &own};
    *out = (pith_tokens){0};
    if (lex_all(&lx)) return PITH_OK;
    pith_tokens_deinit(out);
    return lx.error->status;
}
