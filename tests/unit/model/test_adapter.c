/* SPDX-License-Identifier: Apache-2.0
 * Promises of opening adapters: a PEFT folder gives exactly what the same adapter in GGUF gives,
 * for dense models, experts, embeddings and every float type; scales are the formats' own; and what
 * does not belong to the model, or could not be applied whole, is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/delta_store.h"
#include "cpu/cpu.h"
#include "model/architecture.h"
#include "support/adapter_files.h"
#include "support/changed_model.h"

#include <math.h>

static const char *adapter_data(const char *name, char path[1024]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/adapter/%s", root ? root : ".", name);
    return path;
}

static pith_model *open_path(const char *path) {
    pith_gguf *gguf = NULL;
    pith_model *model = NULL;
    pith_error error = {0};
    uint32_t features = 0;
    assert_int_equal(pith_cpu_features(&features, &error), PITH_OK);
    if (pith_gguf_open_path(path, &gguf, &error) != PITH_OK ||
        pith_model_load(gguf, NULL, features, &model, &error) != PITH_OK)
        fail_msg("%s: %s", path, error.text);
    return model;
}

static pith_model *open_llama(void) {
    char path[1024];
    return open_path(adapter_data("llama.gguf", path));
}

static pith_model *open_golden(const char *name) {
    char path[1024];
    return open_path(golden_path(name, path));
}

static pith_status try_open(const pith_model *model, const char *path, pith_adapter **out,
                            pith_error *error) {
    const pith_adapter_options options = {.size = sizeof options};
    uint32_t features = 0;
    assert_int_equal(pith_cpu_features(&features, NULL), PITH_OK);
    return pith_adapter_load(model, path, &options, features, out, error);
}

static pith_adapter *open_adapter(const pith_model *model, const char *path) {
    pith_adapter *adapter = NULL;
    pith_error error = {0};
    if (try_open(model, path, &adapter, &error) != PITH_OK) fail_msg("%s: %s", path, error.text);
    return adapter;
}

/* ---- The same adapter in two formats ---- */

static void expect_same_matrix(const pith_weight *a, const pith_weight *b, const char *name) {
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->ne, b->ne, sizeof a->ne);
    if (memcmp(a->data, b->data, (size_t)a->bytes) != 0) fail_msg("%s: bytes differ", name);
}

static void expect_same_delta(const pith_delta *a, const pith_delta *b) {
    assert_int_equal(pith_delta_n_pairs(a), pith_delta_n_pairs(b));
    for (size_t i = 0; i < a->n_pair; i++) {
        const pith_delta_pair *p = &a->pairs[i];
        bool is_lookup = a->lookup[p->weight->index] == i + 1;
        const pith_delta_pair *q = pith_delta_find(b, p->weight, is_lookup);
        assert_non_null(q);
        assert_int_equal(p->rank, q->rank);
        assert_true(p->scale == q->scale);
        expect_same_matrix(&p->a, &q->a, p->weight->name);
        expect_same_matrix(&p->b, &q->b, p->weight->name);
    }
}

static void expect_same_formats(const pith_model *model, const made_adapter *made) {
    char gguf[1024], folder[1024];
    scratch_path("test_adapter.gguf", gguf);
    scratch_path("test_adapter_peft", folder);
    assert_true(made_write_gguf(made, gguf));
    assert_true(made_write_peft(made, folder, NULL));
    pith_adapter *a = open_adapter(model, gguf), *b = open_adapter(model, folder);
    expect_same_delta(a->delta, b->delta);
    assert_int_equal(pith_delta_n_pairs(a->delta), made->n);
    pith_adapter_info info = pith_adapter_get_info(b);
    assert_int_equal(info.kind, PITH_ADAPTER_LORA);
    assert_int_equal(info.rank, made->rank);
    assert_string_equal(info.name, "test_adapter_peft");
    assert_string_equal(pith_adapter_get_info(a).name, "test_adapter");
    assert_true(info.bytes > 0 && info.content_key != 0);
    pith_adapter_release(a);
    pith_adapter_release(b);
    remove(gguf);
    made_remove_peft(folder);
}

/* llama.gguf: 4 heads and 2 of 16, 64 wide, 96 inside, 288 tokens. */
static made_adapter llama_adapter(pith_type type, uint32_t rank) {
    made_adapter made = {
        .rank = rank, .alpha = 12.0f, .type = type, .arch = "llama", .seed = 7, .n = 9};
    const made_pair pairs[] = {
        {"blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj", 64, 64, 1, 16, false, 0, 0},
        {"blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj", 64, 32, 1, 16, false, 0, 0},
        {"blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj", 64, 32, 1, 0, false, 0, 0},
        {"blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj", 64, 64, 1, 0, false, 0, 0},
        {"blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj", 64, 96, 1, 0, false, 0, 0},
        {"blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj", 64, 96, 1, 0, false, 0, 0},
        {"blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj", 96, 64, 1, 0, false, 0, 0},
        {"token_embd.weight", "model.embed_tokens", 288, 64, 1, 0, true, 0, 0},
        {"output.weight", "lm_head", 64, 288, 1, 0, false, 0, 0}};
    memcpy(made.pairs, pairs, sizeof pairs);
    made_fill(&made);
    return made;
}

static void peft_gives_what_gguf_gives(void **state) {
    const pith_type types[] = {PITH_TYPE_F32, PITH_TYPE_F16, PITH_TYPE_BF16};
    const uint32_t ranks[] = {4, 1, 17};
    pith_model *model = open_llama();
    (void)state;
    for (int i = 0; i < 3; i++) {
        made_adapter made = llama_adapter(types[i], ranks[i]);
        expect_same_formats(model, &made);
        made_free(&made);
    }
    pith_model_free(model);
}

static void only_families_that_permute_are_permuted(void **state) {
    pith_model *model = open_golden("qwen2-q8_0.gguf");
    uint32_t n_embd = model->hparams.n_embd, n_k = (uint32_t)model->layers[0].k->ne[1];
    made_adapter made = {
        .rank = 8, .alpha = 16, .type = PITH_TYPE_F16, .arch = "qwen2", .seed = 3, .n = 2};
    (void)state;
    made.pairs[0] = (made_pair){"blk.0.attn_q.weight",
                                "model.layers.0.self_attn.q_proj",
                                n_embd,
                                n_embd,
                                1,
                                0,
                                false,
                                NULL,
                                NULL};
    made.pairs[1] = (made_pair){"blk.0.attn_k.weight",
                                "model.layers.0.self_attn.k_proj",
                                n_embd,
                                n_k,
                                1,
                                0,
                                false,
                                NULL,
                                NULL};
    made_fill(&made);
    expect_same_formats(model, &made);
    made_free(&made);
    pith_model_free(model);
}

static made_adapter moe_adapter(const pith_model *model) {
    uint32_t n_embd = model->hparams.n_embd, n_ff = model->layers[0].n_ff,
             n = model->hparams.n_expert;
    made_adapter made = {
        .rank = 6, .alpha = 6, .type = PITH_TYPE_F16, .arch = "llama", .seed = 11, .n = 4};
    const made_pair pairs[] = {
        {"blk.0.ffn_gate_inp.weight", "model.layers.0.block_sparse_moe.gate", n_embd, n, 1, 0,
         false, NULL, NULL},
        {"blk.0.ffn_gate_exps.weight", "model.layers.0.block_sparse_moe.experts.%d.w1", n_embd,
         n_ff, n, 0, false, NULL, NULL},
        {"blk.0.ffn_down_exps.weight", "model.layers.0.block_sparse_moe.experts.%d.w2", n_ff,
         n_embd, n, 0, false, NULL, NULL},
        {"blk.1.ffn_up_exps.weight", "model.layers.1.mlp.experts.%d.up_proj", n_embd, n_ff, n, 0,
         false, NULL, NULL}};
    memcpy(made.pairs, pairs, sizeof pairs);
    made_fill(&made);
    return made;
}

static void experts_become_stacks(void **state) {
    pith_model *model = open_golden("llama-moe.gguf");
    made_adapter made = moe_adapter(model);
    (void)state;
    expect_same_formats(model, &made);
    made_free(&made);
    pith_model_free(model);
}

/* An expert that no tensor names adds nothing: its slices are zeros. */
static void experts_that_are_not_there_add_nothing(void **state) {
    char folder[1024];
    pith_model *model = open_golden("llama-moe.gguf");
    made_adapter made = moe_adapter(model);
    (void)state;
    made.pairs[0].module = "model.layers.0.block_sparse_moe.experts.2.w3";
    made.pairs[0].n_out = model->layers[0].n_ff;
    free(made.pairs[0].b);
    made.pairs[0].b = calloc((size_t)made.pairs[0].n_out * made.rank, sizeof(float));
    made.pairs[0].b[0] = 1.0f;
    scratch_path("test_adapter_peft", folder);
    size_t n = made.n;
    made.n = 1;
    assert_true(made_write_peft(&made, folder, NULL));
    made.n = n;
    pith_adapter *adapter = open_adapter(model, folder);
    assert_int_equal(pith_delta_n_pairs(adapter->delta), 1);
    const pith_delta_pair *pair = &adapter->delta->pairs[0];
    assert_ptr_equal(pair->weight, model->layers[0].up);
    size_t slice = pair->a.expert_bytes;
    for (uint32_t e = 0; e < model->hparams.n_expert; e++) {
        bool is_zero = true;
        for (size_t i = 0; i < slice; i++) is_zero &= pair->a.data[e * slice + i] == 0;
        assert_int_equal(is_zero, e != 2);
    }
    pith_adapter_release(adapter);
    made_remove_peft(folder);
    made_free(&made);
    pith_model_free(model);
}

static void quantized_matrices_are_decoded(void **state) {
    char path[1024];
    pith_model *model = open_llama();
    made_adapter made = llama_adapter(PITH_TYPE_Q8_0, 32);
    (void)state;
    made.n = 1;
    scratch_path("test_adapter.gguf", path);
    assert_true(made_write_gguf(&made, path));
    pith_adapter *adapter = open_adapter(model, path);
    const pith_delta_pair *pair = &adapter->delta->pairs[0];
    float row[64], decoded[64];
    uint8_t blocks[68];
    for (uint32_t r = 0; r < 32; r++) {
        pith_type_get(PITH_TYPE_Q8_0)->encode(made.pairs[0].a + r * 64, blocks, 64, NULL);
        pith_type_get(PITH_TYPE_Q8_0)->decode(blocks, decoded, 64);
        pith_weight_decode_row(&pair->a, r, row);
        assert_memory_equal(row, decoded, sizeof row);
    }
    pith_adapter_release(adapter);
    remove(path);
    made.n = 9;
    made_free(&made);
    pith_model_free(model);
}

/* ---- Scales ---- */

static float scale_with(const pith_model *model, const char *config, size_t which) {
    char folder[1024];
    made_adapter made = llama_adapter(PITH_TYPE_F32, 4);
    scratch_path("test_adapter_peft", folder);
    size_t n = made.n;
    made.n = 4; /* q, k, v, output of two layers */
    assert_true(made_write_peft(&made, folder, config));
    made.n = n;
    pith_adapter *adapter = open_adapter(model, folder);
    const pith_weight *weights[] = {model->layers[0].q, model->layers[1].k, model->layers[1].v,
                                    model->layers[0].attn_output};
    const pith_delta_pair *pair = pith_delta_find(adapter->delta, weights[which], false);
    assert_non_null(pair);
    float scale = pair->scale;
    pith_adapter_release(adapter);
    made_remove_peft(folder);
    made_free(&made);
    return scale;
}

static void scales_follow_the_config(void **state) {
    pith_model *model = open_llama();
    (void)state;
    assert_true(scale_with(model, "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":12}", 0) == 3.0f);
    assert_true(scale_with(model,
                           "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":12,\"use_rslora\":true}",
                           0) == 6.0f);
    const char *patterns = "{\"peft_type\":\"LORA\",\"r\":8,\"lora_alpha\":12,"
                           "\"rank_pattern\":{\"q_proj\":4,\"layers.1.self_attn.k_proj\":4,"
                           "\"v_proj\":4,\"o_proj\":4},\"alpha_pattern\":{\"k_proj\":2,"
                           "\"model.layers.1.self_attn.v_proj\":-8,\"elf_attn.o_proj\":100}}";
    assert_true(scale_with(model, patterns, 0) == 3.0f);
    assert_true(scale_with(model, patterns, 1) == 0.5f);
    assert_true(scale_with(model, patterns, 2) == -2.0f);
    assert_true(scale_with(model, patterns, 3) == 3.0f); /* no end of a name, but of a word */
    pith_model_free(model);
}

static void alpha_zero_is_a_factor_of_one(void **state) {
    char path[1024];
    pith_model *model = open_llama();
    (void)state;
    pith_adapter *adapter = open_adapter(model, adapter_data("lora-embd.gguf", path));
    assert_true(adapter->delta->pairs[0].scale == 1.0f);
    pith_adapter_release(adapter);
    adapter = open_adapter(model, adapter_data("lora-a.gguf", path));
    assert_true(adapter->delta->pairs[0].scale == 2.0f);
    assert_int_equal(pith_adapter_get_info(adapter).n_tensors, 10);
    assert_string_equal(pith_adapter_get_info(adapter).name, "tiny-lora-a.gguf");
    pith_adapter_release(adapter);
    pith_model_free(model);
}

/* ---- Refusals ---- */

static void expect_refusal(const pith_model *model, const char *path, pith_status status,
                           const char *words) {
    pith_adapter *adapter = NULL;
    pith_error error = {0};
    pith_status found = try_open(model, path, &adapter, &error);
    if (found == PITH_OK) fail_msg("opened, expected \"%s\"", words);
    assert_null(adapter);
    if (found != status || !strstr(error.text, words))
        fail_msg("status %d \"%s\", expected %d \"%s\"", found, error.text, status, words);
}

/* Changed copies of lora-a.gguf. */
static void gguf_files_that_do_not_fit_are_refused_by_name(void **state) {
    static const struct {
        change changes[2];
        pith_status status;
        const char *words;
    } cases[] = {
        {{{ADD_TENSOR, "blk.0.attn_norm.weight", 64, NULL}},
         PITH_ERROR_UNSUPPORTED,
         "tensor blk.0.attn_norm.weight is no half of a low-rank pair"},
        {{{ADD_TENSOR, "blk.7.attn_q.weight.lora_a", 64, NULL},
          {ADD_TENSOR, "blk.7.attn_q.weight.lora_b", 4, NULL}},
         PITH_ERROR_FORMAT,
         "tensor blk.7.attn_q.weight.lora_a matches nothing: the model has no matrix "
         "blk.7.attn_q.weight"},
        {{{ADD_TENSOR, "output_norm.weight.lora_a", 64, NULL},
          {ADD_TENSOR, "output_norm.weight.lora_b", 1, NULL}},
         PITH_ERROR_FORMAT,
         "the model has no matrix output_norm.weight"},
        {{{DROP_TENSOR, "blk.1.ffn_down.weight.lora_b", 0, NULL}},
         PITH_ERROR_FORMAT,
         "tensor blk.1.ffn_down.weight.lora_a has no blk.1.ffn_down.weight.lora_b"},
        {{{DROP_TENSOR, "blk.1.ffn_down.weight.lora_a", 0, NULL}},
         PITH_ERROR_FORMAT,
         "tensor blk.1.ffn_down.weight.lora_b has no blk.1.ffn_down.weight.lora_a"},
        {{{RESHAPE, "blk.0.attn_v.weight.lora_a", 65, NULL}},
         PITH_ERROR_FORMAT,
         "A is 65 x 4 x 1, B 4 x 32 x 1, which does not fit the model's 64 x 32 x 1"},
        {{{RESHAPE, "blk.0.attn_v.weight.lora_b", 3, NULL}}, PITH_ERROR_FORMAT, "B 3 x 32 x 1"},
        {{{SET_TEXT, "general.architecture", 0, "qwen2"}},
         PITH_ERROR_UNSUPPORTED,
         "key general.architecture is \"qwen2\"; an adapter for this model has \"llama\""},
        {{{SET_TEXT, "general.type", 0, "model"}}, PITH_ERROR_UNSUPPORTED, "general.type"},
        {{{DROP_KEY, "general.type", 0, NULL}}, PITH_ERROR_FORMAT, "general.type"},
        {{{SET_TEXT, "adapter.type", 0, "loha"}},
         PITH_ERROR_UNSUPPORTED,
         "key adapter.type is \"loha\""},
        {{{SET_U32, "adapter.lora.alpha", 8, NULL}}, PITH_ERROR_FORMAT, "adapter.lora.alpha"},
        {{{SET_TEXT, "adapter.alora.invocation_tokens", 0, "x"}},
         PITH_ERROR_FORMAT,
         "adapter.alora.invocation_tokens"},
    };
    char from[1024], to[1024];
    pith_model *model = open_llama();
    (void)state;
    adapter_data("lora-a.gguf", from);
    scratch_path("test_adapter.gguf", to);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cases[i].changes[1].name ? 2 : 1;
        assert_true(changed_model_write(from, to, cases[i].changes, n));
        expect_refusal(model, to, cases[i].status, cases[i].words);
    }
    assert_true(changed_model_write(from, to, NULL, 0));
    pith_adapter_release(open_adapter(model, to));
    remove(to);
    expect_refusal(model, adapter_data("llama.gguf", from), PITH_ERROR_FORMAT, "general.type");
    expect_refusal(model, "/nonexistent/adapter", PITH_ERROR_NOT_FOUND, "/nonexistent/adapter");
    pith_model_free(model);
    model = open_golden("llama-q4_k.gguf"); /* another width */
    expect_refusal(model, adapter_data("lora-a.gguf", from), PITH_ERROR_FORMAT,
                   "the adapter is for another one");
    pith_model_free(model);
}

static void ranks_and_values_are_limited(void **state) {
    char path[1024];
    pith_model *model = open_llama();
    made_adapter made = llama_adapter(PITH_TYPE_F16, PITH_DELTA_MAX_RANK);
    (void)state;
    scratch_path("test_adapter.gguf", path);
    made.n = 1;
    assert_true(made_write_gguf(&made, path));
    pith_adapter_release(open_adapter(model, path));
    made.n = 9;
    made_free(&made);
    made = llama_adapter(PITH_TYPE_F16, PITH_DELTA_MAX_RANK + 1);
    made.n = 1;
    assert_true(made_write_gguf(&made, path));
    expect_refusal(model, path, PITH_ERROR_LIMIT, "rank 1025; the limit is 1024");
    made.n = 9;
    made_free(&made);
    made = llama_adapter(PITH_TYPE_F32, 4);
    made.pairs[3].b[17] = NAN;
    assert_true(made_write_gguf(&made, path));
    expect_refusal(model, path, PITH_ERROR_FORMAT, "blk.0.attn_output.weight holds inf or NaN");
    made_free(&made);
    remove(path);
    pith_model_free(model);
}

static void memory_limits_hold(void **state) {
    char path[1024];
    pith_model *model = open_llama();
    pith_adapter_options options = {.size = sizeof options};
    pith_adapter *adapter = open_adapter(model, adapter_data("lora-b.gguf", path));
    pith_error error;
    uint32_t features = 0;
    (void)state;
    pith_cpu_features(&features, NULL);
    options.memory_limit = pith_adapter_get_info(adapter).bytes;
    pith_adapter_release(adapter);
    assert_int_equal(pith_adapter_load(model, path, &options, features, &adapter, &error), PITH_OK);
    pith_adapter_release(adapter);
    options.memory_limit--;
    assert_int_equal(pith_adapter_load(model, path, &options, features, &adapter, &error),
                     PITH_ERROR_MEMORY);
    pith_model_free(model);
}

static void peft_configs_that_change_the_numbers_are_refused(void **state) {
    static const struct {
        const char *config;
        pith_status status;
        const char *words;
    } cases[] = {
        {"{\"peft_type\":\"IA3\"}", PITH_ERROR_UNSUPPORTED, "peft_type is \"IA3\""},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"use_dora\":true}",
         PITH_ERROR_UNSUPPORTED, "use_dora"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"lora_bias\":true}",
         PITH_ERROR_UNSUPPORTED, "lora_bias"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"init_lora_weights\":\"pissa_niter_"
         "4\"}",
         PITH_ERROR_UNSUPPORTED, "init_lora_weights"},
        {"{\"peft_type\":\"LORA\",\"r\":8,\"lora_alpha\":8}", PITH_ERROR_FORMAT,
         "has rank 4, but adapter_config.json says 8"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"rank_pattern\":{\"q.*\":4}}",
         PITH_ERROR_UNSUPPORTED, "rank_pattern has the key \"q.*\""},
        {"{\"peft_type\":\"LORA\",\"r\":0,\"lora_alpha\":8}", PITH_ERROR_FORMAT, "r must be"},
        {"{\"peft_type\":\"LORA\",\"r\":4}", PITH_ERROR_FORMAT, "lora_alpha"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":\"8\"}", PITH_ERROR_FORMAT, "lora_alpha"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"use_rslora\":1}", PITH_ERROR_FORMAT,
         "use_rslora"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"alora_invocation_tokens\":[288]}",
         PITH_ERROR_FORMAT, "outside the vocabulary of 288"},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"r\":5,\"lora_alpha\":8}", PITH_ERROR_FORMAT,
         "duplicate"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", PITH_ERROR_LIMIT, "nested"},
        {"{\"peft_type\":", PITH_ERROR_FORMAT, "adapter_config.json"},
        {"", PITH_ERROR_FORMAT, "adapter_config.json"},
    };
    char folder[1024];
    pith_model *model = open_llama();
    made_adapter made = llama_adapter(PITH_TYPE_F32, 4);
    (void)state;
    scratch_path("test_adapter_peft", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(made_write_peft(&made, folder, cases[i].config));
        expect_refusal(model, folder, cases[i].status, cases[i].words);
    }
    made_remove_peft(folder);
    made_free(&made);
    pith_model_free(model);
}

static void peft_tensors_that_do_not_fit_are_refused_by_name(void **state) {
    static const struct {
        const char *module;
        pith_status status;
        const char *words;
    } cases[] = {
        {"model.layers.0.self_attn.z_proj", PITH_ERROR_FORMAT,
         "z_proj.lora_A.weight matches nothing"},
        {"model.layers.9.self_attn.q_proj", PITH_ERROR_FORMAT,
         "the model has no matrix blk.9.attn_q.weight"},
        {"model.layers.00.self_attn.q_proj", PITH_ERROR_FORMAT, "matches nothing"},
        {"model.layers.0.self_attn.k_proj", PITH_ERROR_FORMAT, "does not fit the model's 64 x 32"},
        {"model.layers.0.mlp.experts.1.up_proj", PITH_ERROR_FORMAT,
         "the model has no matrix blk.0.ffn_up_exps.weight"},
        {"model.embed_tokens", PITH_ERROR_FORMAT, "embed_tokens.lora_A.weight matches nothing"},
        {"model.layers.0.self_attn.q_proj.lora_magnitude_vector", PITH_ERROR_UNSUPPORTED, "DoRA"},
        {"language_model.layers.0.self_attn.o_proj", PITH_ERROR_FORMAT, "are for the same weight"},
    };
    char folder[1024];
    pith_model *model = open_llama();
    (void)state;
    scratch_path("test_adapter_peft", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made_adapter made = llama_adapter(PITH_TYPE_F32, 4);
        made.pairs[0].module = cases[i].module;
        assert_true(made_write_peft(&made, folder, NULL));
        expect_refusal(model, folder, cases[i].status, cases[i].words);
        made_free(&made);
    }
    pith_buffer none = {0};
    const char *const headers[] = {
        "{\"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight\":"
        "{\"dtype\":\"F32\",\"shape\":[4,0],\"data_offsets\":[0,0]}}",
        "{\"model.layers.0.input_layernorm.weight\":"
        "{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        "{}"};
    const char *const words[] = {"the other half of the pair is missing",
                                 "input_layernorm.weight is no half", "no tensors"};
    for (int i = 0; i < 3; i++) {
        assert_true(made_write_safetensors(folder, headers[i], strlen(headers[i]), &none));
        expect_refusal(model, folder, i == 1 ? PITH_ERROR_UNSUPPORTED : PITH_ERROR_FORMAT,
                       words[i]);
    }
    made_remove_peft(folder);
    pith_model_free(model);
}

/* A table that was adapted is saved beside the pair; one with more tokens is another model's. */
static void copies_of_base_weights_must_be_the_models(void **state) {
    static const struct {
        const char *header;
        const char *words;
    } cases[] = {{"{\"base_model.model.model.embed_tokens.base_layer.weight\":"
                  "{\"dtype\":\"U8\",\"shape\":[288,64],\"data_offsets\":[0,18432]}}",
                  "no tensors"},
                 {"{\"base_model.model.model.embed_tokens.base_layer.weight\":"
                  "{\"dtype\":\"U8\",\"shape\":[289,64],\"data_offsets\":[0,18496]}}",
                  "is 64 x 289, the model's is 64 x 288"},
                 {"{\"base_model.model.model.embed_images.base_layer.weight\":"
                  "{\"dtype\":\"U8\",\"shape\":[288,64],\"data_offsets\":[0,18432]}}",
                  "embed_images.base_layer.weight is no half of a low-rank pair"}};
    char folder[1024];
    pith_model *model = open_llama();
    made_adapter made = llama_adapter(PITH_TYPE_F16, 4);
    (void)state;
    scratch_path("test_adapter_peft", folder);
    assert_true(made_write_peft(&made, folder, NULL));
    made_free(&made);
    for (int i = 0; i < 3; i++) {
        pith_buffer data = {0};
        for (int j = 0; j < 64 * (288 + i % 2); j++) pith_buffer_append(&data, "w", 1);
        assert_true(
            made_write_safetensors(folder, cases[i].header, strlen(cases[i].header), &data));
        pith_buffer_deinit(&data);
        expect_refusal(model, folder, i == 2 ? PITH_ERROR_UNSUPPORTED : PITH_ERROR_FORMAT,
                       cases[i].words);
    }
    made_remove_peft(folder);
    pith_model_free(model);
}

static void both_files_of_a_folder_may_be_named(void **state) {
    char folder[1024], path[1100];
    pith_model *model = open_llama();
    made_adapter made = llama_adapter(PITH_TYPE_F16, 4);
    (void)state;
    scratch_path("test_adapter_peft", folder);
    assert_true(made_write_peft(&made, folder, NULL));
    static const char *const ends[] = {"/adapter_config.json", "/adapter_model.safetensors", "/",
                                       ""};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", folder, ends[i]);
        pith_adapter_release(open_adapter(model, path));
    }
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    remove(path);
    expect_refusal(model, folder, PITH_ERROR_NOT_FOUND, "adapter_model.safetensors");
    assert_true(made_write_file(folder, "adapter_model.bin", "x", 1));
    expect_refusal(model, folder, PITH_ERROR_UNSUPPORTED, "pickle");
    made_remove_peft(folder);
    made_free(&made);
    pith_model_free(model);
}

static void invocations_are_read(void **state) {
    char folder[1024], from[1024], to[1024];
    pith_model *model = open_llama();
    made_adapter made = llama_adapter(PITH_TYPE_F16, 4);
    (void)state;
    scratch_path("test_adapter_peft", folder);
    assert_true(made_write_peft(&made, folder,
                                "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,"
                                "\"alora_invocation_tokens\":[5,287,0]}"));
    pith_adapter *adapter = open_adapter(model, folder);
    assert_int_equal(adapter->n_invocation, 3);
    assert_int_equal(adapter->invocation[1], 287);
    pith_adapter_release(adapter);
    assert_true(made_write_peft(&made, folder,
                                "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,"
                                "\"alora_invocation_string\":\"zq</s>\"}"));
    adapter = open_adapter(model, folder);
    assert_int_equal(adapter->n_invocation, 3);
    assert_int_equal(adapter->invocation[0], 'z');
    assert_int_equal(adapter->invocation[2], 257); /* the control token, not its letters */
    pith_adapter_release(adapter);
    made_remove_peft(folder);
    made_free(&made);
    const change text[] = {{SET_TEXT, "adapter.lora.task_name", 0, "rewriting"},
                           {SET_TEXT, "adapter.lora.prompt_prefix", 0, "query: "}};
    scratch_path("test_adapter.gguf", to);
    assert_true(changed_model_write(adapter_data("lora-a.gguf", from), to, text, 2));
    adapter = open_adapter(model, to);
    assert_string_equal(pith_adapter_get_info(adapter).task, "rewriting");
    assert_string_equal(pith_adapter_get_info(adapter).prompt_prefix, "query: ");
    assert_null(pith_adapter_get_info(adapter).invocation);
    pith_adapter_release(adapter);
    remove(to);
    pith_model_free(model);
}

/* ---- Control vectors ---- */

static void write_directions(const char *path, uint32_t first, uint32_t n, uint32_t width,
                             pith_type type) {
    pith_gguf_writer *writer = NULL;
    const uint64_t ne[] = {width, 1, 1, 1};
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &writer, NULL), PITH_OK);
    pith_gguf_write_string(writer, "general.architecture", "controlvector", NULL);
    pith_gguf_write_string(writer, "controlvector.model_hint", "llama", NULL);
    for (uint32_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "direction.%u", first + i);
        assert_int_equal(pith_gguf_write_tensor(writer, name, type, 1, ne, NULL), PITH_OK);
    }
    for (uint32_t i = 0; i < n * width; i++) {
        float value = (float)i / 64;
        size_t bytes = type == PITH_TYPE_F32 ? 4 : 2;
        assert_int_equal(pith_gguf_write_data(writer, &value, bytes, NULL), PITH_OK);
    }
    assert_int_equal(pith_gguf_writer_finish(writer, NULL), PITH_OK);
    pith_gguf_writer_free(writer);
}

static void control_vectors_are_read_and_refused(void **state) {
    char path[1024];
    pith_model *model = open_golden("gemma3.gguf");
    uint32_t n_embd = model->hparams.n_embd, n_layer = model->hparams.n_layer, features = 0;
    (void)state;
    assert_true(n_layer >= 4);
    scratch_path("test_adapter.gguf", path);
    write_directions(path, 1, n_layer - 1, n_embd, PITH_TYPE_F32);
    pith_adapter *adapter = open_adapter(model, path);
    pith_adapter_info info = pith_adapter_get_info(adapter);
    assert_int_equal(info.kind, PITH_ADAPTER_CONTROL);
    assert_int_equal(info.n_tensors, n_layer - 1);
    assert_int_equal(info.rank, 0);
    assert_null(adapter->delta->vectors[0]);
    assert_true(adapter->delta->vectors[2][3] == (float)(n_embd + 3) / 64);
    pith_adapter_release(adapter);
    pith_adapter_options options = {.size = sizeof options, .first_layer = 2, .last_layer = 3};
    pith_error error;
    pith_cpu_features(&features, NULL);
    assert_int_equal(pith_adapter_load(model, path, &options, features, &adapter, &error), PITH_OK);
    assert_int_equal(pith_adapter_get_info(adapter).n_tensors, 2);
    pith_adapter_release(adapter);
    options.last_layer = (int32_t)n_layer;
    assert_int_equal(pith_adapter_load(model, path, &options, features, &adapter, &error),
                     PITH_ERROR_ARGUMENT);
    write_directions(path, 0, 2, n_embd, PITH_TYPE_F32);
    expect_refusal(model, path, PITH_ERROR_FORMAT, "tensor direction.0 matches nothing");
    write_directions(path, n_layer, 1, n_embd, PITH_TYPE_F32);
    expect_refusal(model, path, PITH_ERROR_FORMAT, "matches nothing");
    write_directions(path, 1, 1, n_embd + 1, PITH_TYPE_F32);
    expect_refusal(model, path, PITH_ERROR_FORMAT, "direction.1 is");
    write_directions(path, 1, 1, n_embd, PITH_TYPE_F16);
    expect_refusal(model, path, PITH_ERROR_FORMAT, "of type F16");
    remove(path);
    options.last_layer = 3;
    adapter_data("lora-a.gguf", path);
    pith_model *llama = open_llama();
    options.first_layer = options.last_layer = 1;
    assert_int_equal(pith_adapter_load(llama, path, &options, features, &adapter, &error),
                     PITH_ERROR_ARGUMENT);
    pith_model_free(llama);
    pith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peft_gives_what_gguf_gives),
        cmocka_unit_test(only_families_that_permute_are_permuted),
        cmocka_unit_test(experts_become_stacks),
        cmocka_unit_test(experts_that_are_not_there_add_nothing),
        cmocka_unit_test(quantized_matrices_are_decoded),
        cmocka_unit_test(scales_follow_the_config),
        cmocka_unit_test(alpha_zero_is_a_factor_of_one),
        cmocka_unit_test(gguf_files_that_do_not_fit_are_refused_by_name),
        cmocka_unit_test(ranks_and_values_are_limited),
        cmocka_unit_test(memory_limits_hold),
        cmocka_unit_test(peft_configs_that_change_the_numbers_are_refused),
        cmocka_unit_test(peft_tensors_that_do_not_fit_are_refused_by_name),
        cmocka_unit_test(copies_of_base_weights_must_be_the_models),
        cmocka_unit_test(both_files_of_a_folder_may_be_named),
        cmocka_unit_test(invocations_are_read),
        cmocka_unit_test(control_vectors_are_read_and_refused),
    };
    return cmocka_run_group_tests_name("adapters", tests, NULL, NULL);
}
