/* SPDX-License-Identifier: Apache-2.0
 * Module paths of Hugging Face models -> tensor names of GGUF files, for the matrices of decoders.
 *
 *   model.layers.3.self_attn.q_proj     -> blk.3.attn_q.weight
 *   model.layers.3.mlp.experts.7.up_proj -> blk.3.ffn_up_exps.weight, expert 7
 *
 * A name says nothing of whether the model has such a weight; whoever asks looks it up. */
#include "model/hf_name.h"

#include <stdio.h>
#include <string.h>

enum { MAX_INDEX = 1 << 20 };

/* Behind "layers.N.". */
static const struct {
    const char *hf, *gguf;
} in_layer[] = {{"self_attn.q_proj", "attn_q"},
                {"self_attn.k_proj", "attn_k"},
                {"self_attn.v_proj", "attn_v"},
                {"self_attn.o_proj", "attn_output"},
                {"self_attn.out_proj", "attn_output"},
                {"self_attn.qkv_proj", "attn_qkv"},
                {"mlp.gate_proj", "ffn_gate"},
                {"mlp.up_proj", "ffn_up"},
                {"mlp.down_proj", "ffn_down"},
                {"mlp.gate_up_proj", "ffn_up"},
                {"feed_forward.w1", "ffn_gate"},
                {"feed_forward.w3", "ffn_up"},
                {"feed_forward.w2", "ffn_down"},
                {"block_sparse_moe.gate", "ffn_gate_inp"},
                {"mlp.gate", "ffn_gate_inp"},
                {"mlp.router", "ffn_gate_inp"},
                {"feed_forward.gate", "ffn_gate_inp"},
                {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                {"mlp.shared_experts.down_proj", "ffn_down_shexp"}};

/* Behind "experts.N.". */
static const struct {
    const char *hf, *gguf;
} in_expert[] = {{"w1", "ffn_gate_exps"},    {"w3", "ffn_up_exps"},
                 {"w2", "ffn_down_exps"},    {"gate_proj", "ffn_gate_exps"},
                 {"up_proj", "ffn_up_exps"}, {"down_proj", "ffn_down_exps"}};

static bool skip(pith_span *text, const char *prefix) {
    size_t n = strlen(prefix);
    if (text->size < n || memcmp(text->data, prefix, n) != 0) return false;
    text->data += n;
    text->size -= n;
    return true;
}

/* "12." */
static bool skip_index(pith_span *text, int32_t *index) {
    size_t n = 0;
    *index = 0;
    while (n < text->size && text->data[n] >= '0' && text->data[n] <= '9' && *index < MAX_INDEX)
        *index = *index * 10 + (text->data[n++] - '0');
    if (n == 0 || n >= text->size || text->data[n] != '.' || *index >= MAX_INDEX) return false;
    if (n > 1 && text->data[0] == '0') return false; /* one way to write a number */
    text->data += n + 1;
    text->size -= n + 1;
    return true;
}

/* The part behind "experts.N." of an expert's own matrix. */
static const char *expert_name(pith_span rest, int32_t *expert) {
    static const char *const prefixes[] = {"block_sparse_moe.experts.", "mlp.experts.",
                                           "feed_forward.experts."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        pith_span text = rest;
        if (!skip(&text, prefixes[i]) || !skip_index(&text, expert)) continue;
        for (size_t j = 0; j < sizeof in_expert / sizeof *in_expert; j++)
            if (pith_span_is(text, in_expert[j].hf)) return in_expert[j].gguf;
    }
    *expert = -1;
    return NULL;
}

bool pith_hf_name_find(pith_span module, pith_hf_name *out) {
    int32_t layer;
    const char *name = NULL;
    out->expert = -1;
    while (skip(&module, "model.") || skip(&module, "language_model.")) {}
    if (pith_span_is(module, "embed_tokens") || pith_span_is(module, "lm_head")) {
        bool is_head = module.data[0] == 'l';
        snprintf(out->gguf, sizeof out->gguf, "%s.weight", is_head ? "output" : "token_embd");
        return true;
    }
    if (!skip(&module, "layers.") || !skip_index(&module, &layer)) return false;
    for (size_t i = 0; i < sizeof in_layer / sizeof *in_layer; i++)
        if (pith_span_is(module, in_layer[i].hf)) name = in_layer[i].gguf;
    if (!name) name = expert_name(module, &out->expert);
    if (!name) return false;
    snprintf(out->gguf, sizeof out->gguf, "blk.%d.%s.weight", (int)layer, name);
    return true;
}
