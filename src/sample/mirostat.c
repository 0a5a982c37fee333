/* SPDX-License-Identifier: Apache-2.0
 * Mirostat (Basu et al. 2021): the cut before the draw is steered so that the surprise of the drawn
 * tokens, -log2 of their probability, stays near tau.
 *
 *   version 1   fits a Zipf law to the 100 likeliest and keeps the k for which the law has surprise
 * mu
 *   version 2   keeps the tokens whose surprise is at most mu
 *   afterwards  mu <- mu - eta * (surprise of the drawn token - tau)
 *
 * The surprise observed is that within what was kept, from which the token was drawn.
 *
 * Does not: hold mu (sampler.c). */
#include "sample/choice.h"

#include <math.h>

enum { FITTED = 100 };

/* The largest logits, descending; returns how many. */
static size_t best_logits(pith_choice *choice, float best[FITTED]) {
    size_t n = choice->n, kept = 0;
    if (!choice->is_list) { /* the list is scratch */
        pith_row_scan(&choice->row);
        float limit = pith_row_limit(&choice->row, FITTED, choice->selector, choice->list);
        n = pith_row_gather(&choice->row, limit, choice->list);
    }
    for (size_t i = 0; i < n; i++) {
        float logit = choice->list[i].logit;
        if (kept == FITTED && !(logit > best[FITTED - 1])) continue;
        size_t at = kept < FITTED ? kept++ : FITTED - 1;
        for (; at > 0 && best[at - 1] < logit; at--) best[at] = best[at - 1];
        best[at] = logit;
    }
    return kept;
}

/* The exponent of the law, by least squares over the steps from one rank to the next. */
static double zipf_exponent(const float *best, size_t n, double beta) {
    double products = 0, squares = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double t = log((double)(i + 2) / (double)(i + 1));
        products += t * beta * ((double)best[i] - (double)best[i + 1]);
        squares += t * t;
    }
    return products / squares;
}

static void cut_fitted(pith_choice *choice, double mu) {
    float best[FITTED];
    size_t n = best_logits(choice, best);
    if (n < 2) return;
    double s = zipf_exponent(best, n, choice->beta), epsilon = s - 1;
    double size = (double)choice->row.n;
    double share = fabs(epsilon) < 1e-9 ? 1 / log(size) : epsilon / (1 - pow(size, -epsilon));
    double k = pow(share * exp2(mu), 1 / s);
    if (!(k >= 1)) k = 1; /* NaN too */
    pith_stage_top_k(choice, k < size ? (size_t)k : (size_t)size);
}

void pith_mirostat_cut(pith_choice *choice, int32_t version, double mu) {
    if (version == 1) {
        cut_fitted(choice, mu);
        return;
    }
    pith_choice_weigh(choice);
    double least = log(choice->total) - mu * log(2); /* of beta * (logit - max) */
    if (least > 0)
        pith_choice_keep_best(choice); /* all surprise too much */
    else
        pith_choice_keep(choice, (double)pith_choice_max(choice) + least / choice->beta);
}

double pith_mirostat_observe(double mu, double probability, double tau, double eta) {
    return mu - eta * (-log2(probability) - tau);
}
