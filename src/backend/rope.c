/* SPDX-License-Identifier: Apache-2.0
 *
 * How positions become angles. Every supported scaling is linear in the position, so a setting
 * is one frequency a pair; cos and sin are taken of position * frequency in double, so that
 * large positions keep their phase.
 *
 *   theta_e(i) = base^(-2i / n_rot) / factor_i                     extrapolated: as trained
 *   linear:  frequency = freq_scale * theta_e
 *   YaRN:    frequency = freq_scale * theta_e * (1 - mix) + theta_e * mix,
 *            mix = ramp(i) * ext_factor; ramp is 1 for pairs that turn more than beta_fast times
 *            in n_ctx_orig, 0 below beta_slow turns (Peng et al. 2023, "YaRN")
 *
 * attn_factor is the net magnitude: whoever makes the setting has put YaRN's own factor in.
 * Read next: plan.c (settings are registered), cpu/step.c (tables of a step).
 */
#include "backend/plan.h"

#include <math.h>

static const double two_pi = 6.283185307179586;

/* The pair that turns `turns` times over the original context. */
static double correction(const pith_rope *rope, double turns) {
    return rope->n_rot * log((double)rope->n_ctx_orig / (turns * two_pi)) /
           (2.0 * log((double)rope->base));
}

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

double pith_rope_frequency(const pith_rope *rope, uint32_t pair) {
    double theta = pow((double)rope->base, -2.0 * pair / rope->n_rot);
    if (rope->factors) theta /= (double)rope->factors[pair];
    double scaled = theta * (double)rope->freq_scale;
    if (rope->ext_factor == 0.0f) return scaled;
    double low = fmax(0.0, floor(correction(rope, (double)rope->beta_fast)));
    double high = fmin(rope->n_rot - 1.0, ceil(correction(rope, (double)rope->beta_slow)));
    double ramp = 1.0 - clamp((pair - low) / fmax(0.001, high - low), 0.0, 1.0);
    double mix = ramp * (double)rope->ext_factor;
    return scaled * (1.0 - mix) + theta * mix;
}

void pith_rope_fill(const pith_rope *rope, int32_t position, float *table) {
    for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
        double angle = position * pith_rope_frequency(rope, i);
        table[2 * i] = (float)(cos(angle) * (double)rope->attn_factor);
        table[2 * i + 1] = (float)(sin(angle) * (double)rope->attn_factor);
    }
}
