/* SPDX-License-Identifier: Apache-2.0
 * For tests: the sampler's chain as a textbook has it, in double, sorting everything and searching
 * by comparing, independent of src/sample. plain_run gives the distribution of one token.
 * `margin` is how near a decision was to another one: cuts that hang on the last digits are left
 * out of comparisons. */
#ifndef PITH_TESTS_PLAIN_CHAIN_H
#define PITH_TESTS_PLAIN_CHAIN_H

#include "sample/sample.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct plain {
    double l, p, key;
    int32_t id;
} plain;

typedef struct plain_chain {
    pith_sampler_options o;  /* defaults filled in by plain_init */
    const pith_span *pieces; /* or NULL */
    int32_t n_vocab;
    int32_t history[8192];
    size_t n_history;
    double mu, coin;
    plain *list; /* [n_vocab] what is left, with p */
    size_t n;
    double margin;
} plain_chain;

static inline void plain_init(plain_chain *c, const pith_sampler_options *o, int32_t n_vocab) {
    memset(c, 0, sizeof *c);
    c->o = *o;
    c->n_vocab = n_vocab;
    c->list = malloc((size_t)n_vocab * sizeof *c->list);
    if (c->o.repeat_penalty == 0.0f) c->o.repeat_penalty = 1;
    if (c->o.penalty_window == 0) c->o.penalty_window = 64;
    if (c->o.dynamic_exponent == 0.0f) c->o.dynamic_exponent = 1;
    if (c->o.xtc_threshold == 0.0f) c->o.xtc_threshold = 0.1f;
    if (c->o.dry_base == 0.0f) c->o.dry_base = 1.75f;
    if (c->o.dry_allowed_length == 0) c->o.dry_allowed_length = 2;
    if (c->o.dry_window == 0) c->o.dry_window = 4096;
    if (c->o.mirostat_tau == 0.0f) c->o.mirostat_tau = 5;
    if (c->o.mirostat_eta == 0.0f) c->o.mirostat_eta = 0.1f;
    c->mu = 2 * (double)c->o.mirostat_tau;
}

static inline int plain_by_l(const void *a, const void *b) {
    const plain *x = a, *y = b;
    if (x->l != y->l) return x->l > y->l ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static inline int plain_by_key(const void *a, const void *b) {
    const plain *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static inline int plain_by_id(const void *a, const void *b) {
    return ((const plain *)a)->id < ((const plain *)b)->id ? -1 : 1;
}

/* Sorts, likeliest first, and fills p. */
static inline void plain_softmax(plain_chain *c) {
    double sum = 0;
    qsort(c->list, c->n, sizeof *c->list, plain_by_l);
    for (size_t i = 0; i < c->n; i++) sum += exp(c->list[i].l - c->list[0].l);
    for (size_t i = 0; i < c->n; i++) c->list[i].p = exp(c->list[i].l - c->list[0].l) / sum;
}

static inline void plain_near(plain_chain *c, double distance) {
    distance = fabs(distance);
    if (distance < c->margin) c->margin = distance;
}

static inline double plain_entropy(const plain_chain *c) {
    double h = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].p > 0) h -= c->list[i].p * log(c->list[i].p);
    return h;
}

static inline void plain_penalties(plain_chain *c) {
    for (size_t i = 0; i < c->n; i++) {
        int count = 0;
        for (size_t t = 0; t < c->n_history; t++)
            if (c->n_history - t <= (size_t)c->o.penalty_window && c->history[t] == c->list[i].id)
                count++;
        double *l = &c->list[i].l, repeat = (double)c->o.repeat_penalty;
        if (count == 0 || c->o.penalty_window < 0) continue;
        *l = *l <= 0 ? *l * repeat : *l / repeat;
        *l -= count * (double)c->o.frequency_penalty + (double)c->o.presence_penalty;
        *l = fmax(fmin(*l, (double)FLT_MAX), -(double)FLT_MAX);
    }
}

/* Whether the string lies in the text of tokens first .. last and ends in the last of them. Tokens
 * without text end what was begun. */
static inline bool plain_ends(const plain_chain *c, size_t last, const char *text) {
    size_t size = strlen(text), n = 0, own = c->pieces[c->history[last]].size;
    char joined[512];
    size_t first = last;
    while (first > 0 && c->pieces[c->history[first - 1]].size > 0 && last - first < 80) first--;
    if (own == 0) return false;
    for (size_t t = first; t <= last; t++) {
        memcpy(joined + n, c->pieces[c->history[t]].data, c->pieces[c->history[t]].size);
        n += c->pieces[c->history[t]].size;
    }
    for (size_t end = n - own + 1; end <= n; end++)
        if (end >= size && memcmp(joined + end - size, text, size) == 0) return true;
    return false;
}

static inline void plain_dry(plain_chain *c) {
    static const char *const defaults[] = {"\n", ":", "\"", "*"};
    const char *const *breakers = c->o.dry_breakers ? c->o.dry_breakers : defaults;
    size_t n_breakers = c->o.dry_breakers ? c->o.n_dry_breakers : 4;
    size_t n = c->n_history, window = (size_t)c->o.dry_window;
    size_t first = n > window ? n - window : 0, most = 0;
    for (bool ends = false; most < n - first; most++) {
        for (size_t b = 0; b < n_breakers; b++)
            ends = ends || plain_ends(c, n - 1 - most, breakers[b]);
        if (ends) break;
    }
    if (c->o.dry_window < 0) return;
    for (size_t i = 0; i < c->n; i++) {
        size_t longest = 0;
        bool exempt = false;
        for (size_t b = 0; b < n_breakers; b++) {
            pith_span piece = c->pieces ? c->pieces[c->list[i].id] : (pith_span){NULL, 0};
            for (size_t at = 0; at + strlen(breakers[b]) <= piece.size; at++)
                exempt = exempt || memcmp(piece.data + at, breakers[b], strlen(breakers[b])) == 0;
        }
        for (size_t t = first; t + 1 < n; t++) { /* an earlier text that ends with token t */
            size_t length = 0;
            if (c->history[t + 1] != c->list[i].id) continue;
            while (length <= t - first && c->history[t - length] == c->history[n - 1 - length])
                length++;
            length = length < most ? length : most;
            if (length > longest) longest = length;
        }
        if (exempt || longest < (size_t)c->o.dry_allowed_length) continue;
        c->list[i].l -=
            (double)c->o.dry_multiplier *
            pow((double)c->o.dry_base, (double)(longest - (size_t)c->o.dry_allowed_length));
    }
}

static inline void plain_keep(plain_chain *c, double limit) { /* sorted */
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) plain_near(c, c->list[i].l - limit);
    while (n < c->n && c->list[n].l >= limit) n++;
    c->n = n ? n : 1;
}

static inline void plain_sigma(plain_chain *c) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < c->n; i++) mean += c->list[i].l / (double)c->n;
    for (size_t i = 0; i < c->n; i++)
        square += (c->list[i].l - mean) * (c->list[i].l - mean) / (double)c->n;
    plain_keep(c, c->list[0].l - (double)c->o.top_n_sigma * sqrt(square));
}

static inline void plain_typical(plain_chain *c) {
    double h = plain_entropy(c), sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) c->list[i].key = fabs(-log(c->list[i].p) - h);
    qsort(c->list, c->n, sizeof *c->list, plain_by_key);
    for (; n < c->n && !(sum > (double)c->o.typical_p); n++) {
        sum += c->list[n].p;
        plain_near(c, sum - (double)c->o.typical_p);
    }
    if (n < c->n && c->list[n].l != c->list[n - 1].l)
        plain_near(c, c->list[n].key - c->list[n - 1].key);
    c->n = n;
}

static inline void plain_top_p(plain_chain *c) {
    double sum = 0;
    size_t n = 0;
    for (; n < c->n && sum < (double)c->o.top_p; n++) {
        sum += c->list[n].p;
        plain_near(c, sum - (double)c->o.top_p);
    }
    c->n = n;
}

static inline void plain_xtc(plain_chain *c) {
    size_t m = 0;
    if (!(c->coin < (double)c->o.xtc_probability)) return;
    for (size_t i = 0; i < c->n; i++) plain_near(c, c->list[i].p - (double)c->o.xtc_threshold);
    while (m < c->n && c->list[m].p >= (double)c->o.xtc_threshold) m++;
    if (m < 2) return;
    c->n -= m - 1;
    memmove(c->list, c->list + m - 1, c->n * sizeof *c->list);
}

static inline void plain_temperature(plain_chain *c) {
    double t = (double)c->o.temperature, range = (double)c->o.dynamic_range;
    if (range > 0 && c->n > 1) {
        double low = t > range ? t - range : 0, high = t + range;
        t = low +
            (high - low) * pow(plain_entropy(c) / log((double)c->n), (double)c->o.dynamic_exponent);
    } else if (range > 0) {
        return;
    }
    if (t == 0) c->n = 1;
    for (size_t i = 0; t > 0 && i < c->n; i++) c->list[i].l /= t;
}

static inline void plain_mirostat(plain_chain *c) {
    double products = 0, squares = 0, n_vocab = c->n_vocab;
    if (c->o.mirostat == 2) {
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++) plain_near(c, -log2(c->list[i].p) - c->mu);
        while (n < c->n && -log2(c->list[n].p) <= c->mu) n++;
        c->n = n ? n : 1;
    } else if (c->n > 1) {
        for (size_t i = 0; i < 99 && i + 1 < c->n; i++) {
            double t = log((double)(i + 2) / (double)(i + 1));
            products += t * log(c->list[i].p / c->list[i + 1].p);
            squares += t * t;
        }
        double s = products / squares, e = s - 1;
        double k = pow(e * exp2(c->mu) / (1 - pow(n_vocab, -e)), 1 / s);
        plain_near(c, (k - rint(k)) / (k + 1));
        if (!(k >= 1)) k = 1;
        if (k < (double)c->n) c->n = (size_t)k;
    }
}

static inline void plain_stage(plain_chain *c, const char *name, size_t size) {
    const char *names[] = {"penalties", "dry",   "top_n_sigma", "top_k",      "typical",
                           "top_p",     "min_p", "xtc",         "temperature"};
    size_t which = 0;
    while (strlen(names[which]) != size || memcmp(names[which], name, size) != 0) which++;
    plain_softmax(c);
    switch (which) {
    case 0: plain_penalties(c); break;
    case 1:
        if (c->o.dry_multiplier > 0.0f) plain_dry(c);
        break;
    case 2:
        if (c->o.top_n_sigma > 0.0f) plain_sigma(c);
        break;
    case 3:
        if (c->o.top_k > 0 && c->n > (size_t)c->o.top_k) c->n = (size_t)c->o.top_k;
        break;
    case 4:
        if (c->o.typical_p > 0.0f && c->o.typical_p < 1.0f) plain_typical(c);
        break;
    case 5:
        if (c->o.top_p > 0.0f && c->o.top_p < 1.0f) plain_top_p(c);
        break;
    case 6:
        if (c->o.min_p > 0.0f) plain_keep(c, c->list[0].l + log((double)c->o.min_p));
        break;
    case 7: plain_xtc(c); break;
    default: plain_temperature(c); break;
    }
}

/* Leaves what may be drawn in list [n], in id order, with p. allowed: NULL or [n_vocab]. */
static inline void plain_run(plain_chain *c, const float *logits, const bool *allowed) {
    const char *order = c->o.order ? c->o.order
                                   : "penalties;dry;top_n_sigma;top_k;typical;top_p;min_p;xtc;"
                                     "temperature";
    c->n = 0;
    c->margin = 1;
    for (int32_t id = 0; id < c->n_vocab; id++) {
        double l = (double)fminf(logits[id], FLT_MAX);
        for (size_t i = 0; i < c->o.n_biases; i++)
            if (c->o.biases[i].id == id) l += (double)c->o.biases[i].bias;
        if (!(logits[id] > -INFINITY) || !(l > -(double)INFINITY) || (allowed && !allowed[id]))
            continue;
        c->list[c->n++] = (plain){l, 0, 0, id};
    }
    for (const char *at = order; c->n > 0;) {
        size_t size = strcspn(at, ";,");
        plain_stage(c, at, size);
        if (at[size] == 0) break;
        at += size + 1;
    }
    if (c->n == 0) return;
    plain_softmax(c);
    if (c->o.mirostat > 0) plain_mirostat(c);
    plain_softmax(c);
    qsort(c->list, c->n, sizeof *c->list, plain_by_id);
}

/* The token was drawn with probability p (0: it was not drawn). */
static inline void plain_accept(plain_chain *c, int32_t id, double p) {
    c->history[c->n_history++] = id;
    if (p > 0) c->mu -= (double)c->o.mirostat_eta * (-log2(p) - (double)c->o.mirostat_tau);
}

#endif
