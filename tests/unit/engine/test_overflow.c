/* SPDX-License-Identifier: Apache-2.0
 * Promises of overflow.c for every small context: the first tokens stay, and as many as were asked
 * for up to half the context; a shortened prompt is its two ends and leaves room for the reply; a
 * shift drops the older half of what is behind the first tokens. Nothing outside is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/reply.h"

#include <string.h>

enum { MOST_CTX = 40, CANARY = -77 };

static const pith_overflow kinds[] = {PITH_OVERFLOW_SHIFT, PITH_OVERFLOW_TRUNCATE_MIDDLE};

static void the_first_tokens_stay(void **state) {
    pith_generate_options options = {.overflow = PITH_OVERFLOW_SHIFT};
    (void)state;
    assert_int_equal(pith_overflow_keep(4096, &options), 4);
    assert_int_equal(pith_overflow_keep(7, &options), 3);
    assert_int_equal(pith_overflow_keep(1, &options), 0);
    options.n_keep = 2047;
    assert_int_equal(pith_overflow_keep(4096, &options), 2047);
    options.n_keep = 2049;
    assert_int_equal(pith_overflow_keep(4096, &options), 2048);
    options = (pith_generate_options){.overflow = PITH_OVERFLOW_TRUNCATE_MIDDLE};
    assert_int_equal(pith_overflow_keep(4096, &options), 512);
}

/* What is written is the prompt's beginning and its end, and nothing behind it. */
static void assert_ends(const int32_t *ids, size_t n, size_t keep, size_t n_prompt) {
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids[i], (int32_t)(i < keep ? i : n_prompt - n + i));
    assert_int_equal(ids[n], CANARY);
}

static void a_shortened_prompt_leaves_room(void **state) {
    int32_t prompt[3 * MOST_CTX], ids[MOST_CTX + 1];
    (void)state;
    for (int32_t i = 0; i < 3 * MOST_CTX; i++) prompt[i] = i;
    for (size_t n_ctx = 2; n_ctx <= MOST_CTX; n_ctx++) {
        for (int32_t max_tokens = 0; max_tokens <= (int32_t)n_ctx; max_tokens++) {
            for (int32_t n_keep = 0; n_keep <= (int32_t)n_ctx / 2; n_keep++) {
                pith_generate_options options = {
                    .overflow = kinds[n_ctx % 2], .max_tokens = max_tokens, .n_keep = n_keep};
                size_t wanted = max_tokens ? (size_t)max_tokens : n_ctx / 4, half = n_ctx / 2;
                size_t n_prompt = n_ctx + 1 + (size_t)(n_keep * 7) % n_ctx;
                for (size_t i = 0; i <= MOST_CTX; i++) ids[i] = CANARY;
                size_t n =
                    pith_overflow_shorten(n_ctx, &options, (pith_id_span){prompt, n_prompt}, ids);
                assert_true(n >= 1 && n < n_ctx);
                assert_true(n_ctx - n >= (wanted < half ? wanted : half));
                assert_ends(ids, n, pith_overflow_keep(n_ctx, &options), n_prompt);
            }
        }
    }
}

static void a_shift_drops_the_older_half(void **state) {
    (void)state;
    for (size_t n = 1; n <= MOST_CTX; n++) {
        for (size_t keep = 0; keep <= n + 2; keep++) {
            int32_t ids[MOST_CTX + 1];
            for (size_t i = 0; i <= MOST_CTX; i++) ids[i] = i < n ? (int32_t)i : CANARY;
            size_t drop = pith_overflow_drop(ids, n, keep);
            assert_int_equal(drop, n > keep ? (n - keep) / 2 : 0);
            for (size_t i = 0; i < n - drop; i++)
                assert_int_equal(ids[i], (int32_t)(i < keep ? i : i + drop));
            assert_int_equal(ids[n], CANARY);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_tokens_stay),
        cmocka_unit_test(a_shortened_prompt_leaves_room),
        cmocka_unit_test(a_shift_drops_the_older_half),
    };
    return cmocka_run_group_tests_name("overflow", tests, NULL, NULL);
}
