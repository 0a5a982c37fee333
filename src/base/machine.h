/* SPDX-License-Identifier: Apache-2.0
 * What only the operating system can say about the processor; the cpu room asks and decides. */
#ifndef PITH_BASE_MACHINE_H
#define PITH_BASE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of pith_machine_arm. */
enum {
    PITH_MACHINE_ARM_SIMD = 1u << 0,    /* Advanced SIMD */
    PITH_MACHINE_ARM_FP16 = 1u << 1,    /* scalar and vector half arithmetic */
    PITH_MACHINE_ARM_DOTPROD = 1u << 2, /* SDOT, UDOT */
    PITH_MACHINE_ARM_I8MM = 1u << 3     /* SMMLA, USDOT */
};

/* Instructions of an ARM processor that the system lets programs use; 0 elsewhere. */
uint32_t pith_machine_arm(void);
/* Asks the system for the AMX tile registers, once for the whole process; false when it refuses
 * or knows none. Threads made later have the permission too. */
bool pith_machine_permit_amx(void);
/* The system's name for the processor or the board, NUL-terminated, "" when it has none.
 * capacity > 0. */
void pith_machine_model(char *text, size_t capacity);

/* Bytes of the second-level cache that are one core's (those of the first processor); 0: unknown.
 */
size_t pith_machine_second_cache(void);

#endif
