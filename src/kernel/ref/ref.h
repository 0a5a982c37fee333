/* SPDX-License-Identifier: Apache-2.0
 * Prototypes of the plain C kernels, which define what every tier must compute. One per slot of
 * kernel_list.h; their contracts are in kernel.h. */
#ifndef PITH_KERNEL_REF_REF_H
#define PITH_KERNEL_REF_REF_H

#include "kernel/kernel.h"

/* mul_integer_ref.c, mul_float_ref.c */
void pith_mul_f32_ref(const pith_mul *args);
void pith_mul_f16_ref(const pith_mul *args);
void pith_mul_bf16_ref(const pith_mul *args);
void pith_mul_q4_0_ref(const pith_mul *args);
void pith_mul_q4_1_ref(const pith_mul *args);
void pith_mul_q5_0_ref(const pith_mul *args);
void pith_mul_q5_1_ref(const pith_mul *args);
void pith_mul_q8_0_ref(const pith_mul *args);
void pith_mul_q4_k_ref(const pith_mul *args);
void pith_mul_q5_k_ref(const pith_mul *args);
void pith_mul_q6_k_ref(const pith_mul *args);

/* Types that are kept the plainest way (panel.h): mul_expanded_ref.c, panel_ref.c. */
typedef void pith_mul_kernel(const pith_mul *args);
typedef void pith_pack_kernel(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                              uint32_t k);
typedef void pith_panel_decode_kernel(const void *panel, uint32_t row, float *out, uint32_t k);
pith_mul_kernel pith_mul_iq4_nl_ref, pith_mul_iq4_xs_ref, pith_mul_mxfp4_ref, pith_mul_nvfp4_ref,
    pith_mul_q2_k_ref, pith_mul_q3_k_ref, pith_mul_iq1_s_ref, pith_mul_iq1_m_ref,
    pith_mul_iq2_xxs_ref, pith_mul_iq2_xs_ref, pith_mul_iq2_s_ref, pith_mul_iq3_xxs_ref,
    pith_mul_iq3_s_ref, pith_mul_tq1_0_ref, pith_mul_tq2_0_ref, pith_mul_q1_0_ref,
    pith_mul_q2_0_ref;
pith_pack_kernel pith_pack_iq4_nl_ref, pith_pack_iq4_xs_ref, pith_pack_mxfp4_ref,
    pith_pack_nvfp4_ref, pith_pack_q2_k_ref, pith_pack_q3_k_ref, pith_pack_iq1_s_ref,
    pith_pack_iq1_m_ref, pith_pack_iq2_xxs_ref, pith_pack_iq2_xs_ref, pith_pack_iq2_s_ref,
    pith_pack_iq3_xxs_ref, pith_pack_iq3_s_ref, pith_pack_tq1_0_ref, pith_pack_tq2_0_ref,
    pith_pack_q1_0_ref, pith_pack_q2_0_ref;
pith_panel_decode_kernel pith_panel_decode_iq4_nl_ref, pith_panel_decode_iq4_xs_ref,
    pith_panel_decode_mxfp4_ref, pith_panel_decode_nvfp4_ref, pith_panel_decode_q2_k_ref,
    pith_panel_decode_q3_k_ref, pith_panel_decode_iq1_s_ref, pith_panel_decode_iq1_m_ref,
    pith_panel_decode_iq2_xxs_ref, pith_panel_decode_iq2_xs_ref, pith_panel_decode_iq2_s_ref,
    pith_panel_decode_iq3_xxs_ref, pith_panel_decode_iq3_s_ref, pith_panel_decode_tq1_0_ref,
    pith_panel_decode_tq2_0_ref, pith_panel_decode_q1_0_ref, pith_panel_decode_q2_0_ref;

/* panel_ref.c */
void pith_pack_f32_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row, uint32_t k);
void pith_pack_f16_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row, uint32_t k);
void pith_pack_bf16_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q4_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q4_1_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q5_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q5_1_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q8_0_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q4_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q5_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_q6_k_ref(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_panel_decode_f32_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_f16_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_bf16_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q4_0_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q4_1_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q5_0_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q5_1_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q8_0_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q4_k_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q5_k_ref(const void *panel, uint32_t row, float *out, uint32_t k);
void pith_panel_decode_q6_k_ref(const void *panel, uint32_t row, float *out, uint32_t k);

/* quantize_ref.c */
void pith_quantize_ref(const float *x, size_t x_stride, uint32_t n, uint32_t k, const pith_q8 *out,
                       uint32_t first_row);

/* norm_ref.c */
void pith_rms_norm_ref(const pith_norm_args *args);
void pith_layer_norm_ref(const pith_norm_args *args);
float pith_max_ref(const float *x, uint32_t n);

/* elementwise_ref.c */
void pith_silu_mul_ref(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_mul_ref(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_erf_mul_ref(float *y, const float *gate, const float *up, uint32_t n);
void pith_relu2_mul_ref(float *y, const float *gate, const float *up, uint32_t n);
void pith_silu_ref(float *y, const float *x, uint32_t n);
void pith_gelu_ref(float *y, const float *x, uint32_t n);
void pith_gelu_erf_ref(float *y, const float *x, uint32_t n);
void pith_relu2_ref(float *y, const float *x, uint32_t n);
void pith_exp_ref(float *y, const float *x, uint32_t n);
void pith_add_ref(float *y, const float *a, const float *b, uint32_t n);
void pith_mul_elements_ref(float *y, const float *a, const float *b, uint32_t n);
void pith_scale_ref(float *y, const float *x, float s, uint32_t n);
void pith_softcap_ref(float *y, const float *x, float s, uint32_t n);
void pith_rope_norm_ref(float *x, const float *table, uint32_t n_rot);
void pith_rope_neox_ref(float *x, const float *table, uint32_t n_rot);

/* attend_ref.c, kv_ref.c */
void pith_attend_f32_ref(const pith_attend *args);
void pith_attend_f16_ref(const pith_attend *args);
void pith_attend_i8_ref(const pith_attend *args);
void pith_merge_ref(float *M, float *L, float *O, float m, float l, const float *o,
                    uint32_t head_dim_v);
void pith_kv_put_f32_ref(const pith_kv_put *args);
void pith_kv_put_f16_ref(const pith_kv_put *args);
void pith_kv_put_i8_ref(const pith_kv_put *args);

#endif
