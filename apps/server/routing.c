/* SPDX-License-Identifier: Apache-2.0
 * Decisions: who answers, and why. In this order:
 *
 *   policy local-only            -> local
 *   marked private               -> local, whatever else is said
 *   sent upstream by us already  -> local: the upstream leads here
 *   the caller's choice          -> as chosen
 *   the model asked for          -> upstream when it is the upstream's
 *   rules (policy rules)         -> upstream when one applies
 *   else                         -> local; upstream when the model here cannot
 *
 * An upstream that is known to be away is not chosen at all.
 * Invariant: see routing.h. Does not send anything: upstream.c does. */
#include "server/routing.h"

#include "base/memory.h"
#include "server/exchange_state.h"
#include "server/private_marks.h"
#include "server/private_talks.h"
#include "server/upstream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct pith_routing {
    pith_server *server;
    const pith_server_upstream *options;
    pith_marks *marks;
    pith_talks *talks;
    pith_upstream *upstream; /* NULL: nothing leaves */
};

pith_routing *pith_routing_new(pith_server *server, pith_error *error) {
    const pith_server_upstream *o = &server->options->upstream;
    pith_routing *r = pith_alloc_zero(1, sizeof *r);
    if (!r) {
        pith_fail_memory(error, "the routing", sizeof *r);
        return NULL;
    }
    r->server = server;
    r->options = o;
    r->marks = pith_marks_new(o->marks, o->marks_name ? o->marks_name : "", error);
    r->talks = pith_talks_new();
    if (r->marks && !r->talks) pith_fail_memory(error, "the routing", 0);
    bool leaves = o->url && o->policy != PITH_ROUTE_LOCAL_ONLY, ok = r->marks && r->talks;
    if (ok && leaves) r->upstream = pith_upstream_new(server, error);
    if (ok && (!leaves || r->upstream)) return r;
    pith_routing_free(r);
    return NULL;
}

void pith_routing_free(pith_routing *r) {
    if (!r) return;
    pith_upstream_free(r->upstream);
    pith_marks_free(r->marks);
    pith_talks_free(r->talks);
    pith_free(r);
}

const char *pith_routing_upstream_model(const pith_routing *r) {
    return r->upstream ? r->options->model : NULL;
}

void pith_routing_cancel(pith_routing *r) {
    pith_upstream_cancel(r->upstream);
}

void pith_routing_stop(pith_routing *r) {
    if (r) pith_upstream_stop(r->upstream);
}

/* ---- What callers say ---- */

static pith_route_wish wish_of(const char *text) {
    if (strcasecmp(text, "local") == 0) return PITH_WISH_LOCAL;
    if (strcasecmp(text, "upstream") == 0) return PITH_WISH_UPSTREAM;
    return PITH_WISH_UNKNOWN;
}

/* The caller's word; of two the one that keeps it here counts. */
static pith_route_wish join_wishes(pith_route_wish a, pith_route_wish b) {
    if (a == PITH_WISH_UNKNOWN || b == PITH_WISH_UNKNOWN) return PITH_WISH_UNKNOWN;
    if (a == PITH_WISH_LOCAL || b == PITH_WISH_LOCAL) return PITH_WISH_LOCAL;
    return a != PITH_WISH_NONE ? a : b;
}

/* What is not a clear no counts as a mark. */
static bool says_yes(const char *text) {
    static const char *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        if (strcasecmp(text, no[i]) == 0) return false;
    return true;
}

/* A header may be there more than once: proxies and libraries add theirs. */
static enum MHD_Result read_header(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
    pith_exchange *e = user;
    pith_route_state *state = &e->routing;
    const pith_upstream *upstream = e->server->routing->upstream;
    const char *text = value ? value : "";
    (void)kind;
    if (strcasecmp(name, "X-Pith-Route") == 0)
        state->wish = join_wishes(state->wish, wish_of(text));
    if (strcasecmp(name, "X-Pith-Private") == 0)
        state->is_private = state->is_private || says_yes(text);
    if (upstream && strcasecmp(name, "Via") == 0)
        state->came_back = state->came_back || pith_upstream_is_via(upstream, text);
    return MHD_YES;
}

void pith_routing_read_headers(pith_exchange *e) {
    e->routing.wish = PITH_WISH_NONE;
    e->routing.is_private = e->routing.came_back = false;
    MHD_get_connection_values(e->connection, MHD_HEADER_KIND, read_header, e);
}

void pith_routing_read_field(pith_fields *f, pith_route_wish *wish, bool *is_private) {
    json_t *object = NULL;
    const char *route = NULL;
    pith_fields in;
    *wish = PITH_WISH_NONE;
    *is_private = false;
    if (!pith_fields_object(f, "pith", &object)) return;
    pith_fields_init(&in, object, "pith");
    pith_fields_flag(&in, "private", is_private);
    if (pith_fields_text(&in, "route", &route)) *wish = wish_of(route);
    if (*wish == PITH_WISH_UNKNOWN)
        pith_fields_wrong(&in, "route", "invalid_value", "must be local or upstream");
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

/* ---- Decisions ---- */

typedef struct decision {
    bool upstream;
    bool may_leave; /* of a local one: later, when the model here cannot */
} decision;

static decision decide(pith_exchange *e, bool upstream, bool may_leave, const char *format, ...)
    PITH_PRINTF(4, 5);

static decision decide(pith_exchange *e, bool upstream, bool may_leave, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->routing.reason, sizeof e->routing.reason, format, arguments);
    va_end(arguments);
    return (decision){upstream, may_leave};
}

static bool refuse(pith_exchange *e, int status, const char *code, const char *text) {
    const pith_http_error what = {status, "invalid_request_error", code, "pith.route", text};
    pith_exchange_fail(e, &what);
    return true;
}

/* Parts that are no text cannot be searched for words. */
static bool has_unreadable_parts(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *parts = json_object_get(json_array_get(messages, i), "content");
        if (json_is_object(parts)) return true;
        for (size_t j = 0; j < json_array_size(parts); j++) {
            const char *type = json_string_value(json_object_get(json_array_get(parts, j), "type"));
            if (!type || (strcmp(type, "text") != 0 && strcmp(type, "refusal") != 0)) return true;
        }
    }
    return false;
}

/* Whether it must stay; the reason is written then. */
static bool is_private(pith_routing *r, pith_exchange *e, json_t *body, bool by_field) {
    json_t *messages = json_object_get(body, "messages");
    int line = 0;
    if (e->routing.is_private)
        decide(e, false, false, "private: the header X-Pith-Private");
    else if (by_field)
        decide(e, false, false, "private: the field pith.private");
    else if ((line = pith_marks_find(r->marks, body)) > 0)
        decide(e, false, false, "private: the mark in line %d of the list of private words", line);
    else if (line == PITH_MARKS_UNSEARCHED)
        decide(e, false, false, "private: it could not be searched for all marks");
    else if (pith_marks_has_words(r->marks) && has_unreadable_parts(messages))
        decide(e, false, false, "private: a part that is no text cannot be searched for marks");
    else if (pith_talks_knows(r->talks, body))
        decide(e, false, false, "private: it goes on with a conversation that was marked");
    else
        return false;
    pith_talks_remember(r->talks, body);
    return true;
}

static bool is_upstream_model(const pith_routing *r, const char *name) {
    const pith_server_upstream *o = r->options;
    if (!name) return false;
    if (strcmp(name, o->model) == 0) return true;
    for (size_t i = 0; i < o->n_models; i++)
        if (strcmp(name, o->models[i]) == 0) return true;
    return false;
}

/* Names of adapters and ids of tokens mean something to the model here alone. */
static bool is_for_ours(json_t *body) {
    return json_array_size(json_object_get(body, "lora")) > 0 ||
           json_object_size(json_object_get(body, "logit_bias")) > 0;
}

/* Of a request that may leave by policy. wish: header and field together. */
static decision choose(pith_routing *r, pith_exchange *e, json_t *body, pith_route_wish wish,
                       bool marked) {
    const json_t *prompt = json_object_get(body, "prompt");
    const char *model = json_string_value(json_object_get(body, "model"));
    bool is_theirs = is_upstream_model(r, model);
    e->routing.may_substitute = is_theirs;
    if (is_private(r, e, body, marked)) return (decision){false, false};
    if (e->routing.came_back)
        return decide(e, false, false, "it was upstream already: the upstream leads here");
    if (json_is_array(prompt) && !json_is_string(json_array_get(prompt, 0)))
        return decide(e, false, false, "token ids mean nothing to another model");
    if (wish == PITH_WISH_LOCAL) return decide(e, false, false, "the caller chose local");
    if (wish == PITH_WISH_UPSTREAM) return decide(e, true, false, "the caller chose upstream");
    if (is_theirs) return decide(e, true, false, "the model asked for is upstream");
    if (is_for_ours(body))
        return decide(e, false, false, "it names adapters or tokens of the model here");
    if (r->options->policy != PITH_ROUTE_BY_RULES) return decide(e, false, true, "local first");
    if (r->options->tools && json_array_size(json_object_get(body, "tools")) > 0)
        return decide(e, true, false, "rule: it uses tools");
    return decide(e, false, true, "no rule sends it upstream");
}

/* ---- Sending ---- */

/* The request as the upstream gets it; released with pith_json_release. */
static char *upstream_body(const pith_routing *r, json_t *body) {
    static const char *const own[] = {"pith", "lora", "deadline_ms", "return_progress"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) json_object_del(body, own[i]);
    if (json_object_set_new(body, "model", json_string(r->options->model)) != 0) return NULL;
    return json_dumps(body, JSON_COMPACT);
}

/* false: the reason is why not. */
static bool send_upstream(pith_routing *r, pith_exchange *e, json_t *body) {
    bool wants_stream = json_is_true(json_object_get(body, "stream"));
    char reason[PITH_ROUTE_REASON];
    pith_error error = {0};
    char *text = upstream_body(r, body);
    if (!text) pith_fail_memory(&error, "a request for the upstream", 0);
    memcpy(reason, e->routing.reason, sizeof reason);
    e->routing.may_leave = false;
    e->routing.answered_by = "upstream";
    if (text && pith_upstream_send(r->upstream, e, text, wants_stream, &error)) return true;
    e->routing.answered_by = "local";
    decide(e, false, false, "%.70s, but %.80s", reason, error.text);
    return false;
}

/* Goes by the head alone where nothing may leave; the field "pith" is looked for then, since a wish
 * that cannot be granted is refused and not ignored. */
static bool take_local_only(pith_exchange *e) {
    const pith_server_upstream *o = &e->server->options->upstream;
    pith_span body = pith_exchange_body(e);
    bool wants = e->routing.wish == PITH_WISH_UPSTREAM;
    e->routing.answered_by = "local";
    decide(e, false, false, o->url ? "the policy is local-only" : "there is no upstream");
    pith_buffer text = {0};
    pith_buffer_append(&text, body.data, body.size);
    if (!wants && text.data && strstr(text.data, "\"pith\"")) {
        json_t *object = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL);
        const char *route =
            json_string_value(json_object_get(json_object_get(object, "pith"), "route"));
        wants = route && wish_of(route) == PITH_WISH_UPSTREAM;
        json_decref(object);
    }
    pith_buffer_deinit(&text);
    if (!wants) return false;
    return refuse(e, 403, "upstream_not_allowed",
                  o->url ? "nothing leaves this server: it was started with --route local-only"
                         : "this server knows no upstream: start it with --upstream and --route");
}

static bool take_by_policy(pith_routing *r, pith_exchange *e) {
    json_t *body = pith_body_object(e);
    pith_route_wish wish;
    bool marked, taken = true;
    pith_fields fields;
    if (!body) return true;
    pith_fields_init(&fields, body, "");
    pith_routing_read_field(&fields, &wish, &marked);
    if (fields.failed) {
        pith_fields_refuse(&fields, e);
        json_decref(body);
        return true;
    }
    decision d = choose(r, e, body, join_wishes(e->routing.wish, wish), marked);
    if (d.upstream && !pith_upstream_is_there(r->upstream)) {
        char reason[PITH_ROUTE_REASON];
        memcpy(reason, e->routing.reason, sizeof reason);
        d = decide(e, false, false, "%.100s, but it cannot be reached", reason);
    }
    e->routing.answered_by = "local";
    e->routing.may_leave = d.may_leave;
    taken = d.upstream && send_upstream(r, e, body);
    json_decref(body);
    return taken;
}

bool pith_routing_take(pith_exchange *e) {
    pith_routing *r = e->server->routing;
    if (e->routing.wish == PITH_WISH_UNKNOWN)
        return refuse(e, 400, "invalid_value", "the header X-Pith-Route must be local or upstream");
    if (!(e->route->flags & PITH_ROUTE_UPSTREAM)) {
        if (e->routing.wish == PITH_WISH_UPSTREAM)
            return refuse(e, 400, "upstream_not_allowed",
                          "only /v1/chat/completions and /v1/completions can go upstream");
        if (strcmp(e->method, "POST") == 0) {
            e->routing.answered_by = "local";
            decide(e, false, false, "this route is always local");
        }
        return false;
    }
    if (e->routing.is_decided) return false; /* its handler waited for a model */
    e->routing.is_decided = true;
    return r->upstream ? take_by_policy(r, e) : take_local_only(e);
}

bool pith_routing_may_hand_over(const pith_exchange *e) {
    return e->routing.may_leave && pith_upstream_is_there(e->server->routing->upstream);
}

bool pith_routing_hand_over(pith_exchange *e, const char *why) {
    pith_routing *r = e->server->routing;
    if (!e->routing.may_leave) return false;
    if (!pith_upstream_is_there(r->upstream)) {
        decide(e, false, false, "%.100s, but the upstream cannot be reached", why);
        e->routing.may_leave = false;
        return false;
    }
    e->routing.may_leave = false; /* it is tried once */
    pith_span text = pith_exchange_body(e);
    json_t *body = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    decide(e, true, false, "%.120s", why);
    bool sent = body && send_upstream(r, e, body);
    json_decref(body);
    return sent;
}

void pith_routing_take_back(pith_exchange *e, const char *why) {
    char reason[PITH_ROUTE_REASON];
    memcpy(reason, e->routing.reason, sizeof reason);
    e->routing.answered_by = "local";
    e->routing.may_leave = false;
    decide(e, false, false, "%.70s, but %.80s", reason, why);
    pith_exchange_retain(e); /* the desk's */
    pith_desk_push_again(e);
}

int32_t pith_routing_token_limit(const pith_exchange *e) {
    const pith_routing *r = e->server->routing;
    bool applies = e->routing.may_leave && r->options->policy == PITH_ROUTE_BY_RULES;
    return applies && pith_upstream_is_there(r->upstream) ? r->options->over_tokens : 0;
}

bool pith_routing_may_substitute(const pith_exchange *e) {
    return e->routing.may_substitute;
}

json_t *pith_routing_describe(const pith_exchange *e) {
    return json_pack("{s:s, s:s}", "answered_by",
                     e->routing.answered_by ? e->routing.answered_by : "local", "reason",
                     e->routing.reason);
}
