/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the merge list of a BPE vocabulary: "left right" texts become rules over piece numbers.
 *
 * A line is split at the first space behind its first byte. Parts that are no tokens get numbers of
 * their own, so that merging goes through them as the list says; where one is left at the end, its
 * bytes are given. A merge that would make a control token is left out: no user's text becomes one.
 *
 * Speed: a list has some hundred thousand lines, and every look-up waits for memory. Lines are
 * taken in blocks: all parts are hashed first, which starts fetching their places, then looked up,
 * then all rules are put. Results stand in the vocabulary mostly in merge order, so the token
 * behind the last result is tried before the index. Read next: merge_rules.c.
 */
#include "token/token_internal.h"

#include "base/memory.h"

#include <string.h>

enum { BLOCK_BYTES = 4 * PITH_TOKEN_MAX_PIECE_BYTES };

struct line {
    const char *form; /* left, then right, in running form */
    size_t left_size, right_size;
    uint64_t left_hash, right_hash;
};

struct block {
    struct line lines[PITH_RULES_AT_ONCE];
    uint32_t n;
    size_t n_bytes;
    char bytes[BLOCK_BYTES];
};

/* The number of a piece in running form; a new one when the vocabulary lacks it. False: no memory.
 * */
static bool number_of(pith_piece_table *pieces, const char *form, size_t size, uint64_t hash,
                      uint32_t *number) {
    const bool odd = false;
    uint32_t earlier;
    *number = pith_piece_table_find_hashed(pieces, form, size, hash);
    if (*number != PITH_PIECE_NONE) return true;
    size_t start = pieces->bytes.size;
    pith_buffer_append(&pieces->bytes, form, size);
    *number = pieces->n;
    return pith_piece_table_append(pieces, start) &&
           pith_piece_table_index(pieces, *number, 1, &odd, &earlier) == 1;
}

/* The piece that a line makes: the guess, or found, or new. */
static bool result_of(pith_piece_table *pieces, const struct line *line, uint32_t guess,
                      uint32_t *number) {
    size_t size = line->left_size + line->right_size;
    if (guess < pieces->n) {
        pith_span piece = pith_piece_at(pieces, guess);
        if (piece.size == size && !memcmp(piece.data, line->form, size)) {
            *number = guess;
            return true;
        }
    }
    uint64_t hash = pith_piece_table_hash(pieces, line->form, size);
    return number_of(pieces, line->form, size, hash, number);
}

/* Puts a merge's parts behind the block's lines, unless they cannot come out of text. */
static pith_status read_line(const pith_tokenizer *t, uint32_t rank, pith_span merge,
                             struct block *block, pith_error *error) {
    const char *space = merge.size > 1 ? memchr(merge.data + 1, ' ', merge.size - 1) : NULL;
    size_t border = space ? (size_t)(space - merge.data) : 0;
    if (!space || border + 1 == merge.size)
        return pith_fail(error, PITH_ERROR_FORMAT, "merge %u has no two parts", rank);
    pith_span right = {space + 1, merge.size - border - 1};
    if (border > PITH_TOKEN_MAX_PIECE_BYTES || right.size > PITH_TOKEN_MAX_PIECE_BYTES)
        return pith_fail(error, PITH_ERROR_LIMIT, "merge %u has %zu bytes; pith takes %d a part",
                         rank, merge.size, PITH_TOKEN_MAX_PIECE_BYTES);
    char *form = block->bytes + block->n_bytes;
    size_t left_size = pith_piece_form_write(t->form, (pith_span){merge.data, border}, form);
    if (left_size == SIZE_MAX) return PITH_OK;
    size_t right_size = pith_piece_form_write(t->form, right, form + left_size);
    if (right_size == SIZE_MAX) return PITH_OK;
    block->lines[block->n++] = (struct line){form, left_size, right_size, 0, 0};
    block->n_bytes += left_size + right_size;
    return PITH_OK;
}

/* The rule of two bytes, unless they have one. */
static void note_byte_pair(pith_tokenizer *t, const char *form, uint32_t rank, uint32_t joined) {
    const unsigned char *bytes = (const unsigned char *)form;
    pith_byte_pair *pair = &t->byte_pairs[(size_t)bytes[0] << 8 | bytes[1]];
    if (pair->rank == PITH_PIECE_NONE) *pair = (pith_byte_pair){rank, joined};
}

/* Rules of a block; *guess: the token expected next. */
static pith_status add_rules(pith_tokenizer *t, struct block *block, uint32_t *guess,
                             pith_error *error) {
    pith_merge_rule rules[PITH_RULES_AT_ONCE];
    uint32_t n = 0;
    for (uint32_t i = 0; i < block->n; i++) {
        struct line *line = &block->lines[i];
        const char *right = line->form + line->left_size;
        line->left_hash = pith_piece_table_hash(&t->pieces, line->form, line->left_size);
        line->right_hash = pith_piece_table_hash(&t->pieces, right, line->right_size);
    }
    for (uint32_t i = 0; i < block->n; i++) {
        const struct line *line = &block->lines[i];
        const char *right = line->form + line->left_size;
        pith_merge_rule rule = {0};
        bool good =
            number_of(&t->pieces, line->form, line->left_size, line->left_hash, &rule.left) &&
            number_of(&t->pieces, right, line->right_size, line->right_hash, &rule.right) &&
            result_of(&t->pieces, line, *guess, &rule.joined);
        if (!good) return pith_fail_memory(error, "merges", t->pieces.bytes.size);
        *guess = rule.joined + 1;
        uint8_t type =
            rule.joined < t->n_tokens ? t->types[rule.joined] : (uint8_t)PITH_TOKEN_NORMAL;
        if (type == PITH_TOKEN_CONTROL || type == PITH_TOKEN_UNKNOWN) continue;
        if (t->byte_pairs && line->left_size == 1 && line->right_size == 1)
            note_byte_pair(t, line->form, t->merges.n + n, rule.joined);
        rules[n++] = rule;
    }
    if (!pith_merge_rules_append(&t->merges, rules, n))
        return pith_fail(error, PITH_ERROR_FORMAT, "the index of merges cannot be built");
    block->n = 0;
    block->n_bytes = 0;
    return PITH_OK;
}

static pith_status read_lines(pith_tokenizer *t, const pith_vocab_source *source,
                              struct block *block, pith_error *error) {
    uint32_t guess = PITH_PIECE_NONE;
    pith_status status = PITH_OK;
    block->n = 0;
    block->n_bytes = 0;
    for (uint32_t i = 0; i < source->n_merges && status == PITH_OK; i++) {
        status = read_line(t, i, source->merges[i], block, error);
        bool full = block->n == PITH_RULES_AT_ONCE ||
                    BLOCK_BYTES - block->n_bytes < 2 * PITH_TOKEN_MAX_PIECE_BYTES;
        if (status == PITH_OK && (full || i + 1 == source->n_merges))
            status = add_rules(t, block, &guess, error);
    }
    return status;
}

/* Words start as bytes, so rules of two bytes are asked for most: a table of their own. */
static bool make_byte_pairs(pith_tokenizer *t) {
    const size_t n = 65536;
    t->byte_pairs = pith_alloc_array(n, sizeof *t->byte_pairs);
    if (t->byte_pairs) memset(t->byte_pairs, 0xFF, n * sizeof *t->byte_pairs);
    return t->byte_pairs;
}

/* Every single byte is a symbol, token or not. */
static bool number_bytes(pith_tokenizer *t) {
    bool good = true;
    for (unsigned b = 0; b < 256 && good; b++) {
        uint64_t hash = pith_piece_table_hash(&t->pieces, &t->byte_values[b], 1);
        good = number_of(&t->pieces, &t->byte_values[b], 1, hash, &t->byte_pieces[b]);
    }
    return good;
}

pith_status pith_merges_load(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                             pith_error *error) {
    pith_tokenizer *t = tokenizer;
    struct block *block = pith_alloc(sizeof *block);
    t->order = source->n_merges ? PITH_ORDER_RULES : PITH_ORDER_IDS;
    bool good = block && pith_merge_rules_init(&t->merges, source->n_merges) &&
                (t->form != PITH_FORM_MAPPED || number_bytes(t));
    if (good && t->form == PITH_FORM_MAPPED && source->n_merges) good = make_byte_pairs(t);
    pith_status status = good ? read_lines(t, source, block, error)
                              : pith_fail_memory(error, "merges", source->n_merges);
    pith_free(block);
    return status;
}
