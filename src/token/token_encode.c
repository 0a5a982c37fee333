/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to ids. A text is cut at the special tokens written in it; what lies between goes to the
 * model's own encoding.
 *
 *   spans      [template, parsed]["user text", not parsed][template, parsed]
 *   groups     neighbours of one kind are one text
 *   fragments  <|im_start|> | user\n | ...   control tokens only in parsed groups, user-defined
 *                                           ones in all
 *
 * Then BOS/EOS (CLS/SEP) go round the whole, unless the text brought them itself. Invariant: on
 * failure ids are as they were. Work is linear in the text times the longest special token, plus
 * what the model's encoding takes (n log n at most). Read next: piece_encode.c, unigram.c,
 * wordpiece.c.
 */
#include "token/token_internal.h"

#include "base/memory.h"

#include <string.h>

void pith_ids_deinit(pith_ids *ids) {
    pith_free(ids->data);
    *ids = (pith_ids){0};
}

bool pith_ids_append(pith_ids *ids, int32_t id) {
    if (ids->size == ids->capacity) {
        size_t capacity = ids->capacity + ids->capacity / 2 + 64;
        if (capacity > SIZE_MAX / sizeof *ids->data) return false;
        int32_t *data = pith_realloc(ids->data, capacity * sizeof *data);
        if (!data) return false;
        ids->data = data;
        ids->capacity = capacity;
    }
    ids->data[ids->size++] = id;
    return true;
}

bool pith_ids_reserve(pith_ids *ids, size_t more) {
    if (ids->capacity - ids->size >= more) return true;
    if (more > SIZE_MAX / 8 / sizeof *ids->data) return false;
    size_t capacity = ids->size + ids->size / 2 + more;
    int32_t *data = pith_realloc(ids->data, capacity * sizeof *data);
    if (!data) return false;
    ids->data = data;
    ids->capacity = capacity;
    return true;
}

static void release(pith_encode_run *run) {
    pith_free(run->symbols);
    pith_free(run->heap);
    pith_free(run->fresh);
    pith_buffer_deinit(&run->work);
    pith_buffer_deinit(&run->normal);
    pith_buffer_deinit(&run->spaced);
}

/* The text with U+2581 as a space and, where asked for, one space in front. */
static pith_span space_text(pith_encode_run *run, pith_span text, bool prefix) {
    pith_buffer *spaced = &run->spaced;
    size_t from = 0;
    pith_buffer_reset(spaced);
    if (prefix) pith_buffer_append(spaced, " ", 1);
    for (size_t at = 0; at + 3 <= text.size; at++) {
        const char *mark = memchr(text.data + at, 0xE2, text.size - at - 2);
        if (!mark) break;
        at = (size_t)(mark - text.data);
        if (mark[1] != '\x96' || mark[2] != '\x81') continue;
        pith_buffer_append(spaced, text.data + from, at - from);
        pith_buffer_append(spaced, " ", 1);
        from = at + 3;
        at += 2;
    }
    if (!spaced->size) return text;
    pith_buffer_append(spaced, text.data + from, text.size - from);
    run->failed = run->failed || spaced->failed;
    return (pith_span){spaced->data, spaced->size};
}

static void encode_fragment(pith_encode_run *run, pith_span text, bool prefix) {
    pith_token_model model = run->tokenizer->model;
    bool raw = model == PITH_TOKEN_MODEL_BPE && run->tokenizer->form == PITH_FORM_SPACED;
    if (model == PITH_TOKEN_MODEL_SPM || raw) text = space_text(run, text, prefix && !raw);
    if (run->failed) return;
    switch (model) {
    case PITH_TOKEN_MODEL_SPM: pith_encode_spm(run, text); break;
    case PITH_TOKEN_MODEL_BPE: pith_encode_bpe(run, text); break;
    case PITH_TOKEN_MODEL_WPM: pith_encode_wpm(run, text); break;
    case PITH_TOKEN_MODEL_UGM: pith_encode_ugm(run, text); break;
    case PITH_TOKEN_MODEL_NONE: break;
    }
}

/* One group of spans. *prefix: the next fragment begins the text or follows a special token. */
static void encode_group(pith_encode_run *run, pith_span text, bool parse_special, bool *prefix) {
    const pith_tokenizer *t = run->tokenizer;
    const pith_special_match *match = parse_special ? &t->specials : &t->user_defined;
    for (size_t at = 0; at < text.size && !run->failed;) {
        uint32_t id = 0;
        size_t end = text.size,
               found = pith_special_match_next(match, text, at, &id, &end, &run->steps);
        bool special = found < text.size;
        size_t to = found;
        while (special && (t->marks[id] & PITH_MARK_LSTRIP) && to > at &&
               pith_is_space(text.data[to - 1]))
            to--;
        if (to > at) {
            encode_fragment(run, (pith_span){text.data + at, to - at},
                            *prefix && t->add_space_prefix);
            *prefix = false;
        }
        if (!special) return;
        pith_encode_append(run, (int32_t)id);
        *prefix = true;
        while ((t->marks[id] & PITH_MARK_RSTRIP) && end < text.size &&
               pith_is_space(text.data[end]))
            end++;
        at = end;
    }
}

/* All groups, neighbours of one kind joined. */
static void encode_spans(pith_encode_run *run, const pith_text_span *spans, size_t n_spans) {
    pith_buffer joined = {0};
    bool prefix = true;
    for (size_t i = 0, next; i < n_spans && !run->failed; i = next) {
        pith_span text = spans[i].text;
        next = i + 1;
        while (next < n_spans && spans[next].parse_special == spans[i].parse_special) next++;
        if (next > i + 1) {
            pith_buffer_reset(&joined);
            for (size_t k = i; k < next; k++)
                pith_buffer_append(&joined, spans[k].text.data, spans[k].text.size);
            text = (pith_span){joined.data, joined.size};
            run->failed = joined.failed;
        }
        encode_group(run, text, spans[i].parse_special, &prefix);
    }
    pith_buffer_deinit(&joined);
}

/* Puts id in front of ids[from, size) unless it is there. */
static void add_first(pith_encode_run *run, size_t from, int32_t id) {
    pith_ids *ids = run->ids;
    if (id < 0 || (ids->size > from && ids->data[from] == id)) return;
    pith_encode_append(run, id);
    if (run->failed) return;
    memmove(ids->data + from + 1, ids->data + from, (ids->size - 1 - from) * sizeof *ids->data);
    ids->data[from] = id;
}

static void add_last(pith_encode_run *run, size_t from, int32_t id) {
    pith_ids *ids = run->ids;
    if (id < 0 || (ids->size > from && ids->data[ids->size - 1] == id)) return;
    pith_encode_append(run, id);
}

static void add_ends(pith_encode_run *run, size_t from) {
    const pith_tokenizer *t = run->tokenizer;
    bool bert = t->model == PITH_TOKEN_MODEL_WPM; /* always [CLS] text [SEP] */
    if (t->add_bos || bert) add_first(run, from, t->bos);
    if (bert)
        add_last(run, from, t->separator);
    else if (t->add_eos)
        add_last(run, from, t->eos);
}

pith_status pith_tokenizer_encode_counted(const pith_tokenizer *tokenizer,
                                          const pith_text_span *spans, size_t n_spans,
                                          bool add_special, pith_ids *ids, uint64_t *steps,
                                          pith_error *error) {
    pith_encode_run run = {.tokenizer = tokenizer, .ids = ids};
    uint64_t bytes = 0;
    size_t from = ids->size;
    for (size_t i = 0; i < n_spans; i++) bytes += spans[i].text.size;
    if (tokenizer->model == PITH_TOKEN_MODEL_NONE)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the model has no vocabulary: it takes ids, not text");
    if (bytes > PITH_TOKEN_MAX_TEXT_BYTES)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the text has %llu bytes; pith takes 2 GiB at once",
                         (unsigned long long)bytes);
    run.failed = !pith_ids_reserve(ids, (size_t)(bytes / 3) + 256); /* what a text mostly gives */
    if (!run.failed) encode_spans(&run, spans, n_spans);
    if (add_special && !run.failed) add_ends(&run, from);
    release(&run);
    *steps = run.steps;
    if (!run.failed) return PITH_OK;
    ids->size = from;
    return pith_fail_memory(error, "tokens", bytes);
}

pith_status pith_tokenizer_encode(const pith_tokenizer *tokenizer, const pith_text_span *spans,
                                  size_t n_spans, bool add_special, pith_ids *ids,
                                  pith_error *error) {
    uint64_t steps;
    return pith_tokenizer_encode_counted(tokenizer, spans, n_spans, add_special, ids, &steps,
                                         error);
}
