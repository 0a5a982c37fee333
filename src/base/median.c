/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting of times and rates, and their middle (median.h). Every figure that pith tells of a
 * machine or a run is an order statistic, because a neighbour's burst spoils a mean. Used by the
 * probes (backend/cpu/probe.c), the rehearsal (engine/rehearsal.c) and `pith bench`. */
#include "base/median.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void pith_sort_doubles(double *values, size_t n) {
    if (n > 1) qsort(values, n, sizeof *values, compare);
}

double pith_median(double *values, size_t n) {
    pith_sort_doubles(values, n);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
