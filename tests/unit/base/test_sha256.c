/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: digests are those of FIPS 180-4 (its published examples and lengths around the block
 * size), whatever the pieces are in which the bytes come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void expect_digest(const char *text, const char *expected) {
    pith_sha256 hash;
    char out[PITH_SHA256_TEXT];
    pith_sha256_init(&hash);
    pith_sha256_append(&hash, text, strlen(text));
    pith_sha256_text(&hash, out);
    assert_string_equal(out, expected);
}

static void test_published_examples(void **state) {
    (void)state;
    expect_digest("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_million_letters(void **state) {
    (void)state;
    char letters[1000], out[PITH_SHA256_TEXT];
    pith_sha256 hash;
    memset(letters, 'a', sizeof letters);
    pith_sha256_init(&hash);
    for (int i = 0; i < 1000; i++) pith_sha256_append(&hash, letters, sizeof letters);
    pith_sha256_text(&hash, out);
    assert_string_equal(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Lengths around the border of the closing block, in pieces of every size. */
static void test_pieces_do_not_matter(void **state) {
    (void)state;
    uint8_t data[200];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37);
    for (size_t size = 54; size <= sizeof data; size += size < 66 ? 1 : 61) {
        char whole[PITH_SHA256_TEXT], parts[PITH_SHA256_TEXT];
        pith_sha256 hash;
        pith_sha256_init(&hash);
        pith_sha256_append(&hash, data, size);
        pith_sha256_text(&hash, whole);
        for (size_t piece = 1; piece < 70; piece++) {
            pith_sha256_init(&hash);
            for (size_t at = 0; at < size; at += piece)
                pith_sha256_append(&hash, data + at, size - at < piece ? size - at : piece);
            pith_sha256_text(&hash, parts);
            assert_string_equal(whole, parts);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_examples),
        cmocka_unit_test(test_million_letters),
        cmocka_unit_test(test_pieces_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
