/* SPDX-License-Identifier: Apache-2.0
 * Kernels: pure functions over memory, listed once in kernel_list.h, gathered in one table. The
 * plain C versions in ref/ are the definition; every tier gives the SAME BITS (ARCHITECTURE.md,
 * "The exact contract").
 *
 * How equal bits are possible: sums of integers are exact in any order; every float sum has one
 * written order (below); fused multiply-add everywhere it says fma (fmaf in ref); division, square
 * root and conversions are IEEE, round to nearest even; no flush to zero; exp is our own
 * polynomial (ref/scalar_math.h), the same operations in every tier.
 *
 * Panels. A weight [n_row, k] is kept as panels of 16 rows; the last is padded with zero bytes. A
 * panel is a sequence of blocks along k. Each type's panel block has exactly the bytes of 16 file
 * blocks, permuted (panel.h; drawn in docs/formats.md): the 16 scale fields side by side, then
 * codes in groups of 4 consecutive k of 16 rows = 64 bytes, so that one group is one VNNI operand
 * (or 4 consecutive bytes of whatever else the block holds). Float types: [k][16].
 *
 * No threads, allocation, logging or files here. Pointers never alias unless a comment allows it.
 * Rows that a kernel writes have room for 16 * n_panel floats. k is a multiple of the type's
 * block. Each operation has a function type, pith_<shape>_kernel, whose comment is the contract;
 * kernels are declared by it (ref/ref.h, x86/x86.h, arm/arm.h). Read next: table.c (who fills the
 * table), ref/mul_integer_ref.c. */
#ifndef PITH_KERNEL_KERNEL_H
#define PITH_KERNEL_KERNEL_H

#include "base/status.h"
#include "cpu/cpu.h"
#include "quant/quant.h"

enum { PITH_PANEL_ROWS = 16, PITH_GROUP = 32, PITH_PAGE_TOKENS = 64 };
enum { PITH_FAST_GROUP = 64, PITH_FAST_BLOCK = 256 }; /* the fast contract (pith_mul) */

/* Rows of activations in int8, one scale per group of 32 along k.
 * d = amax / 127 (0 when amax is 0 or 1 / d overflows), q = rint(x * (1 / d)) with the reciprocal
 * rounded once, clamped to [-127, 127]. A group that holds a NaN or an infinity has d = NaN and
 * q = 0. For the fast contract: the same in groups of 64, k a multiple of 64; k/64 of d and of sum
 * are used, none of sum16. */
typedef struct pith_q8 {
    int8_t *q;    /* [n, q_stride], 64-byte aligned rows; k padded with zeros to a multiple of 64 */
    float *d;     /* [n, d_stride], k/32 used */
    int32_t *sum; /* [n, d_stride], sum of the 32 q of a group */
    int16_t *sum16;  /* [n, 2 * d_stride], sums of 16 q */
    size_t q_stride; /* elements = bytes */
    size_t d_stride; /* elements */
} pith_q8;

/* y[t][16 p + r] = sum over k of w[16 p + r][k] x[t][k], for panels p and rows (tokens) t.
 *
 * Integer types (x is q8). Per row, token and group of 32 k: p = sum over sub-blocks of (integer
 * sub-scale * integer dot), exact, below 2^24. R(..) is one rounding; all chains start at +0 and
 * go on in increasing k:
 *   Q4_0 Q5_0 Q8_0 IQ4_NL MXFP4 Q1_0 Q2_0
 *                    acc = fma(p, R(d_w * d_x), acc);  y = acc
 *   Q4_1 Q5_1        the same, and acc_m = fma(m_w, R(d_x * sum), acc_m);  y = acc + acc_m
 *   Q3_K Q6_K IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_XS TQ1_0 TQ2_0
 *                    per super-block of 256: s = fma(p, d_x, s) from +0 over its 8 groups,
 *                    then acc = fma(s, d_w, acc);  y = acc
 *   Q4_K Q5_K        the same, and per super-block u = fma(m, R(d_x * sum), u) from +0 over its
 *                    groups (m: 6-bit minimum), then acc_m = fma(u, dmin_w, acc_m);
 *                    y = acc - acc_m
 *   Q2_K             the same, but u = fma(m_0 * sum16_0 + m_1 * sum16_1, d_x, u), the sum exact
 *   NVFP4            per group: p = fma(dot_1, d_w1, R(dot_0 * d_w0)), dots of 16 k,
 *                    then acc = fma(p, d_x, acc);  y = acc
 * Codes and scales are whole numbers: the power of two of a fraction goes to d_w, where it costs
 * no bit (IQ1, IQ2: d / 8; IQ3_XXS: d / 4; ref/mul_expanded_ref.c).
 * (Why not a product of scales per group for K types too: docs/decisions/0010-k-type-sums.md.)
 *
 * Float types (x is f32): four chains, chain c takes k % 4 == c in increasing k by fma;
 * y = (c0 + c1) + (c2 + c3).
 *
 * NaN and infinity in x reach y as NaN (their payload may differ between tiers).
 *
 * mul_fast, the fast contract, for types in blocks of 256 k: x is q8 in groups of 64, and each
 * row's block is requantized first, to codes under one scale, so that no scale within a block is
 * left. The bits too are the same on all tiers, for any n. Values are S * code + B, for 16 k each:
 *   S = R(d * scale), B = -R(dmin * minimum), 0 without minima; code_max: ref/mul_*_ref.c
 *   amax = the largest of all |B| and |fma(S, code_max, B)|; s, i: scale and reciprocal of amax by
 *   the rule of pith_q8;  f = rint(R(S * 256 i)), b = rint(R(B * 256 i))
 *   w = floor((code * f + b) / 256 + 1/2), in [-127, 127]
 *   u = fma(dot of 64, d_x, u) from +0 over the block's 4 groups;  y = fma(u, s, y) from +0 */
typedef struct pith_mul {
    const void *w;      /* first panel */
    size_t panel_bytes; /* distance of panels */
    uint32_t n_panel;
    uint32_t k;        /* elements of a row, a multiple of the type's block */
    const pith_q8 *q8; /* integer types: n rows */
    const float *x;    /* float types: [n, x_stride] */
    size_t x_stride;   /* elements */
    uint32_t n;        /* rows of x; any number, the kernel tiles */
    float *y;          /* [n, y_stride]; 16 * n_panel of each row are written */
    size_t y_stride;   /* elements */
    /* With one or two rows (float weights: up to four) a kernel may ask for weights ahead of its
     * loop, which is faster on some machines and slower on others (backend/cpu/trial.h). Changes no
     * bit. */
    bool prefetch;
} pith_mul;
typedef void pith_mul_kernel(const pith_mul *args);

/* Rows of file blocks -> one panel. rows: the first row; row_bytes: distance of rows; n_row: 1..16
 * (missing rows become zero bytes); k: elements from the start of each row. */
typedef void pith_pack_kernel(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                              uint32_t k);
/* Decodes k elements of row `row` (0..15) of a panel to f32, exactly the values of
 * pith_type_info.decode. */
typedef void pith_panel_decode_kernel(const void *panel, uint32_t row, float *out, uint32_t k);

/* x [n, x_stride] -> q8 rows first_row.. of out. */
typedef void pith_quantize_kernel(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                                  const pith_q8 *out, uint32_t first_row);

/* 16 virtual lanes: lane l sums elements i % 16 == l in increasing i by fma (or add), then lanes
 * fold 8, 4, 2, 1: s[l] += s[l + 8], ...
 *   RMS     scale = 1 / sqrtf(sum / n + eps);  y = (x * scale) * w  (w NULL: no multiplication)
 *   Layer   mean by lanes, then centred squares by lanes;
 *           y = ((x - mean) * scale) * w + b  (fma for w, b)
 * y may be x. */
typedef struct pith_norm_args {
    const float *x;     /* [n] */
    float *y;           /* [n] */
    const float *w, *b; /* [n]; NULL: absent */
    uint32_t n;         /* elements normalised together */
    float eps;
} pith_norm_args;
typedef void pith_norm_kernel(const pith_norm_args *args);

/* y = act(gate) * up, elementwise; y may be gate.
 *   silu(x) = x / (1 + exp(-x))        relu2(x) = max(x, 0)^2
 *   gelu(x) = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3)  (tanh form); gelu_erf: erf */
typedef void pith_glu_kernel(float *y, const float *gate, const float *up, uint32_t n);
typedef void pith_unary_kernel(float *y, const float *x, uint32_t n);
/* y may be a or b. */
typedef void pith_binary_kernel(float *y, const float *a, const float *b, uint32_t n);
typedef void pith_scale_kernel(float *y, const float *x, float s, uint32_t n);

/* Rotates one head in place: pairs (x[2i], x[2i+1]) (NORM) or (x[i], x[i + n_rot/2]) (NEOX);
 * a' = fma(a, cos, -(b * sin)), b' = fma(a, sin, b * cos). table: [n_rot/2][2] cos, sin. */
typedef void pith_rope_kernel(float *x, const float *table, uint32_t n_rot);

/* One KV page of one KV head (drawn in docs/formats.md). K in 16-token panels:
 * [4][head_dim][16] (f32, f16) or int8 [4][head_dim/4][16][4] with one scale a token; V
 * token-major [64][head_dim_v], int8 with one scale a token. */
typedef struct pith_kv_page {
    const void *k, *v;
    const float *k_scale, *v_scale; /* [64], int8 only */
} pith_kv_page;

/* Attention of n query rows over one page: partial (m, l, o) per row.
 *   s_t   (q . k_t) * scale, then c * tanh(s_t / c) when softcap c > 0. Float KV: four chains over
 *         d as in pith_mul. int8: q quantized in groups of 32 by the caller,
 *         acc = fma((float)dot, d_q, acc) per group, then * k_scale
 *   m     max of s_t over the row's tokens [begin, end), NaN when none of them is a number above
 *         -inf; a zero is +0
 *   p_t   exp(s_t - m), 0 outside [begin, end)
 *   l     sum of p_t: 16 lanes over t (t % 16), folded
 *   o_d   from +0, for t = begin .. end - 1 in order: fma(p_t, v_td, o_d)  (int8: p_t * v_scale_t)
 * A row with begin >= end gives m = -inf, l = 0, o = 0. Slots outside [begin, end) may hold
 * anything. int8: head_dim is a multiple of 32. */
typedef struct pith_attend {
    pith_kv_page page;
    const float *q;    /* float KV: [n, q_stride], head_dim used */
    size_t q_stride;   /* elements */
    const pith_q8 *q8; /* int8 KV: rows first_q8 .. first_q8 + n - 1 */
    uint32_t first_q8;
    uint32_t n;                    /* query rows */
    const int32_t *begin, *end;    /* [n], tokens of this page that the row sees */
    uint32_t head_dim, head_dim_v; /* elements, any number (int8: head_dim as above) */
    float scale, softcap;
    float *m, *l;                /* [n] */
    float *o;                    /* [n, o_stride], head_dim_v of each row are written */
    size_t o_stride;             /* elements */
    const void *next_k, *next_v; /* of the page that comes next, to be prefetched; NULL: none */
} pith_attend;
typedef void pith_attend_kernel(const pith_attend *args);

/* Joins a page's partial (m, l, o) into the running (M, L, O):
 *   M' = max(M, m), a = exp(M - M'), b = exp(m - M')
 *   L = fma(l, b, L * a), O_d = fma(o_d, b, O_d * a)
 * A partial with m = -inf changes nothing; M = -inf is the empty start (the partial is copied). */
typedef void pith_merge_kernel(float *M, float *L, float *O, float m, float l, const float *o,
                               uint32_t head_dim_v);

/* One token of one KV head into a page at slot t (0..63). int8: head_dim is a multiple of 32. */
typedef struct pith_kv_put {
    void *k, *v;              /* the page */
    float *k_scale, *v_scale; /* [64], int8 only */
    uint32_t t;
    const float *k_row, *v_row; /* [head_dim], [head_dim_v] */
    uint32_t head_dim, head_dim_v;
} pith_kv_put;
typedef void pith_kv_put_kernel(const pith_kv_put *args);

typedef float pith_reduce_kernel(const float *x, uint32_t n);

/* Pointers to them. */
typedef pith_mul_kernel *pith_mul_fn;
typedef pith_pack_kernel *pith_pack_fn;
typedef pith_panel_decode_kernel *pith_panel_decode_fn;
typedef pith_quantize_kernel *pith_quantize_fn;
typedef pith_norm_kernel *pith_norm_fn;
typedef pith_glu_kernel *pith_glu_fn;
typedef pith_unary_kernel *pith_unary_fn;
typedef pith_binary_kernel *pith_binary_fn;
typedef pith_scale_kernel *pith_scale_fn;
typedef pith_rope_kernel *pith_rope_fn;
typedef pith_attend_kernel *pith_attend_fn;
typedef pith_merge_kernel *pith_merge_fn;
typedef pith_kv_put_kernel *pith_kv_put_fn;
typedef pith_reduce_kernel *pith_reduce_fn;

/* The table. Slots by type are indexed by pith_type; NULL where a type has no panel kernel (it
 * then runs through decode + mul[F32], see src/backend/cpu). */
typedef struct pith_kernels {
    pith_mul_fn mul[PITH_TYPE_COUNT];
    pith_mul_fn mul_fast[PITH_TYPE_COUNT];
    pith_pack_fn pack[PITH_TYPE_COUNT];
    pith_panel_decode_fn panel_decode[PITH_TYPE_COUNT];
    pith_quantize_fn quantize, quantize_fast;
    pith_norm_fn rms_norm, layer_norm;
    pith_glu_fn silu_mul, gelu_mul, gelu_erf_mul, relu2_mul;
    pith_unary_fn silu, gelu, gelu_erf, relu2;
    pith_binary_fn add, mul_elements;
    pith_scale_fn scale, softcap; /* softcap: y = s * tanh(x / s) */
    pith_rope_fn rope_norm, rope_neox;
    pith_attend_fn attend_f32, attend_f16, attend_i8;
    pith_merge_fn merge;
    pith_kv_put_fn kv_put_f32, kv_put_f16, kv_put_i8;
    pith_reduce_fn max; /* NaN ignored; -inf for n = 0 */
    pith_unary_fn exp;  /* y = pith_exp(x) */
    /* Types whose mul_fast is quicker than mul for many rows: a tier's kernel, not plain C. */
    bool fast_pays[PITH_TYPE_COUNT];
} pith_kernels;

/* Fills the table: reference first, then one ladder of tiers up to `features` (src/cpu/cpu.h). */
void pith_kernels_init(pith_kernels *kernels, uint32_t features);
/* Slot name and name of the function chosen for it, in list order; false past the end. Typed slots
 * without a kernel are left out. */
bool pith_kernels_name(uint32_t features, size_t index, const char **slot, const char **function);

/* Bytes of one panel of k elements; 0 for types without panels. */
size_t pith_panel_bytes(pith_type type, uint32_t k);
/* True when mul[type] takes q8 activations, false when it takes f32. */
bool pith_mul_takes_q8(pith_type type);

#endif
