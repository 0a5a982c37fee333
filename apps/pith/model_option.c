/* SPDX-License-Identifier: Apache-2.0
 * The options that mean the same for every command that needs a model, and the models folder. */
#include "base/memory.h"
#include "pith/machine_record.h"
#include "pith/reply_option.h"

#include <errno.h>
#include <string.h>

void pith_cli_model_options(pith_cli_model *values, pith_cli_option out[PITH_CLI_MODEL_OPTIONS]) {
    const pith_cli_option options[PITH_CLI_MODEL_OPTIONS] = {
        {"model", 'm', PITH_CLI_TEXT, &values->model, "MODEL",
         "a GGUF file, or a name that `pith list` shows", 0, 0},
        {"ctx", 'c', PITH_CLI_INT, &values->n_ctx, "N",
         "tokens of context (default: the model's, at most 4096)", 0, 1 << 24},
        {"threads", 't', PITH_CLI_INT, &values->n_threads, "N",
         "threads (default: what `pith doctor` shows)", 0, 512},
        {"load", 0, PITH_CLI_CHOICE, &values->load, "auto|pack|mmap",
         "pack weights into memory, or use the mapped file in place", 0, 0},
        {"memory", 0, PITH_CLI_SIZE, &values->memory, "SIZE",
         "ceiling for weights, KV and workspace, e.g. 2G", 0, 0},
        {"kv", 0, PITH_CLI_CHOICE, &values->kv, "auto|f32|f16|int8",
         "storage of the KV cache (default: f16)", 0, 0},
        {"exact", 0, PITH_CLI_FLAG, &values->exact, "",
         "the same bits for any batching, threads, tier and load mode", 0, 0},
        {"precision", 0, PITH_CLI_CHOICE, &values->precision, "normal|full",
         "full: float activations, KV in f32; slow, for checking", 0, 0},
        {"force", 0, PITH_CLI_FLAG, &values->force, "", "go on with an unknown pre-tokenizer", 0,
         0},
        {"step", 0, PITH_CLI_INT, &values->step_limit, "N",
         "prompt tokens computed at once (default: 256)", 0, 1 << 16},
        {"prefer", 0, PITH_CLI_CHOICE, &values->prefer, "none|ttft|tps|memory|battery",
         "choose what is not given for one goal, and say what", 0, 0},
    };
    memcpy(out, options, sizeof options);
}

static char *join(const char *a, const char *b, const char *c) {
    pith_buffer path = {0};
    pith_buffer_append_text(&path, a);
    pith_buffer_append_text(&path, b);
    pith_buffer_append_text(&path, c);
    char *text = path.failed ? NULL : pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    return text;
}

char *pith_cli_home_folder(void) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"PITH_HOME", ""},
                  {"XDG_CACHE_HOME", "/pith"},
                  {"HOME", "/.cache/pith"},
                  {"LOCALAPPDATA", "/.cache/pith"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *value = pith_cli_variable(places[i].variable);
        if (!value) continue;
        char *folder = join(value, places[i].below, "");
        pith_free(value);
        return folder;
    }
    return NULL;
}

bool pith_cli_has_home(void) {
    char *home = pith_cli_home_folder();
    pith_free(home);
    return home != NULL;
}

char *pith_cli_models_folder(void) {
    char *home = pith_cli_home_folder();
    char *folder = home ? join(home, "/models", "") : NULL;
    pith_free(home);
    return folder;
}

/* One line each; they may quote the file. */
static void print_notes(const char *notes) {
    for (const char *at = notes ? notes : ""; *at;) {
        size_t size = strcspn(at, "\n");
        fputs("note: ", stderr);
        pith_cli_print_clean(stderr, at, size, SIZE_MAX);
        fputc('\n', stderr);
        at += size + (at[size] == '\n');
    }
}

int pith_cli_open_model(const pith_cli_command *command, const pith_cli_model *values,
                        bool vocab_only, pith_model **model) {
    if (!values->model)
        return pith_cli_usage(command, "which model? Give -m MODEL (`pith list` shows them)");
    pith_error error = {0};
    int code = pith_cli_check_adapters(command, values);
    if (code >= 0) return code;
    char *path = pith_cli_find_model(values->model, &error);
    if (!path) return pith_cli_fail(&error);
    pith_load load = (pith_load)values->load;
    code = vocab_only ? -1 : pith_cli_plan_memory(values, path, &load);
    if (code >= 0) {
        pith_free(path);
        return code;
    }
    pith_cli_progress progress = pith_cli_progress_start("loading the model");
    pith_model_options options = {.size = sizeof options,
                                  .load = load,
                                  .memory_limit = values->memory,
                                  .n_threads = values->n_threads,
                                  .force = values->force,
                                  .vocab_only = vocab_only,
                                  .progress = pith_cli_progress_step,
                                  .progress_user = &progress};
    pith_status status = pith_model_open(path, &options, model, &error);
    pith_cli_progress_end(&progress);
    pith_free(path);
    if (status != PITH_OK) return pith_cli_fail(&error);
    print_notes(pith_model_describe(*model).notes);
    return -1;
}

/* What --memory leaves for KV and workspace; 0: no limit. Exit code, or -1. */
static int memory_left(const pith_cli_model *values, const pith_model *model,
                       const pith_cli_adapters *adapters, uint64_t *limit) {
    pith_model_info info = pith_model_describe(model);
    uint64_t taken = adapters->bytes + (info.load == PITH_LOAD_PACK ? info.weight_bytes : 0);
    *limit = 0;
    if (!values->memory) return -1;
    if (values->memory <= taken)
        return pith_cli_fail_text("--memory %llu leaves nothing after %llu bytes of weights%s",
                                  (unsigned long long)values->memory, (unsigned long long)taken,
                                  adapters->n ? " and adapters" : "");
    *limit = values->memory - taken;
    return -1;
}

/* The engine, and a session that has the adapters. Exit code, or -1. */
static int make_session(const pith_model *model, const pith_engine_options *options,
                        const pith_cli_adapters *adapters, pith_engine **engine,
                        pith_session **session) {
    pith_error error = {0};
    if (pith_engine_new(model, options, engine, &error) != PITH_OK) return pith_cli_fail(&error);
    if (pith_session_new(*engine, session, &error) == PITH_OK &&
        pith_session_set_adapters(*session, adapters->items, adapters->scales, adapters->n,
                                  &error) == PITH_OK)
        return -1;
    pith_session_free(*session);
    pith_engine_free(*engine);
    *session = NULL;
    *engine = NULL;
    return pith_cli_fail(&error);
}

int pith_cli_open_engine(const pith_cli_model *values, const pith_model *model,
                         int32_t n_ctx_wanted, pith_engine **engine, pith_session **session) {
    pith_cli_adapters adapters = {.n = 0};
    uint64_t limit = 0;
    int code = pith_cli_open_adapters(values, model, &adapters);
    if (code < 0) code = memory_left(values, model, &adapters, &limit);
    pith_cli_thread_numbers threads = pith_cli_thread_defaults(values->n_threads);
    if (values->use_cache && !values->cache && !pith_cli_has_home())
        fputs("note: prompts are not kept: " PITH_CLI_NO_HOME ", or give --cache DIR\n", stderr);
    char *cache = values->use_cache ? pith_cli_cache_folder(values->cache) : NULL;
    pith_engine_options options = {.size = sizeof options,
                                   .cache_folder = cache,
                                   .n_ctx = values->n_ctx ? values->n_ctx : n_ctx_wanted,
                                   .n_sessions = values->n_sessions,
                                   .n_threads = threads.n_threads,
                                   .decode_threads = values->decode_threads > 0
                                                         ? values->decode_threads
                                                         : threads.decode_threads,
                                   .step_limit = values->step_limit,
                                   .kv_type = (pith_kv_type)values->kv,
                                   .precision = (pith_precision)values->precision,
                                   .exact = values->exact,
                                   .memory_limit = limit,
                                   .adapter_rank_limit = adapters.rank,
                                   .embeddings = values->embeds};
    if (code < 0) code = make_session(model, &options, &adapters, engine, session);
    pith_free(cache);
    pith_cli_close_adapters(&adapters);
    return code;
}
