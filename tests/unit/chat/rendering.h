/* SPDX-License-Identifier: Apache-2.0
 * For tests of the chat room: one call from template and JSON context to text. */
#ifndef PITH_TESTS_RENDERING_H
#define PITH_TESTS_RENDERING_H

#include "chat/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the ones above first */
#include <cmocka.h>

typedef struct rendering {
    pith_status status;
    pith_error error;
    pith_rendered out;
} rendering;

/* Compiles and renders; rendering_end frees. `context` is JSON. */
static inline rendering render_span(pith_span source, const char *context,
                                    const char *const *trusted) {
    rendering r = {.status = PITH_OK};
    json_t *json = NULL;
    pith_template *tpl = NULL;
    assert_int_equal(pith_json_parse(pith_span_of(context), &json, &r.error), PITH_OK);
    r.status = pith_template_new(source, &tpl, &r.error);
    if (r.status == PITH_OK) {
        r.status = pith_template_render(tpl, json, trusted, 1768473000, &r.out, &r.error);
    }
    json_decref(json);
    pith_template_free(tpl);
    return r;
}

static inline rendering render_text(const char *source, const char *context) {
    return render_span(pith_span_of(source), context, NULL);
}

static inline void rendering_end(rendering *r) {
    pith_rendered_deinit(&r->out);
}

#endif
