/* SPDX-License-Identifier: Apache-2.0
 * `pith serve`: options, keys and models for the server of apps/server, and the signals that stop
 * it. The first SIGINT or SIGTERM lets replies that run end for a few seconds; a second one ends
 * the program.
 * Read next: apps/server/server.h, then server.c. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE /* POSIX and BSD names under -std=c11 */
#endif

#include "base/memory.h"
#include "pith/machine_record.h"
#include "pith/models.h"
#include "pith/reply_option.h"
#include "pith/serve_config.h"
#include "pith/serve_upstream.h"
#include "server/server.h"

#include <string.h>

enum { KEY_LIMIT = 4096, PEM_LIMIT = 1 << 20, MOST_MODELS = 16, MOST_LORAS = 32 };

typedef struct serve_options {
    pith_cli_model model;
    pith_cli_list models, origins, loras;
    const char *history, *lora_folder;
    const char *host, *key_file, *certificate_file, *certificate_key_file;
    int32_t port, n_parallel, n_queue, idle_unload, request_seconds, stop_seconds;
    int log;
    const char *config;
    bool print_config;
    pith_serve_upstream upstream;
} serve_options;

enum {
    OWN_OPTIONS = 18,
    UPSTREAM_AT = PITH_CLI_MODEL_OPTIONS + OWN_OPTIONS,
    N_OPTIONS = UPSTREAM_AT + PITH_SERVE_UPSTREAM_OPTIONS
};
_Static_assert((int)N_OPTIONS <= (int)PITH_SERVE_OPTIONS_MAX, "pith_serve_config has room for all");

static void fill_options(serve_options *o, pith_cli_option table[N_OPTIONS]) {
    const pith_cli_option own[OWN_OPTIONS] = {
        {"host", 0, PITH_CLI_TEXT, &o->host, "ADDRESS",
         "address to listen on (default: 127.0.0.1); others need a key", 0, 0},
        {"port", 0, PITH_CLI_INT, &o->port, "N", "port (default: 8080; 0: any that is free)", 0,
         65535},
        {"key-file", 0, PITH_CLI_TEXT, &o->key_file, "FILE",
         "file with the key that requests need (or PITH_API_KEY)", 0, 0},
        {"cors", 0, PITH_CLI_LIST, &o->origins, "ORIGIN",
         "let pages of https://app.example ask; repeatable", 0, 0},
        {"parallel", 0, PITH_CLI_INT, &o->n_parallel, "N",
         "replies at once, each with --ctx tokens (default: 4)", 1, 256},
        {"queue", 0, PITH_CLI_INT, &o->n_queue, "N",
         "requests that wait; more are answered with 429 (default: 64)", 0, 65536},
        {"lora", 0, PITH_CLI_LIST, &o->loras, "FILE[:SCALE]",
         "a LoRA for requests to the first model; repeatable", 0, 0},
        {"lora-folder", 0, PITH_CLI_TEXT, &o->lora_folder, "FOLDER",
         "LoRAs (.gguf) that requests may name", 0, 0},
        {"idle-unload", 0, PITH_CLI_INT, &o->idle_unload, "SECONDS",
         "drop a model not asked for so long (default: 0, never)", 0, 1 << 30},
        {"request-timeout", 0, PITH_CLI_INT, &o->request_seconds, "SECONDS",
         "for a request's head; three times for its body (default: 20)", 1, 3600},
        {"stop-timeout", 0, PITH_CLI_INT, &o->stop_seconds, "SECONDS",
         "that replies get when the server stops (default: 5)", 1, 3600},
        {"cert", 0, PITH_CLI_TEXT, &o->certificate_file, "FILE",
         "certificate (PEM): serve HTTPS; with --cert-key", 0, 0},
        {"cert-key", 0, PITH_CLI_TEXT, &o->certificate_key_file, "FILE",
         "private key of the certificate (PEM)", 0, 0},
        {"log-level", 0, PITH_CLI_CHOICE, &o->log, "error|info|debug",
         "what is told on stderr (default: info; debug: each request)", 0, 0},
        {"history", 0, PITH_CLI_TEXT, &o->history, "FILE|off",
         "keeps the page's conversations (default: on)", 0, 0},
        pith_cli_cache_option(&o->model),
        {"config", 0, PITH_CLI_TEXT, &o->config, "FILE",
         "JSON object with these options; flags and variables go first", 0, 0},
        {"print-config", 0, PITH_CLI_FLAG, &o->print_config, "",
         "show the options in effect and where they come from, and end", 0, 0},
    };
    pith_cli_model_options(&o->model, table);
    table[0] = (pith_cli_option){"model",    'm',     PITH_CLI_LIST,
                                 &o->models, "MODEL", "loaded at the start; may be given again",
                                 0,          0};
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    pith_serve_upstream_table(&o->upstream, table + UPSTREAM_AT);
}

/* ---- Signals ---- */

/* A signal handler can only reach file scope; this is the program's, not the library's. */
static volatile sig_atomic_t is_stopping;

static void on_stop(int signal_number) {
    is_stopping = 1;
    signal(signal_number, SIG_DFL); /* a second one ends the program */
}

static void watch_signals(void) {
    is_stopping = 0;
    signal(SIGINT, on_stop);
    signal(SIGTERM, on_stop);
#if defined(SIGHUP)
    if (signal(SIGHUP, on_stop) == SIG_IGN) signal(SIGHUP, SIG_IGN); /* nohup */
#endif
#if defined(SIGPIPE)
    signal(SIGPIPE, SIG_IGN);
#endif
}

/* ---- What the server needs ---- */

typedef struct serve_parts {
    char *key, *certificate, *certificate_key, *cache, *history;
    char *paths[MOST_MODELS], *names[MOST_MODELS];
    pith_server_model models[MOST_MODELS];
    size_t n_models;
    pith_server_lora loras[MOST_LORAS]; /* names and paths are owned */
    char *lora_texts[2 * MOST_LORAS];   /* [2 * n_loras] */
    size_t n_loras;
    pith_serve_upstream_parts upstream;
} serve_parts;

static void release(serve_parts *parts) {
    for (size_t i = 0; i < parts->n_models; i++) {
        pith_free(parts->paths[i]);
        pith_free(parts->names[i]);
    }
    for (size_t i = 0; i < 2 * parts->n_loras; i++) pith_free(parts->lora_texts[i]);
    if (parts->key) memset(parts->key, 0, strlen(parts->key));
    pith_free(parts->key);
    pith_free(parts->certificate);
    pith_free(parts->certificate_key);
    pith_free(parts->cache);
    pith_free(parts->history);
    pith_serve_upstream_release(&parts->upstream);
}

/* The whole file as text; exit code, or -1. */
static int read_text(const char *path, size_t limit, char **out) {
    pith_buffer text = {0};
    pith_error error = {0};
    bool ok = pith_cli_read_file(path, limit, &text, &error);
    if (ok && text.size > 0 && memchr(text.data, 0, text.size))
        ok = false, pith_fail(&error, PITH_ERROR_FORMAT, "%s is no text", path);
    if (ok) *out = pith_copy_text(text.data ? text.data : "", text.size);
    pith_buffer_deinit(&text);
    if (!ok) return pith_cli_fail(&error);
    return *out ? -1 : pith_cli_fail_text("out of memory");
}

/* A key is the first line of its file. */
static int read_key(const serve_options *o, serve_parts *parts) {
    int code = -1;
    if (o->key_file)
        code = read_text(o->key_file, KEY_LIMIT, &parts->key);
    else
        parts->key = pith_cli_variable("PITH_API_KEY");
    if (code >= 0 || !parts->key) return code;
    parts->key[strcspn(parts->key, "\r\n")] = 0;
    if (strlen(parts->key) >= 8) return -1;
    return pith_cli_fail_text("the key in %s is too short: at least 8 characters",
                              o->key_file ? o->key_file : "PITH_API_KEY");
}

/* The name of a file without folder and ending. */
static char *name_of(const char *path) {
    const char *name = path;
    for (const char *at = path; *at; at++)
        if (*at == '/' || *at == '\\') name = at + 1;
    size_t size = strlen(name);
    if (size > 5 && strcmp(name + size - 5, ".gguf") == 0) size -= 5;
    return pith_copy_text(name, size);
}

static int find_models(const serve_options *o, serve_parts *parts) {
    for (size_t i = 0; i < o->models.n; i++) {
        pith_error error = {0};
        if (i == MOST_MODELS) return pith_cli_fail_text("at most %d models with -m", MOST_MODELS);
        char *path = pith_cli_find_model(o->models.items[i], &error);
        if (!path) return pith_cli_fail(&error);
        char *name = name_of(path);
        parts->paths[i] = path;
        parts->names[i] = name;
        parts->n_models = i + 1;
        if (!name) return pith_cli_fail_text("out of memory");
        for (size_t j = 0; j < i; j++)
            if (strcmp(name, parts->names[j]) == 0)
                return pith_cli_fail_text("two models have the name '%s'", name);
        parts->models[i] = (pith_server_model){name, path};
    }
    return -1;
}

static int find_loras(const serve_options *o, serve_parts *parts) {
    for (size_t i = 0; i < o->loras.n; i++) {
        if (i == MOST_LORAS) return pith_cli_fail_text("at most %d LoRAs with --lora", MOST_LORAS);
        pith_cli_adapter_spec spec = pith_cli_parse_adapter(o->loras.items[i], false);
        char *path = pith_copy_text(o->loras.items[i], spec.path_size);
        char *name = path ? name_of(path) : NULL;
        parts->lora_texts[2 * i] = path;
        parts->lora_texts[2 * i + 1] = name;
        parts->n_loras = i + 1;
        if (!name) return pith_cli_fail_text("out of memory");
        for (size_t j = 0; j < i; j++)
            if (strcmp(name, parts->loras[j].name) == 0)
                return pith_cli_fail_text("two LoRAs have the name '%s'", name);
        parts->loras[i] = (pith_server_lora){name, path, spec.scale};
    }
    if (o->loras.n > 0 && o->models.n == 0) return pith_cli_fail_text("--lora needs a model: -m");
    return -1;
}

typedef struct lora_walk {
    const char *folder;
    pith_server_visit visit;
    void *user;
} lora_walk;

static bool visit_lora(void *user, const char *below) {
    lora_walk *walk = user;
    size_t size = strlen(below);
    if (size <= 5 || strcmp(below + size - 5, ".gguf") != 0) return true;
    char *path = pith_cli_join(walk->folder, below), *name = path ? name_of(path) : NULL;
    bool goes_on = !name || walk->visit(walk->user, name, path);
    pith_free(path);
    pith_free(name);
    return goes_on;
}

static void each_lora(void *user, pith_server_visit visit, void *visit_user) {
    lora_walk walk = {user, visit, visit_user};
    pith_cli_walk(walk.folder, 0, visit_lora, &walk);
}

static void each_model(void *user, pith_server_visit visit, void *visit_user) {
    pith_cli_found_list list;
    (void)user;
    pith_cli_find_models(&list);
    for (size_t i = 0; i < list.n; i++) {
        const pith_cli_found *model = &list.items[i];
        if (model->origin == PITH_CLI_ORIGIN_PARTIAL) continue;
        if (!visit(visit_user, model->name, model->path)) break;
    }
    pith_cli_found_deinit(&list);
}

/* The file that keeps the page's conversations; NULL: none. */
static char *history_file(const char *source) {
    if (source && (strcmp(source, "off") == 0 || !source[0])) return NULL;
    if (source) return pith_copy_text(source, strlen(source));
    char *home = pith_cli_home_folder(), *file = NULL;
    pith_buffer path = {0};
    if (home) pith_buffer_append_format(&path, "%s/history/conversations.db", home);
    if (home && !path.failed) file = pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    pith_free(home);
    return file;
}

static bool is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

static int check(const pith_cli_command *command, const serve_options *o,
                 const serve_parts *parts) {
    if (!parts->key && !is_loopback(o->host))
        return pith_cli_usage(command,
                              "--host %s lets other machines ask: that needs a key (--key-file or "
                              "PITH_API_KEY)",
                              o->host);
    if (!o->certificate_file != !o->certificate_key_file)
        return pith_cli_usage(command, "--cert and --cert-key go together");
    for (size_t i = 0; i < o->origins.n; i++)
        if (!strstr(o->origins.items[i], "://"))
            return pith_cli_usage(command,
                                  "--cors needs an origin such as https://app.example, not '%s'",
                                  o->origins.items[i]);
    return -1;
}

static int serve(const serve_options *o, serve_parts *parts) {
    pith_error error = {0};
    pith_cli_thread_numbers threads = pith_cli_thread_defaults(o->model.n_threads);
    parts->cache = pith_cli_cache_folder(o->model.cache);
    parts->history = history_file(o->history);
    pith_server_options options = {
        .host = o->host,
        .port = o->port,
        .key = parts->key,
        .origins = o->origins.items,
        .n_origins = o->origins.n,
        .models = parts->models,
        .n_models = parts->n_models,
        .each_model = each_model,
        .loras = parts->loras,
        .n_loras = parts->n_loras,
        .each_lora = o->lora_folder ? each_lora : NULL,
        .each_lora_user = (void *)(uintptr_t)o->lora_folder,
        .model = {.load = (pith_load)o->model.load,
                  .n_threads = o->model.n_threads,
                  .force = o->model.force},
        .engine = {.n_ctx = o->model.n_ctx,
                   .n_sessions = o->n_parallel,
                   .n_threads = threads.n_threads,
                   .decode_threads = o->model.decode_threads > 0 ? o->model.decode_threads
                                                                 : threads.decode_threads,
                   .step_limit = o->model.step_limit,
                   .kv_type = (pith_kv_type)o->model.kv,
                   .precision = (pith_precision)o->model.precision,
                   .exact = o->model.exact,
                   .cache_folder = parts->cache},
        .n_queue = o->n_queue,
        .memory = o->model.memory,
        .idle_unload = o->idle_unload,
        .certificate = parts->certificate,
        .certificate_key = parts->certificate_key,
        .history = parts->history,
        .upstream = pith_serve_upstream_server(&o->upstream, &parts->upstream),
        .log = (pith_server_log)o->log,
        .header_seconds = o->request_seconds,
        .body_seconds = 3 * o->request_seconds,
        .idle_seconds = 3 * o->request_seconds,
        .stop_seconds = o->stop_seconds,
    };
    watch_signals();
    if (pith_server_run(&options, &is_stopping, &error) != PITH_OK) return pith_cli_fail(&error);
    return PITH_EXIT_OK;
}

/* Where secrets come from; what they are is not shown. */
static json_t *describe_secrets(const serve_options *o, const serve_parts *parts) {
    json_t *out = json_object();
    if (parts->key)
        pith_cli_json_set(out, "key",
                          json_string(o->key_file ? "set in --key-file" : "set in PITH_API_KEY"));
    if (parts->upstream.key)
        pith_cli_json_set(out, "upstream key", json_sprintf("set in %s", o->upstream.key_env));
    return out;
}

/* All that is read before models are looked for. Exit code, or -1. */
static int prepare(const pith_cli_command *command, serve_options *o, serve_parts *parts) {
    int code = read_key(o, parts);
    if (code < 0) code = check(command, o, parts);
    if (code < 0) code = pith_serve_upstream_open(command, &o->upstream, &parts->upstream);
    if (code < 0 && o->certificate_file)
        code = read_text(o->certificate_file, PEM_LIMIT, &parts->certificate);
    if (code < 0 && o->certificate_key_file)
        code = read_text(o->certificate_key_file, PEM_LIMIT, &parts->certificate_key);
    return code;
}

static int refuse_build(const serve_options *o) {
    pith_error error = {0};
    const pith_server_options none = {.host = o->host};
    pith_server_run(&none, &is_stopping, &error); /* says why */
    return pith_cli_fail(&error);
}

static int run(const pith_cli_command *command, serve_options *o, pith_serve_config *config) {
    serve_parts parts = {0};
    if (!pith_server_library()) return refuse_build(o);
    int code = prepare(command, o, &parts);
    if (code < 0 && o->print_config)
        code = pith_serve_config_print(config, describe_secrets(o, &parts));
    if (code < 0) code = pith_cli_prefer(&o->model, NULL);
    if (code < 0 && o->model.prefer_text[0])
        fprintf(stderr, "note: --prefer: %s\n", o->model.prefer_text);
    if (code < 0) code = find_models(o, &parts);
    if (code < 0) code = find_loras(o, &parts);
    if (code < 0) code = serve(o, &parts);
    release(&parts);
    return code;
}

int pith_command_serve(int argc, char **argv) {
    serve_options o = {.host = "127.0.0.1",
                       .port = 8080,
                       .n_parallel = 4,
                       .n_queue = 64,
                       .request_seconds = 20,
                       .stop_seconds = 5,
                       .upstream = {.timeout = 120}};
    pith_cli_option table[N_OPTIONS];
    pith_serve_config config = {.command = NULL};
    o.log = PITH_SERVER_LOG_INFO;
    fill_options(&o, table);
    pith_cli_command command = {
        "pith serve [-m MODEL] [options]",
        "Answers OpenAI's, Anthropic's and Ollama's APIs over HTTP, with a chat page at /.", table,
        N_OPTIONS,
        "Models that `pith list` shows are loaded when they are asked for. Once requests are\n"
        "taken, \"listening on http://HOST:PORT\" is told on stderr; GET /health says when the\n"
        "model is loaded. Ctrl-C stops: replies that run get --stop-timeout seconds. Every option\n"
        "may also be a variable (--port: PITH_SERVE_PORT) or stand in the file of --config."};
    int code = pith_serve_config_read(&config, &command, argc, argv, &o.config);
    if (code < 0) code = run(&command, &o, &config);
    pith_serve_config_release(&config);
    return code;
}
