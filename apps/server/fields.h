/* SPDX-License-Identifier: Apache-2.0
 * The typed reader of request fields. Absent (or null), wrong type and out of range are told apart,
 * errors name the path ("messages[2].role"), and what no getter asked for is refused by name when
 * the reader is closed: no field is accepted and then not heeded.
 *
 *     pith_fields fields;
 *     pith_fields_init(&fields, object, "");
 *     pith_fields_int(&fields, "max_tokens", 1, 1 << 24, &max_tokens);  // absent: left as it is
 *     if (!pith_fields_close(&fields)) pith_fields_refuse(&fields, exchange);
 */
#ifndef PITH_APPS_SERVER_FIELDS_H
#define PITH_APPS_SERVER_FIELDS_H

#include "server/exchange.h"

enum {
    PITH_FIELDS_MAX = 64,
    PITH_FIELDS_PATH = 96,
    PITH_JSON_MAX_DEPTH = 128,
    PITH_JSON_MAX_VALUES = 1 << 20
};

typedef struct pith_fields {
    json_t *object;
    char path[PITH_FIELDS_PATH];        /* "" or "messages[2]" */
    const char *known[PITH_FIELDS_MAX]; /* [n_known] asked for */
    size_t n_known;
    /* the first thing that is wrong */
    bool failed;
    bool is_short;                /* that is memory, no field */
    const char *code;             /* "invalid_type" */
    char param[PITH_FIELDS_PATH]; /* its path */
    char message[240];
} pith_fields;

void pith_fields_init(pith_fields *fields, json_t *object, const char *path);
/* A reader of value, which is at path (printf); a value that is no object is the parent's error. */
bool pith_fields_enter(pith_fields *parent, json_t *value, const char *path, pith_fields *out);

/* Each: true when the field is there and right. Otherwise *out is left as it is. */
bool pith_fields_text(pith_fields *fields, const char *key, const char **out);
/* One of the choices, a list that ends with NULL. */
bool pith_fields_choice(pith_fields *fields, const char *key, const char *const *choices,
                        const char **out);
bool pith_fields_flag(pith_fields *fields, const char *key, bool *out);
bool pith_fields_int(pith_fields *fields, const char *key, int64_t min, int64_t max, int64_t *out);
bool pith_fields_number(pith_fields *fields, const char *key, double min, double max, float *out);
/* 0..1, of which a given 0 is no absent one: it becomes the smallest number above it. */
bool pith_fields_share(pith_fields *fields, const char *key, float *out);
bool pith_fields_object(pith_fields *fields, const char *key, json_t **out); /* borrowed */
bool pith_fields_array(pith_fields *fields, const char *key, json_t **out);
/* Any type; NULL when absent or null. */
json_t *pith_fields_any(pith_fields *fields, const char *key);
/* It is accepted with any value and nothing depends on it. */
void pith_fields_harmless(pith_fields *fields, const char *key);
bool pith_fields_require(pith_fields *fields, const char *key); /* it must be there */
/* Records what is wrong with a field, unless something was before; false. */
bool pith_fields_wrong(pith_fields *fields, const char *key, const char *code, const char *format,
                       ...) PITH_PRINTF(4, 5);
/* Memory was short: the request is not gone on with, pith_fields_refuse answers 503; false. */
bool pith_fields_short(pith_fields *fields);
/* Appends to a list, or sets a key of an object; takes the value over, and NULL is short memory. */
bool pith_fields_append(pith_fields *fields, json_t *list, json_t *value);
bool pith_fields_set(pith_fields *fields, json_t *object, const char *key, json_t *value);
/* The text of a buffer, which is emptied; NULL is short memory. */
json_t *pith_fields_take(pith_fields *fields, pith_buffer *text);
/* Takes over a child's error; false when there is one. */
bool pith_fields_leave(pith_fields *parent, pith_fields *child);
/* Refuses what nobody asked for; false when anything is wrong. */
bool pith_fields_close(pith_fields *fields);
/* Answers with status 400 and the error; without memory with 503. */
void pith_fields_refuse(const pith_fields *fields, pith_exchange *exchange);

/* The body as a JSON object; NULL after the exchange was answered with what is wrong. */
json_t *pith_body_object(pith_exchange *exchange);
/* Well-formed JSON text even of bytes that are no UTF-8; NULL without memory. */
json_t *pith_json_text(const char *text, size_t size);
/* Brackets that are open at once, outside of strings, and values at most. */
size_t pith_json_depth(const char *text, size_t size, size_t *n_values);
/* Released with pith_json_release; NULL without memory. */
char *pith_json_dump(const json_t *json);
void pith_json_release(char *text);

#endif
