/* SPDX-License-Identifier: Apache-2.0
 * GET /v1/models and /v1/models/NAME: all that can be asked for, loaded or not, and the upstream's
 * model where requests for it may go there. Paths are not told. */
#include "server/fields.h"
#include "server/model_pool.h"
#include "server/route.h"
#include "server/routing.h"

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

/* A model here of the same name is what answers nobody: routing sends the name upstream. */
static void add_upstream(listing *l, const pith_server *server) {
    const char *name = pith_routing_upstream_model(server->routing);
    json_t *one;
    size_t i;
    if (!name || (l->wanted && strcmp(l->wanted, name) != 0)) return;
    json_array_foreach(l->list, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "id")), name) == 0) break;
    }
    json_array_remove(l->list, i); /* none: nothing happens */
    json_array_append_new(l->list,
                          json_pack("{s:s, s:s, s:i, s:s, s:s}", "id", name, "object", "model",
                                    "created", 0, "owned_by", "upstream", "status", "upstream"));
}

static json_t *list_models(pith_exchange *exchange, const char *wanted) {
    listing l = {.list = json_array(), .wanted = wanted};
    const pith_server *server = pith_exchange_server(exchange);
    pith_models_each(server->models, add, &l);
    add_upstream(&l, server);
    return l.list;
}

void pith_handle_models(pith_exchange *exchange) {
    json_t *list = list_models(exchange, NULL);
    pith_exchange_reply(exchange, 200, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

void pith_handle_model(pith_exchange *exchange) {
    json_t *list = list_models(exchange, pith_exchange_path(exchange) + sizeof "/v1/models/" - 1);
    json_t *found = json_array_get(list, 0);
    const pith_http_error unknown = {404, "invalid_request_error", "model_not_found", "model",
                                     "there is no model of this name; GET /v1/models lists them"};
    if (found)
        pith_exchange_reply(exchange, 200, json_incref(found));
    else
        pith_exchange_fail(exchange, &unknown);
    json_decref(list);
}
