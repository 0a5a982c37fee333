/* SPDX-License-Identifier: Apache-2.0
 * Check of products, packing and panel decoding (contracts: kernel.h). Promise: the bits of the
 * reference for every k, number of tokens and panels, with junk in all padding, and nothing written
 * outside y. */
#include "check.h"

#include "base/float16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_f16(uint8_t *at, float value) {
    uint16_t half = pith_f16_of_f32(value);
    memcpy(at, &half, sizeof half);
}

/* Byte offsets of the f16 scales of a block; -1: none. */
static void scale_offsets(pith_type type, int offsets[2]) {
    static const int places[PITH_TYPE_COUNT][2] = {
        [PITH_TYPE_Q4_1] = {0, 2},   [PITH_TYPE_Q5_1] = {0, 2},   [PITH_TYPE_Q4_K] = {0, 2},
        [PITH_TYPE_Q5_K] = {0, 2},   [PITH_TYPE_Q2_K] = {80, 82}, [PITH_TYPE_Q6_K] = {208, 0},
        [PITH_TYPE_Q3_K] = {108, 0}, [PITH_TYPE_TQ1_0] = {52, 0}, [PITH_TYPE_TQ2_0] = {64, 0},
        [PITH_TYPE_MXFP4] = {-1, 0}, [PITH_TYPE_NVFP4] = {-1, 0}, [PITH_TYPE_IQ1_M] = {-1, 0},
    };
    offsets[0] = places[type][0];
    offsets[1] = places[type][1] ? places[type][1] : -1;
}

/* Scales that are not whole f16 fields. */
static void put_odd_scale(check_context *ctx, pith_type type, uint8_t *block, float value,
                          unsigned style) {
    uint16_t half = pith_f16_of_f32(value);
    if (type == PITH_TYPE_MXFP4)
        block[0] = (uint8_t)(style == 3 ? check_below(ctx, 3) : 110 + check_below(ctx, 16));
    if (type == PITH_TYPE_NVFP4)
        for (int i = 0; style == 0 && i < 4; i++) block[i] = (uint8_t)check_below(ctx, 256);
    if (type == PITH_TYPE_IQ1_M)
        for (int i = 0; i < 4; i++)
            block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (half >> 4 * i & 15) << 4);
}

void check_row(check_context *ctx, pith_type type, uint8_t *row, uint32_t k, unsigned style) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    size_t n_block = k / info->block_elems;
    int offsets[2];
    check_bytes(ctx, row, n_block * info->block_bytes);
    if (style == 1) memset(row, check_below(ctx, 2) ? 0xFF : 0x80, n_block * info->block_bytes);
    if (style == 2) memset(row, 0, n_block * info->block_bytes);
    if (style == 4) return;
    scale_offsets(type, offsets);
    for (size_t b = 0; b < n_block; b++, row += info->block_bytes) {
        float value = check_uniform(ctx, -0.1f, 0.1f);
        uint16_t half = pith_bf16_of_f32(value);
        if (style == 3) value *= 1e-5f;
        if (type == PITH_TYPE_F32)
            memcpy(row, &value, sizeof value);
        else if (type == PITH_TYPE_BF16)
            memcpy(row, &half, sizeof half);
        else if (offsets[0] >= 0)
            put_f16(row + offsets[0], value);
        else
            put_odd_scale(ctx, type, row, value, style);
        if (offsets[1] >= 0 && info->is_quantized)
            put_f16(row + offsets[1], check_uniform(ctx, -0.1f, 0.1f));
    }
}

/* q8 rows straight from random codes, so that extremes occur. group: 32, or 64 (fast contract). */
static void make_q8(check_context *ctx, pith_q8 *q8, uint32_t n, uint32_t k, uint32_t group) {
    /* the largest: of a group with the largest float */
    static const float odd_scales[] = {0.0f, 1e-39f, 0x1p-127f, 0x1.020408p121f, NAN};
    enum { N_ODD_SCALES = sizeof odd_scales / sizeof *odd_scales };
    uint32_t n_group = k / group;
    q8->q_stride = (k + 63) / 64 * 64 + 64 * check_below(ctx, 3);
    q8->d_stride = k / 32 + check_below(ctx, 5);
    q8->q = check_alloc(n * q8->q_stride, 64);
    q8->d = check_alloc(n * q8->d_stride * sizeof(float), 4);
    q8->sum = check_alloc(n * q8->d_stride * sizeof(int32_t), 4);
    q8->sum16 = check_alloc(n * q8->d_stride * 2 * sizeof(int16_t), 4);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t style = check_below(ctx, 5);
        memset(q8->q + t * q8->q_stride + k, 0, (k + 63) / 64 * 64 - k);
        for (uint32_t i = 0; i < k; i++) {
            int code = (int)check_below(ctx, 255) - 127;
            if (style == 1) code = code < 0 ? -127 : 127;
            if (style == 2) code = 127;
            if (style == 3) code = -127;
            q8->q[t * q8->q_stride + i] = (int8_t)code;
        }
        for (uint32_t g = 0; g < n_group; g++) {
            size_t at = t * q8->d_stride + g;
            int sums[2] = {0, 0};
            for (uint32_t i = 0; i < group; i++)
                sums[i * 2 / group] += q8->q[t * q8->q_stride + group * g + i];
            q8->d[at] = check_below(ctx, 9) ? check_uniform(ctx, 0.0f, 0.2f)
                                            : odd_scales[check_below(ctx, N_ODD_SCALES)];
            q8->sum[at] = sums[0] + sums[1];
            q8->sum16[2 * at] = (int16_t)sums[0];
            q8->sum16[2 * at + 1] = (int16_t)sums[1];
        }
    }
}

/* Panels of random rows. Layout does not matter here: both kernels get the same bytes, made by the
 * reference packer. */
static uint8_t *make_panels(check_context *ctx, pith_type type, uint32_t n_panel, uint32_t k,
                            size_t *stride) {
    uint64_t row_bytes = 0;
    pith_type_row_bytes(type, k, &row_bytes);
    uint8_t *rows = check_alloc(16 * (size_t)row_bytes, 1);
    *stride = pith_panel_bytes(type, k) + 64 * (size_t)check_below(ctx, 2);
    uint8_t *panels = check_alloc((n_panel - 1) * *stride + pith_panel_bytes(type, k), 64);
    for (uint32_t p = 0; p < n_panel; p++) {
        for (uint32_t r = 0; r < 16; r++)
            check_row(ctx, type, rows + r * row_bytes, k,
                      check_below(ctx, 12) < 8 ? 0 : check_below(ctx, CHECK_ROW_STYLES));
        ctx->ref->pack[type](panels + p * *stride, rows, (size_t)row_bytes, 16, k);
    }
    check_release(rows);
    return panels;
}

/* ---- What the reference gave ---- */

/* The generator starts the same for every tier of a slot, so tiers meet the same cases: what the
 * reference gave is kept, by the state of the generator, rather than computed for each of them. */
typedef struct kept_product {
    uint64_t random; /* the generator before the case */
    pith_type type;
    bool fast;
    uint32_t n, n_panel, k;
    size_t bytes;
    float *y; /* NULL: the place is free */
} kept_product;

enum { KEPT_BITS = 15 }; /* more than twice as many as there are cases */
static kept_product kept_products[1 << KEPT_BITS];

static bool is_same_case(const kept_product *a, const kept_product *b) {
    return a->random == b->random && a->type == b->type && a->fast == b->fast && a->n == b->n &&
           a->n_panel == b->n_panel && a->k == b->k && a->bytes == b->bytes;
}

/* The place of the case or the free one where it belongs; NULL: all are taken. */
static kept_product *find_product(const kept_product *wanted) {
    size_t at = (size_t)(wanted->random * 0x9E3779B97F4A7C15u >> (64 - KEPT_BITS));
    for (size_t i = 0; i < (size_t)1 << KEPT_BITS; i++) {
        kept_product *p = &kept_products[(at + i) % ((size_t)1 << KEPT_BITS)];
        if (!p->y || is_same_case(p, wanted)) return p;
    }
    return NULL;
}

/* Fills args->y; wanted->random and what the case is are set. */
static void reference_product(check_context *ctx, const kept_product *wanted, pith_mul *args) {
    kept_product *p = find_product(wanted);
    if (p && p->y) {
        memcpy(args->y, p->y, p->bytes);
        return;
    }
    (wanted->fast ? ctx->ref->mul_fast : ctx->ref->mul)[wanted->type](args);
    float *copy = p ? malloc(wanted->bytes) : NULL;
    if (!copy) return;
    memcpy(copy, args->y, wanted->bytes);
    *p = *wanted;
    p->y = copy;
}

static bool compare_products(check_context *ctx, const pith_mul *expected, const pith_mul *got) {
    size_t width = 16 * (size_t)got->n_panel;
    char what[96];
    for (uint32_t t = 0; t < got->n; t++) {
        snprintf(what, sizeof what, "n %u, panels %u, k %u, token %u", got->n, got->n_panel, got->k,
                 t);
        if (!check_same(ctx, expected->y + t * expected->y_stride, got->y + t * got->y_stride,
                        width, what))
            return false;
        if (t + 1 == got->n) break;
        for (size_t i = width; i < got->y_stride; i++)
            if (memcmp(got->y + t * got->y_stride + i, expected->y + t * expected->y_stride + i,
                       4) != 0)
                return check_fail(ctx, "%s: wrote past its row", what);
    }
    return true;
}

static bool mul_case(check_context *ctx, pith_type type, bool fast, uint32_t n, uint32_t n_panel,
                     uint32_t k) {
    kept_product this_case = {ctx->random, type, fast, n, n_panel, k, 0, NULL};
    pith_mul args = {.n_panel = n_panel, .k = k, .n = n, .prefetch = check_below(ctx, 2) == 0};
    pith_q8 q8;
    args.w = make_panels(ctx, type, n_panel, k, &args.panel_bytes);
    if (pith_mul_takes_q8(type)) {
        make_q8(ctx, &q8, n, k, fast ? PITH_FAST_GROUP : PITH_GROUP);
        args.q8 = &q8;
    } else {
        args.x_stride = k + check_below(ctx, 5);
        float *x = check_alloc(((n - 1) * args.x_stride + k) * sizeof(float), 4);
        for (uint32_t t = 0; t < n; t++)
            check_floats(ctx, x + t * args.x_stride, k, check_below(ctx, CHECK_FLAVOURS));
        args.x = x;
    }
    args.y_stride = 16 * n_panel + check_below(ctx, 20);
    size_t y_bytes = ((n - 1) * args.y_stride + 16 * n_panel) * sizeof(float);
    pith_mul reference = args;
    reference.y = check_alloc(y_bytes, 4);
    args.y = check_alloc(y_bytes, 4);
    this_case.bytes = y_bytes;
    reference_product(ctx, &this_case, &reference);
    (fast ? ctx->tier->mul_fast : ctx->tier->mul)[type](&args);
    ctx->n_case++;
    bool same = compare_products(ctx, &reference, &args);
    return check_release_all(ctx) && same;
}

void check_mul(check_context *ctx, pith_type type, bool fast) {
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 18, 24};
    const pith_type_info *info = pith_type_get((uint32_t)type);
    uint32_t unit = info->block_elems == 1 ? 1 : info->block_elems;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t k = sizes[i] * unit;
        if (k > 2304) continue;
        for (uint32_t n = 1; n <= 17; n++)
            if (!mul_case(ctx, type, fast, n, 1 + (n + sizes[i]) % 3, k)) return;
    }
    for (uint32_t n = 95; n <= 97; n++) /* limits of what is kept of tokens at a time */
        if (!mul_case(ctx, type, fast, n, 1 + n % 2, (n - 94) * unit) ||
            !mul_case(ctx, type, fast, n + 96, 1, (n - 94) * unit))
            return;
    static const uint32_t tokens[] = {31, 32, 33, 47, 48, 49, 63, 64, 65, 129, 257, 271};
    for (uint32_t i = 0; i < sizeof tokens / sizeof *tokens; i++) { /* and of tiles */
        uint32_t k = tokens[i] < 100 ? (1 + i % 3) * unit : unit;
        if (!mul_case(ctx, type, fast, tokens[i], 1 + i % 4, k)) return;
    }
    if (!mul_case(ctx, type, fast, 203, 2, 3 * unit)) return;
    if (!mul_case(ctx, type, fast, 257, 3, unit) || !mul_case(ctx, type, fast, 518, 1, unit))
        return;
    mul_case(ctx, type, fast, 1, 1, unit == 1 ? 1027 : 20 * unit);
}

static bool pack_case(check_context *ctx, pith_type type, uint32_t n_row, uint32_t k) {
    uint64_t row_bytes = 0;
    pith_type_row_bytes(type, k, &row_bytes);
    size_t stride = (size_t)row_bytes + check_below(ctx, 3),
           panel_bytes = pith_panel_bytes(type, k);
    uint8_t *rows = check_alloc((n_row - 1) * stride + (size_t)row_bytes, 1);
    uint8_t *expected = check_alloc(panel_bytes, 64), *got = check_alloc(panel_bytes, 64);
    check_bytes(ctx, rows, (n_row - 1) * stride + (size_t)row_bytes);
    ctx->ref->pack[type](expected, rows, stride, n_row, k);
    ctx->tier->pack[type](got, rows, stride, n_row, k);
    ctx->n_case++;
    bool same = memcmp(expected, got, panel_bytes) == 0;
    if (!same) {
        size_t i = 0;
        while (expected[i] == got[i]) i++;
        check_fail(ctx, "rows %u, k %u: byte %zu of the panel is %02x, the reference says %02x",
                   n_row, k, i, got[i], expected[i]);
    }
    return check_release_all(ctx) && same;
}

void check_pack(check_context *ctx, pith_type type) {
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33};
    uint32_t unit = pith_type_get((uint32_t)type)->block_elems;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t n_row = 1; n_row <= 16; n_row += n_row == 1 ? 14 : 1)
            if (!pack_case(ctx, type, n_row, sizes[i] * unit)) return;
}

void check_panel_decode(check_context *ctx, pith_type type) {
    uint32_t unit = pith_type_get((uint32_t)type)->block_elems, k = 3 * unit;
    size_t stride;
    uint8_t *panel = make_panels(ctx, type, 1, k, &stride);
    float *expected = check_alloc(k * sizeof(float), 4), *got = check_alloc(k * sizeof(float), 4);
    for (uint32_t row = 0; row < 16; row++) {
        ctx->ref->panel_decode[type](panel, row, expected, k);
        ctx->tier->panel_decode[type](panel, row, got, k);
        ctx->n_case++;
        if (!check_same(ctx, expected, got, k, "decoded row")) break;
    }
    check_release_all(ctx);
}
