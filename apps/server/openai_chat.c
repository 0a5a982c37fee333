/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/chat/completions, as OpenAI's API has it: a handler from end to end.
 *
 *   body -> fields -> neutral request -> job -> events -> chunks of a stream, or their fold
 *
 * Invariant: a whole answer is made of the same events as a stream; a field is enforced or refused.
 * Beyond the API: top_k, min_p, repeat_penalty, chat_template_kwargs, return_progress, timings,
 * reasoning_content. Read next: openai_messages.c (what messages may be), job.c. */
#include "server/openai.h"

#include <string.h>

typedef struct chat {
    pith_answer answer;
    bool has_role[PITH_JOB_MAX_CHOICES];
} chat;

/* ---- Chunks ---- */

static json_t *chunk(const pith_answer *a, json_t *choices) {
    return pith_openai_object(a, "chat.completion.chunk", choices);
}

/* One choice's part; logprobs and finish may be NULL. */
static void send_delta(pith_answer *a, int choice, json_t *delta, json_t *logprobs,
                       const char *finish) {
    json_t *one = json_pack("{s:i, s:o, s:o, s:s?}", "index", choice, "delta", delta, "logprobs",
                            logprobs ? json_pack("{s:O}", "content", logprobs) : json_null(),
                            "finish_reason", finish);
    json_t *data = chunk(a, json_pack("[o]", one));
    if (finish)
        pith_openai_send_finish(a, data);
    else
        pith_exchange_stream_event(a->exchange, NULL, data);
}

static void begin_choice(pith_answer *a, int choice) {
    chat *c = (chat *)a;
    pith_answer_begin(a);
    if (c->has_role[choice]) return;
    c->has_role[choice] = true;
    send_delta(a, choice, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL, NULL);
}

static void send_progress(pith_answer *a, const pith_job_event *event) {
    pith_answer_begin(a);
    json_t *data = chunk(a, json_array());
    json_object_set_new(data, "prompt_progress",
                        json_pack("{s:I, s:I}", "total", (json_int_t)event->n_prompt, "processed",
                                  (json_int_t)((double)event->n_prompt * event->progress)));
    pith_exchange_stream_event(a->exchange, NULL, data);
}

static json_t *describe_call(const pith_answer *a, int choice, int index, const char *name,
                             pith_span arguments) {
    char id[96];
    snprintf(id, sizeof id, "call_%.40s_%d_%d", a->id + strlen("chatcmpl-"), choice, index);
    return json_pack("{s:s, s:s, s:{s:o, s:o}}", "id", id, "type", "function", "function", "name",
                     pith_json_text(name, strlen(name)), "arguments",
                     pith_json_text(arguments.data, arguments.size));
}

static void stream_event(pith_answer *a, const pith_job_event *event) {
    json_t *delta = NULL, *call = NULL, *logprobs = NULL;
    const char *finish = NULL;
    if (event->kind == PITH_JOB_PROGRESS) {
        send_progress(a, event);
        return;
    }
    begin_choice(a, event->choice);
    switch (event->kind) {
    case PITH_JOB_TEXT:
    case PITH_JOB_REASONING:
        delta = json_pack("{s:o}", event->kind == PITH_JOB_TEXT ? "content" : "reasoning_content",
                          pith_json_text(event->text.data, event->text.size));
        logprobs = event->logprobs;
        break;
    case PITH_JOB_CALL:
        call = describe_call(a, event->choice, event->call, event->name, event->text);
        json_object_set_new(call, "index", json_integer(event->call));
        delta = json_pack("{s:[o]}", "tool_calls", call);
        break;
    default: delta = json_object(); finish = pith_openai_finish(event->finish);
    }
    send_delta(a, event->choice, delta, logprobs, finish);
}

/* ---- The end ---- */

static json_t *describe_message(const pith_answer *a, int at) {
    const pith_fold_choice *choice = &a->fold.choices[at];
    json_t *call, *calls = json_array();
    size_t i;
    json_array_foreach(choice->calls, i, call) {
        const char *arguments = json_string_value(json_object_get(call, "arguments"));
        json_array_append_new(calls, describe_call(a, at, (int)i,
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

static json_t *whole(pith_answer *a, const pith_job_account *account) {
    json_t *choices = json_array();
    for (int i = 0; i < a->fold.n; i++) {
        json_t *logprobs = a->fold.choices[i].logprobs;
        json_array_append_new(
            choices,
            json_pack("{s:i, s:o, s:o, s:s}", "index", i, "message", describe_message(a, i),
                      "logprobs", logprobs ? json_pack("{s:O}", "content", logprobs) : json_null(),
                      "finish_reason", pith_openai_finish(a->fold.choices[i].finish)));
    }
    return pith_openai_whole(a, "chat.completion", choices, account);
}

static void stream_end(pith_answer *a, const pith_job_account *account) {
    pith_openai_stream_end(a, "chat.completion.chunk", account);
}

/* ---- The request ---- */

static void read_response_format(pith_fields *f, pith_answer_request *out) {
    json_t *format = NULL, *holder = NULL, *schema = NULL;
    const char *type = "";
    pith_fields in, at;
    if (!pith_fields_object(f, "response_format", &format)) return;
    pith_fields_init(&in, format, "response_format");
    pith_openai_read_format(&in, &type);
    if (strcmp(type, "json_schema") == 0 && pith_fields_require(&in, "json_schema") &&
        pith_fields_object(&in, "json_schema", &holder)) {
        pith_fields_init(&at, holder, "response_format.json_schema");
        schema = pith_openai_read_schema(&at);
        pith_fields_close(&at);
        pith_fields_leave(&in, &at);
    }
    pith_fields_close(&in);
    if (!pith_fields_leave(f, &in) || strcmp(type, "text") == 0) return;
    pith_answer_hold_to_schema(out, schema, "response_format");
}

static void read_logprobs(pith_fields *f, pith_answer_request *out) {
    int64_t n = 0;
    pith_fields_flag(f, "logprobs", &out->job.wants_logprobs);
    if (!pith_fields_int(f, "top_logprobs", 0, PITH_LOGPROBS_MAX, &n)) return;
    out->job.n_logprobs = (int32_t)n;
    if (!out->job.wants_logprobs)
        pith_fields_wrong(f, "top_logprobs", "invalid_value", "needs logprobs: true");
}

static void read_limits(pith_fields *f, pith_answer_request *out) {
    int64_t n = 0;
    if (pith_fields_int(f, "max_tokens", 1, 1 << 24, &n)) out->job.max_tokens = (int32_t)n;
    if (pith_fields_int(f, "max_completion_tokens", 1, 1 << 24, &n))
        out->job.max_tokens = (int32_t)n;
}

/* false: the fields say what is wrong. */
static bool read(pith_fields *f, pith_server *server, pith_answer_request *out) {
    pith_fields_text(f, "model", &out->model);
    out->context = pith_openai_read_messages(f, &out->job);
    pith_job_read_sampling(f, server, &out->job);
    pith_openai_read_stream(f, out);
    read_logprobs(f, out);
    read_limits(f, out);
    read_response_format(f, out);
    pith_fields_flag(f, "return_progress", &out->tells_progress);
    if (out->tells_progress && !out->stream)
        pith_fields_wrong(f, "return_progress", "invalid_value", "is for stream: true alone");
    pith_openai_read_harmless(f, &out->job);
    pith_openai_read_route(f);
    out->job.reads_reasoning = !out->job.has_grammar || out->job.reads_calls;
    out->job.context = out->context;
    return pith_fields_close(f);
}

void pith_handle_chat_completions(pith_exchange *exchange) {
    static const pith_answer_protocol protocol = {.request_bytes = sizeof(pith_answer_request),
                                                  .answer_bytes = sizeof(chat),
                                                  .id_prefix = "chatcmpl-",
                                                  .stream_type = "text/event-stream",
                                                  .read = read,
                                                  .stream_event = stream_event,
                                                  .stream_end = stream_end,
                                                  .whole = whole};
    pith_answer_handle(exchange, &protocol);
}
