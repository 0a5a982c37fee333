/* SPDX-License-Identifier: Apache-2.0
 * GET /api/tags, /api/ps, /api/version and POST /api/show: which models there are, as Ollama tells
 * it. What is told of a model comes from its file's header; paths are not told, and digests are
 * left empty, for no file is read whole. */
#define _DEFAULT_SOURCE /* struct stat's times under -std=c11 */

#include "server/ollama.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { VALUE_LIMIT = 256, LIST_ITEMS = 4, MOST_TYPES = 32 };

/* ---- Of one file ---- */

/* The type that most bytes of the weights have. */
static const char *main_type(const pith_file *file) {
    struct {
        const char *name;
        uint64_t bytes;
    } types[MOST_TYPES];
    size_t n = 0, best = 0;
    pith_file_tensor tensor;
    for (uint64_t i = 0; pith_file_tensor_at(file, i, &tensor); i++) {
        size_t k = 0;
        while (k < n && strcmp(types[k].name, tensor.type) != 0) k++;
        if (k == MOST_TYPES) continue;
        if (k == n) {
            types[n].name = tensor.type;
            types[n++].bytes = 0;
        }
        types[k].bytes += tensor.bytes;
        if (types[k].bytes > types[best].bytes) best = k;
    }
    return n > 0 ? types[best].name : "";
}

static void write_count(uint64_t n, char out[32]) {
    if (n >= 1000000000u)
        snprintf(out, 32, "%.1fB", (double)n * 1e-9);
    else
        snprintf(out, 32, "%.2fM", (double)n * 1e-6);
}

static json_t *details_of(const pith_file *file) {
    pith_file_summary summary = pith_file_summarize(file);
    char count[32];
    write_count(summary.n_parameters, count);
    return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "gguf",
                     "family", summary.architecture, "families", summary.architecture,
                     "parameter_size", count, "quantization_level", main_type(file));
}

json_t *pith_ollama_details(const char *path, json_int_t *bytes) {
    pith_file *file = NULL;
    *bytes = 0;
    if (pith_file_open(path, &file, NULL) != PITH_OK) return NULL;
    *bytes = (json_int_t)pith_file_summarize(file).total_bytes;
    json_t *details = details_of(file);
    pith_file_close(file);
    return details;
}

static void write_changed(const char *path, char out[40]) {
    struct stat facts;
    pith_ollama_time(stat(path, &facts) == 0 ? (double)facts.st_mtime : 0, out);
}

/* ---- Lists ---- */

typedef struct listing {
    json_t *names; /* tags: filled under the pool's lock, described without it */
    json_t *running;
} listing;

static bool add_name(void *user, const pith_served_info *info) {
    json_array_append_new(((listing *)user)->names, pith_json_text(info->name, strlen(info->name)));
    return true;
}

static json_t *describe(pith_models *models, const char *name) {
    char changed[40];
    json_int_t bytes = 0;
    char *path = pith_models_path(models, name);
    json_t *details = path ? pith_ollama_details(path, &bytes) : NULL, *one = NULL;
    if (details) {
        write_changed(path, changed);
        one = json_pack("{s:s, s:s, s:s, s:I, s:s, s:o}", "name", name, "model", name,
                        "modified_at", changed, "size", bytes, "digest", "", "details", details);
    }
    pith_free(path);
    return one;
}

void pith_handle_ollama_tags(pith_exchange *exchange) {
    pith_models *models = pith_exchange_server(exchange)->models;
    listing l = {.names = json_array()};
    json_t *list = json_array(), *name, *one;
    size_t i;
    pith_models_each(models, add_name, &l);
    json_array_foreach(l.names, i, name) {
        if ((one = describe(models, json_string_value(name)))) json_array_append_new(list, one);
    }
    json_decref(l.names);
    pith_exchange_reply(exchange, 200, json_pack("{s:o}", "models", list));
}

static bool add_running(void *user, const pith_served_info *info) {
    char expires[40];
    if (info->state != PITH_SERVED_READY) return true;
    double left = info->keep_seconds < 0 ? 3.15e9 : (double)info->keep_seconds - info->idle_seconds;
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    pith_ollama_time((double)now.tv_sec + (left > 0 ? left : 0), expires);
    json_array_append_new(((listing *)user)->running,
                          json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:i}", "name", info->name,
                                    "model", info->name, "size", (json_int_t)info->bytes, "digest",
                                    "", "expires_at", expires, "size_vram", (json_int_t)0,
                                    "context_length", (int)info->n_ctx));
    return true;
}

void pith_handle_ollama_ps(pith_exchange *exchange) {
    pith_models *models = pith_exchange_server(exchange)->models;
    listing l = {.running = json_array()};
    json_t *one;
    size_t i;
    pith_models_each_known(models, add_running, &l);
    json_array_foreach(l.running, i, one) {
        json_int_t bytes;
        char *path = pith_models_path(models, json_string_value(json_object_get(one, "name")));
        json_t *details = path ? pith_ollama_details(path, &bytes) : NULL;
        json_object_set_new(one, "details", details ? details : json_object());
        pith_free(path);
    }
    pith_exchange_reply(exchange, 200, json_pack("{s:o}", "models", l.running));
}

void pith_handle_ollama_version(pith_exchange *exchange) {
    pith_exchange_reply(exchange, 200, json_pack("{s:s}", "version", pith_version()));
}

/* ---- One model ---- */

/* A number stays one. */
static json_t *value_json(const pith_file *file, uint64_t index) {
    char text[VALUE_LIMIT], *end = NULL;
    const char *type = pith_file_value_type(file, index);
    size_t size = pith_file_value_text(file, index, LIST_ITEMS, text, sizeof text);
    if (size >= sizeof text) size = sizeof text - 1;
    unsigned long long whole = type[0] == 'u' ? strtoull(text, &end, 10) : 0;
    if (end && *end == 0 && end > text) /* JSON's readers know no whole number above 2^63 */
        return whole <= INT64_MAX ? json_integer((json_int_t)whole) : json_real((double)whole);
    long long with_sign = type[0] == 'i' ? strtoll(text, &end, 10) : 0;
    if (type[0] == 'i' && *end == 0 && end > text) return json_integer(with_sign);
    double number = type[0] == 'f' ? strtod(text, &end) : 0;
    if (type[0] == 'f' && *end == 0 && end > text) return json_real(number);
    if (strcmp(type, "bool") == 0) return json_boolean(strcmp(text, "true") == 0);
    return pith_json_text(text, size);
}

/* Lists of the vocabulary are told as null, as Ollama does without "verbose". */
static json_t *keys_of(const pith_file *file) {
    json_t *keys = json_object();
    const char *name;
    for (uint64_t i = 0; (name = pith_file_key(file, i)); i++) {
        bool is_list = strncmp(pith_file_value_type(file, i), "arr", 3) == 0;
        if (strcmp(name, "tokenizer.chat_template") == 0) continue;
        json_object_set_new(keys, name, is_list ? json_null() : value_json(file, i));
    }
    json_object_set_new(keys, "general.parameter_count",
                        json_integer((json_int_t)pith_file_summarize(file).n_parameters));
    return keys;
}

/* The whole text of a key; "" without it. Released by the caller; NULL without memory. */
static char *text_of(const pith_file *file, const char *key) {
    const char *name;
    for (uint64_t i = 0; (name = pith_file_key(file, i)); i++) {
        if (strcmp(name, key) != 0) continue;
        size_t size = pith_file_value_text(file, i, LIST_ITEMS, NULL, 0);
        char *text = pith_alloc(size + 1);
        if (text) pith_file_value_text(file, i, LIST_ITEMS, text, size + 1);
        return text;
    }
    return pith_copy_text("", 0);
}

static json_t *abilities_of(const char *template_text) {
    json_t *list = json_pack("[s]", "completion");
    if (strstr(template_text, "tools")) json_array_append_new(list, json_string("tools"));
    if (strstr(template_text, "</think>")) json_array_append_new(list, json_string("thinking"));
    json_array_append_new(list, json_string("embedding"));
    return list;
}

static json_t *describe_whole(const pith_file *file, const char *path) {
    char changed[40];
    char *text = text_of(file, "tokenizer.chat_template"),
         *licence = text_of(file, "general.license");
    json_t *body = NULL;
    write_changed(path, changed);
    if (text && licence)
        body =
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "modelfile", "", "parameters", "",
                      "license", pith_json_text(licence, strlen(licence)), "template",
                      pith_json_text(text, strlen(text)), "details", details_of(file), "model_info",
                      keys_of(file), "capabilities", abilities_of(text), "modified_at", changed);
    pith_free(text);
    pith_free(licence);
    return body;
}

static void show(pith_exchange *exchange, const char *name) {
    static const pith_http_error unknown = {404, "invalid_request_error", "model_not_found",
                                            "model",
                                            "there is no model of this name; GET /api/tags lists "
                                            "them"};
    pith_error error = {0};
    pith_file *file = NULL;
    char *path = pith_models_path(pith_exchange_server(exchange)->models, name);
    if (!path) {
        pith_exchange_fail(exchange, &unknown);
    } else if (pith_file_open(path, &file, &error) != PITH_OK) {
        const pith_http_error broken = {503, "server_error", "model_failed", "model",
                                        "the model's file cannot be read"};
        pith_exchange_fail(exchange, &broken);
    } else {
        pith_exchange_reply(exchange, 200, describe_whole(file, path));
    }
    pith_file_close(file);
    pith_free(path);
}

void pith_handle_ollama_show(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    const char *name = NULL;
    pith_fields_init(&f, body, "");
    if (!pith_fields_text(&f, "model", &name) && !pith_fields_text(&f, "name", &name))
        pith_fields_require(&f, "model");
    pith_fields_harmless(&f, "name");
    pith_fields_harmless(&f, "verbose");
    if (pith_fields_close(&f))
        show(exchange, name);
    else
        pith_fields_refuse(&f, exchange);
    json_decref(body);
}

json_t *pith_ollama_error(const pith_http_error *what) {
    char text[400]; /* the shape has no place for the field but the sentence */
    bool is_named = !what->param || strstr(what->message, what->param);
    snprintf(text, sizeof text, "%s%s%s", is_named ? "" : what->param, is_named ? "" : ": ",
             what->message);
    return json_pack("{s:o}", "error", pith_json_text(text, strlen(text)));
}
