/* SPDX-License-Identifier: Apache-2.0
 * Promises of sequence breakers: one is found in the token in which its last byte lies, wherever the
 * tokens split the text; tokens without text end what was begun; after tokens are taken back all is
 * as before them. Compared with a search in the joined text. */
#include "sample/history.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <string.h>

enum { N = 40, TEXT = 600 };

static char bytes[N][80];
static pith_span pieces[N];

static void make_pieces(pith_rng *rng, int letters) {
    for (int i = 0; i < N; i++) {
        size_t size = pith_rng_next(rng) % 4;
        if (i % 11 == 3) size = pith_rng_next(rng) % 80;
        for (size_t j = 0; j < size; j++)
            bytes[i][j] = (char)('a' + (int)(pith_rng_next(rng) % (uint64_t)letters));
        pieces[i] = (pith_span){bytes[i], size};
    }
}

/* Whether a text ends in the last token of ids[0 .. n-1]. */
static bool ends_in_last(const int32_t *ids, size_t n, const pith_span *texts, size_t n_texts) {
    static char joined[TEXT * 80];
    size_t first = n - 1, size = 0;
    while (first > 0 && pieces[ids[first - 1]].size > 0) first--;
    size_t own = pieces[ids[n - 1]].size;
    for (size_t t = first; own > 0 && t < n; t++) {
        memcpy(joined + size, pieces[ids[t]].data, pieces[ids[t]].size);
        size += pieces[ids[t]].size;
    }
    for (size_t end = size - own + 1; own > 0 && end <= size; end++)
        for (size_t i = 0; i < n_texts; i++)
            if (end >= texts[i].size &&
                memcmp(joined + end - texts[i].size, texts[i].data, texts[i].size) == 0)
                return true;
    return false;
}

static void test_breakers(void **state) {
    (void)state;
    static char text_bytes[4][PITH_SAMPLE_MAX_BREAKER];
    static int32_t ids[TEXT];
    pith_rng rng;
    pith_rng_init(&rng, 2);
    int n_found = 0, n_tokens = 0;
    for (int round = 0; round < 300; round++) {
        pith_breakers b, copy;
        pith_history h;
        pith_span texts[4];
        size_t n_texts = pith_rng_next(&rng) % 5, n = 0;
        make_pieces(&rng, 2 + round % 3);
        for (size_t i = 0; i < n_texts; i++) {
            size_t size = 1 + pith_rng_next(&rng) % (round % 4 ? 5 : PITH_SAMPLE_MAX_BREAKER);
            for (size_t j = 0; j < size; j++)
                text_bytes[i][j] = (char)('a' + (int)(pith_rng_next(&rng) % 3));
            if (round % 4 == 0) memset(text_bytes[i], 'a', size - size / 4);
            texts[i] = (pith_span){text_bytes[i], size};
        }
        assert_true(pith_breakers_init(&b, texts, n_texts, pieces, N));
        assert_true(pith_breakers_copy(&copy, &b, N));
        assert_true(pith_history_init(&h, 5));
        for (int step = 0; step < 200; step++) {
            if (pith_rng_next(&rng) % 8 == 0) {
                size_t back = pith_rng_next(&rng) % 9;
                if (back > n) back = n;
                for (size_t i = 0; i < back; i++) pith_history_pop(&h);
                n -= back;
                pith_breakers_return(&b, &h);
                pith_breakers_return(&copy, &h);
            }
            ids[n] = (int32_t)(pith_rng_next(&rng) % N);
            bool ends = pith_breakers_push(&b, ids[n]);
            assert_int_equal(pith_breakers_push(&copy, ids[n]), ends);
            pith_history_push(&h, ids[n++], ends);
            assert_int_equal(ends, ends_in_last(ids, n, texts, n_texts));
            n_found += ends, n_tokens++;
        }
        pith_breakers_deinit(&b);
        pith_breakers_deinit(&copy);
        pith_history_deinit(&h);
    }
    assert_true(n_found > n_tokens / 20 && n_found < n_tokens * 19 / 20);
}

static void test_tokens_since_the_last_one(void **state) {
    (void)state;
    pith_history h;
    assert_true(pith_history_init(&h, 100));
    assert_int_equal(pith_history_since_break(&h, 100), 0);
    for (int i = 0; i < 50; i++) pith_history_push(&h, i, i == 20);
    assert_int_equal(pith_history_since_break(&h, 100), 29);
    assert_int_equal(pith_history_since_break(&h, 28), 28);
    for (int i = 0; i < 29; i++) pith_history_pop(&h);
    assert_int_equal(pith_history_since_break(&h, 100), 0);
    pith_history_pop(&h);
    assert_int_equal(pith_history_since_break(&h, 100), 20);
    pith_history_deinit(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breakers),
        cmocka_unit_test(test_tokens_since_the_last_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
