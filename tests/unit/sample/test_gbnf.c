/* SPDX-License-Identifier: Apache-2.0
 * Promises of the GBNF reader: everything that the notation has means what it says; what is wrong is refused with its line and
 * column; no text makes it crash, hang or recurse. */
#include "grammar_case.h"

#include <stdio.h>
#include <stdlib.h>

static void assert_says(const char *gbnf, const char *text, said expected) {
    pith_grammar *grammar = gbnf_of(gbnf);
    said answer = says(grammar, text);
    if (answer != expected)
        print_message("%s\n  %s: %d, expected %d\n", gbnf, text, (int)answer, (int)expected);
    assert_int_equal(answer, expected);
    pith_grammar_drop(grammar);
}

static void assert_refused(const char *gbnf, size_t size, pith_status expected, const char *part) {
    pith_grammar *grammar = (pith_grammar *)(uintptr_t)1;
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_grammar_from_gbnf(gbnf, size, NULL, &grammar, &error);
    if (status != expected || strstr(error.text, part) == NULL)
        print_message("%.200s\n  %d %s, expected %s\n", gbnf, status, error.text, part);
    assert_int_equal(status, expected);
    assert_null(grammar);
    assert_non_null(strstr(error.text, part));
    assert_int_equal(pith_grammar_from_gbnf(gbnf, size, NULL, &grammar, NULL), expected);
}

static void refuses(const char *gbnf, const char *part) {
    assert_refused(gbnf, strlen(gbnf), PITH_ERROR_FORMAT, part);
}

/* ---- meaning ---- */

static void test_literals_and_escapes(void **state) {
    (void)state;
    assert_says("root ::= \"abc\"", "abc", WHOLE);
    assert_says("root ::= \"abc\"", "ab", START);
    assert_says("root ::= \"abc\"", "abd", OUTSIDE);
    assert_says("root ::= \"\"", "", WHOLE);
    assert_says("root ::= \"\\x41\\u00e9\\U0001F642\\t\\r\\n\\\\\\\"\\[\\]\"",
                "A\xC3\xA9\xF0\x9F\x99\x82\t\r\n\\\"[]", WHOLE);
    assert_says("root ::= \"\xE2\x82\xAC\"", "\xE2\x82\xAC", WHOLE);
    assert_says("root ::= \"\xE2\x82\xAC\"", "\xE2\x82", START);
    assert_says("root ::= \"a\nb\"", "a\nb", WHOLE); /* as it stands */
}

static void test_classes(void **state) {
    (void)state;
    assert_says("root ::= [a-c_x]", "b", WHOLE);
    assert_says("root ::= [a-c_x]", "_", WHOLE);
    assert_says("root ::= [a-c_x]", "d", OUTSIDE);
    assert_says("root ::= [^a-c]", "d", WHOLE);
    assert_says("root ::= [^a-c]", "\n", WHOLE);
    assert_says("root ::= [^a-c]", "b", OUTSIDE);
    assert_says("root ::= [^a-c]", "\xF0\x9F\x99\x82", WHOLE);
    assert_says("root ::= [a-]", "-", WHOLE);
    assert_says("root ::= [-a]", "-", WHOLE);
    assert_says("root ::= [\\]\\[\\\\]", "]", WHOLE);
    assert_says("root ::= [\xC3\xA0-\xC3\xBF]", "\xC3\xA9", WHOLE);
    assert_says("root ::= [\\u00e0-\\u00ff]", "\xC3\xA9", WHOLE);
    assert_says("root ::= [\\u00e0-\\u00ff]", "\xC3\x9F", OUTSIDE);
    assert_says("root ::= .", "\n", WHOLE);
    assert_says("root ::= . .", "\xE2\x82\xAC\x41", WHOLE);
    assert_says("root ::= [\"]", "\"", WHOLE);
}

static void test_only_well_formed_text(void **state) {
    (void)state;
    static const char *const bad[] = {"\xC0",     "\xC1",     "\xF5",     "\xFF",
                                      "\x80",     "\xE0\x80", "\xE0\x9F", "\xED\xA0",
                                      "\xF0\x80", "\xF0\x8F", "\xF4\x90", "\xC3\x28"};
    static const char *const good[] = {"\x7F",         "\xC2\x80",         "\xDF\xBF",
                                       "\xE0\xA0\x80", "\xED\x9F\xBF",     "\xEE\x80\x80",
                                       "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
    static const char *const grammars[] = {"root ::= .", "root ::= [^z]",
                                           "root ::= [\\u0000-\\U0010FFFF]"};
    for (size_t g = 0; g < 3; g++) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            assert_says(grammars[g], bad[i], OUTSIDE);
        for (size_t i = 0; i < sizeof good / sizeof *good; i++)
            assert_says(grammars[g], good[i], WHOLE);
    }
}

static void test_repetition(void **state) {
    (void)state;
    assert_says("root ::= \"ab\"*", "", WHOLE);
    assert_says("root ::= \"ab\"*", "abab", WHOLE); /* the literal as a whole */
    assert_says("root ::= \"ab\"*", "aba", START);
    assert_says("root ::= \"a\"+", "", START);
    assert_says("root ::= \"a\"+", "aaa", WHOLE);
    assert_says("root ::= \"a\"?", "aa", OUTSIDE);
    assert_says("root ::= \"a\"{3}", "aa", START);
    assert_says("root ::= \"a\"{3}", "aaa", WHOLE);
    assert_says("root ::= \"a\"{3}", "aaaa", OUTSIDE);
    assert_says("root ::= \"a\"{2,}", "aaaaa", WHOLE);
    assert_says("root ::= \"a\"{2,}", "a", START);
    assert_says("root ::= \"a\"{ 1 , 2 }", "aa", WHOLE);
    assert_says("root ::= \"a\"{0,2}", "", WHOLE);
    assert_says("root ::= \"a\"{0,2}", "aaa", OUTSIDE);
    assert_says("root ::= \"a\"{0}", "", WHOLE);
    assert_says("root ::= \"a\"{0}", "a", OUTSIDE);
    assert_says("root ::= (\"a\" [bc])+", "abac", WHOLE);
    assert_says("root ::= \"a\"*?", "aaa", WHOLE); /* a repetition of a repetition */
    assert_says("root ::= (\"a\"{2}){3}", "aaaaaa", WHOLE);
    assert_says("root ::= (\"a\"{2}){3}", "aaaaa", START);
    assert_says("root ::= (\"a\"? \"b\"?){2}", "", WHOLE);
    assert_says("root ::= (\"a\"? \"b\"?){2}", "abab", WHOLE);
    assert_says("root ::= (\"a\"? \"b\"?){2}", "aba", WHOLE);
    assert_says("root ::= (\"a\"? \"b\"?){2}", "ababa", OUTSIDE);
    assert_says("root ::= (\"a\"*)*", "aaaa", WHOLE);
    assert_says("root ::= (\"a\"* \"b\"*){3,5} \"c\"", "abababababc", WHOLE);
    assert_says("root ::= (\"a\"* \"b\"*){3,5} \"c\"", "ababababababc", OUTSIDE);
}

static void test_counts_at_their_limits(void **state) {
    (void)state;
    static const uint32_t counts[][2] = {{0, 40}, {5, 40}, {40, 40}, {39, 41}, {17, 1000}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char gbnf[100];
        snprintf(gbnf, sizeof gbnf, "root ::= [^\"]{%u,%u} \"\\\"\"", counts[i][0], counts[i][1]);
        for (uint32_t n = 0; n < 45; n++) {
            char text[64];
            memset(text, 'x', n);
            text[n] = '"';
            text[n + 1] = 0;
            bool fits = n >= counts[i][0] && n <= counts[i][1];
            assert_says(gbnf, text, fits ? WHOLE : OUTSIDE);
        }
    }
}

static void test_alternatives_and_groups(void **state) {
    (void)state;
    assert_says("root ::= \"a\" | \"b\" \"c\"", "bc", WHOLE);
    assert_says("root ::= \"a\" |", "", WHOLE); /* an empty alternative */
    assert_says("root ::= | \"a\"", "", WHOLE);
    assert_says("root ::= (\"a\" | (\"b\" | \"c\") \"d\") \"e\"", "cde", WHOLE);
    assert_says("root ::= () \"a\"", "a", WHOLE);
    assert_says("root ::= \"red\" | \"reed\" | \"re\" | \"blue\"", "re", WHOLE);
    assert_says("root ::= \"red\" | \"reed\" | \"re\" | \"blue\"", "ree", START);
    assert_says("root ::= \"red\" | \"reed\" | \"re\" | \"blue\"", "reb", OUTSIDE);
    assert_says("root ::= \"ab\" x | \"ab\" y | \"a\" y\nx ::= \"1\"\ny ::= \"2\"", "ab2", WHOLE);
}

static void test_line_breaks_and_comments(void **state) {
    (void)state;
    assert_says("# a comment\n\nroot ::= a   # another\r\n\na ::= \"x\" |\n  \"y\"\n", "y", WHOLE);
    assert_says("root ::=\n  (\"a\"\n   \"b\" # within\n  )\n", "ab", WHOLE);
    assert_says("root ::= a-1_B\na-1_B ::= \"x\"", "x", WHOLE);
    refuses("root ::= \"a\"\n  | \"b\"", "line 2, column 3");
}

static void test_rules_may_be_recursive(void **state) {
    (void)state;
    assert_says("root ::= \"(\" root \")\" | \"x\"", "((x))", WHOLE);
    assert_says("root ::= \"(\" root \")\" | \"x\"", "((x)))", OUTSIDE);
    assert_says("root ::= \"a\" root | \"b\"", "aaab", WHOLE);
    assert_says("root ::= a\na ::= \"x\" b?\nb ::= \"y\" a", "xyxyx", WHOLE);
    assert_says("root ::= e\ne ::= t (\"+\" t)*\nt ::= \"1\" | \"(\" e \")\"", "(1+(1))+1", WHOLE);
}

static void test_unreachable_rules_are_fine(void **state) {
    (void)state;
    assert_says("root ::= \"a\"\nother ::= \"b\"", "a", WHOLE);
}

/* ---- refusals ---- */

static void test_errors_name_line_and_column(void **state) {
    (void)state;
    refuses("", "no rule named root");
    refuses("a ::= \"x\"", "no rule named root");
    refuses("root ::= \"x", "line 1, column 10");
    refuses("root ::= [abc", "line 1, column 10");
    refuses("root ::= [b-a]", "line 1, column 11");
    refuses("root ::= []", "empty");
    refuses("root ::= [^]", "empty");
    refuses("root ::= \"\\q\"", "line 1, column 11");
    refuses("root ::= \"\\x4\"", "hex");
    refuses("root ::= \"\\uD800\"", "surrogate");
    refuses("root ::= \"\\U00110000\"", "10FFFF");
    refuses("root ::= \"a\" )", "line 1, column 14");
    refuses("root ::= ( \"a\"", "line 1, column 10");
    refuses("root ::= *", "nothing before");
    refuses("root ::= \"a\" | +", "nothing before");
    refuses("root ::= \"a\"{,3}", "number");
    refuses("root ::= \"a\"{3,2}", "least count");
    refuses("root ::= \"a\"{3", "}");
    refuses("root ::= \"a\"{1048577}", "too large");
    refuses("root ::= \"a\"{99999999999999999999}", "too large");
    refuses("root = \"a\"", "::=");
    refuses("root ::= \"a\" ::= \"b\"", "line 1, column 14");
    refuses("root ::= \"a\"\nroot ::= \"b\"", "defined twice");
    refuses("root ::= \"a\xFF\"", "UTF-8");
    refuses("\"a\"", "name of a rule");
    refuses("root ::= \xC3\xA9\xC3\xA9 x y\n", "line 1, column 10");
    refuses("\n\nroot ::= \"\xC3\xA9\xC3\xA9\" $",
            "line 3, column 15"); /* characters are counted */
    assert_refused("root ::= <think>", 16, PITH_ERROR_NOT_FOUND, "no model is given");
    refuses("root ::= <[12", "]>");
    refuses("root ::= !\"a\"", "token");
    assert_refused("root ::= \0", 10, PITH_ERROR_FORMAT, "line 1, column 10");
}

static void test_rules_that_cannot_work_are_named(void **state) {
    (void)state;
    refuses("root ::= a\na ::= b c", "\"b\" is used, but not defined");
    refuses("root ::= \"x\" | root \"y\"", "\"root\" is left recursive");
    refuses("root ::= a\na ::= b \"x\"\nb ::= \"y\"? a",
            "line 2, column 1: rule \"a\" is left recursive");
    refuses("root ::= \"z\" | a\na ::= (\"\" | \"k\"*) [x]? a", "left recursive");
    refuses("root ::= (root)*", "left recursive");
    refuses("root ::= \"x\" root", "can never end");
    refuses("root ::= \"a\" | b\nb ::= \"(\" b \")\"",
            "line 2, column 1: rule \"b\" can never end");
    refuses("root ::= \"a\" b\nb ::= \"x\" c\nc ::= \"y\" b", "can never end");
}

static void test_deep_nesting_is_refused_not_followed(void **state) {
    (void)state;
    enum { DEEP = 200000 };
    char *text = malloc(2 * DEEP + 64);
    assert_non_null(text);
    for (int most = PITH_GRAMMAR_MAX_NESTING - 2; most <= DEEP;
         most = most < 1100 ? most + 1 : DEEP + 1) {
        size_t n = (size_t)snprintf(text, 64, "root ::= ");
        memset(text + n, '(', (size_t)most);
        n += (size_t)most;
        text[n++] = '.';
        memset(text + n, ')', (size_t)most);
        n += (size_t)most;
        if (most > 1100) most = DEEP;
        pith_grammar *grammar = NULL;
        pith_error error = {PITH_OK, ""};
        pith_status status = pith_grammar_from_gbnf(text, n, NULL, &grammar, &error);
        if (most < PITH_GRAMMAR_MAX_NESTING) {
            assert_int_equal(status, PITH_OK);
        } else {
            assert_int_equal(status, PITH_ERROR_FORMAT);
            assert_non_null(strstr(error.text, "nested"));
        }
        pith_grammar_drop(grammar);
        if (most == PITH_GRAMMAR_MAX_NESTING + 1) break;
    }
    free(text);
}

static void test_large_texts(void **state) {
    (void)state;
    char *text = malloc(PITH_GRAMMAR_MAX_TEXT + 2);
    assert_non_null(text);
    memset(text, ' ', PITH_GRAMMAR_MAX_TEXT + 1);
    memcpy(text, "root ::= \"a\"", 12);
    pith_grammar *grammar = NULL;
    assert_int_equal(pith_grammar_from_gbnf(text, PITH_GRAMMAR_MAX_TEXT, NULL, &grammar, NULL),
                     PITH_OK);
    pith_grammar_drop(grammar);
    assert_refused(text, PITH_GRAMMAR_MAX_TEXT + 1, PITH_ERROR_LIMIT, "bytes");
    /* many rules, each used by the next; and more rules than there may be */
    size_t n = (size_t)snprintf(text, 64, "root ::= r0\n"), rules = 0;
    while (n < PITH_GRAMMAR_MAX_TEXT - 64) {
        n += (size_t)snprintf(text + n, 64, "r%zu ::= \"a\" r%zu\n", rules, rules + 1);
        rules++;
    }
    n += (size_t)snprintf(text + n, 64, "r%zu ::= \"b\"", rules);
    assert_true(rules > 40000 && rules < PITH_GRAMMAR_MAX_RULES);
    assert_int_equal(pith_grammar_from_gbnf(text, n, NULL, &grammar, NULL), PITH_OK);
    pith_grammar_drop(grammar);
    n = (size_t)snprintf(text, 64, "root ::= a\n");
    for (size_t i = 0; n < PITH_GRAMMAR_MAX_TEXT - 16; i++)
        n += (size_t)snprintf(text + n, 16, "%zx::=.\n", i + 0x1000);
    assert_refused(text, n, PITH_ERROR_LIMIT, "rules");
    free(text);
}

static void test_huge_counts_cost_nothing(void **state) {
    (void)state;
    pith_grammar *grammar = gbnf_of("root ::= ([^\"]{0,1000000} \"\\\"\"){1000000} | "
                                    "(((\"a\"{1000000}){1000000}){1000000}){3,1000000} \"x\"");
    assert_int_equal(says(grammar, "abc\"d"), START);
    assert_int_equal(says(grammar, "aaaaaaaaaaaaaaaaaaaaaa"), START);
    pith_grammar_drop(grammar);
}

static int32_t find_token(void *user, const char *text, size_t size) {
    (void)user;
    return size == 7 && memcmp(text, "<think>", 7) == 0 ? 3 : -1;
}

static void test_tokens_as_a_whole(void **state) {
    (void)state;
    const pith_span pieces[] = {{"a", 1}, {"b", 1}, {"ab", 2}, {NULL, 0}, {"</s>", 4}};
    const bool is_end[] = {false, false, false, false, true};
    const char *text = "root ::= \"a\" <think> !<[1]>* \"b\"";
    pith_grammar_tokens tokens = {NULL, find_token};
    pith_token_trie *trie = NULL;
    pith_grammar *grammar = NULL;
    assert_int_equal(pith_token_trie_new(pieces, is_end, 5, &trie, NULL), PITH_OK);
    assert_int_equal(pith_grammar_from_gbnf(text, strlen(text), &tokens, &grammar, NULL), PITH_OK);
    pith_matcher *matcher = matcher_of(grammar, trie, CASE_MEMORY);
    assert_int_equal(pith_matcher_mask(matcher)[0], 1u << 0); /* "ab" would go past the token */
    assert_true(pith_matcher_accept(matcher, 0));
    assert_int_equal(pith_matcher_mask(matcher)[0], 1u << 3);
    assert_false(pith_matcher_accept(matcher, 1));
    assert_true(pith_matcher_accept(matcher, 3));
    /* any token but 1 (and no end), or the "b" that follows */
    assert_int_equal(pith_matcher_mask(matcher)[0], 0xFu);
    for (int32_t id = 0; id < 5; id++) assert_int_equal(pith_matcher_allows(matcher, id), id < 4);
    assert_true(pith_matcher_accept(matcher, 2));
    assert_true(pith_matcher_accept(matcher, 1));
    assert_true(pith_matcher_may_end(matcher));
    assert_int_equal(pith_matcher_mask(matcher)[0], 1u << 4);
    char forced[4];
    bool is_whole;
    assert_int_equal(pith_matcher_forced(matcher, forced, sizeof forced, &is_whole), 0);
    assert_true(is_whole);
    pith_matcher_rewind(matcher, 3);
    assert_int_equal(pith_matcher_mask(matcher)[0], 1u << 3);
    pith_matcher_free(matcher);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literals_and_escapes),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_only_well_formed_text),
        cmocka_unit_test(test_repetition),
        cmocka_unit_test(test_counts_at_their_limits),
        cmocka_unit_test(test_alternatives_and_groups),
        cmocka_unit_test(test_line_breaks_and_comments),
        cmocka_unit_test(test_rules_may_be_recursive),
        cmocka_unit_test(test_unreachable_rules_are_fine),
        cmocka_unit_test(test_errors_name_line_and_column),
        cmocka_unit_test(test_rules_that_cannot_work_are_named),
        cmocka_unit_test(test_deep_nesting_is_refused_not_followed),
        cmocka_unit_test(test_large_texts),
        cmocka_unit_test(test_huge_counts_cost_nothing),
        cmocka_unit_test(test_tokens_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
