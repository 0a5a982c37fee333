/* SPDX-License-Identifier: Apache-2.0
 * Promises of the sample room: options are checked, each stage keeps exactly what its definition
 * says, draws follow the distribution, the same seed gives the same ids, and no logits (NaN,
 * infinities, ties) lead astray.
 *
 * Each stage is compared with a plain computation written here that sorts the whole list
 * (`expected_kept`). */
#include "sample/choice.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pith_sampler_options defaults(void) {
    return (pith_sampler_options){.size = sizeof(pith_sampler_options)};
}

static pith_sampler *make(int32_t n_vocab, const pith_sampler_options *options) {
    pith_sampler *sampler = NULL;
    pith_error error;
    assert_int_equal(pith_sample_new(n_vocab, options, &sampler, &error), PITH_OK);
    assert_non_null(sampler);
    return sampler;
}

/* ---- options ---- */

static void assert_refused_at(const pith_sampler_options *options, const char *name) {
    pith_sampler *sampler = (pith_sampler *)(uintptr_t)1;
    pith_error error = {0};
    assert_int_equal(pith_sample_new(10, options, &sampler, &error), PITH_ERROR_ARGUMENT);
    assert_null(sampler);
    assert_non_null(strstr(error.text, name));
}
static void assert_refused(pith_sampler_options options, const char *name) {
    assert_refused_at(&options, name);
}

static void test_options_refused(void **state) {
    (void)state;
    const float bad[] = {-1.0f, -1e-30f, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pith_sampler_options o = defaults();
        o.temperature = bad[i];
        assert_refused(o, "temperature");
        o = defaults(), o.top_p = bad[i];
        assert_refused(o, "top_p");
        o = defaults(), o.min_p = bad[i];
        assert_refused(o, "min_p");
        o = defaults(), o.repeat_penalty = bad[i];
        assert_refused(o, "repeat_penalty");
        if (i < 2) continue;
        o = defaults(), o.frequency_penalty = bad[i];
        assert_refused(o, "frequency_penalty");
        o = defaults(), o.presence_penalty = bad[i];
        assert_refused(o, "presence_penalty");
    }
    pith_sampler_options o = defaults();
    o.top_p = 1.0001f;
    assert_refused(o, "top_p");
    o = defaults(), o.min_p = 1.0001f;
    assert_refused(o, "min_p");
    o = defaults(), o.top_k = -1;
    assert_refused(o, "top_k");
    o = defaults(), o.penalty_window = PITH_SAMPLE_MAX_WINDOW + 1;
    assert_refused(o, "penalty_window");
    o = defaults(), o.size = 3;
    assert_refused(o, "size");
}

static void test_options_size(void **state) {
    (void)state;
    struct {
        pith_sampler_options known;
        int32_t more[4];
    } longer = {.known = {.size = sizeof longer}};
    pith_sampler *sampler = make(4, &longer.known);
    pith_sample_free(sampler);
    longer.more[2] = 1;
    assert_refused_at(&longer.known, "byte");
    /* A shorter struct: only the temperature is there; the garbage behind it must not be read. */
    pith_sampler_options shorter;
    memset(&shorter, 0xff, sizeof shorter);
    shorter.size = offsetof(pith_sampler_options, top_k);
    shorter.temperature = 0.5f;
    sampler = make(4, &shorter);
    pith_sample_free(sampler);
    pith_error error;
    assert_int_equal(pith_sample_new(0, NULL, &sampler, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_sample_new(-5, NULL, &sampler, NULL), PITH_ERROR_ARGUMENT);
    sampler = make(1, NULL);
    pith_sample_free(sampler);
    pith_sample_free(NULL);
}

/* ---- greedy ---- */

static void assert_greedy(const float *logits, int32_t n, int32_t want) {
    pith_sampler *sampler = make(n, NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(pith_sample_next(sampler, logits), want);
    pith_sample_free(sampler);
}

static void test_greedy(void **state) {
    (void)state;
    assert_greedy((const float[]){1, 3, 3, 2}, 4, 1);
    assert_greedy((const float[]){NAN, -5, NAN, -5, -7}, 5, 1);
    assert_greedy((const float[]){NAN, NAN}, 2, 0);
    assert_greedy((const float[]){-INFINITY, -INFINITY}, 2, 0);
    assert_greedy((const float[]){NAN, -INFINITY, -FLT_MAX}, 3, 2);
    assert_greedy((const float[]){1, INFINITY, INFINITY, NAN}, 4, 1);
}

/* The largest in each place of rows that end at, before and behind the edge of a block. */
static void test_greedy_blocks(void **state) {
    (void)state;
    static float logits[3 * PITH_ROW_BLOCK];
    for (int32_t n = 2 * PITH_ROW_BLOCK - 1; n <= 2 * PITH_ROW_BLOCK + 1; n++) {
        for (int32_t i = 0; i < n; i++) logits[i] = NAN;
        for (int32_t best = 0; best < n; best++) {
            logits[best] = -1e30f;
            if (best + 1 < n) logits[best + 1] = -1e30f;
            assert_greedy(logits, n, best);
            logits[best] = NAN;
        }
    }
}

/* ---- penalties ---- */

static void test_penalties(void **state) {
    (void)state;
    pith_sampler_options o = defaults();
    o.repeat_penalty = 2.0f;
    o.penalty_window = 2;
    const float logits[] = {4.0f, 3.0f, -1.0f, 1.5f};
    pith_sampler *sampler = make(4, &o);
    assert_int_equal(pith_sample_next(sampler, logits), 0); /* window {} */
    assert_int_equal(pith_sample_next(sampler, logits), 1); /* {0}: 2 3 -1 1.5 */
    assert_int_equal(pith_sample_next(sampler, logits), 0); /* {0,1}: 2 1.5 -1 1.5 */
    const int32_t ids[] = {3, 3};
    pith_sample_accept(sampler, ids, 2); /* {3,3} */
    assert_int_equal(pith_sample_next(sampler, logits), 0);
    const int32_t odd[] = {-1, 4, INT32_MAX, INT32_MIN};
    pith_sample_accept(sampler, odd, 4); /* ignored: {3,0} stays */
    assert_int_equal(pith_sample_next(sampler, logits), 1);
    pith_sample_free(sampler);

    o = defaults();
    o.frequency_penalty = 1.0f;
    o.presence_penalty = 0.25f;
    sampler = make(4, &o);
    const int32_t seen[] = {0, 0, 0, 1};
    pith_sample_accept(sampler, seen, 4); /* 0.75 1.75 -1 1.5 */
    assert_int_equal(pith_sample_next(sampler, logits), 1);
    assert_int_equal(pith_sample_next(sampler, logits), 3); /* 0.75 0.75 -1 1.5 */
    pith_sample_free(sampler);

    /* a negative logit is multiplied; what is below the floats stays one */
    pith_penalty p = {.repeat = 1.5f, .frequency = 0.5f, .presence = 0.25f};
    assert_true(pith_penalty_apply(&p, -2.0, 3) == -3.0 - 1.75);
    assert_true(pith_penalty_apply(&p, 3.0, 1) == 2.0 - 0.75);
    o = defaults(), o.repeat_penalty = 2.0f;
    sampler = make(2, &o);
    pith_sample_accept(sampler, (const int32_t[]){1}, 1);
    assert_int_equal(pith_sample_next(sampler, (const float[]){-INFINITY, -FLT_MAX}), 1);
    pith_sample_free(sampler);
    o = defaults(), o.repeat_penalty = 100.0f, o.penalty_window = -1;
    sampler = make(4, &o);
    for (int i = 0; i < 3; i++) assert_int_equal(pith_sample_next(sampler, logits), 0);
    pith_sample_free(sampler);
}

/* Counts and their list against counting the last tokens anew, with a window that is not a divisor of
 * anything, while tokens come and are taken back. */
static void test_penalty_window(void **state) {
    (void)state;
    enum { VOCAB = 7, WINDOW = 5, STEPS = 3000 };
    pith_penalty p = {.repeat = 1};
    pith_history h;
    assert_true(pith_history_init(&h, WINDOW));
    assert_true(pith_penalty_init(&p, VOCAB, WINDOW));
    static int32_t history[STEPS];
    int n = 0;
    pith_rng rng;
    pith_rng_init(&rng, 11);
    for (int step = 0; step < STEPS; step++) {
        if (pith_rng_next(&rng) % 5 < 2 && h.n_rewind > 0) {
            pith_penalty_take_back(&p, &h);
            pith_history_pop(&h);
            n--;
        } else {
            history[n] = (int32_t)(pith_rng_next(&rng) % VOCAB);
            pith_history_push(&h, history[n++], false);
            pith_penalty_accept(&p, &h);
        }
        int32_t counts[VOCAB] = {0};
        size_t n_distinct = 0;
        for (int i = n < WINDOW ? 0 : n - WINDOW; i < n; i++) n_distinct += !counts[history[i]]++;
        assert_memory_equal(counts, p.count, sizeof counts);
        assert_int_equal(p.n_distinct, n_distinct);
        for (size_t i = 0; i < n_distinct; i++) {
            assert_true(counts[p.distinct[i]] > 0);
            assert_int_equal(p.place[p.distinct[i]], i);
        }
    }
    pith_penalty_deinit(&p);
    pith_history_deinit(&h);
}

/* ---- cuts against a full sort ---- */

static int by_order(const void *a, const void *b) {
    const pith_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}
static int by_id(const void *a, const void *b) {
    return ((const pith_candidate *)a)->id < ((const pith_candidate *)b)->id ? -1 : 1;
}

static size_t expected_kept(pith_candidate *list, size_t n, size_t k, double p, double min_p) {
    qsort(list, n, sizeof *list, by_order);
    if (k > 0 && k < n) n = k;
    long double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        total += expl((long double)list[i].logit - (long double)list[0].logit);
    if (p > 0 && p < 1) {
        size_t i = 0;
        while (i < n && sum < (long double)p * total)
            sum += expl((long double)list[i++].logit - (long double)list[0].logit);
        n = i;
    }
    size_t kept = 0;
    long double limit = (long double)list[0].logit +
                        (min_p > 0 ? logl((long double)min_p) : -(long double)INFINITY);
    while (kept < n && (long double)list[kept].logit >= limit) kept++;
    qsort(list, kept, sizeof *list, by_id);
    return kept;
}

static void fill_logits(pith_candidate *list, size_t n, int kind, pith_rng *rng) {
    for (size_t i = 0; i < n; i++) {
        double x = pith_rng_normal(rng);
        float value = (float)(x * 3);
        if (kind == 1) value = floorf(value);            /* many ties, both zeros */
        if (kind == 2) value = 7.25f;                    /* one tie */
        if (kind == 3) value = (float)i * 1e-3f - 40.0f; /* ascending, negative */
        if (kind == 4) value = (float)(x * 1e30);        /* huge */
        if (kind == 5) value = (float)(x * 1e-40);       /* denormal: all weigh nearly the same */
        if (kind == 6) value = i == n / 2 ? FLT_MAX : -FLT_MAX; /* one candidate rules */
        list[i] = (pith_candidate){value, (int32_t)i};
    }
}

/* Of a row, and of a list that holds the whole row. */
static void test_cuts(void **state) {
    (void)state;
    static pith_candidate theirs[700];
    static float logits[700];
    const size_t sizes[] = {1, 2, 3, 10, 257, 700};
    const size_t ks[] = {0, 1, 2, 9, 128, 129, 699, 700, 701};
    const double ps[] = {0, 0.0001, 0.3125, 0.5, 0.8999, 0.9501, 0.999, 1};
    pith_rng rng;
    pith_rng_init(&rng, 5);
    for (size_t c = 0; c < 6 * 7 * 9 * 8 * 2; c++) {
        size_t n = sizes[c / 1008], k = ks[c / 16 % 9];
        int kind = (int)(c / 144 % 7);
        double p = ps[c / 2 % 8], min_p = ps[(c / 2 + c / 1008) % 8];
        pith_choice choice;
        fill_logits(theirs, n, kind, &rng);
        for (size_t i = 0; i < n; i++) logits[i] = theirs[i].logit;
        size_t want = expected_kept(theirs, n, k, p, min_p);
        assert_true(pith_choice_init(&choice, (int32_t)n, false));
        pith_choice_open(&choice, logits);
        if (c % 2) pith_choice_keep(&choice, -(double)FLT_MAX);
        if (k > 0) pith_stage_top_k(&choice, k);
        if (p > 0 && p < 1) pith_stage_top_p(&choice, p);
        if (min_p > 0) pith_stage_min_p(&choice, min_p);
        if (!choice.is_list) pith_choice_keep(&choice, -(double)FLT_MAX);
        if (choice.n != want || memcmp(choice.list, theirs, want * sizeof *theirs) != 0) {
            print_error("n %zu kind %d k %zu p %g min_p %g list %d: %zu kept, expected %zu\n", n,
                        kind, k, p, min_p, (int)(c % 2), choice.n, want);
            fail();
        }
        pith_choice_deinit(&choice);
    }
}

/* top-p +-1: probabilities that are exact in binary, so that the crossing token is beyond doubt. */
static void test_top_p_crossing(void **state) {
    (void)state;
    static pith_selector selector;
    const double weights[4] = {0.25, 0.25, 0.25, 0.25};
    const double ps[] = {0.2499, 0.25, 0.2501, 0.5, 0.7499, 0.75, 0.7501, 0.9999};
    const size_t want[] = {1, 1, 2, 2, 3, 3, 4, 4};
    for (size_t i = 0; i < 8; i++) {
        pith_candidate list[4];
        for (int32_t j = 0; j < 4; j++) list[j] = (pith_candidate){0, j};
        assert_int_equal(pith_select_weight(&selector, list, weights, 4, ps[i]), want[i]);
        for (size_t j = 0; j < want[i]; j++) assert_int_equal(list[j].id, (int)j);
    }
}

/* The target is p times a total that was summed in another order, so it can lie above what the
 * candidates reach together: then all stay. */
static void test_target_beyond_the_sum(void **state) {
    (void)state;
    static pith_selector selector;
    const float logits[6] = {0.5f, 1, 0.5f, 1, 0.5f, -3};
    const double weights[6] = {1, 1, 1, 1, 1, 1};
    for (size_t n = 1; n <= 6; n++) {
        pith_candidate list[6];
        for (int32_t j = 0; j < 6; j++) list[j] = (pith_candidate){logits[j], j};
        double beyond = (double)n * (1 + 1e-6);
        assert_int_equal(pith_select_weight(&selector, list, weights, n, beyond), n);
        for (size_t j = 0; j < n; j++) assert_int_equal(list[j].id, (int)j);
    }
}

/* ---- the draw ---- */

/* Chi-square of n_draws against the probabilities; with a fixed seed this is a fixed number.
 * Limits: 99.9 %. */
static void assert_distribution(const pith_sampler_options *options, const float *logits,
                                const double *p, int n, double limit) {
    enum { DRAWS = 40000 };
    int seen[16] = {0};
    pith_sampler *sampler = make(n, options);
    for (int i = 0; i < DRAWS; i++) seen[pith_sample_next(sampler, logits)]++;
    pith_sample_free(sampler);
    double chi = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] == 0) {
            assert_int_equal(seen[i], 0);
            continue;
        }
        double d = seen[i] - p[i] * DRAWS;
        chi += d * d / (p[i] * DRAWS);
    }
    if (!(chi < limit))
        print_error("chi-square %g, limit %g, seed %llu\n", chi, limit,
                    (unsigned long long)options->seed);
    assert_true(chi < limit);
}

static void test_distribution(void **state) {
    (void)state;
    const float logits[6] = {logf(8), logf(4), -INFINITY, logf(2), logf(1), logf(1)};
    pith_sampler_options o = defaults();
    for (uint64_t seed = 1; seed <= 4; seed++) {
        o = defaults(), o.seed = seed, o.temperature = 1.0f;
        assert_distribution(&o, logits, (double[]){8 / 16., 4 / 16., 0, 2 / 16., 1 / 16., 1 / 16.},
                            6, 18.47);
        o.top_k = 4; /* of the two last, the lower id stays */
        assert_distribution(&o, logits, (double[]){8 / 15., 4 / 15., 0, 2 / 15., 1 / 15., 0}, 6,
                            16.27);
        o.top_k = 0, o.top_p = 0.8f;
        assert_distribution(&o, logits, (double[]){8 / 14., 4 / 14., 0, 2 / 14., 0, 0}, 6, 13.82);
        o.top_p = 0, o.min_p = 0.2f;
        assert_distribution(&o, logits, (double[]){8 / 14., 4 / 14., 0, 2 / 14., 0, 0}, 6, 13.82);
        o.min_p = 0, o.temperature = 0.5f; /* squares */
        assert_distribution(&o, logits,
                            (double[]){64 / 86., 16 / 86., 0, 4 / 86., 1 / 86., 1 / 86.}, 6, 18.47);
        o.temperature = 1.0f, o.top_k = 3, o.top_p = 0.8f; /* 8/14 + 4/14 = .857 of the three */
        assert_distribution(&o, logits, (double[]){8 / 12., 4 / 12., 0, 0, 0, 0}, 6, 10.83);
        o.top_k = 0, o.top_p = 0.8f, o.temperature = 0.5f; /* the cut is at temperature 1 */
        assert_distribution(&o, logits, (double[]){64 / 84., 16 / 84., 0, 4 / 84., 0, 0}, 6, 13.82);
    }
}

static void test_degenerate(void **state) {
    (void)state;
    pith_sampler_options o = defaults();
    o.temperature = 1.0f;
    const float low[3] = {-INFINITY, -INFINITY, -INFINITY};
    const float nans[3] = {NAN, NAN, NAN};
    const float one[3] = {NAN, -300.0f, -INFINITY};
    const float highs[3] = {INFINITY, 5.0f, INFINITY};
    for (int variant = 0; variant < 8; variant++) {
        o.top_k = variant & 1 ? 2 : 0;
        o.top_p = variant & 2 ? 0.5f : 0;
        o.min_p = variant & 4 ? 0.5f : 0;
        pith_sampler *sampler = make(3, &o);
        assert_int_equal(pith_sample_next(sampler, low), 0);
        assert_int_equal(pith_sample_next(sampler, nans), 0);
        assert_int_equal(pith_sample_next(sampler, one), 1);
        for (int i = 0; i < 20; i++) assert_int_not_equal(pith_sample_next(sampler, highs), 1);
        pith_sample_free(sampler);
        sampler = make(1, &o);
        assert_int_equal(pith_sample_next(sampler, one), 0);
        assert_int_equal(pith_sample_next(sampler, highs), 0);
        pith_sample_free(sampler);
    }
    /* +inf is the largest float, and of equal ones the first wins, with and without penalties */
    const float same[3] = {5.0f, FLT_MAX, INFINITY};
    for (int variant = 0; variant < 4; variant++) {
        o = defaults();
        o.temperature = variant & 1 ? 1.0f : 0;
        o.top_k = variant & 1;
        o.presence_penalty = variant & 2 ? 1.0f : 0;
        pith_sampler *sampler = make(3, &o);
        assert_int_equal(pith_sample_next(sampler, same), 1);
        pith_sample_free(sampler);
    }
}

static void test_extreme_temperature(void **state) {
    (void)state;
    const float logits[4] = {1.0f, 2.0f, 1.9999f, -FLT_MAX};
    pith_sampler_options o = defaults();
    const float cold[] = {FLT_MIN, 1e-45f, 1e-20f};
    for (int t = 0; t < 3; t++) {
        o.temperature = cold[t];
        pith_sampler *sampler = make(4, &o);
        for (int i = 0; i < 50; i++) assert_int_equal(pith_sample_next(sampler, logits), 1);
        pith_sample_free(sampler);
    }
    const float flat[4] = {1.0f, 2.0f, 1.9999f, -1000.0f};
    o.temperature = FLT_MAX;
    for (o.seed = 1; o.seed < 4; o.seed++)
        assert_distribution(&o, flat, (double[]){.25, .25, .25, .25}, 4, 16.27);
    const float wide[2] = {FLT_MAX, -FLT_MAX}; /* two temperatures apart */
    const double low = exp(-2.0) / (1.0 + exp(-2.0));
    for (o.seed = 1; o.seed < 4; o.seed++)
        assert_distribution(&o, wide, (double[]){1.0 - low, low}, 2, 10.83);
}

/* ---- long rows against the whole vocabulary in order ---- */

enum { LONG = 3000 };

typedef struct plain {
    double logit, weight;
    int32_t id;
} plain;

static int in_plain_order(const void *a, const void *b) {
    const plain *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id - y->id;
}

static int by_plain_id(const void *a, const void *b) {
    return ((const plain *)a)->id - ((const plain *)b)->id;
}

static double total_of(plain *list, size_t n, double temperature) {
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += list[i].weight = exp((list[i].logit - list[0].logit) / temperature);
    return total;
}

/* The chain of sample.h by sorting everything; leaves the candidates in id order, weights at the
 * temperature. */
static size_t plain_chain(plain *list, const float *logits, const int *count,
                          const pith_sampler_options *o) {
    size_t n = 0;
    for (int32_t id = 0; id < LONG; id++) {
        double l = (double)fminf(logits[id], FLT_MAX);
        if (!(logits[id] > -INFINITY)) continue;
        if (count[id]) l = l <= 0 ? l * (double)o->repeat_penalty : l / (double)o->repeat_penalty;
        list[n++] = (plain){l, 0, id};
    }
    qsort(list, n, sizeof *list, in_plain_order);
    if (o->top_k > 0 && n > (size_t)o->top_k) n = (size_t)o->top_k;
    if (o->top_p > 0) {
        double target = (double)o->top_p * total_of(list, n, 1), sum = 0;
        for (size_t i = 0; i < n; i++)
            if ((sum += list[i].weight) >= target) n = i + 1;
    }
    if (o->min_p > 0)
        while (list[n - 1].logit < list[0].logit + log((double)o->min_p)) n--;
    total_of(list, n, (double)o->temperature);
    qsort(list, n, sizeof *list, by_plain_id);
    return n;
}

static int32_t plain_draw(const plain *list, size_t n, double uniform) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += list[i].weight;
    double rest = uniform * total;
    for (size_t i = 0; i < n; i++)
        if ((rest -= list[i].weight) < 0) return list[i].id;
    return list[n - 1].id;
}

/* Draws of all mixtures of cuts and penalties over rows with ties, NaN and infinities are those of
 * the plain chain with the same random numbers, but for the few that fall on an edge of rounding. */
static void test_long_rows(void **state) {
    (void)state;
    enum { MIXTURES = 48, DRAWS = 40 };
    static float logits[LONG];
    static plain list[LONG];
    static int count[LONG];
    pith_rng rng;
    pith_rng_init(&rng, 5);
    int differ = 0, largest = 0;
    for (int m = 0; m < MIXTURES; m++) {
        pith_sampler_options o = defaults();
        o.temperature = m % 2 ? 0.7f : 1.5f, o.seed = (uint64_t)m;
        o.top_k = (const int32_t[]){0, 1, 40, 300}[m / 2 % 4];
        o.top_p = m / 8 % 2 ? 0.9f : 0, o.min_p = m / 16 % 3 == 1 ? 0.02f : 0;
        o.repeat_penalty = m / 16 % 3 == 2 ? 1.3f : 1.0f, o.penalty_window = DRAWS;
        for (int i = 0; i < LONG; i++) {
            double x = pith_rng_normal(&rng) * 3;
            logits[i] = (float)(i % 5 ? x : rint(x));
            count[i] = 0;
            if (i % 97 == 3) logits[i] = i % 2 ? NAN : -INFINITY;
        }
        pith_sampler *sampler = make(LONG, &o);
        pith_rng same;
        pith_rng_init(&same, o.seed);
        for (int i = 0; i < DRAWS; i++) {
            size_t n = plain_chain(list, logits, count, &o);
            int32_t want = plain_draw(list, n, pith_rng_uniform(&same));
            int32_t id = pith_sample_next(sampler, logits);
            differ += id != want;
            largest = n > (size_t)largest ? (int)n : largest;
            count[id]++;
        }
        pith_sample_free(sampler);
    }
    assert_true(differ <= MIXTURES * DRAWS / 200);
    assert_true(largest > LONG / 2);
}

/* The weights of a row are exp, and their sums theirs. */
static void test_row_weights(void **state) {
    (void)state;
    static float logits[LONG], weights[LONG];
    static double sums[LONG];
    pith_logit_row row;
    assert_true(pith_row_init(&row, LONG));
    for (int i = 0; i < LONG; i++) logits[i] = 3.0f - 0.04f * (float)i;
    logits[7] = NAN, logits[8] = -INFINITY;
    pith_row_open(&row, logits);
    pith_row_scan(&row);
    double total = 0, above = 0, sum = pith_row_weigh(&row, 1 / (double)0.8f, weights, sums);
    for (int i = 0; i < LONG; i++) {
        double want = exp(((double)logits[i] - 3.0) / (double)0.8f);
        bool none = i == 7 || i == 8 || want < 0x1p-125;
        if (none)
            assert_true(weights[i] == 0.0f);
        else if (want > 0x1p-123)
            assert_true(fabs((double)weights[i] - want) <= 1e-5 * want);
        total += none ? 0 : want;
        above += !none && want > 1e-3 ? want : 0;
    }
    assert_true(fabs(sum - total) < 1e-6 * total);
    assert_true(fabs(pith_row_weight_above(&row, weights, sums, 1e-3f) - above) < 1e-5 * above);
    assert_int_equal(pith_row_at(&row, weights, sums, 0), 0);
    assert_true(weights[pith_row_at(&row, weights, sums, 2 * sum)] > 0);
    pith_row_deinit(&row);
}

static void test_determinism(void **state) {
    (void)state;
    enum { VOCAB = 1000 };
    static float logits[VOCAB];
    pith_rng rng;
    pith_rng_init(&rng, 3);
    for (int i = 0; i < VOCAB; i++) logits[i] = (float)pith_rng_normal(&rng) * 2;
    pith_sampler_options o = defaults();
    o.temperature = 0.9f, o.top_k = 100, o.top_p = 0.95f, o.min_p = 0.01f, o.repeat_penalty = 1.1f,
    o.seed = 77;
    pith_sampler *a = make(VOCAB, &o), *b = make(VOCAB, &o);
    o.seed = 78;
    pith_sampler *c = make(VOCAB, &o);
    int differ = 0;
    for (int i = 0; i < 300; i++) {
        int32_t id = pith_sample_next(a, logits);
        assert_int_equal(id, pith_sample_next(b, logits));
        differ += id != pith_sample_next(c, logits);
    }
    assert_true(differ > 100);
    pith_sample_free(a);
    pith_sample_free(b);
    pith_sample_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_refused),
        cmocka_unit_test(test_options_size),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_penalty_window),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_top_p_crossing),
        cmocka_unit_test(test_target_beyond_the_sum),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_extreme_temperature),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_greedy_blocks),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_row_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
