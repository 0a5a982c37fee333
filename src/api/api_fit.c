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

enum { READ_MS = 150, PRODUCT_MS = 100 };

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
    if (status == PITH_OK)
        status = pith_probe_read(out->n_threads, &size, 1, READ_MS, &out->bandwidth, error);
    if (status == PITH_OK)
        status = pith_probe_product(out->n_threads, features, PRODUCT_MS, &out->int8_macs, error);
    return status;
}
