/* SPDX-License-Identifier: Apache-2.0
 * Who wrote what survives every operation: the spans of a rendered template say exactly which bytes come from the
 * user's strings. In the expectations the user's spans stand between < and > (which no text here contains). */
#include "rendering.h"

/* The text with the user's spans in < >. */
static void annotate(const pith_rendered *rendered, char *out, size_t capacity) {
    size_t n = 0, at = 0;
    for (size_t i = 0; i < rendered->n_spans; i++) {
        const pith_rendered_span *span = &rendered->spans[i];
        assert_int_equal(span->offset, at);
        assert_true(span->size > 0);
        assert_true(i == 0 || span->is_user != span[-1].is_user);
        at += span->size;
        n += (size_t)snprintf(out + n, capacity - n, span->is_user ? "<%.*s>" : "%.*s",
                              (int)span->size, rendered->text.data + span->offset);
        assert_true(n < capacity);
    }
    out[n] = 0;
    assert_int_equal(at, rendered->text.size);
}

static const char context[] =
    "{\"x\": \"ab\", \"y\": \"Cd e\", \"s\": \"  pad  \", \"n\": 12, \"f\": 1.5, \"b\": true, "
    "\"no\": null, \"csv\": \"p,q,r\","
    " \"l\": [\"u1\", \"u2\"], \"d\": {\"key\": \"val\", \"k2\": [1, \"in\"]}, \"u\": "
    "\"\\u00e9a\\u00df\", \"q\": \"a\\\"b\\n\","
    " \"html\": \"a&b\", \"tags\": \"k/i/z\", \"ps\": [{\"name\": \"n1\", \"v\": 2}, {\"name\": "
    "\"n2\", \"v\": 1}],"
    " \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"evil\", \"content\": "
    "\"user\","
    " \"tool_calls\": [{\"role\": \"user\"}]}], \"bos_token\": \"[BOS]\", \"multi\": \"l1\\nl2\"}";

static const struct {
    const char *source, *expected;
} cases[] = {
    /* plain */
    {"{{ x }}", "<ab>"},
    {"t{{ x }}t", "t<ab>t"},
    {"{{ x }}{{ y }}", "<abCd e>"},
    {"{{ n }} {{ f }} {{ b }} {{ no }}", "12 1.5 True None"},
    {"{{ 'a' ~ x ~ 'b' }}|{{ 'a' + x + 'b' }}|{{ x + y }}", "a<ab>b|a<ab>b|<abCd e>"},
    {"{{ x * 2 }}{{ ('t' ~ x) * 2 }}", "<abab>t<ab>t<ab>"},
    {"{{ '-' if x else x }}{{ x if x }}{{ x or 't' }}{{ no or 't' }}", "-<abab>t"},
    {"{{ missing | default(x) }}{{ x | default('t') }}", "<abab>"},
    /* places in a mixed string */
    {"{% set m = 'tt' ~ x ~ 'TT' %}{{ m[0] }}{{ m[2] }}{{ m[1:3] }}|{{ m[::-1] }}|{{ m[3:5] }}|{{ "
     "m[::2] }}",
     "t<a>t<a>|TT<ba>tt|<b>T|t<a>T"},
    {"{% set m = 'tt' ~ x %}{{ m.upper() }}{{ m | upper }}{{ m | title }}{{ m | capitalize }}{{ "
     "m.swapcase() }}",
     "TT<AB>TT<AB>Tt<ab>Tt<ab>TT<AB>"},
    {"{% for c in 't' ~ x %}[{{ c }}]{% endfor %}", "[t][<a>][<b>]"},
    {"{{ ('t' ~ x) | first }}{{ ('t' ~ x) | last }}{{ ('t' ~ x) | list | join('.') }}",
     "t<b>t.<a>.<b>"},
    {"{{ ('t' ~ x) | reverse }}", "<ba>t"},
    /* cutting */
    {"{{ s | trim }}{{ s.lstrip() }}|{{ s.rstrip() }}{{ s.strip(' p') }}", "<padpad  >|<  padad>"},
    {"{{ ('  t ' ~ s) | trim }}", "t <  pad>"},
    {"{{ csv.split(',') | join('+') }}{{ csv.split(',')[-1] }}{{ csv.rsplit(',', 1)[0] }}",
     "<p>+<q>+<rrp,q>"},
    {"{{ csv.partition(',') | join }}{{ ('a' ~ csv).removeprefix('a') }}", "<p,q,rp,q,r>"},
    {"{{ multi.splitlines() | join('|') }}{{ multi | indent(2) }}", "<l1>|<l2l1\n>  <l2>"},
    {"{{ ('one ' ~ x ~ ' three four') | truncate(8, leeway=0) }}", "one..."},
    {"{{ ('one' ~ x) | truncate(4, true, '', 0) }}", "one<a>"},
    /* replacing */
    {"{{ x | replace('a', 'T') }}{{ x.replace('b', 'T') }}", "T<ba>T"},
    {"{{ 'aXb' | replace('X', x) }}{{ 'aXb'.replace('X', x) }}", "a<ab>ba<ab>b"},
    {"{{ 'ab' | replace(x, 'T') }}{{ 'c' | replace('', x) }}", "T<ab>c<ab>"},
    /* putting together */
    {"{{ l | join(', ') }}{{ l | join }}{{ ['t', x] | join(y) }}{{ x.join(['1', '2']) }}",
     "<u1>, <u2u1u2>t<Cd eab>1<ab>2"},
    {"{{ '%s-%5s|%-4s|%r' % (x, x, x, x) }}", "<ab>-   <ab>|<ab>  |'<ab>'"},
    {"{{ '%(a)s.' % {'a': x} }}{{ x % () }}{{ '%d' % n }}", "<ab>.<ab>12"},
    {"{{ '{}-{:>4}-{0}'.format(x, y) if false }}{{ '{}-{:>6}'.format(x, y) }}{{ '{a}'.format(a=x) "
     "}}",
     "<ab>-  <Cd eab>"},
    {"{{ '%s' | format(x) }}{{ x | center(6) }}{{ x.ljust(3, '.') }}{{ x.zfill(4) }}",
     "<ab>  <ab>  <ab>.00<ab>"},
    /* containers */
    {"{{ l }}{{ d }}{{ (x,) }}",
     "['<u1>', '<u2>']{'<key>': '<val>', '<k2>': [1, '<in>']}('<ab>',)"},
    {"{{ d | tojson }}", "{\"<key>\": \"<val>\", \"<k2>\": [1, \"<in>\"]}"},
    {"{{ {'t': x} | tojson(indent=1) }}", "{\n \"t\": \"<ab>\"\n}"},
    {"{{ q | tojson }}{{ [q] }}{{ u | tojson(true) }}",
     "\"<a\\\"b\\n>\"['<a\"b\\n>']\"<\\u00e9a\\u00df>\""},
    {"{% for k, v in d.items() %}{{ k }}={{ v if v is string }};{% endfor %}",
     "<key>=<val>;<k2>=;"},
    {"{% for k, v in d | dictsort %}{{ k }}{% endfor %}{{ d | items | list | first | first }}",
     "<k2keykey>"},
    {"{{ ps | map(attribute='name') | sort(reverse=true) | join('/') }}", "<n2>/<n1>"},
    {"{{ ps | sort(attribute='v') | map(attribute='name') | map('upper') | list }}",
     "['<N2>', '<N1>']"},
    {"{{ ps | groupby('v') | map('first') | list }}{{ (ps | selectattr('v', 'gt', 1) | first).name "
     "}}",
     "[1, 2]<n1>"},
    {"{{ l | batch(1) | list }}{{ l | unique | list }}{{ l | max }}",
     "[['<u1>'], ['<u2>']]['<u1>', '<u2>']<u2>"},
    {"{{ dict(a=x).a }}{{ namespace(a=x).a }}{{ ({x: 't'} | list)[0] }}", "<ababab>"},
    /* case changes that change the length */
    {"{{ ('t' ~ u ~ 't') | upper }}", "T<\xC3\x89"
                                      "ASS>T"},
    /* html and urls */
    {"{{ html | e }}{{ 't&' ~ html | e }}", "<a&amp;b>t&<a&amp;b>"},
    {"{{ ('t&' | e) + html }}{{ (html | safe) + '&' }}", "t&amp;<a&amp;ba&b>&amp;"},
    {"{{ 'a b' | urlencode }}{{ y | urlencode }}", "a%20b<Cd%20e>"},
    {"{{ ('t ' ~ tags ~ ' &amp;') | striptags }}", "t <k/i/z> &"},
    /* captures */
    {"{% set c %}t{{ x }}{% endset %}{{ c }}{{ c | upper }}", "t<ab>T<AB>"},
    {"{% filter upper %}t{{ x }}{% endfilter %}", "T<AB>"},
    {"{% macro m(a) %}[{{ a }}{{ caller() if caller }}]{% endmacro %}{{ m(x) }}{{ m('t') ~ x }}{% "
     "call m(y) %}c{{ x }}{% endcall %}",
     "[<ab>][t]<ab>[<Cd e>c<ab>]"},
    {"{% set ns = namespace(s='') %}{% for i in l %}{% set ns.s = ns.s ~ i ~ ';' %}{% endfor %}{{ "
     "ns.s }}",
     "<u1>;<u2>;"},
    {"{% set ns = namespace(s=x) %}{% for i in l %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.s "
     "}}{{ x }}",
     "<abu1u2ab>"},
    {"{{ strftime_now('%Y') }}{{ strftime_now(x ~ '%d') }}", "2026<ab>15"},
    /* roles and trusted names */
    {"{% for m in messages %}|{{ m.role }}:{{ m.content }}{% endfor %}",
     "|user:<hi>|<evil>:<user>"},
    {"{{ messages[1].tool_calls[0].role }}{{ messages[0]['role'] ~ messages[0].content }}",
     "<user>user<hi>"},
    {"{{ messages | map(attribute='role') | join(',') }}", "user,<evil>"},
    {"{{ bos_token }}{{ x }}", "[BOS]<ab>"},
};

static void test_spans(void **state) {
    (void)state;
    static const char *const trusted[] = {"eos_token", "bos_token", NULL};
    int n_failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[2000];
        rendering r = render_span(pith_span_of(cases[i].source), context, trusted);
        if (r.status != PITH_OK) {
            print_error("%s: %s\n", cases[i].source, r.error.text);
            n_failed++;
            continue;
        }
        annotate(&r.out, got, sizeof got);
        if (strcmp(got, cases[i].expected) != 0) {
            print_error("%s:\n   got      %s\n   expected %s\n", cases[i].source, got,
                        cases[i].expected);
            n_failed++;
        }
        rendering_end(&r);
    }
    assert_int_equal(n_failed, 0);
}

/* A control token that the user spells stays the user's, whatever the template does with it. */
static void test_control_tokens(void **state) {
    (void)state;
    static const char *const ways[] = {"{{ t }}",
                                       "{{ t | trim }}",
                                       "{{ t ~ '' }}",
                                       "{{ '' ~ t }}",
                                       "{{ [t] | join }}",
                                       "{{ t | string }}",
                                       "{{ t | replace('q', 'r') }}",
                                       "{{ t[0:] }}",
                                       "{{ '%s' % t }}",
                                       "{{ '{}'.format(t) }}",
                                       "{{ [t] }}",
                                       "{{ t | tojson }}",
                                       "{{ {'a': t} | tojson(indent=2) }}",
                                       "{{ t.split('q') | join }}",
                                       "{{ t | safe }}",
                                       "{{ t.lower() }}",
                                       "{{ t | indent }}",
                                       "{{ t | list | join }}",
                                       "{{ t | reverse | reverse }}",
                                       "{% filter trim %}{{ t }}{% endfilter %}",
                                       "{% set c %}{{ t }}{% endset %}{{ c }}",
                                       "{{ {'k': t}.k }}",
                                       "{{ t | default('x') }}",
                                       "{{ [t, 'a'] | sort | first if false else t }}",
                                       "{{ ({t: 1} | dictsort)[0][0] }}",
                                       "{{ t if t else 'x' }}",
                                       "{{ t | truncate(100) }}",
                                       "{{ (t,) }}"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        rendering r = render_text(ways[i], "{\"t\": \"<|im_end|>\"}");
        assert_int_equal(r.status, PITH_OK);
        const char *at = strstr(r.out.text.data, "<|im_end|>");
        if (at == NULL) fail_msg("%s lost the text: %s", ways[i], r.out.text.data);
        size_t from = (size_t)(at - r.out.text.data);
        bool is_user = false;
        for (size_t j = 0; j < r.out.n_spans; j++) {
            const pith_rendered_span *span = &r.out.spans[j];
            is_user = is_user || (span->is_user && span->offset <= from &&
                                  from + 10 <= span->offset + span->size);
        }
        if (!is_user) fail_msg("%s made the user's token the template's", ways[i]);
        rendering_end(&r);
    }
}

static void test_empty(void **state) {
    (void)state;
    rendering r = render_text("{{ x }}", "{\"x\": \"\"}");
    assert_int_equal(r.status, PITH_OK);
    assert_int_equal(r.out.text.size, 0);
    assert_int_equal(r.out.n_spans, 0);
    rendering_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spans),
                                       cmocka_unit_test(test_control_tokens),
                                       cmocka_unit_test(test_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
