/* SPDX-License-Identifier: Apache-2.0
 * Promises of gatekeeper.c: addresses and localhost may be asked for, names of others may not;
 * origins are the server's own or listed, letter by letter. */
#include "server/server_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const pith_server_options open_to_all = {.host = "127.0.0.1"};

static void hosts_are_addresses_or_localhost(void **state) {
    (void)state;
    static const char *const right[] = {"127.0.0.1", "127.0.0.1:80", "localhost:1", "LOCALHOST",
                                        "[::1]",     "[::1]:8080",   "10.0.0.7:80"};
    static const char *const wrong[] = {"",           "evil.example",      "localhost.evil",
                                        "1.2.3.4.io", "127.0.0.1:80a",     "[::1",
                                        "[::1]x",     "evil:80:127.0.0.1", "localhost:80 "};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_true(pith_guard_host(&open_to_all, right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(pith_guard_host(&open_to_all, wrong[i]));
    assert_true(pith_guard_host(&open_to_all, NULL));
    const pith_server_options with_key = {.host = "0.0.0.0", .key = "k"};
    assert_true(pith_guard_host(&with_key, "my.host"));
}

static void origins_are_listed_or_the_server_s_own(void **state) {
    (void)state;
    static const char *const listed[] = {"https://a.example"};
    const pith_server_options options = {.host = "127.0.0.1", .origins = listed, .n_origins = 1};
    assert_true(pith_guard_origin(&options, "https://a.example", "localhost:1"));
    assert_true(pith_guard_origin(&options, "http://localhost:1", "localhost:1"));
    assert_false(pith_guard_origin(&options, "http://localhost:2", "localhost:1"));
    assert_false(pith_guard_origin(&options, "https://a.example.b", "localhost:1"));
    assert_false(pith_guard_origin(&options, "https://a.exampl", "localhost:1"));
    assert_false(pith_guard_origin(&options, "null", "localhost:1"));
    assert_false(pith_guard_origin(&options, "", "localhost:1"));
    assert_false(pith_guard_origin(&options, "http://", ""));
    assert_false(pith_guard_origin(&options, "http://localhost:1", NULL));
}

static void keys_are_the_same_or_not(void **state) {
    (void)state;
    assert_true(pith_guard_same("", ""));
    assert_true(pith_guard_same("abc", "abc"));
    assert_false(pith_guard_same("abc", "abd"));
    assert_false(pith_guard_same("abc", "ab"));
    assert_false(pith_guard_same("ab", "abc"));
    assert_false(pith_guard_same("", "a"));
}

static void what_other_sites_include_is_refused(void **state) {
    (void)state;
    assert_true(pith_guard_site(NULL, NULL, NULL));
    assert_true(pith_guard_site("none", NULL, NULL));
    assert_true(pith_guard_site("same-origin", "no-cors", "image"));
    assert_true(pith_guard_site("cross-site", "navigate", "document"));
    assert_false(pith_guard_site("cross-site", "navigate", "iframe"));
    assert_false(pith_guard_site("same-site", "no-cors", "script"));
    assert_false(pith_guard_site("cross-site", NULL, NULL));
    assert_false(pith_guard_site("", "navigate", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_addresses_or_localhost),
        cmocka_unit_test(origins_are_listed_or_the_server_s_own),
        cmocka_unit_test(keys_are_the_same_or_not),
        cmocka_unit_test(what_other_sites_include_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
