/* SPDX-License-Identifier: Apache-2.0
 * Promises of answer_text.h: the same parts however the text is cut, marks and the white space
 * around them left out, what is no call told as the text that it was. */
#include "server/answer_text.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Parts as one text: [reasoning](name arguments)answer; neighbours of one kind are joined. */
typedef struct told {
    pith_buffer text;
    int kind; /* of the last part; -1: none */
} told;

static void tell(void *user, const pith_reply_part *part) {
    told *t = user;
    static const char *const opens[] = {"T:", "R:", "C:"};
    if (part->kind == PITH_PART_CALL || (int)part->kind != t->kind)
        pith_buffer_append_format(&t->text, "|%s", opens[part->kind]);
    t->kind = (int)part->kind;
    if (part->name) pith_buffer_append_format(&t->text, "%s ", part->name);
    pith_buffer_append(&t->text, part->text.data, part->text.size);
}

typedef struct reading {
    bool reasoning, calls, starts;
} reading;

/* What comes of the text in pieces of `piece` bytes. */
static char *parts_of(const char *text, size_t piece, reading how) {
    told t = {.kind = -1};
    pith_answer_text reply = {.tell = tell, .user = &t};
    pith_answer_text_init(&reply, how.reasoning, how.calls, how.starts);
    size_t size = strlen(text);
    for (size_t at = 0; at < size; at += piece)
        pith_answer_text_push(&reply, text + at, size - at < piece ? size - at : piece);
    pith_answer_text_end(&reply);
    pith_answer_text_deinit(&reply);
    char *out = pith_copy_text(t.text.data ? t.text.data : "", t.text.size);
    pith_buffer_deinit(&t.text);
    return out;
}

static void expect_parts(const char *text, reading how, const char *wanted) {
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        char *got = parts_of(text, piece, how);
        if (strcmp(got, wanted) != 0) print_error("piece %zu of '%s'\n", piece, text);
        assert_string_equal(got, wanted);
        pith_free(got);
    }
}

static const reading all = {true, true, false}, none = {false, false, false};

static void plain_text_passes_unchanged(void **state) {
    (void)state;
    expect_parts("  hello <b> \n", all, "|T:  hello <b> \n");
    expect_parts("<think>x</think><tool_call>{}</tool_call>", none,
                 "|T:<think>x</think><tool_call>{}</tool_call>");
    expect_parts("a <thi", all, "|T:a <thi");
    expect_parts("  ", all, "|T:  ");
    expect_parts("<think", all, "|T:<think");
    expect_parts("", all, "");
}

static void reasoning_is_told_apart(void **state) {
    (void)state;
    expect_parts("<think>\nso\n</think>\n\nyes", all, "|R:so|T:yes");
    expect_parts("\n<think>a </th b</think>c </think>", all, "|R:a </th b|T:c </think>");
    expect_parts("<think>\n\n</think>\n\nyes", all, "|T:yes");
    expect_parts("<think>never ends", all, "|R:never ends");
    expect_parts("so</think>yes", (reading){true, true, true}, "|R:so|T:yes");
    expect_parts("x<think>y</think>", all, "|T:x<think>y</think>");
}

static void calls_are_told_with_their_arguments(void **state) {
    (void)state;
    expect_parts("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", all,
                 "|C:f {\"a\":1}");
    expect_parts("ok \n<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{\"name\":\"g\","
                 "\"arguments\":\"{}\"}</tool_call>\ndone",
                 all, "|T:ok|C:f {}|C:g {}|T:done");
    expect_parts("<tool_call>{\"name\":\"f\",\"arguments\":{}}", all, "|C:f {}");
}

static void what_is_no_call_stays_text(void **state) {
    (void)state;
    expect_parts("<tool_call>nonsense</tool_call> x", all, "|T:<tool_call>nonsense</tool_call> x");
    expect_parts("<tool_call>{\"a\":1}", all, "|T:<tool_call>{\"a\":1}");
    expect_parts("<tool_call>[1]</tool_call>", all, "|T:<tool_call>[1]</tool_call>");
    expect_parts("a <tool_cal b", all, "|T:a <tool_cal b");
}

/* Every cut of texts of random marks gives the parts of the whole text. */
static void cuts_never_matter(void **state) {
    (void)state;
    static const char *const words[] = {
        "<think>", "</think>", "<tool_call>", "</tool_call>",     " ",
        "\n",      "a",        "<",           "{\"name\":\"f\"}", "</tool"};
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        char text[200] = "";
        for (int i = 0; i < 8; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            strncat(text, words[(random >> 33) % 10], sizeof text - strlen(text) - 1);
        }
        char *whole = parts_of(text, sizeof text, all);
        for (size_t piece = 1; piece < 9; piece++) {
            char *cut = parts_of(text, piece, all);
            if (strcmp(cut, whole) != 0) print_error("'%s' in pieces of %zu\n", text, piece);
            assert_string_equal(cut, whole);
            pith_free(cut);
        }
        pith_free(whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_passes_unchanged),
        cmocka_unit_test(reasoning_is_told_apart),
        cmocka_unit_test(calls_are_told_with_their_arguments),
        cmocka_unit_test(what_is_no_call_stays_text),
        cmocka_unit_test(cuts_never_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
