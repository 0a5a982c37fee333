/* SPDX-License-Identifier: Apache-2.0
 * AVX-VNNI products of the types that are expanded first: the kernels of mul_expanded_256.h,
 * compiled with the dot product of dot_avxvnni.h. Contract: pith_mul in kernel.h; bits:
 * ref/mul_expanded_ref.c. Only the choice of dot product, the form of each type and the names live
 * here. Read next: mul_expanded_256.h. */
#include "kernel/x86/dot_avxvnni.h"

#include "kernel/x86/mul_expanded_256.h"
#include "kernel/x86/x86.h"

void pith_mul_nvfp4_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_nvfp4, 4 * sizeof(pith_panel_nvfp4), FORM_FLOATS});
}

void pith_mul_iq1_s_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq1_s, sizeof(pith_panel_iq1_s), FORM_HALVES});
}

void pith_mul_iq1_m_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq1_m, sizeof(pith_panel_iq1_m), FORM_HALVES});
}

void pith_mul_iq2_xxs_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq2_xxs, sizeof(pith_panel_iq2_xxs), FORM_HALVES_BOOK});
}

void pith_mul_iq2_xs_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq2_xs, sizeof(pith_panel_iq2_xs), FORM_HALVES_BOOK});
}

void pith_mul_iq2_s_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq2_s, sizeof(pith_panel_iq2_s), FORM_HALVES_BOOK});
}

void pith_mul_iq3_xxs_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq3_xxs, sizeof(pith_panel_iq3_xxs), FORM_HALVES_BOOK});
}

void pith_mul_iq3_s_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_iq3_s, sizeof(pith_panel_iq3_s), FORM_HALVES});
}

void pith_mul_tq1_0_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_tq1_0, sizeof(pith_panel_tq1_0), FORM_HALVES});
}

void pith_mul_q1_0_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_q1_0, 2 * sizeof(pith_panel_q1_0), FORM_GROUP});
}

void pith_mul_q2_0_avxvnni(const pith_mul *args) {
    mul_expanded(args, &(expansion){expand_q2_0, 4 * sizeof(pith_panel_q2_0), FORM_GROUP});
}
