/* SPDX-License-Identifier: Apache-2.0
 * The table of paths. A protocol adds its rows to route.c and its handlers here. */
#ifndef PITH_APPS_SERVER_ROUTE_H
#define PITH_APPS_SERVER_ROUTE_H

#include "server/exchange.h"

enum {
    PITH_ROUTE_OPEN = 1,     /* needs no key */
    PITH_ROUTE_QUICK = 2,    /* never waits, for a lock of a busy part or otherwise: runs at once */
    PITH_ROUTE_UPSTREAM = 4, /* may be answered by the upstream (routing.h) */
    PITH_ROUTE_LIST = 8,     /* needs no model and little time: not behind long texts */
    PITH_ROUTE_HISTORY = 16  /* may wait for the history's file, and nobody else behind it */
};

/* The body of an error; NULL without memory. */
typedef json_t *(*pith_error_shape)(const pith_http_error *what);

typedef struct pith_route {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/models"; a last "*" is any text, slashes too: names have them */
    void (*handle)(pith_exchange *exchange);
    unsigned flags;
    pith_error_shape error_shape;
} pith_route;

/* NULL: none. Then allow, when not "", names the methods that the path has. */
const pith_route *pith_route_find(const char *method, const char *path, char allow[64]);
/* The shape for a path that has no route. */
pith_error_shape pith_route_shape(const char *path);

/* {"error": {"message", "type", "param", "code"}} */
json_t *pith_openai_error(const pith_http_error *what);
/* {"error": "..."} */
json_t *pith_ollama_error(const pith_http_error *what);

/* {"type": "error", "error": {"type", "message"}} */
json_t *pith_anthropic_error(const pith_http_error *what);

void pith_handle_messages(pith_exchange *exchange);
void pith_handle_count_tokens(pith_exchange *exchange);
void pith_handle_responses(pith_exchange *exchange);
void pith_handle_chat_completions(pith_exchange *exchange);
void pith_handle_completions(pith_exchange *exchange);
void pith_handle_embeddings(pith_exchange *exchange);
void pith_handle_rerank(pith_exchange *exchange);
void pith_handle_ollama_chat(pith_exchange *exchange);
void pith_handle_ollama_generate(pith_exchange *exchange);
void pith_handle_ollama_embed(pith_exchange *exchange);
void pith_handle_ollama_embeddings(pith_exchange *exchange);
void pith_handle_ollama_tags(pith_exchange *exchange);
void pith_handle_ollama_ps(pith_exchange *exchange);
void pith_handle_ollama_show(pith_exchange *exchange);
void pith_handle_ollama_version(pith_exchange *exchange);
void pith_handle_adapters(pith_exchange *exchange);
void pith_handle_adapter_load(pith_exchange *exchange);
void pith_handle_adapter_unload(pith_exchange *exchange);
void pith_handle_models(pith_exchange *exchange);
void pith_handle_model(pith_exchange *exchange);
void pith_handle_tokenize(pith_exchange *exchange);
void pith_handle_detokenize(pith_exchange *exchange);
void pith_handle_apply_template(pith_exchange *exchange);
void pith_handle_health(pith_exchange *exchange);
void pith_handle_metrics(pith_exchange *exchange);
void pith_handle_page(pith_exchange *exchange);
void pith_handle_status(pith_exchange *exchange);
void pith_handle_conversations(pith_exchange *exchange);
void pith_handle_conversation(pith_exchange *exchange);
void pith_handle_conversation_put(pith_exchange *exchange);
void pith_handle_conversation_delete(pith_exchange *exchange);
void pith_handle_search(pith_exchange *exchange);
void pith_handle_export(pith_exchange *exchange);
void pith_handle_import(pith_exchange *exchange);

/* Whether an Accept-Encoding header (NULL: none) takes gzip. */
bool pith_page_takes_gzip(const char *codings);

#endif
