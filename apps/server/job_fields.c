/* SPDX-License-Identifier: Apache-2.0
 * The fields that protocols share, and what they say about a reply's work.
 * Invariant: what is absent gets the API's own default, never one of the library. */
#include "base/clock.h"
#include "server/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOP_K = 1 << 24 };

static void read_biases(pith_fields *f, pith_job_request *r) {
    json_t *biases = NULL, *value;
    const char *key;
    if (!pith_fields_object(f, "logit_bias", &biases)) return;
    size_t n = 0;
    json_object_foreach(biases, key, value) {
        char *end = NULL;
        double bias = json_number_value(value);
        long id = strtol(key, &end, 10);
        if (key[0] < '0' || key[0] > '9' || *end || id > INT32_MAX) {
            pith_fields_wrong(f, "logit_bias", "invalid_value",
                              "has the key '%.40s', which is no token id", key);
            return;
        }
        if (!json_is_number(value) || !(bias >= -100 && bias <= 100)) {
            pith_fields_wrong(f, "logit_bias", "out_of_range",
                              "of token %ld must be a number between -100 and 100", id);
            return;
        }
        if (n == PITH_JOB_MAX_BIASES) {
            pith_fields_wrong(f, "logit_bias", "out_of_range", "has more than %d tokens",
                              PITH_JOB_MAX_BIASES);
            return;
        }
        bool is_ban = bias <= -100;
        r->biases[n++] = (pith_logit_bias){(int32_t)id, is_ban ? -INFINITY : (float)bias};
    }
    r->sampler.biases = r->biases;
    r->sampler.n_biases = n;
}

void pith_job_read_stops(pith_fields *f, const char *key, pith_job_request *r) {
    json_t *stop = pith_fields_any(f, key);
    if (!stop) return;
    size_t n = json_is_array(stop) ? json_array_size(stop) : 1;
    if (n > PITH_JOB_MAX_STOPS) {
        pith_fields_wrong(f, key, "out_of_range", "has more than %d texts", PITH_JOB_MAX_STOPS);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *one = json_is_array(stop) ? json_array_get(stop, i) : stop;
        if (!json_is_string(one)) {
            pith_fields_wrong(f, key, "invalid_type", "must be a string or an array of strings");
            return;
        }
        if (json_string_length(one) == 0) {
            pith_fields_wrong(f, key, "invalid_value", "must not hold an empty text");
            return;
        }
        r->stops[r->n_stops++] = json_string_value(one);
    }
}

void pith_job_read_seed(pith_fields *f, pith_server *server, pith_job_request *r) {
    int64_t seed = 0;
    if (pith_fields_int(f, "seed", INT64_MIN, INT64_MAX, &seed))
        r->sampler.seed = (uint64_t)seed;
    else
        r->sampler.seed =
            pith_clock_ns() * 0x9E3779B97F4A7C15u + atomic_fetch_add(&server->n_ids, 1);
}

void pith_job_read_draw(pith_fields *f, pith_server *server, pith_job_request *r) {
    pith_sampler_options *s = &r->sampler;
    int64_t top_k = 0;
    *s = (pith_sampler_options){.size = sizeof *s, .temperature = 1};
    pith_fields_number(f, "temperature", 0, 2, &s->temperature);
    pith_fields_share(f, "top_p", &s->top_p);
    pith_fields_number(f, "min_p", 0, 1, &s->min_p);
    if (pith_fields_int(f, "top_k", 0, MOST_TOP_K, &top_k)) s->top_k = (int32_t)top_k;
    pith_job_read_seed(f, server, r);
}

void pith_job_read_sampling(pith_fields *f, pith_server *server, pith_job_request *r) {
    pith_sampler_options *s = &r->sampler;
    int64_t n = 1;
    pith_job_read_draw(f, server, r);
    pith_fields_number(f, "frequency_penalty", -2, 2, &s->frequency_penalty);
    pith_fields_number(f, "presence_penalty", -2, 2, &s->presence_penalty);
    pith_fields_number(f, "repeat_penalty", 0.01, 100, &s->repeat_penalty);
    if (pith_fields_int(f, "n", 1, PITH_JOB_MAX_CHOICES, &n)) r->n = (int32_t)n;
    read_biases(f, r);
    pith_job_read_stops(f, "stop", r);
}

static void read_lora(pith_fields *f, json_t *item, size_t at, pith_lora_set *set) {
    char path[PITH_FIELDS_PATH];
    pith_fields in;
    snprintf(path, sizeof path, "lora[%zu]", at);
    if (!pith_fields_enter(f, item, path, &in)) return;
    set->scales[at] = 1;
    if (pith_fields_require(&in, "id")) pith_fields_text(&in, "id", &set->names[at]);
    pith_fields_number(&in, "scale", -100, 100, &set->scales[at]);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

void pith_job_read_own(pith_fields *f, pith_job_request *r) {
    json_t *loras = NULL, *item;
    int64_t ms = 0;
    size_t i;
    if (pith_fields_int(f, "deadline_ms", 1, 86400000, &ms)) r->deadline_ms = (double)ms;
    r->loras.is_given = pith_fields_array(f, "lora", &loras);
    if (json_array_size(loras) > PITH_SESSION_MAX_ADAPTERS) {
        pith_fields_wrong(f, "lora", "out_of_range", "has more than %d adapters",
                          PITH_SESSION_MAX_ADAPTERS);
        return;
    }
    json_array_foreach(loras, i, item) {
        read_lora(f, item, i, &r->loras);
    }
    r->loras.n = json_array_size(loras);
}

json_t *pith_job_usage(const pith_job_account *a) {
    json_int_t prompt = (json_int_t)a->n_prompt, made = (json_int_t)a->n_predicted;
    return json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", "prompt_tokens", prompt,
                     "completion_tokens", made, "total_tokens", prompt + made,
                     "prompt_tokens_details", "cached_tokens", (json_int_t)a->n_cached,
                     "completion_tokens_details", "reasoning_tokens", (json_int_t)a->n_reasoning);
}

static double per_second(size_t n, double ms) {
    return ms > 0 ? (double)n * 1000 / ms : 0;
}

json_t *pith_job_timings(const pith_job_account *a) {
    static const char *const stops[] = {"end",      "length",    "context", "text",
                                        "callback", "cancelled", "deadline"};
    size_t read = a->n_prompt - a->n_cached;
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:I, s:I, s:s, s:s, s:s}",
                     "cache_n", (json_int_t)a->n_cached, "prompt_n", (json_int_t)read, "prompt_ms",
                     a->prompt_ms, "prompt_per_second", per_second(read, a->prompt_ms), "queued_ms",
                     a->queued_ms, "ttft_ms", a->ttft_ms, "predicted_n", (json_int_t)a->n_predicted,
                     "predicted_ms", a->predicted_ms, "predicted_per_second",
                     per_second(a->n_predicted, a->predicted_ms), "draft_n",
                     (json_int_t)a->n_drafted, "draft_accepted_n", (json_int_t)a->n_draft_accepted,
                     "cache_source", a->cache_source, "device", a->device, "stop", stops[a->stop]);
}
