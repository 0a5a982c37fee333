/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of src/backend/cpu/pack.c about files: reads past the page cache and through it leave
 * the same panels and rows in memory, on one thread and on many, under a limit that leaves no
 * room for buffers, and past the odd ends of tensors and file; a file cut short while it is read
 * is refused with a sentence.
 */
#define _XOPEN_SOURCE 700
#include "backend/weight.h"
#include "base/rng.h"
#include "cpu/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if !defined(_WIN32)
#include <fcntl.h>
#include <unistd.h>
#endif

enum { K = 512, N_TENSOR = 4, ODD = 37 /* bytes in front of each tensor */ };

/* Rows: less than a panel, some pieces and a part, an odd count in rows that are kept. */
static const struct {
    pith_type type;
    uint64_t rows, experts;
    unsigned roles;
} shapes[N_TENSOR] = {{PITH_TYPE_Q4_0, 5, 1, PITH_WEIGHT_LINEAR},
                      {PITH_TYPE_Q4_K, 7501, 1, PITH_WEIGHT_LINEAR},
                      {PITH_TYPE_Q8_0, 2501, 1, PITH_WEIGHT_ROWS},
                      {PITH_TYPE_Q8_0, 333, 3, PITH_WEIGHT_LINEAR}};

typedef struct tensor_file {
    char path[1024];
    pith_source *source;
    uint64_t offset[N_TENSOR], bytes[N_TENSOR];
} tensor_file;

/* Random bytes are as good as weights here: nothing decodes them. */
static void make_file(tensor_file *f) {
    const char *folder = getenv("PITH_BINARY_DIR");
    snprintf(f->path, sizeof f->path, "%s/test_pack_weights", folder ? folder : ".");
    FILE *file = fopen(f->path, "wb");
    assert_non_null(file);
    pith_rng rng;
    pith_rng_init(&rng, 50);
    uint64_t at = 0;
    for (int i = 0; i < N_TENSOR; i++) {
        uint64_t row_bytes = 0;
        assert_true(pith_type_row_bytes(shapes[i].type, K, &row_bytes));
        f->offset[i] = at + ODD;
        f->bytes[i] = row_bytes * shapes[i].rows * shapes[i].experts;
        for (; at < f->offset[i] + f->bytes[i]; at++)
            assert_true(fputc((int)(pith_rng_next(&rng) & 0xFF), file) != EOF);
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(pith_source_open_path(f->path, &f->source, NULL), PITH_OK);
}

static void free_file(tensor_file *f) {
    pith_source_close(f->source);
    remove(f->path);
}

static void evict(const tensor_file *f) {
#if defined(POSIX_FADV_DONTNEED)
    int descriptor = open(f->path, O_RDWR);
    assert_true(descriptor >= 0);
    (void)fsync(descriptor);
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
#else
    (void)f;
#endif
}

static pith_weights *declare(const tensor_file *f, const pith_weight *out[N_TENSOR]) {
    pith_weights *weights;
    assert_int_equal(pith_weights_new(&weights, NULL), PITH_OK);
    for (int i = 0; i < N_TENSOR; i++) {
        char name[] = "tensor 0";
        name[7] = (char)('0' + i);
        pith_weight_source source = {.name = name,
                                     .type = shapes[i].type,
                                     .n_dims = 3,
                                     .ne = {K, shapes[i].rows, shapes[i].experts, 1},
                                     .source = f->source,
                                     .offset = f->offset[i],
                                     .bytes = f->bytes[i]};
        assert_int_equal(pith_weights_add(weights, &source, shapes[i].roles, &out[i], NULL),
                         PITH_OK);
    }
    return weights;
}

/* All that the load wrote; the caller frees the weights. */
static pith_weights *load(const tensor_file *f, const pith_weights_options *options,
                          const pith_weight *out[N_TENSOR]) {
    pith_weights *weights = declare(f, out);
    pith_error error = {0};
    if (pith_weights_load(weights, options, &error)) fail_msg("%s", error.text);
    return weights;
}

static void both_ways_leave_the_same_bytes(void **state) {
    (void)state;
    tensor_file f;
    make_file(&f);
    const pith_weight *cached[N_TENSOR], *direct[N_TENSOR];
    pith_weights_options options = {.load = PITH_LOAD_PACK,
                                    .n_threads = 1,
                                    .features = pith_cpu_detect(),
                                    .reading = PITH_READ_CACHED};
    pith_weights *expected = load(&f, &options, cached);
    assert_int_equal(cached[1]->layout, PITH_LAYOUT_PANELS);
    assert_int_equal(cached[2]->layout, PITH_LAYOUT_ROWS);
    for (int run = 0; run < 8; run++) {
        options.reading = run & 1 ? PITH_READ_DIRECT : PITH_READ_AUTO;
        options.n_threads = run & 2 ? 7 : 1;
        options.memory_limit = run & 4 ? pith_weights_bytes(expected) : 0;
        evict(&f);
        pith_weights *weights = load(&f, &options, direct);
        for (int i = 0; i < N_TENSOR; i++) {
            size_t size = direct[i]->expert_bytes * (size_t)shapes[i].experts;
            assert_int_equal(direct[i]->expert_bytes, cached[i]->expert_bytes);
            if (memcmp(direct[i]->data, cached[i]->data, size) != 0)
                fail_msg("tensor %d differs in run %d", i, run);
        }
        pith_weights_free(weights);
    }
    pith_weights_free(expected);
    free_file(&f);
}

#if !defined(_WIN32)
static void a_file_cut_short_is_refused(void **state) {
    (void)state;
    const pith_reading readings[] = {PITH_READ_CACHED, PITH_READ_DIRECT};
    for (int i = 0; i < 2; i++) {
        tensor_file f;
        make_file(&f);
        const pith_weight *out[N_TENSOR];
        pith_weights *weights = declare(&f, out);
        pith_error error = {0};
        pith_weights_options options = {.load = PITH_LOAD_PACK,
                                        .n_threads = 3,
                                        .features = pith_cpu_detect(),
                                        .reading = readings[i]};
        assert_int_equal(truncate(f.path, (off_t)(f.offset[3] + f.bytes[3] - 1)), 0);
        evict(&f);
        assert_int_equal(pith_weights_load(weights, &options, &error), PITH_ERROR_IO);
        if (!strstr(error.text, "changed while in use")) fail_msg("%s", error.text);
        pith_weights_free(weights);
        free_file(&f);
    }
}
#endif

static int cancel(void *user, double fraction) {
    int *calls = user;
    assert_true(fraction >= 0 && fraction <= 1);
    (*calls)++;
    return 1;
}

static void a_cold_file_may_be_cancelled(void **state) {
    (void)state;
    tensor_file f;
    make_file(&f);
    const pith_weight *out[N_TENSOR];
    pith_weights *weights = declare(&f, out);
    int calls = 0;
    pith_weights_options options = {.load = PITH_LOAD_PACK,
                                    .n_threads = 2,
                                    .features = pith_cpu_detect(),
                                    .reading = PITH_READ_DIRECT,
                                    .progress = cancel,
                                    .progress_user = &calls};
    evict(&f);
    assert_int_equal(pith_weights_load(weights, &options, NULL), PITH_ERROR_CANCELLED);
    assert_int_equal(calls, 1);
    pith_weights_free(weights);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_leave_the_same_bytes),
#if !defined(_WIN32)
        cmocka_unit_test(a_file_cut_short_is_refused),
#endif
        cmocka_unit_test(a_cold_file_may_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
