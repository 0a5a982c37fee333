/* SPDX-License-Identifier: Apache-2.0
 * The pre-tokenizers by name (tokenizer.ggml.pre): which stages cut the text, and what else the
 * name implies. */
#ifndef PITH_TOKEN_PRE_TOKENIZER_H
#define PITH_TOKEN_PRE_TOKENIZER_H

#include "token/word_split.h"

/* A stage cuts every piece of the stage before it into its matches and the gaps between them. */
typedef enum pith_stage {
    PITH_STAGE_GPT2,
    PITH_STAGE_GPT2_DIGITS, /* \p{N}, then GPT2 on what lies between */
    PITH_STAGE_L3,
    PITH_STAGE_L3_RUNS,
    PITH_STAGE_Q2,
    PITH_STAGE_Q35,
    PITH_STAGE_SEED,
    PITH_STAGE_O2,
    PITH_STAGE_O2_ONE,
    PITH_STAGE_TEKKEN,
    PITH_STAGE_D3,
    PITH_STAGE_NUMBER,             /* \p{N} */
    PITH_STAGE_NUMBERS,            /* \p{N}+ */
    PITH_STAGE_NUMBERS_BY_3,       /* \p{N}{1,3} */
    PITH_STAGE_NUMBERS_FROM_RIGHT, /* groups of at most three, counted from the right */
    PITH_STAGE_DIGITS_FROM_RIGHT,  /* the same for \d */
    PITH_STAGE_LINES,              /* [^\n]+|\n+ */
    PITH_STAGE_TRAILING_SPACE,     /* \s+$ */
    PITH_STAGE_FIRST_REGEX,        /* from here on: PCRE2 */
    PITH_STAGE_PUNCT_DEFAULT = PITH_STAGE_FIRST_REGEX,
    PITH_STAGE_PUNCT_FALCON,
    PITH_STAGE_THREE_DIGITS,
    PITH_STAGE_NEWLINE,
    PITH_STAGE_DEEPSEEK_LETTERS,
    PITH_STAGE_DEEPSEEK_SIGNS,
    PITH_STAGE_DEEPSEEK_CJK,
    PITH_STAGE_CODER_LETTERS,
    PITH_STAGE_CODER_PUNCT,
    PITH_STAGE_CJK_KANA,
    PITH_STAGE_BLOOM,
    PITH_STAGE_EXAONE_MOE,
    PITH_STAGE_JAIS_2,
    PITH_STAGE_YOUTU,
    PITH_STAGE_AFMOE_SCRIPTS,
    PITH_STAGE_KIMI,
    PITH_STAGE_CHAMELEON_SENTINEL,
    PITH_STAGE_CHAMELEON_IMAGE,
    PITH_STAGE_CHAMELEON_BLANKS,
    PITH_STAGE_CHAMELEON_PUNCT,
    PITH_STAGE_WORDS, /* \S+ */
    PITH_STAGE_COUNT
} pith_stage;

enum {
    PITH_PRE_IGNORE_MERGES = 1, /* a piece that is a token needs no merging */
    PITH_PRE_ADD_BOS = 2,       /* unless the file says otherwise */
    PITH_PRE_NO_BOS = 4,        /* the default bos id does not hold */
    PITH_PRE_NFC = 8,           /* the model's own tokenizer normalises; GGUF does not carry it */
    PITH_PRE_RAW = 16,          /* merges are over UTF-8, not over mapped bytes */
    PITH_PRE_WHOLE_WORDS = 32,  /* a piece is a token or unknown */
    PITH_PRE_MASK_STRIPS = 64   /* <mask> takes white space on its left along */
};

enum { PITH_PRE_STAGES = 7 };
typedef struct pith_pre_tokenizer {
    char name[26];
    uint16_t flags;
    uint8_t n_stages;
    uint8_t stages[PITH_PRE_STAGES]; /* pith_stage */
} pith_pre_tokenizer;

const pith_pre_tokenizer *
pith_pre_tokenizer_find(pith_span name);                       /* "" is "default"; NULL: unknown */
const pith_pre_tokenizer *pith_pre_tokenizer_at(size_t index); /* NULL past the last */

const char *pith_stage_pattern(pith_stage stage);      /* PCRE2; NULL: a stage that counts */
pith_word_split *pith_stage_scanner(pith_stage stage); /* NULL: not one of word_split.h */

#endif
