/* SPDX-License-Identifier: Apache-2.0
 * JSON text -> json_t, for files that come with models.
 *
 * jansson parses by recursion, so the text is scanned first, without, and refused where arrays and
 * objects lie more than PITH_JSON_TEXT_DEPTH inside each other. Callers limit the size. Of equal
 * keys none counts: the text is refused, because two readers could read it in two ways. */
#include "model/peft_json.h"

static bool is_shallow(pith_span text) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > PITH_JSON_TEXT_DEPTH) return false;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return true;
}

pith_status pith_json_text_parse(pith_span text, const char *what, json_t **out,
                                 pith_error *error) {
    json_error_t reason;
    *out = NULL;
    if (!is_shallow(text))
        return pith_fail(error, PITH_ERROR_LIMIT, "%.80s: JSON nested more than %d levels deep",
                         what, PITH_JSON_TEXT_DEPTH);
    *out = json_loadb(text.size ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &reason);
    if (!*out && json_error_code(&reason) == json_error_out_of_memory)
        return pith_fail_memory(error, "a JSON value", text.size);
    if (!*out)
        return pith_fail(error, PITH_ERROR_FORMAT, "%.80s: JSON line %d, column %d: %.80s", what,
                         reason.line, reason.column, reason.text);
    if (json_is_object(*out)) return PITH_OK;
    json_decref(*out);
    *out = NULL;
    return pith_fail(error, PITH_ERROR_FORMAT, "%.80s: the JSON is no object", what);
}
