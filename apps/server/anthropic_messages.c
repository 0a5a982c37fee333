/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/messages and /v1/messages/count_tokens, as Anthropic's API has them.
 *
 *   message_start, (ping*),
 *   per block: content_block_start, content_block_delta*, content_block_stop,
 *   then message_delta and message_stop; an error is an event of its own
 *
 * A block is a part of the answer (fold.c): thinking, text or a call, in the order of the reply.
 * Beyond the API: min_p, seed. Read next: anthropic_convert.c (what messages may be). */
#include "server/anthropic.h"

#include "base/memory.h"

#include <string.h>

typedef struct message {
    pith_answer answer;
    int block;                /* that is open, or comes next */
    bool is_open, has_begun;  /* a block; the message */
    pith_job_event_kind kind; /* of the block */
} message;

/* ---- Parts ---- */

static json_t *usage_of(size_t n_prompt, size_t n_cached, size_t n_predicted) {
    return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)(n_prompt - n_cached),
                     "cache_creation_input_tokens", (json_int_t)0, "cache_read_input_tokens",
                     (json_int_t)n_cached, "output_tokens", (json_int_t)n_predicted);
}

/* content and usage are taken over; reason may be NULL. */
static json_t *message_of(const pith_answer *a, json_t *content, const char *reason,
                          const char *sequence, json_t *usage) {
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s?, s:s?, s:o}", "id", a->id, "type", "message",
                     "role", "assistant", "model", pith_answer_model(a), "content", content,
                     "stop_reason", reason, "stop_sequence", sequence, "usage", usage);
}

static const char *reason_of(const pith_fold_choice *made) {
    if (made->finish == PITH_FINISH_CALLS) return "tool_use";
    if (made->stop == PITH_STOP_CONTEXT) return "model_context_window_exceeded";
    if (made->finish == PITH_FINISH_LENGTH) return "max_tokens";
    return made->stop == PITH_STOP_TEXT ? "stop_sequence" : "end_turn";
}

/* A block with the text it begins with; of a call with its input, taken over. */
static json_t *block_of(const pith_answer *a, pith_job_event_kind kind, const char *name, int call,
                        json_t *value) {
    char id[96];
    if (kind == PITH_JOB_TEXT) return json_pack("{s:s, s:o}", "type", "text", "text", value);
    if (kind == PITH_JOB_REASONING)
        return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", value, "signature", "");
    snprintf(id, sizeof id, "toolu_%.40s_%d", a->id + strlen("msg_"), call);
    return json_pack("{s:s, s:s, s:o, s:o}", "type", "tool_use", "id", id, "name",
                     pith_json_text(name, strlen(name)), "input", value);
}

/* ---- The stream ---- */

static void send(pith_answer *a, const char *type, json_t *data) {
    json_object_set_new(data, "type", json_string(type));
    pith_exchange_stream_event(a->exchange, type, data);
}

static void begin(pith_answer *a, size_t n_prompt, size_t n_cached) {
    message *m = (message *)a;
    pith_answer_begin(a);
    if (m->has_begun) return;
    m->has_begun = true;
    json_t *usage = usage_of(n_prompt, n_cached, 0);
    send(a, "message_start",
         json_pack("{s:o}", "message", message_of(a, json_array(), NULL, NULL, usage)));
}

static void close_block(message *m) {
    if (!m->is_open) return;
    send(&m->answer, "content_block_stop", json_pack("{s:i}", "index", m->block));
    m->is_open = false;
    m->block++;
}

static void open_block(message *m, const pith_job_event *event) {
    bool is_call = event->kind == PITH_JOB_CALL;
    if (m->is_open && m->kind == event->kind && !is_call) return;
    close_block(m);
    m->is_open = true;
    m->kind = event->kind;
    json_t *block = block_of(&m->answer, event->kind, event->name, event->call,
                             is_call ? json_object() : json_string(""));
    send(&m->answer, "content_block_start",
         json_pack("{s:i, s:o}", "index", m->block, "content_block", block));
}

static void stream_event(pith_answer *a, const pith_job_event *event) {
    static const char *const types[] = {[PITH_JOB_TEXT] = "text_delta",
                                        [PITH_JOB_REASONING] = "thinking_delta",
                                        [PITH_JOB_CALL] = "input_json_delta"};
    static const char *const keys[] = {[PITH_JOB_TEXT] = "text",
                                       [PITH_JOB_REASONING] = "thinking",
                                       [PITH_JOB_CALL] = "partial_json"};
    message *m = (message *)a;
    begin(a, event->n_prompt, event->n_cached);
    if (event->kind == PITH_JOB_FINISH) {
        close_block(m);
        return;
    }
    if (event->kind == PITH_JOB_PROGRESS) {
        send(a, "ping", json_object());
        return;
    }
    open_block(m, event);
    json_t *text = pith_json_text(event->text.data, event->text.size);
    json_t *delta = json_pack("{s:s, s:o}", "type", types[event->kind], keys[event->kind], text);
    send(a, "content_block_delta", json_pack("{s:i, s:o}", "index", m->block, "delta", delta));
    if (event->kind == PITH_JOB_CALL) close_block(m);
}

static void stream_end(pith_answer *a, const pith_job_account *account) {
    const pith_fold_choice *made = &a->fold.choices[0];
    begin(a, account->n_prompt, account->n_cached);
    json_t *delta =
        json_pack("{s:s, s:s?}", "stop_reason", reason_of(made), "stop_sequence", made->stop_text);
    json_t *usage = usage_of(account->n_prompt, account->n_cached, account->n_predicted);
    send(a, "message_delta", json_pack("{s:o, s:o}", "delta", delta, "usage", usage));
    send(a, "message_stop", json_object());
}

static void stream_failed(pith_answer *a, const pith_http_error *what) {
    pith_exchange_stream_event(a->exchange, "error", pith_exchange_error_body(a->exchange, what));
}

static json_t *whole(pith_answer *a, const pith_job_account *account) {
    const pith_fold_choice *made = &a->fold.choices[0];
    json_t *content = json_array();
    for (size_t i = 0; i < made->n_parts; i++) {
        const pith_fold_part *part = &made->parts[i];
        bool is_call = part->kind == PITH_JOB_CALL;
        pith_span text = pith_fold_text(made, part);
        json_array_append_new(content, block_of(a, part->kind,
                                                is_call ? pith_fold_call_name(made, part) : NULL,
                                                (int)part->from,
                                                is_call ? pith_chat_arguments(text.data)
                                                        : pith_json_text(text.data, text.size)));
    }
    return message_of(a, content, reason_of(made), made->stop_text,
                      usage_of(account->n_prompt, account->n_cached, account->n_predicted));
}

/* ---- The request ---- */

/* {"format": {"type": "json_schema", "schema"}} */
static void read_output(pith_fields *f, pith_answer_request *out) {
    json_t *config = NULL, *format = NULL, *schema = NULL;
    const char *type = "";
    pith_fields in, inner;
    if (!pith_fields_object(f, "output_config", &config)) return;
    pith_fields_init(&in, config, "output_config");
    (void)pith_fields_any(&in, "effort"); /* anthropic_convert.c's */
    if (pith_fields_object(&in, "format", &format)) {
        pith_fields_init(&inner, format, "output_config.format");
        if (pith_fields_require(&inner, "type")) pith_fields_text(&inner, "type", &type);
        if (strcmp(type, "json_schema") != 0)
            pith_fields_wrong(&inner, "type", "invalid_value", "must be json_schema");
        if (pith_fields_require(&inner, "schema")) pith_fields_object(&inner, "schema", &schema);
        pith_fields_close(&inner);
        pith_fields_leave(&in, &inner);
    }
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in) && schema)
        pith_answer_hold_to_schema(out, schema, "output_config.format");
}

/* Edits that take nothing out, which some clients send always: {"edits": [{"type":
 * "clear_thinking_...", "keep": "all"}]}. Others are refused. */
static void read_context_edits(pith_fields *f) {
    json_t *management = NULL, *edits = NULL, *edit;
    pith_fields in, one;
    size_t i;
    if (!pith_fields_object(f, "context_management", &management)) return;
    pith_fields_init(&in, management, "context_management");
    pith_fields_array(&in, "edits", &edits);
    json_array_foreach(edits, i, edit) {
        char path[PITH_FIELDS_PATH];
        const char *type = "", *keep = NULL;
        snprintf(path, sizeof path, "context_management.edits[%zu]", i);
        if (!pith_fields_enter(&in, edit, path, &one)) break;
        if (pith_fields_require(&one, "type")) pith_fields_text(&one, "type", &type);
        if (strncmp(type, "clear_thinking_", strlen("clear_thinking_")) != 0)
            pith_fields_wrong(&one, "type", "unsupported", "'%.60s' is not supported", type);
        else if (!(keep = json_string_value(pith_fields_any(&one, "keep"))) ||
                 strcmp(keep, "all") != 0)
            pith_fields_wrong(&one, "keep", "unsupported", "must be all: nothing is taken out");
        pith_fields_close(&one);
        if (!pith_fields_leave(&in, &one)) break;
    }
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

static void read_rest(pith_fields *f, pith_job_request *job) {
    json_t *metadata = NULL;
    const char *tier = "auto";
    pith_fields in;
    pith_job_read_own(f, job);
    if (pith_fields_object(f, "metadata", &metadata)) {
        pith_fields_init(&in, metadata, "metadata");
        pith_fields_text(&in, "user_id", &job->user); /* whose turn it is */
        pith_fields_close(&in);
        pith_fields_leave(f, &in);
    }
    pith_fields_harmless(f, "cache_control"); /* beginnings of prompts are found anyhow */
    read_context_edits(f);
    if (pith_fields_text(f, "service_tier", &tier) && strcmp(tier, "auto") != 0 &&
        strcmp(tier, "standard_only") != 0)
        pith_fields_wrong(f, "service_tier", "unsupported", "must be auto or standard_only");
}

static bool read(pith_fields *f, pith_server *server, pith_answer_request *out) {
    int64_t n = 0;
    if (pith_fields_require(f, "model")) pith_fields_text(f, "model", &out->model);
    pith_anthropic_read_messages(f, out);
    if (pith_fields_require(f, "max_tokens") && pith_fields_int(f, "max_tokens", 1, 1 << 24, &n))
        out->job.max_tokens = (int32_t)n;
    pith_fields_flag(f, "stream", &out->stream);
    pith_job_read_draw(f, server, &out->job);
    pith_job_read_stops(f, "stop_sequences", &out->job);
    read_output(f, out);
    read_rest(f, &out->job);
    out->tells_progress = out->stream; /* pings while the prompt is read */
    out->job.reads_reasoning = !out->job.has_grammar || out->job.reads_calls;
    return pith_fields_close(f);
}

void pith_handle_messages(pith_exchange *exchange) {
    static const pith_answer_protocol protocol = {.request_bytes = sizeof(pith_answer_request),
                                                  .answer_bytes = sizeof(message),
                                                  .id_prefix = "msg_",
                                                  .stream_type = "text/event-stream",
                                                  .folds_streams = true,
                                                  .read = read,
                                                  .stream_event = stream_event,
                                                  .stream_end = stream_end,
                                                  .stream_failed = stream_failed,
                                                  .whole = whole};
    pith_answer_handle(exchange, &protocol);
}

/* ---- Counting ---- */

static void count(pith_exchange *exchange, const pith_answer_request *request) {
    pith_served *served = NULL;
    pith_models *models = pith_exchange_server(exchange)->models;
    pith_job_refusal why;
    size_t n = 0;
    if (pith_models_lease(models, request->model, exchange, &served) != PITH_LEASE_OK) return;
    if (pith_job_count(served, &request->job, &n, &why))
        pith_exchange_reply(exchange, 200, json_pack("{s:I}", "input_tokens", (json_int_t)n));
    else
        pith_job_refuse(exchange, &why);
    pith_models_give_back(served);
}

void pith_handle_count_tokens(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    pith_answer_request *request = pith_alloc_zero(1, sizeof *request);
    pith_fields_init(&f, body, "");
    if (!request) {
        pith_exchange_reply(exchange, 500, NULL);
    } else {
        if (pith_fields_require(&f, "model")) pith_fields_text(&f, "model", &request->model);
        pith_anthropic_read_messages(&f, request);
        read_output(&f, request);
        pith_fields_harmless(&f, "cache_control");
        read_context_edits(&f);
        if (pith_fields_close(&f))
            count(exchange, request);
        else
            pith_fields_refuse(&f, exchange);
        json_decref(request->context);
        pith_json_release(request->grammar);
    }
    pith_free(request);
    json_decref(body);
}

json_t *pith_anthropic_error(const pith_http_error *what) {
    static const struct {
        int status;
        const char *type;
    } types[] = {{400, "invalid_request_error"}, {401, "authentication_error"},
                 {403, "permission_error"},      {404, "not_found_error"},
                 {413, "request_too_large"},     {429, "rate_limit_error"},
                 {503, "overloaded_error"}};
    const char *type = what->status < 500 ? "invalid_request_error" : "api_error";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].status == what->status) type = types[i].type;
    return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", type, "message",
                     pith_json_text(what->message, strlen(what->message)));
}
