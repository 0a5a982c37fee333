/* SPDX-License-Identifier: Apache-2.0
 * File blocks of 16 rows -> panel, and one row of a panel -> f32, plain C: the definition of the
 * layouts in panel.h.
 *
 * A layout is a list of fields in panel order: where the field lies in a file block, the size of
 * its units, how many. Unit u of the 16 rows lie side by side in the panel; the one exception is
 * the fifth bits of Q5_0 and Q5_1 (BITS).
 * Invariant: every byte of a file block is named by exactly one field, so packing can be undone.
 * Rows that do not exist become zero bytes. Decoding rebuilds the file block of the row and asks
 * the quant room, so it cannot disagree with it. */
#include "kernel/panel.h"
#include "kernel/ref/ref.h"

#include <string.h>

enum { ROWS = PITH_PANEL_ROWS, MAX_FIELDS = 8, MAX_BLOCK = 256, BITS = 0 };

typedef struct field {
    uint16_t offset; /* in the file block */
    uint16_t unit;   /* bytes; BITS: 32 bits, bit 4g + j becomes bit g of byte j */
    uint16_t count;
    uint16_t weave; /* that many following fields take turns with this one, unit by unit */
} field;

typedef struct layout {
    pith_type type;
    uint16_t block_bytes, block_elems;
    field fields[MAX_FIELDS]; /* ends at count 0 */
} layout;

static const layout f32_layout = {PITH_TYPE_F32, 4, 1, {{0, 4, 1, 0}}};
static const layout f16_layout = {PITH_TYPE_F16, 2, 1, {{0, 2, 1, 0}}};
static const layout bf16_layout = {PITH_TYPE_BF16, 2, 1, {{0, 2, 1, 0}}};
static const layout q4_0_layout = {PITH_TYPE_Q4_0, 18, 32, {{0, 2, 1, 0}, {2, 4, 4, 0}}};
static const layout q4_1_layout = {
    PITH_TYPE_Q4_1, 20, 32, {{0, 2, 1, 0}, {2, 2, 1, 0}, {4, 4, 4, 0}}};
static const layout q5_0_layout = {
    PITH_TYPE_Q5_0, 22, 32, {{0, 2, 1, 0}, {2, BITS, 1, 0}, {6, 4, 4, 0}}};
static const layout q5_1_layout = {
    PITH_TYPE_Q5_1, 24, 32, {{0, 2, 1, 0}, {2, 2, 1, 0}, {4, BITS, 1, 0}, {8, 4, 4, 0}}};
static const layout q8_0_layout = {PITH_TYPE_Q8_0, 34, 32, {{0, 2, 1, 0}, {2, 4, 8, 0}}};
static const layout q4_k_layout = {
    PITH_TYPE_Q4_K, 144, 256, {{0, 2, 1, 0}, {2, 2, 1, 0}, {4, 1, 12, 0}, {16, 4, 32, 0}}};
static const layout q5_k_layout = {
    PITH_TYPE_Q5_K,
    176,
    256,
    {{0, 2, 1, 0}, {2, 2, 1, 0}, {4, 1, 12, 0}, {16, 4, 8, 0}, {48, 4, 32, 0}}};
static const layout q6_k_layout = {PITH_TYPE_Q6_K,
                                   210,
                                   256,
                                   {{208, 2, 1, 0},
                                    {192, 1, 16, 0},
                                    {0, 4, 8, 2},
                                    {32, 4, 8, 0},
                                    {128, 4, 8, 0},
                                    {64, 4, 8, 2},
                                    {96, 4, 8, 0},
                                    {160, 4, 8, 0}}};

static const layout iq4_nl_layout = {PITH_TYPE_IQ4_NL, 18, 32, {{0, 2, 1, 0}, {2, 4, 4, 0}}};
static const layout iq4_xs_layout = {
    PITH_TYPE_IQ4_XS, 136, 256, {{0, 2, 1, 0}, {2, 2, 1, 0}, {4, 4, 33, 0}}};
static const layout mxfp4_layout = {PITH_TYPE_MXFP4, 17, 32, {{0, 1, 1, 0}, {1, 4, 4, 0}}};
static const layout nvfp4_layout = {PITH_TYPE_NVFP4, 36, 64, {{0, 4, 9, 0}}};
static const layout q2_k_layout = {
    PITH_TYPE_Q2_K, 84, 256, {{80, 2, 1, 0}, {82, 2, 1, 0}, {0, 4, 20, 0}}};
static const layout q3_k_layout = {
    PITH_TYPE_Q3_K,
    110,
    256,
    {{108, 2, 1, 0}, {96, 4, 3, 0}, {0, 4, 8, 2}, {32, 4, 8, 0}, {64, 4, 8, 0}}};
static const layout iq1_s_layout = {PITH_TYPE_IQ1_S, 50, 256, {{0, 2, 1, 0}, {2, 4, 12, 0}}};
static const layout iq1_m_layout = {PITH_TYPE_IQ1_M, 56, 256, {{0, 4, 14, 0}}};
static const layout iq2_xxs_layout = {PITH_TYPE_IQ2_XXS, 66, 256, {{0, 2, 1, 0}, {2, 4, 16, 0}}};
static const layout iq2_xs_layout = {PITH_TYPE_IQ2_XS, 74, 256, {{0, 2, 1, 0}, {2, 4, 18, 0}}};
static const layout iq2_s_layout = {PITH_TYPE_IQ2_S, 82, 256, {{0, 2, 1, 0}, {2, 4, 20, 0}}};
static const layout iq3_xxs_layout = {PITH_TYPE_IQ3_XXS, 98, 256, {{0, 2, 1, 0}, {2, 4, 24, 0}}};
static const layout iq3_s_layout = {PITH_TYPE_IQ3_S, 110, 256, {{0, 2, 1, 0}, {2, 4, 27, 0}}};
static const layout tq1_0_layout = {PITH_TYPE_TQ1_0, 54, 256, {{52, 2, 1, 0}, {0, 4, 13, 0}}};
static const layout tq2_0_layout = {PITH_TYPE_TQ2_0, 66, 256, {{64, 2, 1, 0}, {0, 4, 16, 0}}};
static const layout q1_0_layout = {PITH_TYPE_Q1_0, 18, 128, {{0, 2, 1, 0}, {2, 4, 4, 0}}};
static const layout q2_0_layout = {PITH_TYPE_Q2_0, 18, 64, {{0, 2, 1, 0}, {2, 4, 4, 0}}};

/* Four bytes whose bits are b(4g + j) -> bit g of byte j; and back. */
static void spread_bits(uint8_t out[4], const uint8_t in[4]) {
    memset(out, 0, 4);
    for (int i = 0; i < 32; i++)
        out[i % 4] = (uint8_t)(out[i % 4] | (in[i / 8] >> i % 8 & 1) << i / 4);
}

static void gather_bits(uint8_t out[4], const uint8_t in[4]) {
    memset(out, 0, 4);
    for (int i = 0; i < 32; i++)
        out[i / 8] = (uint8_t)(out[i / 8] | (in[i % 4] >> i / 4 & 1) << i % 8);
}

/* Unit u of field f of one row: block -> panel (pack) or back. Sizes are spelled out, or each copy
 * would be a call. */
static void move_unit(uint8_t *panel, uint8_t *block, const field *f, size_t u, bool pack) {
    uint8_t *at = block + f->offset + u * f->unit;
    uint8_t *to = pack ? panel : at;
    const uint8_t *from = pack ? at : panel;
    switch (f->unit) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: /* BITS */
        if (pack)
            spread_bits(panel, at);
        else
            gather_bits(at, panel);
        break;
    }
}

/* One row of one block. */
static void move_block(uint8_t *panel, uint8_t *block, uint32_t row, const layout *l, bool pack) {
    for (const field *f = l->fields; f < l->fields + MAX_FIELDS && f->count > 0;
         f += f->weave + 1) {
        for (size_t u = 0; u < f->count; u++)
            for (size_t w = 0; w <= f->weave; w++) {
                size_t unit = f[w].unit == BITS ? 4 : f[w].unit;
                move_unit(panel + row * unit, block, &f[w], u, pack);
                panel += ROWS * unit;
            }
    }
}

static void pack(void *panel, const void *rows, size_t row_bytes, uint32_t n_row, uint32_t k,
                 const layout *l) {
    size_t n_block = k / l->block_elems, panel_block = (size_t)ROWS * l->block_bytes;
    uint8_t block[MAX_BLOCK];
    if (n_row < ROWS) memset(panel, 0, n_block * panel_block);
    for (uint32_t r = 0; r < n_row; r++) {
        const uint8_t *row = (const uint8_t *)rows + r * row_bytes;
        for (size_t b = 0; b < n_block; b++) {
            memcpy(block, row + b * l->block_bytes, l->block_bytes);
            move_block((uint8_t *)panel + b * panel_block, block, r, l, true);
        }
    }
}

static void decode(const void *panel, uint32_t row, float *out, uint32_t k, const layout *l) {
    size_t n_block = k / l->block_elems, panel_block = (size_t)ROWS * l->block_bytes;
    const pith_type_info *info = pith_type_get((uint32_t)l->type);
    uint8_t block[MAX_BLOCK];
    for (size_t b = 0; b < n_block; b++) {
        uint8_t *from = (uint8_t *)(uintptr_t)panel + b * panel_block; /* only read */
        move_block(from, block, row, l, false);
        info->decode(block, out + b * l->block_elems, l->block_elems);
    }
}

void pith_pack_f32_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                       uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &f32_layout);
}

void pith_pack_f16_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                       uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &f16_layout);
}

void pith_pack_bf16_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &bf16_layout);
}

void pith_pack_q4_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q4_0_layout);
}

void pith_pack_q4_1_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q4_1_layout);
}

void pith_pack_q5_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q5_0_layout);
}

void pith_pack_q5_1_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q5_1_layout);
}

void pith_pack_q8_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q8_0_layout);
}

void pith_pack_q4_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q4_k_layout);
}

void pith_pack_q5_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q5_k_layout);
}

void pith_pack_q6_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q6_k_layout);
}

void pith_pack_iq4_nl_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq4_nl_layout);
}

void pith_pack_iq4_xs_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq4_xs_layout);
}

void pith_pack_mxfp4_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &mxfp4_layout);
}

void pith_pack_nvfp4_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &nvfp4_layout);
}

void pith_pack_q2_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q2_k_layout);
}

void pith_pack_q3_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q3_k_layout);
}

void pith_pack_iq1_s_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq1_s_layout);
}

void pith_pack_iq1_m_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq1_m_layout);
}

void pith_pack_iq2_xxs_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq2_xxs_layout);
}

void pith_pack_iq2_xs_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq2_xs_layout);
}

void pith_pack_iq2_s_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq2_s_layout);
}

void pith_pack_iq3_xxs_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq3_xxs_layout);
}

void pith_pack_iq3_s_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &iq3_s_layout);
}

void pith_pack_tq1_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &tq1_0_layout);
}

void pith_pack_tq2_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &tq2_0_layout);
}

void pith_pack_q1_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q1_0_layout);
}

void pith_pack_q2_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    pack(panel, rows, row_bytes, n_row, k, &q2_0_layout);
}

void pith_panel_decode_f32_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &f32_layout);
}

void pith_panel_decode_f16_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &f16_layout);
}

void pith_panel_decode_bf16_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &bf16_layout);
}

void pith_panel_decode_q4_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q4_0_layout);
}

void pith_panel_decode_q4_1_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q4_1_layout);
}

void pith_panel_decode_q5_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q5_0_layout);
}

void pith_panel_decode_q5_1_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q5_1_layout);
}

void pith_panel_decode_q8_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q8_0_layout);
}

void pith_panel_decode_q4_k_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q4_k_layout);
}

void pith_panel_decode_q5_k_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q5_k_layout);
}

void pith_panel_decode_q6_k_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q6_k_layout);
}

void pith_panel_decode_iq4_nl_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq4_nl_layout);
}

void pith_panel_decode_iq4_xs_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq4_xs_layout);
}

void pith_panel_decode_mxfp4_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &mxfp4_layout);
}

void pith_panel_decode_nvfp4_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &nvfp4_layout);
}

void pith_panel_decode_q2_k_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q2_k_layout);
}

void pith_panel_decode_q3_k_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q3_k_layout);
}

void pith_panel_decode_iq1_s_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq1_s_layout);
}

void pith_panel_decode_iq1_m_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq1_m_layout);
}

void pith_panel_decode_iq2_xxs_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq2_xxs_layout);
}

void pith_panel_decode_iq2_xs_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq2_xs_layout);
}

void pith_panel_decode_iq2_s_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq2_s_layout);
}

void pith_panel_decode_iq3_xxs_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq3_xxs_layout);
}

void pith_panel_decode_iq3_s_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &iq3_s_layout);
}

void pith_panel_decode_tq1_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &tq1_0_layout);
}

void pith_panel_decode_tq2_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &tq2_0_layout);
}

void pith_panel_decode_q1_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q1_0_layout);
}

void pith_panel_decode_q2_0_ref(const void *panel, uint32_t row, float *out, uint32_t k) {
    decode(panel, row, out, k, &q2_0_layout);
}
