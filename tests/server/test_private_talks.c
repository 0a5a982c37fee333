/* SPDX-License-Identifier: Apache-2.0
 * Promises of private_talks.h: talks that were marked are known again, however they are wrapped;
 * others are not; the last thousands are remembered. */
#include "server/private_talks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text) {
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static void remember(pith_talks *talks, const char *request) {
    json_t *json = parse(request);
    pith_talks_remember(talks, json);
    json_decref(json);
}

static bool knows(pith_talks *talks, const char *request) {
    json_t *json = parse(request);
    bool known = pith_talks_knows(talks, json);
    json_decref(json);
    return known;
}

#define SYSTEM "{\"role\":\"system\",\"content\":\"Be brief, be kind, be good.\"},"
#define HI     "{\"role\":\"user\",\"content\":\"hi\"},"

static void marked_talks_are_known_again(void **state) {
    (void)state;
    pith_talks *t = pith_talks_new();
    assert_false(knows(t, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"));
    remember(t, "{\"messages\":[" SYSTEM HI "{\"role\":\"assistant\",\"content\":\"hello\"},"
                "{\"role\":\"user\",\"content\":\"I have an illness, which?\"}]}");
    static const char *const known[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"I have an illness, which?\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\" i have an  ILLNESS, which?\\n\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"I have an "
        "\"},"
        "{\"type\":\"text\",\"text\":\"illness, which?\",\"cache_control\":{}}]}]}",
        "{\"messages\":[" HI "{\"role\":\"user\",\"content\":\"I have an illness, which?\"},"
        "{\"role\":\"user\",\"content\":\"well?\"}]}"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) assert_true(knows(t, known[i]));
    static const char *const others[] = {
        "{\"messages\":[" SYSTEM HI "{\"role\":\"user\",\"content\":\"a joke, please\"}]}",
        "{\"messages\":[]}", "{\"messages\":[1,{}]}", "{}", "{\"prompt\":\"\"}"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) assert_false(knows(t, others[i]));
    pith_talks_free(t);
}

static void calls_of_tools_are_part_of_a_talk(void **state) {
    static const char call[] =
        "{\"messages\":[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"%s\","
        "\"function\":{\"name\":\"find\",\"arguments\":\"{\\\"who\\\": \\\"Ann "
        "Example\\\"}\"}}]}]}";
    char first[400], second[400];
    (void)state;
    pith_talks *t = pith_talks_new();
    snprintf(first, sizeof first, call, "call_1");
    snprintf(second, sizeof second, call, "another");
    remember(t, first);
    assert_true(knows(t, second));
    pith_talks_free(t);
}

static void a_prompt_that_goes_on_is_known(void **state) {
    (void)state;
    pith_talks *t = pith_talks_new();
    remember(
        t,
        "{\"prompt\":[\"User: I have an illness.\\nBot:\",\"the second prompt of the request\"]}");
    assert_true(knows(t, "{\"prompt\":\"User: I have an illness.\\nBot: Which?\\nUser: guess\"}"));
    assert_true(knows(t, "{\"prompt\":[\"other\",\"The second prompt of the request goes on\"]}"));
    assert_false(knows(t, "{\"prompt\":\"User: I have an idea.\\nBot:\"}"));
    assert_false(knows(t, "{\"prompt\":\"User: I have an illness.\"}"));
    assert_false(knows(t, "{\"prompt\":[1,2,3]}"));
    pith_talks_free(t);
}

static void the_last_thousands_are_remembered(void **state) {
    (void)state;
    pith_talks *t = pith_talks_new();
    char text[100];
    for (int i = 0; i < 5 * PITH_TALKS_REMEMBERED; i++) {
        snprintf(text, sizeof text, "{\"prompt\":\"a prompt of many letters %d.\"}", i);
        remember(t, text);
    }
    for (int i = 0; i < 5 * PITH_TALKS_REMEMBERED; i++) {
        bool is_recent = i >= 4 * PITH_TALKS_REMEMBERED;
        snprintf(text, sizeof text, "{\"prompt\":\"a prompt of many letters %d.\"}", i);
        if (is_recent) assert_true(knows(t, text));
        if (i < 3 * PITH_TALKS_REMEMBERED) assert_false(knows(t, text));
    }
    pith_talks_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marked_talks_are_known_again),
        cmocka_unit_test(calls_of_tools_are_part_of_a_talk),
        cmocka_unit_test(a_prompt_that_goes_on_is_known),
        cmocka_unit_test(the_last_thousands_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
