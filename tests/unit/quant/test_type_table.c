/* SPDX-License-Identifier: Apache-2.0
 * Promises of the type table: ids, names and sizes are the format's (the list below is written
 * from the format, not from block.h); removed and unknown ids are refused; every type decodes;
 * row sizes never wrap. More row sizes: tests/data/quant/row_bytes.txt in test_quant_golden.c. */
#include "quant_vectors.h"

static const struct {
    uint32_t id;
    const char *name;
    uint32_t elems, bytes;
} rows[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert(ROWS == 35, "43 ids less 8 that were removed");

static void sizes_and_names(void **state) {
    (void)state;
    int known = 0;
    for (uint32_t id = 0; id < 1000; id++) known += pith_type_get(id) != NULL;
    assert_int_equal(known, ROWS);
    for (int k = 0; k < ROWS; k++) {
        const pith_type_info *info = pith_type_get(rows[k].id);
        assert_non_null(info);
        assert_string_equal(info->name, rows[k].name);
        assert_int_equal(info->block_elems, rows[k].elems);
        assert_int_equal(info->block_bytes, rows[k].bytes);
        assert_int_equal(info->is_quantized, rows[k].elems > 1);
        assert_non_null((void *)(uintptr_t)info->decode);
    }
}

static void unknown_ids_are_refused(void **state) {
    (void)state;
    static const uint32_t gone[] = {4,  5,  31, 32,  33,          36,        37,
                                    38, 43, 97, 200, 0x80000000u, UINT32_MAX};
    for (size_t k = 0; k < sizeof gone / sizeof *gone; k++) {
        uint64_t size = 77;
        assert_null(pith_type_get(gone[k]));
        assert_false(pith_type_row_bytes((pith_type)gone[k], 256, &size));
    }
}

static void names_are_found_in_any_case(void **state) {
    (void)state;
    pith_type type;
    for (int k = 0; k < ROWS; k++) {
        char lower[16] = "";
        for (int i = 0; rows[k].name[i] != '\0'; i++) {
            char c = rows[k].name[i];
            lower[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        }
        assert_true(pith_type_find(rows[k].name, &type));
        assert_int_equal(type, rows[k].id);
        assert_true(pith_type_find(lower, &type));
        assert_int_equal(type, rows[k].id);
    }
    static const char *const wrong[] = {"", "Q", "Q4", "Q4_", "Q4_K_M", "Q4_K ", " Q4_K", "F16\n"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_false(pith_type_find(wrong[k], &type));
    }
}

static void what_weights_may_be(void **state) {
    (void)state;
    static const pith_type never[] = {PITH_TYPE_Q8_1, PITH_TYPE_Q8_K, PITH_TYPE_I8, PITH_TYPE_I16,
                                      PITH_TYPE_I32,  PITH_TYPE_I64,  PITH_TYPE_F64};
    int weights = 0;
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        weights += pith_type_get(id) != NULL && pith_type_get(id)->is_weight;
    }
    assert_int_equal(weights, ROWS - 7);
    for (int k = 0; k < 7; k++) assert_false(pith_type_get(never[k])->is_weight);
}

static void only_grid_types_lack_an_encoder(void **state) {
    (void)state;
    for (int k = 0; k < ROWS; k++) {
        bool grid = strncmp(rows[k].name, "IQ", 2) == 0 && rows[k].name[2] != '4';
        assert_int_equal(pith_type_get(rows[k].id)->encode == NULL, grid);
    }
}

static void row_sizes_do_not_wrap(void **state) {
    (void)state;
    uint64_t size = 0;
    assert_true(pith_type_row_bytes(PITH_TYPE_Q4_K, 0, &size));
    assert_int_equal(size, 0);
    assert_true(pith_type_row_bytes(PITH_TYPE_Q4_K, 4096, &size));
    assert_int_equal(size, 2304);
    assert_false(pith_type_row_bytes(PITH_TYPE_Q4_K, 4096 - 1, &size));
    assert_false(pith_type_row_bytes(PITH_TYPE_Q4_K, 4096 + 1, &size));
    assert_false(pith_type_row_bytes(PITH_TYPE_Q4_K, 128, &size));
    assert_true(pith_type_row_bytes(PITH_TYPE_F32, UINT64_MAX / 4, &size));
    assert_true(size == UINT64_MAX - 3);
    assert_false(pith_type_row_bytes(PITH_TYPE_F32, UINT64_MAX / 4 + 1, &size));
    assert_true(pith_type_row_bytes(PITH_TYPE_I8, UINT64_MAX, &size));
    assert_true(size == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_names),
        cmocka_unit_test(unknown_ids_are_refused),
        cmocka_unit_test(names_are_found_in_any_case),
        cmocka_unit_test(what_weights_may_be),
        cmocka_unit_test(only_grid_types_lack_an_encoder),
        cmocka_unit_test(row_sizes_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
