/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: sizes that overflow are refused, never wrapped; size 0 gives a pointer; aligned
 * blocks and regions are aligned, writable to their last byte, and zero where that is promised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static void test_products_and_sums(void **state) {
    (void)state;
    size_t half = SIZE_MAX / 2 + 1, out = 7;
    assert_true(pith_size_mul(0, SIZE_MAX, &out));
    assert_int_equal(out, 0);
    assert_true(pith_size_mul(SIZE_MAX, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_true(pith_size_mul(SIZE_MAX, 0, &out));
    assert_true(pith_size_mul(half, 1, &out) && out == half);
    out = 7;
    assert_false(pith_size_mul(half, 2, &out));
    assert_false(pith_size_mul(2, half, &out));
    assert_false(pith_size_mul(SIZE_MAX, SIZE_MAX, &out));
    assert_int_equal(out, 7);
    assert_true(pith_size_add(SIZE_MAX, 0, &out) && out == SIZE_MAX);
    assert_true(pith_size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    assert_false(pith_size_add(SIZE_MAX, 1, &out));
    assert_false(pith_size_add(half, half, &out));
    uint64_t wide = 7;
    assert_true(pith_u64_mul((uint64_t)1 << 32, UINT32_MAX, &wide));
    assert_true(wide == (uint64_t)UINT32_MAX << 32);
    assert_false(pith_u64_mul((uint64_t)1 << 32, (uint64_t)1 << 32, &wide));
    assert_true(pith_u64_add(UINT64_MAX - 5, 5, &wide) && wide == UINT64_MAX);
    assert_false(pith_u64_add(UINT64_MAX - 5, 6, &wide));
    assert_true(wide == UINT64_MAX);
}

static void test_impossible_sizes_give_null(void **state) {
    (void)state;
    assert_null(pith_alloc_array(SIZE_MAX / 8 + 1, 8));
    assert_null(pith_alloc_zero(SIZE_MAX / 8 + 1, 8));
    assert_null(pith_alloc_aligned(SIZE_MAX));
    assert_null(pith_alloc_aligned(SIZE_MAX - 71));
    assert_null(pith_copy_text("", SIZE_MAX));
}

static void test_size_zero_gives_a_pointer(void **state) {
    (void)state;
    void *pointers[] = {pith_alloc(0), pith_alloc_zero(0, 8), pith_alloc_array(8, 0),
                        pith_realloc(NULL, 0)};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        assert_non_null(pointers[i]);
        pith_free(pointers[i]);
    }
    void *grown = pith_realloc(pith_alloc(3), 0);
    assert_non_null(grown);
    pith_free(grown);
    pith_free(NULL);
    pith_free_aligned(NULL);
}

static void test_zeroed_and_grown(void **state) {
    (void)state;
    unsigned char *bytes = pith_alloc_zero(300, 7);
    assert_non_null(bytes);
    for (size_t i = 0; i < 2100; i++) assert_int_equal(bytes[i], 0);
    memset(bytes, 5, 2100);
    bytes = pith_realloc(bytes, 100000);
    assert_non_null(bytes);
    for (size_t i = 0; i < 2100; i++) assert_int_equal(bytes[i], 5);
    pith_free(bytes);
    char *text = pith_copy_text("ab\0cd", 4);
    assert_non_null(text);
    assert_memory_equal(text, "ab\0c\0", 5);
    pith_free(text);
}

static void test_aligned_blocks(void **state) {
    (void)state;
    for (size_t size = 0; size < 200; size++) {
        unsigned char *a = pith_alloc_aligned(size), *b = pith_alloc_aligned(size);
        assert_non_null(a);
        assert_non_null(b);
        assert_int_equal((uintptr_t)a % 64, 0);
        assert_int_equal((uintptr_t)b % 64, 0);
        if (size) {
            memset(a, 1, size);
            memset(b, 2, size);
            assert_int_equal(a[0] + a[size - 1], 2);
        }
        pith_free_aligned(a);
        pith_free_aligned(b);
    }
}

static void test_regions(void **state) {
    (void)state;
    size_t huge_page = (size_t)2 << 20;
    size_t sizes[] = {0, 1, huge_page - 1, huge_page, huge_page + 1, 5 * huge_page + 12345};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i / 2];
        pith_region region;
        assert_true(pith_region_open(&region, size, i % 2));
        assert_non_null(region.data);
        assert_int_equal(region.size, size);
        assert_int_equal((uintptr_t)region.data % huge_page, 0);
        assert_int_equal(region.mapping_size % huge_page, 0);
        for (size_t at = 0; at < size; at += 4096) assert_int_equal(region.data[at], 0);
        if (size) region.data[size - 1] = 1;
        pith_region_close(&region);
        assert_null(region.data);
        pith_region_close(&region);
    }
}

static void test_impossible_regions(void **state) {
    (void)state;
    size_t sizes[] = {SIZE_MAX, SIZE_MAX - ((size_t)2 << 20), SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pith_region region;
        memset(&region, 1, sizeof region);
        assert_false(pith_region_open(&region, sizes[i], true));
        assert_null(region.data);
        assert_int_equal(region.size, 0);
        pith_region_close(&region);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_and_sums),
        cmocka_unit_test(test_impossible_sizes_give_null),
        cmocka_unit_test(test_size_zero_gives_a_pointer),
        cmocka_unit_test(test_zeroed_and_grown),
        cmocka_unit_test(test_aligned_blocks),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_impossible_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
