/* SPDX-License-Identifier: Apache-2.0
 * One reply of `pith run`: its text while it is made, and what is told of it afterwards. Most of it
 * serves run_choices.c too. Read next: src/api/api_engine.c (pith_generate), then
 * src/engine/reply.c. */
#include "pith/run_parts.h"

#include "pith/record.h"

#include <errno.h>
#include <string.h>

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    pith_run_output *output = user;
    pith_cli_progress_end(&output->progress);
    if (id >= 0) pith_buffer_append(&output->ids, (const char *)&id, sizeof id);
    if (output->message) {
        pith_message_part part;
        output->lacks_memory =
            pith_message_push(output->message, id, text, size, &part, NULL) != PITH_OK;
        if (output->lacks_memory) return 1;
        text = part.content;
        size = part.content_size;
    }
    pith_buffer_append(&output->text, text, size);
    if (!output->streaming) return 0;
    if (fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0) return 0;
    output->failure = errno ? errno : EIO;
    return output->failure;
}

/* The end of a message: what it held back. */
static bool finish_message(pith_run_output *output) {
    pith_message_part part;
    if (!output->message) return true;
    if (output->lacks_memory || pith_message_finish(output->message, &part, NULL) != PITH_OK)
        return false;
    pith_buffer_append(&output->text, part.content, part.content_size);
    if (output->streaming) fwrite(part.content, 1, part.content_size, stdout);
    return true;
}

static void on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    pith_run_output *output = user;
    pith_cli_add_logprobs(output->logprobs, output->model, (pith_logprob){id, logprob}, top, n_top);
}

void pith_run_output_open(const pith_run_options *o, const pith_run_state *s,
                          pith_run_output *output) {
    output->progress = pith_cli_progress_start("reading the prompt");
    output->streaming = !o->json && o->n_choices < 2;
    output->model = s->model;
    output->message = o->tools.message;
    if (o->n_logprobs >= 0) output->logprobs = json_array();
}

void pith_run_output_close(pith_run_output *output) {
    pith_buffer_deinit(&output->text);
    pith_buffer_deinit(&output->ids);
    json_decref(output->logprobs);
}

pith_generate_options pith_run_generate_options(const pith_run_options *o, const pith_run_state *s,
                                                pith_run_output *output) {
    bool ours = o->overflow == PITH_RUN_SUMMARISE; /* the prompt was shortened before */
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = o->max_tokens,
                                     .stops = &o->stop,
                                     .n_stops = o->stop ? 1 : 0,
                                     .ignore_end = o->ignore_end,
                                     .show_control = o->show_control || output->message,
                                     .on_text = on_text,
                                     .user = output,
                                     .on_prompt = pith_cli_progress_step,
                                     .prompt_user = &output->progress,
                                     .draft = o->draft.mode,
                                     .draft_session = o->draft.session,
                                     .overflow =
                                         ours ? PITH_OVERFLOW_ERROR : (pith_overflow)o->overflow,
                                     .n_keep = ours ? 0 : o->n_keep,
                                     .grammar = s->grammar,
                                     .cache_at = &s->shared,
                                     .n_cache_at = s->shared > 0 ? 1 : 0,
                                     .banned = o->sampler.banned.items,
                                     .n_banned = o->sampler.banned.n};
    if (o->n_logprobs >= 0) {
        options.on_logprobs = on_logprobs;
        options.logprobs_user = output;
        options.n_logprobs = o->n_logprobs;
    }
    return options;
}

int pith_run_check(const pith_run_state *s, const pith_run_output *output, pith_status status,
                   const pith_error *error) {
    int32_t n_ctx = pith_engine_describe(s->engine).n_ctx;
    if (status == PITH_ERROR_LIMIT && s->n_ids > (size_t)n_ctx)
        return pith_cli_fail_text(
            "the prompt has %zu tokens, the context holds %d: shorten it or give a larger --ctx",
            s->n_ids, (int)n_ctx);
    if (status != PITH_OK) return pith_cli_fail(error);
    if (output->failure)
        return pith_cli_fail_text("standard output could not be written: %s",
                                  strerror(output->failure));
    if (output->text.failed || output->ids.failed)
        return pith_cli_fail_text("out of memory for the reply's text");
    return -1;
}

void pith_run_print_notes(const pith_run_options *o, const pith_run_state *s,
                          const pith_generation *made) {
    char text[160];
    if (o->stats) pith_cli_print_stats(made);
    pith_cli_cache_note(s->engine);
    pith_cli_shorten_describe(&s->shorter, text, sizeof text);
    if (text[0]) fprintf(stderr, "note: %s\n", text);
    if (made->n_dropped > 0)
        fprintf(stderr, "note: %zu tokens were dropped to stay within the context of %d\n",
                made->n_dropped, (int)pith_engine_describe(s->engine).n_ctx);
}

json_t *pith_run_reply_json(const pith_run_options *o, const pith_run_state *s,
                            const pith_run_output *output, const pith_generation *made) {
    pith_cli_reply reply = {.model = s->model,
                            .engine = s->engine,
                            .session = s->session,
                            .ids = (const int32_t *)(const void *)output->ids.data,
                            .prompt_ids = s->ids,
                            .text = {output->text.data, output->text.size},
                            .message = output->message,
                            .made = made,
                            .shorter = &s->shorter,
                            .prefer = o->model.prefer_text,
                            .logprobs = json_incref(output->logprobs)};
    return pith_cli_reply_json(&reply);
}

static void tell_loop(const pith_buffer *ids) {
    char text[160];
    const int32_t *first = (const int32_t *)(const void *)ids->data;
    pith_cli_describe_loop(first, ids->size / sizeof *first, text, sizeof text);
    if (text[0]) fprintf(stderr, "note: %s\n", text);
}

static int print_result(const pith_run_options *o, const pith_run_state *s) {
    const pith_buffer *text = &s->output.text;
    if (o->json) {
        pith_run_print_notes(o, s, &s->made);
        return pith_cli_print_json(pith_run_reply_json(o, s, &s->output, &s->made));
    }
    if (s->output.message)
        pith_cli_print_calls(s->output.message);
    else if (text->size && text->data[text->size - 1] != '\n')
        fputc('\n', stdout);
    int code = pith_cli_finish(); /* before the notes: both may go to one terminal */
    pith_run_print_notes(o, s, &s->made);
    if (s->grammar && s->made.stop == PITH_STOP_LENGTH)
        fputs("note: the reply was cut by --predict: it is not a whole text of its grammar\n",
              stderr);
    tell_loop(&s->output.ids);
    if (s->made.stop == PITH_STOP_CONTEXT)
        fprintf(stderr, "note: the context of %d tokens is full; --ctx makes it longer\n",
                (int)pith_engine_describe(s->engine).n_ctx);
    return code;
}

int pith_run_reply(const pith_run_options *o, pith_run_state *s) {
    pith_error error = {0};
    pith_run_output_open(o, s, &s->output);
    pith_generate_options options = pith_run_generate_options(o, s, &s->output);
    pith_cli_interrupt_watch(s->session);
    pith_status status =
        pith_generate(s->session, s->sampler, s->ids, s->n_ids, &options, &s->made, &error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&s->output.progress);
    int code = pith_run_check(s, &s->output, status, &error);
    if (code < 0 && !finish_message(&s->output))
        code = pith_cli_fail_text("out of memory for the reply's text");
    if (code >= 0) return code;
    if (s->made.stop == PITH_STOP_CANCELLED && s->made.n_predicted == 0)
        return pith_cli_fail_text("stopped before the first token");
    if (!o->no_record && pith_cli_record_is_for(&o->model) && !o->draft.session)
        pith_cli_record_reply(s->model, s->engine, &s->made);
    return print_result(o, s);
}
