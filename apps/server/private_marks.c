/* SPDX-License-Identifier: Apache-2.0
 * Marks of private text. A request's texts are written one below another into a buffer in folded
 * form, as they stand and with JSON escapes resolved (arguments and results of tools are often JSON
 * inside a string), and each mark is looked for in it.
 * Invariant: in doubt a text counts as marked. Only digests of messages are kept.
 * Does not decide what follows: routing.c. */
#define _GNU_SOURCE /* memmem */

#include "server/private_marks.h"

#include "base/clock.h"
#include "base/memory.h"
#include "server/fields.h"

#include <pthread.h>
#include <regex.h>
#include <string.h>

enum {
    LINE_LIMIT = 512,   /* bytes of a mark */
    UNESCAPES = 3,      /* JSON inside a string inside JSON ... */
    REMEMBERED = 8192,  /* digests */
    LEAST_MESSAGE = 24, /* bytes of a message that is known without those before it */
    LEVELS = PITH_JSON_MAX_DEPTH + 2
};

typedef struct mark {
    int line;
    bool is_expression;
    char *word; /* folded */
    size_t size;
    regex_t expression;
} mark;

struct pith_marks {
    mark *items; /* [n] */
    size_t n;
    pthread_mutex_t lock; /* of what follows */
    uint64_t seed, known[REMEMBERED];
    size_t n_known; /* ever remembered */
};

/* ---- Folding ---- */

static bool is_space(uint32_t c) {
    return c <= 0x20 || c == 0x7F || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static bool is_invisible(uint32_t c) {
    return c == 0xAD || c == 0x34F || c == 0x61C || c == 0x180E || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) ||
           (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF;
}

static uint32_t fold_case(uint32_t c) {
    if (c >= 0xFF01 && c <= 0xFF5E) c -= 0xFEE0;
    if (c >= 'A' && c <= 'Z') return c + 32;
    if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
    if (c >= 0x100 && c <= 0x137) return c | 1;
    if (c >= 0x139 && c <= 0x148) return c + (c & 1);
    if (c >= 0x14A && c <= 0x177) return c | 1;
    if (c >= 0x391 && c <= 0x3A9) return c + 32;
    if (c == 0x3C2) return 0x3C3; /* final sigma */
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    if (c >= 0x410 && c <= 0x42F) return c + 32;
    return c;
}

static void append_folded(pith_buffer *out, const char *text, size_t size) {
    bool after_space = true;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        char bytes[4];
        at += pith_utf8_decode(text + at, size - at, &code);
        if (code == PITH_UTF8_INVALID || is_invisible(code)) continue;
        bool space = is_space(code);
        if (!space)
            pith_buffer_append(out, bytes, pith_utf8_encode(fold_case(code), bytes));
        else if (!after_space)
            pith_buffer_append(out, " ", 1);
        after_space = space;
    }
}

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
    append_folded(out, text, size);
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
        append_folded(out, text, size);
        pith_buffer_append(out, "\n", 1);
    }
    pith_buffer_deinit(&before);
    pith_buffer_deinit(&plain);
}

/* ---- The file ---- */

static bool add_word(pith_marks *m, pith_span line) {
    pith_buffer folded = {0};
    append_folded(&folded, line.data, line.size);
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

/* Backreferences make a search take exponential time; nobody's request may cause that. */
static bool has_backreference(const char *text) {
    for (; *text; text++)
        if (text[0] == '\\' && *++text >= '1' && *text <= '9') return true;
    return false;
}

static bool add_expression(pith_marks *m, const char *text, const char *name, pith_error *error) {
    mark *at = &m->items[m->n];
    char why[120] = "backreferences are not supported";
    int code = has_backreference(text) ? -1 : 0;
    if (code == 0)
        code = regcomp(&at->expression, text, REG_EXTENDED | REG_ICASE | REG_NOSUB | REG_NEWLINE);
    if (code > 0) regerror(code, &at->expression, why, sizeof why);
    bool is_empty = code == 0 && regexec(&at->expression, "", 0, NULL, 0) == 0;
    if (is_empty) {
        regfree(&at->expression);
        memcpy(why, "it matches every text", sizeof "it matches every text");
    }
    at->is_expression = true;
    if (code == 0 && !is_empty) m->n++;
    if (code == 0 && !is_empty) return true;
    pith_fail(error, PITH_ERROR_FORMAT, "%s, line %d: the expression is not understood: %s", name,
              at->line, why);
    return false;
}

static bool add_line(pith_marks *m, pith_span line, int number, const char *name,
                     pith_error *error) {
    char text[LINE_LIMIT + 1];
    while (line.size > 0 && is_space((unsigned char)line.data[line.size - 1])) line.size--;
    while (line.size > 0 && is_space((unsigned char)line.data[0])) line.data++, line.size--;
    if (line.size == 0 || line.data[0] == '#') return true;
    if (m->n == PITH_MARKS_MAX || line.size > LINE_LIMIT) {
        pith_fail(error, PITH_ERROR_LIMIT, "%s, line %d: at most %d marks of at most %d bytes",
                  name, number, PITH_MARKS_MAX, LINE_LIMIT);
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
    pthread_mutex_init(&m->lock, NULL);
    m->seed = pith_clock_ns() * 0x9E3779B97F4A7C15u;
    if (!text || read_lines(m, text, name, error)) return m;
    pith_marks_free(m);
    return NULL;
}

void pith_marks_free(pith_marks *m) {
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        if (m->items[i].is_expression)
            regfree(&m->items[i].expression);
        else
            pith_free(m->items[i].word);
    }
    pthread_mutex_destroy(&m->lock);
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

/* The texts of a message may be cut into parts anywhere. */
static void append_parts(pith_buffer *out, const json_t *array) {
    pith_buffer joined = {0};
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *text = json_object_get(json_array_get(array, i), "text");
        if (json_is_string(text))
            pith_buffer_append(&joined, json_string_value(text), json_string_length(text));
    }
    if (joined.failed) out->failed = true;
    if (joined.size > 0 && !joined.failed) append_text(out, joined.data, joined.size);
    pith_buffer_deinit(&joined);
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
        } else if (json_is_string(value)) {
            append_text(out, json_string_value(value), json_string_length(value));
        } else if ((json_is_object(value) || json_is_array(value)) && n == LEVELS) {
            out->failed = true; /* deeper than a body may be */
        } else if (json_is_object(value) || json_is_array(value)) {
            if (json_is_array(value)) append_parts(out, value);
            levels[n++] = level_of(value);
        }
    }
}

int pith_marks_find(const pith_marks *m, json_t *request) {
    pith_buffer text = {0};
    int line = 0;
    if (m->n == 0) return 0;
    collect(&text, request);
    for (size_t i = 0; i < m->n && !text.failed && text.data && line == 0; i++) {
        const mark *at = &m->items[i];
        bool found = false;
        if (at->is_expression) {
            int code = regexec(&at->expression, text.data, 0, NULL, 0);
            found = code != REG_NOMATCH;
        } else {
            found = memmem(text.data, text.size, at->word, at->size) != NULL;
        }
        if (found) line = at->line;
    }
    if (text.failed) line = PITH_MARKS_UNSEARCHED;
    pith_buffer_deinit(&text);
    return line;
}

/* ---- Talks ---- */

/* Of what a message says, without how it is wrapped. */
static uint64_t digest_of(const pith_marks *m, const json_t *message, size_t *size) {
    uint64_t digest = m->seed;
    static const char *const keys[] = {"content", "tool_calls"};
    *size = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *part = json_object_get(message, keys[i]);
        char *text =
            part ? json_dumps(part, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
        if (!text) continue;
        digest = pith_hash(text, strlen(text), digest);
        *size += strlen(text);
        pith_json_release(text);
    }
    return digest;
}

static bool is_known(const pith_marks *m, uint64_t digest) {
    size_t n = m->n_known < REMEMBERED ? m->n_known : REMEMBERED;
    bool found = false;
    for (size_t i = 0; i < n; i++) found |= m->known[i] == digest;
    return found;
}

/* Each message gives two digests: of itself, where it is long and not the system's, and of the
 * talk up to it. each: returns true to end. only_whole: of the talks the whole alone. */
static bool each_digest(pith_marks *m, json_t *messages, bool only_whole,
                        bool (*each)(pith_marks *m, uint64_t digest)) {
    uint64_t talk = m->seed;
    size_t n = json_array_size(messages);
    for (size_t i = 0; i < n; i++) {
        size_t size = 0;
        const json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        uint64_t own = digest_of(m, message, &size);
        bool is_system = role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
        talk = pith_hash(&own, sizeof own, talk);
        if (is_system) continue;
        if ((i + 1 == n || !only_whole) && each(m, talk)) return true;
        if (size >= LEAST_MESSAGE && each(m, own)) return true;
    }
    return false;
}

static bool remember(pith_marks *m, uint64_t digest) {
    if (!is_known(m, digest)) m->known[m->n_known++ % REMEMBERED] = digest;
    return false;
}

static bool recall(pith_marks *m, uint64_t digest) {
    return is_known(m, digest);
}

/* What went before the last message may be the beginning of anybody's talk ("hello"). */
void pith_marks_remember(pith_marks *m, json_t *messages) {
    pthread_mutex_lock(&m->lock);
    each_digest(m, messages, true, remember);
    pthread_mutex_unlock(&m->lock);
}

bool pith_marks_knows(pith_marks *m, json_t *messages) {
    pthread_mutex_lock(&m->lock);
    bool known = each_digest(m, messages, false, recall);
    pthread_mutex_unlock(&m->lock);
    return known;
}
