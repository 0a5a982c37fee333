/* SPDX-License-Identifier: Apache-2.0
 * Every slot of the kernel table, once.
 *   TYPED(op, TYPE, type)   slot op[PITH_TYPE_<TYPE>], function pith_<op>_<type>_<tier>
 *   PLAIN(op)               slot op, function pith_<op>_<tier>
 * The reference table, the names, the kernel check and its benchmarks are made from this list; so a
 * kernel that is not here cannot be called, and one that is here cannot go unchecked. A new kernel:
 * one line here, its ref function, its line in the ladder of table.c. */
#ifndef PITH_KERNEL_KERNEL_LIST_H
#define PITH_KERNEL_KERNEL_LIST_H

/* clang-format off */
/* Types that have panels. */
#define PITH_PANEL_TYPES(TYPED, op)\
    TYPED(op, F32, f32)            \
    TYPED(op, F16, f16)            \
    TYPED(op, BF16, bf16)          \
    TYPED(op, Q4_0, q4_0)          \
    TYPED(op, Q4_1, q4_1)          \
    TYPED(op, Q5_0, q5_0)          \
    TYPED(op, Q5_1, q5_1)          \
    TYPED(op, Q8_0, q8_0)          \
    TYPED(op, Q4_K, q4_k)          \
    TYPED(op, Q5_K, q5_k)          \
    TYPED(op, Q6_K, q6_k)          \
    TYPED(op, IQ4_NL, iq4_nl)      \
    TYPED(op, IQ4_XS, iq4_xs)      \
    TYPED(op, MXFP4, mxfp4)        \
    TYPED(op, NVFP4, nvfp4)        \
    TYPED(op, Q2_K, q2_k)          \
    TYPED(op, Q3_K, q3_k)          \
    TYPED(op, IQ1_S, iq1_s)        \
    TYPED(op, IQ1_M, iq1_m)        \
    TYPED(op, IQ2_XXS, iq2_xxs)    \
    TYPED(op, IQ2_XS, iq2_xs)      \
    TYPED(op, IQ2_S, iq2_s)        \
    TYPED(op, IQ3_XXS, iq3_xxs)    \
    TYPED(op, IQ3_S, iq3_s)        \
    TYPED(op, TQ1_0, tq1_0)        \
    TYPED(op, TQ2_0, tq2_0)        \
    TYPED(op, Q1_0, q1_0)          \
    TYPED(op, Q2_0, q2_0)

/* Types in blocks of 256 k: they have products in the fast contract. */
#define PITH_FAST_TYPES(TYPED, op) \
    TYPED(op, Q4_K, q4_k) \
    TYPED(op, Q5_K, q5_k) \
    TYPED(op, Q6_K, q6_k) \
    TYPED(op, IQ4_XS, iq4_xs) \
    TYPED(op, Q2_K, q2_k) \
    TYPED(op, Q3_K, q3_k) \
    TYPED(op, IQ1_S, iq1_s) \
    TYPED(op, IQ1_M, iq1_m) \
    TYPED(op, IQ2_XXS, iq2_xxs) \
    TYPED(op, IQ2_XS, iq2_xs) \
    TYPED(op, IQ2_S, iq2_s) \
    TYPED(op, IQ3_XXS, iq3_xxs) \
    TYPED(op, IQ3_S, iq3_s) \
    TYPED(op, TQ1_0, tq1_0) \
    TYPED(op, TQ2_0, tq2_0)

#define PITH_KERNEL_LIST(TYPED, PLAIN)  \
    PITH_PANEL_TYPES(TYPED, mul)          \
    PITH_FAST_TYPES(TYPED, mul_fast)      \
    PITH_PANEL_TYPES(TYPED, pack)         \
    PITH_PANEL_TYPES(TYPED, panel_decode) \
    PLAIN(quantize)                       \
    PLAIN(quantize_fast)                  \
    PLAIN(rms_norm)                       \
    PLAIN(layer_norm)                     \
    PLAIN(silu_mul)                       \
    PLAIN(gelu_mul)                       \
    PLAIN(gelu_erf_mul)                   \
    PLAIN(relu2_mul)                      \
    PLAIN(silu)                           \
    PLAIN(gelu)                           \
    PLAIN(gelu_erf)                       \
    PLAIN(relu2)                          \
    PLAIN(add)                            \
    PLAIN(mul_elements)                   \
    PLAIN(scale)                          \
    PLAIN(softcap)                        \
    PLAIN(rope_norm)                      \
    PLAIN(rope_neox)                      \
    PLAIN(attend_f32)                     \
    PLAIN(attend_f16)                     \
    PLAIN(attend_i8)                      \
    PLAIN(merge)                          \
    PLAIN(kv_put_f32)                     \
    PLAIN(kv_put_f16)                     \
    PLAIN(kv_put_i8)                      \
    PLAIN(max)                            \
    PLAIN(exp)
/* clang-format on */

#endif
