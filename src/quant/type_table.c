/* SPDX-License-Identifier: Apache-2.0
 * The one table of tensor types: a row a type, indexed by its id in GGUF files. Everything else
 * that needs a size, a name or a codec asks this table. Invariant: ids that were removed or never
 * given have a zeroed row (name NULL) and are refused. It does not convert bytes (decode_*.c,
 * encode_*.c) nor judge them (validate.c). To add a type: a struct in block.h, codecs named in
 * codec.h, a row here, fields in validate.c, a picture in docs/formats.md, vectors in
 * tests/data/quant/. */
#include "quant/quant.h"

#include "base/memory.h"
#include "quant/block.h"
#include "quant/codec.h"

/* clang-format off */
/*   id                    name     elements a block, bytes,    quantized, weight, decode, encode */
static const pith_type_info types[PITH_TYPE_COUNT] = {
    [PITH_TYPE_F32]     = {"F32",     1, 4, false, true,  pith_decode_f32,  pith_encode_f32},
    [PITH_TYPE_F16]     = {"F16",     1, 2, false, true,  pith_decode_f16,  pith_encode_f16},
    [PITH_TYPE_BF16]    = {"BF16",    1, 2, false, true,  pith_decode_bf16, pith_encode_bf16},
    [PITH_TYPE_F64]     = {"F64",     1, 8, false, false, pith_decode_f64,  pith_encode_f64},
    [PITH_TYPE_I8]      = {"I8",      1, 1, false, false, pith_decode_i8,   pith_encode_i8},
    [PITH_TYPE_I16]     = {"I16",     1, 2, false, false, pith_decode_i16,  pith_encode_i16},
    [PITH_TYPE_I32]     = {"I32",     1, 4, false, false, pith_decode_i32,  pith_encode_i32},
    [PITH_TYPE_I64]     = {"I64",     1, 8, false, false, pith_decode_i64,  pith_encode_i64},

    [PITH_TYPE_Q4_0]    = {"Q4_0",    PITH_BLOCK_SMALL, sizeof(pith_block_q4_0),    true, true,
                           pith_decode_q4_0,    pith_encode_q4_0},
    [PITH_TYPE_Q4_1]    = {"Q4_1",    PITH_BLOCK_SMALL, sizeof(pith_block_q4_1),    true, true,
                           pith_decode_q4_1,    pith_encode_q4_1},
    [PITH_TYPE_Q5_0]    = {"Q5_0",    PITH_BLOCK_SMALL, sizeof(pith_block_q5_0),    true, true,
                           pith_decode_q5_0,    pith_encode_q5_0},
    [PITH_TYPE_Q5_1]    = {"Q5_1",    PITH_BLOCK_SMALL, sizeof(pith_block_q5_1),    true, true,
                           pith_decode_q5_1,    pith_encode_q5_1},
    [PITH_TYPE_Q8_0]    = {"Q8_0",    PITH_BLOCK_SMALL, sizeof(pith_block_q8_0),    true, true,
                           pith_decode_q8_0,    pith_encode_q8_0},
    [PITH_TYPE_Q8_1]    = {"Q8_1",    PITH_BLOCK_SMALL, sizeof(pith_block_q8_1),    true, false,
                           pith_decode_q8_1,    pith_encode_q8_1},

    [PITH_TYPE_Q2_K]    = {"Q2_K",    PITH_BLOCK_SUPER, sizeof(pith_block_q2_k),    true, true,
                           pith_decode_q2_k,    pith_encode_q2_k},
    [PITH_TYPE_Q3_K]    = {"Q3_K",    PITH_BLOCK_SUPER, sizeof(pith_block_q3_k),    true, true,
                           pith_decode_q3_k,    pith_encode_q3_k},
    [PITH_TYPE_Q4_K]    = {"Q4_K",    PITH_BLOCK_SUPER, sizeof(pith_block_q4_k),    true, true,
                           pith_decode_q4_k,    pith_encode_q4_k},
    [PITH_TYPE_Q5_K]    = {"Q5_K",    PITH_BLOCK_SUPER, sizeof(pith_block_q5_k),    true, true,
                           pith_decode_q5_k,    pith_encode_q5_k},
    [PITH_TYPE_Q6_K]    = {"Q6_K",    PITH_BLOCK_SUPER, sizeof(pith_block_q6_k),    true, true,
                           pith_decode_q6_k,    pith_encode_q6_k},
    [PITH_TYPE_Q8_K]    = {"Q8_K",    PITH_BLOCK_SUPER, sizeof(pith_block_q8_k),    true, false,
                           pith_decode_q8_k,    pith_encode_q8_k},

    [PITH_TYPE_IQ1_S]   = {"IQ1_S",   PITH_BLOCK_SUPER, sizeof(pith_block_iq1_s),   true, true,
                           pith_decode_iq1_s,   NULL},
    [PITH_TYPE_IQ1_M]   = {"IQ1_M",   PITH_BLOCK_SUPER, sizeof(pith_block_iq1_m),   true, true,
                           pith_decode_iq1_m,   NULL},
    [PITH_TYPE_IQ2_XXS] = {"IQ2_XXS", PITH_BLOCK_SUPER, sizeof(pith_block_iq2_xxs), true, true,
                           pith_decode_iq2_xxs, NULL},
    [PITH_TYPE_IQ2_XS]  = {"IQ2_XS",  PITH_BLOCK_SUPER, sizeof(pith_block_iq2_xs),  true, true,
                           pith_decode_iq2_xs,  NULL},
    [PITH_TYPE_IQ2_S]   = {"IQ2_S",   PITH_BLOCK_SUPER, sizeof(pith_block_iq2_s),   true, true,
                           pith_decode_iq2_s,   NULL},
    [PITH_TYPE_IQ3_XXS] = {"IQ3_XXS", PITH_BLOCK_SUPER, sizeof(pith_block_iq3_xxs), true, true,
                           pith_decode_iq3_xxs, NULL},
    [PITH_TYPE_IQ3_S]   = {"IQ3_S",   PITH_BLOCK_SUPER, sizeof(pith_block_iq3_s),   true, true,
                           pith_decode_iq3_s,   NULL},
    [PITH_TYPE_IQ4_NL]  = {"IQ4_NL",  PITH_BLOCK_SMALL, sizeof(pith_block_iq4_nl),  true, true,
                           pith_decode_iq4_nl,  pith_encode_iq4_nl},
    [PITH_TYPE_IQ4_XS]  = {"IQ4_XS",  PITH_BLOCK_SUPER, sizeof(pith_block_iq4_xs),  true, true,
                           pith_decode_iq4_xs,  pith_encode_iq4_xs},

    [PITH_TYPE_TQ1_0]   = {"TQ1_0",   PITH_BLOCK_SUPER, sizeof(pith_block_tq1_0),   true, true,
                           pith_decode_tq1_0,   pith_encode_tq1_0},
    [PITH_TYPE_TQ2_0]   = {"TQ2_0",   PITH_BLOCK_SUPER, sizeof(pith_block_tq2_0),   true, true,
                           pith_decode_tq2_0,   pith_encode_tq2_0},
    [PITH_TYPE_MXFP4]   = {"MXFP4",   PITH_BLOCK_SMALL, sizeof(pith_block_mxfp4),   true, true,
                           pith_decode_mxfp4,   pith_encode_mxfp4},
    [PITH_TYPE_NVFP4]   = {"NVFP4",   PITH_BLOCK_NVFP4, sizeof(pith_block_nvfp4),   true, true,
                           pith_decode_nvfp4,   pith_encode_nvfp4},
    [PITH_TYPE_Q1_0]    = {"Q1_0",    PITH_BLOCK_Q1_0,  sizeof(pith_block_q1_0),    true, true,
                           pith_decode_q1_0,    pith_encode_q1_0},
    [PITH_TYPE_Q2_0]    = {"Q2_0",    PITH_BLOCK_Q2_0,  sizeof(pith_block_q2_0),    true, true,
                           pith_decode_q2_0,    pith_encode_q2_0},
};
/* clang-format on */

const pith_type_info *pith_type_get(uint32_t id) {
    if (id >= PITH_TYPE_COUNT || types[id].name == NULL) return NULL;
    return &types[id];
}

/* ASCII only, so that the answer does not depend on the locale. */
static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool names_equal(const char *a, const char *b) {
    while (*a != '\0' && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

bool pith_type_find(const char *name, pith_type *out) {
    for (uint32_t id = 0; id < PITH_TYPE_COUNT; id++) {
        if (types[id].name == NULL || !names_equal(types[id].name, name)) continue;
        *out = (pith_type)id;
        return true;
    }
    return false;
}

bool pith_type_row_bytes(pith_type type, uint64_t ne0, uint64_t *bytes) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    if (info == NULL || ne0 % info->block_elems != 0) return false;
    return pith_u64_mul(ne0 / info->block_elems, info->block_bytes, bytes);
}
