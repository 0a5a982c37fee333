/* SPDX-License-Identifier: Apache-2.0
 * Settings and account of an engine (private to the engine room): options become numbers, numbers
 * become bytes, bytes are held against the ceiling. Steps in the order in which engine.c takes
 * them. */
#ifndef PITH_ENGINE_ENGINE_ACCOUNT_H
#define PITH_ENGINE_ENGINE_ACCOUNT_H

#include "engine/engine.h"

/* Applies defaults and limits: n_ctx, n_sessions, step_limit, storage, backend options without
 * the layout. */
pith_status pith_engine_settle(pith_engine *engine, const pith_engine_options *options,
                               pith_error *error);
/* The KV layout of the model's layers. */
pith_status pith_engine_lay_out(pith_engine *engine, pith_error *error);
/* Fills kv_bytes, workspace_bytes and cache_bytes for what was settled. */
pith_status pith_engine_account(pith_engine *engine, pith_error *error);
/* Refuses with both numbers and with what would fit. limit 0: what the system can give. */
pith_status pith_engine_check_ceiling(const pith_engine *engine, uint64_t limit, pith_error *error);
/* Does without a cache folder when its buffers would break the ceiling; limit as above. */
void pith_engine_fit_cache(pith_engine *engine, uint64_t limit);
/* Bytes of the engine's own arrays. */
uint64_t pith_engine_array_bytes(const pith_engine *engine);

#endif
