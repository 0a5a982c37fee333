/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of src/backend/weight.c and cpu/pack.c: packed, copied and mapped weights decode to
 * the same values; vectors are f32 and padded; what cannot be held, mapped or trusted is refused
 * with a sentence; a load can be cancelled.
 */
#include "backend/weight.h"
#include "base/rng.h"
#include "cpu/cpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { K = 256, ROWS = 37, EXPERTS = 3 };

typedef struct file {
    uint8_t *bytes;
    uint64_t size;
    pith_source *source;
} file;

/* EXPERTS slices of ROWS rows of K random elements. */
static file make_file(pith_type type) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    uint64_t row_bytes = 0;
    assert_true(pith_type_row_bytes(type, K, &row_bytes));
    file f = {.size = row_bytes * ROWS * EXPERTS};
    f.bytes = malloc(f.size);
    pith_rng rng;
    pith_rng_init(&rng, (uint64_t)type + 1);
    for (uint64_t r = 0; r < ROWS * EXPERTS; r++) {
        float row[K];
        for (int i = 0; i < K; i++) row[i] = (float)pith_rng_normal(&rng);
        info->encode(row, f.bytes + r * row_bytes, K, NULL);
    }
    assert_int_equal(pith_source_open_memory(f.bytes, f.size, &f.source, NULL), PITH_OK);
    return f;
}

static void free_file(file *f) {
    pith_source_close(f->source);
    free(f->bytes);
}

static pith_weight_source describe(const file *f, const char *name, pith_type type, uint64_t rows,
                                   uint64_t experts) {
    uint64_t row_bytes = 0;
    pith_type_row_bytes(type, K, &row_bytes);
    return (pith_weight_source){.name = name,
                                .type = type,
                                .n_dims = 3,
                                .ne = {K, rows, experts, 1},
                                .source = f->source,
                                .bytes = row_bytes * rows * experts};
}

static void expect_rows(const pith_weight *w, const file *f, pith_type type) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    uint64_t row_bytes = 0;
    pith_type_row_bytes(type, K, &row_bytes);
    float got[K], expected[K];
    for (uint64_t e = 0; e < w->ne[2]; e++) {
        pith_weight slice = *w;
        slice.data += e * w->expert_bytes;
        for (uint64_t r = 0; r < w->ne[1]; r++) {
            pith_weight_decode_row(&slice, r, got);
            info->decode(f->bytes + (e * w->ne[1] + r) * row_bytes, expected, K);
            if (memcmp(got, expected, sizeof got) != 0)
                fail_msg("%s, layout %d, slice %d row %d differs", info->name, (int)w->layout,
                         (int)e, (int)r);
        }
    }
}

static void rows_decode_the_same_in_every_layout(void **state) {
    (void)state;
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        const pith_type_info *info = pith_type_get(id);
        if (!info || !info->is_weight || !info->encode) continue;
        pith_type type = (pith_type)id;
        file f = make_file(type);
        for (int mode = PITH_LOAD_PACK; mode <= PITH_LOAD_MMAP; mode++) {
            for (uint64_t experts = 1; experts <= EXPERTS; experts += EXPERTS - 1) {
                pith_weights *weights;
                const pith_weight *linear, *both;
                pith_error error;
                assert_int_equal(pith_weights_new(&weights, NULL), PITH_OK);
                pith_weight_source source = describe(&f, "w", type, ROWS, experts);
                assert_int_equal(
                    pith_weights_add(weights, &source, PITH_WEIGHT_LINEAR, &linear, NULL), PITH_OK);
                assert_int_equal(pith_weights_add(weights, &source, PITH_WEIGHT_ROWS, &both, NULL),
                                 PITH_OK);
                assert_ptr_equal(linear, both);
                source.name = "rows";
                assert_int_equal(pith_weights_add(weights, &source, PITH_WEIGHT_ROWS, &both, NULL),
                                 PITH_OK);
                pith_weights_options options = {.load = (pith_load)mode,
                                                .n_threads = 2,
                                                .features = pith_cpu_detect(),
                                                .check_tensors = true};
                if (pith_weights_load(weights, &options, &error))
                    fail_msg("%s: %s", info->name, error.text);
                assert_int_equal(pith_weights_mode(weights), mode);
                assert_int_equal(both->layout, PITH_LAYOUT_ROWS);
                expect_rows(linear, &f, type);
                expect_rows(both, &f, type);
                if (mode == PITH_LOAD_PACK) assert_int_equal((uintptr_t)linear->data % 64, 0);
                if (mode == PITH_LOAD_MMAP) assert_ptr_equal(linear->data, f.bytes);
                pith_weights_free(weights);
            }
        }
        free_file(&f);
    }
}

static void vectors_are_f32_and_padded(void **state) {
    (void)state;
    const pith_type types[] = {PITH_TYPE_F32, PITH_TYPE_F16, PITH_TYPE_BF16};
    for (int i = 0; i < 3; i++) {
        float values[19];
        uint8_t bytes[19 * 4];
        const pith_type_info *info = pith_type_get((uint32_t)types[i]);
        for (int j = 0; j < 19; j++) values[j] = (float)j - 4;
        info->encode(values, bytes, 19, NULL);
        file f = {.bytes = bytes, .size = 19u * info->block_bytes};
        assert_int_equal(pith_source_open_memory(bytes, f.size, &f.source, NULL), PITH_OK);
        pith_weights *weights;
        const pith_weight *w;
        assert_int_equal(pith_weights_new(&weights, NULL), PITH_OK);
        pith_weight_source source = {.name = "norm",
                                     .type = types[i],
                                     .n_dims = 1,
                                     .ne = {19, 1, 1, 1},
                                     .source = f.source,
                                     .bytes = f.size};
        assert_int_equal(pith_weights_add(weights, &source, PITH_WEIGHT_VECTOR, &w, NULL), PITH_OK);
        pith_weights_options options = {.load = PITH_LOAD_AUTO, .n_threads = 1};
        assert_int_equal(pith_weights_load(weights, &options, NULL), PITH_OK);
        assert_int_equal(pith_weights_bytes(weights), 32 * 4);
        for (int j = 0; j < 32; j++) assert_true(w->values[j] == (j < 19 ? values[j] : 0.0f));
        pith_weights_free(weights);
        pith_source_close(f.source);
    }
}

static pith_status load_one(const file *f, pith_source *source, const pith_weights_options *options,
                            pith_load *mode, pith_error *error) {
    pith_weights *weights;
    const pith_weight *w;
    assert_int_equal(pith_weights_new(&weights, NULL), PITH_OK);
    pith_weight_source s = describe(f, "w", PITH_TYPE_Q8_0, ROWS, EXPERTS);
    s.source = source;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, NULL), PITH_OK);
    pith_status status = pith_weights_load(weights, options, error);
    if (!status && mode) *mode = pith_weights_mode(weights);
    if (status) assert_null(w->data);
    pith_weights_free(weights);
    return status;
}

static void limits_of_memory_hold_at_plus_minus_one(void **state) {
    (void)state;
    file f = make_file(PITH_TYPE_Q8_0);
    /* 3 panels of 16 rows for each of 3 slices, 34 bytes a block of 32 */
    uint64_t need = (3 * 3 * 16 * (K / 32) * 34 + 63) / 64 * 64;
    pith_load mode;
    pith_error error;
    pith_weights_options options = {.load = PITH_LOAD_PACK, .n_threads = 1, .memory_limit = need};
    assert_int_equal(load_one(&f, f.source, &options, &mode, &error), PITH_OK);
    options.memory_limit = need - 1;
    assert_int_equal(load_one(&f, f.source, &options, &mode, &error), PITH_ERROR_MEMORY);
    assert_non_null(strstr(error.text, "MiB"));
    assert_non_null(strstr(error.text, "mmap"));
    options.load = PITH_LOAD_AUTO;
    assert_int_equal(load_one(&f, f.source, &options, &mode, &error), PITH_OK);
    assert_int_equal(mode, PITH_LOAD_MMAP);
    options.memory_limit = need;
    assert_int_equal(load_one(&f, f.source, &options, &mode, &error), PITH_OK);
    assert_int_equal(mode, PITH_LOAD_PACK);
    free_file(&f);
}

static void room_is_left_for_the_engine(void **state) {
    (void)state;
    double mib = 1 << 20;
    assert_true(pith_weights_leave_room(700 * mib, 1000 * mib));
    assert_false(pith_weights_leave_room(700 * mib + 1, 1000 * mib));
    assert_true(pith_weights_leave_room(104 * mib, 200 * mib)); /* 30 % would be 60 MiB */
    assert_false(pith_weights_leave_room(104 * mib + 1, 200 * mib));
    assert_false(pith_weights_leave_room(1, 0));
}

static int read_at(void *user, uint64_t offset, void *buffer, size_t size) {
    const file *f = user;
    if (offset > f->size || size > f->size - offset) return 1;
    memcpy(buffer, f->bytes + offset, size);
    return 0;
}

static void sources_that_cannot_be_mapped_are_packed(void **state) {
    (void)state;
    file f = make_file(PITH_TYPE_Q8_0);
    pith_reader reader = {
        .size = sizeof reader, .user = &f, .read_at = read_at, .total_bytes = f.size};
    pith_source *source;
    pith_load mode;
    pith_error error;
    assert_int_equal(pith_source_open_reader(&reader, &source, NULL), PITH_OK);
    pith_weights_options options = {.load = PITH_LOAD_MMAP, .n_threads = 1};
    assert_int_equal(load_one(&f, source, &options, &mode, &error), PITH_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "pack"));
    options.load = PITH_LOAD_AUTO;
    assert_int_equal(load_one(&f, source, &options, &mode, &error), PITH_OK);
    assert_int_equal(mode, PITH_LOAD_PACK);
    f.size--; /* the reader fails at the end */
    assert_int_equal(load_one(&f, source, &options, &mode, &error), PITH_ERROR_IO);
    f.size++;
    pith_source_close(source);
    free_file(&f);
}

static void damaged_tensors_are_found_when_asked(void **state) {
    (void)state;
    file f = make_file(PITH_TYPE_Q8_0);
    const int modes[] = {PITH_LOAD_PACK, PITH_LOAD_MMAP};
    f.bytes[34 * 8 * (ROWS + 5) + 34] = 0; /* slice 1, row 5, block 1: scale = inf */
    f.bytes[34 * 8 * (ROWS + 5) + 35] = 0x7C;
    for (int i = 0; i < 2; i++) {
        pith_error error;
        pith_weights_options options = {.load = (pith_load)modes[i], .n_threads = 2};
        assert_int_equal(load_one(&f, f.source, &options, NULL, &error), PITH_OK);
        options.check_tensors = true;
        assert_int_equal(load_one(&f, f.source, &options, NULL, &error), PITH_ERROR_FORMAT);
        if (!strstr(error.text, "block 1 of row 42")) fail_msg("%s", error.text);
    }
    free_file(&f);
}

static int cancel(void *user, double fraction) {
    double *last = user;
    assert_true(fraction >= *last && fraction <= 1);
    *last = fraction;
    return 1;
}

static int go_on(void *user, double fraction) {
    cancel(user, fraction);
    return 0;
}

static void progress_reaches_the_end_and_can_cancel(void **state) {
    (void)state;
    file f = make_file(PITH_TYPE_Q8_0);
    pith_error error;
    double last = 0;
    pith_weights_options options = {
        .load = PITH_LOAD_PACK, .n_threads = 1, .progress = go_on, .progress_user = &last};
    assert_int_equal(load_one(&f, f.source, &options, NULL, &error), PITH_OK);
    assert_true(last == 1);
    last = 0;
    options.progress = cancel;
    assert_int_equal(load_one(&f, f.source, &options, NULL, &error), PITH_ERROR_CANCELLED);
    free_file(&f);
}

static void shapes_that_disagree_with_the_file_are_refused(void **state) {
    (void)state;
    file f = make_file(PITH_TYPE_Q8_0);
    pith_weights *weights;
    const pith_weight *w;
    pith_error error;
    assert_int_equal(pith_weights_new(&weights, NULL), PITH_OK);
    pith_weight_source good = describe(&f, "w", PITH_TYPE_Q8_0, ROWS, EXPERTS), s = good;
    s.bytes--;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_FORMAT);
    s = good;
    s.offset = 1;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "cut short"));
    s = good;
    s.ne[0] = K - 1;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_FORMAT);
    s = good;
    s.ne[3] = UINT64_MAX / 4;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_FORMAT);
    s = good;
    s.ne[1] = 0;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_FORMAT);
    s = good;
    s.type = (pith_type)5;
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_UNSUPPORTED);
    assert_int_equal(pith_weights_add(weights, &good, PITH_WEIGHT_LINEAR, &w, &error), PITH_OK);
    s = describe(&f, "w", PITH_TYPE_Q8_0, ROWS, 1);
    assert_int_equal(pith_weights_add(weights, &s, PITH_WEIGHT_LINEAR, &w, &error),
                     PITH_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "twice"));
    pith_weights_free(weights);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_decode_the_same_in_every_layout),
        cmocka_unit_test(vectors_are_f32_and_padded),
        cmocka_unit_test(limits_of_memory_hold_at_plus_minus_one),
        cmocka_unit_test(room_is_left_for_the_engine),
        cmocka_unit_test(sources_that_cannot_be_mapped_are_packed),
        cmocka_unit_test(damaged_tensors_are_found_when_asked),
        cmocka_unit_test(progress_reaches_the_end_and_can_cancel),
        cmocka_unit_test(shapes_that_disagree_with_the_file_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
