/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 RMS and layer normalisation and the largest value: one register holds the 16 lanes of
 * the contract (norm_ref.c). Tails run under a mask, so that lanes without an element are not
 * touched. y may be x. Same bits as ref/norm_ref.c. */
#include "kernel/x86/vector_math_avx512.h"
#include "kernel/x86/x86.h"

void pith_rms_norm_avx512(const pith_norm_args *args) {
    __m512 lanes = _mm512_setzero_ps();
    for (uint32_t i = 0; i < args->n; i += 16) {
        __mmask16 in = first_lanes(args->n - i);
        __m512 x = _mm512_maskz_loadu_ps(in, args->x + i);
        lanes = _mm512_mask3_fmadd_ps(x, x, lanes, in);
    }
    __m512 scale = ps_set(1.0f / sqrtf(ps_fold(lanes) / (float)args->n + args->eps));
    for (uint32_t i = 0; i < args->n; i += 16) {
        __mmask16 in = first_lanes(args->n - i);
        __m512 y = _mm512_mul_ps(_mm512_maskz_loadu_ps(in, args->x + i), scale);
        if (args->w) y = _mm512_mul_ps(y, _mm512_maskz_loadu_ps(in, args->w + i));
        _mm512_mask_storeu_ps(args->y + i, in, y);
    }
}

void pith_layer_norm_avx512(const pith_norm_args *args) {
    __m512 lanes = _mm512_setzero_ps();
    for (uint32_t i = 0; i < args->n; i += 16) {
        __mmask16 in = first_lanes(args->n - i);
        lanes = _mm512_mask_add_ps(lanes, in, lanes, _mm512_maskz_loadu_ps(in, args->x + i));
    }
    __m512 mean = ps_set(ps_fold(lanes) / (float)args->n);
    lanes = _mm512_setzero_ps();
    for (uint32_t i = 0; i < args->n; i += 16) {
        __mmask16 in = first_lanes(args->n - i);
        __m512 centred = _mm512_sub_ps(_mm512_maskz_loadu_ps(in, args->x + i), mean);
        lanes = _mm512_mask3_fmadd_ps(centred, centred, lanes, in);
    }
    __m512 scale = ps_set(1.0f / sqrtf(ps_fold(lanes) / (float)args->n + args->eps));
    for (uint32_t i = 0; i < args->n; i += 16) {
        __mmask16 in = first_lanes(args->n - i);
        __m512 y =
            _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(in, args->x + i), mean), scale);
        __m512 w = args->w ? _mm512_maskz_loadu_ps(in, args->w + i) : y;
        __m512 b = args->b ? _mm512_maskz_loadu_ps(in, args->b + i) : y;
        if (args->w && args->b)
            y = _mm512_fmadd_ps(y, w, b);
        else if (args->w)
            y = _mm512_mul_ps(y, w);
        else if (args->b)
            y = _mm512_add_ps(y, b);
        _mm512_mask_storeu_ps(args->y + i, in, y);
    }
}

/* maxps gives its second operand when one is NaN: the running maximum. */
float pith_max_avx512(const float *x, uint32_t n) {
    __m512 m = ps_set(-INFINITY);
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        m = _mm512_mask_max_ps(m, in, _mm512_maskz_loadu_ps(in, x + i), m);
    }
    return _mm512_reduce_max_ps(m) + 0.0f;
}
