/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers between bounds, digit by digit, as grammar nodes.
 *
 * Digits are compared with those of the bounds from the left. While all of them were equal, the
 * number is `tight` against that bound and its next digit is limited; afterwards it is free. So a
 * place in a number is (digits that remain, tight below, tight above), and for multiples also the
 * rest of the division so far. Nodes are made from the last digit to the first.
 *
 *   137..205, three digits      1 -- 3 -- 7..9        2 -- 0 -- 0..5
 *                               |    `- 4..9 -- any   |
 *                               (tight below)         (tight above)
 *
 * Below 0 the same is done with the bounds exchanged. Between excluded bounds a number has so few
 * digits behind the point that it differs from the bound as a double too. Read next:
 * number_order.c.
 */
#include "sample/json_text.h"

#include "base/memory.h"

#include <string.h>

enum {
    MAX_WHOLE = 19,      /* digits before the point of a bound */
    MAX_PART = 400,      /* digits behind it: as many as the smallest double has */
    NOTHING = UINT32_MAX /* no number ends up here */
};

/* |a bound| */
typedef struct decimal {
    bool negative;
    uint8_t whole[MAX_WHOLE]; /* [n_whole] digits, none in front in vain; 0 is one digit */
    uint8_t part[MAX_PART];   /* [n_part] the last one is not 0 */
    uint32_t n_whole, n_part;
} decimal;

/* Numbers without sign. */
typedef struct magnitude {
    const decimal *min, *max; /* max NULL: none */
    bool min_excluded, max_excluded;
    uint32_t n_whole, n_part; /* digits at most before and behind the point */
    uint32_t multiple;
} magnitude;

typedef struct digit_writer {
    pith_json_text *text;
    const magnitude *bounds;
    pith_grammar_node *after; /* [n_whole + 1, 4, multiple] what follows with r digits to go */
    pith_grammar_node end[4]; /* behind the whole part */
} digit_writer;

enum { TIGHT_MIN = 1, TIGHT_MAX = 2 };

static pith_grammar_node digits(pith_json_text *text, uint32_t first, uint32_t last) {
    pith_code_range range = {'0' + first, '0' + last};
    return pith_grammar_class(text->builder, &range, 1, false);
}

static pith_grammar_node any_digits(pith_json_text *text, uint32_t min, uint32_t max) {
    return pith_grammar_repeat(text->builder, digits(text, 0, 9), min, max);
}

/* One of the digits first..last and then next(digit): digits with the same rest are one class. */
static pith_grammar_node branch_off(pith_json_text *text, uint32_t first, uint32_t last,
                                    const pith_grammar_node next[10]) {
    pith_grammar_node choices[10];
    size_t n = 0;
    for (uint32_t d = first; d <= last;) {
        uint32_t end = d;
        while (end < last && next[end + 1] == next[d]) end++;
        if (next[d] != NOTHING) {
            choices[n++] = pith_json_write_two(text, digits(text, d, end), next[d]);
        }
        d = end + 1;
    }
    if (n == 0) return NOTHING;
    return n == 1 ? choices[0] : pith_grammar_choice(text->builder, choices, n);
}

/* ---- behind the point ---- */

static uint32_t part_digit(const decimal *d, uint32_t i) {
    return i < d->n_part ? d->part[i] : 0;
}

/* May a number end after i digits behind the point? */
static bool may_end(const magnitude *b, uint32_t i, uint32_t tight) {
    if ((tight & TIGHT_MIN) && (i < b->min->n_part || b->min_excluded)) return false;
    return !(tight & TIGHT_MAX) || i < b->max->n_part || !b->max_excluded;
}

static uint32_t next_tight(uint32_t tight, uint32_t d, uint32_t low, uint32_t high) {
    return (d == low ? tight & TIGHT_MIN : 0) | (d == high ? tight & TIGHT_MAX : 0);
}

/* Fills writer->end. */
static void write_part(digit_writer *w) {
    const magnitude *b = w->bounds;
    pith_grammar_node empty = pith_grammar_sequence(w->text->builder, NULL, 0);
    pith_grammar_node point = pith_json_write(w->text, ".");
    pith_grammar_node later[4] = {NOTHING, NOTHING, NOTHING, NOTHING}, now[4];
    for (uint32_t i = b->n_part + 1; i-- > 0;) {
        for (uint32_t tight = 0; tight < 4; tight++) {
            pith_grammar_node next[10], more = NOTHING;
            bool ends = may_end(b, i, b->max ? tight : tight & TIGHT_MIN);
            uint32_t low = (tight & TIGHT_MIN) ? part_digit(b->min, i) : 0;
            uint32_t high = (tight & TIGHT_MAX) && b->max ? part_digit(b->max, i) : 9;
            for (uint32_t d = low; d <= high; d++) next[d] = later[next_tight(tight, d, low, high)];
            if (i < b->n_part && low <= high) more = branch_off(w->text, low, high, next);
            if (tight == 0 && i > 0) more = any_digits(w->text, 0, b->n_part - i), ends = false;
            if (i == 0 && more != NOTHING) more = pith_json_write_two(w->text, point, more);
            now[tight] = !ends             ? more
                         : more == NOTHING ? empty
                                           : pith_json_write_either(w->text, empty, more);
        }
        memcpy(later, now, sizeof later);
    }
    memcpy(w->end, later, sizeof later);
}

/* ---- before the point ---- */

static pith_grammar_node *after(const digit_writer *w, uint32_t r, uint32_t tight, uint32_t rest) {
    return &w->after[((size_t)r * 4 + tight) * w->bounds->multiple + rest];
}

/* The digit of the bound with r digits to go, itself among them. */
static uint32_t whole_digit(const decimal *d, uint32_t r) {
    return d->whole[d->n_whole - r];
}

/* One digit when r remain, at least `least`. */
static pith_grammar_node write_digit(const digit_writer *w, uint32_t r, uint32_t tight,
                                     uint32_t rest, uint32_t least) {
    const magnitude *b = w->bounds;
    pith_grammar_node next[10];
    uint32_t low = (tight & TIGHT_MIN) ? whole_digit(b->min, r) : 0;
    uint32_t high = (tight & TIGHT_MAX) ? whole_digit(b->max, r) : 9;
    uint32_t first = low > least ? low : least;
    if (first > high) return NOTHING;
    for (uint32_t d = first; d <= high; d++) {
        uint32_t over = (rest * 10 + d) % b->multiple;
        next[d] = *after(w, r - 1, next_tight(tight, d, low, high), over);
    }
    return branch_off(w->text, first, high, next);
}

static void write_whole(digit_writer *w) {
    const magnitude *b = w->bounds;
    for (uint32_t tight = 0; tight < 4; tight++) {
        for (uint32_t rest = 0; rest < b->multiple; rest++) {
            *after(w, 0, tight, rest) = rest == 0 ? w->end[tight] : NOTHING;
        }
    }
    for (uint32_t r = 1; r < b->n_whole; r++) {
        for (uint32_t tight = 0; tight < 4; tight++) {
            bool fits = !((tight & TIGHT_MIN) && r > b->min->n_whole) &&
                        !((tight & TIGHT_MAX) && (!b->max || r > b->max->n_whole));
            for (uint32_t rest = 0; rest < b->multiple; rest++) {
                pith_grammar_node node = NOTHING;
                if (tight == 0 && b->multiple == 1 && w->end[0] != NOTHING) {
                    node = pith_json_write_two(w->text, any_digits(w->text, r, r), w->end[0]);
                } else if (fits) {
                    node = write_digit(w, r, tight, rest, 0);
                }
                *after(w, r, tight, rest) = node;
            }
        }
    }
}

/* Numbers of n digits before the point. */
static pith_grammar_node write_length(const digit_writer *w, uint32_t n) {
    const magnitude *b = w->bounds;
    uint32_t tight =
        (n == b->min->n_whole ? TIGHT_MIN : 0) | (b->max && n == b->max->n_whole ? TIGHT_MAX : 0);
    return write_digit(w, n, tight, 0, n == 1 ? 0 : 1);
}

static pith_grammar_node write_magnitude(pith_json_text *text, const magnitude *b) {
    digit_writer w = {.text = text, .bounds = b};
    pith_grammar_node choices[MAX_WHOLE + 1];
    size_t n = 0;
    size_t n_after = ((size_t)b->n_whole + 1) * 4 * b->multiple;
    w.after = pith_alloc_array(n_after, sizeof *w.after);
    if (w.after == NULL) return 0;
    write_part(&w);
    write_whole(&w);
    for (uint32_t length = b->min->n_whole; length <= b->n_whole; length++) {
        if (b->max != NULL && length > b->max->n_whole) break;
        uint32_t last = b->max && b->max->n_whole <= b->n_whole ? b->max->n_whole - 1 : b->n_whole;
        pith_grammar_node node;
        if (length > b->min->n_whole && length < last && b->multiple == 1) { /* free lengths */
            pith_grammar_node parts[3] = {digits(text, 1, 9),
                                          any_digits(text, length - 1, last - 1), w.end[0]};
            node = pith_grammar_sequence(text->builder, parts, 3);
            length = last;
        } else {
            node = write_length(&w, length);
        }
        if (node != NOTHING) choices[n++] = node;
    }
    pith_free(w.after);
    return n == 0 ? NOTHING : pith_grammar_choice(text->builder, choices, n);
}

/* ---- bounds ---- */

/* false: too large to be written out (its sign is right), or without memory (n_whole is 0). */
static bool read_decimal(const json_t *value, decimal *out) {
    char text[64];
    uint8_t mantissa[32];
    int n = 0, before = -1, exponent = 0;
    *out = (decimal){0};
    if (!pith_json_number_text(value, text, sizeof text)) return false;
    out->n_whole = 1;
    const char *at = text;
    out->negative = *at == '-';
    if (*at == '-') at++;
    for (; *at && (*at | 0x20) != 'e'; at++) {
        if (*at == '.') before = n;
        if (*at >= '0' && *at <= '9' && n < 32) mantissa[n++] = (uint8_t)(*at - '0');
    }
    if (before < 0) before = n;
    if (*at) {
        bool down = at[1] == '-';
        for (at++; *at; at++) {
            if (*at >= '0' && *at <= '9') exponent = exponent * 10 + (*at - '0');
        }
        if (down) exponent = -exponent;
    }
    int point = before + exponent, first = 0;
    while (first < n && mantissa[first] == 0) first++;
    while (n > first && mantissa[n - 1] == 0) n--;
    if (first == n) {
        out->negative = false; /* 0 */
        return true;
    }
    if (point - first > MAX_WHOLE) return false;
    if (point > first) out->n_whole = 0;
    for (int i = first; i < point; i++) out->whole[out->n_whole++] = i < n ? mantissa[i] : 0;
    for (int i = point; i < n; i++) {
        if (out->n_part < MAX_PART) out->part[out->n_part++] = i < first ? 0 : mantissa[i];
    }
    return true;
}

static const decimal zero = {.n_whole = 1};

static bool is_zero(const decimal *d) {
    return d->n_whole == 1 && d->whole[0] == 0 && d->n_part == 0;
}

/* -1, 0, 1 of the magnitudes. */
static int compare(const decimal *a, const decimal *b) {
    if (a->n_whole != b->n_whole) return a->n_whole < b->n_whole ? -1 : 1;
    int order = memcmp(a->whole, b->whole, a->n_whole);
    for (uint32_t i = 0; order == 0 && (i < a->n_part || i < b->n_part); i++) {
        order = (int)part_digit(a, i) - (int)part_digit(b, i);
    }
    return order < 0 ? -1 : order > 0;
}

/* The integers that the bounds leave, as bounds that are not excluded; and those of them without
 * the last n_zeros digits. false: there is none. */
static bool round_bounds(magnitude *b, decimal *min, decimal *max, uint32_t n_zeros) {
    uint64_t low = 0, high = 0, unit = 1;
    for (uint32_t i = 0; i < n_zeros; i++) unit *= 10;
    for (uint32_t i = 0; i < b->min->n_whole; i++) low = low * 10 + b->min->whole[i];
    if (b->min->n_part > 0 || b->min_excluded) low++;
    low = low / unit + (low % unit != 0);
    for (uint32_t i = 0; b->max && i < b->max->n_whole; i++) high = high * 10 + b->max->whole[i];
    if (b->max && b->max_excluded && b->max->n_part == 0 && high-- == 0) return false;
    high /= unit;
    if (b->max && low > high) return false;
    *min = *max = zero;
    uint8_t reversed[MAX_WHOLE + 1];
    for (int upper = 0; upper < (b->max ? 2 : 1); upper++) {
        decimal *to = upper ? max : min;
        uint64_t rest = upper ? high : low;
        uint32_t n = 0;
        do {
            reversed[n++] = (uint8_t)(rest % 10);
            rest /= 10;
        } while (rest > 0 && n < MAX_WHOLE);
        for (uint32_t i = 0; i < n; i++) to->whole[i] = reversed[n - 1 - i];
        to->n_whole = n;
    }
    b->min = min;
    b->max = b->max ? max : NULL;
    b->min_excluded = b->max_excluded = false;
    return true;
}

/* Integers; what ends in n_zeros zeros is written as a multiple of the rest and those zeros. */
static pith_grammar_node write_integers(pith_json_text *text, magnitude b, bool with_zero,
                                        uint32_t n_zeros) {
    decimal min, max, one = {.n_whole = 1, .whole = {1}};
    pith_grammar_node choices[2];
    size_t n = 0;
    if (!round_bounds(&b, &min, &max, n_zeros)) return NOTHING;
    b.n_part = 0;
    b.n_whole = PITH_JSON_MAX_DIGITS > n_zeros ? PITH_JSON_MAX_DIGITS - n_zeros : 1;
    if (b.n_whole < b.min->n_whole) b.n_whole = b.min->n_whole;
    if (b.max != NULL && b.n_whole < b.max->n_whole) b.n_whole = b.max->n_whole;
    if (is_zero(b.min)) {
        if (with_zero) choices[n++] = pith_json_write(text, "0");
        b.min = &one;
    }
    pith_grammar_node rest = NOTHING;
    if (b.max == NULL || compare(b.min, b.max) <= 0) rest = write_magnitude(text, &b);
    if (rest != NOTHING) {
        pith_grammar_node zeros =
            pith_grammar_repeat(text->builder, digits(text, 0, 0), n_zeros, n_zeros);
        choices[n++] = n_zeros ? pith_json_write_two(text, rest, zeros) : rest;
    }
    return n == 0 ? NOTHING : pith_grammar_choice(text->builder, choices, n);
}

static pith_grammar_node write_reals(pith_json_text *text, magnitude b) {
    b.n_whole = b.n_part = PITH_JSON_MAX_DIGITS;
    if (b.n_whole < b.min->n_whole) b.n_whole = b.min->n_whole;
    if (b.max != NULL && b.n_whole < b.max->n_whole) b.n_whole = b.max->n_whole;
    if (b.min_excluded && !is_zero(b.min)) {
        uint32_t n = b.min->n_whole;
        b.n_part = n < PITH_JSON_MAX_DIGITS ? PITH_JSON_MAX_DIGITS - n : 0;
    }
    if (b.max != NULL && b.max_excluded) {
        uint32_t n = b.max->n_whole;
        uint32_t n_part = n < PITH_JSON_MAX_DIGITS ? PITH_JSON_MAX_DIGITS - n : 0;
        if (n_part < b.n_part) b.n_part = n_part;
    }
    if (b.max != NULL && compare(b.min, b.max) > 0) return NOTHING;
    return write_magnitude(text, &b);
}

static pith_grammar_node write_side(pith_json_text *text, const magnitude *b, bool integer,
                                    bool with_zero, uint32_t n_zeros) {
    return integer ? write_integers(text, *b, with_zero, n_zeros) : write_reals(text, *b);
}

/* One side of 0 each, the bounds having been read. */
static pith_grammar_node write_sides(pith_json_text *text, const pith_json_bounds *bounds,
                                     const decimal *min, const decimal *max, uint32_t multiple,
                                     uint32_t n_zeros) {
    pith_grammar_node choices[2];
    size_t n = 0;
    bool above = !max || (!max->negative && !(bounds->max_excluded && is_zero(max)));
    bool below = !min || min->negative;
    if (above) {
        bool tight = min && !min->negative;
        magnitude b = {tight ? min : &zero,
                       max,
                       tight && bounds->min_excluded,
                       bounds->max_excluded,
                       0,
                       0,
                       multiple};
        choices[n] = write_side(text, &b, bounds->integer, true, n_zeros);
        if (choices[n] != NOTHING) n++;
    }
    if (below) {
        bool tight = max && max->negative;
        magnitude b = {tight ? max : &zero,
                       min,
                       !tight || bounds->max_excluded,
                       bounds->min_excluded,
                       0,
                       0,
                       multiple};
        pith_grammar_node node = write_side(text, &b, bounds->integer, false, n_zeros);
        if (node != NOTHING)
            choices[n++] = pith_json_write_two(text, pith_json_write(text, "-"), node);
    }
    return n == 0 ? NOTHING : pith_grammar_choice(text->builder, choices, n);
}

/* ---- without bounds ---- */

static pith_grammar_node write_any(pith_json_text *text, bool integer) {
    static const pith_code_range letters[] = {{'E', 'E'}, {'e', 'e'}},
                                 signs[] = {{'+', '+'}, {'-', '-'}};
    pith_grammar_node *known = integer ? &text->any_integer : &text->any_number;
    if (*known != 0) return *known;
    pith_grammar_builder *builder = text->builder;
    pith_grammar_node whole = pith_json_write_two(text, digits(text, 1, 9),
                                                  any_digits(text, 0, PITH_JSON_MAX_DIGITS - 1));
    pith_grammar_node minus = pith_grammar_repeat(builder, pith_json_write(text, "-"), 0, 1);
    pith_grammar_node nought = pith_json_write(text, "0");
    if (integer) {
        *known = pith_json_write_either(text, nought, pith_json_write_two(text, minus, whole));
        return *known;
    }
    pith_grammar_node part = pith_json_write_two(text, pith_json_write(text, "."),
                                                 any_digits(text, 1, PITH_JSON_MAX_DIGITS));
    pith_grammar_node power[3] = {
        pith_grammar_class(builder, letters, 2, false),
        pith_grammar_repeat(builder, pith_grammar_class(builder, signs, 2, false), 0, 1),
        any_digits(text, 1, 2)};
    pith_grammar_node all[4] = {
        minus, pith_json_write_either(text, nought, whole),
        pith_grammar_repeat(builder, part, 0, 1),
        pith_grammar_repeat(builder, pith_grammar_sequence(builder, power, 3), 0, 1)};
    *known = pith_grammar_sequence(builder, all, 4);
    return *known;
}

pith_status pith_json_write_number(pith_json_text *text, const pith_json_bounds *bounds,
                                   pith_grammar_node *out, bool *nothing, pith_error *error) {
    decimal min, max;
    int64_t multiple = bounds->multiple < 1 ? 1 : bounds->multiple;
    uint32_t n_zeros = 0;
    *nothing = false;
    if (bounds->min == NULL && bounds->max == NULL && multiple == 1) {
        *out = write_any(text, bounds->integer);
        return PITH_OK;
    }
    for (; multiple % 10 == 0; multiple /= 10) n_zeros++;
    if (multiple > PITH_JSON_MAX_MULTIPLE) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "multiples of %lld: without its zeros at most %d is supported",
                         (long long)bounds->multiple, PITH_JSON_MAX_MULTIPLE);
    }
    bool has_min = bounds->min != NULL, has_max = bounds->max != NULL;
    if (has_min && !read_decimal(bounds->min, &min)) {
        if (min.n_whole == 0) return pith_fail_memory(error, "a minimum", 0);
        if (!min.negative) return pith_fail(error, PITH_ERROR_LIMIT, "a minimum above 10^19");
        has_min = false;
    }
    if (has_max && !read_decimal(bounds->max, &max)) {
        if (max.n_whole == 0) return pith_fail_memory(error, "a maximum", 0);
        if (max.negative) return pith_fail(error, PITH_ERROR_LIMIT, "a maximum below -10^19");
        has_max = false;
    }
    *out = write_sides(text, bounds, has_min ? &min : NULL, has_max ? &max : NULL,
                       (uint32_t)multiple, n_zeros);
    *nothing = *out == NOTHING;
    if (*nothing) *out = 0;
    return PITH_OK;
}
