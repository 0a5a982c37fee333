/* SPDX-License-Identifier: Apache-2.0
 * Promise: replies that share steps are, with the exact contract, what each is alone; none waits
 * for another's prompt; they join and leave at any step; a session taken over from another gives
 * the same reply; guesses, from the text or a model, never change what is drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/brief.h"
#include "support/open_engine.h"

enum { N_CTX = 160, N_SESSIONS = 6, N_TOKENS = 24 };

static const char *const goldens[] = {"gemma3.gguf", "llama-q4_0.gguf", NULL};

static void open_fixture(session_group *f, const char *golden, float temperature) {
    *f = open_group(open_golden(golden), (pith_engine_options){.n_ctx = N_CTX,
                                                               .n_threads = 2,
                                                               .n_sessions = N_SESSIONS,
                                                               .step_limit = 16,
                                                               .exact = true});
    for (int i = 0; i < N_SESSIONS; i++)
        f->samplers[i] = open_sampler(
            f->model, (pith_sampler_options){.temperature = temperature,
                                             .repeat_penalty = temperature > 0 ? 1.1f : 0,
                                             .seed = (uint64_t)i + 1});
}

/* Prompts of different lengths (11, 24, 37, ...) that share no beginning. */
static size_t prompt_of(int which, int32_t *ids) {
    size_t n = 11 + (size_t)which * 13;
    fill_prompt(ids, n, which);
    return n;
}

static pith_reply *start(session_group *f, int session, int which, pith_generate_options options) {
    int32_t ids[N_CTX];
    pith_reply *reply = NULL;
    pith_error error = {0};
    pith_id_span prompt = {ids, prompt_of(which, ids)};
    options.size = sizeof options;
    options.ignore_end = true;
    if (pith_reply_open(f->sessions[session], f->samplers[session], prompt, &options, &reply,
                        &error) != PITH_OK)
        fail_msg("%s", error.text);
    return reply;
}

static pith_generation finish(session_group *f, pith_reply *reply) {
    pith_generation made;
    while (!pith_reply_is_made(reply)) pith_engine_advance(f->engine);
    assert_int_equal(pith_reply_outcome(reply, &made, NULL), PITH_OK);
    pith_reply_close(reply);
    return made;
}

static const pith_generate_options plain = {.max_tokens = N_TOKENS, .draft = PITH_DRAFT_OFF};

/* The reply to prompt `which` alone, with the sampler of session `which`. */
static void alone(const char *golden, float temperature, int which, int32_t *made) {
    session_group f;
    open_fixture(&f, golden, temperature);
    finish(&f, start(&f, which, which, plain));
    const pith_session *session = f.sessions[which];
    memcpy(made, session->ids + session->length - N_TOKENS, N_TOKENS * sizeof *made);
    close_group(&f);
}

static void assert_last(const pith_session *session, const int32_t *made) {
    assert_memory_equal(session->ids + session->length - N_TOKENS, made, N_TOKENS * sizeof *made);
}

static void together_as_alone(void **state) {
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        for (int hot = 0; hot < 2; hot++) {
            float temperature = hot ? 0.9f : 0;
            int32_t expected[N_SESSIONS][N_TOKENS];
            pith_reply *replies[N_SESSIONS];
            session_group f;
            for (int i = 0; i < N_SESSIONS; i++) alone(goldens[g], temperature, i, expected[i]);
            open_fixture(&f, goldens[g], temperature);
            for (int i = 0; i < N_SESSIONS; i++) { /* each joins some steps after the other */
                replies[i] = start(&f, i, i, plain);
                for (int k = 0; k < i; k++) pith_engine_advance(f.engine);
            }
            for (int i = 0; i < N_SESSIONS; i++) {
                pith_generation made = finish(&f, replies[i]);
                assert_int_equal(made.stop, PITH_STOP_LENGTH);
                assert_int_equal(made.n_predicted, N_TOKENS);
                assert_last(f.sessions[i], expected[i]);
            }
            assert_int_equal(f.engine->n_replies, 0);
            close_group(&f);
        }
    }
}

static void no_reply_waits_for_a_prompt(void **state) {
    session_group f;
    pith_generation made;
    (void)state;
    open_fixture(&f, goldens[0], 0);
    pith_reply *first = start(&f, 0, 0, plain);
    while (first->phase == PITH_REPLY_READING) pith_engine_advance(f.engine);
    pith_reply *others[N_SESSIONS];
    for (int i = 1; i < N_SESSIONS; i++) others[i] = start(&f, i, i, plain);
    size_t before = first->out.n_predicted;
    for (size_t i = 1; !pith_reply_is_made(first); i++) {
        pith_engine_advance(f.engine);
        assert_int_equal(first->out.n_predicted, before + i);
    }
    assert_int_equal(pith_reply_outcome(first, &made, NULL), PITH_OK);
    pith_reply_close(first);
    for (int i = 1; i < N_SESSIONS; i++) finish(&f, others[i]);
    close_group(&f);
}

/* More replies than a step has rows: all get on, in turn. */
static void a_small_step_goes_round(void **state) {
    session_group f;
    pith_reply *replies[N_SESSIONS];
    int32_t expected[N_SESSIONS][N_TOKENS];
    (void)state;
    for (int i = 0; i < N_SESSIONS; i++) alone(goldens[0], 0, i, expected[i]);
    open_fixture(&f, goldens[0], 0);
    f.engine->step_limit = 4;
    for (int i = 0; i < N_SESSIONS; i++) replies[i] = start(&f, i, i, plain);
    for (int step = 0; step < 400; step++) pith_engine_advance(f.engine);
    for (int i = 0; i < N_SESSIONS; i++) {
        assert_true(pith_reply_is_made(replies[i]));
        finish(&f, replies[i]);
        assert_last(f.sessions[i], expected[i]);
    }
    close_group(&f);
}

static void leaving_disturbs_nobody(void **state) {
    session_group f;
    int32_t expected[N_TOKENS];
    pith_generation made;
    (void)state;
    alone(goldens[0], 0, 2, expected);
    open_fixture(&f, goldens[0], 0);
    pith_reply *freed = start(&f, 0, 0, plain), *closed = start(&f, 1, 5, plain);
    pith_reply *stays = start(&f, 2, 2, plain), *cancelled = start(&f, 3, 3, plain);
    for (int i = 0; i < 6; i++) pith_engine_advance(f.engine);
    size_t n = freed->out.n_predicted;
    assert_true(n > 0 && n < N_TOKENS);
    pith_reply_close(freed);
    assert_null(f.sessions[0]->reply);
    assert_int_equal(f.sessions[0]->length, 11 + n);
    pith_session_close(f.sessions[1]); /* in the middle of its prompt */
    assert_int_equal(pith_reply_outcome(closed, &made, NULL), PITH_ERROR_CANCELLED);
    pith_reply_close(closed);
    atomic_store(&f.sessions[3]->cancelled, 1);
    pith_engine_advance(f.engine);
    assert_true(pith_reply_is_made(cancelled));
    assert_int_equal(finish(&f, cancelled).stop, PITH_STOP_CANCELLED);
    finish(&f, stays);
    assert_last(f.sessions[2], expected);
    close_group(&f);
}

static void late_replies_end(void **state) {
    session_group f;
    pith_generate_options options = plain;
    (void)state;
    open_fixture(&f, goldens[0], 0);
    options.deadline_ms = 1e-6;
    pith_generation made = finish(&f, start(&f, 0, 4, options));
    assert_int_equal(made.stop, PITH_STOP_DEADLINE);
    assert_int_equal(made.n_predicted, 0);
    options.deadline_ms = 1e9;
    assert_int_equal(finish(&f, start(&f, 0, 4, options)).stop, PITH_STOP_LENGTH);
    close_group(&f);
}

/* A prompt that another session has read, and a fork, go on with the same bits. */
static void shared_beginnings(void **state) {
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        session_group f;
        int32_t expected[N_TOKENS];
        pith_session *fork;
        alone(goldens[g], 0, 2, expected);
        open_fixture(&f, goldens[g], 0);
        finish(&f, start(&f, 0, 2, plain));
        assert_last(f.sessions[0], expected);
        pith_generation made = finish(&f, start(&f, 1, 2, plain));
        assert_int_equal(made.n_cached, 36); /* all but the last of 37 */
        assert_last(f.sessions[1], expected);
        pith_session_close(f.sessions[5]);
        assert_int_equal(pith_session_branch(f.sessions[0], f.sessions[0]->length, &fork, NULL),
                         PITH_OK);
        assert_int_equal(pith_session_feed(fork, NULL, 0, NULL, NULL), PITH_OK);
        assert_int_equal(pith_session_feed(f.sessions[0], NULL, 0, NULL, NULL), PITH_OK);
        assert_memory_equal(fork->logits, f.sessions[0]->logits,
                            f.model->hparams.n_vocab * sizeof *fork->logits);
        close_group(&f);
    }
}

/* A session that takes over what another has computed holds that prompt, not its own old one. */
static void shared_beginnings_are_the_sessions_ids(void **state) {
    int32_t prompt[N_CTX], expected[N_TOKENS];
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        session_group f;
        size_t n = prompt_of(2, prompt);
        alone(goldens[g], 0, 4, expected);
        open_fixture(&f, goldens[g], 0);
        finish(&f, start(&f, 0, 2, plain));
        finish(&f, start(&f, 1, 4, plain));
        assert_int_equal(finish(&f, start(&f, 1, 2, plain)).cache_source, PITH_CACHE_SHARED);
        assert_memory_equal(f.sessions[1]->ids, prompt, n * sizeof *prompt);
        finish(&f, start(&f, 1, 4, plain)); /* nothing of it is in KV any more */
        assert_last(f.sessions[1], expected);
        close_group(&f);
    }
}

/* Rows cost nothing: every guess is worth checking. */
static void make_rows_free(pith_engine *engine) {
    for (int i = 1; i <= PITH_PACE_ROWS; i++) engine->pace.ns[i] = 1;
}

static void guesses_change_nothing(void **state) {
    size_t n_drafted = 0, n_accepted = 0;
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        for (int i = 0; i < 2 * N_SESSIONS; i += test_is_brief() ? 5 : 1) {
            session_group f;
            int32_t expected[N_TOKENS];
            int which = i / 2;
            float temperature = i % 2 ? 0.3f : 0;
            pith_generate_options options = plain;
            alone(goldens[g], temperature, which, expected);
            open_fixture(&f, goldens[g], temperature);
            make_rows_free(f.engine);
            options.draft = PITH_DRAFT_NGRAM;
            options.max_draft = 1 + i;
            pith_generation made = finish(&f, start(&f, which, which, options));
            n_drafted += made.n_drafted;
            n_accepted += made.n_draft_accepted;
            assert_int_equal(made.n_predicted, N_TOKENS);
            assert_last(f.sessions[which], expected);
            assert_int_equal(pith_kv_sequence_length(f.sessions[which]->kv),
                             f.sessions[which]->length - 1);
            close_group(&f);
        }
    }
    assert_true(n_drafted > n_accepted && n_accepted > 0);
}

static int stop_at_call(void *user, int32_t id, const char *text, size_t size) {
    int *left = user;
    (void)id, (void)text, (void)size;
    return --*left == 0;
}

/* Two replies of one sampler, the first stopped at its n-th token: ids of the second. */
static void after_a_stop(int which, int n, pith_draft draft, int32_t *made) {
    session_group f;
    pith_generate_options options = plain;
    open_fixture(&f, goldens[0], 0.4f);
    make_rows_free(f.engine);
    options.draft = draft;
    options.on_text = stop_at_call;
    options.user = &n;
    pith_generation first = finish(&f, start(&f, which, which, options));
    assert_int_equal(first.stop, PITH_STOP_CALLBACK);
    options.on_text = NULL;
    finish(&f, start(&f, which, (which + 1) % N_SESSIONS, options));
    const pith_session *session = f.sessions[which];
    memcpy(made, session->ids + session->length - N_TOKENS, N_TOKENS * sizeof *made);
    close_group(&f);
}

/* Tokens that were drawn behind the end of a reply have taken no random numbers. */
static void a_stop_leaves_the_sampler_as_without_guesses(void **state) {
    (void)state;
    for (int which = 0; which < N_SESSIONS; which += test_is_brief() ? 3 : 1) {
        for (int n = 2; n < N_TOKENS; n += test_is_brief() ? 5 : 1) {
            int32_t with[N_TOKENS], without[N_TOKENS];
            after_a_stop(which, n, PITH_DRAFT_OFF, without);
            after_a_stop(which, n, PITH_DRAFT_NGRAM, with);
            assert_memory_equal(with, without, sizeof with);
        }
    }
}

/* The model guesses for itself: nearly every guess is right, and the reply the same. */
static void a_model_guesses(void **state) {
    session_group f, draft;
    int32_t expected[N_TOKENS];
    pith_generate_options options = plain;
    (void)state;
    alone(goldens[0], 0, 1, expected);
    open_fixture(&f, goldens[0], 0);
    open_fixture(&draft, goldens[0], 0);
    options.draft = PITH_DRAFT_AUTO;
    options.draft_session = draft.sessions[0];
    pith_generation made = {0};
    for (int i = 0; i < 8; i++) { /* times are learnt from reply to reply */
        pith_session_cut(f.sessions[1], 0);
        for (int k = 1; k <= PITH_PACE_ROWS; k++) f.engine->pace.ns[k] = 1e9;
        made = finish(&f, start(&f, 1, 1, options));
        assert_last(f.sessions[1], expected);
    }
    assert_true(made.n_draft_accepted > 0);
    close_group(&draft);
    close_group(&f);
}

/* What the model's guesses take is neither part of a step's time nor counted twice: more would
 * switch off a model that gains. */
static void time_is_counted_once(void **state) {
    session_group f, draft;
    pith_generate_options options = plain;
    (void)state;
    open_fixture(&f, goldens[0], 0);
    open_fixture(&draft, goldens[0], 0);
    options.draft = PITH_DRAFT_AUTO;
    options.draft_session = draft.sessions[0];
    for (int k = 1; k <= PITH_PACE_ROWS; k++) f.engine->pace.ns[k] = 1e9;
    options.max_draft = 2;
    pith_reply *reply = start(&f, 1, 1, options);
    reply->drafter.text.n_known = N_CTX;                             /* the text gives no guess */
    while (reply->out.n_drafted == 0) pith_engine_advance(f.engine); /* it has read the prompt */
    double spent = -reply->drafter.spent_ns;
    uint64_t begun = pith_clock_ns();
    while (reply->out.n_predicted < N_TOKENS - 4) pith_engine_advance(f.engine);
    spent += reply->drafter.spent_ns;
    assert_true(spent > 0 && spent <= (double)(pith_clock_ns() - begun));
    pith_reply_close(reply);
    close_group(&draft);
    close_group(&f);
}

static void refuses_draft(session_group *f, pith_id_span prompt,
                          const pith_generate_options *options, const char *why) {
    pith_reply *reply = NULL;
    pith_error error = {0};
    assert_int_equal(
        pith_reply_open(f->sessions[0], f->samplers[0], prompt, options, &reply, &error),
        PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, why));
}

static void another_vocabulary_is_refused(void **state) {
    session_group f, other;
    int32_t ids[N_CTX];
    pith_generate_options options = plain;
    (void)state;
    open_fixture(&f, goldens[0], 0);
    open_fixture(&other, goldens[1], 0);
    options.draft = PITH_DRAFT_AUTO;
    options.draft_session = other.sessions[0];
    pith_id_span prompt = {ids, prompt_of(0, ids)};
    refuses_draft(&f, prompt, &options, "vocabulary");
    options.draft_session = f.sessions[1];
    refuses_draft(&f, prompt, &options, "same engine");
    close_group(&other);
    close_group(&f);
}

/* Also where a draft of the same model was accepted before. */
static void a_busy_draft_is_refused(void **state) {
    session_group f, draft;
    int32_t ids[N_CTX];
    pith_generate_options options = plain;
    (void)state;
    open_fixture(&f, goldens[0], 0);
    open_fixture(&draft, goldens[0], 0);
    options.draft = PITH_DRAFT_AUTO;
    options.draft_session = draft.sessions[0];
    finish(&f, start(&f, 0, 0, options));
    pith_reply *busy = start(&draft, 0, 1, plain);
    pith_id_span prompt = {ids, prompt_of(0, ids)};
    refuses_draft(&f, prompt, &options, "making a reply");
    pith_reply_close(busy);
    options.draft_session = f.sessions[1];
    refuses_draft(&f, prompt, &options, "same engine");
    close_group(&draft);
    close_group(&f);
}

/* ---- Overflow ---- */

static int32_t largest(const session_group *f, const pith_session *session) {
    int32_t best = 0;
    for (int32_t id = 1; id < (int32_t)f->model->hparams.n_vocab; id++)
        if (session->logits[id] > session->logits[best]) best = id;
    return best;
}

/* A shifted reply is the greedy path of the shortened text, read anew at each shift. */
static void a_shift_goes_on_with_what_stays(void **state) {
    enum { MADE = 400, KEEP = 10 };
    int32_t ids[N_CTX], told[MADE];
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        session_group f;
        pith_generate_options options = plain;
        size_t n = prompt_of(3, ids), n_dropped = 0;
        open_fixture(&f, goldens[g], 0);
        pith_session *session = f.sessions[0];
        assert_int_equal(pith_session_feed(session, ids, n, NULL, NULL), PITH_OK);
        for (int i = 0; i < MADE; i++) {
            told[i] = ids[n++] = largest(&f, session);
            if (n < N_CTX) {
                assert_int_equal(pith_session_feed(session, &told[i], 1, NULL, NULL), PITH_OK);
                continue;
            }
            size_t drop = (n - KEEP) / 2;
            memmove(ids + KEEP, ids + KEEP + drop, (n - KEEP - drop) * sizeof *ids);
            n -= drop;
            n_dropped += drop;
            pith_session_cut(session, 0);
            assert_int_equal(pith_session_feed(session, ids, n, NULL, NULL), PITH_OK);
        }
        pith_session_close(session);
        assert_int_equal(pith_session_open(f.engine, &session, NULL), PITH_OK);
        f.sessions[0] = session;
        options.max_tokens = MADE;
        options.overflow = PITH_OVERFLOW_SHIFT;
        options.n_keep = KEEP;
        for (int draft = PITH_DRAFT_OFF; draft <= PITH_DRAFT_NGRAM; draft++) {
            options.draft = (pith_draft)draft;
            make_rows_free(f.engine);
            pith_session_cut(session, 0);
            pith_generation made = finish(&f, start(&f, 0, 3, options));
            assert_int_equal(made.stop, PITH_STOP_LENGTH);
            assert_int_equal(made.n_predicted, MADE);
            assert_int_equal(made.n_dropped, n_dropped);
            assert_int_equal(session->length, n);
            assert_memory_equal(session->ids, ids, n * sizeof *ids);
        }
        close_group(&f);
    }
}

static void long_prompts(void **state) {
    session_group f;
    enum { LONG = 3 * N_CTX };
    int32_t ids[LONG];
    pith_reply *reply = NULL;
    pith_error error = {0};
    pith_generate_options options = plain;
    (void)state;
    for (int i = 0; i < LONG; i++) ids[i] = 60 + i % 47;
    open_fixture(&f, goldens[0], 0);
    pith_id_span prompt = {ids, LONG}, one_more = {ids, N_CTX + 1};
    assert_int_equal(
        pith_reply_open(f.sessions[0], f.samplers[0], one_more, &options, &reply, &error),
        PITH_ERROR_LIMIT);
    options.overflow = PITH_OVERFLOW_TRUNCATE_MIDDLE;
    options.n_keep = 30;
    options.ignore_end = true;
    assert_int_equal(
        pith_reply_open(f.sessions[0], f.samplers[0], prompt, &options, &reply, &error), PITH_OK);
    pith_generation made = finish(&f, reply);
    assert_int_equal(made.stop, PITH_STOP_LENGTH); /* there was room for all of it */
    assert_int_equal(made.n_prompt, LONG);
    assert_int_equal(made.n_dropped, LONG - (N_CTX - N_TOKENS));
    const pith_session *session = f.sessions[0];
    assert_int_equal(session->length, N_CTX);
    assert_memory_equal(session->ids, ids, 30 * sizeof *ids);
    size_t last = N_CTX - N_TOKENS - 30;
    assert_memory_equal(session->ids + 30, ids + LONG - last, last * sizeof *ids);
    close_group(&f);
}

/* Contexts of a few tokens: every reply ends. */
static void tiny_contexts_shift_or_end(void **state) {
    (void)state;
    for (uint32_t n_ctx = 1; n_ctx <= 9; n_ctx++) {
        session_group f;
        int32_t ids[N_CTX];
        pith_reply *reply = NULL;
        pith_error error = {0};
        pith_generate_options options = plain;
        prompt_of(3, ids);
        open_fixture(&f, goldens[0], 0);
        f.engine->n_ctx = n_ctx;
        options.overflow = PITH_OVERFLOW_SHIFT;
        options.ignore_end = true;
        pith_id_span prompt = {ids, n_ctx};
        assert_int_equal(
            pith_reply_open(f.sessions[0], f.samplers[0], prompt, &options, &reply, &error),
            PITH_OK);
        pith_generation made = finish(&f, reply);
        bool ended = made.stop == PITH_STOP_CONTEXT || made.n_predicted == N_TOKENS;
        assert_true(ended);
        assert_true(n_ctx < 4 || made.n_predicted == N_TOKENS);
        close_group(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(together_as_alone),
        cmocka_unit_test(no_reply_waits_for_a_prompt),
        cmocka_unit_test(a_small_step_goes_round),
        cmocka_unit_test(leaving_disturbs_nobody),
        cmocka_unit_test(late_replies_end),
        cmocka_unit_test(shared_beginnings),
        cmocka_unit_test(shared_beginnings_are_the_sessions_ids),
        cmocka_unit_test(guesses_change_nothing),
        cmocka_unit_test(a_stop_leaves_the_sampler_as_without_guesses),
        cmocka_unit_test(a_model_guesses),
        cmocka_unit_test(time_is_counted_once),
        cmocka_unit_test(another_vocabulary_is_refused),
        cmocka_unit_test(a_busy_draft_is_refused),
        cmocka_unit_test(a_shift_goes_on_with_what_stays),
        cmocka_unit_test(long_prompts),
        cmocka_unit_test(tiny_contexts_shift_or_end),
    };
    return cmocka_run_group_tests_name("many replies", tests, NULL, NULL);
}
