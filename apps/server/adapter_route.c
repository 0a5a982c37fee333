/* SPDX-License-Identifier: Apache-2.0
 * GET /v1/adapters, POST /v1/adapters/load and /v1/adapters/unload: LoRAs of a model, by the names
 * that the server was started with. GET tells those of the first model; the others name theirs. */
#include "server/adapter_pool.h"
#include "server/fields.h"
#include "server/route.h"
#include "server/server_parts.h"

#include <string.h>

static void add(void *user, const pith_lora_info *info) {
    json_t *one = json_pack("{s:o, s:s, s:b, s:f}", "id",
                            pith_json_text(info->name, strlen(info->name)), "object", "adapter",
                            "loaded", (int)info->is_loaded, "scale", (double)info->scale);
    if (info->is_loaded) {
        json_object_set_new(one, "rank", json_integer(info->rank));
        json_object_set_new(one, "bytes", json_integer((json_int_t)info->bytes));
    }
    json_array_append_new(user, one);
}

static void reply_list(pith_exchange *exchange, pith_served *served) {
    const char *name = pith_served_name(served);
    json_t *list = json_array();
    pith_loras_each(served, add, list);
    pith_exchange_reply(exchange, 200,
                        json_pack("{s:s, s:o, s:o}", "object", "list", "model",
                                  pith_json_text(name, strlen(name)), "data", list));
}

typedef pith_status (*adapter_change)(pith_served *served, const char *name, pith_error *error);

/* change NULL: the list alone. */
static void apply(pith_exchange *exchange, const char *model, const char *id,
                  adapter_change change) {
    pith_models *models = pith_exchange_server(exchange)->models;
    pith_served *served = NULL;
    pith_error error = {0};
    if (pith_models_lease(models, model, exchange, &served) != PITH_LEASE_OK) return;
    if (!change || change(served, id, &error) == PITH_OK) {
        reply_list(exchange, served);
    } else {
        pith_http_error what = pith_http_error_of(&error);
        what.param = "id";
        pith_exchange_fail(exchange, &what);
    }
    pith_models_give_back(served);
}

static void handle(pith_exchange *exchange, adapter_change change) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    const char *model = NULL, *id = "";
    pith_fields_init(&f, body, "");
    pith_fields_text(&f, "model", &model);
    if (pith_fields_require(&f, "id")) pith_fields_text(&f, "id", &id);
    if (pith_fields_close(&f))
        apply(exchange, model, id, change);
    else
        pith_fields_refuse(&f, exchange);
    json_decref(body);
}

/* A server without any answers at once: no model is loaded for an empty list. */
void pith_handle_adapters(pith_exchange *exchange) {
    const pith_server_options *options = pith_exchange_server(exchange)->options;
    if (options->n_loras > 0 || options->each_lora)
        apply(exchange, NULL, NULL, NULL);
    else
        pith_exchange_reply(exchange, 200, json_pack("{s:s, s:[]}", "object", "list", "data"));
}

void pith_handle_adapter_load(pith_exchange *exchange) {
    handle(exchange, pith_loras_load);
}

void pith_handle_adapter_unload(pith_exchange *exchange) {
    handle(exchange, pith_loras_unload);
}
