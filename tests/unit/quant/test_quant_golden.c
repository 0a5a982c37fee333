/* SPDX-License-Identifier: Apache-2.0
 * Promise: codecs and row sizes agree with an independent program,
 * tests/golden/quant_independent.py, whose results are kept in tests/data/quant/. Bytes
 * must be equal, values too (0 and -0 alike: numpy signs some zeros by other rules). */
#include "quant_vectors.h"

enum { LINE_MAX_BYTES = 1 << 16 };
static char line[LINE_MAX_BYTES];

static FILE *open_golden(const char *name) {
    char path[1024];
    const char *root = getenv("PITH_SOURCE_DIR");
    if (root == NULL) {
        print_message("PITH_SOURCE_DIR is not set: run through ctest\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/tests/data/quant/%s", root, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("cannot open %s", path);
    return file;
}

/* Next line that is not a comment; false at the end. */
static bool next_line(FILE *file) {
    while (fgets(line, sizeof line, file) != NULL) {
        assert_non_null(strchr(line, '\n')); /* the line fits */
        if (line[0] != '#') return true;
    }
    return false;
}

/* "NAME hex hex" of the line. */
static pith_type read_pair(uint8_t *a, size_t *a_size, uint8_t *b, size_t *b_size) {
    pith_type type;
    char *space = strchr(line, ' ');
    assert_non_null(space);
    *space = '\0';
    if (!pith_type_find(line, &type)) fail_msg("no type %s", line);
    const char *text = space + 1;
    *a_size = test_hex_read(&text, a, LINE_MAX_BYTES);
    assert_true(*text == ' ');
    text++;
    *b_size = test_hex_read(&text, b, LINE_MAX_BYTES);
    assert_true(*text == '\n');
    return type;
}

static uint8_t left[LINE_MAX_BYTES], right[LINE_MAX_BYTES], made[LINE_MAX_BYTES];
static float values[LINE_MAX_BYTES / 4];

static void floats_of(const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size / 4; i++) {
        const uint8_t *p = bytes + 4 * i;
        uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
        bits |= (uint32_t)p[3] << 24;
        memcpy(&values[i], &bits, 4);
    }
}

static void decoded_values(void **state) {
    (void)state;
    FILE *file = open_golden("decode.txt");
    int types = 0, wrong = 0;
    while (next_line(file)) {
        size_t n_bytes, f32_bytes;
        pith_type type = read_pair(left, &n_bytes, right, &f32_bytes);
        const pith_type_info *info = pith_type_get(type);
        size_t n = f32_bytes / 4;
        assert_int_equal(n / info->block_elems * info->block_bytes, n_bytes);
        floats_of(right, f32_bytes);
        static float y[LINE_MAX_BYTES / 4];
        info->decode(left, y, n);
        for (size_t i = 0; i < n; i++) {
            if (y[i] == values[i]) continue;
            print_message("%s element %zu: %.9g, not %.9g\n", info->name, i, (double)y[i],
                          (double)values[i]);
            wrong++;
            break;
        }
        types++;
    }
    fclose(file);
    assert_int_equal(types, 35);
    assert_int_equal(wrong, 0);
}

static void encoded_bytes(void **state) {
    (void)state;
    FILE *file = open_golden("encode.txt");
    int types = 0, wrong = 0;
    while (next_line(file)) {
        size_t f32_bytes, n_bytes;
        pith_type type = read_pair(left, &f32_bytes, right, &n_bytes);
        const pith_type_info *info = pith_type_get(type);
        floats_of(left, f32_bytes);
        assert_int_equal(f32_bytes / 4 / info->block_elems * info->block_bytes, n_bytes);
        info->encode(values, made, f32_bytes / 4, NULL);
        for (size_t i = 0; i < n_bytes; i++) {
            if (made[i] == right[i]) continue;
            print_message("%s byte %zu of %zu: %02x, not %02x\n", info->name, i, n_bytes, made[i],
                          right[i]);
            wrong++;
            break;
        }
        types++;
    }
    fclose(file);
    assert_int_equal(types, 9);
    assert_int_equal(wrong, 0);
}

static void row_sizes(void **state) {
    (void)state;
    FILE *file = open_golden("row_bytes.txt");
    int checked = 0;
    while (next_line(file)) {
        unsigned id;
        char ne0_text[32], want[32], got[32] = "-";
        assert_int_equal(sscanf(line, "%u %31s %31s", &id, ne0_text, want), 3);
        unsigned long long ne0 = strtoull(ne0_text, NULL, 10);
        uint64_t size = 0;
        if (pith_type_row_bytes((pith_type)id, ne0, &size)) {
            snprintf(got, sizeof got, "%llu", (unsigned long long)size);
        }
        if (strcmp(got, want) != 0)
            fail_msg("id %u, %s elements: %s, not %s", id, ne0_text, got, want);
        checked++;
    }
    fclose(file);
    assert_true(checked > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_values),
        cmocka_unit_test(encoded_bytes),
        cmocka_unit_test(row_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
