/* SPDX-License-Identifier: Apache-2.0
 * Numbers to text and back, as Python writes and reads them, whatever the locale of the process. */
#ifndef PITH_CHAT_NUMBER_TEXT_H
#define PITH_CHAT_NUMBER_TEXT_H

#include "base/text.h"

enum {
    PITH_NUMBER_MAX = 32, /* bytes that pith_float_repr and pith_int_text may need, NUL included */
    PITH_FLOAT_STEPS = 100,        /* what making or rounding the text of a double may cost */
    PITH_FLOAT_MAX_PRECISION = 400 /* digits after the point that the formatting functions accept */
};

/* The shortest text that reads back as the same double: 1.0, 0.1, 1e-05, 1e+16, inf, nan. Returns
 * its length. */
size_t pith_float_repr(double value, char out[PITH_NUMBER_MAX]);
size_t pith_int_text(int64_t value, char out[PITH_NUMBER_MAX]);

/* Text of |value| with `precision` digits, correctly rounded, into a buffer of PITH_FLOAT_TEXT_MAX
 * bytes. style 'f': 3.14; 'e': 3.14e+00 (at least two digits of exponent). Returns its length. */
enum { PITH_FLOAT_TEXT_MAX = 310 + PITH_FLOAT_MAX_PRECISION + 16 };
size_t pith_float_text(double value, char style, int precision, char *out);

/* The double nearest to digits * 10^exponent, where digits are decimal. */
double pith_float_from_digits(const char *digits, size_t n_digits, int64_t exponent);
/* value rounded to n_digits decimal digits after the point, halves to even, exact on the binary
 * value. */
double pith_float_round(double value, int n_digits);

/* Text as int() and float() read it: white space around, a sign, underscores between digits. false:
 * not a number (or, for the integer, not within 64 bits). base: 2..36, or 0 for prefixes. */
bool pith_int_parse(pith_span text, int base, int64_t *value);
bool pith_float_parse(pith_span text, double *value);

#endif
