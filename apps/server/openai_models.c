/* SPDX-License-Identifier: Apache-2.0
 * GET /v1/models and /v1/models/NAME: all that can be asked for, loaded or not. Paths are not told.
 */
#include "server/fields.h"
#include "server/model_pool.h"
#include "server/route.h"

#include <string.h>

typedef struct listing {
    json_t *list;
    const char *wanted; /* NULL: all */
} listing;

static const char *state_text(pith_served_state state) {
    static const char *const names[] = {"absent", "loading", "ready", "failed"};
    return names[state];
}

static bool add(void *user, const pith_served_info *info) {
    listing *l = user;
    if (l->wanted && strcmp(l->wanted, info->name) != 0) return true;
    json_t *model = json_pack("{s:o, s:s, s:i, s:s, s:s}", "id",
                              pith_json_text(info->name, strlen(info->name)), "object", "model",
                              "created", 0, "owned_by", "pith", "status", state_text(info->state));
    if (info->state == PITH_SERVED_READY)
        json_object_set_new(model, "meta",
                            json_pack("{s:i, s:i, s:I, s:I}", "n_ctx", (int)info->n_ctx,
                                      "n_ctx_train", (int)info->n_ctx_train, "n_params",
                                      (json_int_t)info->n_parameters, "size",
                                      (json_int_t)info->weight_bytes));
    json_array_append_new(l->list, model);
    return true;
}

void pith_handle_models(pith_exchange *exchange) {
    listing l = {.list = json_array()};
    pith_models_each(pith_exchange_server(exchange)->models, add, &l);
    pith_exchange_reply(exchange, 200, json_pack("{s:s, s:o}", "object", "list", "data", l.list));
}

void pith_handle_model(pith_exchange *exchange) {
    listing l = {.list = json_array(),
                 .wanted = pith_exchange_path(exchange) + sizeof "/v1/models/" - 1};
    pith_models_each(pith_exchange_server(exchange)->models, add, &l);
    json_t *found = json_array_get(l.list, 0);
    const pith_http_error unknown = {404, "invalid_request_error", "model_not_found", "model",
                                     "there is no model of this name; GET /v1/models lists them"};
    if (found)
        pith_exchange_reply(exchange, 200, json_incref(found));
    else
        pith_exchange_fail(exchange, &unknown);
    json_decref(l.list);
}
