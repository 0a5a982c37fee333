/* SPDX-License-Identifier: Apache-2.0
 * `--prefer GOAL`: asks the library what serves the goal and takes it where the user gave nothing
 * else. What was chosen, and what was kept because it was given, is told in one line. */
#include "pith/machine_record.h"
#include "pith/reply_option.h"

#include <string.h>

static const char *const load_names[] = {
    [PITH_LOAD_AUTO] = "auto", [PITH_LOAD_PACK] = "pack", [PITH_LOAD_MMAP] = "mmap"};
static const char *const kv_names[] = {
    [PITH_KV_AUTO] = "auto", [PITH_KV_F32] = "f32", [PITH_KV_F16] = "f16", [PITH_KV_INT8] = "int8"};
static const char *const goal_names[] = {[PITH_PREFER_TTFT] = "ttft",
                                         [PITH_PREFER_TPS] = "tps",
                                         [PITH_PREFER_MEMORY] = "memory",
                                         [PITH_PREFER_BATTERY] = "battery"};

/* "kv int8" where it was chosen, "kv f16 as given" where it was not. */
static void tell(pith_buffer *text, const char *name, const char *value, bool is_given) {
    pith_buffer_append_format(text, "%s%s %s%s", text->size ? ", " : "", name, value,
                              is_given ? " as given" : "");
}

static void tell_number(pith_buffer *text, const char *name, int32_t value, bool is_given) {
    char number[16];
    snprintf(number, sizeof number, "%d", (int)value);
    tell(text, name, number, is_given);
}

/* Takes what was chosen and tells it. */
static void take(const pith_preference *c, pith_cli_model *v, pith_buffer *text) {
    if (c->load != PITH_LOAD_AUTO) {
        bool is_given = v->load != PITH_LOAD_AUTO;
        if (!is_given) v->load = (int)c->load;
        tell(text, "load", load_names[v->load], is_given);
    }
    if (c->kv_type != PITH_KV_AUTO) {
        bool is_given = v->kv != PITH_KV_AUTO || v->precision == PITH_PRECISION_FULL;
        if (!is_given) v->kv = (int)c->kv_type;
        tell(text, "kv", v->kv ? kv_names[v->kv] : "f32", is_given);
    }
    if (c->decode_threads > 0) {
        bool is_given = v->n_threads > 0;
        if (!is_given) v->decode_threads = c->decode_threads;
        tell_number(text, "threads for decoding", is_given ? v->n_threads : v->decode_threads,
                    is_given);
    }
}

int pith_cli_prefer(pith_cli_model *values, pith_cli_draft *draft) {
    pith_error error = {0};
    pith_cli_machine machine;
    pith_preference choice;
    pith_buffer text = {0};
    if (values->prefer == PITH_PREFER_NONE) return -1;
    if (values->prefer == PITH_PREFER_BATTERY)
        pith_cli_machine_load(&machine);
    else
        machine.probe.n = 0;
    if (pith_prefer_choose((pith_prefer)values->prefer, &machine.probe, &choice, &error) != PITH_OK)
        return pith_cli_fail(&error);
    take(&choice, values, &text);
    if (draft && draft->source) tell(&text, "draft", draft->source, true);
    if (draft && !draft->source) draft->mode = choice.draft;
    if (text.failed) return pith_cli_fail_text("out of memory");
    snprintf(values->prefer_text, sizeof values->prefer_text, "prefer %s: %s (%s)",
             goal_names[values->prefer], text.size ? text.data : "the defaults", choice.why);
    fprintf(stderr, "note: %s\n", values->prefer_text);
    pith_buffer_deinit(&text);
    return -1;
}
