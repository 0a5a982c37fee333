/* SPDX-License-Identifier: Apache-2.0
 * Real files: the tiny models of many architectures are copied key by key and tensor by tensor through our writer and
 * must come out byte for byte; large models must open fast. Both are skipped where they are not there:
 * PITH_TEST_DATA (else ../shared/data beside the sources) holds arch/NAME.gguf, PITH_TEST_MODELS a folder of models. */
#define _XOPEN_SOURCE 700 /* mkdir, getpid */

#include "gguf_bytes.h"
#include "support/gguf_walk.h"

#include "base/clock.h"

#include <dirent.h>

/* The target is 30 ms on an idle machine; sanitizers and neighbours take their share. */
enum { MAX_MODELS = 256, OPEN_LIMIT_MS = 100 };

static pith_status copy_values(const pith_gguf *gguf, pith_gguf_writer *w, pith_error *error) {
    pith_status status = PITH_OK;
    for (size_t i = 0; i < pith_gguf_n_values(gguf) && !status; i++) {
        const pith_gguf_value *v = pith_gguf_value_at(gguf, i);
        if (v->kind != PITH_GGUF_ARRAY)
            status =
                pith_gguf_write_value(w, v->key.data, v->kind, v->bytes, (size_t)v->size, error);
        else if (v->item_kind == PITH_GGUF_STRING)
            status = pith_gguf_write_strings(w, v->key.data, v->strings, v->n_items, error);
        else
            status =
                pith_gguf_write_array(w, v->key.data, v->item_kind, v->bytes, v->n_items, error);
    }
    return status;
}

static pith_status copy_tensors(const pith_gguf *gguf, pith_gguf_writer *w, pith_error *error) {
    pith_status status = PITH_OK;
    size_t n = pith_gguf_n_tensors(gguf);
    for (size_t i = 0; i < n && !status; i++) {
        const pith_gguf_tensor *t = pith_gguf_tensor_at(gguf, i);
        status = pith_gguf_write_tensor(w, t->name.data, t->type, t->n_dims, t->ne, error);
    }
    for (size_t i = 0; i < n && !status; i++) {
        const pith_gguf_tensor *t = pith_gguf_tensor_at(gguf, i);
        uint8_t *data = malloc((size_t)t->bytes + 1);
        assert_non_null(data);
        status = pith_gguf_tensor_read(gguf, t, 0, data, (size_t)t->bytes, error);
        if (!status) status = pith_gguf_write_data(w, data, (size_t)t->bytes, error);
        free(data);
    }
    return status;
}

static void expect_copy_is_equal(const char *path) {
    char copy_path[512];
    scratch_path("model-copy.gguf", copy_path);
    pith_error error = {PITH_OK, ""};
    pith_gguf *gguf;
    pith_gguf_writer *w;
    pith_status status = pith_gguf_open_path(path, &gguf, &error);
    if (status) print_error("%s\n", error.text);
    assert_int_equal(status, PITH_OK);
    assert_true(gguf_walk(gguf) != 0);
    assert_int_equal(pith_gguf_writer_new(copy_path, pith_gguf_version(gguf),
                                          pith_gguf_alignment(gguf), &w, &error),
                     PITH_OK);
    assert_int_equal(copy_values(gguf, w, &error), PITH_OK);
    assert_int_equal(copy_tensors(gguf, w, &error), PITH_OK);
    assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_OK);
    pith_gguf_writer_free(w);
    pith_gguf_close(gguf);
    size_t size = 0, its_size = 0;
    uint8_t *file = read_whole(path, &size), *copy = read_whole(copy_path, &its_size);
    assert_non_null(file);
    assert_non_null(copy);
    if (size != its_size || memcmp(file, copy, size) != 0)
        print_error("%s: the copy differs\n", path);
    assert_int_equal(size, its_size);
    assert_memory_equal(file, copy, size);
    free(file);
    free(copy);
    remove(copy_path);
}

/* Calls use(path) for each NAME.gguf of a folder; returns how many there were. */
static size_t for_each_model(const char *folder, void (*use)(const char *path)) {
    DIR *directory = opendir(folder);
    if (!directory) return 0;
    size_t n = 0;
    char path[1024];
    for (struct dirent *entry = readdir(directory); entry && n < MAX_MODELS;
         entry = readdir(directory)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".gguf") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        use(path);
        n++;
    }
    closedir(directory);
    return n;
}

static void tiny_models_survive_a_copy(void **state) {
    (void)state;
    char folder[600];
    const char *data = getenv("PITH_TEST_DATA"), *source = getenv("PITH_SOURCE_DIR");
    if (data)
        snprintf(folder, sizeof folder, "%s/arch", data);
    else
        snprintf(folder, sizeof folder, "%s/../shared/data/arch", source ? source : ".");
    size_t n = for_each_model(folder, expect_copy_is_equal);
    print_message("%zu models in %s\n", n, folder);
    if (n == 0) skip();
}

static double open_and_find_all(const char *path) {
    pith_gguf *gguf;
    pith_error error;
    uint64_t start = pith_clock_ns();
    assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_OK);
    size_t n = pith_gguf_n_tensors(gguf), n_found = 0;
    for (size_t i = 0; i < n; i++)
        n_found += pith_gguf_tensor_find(gguf, pith_gguf_tensor_at(gguf, i)->name.data) ==
                   pith_gguf_tensor_at(gguf, i);
    double ms = (double)(pith_clock_ns() - start) / 1e6;
    print_message("%s: %zu keys, %zu tensors in %.2f ms\n", path, pith_gguf_n_values(gguf), n, ms);
    assert_int_equal(n_found, n);
    pith_gguf_close(gguf);
    return ms;
}

static void expect_opens_fast(const char *path) {
    double best = open_and_find_all(path);
    for (int i = 0; i < 4 && best >= OPEN_LIMIT_MS; i++) best = open_and_find_all(path);
    assert_true(best < OPEN_LIMIT_MS);
}

static void large_models_open_fast(void **state) {
    (void)state;
    const char *folder = getenv("PITH_TEST_MODELS");
    if (!folder || for_each_model(folder, expect_opens_fast) == 0) {
        print_message("PITH_TEST_MODELS names no folder of models\n");
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_models_survive_a_copy),
        cmocka_unit_test(large_models_open_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
