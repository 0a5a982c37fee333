/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and their text.
 *
 * snprintf and strtod are correctly rounded on the platforms we run on, but both use the decimal
 * point of the locale. So text for strtod is written without a point (digits, 'e', exponent), and
 * the point that snprintf wrote is found as the first byte that is neither digit nor sign.
 *
 * Shortest text: any decimal of up to 15 digits is told apart by a double, so if the 15 nearest
 * digits read back as the same double, the shortest text is these without the zeros at their end.
 * Otherwise 16 digits are tried, then 17 are taken. Beside the nearest decimal of a length the next
 * one above is tried: at powers of two, where the gap below is half the gap above, it may be the
 * one that reads back. Numbers below the normal range have fewer bits, so all lengths are tried for
 * them.
 */
#include "chat/number_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text to double ---- */

double pith_float_from_digits(const char *digits, size_t n_digits, int64_t exponent) {
    enum { KEPT = 800 }; /* more digits than any halfway point between doubles has */
    char text[KEPT + 32];
    size_t n = 0;
    bool lost = false;
    while (n_digits > 0 && digits[0] == '0') {
        digits++;
        n_digits--;
    }
    for (size_t i = 0; i < n_digits; i++) {
        if (n < KEPT) {
            text[n++] = digits[i];
        } else {
            exponent++;
            lost = lost || digits[i] != '0';
        }
    }
    if (n == 0) return 0.0;
    if (lost)
        text[n - 1] =
            text[n - 1] == '0' ? '1' : text[n - 1]; /* keeps the value above a halfway point */
    if (exponent > 100000) return HUGE_VAL;
    if (exponent < -100000) exponent = -100000;
    snprintf(text + n, sizeof text - n, "e%d", (int)exponent);
    return strtod(text, NULL);
}

/* ---- double to text ---- */

/* |value| as d.ddd x 10^exponent: `n` digits without the point. value is finite. */
static void round_to_digits(double value, int n, char *digits, int *exponent) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", n - 1, value);
    int at = 0;
    const char *p = text;
    for (; *p != 'e' && *p != 0; p++) {
        if (*p >= '0' && *p <= '9') digits[at++] = *p;
    }
    digits[at] = 0;
    *exponent = *p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0;
}

/* Adds one unit in the last digit. */
static void next_above(char *digits, int n, int *exponent) {
    for (int i = n - 1; i >= 0; i--) {
        if (digits[i] != '9') {
            digits[i]++;
            return;
        }
        digits[i] = '0';
    }
    digits[0] = '1';
    ++*exponent;
}

/* Whether the n digits, or else the next number above them, read back as value. */
static bool reads_back(double value, int n, char *digits, int *exponent) {
    round_to_digits(value, n, digits, exponent);
    if (pith_float_from_digits(digits, (size_t)n, *exponent - n + 1) == value) return true;
    next_above(digits, n, exponent);
    return pith_float_from_digits(digits, (size_t)n, *exponent - n + 1) == value;
}

static int shortest_digits(double value, char digits[20], int *exponent) {
    enum { SAFE = 15, ALL = 17 };
    int n = value < DBL_MIN ? 1 : SAFE; /* fewer than 53 bits: all lengths are tried */
    while (n < ALL && !reads_back(value, n, digits, exponent)) n++;
    if (n == ALL) round_to_digits(value, ALL, digits, exponent);
    while (n > 1 && n <= SAFE && digits[n - 1] == '0') n--;
    return n;
}

static size_t write_exponent(char *out, int exponent) {
    return (size_t)snprintf(out, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

size_t pith_float_repr(double value, char out[PITH_NUMBER_MAX]) {
    char digits[20];
    int exponent;
    size_t n = 0;
    if (value != value) return (size_t)snprintf(out, PITH_NUMBER_MAX, "nan");
    if (signbit(value)) out[n++] = '-';
    value = fabs(value);
    if (isinf(value)) return n + (size_t)snprintf(out + n, PITH_NUMBER_MAX - n, "inf");
    if (value == 0.0) return n + (size_t)snprintf(out + n, PITH_NUMBER_MAX - n, "0.0");
    int n_digits = shortest_digits(value, digits, &exponent);
    if (exponent < -4 || exponent >= 16) {
        out[n++] = digits[0];
        if (n_digits > 1) out[n++] = '.';
        for (int i = 1; i < n_digits; i++) out[n++] = digits[i];
        return n + write_exponent(out + n, exponent);
    }
    if (exponent < 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int i = exponent + 1; i < 0; i++) out[n++] = '0';
    }
    for (int i = 0; i < n_digits || i <= exponent; i++) {
        out[n++] = i < n_digits ? digits[i] : '0';
        if (i == exponent) out[n++] = '.';
    }
    if (out[n - 1] == '.') out[n++] = '0';
    out[n] = 0;
    return n;
}

size_t pith_int_text(int64_t value, char out[PITH_NUMBER_MAX]) {
    return (size_t)snprintf(out, PITH_NUMBER_MAX, "%lld", (long long)value);
}

size_t pith_float_text(double value, char style, int precision, char *out) {
    if (precision < 0) precision = 0;
    if (precision > PITH_FLOAT_MAX_PRECISION) precision = PITH_FLOAT_MAX_PRECISION;
    int n = style == 'e' ? snprintf(out, PITH_FLOAT_TEXT_MAX, "%.*e", precision, fabs(value))
                         : snprintf(out, PITH_FLOAT_TEXT_MAX, "%.*f", precision, fabs(value));
    size_t at = strspn(out, "0123456789");
    if (precision > 0 && out[at] != 0 && isfinite(value)) out[at] = '.';
    return (size_t)n;
}

double pith_float_round(double value, int n_digits) {
    char text[PITH_FLOAT_TEXT_MAX], digits[PITH_FLOAT_TEXT_MAX];
    if (!isfinite(value) || n_digits > 330) return value;
    size_t n = 0, kept = 0;
    if (n_digits >= 0) {
        n = pith_float_text(value, 'f', n_digits, text);
        for (size_t i = 0; i < n; i++) {
            if (text[i] != '.') digits[kept++] = text[i];
        }
        return copysign(pith_float_from_digits(digits, kept, -n_digits), value);
    }
    if (n_digits < -309) return copysign(0.0, value);
    /* Before the point: as many leading digits as stay, which %e rounds exactly. */
    n = pith_float_text(value, 'f', 0, text);
    int whole = (int)n + n_digits;
    if (whole < 0) return copysign(0.0, value);
    if (whole == 0) { /* 0 or one unit: more than half of it? */
        bool above = text[0] > '5' || (text[0] == '5' &&
                                       fabs(value) > pith_float_from_digits("5", 1, -n_digits - 1));
        return copysign(above ? pith_float_from_digits("1", 1, -n_digits) : 0.0, value);
    }
    int exponent;
    round_to_digits(fabs(value), whole < 17 ? whole : 17, digits, &exponent);
    return copysign(
        pith_float_from_digits(digits, strlen(digits), exponent - (int)strlen(digits) + 1), value);
}

/* ---- reading ---- */

static pith_span strip(pith_span text) {
    while (text.size > 0 && pith_is_space(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && pith_is_space(text.data[text.size - 1])) text.size--;
    return text;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

/* Skips 0x, 0o, 0b where `base` allows them; sets base when it was 0. */
static void skip_prefix(pith_span *text, int *base) {
    if (text->size > 2 && text->data[0] == '0') {
        int letter = text->data[1] | 0x20;
        int meant = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
        if (meant != 0 && (*base == 0 || *base == meant)) {
            *base = meant;
            text->data += 2;
            text->size -= 2;
            if (text->data[0] == '_') { /* allowed right behind the prefix */
                text->data++;
                text->size--;
            }
            return;
        }
    }
    if (*base == 0) *base = 10;
}

bool pith_int_parse(pith_span text, int base, int64_t *value) {
    text = strip(text);
    bool negative = text.size > 0 && text.data[0] == '-';
    if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        text.data++;
        text.size--;
    }
    skip_prefix(&text, &base);
    uint64_t sum = 0, limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    bool after_digit = false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        int digit = digit_value(text.data[i]);
        if (digit >= base || sum > (limit - (uint64_t)digit) / (uint64_t)base) return false;
        sum = sum * (uint64_t)base + (uint64_t)digit;
        after_digit = true;
    }
    if (!after_digit) return false;
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

static bool parse_special(pith_span text, double *value) {
    static const struct {
        const char *name;
        double value;
    } names[] = {{"inf", HUGE_VAL}, {"infinity", HUGE_VAL}, {"nan", (double)NAN}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t at = 0;
        if (strlen(names[i].name) != text.size) continue;
        while (at < text.size && (text.data[at] | 0x20) == names[i].name[at]) at++;
        if (at < text.size) continue;
        *value = names[i].value;
        return true;
    }
    return false;
}

/* digits [. digits] [e sign digits], underscores between digits. */
typedef struct decimal {
    char digits[840];
    size_t n_digits;
    int64_t exponent;
} decimal;

/* Reads a run of digits into `number`, moving `text`; each costs the exponent `shift` (0 before the
 * point, 1 behind). */
static size_t read_digits(pith_span *text, decimal *number, int shift) {
    size_t n = 0;
    while (text->size > 0) {
        char c = text->data[0];
        bool is_gap =
            c == '_' && n > 0 && text->size > 1 && text->data[1] >= '0' && text->data[1] <= '9';
        if (!is_gap && (c < '0' || c > '9')) break;
        text->data++;
        text->size--;
        if (is_gap) continue;
        n++;
        if (number->n_digits == 0 && c == '0') { /* leading zeros weigh nothing */
            number->exponent -= shift;
        } else if (number->n_digits < sizeof number->digits) {
            number->digits[number->n_digits++] = c;
            number->exponent -= shift;
        } else {
            number->exponent += 1 - shift;
            if (c != '0') number->digits[sizeof number->digits - 1] = '1';
        }
    }
    return n;
}

static bool read_exponent(pith_span *text, decimal *number) {
    if (text->size == 0 || (text->data[0] | 0x20) != 'e') return true;
    text->data++;
    text->size--;
    bool negative = text->size > 0 && text->data[0] == '-';
    if (text->size > 0 && (text->data[0] == '-' || text->data[0] == '+')) {
        text->data++;
        text->size--;
    }
    int64_t sum = 0;
    size_t n = 0;
    for (; text->size > 0 && text->data[0] >= '0' && text->data[0] <= '9';
         text->data++, text->size--, n++) {
        if (sum < 1000000) sum = sum * 10 + (text->data[0] - '0');
    }
    number->exponent += negative ? -sum : sum;
    return n > 0;
}

bool pith_float_parse(pith_span text, double *value) {
    decimal number = {.n_digits = 0};
    text = strip(text);
    bool negative = text.size > 0 && text.data[0] == '-';
    if (text.size > 0 && (text.data[0] == '-' || text.data[0] == '+')) {
        text.data++;
        text.size--;
    }
    if (!parse_special(text, value)) {
        size_t n = read_digits(&text, &number, 0);
        if (text.size > 0 && text.data[0] == '.') {
            text.data++;
            text.size--;
            n += read_digits(&text, &number, 1);
        }
        if (n == 0 || !read_exponent(&text, &number) || text.size > 0) return false;
        *value = pith_float_from_digits(number.digits, number.n_digits, number.exponent);
    }
    if (negative) *value = -*value;
    return true;
}
