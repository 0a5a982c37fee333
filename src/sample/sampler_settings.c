/* SPDX-License-Identifier: Apache-2.0
 * The sampler's options: read by their size, checked by their names, defaults filled in, and the
 * stages that they switch on put into order.
 *
 * Invariant: a field that is set does something or is refused: a stage that the caller's order
 * leaves out may not be set. Cuts by rank right before temperature 0 are left out of the list of
 * stages, since the largest logit survives them all.
 *
 * Does not: allocate or hold anything. Read next: sampler.c. */
#include "sample/sampler_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char *const stage_names[PITH_N_STAGES] = {
    "penalties", "dry", "top_n_sigma", "top_k", "typical", "top_p", "min_p", "xtc", "temperature"};

static pith_status refuse(pith_error *error, const char *name, double value, const char *allowed) {
    return pith_fail(error, PITH_ERROR_ARGUMENT, "sampler option %s is %g; allowed: %s", name,
                     value, allowed);
}

/* Copies what the caller's struct has; a longer struct may only hold zeros in the part that is not
 * known here. */
static pith_status copy_options(const pith_sampler_options *given, pith_sampler_options *out,
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

/* ---- Ranges ---- */

typedef enum allowed_range {
    FROM_ZERO, /* finite, 0 or more */
    SHARE,     /* 0 to 1 */
    FINITE
} allowed_range;

static bool is_allowed(double value, allowed_range range) {
    if (range == FINITE) return fabs(value) <= (double)FLT_MAX;
    return value >= 0 && value <= (range == SHARE ? 1.0 : (double)FLT_MAX);
}

static pith_status check_floats(const pith_sampler_options *o, pith_error *error) {
    const struct {
        const char *name;
        float value;
        allowed_range range;
        const char *allowed;
    } rows[] = {
        {"temperature", o->temperature, FROM_ZERO, "0 (greedy) or a positive number"},
        {"top_p", o->top_p, SHARE, "0 to 1 (0 and 1: off)"},
        {"min_p", o->min_p, SHARE, "0 to 1 (0: off)"},
        {"repeat_penalty", o->repeat_penalty, FROM_ZERO, "0 (off) or a positive number"},
        {"frequency_penalty", o->frequency_penalty, FINITE, "a finite number"},
        {"presence_penalty", o->presence_penalty, FINITE, "a finite number"},
        {"typical_p", o->typical_p, SHARE, "0 to 1 (0 and 1: off)"},
        {"top_n_sigma", o->top_n_sigma, FROM_ZERO, "0 (off) or a positive number"},
        {"dynamic_range", o->dynamic_range, FROM_ZERO, "0 (off) or a positive number"},
        {"dynamic_exponent", o->dynamic_exponent, FROM_ZERO, "0 (1) or a positive number"},
        {"xtc_probability", o->xtc_probability, SHARE, "0 to 1 (0: off)"},
        {"xtc_threshold", o->xtc_threshold, SHARE, "0 to 1 (0: 0.1)"},
        {"mirostat_tau", o->mirostat_tau, FROM_ZERO, "0 (5) or a positive number of bits"},
        {"mirostat_eta", o->mirostat_eta, SHARE, "0 (0.1) to 1"},
        {"dry_multiplier", o->dry_multiplier, FROM_ZERO, "0 (off) or a positive number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!is_allowed((double)rows[i].value, rows[i].range))
            return refuse(error, rows[i].name, (double)rows[i].value, rows[i].allowed);
    if (o->dry_base != 0.0f && !(o->dry_base >= 1.0f && o->dry_base <= FLT_MAX))
        return refuse(error, "dry_base", (double)o->dry_base, "0 (1.75), or 1 and more");
    return PITH_OK;
}

static pith_status check_integers(const pith_sampler_options *o, pith_error *error) {
    if (o->top_k < 0) return refuse(error, "top_k", o->top_k, "0 (off) or a positive count");
    if (o->penalty_window > PITH_SAMPLE_MAX_WINDOW)
        return refuse(error, "penalty_window", o->penalty_window,
                      "at most 16777216 (negative: off, 0: 64)");
    if (o->dry_window > PITH_SAMPLE_MAX_WINDOW)
        return refuse(error, "dry_window", o->dry_window,
                      "at most 16777216 (negative: off, 0: 4096)");
    if (o->dry_allowed_length < 0)
        return refuse(error, "dry_allowed_length", o->dry_allowed_length,
                      "0 (2) or a positive count");
    if (o->mirostat < 0 || o->mirostat > 2)
        return refuse(error, "mirostat", o->mirostat, "0 (off), 1 and 2");
    return PITH_OK;
}

static pith_status check_biases(const pith_sampler_options *o, int32_t n_vocab, pith_error *error) {
    if (o->n_biases > PITH_SAMPLE_MAX_BIASES)
        return refuse(error, "n_biases", (double)o->n_biases, "at most 1048576");
    if (o->n_biases > 0 && o->biases == NULL)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "sampler option biases is NULL, but n_biases is %zu", o->n_biases);
    for (size_t i = 0; i < o->n_biases; i++) {
        pith_logit_bias one = o->biases[i];
        if (one.id < 0 || one.id >= n_vocab)
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "sampler option biases: id %d is outside the vocabulary of %d tokens",
                             one.id, n_vocab);
        if (!(one.bias <= FLT_MAX) || (one.bias < -FLT_MAX && one.bias > -INFINITY))
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "sampler option biases: the bias of id %d is %g; allowed: a finite "
                             "number, or -inf to ban the token",
                             one.id, (double)one.bias);
    }
    return PITH_OK;
}

static pith_status check_breakers(const pith_sampler_options *o, pith_error *error) {
    if (o->dry_breakers == NULL && o->n_dry_breakers > 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "sampler option dry_breakers is NULL, but n_dry_breakers is %zu",
                         o->n_dry_breakers);
    if (o->n_dry_breakers > PITH_SAMPLE_MAX_BREAKERS)
        return refuse(error, "n_dry_breakers", (double)o->n_dry_breakers, "at most 64");
    for (size_t i = 0; i < o->n_dry_breakers; i++) {
        size_t size = o->dry_breakers[i] ? strlen(o->dry_breakers[i]) : 0;
        if (size == 0 || size > PITH_SAMPLE_MAX_BREAKER)
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "sampler option dry_breakers: string %zu has %zu bytes; allowed: 1 to "
                             "%d",
                             i, size, PITH_SAMPLE_MAX_BREAKER);
    }
    return PITH_OK;
}

static void fill_defaults(pith_sampler_options *o) {
    if (o->repeat_penalty == 0.0f) o->repeat_penalty = 1.0f;
    if (o->penalty_window == 0) o->penalty_window = 64;
    if (o->dynamic_exponent == 0.0f) o->dynamic_exponent = 1.0f;
    if (o->xtc_threshold == 0.0f) o->xtc_threshold = 0.1f;
    if (o->mirostat_tau == 0.0f) o->mirostat_tau = 5.0f;
    if (o->mirostat_eta == 0.0f) o->mirostat_eta = 0.1f;
    if (o->dry_base == 0.0f) o->dry_base = 1.75f;
    if (o->dry_allowed_length == 0) o->dry_allowed_length = 2;
    if (o->dry_window == 0) o->dry_window = 4096;
}

size_t pith_settings_breakers(const pith_sampler_options *options, pith_span *texts) {
    static const char *const defaults[] = {"\n", ":", "\"", "*"};
    const char *const *given = options->dry_breakers ? options->dry_breakers : defaults;
    size_t n = options->dry_breakers ? options->n_dry_breakers : 4;
    for (size_t i = 0; i < n; i++) texts[i] = pith_span_of(given[i]);
    return n;
}

/* ---- Order ---- */

static bool is_on(const pith_sampler_settings *s, pith_stage stage) {
    const pith_sampler_options *o = &s->options;
    switch (stage) {
    case PITH_STAGE_PENALTIES: return s->penalises;
    case PITH_STAGE_DRY: return s->uses_dry;
    case PITH_STAGE_TOP_N_SIGMA: return o->top_n_sigma > 0.0f;
    case PITH_STAGE_TOP_K: return o->top_k > 0;
    case PITH_STAGE_TYPICAL: return o->typical_p > 0.0f && o->typical_p < 1.0f;
    case PITH_STAGE_TOP_P: return o->top_p > 0.0f && o->top_p < 1.0f;
    case PITH_STAGE_MIN_P: return o->min_p > 0.0f;
    case PITH_STAGE_XTC: return o->xtc_probability > 0.0f;
    case PITH_STAGE_TEMPERATURE: return o->temperature != 1.0f || o->dynamic_range > 0.0f;
    case PITH_N_STAGES: break;
    }
    return false;
}

static pith_stage find_stage(const char *name, size_t size) {
    for (size_t i = 0; i < PITH_N_STAGES; i++)
        if (strlen(stage_names[i]) == size && memcmp(stage_names[i], name, size) == 0)
            return (pith_stage)i;
    return PITH_N_STAGES;
}

/* The stages that `order` names, on or not. */
static pith_status read_order(pith_sampler_settings *s, const char *order, pith_error *error) {
    bool is_named[PITH_N_STAGES] = {false};
    for (const char *at = order;;) {
        size_t size = strcspn(at, ";,");
        pith_stage stage = find_stage(at, size);
        if (stage == PITH_N_STAGES)
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "sampler option order: '%.*s' is no stage; the stages are penalties, "
                             "dry, top_n_sigma, top_k, typical, top_p, min_p, xtc and temperature",
                             size < 40 ? (int)size : 40, at);
        if (is_named[stage])
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "sampler option order: %s is named twice; allowed: once",
                             stage_names[stage]);
        is_named[stage] = true;
        s->stages[s->n_stages++] = stage;
        if (at[size] == 0) break;
        at += size + 1;
    }
    for (size_t i = 0; i < PITH_N_STAGES; i++)
        if (!is_named[i] && is_on(s, (pith_stage)i))
            return pith_fail(
                error, PITH_ERROR_ARGUMENT,
                "sampler option order: %s is in use, but not named; name it%s", stage_names[i],
                i == PITH_STAGE_TEMPERATURE ? ", or set temperature to 1" : ", or switch it off");
    return PITH_OK;
}

static bool keeps_the_best(pith_stage stage) {
    return stage == PITH_STAGE_TOP_N_SIGMA || stage == PITH_STAGE_TOP_K ||
           stage == PITH_STAGE_TOP_P || stage == PITH_STAGE_MIN_P;
}

/* Leaves the stages that do something. */
static void drop_idle(pith_sampler_settings *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_stages; i++) {
        pith_stage stage = s->stages[i];
        if (!is_on(s, stage)) continue;
        bool ends = stage == PITH_STAGE_TEMPERATURE && s->options.temperature == 0.0f &&
                    s->options.dynamic_range == 0.0f;
        while (ends && n > 0 && keeps_the_best(s->stages[n - 1])) n--;
        s->stages[n++] = stage;
        if (!ends) continue;
        s->is_greedy = true; /* one is left */
        break;
    }
    s->n_stages = n;
    for (size_t i = 0; i + 1 < n; i++)
        if (s->stages[i] != PITH_STAGE_PENALTIES && s->stages[i] != PITH_STAGE_DRY)
            s->is_greedy = false;
}

static pith_status read_stages(pith_sampler_settings *s, pith_error *error) {
    const pith_sampler_options *o = &s->options;
    s->penalises =
        o->penalty_window > 0 &&
        (o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f || o->presence_penalty != 0.0f);
    s->uses_dry = o->dry_multiplier > 0.0f && o->dry_window > 0;
    for (size_t i = 0; i < PITH_N_STAGES && o->order == NULL; i++)
        s->stages[s->n_stages++] = (pith_stage)i;
    pith_status status = o->order ? read_order(s, o->order, error) : PITH_OK;
    if (status == PITH_OK) drop_idle(s);
    return status;
}

pith_status pith_settings_read(const pith_sampler_options *given, int32_t n_vocab,
                               pith_sampler_settings *out, pith_error *error) {
    *out = (pith_sampler_settings){0};
    pith_status status = copy_options(given, &out->options, error);
    if (status == PITH_OK && n_vocab < 1)
        status = pith_fail(error, PITH_ERROR_ARGUMENT,
                           "sampler: the vocabulary has %d tokens; 1 is needed", n_vocab);
    if (status == PITH_OK) status = check_floats(&out->options, error);
    if (status == PITH_OK) status = check_integers(&out->options, error);
    if (status == PITH_OK) status = check_biases(&out->options, n_vocab, error);
    if (status == PITH_OK) status = check_breakers(&out->options, error);
    if (status != PITH_OK) return status;
    fill_defaults(&out->options);
    return read_stages(out, error);
}
