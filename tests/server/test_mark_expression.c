/* SPDX-License-Identifier: Apache-2.0
 * Promises of mark_expression.h: an expression sees characters, in folded text, and its time is
 * bounded. */
#include "server/mark_expression.h"

#include "server/folded_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pith_mark_found find(const char *expression, const char *text, uint64_t steps) {
    char reason[PITH_MARK_EXPRESSION_REASON];
    pith_buffer folded = {0};
    pith_mark_expression *e = pith_mark_expression_new(expression, reason);
    assert_non_null(e);
    pith_folded_text_append(&folded, text, strlen(text));
    pith_mark_found found = pith_mark_expression_find(
        e, (pith_span){folded.data ? folded.data : "", folded.size}, &steps);
    pith_buffer_deinit(&folded);
    pith_mark_expression_free(e);
    return found;
}

static void letters_beyond_ascii_are_found(void **state) {
    static const char *const rows[][2] = {{"Élan[0-9]+", "ÉLAN7"},
                                          {"Élan", "e\xCC\x81lan"},
                                          {"E\xCC\x81lan", "élan"},
                                          {"Z.rich", "Zürich"},
                                          {"M[äöü]ller", "MÜLLER"},
                                          {"M[^a]ller", "Müller"},
                                          {"\\<übergabe\\>", "die Übergabe."},
                                          {"Gro(ß|ss)e", "GROSSE"},
                                          {"Große", "GROSSE"},
                                          {"a\xC2\xA0"
                                           "b",
                                           "a b"},
                                          {"\xEF\xBC\x8E"
                                           "x",
                                           ".x"},
                                          {"\\w{6}-1", "Žižekа-1"},
                                          {"(?<=nr )[0-9]{3}", "NR 123"},
                                          {"^start", "start of it"},
                                          {"end$", "the end"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (find(rows[i][0], rows[i][1], 100000) != PITH_MARK_FOUND)
            print_error("%s in %s\n", rows[i][0], rows[i][1]);
        assert_int_equal(find(rows[i][0], rows[i][1], 100000), PITH_MARK_FOUND);
    }
    assert_int_equal(find("\\<herr\\>", "herrn", 100000), PITH_MARK_NOT_FOUND);
    assert_int_equal(find("\xEF\xBC\x8E"
                          "x",
                          "ax", 100000),
                     PITH_MARK_NOT_FOUND);
}

/* Each would take minutes and more. */
static void a_search_ends_after_its_steps(void **state) {
    static const char *const rows[][2] = {{"key.*secret", "key t "},
                                          {"(x+x+)+y", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx zy "},
                                          {"(a|a)+c", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b c "},
                                          {"k.*e.*y.*!x", "key ! x "}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pith_buffer text = {0};
        while (text.size < 1 << 20) pith_buffer_append_text(&text, rows[i][1]);
        if (find(rows[i][0], text.data, 1 << 20) != PITH_MARK_TOO_LONG)
            print_error("%s\n", rows[i][0]);
        assert_int_equal(find(rows[i][0], text.data, 1 << 20), PITH_MARK_TOO_LONG);
        assert_int_equal(find("\\<K-[0-9]{6}\\>", text.data, 8 << 20), PITH_MARK_NOT_FOUND);
        pith_buffer_deinit(&text);
    }
}

static void wrong_expressions_are_told(void **state) {
    static const char *const wrong[][2] = {{"[", "missing"},     {"(x)\\1", "backreferences"},
                                           {"x*", "every text"}, {"", "empty"},
                                           {"a\\", "\\ at end"}, {"x{2,1}", "numbers out of order"},
                                           {"|a", "every text"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char reason[PITH_MARK_EXPRESSION_REASON] = "";
        assert_null(pith_mark_expression_new(wrong[i][0], reason));
        if (!strstr(reason, wrong[i][1])) print_error("%s: %s\n", wrong[i][0], reason);
        assert_non_null(strstr(reason, wrong[i][1]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_beyond_ascii_are_found),
        cmocka_unit_test(a_search_ends_after_its_steps),
        cmocka_unit_test(wrong_expressions_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
