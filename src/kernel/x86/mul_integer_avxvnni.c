/* SPDX-License-Identifier: Apache-2.0
 * AVX-VNNI products of quantized weights: the kernels of mul_integer_256.h, compiled with the dot
 * product of dot_avxvnni.h (vpdpbusd); one token goes to mul_one_avx2.h where the type has a kernel
 * there. Contract: pith_mul in kernel.h; bits: ref/mul_integer_ref.c. Only the choice of dot
 * product and the suffix of the names live here. Read next: mul_integer_256.h. */
#include "kernel/x86/dot_avxvnni.h"

#include "kernel/x86/mul_integer_256.h"
#include "kernel/x86/mul_one_avx2.h"
#include "kernel/x86/x86.h"

void pith_mul_q4_0_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q4_0_avx2, PITH_TYPE_Q4_0);
}
void pith_mul_q4_1_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q4_1_avx2, PITH_TYPE_Q4_1);
}
void pith_mul_q5_0_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q5_0_avx2, PITH_TYPE_Q5_0);
}
void pith_mul_q5_1_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q5_1_avx2, PITH_TYPE_Q5_1);
}
void pith_mul_q8_0_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q8_0_avx2, PITH_TYPE_Q8_0);
}
void pith_mul_q4_k_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q4_k_avx2, PITH_TYPE_Q4_K);
}
void pith_mul_q5_k_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q5_k_avx2, PITH_TYPE_Q5_K);
}
void pith_mul_q6_k_avxvnni(const pith_mul *args) {
    mul_integer_or_one(args, pith_mul_one_q6_k_avx2, PITH_TYPE_Q6_K);
}
void pith_mul_iq4_nl_avxvnni(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_IQ4_NL);
}
void pith_mul_iq4_xs_avxvnni(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_IQ4_XS);
}
void pith_mul_mxfp4_avxvnni(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_MXFP4);
}
void pith_mul_q2_k_avxvnni(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q2_K);
}
void pith_mul_q3_k_avxvnni(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q3_K);
}
void pith_mul_tq2_0_avxvnni(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_TQ2_0);
}
