/* SPDX-License-Identifier: Apache-2.0
 * Promises of the chain: each stage, alone and in mixtures, in any order, with a history, biases
 * and a filter, leaves the distribution that a textbook computation leaves (plain_chain.h); draws
 * follow it; and the filter is exactly a row with -inf in it. */
#include "sample/sampler_internal.h"
#include "support/brief.h"
#include "unit/sample/plain_chain.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <stdio.h>

enum { MOST = 3000, STEPS = 12 };

static pith_sampler_options defaults(void) {
    return (pith_sampler_options){.size = sizeof(pith_sampler_options)};
}

/* ---- A small vocabulary for DRY ---- */

static char piece_bytes[MOST][4];
static pith_span pieces[MOST];

static void make_pieces(pith_rng *rng) {
    static const char letters[] = "ab:\n\"*c ";
    for (int i = 0; i < MOST; i++) {
        size_t size = pith_rng_next(rng) % 5;
        if (size == 4) size = 1;
        for (size_t j = 0; j < size; j++) piece_bytes[i][j] = letters[pith_rng_next(rng) % 8];
        pieces[i] = (pith_span){piece_bytes[i], size};
    }
}

static pith_sampler *make(int32_t n_vocab, const pith_sampler_options *options) {
    pith_sampler *sampler = NULL;
    pith_error error = {0};
    if (pith_sample_new_with_pieces(pieces, n_vocab, options, &sampler, &error) != PITH_OK)
        print_error("%s\n", error.text);
    assert_non_null(sampler);
    return sampler;
}

/* ---- Rows ---- */

static void fill_row(float *row, int32_t n, int kind, pith_rng *rng) {
    for (int32_t i = 0; i < n; i++) {
        double x = pith_rng_normal(rng);
        row[i] = (float)(x * 2.5);
        if (kind == 1) row[i] = rintf(row[i]); /* ties */
        if (kind == 2)
            row[i] = (float)(9 - 1.3 * log(1 + (double)i)); /* descending, likely first */
        if (kind == 3 && i % 3 == 0) row[i] = i % 2 ? NAN : -INFINITY;
        if (kind == 4) row[i] = i == n / 2 ? 3.5f : i % 2 ? NAN : -INFINITY; /* one candidate */
        if (kind == 5) row[i] = (float)(x * 40 - 100);
        if (kind == 6) row[i] = 1.5f; /* one tie */
    }
    if (kind == 3 && n > 5) row[5] = INFINITY, row[4] = 3e4f;
}

enum { KINDS = 7 };

/* ---- Mixtures of stages ---- */

static float pick(pith_rng *rng, float a, float b) {
    return a + (b - a) * (float)pith_rng_uniform(rng);
}

static bool chance(pith_rng *rng, int of) {
    return pith_rng_next(rng) % (uint64_t)of == 0;
}

static const char *const breaker_lists[][3] = {{":", "b\n", "aa"}, {"ab:", "\"", "cc c"}};
static const char *const orders[] = {
    NULL, "temperature;penalties;dry;top_k;typical;top_p;min_p;xtc;top_n_sigma",
    "xtc,min_p,top_p,typical,top_k,top_n_sigma,dry,penalties,temperature",
    "top_k;dry;penalties;temperature;xtc;top_n_sigma;typical;min_p;top_p",
    "dry;min_p;temperature;typical;penalties;xtc;top_p;top_k;top_n_sigma"};

/* only: the one stage that is on, 0 .. 8; 9: several. */
static pith_sampler_options mixture(pith_rng *rng, int only, int32_t n, pith_logit_bias *biases) {
    pith_sampler_options o = defaults();
    bool all = only == 9;
#define ON(stage) (only == (stage) || (all && chance(rng, 3)))
    o.temperature = all && chance(rng, 6) ? 0 : 1;
    o.seed = pith_rng_next(rng);
    if (ON(0)) {
        o.repeat_penalty = pick(rng, 0.5f, 2);
        o.frequency_penalty = pick(rng, -0.5f, 1);
        o.presence_penalty = chance(rng, 2) ? 0 : pick(rng, -1, 1);
        o.penalty_window = (int32_t)(pith_rng_next(rng) % 20) - 1;
    }
    if (ON(1)) {
        o.dry_multiplier = pick(rng, 0.1f, 2);
        o.dry_base = chance(rng, 3) ? 0 : pick(rng, 1, 3);
        o.dry_allowed_length = (int32_t)(pith_rng_next(rng) % 4);
        o.dry_window = chance(rng, 2) ? 0 : (int32_t)(pith_rng_next(rng) % 40);
        size_t list = pith_rng_next(rng) % 3;
        if (list < 2) o.dry_breakers = breaker_lists[list], o.n_dry_breakers = 3;
    }
    if (ON(2)) o.top_n_sigma = pick(rng, 0.2f, 3);
    if (ON(3)) o.top_k = 1 + (int32_t)(pith_rng_next(rng) % (uint64_t)(n + 3));
    if (ON(4)) o.typical_p = pick(rng, 0.05f, 1);
    if (ON(5)) o.top_p = pick(rng, 0.05f, 1);
    if (ON(6)) o.min_p = chance(rng, 4) ? 1 : pick(rng, 0.001f, 0.3f);
    if (ON(7)) o.xtc_probability = 0.7f, o.xtc_threshold = chance(rng, 2) ? 0 : pick(rng, 0, 0.6f);
    if (ON(8) && o.temperature > 0.0f) o.temperature = pick(rng, 0.3f, 2);
    if (ON(8) && chance(rng, 2)) {
        o.dynamic_range = pick(rng, 0.1f, 1.5f);
        o.dynamic_exponent = chance(rng, 2) ? 0 : pick(rng, 0.5f, 2);
    }
    if (all && chance(rng, 4)) o.mirostat = 1 + (int32_t)chance(rng, 2);
    if (o.mirostat) o.mirostat_tau = pick(rng, 0.5f, 6), o.mirostat_eta = pick(rng, 0, 1);
    if (all) o.order = orders[pith_rng_next(rng) % 5];
    for (o.n_biases = 0; all && o.n_biases < 8 && chance(rng, 2); o.n_biases++) {
        biases[o.n_biases].id = (int32_t)(pith_rng_next(rng) % (uint64_t)n);
        biases[o.n_biases].bias = chance(rng, 3) ? -INFINITY : pick(rng, -5, 5);
    }
    o.biases = biases;
#undef ON
    return o;
}

/* ---- Filters ---- */

typedef struct masked {
    bool allowed[MOST];
    uint32_t bits[(MOST + 31) / 32];
    int n_asked, n_masks;
    int32_t asked[64];
} masked;

static bool allows(void *user, int32_t id) {
    masked *m = user;
    if (m->n_asked < 64) m->asked[m->n_asked] = id;
    m->n_asked++;
    return m->allowed[id];
}

static const uint32_t *mask(void *user) {
    masked *m = user;
    m->n_masks++;
    return m->bits;
}

/* Bits behind the vocabulary are set: they must not matter. */
static void fill_mask(masked *m, int32_t n, int kind, pith_rng *rng) {
    memset(m, 0, sizeof *m);
    memset(m->bits, 0xff, sizeof m->bits);
    for (int32_t i = 0; i < n; i++) {
        bool a = chance(rng, 2);
        if (kind == 0) a = true;
        if (kind == 1) a = false;
        if (kind == 2) a = chance(rng, 200);
        if (kind == 3) a = !chance(rng, 200);
        if (kind == 4) a = i / 32 % 3 == 0;
        if (kind == 5) a = i / 256 % 2 == 1;
        m->allowed[i] = a;
        if (!a) m->bits[i / 32] &= ~(1u << (i % 32));
    }
}

enum { MASKS = 7 };

/* ---- The distribution ---- */

static bool same_distribution(plain_chain *c, const int32_t *ids, const double *p, size_t n) {
    size_t at = 0;
    double sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        double want = c->list[i].p;
        if (at < n && ids[at] == c->list[i].id) {
            if (fabs(p[at] - want) > 1e-4 * want + 1e-9) {
                print_error("id %d: %g, expected %g\n", ids[at], p[at], want);
                return false;
            }
            sum += p[at++];
        } else if (want > 1e-30) {
            print_error("id %d is missing, expected %g\n", c->list[i].id, want);
            return false;
        }
    }
    return at == n && (n == 0 || fabs(sum - 1) < 1e-6);
}

static void tell(const pith_sampler_options *o, const plain_chain *c, int32_t n, size_t got,
                 const char *what) {
    print_error("%s: %d logits, %zu candidates, expected %zu, margin %g; temperature %g top_k %d "
                "top_p %g min_p %g typical %g sigma %g xtc %g %g repeat %g %g %g %d dry %g %d %d "
                "mirostat %d range %g order %s biases %zu\n",
                what, n, got, c->n, c->margin, (double)o->temperature, o->top_k, (double)o->top_p,
                (double)o->min_p, (double)o->typical_p, (double)o->top_n_sigma,
                (double)o->xtc_probability, (double)o->xtc_threshold, (double)o->repeat_penalty,
                (double)o->frequency_penalty, (double)o->presence_penalty, o->penalty_window,
                (double)o->dry_multiplier, o->dry_allowed_length, o->dry_window, o->mirostat,
                (double)o->dynamic_range, o->order ? o->order : "-", o->n_biases);
}

/* One token: the distribution, then the draw, from the sampler and from the textbook. Returns
 * whether it was compared. */
static bool check_token(pith_sampler *sampler, plain_chain *c, const float *row, masked *m,
                        const pith_sampler_options *o) {
    static int32_t ids[MOST];
    static double p[MOST];
    pith_token_filter filter = {m, allows, mask, NULL};
    const pith_token_filter *used = m ? &filter : NULL;
    size_t n = pith_sample_distribution(sampler, row, used, ids, p, MOST);
    c->coin = sampler->luck.coin;
    plain_run(c, row, m ? m->allowed : NULL);
    bool is_clear = c->margin > 3e-5;
    if (is_clear && !same_distribution(c, ids, p, n)) {
        tell(o, c, c->n_vocab, n, "distribution");
        fail();
    }
    assert_int_equal(pith_sample_distribution(sampler, row, used, ids, p, 0), n);
    int32_t id = pith_sample_next_of(sampler, row, used);
    if (n == 0) {
        assert_int_equal(id, -1);
        return is_clear;
    }
    size_t at = 0;
    while (at < n && ids[at] != id) at++;
    assert_true(at < n);
    plain_accept(c, id, p[at]);
    if (c->o.mirostat && sampler->settings.is_greedy) c->mu = sampler->mu;
    c->mu = c->o.mirostat ? sampler->mu : c->mu; /* rounding does not add up */
    return is_clear;
}

/* Of a brief test: an eighth. */
static int rounds_of(int n) {
    return test_is_brief() ? n / 8 : n;
}

static void compare(int only, int rounds, bool filtered, uint64_t seed) {
    static const int32_t sizes[] = {1, 2, 3, 17, 255, 256, 257, 513, MOST};
    static float row[MOST];
    static masked m;
    static plain_chain c;
    pith_logit_bias biases[8];
    pith_rng rng;
    int n_clear = 0, n_all = 0;
    pith_rng_init(&rng, seed);
    for (int round = 0; round < rounds; round++) {
        int32_t n = sizes[pith_rng_next(&rng) % (round % 8 ? 8 : 9)];
        make_pieces(&rng);
        pith_sampler_options o = mixture(&rng, only, n, biases);
        pith_sampler *sampler = make(n, &o);
        int kind = (int)(pith_rng_next(&rng) % KINDS);
        plain_init(&c, &o, n);
        c.pieces = pieces;
        for (int i = 0; i < 60; i++) { /* a history that repeats itself */
            int32_t id = (int32_t)(pith_rng_next(&rng) % (uint64_t)(n < 5 ? n : 5));
            pith_sample_accept(sampler, &id, 1);
            plain_accept(&c, id, 0);
        }
        for (int step = 0; step < STEPS; step++, n_all++) {
            fill_row(row, n, kind, &rng);
            if (filtered) fill_mask(&m, n, (int)(pith_rng_next(&rng) % MASKS), &rng);
            n_clear += check_token(sampler, &c, row, filtered ? &m : NULL, &o);
        }
        free(c.list);
        pith_sample_free(sampler);
    }
    if (n_clear < n_all / 2) print_error("only %d of %d were compared\n", n_clear, n_all);
    assert_true(n_clear >= n_all / 2);
}

static void test_each_stage(void **state) {
    (void)state;
    for (int only = 0; only < 9; only++) compare(only, rounds_of(120), false, (uint64_t)only + 1);
}

static void test_mixtures(void **state) {
    (void)state;
    compare(9, rounds_of(1500), false, 100);
}

static void test_mixtures_with_a_filter(void **state) {
    (void)state;
    compare(9, rounds_of(800), true, 200);
}

/* ---- The filter ---- */

/* Draw for draw the same ids as from a row that holds -inf, with the same seed. */
static void test_filter_is_a_masked_row(void **state) {
    (void)state;
    static const int32_t sizes[] = {1, 31, 32, 33, 256, 300, 1025, MOST};
    static float row[MOST], other[MOST];
    static masked m;
    pith_logit_bias biases[8];
    pith_rng rng;
    pith_rng_init(&rng, 9);
    make_pieces(&rng);
    for (int round = 0; round < rounds_of(600); round++) {
        int32_t n = sizes[round % 8];
        pith_sampler_options o = mixture(&rng, 9, n, biases);
        if (round % 5 == 0) o = defaults(); /* plain greedy */
        pith_sampler *a = make(n, &o), *b = make(n, &o);
        pith_token_filter filter = {&m, allows, mask, NULL};
        for (int step = 0; step < 10; step++) {
            fill_row(row, n, round % KINDS, &rng);
            fill_mask(&m, n, (int)(pith_rng_next(&rng) % MASKS), &rng);
            for (int32_t i = 0; i < n; i++) other[i] = m.allowed[i] ? row[i] : -INFINITY;
            int32_t id = pith_sample_next_of(a, row, &filter);
            assert_int_equal(id, pith_sample_next_of(b, other, NULL));
            if (id >= 0) assert_true(m.allowed[id]);
        }
        pith_sample_free(a);
        pith_sample_free(b);
    }
}

/* A greedy draw asks for the likeliest ids one by one, 32 of them, and only then for all. */
static void test_greedy_asks_the_likeliest_first(void **state) {
    (void)state;
    enum { N = 1000 };
    static float row[N];
    static masked m;
    pith_sampler_options o = defaults();
    pith_sampler *sampler = make(N, &o);
    pith_token_filter filter = {&m, allows, mask, NULL};
    for (int32_t i = 0; i < N; i++) row[(i * 7 + 3) % N] = (float)-i; /* rank i is id 7 i + 3 */
    for (int32_t first = 0; first < 40; first++) {
        memset(&m, 0, sizeof m);
        for (int32_t i = first; i < N; i += 3) {
            int32_t id = (i * 7 + 3) % N;
            m.allowed[id] = true;
            m.bits[id / 32] |= 1u << (id % 32);
        }
        assert_int_equal(pith_sample_next_of(sampler, row, &filter), (first * 7 + 3) % N);
        assert_int_equal(m.n_asked, first < 32 ? first + 1 : 32);
        assert_int_equal(m.n_masks, first < 32 ? 0 : 1);
        for (int i = 0; i < m.n_asked; i++) assert_int_equal(m.asked[i], (i * 7 + 3) % N);
    }
    pith_sample_free(sampler);
}

/* ---- Draws ---- */

/* Draws of 8 ids against the textbook's probabilities; limit of chi-square: 99.9 % of 7 degrees. */
static void test_draws_follow_the_distribution(void **state) {
    (void)state;
    enum { N = 8, DRAWS = 20000 };
    static plain_chain c;
    const float row[N] = {1.2f, 0.7f, 2.0f, 0.1f, 1.1f, 1.9f, -0.5f, 0.4f};
    pith_sampler_options list[9];
    for (int i = 0; i < 9; i++) list[i] = defaults(), list[i].temperature = 0.9f;
    list[0].typical_p = 0.6f;
    list[1].top_n_sigma = 1.2f;
    list[2].xtc_probability = 0.4f;
    list[3].xtc_probability = 1, list[3].xtc_threshold = 0.05f, list[3].min_p = 0.1f;
    list[4].dynamic_range = 0.6f, list[4].dynamic_exponent = 1.5f;
    list[5].top_k = 5, list[5].top_p = 0.9f;
    list[6].order = "temperature;top_p;top_k", list[6].top_p = 0.7f, list[6].top_k = 6;
    list[7].mirostat = 1, list[7].mirostat_tau = 1.5f, list[7].mirostat_eta = 1e-9f;
    list[8].mirostat = 2, list[8].mirostat_tau = 1.5f, list[8].mirostat_eta = 1e-9f;
    for (int i = 0; i < 9; i++) {
        double want[N] = {0}, chi = 0;
        int seen[N] = {0};
        plain_init(&c, &list[i], N);
        for (int heads = 0; heads < 2; heads++) {
            double share = (double)list[i].xtc_probability;
            c.coin = heads ? 0 : 1;
            plain_run(&c, row, NULL);
            for (size_t j = 0; j < c.n; j++)
                want[c.list[j].id] += c.list[j].p * (heads ? share : 1 - share);
        }
        list[i].seed = 4;
        pith_sampler *sampler = make(N, &list[i]);
        for (int d = 0; d < DRAWS; d++) seen[pith_sample_next(sampler, row)]++;
        for (int id = 0; id < N; id++) {
            double d = seen[id] - want[id] * DRAWS;
            if (want[id] == 0) assert_int_equal(seen[id], 0);
            if (want[id] > 0) chi += d * d / (want[id] * DRAWS);
        }
        if (!(chi < 24.3)) print_error("mixture %d: chi-square %g\n", i, chi);
        assert_true(chi < 24.3);
        pith_sample_free(sampler);
        free(c.list);
    }
}

/* Mirostat keeps the surprise of what it draws near tau, where the row allows it. */
static void test_mirostat_keeps_the_surprise(void **state) {
    (void)state;
    enum { N = 2000, TOKENS = 1500 };
    static float row[N];
    static int32_t ids[N];
    static double p[N];
    for (int version = 1; version <= 2; version++) {
        pith_sampler_options o = defaults();
        o.temperature = 1, o.mirostat = version, o.mirostat_tau = 3, o.seed = 3;
        pith_sampler *sampler = make(N, &o);
        pith_rng rng;
        pith_rng_init(&rng, 6);
        double sum = 0;
        for (int t = 0; t < TOKENS; t++) {
            fill_row(row, N, 0, &rng);
            size_t n = pith_sample_distribution(sampler, row, NULL, ids, p, N), at = 0;
            int32_t id = pith_sample_next(sampler, row);
            while (ids[at] != id) at++;
            assert_true(at < n);
            if (t >= 200) sum -= log2(p[at]) / (TOKENS - 200);
        }
        if (!(fabs(sum - 3) < 0.2)) print_error("version %d: %g bits\n", version, sum);
        assert_true(fabs(sum - 3) < 0.2);
        pith_sample_free(sampler);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_stage),
        cmocka_unit_test(test_mixtures),
        cmocka_unit_test(test_mixtures_with_a_filter),
        cmocka_unit_test(test_filter_is_a_masked_row),
        cmocka_unit_test(test_greedy_asks_the_likeliest_first),
        cmocka_unit_test(test_draws_follow_the_distribution),
        cmocka_unit_test(test_mirostat_keeps_the_surprise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
