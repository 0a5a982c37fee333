/* SPDX-License-Identifier: Apache-2.0
 * A part of a model that stands for the whole when steps are timed: as many layers as a given
 * memory holds, with the whole model's average bytes per layer, and where even that is too much,
 * fewer experts and fewer rows of the embedding table and the output layer.
 *
 * Invariant: a part is a copy of the outline's struct with a layer list of its own; weights stay
 * the outline's, some of them shortened for good. What was left out is told as totals and scales,
 * so that a time of the part becomes one of the whole. Times nothing: engine/rehearsal.c does. */
#include "backend/rehearse.h"
#include "base/memory.h"
#include "model/architecture.h"

#include <math.h>

enum { EMBED_ROWS = 1024 }; /* of a table that only gives rows */

static void add_weight(pith_layer_cost *cost, const pith_model *model, const pith_weight *weight,
                       bool is_ffn) {
    if (!weight) return;
    double used = 1, elements = (double)weight->ne[0] * (double)weight->ne[1];
    if (weight->ne[2] > 1) used = (double)model->hparams.n_expert_used / (double)weight->ne[2];
    double macs = elements * (double)weight->ne[2] * used;
    cost->memory += (double)weight->bytes;
    cost->bytes += (double)weight->bytes * used;
    if (is_ffn)
        cost->ffn_macs += macs;
    else
        cost->attention_macs += macs;
}

static pith_layer_cost cost_of(const pith_model *model, const pith_layer *layer) {
    pith_layer_cost cost = {0, 0, 0, 0, 0};
    const pith_weight *const attention[] = {layer->q, layer->k, layer->v, layer->attn_output};
    const pith_weight *const ffn[] = {layer->gate, layer->up, layer->down, layer->router};
    for (size_t i = 0; i < 4; i++) {
        add_weight(&cost, model, attention[i], false);
        add_weight(&cost, model, ffn[i], true);
    }
    return cost;
}

pith_layer_cost pith_model_cost(const pith_model *model) {
    pith_layer_cost sum = {0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < model->hparams.n_layer; i++) {
        pith_layer_cost cost = cost_of(model, &model->layers[i]);
        sum.memory += cost.memory;
        sum.bytes += cost.bytes;
        sum.attention_macs += cost.attention_macs;
        sum.ffn_macs += cost.ffn_macs;
        sum.last_ffn_macs = cost.ffn_macs;
    }
    return sum;
}

/* Takes layers so that every prefix has bytes per layer close to the model's: the one that brings
 * the average closest comes next. */
static uint32_t choose_layers(pith_model_part *p, const pith_model *whole, double memory) {
    uint32_t n = whole->hparams.n_layer, chosen = 0;
    double sum = 0, held = 0, mean = p->all.bytes / n;
    bool taken[PITH_MODEL_MAX_LAYERS] = {false};
    while (chosen < n) {
        uint32_t best = n;
        double best_distance = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = (i + n / 2) % n; /* from the middle: first and last layers are special */
            if (taken[at]) continue;
            double bytes = cost_of(whole, &whole->layers[at]).bytes;
            double off = (sum + bytes) / (chosen + 1) - mean, distance = off < 0 ? -off : off;
            if (best < n && distance >= best_distance) continue;
            best = at;
            best_distance = distance;
        }
        pith_layer_cost cost = cost_of(whole, &whole->layers[best]);
        if (chosen > 0 && held + cost.memory > memory) break;
        taken[best] = true;
        sum += cost.bytes;
        held += cost.memory;
        p->model.layers[chosen++] = whole->layers[best];
    }
    return chosen;
}

/* Fewer experts where a layer's do not fit, fewer rows of embeddings and output. */
static void shorten(pith_model_part *p, const pith_model *whole, double memory) {
    pith_weights *weights = whole->weights;
    const pith_weight *output = whole->output;
    double most = memory / 3;
    if (whole->token_embd != output)
        pith_weights_shorten(weights, whole->token_embd, 1, EMBED_ROWS);
    double rows = (double)output->ne[1];
    if ((double)output->bytes > most) {
        uint64_t fewer = (uint64_t)(rows * most / (double)output->bytes) / 64 * 64;
        pith_weights_shorten(weights, output, 1, fewer < 64 ? 64 : fewer);
    }
    p->output_scale = rows / (double)output->ne[1];
    p->model.hparams.n_vocab = (uint32_t)output->ne[1];
    p->n_token = (uint32_t)whole->token_embd->ne[1];
    if (p->n_token > output->ne[1]) p->n_token = (uint32_t)output->ne[1];
    uint32_t n_expert = whole->hparams.n_expert, n_used = whole->hparams.n_expert_used;
    double layer = cost_of(whole, &whole->layers[whole->hparams.n_layer / 2]).memory;
    if (n_expert == 0 || layer <= most) return;
    uint32_t fewer = (uint32_t)(n_expert * most / layer);
    if (fewer < n_used) fewer = n_used;
    for (uint32_t i = 0; i < whole->hparams.n_layer; i++) {
        const pith_layer *l = &whole->layers[i];
        const pith_weight *experts[] = {l->gate, l->up, l->down};
        for (size_t j = 0; j < 3 && l->router; j++)
            pith_weights_shorten(weights, experts[j], 2, fewer);
        if (l->router) pith_weights_shorten(weights, l->router, 1, fewer);
    }
    p->model.hparams.n_expert = fewer;
}

pith_status pith_model_part_init(pith_model_part *p, const pith_model *outline, uint64_t memory,
                                 pith_error *error) {
    uint32_t n = outline->hparams.n_layer;
    double most = (double)memory;
    *p = (pith_model_part){.model = *outline, .n_all = n, .all = pith_model_cost(outline)};
    p->model.layers = pith_alloc_array(n, sizeof *p->model.layers);
    if (!p->model.layers) return pith_fail_memory(error, "a rehearsal", n);
    bool is_small = p->all.memory + (double)outline->output->bytes <= most;
    shorten(p, outline, is_small ? HUGE_VAL : most); /* the table that gives rows in any case */
    p->model.hparams.n_layer = choose_layers(p, outline, most - (double)outline->output->bytes);
    return PITH_OK;
}

void pith_model_part_deinit(pith_model_part *p) {
    pith_free(p->model.layers);
    p->model.layers = NULL;
}
