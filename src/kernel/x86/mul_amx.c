/* SPDX-License-Identifier: Apache-2.0
 * AMX products of all integer types, in both contracts: mul_tiles_amx.c from 16 tokens on; fewer
 * are AVX-512's, which reads their weights no slower than memory gives them. Contract: pith_mul in
 * kernel.h. Only the choice and the names live here. */
#include "kernel/x86/mul_tiles_amx.h"
#include "kernel/x86/x86.h"

static void mul(const pith_mul *args, const wide_type *type, pith_mul_fn few) {
    if (args->n < AMX_TOKENS)
        few(args);
    else
        pith_mul_tiles_amx(args, type);
}

void pith_mul_q4_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_q4_0, pith_mul_q4_0_avx512);
}
void pith_mul_q4_1_amx(const pith_mul *args) {
    mul(args, &pith_wide_q4_1, pith_mul_q4_1_avx512);
}
void pith_mul_q5_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_q5_0, pith_mul_q5_0_avx512);
}
void pith_mul_q5_1_amx(const pith_mul *args) {
    mul(args, &pith_wide_q5_1, pith_mul_q5_1_avx512);
}
void pith_mul_q8_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_q8_0, pith_mul_q8_0_avx512);
}
void pith_mul_q4_k_amx(const pith_mul *args) {
    mul(args, &pith_wide_q4_k, pith_mul_q4_k_avx512);
}
void pith_mul_q5_k_amx(const pith_mul *args) {
    mul(args, &pith_wide_q5_k, pith_mul_q5_k_avx512);
}
void pith_mul_q6_k_amx(const pith_mul *args) {
    mul(args, &pith_wide_q6_k, pith_mul_q6_k_avx512);
}
void pith_mul_iq4_nl_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq4_nl, pith_mul_iq4_nl_avx512);
}
void pith_mul_iq4_xs_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq4_xs, pith_mul_iq4_xs_avx512);
}
void pith_mul_mxfp4_amx(const pith_mul *args) {
    mul(args, &pith_wide_mxfp4, pith_mul_mxfp4_avx512);
}
void pith_mul_nvfp4_amx(const pith_mul *args) {
    mul(args, &pith_wide_nvfp4, pith_mul_nvfp4_avx512);
}
void pith_mul_q2_k_amx(const pith_mul *args) {
    mul(args, &pith_wide_q2_k, pith_mul_q2_k_avx512);
}
void pith_mul_q3_k_amx(const pith_mul *args) {
    mul(args, &pith_wide_q3_k, pith_mul_q3_k_avx512);
}
void pith_mul_iq1_s_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq1_s, pith_mul_iq1_s_avx512);
}
void pith_mul_iq1_m_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq1_m, pith_mul_iq1_m_avx512);
}
void pith_mul_iq2_xxs_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq2_xxs, pith_mul_iq2_xxs_avx512);
}
void pith_mul_iq2_xs_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq2_xs, pith_mul_iq2_xs_avx512);
}
void pith_mul_iq2_s_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq2_s, pith_mul_iq2_s_avx512);
}
void pith_mul_iq3_xxs_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq3_xxs, pith_mul_iq3_xxs_avx512);
}
void pith_mul_iq3_s_amx(const pith_mul *args) {
    mul(args, &pith_wide_iq3_s, pith_mul_iq3_s_avx512);
}
void pith_mul_tq1_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_tq1_0, pith_mul_tq1_0_avx512);
}
void pith_mul_tq2_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_tq2_0, pith_mul_tq2_0_avx512);
}
void pith_mul_q1_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_q1_0, pith_mul_q1_0_avx512);
}
void pith_mul_q2_0_amx(const pith_mul *args) {
    mul(args, &pith_wide_q2_0, pith_mul_q2_0_avx512);
}

/* ---- The fast contract ---- */

static void mul_fast(const pith_mul *args, const wide_type *type) {
    if (args->n < AMX_TOKENS)
        pith_mul_fast_wide_avx512(args, type);
    else
        pith_mul_fast_tiles_amx(args, type);
}

void pith_mul_fast_q4_k_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_q4_k);
}
void pith_mul_fast_q5_k_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_q5_k);
}
void pith_mul_fast_q6_k_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_q6_k);
}
void pith_mul_fast_iq4_xs_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq4_xs);
}
void pith_mul_fast_q2_k_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_q2_k);
}
void pith_mul_fast_q3_k_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_q3_k);
}
void pith_mul_fast_iq1_s_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq1_s);
}
void pith_mul_fast_iq1_m_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq1_m);
}
void pith_mul_fast_iq2_xxs_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq2_xxs);
}
void pith_mul_fast_iq2_xs_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq2_xs);
}
void pith_mul_fast_iq2_s_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq2_s);
}
void pith_mul_fast_iq3_xxs_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq3_xxs);
}
void pith_mul_fast_iq3_s_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_iq3_s);
}
void pith_mul_fast_tq1_0_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_tq1_0);
}
void pith_mul_fast_tq2_0_amx(const pith_mul *args) {
    mul_fast(args, &pith_wide_tq2_0);
}
