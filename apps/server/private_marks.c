/* SPDX-License-Identifier: Apache-2.0
 * Marks of private text. A request's texts are written one below another into a buffer in folded
 * form, as they stand and with JSON escapes resolved (arguments and results of tools are often JSON
 * inside a string), and each mark is looked for in it.
 * Invariant: in doubt a text counts as marked, also where a search would take too long.
 * Does not decide what follows: routing.c. Read next: folded_text.c, mark_expression.c. */
#define _GNU_SOURCE /* memmem */

#include "server/private_marks.h"

#include "base/memory.h"
#include "server/fields.h"
#include "server/folded_text.h"
#include "server/mark_expression.h"

#include <string.h>
#include <strings.h>

enum {
    LINE_LIMIT = 512, /* bytes of a mark */
    UNESCAPES = 3,    /* JSON inside a string inside JSON ... */
    BORDER = 1024,    /* bytes on either side of a cut between messages */
    LEVELS = PITH_JSON_MAX_DEPTH + 2
};
/* What a search may take, about a second each: bytes that words are looked for in, all words
 * together, and steps of expressions. */
#define MOST_BYTES ((uint64_t)4 << 30)
#define MOST_STEPS ((uint64_t)32 << 20)

typedef struct mark {
    int line;
    char *word; /* folded; NULL: an expression */
    size_t size;
    pith_mark_expression *expression;
} mark;

struct pith_marks {
    mark *items; /* [n] */
    size_t n;
};

/* ---- Texts ---- */

static int hex(char c) {
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 32) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The unit of "\uXXXX" at text; -1: there is none. */
static int32_t read_unit(const char *text, size_t size) {
    int32_t unit = 0;
    if (size < 6 || text[0] != '\\' || text[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex(text[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Appends what the escape at text stands for; its length. */
static size_t append_unescaped(pith_buffer *out, const char *text, size_t size) {
    char bytes[4];
    int32_t unit = read_unit(text, size);
    size_t used = 6;
    if (unit < 0) {
        char c = size > 1 ? text[1] : ' ';
        pith_buffer_append(out, strchr("nrtbf", c) ? "\n" : &c, 1);
        return size > 1 ? 2 : 1;
    }
    if (unit >= 0xD800 && unit < 0xDC00) {
        int32_t low = read_unit(text + 6, size - 6);
        if (low >= 0xDC00 && low < 0xE000) {
            unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            used = 12;
        }
    }
    pith_buffer_append(out, bytes, pith_utf8_encode((uint32_t)unit, bytes));
    return used;
}

static void unescape(pith_buffer *out, const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        const char *next = memchr(text + at, '\\', size - at);
        size_t plain = next ? (size_t)(next - text) - at : size - at;
        pith_buffer_append(out, text + at, plain);
        at += plain;
        if (next) at += append_unescaped(out, next, size - at);
    }
}

static void append_text(pith_buffer *out, const char *text, size_t size) {
    pith_buffer plain = {0}, before = {0};
    pith_folded_text_append(out, text, size);
    pith_buffer_append(out, "\n", 1);
    for (int i = 0; i < UNESCAPES && memchr(text, '\\', size); i++) {
        pith_buffer_deinit(&before);
        before = plain;
        plain = (pith_buffer){0};
        unescape(&plain, text, size);
        if (plain.failed) out->failed = true;
        if (plain.failed || !plain.data) break;
        text = plain.data;
        size = plain.size;
        pith_folded_text_append(out, text, size);
        pith_buffer_append(out, "\n", 1);
    }
    pith_buffer_deinit(&before);
    pith_buffer_deinit(&plain);
}

/* ---- The file ---- */

static bool add_word(pith_marks *m, pith_span line) {
    pith_buffer folded = {0};
    pith_folded_text_append(&folded, line.data, line.size);
    while (folded.size > 0 && folded.data[folded.size - 1] == ' ') folded.size--;
    mark *at = &m->items[m->n];
    at->word = folded.failed ? NULL : pith_copy_text(folded.data ? folded.data : "", folded.size);
    at->size = folded.size;
    pith_buffer_deinit(&folded);
    if (!at->word) return false;
    if (at->size > 0)
        m->n++;
    else
        pith_free(at->word); /* invisible characters alone */
    return true;
}

static bool add_expression(pith_marks *m, const char *text, const char *name, pith_error *error) {
    mark *at = &m->items[m->n];
    char why[PITH_MARK_EXPRESSION_REASON];
    at->expression = pith_mark_expression_new(text, why);
    if (at->expression) m->n++;
    if (at->expression) return true;
    pith_fail(error, PITH_ERROR_FORMAT, "%s, line %d: the expression is not understood: %s", name,
              at->line, why);
    return false;
}

/* Of another encoding: words of it would be found nowhere. */
static bool is_utf8(pith_span line) {
    uint32_t code = 0;
    for (size_t at = 0; at < line.size && code != PITH_UTF8_INVALID;)
        at += pith_utf8_decode(line.data + at, line.size - at, &code);
    return code != PITH_UTF8_INVALID;
}

static bool add_line(pith_marks *m, pith_span line, int number, const char *name,
                     pith_error *error) {
    char text[LINE_LIMIT + 1];
    while (line.size > 0 && (unsigned char)line.data[line.size - 1] <= ' ') line.size--;
    while (line.size > 0 && (unsigned char)line.data[0] <= ' ') line.data++, line.size--;
    if (line.size == 0 || line.data[0] == '#') return true;
    if (m->n == PITH_MARKS_MAX || line.size > LINE_LIMIT) {
        pith_fail(error, PITH_ERROR_LIMIT, "%s, line %d: at most %d marks of at most %d bytes",
                  name, number, PITH_MARKS_MAX, LINE_LIMIT);
        return false;
    }
    if (!is_utf8(line)) {
        pith_fail(error, PITH_ERROR_FORMAT, "%s, line %d: it is no UTF-8", name, number);
        return false;
    }
    m->items[m->n] = (mark){.line = number};
    if (line.size < 3 || memcmp(line.data, "re:", 3) != 0) {
        if (add_word(m, line)) return true;
        pith_fail_memory(error, "a private word", line.size);
        return false;
    }
    memcpy(text, line.data + 3, line.size - 3);
    text[line.size - 3] = 0;
    return add_expression(m, text, name, error);
}

static bool read_lines(pith_marks *m, const char *text, const char *name, pith_error *error) {
    int number = 0;
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
    while (*text) {
        size_t size = strcspn(text, "\n");
        if (!add_line(m, (pith_span){text, size}, ++number, name, error)) return false;
        text += size + (text[size] == '\n');
    }
    if (m->n > 0) return true;
    pith_fail(error, PITH_ERROR_FORMAT, "%s holds no word and no expression", name);
    return false;
}

pith_marks *pith_marks_new(const char *text, const char *name, pith_error *error) {
    pith_marks *m = pith_alloc_zero(1, sizeof *m);
    if (m) m->items = pith_alloc_zero(PITH_MARKS_MAX, sizeof *m->items);
    if (!m || !m->items) {
        pith_free(m);
        pith_fail_memory(error, "the private words", PITH_MARKS_MAX * sizeof(mark));
        return NULL;
    }
    if (!text || read_lines(m, text, name, error)) return m;
    pith_marks_free(m);
    return NULL;
}

void pith_marks_free(pith_marks *m) {
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        pith_mark_expression_free(m->items[i].expression);
        pith_free(m->items[i].word);
    }
    pith_free(m->items);
    pith_free(m);
}

bool pith_marks_has_words(const pith_marks *m) {
    return m->n > 0;
}

/* ---- A request's texts ---- */

typedef struct level {
    json_t *at;
    void *item;   /* of an object: the next member */
    size_t index; /* of an array: the next one */
} level;

static void append_string(pith_buffer *out, const json_t *text) {
    if (json_is_string(text))
        pith_buffer_append(out, json_string_value(text), json_string_length(text));
}

/* Of a long message only the beginning and the end lie at a cut. */
static void append_said(pith_buffer *out, const char *between, const pith_buffer *said) {
    if (out->size > 0) pith_buffer_append_text(out, between);
    if (said->size <= 2 * BORDER) {
        pith_buffer_append(out, said->data, said->size);
        return;
    }
    pith_buffer_append(out, said->data, BORDER);
    pith_buffer_append_text(out, "\n");
    pith_buffer_append(out, said->data + said->size - BORDER, BORDER);
}

/* Joins texts that were cut: those of parts as they are, those of messages with a space or none. */
typedef struct joined_texts {
    pith_buffer parts, messages, spaced;
    size_t n_messages;
} joined_texts;

static void join(joined_texts *j, const json_t *item) {
    const json_t *content = json_object_get(item, "content");
    pith_buffer said = {0};
    append_string(&j->parts, json_object_get(item, "text"));
    append_string(&said, content);
    for (size_t i = 0; i < json_array_size(content); i++)
        append_string(&said, json_object_get(json_array_get(content, i), "text"));
    if (said.failed) j->messages.failed = true;
    if (said.size > 0 && !said.failed) {
        append_said(&j->messages, "", &said);
        append_said(&j->spaced, " ", &said);
        j->n_messages++;
    }
    pith_buffer_deinit(&said);
}

/* The texts of a message may be cut into parts anywhere, and a text into messages. */
static void append_joined(pith_buffer *out, const json_t *array) {
    joined_texts j = {.n_messages = 0};
    for (size_t i = 0; i < json_array_size(array); i++) join(&j, json_array_get(array, i));
    pith_buffer *texts[] = {&j.parts, &j.messages, &j.spaced};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool is_one = texts[i] != &j.parts && j.n_messages < 2; /* is there already */
        if (texts[i]->failed) out->failed = true;
        if (texts[i]->size > 0 && !texts[i]->failed && !is_one)
            append_text(out, texts[i]->data, texts[i]->size);
        pith_buffer_deinit(texts[i]);
    }
}

/* Bytes in letters, of which nobody knows what they say. */
static bool is_encoded(const json_t *text) {
    const char *at = json_string_value(text);
    return strncasecmp(at, "data:", 5) == 0 && strcspn(at, ",") >= 7 &&
           strncasecmp(at + strcspn(at, ",") - 7, ";base64", 7) == 0;
}

static void append_scalar(pith_buffer *out, const json_t *value) {
    if (json_is_string(value)) {
        append_text(out, json_string_value(value), json_string_length(value));
        if (is_encoded(value)) out->failed = true;
    } else if (json_is_number(value)) {
        char *text = pith_json_dump(value);
        if (!text) out->failed = true;
        if (text) append_text(out, text, strlen(text));
        pith_json_release(text);
    }
}

/* The next value below `l`, its key written out; NULL: no more. */
static json_t *next_value(level *l, pith_buffer *out) {
    if (json_is_array(l->at)) return json_array_get(l->at, l->index++);
    if (!l->item) return NULL;
    const char *key = json_object_iter_key(l->item);
    json_t *value = json_object_iter_value(l->item);
    append_text(out, key, strlen(key));
    l->item = json_object_iter_next(l->at, l->item);
    return value;
}

static level level_of(json_t *value) {
    return (level){.at = value, .item = json_is_object(value) ? json_object_iter(value) : NULL};
}

static void collect(pith_buffer *out, json_t *request) {
    level levels[LEVELS];
    int n = 0;
    levels[n++] = level_of(request);
    while (n > 0) {
        json_t *value = next_value(&levels[n - 1], out);
        if (!value) {
            n--;
        } else if (!json_is_object(value) && !json_is_array(value)) {
            append_scalar(out, value);
        } else if (n == LEVELS) {
            out->failed = true; /* deeper than a body may be */
        } else {
            if (json_is_array(value)) append_joined(out, value);
            levels[n++] = level_of(value);
        }
    }
}

int pith_marks_find(const pith_marks *m, json_t *request) {
    pith_buffer text = {0};
    uint64_t steps = MOST_STEPS, bytes = 0;
    int line = 0;
    if (m->n == 0) return 0;
    collect(&text, request);
    for (size_t i = 0; i < m->n && !text.failed && text.data && line == 0; i++) {
        const mark *at = &m->items[i];
        pith_mark_found found = PITH_MARK_NOT_FOUND;
        if (at->expression)
            found = pith_mark_expression_find(at->expression, (pith_span){text.data, text.size},
                                              &steps);
        else if ((bytes += text.size) > MOST_BYTES)
            found = PITH_MARK_TOO_LONG;
        else if (memmem(text.data, text.size, at->word, at->size))
            found = PITH_MARK_FOUND;
        if (found == PITH_MARK_FOUND) line = at->line;
        if (found == PITH_MARK_TOO_LONG) line = PITH_MARKS_UNSEARCHED;
    }
    if (text.failed) line = PITH_MARKS_UNSEARCHED;
    pith_buffer_deinit(&text);
    return line;
}
