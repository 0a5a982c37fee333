/* SPDX-License-Identifier: Apache-2.0
 * Promises of JSON schemas: each keyword allows what it should and nothing else, alone and with
 * others; what cannot be enforced is refused by its path; contradictions, cycles and schemas that
 * explode are refused; limits hold; no allocation that fails is taken for success.
 *
 * tests/schema/test_schema.py compares random schemas with an independent validator. */
#include "support/byte_grammar.h"
#include "support/failing_memory.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <stdio.h>

static byte_grammar open_schema(const char *text, size_t size) {
    byte_grammar g = {0};
    pith_status status = pith_grammar_from_schema(text, size, &g.grammar, &g.error);
    assert_int_equal(status == PITH_OK, g.grammar != NULL);
    if (status != PITH_OK) assert_int_equal(g.error.status, status);
    byte_grammar_open(&g);
    return g;
}

/* good, bad: texts, NULL-terminated. */
static void check_texts(const char *schema, const char *const *good, const char *const *bad) {
    byte_grammar g = open_schema(schema, strlen(schema));
    if (g.grammar == NULL) fail_msg("%s: refused: %s", schema, g.error.text);
    for (; *good; good++) {
        if (!byte_grammar_allows(&g, *good, strlen(*good))) fail_msg("%s: not %s", schema, *good);
    }
    for (; *bad; bad++) {
        if (byte_grammar_allows(&g, *bad, strlen(*bad))) fail_msg("%s: allowed %s", schema, *bad);
    }
    byte_grammar_close(&g);
}

static void check_refused(const char *schema, pith_status status, const char *words) {
    byte_grammar g = open_schema(schema, strlen(schema));
    if (g.grammar != NULL) fail_msg("%s is allowed", schema);
    if (g.error.status != status) {
        fail_msg("%s: status %d: %s", schema, (int)g.error.status, g.error.text);
    }
    if (strstr(g.error.text, words) == NULL) fail_msg("%s: %s", schema, g.error.text);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE       ((const char *const[]){NULL})

/* ---- the form ---- */

static void test_any_value(void **state) {
    (void)state;
    const char *const good[] = {"null",
                                "true",
                                "[]",
                                "{}",
                                "[1, [2, {\"a\": []}]]",
                                "\"x\"",
                                "-0.5e+10",
                                "0",
                                "{\"a\":1,\"a\":2}",
                                NULL};
    const char *const bad[] = {"",   " 1", "1 ",  "nul",     "[1,]", "{1:2}",  "01",
                               "1.", ".5", "+1",  "1e",      "NaN",  "\"\n\"", "\"\\x\"",
                               "\"", "[",  "tru", "1.5e123", NULL};
    check_texts("true", good, bad);
    check_texts("{}", good, bad);
    check_texts("{\"title\": \"x\", \"default\": 3, \"examples\": [], \"$comment\": \"\"}", good,
                bad);
}

static void test_space_has_a_form(void **state) {
    (void)state;
    check_texts("{}",
                TEXTS("[1,2]", "[1, 2]", "[\n  1,\n  2\n]", "{\"a\": 1}", "{\n\"a\":1\n}",
                      "[1,\n                                2]"),
                TEXTS("[ 1]", "[1 ,2]", "[1,  2]", "{\"a\" :1}", "{\"a\":  1}", "{ }", "[\n]",
                      "[1,\n\n2]", "[1,\n                                 2]", "[1,\t2]"));
}

static void test_strings_have_one_spelling(void **state) {
    (void)state;
    check_texts("{\"type\": \"string\"}",
                TEXTS("\"\"", "\"a/b\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\u0000\\u001f\"",
                      "\"\x7F\"", "\"\xC3\xA9\\u00e9\\u00E9\"", "\"\\ud83d\\ude00\"",
                      "\"\xF0\x9F\x98\x80\"", "\"\\ud7ff\\ue000\""),
                TEXTS("\"\\/\"", "\"\\u0041\"", "\"\\u000a\"", "\"\\ud83d\"", "\"\\ude00\\ud83d\"",
                      "\"\x1F\"", "\"\xC3\"", "\"\xED\xA0\x80\"", "\"\\U0041\"", "\"\\u12\""));
}

/* ---- numbers ---- */

static void test_integers(void **state) {
    (void)state;
    check_texts("{\"type\": \"integer\"}", TEXTS("0", "-1", "123456789012345"),
                TEXTS("-0", "00", "1.0", "1e3", "1234567890123456"));
    check_texts("{\"type\": \"integer\", \"minimum\": -12, \"maximum\": 205}",
                TEXTS("-12", "-9", "-1", "0", "7", "99", "199", "200", "205"),
                TEXTS("-13", "-20", "-100", "206", "210", "300", "1000", "-0"));
    check_texts("{\"type\": \"integer\", \"exclusiveMinimum\": 5, \"exclusiveMaximum\": 8}",
                TEXTS("6", "7"), TEXTS("5", "8", "0", "55"));
    check_texts("{\"type\": \"integer\", \"minimum\": 1.5, \"maximum\": 3.5}", TEXTS("2", "3"),
                TEXTS("1", "4"));
    check_texts("{\"type\": \"integer\", \"maximum\": -100}",
                TEXTS("-100", "-101", "-999", "-1000"), TEXTS("-99", "-10", "0", "100"));
    check_texts("{\"type\": \"integer\", \"minimum\": 1000000000000000000}",
                TEXTS("1000000000000000000", "9999999999999999999"),
                TEXTS("999999999999999999", "1"));
    check_texts("{\"type\": \"integer\", \"format\": \"int32\"}",
                TEXTS("2147483647", "-2147483648", "0"), TEXTS("2147483648", "-2147483649"));
}

static void test_multiples(void **state) {
    (void)state;
    check_texts("{\"type\": \"integer\", \"multipleOf\": 7, \"minimum\": -20, \"maximum\": 100}",
                TEXTS("0", "7", "-14", "98", "49"), TEXTS("1", "-21", "105", "70.0", "100"));
    check_texts("{\"type\": \"number\", \"multipleOf\": 100}", TEXTS("0", "100", "-2500"),
                TEXTS("10", "150", "100.5"));
    check_texts("{\"allOf\": [{\"multipleOf\": 4}, {\"multipleOf\": 6}], \"type\": \"integer\"}",
                TEXTS("12", "24", "0"), TEXTS("4", "6", "18"));
    check_texts("{\"multipleOf\": 2.0, \"type\": \"integer\"}", TEXTS("2"), TEXTS("3"));
    check_refused("{\"type\": \"number\", \"multipleOf\": 0.1}", PITH_ERROR_UNSUPPORTED,
                  "#/multipleOf");
    check_refused("{\"type\": \"integer\", \"multipleOf\": 1009}", PITH_ERROR_UNSUPPORTED,
                  "multiples");
    check_refused("{\"multipleOf\": 0}", PITH_ERROR_FORMAT, "#/multipleOf");
}

static void test_numbers(void **state) {
    (void)state;
    check_texts("{\"type\": \"number\", \"minimum\": -1.25, \"maximum\": 10.5}",
                TEXTS("-1.25", "-1.250", "-1", "-0.1", "0", "0.0", "9.99", "10", "10.5", "10.500"),
                TEXTS("-1.26", "-2", "10.51", "11", "100", "10.5001", "-1.2500001", "1e1", "-0"));
    check_texts("{\"type\": \"number\", \"exclusiveMinimum\": 0}",
                TEXTS("0.1", "1", "0.00000000000001", "100"), TEXTS("0", "0.0", "-1"));
    check_texts("{\"type\": \"number\", \"exclusiveMinimum\": 0.3, \"exclusiveMaximum\": 0.31}",
                TEXTS("0.301", "0.30999"), TEXTS("0.3", "0.30", "0.31", "0.310", "1"));
    check_texts("{\"type\": \"number\", \"maximum\": -0.001}",
                TEXTS("-0.001", "-0.0011", "-1", "-99"), TEXTS("0", "-0.0009", "-0.0", "1"));
    check_texts("{\"type\": \"number\", \"minimum\": 1e-5, \"maximum\": 2e2}",
                TEXTS("0.00001", "200", "0.1"), TEXTS("0", "0.000009", "200.1"));
    check_texts("{\"type\": \"number\", \"minimum\": -1e300}", TEXTS("-999999999999999", "5"),
                NONE);
    check_refused("{\"type\": \"number\", \"minimum\": 1e300}", PITH_ERROR_UNSUPPORTED,
                  "too large");
}

/* Every integer of a range, against plain comparison. */
static void test_bounds_are_exact(void **state) {
    (void)state;
    static const int ends[] = {-1001, -1000, -999, -100, -99, -11, -10, -9,  -1,  0,
                               1,     9,     10,   11,   99,  100, 109, 110, 999, 1000};
    enum { N = sizeof ends / sizeof *ends };
    for (int a = 0; a < N; a++) {
        for (int b = a; b < N; b++) {
            char schema[96], text[16];
            snprintf(schema, sizeof schema, "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}",
                     ends[a], ends[b]);
            byte_grammar g = open_schema(schema, strlen(schema));
            assert_non_null(g.grammar);
            for (int i = -1100; i <= 1100; i++) {
                size_t size = (size_t)snprintf(text, sizeof text, "%d", i);
                bool allowed = byte_grammar_allows(&g, text, size);
                if (allowed != (i >= ends[a] && i <= ends[b])) fail_msg("%s: %d", schema, i);
            }
            byte_grammar_close(&g);
        }
    }
}

/* ---- strings ---- */

static void test_lengths_count_code_points(void **state) {
    (void)state;
    check_texts(
        "{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}",
        TEXTS("\"ab\"", "\"\xF0\x9F\x98\x80\xC3\xA9x\"", "\"\\n\\u00e9\"",
              "\"\\ud83d\\ude00\\\\\""),
        TEXTS("\"a\"", "\"\\n\"", "\"\\ud83d\\ude00\"", "\"abcd\"", "\"\xF0\x9F\x98\x80\""));
    check_texts("{\"type\": \"string\", \"maxLength\": 0}", TEXTS("\"\""), TEXTS("\"a\""));
    check_texts("{\"type\": \"string\", \"minLength\": 2.0}", TEXTS("\"ab\""), TEXTS("\"a\""));
}

static void test_patterns_search(void **state) {
    (void)state;
    check_texts("{\"type\": \"string\", \"pattern\": \"b.d\"}", TEXTS("\"abcde\"", "\"bxd\""),
                TEXTS("\"bd\"", "\"abc\""));
    check_texts("{\"type\": \"string\", \"pattern\": \"^a|z$\"}",
                TEXTS("\"a\"", "\"axx\"", "\"xz\""), TEXTS("\"xax\"", "\"zx\"", "\"\""));
    check_texts("{\"type\": \"string\", \"pattern\": \"^[a-z]{2,3}$\"}", TEXTS("\"ab\"", "\"abc\""),
                TEXTS("\"a\"", "\"abcd\"", "\"AB\""));
    check_texts("{\"type\": \"string\", \"pattern\": \"^\\\"\\\\\\\\\\\\n$\"}",
                TEXTS("\"\\\"\\\\\\n\""), NONE);
    check_texts("{\"type\": \"string\", \"pattern\": \"\"}", TEXTS("\"\"", "\"x\""), NONE);
}

static void test_patterns_meet_lengths_and_patterns(void **state) {
    (void)state;
    check_texts(
        "{\"type\": \"string\", \"pattern\": \"^[a-z]+$\", \"minLength\": 2, \"maxLength\": 4}",
        TEXTS("\"ab\"", "\"abcd\""), TEXTS("\"a\"", "\"abcde\"", "\"\"", "\"AB\""));
    check_texts(
        "{\"type\": \"string\", \"pattern\": \"^(ab)+$\", \"minLength\": 3, \"maxLength\": 7}",
        TEXTS("\"abab\"", "\"ababab\""), TEXTS("\"ab\"", "\"abababab\"", "\"aba\""));
    check_texts("{\"type\": \"string\", \"allOf\": [{\"pattern\": \"[0-9]\"}, {\"pattern\": "
                "\"^[a-z0-9]*$\"},"
                " {\"pattern\": \"[a-z]\"}]}",
                TEXTS("\"a1\"", "\"1a\"", "\"x9y\""), TEXTS("\"1\"", "\"a\"", "\"A1\"", "\"a 1\""));
    check_refused("{\"type\": \"string\", \"pattern\": \"^a\", \"minLength\": 3, \"maxLength\": 2}",
                  PITH_ERROR_FORMAT, "contradict");
    check_refused("{\"type\": \"string\", \"pattern\": \"^abc$\", \"maxLength\": 2}",
                  PITH_ERROR_FORMAT, "#: ");
    check_refused("{\"properties\": {\"a\": {\"pattern\": \"(a)\\\\1\"}}}", PITH_ERROR_UNSUPPORTED,
                  "#/properties/a/pattern: regular expression, offset 3");
}

static void test_formats(void **state) {
    (void)state;
    check_texts("{\"type\": \"string\", \"format\": \"date\"}",
                TEXTS("\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\"", "\"0001-01-01\""),
                TEXTS("\"2023-02-29\"", "\"1900-02-29\"", "\"2024-04-31\"", "\"2024-13-01\"",
                      "\"0000-01-01\"", "\"24-1-1\"", "\"2024-01-00\""));
    check_texts("{\"type\": \"string\", \"format\": \"date-time\"}",
                TEXTS("\"2024-02-29T23:59:59Z\"", "\"2024-02-28T00:00:00.123+05:30\""),
                TEXTS("\"2024-02-29 23:59:59Z\"", "\"2024-02-29T24:00:00Z\"",
                      "\"2024-02-29T00:00:00\"", "\"2024-02-29T00:60:00Z\""));
    check_texts("{\"type\": \"string\", \"format\": \"time\"}", TEXTS("\"12:30:00-00:00\""),
                TEXTS("\"12:30\""));
    check_texts("{\"type\": \"string\", \"format\": \"uuid\"}",
                TEXTS("\"b1F5a2b4-0000-4000-8000-0123456789ab\""),
                TEXTS("\"b1f5a2b40000400080000123456789ab\"", "\"\""));
    check_texts("{\"type\": \"string\", \"format\": \"ipv4\"}",
                TEXTS("\"0.0.0.0\"", "\"255.249.199.10\""),
                TEXTS("\"256.0.0.0\"", "\"01.0.0.0\"", "\"1.2.3\"", "\"1.2.3.4.5\""));
    check_texts(
        "{\"type\": \"string\", \"format\": \"ipv6\"}",
        TEXTS("\"::\"", "\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::1:2\"", "\"::ffff:1.2.3.4\""),
        TEXTS("\"1::2::3\"", "\"1:2:3:4:5:6:7\"", "\"1:2:3:4:5:6:7:8:9\"", "\"12345::\""));
    check_texts("{\"type\": \"string\", \"format\": \"email\"}", TEXTS("\"a.b+c@x-y.org\""),
                TEXTS("\"a@\"", "\"@x\"", "\"a b@c\"", "\"a..b@c\""));
    check_texts("{\"type\": \"string\", \"format\": \"hostname\"}",
                TEXTS("\"a\"", "\"x-1.example.org\""),
                TEXTS("\"-a\"", "\"a-\"", "\"a..b\"", "\"\"", "\"a_b\""));
    check_texts("{\"type\": \"string\", \"format\": \"uri\"}",
                TEXTS("\"https://a.b/c?d=e#f\"", "\"urn:isbn:1\"", "\"mailto:a@b.c\""),
                TEXTS("\"//a\"", "\"a b:c\"", "\"http://a b\""));
    check_texts("{\"type\": \"string\", \"format\": \"date\", \"pattern\": \"^20\"}",
                TEXTS("\"2024-01-01\""), TEXTS("\"1999-01-01\"", "\"20\""));
    check_refused("{\"format\": \"color\"}", PITH_ERROR_UNSUPPORTED, "#/format");
}

/* ---- values and types ---- */

static void test_types(void **state) {
    (void)state;
    check_texts("{\"type\": \"null\"}", TEXTS("null"), TEXTS("0", "\"\"", "nul"));
    check_texts("{\"type\": [\"boolean\", \"string\"]}", TEXTS("true", "false", "\"\""),
                TEXTS("null", "1"));
    check_texts("{\"type\": \"number\"}", TEXTS("1", "1.5", "1e5"), TEXTS("\"1\""));
    check_texts("{\"type\": [\"integer\", \"number\"]}", TEXTS("1.5"), NONE);
    check_texts(
        "{\"type\": [\"null\", \"array\"], \"minLength\": 3, \"minimum\": 3, \"maxItems\": 1}",
        TEXTS("null", "[1]"), TEXTS("[1,2]"));
    check_refused("{\"type\": \"int\"}", PITH_ERROR_FORMAT, "#/type");
    check_refused("{\"type\": []}", PITH_ERROR_FORMAT, "#/type");
}

static void test_enum_and_const(void **state) {
    (void)state;
    check_texts("{\"enum\": [1, \"a\\nb\", null, {\"k\": [1.5, true]}, 1e20]}",
                TEXTS("1", "\"a\\nb\"", "null", "{\"k\": [1.5,\n  true]}", "1e20"),
                TEXTS("2", "\"a\"", "{\"k\": [1.5]}"));
    check_texts("{\"const\": \"\xC3\xA9\"}", TEXTS("\"\xC3\xA9\""), TEXTS("\"e\""));
    check_texts("{\"enum\": [1, 5, 9, \"abc\", \"abcd\", null], \"minimum\": 3, \"maxLength\": 3}",
                TEXTS("5", "9", "\"abc\"", "null"), TEXTS("1", "\"abcd\""));
    check_texts("{\"enum\": [1.0, 2.5], \"type\": \"integer\"}", TEXTS("1.0"), TEXTS("2.5"));
    check_texts("{\"enum\": [[1, 2], [1]], \"contains\": {\"const\": 2}}", TEXTS("[1,2]"),
                TEXTS("[1]"));
    check_refused("{\"enum\": [1, 2], \"type\": \"string\"}", PITH_ERROR_FORMAT, "#/enum");
    check_refused("{\"enum\": []}", PITH_ERROR_FORMAT, "#/enum");
    check_refused("{\"const\": 1, \"enum\": [2]}", PITH_ERROR_FORMAT, "#/const");
}

/* ---- arrays ---- */

static void test_arrays(void **state) {
    (void)state;
    check_texts("{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 1, "
                "\"maxItems\": 3}",
                TEXTS("[1]", "[1,2,3]"), TEXTS("[]", "[1,2,3,4]", "[\"a\"]", "[1,\"a\"]"));
    check_texts(
        "{\"type\": \"array\", \"prefixItems\": [{\"type\": \"null\"}, {\"type\": \"boolean\"}],"
        " \"items\": {\"type\": \"integer\"}}",
        TEXTS("[]", "[null]", "[null,true]", "[null,true,1,2]"),
        TEXTS("[true]", "[null,1]", "[null,true,true]"));
    check_texts(
        "{\"type\": \"array\", \"prefixItems\": [true, true], \"items\": false, \"minItems\": 2}",
        TEXTS("[1,2]"), TEXTS("[1]", "[1,2,3]"));
    check_texts("{\"type\": \"array\", \"maxItems\": 0}", TEXTS("[]"), TEXTS("[1]"));
    check_texts("{\"type\": \"array\", \"prefixItems\": [true, false], \"items\": true}",
                TEXTS("[]", "[1]"), TEXTS("[1,2]"));
    check_refused("{\"type\": \"array\", \"contains\": true}", PITH_ERROR_UNSUPPORTED,
                  "#/contains");
    check_refused("{\"type\": \"array\", \"items\": [true]}", PITH_ERROR_FORMAT, "#/items");
    check_refused("{\"type\": \"array\", \"items\": false, \"minItems\": 1}", PITH_ERROR_FORMAT,
                  "#");
}

static void test_unique_items(void **state) {
    (void)state;
    check_texts("{\"type\": \"array\", \"items\": {\"enum\": [1, 1.0, \"a\", null]}, "
                "\"uniqueItems\": true}",
                TEXTS("[]", "[1,null]", "[null,\"a\",1]"),
                TEXTS("[1,1]", "[1,1.0]", "[\"a\",\"a\"]"));
    check_texts("{\"type\": \"array\", \"items\": {\"type\": \"boolean\"}, \"uniqueItems\": true,"
                " \"minItems\": 1}",
                TEXTS("[true]", "[false,true]"), TEXTS("[]", "[true,true]"));
    /* more than 8 values: in the order of the list */
    check_texts(
        "{\"type\": \"array\", \"items\": {\"enum\": [0,1,2,3,4,5,6,7,8,9]}, \"uniqueItems\": true,"
        " \"minItems\": 2, \"maxItems\": 3}",
        TEXTS("[0,9]", "[1,2,3]"), TEXTS("[1]", "[1,1]", "[2,1]", "[1,2,3,4]"));
    check_texts("{\"type\": \"array\", \"uniqueItems\": true, \"maxItems\": 1}", TEXTS("[5]"),
                TEXTS("[5,6]"));
    check_refused("{\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"uniqueItems\": true}",
                  PITH_ERROR_UNSUPPORTED, "#/uniqueItems");
    check_refused(
        "{\"type\": \"array\", \"items\": {\"enum\": [1]}, \"uniqueItems\": true, \"minItems\": 2}",
        PITH_ERROR_FORMAT, "#/minItems");
}

/* ---- objects ---- */

static void test_properties_in_their_order(void **state) {
    (void)state;
    check_texts(
        "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"null\"}, \"b\": {\"type\":"
        " \"boolean\"}, \"c\": {\"type\": \"null\"}}, \"required\": [\"b\"]}",
        TEXTS("{\"b\":true}", "{\"a\":null,\"b\":true}", "{\"b\":true,\"c\":null}",
              "{\"a\":null,\"b\":true,\"c\":null}"),
        TEXTS("{}", "{\"a\":null}", "{\"b\":true,\"a\":null}", "{\"b\":true,\"b\":true}",
              "{\"b\":null}", "{\"b\":true,}", "{,\"b\":true}"));
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": true, \"b\": true}}",
                TEXTS("{}", "{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":1}"),
                TEXTS("{\"c\":1}", "{\"a\":1,\"c\":1}"));
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": false, \"b\": {\"not\": {}}}}",
                TEXTS("{}"), TEXTS("{\"a\":1}", "{\"b\":1}"));
    check_texts(
        "{\"type\": \"object\", \"required\": [\"x\", \"y\"], \"properties\": {\"y\": true}}",
        TEXTS("{\"y\":1,\"x\":2}"), TEXTS("{\"y\":1}", "{\"x\":1}"));
    check_texts("{\"type\": \"object\"}", TEXTS("{}", "{\"a\":{}}"), TEXTS("[]"));
}

static void test_further_keys(void **state) {
    (void)state;
    check_texts(
        "{\"type\": \"object\", \"properties\": {\"ab\": {\"type\": \"null\"}},"
        " \"additionalProperties\": {\"type\": \"boolean\"}}",
        TEXTS("{}", "{\"ab\":null}", "{\"a\":true}", "{\"abc\":true,\"\":false}",
              "{\"ab\":null,\"b\":true}"),
        TEXTS("{\"ab\":true}", "{\"a\":null}", "{\"\\u0061b\":true}", "{\"a\":true,\"ab\":null}"));
    check_texts("{\"type\": \"object\", \"properties\": {\"\xC3\xA9\": false}, "
                "\"additionalProperties\": true}",
                TEXTS("{\"e\":1}", "{\"\xC3\xA8\":1}"),
                TEXTS("{\"\xC3\xA9\":1}", "{\"\\u00e9\":1}", "{\"\\u00E9\":1}"));
    check_texts(
        "{\"type\": \"object\", \"properties\": {\"a\": true}, \"additionalProperties\": false}",
        TEXTS("{\"a\":1}"), TEXTS("{\"b\":1}"));
    check_texts("{\"type\": \"object\", \"additionalProperties\": {\"type\": \"null\"}}",
                TEXTS("{\"x\":null,\"y\":null}"), TEXTS("{\"x\":1}"));
    check_texts(
        "{\"allOf\": [{\"properties\": {\"a\": {\"type\": \"integer\"}}, \"additionalProperties\": "
        "{\"type\":"
        " \"integer\"}}, {\"properties\": {\"b\": {\"maximum\": 5}}}], \"type\": \"object\"}",
        TEXTS("{\"a\":1,\"b\":5}", "{\"c\":1}"),
        TEXTS("{\"b\":6}", "{\"b\":\"x\"}", "{\"c\":\"x\"}"));
}

static void test_pattern_properties(void **state) {
    (void)state;
    check_texts(
        "{\"type\": \"object\", \"patternProperties\": {\"^x\": {\"type\": \"null\"}, \"y$\": "
        "{\"type\":"
        " [\"null\", \"boolean\"]}}, \"properties\": {\"xa\": {}}, \"additionalProperties\": "
        "{\"type\":"
        " \"integer\"}}",
        TEXTS("{\"xa\":null}", "{\"xb\":null}", "{\"by\":true}", "{\"xy\":null}", "{\"b\":1}"),
        TEXTS("{\"xa\":1}", "{\"xb\":true}", "{\"by\":1}", "{\"xy\":true}", "{\"b\":null}"));
    check_texts("{\"type\": \"object\", \"patternProperties\": {\"^x-\": true}}",
                TEXTS("{\"x-a\":1}"), TEXTS("{\"a\":1}"));
    check_refused("{\"type\": \"object\", \"patternProperties\": {\"a\": true, \"b\": true, \"c\": "
                  "true, \"d\": true,"
                  " \"e\": true}}",
                  PITH_ERROR_UNSUPPORTED, "#/patternProperties");
    check_refused("{\"type\": \"object\", \"patternProperties\": {\"(\": true}}", PITH_ERROR_FORMAT,
                  "#/patternProperties/(: regular expression, offset 0");
}

static void test_property_names(void **state) {
    (void)state;
    check_texts(
        "{\"type\": \"object\", \"propertyNames\": {\"pattern\": \"^[a-z]+$\", \"maxLength\": 2}}",
        TEXTS("{\"ab\":1}"), TEXTS("{\"A\":1}", "{\"abc\":1}", "{\"\":1}"));
    check_texts("{\"type\": \"object\", \"propertyNames\": {\"enum\": [\"a\", \"b\", 3]}, "
                "\"properties\": {\"a\":"
                " {\"type\": \"null\"}, \"c\": true}, \"additionalProperties\": true}",
                TEXTS("{\"a\":null}", "{\"b\":1}"), TEXTS("{\"c\":1}", "{\"d\":1}"));
    check_refused(
        "{\"type\": \"object\", \"propertyNames\": {\"maxLength\": 1}, \"required\": [\"abc\"]}",
        PITH_ERROR_FORMAT, "abc");
}

static void test_counts_of_properties(void **state) {
    (void)state;
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": true, \"b\": true, \"c\": true},"
                " \"minProperties\": 2, \"maxProperties\": 2}",
                TEXTS("{\"a\":1,\"b\":1}", "{\"a\":1,\"c\":1}", "{\"b\":1,\"c\":1}"),
                TEXTS("{}", "{\"a\":1}", "{\"a\":1,\"b\":1,\"c\":1}"));
    check_texts("{\"type\": \"object\", \"minProperties\": 1}", TEXTS("{\"a\":1}"), TEXTS("{}"));
    check_texts("{\"type\": \"object\", \"maxProperties\": 1}", TEXTS("{}", "{\"a\":1}"),
                TEXTS("{\"a\":1,\"b\":1}"));
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": true}, \"minProperties\": 2}",
                TEXTS("{\"a\":1,\"b\":1}"), TEXTS("{\"a\":1}", "{\"b\":1,\"c\":1}"));
    check_texts("{\"type\": \"object\", \"maxProperties\": 0}", TEXTS("{}"), TEXTS("{\"a\":1}"));
    check_refused("{\"type\": \"object\", \"minProperties\": 2}", PITH_ERROR_UNSUPPORTED,
                  "#/minProperties");
    check_refused(
        "{\"type\": \"object\", \"properties\": {\"a\": true}, \"additionalProperties\": false,"
        " \"minProperties\": 2}",
        PITH_ERROR_FORMAT, "#");
}

static void test_dependencies(void **state) {
    (void)state;
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": true, \"b\": true}, "
                "\"dependentRequired\": {\"a\":"
                " [\"b\"]}}",
                TEXTS("{}", "{\"b\":1}", "{\"a\":1,\"b\":1}"), TEXTS("{\"a\":1}"));
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": true, \"b\": true}, "
                "\"dependentSchemas\": {\"a\":"
                " {\"properties\": {\"b\": {\"type\": \"null\"}}}}}",
                TEXTS("{\"b\":1}", "{\"a\":1,\"b\":null}"), TEXTS("{\"a\":1,\"b\":1}"));
    check_texts(
        "{\"type\": \"object\", \"properties\": {\"a\": true}, \"unevaluatedProperties\": false}",
        TEXTS("{\"a\":1}"), TEXTS("{\"b\":1}"));
    check_refused("{\"type\": \"object\", \"allOf\": [{\"unevaluatedProperties\": false}], "
                  "\"properties\": {\"a\":"
                  " true}}",
                  PITH_ERROR_UNSUPPORTED, "unevaluatedProperties");
}

/* ---- combinations ---- */

static void test_all_of_merges(void **state) {
    (void)state;
    check_texts("{\"allOf\": [{\"type\": \"integer\"}, {\"minimum\": 3}, {\"maximum\": 5}]}",
                TEXTS("3", "5"), TEXTS("2", "6"));
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": {\"minimum\": 3}}, \"allOf\": "
                "[{\"properties\": {\"a\":"
                " {\"type\": \"integer\"}, \"b\": true}, \"required\": [\"a\"]}]}",
                TEXTS("{\"a\":3}", "{\"a\":3,\"b\":1}"), TEXTS("{}", "{\"a\":2}", "{\"a\":3.5}"));
    check_refused("{\"allOf\": [{\"type\": \"integer\"}, {\"type\": \"string\"}]}",
                  PITH_ERROR_FORMAT, "#");
}

static void test_any_of(void **state) {
    (void)state;
    check_texts("{\"anyOf\": [{\"type\": \"integer\"}, {\"type\": \"string\", \"maxLength\": 1}]}",
                TEXTS("12", "\"a\""), TEXTS("\"ab\"", "null"));
    check_texts("{\"type\": \"string\", \"anyOf\": [{\"type\": \"integer\"}, {\"maxLength\": 1}]}",
                TEXTS("\"a\""), TEXTS("1", "\"ab\""));
    check_texts("{\"anyOf\": [{\"minimum\": 5}, {\"maximum\": 2}], \"type\": \"integer\"}",
                TEXTS("5", "2", "-7"), TEXTS("3", "4"));
}

static void test_one_of_is_kept_apart(void **state) {
    (void)state;
    check_texts("{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"string\"}]}",
                TEXTS("1", "\"a\""), TEXTS("null"));
    check_texts("{\"oneOf\": [{\"type\": \"integer\", \"maximum\": 3}, {\"type\": \"integer\", "
                "\"minimum\": 3}]}",
                TEXTS("2", "4"), TEXTS("3"));
    check_texts("{\"oneOf\": [{\"type\": \"string\", \"pattern\": \"^a\"}, {\"type\": \"string\", "
                "\"pattern\": \"b$\"}]}",
                TEXTS("\"ax\"", "\"xb\""), TEXTS("\"ab\"", "\"x\""));
    check_texts("{\"type\": \"object\", \"properties\": {\"a\": true, \"b\": true}, \"oneOf\": "
                "[{\"required\": [\"a\"]},"
                " {\"required\": [\"b\"]}]}",
                TEXTS("{\"a\":1}", "{\"b\":1}"), TEXTS("{}", "{\"a\":1,\"b\":1}"));
    check_texts("{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"k\": {\"const\": 1}, "
                "\"v\": {\"type\": \"null\"}},"
                " \"required\": [\"k\"]}, {\"type\": \"object\", \"properties\": {\"k\": "
                "{\"const\": 2}, \"v\": {\"type\":"
                " \"integer\"}}, \"required\": [\"k\"]}]}",
                TEXTS("{\"k\":1,\"v\":null}", "{\"k\":2,\"v\":5}"),
                TEXTS("{\"k\":1,\"v\":5}", "{\"k\":3}", "{}"));
    check_texts("{\"oneOf\": [{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}, "
                "{\"type\": \"array\", \"items\":"
                " {\"type\": \"string\"}}]}",
                TEXTS("[1]", "[\"a\"]"), TEXTS("[]", "[1,\"a\"]"));
    check_refused("{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}",
                  PITH_ERROR_UNSUPPORTED, "#/oneOf/0");
    check_texts("{\"oneOf\": [{\"type\": [\"integer\", \"null\"]}, {\"type\": \"integer\"}]}",
                TEXTS("null"), TEXTS("1"));
    check_refused(
        "{\"properties\": {\"p\": {\"oneOf\": [{\"type\": \"number\"}, {\"type\": \"integer\"},"
        " {\"type\": \"null\"}]}}}",
        PITH_ERROR_UNSUPPORTED, "#/properties/p/oneOf/1");
    check_texts("{\"oneOf\": [{}, {\"type\": \"null\"}]}", TEXTS("1", "[]"), TEXTS("null"));
}

static void test_not(void **state) {
    (void)state;
    check_texts("{\"type\": \"string\", \"not\": {\"enum\": [\"a\", \"b\", 3]}}",
                TEXTS("\"c\"", "\"aa\"", "\"\""), TEXTS("\"a\"", "\"b\""));
    check_texts("{\"type\": [\"null\", \"string\"], \"not\": {\"type\": \"null\"}}", TEXTS("\"c\""),
                TEXTS("null"));
    check_texts("{\"type\": \"number\", \"not\": {\"minimum\": 5}}", TEXTS("4.9"), TEXTS("5", "6"));
    check_texts(
        "{\"type\": \"object\", \"properties\": {\"a\": true}, \"not\": {\"required\": [\"a\"]}}",
        TEXTS("{}"), TEXTS("{\"a\":1}"));
    check_texts("{\"enum\": [1, 2, 3], \"not\": {\"const\": 2}}", TEXTS("1", "3"), TEXTS("2"));
    check_refused("{\"type\": \"integer\", \"not\": {\"const\": 5}}", PITH_ERROR_UNSUPPORTED,
                  "#/not");
    check_refused("{\"type\": \"integer\", \"not\": {}}", PITH_ERROR_FORMAT, "#");
}

static void test_if(void **state) {
    (void)state;
    check_texts("{\"type\": \"object\", \"properties\": {\"kind\": {\"enum\": [\"r\", \"b\"]}, "
                "\"a\": {\"type\":"
                " \"integer\"}}, \"required\": [\"kind\"], \"if\": {\"properties\": {\"kind\": "
                "{\"const\": \"r\"}}},"
                " \"then\": {\"required\": [\"a\"]}, \"else\": {\"properties\": {\"a\": false}}}",
                TEXTS("{\"kind\":\"r\",\"a\":1}", "{\"kind\":\"b\"}"),
                TEXTS("{\"kind\":\"r\"}", "{\"kind\":\"b\",\"a\":1}"));
    check_texts("{\"if\": {\"type\": \"string\"}, \"then\": {\"maxLength\": 1}, \"else\": "
                "{\"type\": \"null\"}}",
                TEXTS("\"a\"", "null"), TEXTS("\"ab\"", "1"));
}

/* ---- references ---- */

static void test_references(void **state) {
    (void)state;
    check_texts("{\"$ref\": \"#/$defs/a~1b\", \"$defs\": {\"a/b\": {\"type\": \"null\"}}}",
                TEXTS("null"), TEXTS("1"));
    check_texts("{\"$ref\": \"#/$defs/a%22b\", \"$defs\": {\"a\\\"b\": {\"type\": \"null\"}}}",
                TEXTS("null"), TEXTS("1"));
    check_texts(
        "{\"$ref\": \"#x\", \"definitions\": {\"q\": {\"$anchor\": \"x\", \"type\": \"null\"}}}",
        TEXTS("null"), TEXTS("1"));
    check_texts("{\"$id\": \"http://e.org/s\", \"$ref\": \"http://e.org/s#/$defs/a\", \"$defs\": "
                "{\"a\": {\"type\":"
                " \"null\"}}}",
                TEXTS("null"), TEXTS("1"));
    check_texts("{\"properties\": {\"a\": {\"items\": {\"type\": \"null\"}}, \"b\": {\"$ref\":"
                " \"#/properties/a/items\"}}, \"type\": \"object\"}",
                TEXTS("{\"b\":null}"), TEXTS("{\"b\":1}"));
    check_texts(
        "{\"$ref\": \"#/$defs/a\", \"maximum\": 3, \"$defs\": {\"a\": {\"type\": \"integer\"}}}",
        TEXTS("3"), TEXTS("4"));
    /* definitions that nobody uses are not looked at */
    check_texts("{\"type\": \"null\", \"$defs\": {\"a\": {\"unknown\": 1}}}", TEXTS("null"), NONE);
    check_refused("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"unknown\": 1}}}",
                  PITH_ERROR_UNSUPPORTED, "#/$defs/a: ");
    check_refused("{\"$ref\": \"#/$defs/b\", \"$defs\": {}}", PITH_ERROR_UNSUPPORTED, "#/$ref");
    check_refused("{\"$ref\": \"#b\"}", PITH_ERROR_UNSUPPORTED, "#/$ref");
    static const char *const no_index[] = {"0abc", "00", "+0", "-1", "2", "4294967296"};
    for (size_t i = 0; i < sizeof no_index / sizeof *no_index; i++) {
        char schema[160];
        snprintf(schema, sizeof schema,
                 "{\"properties\": {\"a\": {\"$ref\": \"#/anyOf/%s\"}}, \"anyOf\": "
                 "[{\"type\": \"object\"}, {\"type\": \"null\"}]}",
                 no_index[i]);
        check_refused(schema, PITH_ERROR_UNSUPPORTED, "$ref");
    }
    check_refused("{\"$ref\": \"other.json\"}", PITH_ERROR_UNSUPPORTED, "#/$ref");
    check_refused("{\"properties\": {\"a\": {\"$id\": \"x\", \"$ref\": \"#\"}}}",
                  PITH_ERROR_UNSUPPORTED, "#/properties/a/$id");
}

static void test_recursion(void **state) {
    (void)state;
    check_texts("{\"type\": \"object\", \"properties\": {\"v\": {\"type\": \"integer\"}, \"next\": "
                "{\"$ref\": \"#\"}},"
                " \"required\": [\"v\"]}",
                TEXTS("{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"),
                TEXTS("{\"v\":1,\"next\":{}}"));
    check_texts("{\"$ref\": \"#/$defs/t\", \"$defs\": {\"t\": {\"anyOf\": [{\"type\": \"null\"}, "
                "{\"type\": \"array\","
                " \"items\": {\"$ref\": \"#/$defs/t\"}}]}}}",
                TEXTS("null", "[]", "[null,[[null]]]"), TEXTS("[1]"));
    check_refused(
        "{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": [\"a\"]}",
        PITH_ERROR_FORMAT, "\"a\" is required");
    check_refused("{\"$ref\": \"#\"}", PITH_ERROR_FORMAT, "leads back to itself");
    check_refused(
        "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"anyOf\": [{\"type\": \"null\"}, {\"$ref\":"
        " \"#/$defs/b\"}]}, \"b\": {\"$ref\": \"#/$defs/a\"}}}",
        PITH_ERROR_FORMAT, "leads back to itself");
}

/* ---- what is refused ---- */

static void test_unknown_keywords_are_refused_by_path(void **state) {
    (void)state;
    check_refused("{\"properties\": {\"a/b\": {\"fromat\": \"date\"}}}", PITH_ERROR_UNSUPPORTED,
                  "#/properties/a~1b: the keyword \"fromat\"");
    check_refused("{\"nullable\": true}", PITH_ERROR_UNSUPPORTED, "\"nullable\"");
    check_refused("{\"type\": \"integer\", \"items\": {\"x\": 1}}", PITH_ERROR_UNSUPPORTED,
                  "#/items: ");
    check_refused("{\"$dynamicRef\": \"#a\"}", PITH_ERROR_UNSUPPORTED, "#/$dynamicRef");
    check_refused("{\"contentEncoding\": \"base64\"}", PITH_ERROR_UNSUPPORTED, "#/contentEncoding");
    check_refused("{\"additionalProperties\": {\"anyOf\": [{\"type\": \"array\", \"contains\": "
                  "{}}]}, \"type\":"
                  " \"object\"}",
                  PITH_ERROR_UNSUPPORTED, "#/additionalProperties/anyOf/0/contains");
}

static void test_wrong_forms_are_refused_by_path(void **state) {
    (void)state;
    static const struct {
        const char *schema, *path;
    } cases[] = {
        {"3", "#: "},
        {"[]", "#: "},
        {"{\"minimum\": \"3\"}", "#/minimum"},
        {"{\"minLength\": -1}", "#/minLength"},
        {"{\"maxItems\": 1.5}", "#/maxItems"},
        {"{\"pattern\": 1}", "#/pattern"},
        {"{\"required\": [1]}", "#/required"},
        {"{\"required\": true}", "#/required"},
        {"{\"properties\": []}", "#/properties"},
        {"{\"properties\": {\"a\": 1}}", "#/properties"},
        {"{\"anyOf\": []}", "#/anyOf"},
        {"{\"anyOf\": {}}", "#/anyOf"},
        {"{\"uniqueItems\": 1}", "#/uniqueItems"},
        {"{\"$ref\": 1}", "#/$ref"},
        {"{\"not\": []}", "#/not"},
        {"{\"dependentRequired\": {\"a\": [1]}}", "#/dependentRequired"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_refused(cases[i].schema, PITH_ERROR_FORMAT, cases[i].path);
    }
    check_refused("{\"a\"", PITH_ERROR_FORMAT, "line 1");
    check_refused("", PITH_ERROR_FORMAT, "line 1");
    check_refused("{\"type\": \"null\", \"type\": \"null\"}", PITH_ERROR_FORMAT, "duplicate");
}

static void test_contradictions_are_refused_by_path(void **state) {
    (void)state;
    check_refused("false", PITH_ERROR_FORMAT, "#: ");
    check_refused(
        "{\"properties\": {\"a\": {\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2}}}",
        PITH_ERROR_FORMAT, "#/properties/a: its keywords contradict");
    check_refused("{\"type\": \"integer\", \"exclusiveMinimum\": 3, \"exclusiveMaximum\": 4}",
                  PITH_ERROR_FORMAT, "contradict");
    check_refused("{\"type\": \"integer\", \"multipleOf\": 7, \"minimum\": 1, \"maximum\": 6}",
                  PITH_ERROR_FORMAT, "contradict");
    check_refused("{\"type\": \"array\", \"minItems\": 3, \"maxItems\": 2}", PITH_ERROR_FORMAT,
                  "contradict");
    check_refused("{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": false}}",
                  PITH_ERROR_FORMAT, "\"a\" is required");
    check_refused("{\"type\": \"object\", \"required\": [\"a\"], \"additionalProperties\": false}",
                  PITH_ERROR_FORMAT, "\"a\" is required");
    check_refused("{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 2}", PITH_ERROR_FORMAT,
                  "contradict");
}

/* ---- limits ---- */

static void test_depth_has_a_limit(void **state) {
    (void)state;
    static const char open[] = "{\"items\":";
    pith_buffer text = {0};
    for (int depth = 255; depth <= 257; depth++) {
        pith_buffer_reset(&text);
        for (int i = 0; i < depth; i++) pith_buffer_append_text(&text, open);
        pith_buffer_append_text(&text, "true");
        for (int i = 0; i < depth; i++) pith_buffer_append_text(&text, "}");
        byte_grammar g = open_schema(text.data, text.size);
        assert_int_equal(g.grammar != NULL, depth <= 256);
        if (g.grammar == NULL) assert_int_equal(g.error.status, PITH_ERROR_LIMIT);
        byte_grammar_close(&g);
    }
    pith_buffer_deinit(&text);
}

static void test_products_that_explode_are_refused(void **state) {
    (void)state;
    pith_buffer text = {0};
    pith_buffer_append_text(&text, "{\"allOf\": [true");
    for (int i = 0; i < 40; i++) {
        pith_buffer_append_format(
            &text,
            ",{\"anyOf\":[{\"properties\":{\"a%d\":true}},{\"properties\":{\"b%d\":"
            "true}}]}",
            i, i);
    }
    pith_buffer_append_text(&text, "]}");
    check_refused(text.data, PITH_ERROR_LIMIT, "#");
    pith_buffer_deinit(&text);
    check_refused("{\"type\": \"string\", \"pattern\": \"^[ab]*a[ab]{20}$\", \"minLength\": 1}",
                  PITH_ERROR_LIMIT, "#/pattern");
    check_refused("{\"type\": \"string\", \"pattern\": \"^ab*c$\", \"maxLength\": 100000}",
                  PITH_ERROR_LIMIT, "#/pattern");
}

/* A large text of nested objects with all kinds of members. */
static void append_object(pith_buffer *text, int depth) {
    static const char *const leaves[] = {"{\"type\":\"string\",\"maxLength\":50}",
                                         "{\"type\":\"integer\",\"minimum\":0,\"maximum\":999}",
                                         "{\"enum\":[\"a\",\"b\",\"c\"]}",
                                         "{\"type\":\"string\",\"format\":\"date\"}",
                                         "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
                                         "{\"type\":\"number\",\"minimum\":-1.5}"};
    if (depth == 0) {
        pith_buffer_append_text(text, leaves[text->size % 6]);
        return;
    }
    pith_buffer_append_text(text,
                            "{\"type\":\"object\",\"required\":[\"p0\",\"p3\"],\"properties\":{");
    for (int i = 0; i < 6; i++) {
        pith_buffer_append_format(text, "%s\"p%d\":", i ? "," : "", i);
        append_object(text, depth - 1);
    }
    pith_buffer_append_text(text, "}}");
}

static void test_large_schemas_are_compiled(void **state) {
    (void)state;
    pith_buffer whole = {0};
    append_object(&whole, 4);
    assert_true(whole.size > 60000);
    uint64_t start = pith_clock_ns();
    byte_grammar g = open_schema(whole.data, whole.size);
    double ms = (double)(pith_clock_ns() - start) / 1e6;
    if (g.grammar == NULL) fail_msg("refused: %s", g.error.text);
    print_message("%zu bytes in %.1f ms\n", whole.size, ms);
    byte_grammar_close(&g);
    pith_buffer_deinit(&whole);
}

/* ---- tools ---- */

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":"
                            "{\"type\":\"object\",\"properties\":"
                            "{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}}},{\"type\":"
                            "\"function\",\"function\":{\"name\":\"now\"}}]";

static const pith_tool_format *format_of(const char *name) {
    for (size_t i = 0; pith_tool_format_get(i) != NULL; i++)
        if (strcmp(pith_tool_format_get(i)->name, name) == 0) return pith_tool_format_get(i);
    fail_msg("no format %s", name);
    return NULL;
}

static byte_grammar open_tools(const char *text, pith_tool_rules rules) {
    byte_grammar g = {0};
    (void)pith_grammar_from_tools(text, strlen(text), &rules, &g.grammar, &g.error);
    byte_grammar_open(&g);
    return g;
}

static void check_reply(pith_tool_rules rules, const char *const *good, const char *const *bad) {
    byte_grammar g = open_tools(tools, rules);
    if (g.grammar == NULL) fail_msg("refused: %s", g.error.text);
    for (; *good; good++) {
        if (!byte_grammar_allows(&g, *good, strlen(*good))) fail_msg("not %s", *good);
    }
    for (; *bad; bad++) {
        if (byte_grammar_allows(&g, *bad, strlen(*bad))) fail_msg("allowed %s", *bad);
    }
    byte_grammar_close(&g);
}

#define GET "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": 1}}\n</tool_call>"
#define NOW "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
#define BAD "<tool_call>\n{\"name\": \"get\", \"arguments\": {}}\n</tool_call>"

static void test_tool_calls_obey_their_schema(void **state) {
    (void)state;
    pith_tool_rules rules = {.format = format_of("hermes")};
    check_reply(rules, TEXTS("", "hello <tool", GET, NOW, "I look.\n" GET),
                TEXTS(BAD, "x" BAD, GET "\n" NOW, GET " and", "<tool_call>",
                      "<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
    rules.parallel = true;
    check_reply(rules, TEXTS(GET "\n" NOW "\n" GET), TEXTS(GET NOW, GET "\n" BAD));
    rules.choice = PITH_TOOLS_REQUIRED;
    check_reply(rules, TEXTS(GET, GET "\n" NOW), TEXTS("", "hello", "x" GET));
    rules.only = "now";
    check_reply(rules, TEXTS(NOW), TEXTS(GET));
    rules.choice = PITH_TOOLS_NONE;
    check_reply(rules, TEXTS("", "hello", "<tool_cal"), TEXTS(NOW, "<tool_call>"));
}

/* pith_tool_options.content_schema: what is no call is JSON of the schema. */
static void test_an_answer_beside_tools_obeys_its_schema(void **state) {
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}}, "
        "\"required\": [\"a\"], \"additionalProperties\": false}";
    (void)state;
    pith_tool_format format = *format_of("hermes");
    pith_tool_rules rules = {.format = &format, .content_schema = {schema, sizeof schema - 1}};
    check_reply(rules, TEXTS("{\"a\": \"x\"}", "{\"a\": \"<tool_call>\"}", GET),
                TEXTS("", "hello", "{}", "{\"a\": 1}", "{\"a\": \"x\"}" GET, "hello" GET, BAD));
    rules.choice = PITH_TOOLS_NONE;
    check_reply(rules, TEXTS("{\"a\": \"x\"}"), TEXTS(GET, "hello"));
    rules.choice = PITH_TOOLS_AUTO;
    format.thought_begin = "<think>";
    format.thought_end = "</think>";
    check_reply(rules,
                TEXTS("<think>hm</think>{\"a\": \"x\"}", "{\"a\": \"x\"}", "<think></think>" GET),
                TEXTS("<think>hm</think>hello", "<think>hm</think>{\"a\": \"x\"}" GET));
    rules.content_schema = (pith_span){"{\"type\": \"nothing\"}", 19};
    byte_grammar g = open_tools(tools, rules);
    assert_null(g.grammar);
    assert_non_null(strstr(g.error.text, "the answer's schema, #/type"));
    byte_grammar_close(&g);
    rules.content_schema = (pith_span){schema, sizeof schema - 1};
    rules.format = format_of("llama3"); /* its calls are JSON too */
    g = open_tools(tools, rules);
    assert_null(g.grammar);
    assert_int_equal(g.error.status, PITH_ERROR_UNSUPPORTED);
    byte_grammar_close(&g);
}

static void test_thoughts_come_before_calls(void **state) {
    (void)state;
    pith_tool_format format = *format_of("hermes");
    format.thought_begin = "<think>";
    format.thought_end = "</think>";
    pith_tool_rules rules = {.format = &format, .choice = PITH_TOOLS_REQUIRED, .in_thought = true};
    check_reply(rules, TEXTS("hm <tool_call></think>\n\n" NOW, "</think>" NOW), TEXTS(NOW));
    rules.in_thought = false;
    check_reply(rules, TEXTS(NOW, "<think>hm <tool_call></think>\n\n" NOW, "<think></think>" NOW),
                TEXTS("</think>" NOW, "hm</think>" NOW, "<think>" NOW));
    rules.choice = PITH_TOOLS_AUTO;
    check_reply(rules,
                TEXTS("", "hello <tool", NOW, "x" NOW, " <thin", "<think>a</think>b" NOW,
                      "<table>" NOW, "a <think> b", "<think>a</think>"),
                TEXTS("<think>hm", "<think>hm " NOW, " \n<think>" NOW, "<think>" NOW, "x" NOW "y"));
    rules.choice = PITH_TOOLS_NONE;
    check_reply(rules, TEXTS("", "<think>" NOW "</think>", "<t"), TEXTS(NOW, "<think>", "x" NOW));
    format = *format_of("llama3");
    format.thought_begin = "<think>";
    format.thought_end = "</think>";
    rules.choice = PITH_TOOLS_AUTO;
    check_reply(rules,
                TEXTS("", "hello", "{\"name\": \"now\", \"parameters\": {}}",
                      "<think>{</think>{\"name\": \"now\", \"parameters\": {}}"),
                TEXTS(" {", "{hello", "<think>"));
}

/* ---- tools whose marks are tokens ---- */

enum { OPEN_ID = 257, CLOSE_ID = 258, N_TOKENS = 259 };

/* <tool_call> is a control token, which has no text; </tool_call> one with a text. */
static int32_t find_mark(void *user, const char *text, size_t size) {
    (void)user;
    if (size == 11 && memcmp(text, "<tool_call>", size) == 0) return OPEN_ID;
    return size == 12 && memcmp(text, "</tool_call>", size) == 0 ? CLOSE_ID : -1;
}

static pith_matcher *open_token_matcher(pith_token_trie **trie, pith_tool_choice choice) {
    static char bytes[256];
    pith_span pieces[N_TOKENS] = {{NULL, 0}};
    bool is_end[N_TOKENS] = {false};
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        pieces[i] = (pith_span){&bytes[i], 1};
    }
    pieces[CLOSE_ID] = pith_span_of("</tool_call>");
    is_end[256] = true;
    pith_grammar *grammar = NULL;
    pith_matcher *matcher = NULL;
    pith_grammar_tokens tokens = {NULL, find_mark};
    pith_tool_rules rules = {.format = format_of("hermes"), .choice = choice, .tokens = &tokens};
    pith_error error;
    if (pith_token_trie_new(pieces, is_end, N_TOKENS, trie, &error) != PITH_OK ||
        pith_grammar_from_tools(tools, strlen(tools), &rules, &grammar, &error) != PITH_OK ||
        pith_matcher_new(grammar, *trie, 1 << 22, &matcher, &error) != PITH_OK)
        fail_msg("%s", error.text);
    pith_grammar_drop(grammar);
    return matcher;
}

static void accept_text(pith_matcher *matcher, const char *text) {
    for (; *text; text++)
        if (!pith_matcher_accept(matcher, (uint8_t)*text)) fail_msg("not at: %s", text);
}

static void test_marks_that_are_tokens_are_written_as_tokens(void **state) {
    (void)state;
    pith_token_trie *trie = NULL;
    pith_matcher *matcher = open_token_matcher(&trie, PITH_TOOLS_AUTO);
    accept_text(matcher, "I look. <tool_call");
    assert_false(pith_matcher_allows(matcher, '>')); /* no text spells the mark */
    assert_true(pith_matcher_allows(matcher, OPEN_ID));
    assert_false(pith_matcher_allows(matcher, CLOSE_ID) && pith_matcher_may_end(matcher) == false);
    assert_true(pith_matcher_accept(matcher, OPEN_ID));
    assert_false(pith_matcher_may_end(matcher));
    accept_text(matcher, "\n{\"name\": \"get\", \"arguments\": {\"n\": 12}}\n");
    assert_false(pith_matcher_allows(matcher, '<'));
    const uint32_t *mask = pith_matcher_mask(matcher);
    for (int32_t id = 0; id < N_TOKENS; id++)
        assert_int_equal(mask[id / 32] >> (id % 32) & 1, id == CLOSE_ID);
    assert_true(pith_matcher_accept(matcher, CLOSE_ID));
    assert_true(pith_matcher_may_end(matcher));
    pith_matcher_free(matcher);
    pith_token_trie_free(trie);
    matcher = open_token_matcher(&trie, PITH_TOOLS_REQUIRED);
    mask = pith_matcher_mask(matcher);
    for (int32_t id = 0; id < N_TOKENS; id++)
        assert_int_equal(mask[id / 32] >> (id % 32) & 1, id == OPEN_ID);
    pith_matcher_free(matcher);
    pith_token_trie_free(trie);
    matcher = open_token_matcher(&trie, PITH_TOOLS_NONE);
    assert_false(pith_matcher_allows(matcher, OPEN_ID));
    pith_matcher_free(matcher);
    pith_token_trie_free(trie);
}

static void test_formats_are_known_by_templates(void **state) {
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"{{ '<tool_call>' }} {\"name\": \"x\", \"arguments\": {}}", "hermes"},
        {"<tool_call><function=x> \"arguments\"", NULL},
        {"<tool_call>x<arg_key> \"arguments\"", NULL},
        {"[TOOL_CALLS] [", "mistral"},
        {"[TOOL_CALLS]name[ARGS]", NULL},
        {"<|tool_call|> <|/tool_call|>", "phi4-mini"},
        {"<|tool_call|>", "granite3"},
        {"<｜tool▁calls▁begin｜> ```json", "deepseek3"},
        {"<｜tool▁calls▁begin｜>", "deepseek3.1"},
        {"\"parameters\": dictionary of argument name and its value", "llama3"},
        {"{{ messages }}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pith_tool_format *found = pith_tool_format_find(cases[i].text);
        const char *name = found ? found->name : NULL;
        if ((name == NULL) != (cases[i].name == NULL) || (name && strcmp(name, cases[i].name) != 0))
            fail_msg("%s: %s", cases[i].text, name ? name : "none");
    }
    assert_null(pith_tool_format_find(NULL));
    pith_tool_format format = {0};
    pith_tool_format_thought("x<think>y</think>", &format);
    assert_string_equal(format.thought_begin, "<think>");
    assert_string_equal(format.thought_end, "</think>");
    pith_tool_format_thought("x", &format);
    assert_null(format.thought_end);
}

static void test_tool_formats(void **state) {
    (void)state;
    check_reply((pith_tool_rules){.format = format_of("llama3")},
                TEXTS("hello", "{\"name\": \"now\", \"parameters\": {}}"),
                TEXTS("{hello", "{\"name\": \"get\", \"parameters\": {}}"));
    check_reply((pith_tool_rules){.format = format_of("mistral"), .parallel = true},
                TEXTS("[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"get\", "
                      "\"arguments\":"
                      " {\"n\": 1}}]"),
                TEXTS("[TOOL_CALLS][]"));
    check_reply((pith_tool_rules){.format = format_of("granite3")},
                TEXTS("<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]"), NONE);
    check_reply((pith_tool_rules){.format = format_of("phi4-mini")},
                TEXTS("<|tool_call|>{\"name\": \"now\", \"arguments\": {}}<|/tool_call|>"), NONE);
    check_reply(
        (pith_tool_rules){.format = format_of("deepseek3.1")},
        TEXTS("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
              "<｜tool▁calls▁end｜>"),
        NONE);
    check_reply(
        (pith_tool_rules){.format = format_of("deepseek3")},
        TEXTS(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"n\":"
            " 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        NONE);
    size_t n = 0;
    for (; pith_tool_format_get(n) != NULL; n++) {
        byte_grammar g = open_tools(tools, (pith_tool_rules){.format = pith_tool_format_get(n)});
        assert_non_null(g.grammar);
        byte_grammar_close(&g);
    }
    assert_int_equal(n, 7);
}

static void check_tools_refused(const char *text, pith_tool_rules rules, const char *words) {
    byte_grammar g = open_tools(text, rules);
    assert_null(g.grammar);
    if (strstr(g.error.text, words) == NULL) fail_msg("%s: %s", text, g.error.text);
}

static void test_tools_that_are_refused(void **state) {
    (void)state;
    pith_tool_rules rules = {.format = format_of("hermes")};
    pith_tool_format none = {.name = "none"};
    check_tools_refused(tools, (pith_tool_rules){.format = &none}, "in the middle");
    check_tools_refused(
        tools, (pith_tool_rules){.format = format_of("hermes"), .choice = (pith_tool_choice)3},
        "3 is no choice");
    check_tools_refused(tools, (pith_tool_rules){.format = format_of("hermes"), .only = "other"},
                        "other");
    check_tools_refused("[]", rules, "1 to 4096");
    check_tools_refused("{}", rules, "1 to 4096");
    check_tools_refused("[3]", rules, "tools[0]");
    check_tools_refused("[{\"name\":\"f\"},{\"name\":\"g\"},{\"name\":\"f\"}]", rules,
                        "tools[2]: the name f is taken by tools[0]");
    check_tools_refused("[{\"type\":\"function\",\"function\":{}}]", rules,
                        "tools[0]: a function needs");
    check_tools_refused("[{\"type\":\"retrieval\"}]", rules, "tools[0]: only tools");
    check_tools_refused("[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
                        "\"properties\":{\"a\":"
                        "{\"typo\":1}}}}}]",
                        rules, "tool f, #/properties/a");
    check_tools_refused("[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
                        "\"type\":\"string\"}}}]",
                        rules, "tool f, #");
}

/* ---- memory ---- */

static const char rich[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\","
                           "\"minimum\":3,\"multipleOf\":3},\"b\":{\"type\":"
                           "\"string\",\"pattern\":\"a\\\\p{L}b\",\"maxLength\":9},\"c\":{"
                           "\"oneOf\":[{\"type\":\"null\"},{\"type\":\"array\",\"items\":"
                           "{\"$ref\":\"#\"}}]},\"d\":{\"enum\":[1,{\"x\":[2]}]},\"e\":{\"type\":"
                           "\"string\",\"format\":\"ipv4\"},\"f\":{\"type\":\"array\","
                           "\"items\":{\"enum\":[1,2,3]},\"uniqueItems\":true}},\"required\":["
                           "\"a\"],\"additionalProperties\":{\"type\":"
                           "\"number\",\"maximum\":-0.5},\"patternProperties\":{\"^x\":{\"$ref\":"
                           "\"#y\"}},\"$defs\":{\"y\":{\"$anchor\":\"y\","
                           "\"not\":{\"type\":[\"object\",\"array\"]},\"type\":[\"string\","
                           "\"object\"],\"minLength\":1}},\"maxProperties\":4,"
                           "\"dependentRequired\":{\"b\":[\"d\"]}}";

static void test_no_failed_allocation_is_taken_for_success(void **state) {
    (void)state;
#if defined(_WIN32)
    skip(); /* mingw's own printf takes memory, and loses its text without */
#endif
    pith_grammar *grammar = NULL;
    pith_error error;
    memory_watch_reset(0);
    pith_status status = pith_grammar_from_schema(rich, strlen(rich), &grammar, &error);
    if (status != PITH_OK) fail_msg("%s", error.text);
    uint64_t n = memory_watch.n_requests;
    pith_grammar_drop(grammar);
    print_message("%llu allocations\n", (unsigned long long)n);
    for (uint64_t i = 1; i <= n; i += 1 + i / 64) {
        grammar = NULL;
        memory_watch_reset(i);
        status = pith_grammar_from_schema(rich, strlen(rich), &grammar, &error);
        memory_watch_reset(0);
        /* a search for a faster way that fails may end well too */
        if (status == PITH_OK) {
            assert_non_null(grammar);
            pith_grammar_drop(grammar);
            continue;
        }
        assert_null(grammar);
        if (status != PITH_ERROR_MEMORY) {
            fail_msg("allocation %llu: %s", (unsigned long long)i, error.text);
        }
    }
}

/* A value is written without recursion: as deep as schemas may be, on whatever stack. */
static void test_deep_values(void **state) {
    enum { DEPTH = 250 };
    char schema[2 * DEPTH + 32], value[2 * DEPTH + 4];
    (void)state;
    memset(value, '[', DEPTH);
    memcpy(value + DEPTH, "7", 1);
    memset(value + DEPTH + 1, ']', DEPTH);
    value[2 * DEPTH + 1] = 0;
    (void)snprintf(schema, sizeof schema, "{\"const\":%s}", value);
    const char *const good[] = {value, NULL}, *const bad[] = {value + 1, "[7]", NULL};
    check_texts(schema, good, bad);
    const char *const one[] = {"{\"a\":[1,{\"b\":[],\"c\":{}}],\"d\":null}", NULL};
    const char *const others[] = {"{\"a\":[1,{\"b\":[],\"c\":{}}],\"d\":null",
                                  "{\"a\":[1,{\"b\":[]}],\"d\":null}", NULL};
    check_texts("{\"const\":{\"a\":[1,{\"b\":[],\"c\":{}}],\"d\":null}}", one, others);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deep_values),
        cmocka_unit_test(test_any_value),
        cmocka_unit_test(test_space_has_a_form),
        cmocka_unit_test(test_strings_have_one_spelling),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_multiples),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bounds_are_exact),
        cmocka_unit_test(test_lengths_count_code_points),
        cmocka_unit_test(test_patterns_search),
        cmocka_unit_test(test_patterns_meet_lengths_and_patterns),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_enum_and_const),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_unique_items),
        cmocka_unit_test(test_properties_in_their_order),
        cmocka_unit_test(test_further_keys),
        cmocka_unit_test(test_pattern_properties),
        cmocka_unit_test(test_property_names),
        cmocka_unit_test(test_counts_of_properties),
        cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_all_of_merges),
        cmocka_unit_test(test_any_of),
        cmocka_unit_test(test_one_of_is_kept_apart),
        cmocka_unit_test(test_not),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_unknown_keywords_are_refused_by_path),
        cmocka_unit_test(test_wrong_forms_are_refused_by_path),
        cmocka_unit_test(test_contradictions_are_refused_by_path),
        cmocka_unit_test(test_depth_has_a_limit),
        cmocka_unit_test(test_products_that_explode_are_refused),
        cmocka_unit_test(test_large_schemas_are_compiled),
        cmocka_unit_test(test_tool_calls_obey_their_schema),
        cmocka_unit_test(test_tool_formats),
        cmocka_unit_test(test_an_answer_beside_tools_obeys_its_schema),
        cmocka_unit_test(test_thoughts_come_before_calls),
        cmocka_unit_test(test_marks_that_are_tokens_are_written_as_tokens),
        cmocka_unit_test(test_formats_are_known_by_templates),
        cmocka_unit_test(test_tools_that_are_refused),
        cmocka_unit_test(test_no_failed_allocation_is_taken_for_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
