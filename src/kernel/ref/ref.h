/* SPDX-License-Identifier: Apache-2.0
 * The plain C kernels, which define what every tier must compute: one per slot of kernel_list.h.
 * The type of each is its contract (kernel.h). */
#ifndef PITH_KERNEL_REF_REF_H
#define PITH_KERNEL_REF_REF_H

#include "kernel/kernel.h"

/* mul_float_ref.c, mul_integer_ref.c; mul_expanded_ref.c: types that are kept the plainest way
 * (panel.h) */
pith_mul_kernel pith_mul_f32_ref, pith_mul_f16_ref, pith_mul_bf16_ref;
pith_mul_kernel pith_mul_q4_0_ref, pith_mul_q4_1_ref, pith_mul_q5_0_ref, pith_mul_q5_1_ref,
    pith_mul_q8_0_ref, pith_mul_q4_k_ref, pith_mul_q5_k_ref, pith_mul_q6_k_ref;
pith_mul_kernel pith_mul_iq4_nl_ref, pith_mul_iq4_xs_ref, pith_mul_mxfp4_ref, pith_mul_nvfp4_ref,
    pith_mul_q2_k_ref, pith_mul_q3_k_ref, pith_mul_iq1_s_ref, pith_mul_iq1_m_ref,
    pith_mul_iq2_xxs_ref, pith_mul_iq2_xs_ref, pith_mul_iq2_s_ref, pith_mul_iq3_xxs_ref,
    pith_mul_iq3_s_ref, pith_mul_tq1_0_ref, pith_mul_tq2_0_ref, pith_mul_q1_0_ref,
    pith_mul_q2_0_ref;

/* The fast contract: the same files, mul_fast_ref.c */
pith_mul_kernel pith_mul_fast_q2_k_ref, pith_mul_fast_q3_k_ref, pith_mul_fast_q4_k_ref,
    pith_mul_fast_q5_k_ref, pith_mul_fast_q6_k_ref, pith_mul_fast_iq4_xs_ref,
    pith_mul_fast_iq1_s_ref, pith_mul_fast_iq1_m_ref, pith_mul_fast_iq2_xxs_ref,
    pith_mul_fast_iq2_xs_ref, pith_mul_fast_iq2_s_ref, pith_mul_fast_iq3_xxs_ref,
    pith_mul_fast_iq3_s_ref, pith_mul_fast_tq1_0_ref, pith_mul_fast_tq2_0_ref;

/* panel_ref.c */
pith_pack_kernel pith_pack_f32_ref, pith_pack_f16_ref, pith_pack_bf16_ref, pith_pack_q4_0_ref,
    pith_pack_q4_1_ref, pith_pack_q5_0_ref, pith_pack_q5_1_ref, pith_pack_q8_0_ref,
    pith_pack_q4_k_ref, pith_pack_q5_k_ref, pith_pack_q6_k_ref;
pith_pack_kernel pith_pack_iq4_nl_ref, pith_pack_iq4_xs_ref, pith_pack_mxfp4_ref,
    pith_pack_nvfp4_ref, pith_pack_q2_k_ref, pith_pack_q3_k_ref, pith_pack_iq1_s_ref,
    pith_pack_iq1_m_ref, pith_pack_iq2_xxs_ref, pith_pack_iq2_xs_ref, pith_pack_iq2_s_ref,
    pith_pack_iq3_xxs_ref, pith_pack_iq3_s_ref, pith_pack_tq1_0_ref, pith_pack_tq2_0_ref,
    pith_pack_q1_0_ref, pith_pack_q2_0_ref;
pith_panel_decode_kernel pith_panel_decode_f32_ref, pith_panel_decode_f16_ref,
    pith_panel_decode_bf16_ref, pith_panel_decode_q4_0_ref, pith_panel_decode_q4_1_ref,
    pith_panel_decode_q5_0_ref, pith_panel_decode_q5_1_ref, pith_panel_decode_q8_0_ref,
    pith_panel_decode_q4_k_ref, pith_panel_decode_q5_k_ref, pith_panel_decode_q6_k_ref;
pith_panel_decode_kernel pith_panel_decode_iq4_nl_ref, pith_panel_decode_iq4_xs_ref,
    pith_panel_decode_mxfp4_ref, pith_panel_decode_nvfp4_ref, pith_panel_decode_q2_k_ref,
    pith_panel_decode_q3_k_ref, pith_panel_decode_iq1_s_ref, pith_panel_decode_iq1_m_ref,
    pith_panel_decode_iq2_xxs_ref, pith_panel_decode_iq2_xs_ref, pith_panel_decode_iq2_s_ref,
    pith_panel_decode_iq3_xxs_ref, pith_panel_decode_iq3_s_ref, pith_panel_decode_tq1_0_ref,
    pith_panel_decode_tq2_0_ref, pith_panel_decode_q1_0_ref, pith_panel_decode_q2_0_ref;

/* quantize_ref.c, norm_ref.c, elementwise_ref.c */
pith_quantize_kernel pith_quantize_ref, pith_quantize_fast_ref;
pith_norm_kernel pith_rms_norm_ref, pith_layer_norm_ref;
pith_reduce_kernel pith_max_ref;
pith_glu_kernel pith_silu_mul_ref, pith_gelu_mul_ref, pith_gelu_erf_mul_ref, pith_relu2_mul_ref;
pith_unary_kernel pith_silu_ref, pith_gelu_ref, pith_gelu_erf_ref, pith_relu2_ref, pith_exp_ref;
pith_binary_kernel pith_add_ref, pith_mul_elements_ref;
pith_scale_kernel pith_scale_ref, pith_softcap_ref;
pith_rope_kernel pith_rope_norm_ref, pith_rope_neox_ref;

/* attend_ref.c, kv_ref.c */
pith_attend_kernel pith_attend_f32_ref, pith_attend_f16_ref, pith_attend_i8_ref;
pith_merge_kernel pith_merge_ref;
pith_kv_put_kernel pith_kv_put_f32_ref, pith_kv_put_f16_ref, pith_kv_put_i8_ref;

#endif
