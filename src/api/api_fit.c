/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Before loading": checks arguments and hands over to engine/estimate.c. */
#include "api/api_argument.h"
#include "api/api_file.h"
#include "backend/rehearse.h"
#include "base/clock.h"
#include "base/pool.h"
#include "cpu/cpu.h"
#include "engine/engine.h"

#define MOST_SET ((uint64_t)256 << 20) /* more than most last caches */

enum { READ_MS = 150, PRODUCT_MS = 100, THREADS_MS = 1200 };

bool pith_device_at(size_t index, pith_device *out) {
    return out && pith_device_find(index, out);
}

static pith_status check_device(const pith_device *device, pith_error *error) {
    const double values[] = {device->bandwidth, device->int8_ops, device->app_share,
                             device->bandwidth_share, device->ops_share};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        bool is_share = i >= 2;
        double least = is_share ? 1e-6 : 1, most = is_share ? 1 : 1e24;
        if (values[i] == 0 || (values[i] >= least && values[i] <= most)) continue;
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "a figure of the device is %.9g: it must be 0 (unknown) or %g to %g",
                         values[i], least, most);
    }
    return PITH_OK;
}

pith_status pith_file_fit(const pith_file *file, const pith_fit_options *options, pith_fit *out,
                          pith_error *error) {
    pith_fit_options full;
    pith_device device;
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_fit){.architecture = "", .kv_type = ""};
    if (!file) return pith_fail_null(error, "file");
    pith_status status = pith_copy_options(&full, sizeof full, options, "pith_fit_options", error);
    if (status == PITH_OK && full.device) {
        status = pith_copy_options(&device, sizeof device, full.device, "pith_device", error);
        if (status == PITH_OK) status = check_device(&device, error);
        full.device = &device;
    }
    /* as an engine takes it */
    if (full.precision == PITH_PRECISION_FULL && full.kv_type == PITH_KV_AUTO)
        full.kv_type = PITH_KV_F32;
    if (status == PITH_OK) status = pith_estimate_file(file->gguf, &full, out, error);
    if (status != PITH_OK) *out = (pith_fit){.architecture = "", .kv_type = ""};
    return status;
}

uint64_t pith_file_content_key(const pith_file *file) {
    uint64_t key = 0;
    if (!file || !pith_gguf_is_whole(file->gguf)) return 0;
    return pith_model_file_key(file->gguf, &key, NULL) == PITH_OK ? key : 0;
}

pith_status pith_system_measure(int32_t n_threads, uint64_t working_set, pith_machine_rates *out,
                                pith_error *error) {
    uint32_t features = 0;
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_machine_rates){0};
    if (n_threads < 0 || n_threads > PITH_ENGINE_MAX_THREADS)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "n_threads is %d: it must be 0 to %d",
                         n_threads, PITH_ENGINE_MAX_THREADS);
    out->n_threads = n_threads > 0 ? n_threads : pith_thread_count();
    uint64_t size = working_set && working_set < MOST_SET ? working_set : MOST_SET;
    uint64_t available = pith_memory_available();
    if (available && size > available / 4) size = available / 4;
    pith_status status = pith_cpu_features(&features, error);
    pith_rate read = {0};
    if (status == PITH_OK)
        status = pith_probe_read(out->n_threads, &size, 1, READ_MS, &read, error);
    out->bandwidth = read.median;
    out->bandwidth_low = read.low;
    out->bandwidth_high = read.high;
    if (status == PITH_OK)
        status = pith_probe_product(out->n_threads, features, PRODUCT_MS, &out->int8_macs, error);
    return status;
}

_Static_assert((int)PITH_THREAD_RATES == (int)PITH_THREAD_COUNTS, "as many as are tried");

void pith_thread_probe_choose(pith_thread_probe *probe) {
    pith_thread_rate rates[PITH_THREAD_COUNTS];
    if (!probe) return;
    size_t n = probe->n < PITH_THREAD_COUNTS ? probe->n : PITH_THREAD_COUNTS;
    for (size_t i = 0; i < n; i++) {
        const pith_thread_rates *from = &probe->rates[i];
        rates[i] = (pith_thread_rate){
            .n_threads = from->n_threads, .read = from->bandwidth, .macs = from->int8_macs};
    }
    pith_thread_choice choice = pith_thread_choose(rates, n);
    probe->decode_threads = choice.decode;
    probe->n_threads = choice.prefill;
}

pith_status pith_system_probe_threads(pith_thread_probe *out, pith_error *error) {
    pith_thread_rate rates[PITH_THREAD_COUNTS];
    int32_t counts[PITH_THREAD_COUNTS], usual = pith_thread_count(), all = pith_cpu_count();
    uint32_t features = 0, n_rounds = 0;
    uint64_t begun = pith_clock_ns();
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_thread_probe){0};
    if (usual > PITH_ENGINE_MAX_THREADS) usual = PITH_ENGINE_MAX_THREADS;
    if (all > PITH_ENGINE_MAX_THREADS) all = PITH_ENGINE_MAX_THREADS;
    size_t n = pith_thread_candidates(usual, all, counts);
    pith_status status = pith_cpu_features(&features, error);
    if (status == PITH_OK)
        status = pith_probe_threads(features, counts, n, THREADS_MS, rates, &n_rounds, error);
    if (status != PITH_OK) return status;
    out->n = n;
    for (size_t i = 0; i < n; i++)
        out->rates[i] = (pith_thread_rates){.n_threads = rates[i].n_threads,
                                            .bandwidth = rates[i].read,
                                            .int8_macs = rates[i].macs};
    out->n_rounds = (int32_t)n_rounds;
    pith_thread_probe_choose(out);
    out->probe_ms = (double)(pith_clock_ns() - begun) * 1e-6;
    return status;
}
