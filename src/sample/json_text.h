/* SPDX-License-Identifier: Apache-2.0
 * The form in which JSON is written under a grammar: one spelling of every string, a few of the
 * space between tokens. This form is a subset of JSON, chosen so that a model cannot lose itself in
 * it and so that each key has one spelling:
 *
 *   after :            nothing or one space
 *   after ,            nothing, one space, or a line end and 0..32 spaces
 *   after { [ before } ]   nothing, or a line end and 0..32 spaces;  {} and [] have nothing inside
 *   strings            \" \\ \b \f \n \r \t, \u00XX for other control characters, other ASCII as it
 *                      is; characters beyond ASCII as they are or as \uXXXX (two for the planes
 *                      above the first); a class that has some of them but not all: as they are
 *   integers           no leading zero, no -0, at most 15 digits (more where a bound has more)
 *   numbers            up to 15 digits before and 15 behind the point, exponents of two digits;
 *                      without an exponent and without -0 where there is a bound
 *
 * Read next: json_text.c, json_number.c; json_schema_emit.c writes whole values with them. */
#ifndef PITH_SAMPLE_JSON_TEXT_H
#define PITH_SAMPLE_JSON_TEXT_H

#include "sample/automaton.h"
#include "sample/tuple_table.h"

#include <jansson.h>

enum { PITH_JSON_MAX_INDENT = 32, PITH_JSON_MAX_DIGITS = 15 };

/* Zero-initialised may be deinitialised. */
typedef struct pith_json_text {
    pith_grammar_builder *builder;
    pith_grammar_node quote, any_char; /* any_char: one code point of a string */
    pith_grammar_node wide;            /* \uXXXX of what is beyond ASCII */
    pith_grammar_node any_string, any_integer, any_number;
    pith_grammar_node colon, comma; /* with the space behind */
    pith_grammar_node space;        /* inside of brackets */
    pith_tuple_table sets;          /* ranges of the sets that have been written */
    pith_grammar_node *set_nodes;   /* [sets.n] */
    uint32_t set_capacity;
    bool failed; /* an allocation failed: nodes were 0; to be checked once */
} pith_json_text;

pith_status pith_json_text_init(pith_json_text *text, pith_grammar_builder *builder,
                                pith_error *error);
void pith_json_text_deinit(pith_json_text *text);

/* Without memory they give 0, as the builder's own functions do. */
pith_grammar_node pith_json_fail(pith_json_text *text); /* notes it; gives 0 */
pith_grammar_node pith_json_write(pith_json_text *text, const char *literal);
pith_grammar_node pith_json_write_two(pith_json_text *text, pith_grammar_node a,
                                      pith_grammar_node b);
pith_grammar_node pith_json_write_either(pith_json_text *text, pith_grammar_node a,
                                         pith_grammar_node b);
/* One code point of the set, inside of a string. */
pith_grammar_node pith_json_write_set(pith_json_text *text, const pith_code_set *set);
/* A string with its quotes. */
pith_grammar_node pith_json_write_string(pith_json_text *text, const char *data, size_t size);
pith_grammar_node pith_json_write_lengths(pith_json_text *text, uint32_t min, uint32_t max);
pith_grammar_node pith_json_quote(pith_json_text *text, pith_grammar_node content);
/* The strings that the automaton accepts, with quotes, or `plain` as they are. */
pith_status pith_json_write_automaton(pith_json_text *text, const pith_automaton *automaton,
                                      const pith_alphabet *alphabet, bool plain,
                                      pith_grammar_node *out, pith_error *error);
enum { PITH_JSON_MAX_OPEN = 256 }; /* lists and objects in one another; readers allow no more */
/* A whole value as it stands. */
pith_grammar_node pith_json_write_value(pith_json_text *text, const json_t *value);

/* ---- numbers ---- */

/* What a number may be. */
typedef struct pith_json_bounds {
    const json_t *min, *max; /* NULL: none */
    bool min_excluded, max_excluded;
    bool integer;
    int64_t multiple; /* of an integer, 1: any */
} pith_json_bounds;

enum { PITH_JSON_MAX_MULTIPLE = 256 }; /* without its factors of ten */

/* Exact in decimal digits. *out is 0 and *nothing true when there is no such number.
 * PITH_ERROR_LIMIT for a `multiple` that is too large, or bounds of more than 18 digits. */
pith_status pith_json_write_number(pith_json_text *text, const pith_json_bounds *bounds,
                                   pith_grammar_node *out, bool *nothing, pith_error *error);
/* Does the value, a number, keep them? */
bool pith_json_bounds_hold(const pith_json_bounds *bounds, const json_t *value);
/* -1, 0, 1; of two numbers, exactly. */
int pith_json_compare_numbers(const json_t *a, const json_t *b);
/* A number without a part behind the point, as 1.0 is. */
bool pith_json_is_integer(const json_t *value);
/* The shortest text that is read as the same number; NUL-terminated. false: not finite or no
 * memory. */
bool pith_json_number_text(const json_t *value, char *out, size_t capacity);

#endif
