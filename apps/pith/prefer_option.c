/* SPDX-License-Identifier: Apache-2.0
 * `--prefer GOAL`: asks the library what serves the goal and takes it where the user gave nothing
 * else. What was chosen, and what was kept because it was given, is told in one line, when the
 * model is known: not every one allows every KV type. */
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

/* Adds "load mmap", or "load pack as given". */
static void tell(pith_buffer *text, const char *name, const char *value, bool is_given) {
    pith_buffer_append_format(text, "%s%s %s%s", text->size ? ", " : "", name, value,
                              is_given ? " as given" : "");
}

static pith_preference choose(const pith_cli_model *values) {
    pith_cli_machine machine;
    pith_preference choice;
    pith_cli_machine_load(&machine);
    pith_prefer_choose((pith_prefer)values->prefer, &machine.probe, &choice, NULL);
    return choice;
}

int pith_cli_prefer(pith_cli_model *values, pith_cli_draft *draft) {
    if (values->prefer == PITH_PREFER_NONE) return -1;
    pith_preference choice = choose(values);
    pith_buffer text = {0};
    if (choice.load != PITH_LOAD_AUTO) {
        bool is_given = values->load != PITH_LOAD_AUTO;
        if (!is_given) values->load = (int)choice.load;
        tell(&text, "load", load_names[values->load], is_given);
    }
    if (choice.decode_threads > 0) {
        char number[16];
        bool is_given = values->n_threads > 0;
        if (!is_given) values->decode_threads = choice.decode_threads;
        snprintf(number, sizeof number, "%d",
                 (int)(is_given ? values->n_threads : choice.decode_threads));
        tell(&text, "threads for decoding", number, is_given);
    }
    if (choice.kv_type != PITH_KV_AUTO && values->kv == PITH_KV_AUTO &&
        values->precision != PITH_PRECISION_FULL) {
        values->kv = (int)choice.kv_type;
        values->kv_is_chosen = true;
    }
    if (draft && draft->source)
        tell(&text, "draft", draft->source, true);
    else if (draft)
        draft->mode = choice.draft;
    if (text.failed) return pith_cli_fail_text("out of memory");
    snprintf(values->prefer_text, sizeof values->prefer_text, "%s", text.size ? text.data : "");
    pith_buffer_deinit(&text);
    return -1;
}

bool pith_cli_prefer_check(pith_cli_model *values, const pith_model *model) {
    pith_engine_options options = {
        .size = sizeof options, .n_ctx = values->n_ctx, .kv_type = (pith_kv_type)values->kv};
    uint64_t bytes = 0;
    pith_error error;
    if (!values->kv_is_chosen) return false;
    pith_status status = pith_engine_bytes(model, &options, &bytes, &error);
    if (status != PITH_ERROR_UNSUPPORTED) return false; /* the engine tells what else is wrong */
    values->kv = PITH_KV_AUTO;
    return true;
}

void pith_cli_prefer_tell(pith_cli_model *values, const pith_model *model) {
    pith_buffer text = {0};
    if (values->prefer == PITH_PREFER_NONE) return;
    pith_preference choice = choose(values);
    bool is_refused = pith_cli_prefer_check(values, model);
    pith_buffer_append_text(&text, values->prefer_text);
    if (choice.kv_type != PITH_KV_AUTO && !is_refused)
        tell(&text, "kv", values->kv ? kv_names[values->kv] : "f32", !values->kv_is_chosen);
    if (is_refused) tell(&text, "kv", "f16, as the model allows no int8", false);
    snprintf(values->prefer_text, sizeof values->prefer_text, "prefer %s: %s (%s)",
             goal_names[values->prefer], text.size && !text.failed ? text.data : "the defaults",
             choice.why);
    fprintf(stderr, "note: %s\n", values->prefer_text);
    pith_buffer_deinit(&text);
}
