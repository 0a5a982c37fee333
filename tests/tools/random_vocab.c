/* SPDX-License-Identifier: Apache-2.0
 * A made-up vocabulary of the byte-level BPE kind: ids 0..255 are the bytes, then come pieces, each
 * glued from two earlier tokens and listed as a merge, and at the end the special tokens. Letters are drawn about as often
 * as in English, so that text is cut into pieces of a few letters; nothing is taken from a real vocabulary. */
#include "random_model.h"

#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_BYTES = 32,
    LONGEST_PIECE = 12 /* characters */,
    N_SPECIAL = 8,
    MERGE_BYTES = 2 * TOKEN_BYTES,
    SPACE = 32
};

typedef struct vocabulary {
    uint32_t n, n_pieces; /* tokens in all, of which glued */
    char (*tokens)[TOKEN_BYTES];
    char (*merges)[MERGE_BYTES];
    uint8_t *n_chars; /* [n] */
    pith_map index;
    pith_span *spans; /* [n], for writing */
} vocabulary;

/* The printable stand-in of a byte: itself, or U+0100 + its place among the others. */
static uint32_t stand_in(uint32_t byte) {
    uint32_t n_others = 0;
    for (uint32_t b = 0; b <= byte; b++) {
        bool plain = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        if (b == byte && plain) return b;
        if (b == byte) return 0x100 + n_others;
        n_others += !plain;
    }
    return 0;
}

static bool add_token(vocabulary *v, uint32_t id, const char *text, size_t size, uint32_t n_chars) {
    memcpy(v->tokens[id], text, size);
    v->tokens[id][size] = '\0';
    v->n_chars[id] = (uint8_t)n_chars;
    v->spans[id] = (pith_span){v->tokens[id], size};
    return pith_map_insert(&v->index, v->spans[id], (int32_t)id, NULL) == 1;
}

static bool add_bytes(vocabulary *v) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        char text[4];
        size_t size = pith_utf8_encode(stand_in(byte), text);
        if (!add_token(v, byte, text, size, 1)) return false;
    }
    return true;
}

static uint32_t draw(pith_rng *rng, uint32_t n) {
    return (uint32_t)(pith_rng_next(rng) % n);
}

static uint32_t draw_letter(pith_rng *rng) {
    static const char letters[] =
        "eeeeeetttttaaaaoooooiiiinnnnsssshhhrrrrdddlllcccuuummwwffggyyppbbvkxjqzETAOINS";
    return (uint8_t)letters[draw(rng, sizeof letters - 1)];
}

/* Glues two earlier tokens to one that is new. Half of the pieces begin with a space. */
static bool add_piece(vocabulary *v, uint32_t id, pith_rng *rng) {
    for (int tries = 0; tries < 10000; tries++) {
        bool glued_left = id > 256 + 64 && draw(rng, 3) != 0,
             glued_right = id > 256 + 64 && draw(rng, 3) == 0;
        uint32_t left = glued_left     ? 256 + draw(rng, id - 256)
                        : draw(rng, 2) ? SPACE
                                       : draw_letter(rng);
        uint32_t right = glued_right ? 256 + draw(rng, id - 256) : draw_letter(rng);
        uint32_t n_chars = (uint32_t)v->n_chars[left] + v->n_chars[right];
        bool space_inside = strncmp(v->tokens[right], v->tokens[SPACE], 2) == 0;
        if (n_chars > LONGEST_PIECE || space_inside) continue;
        char text[TOKEN_BYTES];
        int size = snprintf(text, sizeof text, "%s%s", v->tokens[left], v->tokens[right]);
        if (!add_token(v, id, text, (size_t)size, n_chars)) continue;
        snprintf(v->merges[v->n_pieces++], MERGE_BYTES, "%s %s", v->tokens[left], v->tokens[right]);
        return true;
    }
    return false;
}

static const char *const special_tokens[N_SPECIAL] = {
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>",        "<|pad|>",         "<|reserved_0|>",      "<|reserved_1|>",
};

static bool fill_vocabulary(vocabulary *v, pith_rng *rng) {
    bool good = pith_map_reserve(&v->index, v->n) && add_bytes(v);
    for (uint32_t id = 256; good && id < v->n - N_SPECIAL; id++) good = add_piece(v, id, rng);
    for (uint32_t i = 0; good && i < N_SPECIAL; i++) {
        const char *text = special_tokens[i];
        good = add_token(v, v->n - N_SPECIAL + i, text, strlen(text), 1);
    }
    return good;
}

static pith_status write_lists(pith_gguf_writer *writer, vocabulary *v, pith_error *error) {
    int32_t *types = calloc(v->n, sizeof *types);
    if (!types) return pith_fail_memory(error, "token types", v->n * sizeof *types);
    uint8_t *bytes = (uint8_t *)types; /* little-endian, as in the file */
    for (uint32_t id = 0; id < v->n; id++) bytes[4 * (size_t)id] = id < v->n - N_SPECIAL ? 1 : 3;
    pith_status status =
        pith_gguf_write_strings(writer, "tokenizer.ggml.tokens", v->spans, v->n, error);
    if (!status)
        status = pith_gguf_write_array(writer, "tokenizer.ggml.token_type", PITH_GGUF_I32, bytes,
                                       v->n, error);
    free(types);
    for (uint32_t i = 0; i < v->n_pieces; i++) v->spans[i] = pith_span_of(v->merges[i]);
    if (!status)
        status =
            pith_gguf_write_strings(writer, "tokenizer.ggml.merges", v->spans, v->n_pieces, error);
    return status;
}

static pith_status write_special(pith_gguf_writer *writer, const random_shape *shape,
                                 pith_error *error) {
    static const char template[] = "{{ bos_token }}{% for message in messages "
                                   "%}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
                                   "{{ message.content }}<|eot_id|>{% endfor %}"
                                   "{% if add_generation_prompt "
                                   "%}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";
    uint32_t first = shape->n_vocab - N_SPECIAL;
    pith_status status = pith_gguf_write_u32(writer, "tokenizer.ggml.bos_token_id", first, error);
    if (!status)
        status = pith_gguf_write_u32(writer, "tokenizer.ggml.eos_token_id", first + 1, error);
    if (!status)
        status = pith_gguf_write_u32(writer, "tokenizer.ggml.eot_token_id", first + 4, error);
    if (!status)
        status = pith_gguf_write_u32(writer, "tokenizer.ggml.padding_token_id", first + 5, error);
    if (!status)
        status = pith_gguf_write_bool(writer, "tokenizer.ggml.add_bos_token",
                                      shape->arch != RANDOM_QWEN2, error);
    if (!status)
        status = pith_gguf_write_string(writer, "tokenizer.chat_template", template, error);
    return status;
}

pith_status random_write_vocab(pith_gguf_writer *writer, const random_shape *shape, pith_rng *rng,
                               pith_error *error) {
    vocabulary v = {.n = shape->n_vocab};
    v.tokens = calloc(v.n, sizeof *v.tokens);
    v.merges = calloc(v.n, sizeof *v.merges);
    v.n_chars = calloc(v.n, sizeof *v.n_chars);
    v.spans = calloc(v.n, sizeof *v.spans);
    pith_status status = PITH_OK;
    if (!v.tokens || !v.merges || !v.n_chars || !v.spans || !fill_vocabulary(&v, rng))
        status = pith_fail(error, PITH_ERROR_MEMORY,
                           "a vocabulary of %u tokens could not be made up", v.n);
    if (!status) status = pith_gguf_write_string(writer, "tokenizer.ggml.model", "gpt2", error);
    if (!status)
        status = pith_gguf_write_string(writer, "tokenizer.ggml.pre",
                                        shape->arch == RANDOM_QWEN2 ? "qwen2" : "llama-bpe", error);
    if (!status) status = write_lists(writer, &v, error);
    if (!status) status = write_special(writer, shape, error);
    free(v.tokens);
    free(v.merges);
    free(v.n_chars);
    free(v.spans);
    pith_map_deinit(&v.index);
    return status;
}
