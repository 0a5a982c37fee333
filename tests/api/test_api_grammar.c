/* SPDX-License-Identifier: Apache-2.0
 * Promises of pith.h, "Constrained output": each kind of text becomes a grammar or is refused with a sentence that says where;
 * misuse is an error, never a crash. Which texts a grammar then allows: tests/unit/sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void accepts(pith_grammar_kind kind, const char *text) {
    pith_grammar *grammar = NULL;
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_grammar_new(NULL, kind, text, strlen(text), &grammar, &error);
    if (status != PITH_OK) print_message("%s: %s\n", text, error.text);
    assert_int_equal(status, PITH_OK);
    assert_non_null(grammar);
    pith_grammar_free(grammar);
}

static void refuses(pith_grammar_kind kind, const char *text, pith_status expected,
                    const char *part) {
    pith_grammar *grammar = (pith_grammar *)(uintptr_t)1;
    pith_error error = {PITH_OK, ""};
    assert_int_equal(pith_grammar_new(NULL, kind, text, strlen(text), &grammar, &error), expected);
    assert_null(grammar);
    assert_int_equal(error.status, expected);
    if (strstr(error.text, part) == NULL) print_message("%s: %s\n", text, error.text);
    assert_non_null(strstr(error.text, part));
    assert_int_equal(pith_grammar_new(NULL, kind, text, strlen(text), &grammar, NULL), expected);
}

static void test_each_kind_becomes_a_grammar(void **state) {
    (void)state;
    accepts(PITH_GRAMMAR_GBNF, "root ::= \"yes\" | \"no\"");
    accepts(PITH_GRAMMAR_JSON_SCHEMA,
            "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}}}");
    accepts(PITH_GRAMMAR_REGEX, "[a-z]+@[a-z]+\\.(org|net)");
    accepts(PITH_GRAMMAR_CHOICES, "yes\nno");
    accepts(PITH_GRAMMAR_CHOICES, "yes\nno\n");
    accepts(PITH_GRAMMAR_CHOICES, "");
}

static void test_faults_are_told_with_their_place(void **state) {
    (void)state;
    refuses(PITH_GRAMMAR_GBNF, "root ::= \"yes\n", PITH_ERROR_FORMAT, "line 1, column 10");
    refuses(PITH_GRAMMAR_GBNF, "root ::= <think>", PITH_ERROR_NOT_FOUND, "no model is given");
    refuses(PITH_GRAMMAR_JSON_SCHEMA, "{\"type\": ", PITH_ERROR_FORMAT, "");
    refuses(PITH_GRAMMAR_REGEX, "a(b", PITH_ERROR_FORMAT, "");
}

static void test_misuse(void **state) {
    (void)state;
    pith_grammar *grammar = NULL;
    pith_error error = {PITH_OK, ""};
    assert_int_equal(pith_grammar_new(NULL, PITH_GRAMMAR_GBNF, NULL, 3, &grammar, &error),
                     PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "text"));
    assert_int_equal(pith_grammar_new(NULL, PITH_GRAMMAR_GBNF, "root ::= .", 10, NULL, &error),
                     PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "out"));
    assert_int_equal(pith_grammar_new(NULL, (pith_grammar_kind)4, "x", 1, &grammar, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_grammar_new(NULL, (pith_grammar_kind)-1, "x", 1, &grammar, NULL),
                     PITH_ERROR_ARGUMENT);
    assert_null(grammar);
    pith_grammar_free(NULL);
}

static pith_model *open_tiny(void) {
    const char *root = getenv("PITH_SOURCE_DIR");
    char path[1024];
    pith_model *model = NULL;
    snprintf(path, sizeof path, "%s/tests/data/arch/llama-moe.gguf", root ? root : ".");
    assert_int_equal(pith_model_open(path, NULL, &model, NULL), PITH_OK);
    return model;
}

static void test_misuse_of_tools(void **state) {
    (void)state;
    static const char tools[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]";
    pith_model *model = open_tiny();
    pith_tool_format format;
    pith_grammar *grammar = NULL;
    pith_message *message = NULL;
    pith_error error = {PITH_OK, ""};
    size_t n = 0;
    while (pith_tool_format_at(n, &format)) n++;
    assert_true(n > 0 && !pith_tool_format_at(SIZE_MAX, &format) && !pith_tool_format_at(0, NULL));
    assert_int_equal(pith_model_tool_format(model, &format, &error), PITH_ERROR_NOT_FOUND);
    assert_int_equal(pith_model_tool_format(NULL, &format, NULL), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_model_tool_format(model, NULL, NULL), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_grammar_new_tools(model, tools, strlen(tools), NULL, &grammar, &error),
                     PITH_ERROR_NOT_FOUND);
    assert_true(pith_tool_format_at(0, &format));
    pith_tool_options options = {.size = sizeof options, .format = &format};
    assert_int_equal(
        pith_grammar_new_tools(model, tools, strlen(tools), &options, &grammar, &error), PITH_OK);
    pith_grammar_free(grammar);
    assert_int_equal(pith_grammar_new_tools(NULL, tools, 1, &options, &grammar, &error),
                     PITH_ERROR_ARGUMENT);
    assert_null(grammar);
    assert_int_equal(pith_grammar_new_tools(model, NULL, 1, &options, &grammar, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_grammar_new_tools(model, tools, (1 << 20) + 1, &options, &grammar, NULL),
                     PITH_ERROR_LIMIT);
    options.content_schema = "{\"type\": \"array\"}";
    options.content_schema_size = strlen(options.content_schema);
    assert_int_equal(
        pith_grammar_new_tools(model, tools, strlen(tools), &options, &grammar, &error), PITH_OK);
    pith_grammar_free(grammar);
    options.content_schema = "[";
    options.content_schema_size = 1;
    assert_int_equal(
        pith_grammar_new_tools(model, tools, strlen(tools), &options, &grammar, &error),
        PITH_ERROR_FORMAT);
    options.content_schema_size = (1 << 20) + 1;
    assert_int_equal(
        pith_grammar_new_tools(model, tools, strlen(tools), &options, &grammar, &error),
        PITH_ERROR_LIMIT);
    options.content_schema = NULL;
    options.content_schema_size = 0;
    options.choice = (pith_tool_choice)3;
    assert_int_equal(pith_message_new(model, &options, &message, &error), PITH_ERROR_ARGUMENT);
    options.choice = PITH_TOOLS_AUTO;
    format.size = 0;
    assert_int_equal(pith_message_new(model, &options, &message, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "format.size"));
    assert_null(message);
    assert_int_equal(pith_message_push(NULL, 0, "", 0, NULL, &error), PITH_ERROR_ARGUMENT);
    assert_string_equal(pith_message_content(NULL, NULL), "");
    pith_message_free(NULL);
    pith_model_close(model);
}

static void test_messages_are_the_fold_of_their_parts(void **state) {
    (void)state;
    static const char text[] = "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
                               "1}}\n</tool_call> done";
    pith_model *model = open_tiny();
    pith_tool_format format = {.size = sizeof format};
    char mark[] = "<tool_call>"; /* need not outlive the call */
    format.marker = format.open = mark;
    format.close = "</tool_call>";
    format.arguments = "arguments";
    pith_tool_options options = {.size = sizeof options, .format = &format};
    pith_message *message = NULL;
    pith_message_part part;
    pith_tool_call call;
    char all[100] = "";
    assert_int_equal(pith_message_new(model, &options, &message, NULL), PITH_OK);
    memset(mark, 'x', sizeof mark - 1);
    for (const char *at = text; *at; at++) {
        assert_int_equal(pith_message_push(message, -1, at, 1, &part, NULL), PITH_OK);
        strncat(all, part.content, part.content_size);
    }
    assert_int_equal(pith_message_finish(message, &part, NULL), PITH_OK);
    strncat(all, part.content, part.content_size);
    assert_string_equal(all, "I look.done");
    assert_string_equal(pith_message_content(message, NULL), all);
    assert_int_equal(part.n_calls, 1);
    assert_true(pith_message_call_at(message, 0, &call));
    assert_string_equal(call.name, "f");
    assert_string_equal(call.arguments, "{\"a\": 1}");
    assert_false(pith_message_call_at(message, 1, &call));
    const int32_t end = pith_special_token(model, PITH_SPECIAL_EOS);
    const char *piece = pith_token_piece(model, end);
    if (piece != NULL && pith_token_is_control(model, end)) {
        assert_int_equal(pith_message_push(message, end, piece, strlen(piece), &part, NULL),
                         PITH_OK);
        assert_int_equal(part.content_size, 0);
    }
    pith_message_free(message);
    pith_model_close(model);
}

static void test_messages_take_calls_without_marks_of_tools_that_are_given(void **state) {
    (void)state;
    static const char text[] = "```json\n{\"name\": \"f\", \"arguments\": {}}\n```";
    static const char list[] =
        "[{\"function\": {\"name\": \"f\"}}, {\"function\": {\"name\": \"g\"}}]";
    pith_model *model = open_tiny();
    pith_tool_format format = {.size = sizeof format, .marker = "<c>", .arguments = "arguments"};
    for (int i = 0; i < 7; i++) {
        pith_tool_options options = {.size = sizeof options, .format = &format};
        pith_message *message = NULL;
        pith_message_part part;
        pith_error error = {0};
        options.tools_json = i == 1 ? NULL : list;
        options.tools_json_size = i == 4 ? 3 : sizeof list - 1;
        if (i == 2) options.choice = PITH_TOOLS_NONE;
        if (i == 3) options.content_schema = "{}";
        if (i == 5) options.only = "g";
        if (i == 6) options.only = "f";
        pith_status status = pith_message_new(model, &options, &message, &error);
        assert_int_equal(status, i == 4 ? PITH_ERROR_FORMAT : PITH_OK);
        if (status != PITH_OK) {
            assert_null(message);
            continue;
        }
        assert_int_equal(pith_message_push(message, -1, text, sizeof text - 1, NULL, NULL),
                         PITH_OK);
        assert_int_equal(pith_message_finish(message, &part, NULL), PITH_OK);
        bool is_call = i == 0 || i == 6;
        assert_int_equal(part.n_calls, is_call);
        assert_string_equal(pith_message_content(message, NULL), is_call ? "" : text);
        pith_message_free(message);
    }
    pith_model_close(model);
}

/* What a message makes of a bare call of f with the arguments; f's schema is a part of the list. */
static void check_call(const pith_model *model, const char *schema, bool strict,
                       const char *arguments, bool is_call) {
    pith_tool_format format = {.size = sizeof format, .marker = "<c>", .arguments = "arguments"};
    pith_tool_options options = {.size = sizeof options, .format = &format};
    char list[512], text[256];
    pith_message *message = NULL;
    pith_message_part part;
    snprintf(list, sizeof list,
             "[{\"function\": {\"name\": \"f\", \"strict\": %s, \"parameters\": %s}}]",
             strict ? "true" : "false", schema);
    snprintf(text, sizeof text, "{\"name\": \"f\", \"arguments\": %s}\n", arguments);
    options.tools_json = list;
    options.tools_json_size = strlen(list);
    options.parallel = true;
    assert_int_equal(pith_message_new(model, &options, &message, NULL), PITH_OK);
    memset(list, 0, sizeof list); /* it is not borrowed */
    for (int i = 0; i < 2; i++)
        assert_int_equal(pith_message_push(message, -1, text, strlen(text), NULL, NULL), PITH_OK);
    assert_int_equal(pith_message_finish(message, &part, NULL), PITH_OK);
    if (part.n_calls != (is_call ? 2 : 0))
        fail_msg("%s, %s: %zu calls", schema, arguments, part.n_calls);
    pith_message_free(message);
}

static void test_calls_without_marks_are_valid_by_their_schema(void **state) {
    (void)state;
    pith_model *model = open_tiny();
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", \"pattern\": "
        "\"^[A-Z]\"}, "
        "\"days\": {\"type\": \"integer\", \"maximum\": 7}}, \"required\": [\"city\"], "
        "\"additionalProperties\": false}";
    static const char unknown[] = "{\"properties\": {\"a\": {\"type\": \"string\", \"x-y\": 1}}}";
    for (int strict = 0; strict < 2; strict++) {
        check_call(model, schema, strict, "{\"days\": 3, \"city\": \"Rome\"}", true);
        check_call(model, schema, strict, "{\"city\":\"Rome\"}", true);
        check_call(model, schema, strict, "{\"days\": 3}", false);
        check_call(model, schema, strict, "{\"days\": \"3\", \"city\": \"Rome\"}", false);
        check_call(model, schema, strict, "{\"days\": 8, \"city\": \"Rome\"}", false);
        check_call(model, schema, strict, "{\"city\": \"rome\"}", false);
        check_call(model, schema, strict, "{\"city\": \"Rome\", \"city\": \"Rome\"}", false);
        check_call(model, "{}", strict, "{\"x\": [null]}", true);
        check_call(model, unknown, strict, "{\"a\": 1}", !strict); /* it cannot be checked */
        check_call(model, unknown, strict, "{\"b\": 1}", false);
        check_call(model, "null", strict, "{}", true);
        check_call(model, "null", strict, "{\"b\": 1}", false);
        check_call(model, "3", strict, "{}", !strict);
    }
    pith_model_close(model);
}

static void test_size_limit(void **state) {
    (void)state;
    const size_t most = 1 << 20; /* pith.h says 1 MiB */
    char *text = malloc(most + 1);
    pith_grammar *grammar = NULL;
    pith_error error = {PITH_OK, ""};
    assert_non_null(text);
    memset(text, 'a', most + 1);
    for (size_t i = 40; i < most; i += 41) text[i] = '\n';
    assert_int_equal(pith_grammar_new(NULL, PITH_GRAMMAR_CHOICES, text, most, &grammar, &error),
                     PITH_OK);
    pith_grammar_free(grammar);
    assert_int_equal(pith_grammar_new(NULL, PITH_GRAMMAR_CHOICES, text, most + 1, &grammar, &error),
                     PITH_ERROR_LIMIT);
    free(text);
}

static void test_tokens_of_a_model(void **state) {
    (void)state;
    const char *root = getenv("PITH_SOURCE_DIR");
    char path[1024], text[256];
    pith_model *model = NULL;
    pith_grammar *grammar = NULL;
    pith_error error = {PITH_OK, ""};
    snprintf(path, sizeof path, "%s/tests/data/arch/llama-moe.gguf", root ? root : ".");
    assert_int_equal(pith_model_open(path, NULL, &model, &error), PITH_OK);
    int n_named = 0;
    for (int32_t id = 0; id < pith_model_describe(model).n_vocab; id++) {
        const char *piece = pith_token_piece(model, id);
        size_t size = piece != NULL ? strlen(piece) : 0;
        if (size < 3 || size > 100 || piece[0] != '<' || piece[1] == '[' ||
            strchr(piece, '>') != piece + size - 1)
            continue;
        snprintf(text, sizeof text, "root ::= %s", piece);
        assert_int_equal(
            pith_grammar_new(model, PITH_GRAMMAR_GBNF, text, strlen(text), &grammar, &error),
            PITH_OK);
        pith_grammar_free(grammar);
        n_named++;
    }
    print_message("%d tokens named\n", n_named);
    assert_int_equal(pith_grammar_new(model, PITH_GRAMMAR_GBNF, "root ::= <no such token>", 24,
                                      &grammar, &error),
                     PITH_ERROR_FORMAT);
    pith_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_becomes_a_grammar),
        cmocka_unit_test(test_faults_are_told_with_their_place),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_misuse_of_tools),
        cmocka_unit_test(test_messages_are_the_fold_of_their_parts),
        cmocka_unit_test(test_messages_take_calls_without_marks_of_tools_that_are_given),
        cmocka_unit_test(test_calls_without_marks_are_valid_by_their_schema),
        cmocka_unit_test(test_size_limit),
        cmocka_unit_test(test_tokens_of_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
