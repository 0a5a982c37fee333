/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/completions, as OpenAI's API has it: a text, or token ids, is continued as it stands.
 * Invariant: as in openai_chat.c; log-probabilities have the shape of this older route. */
#include "server/openai.h"

#include "base/memory.h"

#include <string.h>

typedef struct completion_request {
    pith_answer_request request;
    bool echo;
} completion_request;

typedef struct completion {
    pith_answer answer;
    char *echo; /* NULL: not asked for */
    bool has_echo[PITH_JOB_MAX_CHOICES];
    size_t offsets[PITH_JOB_MAX_CHOICES]; /* characters sent of each choice */
} completion;

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

static json_t *choice_of(completion *c, int index, json_t *text, json_t *logprobs,
                         const char *finish) {
    json_t *shown = logprobs ? old_logprobs(logprobs, &c->offsets[index]) : json_null();
    return json_pack("{s:i, s:o, s:o, s:s?}", "index", index, "text", text, "logprobs", shown,
                     "finish_reason", finish);
}

static void send_choice(pith_answer *a, json_t *choice, bool is_last) {
    json_t *chunk = pith_openai_object(a, "text_completion", json_pack("[o]", choice));
    if (is_last)
        pith_openai_send_finish(a, chunk);
    else
        pith_exchange_stream_event(a->exchange, NULL, chunk);
}

static void begin(completion *c, int choice) {
    pith_answer_begin(&c->answer);
    if (!c->echo || c->has_echo[choice]) return;
    c->has_echo[choice] = true;
    json_t *text = pith_json_text(c->echo, strlen(c->echo));
    send_choice(&c->answer, choice_of(c, choice, text, NULL, NULL), false);
}

static void stream_event(pith_answer *a, const pith_job_event *event) {
    completion *c = (completion *)a;
    if (event->kind != PITH_JOB_TEXT && event->kind != PITH_JOB_FINISH) return;
    bool is_last = event->kind == PITH_JOB_FINISH;
    begin(c, event->choice);
    json_t *text = is_last ? json_string("") : pith_json_text(event->text.data, event->text.size);
    send_choice(a,
                choice_of(c, event->choice, text, event->logprobs,
                          is_last ? pith_openai_finish(event->finish) : NULL),
                is_last);
}

static void stream_end(pith_answer *a, const pith_job_account *account) {
    pith_openai_stream_end(a, "text_completion", account);
}

static json_t *whole(pith_answer *a, const pith_job_account *account) {
    completion *c = (completion *)a;
    json_t *choices = json_array();
    for (int i = 0; i < a->fold.n; i++) {
        pith_fold_choice *made = &a->fold.choices[i];
        pith_buffer text = {0};
        pith_buffer_append_text(&text, c->echo ? c->echo : "");
        pith_buffer_append(&text, made->text.data ? made->text.data : "", made->text.size);
        json_array_append_new(choices,
                              choice_of(c, i, pith_json_text(text.data ? text.data : "", text.size),
                                        made->logprobs, pith_openai_finish(made->finish)));
        pith_buffer_deinit(&text);
    }
    return pith_openai_whole(a, "text_completion", choices, account);
}

static bool init(pith_answer *a, pith_answer_request *request) {
    completion *c = (completion *)a;
    if (!((const completion_request *)request)->echo) return true;
    c->echo = pith_copy_text(request->job.text, request->job.text_size);
    return c->echo != NULL;
}

static void deinit(pith_answer *a) {
    pith_free(((completion *)a)->echo);
}

/* ---- The request ---- */

/* Ids are checked against the vocabulary when the job is made. */
static void read_prompt_ids(pith_fields *f, json_t *list, pith_job_request *job) {
    json_t *one;
    size_t i, n = json_array_size(list);
    job->ids = pith_alloc_array(n, sizeof *job->ids);
    if (!job->ids) {
        pith_fields_short(f);
        return;
    }
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

static bool read(pith_fields *f, pith_server *server, pith_answer_request *out) {
    int64_t n = 0;
    pith_job_request *job = &out->job;
    bool echo = false;
    pith_fields_text(f, "model", &out->model);
    read_prompt(f, job);
    pith_job_read_sampling(f, server, job);
    pith_openai_read_stream(f, out);
    job->max_tokens = 16; /* as the API has it */
    if (pith_fields_int(f, "max_tokens", 1, 1 << 24, &n)) job->max_tokens = (int32_t)n;
    if (pith_fields_int(f, "logprobs", 0, PITH_LOGPROBS_MAX, &n)) {
        job->wants_logprobs = true;
        job->n_logprobs = (int32_t)n;
    }
    pith_fields_flag(f, "echo", &echo);
    ((completion_request *)out)->echo = echo;
    if (echo && (job->wants_logprobs || !job->text))
        pith_fields_wrong(f, "echo", "unsupported", "is not supported with logprobs or token ids");
    pith_fields_flag(f, "ignore_eos", &job->ignore_end);
    n = job->n;
    if (pith_fields_int(f, "best_of", 1, PITH_JOB_MAX_CHOICES, &n) && n != (job->n ? job->n : 1))
        pith_fields_wrong(f, "best_of", "unsupported", "must be n");
    pith_openai_read_harmless(f, job);
    pith_openai_read_route(f);
    return pith_fields_close(f);
}

void pith_handle_completions(pith_exchange *exchange) {
    static const pith_answer_protocol protocol = {.request_bytes = sizeof(completion_request),
                                                  .answer_bytes = sizeof(completion),
                                                  .id_prefix = "cmpl-",
                                                  .stream_type = "text/event-stream",
                                                  .read = read,
                                                  .init = init,
                                                  .deinit = deinit,
                                                  .stream_event = stream_event,
                                                  .stream_end = stream_end,
                                                  .whole = whole};
    pith_answer_handle(exchange, &protocol);
}
