/* SPDX-License-Identifier: Apache-2.0
 * Products of the types that are expanded first, with 256-bit registers, for the tiers avx2 and
 * avxvnni (contract: pith_mul in kernel.h). The file that includes this has included dot_avx2.h or
 * dot_avxvnni.h and mul_integer_256.h before; it names the kernels.
 *
 * 256 k of a panel become bytes and factors in the first cache (expand_types.h, expand_grids.h);
 * then tiles of tokens pass over them as over an unpacked chunk of one of the forms of
 * codes_256.h, one token too: expanding costs less than reading the codes from memory, but for
 * the code books. */
#ifndef PITH_KERNEL_X86_MUL_EXPANDED_256_H
#define PITH_KERNEL_X86_MUL_EXPANDED_256_H

#include "kernel/x86/expansion_256.h"
#include "kernel/x86/mul_integer_256.h"

/* Up to PASS tokens from t0 with one panel. */
ALWAYS_INLINE void pass_expanded(const pith_mul *args, const expansion *how, uint32_t p,
                                 uint32_t t0, uint32_t tokens, const pith_type form) {
    const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
    _Alignas(64) expanded e;
    _Alignas(64) chains c;
    _Alignas(64) chunk w;
    w.panel = NULL;
    w.unpacked = e.code[0][0];
    chains_clear(&c, tokens);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += how->chunk_bytes) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        how->expand(&e, panel, n);
        w.f = e.f;
        stored();
        tiles(args->q8, &w, &c, t0, tokens, g, n, true, form);
    }
    chains_store(&c, args->y + t0 * args->y_stride + PITH_PANEL_ROWS * (size_t)p, args->y_stride,
                 tokens, form);
}

ALWAYS_INLINE void mul_form(const pith_mul *args, const expansion *how, const pith_type form) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t tokens = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p++) pass_expanded(args, how, p, t, tokens, form);
    }
}

static void mul_as(const pith_mul *args, const expansion *how, pith_type form) {
    switch (form) {
    case FORM_GROUP: mul_form(args, how, FORM_GROUP); break;
    case FORM_HALVES: mul_form(args, how, FORM_HALVES); break;
    case FORM_HALVES_BOOK: mul_form(args, how, FORM_HALVES_BOOK); break;
    case FORM_FLOATS: mul_form(args, how, FORM_FLOATS); break;
    default: break;
    }
}

ALWAYS_INLINE void mul_expanded(const pith_mul *args, const pith_type type) {
    const expansion how = expansion_of(type);
    mul_as(args, &how, form_of(type));
}

#endif
