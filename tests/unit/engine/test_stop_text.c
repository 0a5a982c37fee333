/* SPDX-License-Identifier: Apache-2.0
 * Promise: what goes out before a stop string does not depend on where the text was cut into
 * chunks, nothing of the stop string goes out, and text that cannot become one is not held back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 64 };

/* Pushes text in chunks; cuts: bit i set cuts behind byte i. Returns whether a stop string was
 * found. */
static bool run(const char *const *stops, size_t n_stops, const char *text, uint64_t cuts,
                char out[MAX_TEXT]) {
    pith_stop_text held;
    size_t size = strlen(text), n_out = 0;
    bool found = false;
    assert_int_equal(pith_stop_text_init(&held, stops, n_stops, MAX_TEXT, NULL), PITH_OK);
    for (size_t at = 0; at < size && !found;) {
        size_t end = at + 1;
        while (end < size && !(cuts >> (end - 1) & 1)) end++;
        size_t ready = pith_stop_text_push(&held, text + at, end - at, &found);
        memcpy(out + n_out, held.held, ready);
        n_out += ready;
        pith_stop_text_drop(&held, ready);
        at = end;
    }
    if (!found) {
        memcpy(out + n_out, held.held, held.n_held);
        n_out += held.n_held;
    }
    out[n_out] = '\0';
    pith_stop_text_deinit(&held);
    return found;
}

/* All ways to cut a text of up to 16 bytes. */
static void check(const char *const *stops, size_t n_stops, const char *text, const char *expected,
                  bool expect_found) {
    char out[MAX_TEXT];
    size_t size = strlen(text);
    assert_true(size <= 16);
    for (uint64_t cuts = 0; cuts < UINT64_C(1) << size; cuts++) {
        bool found = run(stops, n_stops, text, cuts, out);
        if (found == expect_found && strcmp(out, expected) == 0) continue;
        fail_msg("\"%s\" cut by %#llx gives \"%s\" (%s), expected \"%s\"", text,
                 (unsigned long long)cuts, out, found ? "stopped" : "not stopped", expected);
    }
}

static void stops_are_cut(void **state) {
    const char *one[] = {"END"};
    const char *two[] = {"abcd", "bc"};
    const char *same[] = {"aab"};
    const char *character[] = {"\xE2\x82\xAC"};
    (void)state;
    check(one, 1, "some END text", "some ", true);
    check(one, 1, "END", "", true);
    check(one, 1, "ENEND", "EN", true);
    check(one, 1, "no EN D", "no EN D", false);
    check(one, 1, "EN", "EN", false);
    check(two, 2, "xabcdy", "xa", true); /* bc ends first */
    check(two, 2, "xabdy", "xabdy", false);
    check(same, 1, "aaaab", "aa", true);
    check(character, 1, "5 \xE2\x82\xAC", "5 ", true);
    check(character, 1, "5 \xE2\x82\xAD", "5 \xE2\x82\xAD", false);
    check(NULL, 0, "anything", "anything", false);
}

static void nothing_waits_needlessly(void **state) {
    const char *stops[] = {"END", "\n\n"};
    pith_stop_text held;
    bool found = false;
    (void)state;
    assert_int_equal(pith_stop_text_init(&held, stops, 2, 16, NULL), PITH_OK);
    assert_int_equal(pith_stop_text_push(&held, "abc", 3, &found), 3);
    pith_stop_text_drop(&held, 3);
    assert_int_equal(pith_stop_text_push(&held, "E", 1, &found), 0);
    assert_int_equal(pith_stop_text_push(&held, "N", 1, &found), 0);
    assert_int_equal(pith_stop_text_push(&held, "E", 1, &found), 2); /* EN is text, E waits */
    pith_stop_text_drop(&held, 2);
    assert_int_equal(held.n_held, 1);
    pith_stop_text_deinit(&held);
}

/* Random texts over two letters: the same as searching the whole text. */
static void like_searching_the_whole(void **state) {
    pith_rng rng;
    (void)state;
    pith_rng_init(&rng, 7);
    for (int turn = 0; turn < 20000; turn++) {
        char text[33] = "", stop[2][8] = {"", ""}, out[MAX_TEXT];
        const char *stops[2] = {stop[0], stop[1]};
        size_t size = (size_t)(pith_rng_next(&rng) % 32), end = size, begin = size;
        for (size_t i = 0; i < size; i++) text[i] = pith_rng_next(&rng) & 1 ? 'a' : 'b';
        for (int s = 0; s < 2; s++) {
            size_t n = 1 + (size_t)(pith_rng_next(&rng) % 6);
            for (size_t i = 0; i < n; i++) stop[s][i] = pith_rng_next(&rng) & 1 ? 'a' : 'b';
        }
        bool expected = false;
        for (int s = 0; s < 2; s++) {
            const char *at = strstr(text, stop[s]);
            size_t stop_end = at ? (size_t)(at - text) + strlen(stop[s]) : size + 1;
            if (!at || (expected &&
                        (stop_end > end || (stop_end == end && (size_t)(at - text) >= begin)))) {
                continue;
            }
            expected = true;
            end = stop_end;
            begin = (size_t)(at - text);
        }
        bool found = run(stops, 2, text, pith_rng_next(&rng), out);
        if (found != expected || strlen(out) != begin || memcmp(out, text, begin) != 0) {
            fail_msg("\"%s\" with \"%s\", \"%s\" gives \"%s\", expected %zu bytes", text, stop[0],
                     stop[1], out, begin);
        }
    }
}

static void empty_stop_is_refused(void **state) {
    const char *stops[] = {"a", ""};
    pith_stop_text held;
    (void)state;
    assert_int_equal(pith_stop_text_init(&held, stops, 2, 16, NULL), PITH_ERROR_ARGUMENT);
    pith_stop_text_deinit(&held);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_are_cut),
        cmocka_unit_test(nothing_waits_needlessly),
        cmocka_unit_test(like_searching_the_whole),
        cmocka_unit_test(empty_stop_is_refused),
    };
    return cmocka_run_group_tests_name("stop strings", tests, NULL, NULL);
}
