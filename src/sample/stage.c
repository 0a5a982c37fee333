/* SPDX-License-Identifier: Apache-2.0
 * The stages of the sampler, each on a row or on a list (choice.h).
 *
 * Invariant: every stage leaves at least one candidate, and changes no logit to -inf or NaN but
 * that of an id that it removes. Where a stage needs the softmax it weighs what the stages before
 * left; none sorts.
 *
 * Does not: know options, order or randomness (sampler.c). */
#include "sample/choice.h"

#include <float.h>
#include <math.h>

/* ---- Stages that change logits ---- */

void pith_stage_bias(pith_choice *choice, const pith_logit_bias *biases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float logit = pith_row_get(&choice->row, biases[i].id);
        if (!(logit > -INFINITY)) continue;
        double sum = (double)logit + (double)biases[i].bias;
        pith_row_set(&choice->row, biases[i].id,
                     biases[i].bias > -INFINITY ? pith_float_of(sum) : -INFINITY);
    }
}

static float penalised(const pith_choice *choice, const pith_penalty *penalty, pith_candidate one) {
    double scaled = choice->beta * (double)one.logit;
    return pith_float_of(pith_penalty_apply(penalty, scaled, penalty->count[one.id]) /
                         choice->beta);
}

void pith_stage_penalties(pith_choice *choice, const pith_penalty *penalty) {
    for (size_t i = 0; choice->is_list && i < choice->n; i++)
        if (penalty->count[choice->list[i].id] > 0)
            choice->list[i].logit = penalised(choice, penalty, choice->list[i]);
    for (size_t i = 0; !choice->is_list && i < penalty->n_distinct; i++) {
        pith_candidate one = {.id = penalty->distinct[i]};
        one.logit = pith_row_get(&choice->row, one.id);
        if (one.logit > -INFINITY)
            pith_row_set(&choice->row, one.id, penalised(choice, penalty, one));
    }
}

/* Subtracts from the logit of one id, if it is left. */
static void subtract(pith_choice *choice, int32_t id, double amount) {
    double less = amount / choice->beta;
    if (choice->is_list) {
        size_t at = pith_candidate_find(choice->list, choice->n, id);
        if (at == choice->n) return;
        choice->list[at].logit = pith_float_of((double)choice->list[at].logit - less);
    } else {
        float logit = pith_row_get(&choice->row, id);
        if (logit > -INFINITY) pith_row_set(&choice->row, id, pith_float_of((double)logit - less));
    }
}

void pith_stage_dry(pith_choice *choice, pith_dry *dry, const pith_history *history) {
    size_t n = pith_dry_find(dry, history);
    for (size_t i = 0; i < n; i++) {
        int32_t id = dry->found[i];
        subtract(choice, id, pith_dry_penalty(dry, dry->longest[id]));
        dry->longest[id] = 0;
    }
}

/* ---- Cuts by rank or by distance from the best ---- */

void pith_stage_top_k(pith_choice *choice, size_t k) {
    if (!choice->is_list) {
        if (k >= choice->row.n) return;
        pith_row_scan(&choice->row);
        float limit = pith_row_limit(&choice->row, k, choice->selector, choice->list);
        choice->n = pith_row_gather(&choice->row, limit, choice->list);
        choice->is_list = true;
    }
    choice->n = pith_select_top_k(choice->selector, choice->list, choice->n, k);
}

/* Of a row: a limit to beta * (logit - max), `most` or less, such that what reaches it weighs p of
 * the total. Tried first: limits that mostly leave a few tokens. The last one needs no trial: n
 * logits that weigh less than (1 - p) / n of the total weigh less together than what is left out.
 * */
static double prefix_limit(const pith_choice *choice, double p, double most) {
    const pith_logit_row *row = &choice->row;
    const double enough = p * choice->total * (1 + 1e-4); /* sums are rounded */
    for (double n = 1024;; n *= 16) {
        bool is_sure = n >= (double)row->n;
        double least = log((1 - p) * choice->total / (is_sure ? (double)row->n : n));
        if (least > most) least = most;
        if (is_sure || pith_row_weight_above(row, choice->row_weights, choice->sums,
                                             pith_float_of(exp(least))) >= enough)
            return least - 1e-3; /* weights are rounded */
    }
}

void pith_stage_top_p(pith_choice *choice, double p) {
    pith_choice_weigh(choice);
    if (!choice->is_list) {
        double max = (double)pith_choice_max(choice);
        pith_choice_gather_weighed(choice, max + prefix_limit(choice, p, 0) / choice->beta);
    }
    choice->n = pith_select_weight(choice->selector, choice->list, choice->weights, choice->n,
                                   p * choice->total);
}

void pith_stage_min_p(pith_choice *choice, double p) {
    pith_choice_keep(choice, (double)pith_choice_max(choice) + log(p) / choice->beta);
}

static double deviation_of(const pith_candidate *list, size_t n, double max) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)list[i].logit - max;
        sum += d;
        square += d * d;
    }
    double mean = sum / (double)n, variance = square / (double)n - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

void pith_stage_top_n_sigma(pith_choice *choice, double n) {
    double max = (double)pith_choice_max(choice);
    double deviation = choice->is_list ? deviation_of(choice->list, choice->n, max)
                                       : pith_row_deviation(&choice->row);
    pith_choice_keep(choice, max - n * deviation);
}

/* ---- Typical ---- */

/* The surprise of a token less the mean surprise is slope - beta * (logit - max), whatever the
 * total. Below twice the slope a token is less typical than even the likeliest: there, what is less
 * likely comes later, as for top-p. */
void pith_stage_typical(pith_choice *choice, double p) {
    pith_choice_weigh(choice);
    double slope = pith_choice_slope(choice), max = (double)pith_choice_max(choice);
    if (!choice->is_list)
        pith_choice_gather_weighed(choice, max + prefix_limit(choice, p, 2 * slope) / choice->beta);
    for (size_t i = 0; i < choice->n; i++) { /* the order of the selection: most typical first */
        pith_candidate *one = &choice->list[i];
        double below = choice->beta * ((double)one->logit - max);
        choice->row_weights[one->id] = one->logit;
        one->logit = -pith_float_of(fabs(slope - below));
    }
    double target = nextafter(p * choice->total, HUGE_VAL); /* more than p */
    choice->n =
        pith_select_weight(choice->selector, choice->list, choice->weights, choice->n, target);
    for (size_t i = 0; i < choice->n; i++)
        choice->list[i].logit = choice->row_weights[choice->list[i].id];
}

/* ---- XTC: exclude top choices ---- */

/* Of two that reach the threshold, the one that stays: the less likely, of equals the later. */
static bool is_later(pith_candidate a, pith_candidate b) {
    return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

static void exclude_of_list(pith_choice *choice, double least) {
    size_t stays = SIZE_MAX, kept = 0;
    for (size_t i = 0; i < choice->n; i++)
        if (choice->weights[i] >= least &&
            (stays == SIZE_MAX || is_later(choice->list[i], choice->list[stays])))
            stays = i;
    for (size_t i = 0; i < choice->n; i++)
        if (i == stays || !(choice->weights[i] >= least)) choice->list[kept++] = choice->list[i];
    choice->n = kept;
}

static void exclude_of_row(pith_choice *choice, double least) {
    double max = (double)pith_choice_max(choice);
    float limit = pith_float_of(max + (log(least) - 1e-3) / choice->beta);
    size_t n = pith_row_gather(&choice->row, limit, choice->list), stays = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        pith_candidate one = choice->list[i];
        if (!((double)choice->row_weights[one.id] >= least)) continue;
        if (stays == SIZE_MAX || is_later(one, choice->list[stays])) stays = i;
    }
    for (size_t i = 0; i < n; i++) {
        pith_candidate one = choice->list[i];
        if (i != stays && (double)choice->row_weights[one.id] >= least)
            pith_row_set(&choice->row, one.id, -INFINITY);
    }
}

void pith_stage_xtc(pith_choice *choice, double threshold) {
    pith_choice_weigh(choice);
    double least = threshold * choice->total;
    if (!(least <= 1)) return; /* not even the likeliest, which weighs 1, reaches it */
    if (choice->is_list)
        exclude_of_list(choice, least);
    else
        exclude_of_row(choice, least);
}

/* ---- Temperature ---- */

void pith_stage_temperature(pith_choice *choice, double temperature, double range,
                            double exponent) {
    if (range > 0) {
        double low = temperature > range ? temperature - range : 0, share = 0;
        pith_choice_weigh(choice);
        double n = pith_choice_count(choice);
        if (n < 2) return;
        share = (log(choice->total) - pith_choice_slope(choice)) / log(n);
        share = share < 0 ? 0 : share > 1 ? 1 : share; /* by rounding */
        temperature = low + (temperature + range - low) * pow(share, exponent);
    }
    if (temperature > 0)
        choice->beta /= temperature;
    else
        pith_choice_keep_best(choice);
}
