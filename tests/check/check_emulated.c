/* SPDX-License-Identifier: Apache-2.0
 * Tiers that the machine at hand may lack, compiled a second time against instructions that it has
 * (CMakeLists.txt here).
 *
 *   avxvnni  the shipped sources with vpdpbusd in its AVX-512 encoding, 256 bits wide; the
 *            instruction computes the same
 *   amx      the shipped sources with the tile instructions in plain C (emulated_tiles.h)
 *
 * Invariant: nothing but those instructions differs, so what passes here passes on a machine that
 * has them. */
#include "check.h"

#if defined(CHECK_EMULATED_X86)

pith_mul_kernel check_mul_q4_0_avxvnni, check_mul_q4_1_avxvnni, check_mul_q5_0_avxvnni,
    check_mul_q5_1_avxvnni, check_mul_q8_0_avxvnni, check_mul_q4_k_avxvnni, check_mul_q5_k_avxvnni,
    check_mul_q6_k_avxvnni, check_mul_iq4_nl_avxvnni, check_mul_iq4_xs_avxvnni,
    check_mul_mxfp4_avxvnni, check_mul_nvfp4_avxvnni, check_mul_q2_k_avxvnni,
    check_mul_q3_k_avxvnni, check_mul_iq1_s_avxvnni, check_mul_iq1_m_avxvnni,
    check_mul_iq2_xxs_avxvnni, check_mul_iq2_xs_avxvnni, check_mul_iq2_s_avxvnni,
    check_mul_iq3_xxs_avxvnni, check_mul_iq3_s_avxvnni, check_mul_tq1_0_avxvnni,
    check_mul_tq2_0_avxvnni, check_mul_q1_0_avxvnni, check_mul_q2_0_avxvnni;
pith_mul_kernel check_mul_fast_q4_k_avxvnni, check_mul_fast_q5_k_avxvnni,
    check_mul_fast_q6_k_avxvnni, check_mul_fast_iq4_xs_avxvnni, check_mul_fast_q2_k_avxvnni,
    check_mul_fast_q3_k_avxvnni, check_mul_fast_iq1_s_avxvnni, check_mul_fast_iq1_m_avxvnni,
    check_mul_fast_iq2_xxs_avxvnni, check_mul_fast_iq2_xs_avxvnni, check_mul_fast_iq2_s_avxvnni,
    check_mul_fast_iq3_xxs_avxvnni, check_mul_fast_iq3_s_avxvnni, check_mul_fast_tq1_0_avxvnni,
    check_mul_fast_tq2_0_avxvnni;
pith_attend_kernel check_attend_i8_avxvnni;
pith_mul_kernel check_mul_q4_0_amx, check_mul_q4_1_amx, check_mul_q5_0_amx, check_mul_q5_1_amx,
    check_mul_q8_0_amx, check_mul_q4_k_amx, check_mul_q5_k_amx, check_mul_q6_k_amx,
    check_mul_iq4_nl_amx, check_mul_iq4_xs_amx, check_mul_mxfp4_amx, check_mul_nvfp4_amx,
    check_mul_q2_k_amx, check_mul_q3_k_amx, check_mul_iq1_s_amx, check_mul_iq1_m_amx,
    check_mul_iq2_xxs_amx, check_mul_iq2_xs_amx, check_mul_iq2_s_amx, check_mul_iq3_xxs_amx,
    check_mul_iq3_s_amx, check_mul_tq1_0_amx, check_mul_tq2_0_amx, check_mul_q1_0_amx,
    check_mul_q2_0_amx;
pith_mul_kernel check_mul_fast_q4_k_amx, check_mul_fast_q5_k_amx, check_mul_fast_q6_k_amx,
    check_mul_fast_iq4_xs_amx, check_mul_fast_q2_k_amx, check_mul_fast_q3_k_amx,
    check_mul_fast_iq1_s_amx, check_mul_fast_iq1_m_amx, check_mul_fast_iq2_xxs_amx,
    check_mul_fast_iq2_xs_amx, check_mul_fast_iq2_s_amx, check_mul_fast_iq3_xxs_amx,
    check_mul_fast_iq3_s_amx, check_mul_fast_tq1_0_amx, check_mul_fast_tq2_0_amx;

static void set_avxvnni(pith_kernels *kernels) {
    kernels->mul[PITH_TYPE_Q4_0] = check_mul_q4_0_avxvnni;
    kernels->mul[PITH_TYPE_Q4_1] = check_mul_q4_1_avxvnni;
    kernels->mul[PITH_TYPE_Q5_0] = check_mul_q5_0_avxvnni;
    kernels->mul[PITH_TYPE_Q5_1] = check_mul_q5_1_avxvnni;
    kernels->mul[PITH_TYPE_Q8_0] = check_mul_q8_0_avxvnni;
    kernels->mul[PITH_TYPE_Q4_K] = check_mul_q4_k_avxvnni;
    kernels->mul[PITH_TYPE_Q5_K] = check_mul_q5_k_avxvnni;
    kernels->mul[PITH_TYPE_Q6_K] = check_mul_q6_k_avxvnni;
    kernels->mul[PITH_TYPE_IQ4_NL] = check_mul_iq4_nl_avxvnni;
    kernels->mul[PITH_TYPE_IQ4_XS] = check_mul_iq4_xs_avxvnni;
    kernels->mul[PITH_TYPE_MXFP4] = check_mul_mxfp4_avxvnni;
    kernels->mul[PITH_TYPE_NVFP4] = check_mul_nvfp4_avxvnni;
    kernels->mul[PITH_TYPE_Q2_K] = check_mul_q2_k_avxvnni;
    kernels->mul[PITH_TYPE_Q3_K] = check_mul_q3_k_avxvnni;
    kernels->mul[PITH_TYPE_IQ1_S] = check_mul_iq1_s_avxvnni;
    kernels->mul[PITH_TYPE_IQ1_M] = check_mul_iq1_m_avxvnni;
    kernels->mul[PITH_TYPE_IQ2_XXS] = check_mul_iq2_xxs_avxvnni;
    kernels->mul[PITH_TYPE_IQ2_XS] = check_mul_iq2_xs_avxvnni;
    kernels->mul[PITH_TYPE_IQ2_S] = check_mul_iq2_s_avxvnni;
    kernels->mul[PITH_TYPE_IQ3_XXS] = check_mul_iq3_xxs_avxvnni;
    kernels->mul[PITH_TYPE_IQ3_S] = check_mul_iq3_s_avxvnni;
    kernels->mul[PITH_TYPE_TQ1_0] = check_mul_tq1_0_avxvnni;
    kernels->mul[PITH_TYPE_TQ2_0] = check_mul_tq2_0_avxvnni;
    kernels->mul[PITH_TYPE_Q1_0] = check_mul_q1_0_avxvnni;
    kernels->mul[PITH_TYPE_Q2_0] = check_mul_q2_0_avxvnni;
    kernels->mul_fast[PITH_TYPE_Q4_K] = check_mul_fast_q4_k_avxvnni;
    kernels->mul_fast[PITH_TYPE_Q5_K] = check_mul_fast_q5_k_avxvnni;
    kernels->mul_fast[PITH_TYPE_Q6_K] = check_mul_fast_q6_k_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ4_XS] = check_mul_fast_iq4_xs_avxvnni;
    kernels->mul_fast[PITH_TYPE_Q2_K] = check_mul_fast_q2_k_avxvnni;
    kernels->mul_fast[PITH_TYPE_Q3_K] = check_mul_fast_q3_k_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ1_S] = check_mul_fast_iq1_s_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ1_M] = check_mul_fast_iq1_m_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ2_XXS] = check_mul_fast_iq2_xxs_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ2_XS] = check_mul_fast_iq2_xs_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ2_S] = check_mul_fast_iq2_s_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ3_XXS] = check_mul_fast_iq3_xxs_avxvnni;
    kernels->mul_fast[PITH_TYPE_IQ3_S] = check_mul_fast_iq3_s_avxvnni;
    kernels->mul_fast[PITH_TYPE_TQ1_0] = check_mul_fast_tq1_0_avxvnni;
    kernels->mul_fast[PITH_TYPE_TQ2_0] = check_mul_fast_tq2_0_avxvnni;
    kernels->attend_i8 = check_attend_i8_avxvnni;
}

static void set_amx(pith_kernels *kernels) {
    kernels->mul[PITH_TYPE_Q4_0] = check_mul_q4_0_amx;
    kernels->mul[PITH_TYPE_Q4_1] = check_mul_q4_1_amx;
    kernels->mul[PITH_TYPE_Q5_0] = check_mul_q5_0_amx;
    kernels->mul[PITH_TYPE_Q5_1] = check_mul_q5_1_amx;
    kernels->mul[PITH_TYPE_Q8_0] = check_mul_q8_0_amx;
    kernels->mul[PITH_TYPE_Q4_K] = check_mul_q4_k_amx;
    kernels->mul[PITH_TYPE_Q5_K] = check_mul_q5_k_amx;
    kernels->mul[PITH_TYPE_Q6_K] = check_mul_q6_k_amx;
    kernels->mul[PITH_TYPE_IQ4_NL] = check_mul_iq4_nl_amx;
    kernels->mul[PITH_TYPE_IQ4_XS] = check_mul_iq4_xs_amx;
    kernels->mul[PITH_TYPE_MXFP4] = check_mul_mxfp4_amx;
    kernels->mul[PITH_TYPE_NVFP4] = check_mul_nvfp4_amx;
    kernels->mul[PITH_TYPE_Q2_K] = check_mul_q2_k_amx;
    kernels->mul[PITH_TYPE_Q3_K] = check_mul_q3_k_amx;
    kernels->mul[PITH_TYPE_IQ1_S] = check_mul_iq1_s_amx;
    kernels->mul[PITH_TYPE_IQ1_M] = check_mul_iq1_m_amx;
    kernels->mul[PITH_TYPE_IQ2_XXS] = check_mul_iq2_xxs_amx;
    kernels->mul[PITH_TYPE_IQ2_XS] = check_mul_iq2_xs_amx;
    kernels->mul[PITH_TYPE_IQ2_S] = check_mul_iq2_s_amx;
    kernels->mul[PITH_TYPE_IQ3_XXS] = check_mul_iq3_xxs_amx;
    kernels->mul[PITH_TYPE_IQ3_S] = check_mul_iq3_s_amx;
    kernels->mul[PITH_TYPE_TQ1_0] = check_mul_tq1_0_amx;
    kernels->mul[PITH_TYPE_TQ2_0] = check_mul_tq2_0_amx;
    kernels->mul[PITH_TYPE_Q1_0] = check_mul_q1_0_amx;
    kernels->mul[PITH_TYPE_Q2_0] = check_mul_q2_0_amx;
    kernels->mul_fast[PITH_TYPE_Q4_K] = check_mul_fast_q4_k_amx;
    kernels->mul_fast[PITH_TYPE_Q5_K] = check_mul_fast_q5_k_amx;
    kernels->mul_fast[PITH_TYPE_Q6_K] = check_mul_fast_q6_k_amx;
    kernels->mul_fast[PITH_TYPE_IQ4_XS] = check_mul_fast_iq4_xs_amx;
    kernels->mul_fast[PITH_TYPE_Q2_K] = check_mul_fast_q2_k_amx;
    kernels->mul_fast[PITH_TYPE_Q3_K] = check_mul_fast_q3_k_amx;
    kernels->mul_fast[PITH_TYPE_IQ1_S] = check_mul_fast_iq1_s_amx;
    kernels->mul_fast[PITH_TYPE_IQ1_M] = check_mul_fast_iq1_m_amx;
    kernels->mul_fast[PITH_TYPE_IQ2_XXS] = check_mul_fast_iq2_xxs_amx;
    kernels->mul_fast[PITH_TYPE_IQ2_XS] = check_mul_fast_iq2_xs_amx;
    kernels->mul_fast[PITH_TYPE_IQ2_S] = check_mul_fast_iq2_s_amx;
    kernels->mul_fast[PITH_TYPE_IQ3_XXS] = check_mul_fast_iq3_xxs_amx;
    kernels->mul_fast[PITH_TYPE_IQ3_S] = check_mul_fast_iq3_s_amx;
    kernels->mul_fast[PITH_TYPE_TQ1_0] = check_mul_fast_tq1_0_amx;
    kernels->mul_fast[PITH_TYPE_TQ2_0] = check_mul_fast_tq2_0_amx;
}

typedef struct emulation {
    const char *name;
    uint32_t tier, beside; /* the bits of the tier and of those it includes */
    void (*set)(pith_kernels *kernels);
} emulation;

static const emulation emulations[] = {
    {"avxvnni, with vpdpbusd in its AVX-512 encoding", PITH_CPU_AVXVNNI, PITH_CPU_AVX2,
     set_avxvnni},
    {"amx, emulated tiles", PITH_CPU_AMX, PITH_CPU_AVX2 | PITH_CPU_AVX512, set_amx},
};

const char *check_emulated(size_t index, uint32_t machine, uint32_t *features,
                           pith_kernels *kernels) {
    if (!(machine & PITH_CPU_AVX512)) return NULL;
    for (size_t i = 0; i < sizeof emulations / sizeof *emulations; i++) {
        const emulation *e = &emulations[i];
        if (machine & e->tier || index-- > 0) continue;
        *features = e->tier | e->beside;
        pith_kernels_init(kernels, e->beside);
        e->set(kernels);
        return e->name;
    }
    return NULL;
}

#else

const char *check_emulated(size_t index, uint32_t machine, uint32_t *features,
                           pith_kernels *kernels) {
    (void)index;
    (void)machine;
    (void)features;
    (void)kernels;
    return NULL;
}

#endif
