/* SPDX-License-Identifier: Apache-2.0
 * Fields that Ollama's routes share. What is absent in `options` has the default that Ollama's
 * documentation gives (temperature 0.8, top_k 40, top_p 0.9, repeat_penalty 1.1 over 64 tokens).
 * Invariant: an option is heeded or refused by its name; those that are fixed when the server
 * starts (num_gpu, num_thread, ...) are refused with that reason. */
#define _DEFAULT_SOURCE /* gmtime_r under -std=c11 */

#include "server/ollama.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void pith_ollama_time(double seconds, char out[40]) {
    struct timespec now = {0};
    struct tm parts = {0};
    char day[32];
    timespec_get(&now, TIME_UTC);
    if (seconds >= 0) {
        now.tv_sec = (time_t)seconds;
        now.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    }
    gmtime_r(&now.tv_sec, &parts);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out, 40, "%.20s.%06uZ", day, (unsigned)(now.tv_nsec / 1000) % 1000000u);
}

/* ---- keep_alive ---- */

/* "5m", "1h30m", "300ms", "-1": seconds. false: it is none. */
static bool read_duration(const char *text, double *seconds) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    double sign = *text == '-' ? -1 : 1, sum = 0;
    if (*text == '-' || *text == '+') text++;
    if (!isdigit((unsigned char)*text) && *text != '.') return false;
    while (*text) {
        char *end = NULL;
        size_t i = 0;
        if (!isdigit((unsigned char)*text) && *text != '.') return false;
        size_t n_digits = strspn(text, "0123456789."); /* strtod alone takes 0x10 and 1e3 too */
        double number = strtod(text, &end);
        if (end != text + n_digits) return false;
        while (i < 6 && strncmp(end, units[i].name, strlen(units[i].name)) != 0) i++;
        if (i == 6 && *end) return false;
        sum += number * (i < 6 ? units[i].seconds : 1);
        text = end + (i < 6 ? strlen(units[i].name) : 0);
    }
    *seconds = sign * sum;
    return sum < 1e12;
}

bool pith_ollama_read_keep(pith_fields *f, int64_t *seconds) {
    json_t *value = pith_fields_any(f, "keep_alive");
    double wanted = json_number_value(value);
    if (!value) return false;
    if (!json_is_number(value) &&
        !(json_is_string(value) && read_duration(json_string_value(value), &wanted)))
        return pith_fields_wrong(f, "keep_alive", "invalid_value",
                                 "must be seconds or a duration such as 5m; negative: for good");
    if (!(fabs(wanted) < 1e12))
        return pith_fields_wrong(f, "keep_alive", "out_of_range", "must be below 1e12 seconds");
    *seconds = wanted < 0 ? -1 : (int64_t)ceil(wanted);
    return true;
}

/* ---- options ---- */

static void refuse_fixed(pith_fields *in) {
    static const char *const names[] = {"num_gpu",  "main_gpu",  "num_thread", "num_batch",
                                        "use_mmap", "use_mlock", "low_vram",   "numa",
                                        "num_keep", "f16_kv",    "vocab_only", "logits_all"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (pith_fields_any(in, names[i]))
            pith_fields_wrong(in, names[i], "unsupported",
                              "is fixed when the server starts: leave it out");
}

static void read_mirostat(pith_fields *in, pith_sampler_options *s) {
    int64_t n = 0;
    if (pith_fields_int(in, "mirostat", 0, 2, &n)) s->mirostat = (int32_t)n;
    pith_fields_number(in, "mirostat_tau", 0, 100, &s->mirostat_tau);
    pith_fields_number(in, "mirostat_eta", 0, 1, &s->mirostat_eta);
}

static void read_limits(pith_fields *in, pith_answer_request *out) {
    int64_t n = -1, context = 0, window = 64;
    if (pith_fields_int(in, "num_predict", -2, 1 << 24, &n) && n == 0)
        pith_fields_wrong(in, "num_predict", "out_of_range", "must be above 0, or -1: no limit");
    out->job.max_tokens = n > 0 ? (int32_t)n : 0;
    if (pith_fields_int(in, "num_ctx", 1, INT32_MAX, &context)) {
        out->job.wanted_ctx = (int32_t)context;
        out->job.ctx_param = "options.num_ctx";
    }
    pith_fields_int(in, "repeat_last_n", -1, 1 << 24, &window);
    /* 0 is off, -1 the whole context, which is 0 for a job */
    out->job.sampler.penalty_window = window == 0 ? -1 : window < 0 ? 0 : (int32_t)window;
}

static void read_options(pith_fields *f, pith_server *server, pith_answer_request *out) {
    json_t *options = NULL, *none = json_object();
    pith_sampler_options *s = &out->job.sampler;
    int64_t top_k = 40;
    pith_fields in;
    *s = (pith_sampler_options){.size = sizeof *s, .temperature = 0.8F, .top_p = 0.9F};
    s->repeat_penalty = 1.1F;
    pith_fields_object(f, "options", &options);
    pith_fields_init(&in, options ? options : none, "options");
    pith_fields_number(&in, "temperature", 0, 100, &s->temperature);
    pith_fields_share(&in, "top_p", &s->top_p);
    pith_fields_number(&in, "min_p", 0, 1, &s->min_p);
    pith_fields_share(&in, "typical_p", &s->typical_p);
    pith_fields_number(&in, "repeat_penalty", 0.01, 100, &s->repeat_penalty);
    pith_fields_number(&in, "presence_penalty", -2, 2, &s->presence_penalty);
    pith_fields_number(&in, "frequency_penalty", -2, 2, &s->frequency_penalty);
    pith_fields_int(&in, "top_k", 0, 1 << 24, &top_k);
    s->top_k = (int32_t)top_k;
    pith_job_read_seed(&in, server, &out->job);
    pith_job_read_stops(&in, "stop", &out->job);
    read_mirostat(&in, s);
    read_limits(&in, out);
    refuse_fixed(&in);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    json_decref(none);
}

/* ---- format, think, logprobs ---- */

static void read_format(pith_fields *f, pith_answer_request *out) {
    json_t *format = pith_fields_any(f, "format");
    const char *text = json_string_value(format);
    if (!format || (text && text[0] == 0)) return;
    if (json_is_object(format))
        pith_answer_hold_to_schema(out, format, "format");
    else if (text && strcmp(text, "json") == 0)
        pith_answer_hold_to_schema(out, NULL, "format");
    else
        pith_fields_wrong(f, "format", "invalid_value", "must be json or a JSON schema");
}

/* What the template is told goes to `more`. */
static void read_think(pith_fields *f, pith_job_request *job, json_t **more) {
    json_t *think = pith_fields_any(f, "think");
    const char *text = json_string_value(think);
    if (!think) return;
    job->thinking_path = "think";
    job->thinking = json_is_false(think) ? PITH_THINKING_UNWANTED : PITH_THINKING_WANTED;
    if (json_is_boolean(think))
        *more = json_pack("{s:O}", "enable_thinking", think);
    else if (text &&
             (strcmp(text, "low") == 0 || strcmp(text, "medium") == 0 || strcmp(text, "high") == 0))
        *more = json_pack("{s:b, s:s}", "enable_thinking", 1, "reasoning_effort", text);
    else
        pith_fields_wrong(f, "think", "invalid_value", "must be true, false, low, medium or high");
    if (!*more) pith_fields_short(f);
}

void pith_ollama_read_shared(pith_fields *f, pith_server *server, pith_answer_request *out,
                             json_t **more) {
    int64_t n = 0;
    out->stream = true;
    pith_fields_flag(f, "stream", &out->stream);
    read_options(f, server, out);
    pith_job_read_own(f, &out->job);
    read_format(f, out);
    read_think(f, &out->job, more);
    out->keeps = pith_ollama_read_keep(f, &out->keep_seconds);
    pith_fields_flag(f, "logprobs", &out->job.wants_logprobs);
    if (pith_fields_int(f, "top_logprobs", 0, PITH_LOGPROBS_MAX, &n)) {
        out->job.n_logprobs = (int32_t)n;
        if (!out->job.wants_logprobs && n > 0)
            pith_fields_wrong(f, "top_logprobs", "invalid_value", "needs logprobs: true");
    }
}
