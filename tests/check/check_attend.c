/* SPDX-License-Identifier: Apache-2.0
 * Check of attention over a page, merging and writing of KV (contracts: kernel.h). Promise: the
 * bits of the reference for any head sizes, number of rows and visible ranges; slots outside a
 * range hold NaN here and must not show. */
#include "check.h"

#include "base/float16.h"

#include <math.h>
#include <string.h>

enum { TOKENS = PITH_PAGE_TOKENS };

static size_t value_bytes(char storage) {
    return storage == 'f' ? 4 : storage == 'h' ? 2 : 1;
}

static pith_kv_put_fn put_of(const pith_kernels *kernels, char storage) {
    return storage == 'f'   ? kernels->kv_put_f32
           : storage == 'h' ? kernels->kv_put_f16
                            : kernels->kv_put_i8;
}

typedef struct page {
    void *k, *v;
    float *k_scale, *v_scale;
} page;

static page make_page(uint32_t head_dim, uint32_t head_dim_v, char storage) {
    page p;
    p.k = check_alloc(TOKENS * head_dim * value_bytes(storage), 64);
    p.v = check_alloc(TOKENS * head_dim_v * value_bytes(storage), 64);
    p.k_scale = check_alloc(TOKENS * 4, 64);
    p.v_scale = check_alloc(TOKENS * 4, 64);
    return p;
}

/* Writes tokens [begin, end); all other slots are 0xFF bytes: NaN as f32, f16 and as scales. */
static void fill_page(check_context *ctx, const page *p, uint32_t head_dim, uint32_t head_dim_v,
                      char storage, uint32_t begin, uint32_t end) {
    float *k = check_alloc(head_dim * 4, 4), *v = check_alloc(head_dim_v * 4, 4);
    memset(p->k, 0xFF, TOKENS * head_dim * value_bytes(storage));
    memset(p->v, 0xFF, TOKENS * head_dim_v * value_bytes(storage));
    memset(p->k_scale, 0xFF, TOKENS * 4);
    memset(p->v_scale, 0xFF, TOKENS * 4);
    for (uint32_t t = begin; t < end; t++) {
        unsigned flavour = check_below(ctx, 6) == 0 ? check_below(ctx, CHECK_FLAVOURS) : 0;
        check_floats(ctx, k, head_dim, flavour == 1 ? 0 : flavour);
        check_floats(ctx, v, head_dim_v, flavour == 1 ? 0 : flavour);
        pith_kv_put args = {p->k, p->v, p->k_scale, p->v_scale, t, k, v, head_dim, head_dim_v};
        put_of(ctx->ref, storage)(&args);
    }
    check_release(k);
    check_release(v);
}

static void make_q8(check_context *ctx, pith_q8 *q8, const float *q, size_t q_stride, uint32_t n,
                    uint32_t head_dim) {
    q8->q_stride = (head_dim + 63) / 64 * 64;
    q8->d_stride = head_dim / 32;
    q8->q = check_alloc((n + 1) * q8->q_stride, 64);
    q8->d = check_alloc((n + 1) * q8->d_stride * 4, 4);
    q8->sum = check_alloc((n + 1) * q8->d_stride * 4, 4);
    q8->sum16 = check_alloc((n + 1) * q8->d_stride * 4, 4);
    ctx->ref->quantize(q, q_stride, n, head_dim, q8, 1);
}

/* Visible ranges: all, causal, a window, or anything, empty and full ones among them. */
static void make_ranges(check_context *ctx, int32_t *begin, int32_t *end, uint32_t n,
                        uint32_t first, uint32_t last) {
    unsigned style = check_below(ctx, 4);
    for (uint32_t r = 0; r < n; r++) {
        int32_t span = (int32_t)(last - first), lo = (int32_t)first,
                a = lo + (int32_t)check_below(ctx, (uint32_t)span + 1);
        int32_t b = lo + (int32_t)check_below(ctx, (uint32_t)span + 1);
        begin[r] = style < 2 ? lo : a;
        end[r] = style == 0   ? (int32_t)last
                 : style == 1 ? lo + (int32_t)(r + 1) * span / (int32_t)n
                              : b;
        if (style == 2) end[r] = a + 5 < (int32_t)last ? a + 5 : (int32_t)last;
    }
}

static bool attend_case(check_context *ctx, pith_attend_fn ref, pith_attend_fn tier, char storage,
                        uint32_t n, uint32_t head_dim, uint32_t head_dim_v) {
    pith_attend args = {.n = n,
                        .head_dim = head_dim,
                        .head_dim_v = head_dim_v,
                        .scale = check_uniform(ctx, 0.05f, 0.5f)};
    page p = make_page(head_dim, head_dim_v, storage);
    uint32_t first = check_below(ctx, 3) ? 0 : check_below(ctx, TOKENS),
             last = first + 1 + check_below(ctx, TOKENS - first);
    int32_t *begin = check_alloc(n * 4, 4), *end = check_alloc(n * 4, 4);
    size_t padded = (head_dim_v + 15) / 16 * 16;
    pith_q8 q8;
    fill_page(ctx, &p, head_dim, head_dim_v, storage, first, last);
    make_ranges(ctx, begin, end, n, first, last);
    args.page = (pith_kv_page){p.k, p.v, p.k_scale, p.v_scale};
    args.begin = begin;
    args.end = end;
    args.softcap = check_below(ctx, 3) ? 0.0f : 20.0f;
    args.q_stride = head_dim + check_below(ctx, 3);
    float *q = check_alloc(((n - 1) * args.q_stride + head_dim) * 4, 4);
    check_floats(ctx, q, (n - 1) * args.q_stride + head_dim, check_below(ctx, 3) ? 0 : 5);
    args.q = q;
    if (storage == 'i') {
        make_q8(ctx, &q8, q, args.q_stride, n, head_dim);
        args.q8 = &q8;
        args.first_q8 = 1;
    }
    args.o_stride = padded + 16 * check_below(ctx, 2);
    pith_attend reference = args;
    float *out[2][3];
    for (int i = 0; i < 2; i++) {
        out[i][0] = check_alloc(n * 4, 4);
        out[i][1] = check_alloc(n * 4, 4);
        out[i][2] = check_alloc(((n - 1) * args.o_stride + padded) * 4, 4);
    }
    reference.m = out[0][0], reference.l = out[0][1], reference.o = out[0][2];
    args.m = out[1][0], args.l = out[1][1], args.o = out[1][2];
    ref(&reference);
    tier(&args);
    ctx->n_case++;
    char what[96];
    snprintf(what, sizeof what, "n %u, dims %u %u, tokens %u..%u", n, head_dim, head_dim_v, first,
             last);
    bool same = check_same(ctx, out[0][0], out[1][0], n, what) &&
                check_same(ctx, out[0][1], out[1][1], n, what);
    for (uint32_t r = 0; same && r < n; r++)
        same = check_same(ctx, out[0][2] + r * args.o_stride, out[1][2] + r * args.o_stride,
                          head_dim_v, what);
    return check_release_all(ctx) && same;
}

void check_attend(check_context *ctx, pith_attend_fn ref, pith_attend_fn tier, char storage) {
    static const uint32_t dims[][2] = {{32, 32}, {64, 64},   {96, 80},   {128, 128},
                                       {64, 40}, {256, 256}, {192, 100}, {576, 512}};
    static const uint32_t float_dims[][2] = {{80, 80}, {20, 24}, {33, 1}, {4, 17}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (uint32_t n = 1; n <= 17; n++)
            if (!attend_case(ctx, ref, tier, storage, n, dims[i][0], dims[i][1])) return;
    for (size_t i = 0; storage != 'i' && i < sizeof float_dims / sizeof *float_dims; i++)
        for (uint32_t n = 1; n <= 9; n++)
            if (!attend_case(ctx, ref, tier, storage, n, float_dims[i][0], float_dims[i][1]))
                return;
}

void check_merge(check_context *ctx) {
    static const float tops[] = {-INFINITY, -3.0f, 0.0f, 2.5f, 90.0f, NAN};
    bool same = true;
    for (uint32_t n = 1; same && n <= 130; n += n < 40 ? 1 : 30)
        for (uint32_t i = 0; same && i < 36; i++) {
            float *o = check_alloc(n * 4, 4), *expected = check_alloc(n * 4, 4),
                  *got = check_alloc(n * 4, 4);
            float m = tops[i % 6], l = check_uniform(ctx, 0.0f, 64.0f);
            float big[2] = {tops[i / 6], tops[i / 6]}, sum[2] = {3.0f, 3.0f};
            check_floats(ctx, o, n, i);
            check_floats(ctx, expected, n, 0);
            memcpy(got, expected, n * 4);
            ctx->ref->merge(&big[0], &sum[0], expected, m, l, o, n);
            ctx->tier->merge(&big[1], &sum[1], got, m, l, o, n);
            ctx->n_case++;
            same = check_same(ctx, expected, got, n, "merged") &&
                   check_same(ctx, &big[0], &big[1], 1, "maximum") &&
                   check_same(ctx, &sum[0], &sum[1], 1, "sum");
            same = check_release_all(ctx) && same;
        }
}

static bool put_case(check_context *ctx, pith_kv_put_fn ref, pith_kv_put_fn tier, char storage,
                     uint32_t head_dim, unsigned flavour) {
    uint32_t head_dim_v = check_below(ctx, 2) ? head_dim : 1 + check_below(ctx, 130),
             t = check_below(ctx, TOKENS);
    size_t k_bytes = TOKENS * head_dim * value_bytes(storage),
           v_bytes = TOKENS * head_dim_v * value_bytes(storage);
    float *k = check_alloc(head_dim * 4, 4), *v = check_alloc(head_dim_v * 4, 4);
    page p[2];
    check_floats(ctx, k, head_dim, flavour);
    check_floats(ctx, v, head_dim_v, flavour + 1);
    if (flavour == 0 && check_below(ctx, 2))
        k[check_below(ctx, head_dim)] = check_below(ctx, 2) ? NAN : INFINITY;
    for (int i = 0; i < 2; i++) {
        p[i] = make_page(head_dim, head_dim_v, storage);
        pith_kv_put args = {p[i].k, p[i].v, p[i].k_scale, p[i].v_scale, t,
                            k,      v,      head_dim,     head_dim_v};
        (i ? tier : ref)(&args);
    }
    ctx->n_case++;
    bool same = check_same(ctx, p[0].k_scale, p[1].k_scale, TOKENS, "K scales") &&
                check_same(ctx, p[0].v_scale, p[1].v_scale, TOKENS, "V scales");
    if (memcmp(p[0].k, p[1].k, k_bytes) != 0)
        same = check_fail(ctx, "K differs: dim %u, slot %u, flavour %u", head_dim, t, flavour);
    if (memcmp(p[0].v, p[1].v, v_bytes) != 0)
        same = check_fail(ctx, "V differs: dim %u, slot %u, flavour %u", head_dim_v, t, flavour);
    return check_release_all(ctx) && same;
}

void check_kv_put(check_context *ctx, pith_kv_put_fn ref, pith_kv_put_fn tier, char storage) {
    for (uint32_t i = 0; i < 40; i++)
        for (unsigned flavour = 0; flavour < CHECK_FLAVOURS; flavour++) {
            uint32_t head_dim = storage == 'i' ? 32 * (1 + i % 8) : 1 + i * 5;
            if (!put_case(ctx, ref, tier, storage, head_dim, flavour)) return;
        }
}
