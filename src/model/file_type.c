/* SPDX-License-Identifier: Apache-2.0
 * Names of general.file_type, the recipe that a file was quantized with, for people: the types
 * that are computed with are those of the tensors. Without the key the most frequent type is
 * told. */
#include "model/architecture.h"

#include <stdio.h>

enum { FLAG_GUESSED = 1024 };

/* clang-format off */
static const struct { uint32_t id; const char *text; } names[] = {
    {0, "F32"},            {1, "F16"},            {2, "Q4_0"},           {3, "Q4_1"},
    {7, "Q8_0"},           {8, "Q5_0"},           {9, "Q5_1"},           {10, "Q2_K - Medium"},
    {11, "Q3_K - Small"},  {12, "Q3_K - Medium"}, {13, "Q3_K - Large"},  {14, "Q4_K - Small"},
    {15, "Q4_K - Medium"}, {16, "Q5_K - Small"},  {17, "Q5_K - Medium"}, {18, "Q6_K"},
    {19, "IQ2_XXS"},       {20, "IQ2_XS"},        {21, "Q2_K - Small"},  {22, "IQ3_XS"},
    {23, "IQ3_XXS"},       {24, "IQ1_S"},         {25, "IQ4_NL"},        {26, "IQ3_S"},
    {27, "IQ3_M"},         {28, "IQ2_S"},         {29, "IQ2_M"},         {30, "IQ4_XS"},
    {31, "IQ1_M"},         {32, "BF16"},          {36, "TQ1_0"},         {37, "TQ2_0"},
    {38, "MXFP4 MoE"},     {39, "NVFP4"},         {40, "Q1_0"},          {41, "Q2_0"},
};
/* clang-format on */

const char *pith_file_type_text(uint32_t file_type) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].id == (file_type & ~(uint32_t)FLAG_GUESSED)) return names[i].text;
    }
    return NULL;
}

/* The type that most tensors with two or more dimensions have; of any dimensions when there is
 * no such tensor. */
static const char *most_frequent(const pith_gguf *gguf) {
    uint32_t counts[PITH_TYPE_COUNT] = {0};
    size_t n_tensors = pith_gguf_n_tensors(gguf), best = 0, n_counted = 0;
    for (uint32_t n_dims = 2; n_dims > 0 && n_counted == 0; n_dims--) {
        for (size_t i = 0; i < n_tensors; i++) {
            const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
            if (tensor->n_dims < n_dims) continue;
            counts[tensor->type]++;
            n_counted++;
        }
    }
    if (n_counted == 0) return "";
    for (size_t type = 0; type < PITH_TYPE_COUNT; type++) {
        if (counts[type] > counts[best]) best = type;
    }
    const pith_type_info *info = pith_type_get((uint32_t)best);
    return info && info->name ? info->name : "";
}

void pith_model_type_text(const pith_gguf *gguf, char *text, size_t capacity) {
    uint32_t file_type = 0;
    bool found = false;
    const char *name = NULL;
    if (pith_gguf_get_u32(gguf, "general.file_type", 0, UINT32_MAX, &file_type, &found, NULL) ==
            PITH_OK &&
        found) {
        name = pith_file_type_text(file_type);
    }
    snprintf(text, capacity, "%s", name ? name : most_frequent(gguf));
}
