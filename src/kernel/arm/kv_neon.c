/* SPDX-License-Identifier: Apache-2.0
 * NEON: joining of attention partials and writing of one token into a KV page, the kernels of
 * kv_token.h with vectors of this tier. Contracts: pith_merge_kernel, pith_kv_put in kernel.h.
 * Only the names live here. Read next: kv_token.h. */
#include "kernel/arm/vector_math_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/kv_token.h"

void pith_merge_neon(float *M, float *L, float *O, float m, float l, const float *o,
                     uint32_t head_dim_v) {
    merge(M, L, O, m, l, o, head_dim_v);
}
void pith_kv_put_f32_neon(const pith_kv_put *args) {
    kv_put_f32(args);
}
void pith_kv_put_f16_neon(const pith_kv_put *args) {
    kv_put_f16(args);
}
void pith_kv_put_i8_neon(const pith_kv_put *args) {
    kv_put_i8(args);
}
