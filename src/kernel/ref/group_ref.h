/* SPDX-License-Identifier: Apache-2.0
 * What the plain C products of quantized weights share: one group (32 k of 16 rows) taken apart
 * into signed codes and scales, and how the groups of a type are added up (contract: pith_mul in
 * kernel.h). Types differ in how a group is unpacked: mul_integer_ref.c, mul_expanded_ref.c. */
#ifndef PITH_KERNEL_REF_GROUP_REF_H
#define PITH_KERNEL_REF_GROUP_REF_H

#include "kernel/kernel.h"

/* 32 k of 16 rows, whatever the type. */
typedef struct pith_group {
    int16_t code[32][PITH_PANEL_ROWS];
    int32_t scale[2][PITH_PANEL_ROWS];   /* integer sub-scales of k < 16 and k >= 16 */
    int32_t minimum[2][PITH_PANEL_ROWS]; /* integer sub-minima; PITH_SUM_SUPER uses the first */
    float d[2][PITH_PANEL_ROWS];         /* PITH_SUM_FLOATS uses both */
    float dmin[PITH_PANEL_ROWS];
} pith_group;

typedef enum pith_group_sum {
    PITH_SUM_SMALL,  /* d (and a minimum) for every group */
    PITH_SUM_SUPER,  /* d (and dmin) for a block of several groups */
    PITH_SUM_HALVES, /* the same, minima of 16 elements each */
    PITH_SUM_FLOATS  /* d of 16 elements each, no integer scales */
} pith_group_sum;

typedef struct pith_group_format {
    /* Group `index` of a panel block. `out` is zeroed before the first call. */
    void (*unpack)(const void *block, uint32_t index, pith_group *out);
    size_t block_bytes;
    uint32_t n_group; /* groups of 32 in a block */
    pith_group_sum sum;
    int minimum_sign; /* 0: no minima; -1: subtracted; 1: added */
    int code_max;     /* largest magnitude of a code; blocks of 256 (fast contract) */
} pith_group_format;

/* Any number of panels and tokens; exact, and (blocks of 256) fast contract. */
void pith_mul_groups_ref(const pith_mul *args, const pith_group_format *format);
void pith_mul_fast_groups_ref(const pith_mul *args, const pith_group_format *format);

#endif
