/* SPDX-License-Identifier: Apache-2.0
 * Running golden cases of the template engine: what test_engine_cases and test_given_templates
 * share. A case is {"id", "context", "expected" | "error" + "error_kind", optional leniencies}; see
 * tests/data/chat. */
#ifndef PITH_TESTS_TEMPLATE_CASES_H
#define PITH_TESTS_TEMPLATE_CASES_H

#include "base/memory.h"
#include "chat/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2026-01-15 10:30:00 UTC, the frozen clock of the cases. */
#define PITH_CASE_NOW 1768473000

/* The whole file, NUL-terminated; NULL when it cannot be read. Freed with free. */
static char *read_whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *data = NULL;
    size_t used = 0, capacity = 0;
    for (;;) {
        if (used + 1 >= capacity) data = realloc(data, capacity = capacity * 2 + 65536);
        size_t n = fread(data + used, 1, capacity - used - 1, file);
        used += n;
        if (n == 0) break;
    }
    fclose(file);
    data[used] = 0;
    *size = used;
    return data;
}

typedef struct case_result {
    bool passed;
    char why[400];
} case_result;

static void explain_difference(case_result *result, pith_span got, pith_span want) {
    size_t at = 0;
    while (at < got.size && at < want.size && got.data[at] == want.data[at]) at++;
    size_t from = at < 20 ? 0 : at - 20;
    snprintf(result->why, sizeof result->why,
             "differs at byte %zu: got %zu bytes ...%.*s, expected %zu ...%.*s", at, got.size,
             (int)(got.size - from < 80 ? got.size - from : 80), got.data + from, want.size,
             (int)(want.size - from < 80 ? want.size - from : 80), want.data + from);
}

static bool text_is(const pith_rendered *rendered, const json_t *expected) {
    pith_span got = {rendered->text.data, rendered->text.size};
    return json_is_string(expected) &&
           pith_span_equal(got,
                           (pith_span){json_string_value(expected), json_string_length(expected)});
}

/* Spans must cover the text without gaps. */
static bool spans_are_sound(const pith_rendered *rendered) {
    size_t at = 0;
    for (size_t i = 0; i < rendered->n_spans; i++) {
        if (rendered->spans[i].offset != at || rendered->spans[i].size == 0) return false;
        if (i > 0 && rendered->spans[i].is_user == rendered->spans[i - 1].is_user) return false;
        at += rendered->spans[i].size;
    }
    return at == rendered->text.size;
}

static case_result judge(const json_t *c, pith_status status, const pith_error *error,
                         const pith_rendered *rendered) {
    case_result result = {.passed = false};
    const json_t *expected = json_object_get(c, "expected"), *message = json_object_get(c, "error");
    const char *kind = json_string_value(json_object_get(c, "error_kind"));
    if (status == PITH_OK) {
        pith_span got = {rendered->text.data, rendered->text.size};
        result.passed = text_is(rendered, expected) ||
                        text_is(rendered, json_object_get(c, "expected_if_generator_is_list"));
        if (result.passed && !spans_are_sound(rendered)) {
            result.passed = false;
            snprintf(result.why, sizeof result.why, "the spans do not cover the text");
        } else if (!result.passed && expected == NULL) {
            snprintf(result.why, sizeof result.why, "should fail (%s: %s), gave %.*s", kind,
                     json_string_value(message), (int)(got.size < 100 ? got.size : 100), got.data);
        } else if (!result.passed) {
            pith_span want = {json_string_value(expected), json_string_length(expected)};
            explain_difference(&result, got, want);
        }
        return result;
    }
    pith_error raised = {0}; /* the message as an error keeps it: a long one lacks its middle */
    if (message) pith_fail(&raised, status, "%s", json_string_value(message));
    result.passed = message != NULL &&
                    (strcmp(kind, "raise_exception") != 0 || strcmp(error->text, raised.text) == 0);
    if (!result.passed) snprintf(result.why, sizeof result.why, "failed with: %s", error->text);
    return result;
}

/* Renders the case with `template_text` and compares. */
static case_result run_case(const json_t *c, pith_span template_text) {
    static const char *const trusted[] = {"bos_token", "eos_token", NULL};
    pith_error error = {0};
    pith_template *tpl = NULL;
    pith_rendered rendered = {0};
    pith_status status = pith_template_new(template_text, &tpl, &error);
    if (status == PITH_OK) {
        status = pith_template_render(tpl, json_object_get(c, "context"), trusted, PITH_CASE_NOW,
                                      &rendered, &error);
    }
    case_result result = judge(c, status, &error, &rendered);
    pith_rendered_deinit(&rendered);
    pith_template_free(tpl);
    return result;
}

#endif
