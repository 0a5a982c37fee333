/* SPDX-License-Identifier: Apache-2.0
 * Whole files and streams in, ids of texts, rendered chats and what they share.
 * Invariant: nothing is read without a limit, and what is refused is named with the limit. */
#include "base/memory.h"
#include "pith/cli.h"

#include <errno.h>
#include <string.h>

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
    if (strcmp(path, "-") == 0)
        return pith_cli_read_all(stdin, "standard input", limit, out, error);
    FILE *file = pith_cli_open_file(path, "rb");
    if (!file) {
        pith_fail(error, PITH_ERROR_IO, "%s could not be opened: %s", path, strerror(errno));
        return false;
    }
    bool ok = pith_cli_read_all(file, path, limit, out, error);
    fclose(file);
    return ok;
}

bool pith_cli_read_text(const char *path, size_t limit, pith_buffer *out, pith_error *error) {
    static const char mark[] = "\xEF\xBB\xBF";
    const size_t n = sizeof mark - 1;
    if (!pith_cli_read_file(path, limit, out, error)) return false;
    if (out->size < n || memcmp(out->data, mark, n) != 0) return true;
    memmove(out->data, out->data + n, out->size - n);
    out->size -= n;
    return true;
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

void pith_cli_release_json(char *text) {
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    release(text);
}

pith_prompt *pith_cli_render_chat(const pith_model *model, json_t *messages, pith_error *error) {
    return pith_cli_render_tools(model, messages, NULL, error);
}

char *pith_cli_context_json(json_t *messages, json_t *tools, pith_error *error) {
    pith_cli_json_failed(); /* what failed before was told: the messages are whole */
    json_t *context = json_pack("{s:O, s:b, s:O*}", "messages", messages, "add_generation_prompt",
                                1, "tools", tools);
    char *json = context ? json_dumps(context, JSON_COMPACT) : NULL;
    json_decref(context);
    if (!pith_cli_json_failed() && json) return json;
    pith_cli_release_json(json);
    pith_fail_memory(error, "the conversation", 0);
    return NULL;
}

pith_prompt *pith_cli_render_tools(const pith_model *model, json_t *messages, json_t *tools,
                                   pith_error *error) {
    pith_prompt *prompt = NULL;
    char *json = pith_cli_context_json(messages, tools, error);
    if (!json) return NULL;
    pith_prompt_render(model, NULL, json, &prompt, error);
    pith_cli_release_json(json);
    return prompt;
}

/* The leading system messages, and a user's text that begins otherwise than the first one does. */
static json_t *other_messages(json_t *messages) {
    json_t *list = json_array();
    size_t i = 0;
    for (; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        if (!role || strcmp(role, "system") != 0) break;
        json_array_append(list, message);
    }
    const char *first = json_string_value(json_object_get(json_array_get(messages, i), "content"));
    const char *other = first && first[strspn(first, " \t\r\n")] == '?' ? "!" : "?";
    pith_cli_add_message(list, "user", pith_span_of(other));
    return list;
}

/* Of bytes: a longer text of a user may be what prompts share, such as a document. */
enum { SHORT_TEXT = 1024 };

static bool has_long_text(json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        if (role && strcmp(role, "user") == 0 &&
            json_string_length(json_object_get(message, "content")) > SHORT_TEXT)
            return true;
    }
    return false;
}

size_t pith_cli_shared_ids(const pith_model *model, json_t *messages, const int32_t *ids,
                           size_t n_ids) {
    pith_error error;
    size_t size = 0, n = 0, same = 0;
    if (has_long_text(messages)) return 0;
    json_t *list = other_messages(messages);
    pith_prompt *prompt = pith_cli_render_chat(model, list, &error);
    json_decref(list);
    if (!prompt) return 0;
    pith_prompt_text(prompt, &size);
    int32_t *other = pith_alloc_array(size + 2, sizeof *other);
    if (other && pith_prompt_tokenize(model, prompt, other, size + 2, &n, &error) == PITH_OK)
        while (same < n && same < n_ids && other[same] == ids[same]) same++;
    pith_free(other);
    pith_prompt_free(prompt);
    return same;
}

/* The digits at text[*at]; false when there are none or the number is no token id. */
static bool read_id(const char *text, size_t size, size_t *at, int32_t *out) {
    size_t first = *at;
    int64_t id = 0;
    while (*at < size && text[*at] >= '0' && text[*at] <= '9' && id <= INT32_MAX)
        id = id * 10 + (text[(*at)++] - '0');
    *out = (int32_t)id;
    return *at > first && id <= INT32_MAX;
}

int32_t *pith_cli_parse_ids(const char *text, size_t size, size_t *n_ids, pith_error *error) {
    int32_t *ids = pith_alloc_array(size / 2 + 1, sizeof *ids);
    *n_ids = 0;
    if (!ids) {
        pith_fail_memory(error, "token ids", size);
        return NULL;
    }
    for (size_t at = 0; at < size;) {
        size_t first = at;
        if (text[at] && strchr(", \t\r\n", text[at])) {
            at++;
        } else if (read_id(text, size, &at, &ids[*n_ids])) {
            ++*n_ids;
        } else {
            int shown = size - first < 10 ? (int)(size - first) : 10;
            pith_fail(error, PITH_ERROR_ARGUMENT,
                      "token ids are whole numbers up to %d, but at byte %zu stands '%.*s'",
                      INT32_MAX, first, shown, text + first);
            pith_free(ids);
            return NULL;
        }
    }
    return ids;
}
