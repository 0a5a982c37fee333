/* SPDX-License-Identifier: Apache-2.0
 * Logits -> next token.
 *
 * Owns the chain: penalties, top-k, top-p, min-p (each on the softmax at temperature 1 over the
 * candidates that are left), then temperature, then one seeded draw. Temperature 0 takes the
 * largest logit after the penalties; without penalties that is one pass over the logits and nothing
 * else.
 *
 * Invariants: everything is allocated by pith_sample_new, so drawing cannot fail. NaN counts as
 * -inf; +inf as the largest float. When no logit is finite the answer is id 0. The order of
 * additions is fixed, so that the same logits, options and seed give the same ids on one platform.
 *
 * Does not: know tokens, grammars or stop rules. Read next: selection.c (the cuts), penalty.c. */
#include "sample/sampler_internal.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct pith_sampler {
    int32_t n_vocab;
    pith_sampler_options options; /* checked, defaults filled in */
    pith_rng rng;
    pith_penalty penalty;
    pith_selector *selector;    /* NULL when greedy */
    pith_candidate *candidates; /* [n_vocab]; NULL when greedy */
    double *weights;            /* [n_vocab]; NULL when greedy */
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
        if (!pith_penalty_init(&sampler->penalty, sampler->n_vocab, o->penalty_window))
            return false;
    }
    if (o->temperature == 0.0f) return true;
    sampler->selector = pith_alloc(sizeof *sampler->selector);
    sampler->candidates = pith_alloc_array(n, sizeof *sampler->candidates);
    sampler->weights = pith_alloc_array(n, sizeof *sampler->weights);
    return sampler->selector && sampler->candidates && sampler->weights;
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
    pith_free(sampler);
}

int32_t pith_sample_greedy(const float *logits, int32_t n_vocab) {
    int32_t best = 0;
    float max = -INFINITY; /* a comparison with NaN is false, so NaN never wins */
    for (int32_t i = 0; i < n_vocab; i++) {
        if (logits[i] > max) {
            max = logits[i];
            best = i;
        }
    }
    return best;
}

/* The logit of id with its penalty, NaN as -inf, +inf as FLT_MAX. */
static float penalised(const pith_penalty *penalty, float logit, int32_t count) {
    float value = logit;
    if (value > FLT_MAX) value = FLT_MAX;
    if (count > 0) value = pith_penalty_apply(penalty, value, count);
    if (value > FLT_MAX) value = FLT_MAX;
    return value == value ? value : -INFINITY;
}

static int32_t greedy_penalised(const pith_penalty *penalty, const float *logits, int32_t n_vocab) {
    int32_t best = 0;
    float max = -INFINITY;
    for (int32_t i = 0; i < n_vocab; i++) {
        float value = penalised(penalty, logits[i], penalty->count[i]);
        if (value > max) {
            max = value;
            best = i;
        }
    }
    return best;
}

/* Every id whose logit is above -inf after the penalties, in id order. */
static size_t fill(pith_sampler *sampler, const float *logits) {
    const int32_t *count = sampler->penalty.window > 0 ? sampler->penalty.count : NULL;
    pith_candidate *list = sampler->candidates;
    size_t n = 0;
    for (int32_t i = 0; i < sampler->n_vocab; i++) {
        float value = penalised(&sampler->penalty, logits[i], count != NULL ? count[i] : 0);
        list[n] = (pith_candidate){value, i};
        n += value >= -FLT_MAX;
    }
    return n;
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

static int32_t choose(pith_sampler *sampler, const float *logits) {
    const pith_sampler_options *o = &sampler->options;
    if (o->temperature == 0.0f) {
        return sampler->penalty.window > 0
                   ? greedy_penalised(&sampler->penalty, logits, sampler->n_vocab)
                   : pith_sample_greedy(logits, sampler->n_vocab);
    }
    size_t n = fill(sampler, logits);
    n = pith_select_top_k(sampler->selector, sampler->candidates, n, (size_t)o->top_k);
    if (o->top_p > 0.0f)
        n = pith_select_top_p(sampler->selector, sampler->candidates, sampler->weights, n,
                              (double)o->top_p);
    n = pith_select_min_p(sampler->candidates, n, (double)o->min_p);
    return n == 0 ? 0 : draw(sampler, n);
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
