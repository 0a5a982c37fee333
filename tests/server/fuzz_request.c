/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as the body of any route (the first byte chooses it), as a Host header,
 * as a request that is searched for marks, as an upstream's answer. Each request is answered once,
 * with a status below 500 and JSON;
 * there is no model, so what is right ends with a refusal of the model. Seeds: corpus/. */
#include "server/exchange_state.h"
#include "server/model_pool.h"
#include "server/private_marks.h"
#include "server/private_talks.h"
#include "server/upstream_reply.h"

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

static void look_for_marks(const char *text, size_t size) {
    static pith_marks *marks;
    static pith_talks *talks;
    if (!talks) talks = pith_talks_new();
    if (!marks) marks = pith_marks_new("secret word\nre:\\<k-[0-9]+\\>", "list", NULL);
    check(marks != NULL && talks != NULL);
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(json)) {
        int line = pith_marks_find(marks, json);
        json_object_set_new(json, "added", json_string("a SECRET  word"));
        check(line >= PITH_MARKS_UNSEARCHED && pith_marks_find(marks, json) != 0);
        pith_talks_knows(talks, json);
        pith_talks_remember(talks, json);
    }
    json_decref(json);
}

/* Whatever the upstream sends, the client gets one answer: whole, or a stream that ends. */
static void pass_on(const char *text, size_t size, bool wants_stream) {
    static const char head[] = "HTTP/1.1 200 OK", stream[] = "Content-Type: text/event-stream",
                      json[] = "content-type:application/json";
    pith_exchange *e = pith_exchange_new(the_server(), "POST", "/v1/chat/completions");
    check(e != NULL);
    e->phase = PITH_EXCHANGE_HANDED;
    atomic_fetch_add(&the_server()->n_handed, 1);
    pith_upstream_reply reply = {.exchange = e, .wants_stream = wants_stream};
    size_t line = size < 20 ? size : 20;
    pith_upstream_reply_line(&reply, text, line);
    pith_upstream_reply_line(&reply, head, sizeof head - 1);
    pith_upstream_reply_line(&reply, wants_stream ? stream : json,
                             wants_stream ? sizeof stream - 1 : sizeof json - 1);
    for (size_t at = 0; at < size; at += 7) {
        pith_upstream_taken taken =
            pith_upstream_reply_data(&reply, text + at, size - at < 7 ? size - at : 7);
        if (taken != PITH_UPSTREAM_TAKEN) break;
    }
    pith_upstream_reply_judge(&reply);
    pith_upstream_reply_end(&reply);
    check(atomic_load(&the_server()->n_handed) == 0);
    check(e->phase == PITH_EXCHANGE_REPLIED ||
          (e->phase == PITH_EXCHANGE_STREAMING && e->is_ended));
    check(e->status == 200 || e->status == 502);
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
    look_for_marks(text, size - 1);
    pass_on(text, size - 1, false);
    pass_on(text, size - 1, true);
    char host[64] = "";
    memcpy(host, text, size - 1 < 63 ? size - 1 : 63);
    pith_guard_host(the_server()->options, host);
    pith_guard_origin(the_server()->options, host, host);
    return 0;
}
