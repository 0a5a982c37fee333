/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a tokenizer from arrays and answers questions about its tokens.
 *
 * Building passes over the vocabulary a few times and allocates a handful of large blocks: texts
 * as written, running forms with their index (piece_table.c), merges (merge_rules.c). Everything
 * is checked here: lengths, limits, equal texts, ids. After pith_tokenizer_new nothing is written
 * but two memories of what pieces gave. It does not encode: token_encode.c. Nor decode: detok.c.
 * Read next: special_ids.c.
 */
#include "token/token_internal.h"

#include "base/memory.h"

#include <string.h>

void pith_vocab_source_init(pith_vocab_source *source) {
    *source = (pith_vocab_source){.model = PITH_TOKEN_MODEL_NONE};
    source->bos = source->eos = source->eot = source->eom = -1;
    source->unknown = source->separator = source->padding = source->mask = -1;
    source->fim_pad = source->fim_repo = source->fim_separator = -1;
    source->add_bos = source->add_eos = source->add_sep = source->add_space_prefix = -1;
    source->remove_extra_whitespaces = source->lowercase = source->strip_accents = -1;
}

static pith_status check_source(const pith_vocab_source *source, uint64_t *text_bytes,
                                pith_error *error) {
    if (source->n_tokens > PITH_TOKEN_MAX_TOKENS)
        return pith_fail(error, PITH_ERROR_LIMIT, "the vocabulary has %u tokens; pith takes %d",
                         source->n_tokens, PITH_TOKEN_MAX_TOKENS);
    if (source->n_merges > PITH_TOKEN_MAX_MERGES)
        return pith_fail(error, PITH_ERROR_LIMIT, "the vocabulary has %u merges; pith takes %d",
                         source->n_merges, PITH_TOKEN_MAX_MERGES);
    if (!source->n_tokens && source->model != PITH_TOKEN_MODEL_NONE)
        return pith_fail(error, PITH_ERROR_FORMAT, "the vocabulary has no tokens");
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < source->n_tokens; i++) {
        size_t size = source->texts[i].size;
        if (size > PITH_TOKEN_MAX_PIECE_BYTES)
            return pith_fail(error, PITH_ERROR_LIMIT, "token %u has %zu bytes; pith takes %d", i,
                             size, PITH_TOKEN_MAX_PIECE_BYTES);
        if (source->scores && source->scores[i] != source->scores[i])
            return pith_fail(error, PITH_ERROR_FORMAT, "the score of token %u is not a number", i);
        bytes += size ? size : sizeof "[EMPTY_16777216]"; /* what an empty text becomes */
    }
    *text_bytes = bytes;
    if (bytes + source->n_tokens >= UINT32_MAX)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the vocabulary's texts have %llu bytes; pith takes 4 GiB",
                         (unsigned long long)bytes);
    return PITH_OK;
}

static pith_status allocate(pith_tokenizer *tokenizer, uint64_t text_bytes, pith_error *error) {
    size_t n = tokenizer->n_tokens;
    tokenizer->texts = pith_alloc((size_t)text_bytes + n + 1);
    tokenizer->text_starts = pith_alloc_array(n + 1, sizeof *tokenizer->text_starts);
    tokenizer->types = pith_alloc_array(n + 1, 1);
    tokenizer->marks = pith_alloc_zero(n + 1, 1);
    if (!tokenizer->texts || !tokenizer->text_starts || !tokenizer->types || !tokenizer->marks ||
        !pith_piece_table_init(&tokenizer->pieces, (uint32_t)n, (size_t)text_bytes))
        return pith_fail_memory(error, "the vocabulary", text_bytes);
    return PITH_OK;
}

/* Texts as written, each with a NUL behind it. */
static void copy_texts(pith_tokenizer *tokenizer, const pith_vocab_source *source) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < source->n_tokens; i++) {
        pith_span text = source->texts[i];
        tokenizer->text_starts[i] = at;
        if (text.size) memcpy(tokenizer->texts + at, text.data, text.size);
        at += (uint32_t)text.size;
        if (!text.size) { /* [EMPTY_<id>], as other programs name it */
            char digits[10];
            uint32_t n = 0, id = i;
            do digits[n++] = (char)('0' + id % 10);
            while (id /= 10);
            memcpy(tokenizer->texts + at, "[EMPTY_", 7);
            at += 7;
            while (n) tokenizer->texts[at++] = digits[--n];
            tokenizer->texts[at++] = ']';
        }
        tokenizer->texts[at++] = 0;
    }
    tokenizer->text_starts[source->n_tokens] = at;
}

static pith_span text_of(const pith_tokenizer *tokenizer, uint32_t id) {
    uint32_t start = tokenizer->text_starts[id];
    return (pith_span){tokenizer->texts + start, tokenizer->text_starts[id + 1] - start - 1};
}

/* The running form of token id, appended to the pieces. *odd: it has none and is kept as written.
 * */
static bool append_form(pith_tokenizer *tokenizer, uint32_t id, bool *odd) {
    pith_buffer *bytes = &tokenizer->pieces.bytes;
    pith_span text = text_of(tokenizer, id);
    size_t start = bytes->size;
    size_t size = pith_piece_form_write(tokenizer->form, text, bytes->data + start);
    *odd = size == SIZE_MAX;
    if (*odd) memcpy(bytes->data + start, text.data, size = text.size);
    bytes->size += size;
    return pith_piece_table_append(&tokenizer->pieces, start);
}

/* Running forms and their index; equal texts are refused: an id could not be found again. */
static pith_status index_texts(pith_tokenizer *tokenizer, pith_error *error) {
    bool odd[PITH_PIECES_AT_ONCE];
    for (uint32_t i = 0, n; i < tokenizer->n_tokens; i += n) {
        for (n = 0; n < PITH_PIECES_AT_ONCE && i + n < tokenizer->n_tokens; n++)
            if (!append_form(tokenizer, i + n, &odd[n]))
                return pith_fail_memory(error, "the vocabulary", tokenizer->pieces.bytes.size);
        uint32_t earlier, good = pith_piece_table_index(&tokenizer->pieces, i, n, odd, &earlier);
        if (good == n) continue;
        if (earlier == PITH_PIECE_NONE)
            return pith_fail(error, PITH_ERROR_FORMAT,
                             "the index of the vocabulary cannot be built at token %u", i + good);
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "tokens %u and %u have the same text \"%.40s\"; each text needs one id",
                         earlier, i + good, text_of(tokenizer, i + good).data);
    }
    return PITH_OK;
}

static void copy_types(pith_tokenizer *tokenizer, const pith_vocab_source *source) {
    for (uint32_t i = 0; i < source->n_tokens; i++) {
        int32_t type = source->types ? source->types[i] : PITH_TOKEN_NORMAL;
        bool known = type >= PITH_TOKEN_NORMAL && type <= PITH_TOKEN_BYTE;
        tokenizer->types[i] = (uint8_t)(known ? type : PITH_TOKEN_UNDEFINED);
    }
}

/* Which pieces merging may give. Control tokens are barred so that a user's text never turns into
 * one. */
static pith_status make_whole(pith_tokenizer *tokenizer, pith_error *error) {
    uint32_t n = tokenizer->pieces.n;
    tokenizer->whole = pith_alloc_array((size_t)n + 1, sizeof *tokenizer->whole);
    if (!tokenizer->whole) return pith_fail_memory(error, "the vocabulary", n);
    for (uint32_t i = 0; i < n; i++) {
        unsigned char state = PITH_WHOLE_UNKNOWN;
        uint8_t type = i < tokenizer->n_tokens ? tokenizer->types[i] : (uint8_t)PITH_TOKEN_NORMAL;
        bool barred = type != PITH_TOKEN_NORMAL && type != PITH_TOKEN_USER_DEFINED;
        if (type == PITH_TOKEN_UNUSED && tokenizer->model == PITH_TOKEN_MODEL_SPM)
            barred = false; /* a step on the way to longer ones */
        if (barred) state = PITH_WHOLE_BARRED;
        atomic_init(&tokenizer->whole[i], state);
    }
    return PITH_OK;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that a text "<0xAB>" names, or -1. */
static int byte_of_text(pith_span text) {
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
    int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Pieces of single bytes: mapped characters, or byte tokens, or the character that has just this
 * byte. */
static void find_bytes(pith_tokenizer *tokenizer) {
    for (unsigned b = 0; b < 256; b++) {
        char *byte = &tokenizer->byte_values[b];
        *byte = (char)b;
        tokenizer->byte_pieces[b] = pith_piece_table_find(&tokenizer->pieces, byte, 1);
        if (b < 128) tokenizer->ascii_pieces[b] = tokenizer->byte_pieces[b];
    }
    if (tokenizer->form == PITH_FORM_MAPPED) return;
    for (uint32_t i = 0; i < tokenizer->n_tokens; i++) {
        if (tokenizer->types[i] != PITH_TOKEN_BYTE) continue;
        int byte = byte_of_text(text_of(tokenizer, i));
        if (byte >= 0) tokenizer->byte_pieces[byte] = i;
    }
}

static pith_status add_special_texts(pith_tokenizer *tokenizer, pith_error *error) {
    for (uint32_t i = 0; i < tokenizer->n_tokens; i++) {
        uint8_t type = tokenizer->types[i];
        bool control = type == PITH_TOKEN_CONTROL || type == PITH_TOKEN_UNKNOWN;
        if (!control && type != PITH_TOKEN_USER_DEFINED) continue;
        pith_span text = text_of(tokenizer, i);
        bool good = pith_special_match_add(&tokenizer->specials, text, i);
        if (!control) good = good && pith_special_match_add(&tokenizer->user_defined, text, i);
        if (!good) return pith_fail_memory(error, "special tokens", 0);
    }
    return PITH_OK;
}

static pith_status find_pre_tokenizer(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                                      pith_error *error) {
    tokenizer->pre = pith_pre_tokenizer_find(source->pre);
    int shown = source->pre.size < 60 ? (int)source->pre.size : 60;
    if (!tokenizer->pre && !source->force)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "pre-tokenizer \"%.*s\" is not known to this version; force uses the "
                         "default one, and ids may then differ from the model's",
                         shown, source->pre.data);
    if (!tokenizer->pre) {
        tokenizer->pre = pith_pre_tokenizer_find((pith_span){0});
        pith_buffer_append_format(&tokenizer->notes,
                                  "pre-tokenizer \"%.*s\" is not known: the default one is used, "
                                  "and ids may differ from the model's\n",
                                  shown, source->pre.data);
    }
    return pith_splitter_new(tokenizer->pre, false, &tokenizer->splitter, error);
}

static pith_status build(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                         pith_error *error) {
    uint64_t text_bytes = 0;
    pith_status status = check_source(source, &text_bytes, error);
    tokenizer->model = source->model;
    tokenizer->n_tokens = source->n_tokens;
    if (status == PITH_OK && source->model == PITH_TOKEN_MODEL_BPE)
        status = find_pre_tokenizer(tokenizer, source, error);
    bool mapped = tokenizer->pre && !(tokenizer->pre->flags & PITH_PRE_RAW);
    tokenizer->form = mapped ? PITH_FORM_MAPPED : PITH_FORM_SPACED;
    if (status == PITH_OK) status = allocate(tokenizer, text_bytes, error);
    if (status != PITH_OK) return status;
    copy_texts(tokenizer, source);
    status = index_texts(tokenizer, error);
    if (status != PITH_OK) return status;
    copy_types(tokenizer, source);
    find_bytes(tokenizer);
    pith_special_ids_resolve(tokenizer, source);
    status = add_special_texts(tokenizer, error);
    if (status == PITH_OK && source->model == PITH_TOKEN_MODEL_BPE)
        status = pith_merges_load(tokenizer, source, error);
    if (status == PITH_OK) status = make_whole(tokenizer, error);
    bool merges = source->model == PITH_TOKEN_MODEL_BPE || source->model == PITH_TOKEN_MODEL_SPM;
    if (status == PITH_OK && merges && !(tokenizer->memo = pith_piece_memo_new()))
        status = pith_fail_memory(error, "the memo of pieces", sizeof(pith_piece_memo));
    if (status == PITH_OK && source->model == PITH_TOKEN_MODEL_SPM)
        status = pith_sentencepiece_prepare(tokenizer, source, error);
    if (status == PITH_OK && source->model == PITH_TOKEN_MODEL_UGM)
        status = pith_unigram_prepare(tokenizer, source, error);
    if (status == PITH_OK && tokenizer->notes.failed) status = pith_fail_memory(error, "notes", 0);
    return status;
}

pith_status pith_tokenizer_new(const pith_vocab_source *source, pith_tokenizer **out,
                               pith_error *error) {
    *out = NULL;
    pith_tokenizer *tokenizer = pith_alloc_zero(1, sizeof *tokenizer);
    if (!tokenizer) return pith_fail_memory(error, "a tokenizer", sizeof *tokenizer);
    pith_status status = build(tokenizer, source, error);
    if (status == PITH_OK)
        *out = tokenizer;
    else
        pith_tokenizer_free(tokenizer);
    return status;
}

void pith_tokenizer_free(pith_tokenizer *tokenizer) {
    if (!tokenizer) return;
    pith_free(tokenizer->texts);
    pith_free(tokenizer->text_starts);
    pith_free(tokenizer->types);
    pith_free(tokenizer->marks);
    pith_free(tokenizer->whole);
    pith_piece_memo_free(tokenizer->memo);
    pith_piece_table_deinit(&tokenizer->pieces);
    pith_splitter_free(tokenizer->splitter);
    pith_merge_rules_deinit(&tokenizer->merges);
    pith_free(tokenizer->byte_pairs);
    pith_free(tokenizer->ranks);
    pith_free(tokenizer->scores);
    pith_byte_trie_deinit(&tokenizer->trie);
    pith_charsmap_deinit(&tokenizer->charsmap);
    pith_special_match_deinit(&tokenizer->specials);
    pith_special_match_deinit(&tokenizer->user_defined);
    pith_buffer_deinit(&tokenizer->notes);
    pith_free(tokenizer);
}

const char *pith_tokenizer_notes(const pith_tokenizer *tokenizer) {
    return tokenizer->notes.size ? tokenizer->notes.data : "";
}

uint32_t pith_tokenizer_size(const pith_tokenizer *tokenizer) {
    return tokenizer->n_tokens;
}

static bool is_token(const pith_tokenizer *tokenizer, int32_t id) {
    return id >= 0 && (uint32_t)id < tokenizer->n_tokens;
}

pith_span pith_tokenizer_piece(const pith_tokenizer *tokenizer, int32_t id) {
    return is_token(tokenizer, id) ? text_of(tokenizer, (uint32_t)id) : (pith_span){0};
}

pith_span pith_tokenizer_bytes(const pith_tokenizer *tokenizer, int32_t id) {
    if (!is_token(tokenizer, id)) return (pith_span){0};
    pith_span text = text_of(tokenizer, (uint32_t)id);
    if (tokenizer->marks[id] & PITH_MARK_SHOWN) return text;
    switch (tokenizer->types[id]) {
    case PITH_TOKEN_USER_DEFINED: return text;
    case PITH_TOKEN_BYTE: {
        int byte = byte_of_text(text);
        return byte < 0 ? text : (pith_span){&tokenizer->byte_values[byte], 1};
    }
    case PITH_TOKEN_NORMAL: return pith_piece_at(&tokenizer->pieces, (uint32_t)id);
    default: return (pith_span){"", 0};
    }
}

pith_token_type pith_tokenizer_type(const pith_tokenizer *tokenizer, int32_t id) {
    return is_token(tokenizer, id) ? (pith_token_type)tokenizer->types[id] : PITH_TOKEN_UNDEFINED;
}

int32_t pith_tokenizer_find(const pith_tokenizer *tokenizer, pith_span piece) {
    char form[PITH_TOKEN_MAX_PIECE_BYTES];
    if (piece.size > sizeof form || !tokenizer->n_tokens) return -1;
    size_t size = pith_piece_form_write(tokenizer->form, piece, form);
    uint32_t found = size == SIZE_MAX
                         ? pith_piece_table_find_odd(&tokenizer->pieces, piece.data, piece.size)
                         : pith_piece_table_find(&tokenizer->pieces, form, size);
    return found < tokenizer->n_tokens ? (int32_t)found : -1;
}

int32_t pith_tokenizer_special(const pith_tokenizer *tokenizer, pith_special which) {
    switch (which) {
    case PITH_SPECIAL_BOS: return tokenizer->bos;
    case PITH_SPECIAL_EOS: return tokenizer->eos;
    case PITH_SPECIAL_EOT: return tokenizer->eot;
    case PITH_SPECIAL_UNKNOWN: return tokenizer->unknown;
    case PITH_SPECIAL_PAD: return tokenizer->padding;
    }
    return -1;
}

bool pith_tokenizer_adds_bos(const pith_tokenizer *tokenizer) {
    return tokenizer->add_bos && tokenizer->bos >= 0;
}

bool pith_tokenizer_adds_eos(const pith_tokenizer *tokenizer) {
    return tokenizer->add_eos && tokenizer->eos >= 0;
}

bool pith_tokenizer_is_end(const pith_tokenizer *tokenizer, int32_t id) {
    return is_token(tokenizer, id) && (tokenizer->marks[id] & PITH_MARK_END);
}
