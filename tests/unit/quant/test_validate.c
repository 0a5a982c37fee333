/* SPDX-License-Identifier: Apache-2.0
 * Promises of pith_type_validate: a row of whole good blocks passes; one scale of any block made
 * inf or NaN is found, in the first bad block, for every f16 field of every type (offsets here
 * are the format's, not taken from block.h); integers and unknown bytes elsewhere never matter. */
#include "quant_vectors.h"

#include <math.h>

static const struct {
    pith_type type;
    int fields[2]; /* byte offsets of f16 fields; -1: none */
} rows[] = {
    {PITH_TYPE_F16, {0, -1}},    {PITH_TYPE_Q4_0, {0, -1}},    {PITH_TYPE_Q4_1, {0, 2}},
    {PITH_TYPE_Q5_0, {0, -1}},   {PITH_TYPE_Q5_1, {0, 2}},     {PITH_TYPE_Q8_0, {0, -1}},
    {PITH_TYPE_Q8_1, {0, 2}},    {PITH_TYPE_Q2_K, {80, 82}},   {PITH_TYPE_Q3_K, {108, -1}},
    {PITH_TYPE_Q4_K, {0, 2}},    {PITH_TYPE_Q5_K, {0, 2}},     {PITH_TYPE_Q6_K, {208, -1}},
    {PITH_TYPE_IQ1_S, {0, -1}},  {PITH_TYPE_IQ2_XXS, {0, -1}}, {PITH_TYPE_IQ2_XS, {0, -1}},
    {PITH_TYPE_IQ2_S, {0, -1}},  {PITH_TYPE_IQ3_XXS, {0, -1}}, {PITH_TYPE_IQ3_S, {0, -1}},
    {PITH_TYPE_IQ4_NL, {0, -1}}, {PITH_TYPE_IQ4_XS, {0, -1}},  {PITH_TYPE_TQ1_0, {52, -1}},
    {PITH_TYPE_TQ2_0, {64, -1}}, {PITH_TYPE_Q1_0, {0, -1}},    {PITH_TYPE_Q2_0, {0, -1}},
};

enum { BLOCKS = 5 };
static uint8_t bytes[BLOCKS * 300];

/* Bytes FF where nothing is checked, so that a check of the wrong place is seen; scales 1. */
static void fill(const pith_type_info *info, const int fields[2]) {
    memset(bytes, 0xFF, sizeof bytes);
    for (uint32_t j = 0; j < BLOCKS; j++) {
        for (int f = 0; f < 2 && fields[f] >= 0; f++) {
            memcpy(bytes + j * info->block_bytes + fields[f], "\x00\x3C", 2);
        }
    }
}

static void bad_f16_fields_are_found(void **state) {
    (void)state;
    static const uint8_t bad[4][2] = {{0x00, 0x7C}, {0x00, 0xFC}, {0x01, 0x7C}, {0xFF, 0xFF}};
    static const uint8_t good[2][2] = {{0xFF, 0x7B}, {0x00, 0x80}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        pith_type type = rows[k].type;
        const pith_type_info *info = pith_type_get(type);
        size_t n = BLOCKS * (size_t)info->block_elems;
        for (uint32_t probe = 0; probe < BLOCKS * 2 * 6; probe++) {
            uint32_t j = probe / 12;
            int at = rows[k].fields[probe / 6 % 2];
            if (at < 0) continue;
            fill(info, rows[k].fields);
            assert_int_equal(pith_type_validate(type, bytes, n), -1);
            bool is_bad = probe % 6 < 4;
            memcpy(bytes + j * info->block_bytes + at,
                   is_bad ? bad[probe % 6] : good[probe % 6 - 4], 2);
            int64_t found = pith_type_validate(type, bytes, n);
            if (found != (is_bad ? (int64_t)j : -1)) {
                fail_msg("%s block %u: validate said %lld", info->name, j, (long long)found);
            }
            /* a shorter row does not see the bad block */
            assert_int_equal(pith_type_validate(type, bytes, j * info->block_elems), -1);
        }
    }
}

static void floats_must_be_finite(void **state) {
    (void)state;
    static const pith_type types[] = {PITH_TYPE_F32, PITH_TYPE_F64, PITH_TYPE_F16, PITH_TYPE_BF16};
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int t = 0; t < 4; t++) {
        const pith_type_info *info = pith_type_get(types[t]);
        for (int k = 0; k < 9; k++) {
            float x[9] = {0, -0.0f, 1e-30f, -1, 2, 3.5f, -60000, 7, 8};
            info->encode(x, bytes, 9, NULL);
            assert_int_equal(pith_type_validate(types[t], bytes, 9), -1);
            x[k] = bad[k % 3];
            x[8] = NAN; /* the first bad one counts */
            info->encode(x, bytes, 9, NULL);
            assert_int_equal(pith_type_validate(types[t], bytes, 9), k);
        }
    }
    for (int t = 0; t < 4;
         t++) { /* rows longer than a chunk of the check, bad at either side of it */
        const pith_type_info *info = pith_type_get(types[t]);
        static const size_t at[] = {0, 62, 63, 64, 65, 127, 128, 149};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            float x[150] = {0};
            x[at[k]] = -INFINITY;
            info->encode(x, bytes, 150, NULL);
            assert_int_equal(pith_type_validate(types[t], bytes, 150), (int64_t)at[k]);
            assert_int_equal(pith_type_validate(types[t], bytes, at[k]), -1);
        }
    }
    const pith_type_info *half = pith_type_get(PITH_TYPE_F16);
    half->encode((const float[]){65519.9f, 65520.0f}, bytes, 2, NULL); /* the second becomes inf */
    assert_int_equal(pith_type_validate(PITH_TYPE_F16, bytes, 2), 1);
}

static void special_scales(void **state) {
    (void)state;
    memset(bytes, 0xFF, sizeof bytes);
    bytes[0] = 0xFE;
    assert_int_equal(pith_type_validate(PITH_TYPE_MXFP4, bytes, 64), 1);
    bytes[17] = 0;
    assert_int_equal(pith_type_validate(PITH_TYPE_MXFP4, bytes, 64), -1);
    assert_int_equal(pith_type_validate(PITH_TYPE_NVFP4, bytes, 128), -1); /* 7F reads as 0 */

    memset(bytes, 0, sizeof bytes); /* IQ1_M: the f16 7C00 out of four top nibbles */
    bytes[53] = 0xC0;
    assert_int_equal(pith_type_validate(PITH_TYPE_IQ1_M, bytes, 256), -1);
    bytes[55] = 0x7F;
    assert_int_equal(pith_type_validate(PITH_TYPE_IQ1_M, bytes, 256), 0);
    bytes[55] = 0x3F;
    assert_int_equal(pith_type_validate(PITH_TYPE_IQ1_M, bytes, 256), -1);

    memset(bytes, 0, sizeof bytes); /* Q8_K: f32 d */
    memcpy(bytes + 292, "\x00\x00\x80\x7F", 4);
    assert_int_equal(pith_type_validate(PITH_TYPE_Q8_K, bytes, 512), 1);
    bytes[294] = 0x7F;
    assert_int_equal(pith_type_validate(PITH_TYPE_Q8_K, bytes, 512), -1);
}

static void integers_pass_and_unknown_types_fail(void **state) {
    (void)state;
    memset(bytes, 0xFF, sizeof bytes);
    for (uint32_t id = PITH_TYPE_I8; id <= PITH_TYPE_I64; id++) {
        assert_int_equal(pith_type_validate((pith_type)id, bytes, 100), -1);
    }
    assert_int_equal(pith_type_validate((pith_type)4, bytes, 32), 0);
    assert_int_equal(pith_type_validate(PITH_TYPE_COUNT, bytes, 32), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_f16_fields_are_found),
        cmocka_unit_test(floats_must_be_finite),
        cmocka_unit_test(special_scales),
        cmocka_unit_test(integers_pass_and_unknown_types_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
