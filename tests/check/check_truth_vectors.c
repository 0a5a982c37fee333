/* SPDX-License-Identifier: Apache-2.0
 * The reference's float functions against double precision: fused multiply-add bit for bit, exp,
 * tanh and activations within their stated errors, norms, rotation. */
#include "check.h"

#include "kernel/ref/scalar_math.h"

static double ulp(double x) {
    int exponent;
    frexp(x, &exponent);
    return ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

/* Largest error of f over [low, high], in units in the last place of the true value plus
 * `absolute`. */
static void check_function(check_context *ctx, const char *name, float (*f)(float),
                           double (*truth)(double), float low, float high, double limit,
                           double absolute) {
    double worst = 0.0, at = 0.0;
    for (int i = 0; i < 200000; i++) {
        float x = low + (high - low) * (float)i / 200000.0f +
                  check_uniform(ctx, 0.0f, (high - low) / 200000.0f);
        double expected = truth((double)x),
               error = fabs((double)f(x) - expected) / (ulp(expected) + absolute);
        if (error > worst) {
            worst = error;
            at = (double)x;
        }
    }
    ctx->n_case++;
    if (worst > limit)
        check_fail(ctx, "%s: error %.2f at %.9g, allowed %.2f", name, worst, at, limit);
}

static double silu_truth(double x) {
    return x / (1.0 + exp(-x));
}
static double gelu_truth(double x) {
    return x / (1.0 + exp(-2.0 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
}
static double gelu_erf_truth(double x) {
    return 0.5 * x * erfc(-x * 0.70710678118654752);
}

static float any_float(check_context *ctx, uint32_t low, uint32_t span) {
    uint32_t bits = (uint32_t)check_random(ctx);
    return pith_f32_of_bits((bits & 0x807FFFFFu) | (low + check_below(ctx, span)) << 23);
}

/* Sums that nearly cancel, that lie half way, that are subnormal: where rounding twice shows. */
static void check_fma(check_context *ctx) {
    volatile float x = 0x1.28e784p-31f, y = -0x1.5fdd94p-112f, z = 0x1.98p-143f;
    if (!signbit(fmaf(x, y, z))) return; /* mingw's fmaf rounds twice: nothing to compare with */
    for (int i = 0; i < 300000; i++) {
        float a = any_float(ctx, 1, 250), b = any_float(ctx, 1, 250), c = any_float(ctx, 0, 254);
        if (i % 3 == 1) c = -(a * b);
        if (i % 3 == 2) {
            a = any_float(ctx, 120, 14), b = any_float(ctx, 120, 14), c = any_float(ctx, 90, 70);
            a = pith_f32_of_bits(pith_bits_of_f32(a) & 0xFFFFF000u);
        }
        float got = pith_fma(a, b, c), expected = fmaf(a, b, c);
        if (pith_bits_of_f32(got) == pith_bits_of_f32(expected) || got != got) continue;
        check_fail(ctx, "fma(%a, %a, %a) is %a, not %a", (double)a, (double)b, (double)c,
                   (double)got, (double)expected);
        return;
    }
    ctx->n_case++;
}

static void check_limits(check_context *ctx) {
    if (pith_exp(0.0f) != 1.0f || pith_exp(-0.0f) != 1.0f) check_fail(ctx, "exp(0) is not 1");
    if (pith_exp(-87.31f) != 0.0f || !(pith_exp(-87.3f) > 0.0f))
        check_fail(ctx, "exp ends at the wrong place below");
    if (!isinf(pith_exp(88.71f)) || isinf(pith_exp(88.7f)))
        check_fail(ctx, "exp ends at the wrong place above");
    if (pith_exp(-INFINITY) != 0.0f || !isinf(pith_exp(INFINITY)))
        check_fail(ctx, "exp of infinity");
    if (!isnan(pith_exp(NAN)) || !isnan(pith_tanh(NAN)) || !isnan(pith_silu(NAN)) ||
        !isnan(pith_gelu(NAN)) || !isnan(pith_gelu_erf(NAN)) || !isnan(pith_relu2(NAN)))
        check_fail(ctx, "NaN is lost");
    if (pith_tanh(50.0f) != 1.0f || pith_tanh(-50.0f) != -1.0f)
        check_fail(ctx, "tanh does not saturate");
    if (pith_silu(-200.0f) != 0.0f || pith_silu(200.0f) != 200.0f)
        check_fail(ctx, "silu of large values");
    if (pith_gelu(-200.0f) != 0.0f || pith_gelu_erf(-200.0f) != 0.0f)
        check_fail(ctx, "gelu of large values");
    ctx->n_case++;
}

static void check_norms(check_context *ctx) {
    enum { LENGTH = 773 };
    float x[LENGTH], w[LENGTH], b[LENGTH], rms[LENGTH], layer[LENGTH];
    double sum = 0.0, squares = 0.0, centred = 0.0;
    check_floats(ctx, x, LENGTH, 5);
    check_floats(ctx, w, LENGTH, 0);
    check_floats(ctx, b, LENGTH, 0);
    for (int i = 0; i < LENGTH; i++) sum += (double)x[i], squares += (double)x[i] * (double)x[i];
    for (int i = 0; i < LENGTH; i++) centred += pow((double)x[i] - sum / LENGTH, 2.0);
    ctx->ref->rms_norm(&(pith_norm_args){x, rms, w, NULL, LENGTH, 1e-6f});
    ctx->ref->layer_norm(&(pith_norm_args){x, layer, w, b, LENGTH, 1e-6f});
    for (int i = 0; i < LENGTH; i++) {
        double r = (double)x[i] / sqrt(squares / LENGTH + 1e-6) * (double)w[i];
        double c = ((double)x[i] - sum / LENGTH) / sqrt(centred / LENGTH + 1e-6) * (double)w[i] +
                   (double)b[i];
        if (fabs(r - (double)rms[i]) > 1e-6 * fabs(r) + 1e-9 ||
            fabs(c - (double)layer[i]) > 1e-5 * (fabs(c) + 1.0))
            check_fail(ctx, "norm: element %d is %.9g or %.9g, double says %.9g and %.9g", i,
                       (double)rms[i], (double)layer[i], r, c);
    }
    ctx->n_case++;
}

static void check_rotation(check_context *ctx) {
    float x[8], norm[8], neox[8], table[8];
    check_floats(ctx, x, 8, 0);
    memcpy(norm, x, sizeof x);
    memcpy(neox, x, sizeof x);
    for (int i = 0; i < 4; i++)
        table[2 * i] = (float)cos(0.3 + i), table[2 * i + 1] = (float)sin(0.3 + i);
    ctx->ref->rope_norm(norm, table, 8);
    ctx->ref->rope_neox(neox, table, 8);
    for (int i = 0; i < 4; i++) {
        double c = cos(0.3 + i), s = sin(0.3 + i);
        double a = (double)x[2 * i], b = (double)x[2 * i + 1], u = (double)x[i],
               v = (double)x[i + 4];
        double error = fabs(a * c - b * s - (double)norm[2 * i]) +
                       fabs(a * s + b * c - (double)norm[2 * i + 1]) +
                       fabs(u * c - v * s - (double)neox[i]) +
                       fabs(u * s + v * c - (double)neox[i + 4]);
        if (error > 4e-6) check_fail(ctx, "rotation of pair %d is off by %.3g", i, error);
    }
    ctx->n_case++;
}

void check_truth_vectors(check_context *ctx) {
    check_fma(ctx);
    check_limits(ctx);
    check_function(ctx, "exp", pith_exp, exp, -87.2f, 88.6f, 1.1, 0.0);
    check_function(ctx, "exp near 0", pith_exp, exp, -1.0f, 1.0f, 1.1, 0.0);
    check_function(ctx, "tanh", pith_tanh, tanh, -9.0f, 9.0f, 4.0, 0.0);
    check_function(ctx, "tanh near 0", pith_tanh, tanh, -0.7f, 0.7f, 4.0, 0.0);
    check_function(ctx, "silu", pith_silu, silu_truth, -80.0f, 80.0f, 4.0, 0.0);
    check_function(ctx, "gelu", pith_gelu, gelu_truth, -10.0f, 10.0f, 4.0, 1e-6);
    check_function(ctx, "gelu_erf", pith_gelu_erf, gelu_erf_truth, -10.0f, 10.0f, 4.0, 1e-7);
    check_norms(ctx);
    check_rotation(ctx);
}
