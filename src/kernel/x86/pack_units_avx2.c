/* SPDX-License-Identifier: Apache-2.0
 * AVX2 packing of the types that are kept in units (panel.h): pack_units of pack_panels.h,
 * compiled with the code groups of pack_groups_avx2.h. Contract: pith_pack_fn in kernel.h; bytes:
 * ref/panel_ref.c. Only the places of the fields and the names live here; a last panel with fewer
 * rows goes the plain way. */
#include "kernel/x86/pack_groups_avx2.h"

#include "kernel/pack_panels.h"
#include "kernel/x86/x86.h"

void pith_pack_iq4_nl_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq4_nl_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){18, 32, 0, 1, 2, 4});
}

void pith_pack_iq4_xs_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq4_xs_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){136, 256, 0, 2, 4, 33});
}

void pith_pack_mxfp4_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_mxfp4_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_mxfp4(panel, rows, row_bytes, k);
}

void pith_pack_nvfp4_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_nvfp4_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){36, 64, 0, 0, 0, 9});
}

void pith_pack_q2_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q2_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){84, 256, 80, 2, 0, 20});
}

void pith_pack_q3_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q3_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_q3_k(panel, rows, row_bytes, k);
}

void pith_pack_iq1_s_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq1_s_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){50, 256, 0, 1, 2, 12});
}

void pith_pack_iq1_m_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq1_m_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){56, 256, 0, 0, 0, 14});
}

void pith_pack_iq2_xxs_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                            uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq2_xxs_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){66, 256, 0, 1, 2, 16});
}

void pith_pack_iq2_xs_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq2_xs_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){74, 256, 0, 1, 2, 18});
}

void pith_pack_iq2_s_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq2_s_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){82, 256, 0, 1, 2, 20});
}

void pith_pack_iq3_xxs_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                            uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq3_xxs_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){98, 256, 0, 1, 2, 24});
}

void pith_pack_iq3_s_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_iq3_s_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){110, 256, 0, 1, 2, 27});
}

void pith_pack_tq1_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_tq1_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){54, 256, 52, 1, 0, 13});
}

void pith_pack_tq2_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    if (n_row < ROWS)
        pith_pack_tq2_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){66, 256, 64, 1, 0, 16});
}

void pith_pack_q1_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q1_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){18, 128, 0, 1, 2, 4});
}

void pith_pack_q2_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q2_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_units(panel, rows, row_bytes, k, (units_kind){18, 64, 0, 1, 2, 4});
}
