/* SPDX-License-Identifier: Apache-2.0
 * Random blocks: every bit random but the scales, which are the same in each block ("stamps"). How large the scale must be
 * for a wanted deviation is measured: some random blocks with scale 1 are decoded by the type's own decoder.
 * No search, no rounding: gigabytes are made as fast as random numbers are. */
#include "random_model.h"

#include "base/float16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct scale_place {
    pith_type type;
    int d;       /* offset of the f16 scale; -1: none */
    int m;       /* offset of an f16 minimum; -1: none */
    float ratio; /* minimum in units of the scale that makes the mean 0 */
} scale_place;

static const scale_place places[] = {
    {PITH_TYPE_Q4_0, 0, -1, 0},     {PITH_TYPE_Q4_1, 0, 2, -7.5f}, {PITH_TYPE_Q5_0, 0, -1, 0},
    {PITH_TYPE_Q5_1, 0, 2, -15.5f}, {PITH_TYPE_Q8_0, 0, -1, 0},    {PITH_TYPE_Q2_K, 80, 82, 1.5f},
    {PITH_TYPE_Q3_K, 108, -1, 0},   {PITH_TYPE_Q4_K, 0, 2, 7.5f},  {PITH_TYPE_Q5_K, 0, 2, 15.5f},
    {PITH_TYPE_Q6_K, 208, -1, 0},   {PITH_TYPE_IQ4_NL, 0, -1, 0},  {PITH_TYPE_IQ4_XS, 0, -1, 0},
    {PITH_TYPE_IQ3_S, 0, -1, 0},    {PITH_TYPE_IQ3_XXS, 0, -1, 0}, {PITH_TYPE_IQ2_XXS, 0, -1, 0},
    {PITH_TYPE_IQ2_XS, 0, -1, 0},   {PITH_TYPE_IQ2_S, 0, -1, 0},   {PITH_TYPE_IQ1_S, 0, -1, 0},
    {PITH_TYPE_TQ1_0, 52, -1, 0},   {PITH_TYPE_TQ2_0, 64, -1, 0},  {PITH_TYPE_Q1_0, 0, -1, 0},
    {PITH_TYPE_Q2_0, 0, -1, 0},
};

static void stamp(random_filler *filler, int offset, uint8_t value, uint8_t mask) {
    filler->stamps[filler->n_stamps].offset = (uint16_t)offset;
    filler->stamps[filler->n_stamps].value = value;
    filler->stamps[filler->n_stamps++].mask = mask;
}

static void stamp_f16(random_filler *filler, int offset, float value) {
    uint16_t bits = pith_f16_of_f32(value);
    stamp(filler, offset, (uint8_t)bits, 0xFF);
    stamp(filler, offset + 1, (uint8_t)(bits >> 8), 0xFF);
}

static void fill_bits(pith_rng *rng, uint8_t *bytes, size_t size) {
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word = pith_rng_next(rng);
        memcpy(bytes + at, &word, 8);
    }
    uint64_t word = pith_rng_next(rng);
    memcpy(bytes + at, &word, size - at);
}

static void stamp_all(const random_filler *filler, uint8_t *blocks, size_t bytes) {
    for (size_t i = 0; i < filler->n_stamps; i++) {
        uint8_t value = filler->stamps[i].value, mask = filler->stamps[i].mask;
        for (size_t at = filler->stamps[i].offset; at < bytes; at += filler->block_bytes)
            blocks[at] = (uint8_t)((blocks[at] & ~mask) | (value & mask));
    }
}

/* The byte whose UE4M3 value, halved, is nearest to d. */
static uint8_t nearest_ue4m3(float d) {
    uint8_t nearest = 1;
    float distance = INFINITY;
    for (int byte = 1; byte < 0x7F; byte++) {
        int e = byte >> 3, m = byte & 7;
        float value = e ? ldexpf(1.0f + (float)m / 8, e - 8) : ldexpf((float)m, -10);
        if (fabsf(value - d) >= distance) continue;
        distance = fabsf(value - d);
        nearest = (uint8_t)byte;
    }
    return nearest;
}

/* The f16 scale of IQ1_M is spread over the top nibbles of four u16 at byte 48. */
static void stamp_iq1_m(random_filler *filler, float d) {
    uint16_t bits = pith_f16_of_f32(d);
    for (int i = 0; i < 4; i++)
        stamp(filler, 49 + 2 * i, (uint8_t)((bits >> 4 * i & 15) << 4), 0xF0);
}

/* Sets the stamps for scale d. */
static bool set_scale(random_filler *filler, float d) {
    filler->n_stamps = 0;
    switch (filler->type) {
    case PITH_TYPE_MXFP4: /* one E8M0 byte e: 2^(e - 128) */
        stamp(filler, 0, (uint8_t)lrintf(128.0f + log2f(d)), 0xFF);
        return true;
    case PITH_TYPE_NVFP4: /* four UE4M3 bytes */
        for (int i = 0; i < 4; i++) stamp(filler, i, nearest_ue4m3(d), 0xFF);
        return true;
    case PITH_TYPE_IQ1_M: stamp_iq1_m(filler, d); return true;
    default: break;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].type != filler->type) continue;
        stamp_f16(filler, places[i].d, d);
        if (places[i].m >= 0) stamp_f16(filler, places[i].m, d * places[i].ratio);
        return true;
    }
    return false;
}

/* Deviation of the decoded values with the scale as it is stamped; 0 without memory. */
static float measure(const random_filler *filler) {
    enum { N_BLOCKS = 512 };
    const pith_type_info *info = pith_type_get((uint32_t)filler->type);
    size_t bytes = (size_t)N_BLOCKS * info->block_bytes, n = (size_t)N_BLOCKS * info->block_elems;
    uint8_t *blocks = malloc(bytes);
    float *values = malloc(n * sizeof *values);
    double sum = 0;
    if (blocks && values) {
        pith_rng rng;
        pith_rng_init(&rng, 1);
        fill_bits(&rng, blocks, bytes);
        stamp_all(filler, blocks, bytes);
        info->decode(blocks, values, n);
        for (size_t i = 0; i < n; i++) sum += (double)values[i] * (double)values[i];
    }
    free(blocks);
    free(values);
    return (float)sqrt(sum / (double)n);
}

bool random_filler_init(random_filler *filler, pith_type type, float deviation) {
    const pith_type_info *info = pith_type_get((uint32_t)type);
    *filler =
        (random_filler){.type = type, .block_bytes = info->block_bytes, .deviation = deviation};
    if (!info->is_quantized)
        return type == PITH_TYPE_F32 || type == PITH_TYPE_F16 || type == PITH_TYPE_BF16;
    if (!set_scale(filler, 1.0f)) return false;
    float unit = measure(filler);
    return unit > 0 && set_scale(filler, deviation / unit);
}

/* Uniform numbers of the wanted deviation, two from each 64 random bits. */
static void fill_floats(const random_filler *filler, pith_rng *rng, uint8_t *bytes, size_t size) {
    size_t item = filler->block_bytes;
    float step = filler->deviation * 1.7320508f / 2147483648.0f;
    uint64_t word = 0;
    for (size_t at = 0, i = 0; at < size; at += item, i++) {
        word = i % 2 ? word >> 32 : pith_rng_next(rng);
        float value = (float)(int32_t)(uint32_t)word * step;
        uint32_t bits = filler->type == PITH_TYPE_F32   ? pith_bits_of_f32(value)
                        : filler->type == PITH_TYPE_F16 ? pith_f16_of_f32(value)
                                                        : pith_bf16_of_f32(value);
        for (size_t b = 0; b < item; b++) bytes[at + b] = (uint8_t)(bits >> 8 * b);
    }
}

void random_filler_run(const random_filler *filler, pith_rng *rng, uint8_t *blocks, size_t bytes) {
    if (filler->n_stamps == 0) {
        fill_floats(filler, rng, blocks, bytes);
        return;
    }
    fill_bits(rng, blocks, bytes);
    stamp_all(filler, blocks, bytes);
}
