/* SPDX-License-Identifier: Apache-2.0
 * From a neutral request to a job in the queue, and from tokens to events.
 *
 * Invariant: all that can be wrong with a request is found here, before it waits; what is queued
 * fails only for reasons of the engine. A job owns copies of all that it needs.
 * Does not run anything: engine_thread.c does. */
#include "base/clock.h"
#include "base/memory.h"
#include "server/engine_thread.h"
#include "server/routing.h"

#include <math.h>
#include <string.h>

/* ---- Making a job ---- */

void pith_job_free(pith_job *job) {
    if (!job) return;
    for (int i = 0; i < job->n_runs; i++) {
        pith_sampler_free(job->runs[i].sampler);
        pith_message_free(job->runs[i].message);
        json_decref(job->runs[i].logprobs);
    }
    for (size_t i = 0; i < PITH_JOB_MAX_STOPS; i++) pith_free(job->stops[i]);
    pith_grammar_free(job->grammar);
    pith_loras_release(&job->loras);
    pith_free(job->ids);
    pith_models_give_back(job->served);
    pith_free(job);
}

static bool fail_memory(pith_job_refusal *why) {
    pith_fail_memory(&why->error, "a request", sizeof(pith_job));
    return false;
}

/* Whether the prompt ends with the mark that begins a thought. */
static bool ends_in_thought(const pith_job *job, const pith_prompt *prompt) {
    pith_tool_format format = {.size = sizeof format};
    size_t size = 0;
    const char *text = pith_prompt_text(prompt, &size);
    (void)pith_model_tool_format(pith_served_model(job->served), &format, NULL);
    size_t n = format.thought_begin ? strlen(format.thought_begin) : 0;
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' ')) size--;
    return n > 0 && size >= n && memcmp(text + size - n, format.thought_begin, n) == 0;
}

static bool is_read(const pith_model *model, const char *name) {
    const char *text = pith_model_chat_template(model);
    return text && strstr(text, name);
}

/* What a template does not read would be dropped: it is refused. */
static bool check_template(const pith_model *model, const pith_job_request *r,
                           pith_job_refusal *why) {
    pith_tool_format format = {.size = sizeof format};
    bool is_known = pith_model_tool_format(model, &format, NULL) == PITH_OK;
    bool is_switched = is_read(model, "enable_thinking") || is_read(model, "reasoning_effort");
    if (json_object_get(r->context, "tools") && !is_known && !is_read(model, "tools")) {
        why->param = "tools";
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "tools are not read by the chat template of this model: leave them out, or ask a "
                  "model that was made for them");
        return false;
    }
    why->param = r->thinking_path;
    if (r->thinking == PITH_THINKING_WANTED && !is_switched && !format.thought_begin) {
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "%s is not read by the chat template of this model, which does not think: leave "
                  "it out",
                  r->thinking_path);
        return false;
    }
    if (r->thinking == PITH_THINKING_UNWANTED && !is_switched && format.thought_begin) {
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "%s cannot be turned off: the chat template of this model always thinks",
                  r->thinking_path);
        return false;
    }
    return true;
}

/* Before the work of cutting it into tokens, which nothing would end. */
static bool check_size(const pith_job *job, size_t size, pith_job_refusal *why) {
    if (size <= pith_served_text_limit(job->served)) return true;
    why->code = "context_length_exceeded";
    pith_fail(&why->error, PITH_ERROR_LIMIT,
              "the prompt has %zu bytes, more than any %d tokens of the context: "
              "shorten it, or start the server with a larger --ctx",
              size, (int)pith_served_n_ctx(job->served));
    return false;
}

/* Ids of the rendered messages. Only the template's spans have control tokens. */
static bool chat_ids(pith_job *job, const pith_job_request *r, bool *in_thought,
                     pith_job_refusal *why) {
    const pith_model *model = pith_served_model(job->served);
    pith_prompt *prompt = NULL;
    if (!check_template(model, r, why)) return false;
    char *json = pith_json_dump(r->context);
    if (!json) return fail_memory(why);
    why->param = "messages";
    bool ok = pith_prompt_render(model, NULL, json, &prompt, &why->error) == PITH_OK;
    pith_json_release(json);
    if (!ok) return false;
    size_t size = 0;
    *in_thought = ends_in_thought(job, prompt);
    pith_prompt_text(prompt, &size);
    if (!check_size(job, size, why)) {
        pith_prompt_free(prompt);
        return false;
    }
    job->ids = pith_alloc_array(size + 2, sizeof *job->ids);
    ok = job->ids && pith_prompt_tokenize(model, prompt, job->ids, size + 2, &job->n_ids,
                                          &why->error) == PITH_OK;
    pith_prompt_free(prompt);
    return job->ids ? ok : fail_memory(why);
}

static bool text_ids(pith_job *job, const pith_job_request *r, pith_job_refusal *why) {
    why->param = "prompt";
    if (!check_size(job, r->text_size, why)) return false;
    job->ids = pith_alloc_array(r->text_size + 2, sizeof *job->ids);
    if (!job->ids) return fail_memory(why);
    return pith_tokenize(pith_served_model(job->served), r->text, r->text_size,
                         PITH_TOKENIZE_ADD_SPECIAL, job->ids, r->text_size + 2, &job->n_ids,
                         &why->error) == PITH_OK;
}

static bool check_ids(const pith_job *job, const pith_job_request *r, pith_job_refusal *why) {
    int32_t n_ctx = pith_served_n_ctx(job->served);
    int32_t n_vocab = pith_model_describe(pith_served_model(job->served)).n_vocab;
    for (size_t i = 0; i < r->sampler.n_biases; i++) {
        if (r->sampler.biases[i].id < n_vocab) continue;
        why->param = "logit_bias";
        pith_fail(&why->error, PITH_ERROR_ARGUMENT,
                  "logit_bias names token %d, the vocabulary has ids below %d",
                  (int)r->sampler.biases[i].id, (int)n_vocab);
        return false;
    }
    for (size_t i = 0; i < job->n_ids; i++) {
        if (job->ids[i] >= 0 && job->ids[i] < n_vocab) continue;
        pith_fail(&why->error, PITH_ERROR_ARGUMENT, "token id %d is outside the vocabulary of %d",
                  (int)job->ids[i], (int)n_vocab);
        return false;
    }
    if (r->wanted_ctx > n_ctx) {
        why->param = r->ctx_param;
        pith_fail(&why->error, PITH_ERROR_LIMIT,
                  "the context holds %d tokens, not %d: ask for less, or start the server with a "
                  "larger --ctx",
                  (int)n_ctx, (int)r->wanted_ctx);
        return false;
    }
    if (job->n_ids == 0) {
        pith_fail(&why->error, PITH_ERROR_ARGUMENT, "the prompt is empty");
        return false;
    }
    if (r->route_limit > 0 && job->n_ids > (size_t)r->route_limit) {
        why->code = PITH_JOB_ROUTED;
        pith_fail(&why->error, PITH_ERROR_LIMIT, "rule: its %zu tokens are more than %d",
                  job->n_ids, (int)r->route_limit);
        return false;
    }
    if (r->wanted_ctx > 0) n_ctx = r->wanted_ctx;
    if (job->n_ids < (size_t)n_ctx) return true;
    why->code = "context_length_exceeded";
    if (r->wanted_ctx > 0) why->param = r->ctx_param;
    pith_fail(&why->error, PITH_ERROR_LIMIT,
              "the prompt has %zu tokens, the context holds %d and the reply needs room: shorten "
              "it, or start the server with a larger --ctx",
              job->n_ids, (int)n_ctx);
    return false;
}

static bool has_strict(const json_t *tools) {
    json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool) {
        if (json_is_true(json_object_get(json_object_get(tool, "function"), "strict"))) return true;
    }
    return false;
}

/* Whether the answer's own schema is right. */
static bool is_grammar(const pith_model *model, const pith_job_request *r) {
    pith_grammar *grammar = NULL;
    bool ok = pith_grammar_new(model, r->grammar_kind, r->grammar, strlen(r->grammar), &grammar,
                               NULL) == PITH_OK;
    pith_grammar_free(grammar);
    return ok;
}

/* Which calls a reply may have; format is borrowed. */
static pith_tool_options tool_options(const pith_job_request *r, const pith_tool_format *format,
                                      bool in_thought) {
    pith_tool_options options = {.size = sizeof options,
                                 .format = format,
                                 .choice = r->tool_choice,
                                 .only = r->only_tool,
                                 .parallel = !r->single_call,
                                 .in_thought = in_thought};
    if (r->has_grammar) {
        options.content_schema = r->grammar;
        options.content_schema_size = strlen(r->grammar);
    }
    return options;
}

/* Calls are held to their schemas, and what is no call to the schema of the answer. */
static bool make_tools(pith_job *job, const pith_job_request *r, bool in_thought,
                       pith_job_refusal *why) {
    const pith_model *model = pith_served_model(job->served);
    pith_tool_format format = {.size = sizeof format};
    bool is_known = pith_model_tool_format(model, &format, NULL) == PITH_OK;
    bool must = r->tool_choice == PITH_TOOLS_REQUIRED || r->has_grammar || has_strict(r->tools);
    why->param = "tool_choice";
    if (!is_known && must) {
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "calls cannot be enforced for this model: its template has no form of calls that "
                  "the server reads");
        return false;
    }
    if (!is_known) return true;
    const pith_tool_options options = tool_options(r, &format, in_thought);
    char *json = pith_json_dump(r->tools);
    if (!json) return fail_memory(why);
    why->param = "tools";
    pith_status status =
        pith_grammar_new_tools(model, json, strlen(json), &options, &job->grammar, &why->error);
    pith_json_release(json);
    if (status != PITH_OK && r->has_grammar && !is_grammar(model, r)) why->param = r->grammar_path;
    return status == PITH_OK;
}

static bool make_grammar(pith_job *job, const pith_job_request *r, bool in_thought,
                         pith_job_refusal *why) {
    if (r->has_grammar && !r->grammar) return fail_memory(why);
    if (r->tools) return make_tools(job, r, in_thought, why);
    if (!r->has_grammar) return true;
    why->param = r->grammar_path;
    return pith_grammar_new(pith_served_model(job->served), r->grammar_kind, r->grammar,
                            strlen(r->grammar), &job->grammar, &why->error) == PITH_OK;
}

/* What takes a reply apart: thoughts, and calls where tools were given. */
static bool make_message(const pith_job *job, const pith_job_request *r, bool in_thought,
                         pith_run *run, pith_job_refusal *why) {
    const pith_model *model = pith_served_model(job->served);
    pith_tool_format format = {.size = sizeof format};
    if (!r->reads_reasoning) return true;
    (void)pith_model_tool_format(model, &format, NULL);
    if (!r->reads_calls)
        format = (pith_tool_format){.size = sizeof format,
                                    .thought_begin = format.thought_begin,
                                    .thought_end = format.thought_end};
    pith_tool_options options = tool_options(r, &format, in_thought);
    bool has_calls = r->reads_calls && r->tools;
    char *tools = has_calls ? pith_json_dump(r->tools) : NULL;
    if (has_calls && !tools) return fail_memory(why);
    options.tools_json = tools;
    options.tools_json_size = tools ? strlen(tools) : 0;
    bool ok = pith_message_new(model, &options, &run->message, &why->error) == PITH_OK;
    pith_json_release(tools);
    return ok;
}

static bool make_runs(pith_job *job, const pith_job_request *r, bool in_thought,
                      pith_job_refusal *why) {
    why->param = NULL;
    int n = r->n > 0 ? r->n : 1;
    for (int i = 0; i < n; i++) {
        pith_run *run = &job->runs[job->n_runs++];
        pith_sampler_options options = r->sampler;
        options.seed += (uint64_t)i;
        if (options.penalty_window == 0)
            options.penalty_window = pith_served_n_ctx(job->served); /* all, as in OpenAI's API */
        run->job = job;
        run->choice = i;
        run->slot = -1;
        if (!make_message(job, r, in_thought, run, why)) return false;
        if (r->wants_logprobs && !(run->logprobs = json_array())) return fail_memory(why);
        if (pith_sampler_new(pith_served_model(job->served), &options, &run->sampler,
                             &why->error) != PITH_OK)
            return false;
    }
    return true;
}

static bool copy_options(pith_job *job, const pith_job_request *r, pith_job_refusal *why) {
    for (size_t i = 0; i < r->n_stops; i++) {
        job->stops[i] = pith_copy_text(r->stops[i], strlen(r->stops[i]));
        if (!job->stops[i]) return fail_memory(why);
    }
    job->wants_logprobs = r->wants_logprobs;
    job->wants_progress = r->wants_progress;
    int32_t max_tokens = r->max_tokens, room = r->wanted_ctx - (int32_t)job->n_ids;
    if (r->wanted_ctx > 0 && (max_tokens == 0 || max_tokens > room)) max_tokens = room;
    job->single_call = r->single_call;
    job->options = (pith_generate_options){.size = sizeof job->options,
                                           .max_tokens = max_tokens,
                                           .stops = (const char *const *)job->stops,
                                           .n_stops = r->n_stops,
                                           .ignore_end = r->ignore_end,
                                           .show_control = r->reads_reasoning,
                                           .n_logprobs = r->n_logprobs,
                                           .grammar = job->grammar};
    return true;
}

static bool hold_loras(pith_job *job, const pith_job_request *r, pith_job_refusal *why) {
    why->param = "lora";
    job->loras = r->loras;
    return pith_loras_hold(job->served, &job->loras, &why->error);
}

bool pith_job_start(pith_served *served, pith_job_request *r, const pith_job_listener *listener,
                    pith_job_refusal *why) {
    *why = (pith_job_refusal){.error = {.status = PITH_OK}};
    pith_job *job = pith_alloc_zero(1, sizeof *job);
    if (!job) {
        pith_free(r->ids);
        return fail_memory(why);
    }
    bool in_thought = false;
    pith_models_lease_again(served);
    job->served = served;
    job->listener = *listener;
    job->queued_ns = pith_clock_ns();
    job->client = r->client;
    if (r->deadline_ms > 0) job->deadline_ns = job->queued_ns + (uint64_t)(r->deadline_ms * 1e6);
    job->account.device = pith_served_backend(served);
    job->account.cache_source = "";
    job->ids = r->ids;
    job->n_ids = r->n_ids;
    bool ok = r->context ? chat_ids(job, r, &in_thought, why)
              : r->text  ? text_ids(job, r, why)
                         : true;
    if (ok) why->param = r->context ? "messages" : "prompt";
    ok = ok && check_ids(job, r, why) && hold_loras(job, r, why) &&
         make_grammar(job, r, in_thought, why) && copy_options(job, r, why) &&
         make_runs(job, r, in_thought, why);
    if (ok && !pith_engine_thread_push(pith_served_thread(served), job)) {
        why->is_busy = true;
        pith_fail(&why->error, PITH_ERROR_LIMIT, "too many requests wait; try again in a moment");
        ok = false;
    }
    if (!ok) pith_job_free(job);
    return ok;
}

bool pith_job_count(pith_served *served, const pith_job_request *r, size_t *n,
                    pith_job_refusal *why) {
    *why = (pith_job_refusal){.error = {.status = PITH_OK}};
    pith_job *job = pith_alloc_zero(1, sizeof *job);
    bool in_thought = false;
    if (!job) return fail_memory(why);
    pith_models_lease_again(served);
    job->served = served;
    bool ok = r->context ? chat_ids(job, r, &in_thought, why) : text_ids(job, r, why);
    *n = job->n_ids;
    pith_job_free(job);
    return ok;
}

/* What the model here cannot may go upstream. */
static bool hand_over(pith_exchange *exchange, const pith_job_refusal *why) {
    if (why->is_busy) return pith_routing_hand_over(exchange, "the queue is full");
    if (!why->code) return false;
    if (strcmp(why->code, "context_length_exceeded") == 0)
        return pith_routing_hand_over(exchange, "the prompt is longer than the context here");
    return strcmp(why->code, PITH_JOB_ROUTED) == 0 &&
           pith_routing_hand_over(exchange, why->error.text);
}

void pith_job_refuse(pith_exchange *exchange, const pith_job_refusal *why) {
    if (hand_over(exchange, why)) return;
    if (why->code && strcmp(why->code, PITH_JOB_ROUTED) == 0) { /* it cannot leave any more */
        pith_exchange_retain(exchange);                         /* the desk's */
        pith_desk_push_again(exchange);
        return;
    }
    pith_http_error what = pith_http_error_of(&why->error);
    what.param = why->param;
    what.code = why->code;
    if (why->is_busy) {
        what.status = 429;
        what.type = "rate_limit_error";
        what.code = "busy";
        what.param = NULL;
    }
    pith_exchange_fail(exchange, &what);
}

/* ---- From tokens to events ---- */

static void send(pith_run *run, pith_job_event *event) {
    pith_generation made = {0};
    event->choice = run->choice;
    event->n_prompt = run->job->n_ids;
    run->n_silent = 0;
    if (run->reply && pith_reply_result(run->reply, &made, NULL) == PITH_OK)
        event->n_cached = made.n_cached;
    run->job->listener.on_event(run->job->listener.user, event);
}

static void send_text(pith_run *run, pith_job_event_kind kind, const char *text, size_t size) {
    pith_job_event event = {.kind = kind, .text = {text, size}};
    if (size == 0) return;
    if (kind == PITH_JOB_TEXT) event.logprobs = run->logprobs;
    send(run, &event);
    if (run->logprobs) json_array_clear(run->logprobs); /* of marks and thoughts: not told */
}

static void send_part(pith_run *run, const pith_message_part *part) {
    pith_tool_call call;
    send_text(run, PITH_JOB_REASONING, part->reasoning, part->reasoning_size);
    send_text(run, PITH_JOB_TEXT, part->content, part->content_size);
    for (; (size_t)run->n_calls < part->n_calls; run->n_calls++) {
        if (!pith_message_call_at(run->message, (size_t)run->n_calls, &call)) break;
        pith_job_event event = {.kind = PITH_JOB_CALL,
                                .text = pith_span_of(call.arguments),
                                .name = call.name,
                                .call = run->n_calls};
        send(run, &event);
        if (run->logprobs) json_array_clear(run->logprobs);
    }
}

/* One more token, of which nothing has been told yet. */
static void count_silence(pith_run *run) {
    pith_job_event event = {.kind = PITH_JOB_SILENCE};
    if (run->n_silent >= PITH_JOB_SILENT_TOKENS && run->job->wants_progress) send(run, &event);
    run->n_silent++;
}

int pith_run_on_text(void *user, int32_t id, const char *text, size_t size) {
    pith_run *run = user;
    pith_message_part part;
    count_silence(run);
    if (!run->message) {
        send_text(run, PITH_JOB_TEXT, text, size);
        return 0;
    }
    run->failed = pith_message_push(run->message, id, text, size, &part, NULL) != PITH_OK;
    if (run->failed) return 1;
    run->n_made += id >= 0;
    if (part.reasoning_size > 0) run->n_reasoning = run->n_made;
    send_part(run, &part);
    return run->job->single_call && run->n_calls > 0;
}

static json_t *describe_token(const pith_model *model, int32_t id, double logprob) {
    size_t size = 0;
    const char *text = pith_token_text(model, id, &size);
    const char *piece = size == 0 ? pith_token_piece(model, id) : NULL;
    if (piece) { /* control tokens stand for no text: their names are shown */
        text = piece;
        size = strlen(piece);
    }
    json_t *bytes = json_array();
    for (size_t i = 0; i < size; i++)
        json_array_append_new(bytes, json_integer((unsigned char)text[i]));
    return json_pack("{s:o, s:f, s:o, s:i}", "token", pith_json_text(text ? text : "", size),
                     "logprob", logprob > -9999 ? logprob : -9999.0, "bytes", bytes, "id", (int)id);
}

void pith_run_on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                          size_t n_top) {
    pith_run *run = user;
    const pith_model *model = pith_served_model(run->job->served);
    if (pith_token_is_end(model, id)) return; /* it is no part of the text */
    json_t *list = json_array(), *token = describe_token(model, id, logprob);
    for (size_t i = 0; i < n_top; i++)
        json_array_append_new(list, describe_token(model, top[i].id, top[i].logprob));
    json_object_set_new(token, "top_logprobs", list);
    json_array_append_new(run->logprobs, token);
}

int pith_run_on_prompt(void *user, double fraction) {
    pith_run *run = user;
    pith_job_event event = {.kind = PITH_JOB_PROGRESS, .progress = fraction};
    send(run, &event);
    return 0;
}

/* The stop string that ended the reply: of those in the text of its tokens the one that ends first,
 * of two that end at once the longer, as the engine has it. */
static const char *find_stop(const pith_run *run, const pith_generation *made) {
    const pith_session *session = run->session;
    const pith_model *model = pith_served_model(run->job->served);
    size_t n = session ? pith_session_length(session) : 0;
    const char *found = NULL, *first = NULL; /* first: where it ends */
    pith_buffer text = {0};
    for (size_t i = n > made->n_predicted ? n - made->n_predicted : 0; i < n; i++) {
        size_t size = 0;
        const char *piece = pith_token_text(model, pith_session_ids(session)[i], &size);
        pith_buffer_append(&text, piece ? piece : "", size);
    }
    for (size_t i = 0; i < run->job->options.n_stops && text.data && !text.failed; i++) {
        const char *stop = run->job->stops[i], *at = strstr(text.data, stop);
        const char *end = at ? at + strlen(stop) : NULL;
        if (!end || (first && (first < end || (first == end && strlen(found) > strlen(stop)))))
            continue;
        first = end;
        found = stop;
    }
    pith_buffer_deinit(&text);
    return found;
}

bool pith_run_finish(pith_run *run, const pith_generation *made, pith_error *error) {
    pith_message_part part;
    if (run->message) {
        if (pith_message_finish(run->message, &part, error) != PITH_OK) return false;
        send_part(run, &part);
    }
    if (run->logprobs && json_array_size(run->logprobs) > 0) {
        pith_job_event rest = {.kind = PITH_JOB_TEXT, .text = {"", 0}, .logprobs = run->logprobs};
        send(run, &rest);
        json_array_clear(run->logprobs);
    }
    pith_job_event event = {.kind = PITH_JOB_FINISH, .stop = made->stop};
    event.finish = PITH_FINISH_STOP;
    if (made->stop == PITH_STOP_TEXT) event.stop_text = find_stop(run, made);
    if (made->stop == PITH_STOP_LENGTH || made->stop == PITH_STOP_CONTEXT ||
        made->stop == PITH_STOP_DEADLINE)
        event.finish = PITH_FINISH_LENGTH;
    if (run->n_calls > 0) event.finish = PITH_FINISH_CALLS;
    send(run, &event);
    return true;
}
