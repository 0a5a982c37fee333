/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products of the types that are expanded first, with any number of tokens: 256 k of a
 * panel become bytes and factors (expand_types.h, expand_grids.h), which mul_wide_avx512.c
 * multiplies. One token too: the bytes stay in the first cache, and expanding costs little more
 * than reading the codes from memory, but for the code books. Few tokens of some types go another
 * way (mul_few_avx512.h). Contract: pith_mul in kernel.h; bits: ref/mul_expanded_ref.c. Only the
 * shape of each type and the names live here. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/mul_few_avx512.h"
#include "kernel/x86/words_avx512.h"
#include "kernel/x86/x86.h"

#include "kernel/x86/expand_grids.h"

void pith_mul_iq4_nl_avx512(const pith_mul *args) {
    if (args->n <= SOME_TOKENS)
        pith_mul_few_iq4_nl_avx512(args);
    else
        pith_mul_wide_avx512(
            args, &(wide_type){expand_iq4_nl, 8 * sizeof(pith_panel_iq4_nl), WIDE_SIGNED, 7});
}

void pith_mul_mxfp4_avx512(const pith_mul *args) {
    if (args->n <= SOME_TOKENS)
        pith_mul_few_mxfp4_avx512(args);
    else
        pith_mul_wide_avx512(
            args, &(wide_type){expand_mxfp4, 8 * sizeof(pith_panel_mxfp4), WIDE_SIGNED, 4});
}

void pith_mul_iq4_xs_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_iq4_xs_avx512(args);
    else
        pith_mul_wide_avx512(
            args, &(wide_type){expand_iq4_xs, sizeof(pith_panel_iq4_xs), WIDE_SCALED, 7});
}

void pith_mul_nvfp4_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_nvfp4, 4 * sizeof(pith_panel_nvfp4), WIDE_FLOATS, 5});
}

void pith_mul_q2_k_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_q2_k_avx512(args);
    else
        pith_mul_wide_avx512(args,
                             &(wide_type){expand_q2_k, sizeof(pith_panel_q2_k), WIDE_PAIRS, 0});
}

void pith_mul_q3_k_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_q3_k_avx512(args);
    else
        pith_mul_wide_avx512(args,
                             &(wide_type){expand_q3_k, sizeof(pith_panel_q3_k), WIDE_HALVES, 5});
}

void pith_mul_iq1_s_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq1_s, sizeof(pith_panel_iq1_s), WIDE_SCALED, 5});
}

void pith_mul_iq1_m_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq1_m, sizeof(pith_panel_iq1_m), WIDE_HALVES, 5});
}

void pith_mul_iq2_xxs_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq2_xxs, sizeof(pith_panel_iq2_xxs), WIDE_SCALED, 6});
}

void pith_mul_iq2_xs_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq2_xs, sizeof(pith_panel_iq2_xs), WIDE_HALVES, 6});
}

void pith_mul_iq2_s_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq2_s, sizeof(pith_panel_iq2_s), WIDE_HALVES, 6});
}

void pith_mul_iq3_xxs_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq3_xxs, sizeof(pith_panel_iq3_xxs), WIDE_SCALED, 6});
}

void pith_mul_iq3_s_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_iq3_s, sizeof(pith_panel_iq3_s), WIDE_SCALED, 5});
}

void pith_mul_tq1_0_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_tq1_0, sizeof(pith_panel_tq1_0), WIDE_SCALED, 5});
}

void pith_mul_tq2_0_avx512(const pith_mul *args) {
    if (args->n <= FEW_PAIRS)
        pith_mul_few_tq2_0_avx512(args);
    else
        pith_mul_wide_avx512(args,
                             &(wide_type){expand_tq2_0, sizeof(pith_panel_tq2_0), WIDE_SCALED, 5});
}

void pith_mul_q1_0_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_q1_0, 2 * sizeof(pith_panel_q1_0), WIDE_SIGNED, 4});
}

void pith_mul_q2_0_avx512(const pith_mul *args) {
    pith_mul_wide_avx512(args,
                         &(wide_type){expand_q2_0, 4 * sizeof(pith_panel_q2_0), WIDE_SIGNED, 4});
}
