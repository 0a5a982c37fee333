/* SPDX-License-Identifier: Apache-2.0
 * The estimate: sizes from the header, speeds from a rehearsal on this machine, or from figures of
 * a device, or, for an architecture that this build does not run, from what this machine reads and
 * multiplies.
 *
 *   decode   ceiling = bandwidth / bytes per token; realistic = the rehearsal's token, or the
 *            usual share of the ceiling. Memory's speed changes with what others do: it is probed
 *            before and after the rehearsal, and a token at another bandwidth takes
 *            the rehearsal's time + READ_SHARE * bytes * (1 / bandwidth - 1 / the rehearsal's)
 *   prompt   the rehearsal's steps, or multiply-adds / (rate * usual share)
 *
 * Invariant: out is whole after success, unknown figures are 0, and what was assumed is a note.
 * Read next: rehearsal.c, estimate_memory.c. */
#include "engine/estimate.h"

#include "backend/rehearse.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cpu/cpu.h"
#include "engine/rehearsal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SET ((uint64_t)16 << 20)
#define MOST_SET  ((uint64_t)256 << 20) /* beyond it bandwidth is main memory's */

enum { READ_MS = 60, PRODUCT_MS = 45 };

/* Reading and multiplying overlap in part: measured 0.76 to 0.86 with three models whose bandwidth
 * halved (docs/decisions/0031-memory-speed-changes.md). */
static const double read_share = 0.8;
/* Threads that got less of their time were disturbed. */
static const double least_had = 0.9;

static const double default_bandwidth_share = 0.7, default_ops_share = 0.4;

void pith_estimate_note(pith_fit *out, const char *text) {
    size_t used = strlen(out->notes), size = strlen(text);
    if (used + size + 2 > sizeof out->notes) return;
    if (used > 0) out->notes[used++] = '\n';
    memcpy(out->notes + used, text, size + 1);
}

/* ---- The model of steps ---- */

static double attended(const pith_speed_model *m, double depth) {
    double share = m->window > 0 ? m->window_layers_share : 0;
    double seen = m->window > 0 && depth > m->window ? m->window : depth;
    return depth * (1 - share) + seen * share;
}

double pith_speed_token_ms(const pith_speed_model *model, int32_t depth) {
    if (!model || depth < 0) return 0;
    return (model->token_ns + model->token_kv_ns * attended(model, depth)) * 1e-6;
}

double pith_fit_token_ms(const pith_fit *fit, int32_t depth, double bandwidth) {
    double ms = fit ? pith_speed_token_ms(&fit->speed, depth) : 0;
    if (ms <= 0 || !fit->measured || !(bandwidth > 0) || !(fit->bandwidth > 0)) return ms;
    double bytes = fit->token_bytes + fit->context_token_bytes * attended(&fit->speed, depth);
    double more = read_share * bytes * (1 / bandwidth - 1 / fit->bandwidth) * 1e3;
    double least = ms * (1 - read_share); /* a bandwidth beyond all that the token asks for */
    return ms + more > least ? ms + more : least;
}

/* A step of n rows: straight lines between one token, a short step and a full one. */
static double step_ns(const pith_speed_model *m, int32_t n) {
    double x = n, x0 = 1, y0 = m->token_ns, x1 = m->short_rows, y1 = m->short_ns;
    if (n > m->short_rows && m->step_rows > m->short_rows)
        x0 = x1, y0 = y1, x1 = m->step_rows, y1 = m->step_ns;
    if (x1 <= x0) return y1;
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/* first, first + by, first + 2 * by ... added up: n of them */
static double series(double first, double by, double n) {
    return n * first + by * n * (n - 1) / 2;
}

/* What n rows of equal steps see on average, added up; `first`: tokens before the average row of
 * the first step, `by`: rows of a step. Steps whose rows see more than a window count what lies
 * beyond it. */
static double attended_steps(const pith_speed_model *m, double first, double by, double n) {
    double all = series(first, by, n), beyond = first - m->window, within = 0;
    if (m->window <= 0) return all;
    if (beyond < 0) within = ceil(-beyond / by);
    if (within < n) all -= m->window_layers_share * series(beyond + within * by, by, n - within);
    return all;
}

double pith_speed_prompt_ms(const pith_speed_model *model, int32_t n_prompt, int32_t depth) {
    if (!model || n_prompt <= 0 || depth < 0 || model->short_rows <= 0 || model->step_rows <= 0)
        return 0;
    int32_t rows = model->step_rows, n = n_prompt / rows, rest = n_prompt % rows;
    double middle = depth + (rows - 1) / 2.0; /* tokens before the average row */
    double ns =
        n * step_ns(model, rows) + model->row_kv_ns * rows * attended_steps(model, middle, rows, n);
    middle = (double)depth + (double)n * rows + (rest - 1) / 2.0;
    if (rest > 0) ns += step_ns(model, rest) + model->row_kv_ns * rest * attended(model, middle);
    return ns * 1e-6;
}

/* ---- Speeds from figures ---- */

void pith_estimate_by_figures(const pith_device *device, const pith_work *work, pith_fit *out) {
    double share = device->bandwidth_share > 0 ? device->bandwidth_share : default_bandwidth_share;
    double ops_share = device->ops_share > 0 ? device->ops_share : default_ops_share;
    double read = device->bandwidth * share, macs = device->int8_ops / 2 * ops_share;
    out->bandwidth = device->bandwidth;
    out->int8_macs = device->int8_ops / 2;
    if (read <= 0) return;
    out->decode_ceiling = work->token_bytes > 0 ? device->bandwidth / work->token_bytes : 0;
    pith_speed_model *m = &out->speed;
    m->token_ns = work->token_bytes / read * 1e9;
    m->token_kv_ns = out->context_token_bytes / read * 1e9;
    if (macs <= 0) return;
    /* A step is bound by its products or by one pass over the weights. */
    double row = work->layer_macs / macs * 1e9;
    m->short_rows = 32;
    m->step_rows = PITH_ENGINE_DEFAULT_STEP;
    m->short_ns = m->short_rows * row > m->token_ns ? m->short_rows * row : m->token_ns;
    m->step_ns = m->step_rows * row > m->token_ns ? m->step_rows * row : m->token_ns;
    /* q.k and p.v: two products of a KV element and the heads that share it; unknown heads: 4. */
    double kv = out->kv_bytes > 0 ? work->kv_elements : 0;
    m->row_kv_ns = kv * 4 / macs * 1e9;
}

/* ---- This machine ---- */

/* What this machine reads, at about the size of the weights. */
static pith_status probe_read(const pith_fit *fit, pith_rate *rate, pith_error *error) {
    uint64_t set = fit->weight_bytes;
    uint64_t size = set < LEAST_SET ? LEAST_SET : set > MOST_SET ? MOST_SET : set;
    uint64_t available = pith_memory_available();
    if (available && size > available / 4) size = available / 4;
    return pith_probe_read(fit->n_threads, &size, 1, READ_MS, rate, error);
}

static pith_status probe_product(int32_t n_threads, double *rate, pith_error *error) {
    uint32_t features = 0;
    pith_status status = pith_cpu_features(&features, error);
    if (status != PITH_OK) return status;
    return pith_probe_product(n_threads, features, PRODUCT_MS, rate, error);
}

/* Before and after: the rehearsal lies between them. */
static void join_rates(const pith_rate *before, const pith_rate *after, pith_fit *out) {
    out->bandwidth = (before->median + after->median) / 2;
    out->bandwidth_low = before->low < after->low ? before->low : after->low;
    out->bandwidth_high = before->high > after->high ? before->high : after->high;
    double had = before->had < after->had ? before->had : after->had;
    if (had <= 0 || had >= least_had) return;
    char line[160];
    snprintf(
        line, sizeof line,
        "other work took %.0f %% of the processors' time while this was measured: run it again "
        "when nothing else is running",
        (1 - had) * 100);
    pith_estimate_note(out, line);
}

/* Bytes a second at which parts of the file's tensors are read: the best of three, so that a
 * neighbour's burst does not decide; 0 when unknown. */
static double file_rate(const pith_gguf *gguf) {
    enum { PIECE = 1 << 20, N_PARTS = 3, PART_PIECES = 4 };
    pith_source *source = pith_gguf_source(gguf, 0);
    uint64_t size = pith_source_size(source), most = (uint64_t)2 * N_PARTS * PART_PIECES * PIECE;
    uint8_t *buffer = pith_gguf_is_whole(gguf) && size >= most ? pith_alloc(PIECE) : NULL;
    double best = 0;
    for (uint64_t part = 0; buffer && part < N_PARTS; part++) {
        uint64_t begun = pith_clock_ns(), at = size / (N_PARTS + 1) * (part + 1);
        bool whole = true;
        for (int i = 0; i < PART_PIECES && whole; i++, at += PIECE)
            whole = at + PIECE <= size && pith_source_read(source, at, buffer, PIECE, NULL) == 0;
        double rate = (double)PART_PIECES * PIECE / ((double)(pith_clock_ns() - begun) + 1) * 1e9;
        if (whole && rate > best) best = rate;
    }
    pith_free(buffer);
    return best;
}

/* Reading, packing and fresh memory; threads read and pack beside each other. Packing costs some
 * 0.6 readings from the page cache. Mapping costs nothing before the first token. */
static void estimate_load(const pith_gguf *gguf, double fill_rate, pith_fit *out) {
    double rate = file_rate(gguf), bytes = (double)out->weight_bytes;
    if (out->load == PITH_LOAD_MMAP) return;
    out->load_ms =
        rate <= 0 || fill_rate <= 0
            ? 0
            : out->load_ms + bytes * (1.6 / (rate * out->n_threads) + 0.5 / fill_rate) * 1e3;
}

/* What the rehearsal read a second is a lower bound of what can be read, also where a neighbour
 * disturbed the probe. */
static void raise_ceiling(pith_fit *out) {
    double token_s = out->speed.token_ns * 1e-9;
    if (token_s <= 0 || out->token_bytes <= out->bandwidth * token_s) return;
    out->bandwidth = out->token_bytes / token_s;
    out->decode_ceiling = 1 / token_s;
    if (out->bandwidth_high < out->bandwidth) out->bandwidth_high = out->bandwidth;
}

static pith_status rehearse(const pith_gguf *gguf, const pith_model *outline,
                            const pith_fit_options *options, pith_fit *out, pith_error *error) {
    pith_rehearsal rehearsal = {0};
    pith_engine_options engine = {.size = sizeof engine,
                                  .n_threads = out->n_threads,
                                  .decode_threads = options->decode_threads,
                                  .step_limit = options->step_limit,
                                  .kv_type = options->kv_type,
                                  .precision = options->precision};
    pith_status status = pith_rehearse(outline, out->load, &engine, &rehearsal, error);
    out->speed = rehearsal.speed;
    out->measured = status == PITH_OK;
    estimate_load(gguf, rehearsal.fill_rate, out);
    return status;
}

static pith_status measure_here(const pith_gguf *gguf, const pith_model *outline,
                                const pith_fit_options *options, const pith_work *work,
                                pith_fit *out, pith_error *error) {
    pith_rate before, after;
    uint64_t begun = pith_clock_ns();
    pith_status status = probe_read(out, &before, error);
    if (status == PITH_OK) status = probe_product(out->n_threads, &out->int8_macs, error);
    if (status == PITH_OK && outline) status = rehearse(gguf, outline, options, out, error);
    if (status == PITH_OK) status = probe_read(out, &after, error);
    if (status != PITH_OK) return status;
    join_rates(&before, &after, out);
    out->decode_ceiling = work->token_bytes > 0 ? out->bandwidth / work->token_bytes : 0;
    if (outline) {
        raise_ceiling(out);
    } else {
        pith_device here = {.bandwidth = out->bandwidth, .int8_ops = out->int8_macs * 2};
        double macs = out->int8_macs;
        pith_estimate_by_figures(&here, work, out);
        out->int8_macs = macs;
        out->load_ms = 0;
    }
    out->probe_ms = (double)(pith_clock_ns() - begun) * 1e-6;
    return status;
}

/* ---- Putting it together ---- */

static void describe(const pith_gguf *gguf, const pith_work *work, pith_fit *out) {
    pith_span text = {"", 0};
    bool found = false;
    pith_status status = pith_gguf_get_string(gguf, "general.architecture", &text, &found, NULL);
    out->architecture = status == PITH_OK && found ? text.data : "";
    out->whole = pith_gguf_is_whole(gguf);
    out->n_parameters = work->n_parameters;
    out->file_bytes = pith_gguf_total_bytes(gguf);
    out->n_ctx_train = (int32_t)(work->n_ctx_train < INT32_MAX ? work->n_ctx_train : INT32_MAX);
    out->token_bytes = work->token_bytes;
    out->token_macs = work->layer_macs + work->output_macs;
    out->output_macs = work->output_macs;
    if (work->n_parameters > 0)
        out->bits_per_weight = (double)work->tensor_bytes * 8 / (double)work->n_parameters;
}

/* As the engine settles them. */
static pith_status settle(const pith_fit_options *options, pith_fit *out, pith_error *error) {
    static const char *const kv_names[] = {[PITH_KV_AUTO] = "f16",
                                           [PITH_KV_F32] = "f32",
                                           [PITH_KV_F16] = "f16",
                                           [PITH_KV_INT8] = "int8"};
    if ((int)options->kv_type < PITH_KV_AUTO || options->kv_type > PITH_KV_INT8 ||
        (int)options->load < PITH_LOAD_AUTO || options->load > PITH_LOAD_MMAP ||
        (int)options->precision < PITH_PRECISION_NORMAL || options->precision > PITH_PRECISION_FULL)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "load %d, kv_type %d or precision %d is none",
                         options->load, options->kv_type, options->precision);
    if (options->n_ctx < 0 || options->n_threads < 0 || options->step_limit < 0 ||
        options->decode_threads < 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "n_ctx, n_threads, decode_threads or step_limit is negative");
    int32_t most = out->n_ctx_train, usual = PITH_ENGINE_DEFAULT_CONTEXT;
    out->n_ctx = options->n_ctx > 0 ? options->n_ctx : most > 0 && most < usual ? most : usual;
    if (most > 0 && out->n_ctx > most)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "a context of %d tokens was asked for, but the model was trained for %d",
                         out->n_ctx, most);
    out->n_threads = options->n_threads > 0 ? options->n_threads : pith_thread_count();
    out->kv_type = kv_names[options->kv_type];
    return PITH_OK;
}

static void count_kv(const pith_model *outline, pith_work *work) {
    pith_kv_shape shapes[PITH_MODEL_MAX_LAYERS];
    if (!outline) return;
    work->kv_elements = 0;
    work->kv_is_guess = false;
    pith_model_kv_shapes(outline, shapes);
    for (uint32_t i = 0; i < outline->hparams.n_layer; i++)
        work->kv_elements +=
            (double)shapes[i].n_head_kv * (shapes[i].head_dim + shapes[i].head_dim_v);
}

static void tell_assumptions(const pith_gguf *gguf, const pith_model *outline,
                             const pith_error *why, const pith_work *work, pith_fit *out) {
    char line[320];
    if (!outline) {
        snprintf(line, sizeof line,
                 "this build does not run the file (%.160s): sizes are those of its tensors and "
                 "keys, speeds are the usual share of what the device reads and multiplies",
                 why->text);
        pith_estimate_note(out, line);
    }
    if (work->kv_elements <= 0)
        pith_estimate_note(out, "the keys do not tell the size of the KV cache");
    uint32_t count = 1;
    bool found = false; /* a count that is none, or too large a one, is one part as well */
    pith_status status =
        pith_gguf_get_u32(gguf, "split.count", 0, PITH_GGUF_MAX_SHARDS, &count, &found, NULL);
    if (status != PITH_OK || count > pith_gguf_n_shards(gguf))
        pith_estimate_note(out,
                           "this is one part of a split model: the other parts are not counted");
}

pith_status pith_estimate_file(const pith_gguf *gguf, const pith_fit_options *options,
                               pith_fit *out, pith_error *error) {
    pith_work work;
    pith_model *outline = NULL;
    pith_error why = {0};
    uint32_t features = 0;
    *out = (pith_fit){.architecture = "", .kv_type = ""};
    pith_estimate_count_work(gguf, &work);
    describe(gguf, &work, out);
    pith_status status = settle(options, out, error);
    if (status == PITH_OK) status = pith_cpu_features(&features, error);
    if (status != PITH_OK) return status;
    pith_load load = options->load == PITH_LOAD_MMAP ? PITH_LOAD_MMAP : PITH_LOAD_PACK;
    uint64_t begun = pith_clock_ns();
    status = pith_model_outline(gguf, load, features, &outline, &why);
    out->load_ms =
        (double)(pith_clock_ns() - begun) * 1e-6; /* vocabulary and keys; weights follow */
    if (status == PITH_ERROR_MEMORY) return pith_fail(error, status, "%s", why.text);
    out->runs = status == PITH_OK;
    count_kv(outline, &work);
    tell_assumptions(gguf, outline, &why, &work, out);
    status = pith_estimate_memory(outline, &work, options, out, error);
    out->context_token_bytes = work.kv_elements * pith_estimate_kv_element_bytes(options->kv_type);
    if (options->device || options->no_probe) out->load_ms = 0; /* it would be this machine's */
    if (status == PITH_OK && options->device)
        pith_estimate_by_figures(options->device, &work, out);
    else if (status == PITH_OK && !options->no_probe)
        status = measure_here(gguf, outline, options, &work, out, error);
    pith_model_free(outline);
    return status;
}
