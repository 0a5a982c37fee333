/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a template, with a fixed context and small limits.
 * Rendering twice must give the same; spans must cover the text; a failure must have a sentence and leave nothing. All
 * of the user's strings carry the mark U+E000: unless the template can spell it, the mark may only come out as the
 * user's. Seeds: corpus/chat_template/. */
#include "chat/render.h"

#include <string.h>

#define MARK "\xEE\x80\x80"

static const char context_text[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"" MARK "Hi, you" MARK "\"},"
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" MARK
    "\",\"function\":{\"name\":\"" MARK "f\","
    "\"arguments\":{\"a\":[1,2.5,true,null],\"" MARK "b\":\"x" MARK "\"}}}]},"
    "{\"role\":\"" MARK "tool\",\"content\":[{\"type\":\"" MARK "text\",\"text\":\"" MARK
    "\\n l2 \"}]}],"
    "\"tools\":[],\"d\":{\"k\":\"" MARK
    "v\",\"A\":{}},\"l\":[3,1,2],\"n\":7,\"f\":-2.5,\"e\":\"\",\"no\":null,\"t\":true,"
    "\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"x\":\"a" MARK
    "b c\",\"u\":\"\\u00e9\\u03a3\"}";

static void check(bool good) {
    if (!good) __builtin_trap();
}

static bool has(pith_span text, const char *part) {
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= text.size; i++) {
        if (memcmp(text.data + i, part, n) == 0) return true;
    }
    return false;
}

/* The template itself may have made the mark: as a character, by an escape or by its number. */
static bool may_spell_mark(pith_span source) {
    return has(source, "\xEE") || has(source, "\\") || has(source, "E000") || has(source, "e000") ||
           has(source, "57344") || has(source, "&#") || has(source, "\x80");
}

static void check_spans(const pith_rendered *out, bool marks_are_users) {
    size_t at = 0;
    for (size_t i = 0; i < out->n_spans; i++) {
        const pith_rendered_span *span = &out->spans[i];
        check(span->offset == at && span->size > 0);
        check(i == 0 || span->is_user != span[-1].is_user);
        pith_span text = {out->text.data + at, span->size};
        check(span->is_user || !marks_are_users || !has(text, "\xEE"));
        at += span->size;
    }
    check(at == out->text.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const trusted[] = {"bos_token", NULL};
    static json_t *context;
    pith_span source = {(const char *)data, size};
    pith_template *tpl = NULL;
    pith_error error = {0};
    pith_rendered first, second;
    if (context == NULL)
        check(pith_json_parse((pith_span){context_text, sizeof context_text - 1}, &context,
                              &error) == PITH_OK);
    if (pith_template_new(source, &tpl, &error) != PITH_OK) {
        check(tpl == NULL && error.text[0] != 0);
        return 0;
    }
    pith_render_task task = {.context = context,
                             .trusted = trusted,
                             .memory_limit = 2 << 20,
                             .output_limit = 1 << 18,
                             .step_limit = 20000};
    pith_status status = pith_template_render_task(tpl, &task, &first, &error);
    check(pith_template_render_task(tpl, &task, &second, &error) == status);
    check(status != PITH_ERROR_INTERNAL);
    if (status == PITH_OK) {
        check(pith_span_equal((pith_span){first.text.data, first.text.size},
                              (pith_span){second.text.data, second.text.size}));
        check_spans(&first, !may_spell_mark(source));
    } else {
        check(error.status == status && first.text.data == NULL && first.spans == NULL);
    }
    pith_rendered_deinit(&first);
    pith_rendered_deinit(&second);
    pith_template_free(tpl);
    return 0;
}
