/* SPDX-License-Identifier: Apache-2.0
 * pith-grammar-walk: makes grammars of JSON schemas or regular expressions, walks them at random, and
 * says whether given texts are allowed. For scripts that compare with other programs.
 *
 * Reads one request a line from stdin, a JSON object, and answers with one line:
 *   {"schema": ANY | "schema_text": STRING | "regex": STRING | "tools": {"list", "format", ...},
 *    "samples": N, "seed": S, "texts": [STRING, ...]}
 *   {"error": SENTENCE, "status": N}  or  {"samples": [STRING or null, ...], "allowed": [BOOL, ...],
 *    "compile_ms": T}
 * With "schema" the answer has "valid": [BOOL, ...] as well, what a check without a grammar says of the texts, or "unchecked": SENTENCE;
 * beside an error, too.
 *
 * The vocabulary is the 256 bytes and an end. A walk takes an allowed id at random; when a text has
 * become long it prefers what ends things. A walk that does not end gives null. */
#include "base/clock.h"
#include "base/rng.h"
#include "sample/grammar.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_VOCAB = 257,
    END = 256,
    LONG_TEXT = 160,  /* bytes from which on a walk looks for the end */
    GIVE_UP = 100000, /* bytes */
    MATCHER_BYTES = 64 << 20
};

static const char closing[] = "\"}]0e.ul"; /* in this order; letters end true, null, false */

typedef struct walker {
    pith_token_trie *trie;
    pith_matcher *matcher;
    pith_rng rng;
    char *text;
    size_t size;
    bool is_hint[256]; /* bytes of the request: a pattern may need them */
} walker;

static bool is_allowed(const uint32_t *mask, int32_t id) {
    return mask[id / 32] >> (id % 32) & 1;
}

static int32_t choose(walker *w, const uint32_t *mask) {
    int32_t ids[N_VOCAB], n = 0;
    bool is_long = w->size > LONG_TEXT;
    if (is_long && is_allowed(mask, END)) return END;
    for (size_t i = 0; is_long && i < sizeof closing - 1; i++) {
        if (is_allowed(mask, (uint8_t)closing[i])) return (uint8_t)closing[i];
    }
    for (int round = 0; round < 3 && n == 0; round++) {
        for (int32_t id = 0; id < N_VOCAB; id++) {
            bool wanted = round == 0   ? is_long && id < END && w->is_hint[id]
                          : round == 1 ? id < 128 || id == END || pith_rng_next(&w->rng) % 8 == 0
                                       : true;
            if (wanted && is_allowed(mask, id)) ids[n++] = id;
        }
    }
    bool can_end = is_allowed(mask, END) && pith_rng_next(&w->rng) % 4 == 0;
    return n == 0 ? -1 : can_end ? END : ids[pith_rng_next(&w->rng) % (uint32_t)n];
}

/* false: the walk did not end. */
static bool walk(walker *w) {
    pith_matcher_reset(w->matcher);
    w->size = 0;
    while (w->size < GIVE_UP) {
        int32_t id = choose(w, pith_matcher_mask(w->matcher));
        if (id < 0 || !pith_matcher_accept(w->matcher, id)) return false;
        if (id == END) return true;
        w->text[w->size++] = (char)id;
    }
    return false;
}

static bool is_text_allowed(walker *w, const char *text, size_t size) {
    pith_matcher_reset(w->matcher);
    for (size_t i = 0; i < size; i++) {
        if (!pith_matcher_accept(w->matcher, (uint8_t)text[i])) return false;
    }
    return pith_matcher_may_end(w->matcher);
}

static json_t *answer_error(const pith_error *error) {
    return json_pack("{s:s, s:i}", "error", error->text, "status", (int)error->status);
}

static json_t *answer(walker *w, const json_t *request, double compile_ms) {
    json_t *samples = json_array(), *allowed = json_array();
    json_int_t n = json_integer_value(json_object_get(request, "samples"));
    const json_t *texts = json_object_get(request, "texts");
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(request, "seed"));
    pith_rng_init(&w->rng, seed);
    for (json_int_t i = 0; i < n; i++) {
        bool ended = walk(w);
        json_t *text = ended ? json_stringn(w->text, w->size) : json_null();
        if (text == NULL) text = json_string("(ill-formed UTF-8)");
        json_array_append_new(samples, text);
    }
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        bool good = is_text_allowed(w, json_string_value(text), json_string_length(text));
        json_array_append_new(allowed, json_boolean(good));
    }
    const char *failed = pith_matcher_failed(w->matcher);
    return json_pack("{s:o, s:o, s:f, s:s*}", "samples", samples, "allowed", allowed, "compile_ms",
                     compile_ms, "failed", failed);
}

static pith_status compile_tools(const json_t *tools, pith_grammar **out, pith_error *error) {
    const char *choice = json_string_value(json_object_get(tools, "choice"));
    const char *name = json_string_value(json_object_get(tools, "format"));
    const pith_tool_format *format = NULL;
    for (size_t i = 0; format == NULL && pith_tool_format_get(i) != NULL; i++)
        if (name && strcmp(pith_tool_format_get(i)->name, name) == 0)
            format = pith_tool_format_get(i);
    if (format == NULL) return pith_fail(error, PITH_ERROR_UNSUPPORTED, "no such format");
    char *dump = json_dumps(json_object_get(tools, "list"), 0);
    pith_tool_rules rules = {.format = format,
                             .choice = choice == NULL                    ? PITH_TOOLS_AUTO
                                       : strcmp(choice, "required") == 0 ? PITH_TOOLS_REQUIRED
                                                                         : PITH_TOOLS_NONE,
                             .only = json_string_value(json_object_get(tools, "only")),
                             .parallel = json_is_true(json_object_get(tools, "parallel"))};
    pith_status status = pith_grammar_from_tools(dump, strlen(dump), &rules, out, error);
    free(dump);
    return status;
}

static pith_status compile(const json_t *request, pith_grammar **out, pith_error *error) {
    const json_t *schema = json_object_get(request, "schema");
    const json_t *text = json_object_get(request, "schema_text");
    const json_t *regex = json_object_get(request, "regex");
    const json_t *tools = json_object_get(request, "tools");
    if (tools != NULL) return compile_tools(tools, out, error);
    if (regex != NULL) {
        return pith_grammar_from_regex(json_string_value(regex), json_string_length(regex), out,
                                       error);
    }
    if (text != NULL) {
        return pith_grammar_from_schema(json_string_value(text), json_string_length(text), out,
                                        error);
    }
    char *dump = json_dumps(schema, JSON_ENCODE_ANY);
    pith_status status = pith_grammar_from_schema(dump, strlen(dump), out, error);
    free(dump);
    return status;
}

/* Adds to the answer what a check says of the texts, and of what was written. */
static void add_checked(json_t *result, const json_t *request) {
    pith_schema_check *check;
    pith_error error = {0};
    json_t *schema = json_object_get(request, "schema");
    const char *const keys[] = {"texts", "samples"}, *const names[] = {"valid", "valid_samples"};
    if (schema == NULL) return;
    if (pith_schema_check_new(schema, &check, &error) != PITH_OK) {
        json_object_set_new(result, "unchecked", json_string(error.text));
        return;
    }
    for (int k = 0; k < 2; k++) {
        const json_t *texts = json_object_get(k == 0 ? request : result, keys[k]);
        json_t *all = json_array();
        for (size_t i = 0; i < json_array_size(texts); i++) {
            const json_t *text = json_array_get(texts, i);
            bool valid = false;
            (void)pith_schema_check_text(
                check, (pith_span){json_string_value(text), json_string_length(text)}, &valid);
            json_array_append_new(all, json_boolean(valid));
        }
        json_object_set_new(result, names[k], all);
    }
    pith_schema_check_free(check);
}

static json_t *handle(walker *w, const json_t *request) {
    pith_grammar *grammar = NULL;
    pith_error error = {0};
    uint64_t start = pith_clock_ns();
    if (compile(request, &grammar, &error) != PITH_OK) return answer_error(&error);
    double ms = (double)(pith_clock_ns() - start) / 1e6;
    json_t *result = NULL;
    if (pith_matcher_new(grammar, w->trie, MATCHER_BYTES, &w->matcher, &error) == PITH_OK) {
        result = answer(w, request, ms);
    } else {
        result = answer_error(&error);
    }
    pith_matcher_free(w->matcher);
    w->matcher = NULL;
    pith_grammar_drop(grammar);
    return result;
}

static bool make_trie(pith_token_trie **out) {
    static char bytes[256];
    pith_span pieces[N_VOCAB];
    bool is_end[N_VOCAB] = {false};
    pith_error error;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        pieces[i] = (pith_span){&bytes[i], 1};
    }
    pieces[END] = (pith_span){0};
    is_end[END] = true;
    return pith_token_trie_new(pieces, is_end, N_VOCAB, out, &error) == PITH_OK;
}

/* The next line of stdin, to be freed; NULL at the end. */
static char *read_line(void) {
    size_t size = 0, capacity = 1 << 16;
    char *line = malloc(capacity);
    while (line != NULL && fgets(line + size, (int)(capacity - size), stdin) != NULL) {
        size += strlen(line + size);
        if (size > 0 && line[size - 1] == '\n') return line;
        char *grown = realloc(line, capacity *= 2);
        if (grown == NULL) free(line);
        line = grown;
    }
    if (size > 0) return line;
    free(line);
    return NULL;
}

int main(void) {
    walker w = {.text = malloc(GIVE_UP)};
    char *line;
    if (w.text == NULL || !make_trie(&w.trie)) return 1;
    while ((line = read_line()) != NULL) {
        json_error_t reason;
        json_t *request = json_loads(line, JSON_ALLOW_NUL, &reason);
        if (request == NULL) {
            fprintf(stderr, "not JSON: %s\n", reason.text);
            return 2;
        }
        memset(w.is_hint, 0, sizeof w.is_hint);
        for (const char *c = line; *c; c++) w.is_hint[(uint8_t)*c] = true;
        json_t *result = handle(&w, request);
        add_checked(result, request);
        char *dump = json_dumps(result, JSON_ENCODE_ANY);
        puts(dump);
        fflush(stdout);
        free(dump);
        json_decref(result);
        json_decref(request);
        free(line);
    }
    free(w.text);
    pith_token_trie_free(w.trie);
    return 0;
}
