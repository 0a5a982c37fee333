/* SPDX-License-Identifier: Apache-2.0
 * GET /health: 200 {"status":"ok"} once every model that the server was started with is there, else
 * 503 {"status":"loading", "progress"}; and 503 {"status":"stopping"}. Needs no key and tells
 * nothing but that. */
#include "server/model_pool.h"
#include "server/route.h"

typedef struct health {
    bool is_loading;
    double progress; /* of the one that is furthest behind */
} health;

static bool add(void *user, const pith_served_info *info) {
    health *h = user;
    if (!info->is_starting) return true;
    h->is_loading = true;
    if (info->progress < h->progress) h->progress = info->progress;
    return true;
}

void pith_handle_health(pith_exchange *exchange) {
    pith_server *server = pith_exchange_server(exchange);
    health h = {.progress = 1};
    if (atomic_load(&server->is_stopping)) {
        pith_exchange_reply(exchange, 503, json_pack("{s:s}", "status", "stopping"));
        return;
    }
    pith_models_each_known(server->models, add, &h);
    if (h.is_loading)
        pith_exchange_reply(exchange, 503,
                            json_pack("{s:s, s:f}", "status", "loading", "progress", h.progress));
    else
        pith_exchange_reply(exchange, 200, json_pack("{s:s}", "status", "ok"));
}
