/* SPDX-License-Identifier: Apache-2.0
 * How many guesses a step checks (draft.h).
 *
 * From the text guesses cost nothing to make. With p the share of guesses of this kind that were
 * right, k guesses give
 *     E(k) = 1 + p + p^2 + ... + p^k   tokens in   T(k + 1)   instead of   E(k) T(1).
 * The k with the best rate is taken when it is better than none. The account of what speculation
 * won (E T(1) - T(k + 1), as it turned out) must stay above -1/100 of the time spent, less one
 * token at the start to learn from: where it would not, no guess is made. So the loss is bounded
 * whatever the text is. */
#include "engine/draft.h"

#include "base/clock.h"

/* Guesses remembered of each kind: older ones fade. */
static const double memory = 64;
/* As if that many had been looked at before, with this share right: by kind. */
static const double prior_looked = 4;
static const double prior_right[PITH_DRAFT_KINDS] = {0.5,  0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0,
                                                     0.25, 0.4, 0.5, 0.6,  0.7, 0.8,  0.9, 0.95};
static const double allowed_loss = 0.01;

double pith_draft_share(const pith_drafter *d, uint32_t kind) {
    return (prior_right[kind] * prior_looked + d->right[kind]) / (prior_looked + d->looked[kind]);
}

/* Kinds of matches in the text, by their length: 3, 4, 5-6, 7-9, 10-15, 16-31, 32 and more. */
static uint32_t kind_of_match(uint32_t n_matched) {
    static const uint32_t least[] = {4, 5, 7, 10, 16, 32};
    uint32_t kind = 0;
    while (kind < sizeof least / sizeof *least && n_matched >= least[kind]) kind++;
    return kind;
}

/* Number of guesses with the best rate, each right with chance p; 0: none is better. *gain: tokens
 * in the time of one. */
static uint32_t best_number(const pith_pace *pace, double p, uint32_t most, double *gain) {
    double one = pith_pace_ns(pace, 1), tokens = 1, chance = 1;
    uint32_t best = 0;
    *gain = 1;
    for (uint32_t k = 1; k <= most; k++) {
        chance *= p;
        tokens += chance;
        double rate = tokens * one / pith_pace_ns(pace, k + 1);
        if (rate <= *gain) continue;
        *gain = rate;
        best = k;
    }
    return best;
}

/* May k guesses that took made_ns be lost? */
static bool can_afford(const pith_drafter *d, const pith_pace *pace, uint32_t k, double made_ns) {
    double one = pith_pace_ns(pace, 1);
    double loss = pith_pace_ns(pace, k + 1) + made_ns - one;
    return d->balance_ns + allowed_loss * d->spent_ns + one >= loss;
}

static uint32_t guess_from_text(pith_drafter *d, const pith_pace *pace, const int32_t *ids,
                                size_t n_ids, uint32_t most, int32_t *guesses) {
    uint32_t n_matched = 0;
    double gain = 1;
    pith_draft_text_learn(&d->text, ids, n_ids);
    uint32_t n = pith_draft_text_guess(&d->text, ids, n_ids, most, guesses, &n_matched);
    if (n == 0) return 0;
    uint32_t kind = kind_of_match(n_matched);
    n = best_number(pace, pith_draft_share(d, kind), n, &gain);
    for (uint32_t i = 0; i < n; i++) d->kinds[i] = (uint8_t)kind;
    return n;
}

uint32_t pith_draft_guess(pith_drafter *drafter, const pith_pace *pace, const int32_t *ids,
                          size_t n_ids, uint32_t most, int32_t *guesses) {
    drafter->made_ns = 0;
    if (pith_pace_ns(pace, 1) <= 0) return 0; /* the first step tells what one token costs */
    if (most > PITH_DRAFT_MAX) most = PITH_DRAFT_MAX;
    uint64_t begun = pith_clock_ns();
    uint32_t n = guess_from_text(drafter, pace, ids, n_ids, most, guesses);
    while (n > 0 && !can_afford(drafter, pace, n, 0)) n--;
    if (n > 0) drafter->made_ns = (double)(pith_clock_ns() - begun);
    if (n > 0 || !drafter->model) return n;
    double least = drafter->guess_ns; /* a guess is made before it can be looked at */
    if (!can_afford(drafter, pace, 1, least)) return 0;
    return pith_draft_model_guess(drafter, pace, ids, n_ids, most, guesses);
}

void pith_draft_learn(pith_drafter *drafter, const pith_pace *pace, uint32_t n_guesses,
                      uint32_t n_drawn, double ns, bool alone) {
    ns += drafter->made_ns;
    if (alone) drafter->spent_ns += ns;
    for (uint32_t i = 0; i < n_guesses && i < n_drawn; i++) {
        double *right = &drafter->right[drafter->kinds[i]];
        double *looked = &drafter->looked[drafter->kinds[i]];
        *right += -*right / memory + (i + 1 < n_drawn);
        *looked += -*looked / memory + 1;
    }
    bool speculated = n_guesses > 0 || drafter->made_ns > 0;
    if (alone && speculated && n_drawn > 0) {
        drafter->balance_ns += n_drawn * pith_pace_ns(pace, 1) - ns;
    }
}
