/* SPDX-License-Identifier: Apache-2.0
 * The inverse of an estimate: tokens a second -> bytes per token -> bits per weight and size.
 *
 *   bytes per token <= bandwidth * share / wanted speed
 *   bits <= 8 * bytes per token / parameters that a token uses
 *
 * A row of the table is a type with its true bits per weight, scales included; "8 bits" and
 * "4 bits" are the plain numbers. */
#include "pith/fit.h"

typedef struct size_row {
    const char *name;
    double bits;
} size_row;

static const size_row rows[] = {
    {"F32", 32},      {"F16", 16},      {"Q8_0", 8.5},    {"8 bits", 8},
    {"Q6_K", 6.5625}, {"Q5_K", 5.5},    {"Q4_K", 4.5},    {"Q4_0", 4.5},
    {"4 bits", 4},    {"IQ4_XS", 4.25}, {"Q3_K", 3.4375}, {"Q2_K", 2.625},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

typedef struct size_result {
    double bytes, tokens; /* in memory; a second */
    bool is_fast, fits;
} size_result;

static double most_bytes(const pith_fit_wanted *w) { /* per token */
    return w->bandwidth * w->share / w->want;
}

static size_result result_of(const pith_fit_wanted *w, double bits) {
    size_result r = {.bytes = w->n_all * bits / 8};
    r.tokens = w->bandwidth * w->share / (w->n_active * bits / 8);
    r.is_fast = r.tokens >= w->want;
    r.fits = w->memory == 0 || r.bytes <= (double)w->memory;
    return r;
}

/* Bits per weight that speed and memory allow. */
static double most_bits(const pith_fit_wanted *w) {
    double bits = most_bytes(w) * 8 / w->n_active;
    double held = w->memory > 0 ? (double)w->memory * 8 / w->n_all : bits;
    return held < bits ? held : bits;
}

json_t *pith_fit_want_json(const pith_fit_wanted *w) {
    json_t *list = json_array();
    for (size_t i = 0; i < N_ROWS; i++) {
        size_result r = result_of(w, rows[i].bits);
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:f, s:f, s:b, s:b}", "type", rows[i].name,
                                        "bits", rows[i].bits, "bytes", r.bytes, "tokens_per_second",
                                        r.tokens, "fast_enough", r.is_fast, "fits", r.fits));
    }
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:o}", "want", w->want, "bandwidth",
                     w->bandwidth, "share", w->share, "parameters", w->n_all, "max_token_bytes",
                     most_bytes(w), "max_bits", most_bits(w), "memory_bytes", (json_int_t)w->memory,
                     "types", list);
}

void pith_fit_want_print(const pith_fit_wanted *w) {
    printf("%.3g tok/s from %.1f GB/s at %.0f %%: at most %.2f GB per token, %.2f bits per weight "
           "of %.3g B\n",
           w->want, w->bandwidth * 1e-9, w->share * 100, most_bytes(w) * 1e-9, most_bits(w),
           w->n_all * 1e-9);
    printf("| type | bits | size | tok/s | |\n|--|--:|--:|--:|--|\n");
    for (size_t i = 0; i < N_ROWS; i++) {
        size_result r = result_of(w, rows[i].bits);
        printf("| %s | %.2f | %.2f GB | %.1f | %s%s |\n", rows[i].name, rows[i].bits,
               r.bytes * 1e-9, r.tokens, r.is_fast ? "fast enough" : "too slow",
               r.fits ? "" : ", does not fit");
    }
}
