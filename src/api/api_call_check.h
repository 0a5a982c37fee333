/* SPDX-License-Identifier: Apache-2.0
 * Arguments of calls against the schemas of their tools: between the room that reads replies and
 * the one that knows schemas. */
#ifndef PITH_API_CALL_CHECK_H
#define PITH_API_CALL_CHECK_H

#include "chat/chat.h"
#include "sample/grammar.h"

/* A schema that was asked of. */
typedef struct pith_call_schema {
    const json_t *parameters; /* which one: borrowed of the reader */
    pith_schema_check *check; /* NULL: no value can be checked by it */
} pith_call_schema;

/* Zero-initialised is empty. */
typedef struct pith_call_schemas {
    pith_call_schema *made; /* [n] */
    size_t n, capacity;
} pith_call_schemas;

/* The ask of a pith_call_check; user: a pith_call_schemas. Each schema is read once, when the first
 * call of its tool comes. */
pith_status pith_call_schemas_ask(void *user, json_t *parameters, pith_span arguments);
void pith_call_schemas_deinit(pith_call_schemas *schemas);

#endif
