/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece ("bert"), as the BERT tokenizer does it: clean, decompose and drop accents,
 * lower-case, cut at white space, punctuation and ideographs, then take the longest token from the
 * left of each word.
 *
 * The vocabulary spells the head of a word with U+2581 in front (here: a space) and its other
 * parts bare. A word of more than MOST_CHARACTERS characters, or with a part that no token covers,
 * is unknown as a whole. Invariant: a word is at most MOST_CHARACTERS long when it is searched, so
 * work is linear in the text. Read next: normal_form.h for decomposition.
 */
#include "token/char_class.h"
#include "token/normal_form.h"
#include "token/token_internal.h"

#include <string.h>
#include <utf8proc.h>

enum { MOST_CHARACTERS = 100 }; /* max_input_chars_per_word */

static bool is_ideograph(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* The word being read lies in run->work, a space in front. */
struct word {
    pith_encode_run *run;
    size_t n_characters;
};

/* Longest token at word[at, size), or 0 bytes. */
static size_t longest_token(pith_encode_run *run, pith_span word, size_t at, uint32_t *id) {
    const pith_tokenizer *t = run->tokenizer;
    size_t size = word.size - at;
    if (size > t->pieces.longest) size = t->pieces.longest;
    for (; size > 0; size--) {
        bool inside = at + size < word.size && ((unsigned char)word.data[at + size] & 0xC0) == 0x80;
        if (inside) continue; /* not at a character's border */
        run->steps++;
        *id = pith_piece_table_find(&t->pieces, word.data + at, size);
        if (*id < t->n_tokens && t->whole[*id] != PITH_WHOLE_BARRED) return size;
    }
    return 0;
}

static void end_word(struct word *word) {
    pith_encode_run *run = word->run;
    size_t before = run->ids->size, characters = word->n_characters;
    pith_span text = {run->work.data, run->work.size};
    if (!characters) return;
    bool known = characters <= MOST_CHARACTERS && !run->work.failed;
    for (size_t at = 0, size; known && at < text.size; at += size) {
        uint32_t id;
        size = longest_token(run, text, at, &id);
        known = size > 0;
        if (known) pith_encode_append(run, (int32_t)id);
    }
    if (!known) {
        run->ids->size = before;
        if (run->tokenizer->text_unknown >= 0)
            pith_encode_append(run, run->tokenizer->text_unknown);
    }
    run->failed = run->failed || run->work.failed;
    pith_buffer_reset(&run->work);
    word->n_characters = 0;
}

static void add_code(struct word *word, uint32_t code) {
    char bytes[4];
    size_t size = pith_utf8_encode(code, bytes);
    if (word->n_characters++ > MOST_CHARACTERS) return; /* unknown anyway */
    if (word->n_characters == 1) pith_buffer_append(&word->run->work, " ", 1);
    pith_buffer_append(&word->run->work, bytes, size);
}

static void add_character(struct word *word, uint32_t code) {
    if (!word->run->tokenizer->lowercase) {
        add_code(word, code);
    } else if (code == 0x130) { /* the one character whose lower case is two */
        add_code(word, 'i');
        add_code(word, 0x307);
    } else {
        add_code(word, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
    }
}

/* One character of the text behind cleaning: words end at white space; signs and ideographs are
 * words. */
static void take_code(struct word *word, uint32_t code) {
    uint16_t bits = pith_char_class(code);
    bool ascii_sign = code < 0x7F && (bits & PITH_CHAR_SYMBOL);
    if (bits & PITH_CHAR_SPACE) {
        end_word(word);
    } else if ((bits & PITH_CHAR_PUNCT) || ascii_sign || is_ideograph(code)) {
        end_word(word);
        add_character(word, code);
        end_word(word);
    } else {
        add_character(word, code);
    }
}

void pith_encode_wpm(pith_encode_run *run, pith_span text) {
    struct word word = {.run = run};
    int32_t codes[PITH_DECOMPOSED_CODES];
    pith_buffer_reset(&run->work);
    for (size_t at = 0; at < text.size && !run->failed;) {
        uint32_t code;
        at += pith_utf8_decode(text.data + at, text.size - at, &code);
        uint16_t bits = pith_char_class(code);
        bool dropped = code == 0xFFFD || code == PITH_UTF8_INVALID ||
                       ((bits & PITH_CHAR_CONTROL) && !(bits & PITH_CHAR_SPACE));
        if (dropped) continue;
        if (!run->tokenizer->strip_accents || code < 0x80) {
            take_code(&word, code);
            continue;
        }
        size_t n = pith_decompose(code, codes);
        for (size_t i = 0; i < n; i++)
            if (utf8proc_category(codes[i]) != UTF8PROC_CATEGORY_MN)
                take_code(&word, (uint32_t)codes[i]);
    }
    end_word(&word);
}
