/* SPDX-License-Identifier: Apache-2.0
 * Cuts a text into the pieces of a pre-tokenizer: a chain of scanners, counters and PCRE2
 * patterns. */
#ifndef PITH_TOKEN_SPLITTER_H
#define PITH_TOKEN_SPLITTER_H

#include "token/pre_tokenizer.h"

typedef struct pith_splitter pith_splitter; /* immutable; several threads may split at once */

/* only_patterns: every stage that has a pattern runs in PCRE2, scanners or not. Slow; the tests'
 * second opinion. */
pith_status pith_splitter_new(const pith_pre_tokenizer *pre, bool only_patterns,
                              pith_splitter **out, pith_error *error);
void pith_splitter_free(pith_splitter *splitter);

/* What a stage remembers between two calls. */
typedef struct pith_split_state {
    size_t start; /* PCRE2: the match behind the gap just given; counters: where the run ends */
    size_t end;   /* ...: its end; characters of the run that are left */
    bool pending;
} pith_split_state;

typedef struct pith_split {
    const pith_splitter *splitter;
    pith_span text; /* as given, or `clean` */
    size_t at;      /* start of the next piece in text */
    size_t limits[PITH_PRE_STAGES +
                  1]; /* [i + 1]: end of the current piece of stage i; [0]: of the text */
    pith_split_state states[PITH_PRE_STAGES];
    void *match, *context, *stack; /* PCRE2's working memory */
    bool failed;                   /* no memory: the pieces end early */
    pith_buffer clean; /* the text with U+FFFD for ill-formed bytes, where a stage is a pattern */
    size_t *broken;    /* [n_broken] where they stand in `clean` */
    size_t n_broken, next_broken;
} pith_split;

/* text stays the caller's and must live until close. False: no memory. Close in every case. */
bool pith_split_open(pith_split *split, const pith_splitter *splitter, pith_span text);
/* Ends of the next pieces, as offsets in the text given to open, not always as many as there is
 * room for; 0 when there are no more. */
size_t pith_split_next(pith_split *split, size_t *ends, size_t capacity);
void pith_split_close(pith_split *split);

#endif
