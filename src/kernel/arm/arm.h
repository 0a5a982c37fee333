/* SPDX-License-Identifier: Apache-2.0
 * Prototypes of the ARM kernels, a block per tier. Their contracts are the types of kernel.h; each
 * gives the bits of its reference (ref/ref.h), for any shape. Called through the table only
 * (table.c). Read next: mul_integer_128.h. */
#ifndef PITH_KERNEL_ARM_ARM_H
#define PITH_KERNEL_ARM_ARM_H

#include "kernel/kernel.h"

/* ---- neon: Advanced SIMD, which every 64-bit ARM has ---- */
void pith_mul_f32_neon(const pith_mul *args);
void pith_mul_f16_neon(const pith_mul *args);
void pith_mul_bf16_neon(const pith_mul *args);
void pith_mul_q4_0_neon(const pith_mul *args);
void pith_mul_q4_1_neon(const pith_mul *args);
void pith_mul_q5_0_neon(const pith_mul *args);
void pith_mul_q5_1_neon(const pith_mul *args);
void pith_mul_q8_0_neon(const pith_mul *args);
void pith_mul_q4_k_neon(const pith_mul *args);
void pith_mul_q5_k_neon(const pith_mul *args);
void pith_mul_q6_k_neon(const pith_mul *args);
void pith_pack_f32_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_f16_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k);
void pith_pack_bf16_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q4_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q4_1_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q5_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q5_1_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q8_0_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q4_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q5_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_pack_q6_k_neon(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k);
void pith_quantize_neon(const float *x, size_t x_stride, uint32_t n, uint32_t k, const pith_q8 *out,
                        uint32_t first_row);
void pith_rms_norm_neon(const pith_norm_args *args);
void pith_layer_norm_neon(const pith_norm_args *args);
void pith_silu_mul_neon(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_mul_neon(float *y, const float *gate, const float *up, uint32_t n);
void pith_gelu_erf_mul_neon(float *y, const float *gate, const float *up, uint32_t n);
void pith_relu2_mul_neon(float *y, const float *gate, const float *up, uint32_t n);
void pith_silu_neon(float *y, const float *x, uint32_t n);
void pith_gelu_neon(float *y, const float *x, uint32_t n);
void pith_gelu_erf_neon(float *y, const float *x, uint32_t n);
void pith_relu2_neon(float *y, const float *x, uint32_t n);
void pith_exp_neon(float *y, const float *x, uint32_t n);
void pith_add_neon(float *y, const float *a, const float *b, uint32_t n);
void pith_mul_elements_neon(float *y, const float *a, const float *b, uint32_t n);
void pith_scale_neon(float *y, const float *x, float s, uint32_t n);
void pith_softcap_neon(float *y, const float *x, float s, uint32_t n);
void pith_rope_norm_neon(float *x, const float *table, uint32_t n_rot);
void pith_rope_neox_neon(float *x, const float *table, uint32_t n_rot);
void pith_attend_f32_neon(const pith_attend *args);
void pith_attend_f16_neon(const pith_attend *args);
void pith_attend_i8_neon(const pith_attend *args);
void pith_merge_neon(float *M, float *L, float *O, float m, float l, const float *o,
                     uint32_t head_dim_v);
void pith_kv_put_f32_neon(const pith_kv_put *args);
void pith_kv_put_f16_neon(const pith_kv_put *args);
void pith_kv_put_i8_neon(const pith_kv_put *args);
float pith_max_neon(const float *x, uint32_t n);

/* ---- dotprod: neon and SDOT ---- */
void pith_mul_q4_0_dotprod(const pith_mul *args);
void pith_mul_q4_1_dotprod(const pith_mul *args);
void pith_mul_q5_0_dotprod(const pith_mul *args);
void pith_mul_q5_1_dotprod(const pith_mul *args);
void pith_mul_q8_0_dotprod(const pith_mul *args);
void pith_mul_q4_k_dotprod(const pith_mul *args);
void pith_mul_q5_k_dotprod(const pith_mul *args);
void pith_mul_q6_k_dotprod(const pith_mul *args);
void pith_attend_i8_dotprod(const pith_attend *args);

/* ---- i8mm: dotprod and SMMLA; one token is left to dotprod ---- */
void pith_mul_q4_0_i8mm(const pith_mul *args);
void pith_mul_q4_1_i8mm(const pith_mul *args);
void pith_mul_q5_0_i8mm(const pith_mul *args);
void pith_mul_q5_1_i8mm(const pith_mul *args);
void pith_mul_q8_0_i8mm(const pith_mul *args);
void pith_mul_q4_k_i8mm(const pith_mul *args);
void pith_mul_q5_k_i8mm(const pith_mul *args);
void pith_mul_q6_k_i8mm(const pith_mul *args);

#endif
