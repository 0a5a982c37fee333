/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/completions, as OpenAI's API has it: a text, or token ids, is continued as it stands.
 * Invariant: as in openai_chat.c; log-probabilities have the shape of this older route. */
#include "server/openai.h"

#include "base/calendar.h"
#include "base/memory.h"

#include <string.h>

typedef struct completion {
    pith_exchange *exchange;
    char id[64];
    char *model;
    json_int_t created;
    char *echo;                           /* NULL: not asked for */
    size_t offsets[PITH_JOB_MAX_CHOICES]; /* characters sent of each choice */
    bool stream, include_usage, has_begun;
    pith_fold fold;
} completion;

static void completion_free(completion *c) {
    pith_fold_deinit(&c->fold);
    pith_exchange_release(c->exchange);
    pith_free(c->model);
    pith_free(c->echo);
    pith_free(c);
}

static size_t characters(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* {"tokens", "token_logprobs", "top_logprobs", "text_offset"} */
static json_t *old_logprobs(json_t *list, size_t *offset) {
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array();
    json_t *offsets = json_array(), *token, *top;
    size_t i, j;
    json_array_foreach(list, i, token) {
        const char *text = json_string_value(json_object_get(token, "token"));
        json_t *best = json_object();
        json_array_append(tokens, json_object_get(token, "token"));
        json_array_append(values, json_object_get(token, "logprob"));
        json_array_foreach(json_object_get(token, "top_logprobs"), j, top) {
            json_object_set(best, json_string_value(json_object_get(top, "token")),
                            json_object_get(top, "logprob"));
        }
        json_array_append_new(tops, best);
        json_array_append_new(offsets, json_integer((json_int_t)*offset));
        *offset += text ? characters(text) : 0;
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values,
                     "top_logprobs", tops, "text_offset", offsets);
}

static json_t *body_of(const completion *c, json_t *choices) {
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", c->id, "object", "text_completion",
                     "created", c->created, "model", pith_json_text(c->model, strlen(c->model)),
                     "choices", choices);
}

static json_t *choice_of(completion *c, int index, json_t *text, json_t *logprobs,
                         const char *finish) {
    json_t *shown = logprobs ? old_logprobs(logprobs, &c->offsets[index]) : json_null();
    return json_pack("{s:i, s:o, s:o, s:s?}", "index", index, "text", text, "logprobs", shown,
                     "finish_reason", finish);
}

static void begin(completion *c, int choice) {
    if (!c->has_begun) pith_exchange_stream_begin(c->exchange, "text/event-stream");
    c->has_begun = true;
    if (!c->echo || c->fold.choices[choice].text.size > 0) return;
    pith_buffer_append_text(&c->fold.choices[choice].text, c->echo); /* sent once */
    pith_exchange_stream_event(
        c->exchange, NULL,
        body_of(c, json_pack("[o]", choice_of(c, choice, json_string(c->echo), NULL, NULL))));
}

static void on_event(void *user, const pith_job_event *event) {
    completion *c = user;
    if (!c->stream) {
        pith_fold_add(&c->fold, event);
        return;
    }
    if (event->kind != PITH_JOB_TEXT && event->kind != PITH_JOB_FINISH) return;
    bool is_last = event->kind == PITH_JOB_FINISH;
    begin(c, event->choice);
    json_t *text = is_last ? json_string("") : pith_json_text(event->text.data, event->text.size);
    json_t *choice = choice_of(c, event->choice, text, event->logprobs,
                               is_last ? pith_openai_finish(event->finish) : NULL);
    pith_exchange_stream_event(c->exchange, NULL, body_of(c, json_pack("[o]", choice)));
}

static void reply_whole(completion *c, const pith_job_account *account) {
    json_t *choices = json_array();
    for (int i = 0; i < c->fold.n; i++) {
        pith_fold_choice *made = &c->fold.choices[i];
        pith_buffer text = {0};
        pith_buffer_append_text(&text, c->echo ? c->echo : "");
        pith_buffer_append(&text, made->text.data ? made->text.data : "", made->text.size);
        json_array_append_new(choices, choice_of(c, i, pith_json_text(text.data, text.size),
                                                 made->logprobs, pith_openai_finish(made->finish)));
        pith_buffer_deinit(&text);
    }
    json_t *body = body_of(c, choices);
    json_object_set_new(body, "usage", pith_job_usage(account));
    json_object_set_new(body, "timings", pith_job_timings(account));
    json_object_set_new(body, "pith", pith_routing_describe(c->exchange));
    pith_exchange_reply(c->exchange, 200, c->fold.failed ? (json_decref(body), NULL) : body);
}

static void on_end(void *user, const pith_error *error, const pith_job_account *account) {
    completion *c = user;
    if (error) {
        pith_openai_end_failed(c->exchange, c->has_begun, error);
    } else if (c->stream) {
        json_t *last = body_of(c, json_array());
        if (c->include_usage) json_object_set_new(last, "usage", pith_job_usage(account));
        json_object_set_new(last, "timings", pith_job_timings(account));
        json_object_set_new(last, "pith", pith_routing_describe(c->exchange));
        pith_exchange_stream_event(c->exchange, NULL, last);
        pith_exchange_stream_write(c->exchange, "data: [DONE]\n\n", 14);
        pith_exchange_stream_end(c->exchange);
    } else {
        reply_whole(c, account);
    }
    completion_free(c);
}

static bool is_gone(void *user) {
    return pith_exchange_is_gone(((completion *)user)->exchange);
}

/* ---- The request ---- */

typedef struct completion_fields {
    pith_job_request job;
    const char *model;
    bool stream, include_usage, echo;
} completion_fields;

/* Ids are checked against the vocabulary when the job is made. */
static void read_prompt_ids(pith_fields *f, json_t *list, pith_job_request *job) {
    json_t *one;
    size_t i, n = json_array_size(list);
    job->ids = pith_alloc_array(n, sizeof *job->ids);
    if (!job->ids) return;
    json_array_foreach(list, i, one) {
        json_int_t id = json_integer_value(one);
        if (!json_is_integer(one) || id < 0 || id > INT32_MAX) {
            pith_fields_wrong(f, "prompt", "invalid_value",
                              "must be a text, or one list of token ids");
            break;
        }
        job->ids[job->n_ids++] = (int32_t)id;
    }
}

static void read_prompt(pith_fields *f, pith_job_request *job) {
    if (!pith_fields_require(f, "prompt")) return;
    json_t *prompt = pith_fields_any(f, "prompt");
    if (json_is_array(prompt) && json_array_size(prompt) == 1 &&
        json_is_string(json_array_get(prompt, 0)))
        prompt = json_array_get(prompt, 0);
    if (json_is_string(prompt)) {
        job->text = json_string_value(prompt);
        job->text_size = json_string_length(prompt);
    } else if (json_is_array(prompt)) {
        read_prompt_ids(f, prompt, job);
    } else {
        pith_fields_wrong(f, "prompt", "invalid_type", "must be a text, or one list of token ids");
    }
}

static void read_stream(pith_fields *f, completion_fields *out) {
    json_t *options = NULL;
    pith_fields in;
    pith_fields_flag(f, "stream", &out->stream);
    if (!pith_fields_object(f, "stream_options", &options)) return;
    pith_fields_init(&in, options, "stream_options");
    pith_fields_flag(&in, "include_usage", &out->include_usage);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

static bool read_request(pith_fields *f, pith_server *server, completion_fields *out) {
    int64_t n = 0;
    pith_job_request *job = &out->job;
    pith_fields_text(f, "model", &out->model);
    read_prompt(f, job);
    pith_job_read_sampling(f, server, job);
    read_stream(f, out);
    job->max_tokens = 16; /* as the API has it */
    if (pith_fields_int(f, "max_tokens", 1, 1 << 24, &n)) job->max_tokens = (int32_t)n;
    if (pith_fields_int(f, "logprobs", 0, PITH_LOGPROBS_MAX, &n)) {
        job->wants_logprobs = true;
        job->n_logprobs = (int32_t)n;
    }
    pith_fields_flag(f, "echo", &out->echo);
    if (out->echo && (job->wants_logprobs || !job->text))
        pith_fields_wrong(f, "echo", "unsupported", "is not supported with logprobs or token ids");
    pith_fields_flag(f, "ignore_eos", &job->ignore_end);
    n = job->n;
    if (pith_fields_int(f, "best_of", 1, PITH_JOB_MAX_CHOICES, &n) && n != (job->n ? job->n : 1))
        pith_fields_wrong(f, "best_of", "unsupported", "must be n");
    pith_openai_read_harmless(f);
    return pith_fields_close(f);
}

static completion *completion_new(pith_exchange *exchange, const completion_fields *fields,
                                  const char *model) {
    completion *c = pith_alloc_zero(1, sizeof *c);
    if (!c) return NULL;
    bool ok = (c->model = pith_copy_text(model, strlen(model))) != NULL;
    if (fields->echo)
        ok = (c->echo = pith_copy_text(fields->job.text, fields->job.text_size)) && ok;
    if (!ok) {
        pith_free(c->model);
        pith_free(c->echo);
        pith_free(c);
        return NULL;
    }
    pith_exchange_retain(exchange);
    c->exchange = exchange;
    c->created = pith_calendar_now();
    c->stream = fields->stream;
    c->include_usage = fields->include_usage;
    pith_server_name_reply(pith_exchange_server(exchange), "cmpl-", c->id);
    return c;
}

/* The ids are the job's afterwards. */
static void start(pith_exchange *exchange, completion_fields *fields) {
    pith_served *served = NULL;
    pith_models *models = pith_exchange_server(exchange)->models;
    fields->job.route_limit = pith_routing_token_limit(exchange);
    if (pith_models_lease(models, fields->model, exchange, &served) != PITH_LEASE_OK) return;
    pith_job_refusal why = {.error = {.status = PITH_OK}};
    completion *c = completion_new(exchange, fields, pith_served_name(served));
    pith_job_listener listener = {on_event, on_end, is_gone, c};
    bool ok = c != NULL;
    if (!ok) pith_fail_memory(&why.error, "a request", sizeof *c);
    if (ok) {
        ok = pith_job_start(served, &fields->job, &listener, &why);
        fields->job.ids = NULL;
    }
    if (!ok) pith_job_refuse(exchange, &why);
    if (!ok && c) completion_free(c);
    pith_models_give_back(served);
}

void pith_handle_completions(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields fields;
    completion_fields *request = pith_alloc_zero(1, sizeof *request);
    pith_fields_init(&fields, body, "");
    if (!request)
        pith_exchange_reply(exchange, 500, NULL);
    else if (read_request(&fields, pith_exchange_server(exchange), request))
        start(exchange, request);
    else
        pith_fields_refuse(&fields, exchange);
    if (request) pith_free(request->job.ids);
    pith_free(request);
    json_decref(body);
}
