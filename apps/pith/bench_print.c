/* SPDX-License-Identifier: Apache-2.0
 * The report of `pith bench` as Markdown, JSON or CSV. Field names are llama-bench's where it has
 * the field; scripts rely on them. */
#include "pith/bench.h"

#include <inttypes.h>

static const double shares[] = {0.05, 0.5, 0.95, 0.99};
static const char *const share_names[] = {"p05", "p50", "p95", "p99"};

static json_t *json_samples(const double *values, size_t n, double tokens) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, tokens > 0 ? json_real(tokens / values[i] * 1e9)
                                               : json_real(values[i]));
    return list;
}

static json_t *json_percentiles(const double *sorted, size_t n, double scale) {
    json_t *object = json_object();
    for (size_t i = 0; i < 4; i++)
        json_object_set_new(object, share_names[i],
                            json_real(pith_bench_percentile(sorted, n, shares[i]) * scale));
    return object;
}

/* Time per operation over all tests; NULL when it was not asked for. */
static json_t *json_profile(const pith_bench_report *r) {
    if (!r->n_profile) return NULL;
    json_t *profile = json_array();
    for (size_t i = 0; i < r->n_profile; i++)
        json_array_append_new(
            profile, json_pack("{s:s, s:I, s:f}", "operation", r->profile[i].operation, "calls",
                               (json_int_t)r->profile[i].n_calls, "ms", r->profile[i].ms));
    return profile;
}

static json_t *json_row(const pith_bench_report *r, const pith_bench_row *row) {
    pith_system_info system = {0};
    pith_system_describe(&system, NULL);
    char key[32];
    snprintf(key, sizeof key, "%016" PRIx64, r->model.content_key);
    double tokens = (double)(row->n_prompt + row->n_gen);
    json_t *json = json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:I, s:I, s:i, s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:f, "
        "s:f, s:f}",
        "build_version", pith_version(), "cpu_info", pith_cli_json_string(system.cpu), "backends",
        r->backend, "model_filename", pith_cli_json_string(r->file), "model_type",
        pith_cli_json_string(r->model.type), "model_size", (json_int_t)r->model.weight_bytes,
        "model_n_params", (json_int_t)r->model.n_parameters, "n_ubatch", (int)r->step_limit,
        "n_threads", (int)row->n_threads, "type_k", r->kv_type, "type_v", r->kv_type, "content_key",
        key, "n_prompt", (int)row->n_prompt, "n_gen", (int)row->n_gen, "n_depth", (int)row->n_depth,
        "avg_ns", row->avg_ns, "stddev_ns", row->stddev_ns, "avg_ts", row->avg_ts, "stddev_ts",
        row->stddev_ts);
    json_object_set_new(json, "samples_ns", json_samples(row->samples_ns, row->n_samples, 0));
    json_object_set_new(json, "samples_ts", json_samples(row->samples_ns, row->n_samples, tokens));
    json_object_set_new(json, "percentiles_ms",
                        json_percentiles(row->sorted_ns, row->n_samples, 1e-6));
    if (row->n_prompt)
        json_object_set_new(json, "ttft_ms",
                            json_percentiles(row->sorted_ns, row->n_samples, 1e-6));
    if (row->n_tokens)
        json_object_set_new(json, "token_ms", json_percentiles(row->token_ns, row->n_tokens, 1e-6));
    json_t *cold = json_array();
    for (size_t i = 0; i < PITH_BENCH_COLD; i++)
        json_array_append_new(cold, json_real(r->cold_ms[i]));
    json_object_set_new(json, "cold_token_ms", cold);
    json_object_set_new(json, "load_ms", json_real(r->load_ms));
    json_object_set_new(json, "peak_bytes", json_integer((json_int_t)r->peak_bytes));
    json_object_set_new(json, "huge_page_bytes", json_integer((json_int_t)r->huge_bytes));
    if (row->bandwidth > 0) json_object_set_new(json, "roofline", pith_bench_roofline_json(r, row));
    json_t *profile = json_profile(r);
    if (profile) json_object_set_new(json, "profile", profile);
    return json;
}

static int print_json(const pith_bench_report *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_rows; i++) json_array_append_new(list, json_row(r, &r->rows[i]));
    return pith_cli_print_json(list);
}

void pith_bench_row_name(const pith_bench_row *row, char *name, size_t capacity) {
    int n = snprintf(name, capacity, row->n_prompt ? "pp%d" : "tg%d",
                     (int)(row->n_prompt ? row->n_prompt : row->n_gen));
    if (row->n_depth) snprintf(name + n, capacity - (size_t)n, " @ d%d", (int)row->n_depth);
}

/* In quotes, with quotes inside doubled. */
static void print_csv_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    fputs("\",", stdout);
}

static int print_csv(const pith_bench_report *r) {
    printf("model_filename,model_type,model_size,model_n_params,backends,type_k,n_threads,n_prompt,"
           "n_gen,n_depth,avg_ns,stddev_ns,avg_ts,stddev_ts,p50_ms\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const pith_bench_row *row = &r->rows[i];
        print_csv_text(r->file);
        print_csv_text(r->model.type);
        printf("%" PRIu64 ",%" PRIu64 ",%s,%s,%d,%d,%d,%d,%.0f,%.0f,%.3f,%.3f,%.3f\n",
               r->model.weight_bytes, r->model.n_parameters, r->backend, r->kv_type,
               (int)row->n_threads, (int)row->n_prompt, (int)row->n_gen, (int)row->n_depth,
               row->avg_ns, row->stddev_ns, row->avg_ts, row->stddev_ts,
               pith_bench_percentile(row->sorted_ns, row->n_samples, 0.5) * 1e-6);
    }
    return pith_cli_finish();
}

static void print_profile(const pith_bench_report *r) {
    double all_ms = 0;
    for (size_t i = 0; i < r->n_profile; i++) all_ms += r->profile[i].ms;
    printf("\n| operation                |    calls |         ms | share |\n"
           "|:-------------------------|---------:|-----------:|------:|\n");
    for (size_t i = 0; i < r->n_profile; i++)
        printf("| %-24s | %8" PRIu64 " | %10.2f | %3.0f %% |\n", r->profile[i].operation,
               r->profile[i].n_calls, r->profile[i].ms,
               all_ms > 0 ? r->profile[i].ms / all_ms * 100 : 0.0);
}

static int print_md(const pith_bench_report *r) {
    printf(
        "%s: %s, %.1f MB of weights, %.1f M parameters, content key %016" PRIx64
        "\npith %s, %s, KV %s, loaded in %.0f ms, peak memory %.1f MB, %.1f MB in huge pages\n\n",
        r->file, r->model.type, (double)r->model.weight_bytes * 1e-6,
        (double)r->model.n_parameters * 1e-6, r->model.content_key, pith_version(), r->backend,
        r->kv_type, r->load_ms, (double)r->peak_bytes * 1e-6, (double)r->huge_bytes * 1e-6);
    printf("| threads |         test |     tok/s |       +- |   p50 ms |   p95 ms | token p50 ms "
           "| token p99 ms |\n"
           "|--------:|-------------:|----------:|---------:|---------:|---------:|-------------:"
           "|-------------:|\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const pith_bench_row *row = &r->rows[i];
        char name[48];
        pith_bench_row_name(row, name, sizeof name);
        printf("| %7d | %12s | %9.2f | %8.2f | %8.2f | %8.2f |", (int)row->n_threads, name,
               row->avg_ts, row->stddev_ts,
               pith_bench_percentile(row->sorted_ns, row->n_samples, 0.5) * 1e-6,
               pith_bench_percentile(row->sorted_ns, row->n_samples, 0.95) * 1e-6);
        if (row->n_tokens)
            printf(" %12.2f | %12.2f |\n",
                   pith_bench_percentile(row->token_ns, row->n_tokens, 0.5) * 1e-6,
                   pith_bench_percentile(row->token_ns, row->n_tokens, 0.99) * 1e-6);
        else
            printf(" %12s | %12s |\n", "", "");
    }
    printf("\ncold start, ms per token:");
    for (size_t i = 0; i < PITH_BENCH_COLD; i++) printf(" %.1f", r->cold_ms[i]);
    printf("\n");
    if (r->n_rows && r->rows[0].bandwidth > 0) pith_bench_roofline_print(r);
    if (r->n_profile) print_profile(r);
    return pith_cli_finish();
}

int pith_bench_print(const pith_bench_report *report, pith_bench_format format) {
    if (format == PITH_BENCH_JSON) return print_json(report);
    return format == PITH_BENCH_CSV ? print_csv(report) : print_md(report);
}
