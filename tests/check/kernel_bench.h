/* SPDX-License-Identifier: Apache-2.0
 * What a machine can do, measured: clock, read bandwidth, peaks. For kernel_bench.c. */
#ifndef PITH_TESTS_CHECK_KERNEL_BENCH_H
#define PITH_TESTS_CHECK_KERNEL_BENCH_H

#include <stddef.h>
#include <stdint.h>

double bench_seconds(void); /* processor time of this thread */
double
bench_hertz(void); /* from a chain of multiplications, 3 cycles each on the machines that matter */
double bench_read_bandwidth(const uint8_t *memory, size_t n); /* GB/s */
/* GMAC/s of the tier's int8 product and of its f32 multiply-add, from registers; 1 where it is not
 * known. */
void bench_peaks(uint32_t features, double *integer, double *real);
/* Zeroed, 2 MiB aligned, huge pages asked for. NULL without memory. */
void *bench_alloc(size_t n);
void bench_free(void *memory);

#endif
