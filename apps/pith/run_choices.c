/* SPDX-License-Identifier: Apache-2.0
 * `pith run --n N`: N replies to one prompt, made together. Each has a session and a sampler of its
 * own, with the seeds seed, seed + 1, ...; the first reads the prompt, the others share what it has
 * read. With --exact each is the reply that its seed gives alone.
 * Ctrl-C stops all of them and keeps what was made. */
#include "pith/run_parts.h"

#include "base/memory.h"

#include <inttypes.h>

typedef struct choice {
    pith_session *session; /* the first one's is the state's */
    pith_sampler *sampler;
    pith_reply *reply;
    pith_run_output output;
    pith_generation made;
} choice;

static uint64_t seed_of(const pith_run_options *o, size_t index) {
    return o->sampler.options.seed + index;
}

static pith_status begin(const pith_run_options *o, pith_run_state *s, choice *c, size_t index,
                         pith_error *error) {
    pith_status status = PITH_OK;
    c->session = s->session;
    if (index > 0) status = pith_session_fork(s->session, 0, &c->session, error);
    if (status == PITH_OK)
        status = pith_sampler_clone(s->sampler, seed_of(o, index), &c->sampler, error);
    if (status != PITH_OK) return status;
    pith_run_output_open(o, s, &c->output);
    c->output.progress.quiet = index > 0;
    pith_generate_options options = pith_run_generate_options(o, s, &c->output);
    return pith_reply_new(c->session, c->sampler, s->ids, s->n_ids, &options, &c->reply, error);
}

/* Steps until all of the replies have a token, or all are done. */
static pith_status step(const pith_run_state *s, const choice *first, bool to_end,
                        pith_error *error) {
    size_t n_running = 1;
    pith_generation made = {0};
    pith_status status = PITH_OK;
    while (status == PITH_OK && n_running > 0 && (to_end || made.n_predicted == 0)) {
        status = pith_engine_step(s->engine, &n_running, error);
        if (status == PITH_OK && !to_end) status = pith_reply_result(first->reply, &made, error);
    }
    return status;
}

/* The first reads the prompt, then all go on together. Exit code, or -1. */
static int make(const pith_run_options *o, pith_run_state *s, choice *choices) {
    pith_session *sessions[PITH_RUN_MAX_CHOICES];
    pith_error error = {0};
    size_t n = (size_t)o->n_choices, n_begun = 0;
    pith_status status = PITH_OK;
    for (; n_begun < n && status == PITH_OK; n_begun++) {
        status = begin(o, s, &choices[n_begun], n_begun, &error);
        sessions[n_begun] = choices[n_begun].session;
        if (status == PITH_OK) pith_cli_interrupt_watch_all(sessions, n_begun + 1);
        if (status == PITH_OK && n_begun == 0) status = step(s, choices, false, &error);
    }
    if (status == PITH_OK) status = step(s, choices, true, &error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&choices[0].output.progress);
    int code = pith_run_check(s, &choices[0].output, status, &error);
    for (size_t i = 0; i < n && code < 0; i++) {
        status = pith_reply_result(choices[i].reply, &choices[i].made, &error);
        code = pith_run_check(s, &choices[i].output, status, &error);
    }
    return code;
}

static void print_text(const pith_run_options *o, const choice *choices) {
    for (size_t i = 0; i < (size_t)o->n_choices; i++) {
        const pith_buffer *text = &choices[i].output.text;
        printf("--- %zu of %d, seed %" PRIu64 "\n", i + 1, (int)o->n_choices, seed_of(o, i));
        if (text->size) fwrite(text->data, 1, text->size, stdout);
        if (!text->size || text->data[text->size - 1] != '\n') fputc('\n', stdout);
    }
}

/* The object of one reply, the first one's, with all of them as "choices". */
static json_t *all_json(const pith_run_options *o, const pith_run_state *s, choice *choices) {
    json_t *json = pith_run_reply_json(o, s, &choices[0].output, &choices[0].made);
    json_t *list = json_array();
    for (size_t i = 0; i < (size_t)o->n_choices; i++) {
        choice *c = &choices[i];
        json_t *one =
            pith_cli_choice_json((pith_span){c->output.text.data, c->output.text.size},
                                 (const int32_t *)(const void *)c->output.ids.data, &c->made);
        json_object_set_new(one, "index", json_integer((json_int_t)i));
        json_object_set_new(one, "seed", json_integer((json_int_t)seed_of(o, i)));
        if (c->output.logprobs) json_object_set(one, "logprobs", c->output.logprobs);
        json_array_append_new(list, one);
    }
    json_object_set_new(json, "choices", list);
    return json;
}

static void release(choice *choices, size_t n) {
    for (size_t i = 0; i < n; i++) {
        pith_reply_free(choices[i].reply);
        pith_sampler_free(choices[i].sampler);
        if (i > 0) pith_session_free(choices[i].session);
        pith_run_output_close(&choices[i].output);
    }
    pith_free(choices);
}

int pith_run_choices(const pith_run_options *o, pith_run_state *s) {
    size_t n = (size_t)o->n_choices;
    choice *choices = pith_alloc_zero(n, sizeof *choices);
    if (!choices) return pith_cli_fail_text("out of memory");
    int code = make(o, s, choices);
    if (code < 0) pith_run_print_notes(o, s, &choices[0].made);
    if (code < 0 && o->json) {
        code = pith_cli_print_json(all_json(o, s, choices));
    } else if (code < 0) {
        print_text(o, choices);
        code = pith_cli_finish();
    }
    release(choices, n);
    return code;
}
