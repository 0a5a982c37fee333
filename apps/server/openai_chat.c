/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/chat/completions, as OpenAI's API has it: a handler from end to end.
 *
 *   body -> fields -> neutral request -> job -> events -> chunks of a stream, or their fold
 *
 * Invariant: a whole answer is made of the same events as a stream; a field is enforced or refused.
 * Beyond the API: top_k, min_p, repeat_penalty, chat_template_kwargs, return_progress, timings,
 * reasoning_content. Read next: openai_messages.c (what messages may be), job.c. */
#include "server/openai.h"

#include "base/calendar.h"
#include "base/memory.h"

#include <string.h>

typedef struct chat {
    pith_exchange *exchange;
    char id[64];
    char *model; /* as the answer names it */
    json_int_t created;
    bool stream, include_usage, has_begun;
    bool has_role[PITH_JOB_MAX_CHOICES];
    pith_fold fold; /* without stream */
} chat;

static void chat_free(chat *c) {
    pith_fold_deinit(&c->fold);
    pith_exchange_release(c->exchange);
    pith_free(c->model);
    pith_free(c);
}

/* ---- Chunks ---- */

static json_t *chunk(const chat *c, json_t *choices) {
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", c->id, "object", "chat.completion.chunk",
                     "created", c->created, "model", pith_json_text(c->model, strlen(c->model)),
                     "choices", choices);
}

/* One choice's part; logprobs and finish may be NULL. */
static void send_delta(chat *c, int choice, json_t *delta, json_t *logprobs, const char *finish) {
    json_t *one = json_pack("{s:i, s:o, s:o, s:s?}", "index", choice, "delta", delta, "logprobs",
                            logprobs ? json_pack("{s:O}", "content", logprobs) : json_null(),
                            "finish_reason", finish);
    pith_exchange_stream_event(c->exchange, NULL, chunk(c, json_pack("[o]", one)));
}

static void begin(chat *c) {
    if (c->has_begun) return;
    c->has_begun = true;
    pith_exchange_stream_begin(c->exchange, "text/event-stream");
}

static void begin_choice(chat *c, int choice) {
    begin(c);
    if (c->has_role[choice]) return;
    c->has_role[choice] = true;
    send_delta(c, choice, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL, NULL);
}

static void send_progress(chat *c, const pith_job_event *event) {
    begin(c);
    json_t *data = chunk(c, json_array());
    json_object_set_new(data, "prompt_progress",
                        json_pack("{s:I, s:I}", "total", (json_int_t)event->n_prompt, "processed",
                                  (json_int_t)((double)event->n_prompt * event->progress)));
    pith_exchange_stream_event(c->exchange, NULL, data);
}

static json_t *describe_call(const chat *c, int choice, int index, const char *name,
                             pith_span arguments) {
    char id[96];
    snprintf(id, sizeof id, "call_%.40s_%d_%d", c->id + strlen("chatcmpl-"), choice, index);
    return json_pack("{s:s, s:s, s:{s:o, s:o}}", "id", id, "type", "function", "function", "name",
                     pith_json_text(name, strlen(name)), "arguments",
                     pith_json_text(arguments.data, arguments.size));
}

static void send_event(chat *c, const pith_job_event *event) {
    json_t *delta = NULL, *call = NULL, *logprobs = NULL;
    const char *finish = NULL;
    begin_choice(c, event->choice);
    switch (event->kind) {
    case PITH_JOB_TEXT:
    case PITH_JOB_REASONING:
        delta = json_pack("{s:o}", event->kind == PITH_JOB_TEXT ? "content" : "reasoning_content",
                          pith_json_text(event->text.data, event->text.size));
        logprobs = event->logprobs;
        break;
    case PITH_JOB_CALL:
        call = describe_call(c, event->choice, event->call, event->name, event->text);
        json_object_set_new(call, "index", json_integer(event->call));
        delta = json_pack("{s:[o]}", "tool_calls", call);
        break;
    default: delta = json_object(); finish = pith_openai_finish(event->finish);
    }
    send_delta(c, event->choice, delta, logprobs, finish);
}

static void on_event(void *user, const pith_job_event *event) {
    chat *c = user;
    if (!c->stream)
        pith_fold_add(&c->fold, event);
    else if (event->kind == PITH_JOB_PROGRESS)
        send_progress(c, event);
    else
        send_event(c, event);
}

/* ---- The end ---- */

static json_t *describe_message(const chat *c, int at) {
    const pith_fold_choice *choice = &c->fold.choices[at];
    json_t *call, *calls = json_array();
    size_t i;
    json_array_foreach(choice->calls, i, call) {
        const char *arguments = json_string_value(json_object_get(call, "arguments"));
        json_array_append_new(calls, describe_call(c, at, (int)i,
                                                   json_string_value(json_object_get(call, "name")),
                                                   pith_span_of(arguments)));
    }
    bool has_calls = json_array_size(calls) > 0;
    json_t *text = pith_json_text(choice->text.data ? choice->text.data : "", choice->text.size);
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", text);
    if (has_calls && choice->text.size == 0) json_object_set_new(message, "content", json_null());
    if (choice->reasoning.size > 0)
        json_object_set_new(message, "reasoning_content",
                            pith_json_text(choice->reasoning.data, choice->reasoning.size));
    if (has_calls) json_object_set(message, "tool_calls", calls);
    json_decref(calls);
    return message;
}

static void reply_whole(chat *c, const pith_job_account *account) {
    json_t *choices = json_array();
    for (int i = 0; i < c->fold.n; i++) {
        json_t *logprobs = c->fold.choices[i].logprobs;
        json_array_append_new(
            choices,
            json_pack("{s:i, s:o, s:o, s:s}", "index", i, "message", describe_message(c, i),
                      "logprobs", logprobs ? json_pack("{s:O}", "content", logprobs) : json_null(),
                      "finish_reason", pith_openai_finish(c->fold.choices[i].finish)));
    }
    json_t *body = json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "id", c->id, "object",
                             "chat.completion", "created", c->created, "model",
                             pith_json_text(c->model, strlen(c->model)), "choices", choices,
                             "usage", pith_job_usage(account), "timings", pith_job_timings(account),
                             "pith", pith_routing_describe(c->exchange));
    pith_exchange_reply(c->exchange, 200, c->fold.failed ? (json_decref(body), NULL) : body);
}

static void end_stream(chat *c, const pith_job_account *account) {
    json_t *last = chunk(c, json_array());
    if (c->include_usage) json_object_set_new(last, "usage", pith_job_usage(account));
    json_object_set_new(last, "timings", pith_job_timings(account));
    json_object_set_new(last, "pith", pith_routing_describe(c->exchange));
    pith_exchange_stream_event(c->exchange, NULL, last);
    pith_exchange_stream_write(c->exchange, "data: [DONE]\n\n", 14);
    pith_exchange_stream_end(c->exchange);
}

static void on_end(void *user, const pith_error *error, const pith_job_account *account) {
    chat *c = user;
    if (error)
        pith_openai_end_failed(c->exchange, c->has_begun, error);
    else if (c->stream)
        end_stream(c, account);
    else
        reply_whole(c, account);
    chat_free(c);
}

static bool is_gone(void *user) {
    return pith_exchange_is_gone(((chat *)user)->exchange);
}

/* ---- The request ---- */

typedef struct chat_fields {
    pith_job_request job;
    const char *model;
    json_t *context;
    char *grammar;
    bool stream, include_usage;
} chat_fields;

static void read_response_format(pith_fields *f, chat_fields *out) {
    json_t *format = NULL, *holder = NULL, *schema = NULL;
    const char *type = "", *name = NULL;
    bool strict = true;
    pith_fields in, at;
    if (!pith_fields_object(f, "response_format", &format)) return;
    pith_fields_init(&in, format, "response_format");
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    if (strcmp(type, "json_schema") == 0 && pith_fields_require(&in, "json_schema") &&
        pith_fields_object(&in, "json_schema", &holder)) {
        pith_fields_init(&at, holder, "response_format.json_schema");
        pith_fields_text(&at, "name", &name);
        pith_fields_harmless(&at, "description");
        pith_fields_flag(&at, "strict", &strict); /* it is enforced either way */
        if (pith_fields_require(&at, "schema")) pith_fields_object(&at, "schema", &schema);
        pith_fields_close(&at);
        pith_fields_leave(&in, &at);
    } else if (type[0] && strcmp(type, "text") != 0 && strcmp(type, "json_object") != 0) {
        pith_fields_wrong(&in, "type", "invalid_value",
                          "must be text, json_object or json_schema, not '%.40s'", type);
    }
    pith_fields_close(&in);
    if (!pith_fields_leave(f, &in) || strcmp(type, "text") == 0) return;
    json_t *any = schema ? json_incref(schema) : json_pack("{s:s}", "type", "object");
    out->grammar = pith_json_dump(any);
    json_decref(any);
    out->job.has_grammar = true;
    out->job.grammar = out->grammar ? out->grammar : "";
    out->job.grammar_kind = PITH_GRAMMAR_JSON_SCHEMA;
    out->job.grammar_path = "response_format";
}

static void read_stream(pith_fields *f, chat_fields *out) {
    json_t *options = NULL;
    pith_fields_flag(f, "stream", &out->stream);
    if (!pith_fields_object(f, "stream_options", &options)) return;
    pith_fields in;
    pith_fields_init(&in, options, "stream_options");
    pith_fields_flag(&in, "include_usage", &out->include_usage);
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in) && !out->stream)
        pith_fields_wrong(f, "stream_options", "invalid_value", "is for stream: true alone");
}

static void read_logprobs(pith_fields *f, chat_fields *out) {
    int64_t n = 0;
    pith_fields_flag(f, "logprobs", &out->job.wants_logprobs);
    if (!pith_fields_int(f, "top_logprobs", 0, PITH_LOGPROBS_MAX, &n)) return;
    out->job.n_logprobs = (int32_t)n;
    if (!out->job.wants_logprobs)
        pith_fields_wrong(f, "top_logprobs", "invalid_value", "needs logprobs: true");
}

static void read_limits(pith_fields *f, chat_fields *out) {
    int64_t n = 0;
    if (pith_fields_int(f, "max_tokens", 1, 1 << 24, &n)) out->job.max_tokens = (int32_t)n;
    if (pith_fields_int(f, "max_completion_tokens", 1, 1 << 24, &n))
        out->job.max_tokens = (int32_t)n;
}

/* false: the fields say what is wrong. */
static bool read_request(pith_fields *f, pith_server *server, chat_fields *out) {
    pith_fields_text(f, "model", &out->model);
    out->context = pith_openai_read_messages(f, &out->job);
    pith_job_read_sampling(f, server, &out->job);
    read_stream(f, out);
    read_logprobs(f, out);
    read_limits(f, out);
    read_response_format(f, out);
    pith_fields_flag(f, "return_progress", &out->job.wants_progress);
    if (out->job.wants_progress && !out->stream)
        pith_fields_wrong(f, "return_progress", "invalid_value", "is for stream: true alone");
    if (out->job.reads_calls && out->job.has_grammar)
        pith_fields_wrong(f, "response_format", "unsupported",
                          "and tools together are not supported: use tool_choice none");
    pith_openai_read_harmless(f);
    out->job.reads_reasoning = !out->job.has_grammar;
    out->job.context = out->context;
    return pith_fields_close(f);
}

static chat *chat_new(pith_exchange *exchange, const chat_fields *fields, const char *model) {
    chat *c = pith_alloc_zero(1, sizeof *c);
    if (!c) return NULL;
    c->model = pith_copy_text(model, strlen(model));
    if (!c->model) {
        pith_free(c);
        return NULL;
    }
    pith_exchange_retain(exchange);
    c->exchange = exchange;
    c->created = pith_calendar_now();
    c->stream = fields->stream;
    c->include_usage = fields->include_usage;
    pith_server_name_reply(pith_exchange_server(exchange), "chatcmpl-", c->id);
    return c;
}

static void start(pith_exchange *exchange, chat_fields *fields) {
    pith_served *served = NULL;
    pith_models *models = pith_exchange_server(exchange)->models;
    fields->job.route_limit = pith_routing_token_limit(exchange);
    if (pith_models_lease(models, fields->model, exchange, &served) != PITH_LEASE_OK) return;
    chat *c = NULL;
    pith_job_refusal why = {.error = {.status = PITH_OK}};
    if (!pith_model_chat_template(pith_served_model(served)))
        pith_fail(&why.error, PITH_ERROR_UNSUPPORTED,
                  "the model has no chat template: ask /v1/completions");
    else if (!(c = chat_new(exchange, fields, pith_served_name(served))))
        pith_fail_memory(&why.error, "a request", sizeof *c);
    pith_job_listener listener = {on_event, on_end, is_gone, c};
    if (!c || !pith_job_start(served, &fields->job, &listener, &why)) {
        pith_job_refuse(exchange, &why);
        if (c) chat_free(c);
    }
    pith_models_give_back(served);
}

void pith_handle_chat_completions(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields fields;
    chat_fields *request = pith_alloc_zero(1, sizeof *request);
    pith_fields_init(&fields, body, "");
    if (!request)
        pith_exchange_reply(exchange, 500, NULL);
    else if (read_request(&fields, pith_exchange_server(exchange), request))
        start(exchange, request);
    else
        pith_fields_refuse(&fields, exchange);
    if (request) {
        json_decref(request->context);
        pith_json_release(request->grammar);
    }
    pith_free(request);
    json_decref(body);
}
