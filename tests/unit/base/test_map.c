/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: every key inserted is found with its first value, no other key is; growth loses
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/memory.h"

static void test_empty_map(void **state) {
    (void)state;
    pith_map map = {0};
    int32_t value = 7;
    assert_false(pith_map_find(&map, pith_span_of("a"), &value));
    assert_int_equal(value, 7);
    pith_map_deinit(&map);
    assert_true(pith_map_reserve(&map, 0));
    assert_false(pith_map_find(&map, pith_span_of("a"), NULL));
    pith_map_deinit(&map);
    assert_null(map.slots);
}

static void test_first_value_stays(void **state) {
    (void)state;
    pith_map map = {0};
    int32_t now = 0;
    assert_int_equal(pith_map_insert(&map, pith_span_of("k"), -5, &now), 1);
    assert_int_equal(now, -5);
    assert_int_equal(pith_map_insert(&map, pith_span_of("k"), 9, &now), 0);
    assert_int_equal(now, -5);
    assert_int_equal(pith_map_insert(&map, pith_span_of("k"), 9, NULL), 0);
    assert_int_equal(map.count, 1);
    pith_map_deinit(&map);
}

static void test_keys_are_bytes(void **state) {
    (void)state;
    pith_map map = {0};
    pith_span keys[] = {{NULL, 0}, {"\0", 1}, {"\0\0", 2}, {"a\0b", 3}, {"a\0c", 3}, {"a", 1}};
    for (int32_t i = 0; i < 6; i++) assert_int_equal(pith_map_insert(&map, keys[i], i, NULL), 1);
    for (int32_t i = 0; i < 6; i++) {
        int32_t value = -1;
        assert_true(pith_map_find(&map, keys[i], &value));
        assert_int_equal(value, i);
    }
    assert_false(pith_map_find(&map, (pith_span){"a\0d", 3}, NULL));
    assert_int_equal(pith_map_insert(&map, pith_span_of(""), 9, NULL), 0);
    pith_map_deinit(&map);
}

static void test_many_keys(void **state) {
    (void)state;
    enum { N = 200000, SIZE = 16 };
    char *texts = pith_alloc_array(N, SIZE);
    assert_non_null(texts);
    pith_map map = {0};
    for (int32_t i = 0; i < N; i++) {
        char *text = texts + (size_t)i * SIZE;
        snprintf(text, SIZE, "key %d", i);
        assert_int_equal(pith_map_insert(&map, pith_span_of(text), i, NULL), 1);
        assert_true(map.count <= map.capacity - map.capacity / 4);
    }
    for (int32_t i = 0; i < N; i++) {
        int32_t value = -1;
        char text[SIZE];
        snprintf(text, SIZE, "key %d", i);
        if (!pith_map_find(&map, pith_span_of(text), &value) || value != i) fail_msg("key %d", i);
        snprintf(text, SIZE, "kez %d", i);
        if (pith_map_find(&map, pith_span_of(text), &value)) fail_msg("%s is not there", text);
    }
    assert_int_equal(map.count, N);
    pith_map_deinit(&map);
    pith_free(texts);
}

static void test_reserve_is_kept_and_bounded(void **state) {
    (void)state;
    pith_map map = {0};
    assert_true(pith_map_reserve(&map, 1000));
    size_t capacity = map.capacity;
    assert_true(capacity - capacity / 4 >= 1000);
    assert_true(pith_map_reserve(&map, 10));
    assert_int_equal(map.capacity, capacity);
    assert_false(pith_map_reserve(&map, SIZE_MAX));
    assert_false(pith_map_reserve(&map, SIZE_MAX / 2));
    assert_int_equal(map.capacity, capacity);
    assert_int_equal(pith_map_insert(&map, pith_span_of("x"), 1, NULL), 1);
    pith_map_deinit(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_map),
        cmocka_unit_test(test_first_value_stays),
        cmocka_unit_test(test_keys_are_bytes),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_reserve_is_kept_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
