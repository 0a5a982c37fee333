/* SPDX-License-Identifier: Apache-2.0
 * Promises of pith.h at pith_message: replies are taken apart the same however they arrive, calls in the form of the format become
 * calls with the arguments as written, and what is none stays content, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chat/chat.h"
#include "support/failing_memory.h"

static const pith_tool_format hermes = {.marker = "<tool_call>",
                                        .open = "<tool_call>\n",
                                        .close = "\n</tool_call>",
                                        .between = "\n",
                                        .arguments = "arguments",
                                        .thought_begin = "<think>",
                                        .thought_end = "</think>"};
static const pith_tool_format mistral = {.marker = "[TOOL_CALLS]",
                                         .begin = "[TOOL_CALLS][",
                                         .between = ", ",
                                         .end = "]",
                                         .arguments = "arguments"};
static const pith_tool_format llama3 = {.marker = "", .arguments = "parameters", .single = true};
static const pith_tool_format deepseek = {.marker = "<calls>",
                                          .begin = "<calls>",
                                          .open = "<call>function<sep>",
                                          .middle = "\n```json\n",
                                          .close = "\n```</call>",
                                          .between = "\n",
                                          .end = "</calls>"};

/* The whole of a reader as one text: content|reasoning|name(arguments)... */
static char *tell(const pith_reply_reader *reader) {
    pith_buffer out = {0};
    pith_span content = pith_reply_reader_content(reader);
    pith_span thought = pith_reply_reader_reasoning(reader);
    pith_tool_call call;
    pith_buffer_append(&out, content.data, content.size);
    pith_buffer_append_text(&out, "|");
    pith_buffer_append(&out, thought.data, thought.size);
    pith_buffer_append_text(&out, "|");
    for (size_t i = 0; pith_reply_reader_call(reader, i, &call); i++)
        pith_buffer_append_format(&out, "%s(%s)", call.name, call.arguments);
    assert_false(out.failed);
    return out.data;
}

/* What open_reader offers; NULL: nothing. */
static const char *offered;
static bool one_call;
/* What schemas say to values, and how often they were asked; NULL: no schema can be told of. */
static pith_call_check check;
static int n_asked;

/* Values are valid but for those that hold the schema's "title". */
static pith_status ask(void *user, json_t *parameters, pith_span arguments) {
    char text[200];
    const char *title = json_string_value(json_object_get(parameters, "title"));
    assert_ptr_equal(user, &n_asked);
    assert_true(arguments.size < sizeof text && arguments.data[0] == '{');
    snprintf(text, sizeof text, "%.*s", (int)arguments.size, arguments.data);
    n_asked++;
    if (title && strcmp(title, "unknown") == 0) return PITH_ERROR_UNSUPPORTED;
    return title && strstr(text, title) ? PITH_ERROR_FORMAT : PITH_OK;
}

static pith_reply_reader *open_reader(const pith_tool_format *format, bool in_thought) {
    pith_reply_reader *reader = NULL;
    assert_int_equal(pith_reply_reader_new(format, in_thought, &reader, NULL), PITH_OK);
    if (offered)
        assert_int_equal(
            pith_reply_reader_offer(reader, pith_span_of(offered), NULL, !one_call, check, NULL),
            PITH_OK);
    return reader;
}

static void push(pith_reply_reader *reader, const char *text, size_t size, bool at_end) {
    assert_int_equal(pith_reply_reader_push(reader, (pith_span){text, size}, at_end, NULL),
                     PITH_OK);
}

static void expect(const pith_tool_format *format, bool in_thought, const char *text,
                   const char *expected, size_t first, size_t step) {
    pith_reply_reader *reader = open_reader(format, in_thought);
    size_t size = strlen(text);
    push(reader, text, first, false);
    for (size_t at = first; at < size; at += step)
        push(reader, text + at, size - at < step ? size - at : step, false);
    push(reader, "", 0, true);
    char *told = tell(reader);
    if (strcmp(told, expected) != 0)
        fail_msg("%s\n cut at %zu, then by %zu:\n %s\n expected\n %s", text, first, step, told,
                 expected);
    pith_free(told);
    pith_reply_reader_free(reader);
}

/* Cut in every two parts, and in pieces of 1, 2, 3, 7. */
static void reads(const pith_tool_format *format, bool in_thought, const char *text,
                  const char *expected) {
    static const size_t steps[] = {1, 2, 3, 7};
    const size_t size = strlen(text);
    for (size_t i = 0; i <= size; i++) expect(format, in_thought, text, expected, i, size + 1);
    for (size_t i = 0; i < 4; i++) expect(format, in_thought, text, expected, 0, steps[i]);
}

#define CALL "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2.50]}}\n</tool_call>"
#define DONE "f({\"a\": [1, 2.50]})"

static void test_calls_are_taken_out_of_the_text(void **state) {
    (void)state;
    reads(&hermes, false, "", "||");
    reads(&hermes, false, "hello\n", "hello\n||");
    reads(&hermes, false, CALL, "||" DONE);
    reads(&hermes, false, "I look.\n\n" CALL "\n" CALL "\n", "I look.||" DONE DONE);
    reads(&hermes, false, CALL "\n and more ", "and more ||" DONE);
    reads(&hermes, false, "a <tool b </tool_call> c", "a <tool b </tool_call> c||");
    reads(&hermes, false,
          "<tool_call>{\"arguments\":{\"s\":\"}\\\"]{\"} , \"name\":\"g\\u0041\"}</tool_call>",
          "||gA({\"s\":\"}\\\"]{\"})");
    reads(&hermes, false, "<tool_call>{\"name\":\"now\"}</tool_call>", "||now({})");
}

static void test_what_is_no_call_stays_content(void **state) {
    (void)state;
    static const char *const none[] = {
        "<tool_call>",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": 3}\n</tool_call>",
        "<tool_call>\n{\"name\": 3, \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"f\" \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{]\n</tool_call>",
        "<tool_call> I mean it </tool_call>",
        "so <tool_call> <tool_call",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char expected[200];
        snprintf(expected, sizeof expected, "%s||", none[i]);
        reads(&hermes, false, none[i], expected);
    }
    reads(&hermes, false, "x <tool_call>" CALL, "x <tool_call>||" DONE);
    reads(&hermes, false, CALL "<tool_call>{", "<tool_call>{||" DONE);
}

static void test_thoughts(void **state) {
    (void)state;
    reads(&hermes, false, "<think>\nhm " CALL "\n</think>\n\nyes", "yes|hm " CALL "|");
    reads(&hermes, false, "\n<think></think>" CALL, "||" DONE);
    reads(&hermes, true, "hm</think> yes", "yes|hm|");
    reads(&hermes, true, "hm </thi", "|hm </thi|");
    reads(&hermes, false, "<thin", "<thin||");
    reads(&hermes, false, " <thi</think>", " <thi</think>||");
    reads(&hermes, false, "a <think>b</think>", "a <think>b</think>||");
    pith_tool_format thoughts = {.thought_begin = "<think>", .thought_end = "</think>"};
    reads(&thoughts, false, "<think>a</think>{\"b\": 1} <tool_call>", "{\"b\": 1} <tool_call>|a|");
}

static void test_a_lot_of_space_is_no_beginning(void **state) {
    (void)state;
    char text[200], expected[204];
    for (int n = 63; n <= 66; n++) {
        snprintf(text, sizeof text, "%*s<think>a</think>b", n, "");
        snprintf(expected, sizeof expected, n > 64 ? "%s||" : "b|a|", text);
        reads(&hermes, false, text, expected);
        snprintf(text, sizeof text, "%*s{\"name\": \"f\"}", n, "");
        snprintf(expected, sizeof expected, n > 64 ? "%s||" : "||f({})", text);
        reads(&llama3, false, text, expected);
    }
}

static void test_other_formats(void **state) {
    (void)state;
    reads(&mistral, false,
          "x [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": "
          "{\"a\": {}}}]",
          "x||f({})g({\"a\": {}})");
    reads(&mistral, false, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, oops",
          ", oops||f({})");
    reads(&mistral, false, "[TOOL_CALLS][]", "[TOOL_CALLS][]||");
    reads(&llama3, false, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "||f({\"a\": 1})");
    reads(&llama3, false, " {\"name\": 1}", " {\"name\": 1}||");
    reads(&llama3, false, "see {\"name\": \"f\", \"parameters\": {}}",
          "see {\"name\": \"f\", \"parameters\": {}}||");
    reads(&deepseek, false,
          "x<calls><call>function<sep>f\n```json\n{\"a\": 1}\n```</call>\n<call>function<sep>g\n"
          "```json\n{}\n```</call></calls>y",
          "xy||f({\"a\": 1})g({})");
    reads(&deepseek, false, "<calls><call>function<sep>f g\n```json\n{}\n```</call></calls>",
          "<calls><call>function<sep>f g\n```json\n{}\n```</call></calls>||");
}

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"read\", \"parameters\": {\"type\": "
    "\"object\", \"properties\": {\"path\": {\"type\": \"string\"}, \"n\": {}}, \"required\": "
    "[\"path\"]}}}, {\"type\": \"function\", \"function\": {\"name\": \"read_all\"}}]";
#define READ     "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}"
#define WAS_READ "read({\"path\": \"a\"})"

static void test_offered_tools_are_called_without_marks(void **state) {
    (void)state;
    reads(&hermes, false, READ, READ "||"); /* nothing was offered */
    reads(&hermes, false, "<tool_call>{" READ "}</tool_call>", "||" WAS_READ);
    offered = tools;
    static const char *const forms[] = {
        READ,
        "\n " READ " \n",
        "```json\n" READ "\n```",
        "```\n" READ "\n```\n",
        "```json\r\n" READ "\r\n```",
        "```json\n" READ,
        "<tools>\n" READ "\n</tools>",
        "<tools> " READ " </tool\n",
        "<function-call> " READ,
        "<function>\n" READ "\n</function>",
        "[" READ "]",
        "```json\n[\n  " READ "\n]\n```",
        "<tool_call>\n" READ "\n</tool_call>",
        "<tool_call>\n" READ,
        "<tool_call>" READ "\n</tools>",
        "{\n  \"name\" : \"read\",\n  \"parameters\": {\"path\": \"a\"}\n}",
        "{\"name\": \"read\", \"\\u0061rguments\": {\"path\": \"a\"}}",
        "{" READ "}",
        "```json\n{\n" READ " \n}\n```",
        "[{" READ "}]",
        "<tool_call>\n{" READ "}\n</tool_call>",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        reads(&hermes, false, forms[i], "||" WAS_READ);
    reads(&hermes, false, "I look.\n\n```json\n" READ "\n```\nThen I tell.",
          "I look.Then I tell.||" WAS_READ);
    reads(&hermes, false, READ "\n" READ "\n", "||" WAS_READ WAS_READ);
    reads(&hermes, false, "{{" READ "}}", "{{" READ "}}||"); /* three times is none */
    reads(&hermes, false, "{" READ, "{" READ "||");
    reads(&hermes, false, "[" READ ",\n" READ "] ", "||" WAS_READ WAS_READ);
    reads(&hermes, false, READ "\n<tool_call>" READ "</tool_call>", "||" WAS_READ WAS_READ);
    reads(&hermes, false, "```json\n" READ "\n{\"b\": 1}\n```\n" READ,
          "{\"b\": 1}\n```||" WAS_READ WAS_READ);
    reads(&hermes, false, "<think>\n" READ "\n</think>{\"name\": \"read_all\", \"arguments\": {}}",
          "|" READ "|read_all({})");
    reads(&llama3, false, READ, "||" WAS_READ);
    reads(&(pith_tool_format){0}, false, "x\n" READ, "x||" WAS_READ);
    one_call = true;
    reads(&hermes, false, READ "\n" READ, READ "||" WAS_READ);
    reads(&hermes, false, READ "\n" CALL, CALL "||" WAS_READ);
    one_call = false;
    offered = NULL;
}

static void test_what_stands_behind_a_call_begins_a_line(void **state) {
    (void)state;
    offered = tools;
    reads(&hermes, false, "x " CALL "\n" READ, "x||" DONE WAS_READ);
    reads(&hermes, false, "```\n" CALL "\n```\n" READ, "``````||" DONE WAS_READ);
    offered = NULL;
}

static void test_what_was_not_offered_or_does_not_fit_stays_content(void **state) {
    (void)state;
    offered = tools;
    static const char *const none[] = {
        "see " READ,
        READ " is a call",
        "```python\n" READ "\n```",
        "```json\n{\"a\": 1}\n" READ "\n```",
        "```json\n",
        "{\"name\": \"rea",
        "{\"name\": \"write\", \"arguments\": {}}",
        "{\"name\": \"read\", \"arguments\": {}}",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"a\", \"mode\": 1}}",
        "{\"name\": \"read\", \"arguments\": \"a\"}",
        "{\"name\": \"read_all\", \"arguments\": {\"path\": \"a\"}}",
        "{\"name\": \"read\", \"name\": \"read_all\", \"arguments\": {\"path\": \"a\"}}",
        "{\"name\": \"read\", \"description\": \"d\", \"arguments\": {\"path\": \"a\"}}",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}",
        "{\"name\": \"read\" \"arguments\": {\"path\": \"a\"}}",
        "{\"name\": \"read_\", \"arguments\": {\"path\": \"a\"}}",
        "[1, 2]\n<b>\n`x` ``\n\n  {",
        "[" READ "x",
        "<tools",
        "x <tool_call>" READ,
        "<tool_call>x " READ,
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char expected[200];
        snprintf(expected, sizeof expected, "%s||", none[i]);
        reads(&hermes, false, none[i], expected);
    }
    offered = NULL;
}

/* A reader of tools f with these members, strict or not, and calls it. */
static void reads_call(const char *members, bool strict, const char *arguments, bool is_call) {
    char tool[200], call[200], expected[sizeof call + 4];
    snprintf(tool, sizeof tool, "[{\"function\": {\"name\": \"f\", \"strict\": %s%s}}]",
             strict ? "true" : "false", members);
    snprintf(call, sizeof call, "{\"name\": \"f\", \"arguments\": %s}", arguments);
    if (is_call)
        snprintf(expected, sizeof expected, "||f(%s)", arguments);
    else
        snprintf(expected, sizeof expected, "%s||", call);
    offered = tool;
    reads(&hermes, false, call, expected);
    offered = NULL;
}

static void test_values_must_fit_the_schema(void **state) {
    (void)state;
#define SCHEMA(title) ", \"parameters\": {\"title\": \"" title "\", \"properties\": {\"a\": {}}}"
    for (int strict = 0; strict < 2; strict++) {
        check = (pith_call_check){&n_asked, ask};
        reads_call(SCHEMA("no"), strict, "{\"a\" : [1, 2.50] }", true);
        reads_call(SCHEMA("no"), strict, "{\"a\": \"no\"}", false);
        reads_call(SCHEMA("no"), strict, "{\"b\": 1}", false); /* by the keys alone */
        reads_call(SCHEMA("unknown"), strict, "{\"a\": 1}", !strict);
        reads_call(", \"parameters\": null", strict, "{ }", true);
        reads_call("", strict, "{\"a\": 1}", false);
        check = (pith_call_check){0};
        reads_call(SCHEMA("no"), strict, "{\"a\": \"no\"}", !strict);
        reads_call("", strict, "{}", true);
    }
    /* with marks a call is what the grammar made of it, and no schema is asked */
    check = (pith_call_check){&n_asked, ask};
    offered =
        "[{\"function\": {\"name\": \"f\", \"strict\": true, \"parameters\": {\"title\": \"a\"}}}]";
    n_asked = 0;
    reads(&hermes, false, CALL, "||" DONE);
    assert_int_equal(n_asked, 0);
    check = (pith_call_check){0};
    offered = NULL;
}

static void test_a_schema_is_asked_once_a_call(void **state) {
    (void)state;
    static const char text[] =
        "{\"name\": \"x\"}\n" READ "\n" READ "\n{\"name\": \"read\", \"arguments\": {}}\n";
    offered = tools;
    check = (pith_call_check){&n_asked, ask};
    pith_reply_reader *reader = open_reader(&hermes, false);
    n_asked = 0;
    for (size_t i = 0; i < sizeof text - 1; i++) push(reader, text + i, 1, false);
    push(reader, "", 0, true);
    assert_int_equal(pith_reply_reader_n_calls(reader), 2);
    assert_int_equal(n_asked, 2);
    pith_reply_reader_free(reader);
    check = (pith_call_check){0};
    offered = NULL;
}

static void test_no_byte_of_zero_comes_into_a_call(void **state) {
    (void)state;
    static const char marked[] =
        "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": 1\0}}</tool_call>";
    static const char bare[] = "{\"name\": \"read\", \"arguments\": {\"path\": 1\0}}";
    offered = tools;
    for (int i = 0; i < 2; i++) {
        const pith_span text = {i ? marked : bare, i ? sizeof marked - 1 : sizeof bare - 1};
        pith_reply_reader *reader = open_reader(&hermes, false);
        push(reader, text.data, text.size, true);
        assert_int_equal(pith_reply_reader_n_calls(reader), 0);
        assert_true(pith_span_equal(pith_reply_reader_content(reader), text));
        pith_reply_reader_free(reader);
    }
    offered = NULL;
}

static void test_a_list_of_tools_is_needed(void **state) {
    (void)state;
    static const char *const bad[] = {"", "{}", "[", "3"};
    pith_error error;
    pith_reply_reader *reader = open_reader(&hermes, false);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pith_span text = pith_span_of(bad[i]);
        assert_int_equal(pith_reply_reader_offer(reader, text, NULL, true, check, &error),
                         PITH_ERROR_FORMAT);
    }
    pith_reply_reader_free(reader);
}

static void test_long_replies_take_linear_time(void **state) {
    (void)state;
    enum { N = 200000 };
    pith_reply_reader *reader = open_reader(&hermes, false);
    for (int i = 0; i < N; i++) push(reader, i % 2 ? " " : "\n", 1, false);
    push(reader, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"", 45, false);
    for (int i = 0; i < N; i++) push(reader, "<", 1, false);
    push(reader, "\"}}", 3, false);
    for (int i = 0; i < N; i++) push(reader, " ", 1, false);
    push(reader, "</tool_call>", 12, true);
    assert_int_equal(pith_reply_reader_n_calls(reader), 1);
    assert_int_equal(pith_reply_reader_content(reader).size, N - 64);
    pith_reply_reader_free(reader);
}

static void test_long_calls_without_marks_take_linear_time(void **state) {
    (void)state;
    enum { N = 200000 };
    offered = tools;
    pith_reply_reader *reader = open_reader(&hermes, false);
    offered = NULL;
    for (int i = 0; i < N; i++) push(reader, i % 2 ? "{" : "\n", 1, false);
    static const char begin[] = "\n{\"name\": \"read\", \"arguments\": {\"path\": \"";
    push(reader, begin, sizeof begin - 1, false);
    for (int i = 0; i < N; i++) push(reader, "{", 1, false);
    push(reader, "\"}}\n", 4, false);
    for (int i = 0; i < N; i++) push(reader, " ", 1, false);
    push(reader, "x", 1, true);
    assert_int_equal(pith_reply_reader_n_calls(reader), 1);
    assert_int_equal(pith_reply_reader_content(reader).size, N + 1);
    pith_reply_reader_free(reader);
}

static void test_beginnings_of_calls_take_linear_time(void **state) {
    (void)state;
    static const char *const units[] = {"\n{", "\n{\"name\": \"read\",", "<tool_call>{"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        pith_buffer text = {0};
        while (text.size < 1000000) pith_buffer_append_text(&text, units[i]);
        offered = tools;
        pith_reply_reader *reader = open_reader(&hermes, false);
        offered = NULL;
        push(reader, text.data, text.size, true);
        assert_true(
            pith_span_equal(pith_reply_reader_content(reader), (pith_span){text.data, text.size}));
        pith_reply_reader_free(reader);
        pith_buffer_deinit(&text);
    }
}

static void test_depth_is_limited(void **state) {
    (void)state;
    pith_buffer text = {0};
    pith_buffer_append_text(&text, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ");
    for (int i = 0; i < 100000; i++) pith_buffer_append_text(&text, "[");
    for (int i = 0; i < 100000; i++) pith_buffer_append_text(&text, "]");
    pith_buffer_append_text(&text, "}}</tool_call>");
    pith_reply_reader *reader = open_reader(&hermes, false);
    push(reader, text.data, text.size, true);
    assert_int_equal(pith_reply_reader_n_calls(reader), 0);
    assert_int_equal(pith_reply_reader_content(reader).size, text.size);
    pith_reply_reader_free(reader);
    pith_buffer_deinit(&text);
}

static void test_no_failed_allocation_loses_text_unnoticed(void **state) {
    (void)state;
#if defined(_WIN32)
    skip(); /* mingw's own printf takes memory, and loses its text without */
#endif
    static const char text[] = "a " CALL " b <think>" CALL "c\n" READ;
    for (uint64_t i = 0, n = 1; i <= n; i++) {
        pith_reply_reader *reader = NULL;
        memory_watch_reset(i);
        pith_status status = pith_reply_reader_new(&hermes, false, &reader, NULL);
        if (status == PITH_OK)
            status = pith_reply_reader_offer(reader, pith_span_of(tools), NULL, true, check, NULL);
        for (size_t k = 0; k < sizeof text && status == PITH_OK; k += 5) {
            size_t size = sizeof text - 1 - k < 5 ? sizeof text - 1 - k : 5;
            status = pith_reply_reader_push(reader, (pith_span){text + k, size}, size < 5, NULL);
        }
        if (i == 0) n = memory_watch.n_requests;
        memory_watch_reset(0);
        if (i == 0) assert_int_equal(status, PITH_OK);
        if (status == PITH_OK) {
            char *told = tell(reader);
            assert_string_equal(told, "ab <think>c||" DONE DONE WAS_READ);
            pith_free(told);
        } else {
            assert_int_equal(status, PITH_ERROR_MEMORY);
        }
        pith_reply_reader_free(reader);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_are_taken_out_of_the_text),
        cmocka_unit_test(test_what_is_no_call_stays_content),
        cmocka_unit_test(test_thoughts),
        cmocka_unit_test(test_a_lot_of_space_is_no_beginning),
        cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_offered_tools_are_called_without_marks),
        cmocka_unit_test(test_what_stands_behind_a_call_begins_a_line),
        cmocka_unit_test(test_what_was_not_offered_or_does_not_fit_stays_content),
        cmocka_unit_test(test_no_byte_of_zero_comes_into_a_call),
        cmocka_unit_test(test_values_must_fit_the_schema),
        cmocka_unit_test(test_a_schema_is_asked_once_a_call),
        cmocka_unit_test(test_a_list_of_tools_is_needed),
        cmocka_unit_test(test_long_replies_take_linear_time),
        cmocka_unit_test(test_long_calls_without_marks_take_linear_time),
        cmocka_unit_test(test_beginnings_of_calls_take_linear_time),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_no_failed_allocation_loses_text_unnoticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
