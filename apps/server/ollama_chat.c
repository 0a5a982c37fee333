/* SPDX-License-Identifier: Apache-2.0
 * POST /api/chat and /api/generate, as Ollama's API has them: a stream of JSON lines unless stream
 * is false. Without messages or a prompt the model is loaded (keep_alive 0: taken out) and nothing
 * made. `raw` gives the prompt without a template; control tokens that it spells stay plain text,
 * as everywhere here. Refused: suffix, template, context, images. Beyond the API: tool_choice. */
#include "server/ollama.h"
#include "server/openai.h"

#include "base/clock.h"

#include <string.h>

typedef struct ollama {
    pith_answer answer;
    bool is_chat, unloads;
} ollama;

/* ---- Lines ---- */

static json_t *line_of(const pith_answer *a, bool done) {
    char time[40];
    pith_ollama_time(-1, time);
    return json_pack("{s:o, s:s, s:b}", "model", pith_answer_model(a), "created_at", time, "done",
                     (int)done);
}

static json_t *json_of(const pith_buffer *text) {
    return pith_json_text(text->data ? text->data : "", text->size);
}

/* Ollama's calls have their arguments as an object. */
static json_t *describe_call(int index, const char *name, const char *arguments) {
    return json_pack("{s:{s:i, s:o, s:o}}", "function", "index", index, "name",
                     pith_json_text(name, strlen(name)), "arguments",
                     pith_chat_arguments(arguments));
}

/* Puts text, thinking and calls (taken over; may be NULL) where the route has them. */
static void set_parts(const pith_answer *a, json_t *line, json_t *text, json_t *thinking,
                      json_t *calls) {
    json_t *message = line;
    if (((const ollama *)a)->is_chat) {
        message =
            json_pack("{s:s, s:o}", "role", "assistant", "content", text ? text : json_string(""));
        json_object_set_new(line, "message", message);
    } else {
        json_object_set_new(line, "response", text ? text : json_string(""));
    }
    if (thinking) json_object_set_new(message, "thinking", thinking);
    if (calls) json_object_set_new(message, "tool_calls", calls);
}

static void set_account(const pith_answer *a, json_t *line, const pith_fold_choice *made,
                        const pith_job_account *account) {
    static const char *const reasons[] = {"stop", "length", "stop"};
    uint64_t begun = pith_exchange_begun_ns(a->exchange);
    json_object_set_new(line, "done_reason", json_string(reasons[made->finish]));
    json_object_set_new(line, "total_duration",
                        json_integer((json_int_t)(pith_clock_ns() - begun)));
    json_object_set_new(line, "load_duration", json_integer((json_int_t)(a->loaded_ns - begun)));
    json_object_set_new(line, "prompt_eval_count", json_integer((json_int_t)account->n_prompt));
    json_object_set_new(line, "prompt_eval_duration",
                        json_integer((json_int_t)(account->prompt_ms * 1e6)));
    json_object_set_new(line, "eval_count", json_integer((json_int_t)account->n_predicted));
    json_object_set_new(line, "eval_duration",
                        json_integer((json_int_t)(account->predicted_ms * 1e6)));
}

static void stream_event(pith_answer *a, const pith_job_event *event) {
    json_t *text = NULL, *thinking = NULL, *calls = NULL;
    if (event->kind == PITH_JOB_FINISH) return;
    pith_answer_begin(a);
    if (event->kind == PITH_JOB_TEXT) text = pith_json_text(event->text.data, event->text.size);
    if (event->kind == PITH_JOB_REASONING)
        thinking = pith_json_text(event->text.data, event->text.size);
    if (event->kind == PITH_JOB_CALL)
        calls = json_pack("[o]", describe_call(event->call, event->name, event->text.data));
    json_t *line = line_of(a, false);
    set_parts(a, line, text, thinking, calls);
    if (event->logprobs) json_object_set(line, "logprobs", event->logprobs);
    pith_exchange_stream_line(a->exchange, line);
}

static void stream_end(pith_answer *a, const pith_job_account *account) {
    json_t *line = line_of(a, true);
    set_parts(a, line, NULL, NULL, NULL);
    set_account(a, line, &a->fold.choices[0], account);
    pith_exchange_stream_line(a->exchange, line);
}

static void stream_failed(pith_answer *a, const pith_http_error *what) {
    pith_exchange_stream_line(a->exchange, pith_exchange_error_body(a->exchange, what));
}

static json_t *whole(pith_answer *a, const pith_job_account *account) {
    const pith_fold_choice *made = &a->fold.choices[0];
    json_t *line = line_of(a, true), *calls = NULL, *call;
    size_t i;
    if (made->calls) calls = json_array();
    json_array_foreach(made->calls, i, call) {
        json_array_append_new(
            calls, describe_call((int)i, json_string_value(json_object_get(call, "name")),
                                 json_string_value(json_object_get(call, "arguments"))));
    }
    set_parts(a, line, json_of(&made->text),
              made->reasoning.size > 0 ? json_of(&made->reasoning) : NULL, calls);
    if (made->logprobs) json_object_set(line, "logprobs", made->logprobs);
    set_account(a, line, made, account);
    return line;
}

static json_t *loaded(pith_answer *a) {
    json_t *line = line_of(a, true);
    set_parts(a, line, NULL, NULL, NULL);
    json_object_set_new(line, "done_reason",
                        json_string(((ollama *)a)->unloads ? "unload" : "load"));
    return line;
}

static bool init_generate(pith_answer *a, pith_answer_request *request) {
    ((ollama *)a)->unloads = request->keeps && request->keep_seconds == 0;
    return true;
}

static bool init_chat(pith_answer *a, pith_answer_request *request) {
    ((ollama *)a)->is_chat = true;
    return init_generate(a, request);
}

/* ---- Requests ---- */

/* Fields whose empty values, which clients send, mean nothing. */
static void refuse_unless_empty(pith_fields *f, const char *key, const char *why) {
    json_t *value = pith_fields_any(f, key);
    bool is_empty = json_is_string(value) ? json_string_length(value) == 0
                                          : json_is_array(value) && json_array_size(value) == 0;
    if (value && !is_empty) pith_fields_wrong(f, key, "unsupported", "is not supported: %s", why);
}

static bool read_generate(pith_fields *f, pith_server *server, pith_answer_request *out) {
    const char *prompt = "", *system = "";
    bool is_raw = false;
    json_t *more = NULL;
    if (pith_fields_require(f, "model")) pith_fields_text(f, "model", &out->model);
    pith_fields_text(f, "prompt", &prompt);
    pith_fields_text(f, "system", &system);
    pith_fields_flag(f, "raw", &is_raw);
    refuse_unless_empty(f, "suffix", "text is only continued");
    refuse_unless_empty(f, "template", "the model's own is used, or with raw none");
    refuse_unless_empty(f, "context", "send the conversation to /api/chat");
    refuse_unless_empty(f, "images", "no model here sees");
    pith_ollama_read_shared(f, server, out, &more);
    if (is_raw && system[0])
        pith_fields_wrong(f, "system", "invalid_value", "needs a template: not with raw");
    if (is_raw && out->job.thinking == PITH_THINKING_WANTED)
        pith_fields_wrong(f, "think", "invalid_value", "needs a template: not with raw");
    out->only_loads = prompt[0] == 0;
    out->job.text = prompt;
    out->job.text_size = strlen(prompt);
    out->job.reads_reasoning = !is_raw && !out->job.has_grammar;
    if (!is_raw) {
        json_t *messages = json_array();
        if (system[0]) {
            out->needs_template = "system";
            pith_fields_append(f, messages,
                               json_pack("{s:s, s:s}", "role", "system", "content", system));
        }
        pith_fields_append(f, messages, json_pack("{s:s, s:s}", "role", "user", "content", prompt));
        out->context = pith_chat_context(f, messages, NULL, more);
    }
    out->job.context = out->context;
    json_decref(more);
    return pith_fields_close(f);
}

static bool read_chat(pith_fields *f, pith_server *server, pith_answer_request *out) {
    json_t *messages = NULL, *list = NULL, *more = NULL, *tools;
    if (pith_fields_require(f, "model")) pith_fields_text(f, "model", &out->model);
    pith_fields_array(f, "messages", &messages);
    list = pith_ollama_convert_messages(f, messages);
    tools = pith_openai_read_tools(f);
    pith_ollama_read_shared(f, server, out, &more);
    out->only_loads = json_array_size(messages) == 0;
    pith_openai_read_choice(f, tools, &out->job);
    out->job.reads_reasoning = !out->job.has_grammar || out->job.reads_calls;
    if (list) out->context = pith_chat_context(f, list, out->job.tools, more);
    out->job.context = out->context;
    json_decref(more);
    return pith_fields_close(f);
}

#define OLLAMA_PROTOCOL(reads, inits)                                                              \
    {                                                                                              \
        .request_bytes = sizeof(pith_answer_request), .answer_bytes = sizeof(ollama),              \
        .id_prefix = "ollama-", .stream_type = "application/x-ndjson", .folds_streams = true,      \
        .read = reads, .init = inits, .stream_event = stream_event, .stream_end = stream_end,      \
        .stream_failed = stream_failed, .whole = whole, .loaded = loaded                           \
    }

void pith_handle_ollama_generate(pith_exchange *exchange) {
    static const pith_answer_protocol protocol = OLLAMA_PROTOCOL(read_generate, init_generate);
    pith_answer_handle(exchange, &protocol);
}

void pith_handle_ollama_chat(pith_exchange *exchange) {
    static const pith_answer_protocol protocol = OLLAMA_PROTOCOL(read_chat, init_chat);
    pith_answer_handle(exchange, &protocol);
}
