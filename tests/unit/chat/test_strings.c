/* SPDX-License-Identifier: Apache-2.0
 * The parts below the language: strings with authors against a plain model (one byte of author per byte of text), dicts
 * with many keys, hashes that agree with equality, the sort, and numbers as text. */
#include "chat/number_text.h"
#include "chat/sorting.h"
#include "chat/string_edit.h"
#include "chat/unicode_case.h"

#include "base/rng.h"
#include "rendering.h"

#include <math.h>

enum { MODEL_MAX = 4096 };
typedef struct model { /* what a string should be */
    char text[MODEL_MAX], author[MODEL_MAX];
    size_t size;
} model;

static void assert_is(const pith_string *string, const model *want) {
    assert_non_null(string);
    assert_int_equal(string->size, want->size);
    assert_memory_equal(string->data, want->text, want->size);
    assert_int_equal(string->n_chars, pith_string_count_chars(want->text, want->size));
    for (size_t i = 0; i < want->size; i++)
        assert_int_equal(pith_string_user_at(string, i), want->author[i]);
    assert_true(string->n_pieces == 0 || string->n_pieces >= 2);
    for (size_t i = 1; i < string->n_pieces; i++) {
        assert_true(string->pieces[i].end > string->pieces[i - 1].end);
        assert_true(string->pieces[i].is_user != string->pieces[i - 1].is_user);
    }
    size_t n = 0;
    for (pith_walk walk = pith_walk_begin(string); pith_walk_next(&walk); n++) {
        assert_int_equal(walk.is_user, want->author[walk.at]);
        assert_int_equal(pith_string_offset(string, n), walk.at);
        assert_int_equal(pith_string_index(string, walk.at), n);
    }
    assert_int_equal(n, string->n_chars);
}

static void model_join(model *a, const model *b) {
    memcpy(a->text + a->size, b->text, b->size);
    memcpy(a->author + a->size, b->author, b->size);
    a->size += b->size;
}

/* Random joins, slices and repeats, each checked against the model. */
static void test_model(void **state) {
    (void)state;
    enum { KEPT = 16 };
    static const char *const words[] = {"a",         "", "\xC3\xA9", "xyz", "\xF0\x9F\x98\x80",
                                        "<|im_end|>"};
    static model models[KEPT];
    const pith_string *strings[KEPT];
    pith_heap heap;
    pith_rng rng;
    pith_heap_init(&heap, 64 << 20, UINT64_MAX);
    pith_rng_init(&rng, 42);
    for (size_t i = 0; i < KEPT; i++) {
        models[i] = (model){.size = 0};
        strings[i] = pith_string_copy(&heap, "", 0, false);
    }
    for (int step = 0; step < 20000; step++) {
        size_t to = pith_rng_next(&rng) % KEPT, from = pith_rng_next(&rng) % KEPT,
               kind = pith_rng_next(&rng) % 4;
        model made = models[from];
        const pith_string *string = strings[from];
        bool is_user = pith_rng_next(&rng) % 2;
        if (kind == 0 || made.size > MODEL_MAX / 4) {
            const char *word = words[pith_rng_next(&rng) % 6];
            made.size = strlen(word);
            memcpy(made.text, word, made.size);
            memset(made.author, is_user, made.size);
            string = pith_string_copy(&heap, word, made.size, is_user);
        } else if (kind == 1) {
            if (models[to].size > MODEL_MAX / 4) continue;
            model_join(&made, &models[to]);
            string = pith_string_join(&heap, string, strings[to]);
        } else if (kind == 2 && made.size > 0) {
            size_t a = pith_rng_next(&rng) % (string->n_chars + 1),
                   b = a + pith_rng_next(&rng) % (string->n_chars + 1 - a);
            size_t start = pith_string_offset(string, a), end = pith_string_offset(string, b);
            memmove(made.text, made.text + start, end - start);
            memmove(made.author, made.author + start, end - start);
            made.size = end - start;
            string = pith_string_slice(&heap, string, start, end - start);
        } else {
            pith_builder builder;
            pith_builder_init(&builder, &heap);
            pith_builder_repeat(&builder, string, 2);
            pith_builder_char(&builder, 0x20AC, is_user);
            model_join(&made, &models[from]);
            memcpy(made.text + made.size, "\xE2\x82\xAC", 3);
            memset(made.author + made.size, is_user, 3);
            made.size += 3;
            string = pith_builder_finish(&builder);
        }
        assert_is(string, &made);
        models[to] = made;
        strings[to] = string;
    }
    for (size_t i = 0; i < KEPT; i++) assert_is(strings[i], &models[i]); /* nothing written over */
    pith_heap_deinit(&heap);
}

static pith_value key_of(pith_heap *heap, uint64_t n) {
    char text[32];
    switch (n % 5) {
    case 0: return pith_int((int64_t)n);
    case 1: return pith_float((double)n / 4);
    case 2:
        snprintf(text, sizeof text, "key %llu", (unsigned long long)n);
        return pith_value_text(heap, text);
    case 3: {
        pith_list *pair = pith_list_new(heap, 2);
        pith_list_append(heap, pair, pith_int((int64_t)n));
        pith_list_append(heap, pair, pith_none());
        return pith_value_tuple(pair);
    }
    default: return pith_float((double)n);
    }
}

static void test_dict(void **state) {
    (void)state;
    enum { N = 3000 };
    pith_heap heap;
    pith_heap_init(&heap, 64 << 20, UINT64_MAX);
    pith_dict *dict = pith_dict_new(&heap, 0);
    for (int round = 0; round < 2; round++) { /* the second time only values change */
        for (uint64_t i = 0; i < N; i++) {
            assert_true(pith_dict_set(&heap, dict, key_of(&heap, i * 5 + i % 5),
                                      pith_int((int64_t)i + round)));
        }
        assert_int_equal(dict->n, N);
    }
    for (uint64_t i = 0; i < N; i++) {
        const pith_value *value = pith_dict_find(&heap, dict, key_of(&heap, i * 5 + i % 5));
        assert_non_null(value);
        assert_int_equal(value->as.integer, i + 1);
        assert_true(pith_value_equal(&heap, dict->entries[i].key, key_of(&heap, i * 5 + i % 5)));
    }
    assert_null(pith_dict_find(&heap, dict, key_of(&heap, N * 5 + 2)));
    assert_false(pith_dict_set(&heap, dict, pith_value_list(pith_list_new(&heap, 0)), pith_none()));
    assert_int_equal(heap.fault, PITH_FAULT_NONE);
    pith_heap_deinit(&heap);
}

/* Equal numbers have equal hashes and are one key, whatever their kind. */
static void test_equality(void **state) {
    (void)state;
    pith_heap heap;
    pith_heap_init(&heap, 1 << 20, UINT64_MAX);
    const pith_value values[] = {pith_int(0),
                                 pith_float(0.0),
                                 pith_float(-0.0),
                                 pith_bool(false),
                                 pith_int(1),
                                 pith_float(1.0),
                                 pith_bool(true),
                                 pith_int(INT64_MAX),
                                 pith_float(9223372036854775808.0),
                                 pith_int(INT64_MIN),
                                 pith_float(-9223372036854775808.0),
                                 pith_int(9007199254740993),
                                 pith_float(9007199254740992.0),
                                 pith_float(0.5),
                                 pith_float(1e300),
                                 pith_none()};
    const int classes[] = {0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9};
    for (size_t i = 0; i < 16; i++) {
        for (size_t j = 0; j < 16; j++) {
            uint64_t a, b;
            assert_true(pith_value_hash(&heap, values[i], &a) &&
                        pith_value_hash(&heap, values[j], &b));
            bool equal = pith_value_equal(&heap, values[i], values[j]);
            assert_int_equal(equal, classes[i] == classes[j]);
            if (equal) assert_true(a == b);
            pith_order order = pith_value_compare(&heap, values[i], values[j]);
            pith_order back = pith_value_compare(&heap, values[j], values[i]);
            if (order == PITH_ORDER_LESS) assert_int_equal(back, PITH_ORDER_GREATER);
            if (i < 15 && j < 15) assert_int_equal(order == PITH_ORDER_EQUAL, equal);
        }
    }
    assert_false(pith_value_equal(&heap, pith_float((double)NAN), pith_float((double)NAN)));
    assert_int_equal(pith_value_compare(&heap, pith_float((double)NAN), pith_int(1)),
                     PITH_ORDER_NONE);
    pith_heap_deinit(&heap);
}

static void test_sort(void **state) {
    (void)state;
    static pith_render render;
    static pith_value keys[500];
    static size_t order[500];
    pith_rng rng;
    pith_rng_init(&rng, 7);
    pith_heap_init(&render.heap, 16 << 20, UINT64_MAX);
    const size_t sizes[] = {0, 1, 2, 3, 7, 64, 65, 500};
    for (size_t s = 0; s < 8; s++) {
        for (int reversed = 0; reversed < 2; reversed++) {
            for (size_t i = 0; i < sizes[s]; i++)
                keys[i] = pith_int((int64_t)(pith_rng_next(&rng) % 50));
            assert_true(pith_sort_keys(&render, keys, sizes[s], reversed, order));
            for (size_t i = 1; i < sizes[s]; i++) {
                int64_t a = keys[order[i - 1]].as.integer, b = keys[order[i]].as.integer;
                assert_true(reversed ? a >= b : a <= b);
                if (a == b) assert_true(order[i - 1] < order[i]);
            }
        }
    }
    pith_heap_deinit(&render.heap);
}

/* repr of a double reads back as the same double, and is the text that Python has for it. */
static void test_numbers(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } known[] = {{0.1, "0.1"},
                 {1e16, "1e+16"},
                 {9999999999999998.0, "9999999999999998.0"},
                 {1e-4, "0.0001"},
                 {1e-5, "1e-05"},
                 {5684341886080801486968994140625e-44, "5.684341886080802e-14"},
                 {5e-324, "5e-324"},
                 {-0.0, "-0.0"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"},
                 {123456789012345680.0, "1.2345678901234568e+17"},
                 {HUGE_VAL, "inf"},
                 {-HUGE_VAL, "-inf"},
                 {2.5e-8, "2.5e-08"},
                 {100.0, "100.0"}};
    char text[PITH_NUMBER_MAX];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = pith_float_repr(known[i].value, text);
        text[n] = 0;
        assert_string_equal(text, known[i].text);
    }
    pith_rng rng;
    pith_rng_init(&rng, 3);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = pith_rng_next(&rng);
        double value, back = 0;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        size_t n = pith_float_repr(value, text);
        assert_true(n < PITH_NUMBER_MAX && pith_float_parse((pith_span){text, n}, &back));
        assert_true(back == value && !signbit(back) == !signbit(value));
    }
    int64_t integer;
    assert_true(pith_int_parse(pith_span_of(" -9223372036854775808 "), 10, &integer) &&
                integer == INT64_MIN);
    assert_false(pith_int_parse(pith_span_of("9223372036854775808"), 10, &integer));
    assert_false(pith_int_parse(pith_span_of("1__0"), 10, &integer) ||
                 pith_int_parse(pith_span_of("_1"), 10, &integer) ||
                 pith_int_parse(pith_span_of("1_"), 10, &integer) ||
                 pith_int_parse(pith_span_of(""), 10, &integer));
    assert_true(pith_int_parse(pith_span_of("0x_fF"), 0, &integer) && integer == 255);
}

static void test_unicode(void **state) {
    (void)state;
    assert_int_equal(pith_unicode_flags('a'),
                     PITH_UNICODE_ALPHA | PITH_UNICODE_PRINTABLE | PITH_UNICODE_LOWER);
    assert_int_equal(pith_unicode_flags(0x3000), PITH_UNICODE_SPACE);
    assert_int_equal(pith_unicode_flags(0x10FFFF) | pith_unicode_flags(0xD800) |
                         pith_unicode_flags(PITH_UTF8_INVALID),
                     0);
    assert_true(pith_unicode_flags(0x1F44D) == PITH_UNICODE_PRINTABLE &&
                pith_unicode_flags(0x200B) == PITH_UNICODE_IGNORABLE);
    for (uint32_t code = 0; code < 0x110000;
         code++) { /* mappings stay inside of Unicode and go back and forth */
        uint32_t lower = pith_unicode_to_lower(code), upper = pith_unicode_to_upper(code);
        assert_true(lower < 0x110000 && upper < 0x110000);
        if (code < 128)
            assert_true(lower == (uint32_t)(code >= 'A' && code <= 'Z' ? code + 32 : code));
        if (lower != code)
            assert_true((pith_unicode_flags(code) & (PITH_UNICODE_UPPER | PITH_UNICODE_TITLE)) !=
                        0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),    cmocka_unit_test(test_dict),
        cmocka_unit_test(test_equality), cmocka_unit_test(test_sort),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_unicode)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
