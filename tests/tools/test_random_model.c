/* SPDX-License-Identifier: Apache-2.0
 * What pith-random-model promises: blocks of every type decode to finite numbers of the wanted deviation, the vocabulary is
 * one that a tokenizer can open, tensors have the sizes of the models they imitate. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/map.h"
#include "random_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Types whose scale is a power of two come within a factor of sqrt(2), the others close. */
static float tolerance(pith_type type) {
    return type == PITH_TYPE_MXFP4 || type == PITH_TYPE_NVFP4 ? 0.45f
           : type == PITH_TYPE_TQ2_0                          ? 0.15f
                                                              : 0.08f;
}

static void blocks_have_the_wanted_deviation(void **state) {
    (void)state;
    enum { N = 64 * 256 };
    static const float deviations[] = {0.5f, 0.02f, 0.004f};
    float *values = malloc(N * sizeof *values);
    uint8_t *blocks = malloc(N * 4);
    assert_true(values && blocks);
    size_t n_types = 0;
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        const pith_type_info *info = pith_type_get(id);
        if (!info || !info->is_weight) continue;
        n_types++;
        for (size_t i = 0; i < 3; i++) {
            random_filler filler;
            pith_rng rng;
            pith_rng_init(&rng, 5);
            if (!random_filler_init(&filler, (pith_type)id, deviations[i]))
                fail_msg("%s cannot be filled", info->name);
            random_filler_run(&filler, &rng, blocks,
                              (size_t)N / info->block_elems * info->block_bytes);
            assert_int_equal(pith_type_validate((pith_type)id, blocks, N), -1);
            info->decode(blocks, values, N);
            double sum = 0;
            for (size_t k = 0; k < N; k++) sum += (double)values[k] * (double)values[k];
            double ratio = sqrt(sum / N) / (double)deviations[i];
            if (!(fabs(ratio - 1) < (double)tolerance((pith_type)id)))
                fail_msg("%s: %g times the deviation %g", info->name, ratio, (double)deviations[i]);
        }
    }
    assert_true(n_types >= 25);
    free(values);
    free(blocks);
}

static pith_gguf *write_and_open(const random_shape *shape, const char *type) {
    char path[512];
    const char *folder = getenv("PITH_BINARY_DIR");
    snprintf(path, sizeof path, "%s/random-vocab.gguf", folder ? folder : ".");
    pith_error error = {PITH_OK, ""};
    pith_gguf_writer *writer;
    pith_rng rng;
    pith_rng_init(&rng, 9);
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &writer, &error), PITH_OK);
    assert_int_equal(random_write_keys(writer, shape, random_recipe_find(type), &error), PITH_OK);
    assert_int_equal(random_write_vocab(writer, shape, &rng, &error), PITH_OK);
    assert_int_equal(pith_gguf_writer_finish(writer, &error), PITH_OK);
    pith_gguf_writer_free(writer);
    pith_gguf *gguf;
    assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_OK);
    remove(path);
    return gguf;
}

static void vocabularies_can_be_opened(void **state) {
    (void)state;
    static const char *const names[] = {"1b", "tiny"};
    for (size_t k = 0; k < 2; k++) {
        const random_shape *shape = random_shape_find(RANDOM_LLAMA, names[k]);
        pith_gguf *gguf = write_and_open(shape, "Q4_K_M");
        const pith_gguf_value *tokens = pith_gguf_value_find(gguf, "tokenizer.ggml.tokens");
        const pith_gguf_value *merges = pith_gguf_value_find(gguf, "tokenizer.ggml.merges");
        const pith_gguf_value *types = pith_gguf_value_find(gguf, "tokenizer.ggml.token_type");
        assert_int_equal(tokens->n_items, shape->n_vocab);
        assert_int_equal(types->n_items, shape->n_vocab);
        assert_int_equal(merges->n_items, shape->n_vocab - 256 - 8);
        pith_map index = {0};
        for (uint64_t i = 0; i < tokens->n_items; i++) /* no text twice */
            assert_int_equal(pith_map_insert(&index, tokens->strings[i], (int32_t)i, NULL), 1);
        for (uint64_t i = 0; i < merges->n_items;
             i++) { /* left, right and both together are tokens */
            pith_span merge = merges->strings[i];
            const char *gap = memchr(merge.data + 1, ' ', merge.size - 1);
            assert_non_null(gap);
            size_t left = (size_t)(gap - merge.data), right = merge.size - left - 1;
            char both[64];
            assert_true(merge.size < sizeof both);
            memcpy(both, merge.data, left);
            memcpy(both + left, gap + 1, right);
            int32_t id = -1, its_left = -1, its_right = -1;
            assert_true(pith_map_find(&index, (pith_span){merge.data, left}, &its_left));
            assert_true(pith_map_find(&index, (pith_span){gap + 1, right}, &its_right));
            assert_true(pith_map_find(&index, (pith_span){both, left + right}, &id));
            assert_int_equal(id, 256 + i);
            assert_true(its_left < id && its_right < id);
        }
        pith_map_deinit(&index);
        pith_gguf_close(gguf);
    }
}

static void models_have_the_size_of_the_real_ones(void **state) {
    (void)state;
    static const struct {
        random_arch arch;
        const char *shape, *type;
        double parameters,
            bytes; /* of the published models, Q4_K_M files where known; 0: unknown */
    } cases[] = {
        {RANDOM_LLAMA, "1b", "Q4_K_M", 1.236e9, 0.80e9},
        {RANDOM_LLAMA, "8b", "Q4_K_M", 8.030e9, 4.91e9},
        {RANDOM_LLAMA, "4b", "Q4_K_M", 4.022e9, 2.49e9},
        {RANDOM_QWEN2, "1b", "Q4_K_M", 1.544e9, 0},
        {RANDOM_QWEN2, "8b", "Q4_K_M", 7.616e9, 4.68e9},
        {RANDOM_GEMMA3, "1b", "Q8_0", 1.000e9, 1.06e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 0;
        const random_shape *shape = random_shape_find(cases[i].arch, cases[i].shape);
        random_tensor *tensors =
            random_tensor_list(shape, random_recipe_find(cases[i].type), false, &n);
        assert_non_null(tensors);
        double parameters = 0, bytes = 0;
        for (size_t k = 0; k < n; k++) {
            parameters +=
                (double)tensors[k].ne[0] * (double)(tensors[k].ne[1] ? tensors[k].ne[1] : 1);
            bytes += (double)tensors[k].bytes;
        }
        print_message("%s %s %s: %.3fe9 parameters, %.3f GB\n", random_arch_name(cases[i].arch),
                      cases[i].shape, cases[i].type, parameters / 1e9, bytes / 1e9);
        assert_true(fabs(parameters / cases[i].parameters - 1) < 0.01);
        if (cases[i].bytes > 0) assert_true(fabs(bytes / cases[i].bytes - 1) < 0.03);
        free(tensors);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_the_wanted_deviation),
        cmocka_unit_test(vocabularies_can_be_opened),
        cmocka_unit_test(models_have_the_size_of_the_real_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
