/* SPDX-License-Identifier: Apache-2.0
 * Finds the scale (and offset) that lets a few small integers stand for a group of floats with
 * the least weighted squared error. All searches are least squares: for given codes l the best
 * scale is A / B with A = sum w x l and B = sum w l l, and it removes A^2 / B from the error, so
 * candidates are compared by A^2 * B' > A'^2 * B without a division.
 * Invariant: the order of every sum and product is part of the format's behaviour (bit-exact
 * vectors); do not reorder, and never compile with contraction. Products w*l*l go left to right.
 * It knows no block layout. Read next: encode_k.c. */
#include "quant/scale_search.h"

#include <math.h>

float pith_largest_signed(const float *x, int n) {
    float largest = 0.0f, magnitude = 0.0f;
    for (int i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        if (a > magnitude) {
            magnitude = a;
            largest = x[i];
        }
    }
    return largest;
}

static float zero_codes(int n, uint8_t *codes) {
    for (int i = 0; i < n; i++) codes[i] = 0;
    return 0.0f;
}

/* The two sums of a least-squares fit. */
typedef struct fit {
    float xl, ll; /* sum w x l, sum w l l */
} fit;

static fit fit_symmetric(int n, int half, const float *x, const float *weights, float s) {
    fit f = {0.0f, 0.0f};
    for (int i = 0; i < n; i++) {
        float l = (float)pith_clamp_int(pith_round_even(s * x[i]), -half, half - 1);
        float w = weights != NULL ? weights[i] : x[i] * x[i];
        f.xl += w * x[i] * l;
        f.ll += w * l * l;
    }
    return f;
}

float pith_search_symmetric(int n, int half, const float *x, const float *weights, uint8_t *codes) {
    float largest = pith_largest_signed(x, n);
    if (fabsf(largest) < PITH_GROUP_EPSILON) return zero_codes(n, codes);
    float slope = -(float)half / largest;
    fit f = fit_symmetric(n, half, x, weights, slope);
    float scale = f.ll != 0.0f ? f.xl / f.ll : 0.0f, best = scale * f.xl;
    for (int t = -9; t <= 9; t++) {
        if (t == 0) continue;
        float s = -((float)half + 0.1f * (float)t) / largest;
        f = fit_symmetric(n, half, x, weights, s);
        if (f.ll > 0.0f && f.xl * f.xl > best * f.ll) {
            slope = s;
            scale = f.xl / f.ll;
            best = scale * f.xl;
        }
    }
    for (int i = 0; i < n; i++) {
        int l = pith_clamp_int(pith_round_even(slope * x[i]), -half, half - 1);
        codes[i] = (uint8_t)(l + half);
    }
    return scale;
}

/* One pass of coordinate descent of pith_search_descent: true when a code changed. */
static bool descend_symmetric(int n, int half, const float *x, int *l, fit *f) {
    bool changed = false;
    for (int i = 0; i < n; i++) {
        float w = x[i] * x[i], old = (float)l[i];
        fit g = {f->xl - w * x[i] * old, f->ll};
        if (!(g.xl > 0.0f)) continue;
        g.ll -= w * old * old;
        int code = pith_clamp_int(pith_round_even(x[i] * g.ll / g.xl), -half, half - 1);
        if (code == l[i]) continue;
        g.xl += w * x[i] * (float)code;
        g.ll += w * (float)code * (float)code;
        if (!(g.ll > 0.0f && g.xl * g.xl * f->ll > f->xl * f->xl * g.ll)) continue;
        l[i] = code;
        *f = g;
        changed = true;
    }
    return changed;
}

float pith_search_descent(int n, int half, const float *x, uint8_t *codes) {
    float largest = pith_largest_signed(x, n);
    if (fabsf(largest) < PITH_GROUP_EPSILON) return zero_codes(n, codes);
    float slope = -(float)half / largest;
    int l[PITH_GROUP_MAX];
    for (int i = 0; i < n; i++) {
        l[i] = pith_clamp_int(pith_round_even(slope * x[i]), -half, half - 1);
    }
    fit f = fit_symmetric(n, half, x, NULL, slope);
    for (int pass = 0; pass < 5 && descend_symmetric(n, half, x, l, &f); pass++) {}
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(l[i] + half);
    return f.ll > 0.0f ? f.xl / f.ll : 0.0f;
}

static void codes_affine(int n, int top, const float *x, float slope, float minimum,
                         uint8_t *codes) {
    for (int i = 0; i < n; i++) {
        codes[i] = (uint8_t)pith_clamp_int(pith_round_even(slope * (x[i] - minimum)), 0, top);
    }
}

/* Weighted error of scale * code + minimum. */
static float error_affine(int n, const float *x, const float *weights, const uint8_t *codes,
                          pith_affine a, bool absolute) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float e = a.scale * (float)codes[i] + a.offset - x[i];
        e = absolute ? fabsf(e) : e * e;
        sum += weights[i] * e;
    }
    return sum;
}

/* The least-squares line through (code, x) with a minimum of at most 0. False: the codes are alike.
 * Here and below `offset` of a pith_affine is the minimum itself; it is negated on return. */
static bool line_through(int n, const float *x, const float *weights, const uint8_t *codes,
                         pith_affine *out) {
    float w1 = 0.0f, wx = 0.0f, wl = 0.0f, wll = 0.0f, wxl = 0.0f;
    for (int i = 0; i < n; i++) {
        float w = weights[i], l = (float)codes[i];
        w1 += w;
        wx += w * x[i];
        wl += w * l;
        wll += w * l * l;
        wxl += w * l * x[i];
    }
    float determinant = w1 * wll - wl * wl;
    if (!(determinant > 0.0f)) return false;
    out->scale = (w1 * wxl - wx * wl) / determinant;
    out->offset = (wll * wx - wl * wxl) / determinant;
    if (out->offset > 0.0f) {
        out->offset = 0.0f;
        out->scale = wxl / wll;
    }
    return true;
}

pith_affine pith_search_affine(int n, int top, const float *x, const float *weights,
                               const pith_affine_grid *grid, uint8_t *codes) {
    float low = x[0], high = x[0];
    for (int i = 1; i < n; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    if (low > 0.0f) low = 0.0f;
    if (!(high > low)) {
        zero_codes(n, codes);
        return (pith_affine){0.0f, -low};
    }
    float slope = (float)top / (high - low);
    pith_affine best = {1.0f / slope, low};
    codes_affine(n, top, x, slope, low, codes);
    float best_error = error_affine(n, x, weights, codes, best, grid->absolute);
    for (int t = 0; t <= grid->count; t++) {
        /* best.offset, not low: the range follows the minimum of the best line so far. */
        slope = (grid->first + grid->step * (float)t + (float)top) / (high - best.offset);
        uint8_t tried[PITH_GROUP_MAX];
        pith_affine line;
        codes_affine(n, top, x, slope, best.offset, tried);
        if (!line_through(n, x, weights, tried, &line)) continue;
        float error = error_affine(n, x, weights, tried, line, grid->absolute);
        if (!(error < best_error)) continue;
        best_error = error;
        best = line;
        memcpy(codes, tried, (size_t)n);
    }
    return (pith_affine){best.scale, -best.offset};
}

static int code_positive(float slope, float x, int top) {
    return pith_clamp_int(pith_round_even(slope * x), 0, top);
}

static float error_positive(int n, int top, const float *x, const float *weights, float slope) {
    float scale = 1.0f / slope, sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float e = x[i] - scale * (float)code_positive(slope, x[i], top);
        sum += weights[i] * e * e;
    }
    return sum;
}

/* One pass of coordinate descent of pith_search_positive. */
static bool descend_positive(int n, int top, const float *x, const float *weights, uint8_t *codes,
                             fit *f) {
    bool changed = false;
    for (int i = 0; i < n; i++) {
        float w = weights[i], old = (float)codes[i];
        fit g = {f->xl - w * x[i] * old, f->ll - w * old * old};
        if (!(g.xl > 0.0f && g.ll > 0.0f)) continue;
        int code = pith_clamp_int(pith_round_even(x[i] * g.ll / g.xl), 0, top);
        if (code == codes[i]) continue;
        g.xl += w * x[i] * (float)code;
        g.ll += w * (float)code * (float)code;
        if (!(g.xl * g.xl * f->ll > f->xl * f->xl * g.ll)) continue;
        codes[i] = (uint8_t)code;
        *f = g;
        changed = true;
    }
    return changed;
}

float pith_search_positive(int n, int top, const float *x, const float *weights, uint8_t *codes) {
    float high = 0.0f;
    for (int i = 0; i < n; i++) {
        if (x[i] > high) high = x[i];
    }
    if (high < PITH_GROUP_EPSILON) return zero_codes(n, codes);
    float slope = (float)top / high, best_error = error_positive(n, top, x, weights, slope);
    for (int t = -4; t <= 4; t++) {
        if (t == 0) continue;
        float s = (0.1f * (float)t + (float)top) / high;
        float error = error_positive(n, top, x, weights, s);
        if (error < best_error) {
            best_error = error;
            slope = s;
        }
    }
    fit f = {0.0f, 0.0f};
    for (int i = 0; i < n; i++) {
        int code = code_positive(slope, x[i], top);
        codes[i] = (uint8_t)code;
        f.xl += weights[i] * x[i] * (float)code;
        f.ll += weights[i] * (float)code * (float)code;
    }
    for (int pass = 0; pass < 5 && descend_positive(n, top, x, weights, codes, &f); pass++) {}
    return f.ll > 0.0f ? f.xl / f.ll : 0.0f;
}
