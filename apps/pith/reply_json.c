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

static void set_number(json_t *object, const char *name, size_t n) {
    json_object_set_new(object, name, json_integer((json_int_t)n));
}

static json_t *timings(const pith_cli_reply *reply) {
    const pith_generation *made = reply->made;
    const pith_conversation_info none = {0}, *shorter = reply->shorter ? reply->shorter : &none;
    size_t n_adapters = 0;
    while (pith_session_adapter_at(reply->session, n_adapters, NULL, NULL)) n_adapters++;
    json_t *json =
        json_pack("{s:f, s:f, s:f, s:f}", "prompt_ms", made->prompt_ms, "ttft_ms", made->ttft_ms,
                  "predicted_ms", made->predicted_ms, "summary_ms", shorter->ms);
    set_number(json, "prompt_n", made->n_prompt - made->n_cached);
    set_number(json, "cache_n", made->n_cached);
    set_number(json, "predicted_n", made->n_predicted);
    set_number(json, "draft_n", made->n_drafted);
    set_number(json, "draft_accepted_n", made->n_draft_accepted);
    set_number(json, "dropped_n", made->n_dropped + shorter->n_dropped);
    set_number(json, "forced_n", made->n_forced);
    set_number(json, "rewinds_n", made->n_rewinds);
    set_number(json, "summary_n", shorter->n_summary);
    set_number(json, "adapter_n", n_adapters);
    return json;
}

static void add_note(json_t *list, const char *text) {
    if (text && text[0]) json_array_append_new(list, pith_cli_json_string(text));
}

/* What was chosen, dropped and missed; then what was assumed while loading, one item a line. */
static json_t *note_list(const pith_cli_reply *reply, const char *cache_note) {
    const pith_generation *made = reply->made;
    const char *notes = pith_model_describe(reply->model).notes;
    char text[160] = "";
    json_t *list = json_array();
    add_note(list, reply->prefer);
    add_note(list, cache_note);
    if (made->cache_miss > PITH_CACHE_MISS_OFF) {
        snprintf(text, sizeof text, "nothing came from disk: %s",
                 pith_cache_miss_text(made->cache_miss));
        add_note(list, text);
    }
    if (reply->shorter) {
        pith_cli_shorten_describe(reply->shorter, text, sizeof text);
        add_note(list, text);
    }
    pith_cli_describe_loop(reply->ids, made->n_predicted, text, sizeof text);
    add_note(list, text);
    if (made->n_dropped > 0) {
        snprintf(text, sizeof text, "%zu tokens were dropped to stay within the context",
                 made->n_dropped);
        add_note(list, text);
    }
    for (const char *at = notes ? notes : ""; *at;) {
        size_t size = strcspn(at, "\n");
        json_array_append_new(list, pith_cli_json_text(at, size));
        at += size + (at[size] == '\n');
    }
    return list;
}

/* A passage of up to MOST_PASSAGE tokens counts when it stands LEAST_TIMES in a row and takes
 * LEAST_TOKENS: a list of equal items or a row of dashes is none yet. */
enum { MOST_PASSAGE = 256, LEAST_TIMES = 4, LEAST_TOKENS = 48 };

void pith_cli_describe_loop(const int32_t *ids, size_t n, char *text, size_t capacity) {
    text[0] = 0;
    for (size_t size = 1; size <= MOST_PASSAGE && size * LEAST_TIMES <= n; size++) {
        size_t same = 0; /* tokens that are those one passage before */
        while (same + size < n && ids[n - 1 - same] == ids[n - 1 - same - size]) same++;
        size_t times = same / size + 1;
        if (times < LEAST_TIMES || times * size < LEAST_TOKENS) continue;
        snprintf(
            text, capacity,
            "the reply ends with the same %zu tokens %zu times; --dry-multiplier 0.8 or --temp "
            "leads on, -n limits the length",
            size, times);
        return;
    }
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
    json_t *notes = note_list(reply, engine.cache_note);
    pith_cli_note_adapters(reply->session, notes);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:s, s:s, s:s, s:I, s:o}", "text",
        pith_cli_json_text(reply->text.data ? reply->text.data : "", reply->text.size), "ids",
        pith_cli_json_ids(reply->ids, made->n_predicted), "prompt_ids",
        pith_cli_json_ids(reply->prompt_ids, made->n_prompt), "stop_reason", stop_text(made->stop),
        "timings", timings(reply), "cache", pith_cache_source_text(made->cache_source),
        "cache_miss", pith_cache_miss_text(made->cache_miss), "backend", engine.backend,
        "peak_bytes", (json_int_t)pith_memory_peak(), "notes", notes);
    if (reply->message) {
        size_t size = 0;
        const char *thought = pith_message_reasoning(reply->message, &size);
        if (size > 0) json_object_set_new(json, "reasoning", pith_cli_json_text(thought, size));
        json_object_set_new(json, "tool_calls", pith_cli_tool_calls(reply->message));
    }
    if (reply->logprobs) json_object_set_new(json, "logprobs", reply->logprobs);
    return json;
}

json_t *pith_cli_choice_json(pith_span text, const int32_t *ids, const pith_generation *made) {
    return json_pack("{s:o, s:o, s:s, s:I, s:f}", "text",
                     pith_cli_json_text(text.data ? text.data : "", text.size), "ids",
                     pith_cli_json_ids(ids, made->n_predicted), "stop_reason",
                     stop_text(made->stop), "predicted_n", (json_int_t)made->n_predicted,
                     "predicted_ms", made->predicted_ms);
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
    if (made->n_drafted + made->n_forced > 0)
        fprintf(stderr, "%zu tokens guessed, %zu of them right; %zu forced by the grammar\n",
                made->n_drafted, made->n_draft_accepted, made->n_forced);
    if (made->cache_miss > PITH_CACHE_MISS_OFF)
        fprintf(stderr, "nothing came from disk: %s\n", pith_cache_miss_text(made->cache_miss));
}
