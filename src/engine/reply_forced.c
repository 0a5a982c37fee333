/* SPDX-License-Identifier: Apache-2.0
 * Text that the grammar forces, as guesses (docs/decisions/0067).
 *
 *   text so far   {"                  schema: {"name": string, ...}
 *   forced        name":              whatever is drawn
 *   encoded       [{"][name][":]      with the last tokens in front, as the model would write it
 *   guesses       [name]              the last token may yet join what follows: `":` and ` "`
 *
 * The bytes are certain, the tokens are not: a model may write them in other pieces. So they are
 * guesses as others are, drawn from under the mask, and cost nothing but rows when they are wrong.
 * Does not: decide how many are worth a step (draft.c). */
#include "engine/reply.h"

#include <string.h>

enum { MOST_BYTES = 192, CONTEXT_TOKENS = 8, CONTEXT_BYTES = 256 };

/* Puts the bytes of the last tokens of the reply in front of text[CONTEXT_BYTES]; returns where
 * they begin. */
static size_t put_context(const pith_reply *r, char *text) {
    const pith_session *session = r->session;
    size_t at = CONTEXT_BYTES, n = session->length - r->n_fixed;
    if (n > r->out.n_predicted) n = r->out.n_predicted;
    if (n > CONTEXT_TOKENS) n = CONTEXT_TOKENS;
    for (size_t i = 1; i <= n; i++) {
        int32_t id = session->ids[session->length - i];
        pith_span bytes = pith_tokenizer_bytes(session->engine->model->tokenizer, id);
        if (bytes.size == 0 || bytes.size > at) break;
        at -= bytes.size;
        memcpy(text + at, bytes.data, bytes.size);
    }
    return at;
}

/* Encodes text [n], whose last n_forced bytes are forced. Returns where their ids begin; the number
 * of ids when no id begins there. */
static size_t encode(pith_reply *r, const char *text, size_t n, size_t n_forced) {
    const pith_tokenizer *tokenizer = r->session->engine->model->tokenizer;
    pith_text_span span = {{text, n}, false};
    r->encoded.size = 0;
    if (pith_tokenizer_encode(tokenizer, &span, 1, false, &r->encoded, NULL) != PITH_OK) return 0;
    size_t at = r->encoded.size;
    while (at > 0 && n_forced > 0) {
        size_t bytes = pith_tokenizer_bytes(tokenizer, r->encoded.data[at - 1]).size;
        if (bytes == 0 || bytes > n_forced) return r->encoded.size;
        n_forced -= bytes;
        at--;
    }
    return n_forced == 0 ? at : r->encoded.size;
}

void pith_forced_find(pith_reply *reply, uint32_t most) {
    char text[CONTEXT_BYTES + MOST_BYTES];
    bool is_whole = false;
    pith_drafter *drafter = &reply->drafter;
    drafter->n_forced = 0;
    if (!reply->matcher) return;
    size_t n = pith_matcher_forced(reply->matcher, text + CONTEXT_BYTES, MOST_BYTES, &is_whole);
    if (n == 0 || (n == 1 && !is_whole)) return;
    size_t from = put_context(reply, text);
    size_t first = encode(reply, text + from, CONTEXT_BYTES - from + n, n);
    /* A token lies across the border: the model has written other pieces than these. */
    if (first == reply->encoded.size) first = encode(reply, text + CONTEXT_BYTES, n, n);
    size_t n_ids = reply->encoded.size - first;
    if (!is_whole && n_ids > 0) n_ids--;
    if (n_ids > most) n_ids = most;
    if (n_ids > 0) memcpy(drafter->forced, reply->encoded.data + first, n_ids * sizeof(int32_t));
    drafter->n_forced = (uint32_t)n_ids;
}
