/* SPDX-License-Identifier: Apache-2.0
 * Text <-> token ids. Knows no file: a vocabulary is given as arrays (src/model/vocab.c fills them
 * from GGUF).
 * Algorithms: formats page section 6. Immutable after new; several threads may encode at once. */
#ifndef PITH_TOKEN_TOKEN_H
#define PITH_TOKEN_TOKEN_H

#include "base/text.h"

typedef enum pith_token_model {
    PITH_TOKEN_MODEL_SPM, /* "llama": SentencePiece BPE with byte fallback */
    PITH_TOKEN_MODEL_BPE, /* "gpt2": byte-level BPE with a pre-tokenizer */
    PITH_TOKEN_MODEL_WPM, /* "bert": WordPiece */
    PITH_TOKEN_MODEL_UGM, /* "t5": Unigram */
    PITH_TOKEN_MODEL_NONE /* no vocabulary: only ids */
} pith_token_model;

/* tokenizer.ggml.token_type */
typedef enum pith_token_type {
    PITH_TOKEN_UNDEFINED = 0,
    PITH_TOKEN_NORMAL = 1,
    PITH_TOKEN_UNKNOWN = 2,
    PITH_TOKEN_CONTROL = 3,
    PITH_TOKEN_USER_DEFINED = 4,
    PITH_TOKEN_UNUSED = 5,
    PITH_TOKEN_BYTE = 6
} pith_token_type;

typedef struct pith_vocab_source {
    pith_token_model model;
    pith_span pre; /* tokenizer.ggml.pre; "" is "default" */
    bool force;    /* an unknown pre-tokenizer becomes "default" and pith_tokenizer_notes says so */
    uint32_t n_tokens;
    const pith_span *texts;  /* [n_tokens], copied */
    const float *scores;     /* [n_tokens] or NULL (0) */
    const int32_t *types;    /* [n_tokens] or NULL (normal) */
    const pith_span *merges; /* [n_merges] "left right" (BPE) */
    uint32_t n_merges;
    /* -1: key absent, the model's default (6.2) or a token of a well-known name (6.7) applies */
    int32_t bos, eos, eot, eom, unknown, separator, padding, mask, fim_pad, fim_repo, fim_separator;
    int8_t add_bos, add_eos, add_sep, add_space_prefix;        /* -1: key absent */
    int8_t remove_extra_whitespaces, lowercase, strip_accents; /* -1: key absent */
    pith_span charsmap;                                        /* precompiled_charsmap (UGM) */
    pith_span model_name; /* general.name: decides the strip rules of formats page 6.5 */
    pith_span architecture;
} pith_vocab_source; /* init with pith_vocab_source_init */

void pith_vocab_source_init(pith_vocab_source *source); /* all absent */

typedef struct pith_tokenizer pith_tokenizer;

pith_status pith_tokenizer_new(const pith_vocab_source *source, pith_tokenizer **out,
                               pith_error *error);
void pith_tokenizer_free(pith_tokenizer *tokenizer);
const char *pith_tokenizer_notes(const pith_tokenizer *tokenizer); /* "" or one line each */

uint32_t pith_tokenizer_size(const pith_tokenizer *tokenizer);
/* As in the vocabulary, NUL-terminated; data NULL outside. */
pith_span pith_tokenizer_piece(const pith_tokenizer *tokenizer, int32_t id);
/* What it stands for in running text: nothing for control, unknown and unused tokens; data NULL
 * outside. */
pith_span pith_tokenizer_bytes(const pith_tokenizer *tokenizer, int32_t id);
pith_token_type pith_tokenizer_type(const pith_tokenizer *tokenizer, int32_t id);
int32_t pith_tokenizer_find(const pith_tokenizer *tokenizer, pith_span piece);       /* -1: none */
int32_t pith_tokenizer_special(const pith_tokenizer *tokenizer, pith_special which); /* -1: none */
bool pith_tokenizer_adds_bos(const pith_tokenizer *tokenizer);
bool pith_tokenizer_adds_eos(const pith_tokenizer *tokenizer);
/* End of generation: eos, eot, eom and the well-known names of formats page 6.7. */
bool pith_tokenizer_is_end(const pith_tokenizer *tokenizer, int32_t id);

/* A list of ids that grows. */
typedef struct pith_ids {
    int32_t *data;
    size_t size, capacity;
} pith_ids; /* zero-initialised is empty */
void pith_ids_deinit(pith_ids *ids);
bool pith_ids_append(pith_ids *ids, int32_t id);

/* One piece of a prompt; control tokens are recognised in it when parse_special. */
typedef struct pith_text_span {
    pith_span text;
    bool parse_special;
} pith_text_span;

/* Appends the ids of the spans, which form one text: a space prefix is added once, and pieces never
 * merge across a border between a parsed and an unparsed span. User-defined tokens are found in
 * both.
 * add_special: BOS/EOS/CLS/SEP as the vocabulary asks; what the text brings itself is not doubled.
 * Fails, with ids as they were, for lack of memory, for a model without vocabulary, and for more
 * than
 * 2 GiB of text. */
pith_status pith_tokenizer_encode(const pith_tokenizer *tokenizer, const pith_text_span *spans,
                                  size_t n_spans, bool add_special, pith_ids *ids,
                                  pith_error *error);

/* Streaming detokenization: never half a character. */
typedef struct pith_detok {
    const pith_tokenizer *tokenizer;
    bool show_control; /* control tokens appear as text */
    bool started; /* a text has begun: its first space is kept (set it to go on behind a prompt) */
    char pending[4];
    uint8_t n_pending;
    pith_buffer text; /* result of the last push */
} pith_detok;
void pith_detok_init(pith_detok *detok, const pith_tokenizer *tokenizer, bool show_control);
pith_span pith_detok_push(
    pith_detok *detok,
    int32_t id); /* id -1 flushes; ill-formed bytes become U+FFFD; valid until the next push */
void pith_detok_deinit(pith_detok *detok);

#endif
