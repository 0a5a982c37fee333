/* SPDX-License-Identifier: Apache-2.0
 * AVX-VNNI products in the fast contract (mul_fast: pith_mul in kernel.h; the definition:
 * ref/mul_fast_ref.c).
 *
 * 256 k of one panel are unpacked as for the exact contract, then requantized in place
 * (requantize_256.h); up to PASS tokens meet them in tiles of 6. What follows products is two
 * float operations every 64 k, whose sums start at -128 * (sum of x).
 * Registers: 12 sums, a code of 16 rows, an activation. The chains u lie in memory, where they are
 * touched once in 64 k. Read next: mul_fast_avx512.c. */
#include "kernel/x86/dot_avxvnni.h"

#include "kernel/x86/planes_256.h"
#include "kernel/x86/requantize_256.h"
#include "kernel/x86/x86.h"

enum { PASS = 192, FAST_TILE = 6, SUMS = PITH_FAST_BLOCK / PITH_FAST_GROUP };

/* Where 256 k of a tile's tokens are: rows of codes, scales, sums. */
typedef struct tile_block {
    const int8_t *x;
    const float *d;
    const int32_t *sum;
    size_t q_stride, d_stride;
} tile_block;

/* Tokens from t0 on at block `block` of k. */
static tile_block block_at(const pith_q8 *q8, size_t t0, size_t block) {
    size_t at = t0 * q8->d_stride + SUMS * block;
    return (tile_block){q8->q + t0 * q8->q_stride + PITH_FAST_BLOCK * block, q8->d + at,
                        q8->sum + at, q8->q_stride, q8->d_stride};
}

/* u += dots of group i of 64 k. */
ALWAYS_INLINE void group(float (*u)[16], const expanded *w, const tile_block *at, int i,
                         const int T) {
    const uint8_t(*code)[64] = w->code[2 * i];
    const int8_t *row[FAST_TILE];
    lanes16 sum[FAST_TILE];
    UNROLL for (int t = 0; t < T; t++) {
        row[t] = at->x + (size_t)t * at->q_stride + (size_t)i * PITH_FAST_GROUP;
        __asm__("" : "+r"(row[t])); /* kept, instead of computing addresses for every load */
        sum[t] = lanes_set(-128 * at->sum[(size_t)t * at->d_stride + (size_t)i]);
    }
    UNROLL for (int g = 0; g < PITH_FAST_GROUP / 4; g++) {
        lanes16 v = lanes_load(code[g]);
        UNROLL for (int t = 0; t < T; t++) {
            dot_step(&sum[t], v, broadcast4(row[t] + 4 * g));
        }
        stored();
    }
    UNROLL for (int t = 0; t < T; t++) {
        ps_fma_store(u[t], ps_of(sum[t]), ps_all(at->d[(size_t)t * at->d_stride + (size_t)i]));
    }
}

/* T tokens with 256 k. */
ALWAYS_INLINE void tile(const tile_block *at, const expanded *w, float (*acc)[16], const int T) {
    float u[FAST_TILE][16];
    float(*to)[16] = u;
    __asm__("" : "+r"(to)); /* in memory, or gcc would keep u in registers and spill others */
    memset(to, 0, sizeof u);
    for (int i = 0; i < SUMS; i++) group(to, w, at, i, T);
    UNROLL for (int t = 0; t < T; t++) {
        ps_fma_store(acc[t], ps_load(to[t]), ps_load(w->f.d[0]));
    }
}

static void tiles(const pith_q8 *q8, const expanded *w, float (*acc)[16], size_t t0,
                  uint32_t tokens, size_t block) {
    tile_block at = block_at(q8, t0, block);
    uint32_t t = 0;
    for (; t + FAST_TILE <= tokens; t += FAST_TILE) {
        tile(&at, w, acc + t, FAST_TILE);
        at = block_at(q8, t0 + t + FAST_TILE, block);
    }
    for (; t + 2 <= tokens; t += 2) {
        tile(&at, w, acc + t, 2);
        at = block_at(q8, t0 + t + 2, block);
    }
    if (t < tokens) tile(&at, w, acc + t, 1);
}

/* 256 k of a panel, requantized. */
ALWAYS_INLINE void codes_read(expanded *w, const uint8_t *panel, const pith_type type) {
    const expansion how = expansion_of(type);
    if (how.expand) {
        how.expand(w, panel, GROUPS);
    } else {
        factors_read(&w->f, panel, GROUPS, type);
        unpack(w->code[0][0], panel, GROUPS, type);
    }
    stored();
    requantize(w, type);
}

ALWAYS_INLINE size_t super_bytes(const pith_type type) {
    const expansion how = expansion_of(type);
    return how.expand ? how.chunk_bytes : chunk_bytes(type);
}

/* Up to PASS tokens from t0 with one panel. */
ALWAYS_INLINE void pass(const pith_mul *args, const uint8_t *panel, float *y, size_t t0,
                        uint32_t tokens, const pith_type type) {
    _Alignas(64) expanded w;
    _Alignas(64) float acc[PASS][16];
    memset(acc, 0, tokens * sizeof acc[0]);
    for (uint32_t b = 0; b < args->k / PITH_FAST_BLOCK; b++, panel += super_bytes(type)) {
        codes_read(&w, panel, type);
        for (size_t i = 0; i < super_bytes(type); i += 64)
            _mm_prefetch((const char *)panel + super_bytes(type) + i, _MM_HINT_T1);
        tiles(args->q8, &w, acc, t0, tokens, b);
    }
    for (uint32_t t = 0; t < tokens; t++) ps_store(y + t * args->y_stride, ps_load(acc[t]));
}

ALWAYS_INLINE void mul_fast(const pith_mul *args, const pith_type type) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t tokens = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p++) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            pass(args, panel, args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p, t, tokens,
                 type);
        }
    }
}

void pith_mul_fast_q4_k_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q4_K);
}
void pith_mul_fast_q5_k_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q5_K);
}
void pith_mul_fast_q6_k_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q6_K);
}
void pith_mul_fast_iq4_xs_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ4_XS);
}
void pith_mul_fast_q2_k_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q2_K);
}
void pith_mul_fast_q3_k_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q3_K);
}
void pith_mul_fast_iq1_s_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ1_S);
}
void pith_mul_fast_iq1_m_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ1_M);
}
void pith_mul_fast_iq2_xxs_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ2_XXS);
}
void pith_mul_fast_iq2_xs_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ2_XS);
}
void pith_mul_fast_iq2_s_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ2_S);
}
void pith_mul_fast_iq3_xxs_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ3_XXS);
}
void pith_mul_fast_iq3_s_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ3_S);
}
void pith_mul_fast_tq1_0_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_TQ1_0);
}
void pith_mul_fast_tq2_0_avxvnni(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_TQ2_0);
}
