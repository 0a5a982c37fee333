/* SPDX-License-Identifier: Apache-2.0
 * The kernel table: reference functions first, then one flat ladder per instruction set, lowest
 * tier first; a later line wins. Adding a kernel of a tier is its file and one line here.
 * Invariant: after pith_kernels_init every slot of kernel_list.h is set, for any feature mask.
 * Names are kept beside the pointers by the same SET line, so that reports and the kernel check
 * can't disagree with what runs. Read next: ref/ (what each kernel computes), then x86/, arm/. */
#include "kernel/kernel.h"
#include "kernel/kernel_list.h"
#include "kernel/panel.h"
#include "kernel/ref/ref.h"

#if defined(__x86_64__) || defined(_M_X64)
#include "kernel/x86/x86.h"
#elif defined(__aarch64__) || defined(_M_ARM64)
#include "kernel/arm/arm.h"
#endif

#include <string.h>

enum { N_POINTERS = sizeof(pith_kernels) / sizeof(pith_mul_fn) };

typedef struct filling {
    pith_kernels *table;
    const char *name[N_POINTERS]; /* of the function in each slot, in the order of the struct */
} filling;

/* Index of a slot among the pointers of the table. */
#define AT(slot)            (offsetof(pith_kernels, slot) / sizeof(pith_mul_fn))
#define SET(slot, function) (f->table->slot = (function), f->name[AT(slot)] = #function)

static void fill_ref(filling *f) {
#define SET_TYPED(op, TYPE, type) SET(op[PITH_TYPE_##TYPE], pith_##op##_##type##_ref);
#define SET_PLAIN(op)             SET(op, pith_##op##_ref);
    PITH_KERNEL_LIST(SET_TYPED, SET_PLAIN)
#undef SET_TYPED
#undef SET_PLAIN
}

#if defined(__x86_64__) || defined(_M_X64)
static void products_avx2(filling *f) {
    SET(mul[PITH_TYPE_F32], pith_mul_f32_avx2);
    SET(mul[PITH_TYPE_F16], pith_mul_f16_avx2);
    SET(mul[PITH_TYPE_BF16], pith_mul_bf16_avx2);
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_avx2);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_avx2);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_avx2);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_avx2);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_avx2);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_avx2);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_avx2);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_avx2);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_avx2);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_avx2);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_avx2);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_avx2);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_avx2);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_avx2);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_avx2);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_avx2);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_avx2);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_avx2);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_avx2);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_avx2);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_avx2);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_avx2);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_avx2);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_avx2);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_avx2);
    SET(pack[PITH_TYPE_F32], pith_pack_f32_avx2);
    SET(pack[PITH_TYPE_F16], pith_pack_f16_avx2);
    SET(pack[PITH_TYPE_BF16], pith_pack_bf16_avx2);
    SET(pack[PITH_TYPE_Q4_0], pith_pack_q4_0_avx2);
    SET(pack[PITH_TYPE_Q4_1], pith_pack_q4_1_avx2);
    SET(pack[PITH_TYPE_Q5_0], pith_pack_q5_0_avx2);
    SET(pack[PITH_TYPE_Q5_1], pith_pack_q5_1_avx2);
    SET(pack[PITH_TYPE_Q8_0], pith_pack_q8_0_avx2);
    SET(pack[PITH_TYPE_Q4_K], pith_pack_q4_k_avx2);
    SET(pack[PITH_TYPE_Q5_K], pith_pack_q5_k_avx2);
    SET(pack[PITH_TYPE_Q6_K], pith_pack_q6_k_avx2);
    SET(pack[PITH_TYPE_IQ4_NL], pith_pack_iq4_nl_avx2);
    SET(pack[PITH_TYPE_IQ4_XS], pith_pack_iq4_xs_avx2);
    SET(pack[PITH_TYPE_MXFP4], pith_pack_mxfp4_avx2);
    SET(pack[PITH_TYPE_NVFP4], pith_pack_nvfp4_avx2);
    SET(pack[PITH_TYPE_Q2_K], pith_pack_q2_k_avx2);
    SET(pack[PITH_TYPE_Q3_K], pith_pack_q3_k_avx2);
    SET(pack[PITH_TYPE_IQ1_S], pith_pack_iq1_s_avx2);
    SET(pack[PITH_TYPE_IQ1_M], pith_pack_iq1_m_avx2);
    SET(pack[PITH_TYPE_IQ2_XXS], pith_pack_iq2_xxs_avx2);
    SET(pack[PITH_TYPE_IQ2_XS], pith_pack_iq2_xs_avx2);
    SET(pack[PITH_TYPE_IQ2_S], pith_pack_iq2_s_avx2);
    SET(pack[PITH_TYPE_IQ3_XXS], pith_pack_iq3_xxs_avx2);
    SET(pack[PITH_TYPE_IQ3_S], pith_pack_iq3_s_avx2);
    SET(pack[PITH_TYPE_TQ1_0], pith_pack_tq1_0_avx2);
    SET(pack[PITH_TYPE_TQ2_0], pith_pack_tq2_0_avx2);
    SET(pack[PITH_TYPE_Q1_0], pith_pack_q1_0_avx2);
    SET(pack[PITH_TYPE_Q2_0], pith_pack_q2_0_avx2);
}

static void climb_avx2(filling *f) {
    products_avx2(f);
    SET(quantize, pith_quantize_avx2);
    SET(quantize_fast, pith_quantize_fast_avx2);
    SET(rms_norm, pith_rms_norm_avx2);
    SET(layer_norm, pith_layer_norm_avx2);
    SET(silu_mul, pith_silu_mul_avx2);
    SET(gelu_mul, pith_gelu_mul_avx2);
    SET(gelu_erf_mul, pith_gelu_erf_mul_avx2);
    SET(relu2_mul, pith_relu2_mul_avx2);
    SET(silu, pith_silu_avx2);
    SET(gelu, pith_gelu_avx2);
    SET(gelu_erf, pith_gelu_erf_avx2);
    SET(relu2, pith_relu2_avx2);
    SET(add, pith_add_avx2);
    SET(mul_elements, pith_mul_elements_avx2);
    SET(scale, pith_scale_avx2);
    SET(softcap, pith_softcap_avx2);
    SET(rope_norm, pith_rope_norm_avx2);
    SET(rope_neox, pith_rope_neox_avx2);
    SET(attend_f32, pith_attend_f32_avx2);
    SET(attend_f16, pith_attend_f16_avx2);
    SET(attend_i8, pith_attend_i8_avx2);
    SET(merge, pith_merge_avx2);
    SET(kv_put_f32, pith_kv_put_f32_avx2);
    SET(kv_put_f16, pith_kv_put_f16_avx2);
    SET(kv_put_i8, pith_kv_put_i8_avx2);
    SET(max, pith_max_avx2);
    SET(exp, pith_exp_avx2);
}

static void fast_avxvnni(filling *f) {
    SET(mul_fast[PITH_TYPE_Q4_K], pith_mul_fast_q4_k_avxvnni);
    SET(mul_fast[PITH_TYPE_Q5_K], pith_mul_fast_q5_k_avxvnni);
    SET(mul_fast[PITH_TYPE_Q6_K], pith_mul_fast_q6_k_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ4_XS], pith_mul_fast_iq4_xs_avxvnni);
    SET(mul_fast[PITH_TYPE_Q2_K], pith_mul_fast_q2_k_avxvnni);
    SET(mul_fast[PITH_TYPE_Q3_K], pith_mul_fast_q3_k_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ1_S], pith_mul_fast_iq1_s_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ1_M], pith_mul_fast_iq1_m_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ2_XXS], pith_mul_fast_iq2_xxs_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ2_XS], pith_mul_fast_iq2_xs_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ2_S], pith_mul_fast_iq2_s_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ3_XXS], pith_mul_fast_iq3_xxs_avxvnni);
    SET(mul_fast[PITH_TYPE_IQ3_S], pith_mul_fast_iq3_s_avxvnni);
    SET(mul_fast[PITH_TYPE_TQ1_0], pith_mul_fast_tq1_0_avxvnni);
    SET(mul_fast[PITH_TYPE_TQ2_0], pith_mul_fast_tq2_0_avxvnni);
}

static void climb_avxvnni(filling *f) {
    fast_avxvnni(f);
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_avxvnni);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_avxvnni);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_avxvnni);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_avxvnni);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_avxvnni);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_avxvnni);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_avxvnni);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_avxvnni);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_avxvnni);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_avxvnni);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_avxvnni);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_avxvnni);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_avxvnni);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_avxvnni);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_avxvnni);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_avxvnni);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_avxvnni);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_avxvnni);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_avxvnni);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_avxvnni);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_avxvnni);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_avxvnni);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_avxvnni);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_avxvnni);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_avxvnni);
    SET(attend_i8, pith_attend_i8_avxvnni);
}

static void products_avx512(filling *f) {
    SET(mul[PITH_TYPE_F32], pith_mul_f32_avx512);
    SET(mul[PITH_TYPE_F16], pith_mul_f16_avx512);
    SET(mul[PITH_TYPE_BF16], pith_mul_bf16_avx512);
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_avx512);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_avx512);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_avx512);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_avx512);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_avx512);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_avx512);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_avx512);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_avx512);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_avx512);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_avx512);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_avx512);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_avx512);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_avx512);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_avx512);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_avx512);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_avx512);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_avx512);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_avx512);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_avx512);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_avx512);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_avx512);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_avx512);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_avx512);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_avx512);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_avx512);
    SET(pack[PITH_TYPE_F32], pith_pack_f32_avx512);
    SET(pack[PITH_TYPE_F16], pith_pack_f16_avx512);
    SET(pack[PITH_TYPE_BF16], pith_pack_bf16_avx512);
    SET(pack[PITH_TYPE_Q4_0], pith_pack_q4_0_avx512);
    SET(pack[PITH_TYPE_Q4_1], pith_pack_q4_1_avx512);
    SET(pack[PITH_TYPE_Q5_0], pith_pack_q5_0_avx512);
    SET(pack[PITH_TYPE_Q5_1], pith_pack_q5_1_avx512);
    SET(pack[PITH_TYPE_Q8_0], pith_pack_q8_0_avx512);
    SET(pack[PITH_TYPE_Q4_K], pith_pack_q4_k_avx512);
    SET(pack[PITH_TYPE_Q5_K], pith_pack_q5_k_avx512);
    SET(pack[PITH_TYPE_Q6_K], pith_pack_q6_k_avx512);
    SET(pack[PITH_TYPE_IQ4_NL], pith_pack_iq4_nl_avx512);
    SET(pack[PITH_TYPE_IQ4_XS], pith_pack_iq4_xs_avx512);
    SET(pack[PITH_TYPE_MXFP4], pith_pack_mxfp4_avx512);
    SET(pack[PITH_TYPE_NVFP4], pith_pack_nvfp4_avx512);
    SET(pack[PITH_TYPE_Q2_K], pith_pack_q2_k_avx512);
    SET(pack[PITH_TYPE_Q3_K], pith_pack_q3_k_avx512);
    SET(pack[PITH_TYPE_IQ1_S], pith_pack_iq1_s_avx512);
    SET(pack[PITH_TYPE_IQ1_M], pith_pack_iq1_m_avx512);
    SET(pack[PITH_TYPE_IQ2_XXS], pith_pack_iq2_xxs_avx512);
    SET(pack[PITH_TYPE_IQ2_XS], pith_pack_iq2_xs_avx512);
    SET(pack[PITH_TYPE_IQ2_S], pith_pack_iq2_s_avx512);
    SET(pack[PITH_TYPE_IQ3_XXS], pith_pack_iq3_xxs_avx512);
    SET(pack[PITH_TYPE_IQ3_S], pith_pack_iq3_s_avx512);
    SET(pack[PITH_TYPE_TQ1_0], pith_pack_tq1_0_avx512);
    SET(pack[PITH_TYPE_TQ2_0], pith_pack_tq2_0_avx512);
    SET(pack[PITH_TYPE_Q1_0], pith_pack_q1_0_avx512);
    SET(pack[PITH_TYPE_Q2_0], pith_pack_q2_0_avx512);
}

static void fast_avx512(filling *f) {
    SET(mul_fast[PITH_TYPE_Q4_K], pith_mul_fast_q4_k_avx512);
    SET(mul_fast[PITH_TYPE_Q5_K], pith_mul_fast_q5_k_avx512);
    SET(mul_fast[PITH_TYPE_Q6_K], pith_mul_fast_q6_k_avx512);
    SET(mul_fast[PITH_TYPE_IQ4_XS], pith_mul_fast_iq4_xs_avx512);
    SET(mul_fast[PITH_TYPE_Q2_K], pith_mul_fast_q2_k_avx512);
    SET(mul_fast[PITH_TYPE_Q3_K], pith_mul_fast_q3_k_avx512);
    SET(mul_fast[PITH_TYPE_IQ1_S], pith_mul_fast_iq1_s_avx512);
    SET(mul_fast[PITH_TYPE_IQ1_M], pith_mul_fast_iq1_m_avx512);
    SET(mul_fast[PITH_TYPE_IQ2_XXS], pith_mul_fast_iq2_xxs_avx512);
    SET(mul_fast[PITH_TYPE_IQ2_XS], pith_mul_fast_iq2_xs_avx512);
    SET(mul_fast[PITH_TYPE_IQ2_S], pith_mul_fast_iq2_s_avx512);
    SET(mul_fast[PITH_TYPE_IQ3_XXS], pith_mul_fast_iq3_xxs_avx512);
    SET(mul_fast[PITH_TYPE_IQ3_S], pith_mul_fast_iq3_s_avx512);
    SET(mul_fast[PITH_TYPE_TQ1_0], pith_mul_fast_tq1_0_avx512);
    SET(mul_fast[PITH_TYPE_TQ2_0], pith_mul_fast_tq2_0_avx512);
    SET(quantize_fast, pith_quantize_fast_avx512);
}

static void climb_avx512(filling *f) {
    products_avx512(f);
    fast_avx512(f);
    SET(quantize, pith_quantize_avx512);
    SET(rms_norm, pith_rms_norm_avx512);
    SET(layer_norm, pith_layer_norm_avx512);
    SET(silu_mul, pith_silu_mul_avx512);
    SET(gelu_mul, pith_gelu_mul_avx512);
    SET(gelu_erf_mul, pith_gelu_erf_mul_avx512);
    SET(relu2_mul, pith_relu2_mul_avx512);
    SET(silu, pith_silu_avx512);
    SET(gelu, pith_gelu_avx512);
    SET(gelu_erf, pith_gelu_erf_avx512);
    SET(relu2, pith_relu2_avx512);
    SET(add, pith_add_avx512);
    SET(mul_elements, pith_mul_elements_avx512);
    SET(scale, pith_scale_avx512);
    SET(softcap, pith_softcap_avx512);
    SET(rope_norm, pith_rope_norm_avx512);
    SET(rope_neox, pith_rope_neox_avx512);
    SET(attend_f32, pith_attend_f32_avx512);
    SET(attend_f16, pith_attend_f16_avx512);
    SET(attend_i8, pith_attend_i8_avx512);
    SET(merge, pith_merge_avx512);
    SET(kv_put_f32, pith_kv_put_f32_avx512);
    SET(kv_put_f16, pith_kv_put_f16_avx512);
    SET(kv_put_i8, pith_kv_put_i8_avx512);
    SET(max, pith_max_avx512);
    SET(exp, pith_exp_avx512);
}

static void climb_amx(filling *f) {
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_amx);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_amx);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_amx);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_amx);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_amx);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_amx);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_amx);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_amx);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_amx);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_amx);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_amx);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_amx);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_amx);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_amx);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_amx);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_amx);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_amx);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_amx);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_amx);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_amx);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_amx);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_amx);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_amx);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_amx);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_amx);
    SET(mul_fast[PITH_TYPE_Q4_K], pith_mul_fast_q4_k_amx);
    SET(mul_fast[PITH_TYPE_Q5_K], pith_mul_fast_q5_k_amx);
    SET(mul_fast[PITH_TYPE_Q6_K], pith_mul_fast_q6_k_amx);
    SET(mul_fast[PITH_TYPE_IQ4_XS], pith_mul_fast_iq4_xs_amx);
    SET(mul_fast[PITH_TYPE_Q2_K], pith_mul_fast_q2_k_amx);
    SET(mul_fast[PITH_TYPE_Q3_K], pith_mul_fast_q3_k_amx);
    SET(mul_fast[PITH_TYPE_IQ1_S], pith_mul_fast_iq1_s_amx);
    SET(mul_fast[PITH_TYPE_IQ1_M], pith_mul_fast_iq1_m_amx);
    SET(mul_fast[PITH_TYPE_IQ2_XXS], pith_mul_fast_iq2_xxs_amx);
    SET(mul_fast[PITH_TYPE_IQ2_XS], pith_mul_fast_iq2_xs_amx);
    SET(mul_fast[PITH_TYPE_IQ2_S], pith_mul_fast_iq2_s_amx);
    SET(mul_fast[PITH_TYPE_IQ3_XXS], pith_mul_fast_iq3_xxs_amx);
    SET(mul_fast[PITH_TYPE_IQ3_S], pith_mul_fast_iq3_s_amx);
    SET(mul_fast[PITH_TYPE_TQ1_0], pith_mul_fast_tq1_0_amx);
    SET(mul_fast[PITH_TYPE_TQ2_0], pith_mul_fast_tq2_0_amx);
}

static void climb_x86(filling *f, uint32_t features) {
    if (features & PITH_CPU_AVX2) climb_avx2(f);
    if (features & PITH_CPU_AVXVNNI) climb_avxvnni(f);
    if (features & PITH_CPU_AVX512) climb_avx512(f);
    if (features & PITH_CPU_AMX) climb_amx(f);
}
#elif defined(__aarch64__) || defined(_M_ARM64)
static void products_neon(filling *f) {
    SET(mul[PITH_TYPE_F32], pith_mul_f32_neon);
    SET(mul[PITH_TYPE_F16], pith_mul_f16_neon);
    SET(mul[PITH_TYPE_BF16], pith_mul_bf16_neon);
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_neon);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_neon);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_neon);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_neon);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_neon);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_neon);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_neon);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_neon);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_neon);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_neon);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_neon);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_neon);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_neon);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_neon);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_neon);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_neon);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_neon);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_neon);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_neon);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_neon);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_neon);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_neon);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_neon);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_neon);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_neon);
    SET(pack[PITH_TYPE_F32], pith_pack_f32_neon);
    SET(pack[PITH_TYPE_F16], pith_pack_f16_neon);
    SET(pack[PITH_TYPE_BF16], pith_pack_bf16_neon);
    SET(pack[PITH_TYPE_Q4_0], pith_pack_q4_0_neon);
    SET(pack[PITH_TYPE_Q4_1], pith_pack_q4_1_neon);
    SET(pack[PITH_TYPE_Q5_0], pith_pack_q5_0_neon);
    SET(pack[PITH_TYPE_Q5_1], pith_pack_q5_1_neon);
    SET(pack[PITH_TYPE_Q8_0], pith_pack_q8_0_neon);
    SET(pack[PITH_TYPE_Q4_K], pith_pack_q4_k_neon);
    SET(pack[PITH_TYPE_Q5_K], pith_pack_q5_k_neon);
    SET(pack[PITH_TYPE_Q6_K], pith_pack_q6_k_neon);
    SET(pack[PITH_TYPE_IQ4_NL], pith_pack_iq4_nl_neon);
    SET(pack[PITH_TYPE_IQ4_XS], pith_pack_iq4_xs_neon);
    SET(pack[PITH_TYPE_MXFP4], pith_pack_mxfp4_neon);
    SET(pack[PITH_TYPE_NVFP4], pith_pack_nvfp4_neon);
    SET(pack[PITH_TYPE_Q2_K], pith_pack_q2_k_neon);
    SET(pack[PITH_TYPE_Q3_K], pith_pack_q3_k_neon);
    SET(pack[PITH_TYPE_IQ1_S], pith_pack_iq1_s_neon);
    SET(pack[PITH_TYPE_IQ1_M], pith_pack_iq1_m_neon);
    SET(pack[PITH_TYPE_IQ2_XXS], pith_pack_iq2_xxs_neon);
    SET(pack[PITH_TYPE_IQ2_XS], pith_pack_iq2_xs_neon);
    SET(pack[PITH_TYPE_IQ2_S], pith_pack_iq2_s_neon);
    SET(pack[PITH_TYPE_IQ3_XXS], pith_pack_iq3_xxs_neon);
    SET(pack[PITH_TYPE_IQ3_S], pith_pack_iq3_s_neon);
    SET(pack[PITH_TYPE_TQ1_0], pith_pack_tq1_0_neon);
    SET(pack[PITH_TYPE_TQ2_0], pith_pack_tq2_0_neon);
    SET(pack[PITH_TYPE_Q1_0], pith_pack_q1_0_neon);
    SET(pack[PITH_TYPE_Q2_0], pith_pack_q2_0_neon);
}

static void climb_neon(filling *f) {
    products_neon(f);
    SET(quantize, pith_quantize_neon);
    SET(quantize_fast, pith_quantize_fast_neon);
    SET(rms_norm, pith_rms_norm_neon);
    SET(layer_norm, pith_layer_norm_neon);
    SET(silu_mul, pith_silu_mul_neon);
    SET(gelu_mul, pith_gelu_mul_neon);
    SET(gelu_erf_mul, pith_gelu_erf_mul_neon);
    SET(relu2_mul, pith_relu2_mul_neon);
    SET(silu, pith_silu_neon);
    SET(gelu, pith_gelu_neon);
    SET(gelu_erf, pith_gelu_erf_neon);
    SET(relu2, pith_relu2_neon);
    SET(add, pith_add_neon);
    SET(mul_elements, pith_mul_elements_neon);
    SET(scale, pith_scale_neon);
    SET(softcap, pith_softcap_neon);
    SET(rope_norm, pith_rope_norm_neon);
    SET(rope_neox, pith_rope_neox_neon);
    SET(attend_f32, pith_attend_f32_neon);
    SET(attend_f16, pith_attend_f16_neon);
    SET(attend_i8, pith_attend_i8_neon);
    SET(merge, pith_merge_neon);
    SET(kv_put_f32, pith_kv_put_f32_neon);
    SET(kv_put_f16, pith_kv_put_f16_neon);
    SET(kv_put_i8, pith_kv_put_i8_neon);
    SET(max, pith_max_neon);
    SET(exp, pith_exp_neon);
}

static void climb_dotprod(filling *f) {
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_dotprod);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_dotprod);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_dotprod);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_dotprod);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_dotprod);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_dotprod);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_dotprod);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_dotprod);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_dotprod);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_dotprod);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_dotprod);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_dotprod);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_dotprod);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_dotprod);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_dotprod);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_dotprod);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_dotprod);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_dotprod);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_dotprod);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_dotprod);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_dotprod);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_dotprod);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_dotprod);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_dotprod);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_dotprod);
    SET(mul_fast[PITH_TYPE_Q4_K], pith_mul_fast_q4_k_dotprod);
    SET(mul_fast[PITH_TYPE_Q5_K], pith_mul_fast_q5_k_dotprod);
    SET(mul_fast[PITH_TYPE_Q6_K], pith_mul_fast_q6_k_dotprod);
    SET(mul_fast[PITH_TYPE_Q2_K], pith_mul_fast_q2_k_dotprod);
    SET(mul_fast[PITH_TYPE_Q3_K], pith_mul_fast_q3_k_dotprod);
    SET(mul_fast[PITH_TYPE_IQ4_XS], pith_mul_fast_iq4_xs_dotprod);
    SET(mul_fast[PITH_TYPE_TQ2_0], pith_mul_fast_tq2_0_dotprod);
    SET(mul_fast[PITH_TYPE_IQ1_S], pith_mul_fast_iq1_s_dotprod);
    SET(mul_fast[PITH_TYPE_IQ1_M], pith_mul_fast_iq1_m_dotprod);
    SET(mul_fast[PITH_TYPE_IQ2_XXS], pith_mul_fast_iq2_xxs_dotprod);
    SET(mul_fast[PITH_TYPE_IQ2_XS], pith_mul_fast_iq2_xs_dotprod);
    SET(mul_fast[PITH_TYPE_IQ2_S], pith_mul_fast_iq2_s_dotprod);
    SET(mul_fast[PITH_TYPE_IQ3_XXS], pith_mul_fast_iq3_xxs_dotprod);
    SET(mul_fast[PITH_TYPE_IQ3_S], pith_mul_fast_iq3_s_dotprod);
    SET(mul_fast[PITH_TYPE_TQ1_0], pith_mul_fast_tq1_0_dotprod);
    SET(attend_i8, pith_attend_i8_dotprod);
}

static void climb_i8mm(filling *f) {
    SET(mul[PITH_TYPE_Q4_0], pith_mul_q4_0_i8mm);
    SET(mul[PITH_TYPE_Q4_1], pith_mul_q4_1_i8mm);
    SET(mul[PITH_TYPE_Q5_0], pith_mul_q5_0_i8mm);
    SET(mul[PITH_TYPE_Q5_1], pith_mul_q5_1_i8mm);
    SET(mul[PITH_TYPE_Q8_0], pith_mul_q8_0_i8mm);
    SET(mul[PITH_TYPE_Q4_K], pith_mul_q4_k_i8mm);
    SET(mul[PITH_TYPE_Q5_K], pith_mul_q5_k_i8mm);
    SET(mul[PITH_TYPE_Q6_K], pith_mul_q6_k_i8mm);
    SET(mul[PITH_TYPE_IQ4_NL], pith_mul_iq4_nl_i8mm);
    SET(mul[PITH_TYPE_IQ4_XS], pith_mul_iq4_xs_i8mm);
    SET(mul[PITH_TYPE_MXFP4], pith_mul_mxfp4_i8mm);
    SET(mul[PITH_TYPE_NVFP4], pith_mul_nvfp4_i8mm);
    SET(mul[PITH_TYPE_Q2_K], pith_mul_q2_k_i8mm);
    SET(mul[PITH_TYPE_Q3_K], pith_mul_q3_k_i8mm);
    SET(mul[PITH_TYPE_IQ1_S], pith_mul_iq1_s_i8mm);
    SET(mul[PITH_TYPE_IQ1_M], pith_mul_iq1_m_i8mm);
    SET(mul[PITH_TYPE_IQ2_XXS], pith_mul_iq2_xxs_i8mm);
    SET(mul[PITH_TYPE_IQ2_XS], pith_mul_iq2_xs_i8mm);
    SET(mul[PITH_TYPE_IQ2_S], pith_mul_iq2_s_i8mm);
    SET(mul[PITH_TYPE_IQ3_XXS], pith_mul_iq3_xxs_i8mm);
    SET(mul[PITH_TYPE_IQ3_S], pith_mul_iq3_s_i8mm);
    SET(mul[PITH_TYPE_TQ1_0], pith_mul_tq1_0_i8mm);
    SET(mul[PITH_TYPE_TQ2_0], pith_mul_tq2_0_i8mm);
    SET(mul[PITH_TYPE_Q1_0], pith_mul_q1_0_i8mm);
    SET(mul[PITH_TYPE_Q2_0], pith_mul_q2_0_i8mm);
    SET(mul_fast[PITH_TYPE_Q4_K], pith_mul_fast_q4_k_i8mm);
    SET(mul_fast[PITH_TYPE_Q5_K], pith_mul_fast_q5_k_i8mm);
    SET(mul_fast[PITH_TYPE_Q6_K], pith_mul_fast_q6_k_i8mm);
    SET(mul_fast[PITH_TYPE_Q2_K], pith_mul_fast_q2_k_i8mm);
    SET(mul_fast[PITH_TYPE_Q3_K], pith_mul_fast_q3_k_i8mm);
    SET(mul_fast[PITH_TYPE_IQ4_XS], pith_mul_fast_iq4_xs_i8mm);
    SET(mul_fast[PITH_TYPE_TQ2_0], pith_mul_fast_tq2_0_i8mm);
    SET(mul_fast[PITH_TYPE_IQ1_S], pith_mul_fast_iq1_s_i8mm);
    SET(mul_fast[PITH_TYPE_IQ1_M], pith_mul_fast_iq1_m_i8mm);
    SET(mul_fast[PITH_TYPE_IQ2_XXS], pith_mul_fast_iq2_xxs_i8mm);
    SET(mul_fast[PITH_TYPE_IQ2_XS], pith_mul_fast_iq2_xs_i8mm);
    SET(mul_fast[PITH_TYPE_IQ2_S], pith_mul_fast_iq2_s_i8mm);
    SET(mul_fast[PITH_TYPE_IQ3_XXS], pith_mul_fast_iq3_xxs_i8mm);
    SET(mul_fast[PITH_TYPE_IQ3_S], pith_mul_fast_iq3_s_i8mm);
    SET(mul_fast[PITH_TYPE_TQ1_0], pith_mul_fast_tq1_0_i8mm);
}

static void climb_arm(filling *f, uint32_t features) {
    if (features & PITH_CPU_NEON) climb_neon(f);
    if (features & PITH_CPU_DOTPROD) climb_dotprod(f);
    if (features & PITH_CPU_I8MM) climb_i8mm(f);
}
#endif

static void fill(filling *f, pith_kernels *table, uint32_t features) {
    pith_mul_fn ref[PITH_TYPE_COUNT];
    memset(table, 0, sizeof *table);
    memset(f, 0, sizeof *f);
    f->table = table;
    fill_ref(f);
    memcpy(ref, table->mul_fast, sizeof ref);
#if defined(__x86_64__) || defined(_M_X64)
    climb_x86(f, features);
#elif defined(__aarch64__) || defined(_M_ARM64)
    climb_arm(f, features);
#else
    (void)features;
#endif
    for (int t = 0; t < PITH_TYPE_COUNT; t++) table->fast_pays[t] = table->mul_fast[t] != ref[t];
}

void pith_kernels_init(pith_kernels *kernels, uint32_t features) {
    filling f;
    fill(&f, kernels, features);
}

bool pith_kernels_name(uint32_t features, size_t index, const char **slot, const char **function) {
    static const struct {
        const char *slot;
        size_t at;
    } list[] = {
#define ROW_TYPED(op, TYPE, type) {#op "[" #TYPE "]", AT(op[PITH_TYPE_##TYPE])},
#define ROW_PLAIN(op)             {#op, AT(op)},
        PITH_KERNEL_LIST(ROW_TYPED, ROW_PLAIN)
#undef ROW_TYPED
#undef ROW_PLAIN
    };
    pith_kernels table;
    filling f;
    if (index >= sizeof list / sizeof *list) return false;
    fill(&f, &table, features);
    *slot = list[index].slot;
    *function = f.name[list[index].at];
    return true;
}

size_t pith_panel_bytes(pith_type type, uint32_t k) {
    uint64_t row;
    switch (type) {
#define CASE_TYPED(op, TYPE, type_name) case PITH_TYPE_##TYPE:
        PITH_PANEL_TYPES(CASE_TYPED, panel)
#undef CASE_TYPED
        return pith_type_row_bytes(type, k, &row) ? PITH_PANEL_ROWS * (size_t)row : 0;
    default: return 0;
    }
}

bool pith_mul_takes_q8(pith_type type) {
    return type != PITH_TYPE_F32 && type != PITH_TYPE_F16 && type != PITH_TYPE_BF16 &&
           pith_panel_bytes(type, 256) > 0;
}
