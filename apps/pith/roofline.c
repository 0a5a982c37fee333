/* SPDX-License-Identifier: Apache-2.0
 * `pith bench --roofline`: what a row's speed asks of memory and of the multipliers, beside what
 * this machine gave in the same minutes.
 *
 *   decode   bytes = (weights of a token + KV of the context at its middle) * tok/s
 *   prefill  multiply-adds = (of all layers + of the output layer once) * tok/s
 *
 * The machine's figures are taken just after the rows of a thread count: reading over memory of
 * about the size of the weights, and the fastest integer product of the kernel table with
 * everything in the caches, which is what the kernels reach and less than what the instruction
 * could. Attention's multiply-adds are left out. */
#include "pith/bench.h"

#include "base/memory.h"

#include <string.h>

bool pith_bench_count_work(const char *name, const char *kv_type, pith_fit *out,
                           pith_error *error) {
    pith_file *file = NULL;
    char *path = pith_cli_find_model(name, error);
    pith_fit_options options = {.size = sizeof options, .no_probe = true};
    if (strcmp(kv_type, "f32") == 0) options.kv_type = PITH_KV_F32;
    if (strcmp(kv_type, "int8") == 0) options.kv_type = PITH_KV_INT8;
    bool ok = path && pith_file_open(path, &file, error) == PITH_OK &&
              pith_file_fit(file, &options, out, error) == PITH_OK;
    out->architecture = ""; /* it belongs to the file */
    pith_file_close(file);
    pith_free(path);
    return ok;
}

pith_bench_share pith_bench_share_of(const pith_bench_report *report, const pith_bench_row *row) {
    const pith_fit *work = &report->work;
    pith_bench_share share = {0, 0, 0, 0};
    double depth = row->n_depth + row->n_gen / 2.0;
    double rows = row->n_prompt > 0 ? row->n_prompt : 1;
    if (row->n_gen > 0)
        share.bytes = (work->token_bytes + work->context_token_bytes * depth) * row->avg_ts;
    share.macs = (work->token_macs - work->output_macs + work->output_macs / rows) * row->avg_ts;
    if (row->bandwidth > 0) share.bytes_share = share.bytes / row->bandwidth;
    if (row->int8_macs > 0) share.macs_share = share.macs / row->int8_macs;
    return share;
}

json_t *pith_bench_roofline_json(const pith_bench_report *report, const pith_bench_row *row) {
    pith_bench_share share = pith_bench_share_of(report, row);
    json_t *json = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "read_bandwidth", row->bandwidth,
                             "int8_macs", row->int8_macs, "token_bytes", report->work.token_bytes,
                             "kv_bytes_per_token", report->work.context_token_bytes,
                             "macs_per_second", share.macs, "macs_share", share.macs_share);
    if (row->n_gen > 0) {
        json_object_set_new(json, "bytes_per_second", json_real(share.bytes));
        json_object_set_new(json, "bandwidth_share", json_real(share.bytes_share));
    }
    return json;
}

void pith_bench_roofline_print(const pith_bench_report *report) {
    printf(
        "\nroofline: %.1f MB of weights and %.1f M multiply-adds a token, %.1f kB of KV for each "
        "token of context\n\n",
        report->work.token_bytes * 1e-6, report->work.token_macs * 1e-6,
        report->work.context_token_bytes * 1e-3);
    printf(
        "| threads |         test | reads GB/s | of GB/s | share | GMAC/s |      of | share |\n"
        "|--------:|-------------:|-----------:|--------:|------:|-------:|--------:|------:|\n");
    for (size_t i = 0; i < report->n_rows; i++) {
        const pith_bench_row *row = &report->rows[i];
        pith_bench_share share = pith_bench_share_of(report, row);
        char name[48];
        pith_bench_row_name(row, name, sizeof name);
        if (row->n_gen > 0)
            printf("| %7d | %12s | %10.2f | %7.2f | %3.0f %% |", (int)row->n_threads, name,
                   share.bytes * 1e-9, row->bandwidth * 1e-9, share.bytes_share * 100);
        else
            printf("| %7d | %12s |            |         |       |", (int)row->n_threads, name);
        printf(" %6.1f | %7.1f | %3.0f %% |\n", share.macs * 1e-9, row->int8_macs * 1e-9,
               share.macs_share * 100);
    }
}
