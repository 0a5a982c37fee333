/* SPDX-License-Identifier: Apache-2.0
 * For tests: vocabularies of a few hundred tokens, put together line by line. */
#ifndef PITH_TESTS_SMALL_VOCAB_H
#define PITH_TESTS_SMALL_VOCAB_H

#include "token/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_VOCAB_TOKENS = 2048, SMALL_VOCAB_BYTES = 1 << 16 };

typedef struct small_vocab {
    pith_vocab_source source;
    char bytes[SMALL_VOCAB_BYTES]; /* all texts */
    size_t n_bytes;
    pith_span texts[SMALL_VOCAB_TOKENS], merges[SMALL_VOCAB_TOKENS];
    float scores[SMALL_VOCAB_TOKENS];
    int32_t types[SMALL_VOCAB_TOKENS];
} small_vocab;

static inline void small_vocab_init(small_vocab *v, pith_token_model model, const char *pre) {
    pith_vocab_source_init(&v->source);
    v->n_bytes = 0;
    v->source.model = model;
    v->source.pre = pith_span_of(pre);
    v->source.texts = v->texts;
    v->source.scores = v->scores;
    v->source.types = v->types;
    v->source.merges = v->merges;
}

static inline pith_span small_vocab_keep(small_vocab *v, pith_span text) {
    char *copy = v->bytes + v->n_bytes;
    if (text.size > SMALL_VOCAB_BYTES - v->n_bytes) abort();
    if (text.size) memcpy(copy, text.data, text.size);
    v->n_bytes += text.size;
    return (pith_span){copy, text.size};
}

static inline int32_t small_vocab_add_span(small_vocab *v, pith_span text, pith_token_type type,
                                           float score) {
    uint32_t id = v->source.n_tokens++;
    if (id >= SMALL_VOCAB_TOKENS) abort();
    v->texts[id] = small_vocab_keep(v, text);
    v->types[id] = (int32_t)type;
    v->scores[id] = score;
    return (int32_t)id;
}

static inline int32_t small_vocab_add(small_vocab *v, const char *text, pith_token_type type,
                                      float score) {
    return small_vocab_add_span(v, pith_span_of(text), type, score);
}

static inline void small_vocab_merge(small_vocab *v, const char *merge) {
    if (v->source.n_merges >= SMALL_VOCAB_TOKENS) abort();
    v->merges[v->source.n_merges++] = small_vocab_keep(v, pith_span_of(merge));
}

/* Ids n .. n + 255: the 256 characters that stand for bytes in a byte-level vocabulary, by byte. */
static inline void small_vocab_add_mapped_bytes(small_vocab *v) {
    uint32_t other = 0x100;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
        char text[5] = {0};
        pith_utf8_encode(printable ? b : other++, text);
        small_vocab_add(v, text, PITH_TOKEN_NORMAL, 0);
    }
}

/* Ids n .. n + 255: <0x00> .. <0xFF>. */
static inline void small_vocab_add_byte_tokens(small_vocab *v) {
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        small_vocab_add(v, text, PITH_TOKEN_BYTE, 0);
    }
}

#endif
