/* SPDX-License-Identifier: Apache-2.0
 * Promise: the expanded code books are the published ones. Each entry is packed back into its
 * compact code, the codes are written as one hex text (4 digits an entry of 8, 3 of 4), and the
 * CRC-32 of that text is compared; entries are ascending and different. */
#include "quant_vectors.h"

#include "quant/grid.h"

static const int iq2[] = {8, 25, 43}, iq1[] = {0xFF, 0, 1};
static const int iq3xxs[] = {4, 12, 20, 28, 36, 44, 52, 62}, iq3s[] = {1, 3, 5, 7, 9, 11, 13, 15};

typedef struct book {
    const char *name;
    int n, elems, bits, n_value; /* entries, elements an entry, bits a code, values of a code */
    const int *values;
    const uint64_t *wide; /* either wide or narrow */
    const uint32_t *narrow;
    uint32_t crc;
} book;

static const book books[] = {
    {"iq2xxs", 256, 8, 2, 3, iq2, pith_grid_iq2xxs, NULL, 0x757ee0ccu},
    {"iq2xs", 512, 8, 2, 3, iq2, pith_grid_iq2xs, NULL, 0x0ee9db97u},
    {"iq2s", 1024, 8, 2, 3, iq2, pith_grid_iq2s, NULL, 0x86810c0eu},
    {"iq1s", 2048, 8, 2, 3, iq1, pith_grid_iq1s, NULL, 0x776605f5u},
    {"iq3xxs", 256, 4, 3, 8, iq3xxs, NULL, pith_grid_iq3xxs, 0xd4e0a9ccu},
    {"iq3s", 512, 4, 3, 8, iq3s, NULL, pith_grid_iq3s, 0xb012af85u},
};

static unsigned pack(const book *b, uint64_t entry) {
    unsigned code = 0;
    for (int k = 0; k < b->elems; k++) {
        int value = (int)(entry >> 8 * k & 0xFFu), c = 0;
        while (c < b->n_value && b->values[c] != value) c++;
        assert_true(c < b->n_value);
        code |= (unsigned)c << b->bits * k;
    }
    return code;
}

static void books_are_the_published_ones(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof books / sizeof *books; t++) {
        const book *b = &books[t];
        uint32_t crc = 0;
        int before = -1;
        for (int i = 0; i < b->n; i++) {
            unsigned code = pack(b, b->wide != NULL ? b->wide[i] : b->narrow[i]);
            char text[8];
            int size = snprintf(text, sizeof text, "%0*x", b->elems == 8 ? 4 : 3, code);
            crc = test_crc(crc, text, (size_t)size);
            assert_true((int)code > before);
            before = (int)code;
        }
        if (crc != b->crc) fail_msg("%s: crc %08x, not %08x", b->name, crc, b->crc);
    }
}

static void small_books(void **state) {
    (void)state;
    int sum = 0;
    for (int i = 0; i < 16; i++) sum += pith_book_iq4[i];
    for (int i = 1; i < 16; i++) assert_true(pith_book_iq4[i] > pith_book_iq4[i - 1]);
    assert_int_equal(sum, -495 + 401);
    static const float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < 8; i++) {
        assert_true((float)pith_book_fp4[i] == 2 * e2m1[i]);
        assert_true((float)pith_book_fp4[i + 8] == -2 * e2m1[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(books_are_the_published_ones),
        cmocka_unit_test(small_books),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
