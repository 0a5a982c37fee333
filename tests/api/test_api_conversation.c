/* SPDX-License-Identifier: Apache-2.0
 * Promise: pith_conversation_fit leaves messages alone that fit, and shortens others until they and
 * the reply's room do: system messages, the last exchange and whole exchanges around stay as they
 * are, calls of tools with their results; what gave way is a question and its answer. It says what
 * it did, can be stopped, and where nothing helps it fails with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_CTX = 512, ROOM = 20 };

static const char plain[] =
    "{% for t in tools %}<tool>{{ t.name }}\n{% endfor %}{% for m in messages %}<{{ m.role }}>"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}"
    "{% endfor %}{% endif %}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

/* As some templates have it. */
static const char strict[] =
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must take turns') }}{% endif %}<{{ m.role }}>{{ m.content }}\n"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

typedef struct fixture {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    json_t *context;
} fixture;

static int open_fixture(void **state) {
    char path[1024];
    const char *source = getenv("PITH_SOURCE_DIR");
    fixture *f = calloc(1, sizeof *f);
    pith_error error = {0};
    pith_engine_options options = {.size = sizeof options, .n_ctx = N_CTX, .n_threads = 1};
    assert_non_null(f);
    snprintf(path, sizeof path, "%s/tests/data/arch/gemma3.gguf", source ? source : ".");
    assert_int_equal(pith_model_open(path, NULL, &f->model, &error), PITH_OK);
    assert_int_equal(pith_engine_new(f->model, &options, &f->engine, &error), PITH_OK);
    assert_int_equal(pith_session_new(f->engine, &f->session, &error), PITH_OK);
    f->context = json_pack("{s:[], s:b}", "messages", "add_generation_prompt", 1);
    *state = f;
    return 0;
}

static int close_fixture(void **state) {
    fixture *f = *state;
    json_decref(f->context);
    pith_session_free(f->session);
    pith_engine_free(f->engine);
    pith_model_close(f->model);
    free(f);
    return 0;
}

static json_t *messages_of(const fixture *f) {
    return json_object_get(f->context, "messages");
}

static void say(const fixture *f, const char *role, const char *text) {
    json_t *message = json_pack("{s:s, s:s}", "role", role, "content", text);
    assert_int_equal(json_array_append_new(messages_of(f), message), 0);
}

/* n exchanges of some 60 tokens. */
static void talk(const fixture *f, int n) {
    char text[64];
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "question %d about herons", i);
        say(f, "user", text);
        snprintf(text, sizeof text, "answer %d: they are patient", i);
        say(f, "assistant", text);
    }
}

static pith_conversation_options options_for(const char *template_text) {
    return (pith_conversation_options){.size = sizeof(pith_conversation_options),
                                       .template_text = template_text,
                                       .max_tokens = ROOM};
}

static pith_status fit(const fixture *f, const pith_conversation_options *options,
                       pith_conversation **out, pith_error *error) {
    char *json = json_dumps(f->context, JSON_COMPACT);
    pith_status status = pith_conversation_fit(f->session, json, options, out, error);
    free(json);
    return status;
}

/* Tokens of the prompt that a context makes. */
static size_t count(const fixture *f, const char *template_text, const char *json) {
    pith_error error = {0};
    pith_prompt *prompt = NULL;
    size_t n = 0;
    int32_t ids[1];
    if (pith_prompt_render(f->model, template_text, json, &prompt, &error) != PITH_OK)
        fail_msg("%s", error.text);
    pith_prompt_tokenize(f->model, prompt, ids, 0, &n, NULL);
    pith_prompt_free(prompt);
    return n;
}

/* The shortened context, which fits and says so; *info what was done. */
static json_t *shortened(const fixture *f, const pith_conversation_options *options,
                         pith_conversation_info *info) {
    pith_error error = {0};
    pith_conversation *shorter = NULL;
    size_t size = 0;
    if (fit(f, options, &shorter, &error) != PITH_OK) fail_msg("%s", error.text);
    const char *json = pith_conversation_json(shorter, &size);
    assert_int_equal(strlen(json), size);
    *info = pith_conversation_describe(shorter);
    assert_int_equal(info->n_prompt, count(f, options->template_text, json));
    assert_true(info->n_prompt + ROOM <= N_CTX);
    json_t *context = json_loadb(json, size, 0, NULL);
    assert_non_null(context);
    pith_conversation_free(shorter);
    return context;
}

static const char *text_at(const json_t *context, size_t index, const char *name) {
    const json_t *messages = json_object_get(context, "messages");
    const char *text = json_string_value(json_object_get(json_array_get(messages, index), name));
    return text ? text : "";
}

static size_t n_messages(const json_t *context) {
    return json_array_size(json_object_get(context, "messages"));
}

static void expect_tail(const fixture *f, const json_t *context, size_t n) {
    size_t old = json_array_size(messages_of(f)), new = n_messages(context);
    for (size_t i = 1; i <= n; i++)
        assert_true(json_equal(json_array_get(messages_of(f), old - i),
                               json_array_get(json_object_get(context, "messages"), new - i)));
}

static void expect_failure(const fixture *f, const pith_conversation_options *options,
                           pith_status expected, const char *words) {
    pith_error error = {0};
    pith_conversation *shorter = (pith_conversation *)(void *)&error;
    assert_int_equal(fit(f, options, &shorter, &error), expected);
    assert_null(shorter);
    if (!strstr(error.text, words)) fail_msg("'%s' lacks '%s'", error.text, words);
}

static void what_fits_is_left_alone(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    json_object_set_new(f->context, "custom", json_integer(7));
    say(f, "system", "be kind");
    talk(f, 1);
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &info);
    assert_true(json_equal(context, f->context));
    assert_int_equal(info.n_messages + info.n_dropped + info.n_summary, 0);
    json_decref(context);
}

static void older_exchanges_become_one(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    say(f, "system", "be kind");
    talk(f, 14);
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &info);
    assert_string_equal(text_at(context, 0, "content"), "be kind");
    assert_string_equal(text_at(context, 1, "role"), "user");
    assert_memory_equal(text_at(context, 1, "content"), "Summarize our conversation", 26);
    assert_string_equal(text_at(context, 2, "role"), "assistant");
    assert_true(strlen(text_at(context, 2, "content")) > 0);
    assert_string_equal(text_at(context, 3, "role"), "user");
    expect_tail(f, context, n_messages(context) - 3);
    assert_int_equal(info.n_messages, 2 * 14 + 1 + 1 - 1 - (n_messages(context) - 3));
    assert_true(info.n_summary > 0 && info.n_dropped > 0 && info.ms > 0);
    json_decref(context);
}

static void what_is_dropped_has_no_summary(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    options.drop = true;
    options.n_keep = 100; /* the system's message and one exchange */
    say(f, "system", "be kind");
    talk(f, 14);
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &info);
    assert_string_equal(text_at(context, 1, "content"), "question 0 about herons");
    assert_string_equal(text_at(context, 2, "content"), "answer 0: they are patient");
    assert_true(n_messages(context) > 4);
    expect_tail(f, context, n_messages(context) - 3);
    assert_int_equal(info.n_summary, 0);
    assert_int_equal(info.n_messages, json_array_size(messages_of(f)) - n_messages(context));
    json_decref(context);
}

/* Reminders among the messages, as agents send them. */
static void system_messages_stay_wherever_they_stand(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    say(f, "system", "be kind");
    talk(f, 3);
    say(f, "system", "be short");
    talk(f, 3);
    say(f, "developer", "be true");
    talk(f, 10);
    say(f, "user", "and now?");
    for (int i = 0; i < 2; i++) {
        options.drop = i == 1;
        json_t *context = shortened(f, &options, &info);
        size_t first = options.drop ? 3 : 5, n = n_messages(context);
        assert_string_equal(text_at(context, 0, "content"), "be kind");
        assert_string_equal(text_at(context, 1, "content"), "be short");
        assert_string_equal(text_at(context, 2, "content"), "be true");
        assert_string_equal(text_at(context, first, "role"), "user");
        expect_tail(f, context, n - first);
        assert_int_equal(info.n_messages, json_array_size(messages_of(f)) - 3 - (n - first));
        json_decref(context);
    }
}

/* As templates have it that leave out what was thought earlier: estimates are far from what is
 * counted. */
static const char forgetful[] =
    "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

static double time_of_count(const fixture *f) {
    clock_t start = clock();
    char *json = json_dumps(f->context, JSON_COMPACT);
    (void)count(f, forgetful, json);
    free(json);
    return (double)(clock() - start);
}

/* Thousands of messages are not counted once for each of them. */
static void long_conversations_are_counted_a_few_times(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(forgetful);
    options.drop = true;
    for (int i = 0; i < 1500; i++) {
        say(f, "user", "and?");
        say(f, "assistant", "<think>so long so long so long so long so long</think>yes");
    }
    say(f, "user", "and now?");
    double once = time_of_count(f);
    for (int i = 0; i < 3; i++) {
        options.n_keep = i == 1 ? N_CTX / 4 : 0;
        options.template_text = i == 2 ? plain : forgetful;
        clock_t start = clock();
        json_t *context = shortened(f, &options, &info);
        assert_true((double)(clock() - start) < 60 * once);
        assert_true(info.n_messages > 2900 && n_messages(context) >= 5);
        assert_true(info.n_prompt > N_CTX / 3); /* half of it was to stay */
        json_decref(context);
    }
    options.n_keep = 1 << 30; /* all stays */
    clock_t start = clock();
    expect_failure(f, &options, PITH_ERROR_LIMIT, "do not fit");
    assert_true((double)(clock() - start) < 60 * once);
}

/* What is summarised need not be thought about; what the model thinks all the same is no part of
 * the summary, and stands for it where nothing else is written. */
static void summaries_are_asked_for_without_a_thought(void **state) {
    static const char thinks[] =
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if "
        "add_generation_prompt %}{% if enable_thinking is not defined or enable_thinking %}{{ "
        "raise_exception('it thinks') }}{% endif %}<assistant><think>{% endif %}{# </think> #}";
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(thinks);
    json_object_del(f->context, "add_generation_prompt");
    talk(f, 14);
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &info);
    assert_true(strlen(text_at(context, 1, "content")) > 0);
    assert_null(json_object_get(context, "enable_thinking"));
    json_decref(context);
}

/* The exchange of the last user's message has a call and its result: they stay together. */
static void calls_stay_with_their_results(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    json_t *call = json_pack("{s:s, s:s, s:[{s:s}]}", "role", "assistant", "content", "",
                             "tool_calls", "id", "call_1");
    talk(f, 10);
    say(f, "user", "how warm is it?");
    json_array_append_new(messages_of(f), call);
    say(f, "tool", "21 degrees");
    json_t *context = shortened(f, &options, &info);
    assert_true(info.n_messages > 0);
    expect_tail(f, context, 3);
    json_decref(context);
}

static void parts_of_a_message_are_read(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    char part[300];
    memset(part, 'w', sizeof part - 1);
    part[sizeof part - 1] = 0;
    for (int i = 0; i < 4; i++) {
        json_t *message = json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "role", "user", "content",
                                    "type", "text", "text", part, "type", "text", "text", "end");
        json_array_append_new(messages_of(f), message);
        say(f, "assistant", "yes");
    }
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &info);
    assert_true(info.n_messages >= 4 && info.n_summary > 0);
    json_decref(context);
}

static void what_tools_take_is_counted(void **state) {
    const fixture *f = *state;
    pith_conversation_info without, with;
    pith_conversation_options options = options_for(plain);
    char name[201];
    memset(name, 't', 200);
    name[200] = 0;
    talk(f, 5);
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &without);
    assert_int_equal(without.n_dropped, 0);
    json_decref(context);
    json_object_set_new(f->context, "tools", json_pack("[{s:s}]", "name", name));
    context = shortened(f, &options, &with);
    assert_true(with.n_dropped > 0);
    assert_true(
        json_equal(json_object_get(context, "tools"), json_object_get(f->context, "tools")));
    json_decref(context);
}

/* The beginning of the last message, a user's or a tool's; its role and other members stay. */
static void a_long_last_message_keeps_its_end(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    static char words[4000];
    for (size_t n = 0, i = 0; n + 16 < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "word%zu ", i);
    for (int i = 0; i < 2; i++) {
        const char *role = i == 0 ? "user" : "tool";
        json_array_clear(messages_of(f));
        say(f, "system", "be kind");
        if (i == 1) say(f, "user", "read it");
        say(f, role, words);
        json_object_set_new(json_array_get(messages_of(f), (size_t)i + 1), "name",
                            json_string("kept"));
        json_t *context = shortened(f, &options, &info);
        const char *text = text_at(context, n_messages(context) - 1, "content");
        assert_memory_equal(text, "Summary of what comes before: ", 30);
        assert_string_equal(text + strlen(text) - 20, words + strlen(words) - 20);
        assert_string_equal(text_at(context, n_messages(context) - 1, "role"), role);
        assert_string_equal(text_at(context, n_messages(context) - 1, "name"), "kept");
        assert_true(info.n_dropped > 1000 && info.n_summary > 0);
        json_decref(context);
    }
}

/* In parts, as clients of the OpenAI API send it. */
static void a_long_last_message_in_parts_keeps_them(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(plain);
    static char words[3000];
    for (size_t n = 0, i = 0; n + 16 < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "word%zu ", i);
    json_t *parts = json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "type", "text", "text", words,
                              "type", "image", "url", "x", "type", "text", "text", "the end");
    json_t *message = json_pack("{s:s, s:o}", "role", "user", "content", parts);
    json_array_append_new(messages_of(f), message);
    json_t *context = shortened(f, &options, &info);
    json_t *made =
        json_object_get(json_array_get(json_object_get(context, "messages"), 0), "content");
    assert_int_equal(json_array_size(made), 2);
    assert_true(json_equal(json_array_get(made, 0), json_array_get(parts, 1)));
    const char *text = json_string_value(json_object_get(json_array_get(made, 1), "text"));
    assert_memory_equal(text, "Summary of what comes before: ", 30);
    assert_string_equal(text + strlen(text) - 7, "the end");
    json_decref(context);
}

static void what_cannot_fit_is_an_error(void **state) {
    const fixture *f = *state;
    pith_conversation_options options = options_for(plain);
    char text[481];
    memset(text, 'y', 480);
    text[480] = 0;
    say(f, "system", text);
    talk(f, 3);
    say(f, "user", "and now?");
    expect_failure(f, &options, PITH_ERROR_LIMIT, "do not fit");
    options.drop = true;
    expect_failure(f, &options, PITH_ERROR_LIMIT, "do not fit");
    options = options_for(strict);
    expect_failure(f, &options, PITH_ERROR_TEMPLATE, "take turns");
}

static void roles_take_turns(void **state) {
    const fixture *f = *state;
    pith_conversation_info info;
    pith_conversation_options options = options_for(strict);
    talk(f, 12);
    say(f, "user", "and now?");
    json_t *context = shortened(f, &options, &info);
    assert_true(info.n_summary > 0);
    json_decref(context);
}

static int cancel_at_once(void *user, double fraction) {
    (void)fraction;
    pith_session_cancel(user);
    return 0;
}

static void it_can_be_stopped(void **state) {
    const fixture *f = *state;
    pith_conversation_options options = options_for(plain);
    options.on_prompt = cancel_at_once;
    options.user = f->session;
    talk(f, 14);
    say(f, "user", "and now?");
    expect_failure(f, &options, PITH_ERROR_CANCELLED, "summary");
    pith_conversation_info info;
    options.on_prompt = NULL;
    json_decref(shortened(f, &options, &info)); /* the session is as good as new */
    assert_true(info.n_summary > 0);
}

static void arguments_are_checked(void **state) {
    const fixture *f = *state;
    pith_conversation_options options = options_for(plain);
    pith_conversation *shorter = NULL;
    static const struct {
        const char *json, *words;
    } wrong[] = {{"[]", "object"},
                 {"{}", "no messages"},
                 {"{\"messages\":[]}", "no messages"},
                 {"{\"messages\":{}}", "no messages"},
                 {"{\"messages\":[{}, 5]}", "messages[1]"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pith_error error = {0};
        assert_int_equal(
            pith_conversation_fit(f->session, wrong[i].json, &options, &shorter, &error),
            PITH_ERROR_ARGUMENT);
        if (!strstr(error.text, wrong[i].words)) fail_msg("%s", error.text);
    }
    assert_int_equal(pith_conversation_fit(f->session, "{", &options, &shorter, NULL),
                     PITH_ERROR_FORMAT);
    assert_int_equal(pith_conversation_fit(NULL, "{}", &options, &shorter, NULL),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_conversation_fit(f->session, NULL, &options, &shorter, NULL),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_conversation_fit(f->session, "{}", &options, NULL, NULL),
                     PITH_ERROR_ARGUMENT);
    say(f, "user", "hi");
    options.template_text = NULL;
    expect_failure(f, &options, PITH_ERROR_NOT_FOUND, "chat template");
    options = options_for(plain);
    options.max_tokens = -1;
    expect_failure(f, &options, PITH_ERROR_ARGUMENT, "max_tokens");
    options = options_for(plain);
    options.n_keep = -1;
    expect_failure(f, &options, PITH_ERROR_ARGUMENT, "n_keep");
    options = options_for(plain);
    options.draft = (pith_draft)9;
    expect_failure(f, &options, PITH_ERROR_ARGUMENT, "draft");
    pith_conversation_free(NULL);
    size_t size = 1;
    assert_string_equal(pith_conversation_json(NULL, &size), "");
    assert_int_equal(size + pith_conversation_describe(NULL).n_prompt, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_fits_is_left_alone, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(older_exchanges_become_one, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(what_is_dropped_has_no_summary, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(system_messages_stay_wherever_they_stand, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(long_conversations_are_counted_a_few_times, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(summaries_are_asked_for_without_a_thought, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(calls_stay_with_their_results, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(parts_of_a_message_are_read, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(what_tools_take_is_counted, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_long_last_message_keeps_its_end, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(a_long_last_message_in_parts_keeps_them, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(what_cannot_fit_is_an_error, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(roles_take_turns, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(it_can_be_stopped, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(arguments_are_checked, open_fixture, close_fixture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
