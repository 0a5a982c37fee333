/* SPDX-License-Identifier: Apache-2.0
 *
 * Scanners for the pattern families of the formats page 6.4: GPT2, L3/Q2/Q35 ("cl100k shape"),
 * O2/TK ("o200k shape") and D3. Each next_*() answers the question that a regex engine would:
 * which alternative matches first here, and how far. Backtracking is worked out by hand; the
 * comments name the alternative.
 *
 * Speed: ASCII letters are taken eight at a time (letter_gaps), other ASCII by table, the rest
 * through utf8proc. Invariant: next_*() returns more than `at` and at most `end`, and looks at
 * each byte a bounded number of times, so a text of any shape is split in linear time.
 * tests/unit/token/test_splitter.c compares every scanner with PCRE2. Read next: splitter.c, which
 * chains these with other stages.
 */
#include "token/word_split.h"

#include "token/ascii_split.h"
#include "token/byte_words.h"
#include "token/char_class.h"

#include <string.h>

enum {
    LETTER = PITH_CHAR_LETTER,
    NUMBER = PITH_CHAR_NUMBER,
    SPACE = PITH_CHAR_SPACE,
    NEWLINE = PITH_CHAR_NEWLINE,
    MARK = PITH_CHAR_MARK,
    UPPER = PITH_CHAR_UPPER,
    LOWER = PITH_CHAR_LOWER
};

/* What follows a run of punctuation at once. */
enum tail { TAIL_NONE, TAIL_NEWLINES, TAIL_NEWLINES_SLASHES };

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* High bit of every byte that is no ASCII letter. `fold` 0x20 takes both cases, 0 only a-z. */
static inline uint64_t letter_gaps(uint64_t word, uint64_t fold) {
    uint64_t low = (word | fold * ONES) & ~HIGHS;
    uint64_t from_a = low + (0x80 - 'a') * ONES, past_z = low + (0x80 - 'z' - 1) * ONES;
    return ~(from_a & ~past_z & ~word) & HIGHS;
}

/* Index of the lowest byte whose high bit is set: counts the bytes below it. */
static inline size_t first_gap(uint64_t gaps) {
    uint64_t below = (gaps - 1) & ~gaps;
    return (size_t)((((below >> 7) & ONES) * ONES) >> 56);
}

/* End of the run of characters that have one of the bits of `mask`; fold as above says which ASCII
 * letters mask has. */
static inline size_t run_end(const char *text, size_t at, size_t end, unsigned mask,
                             uint64_t fold) {
    for (;;) {
        while (end - at >= 8) {
            uint64_t gaps = letter_gaps(pith_load_8(text + at), fold);
            if (gaps) {
                at += first_gap(gaps);
                if ((unsigned char)text[at] < 0x80) return at; /* an ASCII gap has no bit of mask */
                break;
            }
            at += 8;
        }
        size_t size;
        if (at == end || !(pith_char_at(text, at, end, &size) & mask)) return at;
        at += size;
    }
}

static inline size_t word_end(const char *text, size_t at, size_t end, unsigned mask) {
    return run_end(text, at, end, mask, 0x20);
}

/* 's 't 'm 'd 're 've 'll at text[at] == '\'': its bytes, or 0. */
static inline size_t contraction(const char *text, size_t at, size_t end, bool any_case) {
    unsigned fold = any_case ? 0x20 : 0;
    if (end - at < 2) return 0;
    unsigned a = (unsigned char)text[at + 1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (end - at < 3) return 0;
    unsigned b = (unsigned char)text[at + 2] | fold;
    if ((a == 'r' || a == 'v') && b == 'e') return 3;
    return a == 'l' && b == 'l' ? 3 : 0;
}

/* \p{N}{1,limit}; limit 0: \p{N}+ */
static inline size_t number_end(const char *text, size_t at, size_t end, unsigned limit) {
    size_t size;
    for (unsigned n = 0; (!limit || n < limit) && at < end; n++) {
        if (!(pith_char_at(text, at, end, &size) & NUMBER)) break;
        at += size;
    }
    return at;
}

/* A run of characters without any bit of `not`, and its tail. */
static inline size_t other_end(const char *text, size_t at, size_t end, unsigned not,
                               enum tail tail) {
    size_t size;
    while (at < end && !(pith_char_at(text, at, end, &size) & not )) at += size;
    if (tail == TAIL_NONE) return at;
    while (at < end && (text[at] == '\r' || text[at] == '\n' ||
                        (tail == TAIL_NEWLINES_SLASHES && text[at] == '/')))
        at++;
    return at;
}

/* White space at `at` that no earlier alternative takes. newlines: `\s*[\r\n]+` goes first, so
 * that a run ends after its last newline. Then `\s+(?!\S)`: all at the end of the text (a
 * character with a bit of `border` ends it too), else all but the last character; then `\s+`. */
static inline size_t space_end(const char *text, size_t at, size_t end, bool newlines,
                               unsigned border) {
    size_t size, last = at, after_newline = at, to = at;
    while (to < end) {
        unsigned bits = pith_char_at(text, to, end, &size);
        if (!(bits & SPACE)) {
            if (bits & border) end = to;
            break;
        }
        last = to;
        to += size;
        if (bits & NEWLINE) after_newline = to;
    }
    if (newlines && after_newline > at) return after_newline;
    return to == end || last == at ? to : last;
}

/* GPT2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * digits: every number is a piece by itself, and the text between numbers stands alone. */
static inline size_t next_gpt2(const char *text, size_t at, size_t end, bool digits) {
    size_t size, from = at;
    unsigned bits = pith_char_at(text, at, end, &size);
    if (text[at] == '\'') {
        size_t bytes = contraction(text, at, end, false);
        if (bytes) return at + bytes;
    }
    if (text[at] == ' ' && end - at > 1) {
        size_t next_size;
        unsigned next = pith_char_at(text, at + 1, end, &next_size);
        if (!(next & (digits ? SPACE | NUMBER : SPACE))) {
            bits = next;
            size = next_size;
            from = at + 1;
        }
    }
    if (bits & LETTER) return word_end(text, from + size, end, LETTER);
    if (bits & SPACE) return space_end(text, at, end, false, digits ? NUMBER : 0);
    if (bits & NUMBER) return digits ? from + size : number_end(text, from + size, end, 0);
    return other_end(text, from + size, end, SPACE | LETTER | NUMBER, TAIL_NONE);
}

struct rules {
    unsigned word;   /* bits of characters that make words */
    unsigned number; /* digits a piece, 0: all */
    bool contractions;
    enum tail tail;
};

/* cl100k shape: C|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t next_cl100k(const char *text, size_t at, size_t end, struct rules rules) {
    size_t size, next_size;
    unsigned bits = pith_char_at(text, at, end, &size), next = 0;
    if (bits & LETTER) return word_end(text, at + size, end, rules.word);
    if (bits & NUMBER) return number_end(text, at, end, rules.number);
    if (text[at] == '\'') {
        size_t bytes = contraction(text, at, end, true);
        if (bytes) return at + bytes;
    }
    if (at + size < end) next = pith_char_at(text, at + size, end, &next_size);
    if (next & rules.word && !(bits & NEWLINE)) /* one character in front of a word belongs to it */
        return word_end(text, at + size + next_size, end, rules.word);
    if (bits & rules.word) return word_end(text, at + size, end, rules.word); /* a lone mark */
    unsigned not = SPACE | NUMBER | rules.word;
    if (!(bits & SPACE)) return other_end(text, at + size, end, not, rules.tail);
    if (text[at] == ' ' && end - at > 1 && !(next & not ))
        return other_end(text, at + size + next_size, end, not, rules.tail);
    return space_end(text, at, end, true, 0);
}

/* U*W+ from `at`: U takes all it can; where no W follows, it gives back to its last character that
 * is also a W. Returns `at` when nothing matches. */
static inline size_t lower_word_end(const char *text, size_t at, size_t end) {
    size_t size, to = at, both_end = at;
    while (to < end) {
        unsigned bits = pith_char_at(text, to, end, &size);
        if (!(bits & UPPER)) break;
        to += size;
        if (bits & LOWER) both_end = to;
    }
    if (to < end && (pith_char_at(text, to, end, &size) & LOWER))
        return run_end(text, to + size, end, LOWER, 0);
    return both_end;
}

/* U+W*. Only asked where U*W+ failed, so there is no W behind the run of U. */
static inline size_t upper_word_end(const char *text, size_t at, size_t end) {
    size_t size;
    while (at < end && (pith_char_at(text, at, end, &size) & UPPER)) at += size;
    return at;
}

/* The two word alternatives of the o200k shape, each first with the character in front, then
 * without it. */
static inline size_t cased_word_end(const char *text, size_t at, size_t end, unsigned bits,
                                    size_t size) {
    bool front = !(bits & (NEWLINE | LETTER | NUMBER));
    size_t from = front ? at + size : at, to = lower_word_end(text, from, end);
    if (to == from && front && (bits & MARK)) {
        from = at;
        to = lower_word_end(text, from, end);
    }
    if (to != from) return to;
    from = front ? at + size : at;
    to = upper_word_end(text, from, end);
    return to == from ? at : to;
}

/* o200k shape: [^\r\n\p{L}\p{N}]?U*W+(C)?|[^\r\n\p{L}\p{N}]?U+W*(C)?|\p{N}{1,3}|
 * ?[^\s\p{L}\p{N}]+[\r\n/]*|... */
static inline size_t next_o200k(const char *text, size_t at, size_t end, struct rules rules) {
    size_t size, next_size;
    unsigned bits = pith_char_at(text, at, end, &size), next = 0;
    if (bits & NUMBER) return number_end(text, at, end, rules.number);
    size_t to = cased_word_end(text, at, end, bits, size);
    if (to != at) {
        if (rules.contractions && to < end && text[to] == '\'')
            to += contraction(text, to, end, true);
        return to;
    }
    unsigned not = SPACE | LETTER | NUMBER;
    if (!(bits & SPACE)) return other_end(text, at + size, end, not, rules.tail);
    if (text[at] == ' ' && end - at > 1) {
        next = pith_char_at(text, at + 1, end, &next_size);
        if (!(next & not )) return other_end(text, at + 1 + next_size, end, not, rules.tail);
    }
    return space_end(text, at, end, true, 0);
}

static inline bool is_ascii_letter(char c) {
    return (pith_char_ascii[(unsigned char)c & 0x7F] & LETTER) && (unsigned char)c < 0x80;
}

/* D3: <ASCII punctuation>[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
 * ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ Returns `at` where nothing matches: numbers,
 * control and unassigned characters. */
static inline size_t match_d3(const char *text, size_t at, size_t end) {
    const unsigned word = LETTER | MARK, sign = PITH_CHAR_PUNCT | PITH_CHAR_SYMBOL;
    size_t size, next_size = 0;
    unsigned bits = pith_char_at(text, at, end, &size), next = 0;
    if (bits & LETTER) return word_end(text, at + size, end, word);
    size_t after = at + size;
    if (after < end) next = pith_char_at(text, after, end, &next_size);
    if (bits & sign) {
        if ((unsigned char)text[at] < 0x80 && after < end && is_ascii_letter(text[after])) {
            while (after < end && is_ascii_letter(text[after])) after++;
            return after;
        }
    } else if (!(bits & NEWLINE) && (next & word)) {
        return word_end(text, after + next_size, end, word);
    }
    if (bits & MARK) return word_end(text, after, end, word);
    size_t from = text[at] == ' ' && (next & sign) ? after : at;
    if ((from == at ? bits : next) & sign) {
        while (from < end && (pith_char_at(text, from, end, &size) & sign)) from += size;
        while (from < end && (text[from] == '\r' || text[from] == '\n')) from++;
        return from;
    }
    return bits & SPACE ? space_end(text, at, end, true, 0) : at;
}

static inline size_t next_d3(const char *text, size_t at, size_t end) {
    size_t to = match_d3(text, at, end);
    if (to != at) return to;
    do { /* a gap: up to where something matches again */
        size_t size;
        (void)pith_char_at(text, at, end, &size);
        at += size;
    } while (at < end && match_d3(text, at, end) == at);
    return at;
}

static inline size_t fill_gpt2(const char *text, size_t at, size_t end, size_t *ends,
                               size_t capacity, bool digits) {
    const pith_ascii_shape shape = digits ? PITH_ASCII_GPT2_DIGITS : PITH_ASCII_GPT2;
    size_t n = 0;
    while (at < end && n < capacity) {
        size_t more = pith_ascii_split(shape, (pith_span){text, end}, at, ends + n, capacity - n);
        if (!more) ends[n + more++] = next_gpt2(text, at, end, digits);
        n += more;
        at = ends[n - 1];
        if (capacity - n < PITH_SPLIT_ROOM) break; /* no room for the fast lane */
    }
    return n;
}

size_t pith_split_gpt2(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    return fill_gpt2(text, at, end, ends, capacity, false);
}

size_t pith_split_gpt2_digits(const char *text, size_t at, size_t end, size_t *ends,
                              size_t capacity) {
    return fill_gpt2(text, at, end, ends, capacity, true);
}

static inline size_t fill_cl100k(const char *text, size_t at, size_t end, size_t *ends,
                                 size_t capacity, struct rules rules) {
    size_t n = 0;
    while (at < end && n < capacity) ends[n++] = at = next_cl100k(text, at, end, rules);
    return n;
}

/* L3 and Q2: the fast lane first. */
static inline size_t fill_cl100k_fast(const char *text, size_t at, size_t end, size_t *ends,
                                      size_t capacity, struct rules rules) {
    const pith_ascii_shape shape = rules.number == 3 ? PITH_ASCII_L3 : PITH_ASCII_Q2;
    size_t n = 0;
    while (at < end && n < capacity) {
        size_t more = pith_ascii_split(shape, (pith_span){text, end}, at, ends + n, capacity - n);
        if (!more) ends[n + more++] = next_cl100k(text, at, end, rules);
        n += more;
        at = ends[n - 1];
        if (capacity - n < PITH_SPLIT_ROOM) break; /* no room for the fast lane */
    }
    return n;
}

static inline size_t fill_o200k(const char *text, size_t at, size_t end, size_t *ends,
                                size_t capacity, struct rules rules) {
    size_t n = 0;
    while (at < end && n < capacity) ends[n++] = at = next_o200k(text, at, end, rules);
    return n;
}

size_t pith_split_l3(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.word = LETTER, .number = 3, .tail = TAIL_NEWLINES};
    return fill_cl100k_fast(text, at, end, ends, capacity, rules);
}

size_t pith_split_l3_runs(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.word = LETTER, .number = 0, .tail = TAIL_NEWLINES};
    return fill_cl100k(text, at, end, ends, capacity, rules);
}

size_t pith_split_q2(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.word = LETTER, .number = 1, .tail = TAIL_NEWLINES};
    return fill_cl100k_fast(text, at, end, ends, capacity, rules);
}

size_t pith_split_q35(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.word = LETTER | MARK, .number = 1, .tail = TAIL_NEWLINES};
    return fill_cl100k(text, at, end, ends, capacity, rules);
}

size_t pith_split_seed(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.word = LETTER, .number = 1, .tail = TAIL_NONE};
    return fill_cl100k(text, at, end, ends, capacity, rules);
}

size_t pith_split_o2(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.number = 3, .contractions = true, .tail = TAIL_NEWLINES_SLASHES};
    return fill_o200k(text, at, end, ends, capacity, rules);
}

size_t pith_split_o2_one(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.number = 1, .contractions = true, .tail = TAIL_NEWLINES_SLASHES};
    return fill_o200k(text, at, end, ends, capacity, rules);
}

size_t pith_split_tekken(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    const struct rules rules = {.number = 1, .tail = TAIL_NEWLINES_SLASHES};
    return fill_o200k(text, at, end, ends, capacity, rules);
}

size_t pith_split_d3(const char *text, size_t at, size_t end, size_t *ends, size_t capacity) {
    size_t n = 0;
    while (at < end && n < capacity) ends[n++] = at = next_d3(text, at, end);
    return n;
}
