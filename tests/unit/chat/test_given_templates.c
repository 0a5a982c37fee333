/* SPDX-License-Identifier: Apache-2.0
 * Templates of published models: every case of DATA/templates/given/NAME.json renders NAME.jinja
 * byte for byte, or fails where jinja2 fails. The templates belong to their publishers and are not
 * in this repository: DATA is $PITH_TEST_DATA, or ../shared/data beside the sources. Without them
 * the test is skipped. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L /* setenv */
#endif

#include "template_cases.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the ones above first */
#include <cmocka.h>

/* Adds to the counts; prints what fails. */
static void run_file(const char *folder, const char *name, size_t *n_cases, size_t *n_passed) {
    char path[2048];
    size_t size = 0, template_size = 0;
    json_t *cases = NULL;
    pith_error error = {0};
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    char *text = read_whole(path, &size);
    snprintf(path, sizeof path, "%s/%s.jinja", folder, name);
    char *source = read_whole(path, &template_size);
    assert_non_null(text);
    assert_non_null(source);
    assert_int_equal(pith_json_parse((pith_span){text, size}, &cases, &error), PITH_OK);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        case_result result = run_case(c, (pith_span){source, template_size});
        ++*n_cases;
        *n_passed += result.passed;
        if (!result.passed)
            print_error("%s %s: %s\n", name, json_string_value(json_object_get(c, "id")),
                        result.why);
    }
    json_decref(cases);
    free(text);
    free(source);
}

static void test_given(void **state) {
    (void)state;
    char folder[1024];
    const char *data = getenv("PITH_TEST_DATA"), *sources = getenv("PITH_SOURCE_DIR");
    snprintf(folder, sizeof folder, "%s/templates/given", data != NULL ? data : "");
    if (data == NULL) snprintf(folder, sizeof folder, "%s/../shared/data/templates/given", sources);
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        print_message("skipped: no templates in %s (set PITH_TEST_DATA)\n", folder);
        skip();
    }
    size_t n_files = 0, n_cases = 0, n_passed = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char name[256];
        const char *dot = strstr(entry->d_name, ".json");
        if (dot == NULL || dot[5] != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(dot - entry->d_name), entry->d_name);
        run_file(folder, name, &n_cases, &n_passed);
        n_files++;
    }
    closedir(directory);
    print_message("%zu of %zu cases of %zu templates passed\n", n_passed, n_cases, n_files);
    assert_true(n_files > 0);
    assert_int_equal(n_passed, n_cases);
}

int main(void) {
#if defined(_WIN32)
    _putenv_s("TZ", "UTC");
#else
    setenv("TZ", "UTC", 1);
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_given)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
