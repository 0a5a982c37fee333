/* SPDX-License-Identifier: Apache-2.0
 * Promises about what a sampler keeps: tokens can be taken back exactly, a clone goes on as its
 * model, drawing allocates nothing, and a failing heap is told. */
#include "sample/sampler_internal.h"
#include "support/brief.h"
#include "support/failing_memory.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { N = 300, BACK = PITH_SAMPLE_MAX_REWIND };

static pith_span pieces[N];

static void make_pieces(void) {
    static const char *const texts[8] = {"a", "b:", "", "\n", "ab", "c d", "#", "##x"};
    for (int i = 0; i < N; i++) pieces[i] = pith_span_of(texts[i * 5 % 8]);
}

static const char *const breakers[] = {"##", ":a", "d\nab"};
static const pith_logit_bias biases[] = {{3, 1.5f}, {7, -INFINITY}};

/* Everything that remembers is on. */
static pith_sampler_options all_on(void) {
    return (pith_sampler_options){.size = sizeof(pith_sampler_options),
                                  .temperature = 0.9f,
                                  .repeat_penalty = 1.2f,
                                  .frequency_penalty = 0.3f,
                                  .penalty_window = 20,
                                  .seed = 5,
                                  .xtc_probability = 0.5f,
                                  .mirostat = 2,
                                  .mirostat_tau = 4,
                                  .dry_multiplier = 0.7f,
                                  .dry_window = 50,
                                  .dry_breakers = breakers,
                                  .n_dry_breakers = 3,
                                  .biases = biases,
                                  .n_biases = 2};
}

static pith_sampler *make(const pith_sampler_options *options) {
    pith_sampler *sampler = NULL;
    make_pieces();
    assert_int_equal(pith_sample_new_with_pieces(pieces, N, options, &sampler, NULL), PITH_OK);
    return sampler;
}

static void fill_row(float *row, uint64_t seed) {
    pith_rng rng;
    pith_rng_init(&rng, seed);
    for (int i = 0; i < N; i++) row[i] = (float)(2 * pith_rng_normal(&rng));
    for (int i = 0; i < 12; i++) row[i] += 4; /* few tokens come again and again */
}

typedef struct distribution {
    size_t n;
    int32_t ids[N];
    double p[N];
} distribution;

/* The distribution after everything that is remembered; XTC's coin is set, not thrown. */
static void look(pith_sampler *sampler, distribution *out) {
    float row[N];
    fill_row(row, 99);
    sampler->luck.has_coin = true, sampler->luck.coin = 0;
    memset(out, 0, sizeof *out);
    out->n = pith_sample_distribution(sampler, row, NULL, out->ids, out->p, N);
    sampler->luck.has_coin = sampler->is_weighed = false;
}

/* ---- Taking back ---- */

/* After any mixture of draws, accepted tokens and rewinds the sampler is, bit for bit, as one that
 * never saw what was taken back. */
static void rewind_with(int32_t penalty_window, int32_t dry_window) {
    enum { STEPS = 2500 };
    static distribution at[STEPS + 1], now;
    float row[N];
    pith_sampler_options o = all_on();
    o.penalty_window = penalty_window, o.dry_window = dry_window;
    pith_sampler *sampler = make(&o);
    pith_rng rng;
    pith_rng_init(&rng, 3);
    size_t length = 0, back = 0, longest = 0;
    for (int t = 0; t < 5000; t++) { /* the ring has gone round */
        int32_t id = (int32_t)(pith_rng_next(&rng) % 12);
        pith_sample_accept(sampler, &id, 1);
    }
    look(sampler, &at[0]);
    back = BACK;
    for (int step = 0; step < 6000; step++) {
        uint64_t what = pith_rng_next(&rng) % 10;
        size_t n = pith_rng_next(&rng) % (step % 2400 == 0 ? BACK + 200 : 4);
        if (step % 2400 == 2399) n = back; /* as far as it goes */
        if (what < 2 || step % 2400 == 0 || step % 2400 == 2399) {
            assert_int_equal(pith_sample_rewind(sampler, n), n <= back);
            if (n > back) continue;
            back -= n;
            if (n <= length)
                length -= n;
            else /* behind the first that was looked at */
                length = 0, look(sampler, &at[0]);
        } else if (length < STEPS) {
            fill_row(row, pith_rng_next(&rng));
            int32_t id = (int32_t)(pith_rng_next(&rng) % 12);
            if (what < 6)
                pith_sample_accept(sampler, &id, 1);
            else
                pith_sample_next(sampler, row);
            look(sampler, &at[++length]);
            back += back < BACK;
            longest = length > longest ? length : longest;
        }
        look(sampler, &now);
        assert_memory_equal(&now, &at[length], sizeof now);
    }
    assert_true(longest > 1000);
    pith_sample_free(sampler);
}

static void test_rewind_is_exact(void **state) {
    (void)state;
    rewind_with(20, 50);
    if (test_is_brief()) return;
    rewind_with(1500, 30);
    rewind_with(1024, 1023);
}

static void test_rewind_limits(void **state) {
    (void)state;
    pith_sampler_options greedy = {.size = sizeof greedy}, o = all_on();
    for (int i = 0; i < 2; i++) {
        pith_sampler *sampler = make(i ? &o : &greedy);
        const int32_t id = 3, outside[] = {-1, N, INT32_MAX, INT32_MIN};
        assert_true(pith_sample_rewind(sampler, 0));
        assert_false(pith_sample_rewind(sampler, 1));
        pith_sample_accept(sampler, &id, 1);
        pith_sample_accept(sampler, outside, 4); /* not counted */
        assert_false(pith_sample_rewind(sampler, 2));
        assert_true(pith_sample_rewind(sampler, 1));
        assert_false(pith_sample_rewind(sampler, 1));
        for (int t = 0; t < 3 * BACK; t++) pith_sample_accept(sampler, &id, 1);
        assert_false(pith_sample_rewind(sampler, BACK + 1));
        assert_false(pith_sample_rewind(sampler, SIZE_MAX));
        assert_true(pith_sample_rewind(sampler, BACK));
        assert_false(pith_sample_rewind(sampler, 1));
        pith_sample_free(sampler);
    }
}

/* The random number of a token that was taken back is not used again. */
static void test_rewind_goes_on_with_the_random_numbers(void **state) {
    (void)state;
    float row[N];
    pith_sampler_options o = {.size = sizeof o, .temperature = 1, .seed = 8};
    pith_sampler *a = make(&o), *b = make(&o);
    fill_row(row, 4);
    int same = 0;
    for (int i = 0; i < 200; i++) {
        int32_t first = pith_sample_next(a, row), second;
        assert_true(pith_sample_rewind(a, 1));
        second = pith_sample_next(a, row);
        assert_int_equal(first, pith_sample_next(b, row)); /* b draws on and on */
        assert_int_equal(second, pith_sample_next(b, row));
        same += first == second;
    }
    assert_true(same < 100);
    pith_sample_free(a);
    pith_sample_free(b);
}

/* ---- Undoing ---- */

/* After any mixture of draws and undone draws (some of them from a single id) the ids are those of
 * a sampler that never drew what was undone. */
static void test_undo_gives_the_random_numbers_back(void **state) {
    (void)state;
    for (int variant = 0; variant < 4; variant += test_is_brief() ? 2 : 1) {
        enum { STEPS = 1500 };
        pith_sampler_options o = all_on(), greedy = {.size = sizeof greedy};
        if (variant == 1) o.mirostat = 0;
        if (variant == 2) o = greedy, o.temperature = 1, o.seed = 5;
        if (variant == 3) o = greedy;
        pith_sampler *plain = make(&o), *undone = make(&o);
        pith_rng rng;
        float row[N];
        pith_rng_init(&rng, 17);
        for (int step = 0; step < STEPS; step++) {
            size_t n = pith_rng_next(&rng) % 17;
            for (size_t i = 0; i < n; i++) {
                fill_row(row, pith_rng_next(&rng));
                pith_sample_next(undone, row);
            }
            assert_true(pith_sample_undo(undone, n));
            fill_row(row, pith_rng_next(&rng));
            assert_int_equal(pith_sample_next(undone, row), pith_sample_next(plain, row));
            if (step % 7 != 6) continue;
            /* Rewinding takes new numbers in both; now and then as far as it goes. */
            n = step % 1200 == 1182 ? BACK / 2 : pith_rng_next(&rng) % 3;
            assert_true(pith_sample_rewind(undone, n) && pith_sample_rewind(plain, n));
        }
        pith_sample_free(plain);
        pith_sample_free(undone);
    }
}

static void test_undo_limits(void **state) {
    (void)state;
    pith_sampler_options o = all_on();
    pith_sampler *sampler = make(&o);
    const int32_t id = 3;
    assert_true(pith_sample_undo(sampler, 0));
    assert_false(pith_sample_undo(sampler, 1));
    for (int t = 0; t < 200; t++) pith_sample_accept(sampler, &id, 1);
    assert_false(pith_sample_undo(sampler, PITH_SAMPLE_MAX_UNDO + 1));
    assert_true(pith_sample_rewind(sampler, 4));
    assert_false(pith_sample_undo(sampler, PITH_SAMPLE_MAX_UNDO - 3));
    assert_true(pith_sample_undo(sampler, PITH_SAMPLE_MAX_UNDO - 4));
    assert_false(pith_sample_undo(sampler, 1));
    assert_true(pith_sample_rewind(sampler, 200 - PITH_SAMPLE_MAX_UNDO));
    /* As many can be taken back as without what was undone. */
    for (int t = 0; t < 3 * BACK; t++) pith_sample_accept(sampler, &id, 1);
    for (int i = 0; i < 100; i++) {
        for (int t = 0; t < PITH_SAMPLE_MAX_UNDO; t++) pith_sample_accept(sampler, &id, 1);
        assert_true(pith_sample_undo(sampler, PITH_SAMPLE_MAX_UNDO));
    }
    assert_false(pith_sample_rewind(sampler, BACK + 1));
    assert_true(pith_sample_rewind(sampler, BACK));
    assert_false(pith_sample_rewind(sampler, 1));
    pith_sample_free(sampler);
}

/* ---- A single id ---- */

static bool any_allowed(void *user, int32_t id) {
    (void)user;
    return id == 7;
}

static const uint32_t *only_seven(void *user) {
    return user;
}

static int32_t says_seven(void *user) {
    (void)user;
    return 7;
}

/* Taken without a random number, remembered as if drawn; never against its logit. */
static void test_a_single_id_takes_no_random_number(void **state) {
    (void)state;
    uint32_t bits[(N + 31) / 32] = {1u << 7};
    pith_token_filter filter = {bits, any_allowed, only_seven, says_seven};
    static distribution with, without;
    const int32_t seven = 7;
    pith_sampler_options o = all_on();
    o.biases = NULL, o.n_biases = 0;
    pith_sampler *a = make(&o), *b = make(&o);
    float row[N];
    for (int t = 0; t < 50; t++) {
        fill_row(row, (uint64_t)t);
        double before = a->mu;
        assert_int_equal(pith_sample_next_of(a, row, &filter), 7);
        pith_sample_accept(b, &seven, 1);
        assert_memory_equal(&a->luck.rng, &b->luck.rng, sizeof a->luck.rng);
        assert_true(a->mu > before); /* no surprise */
        b->mu = a->mu;
        assert_int_equal(pith_sample_next(a, row), pith_sample_next(b, row));
    }
    look(a, &with);
    look(b, &without);
    assert_memory_equal(&with, &without, sizeof with);
    row[7] = NAN;
    assert_int_equal(pith_sample_next_of(a, row, &filter), -1);
    row[7] = -INFINITY;
    assert_int_equal(pith_sample_next_of(a, row, &filter), -1);
    assert_int_equal(pith_sample_next(a, row), pith_sample_next(b, row)); /* nothing happened */
    pith_sample_free(a);
    pith_sample_free(b);
    const pith_logit_bias ban = {7, -INFINITY};
    o.biases = &ban, o.n_biases = 1;
    a = make(&o);
    row[7] = 1;
    assert_int_equal(pith_sample_next_of(a, row, &filter), -1);
    pith_sample_free(a);
}

/* ---- Clones ---- */

static void test_clone_goes_on_as_its_model(void **state) {
    (void)state;
    static distribution theirs, ours;
    float row[N];
    pith_sampler_options o = all_on();
    pith_sampler *sampler = make(&o), *a, *b, *c;
    for (int t = 0; t < 100; t++) {
        fill_row(row, (uint64_t)t);
        pith_sample_next(sampler, row);
    }
    assert_int_equal(pith_sample_clone(sampler, 1, &a, NULL), PITH_OK);
    assert_int_equal(pith_sample_clone(sampler, 1, &b, NULL), PITH_OK);
    assert_int_equal(pith_sample_clone(sampler, 2, &c, NULL), PITH_OK);
    look(sampler, &theirs);
    look(a, &ours);
    assert_memory_equal(&ours, &theirs, sizeof ours);
    assert_true(pith_sample_rewind(a, 60) && pith_sample_rewind(sampler, 60));
    look(sampler, &theirs);
    look(a, &ours);
    assert_memory_equal(&ours, &theirs, sizeof ours);
    assert_true(pith_sample_rewind(b, 60) && pith_sample_rewind(c, 60));
    pith_sample_free(sampler); /* clones stand alone */
    int differ = 0;
    for (int t = 0; t < 100; t++) {
        fill_row(row, (uint64_t)t + 500);
        int32_t id = pith_sample_next(a, row);
        assert_int_equal(id, pith_sample_next(b, row));
        differ += id != pith_sample_next(c, row);
    }
    assert_true(differ > 20);
    pith_sample_free(a);
    pith_sample_free(b);
    pith_sample_free(c);
}

/* ---- The heap ---- */

static bool all_allowed(void *user, int32_t id) {
    return (void)user, id >= 0;
}

static const uint32_t *full_mask(void *user) {
    return user;
}

static void test_drawing_allocates_nothing(void **state) {
    (void)state;
    static distribution d;
    uint32_t bits[(N + 31) / 32];
    float row[N];
    pith_logprob top[PITH_LOGPROBS_MAX];
    double logprob;
    pith_sampler_options o = all_on();
    pith_token_filter filter = {bits, all_allowed, full_mask, NULL};
    memset(bits, 0x5a, sizeof bits);
    for (int variant = 0; variant < 6; variant++) {
        if (variant == 1) o.mirostat = 1;
        if (variant == 2) o.mirostat = 0, o.top_p = 0.9f, o.top_n_sigma = 2;
        if (variant == 3) o.typical_p = 0.8f, o.top_p = 0, o.dynamic_range = 0.3f;
        if (variant == 4) o.top_k = 200, o.min_p = 0.01f;
        if (variant == 5) o = (pith_sampler_options){.size = sizeof o};
        pith_sampler *sampler = make(&o);
        memory_watch_reset(0);
        for (int t = 0; t < 50; t++) {
            fill_row(row, (uint64_t)t);
            pith_sample_distribution(sampler, row, &filter, d.ids, d.p, N);
            pith_sample_next_of(sampler, row, &filter);
            pith_sample_next(sampler, row);
            pith_sample_accept(sampler, d.ids, 1);
            pith_sample_rewind(sampler, 2);
            pith_sample_logprobs(row, N, 3, &logprob, top, PITH_LOGPROBS_MAX);
        }
        assert_int_equal(memory_watch.n_requests, 0);
        pith_sample_free(sampler);
    }
}

static void test_a_failing_heap_is_told(void **state) {
    (void)state;
    pith_sampler_options o = all_on();
    pith_sampler *model = make(&o);
    for (int clones = 0; clones < 2; clones++) {
        uint64_t fail_at = 1;
        for (;; fail_at++) {
            pith_sampler *sampler = model;
            pith_error error = {0};
            memory_watch_reset(fail_at);
            pith_status status = clones
                                     ? pith_sample_clone(model, 1, &sampler, &error)
                                     : pith_sample_new_with_pieces(pieces, N, &o, &sampler, &error);
            memory_watch_reset(0);
            if (status == PITH_OK) {
                pith_sample_free(sampler);
                break;
            }
            assert_int_equal(status, PITH_ERROR_MEMORY);
            assert_null(sampler);
            assert_non_null(strstr(error.text, "sampler"));
        }
        assert_true(fail_at > 15);
    }
    pith_sample_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewind_is_exact),
        cmocka_unit_test(test_rewind_limits),
        cmocka_unit_test(test_undo_gives_the_random_numbers_back),
        cmocka_unit_test(test_undo_limits),
        cmocka_unit_test(test_a_single_id_takes_no_random_number),
        cmocka_unit_test(test_rewind_goes_on_with_the_random_numbers),
        cmocka_unit_test(test_clone_goes_on_as_its_model),
        cmocka_unit_test(test_drawing_allocates_nothing),
        cmocka_unit_test(test_a_failing_heap_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
