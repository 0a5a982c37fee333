/* SPDX-License-Identifier: Apache-2.0
 * Promise: whichever request for memory fails while prompts are stored and read, in whatever
 * thread, the reply is the one that a whole heap gives, or the engine says that memory was short
 * when it was made; nothing crashes and nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/failing_memory.h"

#include "base/folder.h"
#include "cpu/cpu.h"
#include "engine/prefix_index.h"
#include "engine/reply.h"
#include "support/changed_model.h"

enum { N = 200, N_TOKENS = 3, MOST_REQUESTS = 4000 };

static char folder[1100];

static bool remove_one(void *user, const char *name) {
    char path[1400];
    (void)user;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    pith_file_remove(path);
    return true;
}

static pith_model *open_model(void) {
    char path[1024];
    pith_gguf *gguf = NULL;
    pith_model *model = NULL;
    uint32_t features = 0;
    assert_int_equal(pith_cpu_features(&features, NULL), PITH_OK);
    assert_int_equal(pith_gguf_open_path(golden_path("llama-q4_0.gguf", path), &gguf, NULL),
                     PITH_OK);
    assert_int_equal(pith_model_load(gguf, NULL, features, &model, NULL), PITH_OK);
    return model;
}

/* An engine, a reply to the prompt, and all of it released. Writes the ids made. */
static pith_status answer(const pith_model *model, int32_t made[N_TOKENS], pith_generation *told) {
    const pith_engine_options options = {.size = sizeof options,
                                         .n_ctx = 256,
                                         .n_sessions = 1,
                                         .n_threads = 1,
                                         .step_limit = 100,
                                         .exact = true,
                                         .cache_folder = folder};
    const pith_generate_options reply_options = {.size = sizeof reply_options,
                                                 .max_tokens = N_TOKENS,
                                                 .ignore_end = true,
                                                 .draft = PITH_DRAFT_OFF};
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    pith_sampler *sampler = NULL;
    pith_reply *reply = NULL;
    int32_t ids[N];
    for (int32_t i = 0; i < N; i++) ids[i] = 40 + i * 7 % 60;
    pith_status status = pith_engine_open(model, &options, &engine, NULL);
    if (status == PITH_OK) status = pith_session_open(engine, &session, NULL);
    if (status == PITH_OK)
        status = pith_sample_new((int32_t)model->hparams.n_vocab, NULL, &sampler, NULL);
    if (status == PITH_OK)
        status =
            pith_reply_open(session, sampler, (pith_id_span){ids, N}, &reply_options, &reply, NULL);
    while (status == PITH_OK && !pith_reply_is_made(reply)) pith_engine_advance(engine);
    if (status == PITH_OK) status = pith_reply_outcome(reply, told, NULL);
    if (status == PITH_OK)
        memcpy(made, session->ids + session->length - N_TOKENS, N_TOKENS * sizeof *made);
    pith_reply_close(reply);
    pith_sample_free(sampler);
    pith_engine_close(engine);
    return status;
}

/* The requests of the worker come in no certain order, so a number may stand for another one each
 * time; the promise is the same. */
static void every_request_may_fail(bool stored) {
    pith_model *model = open_model();
    int32_t expected[N_TOKENS], made[N_TOKENS];
    pith_generation told;
    (void)pith_folder_each(folder, remove_one, NULL, NULL);
    assert_int_equal(answer(model, expected, &told), PITH_OK);
    memory_watch_reset(0);
    assert_int_equal(answer(model, made, &told), PITH_OK);
    uint64_t n = memory_watch.n_requests;
    assert_true(n < MOST_REQUESTS);
    for (uint64_t at = 1; at <= n; at++) {
        if (!stored) (void)pith_folder_each(folder, remove_one, NULL, NULL);
        memory_watch_reset(at);
        pith_status status = answer(model, made, &told);
        memory_watch_reset(0);
        if (status != PITH_OK && status != PITH_ERROR_MEMORY)
            fail_msg("request %d: status %d", (int)at, (int)status);
        if (status == PITH_OK) assert_memory_equal(made, expected, sizeof made);
    }
    assert_int_equal(answer(model, made, &told), PITH_OK); /* and the folder is of use */
    assert_int_equal(answer(model, made, &told), PITH_OK);
    assert_memory_equal(made, expected, sizeof made);
    pith_model_free(model);
}

static void while_storing(void **state) {
    (void)state;
    every_request_may_fail(false);
}

static void while_reading(void **state) {
    (void)state;
    every_request_may_fail(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_storing),
        cmocka_unit_test(while_reading),
    };
    char base[1024];
    snprintf(folder, sizeof folder, "%s", scratch_path("test_prefix_memory.cache", base));
    return cmocka_run_group_tests_name("prompts on disk, short of memory", tests, NULL, NULL);
}
