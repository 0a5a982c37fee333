/* SPDX-License-Identifier: Apache-2.0
 * The hub (huggingface.co, or what HF_ENDPOINT names): which GGUF files a repository holds, where
 * they are fetched, who gets the token. The list is that of /api/models/REPO/tree/main, in pages;
 * the SHA-256 of a large file is its LFS object's name (huggingface.co/docs/hub).
 * Invariant: names from the list are paths within the repository, or left out. */
#include "pith/pull.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

char *pith_cli_hub_endpoint(pith_error *error) {
    static const char usual[] = "https://huggingface.co";
    char *endpoint = pith_cli_variable("HF_ENDPOINT");
    if (!endpoint) endpoint = pith_copy_text(usual, sizeof usual - 1);
    if (!endpoint) {
        pith_fail_memory(error, "an address", sizeof usual);
        return NULL;
    }
    for (size_t n = strlen(endpoint); n > 0 && endpoint[n - 1] == '/';) endpoint[--n] = 0;
    bool is_web = strncmp(endpoint, "https://", 8) == 0 || strncmp(endpoint, "http://", 7) == 0;
    if (is_web && !strchr(endpoint, '@')) return endpoint;
    pith_fail(error, PITH_ERROR_ARGUMENT,
              "HF_ENDPOINT must begin with https:// or http:// and hold no password");
    pith_free(endpoint);
    return NULL;
}

/* Whether what is sent to an origin can be read on the way. */
static bool is_private(const char *origin) {
    static const char *const places[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    if (strncmp(origin, "https://", 8) == 0) return true;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t n = strlen(places[i]);
        if (strncmp(origin, places[i], n) == 0 && (!origin[n] || origin[n] == ':')) return true;
    }
    return false;
}

char *pith_cli_hub_token(const char *url) {
    char origin[300], hub[300];
    char *endpoint = pith_cli_hub_endpoint(NULL);
    pith_cli_url_origin(url, origin, sizeof origin);
    pith_cli_url_origin(endpoint ? endpoint : "", hub, sizeof hub);
    pith_free(endpoint);
    char *token = origin[0] && strcmp(origin, hub) == 0 ? pith_cli_variable("HF_TOKEN") : NULL;
    if (!token) return NULL;
    bool usable = token[strcspn(token, "\r\n")] == 0;
    if (!usable) fputs("note: HF_TOKEN holds a line break and is not used\n", stderr);
    if (usable && !is_private(origin))
        fprintf(stderr, "note: HF_TOKEN is not sent to %s: others could read it on the way\n", hub);
    if (usable && is_private(origin)) return token;
    pith_free(token);
    return NULL;
}

/* Names of files may hold what an address may not. */
static void append_escaped(pith_buffer *out, const char *path) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (; *path; path++) {
        if (strchr(plain, *path))
            pith_buffer_append(out, path, 1);
        else
            pith_buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)*path);
    }
}

char *pith_cli_hub_address(const char *endpoint, const char *repo, const char *path) {
    pith_buffer url = {0};
    pith_buffer_append_format(&url, "%s/%s/resolve/main/", endpoint, repo);
    append_escaped(&url, path);
    char *text = url.failed ? NULL : pith_copy_text(url.data, url.size);
    pith_buffer_deinit(&url);
    return text;
}

void pith_cli_hub_list_deinit(pith_cli_hub_list *list) {
    for (size_t i = 0; i < list->n; i++) pith_free(list->items[i].path);
    pith_free(list->items);
    *list = (pith_cli_hub_list){0};
}

#if PITH_WITH_CURL

#include "pith/fetch.h"

enum { PAGE_LIMIT = 20, PAGE_BYTES = 16 << 20, FILES_LIMIT = 20000 };

static bool add_file(pith_cli_hub_list *list, const json_t *entry) {
    const char *path = json_string_value(json_object_get(entry, "path"));
    const json_t *lfs = json_object_get(entry, "lfs");
    const char *digest = json_string_value(json_object_get(lfs, "oid"));
    json_int_t bytes = json_integer_value(json_object_get(lfs ? lfs : entry, "size"));
    const char *type = json_string_value(json_object_get(entry, "type"));
    if (!path || (type && strcmp(type, "file") != 0) || !pith_cli_is_safe_path(path)) return true;
    if (list->n >= FILES_LIMIT) return true;
    pith_cli_hub_file *grown = pith_realloc(list->items, (list->n + 1) * sizeof *grown);
    if (!grown) return false;
    list->items = grown;
    pith_cli_hub_file *file = &grown[list->n];
    *file = (pith_cli_hub_file){.path = pith_copy_text(path, strlen(path)),
                                .bytes = bytes > 0 ? (uint64_t)bytes : 0};
    if (!file->path) return false;
    if (digest && pith_cli_is_digest(digest)) memcpy(file->digest, digest, 65);
    list->n++;
    return true;
}

static pith_status add_page(pith_cli_hub_list *list, const pith_buffer *text, const char *repo,
                            pith_error *error) {
    json_t *json = json_loadb(text->data ? text->data : "", text->size, 0, NULL);
    json_t *entry;
    size_t i;
    bool whole = true;
    if (!json_is_array(json)) {
        json_decref(json);
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "the server's list of files of %s is no list; is HF_ENDPOINT a hub?",
                         repo);
    }
    json_array_foreach(json, i, entry) whole = whole && add_file(list, entry);
    json_decref(json);
    return whole ? PITH_OK : pith_fail_memory(error, "a list of files", 0);
}

static int compare_files(const void *a, const void *b) {
    const pith_cli_hub_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static pith_status fetch_pages(const char *first, const char *repo, int32_t timeout,
                               pith_cli_hub_list *out, pith_error *error) {
    char *token = pith_cli_hub_token(first), origin[300];
    char url[1024];
    pith_buffer text = {0};
    pith_status status = PITH_OK;
    pith_cli_answer answer = {0};
    pith_cli_url_origin(first, origin, sizeof origin);
    snprintf(url, sizeof url, "%s", first);
    for (int page = 0; page < PAGE_LIMIT && status == PITH_OK && url[0]; page++) {
        pith_cli_request request = {.url = url, .token = token, .timeout = timeout};
        status = pith_cli_fetch_text(&request, PAGE_BYTES, &text, &answer, error);
        if (status == PITH_OK) status = add_page(out, &text, repo, error);
        size_t n = strlen(origin); /* the next page is the same host's, or none */
        bool same = strncmp(answer.next, origin, n) == 0 && answer.next[n] == '/';
        memcpy(url, answer.next, sizeof url);
        if (!same) url[0] = 0;
    }
    pith_buffer_deinit(&text);
    pith_free(token);
    return status;
}

pith_status pith_cli_hub_list_fetch(const char *repo, int32_t timeout, pith_cli_hub_list *out,
                                    pith_error *error) {
    char *endpoint = pith_cli_hub_endpoint(error);
    pith_buffer url = {0};
    *out = (pith_cli_hub_list){0};
    if (!endpoint) return PITH_ERROR_ARGUMENT;
    pith_buffer_append_format(&url, "%s/api/models/%s/tree/main?recursive=true", endpoint, repo);
    pith_free(endpoint);
    pith_status status = url.failed || url.size >= 1024
                             ? pith_fail(error, PITH_ERROR_LIMIT, "HF_ENDPOINT is too long")
                             : fetch_pages(url.data, repo, timeout, out, error);
    pith_buffer_deinit(&url);
    if (status == PITH_OK && out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, compare_files);
    if (status) pith_cli_hub_list_deinit(out);
    return status;
}

#endif
