/* SPDX-License-Identifier: Apache-2.0
 * Promises of the encoders: the published vectors bit for bit (tests/data/quant), with and without
 * importance weights; errors within each type's bound at several magnitudes; zero rows stay zero;
 * weights move the error to where it matters less; hostile input has no undefined behaviour and
 * nothing is written past the row. */
#include "quant_vectors.h"

#include <float.h>
#include <math.h>

typedef struct vector {
    pith_type type;
    bool weighted;
    size_t bytes;
    uint32_t crc;
    float rmse;
    const char *first; /* 16 bytes */
} vector;

static const vector vectors[] = {
    {PITH_TYPE_Q4_0, false, 1152, 0x6f69a47au, 0.030533f, "b3af8f2f8828038c888898868eb7d15d"},
    {PITH_TYPE_Q4_0, true, 1152, 0x1b7d0052u, 0.028379f, "2eb08f2f8828148c888898878eb7c25d"},
    {PITH_TYPE_Q4_1, false, 1280, 0xd4fe4d0bu, 0.032044f, "1930aabb71e077d8fc84777778798158"},
    {PITH_TYPE_Q4_1, true, 1280, 0xe2e020bdu, 0.027007f, "303044bb70d077d7eb73777767787148"},
    {PITH_TYPE_Q5_0, false, 1408, 0x4d16d05au, 0.015081f, "b3abefa5c5db0f3f004007f80000100d"},
    {PITH_TYPE_Q5_0, true, 1408, 0xefc25b82u, 0.014111f, "10acefa5c5db0e4e004017f70000100d"},
    {PITH_TYPE_Q5_1, false, 1536, 0xb2698f34u, 0.015604f, "ee2baabb185b3a24f1c1ffb0f808ffff"},
    {PITH_TYPE_Q5_1, true, 1536, 0x5458afb0u, 0.012939f, "102ca6bb105a3a24f1b1ffbfe808ffff"},
    {PITH_TYPE_Q8_0, false, 2176, 0x7b07a7e3u, 0.001944f, "c31f8c89000349c300000118990f6bae"},
    {PITH_TYPE_Q8_0, true, 2176, 0x7b07a7e3u, 0.001944f, "c31f8c89000349c300000118990f6bae"},
    {PITH_TYPE_Q2_K, false, 672, 0x32902362u, 0.138428f, "ecfeec47778888ff4966fbe98b59fd56"},
    {PITH_TYPE_Q2_K, true, 672, 0x70a75963u, 0.104914f, "ccffed48566878ae5a6aecd87c5adb46"},
    {PITH_TYPE_Q3_K, false, 880, 0xcda28af8u, 0.052575f, "e6deffdfd5fa8befdf7fb61bdf5ce7df"},
    {PITH_TYPE_Q3_K, true, 880, 0x18199c55u, 0.050373f, "e6deff9fd5f28befdf7fb61bdf5ce7df"},
    {PITH_TYPE_Q4_K, false, 1152, 0xf2914544u, 0.027373f, "5318fb23bef9e2ff7afba1ffc9f421c5"},
    {PITH_TYPE_Q4_K, true, 1152, 0xc251b2bfu, 0.027061f, "5418ff23bef9e2ff7afca1fec9f421b5"},
    {PITH_TYPE_Q5_K, false, 1408, 0x2b0cc81fu, 0.014089f, "48140f24bcf5a4ff7cfaa2ffd9f02fc4"},
    {PITH_TYPE_Q5_K, true, 1408, 0x256874d3u, 0.013441f, "31140324bef8e5ff7dfba3ffeaf330d5"},
    {PITH_TYPE_Q6_K, false, 1680, 0xe165db4cu, 0.006489f, "42e1e0e1f3d000f0e0660574fcdb22f0"},
    {PITH_TYPE_Q6_K, true, 1680, 0x52f3c87du, 0.006350f, "42e1e0f1f3c000f0f0660574fcdb22f0"},
    {PITH_TYPE_IQ4_NL, false, 1152, 0x7a2919afu, 0.026711f, "1da08f1f8828038c888898867eb7d14d"},
    {PITH_TYPE_IQ4_NL, true, 1152, 0xddb8ffe4u, 0.026499f, "22a08f1f8828038c888898867eb7d14d"},
    {PITH_TYPE_IQ4_XS, false, 1088, 0x8e5f132du, 0.027022f, "350c0cccb10de6d38f1f8828038c8888"},
    {PITH_TYPE_IQ4_XS, true, 1088, 0x09020a6cu, 0.026871f, "370c0cccb10de6d28f1f8828038c8888"},
    {PITH_TYPE_TQ1_0, false, 432, 0x3ec9620au, 0.212074f, "2c2b809cb98081809c802780d52b9d83"},
    {PITH_TYPE_TQ1_0, true, 432, 0x3ec9620au, 0.212074f, "2c2b809cb98081809c802780d52b9d83"},
    {PITH_TYPE_TQ2_0, false, 528, 0x1d23ccd2u, 0.212074f, "54545559525555555955145556545995"},
    {PITH_TYPE_TQ2_0, true, 528, 0x1d23ccd2u, 0.212074f, "54545559525555555955145556545995"},
    {PITH_TYPE_MXFP4, false, 1088, 0x1f4a0b2cu, 0.054136f, "7c0f7f0070761e000090031fd2e75e91"},
    {PITH_TYPE_MXFP4, true, 1088, 0x1f4a0b2cu, 0.054136f, "7c0f7f0070761e000090031fd2e75e91"},
    {PITH_TYPE_NVFP4, false, 1152, 0xf3b730acu, 0.036467f, "2222221d0f2fe01076ed1000900610c6"},
    {PITH_TYPE_NVFP4, true, 1152, 0xf3b730acu, 0.036467f, "2222221d0f2fe01076ed1000900610c6"},
    {PITH_TYPE_Q1_0, false, 288, 0xb2b001f0u, 0.284785f, "05349c5b3a242cdf3a6e1967bf6d46bb"},
    {PITH_TYPE_Q1_0, true, 288, 0xb2b001f0u, 0.284785f, "05349c5b3a242cdf3a6e1967bf6d46bb"},
    {PITH_TYPE_Q2_0, false, 576, 0xf0cbc34fu, 0.201517f, "b33b5056455299565514955456655555"},
    {PITH_TYPE_Q2_0, true, 576, 0xf0cbc34fu, 0.201517f, "b33b5056455299565514955456655555"},
};

enum { N = 2048, COLUMNS = 1024, MAX_BYTES = 8 * N };
static float input[N], weights[COLUMNS], output[N];
static uint8_t bytes[MAX_BYTES + 64], other[MAX_BYTES + 64];

static void make_input(void) {
    uint32_t s = 12345;
    for (int i = 0; i < N; i++) {
        float f = test_uniform(&s), g = f * f;
        input[i] = g * f;
    }
    s = 54321;
    for (int i = 0; i < COLUMNS; i++) {
        weights[i] = 0.5f + (float)(test_lcg(&s) >> 16 & 255u) / 256.0f;
    }
}

/* Two rows of 1024 columns. Returns their bytes. */
static size_t encode_rows(pith_type type, const float *w) {
    const pith_type_info *info = pith_type_get(type);
    uint64_t row;
    assert_true(pith_type_row_bytes(type, COLUMNS, &row));
    info->encode(input, bytes, COLUMNS, w);
    info->encode(input + COLUMNS, bytes + row, COLUMNS, w);
    return 2 * (size_t)row;
}

static double rmse_of(const float *x, const float *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double e = (double)x[i] - (double)y[i];
        sum += e * e;
    }
    return sqrt(sum / (double)n);
}

static void published_vectors(void **state) {
    (void)state;
    make_input();
    assert_int_equal(test_crc(0, input, sizeof input), 0x61d106abu);
    assert_int_equal(test_crc(0, weights, sizeof weights), 0x914aa729u);
    int wrong = 0;
    for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
        const vector *v = &vectors[k];
        const char *text = v->first, *name = pith_type_get(v->type)->name;
        uint8_t first[16];
        assert_int_equal(test_hex_read(&text, first, sizeof first), 16);
        size_t size = encode_rows(v->type, v->weighted ? weights : NULL);
        assert_int_equal(size, v->bytes);
        pith_type_get(v->type)->decode(bytes, output, N);
        double rmse = rmse_of(input, output, N);
        bool right = test_crc(0, bytes, size) == v->crc && memcmp(bytes, first, 16) == 0 &&
                     fabs(rmse - (double)v->rmse) < 1e-6;
        if (!right) {
            print_message("%s %s: crc %08x, not %08x; rmse %f, not %f\n", name,
                          v->weighted ? "weighted" : "plain", test_crc(0, bytes, size), v->crc,
                          rmse, (double)v->rmse);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Largest RMSE of a round trip over the RMS of a row of normal values. */
static const struct {
    pith_type type;
    double limit;
} bounds[] = {
    {PITH_TYPE_F16, 0.00025},   {PITH_TYPE_BF16, 0.0019}, {PITH_TYPE_Q4_0, 0.0950},
    {PITH_TYPE_Q4_1, 0.0860},   {PITH_TYPE_Q5_0, 0.0480}, {PITH_TYPE_Q5_1, 0.0420},
    {PITH_TYPE_Q8_0, 0.0059},   {PITH_TYPE_Q8_1, 0.0059}, {PITH_TYPE_Q2_K, 0.32},
    {PITH_TYPE_Q3_K, 0.163},    {PITH_TYPE_Q4_K, 0.0780}, {PITH_TYPE_Q5_K, 0.0395},
    {PITH_TYPE_Q6_K, 0.0198},   {PITH_TYPE_Q8_K, 0.0075}, {PITH_TYPE_IQ4_NL, 0.0850},
    {PITH_TYPE_IQ4_XS, 0.0860}, {PITH_TYPE_TQ1_0, 0.89},  {PITH_TYPE_TQ2_0, 0.89},
    {PITH_TYPE_MXFP4, 0.125},   {PITH_TYPE_NVFP4, 0.14},  {PITH_TYPE_Q1_0, 0.66},
    {PITH_TYPE_Q2_0, 0.81},
};

static void normal_rows_stay_within_bounds(void **state) {
    (void)state;
    static const float magnitudes[] = {1e-2f, 1.0f, 300.0f};
    int wrong = 0;
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        const pith_type_info *info = pith_type_get(bounds[k].type);
        for (int m = 0; m < 3; m++) {
            uint32_t seed = 7 + (uint32_t)m;
            for (int i = 0; i < N; i++) input[i] = magnitudes[m] * test_normal(&seed);
            info->encode(input, bytes, N, NULL);
            assert_int_equal(pith_type_validate(bounds[k].type, bytes, N), -1);
            info->decode(bytes, output, N);
            double error = rmse_of(input, output, N) / (double)magnitudes[m];
            if (error > bounds[k].limit || error < bounds[k].limit / 3) {
                print_message("%s at %g: %f, limit %f\n", info->name, (double)magnitudes[m], error,
                              bounds[k].limit);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* The largest error of a legacy block is half a step, or one step at the end that has no code. */
static void legacy_errors_are_within_a_step(void **state) {
    (void)state;
    static const struct {
        pith_type type;
        float step, room; /* step over largest magnitude (or range), steps of error allowed */
    } rows[] = {{PITH_TYPE_Q4_0, 1 / 8.0f, 1.0f},   {PITH_TYPE_Q5_0, 1 / 16.0f, 1.0f},
                {PITH_TYPE_Q4_1, 2 / 15.0f, 0.5f},  {PITH_TYPE_Q5_1, 2 / 31.0f, 0.5f},
                {PITH_TYPE_Q8_0, 1 / 127.0f, 0.5f}, {PITH_TYPE_Q8_1, 1 / 127.0f, 0.5f},
                {PITH_TYPE_Q8_K, 1 / 127.0f, 1.0f}, {PITH_TYPE_TQ2_0, 1.0f, 0.5f},
                {PITH_TYPE_TQ1_0, 1.0f, 0.5f}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const pith_type_info *info = pith_type_get(rows[k].type);
        uint32_t seed = 99;
        for (int i = 0; i < N; i++) input[i] = test_uniform(&seed);
        info->encode(input, bytes, N, NULL);
        info->decode(bytes, output, N);
        float allowed = rows[k].step * rows[k].room + 1e-3f; /* 1e-3: scale rounded to f16 */
        for (int i = 0; i < N; i++) {
            if (fabsf(input[i] - output[i]) > allowed) {
                fail_msg("%s element %d: %f gave %f, more than %f off", info->name, i,
                         (double)input[i], (double)output[i], (double)allowed);
            }
        }
    }
}

static bool is_float(pith_type type) {
    return type == PITH_TYPE_F32 || type == PITH_TYPE_F16 || type == PITH_TYPE_BF16 ||
           type == PITH_TYPE_F64;
}

static void zero_rows_stay_zero(void **state) {
    (void)state;
    memset(input, 0, sizeof input);
    for (int i = 0; i < COLUMNS; i++) weights[i] = 1.0f;
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        const pith_type_info *info = pith_type_get(id);
        if (info == NULL || info->encode == NULL) continue;
        for (int weighted = 0; weighted < 2; weighted++) {
            memset(bytes, 0xA5, sizeof bytes);
            info->encode(input, bytes, COLUMNS, weighted ? weights : NULL);
            assert_int_equal(pith_type_validate((pith_type)id, bytes, COLUMNS), -1);
            info->decode(bytes, output, COLUMNS);
            for (int i = 0; i < COLUMNS; i++) {
                if (output[i] != 0.0f) fail_msg("%s: %g at %d", info->name, (double)output[i], i);
            }
        }
    }
}

/* Rows in which each value is one that the type holds exactly come back as they were. */
static void what_fits_is_kept(void **state) {
    (void)state;
    static const float fp4[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < N; i++) input[i] = (i & 8 ? -1.0f : 1.0f) * fp4[i % 8];
    pith_type_get(PITH_TYPE_MXFP4)->encode(input, bytes, N, NULL);
    pith_type_get(PITH_TYPE_MXFP4)->decode(bytes, output, N);
    for (int i = 0; i < N; i++) assert_true(input[i] == output[i]);
    pith_type_get(PITH_TYPE_NVFP4)->encode(input, bytes, N, NULL);
    pith_type_get(PITH_TYPE_NVFP4)->decode(bytes, output, N);
    for (int i = 0; i < N; i++) assert_true(input[i] == output[i]);
    uint32_t seed = 5;
    for (int i = 0; i < N; i++) input[i] = 0.5f * (float)((int)(test_lcg(&seed) >> 24) % 3 - 1);
    static const pith_type ternary[] = {PITH_TYPE_TQ1_0, PITH_TYPE_TQ2_0, PITH_TYPE_Q2_0};
    for (int k = 0; k < 3; k++) {
        pith_type_get(ternary[k])->encode(input, bytes, N, NULL);
        pith_type_get(ternary[k])->decode(bytes, output, N);
        for (int i = 0; i < N; i++) assert_true(input[i] == output[i]);
    }
    for (int i = 0; i < N; i++) input[i] = (float)(i % 255 - 127);
    for (uint32_t id = PITH_TYPE_I8; id <= PITH_TYPE_F64; id++) {
        pith_type_get(id)->encode(input, bytes, N, NULL);
        pith_type_get(id)->decode(bytes, output, N);
        for (int i = 0; i < N; i++) assert_true(input[i] == output[i]);
    }
}

static void integers_saturate(void **state) {
    (void)state;
    static const float x[6] = {2.5f, -3.5f, 1e30f, -1e30f, NAN, 0.75f};
    float y[6];
    static const double top[4] = {127, 32767, 2147483647, 9223372036854775807.0};
    for (uint32_t k = 0; k < 4; k++) {
        const pith_type_info *info = pith_type_get(PITH_TYPE_I8 + k);
        info->encode(x, bytes, 6, NULL);
        info->decode(bytes, y, 6);
        assert_true(y[0] == 2 && y[1] == -4 && y[4] == 0 && y[5] == 1);
        assert_true(y[2] == (float)top[k] && y[3] == (float)(-top[k] - 1));
    }
}

static double weighted_error(const pith_type_info *info, const float *w) {
    double sum = 0;
    info->encode(input, bytes, COLUMNS, w);
    info->decode(bytes, output, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        double e = (double)input[i] - (double)output[i];
        sum += (double)weights[i] * e * e;
    }
    return sum;
}

static void weights_lower_the_weighted_error(void **state) {
    (void)state;
    static const pith_type searched[] = {PITH_TYPE_Q4_0,   PITH_TYPE_Q4_1,  PITH_TYPE_Q5_0,
                                         PITH_TYPE_Q5_1,   PITH_TYPE_Q2_K,  PITH_TYPE_Q3_K,
                                         PITH_TYPE_Q4_K,   PITH_TYPE_Q5_K,  PITH_TYPE_Q6_K,
                                         PITH_TYPE_IQ4_NL, PITH_TYPE_IQ4_XS};
    uint32_t seed = 31337;
    for (int i = 0; i < COLUMNS; i++) {
        input[i] = test_normal(&seed);
        weights[i] = expf(2.0f * test_normal(&seed));
    }
    for (size_t k = 0; k < sizeof searched / sizeof *searched; k++) {
        const pith_type_info *info = pith_type_get(searched[k]);
        double plain = weighted_error(info, NULL), weighted = weighted_error(info, weights);
        if (!(weighted < plain)) {
            fail_msg("%s: weighted error %g with weights, %g without", info->name, weighted, plain);
        }
    }
}

/* Each value in turn, alone and all over, with ordinary, zero and absurd weights. */
static void hostile_input_is_harmless(void **state) {
    (void)state;
    static const float values[] = {NAN,    INFINITY, -INFINITY, FLT_MAX,      -FLT_MAX, FLT_MIN,
                                   1e-45f, -0.0f,    1e-20f,    65504.0f * 8, 1e30f};
    static const float weight_values[] = {1.0f, 0.0f, FLT_MAX, 1e-45f, NAN, -1.0f};
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        const pith_type_info *info = pith_type_get(id);
        if (info == NULL || info->encode == NULL) continue;
        uint64_t row;
        assert_true(pith_type_row_bytes((pith_type)id, 512, &row));
        for (size_t k = 0; k < 6 * sizeof values / sizeof *values * 3; k++) {
            float value = values[k / 18], w = weight_values[k % 6];
            uint32_t seed = 1;
            for (int i = 0; i < 512; i++) {
                bool placed = k / 6 % 3 == 0 || (k / 6 % 3 == 1 ? i % 97 == 3 : i == 511);
                input[i] = placed ? value : test_normal(&seed);
                weights[i] = w;
            }
            memset(bytes + row, 0x5A, 64);
            info->encode(input, bytes, 512, k % 6 ? weights : NULL);
            for (int i = 0; i < 64; i++) assert_int_equal(bytes[row + (uint64_t)i], 0x5A);
            info->decode(bytes, output, 512);
            int hit = k / 6 % 3 == 1 ? 3 : 511;
            if (is_float((pith_type)id) && isnan(value)) assert_true(isnan(output[hit]));
        }
    }
}

/* A block's bytes depend on its own values only (plain), and any alignment of dst will do. */
static void blocks_are_independent(void **state) {
    (void)state;
    uint32_t seed = 4242;
    for (int i = 0; i < N; i++) input[i] = test_normal(&seed);
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        const pith_type_info *info = pith_type_get(id);
        if (info == NULL || info->encode == NULL) continue;
        info->encode(input, bytes, N, NULL);
        size_t at = 1;
        for (size_t i = 0; i < N; i += info->block_elems, at += info->block_bytes) {
            info->encode(input + i, other + at, info->block_elems, NULL);
        }
        assert_memory_equal(bytes, other + 1, at - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(normal_rows_stay_within_bounds),
        cmocka_unit_test(legacy_errors_are_within_a_step),
        cmocka_unit_test(zero_rows_stay_zero),
        cmocka_unit_test(what_fits_is_kept),
        cmocka_unit_test(integers_saturate),
        cmocka_unit_test(weights_lower_the_weighted_error),
        cmocka_unit_test(hostile_input_is_harmless),
        cmocka_unit_test(blocks_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
