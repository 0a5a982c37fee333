/* SPDX-License-Identifier: Apache-2.0
 * The float chains of a tile, X x W registers ("cells"; X and W are constants): cleared, loaded,
 * kept, ended by a factor of the rows. What rows and tokens a cell holds is the tier's affair
 * (lanes_row_128.h, dot_i8mm.h). Users: tiles_128.h, mul_fast_128.h. */
#ifndef PITH_KERNEL_ARM_CELLS_128_H
#define PITH_KERNEL_ARM_CELLS_128_H

#include "kernel/arm/vector_math_neon.h"

/* Loads anew each time, where the register will be overwritten: a load leaves the vector pipes
 * free, a copy of a register takes one. */
ALWAYS_INLINE float32x4_t load_fresh(const float *at) {
    return *(const volatile float32x4_t *)(const void *)at;
}

ALWAYS_INLINE void cells_clear(float32x4_t (*cell)[4], const int X, const int W) {
    UNROLL for (int x = 0; x < X; x++) {
        UNROLL for (int i = 0; i < W; i++) {
            cell[x][i] = vec_set(0.0f);
        }
    }
}

ALWAYS_INLINE void cells_load(float32x4_t (*cell)[4], const float *from, const int X, const int W) {
    UNROLL for (int x = 0; x < X; x++) {
        UNROLL for (int i = 0; i < W; i++) {
            cell[x][i] = vld1q_f32(from + 4 * (x * W + i));
        }
    }
}

/* to = fma(cell, factor of the rows, to) */
ALWAYS_INLINE void cells_end(float *to, float32x4_t (*cell)[4], const float *factor, const int X,
                             const int W) {
    UNROLL for (int i = 0; i < W; i++) {
        float32x4_t f = vld1q_f32(factor + 4 * i);
        UNROLL for (int x = 0; x < X; x++) {
            float *at = to + 4 * (x * W + i);
            vst1q_f32(at, vec_fma(cell[x][i], f, vld1q_f32(at)));
        }
    }
}

ALWAYS_INLINE void cells_keep(float *to, float32x4_t (*cell)[4], const int X, const int W) {
    UNROLL for (int x = 0; x < X; x++) {
        UNROLL for (int i = 0; i < W; i++) {
            vst1q_f32(to + 4 * (x * W + i), cell[x][i]);
        }
    }
}

#endif
