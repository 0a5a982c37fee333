/* SPDX-License-Identifier: Apache-2.0
 * Promises of the readers of requests and of fold.c where memory is short: whichever allocation
 * fails, a prompt is read whole or refused, and a folded answer is whole or says that it failed. */
#include "base/memory.h"
#include "server/anthropic.h"
#include "server/chat_context.h"
#include "server/ollama.h"
#include "server/openai.h"
#include "server/responses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long left = -1; /* allocations of JSON that succeed; negative: all */

static void *take(size_t size) {
    if (left == 0) return NULL;
    if (left > 0) left--;
    return malloc(size);
}

/* The context that a body's messages become; NULL: refused. */
typedef json_t *(*reader)(pith_fields *fields, pith_answer_request *request);

static json_t *read_openai(pith_fields *f, pith_answer_request *request) {
    return pith_openai_read_messages(f, &request->job);
}

static json_t *read_anthropic(pith_fields *f, pith_answer_request *request) {
    pith_anthropic_read_messages(f, request);
    return request->context;
}

static json_t *read_responses(pith_fields *f, pith_answer_request *request) {
    json_t *messages = pith_responses_read_input(f, "be short");
    json_t *tools = pith_responses_read_tools(f, &request->job);
    json_t *context = pith_chat_context(f, messages, tools, NULL);
    json_decref(tools);
    return context;
}

static json_t *read_ollama(pith_fields *f, pith_answer_request *request) {
    json_t *messages = pith_ollama_convert_messages(f, json_object_get(f->object, "messages"));
    (void)request;
    return messages ? pith_chat_context(f, messages, NULL, NULL) : NULL;
}

/* true: nothing failed, for fewer allocations are made than `limit`. */
static bool try_with(reader read, json_t *body, const char *whole, long limit) {
    pith_fields f;
    pith_answer_request *request = pith_alloc_zero(1, sizeof *request);
    assert_non_null(request);
    pith_fields_init(&f, body, "");
    left = limit;
    json_t *context = read(&f, request);
    bool is_done = left != 0;
    left = -1;
    if (f.failed) {
        assert_true(f.is_short);
    } else {
        char *text = json_dumps(context, JSON_SORT_KEYS);
        assert_string_equal(text, whole);
        free(text);
    }
    json_decref(context);
    pith_free(request);
    return is_done;
}

static void holds(reader read, const char *text) {
    pith_fields f;
    json_t *body = json_loads(text, 0, NULL);
    pith_answer_request *request = pith_alloc_zero(1, sizeof *request);
    assert_non_null(body);
    assert_non_null(request);
    pith_fields_init(&f, body, "");
    json_t *context = read(&f, request);
    assert_false(f.failed);
    char *whole = json_dumps(context, JSON_SORT_KEYS);
    assert_non_null(whole);
    long limit = 0;
    while (!try_with(read, body, whole, limit)) limit++;
    assert_true(limit > 10);
    free(whole);
    json_decref(context);
    json_decref(body);
    pith_free(request);
}

static void a_prompt_is_whole_or_refused(void **state) {
    (void)state;
    holds(read_openai,
          "{\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]},"
          "{\"role\":\"user\",\"content\":\"b\",\"name\":\"n\"},{\"role\":\"assistant\","
          "\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
          "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"c\"}],\"reasoning_effort\":"
          "\"low\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}");
    holds(
        read_anthropic,
        "{\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":"
        "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":"
        "\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":["
        "{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":\"c\"},{\"type\":\"text\","
        "\"text\":\"d\"}]}],\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{}"
        "}],\"thinking\":{\"type\":\"enabled\"}}");
    holds(read_responses,
          "{\"input\":[{\"role\":\"user\",\"content\":\"a\"},{\"type\":\"reasoning\",\"content\":"
          "[{\"type\":\"reasoning_text\",\"text\":\"t\"}]},{\"type\":\"function_call\",\"call_id\":"
          "\"1\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\","
          "\"call_id\":\"1\",\"output\":\"c\"}],\"tools\":[{\"type\":\"function\",\"name\":\"f\","
          "\"description\":\"d\",\"parameters\":{},\"strict\":true}]}");
    holds(
        read_ollama,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
        "\"content\":\"\",\"thinking\":\"t\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
        "\"arguments\":{\"a\":1}}}]},{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"c\"}]}");
}

/* ---- The fold ---- */

static void check_parts(const pith_fold_choice *c) {
    for (size_t i = 0; i < c->n_parts; i++) {
        const pith_fold_part *part = &c->parts[i];
        if (part->kind == PITH_JOB_TEXT) assert_true(part->from + part->size <= c->text.size);
        if (part->kind == PITH_JOB_CALL) assert_true(part->from < json_array_size(c->calls));
    }
}

static void a_fold_without_memory_says_so_and_stays_inside_its_texts(void **state) {
    (void)state;
    for (long limit = 0; limit < 40; limit++) {
        pith_fold *fold = pith_alloc_zero(1, sizeof *fold);
        assert_non_null(fold);
        left = limit;
        const pith_job_event call = {.kind = PITH_JOB_CALL, .text = {"{}", 2}, .name = "f"};
        for (int i = 0; i < 3; i++) pith_fold_add(fold, &call);
        bool ran_out = left == 0;
        left = -1;
        pith_fold_choice *c = &fold->choices[0];
        assert_true(ran_out || !fold->failed);
        assert_true(fold->failed || (c->n_parts == 3 && json_array_size(c->calls) == 3));
        check_parts(c);
        pith_fold_deinit(fold);
        pith_free(fold);
    }
    pith_fold *fold = pith_alloc_zero(1, sizeof *fold);
    assert_non_null(fold);
    const pith_job_event text = {.kind = PITH_JOB_TEXT, .text = {"abc", 3}};
    pith_fold_add(fold, &text);
    fold->choices[0].text.failed = true; /* as after a text that memory did not hold */
    pith_fold_add(fold, &text);
    assert_true(fold->failed);
    check_parts(&fold->choices[0]);
    pith_fold_deinit(fold);
    pith_free(fold);
}

static void a_number_beside_int64_is_refused_and_nulls_are_absent(void **state) {
    (void)state;
    pith_fields f;
    int64_t n = 7;
    json_t *body = json_loads("{\"a\": 9223372036854775808.0, \"b\": 9e18, \"c\": null}", 0, NULL);
    pith_fields_init(&f, body, "");
    assert_true(pith_fields_int(&f, "b", INT64_MIN, INT64_MAX, &n) && n == 9000000000000000000);
    assert_false(pith_fields_int(&f, "a", INT64_MIN, INT64_MAX, &n));
    assert_string_equal(f.param, "a");
    pith_fields_init(&f, body, "");
    pith_fields_any(&f, "a");
    pith_fields_any(&f, "b");
    assert_true(pith_fields_close(&f));
    json_decref(body);
}

static void arguments_nested_too_deep_stay_text(void **state) {
    (void)state;
    char text[2 * 2 * 300 + 8] = "{\"a\":";
    for (int i = 0; i < 300; i++) strcat(text, "[");
    for (int i = 0; i < 300; i++) strcat(text, "]");
    strcat(text, "}");
    json_t *deep = pith_chat_arguments(text), *flat = pith_chat_arguments("{\"a\":[[1]]}");
    assert_true(json_is_string(deep) && json_is_object(flat));
    json_decref(deep);
    json_decref(flat);
}

int main(void) {
    json_set_alloc_funcs(take, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_is_whole_or_refused),
        cmocka_unit_test(a_fold_without_memory_says_so_and_stays_inside_its_texts),
        cmocka_unit_test(a_number_beside_int64_is_refused_and_nulls_are_absent),
        cmocka_unit_test(arguments_nested_too_deep_stay_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
