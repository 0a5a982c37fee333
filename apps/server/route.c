/* SPDX-License-Identifier: Apache-2.0
 * The one table of paths, and the shape of errors where a path has none.
 * Read next: openai_chat.c, a handler from end to end. */
#include "server/route.h"

#include "server/fields.h"

#include <string.h>

static const pith_route routes[] = {
    {"GET", "/health", pith_handle_health, PITH_ROUTE_OPEN | PITH_ROUTE_QUICK, pith_openai_error},
    {"GET", "/metrics", pith_handle_metrics, PITH_ROUTE_QUICK, pith_openai_error},
    {"GET", "/v1/models", pith_handle_models, PITH_ROUTE_LIST, pith_openai_error},
    {"GET", "/v1/models/*", pith_handle_model, PITH_ROUTE_LIST, pith_openai_error},
    {"POST", "/v1/chat/completions", pith_handle_chat_completions, PITH_ROUTE_UPSTREAM,
     pith_openai_error},
    {"POST", "/v1/completions", pith_handle_completions, PITH_ROUTE_UPSTREAM, pith_openai_error},
    {"POST", "/v1/embeddings", pith_handle_embeddings, 0, pith_openai_error},
    {"POST", "/v1/rerank", pith_handle_rerank, 0, pith_openai_error},
    {"POST", "/tokenize", pith_handle_tokenize, 0, pith_openai_error},
    {"POST", "/detokenize", pith_handle_detokenize, 0, pith_openai_error},
    {"POST", "/apply-template", pith_handle_apply_template, 0, pith_openai_error},
    {"GET", "/v1/adapters", pith_handle_adapters, 0, pith_openai_error},
    {"POST", "/v1/adapters/load", pith_handle_adapter_load, 0, pith_openai_error},
    {"POST", "/v1/adapters/unload", pith_handle_adapter_unload, 0, pith_openai_error},
    {"POST", "/v1/responses", pith_handle_responses, 0, pith_openai_error},
    {"POST", "/v1/messages", pith_handle_messages, 0, pith_anthropic_error},
    {"POST", "/v1/messages/count_tokens", pith_handle_count_tokens, 0, pith_anthropic_error},
    {"POST", "/api/chat", pith_handle_ollama_chat, 0, pith_ollama_error},
    {"POST", "/api/generate", pith_handle_ollama_generate, 0, pith_ollama_error},
    {"POST", "/api/embed", pith_handle_ollama_embed, 0, pith_ollama_error},
    {"POST", "/api/embeddings", pith_handle_ollama_embeddings, 0, pith_ollama_error},
    {"GET", "/api/tags", pith_handle_ollama_tags, PITH_ROUTE_LIST, pith_ollama_error},
    {"GET", "/api/ps", pith_handle_ollama_ps, PITH_ROUTE_LIST, pith_ollama_error},
    {"POST", "/api/show", pith_handle_ollama_show, PITH_ROUTE_LIST, pith_ollama_error},
    {"GET", "/api/version", pith_handle_ollama_version, PITH_ROUTE_LIST, pith_ollama_error},
    /* the page and its history */
    {"GET", "/", pith_handle_page, PITH_ROUTE_OPEN | PITH_ROUTE_QUICK, pith_openai_error},
    {"GET", "/pith/status", pith_handle_status, PITH_ROUTE_HISTORY, pith_openai_error},
    {"GET", "/pith/conversations", pith_handle_conversations, PITH_ROUTE_HISTORY,
     pith_openai_error},
    {"GET", "/pith/conversations/*", pith_handle_conversation, PITH_ROUTE_HISTORY,
     pith_openai_error},
    {"PUT", "/pith/conversations/*", pith_handle_conversation_put, PITH_ROUTE_HISTORY,
     pith_openai_error},
    {"DELETE", "/pith/conversations/*", pith_handle_conversation_delete, PITH_ROUTE_HISTORY,
     pith_openai_error},
    {"POST", "/pith/search", pith_handle_search, PITH_ROUTE_HISTORY, pith_openai_error},
    {"GET", "/pith/export", pith_handle_export, PITH_ROUTE_HISTORY, pith_openai_error},
    {"POST", "/pith/import", pith_handle_import, PITH_ROUTE_HISTORY, pith_openai_error},
};
enum { N_ROUTES = sizeof routes / sizeof routes[0] };

static bool fits(const char *pattern, const char *path) {
    size_t n = strlen(pattern);
    if (n == 0 || pattern[n - 1] != '*') return strcmp(pattern, path) == 0;
    return strncmp(pattern, path, n - 1) == 0 && path[n - 1];
}

const pith_route *pith_route_find(const char *method, const char *path, char allow[64]) {
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    allow[0] = 0;
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (!fits(routes[i].path, path)) continue;
        if (strcmp(routes[i].method, wanted) == 0) return &routes[i];
        size_t used = strlen(allow), more = strlen(routes[i].method);
        if (used + more + 3 > 64) continue;
        if (used > 0) memcpy(allow + used, ", ", 3), used += 2;
        memcpy(allow + used, routes[i].method, more + 1);
    }
    return NULL;
}

pith_error_shape pith_route_shape(const char *path) {
    char allow[64];
    const pith_route *get = pith_route_find("GET", path, allow);
    const pith_route *post = pith_route_find("POST", path, allow);
    if (!get && !post && strncmp(path, "/api/", 5) == 0) return pith_ollama_error;
    return get ? get->error_shape : post ? post->error_shape : pith_openai_error;
}

json_t *pith_openai_error(const pith_http_error *what) {
    const char *param = what->param;
    return json_pack("{s:{s:o, s:s, s:o, s:s?}}", "error", "message",
                     pith_json_text(what->message, strlen(what->message)), "type", what->type,
                     "param", param ? pith_json_text(param, strlen(param)) : json_null(), "code",
                     what->code);
}
