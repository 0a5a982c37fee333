/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON text -> json_t.
 *
 * jansson parses, by recursion. So the text is scanned first, without recursion, and refused when
 * arrays and objects are nested more than PITH_JSON_MAX_DEPTH levels deep or the text is longer
 * than PITH_JSON_MAX_BYTES.
 *
 * The scan also refuses a NUL byte between values, which jansson takes for the end of a number.
 * What jansson refuses too: ill-formed UTF-8, half surrogate pairs, NUL in keys, numbers that
 * fit neither 64 bits nor a double. \u0000 in a string is a character like others. Of equal
 * keys the last one counts. Integers and reals stay apart (1 and 1.0).
 */
#include "chat/chat.h"

typedef struct json_place {
    size_t line, column;
} json_place;

/* What the scan finds: *place is then where. */
typedef enum json_scan { JSON_SCAN_GOOD, JSON_SCAN_DEEP, JSON_SCAN_NUL } json_scan;

static json_scan scan(pith_span text, json_place *place) {
    size_t depth = 0;
    bool in_string = false;
    *place = (json_place){1, 0};
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        place->column++;
        if (c == '\n') *place = (json_place){place->line + 1, 0};
        if (in_string) {
            if (c == '\\') {
                i++;
                place->column++;
            }
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > PITH_JSON_MAX_DEPTH) return JSON_SCAN_DEEP;
        } else if (c == 0) {
            return JSON_SCAN_NUL;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return JSON_SCAN_GOOD;
}

pith_status pith_json_parse(pith_span text, json_t **out, pith_error *error) {
    json_place place;
    json_error_t reason;
    *out = NULL;
    if (text.size > PITH_JSON_MAX_BYTES) {
        return pith_fail(error, PITH_ERROR_LIMIT, "JSON: %zu bytes, but at most %d are read",
                         text.size, PITH_JSON_MAX_BYTES);
    }
    json_scan found = scan(text, &place);
    if (found == JSON_SCAN_NUL) {
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "JSON line %zu, column %zu: a NUL byte is no part of JSON", place.line,
                         place.column);
    }
    if (found == JSON_SCAN_DEEP) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "JSON line %zu, column %zu: nested more than %d levels deep", place.line,
                         place.column, PITH_JSON_MAX_DEPTH);
    }
    *out = json_loadb(text.size > 0 ? text.data : "", text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                      &reason);
    if (*out != NULL) return PITH_OK;
    if (json_error_code(&reason) == json_error_out_of_memory) {
        return pith_fail_memory(error, "a JSON value", text.size);
    }
    return pith_fail(error, PITH_ERROR_FORMAT, "JSON line %d, column %d: %s",
                     reason.line < 1 ? 1 : reason.line, reason.column < 0 ? 0 : reason.column,
                     reason.text);
}
