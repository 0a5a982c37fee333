/* SPDX-License-Identifier: Apache-2.0
 * 256 k of one panel, taken apart: one byte a code, scales and minima as floats. What many tokens
 * are multiplied with, and for the types of expansion.h few tokens too: it lies in the first cache.
 *
 * x86 products take unsigned codes: those of signed types have an offset added, and a product takes
 * offset * (sum of its x) off again. On ARM codes are signed. A field that a type does not need is
 * left as it is. */
#ifndef PITH_KERNEL_EXPANDED_H
#define PITH_KERNEL_EXPANDED_H

#include <stdint.h>

enum { EXPANDED_GROUPS = 8 };

typedef struct factors {
    float d[EXPANDED_GROUPS][16];          /* super-blocks: d[0] */
    float scale[EXPANDED_GROUPS][2][16];   /* of 16 k each; one for 32 k: [..][0] */
    float minimum[EXPANDED_GROUPS][2][16]; /* the same */
    float dmin[16];
} factors;

typedef struct expanded {
    uint8_t code[EXPANDED_GROUPS][8][64]; /* group, code group, [16 rows][4 k] */
    factors f;
} expanded;

/* n groups from `panel` on; a super-block has 8. */
typedef void expand_fn(expanded *out, const uint8_t *panel, int n);

#endif
