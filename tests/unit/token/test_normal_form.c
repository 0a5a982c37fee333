/* SPDX-License-Identifier: Apache-2.0
 * Promise: the composed form of a text is what Unicode says (utf8proc is the witness), wherever in
 * the text something changes; a text in which nothing does is given back itself. */
#include "token/normal_form.h"
#include "token_expect.h"

#include <stdlib.h>
#include <utf8proc.h>

static void check(const char *text, uint64_t seed, pith_buffer *out) {
    bool failed = false;
    pith_span got = pith_normal_form_c(pith_span_of(text), out, &failed);
    char *wanted = (char *)utf8proc_NFC((const utf8proc_uint8_t *)text);
    assert_false(failed);
    assert_non_null(wanted);
    if (got.size != strlen(wanted) || memcmp(got.data, wanted, got.size) != 0)
        fail_msg("\"%s\" became \"%.*s\", not \"%s\" (seed %llu)", text, (int)got.size, got.data,
                 wanted, (unsigned long long)seed);
    if (!strcmp(text, wanted)) assert_ptr_equal(got.data, text);
    free(wanted);
}

/* Letters with marks that compose, that do not, in the wrong order; Hangul; singletons. */
static void random_text_composes_as_unicode_says(void **state) {
    (void)state;
    static const char *const parts[] = {"a",
                                        "e",
                                        "x",
                                        " ",
                                        "\xCC\x81",
                                        "\xCC\xA3",
                                        "\xCC\xB1",
                                        "\xC3\xA9",
                                        "\xC3\xB1",
                                        "\xE1\xBA\xB9",
                                        "\xE1\x84\x80",
                                        "\xE1\x85\xA1",
                                        "\xE1\x86\xA8",
                                        "\xEA\xB0\x80",
                                        "\xE2\x84\xAB",
                                        "\xE4\xB8\xAD",
                                        "\xD0\xB8",
                                        "\xF0\x9F\x98\x80"};
    const uint64_t seed = 17;
    pith_rng rng;
    pith_buffer out = {0};
    pith_rng_init(&rng, seed);
    for (int round = 0; round < 20000; round++) {
        char text[256] = "";
        size_t plain = below(&rng, 3) ? 0 : 60 + below(&rng, 80); /* blocks of ASCII in front */
        memset(text, 'o', plain);
        for (size_t n = below(&rng, 12); n > 0; n--)
            strcat(text, parts[below(&rng, round % 2 ? 8 : sizeof parts / sizeof *parts)]);
        check(text, seed, &out);
    }
    pith_buffer_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_text_composes_as_unicode_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
