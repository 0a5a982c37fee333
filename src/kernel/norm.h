/* SPDX-License-Identifier: Apache-2.0
 * RMS and layer normalisation and the largest value. One source for all tiers: the file that
 * includes this has included the vectors of its tier (x86/vector_math_avx2.h, ...) before. N_VEC
 * vectors hold the 16 lanes of the contract (ref/norm_ref.c). In a tail, lanes without an element
 * must keep their sum: in sums of squares they add zeros, which changes nothing; plain sums choose
 * instead. y may be x. */
#ifndef PITH_KERNEL_NORM_H
#define PITH_KERNEL_NORM_H

#include "kernel/kernel.h"

ALWAYS_INLINE void fill(vec lanes[N_VEC], float value) {
    UNROLL for (int h = 0; h < N_VEC; h++) {
        lanes[h] = vec_set(value);
    }
}

ALWAYS_INLINE vec scale_of(const vec squares[N_VEC], const pith_norm_args *args) {
    return vec_set(1.0f / sqrtf(vec_fold(squares) / (float)args->n + args->eps));
}

ALWAYS_INLINE void rms_norm(const pith_norm_args *args) {
    vec lanes[N_VEC];
    uint32_t n = args->n;
    fill(lanes, 0.0f);
    for (uint32_t i = 0; i < n; i += 16) UNROLL for (uint32_t h = 0; h < N_VEC; h++) {
            const uint32_t at = i + VEC_LANES * h;
            vec x = load_n(args->x + at, left_of(n, at));
            lanes[h] = vec_fma(x, x, lanes[h]);
        }
    vec scale = scale_of(lanes, args);
    for (uint32_t i = 0; i < n; i += VEC_LANES) {
        vec y = vec_mul(load_n(args->x + i, n - i), scale);
        if (args->w) y = vec_mul(y, load_n(args->w + i, n - i));
        store_n(args->y + i, n - i, y);
    }
}

ALWAYS_INLINE vec mean_of(const float *x, uint32_t n) {
    vec lanes[N_VEC];
    fill(lanes, 0.0f);
    for (uint32_t i = 0; i < n; i += 16) UNROLL for (uint32_t h = 0; h < N_VEC; h++) {
            const uint32_t at = i + VEC_LANES * h, left = left_of(n, at);
            lanes[h] = vec_keep_n(lanes[h], vec_add(lanes[h], load_n(x + at, left)), left);
        }
    return vec_set(vec_fold(lanes) / (float)n);
}

ALWAYS_INLINE void layer_norm(const pith_norm_args *args) {
    uint32_t n = args->n;
    vec lanes[N_VEC], mean = mean_of(args->x, n);
    fill(lanes, 0.0f);
    for (uint32_t i = 0; i < n; i += 16) UNROLL for (uint32_t h = 0; h < N_VEC; h++) {
            const uint32_t at = i + VEC_LANES * h, left = left_of(n, at);
            vec centred = vec_sub(load_n(args->x + at, left), mean);
            lanes[h] = vec_keep_n(lanes[h], vec_fma(centred, centred, lanes[h]), left);
        }
    vec scale = scale_of(lanes, args);
    for (uint32_t i = 0; i < n; i += VEC_LANES) {
        vec y = vec_mul(vec_sub(load_n(args->x + i, n - i), mean), scale);
        vec w = args->w ? load_n(args->w + i, n - i) : y,
            b = args->b ? load_n(args->b + i, n - i) : y;
        if (args->w && args->b)
            y = vec_fma(y, w, b);
        else if (args->w)
            y = vec_mul(y, w);
        else if (args->b)
            y = vec_add(y, b);
        store_n(args->y + i, n - i, y);
    }
}

/* N_VEC maxima: one would wait for its comparison at every step. */
ALWAYS_INLINE float max_of(const float *x, uint32_t n) {
    vec m[N_VEC];
    fill(m, -INFINITY);
    for (uint32_t i = 0; i < n; i += 16) UNROLL for (uint32_t h = 0; h < N_VEC; h++) {
            const uint32_t at = i + VEC_LANES * h, left = left_of(n, at);
            m[h] = vec_keep_n(m[h], vec_larger(load_n(x + at, left), m[h]), left);
        }
    for (int h = 1; h < N_VEC; h++) m[0] = vec_larger(m[h], m[0]);
    return vec_largest(m[0]) + 0.0f;
}

#endif
