/* SPDX-License-Identifier: Apache-2.0
 * Products of quantized weights with int8 activations, plain C: the definition (contract: pith_mul
 * in kernel.h).
 *
 * One group (32 k of 16 rows) at a time is unpacked to signed codes [k][row] and multiplied with up
 * to TILE tokens. Invariant: all sums of one group are integers below 2^24 = 16777216, so their
 * conversion to float is exact. The largest:
 *   Q4_0 8 * 127 * 32    Q5_0 16 * 127 * 32         Q8_0 128 * 127 * 32
 *   Q4_K 63 * 15 * 127 * 32    Q5_K 63 * 31 * 127 * 32    Q6_K 2 * 128 * 32 * 127 * 16 = 16646144
 * Here are the sums, for all types, and the unpackers of the types whose codes are numbers as they
 * stand. Not here: unpackers of the other types (mul_expanded_ref.c), float weights
 * (mul_float_ref.c), packing (panel_ref.c). */
#include "kernel/panel.h"
#include "kernel/ref/group_ref.h"
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { ROWS = PITH_PANEL_ROWS, TILE = 8 };

static void set_scale_one(pith_group *out) {
    for (int r = 0; r < ROWS; r++) out->scale[0][r] = out->scale[1][r] = 1;
}

static void read_f16(float *out, const uint16_t *half) {
    for (int r = 0; r < ROWS; r++) out[r] = pith_f32_of_f16(half[r]);
}

/* Codes of a 32-element type: nibbles q, fifth bits h (NULL: none), minus `offset`. */
static void unpack_nibbles(pith_group *out, const uint8_t q[4][64], const uint8_t *h, int offset) {
    for (int k = 0; k < 32; k++) {
        int g = k % 16 / 4, j = k % 4, shift = k < 16 ? 0 : 4;
        for (int r = 0; r < ROWS; r++) {
            int code = q[g][4 * r + j] >> shift & 15;
            if (h) code |= (h[4 * r + j] >> (k / 4) & 1) << 4;
            out->code[k][r] = (int16_t)(code - offset);
        }
    }
    set_scale_one(out);
}

static void unpack_q4_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q4_0 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, NULL, 8);
    read_f16(out->d[0], b->d);
}

static void unpack_q4_1(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q4_1 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, NULL, 0);
    read_f16(out->d[0], b->d);
    read_f16(out->dmin, b->m);
}

static void unpack_q5_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q5_0 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, b->h, 16);
    read_f16(out->d[0], b->d);
}

static void unpack_q5_1(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q5_1 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, b->h, 0);
    read_f16(out->d[0], b->d);
    read_f16(out->dmin, b->m);
}

static void unpack_q8_0(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q8_0 *b = block;
    (void)index;
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) out->code[k][r] = b->q[k / 4][4 * r + k % 4];
    set_scale_one(out);
    read_f16(out->d[0], b->d);
}

/* The 6-bit scales and minima of group `index` of Q4_K and Q5_K. */
static void unpack_scales_k(pith_group *out, const uint8_t scales[3][64], uint32_t index) {
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t at = index % 4 * ROWS + r;
        int s0 = scales[0][at], s1 = scales[1][at], s2 = scales[2][at];
        int scale = index < 4 ? s0 & 63 : (s2 & 15) | s0 >> 6 << 4;
        out->scale[0][r] = out->scale[1][r] = scale;
        out->minimum[0][r] = index < 4 ? s1 & 63 : s2 >> 4 | s1 >> 6 << 4;
    }
}

static void unpack_codes_k(pith_group *out, const uint8_t q[32][64], const uint8_t h[8][64],
                           uint32_t index) {
    const uint8_t(*chunk)[64] = q + index / 2 * 8;
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) {
            int code = chunk[k / 4][4 * r + k % 4] >> 4 * (index % 2) & 15;
            if (h) code |= (h[k / 4][4 * r + k % 4] >> index & 1) << 4;
            out->code[k][r] = (int16_t)code;
        }
}

static void unpack_q4_k(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q4_k *b = block;
    unpack_scales_k(out, b->scales, index);
    unpack_codes_k(out, b->q, NULL, index);
    read_f16(out->d[0], b->d);
    read_f16(out->dmin, b->dmin);
}

static void unpack_q5_k(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q5_k *b = block;
    unpack_scales_k(out, b->scales, index);
    unpack_codes_k(out, b->q, b->h, index);
    read_f16(out->d[0], b->d);
    read_f16(out->dmin, b->dmin);
}

static void unpack_q6_k(const void *block, uint32_t index, pith_group *out) {
    const pith_panel_q6_k *b = block;
    uint32_t half = index / 4, i = index % 4;
    const pith_panel_q6_k_part *part = b->part[half];
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) {
            int at = 4 * r + k % 4;
            int low = part[k / 4].low[i % 2][at] >> (i < 2 ? 0 : 4) & 15;
            int code = low | (part[k / 4].high[at] >> 2 * i & 3) << 4;
            out->code[k][r] = (int16_t)(code - 32);
        }
    for (int r = 0; r < ROWS; r++) {
        out->scale[0][r] = b->scales[2 * index][r];
        out->scale[1][r] = b->scales[2 * index + 1][r];
    }
    read_f16(out->d[0], b->d);
}

/* Chains of one token. */
typedef struct chains {
    float acc[ROWS], acc_min[ROWS];
    float s[ROWS], u[ROWS]; /* of the super-block so far (K types) */
} chains;

/* x: the token's 32 codes. */
static void dot_halves(const pith_group *w, const int8_t *x, int32_t dot[2][ROWS]) {
    memset(dot, 0, 2 * sizeof *dot);
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) dot[k / 16][r] += w->code[k][r] * x[k];
}

/* p of a group: exact. */
static void dot_group(const pith_group *w, const int8_t *x, float p[ROWS]) {
    int32_t dot[2][ROWS];
    dot_halves(w, x, dot);
    for (int r = 0; r < ROWS; r++)
        p[r] = (float)(w->scale[0][r] * dot[0][r] + w->scale[1][r] * dot[1][r]);
}

/* Where a token's row is: scale and sums of one of its groups. */
typedef struct token_group {
    float d;
    int32_t sum;
    const int16_t *sum16;
} token_group;

/* Adds a group of a type with a scale a group. */
static void add_small(const pith_group *w, const float p[ROWS], const token_group *x, chains *c) {
    float d_sum = x->d * (float)x->sum;
    for (int r = 0; r < ROWS; r++) {
        c->acc[r] = pith_fma(p[r], w->d[0][r] * x->d, c->acc[r]);
        c->acc_min[r] = pith_fma(w->dmin[r], d_sum, c->acc_min[r]);
    }
}

/* Adds a group of a super-block; the last one ends its chains. */
static void add_super(const pith_group *w, const float p[ROWS], const token_group *x, bool halves,
                      bool last, chains *c) {
    float d_sum = x->d * (float)x->sum;
    for (int r = 0; r < ROWS; r++) {
        int32_t both = w->minimum[0][r] * x->sum16[0] + w->minimum[1][r] * x->sum16[1];
        c->s[r] = pith_fma(p[r], x->d, c->s[r]);
        if (halves)
            c->u[r] = pith_fma((float)both, x->d, c->u[r]);
        else
            c->u[r] = pith_fma((float)w->minimum[0][r], d_sum, c->u[r]);
        if (!last) continue;
        c->acc[r] = pith_fma(c->s[r], w->d[0][r], c->acc[r]);
        c->acc_min[r] = pith_fma(c->u[r], w->dmin[r], c->acc_min[r]);
        c->s[r] = c->u[r] = 0.0f;
    }
}

/* Adds a group with a float scale for every 16 elements. x: the token's codes. */
static void add_floats(const pith_group *w, const int8_t *x, float d, chains *c) {
    int32_t dot[2][ROWS];
    dot_halves(w, x, dot);
    for (int r = 0; r < ROWS; r++) {
        float p = pith_fma((float)dot[1][r], w->d[1][r], (float)dot[0][r] * w->d[0][r]);
        c->acc[r] = pith_fma(p, d, c->acc[r]);
    }
}

static void store(const chains *c, int minimum_sign, float *y) {
    for (int r = 0; r < ROWS; r++) {
        if (minimum_sign == 0)
            y[r] = c->acc[r];
        else
            y[r] = minimum_sign < 0 ? c->acc[r] - c->acc_min[r] : c->acc[r] + c->acc_min[r];
    }
}

/* Group i of k of one token. */
static void add_group(const pith_group *w, const pith_group_format *f, const pith_q8 *q8, size_t t,
                      uint32_t i, chains *c) {
    size_t at = t * q8->d_stride + i;
    const int8_t *x = q8->q + t * q8->q_stride + 32 * (size_t)i;
    const token_group group = {q8->d[at], q8->sum[at], q8->sum16 + 2 * at};
    float p[ROWS];
    if (f->sum == PITH_SUM_FLOATS) {
        add_floats(w, x, group.d, c);
        return;
    }
    dot_group(w, x, p);
    if (f->sum == PITH_SUM_SMALL)
        add_small(w, p, &group, c);
    else
        add_super(w, p, &group, f->sum == PITH_SUM_HALVES, i % f->n_group == f->n_group - 1, c);
}

/* Tokens t0 .. t0 + n - 1 (n <= TILE) with one panel. */
static void mul_tile(const pith_mul *args, const pith_group_format *f, uint32_t panel, uint32_t t0,
                     uint32_t n) {
    const uint8_t *blocks = (const uint8_t *)args->w + panel * args->panel_bytes;
    chains c[TILE];
    pith_group w;
    memset(c, 0, sizeof c);
    memset(&w, 0, sizeof w);
    for (uint32_t i = 0; i < args->k / 32; i++) {
        f->unpack(blocks + i / f->n_group * f->block_bytes, i % f->n_group, &w);
        for (uint32_t t = 0; t < n; t++) add_group(&w, f, args->q8, t0 + t, i, &c[t]);
    }
    for (uint32_t t = 0; t < n; t++)
        store(&c[t], f->minimum_sign, args->y + (t0 + t) * args->y_stride + ROWS * (size_t)panel);
}

void pith_mul_groups_ref(const pith_mul *args, const pith_group_format *format) {
    for (uint32_t p = 0; p < args->n_panel; p++)
        for (uint32_t t = 0; t < args->n; t += TILE)
            mul_tile(args, format, p, t, args->n - t < TILE ? args->n - t : TILE);
}

void pith_mul_q4_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q4_0, sizeof(pith_panel_q4_0), 1, PITH_SUM_SMALL, 0, 0});
}

void pith_mul_q4_1_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q4_1, sizeof(pith_panel_q4_1), 1, PITH_SUM_SMALL, 1, 0});
}

void pith_mul_q5_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q5_0, sizeof(pith_panel_q5_0), 1, PITH_SUM_SMALL, 0, 0});
}

void pith_mul_q5_1_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q5_1, sizeof(pith_panel_q5_1), 1, PITH_SUM_SMALL, 1, 0});
}

void pith_mul_q8_0_ref(const pith_mul *args) {
    pith_mul_groups_ref(
        args, &(pith_group_format){unpack_q8_0, sizeof(pith_panel_q8_0), 1, PITH_SUM_SMALL, 0, 0});
}

static const pith_group_format q4_k = {unpack_q4_k, sizeof(pith_panel_q4_k), 8, PITH_SUM_SUPER, -1,
                                       15};

void pith_mul_q4_k_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &q4_k);
}

void pith_mul_fast_q4_k_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &q4_k);
}

static const pith_group_format q5_k = {unpack_q5_k, sizeof(pith_panel_q5_k), 8, PITH_SUM_SUPER, -1,
                                       31};

void pith_mul_q5_k_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &q5_k);
}

void pith_mul_fast_q5_k_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &q5_k);
}

static const pith_group_format q6_k = {unpack_q6_k, sizeof(pith_panel_q6_k), 8, PITH_SUM_SUPER, 0,
                                       32};

void pith_mul_q6_k_ref(const pith_mul *args) {
    pith_mul_groups_ref(args, &q6_k);
}

void pith_mul_fast_q6_k_ref(const pith_mul *args) {
    pith_mul_fast_groups_ref(args, &q6_k);
}
