/* SPDX-License-Identifier: Apache-2.0
 * Promise: the rope.* keys become the angles and the magnitude that models of these families were
 * trained with; keys that the reference ignores (beta, ext_factor) change nothing here either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/architecture.h"
#include "support/changed_model.h"

#include <math.h>

/* The setting that a changed golden model gives. */
static pith_rope rope_of(const char *base, const change *changes, size_t n) {
    char from[1024], to[1024];
    pith_gguf *gguf = NULL;
    pith_model model = {0};
    pith_error error = {0};
    golden_path(base, from);
    scratch_path("test_rope_setting.gguf", to);
    assert_true(changed_model_write(from, to, changes, n));
    assert_int_equal(pith_gguf_open_path(to, &gguf, &error), PITH_OK);
    pith_loader loader = {.model = &model, .gguf = gguf, .arch = "llama", .error = &error};
    pith_load_hparams(&loader);
    pith_load_rope(&loader, false);
    if (loader.status != PITH_OK) fail_msg("%s", error.text);
    pith_free(model.layers);
    pith_gguf_close(gguf);
    remove(to);
    return model.hparams.rope;
}

static void near(float found, double expected, const char *what) {
    if (fabs((double)found - expected) > 1e-6 * fabs(expected)) {
        fail_msg("%s is %.9g, expected %.9g", what, (double)found, expected);
    }
}

static void plain(void **state) {
    (void)state;
    pith_rope rope = rope_of("llama-moe.gguf", NULL, 0);
    assert_int_equal(rope.n_rot, 16);
    assert_int_equal(rope.n_ctx_orig, 512);
    near(rope.base, 10000, "base");
    near(rope.freq_scale, 1, "freq_scale");
    near(rope.attn_factor, 1, "attn_factor");
    assert_true(rope.ext_factor == 0.0f);
}

static void linear(void **state) {
    (void)state;
    /* The type is linear when only a factor is given; the old key counts where there is no
     * factor. */
    const change factor[] = {{SET_F32, "llama.rope.scaling.factor", 4, NULL}};
    near(rope_of("llama-moe.gguf", factor, 1).freq_scale, 0.25, "freq_scale");
    const change old[] = {{SET_F32, "llama.rope.scale_linear", 2, NULL}};
    near(rope_of("llama-moe.gguf", old, 1).freq_scale, 0.5, "freq_scale of scale_linear");
    const change none[] = {{SET_F32, "llama.rope.scaling.factor", 4, NULL},
                           {SET_TEXT, "llama.rope.scaling.type", 0, "none"}};
    near(rope_of("llama-moe.gguf", none, 2).freq_scale, 1, "freq_scale of type none");
    const change zero[] = {{SET_F32, "llama.rope.scaling.factor", 0, NULL}};
    near(rope_of("llama-moe.gguf", zero, 1).freq_scale, 1, "freq_scale of factor 0");
}

static void yarn(void **state) {
    (void)state;
    pith_rope rope = rope_of("llama-yarn.gguf", NULL, 0); /* factor 8, original context 64 */
    near(rope.freq_scale, 0.125, "freq_scale");
    near(rope.ext_factor, 1, "ext_factor");
    near(rope.attn_factor, 1 + 0.1 * log(8), "attn_factor");
    assert_int_equal(rope.n_ctx_orig, 64);
    const change keys[] = {{SET_F32, "llama.rope.scaling.attn_factor", 1.5, NULL},
                           {SET_F32, "llama.rope.scaling.yarn_log_multiplier", 0.5, NULL},
                           {SET_F32, "llama.rope.scaling.yarn_beta_fast", 7, NULL},
                           {SET_F32, "llama.rope.scaling.yarn_beta_slow", 3, NULL},
                           {SET_F32, "llama.rope.scaling.yarn_ext_factor", 0.5, NULL}};
    rope = rope_of("llama-yarn.gguf", keys, 5);
    near(rope.attn_factor, 1.5 * (1 + 0.1 * log(8)) / (1 + 0.05 * log(8)),
         "attn_factor of all keys");
    near(rope.beta_fast, 32, "beta_fast");
    near(rope.beta_slow, 1, "beta_slow");
    near(rope.ext_factor, 1, "ext_factor of all keys");
    const change absent[] = {{DROP_KEY, "llama.rope.scaling.original_context_length", 0, NULL}};
    assert_int_equal(rope_of("llama-yarn.gguf", absent, 1).n_ctx_orig, 512);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(linear),
        cmocka_unit_test(yarn),
    };
    return cmocka_run_group_tests_name("rope setting", tests, NULL, NULL);
}
