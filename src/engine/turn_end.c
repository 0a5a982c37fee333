/* SPDX-License-Identifier: Apache-2.0
 * Which token ends a reply, learned from the model's own chat template: a conversation whose
 * reply is a marker is rendered, and the control token that the template puts behind the marker
 * is the one. Metadata often names another (eos of the base model), and a reply then runs on into
 * the next turn.
 *
 * A template that fails or shows nothing gives -1: the tokenizer's own end tokens still hold. */
#include "base/memory.h"
#include "engine/engine.h"

#include <string.h>

#define MARKER "pithmarker"

static const char conversation[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
    "{\"role\":\"assistant\",\"content\":\"" MARKER "\"}],\"add_generation_prompt\":false}";

/* A token that a template would end a turn with: control, or marked as the user's own in <...>
 * or [...]. */
static bool can_end_turn(const pith_tokenizer *tokenizer, int32_t id) {
    pith_token_type type = pith_tokenizer_type(tokenizer, id);
    pith_span piece = pith_tokenizer_piece(tokenizer, id);
    if (type == PITH_TOKEN_CONTROL) return true;
    return type == PITH_TOKEN_USER_DEFINED && piece.size >= 3 &&
           (piece.data[0] == '<' || piece.data[0] == '[');
}

/* The first token of the text behind the marker, white space aside. */
static int32_t first_token(const pith_tokenizer *tokenizer, pith_span text) {
    pith_ids ids = {0};
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\n')) text.data++, text.size--;
    pith_text_span span = {.text = text, .parse_special = true};
    int32_t id = -1;
    if (text.size > 0 && pith_tokenizer_encode(tokenizer, &span, 1, false, &ids, NULL) == PITH_OK &&
        ids.size > 0 && can_end_turn(tokenizer, ids.data[0])) {
        id = ids.data[0];
    }
    pith_ids_deinit(&ids);
    return id;
}

static pith_span behind_marker(const pith_buffer *text) {
    size_t size = strlen(MARKER);
    for (size_t i = 0; i + size <= text->size; i++) {
        if (memcmp(text->data + i, MARKER, size) == 0) {
            return (pith_span){text->data + i + size, text->size - i - size};
        }
    }
    return (pith_span){"", 0};
}

int32_t pith_turn_end_find(const pith_model *model) {
    pith_template *template = NULL;
    pith_rendered rendered = {0};
    json_t *context = NULL;
    int32_t id = -1;
    if (!model->chat_template || !model->tokenizer) return -1;
    if (pith_template_new(pith_span_of(model->chat_template), &template, NULL) == PITH_OK &&
        pith_json_parse(pith_span_of(conversation), &context, NULL) == PITH_OK &&
        pith_prompt_compose(model, template, context, 0, &rendered, NULL) == PITH_OK) {
        id = first_token(model->tokenizer, behind_marker(&rendered.text));
    }
    pith_rendered_deinit(&rendered);
    json_decref(context);
    pith_template_free(template);
    return id;
}
