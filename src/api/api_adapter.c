/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Adapters". Opening is model/adapter.c, what a session does with them
 * engine/session_adapters.c. */
#include "api/api_argument.h"
#include "cpu/cpu.h"
#include "engine/engine.h"

_Static_assert((int)PITH_ADAPTER_MAX_RANK == (int)PITH_DELTA_MAX_RANK, "pith.h tells the limit");
_Static_assert((int)PITH_SESSION_MAX_ADAPTERS == (int)PITH_ADAPTERS_MAX, "pith.h tells the limit");

pith_status pith_adapter_open(const pith_model *model, const char *path,
                              const pith_adapter_options *options, pith_adapter **out,
                              pith_error *error) {
    pith_adapter_options full;
    uint32_t features = 0;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!model) return pith_fail_null(error, "model");
    if (!path) return pith_fail_null(error, "path");
    pith_status status =
        pith_copy_options(&full, sizeof full, options, "pith_adapter_options", error);
    if (status == PITH_OK) status = pith_cpu_features(&features, error);
    if (status != PITH_OK) return status;
    return pith_adapter_load(model, path, &full, features, out, error);
}

void pith_adapter_free(pith_adapter *adapter) {
    pith_adapter_release(adapter);
}

pith_adapter_info pith_adapter_describe(const pith_adapter *adapter) {
    if (!adapter) return (pith_adapter_info){.name = "", .task = "", .prompt_prefix = ""};
    return pith_adapter_get_info(adapter);
}

pith_status pith_session_set_adapters(pith_session *session, pith_adapter *const *adapters,
                                      const float *scales, size_t n, pith_error *error) {
    if (!session) return pith_fail_null(error, "session");
    if (n > 0 && !adapters) return pith_fail_null(error, "adapters");
    for (size_t i = 0; i < n; i++)
        if (!adapters[i]) return pith_fail_null(error, "an adapter");
    return pith_session_adapt(session, adapters, scales, n, error);
}

bool pith_session_adapter_at(const pith_session *session, size_t index,
                             const pith_adapter **adapter, float *scale) {
    if (!session || index >= session->adapters.n) return false;
    if (adapter) *adapter = session->holders[index];
    if (scale) *scale = session->adapters.scale[index];
    return true;
}
