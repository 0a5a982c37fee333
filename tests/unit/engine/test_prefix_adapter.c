/* SPDX-License-Identifier: Apache-2.0
 * Promise: prompts that were read with adapters are kept apart from those without, by what the
 * adapters are and by their scales; of an activated adapter's prompt what is the model's alone is
 * shared with everybody. What comes from the disk has the bits of what is computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/reply.h"
#include "support/cache_entries.h"

enum { N_CTX = 256, N = 200 };

typedef struct fixture {
    pith_model *model;
    pith_adapter *a, *b;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
} fixture;

static const char *data_path(const char *name, char path[1024]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/adapter/%s", root ? root : ".", name);
    return path;
}

static pith_adapter *open_adapter(const pith_model *model, const char *name, uint32_t features) {
    char path[1024];
    const pith_adapter_options options = {.size = sizeof options};
    pith_adapter *adapter = NULL;
    assert_int_equal(
        pith_adapter_load(model, data_path(name, path), &options, features, &adapter, NULL),
        PITH_OK);
    return adapter;
}

static void open_fixture(fixture *f, const char *cache) {
    char path[1024];
    pith_gguf *gguf = NULL;
    uint32_t features = 0;
    const pith_engine_options options = {.size = sizeof options,
                                         .n_ctx = N_CTX,
                                         .n_sessions = 1,
                                         .n_threads = 1,
                                         .step_limit = 32,
                                         .exact = true,
                                         .adapter_rank_limit = 64,
                                         .cache_folder = cache};
    assert_int_equal(pith_cpu_features(&features, NULL), PITH_OK);
    assert_int_equal(pith_gguf_open_path(data_path("llama.gguf", path), &gguf, NULL), PITH_OK);
    assert_int_equal(pith_model_load(gguf, NULL, features, &f->model, NULL), PITH_OK);
    f->a = open_adapter(f->model, "lora-a.gguf", features);
    f->b = open_adapter(f->model, "lora-b.gguf", features);
    assert_int_equal(pith_engine_open(f->model, &options, &f->engine, NULL), PITH_OK);
    assert_int_equal(pith_session_open(f->engine, &f->session, NULL), PITH_OK);
    assert_int_equal(pith_sample_new((int32_t)f->model->hparams.n_vocab, NULL, &f->sampler, NULL),
                     PITH_OK);
}

static void close_fixture(fixture *f) {
    pith_sample_free(f->sampler);
    pith_engine_close(f->engine);
    pith_adapter_release(f->a);
    pith_adapter_release(f->b);
    pith_model_free(f->model);
}

static pith_id_span prompt(void) {
    static int32_t ids[N];
    for (size_t i = 0; i < N; i++) ids[i] = (int32_t)((i * 37 + i / 5) % 200);
    return (pith_id_span){ids, N};
}

/* Which adapters, and their scales; 0: not that one. */
typedef struct mixture {
    float a, b;
    size_t invoked; /* a is activated by the two tokens at this place of the prompt; 0: always on */
} mixture;

static void set_mixture(fixture *f, mixture m) {
    pith_adapter *const both[] = {f->a, f->b};
    const float scales[] = {m.a, m.b};
    if (m.invoked) {
        f->a->invocation = pith_alloc_array(2, sizeof(int32_t));
        memcpy(f->a->invocation, prompt().data + m.invoked, 2 * sizeof(int32_t));
        f->a->n_invocation = 2;
    }
    assert_int_equal(pith_session_adapt(f->session, both, scales, 2, NULL), PITH_OK);
}

static pith_generation say(fixture *f, mixture m) {
    const pith_generate_options options = {
        .size = sizeof options, .max_tokens = 4, .ignore_end = true, .draft = PITH_DRAFT_OFF};
    pith_reply *reply = NULL;
    pith_generation made;
    set_mixture(f, m);
    assert_int_equal(pith_reply_open(f->session, f->sampler, prompt(), &options, &reply, NULL),
                     PITH_OK);
    while (!pith_reply_is_made(reply)) pith_engine_advance(f->engine);
    assert_int_equal(pith_reply_outcome(reply, &made, NULL), PITH_OK);
    pith_reply_close(reply);
    return made;
}

static void assert_as_computed(const fixture *f, mixture m) {
    fixture cold;
    open_fixture(&cold, NULL);
    assert_int_equal(say(&cold, m).n_cached, 0);
    assert_int_equal(f->session->length, cold.session->length);
    assert_memory_equal(f->session->ids, cold.session->ids, cold.session->length * sizeof(int32_t));
    assert_memory_equal(f->session->logits, cold.session->logits,
                        f->model->hparams.n_vocab * sizeof(float));
    close_fixture(&cold);
}

static void adapters_and_scales_are_kept_apart(void **state) {
    static const mixture mixtures[] = {{0, 0, 0}, {1, 0, 0}, {0.5f, 0, 0},
                                       {0, 1, 0}, {1, 1, 0}, {1, 0.5f, 0}};
    enum { N_MIXTURES = sizeof mixtures / sizeof mixtures[0] };
    fixture f;
    (void)state;
    for (size_t i = 0; i < N_MIXTURES; i++) {
        open_fixture(&f, folder);
        pith_generation made = say(&f, mixtures[i]);
        assert_int_equal(made.n_cached, 0);
        assert_int_equal(made.cache_miss, i ? PITH_CACHE_MISS_OTHER : PITH_CACHE_MISS_NEW);
        wait_for_entries(i + 1);
        close_fixture(&f);
    }
    for (size_t i = 0; i < N_MIXTURES; i++) {
        open_fixture(&f, folder);
        pith_generation made = say(&f, mixtures[i]);
        assert_int_equal(made.n_cached, N - 1);
        assert_int_equal(made.cache_source, PITH_CACHE_DISK);
        assert_as_computed(&f, mixtures[i]);
        close_fixture(&f);
    }
}

/* In one engine: changing adapters never leaves what another mixture computed. */
static void switching_reads_what_belongs_to_it(void **state) {
    static const mixture mixtures[] = {{1, 0, 0}, {0, 0, 0}, {0, 1, 0}};
    fixture f;
    (void)state;
    open_fixture(&f, folder);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++) {
            pith_session_cut(f.session, 0);
            pith_generation made = say(&f, mixtures[i]);
            assert_int_equal(made.n_cached, round ? N - 1 : 0);
            assert_as_computed(&f, mixtures[i]);
            wait_for_entries(round ? 3 : i + 1);
        }
    }
    close_fixture(&f);
}

/* Tokens before the invocation are the model's alone, whoever stored them. */
static void activated_adapters_share_what_is_before_them(void **state) {
    const mixture plain = {0, 0, 0}, late = {1, 0, 151}, never = {1, 0, 0};
    fixture f;
    (void)state;
    open_fixture(&f, folder);
    say(&f, plain);
    wait_for_entries(1);
    close_fixture(&f);
    open_fixture(&f, folder);
    pith_generation made = say(&f, late);
    assert_int_equal(f.session->adapters.from, 150);
    assert_int_equal(made.n_cached, 149);
    assert_int_equal(made.cache_source, PITH_CACHE_DISK);
    assert_as_computed(&f, late);
    close_fixture(&f);
    for (size_t i = 0; i < 2; i++) remove_one(NULL, i ? "pith-prompts.db" : "e1.kv1");
    open_fixture(&f, folder); /* the other way round */
    assert_int_equal(say(&f, late).n_cached, 0);
    wait_for_entries(1);
    close_fixture(&f);
    open_fixture(&f, folder);
    made = say(&f, plain);
    assert_int_equal(made.n_cached, 150);
    assert_as_computed(&f, plain);
    close_fixture(&f);
    open_fixture(&f, folder); /* always on: nothing of it */
    assert_int_equal(say(&f, never).n_cached, 0);
    close_fixture(&f);
}

static int clean_folder(void **state) {
    (void)state;
    empty_folder("test_prefix_adapter");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(adapters_and_scales_are_kept_apart, clean_folder),
        cmocka_unit_test_setup(switching_reads_what_belongs_to_it, clean_folder),
        cmocka_unit_test_setup(activated_adapters_share_what_is_before_them, clean_folder),
    };
    if (!pith_prefix_index_library()) {
        print_message("skipped: this build has no SQLite\n");
        return 0;
    }
    return cmocka_run_group_tests_name("prompts on disk with adapters", tests, NULL, NULL);
}
