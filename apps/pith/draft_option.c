/* SPDX-License-Identifier: Apache-2.0
 * `--draft off|ngram|auto|MODEL`: where guesses at the next tokens come from. A MODEL is opened
 * beside the model with the same context and threads; it needs the same vocabulary, which the first
 * reply checks. */
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

int pith_cli_draft_open(const pith_cli_command *command, const pith_cli_model *values,
                        const pith_engine *engine, pith_cli_draft *draft) {
    static const char *const names[] = {
        [PITH_DRAFT_AUTO] = "auto", [PITH_DRAFT_OFF] = "off", [PITH_DRAFT_NGRAM] = "ngram"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (draft->source && strcmp(draft->source, names[i]) != 0) continue;
        draft->mode = (pith_draft)i;
        return -1;
    }
    pith_cli_model other = *values;
    other.model = draft->source;
    other.use_cache = false; /* what a draft has read is not worth the disk */
    other.loras.n = other.controls.n = 0; /* they are the model's */
    int code = pith_cli_open_model(command, &other, false, &draft->model);
    if (code >= 0) return code;
    int32_t n_ctx = pith_engine_describe(engine).n_ctx;
    int32_t most = pith_model_describe(draft->model).n_ctx_train;
    other.n_ctx = n_ctx < most ? n_ctx : most;
    return pith_cli_open_engine(&other, draft->model, 0, &draft->engine, &draft->session);
}

void pith_cli_draft_close(pith_cli_draft *draft) {
    pith_session_free(draft->session);
    pith_engine_free(draft->engine);
    pith_model_close(draft->model);
}
