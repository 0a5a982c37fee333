/* SPDX-License-Identifier: Apache-2.0
 * Reading: the reference file byte for byte, every value type, the typed reader, and files that are wrong in one way
 * each, which are refused with a sentence that names the place and the numbers. */
#define _XOPEN_SOURCE 700 /* mkdir, getpid */

#include "gguf_bytes.h"
#include "support/gguf_walk.h"

static void reads_the_reference_file(void **state) {
    (void)state;
    size_t size;
    const uint8_t *file = b3_file(&size);
    assert_int_equal(size, 352);
    pith_error error;
    pith_gguf *gguf = open_both(file, size, &error);
    assert_non_null(gguf);
    assert_int_equal(pith_gguf_version(gguf), 3);
    assert_int_equal(pith_gguf_alignment(gguf), 32);
    assert_int_equal(pith_gguf_n_shards(gguf), 1);
    assert_int_equal(pith_gguf_n_values(gguf), 4);
    assert_int_equal(pith_gguf_n_tensors(gguf), 2);
    assert_non_null(pith_gguf_source(gguf, 0));
    assert_null(pith_gguf_source(gguf, 1));

    pith_span text;
    bool found;
    assert_int_equal(pith_gguf_get_string(gguf, "general.architecture", &text, &found, &error),
                     PITH_OK);
    assert_true(found && pith_span_is(text, "llama"));
    assert_int_equal(text.data[5], 0);
    const pith_gguf_value *strings = pith_gguf_value_find(gguf, "x.s");
    assert_int_equal(strings->n_items, 2);
    assert_true(pith_span_is(strings->strings[0], "hi"));
    assert_true(pith_span_is(strings->strings[1], ""));
    assert_string_equal(pith_gguf_kind_text(strings), "arr[str]");
    assert_int_equal(strings->size, 8 + 2 + 8);

    const pith_gguf_tensor *a = pith_gguf_tensor_find(gguf, "a.weight");
    assert_ptr_equal(a, pith_gguf_tensor_at(gguf, 0));
    assert_string_equal(a->name.data, "a.weight");
    assert_int_equal(a->type, PITH_TYPE_F32);
    assert_int_equal(a->n_dims, 2);
    assert_int_equal(a->ne[0], 3);
    assert_int_equal(a->ne[1], 2);
    assert_int_equal(a->ne[2], 1);
    assert_int_equal(a->ne[3], 1);
    assert_int_equal(a->offset, 0x100);
    assert_int_equal(a->bytes, 24);
    float values[6];
    assert_int_equal(pith_gguf_tensor_read(gguf, a, 0, values, sizeof values, &error), PITH_OK);
    for (int i = 0; i < 6; i++) assert_true(values[i] == (float)i);
    const pith_gguf_tensor *b = pith_gguf_tensor_find(gguf, "b");
    assert_int_equal(b->type, PITH_TYPE_Q8_0);
    assert_int_equal(b->offset, 0x120);
    assert_int_equal(b->bytes, 34);
    assert_null(pith_gguf_tensor_find(gguf, "c"));
    assert_null(pith_gguf_tensor_at(gguf, 2));
    assert_null(pith_gguf_value_at(gguf, 4));
    assert_null(pith_gguf_value_find(gguf, "x"));
    pith_gguf_close(gguf);
}

static void reads_parts_of_tensors_and_no_more(void **state) {
    (void)state;
    size_t size;
    const uint8_t *file = b3_file(&size);
    pith_error error;
    pith_gguf *gguf = open_both(file, size, &error);
    const pith_gguf_tensor *b = pith_gguf_tensor_find(gguf, "b");
    uint8_t part[40];
    assert_int_equal(pith_gguf_tensor_read(gguf, b, 33, part, 1, &error), PITH_OK);
    assert_int_equal(part[0], 31);
    assert_int_equal(pith_gguf_tensor_read(gguf, b, 34, part, 0, &error), PITH_OK);
    assert_int_equal(pith_gguf_tensor_read(gguf, b, 34, part, 1, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_tensor_read(gguf, b, 0, part, 35, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_tensor_read(gguf, b, UINT64_MAX, part, 1, &error),
                     PITH_ERROR_ARGUMENT);
    assert_string_equal(
        error.text, "tensor \"b\": 1 bytes from 18446744073709551615 were asked for, it has 34");
    pith_gguf_close(gguf);
}

/* One key of each scalar type, then one array of each type, and no tensors. */
static void put_all_types(pith_buffer *file) {
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    static const uint64_t bits[] = {200,
                                    0xFE,
                                    60000,
                                    0xFFFE,
                                    4000000000u,
                                    0xFFFFFFFEu,
                                    0x3FC00000u,
                                    1,
                                    0,
                                    0,
                                    UINT64_C(1) << 40,
                                    UINT64_MAX - 1,
                                    UINT64_C(0xBFF8000000000000)};
    char key[16];
    put_preamble(file, 3, 0, 12 + 13);
    for (uint32_t kind = 0; kind <= 12; kind++) {
        if (kind == PITH_GGUF_ARRAY) continue;
        snprintf(key, sizeof key, "scalar.%u", kind);
        put_key(file, key, kind);
        if (kind == PITH_GGUF_STRING)
            put_text(file, "text");
        else
            put(file, bits[kind], sizes[kind]);
    }
    for (uint32_t kind = 0; kind <= 12; kind++) {
        if (kind == PITH_GGUF_ARRAY) continue;
        snprintf(key, sizeof key, "array.%u", kind);
        put_array(file, key, kind, 3);
        for (int i = 0; i < 3 && kind == PITH_GGUF_STRING; i++)
            put_text(file, i == 1 ? "" : "item");
        for (int i = 0; i < 3 && kind != PITH_GGUF_STRING; i++)
            put(file, i == 1 ? bits[kind] : 0, sizes[kind]);
    }
    put_array(file, "array.empty", PITH_GGUF_U32, 0);
}

static void reads_every_value_type(void **state) {
    (void)state;
    static const char *const kinds[] = {"u8",   "i8",  "u16", "i16", "u32", "i32", "f32",
                                        "bool", "str", NULL,  "u64", "i64", "f64"};
    static const double numbers[] = {200, -2, 60000,           -2, 4000000000.0, -2, 1.5, 1,
                                     0,   0,  1099511627776.0, -2, -1.5};
    pith_buffer file = {0};
    put_all_types(&file);
    pith_error error;
    pith_gguf *gguf = open_both(file.data, file.size, &error);
    assert_non_null(gguf);
    char key[16], kind_text[16];
    for (uint32_t kind = 0; kind <= 12; kind++) {
        if (kind == PITH_GGUF_ARRAY) continue;
        snprintf(key, sizeof key, "scalar.%u", kind);
        const pith_gguf_value *value = pith_gguf_value_find(gguf, key);
        assert_int_equal(value->kind, kind);
        assert_int_equal(value->n_items, 1);
        assert_string_equal(pith_gguf_kind_text(value), kinds[kind]);
        assert_true(pith_gguf_item_number(value, 0) == numbers[kind]);
        assert_true(pith_gguf_item_number(value, 1) == 0.0);
        snprintf(key, sizeof key, "array.%u", kind);
        snprintf(kind_text, sizeof kind_text, "arr[%s]", kinds[kind]);
        value = pith_gguf_value_find(gguf, key);
        assert_int_equal(value->kind, PITH_GGUF_ARRAY);
        assert_int_equal(value->item_kind, kind);
        assert_int_equal(value->n_items, 3);
        assert_string_equal(pith_gguf_kind_text(value), kind_text);
        assert_true(pith_gguf_item_number(value, 0) == 0.0);
        assert_true(pith_gguf_item_number(value, 1) == numbers[kind]);
        assert_true(pith_gguf_item_number(value, 3) == 0.0);
    }
    assert_int_equal(pith_gguf_value_find(gguf, "array.empty")->n_items, 0);
    assert_true(gguf_walk(gguf) != 0);
    pith_gguf_close(gguf);
    pith_buffer_deinit(&file);
}

static void version_2_is_read_like_3(void **state) {
    (void)state;
    size_t size;
    const uint8_t *file = b3_file(&size);
    uint8_t copy[352];
    memcpy(copy, file, size);
    copy[4] = 2;
    pith_error error;
    pith_gguf *gguf = open_both(copy, size, &error);
    assert_non_null(gguf);
    assert_int_equal(pith_gguf_version(gguf), 2);
    assert_int_equal(pith_gguf_n_tensors(gguf), 2);
    pith_gguf_close(gguf);
}

/* ---- The typed reader --------------------------------------------------------------------------------------- */

typedef struct u32_case {
    const char *key;
    uint32_t min, max, expected;
    pith_status status;
    const char *text; /* of the error */
} u32_case;

static void integers_are_read_where_they_fit(void **state) {
    (void)state;
    static const u32_case cases[] = {
        {"scalar.0", 0, 255, 200, PITH_OK, ""},
        {"scalar.0", 200, 200, 200, PITH_OK, ""},
        {"scalar.0", 0, 199, 0, PITH_ERROR_FORMAT,
         "key \"scalar.0\" holds 200 (item 0), allowed are 0 to 199"},
        {"scalar.0", 201, 300, 0, PITH_ERROR_FORMAT,
         "key \"scalar.0\" holds 200 (item 0), allowed are 201 to 300"},
        {"scalar.1", 0, UINT32_MAX, 0, PITH_ERROR_FORMAT,
         "key \"scalar.1\" holds -2 (item 0), allowed are 0 to 4294967295"},
        {"scalar.2", 0, 65535, 60000, PITH_OK, ""},
        {"scalar.3", 0, UINT32_MAX, 0, PITH_ERROR_FORMAT,
         "key \"scalar.3\" holds -2 (item 0), allowed are 0 to 4294967295"},
        {"scalar.4", 0, UINT32_MAX, 4000000000u, PITH_OK, ""},
        {"scalar.5", 0, UINT32_MAX, 0, PITH_ERROR_FORMAT,
         "key \"scalar.5\" holds -2 (item 0), allowed are 0 to 4294967295"},
        {"scalar.6", 0, 9, 0, PITH_ERROR_FORMAT,
         "key \"scalar.6\" holds f32, an integer is needed"},
        {"scalar.7", 0, 9, 0, PITH_ERROR_FORMAT,
         "key \"scalar.7\" holds bool, an integer is needed"},
        {"scalar.8", 0, 9, 0, PITH_ERROR_FORMAT,
         "key \"scalar.8\" holds str, an integer is needed"},
        {"scalar.10", 0, UINT32_MAX, 0, PITH_ERROR_FORMAT,
         "key \"scalar.10\" holds 1099511627776 (item 0), allowed are 0 to 4294967295"},
        {"scalar.11", 0, UINT32_MAX, 0, PITH_ERROR_FORMAT,
         "key \"scalar.11\" holds -2 (item 0), allowed are 0 to 4294967295"},
        {"array.4", 0, 9, 0, PITH_ERROR_FORMAT,
         "key \"array.4\" holds arr[u32], an integer is needed"},
    };
    pith_buffer file = {0};
    put_all_types(&file);
    pith_error error;
    pith_gguf *gguf = open_both(file.data, file.size, &error);
    assert_non_null(gguf);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const u32_case *c = &cases[i];
        uint32_t out = 77;
        bool found = false;
        error.text[0] = '\0';
        assert_int_equal(pith_gguf_get_u32(gguf, c->key, c->min, c->max, &out, &found, &error),
                         c->status);
        assert_true(found);
        assert_int_equal(out, c->status ? 77 : c->expected);
        assert_string_equal(error.text, c->text);
    }
    uint32_t out = 77;
    bool found = true;
    assert_int_equal(pith_gguf_get_u32(gguf, "none", 0, 1, &out, &found, &error), PITH_OK);
    assert_false(found);
    assert_int_equal(out, 77);
    assert_int_equal(pith_gguf_get_u32(gguf, "none", 0, 1, &out, NULL, NULL), PITH_OK);
    pith_gguf_close(gguf);
    pith_buffer_deinit(&file);
}

static void the_smallest_integers_are_not_misread(void **state) {
    (void)state;
    pith_buffer file = {0};
    put_preamble(&file, 3, 0, 3);
    put_key(&file, "i8", PITH_GGUF_I8);
    put(&file, 0x80, 1);
    put_key(&file, "i64", PITH_GGUF_I64);
    put(&file, UINT64_C(1) << 63, 8);
    put_key(&file, "zero", PITH_GGUF_I32);
    put(&file, 0, 4);
    pith_error error;
    pith_gguf *gguf = open_both(file.data, file.size, &error);
    assert_non_null(gguf);
    assert_true(pith_gguf_item_number(pith_gguf_value_find(gguf, "i8"), 0) == -128.0);
    assert_true(pith_gguf_item_number(pith_gguf_value_find(gguf, "i64"), 0) ==
                -9223372036854775808.0);
    uint32_t out = 77;
    assert_int_equal(pith_gguf_get_u32(gguf, "i64", 0, UINT32_MAX, &out, NULL, &error),
                     PITH_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "holds -9223372036854775808"));
    assert_int_equal(pith_gguf_get_u32(gguf, "zero", 0, 0, &out, NULL, &error), PITH_OK);
    assert_int_equal(out, 0);
    pith_gguf_close(gguf);
    pith_buffer_deinit(&file);
}

static void floats_bools_and_strings_are_typed(void **state) {
    (void)state;
    pith_buffer file = {0};
    put_preamble(&file, 3, 0, 9);
    put_key(&file, "f32", PITH_GGUF_F32);
    put(&file, 0x3FC00000u, 4);
    put_key(&file, "f64", PITH_GGUF_F64);
    put(&file, UINT64_C(0xBFF8000000000000), 8);
    put_key(&file, "nan", PITH_GGUF_F32);
    put(&file, 0x7FC00000u, 4);
    put_key(&file, "inf", PITH_GGUF_F64);
    put(&file, UINT64_C(0x7FF0000000000000), 8);
    put_key(&file, "large", PITH_GGUF_F64); /* 1e300 */
    put(&file, UINT64_C(0x7E37E43C8800759C), 8);
    put_key(&file, "edge",
            PITH_GGUF_F64); /* FLT_MAX and half a step more, which rounds to infinity */
    put(&file, UINT64_C(0x47EFFFFFF0000000), 8);
    put_key(&file, "bool.2", PITH_GGUF_BOOL);
    put(&file, 2, 1);
    put_key(&file, "bool.0", PITH_GGUF_BOOL);
    put(&file, 0, 1);
    put_key(&file, "empty", PITH_GGUF_STRING);
    put_text(&file, "");
    pith_error error;
    pith_gguf *gguf = open_both(file.data, file.size, &error);
    assert_non_null(gguf);
    float f = 0;
    bool flag = false, found = false;
    assert_int_equal(pith_gguf_get_f32(gguf, "f32", &f, &found, &error), PITH_OK);
    assert_true(found && f == 1.5f);
    assert_int_equal(pith_gguf_get_f32(gguf, "f64", &f, &found, &error), PITH_OK);
    assert_true(f == -1.5f);
    static const char *const bad[] = {"nan", "inf", "large", "edge"};
    for (size_t i = 0; i < 4; i++) {
        f = 3;
        assert_int_equal(pith_gguf_get_f32(gguf, bad[i], &f, &found, &error), PITH_ERROR_FORMAT);
        assert_true(f == 3);
    }
    assert_int_equal(pith_gguf_get_f32(gguf, "bool.2", &f, &found, &error), PITH_ERROR_FORMAT);
    assert_string_equal(error.text, "key \"bool.2\" holds bool, a float is needed");
    assert_int_equal(pith_gguf_get_f32(gguf, "none", &f, &found, &error), PITH_OK);
    assert_false(found);
    assert_int_equal(pith_gguf_get_bool(gguf, "bool.2", &flag, &found, &error), PITH_OK);
    assert_true(found && flag);
    assert_int_equal(pith_gguf_get_bool(gguf, "bool.0", &flag, &found, &error), PITH_OK);
    assert_false(flag);
    assert_int_equal(pith_gguf_get_bool(gguf, "f32", &flag, &found, &error), PITH_ERROR_FORMAT);
    assert_int_equal(pith_gguf_get_bool(gguf, "none", &flag, &found, &error), PITH_OK);
    assert_false(found);
    assert_true(pith_gguf_item_number(pith_gguf_value_find(gguf, "bool.2"), 0) == 1.0);
    pith_span text = {NULL, 9};
    assert_int_equal(pith_gguf_get_string(gguf, "empty", &text, &found, &error), PITH_OK);
    assert_true(found && text.size == 0 && text.data[0] == '\0');
    assert_int_equal(pith_gguf_get_string(gguf, "f32", &text, &found, &error), PITH_ERROR_FORMAT);
    assert_int_equal(pith_gguf_get_string(gguf, "none", &text, &found, &error), PITH_OK);
    assert_false(found);
    pith_gguf_close(gguf);
    pith_buffer_deinit(&file);
}

static void one_for_all_or_one_each(void **state) {
    (void)state;
    pith_buffer file = {0};
    put_preamble(&file, 3, 0, 5);
    put_u32(&file, "scalar", 5);
    put_array(&file, "array", PITH_GGUF_I32, 3);
    for (uint32_t i = 1; i <= 3; i++) put(&file, i, 4);
    put_array(&file, "flags", PITH_GGUF_BOOL, 3);
    put(&file, 0x000701, 3);
    put_array(&file, "floats", PITH_GGUF_F32, 3);
    put_zeros(&file, 12);
    put_array(&file, "none.of.them", PITH_GGUF_U8, 0);
    pith_error error;
    pith_gguf *gguf = open_both(file.data, file.size, &error);
    assert_non_null(gguf);
    uint32_t out[3] = {9, 9, 9};
    bool found;
    assert_int_equal(pith_gguf_get_u32_each(gguf, "scalar", 0, 5, out, 3, &found, &error), PITH_OK);
    assert_true(found && out[0] == 5 && out[1] == 5 && out[2] == 5);
    assert_int_equal(pith_gguf_get_u32_each(gguf, "array", 1, 3, out, 3, &found, &error), PITH_OK);
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3);
    assert_int_equal(pith_gguf_get_u32_each(gguf, "flags", 0, 1, out, 3, &found, &error), PITH_OK);
    assert_true(out[0] == 1 && out[1] == 1 && out[2] == 0);
    out[0] = 9;
    assert_int_equal(pith_gguf_get_u32_each(gguf, "array", 1, 2, out, 3, &found, &error),
                     PITH_ERROR_FORMAT);
    assert_string_equal(error.text, "key \"array\" holds 3 (item 2), allowed are 1 to 2");
    assert_int_equal(out[0], 9);
    assert_int_equal(pith_gguf_get_u32_each(gguf, "array", 1, 3, out, 2, &found, &error),
                     PITH_ERROR_FORMAT);
    assert_string_equal(error.text, "key \"array\" has 3 items, 2 are needed");
    assert_int_equal(pith_gguf_get_u32_each(gguf, "array", 1, 3, out, 4, &found, &error),
                     PITH_ERROR_FORMAT);
    assert_int_equal(pith_gguf_get_u32_each(gguf, "floats", 0, 3, out, 3, &found, &error),
                     PITH_ERROR_FORMAT);
    assert_int_equal(pith_gguf_get_u32_each(gguf, "none.of.them", 0, 3, out, 0, &found, &error),
                     PITH_OK);
    assert_int_equal(pith_gguf_get_u32_each(gguf, "no.such", 0, 3, out, 3, &found, &error),
                     PITH_OK);
    assert_false(found);
    pith_gguf_close(gguf);
    pith_buffer_deinit(&file);
}

/* ---- Files that are wrong in one way ------------------------------------------------------------------------ */

static void other_files_and_versions_are_named(void **state) {
    (void)state;
    pith_buffer f = {0};
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "the magic number at byte 0 needs 4 bytes, 0 are left");
    pith_buffer_append_text(&f, "GGU");
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "needs 4 bytes, 3 are left");
    pith_buffer_append_text(&f, "<html><body>not found</body></html>");
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "is not a GGUF file: it starts with bytes 3c 68 74 6d, not 47 47 55 46");
    pith_buffer_append_text(&f, "version https://git-lfs.github.com/spec/v1\n");
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "a Git LFS pointer?");
    put_preamble(&f, 1, 0, 0);
    refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED, "has GGUF version 1, pith reads 2 and 3: convert");
    put_preamble(&f, 0, 0, 0);
    refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED, "has GGUF version 0, pith reads 2 and 3");
    put_preamble(&f, 4, 0, 0);
    refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED, "has GGUF version 4, pith reads 2 and 3");
    put_preamble(&f, 0x03000000, 0, 0);
    refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED, "is a big-endian GGUF file");
    put_preamble(&f, 3, 0, 0);
    accept_and_reset(&f);
    pith_buffer_deinit(&f);
}

static void bad_keys_are_refused(void **state) {
    (void)state;
    pith_buffer f = {0};
    put_preamble(&f, 3, 0, 1);
    put_u32(&f, "", 1);
    put_zeros(&f, 8);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "key 0 at byte 24 has 0 bytes, 1 to 65535 are allowed");
    put_preamble(&f, 3, 0, 1);
    put(&f, 3, 8);
    pith_buffer_append(&f, "a\0b", 3);
    put(&f, PITH_GGUF_U32, 4);
    put(&f, 1, 4);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "key 0 at byte 24 (\"a?b\") holds a NUL byte");
    put_preamble(&f, 3, 0, 1);
    put_u32(&f, "bad\xC0\x80key", 1);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "is not UTF-8");
    put_preamble(&f, 3, 0, 1);
    put_u32(&f, "\x1b[31m\xC2\x9B\xF0\x9F\x98\x80",
            1); /* control characters are legal, but not shown */
    accept_and_reset(&f);
    put_preamble(&f, 3, 0, 2);
    put_u32(&f, "\x1b[31m", 1);
    put_u32(&f, "\x1b[31m", 1);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "key \"?[31m\" is there twice, as keys 0 and 1");
    put_preamble(&f, 3, 0, 1);
    put_key(&f, "k", 13);
    put_zeros(&f, 8);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "key \"k\" at byte 33 has value type 13, 0 to 12 are known");
    put_preamble(&f, 3, 0, 1);
    put_key(&f, "k", UINT32_MAX);
    put_zeros(&f, 8);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "has value type 4294967295");
    put_preamble(&f, 3, 0, 1);
    put_array(&f, "k", 99, 0);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "key \"k\" at byte 37 has value type 99");
    put_preamble(&f, 3, 0, 1);
    put_array(&f, "deep.key", PITH_GGUF_ARRAY, 1);
    put_zeros(&f, 16);
    refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED,
                     "key \"deep.key\" at byte 44 is an array of arrays");
    pith_buffer_deinit(&f);
}

static void put_f32_tensor(pith_buffer *f, const char *name, uint64_t n, uint64_t offset) {
    put_tensor(f, name, (dims){1, {n}}, PITH_TYPE_F32, offset);
}

static void bad_tensors_are_refused(void **state) {
    (void)state;
    pith_buffer f = {0};
    put_preamble(&f, 3, 2, 0);
    put_f32_tensor(&f, "twice", 8, 0);
    put_f32_tensor(&f, "twice", 8, 32);
    put_zeros(&f, 128);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "tensor name \"twice\" is there twice, as tensors 0 and 1");
    put_preamble(&f, 3, 1, 0);
    put_f32_tensor(&f, "", 8, 0);
    put_zeros(&f, 128);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "tensor name 0 at byte 24 has 0 bytes, 1 to 127 are allowed");
    put_preamble(&f, 3, 1, 0);
    put_f32_tensor(&f, "\xFF", 8, 0);
    put_zeros(&f, 128);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "tensor name 0 at byte 24 (\"?\") is not UTF-8");
    static const uint32_t removed[] = {4, 5, 31, 32, 33, 36, 37, 38};
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        put_preamble(&f, 3, 1, 0);
        put_tensor(&f, "old", (dims){1, {32}}, removed[i], 0);
        put_zeros(&f, 128);
        refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED, "was removed from the format");
    }
    static const uint32_t unknown[] = {43, 97, 137, UINT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        put_preamble(&f, 3, 1, 0);
        put_tensor(&f, "new", (dims){1, {32}}, unknown[i], 0);
        put_zeros(&f, 128);
        refuse_and_reset(&f, PITH_ERROR_UNSUPPORTED, "which pith does not know");
    }
    put_preamble(&f, 3, 1, 0);
    put_tensor(&f, "q", (dims){2, {33, 2}}, PITH_TYPE_Q8_0, 0);
    put_zeros(&f, 256);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "tensor \"q\" has rows of 33 elements, Q8_0 needs a multiple of 32");
    put_preamble(&f, 3, 1, 0);
    put_f32_tensor(&f, "odd", 8, 16);
    put_zeros(&f, 128);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "tensor \"odd\" has offset 16, no multiple of the alignment 32");
    pith_buffer_deinit(&f);
}

static void places_of_tensors_are_checked(void **state) {
    (void)state;
    pith_buffer f = {0};
    put_preamble(&f, 3, 2, 0); /* out of order, with a gap */
    put_f32_tensor(&f, "b", 8, 64);
    put_f32_tensor(&f, "a", 8, 0);
    put_padding(&f, 32);
    put_zeros(&f, 96);
    accept_and_reset(&f);
    put_preamble(&f, 3, 2, 0);
    put_f32_tensor(&f, "a", 16, 0);
    put_f32_tensor(&f, "b", 8, 32);
    put_padding(&f, 32);
    put_zeros(&f, 96);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "tensor \"b\" starts at byte 128, inside tensor \"a\" which ends at 160");
    put_preamble(&f, 3, 3, 0);
    put_f32_tensor(&f, "c", 8, 64);
    put_f32_tensor(&f, "a", 17, 0);
    put_f32_tensor(&f, "z", 0, 0); /* occupies nothing */
    put_padding(&f, 32);
    put_zeros(&f, 96);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "inside tensor \"a\"");
    put_preamble(&f, 3, 2, 0);
    put_f32_tensor(&f, "a", 8, 0);
    put_f32_tensor(&f, "b", 8, 0);
    put_padding(&f, 32);
    put_zeros(&f, 96);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "tensor \"b\" starts at byte 96, inside tensor \"a\"");
    put_preamble(&f, 3, 2, 0); /* zero elements at a place that others use */
    put_f32_tensor(&f, "a", 8, 0);
    put_f32_tensor(&f, "none", 0, 0);
    put_padding(&f, 32);
    put_zeros(&f, 32);
    accept_and_reset(&f);
    for (int lacking = 0; lacking < 2; lacking++) {
        put_preamble(&f, 3, 2, 0);
        put_f32_tensor(&f, "late", 8, 32);
        put_f32_tensor(&f, "early", 8, 0);
        put_padding(&f, 32);
        put_zeros(&f, 64 - (size_t)lacking);
        if (lacking)
            refuse_and_reset(&f, PITH_ERROR_FORMAT,
                             "tensor \"late\" ends at byte 192, the file has 191 bytes");
        else
            accept_and_reset(&f);
    }
    pith_buffer_deinit(&f);
}

/* Many tensors in a shuffled order: sorting finds the one pair that overlaps. */
static void overlaps_are_found_in_any_order(void **state) {
    (void)state;
    enum { N = 257 };
    for (int overlapping = 0; overlapping < 2; overlapping++) {
        pith_buffer f = {0};
        put_preamble(&f, 3, N, 0);
        for (uint64_t i = 0; i < N; i++) {
            char name[16];
            uint64_t place = i * 101 % N; /* 101 and 257 are prime: a permutation */
            snprintf(name, sizeof name, "t%03d", (int)place);
            put_f32_tensor(&f, name, overlapping && place == 77 ? 9 : 8, place * 32);
        }
        put_padding(&f, 32);
        put_zeros(&f, N * 32);
        if (overlapping)
            expect_refused(&f, PITH_ERROR_FORMAT, "inside tensor \"t077\"");
        else
            expect_good(&f);
        pith_buffer_deinit(&f);
    }
}

static void a_header_larger_than_the_window_is_read_through_callbacks(void **state) {
    (void)state;
    enum { N_TOKENS = 100000 };
    pith_buffer f = {0};
    put_preamble(&f, 3, 1, 3);
    put_u32(&f, "first", 1);
    put_array(&f, "tokens", PITH_GGUF_STRING, N_TOKENS);
    for (int i = 0; i < N_TOKENS; i++) {
        char token[16];
        snprintf(token, sizeof token, "tok%d", i);
        put_text(&f, token);
    }
    put_u32(&f, "last", 2);
    put_f32_tensor(&f, "t", 1, 0);
    put_padding(&f, 32);
    size_t header = f.size;
    put_zeros(&f, 4 << 20);
    expect_good(&f);
    byte_range range = {(const uint8_t *)f.data, f.size, 0};
    pith_gguf *gguf;
    pith_error error;
    assert_int_equal(open_callbacks(&range, &gguf, &error), PITH_OK);
    assert_true(range.n_read <
                2 * header + (1 << 18)); /* each byte once, at most twice the header */
    const pith_gguf_value *tokens = pith_gguf_value_find(gguf, "tokens");
    assert_int_equal(tokens->n_items, N_TOKENS);
    assert_true(pith_span_is(tokens->strings[0], "tok0"));
    assert_true(pith_span_is(tokens->strings[N_TOKENS - 1], "tok99999"));
    assert_true(gguf_walk(gguf) != 0);
    pith_gguf_close(gguf);
    pith_buffer_deinit(&f);
}

static int read_nothing(void *user, uint64_t offset, void *buffer, size_t size) {
    (void)user, (void)offset, (void)buffer, (void)size;
    return 5;
}

static void a_source_that_fails_is_reported(void **state) {
    (void)state;
    pith_reader reader = {.size = sizeof reader, .read_at = read_nothing, .total_bytes = 1000};
    pith_source *source;
    pith_gguf *gguf;
    pith_error error;
    assert_int_equal(pith_source_open_reader(&reader, &source, &error), PITH_OK);
    assert_int_equal(pith_gguf_open_source(source, &gguf, &error), PITH_ERROR_IO);
    assert_null(gguf);
    assert_int_equal(pith_gguf_open_path("/no/such/file.gguf", &gguf, &error),
                     PITH_ERROR_NOT_FOUND);
    assert_null(gguf);
    pith_gguf_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_reference_file),
        cmocka_unit_test(reads_parts_of_tensors_and_no_more),
        cmocka_unit_test(reads_every_value_type),
        cmocka_unit_test(version_2_is_read_like_3),
        cmocka_unit_test(integers_are_read_where_they_fit),
        cmocka_unit_test(the_smallest_integers_are_not_misread),
        cmocka_unit_test(floats_bools_and_strings_are_typed),
        cmocka_unit_test(one_for_all_or_one_each),
        cmocka_unit_test(other_files_and_versions_are_named),
        cmocka_unit_test(bad_keys_are_refused),
        cmocka_unit_test(bad_tensors_are_refused),
        cmocka_unit_test(places_of_tensors_are_checked),
        cmocka_unit_test(overlaps_are_found_in_any_order),
        cmocka_unit_test(a_header_larger_than_the_window_is_read_through_callbacks),
        cmocka_unit_test(a_source_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
