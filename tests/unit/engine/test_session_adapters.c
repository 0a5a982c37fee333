/* SPDX-License-Identifier: Apache-2.0
 * Promises of a session's adapters: without them, with scale 0 and after taking them away the bits
 * are the model's own; what a session computes does not depend on which adapters it or others had
 * before; two adapters are their sum; activated ones act from their invocation on; limits are told;
 * an adapter lives as long as somebody uses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/adapter_files.h"
#include "support/open_engine.h"

#include <math.h>

enum { N_CTX = 256, MAX_VOCAB = 512, N = 70 };

static const char *data_path(const char *name, char path[1024]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/adapter/%s", root ? root : ".", name);
    return path;
}

static pith_model *open_model(void) {
    char path[1024];
    return open_model_at(data_path("llama.gguf", path));
}

static pith_adapter *open_path(const pith_model *model, const char *path) {
    const pith_adapter_options options = {.size = sizeof options};
    pith_adapter *adapter = NULL;
    pith_error error = {0};
    if (pith_adapter_load(model, path, &options, cpu_features(), &adapter, &error) != PITH_OK)
        fail_msg("%s: %s", path, error.text);
    return adapter;
}

static pith_adapter *open_adapter(const pith_model *model, const char *name) {
    char path[1024];
    return open_path(model, data_path(name, path));
}

static pith_engine *open_engine(const pith_model *model, int32_t n_sessions, int32_t rank_limit) {
    return open_engine_as(model, (pith_engine_options){.n_ctx = N_CTX,
                                                       .n_sessions = n_sessions,
                                                       .n_threads = 2,
                                                       .step_limit = 32,
                                                       .exact = true,
                                                       .adapter_rank_limit = rank_limit});
}

static void adapt(pith_session *session, pith_adapter *a, float scale_a, pith_adapter *b,
                  float scale_b) {
    pith_adapter *const adapters[] = {a, b};
    const float scales[] = {scale_a, scale_b};
    pith_error error = {0};
    if (pith_session_adapt(session, adapters, scales, a ? b ? 2 : 1 : 0, &error) != PITH_OK)
        fail_msg("%s", error.text);
}

/* The logits behind N tokens of a fresh session with these adapters. */
static void reference(const pith_model *model, pith_adapter *a, float scale_a, pith_adapter *b,
                      float scale_b, float logits[MAX_VOCAB]) {
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    adapt(session, a, scale_a, b, scale_b);
    feed(session, 0, N);
    memcpy(logits, session->logits, model->hparams.n_vocab * sizeof *logits);
    pith_engine_close(engine);
}

static void switching_leaves_nothing_behind(void **state) {
    float plain[MAX_VOCAB], with_a[MAX_VOCAB], with_b[MAX_VOCAB], both[MAX_VOCAB];
    pith_model *model = open_model();
    pith_adapter *a = open_adapter(model, "lora-a.gguf"), *b = open_adapter(model, "lora-b.gguf");
    (void)state;
    reference(model, NULL, 0, NULL, 0, plain);
    reference(model, a, 0.5f, NULL, 0, with_a);
    reference(model, b, 1, NULL, 0, with_b);
    reference(model, a, 0.5f, b, 1, both);
    assert_memory_not_equal(plain, with_a, sizeof(float) * 32);
    assert_memory_not_equal(with_a, both, sizeof(float) * 32);
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    feed(session, 0, N);
    expect_logits("none", session, plain);
    adapt(session, a, 0.5f, NULL, 0);
    assert_int_equal(session->length, 0); /* what was computed otherwise is gone */
    feed(session, 0, N);
    expect_logits("a", session, with_a);
    adapt(session, a, 0.5f, b, 0); /* scale 0: as if it were not there, so nothing changes */
    assert_int_equal(session->length, N);
    expect_logits("a", session, with_a);
    adapt(session, a, 0.5f, b, 1);
    feed(session, 0, N - 1);
    feed(session, N - 1, N);
    expect_logits("both", session, both);
    adapt(session, b, 1, NULL, 0);
    feed(session, 0, N);
    expect_logits("b", session, with_b);
    adapt(session, a, 0, b, 0);
    assert_int_equal(session->length, 0);
    feed(session, 0, N);
    expect_logits("scale 0", session, plain);
    pith_engine_close(engine);
    pith_adapter_release(a);
    pith_adapter_release(b);
    pith_model_free(model);
}

static void sessions_of_an_engine_have_their_own(void **state) {
    float plain[MAX_VOCAB], with_a[MAX_VOCAB], with_b[MAX_VOCAB];
    pith_model *model = open_model();
    pith_adapter *a = open_adapter(model, "lora-a.gguf"),
                 *b = open_adapter(model, "lora-embd.gguf");
    (void)state;
    reference(model, NULL, 0, NULL, 0, plain);
    reference(model, a, 2, NULL, 0, with_a);
    reference(model, b, -1, NULL, 0, with_b);
    pith_engine *engine = open_engine(model, 3, 0);
    pith_session *sessions[3];
    for (int i = 0; i < 3; i++) sessions[i] = open_session(engine);
    adapt(sessions[0], a, 2, NULL, 0);
    adapt(sessions[2], b, -1, NULL, 0);
    for (size_t at = 0; at < N; at += 10)
        for (int i = 0; i < 3; i++) feed(sessions[i], at, at + 10);
    expect_logits("a", sessions[0], with_a);
    expect_logits("none", sessions[1], plain);
    expect_logits("b", sessions[2], with_b);
    pith_session_close(sessions[0]); /* the next owner of the place starts without */
    sessions[0] = open_session(engine);
    feed(sessions[0], 0, N);
    expect_logits("reopened", sessions[0], plain);
    pith_engine_close(engine);
    pith_adapter_release(a);
    pith_adapter_release(b);
    pith_model_free(model);
}

static void an_adapter_lives_as_long_as_it_is_used(void **state) {
    float with_a[MAX_VOCAB];
    pith_model *model = open_model();
    pith_adapter *a = open_adapter(model, "lora-a.gguf");
    (void)state;
    reference(model, a, 1, NULL, 0, with_a);
    assert_int_equal(atomic_load(&a->n_holders), 1);
    pith_engine *engine = open_engine(model, 2, 0);
    pith_session *session = open_session(engine), *other = open_session(engine);
    adapt(session, a, 1, NULL, 0);
    adapt(other, a, 1, NULL, 0);
    adapt(other, a, 2, NULL, 0);
    assert_int_equal(atomic_load(&a->n_holders), 3);
    pith_adapter_release(a); /* its opener lets go */
    feed(session, 0, N);
    expect_logits("held", session, with_a);
    adapt(other, NULL, 0, NULL, 0);
    assert_int_equal(atomic_load(&a->n_holders), 1);
    pith_engine_close(engine); /* and frees it */
    pith_model_free(model);
}

static void many_adapters_can_be_open_at_once(void **state) {
    enum { MANY = 32 };
    char path[1024];
    float expected[4][MAX_VOCAB];
    pith_adapter *adapters[MANY];
    pith_model *model = open_model();
    (void)state;
    scratch_path("test_session_adapters.gguf", path);
    for (size_t i = 0; i < MANY; i++) {
        made_adapter made = {
            .rank = 4, .alpha = 4, .type = PITH_TYPE_F16, .arch = "llama", .seed = i, .n = 1};
        made.pairs[0] = (made_pair){"blk.0.ffn_down.weight", "", 96, 64, 1, 0, false, NULL, NULL};
        made_fill(&made);
        assert_true(made_write_gguf(&made, path));
        made_free(&made);
        adapters[i] = open_path(model, path);
    }
    remove(path);
    for (size_t i = 0; i < 4; i++) reference(model, adapters[i * 10], 1, NULL, 0, expected[i]);
    assert_memory_not_equal(expected[0], expected[1], sizeof expected[0]);
    pith_engine *engine = open_engine(model, 1, 16 * MANY);
    pith_session *session = open_session(engine);
    for (size_t i = 0; i < MANY; i++) {
        adapt(session, adapters[i], 1, NULL, 0);
        feed(session, 0, N);
        if (i % 10 == 0) expect_logits("switched", session, expected[i / 10]);
    }
    float scales[MANY];
    for (size_t i = 0; i < MANY; i++) scales[i] = i == 10 ? 1.0f : 1e-30f; /* all of them at once */
    assert_int_equal(pith_session_adapt(session, adapters, scales, MANY, NULL), PITH_OK);
    assert_int_equal(session->adapters.n, MANY);
    feed(session, 0, N);
    expect_logits("all, one of them felt", session, expected[1]);
    pith_engine_close(engine);
    for (size_t i = 0; i < MANY; i++) pith_adapter_release(adapters[i]);
    pith_model_free(model);
}

static void limits_are_told_and_change_nothing(void **state) {
    pith_model *model = open_model(), *other = open_model();
    pith_adapter *a = open_adapter(model, "lora-a.gguf"), *b = open_adapter(model, "lora-b.gguf"),
                 *foreign = open_adapter(other, "lora-a.gguf");
    pith_adapter *const both[] = {a, b};
    pith_adapter *many[PITH_ADAPTERS_MAX + 1];
    float scales[2] = {1, NAN};
    pith_error error;
    (void)state;
    pith_engine *engine = open_engine(model, 1, 17); /* rounded up to 32: both, each 16 */
    assert_int_equal(pith_engine_get_info(engine).adapter_rank_limit, 32);
    pith_session *session = open_session(engine);
    feed(session, 0, 3);
    assert_int_equal(pith_session_adapt(session, both, scales, 2, &error), PITH_ERROR_ARGUMENT);
    scales[0] = INFINITY;
    assert_int_equal(pith_session_adapt(session, both, scales, 1, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_session_adapt(session, &foreign, NULL, 1, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "another model"));
    for (size_t i = 0; i <= PITH_ADAPTERS_MAX; i++) many[i] = a;
    assert_int_equal(pith_session_adapt(session, many, NULL, 3, &error), PITH_ERROR_LIMIT);
    assert_string_equal(error.text,
                        "the adapters take a rank of 48 together, the engine has room for 32: make "
                        "it with a larger adapter_rank_limit");
    assert_int_equal(pith_session_adapt(session, many, NULL, PITH_ADAPTERS_MAX + 1, &error),
                     PITH_ERROR_LIMIT);
    assert_int_equal(session->length, 3);
    assert_int_equal(session->adapters.n, 0);
    assert_int_equal(pith_session_adapt(session, both, NULL, 2, &error), PITH_OK);
    pith_engine_close(engine);
    engine = open_engine(model, 1, -1);
    assert_int_equal(pith_engine_get_info(engine).adapter_rank_limit, 0);
    session = open_session(engine);
    assert_int_equal(pith_session_adapt(session, &a, NULL, 1, &error), PITH_ERROR_LIMIT);
    pith_engine_close(engine);
    assert_int_equal(atomic_load(&a->n_holders), 1);
    pith_engine_options options = {.size = sizeof options,
                                   .adapter_rank_limit = PITH_ENGINE_MAX_ADAPTER_RANK + 1};
    assert_int_equal(pith_engine_open(model, &options, &engine, &error), PITH_ERROR_ARGUMENT);
    pith_adapter_release(a);
    pith_adapter_release(b);
    pith_adapter_release(foreign);
    pith_model_free(other);
    pith_model_free(model);
}

static void workspace_is_accounted(void **state) {
    pith_model *model = open_model();
    uint64_t bytes[3];
    const int32_t limits[] = {-1, 0, 128};
    (void)state;
    for (int i = 0; i < 3; i++) {
        pith_engine_options options = {
            .size = sizeof options, .n_threads = 2, .adapter_rank_limit = limits[i]};
        assert_int_equal(pith_engine_measure(model, &options, &bytes[i], NULL), PITH_OK);
        pith_engine *engine = NULL;
        assert_int_equal(pith_engine_open(model, &options, &engine, NULL), PITH_OK);
        pith_engine_info info = pith_engine_get_info(engine);
        assert_true(info.kv_bytes + info.workspace_bytes == bytes[i]);
        pith_engine_close(engine);
    }
    assert_true(bytes[0] < bytes[1] && bytes[1] < bytes[2]);
    pith_model_free(model);
}

static void a_session_that_makes_a_reply_keeps_its_adapters(void **state) {
    const pith_generate_options options = {
        .size = sizeof options, .max_tokens = 4, .ignore_end = true, .draft = PITH_DRAFT_OFF};
    pith_model *model = open_model();
    pith_adapter *a = open_adapter(model, "lora-a.gguf");
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    pith_sampler *sampler = NULL;
    pith_reply *reply = NULL;
    pith_generation made;
    pith_error error = {0};
    int32_t ids[N];
    (void)state;
    for (size_t i = 0; i < N; i++) ids[i] = token(i);
    assert_int_equal(pith_sample_new((int32_t)model->hparams.n_vocab, NULL, &sampler, NULL),
                     PITH_OK);
    assert_int_equal(
        pith_reply_open(session, sampler, (pith_id_span){ids, N}, &options, &reply, NULL), PITH_OK);
    for (bool is_made = false; !is_made; is_made = pith_reply_is_made(reply)) {
        assert_int_equal(pith_session_adapt(session, &a, NULL, 1, &error), PITH_ERROR_ARGUMENT);
        assert_non_null(strstr(error.text, "making a reply"));
        assert_true(session->length >= N);
        pith_engine_advance(engine);
    }
    assert_int_equal(pith_reply_outcome(reply, &made, NULL), PITH_OK);
    assert_int_equal(made.n_predicted, 4);
    assert_int_equal(pith_session_adapt(session, &a, NULL, 1, NULL), PITH_OK);
    pith_reply_close(reply);
    pith_sample_free(sampler);
    pith_engine_close(engine);
    pith_adapter_release(a);
    pith_model_free(model);
}

/* ---- Activated adapters ---- */

/* lora-a as one that `ids` invoke. */
static pith_adapter *open_activated(const pith_model *model, const int32_t *ids, size_t n) {
    pith_adapter *adapter = open_adapter(model, "lora-a.gguf");
    adapter->invocation = malloc(n * sizeof *ids);
    memcpy(adapter->invocation, ids, n * sizeof *ids);
    adapter->n_invocation = n;
    return adapter;
}

/* The logits behind tokens [0, to) where the first `from` are the model's alone. */
static void parted_reference(const pith_model *model, pith_adapter *a, size_t from, size_t to,
                             float logits[MAX_VOCAB]) {
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    if (from > 0) feed(session, 0, from);
    session->adapters = (pith_adapter_set){.n = 1, .delta = {a->delta}, .scale = {1}};
    session->holders[0] = a;
    pith_adapter_hold(a);
    if (to > from) feed(session, from, to);
    memcpy(logits, session->logits, model->hparams.n_vocab * sizeof *logits);
    pith_engine_close(engine);
}

static void activated_adapters_act_from_their_invocation_on(void **state) {
    float plain[MAX_VOCAB], parted[MAX_VOCAB], late[MAX_VOCAB];
    pith_model *model = open_model();
    pith_adapter *plain_a = open_adapter(model, "lora-a.gguf");
    const int32_t at_20[] = {token(20), token(21)};
    pith_adapter *a = open_activated(model, at_20, 2);
    (void)state;
    reference(model, NULL, 0, NULL, 0, plain);
    parted_reference(model, plain_a, 19, N, parted);
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    feed(session, 0, 10);
    adapt(session, a, 1, NULL, 0);
    assert_int_equal(session->length, 10); /* what the model computed alone stays */
    assert_int_equal(pith_kv_sequence_length(session->kv), 10);
    feed(session, 10, N);
    expect_logits("parted", session, parted);
    assert_int_equal(session->adapters.from, 19);
    /* The invocation once more: only the last one counts, so the rows between are computed anew. */
    int32_t more[3] = {at_20[0], at_20[1], 5};
    assert_int_equal(pith_session_feed(session, more, 3, NULL, NULL), PITH_OK);
    assert_int_equal(session->adapters.from, N - 1);
    memcpy(late, session->logits, sizeof(float) * model->hparams.n_vocab);
    pith_session_cut(session, 0);
    feed(session, 0, N);
    assert_int_equal(session->adapters.from, 19);
    assert_int_equal(pith_session_feed(session, more, 3, NULL, NULL), PITH_OK);
    expect_logits("the same again", session, late);
    adapt(session, NULL, 0, NULL, 0);
    assert_int_equal(session->length, N - 1);
    pith_session_cut(session, 0);
    adapt(session, a, 1, NULL, 0);
    feed(session, 0, 15); /* no invocation: not at all */
    adapt(session, NULL, 0, NULL, 0);
    assert_int_equal(session->length, 15);
    feed(session, 15, N);
    expect_logits("never invoked", session, plain);
    pith_engine_close(engine);
    pith_adapter_release(a);
    pith_adapter_release(plain_a);
    pith_model_free(model);
}

/* The session held its tokens, and their logits, before it had the adapter. */
static void activated_adapters_act_on_what_is_held(void **state) {
    float parted[MAX_VOCAB];
    pith_model *model = open_model();
    pith_adapter *plain_a = open_adapter(model, "lora-a.gguf");
    const int32_t at_20[] = {token(20), token(21)}, nowhere[] = {251};
    pith_adapter *a = open_activated(model, at_20, 2), *b = open_activated(model, nowhere, 1);
    (void)state;
    parted_reference(model, plain_a, 19, N, parted);
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    feed(session, 0, N);
    adapt(session, b, 1, NULL, 0); /* invoked nowhere: nothing changes */
    assert_int_equal(pith_kv_sequence_length(session->kv), N);
    assert_true(session->has_logits);
    adapt(session, a, 1, NULL, 0);
    assert_int_equal(session->length, N);
    assert_int_equal(session->adapters.from, 19);
    assert_int_equal(pith_kv_sequence_length(session->kv), 19);
    assert_false(session->has_logits);
    assert_int_equal(pith_session_feed(session, NULL, 0, NULL, NULL), PITH_OK);
    expect_logits("held", session, parted);
    pith_engine_close(engine);
    pith_adapter_release(a);
    pith_adapter_release(b);
    pith_adapter_release(plain_a);
    pith_model_free(model);
}

static void activated_adapters_are_used_alone(void **state) {
    pith_model *model = open_model();
    const int32_t ids[] = {1};
    pith_adapter *a = open_activated(model, ids, 1), *b = open_adapter(model, "lora-b.gguf");
    pith_adapter *const both[] = {b, a};
    const float scales[] = {0, 1};
    pith_error error;
    (void)state;
    pith_engine *engine = open_engine(model, 1, 0);
    pith_session *session = open_session(engine);
    assert_int_equal(pith_session_adapt(session, both, NULL, 2, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "used alone"));
    assert_int_equal(pith_session_adapt(session, both, scales, 2, &error), PITH_OK);
    pith_engine_close(engine);
    pith_adapter_release(a);
    pith_adapter_release(b);
    pith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switching_leaves_nothing_behind),
        cmocka_unit_test(sessions_of_an_engine_have_their_own),
        cmocka_unit_test(an_adapter_lives_as_long_as_it_is_used),
        cmocka_unit_test(many_adapters_can_be_open_at_once),
        cmocka_unit_test(limits_are_told_and_change_nothing),
        cmocka_unit_test(workspace_is_accounted),
        cmocka_unit_test(a_session_that_makes_a_reply_keeps_its_adapters),
        cmocka_unit_test(activated_adapters_act_from_their_invocation_on),
        cmocka_unit_test(activated_adapters_act_on_what_is_held),
        cmocka_unit_test(activated_adapters_are_used_alone),
    };
    return cmocka_run_group_tests_name("session adapters", tests, NULL, NULL);
}
