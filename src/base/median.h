/* SPDX-License-Identifier: Apache-2.0
 * Order statistics of measurements. */
#ifndef PITH_BASE_MEDIAN_H
#define PITH_BASE_MEDIAN_H

#include <stddef.h>

/* In place, smallest first; no NaN. n 0: nothing happens, and values may be NULL. */
void pith_sort_doubles(double *values, size_t n);
/* Of n >= 1 values, which are sorted on the way; of an even number the mean of the middle two. */
double pith_median(double *values, size_t n);

#endif
