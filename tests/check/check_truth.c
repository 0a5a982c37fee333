/* SPDX-License-Identifier: Apache-2.0
 * The reference kernels themselves, against double precision: products from decoded weights and
 * decoded activations, requantized weights (fast contract) one by one, packing against the decoder
 * of the quant room, attention against an ordinary softmax. Everything else rests on the reference, so nothing here shares code with it. */
#include "check.h"

#include "base/float16.h"
#include "kernel/kernel_list.h"

#include <math.h>
#include <string.h>

static bool near(check_context *ctx, double expected, double got, double tolerance,
                 const char *what) {
    if (fabs(expected - got) <= tolerance) return true;
    return check_fail(ctx, "%s: %.9g, double precision says %.9g (tolerance %.3g)", what, got,
                      expected, tolerance);
}

enum { N = 5, MAX_K = 768 };

typedef struct problem {
    uint8_t rows[16 * MAX_K * 4];
    uint8_t panel[16 * MAX_K * 4];
    double w[16][MAX_K], x[N][MAX_K];
    float row[MAX_K], x_float[N * MAX_K];
    int8_t q[N * MAX_K];
    float d[N * MAX_K / 32];
    int32_t sum[N * MAX_K / 32];
    int16_t sum16[N * MAX_K / 16];
    float y[N * 16];
} problem;

/* Rows, their panel, and both decoded: by the type's decoder and from the panel, which must agree.
 * */
static bool make_weights(check_context *ctx, problem *p, pith_type type, uint32_t k) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    uint64_t row_bytes = 0;
    float from_panel[MAX_K];
    pith_type_row_bytes(type, k, &row_bytes);
    for (uint32_t r = 0; r < 16; r++)
        check_row(ctx, type, p->rows + r * row_bytes, k, r % 5 ? 0 : r / 5);
    ctx->ref->pack[type](p->panel, p->rows, (size_t)row_bytes, 16, k);
    for (uint32_t r = 0; r < 16; r++) {
        info->decode(p->rows + r * row_bytes, p->row, k);
        ctx->ref->panel_decode[type](p->panel, r, from_panel, k);
        if (!check_same(ctx, p->row, from_panel, k, "row decoded from its panel")) return false;
        for (uint32_t i = 0; i < k; i++) p->w[r][i] = (double)p->row[i];
    }
    return true;
}

/* group: k under one scale, 32 or (fast contract) 64; 0: x stays float. */
static void make_activations(check_context *ctx, problem *p, pith_q8 *q8, uint32_t k,
                             uint32_t group) {
    *q8 = (pith_q8){p->q, p->d, p->sum, p->sum16, MAX_K, MAX_K / 32};
    check_floats(ctx, p->x_float, N * MAX_K, 5);
    if (group == PITH_FAST_GROUP)
        ctx->ref->quantize_fast(p->x_float, MAX_K, N, k, q8, 0);
    else
        ctx->ref->quantize(p->x_float, MAX_K, N, k / 32 * 32, q8, 0);
    for (uint32_t t = 0; t < N; t++)
        for (uint32_t i = 0; i < k; i++) {
            double exact = (double)p->x_float[t * MAX_K + i];
            p->x[t][i] = exact;
            if (group == 0) continue;
            double d = (double)p->d[t * (MAX_K / 32) + i / group];
            p->x[t][i] = d * p->q[t * MAX_K + i];
            if (fabs(exact - p->x[t][i]) > 0.501 * d)
                check_fail(ctx, "quantized activation %u is off by more than half a step", i);
        }
}

/* p->y with what p->w and p->x give. */
static bool compare_products(check_context *ctx, const problem *p, uint32_t k) {
    for (uint32_t t = 0; t < N; t++)
        for (uint32_t r = 0; r < 16; r++) {
            double sum = 0.0, size = 0.0;
            for (uint32_t i = 0; i < k; i++) {
                sum += p->w[r][i] * p->x[t][i];
                size += fabs(p->w[r][i] * p->x[t][i]);
            }
            ctx->n_case++;
            if (!near(ctx, sum, (double)p->y[16 * t + r], 1e-5 * size + 1e-30, "product"))
                return false;
        }
    return true;
}

static bool check_product(check_context *ctx, problem *p, pith_type type, uint32_t k) {
    pith_q8 q8;
    bool quantized = pith_mul_takes_q8(type);
    if (!make_weights(ctx, p, type, k)) return false;
    make_activations(ctx, p, &q8, k, quantized ? PITH_GROUP : 0);
    pith_mul args = {p->panel,
                     pith_panel_bytes(type, k),
                     1,
                     k,
                     quantized ? &q8 : NULL,
                     quantized ? NULL : p->x_float,
                     MAX_K,
                     N,
                     p->y,
                     16,
                     false};
    ctx->ref->mul[type](&args);
    return compare_products(ctx, p, k);
}

void check_truth_products(check_context *ctx) {
    static const pith_type types[] = {
#define ROW(op, TYPE, type) PITH_TYPE_##TYPE,
        PITH_PANEL_TYPES(ROW, mul)
#undef ROW
    };
    problem *p = check_alloc(sizeof *p, 64);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        uint32_t unit = pith_type_get((uint32_t)types[i])->block_elems;
        pith_kernels_name(0, i, &ctx->slot, &ctx->function);
        if (!check_product(ctx, p, types[i], unit == 1 ? 131 : unit) ||
            !check_product(ctx, p, types[i], unit == 1 ? 257 : 3 * unit))
            break;
    }
    ctx->slot = "products";
    check_release_all(ctx);
}

/* ---- The fast contract ---- */

enum { BLOCK = PITH_FAST_BLOCK, SUMS = PITH_FAST_BLOCK / PITH_FAST_GROUP };

/* Tokens that single out the weights of a block: token t is 1 at k = t. */
typedef struct singles {
    int8_t q[BLOCK][BLOCK];
    float d[BLOCK][SUMS];
    int32_t sum[BLOCK][SUMS];
    float y[BLOCK][16];
} singles;

static void make_singles(singles *x) {
    memset(x, 0, sizeof *x);
    for (int t = 0; t < BLOCK; t++) {
        x->q[t][t] = 1;
        x->sum[t][t / PITH_FAST_GROUP] = 1;
        for (int i = 0; i < SUMS; i++) x->d[t][i] = 1.0f;
    }
}

/* The step of the codes of row r, from above: what results differ by at least, and a 127th of the
 * largest value that the scales allow, which is at most `slack` times the largest weight. */
static double step_of(const singles *x, uint32_t r, const double w[BLOCK], double slack) {
    double largest = 0.0;
    for (int i = 0; i < BLOCK; i++) largest = fmax(largest, fabs(w[i]));
    double step = slack * largest / 127;
    for (int i = 0; i < BLOCK; i++)
        for (int j = 0; j < i; j++) {
            double apart = fabs((double)x->y[i][r] - (double)x->y[j][r]);
            if (apart > 0.0) step = fmin(step, apart);
        }
    return step;
}

/* Block b: its requantized weights take the place of p->w. One may be off by half a step, and by
 * half a 256th of one in the factor (times a code up to 127) and in the start. */
static bool requantize_block(check_context *ctx, problem *p, pith_type type, uint32_t b,
                             singles *x) {
    const pith_q8 q8 = {&x->q[0][0], &x->d[0][0], &x->sum[0][0], NULL, BLOCK, SUMS};
    const pith_mul args = {.w = p->panel + b * pith_panel_bytes(type, BLOCK),
                           .n_panel = 1,
                           .k = BLOCK,
                           .q8 = &q8,
                           .n = BLOCK,
                           .y = &x->y[0][0],
                           .y_stride = 16};
    ctx->ref->mul_fast[type](&args);
    for (uint32_t r = 0; r < 16; r++) {
        double *w = p->w[r] + b * BLOCK;
        /* Rows 5 and 10 have one code only (make_weights), which may be a small one. */
        double step = step_of(x, r, w, r == 5 || r == 10 ? 16 : 2);
        for (uint32_t i = 0; i < BLOCK; i++) {
            ctx->n_case++;
            if (!near(ctx, w[i], (double)x->y[i][r], 0.752 * step, "requantized weight"))
                return false;
            w[i] = (double)x->y[i][r];
        }
    }
    return true;
}

static bool check_fast_product(check_context *ctx, problem *p, pith_type type, singles *x) {
    pith_q8 q8;
    if (!make_weights(ctx, p, type, MAX_K)) return false;
    for (uint32_t b = 0; b < MAX_K / BLOCK; b++)
        if (!requantize_block(ctx, p, type, b, x)) return false;
    make_activations(ctx, p, &q8, MAX_K, PITH_FAST_GROUP);
    const pith_mul args = {
        .w = p->panel, .n_panel = 1, .k = MAX_K, .q8 = &q8, .n = N, .y = p->y, .y_stride = 16};
    ctx->ref->mul_fast[type](&args);
    return compare_products(ctx, p, MAX_K);
}

void check_truth_fast(check_context *ctx) {
    static const struct {
        pith_type type;
        const char *name;
    } types[] = {
#define ROW(op, TYPE, type) {PITH_TYPE_##TYPE, #op "[" #TYPE "]"},
        PITH_FAST_TYPES(ROW, mul_fast)
#undef ROW
    };
    problem *p = check_alloc(sizeof *p, 64);
    singles *x = check_alloc(sizeof *x, 64);
    const char *slot = ctx->slot;
    make_singles(x);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ctx->slot = types[i].name;
        if (!check_fast_product(ctx, p, types[i].type, x)) break;
    }
    ctx->slot = slot;
    check_release_all(ctx);
}

/* ---- Attention ---- */

enum { TOKENS = PITH_PAGE_TOKENS, DIM = 64, DIM_V = 48, ROWS = 3, PAGES = 3 };

typedef struct attention {
    float k[PAGES * TOKENS][DIM], v[PAGES * TOKENS][DIM_V];
    float k_page[TOKENS * DIM], v_page[TOKENS * DIM_V], k_scale[TOKENS], v_scale[TOKENS];
    float q[ROWS][DIM], m[ROWS], l[ROWS], o[ROWS][DIM_V];
    float top[ROWS], sum[ROWS], out[ROWS][DIM_V];
    int8_t q_code[ROWS * DIM];
    float q_d[ROWS * DIM / 32];
    int32_t q_sum[ROWS * DIM / 32];
    int16_t q_sum16[ROWS * DIM / 16];
} attention;

/* Three pages one after the other, merged. storage: f, h, i. */
static void attend_pages(check_context *ctx, attention *a, char storage, float scale,
                         float softcap) {
    const pith_kernels *r = ctx->ref;
    pith_kv_put_fn put = storage == 'f'   ? r->kv_put_f32
                         : storage == 'h' ? r->kv_put_f16
                                          : r->kv_put_i8;
    pith_attend_fn attend = storage == 'f'   ? r->attend_f32
                            : storage == 'h' ? r->attend_f16
                                             : r->attend_i8;
    pith_q8 q8 = {a->q_code, a->q_d, a->q_sum, a->q_sum16, DIM, DIM / 32};
    int32_t begin[ROWS] = {0, 0, 5}, end[ROWS] = {TOKENS, TOKENS, TOKENS};
    r->quantize(a->q[0], DIM, ROWS, DIM, &q8, 0);
    for (int row = 0; row < ROWS; row++) a->top[row] = -INFINITY;
    for (uint32_t page = 0; page < PAGES; page++) {
        for (uint32_t t = 0; t < TOKENS; t++) {
            pith_kv_put args = {a->k_page,
                                a->v_page,
                                a->k_scale,
                                a->v_scale,
                                t,
                                a->k[page * TOKENS + t],
                                a->v[page * TOKENS + t],
                                DIM,
                                DIM_V};
            put(&args);
        }
        if (page == PAGES - 1) end[1] = 17;
        pith_attend args = {.page = {a->k_page, a->v_page, a->k_scale, a->v_scale},
                            .q = a->q[0],
                            .q_stride = DIM,
                            .q8 = &q8,
                            .n = ROWS,
                            .begin = begin,
                            .end = end,
                            .head_dim = DIM,
                            .head_dim_v = DIM_V,
                            .scale = scale,
                            .softcap = softcap,
                            .m = a->m,
                            .l = a->l,
                            .o = a->o[0],
                            .o_stride = DIM_V};
        attend(&args);
        for (int row = 0; row < ROWS; row++)
            r->merge(&a->top[row], &a->sum[row], a->out[row], a->m[row], a->l[row], a->o[row],
                     DIM_V);
        begin[2] = 5;
    }
}

static bool compare_attention(check_context *ctx, const attention *a, uint32_t row, double scale,
                              double softcap, double tolerance) {
    double weight[PAGES * TOKENS], total = 0.0;
    for (uint32_t t = 0; t < PAGES * TOKENS; t++) {
        uint32_t in_page = t % TOKENS;
        double s = 0.0;
        bool seen = !(row == 2 && in_page < 5) && !(row == 1 && t >= (PAGES - 1) * TOKENS + 17);
        for (uint32_t d = 0; d < DIM; d++) s += (double)a->q[row][d] * (double)a->k[t][d];
        s *= scale;
        if (softcap > 0.0) s = softcap * tanh(s / softcap);
        weight[t] = seen ? exp(s) : 0.0;
        total += weight[t];
    }
    for (uint32_t d = 0; d < DIM_V; d++) {
        double o = 0.0;
        for (uint32_t t = 0; t < PAGES * TOKENS; t++) o += weight[t] / total * (double)a->v[t][d];
        ctx->n_case++;
        if (!near(ctx, o, (double)a->out[row][d] / (double)a->sum[row], tolerance, "attention"))
            return false;
    }
    return true;
}

void check_truth_attention(check_context *ctx) {
    static const struct {
        char storage;
        double tolerance;
    } kinds[] = {{'f', 3e-6}, {'h', 2e-3}, {'i', 3e-2}};
    attention *a = check_alloc(sizeof *a, 64);
    check_floats(ctx, a->k[0], PAGES * TOKENS * DIM, 0);
    check_floats(ctx, a->v[0], PAGES * TOKENS * DIM_V, 0);
    check_floats(ctx, a->q[0], ROWS * DIM, 0);
    for (size_t i = 0; i < 6; i++) {
        float softcap = i < 3 ? 0.0f : 3.0f;
        attend_pages(ctx, a, kinds[i % 3].storage, 0.05f, softcap);
        for (uint32_t row = 0; row < ROWS; row++)
            if (!compare_attention(ctx, a, row, (double)0.05f, (double)softcap,
                                   kinds[i % 3].tolerance))
                break;
    }
    check_release_all(ctx);
}
