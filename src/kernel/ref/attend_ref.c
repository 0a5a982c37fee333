/* SPDX-License-Identifier: Apache-2.0
 * Attention of query rows over one KV page, and the joining of pages, plain C: the definition
 * (contract: pith_attend and pith_merge_fn in kernel.h). Row by row: scores of 64 tokens, their
 * maximum over the visible range, exponentials, the weighted sum of V.
 *
 * Invariant: slots outside [begin, end) may hold anything, NaN included; nothing of them reaches a
 * result. A maximum of -0 is stored as +0. If no visible score is a number above -inf, m is NaN: a
 * fault of the model must not look like an empty page. Next: kv_ref.c (how pages are written). */
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { TOKENS = PITH_PAGE_TOKENS, PANEL = 16, LANES = 16 };

typedef struct storage {
    /* score before scaling of token t for query row `row` */
    float (*dot)(const pith_attend *args, uint32_t row, uint32_t t);
    /* o[d] = fma(p, v[t][d], o[d]) for all d */
    void (*add_value)(const pith_attend *args, float p, uint32_t t, float *o);
} storage;

static size_t k_index(const pith_attend *args, uint32_t t, uint32_t d) {
    return ((size_t)(t / PANEL) * args->head_dim + d) * PANEL + t % PANEL;
}

static float dot_f32(const pith_attend *args, uint32_t row, uint32_t t) {
    const float *k = args->page.k, *q = args->q + row * args->q_stride;
    float c[4] = {0};
    for (uint32_t d = 0; d < args->head_dim; d++)
        c[d % 4] = pith_fma(k[k_index(args, t, d)], q[d], c[d % 4]);
    return (c[0] + c[1]) + (c[2] + c[3]);
}

static float dot_f16(const pith_attend *args, uint32_t row, uint32_t t) {
    const uint16_t *k = args->page.k;
    const float *q = args->q + row * args->q_stride;
    float c[4] = {0};
    for (uint32_t d = 0; d < args->head_dim; d++)
        c[d % 4] = pith_fma(pith_f32_of_f16(k[k_index(args, t, d)]), q[d], c[d % 4]);
    return (c[0] + c[1]) + (c[2] + c[3]);
}

static float dot_i8(const pith_attend *args, uint32_t row, uint32_t t) {
    const pith_q8 *q8 = args->q8;
    const int8_t *k = (const int8_t *)args->page.k + (size_t)(t / PANEL) * args->head_dim * PANEL;
    const int8_t *q = q8->q + (args->first_q8 + row) * q8->q_stride;
    const float *d_q = q8->d + (args->first_q8 + row) * q8->d_stride;
    float acc = 0.0f;
    for (uint32_t i = 0; i < args->head_dim / PITH_GROUP; i++) {
        int32_t dot = 0;
        for (uint32_t d = PITH_GROUP * i; d < PITH_GROUP * (i + 1); d++)
            dot += q[d] * k[(d / 4 * PANEL + t % PANEL) * 4 + d % 4];
        acc = pith_fma((float)dot, d_q[i], acc);
    }
    return acc * args->page.k_scale[t];
}

static void add_value_f32(const pith_attend *args, float p, uint32_t t, float *o) {
    const float *v = (const float *)args->page.v + (size_t)t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim_v; d++) o[d] = pith_fma(p, v[d], o[d]);
}

static void add_value_f16(const pith_attend *args, float p, uint32_t t, float *o) {
    const uint16_t *v = (const uint16_t *)args->page.v + (size_t)t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim_v; d++) o[d] = pith_fma(p, pith_f32_of_f16(v[d]), o[d]);
}

static void add_value_i8(const pith_attend *args, float p, uint32_t t, float *o) {
    const int8_t *v = (const int8_t *)args->page.v + (size_t)t * args->head_dim_v;
    float scaled = p * args->page.v_scale[t];
    for (uint32_t d = 0; d < args->head_dim_v; d++) o[d] = pith_fma(scaled, (float)v[d], o[d]);
}

static void attend_row(const pith_attend *args, const storage *s, uint32_t row) {
    float score[TOKENS] = {0}, lanes[LANES] = {0}, m = -INFINITY,
          *o = args->o + row * args->o_stride;
    uint32_t begin = (uint32_t)args->begin[row], end = (uint32_t)args->end[row];
    if (args->begin[row] >= args->end[row]) begin = end = 0;
    for (uint32_t d = 0; d < args->head_dim_v; d++) o[d] = 0.0f;
    for (uint32_t t = begin; t < end; t++) {
        score[t] = s->dot(args, row, t) * args->scale;
        if (args->softcap > 0.0f) score[t] = args->softcap * pith_tanh(score[t] / args->softcap);
        m = score[t] > m ? score[t] : m;
    }
    m = begin < end && m == -INFINITY ? NAN : m + 0.0f;
    for (uint32_t t = begin; t < end; t++) {
        float p = pith_exp(score[t] - m);
        lanes[t % LANES] += p;
        s->add_value(args, p, t, o);
    }
    args->m[row] = m;
    args->l[row] = pith_fold_lanes(lanes);
}

static void attend(const pith_attend *args, const storage *s) {
    for (uint32_t row = 0; row < args->n; row++) attend_row(args, s, row);
}

void pith_attend_f32_ref(const pith_attend *args) {
    attend(args, &(storage){dot_f32, add_value_f32});
}
void pith_attend_f16_ref(const pith_attend *args) {
    attend(args, &(storage){dot_f16, add_value_f16});
}
void pith_attend_i8_ref(const pith_attend *args) {
    attend(args, &(storage){dot_i8, add_value_i8});
}

void pith_merge_ref(float *M, float *L, float *O, float m, float l, const float *o,
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
    for (uint32_t d = 0; d < head_dim_v; d++) O[d] = pith_fma(o[d], b, O[d] * a);
}
