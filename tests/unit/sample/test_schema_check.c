/* SPDX-License-Identifier: Apache-2.0
 * Promises of pith_schema_check: every keyword counts, spelling and order do not; what cannot be told is refused when the check is
 * made; work, depth and size have limits, past which a value is not valid; no failed allocation is taken for an answer.
 *
 * tests/schema/test_schema.py compares its answers with those of an independent validator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "sample/grammar.h"
#include "support/failing_memory.h"

static pith_status open_check(const char *schema, pith_schema_check **out, pith_error *error) {
    json_t *json = json_loads(schema, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    pith_status status = pith_schema_check_new(json, out, error);
    json_decref(json); /* it is shared */
    return status;
}

static bool is_valid(pith_schema_check *check, const char *text) {
    bool valid;
    assert_int_equal(pith_schema_check_text(check, pith_span_of(text), &valid), PITH_OK);
    return valid;
}

/* good, bad: texts, NULL-terminated; asked twice, as nothing that was asked may change an answer. */
static void check_texts(const char *schema, const char *const *good, const char *const *bad) {
    pith_schema_check *check;
    pith_error error = {PITH_OK, ""};
    if (open_check(schema, &check, &error) != PITH_OK) fail_msg("%s: %s", schema, error.text);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; good[i]; i++)
            if (!is_valid(check, good[i])) fail_msg("%s: not %s", schema, good[i]);
        for (size_t i = 0; bad[i]; i++)
            if (is_valid(check, bad[i])) fail_msg("%s: took %s", schema, bad[i]);
    }
    pith_schema_check_free(check);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_spelling_and_order_do_not_count(void **state) {
    (void)state;
    check_texts("{\"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"const\": \"x/y\"}}, "
                "\"required\": [\"b\"], \"additionalProperties\": false}",
                TEXTS("{\"a\":1,\"b\":\"x/y\"}", " {\"b\"\t: \"\\u0078\\/y\" ,\r\n\"a\" : 1.0}\n",
                      "{\"\\u0062\": \"x/y\"}"),
                TEXTS("{}", "{\"a\": 1}", "{\"b\": \"x/y\", \"a\": 1.5}",
                      "{\"b\": \"x/y\", \"c\": 1}", "{\"b\": \"x/y\", \"b\": \"x/y\"}",
                      "{\"b\": \"x/y\"", "{\"b\": \"x/y\"} 1", "", "{\"b\": 1e999}"));
}

static void test_every_keyword_counts(void **state) {
    (void)state;
    check_texts("{\"type\": [\"string\", \"null\"], \"maxLength\": 3, \"pattern\": \"^\\\\w*$\"}",
                TEXTS("null", "\"abc\"", "\"\""), TEXTS("1", "\"abcd\"", "\"a b\"", "[]"));
    check_texts(
        "{\"items\": {\"enum\": [1, \"a\", {\"b\": [2]}]}, \"minItems\": 1, \"maxItems\": 3, "
        "\"uniqueItems\": true}",
        TEXTS("[1.0]", "[\"a\", 1, {\"b\": [2]}]", "{}"),
        TEXTS("[]", "[2]", "[1, 1.0]", "[\"a\", 1, {\"b\": [3]}]", "[1, \"a\", 1, 1]"));
    check_texts("{\"prefixItems\": [{\"type\": \"string\"}, {\"minimum\": 3}], \"items\": false}",
                TEXTS("[]", "[\"a\"]", "[\"a\", 3]"), TEXTS("[1]", "[\"a\", 2]", "[\"a\", 3, 1]"));
    check_texts("{\"contains\": {\"type\": \"integer\"}, \"maxContains\": 2}",
                TEXTS("[1]", "[\"a\", 1, 2]"), TEXTS("[]", "[\"a\"]", "[1, 2, 3]"));
    check_texts("{\"exclusiveMinimum\": 0, \"maximum\": 1.5, \"multipleOf\": 0.5}",
                TEXTS("0.5", "1", "1.5"), TEXTS("0", "0.25", "2", "-1"));
    check_texts("{\"patternProperties\": {\"^x\": {\"type\": \"integer\"}}, \"propertyNames\": "
                "{\"maxLength\": 2}, \"additionalProperties\": {\"type\": \"null\"}}",
                TEXTS("{\"x1\": 1, \"a\": null}", "{}"),
                TEXTS("{\"x1\": null}", "{\"a\": 1}", "{\"abc\": null}"));
    check_texts(
        "{\"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}], \"not\": {\"required\": "
        "[\"c\"]}, \"dependentRequired\": {\"a\": [\"d\"]}}",
        TEXTS("{\"a\": 1, \"d\": 1}", "{\"b\": 1}"),
        TEXTS("{}", "{\"a\": 1}", "{\"a\": 1, \"b\": 1, \"d\": 1}", "{\"b\": 1, \"c\": 1}"));
    check_texts("{\"if\": {\"required\": [\"a\"]}, \"then\": {\"required\": [\"b\"]}, \"else\": "
                "{\"maxProperties\": 1}}",
                TEXTS("{\"a\": 1, \"b\": 1}", "{\"c\": 1}"),
                TEXTS("{\"a\": 1}", "{\"c\": 1, \"d\": 1}"));
    check_texts("{\"format\": \"date\"}", TEXTS("\"2024-02-29\"", "1"),
                TEXTS("\"2023-02-29\"", "\"\""));
    check_texts("{\"type\": \"integer\", \"format\": \"int32\"}", TEXTS("2147483647"),
                TEXTS("2147483648", "-2147483649"));
    check_texts("{\"type\": \"integer\", \"format\": \"int64\"}",
                TEXTS("9223372036854775807", "1e18"),
                TEXTS("9223372036854775808", "1e19", "-1e300"));
    check_texts("true", TEXTS("1", "[]"), TEXTS("nul"));
    check_texts("false", ((const char *const[]){NULL}), TEXTS("1", "{}"));
}

static void test_references_and_recursion(void **state) {
    (void)state;
    check_texts(
        "{\"$ref\": \"#/$defs/node\", \"$defs\": {\"node\": {\"type\": \"object\", \"properties\": "
        "{\"v\": {\"type\": \"integer\"}, \"next\": {\"anyOf\": [{\"type\": \"null\"}, {\"$ref\": "
        "\"#/$defs/node\"}]}}, \"required\": [\"v\", \"next\"], \"additionalProperties\": false}}}",
        TEXTS("{\"v\": 1, \"next\": null}", "{\"next\": {\"next\": null, \"v\": 2}, \"v\": 1}"),
        TEXTS("{\"v\": 1}", "{\"v\": 1, \"next\": {\"v\": 1}}",
              "{\"v\": 1, \"next\": {\"v\": \"1\", \"next\": null}}"));
}

static void test_what_cannot_be_told_is_refused_by_path(void **state) {
    (void)state;
    static const struct {
        const char *schema, *words;
    } bad[] = {
        {"{\"properties\": {\"a\": {\"nullable\": true}}}", "#/properties/a"},
        {"{\"unevaluatedProperties\": false}", "#/unevaluatedProperties: values cannot be checked"},
        {"{\"items\": {\"unevaluatedItems\": {}}}", "#/items/unevaluatedItems"},
        {"{\"items\": {\"pattern\": \"(?=a)\"}}", "#/items/pattern"},
        {"{\"patternProperties\": {\"(?=a)\": true}}", "#/patternProperties/(?=a)"},
        {"{\"format\": \"colour\"}", "#/format"},
        {"{\"pattern\": \"(a|b)*a(a|b){40}$\"}", "#/pattern"},
        {"{\"$ref\": \"#/$defs/none\"}", "#/$ref"},
        {"{\"$ref\": \"#\"}", "leads back to itself"},
        {"3", "a schema is an object, true or false"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pith_schema_check *check;
        pith_error error = {PITH_OK, ""};
        pith_status status = open_check(bad[i].schema, &check, &error);
        assert_int_not_equal(status, PITH_OK);
        assert_null(check);
        assert_int_equal(error.status, status);
        if (!strstr(error.text, bad[i].words)) fail_msg("%s: %s", bad[i].schema, error.text);
    }
    check_texts("{\"unevaluatedItems\": true, \"unevaluatedProperties\": true}", TEXTS("[1]", "{}"),
                TEXTS("x"));
}

/* n times `open`, a 1, n times `close`. */
static char *nested(const char *open, const char *close, int n) {
    pith_buffer text = {0};
    for (int i = 0; i < n; i++) pith_buffer_append_text(&text, open);
    pith_buffer_append_text(&text, "1");
    for (int i = 0; i < n; i++) pith_buffer_append_text(&text, close);
    assert_false(text.failed);
    return text.data;
}

static void test_limits_make_values_invalid_and_the_next_one_is_checked(void **state) {
    (void)state;
    pith_schema_check *check;
    assert_int_equal(
        open_check("{\"items\": {\"$ref\": \"#\"}, \"not\": {\"const\": 7}}", &check, NULL),
        PITH_OK);
    char *shallow = nested("[", "]", 60), *deep = nested("[", "]", 200);
    char *deeper = nested("{\"a\":", "}", 100000);
    assert_true(is_valid(check, shallow));
    assert_false(is_valid(check, deep));
    assert_false(is_valid(check, deeper));
    assert_true(is_valid(check, "[1]"));
    assert_false(is_valid(check, "[7]"));
    pith_buffer_deinit(&(pith_buffer){.data = shallow});
    pith_buffer_deinit(&(pith_buffer){.data = deep});
    pith_buffer_deinit(&(pith_buffer){.data = deeper});
    pith_schema_check_free(check);
}

/* "[" text, text, ... "]" */
static char *list_of(const char *format, int n) {
    pith_buffer text = {0};
    for (int i = 0; i < n; i++) {
        pith_buffer_append_text(&text, i ? "," : "[");
        pith_buffer_append_format(&text, format, i);
    }
    pith_buffer_append_text(&text, "]");
    assert_false(text.failed);
    return text.data;
}

static void test_work_is_limited(void **state) {
    (void)state;
    static const struct {
        const char *schema, *item;
        int good, bad; /* how many items are checked, and how many are too many */
    } cases[] = {
        {"{\"uniqueItems\": true}", "%d", 1000, 50000},
        {"{\"uniqueItems\": true}", "[1,[2,[3,[4,[5,[%d]]]]]]", 300, 20000},
        {"{\"items\": {\"anyOf\": [{\"type\": \"null\"}, {\"anyOf\": [{\"type\": \"null\"}, "
         "{\"pattern\": \"x\"}]}]}}",
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaax\"", 2000, 15000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_schema_check *check;
        assert_int_equal(open_check(cases[i].schema, &check, NULL), PITH_OK);
        char *good = list_of(cases[i].item, cases[i].good);
        char *bad = list_of(cases[i].item, cases[i].bad);
        if (!is_valid(check, good)) fail_msg("%s: not %d items", cases[i].schema, cases[i].good);
        uint64_t start = pith_clock_ns();
        if (is_valid(check, bad)) fail_msg("%s: %d items", cases[i].schema, cases[i].bad);
        double ms = (double)(pith_clock_ns() - start) / 1e6;
        print_message("%s: %.1f ms for %d items\n", cases[i].schema, ms, cases[i].bad);
        assert_true(ms <
                    5000); /* even where memory is watched; without the limit it takes minutes */
        assert_true(is_valid(check, "[]"));
        pith_buffer_deinit(&(pith_buffer){.data = good});
        pith_buffer_deinit(&(pith_buffer){.data = bad});
        pith_schema_check_free(check);
    }
}

/* What people's tools hold is far within the limit of work. */
static void test_many_formats_and_patterns_fit(void **state) {
    (void)state;
    pith_buffer schema = {0};
    static const char *const formats[] = {"date",  "time", "date-time",   "duration",
                                          "uuid",  "ipv4", "ipv6",        "hostname",
                                          "email", "uri",  "json-pointer"};
    pith_buffer_append_text(&schema,
                            "{\"properties\": {\"l\": {\"pattern\": \"^\\\\p{Lu}\\\\p{L}*$\"}");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        pith_buffer_append_format(&schema, ", \"%s\": {\"format\": \"%s\"}", formats[i],
                                  formats[i]);
    for (int i = 0; i < 60; i++)
        pith_buffer_append_format(&schema, ", \"p%d\": {\"pattern\": \"^[a-z]{1,%d}-\\\\d+$\"}", i,
                                  i + 1);
    pith_buffer_append_text(&schema, "}}");
    uint64_t start = pith_clock_ns();
    check_texts(schema.data,
                TEXTS("{\"email\": \"a@b.c\", \"p0\": \"a-1\", \"l\": \"\xC3\x89t\xC3\xA9\"}"),
                TEXTS("{\"p0\": \"aa-1\"}", "{\"uuid\": \"1\"}", "{\"l\": \"t\"}"));
    print_message("%.1f ms\n", (double)(pith_clock_ns() - start) / 1e6);
    pith_buffer_deinit(&schema);
}

static void test_no_failed_allocation_is_taken_for_an_answer(void **state) {
    (void)state;
#if defined(_WIN32)
    skip(); /* mingw's own printf takes memory, and loses its text without */
#endif
    json_t *schema = json_loads("{\"properties\": {\"a\": {\"pattern\": \"^a|b$\", \"format\": "
                                "\"date\"}, \"n\": {\"$ref\": \"#\"}}, "
                                "\"propertyNames\": {\"maxLength\": 5}, \"patternProperties\": "
                                "{\"^x\": {\"enum\": [1, 2]}}}",
                                0, NULL);
    assert_non_null(schema);
    static const char good[] = "{\"n\": {\"x\": 2.0}}", bad[] = "{\"n\": {\"x\": 3}}";
    for (uint64_t i = 0, n = 1; i <= n; i++) {
        pith_schema_check *check = NULL;
        bool first = false, second = true;
        memory_watch_reset(i);
        pith_status status = pith_schema_check_new(schema, &check, NULL);
        if (status == PITH_OK) status = pith_schema_check_text(check, pith_span_of(good), &first);
        if (status == PITH_OK) status = pith_schema_check_text(check, pith_span_of(bad), &second);
        if (i == 0) n = memory_watch.n_requests;
        memory_watch_reset(0);
        if (i == 0) assert_int_equal(status, PITH_OK);
        if (status == PITH_OK) {
            assert_true(first && !second);
        } else {
            assert_int_equal(status, PITH_ERROR_MEMORY);
            if (check) assert_true(is_valid(check, good)); /* it can be asked again */
        }
        pith_schema_check_free(check);
    }
    json_decref(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spelling_and_order_do_not_count),
        cmocka_unit_test(test_every_keyword_counts),
        cmocka_unit_test(test_references_and_recursion),
        cmocka_unit_test(test_what_cannot_be_told_is_refused_by_path),
        cmocka_unit_test(test_limits_make_values_invalid_and_the_next_one_is_checked),
        cmocka_unit_test(test_work_is_limited),
        cmocka_unit_test(test_many_formats_and_patterns_fit),
        cmocka_unit_test(test_no_failed_allocation_is_taken_for_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
