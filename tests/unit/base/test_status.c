/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: whatever is put into a pith_error, its text ends within its 240 bytes and on a whole
 * character.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void test_fail_returns_and_fills(void **state) {
    (void)state;
    pith_error error = {0};
    assert_int_equal(pith_fail(&error, PITH_ERROR_FORMAT, "%s: %d is not %d", "f", 1, 2),
                     PITH_ERROR_FORMAT);
    assert_int_equal(error.status, PITH_ERROR_FORMAT);
    assert_string_equal(error.text, "f: 1 is not 2");
    assert_int_equal(pith_fail(NULL, PITH_ERROR_IO, "x"), PITH_ERROR_IO);
}

/* The start and the end of a text that is too long are kept, whole characters only. */
static void test_long_text_is_cut_at_a_character(void **state) {
    (void)state;
    static const char *const characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t c = 0; c < 4; c++) {
        for (size_t shift = 0; shift < 5; shift++) {
            char text[400] = {0};
            memset(text, '.', shift);
            while (strlen(text) < 300) strcat(text, characters[c]);
            pith_error error;
            memset(&error, '#', sizeof error);
            pith_fail(&error, PITH_ERROR_LIMIT, "%s", text);
            size_t size = strlen(error.text), length = strlen(characters[c]);
            const char *gap = strstr(error.text + shift, "...");
            assert_non_null(gap);
            size_t head = (size_t)(gap - error.text), tail = size - head - 3;
            assert_true(size < sizeof error.text);
            assert_true(size > sizeof error.text - 1 - 2 * length);
            assert_int_equal((head - shift) % length, 0);
            assert_int_equal(tail % length, 0);
            assert_memory_equal(error.text, text, head);
            assert_memory_equal(gap + 3, text + strlen(text) - tail, tail);
        }
    }
}

static void test_text_of_239_bytes_stays_whole(void **state) {
    (void)state;
    char text[242] = {0};
    pith_error error;
    memset(text, 'x', 237);
    strcat(text, "\xC3\xA9"); /* 239 bytes */
    pith_fail(&error, PITH_ERROR_LIMIT, "%s", text);
    assert_string_equal(error.text, text);
    pith_fail(&error, PITH_ERROR_LIMIT, "x%s", text); /* one too many: the middle goes */
    assert_int_equal(strlen(error.text), 239);
    assert_non_null(strstr(error.text, "x...x"));
    assert_string_equal(error.text + 237, "\xC3\xA9");
}

/* The reason stands at the end, and a path may be as long as the system allows. */
static void test_the_reason_behind_a_long_path_is_kept(void **state) {
    (void)state;
    char path[4097] = "/";
    pith_error error;
    memset(path + 1, 'd', sizeof path - 2);
    path[sizeof path - 1] = 0;
    pith_fail(&error, PITH_ERROR_IO, "%s: is a directory; name a file in it", path);
    assert_memory_equal(error.text, path, 90);
    assert_non_null(strstr(error.text, "d: is a directory; name a file in it"));
    assert_int_equal(strlen(error.text), 239);
}

static void test_error_may_quote_itself(void **state) {
    (void)state;
    pith_error error;
    pith_fail(&error, PITH_ERROR_IO, "inner");
    pith_fail(&error, PITH_ERROR_FORMAT, "outer: %s", error.text);
    assert_string_equal(error.text, "outer: inner");
}

static void test_every_status_has_words(void **state) {
    (void)state;
    for (int s = 0; s >= PITH_ERROR_INTERNAL; s--) {
        assert_string_not_equal(pith_status_text((pith_status)s), "unknown status");
        for (int other = 0; other > s; other--) {
            assert_string_not_equal(pith_status_text((pith_status)s),
                                    pith_status_text((pith_status)other));
        }
    }
    assert_string_equal(pith_status_text((pith_status)1), "unknown status");
    assert_string_equal(pith_status_text((pith_status)(PITH_ERROR_INTERNAL - 1)), "unknown status");
}

static void test_memory_failure_names_bytes(void **state) {
    (void)state;
    pith_error error;
    assert_int_equal(pith_fail_memory(&error, "weights", UINT64_MAX), PITH_ERROR_MEMORY);
    assert_non_null(strstr(error.text, "weights"));
    assert_non_null(strstr(error.text, "18446744073709551615"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_returns_and_fills),
        cmocka_unit_test(test_long_text_is_cut_at_a_character),
        cmocka_unit_test(test_text_of_239_bytes_stays_whole),
        cmocka_unit_test(test_the_reason_behind_a_long_path_is_kept),
        cmocka_unit_test(test_error_may_quote_itself),
        cmocka_unit_test(test_every_status_has_words),
        cmocka_unit_test(test_memory_failure_names_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
