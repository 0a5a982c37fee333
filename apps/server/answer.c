/* SPDX-License-Identifier: Apache-2.0
 * Answers of all protocols, from the body to the last word.
 * Invariant: an answer lives from a job's start to its on_end; the request only while it is read.
 */
#include "server/answer.h"

#include "base/calendar.h"
#include "base/clock.h"
#include "base/memory.h"
#include "server/routing.h"

#include <string.h>

static void answer_free(pith_answer *a) {
    if (a->protocol->deinit) a->protocol->deinit(a);
    pith_fold_deinit(&a->fold);
    json_decref(a->held);
    pith_exchange_release(a->exchange);
    pith_free(a->model);
    pith_free(a);
}

static pith_answer *answer_new(pith_exchange *exchange, const pith_answer_protocol *protocol,
                               pith_answer_request *request, const char *model) {
    pith_answer *a = pith_alloc_zero(1, protocol->answer_bytes);
    if (!a) return NULL;
    a->protocol = protocol;
    pith_exchange_retain(exchange);
    a->exchange = exchange;
    a->model = pith_copy_text(model, strlen(model));
    a->created = pith_calendar_now();
    a->loaded_ns = pith_clock_ns();
    a->stream = request->stream;
    a->include_usage = request->include_usage;
    a->tells_progress = request->tells_progress;
    pith_server_name_reply(pith_exchange_server(exchange), protocol->id_prefix, a->id);
    if (a->model && (!protocol->init || protocol->init(a, request))) return a;
    answer_free(a);
    return NULL;
}

/* ---- Events ---- */

void pith_answer_begin(pith_answer *a) {
    if (a->has_begun) return;
    a->has_begun = true;
    pith_exchange_stream_begin(a->exchange, a->protocol->stream_type);
}

/* Clients give up on an answer whose head does not come, or that is silent for minutes: the head
 * goes out when the prompt begins to be read, and where the form has comments, one for each step
 * of that, and while what is made is held back.
 */
static void keep_awake(pith_answer *a, const char *comment) {
    pith_answer_begin(a);
    if (strcmp(a->protocol->stream_type, "text/event-stream") == 0)
        pith_exchange_stream_write(a->exchange, comment, strlen(comment));
}

static void on_event(void *user, const pith_job_event *event) {
    pith_answer *a = user;
    if (a->fold.failed) return; /* on_end tells it */
    if (event->kind == PITH_JOB_SILENCE) {
        keep_awake(a, ": writing what is not told yet\n\n");
        return;
    }
    if (event->kind == PITH_JOB_PROGRESS && !a->tells_progress) {
        keep_awake(a, ": reading the prompt\n\n");
        return;
    }
    if (!a->stream || a->protocol->folds_streams) pith_fold_add(&a->fold, event);
    if (a->stream && !a->fold.failed) a->protocol->stream_event(a, event);
}

static void end_failed(pith_answer *a, const pith_error *error) {
    pith_http_error what = pith_http_error_of(error);
    if (!a->has_begun) {
        pith_exchange_fail(a->exchange, &what);
        return;
    }
    if (a->protocol->stream_failed)
        a->protocol->stream_failed(a, &what);
    else
        pith_exchange_stream_event(a->exchange, NULL, pith_exchange_error_body(a->exchange, &what));
    pith_exchange_stream_end(a->exchange);
}

static void on_end(void *user, const pith_error *error, const pith_job_account *account) {
    pith_answer *a = user;
    pith_error is_short = {.status = PITH_OK};
    if (!error && a->fold.failed) {
        pith_fail_memory(&is_short, "an answer", a->fold.choices[0].text.size);
        error = &is_short;
    }
    if (error) {
        end_failed(a, error);
    } else if (a->stream) {
        pith_answer_begin(a);
        a->protocol->stream_end(a, account);
        pith_exchange_stream_end(a->exchange);
    } else {
        pith_exchange_reply(a->exchange, 200, a->protocol->whole(a, account));
    }
    answer_free(a);
}

static bool is_gone(void *user) {
    return pith_exchange_is_gone(((pith_answer *)user)->exchange);
}

/* ---- Requests ---- */

/* Messages need a template, unless the request gives its text too and nothing else is lost. */
static bool choose_prompt(pith_answer_request *request, pith_served *served,
                          pith_job_refusal *why) {
    pith_job_request *job = &request->job;
    if (!job->context || pith_model_chat_template(pith_served_model(served))) return true;
    why->param = request->needs_template                 ? request->needs_template
                 : job->thinking == PITH_THINKING_WANTED ? job->thinking_path
                                                         : NULL;
    if (job->text && !why->param) {
        job->context = NULL;
        return true;
    }
    if (why->param)
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "%s needs a chat template, and the model has none: leave it out", why->param);
    else
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "the model has no chat template: ask /v1/completions");
    return false;
}

/* The answer is the job's, or was given. */
static bool start_job(pith_served *served, pith_answer *a, pith_answer_request *request,
                      pith_job_refusal *why) {
    if (request->only_loads) {
        pith_exchange_reply(a->exchange, 200, a->protocol->loaded(a));
        answer_free(a);
        return true;
    }
    request->job.wants_progress = request->stream;
    pith_job_listener listener = {on_event, on_end, is_gone, a};
    bool ok = pith_job_start(served, &request->job, &listener, why);
    request->job.ids = NULL; /* the job's */
    return ok;
}

/* To take out what is not in memory: nothing is to be done, and nothing is loaded for it. */
static void answer_absent(pith_exchange *exchange, const pith_answer_protocol *protocol,
                          pith_answer_request *request) {
    pith_answer *a = answer_new(exchange, protocol, request, request->model ? request->model : "");
    pith_exchange_reply(exchange, 200, a ? protocol->loaded(a) : NULL);
    if (a) answer_free(a);
}

static void start(pith_exchange *exchange, const pith_answer_protocol *protocol,
                  pith_answer_request *request) {
    pith_served *served = NULL;
    pith_models *models = pith_exchange_server(exchange)->models;
    request->job.route_limit = pith_routing_token_limit(exchange);
    bool only_takes_out = request->only_loads && request->keeps && request->keep_seconds == 0;
    if (only_takes_out && pith_models_is_absent(models, request->model)) {
        answer_absent(exchange, protocol, request);
        return;
    }
    if (pith_models_lease(models, request->model, exchange, &served) != PITH_LEASE_OK) return;
    const char *user = request->job.user;
    pith_answer *a = NULL;
    request->job.client =
        pith_hash(user ? user : "", user ? strlen(user) : 0, pith_exchange_client(exchange));
    pith_job_refusal why = {.error = {.status = PITH_OK}};
    if (choose_prompt(request, served, &why)) {
        a = answer_new(exchange, protocol, request, pith_served_name(served));
        if (!a) pith_fail_memory(&why.error, "a request", protocol->answer_bytes);
    }
    if (a && request->keeps) pith_served_keep(served, request->keep_seconds);
    if (!a || !start_job(served, a, request, &why)) {
        pith_job_refuse(exchange, &why);
        if (a) answer_free(a);
    }
    pith_models_give_back(served);
}

void pith_answer_handle(pith_exchange *exchange, const pith_answer_protocol *protocol) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields fields;
    pith_answer_request *request = pith_alloc_zero(1, protocol->request_bytes);
    pith_fields_init(&fields, body, "");
    if (!request)
        pith_exchange_reply(exchange, 500, NULL);
    else if (protocol->read(&fields, pith_exchange_server(exchange), request))
        start(exchange, protocol, request);
    else
        pith_fields_refuse(&fields, exchange);
    if (request) {
        if (protocol->release) protocol->release(request);
        pith_free(request->job.ids);
        json_decref(request->context);
        pith_json_release(request->grammar);
    }
    pith_free(request);
    json_decref(body);
}

json_t *pith_answer_model(const pith_answer *a) {
    return pith_json_text(a->model, strlen(a->model));
}

void pith_answer_hold_to_schema(pith_answer_request *request, const json_t *schema,
                                const char *path) {
    json_t *any = schema ? NULL : json_pack("{s:s}", "type", "object");
    request->grammar = pith_json_dump(schema ? schema : any);
    json_decref(any);
    request->job.has_grammar = true;
    request->job.grammar = request->grammar; /* NULL: without memory, which the job tells */
    request->job.grammar_kind = PITH_GRAMMAR_JSON_SCHEMA;
    request->job.grammar_path = path;
}
