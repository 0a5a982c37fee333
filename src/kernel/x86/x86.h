/* SPDX-License-Identifier: Apache-2.0
 * The x86 kernels, a block per tier. The type of each is its contract (kernel.h); each gives the
 * bits of its reference (ref/ref.h), for any shape. Called through the table only (table.c). Read
 * next: mul_small_avx512.c, the simplest product. */
#ifndef PITH_KERNEL_X86_X86_H
#define PITH_KERNEL_X86_X86_H

#include "kernel/kernel.h"

/* ---- avx2: AVX2 FMA F16C ---- */
pith_mul_kernel pith_mul_f32_avx2, pith_mul_f16_avx2, pith_mul_bf16_avx2, pith_mul_q4_0_avx2,
    pith_mul_q4_1_avx2, pith_mul_q5_0_avx2, pith_mul_q5_1_avx2, pith_mul_q8_0_avx2,
    pith_mul_q4_k_avx2, pith_mul_q5_k_avx2, pith_mul_q6_k_avx2;
pith_mul_kernel pith_mul_iq4_nl_avx2, pith_mul_iq4_xs_avx2, pith_mul_mxfp4_avx2,
    pith_mul_nvfp4_avx2, pith_mul_q2_k_avx2, pith_mul_q3_k_avx2, pith_mul_iq1_s_avx2,
    pith_mul_iq1_m_avx2, pith_mul_iq2_xxs_avx2, pith_mul_iq2_xs_avx2, pith_mul_iq2_s_avx2,
    pith_mul_iq3_xxs_avx2, pith_mul_iq3_s_avx2, pith_mul_tq1_0_avx2, pith_mul_tq2_0_avx2,
    pith_mul_q1_0_avx2, pith_mul_q2_0_avx2;
pith_pack_kernel pith_pack_f32_avx2, pith_pack_f16_avx2, pith_pack_bf16_avx2, pith_pack_q4_0_avx2,
    pith_pack_q4_1_avx2, pith_pack_q5_0_avx2, pith_pack_q5_1_avx2, pith_pack_q8_0_avx2,
    pith_pack_q4_k_avx2, pith_pack_q5_k_avx2, pith_pack_q6_k_avx2;
pith_pack_kernel pith_pack_iq4_nl_avx2, pith_pack_iq4_xs_avx2, pith_pack_mxfp4_avx2,
    pith_pack_nvfp4_avx2, pith_pack_q2_k_avx2, pith_pack_q3_k_avx2, pith_pack_iq1_s_avx2,
    pith_pack_iq1_m_avx2, pith_pack_iq2_xxs_avx2, pith_pack_iq2_xs_avx2, pith_pack_iq2_s_avx2,
    pith_pack_iq3_xxs_avx2, pith_pack_iq3_s_avx2, pith_pack_tq1_0_avx2, pith_pack_tq2_0_avx2,
    pith_pack_q1_0_avx2, pith_pack_q2_0_avx2;
pith_quantize_kernel pith_quantize_avx2, pith_quantize_fast_avx2;
pith_norm_kernel pith_rms_norm_avx2, pith_layer_norm_avx2;
pith_glu_kernel pith_silu_mul_avx2, pith_gelu_mul_avx2, pith_gelu_erf_mul_avx2, pith_relu2_mul_avx2;
pith_unary_kernel pith_silu_avx2, pith_gelu_avx2, pith_gelu_erf_avx2, pith_relu2_avx2,
    pith_exp_avx2;
pith_binary_kernel pith_add_avx2, pith_mul_elements_avx2;
pith_scale_kernel pith_scale_avx2, pith_softcap_avx2;
pith_rope_kernel pith_rope_norm_avx2, pith_rope_neox_avx2;
pith_attend_kernel pith_attend_f32_avx2, pith_attend_f16_avx2, pith_attend_i8_avx2;
pith_merge_kernel pith_merge_avx2;
pith_kv_put_kernel pith_kv_put_f32_avx2, pith_kv_put_f16_avx2, pith_kv_put_i8_avx2;
pith_reduce_kernel pith_max_avx2;

/* ---- avxvnni: avx2 and AVX-VNNI ---- */
pith_mul_kernel pith_mul_q4_0_avxvnni, pith_mul_q4_1_avxvnni, pith_mul_q5_0_avxvnni,
    pith_mul_q5_1_avxvnni, pith_mul_q8_0_avxvnni, pith_mul_q4_k_avxvnni, pith_mul_q5_k_avxvnni,
    pith_mul_q6_k_avxvnni;
pith_mul_kernel pith_mul_iq4_nl_avxvnni, pith_mul_iq4_xs_avxvnni, pith_mul_mxfp4_avxvnni,
    pith_mul_nvfp4_avxvnni, pith_mul_q2_k_avxvnni, pith_mul_q3_k_avxvnni, pith_mul_iq1_s_avxvnni,
    pith_mul_iq1_m_avxvnni, pith_mul_iq2_xxs_avxvnni, pith_mul_iq2_xs_avxvnni,
    pith_mul_iq2_s_avxvnni, pith_mul_iq3_xxs_avxvnni, pith_mul_iq3_s_avxvnni,
    pith_mul_tq1_0_avxvnni, pith_mul_tq2_0_avxvnni, pith_mul_q1_0_avxvnni, pith_mul_q2_0_avxvnni;
pith_mul_kernel pith_mul_fast_q4_k_avxvnni, pith_mul_fast_q5_k_avxvnni, pith_mul_fast_q6_k_avxvnni,
    pith_mul_fast_iq4_xs_avxvnni, pith_mul_fast_q2_k_avxvnni, pith_mul_fast_q3_k_avxvnni,
    pith_mul_fast_iq1_s_avxvnni, pith_mul_fast_iq1_m_avxvnni, pith_mul_fast_iq2_xxs_avxvnni,
    pith_mul_fast_iq2_xs_avxvnni, pith_mul_fast_iq2_s_avxvnni, pith_mul_fast_iq3_xxs_avxvnni,
    pith_mul_fast_iq3_s_avxvnni, pith_mul_fast_tq1_0_avxvnni, pith_mul_fast_tq2_0_avxvnni;
pith_attend_kernel pith_attend_i8_avxvnni;

/* ---- avx512: AVX-512 F BW DQ VL VNNI ---- */
pith_mul_kernel pith_mul_f32_avx512, pith_mul_f16_avx512, pith_mul_bf16_avx512,
    pith_mul_q4_0_avx512, pith_mul_q4_1_avx512, pith_mul_q5_0_avx512, pith_mul_q5_1_avx512,
    pith_mul_q8_0_avx512, pith_mul_q4_k_avx512, pith_mul_q5_k_avx512, pith_mul_q6_k_avx512;
pith_mul_kernel pith_mul_iq4_nl_avx512, pith_mul_iq4_xs_avx512, pith_mul_mxfp4_avx512,
    pith_mul_nvfp4_avx512, pith_mul_q2_k_avx512, pith_mul_q3_k_avx512, pith_mul_iq1_s_avx512,
    pith_mul_iq1_m_avx512, pith_mul_iq2_xxs_avx512, pith_mul_iq2_xs_avx512, pith_mul_iq2_s_avx512,
    pith_mul_iq3_xxs_avx512, pith_mul_iq3_s_avx512, pith_mul_tq1_0_avx512, pith_mul_tq2_0_avx512,
    pith_mul_q1_0_avx512, pith_mul_q2_0_avx512;
pith_pack_kernel pith_pack_f32_avx512, pith_pack_f16_avx512, pith_pack_bf16_avx512,
    pith_pack_q4_0_avx512, pith_pack_q4_1_avx512, pith_pack_q5_0_avx512, pith_pack_q5_1_avx512,
    pith_pack_q8_0_avx512, pith_pack_q4_k_avx512, pith_pack_q5_k_avx512, pith_pack_q6_k_avx512;
pith_pack_kernel pith_pack_iq4_nl_avx512, pith_pack_iq4_xs_avx512, pith_pack_mxfp4_avx512,
    pith_pack_nvfp4_avx512, pith_pack_q2_k_avx512, pith_pack_q3_k_avx512, pith_pack_iq1_s_avx512,
    pith_pack_iq1_m_avx512, pith_pack_iq2_xxs_avx512, pith_pack_iq2_xs_avx512,
    pith_pack_iq2_s_avx512, pith_pack_iq3_xxs_avx512, pith_pack_iq3_s_avx512,
    pith_pack_tq1_0_avx512, pith_pack_tq2_0_avx512, pith_pack_q1_0_avx512, pith_pack_q2_0_avx512;
pith_mul_kernel pith_mul_fast_q2_k_avx512, pith_mul_fast_q3_k_avx512, pith_mul_fast_q4_k_avx512,
    pith_mul_fast_q5_k_avx512, pith_mul_fast_q6_k_avx512, pith_mul_fast_iq4_xs_avx512,
    pith_mul_fast_iq1_s_avx512, pith_mul_fast_iq1_m_avx512, pith_mul_fast_iq2_xxs_avx512,
    pith_mul_fast_iq2_xs_avx512, pith_mul_fast_iq2_s_avx512, pith_mul_fast_iq3_xxs_avx512,
    pith_mul_fast_iq3_s_avx512, pith_mul_fast_tq1_0_avx512, pith_mul_fast_tq2_0_avx512;
pith_quantize_kernel pith_quantize_avx512, pith_quantize_fast_avx512;
pith_norm_kernel pith_rms_norm_avx512, pith_layer_norm_avx512;
pith_glu_kernel pith_silu_mul_avx512, pith_gelu_mul_avx512, pith_gelu_erf_mul_avx512,
    pith_relu2_mul_avx512;
pith_unary_kernel pith_silu_avx512, pith_gelu_avx512, pith_gelu_erf_avx512, pith_relu2_avx512,
    pith_exp_avx512;
pith_binary_kernel pith_add_avx512, pith_mul_elements_avx512;
pith_scale_kernel pith_scale_avx512, pith_softcap_avx512;
pith_rope_kernel pith_rope_norm_avx512, pith_rope_neox_avx512;
pith_attend_kernel pith_attend_f32_avx512, pith_attend_f16_avx512, pith_attend_i8_avx512;
pith_merge_kernel pith_merge_avx512;
pith_kv_put_kernel pith_kv_put_f32_avx512, pith_kv_put_f16_avx512, pith_kv_put_i8_avx512;
pith_reduce_kernel pith_max_avx512;

/* ---- amx: avx512 and AMX tile int8 ---- */
pith_mul_kernel pith_mul_q4_0_amx, pith_mul_q4_1_amx, pith_mul_q5_0_amx, pith_mul_q5_1_amx,
    pith_mul_q8_0_amx, pith_mul_q4_k_amx, pith_mul_q5_k_amx, pith_mul_q6_k_amx, pith_mul_iq4_nl_amx,
    pith_mul_iq4_xs_amx, pith_mul_mxfp4_amx, pith_mul_nvfp4_amx, pith_mul_q2_k_amx,
    pith_mul_q3_k_amx, pith_mul_iq1_s_amx, pith_mul_iq1_m_amx, pith_mul_iq2_xxs_amx,
    pith_mul_iq2_xs_amx, pith_mul_iq2_s_amx, pith_mul_iq3_xxs_amx, pith_mul_iq3_s_amx,
    pith_mul_tq1_0_amx, pith_mul_tq2_0_amx, pith_mul_q1_0_amx, pith_mul_q2_0_amx;
pith_mul_kernel pith_mul_fast_q4_k_amx, pith_mul_fast_q5_k_amx, pith_mul_fast_q6_k_amx,
    pith_mul_fast_iq4_xs_amx, pith_mul_fast_q2_k_amx, pith_mul_fast_q3_k_amx,
    pith_mul_fast_iq1_s_amx, pith_mul_fast_iq1_m_amx, pith_mul_fast_iq2_xxs_amx,
    pith_mul_fast_iq2_xs_amx, pith_mul_fast_iq2_s_amx, pith_mul_fast_iq3_xxs_amx,
    pith_mul_fast_iq3_s_amx, pith_mul_fast_tq1_0_amx, pith_mul_fast_tq2_0_amx;

#endif
