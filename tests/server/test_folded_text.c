/* SPDX-License-Identifier: Apache-2.0
 * Promises of folded_text.h: what a reader takes for the same word has the same bytes, also where it
 * stands in a long text; other words have other bytes. */
#include "server/folded_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_fold(const char *text, const char *wanted) {
    pith_buffer out = {0};
    pith_folded_text_append(&out, text, strlen(text));
    assert_false(out.failed);
    assert_string_equal(out.data ? out.data : "", wanted);
    pith_buffer_deinit(&out);
}

static void case_of_every_script_is_the_same(void **state) {
    static const char *const pairs[][2] = {{"ÄÖÜ ÀÉÎÕ", "äöü àéîõ"},
                                           {"ŽIŽEK ŹŻ Ÿ", "žižek źż ÿ"},
                                           {"ȘTEFAN ȚEPEȘ", "ștefan țepeș"},
                                           {"NGUYỄN ƯƠNG", "nguyễn ương"},
                                           {"ΆΘΉΝΑ ΟΔΥΣΣΕΎΣ", "άθήνα οδυσσεύσ"},
                                           {"Ґанок ЇЖАК", "ґанок їжак"},
                                           {"ՀԱՅԱՍՏԱՆ", "հայաստան"},
                                           {"STRASSE", "strasse"},
                                           {"Straße", "strasse"},
                                           {"İSTANBUL", "istanbul"},
                                           {"ISTANBUL", "istanbul"},
                                           {"ıstanbul", "istanbul"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        expect_fold(pairs[i][0], pairs[i][1]);
}

static void forms_of_one_character_are_the_same(void **state) {
    (void)state;
    expect_fold("U\xCC\x88"
                "bergabe",
                "\xC3\xBC"
                "bergabe");                           /* U and a mark */
    expect_fold("e\xCC\xA3\xCC\x82", "\xE1\xBB\x87"); /* two marks */
    expect_fold("e\xCC\x82\xCC\xA3", "\xE1\xBB\x87"); /* the other way round */
    expect_fold("I\xCC\x87", "i");                    /* Turkish, decomposed */
    expect_fold("\xEF\xAC\x81nance o\xEF\xAC\x83"
                "ce",
                "finance office");
    expect_fold("\xEF\xBC\xB0\xEF\xBD\x92\xEF\xBC\x91", "pr1");             /* full width */
    expect_fold("\xF0\x9D\x90\xAC\xF0\x9D\x90\x9E\xF0\x9D\x90\x9C", "sec"); /* bold */
    expect_fold("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xED\x95\x9C");    /* Hangul */
    expect_fold("O\xE2\x80\x99"
                "Brien",
                "o'brien");
    expect_fold("\xE2\x80\x9Cx\xE2\x80\x9D \xC2\xABy\xC2\xBB", "\"x\" \"y\"");
    expect_fold("A\xE2\x80\x91"
                "1 B\xE2\x80\x93"
                "2",
                "a-1 b-2");
}

static void spaces_are_one_and_the_invisible_is_none(void **state) {
    (void)state;
    expect_fold("\t a \r\n\xC2\xA0 b\xE3\x80\x80"
                "c",
                "a b c");
    expect_fold("a\xC2\xAD"
                "b\xE2\x80\x8B"
                "c\xEF\xBB\xBF"
                "d\xE2\x81\xA0",
                "abcd");
    expect_fold("a\xEF\xB8\x8F"
                "b\xF3\xA0\x81\xA1"
                "c\xE3\x85\xA4"
                "d",
                "abcd"); /* selectors, tags, fillers */
    expect_fold("a\xFF\xC3(", "a(");
    expect_fold("", "");
}

/* A word of a long text without ASCII is cut where the stretch before it says so. */
static void a_word_is_the_same_wherever_it_stands(void **state) {
    static const char word[] =
        "\xE0\xA6\x95\xE0\xA7\x87\xE0\xA6\xBE\xD0\x98\xCC\x86\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB";
    pith_buffer alone = {0};
    (void)state;
    pith_folded_text_append(&alone, word, sizeof word - 1);
    for (int before = 0; before < 200; before++) {
        pith_buffer text = {0}, folded = {0};
        for (int i = 0; i < before; i++) pith_buffer_append_text(&text, "\xD0\xB6");
        pith_buffer_append_text(&text, word);
        pith_folded_text_append(&folded, text.data, text.size);
        assert_int_equal(folded.size, (size_t)before * 2 + alone.size);
        assert_string_equal(folded.data + 2 * before, alone.data);
        pith_buffer_deinit(&text);
        pith_buffer_deinit(&folded);
    }
    pith_buffer_deinit(&alone);
}

static void any_bytes_are_taken(void **state) {
    uint64_t seed = 12345;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        char text[400];
        pith_buffer out = {0};
        for (size_t at = 0; at < sizeof text; at++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[at] = (char)(seed >> 56 & (seed >> 40 & 1 ? 0xFF : 0xCF));
        }
        pith_folded_text_append(&out, text, sizeof text);
        assert_true(!out.failed && out.size < 20 * sizeof text);
        pith_buffer_deinit(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_of_every_script_is_the_same),
        cmocka_unit_test(forms_of_one_character_are_the_same),
        cmocka_unit_test(spaces_are_one_and_the_invisible_is_none),
        cmocka_unit_test(a_word_is_the_same_wherever_it_stands),
        cmocka_unit_test(any_bytes_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
