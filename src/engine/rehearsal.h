/* SPDX-License-Identifier: Apache-2.0
 * A rehearsal: the model's own plan is run on this machine with made-up weights, so that speeds
 * are known before a weight is read (private to the engine room). Read next: rehearsal.c. */
#ifndef PITH_ENGINE_REHEARSAL_H
#define PITH_ENGINE_REHEARSAL_H

#include "engine/engine.h"

typedef struct pith_rehearsal {
    pith_speed_model speed;
    double fill_rate; /* bytes a second at which fresh memory is written */
} pith_rehearsal;

/* outline: made by pith_model_outline; its weights are used up. options: as for
 * pith_engine_open. */
pith_status pith_rehearse(const pith_model *outline, pith_load load,
                          const pith_engine_options *options, pith_rehearsal *out,
                          pith_error *error);

#endif
