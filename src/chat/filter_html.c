/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters about HTML and URLs. Prompts seldom want them, but templates use `safe` and `e`: a string
 * marked safe makes `+` escape its other side, as Markup does in Python.
 *
 * striptags knows the entities &amp; &lt; &gt; &quot; &nbsp; and numeric ones; others stay as they
 * are.
 */
#include "chat/filters.h"
#include "chat/number_text.h"
#include "chat/search.h"
#include "chat/unicode_case.h"

#include <stdio.h>
#include <string.h>

bool pith_filter_escape(pith_render *render, const pith_call *call, pith_value *out) {
    if (!pith_call_bind_nothing(render, call)) return false;
    return pith_render_give(pith_value_string(pith_value_escape(render, call->self)), out);
}

bool pith_filter_forceescape(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    if (text == NULL || !pith_call_bind_nothing(render, call)) return false;
    text = pith_string_mark_safe(&render->heap, text, false);
    if (text == NULL) return false;
    return pith_render_give(pith_value_string(pith_value_escape(render, pith_value_string(text))),
                            out);
}

bool pith_filter_safe(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    if (text == NULL || !pith_call_bind_nothing(render, call)) return false;
    return pith_render_give(pith_value_string(pith_string_mark_safe(&render->heap, text, true)),
                            out);
}

/* ---- striptags ---- */

/* `text` without what stands between `open` and `close`; both go too. An opening without end is
 * left. */
static const pith_string *remove_between(pith_heap *heap, const pith_string *text, const char *open,
                                         const char *close) {
    pith_span all = pith_string_span(text), from = pith_span_of(open), to = pith_span_of(close);
    pith_builder builder;
    size_t at = 0;
    pith_builder_init(&builder, heap);
    for (;;) {
        size_t start = pith_search_first(heap, all, from, at);
        size_t end = start == SIZE_MAX ? SIZE_MAX : pith_search_first(heap, all, to, start);
        if (end == SIZE_MAX) break;
        pith_builder_slice(&builder, text, at, start - at);
        at = end + to.size;
    }
    pith_builder_slice(&builder, text, at, text->size - at);
    return pith_builder_finish(&builder);
}

/* The character of the entity at `text`, which starts with &, and its size; 0: none. */
static size_t read_entity(pith_span text, uint32_t *code) {
    static const struct {
        const char *name;
        uint32_t code;
    } names[] = {{"&amp;", '&'},  {"&lt;", '<'},    {"&gt;", '>'},
                 {"&quot;", '"'}, {"&nbsp;", 0xA0}, {"&#39;", '\''}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i].name);
        if (text.size < n || memcmp(text.data, names[i].name, n) != 0) continue;
        *code = names[i].code;
        return n;
    }
    const char *end = text.size > 3 && text.data[1] == '#'
                          ? memchr(text.data, ';', text.size < 12 ? text.size : 12)
                          : NULL;
    if (end == NULL) return 0;
    bool is_hex = (text.data[2] | 0x20) == 'x';
    pith_span digits = {text.data + 2 + is_hex, (size_t)(end - text.data) - 2 - is_hex};
    int64_t value;
    if (digits.size == 0 || !pith_int_parse(digits, is_hex ? 16 : 10, &value) || value <= 0 ||
        value > 0x10FFFF)
        return 0;
    *code = (uint32_t)value;
    return (size_t)(end - text.data) + 1;
}

/* White space becomes single blanks, entities become characters. */
static const pith_string *tidy(pith_heap *heap, const pith_string *text) {
    pith_builder builder;
    bool pending = false, pending_user = false;
    size_t skip_to = 0;
    pith_builder_init(&builder, heap);
    for (pith_walk walk = pith_walk_begin(text); pith_walk_next(&walk);) {
        uint32_t code;
        if (walk.at < skip_to) continue;
        if ((pith_unicode_flags(walk.code) & PITH_UNICODE_SPACE) != 0) {
            if (!pending) pending_user = walk.is_user;
            pending = builder.size > 0;
            continue;
        }
        if (pending) pith_builder_bytes(&builder, " ", 1, pending_user);
        pending = false;
        size_t size =
            walk.code == '&'
                ? read_entity((pith_span){text->data + walk.at, text->size - walk.at}, &code)
                : 0;
        if (size > 0) {
            pith_builder_char(&builder, code, walk.is_user);
            skip_to = walk.at + size;
        } else {
            pith_builder_slice(&builder, text, walk.at, walk.size);
        }
    }
    return pith_builder_finish(&builder);
}

bool pith_filter_striptags(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    if (text == NULL || !pith_call_bind_nothing(render, call)) return false;
    text = remove_between(&render->heap, text, "<!--", "-->");
    if (text != NULL) text = remove_between(&render->heap, text, "<", ">");
    if (text != NULL) text = tidy(&render->heap, text);
    return pith_render_give(pith_value_string(text), out);
}

/* ---- urlencode ---- */

static void quote(pith_builder *builder, const pith_string *text, bool in_query) {
    for (size_t i = 0; i < text->size && !builder->failed; i++) {
        char c = text->data[i], hex[4];
        bool is_user = pith_string_user_at(text, i);
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || c == '_' || c == '.' || c == '-' || c == '~' ||
                        (c == '/' && !in_query);
        if (c == ' ' && in_query) {
            pith_builder_bytes(builder, "+", 1, is_user);
        } else if (is_plain) {
            pith_builder_bytes(builder, &c, 1, is_user);
        } else {
            snprintf(hex, sizeof hex, "%%%02X", (unsigned char)c);
            pith_builder_bytes(builder, hex, 3, is_user);
        }
    }
}

static bool quote_pair(pith_render *render, pith_builder *builder, pith_value pair,
                       const pith_call *call) {
    bool is_pair =
        (pair.kind == PITH_KIND_TUPLE || pair.kind == PITH_KIND_LIST) && pair.as.list->n == 2;
    if (!is_pair) return pith_render_fail(render, "%s needs a text, a dict or pairs", call->name);
    const pith_string *key = pith_value_str(render, pair.as.list->items[0]);
    const pith_string *value = pith_value_str(render, pair.as.list->items[1]);
    if (key == NULL || value == NULL) return false;
    if (builder->size > 0) pith_builder_text(builder, "&");
    quote(builder, key, true);
    pith_builder_text(builder, "=");
    quote(builder, value, true);
    return true;
}

bool pith_filter_urlencode(pith_render *render, const pith_call *call, pith_value *out) {
    pith_builder builder;
    pith_items items;
    pith_view view;
    pith_value source = call->self, pair;
    if (!pith_call_bind_nothing(render, call)) return false;
    pith_builder_init(&builder, &render->heap);
    if (source.kind == PITH_KIND_DICT) {
        view = (pith_view){source.as.dict, PITH_VIEW_ITEMS};
        source = (pith_value){PITH_KIND_VIEW, {.view = &view}};
    }
    if (source.kind == PITH_KIND_STRING || !pith_items_begin(&items, source)) {
        const pith_string *text = pith_value_str(render, source);
        if (text == NULL) return false;
        quote(&builder, text, false);
    } else {
        while (pith_items_next(&items, &render->heap, &pair)) {
            if (!quote_pair(render, &builder, pair, call)) return false;
        }
    }
    return pith_render_give(pith_value_string(pith_builder_finish(&builder)), out);
}

bool pith_filter_xmlattr(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"autospace"};
    pith_value autospace;
    pith_builder builder;
    if (!pith_call_bind(render, call, names, 1, 0, &autospace)) return false;
    if (call->self.kind != PITH_KIND_DICT) return pith_render_fail(render, "xmlattr needs a dict");
    bool has_space = autospace.kind == PITH_KIND_ABSENT || pith_value_truth(autospace);
    pith_builder_init(&builder, &render->heap);
    for (size_t i = 0; i < call->self.as.dict->n; i++) {
        const pith_entry *entry = &call->self.as.dict->entries[i];
        if (entry->value.kind == PITH_KIND_NONE || entry->value.kind == PITH_KIND_UNDEFINED)
            continue;
        const pith_string *key = pith_value_escape(render, entry->key),
                          *value = pith_value_escape(render, entry->value);
        if (key == NULL || value == NULL) return false;
        for (size_t j = 0; j < key->size; j++) {
            bool is_bad = key->data[j] != 0 && strchr(" \t\n\f\r/>=", key->data[j]) != NULL;
            if (is_bad)
                return pith_render_fail(render, "a name for xmlattr has a character that ends it");
        }
        if (builder.size > 0 || has_space) pith_builder_text(&builder, " ");
        pith_builder_string(&builder, key);
        pith_builder_text(&builder, "=\"");
        pith_builder_string(&builder, value);
        pith_builder_text(&builder, "\"");
    }
    return pith_render_give(pith_value_string(pith_builder_finish(&builder)), out);
}
