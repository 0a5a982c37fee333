/* SPDX-License-Identifier: Apache-2.0
 * For tests of this room: one small vocabulary, its tokenizer, and what a text becomes. */
#ifndef PITH_TESTS_TOKEN_EXPECT_H
#define PITH_TESTS_TOKEN_EXPECT_H

#include "base/rng.h"
#include "support/small_vocab.h"
#include "token/token_internal.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the two above first */
#include <cmocka.h>

static small_vocab vocab;

static inline pith_tokenizer *make(void) {
    pith_tokenizer *tokenizer = NULL;
    pith_error error = {0};
    if (pith_tokenizer_new(&vocab.source, &tokenizer, &error)) fail_msg("%s", error.text);
    return tokenizer;
}

static inline void refused(pith_status status, const char *part) {
    pith_tokenizer *tokenizer = (pith_tokenizer *)&vocab;
    pith_error error = {0};
    assert_int_equal(pith_tokenizer_new(&vocab.source, &tokenizer, &error), status);
    assert_null(tokenizer);
    if (!strstr(error.text, part)) fail_msg("\"%s\" lacks \"%s\"", error.text, part);
}

static inline void encode(const pith_tokenizer *tokenizer, pith_span text, bool parse_special,
                          bool add_special, pith_ids *ids) {
    pith_text_span span = {text, parse_special};
    pith_error error = {0};
    ids->size = 0;
    if (pith_tokenizer_encode(tokenizer, &span, 1, add_special, ids, &error))
        fail_msg("%s", error.text);
}

/* Pieces of the ids, each behind a '|': what a person can compare. */
static inline void expect(const pith_tokenizer *tokenizer, const char *text, bool parse_special,
                          bool add_special, const char *pieces) {
    pith_ids ids = {0};
    pith_buffer got = {0};
    encode(tokenizer, pith_span_of(text), parse_special, add_special, &ids);
    for (size_t i = 0; i < ids.size; i++) {
        pith_buffer_append_text(&got, "|");
        pith_buffer_append_text(&got, pith_tokenizer_piece(tokenizer, ids.data[i]).data);
    }
    assert_string_equal(got.data ? got.data : "", pieces);
    pith_buffer_deinit(&got);
    pith_ids_deinit(&ids);
}

static inline size_t below(pith_rng *rng, size_t n) {
    return (size_t)(pith_rng_next(rng) % n);
}

/* Bytes, control tokens <s> (bos), <e> (eos), <s><e>, user-defined <tool>, "a b", "ool>b". */
static inline void add_special_basics(const char *pre) {
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, pre);
    small_vocab_add_mapped_bytes(&vocab);
    vocab.source.bos = small_vocab_add(&vocab, "<s>", PITH_TOKEN_CONTROL, 0);
    vocab.source.eos = small_vocab_add(&vocab, "<e>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(&vocab, "<s><e>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(&vocab, "<tool>", PITH_TOKEN_USER_DEFINED, 0);
    small_vocab_add(&vocab, "a b", PITH_TOKEN_USER_DEFINED, 0);
    small_vocab_add(&vocab, "ool>b", PITH_TOKEN_USER_DEFINED, 0);
}

/* ---- plain programs: the definitions word by word ---- */

static inline int32_t plain_find(const char *data, size_t size) {
    for (uint32_t i = 0; i < vocab.source.n_tokens; i++)
        if (vocab.texts[i].size == size && !memcmp(vocab.texts[i].data, data, size))
            return (int32_t)i;
    return -1;
}

/* Place of "left right" in the merge list, or -1. */
static inline int32_t plain_rank(pith_span left, pith_span right) {
    for (uint32_t i = 0; i < vocab.source.n_merges; i++) {
        pith_span merge = vocab.merges[i];
        if (merge.size == left.size + 1 + right.size && !memcmp(merge.data, left.data, left.size) &&
            merge.data[left.size] == ' ' &&
            !memcmp(merge.data + left.size + 1, right.data, right.size))
            return (int32_t)i;
    }
    return -1;
}

/* Merges a piece whose characters are single bytes. by_score: SentencePiece; else the merge list.
 * */
static inline void plain_merge(pith_span piece, bool by_score, pith_ids *ids) {
    pith_span parts[512];
    size_t n = piece.size;
    for (size_t i = 0; i < n; i++) parts[i] = (pith_span){piece.data + i, 1};
    for (;;) {
        size_t best = n;
        double best_order = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            double order;
            int32_t id = plain_find(parts[i].data, parts[i].size + parts[i + 1].size);
            int32_t rank = plain_rank(parts[i], parts[i + 1]);
            if (by_score ? id < 0 : rank < 0) continue;
            order = by_score ? -(double)vocab.scores[id] : rank;
            if (best < n && order >= best_order) continue;
            best = i;
            best_order = order;
        }
        if (best == n) break;
        parts[best].size += parts[best + 1].size;
        memmove(parts + best + 1, parts + best + 2, (n - best - 2) * sizeof *parts);
        n--;
    }
    for (size_t i = 0; i < n; i++)
        assert_true(pith_ids_append(ids, plain_find(parts[i].data, parts[i].size)));
}

static inline void assert_same_ids(const pith_ids *got, const pith_ids *expected, pith_span text,
                                   uint64_t seed) {
    bool same = got->size == expected->size &&
                (!got->size || !memcmp(got->data, expected->data, got->size * sizeof *got->data));
    if (same) return;
    for (size_t i = 0; i < got->size; i++) print_error("%d ", got->data[i]);
    print_error("\nexpected\n");
    for (size_t i = 0; i < expected->size; i++) print_error("%d ", expected->data[i]);
    fail_msg("\ntext \"%.*s\", seed %llu", (int)text.size, text.data, (unsigned long long)seed);
}

/* n random tokens over a, b, c (and spaces), each made of two earlier ones. */
static inline void add_random_tokens(pith_rng *rng, size_t n, bool spaces) {
    while (n) {
        char text[64], merge[64];
        uint32_t n_tokens = vocab.source.n_tokens;
        pith_span left = vocab.texts[below(rng, n_tokens)],
                  right = vocab.texts[below(rng, n_tokens)];
        if (left.size + right.size > 12) continue;
        const char *set = spaces ? "abc " : "abc";
        memcpy(text, left.data, left.size);
        memcpy(text + left.size, right.data, right.size);
        bool fits = true;
        for (size_t i = 0; i < left.size + right.size; i++)
            fits = fits && text[i] && strchr(set, text[i]);
        if (!fits || plain_find(text, left.size + right.size) >= 0) continue;
        text[left.size + right.size] = 0;
        snprintf(merge, sizeof merge, "%.*s %.*s", (int)left.size, left.data, (int)right.size,
                 right.data);
        small_vocab_add(&vocab, text, PITH_TOKEN_NORMAL, (float)below(rng, 20) - 10.0f);
        if (!spaces) small_vocab_merge(&vocab, merge);
        n--;
    }
}

#endif
