/* SPDX-License-Identifier: Apache-2.0
 * What the files of this room share: the tokenizer itself and one run of encoding. Everything a
 * run needs to change lies in the run; a tokenizer is not written after pith_tokenizer_new, except
 * for its two memories. */
#ifndef PITH_TOKEN_TOKEN_INTERNAL_H
#define PITH_TOKEN_TOKEN_INTERNAL_H

#include "token/byte_trie.h"
#include "token/charsmap.h"
#include "token/merge_rules.h"
#include "token/piece_memo.h"
#include "token/piece_table.h"
#include "token/special_match.h"
#include "token/splitter.h"
#include "token/token.h"

enum { /* published limits */
       PITH_TOKEN_MAX_TOKENS = 1 << 24,
       PITH_TOKEN_MAX_PIECE_BYTES = 4096, /* one token's text */
       PITH_TOKEN_MAX_MERGES = 1 << 24
};
#define PITH_TOKEN_MAX_TEXT_BYTES (UINT64_C(1) << 31) /* one text to encode */

/* How a token's text and running text are made alike before they are compared. */
typedef enum pith_piece_form {
    PITH_FORM_MAPPED, /* byte-level BPE: one printable character of the vocabulary is a byte */
    PITH_FORM_SPACED  /* everything else: U+2581, there and in text, is a space */
} pith_piece_form;

/* What decides which neighbours merge first. */
typedef enum pith_merge_order {
    PITH_ORDER_RULES, /* the merge list */
    PITH_ORDER_IDS,   /* no merge list: tokens merge, the lower id first, as in tiktoken files */
    PITH_ORDER_SCORES /* SentencePiece: the higher score first */
} pith_merge_order;

/* What is known of a token when a whole piece equals it. */
enum {
    PITH_WHOLE_UNKNOWN, /* not tried yet: merging decides, and the answer is kept */
    PITH_WHOLE_YES,     /* merging the piece gives this token */
    PITH_WHOLE_NO,      /* it gives several tokens */
    PITH_WHOLE_BARRED   /* control, unknown, byte and unused tokens never come out of text */
};

enum {                       /* of a token */
       PITH_MARK_END = 1,    /* ends a generation */
       PITH_MARK_LSTRIP = 2, /* takes white space in front of it along */
       PITH_MARK_RSTRIP = 4, /* ... behind it */
       PITH_MARK_SHOWN = 8   /* a control token that is always shown */
};

struct pith_tokenizer {
    pith_token_model model;
    pith_piece_form form;
    uint32_t n_tokens;
    char *texts;           /* the vocabulary's texts, each with a NUL */
    uint32_t *text_starts; /* [n_tokens + 1] */
    uint8_t *types;        /* [n_tokens] pith_token_type */
    uint8_t *marks;        /* [n_tokens] PITH_MARK_* */
    atomic_uchar *whole;   /* [pieces.n] PITH_WHOLE_*; a memo: every thread would write the same */
    pith_piece_memo *memo; /* BPE, SPM */
    pith_piece_table pieces; /* [n_tokens + parts of merges that are no tokens] */
    /* BPE */
    const pith_pre_tokenizer *pre;
    pith_splitter *splitter;
    pith_merge_order order;
    pith_merge_rules merges;
    /* SPM and UGM */
    uint32_t *ranks; /* SPM: [n_tokens] by falling score */
    float *scores;   /* UGM: [n_tokens] */
    pith_byte_trie trie;
    pith_charsmap charsmap;
    float unknown_score;
    bool byte_fallback; /* UGM: all 256 byte tokens are there */
    bool glued[256];    /* SPM: some token has a space right behind this byte */
    /* all */
    uint32_t
        byte_pieces[256]; /* the piece of a byte (MAPPED), or its byte token; PITH_PIECE_NONE */
    uint32_t ascii_pieces[128]; /* the piece of a character */
    pith_byte_pair *byte_pairs; /* BPE with rules over bytes: [65536], first byte high */
    char byte_values[256];      /* 0, 1, ... 255: the bytes of byte tokens are lent from here */
    int32_t bos, eos, eot, eom, unknown, separator, padding, mask, fim_pad, fim_repo, fim_separator;
    int32_t text_unknown; /* what text that no token covers becomes: unknown, but -1 where that is a
                             token that begins or ends a text */
    bool add_bos, add_eos, add_separator, add_space_prefix;
    bool remove_extra_whitespaces, lowercase, strip_accents;
    pith_special_match specials;     /* control, unknown and user-defined tokens */
    pith_special_match user_defined; /* those that count in plain text too */
    pith_buffer notes;
};

/* ---- building (tokenizer.c calls these in this order) ---- */

/* The running form of a vocabulary text into out (text.size bytes of room). SIZE_MAX: it has none
 * (an odd piece). */
size_t pith_piece_form_write(pith_piece_form form, pith_span text, char *out);
/* Special ids, the end set, the types that follow from them, strip marks. */
void pith_special_ids_resolve(pith_tokenizer *tokenizer, const pith_vocab_source *source);
pith_status pith_merges_load(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                             pith_error *error);
pith_status pith_sentencepiece_prepare(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                                       pith_error *error);
pith_status pith_unigram_prepare(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                                 pith_error *error);

/* ---- encoding ---- */

typedef struct pith_merge_symbol {
    uint32_t piece;         /* PITH_PIECE_NONE: a character that the vocabulary lacks */
    uint32_t start, size;   /* in the text; size 0: merged into its left neighbour */
    uint32_t before, after; /* symbols; PITH_PIECE_NONE at the ends */
} pith_merge_symbol;

typedef struct pith_merge_candidate {
    uint64_t order;  /* rank, then index of the left symbol: the smallest is merged next */
    uint32_t size;   /* of both together: tells whether the candidate still holds */
    uint32_t joined; /* the piece that comes out */
} pith_merge_candidate;

typedef struct pith_new_pieces pith_new_pieces; /* piece_learn.h */

/* One call of encode: working memory, released at its end. */
typedef struct pith_encode_run {
    const pith_tokenizer *tokenizer;
    pith_ids *ids;
    pith_new_pieces *fresh; /* of a batch; NULL until there is one */
    uint64_t steps;         /* work beyond reading the text once; tests hold it below n log n */
    pith_merge_symbol *symbols;
    size_t n_symbols; /* room */
    pith_merge_candidate *heap;
    size_t heap_size, heap_room;
    pith_buffer work, normal, spaced; /* texts made ready */
    bool failed;                      /* no memory */
} pith_encode_run;

/* Appends the ids of a text without special tokens in it. failed is set where memory lacks. */
void pith_encode_bpe(pith_encode_run *run, pith_span text);
void pith_encode_spm(pith_encode_run *run, pith_span text);
void pith_encode_wpm(pith_encode_run *run, pith_span text);
void pith_encode_ugm(pith_encode_run *run, pith_span text);

/* Appends the ids of the pieces of text[at, ends[n - 1]): from the memo, as a whole, or by
 * merging. */
void pith_encode_pieces(pith_encode_run *run, pith_span text, size_t at, const size_t *ends,
                        size_t n);
/* A piece that the memo does not know: as a whole, or by merging. */
void pith_encode_piece(pith_encode_run *run, const char *data, size_t size);
/* Merges one piece and appends its ids. */
void pith_merge_piece(pith_encode_run *run, const char *data, size_t size);
void pith_encode_append(pith_encode_run *run, int32_t id);
/* Room for `more` ids behind the ones that are there. False: no memory. */
bool pith_ids_reserve(pith_ids *ids, size_t more);
/* The ids of bytes that no token covers: byte tokens, else the unknown token once, else nothing. */
void pith_encode_bytes(pith_encode_run *run, const char *data, size_t size);

/* pith_tokenizer_encode, and the work it took. */
pith_status pith_tokenizer_encode_counted(const pith_tokenizer *tokenizer,
                                          const pith_text_span *spans, size_t n_spans,
                                          bool add_special, pith_ids *ids, uint64_t *steps,
                                          pith_error *error);

#endif
