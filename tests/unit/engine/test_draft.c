/* SPDX-License-Identifier: Apache-2.0
 * Promise: guesses from the text follow the longest earlier occurrence of the last tokens, as a
 * plain search finds it; times of steps are interpolated; guesses that lose are given up before
 * they cost more than a hundredth of the time and one token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/draft.h"

#include <string.h>

/* Longest match of the end of ids before `at`, by plain comparison. */
static uint32_t plain_match(const int32_t *ids, size_t at, size_t n) {
    uint32_t length = 0;
    while (length < at && ids[at - 1 - length] == ids[n - 1 - length]) length++;
    return length;
}

static void the_longest_match_wins(void **state) {
    int32_t ids[400], guesses[PITH_DRAFT_MAX];
    pith_rng rng;
    (void)state;
    pith_rng_init(&rng, 7);
    for (int round = 0; round < 200; round++) {
        pith_draft_text text;
        assert_true(pith_draft_text_init(&text, 400));
        size_t n = 1 + pith_rng_next(&rng) % 400;
        uint32_t n_kinds = 2 + (uint32_t)(pith_rng_next(&rng) % 30);
        for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(pith_rng_next(&rng) % n_kinds);
        pith_draft_text_learn(&text, ids, n / 2); /* in two parts, as a reply grows */
        pith_draft_text_learn(&text, ids, n);
        uint32_t matched = 0, best = 0, seen = 0;
        uint32_t n_guesses = pith_draft_text_guess(&text, ids, n, 5, guesses, &matched);
        size_t from = 0;
        for (size_t at = n - 1; at > 0 && seen < 8; at--) { /* the latest eight */
            uint32_t length = plain_match(ids, at, n);
            if (length < PITH_DRAFT_LEAST) continue;
            seen++;
            if (length > 64) length = 64;
            if (length > best) best = length, from = at;
        }
        /* Runs that only share a hash take a place among the eight: none of these texts is so long
         * that this happens often, and then the match found is still a match. */
        assert_true(matched <= best);
        if (matched == best && best > 0) {
            assert_int_equal(n_guesses, 5);
            for (uint32_t i = 0; i < 5; i++) {
                int32_t expected = from + i < n ? ids[from + i] : guesses[from + i - n];
                assert_int_equal(guesses[i], expected);
            }
        } else {
            assert_int_equal(n_guesses, matched > 0 ? 5 : 0);
        }
        pith_draft_text_deinit(&text);
    }
}

static void short_texts_have_no_guess(void **state) {
    const int32_t ids[] = {5, 5, 5, 5};
    int32_t guesses[PITH_DRAFT_MAX];
    uint32_t matched;
    pith_draft_text text;
    (void)state;
    assert_true(pith_draft_text_init(&text, 4));
    for (size_t n = 0; n <= 4; n++) {
        pith_draft_text_learn(&text, ids, n);
        uint32_t found = pith_draft_text_guess(&text, ids, n, 15, guesses, &matched);
        assert_int_equal(found, n == 4 ? 15 : 0);
        for (uint32_t i = 0; i < found; i++) assert_int_equal(guesses[i], 5);
    }
    pith_draft_text_deinit(&text);
}

static void times_between_are_estimated(void **state) {
    pith_pace pace = {0};
    (void)state;
    assert_true(pith_pace_ns(&pace, 1) == 0);
    pith_pace_add(&pace, 1, 0, 100);
    assert_true(pith_pace_ns(&pace, 1) == 100);
    assert_true(pith_pace_ns(&pace, 8) > 100 && pith_pace_ns(&pace, 8) < 800);
    pith_pace_add(&pace, 5, 0, 140);
    assert_true(pith_pace_ns(&pace, 3) == 120);
    assert_true(pith_pace_ns(&pace, 9) >= 180);
    /* A step that was held up counts little. */
    pith_pace_add(&pace, 1, 0, 1e6);
    assert_true(pith_pace_ns(&pace, 1) <= 113);
    /* Prompt rows beside: as many as double the step. */
    assert_int_equal(pith_pace_rows(&pace, 1, 8), 8);
    pith_pace_add(&pace, 0, 100, 200); /* 2 ns a row */
    uint32_t rows = pith_pace_rows(&pace, 1, 8);
    assert_true(rows >= 50 && rows <= 57);
}

/* Of times, in nanoseconds: making guesses takes real ones beside it. */
enum { UNIT = 1000000 };

/* A text that repeats itself while the model never follows it. */
static void losing_guesses_are_given_up(void **state) {
    pith_drafter drafter = {.mode = PITH_DRAFT_NGRAM};
    pith_pace pace = {0};
    int32_t ids[3000], guesses[PITH_DRAFT_MAX];
    double spent = 0, n_tokens = 0;
    (void)state;
    assert_true(pith_draft_text_init(&drafter.text, 3000));
    for (int i = 0; i < 3000; i++) ids[i] = i % 10;
    pith_pace_add(&pace, 1, 0, 100 * UNIT);
    for (size_t n = 100; n < 3000; n++) {
        uint32_t k = pith_draft_guess(&drafter, &pace, ids, n, 15, guesses);
        double ns = (100 + 30.0 * k) * UNIT;
        pith_pace_add(&pace, 1 + k, 0, ns);
        pith_draft_learn(&drafter, &pace, k, 1, ns, true);
        spent += ns / UNIT;
        n_tokens++;
        /* one token, and a first step of 16 rows that took more than was expected */
        assert_true(spent <= 1.011 * 100 * n_tokens + 100 + 450);
    }
    pith_draft_text_deinit(&drafter.text);
}

/* The same where the model does follow: steps check many guesses. */
static void winning_guesses_grow(void **state) {
    pith_drafter drafter = {.mode = PITH_DRAFT_NGRAM};
    pith_pace pace = {0};
    int32_t ids[3000], guesses[PITH_DRAFT_MAX];
    double spent = 0, n_tokens = 0;
    (void)state;
    assert_true(pith_draft_text_init(&drafter.text, 3000));
    for (int i = 0; i < 3000; i++) ids[i] = i % 10;
    pith_pace_add(&pace, 1, 0, 100 * UNIT);
    for (size_t n = 100; n + 16 < 3000;) {
        uint32_t k = pith_draft_guess(&drafter, &pace, ids, n, 15, guesses);
        double ns = (100 + 10.0 * k) * UNIT;
        pith_pace_add(&pace, 1 + k, 0, ns);
        pith_draft_learn(&drafter, &pace, k, k + 1, ns, true);
        n += k + 1;
        spent += ns / UNIT;
        n_tokens += k + 1;
    }
    assert_true(n_tokens * 100 / spent > 4); /* 16 tokens in 250 ns is 6.4 */
    pith_draft_text_deinit(&drafter.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_match_wins),
        cmocka_unit_test(short_texts_have_no_guess),
        cmocka_unit_test(times_between_are_estimated),
        cmocka_unit_test(losing_guesses_are_given_up),
        cmocka_unit_test(winning_guesses_grow),
    };
    return cmocka_run_group_tests_name("guesses", tests, NULL, NULL);
}
