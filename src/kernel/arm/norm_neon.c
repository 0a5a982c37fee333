/* SPDX-License-Identifier: Apache-2.0
 * NEON RMS and layer normalisation and the largest value: four registers hold the 16 lanes of the
 * contract (norm_ref.c). In a tail, lanes without an element must keep their sum: they add or
 * multiply zeros, and +0 changes no sum of squares; plain sums choose instead. y may be x. */
#include "kernel/arm/arm.h"
#include "kernel/arm/vector_math_neon.h"

enum { LANES = 16, QUADS = 4 };

/* How many of elements i .. i + 3 exist, of n. */
ALWAYS_INLINE uint32_t left_of(uint32_t n, uint32_t i) {
    return i < n ? n - i : 0;
}

/* v in the first n lanes, `old` in the others. */
ALWAYS_INLINE float32x4_t keep_n(float32x4_t old, float32x4_t v, uint32_t n) {
    static const uint32_t lane[4] = {0, 1, 2, 3};
    return n >= 4 ? v : ps_choose(vcltq_u32(vld1q_u32(lane), vdupq_n_u32(n)), v, old);
}

ALWAYS_INLINE void clear(float32x4_t lanes[QUADS]) {
    UNROLL for (int h = 0; h < QUADS; h++) {
        lanes[h] = ps_set(0.0f);
    }
}

void pith_rms_norm_neon(const pith_norm_args *args) {
    float32x4_t lanes[QUADS];
    uint32_t n = args->n;
    clear(lanes);
    for (uint32_t i = 0; i < n; i += LANES) UNROLL for (uint32_t h = 0; h < QUADS; h++) {
            float32x4_t x = load_n(args->x + i + 4 * h, left_of(n, i + 4 * h));
            lanes[h] = ps_fma(x, x, lanes[h]);
        }
    float32x4_t scale = ps_set(1.0f / sqrtf(ps_fold(lanes) / (float)n + args->eps));
    for (uint32_t i = 0; i < n; i += 4) {
        float32x4_t y = vmulq_f32(load_n(args->x + i, n - i), scale);
        if (args->w) y = vmulq_f32(y, load_n(args->w + i, n - i));
        store_n(args->y + i, n - i, y);
    }
}

ALWAYS_INLINE float mean_of(const float *x, uint32_t n) {
    float32x4_t lanes[QUADS];
    clear(lanes);
    for (uint32_t i = 0; i < n; i += LANES) UNROLL for (uint32_t h = 0; h < QUADS; h++) {
            uint32_t left = left_of(n, i + 4 * h);
            lanes[h] = keep_n(lanes[h], vaddq_f32(lanes[h], load_n(x + i + 4 * h, left)), left);
        }
    return ps_fold(lanes) / (float)n;
}

void pith_layer_norm_neon(const pith_norm_args *args) {
    uint32_t n = args->n;
    float32x4_t lanes[QUADS], mean = ps_set(mean_of(args->x, n));
    clear(lanes);
    for (uint32_t i = 0; i < n; i += LANES) UNROLL for (uint32_t h = 0; h < QUADS; h++) {
            uint32_t left = left_of(n, i + 4 * h);
            float32x4_t centred = vsubq_f32(load_n(args->x + i + 4 * h, left), mean);
            lanes[h] = keep_n(lanes[h], ps_fma(centred, centred, lanes[h]), left);
        }
    float32x4_t scale = ps_set(1.0f / sqrtf(ps_fold(lanes) / (float)n + args->eps));
    for (uint32_t i = 0; i < n; i += 4) {
        float32x4_t y = vmulq_f32(vsubq_f32(load_n(args->x + i, n - i), mean), scale);
        float32x4_t w = args->w ? load_n(args->w + i, n - i) : y,
                    b = args->b ? load_n(args->b + i, n - i) : y;
        if (args->w && args->b)
            y = ps_fma(y, w, b);
        else if (args->w)
            y = vmulq_f32(y, w);
        else if (args->b)
            y = vaddq_f32(y, b);
        store_n(args->y + i, n - i, y);
    }
}

/* Four maxima: one would wait for its compare and choice at every step. */
float pith_max_neon(const float *x, uint32_t n) {
    float32x4_t m[QUADS];
    float lanes[4], top = -INFINITY;
    UNROLL for (int h = 0; h < QUADS; h++) {
        m[h] = ps_set(-INFINITY);
    }
    for (uint32_t i = 0; i < n; i += LANES) UNROLL for (uint32_t h = 0; h < QUADS; h++) {
            uint32_t left = left_of(n, i + 4 * h);
            m[h] = keep_n(m[h], ps_larger(load_n(x + i + 4 * h, left), m[h]), left);
        }
    vst1q_f32(lanes, ps_larger(ps_larger(m[0], m[1]), ps_larger(m[2], m[3])));
    for (int l = 0; l < 4; l++) top = lanes[l] > top ? lanes[l] : top;
    return top + 0.0f;
}
