/* SPDX-License-Identifier: Apache-2.0
 * Monotonic time and what the operating system says about memory. */
#ifndef PITH_BASE_CLOCK_H
#define PITH_BASE_CLOCK_H

#include <stdint.h>

uint64_t pith_clock_ns(void);         /* monotonic, nanoseconds since an arbitrary start */
uint64_t pith_clock_cpu_ns(void);     /* processor time of all threads so far; 0 unknown */
uint64_t pith_memory_total(void);     /* bytes; the cgroup limit when it is smaller; 0 unknown */
uint64_t pith_memory_available(void); /* bytes that can be had without swapping; 0 unknown */
uint64_t pith_memory_peak(void);      /* this process's peak resident bytes; 0 unknown */
uint64_t pith_memory_resident(void);  /* now; 0 unknown */
uint64_t pith_memory_huge(void);      /* of it in huge pages; 0 none, or unknown */

#endif
