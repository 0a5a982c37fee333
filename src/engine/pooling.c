/* SPDX-License-Identifier: Apache-2.0
 * Embeddings: the final states of a text's tokens, pooled to one vector. The plan of an engine that
 * embeds ends before the output layer, so a step's rows are states; they are summed as they come
 * and never kept. Does not normalise. Read next: session.c (feeds). */
#include "engine/engine.h"

#include "base/memory.h"

#include <string.h>

typedef struct pool {
    pith_pooling pooling;
    uint32_t width;
    size_t last;   /* index of the last row */
    double *sum;   /* [width] MEAN */
    float *result; /* [width] */
} pool;

/* pith_rows: one row at a time, in order. */
static int take_state(void *user, size_t first, size_t n, const float *state) {
    pool *p = user;
    (void)n;
    if (p->pooling == PITH_POOLING_MEAN) {
        for (uint32_t i = 0; i < p->width; i++) p->sum[i] += (double)state[i];
    } else if (first == (p->pooling == PITH_POOLING_FIRST ? 0 : p->last)) {
        memcpy(p->result, state, p->width * sizeof *state);
    }
    return 0;
}

/* What the file names; where it names nothing, the mean. */
static pith_status choose(const pith_hparams *hparams, pith_pooling *pooling, pith_error *error) {
    static const pith_pooling of_file[] = {PITH_POOLING_MEAN, PITH_POOLING_MEAN, PITH_POOLING_FIRST,
                                           PITH_POOLING_LAST};
    if (*pooling != PITH_POOLING_AUTO) return PITH_OK;
    if (hparams->pooling_type >= sizeof of_file / sizeof *of_file) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the model gives scores to pairs of texts (pooling_type %u), no "
                         "embeddings",
                         hparams->pooling_type);
    }
    *pooling = of_file[hparams->pooling_type];
    return PITH_OK;
}

pith_status pith_session_pool(pith_session *session, pith_id_span ids, pith_pooling pooling,
                              float *out, pith_error *error) {
    const pith_engine *engine = session->engine;
    pith_status status = choose(&engine->model->hparams, &pooling, error);
    if (status != PITH_OK) return status;
    double *sum = pith_alloc_zero(engine->row_width, sizeof *sum);
    if (!sum) return pith_fail_memory(error, "an embedding", engine->row_width * sizeof *sum);
    pool p = {pooling, engine->row_width, ids.size - 1, sum, out};
    const pith_feed_watch watch = {.rows = take_state, .rows_user = &p};
    pith_session_cut(session, 0);
    status = pith_session_feed(session, ids.data, ids.size, &watch, error);
    for (uint32_t i = 0; pooling == PITH_POOLING_MEAN && i < p.width; i++)
        out[i] = (float)(sum[i] / (double)ids.size);
    pith_free(sum);
    return status;
}
