/* SPDX-License-Identifier: Apache-2.0
 * Promises of the decoders: the published vectors of every quantized type that files hold
 * (tests/data/quant), scalars at their edges, the scale bytes of MXFP4 and NVFP4 one by
 * one, and that a source of any alignment decodes the same. */
#include "quant_vectors.h"

#include <math.h>

#include "quant/block.h"

typedef struct vector {
    pith_type type;
    uint32_t in, out; /* CRC of the bytes of 8 blocks, of the f32 values */
    float y[4];       /* first, second, last of block 0, last of block 7 */
} vector;

static const vector vectors[] = {
    {PITH_TYPE_Q4_0, 0x816abda8u, 0x92faf919u, {-1.0f, 7.0f, 0.0f, -1.0f}},
    {PITH_TYPE_Q4_1, 0x9678e9d8u, 0x0c516c73u, {4.25f, 4.25f, 4.25f, 3.25f}},
    {PITH_TYPE_Q5_0, 0x7711d3f3u, 0x90eeeb44u, {14.0f, -16.0f, 7.0f, -7.0f}},
    {PITH_TYPE_Q5_1, 0x55265c3eu, 0x59fb8f62u, {31.25f, 3.25f, 18.25f, 20.25f}},
    {PITH_TYPE_Q8_0, 0xf6ad947eu, 0x84de84a4u, {68.0f, -43.0f, 49.0f, 5.0f}},
    {PITH_TYPE_Q2_K, 0x0b4bf3ffu, 0x7f0f0953u, {-2.5f, -2.5f, -3.75f, 17.5f}},
    {PITH_TYPE_Q3_K, 0xd3640736u, 0x038c00fbu, {12.0f, 24.0f, -48.0f, -62.0f}},
    {PITH_TYPE_Q4_K, 0x86357a18u, 0x64584119u, {43.0f, 40.0f, 52.75f, 385.25f}},
    {PITH_TYPE_Q5_K, 0xc2669e68u, 0x586ee0efu, {503.5f, -2.5f, 70.75f, 1046.25f}},
    {PITH_TYPE_Q6_K, 0x5ab532b6u, 0x80a72e91u, {-1040.0f, -780.0f, -62.0f, 2548.0f}},
    {PITH_TYPE_IQ2_XXS, 0xae9ddb4eu, 0x71eb853fu, {19.0f, 102.125f, 3.0f, -13.0f}},
    {PITH_TYPE_IQ2_XS, 0xebc48043u, 0x4f0e08f1u, {-19.0f, -19.0f, -166.625f, -90.625f}},
    {PITH_TYPE_IQ2_S, 0x85f4701eu, 0xe285be3fu, {17.0f, -53.125f, 46.875f, -7.0f}},
    {PITH_TYPE_IQ3_XXS, 0x8435996fu, 0xe1414db5u, {-21.0f, 63.0f, 13.0f, 63.0f}},
    {PITH_TYPE_IQ3_S, 0x01362f6fu, 0xc28b35bfu, {405.0f, 81.0f, -55.0f, 125.0f}},
    {PITH_TYPE_IQ1_S, 0xc9f5d560u, 0xc4d478bau, {-6.125f, -6.125f, 11.375f, -0.625f}},
    {PITH_TYPE_IQ1_M, 0x48820a23u, 0x0369138cu, {-1.375f, -1.375f, 0.875f, -14.625f}},
    {PITH_TYPE_IQ4_NL, 0xae1fa4a1u, 0xa8d553a9u, {25.0f, -127.0f, 53.0f, -35.0f}},
    {PITH_TYPE_IQ4_XS, 0x0eb7540bu, 0xc378d66bu, {-832.0f, -1016.0f, 120.0f, 195.0f}},
    {PITH_TYPE_TQ1_0, 0x860492c5u, 0xb2fb7501u, {0.0f, 1.0f, 0.0f, 0.0f}},
    {PITH_TYPE_TQ2_0, 0x18863bc3u, 0xaf352c3cu, {0.0f, 2.0f, 2.0f, 2.0f}},
    {PITH_TYPE_MXFP4, 0x40cfd929u, 0x6869e12cu, {0.01171875f, 0.0f, 0.00390625f, 1.0f}},
    {PITH_TYPE_NVFP4, 0x2755024cu, 0x0bcda340u, {0.2109375f, 0.0f, -0.0f, 144.0f}},
    {PITH_TYPE_Q1_0, 0x0d0bc1c4u, 0x4edcb9c3u, {-1.0f, 1.0f, 1.0f, 1.0f}},
    {PITH_TYPE_Q2_0, 0xae0aaa17u, 0xa28cdfa9u, {0.0f, 0.0f, 2.0f, -1.0f}},
};

static void put_f16(uint8_t *block, int at, unsigned bits) {
    block[at] = (uint8_t)(bits & 0xFFu);
    block[at + 1] = (uint8_t)(bits >> 8);
}

/* Scales of block j: d = 1, m or dmin = 0.25, and what the vectors say for the others. */
static void fix_scales(pith_type type, uint8_t *b, int j) {
    switch (type) {
    case PITH_TYPE_Q4_1:
    case PITH_TYPE_Q5_1:
    case PITH_TYPE_Q4_K:
    case PITH_TYPE_Q5_K:
        put_f16(b, 0, 0x3C00);
        put_f16(b, 2, 0x3400);
        break;
    case PITH_TYPE_Q2_K:
        put_f16(b, 80, 0x3C00);
        put_f16(b, 82, 0x3400);
        break;
    case PITH_TYPE_Q3_K: put_f16(b, 108, 0x3C00); break;
    case PITH_TYPE_Q6_K: put_f16(b, 208, 0x3C00); break;
    case PITH_TYPE_TQ1_0: put_f16(b, 52, 0x3C00); break;
    case PITH_TYPE_TQ2_0: put_f16(b, 64, 0x3C00); break;
    case PITH_TYPE_MXFP4: b[0] = (uint8_t)(120 + j); break;
    case PITH_TYPE_NVFP4:
        for (int i = 0; i < 4; i++) b[i] &= 0x7F;
        break;
    case PITH_TYPE_IQ1_M:
        b[49] &= 0x0F;
        b[51] &= 0x0F;
        b[53] = (uint8_t)((b[53] & 0x0F) | 0xC0);
        b[55] = (uint8_t)((b[55] & 0x0F) | 0x30);
        break;
    default: put_f16(b, 0, 0x3C00);
    }
}

static void published_vectors(void **state) {
    (void)state;
    for (uint32_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
        const vector *v = &vectors[k];
        const pith_type_info *info = pith_type_get(v->type);
        static uint8_t bytes[8 * 300 + 1];
        static float y[8 * 256 + 1], again[8 * 256];
        uint32_t lcg = 1000 + k;
        size_t size = 8 * (size_t)info->block_bytes, n = 8 * (size_t)info->block_elems;
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(test_lcg(&lcg) >> 24);
        for (int j = 0; j < 8; j++) fix_scales(v->type, bytes + (uint32_t)j * info->block_bytes, j);
        assert_int_equal(test_crc(0, bytes, size), v->in);
        y[n] = 12345.0f;
        info->decode(bytes, y, n);
        print_message("%-8s out=%08x\n", info->name, test_crc(0, y, n * sizeof *y));
        assert_memory_equal(&y[0], &v->y[0], 4);
        assert_memory_equal(&y[1], &v->y[1], 4);
        assert_memory_equal(&y[info->block_elems - 1], &v->y[2], 4);
        assert_memory_equal(&y[n - 1], &v->y[3], 4);
        assert_int_equal(test_crc(0, y, n * sizeof *y), v->out);
        assert_true(y[n] == 12345.0f); /* nothing past the end */
        memmove(bytes + 1, bytes, size);
        info->decode(bytes + 1, again, n);
        assert_memory_equal(y, again, n * sizeof *y);
    }
}

static void every_f16_and_bf16(void **state) {
    (void)state;
    static uint8_t bytes[2 * 65536];
    static float half[65536], brain[65536];
    for (uint32_t i = 0; i < 65536; i++) put_f16(bytes + 2 * i, 0, i);
    pith_type_get(PITH_TYPE_F16)->decode(bytes, half, 65536);
    pith_type_get(PITH_TYPE_BF16)->decode(bytes, brain, 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        assert_int_equal(pith_bits_of_f32(brain[i]), i << 16);
        assert_int_equal(pith_bits_of_f32(half[i]), pith_bits_of_f32(pith_f32_of_f16((uint16_t)i)));
        int exponent = (int)(i >> 10 & 31), mantissa = (int)(i & 1023);
        if (exponent == 31) {
            assert_true(mantissa ? isnan(half[i]) : isinf(half[i]));
            continue;
        }
        double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        assert_true((double)half[i] == (i >> 15 ? -value : value));
    }
}

static void integers_and_doubles(void **state) {
    (void)state;
    static const uint8_t bytes[8] = {0x00, 0x80, 0xFF, 0x7F, 0x01, 0x00, 0x00, 0x80};
    float y[8];
    pith_type_get(PITH_TYPE_I8)->decode(bytes, y, 8);
    assert_true(y[0] == 0 && y[1] == -128 && y[2] == -1 && y[3] == 127);
    pith_type_get(PITH_TYPE_I16)->decode(bytes, y, 4);
    assert_true(y[0] == -32768 && y[1] == 32767 && y[2] == 1 && y[3] == -32768);
    pith_type_get(PITH_TYPE_I32)->decode(bytes, y, 2);
    assert_true(y[0] == 2147450880.0f && y[1] == -2147483647.0f);
    static const uint8_t lowest[8] = {0, 0, 0, 0, 0, 0, 0, 0x80};
    pith_type_get(PITH_TYPE_I64)->decode(lowest, y, 1);
    assert_true(y[0] == -9223372036854775808.0f);
    static const uint8_t pi[8] = {0x18, 0x2D, 0x44, 0x54, 0xFB, 0x21, 0x09, 0x40};
    pith_type_get(PITH_TYPE_F64)->decode(pi, y, 1);
    assert_true(y[0] == 3.14159274f);
}

static void every_fp4_scale(void **state) {
    (void)state;
    for (int e = 0; e < 256; e++) {
        assert_true((double)pith_f32_of_e8m0_half((uint8_t)e) == ldexp(1, e - 128));
        int exponent = e >> 3 & 15, mantissa = e & 7;
        double want = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
        if ((e & 0x7F) == 0x7F) want = 0;
        assert_true(2 * (double)pith_f32_of_ue4m3_half((uint8_t)e) == want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(every_f16_and_bf16),
        cmocka_unit_test(integers_and_doubles),
        cmocka_unit_test(every_fp4_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
