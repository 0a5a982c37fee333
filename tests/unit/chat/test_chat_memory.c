/* SPDX-License-Identifier: Apache-2.0
 * Compiling and rendering survive the failure of any one allocation: the answer is PITH_ERROR_MEMORY and nothing else
 * is left behind (which the sanitizers watch), or the text as usual. */
#include "support/failing_memory.h"

#include "rendering.h"

static const char source[] =
    "{%- macro show(m, depth=1) -%}{{ m.role | upper }}:{{ m.content | trim | replace('a', 'b') }}"
    "{%- for c in m.calls if c.name -%}{{ loop.index }}{{ c | tojson(indent=2) }}{% else %}-{% "
    "endfor -%}"
    "{%- endmacro -%}"
    "{% set ns = namespace(n=0, text='') %}"
    "{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.text = ns.text ~ show(m, depth=2) "
    "%}{% endfor %}"
    "{% set cap %}[{{ ns.text }}]{% endset %}{{ cap }}{{ ns.n }}"
    "{% filter upper %}{{ messages | map(attribute='role') | unique | join(',') }}{% endfilter %}"
    "{{ messages | selectattr('calls') | list | length }}{{ messages | groupby('role') | list | "
    "length }}"
    "{{ messages | sort(attribute='content') | first }}{{ '%s|%5.1f' % ('x', 2.5) }}{{ "
    "'{:>4}'.format(messages | length) }}"
    "{% macro wrap(a) %}<{{ caller(a) }}{{ varargs }}{{ kwargs }}>{% endmacro %}"
    "{% call(x) wrap('q', 1, *[2], k=3, **{'z': 4}) %}{{ x ~ '!' }}{% endcall %}"
    "{{ messages[0].content[::-1] }}{{ messages[0].content.split() }}{{ 'a' if false }}{{ "
    "dict(a=1) | dictsort }}";

static const char context[] = "{\"messages\": [{\"role\": \"user\", \"content\": \" b\\u00e9a \", "
                              "\"calls\": [{\"name\": \"f\", \"args\": {\"a\": [1, 2.5, null]}}]},"
                              " {\"role\": \"tool\", \"content\": \"r\", \"calls\": []}]}";

static void test_all_fail(void **state) {
    (void)state;
    json_t *json = NULL;
    pith_error error = {0};
    assert_int_equal(pith_json_parse((pith_span){context, sizeof context - 1}, &json, &error),
                     PITH_OK);
    bool done = false;
    uint64_t n_failed = 0;
    for (uint64_t n = 1; !done; n++) {
        pith_template *tpl = NULL;
        pith_rendered out = {0};
        memset(&error, 0, sizeof error);
        memory_watch_reset(n);
        pith_status status = pith_template_new(pith_span_of(source), &tpl, &error);
        if (status == PITH_OK) status = pith_template_render(tpl, json, NULL, 0, &out, &error);
        done = memory_watch.n_requests < n;
        memory_watch_reset(0);
        if (status != PITH_OK) {
            if (status != PITH_ERROR_MEMORY)
                fail_msg("allocation %d: status %d, %s", (int)n, status, error.text);
            assert_true(strlen(error.text) > 0);
            assert_null(out.text.data);
            n_failed++;
        } else {
            assert_non_null(strstr(out.text.data, "[USER:b\xC3\xA9"
                                                  "b"));
        }
        pith_rendered_deinit(&out);
        pith_template_free(tpl);
        assert_true(n < 10000);
    }
    assert_true(n_failed > 15);
    json_decref(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
