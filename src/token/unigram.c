/* SPDX-License-Identifier: Apache-2.0
 *
 * Unigram ("t5"): the text is normalised (charsmap.c, spaces), then cut so that the sum of the
 * tokens' scores is highest.
 *
 *   positions  0 . . . . n   best[i]: highest score of text[0, i), and the token that ends there
 *   from each character's start, every token that begins there is tried (one walk of the trie)
 *
 * Equal sums: the cut found first stays, that is the one whose last token starts furthest left. A
 * character that no token covers costs the lowest score less 10; neighbours of that kind become
 * one unknown token, or byte tokens where the vocabulary has them all. Invariant: every position
 * at a character's border is reached. Work: text length x longest token. Read next: charsmap.h.
 */
#include "base/memory.h"
#include "token/charsmap.h"
#include "token/token_internal.h"

#include <string.h>

#define UNKNOWN_PENALTY 10.0f

struct best {
    double score;
    uint32_t start, id; /* of the last token; PITH_TRIE_NONE: an uncovered character */
};

pith_status pith_unigram_prepare(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                                 pith_error *error) {
    pith_tokenizer *t = tokenizer;
    uint32_t n_bytes = 0;
    float lowest = 0;
    bool any = false;
    t->scores = pith_alloc_array(t->n_tokens, sizeof *t->scores);
    if (!t->scores) return pith_fail_memory(error, "scores", t->n_tokens);
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        float score = source->scores ? source->scores[i] : 0.0f;
        uint8_t type = t->types[i];
        bool normal = type == PITH_TOKEN_NORMAL;
        n_bytes += type == PITH_TOKEN_BYTE;
        t->scores[i] = normal ? score : 0.0f;
        if (!normal && type != PITH_TOKEN_USER_DEFINED) continue;
        if (normal && (!any || score < lowest)) lowest = score;
        any = any || normal;
        if (!pith_byte_trie_add(&t->trie, pith_piece_at(&t->pieces, i), i))
            return pith_fail_memory(error, "the vocabulary's trie", t->trie.n_nodes);
    }
    t->unknown_score = lowest - UNKNOWN_PENALTY;
    t->byte_fallback = n_bytes == 256;
    return pith_charsmap_copy(&t->charsmap, source->charsmap, error);
}

/* Spaces as the model wants them: see pith_encode_ugm. */
struct spacing {
    pith_buffer *out;
    bool merge, in_word;
};

static void put_normalized(struct spacing *spacing, pith_span text) {
    for (size_t i = 0; i < text.size; i++) {
        bool space = text.data[i] == ' ';
        if (spacing->merge && space) {
            spacing->in_word = false;
            continue;
        }
        if (spacing->merge && !spacing->in_word && spacing->out->size &&
            spacing->out->data[spacing->out->size - 1] != ' ')
            pith_buffer_append(spacing->out, " ", 1);
        spacing->in_word = true;
        pith_buffer_append(spacing->out, text.data + i, 1);
    }
}

/* The text after the charsmap, U+2581 as a space, one space in front where the model adds it; with
 * remove_extra_whitespaces no space at the ends and no two in a row. */
static pith_span normalize(pith_encode_run *run, pith_span text) {
    const pith_tokenizer *t = run->tokenizer;
    struct spacing spacing = {.out = &run->normal, .merge = t->remove_extra_whitespaces};
    pith_buffer_reset(&run->normal);
    if (t->add_space_prefix) pith_buffer_append(&run->normal, " ", 1);
    for (size_t at = 0; at < text.size;) {
        pith_span with;
        size_t size = pith_charsmap_match(&t->charsmap, text, at, &with);
        if (!size) {
            uint32_t code;
            size = pith_utf8_decode(text.data + at, text.size - at, &code);
            with = code == PITH_UTF8_INVALID ? pith_span_of("\xEF\xBF\xBD")
                   : code == 0x2581          ? pith_span_of(" ")
                                             : (pith_span){text.data + at, size};
        }
        put_normalized(&spacing, with);
        at += size;
    }
    bool empty = run->normal.size == 1 && t->add_space_prefix && t->remove_extra_whitespaces;
    return (pith_span){run->normal.data, empty ? 0 : run->normal.size};
}

static void try_token(struct best *best, size_t from, size_t to, double score, uint32_t id) {
    double sum = best[from].score + score;
    if (best[to].start != PITH_TRIE_NONE && !(sum > best[to].score)) return;
    best[to] = (struct best){sum, (uint32_t)from, id};
}

static void find_best(pith_encode_run *run, pith_span text, struct best *best) {
    const pith_tokenizer *t = run->tokenizer;
    for (size_t i = 0; i <= text.size; i++) best[i] = (struct best){0, PITH_TRIE_NONE, 0};
    for (size_t at = 0, size; at < text.size; at += size) {
        uint32_t code, node = PITH_TRIE_ROOT;
        bool covered = false;
        size = pith_utf8_decode(text.data + at, text.size - at, &code);
        for (size_t to = at; to < text.size; to++, run->steps++) {
            node = pith_byte_trie_step(&t->trie, node, text.data[to]);
            if (node == PITH_TRIE_NONE) break;
            uint32_t id = t->trie.values[node];
            if (id == PITH_TRIE_NONE) continue;
            try_token(best, at, to + 1, (double)t->scores[id], id);
            covered = covered || to + 1 == at + size;
        }
        if (!covered) try_token(best, at, at + size, (double)t->unknown_score, PITH_TRIE_NONE);
    }
}

/* Turns the chain of last tokens around: best[i].start becomes the end of the token that starts at
 * i. */
static void turn_around(struct best *best, size_t end) {
    uint32_t at = (uint32_t)end, start = best[end].start, id = best[end].id;
    while (at > 0) {
        struct best before = best[start];
        best[start].start = at;
        best[start].id = id;
        at = start;
        start = before.start;
        id = before.id;
    }
}

void pith_encode_ugm(pith_encode_run *run, pith_span text) {
    const pith_tokenizer *t = run->tokenizer;
    text = normalize(run, text);
    if (run->normal.failed) run->failed = true;
    if (run->failed || !text.size) return;
    struct best *best = pith_alloc_array(text.size + 1, sizeof *best);
    if (!best) {
        run->failed = true;
        return;
    }
    find_best(run, text, best);
    turn_around(best, text.size);
    bool unknown_before = false;
    for (size_t at = 0; at < text.size && !run->failed; at = best[at].start) {
        bool unknown = best[at].id == PITH_TRIE_NONE;
        if (!unknown)
            pith_encode_append(run, (int32_t)best[at].id);
        else if (t->byte_fallback)
            pith_encode_bytes(run, text.data + at, best[at].start - at);
        else if (!unknown_before && t->text_unknown >= 0)
            pith_encode_append(run, t->text_unknown);
        unknown_before = unknown;
    }
    pith_free(best);
}
