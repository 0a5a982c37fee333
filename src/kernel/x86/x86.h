/* SPDX-License-Identifier: Apache-2.0
 * Prototypes of the x86 kernels, a block per tier. Their contracts are the types of kernel.h; each
 * gives the bits of its reference (ref/ref.h), for any shape. Called through the table only
 * (table.c). Read next: mul_small_avx512.c, the simplest product. */
#ifndef PITH_KERNEL_X86_X86_H
#define PITH_KERNEL_X86_X86_H

#include "kernel/kernel.h"

/* ---- avx2: AVX2 FMA F16C ---- */
void pith_mul_f32_avx2(const pith_mul *args);
void pith_mul_f16_avx2(const pith_mul *args);
void pith_mul_bf16_avx2(const pith_mul *args);
void pith_mul_q4_0_avx2(const pith_mul *args);
void pith_mul_q4_1_avx2(const pith_mul *args);
void pith_mul_q5_0_avx2(const pith_mul *args);
void pith_mul_q5_1_avx2(const pith_mul *args);
void pith_mul_q8_0_avx2(const pith_mul *args);
void pith_mul_q4_k_avx2(const pith_mul *args);
void pith_mul_q5_k_avx2(const pith_mul *args);
void pith_mul_q6_k_avx2(const pith_mul *args);
void pith_pack_f32_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_f16_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_bf16_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q4_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q4_1_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q5_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q5_1_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q8_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q4_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q5_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q6_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_quantize_avx2(const float *x, size_t x_stride, uint32_t n, uint32_t k, const pith_q8 *out,
                        uint32_t first_row);
void pith_rms_norm_avx2(const pith_norm_args *args);
void pith_layer_norm_avx2(const pith_norm_args *args);
void pith_silu_mul_avx2(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_mul_avx2(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_erf_mul_avx2(float *y, const float *gate, const float *up, uint32_t n);
void pith_relu2_mul_avx2(float *y, const float *gate, const float *up, uint32_t n);
void pith_silu_avx2(float *y, const float *x, uint32_t n);
void pith_gelu_avx2(float *y, const float *x, uint32_t n);
void pith_gelu_erf_avx2(float *y, const float *x, uint32_t n);
void pith_relu2_avx2(float *y, const float *x, uint32_t n);
void pith_exp_avx2(float *y, const float *x, uint32_t n);
void pith_add_avx2(float *y, const float *a, const float *b, uint32_t n);
void pith_mul_elements_avx2(float *y, const float *a, const float *b, uint32_t n);
void pith_scale_avx2(float *y, const float *x, float s, uint32_t n);
void pith_softcap_avx2(float *y, const float *x, float s, uint32_t n);
void pith_rope_norm_avx2(float *x, const float *table, uint32_t n_rot);
void pith_rope_neox_avx2(float *x, const float *table, uint32_t n_rot);
void pith_attend_f32_avx2(const pith_attend *args);
void pith_attend_f16_avx2(const pith_attend *args);
void pith_attend_i8_avx2(const pith_attend *args);
void pith_merge_avx2(float *M, float *L, float *O, float m, float l, const float *o,
                     uint32_t head_dim_v);
void pith_kv_put_f32_avx2(const pith_kv_put *args);
void pith_kv_put_f16_avx2(const pith_kv_put *args);
void pith_kv_put_i8_avx2(const pith_kv_put *args);
float pith_max_avx2(const float *x, uint32_t n);

/* ---- avxvnni: avx2 and AVX-VNNI ---- */
void pith_mul_q4_0_avxvnni(const pith_mul *args);
void pith_mul_q4_1_avxvnni(const pith_mul *args);
void pith_mul_q5_0_avxvnni(const pith_mul *args);
void pith_mul_q5_1_avxvnni(const pith_mul *args);
void pith_mul_q8_0_avxvnni(const pith_mul *args);
void pith_mul_q4_k_avxvnni(const pith_mul *args);
void pith_mul_q5_k_avxvnni(const pith_mul *args);
void pith_mul_q6_k_avxvnni(const pith_mul *args);
void pith_attend_i8_avxvnni(const pith_attend *args);

/* ---- avx512: AVX-512 F BW DQ VL VNNI ---- */
void pith_mul_f32_avx512(const pith_mul *args);
void pith_mul_f16_avx512(const pith_mul *args);
void pith_mul_bf16_avx512(const pith_mul *args);
void pith_mul_q4_0_avx512(const pith_mul *args);
void pith_mul_q4_1_avx512(const pith_mul *args);
void pith_mul_q5_0_avx512(const pith_mul *args);
void pith_mul_q5_1_avx512(const pith_mul *args);
void pith_mul_q8_0_avx512(const pith_mul *args);
void pith_mul_q4_k_avx512(const pith_mul *args);
void pith_mul_q5_k_avx512(const pith_mul *args);
void pith_mul_q6_k_avx512(const pith_mul *args);
void pith_pack_f32_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k);
void pith_pack_f16_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k);
void pith_pack_bf16_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q4_0_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q4_1_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q5_0_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q5_1_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q8_0_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q4_k_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q5_k_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_pack_q6_k_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
void pith_quantize_avx512(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                          const pith_q8 *out, uint32_t first_row);
void pith_rms_norm_avx512(const pith_norm_args *args);
void pith_layer_norm_avx512(const pith_norm_args *args);
void pith_silu_mul_avx512(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_mul_avx512(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_erf_mul_avx512(float *y, const float *gate, const float *up, uint32_t n);
void pith_relu2_mul_avx512(float *y, const float *gate, const float *up, uint32_t n);
void pith_silu_avx512(float *y, const float *x, uint32_t n);
void pith_gelu_avx512(float *y, const float *x, uint32_t n);
void pith_gelu_erf_avx512(float *y, const float *x, uint32_t n);
void pith_relu2_avx512(float *y, const float *x, uint32_t n);
void pith_exp_avx512(float *y, const float *x, uint32_t n);
void pith_add_avx512(float *y, const float *a, const float *b, uint32_t n);
void pith_mul_elements_avx512(float *y, const float *a, const float *b, uint32_t n);
void pith_scale_avx512(float *y, const float *x, float s, uint32_t n);
void pith_softcap_avx512(float *y, const float *x, float s, uint32_t n);
void pith_rope_norm_avx512(float *x, const float *table, uint32_t n_rot);
void pith_rope_neox_avx512(float *x, const float *table, uint32_t n_rot);
void pith_attend_f32_avx512(const pith_attend *args);
void pith_attend_f16_avx512(const pith_attend *args);
void pith_attend_i8_avx512(const pith_attend *args);
void pith_merge_avx512(float *M, float *L, float *O, float m, float l, const float *o,
                       uint32_t head_dim_v);
void pith_kv_put_f32_avx512(const pith_kv_put *args);
void pith_kv_put_f16_avx512(const pith_kv_put *args);
void pith_kv_put_i8_avx512(const pith_kv_put *args);
float pith_max_avx512(const float *x, uint32_t n);

/* ---- Types that are expanded first: mul_expanded_*.c, pack_*.c ---- */
typedef void pith_x86_mul(const pith_mul *args);
typedef void pith_x86_pack(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k);
pith_x86_mul pith_mul_iq4_nl_avx2, pith_mul_iq4_xs_avx2, pith_mul_mxfp4_avx2, pith_mul_nvfp4_avx2,
    pith_mul_q2_k_avx2, pith_mul_q3_k_avx2, pith_mul_iq1_s_avx2, pith_mul_iq1_m_avx2,
    pith_mul_iq2_xxs_avx2, pith_mul_iq2_xs_avx2, pith_mul_iq2_s_avx2, pith_mul_iq3_xxs_avx2,
    pith_mul_iq3_s_avx2, pith_mul_tq1_0_avx2, pith_mul_tq2_0_avx2, pith_mul_q1_0_avx2,
    pith_mul_q2_0_avx2;
pith_x86_mul pith_mul_iq4_nl_avxvnni, pith_mul_iq4_xs_avxvnni, pith_mul_mxfp4_avxvnni,
    pith_mul_nvfp4_avxvnni, pith_mul_q2_k_avxvnni, pith_mul_q3_k_avxvnni, pith_mul_iq1_s_avxvnni,
    pith_mul_iq1_m_avxvnni, pith_mul_iq2_xxs_avxvnni, pith_mul_iq2_xs_avxvnni,
    pith_mul_iq2_s_avxvnni, pith_mul_iq3_xxs_avxvnni, pith_mul_iq3_s_avxvnni,
    pith_mul_tq1_0_avxvnni, pith_mul_tq2_0_avxvnni, pith_mul_q1_0_avxvnni, pith_mul_q2_0_avxvnni;
pith_x86_mul pith_mul_iq4_nl_avx512, pith_mul_iq4_xs_avx512, pith_mul_mxfp4_avx512,
    pith_mul_nvfp4_avx512, pith_mul_q2_k_avx512, pith_mul_q3_k_avx512, pith_mul_iq1_s_avx512,
    pith_mul_iq1_m_avx512, pith_mul_iq2_xxs_avx512, pith_mul_iq2_xs_avx512, pith_mul_iq2_s_avx512,
    pith_mul_iq3_xxs_avx512, pith_mul_iq3_s_avx512, pith_mul_tq1_0_avx512, pith_mul_tq2_0_avx512,
    pith_mul_q1_0_avx512, pith_mul_q2_0_avx512;
pith_x86_pack pith_pack_iq4_nl_avx2, pith_pack_iq4_xs_avx2, pith_pack_mxfp4_avx2,
    pith_pack_nvfp4_avx2, pith_pack_q2_k_avx2, pith_pack_q3_k_avx2, pith_pack_iq1_s_avx2,
    pith_pack_iq1_m_avx2, pith_pack_iq2_xxs_avx2, pith_pack_iq2_xs_avx2, pith_pack_iq2_s_avx2,
    pith_pack_iq3_xxs_avx2, pith_pack_iq3_s_avx2, pith_pack_tq1_0_avx2, pith_pack_tq2_0_avx2,
    pith_pack_q1_0_avx2, pith_pack_q2_0_avx2;
pith_x86_pack pith_pack_iq4_nl_avx512, pith_pack_iq4_xs_avx512, pith_pack_mxfp4_avx512,
    pith_pack_nvfp4_avx512, pith_pack_q2_k_avx512, pith_pack_q3_k_avx512, pith_pack_iq1_s_avx512,
    pith_pack_iq1_m_avx512, pith_pack_iq2_xxs_avx512, pith_pack_iq2_xs_avx512,
    pith_pack_iq2_s_avx512, pith_pack_iq3_xxs_avx512, pith_pack_iq3_s_avx512,
    pith_pack_tq1_0_avx512, pith_pack_tq2_0_avx512, pith_pack_q1_0_avx512, pith_pack_q2_0_avx512;

#endif
