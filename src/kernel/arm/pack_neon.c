/* SPDX-License-Identifier: Apache-2.0
 * NEON packing: pack() of pack_panels.h for each type, compiled with the code groups of
 * pack_groups_neon.h. Contract: pith_pack_kernel in kernel.h; bytes: ref/panel_ref.c. Only the
 * names live here. Read next: pack_panels.h. */
#include "kernel/arm/pack_groups_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/pack_panels.h"

void pith_pack_f32_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_F32);
}
void pith_pack_f16_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_F16);
}
void pith_pack_bf16_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_BF16);
}
void pith_pack_q4_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q4_0);
}
void pith_pack_q4_1_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q4_1);
}
void pith_pack_q5_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q5_0);
}
void pith_pack_q5_1_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q5_1);
}
void pith_pack_q8_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q8_0);
}
void pith_pack_q4_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q4_K);
}
void pith_pack_q5_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q5_K);
}
void pith_pack_q6_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q6_K);
}
void pith_pack_iq4_nl_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ4_NL);
}
void pith_pack_iq4_xs_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ4_XS);
}
void pith_pack_mxfp4_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_MXFP4);
}
void pith_pack_nvfp4_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_NVFP4);
}
void pith_pack_q2_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q2_K);
}
void pith_pack_q3_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q3_K);
}
void pith_pack_iq1_s_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ1_S);
}
void pith_pack_iq1_m_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ1_M);
}
void pith_pack_iq2_xxs_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                            uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ2_XXS);
}
void pith_pack_iq2_xs_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ2_XS);
}
void pith_pack_iq2_s_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ2_S);
}
void pith_pack_iq3_xxs_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                            uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ3_XXS);
}
void pith_pack_iq3_s_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_IQ3_S);
}
void pith_pack_tq1_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_TQ1_0);
}
void pith_pack_tq2_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_TQ2_0);
}
void pith_pack_q1_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q1_0);
}
void pith_pack_q2_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, PITH_TYPE_Q2_0);
}
