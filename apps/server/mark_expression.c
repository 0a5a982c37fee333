/* SPDX-License-Identifier: Apache-2.0
 * Expressions by PCRE2 without its compiler to machine code, which may not run where memory is
 * never both written and executed. PCRE2 calls us before each item that it tries; that is how steps
 * are counted, since its own limits hold for one beginning of a match and not for all of a text.
 * Invariant: an expression sees characters and not bytes, and is folded as the texts are.
 * Read next: private_marks.c. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "server/mark_expression.h"

#include "base/memory.h"
#include "server/folded_text.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

enum { HEAP_KIB = 16384, LEAST_STEPS = 1 << 20 };

struct pith_mark_expression {
    pcre2_general_context *memory;
    pcre2_code *code;
};

/* ---- What is written, as PCRE2 reads it ---- */

static bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ' ';
}

/* Letters beyond ASCII, folded. What becomes a sign of PCRE2's is meant as a character. */
static void append_letters(pith_buffer *out, const char *text, size_t size) {
    pith_buffer letters = {0}, folded = {0};
    pith_buffer_append_text(&letters, "0"); /* or a space would be the first, and left out */
    pith_buffer_append(&letters, text, size);
    if (!letters.failed) pith_folded_text_append(&folded, letters.data, letters.size);
    if (letters.failed || folded.failed) out->failed = true;
    for (size_t i = 1; i < folded.size; i++) {
        char c = folded.data[i];
        if ((unsigned char)c < 0x80 && !is_plain(c)) pith_buffer_append(out, "\\", 1);
        pith_buffer_append(out, &c, 1);
    }
    pith_buffer_deinit(&letters);
    pith_buffer_deinit(&folded);
}

/* Bytes of the letter at text with its marks, if any of them is beyond ASCII; else 0. */
static size_t letters_at(const char *text, size_t size) {
    uint32_t code, mark;
    size_t first = pith_utf8_decode(text, size, &code), n = first;
    while (n < size) {
        size_t more = pith_utf8_decode(text + n, size - n, &mark);
        if (mark < 0x300 || mark > 0x36F) break;
        n += more;
    }
    return code >= 0x80 || (n > first && is_plain((char)(text[0] | 0x20))) ? n : 0;
}

/* "\<" and "\>" are words' edges; what else stands behind a backslash is PCRE2's. */
static size_t append_escape(pith_buffer *out, const char *text) {
    if (text[1] == '<')
        pith_buffer_append_text(out, "\\b(?=\\w)");
    else if (text[1] == '>')
        pith_buffer_append_text(out, "\\b(?<=\\w)");
    else
        pith_buffer_append(out, text, text[1] ? 2 : 1);
    return text[1] ? 2 : 1;
}

static void translate(pith_buffer *out, const char *text) {
    for (size_t size = strlen(text), used; size > 0; text += used, size -= used) {
        used = letters_at(text, size);
        if (*text == '\\')
            used = append_escape(out, text);
        else if (used > 0)
            append_letters(out, text, used);
        else
            pith_buffer_append(out, text, used = 1);
    }
}

/* ---- Life ---- */

/* References back are left out since what they find is seldom what was meant in folded text. */
static bool has_backreference(const char *text) {
    for (const char *at = text; (at = strchr(at, '\\')) && at[1]; at += 2)
        if (at[1] >= '1' && at[1] <= '9') return true;
    return false;
}

static void compile(pith_mark_expression *e, const char *text, char *reason) {
    pith_buffer pattern = {0};
    int code = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_CASELESS | PCRE2_MULTILINE |
                       PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;
    e->memory = pcre2_general_context_create(pith_alloc_hook, pith_free_hook, NULL);
    pcre2_compile_context *context = e->memory ? pcre2_compile_context_create(e->memory) : NULL;
    translate(&pattern, text);
    if (context && pattern.data && !pattern.failed)
        e->code =
            pcre2_compile((PCRE2_SPTR)pattern.data, pattern.size, options, &code, &at, context);
    if (!e->code) pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, PITH_MARK_EXPRESSION_REASON);
    pcre2_compile_context_free(context);
    pith_buffer_deinit(&pattern);
}

pith_mark_expression *pith_mark_expression_new(const char *text,
                                               char reason[PITH_MARK_EXPRESSION_REASON]) {
    pith_mark_expression *e = pith_alloc_zero(1, sizeof *e);
    uint64_t steps = LEAST_STEPS;
    snprintf(reason, PITH_MARK_EXPRESSION_REASON, "%s",
             !e                        ? "there is no memory for it"
             : !text[0]                ? "it is empty"
             : has_backreference(text) ? "backreferences are not supported"
                                       : "");
    if (e && !reason[0]) compile(e, text, reason);
    if (e && e->code &&
        pith_mark_expression_find(e, (pith_span){"", 0}, &steps) != PITH_MARK_NOT_FOUND)
        snprintf(reason, PITH_MARK_EXPRESSION_REASON, "it matches every text");
    if (e && e->code && !reason[0]) return e;
    pith_mark_expression_free(e);
    return NULL;
}

void pith_mark_expression_free(pith_mark_expression *e) {
    if (!e) return;
    pcre2_code_free(e->code);
    pcre2_general_context_free(e->memory);
    pith_free(e);
}

/* ---- Searching ---- */

static int count_step(pcre2_callout_block *block, void *user) {
    uint64_t *steps = user;
    (void)block;
    if (*steps == 0) return PCRE2_ERROR_CALLOUT;
    --*steps;
    return 0;
}

pith_mark_found pith_mark_expression_find(const pith_mark_expression *e, pith_span text,
                                          uint64_t *steps) {
    pcre2_match_data *match = pcre2_match_data_create(1, e->memory);
    pcre2_match_context *context = match ? pcre2_match_context_create(e->memory) : NULL;
    int found = PCRE2_ERROR_NOMEMORY;
    if (context) {
        pcre2_set_callout(context, count_step, steps);
        pcre2_set_heap_limit(context, HEAP_KIB);
        found = pcre2_match(e->code, (PCRE2_SPTR)text.data, text.size, 0, PCRE2_NO_UTF_CHECK, match,
                            context);
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
    if (found >= 0) return PITH_MARK_FOUND;
    return found == PCRE2_ERROR_NOMATCH ? PITH_MARK_NOT_FOUND : PITH_MARK_TOO_LONG;
}
