/* SPDX-License-Identifier: Apache-2.0
 * What may still be chosen: a row or a list (choice.h).
 *
 * Owns the scratch of one draw. Invariants: at least one candidate is left once there was one; the
 * list is in id order; weights are exp(beta * (logit - max)), of a list in double, of a row in
 * float with sums in double.
 *
 * Does not: know what the stages mean (stage.c) or who draws (sampler.c). */
#include "sample/choice.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>

bool pith_choice_init(pith_choice *choice, int32_t n_vocab, bool is_greedy) {
    size_t n = (size_t)n_vocab;
    *choice = (pith_choice){.beta = 1};
    if (!pith_row_init(&choice->row, n)) return false;
    if (is_greedy) return true;
    choice->selector = pith_alloc(sizeof *choice->selector);
    choice->list = pith_alloc_array(n, sizeof *choice->list);
    choice->weights = pith_alloc_array(n, sizeof *choice->weights);
    choice->row_weights = pith_alloc_array(n, sizeof *choice->row_weights);
    choice->sums = pith_alloc_array(choice->row.n_block, sizeof *choice->sums);
    return choice->selector && choice->list && choice->weights && choice->row_weights &&
           choice->sums;
}

void pith_choice_deinit(pith_choice *choice) {
    pith_row_deinit(&choice->row);
    pith_free(choice->selector);
    pith_free(choice->list);
    pith_free(choice->weights);
    pith_free(choice->row_weights);
    pith_free(choice->sums);
    *choice = (pith_choice){0};
}

void pith_choice_open(pith_choice *choice, const float *logits) {
    pith_row_open(&choice->row, logits);
    choice->is_list = false;
    choice->n = 0;
    choice->beta = 1;
    choice->total = 0;
}

float pith_float_of(double x) {
    if (x > (double)FLT_MAX) return FLT_MAX;
    return x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

float pith_choice_max(pith_choice *choice) {
    if (choice->is_list) return pith_candidate_max(choice->list, choice->n);
    pith_row_scan(&choice->row);
    return pith_row_max(&choice->row);
}

void pith_choice_weigh(pith_choice *choice) {
    double max = (double)pith_choice_max(choice), total = 0;
    if (!choice->is_list) {
        choice->total =
            pith_row_weigh(&choice->row, choice->beta, choice->row_weights, choice->sums);
        return;
    }
    for (size_t i = 0; i < choice->n; i++) {
        double distance = (double)choice->list[i].logit - max;
        choice->weights[i] = distance < 0 ? exp(choice->beta * distance) : 1;
        total += choice->weights[i];
    }
    choice->total = total;
}

/* A limit for pith_row_gather that no logit >= limit is below. */
static float limit_below(double limit) {
    return nextafterf(pith_float_of(limit), -INFINITY);
}

void pith_choice_keep(pith_choice *choice, double limit) {
    double max = (double)pith_choice_max(choice), least = limit < max ? limit : max;
    if (!choice->is_list) {
        choice->n = pith_row_gather(&choice->row, limit_below(least), choice->list);
        choice->is_list = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < choice->n; i++)
        if ((double)choice->list[i].logit >= least) choice->list[kept++] = choice->list[i];
    choice->n = kept;
}

void pith_choice_gather_weighed(pith_choice *choice, double limit) {
    choice->n = pith_row_gather(&choice->row, limit_below(limit), choice->list);
    for (size_t i = 0; i < choice->n; i++)
        choice->weights[i] = (double)choice->row_weights[choice->list[i].id];
    choice->is_list = true;
}

void pith_choice_keep_best(pith_choice *choice) {
    float max = pith_choice_max(choice);
    if (!choice->is_list) {
        choice->list[0] = (pith_candidate){max, pith_row_best(&choice->row)};
    } else {
        size_t i = 0;
        while (choice->list[i].logit < max) i++;
        choice->list[0] = choice->list[i];
    }
    choice->is_list = true;
    choice->n = 1;
}

double pith_choice_count(pith_choice *choice) {
    return choice->is_list ? (double)choice->n : (double)pith_row_count(&choice->row);
}

double pith_choice_slope(pith_choice *choice) {
    if (!choice->is_list)
        return pith_row_slope(&choice->row, choice->beta, choice->row_weights, choice->sums) /
               choice->total;
    double max = (double)pith_choice_max(choice), sum = 0;
    for (size_t i = 0; i < choice->n; i++)
        if (choice->weights[i] > 0)
            sum += choice->weights[i] * choice->beta * ((double)choice->list[i].logit - max);
    return sum / choice->total;
}

/* ---- The end ---- */

int32_t pith_choice_draw(const pith_choice *choice, double uniform) {
    double rest = uniform * choice->total;
    if (!choice->is_list) return pith_row_at(&choice->row, choice->row_weights, choice->sums, rest);
    size_t last = choice->n - 1; /* that weighs something: drawn when rounding leaves a rest */
    while (last > 0 && !(choice->weights[last] > 0)) last--;
    for (size_t i = 0; i < last; i++) {
        rest -= choice->weights[i];
        if (rest < 0) return choice->list[i].id;
    }
    return choice->list[last].id;
}

double pith_choice_probability(const pith_choice *choice, int32_t id) {
    if (choice->is_list) {
        size_t at = pith_candidate_find(choice->list, choice->n, id);
        return at < choice->n ? choice->weights[at] / choice->total : 0;
    }
    bool weighs = choice->sums[(size_t)id / PITH_ROW_BLOCK] > 0;
    return weighs ? (double)choice->row_weights[id] / choice->total : 0;
}

static size_t list_row(const pith_choice *choice, int32_t *ids, double *probabilities,
                       size_t capacity) {
    size_t n = 0;
    for (size_t i = 0; i < choice->row.n; i++) {
        if (!(choice->sums[i / PITH_ROW_BLOCK] > 0) || !(choice->row_weights[i] > 0.0f)) continue;
        if (n < capacity) {
            ids[n] = (int32_t)i;
            probabilities[n] = (double)choice->row_weights[i] / choice->total;
        }
        n++;
    }
    return n;
}

size_t pith_choice_list(const pith_choice *choice, int32_t *ids, double *probabilities,
                        size_t capacity) {
    if (!choice->is_list) return list_row(choice, ids, probabilities, capacity);
    size_t n = 0;
    for (size_t i = 0; i < choice->n; i++) {
        if (!(choice->weights[i] > 0)) continue;
        if (n < capacity) {
            ids[n] = choice->list[i].id;
            probabilities[n] = choice->weights[i] / choice->total;
        }
        n++;
    }
    return n;
}
