/* SPDX-License-Identifier: Apache-2.0
 * Family gemma3, text only (Gemma team 2025, arXiv:2503.19786).
 *
 * What differs from llama: the embedding is scaled by sqrt(n_embd); q and k are normalised per
 * head before RoPE (half-split pairs); the results of attention and feed forward are normalised
 * before the residual sums ("sandwich"); GELU in its tanh form; most layers see a sliding window
 * and turn with a base of their own, every sixth sees all. Scaling of positions (4B and more)
 * holds for the global layers only. Norm weights are used as stored: the files already hold
 * weight + 1. Pictures (injected rows) are not run here. */
#include "model/architecture.h"

#include <math.h>

enum { GLOBAL_PERIOD = 6, LAYERS_OF_27B = 62 };

/* Sliding layers: base freq_base_swa, no scaling of positions. */
static void load_window_rope(pith_loader *loader) {
    pith_hparams *hparams = &loader->model->hparams;
    float base = pith_load_f32(loader, "rope.freq_base_swa", 10000.0f);
    float attn_factor = pith_load_f32(loader, "rope.scaling.attn_factor", 1.0f);
    if (!(base > 1.0f)) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT, "%s.rope.freq_base_swa %g must be more than 1",
                         loader->arch, (double)base);
    }
    hparams->rope_window = hparams->rope;
    hparams->rope_window.base = base;
    hparams->rope_window.freq_scale = 1.0f;
    hparams->rope_window.ext_factor = 0.0f;
    hparams->rope_window.attn_factor = attn_factor;
}

/* 1/sqrt(head_dim), but 1/sqrt(n_embd / n_head) for the 27B model, which has 62 layers. */
static void set_scales(pith_loader *loader) {
    pith_hparams *hparams = &loader->model->hparams;
    const pith_layer *layer = &loader->model->layers[0];
    float width = hparams->n_layer == LAYERS_OF_27B ? (float)hparams->n_embd / (float)layer->n_head
                                                    : (float)layer->head_dim;
    hparams->attention_scale = 1.0f / sqrtf(width);
    hparams->embed_scale = sqrtf((float)hparams->n_embd);
    hparams->final_softcap = pith_load_f32(loader, "final_logit_softcapping", 0.0f);
}

static void load_layer(pith_loader *loader, uint32_t il) {
    pith_layer *layer = &loader->model->layers[il];
    uint32_t n_embd = loader->model->hparams.n_embd, head_dim = layer->head_dim;
    int32_t i = (int32_t)il;
    pith_load_attention(loader, il);
    layer->q_norm = pith_load_vector(loader, i, "attn_q_norm.weight", head_dim, PITH_NEEDED);
    layer->k_norm = pith_load_vector(loader, i, "attn_k_norm.weight", head_dim, PITH_NEEDED);
    layer->post_attn_norm =
        pith_load_vector(loader, i, "post_attention_norm.weight", n_embd, PITH_NEEDED);
    pith_load_ffn(loader, il);
    layer->post_ffn_norm = pith_load_vector(loader, i, "post_ffw_norm.weight", n_embd, PITH_NEEDED);
}

static void load(pith_loader *loader) {
    pith_load_hparams(loader);
    pith_load_causal_only(loader);
    pith_load_rope(loader, true);
    pith_load_windows(loader, GLOBAL_PERIOD);
    if (loader->status != PITH_OK) return;
    load_window_rope(loader);
    set_scales(loader);
    pith_load_embedding(loader);
    for (uint32_t il = 0; il < loader->model->hparams.n_layer && loader->status == PITH_OK; il++) {
        load_layer(loader, il);
    }
}

static void forward(const pith_model *model, pith_plan *plan) {
    uint32_t n_layer = model->hparams.n_layer;
    uint32_t global_angles = pith_record_rope_table(model, plan);
    uint32_t window_angles = pith_plan_rope_table(plan, &model->hparams.rope_window);

    /* x [n, n_embd]: a row of the embedding for each token, times sqrt(n_embd). */
    pith_value x = pith_plan_embed(plan, "embed", model->token_embd, model->hparams.embed_scale);

    for (uint32_t il = 0; il < n_layer; il++) {
        const pith_layer *layer = &model->layers[il];
        pith_plan_layer(plan, (int32_t)il);

        /* h = norm(x); q = rope(norm_head(Wq h)), k = rope(norm_head(Wk h)), v = Wv h. */
        pith_value qkv[3]; /* [n, n_head * head_dim], 2 x [n, n_head_kv * head_dim] */
        pith_value h = pith_record_norm(model, plan, "attn_norm", x, layer->attn_norm, 0);
        pith_record_qkv(plan, layer, h, qkv);
        qkv[0] = pith_record_norm(model, plan, "q_norm", qkv[0], layer->q_norm, layer->head_dim);
        qkv[1] = pith_record_norm(model, plan, "k_norm", qkv[1], layer->k_norm, layer->head_dim);
        pith_record_rope(plan, layer, qkv, layer->window > 0 ? window_angles : global_angles);

        /* x += norm(Wo attend(q, k, v)). */
        pith_value heads = pith_record_attend(model, plan, il, qkv); /* [n, n_head * head_dim_v] */
        pith_value a = pith_record_product(plan, "attn_output", layer->attn_output,
                                           layer->attn_output_bias, heads, PITH_NO_VALUE);
        a = pith_record_norm(model, plan, "post_attn_norm", a, layer->post_attn_norm, 0);
        x = pith_plan_add(plan, "attn_sum", a, x);

        /* After the last attention only the rows that want logits are needed: [n_out, n_embd]. */
        if (il + 1 == n_layer) x = pith_plan_select(plan, "select", x);

        /* x += norm(down(gelu(gate h) * up h)), h = norm(x). */
        h = pith_record_norm(model, plan, "ffn_norm", x, layer->ffn_norm, 0);
        pith_value f = pith_record_ffn(model, plan, il, PITH_ACT_GELU, h, PITH_NO_VALUE);
        f = pith_record_norm(model, plan, "post_ffn_norm", f, layer->post_ffn_norm, 0);
        x = pith_plan_add(plan, "ffn_sum", f, x);
        pith_plan_end_layer(plan, x);
    }

    /* Logits [n_out, n_vocab] = output norm(x), with a soft cap where the file has one. */
    pith_record_head(model, plan, x);
}

const pith_arch pith_arch_gemma3 = {"gemma3", load, forward, .permutes_qk = false};
