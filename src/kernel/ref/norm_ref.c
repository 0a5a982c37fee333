/* SPDX-License-Identifier: Apache-2.0
 * RMS and layer normalisation and the largest value, plain C: the definition (contract:
 * pith_norm_args in kernel.h). Invariant: sums run in 16 lanes, lane l taking elements i % 16 == l
 * in increasing i, then fold 8, 4, 2, 1; a vector register of any width does the same additions. */
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { LANES = 16 };

void pith_rms_norm_ref(const pith_norm_args *args) {
    float lanes[LANES] = {0};
    for (uint32_t i = 0; i < args->n; i++)
        lanes[i % LANES] = pith_fma(args->x[i], args->x[i], lanes[i % LANES]);
    float scale = 1.0f / sqrtf(pith_fold_lanes(lanes) / (float)args->n + args->eps);
    for (uint32_t i = 0; i < args->n; i++) {
        float y = args->x[i] * scale;
        args->y[i] = args->w ? y * args->w[i] : y;
    }
}

void pith_layer_norm_ref(const pith_norm_args *args) {
    float lanes[LANES] = {0};
    for (uint32_t i = 0; i < args->n; i++) lanes[i % LANES] += args->x[i];
    float mean = pith_fold_lanes(lanes) / (float)args->n;
    memset(lanes, 0, sizeof lanes);
    for (uint32_t i = 0; i < args->n; i++) {
        float centred = args->x[i] - mean;
        lanes[i % LANES] = pith_fma(centred, centred, lanes[i % LANES]);
    }
    float scale = 1.0f / sqrtf(pith_fold_lanes(lanes) / (float)args->n + args->eps);
    for (uint32_t i = 0; i < args->n; i++) {
        float y = (args->x[i] - mean) * scale;
        if (args->w && args->b)
            y = pith_fma(y, args->w[i], args->b[i]);
        else if (args->w)
            y *= args->w[i];
        else if (args->b)
            y += args->b[i];
        args->y[i] = y;
    }
}

/* Adding +0 turns -0 into +0, so that the order of comparison cannot be seen. */
float pith_max_ref(const float *x, uint32_t n) {
    float m = -INFINITY;
    for (uint32_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    return m + 0.0f;
}
