/* SPDX-License-Identifier: Apache-2.0
 * pith_json_parse: limits at their value and one beyond, positions in messages, integers and reals kept apart, what is
 * refused; and tojson against what Python's json.dumps writes for the same value. */
#include "rendering.h"

static pith_status parse(const char *text, size_t size, json_t **out, pith_error *error) {
    return pith_json_parse((pith_span){text, size}, out, error);
}

static void test_accepts(void **state) {
    (void)state;
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "null",
                                        "true",
                                        "1",
                                        "1.5",
                                        "\"\"",
                                        " [1, 2] ",
                                        "{\"a\":{\"b\":[]}}",
                                        "\"\\ud83d\\ude00\"",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "1e308"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *json = NULL;
        pith_error error = {0};
        if (parse(texts[i], strlen(texts[i]), &json, &error) != PITH_OK)
            fail_msg("%s: %s", texts[i], error.text);
        assert_non_null(json);
        json_decref(json);
    }
    json_t *json = NULL;
    assert_int_equal(parse("[1, 1.0, 1e2, -0]", 17, &json, NULL), PITH_OK);
    assert_true(json_is_integer(json_array_get(json, 0)));
    assert_true(json_is_real(json_array_get(json, 1)));
    assert_true(json_is_real(json_array_get(json, 2)));
    assert_true(json_is_integer(json_array_get(json, 3)));
    json_decref(json);
}

/* A NUL byte is no white space, and ends no number. */
static void test_refuses_nul(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {{"1\0", 2}, {"[1\0]", 4}, {"[1, 2]\0", 7}, {"\0", 1}, {"{\"a\":1.5\0}", 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = NULL;
        pith_error error = {0};
        assert_int_equal(parse(cases[i].text, cases[i].size, &json, &error), PITH_ERROR_FORMAT);
        assert_null(json);
        assert_non_null(strstr(error.text, "line 1"));
    }
    json_t *json = NULL;
    assert_int_equal(parse("\"a\\u0000b\"", 10, &json, NULL), PITH_OK);
    assert_int_equal(json_string_length(json), 3);
    json_decref(json);
}

static void test_refuses(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1"},
        {"{", "line 1"},
        {"[1,\n 2,\n x]", "line 3"},
        {"{\"a\":1,}", "line 1"},
        {"[1] 2", "line 1"},
        {"\"a", "line 1"},
        {"\"\\ud800\"", "line 1"},
        {"01", "line 1"},
        {"1e999", "line 1"},
        {"nul", "line 1"},
        {"{1:2}", "line 1"},
        {"\"\xFF\"", "line 1"},
        {"\"\xC0\x80\"", "line 1"},
        {"\"\xED\xA0\x80\"", "line 1"},
        {"[\"a\nb\"]", "line"},
        {"'a'", "line 1"},
        {"9223372036854775808", "line 1"},
        {"{\"\\u0000\":1}", "line 1"},
        {"\"a\tb\"", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = (json_t *)(uintptr_t)1;
        pith_error error = {0};
        pith_status status = parse(cases[i].text, strlen(cases[i].text), &json, &error);
        if (status != PITH_ERROR_FORMAT) fail_msg("%s: status %d", cases[i].text, status);
        assert_null(json);
        if (strstr(error.text, cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].text, error.text);
    }
    json_t *json;
    assert_int_equal(parse("[1,\0 2]", 7, &json, NULL), PITH_ERROR_FORMAT);
    assert_int_equal(parse(NULL, 0, &json, NULL), PITH_ERROR_FORMAT);
}

static void test_zero_in_a_string(void **state) {
    (void)state;
    json_t *json = NULL;
    assert_int_equal(parse("\"a\\u0000b\"", 10, &json, NULL), PITH_OK);
    assert_int_equal(json_string_length(json), 3);
    assert_memory_equal(json_string_value(json), "a\0b", 3);
    json_decref(json);
}

static void test_depth(void **state) {
    (void)state;
    char text[2 * PITH_JSON_MAX_DEPTH + 8];
    for (size_t depth = PITH_JSON_MAX_DEPTH; depth <= PITH_JSON_MAX_DEPTH + 1; depth++) {
        json_t *json = NULL;
        pith_error error = {0};
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        pith_status status = parse(text, 2 * depth, &json, &error);
        assert_int_equal(status, depth <= PITH_JSON_MAX_DEPTH ? PITH_OK : PITH_ERROR_LIMIT);
        if (status != PITH_OK) assert_non_null(strstr(error.text, "column 201"));
        json_decref(json);
    }
    /* brackets in strings do not nest, quotes behind backslashes do not end a string */
    json_t *json = NULL;
    char *longer = malloc(3000);
    assert_non_null(longer);
    memset(longer, '[', 3000);
    memcpy(longer, "\"\\\"\\\\\\\"", 7);
    longer[2999] = '"';
    assert_int_equal(parse(longer, 3000, &json, NULL), PITH_OK);
    json_decref(json);
    free(longer);
}

/* The user's numbers and strings come out as Python writes them. */
static void test_round_trip(void **state) {
    (void)state;
    static const struct {
        const char *context, *expected;
    } cases[] = {
        {"{\"x\": [1, 1.0, -0.0, 1e5, 1e16, 1e-5, 123456789.125, 0.1, 5e-324, "
         "1.7976931348623157e308]}",
         "[1, 1.0, -0.0, 100000.0, 1e+16, 1e-05, 123456789.125, 0.1, 5e-324, "
         "1.7976931348623157e+308]"},
        {"{\"x\": {\"b\": [], \"a\": {}, \"\": [null, true, false]}}",
         "{\"b\": [], \"a\": {}, \"\": [null, true, false]}"},
        {"{\"x\": \"\\u00e9\\ud83d\\ude00 \\\" \\\\ / \\b\\f\\n\\r\\t \\u001f \\u007f \\u2028\"}",
         "\"\xC3\xA9\xF0\x9F\x98\x80 \\\" \\\\ / \\b\\f\\n\\r\\t \\u001f \x7F \xE2\x80\xA8\""},
        {"{\"x\": -9223372036854775808}", "-9223372036854775808"},
        {"{\"x\": {\"a\": 1, \"a\": 2}}", "{\"a\": 2}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rendering r = render_text("{{ x | tojson }}", cases[i].context);
        assert_int_equal(r.status, PITH_OK);
        assert_string_equal(r.out.text.data, cases[i].expected);
        rendering_end(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),     cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_refuses_nul), cmocka_unit_test(test_zero_in_a_string),
        cmocka_unit_test(test_depth),       cmocka_unit_test(test_round_trip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
