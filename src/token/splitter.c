/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the stages of a pre-tokenizer. Stage i sees one piece of stage i - 1 at a time and nothing
 * beyond it, as if it were a text of its own:
 *
 *   text      |---------------------------------------------|  limits[0]
 *   stage 0   |--------------------|                            limits[1]
 *   stage 1   |-----------|                                     limits[2]
 *             ^ at        ^ end of the next piece
 *
 * When `at` reaches a stage's limit, that stage is asked for its next piece; so no recursion, and
 * a piece costs one step per stage. The last stage, where it is a scanner, writes many ends at
 * once. PCRE2 wants well-formed UTF-8: with ill-formed input, patterns see a copy with U+FFFD, and
 * ends are mapped back. Invariant: every stage advances, and a pattern's match is looked for once
 * (a gap keeps the match behind it). Read next: merge.c, which turns pieces into tokens.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "token/splitter.h"

#include "base/memory.h"
#include "token/char_class.h"

#include <pcre2.h>
#include <string.h>

struct pith_splitter {
    const pith_pre_tokenizer *pre;
    pcre2_general_context *memory;
    pcre2_code *codes[PITH_PRE_STAGES]; /* NULL: not a pattern */
    bool has_patterns;
};

enum { JIT_STACK_FIRST = 32 << 10, JIT_STACK_MOST = 1 << 20 };

static pith_status compile_stage(pith_splitter *splitter, size_t i, pith_error *error) {
    const char *pattern = pith_stage_pattern(splitter->pre->stages[i]);
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(splitter->memory);
    if (!context) return pith_fail_memory(error, "a pre-tokenizer pattern", 0);
    splitter->codes[i] = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                       PCRE2_UTF | PCRE2_UCP, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!splitter->codes[i])
        return pith_fail(
            error, code == PCRE2_ERROR_HEAP_FAILED ? PITH_ERROR_MEMORY : PITH_ERROR_INTERNAL,
            "pre-tokenizer \"%s\": pattern %zu does not compile: PCRE2 error %d at %zu",
            splitter->pre->name, i, code, (size_t)at);
    (void)pcre2_jit_compile(splitter->codes[i],
                            PCRE2_JIT_COMPLETE); /* where it can't, the interpreter runs */
    splitter->has_patterns = true;
    return PITH_OK;
}

pith_status pith_splitter_new(const pith_pre_tokenizer *pre, bool only_patterns,
                              pith_splitter **out, pith_error *error) {
    *out = NULL;
    pith_splitter *splitter = pith_alloc_zero(1, sizeof *splitter);
    if (!splitter) return pith_fail_memory(error, "a splitter", sizeof *splitter);
    splitter->pre = pre;
    splitter->memory = pcre2_general_context_create(pith_alloc_hook, pith_free_hook, NULL);
    pith_status status = PITH_OK;
    if (!splitter->memory) status = pith_fail_memory(error, "a splitter", 0);
    for (size_t i = 0; i < pre->n_stages && status == PITH_OK; i++) {
        pith_stage stage = pre->stages[i];
        bool pattern =
            stage >= PITH_STAGE_FIRST_REGEX || (only_patterns && pith_stage_pattern(stage));
        if (pattern) status = compile_stage(splitter, i, error);
    }
    if (status == PITH_OK)
        *out = splitter;
    else
        pith_splitter_free(splitter);
    return status;
}

void pith_splitter_free(pith_splitter *splitter) {
    if (!splitter) return;
    for (size_t i = 0; i < PITH_PRE_STAGES; i++) pcre2_code_free(splitter->codes[i]);
    pcre2_general_context_free(splitter->memory);
    pith_free(splitter);
}

/* Fills `clean` and `broken` when the text has ill-formed bytes. */
static bool clean_text(pith_split *split) {
    pith_span text = split->text;
    size_t n = 0, from = 0;
    for (int pass = 0; pass < 2; pass++) { /* count, then write */
        if (pass && !(split->broken = pith_alloc_array(n, sizeof *split->broken))) return false;
        for (size_t at = 0, size; at < text.size; at += size) {
            uint32_t code = (unsigned char)text.data[at];
            size = code < 0x80 ? 1 : pith_utf8_decode(text.data + at, text.size - at, &code);
            if (code != PITH_UTF8_INVALID) continue;
            if (!pass) {
                n++;
                continue;
            }
            pith_buffer_append(&split->clean, text.data + from, at - from);
            split->broken[split->n_broken++] = split->clean.size;
            pith_buffer_append(&split->clean, "\xEF\xBF\xBD", 3);
            from = at + 1;
        }
        if (!n) return true;
    }
    pith_buffer_append(&split->clean, text.data + from, text.size - from);
    split->text = (pith_span){split->clean.data, split->clean.size};
    return !split->clean.failed;
}

static bool open_regex(pith_split *split) {
    const pith_splitter *splitter = split->splitter;
    split->match = pcre2_match_data_create(1, splitter->memory);
    split->context = pcre2_match_context_create(splitter->memory);
    split->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MOST, splitter->memory);
    if (!split->match || !split->context) return false;
    pcre2_set_match_limit(split->context, UINT32_MAX);
    pcre2_set_depth_limit(split->context, UINT32_MAX);
    pcre2_set_heap_limit(split->context, UINT32_MAX);
    if (split->stack) pcre2_jit_stack_assign(split->context, NULL, split->stack);
    return clean_text(split);
}

bool pith_split_open(pith_split *split, const pith_splitter *splitter, pith_span text) {
    *split = (pith_split){.splitter = splitter, .text = text};
    if (splitter->has_patterns) split->failed = !open_regex(split);
    split->limits[0] = split->text.size;
    return !split->failed;
}

void pith_split_close(pith_split *split) {
    pcre2_match_data_free(split->match);
    pcre2_match_context_free(split->context);
    pcre2_jit_stack_free(split->stack);
    pith_buffer_deinit(&split->clean);
    pith_free(split->broken);
    *split = (pith_split){0};
}

/* The next match or gap of a pattern in text[at, limit). */
static size_t next_match(pith_split *split, size_t i, size_t at, size_t limit) {
    pith_split_state *state = &split->states[i];
    if (state->pending && state->start == at) {
        state->pending = false;
        return state->end;
    }
    PCRE2_SPTR subject = (PCRE2_SPTR)(split->text.data + at);
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    const pcre2_code *code = split->splitter->codes[i];
    int found = pcre2_match(code, subject, limit - at, 0, options, split->match, split->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(code, subject, limit - at, 0, options | PCRE2_NO_JIT, split->match,
                            split->context);
    if (found < 0) {
        if (found != PCRE2_ERROR_NOMATCH) split->failed = true;
        return limit;
    }
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(split->match);
    if (offsets[0] == 0) return at + offsets[1];
    *state = (pith_split_state){at + offsets[0], at + offsets[1], true};
    return state->start;
}

static size_t next_line(const char *text, size_t at, size_t limit) {
    if (text[at] != '\n') {
        const char *newline = memchr(text + at, '\n', limit - at);
        return newline ? (size_t)(newline - text) : limit;
    }
    while (at < limit && text[at] == '\n') at++;
    return at;
}

/* Up to `most` numbers (0: all), or the gap in front of the next one. */
static size_t next_numbers(const char *text, size_t at, size_t limit, unsigned most) {
    size_t size;
    bool number = pith_char_at(text, at, limit, &size) & PITH_CHAR_NUMBER;
    for (unsigned n = 0; at < limit && (!number || !most || n < most); n++) {
        if ((bool)(pith_char_at(text, at, limit, &size) & PITH_CHAR_NUMBER) != number) break;
        at += size;
    }
    return at;
}

/* Groups of three counted from the end of a run of characters with `mask`, or the gap in front of
 * the run. state: where the run ends and how many of its characters are left, so that a run is
 * counted once. */
static size_t next_from_right(pith_split *split, size_t i, size_t limit, unsigned mask) {
    const char *text = split->text.data;
    pith_split_state *state = &split->states[i];
    size_t at = split->at, size, run = at;
    if (!state->pending || at >= state->start) {
        while (run < limit && !(pith_char_at(text, run, limit, &size) & mask)) run += size;
        if (run > at) return run;
        size_t n = 0;
        for (; run < limit && (pith_char_at(text, run, limit, &size) & mask); n++) run += size;
        *state = (pith_split_state){run, n, true};
    }
    size_t take = state->end % 3 ? state->end % 3 : 3;
    state->end -= take;
    while (take--) {
        (void)pith_char_at(text, at, limit, &size);
        at += size;
    }
    return at;
}

/* The white space at the end of text[at, limit) as a piece of its own. */
static size_t next_trailing_space(const char *text, size_t at, size_t limit) {
    size_t start = limit, size;
    while (start > at) {
        size_t before = start - 1;
        while (before > at && ((unsigned char)text[before] & 0xC0) == 0x80 && start - before < 4)
            before--;
        bool space = pith_char_at(text, before, start, &size) & PITH_CHAR_SPACE;
        if (!space || before + size != start) break;
        start = before;
    }
    return start == at ? limit : start;
}

/* End of the piece of stage i that starts at split->at. */
static size_t next_end(pith_split *split, size_t i, size_t limit) {
    const char *text = split->text.data;
    size_t at = split->at, end;
    if (split->splitter->codes[i]) return next_match(split, i, at, limit);
    pith_stage stage = split->splitter->pre->stages[i];
    switch (stage) {
    case PITH_STAGE_NUMBER: return next_numbers(text, at, limit, 1);
    case PITH_STAGE_NUMBERS: return next_numbers(text, at, limit, 0);
    case PITH_STAGE_NUMBERS_BY_3: return next_numbers(text, at, limit, 3);
    case PITH_STAGE_NUMBERS_FROM_RIGHT: return next_from_right(split, i, limit, PITH_CHAR_NUMBER);
    case PITH_STAGE_DIGITS_FROM_RIGHT: return next_from_right(split, i, limit, PITH_CHAR_DIGIT);
    case PITH_STAGE_LINES: return next_line(text, at, limit);
    case PITH_STAGE_TRAILING_SPACE: return next_trailing_space(text, at, limit);
    default: break;
    }
    (void)pith_stage_scanner(stage)(text, at, limit, &end, 1);
    return end;
}

/* Ends in `clean` become ends in the text that was given: U+FFFD is two bytes longer than the byte
 * it stands for. */
static void map_back(pith_split *split, size_t *ends, size_t n) {
    for (size_t k = 0; k < n; k++) {
        while (split->next_broken < split->n_broken && split->broken[split->next_broken] < ends[k])
            split->next_broken++;
        ends[k] -= 2 * split->next_broken;
    }
}

size_t pith_split_next(pith_split *split, size_t *ends, size_t capacity) {
    const pith_pre_tokenizer *pre = split->splitter->pre;
    const size_t last = (size_t)pre->n_stages - 1;
    pith_word_split *scanner =
        split->splitter->codes[last] ? NULL : pith_stage_scanner(pre->stages[last]);
    size_t n = 0;
    while (n < capacity && split->at < split->limits[0] && !split->failed) {
        for (size_t i = 0; i < last; i++)
            if (split->limits[i + 1] == split->at)
                split->limits[i + 1] = next_end(split, i, split->limits[i]);
        size_t limit = split->limits[last];
        if (scanner)
            n += scanner(split->text.data, split->at, limit, ends + n, capacity - n);
        else
            ends[n++] = next_end(split, last, limit);
        split->at = ends[n - 1];
        if (scanner && capacity - n < PITH_SPLIT_ROOM) break;
    }
    if (split->n_broken) map_back(split, ends, n);
    return n;
}
