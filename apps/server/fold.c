/* SPDX-License-Identifier: Apache-2.0
 * The whole answer: the fold of the events that a stream sends.
 * Invariant: parts keep the order in which they came, and refer to the texts by place. */
#include "base/memory.h"
#include "server/job.h"

static void add_logprobs(pith_fold *fold, pith_fold_choice *choice, json_t *tokens) {
    if (!tokens) return;
    if (!choice->logprobs) choice->logprobs = json_array();
    if (json_array_extend(choice->logprobs, tokens) != 0) fold->failed = true;
}

/* Goes on with the last part, or begins another. */
static void add_part(pith_fold *fold, pith_fold_choice *c, const pith_job_event *event,
                     size_t from) {
    bool is_call = event->kind == PITH_JOB_CALL;
    pith_fold_part *last = c->n_parts > 0 ? &c->parts[c->n_parts - 1] : NULL;
    if (event->text.size == 0 && !is_call) return;
    if (last && last->kind == event->kind && !is_call) {
        last->size += event->text.size;
        return;
    }
    if (c->n_parts == c->parts_capacity) {
        size_t capacity = c->parts_capacity * 2 + 4;
        pith_fold_part *grown = pith_realloc(c->parts, capacity * sizeof *grown);
        if (!grown) {
            fold->failed = true;
            return;
        }
        c->parts = grown;
        c->parts_capacity = capacity;
    }
    c->parts[c->n_parts++] = (pith_fold_part){event->kind, from, is_call ? 0 : event->text.size};
}

pith_span pith_fold_text(const pith_fold_choice *c, const pith_fold_part *part) {
    const pith_buffer *text = part->kind == PITH_JOB_TEXT ? &c->text : &c->reasoning;
    if (part->kind != PITH_JOB_CALL) return (pith_span){text->data + part->from, part->size};
    const json_t *call = json_array_get(c->calls, part->from);
    const char *arguments = json_string_value(json_object_get(call, "arguments"));
    return pith_span_of(arguments ? arguments : "{}");
}

const char *pith_fold_call_name(const pith_fold_choice *c, const pith_fold_part *part) {
    const char *name =
        json_string_value(json_object_get(json_array_get(c->calls, part->from), "name"));
    return name ? name : "";
}

void pith_fold_add(pith_fold *fold, const pith_job_event *event) {
    pith_fold_choice *choice = &fold->choices[event->choice];
    if (event->choice >= fold->n) fold->n = event->choice + 1;
    switch (event->kind) {
    case PITH_JOB_TEXT:
        add_part(fold, choice, event, choice->text.size);
        pith_buffer_append(&choice->text, event->text.data, event->text.size);
        add_logprobs(fold, choice, event->logprobs);
        break;
    case PITH_JOB_REASONING:
        add_part(fold, choice, event, choice->reasoning.size);
        pith_buffer_append(&choice->reasoning, event->text.data, event->text.size);
        break;
    case PITH_JOB_CALL:
        if (!choice->calls) choice->calls = json_array();
        add_part(fold, choice, event, json_array_size(choice->calls));
        if (json_array_append_new(
                choice->calls, json_pack("{s:s, s:o}", "name", event->name, "arguments",
                                         pith_json_text(event->text.data, event->text.size))) != 0)
            fold->failed = true;
        break;
    case PITH_JOB_FINISH:
        choice->finish = event->finish;
        choice->stop = event->stop;
        choice->stop_text = event->stop_text;
        break;
    case PITH_JOB_PROGRESS: break;
    }
    if (choice->text.failed || choice->reasoning.failed) fold->failed = true;
}

void pith_fold_deinit(pith_fold *fold) {
    for (int i = 0; i < PITH_JOB_MAX_CHOICES; i++) {
        pith_buffer_deinit(&fold->choices[i].text);
        pith_buffer_deinit(&fold->choices[i].reasoning);
        json_decref(fold->choices[i].logprobs);
        json_decref(fold->choices[i].calls);
        pith_free(fold->choices[i].parts);
    }
}
