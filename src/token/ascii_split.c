/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting without looking at characters one by one. The 64 bytes of a block become a mask for
 * each class, bit i for byte i; where a piece starts follows from masks and their neighbours
 * (shifts):
 *
 *   text      I   l i k e   i t ,   1 9 9 0 !
 *   letters   1 0 1 1 1 1 0 1 1 0 0 0 0 0 0 0
 *   starts    1 1 0 0 0 0 1 0 0 1 1 1 0 0 0 1     (cl100k shape, digits by threes: "199", "0")
 *
 * Only what is certain is given out: `known` ends three bytes before the first byte that is not
 * ASCII (a contraction and the character behind it), and in front of white space that goes on
 * behind the block where its end matters. tests/unit/token/test_splitter.c compares with PCRE2.
 * Invariant: the first byte of a block starts a piece. Read next: word_split.c, the scanners for
 * all other text, whose comments name the alternatives.
 */
#include "token/ascii_split.h"

#include "base/byte_block.h"

struct masks {
    uint64_t letter, digit, space, blank, newline, quote, high; /* blank: only ' ' */
};

/* A shape that does not ask for a mask does not pay for it: this is inlined. */
static inline struct masks read_masks(const char *text) {
    const pith_byte_block block = pith_byte_block_load(text);
    struct masks m;
    m.letter = pith_byte_block_between(&block, 0x20, 'a', 'z');
    m.digit = pith_byte_block_between(&block, 0, '0', '9');
    m.blank = pith_byte_block_equal(&block, ' ');
    m.space = m.blank | pith_byte_block_between(&block, 0, '\t', '\r');
    m.newline = pith_byte_block_equal(&block, '\n') | pith_byte_block_equal(&block, '\r');
    m.quote = pith_byte_block_equal(&block, '\'');
    m.high = pith_byte_block_high(&block);
    return m;
}

/* Bits below the first set one; all where there is none. */
static inline uint64_t below_first(uint64_t mask) {
    return (mask & (~mask + 1)) - 1;
}

/* Where a piece starts with a contraction, the next one starts behind it. From left to right: a cut
 * may make the next quote a start. */
static uint64_t cut_contractions(const char *text, uint64_t starts, uint64_t quotes,
                                 bool any_case) {
    const unsigned fold = any_case ? 0x20 : 0;
    uint64_t ahead = UINT64_MAX; /* bits that have not been looked at */
    while (quotes & starts & ahead) {
        unsigned at = pith_lowest_bit(quotes & starts & ahead);
        ahead = UINT64_MAX << at << 1;
        if (at + 3 >= PITH_BYTE_BLOCK) break;
        unsigned a = (unsigned char)text[at + 1] | fold, b = (unsigned char)text[at + 2] | fold;
        bool one = a == 's' || a == 't' || a == 'm' || a == 'd';
        bool two = ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l');
        if (!one && !two) continue;
        starts &= ~(UINT64_C(3) << (at + 1));
        starts |= UINT64_C(1) << (at + (one ? 2 : 3));
    }
    return starts;
}

/* GPT2: a run of one class with the blank in front of it; white space gives its last character to
 * what follows. */
static inline uint64_t starts_gpt2(const char *text, const struct masks *m, bool digits) {
    uint64_t other = ~(m->letter | m->digit | m->space), blank_before = m->blank << 1;
    uint64_t starts = (m->letter & ~(m->letter << 1)) | (other & ~(other << 1));
    uint64_t last_space = m->space & (m->space << 1) & ~(m->space >> 1);
    if (!digits) {
        starts |= m->digit & ~(m->digit << 1);
    } else {
        last_space &= ~(m->digit >> 1); /* white space in front of a digit ends its text */
    }
    starts &= ~blank_before;
    if (digits) starts |= m->digit;
    starts |= (m->space & ~(m->space << 1)) | last_space;
    return cut_contractions(text, starts | 1, m->quote, false);
}

/* Digits by threes, counted from the start of each run. */
static inline uint64_t starts_of_threes(uint64_t digit) {
    uint64_t at = digit & ~(digit << 1), starts = at;
    uint64_t four = digit & digit << 1 & digit << 2 & digit << 3;
    while ((at = at << 3 & four)) starts |= at;
    return starts;
}

/* White space without the newlines that punctuation takes along: where its pieces start. */
static inline uint64_t starts_of_space(uint64_t space, uint64_t all_space, uint64_t newline) {
    uint64_t plain = space & ~newline; /* after the last newline, or without one */
    uint64_t starts = space & ~(space << 1);
    starts |= plain & (plain << 1) & ~(all_space >> 1); /* the last of several */
    /* behind a newline, unless another one follows in the same run */
    for (uint64_t left = plain & ((newline & space) << 1); left; left &= left - 1) {
        uint64_t first = left & (~left + 1), behind = (plain + first) & ~plain;
        behind &= ~(first - 1);
        behind &= ~behind + 1; /* the first character behind the plain stretch */
        if (!(behind & newline & space)) starts |= first;
    }
    return starts;
}

static inline uint64_t starts_cl100k(const char *text, const struct masks *m, bool threes) {
    uint64_t other = ~(m->letter | m->digit | m->space), blank_before = m->blank << 1;
    uint64_t other_before = other << 1, taken = m->newline & other_before;
    for (uint64_t more = taken; (more = more << 1 & m->newline & ~taken);) taken |= more;
    /* a word takes the character in front of it: white space but newlines, or a sign by itself */
    uint64_t front = (m->space & ~m->newline) << 1;
    front |= other_before & ~(other << 2) & ~(m->blank << 2);
    uint64_t starts = m->letter & ~(m->letter << 1) & ~front;
    starts |= other & ~other_before & ~blank_before;
    starts |= threes ? starts_of_threes(m->digit) : m->digit;
    starts |= starts_of_space(m->space & ~taken, m->space, m->newline);
    return cut_contractions(text, starts | 1, m->quote, true);
}

/* Writes the bits of `starts` as offsets, eight at once: how many blocks of eight there are is
 * easier to foresee than how many bits. */
static inline size_t write_ends(uint64_t starts, size_t at, size_t *ends) {
    const size_t n = pith_count_bits(starts);
    const uint64_t top = UINT64_C(1) << 63; /* behind the last one */
    for (size_t i = 0; i < n; i += 8)
        for (size_t k = 0; k < 8; k++, starts &= starts - 1)
            ends[i + k] = at + pith_lowest_bit(starts | top);
    return n;
}

/* Where pieces start in the block, as far as that is certain, without its first byte. */
static inline uint64_t block_starts(pith_ascii_shape shape, const char *block) {
    const struct masks m = read_masks(block);
    uint64_t ascii = below_first(m.high), known = ascii >> 3, starts;
    if (shape == PITH_ASCII_GPT2 || shape == PITH_ASCII_GPT2_DIGITS) {
        starts = starts_gpt2(block, &m, shape == PITH_ASCII_GPT2_DIGITS);
    } else {
        /* white space that reaches the end of what is known: only its start is certain */
        uint64_t solid = ascii & ~m.space;
        known &= solid ? UINT64_MAX >> (63 - pith_highest_bit(solid)) << 1 | 1 : 1;
        starts = starts_cl100k(block, &m, shape == PITH_ASCII_L3);
    }
    return starts & known & ~UINT64_C(1);
}

/* The next block hangs on nothing but the last bit of this one, so that a processor works on
 * several at once. */
static inline size_t split_blocks(pith_ascii_shape shape, pith_span text, size_t at, size_t *ends,
                                  size_t room) {
    size_t n = 0;
    while (text.size - at >= PITH_BYTE_BLOCK && room - n >= PITH_BYTE_BLOCK) {
        uint64_t starts = block_starts(shape, text.data + at);
        if (!starts) break;
        n += write_ends(starts, at, ends + n);
        at += pith_highest_bit(starts);
    }
    return n;
}

size_t pith_ascii_split(pith_ascii_shape shape, pith_span text, size_t at, size_t *ends,
                        size_t room) {
    switch (shape) { /* one copy of the code each */
    case PITH_ASCII_GPT2: return split_blocks(PITH_ASCII_GPT2, text, at, ends, room);
    case PITH_ASCII_GPT2_DIGITS: return split_blocks(PITH_ASCII_GPT2_DIGITS, text, at, ends, room);
    case PITH_ASCII_Q2: return split_blocks(PITH_ASCII_Q2, text, at, ends, room);
    case PITH_ASCII_L3: break;
    }
    return split_blocks(PITH_ASCII_L3, text, at, ends, room);
}
