/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/responses, OpenAI's newer API. Its stream names what it builds:
 *
 *   response.created, response.in_progress,
 *   an item: output_item.added, [content_part.added,] deltas, their done, [content_part.done,]
 *            output_item.done
 *   response.completed | response.incomplete | response.failed
 *
 * An item is a part of the answer (fold.c): reasoning, a message or a call, in the order of the
 * reply, so that the items of the stream are those of the whole answer.
 * Nothing is kept on the server: store: true and previous_response_id are refused, the whole input
 * is sent each time (docs/decisions/0083-protocols.md). Beyond the API: top_k, min_p, seed. */
#include "server/responses.h"
#include "server/openai.h"

#include <string.h>

typedef struct response_request {
    pith_answer_request request;
    json_t *echo; /* what the answer repeats of the request, as a copy */
} response_request;

typedef struct response {
    pith_answer answer;
    json_t *echo;
    json_int_t sequence;
    int item;                /* that is open, or comes next */
    bool is_open, has_begun; /* an item; the response */
} response;

/* ---- Items ---- */

static void name_item(const pith_answer *a, const char *prefix, int index, char out[96]) {
    snprintf(out, 96, "%s_%.40s_%d", prefix, a->id + strlen("resp_"), index);
}

static json_t *part_of(pith_job_event_kind kind, json_t *text, json_t *logprobs) {
    if (kind == PITH_JOB_REASONING)
        return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
    return json_pack("{s:s, s:o, s:[], s:o}", "type", "output_text", "text", text, "annotations",
                     "logprobs", logprobs ? json_incref(logprobs) : json_array());
}

/* The item at `index`; of a call with its name and arguments, else with its part (NULL: none yet).
 * value is taken over. */
static json_t *item_of(const pith_answer *a, pith_job_event_kind kind, int index, const char *name,
                       json_t *value) {
    char id[96], call_id[96];
    const char *status = value ? "completed" : "in_progress";
    if (kind == PITH_JOB_CALL) {
        name_item(a, "fc", index, id);
        name_item(a, "call", index, call_id);
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "type", "function_call", "id", id,
                         "call_id", call_id, "name", pith_json_text(name, strlen(name)),
                         "arguments", value ? value : json_string(""), "status", status);
    }
    json_t *content = value ? json_pack("[o]", value) : json_array();
    name_item(a, kind == PITH_JOB_TEXT ? "msg" : "rs", index, id);
    if (kind == PITH_JOB_REASONING)
        return json_pack("{s:s, s:s, s:[], s:o, s:n, s:s}", "type", "reasoning", "id", id,
                         "summary", "content", content, "encrypted_content", "status", status);
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "type", "message", "id", id, "role", "assistant",
                     "status", status, "content", content);
}

/* The part's own; NULL: none were asked for. */
static json_t *logprobs_of(const pith_fold_choice *made, const pith_fold_part *part) {
    json_t *own = made->logprobs ? json_array() : NULL;
    for (size_t i = 0; own && i < part->n_logprobs; i++)
        json_array_append(own, json_array_get(made->logprobs, part->from_logprobs + i));
    return own;
}

static json_t *finished_item(const pith_answer *a, size_t index) {
    const pith_fold_choice *made = &a->fold.choices[0];
    const pith_fold_part *part = &made->parts[index];
    pith_span text = pith_fold_text(made, part);
    json_t *value = pith_json_text(text.data, text.size);
    if (part->kind == PITH_JOB_CALL)
        return item_of(a, part->kind, (int)index, pith_fold_call_name(made, part), value);
    json_t *logprobs = logprobs_of(made, part);
    json_t *content = part_of(part->kind, value, logprobs);
    json_decref(logprobs);
    return item_of(a, part->kind, (int)index, NULL, content);
}

/* ---- The response object ---- */

static json_t *usage_of(const pith_job_account *account) {
    json_int_t n = (json_int_t)account->n_prompt, made = (json_int_t)account->n_predicted;
    return json_pack("{s:I, s:{s:I}, s:I, s:{s:I}, s:I}", "input_tokens", n, "input_tokens_details",
                     "cached_tokens", (json_int_t)account->n_cached, "output_tokens", made,
                     "output_tokens_details", "reasoning_tokens", (json_int_t)account->n_reasoning,
                     "total_tokens", n + made);
}

/* account NULL: it is in progress. */
static json_t *object_of(const pith_answer *a, const pith_job_account *account) {
    const pith_fold_choice *made = &a->fold.choices[0];
    bool is_cut = account && made->finish == PITH_FINISH_LENGTH;
    json_t *output = json_array();
    for (size_t i = 0; account && i < made->n_parts; i++)
        json_array_append_new(output, finished_item(a, i));
    json_t *body =
        json_pack("{s:s, s:s, s:I, s:o, s:s, s:n, s:o, s:o, s:o}", "id", a->id, "object",
                  "response", "created_at", a->created, "model", pith_answer_model(a), "status",
                  !account ? "in_progress"
                  : is_cut ? "incomplete"
                           : "completed",
                  "error", "incomplete_details",
                  is_cut ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null(),
                  "output", output, "usage", account ? usage_of(account) : json_null());
    json_object_update(body, ((const response *)a)->echo);
    if (account) json_object_set_new(body, "timings", pith_job_timings(account));
    return body;
}

static json_t *whole(pith_answer *a, const pith_job_account *account) {
    return object_of(a, account);
}

/* ---- The stream ---- */

static void send(pith_answer *a, const char *type, json_t *data) {
    response *r = (response *)a;
    json_object_set_new(data, "type", json_string(type));
    json_object_set_new(data, "sequence_number", json_integer(r->sequence++));
    pith_exchange_stream_event(a->exchange, type, data);
}

static void begin(pith_answer *a) {
    response *r = (response *)a;
    pith_answer_begin(a);
    if (r->has_begun) return;
    r->has_begun = true;
    send(a, "response.created", json_pack("{s:o}", "response", object_of(a, NULL)));
    send(a, "response.in_progress", json_pack("{s:o}", "response", object_of(a, NULL)));
}

/* {"item_id", "output_index", "content_index"} of the open item. */
static json_t *place_of(const response *r, pith_job_event_kind kind) {
    char id[96];
    const char *prefix = kind == PITH_JOB_CALL ? "fc" : kind == PITH_JOB_TEXT ? "msg" : "rs";
    name_item(&r->answer, prefix, r->item, id);
    json_t *place = json_pack("{s:s, s:i}", "item_id", id, "output_index", r->item);
    if (kind != PITH_JOB_CALL) json_object_set_new(place, "content_index", json_integer(0));
    return place;
}

static void close_item(response *r) {
    pith_answer *a = &r->answer;
    if (!r->is_open) return;
    const pith_fold_part *part = &a->fold.choices[0].parts[r->item];
    pith_span text = pith_fold_text(&a->fold.choices[0], part);
    json_t *item = finished_item(a, (size_t)r->item), *data = place_of(r, part->kind);
    json_t *content = json_array_get(json_object_get(item, "content"), 0);
    if (part->kind == PITH_JOB_CALL) {
        json_object_set(data, "name", json_object_get(item, "name"));
        json_object_set_new(data, "arguments", pith_json_text(text.data, text.size));
        send(a, "response.function_call_arguments.done", data);
    } else {
        bool is_text = part->kind == PITH_JOB_TEXT;
        json_object_set(data, "text", json_object_get(content, "text"));
        if (is_text) json_object_set(data, "logprobs", json_object_get(content, "logprobs"));
        send(a, is_text ? "response.output_text.done" : "response.reasoning_text.done", data);
        data = place_of(r, part->kind);
        json_object_set(data, "part", content);
        send(a, "response.content_part.done", data);
    }
    send(a, "response.output_item.done",
         json_pack("{s:i, s:o}", "output_index", r->item, "item", item));
    r->is_open = false;
    r->item++;
}

static void open_item(response *r, const pith_job_event *event) {
    pith_answer *a = &r->answer;
    size_t at = a->fold.choices[0].n_parts - 1; /* that the event is in: it has been folded */
    if (r->is_open && (size_t)r->item == at) return;
    close_item(r);
    r->is_open = true;
    send(a, "response.output_item.added",
         json_pack("{s:i, s:o}", "output_index", r->item, "item",
                   item_of(a, event->kind, r->item, event->name, NULL)));
    if (event->kind == PITH_JOB_CALL) return;
    json_t *data = place_of(r, event->kind);
    json_object_set_new(data, "part", part_of(event->kind, json_string(""), NULL));
    send(a, "response.content_part.added", data);
}

static void stream_event(pith_answer *a, const pith_job_event *event) {
    static const char *const types[] = {[PITH_JOB_TEXT] = "response.output_text.delta",
                                        [PITH_JOB_REASONING] = "response.reasoning_text.delta",
                                        [PITH_JOB_CALL] = "response.function_call_arguments.delta"};
    response *r = (response *)a;
    begin(a);
    if (event->kind == PITH_JOB_FINISH) close_item(r);
    if (event->kind == PITH_JOB_FINISH || a->fold.failed ||
        (event->text.size == 0 && event->kind != PITH_JOB_CALL))
        return;
    open_item(r, event);
    json_t *data = place_of(r, event->kind);
    json_object_set_new(data, "delta", pith_json_text(event->text.data, event->text.size));
    if (event->kind == PITH_JOB_TEXT)
        json_object_set_new(data, "logprobs",
                            event->logprobs ? json_copy(event->logprobs) : json_array());
    send(a, types[event->kind], data);
    if (event->kind == PITH_JOB_CALL) close_item(r);
}

static void stream_end(pith_answer *a, const pith_job_account *account) {
    bool is_cut = a->fold.choices[0].finish == PITH_FINISH_LENGTH;
    begin(a);
    send(a, is_cut ? "response.incomplete" : "response.completed",
         json_pack("{s:o}", "response", object_of(a, account)));
}

static void stream_failed(pith_answer *a, const pith_http_error *what) {
    json_t *body = object_of(a, NULL);
    begin(a);
    json_object_set_new(body, "status", json_string("failed"));
    json_object_set_new(body, "error",
                        json_pack("{s:s, s:o}", "code", what->code ? what->code : what->type,
                                  "message", pith_json_text(what->message, strlen(what->message))));
    send(a, "response.failed", json_pack("{s:o}", "response", body));
}

static bool init(pith_answer *a, pith_answer_request *request) {
    ((response *)a)->echo = ((response_request *)request)->echo;
    ((response_request *)request)->echo = NULL;
    return true;
}

static void deinit(pith_answer *a) {
    json_decref(((response *)a)->echo);
}

/* ---- The request ---- */

/* {"format": {"type", "name", "schema", "strict", "description"}, "verbosity"} */
static void read_text(pith_fields *f, pith_answer_request *out, json_t **more) {
    json_t *text = NULL, *format = NULL, *schema = NULL;
    const char *type = "text";
    pith_fields in, at;
    if (!pith_fields_object(f, "text", &text)) return;
    pith_fields_init(&in, text, "text");
    if (pith_fields_object(&in, "format", &format)) {
        pith_fields_init(&at, format, "text.format");
        pith_openai_read_format(&at, &type);
        if (strcmp(type, "json_schema") == 0) schema = pith_openai_read_schema(&at);
        pith_fields_close(&at);
        pith_fields_leave(&in, &at);
    }
    pith_openai_read_verbosity(&in, more);
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in) && strcmp(type, "text") != 0)
        pith_answer_hold_to_schema(out, schema, "text.format");
}

/* What the template is told goes to `more`. */
static void read_reasoning(pith_fields *f, pith_job_request *job, json_t **more) {
    json_t *reasoning = NULL;
    pith_fields in;
    if (!pith_fields_object(f, "reasoning", &reasoning)) return;
    pith_fields_init(&in, reasoning, "reasoning");
    pith_chat_read_effort(&in, "effort", "reasoning.effort", more, job);
    pith_fields_harmless(&in, "summary"); /* reasoning is told whole */
    pith_fields_harmless(&in, "generate_summary");
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

static void read_sampling(pith_fields *f, pith_server *server, pith_answer_request *out) {
    int64_t n = 0;
    pith_job_read_draw(f, server, &out->job);
    if (pith_fields_int(f, "max_output_tokens", 1, 1 << 24, &n)) out->job.max_tokens = (int32_t)n;
}

/* include: what the answer tells beside its text. */
static void read_include(pith_fields *f, pith_answer_request *out) {
    json_t *include = NULL, *one;
    int64_t n = 0;
    size_t i;
    pith_fields_array(f, "include", &include);
    json_array_foreach(include, i, one) {
        const char *name = json_string_value(one);
        if (name && strcmp(name, "message.output_text.logprobs") == 0)
            out->job.wants_logprobs = true;
        else if (!name || strcmp(name, "reasoning.encrypted_content") != 0) /* it is told plainly */
            pith_fields_wrong(f, "include", "unsupported",
                              "may hold message.output_text.logprobs and "
                              "reasoning.encrypted_content, not '%.60s'",
                              name ? name : "");
    }
    if (!pith_fields_int(f, "top_logprobs", 0, PITH_LOGPROBS_MAX, &n)) return;
    out->job.n_logprobs = (int32_t)n;
    if (!out->job.wants_logprobs && n > 0)
        pith_fields_wrong(f, "top_logprobs", "invalid_value",
                          "needs message.output_text.logprobs in include");
}

/* What would need answers that are kept, or work behind the client's back. */
static void refuse_kept(pith_fields *f) {
    const char *truncation = "disabled";
    bool is_background = false;
    json_t *options = NULL;
    pith_fields in;
    if (pith_fields_any(f, "previous_response_id"))
        pith_fields_wrong(f, "previous_response_id", "unsupported",
                          "is not supported: nothing is kept, send the whole input");
    if (pith_fields_flag(f, "background", &is_background) && is_background)
        pith_fields_wrong(f, "background", "unsupported", "true is not supported");
    if (pith_fields_text(f, "truncation", &truncation) && strcmp(truncation, "disabled") != 0)
        pith_fields_wrong(f, "truncation", "unsupported", "must be disabled: nothing is dropped");
    if (!pith_fields_object(f, "stream_options", &options)) return;
    pith_fields_init(&in, options, "stream_options");
    pith_openai_refuse_obfuscation(&in);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

static json_t *or_null(const json_t *body, const char *key) {
    json_t *value = json_object_get(body, key);
    return value ? json_deep_copy(value) : json_null();
}

static json_t *or_empty(const json_t *body, const char *key, json_t *otherwise) {
    json_t *value = json_object_get(body, key);
    if (!value || json_is_null(value)) return otherwise;
    json_decref(otherwise);
    return json_deep_copy(value);
}

/* The tools that the model was told of, or the types of those that it was not. */
static json_t *tools_of(const json_t *body, bool left_out) {
    json_t *list = json_array(), *tool;
    size_t i;
    json_array_foreach(json_object_get(body, "tools"), i, tool) {
        if (pith_responses_leaves_out(tool) != left_out) continue;
        json_array_append_new(list, left_out ? json_incref(json_object_get(tool, "type"))
                                             : json_deep_copy(tool));
    }
    return list;
}

/* Fields of the request that the response object has again. */
static json_t *echo_of(const json_t *body, const pith_job_request *job) {
    double top_p = (double)job->sampler.top_p;
    if (top_p == 0) top_p = 1;    /* absent */
    if (top_p < 1e-30) top_p = 0; /* pith_fields_share */
    json_t *left_out = tools_of(body, true),
           *echo = json_pack(
               "{s:o, s:o, s:o, s:b, s:n, s:o, s:b, s:f, s:f, s:o, s:o, s:o, s:s, s:o, s:b}",
               "instructions", or_null(body, "instructions"), "max_output_tokens",
               or_null(body, "max_output_tokens"), "metadata",
               or_empty(body, "metadata", json_object()), "parallel_tool_calls",
               (int)!job->single_call, "previous_response_id", "reasoning",
               or_empty(body, "reasoning", json_pack("{s:n, s:n}", "effort", "summary")), "store",
               0, "temperature", (double)job->sampler.temperature, "top_p", top_p, "text",
               or_empty(body, "text", json_pack("{s:{s:s}}", "format", "type", "text")),
               "tool_choice", or_empty(body, "tool_choice", json_string("auto")), "tools",
               tools_of(body, false), "truncation", "disabled", "user", or_null(body, "user"),
               "background", 0);
    if (json_array_size(left_out) > 0) json_object_set(echo, "tools_left_out", left_out);
    json_decref(left_out);
    return echo;
}

static bool read(pith_fields *f, pith_server *server, pith_answer_request *out) {
    const char *instructions = NULL;
    pith_fields_text(f, "model", &out->model);
    pith_fields_text(f, "instructions", &instructions);
    json_t *messages = pith_responses_read_input(f, instructions);
    json_t *tools = pith_responses_read_tools(f, &out->job), *more = NULL, *notes = NULL;
    read_reasoning(f, &out->job, &more);
    pith_fields_flag(f, "stream", &out->stream);
    read_sampling(f, server, out);
    read_text(f, out, &more);
    read_include(f, out);
    refuse_kept(f);
    pith_openai_read_harmless(f, &out->job);
    pith_fields_object(f, "client_metadata", &notes); /* the client's own notes */
    out->context = pith_chat_context(f, messages, out->job.reads_calls ? tools : NULL, more);
    out->job.context = out->context;
    out->job.tools = json_object_get(out->context, "tools"); /* the context's */
    out->job.reads_reasoning = !out->job.has_grammar || out->job.reads_calls;
    ((response_request *)out)->echo = echo_of(f->object, &out->job);
    if (!((response_request *)out)->echo) pith_fields_short(f);
    json_decref(tools);
    json_decref(more);
    return pith_fields_close(f);
}

static void release(pith_answer_request *request) {
    json_decref(((response_request *)request)->echo);
}

void pith_handle_responses(pith_exchange *exchange) {
    static const pith_answer_protocol protocol = {.request_bytes = sizeof(response_request),
                                                  .answer_bytes = sizeof(response),
                                                  .id_prefix = "resp_",
                                                  .stream_type = "text/event-stream",
                                                  .folds_streams = true,
                                                  .read = read,
                                                  .release = release,
                                                  .init = init,
                                                  .deinit = deinit,
                                                  .stream_event = stream_event,
                                                  .stream_end = stream_end,
                                                  .stream_failed = stream_failed,
                                                  .whole = whole};
    pith_answer_handle(exchange, &protocol);
}
