/* SPDX-License-Identifier: Apache-2.0
 * How a model's positions become angles: the rope.* keys as one pith_rope.
 *
 * Scaling types: none, linear (angles times 1/factor) and yarn. For yarn `attn_factor` becomes
 * the NET magnitude of cos and sin: m(factor, 1), or m(factor, 1) / m(factor, L) with a
 * yarn_log_multiplier L, times the file's attn_factor, where m(s, k) = 1 for s <= 1 and 1 + 0.1 k
 * ln s above. beta_fast and beta_slow are 32 and 1 and ext_factor is 1, whatever a file says:
 * that is how the models of these families are run everywhere. llama3 scaling has no keys; its
 * divisors come as the tensor rope_freqs (weights.c). Next: layers.c. */
#include "model/architecture.h"

#include <math.h>

static float magnitude(float factor, float k) {
    return factor <= 1.0f ? 1.0f : 1.0f + 0.1f * k * logf(factor);
}

/* 1 / freq_scale. Absent and 0 mean 1; scale_linear is the key's old name. */
static float load_factor(pith_loader *loader) {
    float factor = pith_load_f32(loader, "rope.scaling.factor", 0.0f);
    if (factor == 0.0f) factor = pith_load_f32(loader, "rope.scale_linear", 0.0f);
    if (factor == 0.0f) return 1.0f;
    if (!(factor > 0.0f)) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT, "%s.rope.scaling.factor %g is not positive",
                         loader->arch, (double)factor);
    }
    return factor;
}

static void load_yarn(pith_loader *loader, float factor, pith_rope *rope) {
    float log_multiplier = pith_load_f32(loader, "rope.scaling.yarn_log_multiplier", 0.0f);
    rope->ext_factor = 1.0f;
    rope->attn_factor *= magnitude(factor, 1.0f);
    if (log_multiplier != 0.0f) rope->attn_factor /= magnitude(factor, log_multiplier);
    rope->n_ctx_orig = pith_load_u32(loader, "rope.scaling.original_context_length", 1,
                                     PITH_MODEL_MAX_CONTEXT, loader->model->hparams.n_ctx_train);
}

/* n_rot: the rotated part of a head, the same in every layer. */
static void load_n_rot(pith_loader *loader, pith_rope *rope) {
    const pith_model *model = loader->model;
    uint32_t head_dim = model->layers[0].head_dim;
    rope->n_rot =
        pith_load_u32(loader, "rope.dimension_count", 1, PITH_MODEL_MAX_HEAD_DIM, head_dim);
    for (uint32_t i = 0; i < model->hparams.n_layer && loader->status == PITH_OK; i++) {
        if (rope->n_rot % 2 != 0 || rope->n_rot > model->layers[i].head_dim) {
            pith_loader_fail(loader, PITH_ERROR_FORMAT,
                             "%s.rope.dimension_count %u must be even and at most the head size %u",
                             loader->arch, rope->n_rot, model->layers[i].head_dim);
        }
    }
}

void pith_load_rope(pith_loader *loader, bool neox) {
    if (loader->status != PITH_OK) return;
    pith_rope *rope = &loader->model->hparams.rope;
    *rope = (pith_rope){.neox = neox, .freq_scale = 1.0f, .beta_fast = 32.0f, .beta_slow = 1.0f};
    load_n_rot(loader, rope);
    rope->base = pith_load_f32(loader, "rope.freq_base", 10000.0f);
    rope->attn_factor = pith_load_f32(loader, "rope.scaling.attn_factor", 1.0f);
    rope->n_ctx_orig = loader->model->hparams.n_ctx_train;
    if (!(rope->base > 1.0f)) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT, "%s.rope.freq_base %g must be more than 1",
                         loader->arch, (double)rope->base);
    }
    pith_span type = pith_load_text(loader, "rope.scaling.type");
    float factor = load_factor(loader);
    if (loader->status != PITH_OK || pith_span_is(type, "none")) return;
    rope->freq_scale = 1.0f / factor;
    if (pith_span_is(type, "yarn")) {
        load_yarn(loader, factor, rope);
    } else if (type.size != 0 && !pith_span_is(type, "linear")) {
        pith_loader_fail(loader, PITH_ERROR_UNSUPPORTED,
                         "%s.rope.scaling.type \"%.40s\" is not known (none, linear, yarn)",
                         loader->arch, type.data);
    }
}
