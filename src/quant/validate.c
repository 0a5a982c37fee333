/* SPDX-License-Identifier: Apache-2.0
 * Finds the first block of a row that no honest encoder writes: a scalar or a scale that is inf
 * or NaN, or the reserved scale byte 0xFF of MXFP4. Integers and NVFP4 scales (every byte has a
 * finite meaning) always pass. Codes and indexes need no check: every pattern decodes.
 * Invariant: reads exactly the whole blocks of n elements. A row that passes decodes to finite
 * numbers, except where a finite scale times its codes leaves the range of f32 (F64, Q8_K,
 * MXFP4). It does not check that n is a whole number of blocks: pith_type_row_bytes does. */
#include "quant/block.h"
#include "quant/quant.h"

#define NO_FIELD (-1)

/* Byte offsets of the f16 fields of a block that must be finite. */
typedef struct f16_fields {
    bool used;
    int16_t first, second; /* second may be NO_FIELD */
} f16_fields;

/* clang-format off */
#define AT(block, field) (int16_t)offsetof(block, field)
static const f16_fields fields[PITH_TYPE_COUNT] = {
    [PITH_TYPE_Q4_0]    = {true, AT(pith_block_q4_0, d),    NO_FIELD},
    [PITH_TYPE_Q4_1]    = {true, AT(pith_block_q4_1, d),    AT(pith_block_q4_1, m)},
    [PITH_TYPE_Q5_0]    = {true, AT(pith_block_q5_0, d),    NO_FIELD},
    [PITH_TYPE_Q5_1]    = {true, AT(pith_block_q5_1, d),    AT(pith_block_q5_1, m)},
    [PITH_TYPE_Q8_0]    = {true, AT(pith_block_q8_0, d),    NO_FIELD},
    [PITH_TYPE_Q8_1]    = {true, AT(pith_block_q8_1, d),    AT(pith_block_q8_1, s)},
    [PITH_TYPE_Q2_K]    = {true, AT(pith_block_q2_k, d),    AT(pith_block_q2_k, dmin)},
    [PITH_TYPE_Q3_K]    = {true, AT(pith_block_q3_k, d),    NO_FIELD},
    [PITH_TYPE_Q4_K]    = {true, AT(pith_block_q4_k, d),    AT(pith_block_q4_k, dmin)},
    [PITH_TYPE_Q5_K]    = {true, AT(pith_block_q5_k, d),    AT(pith_block_q5_k, dmin)},
    [PITH_TYPE_Q6_K]    = {true, AT(pith_block_q6_k, d),    NO_FIELD},
    [PITH_TYPE_IQ1_S]   = {true, AT(pith_block_iq1_s, d),   NO_FIELD},
    [PITH_TYPE_IQ2_XXS] = {true, AT(pith_block_iq2_xxs, d), NO_FIELD},
    [PITH_TYPE_IQ2_XS]  = {true, AT(pith_block_iq2_xs, d),  NO_FIELD},
    [PITH_TYPE_IQ2_S]   = {true, AT(pith_block_iq2_s, d),   NO_FIELD},
    [PITH_TYPE_IQ3_XXS] = {true, AT(pith_block_iq3_xxs, d), NO_FIELD},
    [PITH_TYPE_IQ3_S]   = {true, AT(pith_block_iq3_s, d),   NO_FIELD},
    [PITH_TYPE_IQ4_NL]  = {true, AT(pith_block_iq4_nl, d),  NO_FIELD},
    [PITH_TYPE_IQ4_XS]  = {true, AT(pith_block_iq4_xs, d),  NO_FIELD},
    [PITH_TYPE_TQ1_0]   = {true, AT(pith_block_tq1_0, d),   NO_FIELD},
    [PITH_TYPE_TQ2_0]   = {true, AT(pith_block_tq2_0, d),   NO_FIELD},
    [PITH_TYPE_Q1_0]    = {true, AT(pith_block_q1_0, d),    NO_FIELD},
    [PITH_TYPE_Q2_0]    = {true, AT(pith_block_q2_0, d),    NO_FIELD},
};
#undef AT
/* clang-format on */

static bool f16_finite(const uint8_t *p) {
    return (pith_load_u16(p) & 0x7C00u) != 0x7C00u;
}

/* The scalars a[0..n) of one kind: index of the first that is not finite, or n. One branch a chunk:
 * the inner loops have none, so that they run at the speed of memory. */
enum { CHUNK = 64 };

static size_t first_bad_u16(const uint8_t *p, size_t n, uint32_t mask) {
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t end = n - i < CHUNK ? n : i + CHUNK;
        uint32_t bad = 0;
        for (size_t k = i; k < end; k++) bad |= (pith_load_u16(p + 2 * k) & mask) == mask;
        for (size_t k = i; bad && k < end; k++) {
            if ((pith_load_u16(p + 2 * k) & mask) == mask) return k;
        }
    }
    return n;
}

static size_t first_bad_u32(const uint8_t *p, size_t n) {
    const uint32_t mask = 0x7F800000u;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t end = n - i < CHUNK ? n : i + CHUNK;
        uint32_t bad = 0;
        for (size_t k = i; k < end; k++) bad |= (pith_load_u32(p + 4 * k) & mask) == mask;
        for (size_t k = i; bad && k < end; k++) {
            if ((pith_load_u32(p + 4 * k) & mask) == mask) return k;
        }
    }
    return n;
}

static size_t first_bad_u64(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if ((pith_load_u64(p + 8 * i) >> 52 & 0x7FFu) == 0x7FFu) return i;
    }
    return n;
}

/* Blocks with one or two f16 scales. */
static size_t first_bad_scales(const uint8_t *p, size_t blocks, size_t step, f16_fields f) {
    int second = f.second == NO_FIELD ? f.first : f.second;
    for (size_t i = 0; i < blocks; i++, p += step) {
        if (!f16_finite(p + f.first) || !f16_finite(p + second)) return i;
    }
    return blocks;
}

static size_t first_bad_q8_k(const pith_block_q8_k *b, size_t blocks) {
    for (size_t i = 0; i < blocks; i++) {
        if ((pith_load_u32(b[i].d) & 0x7F800000u) == 0x7F800000u) return i;
    }
    return blocks;
}

static size_t first_bad_mxfp4(const pith_block_mxfp4 *b, size_t blocks) {
    for (size_t i = 0; i < blocks; i++) {
        if (b[i].e == 0xFF) return i;
    }
    return blocks;
}

static size_t first_bad_iq1_m(const pith_block_iq1_m *b, size_t blocks) {
    for (size_t i = 0; i < blocks; i++) {
        if ((pith_iq1_m_scale(b[i].scales) & 0x7C00u) == 0x7C00u) return i;
    }
    return blocks;
}

static size_t first_bad(pith_type type, const void *src, size_t blocks, size_t step) {
    switch (type) {
    case PITH_TYPE_F16: return first_bad_u16(src, blocks, 0x7C00u);
    case PITH_TYPE_BF16: return first_bad_u16(src, blocks, 0x7F80u);
    case PITH_TYPE_F32: return first_bad_u32(src, blocks);
    case PITH_TYPE_F64: return first_bad_u64(src, blocks);
    case PITH_TYPE_Q8_K: return first_bad_q8_k(src, blocks);
    case PITH_TYPE_MXFP4: return first_bad_mxfp4(src, blocks);
    case PITH_TYPE_IQ1_M: return first_bad_iq1_m(src, blocks);
    default: return fields[type].used ? first_bad_scales(src, blocks, step, fields[type]) : blocks;
    }
}

int64_t pith_type_validate(pith_type type, const void *src, size_t n) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    if (info == NULL) return 0; /* no bytes of an unknown type are valid */
    size_t blocks = n / info->block_elems, found = first_bad(type, src, blocks, info->block_bytes);
    return found < blocks ? (int64_t)found : -1;
}
