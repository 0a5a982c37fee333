/* SPDX-License-Identifier: Apache-2.0
 * Promise: a file that was cut anywhere behind its header opens as a header, describes the same
 * keys and tensors as the whole file, says that it is not whole, and cannot be read past its end;
 * one byte less than the header is refused as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gguf/gguf.h"
#include "support/changed_model.h"

static uint8_t *bytes;
static size_t n_bytes, header_bytes;

static int read_golden(void **state) {
    char path[1024];
    (void)state;
    FILE *file = fopen(golden_path("llama-q4_k.gguf", path), "rb");
    if (!file) return 1;
    fseek(file, 0, SEEK_END);
    n_bytes = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(n_bytes);
    size_t got = bytes ? fread(bytes, 1, n_bytes, file) : 0;
    fclose(file);
    pith_gguf *gguf = NULL;
    if (got != n_bytes || pith_gguf_open_path(path, &gguf, NULL) != PITH_OK) return 1;
    header_bytes = (size_t)pith_gguf_tensor_at(gguf, 0)->offset; /* with padding */
    pith_gguf_close(gguf);
    return 0;
}

static int free_golden(void **state) {
    (void)state;
    free(bytes);
    return 0;
}

static const char *write_cut(size_t size, char path[1024]) {
    FILE *file = fopen(scratch_path("header-only.gguf", path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

static void check_cut(size_t size) {
    char path[1024], whole_path[1024];
    pith_gguf *cut = NULL, *whole = NULL;
    pith_error error = {PITH_OK, ""};
    write_cut(size, path);
    if (size < n_bytes) assert_int_equal(pith_gguf_open_path(path, &cut, NULL), PITH_ERROR_FORMAT);
    if (pith_gguf_open_header(path, &cut, &error) != PITH_OK)
        fail_msg("%zu of %zu bytes: %s", size, n_bytes, error.text);
    assert_int_equal(pith_gguf_open_path(golden_path("llama-q4_k.gguf", whole_path), &whole, NULL),
                     PITH_OK);
    assert_int_equal(pith_gguf_is_whole(cut), size == n_bytes);
    assert_true(pith_gguf_is_whole(whole));
    assert_int_equal(pith_gguf_n_tensors(cut), pith_gguf_n_tensors(whole));
    assert_int_equal(pith_gguf_n_values(cut), pith_gguf_n_values(whole));
    assert_true(pith_gguf_total_bytes(cut) == pith_gguf_total_bytes(whole));
    size_t last = pith_gguf_n_tensors(cut) - 1;
    const pith_gguf_tensor *a = pith_gguf_tensor_at(cut, last),
                           *b = pith_gguf_tensor_at(whole, last);
    assert_true(a->offset == b->offset && a->bytes == b->bytes && a->type == b->type);
    uint8_t byte = 0;
    pith_status status = pith_gguf_tensor_read(cut, a, a->bytes - 1, &byte, 1, NULL);
    assert_int_equal(status, size == n_bytes ? PITH_OK : PITH_ERROR_FORMAT);
    pith_gguf_close(cut);
    pith_gguf_close(whole);
    remove(path);
}

static void cuts(void **state) {
    (void)state;
    check_cut(header_bytes);
    check_cut(header_bytes + 1);
    check_cut((header_bytes + n_bytes) / 2);
    check_cut(n_bytes - 1);
    check_cut(n_bytes);
}

static void a_cut_header_is_refused(void **state) {
    char path[1024];
    pith_gguf *gguf = NULL;
    (void)state;
    /* Less than the padding before the data: the tensor list itself is cut. */
    write_cut(header_bytes - 64, path);
    assert_int_equal(pith_gguf_open_header(path, &gguf, NULL), PITH_ERROR_FORMAT);
    assert_null(gguf);
    write_cut(3, path);
    assert_int_equal(pith_gguf_open_header(path, &gguf, NULL), PITH_ERROR_FORMAT);
    remove(path);
    assert_int_equal(pith_gguf_open_header("/nonexistent/x.gguf", &gguf, NULL),
                     PITH_ERROR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts),
        cmocka_unit_test(a_cut_header_is_refused),
    };
    return cmocka_run_group_tests_name("headers alone", tests, read_golden, free_golden);
}
