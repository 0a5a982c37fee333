/* SPDX-License-Identifier: Apache-2.0
 * --memory is one ceiling over weights, KV, workspace and adapters: the sum is known from headers
 * and sizes of files and refused before a weight is read, with what would make it fit. With --load
 * auto the file is mapped where packed weights would break the ceiling; mapped pages are the
 * system's to drop and do not count.
 *
 * Invariant: what this file can't judge (a broken file, a model that this build does not run, a
 * context that the model does not allow) is left to the steps that follow, which tell it better. */
#include "base/memory.h"
#include "pith/machine_record.h"
#include "pith/reply_option.h"

#include <math.h>

static double mib(double bytes) {
    return bytes / 1048576.0;
}

/* What would make it fit, one after the other. */
static void advise(const pith_fit *fit, pith_buffer *out) {
    if (fit->longest_ctx > 0)
        pith_buffer_append_format(out, "a context of %d tokens fits (--ctx); ",
                                  (int)fit->longest_ctx);
    if (fit->longest_ctx_int8 > fit->longest_ctx)
        pith_buffer_append_format(out, "with --kv int8 a context of %d fits; ",
                                  (int)fit->longest_ctx_int8);
    if (fit->load == PITH_LOAD_PACK && fit->longest_ctx_mmap > fit->longest_ctx)
        pith_buffer_append_format(out, "with --load mmap a context of %d fits; ",
                                  (int)fit->longest_ctx_mmap);
    if (fit->load == PITH_LOAD_PACK && fit->bits_allowed > 1)
        pith_buffer_append_format(out, "weights of at most %.1f bits each fit (these have %.1f); ",
                                  fit->bits_allowed, fit->bits_per_weight);
    if (out->size > 0) pith_buffer_append_format(out, "or ");
}

static int refuse(const pith_cli_model *values, const pith_fit *fit) {
    double weights = fit->load == PITH_LOAD_PACK ? (double)fit->weight_bytes : 0;
    double adapters = (double)pith_cli_adapter_bytes(values);
    double sum = weights + (double)fit->kv_bytes + (double)fit->workspace_bytes + adapters;
    pith_buffer text = {0}, more = {0};
    advise(fit, &text);
    if (adapters > 0) pith_buffer_append_format(&more, " + adapters %.1f", mib(adapters));
    /* Down and up, so that what is allowed never reads as what is needed. */
    double allowed = floor(10 * mib((double)values->memory)) / 10,
           needed = ceil(10 * mib(sum)) / 10;
    int code = pith_cli_fail_text(
        "--memory allows %.1f MiB, but weights %.1f + KV of %d tokens %.1f + workspace %.1f%s = "
        "%.1f MiB are needed; %sgive more memory",
        allowed, mib(weights), (int)fit->n_ctx, mib((double)fit->kv_bytes),
        mib((double)fit->workspace_bytes), more.data && !more.failed ? more.data : "", needed,
        text.data && !text.failed ? text.data : "");
    pith_buffer_deinit(&text);
    pith_buffer_deinit(&more);
    return code;
}

int pith_cli_plan_memory(const pith_cli_model *values, const char *path, pith_load *load) {
    pith_file *file = NULL;
    pith_fit fit;
    if (!values->memory) return -1;
    uint64_t adapters = pith_cli_adapter_bytes(values);
    if (adapters >= values->memory)
        return pith_cli_fail_text("--memory allows %llu bytes, but the adapters alone need %llu",
                                  (unsigned long long)values->memory, (unsigned long long)adapters);
    pith_fit_options options = {.size = sizeof options,
                                .n_ctx = values->n_ctx ? values->n_ctx : values->n_ctx_wanted,
                                .n_threads = pith_cli_thread_defaults(values->n_threads).n_threads,
                                .step_limit = values->step_limit,
                                .load = (pith_load)values->load,
                                .kv_type = (pith_kv_type)values->kv,
                                .memory_limit = values->memory - adapters,
                                .no_probe = true,
                                .precision = (pith_precision)values->precision};
    bool known = pith_file_open(path, &file, NULL) == PITH_OK &&
                 pith_file_fit(file, &options, &fit, NULL) == PITH_OK && fit.runs;
    int code = -1;
    if (known && !fit.fits) code = refuse(values, &fit);
    if (known && fit.fits && values->load == PITH_LOAD_AUTO && fit.load == PITH_LOAD_MMAP) {
        fprintf(stderr,
                "note: %.0f MiB of packed weights with KV and workspace are over --memory: the "
                "file is mapped and used in place\n",
                mib((double)fit.weight_bytes));
        *load = PITH_LOAD_MMAP;
    }
    pith_file_close(file);
    return code;
}
