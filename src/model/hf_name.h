/* SPDX-License-Identifier: Apache-2.0
 * Names of weights as Hugging Face writes them -> names in GGUF files (private to the model
 * room). */
#ifndef PITH_MODEL_HF_NAME_H
#define PITH_MODEL_HF_NAME_H

#include "base/text.h"

enum { PITH_HF_NAME_BYTES = 64 };

typedef struct pith_hf_name {
    char gguf[PITH_HF_NAME_BYTES]; /* "blk.3.attn_q.weight" */
    int32_t expert;                /* of a stack; -1: no expert's own matrix */
} pith_hf_name;

/* module: "model.layers.3.self_attn.q_proj", without ".weight". false: no matrix that we know. */
bool pith_hf_name_find(pith_span module, pith_hf_name *out);

#endif
