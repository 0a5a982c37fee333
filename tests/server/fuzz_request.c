/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as the body of any route (the first byte chooses it) and as a Host header.
 * Each request is answered once, with a status below 500 and JSON;
 * there is no model, so what is right ends with a refusal of the model. Seeds: corpus/. */
#include "server/exchange_state.h"
#include "server/model_pool.h"

#include <string.h>

static void check(bool good) {
    if (!good) __builtin_trap();
}

static pith_server *the_server(void) {
    static pith_server server;
    static const pith_server_options options = {.host = "127.0.0.1", .log = PITH_SERVER_LOG_ERROR};
    if (!server.options) {
        server.options = &options;
        server.models = pith_models_new(&server, NULL);
        check(server.models != NULL);
    }
    return &server;
}

static void ask(const char *path, const char *method, const char *body, size_t size) {
    pith_server *server = the_server();
    char allow[64];
    pith_exchange *e = pith_exchange_new(server, method, path);
    check(e != NULL);
    e->route = pith_route_find(method, path, allow);
    check(e->route != NULL);
    e->phase = PITH_EXCHANGE_HANDED;
    atomic_fetch_add(&server->n_handed, 1);
    pith_buffer_append(&e->body, body, size);
    e->route->handle(e);
    check(e->phase == PITH_EXCHANGE_REPLIED && atomic_load(&server->n_handed) == 0);
    check(e->status >= 200 && e->status < 500);
    json_t *answer = json_loadb(e->out.data, e->out.size, 0, NULL);
    check(json_is_object(answer));
    json_decref(answer);
    pith_exchange_release(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const paths[] = {"/v1/chat/completions",
                                        "/v1/completions",
                                        "/tokenize",
                                        "/detokenize",
                                        "/apply-template",
                                        "/v1/embeddings",
                                        "/v1/rerank",
                                        "/v1/responses",
                                        "/v1/messages",
                                        "/v1/messages/count_tokens",
                                        "/api/chat",
                                        "/api/generate",
                                        "/api/embed",
                                        "/api/embeddings",
                                        "/api/show",
                                        "/v1/adapters/load",
                                        "/v1/adapters/unload"};
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    ask(paths[data[0] % (sizeof paths / sizeof paths[0])], "POST", text, size - 1);
    char host[64] = "";
    memcpy(host, text, size - 1 < 63 ? size - 1 : 63);
    pith_guard_host(the_server()->options, host);
    pith_guard_origin(the_server()->options, host, host);
    return 0;
}
