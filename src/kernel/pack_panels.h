/* SPDX-License-Identifier: Apache-2.0
 * Packing: file blocks of 16 rows -> panel (layouts: panel.h; definition: ref/panel_ref.c). It runs
 * at load and, in mmap mode, before every product. One source for all tiers: the file that includes
 * this has included the code groups of its tier (pack_groups_avx2.h, ...) before; its kernels are
 * one call of pack() each.
 *
 * Codes become groups 16 bytes of a row at a time. Scale fields are words or bytes side by side;
 * they are taken from such groups too. Nothing is read outside the rows. k is a multiple of the
 * type's block (kernel.h); rows need no alignment. */
#ifndef PITH_KERNEL_PACK_PANELS_H
#define PITH_KERNEL_PACK_PANELS_H

#include "kernel/kernel_list.h"
#include "kernel/ref/ref.h"

/* 16 bytes at `offset` of every row -> 4 groups, stored `step` bytes apart. */
ALWAYS_INLINE void move_groups(uint8_t *out, size_t step, const rows16 *rows, size_t offset) {
    group16 group[4];
    load_groups(rows, offset, group);
    for (int g = 0; g < 4; g++) group_store(out + (size_t)g * step, group[g]);
}

ALWAYS_INLINE group16 load_dwords(const rows16 *rows, size_t offset) {
    uint32_t words[ROWS];
    move_dwords(words, rows, offset);
    return group_load(words);
}

/* Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: a 2-byte scale, a minimum where there is one, fifth bits where
 * there are, codes. */
ALWAYS_INLINE void pack_small(uint8_t *out, const void *rows, size_t stride, uint32_t k,
                              size_t block_bytes, const pith_type type) {
    rows16 at = {rows, stride};
    const bool has_minimum = type == PITH_TYPE_Q4_1 || type == PITH_TYPE_Q5_1;
    const bool has_fifth_bits = type == PITH_TYPE_Q5_0 || type == PITH_TYPE_Q5_1;
    for (uint32_t b = 0; b < k / 32; b++, out += ROWS * block_bytes, at.first += block_bytes) {
        uint8_t *codes = out + 32;
        size_t offset = 2;
        if (b % 2 == 0) prefetch_rows(&at, 1);
        if (has_minimum) {
            store_words_apart(out, load_dwords(&at, 0));
            codes += 32;
            offset += 2;
        } else {
            move_words((uint16_t *)(void *)out, &at, 0);
        }
        if (has_fifth_bits) {
            group_store(codes, spread_bits(load_dwords(&at, offset)));
            codes += 64;
            offset += 4;
        }
        move_groups(codes, 64, &at, offset);
        if (type == PITH_TYPE_Q8_0) move_groups(codes + 256, 64, &at, offset + 16);
    }
}

/* Q4_K, Q5_K: 16 bytes of d, dmin, scales, then n_part * 16 bytes that become code groups in
 * order. */
ALWAYS_INLINE void pack_super(uint8_t *out, const void *rows, size_t stride, uint32_t k,
                              size_t n_part) {
    rows16 at = {rows, stride};
    const size_t block_bytes = 16 + 16 * n_part;
    for (uint32_t b = 0; b < k / 256; b++, at.first += block_bytes) {
        group16 head[4];
        prefetch_rows(&at, block_bytes);
        load_groups(&at, 0, head);
        store_words_apart(out, head[0]);
        for (int i = 0; i < 3; i++) store_bytes_apart(out + 64 + 64 * i, head[i + 1]);
        out += 256;
        for (size_t i = 0; i < n_part; i++, out += 256) move_groups(out, 64, &at, 16 + 16 * i);
    }
}

ALWAYS_INLINE void pack_q6_k(pith_panel_q6_k *out, const void *rows, size_t stride, uint32_t k) {
    enum { LOW = 0, HIGH = 128, SCALES = 192, D = 208, BLOCK = 210 };
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / 256; b++, out++, at.first += BLOCK) {
        group16 scales[4];
        prefetch_rows(&at, BLOCK);
        move_words(out->d, &at, D);
        load_groups(&at, SCALES, scales);
        for (int i = 0; i < 4; i++) store_bytes_apart(out->scales[4 * i], scales[i]);
        for (size_t f = 0; f < 2; f++)
            for (size_t g = 0; g < 8; g += 4) {
                pith_panel_q6_k_part *part = &out->part[f][g];
                move_groups(part->low[0], sizeof *part, &at, LOW + 64 * f + 4 * g);
                move_groups(part->low[1], sizeof *part, &at, LOW + 64 * f + 32 + 4 * g);
                move_groups(part->high, sizeof *part, &at, HIGH + 32 * f + 4 * g);
            }
    }
}

/* Types whose panels keep the fields of a block in units of 4 bytes (panel.h): words of scales in
 * front of the units or behind them in the file, always in front in the panel. */
typedef struct unit_block {
    uint32_t elems, n_word, n_unit;
    bool words_last;
} unit_block;

ALWAYS_INLINE unit_block unit_block_of(const pith_type type) {
    switch (type) {
    case PITH_TYPE_IQ4_NL: return (unit_block){32, 1, 4, false};
    case PITH_TYPE_IQ4_XS: return (unit_block){256, 2, 33, false};
    case PITH_TYPE_NVFP4: return (unit_block){64, 0, 9, false};
    case PITH_TYPE_Q2_K: return (unit_block){256, 2, 20, true};
    case PITH_TYPE_IQ1_S: return (unit_block){256, 1, 12, false};
    case PITH_TYPE_IQ1_M: return (unit_block){256, 0, 14, false};
    case PITH_TYPE_IQ2_XXS: return (unit_block){256, 1, 16, false};
    case PITH_TYPE_IQ2_XS: return (unit_block){256, 1, 18, false};
    case PITH_TYPE_IQ2_S: return (unit_block){256, 1, 20, false};
    case PITH_TYPE_IQ3_XXS: return (unit_block){256, 1, 24, false};
    case PITH_TYPE_IQ3_S: return (unit_block){256, 1, 27, false};
    case PITH_TYPE_TQ1_0: return (unit_block){256, 1, 13, true};
    case PITH_TYPE_TQ2_0: return (unit_block){256, 1, 16, true};
    case PITH_TYPE_Q1_0: return (unit_block){128, 1, 4, false};
    case PITH_TYPE_Q2_0: return (unit_block){64, 1, 4, false};
    default: return (unit_block){0};
    }
}

ALWAYS_INLINE void pack_units(uint8_t *out, const void *rows, size_t stride, uint32_t k,
                              const pith_type type) {
    const unit_block t = unit_block_of(type);
    const size_t words_bytes = 2 * t.n_word, units_bytes = 4 * t.n_unit,
                 block_bytes = words_bytes + units_bytes;
    const size_t words = t.words_last ? units_bytes : 0, units = t.words_last ? 0 : words_bytes;
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / t.elems; b++, at.first += block_bytes) {
        if (block_bytes > 32 || b % 2 == 0) prefetch_rows(&at, block_bytes);
        for (size_t i = 0; i < t.n_word; i++, out += 32)
            move_words((uint16_t *)(void *)out, &at, words + 2 * i);
        for (size_t i = 0; i < t.n_unit / 4; i++, out += 256)
            move_groups(out, 64, &at, units + 16 * i);
        for (size_t i = t.n_unit / 4 * 4; i < t.n_unit; i++, out += 64)
            group_store(out, load_dwords(&at, units + 4 * i));
    }
}

ALWAYS_INLINE void pack_q3_k(pith_panel_q3_k *out, const void *rows, size_t stride, uint32_t k) {
    enum { H = 0, CODES = 32, SCALES = 96, D = 108, BLOCK = 110 };
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / 256; b++, out++, at.first += BLOCK) {
        prefetch_rows(&at, BLOCK);
        move_words(out->d, &at, D);
        for (size_t i = 0; i < 3; i++)
            group_store(out->scales[i], load_dwords(&at, SCALES + 4 * i));
        for (size_t g = 0; g < 8; g += 4) {
            pith_panel_q3_k_part *part = &out->part[g];
            move_groups(part->h, sizeof *part, &at, H + 4 * g);
            move_groups(part->q[0], sizeof *part, &at, CODES + 4 * g);
            move_groups(part->q[1], sizeof *part, &at, CODES + 32 + 4 * g);
        }
    }
}

ALWAYS_INLINE void pack_mxfp4(uint8_t *out, const void *rows, size_t stride, uint32_t k) {
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / 32; b++, at.first += 17, out += 272) {
        if (b % 2 == 0) prefetch_rows(&at, 1);
        for (size_t r = 0; r < ROWS; r++) out[r] = at.first[r * stride];
        move_groups(out + 16, 64, &at, 1);
    }
}

/* A group holds one k. Returns how many k are done: the rest is the plain kernel's. */
ALWAYS_INLINE uint32_t pack_f32(uint8_t *out, const void *rows, size_t stride, uint32_t k) {
    rows16 at = {rows, stride};
    uint32_t whole = k / 4 * 4;
    for (uint32_t i = 0; i < whole; i += 4, at.first += 16, out += 256) {
        if (i % 16 == 0) prefetch_rows(&at, 1);
        move_groups(out, 64, &at, 0);
    }
    return whole;
}

/* 2-byte floats: a group holds two k. Returns how many k are done. */
ALWAYS_INLINE uint32_t pack_half(uint8_t *out, const void *rows, size_t stride, uint32_t k) {
    rows16 at = {rows, stride};
    uint32_t whole = k / 8 * 8;
    for (uint32_t i = 0; i < whole; i += 8, at.first += 16) {
        group16 group[4];
        if (i % 32 == 0) prefetch_rows(&at, 1);
        load_groups(&at, 0, group);
        for (int g = 0; g < 4; g++, out += 64) store_words_apart(out, group[g]);
    }
    return whole;
}

/* The first k of 16 whole rows; returns how many. */
ALWAYS_INLINE uint32_t pack_whole(void *panel, const void *rows, size_t stride, uint32_t k,
                                  const pith_type type) {
    switch (type) {
    case PITH_TYPE_F32: return pack_f32(panel, rows, stride, k);
    case PITH_TYPE_F16:
    case PITH_TYPE_BF16: return pack_half(panel, rows, stride, k);
    case PITH_TYPE_Q4_0: pack_small(panel, rows, stride, k, 18, type); break;
    case PITH_TYPE_Q4_1: pack_small(panel, rows, stride, k, 20, type); break;
    case PITH_TYPE_Q5_0: pack_small(panel, rows, stride, k, 22, type); break;
    case PITH_TYPE_Q5_1: pack_small(panel, rows, stride, k, 24, type); break;
    case PITH_TYPE_Q8_0: pack_small(panel, rows, stride, k, 34, type); break;
    case PITH_TYPE_Q4_K: pack_super(panel, rows, stride, k, 8); break;
    case PITH_TYPE_Q5_K: pack_super(panel, rows, stride, k, 10); break;
    case PITH_TYPE_Q6_K: pack_q6_k(panel, rows, stride, k); break;
    case PITH_TYPE_Q3_K: pack_q3_k(panel, rows, stride, k); break;
    case PITH_TYPE_MXFP4: pack_mxfp4(panel, rows, stride, k); break;
    default: pack_units(panel, rows, stride, k, type); break;
    }
    return k;
}

/* The kernel of the reference. */
ALWAYS_INLINE pith_pack_fn plain_pack(const pith_type type) {
    switch (type) {
#define CASE(op, TYPE, name)                                                                       \
    case PITH_TYPE_##TYPE: return pith_##op##_##name##_ref;
        PITH_PANEL_TYPES(CASE, pack)
#undef CASE
    default: return NULL;
    }
}

/* The body of every kernel, with its type as a constant. What pack_whole leaves, a panel with
 * missing rows or the last k of a float type, goes the plain way. */
ALWAYS_INLINE void pack(void *panel, const void *rows, size_t row_bytes, uint32_t n_row, uint32_t k,
                        const pith_type type) {
    const size_t k_bytes = type == PITH_TYPE_F32 ? 4 : 2; /* block types: done is 0 or k */
    uint32_t done = n_row == ROWS ? pack_whole(panel, rows, row_bytes, k, type) : 0;
    if (done < k)
        plain_pack(type)((uint8_t *)panel + done * k_bytes * ROWS,
                         (const uint8_t *)rows + done * k_bytes, row_bytes, n_row, k - done);
}

#endif
