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

#include "token/byte_words.h"

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

struct masks {
    uint64_t letter, digit, space, blank, newline, quote, high; /* blank: only ' ' */
};

enum { LETTER = 1, DIGIT = 2, SPACE = 4, BLANK = 8, NEWLINE = 16, QUOTE = 32, HIGH = 64 };

/* Classes of the block's bytes. Compares without branches: compilers make vectors of this loop. */
static inline void read_classes(const char *text, uint8_t *classes) {
    for (unsigned i = 0; i < PITH_ASCII_BLOCK; i++) {
        uint8_t c = (uint8_t)text[i];
        uint8_t letter = (uint8_t)((c | 0x20) - 'a') < 26 ? LETTER : 0;
        uint8_t digit = (uint8_t)(c - '0') < 10 ? DIGIT : 0;
        uint8_t tab = (uint8_t)(c - '\t') < 5 ? SPACE : 0;
        uint8_t blank = c == ' ' ? SPACE | BLANK : 0;
        uint8_t newline = c == '\n' || c == '\r' ? NEWLINE : 0;
        uint8_t quote = c == '\'' ? QUOTE : 0;
        uint8_t high = c >= 0x80 ? HIGH : 0;
        classes[i] = (uint8_t)(letter | digit | tab | blank | newline | quote | high);
    }
}

/* Bit `bit` of eight bytes as the eight low bits of a number. */
static inline uint64_t gather(uint64_t classes, unsigned bit) {
    return ((classes >> bit & ONES) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline void read_masks(const char *text, struct masks *m) {
    uint8_t classes[PITH_ASCII_BLOCK];
    read_classes(text, classes);
    *m = (struct masks){0};
    for (unsigned i = 0; i < PITH_ASCII_BLOCK; i += 8) {
        uint64_t eight = pith_load_8((const char *)classes + i);
        m->letter |= gather(eight, 0) << i;
        m->digit |= gather(eight, 1) << i;
        m->space |= gather(eight, 2) << i;
        m->blank |= gather(eight, 3) << i;
        m->newline |= gather(eight, 4) << i;
        m->quote |= gather(eight, 5) << i;
        m->high |= gather(eight, 6) << i;
    }
}

/* Index of the lowest bit of a mask that has one (de Bruijn). */
static inline unsigned lowest(uint64_t mask) {
    static const uint8_t index[64] = {
        0,  1,  2,  53, 3,  7,  54, 27, 4,  38, 41, 8,  34, 55, 48, 28, 62, 5,  39, 46, 44, 42,
        22, 9,  24, 35, 59, 56, 49, 18, 29, 11, 63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21,
        23, 58, 17, 10, 51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12};
    return index[((mask & (~mask + 1)) * UINT64_C(0x022FDD63CC95386D)) >> 58];
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
        unsigned at = lowest(quotes & starts & ahead);
        ahead = UINT64_MAX << at << 1;
        if (at + 3 >= PITH_ASCII_BLOCK) break;
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
static uint64_t starts_gpt2(const char *text, const struct masks *m, bool digits) {
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
static uint64_t starts_of_threes(uint64_t digit) {
    uint64_t at = digit & ~(digit << 1), starts = at;
    uint64_t four = digit & digit << 1 & digit << 2 & digit << 3;
    while ((at = at << 3 & four)) starts |= at;
    return starts;
}

/* White space without the newlines that punctuation takes along: where its pieces start. */
static uint64_t starts_of_space(uint64_t space, uint64_t all_space, uint64_t newline) {
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

static uint64_t starts_cl100k(const char *text, const struct masks *m, bool threes) {
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

size_t pith_ascii_split(pith_ascii_shape shape, const char *text, size_t at, size_t *ends) {
    const char *block = text + at;
    if ((pith_load_8(block) | pith_load_8(block + 8)) & HIGHS) return 0;
    struct masks m;
    read_masks(block, &m);
    uint64_t ascii = below_first(m.high), known = ascii >> 3, starts;
    if (shape == PITH_ASCII_GPT2 || shape == PITH_ASCII_GPT2_DIGITS) {
        starts = starts_gpt2(block, &m, shape == PITH_ASCII_GPT2_DIGITS);
    } else {
        /* white space that reaches the end of what is known: only its start is certain */
        uint64_t solid = ascii & ~m.space;
        uint64_t top = solid ? solid : 0;
        for (unsigned s = 1; s < 64; s *= 2)
            top |= top >> s; /* all bits up to the last solid one */
        known &= top << 1 | 1;
        starts = starts_cl100k(block, &m, shape == PITH_ASCII_L3);
    }
    size_t n = 0;
    for (starts &= known & ~UINT64_C(1); starts; starts &= starts - 1)
        ends[n++] = at + lowest(starts);
    return n;
}
