/* SPDX-License-Identifier: Apache-2.0
 * NEON packing: the kernels of pack_panels.h, compiled with the code groups of
 * pack_groups_neon.h. Contract: pith_pack_fn in kernel.h; bytes: ref/panel_ref.c. Only the names,
 * and which panels go the plain way, live here. Read next: pack_panels.h. */
#include "kernel/arm/pack_groups_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/pack_panels.h"

void pith_pack_f32_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    uint32_t done = pack_f32(panel, rows, row_bytes, n_row, k);
    pith_pack_f32_ref((uint8_t *)panel + (size_t)done * 64,
                      (const uint8_t *)rows + (size_t)done * 4, row_bytes, n_row, k - done);
}

void pith_pack_f16_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    uint32_t done = pack_half(panel, rows, row_bytes, n_row, k);
    pith_pack_f16_ref((uint8_t *)panel + (size_t)done * 32,
                      (const uint8_t *)rows + (size_t)done * 2, row_bytes, n_row, k - done);
}

void pith_pack_bf16_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    uint32_t done = pack_half(panel, rows, row_bytes, n_row, k);
    pith_pack_bf16_ref((uint8_t *)panel + (size_t)done * 32,
                       (const uint8_t *)rows + (size_t)done * 2, row_bytes, n_row, k - done);
}

void pith_pack_q4_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 18, Q4_0);
}

void pith_pack_q4_1_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_1_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 20, Q4_1);
}

void pith_pack_q5_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 22, Q5_0);
}

void pith_pack_q5_1_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_1_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 24, Q5_1);
}

void pith_pack_q8_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q8_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 34, Q8_0);
}

void pith_pack_q4_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_super(panel, rows, row_bytes, k, 8);
}

void pith_pack_q5_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_super(panel, rows, row_bytes, k, 10);
}

void pith_pack_q6_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q6_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_q6_k(panel, rows, row_bytes, k);
}
