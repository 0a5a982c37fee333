/* SPDX-License-Identifier: Apache-2.0
 * Files broken everywhere: cut after each byte, each bit flipped, each byte set to an extreme, and the n-th allocation
 * refused for all n. Each must be opened or refused with a sentence; under address and undefined sanitizers nothing
 * else may happen. Copies have exactly their size, so that one byte too far is caught. */
#define _XOPEN_SOURCE 700 /* mkdir, getpid */

#include "gguf_bytes.h"
#include "support/failing_memory.h"
#include "support/gguf_walk.h"

/* A file with every kind of record: all value types, arrays of them, an alignment, four tensors. */
static void put_rich_file(pith_buffer *f) {
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    put_preamble(f, 3, 4, 12 + 12 + 1);
    for (uint32_t kind = 0; kind <= 12; kind++) {
        char key[8] = {'s', (char)('a' + kind), '\0'};
        if (kind == PITH_GGUF_ARRAY) continue;
        put_key(f, key, kind);
        if (kind == PITH_GGUF_STRING)
            put_text(f, "text");
        else
            put(f, 1, sizes[kind]);
        key[0] = 'a';
        put_array(f, key, kind, 2);
        for (int i = 0; i < 2; i++) {
            if (kind == PITH_GGUF_STRING)
                put_text(f, i ? "" : "item");
            else
                put(f, 1, sizes[kind]);
        }
    }
    put_u32(f, "general.alignment", 8);
    put_tensor(f, "a", (dims){1, {4}}, PITH_TYPE_F32, 0);
    put_tensor(f, "b", (dims){2, {32, 2}}, PITH_TYPE_Q8_0, 32);
    put_tensor(f, "c", (dims){4, {2, 1, 1, 1}}, PITH_TYPE_F16, 16);
    put_tensor(f, "d", (dims){0, {0}}, PITH_TYPE_I8, 104);
    put_padding(f, 8);
    put_zeros(f, 105);
}

/* Opens an exact copy both ways and walks what opened. */
static pith_status open_copy(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    pith_error error = {PITH_OK, ""};
    pith_gguf *gguf = open_both(copy, size, &error);
    if (gguf)
        (void)gguf_walk(gguf);
    else
        assert_true(error.text[0] != '\0');
    pith_gguf_close(gguf);
    free(copy);
    return error.status;
}

static void cut_after_each_byte(void **state) {
    (void)state;
    size_t size;
    const uint8_t *b3 = b3_file(&size);
    for (size_t n = 0; n <= size; n++) /* the padding of the last tensor may be missing */
        assert_int_equal(open_copy(b3, n), n < 0x120 + 34 ? PITH_ERROR_FORMAT : PITH_OK);
    pith_buffer rich = {0};
    put_rich_file(&rich);
    for (size_t n = 0; n <= rich.size; n++)
        assert_int_equal(open_copy((const uint8_t *)rich.data, n),
                         n < rich.size ? PITH_ERROR_FORMAT : PITH_OK);
    pith_buffer_deinit(&rich);
}

static size_t n_opened;

static void break_each_byte(uint8_t *file, size_t size) {
    static const uint8_t extremes[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
    for (size_t at = 0; at < size; at++) {
        uint8_t whole = file[at];
        for (int bit = 0; bit < 8; bit++) {
            file[at] = (uint8_t)(whole ^ 1u << bit);
            n_opened += open_copy(file, size) == PITH_OK;
        }
        for (size_t i = 0; i < sizeof extremes; i++) {
            file[at] = extremes[i];
            n_opened += open_copy(file, size) == PITH_OK;
        }
        file[at] = whole;
    }
}

static void each_bit_flipped(void **state) {
    (void)state;
    size_t size;
    const uint8_t *b3 = b3_file(&size);
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, b3, size);
    n_opened = 0;
    break_each_byte(copy, size);
    assert_true(n_opened > 0 && n_opened < size * 13); /* data and text may change, sizes may not */
    free(copy);
    pith_buffer rich = {0};
    put_rich_file(&rich);
    break_each_byte((uint8_t *)rich.data, rich.size);
    pith_buffer_deinit(&rich);
}

/* Whole fields of 4 and 8 bytes set to extremes at every place. */
static void each_field_set_to_an_extreme(void **state) {
    (void)state;
    static const uint64_t extremes[] = {
        0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 60, INT64_MAX};
    pith_buffer rich = {0};
    put_rich_file(&rich);
    for (size_t at = 0; at + 8 <= rich.size; at++) {
        uint8_t whole[8];
        memcpy(whole, rich.data + at, 8);
        for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
            for (size_t n = 4; n <= 8; n += 4) {
                for (size_t b = 0; b < n; b++) rich.data[at + b] = (char)(extremes[i] >> 8 * b);
                (void)open_copy((const uint8_t *)rich.data, rich.size);
                memcpy(rich.data + at, whole, 8);
            }
        }
    }
    assert_int_equal(open_copy((const uint8_t *)rich.data, rich.size), PITH_OK);
    pith_buffer_deinit(&rich);
}

/* Long enough that each list and string needs memory of its own. */
static void put_large_file(pith_buffer *f) {
    put_preamble(f, 3, 200, 2);
    put_key(f, "long", PITH_GGUF_STRING);
    put(f, 20000, 8);
    for (int i = 0; i < 20000; i++) put(f, 'x', 1);
    put_array(f, "many", PITH_GGUF_STRING, 30000);
    for (int i = 0; i < 30000; i++) put_text(f, "ab");
    for (uint64_t i = 0; i < 200; i++) {
        char name[8] = {'t', (char)('a' + i / 10), (char)('0' + i % 10), '\0'};
        put_tensor(f, name, (dims){1, {1}}, PITH_TYPE_F32, i * 32);
    }
    put_padding(f, 32);
    put_zeros(f, 200 * 32);
}

static void refuse_each_allocation(const pith_buffer *f, bool windowed, uint64_t at_least) {
    pith_status status = PITH_ERROR_MEMORY;
    uint64_t n = 0;
    while (status != PITH_OK) {
        byte_range range = {(const uint8_t *)f->data, f->size, 0};
        pith_gguf *gguf = NULL;
        pith_error error = {PITH_OK, ""};
        memory_watch_reset(++n);
        status = windowed ? open_callbacks(&range, &gguf, &error)
                          : open_memory(f->data, f->size, &gguf, &error);
        memory_watch_reset(0);
        assert_true(status == PITH_OK || status == PITH_ERROR_MEMORY);
        if (status != PITH_OK) assert_non_null(strstr(error.text, "memory"));
        assert_true((status == PITH_OK) == (gguf != NULL));
        pith_gguf_close(gguf);
    }
    assert_true(n > at_least);
}

static void each_allocation_refused(void **state) {
    (void)state;
    pith_buffer rich = {0}, large = {0};
    put_rich_file(&rich);
    put_large_file(&large);
    for (int windowed = 0; windowed < 2; windowed++) {
        refuse_each_allocation(&rich, windowed,
                               6); /* source, name, file, list, arena, maps, order */
        refuse_each_allocation(&large, windowed, 9);
    }
    pith_buffer_deinit(&rich);
    pith_buffer_deinit(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_after_each_byte),
        cmocka_unit_test(each_bit_flipped),
        cmocka_unit_test(each_field_set_to_an_extreme),
        cmocka_unit_test(each_allocation_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
