/* SPDX-License-Identifier: Apache-2.0
 * The typed reader of request fields, and JSON bodies under limits.
 * Invariant: the first error stays; a field counts as known once a getter has asked for it, right
 * or wrong. Depth is checked before the parser, whose recursion it bounds. */
#include "server/fields.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON text ---- */

json_t *pith_json_text(const char *text, size_t size) {
    json_t *right = json_stringn(text, size); /* NULL: it is no UTF-8, or memory is short */
    if (right) return right;
    pith_buffer clean = {0};
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t n = pith_utf8_decode(text + at, size - at, &code);
        if (code == PITH_UTF8_INVALID)
            pith_buffer_append_text(&clean, "\xEF\xBF\xBD");
        else
            pith_buffer_append(&clean, text + at, n);
        at += n;
    }
    json_t *json = clean.failed ? NULL : json_stringn(clean.data ? clean.data : "", clean.size);
    pith_buffer_deinit(&clean);
    return json;
}

char *pith_json_dump(const json_t *json) {
    return json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

void pith_json_release(char *text) {
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    if (text) release(text);
}

size_t pith_json_depth(const char *text, size_t size, size_t *n_values) {
    size_t depth = 0, most = 0;
    *n_values = 1;
    bool in_text = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text && c == ',')
            ++*n_values;
        else if (!in_text && (c == '{' || c == '['))
            most = ++depth > most ? depth : most;
        else if (!in_text && (c == '}' || c == ']') && depth > 0)
            depth--, ++*n_values;
    }
    return most;
}

json_t *pith_body_object(pith_exchange *exchange) {
    pith_span body = pith_exchange_body(exchange);
    json_error_t wrong = {0};
    json_t *json = NULL;
    char text[300];
    pith_http_error what = {400, "invalid_request_error", "invalid_json", NULL, text};
    size_t n_values = 0, depth = pith_json_depth(body.data, body.size, &n_values);
    if (n_values > PITH_JSON_MAX_VALUES) {
        snprintf(text, sizeof text, "the body's JSON has more than %d values",
                 PITH_JSON_MAX_VALUES);
    } else if (depth > PITH_JSON_MAX_DEPTH) {
        snprintf(text, sizeof text, "the body's JSON is nested deeper than %d levels",
                 PITH_JSON_MAX_DEPTH);
    } else {
        json = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, &wrong);
        if (!json && strstr(wrong.text, "\\u0000"))
            snprintf(text, sizeof text,
                     "the body's JSON holds the character \\u0000, which no text may: line %d, "
                     "column %d",
                     wrong.line, wrong.column);
        else if (!json)
            snprintf(text, sizeof text, "the body is not valid JSON: line %d, column %d: %.160s",
                     wrong.line, wrong.column, wrong.text);
        else if (!json_is_object(json))
            snprintf(text, sizeof text, "the body must be a JSON object");
    }
    if (json_is_object(json)) return json;
    json_decref(json);
    pith_exchange_fail(exchange, &what);
    return NULL;
}

/* ---- Fields ---- */

void pith_fields_init(pith_fields *fields, json_t *object, const char *path) {
    *fields = (pith_fields){.object = object};
    snprintf(fields->path, sizeof fields->path, "%s", path);
}

bool pith_fields_wrong(pith_fields *f, const char *key, const char *code, const char *format, ...) {
    if (f->failed) return false;
    f->failed = true;
    f->code = code;
    const char *dot = f->path[0] && key[0] && key[0] != '[' ? "." : "";
    snprintf(f->param, sizeof f->param, "%.70s%s%.24s", f->path, dot, key);
    int used = snprintf(f->message, sizeof f->message, "%s ", f->param);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->message + used, sizeof f->message - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

bool pith_fields_short(pith_fields *f) {
    if (!f->failed) f->is_short = true;
    f->failed = true;
    return false;
}

bool pith_fields_append(pith_fields *f, json_t *list, json_t *value) {
    return json_array_append_new(list, value) == 0 || pith_fields_short(f);
}

bool pith_fields_set(pith_fields *f, json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0 || pith_fields_short(f);
}

json_t *pith_fields_take(pith_fields *f, pith_buffer *text) {
    json_t *taken = text->failed ? NULL : json_stringn(text->data ? text->data : "", text->size);
    pith_buffer_deinit(text);
    if (!taken) pith_fields_short(f);
    return taken;
}

bool pith_fields_leave(pith_fields *parent, pith_fields *child) {
    if (!child->failed) return true;
    if (parent->failed) return false;
    parent->failed = true;
    parent->is_short = child->is_short;
    parent->code = child->code;
    memcpy(parent->param, child->param, sizeof parent->param);
    memcpy(parent->message, child->message, sizeof parent->message);
    return false;
}

bool pith_fields_enter(pith_fields *parent, json_t *value, const char *path, pith_fields *out) {
    pith_fields_init(out, value, path);
    if (json_is_object(value)) return true;
    pith_fields_wrong(out, "", "invalid_type", "must be an object");
    return pith_fields_leave(parent, out);
}

json_t *pith_fields_any(pith_fields *f, const char *key) {
    if (f->n_known < PITH_FIELDS_MAX) f->known[f->n_known++] = key;
    json_t *value = json_object_get(f->object, key);
    return json_is_null(value) ? NULL : value;
}

void pith_fields_harmless(pith_fields *f, const char *key) {
    (void)pith_fields_any(f, key);
}

bool pith_fields_require(pith_fields *f, const char *key) {
    json_t *value = json_object_get(f->object, key);
    if (value && !json_is_null(value)) return true;
    return pith_fields_wrong(f, key, "missing", "is required");
}

bool pith_fields_text(pith_fields *f, const char *key, const char **out) {
    json_t *value = pith_fields_any(f, key);
    if (!value) return false;
    if (!json_is_string(value))
        return pith_fields_wrong(f, key, "invalid_type", "must be a string");
    *out = json_string_value(value);
    return true;
}

/* "must be a, b or c, not 'd'" */
static bool not_a_choice(pith_fields *f, const char *key, const char *const *choices,
                         const char *text) {
    char list[160] = "";
    for (size_t i = 0, used = 0; choices[i] && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i == 0           ? ""
                                 : choices[i + 1] ? ", "
                                                  : " or ",
                                 choices[i]);
    return pith_fields_wrong(f, key, "invalid_value", "must be %s, not '%.40s'", list, text);
}

bool pith_fields_choice(pith_fields *f, const char *key, const char *const *choices,
                        const char **out) {
    const char *text = NULL;
    if (!pith_fields_text(f, key, &text)) return false;
    for (size_t i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) != 0) continue;
        *out = text;
        return true;
    }
    return not_a_choice(f, key, choices, text);
}

bool pith_fields_flag(pith_fields *f, const char *key, bool *out) {
    json_t *value = pith_fields_any(f, key);
    if (!value) return false;
    if (!json_is_boolean(value))
        return pith_fields_wrong(f, key, "invalid_type", "must be true or false");
    *out = json_is_true(value);
    return true;
}

bool pith_fields_int(pith_fields *f, const char *key, int64_t min, int64_t max, int64_t *out) {
    json_t *value = pith_fields_any(f, key);
    if (!value) return false;
    double number = json_number_value(value);
    if (!json_is_number(value) || number != floor(number))
        return pith_fields_wrong(f, key, "invalid_type", "must be a whole number");
    bool inside = number >= (double)min && number <= (double)max && number < 0x1p63;
    if (json_is_integer(value))
        inside = json_integer_value(value) >= min && json_integer_value(value) <= max;
    if (!inside)
        return pith_fields_wrong(f, key, "out_of_range", "must be between %lld and %lld",
                                 (long long)min, (long long)max);
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : (int64_t)number;
    return true;
}

bool pith_fields_share(pith_fields *f, const char *key, float *out) {
    float share = 1;
    if (!pith_fields_number(f, key, 0, 1, &share)) return false;
    *out = share > 0 ? share : FLT_MIN; /* 0 is the likeliest alone; for the sampler it were off */
    return true;
}

bool pith_fields_number(pith_fields *f, const char *key, double min, double max, float *out) {
    json_t *value = pith_fields_any(f, key);
    if (!value) return false;
    if (!json_is_number(value))
        return pith_fields_wrong(f, key, "invalid_type", "must be a number");
    double number = json_number_value(value);
    if (!(number >= min && number <= max))
        return pith_fields_wrong(f, key, "out_of_range", "must be between %g and %g", min, max);
    *out = (float)number;
    return true;
}

bool pith_fields_object(pith_fields *f, const char *key, json_t **out) {
    json_t *value = pith_fields_any(f, key);
    if (!value) return false;
    if (!json_is_object(value))
        return pith_fields_wrong(f, key, "invalid_type", "must be an object");
    *out = value;
    return true;
}

bool pith_fields_array(pith_fields *f, const char *key, json_t **out) {
    json_t *value = pith_fields_any(f, key);
    if (!value) return false;
    if (!json_is_array(value)) return pith_fields_wrong(f, key, "invalid_type", "must be an array");
    *out = value;
    return true;
}

static bool is_known(const pith_fields *f, const char *key) {
    for (size_t i = 0; i < f->n_known; i++)
        if (strcmp(f->known[i], key) == 0) return true;
    return false;
}

bool pith_fields_close(pith_fields *f) {
    const char *key;
    json_t *value;
    if (f->failed) return false;
    json_object_foreach(f->object, key, value) {
        if (!is_known(f, key) && !json_is_null(value)) /* null: absent */
            return pith_fields_wrong(f, key, "unknown_field",
                                     "is not supported here: leave it out");
    }
    return true;
}

void pith_fields_refuse(const pith_fields *f, pith_exchange *exchange) {
    const pith_http_error wrong = {400, "invalid_request_error", f->code, f->param, f->message};
    const pith_http_error is_short = {503, "server_error", NULL, NULL,
                                      "out of memory for this request: ask again in a moment"};
    pith_exchange_fail(exchange, f->is_short ? &is_short : &wrong);
}
