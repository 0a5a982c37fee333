/* SPDX-License-Identifier: Apache-2.0
 * Promise: a file whose keys or tensors contradict each other, or ask for what pith does not do,
 * is refused with the numbers that disagree; a file at the limits is taken. Each case is a golden
 * model with one thing changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/architecture.h"
#include "support/changed_model.h"

enum { MAX_CHANGES = 6 };

typedef struct check_case {
    const char *base; /* golden model */
    pith_status status;
    const char *said[2]; /* parts of the error's text */
    change changes[MAX_CHANGES];
} check_case;

static size_t count(const change *changes) {
    size_t n = 0;
    while (n < MAX_CHANGES && changes[n].kind != CHANGE_NONE) n++;
    return n;
}

static void check(const check_case *c) {
    char from[1024], to[1024];
    pith_gguf *gguf = NULL;
    pith_error error = {0};
    golden_path(c->base, from);
    scratch_path("test_hparams.gguf", to);
    assert_true(changed_model_write(from, to, c->changes, count(c->changes)));
    assert_int_equal(pith_gguf_open_path(to, &gguf, &error), PITH_OK);
    pith_status status = pith_model_check(gguf, &error);
    pith_gguf_close(gguf);
    remove(to);
    if (status != c->status) {
        fail_msg("%s with %s: status %d (%s), expected %d", c->base, c->changes[0].name, status,
                 error.text, c->status);
    }
    for (int i = 0; i < 2; i++) {
        if (c->said[i] && !strstr(error.text, c->said[i])) {
            fail_msg("%s with %s: \"%s\" does not say \"%s\"", c->base, c->changes[0].name,
                     error.text, c->said[i]);
        }
    }
}

static void check_all(const check_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) check(&cases[i]);
}

#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof((cases)[0]))

static void goldens_run(void **state) {
    static const check_case cases[] = {
        {"gemma3.gguf", PITH_OK, {0}, {{0}}},     {"llama-bf16.gguf", PITH_OK, {0}, {{0}}},
        {"llama-moe.gguf", PITH_OK, {0}, {{0}}},  {"llama-q4_0.gguf", PITH_OK, {0}, {{0}}},
        {"llama-q4_k.gguf", PITH_OK, {0}, {{0}}}, {"llama-rope-llama3.gguf", PITH_OK, {0}, {{0}}},
        {"qwen2-q8_0.gguf", PITH_OK, {0}, {{0}}}, {"llama-yarn.gguf", PITH_OK, {0}, {{0}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void what_a_file_is(void **state) {
    static const check_case cases[] = {
        {"llama-moe.gguf",
         PITH_ERROR_UNSUPPORTED,
         {"\"mamba\"", "gemma3, llama, qwen2"},
         {{SET_TEXT, "general.architecture", 0, "mamba"}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"general.architecture"},
         {{DROP_KEY, "general.architecture", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_UNSUPPORTED,
         {"adapter"},
         {{SET_TEXT, "general.type", 0, "adapter"}}},
        {"llama-moe.gguf", PITH_OK, {0}, {{SET_TEXT, "general.type", 0, "model"}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void sizes(void **state) {
    static const check_case cases[] = {
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"llama.context_length"},
         {{DROP_KEY, "llama.context_length", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"llama.block_count", "0"},
         {{SET_U32, "llama.block_count", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"513", "512"},
         {{SET_U32, "llama.block_count", 513, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"blk.2.attn_norm.weight"},
         {{SET_U32, "llama.block_count", 512, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_UNSUPPORTED,
         {"blk.1."},
         {{SET_U32, "llama.block_count", 1, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"llama.embedding_length", "str"},
         {{SET_TEXT, "llama.embedding_length", 0, "64"}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"feed_forward_length"},
         {{DROP_KEY, "llama.feed_forward_length", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"layer_norm_rms_epsilon"},
         {{SET_F32, "llama.attention.layer_norm_rms_epsilon", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"layer_norm_rms_epsilon"},
         {{SET_F32, "llama.attention.layer_norm_rms_epsilon", -1e-5, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"layer_norm_rms_epsilon"},
         {{DROP_KEY, "llama.attention.layer_norm_rms_epsilon", 0, NULL}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void heads(void **state) {
    static const check_case cases[] = {
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"4 attention heads", "3 key-value heads"},
         {{SET_U32, "llama.attention.head_count_kv", 3, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"head_count"},
         {{SET_U32, "llama.attention.head_count", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"64", "3"},
         {{SET_U32, "llama.attention.head_count", 3, NULL},
          {SET_U32, "llama.attention.head_count_kv", 1, NULL}}},
        /* Without the key there are as many key-value heads as heads: the tensors say otherwise. */
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"attn_k.weight is 64 x 32", "64 x 64"},
         {{DROP_KEY, "llama.attention.head_count_kv", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"head size"},
         {{SET_U32, "llama.attention.key_length", 15, NULL},
          {SET_U32, "llama.attention.value_length", 16, NULL}}},
        {"llama-moe.gguf",
         PITH_OK,
         {0},
         {{SET_U32, "llama.attention.key_length", 16, NULL},
          {SET_U32, "llama.attention.value_length", 16, NULL}}},
        {"qwen2-q8_0.gguf",
         PITH_ERROR_FORMAT,
         {"embedding_length 128"},
         {{SET_U32, "qwen2.attention.key_length", 16, NULL},
          {SET_U32, "qwen2.attention.value_length", 16, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_UNSUPPORTED,
         {"causal"},
         {{SET_BOOL, "llama.attention.causal", 0, NULL}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void positions(void **state) {
    static const check_case cases[] = {
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"dimension_count 8", "head size 16"},
         {{SET_U32, "llama.rope.dimension_count", 8, NULL}}},
        {"qwen2-q8_0.gguf",
         PITH_ERROR_FORMAT,
         {"33", "32"},
         {{SET_U32, "qwen2.rope.dimension_count", 33, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"freq_base"},
         {{SET_F32, "llama.rope.freq_base", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"scaling.factor", "-2"},
         {{SET_F32, "llama.rope.scaling.factor", -2, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_UNSUPPORTED,
         {"\"longrope\""},
         {{SET_TEXT, "llama.rope.scaling.type", 0, "longrope"}}},
        {"llama-moe.gguf", PITH_OK, {0}, {{SET_TEXT, "llama.rope.scaling.type", 0, "linear"}}},
        {"gemma3.gguf",
         PITH_ERROR_FORMAT,
         {"freq_base_swa"},
         {{SET_F32, "gemma3.rope.freq_base_swa", -1, NULL}}},
        {"gemma3.gguf",
         PITH_ERROR_FORMAT,
         {"sliding_window_pattern"},
         {{SET_FLAGS, "gemma3.attention.sliding_window_pattern", 0, "1101"}}},
        {"gemma3.gguf",
         PITH_OK,
         {0},
         {{SET_FLAGS, "gemma3.attention.sliding_window_pattern", 0, "1101101"}}},
        {"gemma3.gguf",
         PITH_OK,
         {0},
         {{SET_U32, "gemma3.attention.sliding_window_pattern", 2, NULL}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void experts(void **state) {
    static const check_case cases[] = {
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"513", "512"},
         {{SET_U32, "llama.expert_count", 513, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"expert_used_count 5", "expert_count 4"},
         {{SET_U32, "llama.expert_used_count", 5, NULL}}},
        {"llama-moe.gguf", PITH_OK, {0}, {{SET_U32, "llama.expert_used_count", 4, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"expert_used_count"},
         {{DROP_KEY, "llama.expert_used_count", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"ffn_gate_inp.weight is 64 x 4", "64 x 5"},
         {{SET_U32, "llama.expert_count", 5, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"blk.0.ffn_gate.weight"},
         {{DROP_KEY, "llama.expert_count", 0, NULL}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

static void tensors(void **state) {
    static const check_case cases[] = {
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"blk.1.attn_q.weight is missing"},
         {{DROP_TENSOR, "blk.1.attn_q.weight", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"token_embd.weight is missing"},
         {{DROP_TENSOR, "token_embd.weight", 0, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"output_norm.weight is 65", "64"},
         {{RESHAPE, "output_norm.weight", 65, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_UNSUPPORTED,
         {"blk.0.attn_sinks.weight"},
         {{ADD_TENSOR, "blk.0.attn_sinks.weight", 4, NULL}}},
        {"llama-moe.gguf", PITH_OK, {0}, {{ADD_TENSOR, "blk.0.attn_q.bias", 64, NULL}}},
        {"llama-moe.gguf",
         PITH_ERROR_FORMAT,
         {"attn_q.bias is 63", "64"},
         {{ADD_TENSOR, "blk.0.attn_q.bias", 63, NULL}}},
        {"gemma3.gguf",
         PITH_ERROR_FORMAT,
         {"attn_q_norm.weight is missing"},
         {{DROP_TENSOR, "blk.3.attn_q_norm.weight", 0, NULL}}},
        {"llama-rope-llama3.gguf",
         PITH_ERROR_FORMAT,
         {"rope_freqs.weight is 7", "8"},
         {{RESHAPE, "rope_freqs.weight", 7, NULL}}},
        /* Tied to the embedding when there is no output matrix. */
        {"llama-bf16.gguf", PITH_OK, {0}, {{DROP_TENSOR, "output.weight", 0, NULL}}},
    };
    (void)state;
    CHECK_ALL(cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens_run), cmocka_unit_test(what_a_file_is), cmocka_unit_test(sizes),
        cmocka_unit_test(heads),       cmocka_unit_test(positions),      cmocka_unit_test(experts),
        cmocka_unit_test(tensors),
    };
    return cmocka_run_group_tests_name("hyper-parameters", tests, NULL, NULL);
}
