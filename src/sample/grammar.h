/* SPDX-License-Identifier: Apache-2.0
 * Constrained output: a grammar says which texts are allowed, a matcher follows one text through
 * it, a token trie says which tokens keep that text allowed.
 *
 *   GBNF, JSON schema, regex, choices --builder--> grammar --matcher--> mask, forced bytes
 *   vocabulary pieces ---------------------------> trie ----^
 *
 * Everything works on bytes: a class of code points becomes UTF-8 byte sequences, so a token may
 * end in the middle of a character. Counted repetitions stay counters. Grammar and trie are
 * immutable and shared; a matcher belongs to one sequence. It fails closed: what it cannot decide
 * within its limits is not allowed, and pith_matcher_failed says so. Read next: grammar_builder.c,
 * gbnf.c, matcher.c, token_trie.c; json_schema.c and regex.c build grammars too. */
#ifndef PITH_SAMPLE_GRAMMAR_H
#define PITH_SAMPLE_GRAMMAR_H

#include "base/status.h"
#include "base/text.h"
#include "sample/sample.h"

/* Published limits. */
enum {
    PITH_GRAMMAR_MAX_TEXT = 1 << 20,  /* bytes of a source text */
    PITH_GRAMMAR_MAX_NODES = 1 << 20, /* of a built grammar */
    PITH_GRAMMAR_MAX_RULES = 1 << 16, /* rules that have a name or can be referred to */
    PITH_GRAMMAR_MAX_COUNT = 1 << 20, /* of a repetition */
    PITH_GRAMMAR_MAX_NESTING = 1024   /* of a source text */
};

/* pith_grammar is a public type of pith.h; here it is counted by its owners. */

/* ---- Building ---- */

typedef struct pith_grammar_builder pith_grammar_builder;
typedef uint32_t pith_grammar_node; /* 0: could not be made; the builder remembers why */
typedef uint32_t pith_grammar_rule;
typedef struct pith_code_range {
    uint32_t first, last; /* code points, both included */
} pith_code_range;
enum { PITH_GRAMMAR_UNBOUNDED = UINT32_MAX };

pith_status pith_grammar_builder_new(pith_grammar_builder **out, pith_error *error);
void pith_grammar_builder_free(pith_grammar_builder *builder); /* NULL is allowed */
/* Nodes may be used in several places. Arguments of 0 give 0. */
pith_grammar_node pith_grammar_bytes(pith_grammar_builder *builder, const char *bytes, size_t size);
/* One code point of the ranges, or with `negated` one outside them (surrogates never). No range
 * at all matches nothing. */
pith_grammar_node pith_grammar_class(pith_grammar_builder *builder, const pith_code_range *ranges,
                                     size_t n, bool negated);
pith_grammar_node pith_grammar_sequence(pith_grammar_builder *builder,
                                        const pith_grammar_node *nodes, size_t n); /* n 0: empty */
pith_grammar_node pith_grammar_choice(pith_grammar_builder *builder, const pith_grammar_node *nodes,
                                      size_t n); /* n 0: nothing */
pith_grammar_node pith_grammar_repeat(pith_grammar_builder *builder, pith_grammar_node node,
                                      uint32_t min, uint32_t max);
/* Any bytes up to and without the first occurrence of `end`; of none when end is empty: any text
 * to the end. */
pith_grammar_node pith_grammar_until(pith_grammar_builder *builder, const char *end, size_t size);
/* A rule may be referred to before it is defined, so grammars may be recursive. */
pith_grammar_rule pith_grammar_declare(pith_grammar_builder *builder, const char *name);
pith_grammar_node pith_grammar_refer(pith_grammar_builder *builder, pith_grammar_rule rule);
void pith_grammar_define(pith_grammar_builder *builder, pith_grammar_rule rule,
                         pith_grammar_node node);
/* Checks and compiles: undefined rules, left recursion, rules that can never end and limits are
 * told by the rule's name. The builder can only be freed afterwards. */
pith_status pith_grammar_build(pith_grammar_builder *builder, pith_grammar_node root,
                               pith_grammar **out, pith_error *error);

/* What a grammar's token terminals need to know of the vocabulary. */
typedef struct pith_grammar_tokens {
    void *user;
    /* The id of a text that is one token, control tokens included; -1: it is not. */
    int32_t (*find)(void *user, const char *text, size_t size);
} pith_grammar_tokens;

/* From source texts. Errors name line and column (GBNF), offset (regex) or the JSON path. */
/* tokens: NULL where there is no vocabulary; then terminals like <think> are refused. */
pith_status pith_grammar_from_gbnf(const char *text, size_t size, const pith_grammar_tokens *tokens,
                                   pith_grammar **out, pith_error *error);
pith_status pith_grammar_from_schema(const char *json, size_t size, pith_grammar **out,
                                     pith_error *error);
pith_status pith_grammar_from_regex(const char *text, size_t size, pith_grammar **out,
                                    pith_error *error);
pith_status pith_grammar_from_choices(const char *const *texts, const size_t *sizes, size_t n,
                                      pith_grammar **out, pith_error *error);
/* Nodes that a schema or a regular expression becomes inside a larger grammar. */
pith_grammar_node pith_grammar_add_schema(pith_grammar_builder *builder, const char *json,
                                          size_t size, pith_error *error);
pith_grammar_node pith_grammar_add_regex(pith_grammar_builder *builder, const char *text,
                                         size_t size, pith_error *error);
/* A grammar of one of those alone. */
typedef pith_grammar_node pith_grammar_add(pith_grammar_builder *builder, const char *text,
                                           size_t size, pith_error *error);
pith_status pith_grammar_from_part(pith_grammar_add *add, const char *text, size_t size,
                                   pith_grammar **out, pith_error *error);

/* How a reply may call tools; choice, format and limits are the public types of pith.h. */
typedef struct pith_tool_rules {
    const pith_tool_format *format; /* strings may be NULL */
    pith_tool_choice choice;
    const char *only;         /* the one tool that may be called; NULL: every one */
    bool parallel;            /* several calls, at most PITH_TOOL_MAX_CALLS */
    bool in_thought;          /* the text begins within a thought */
    pith_span content_schema; /* that replies without calls obey; data NULL: any text */
    /* Which parts of the format's strings are tokens of the vocabulary that are written as one;
     * NULL: all is text. */
    const pith_grammar_tokens *tokens;
} pith_tool_rules;
/* Replies that call the tools of a JSON list [{"type": "function", "function": {"name",
 * "parameters"}}] with arguments that satisfy their schemas, an empty object where there is none.
 * Errors name the tool and the path in its schema. */
pith_status pith_grammar_from_tools(const char *json, size_t size, const pith_tool_rules *rules,
                                    pith_grammar **out, pith_error *error);
/* The formats (tool_format.c): "hermes", "llama3", ...; NULL past the last one. */
const pith_tool_format *pith_tool_format_get(size_t index);
/* The one that a chat template speaks of; NULL: none. */
const pith_tool_format *pith_tool_format_find(const char *template_text);
/* What begins and ends thoughts in a chat template: sets both, or neither. */
void pith_tool_format_thought(const char *template_text, pith_tool_format *format);

pith_grammar *pith_grammar_share(const pith_grammar *grammar); /* one more owner */
void pith_grammar_drop(pith_grammar *grammar);                 /* NULL is allowed */

/* ---- Texts that no grammar held to their schema (schema_check.c) ---- */

typedef struct pith_schema_check pith_schema_check;
struct json_t; /* of jansson */
/* Shares the schema, which must not change. Refused by its path: what no value can be checked by,
 * as for a grammar; and more can be checked than written. */
pith_status pith_schema_check_new(struct json_t *schema, pith_schema_check **out,
                                  pith_error *error);
void pith_schema_check_free(pith_schema_check *check); /* NULL is allowed */
/* PITH_OK, or PITH_ERROR_MEMORY. Not valid is also what is no JSON, has a key twice in an object,
 * or is beyond the limits of schemas (size, depth, work). */
pith_status pith_schema_check_text(pith_schema_check *check, pith_span text, bool *valid);

/* ---- The vocabulary as a trie ---- */

typedef struct pith_token_trie pith_token_trie;
/* pieces [n_vocab]: the bytes an id adds to the text; size 0: never allowed while text is owed.
 * is_end: ids that end a text, allowed where the grammar may end. Both are copied. */
pith_status pith_token_trie_new(const pith_span *pieces, const bool *is_end, int32_t n_vocab,
                                pith_token_trie **out, pith_error *error);
void pith_token_trie_free(pith_token_trie *trie);

/* ---- Following one text ---- */

typedef struct pith_matcher pith_matcher;
/* The trie is borrowed, the grammar shared. memory: bytes that states and masks may take. */
pith_status pith_matcher_new(const pith_grammar *grammar, const pith_token_trie *trie,
                             size_t memory, pith_matcher **out, pith_error *error);
void pith_matcher_free(pith_matcher *matcher);
/* Back to the empty text; keeps what was learnt. */
void pith_matcher_reset(pith_matcher *matcher);
/* Would this id keep the text allowed? Cheap: a walk over the id's bytes. */
bool pith_matcher_allows(pith_matcher *matcher, int32_t id);
/* Bit id % 32 of word id / 32 of [ceil(n_vocab / 32)]; valid until the next accept. */
const uint32_t *pith_matcher_mask(pith_matcher *matcher);
/* Takes the id; false (nothing changed) when it is not allowed. An end id finishes the text. */
bool pith_matcher_accept(pith_matcher *matcher, int32_t id);
/* Takes back the last n ids (<= accepted). */
void pith_matcher_rewind(pith_matcher *matcher, size_t n);
size_t pith_matcher_length(const pith_matcher *matcher); /* ids accepted */
bool pith_matcher_may_end(const pith_matcher *matcher);
/* Bytes that must come next whatever is chosen (at most capacity); 0 when there is a choice, and
 * where a limit is met on the way, which fails nothing. *is_whole: nothing may follow them. */
size_t pith_matcher_forced(pith_matcher *matcher, char *bytes, size_t capacity, bool *is_whole);
/* The id that alone may come; -1: there are several or none, or it would take long to know. Says
 * the same of the same text whatever was matched before. */
int32_t pith_matcher_only(pith_matcher *matcher);
/* What a sampler asks; the matcher must live as long. What is drawn is not accepted by it. */
pith_token_filter pith_matcher_filter(pith_matcher *matcher);
/* A limit was met (memory, states): nothing is allowed any more. NULL: no. */
const char *pith_matcher_failed(const pith_matcher *matcher);

#endif
