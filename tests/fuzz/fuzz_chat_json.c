/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as JSON text.
 * What is accepted must come out of the template engine's tojson as JSON that is accepted again and is the same value;
 * what is refused must have a sentence. Seeds: corpus/chat_json/. */
#include "chat/render.h"

#include <string.h>

static void check(bool good) {
    if (!good) __builtin_trap();
}

/* The value written by a template and read back. */
static void check_round_trip(json_t *value) {
    static pith_template *tpl;
    pith_error error = {0};
    if (tpl == NULL)
        check(pith_template_new(pith_span_of("{{ x | tojson }}"), &tpl, &error) == PITH_OK);
    json_t *context = json_object(), *back = NULL;
    pith_rendered out;
    check(context != NULL && json_object_set(context, "x", value) == 0);
    pith_status status = pith_template_render(tpl, context, NULL, 0, &out, &error);
    check(status == PITH_OK || status == PITH_ERROR_LIMIT);
    if (status == PITH_OK) {
        check(pith_json_parse((pith_span){out.text.data, out.text.size}, &back, &error) == PITH_OK);
        check(json_equal(back, value));
        json_decref(back);
    }
    pith_rendered_deinit(&out);
    json_decref(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *value = NULL;
    pith_error error = {0};
    pith_status status = pith_json_parse((pith_span){(const char *)data, size}, &value, &error);
    check((status == PITH_OK) == (value != NULL));
    if (status != PITH_OK) {
        check(error.status == status && error.text[0] != 0 &&
              memchr(error.text, 0, sizeof error.text) != NULL);
        return 0;
    }
    check_round_trip(value);
    json_decref(value);
    return 0;
}
