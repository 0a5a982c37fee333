/* SPDX-License-Identifier: Apache-2.0
 * Promises of regular expressions: what ECMA-262 says matches is allowed and nothing else is; what
 * describes no regular language is refused with its offset; limits hold; counters stay counters.
 *
 * tests/schema/test_pattern.py compares random expressions with another engine. */
#include "support/byte_grammar.h"

#include "sample/regex.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <stdio.h>

static byte_grammar open_regex(const char *text, size_t size) {
    byte_grammar g = {0};
    pith_status status = pith_grammar_from_regex(text, size, &g.grammar, &g.error);
    assert_int_equal(status == PITH_OK, g.grammar != NULL);
    if (status != PITH_OK) assert_int_equal(g.error.status, status);
    byte_grammar_open(&g);
    return g;
}

/* good, bad: texts, NULL-terminated. */
static void check_texts(const char *regex, const char *const *good, const char *const *bad) {
    byte_grammar g = open_regex(regex, strlen(regex));
    if (g.grammar == NULL) fail_msg("%s: refused: %s", regex, g.error.text);
    for (; *good; good++) {
        if (!byte_grammar_allows(&g, *good, strlen(*good))) fail_msg("%s: not %s", regex, *good);
    }
    for (; *bad; bad++) {
        if (byte_grammar_allows(&g, *bad, strlen(*bad))) fail_msg("%s: allowed %s", regex, *bad);
    }
    byte_grammar_close(&g);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE       ((const char *const[]){NULL})

static void test_characters(void **state) {
    (void)state;
    check_texts("abc", TEXTS("abc"), TEXTS("", "ab", "abcd", "xabc"));
    check_texts("", TEXTS(""), TEXTS("a"));
    check_texts("a\\.b\\*\\/\\-\\\"", TEXTS("a.b*/-\""), TEXTS("axb*/-\""));
    check_texts("\\x41\\u0042\\u{43}\\u{1F600}", TEXTS("ABC\xF0\x9F\x98\x80"), TEXTS("ABC"));
    check_texts("\\uD83D\\uDE00", TEXTS("\xF0\x9F\x98\x80"), NONE);
    check_texts("\\t\\n\\v\\f\\r\\cJ", TEXTS("\t\n\v\f\r\n"), NONE);
    check_texts("\xC3\xA9+", TEXTS("\xC3\xA9\xC3\xA9"), TEXTS("\xC3", "\xA9"));
    check_texts("a{,2}", TEXTS("a{,2}"), TEXTS("aa")); /* no quantifier: the characters */
    check_texts("{}]", TEXTS("{}]"), NONE);
}

static void test_classes(void **state) {
    (void)state;
    check_texts("[abc]", TEXTS("a", "c"), TEXTS("", "d", "ab"));
    check_texts("[^abc]", TEXTS("d", "\n", "\xC3\xA9"), TEXTS("a", "", "\xC3"));
    check_texts("[a-cx-z_-]", TEXTS("b", "y", "_", "-"), TEXTS("d", "w"));
    check_texts("[\\w-.]", TEXTS("a", "-", "."), TEXTS(","));
    check_texts("[a-\\d]", TEXTS("a", "-", "5"), TEXTS("b"));
    check_texts("[\\]\\\\^]", TEXTS("]", "\\", "^"), TEXTS("["));
    check_texts("x[]|y", TEXTS("y"), TEXTS("x", "x]"));
    check_texts("[^]", TEXTS("a", "\n", "\xE2\x82\xAC"), TEXTS(""));
    check_texts("\\d\\D", TEXTS("0a", "9 "), TEXTS("00", "a0", "\xD9\xA3x"));
    check_texts("\\w\\W", TEXTS("_-", "Z\xC3\xA9"), TEXTS("aa", "--"));
    check_texts("\\s\\S", TEXTS(" a", "\xC2\xA0x", "\xEF\xBB\xBF-", "\xE2\x80\xA8y"),
                TEXTS("  ", "aa"));
    check_texts(".", TEXTS("a", "\t", "\xF0\x9F\x98\x80"), TEXTS("\n", "\r", "\xE2\x80\xA8", ""));
    check_texts("[\\b]", TEXTS("\b"), TEXTS("b"));
    check_texts("[\\s\\S]*", TEXTS("", "a\nb"), NONE);
}

static void test_properties(void **state) {
    (void)state;
    check_texts("\\p{Lu}\\p{L}*", TEXTS("A", "\xC3\x89t\xC3\xA9", "\xD0\x96\xD1\x83"),
                TEXTS("a", "A1", ""));
    check_texts("\\p{Letter}\\P{Letter}", TEXTS("a1"), TEXTS("ab", "11"));
    check_texts("\\p{Script=Greek}+", TEXTS("\xCE\xB1\xCE\xB2"), TEXTS("ab"));
    check_texts("[\\p{Nd}_]+", TEXTS("1_\xD9\xA3"), TEXTS("a"));
    check_texts("\\p{gc=Sc}", TEXTS("$", "\xE2\x82\xAC"), TEXTS("S"));
    check_texts("\\p{Any}\\p{ASCII}", TEXTS("\xF4\x8F\xBF\xBFz"), TEXTS("z\xC3\xA9"));
    check_texts("\\p{Co}", TEXTS("\xF3\xB0\x80\x80", "\xEE\x80\x80"), TEXTS("a"));
    check_texts("\\p{Cn}", TEXTS("\xF1\x80\x80\x80", "\xF3\xBF\xBF\xBF"), TEXTS("a"));
}

static void test_quantifiers(void **state) {
    (void)state;
    check_texts("a*", TEXTS("", "a", "aaaa"), TEXTS("b", "ab"));
    check_texts("a+?", TEXTS("a", "aa"), TEXTS(""));
    check_texts("ab?c", TEXTS("ac", "abc"), TEXTS("abbc"));
    check_texts("a{2}", TEXTS("aa"), TEXTS("a", "aaa"));
    check_texts("a{2,}", TEXTS("aa", "aaaaa"), TEXTS("a"));
    check_texts("(ab){1,3}?", TEXTS("ab", "ababab"), TEXTS("", "abababab", "aba"));
    check_texts("a{0}b", TEXTS("b"), TEXTS("ab"));
    check_texts("(?:a|b|)*c", TEXTS("c", "abbac"), TEXTS("ab"));
    check_texts("(a*)*b", TEXTS("b", "aaab"), TEXTS("aaa"));
    check_texts("(a|b)*abb", TEXTS("abb", "babaabb"), TEXTS("ab", "abba"));
}

static void test_groups(void **state) {
    (void)state;
    check_texts("(a|bc|)d", TEXTS("ad", "bcd", "d"), TEXTS("abcd", "bd"));
    check_texts("(?:x(?<name>y|z))+", TEXTS("xy", "xyxz"), TEXTS("x", "y"));
    check_texts("a||b", TEXTS("a", "b", ""), TEXTS("|"));
    check_texts("((((a))))", TEXTS("a"), TEXTS("((a))"));
}

static void test_anchors_stand_at_the_ends(void **state) {
    (void)state;
    check_texts("^abc$", TEXTS("abc"), TEXTS("^abc$", "ab"));
    check_texts("^a|b$", TEXTS("a", "b"), TEXTS("ab"));
    check_texts("(^a|^b)c($|d$)", TEXTS("ac", "bcd"), TEXTS("abc"));
    check_texts("^^a$$", TEXTS("a"), NONE);
    check_texts("^$", TEXTS(""), TEXTS("a"));
    check_texts("^(?:)a", TEXTS("a"), NONE);
}

static void check_refused(const char *regex, pith_status status, const char *words) {
    byte_grammar g = open_regex(regex, strlen(regex));
    if (g.grammar != NULL) fail_msg("%s is allowed", regex);
    if (g.error.status != status) fail_msg("%s: status %d", regex, (int)g.error.status);
    if (strstr(g.error.text, words) == NULL) fail_msg("%s: %s", regex, g.error.text);
}

static void test_what_is_not_regular_is_refused_with_its_offset(void **state) {
    (void)state;
    static const struct {
        const char *regex, *words;
    } cases[] = {
        {"ab(?=c)", "offset 2: looking ahead"},
        {"a(?!b)", "offset 1: looking ahead"},
        {"x(?<=a)b", "offset 1: looking behind"},
        {"(?<!a)", "offset 0: looking behind"},
        {"(a)\\1", "offset 3: references"},
        {"(?<n>a)\\k<n>", "offset 7: references"},
        {"a\\b", "offset 1: word borders"},
        {"\\B", "offset 0: word borders"},
        {"a^", "offset 1: ^ stands"},
        {"$a", "offset 0: $ stands"},
        {"(a|^)*b", "offset 3: ^ stands"},
        {"(?i:a)", "offset 0: a group"},
        {"(?P<n>a)", "offset 0: a group"},
        {"\\A", "offset 0: an escape"},
        {"\\h", "offset 0: an escape"},
        {"\\p{Nonsense}", "no Unicode property"},
        {"\\p{Script=Nonsense}", "no Unicode property"},
        {"\\uD83D", "offset 0: half a surrogate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_refused(cases[i].regex, PITH_ERROR_UNSUPPORTED, cases[i].words);
    }
}

static void test_broken_expressions_are_refused_with_their_offset(void **state) {
    (void)state;
    static const struct {
        const char *regex, *words;
    } cases[] = {
        {"ab(", "offset 2"},     {"ab)", "offset 2"},       {"a[b", "offset 1"},
        {"*a", "offset 0"},      {"a|+", "offset 2"},       {"a**", "offset 2"},
        {"a{2}{3}", "offset 4"}, {"a{3,2}", "offset 1"},    {"[z-a]", "offset 2"},
        {"\\", "offset 0"},      {"\\x4", "offset 0"},      {"\\u12", "offset 0"},
        {"\\u{}", "offset 0"},   {"\\u{110000}", "offset"}, {"a\\p", "offset 1"},
        {"\\c1", "offset 0"},    {"\\01", "offset 0"},      {"^*", "offset 1"},
        {"(?<>a)", "offset 0"},  {"(?<1>a)", "offset 0"},   {"a\xFF", "offset 1"},
        {"[\xC3]", "offset 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_refused(cases[i].regex, PITH_ERROR_FORMAT, cases[i].words);
    }
}

static void test_counts_stay_counters(void **state) {
    (void)state;
    char text[5000];
    byte_grammar g = open_regex("(ab?){4000,1000000}", 19);
    assert_non_null(g.grammar);
    memset(text, 'a', sizeof text);
    assert_false(byte_grammar_allows(&g, text, 3999));
    assert_true(byte_grammar_allows(&g, text, 4000));
    assert_true(byte_grammar_allows(&g, text, 5000));
    byte_grammar_close(&g);
    check_refused("a{1048577}", PITH_ERROR_LIMIT, "offset 1");
    check_refused("a{1,99999999999999999999}", PITH_ERROR_LIMIT, "offset 1");
}

static void test_nesting_has_a_limit(void **state) {
    (void)state;
    char text[2 * (PITH_GRAMMAR_MAX_NESTING + 1) + 2];
    for (size_t n = PITH_GRAMMAR_MAX_NESTING; n <= PITH_GRAMMAR_MAX_NESTING + 1; n++) {
        memset(text, '(', n);
        text[n] = 'a';
        memset(text + n + 1, ')', n);
        byte_grammar g = open_regex(text, 2 * n + 1);
        assert_int_equal(g.grammar != NULL, n == PITH_GRAMMAR_MAX_NESTING);
        if (g.grammar != NULL) assert_true(byte_grammar_allows(&g, "a", 1));
        if (g.grammar == NULL) assert_int_equal(g.error.status, PITH_ERROR_LIMIT);
        byte_grammar_close(&g);
    }
}

static void test_length_has_a_limit(void **state) {
    (void)state;
    size_t size = (size_t)PITH_GRAMMAR_MAX_TEXT + 1;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, 'a', size);
    byte_grammar g = open_regex(text, size);
    assert_null(g.grammar);
    assert_int_equal(g.error.status, PITH_ERROR_LIMIT);
    free(text);
}

/* A set as a string of its ranges, to compare. */
static void test_sets_settle(void **state) {
    (void)state;
    pith_code_set set = {0};
    pith_code_set_add(&set, 'x', 'z');
    pith_code_set_add(&set, 'a', 'c');
    pith_code_set_add(&set, 'b', 'f');
    pith_code_set_add(&set, 'g', 'g');
    pith_code_set_add(&set, 0xD000, 0xE001);
    pith_code_set_settle(&set);
    const pith_code_range expected[] = {{'a', 'g'}, {'x', 'z'}, {0xD000, 0xD7FF}, {0xE000, 0xE001}};
    assert_int_equal(set.n, 4);
    assert_memory_equal(set.ranges, expected, sizeof expected);
    pith_code_set_negate(&set);
    assert_false(pith_code_set_has(&set, 'a'));
    assert_true(pith_code_set_has(&set, 'h'));
    assert_false(pith_code_set_has(&set, 0xD800));
    assert_true(pith_code_set_has(&set, 0x10FFFF));
    pith_code_set_negate(&set);
    assert_int_equal(set.n, 4);
    assert_memory_equal(set.ranges, expected, sizeof expected);
    pith_code_set_deinit(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_quantifiers),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_anchors_stand_at_the_ends),
        cmocka_unit_test(test_what_is_not_regular_is_refused_with_its_offset),
        cmocka_unit_test(test_broken_expressions_are_refused_with_their_offset),
        cmocka_unit_test(test_counts_stay_counters),
        cmocka_unit_test(test_nesting_has_a_limit),
        cmocka_unit_test(test_length_has_a_limit),
        cmocka_unit_test(test_sets_settle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
