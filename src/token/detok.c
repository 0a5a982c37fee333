/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids to text, one at a time. A token may end inside a character; its first bytes wait in
 * `pending` until the rest comes or can no longer come. Ill-formed bytes become U+FFFD, one for
 * each longest start of a character.
 *
 * A model that puts a space in front of a text does so once: the space of the first visible token
 * is dropped. Who goes on with a text that has begun (a reply behind a prompt) sets
 * detok->started. Spaces are never cleaned up: what the ids say is what is shown. Invariant: every
 * text given out is well-formed UTF-8; pending holds the start of one character, 0 to 3 bytes.
 * Read next: tokenizer.c, pith_tokenizer_bytes.
 */
#include "token/token_internal.h"

#include "base/memory.h"

#include <string.h>

enum { MOST_TEXT_BYTES = 3 * (PITH_TOKEN_MAX_PIECE_BYTES + 4) + 1 };

void pith_detok_init(pith_detok *detok, const pith_tokenizer *tokenizer, bool show_control) {
    *detok = (pith_detok){.tokenizer = tokenizer, .show_control = show_control};
    /* room for any token with every byte ill-formed, so that no push needs memory; without it, a
     * push tries again */
    detok->text.data = pith_alloc_zero(1, MOST_TEXT_BYTES);
    detok->text.capacity = detok->text.data ? MOST_TEXT_BYTES : 0;
}

void pith_detok_deinit(pith_detok *detok) {
    pith_buffer_deinit(&detok->text);
    detok->n_pending = 0;
}

/* Bytes that stand for id in the text. */
static pith_span visible_bytes(const pith_detok *detok, int32_t id) {
    pith_token_type type = pith_tokenizer_type(detok->tokenizer, id);
    bool control = type == PITH_TOKEN_CONTROL || type == PITH_TOKEN_UNKNOWN;
    if (control && detok->show_control) return pith_tokenizer_piece(detok->tokenizer, id);
    return pith_tokenizer_bytes(detok->tokenizer, id);
}

static bool prefixes_space(const pith_tokenizer *tokenizer) {
    return tokenizer->add_space_prefix || tokenizer->model == PITH_TOKEN_MODEL_WPM;
}

/* Bytes at data that are the longest start of a character, at least 1: what one U+FFFD replaces. */
static size_t broken_bytes(const char *data, size_t size) {
    for (size_t n = size < 3 ? size : 3; n > 1; n--)
        if (pith_utf8_incomplete(data, n) == n) return n;
    return 1;
}

/* Appends what is certain of data; the start of an unfinished character at its end goes into
 * pending. */
static void append_text(pith_detok *detok, const char *data, size_t size, bool flush) {
    size_t held = flush ? 0 : pith_utf8_incomplete(data, size), end = size - held, from = 0;
    for (size_t at = 0; at < end;) {
        uint32_t code;
        size_t bytes = pith_utf8_decode(data + at, end - at, &code);
        if (code == PITH_UTF8_INVALID) {
            bytes = broken_bytes(data + at, end - at);
            pith_buffer_append(&detok->text, data + from, at - from);
            pith_buffer_append(&detok->text, "\xEF\xBF\xBD", 3);
            from = at + bytes;
        }
        at += bytes;
    }
    pith_buffer_append(&detok->text, data + from, end - from);
    memcpy(detok->pending, data + end, held);
    detok->n_pending = (uint8_t)held;
}

pith_span pith_detok_push(pith_detok *detok, int32_t id) {
    pith_buffer_reset(&detok->text);
    pith_span bytes = id < 0 ? (pith_span){"", 0} : visible_bytes(detok, id);
    if (bytes.size && !detok->started) {
        bool drop = prefixes_space(detok->tokenizer) && bytes.data[0] == ' ';
        detok->started = true;
        if (drop) bytes = (pith_span){bytes.data + 1, bytes.size - 1};
    }
    if (detok->n_pending && (bytes.size || id < 0)) {
        char both[PITH_TOKEN_MAX_PIECE_BYTES + sizeof detok->pending];
        memcpy(both, detok->pending, detok->n_pending);
        memcpy(both + detok->n_pending, bytes.data, bytes.size);
        append_text(detok, both, detok->n_pending + bytes.size, id < 0);
    } else if (bytes.size) {
        append_text(detok, bytes.data, bytes.size, id < 0);
    }
    return (pith_span){detok->text.data ? detok->text.data : "", detok->text.size};
}
