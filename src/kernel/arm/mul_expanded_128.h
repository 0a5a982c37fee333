/* SPDX-License-Identifier: Apache-2.0
 * Products of the types that are expanded first (expansion.h), with 128-bit registers, for the
 * tiers neon, dotprod and i8mm (contract: pith_mul in kernel.h). The file that includes this has
 * included dot_neon.h, dot_dotprod.h or dot_i8mm.h before; it names the kernels.
 *
 * 256 k of a panel become bytes and factors in the first cache; then tiles of tokens pass over them
 * as over any unpacked chunk, one token too: decoding is bound by looking up code books, not by
 * reading the codes. Types of one form share their tiles. */
#ifndef PITH_KERNEL_ARM_MUL_EXPANDED_128_H
#define PITH_KERNEL_ARM_MUL_EXPANDED_128_H

#include "kernel/arm/mul_integer_128.h"

static void mul_as(const pith_mul *args, const expansion *how, pith_type form) {
    switch (form) {
    case FORM_GROUP: mul_passes(args, how, FORM_GROUP); break;
    case FORM_SCALED: mul_passes(args, how, FORM_SCALED); break;
    case FORM_HALVES: mul_passes(args, how, FORM_HALVES); break;
    case FORM_FLOATS: mul_passes(args, how, FORM_FLOATS); break;
    default: break;
    }
}

ALWAYS_INLINE void mul_expanded(const pith_mul *args, const pith_type type) {
    const expansion how = expansion_of(type);
    mul_as(args, &how, form_of(type));
}

#endif
