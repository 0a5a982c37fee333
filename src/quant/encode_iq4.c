/* SPDX-License-Identifier: Apache-2.0
 * f32 to IQ4_NL and IQ4_XS: 16 uneven steps, scale per 32 elements.
 * The scale of a block is searched over 16 slopes by least squares under weights w * sqrt(2 *
 * mean square of the super-block + x^2), or x^2 without importance weights. The other IQ types
 * have no encoder here: they need a search over their grids. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/grid.h"
#include "quant/scale_search.h"

#include <math.h>

enum { SMALL = PITH_BLOCK_SMALL, SUPER = PITH_BLOCK_SUPER };

/* Halfway between neighbours of pith_book_iq4; exact in f32. */
static const float halfway[15] = {-115.5f, -93.5f, -74.0f, -57.0f, -42.0f, -28.5f, -16.0f, -4.5f,
                                  7.0f,    19.0f,  31.5f,  45.5f,  61.0f,  79.0f,  101.0f};

/* Index of the closest book value; halfway goes up, NaN to the top. Without branches, for speed. */
static uint8_t nearest_step(float x) {
    int index = 0;
    for (int i = 0; i < 15; i++) index += !(x < halfway[i]);
    return (uint8_t)index;
}

typedef struct fit {
    float xq, qq; /* sum w x q, sum w q q */
} fit;

static fit fit_slope(const float x[SMALL], const float w[SMALL], float slope) {
    fit f = {0.0f, 0.0f};
    for (int j = 0; j < SMALL; j++) {
        float q = (float)pith_book_iq4[nearest_step(slope * x[j])];
        f.xq += w[j] * q * x[j];
        f.qq += w[j] * q * q;
    }
    return f;
}

/* Best scale of one block of 32. */
static float search_scale(const float x[SMALL], const float *importance, float sigma2) {
    float largest = pith_largest_signed(x, SMALL), w[SMALL];
    if (fabsf(largest) < PITH_GROUP_EPSILON) return 0.0f;
    for (int j = 0; j < SMALL; j++) {
        float square = x[j] * x[j];
        w[j] = importance != NULL ? importance[j] * sqrtf(sigma2 + square) : square;
    }
    float first = (float)pith_book_iq4[0];
    fit f = fit_slope(x, w, 1.0f / (-largest / first));
    float d = f.qq > 0.0f ? f.xq / f.qq : 0.0f, best = d * f.xq;
    for (int t = -7; t <= 7; t++) {
        f = fit_slope(x, w, ((float)t + first) / largest);
        if (f.qq > 0.0f && f.xq * f.xq > best * f.qq) {
            d = f.xq / f.qq;
            best = d * f.xq;
        }
    }
    return d;
}

static float twice_mean_square(const float *x, int n) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) sum += x[j] * x[j];
    return sum * (2.0f / (float)n);
}

static void put_codes(const float x[SMALL], float scale, uint8_t qs[16]) {
    float slope = scale != 0.0f ? 1.0f / scale : 0.0f;
    for (int j = 0; j < 16; j++) {
        unsigned low = nearest_step(slope * x[j]), high = nearest_step(slope * x[j + 16]);
        qs[j] = (uint8_t)(low | high << 4);
    }
}

void pith_encode_iq4_nl(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_iq4_nl *b = dst;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        const float *importance = weights != NULL ? weights + c : NULL;
        float d = search_scale(src + c, importance, twice_mean_square(src + c, SMALL));
        pith_store_f16(b->d, d);
        put_codes(src + c, d, b->qs);
    }
}

static void encode_iq4_xs_block(const float *x, const float *importance, pith_block_iq4_xs *b) {
    float scales[8], sigma2 = twice_mean_square(x, SUPER);
    for (int ib = 0; ib < 8; ib++) {
        const float *w = importance != NULL ? importance + 32 * ib : NULL;
        scales[ib] = search_scale(x + 32 * ib, w, sigma2);
    }
    float d = -pith_largest_signed(scales, 8) / 32.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
    uint32_t scales_h = 0;
    memset(b->scales_l, 0, sizeof b->scales_l);
    for (int ib = 0; ib < 8; ib++) {
        int l = pith_clamp_int(pith_round_even(inverse * scales[ib]), -32, 31);
        put_codes(x + 32 * ib, d * (float)l, b->qs + 16 * ib);
        unsigned code = (unsigned)(l + 32);
        b->scales_l[ib / 2] = (uint8_t)(b->scales_l[ib / 2] | (code & 15u) << 4 * (ib % 2));
        scales_h |= (code >> 4) << 2 * ib;
    }
    pith_store_f16(b->d, d);
    pith_store_u16(b->scales_h, scales_h);
}

void pith_encode_iq4_xs(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_iq4_xs *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        encode_iq4_xs_block(src + c, weights != NULL ? weights + c : NULL, b);
    }
}
