/* SPDX-License-Identifier: Apache-2.0
 * The codecs that the type table names, one pair a type. Decode: n elements (a multiple of the
 * block) of stored bytes to f32. Encode: one row of n f32 to bytes; weights is NULL or holds the
 * importance of each of the n columns (types that ignore it say so in their file). Source may
 * have any alignment. A value that is not finite gives some valid codes, never undefined
 * behaviour; a scale beyond the range of f16 is stored as infinity, which pith_type_validate
 * reports. */
#ifndef PITH_QUANT_CODEC_H
#define PITH_QUANT_CODEC_H

#include <stddef.h>

typedef void pith_decode(const void *src, float *dst, size_t n);
typedef void pith_encode(const float *src, void *dst, size_t n, const float *weights);

/* decode_scalar.c, encode_scalar.c */
pith_decode pith_decode_f32, pith_decode_f16, pith_decode_bf16, pith_decode_f64;
pith_decode pith_decode_i8, pith_decode_i16, pith_decode_i32, pith_decode_i64;
pith_encode pith_encode_f32, pith_encode_f16, pith_encode_bf16, pith_encode_f64;
pith_encode pith_encode_i8, pith_encode_i16, pith_encode_i32, pith_encode_i64;

/* decode_legacy.c, encode_legacy.c */
pith_decode pith_decode_q4_0, pith_decode_q4_1, pith_decode_q5_0, pith_decode_q5_1;
pith_decode pith_decode_q8_0, pith_decode_q8_1;
pith_encode pith_encode_q4_0, pith_encode_q4_1, pith_encode_q5_0, pith_encode_q5_1;
pith_encode pith_encode_q8_0, pith_encode_q8_1;

/* decode_k.c, encode_k.c (Q2_K, Q4_K, Q5_K), encode_k_signed.c (Q3_K, Q6_K, Q8_K) */
pith_decode pith_decode_q2_k, pith_decode_q3_k, pith_decode_q4_k, pith_decode_q5_k;
pith_decode pith_decode_q6_k, pith_decode_q8_k;
pith_encode pith_encode_q2_k, pith_encode_q3_k, pith_encode_q4_k, pith_encode_q5_k;
pith_encode pith_encode_q6_k, pith_encode_q8_k;

/* decode_iq.c, encode_iq4.c; the IQ1, IQ2 and IQ3 types have no encoder yet */
pith_decode pith_decode_iq1_s, pith_decode_iq1_m, pith_decode_iq2_xxs, pith_decode_iq2_xs;
pith_decode pith_decode_iq2_s, pith_decode_iq3_xxs, pith_decode_iq3_s;
pith_decode pith_decode_iq4_nl, pith_decode_iq4_xs;
pith_encode pith_encode_iq4_nl, pith_encode_iq4_xs;

/* decode_ternary_fp4.c, encode_ternary_fp4.c */
pith_decode pith_decode_tq1_0, pith_decode_tq2_0, pith_decode_mxfp4, pith_decode_nvfp4;
pith_decode pith_decode_q1_0, pith_decode_q2_0;
pith_encode pith_encode_tq1_0, pith_encode_tq2_0, pith_encode_mxfp4, pith_encode_nvfp4;
pith_encode pith_encode_q1_0, pith_encode_q2_0;

#endif
