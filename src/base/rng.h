/* SPDX-License-Identifier: Apache-2.0
 * xoshiro256** (Blackman, Vigna 2018), seeded by splitmix64: the same numbers on every platform.
 * Not for secrets. */
#ifndef PITH_BASE_RNG_H
#define PITH_BASE_RNG_H

#include <stdint.h>

typedef struct pith_rng {
    uint64_t state[4];
} pith_rng;

void pith_rng_init(pith_rng *rng, uint64_t seed);
uint64_t pith_rng_next(pith_rng *rng);
double pith_rng_uniform(pith_rng *rng); /* [0, 1), 53 bits */
double pith_rng_normal(pith_rng *rng);  /* mean 0, deviation 1 */

#endif
