/* SPDX-License-Identifier: Apache-2.0
 * Promises of private_marks.h: a mark is found in every text of a request, however it is written and
 * wherever it is cut. What a whole server does with them: tests/cli/test_route.py. */
#include "server/private_marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int find(const char *list, const char *request) {
    pith_error error = {0};
    pith_marks *marks = pith_marks_new(list, "list", &error);
    json_t *json = json_loads(request, 0, NULL);
    assert_non_null(marks);
    assert_non_null(json);
    int line = pith_marks_find(marks, json);
    json_decref(json);
    pith_marks_free(marks);
    return line;
}

static void words_are_found_however_they_are_written(void **state) {
    static const char *const texts[] = {"the Blue House",
                                        "BLUE HOUSE",
                                        "xblue housex",
                                        "blue\\n \\t house",
                                        "blue\\u00a0house",
                                        "bl\\u00adue hou\\u200bse",
                                        "\\uff22lue house",
                                        "{\\\"a\\\":\\\"blue house\\\"}",
                                        "{\\\"a\\\":\\\"\\\\u0062lue \\\\u0048ouse\\\"}",
                                        "blue\\\\nhouse"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char request[200];
        snprintf(request, sizeof request, "{\"messages\":[{\"content\":\"%s\"}]}", texts[i]);
        if (find("# list\n\nblue  house\n", request) != 3) print_error("'%s'\n", texts[i]);
        assert_int_equal(find("# list\n\nblue  house\n", request), 3);
    }
    assert_int_equal(find("blue house", "{\"a\":\"bluehouse\",\"b\":\"blue\",\"c\":\"house\"}"), 0);
    assert_int_equal(find("ÄRGER\n", "{\"a\":\"der \\u00e4rger\"}"), 1);
    assert_int_equal(find("МОСКВА\r\n", "{\"a\":\"москва\"}"), 1);
    assert_int_equal(find("秘密", "{\"a\":\"这是秘密。\"}"), 1);
}

static void every_place_is_looked_at(void **state) {
    static const char *const requests[] = {
        "{\"secret\":1}", "{\"a\":[[[[\"secret\"]]]]}", "{\"a\":{\"b\":{\"secret\":{}}}}",
        "{\"m\":[{\"content\":[{\"text\":\"sec\"},{\"x\":1},{\"text\":\"ret\"}]}]}",
        "{\"m\":[1,null,true,{\"k\":[\"x\",\"y\",\"a secret\"]}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        assert_int_equal(find("other\nsecret", requests[i]), 2);
    assert_int_equal(
        find("secret", "{\"m\":[{\"content\":[{\"text\":\"sec\"},{\"tex\":\"ret\"}]}]}"), 0);
}

static void expressions_see_folded_texts(void **state) {
    (void)state;
    assert_int_equal(find("re:\\<[a-z]{2}[0-9]{4}\\>", "{\"a\":\"id AB1234.\"}"), 1);
    assert_int_equal(find("re:\\<[a-z]{2}[0-9]{4}\\>", "{\"a\":\"id ABC12345\"}"), 0);
    assert_int_equal(find("re:^start", "{\"a\":\"no\",\"b\":\"start of a text\"}"), 1);
    assert_int_equal(find("re:^start", "{\"b\":\"a start\"}"), 0);
}

static void wrong_lists_are_refused_with_their_line(void **state) {
    static const char *const lists[] = {"a\nre:[", "a\nre:(x)\\1", "a\nre:x*"};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        pith_error error = {0};
        assert_null(pith_marks_new(lists[i], "list", &error));
        assert_non_null(strstr(error.text, "list, line 2"));
    }
    pith_error error = {0};
    assert_null(pith_marks_new("# nothing\n", "list", &error));
}

static void numbers_are_texts_too(void **state) {
    (void)state;
    assert_int_equal(find("4839201", "{\"const\":4839201}"), 1);
    assert_int_equal(find("re:\\<48[0-9]{5}\\>", "{\"a\":[{\"enum\":[1,4839201]}]}"), 1);
    assert_int_equal(find("48.25", "{\"a\":48.25}"), 1);
    assert_int_equal(find("4839201", "{\"a\":483920}"), 0);
}

static void words_are_found_over_cuts_between_messages(void **state) {
    static const char *const requests[] = {
        "{\"messages\":[{\"content\":\"the blue\"},{\"content\":\"house\"}]}",
        "{\"messages\":[{\"content\":\"the bl\"},{\"content\":\"ue ho\"},{\"content\":\"use\"}]}",
        "{\"messages\":[{\"content\":[{\"text\":\"blue\"}]},{\"role\":\"user\"},{\"content\":"
        "\"house\"}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        assert_int_equal(find("blue house", requests[i]), 1);
    pith_buffer text = {0};
    pith_buffer_append_text(&text, "{\"messages\":[{\"content\":\"");
    for (int i = 0; i < 3000; i++) pith_buffer_append_text(&text, "x ");
    pith_buffer_append_text(&text, "blue\"},{\"content\":\"house");
    for (int i = 0; i < 3000; i++) pith_buffer_append_text(&text, " y");
    pith_buffer_append_text(&text, "\"}]}");
    assert_int_equal(find("blue house", text.data), 1);
    pith_buffer_deinit(&text);
}

static void what_cannot_be_searched_counts_as_marked(void **state) {
    (void)state;
    assert_int_equal(find("blue", "{\"a\":\"data:image/png;base64,AAAA\"}"), PITH_MARKS_UNSEARCHED);
    assert_int_equal(find("blue", "{\"a\":\"DATA:text/plain;charset=x;BASE64,AAAA\"}"),
                     PITH_MARKS_UNSEARCHED);
    assert_int_equal(find("blue", "{\"a\":\"data: 1, 2; base64\"}"), 0);
}

static void lists_of_another_encoding_are_refused(void **state) {
    (void)state;
    pith_error error = {0};
    assert_null(pith_marks_new("a\nM\xFCller\n", "list", &error));
    assert_non_null(strstr(error.text, "list, line 2: it is no UTF-8"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_found_however_they_are_written),
        cmocka_unit_test(every_place_is_looked_at),
        cmocka_unit_test(expressions_see_folded_texts),
        cmocka_unit_test(wrong_lists_are_refused_with_their_line),
        cmocka_unit_test(numbers_are_texts_too),
        cmocka_unit_test(words_are_found_over_cuts_between_messages),
        cmocka_unit_test(what_cannot_be_searched_counts_as_marked),
        cmocka_unit_test(lists_of_another_encoding_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
