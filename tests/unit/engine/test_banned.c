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

#include "sample/grammar.h"
#include "sample/sampler_internal.h"
#include "support/brief.h"
#include "support/open_engine.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_CTX = 192, N_SESSIONS = 4, N_TOKENS = 40, MOST_TEXT = 8 * N_CTX };

static const char *const goldens[] = {"gemma3.gguf", "llama-q4_0.gguf", NULL};

static int32_t n_ctx = N_CTX;

static void open_fixture(session_group *f, const char *golden, float temperature) {
    char path[1024];
    pith_model *model = open_model_at(strchr(golden, '/') ? golden : golden_path(golden, path));
    if (model->hparams.n_ctx_train < (uint32_t)n_ctx) model->hparams.n_ctx_train = (uint32_t)n_ctx;
    *f = open_group(model, (pith_engine_options){.n_ctx = n_ctx,
                                                 .n_threads = 1,
                                                 .n_sessions = N_SESSIONS,
                                                 .step_limit = 32,
                                                 .exact = true});
    for (int i = 0; i < N_SESSIONS; i++)
        f->samplers[i] = open_sampler(
            model, (pith_sampler_options){.temperature = temperature,
                                          .repeat_penalty = temperature > 0 ? 1.1f : 0,
                                          .xtc_probability = temperature > 0 ? 0.3f : 0,
                                          .seed = (uint64_t)i + 1});
}

static size_t more; /* tokens of every prompt */

static size_t prompt_of(int which, int32_t *ids) {
    size_t n = 9 + (size_t)which * 11 + more;
    fill_prompt(ids, n, which);
    return n;
}

/* What on_text and on_logprobs said. */
typedef struct told {
    char text[MOST_TEXT];
    size_t n_text, n_ids, n_logprobs, stop_at;
    int32_t ids[8 * N_CTX];
    double logprobs[8 * N_CTX];
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

static pith_reply *start(session_group *f, int which, const pith_generate_options *options) {
    int32_t ids[N_CTX];
    pith_reply *reply = NULL;
    pith_error error = {0};
    pith_id_span prompt = {ids, prompt_of(which, ids)};
    if (pith_reply_open(f->sessions[which], f->samplers[which], prompt, options, &reply, &error) !=
        PITH_OK)
        fail_msg("%s", error.text);
    return reply;
}

static void advance(session_group *f) {
    advance_evenly(f->engine);
}

static size_t n_emptied; /* times that KV of a reply's prompt was gone */

static pith_status finish(session_group *f, pith_reply *reply, pith_generation *made,
                          pith_error *error) {
    while (!pith_reply_is_made(reply)) {
        advance(f);
        n_emptied += pith_kv_sequence_length(reply->session->kv) == 0;
    }
    pith_status status = pith_reply_outcome(reply, made, error);
    pith_reply_close(reply);
    return status;
}

/* ---- A plain search ---- */

/* The text of ids and where the bytes of each begin; [n + 1] begins. */
static void text_of(const session_group *f, const int32_t *ids, size_t n, char *text,
                    size_t *begins) {
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

typedef struct pair {
    size_t place;
    int32_t id;
} pair;

static int32_t likeliest(const pith_session *session, const pair *bans, size_t n_bans,
                         size_t place) {
    static bool is_banned[1 << 18];
    size_t n_vocab = session->engine->model->hparams.n_vocab;
    int32_t best = -1;
    assert_true(n_vocab <= sizeof is_banned);
    memset(is_banned, 0, n_vocab);
    for (size_t i = 0; i < n_bans; i++)
        if (bans[i].place == place) is_banned[bans[i].id] = true;
    for (int32_t id = 0; id < (int32_t)n_vocab; id++)
        if (!is_banned[id] && (best < 0 || session->logits[id] > session->logits[best])) best = id;
    return best;
}

/* The session holds the prompt and n ids, with the logits behind them. */
static void bring(pith_session *session, const int32_t *prompt, size_t n_prompt, const int32_t *ids,
                  size_t n) {
    pith_session_cut(session, n_prompt + n - (n > 0));
    if (n == 0) pith_session_cut(session, n_prompt - 1);
    if (session->length < n_prompt)
        assert_int_equal(pith_session_feed(session, prompt + session->length,
                                           n_prompt - session->length, NULL, NULL),
                         PITH_OK);
    for (size_t i = session->length - n_prompt; i < n; i++)
        assert_int_equal(pith_session_feed(session, &ids[i], 1, NULL, NULL), PITH_OK);
}

/* The greedy reply, token by token, each text looked through as a whole. */
static void search(session_group *f, int which, const char *const *banned, size_t n_banned,
                   found *out) {
    static pair bans[4096];
    size_t begins[N_CTX + 1], n = 0, n_bans = 0;
    int32_t prompt[N_CTX];
    pith_session *session = f->sessions[which];
    size_t n_prompt = prompt_of(which, prompt);
    *out = (found){0};
    pith_session_cut(session, 0);
    while (n < N_TOKENS) {
        bring(session, prompt, n_prompt, out->ids, n);
        int32_t best = likeliest(session, bans, n_bans, n);
        out->is_stuck = best < 0;
        if (best < 0) break;
        out->ids[n++] = best;
        text_of(f, out->ids, n, out->text, begins);
        long begin = first_banned(out->text, banned, n_banned);
        if (begin < 0) continue;
        size_t back = n - 1, kept = 0;
        while (back > 0 && (long)begins[back] > begin) back--;
        for (size_t i = 0; i < n_bans; i++)
            if (bans[i].place <= back) bans[kept++] = bans[i];
        bans[kept] = (pair){back, out->ids[back]};
        n_bans = kept + 1;
        assert_true(n_bans < sizeof bans / sizeof *bans);
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
    for (size_t at = stride; at + size <= length && n < 5; at++) {
        if ((text[at] & 0xC0) == 0x80 || (text[at + size] & 0xC0) == 0x80) continue;
        memcpy(out[n], text + at, size);
        out[n][size] = 0;
        banned[n] = out[n];
        n++;
        at += stride - 1;
    }
    return n;
}

/* Replies to prompt `which` without and with guesses are what the search found. */
static void compare(session_group *f, int which, const char *const *banned, size_t n,
                    const found *expected, pith_generation sums[2]) {
    for (int draft = PITH_DRAFT_OFF; draft <= PITH_DRAFT_NGRAM; draft++) {
        static told t;
        pith_generation made;
        pith_session *session = f->sessions[which];
        pith_generate_options options = plain(&t);
        options.banned = banned, options.n_banned = n;
        options.draft = (pith_draft)draft;
        pith_session_cut(session, 0);
        assert_int_equal(finish(f, start(f, which, &options), &made, NULL), PITH_OK);
        assert_int_equal(made.n_predicted, N_TOKENS);
        assert_int_equal(made.stop, PITH_STOP_LENGTH);
        const int32_t *ids = session->ids + session->length - N_TOKENS;
        assert_memory_equal(ids, expected->ids, N_TOKENS * sizeof *ids);
        assert_int_equal(made.n_rewinds, expected->n_rewinds);
        assert_int_equal(t.n_ids, N_TOKENS);
        assert_int_equal(t.n_logprobs, N_TOKENS);
        assert_memory_equal(t.ids, expected->ids, N_TOKENS * sizeof *ids);
        assert_int_equal(pith_kv_sequence_length(session->kv), session->length - 1);
        assert_true(strncmp(t.text, expected->text, strlen(expected->text)) == 0);
        assert_true(first_banned(t.text, banned, n) < 0);
        sums[0].n_rewinds += made.n_rewinds;
        sums[0].n_draft_accepted += made.n_draft_accepted;
        sums[0].n_predicted++;
    }
}

static void a_plain_search_finds_the_same(void **state) {
    pith_generation sums[2] = {{0}};
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        session_group f;
        open_fixture(&f, goldens[g], 0);
        for (int which = 0; which < N_SESSIONS; which += test_is_brief() ? 2 : 1) {
            static found free_text, expected;
            search(&f, which, NULL, 0, &free_text);
            for (size_t size = 1; size <= 4; size++) {
                char strings[5][8];
                const char *banned[5];
                size_t n = strings_of(free_text.text, size, 3 + 2 * size, strings, banned);
                if (n == 0) continue;
                search(&f, which, banned, n, &expected);
                if (!expected.is_stuck) compare(&f, which, banned, n, &expected, sums);
            }
        }
        close_group(&f);
    }
    print_message("%zu replies, %zu returns, %zu guesses right\n", sums->n_predicted,
                  sums->n_rewinds, sums->n_draft_accepted);
    assert_true(sums->n_predicted > 20 && sums->n_rewinds > 100 && sums->n_draft_accepted > 20);
}

/* The same with a vocabulary of words, where strings lie in and across tokens. */
static void words_too(void **state) {
    const char *folder = getenv("PITH_TEST_MODELS");
    char path[1024];
    session_group f;
    pith_generation sums[2] = {{0}};
    (void)state;
    snprintf(path, sizeof path, "%s/smollm2-135m-q4_1.gguf", folder ? folder : "");
    FILE *there = fopen(path, "rb");
    if (!there) {
        print_message("PITH_TEST_MODELS has no smollm2-135m-q4_1.gguf: no vocabulary of words\n");
        skip();
    }
    fclose(there);
    open_fixture(&f, path, 0);
    for (int which = 0; which < 2; which++) {
        static found free_text, expected;
        search(&f, which, NULL, 0, &free_text);
        for (size_t size = 2; size <= 6; size += 2) {
            char strings[5][8];
            const char *banned[5];
            size_t n = strings_of(free_text.text, size, 7, strings, banned);
            search(&f, which, banned, n, &expected);
            if (!expected.is_stuck) compare(&f, which, banned, n, &expected, sums);
        }
    }
    close_group(&f);
    print_message("%zu replies, %zu returns, %zu guesses right\n", sums->n_predicted,
                  sums->n_rewinds, sums->n_draft_accepted);
    assert_true(sums->n_rewinds > 10);
}

/* Returns across the place where a block leaves the window: what was dropped is read again, to the
 * same bits. */
static void windows_are_read_again(void **state) {
    enum {
        WINDOW = 8,
        LEAVES = 2 * 64 + WINDOW - 1
    }; /* the position that no longer sees a block */
    pith_generation sums[2] = {{0}};
    (void)state;
    session_group f;
    open_fixture(&f, goldens[0], 0);
    n_emptied = 0;
    for (more = 94; more < 124; more++) {
        static found free_text, expected;
        size_t begins[N_CTX + 1], size;
        char text[MOST_TEXT], string[8] = "";
        const char *banned[1] = {string};
        search(&f, 0, NULL, 0, &free_text);
        text_of(&f, free_text.ids, N_TOKENS, text, begins);
        size_t first = LEAVES - 2 - (9 + more);
        size = begins[first + 4] - begins[first];
        if (size == 0 || size > 7) continue;
        memcpy(string, text + begins[first], size);
        search(&f, 0, banned, 1, &expected);
        if (!expected.is_stuck) compare(&f, 0, banned, 1, &expected, sums);
    }
    more = 0;
    close_group(&f);
    print_message("%zu replies, %zu returns, %zu times read again\n", sums->n_predicted,
                  sums->n_rewinds, n_emptied);
    assert_true(n_emptied > 2);
}

/* ---- Sampled ---- */

typedef struct sampled {
    told t;
    int32_t ids[N_CTX], next[8]; /* next: a second reply of the same sampler */
    pith_generation made;
} sampled;

static void sample(const char *golden, int which, pith_draft draft,
                   const pith_generate_options *given, sampled *out) {
    session_group f;
    open_fixture(&f, golden, 0.7f);
    pith_generate_options options = plain(&out->t);
    options.banned = given->banned, options.n_banned = given->n_banned;
    options.stops = given->stops, options.n_stops = given->n_stops;
    options.overflow = given->overflow, options.n_keep = given->n_keep;
    if (given->max_tokens) options.max_tokens = given->max_tokens;
    options.draft = draft;
    out->t.stop_at = given->user ? *(size_t *)given->user : 0;
    pith_session *session = f.sessions[which];
    assert_int_equal(finish(&f, start(&f, which, &options), &out->made, NULL), PITH_OK);
    size_t n = out->made.n_predicted < session->length ? out->made.n_predicted : session->length;
    memcpy(out->ids, session->ids + session->length - n, n * sizeof *out->ids);
    assert_int_equal(pith_kv_sequence_length(session->kv), session->length - 1);
    pith_generation second;
    options = plain(NULL);
    options.max_tokens = 8;
    pith_session_cut(session, 0);
    assert_int_equal(finish(&f, start(&f, which, &options), &second, NULL), PITH_OK);
    memcpy(out->next, session->ids + session->length - 8, sizeof out->next);
    close_group(&f);
}

static void assert_same(const sampled *a, const sampled *b) {
    size_t n = a->t.n_ids;
    assert_int_equal(a->made.stop, b->made.stop);
    assert_int_equal(a->made.n_predicted, b->made.n_predicted);
    assert_int_equal(a->made.n_rewinds, b->made.n_rewinds);
    assert_int_equal(n, b->t.n_ids);
    assert_memory_equal(a->t.ids, b->t.ids, n * sizeof *a->ids);
    assert_memory_equal(a->ids, b->ids, sizeof *a->ids * (n < N_CTX / 2 ? n : N_CTX / 2));
    assert_memory_equal(a->t.logprobs, b->t.logprobs, n * sizeof *a->t.logprobs);
    assert_string_equal(a->t.text, b->t.text);
    assert_memory_equal(a->next, b->next, sizeof a->next);
}

/* With banned strings, stop strings, a caller that stops, a full context: whatever ends a reply. */
static void guesses_change_nothing(void **state) {
    enum { VARIANTS = 8 };
    size_t n_rewinds = 0, n_accepted = 0, n_stopped = 0;
    (void)state;
    for (int i = 0; i < 2 * N_SESSIONS * VARIANTS; i++) {
        static sampled free_text, without, with;
        const char *golden = goldens[i / VARIANTS % 2], *banned[5], *stops[5];
        int which = i / VARIANTS / 2, variant = i % VARIANTS;
        char strings[5][8], others[5][8];
        size_t stop_at = 9 + (size_t)variant;
        pith_generate_options options = {0};
        if (test_is_brief() && which != 2 * (i / VARIANTS % 2)) continue;
        if (variant == 0) sample(golden, which, PITH_DRAFT_OFF, &options, &free_text);
        size_t size = 1 + (size_t)variant % 4;
        options.n_banned = strings_of(free_text.t.text, size, 3 + size, strings, banned);
        options.banned = banned;
        if (variant % 3 == 1) {
            options.n_stops = strings_of(free_text.t.text + 20, size, 4, others, stops);
            options.stops = stops;
        }
        if (variant % 3 == 2) options.user = &stop_at;
        if (variant >= 6) options.overflow = PITH_OVERFLOW_SHIFT, options.max_tokens = 250;
        sample(golden, which, PITH_DRAFT_OFF, &options, &without);
        sample(golden, which, PITH_DRAFT_NGRAM, &options, &with);
        assert_same(&with, &without);
        assert_true(first_banned(with.t.text, banned, options.n_banned) < 0);
        assert_true(with.made.stop != PITH_STOP_CALLBACK || with.t.n_ids == stop_at);
        assert_int_equal(with.made.n_predicted, with.t.n_ids); /* each that stays was told */
        n_rewinds += with.made.n_rewinds;
        n_accepted += with.made.n_draft_accepted;
        n_stopped += with.made.stop != PITH_STOP_LENGTH;
    }
    print_message("%zu returns, %zu guesses right, %zu stopped\n", n_rewinds, n_accepted,
                  n_stopped);
    assert_true(n_rewinds > 100 && n_accepted > 50 && n_stopped > 5);
}

/* Every length of a reply, so that it ends in the middle of what waits. */
static void max_tokens_counts_what_stays(void **state) {
    (void)state;
    static sampled whole, part;
    static const char *const banned[] = {"never made, but its start is e", "@@@@@@@@"};
    pith_generate_options options = {.banned = banned, .n_banned = 2};
    sample(goldens[0], 1, PITH_DRAFT_NGRAM, &options, &whole);
    for (int32_t n = 1; n < N_TOKENS; n += test_is_brief() ? 3 : 1) {
        options.max_tokens = n;
        sample(goldens[0], 1, PITH_DRAFT_NGRAM, &options, &part);
        assert_int_equal(part.made.n_predicted, n);
        assert_int_equal(part.t.n_ids, n);
        assert_memory_equal(part.ids, whole.ids, (size_t)n * sizeof *part.ids);
    }
}

static void the_same_beside_others(void **state) {
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        session_group f;
        static sampled expected[N_SESSIONS];
        static told t[N_SESSIONS];
        static char strings[N_SESSIONS][5][8];
        const char *banned[N_SESSIONS][5];
        pith_reply *replies[N_SESSIONS];
        pith_generate_options options[N_SESSIONS];
        size_t n_rewinds = 0;
        for (int s = 0; s < N_SESSIONS; s++) {
            options[s] = (pith_generate_options){0};
            sample(goldens[g], s, PITH_DRAFT_OFF, &options[s], &expected[s]);
            size_t n = strings_of(expected[s].t.text, s % 2 ? 3 : 1, 3, strings[s], banned[s]);
            options[s].banned = banned[s], options[s].n_banned = n;
            sample(goldens[g], s, PITH_DRAFT_OFF, &options[s], &expected[s]);
        }
        open_fixture(&f, goldens[g], 0.7f);
        for (int s = 0; s < N_SESSIONS; s++) {
            pith_generate_options own = plain(&t[s]);
            own.banned = options[s].banned, own.n_banned = options[s].n_banned;
            replies[s] = start(&f, s, &own);
        }
        for (int s = 0; s < N_SESSIONS; s++) {
            pith_generation made;
            assert_int_equal(finish(&f, replies[s], &made, NULL), PITH_OK);
            assert_int_equal(made.n_rewinds, expected[s].made.n_rewinds);
            assert_string_equal(t[s].text, expected[s].t.text);
            assert_memory_equal(t[s].ids, expected[s].t.ids, N_TOKENS * sizeof *t[s].ids);
            n_rewinds += made.n_rewinds;
        }
        assert_true(n_rewinds > 5);
        close_group(&f);
    }
}

/* ---- No way on ---- */

enum { LONG = 150 };

static pith_status fail_with(const char *const *banned, size_t n, const char *gbnf,
                             pith_error *error, told *t) {
    session_group f;
    pith_generation made;
    pith_grammar *grammar = NULL;
    pith_generate_options options = plain(t);
    pith_logit_bias bias = {'a', -1e6f}; /* only where nothing else may come */
    pith_sampler_options sampling = {.size = sizeof sampling, .biases = &bias, .n_biases = 1};
    open_fixture(&f, goldens[0], 0);
    pith_sample_free(f.samplers[0]);
    assert_int_equal(
        pith_sample_new((int32_t)f.model->hparams.n_vocab, &sampling, &f.samplers[0], NULL),
        PITH_OK);
    if (gbnf)
        assert_int_equal(pith_grammar_from_gbnf(gbnf, strlen(gbnf), NULL, &grammar, error),
                         PITH_OK);
    options.banned = banned, options.n_banned = n;
    options.grammar = grammar;
    options.draft = PITH_DRAFT_NGRAM;
    options.max_tokens = LONG;
    pith_status status = finish(&f, start(&f, 0, &options), &made, error);
    pith_grammar_drop(grammar);
    close_group(&f);
    return status;
}

static void a_grammar_and_bans(void **state) {
    (void)state;
    static told t;
    pith_error error = {0};
    const char *const two[] = {"red", "gre"}, *const all[] = {"red", "en", "blu"};
    const char *gbnf = "root ::= \"the \" (\"red\" | \"green\" | \"blue\") \" car\"";
    assert_int_equal(fail_with(two, 2, gbnf, &error, &t), PITH_OK);
    assert_true(strncmp(t.text, "the blue car", 12) == 0);
    /* "green" is met at its end, and all of it goes with its first letter. */
    assert_int_equal(fail_with(all, 3, gbnf, &error, &t), PITH_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "banned strings stopped the reply"));
    assert_true(first_banned(t.text, all, 3) < 0);
}

static void no_way_on_fails(void **state) {
    (void)state;
    static told t;
    static char strings[64][2];
    const char *banned[64];
    pith_error error = {0};
    for (int i = 0; i < 64; i++) {
        strings[i][0] = (char)(i + 33);
        banned[i] = strings[i];
    }
    const char *gbnf = "root ::= [!-`]+";
    assert_int_equal(fail_with(banned, 64, gbnf, &error, &t), PITH_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "after 0 tokens"));
    assert_int_equal(t.n_text, 0);
}

/* A place where the reply comes to banned strings over and over, while all before it wait, too. */
static void too_many_returns_fail(void **state) {
    (void)state;
    static told t;
    static char strings[26][2], waits[PITH_BANNED_MAX_BYTES + 1];
    const char *banned[27];
    pith_error error = {0};
    for (int i = 0; i < 26; i++) {
        strings[i][0] = (char)('A' + i);
        banned[i] = strings[i];
    }
    memset(waits, 'a', PITH_BANNED_MAX_BYTES);
    banned[26] = waits;
    assert_int_equal(fail_with(banned, 27, "root ::= [A-Za]{200}", &error, &t), PITH_ERROR_LIMIT);
    assert_non_null(strstr(error.text, "256 times"));
    assert_int_equal(t.n_ids, 0);
    /* Without what makes them wait, each is told and the count begins anew. */
    assert_int_equal(fail_with(banned, 26, "root ::= [A-Za]{200}", &error, &t), PITH_OK);
    assert_int_equal(t.n_ids, LONG);
    assert_true(strspn(t.text, "a") == LONG);
}

/* Tokens without text that wait behind the start of a banned string: at most PITH_UNTOLD_MAX. */
static void what_waits_is_bounded(void **state) {
    (void)state;
    enum { BOS = 256 };
    static told t;
    static const char *const banned[] = {"ab"};
    session_group f;
    pith_generation made;
    pith_logit_bias bias = {'a', 1e6f};
    pith_sampler_options sampling = {.size = sizeof sampling, .biases = &bias, .n_biases = 1};
    pith_generate_options options = plain(&t);
    n_ctx = 1024;
    open_fixture(&f, goldens[1], 0);
    n_ctx = N_CTX;
    options.show_control = false;
    options.banned = banned, options.n_banned = 1;
    options.max_tokens = PITH_UNTOLD_MAX + 100;
    pith_sample_free(f.samplers[0]);
    assert_int_equal(
        pith_sample_new((int32_t)f.model->hparams.n_vocab, &sampling, &f.samplers[0], NULL),
        PITH_OK);
    assert_int_equal(pith_tokenizer_type(f.model->tokenizer, BOS), PITH_TOKEN_CONTROL);
    pith_reply *reply = start(&f, 0, &options);
    advance(&f);
    for (size_t i = 1; i < PITH_UNTOLD_MAX + 50; i++) {
        f.samplers[0]->biases[0].id = BOS;
        assert_int_equal(reply->out.n_predicted, i);
        assert_int_equal(t.n_ids, i < PITH_UNTOLD_MAX ? 0 : i - PITH_UNTOLD_MAX + 1);
        assert_int_equal(t.n_text, 0);
        advance(&f);
    }
    f.samplers[0]->biases[0].id = 'b';
    size_t n_before = t.n_ids;
    advance(&f); /* "ab": back to the oldest that waits, which has no text */
    assert_int_equal(reply->out.n_predicted, n_before);
    assert_int_equal(reply->out.n_rewinds, 1);
    assert_int_equal(f.sessions[0]->length, 9 + n_before);
    f.samplers[0]->biases[0].id = 'c';
    assert_int_equal(finish(&f, reply, &made, NULL), PITH_OK);
    assert_int_equal(made.stop, PITH_STOP_LENGTH);
    assert_true(strncmp(t.text, "accc", 4) == 0);
    assert_int_equal(t.n_ids, options.max_tokens);
    close_group(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_search_finds_the_same),
        cmocka_unit_test(words_too),
        cmocka_unit_test(windows_are_read_again),
        cmocka_unit_test(guesses_change_nothing),
        cmocka_unit_test(max_tokens_counts_what_stays),
        cmocka_unit_test(the_same_beside_others),
        cmocka_unit_test(a_grammar_and_bans),
        cmocka_unit_test(no_way_on_fails),
        cmocka_unit_test(too_many_returns_fail),
        cmocka_unit_test(what_waits_is_bounded),
    };
    return cmocka_run_group_tests_name("banned strings", tests, NULL, NULL);
}
