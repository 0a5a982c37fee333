/* SPDX-License-Identifier: Apache-2.0
 * The common pre-tokenizer patterns as hand-written scanners: same pieces as the pattern (which
 * pre_tokenizer.c keeps beside each of them), several times faster. */
#ifndef PITH_TOKEN_WORD_SPLIT_H
#define PITH_TOKEN_WORD_SPLIT_H

#include "base/text.h"

/* Fast lanes write up to so many ends at once. */
enum { PITH_SPLIT_ROOM = 64 };

/* Writes the ends of the pieces of text[at, end) into ends, in order, until `end` is reached or
 * less than PITH_SPLIT_ROOM of `capacity` is left. Every piece has at least one byte and starts
 * where the one before ended. at < end, capacity > 0; returns how many, at least 1. */
typedef size_t pith_word_split(const char *text, size_t at, size_t end, size_t *ends,
                               size_t capacity);

pith_word_split pith_split_gpt2;
pith_word_split pith_split_gpt2_digits; /* every number by itself, and what lies between them */
pith_word_split pith_split_l3;          /* cl100k shape, numbers by threes */
pith_word_split pith_split_l3_runs;     /* ... whole numbers */
pith_word_split pith_split_q2;          /* ... single digits */
pith_word_split pith_split_q35;         /* ... single digits, marks are part of words */
pith_word_split pith_split_seed;        /* ... single digits, punctuation takes no newlines along */
pith_word_split pith_split_o2;          /* o200k shape: words by case, numbers by threes */
pith_word_split pith_split_o2_one;      /* ... single digits */
pith_word_split pith_split_tekken;      /* ... single digits, no contractions */
pith_word_split pith_split_d3;          /* deepseek-v3 */

#endif
