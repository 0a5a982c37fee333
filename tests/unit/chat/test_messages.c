/* SPDX-License-Identifier: Apache-2.0
 * What the engine says when something is wrong: the line, and what was expected or asked of what. And small promises of
 * the interface: raise_exception's text is kept as it is, NULL for an error is allowed, the clock can be set. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L /* setenv */
#endif

#include "rendering.h"

static const struct {
    const char *source, *message;
} cases[] = {
    /* compiling */
    {"a\nb\n{{ x ", "line 3: the template ends inside of a tag"},
    {"{{ }}", "line 1: expected an expression, got '}}'"},
    {"\n{{ a b }}", "line 2: expected '}}', got 'b'"},
    {"{% if x %}\n\n", "line 2: the template ends where {% endif %} is missing"},
    {"{% for x in y %}{% endif %}", "there is no tag named 'endif' that could stand here"},
    {"{% frob %}", "line 1: there is no tag named 'frob'"},
    {"{{ 'abc }}", "line 1: a string is not closed"},
    {"{# abc", "line 1: a comment is not closed"},
    {"{% raw %}abc", "{% endraw %}"},
    {"{{ (1] }}", "a bracket is closed by one of another kind"},
    {"{{ x | nope }}", "line 1: there is no filter named 'nope'"},
    {"{{ x is nope }}", "line 1: there is no test named 'nope'"},
    {"{% include 'a' %}", "{% include %} needs another file"},
    {"{% break %}", "'break' outside of a loop"},
    {"{% for a in b %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}",
     "'continue' outside of a loop"},
    {"{% macro m(a, a) %}{% endmacro %}", "two parameters of the same name"},
    {"{% set 5 = x %}", "expected a name, got '5'"},
    {"{% set none = x %}", "cannot assign to 'none'"},
    {"{{ 99999999999999999999 }}", "does not fit into 64 bits"},
    {"{% call x %}{% endcall %}", "a call block needs a call"},
    {"{% call() (a or f()) %}{% endcall %}", "a call block needs a call"},
    {"{{ f(a=1, 2) }}", "an argument without a name follows one with a name"},
    {"{{ '\\x4' }}", "the escape \\x"},
    {"{% autoescape true %}{% endautoescape %}", "autoescape can only be false"},
    /* rendering */
    {"\n\n{{ nope.x }}", "line 3: 'nope' is undefined"},
    {"{{ d.nope.x }}", "a dict has no 'nope'"},
    {"{{ d['nope']() }}", "a dict has no 'nope'"},
    {"{{ l[7].x }}", "a list has no '7'"},
    {"{{ 1 + 'a' }}", "'+' does not work between int and str"},
    {"{{ [1] < ['a'] }}", "'<' does not work between list and list"},
    {"{% for a in 5 %}{% endfor %}", "cannot loop over a int"},
    {"{% set a, b = [1] %}", "fewer than 2 values"},
    {"{% set a, b = [1, 2, 3] %}", "more than 2 values"},
    {"{{ 5() }}", "a int cannot be called"},
    {"{{ l.append(1) }}", "templates may not use 'append' of a list"},
    {"{{ ''.__class__.x }}", "templates may not use '__class__' of a str"},
    {"{% set d.x = 1 %}", "only the fields of a namespace can be set"},
    {"{{ 'a'.split('') }}", "split needs a separator that is not empty"},
    {"{{ [1] | join(nosuch=1) }}", "join takes no argument 'nosuch'"},
    {"{{ 'a' | replace('b') }}", "replace needs the argument 'new'"},
    {"{% macro m(a) %}{% endmacro %}\n{{ m(1, 2) }}",
     "line 2: the macro 'm' takes 1 arguments, not 2"},
    {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "the macro 'm' takes no argument 'b'"},
    {"{% if x %}{% else %}{{ 1 | nope }}{% endif %}", "there is no filter named 'nope'"},
    {"{{ 1 // 0 }}", "division by zero"},
    {"{{ 9223372036854775807 + 1 }}", "does not fit into 64 bits"},
    {"{{ 'q' + ('a' if false) }}", "the condition of an inline 'if' is false and it has no 'else'"},
    {"{{ {[]: 1} }}", "a list cannot be a key of a dict"},
    {"{{ strftime_now('%Q') }}", "a conversion that is not known"},
    {"{{ x | tojson }}", "tojson cannot write a Undefined"},
};

static void test_sentences(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rendering r = render_text(cases[i].source, "{\"d\": {\"a\": 1}, \"l\": [1]}");
        if (r.status != PITH_ERROR_TEMPLATE)
            fail_msg("%s: status %d %s", cases[i].source, r.status, r.error.text);
        if (strstr(r.error.text, cases[i].message) == NULL) {
            fail_msg("%s:\n   got      %s\n   expected %s", cases[i].source, r.error.text,
                     cases[i].message);
        }
        assert_int_equal(strncmp(r.error.text, "line ", 5), 0);
        rendering_end(&r);
    }
}

static void test_raise(void **state) {
    (void)state;
    rendering r =
        render_text("\n{{ raise_exception('No ' ~ x ~ '!\n100% {}') }}", "{\"x\": \"\\u00e9\"}");
    assert_int_equal(r.status, PITH_ERROR_TEMPLATE);
    assert_string_equal(r.error.text, "No \xC3\xA9!\n100% {}");
    rendering_end(&r);
    r = render_text("{{ raise_exception('\xC3\xA9' * 500) }}",
                    "{}"); /* longer than an error: cut between characters */
    assert_int_equal(r.status, PITH_ERROR_TEMPLATE);
    size_t size = strlen(r.error.text);
    assert_true(size > 230 && size < sizeof r.error.text && (size - strlen("...")) % 2 == 0);
    rendering_end(&r);
}

static void test_interface(void **state) {
    (void)state;
    pith_template *tpl = NULL;
    pith_rendered out;
    assert_int_equal(pith_template_new(pith_span_of("{{ x"), &tpl, NULL), PITH_ERROR_TEMPLATE);
    assert_null(tpl);
    assert_int_equal(pith_template_new((pith_span){NULL, 0}, &tpl, NULL), PITH_OK);
    json_t *array = json_array(), *object = json_object();
    assert_int_equal(pith_template_render(tpl, array, NULL, 0, &out, NULL), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_template_render(tpl, NULL, NULL, 0, &out, NULL), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_template_render(tpl, object, NULL, 0, &out, NULL), PITH_OK);
    assert_int_equal(out.text.size, 0);
    pith_rendered_deinit(&out);
    pith_template_free(tpl);
    pith_template_free(NULL);
    /* one template, many renderings; the clock; a context's name takes a function's place */
    assert_int_equal(
        pith_template_new(pith_span_of("{{ strftime_now('%Y-%j') }}{{ range }}"), &tpl, NULL),
        PITH_OK);
    assert_int_equal(pith_template_render(tpl, object, NULL, 951782400, &out, NULL), PITH_OK);
    assert_string_equal(out.text.data, "2000-060<function range>");
    pith_rendered_deinit(&out);
    assert_int_equal(pith_template_render(tpl, object, NULL, -1, &out, NULL), PITH_OK);
    assert_true(atoi(out.text.data) > 2024);
    pith_rendered_deinit(&out);
    json_object_set_new(object, "range", json_integer(7));
    assert_int_equal(pith_template_render(tpl, object, NULL, 0, &out, NULL), PITH_OK);
    assert_string_equal(out.text.data, "1970-0017");
    pith_rendered_deinit(&out);
    pith_template_free(tpl);
    json_decref(array);
    json_decref(object);
}

/* Dates that are easy to get wrong: week numbers around New Year, noon and midnight, blanks instead of zeros. */
static void test_dates(void **state) {
    (void)state;
    static const struct {
        int64_t now;
        const char *format, *expected;
    } dates[] = {
        {1104537600, "%G-W%V-%u %U %W %j", "2004-W53-6 00 00 001"}, /* 2005-01-01 */
        {1230768000, "%G-W%V-%u %U %W", "2009-W01-4 00 00"},        /* 2009-01-01 */
        {1230681600, "%G-W%V-%u %U %W", "2009-W01-3 52 52"},        /* 2008-12-31 */
        {1609459200, "%G-W%V %g %C", "2020-W53 20 20"},             /* 2021-01-01 */
        {43200, "%I %l %p %H", "12 12 PM 12"},
        {0, "%I %p %e %-d %-m|%k", "12 AM  1 1 1| 0"},
        {951782400, "%a %A %b %B %h %D %F %T %R %r %c|%x|%X",
         "Tue Tuesday Feb February Feb 02/29/00 2000-02-29 00:00:00 00:00 "
         "12:00:00 AM Tue Feb 29 00:00:00 2000|02/29/00|00:00:00"},
        {951782400, "\xC3\xA9%%%d\xC3\xA9%", "\xC3\xA9%29\xC3\xA9%"},
    };
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        pith_template *tpl = NULL;
        pith_rendered out;
        json_t *context = json_pack("{s:s}", "f", dates[i].format);
        assert_int_equal(pith_template_new(pith_span_of("{{ strftime_now(f) }}"), &tpl, NULL),
                         PITH_OK);
        assert_int_equal(pith_template_render(tpl, context, NULL, dates[i].now, &out, NULL),
                         PITH_OK);
        assert_string_equal(out.text.data, dates[i].expected);
        pith_rendered_deinit(&out);
        pith_template_free(tpl);
        json_decref(context);
    }
}

int main(void) {
#if defined(_WIN32)
    _putenv_s("TZ", "UTC");
#else
    setenv("TZ", "UTC", 1);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_raise),
        cmocka_unit_test(test_interface), cmocka_unit_test(test_dates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
