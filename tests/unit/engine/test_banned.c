/* SPDX-License-Identifier: Apache-2.0
 * Promise: a reply never contains a banned string, and nothing of one is ever told; it is what a
 * plain search finds that bans the token in which a string begins and goes on from there; ids, text,
 * log-probabilities and the sampler's state are the same with and without guesses, alone and beside
 * others; where there is no way on the reply fails and says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "engine/reply.h"
#include "support/changed_model.h"

enum { N_CTX = 192, N_SESSIONS = 4, N_TOKENS = 40, MOST_TEXT = 8 * N_CTX };

static const char *const goldens[] = {"gemma3.gguf", "llama-q4_0.gguf", NULL};

typedef struct fixture {
    pith_model *model;
    pith_engine *engine;
    pith_session *sessions[N_SESSIONS];
    pith_sampler *samplers[N_SESSIONS];
} fixture;

static void open_fixture(fixture *f, const char *golden, float temperature) {
    char path[1024];
    pith_gguf *gguf = NULL;
    uint32_t features = 0;
    pith_error error = {0};
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = N_CTX,
                                   .n_threads = 1,
                                   .n_sessions = N_SESSIONS,
                                   .step_limit = 32,
                                   .exact = true};
    *f = (fixture){0};
    assert_int_equal(pith_cpu_features(&features, &error), PITH_OK);
    assert_int_equal(pith_gguf_open_path(golden_path(golden, path), &gguf, &error), PITH_OK);
    assert_int_equal(pith_model_load(gguf, NULL, features, &f->model, &error), PITH_OK);
    assert_int_equal(pith_engine_open(f->model, &options, &f->engine, &error), PITH_OK);
    for (int i = 0; i < N_SESSIONS; i++) {
        pith_sampler_options sampling = {.size = sizeof sampling,
                                         .temperature = temperature,
                                         .repeat_penalty = temperature > 0 ? 1.1f : 0,
                                         .xtc_probability = temperature > 0 ? 0.3f : 0,
                                         .seed = (uint64_t)i + 1};
        assert_int_equal(pith_session_open(f->engine, &f->sessions[i], &error), PITH_OK);
        assert_int_equal(
            pith_sample_new((int32_t)f->model->hparams.n_vocab, &sampling, &f->samplers[i], &error),
            PITH_OK);
    }
}

static void close_fixture(fixture *f) {
    for (int i = 0; i < N_SESSIONS; i++) pith_sample_free(f->samplers[i]);
    pith_engine_close(f->engine);
    pith_model_free(f->model);
}

static size_t prompt_of(int which, int32_t *ids) {
    size_t n = 9 + (size_t)which * 11;
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(60 + (i * 7 + (size_t)which * 31) % 50);
    return n;
}

/* What on_text and on_logprobs said. */
typedef struct told {
    char text[MOST_TEXT];
    size_t n_text, n_ids, n_logprobs, stop_at;
    int32_t ids[2 * N_CTX];
    double logprobs[2 * N_CTX];
} told;

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    told *t = user;
    assert_true(t->n_text + size < MOST_TEXT);
    memcpy(t->text + t->n_text, text, size);
    t->n_text += size;
    t->text[t->n_text] = 0;
    if (id < 0) return 0;
    t->ids[t->n_ids++] = id;
    return t->n_ids == t->stop_at;
}

static void on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    told *t = user;
    (void)id, (void)top, (void)n_top;
    assert_int_equal(t->n_logprobs, t->n_ids); /* right before its text */
    t->logprobs[t->n_logprobs++] = logprob;
}

static pith_generate_options plain(told *t) {
    if (t) *t = (told){0};
    return (pith_generate_options){.size = sizeof(pith_generate_options),
                                   .max_tokens = N_TOKENS,
                                   .ignore_end = true,
                                   .show_control = true,
                                   .draft = PITH_DRAFT_OFF,
                                   .on_text = t ? on_text : NULL,
                                   .user = t,
                                   .on_logprobs = t ? on_logprobs : NULL,
                                   .logprobs_user = t};
}

static pith_reply *start(fixture *f, int which, const pith_generate_options *options) {
    int32_t ids[N_CTX];
    pith_reply *reply = NULL;
    pith_error error = {0};
    pith_id_span prompt = {ids, prompt_of(which, ids)};
    if (pith_reply_open(f->sessions[which], f->samplers[which], prompt, options, &reply, &error) !=
        PITH_OK)
        fail_msg("%s", error.text);
    return reply;
}

/* Steps of any rows take the same: guesses are made however fast the machine is. */
static void advance(fixture *f) {
    for (int i = 1; i <= PITH_PACE_ROWS; i++) f->engine->pace.ns[i] = 1e9;
    pith_engine_advance(f->engine);
}

static pith_status finish(fixture *f, pith_reply *reply, pith_generation *made, pith_error *error) {
    while (!pith_reply_is_made(reply)) advance(f);
    pith_status status = pith_reply_outcome(reply, made, error);
    pith_reply_close(reply);
    return status;
}

/* ---- A plain search ---- */

/* The text of ids and where the bytes of each begin; [n + 1] begins. */
static void text_of(const fixture *f, const int32_t *ids, size_t n, char *text, size_t *begins) {
    pith_detok detok;
    size_t size = 0;
    pith_detok_init(&detok, f->model->tokenizer, true);
    detok.started = true;
    for (size_t i = 0; i < n; i++) {
        begins[i] = size + detok.n_pending;
        pith_span piece = pith_detok_push(&detok, ids[i]);
        memcpy(text + size, piece.data, piece.size);
        size += piece.size;
    }
    begins[n] = size + detok.n_pending;
    text[size] = 0;
    pith_detok_deinit(&detok);
}

/* Where the banned string that ends first begins; -1: there is none. */
static long first_banned(const char *text, const char *const *banned, size_t n) {
    long begin = -1, end = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = strstr(text, banned[i]);
        if (!at) continue;
        long b = (long)(at - text), e = b + (long)strlen(banned[i]);
        if (begin < 0 || e < end || (e == end && b < begin)) begin = b, end = e;
    }
    return begin;
}

typedef struct found {
    int32_t ids[N_CTX];
    char text[MOST_TEXT];
    size_t n_rewinds;
    bool is_stuck;
} found;

/* The greedy reply, token by token, each text looked through as a whole. */
static void search(fixture *f, int which, const char *const *banned, size_t n_banned, found *out) {
    static bool is_banned[N_CTX][512];
    size_t begins[N_CTX + 1], n = 0, n_vocab = f->model->hparams.n_vocab;
    int32_t prompt[N_CTX];
    pith_session *session = f->sessions[which];
    size_t n_prompt = prompt_of(which, prompt);
    assert_true(n_vocab <= 512);
    memset(is_banned, 0, sizeof is_banned);
    *out = (found){0};
    while (n < N_TOKENS && !out->is_stuck) {
        int32_t best = -1;
        pith_session_cut(session, 0);
        assert_int_equal(pith_session_feed(session, prompt, n_prompt, NULL, NULL), PITH_OK);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(pith_session_feed(session, &out->ids[i], 1, NULL, NULL), PITH_OK);
        for (int32_t id = 0; id < (int32_t)n_vocab; id++)
            if (!is_banned[n][id] && (best < 0 || session->logits[id] > session->logits[best]))
                best = id;
        out->is_stuck = best < 0;
        if (best < 0) break;
        out->ids[n++] = best;
        text_of(f, out->ids, n, out->text, begins);
        long begin = first_banned(out->text, banned, n_banned);
        if (begin < 0) continue;
        size_t back = n - 1;
        while (back > 0 && (long)begins[back] > begin) back--;
        for (size_t i = back + 1; i < N_CTX; i++) memset(is_banned[i], 0, sizeof is_banned[i]);
        is_banned[back][out->ids[back]] = true;
        n = back;
        out->n_rewinds++;
    }
    text_of(f, out->ids, n, out->text, begins);
    pith_session_cut(session, 0);
}

/* ---- Tests ---- */

/* Strings from the reply itself, so that they are met: `n` of `size` bytes, whole characters. */
static size_t strings_of(const char *text, size_t size, size_t stride, char (*out)[8],
                         const char **banned) {
    size_t n = 0, length = strlen(text);
    for (size_t at = stride; at + size <= length && n < 5; at += stride) {
        uint32_t code;
        if (pith_utf8_decode(text + at, length - at, &code) == 0 || code == PITH_UTF8_INVALID)
            continue;
        if ((text[at] & 0xC0) == 0x80 || (text[at + size] & 0xC0) == 0x80) continue;
        memcpy(out[n], text + at, size);
        out[n][size] = 0;
        banned[n] = out[n];
        n++;
    }
    return n;
}

static void a_plain_search_finds_the_same(void **state) {
    size_t n_rewinds = 0, n_accepted = 0, n_cases = 0;
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        fixture f;
        open_fixture(&f, goldens[g], 0);
        for (int which = 0; which < N_SESSIONS; which++) {
            static found free_text, expected;
            search(&f, which, NULL, 0, &free_text);
            for (size_t size = 1; size <= 4; size++) {
                char strings[5][8];
                const char *banned[5];
                static told t;
                pith_generation made;
                size_t n = strings_of(free_text.text, size, 3 + 2 * size, strings, banned);
                if (n == 0) continue;
                search(&f, which, banned, n, &expected);
                if (expected.is_stuck) continue;
                for (int draft = PITH_DRAFT_OFF; draft <= PITH_DRAFT_NGRAM; draft++) {
                    pith_session *session = f.sessions[which];
                    pith_generate_options options = plain(&t);
                    options.banned = banned, options.n_banned = n;
                    options.draft = (pith_draft)draft;
                    pith_session_cut(session, 0);
                    assert_int_equal(finish(&f, start(&f, which, &options), &made, NULL), PITH_OK);
                    assert_int_equal(made.n_predicted, N_TOKENS);
                    assert_int_equal(made.stop, PITH_STOP_LENGTH);
                    const int32_t *ids = session->ids + session->length - N_TOKENS;
                    assert_memory_equal(ids, expected.ids, N_TOKENS * sizeof *ids);
                    assert_int_equal(made.n_rewinds, expected.n_rewinds);
                    assert_int_equal(t.n_ids, N_TOKENS);
                    assert_memory_equal(t.ids, expected.ids, N_TOKENS * sizeof *ids);
                    assert_int_equal(pith_kv_sequence_length(session->kv), session->length - 1);
                    assert_true(strncmp(t.text, expected.text, strlen(expected.text)) == 0);
                    assert_true(first_banned(t.text, banned, n) < 0);
                    n_rewinds += made.n_rewinds;
                    n_accepted += made.n_draft_accepted;
                    n_cases++;
                }
            }
        }
        close_fixture(&f);
    }
    print_message("%zu replies, %zu returns, %zu guesses right\n", n_cases, n_rewinds, n_accepted);
    assert_true(n_cases > 20 && n_rewinds > 100 && n_accepted > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_search_finds_the_same),
    };
    return cmocka_run_group_tests_name("banned strings", tests, NULL, NULL);
}
