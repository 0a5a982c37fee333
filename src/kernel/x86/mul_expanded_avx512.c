/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products of the types that are expanded first, with any number of tokens: 256 k of a
 * panel become bytes and factors (expand_types.h, expand_grids.h, expand_books_avx512.h), which
 * mul_wide_avx512.c multiplies. One token too: the bytes stay in the first cache, and expanding
 * costs little more than reading the codes from memory, but for the code books. Few tokens of some
 * types go another way (mul_few_avx512.h). Contract: pith_mul in kernel.h; bits:
 * ref/mul_expanded_ref.c. Only the shape of each type and the names live here. */
#include "kernel/x86/expand_books_avx512.h"
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/mul_few_avx512.h"
#include "kernel/x86/x86.h"

const wide_type pith_wide_iq4_nl = {expand_iq4_nl, 8 * sizeof(pith_panel_iq4_nl), WIDE_SIGNED, 7,
                                    0};

void pith_mul_iq4_nl_avx512(const pith_mul *args) {
    if (args->n <= SOME_TOKENS)
        pith_mul_few_iq4_nl_avx512(args);
    else
        pith_mul_wide_avx512(args, &pith_wide_iq4_nl);
}

const wide_type pith_wide_mxfp4 = {expand_mxfp4, 8 * sizeof(pith_panel_mxfp4), WIDE_SIGNED, 4, 0};

void pith_mul_mxfp4_avx512(const pith_mul *args) {
    if (args->n <= SOME_TOKENS)
        pith_mul_few_mxfp4_avx512(args);
    else
        pith_mul_wide_avx512(args, &pith_wide_mxfp4);
}

const wide_type pith_wide_iq4_xs = {expand_iq4_xs, sizeof(pith_panel_iq4_xs), WIDE_SCALED, 7, 127};

void pith_mul_iq4_xs_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_iq4_xs_avx512(args);
    else
        pith_mul_wide_avx512(args, &pith_wide_iq4_xs);
}

void pith_mul_fast_iq4_xs_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq4_xs);
}

const wide_type pith_wide_nvfp4 = {expand_nvfp4, 4 * sizeof(pith_panel_nvfp4), WIDE_FLOATS, 5, 0};

void pith_mul_nvfp4_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_nvfp4);
}

const wide_type pith_wide_q2_k = {expand_q2_k, sizeof(pith_panel_q2_k), WIDE_PAIRS, 0, 3};

void pith_mul_q2_k_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_q2_k_avx512(args);
    else
        pith_mul_wide_avx512(args, &pith_wide_q2_k);
}

void pith_mul_fast_q2_k_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_q2_k);
}

const wide_type pith_wide_q3_k = {expand_q3_k, sizeof(pith_panel_q3_k), WIDE_HALVES, 5, 4};

void pith_mul_q3_k_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_q3_k_avx512(args);
    else
        pith_mul_wide_avx512(args, &pith_wide_q3_k);
}

void pith_mul_fast_q3_k_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_q3_k);
}

const wide_type pith_wide_iq1_s = {expand_iq1_s, sizeof(pith_panel_iq1_s), WIDE_SCALED, 5, 9};

void pith_mul_iq1_s_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq1_s);
}

void pith_mul_fast_iq1_s_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq1_s);
}

const wide_type pith_wide_iq1_m = {expand_iq1_m, sizeof(pith_panel_iq1_m), WIDE_HALVES, 5, 9};

void pith_mul_iq1_m_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq1_m);
}

void pith_mul_fast_iq1_m_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq1_m);
}

const wide_type pith_wide_iq2_xxs = {expand_iq2_xxs, sizeof(pith_panel_iq2_xxs), WIDE_SCALED, 6,
                                     43};

void pith_mul_iq2_xxs_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq2_xxs);
}

void pith_mul_fast_iq2_xxs_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq2_xxs);
}

const wide_type pith_wide_iq2_xs = {expand_iq2_xs, sizeof(pith_panel_iq2_xs), WIDE_HALVES, 6, 43};

void pith_mul_iq2_xs_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq2_xs);
}

void pith_mul_fast_iq2_xs_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq2_xs);
}

const wide_type pith_wide_iq2_s = {expand_iq2_s, sizeof(pith_panel_iq2_s), WIDE_HALVES, 6, 43};

void pith_mul_iq2_s_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq2_s);
}

void pith_mul_fast_iq2_s_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq2_s);
}

const wide_type pith_wide_iq3_xxs = {expand_books_iq3_xxs, sizeof(pith_panel_iq3_xxs), WIDE_SCALED,
                                     6, 62};

void pith_mul_iq3_xxs_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq3_xxs);
}

void pith_mul_fast_iq3_xxs_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq3_xxs);
}

const wide_type pith_wide_iq3_s = {expand_books_iq3_s, sizeof(pith_panel_iq3_s), WIDE_SCALED, 5,
                                   15};

void pith_mul_iq3_s_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_iq3_s);
}

void pith_mul_fast_iq3_s_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_iq3_s);
}

const wide_type pith_wide_tq1_0 = {expand_tq1_0, sizeof(pith_panel_tq1_0), WIDE_SCALED, 5, 1};

void pith_mul_tq1_0_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_tq1_0);
}

void pith_mul_fast_tq1_0_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_tq1_0);
}

const wide_type pith_wide_tq2_0 = {expand_tq2_0, sizeof(pith_panel_tq2_0), WIDE_SCALED, 5, 2};

void pith_mul_tq2_0_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_tq2_0_avx512(args);
    else
        pith_mul_wide_avx512(args, &pith_wide_tq2_0);
}

void pith_mul_fast_tq2_0_avx512(const pith_mul *args) {
    pith_mul_fast_wide_avx512(args, &pith_wide_tq2_0);
}

const wide_type pith_wide_q1_0 = {expand_q1_0, 2 * sizeof(pith_panel_q1_0), WIDE_SIGNED, 4, 0};

void pith_mul_q1_0_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_q1_0);
}

const wide_type pith_wide_q2_0 = {expand_q2_0, 4 * sizeof(pith_panel_q2_0), WIDE_SIGNED, 4, 0};

void pith_mul_q2_0_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args, &pith_wide_q2_0);
}
