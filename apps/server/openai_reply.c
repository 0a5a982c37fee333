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

void pith_openai_stream_end(pith_answer *a, const char *object, const pith_job_account *account) {
    json_t *last = pith_openai_object(a, object, json_array());
    if (a->include_usage) json_object_set_new(last, "usage", pith_job_usage(account));
    json_object_set_new(last, "timings", pith_job_timings(account));
    json_object_set_new(last, "pith", pith_routing_describe(a->exchange));
    pith_exchange_stream_event(a->exchange, NULL, last);
    pith_exchange_stream_write(a->exchange, "data: [DONE]\n\n", 14);
}

const char *pith_openai_finish(pith_job_finish finish) {
    static const char *const names[] = {"stop", "length", "tool_calls"};
    return names[finish];
}

void pith_openai_read_stream(pith_fields *f, pith_answer_request *out) {
    json_t *options = NULL;
    pith_fields_flag(f, "stream", &out->stream);
    if (!pith_fields_object(f, "stream_options", &options)) return;
    pith_fields in;
    pith_fields_init(&in, options, "stream_options");
    pith_fields_flag(&in, "include_usage", &out->include_usage);
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
    static const char *const names[] = {"metadata", "prompt_cache_key"};
    bool store = false;
    const char *tier = "auto";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) pith_fields_harmless(f, names[i]);
    pith_fields_text(f, "safety_identifier", &job->user);
    pith_fields_text(f, "user", &job->user); /* whose turn it is */
    pith_job_read_own(f, job);
    if (pith_fields_flag(f, "store", &store) && store)
        pith_fields_wrong(f, "store", "unsupported", "true is not supported: nothing is kept");
    if (pith_fields_text(f, "service_tier", &tier) && strcmp(tier, "auto") != 0 &&
        strcmp(tier, "default") != 0)
        pith_fields_wrong(f, "service_tier", "unsupported", "must be auto or default");
}
