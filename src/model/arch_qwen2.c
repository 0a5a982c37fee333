/* SPDX-License-Identifier: Apache-2.0
 * Family qwen2: Qwen 1.5, 2, 2.5, Qwen2.5-Coder (Qwen team 2024, arXiv:2407.10671).
 *
 * The llama block with biases on q, k and v and RoPE over half-split pairs. Heads are always
 * n_embd / n_head wide. The output is tied to the embedding where the file has no output.weight.
 * YaRN where the keys ask for it. */
#include "model/architecture.h"

/* The family has no head size of its own. */
static void check_head_dim(pith_loader *loader) {
    const pith_model *model = loader->model;
    if (loader->status != PITH_OK) return;
    const pith_layer *layer = &model->layers[0];
    if (layer->head_dim * layer->n_head == model->hparams.n_embd &&
        layer->head_dim_v == layer->head_dim) {
        return;
    }
    pith_loader_fail(loader, PITH_ERROR_FORMAT,
                     "qwen2: %u heads of %u and %u do not make embedding_length %u", layer->n_head,
                     layer->head_dim, layer->head_dim_v, model->hparams.n_embd);
}

static void load(pith_loader *loader) {
    pith_load_hparams(loader);
    pith_load_causal_only(loader);
    check_head_dim(loader);
    pith_load_rope(loader, true);
    pith_load_embedding(loader);
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

        /* Attention: x += Wo attend(rope(Wq h + bq), rope(Wk h + bk), Wv h + bv), h = norm(x). */
        pith_value qkv[3]; /* [n, n_head * head_dim], 2 x [n, n_head_kv * head_dim] */
        pith_value h = pith_record_norm(model, plan, "attn_norm", x, layer->attn_norm, 0);
        pith_record_qkv(plan, layer, h, qkv);
        pith_record_rope(plan, layer, qkv, angles);
        pith_value heads = pith_record_attend(model, plan, il, qkv); /* [n, n_embd] */
        x = pith_record_product(plan, "attn_output", layer->attn_output, layer->attn_output_bias,
                                heads, x);

        /* After the last attention only the rows that want logits are needed: [n_out, n_embd]. */
        if (il + 1 == n_layer) x = pith_plan_select(plan, "select", x);

        /* Feed forward: x += down(silu(gate h) * up h), h = norm(x). */
        h = pith_record_norm(model, plan, "ffn_norm", x, layer->ffn_norm, 0);
        x = pith_record_ffn(model, plan, il, PITH_ACT_SILU, h, x);
        pith_plan_end_layer(plan, x);
    }

    /* Logits [n_out, n_vocab] = output norm(x). */
    pith_record_head(model, plan, x);
}

const pith_arch pith_arch_qwen2 = {"qwen2", load, forward, .permutes_qk = false};
