/* SPDX-License-Identifier: Apache-2.0
 * Promise: with pith_sample_distribution a caller accepts or rejects drafts so that each token has
 * exactly the distribution that the sampler alone gives it, whatever stages are on: XTC by the coin
 * of the position, mirostat by its state, penalties by what was accepted. */
#include "sample/sampler_internal.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { N = 6, PLACES = 3, ROUNDS = 20000, TEXTS = N * N * N };

/* Rows depend on the token before, as a model's do. */
static void fill_row(float row[N], int32_t before, int place) {
    for (int i = 0; i < N; i++)
        row[i] = (float)((i * 5 + (before + 1) * 3 + place * 7) % 11) * 0.3f;
}

static pith_sampler_options options_of(int variant) {
    pith_sampler_options o = {.size = sizeof o, .temperature = 0.9f};
    if (variant == 0) o.top_p = 0.9f, o.min_p = 0.05f;
    if (variant == 1) o.xtc_probability = 0.5f, o.xtc_threshold = 0.15f;
    if (variant == 2) o.mirostat = 2, o.mirostat_tau = 2, o.mirostat_eta = 1;
    if (variant == 3) {
        o.repeat_penalty = 1.5f, o.typical_p = 0.9f, o.xtc_probability = 0.3f;
        o.dynamic_range = 0.4f;
    }
    return o;
}

enum { VARIANTS = 4 };

/* The text of PLACES tokens as a number. */
static int text_of(const int32_t ids[PLACES]) {
    return (int)(ids[0] * N * N + ids[1] * N + ids[2]);
}

static int32_t draw_from(const double *p, pith_rng *rng) {
    double rest = pith_rng_uniform(rng);
    int32_t id = 0;
    for (int32_t i = 0; i < N; i++) {
        if (!(p[i] > 0)) continue;
        id = i;
        if ((rest -= p[i]) < 0) break;
    }
    return id;
}

/* A token by accepting one of the draft distribution q with p/q, else from the difference. */
static int32_t speculate(pith_sampler *sampler, const float *row, const double *q, pith_rng *rng) {
    int32_t ids[N], drafted = draw_from(q, rng);
    double list[N], p[N] = {0}, rest[N], sum = 0;
    size_t n = pith_sample_distribution(sampler, row, NULL, ids, list, N);
    for (size_t i = 0; i < n; i++) p[ids[i]] = list[i];
    if (pith_rng_uniform(rng) < p[drafted] / q[drafted]) return drafted;
    for (int i = 0; i < N; i++) sum += rest[i] = p[i] > q[i] ? p[i] - q[i] : 0;
    for (int i = 0; i < N; i++) rest[i] /= sum;
    return draw_from(rest, rng);
}

static void make_texts(int variant, bool speculates, int seen[TEXTS]) {
    static const double q[N] = {0.3, 0.05, 0.25, 0.1, 0.2, 0.1};
    pith_sampler_options o = options_of(variant);
    pith_sampler *sampler = NULL;
    pith_rng rng;
    o.seed = speculates ? 11 : 12;
    pith_rng_init(&rng, 21);
    assert_int_equal(pith_sample_new(N, &o, &sampler, NULL), PITH_OK);
    memset(seen, 0, TEXTS * sizeof *seen);
    for (int round = 0; round < ROUNDS; round++) {
        int32_t ids[PLACES], before = -1;
        for (int place = 0; place < PLACES; place++) {
            float row[N];
            fill_row(row, before, place);
            if (speculates) {
                ids[place] = speculate(sampler, row, q, &rng);
                pith_sample_accept(sampler, &ids[place], 1);
            } else {
                ids[place] = pith_sample_next(sampler, row);
            }
            before = ids[place];
        }
        seen[text_of(ids)]++;
        assert_true(pith_sample_rewind(sampler, PLACES)); /* the next text begins anew */
    }
    pith_sample_free(sampler);
}

static void test_drafts_keep_the_distribution(void **state) {
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        static int alone[TEXTS], drafted[TEXTS];
        double chi = 0;
        int n = 0;
        make_texts(variant, false, alone);
        make_texts(variant, true, drafted);
        for (int i = 0; i < TEXTS; i++) {
            double both = alone[i] + drafted[i], d = alone[i] - drafted[i];
            if (both < 10) continue;
            chi += d * d / both;
            n++;
        }
        double limit = n + 3.1 * sqrt(2.0 * n); /* 99.9 % */
        if (!(chi < limit)) print_error("variant %d: chi-square %g of %d\n", variant, chi, n);
        assert_true(n > 10 && chi < limit);
    }
}

/* A token of the distribution that is accepted leaves the sampler as if it had been drawn. */
static void test_accepted_is_as_drawn(void **state) {
    (void)state;
    pith_sampler_options o = options_of(2);
    o.seed = 3;
    pith_sampler *a = NULL, *b = NULL;
    assert_int_equal(pith_sample_new(N, &o, &a, NULL), PITH_OK);
    assert_int_equal(pith_sample_clone(a, 9, &b, NULL), PITH_OK);
    for (int t = 0; t < 50; t++) {
        float row[N];
        int32_t ids[N];
        double p[N];
        fill_row(row, t, t % 3);
        int32_t id = pith_sample_next(a, row);
        assert_true(pith_sample_distribution(b, row, NULL, ids, p, N) > 0);
        pith_sample_accept(b, &id, 1);
        assert_true(a->mu == b->mu);
    }
    double mu = a->mu;
    pith_sample_accept(a, (const int32_t[]){1, 2}, 2); /* not drawn: nothing to learn from */
    assert_true(a->mu == mu);
    pith_sample_free(a);
    pith_sample_free(b);
}

/* XTC's coin is thrown once for a token, however often its distribution is asked for. */
static void test_one_coin_a_token(void **state) {
    (void)state;
    pith_sampler_options o = options_of(1);
    pith_sampler *a = NULL, *b = NULL;
    assert_int_equal(pith_sample_new(N, &o, &a, NULL), PITH_OK);
    assert_int_equal(pith_sample_new(N, &o, &b, NULL), PITH_OK);
    int heads = 0;
    for (int t = 0; t < 400; t++) {
        float row[N];
        int32_t first[N], again[N];
        double p[N], q[N];
        fill_row(row, t, 0);
        size_t n = pith_sample_distribution(a, row, NULL, first, p, N);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(pith_sample_distribution(a, row, NULL, again, q, N), n);
            assert_memory_equal(first, again, n * sizeof *first);
            assert_memory_equal(p, q, n * sizeof *p);
        }
        assert_int_equal(pith_sample_next(a, row), pith_sample_next(b, row));
        heads += n < N;
    }
    assert_true(heads > 100 && heads < 300);
    pith_sample_free(a);
    pith_sample_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drafts_keep_the_distribution),
        cmocka_unit_test(test_accepted_is_as_drawn),
        cmocka_unit_test(test_one_coin_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
