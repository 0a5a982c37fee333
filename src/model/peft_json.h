/* SPDX-License-Identifier: Apache-2.0
 * JSON from files that come with models (private to the model room): limits first, jansson then. */
#ifndef PITH_MODEL_PEFT_JSON_H
#define PITH_MODEL_PEFT_JSON_H

#include "base/text.h"

#include <jansson.h>

enum { PITH_JSON_TEXT_DEPTH = 16 }; /* arrays and objects inside each other */

/* An object of unique keys. what: the file, for messages. */
pith_status pith_json_text_parse(pith_span text, const char *what, json_t **out, pith_error *error);

#endif
