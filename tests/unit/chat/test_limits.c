/* SPDX-License-Identifier: Apache-2.0
 * Hostile templates and contexts end with an error code and a sentence, soon, in bounded memory and in 256 KB of C stack:
 * nesting, recursion, size, doubling, endless work, values nested into themselves, broken bytes. Limits are tried at
 * their value and one beyond. */
#include "rendering.h"

#include <pthread.h>

/* `before` n times, `inside`, `after` n times. */
static char *nested(const char *before, size_t n, const char *inside, const char *after) {
    size_t a = strlen(before), b = strlen(after), c = strlen(inside);
    char *text = malloc(n * (a + b) + c + 1), *at = text;
    assert_non_null(text);
    for (size_t i = 0; i < n; i++, at += a) memcpy(at, before, a);
    memcpy(at, inside, c);
    at += c;
    for (size_t i = 0; i < n; i++, at += b) memcpy(at, after, b);
    *at = 0;
    return text;
}

/* Renders with `n_steps` steps (0: the published limits). */
static pith_status status_within(uint64_t n_steps, const char *source, char *message) {
    json_t *context = json_object();
    pith_template *tpl = NULL;
    pith_rendered out = {0};
    pith_error error = {0};
    pith_render_task task = {.context = context,
                             .memory_limit = PITH_TEMPLATE_MAX_MEMORY,
                             .output_limit = PITH_TEMPLATE_MAX_OUTPUT,
                             .step_limit = n_steps > 0 ? n_steps : PITH_TEMPLATE_MAX_STEPS};
    pith_status status = pith_template_new(pith_span_of(source), &tpl, &error);
    if (status == PITH_OK) status = pith_template_render_task(tpl, &task, &out, &error);
    if (status != PITH_OK) {
        assert_true(strlen(error.text) > 10);
        assert_null(out.text.data);
        assert_int_equal(out.n_spans, 0);
    }
    if (message != NULL) memcpy(message, error.text, sizeof error.text);
    pith_rendered_deinit(&out);
    pith_template_free(tpl);
    json_decref(context);
    return status;
}

static pith_status status_of(const char *source, char *message) {
    return status_within(0, source, message);
}

/* `n` repetitions are allowed, one more is not. */
static void assert_edge(const char *before, size_t n, const char *inside, const char *after) {
    char *text = nested(before, n, inside, after);
    pith_status status = status_of(text, NULL);
    if (status != PITH_OK) print_error("%zu x %s: refused\n", n, before);
    assert_int_equal(status, PITH_OK);
    free(text);
    text = nested(before, n + 1, inside, after);
    char message[sizeof((pith_error *)0)->text];
    assert_int_equal(status_of(text, message), PITH_ERROR_TEMPLATE);
    assert_non_null(strstr(message, "nesting"));
    free(text);
}

static void test_nesting(void **state) {
    (void)state;
    enum { D = PITH_TEMPLATE_MAX_DEPTH };
    /* the template's body is one level, an expression another */
    assert_edge("{% if true %}", D - 1, "x", "{% endif %}");
    assert_edge("{% for a in [1] %}", D - 1, "x", "{% endfor %}");
    assert_edge("{% set a %}", D - 1, "x", "{% endset %}");
    assert_edge("{% with %}", D - 1, "x", "{% endwith %}");
    static const struct {
        const char *before, *inside, *after;
    } expressions[] = {{"(", "1", ")"},
                       {"[", "1", "]"},
                       {"{1:", "1", "}"},
                       {"x(", "1", ")|d if false else 1"},
                       {"1|d(", "1", ")"},
                       {"x[", "1", "]|d if false else 1"},
                       {"1 if true else (", "1", ")"}};
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        char *before = malloc(2 * D * 64);
        assert_non_null(before);
        for (size_t n = D - 2; n <= D - 1; n++) {
            char *inner =
                nested(expressions[i].before, n, expressions[i].inside, expressions[i].after);
            snprintf(before, 2 * D * 64, "{{ %s }}", inner);
            pith_status status = status_of(before, NULL);
            if ((status == PITH_OK) != (n == D - 2))
                print_error("%s, %zu levels: %d\n", expressions[i].before, n, status);
            assert_true((status == PITH_OK) == (n == D - 2));
            free(inner);
        }
        free(before);
    }
}

/* What is long, but not nested, is no problem. */
static void test_length(void **state) {
    (void)state;
    static const struct {
        const char *before, *inside, *after;
        size_t n;
    } cases[] = {
        {"'a' ~ ", "'b'", "", 50000},     {"1 + ", "1", "", 50000},
        {"not ", "1", "", 50000},         {"- ", "1", "", 50000},
        {"", "'a'", "|upper", 50000},     {"", "[[]]", "|list", 50000},
        {"true and ", "true", "", 50000}, {"false or ", "true", "", 50000},
        {"1 < ", "2", "", 20000},         {"'a' ", "'b'", "", 50000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *inner = nested(cases[i].before, cases[i].n, cases[i].inside, cases[i].after);
        char *text = malloc(strlen(inner) + 16);
        assert_non_null(text);
        sprintf(text, "{{ %s }}", inner);
        pith_status status = status_of(text, NULL);
        if (status != PITH_OK)
            print_error("%zu x %s%s failed\n", cases[i].n, cases[i].before, cases[i].after);
        assert_int_equal(status, PITH_OK);
        free(inner);
        free(text);
    }
    char *elifs = nested("", 30000, "{% if x %}", "{% elif x %}a");
    char *text = malloc(strlen(elifs) + 16);
    assert_non_null(text);
    sprintf(text, "%s{%% endif %%}", elifs);
    assert_int_equal(status_of(text, NULL), PITH_OK);
    free(elifs);
    free(text);
}

static void test_macro_recursion(void **state) {
    (void)state;
    char source[200], message[240];
    static const char *const endless[] = {
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}{{ m() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% macro m(a=m()) %}{% endmacro %}{{ m() }}"};
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        assert_int_equal(status_of(endless[i], message), PITH_ERROR_TEMPLATE);
        if (i != 4) assert_non_null(strstr(message, "levels deep"));
    }
    for (int n = PITH_TEMPLATE_MAX_DEPTH - 1; n <= PITH_TEMPLATE_MAX_DEPTH; n++) {
        snprintf(
            source, sizeof source,
            "{%% macro m(n) %%}{%% if n %%}{{ m(n - 1) }}{%% endif %%}{%% endmacro %%}{{ m(%d) }}",
            n);
        assert_int_equal(status_of(source, NULL),
                         n < PITH_TEMPLATE_MAX_DEPTH ? PITH_OK : PITH_ERROR_TEMPLATE);
    }
    assert_int_equal(
        status_of("{{ [1] | map('map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', "
                  "'map', 'map', 'map',"
                  " 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'map', 'upper') | list }}",
                  NULL),
        PITH_ERROR_TEMPLATE);
}

static void test_sizes(void **state) {
    (void)state;
    pith_template *tpl;
    pith_error error;
    char *text = malloc(PITH_TEMPLATE_MAX_BYTES + 1);
    assert_non_null(text);
    static const char *const fillers[] = {"a",  "{{x}}",   "{#a#}",   "{%if x%}{%endif%}",
                                          "\n", "{{1}}\n", "\xC3\xA9"};
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
        size_t n = strlen(fillers[i]), size = PITH_TEMPLATE_MAX_BYTES / n * n;
        for (size_t at = 0; at < size; at += n) memcpy(text + at, fillers[i], n);
        assert_int_equal(pith_template_new((pith_span){text, size}, &tpl, &error), PITH_OK);
        pith_template_free(tpl);
    }
    memset(text, 'a', PITH_TEMPLATE_MAX_BYTES + 1);
    assert_int_equal(pith_template_new((pith_span){text, PITH_TEMPLATE_MAX_BYTES}, &tpl, &error),
                     PITH_OK);
    pith_template_free(tpl);
    assert_int_equal(
        pith_template_new((pith_span){text, PITH_TEMPLATE_MAX_BYTES + 1}, &tpl, &error),
        PITH_ERROR_LIMIT);
    assert_null(tpl);
    free(text);
    assert_int_equal(status_of("{{ range(100000) | length }}", NULL), PITH_OK);
    assert_int_equal(status_of("{{ range(100001) | length }}", NULL), PITH_ERROR_TEMPLATE);
    assert_int_equal(status_of("{{ range(-9223372036854775807, 9223372036854775807) }}", NULL),
                     PITH_ERROR_TEMPLATE);
    assert_int_equal(
        status_of(
            "{{ range(-9223372036854775807, 9223372036854775807, 4611686018427387904) | list }}",
            NULL),
        PITH_OK);
}

static void test_work(void **state) {
    (void)state;
    static const char *const sources[] = {
        /* memory */
        "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s "
        "%}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
        "endfor %}",
        "{{ 'a' * 1000000000 * 1000000000 }}",
        "{{ [1] * 100000000 }}",
        "{{ [[]] * 9223372036854775807 }}",
        "{{ 'ab'.replace('', 'x' * 1000000).replace('x', 'x' * 1000000) }}",
        "{{ ' ' * 100000000 ~ ' ' * 100000000 ~ ' ' * 100000000 }}",
        "{{ '%1048576s' % 1 * 1000 }}",
        "{% for i in range(100000) %}{% set x %}{{ 'a' * 10000 }}{% endset %}{% endfor %}",
        /* output */
        "{% for i in range(100) %}{{ 'a' * 1000000 }}{% endfor %}",
        "{% for i in range(100000) %}{{ i }}{% for j in range(100000) %}{{ j }}{% endfor %}{% "
        "endfor %}",
        /* steps */
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{{ '' if 99999 in range(100000) }}{% endfor %}",
        "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ '' if s ~ 'b' in s }}{% endfor "
        "%}",
        "{% set s = 'a' * 1000000 ~ 'b' %}{% set t = 'a' * 500000 ~ 'c' %}{{ t in s }}{{ "
        "s.count(t) }}{{ s.rfind(t) }}{{ s.replace(t, '') }}{{ s.split(t) }}{% for i in "
        "range(100000) %}{{ t in s }}{% endfor %}",
        "{% set s = '\xC3\xA9' * 1000000 %}{% for i in range(100000) %}{{ s[999999] | length }}{% "
        "endfor %}",
        "{% set l = range(100000) | list %}{% for i in range(100000) %}{{ '' if -1 in l }}{% "
        "endfor %}",
        "{% set l = range(100000) | list %}{% for i in range(100000) %}{{ '' if l == l[:] }}{% "
        "endfor %}",
        "{% set l = range(100000) | list %}{% for i in range(100000) %}{% set x = l | sort %}{% "
        "endfor %}",
        "{% set s = ' ' * 1000000 %}{% for i in range(100000) %}{% set x = s.strip() %}{% endfor "
        "%}",
    };
    /* smaller limits than the published ones, for the sake of time; the first cases also with those */
    json_t *context = json_object();
    pith_render_task task = {.context = context,
                             .memory_limit = 32 << 20,
                             .output_limit = 8 << 20,
                             .step_limit = 2000000};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        pith_template *tpl = NULL;
        pith_rendered out;
        pith_error error = {0};
        assert_int_equal(pith_template_new(pith_span_of(sources[i]), &tpl, &error), PITH_OK);
        pith_status status = pith_template_render_task(tpl, &task, &out, &error);
        if (status != PITH_ERROR_LIMIT)
            print_error("%s: status %d %s\n", sources[i], status, error.text);
        assert_int_equal(status, PITH_ERROR_LIMIT);
        assert_null(out.text.data);
        if (i < 2)
            assert_int_equal(pith_template_render(tpl, context, NULL, 0, &out, &error),
                             PITH_ERROR_LIMIT);
        pith_template_free(tpl);
    }
    json_decref(context);
}

/* Exactly as much as is allowed, and one byte or step less. */
static void test_exact_limits(void **state) {
    (void)state;
    json_t *context = json_object();
    pith_template *tpl;
    pith_rendered out;
    pith_error error;
    pith_render_task task = {
        .context = context, .memory_limit = 1 << 20, .output_limit = 1000, .step_limit = 1000};
    assert_int_equal(
        pith_template_new(pith_span_of("{{ 'a' * 500 }}{{ 'b' * 500 }}"), &tpl, &error), PITH_OK);
    assert_int_equal(pith_template_render_task(tpl, &task, &out, &error), PITH_OK);
    assert_int_equal(out.text.size, 1000);
    pith_rendered_deinit(&out);
    task.output_limit = 999;
    assert_int_equal(pith_template_render_task(tpl, &task, &out, &error), PITH_ERROR_LIMIT);
    assert_non_null(strstr(error.text, "999"));
    task.output_limit = 1000;
    uint64_t enough = 0;
    for (task.step_limit = 0; enough == 0; task.step_limit++) {
        pith_status status = pith_template_render_task(tpl, &task, &out, &error);
        if (status == PITH_OK) enough = task.step_limit;
        pith_rendered_deinit(&out);
        assert_true(status == PITH_OK || status == PITH_ERROR_LIMIT);
        assert_true(task.step_limit < 200);
    }
    assert_true(enough > 8);
    pith_template_free(tpl);
    json_decref(context);
}

/* `shape` with each @ replaced. */
static void spell(const char *shape, const char *name, char out[60]) {
    size_t n = 0;
    for (; *shape != 0; shape++) {
        if (*shape == '@') {
            n += (size_t)snprintf(out + n, 60 - n, "%s", name);
        } else {
            out[n++] = *shape;
        }
    }
    out[n] = 0;
}

/* Values that hold themselves many times over or very deep. */
static void test_nested_values(void **state) {
    (void)state;
    static const char *const uses[] = {"{{ ns.v }}",
                                       "{{ ns.v | tojson }}",
                                       "{{ ns.v == ns.w }}",
                                       "{{ ns.v < ns.w }}",
                                       "{{ {ns.v: 1} }}",
                                       "{{ ns.v in [ns.w] }}",
                                       "{{ [ns.v, ns.w] | unique | list }}",
                                       "{{ [ns.v, ns.w] | sort }}",
                                       "{{ '%s' % ns.v }}",
                                       "{{ ns.v | string }}"};
    static const char *const shapes[] = {"(@,)",   "[@]",      "(@, @)",
                                         "[@, @]", "{'a': @}", "{'a': @, 'b': @}"};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            char source[600], v[60], w[60];
            bool is_double = strstr(shapes[j], ", ") != NULL;
            spell(shapes[j], "ns.v", v);
            spell(shapes[j], "ns.w", w);
            snprintf(source, sizeof source,
                     "{%% set ns = namespace(v=(), w=()) %%}{%% for i in range(%d) %%}{%% set ns.v "
                     "= %s %%}{%% set ns.w = %s %%}{%% endfor %%}%s",
                     is_double ? 60 : 5000, v, w, uses[i]);
            pith_status status = status_within(500000, source, NULL);
            if (status != PITH_ERROR_LIMIT && status != PITH_ERROR_TEMPLATE)
                print_error("%s: status %d\n", source, status);
            assert_true(status == PITH_ERROR_LIMIT || status == PITH_ERROR_TEMPLATE);
        }
    }
    /* a context deeper than what JSON text may have, as an API user could build it */
    json_t *json = json_integer(1);
    for (int i = 0; i < PITH_TEMPLATE_MAX_DEPTH + 1; i++) json = json_pack("[o]", json);
    json_t *context = json_pack("{s:o}", "x", json);
    pith_template *tpl;
    pith_rendered out;
    pith_error error;
    assert_int_equal(pith_template_new(pith_span_of("{{ x }}"), &tpl, &error), PITH_OK);
    assert_int_equal(pith_template_render(tpl, context, NULL, 0, &out, &error), PITH_ERROR_LIMIT);
    pith_template_free(tpl);
    json_decref(context);
}

static void test_broken_bytes(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        bool works;
    } cases[] = {
        {"a\xFF\xFE{{ x }}", 10, true},
        {"{{ '\xC3' ~ '\xA9' | length }}", 26, true},
        {"{{ '\xC3\x28\xF0\x9F' | upper }}", 20, true},
        {"\x00{{ x }}\x00", 9, true},
        {"{{ \xFF }}", 7, false},
        {"{{ '\xED\xA0\x80'[0] | tojson }}", 24, true},
        {"{{ x\xC3 }}", 8, false},
        {"{%\xFF%}", 5, false},
        {"{{ '\xFF\xC3\xA9\xFF'[::-1] }}{{ ['\xFF'] }}{{ '\xFF' in '\xC3\xFF' }}", 60, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = cases[i].size < strlen(cases[i].bytes) && cases[i].bytes[0] != 0
                          ? strlen(cases[i].bytes)
                          : cases[i].size;
        if (cases[i].bytes[0] != 0) size = strlen(cases[i].bytes);
        rendering r = render_span((pith_span){cases[i].bytes, size}, "{\"x\": 1}", NULL);
        if ((r.status == PITH_OK) != cases[i].works)
            print_error("case %zu: %d %s\n", i, r.status, r.error.text);
        assert_true((r.status == PITH_OK) == cases[i].works);
        rendering_end(&r);
    }
}

static void *in_small_stack(void *function) {
    ((void (*)(void **))(uintptr_t)function)(NULL);
    return NULL;
}

/* The same in a thread with 256 KB. A stack that is too small is a crash, so passing is returning. */
static void test_small_stack(void **state) {
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
    void (*const functions[])(void **) = {test_nesting, test_macro_recursion, test_nested_values};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        assert_int_equal(
            pthread_create(&thread, &attributes, in_small_stack, (void *)(uintptr_t)functions[i]),
            0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    pthread_attr_destroy(&attributes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_macro_recursion),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_nested_values),
        cmocka_unit_test(test_broken_bytes),
        cmocka_unit_test(test_exact_limits),
        cmocka_unit_test(test_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
