/* SPDX-License-Identifier: Apache-2.0
 * The whole answer: the fold of the events that a stream sends.
 * Invariant: parts keep the order in which they came, and refer to the texts by place. */
#include "base/memory.h"
#include "server/job.h"

/* Room for one part more. */
static bool reserve_part(pith_fold_choice *c) {
    if (c->n_parts < c->parts_capacity) return true;
    size_t capacity = c->parts_capacity * 2 + 4;
    pith_fold_part *grown = pith_realloc(c->parts, capacity * sizeof *grown);
    if (!grown) return false;
    c->parts = grown;
    c->parts_capacity = capacity;
    return true;
}

/* Text goes on with the last part, or begins another. The part counts once its text is there. */
static bool add_text(pith_fold_choice *c, pith_job_event_kind kind, pith_span more) {
    pith_buffer *text = kind == PITH_JOB_TEXT ? &c->text : &c->reasoning;
    size_t from = text->size;
    if (more.size == 0) return true;
    if (!reserve_part(c)) return false;
    pith_buffer_append(text, more.data, more.size);
    if (text->failed) return false;
    pith_fold_part *last = c->n_parts > 0 ? &c->parts[c->n_parts - 1] : NULL;
    if (last && last->kind == kind)
        last->size += more.size;
    else
        c->parts[c->n_parts++] = (pith_fold_part){.kind = kind, .from = from, .size = more.size};
    return true;
}

/* They are those of the text that has just come: of the last part. */
static bool add_logprobs(pith_fold_choice *c, json_t *tokens) {
    if (!tokens) return true;
    if (!c->logprobs) c->logprobs = json_array();
    size_t from = json_array_size(c->logprobs);
    if (json_array_extend(c->logprobs, tokens) != 0) return false;
    pith_fold_part *last = c->n_parts > 0 ? &c->parts[c->n_parts - 1] : NULL;
    if (!last || last->kind != PITH_JOB_TEXT) return true;
    if (last->n_logprobs == 0) last->from_logprobs = from;
    last->n_logprobs = from + json_array_size(tokens) - last->from_logprobs;
    return true;
}

static bool add_call(pith_fold_choice *c, const pith_job_event *event) {
    if (!c->calls) c->calls = json_array();
    json_t *call = json_pack("{s:s, s:o}", "name", event->name, "arguments",
                             pith_json_text(event->text.data, event->text.size));
    if (!reserve_part(c) || !call) {
        json_decref(call);
        return false;
    }
    if (json_array_append_new(c->calls, call) != 0) return false;
    c->parts[c->n_parts++] =
        (pith_fold_part){.kind = PITH_JOB_CALL, .from = json_array_size(c->calls) - 1};
    return true;
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
        if (!add_text(choice, event->kind, event->text) || !add_logprobs(choice, event->logprobs))
            fold->failed = true;
        break;
    case PITH_JOB_REASONING:
        if (!add_text(choice, event->kind, event->text)) fold->failed = true;
        break;
    case PITH_JOB_CALL:
        if (!add_call(choice, event)) fold->failed = true;
        break;
    case PITH_JOB_FINISH:
        choice->finish = event->finish;
        choice->stop = event->stop;
        choice->stop_text = event->stop_text;
        break;
    case PITH_JOB_PROGRESS:
    case PITH_JOB_SILENCE: break;
    }
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
