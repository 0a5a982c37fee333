/* SPDX-License-Identifier: Apache-2.0
 * POST /tokenize {"content"}, /detokenize {"tokens"} and /apply-template {"messages"}: the model's
 * own view of a text. Control tokens are parsed only where the caller asks (parse_special). */
#include "server/openai.h"

#include "base/memory.h"

#include <string.h>

enum { CONTENT_LIMIT = 1 << 20 /* bytes to tokenize at once */ };

typedef struct id_list {
    const int32_t *data;
    size_t n;
} id_list;

/* Leases the model that "model" names; NULL: the exchange is dealt with. */
static pith_served *lease(pith_exchange *exchange, const char *name) {
    pith_served *served = NULL;
    pith_models *models = pith_exchange_server(exchange)->models;
    return pith_models_lease(models, name, exchange, &served) == PITH_LEASE_OK ? served : NULL;
}

static void reply_error(pith_exchange *exchange, const pith_error *error) {
    const pith_http_error what = pith_http_error_of(error);
    pith_exchange_fail(exchange, &what);
}

/* As text: a tree of values would take a hundred times the bytes of what was asked. */
static void write_ids(pith_buffer *out, const pith_model *model, id_list ids, bool pieces) {
    pith_buffer_append_text(out, "{\"tokens\":[");
    for (size_t i = 0; i < ids.n; i++) {
        const char *comma = i > 0 ? "," : "";
        if (!pieces) {
            pith_buffer_append_format(out, "%s%d", comma, (int)ids.data[i]);
            continue;
        }
        const char *piece = pith_token_piece(model, ids.data[i]);
        json_t *value = pith_json_text(piece ? piece : "", piece ? strlen(piece) : 0);
        char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        pith_buffer_append_format(out, "%s{\"id\":%d,\"piece\":", comma, (int)ids.data[i]);
        pith_buffer_append_text(out, text ? text : "");
        pith_buffer_append_text(out, "}");
        out->failed = out->failed || !text;
        pith_json_release(text);
        json_decref(value);
    }
    pith_buffer_append_text(out, "]}");
}

static void reply_ids(pith_exchange *exchange, const pith_model *model, id_list ids, bool pieces) {
    pith_buffer out = {0};
    write_ids(&out, model, ids, pieces);
    if (out.failed)
        pith_exchange_reply(exchange, 500, NULL);
    else
        pith_exchange_reply_text(exchange, 200, "application/json",
                                 (pith_span){out.data, out.size});
    pith_buffer_deinit(&out);
}

typedef struct token_fields {
    const char *model, *content;
    bool add_special, parse_special, with_pieces;
    size_t size;
} token_fields;

static void tokenize(pith_exchange *exchange, const token_fields *t) {
    pith_served *served = lease(exchange, t->model);
    if (!served) return;
    const pith_model *model = pith_served_model(served);
    pith_error error = {0};
    size_t n = 0;
    int32_t *ids = pith_alloc_array(t->size + 2, sizeof *ids);
    unsigned flags = t->add_special ? PITH_TOKENIZE_ADD_SPECIAL : 0u;
    if (t->parse_special) flags |= PITH_TOKENIZE_PARSE_SPECIAL;
    if (!ids)
        pith_exchange_reply(exchange, 500, NULL);
    else if (pith_tokenize(model, t->content, t->size, flags, ids, t->size + 2, &n, &error) != 0)
        reply_error(exchange, &error);
    else
        reply_ids(exchange, model, (id_list){ids, n}, t->with_pieces);
    pith_free(ids);
    pith_models_give_back(served);
}

void pith_handle_tokenize(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    token_fields t = {.content = ""};
    pith_fields_init(&f, body, "");
    pith_fields_text(&f, "model", &t.model);
    if (pith_fields_require(&f, "content")) pith_fields_text(&f, "content", &t.content);
    t.size = strlen(t.content);
    if (t.size > CONTENT_LIMIT)
        pith_fields_wrong(&f, "content", "too_large", "has %zu bytes; at most %d at once", t.size,
                          CONTENT_LIMIT);
    pith_fields_flag(&f, "add_special", &t.add_special);
    pith_fields_flag(&f, "parse_special", &t.parse_special);
    pith_fields_flag(&f, "with_pieces", &t.with_pieces);
    if (pith_fields_close(&f))
        tokenize(exchange, &t);
    else
        pith_fields_refuse(&f, exchange);
    json_decref(body);
}

/* ---- Back to text ---- */

static void detokenize(pith_exchange *exchange, const char *name, json_t *tokens) {
    pith_served *served = lease(exchange, name);
    if (!served) return;
    const pith_model *model = pith_served_model(served);
    int32_t n_vocab = pith_model_describe(model).n_vocab;
    pith_buffer text = {0};
    pith_error error = {0};
    json_t *token;
    size_t i;
    json_array_foreach(tokens, i, token) {
        json_int_t id = json_integer_value(token);
        size_t size = 0;
        const char *piece;
        if (!json_is_integer(token) || id < 0 || id >= n_vocab) {
            pith_fail(&error, PITH_ERROR_ARGUMENT, "tokens[%zu] must be an id below %d", i,
                      (int)n_vocab);
            break;
        }
        piece = pith_token_text(model, (int32_t)id, &size);
        if (piece) pith_buffer_append(&text, piece, size);
    }
    if (error.status != PITH_OK)
        reply_error(exchange, &error);
    else
        pith_exchange_reply(
            exchange, 200,
            json_pack("{s:o}", "content", pith_json_text(text.data ? text.data : "", text.size)));
    pith_buffer_deinit(&text);
    pith_models_give_back(served);
}

void pith_handle_detokenize(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange), *tokens = NULL;
    const char *model = NULL;
    if (!body) return;
    pith_fields f;
    pith_fields_init(&f, body, "");
    pith_fields_text(&f, "model", &model);
    if (pith_fields_require(&f, "tokens")) pith_fields_array(&f, "tokens", &tokens);
    if (pith_fields_close(&f))
        detokenize(exchange, model, tokens);
    else
        pith_fields_refuse(&f, exchange);
    json_decref(body);
}

/* ---- Templates ---- */

static void apply(pith_exchange *exchange, const char *name, const json_t *context) {
    pith_served *served = lease(exchange, name);
    if (!served) return;
    pith_prompt *prompt = NULL;
    pith_error error = {0};
    char *json = pith_json_dump(context);
    size_t size = 0;
    if (!json) {
        pith_exchange_reply(exchange, 500, NULL);
    } else if (pith_prompt_render(pith_served_model(served), NULL, json, &prompt, &error) != 0) {
        reply_error(exchange, &error);
    } else {
        const char *text = pith_prompt_text(prompt, &size);
        pith_exchange_reply(exchange, 200,
                            json_pack("{s:o}", "prompt", pith_json_text(text, size)));
    }
    pith_prompt_free(prompt);
    pith_json_release(json);
    pith_models_give_back(served);
}

void pith_handle_apply_template(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    const char *model = NULL;
    if (!body) return;
    pith_fields f;
    pith_job_request *request = pith_alloc_zero(1, sizeof *request);
    pith_fields_init(&f, body, "");
    pith_fields_text(&f, "model", &model);
    json_t *context = request ? pith_openai_read_messages(&f, request) : NULL;
    if (!request)
        pith_exchange_reply(exchange, 500, NULL);
    else if (pith_fields_close(&f))
        apply(exchange, model, context);
    else
        pith_fields_refuse(&f, exchange);
    json_decref(context);
    pith_free(request);
    json_decref(body);
}
