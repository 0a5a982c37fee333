/* SPDX-License-Identifier: Apache-2.0
 * What --json and --stats tell about one reply. Scripts rely on these field names: more may
 * follow, none of them changes. */
#include "base/clock.h"
#include "pith/reply_option.h"

#include <math.h>
#include <string.h>

static const char *stop_text(pith_stop stop) {
    static const char *const names[] = {"end",      "length",    "context", "text",
                                        "callback", "cancelled", "deadline"};
    return names[stop];
}

static json_t *timings(const pith_generation *made) {
    return json_pack("{s:I, s:I, s:f, s:f, s:I, s:f, s:I, s:I, s:I}", "prompt_n",
                     (json_int_t)(made->n_prompt - made->n_cached), "cache_n",
                     (json_int_t)made->n_cached, "prompt_ms", made->prompt_ms, "ttft_ms",
                     made->ttft_ms, "predicted_n", (json_int_t)made->n_predicted, "predicted_ms",
                     made->predicted_ms, "draft_n", (json_int_t)made->n_drafted, "draft_accepted_n",
                     (json_int_t)made->n_draft_accepted, "dropped_n", (json_int_t)made->n_dropped);
}

/* What was assumed while loading: one item a line. */
static json_t *note_list(const char *notes, const char *cache_note, const pith_generation *made) {
    json_t *list = json_array();
    if (cache_note[0]) json_array_append_new(list, pith_cli_json_string(cache_note));
    if (made->n_dropped > 0)
        json_array_append_new(list,
                              json_sprintf("%d tokens were dropped to stay within the context",
                                           (int)made->n_dropped));
    for (const char *at = notes ? notes : ""; *at;) {
        size_t size = strcspn(at, "\n");
        json_array_append_new(list, pith_cli_json_text(at, size));
        at += size + (at[size] == '\n');
    }
    return list;
}

static json_t *logprob_json(const pith_model *model, pith_logprob one) {
    size_t size = 0;
    const char *text = pith_token_text(model, one.id, &size);
    json_t *number = one.logprob > -HUGE_VAL ? json_real(one.logprob) : json_null();
    return json_pack("{s:i, s:o, s:o}", "id", one.id, "text",
                     pith_cli_json_text(text ? text : "", size), "logprob", number);
}

void pith_cli_add_logprobs(json_t *list, const pith_model *model, pith_logprob own,
                           const pith_logprob *top, size_t n_top) {
    json_t *token = logprob_json(model, own), *likeliest = json_array();
    for (size_t i = 0; i < n_top; i++)
        json_array_append_new(likeliest, logprob_json(model, top[i]));
    json_object_set_new(token, "top", likeliest);
    json_array_append_new(list, token);
}

json_t *pith_cli_reply_json(const pith_cli_reply *reply) {
    const pith_generation *made = reply->made;
    pith_engine_info engine = pith_engine_describe(reply->engine);
    json_t *notes = note_list(pith_model_describe(reply->model).notes, engine.cache_note, made);
    pith_cli_note_adapters(reply->session, notes);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:s, s:s, s:s, s:I, s:o}", "text",
        pith_cli_json_text(reply->text.data ? reply->text.data : "", reply->text.size), "ids",
        pith_cli_json_ids(reply->ids, made->n_predicted), "prompt_ids",
        pith_cli_json_ids(reply->prompt_ids, made->n_prompt), "stop_reason", stop_text(made->stop),
        "timings", timings(made), "cache", pith_cache_source_text(made->cache_source), "cache_miss",
        pith_cache_miss_text(made->cache_miss), "backend", engine.backend, "peak_bytes",
        (json_int_t)pith_memory_peak(), "notes", notes);
    if (reply->message) {
        size_t size = 0;
        const char *thought = pith_message_reasoning(reply->message, &size);
        if (size > 0) json_object_set_new(json, "reasoning", pith_cli_json_text(thought, size));
        json_object_set_new(json, "tool_calls", pith_cli_tool_calls(reply->message));
    }
    if (reply->logprobs) json_object_set_new(json, "logprobs", reply->logprobs);
    return json;
}

static double per_second(size_t n, double ms) {
    return ms > 0 ? (double)n / ms * 1e3 : 0;
}

void pith_cli_print_stats(const pith_generation *made) {
    size_t n_read = made->n_prompt - made->n_cached;
    size_t n_after_first = made->n_predicted > 0 ? made->n_predicted - 1 : 0;
    fprintf(
        stderr,
        "prompt %zu tokens, %zu of them already read%s, %.0f ms (%.1f tok/s); first token after "
        "%.0f ms; %zu tokens made at %.1f tok/s\n",
        made->n_prompt, made->n_cached, made->cache_source == PITH_CACHE_DISK ? " (from disk)" : "",
        made->prompt_ms, per_second(n_read, made->prompt_ms), made->ttft_ms, made->n_predicted,
        per_second(n_after_first, made->predicted_ms));
    if (made->cache_miss > PITH_CACHE_MISS_OFF)
        fprintf(stderr, "nothing came from disk: %s\n", pith_cache_miss_text(made->cache_miss));
}
