/* SPDX-License-Identifier: Apache-2.0
 * AVX2 RMS and layer normalisation and the largest value: two registers hold the 16 lanes of the
 * contract (norm_ref.c). In a tail, lanes without an element must keep their sum: they add or
 * multiply zeros, and +0 changes no sum of squares; plain sums choose instead. y may be x. */
#include "kernel/x86/vector_math_avx2.h"
#include "kernel/x86/x86.h"

/* How many of elements i .. i + 7 exist, of n. */
ALWAYS_INLINE uint32_t left_of(uint32_t n, uint32_t i) {
    return i < n ? n - i : 0;
}

/* v in the first n lanes, `old` in the others. */
ALWAYS_INLINE __m256 keep_n(__m256 old, __m256 v, uint32_t n) {
    return n >= 8 ? v : ps_choose(_mm256_castsi256_ps(first_lanes(n)), v, old);
}

void pith_rms_norm_avx2(const pith_norm_args *args) {
    __m256 lanes[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    uint32_t n = args->n;
    for (uint32_t i = 0; i < n; i += 16)
        for (uint32_t h = 0; h < 2; h++) {
            __m256 x = load_n(args->x + i + 8 * h, left_of(n, i + 8 * h));
            lanes[h] = _mm256_fmadd_ps(x, x, lanes[h]);
        }
    __m256 scale = ps_set(1.0f / sqrtf(ps_fold(lanes[0], lanes[1]) / (float)n + args->eps));
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 y = _mm256_mul_ps(load_n(args->x + i, n - i), scale);
        if (args->w) y = _mm256_mul_ps(y, load_n(args->w + i, n - i));
        store_n(args->y + i, n - i, y);
    }
}

void pith_layer_norm_avx2(const pith_norm_args *args) {
    __m256 lanes[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    uint32_t n = args->n;
    for (uint32_t i = 0; i < n; i += 16)
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t left = left_of(n, i + 8 * h);
            lanes[h] =
                keep_n(lanes[h], _mm256_add_ps(lanes[h], load_n(args->x + i + 8 * h, left)), left);
        }
    __m256 mean = ps_set(ps_fold(lanes[0], lanes[1]) / (float)n);
    lanes[0] = lanes[1] = _mm256_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16)
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t left = left_of(n, i + 8 * h);
            __m256 centred = _mm256_sub_ps(load_n(args->x + i + 8 * h, left), mean);
            lanes[h] = keep_n(lanes[h], _mm256_fmadd_ps(centred, centred, lanes[h]), left);
        }
    __m256 scale = ps_set(1.0f / sqrtf(ps_fold(lanes[0], lanes[1]) / (float)n + args->eps));
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 y = _mm256_mul_ps(_mm256_sub_ps(load_n(args->x + i, n - i), mean), scale);
        __m256 w = args->w ? load_n(args->w + i, n - i) : y,
               b = args->b ? load_n(args->b + i, n - i) : y;
        if (args->w && args->b)
            y = _mm256_fmadd_ps(y, w, b);
        else if (args->w)
            y = _mm256_mul_ps(y, w);
        else if (args->b)
            y = _mm256_add_ps(y, b);
        store_n(args->y + i, n - i, y);
    }
}

/* maxps gives its second operand when one is NaN: the running maximum. */
float pith_max_avx2(const float *x, uint32_t n) {
    __m256 m = ps_set(-INFINITY);
    for (uint32_t i = 0; i < n; i += 8)
        m = keep_n(m, _mm256_max_ps(load_n(x + i, n - i), m), n - i);
    return ps_largest(m) + 0.0f;
}
