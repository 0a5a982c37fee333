/* SPDX-License-Identifier: Apache-2.0
 * Pieces of forward passes that several families share. Each records a few operations into a
 * plan; the story of a model, in which order they come, is told by forward() in its
 * arch_<family>.c.
 *
 * Shapes: n rows in the step, n_out rows that want logits. Faults stick in the plan
 * (pith_plan_check). Next: backend/backend.h for what each operation computes. */
#include "model/architecture.h"

pith_value pith_record_norm(const pith_model *model, pith_plan *plan, const char *name,
                            pith_value x, const pith_weight *weight, uint32_t group) {
    return pith_plan_norm(plan, name,
                          &(pith_norm_op){.kind = PITH_NORM_RMS,
                                          .x = x,
                                          .weight = weight,
                                          .group = group,
                                          .eps = model->hparams.norm_eps});
}

void pith_record_qkv(pith_plan *plan, const pith_layer *layer, pith_value x, pith_value qkv[3]) {
    pith_plan_linear(plan, "qkv",
                     &(pith_linear_op){.x = x,
                                       .n = 3,
                                       .weight = {layer->q, layer->k, layer->v},
                                       .bias = {layer->q_bias, layer->k_bias, layer->v_bias},
                                       .residual = PITH_NO_VALUE},
                     qkv);
}

void pith_record_rope(pith_plan *plan, const pith_layer *layer, const pith_value qkv[3],
                      uint32_t table) {
    pith_plan_rope(plan, "q_rope", qkv[0], table, layer->n_head, layer->head_dim);
    pith_plan_rope(plan, "k_rope", qkv[1], table, layer->n_head_kv, layer->head_dim);
}

pith_value pith_record_attend(const pith_model *model, pith_plan *plan, uint32_t il,
                              const pith_value qkv[3]) {
    const pith_layer *layer = &model->layers[il];
    return pith_plan_attend(plan, "attend",
                            &(pith_attend_op){.q = qkv[0],
                                              .k = qkv[1],
                                              .v = qkv[2],
                                              .layer = il,
                                              .n_head = layer->n_head,
                                              .n_head_kv = layer->n_head_kv,
                                              .head_dim = layer->head_dim,
                                              .head_dim_v = layer->head_dim_v,
                                              .scale = model->hparams.attention_scale,
                                              .window = layer->window});
}

pith_value pith_record_product(pith_plan *plan, const char *name, const pith_weight *weight,
                               const pith_weight *bias, pith_value x, pith_value residual) {
    pith_value y = PITH_NO_VALUE;
    pith_plan_linear(
        plan, name,
        &(pith_linear_op){.x = x, .n = 1, .weight = {weight}, .bias = {bias}, .residual = residual},
        &y);
    return y;
}

/* Softmax over all experts, the best n_expert_used, their weights made to sum to 1. */
static pith_value record_moe(const pith_model *model, pith_plan *plan, const pith_layer *layer,
                             pith_activation act, const pith_value x_residual[2]) {
    return pith_plan_moe(plan, "ffn_moe",
                         &(pith_moe_op){.x = x_residual[0],
                                        .residual = x_residual[1],
                                        .router = layer->router,
                                        .gate = layer->gate,
                                        .up = layer->up,
                                        .down = layer->down,
                                        .n_expert = model->hparams.n_expert,
                                        .n_used = model->hparams.n_expert_used,
                                        .gating = PITH_GATING_SOFTMAX,
                                        .normalise = true,
                                        .act = act});
}

pith_value pith_record_ffn(const pith_model *model, pith_plan *plan, uint32_t il,
                           pith_activation act, pith_value x, pith_value residual) {
    const pith_layer *layer = &model->layers[il];
    if (layer->router) {
        return record_moe(model, plan, layer, act, (pith_value[2]){x, residual});
    }
    pith_value inner = PITH_NO_VALUE; /* [n, n_ff] */
    pith_plan_linear(plan, "ffn_gate_up",
                     &(pith_linear_op){.x = x,
                                       .n = 2,
                                       .weight = {layer->gate, layer->up},
                                       .bias = {layer->gate_bias, layer->up_bias},
                                       .act = act,
                                       .residual = PITH_NO_VALUE},
                     &inner);
    return pith_record_product(plan, "ffn_down", layer->down, layer->down_bias, inner, residual);
}

void pith_record_head(const pith_model *model, pith_plan *plan, pith_value x) {
    pith_plan_layer(plan, -1);
    pith_value h = pith_record_norm(model, plan, "output_norm", x, model->output_norm, 0);
    if (pith_plan_wants_states(plan)) { /* [n_out, n_embd] */
        pith_plan_output(plan, h);
        return;
    }
    pith_value logits = pith_record_product(plan, "output", model->output, NULL, h,
                                            PITH_NO_VALUE); /* [n_out, n_vocab] */
    if (model->hparams.final_softcap != 0.0f) {
        logits = pith_plan_softcap(plan, "output_softcap", logits, model->hparams.final_softcap);
    }
    pith_plan_output(plan, logits);
}

uint32_t pith_record_rope_table(const pith_model *model, pith_plan *plan) {
    pith_rope rope = model->hparams.rope;
    rope.factors = model->rope_freqs ? model->rope_freqs->values : NULL;
    return pith_plan_rope_table(plan, &rope);
}
