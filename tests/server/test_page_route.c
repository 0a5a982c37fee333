/* SPDX-License-Identifier: Apache-2.0
 * Which Accept-Encoding takes the page as gzip. */
#include "server/route.h"
/* cmocka needs these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* in this order */
#include <cmocka.h>

static void test_takes_gzip(void **state) {
    static const struct {
        const char *codings;
        bool takes;
    } cases[] = {{NULL, false},           {"", false},
                 {"gzip", true},          {"gzip, deflate, br", true},
                 {"br,gzip", true},       {"deflate , gzip;q=0.2", true},
                 {"gzip ; q=1", true},    {"gzip;q=0", false},
                 {"gzip;q=0.000", false}, {"gzip;q=x", false},
                 {"gzipped", false},      {"x-gzip", false},
                 {"identity", false},     {",,,;;;", false},
                 {"gzip;", true},         {"br;q=0,gzip", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (pith_page_takes_gzip(cases[i].codings) != cases[i].takes)
            fail_msg("'%s' expected %d", cases[i].codings ? cases[i].codings : "(none)",
                     cases[i].takes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_takes_gzip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
