/* SPDX-License-Identifier: Apache-2.0
 * Logits -> next token.
 *
 * Owns the chain: penalties, top-k, top-p, min-p (each on the softmax at temperature 1 over the
 * candidates that are left), then temperature, then one seeded draw. Temperature 0 takes the
 * largest logit after the penalties.
 *
 * Invariants: everything is allocated by pith_sample_new, so drawing cannot fail. NaN counts as
 * -inf; +inf as the largest float. When no logit is finite the answer is id 0. The order of
 * additions is fixed, so that the same logits, options and seed give the same ids on one platform.
 *
 * Does not: know tokens, grammars or stop rules. Read next: selection.c (the cuts), penalty.c. */
#include "sample/logit_row.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct pith_sampler {
    int32_t n_vocab;
    pith_sampler_options options; /* checked, defaults filled in */
    pith_rng rng;
    pith_penalty penalty;
    float *row;                 /* [n_vocab] logits with penalties; NULL without */
    float *maxima;              /* [blocks of the row] */
    pith_selector *selector;    /* NULL when greedy, like all that follow */
    pith_candidate *candidates; /* [n_vocab] */
    double *weights;            /* [n_vocab] of the candidates */
    float *row_weights;         /* [n_vocab] */
    double *sums;               /* [blocks of the row] of row_weights */
};

static pith_status refuse(pith_error *error, const char *name, double value, const char *allowed) {
    return pith_fail(error, PITH_ERROR_ARGUMENT, "sampler option %s is %g; allowed: %s", name,
                     value, allowed);
}

/* Copies what the caller's struct has; a longer struct may only hold zeros in the part that is not
 * known here. */
static pith_status read_options(const pith_sampler_options *given, pith_sampler_options *out,
                                pith_error *error) {
    *out = (pith_sampler_options){0};
    if (given == NULL) return PITH_OK;
    if (given->size < sizeof given->size) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "sampler options: size is %zu; set it to sizeof(struct), %zu", given->size,
                         sizeof *out);
    }
    size_t known = given->size < sizeof *out ? given->size : sizeof *out;
    memcpy(out, given, known);
    for (size_t i = known; i < given->size; i++) {
        if (((const char *)given)[i] == 0) continue;
        return pith_fail(
            error, PITH_ERROR_ARGUMENT,
            "sampler options: a field at byte %zu is set, but this version knows %zu bytes", i,
            known);
    }
    return PITH_OK;
}

static pith_status check_options(pith_sampler_options *o, pith_error *error) {
    if (!(o->temperature >= 0.0f) || o->temperature > FLT_MAX)
        return refuse(error, "temperature", (double)o->temperature,
                      "0 (greedy) or a positive number");
    if (o->top_k < 0) return refuse(error, "top_k", o->top_k, "0 (off) or a positive count");
    if (!(o->top_p >= 0.0f && o->top_p <= 1.0f))
        return refuse(error, "top_p", (double)o->top_p, "0 to 1 (0 and 1: off)");
    if (!(o->min_p >= 0.0f && o->min_p <= 1.0f))
        return refuse(error, "min_p", (double)o->min_p, "0 to 1 (0: off)");
    if (!(o->repeat_penalty >= 0.0f) || o->repeat_penalty > FLT_MAX)
        return refuse(error, "repeat_penalty", (double)o->repeat_penalty,
                      "0 (off) or a positive number");
    if (!(fabsf(o->frequency_penalty) <= FLT_MAX))
        return refuse(error, "frequency_penalty", (double)o->frequency_penalty, "a finite number");
    if (!(fabsf(o->presence_penalty) <= FLT_MAX))
        return refuse(error, "presence_penalty", (double)o->presence_penalty, "a finite number");
    if (o->penalty_window > PITH_SAMPLE_MAX_WINDOW)
        return refuse(error, "penalty_window", o->penalty_window,
                      "at most 16777216 (negative: off, 0: 64)");
    if (o->repeat_penalty == 0.0f) o->repeat_penalty = 1.0f;
    if (o->penalty_window == 0) o->penalty_window = 64;
    return PITH_OK;
}

static bool allocate(pith_sampler *sampler) {
    const pith_sampler_options *o = &sampler->options;
    size_t n = (size_t)sampler->n_vocab;
    bool penalises =
        o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f || o->presence_penalty != 0.0f;
    if (penalises && o->penalty_window > 0) {
        sampler->penalty.repeat = o->repeat_penalty;
        sampler->penalty.frequency = o->frequency_penalty;
        sampler->penalty.presence = o->presence_penalty;
        sampler->row = pith_alloc_array(n, sizeof *sampler->row);
        if (!sampler->row ||
            !pith_penalty_init(&sampler->penalty, sampler->n_vocab, o->penalty_window))
            return false;
    }
    sampler->maxima = pith_alloc_array(pith_row_blocks(n), sizeof *sampler->maxima);
    if (!sampler->maxima) return false;
    if (o->temperature == 0.0f) return true;
    sampler->selector = pith_alloc(sizeof *sampler->selector);
    sampler->candidates = pith_alloc_array(n, sizeof *sampler->candidates);
    sampler->weights = pith_alloc_array(n, sizeof *sampler->weights);
    sampler->row_weights = pith_alloc_array(n, sizeof *sampler->row_weights);
    sampler->sums = pith_alloc_array(pith_row_blocks(n), sizeof *sampler->sums);
    return sampler->selector && sampler->candidates && sampler->weights && sampler->row_weights &&
           sampler->sums;
}

pith_status pith_sample_new(int32_t n_vocab, const pith_sampler_options *options,
                            pith_sampler **out, pith_error *error) {
    *out = NULL;
    pith_sampler_options checked;
    pith_status status = read_options(options, &checked, error);
    if (status == PITH_OK) status = check_options(&checked, error);
    if (status != PITH_OK) return status;
    if (n_vocab < 1)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "sampler: the vocabulary has %d tokens; 1 is needed", n_vocab);
    pith_sampler *sampler = pith_alloc_zero(1, sizeof *sampler);
    if (sampler != NULL) {
        sampler->n_vocab = n_vocab;
        sampler->options = checked;
        pith_rng_init(&sampler->rng, checked.seed);
        if (allocate(sampler)) {
            *out = sampler;
            return PITH_OK;
        }
    }
    pith_sample_free(sampler);
    return pith_fail_memory(error, "a sampler", (uint64_t)n_vocab * 24u);
}

void pith_sample_free(pith_sampler *sampler) {
    if (sampler == NULL) return;
    pith_penalty_deinit(&sampler->penalty);
    pith_free(sampler->selector);
    pith_free(sampler->candidates);
    pith_free(sampler->weights);
    pith_free(sampler->row_weights);
    pith_free(sampler->sums);
    pith_free(sampler->maxima);
    pith_free(sampler->row);
    pith_free(sampler);
}

static int32_t draw(pith_sampler *sampler, size_t n) {
    const pith_candidate *list = sampler->candidates;
    double max = (double)pith_candidate_max(list, n);
    double total = 0;
    size_t last =
        0; /* the last candidate that weighs something: the answer when rounding leaves a rest */
    for (size_t i = 0; i < n; i++) {
        double weight = exp(((double)list[i].logit - max) / (double)sampler->options.temperature);
        sampler->weights[i] = weight;
        total += weight;
        if (weight > 0) last = i;
    }
    double rest = pith_rng_uniform(&sampler->rng) * total;
    for (size_t i = 0; i < last; i++) {
        rest -= sampler->weights[i];
        if (rest < 0) return list[i].id;
    }
    return list[last].id;
}

/* The row's scratch, filled with the penalties where there are any. */
static pith_logit_row row_of(pith_sampler *sampler, const float *logits) {
    pith_logit_row row = {.logits = logits,
                          .n = (size_t)sampler->n_vocab,
                          .n_block = pith_row_blocks((size_t)sampler->n_vocab),
                          .maxima = sampler->maxima};
    if (sampler->penalty.window > 0 && sampler->penalty.n_used > 0) {
        pith_penalty_apply(&sampler->penalty, logits, sampler->row);
        row.logits = sampler->row;
    }
    pith_row_scan(&row);
    return row;
}

/* The first cut of those that are on. Nothing below the limit can be in a prefix of weight p: n
 * logits that weigh less than (1 - p) / n of the total weigh less together than what is left. */
static size_t first_top_p(pith_sampler *sampler, const pith_logit_row *row) {
    const double p = (double)sampler->options.top_p;
    double total = pith_row_weigh(row, 1.0f, sampler->row_weights, sampler->sums);
    double least = log((1.0 - p) * total / (double)row->n) - 1e-3; /* the weights are rounded */
    float limit = (float)((double)pith_row_max(row) + least);
    size_t n = pith_row_gather(row, limit, sampler->candidates);
    for (size_t i = 0; i < n; i++)
        sampler->weights[i] = (double)sampler->row_weights[sampler->candidates[i].id];
    return pith_select_weight(sampler->selector, sampler->candidates, sampler->weights, n,
                              p * total);
}

static int32_t draw_from_row(pith_sampler *sampler, const pith_logit_row *row) {
    double total =
        pith_row_weigh(row, sampler->options.temperature, sampler->row_weights, sampler->sums);
    double number = pith_rng_uniform(&sampler->rng) * total;
    return pith_row_at(row, sampler->row_weights, sampler->sums, number);
}

static int32_t choose(pith_sampler *sampler, const float *logits) {
    const pith_sampler_options *o = &sampler->options;
    const pith_logit_row row = row_of(sampler, logits);
    pith_candidate *list = sampler->candidates;
    if (o->temperature == 0.0f) return pith_row_best(&row);
    if (pith_row_max(&row) == -INFINITY) return 0;
    const size_t k = (size_t)o->top_k;
    const bool cuts_count = k > 0 && k<row.n, cuts_weight = o->top_p> 0.0f && o->top_p < 1.0f;
    size_t n = 0;
    if (cuts_count) {
        float limit = pith_row_limit(&row, k, sampler->selector, list);
        n = pith_select_top_k(sampler->selector, list, pith_row_gather(&row, limit, list), k);
        if (cuts_weight)
            n = pith_select_top_p(sampler->selector, list, sampler->weights, n, (double)o->top_p);
    } else if (cuts_weight) {
        n = first_top_p(sampler, &row);
    } else if (o->min_p > 0.0f) {
        double limit = (double)pith_row_max(&row) + log((double)o->min_p);
        n = pith_row_gather(&row, nextafterf((float)limit, -INFINITY), list);
    } else {
        return draw_from_row(sampler, &row);
    }
    return draw(sampler, pith_select_min_p(list, n, (double)o->min_p));
}

int32_t pith_sample_next(pith_sampler *sampler, const float *logits) {
    int32_t id = choose(sampler, logits);
    pith_penalty_accept(&sampler->penalty, id);
    return id;
}

void pith_sample_accept(pith_sampler *sampler, const int32_t *ids, size_t n_ids) {
    for (size_t i = 0; i < n_ids; i++) pith_penalty_accept(&sampler->penalty, ids[i]);
}

int32_t pith_sample_n_vocab(const pith_sampler *sampler) {
    return sampler->n_vocab;
}
