/* SPDX-License-Identifier: Apache-2.0
 * Logits -> next token.
 *
 * Owns the chain: filter, bias, the stages in their order, mirostat's cut, then one seeded draw.
 *
 *   token t     [ XTC's coin ] [ stages: choice ] [ mirostat's cut ] [ draw ] -> remember: t + 1
 *
 * Invariants: everything is allocated by pith_sample_new, so drawing cannot fail. The order of
 * additions is fixed, so that the same logits, options and seed give the same ids on one platform.
 * A draw takes one random number, or two with XTC; a greedy one none, nor one where the filter says
 * that a single id may come.
 *
 * Does not: know texts, grammars or stop rules. Read next: stage.c, choice.c, history.c. */
#include "sample/sampler_internal.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { GREEDY_TRIES = 32 }; /* single ids that a greedy draw asks a filter about */

/* ---- Made and freed ---- */

static bool allocate(pith_sampler *sampler) {
    const pith_sampler_settings *s = &sampler->settings;
    int32_t window = 0;
    sampler->biases = pith_alloc_array(s->options.n_biases, sizeof *sampler->biases);
    if (!sampler->biases) return false;
    if (s->penalises) {
        window = s->options.penalty_window;
        sampler->penalty.repeat = s->options.repeat_penalty;
        sampler->penalty.frequency = s->options.frequency_penalty;
        sampler->penalty.presence = s->options.presence_penalty;
        if (!pith_penalty_init(&sampler->penalty, sampler->n_vocab, window)) return false;
    }
    if (s->uses_dry) {
        if (s->options.dry_window > window) window = s->options.dry_window;
        sampler->dry.multiplier = (double)s->options.dry_multiplier;
        sampler->dry.base = (double)s->options.dry_base;
        sampler->dry.allowed = s->options.dry_allowed_length;
        if (!pith_dry_init(&sampler->dry, sampler->n_vocab, s->options.dry_window)) return false;
    }
    if (s->options.mirostat > 0) {
        sampler->mu_before = pith_alloc_array(PITH_SAMPLE_KEPT, sizeof *sampler->mu_before);
        if (!sampler->mu_before) return false;
    }
    return pith_history_init(&sampler->history, (size_t)window) &&
           pith_choice_init(&sampler->choice, sampler->n_vocab, s->is_greedy);
}

static bool fill(pith_sampler *sampler, const pith_span *pieces) {
    pith_sampler_options *o = &sampler->settings.options;
    pith_span breakers[PITH_SAMPLE_MAX_BREAKERS];
    if (o->n_biases > 0) memcpy(sampler->biases, o->biases, o->n_biases * sizeof *o->biases);
    size_t n = sampler->settings.uses_dry ? pith_settings_breakers(o, breakers) : 0;
    o->biases = NULL, o->dry_breakers = NULL, o->order = NULL; /* the caller's */
    sampler->mu = 2 * (double)o->mirostat_tau;
    pith_rng_init(&sampler->luck.rng, o->seed);
    return pith_breakers_init(&sampler->dry.breakers, breakers, n, pieces, sampler->n_vocab);
}

bool pith_sample_wants_pieces(const pith_sampler_options *options) {
    return options->dry_multiplier > 0.0f && options->dry_window >= 0 &&
           (options->dry_breakers == NULL || options->n_dry_breakers > 0);
}

pith_status pith_sample_new_with_pieces(const pith_span *pieces, int32_t n_vocab,
                                        const pith_sampler_options *options, pith_sampler **out,
                                        pith_error *error) {
    *out = NULL;
    pith_sampler_settings settings;
    pith_status status = pith_settings_read(options, n_vocab, &settings, error);
    if (status != PITH_OK) return status;
    if (pieces == NULL && pith_sample_wants_pieces(&settings.options))
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "sampler option dry_breakers needs the text of the tokens, and there is "
                         "no vocabulary; give an empty list of breakers");
    pith_sampler *sampler = pith_alloc_zero(1, sizeof *sampler);
    if (sampler != NULL) {
        sampler->n_vocab = n_vocab;
        sampler->settings = settings;
        if (allocate(sampler) && fill(sampler, pieces)) {
            *out = sampler;
            return PITH_OK;
        }
    }
    pith_sample_free(sampler);
    return pith_fail_memory(error, "a sampler", (uint64_t)n_vocab * 24u);
}

pith_status pith_sample_new(int32_t n_vocab, const pith_sampler_options *options,
                            pith_sampler **out, pith_error *error) {
    return pith_sample_new_with_pieces(NULL, n_vocab, options, out, error);
}

static void copy_history(pith_sampler *to, const pith_sampler *from) {
    size_t n = from->history.capacity, n_vocab = (size_t)from->n_vocab;
    memcpy(to->history.ids, from->history.ids, n * sizeof *to->history.ids);
    memcpy(to->history.ends, from->history.ends, n * sizeof *to->history.ends);
    to->history.n_total = from->history.n_total;
    to->history.n_rewind = from->history.n_rewind;
    if (from->settings.penalises) {
        size_t n_distinct = to->penalty.n_distinct = from->penalty.n_distinct;
        memcpy(to->penalty.distinct, from->penalty.distinct, n_distinct * sizeof(int32_t));
        memcpy(to->penalty.place, from->penalty.place, n_vocab * sizeof(int32_t));
        memcpy(to->penalty.count, from->penalty.count, n_vocab * sizeof(int32_t));
    }
    to->mu = from->mu;
    if (from->mu_before)
        memcpy(to->mu_before, from->mu_before, PITH_SAMPLE_KEPT * sizeof *to->mu_before);
}

pith_status pith_sample_clone(const pith_sampler *sampler, uint64_t seed, pith_sampler **out,
                              pith_error *error) {
    pith_sampler *clone = pith_alloc_zero(1, sizeof *clone);
    *out = NULL;
    if (clone != NULL) {
        size_t n_biases = sampler->settings.options.n_biases;
        clone->n_vocab = sampler->n_vocab;
        clone->settings = sampler->settings;
        clone->settings.options.seed = seed;
        pith_rng_init(&clone->luck.rng, seed);
        if (allocate(clone) &&
            pith_breakers_copy(&clone->dry.breakers, &sampler->dry.breakers, sampler->n_vocab)) {
            memcpy(clone->biases, sampler->biases, n_biases * sizeof *clone->biases);
            copy_history(clone, sampler);
            *out = clone;
            return PITH_OK;
        }
    }
    pith_sample_free(clone);
    return pith_fail_memory(error, "a sampler", (uint64_t)sampler->n_vocab * 24u);
}

void pith_sample_free(pith_sampler *sampler) {
    if (sampler == NULL) return;
    pith_history_deinit(&sampler->history);
    pith_penalty_deinit(&sampler->penalty);
    pith_dry_deinit(&sampler->dry);
    pith_choice_deinit(&sampler->choice);
    pith_free(sampler->biases);
    pith_free(sampler->mu_before);
    pith_free(sampler);
}

int32_t pith_sample_n_vocab(const pith_sampler *sampler) {
    return sampler->n_vocab;
}

/* ---- Memory of tokens ---- */

static void remember(pith_sampler *sampler, int32_t id) {
    bool ends = sampler->settings.uses_dry && pith_breakers_push(&sampler->dry.breakers, id);
    if (sampler->mu_before)
        sampler->mu_before[sampler->history.n_total % PITH_SAMPLE_KEPT] = sampler->mu;
    size_t place = (size_t)(sampler->history.n_total % PITH_SAMPLE_MAX_UNDO);
    sampler->luck_before[place] = sampler->luck_now;
    sampler->n_rewind_before[place] = sampler->history.n_rewind;
    if (sampler->n_undo < PITH_SAMPLE_MAX_UNDO) sampler->n_undo++;
    pith_history_push(&sampler->history, id, ends);
    pith_penalty_accept(&sampler->penalty, &sampler->history);
    sampler->luck.has_coin = sampler->is_weighed = false;
}

/* A token that came from the distribution in choice moves mirostat. */
static void observe(pith_sampler *sampler, int32_t id) {
    const pith_sampler_options *o = &sampler->settings.options;
    bool is_seen = sampler->is_weighed && o->mirostat > 0 && !sampler->settings.is_greedy;
    double p = is_seen ? pith_choice_probability(&sampler->choice, id) : 0;
    remember(sampler, id);
    if (p > 0)
        sampler->mu =
            pith_mirostat_observe(sampler->mu, p, (double)o->mirostat_tau, (double)o->mirostat_eta);
}

void pith_sample_accept(pith_sampler *sampler, const int32_t *ids, size_t n_ids) {
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= sampler->n_vocab) continue;
        sampler->luck_now = sampler->luck;
        observe(sampler, ids[i]);
    }
}

bool pith_sample_rewind(pith_sampler *sampler, size_t n) {
    if (n > sampler->history.n_rewind) return false;
    for (size_t i = 0; i < n; i++) {
        pith_penalty_take_back(&sampler->penalty, &sampler->history);
        pith_history_pop(&sampler->history);
    }
    if (n == 0) return true;
    if (sampler->mu_before)
        sampler->mu = sampler->mu_before[sampler->history.n_total % PITH_SAMPLE_KEPT];
    if (sampler->settings.uses_dry) pith_breakers_return(&sampler->dry.breakers, &sampler->history);
    sampler->luck.has_coin = sampler->is_weighed = false;
    sampler->n_undo -= n < sampler->n_undo ? n : sampler->n_undo;
    return true;
}

bool pith_sample_undo(pith_sampler *sampler, size_t n) {
    if (n > sampler->n_undo || !pith_sample_rewind(sampler, n)) return false;
    if (n == 0) return true;
    size_t place = (size_t)(sampler->history.n_total % PITH_SAMPLE_MAX_UNDO);
    sampler->luck = sampler->luck_before[place];
    sampler->history.n_rewind = sampler->n_rewind_before[place];
    return true;
}

/* ---- The chain ---- */

/* Whether XTC's coin for the token that comes says to exclude; thrown once a token. */
static bool excludes(pith_sampler *sampler) {
    pith_sampler_luck *luck = &sampler->luck;
    if (!luck->has_coin) luck->coin = pith_rng_uniform(&luck->rng);
    luck->has_coin = true;
    return luck->coin < (double)sampler->settings.options.xtc_probability;
}

static void run_stage(pith_sampler *sampler, pith_stage stage) {
    const pith_sampler_options *o = &sampler->settings.options;
    pith_choice *choice = &sampler->choice;
    switch (stage) {
    case PITH_STAGE_PENALTIES: pith_stage_penalties(choice, &sampler->penalty); break;
    case PITH_STAGE_DRY: pith_stage_dry(choice, &sampler->dry, &sampler->history); break;
    case PITH_STAGE_TOP_N_SIGMA: pith_stage_top_n_sigma(choice, (double)o->top_n_sigma); break;
    case PITH_STAGE_TOP_K: pith_stage_top_k(choice, (size_t)o->top_k); break;
    case PITH_STAGE_TYPICAL: pith_stage_typical(choice, (double)o->typical_p); break;
    case PITH_STAGE_TOP_P: pith_stage_top_p(choice, (double)o->top_p); break;
    case PITH_STAGE_MIN_P: pith_stage_min_p(choice, (double)o->min_p); break;
    case PITH_STAGE_XTC:
        if (excludes(sampler)) pith_stage_xtc(choice, (double)o->xtc_threshold);
        break;
    case PITH_STAGE_TEMPERATURE:
        pith_stage_temperature(choice, (double)o->temperature, (double)o->dynamic_range,
                               (double)o->dynamic_exponent);
        break;
    case PITH_N_STAGES: break;
    }
}

/* The row with the filter's mask and the bias; changed by penalties and DRY where they come first.
 * Returns how many stages are done. */
static size_t open_row(pith_sampler *sampler, const float *logits, const uint32_t *mask) {
    const pith_sampler_settings *s = &sampler->settings;
    size_t n = 0;
    pith_choice_open(&sampler->choice, logits);
    if (mask) pith_row_mask(&sampler->choice.row, mask);
    pith_stage_bias(&sampler->choice, sampler->biases, s->options.n_biases);
    for (; n < s->n_stages && s->stages[n] <= PITH_STAGE_DRY; n++) run_stage(sampler, s->stages[n]);
    return n;
}

/* The likeliest id that the filter allows; -1 when none is left. */
static int32_t best_of(pith_sampler *sampler, const float *logits,
                       const pith_token_filter *filter) {
    pith_logit_row *row = &sampler->choice.row;
    open_row(sampler, logits, NULL);
    for (int i = 0; i < GREEDY_TRIES; i++) {
        pith_row_scan(row);
        int32_t id = pith_row_best(row);
        if (id < 0 || filter == NULL || filter->allows(filter->user, id)) return id;
        pith_row_set(row, id, -INFINITY);
    }
    pith_row_mask(row, filter->mask(filter->user));
    pith_row_scan(row);
    return pith_row_best(row);
}

/* Fills choice with the weights of the token that comes; false when nothing is left. */
static bool weigh(pith_sampler *sampler, const float *logits, const pith_token_filter *filter) {
    const pith_sampler_settings *s = &sampler->settings;
    sampler->is_weighed = false;
    size_t n = open_row(sampler, logits, filter ? filter->mask(filter->user) : NULL);
    if (!(pith_choice_max(&sampler->choice) > -INFINITY)) return false;
    for (; n < s->n_stages; n++) run_stage(sampler, s->stages[n]);
    if (s->options.mirostat > 0)
        pith_mirostat_cut(&sampler->choice, s->options.mirostat, sampler->mu);
    pith_choice_weigh(&sampler->choice);
    sampler->is_weighed = true;
    return true;
}

/* Takes the one id that may come, unless its logit says that it cannot. Mirostat sees no surprise.
 */
static int32_t take_only(pith_sampler *sampler, const float *logits, int32_t id) {
    const pith_sampler_options *o = &sampler->settings.options;
    bool may_come = logits[id] > -INFINITY;
    for (size_t i = 0; i < o->n_biases; i++)
        if (sampler->biases[i].id == id && !(sampler->biases[i].bias > -INFINITY)) may_come = false;
    if (!may_come) return -1;
    remember(sampler, id);
    if (o->mirostat > 0 && !sampler->settings.is_greedy)
        sampler->mu =
            pith_mirostat_observe(sampler->mu, 1, (double)o->mirostat_tau, (double)o->mirostat_eta);
    return id;
}

int32_t pith_sample_next_of(pith_sampler *sampler, const float *logits,
                            const pith_token_filter *filter) {
    int32_t id = -1;
    sampler->luck_now = sampler->luck;
    int32_t only = filter && filter->only ? filter->only(filter->user) : -1;
    if (only >= 0) return take_only(sampler, logits, only);
    if (sampler->settings.is_greedy)
        id = best_of(sampler, logits, filter);
    else if (weigh(sampler, logits, filter))
        id = pith_choice_draw(&sampler->choice, pith_rng_uniform(&sampler->luck.rng));
    if (id >= 0) observe(sampler, id);
    return id;
}

int32_t pith_sample_next(pith_sampler *sampler, const float *logits) {
    int32_t id = pith_sample_next_of(sampler, logits, NULL);
    if (id >= 0) return id;
    remember(sampler, 0);
    return 0;
}

size_t pith_sample_distribution(pith_sampler *sampler, const float *logits,
                                const pith_token_filter *filter, int32_t *ids,
                                double *probabilities, size_t capacity) {
    if (sampler->settings.is_greedy) {
        int32_t id = best_of(sampler, logits, filter);
        if (id >= 0 && capacity > 0) ids[0] = id, probabilities[0] = 1;
        return id >= 0;
    }
    if (!weigh(sampler, logits, filter)) return 0;
    return pith_choice_list(&sampler->choice, ids, probabilities, capacity);
}
