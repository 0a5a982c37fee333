/* SPDX-License-Identifier: Apache-2.0
 * Text and JSON on stdout.
 * Invariant: a JSON string is well-formed whatever the bytes were, JSON is printed whole or not at
 * all, and text from a file cannot steer the terminal. Input is input.c. */
#include "base/memory.h"
#include "pith/cli.h"

#include <errno.h>
#include <string.h>

int pith_cli_finish(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return PITH_EXIT_OK;
    return pith_cli_fail_text("standard output could not be written: %s", strerror(errno));
}

/* jansson's lists and objects swallow a member that could not be made. So what was denied is kept
 * here, where the finished text is asked for; the program's, not the library's. */
static bool json_lacks_memory;

static void *json_alloc(size_t size) {
    void *memory = pith_alloc(size);
    if (!memory) json_lacks_memory = true;
    return memory;
}

void pith_cli_json_watch(void) {
    json_set_alloc_funcs(json_alloc, pith_free);
}

bool pith_cli_json_failed(void) {
    bool failed = json_lacks_memory;
    json_lacks_memory = false;
    return failed;
}

int pith_cli_print_json(json_t *json) {
    if (pith_cli_json_failed() || !json) {
        json_decref(json);
        return pith_cli_fail_text("out of memory for the JSON; choose smaller limits");
    }
    int bad = json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY);
    json_decref(json);
    fputc('\n', stdout);
    int code = pith_cli_finish();
    return bad && code == PITH_EXIT_OK
               ? pith_cli_fail_text("the result could not be written as JSON")
               : code;
}

static void append_well_formed(pith_buffer *out, const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t n = pith_utf8_decode(text + at, size - at, &code);
        if (code == PITH_UTF8_INVALID)
            pith_buffer_append_text(out, "\xEF\xBF\xBD");
        else
            pith_buffer_append(out, text + at, n);
        at += n;
    }
}

json_t *pith_cli_json_text(const char *text, size_t size) {
    pith_buffer clean = {0};
    append_well_formed(&clean, text, size);
    if (clean.failed) json_lacks_memory = true;
    json_t *json = clean.failed ? NULL : json_stringn(clean.data ? clean.data : "", clean.size);
    pith_buffer_deinit(&clean);
    return json;
}

bool pith_cli_add_message(json_t *messages, const char *role, pith_span text) {
    json_t *content = pith_cli_json_text(text.data, text.size);
    json_t *message = content ? json_pack("{s:s, s:o}", "role", role, "content", content) : NULL;
    return json_array_append_new(messages, message) == 0;
}

json_t *pith_cli_json_string(const char *text) {
    return pith_cli_json_text(text, strlen(text));
}

void pith_cli_json_set(json_t *object, const char *key, json_t *value) {
    pith_buffer clean = {0};
    append_well_formed(&clean, key, strlen(key));
    if (clean.failed) json_lacks_memory = true;
    json_object_set_new(object, clean.data ? clean.data : "", value);
    pith_buffer_deinit(&clean);
}

json_t *pith_cli_json_ids(const int32_t *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

void pith_cli_print_clean(FILE *out, const char *text, size_t size, size_t limit) {
    size_t at = 0;
    while (at < size && at < limit) {
        uint32_t code;
        size_t n = pith_utf8_decode(text + at, size - at, &code);
        if (code == '\n')
            fputs("\\n", out);
        else if (code == PITH_UTF8_INVALID || code < 0x20 || (code >= 0x7F && code < 0xA0))
            for (size_t i = 0; i < n; i++) fprintf(out, "\\x%02x", (unsigned char)text[at + i]);
        else
            fwrite(text + at, 1, n, out);
        at += n;
    }
    if (at < size) fprintf(out, "... (%zu bytes)", size);
}
