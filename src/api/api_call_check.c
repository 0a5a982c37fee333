/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Tools": is a call, that no grammar held to its schema, valid by it?
 *
 * src/chat asks (unmarked_call.c), src/sample answers (schema_check.c), and neither knows the
 * other. A reply calls few of its tools, so what was made is a list that is looked through. */
#include "api/api_call_check.h"

#include "base/memory.h"

/* NULL: without memory. */
static pith_call_schema *add(pith_call_schemas *schemas, const json_t *parameters) {
    if (schemas->n == schemas->capacity) {
        size_t capacity = schemas->capacity * 2 + 4;
        pith_call_schema *made = pith_realloc(schemas->made, capacity * sizeof *made);
        if (made == NULL) return NULL;
        schemas->made = made;
        schemas->capacity = capacity;
    }
    pith_call_schema *schema = &schemas->made[schemas->n++];
    *schema = (pith_call_schema){.parameters = parameters};
    return schema;
}

static pith_status find(pith_call_schemas *schemas, json_t *parameters, pith_schema_check **out) {
    pith_schema_check *check = NULL;
    for (size_t i = 0; i < schemas->n; i++) {
        *out = schemas->made[i].check;
        if (schemas->made[i].parameters == parameters) return PITH_OK;
    }
    if (pith_schema_check_new(parameters, &check, NULL) == PITH_ERROR_MEMORY)
        return PITH_ERROR_MEMORY;
    pith_call_schema *schema = add(schemas, parameters);
    if (schema != NULL)
        schema->check = check;
    else
        pith_schema_check_free(check);
    *out = check;
    return schema != NULL ? PITH_OK : PITH_ERROR_MEMORY;
}

pith_status pith_call_schemas_ask(void *user, json_t *parameters, pith_span arguments) {
    pith_schema_check *check;
    bool valid;
    pith_status status = find(user, parameters, &check);
    if (status != PITH_OK) return status;
    if (check == NULL) return PITH_ERROR_UNSUPPORTED;
    status = pith_schema_check_text(check, arguments, &valid);
    if (status != PITH_OK) return status;
    return valid ? PITH_OK : PITH_ERROR_FORMAT;
}

void pith_call_schemas_deinit(pith_call_schemas *schemas) {
    for (size_t i = 0; i < schemas->n; i++) pith_schema_check_free(schemas->made[i].check);
    pith_free(schemas->made);
    *schemas = (pith_call_schemas){0};
}
