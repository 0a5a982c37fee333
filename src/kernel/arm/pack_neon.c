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
