/* SPDX-License-Identifier: Apache-2.0
 * The account of memory before loading: weights, KV, workspace, vocabulary and program, the limit
 * that they are held against, and what would make them fit.
 *
 * Where this build runs the file its own plan is measured (pith_engine_measure), so that the
 * account is the one that an engine would make. Elsewhere weights are the tensors, KV follows from
 * the keys, and the workspace is a guess from the widths; the notes say so. Mapped weights are not
 * counted against the limit: they are pages of a file, which the system drops when it must.
 * Read next: estimate.c. */
#include "base/clock.h"
#include "base/memory.h"
#include "engine/estimate.h"

double pith_estimate_kv_element_bytes(pith_kv_type type) {
    static const double each[] = {
        [PITH_KV_AUTO] = 2, [PITH_KV_F32] = 4, [PITH_KV_F16] = 2, [PITH_KV_INT8] = 1.0625};
    return each[type]; /* int8: a scale of four bytes for the 64 elements of a head */
}

/* Sums of what a file claims can be beyond any memory: they stay the largest number. */
static uint64_t whole_bytes(double bytes) {
    const double most = 9.2e18; /* below 2^63, so that readers with signed numbers take it too */
    return !(bytes > 0) ? 0 : (uint64_t)(bytes < most ? bytes : most);
}

/* KV and workspace for a context. */
typedef struct need {
    double kv, workspace;
} need;

typedef struct asking {
    const pith_model *outline;
    const pith_work *work;
    const pith_fit_options *options;
    pith_fit *out;
} asking;

static pith_status measure(const asking *a, int32_t n_ctx, pith_kv_type kv, need *out,
                           pith_error *error) {
    const pith_fit_options *o = a->options;
    if (!a->outline) {
        double rows = o->step_limit > 0 ? o->step_limit : PITH_ENGINE_DEFAULT_STEP;
        out->kv = a->work->kv_elements * pith_estimate_kv_element_bytes(kv) * n_ctx;
        out->workspace = rows * a->work->n_embd * 4.0 * 12 + (double)a->work->n_vocab * 4 * 9;
        return PITH_OK;
    }
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = n_ctx,
                                   .n_sessions = 1,
                                   .n_threads = o->n_threads,
                                   .step_limit = o->step_limit,
                                   .kv_type = kv,
                                   .precision = o->precision};
    pith_engine_info info;
    pith_status status = pith_engine_measure_parts(a->outline, &options, &info, error);
    out->kv = (double)info.kv_bytes;
    out->workspace = (double)info.workspace_bytes;
    return status;
}

/* Program, libraries, threads and vocabulary. Measured on Linux with four models whose headers
 * have 1.8 to 6.5 MB: 8.2 MB, and 4.1 times the header, which is the mapped header, the tokenizer's
 * tables and what making them took. */
static double other_bytes(const pith_work *work) {
    return 8.2e6 + 4.1 * (double)work->header_bytes;
}

/* What weights, KV and workspace may take. */
static uint64_t limit_of(const pith_fit_options *options, double other) {
    double limit = 0;
    if (options->device) {
        double share = options->device->app_share > 0 ? options->device->app_share : 0.7;
        limit = (double)options->device->memory_bytes * share;
    } else {
        limit = (double)pith_memory_available();
    }
    limit = limit > other ? limit - other : limit > 0 ? 1 : 0;
    if (options->memory_limit && (limit <= 0 || (double)options->memory_limit < limit))
        limit = (double)options->memory_limit;
    return whole_bytes(limit);
}

/* Whether a context fits; weights: bytes that count. */
static bool fits(const asking *a, int32_t n_ctx, pith_kv_type kv, double weights) {
    need n = {0, 0};
    if (measure(a, n_ctx, kv, &n, NULL) != PITH_OK) return false;
    return a->out->limit_bytes == 0 || weights + n.kv + n.workspace <= (double)a->out->limit_bytes;
}

/* The longest context, in steps of 64 tokens, that fits; 0: none. */
static int32_t longest(const asking *a, pith_kv_type kv, double weights) {
    int32_t most = a->out->n_ctx_train > 0 ? a->out->n_ctx_train : a->out->n_ctx;
    if (fits(a, most, kv, weights)) return most;
    int32_t low = 0, high = most / 64 + 1; /* in units of 64: low fits (or is 0), high does not */
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (fits(a, middle * 64, kv, weights))
            low = middle;
        else
            high = middle;
    }
    return low * 64;
}

static void list_contexts(const asking *a, double weights) {
    static const int32_t wanted[] = {2048, 4096, 8192, 16384, 32768, 65536, 131072};
    pith_fit *out = a->out;
    int32_t last = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] + 1; i++) {
        bool is_end = i == sizeof wanted / sizeof wanted[0];
        int32_t n_ctx = is_end ? out->n_ctx_train : wanted[i];
        if (n_ctx <= last || (out->n_ctx_train > 0 && n_ctx > out->n_ctx_train)) continue;
        need n = {0, 0};
        if (measure(a, n_ctx, a->options->kv_type, &n, NULL) != PITH_OK) continue;
        if (out->n_contexts == PITH_FIT_CONTEXTS) return;
        out->contexts[out->n_contexts++] = (pith_fit_context){
            n_ctx, whole_bytes(n.kv),
            out->limit_bytes == 0 || weights + n.kv + n.workspace <= (double)out->limit_bytes};
        last = n_ctx;
    }
}

static void advise(const asking *a, double weights) {
    pith_fit *out = a->out;
    double room = (double)out->limit_bytes - (double)out->kv_bytes - (double)out->workspace_bytes;
    out->longest_ctx = longest(a, a->options->kv_type, weights);
    out->longest_ctx_int8 = longest(a, PITH_KV_INT8, weights);
    out->longest_ctx_mmap = longest(a, a->options->kv_type, 0);
    if (out->n_parameters > 0 && out->limit_bytes > 0 && room > 0)
        out->bits_allowed = room * 8 / (double)out->n_parameters;
    list_contexts(a, weights);
}

/* pack where the weights leave room in what the system has, as a load decides, and where all
 * together stays below a ceiling. */
static pith_load choose_load(const pith_fit_options *options, const pith_fit *out, double weights,
                             double others) {
    if (options->load != PITH_LOAD_AUTO) return options->load;
    double limit = (double)out->limit_bytes, ceiling = (double)options->memory_limit;
    if (ceiling > 0 && weights + others > ceiling) return PITH_LOAD_MMAP;
    bool is_tight = ceiling <= 0 && limit > 0 && !pith_weights_leave_room(weights, limit);
    return is_tight ? PITH_LOAD_MMAP : PITH_LOAD_PACK;
}

pith_status pith_estimate_memory(const pith_model *outline, const pith_work *work,
                                 const pith_fit_options *options, pith_fit *out,
                                 pith_error *error) {
    asking a = {outline, work, options, out};
    need n = {0, 0};
    double other = other_bytes(work);
    double weights = (double)(outline ? pith_weights_bytes(outline->weights) : work->tensor_bytes);
    out->other_bytes = whole_bytes(other);
    out->limit_bytes = limit_of(options, other);
    out->weight_bytes = whole_bytes(weights);
    pith_status status = measure(&a, out->n_ctx, options->kv_type, &n, error);
    if (status != PITH_OK) return status;
    out->kv_bytes = whole_bytes(n.kv);
    out->workspace_bytes = whole_bytes(n.workspace);
    out->load = choose_load(options, out, weights, n.kv + n.workspace);
    out->total_bytes = whole_bytes(weights + n.kv + n.workspace + other);
    double counted = out->load == PITH_LOAD_PACK ? weights : 0;
    out->fits = out->limit_bytes == 0 || counted + n.kv + n.workspace <= (double)out->limit_bytes;
    advise(&a, counted);
    return PITH_OK;
}
