/* SPDX-License-Identifier: Apache-2.0
 * The answer of `pith fit` as text or JSON. Field names of the JSON are relied on by scripts:
 * bytes end in _bytes, times in _ms, speeds in _tps (tokens a second); null is unknown. */
#include "pith/fit.h"

#include <string.h>

/* A correction learned from runs that something disturbed may not make an estimate faster than the
 * machine was measured to be; nor does it make that slower. */
static double bounded(double ms, double factor, double least_ms) {
    double corrected = ms * factor;
    if (corrected >= least_ms) return corrected;
    return ms < least_ms ? ms : least_ms;
}

double pith_fit_answer_token_ms(const pith_fit_answer *a, int32_t depth, double bandwidth) {
    double read = bandwidth > 0 ? bandwidth : a->fit.bandwidth;
    double least = read > 0 ? a->fit.token_bytes / read * 1e3 : 0;
    return bounded(pith_fit_token_ms(&a->fit, depth, bandwidth), a->record.token_factor, least);
}

double pith_fit_answer_prompt_ms(const pith_fit_answer *a) {
    double macs = (a->fit.token_macs - a->fit.output_macs) * a->question->n_prompt;
    double least = a->fit.int8_macs > 0 ? macs / a->fit.int8_macs * 1e3 : 0;
    double ms = pith_speed_prompt_ms(&a->fit.speed, a->question->n_prompt, a->question->depth);
    return bounded(ms, a->record.prompt_factor, least);
}

bool pith_fit_range_is_wide(double low, double high) {
    return low > 0 && high > low * 1.15; /* a smaller range is that of any measurement */
}

/* What it will take with the correction of earlier runs. */
static double total_bytes(const pith_fit_answer *a) {
    double total = (double)a->fit.total_bytes + a->record.other_more;
    return total > 0 ? total : 0;
}

static double per_second(double ms, double n) {
    return ms > 0 ? n / ms * 1e3 : 0;
}

static bool has_speed(const pith_fit *fit) {
    return fit->speed.token_ns > 0;
}

static bool has_prompt(const pith_fit *fit) {
    return fit->speed.short_rows > 0;
}

/* Whether there is anything to say about a wanted speed: a file may have no weights at all. */
static bool can_invert(const pith_fit_answer *a) {
    return a->question->want > 0 && a->fit.bandwidth > 0 && a->fit.n_parameters > 0 &&
           a->fit.token_bytes > 0;
}

/* The wanted speed, asked of this model. */
static pith_fit_wanted wanted_of(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    const pith_device *d = a->question->device;
    double token_s = pith_fit_answer_token_ms(a, a->question->depth, 0) * 1e-3,
           bits = f->bits_per_weight;
    double reached = token_s > 0 ? f->token_bytes / token_s : 0;
    double n_all =
        a->question->n_parameters > 0 ? a->question->n_parameters : (double)f->n_parameters;
    double active = bits > 0 ? f->token_bytes * 8 / bits : n_all;
    return (pith_fit_wanted){.want = a->question->want,
                             .bandwidth = f->bandwidth,
                             .share = d && d->bandwidth_share > 0 ? d->bandwidth_share
                                      : d                         ? 0.7
                                      : f->bandwidth > 0          ? reached / f->bandwidth
                                                                  : 0.7,
                             .n_all = n_all,
                             .n_active = a->question->n_parameters > 0 ? n_all : active,
                             .memory = f->limit_bytes};
}

/* Tokens a second when memory is as slow, or as fast, as it was seen. */
typedef struct speed_range {
    double low, high;
} speed_range;

static speed_range decode_range(const pith_fit_answer *a) {
    int32_t depth = a->question->depth;
    if (!(a->memory.low > 0)) return (speed_range){0, 0};
    return (speed_range){per_second(pith_fit_answer_token_ms(a, depth, a->memory.low), 1),
                         per_second(pith_fit_answer_token_ms(a, depth, a->memory.high), 1)};
}

/* ---- JSON ---- */

static json_t *known(double value) { /* 0 is unknown */
    return value > 0 ? json_real(value) : json_null();
}

static json_t *json_memory(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    json_t *contexts = json_array();
    for (size_t i = 0; i < f->n_contexts; i++)
        json_array_append_new(
            contexts, json_pack("{s:i, s:I, s:b}", "n_ctx", (int)f->contexts[i].n_ctx, "kv_bytes",
                                (json_int_t)f->contexts[i].kv_bytes, "fits", f->contexts[i].fits));
    json_t *fix = json_pack("{s:i, s:i, s:i, s:f}", "longest_ctx", (int)f->longest_ctx,
                            "longest_ctx_int8", (int)f->longest_ctx_int8, "longest_ctx_mmap",
                            (int)f->longest_ctx_mmap, "bits_per_weight", f->bits_allowed);
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:b, s:o, s:o}", "weight_bytes",
                     (json_int_t)f->weight_bytes, "kv_bytes", (json_int_t)f->kv_bytes,
                     "workspace_bytes", (json_int_t)f->workspace_bytes, "other_bytes",
                     (json_int_t)f->other_bytes, "total_bytes", total_bytes(a), "limit_bytes",
                     (json_int_t)f->limit_bytes, "fits", f->fits, "contexts", contexts, "allowed",
                     fix);
}

static json_t *json_speed(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    double token_ms = pith_fit_answer_token_ms(a, a->question->depth, 0);
    double prompt_ms = pith_fit_answer_prompt_ms(a);
    speed_range range = decode_range(a);
    json_t *json = json_object();
    json_object_set_new(json, "measured", json_boolean(f->measured));
    json_object_set_new(json, "bandwidth", known(f->bandwidth));
    json_object_set_new(json, "bandwidth_low", known(a->memory.low));
    json_object_set_new(json, "bandwidth_high", known(a->memory.high));
    json_object_set_new(json, "int8_macs", known(f->int8_macs));
    json_object_set_new(json, "token_bytes", known(f->token_bytes));
    json_object_set_new(json, "kv_bytes_per_token", known(f->context_token_bytes));
    json_object_set_new(json, "token_macs", known(f->token_macs));
    json_object_set_new(json, "decode_ceiling_tps", known(f->decode_ceiling));
    json_object_set_new(json, "depth", json_integer(a->question->depth));
    json_object_set_new(json, "decode_tps", known(per_second(token_ms, 1)));
    json_object_set_new(json, "decode_tps_low", known(range.low));
    json_object_set_new(json, "decode_tps_high", known(range.high));
    json_object_set_new(json, "n_prompt", json_integer(a->question->n_prompt));
    json_object_set_new(json, "prefill_tps", known(per_second(prompt_ms, a->question->n_prompt)));
    json_object_set_new(json, "ttft_ms", known(prompt_ms));
    json_object_set_new(json, "load_ms", known(f->load_ms));
    json_object_set_new(json, "start_to_first_token_ms",
                        known(f->load_ms > 0 && prompt_ms > 0 ? f->load_ms + prompt_ms : 0));
    json_object_set_new(json, "probe_ms", json_real(f->probe_ms));
    return json;
}

static json_t *json_record(const pith_cli_record *r) {
    if (r->n_runs == 0) return json_null();
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f}", "runs", (int)r->n_runs, "decode_error",
                     r->token_error, "prefill_error", r->prompt_error, "memory_error",
                     r->memory_error, "decode_factor", r->token_factor, "prefill_factor",
                     r->prompt_factor);
}

json_t *pith_fit_json(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    const pith_device *d = a->question->device;
    json_t *notes = json_array();
    for (const char *at = f->notes; *at;) {
        size_t size = strcspn(at, "\n");
        json_array_append_new(notes, pith_cli_json_text(at, size));
        at += size + (at[size] == '\n');
    }
    json_t *json = json_pack(
        "{s:o, s:o, s:b, s:b, s:s, s:i, s:i, s:i, s:s, s:I, s:f, s:I, s:o, s:o, s:o, s:o}", "model",
        pith_cli_json_string(a->path), "architecture", pith_cli_json_string(f->architecture),
        "runs", f->runs, "whole", f->whole, "load", f->load == PITH_LOAD_MMAP ? "mmap" : "pack",
        "n_ctx", (int)f->n_ctx, "n_ctx_train", (int)f->n_ctx_train, "n_threads", (int)f->n_threads,
        "kv_type", f->kv_type, "parameters", (json_int_t)f->n_parameters, "bits_per_weight",
        f->bits_per_weight, "file_bytes", (json_int_t)f->file_bytes, "memory", json_memory(a),
        "speed", json_speed(a), "record", json_record(&a->record), "notes", notes);
    json_object_set_new(json, "device",
                        d ? json_string(d->name[0] ? d->name : "figures")
                          : json_string("this machine"));
    if (can_invert(a)) {
        pith_fit_wanted wanted = wanted_of(a);
        json_object_set_new(json, "want", pith_fit_want_json(&wanted));
    }
    return json;
}

/* ---- Text ---- */

static double mb(double bytes) {
    return bytes * 1e-6;
}

static void print_head(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    pith_cli_print_clean(stdout, a->path, strlen(a->path), SIZE_MAX);
    fputs(": ", stdout);
    pith_cli_print_clean(stdout, f->architecture, strlen(f->architecture), 64);
    printf(", %.1f M parameters at %.2f bits, %.1f MB%s\n", (double)f->n_parameters * 1e-6,
           f->bits_per_weight, mb((double)f->file_bytes), f->whole ? "" : " (header only)");
    const pith_device *d = a->question->device;
    if (d)
        printf("on %s: %.1f GB/s, %s%s\n", d->title, d->bandwidth * 1e-9, "nominal; ", d->source);
    else if (f->bandwidth > 0)
        printf("on this machine, %d threads: reads %.1f GB/s, multiplies %.0f GMAC/s; probed in "
               "%.0f ms\n",
               (int)f->n_threads, f->bandwidth * 1e-9, f->int8_macs * 1e-9, f->probe_ms);
}

static void print_fix(const pith_fit *f) {
    if (f->longest_ctx > 0) printf("  a context of %d tokens fits\n", (int)f->longest_ctx);
    if (f->longest_ctx_int8 > f->longest_ctx)
        printf("  with --kv int8 a context of %d tokens fits\n", (int)f->longest_ctx_int8);
    if (f->load == PITH_LOAD_PACK && f->longest_ctx_mmap > f->longest_ctx)
        printf("  with --load mmap a context of %d tokens fits; weights are then read from the "
               "file as needed\n",
               (int)f->longest_ctx_mmap);
    if (f->bits_allowed > 0 && f->bits_allowed < f->bits_per_weight)
        printf("  weights of at most %.2f bits fit with this context (they have %.2f)\n",
               f->bits_allowed, f->bits_per_weight);
    if (f->longest_ctx <= 0 && f->longest_ctx_int8 <= 0 && f->bits_allowed <= 0)
        printf("  nothing but a smaller model or more memory makes it fit\n");
}

static void print_memory(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    printf("memory  %.1f MB = weights %.1f%s + KV %.1f (%d tokens, %s) + workspace %.1f + "
           "vocabulary and program %.1f\n",
           mb(total_bytes(a)), mb((double)f->weight_bytes),
           f->load == PITH_LOAD_MMAP ? " (mapped)" : "", mb((double)f->kv_bytes), (int)f->n_ctx,
           f->kv_type, mb((double)f->workspace_bytes),
           mb((double)f->other_bytes + a->record.other_more));
    if (f->limit_bytes > 0)
        printf("        %s: weights, KV and workspace may take %.1f MB\n",
               f->fits ? "fits" : "DOES NOT FIT", mb((double)f->limit_bytes));
    if (!f->fits) print_fix(f);
    printf("        KV by context:");
    for (size_t i = 0; i < f->n_contexts; i++)
        printf("%s %d %.1f MB%s", i ? "," : "", (int)f->contexts[i].n_ctx,
               mb((double)f->contexts[i].kv_bytes), f->contexts[i].fits ? "" : " (does not fit)");
    putchar('\n');
}

static void print_speed(const pith_fit_answer *a) {
    const pith_fit *f = &a->fit;
    double token_ms = pith_fit_answer_token_ms(a, a->question->depth, 0);
    double prompt_ms = pith_fit_answer_prompt_ms(a);
    speed_range range = decode_range(a);
    if (!has_speed(f)) {
        printf("speed   unknown (nothing was measured)\n");
        return;
    }
    printf("decode  %.1f tok/s", per_second(token_ms, 1));
    if (pith_fit_range_is_wide(range.low, range.high))
        printf(" (%.1f to %.1f: this machine's memory speed changes, %.1f to %.1f GB/s)", range.low,
               range.high, a->memory.low * 1e-9, a->memory.high * 1e-9);
    printf(" at depth %d; ceiling %.1f = %.1f GB/s over %.1f MB per token\n",
           (int)a->question->depth, f->decode_ceiling, f->bandwidth * 1e-9, mb(f->token_bytes));
    if (!has_prompt(f)) {
        printf("prefill unknown: no int8 operations are published for it (--ops gives them)\n");
        return;
    }
    printf("prefill %.1f tok/s, first token after %.0f ms (prompt of %d tokens)",
           per_second(prompt_ms, a->question->n_prompt), prompt_ms, (int)a->question->n_prompt);
    if (f->load_ms > 0) printf(", %.0f ms with loading", f->load_ms + prompt_ms);
    putchar('\n');
}

static void print_record(const pith_cli_record *r) {
    if (r->n_runs == 0) return;
    printf(
        "record  %d run%s; the last one against the estimate before it: decode %+.1f %%, prefill "
        "%+.1f %%, memory %+.1f %% (times and bytes); corrected by %.2f and %.2f\n",
        (int)r->n_runs, r->n_runs == 1 ? "" : "s", r->token_error * 100, r->prompt_error * 100,
        r->memory_error * 100, r->token_factor, r->prompt_factor);
}

void pith_fit_print(const pith_fit_answer *a) {
    print_head(a);
    print_memory(a);
    print_speed(a);
    print_record(&a->record);
    if (can_invert(a)) {
        pith_fit_wanted wanted = wanted_of(a);
        pith_fit_want_print(&wanted);
    }
    for (const char *at = a->fit.notes; *at;) {
        size_t size = strcspn(at, "\n");
        fputs("note    ", stdout);
        pith_cli_print_clean(stdout, at, size, SIZE_MAX);
        putchar('\n');
        at += size + (at[size] == '\n');
    }
}
