/* SPDX-License-Identifier: Apache-2.0
 * `--draft off|ngram|auto|MODEL`: where guesses at the next tokens come from. A MODEL is opened
 * beside the model with the same context and threads; it needs the same vocabulary, which the first
 * reply checks. */
#include "base/memory.h"
#include "pith/reply_option.h"

#include <string.h>

pith_cli_option pith_cli_draft_option(pith_cli_draft *draft) {
    return (pith_cli_option){"draft",
                             0,
                             PITH_CLI_TEXT,
                             &draft->source,
                             "off|ngram|auto|MODEL",
                             "guess tokens ahead, also with a smaller model",
                             0,
                             0};
}

static const char *const names[] = {
    [PITH_DRAFT_AUTO] = "auto", [PITH_DRAFT_OFF] = "off", [PITH_DRAFT_NGRAM] = "ngram"};
enum { N_NAMES = sizeof names / sizeof names[0] };

/* The mode that is named; N_NAMES: none is, so it is a model. */
static size_t named_mode(const pith_cli_draft *draft) {
    size_t i = 0;
    if (!draft->source) return draft->mode;
    while (i < N_NAMES && strcmp(draft->source, names[i]) != 0) i++;
    return i;
}

bool pith_cli_draft_is_model(const pith_cli_draft *draft) {
    return named_mode(draft) == N_NAMES;
}

int pith_cli_check_draft(const pith_cli_draft *draft) {
    pith_error error = {0};
    pith_file *file = NULL;
    if (!pith_cli_draft_is_model(draft)) return -1;
    char *path = pith_cli_find_model(draft->source, &error);
    bool ok = path && pith_file_open(path, &file, &error) == PITH_OK &&
              pith_file_check(file, &error) == PITH_OK;
    pith_file_close(file);
    pith_free(path);
    return ok ? -1 : pith_cli_fail_text("--draft: %s", error.text);
}

/* Bytes that the model, its engine and its adapters have of --memory. */
static uint64_t taken_bytes(const pith_cli_draft_target *target) {
    pith_model_info info = pith_model_describe(target->model);
    pith_engine_info made = pith_engine_describe(target->engine);
    const pith_adapter *adapter;
    float scale;
    uint64_t bytes = made.kv_bytes + made.workspace_bytes + made.cache_bytes;
    if (info.load == PITH_LOAD_PACK) bytes += info.weight_bytes;
    for (size_t i = 0; pith_session_adapter_at(target->session, i, &adapter, &scale); i++)
        bytes += pith_adapter_describe(adapter).bytes;
    return bytes;
}

/* --memory is one ceiling over both models: the draft gets what is left of it. Exit code, or -1. */
static int share_memory(pith_cli_model *values, uint64_t taken) {
    if (!values->memory) return -1;
    if (values->memory <= taken)
        return pith_cli_fail_text(
            "--memory %llu leaves nothing for a draft model after %llu bytes of model, KV and "
            "workspace; take --draft ngram, or give more memory",
            (unsigned long long)values->memory, (unsigned long long)taken);
    values->memory -= taken;
    return -1;
}

int pith_cli_draft_open(const pith_cli_command *command, const pith_cli_model *values,
                        const pith_cli_draft_target *target, pith_cli_draft *draft) {
    size_t mode = named_mode(draft);
    if (mode < N_NAMES) {
        draft->mode = (pith_draft)mode;
        return -1;
    }
    pith_cli_model other = *values;
    other.model = draft->source;
    other.use_cache = false;              /* what a draft has read is not worth the disk */
    other.loras.n = other.controls.n = 0; /* they are the model's */
    other.n_sessions = 1;
    int code = share_memory(&other, taken_bytes(target));
    if (code < 0) code = pith_cli_open_model(command, &other, false, &draft->model);
    if (code >= 0) return code;
    pith_cli_prefer_check(&other, draft->model);
    int32_t n_ctx = pith_engine_describe(target->engine).n_ctx;
    int32_t most = pith_model_describe(draft->model).n_ctx_train;
    other.n_ctx = n_ctx < most ? n_ctx : most;
    return pith_cli_open_engine(&other, draft->model, 0, &draft->engine, &draft->session);
}

void pith_cli_draft_close(pith_cli_draft *draft) {
    pith_session_free(draft->session);
    pith_engine_free(draft->engine);
    pith_model_close(draft->model);
}
