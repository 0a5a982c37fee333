/* SPDX-License-Identifier: Apache-2.0
 * Joining of attention partials and writing of one token into a KV page (definitions:
 * ref/attend_ref.c, ref/kv_ref.c). One source for all tiers: the file that includes this has
 * included the vectors of its tier (x86/vector_math_avx2.h, ...) before.
 *
 * K goes to every 16th place of its panel: values are converted a vector at a time and stored one
 * by one. The scale of an int8 vector comes from the largest magnitude as an integer, so that NaN
 * and infinity come out on top. */
#ifndef PITH_KERNEL_KV_TOKEN_H
#define PITH_KERNEL_KV_TOKEN_H

#include "kernel/kernel.h"

enum { PANEL = 16 };

ALWAYS_INLINE void merge(float *M, float *L, float *O, float m, float l, const float *o,
                         uint32_t head_dim_v) {
    if (m == -INFINITY) return;
    if (*M == -INFINITY) {
        *M = m;
        *L = l;
        memcpy(O, o, head_dim_v * sizeof *O);
        return;
    }
    float top = m > *M ? m : *M, a = pith_exp(*M - top), b = pith_exp(m - top);
    *M = top;
    *L = pith_fma(l, b, *L * a);
    for (uint32_t d = 0; d < head_dim_v; d += VEC_LANES) {
        uint32_t n = head_dim_v - d;
        vec old = vec_mul(load_n(O + d, n), vec_set(a));
        store_n(O + d, n, vec_fma(load_n(o + d, n), vec_set(b), old));
    }
}

/* Index of the token's element 0 in K, of which `together` lie side by side, and in V. */
ALWAYS_INLINE size_t k_start(const pith_kv_put *args, uint32_t together) {
    return (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL * together;
}
ALWAYS_INLINE size_t v_start(const pith_kv_put *args) {
    return (size_t)args->t * args->head_dim_v;
}

ALWAYS_INLINE uint32_t at_most(uint32_t n, uint32_t limit) {
    return n < limit ? n : limit;
}

/* A whole vector is one move; only the last, of n bytes, is copied byte by byte. */
ALWAYS_INLINE void copy_part(void *to, const void *from, size_t n, const size_t whole) {
    if (n == whole)
        memcpy(to, from, whole);
    else
        memcpy(to, from, n);
}

ALWAYS_INLINE void kv_put_f32(const pith_kv_put *args) {
    float *k = (float *)args->k + k_start(args, 1), *v = (float *)args->v + v_start(args);
    for (uint32_t d = 0; d < args->head_dim; d++) k[(size_t)d * PANEL] = args->k_row[d];
    memcpy(v, args->v_row, args->head_dim_v * sizeof *v);
}

ALWAYS_INLINE void kv_put_f16(const pith_kv_put *args) {
    uint16_t *k = (uint16_t *)args->k + k_start(args, 1), *v = (uint16_t *)args->v + v_start(args);
    uint16_t half[VEC_LANES];
    for (uint32_t d = 0; d < args->head_dim; d += VEC_LANES) {
        uint32_t n = at_most(args->head_dim - d, VEC_LANES);
        vec_store_f16(half, load_n(args->k_row + d, n));
        for (uint32_t i = 0; i < n; i++, k += PANEL) *k = half[i];
    }
    for (uint32_t d = 0; d < args->head_dim_v; d += VEC_LANES) {
        uint32_t n = at_most(args->head_dim_v - d, VEC_LANES);
        vec_store_f16(half, load_n(args->v_row + d, n));
        copy_part(v + d, half, n * sizeof *half, sizeof half);
    }
}

ALWAYS_INLINE float vector_scale(const float *x, uint32_t n, float *inverse) {
    vec_bits amax = vec_magnitude(vec_set(0.0f));
    float d;
    for (uint32_t i = 0; i < n; i += VEC_LANES)
        amax = vec_bits_larger(amax, vec_magnitude(load_n(x + i, n - i)));
    (void)pith_q8_scale(vec_bits_largest(amax), &d, inverse);
    return d;
}

/* Up to 16 codes; zero when there is no scale. */
ALWAYS_INLINE void to_codes(int8_t code[16], const float *x, uint32_t n, float inverse) {
    vec v[N_VEC];
    UNROLL for (uint32_t h = 0; h < N_VEC; h++) {
        v[h] = load_n(x + VEC_LANES * h, inverse > 0.0f ? left_of(n, VEC_LANES * h) : 0);
    }
    vec_store_codes(code, v, inverse);
}

ALWAYS_INLINE void kv_put_i8(const pith_kv_put *args) {
    int8_t *k = (int8_t *)args->k + k_start(args, 4), *v = (int8_t *)args->v + v_start(args);
    int8_t code[16];
    float inverse;
    args->k_scale[args->t] = vector_scale(args->k_row, args->head_dim, &inverse);
    for (uint32_t d = 0; d < args->head_dim; d += 16) {
        uint32_t n = at_most(args->head_dim - d, 16);
        to_codes(code, args->k_row + d, n, inverse);
        for (uint32_t i = 0; i < n; i += 4, k += PANEL * 4) memcpy(k, code + i, 4);
    }
    args->v_scale[args->t] = vector_scale(args->v_row, args->head_dim_v, &inverse);
    for (uint32_t d = 0; d < args->head_dim_v; d += 16) {
        uint32_t n = at_most(args->head_dim_v - d, 16);
        to_codes(code, args->v_row + d, n, inverse);
        copy_part(v + d, code, n, sizeof code);
    }
}

#endif
