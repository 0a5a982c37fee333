/* SPDX-License-Identifier: Apache-2.0
 * Family llama: Llama 2 and 3, Mistral, Mixtral, SmolLM, TinyLlama, Yi and others that share the
 * layout (Touvron et al. 2023, arXiv:2302.13971).
 *
 * Pre-norm decoder; RoPE over neighbouring pairs, because the files hold q and k rows permuted
 * for it; SwiGLU; grouped key-value heads. Variants in the same layout: mixture of experts
 * (Mixtral), tied output, biases, llama3 divisors of the angles (rope_freqs), linear and YaRN
 * scaling. A sliding window in the file (Mistral 7B v0.1) is not used: the family is run with
 * full attention everywhere, and the notes say so. */
#include "model/architecture.h"

/* Divisors of the angles must be usable as divisors; they are known once the weights are read
 * (model.c). */
static void load_rope_freqs(pith_loader *loader) {
    pith_model *model = loader->model;
    if (loader->status != PITH_OK) return;
    model->rope_freqs = pith_load_vector(loader, -1, "rope_freqs.weight",
                                         model->hparams.rope.n_rot / 2, PITH_OPTIONAL);
}

static void check_full_rotation(pith_loader *loader) {
    const pith_model *model = loader->model;
    if (loader->status != PITH_OK || model->hparams.rope.n_rot == model->layers[0].head_dim) return;
    pith_loader_fail(loader, PITH_ERROR_FORMAT,
                     "llama.rope.dimension_count %u is not the head size %u",
                     model->hparams.rope.n_rot, model->layers[0].head_dim);
}

static void load(pith_loader *loader) {
    pith_load_hparams(loader);
    pith_load_expert_counts(loader);
    pith_load_causal_only(loader);
    pith_load_rope(loader, false);
    check_full_rotation(loader);
    if (loader->status == PITH_OK && pith_load_has(loader, "attention.sliding_window")) {
        pith_loader_note(loader, "llama.attention.sliding_window is not used: full attention");
    }
    pith_load_embedding(loader);
    load_rope_freqs(loader);
    for (uint32_t il = 0; il < loader->model->hparams.n_layer && loader->status == PITH_OK; il++) {
        pith_load_attention(loader, il);
        pith_load_ffn(loader, il);
    }
}

static void forward(const pith_model *model, pith_plan *plan) {
    uint32_t n_layer = model->hparams.n_layer;
    uint32_t angles = pith_record_rope_table(model, plan);

    /* x [n, n_embd]: a row of the embedding for each token. */
    pith_value x = pith_plan_embed(plan, "embed", model->token_embd, model->hparams.embed_scale);

    for (uint32_t il = 0; il < n_layer; il++) {
        const pith_layer *layer = &model->layers[il];
        pith_plan_layer(plan, (int32_t)il);

        /* Attention: x += Wo attend(rope(Wq h), rope(Wk h), Wv h), h = norm(x) [n, n_embd]. */
        pith_value qkv[3]; /* [n, n_head * head_dim], 2 x [n, n_head_kv * head_dim] */
        pith_value h = pith_record_norm(model, plan, "attn_norm", x, layer->attn_norm, 0);
        pith_record_qkv(plan, layer, h, qkv);
        pith_record_rope(plan, layer, qkv, angles);
        pith_value heads = pith_record_attend(model, plan, il, qkv); /* [n, n_head * head_dim_v] */
        x = pith_record_product(plan, "attn_output", layer->attn_output, layer->attn_output_bias,
                                heads, x);

        /* After the last attention only the rows that want logits are needed: [n_out, n_embd]. */
        if (il + 1 == n_layer) x = pith_plan_select(plan, "select", x);

        /* Feed forward: x += down(silu(gate h) * up h), h = norm(x); or the chosen experts' sum. */
        h = pith_record_norm(model, plan, "ffn_norm", x, layer->ffn_norm, 0);
        x = pith_record_ffn(model, plan, il, PITH_ACT_SILU, h, x);
        pith_plan_end_layer(plan, x);
    }

    /* Logits [n_out, n_vocab] = output norm(x). */
    pith_record_head(model, plan, x);
}

const pith_arch pith_arch_llama = {"llama", load, forward, .permutes_qk = true};
