/* SPDX-License-Identifier: Apache-2.0
 * NEON: joining of attention partials and writing of one token into a KV page (definitions:
 * attend_ref.c, kv_ref.c). K goes to every 16th place of its panel: values are converted 4 or 16
 * at a time and stored one by one. The scale of an int8 vector comes from the largest magnitude as
 * an integer, so that NaN and infinity come out on top. */
#include "kernel/arm/arm.h"
#include "kernel/arm/vector_math_neon.h"

enum { PANEL = 16 };

void pith_merge_neon(float *M, float *L, float *O, float m, float l, const float *o,
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
    for (uint32_t d = 0; d < head_dim_v; d += 4) {
        uint32_t n = head_dim_v - d;
        store_n(O + d, n,
                ps_fma(load_n(o + d, n), ps_set(b), vmulq_f32(load_n(O + d, n), ps_set(a))));
    }
}

void pith_kv_put_f32_neon(const pith_kv_put *args) {
    float *k =
        (float *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    float *v = (float *)args->v + (size_t)args->t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim; d++) k[(size_t)d * PANEL] = args->k_row[d];
    memcpy(v, args->v_row, args->head_dim_v * sizeof *v);
}

/* The first n (up to 4) values as binary16. */
ALWAYS_INLINE void to_f16(uint16_t half[4], const float *x, uint32_t n) {
    vst1_u16(half, vreinterpret_u16_f16(vcvt_f16_f32(load_n(x, n))));
}

void pith_kv_put_f16_neon(const pith_kv_put *args) {
    uint16_t *k =
        (uint16_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    uint16_t *v = (uint16_t *)args->v + (size_t)args->t * args->head_dim_v, half[4];
    for (uint32_t d = 0; d < args->head_dim; d += 4) {
        uint32_t n = args->head_dim - d < 4 ? args->head_dim - d : 4;
        to_f16(half, args->k_row + d, n);
        for (uint32_t i = 0; i < n; i++, k += PANEL) *k = half[i];
    }
    for (uint32_t d = 0; d < args->head_dim_v; d += 4) {
        uint32_t n = args->head_dim_v - d < 4 ? args->head_dim_v - d : 4;
        to_f16(half, args->v_row + d, n);
        memcpy(v + d, half, n * sizeof *half);
    }
}

ALWAYS_INLINE float vector_scale(const float *x, uint32_t n, float *inverse) {
    uint32x4_t amax = vdupq_n_u32(0);
    float d;
    for (uint32_t i = 0; i < n; i += 4) amax = vmaxq_u32(amax, ps_magnitude(load_n(x + i, n - i)));
    (void)pith_q8_scale(vmaxvq_u32(amax), &d, inverse);
    return d;
}

/* Up to 16 codes; zero when there is no scale. */
ALWAYS_INLINE void to_codes(int8_t code[16], const float *x, uint32_t n, float inverse) {
    float32x4_t v[4];
    UNROLL for (uint32_t i = 0; i < 4; i++) {
        v[i] = load_n(x + 4 * i, 4 * i < n && inverse > 0.0f ? n - 4 * i : 0);
    }
    vst1q_s8(code, codes_of(v, inverse));
}

void pith_kv_put_i8_neon(const pith_kv_put *args) {
    int8_t *k = (int8_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL +
                args->t % PANEL * 4;
    int8_t *v = (int8_t *)args->v + (size_t)args->t * args->head_dim_v, code[16];
    float inverse;
    args->k_scale[args->t] = vector_scale(args->k_row, args->head_dim, &inverse);
    for (uint32_t d = 0; d < args->head_dim; d += 16) {
        uint32_t n = args->head_dim - d < 16 ? args->head_dim - d : 16;
        to_codes(code, args->k_row + d, n, inverse);
        for (uint32_t i = 0; i < n; i += 4, k += PANEL * 4) memcpy(k, code + i, 4);
    }
    args->v_scale[args->t] = vector_scale(args->v_row, args->head_dim_v, &inverse);
    for (uint32_t d = 0; d < args->head_dim_v; d += 16) {
        uint32_t n = args->head_dim_v - d < 16 ? args->head_dim_v - d : 16;
        to_codes(code, args->v_row + d, n, inverse);
        memcpy(v + d, code, n);
    }
}
