/* SPDX-License-Identifier: Apache-2.0
 * A promise of model_pool.c: while folders are searched for models, which may take a while, others
 * may ask what is known. What a whole server does with models: tests/cli/test_serve.py. */
#include "server/model_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static pith_models *models;
static int n_searches, n_known;

static bool count(void *user, const pith_served_info *info) {
    int *n = user;
    (void)info;
    ++*n;
    return true;
}

/* A folder with two models; whoever searches it asks for what is known, as /health does. */
static void each_model(void *user, pith_server_visit visit, void *visit_user) {
    (void)user;
    n_searches++;
    n_known = 0;
    pith_models_each_known(models, count, &n_known);
    if (visit(visit_user, "first", "/nowhere/first.gguf"))
        visit(visit_user, "second", "/nowhere/second.gguf");
}

static void a_search_keeps_nobody_waiting(void **state) {
    const pith_server_options options = {.each_model = each_model, .memory = 1};
    pith_server server = {.options = &options};
    int n = 0;
    (void)state;
    models = pith_models_new(&server, NULL);
    assert_non_null(models);
    pith_models_each(models, count, &n);
    assert_int_equal(n, 2);
    assert_int_equal(n_known, 0);
    assert_true(pith_models_is_absent(models, "second"));
    assert_int_equal(n_searches, 1); /* a known name needs none */
    char *path = pith_models_path(models, "third");
    assert_null(path);
    assert_int_equal(n_searches, 2);
    assert_int_equal(n_known, 2); /* each once */
    assert_false(pith_models_is_absent(models, "third"));
    pith_models_free(models);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_search_keeps_nobody_waiting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
