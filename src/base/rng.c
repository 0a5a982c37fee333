/* SPDX-License-Identifier: Apache-2.0
 *
 * xoshiro256** 1.0 (Blackman and Vigna 2018) seeded by splitmix64 (Steele, Lea, Flood 2014).
 *
 * Invariant: integer arithmetic, IEEE double + - * / and sqrt only, so a seed gives the same
 * numbers on every platform; that is why the logarithm below is our own (C libraries differ in
 * its last bit).
 *
 * Not for secrets. Read next: sample.
 */
#include "base/rng.h"

#include <math.h>

static uint64_t rotate(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

void pith_rng_init(pith_rng *rng, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        seed += 0x9E3779B97F4A7C15u;
        uint64_t z = seed;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        rng->state[i] = z ^ z >> 31;
    }
}

uint64_t pith_rng_next(pith_rng *rng) {
    uint64_t *s = rng->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double pith_rng_uniform(pith_rng *rng) {
    return (double)(pith_rng_next(rng) >> 11) * 0x1p-53;
}

/* ln x for 0 < x < 1: x = m 2^e with m in [sqrt 1/2, sqrt 2), ln m = 2 artanh((m-1)/(m+1)) by
 * its series. With |t| <= 0.172 the first term left out is below 2e-18. */
static double natural_log(double x) {
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double t = (m - 1) / (m + 1), square = t * t, sum = 0;
    for (int n = 21; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
    return 2 * t * sum + e * 0.69314718055994531;
}

/* Marsaglia's polar method; the second value is dropped so that the state is the four words
 * alone. */
double pith_rng_normal(pith_rng *rng) {
    double x, y, square;
    do {
        x = 2 * pith_rng_uniform(rng) - 1;
        y = 2 * pith_rng_uniform(rng) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square <= 0);
    return x * sqrt(-2 * natural_log(square) / square);
}
