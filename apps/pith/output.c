/* SPDX-License-Identifier: Apache-2.0
 * JSON and text on stdout, whole files and streams in, ids of texts and chats. */
#include "base/memory.h"
#include "pith/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pith_cli_finish(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return PITH_EXIT_OK;
    return pith_cli_fail_text("standard output could not be written: %s", strerror(errno));
}

int pith_cli_print_json(json_t *json) {
    if (!json) return pith_cli_fail_text("out of memory while writing JSON");
    int bad = json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY);
    json_decref(json);
    fputc('\n', stdout);
    int code = pith_cli_finish();
    return bad && code == PITH_EXIT_OK
               ? pith_cli_fail_text("the result could not be written as JSON")
               : code;
}

json_t *pith_cli_json_text(const char *text, size_t size) {
    pith_buffer clean = {0};
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t n = pith_utf8_decode(text + at, size - at, &code);
        if (code == PITH_UTF8_INVALID)
            pith_buffer_append_text(&clean, "\xEF\xBF\xBD");
        else
            pith_buffer_append(&clean, text + at, n);
        at += n;
    }
    json_t *json = clean.failed ? NULL : json_stringn(clean.data ? clean.data : "", clean.size);
    pith_buffer_deinit(&clean);
    return json;
}

bool pith_cli_read_all(FILE *file, const char *name, size_t limit, pith_buffer *out,
                       pith_error *error) {
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        if (out->size + n > limit) {
            pith_fail(error, PITH_ERROR_LIMIT, "%s is larger than %zu bytes, the limit", name,
                      limit);
            return false;
        }
        pith_buffer_append(out, block, n);
    }
    if (ferror(file)) {
        pith_fail(error, PITH_ERROR_IO, "%s could not be read: %s", name, strerror(errno));
        return false;
    }
    if (out->failed) pith_fail_memory(error, name, out->size);
    return !out->failed;
}

bool pith_cli_read_file(const char *path, size_t limit, pith_buffer *out, pith_error *error) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        pith_fail(error, PITH_ERROR_IO, "%s could not be opened: %s", path, strerror(errno));
        return false;
    }
    bool ok = pith_cli_read_all(file, path, limit, out, error);
    fclose(file);
    return ok;
}

int32_t *pith_cli_tokenize(const pith_model *model, const char *text, size_t size, unsigned flags,
                           size_t *n_ids, pith_error *error) {
    size_t capacity = size + 2;
    int32_t *ids = pith_alloc_array(capacity, sizeof *ids);
    if (!ids) {
        pith_fail_memory(error, "token ids", capacity * sizeof *ids);
        return NULL;
    }
    if (pith_tokenize(model, text, size, flags, ids, capacity, n_ids, error) != PITH_OK) {
        pith_free(ids);
        return NULL;
    }
    return ids;
}

static int32_t *prompt_ids(const pith_model *model, const pith_prompt *prompt, size_t *n_ids,
                           pith_error *error) {
    size_t size;
    pith_prompt_text(prompt, &size);
    int32_t *ids = pith_alloc_array(size + 2, sizeof *ids);
    if (!ids) {
        pith_fail_memory(error, "token ids", (size + 2) * sizeof *ids);
        return NULL;
    }
    if (pith_prompt_tokenize(model, prompt, ids, size + 2, n_ids, error) != PITH_OK) {
        pith_free(ids);
        return NULL;
    }
    return ids;
}

int32_t *pith_cli_chat_ids(const pith_model *model, json_t *messages, size_t *n_ids,
                           pith_error *error) {
    json_t *context = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *text = context ? json_dumps(context, JSON_COMPACT) : NULL;
    json_decref(context);
    if (!text) {
        pith_fail_memory(error, "the conversation", 0);
        return NULL;
    }
    pith_prompt *prompt = NULL;
    int32_t *ids = NULL;
    if (pith_prompt_render(model, NULL, text, &prompt, error) == PITH_OK)
        ids = prompt_ids(model, prompt, n_ids, error);
    pith_prompt_free(prompt);
    free(text);
    return ids;
}

int32_t *pith_cli_parse_ids(const char *text, size_t size, size_t *n_ids, pith_error *error) {
    int32_t *ids = pith_alloc_array(size / 2 + 1, sizeof *ids);
    if (!ids) {
        pith_fail_memory(error, "token ids", size);
        return NULL;
    }
    *n_ids = 0;
    for (size_t at = 0; at < size;) {
        if (strchr(", \t\r\n", text[at]) && text[at]) {
            at++;
            continue;
        }
        size_t first = at;
        int64_t id = 0;
        while (at < size && text[at] >= '0' && text[at] <= '9' && id <= INT32_MAX)
            id = id * 10 + (text[at++] - '0');
        if (at == first || id > INT32_MAX) {
            pith_fail(error, PITH_ERROR_ARGUMENT,
                      "token ids are whole numbers, but at byte %zu stands '%.10s'", first,
                      text + first);
            pith_free(ids);
            return NULL;
        }
        ids[(*n_ids)++] = (int32_t)id;
    }
    return ids;
}
