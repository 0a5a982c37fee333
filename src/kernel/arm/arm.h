/* SPDX-License-Identifier: Apache-2.0
 * The ARM kernels, a block per tier. The type of each is its contract (kernel.h); each gives the
 * bits of its reference (ref/ref.h), for any shape. Called through the table only (table.c). Read
 * next: mul_integer_128.h. */
#ifndef PITH_KERNEL_ARM_ARM_H
#define PITH_KERNEL_ARM_ARM_H

#include "kernel/kernel.h"

/* ---- neon: Advanced SIMD, which every 64-bit ARM has ---- */
pith_mul_kernel pith_mul_f32_neon, pith_mul_f16_neon, pith_mul_bf16_neon, pith_mul_q4_0_neon,
    pith_mul_q4_1_neon, pith_mul_q5_0_neon, pith_mul_q5_1_neon, pith_mul_q8_0_neon,
    pith_mul_q4_k_neon, pith_mul_q5_k_neon, pith_mul_q6_k_neon;
pith_mul_kernel pith_mul_iq4_nl_neon, pith_mul_iq4_xs_neon, pith_mul_mxfp4_neon,
    pith_mul_nvfp4_neon, pith_mul_q2_k_neon, pith_mul_q3_k_neon, pith_mul_iq1_s_neon,
    pith_mul_iq1_m_neon, pith_mul_iq2_xxs_neon, pith_mul_iq2_xs_neon, pith_mul_iq2_s_neon,
    pith_mul_iq3_xxs_neon, pith_mul_iq3_s_neon, pith_mul_tq1_0_neon, pith_mul_tq2_0_neon,
    pith_mul_q1_0_neon, pith_mul_q2_0_neon;
pith_pack_kernel pith_pack_f32_neon, pith_pack_f16_neon, pith_pack_bf16_neon, pith_pack_q4_0_neon,
    pith_pack_q4_1_neon, pith_pack_q5_0_neon, pith_pack_q5_1_neon, pith_pack_q8_0_neon,
    pith_pack_q4_k_neon, pith_pack_q5_k_neon, pith_pack_q6_k_neon;
pith_pack_kernel pith_pack_iq4_nl_neon, pith_pack_iq4_xs_neon, pith_pack_mxfp4_neon,
    pith_pack_nvfp4_neon, pith_pack_q2_k_neon, pith_pack_q3_k_neon, pith_pack_iq1_s_neon,
    pith_pack_iq1_m_neon, pith_pack_iq2_xxs_neon, pith_pack_iq2_xs_neon, pith_pack_iq2_s_neon,
    pith_pack_iq3_xxs_neon, pith_pack_iq3_s_neon, pith_pack_tq1_0_neon, pith_pack_tq2_0_neon,
    pith_pack_q1_0_neon, pith_pack_q2_0_neon;
pith_quantize_kernel pith_quantize_neon, pith_quantize_fast_neon;
pith_norm_kernel pith_rms_norm_neon, pith_layer_norm_neon;
pith_glu_kernel pith_silu_mul_neon, pith_gelu_mul_neon, pith_gelu_erf_mul_neon, pith_relu2_mul_neon;
pith_unary_kernel pith_silu_neon, pith_gelu_neon, pith_gelu_erf_neon, pith_relu2_neon,
    pith_exp_neon;
pith_binary_kernel pith_add_neon, pith_mul_elements_neon;
pith_scale_kernel pith_scale_neon, pith_softcap_neon;
pith_rope_kernel pith_rope_norm_neon, pith_rope_neox_neon;
pith_attend_kernel pith_attend_f32_neon, pith_attend_f16_neon, pith_attend_i8_neon;
pith_merge_kernel pith_merge_neon;
pith_kv_put_kernel pith_kv_put_f32_neon, pith_kv_put_f16_neon, pith_kv_put_i8_neon;
pith_reduce_kernel pith_max_neon;

/* ---- dotprod: neon and SDOT ---- */
pith_mul_kernel pith_mul_q4_0_dotprod, pith_mul_q4_1_dotprod, pith_mul_q5_0_dotprod,
    pith_mul_q5_1_dotprod, pith_mul_q8_0_dotprod, pith_mul_q4_k_dotprod, pith_mul_q5_k_dotprod,
    pith_mul_q6_k_dotprod;
pith_mul_kernel pith_mul_iq4_nl_dotprod, pith_mul_iq4_xs_dotprod, pith_mul_mxfp4_dotprod,
    pith_mul_nvfp4_dotprod, pith_mul_q2_k_dotprod, pith_mul_q3_k_dotprod, pith_mul_iq1_s_dotprod,
    pith_mul_iq1_m_dotprod, pith_mul_iq2_xxs_dotprod, pith_mul_iq2_xs_dotprod,
    pith_mul_iq2_s_dotprod, pith_mul_iq3_xxs_dotprod, pith_mul_iq3_s_dotprod,
    pith_mul_tq1_0_dotprod, pith_mul_tq2_0_dotprod, pith_mul_q1_0_dotprod, pith_mul_q2_0_dotprod;
pith_mul_kernel pith_mul_fast_q4_k_dotprod, pith_mul_fast_q5_k_dotprod, pith_mul_fast_q6_k_dotprod,
    pith_mul_fast_q2_k_dotprod, pith_mul_fast_q3_k_dotprod, pith_mul_fast_iq4_xs_dotprod,
    pith_mul_fast_tq2_0_dotprod;
pith_mul_kernel pith_mul_fast_iq1_s_dotprod, pith_mul_fast_iq1_m_dotprod,
    pith_mul_fast_iq2_xxs_dotprod, pith_mul_fast_iq2_xs_dotprod, pith_mul_fast_iq2_s_dotprod,
    pith_mul_fast_iq3_xxs_dotprod, pith_mul_fast_iq3_s_dotprod, pith_mul_fast_tq1_0_dotprod;
pith_attend_kernel pith_attend_i8_dotprod;

/* ---- i8mm: dotprod and SMMLA; one or two tokens are left to dotprod ---- */
pith_mul_kernel pith_mul_q4_0_i8mm, pith_mul_q4_1_i8mm, pith_mul_q5_0_i8mm, pith_mul_q5_1_i8mm,
    pith_mul_q8_0_i8mm, pith_mul_q4_k_i8mm, pith_mul_q5_k_i8mm, pith_mul_q6_k_i8mm;
pith_mul_kernel pith_mul_iq4_nl_i8mm, pith_mul_iq4_xs_i8mm, pith_mul_mxfp4_i8mm,
    pith_mul_nvfp4_i8mm, pith_mul_q2_k_i8mm, pith_mul_q3_k_i8mm, pith_mul_iq1_s_i8mm,
    pith_mul_iq1_m_i8mm, pith_mul_iq2_xxs_i8mm, pith_mul_iq2_xs_i8mm, pith_mul_iq2_s_i8mm,
    pith_mul_iq3_xxs_i8mm, pith_mul_iq3_s_i8mm, pith_mul_tq1_0_i8mm, pith_mul_tq2_0_i8mm,
    pith_mul_q1_0_i8mm, pith_mul_q2_0_i8mm;
pith_mul_kernel pith_mul_fast_q4_k_i8mm, pith_mul_fast_q5_k_i8mm, pith_mul_fast_q6_k_i8mm,
    pith_mul_fast_q2_k_i8mm, pith_mul_fast_q3_k_i8mm, pith_mul_fast_iq4_xs_i8mm,
    pith_mul_fast_tq2_0_i8mm;
pith_mul_kernel pith_mul_fast_iq1_s_i8mm, pith_mul_fast_iq1_m_i8mm, pith_mul_fast_iq2_xxs_i8mm,
    pith_mul_fast_iq2_xs_i8mm, pith_mul_fast_iq2_s_i8mm, pith_mul_fast_iq3_xxs_i8mm,
    pith_mul_fast_iq3_s_i8mm, pith_mul_fast_tq1_0_i8mm;

#endif
