/* SPDX-License-Identifier: Apache-2.0
 * Check of quantization, normalisation, activations, sums, rotation and maxima (contracts:
 * kernel.h). Promise: the bits of the reference for every length, in place where that is allowed,
 * for ordinary and extreme values; NaN where the reference has NaN. */
#include "check.h"

#include "base/float16.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 1027 };

/* Lengths 1 .. 70, then some long ones; 0 ends. */
static uint32_t next_length(uint32_t n) {
    if (n < 70) return n + 1;
    if (n == 70) return 576;
    return n == 576 ? LONGEST : 0;
}

static float *make_floats(check_context *ctx, size_t n, unsigned flavour) {
    float *x = check_alloc(n * sizeof(float), 4);
    check_floats(ctx, x, n, flavour);
    return x;
}

static float *copy_floats(const float *x, size_t n) {
    float *copy = check_alloc(n * sizeof(float), 4);
    memcpy(copy, x, n * sizeof *x);
    return copy;
}

/* Now and then a NaN or infinity. */
static void add_faults(check_context *ctx, float *x, size_t n) {
    if (check_below(ctx, 4) == 0) x[check_below(ctx, (uint32_t)n)] = NAN;
    if (check_below(ctx, 4) == 0)
        x[check_below(ctx, (uint32_t)n)] = check_below(ctx, 2) ? INFINITY : -INFINITY;
}

static bool quantize_case(check_context *ctx, pith_quantize_fn ref, pith_quantize_fn tier,
                          uint32_t n, uint32_t k, unsigned flavour) {
    uint32_t first = check_below(ctx, 3);
    size_t x_stride = k + check_below(ctx, 4), rows = first + n;
    pith_q8 out[2];
    float *x = make_floats(ctx, (n - 1) * x_stride + k, flavour);
    if (flavour == 0) add_faults(ctx, x, k);
    for (int i = 0; i < 2; i++) {
        out[i].q_stride = (k + 63) / 64 * 64;
        out[i].d_stride = k / 32 + 1;
        out[i].q = check_alloc(rows * out[i].q_stride, 64);
        out[i].d = check_alloc(rows * out[i].d_stride * 4, 4);
        out[i].sum = check_alloc(rows * out[i].d_stride * 4, 4);
        out[i].sum16 = check_alloc(rows * out[i].d_stride * 4, 4);
    }
    ref(x, x_stride, n, k, &out[0], first);
    tier(x, x_stride, n, k, &out[1], first);
    ctx->n_case++;
    bool same = check_same(ctx, out[0].d, out[1].d, rows * out[0].d_stride, "scales");
    if (memcmp(out[0].q, out[1].q, rows * out[0].q_stride) != 0)
        same = check_fail(ctx, "codes differ, k %u flavour %u", k, flavour);
    if (memcmp(out[0].sum, out[1].sum, rows * out[0].d_stride * 4) != 0)
        same = check_fail(ctx, "sums differ, k %u", k);
    if (memcmp(out[0].sum16, out[1].sum16, rows * out[0].d_stride * 4) != 0)
        same = check_fail(ctx, "sums of 16 differ, k %u", k);
    return check_release_all(ctx) && same;
}

void check_quantize(check_context *ctx, pith_quantize_fn ref, pith_quantize_fn tier,
                    uint32_t group) {
    for (unsigned flavour = 0; flavour < CHECK_FLAVOURS; flavour++)
        for (uint32_t k = group; k <= 320; k += group)
            for (uint32_t n = 1; n <= 3; n++)
                if (!quantize_case(ctx, ref, tier, n, k, flavour)) return;
}

static bool norm_case(check_context *ctx, pith_norm_fn ref, pith_norm_fn tier, uint32_t n,
                      unsigned flavour, unsigned form) {
    float *x = make_floats(ctx, n, flavour), *w = make_floats(ctx, n, 0),
          *b = make_floats(ctx, n, 0);
    float *expected = check_alloc(n * 4, 4), *in_place = copy_floats(x, n);
    float *got = form & 4 ? in_place : check_alloc(n * 4, 4);
    pith_norm_args args = {x, expected, form & 1 ? w : NULL, form & 2 ? b : NULL, n, 1e-5f};
    ref(&args);
    args.y = got;
    if (form & 4) args.x = got;
    tier(&args);
    ctx->n_case++;
    bool same = check_same(ctx, expected, got, n, form & 4 ? "in place" : "norm");
    return check_release_all(ctx) && same;
}

void check_norm(check_context *ctx, pith_norm_fn ref, pith_norm_fn tier) {
    for (uint32_t n = 1; n > 0; n = next_length(n))
        for (unsigned form = 0; form < 8; form++)
            if (!norm_case(ctx, ref, tier, n, check_below(ctx, CHECK_FLAVOURS), form)) return;
}

void check_glu(check_context *ctx, pith_glu_fn ref, pith_glu_fn tier) {
    bool same = true;
    for (uint32_t n = 1; same && n > 0; n = next_length(n))
        for (unsigned flavour = 0; same && flavour < CHECK_FLAVOURS; flavour++) {
            float *gate = make_floats(ctx, n, flavour), *up = make_floats(ctx, n, 0);
            float *expected = check_alloc(n * 4, 4), *got = check_alloc(n * 4, 4);
            if (flavour == 0) add_faults(ctx, gate, n);
            ref(expected, gate, up, n);
            tier(got, gate, up, n);
            tier(gate, gate, up, n);
            ctx->n_case++;
            same = check_same(ctx, expected, got, n, "gated") &&
                   check_same(ctx, expected, gate, n, "in place");
            same = check_release_all(ctx) && same;
        }
}

static bool unary_case(check_context *ctx, pith_unary_fn ref, pith_unary_fn tier, uint32_t n,
                       unsigned flavour) {
    float *x = make_floats(ctx, n, flavour), *expected = check_alloc(n * 4, 4);
    float *got = check_alloc(n * 4, 4);
    if (flavour == 4)
        for (uint32_t i = 0; i < n; i++) x[i] = check_uniform(ctx, -100.0f, 100.0f);
    if (flavour == 0) add_faults(ctx, x, n);
    ref(expected, x, n);
    tier(got, x, n);
    tier(x, x, n);
    ctx->n_case++;
    bool same =
        check_same(ctx, expected, got, n, "result") && check_same(ctx, expected, x, n, "in place");
    return check_release_all(ctx) && same;
}

/* The long case is there for single bits: a constant that is off by one unit changes one result in
 * some thousands. */
void check_unary(check_context *ctx, pith_unary_fn ref, pith_unary_fn tier) {
    for (uint32_t n = 1; n > 0; n = next_length(n))
        for (unsigned flavour = 0; flavour < CHECK_FLAVOURS; flavour++)
            if (!unary_case(ctx, ref, tier, n, flavour)) return;
    unary_case(ctx, ref, tier, 200000, 4);
}

void check_binary(check_context *ctx, pith_binary_fn ref, pith_binary_fn tier) {
    bool same = true;
    for (uint32_t n = 1; same && n > 0; n = next_length(n)) {
        unsigned flavour = check_below(ctx, CHECK_FLAVOURS);
        float *a = make_floats(ctx, n, flavour), *b = make_floats(ctx, n, 1),
              *a2 = copy_floats(a, n);
        float *expected = check_alloc(n * 4, 4), *got = check_alloc(n * 4, 4);
        ref(expected, a, b, n);
        tier(got, a, b, n);
        tier(a2, a2, b, n);
        tier(b, a, b, n);
        ctx->n_case++;
        same = check_same(ctx, expected, got, n, "result") &&
               check_same(ctx, expected, a2, n, "into a") &&
               check_same(ctx, expected, b, n, "into b");
        same = check_release_all(ctx) && same;
    }
}

void check_scale(check_context *ctx, pith_scale_fn ref, pith_scale_fn tier) {
    bool same = true;
    for (uint32_t n = 1; same && n > 0; n = next_length(n))
        for (unsigned flavour = 0; same && flavour < CHECK_FLAVOURS; flavour++) {
            float s = flavour == 5 ? 30.0f : check_uniform(ctx, 0.1f, 50.0f);
            float *x = make_floats(ctx, n, flavour), *expected = check_alloc(n * 4, 4),
                  *got = check_alloc(n * 4, 4);
            ref(expected, x, s, n);
            tier(got, x, s, n);
            tier(x, x, s, n);
            ctx->n_case++;
            same = check_same(ctx, expected, got, n, "result") &&
                   check_same(ctx, expected, x, n, "in place");
            same = check_release_all(ctx) && same;
        }
}

void check_rope(check_context *ctx, pith_rope_fn ref, pith_rope_fn tier) {
    bool same = true;
    for (uint32_t n = 2; same && n <= 260; n += n < 70 ? 2 : 38) {
        float *x = make_floats(ctx, n, check_below(ctx, CHECK_FLAVOURS)), *got = copy_floats(x, n);
        float *table = check_alloc(n * 4, 4);
        for (uint32_t i = 0; i < n; i++) table[i] = check_uniform(ctx, -1.0f, 1.0f);
        ref(x, table, n);
        tier(got, table, n);
        ctx->n_case++;
        same = check_same(ctx, x, got, n, "rotated");
        same = check_release_all(ctx) && same;
    }
}

void check_reduce(check_context *ctx, pith_reduce_fn ref, pith_reduce_fn tier) {
    bool same = true;
    float dummy = 0.0f, expected = ref(&dummy, 0), got = tier(&dummy, 0);
    same = check_same(ctx, &expected, &got, 1, "empty");
    for (uint32_t n = 1; same && n > 0; n = next_length(n))
        for (unsigned flavour = 0; same && flavour < CHECK_FLAVOURS; flavour++) {
            float *x = make_floats(ctx, n, flavour);
            if (flavour == 0) add_faults(ctx, x, n);
            expected = ref(x, n);
            got = tier(x, n);
            ctx->n_case++;
            same = check_same(ctx, &expected, &got, 1, "reduced");
            same = check_release_all(ctx) && same;
        }
}
