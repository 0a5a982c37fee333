/* SPDX-License-Identifier: Apache-2.0
 * Speeds of kernels on one thread (check_kernels --bench): decode products in GB/s of weights and
 * as a share of the read bandwidth measured beside them; prefill products (512 tokens) in GMAC/s
 * and as a share of the tier's integer or float peak, also measured; packing in GB/s; attention in
 * GMAC/s; the rest in elements per nanosecond.
 *
 * Times are processor time of this thread, the best of several runs, so that a busy neighbour
 * spoils little. Read next: peak.c (what the machine can do). */
#include "check.h"

#include "kernel/kernel_list.h"
#include "kernel_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { K = 2048, N_ROW = 2048, TOKENS = 512, BIG = 96 << 20, RUNS = 5 };

typedef struct bench {
    check_context ctx;
    pith_kernels kernels;
    uint32_t features;
    const char *filter;
    uint8_t *big; /* [BIG] weights that no cache holds */
    float *x, *y; /* [TOKENS, K]; [TOKENS, N_ROW] or one decode result */
    pith_q8 q8;
    double hertz, bandwidth, integer_peak, float_peak;
} bench;

static bool wanted(const bench *b, size_t index, const char **function) {
    const char *slot;
    return pith_kernels_name(b->features, index, &slot, function) &&
           (!b->filter || strstr(*function, b->filter));
}

static double best_time(double best, double start) {
    double t = bench_seconds() - start;
    return t < best ? t : best;
}

/* Panels of random rows with sane scales: n_panel of them, repeated from one. */
static void fill_panels(bench *b, pith_type type, uint8_t *panels, size_t n_panel) {
    uint64_t row_bytes = 0;
    size_t panel_bytes = pith_panel_bytes(type, K);
    pith_type_row_bytes(type, K, &row_bytes);
    uint8_t *rows = bench_alloc(16 * (size_t)row_bytes);
    for (uint32_t r = 0; r < 16; r++) check_row(&b->ctx, type, rows + r * row_bytes, K, 0);
    for (size_t p = 0; p < n_panel; p++) {
        if (p == 0)
            b->kernels.pack[type](panels, rows, (size_t)row_bytes, 16, K);
        else
            memcpy(panels + p * panel_bytes, panels, panel_bytes);
    }
    bench_free(rows);
}

/* Rows of y as a runner has them: not all on the same sets of a cache. */
static double time_mul(const bench *b, pith_mul_fn mul, pith_type type, const uint8_t *w,
                       size_t n_panel, uint32_t n) {
    double best = HUGE_VAL;
    size_t y_stride = (16 * n_panel / 16 | 1) * 16;
    pith_mul args = {
        w,    pith_panel_bytes(type, K), (uint32_t)n_panel, K, &b->q8, b->x, K, n, b->y, y_stride,
        false};
    for (int i = 0; i < RUNS; i++) {
        args.prefetch = i % 2 == 0; /* the faster way, as the engine finds out */
        double start = bench_seconds();
        mul(&args);
        best = best_time(best, start);
    }
    return best;
}

static void bench_mul(bench *b, pith_mul_fn mul, pith_type type, const char *function) {
    size_t panel_bytes = pith_panel_bytes(type, K), n_panel = BIG / panel_bytes;
    static const uint32_t batch[] = {1, 2, 4, 8, 9, 12, 16, 24};
    double step[sizeof batch / sizeof batch[0]],
        peak = pith_mul_takes_q8(type) ? b->integer_peak : b->float_peak;
    fill_panels(b, type, b->big, n_panel);
    b->bandwidth = bench_read_bandwidth(b->big, BIG);
    for (size_t i = 0; i < sizeof batch / sizeof batch[0]; i++)
        step[i] = time_mul(b, mul, type, b->big, n_panel, batch[i]);
    double prefill = time_mul(b, mul, type, b->big, N_ROW / 16, TOKENS),
           gmac = 1e-9 * TOKENS * (double)N_ROW * K / prefill;
    double gb = 1e-9 * (double)(n_panel * panel_bytes) / step[0];
    printf("%-26s decode %5.1f GB/s = %3.0f %% of read %.1f;", function, gb,
           100.0 * gb / b->bandwidth, b->bandwidth);
    for (size_t i = 1; i < sizeof batch / sizeof batch[0]; i++)
        printf(" x%u %.2f", (unsigned)batch[i], step[i] / step[0]);
    printf("; 512 tokens %6.1f GMAC/s = %2.0f %% of %.0f, %.1f cycles a group\n", gmac,
           100.0 * gmac / peak, peak,
           prefill * b->hertz / ((double)TOKENS * (N_ROW / 16) * (K / 32)));
}

static void bench_pack(bench *b, pith_type type, const char *function) {
    uint64_t row_bytes = 0;
    pith_type_row_bytes(type, K, &row_bytes);
    size_t n_row = BIG / (size_t)row_bytes / 16 * 16;
    uint8_t *panel = bench_alloc(16 * (size_t)row_bytes);
    double best = HUGE_VAL, warm = HUGE_VAL;
    for (int i = 0; i < 3; i++) {
        double start = bench_seconds();
        for (size_t r = 0; r < n_row; r += 16)
            b->kernels.pack[type](panel, b->big + r * row_bytes, (size_t)row_bytes, 16, K);
        best = best_time(best, start);
        start = bench_seconds();
        for (int j = 0; j < 200; j++)
            b->kernels.pack[type](panel, b->big, (size_t)row_bytes, 16, K);
        warm = best_time(warm, start);
    }
    printf("%-26s %5.1f GB/s from memory, %5.1f from cache\n", function,
           1e-9 * (double)(n_row * row_bytes) / best, 200e-9 * 16 * (double)row_bytes / warm);
    bench_free(panel);
}

/* Pages of one KV head after another, as a KV store of HEADS heads has them: those of a head lie in
 * `n_block` blocks. */
static void attend_pages(const bench *b, pith_attend_fn attend, pith_attend *args, size_t n_block,
                         size_t page) {
    enum { HEADS = 8 };
    for (size_t i = 0; i < n_block * HEADS; i++) {
        const uint8_t *k = b->big + (i % n_block * 2 * HEADS + i / n_block) * page;
        args->page.k = k;
        args->page.v = k + HEADS * page;
        args->next_k = i % n_block + 1 < n_block ? k + 2 * HEADS * page : NULL;
        args->next_v = i % n_block + 1 < n_block ? k + 3 * HEADS * page : NULL;
        attend(args);
    }
}

/* head_dim 64; decode: 4 query heads of one KV head, with a context in the cache and one in memory;
 * prefill: 64 queries. */
static void bench_attend(bench *b, pith_attend_fn attend, pith_kv_put_fn put, size_t value_bytes,
                         const char *function) {
    enum { DIM = 64, PAGES = 8, QUERIES = 64, FEW = 0, MANY, FROM_MEMORY };
    int32_t begin[QUERIES], end[QUERIES];
    float m[QUERIES], l[QUERIES];
    size_t page = (size_t)PITH_PAGE_TOKENS * DIM * value_bytes, in_memory = BIG / page;
    float *scales = bench_alloc(2 * PITH_PAGE_TOKENS * sizeof(float));
    double best[] = {HUGE_VAL, HUGE_VAL, HUGE_VAL}, put_best = HUGE_VAL;
    pith_q8 q8 = b->q8;
    pith_attend args = {.page = {.k_scale = scales, .v_scale = scales + PITH_PAGE_TOKENS},
                        .q = b->x,
                        .q_stride = DIM,
                        .q8 = &q8,
                        .begin = begin,
                        .end = end,
                        .head_dim = DIM,
                        .head_dim_v = DIM,
                        .scale = 0.125f,
                        .m = m,
                        .l = l,
                        .o = b->y,
                        .o_stride = DIM};
    for (int i = 0; i < QUERIES; i++) begin[i] = 0, end[i] = PITH_PAGE_TOKENS;
    b->kernels.quantize(b->x, DIM, QUERIES, DIM, &q8, 0);
    for (int run = 0; run < 30; run++) {
        double start = bench_seconds();
        for (uint32_t t = 0; t < PAGES * PITH_PAGE_TOKENS; t++) {
            uint8_t *at = b->big + t / PITH_PAGE_TOKENS * 2 * page;
            pith_kv_put token = {at,
                                 at + page,
                                 scales,
                                 scales + PITH_PAGE_TOKENS,
                                 t % PITH_PAGE_TOKENS,
                                 b->x + t,
                                 b->x + 7 * t,
                                 DIM,
                                 DIM};
            put(&token);
        }
        put_best = best_time(put_best, start);
        for (int i = FEW; i <= FROM_MEMORY; i++) {
            args.n = i == MANY ? QUERIES : 4;
            start = bench_seconds();
            attend_pages(b, attend, &args, i == FROM_MEMORY ? in_memory / 16 : 1, page);
            best[i] = best_time(best[i], start);
        }
    }
    double macs = 1e-9 * PAGES * PITH_PAGE_TOKENS * 2 * DIM;
    double read = 1e-9 * (double)(in_memory * page) / best[FROM_MEMORY];
    printf(
        "%-26s 4 queries %5.1f GMAC/s, from memory %4.1f GB/s = %2.0f %%; 64 queries %5.1f GMAC/s "
        "= %2.0f %% of f32 peak; writing a token %.0f ns\n",
        function, 4 * macs / best[FEW], read, 100 * read / b->bandwidth,
        QUERIES * macs / best[MANY], 100.0 * QUERIES * macs / best[MANY] / b->float_peak,
        1e9 * put_best / (PAGES * PITH_PAGE_TOKENS));
    bench_free(scales);
    b->kernels.quantize(b->x, K, TOKENS, K, &b->q8, 0);
}

/* Kernels that pass over vectors: 512 tokens of K. */
static void bench_vector(bench *b, const char *slot, const char *function) {
    const pith_kernels *k = &b->kernels;
    double best = HUGE_VAL;
    for (int run = 0; run < RUNS; run++) {
        double start = bench_seconds();
        for (uint32_t t = 0; t < TOKENS; t++) {
            const float *x = b->x + (size_t)t * K;
            if (strcmp(slot, "quantize") == 0)
                k->quantize(x, K, 1, K, &b->q8, t);
            else if (strcmp(slot, "rms_norm") == 0)
                k->rms_norm(&(pith_norm_args){x, b->y, b->x, NULL, K, 1e-5f});
            else if (strcmp(slot, "layer_norm") == 0)
                k->layer_norm(&(pith_norm_args){x, b->y, b->x, b->x, K, 1e-5f});
            else if (strcmp(slot, "silu_mul") == 0)
                k->silu_mul(b->y, x, b->x, K);
            else if (strcmp(slot, "gelu_mul") == 0)
                k->gelu_mul(b->y, x, b->x, K);
            else if (strcmp(slot, "gelu_erf_mul") == 0)
                k->gelu_erf_mul(b->y, x, b->x, K);
            else if (strcmp(slot, "exp") == 0)
                k->exp(b->y, x, K);
            else if (strcmp(slot, "softcap") == 0)
                k->softcap(b->y, x, 30.0f, K);
            else if (strcmp(slot, "add") == 0)
                k->add(b->y, x, b->x, K);
            else if (strcmp(slot, "rope_norm") == 0)
                k->rope_norm(b->y, b->x, K);
            else if (strcmp(slot, "rope_neox") == 0)
                k->rope_neox(b->y, b->x, K);
            else if (strcmp(slot, "max") == 0)
                b->y[0] = k->max(x, K);
            else
                return;
        }
        best = best_time(best, start);
    }
    printf("%-26s %5.2f elements a ns, %.2f cycles an element\n", function,
           1e-9 * TOKENS * K / best, best * b->hertz / (TOKENS * (double)K));
}

static bool bench_init(bench *b, uint32_t features, const char *filter) {
    memset(b, 0, sizeof *b);
    b->features = features;
    b->filter = filter;
    b->ctx.random = 1;
    b->big = bench_alloc(BIG + (1 << 20));
    b->x = bench_alloc((TOKENS + 1) * K * sizeof(float));
    b->y = bench_alloc((size_t)TOKENS * (N_ROW + 16) * sizeof(float) + (64u << 20));
    b->q8 = (pith_q8){bench_alloc(TOKENS * K),
                      bench_alloc(TOKENS * K / 8),
                      bench_alloc(TOKENS * K / 8),
                      bench_alloc(TOKENS * K / 8),
                      K,
                      K / 32};
    if (!b->big || !b->x || !b->y || !b->q8.q || !b->q8.d || !b->q8.sum || !b->q8.sum16)
        return false;
    pith_kernels_init(&b->kernels, features);
    check_floats(&b->ctx, b->x, (TOKENS + 1) * K, 0);
    b->kernels.quantize(b->x, K, TOKENS, K, &b->q8, 0);
    memset(b->big, 0x35, BIG);
    b->hertz = bench_hertz();
    b->bandwidth = bench_read_bandwidth(b->big, BIG);
    /* Plain C has no peak of its own: it is held against the machine's. */
    bench_peaks(features ? features : pith_cpu_detect(), &b->integer_peak, &b->float_peak);
    return true;
}

static void bench_slot(bench *b, const char *slot, const char *function, pith_type type) {
    const pith_kernels *k = &b->kernels;
    if (strncmp(slot, "mul[", 4) == 0)
        bench_mul(b, k->mul[type], type, function);
    else if (strncmp(slot, "mul_fast[", 9) == 0)
        bench_mul(b, k->mul_fast[type], type, function);
    else if (strncmp(slot, "pack[", 5) == 0)
        bench_pack(b, type, function);
    else if (strcmp(slot, "attend_f32") == 0)
        bench_attend(b, k->attend_f32, k->kv_put_f32, 4, function);
    else if (strcmp(slot, "attend_f16") == 0)
        bench_attend(b, k->attend_f16, k->kv_put_f16, 2, function);
    else if (strcmp(slot, "attend_i8") == 0)
        bench_attend(b, k->attend_i8, k->kv_put_i8, 1, function);
    else
        bench_vector(b, slot, function);
}

void check_bench(uint32_t features, const char *filter) {
    static const struct {
        const char *slot;
        pith_type type;
    } list[] = {
#define TYPED(op, TYPE, type) {#op "[" #TYPE "]", PITH_TYPE_##TYPE},
#define PLAIN(op)             {#op, PITH_TYPE_COUNT},
        PITH_KERNEL_LIST(TYPED, PLAIN)
#undef TYPED
#undef PLAIN
    };
    bench b;
    const char *function;
    if (!bench_init(&b, features, filter)) {
        fprintf(stderr, "check: out of memory\n");
        return;
    }
    printf("%.2f GHz, one thread reads %.1f GB/s; peaks: %.0f GMAC/s int8, %.0f f32\n",
           1e-9 * b.hertz, b.bandwidth, b.integer_peak, b.float_peak);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (wanted(&b, i, &function)) bench_slot(&b, list[i].slot, function, list[i].type);
    bench_free(b.big);
    bench_free(b.x);
    bench_free(b.y);
    bench_free(b.q8.q);
    bench_free(b.q8.d);
    bench_free(b.q8.sum);
    bench_free(b.q8.sum16);
}
