/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as text for a small vocabulary of each kind, and as broken vocabularies.
 * The first byte chooses the kind and whether control tokens are read. Byte-level BPE must give
 * the text back; streamed text must be well-formed; encoding twice must give the same. Seeds:
 * corpus/token/. */
#include "support/small_vocab.h"

#include <string.h>

static const struct kind {
    pith_token_model model;
    char pre[24];
} kinds[] = {{PITH_TOKEN_MODEL_BPE, "gpt-2"},
             {PITH_TOKEN_MODEL_BPE, "llama-bpe"},
             {PITH_TOKEN_MODEL_BPE, "qwen35"},
             {PITH_TOKEN_MODEL_BPE, "gpt-4o"},
             {PITH_TOKEN_MODEL_BPE, "deepseek-v3"},
             {PITH_TOKEN_MODEL_BPE, "default"},
             {PITH_TOKEN_MODEL_BPE, "chameleon"},
             {PITH_TOKEN_MODEL_BPE, "afmoe"},
             {PITH_TOKEN_MODEL_BPE, "kimi-k2"},
             {PITH_TOKEN_MODEL_BPE, "deepseek-llm"},
             {PITH_TOKEN_MODEL_BPE, "gemma4"},
             {PITH_TOKEN_MODEL_BPE, "whitespace"},
             {PITH_TOKEN_MODEL_SPM, ""},
             {PITH_TOKEN_MODEL_WPM, ""},
             {PITH_TOKEN_MODEL_UGM, ""},
             {PITH_TOKEN_MODEL_UGM, ""}};
enum { N_KINDS = sizeof kinds / sizeof *kinds, PARSED = 16, BROKEN = 32 };

static void check(bool good) {
    if (!good) __builtin_trap();
}

static void add_words(small_vocab *vocab) {
    static const char *const words[] = {"th", "the", "in", "ing", "aa", "aaaa", "\xE2\x96\x81the"};
    static const char *const merges[] = {"t h", "th e", "i n", "in g", "a a", "aa aa"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        small_vocab_add(vocab, words[i], PITH_TOKEN_NORMAL, -(float)i);
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) small_vocab_merge(vocab, merges[i]);
    small_vocab_add(vocab, "<s>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(vocab, "<tool>", PITH_TOKEN_USER_DEFINED, 0);
    small_vocab_add(vocab, "ab", PITH_TOKEN_UNUSED, -1);
}

static void make_vocab(small_vocab *vocab, size_t kind) {
    small_vocab_init(vocab, kinds[kind].model, kinds[kind].pre);
    vocab->source.unknown = small_vocab_add(vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
    vocab->source.bos = 0;
    vocab->source.remove_extra_whitespaces = kind & 1;
    bool mapped = kinds[kind].model == PITH_TOKEN_MODEL_BPE && kind < 10;
    if (mapped)
        small_vocab_add_mapped_bytes(vocab);
    else
        small_vocab_add_byte_tokens(vocab);
    add_words(vocab);
}

/* Streams ids: every push is well-formed UTF-8. Returns the bytes the tokens stand for. */
static void stream(const pith_tokenizer *tokenizer, const pith_ids *ids, pith_buffer *bytes) {
    pith_detok detok;
    pith_detok_init(&detok, tokenizer, true);
    for (size_t i = 0; i <= ids->size; i++) {
        int32_t id = i < ids->size ? ids->data[i] : -1;
        pith_span text = pith_detok_push(&detok, id), raw = pith_tokenizer_bytes(tokenizer, id);
        check(id < 0 || raw.data);
        pith_buffer_append(bytes, raw.data, raw.size);
        for (size_t at = 0; at < text.size;) {
            uint32_t code;
            at += pith_utf8_decode(text.data + at, text.size - at, &code);
            check(code != PITH_UTF8_INVALID);
        }
    }
    pith_detok_deinit(&detok);
}

static void encode_text(const pith_tokenizer *tokenizer, pith_span text, bool parsed,
                        bool gives_back) {
    pith_text_span span = {text, parsed};
    pith_ids ids = {0}, again = {0};
    pith_buffer bytes = {0};
    check(pith_tokenizer_encode(tokenizer, &span, 1, false, &ids, NULL) == PITH_OK);
    check(pith_tokenizer_encode(tokenizer, &span, 1, false, &again, NULL) == PITH_OK);
    check(ids.size == again.size &&
          (!ids.size || !memcmp(ids.data, again.data, ids.size * sizeof *ids.data)));
    for (size_t i = 0; i < ids.size; i++)
        check(ids.data[i] >= 0 && (uint32_t)ids.data[i] < pith_tokenizer_size(tokenizer));
    stream(tokenizer, &ids, &bytes);
    if (gives_back)
        check(bytes.size == text.size && (!text.size || !memcmp(bytes.data, text.data, text.size)));
    pith_buffer_deinit(&bytes);
    pith_ids_deinit(&ids);
    pith_ids_deinit(&again);
}

/* The bytes cut into tokens and merges at newlines: whatever is made of them works. */
static void make_of_bytes(small_vocab *vocab, size_t kind, const char *data, size_t size) {
    small_vocab_init(vocab, kinds[kind].model, kinds[kind].pre);
    vocab->source.charsmap = (pith_span){data, size};
    vocab->source.bos = (int32_t)size - 8;
    for (size_t at = 0; at < size && vocab->source.n_tokens < 200;) {
        const char *end = memchr(data + at, '\n', size - at);
        pith_span line = {data + at, end ? (size_t)(end - data) - at : size - at};
        int32_t type = line.size ? line.data[0] % 8 : 1;
        small_vocab_add_span(vocab, line, (pith_token_type)type, (float)line.size - 3.0f);
        if (line.size > 2 && line.data[0] < 'k')
            vocab->merges[vocab->source.n_merges++] = small_vocab_keep(vocab, line);
        at += line.size + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The tokenizer of a kind, made once: its memo sees the texts of all runs. */
static const pith_tokenizer *tokenizer_of(size_t kind) {
    static pith_tokenizer *made[N_KINDS];
    static small_vocab vocabs[N_KINDS];
    if (!made[kind]) {
        make_vocab(&vocabs[kind], kind);
        check(pith_tokenizer_new(&vocabs[kind].source, &made[kind], NULL) == PITH_OK);
    }
    return made[kind];
}

static void check_broken(size_t kind, pith_span text, bool parsed) {
    small_vocab *vocab = malloc(sizeof *vocab);
    pith_tokenizer *tokenizer = NULL;
    if (!vocab) return;
    make_of_bytes(vocab, kind, text.data, text.size);
    if (pith_tokenizer_new(&vocab->source, &tokenizer, NULL) == PITH_OK)
        encode_text(tokenizer, text, parsed, false);
    pith_tokenizer_free(tokenizer);
    free(vocab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size || size > 16000) return 0;
    size_t kind = data[0] % N_KINDS;
    pith_span text = {(const char *)data + 1, size - 1};
    bool parsed = data[0] & PARSED;
    /* NFC changes the text; control tokens stand for nothing */
    bool same = kind < 10 && strcmp(kinds[kind].pre, "qwen35") != 0;
    if (data[0] & BROKEN)
        check_broken(kind, text, parsed);
    else
        encode_text(tokenizer_of(kind), text, parsed, same && !parsed);
    return 0;
}
