/* SPDX-License-Identifier: Apache-2.0
 * Promise: the content key is the same for the same file and another one when a key, the
 * vocabulary or the sampled bytes of a tensor differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/architecture.h"
#include "support/changed_model.h"

static uint64_t key_of(const char *path) {
    pith_gguf *gguf = NULL;
    uint64_t key = 0;
    assert_int_equal(pith_gguf_open_path(path, &gguf, NULL), PITH_OK);
    assert_int_equal(pith_content_key(gguf, &key, NULL), PITH_OK);
    pith_gguf_close(gguf);
    return key;
}

static void same_file_same_key(void **state) {
    char path[1024];
    (void)state;
    golden_path("llama-moe.gguf", path);
    assert_true(key_of(path) == key_of(path));
    assert_true(key_of(path) != 0);
}

static void changed_header_other_key(void **state) {
    char from[1024], to[1024];
    const change changes[] = {{SET_TEXT, "general.name", 0, "another"}};
    (void)state;
    golden_path("llama-moe.gguf", from);
    scratch_path("test_content_key.gguf", to);
    assert_true(changed_model_write(from, to, NULL, 0));
    uint64_t copy = key_of(to);
    assert_true(changed_model_write(from, to, changes, 1));
    assert_true(key_of(to) != copy);
    remove(to);
}

/* Flips a bit of the last tensor's first, middle and last byte in turn. */
static void changed_sample_other_key(void **state) {
    char from[1024], to[1024];
    (void)state;
    golden_path("llama-moe.gguf", from);
    scratch_path("test_content_key.gguf", to);
    assert_true(changed_model_write(from, to, NULL, 0));
    pith_gguf *gguf = NULL;
    assert_int_equal(pith_gguf_open_path(to, &gguf, NULL), PITH_OK);
    pith_gguf_tensor tensor = *pith_gguf_tensor_at(gguf, pith_gguf_n_tensors(gguf) - 1);
    pith_gguf_close(gguf);
    uint64_t plain = key_of(to);
    const uint64_t offsets[] = {tensor.offset, tensor.offset + tensor.bytes / 2,
                                tensor.offset + tensor.bytes - 1};
    for (int i = 0; i < 3; i++) {
        for (int turn = 0; turn < 2; turn++) { /* there and back */
            FILE *file = fopen(to, "r+b");
            assert_non_null(file);
            fseek(file, (long)offsets[i], SEEK_SET);
            int byte = fgetc(file);
            fseek(file, (long)offsets[i], SEEK_SET);
            fputc(byte ^ 1, file);
            fclose(file);
            if (turn == 0) assert_true(key_of(to) != plain);
        }
        assert_true(key_of(to) == plain);
    }
    remove(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_file_same_key),
        cmocka_unit_test(changed_header_other_key),
        cmocka_unit_test(changed_sample_other_key),
    };
    return cmocka_run_group_tests_name("content key", tests, NULL, NULL);
}
