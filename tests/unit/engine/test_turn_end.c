/* SPDX-License-Identifier: Apache-2.0
 * Promise: the token that the chat template ends a reply with is found where the template shows
 * it, and nothing is invented where it does not. The golden vocabulary has <s> 256 and </s> 257
 * as control tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "support/changed_model.h"

/* What is found for a template (NULL: the file has none). */
static int32_t find(const char *template_text) {
    char from[1024], to[1024];
    const change changes[] = {{SET_TEXT, "tokenizer.chat_template", 0, template_text}};
    pith_model_options options = {.size = sizeof options, .vocab_only = true};
    pith_gguf *gguf = NULL;
    pith_model *model = NULL;
    pith_error error = {0};
    golden_path("llama-moe.gguf", from);
    scratch_path("test_turn_end.gguf", to);
    assert_true(changed_model_write(from, to, changes, template_text ? 1 : 0));
    if (pith_gguf_open_path(to, &gguf, &error) != PITH_OK ||
        pith_model_load(gguf, &options, 0, &model, &error) != PITH_OK) {
        fail_msg("%s", error.text);
    }
    int32_t id = pith_turn_end_find(model);
    pith_model_free(model);
    remove(to);
    return id;
}

#define EACH_MESSAGE "{% for m in messages %}"

static void shown(void **state) {
    (void)state;
    assert_int_equal(find(EACH_MESSAGE "<s>{{ m.role }} {{ m.content }}</s>{% endfor %}"), 257);
    assert_int_equal(find(EACH_MESSAGE "{{ m.content }} \n</s>\n{% endfor %}"), 257);
    assert_int_equal(find(EACH_MESSAGE "{{ m.content + eos_token }}{% endfor %}"), 257);
    assert_int_equal(find(EACH_MESSAGE "{{ m.content | trim }}<s>{% endfor %}"), 256);
}

static void not_shown(void **state) {
    (void)state;
    assert_int_equal(find(NULL), -1);
    assert_int_equal(find(""), -1);
    assert_int_equal(find(EACH_MESSAGE "{{ m.content }}{% endfor %}"), -1);
    assert_int_equal(find(EACH_MESSAGE "{{ m.content }}\n\n### Next{% endfor %}"), -1);
    assert_int_equal(find(EACH_MESSAGE "</s>{{ m.role }}{% endfor %}"), -1);
    assert_int_equal(find("{{ raise_exception('no') }}"), -1);
    assert_int_equal(find("{% for"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shown),
        cmocka_unit_test(not_shown),
    };
    return cmocka_run_group_tests_name("end of a turn", tests, NULL, NULL);
}
