/* SPDX-License-Identifier: Apache-2.0
 * A JSON schema as a part of a larger grammar that writes JSON too (tool calls). */
#ifndef PITH_SAMPLE_SCHEMA_PART_H
#define PITH_SAMPLE_SCHEMA_PART_H

#include "sample/json_text.h"

/* JSON with the limits of schemas: size, depth, no key twice. what: a name for messages. */
pith_status pith_schema_read(pith_span text, const char *what, json_t **out, pith_error *error);
/* The node of the values that satisfy the schema, with `object` of the objects among them. The
 * schema is taken over. place: a prefix of messages, such as "tool f, ". 0 after a failure: of the
 * schema, then error is set, or of the builder. */
pith_grammar_node pith_schema_part(pith_json_text *text, json_t *json, bool object,
                                   const char *place, pith_error *error);

#endif
