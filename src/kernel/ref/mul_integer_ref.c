/* SPDX-License-Identifier: Apache-2.0
 * Products of quantized weights with int8 activations, plain C: the definition (contract: pith_mul
 * in kernel.h).
 *
 * One group (32 k of 16 rows) at a time is unpacked to signed codes [k][row] and multiplied with up
 * to TILE tokens. Invariant: all sums of one group are integers below 2^24 = 16777216, so their
 * conversion to float is exact. The largest:
 *   Q4_0 8 * 127 * 32    Q5_0 16 * 127 * 32         Q8_0 128 * 127 * 32
 *   Q4_K 63 * 15 * 127 * 32    Q5_K 63 * 31 * 127 * 32    Q6_K 2 * 128 * 32 * 127 * 16 = 16646144
 * Not here: float weights (mul_float_ref.c), packing (panel_ref.c). */
#include "kernel/panel.h"
#include "kernel/ref/ref.h"
#include "kernel/ref/scalar_math.h"

enum { ROWS = PITH_PANEL_ROWS, TILE = 8 };

/* 32 k of 16 rows, whatever the type. */
typedef struct group {
    int16_t code[32][ROWS];
    int32_t scale[2][ROWS]; /* integer sub-scales of k < 16 and k >= 16 */
    int32_t minimum[ROWS];  /* integer sub-minimum; not used without minima */
    float d[ROWS], dmin[ROWS];
} group;

typedef struct format {
    void (*unpack)(const void *block, uint32_t index,
                   group *out); /* group `index` of a panel block */
    size_t block_bytes;
    uint32_t n_group; /* groups of 32 in a block */
    int minimum_sign; /* 0: no minima; -1: subtracted; 1: added */
} format;

static void set_scale_one(group *out) {
    for (int r = 0; r < ROWS; r++) out->scale[0][r] = out->scale[1][r] = 1;
}

static void read_f16(float *out, const uint16_t *half) {
    for (int r = 0; r < ROWS; r++) out[r] = pith_f32_of_f16(half[r]);
}

/* Codes of a 32-element type: nibbles q, fifth bits h (NULL: none), minus `offset`. */
static void unpack_nibbles(group *out, const uint8_t q[4][64], const uint8_t *h, int offset) {
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

static void unpack_q4_0(const void *block, uint32_t index, group *out) {
    const pith_panel_q4_0 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, NULL, 8);
    read_f16(out->d, b->d);
}

static void unpack_q4_1(const void *block, uint32_t index, group *out) {
    const pith_panel_q4_1 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, NULL, 0);
    read_f16(out->d, b->d);
    read_f16(out->dmin, b->m);
}

static void unpack_q5_0(const void *block, uint32_t index, group *out) {
    const pith_panel_q5_0 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, b->h, 16);
    read_f16(out->d, b->d);
}

static void unpack_q5_1(const void *block, uint32_t index, group *out) {
    const pith_panel_q5_1 *b = block;
    (void)index;
    unpack_nibbles(out, b->q, b->h, 0);
    read_f16(out->d, b->d);
    read_f16(out->dmin, b->m);
}

static void unpack_q8_0(const void *block, uint32_t index, group *out) {
    const pith_panel_q8_0 *b = block;
    (void)index;
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) out->code[k][r] = b->q[k / 4][4 * r + k % 4];
    set_scale_one(out);
    read_f16(out->d, b->d);
}

/* The 6-bit scales and minima of group `index` of Q4_K and Q5_K. */
static void unpack_scales_k(group *out, const uint8_t scales[3][64], uint32_t index) {
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t at = index % 4 * ROWS + r;
        int s0 = scales[0][at], s1 = scales[1][at], s2 = scales[2][at];
        int scale = index < 4 ? s0 & 63 : (s2 & 15) | s0 >> 6 << 4;
        out->scale[0][r] = out->scale[1][r] = scale;
        out->minimum[r] = index < 4 ? s1 & 63 : s2 >> 4 | s1 >> 6 << 4;
    }
}

static void unpack_codes_k(group *out, const uint8_t q[32][64], const uint8_t h[8][64],
                           uint32_t index) {
    const uint8_t(*chunk)[64] = q + index / 2 * 8;
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) {
            int code = chunk[k / 4][4 * r + k % 4] >> 4 * (index % 2) & 15;
            if (h) code |= (h[k / 4][4 * r + k % 4] >> index & 1) << 4;
            out->code[k][r] = (int16_t)code;
        }
}

static void unpack_q4_k(const void *block, uint32_t index, group *out) {
    const pith_panel_q4_k *b = block;
    unpack_scales_k(out, b->scales, index);
    unpack_codes_k(out, b->q, NULL, index);
    read_f16(out->d, b->d);
    read_f16(out->dmin, b->dmin);
}

static void unpack_q5_k(const void *block, uint32_t index, group *out) {
    const pith_panel_q5_k *b = block;
    unpack_scales_k(out, b->scales, index);
    unpack_codes_k(out, b->q, b->h, index);
    read_f16(out->d, b->d);
    read_f16(out->dmin, b->dmin);
}

static void unpack_q6_k(const void *block, uint32_t index, group *out) {
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
    read_f16(out->d, b->d);
}

/* Chains of one token. */
typedef struct chains {
    float acc[ROWS], acc_min[ROWS];
    float s[ROWS], u[ROWS]; /* of the super-block so far (K types) */
} chains;

/* p of a group: exact. x: the token's 32 codes. */
static void dot_group(const group *w, const int8_t *x, float p[ROWS]) {
    int32_t dot[2][ROWS] = {{0}};
    for (int k = 0; k < 32; k++)
        for (int r = 0; r < ROWS; r++) dot[k / 16][r] += w->code[k][r] * x[k];
    for (int r = 0; r < ROWS; r++)
        p[r] = (float)(w->scale[0][r] * dot[0][r] + w->scale[1][r] * dot[1][r]);
}

/* Adds a group of a 32-element type. d, sum: scale and sum of the token's group. */
static void add_small(const group *w, const float p[ROWS], float d, int32_t sum, chains *c) {
    float d_sum = d * (float)sum;
    for (int r = 0; r < ROWS; r++) {
        c->acc[r] = pith_fma(p[r], w->d[r] * d, c->acc[r]);
        c->acc_min[r] = pith_fma(w->dmin[r], d_sum, c->acc_min[r]);
    }
}

/* Adds a group of a K type; the last one of a super-block ends its chains. */
static void add_super(const group *w, const float p[ROWS], float d, int32_t sum, bool last,
                      chains *c) {
    float d_sum = d * (float)sum;
    for (int r = 0; r < ROWS; r++) {
        c->s[r] = pith_fma(p[r], d, c->s[r]);
        c->u[r] = pith_fma((float)w->minimum[r], d_sum, c->u[r]);
        if (!last) continue;
        c->acc[r] = pith_fma(c->s[r], w->d[r], c->acc[r]);
        c->acc_min[r] = pith_fma(c->u[r], w->dmin[r], c->acc_min[r]);
        c->s[r] = c->u[r] = 0.0f;
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

/* Tokens t0 .. t0 + n - 1 (n <= TILE) with one panel. */
static void mul_tile(const pith_mul *args, const format *f, uint32_t panel, uint32_t t0,
                     uint32_t n) {
    const pith_q8 *q8 = args->q8;
    const uint8_t *blocks = (const uint8_t *)args->w + panel * args->panel_bytes;
    chains c[TILE];
    group w;
    memset(c, 0, sizeof c);
    memset(&w, 0, sizeof w);
    for (uint32_t i = 0; i < args->k / 32; i++) {
        f->unpack(blocks + i / f->n_group * f->block_bytes, i % f->n_group, &w);
        for (uint32_t t = 0; t < n; t++) {
            size_t at = (t0 + t) * q8->d_stride + i;
            float p[ROWS];
            dot_group(&w, q8->q + (t0 + t) * q8->q_stride + 32 * (size_t)i, p);
            if (f->n_group == 1)
                add_small(&w, p, q8->d[at], q8->sum[at], &c[t]);
            else
                add_super(&w, p, q8->d[at], q8->sum[at], i % f->n_group == f->n_group - 1, &c[t]);
        }
    }
    for (uint32_t t = 0; t < n; t++)
        store(&c[t], f->minimum_sign, args->y + (t0 + t) * args->y_stride + ROWS * (size_t)panel);
}

static void mul(const pith_mul *args, const format *f) {
    for (uint32_t p = 0; p < args->n_panel; p++)
        for (uint32_t t = 0; t < args->n; t += TILE)
            mul_tile(args, f, p, t, args->n - t < TILE ? args->n - t : TILE);
}

void pith_mul_q4_0_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q4_0, sizeof(pith_panel_q4_0), 1, 0});
}

void pith_mul_q4_1_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q4_1, sizeof(pith_panel_q4_1), 1, 1});
}

void pith_mul_q5_0_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q5_0, sizeof(pith_panel_q5_0), 1, 0});
}

void pith_mul_q5_1_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q5_1, sizeof(pith_panel_q5_1), 1, 1});
}

void pith_mul_q8_0_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q8_0, sizeof(pith_panel_q8_0), 1, 0});
}

void pith_mul_q4_k_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q4_k, sizeof(pith_panel_q4_k), 8, -1});
}

void pith_mul_q5_k_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q5_k, sizeof(pith_panel_q5_k), 8, -1});
}

void pith_mul_q6_k_ref(const pith_mul *args) {
    mul(args, &(format){unpack_q6_k, sizeof(pith_panel_q6_k), 8, 0});
}
