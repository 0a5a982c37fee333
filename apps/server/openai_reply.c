/* SPDX-License-Identifier: Apache-2.0
 * What the replies of OpenAI's older routes (chat completions, completions) share: the object
 * around their choices, the end of their streams, and fields that both take.
 * Read next: openai_chat.c. */
#include "server/openai.h"
#include "server/routing.h"

#include <string.h>

json_t *pith_openai_object(const pith_answer *a, const char *object, json_t *choices) {
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "id", a->id, "object", object, "created",
                     a->created, "model", pith_answer_model(a), "choices", choices);
}

json_t *pith_openai_whole(const pith_answer *a, const char *object, json_t *choices,
                          const pith_job_account *account) {
    json_t *body = pith_openai_object(a, object, choices);
    json_object_set_new(body, "usage", pith_job_usage(account));
    json_object_set_new(body, "timings", pith_job_timings(account));
    json_object_set_new(body, "pith", pith_routing_describe(a->exchange));
    return body;
}

void pith_openai_send_finish(pith_answer *a, json_t *chunk) {
    if (a->held || !chunk) pith_exchange_stream_event(a->exchange, NULL, a->held);
    a->held = chunk;
}

void pith_openai_stream_end(pith_answer *a, const char *object, const pith_job_account *account) {
    json_t *last = a->held;
    a->held = NULL;
    if (a->include_usage) { /* alone this chunk has no choice, as the API has it */
        pith_exchange_stream_event(a->exchange, NULL, last);
        last = pith_openai_object(a, object, json_array());
        json_object_set_new(last, "usage", pith_job_usage(account));
    }
    json_object_set_new(last, "timings", pith_job_timings(account));
    json_object_set_new(last, "pith", pith_routing_describe(a->exchange));
    pith_exchange_stream_event(a->exchange, NULL, last);
    pith_exchange_stream_write(a->exchange, "data: [DONE]\n\n", 14);
}

const char *pith_openai_finish(pith_job_finish finish) {
    static const char *const names[] = {"stop", "length", "tool_calls"};
    return names[finish];
}

void pith_openai_refuse_obfuscation(pith_fields *stream_options) {
    bool obfuscates = false;
    if (pith_fields_flag(stream_options, "include_obfuscation", &obfuscates) && obfuscates)
        pith_fields_wrong(stream_options, "include_obfuscation", "unsupported",
                          "true is not supported");
}

void pith_openai_read_verbosity(pith_fields *f, json_t **more) {
    const char *verbosity = NULL;
    if (!pith_fields_text(f, "verbosity", &verbosity)) return;
    if (strcmp(verbosity, "low") != 0 && strcmp(verbosity, "medium") != 0 &&
        strcmp(verbosity, "high") != 0)
        pith_fields_wrong(f, "verbosity", "invalid_value", "must be low, medium or high");
    if (!*more && !(*more = json_object())) pith_fields_short(f);
    pith_fields_set(f, *more, "verbosity", json_string(verbosity));
}

void pith_openai_read_format(pith_fields *f, const char **type) {
    static const char *const types[] = {"text", "json_object", "json_schema", NULL};
    if (pith_fields_require(f, "type")) pith_fields_choice(f, "type", types, type);
}

json_t *pith_openai_read_schema(pith_fields *f) {
    const char *name = NULL;
    bool strict = true;
    json_t *schema = NULL;
    pith_fields_text(f, "name", &name);
    pith_fields_harmless(f, "description");
    pith_fields_flag(f, "strict", &strict); /* it is enforced either way */
    if (pith_fields_require(f, "schema")) pith_fields_object(f, "schema", &schema);
    return schema;
}

void pith_openai_read_stream(pith_fields *f, pith_answer_request *out) {
    json_t *options = NULL;
    pith_fields_flag(f, "stream", &out->stream);
    if (!pith_fields_object(f, "stream_options", &options)) return;
    pith_fields in;
    pith_fields_init(&in, options, "stream_options");
    pith_fields_flag(&in, "include_usage", &out->include_usage);
    pith_openai_refuse_obfuscation(&in);
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in) && !out->stream)
        pith_fields_wrong(f, "stream_options", "invalid_value", "is for stream: true alone");
}

void pith_openai_read_route(pith_fields *f) {
    pith_route_wish wish;
    bool is_private;
    pith_routing_read_field(f, &wish, &is_private); /* heeded before: routing.c */
}

void pith_openai_read_harmless(pith_fields *f, pith_job_request *job) {
    bool store = false;
    const char *tier = "auto", *key = NULL;
    json_t *metadata = NULL;
    pith_fields_object(f, "metadata", &metadata);  /* the client's own notes */
    pith_fields_text(f, "prompt_cache_key", &key); /* beginnings of prompts are found anyhow */
    pith_fields_text(f, "safety_identifier", &job->user);
    pith_fields_text(f, "user", &job->user); /* whose turn it is */
    pith_job_read_own(f, job);
    if (pith_fields_flag(f, "store", &store) && store)
        pith_fields_wrong(f, "store", "unsupported", "true is not supported: nothing is kept");
    if (pith_fields_text(f, "service_tier", &tier) && strcmp(tier, "auto") != 0 &&
        strcmp(tier, "default") != 0)
        pith_fields_wrong(f, "service_tier", "unsupported", "must be auto or default");
}
