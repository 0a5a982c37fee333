/* SPDX-License-Identifier: Apache-2.0
 *
 * str() and repr(): what {{ value }} writes, and how lists and dicts show what they hold. Also HTML
 * escaping.
 *
 * Invariants: characters of a user's string stay the user's, also when they are written as an
 * escape; quotes, brackets and numbers are the template's. Nested values are walked by recursion of
 * at most PITH_TEMPLATE_MAX_DEPTH levels.
 */
#include "chat/native.h"
#include "chat/number_text.h"
#include "chat/unicode_case.h"

#include <stdio.h>
#include <string.h>

/* ---- strings ---- */

static void append_hex(pith_builder *builder, char letter, int digits, uint32_t code,
                       bool is_user) {
    char text[16];
    int n = snprintf(text, sizeof text, "\\%c%0*x", letter, digits, (unsigned)code);
    pith_builder_bytes(builder, text, (size_t)n, is_user);
}

static void append_quoted_char(pith_builder *builder, const pith_walk *walk, char quote) {
    static const char specials[] = "\n\r\t\\", letters[] = "nrt\\";
    char escaped[2] = {'\\', quote};
    uint32_t code = walk->code;
    const char *special = code != 0 && code < 0x80 ? strchr(specials, (int)code) : NULL;
    if (special != NULL || code == (uint32_t)quote) {
        if (special != NULL) escaped[1] = letters[special - specials];
        pith_builder_bytes(builder, escaped, 2, walk->is_user);
    } else if (code == PITH_UTF8_INVALID) {
        append_hex(builder, 'x', 2, (unsigned char)walk->string->data[walk->at], walk->is_user);
    } else if ((pith_unicode_flags(code) & PITH_UNICODE_PRINTABLE) != 0) {
        pith_builder_slice(builder, walk->string, walk->at, walk->size);
    } else {
        append_hex(builder,
                   code < 0x100     ? 'x'
                   : code < 0x10000 ? 'u'
                                    : 'U',
                   code < 0x100     ? 2
                   : code < 0x10000 ? 4
                                    : 8,
                   code, walk->is_user);
    }
}

static void append_quoted(pith_builder *builder, const pith_string *string) {
    if (string->is_safe) pith_builder_text(builder, "Markup(");
    bool has_single = string->size > 0 && memchr(string->data, '\'', string->size) != NULL;
    bool has_double = string->size > 0 && memchr(string->data, '"', string->size) != NULL;
    char quote = has_single && !has_double ? '"' : '\'';
    pith_builder_bytes(builder, &quote, 1, false);
    for (pith_walk walk = pith_walk_begin(string); pith_walk_next(&walk);)
        append_quoted_char(builder, &walk, quote);
    pith_builder_bytes(builder, &quote, 1, false);
    if (string->is_safe) pith_builder_text(builder, ")");
}

const pith_string *pith_value_escape(pith_render *render, pith_value value) {
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"}};
    const pith_string *string = pith_value_str(render, value);
    if (string == NULL || string->is_safe) return string;
    pith_builder builder;
    pith_builder_init(&builder, &render->heap);
    for (pith_walk walk = pith_walk_begin(string); pith_walk_next(&walk);) {
        size_t i = 0;
        while (i < 5 && (uint32_t)entities[i].c != walk.code) i++;
        if (i < 5) {
            pith_builder_bytes(&builder, entities[i].entity, strlen(entities[i].entity),
                               walk.is_user);
        } else {
            pith_builder_slice(&builder, string, walk.at, walk.size);
        }
    }
    pith_string *escaped = pith_builder_finish(&builder);
    if (escaped != NULL) escaped->is_safe = true;
    return escaped;
}

/* ---- containers ---- */

static bool repr_at(pith_render *render, pith_builder *builder, pith_value value, int depth);

static bool append_list(pith_render *render, pith_builder *builder, const pith_list *list,
                        const char *brackets, int depth) {
    pith_builder_bytes(builder, brackets, 1, false);
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0) pith_builder_text(builder, ", ");
        if (!repr_at(render, builder, list->items[i], depth)) return false;
    }
    if (brackets[0] == '(' && list->n == 1) pith_builder_text(builder, ",");
    pith_builder_bytes(builder, brackets + 1, 1, false);
    return true;
}

static bool append_dict(pith_render *render, pith_builder *builder, const pith_dict *dict,
                        int depth) {
    pith_builder_text(builder, "{");
    for (size_t i = 0; i < dict->n; i++) {
        if (i > 0) pith_builder_text(builder, ", ");
        if (!repr_at(render, builder, dict->entries[i].key, depth)) return false;
        pith_builder_text(builder, ": ");
        if (!repr_at(render, builder, dict->entries[i].value, depth)) return false;
    }
    pith_builder_text(builder, "}");
    return true;
}

static bool append_view(pith_render *render, pith_builder *builder, pith_value view, int depth) {
    static const char *const names[] = {[PITH_VIEW_KEYS] = "dict_keys(",
                                        [PITH_VIEW_VALUES] = "dict_values(",
                                        [PITH_VIEW_ITEMS] = "dict_items("};
    const pith_list *list = pith_value_to_list(&render->heap, view);
    if (list == NULL) return false;
    pith_builder_text(builder, names[view.as.view->part]);
    if (!append_list(render, builder, list, "[]", depth)) return false;
    pith_builder_text(builder, ")");
    return true;
}

static void append_range(pith_builder *builder, const pith_range *range) {
    char text[96];
    long long start = (long long)range->start, stop = (long long)range->stop;
    if (range->step == 1) {
        snprintf(text, sizeof text, "range(%lld, %lld)", start, stop);
    } else {
        snprintf(text, sizeof text, "range(%lld, %lld, %lld)", start, stop, (long long)range->step);
    }
    pith_builder_text(builder, text);
}

static bool append_object(pith_render *render, pith_builder *builder, pith_value value, int depth) {
    char text[96];
    switch (value.kind) {
    case PITH_KIND_NAMESPACE:
        pith_builder_text(builder, "<Namespace ");
        if (!append_dict(render, builder, value.as.dict, depth)) return false;
        pith_builder_text(builder, ">");
        return true;
    case PITH_KIND_MACRO:
        pith_builder_text(builder, "<Macro ");
        append_quoted(builder, value.as.macro->code->name);
        pith_builder_text(builder, ">");
        return true;
    case PITH_KIND_LOOP:
        snprintf(text, sizeof text, "<LoopContext %zu/%zu>", value.as.loop->index + 1,
                 value.as.loop->items->n);
        break;
    case PITH_KIND_FUNCTION:
        snprintf(text, sizeof text, "<function %s>", value.as.function->name);
        break;
    case PITH_KIND_METHOD:
        snprintf(text, sizeof text, "<method %s>", value.as.method->function->name);
        break;
    default: snprintf(text, sizeof text, "<%s object>", pith_kind_name(value.kind)); break;
    }
    pith_builder_text(builder, text);
    return true;
}

static bool append_scalar(pith_builder *builder, pith_value value) {
    char text[PITH_NUMBER_MAX];
    switch (value.kind) {
    case PITH_KIND_NONE: pith_builder_text(builder, "None"); return true;
    case PITH_KIND_BOOL:
        pith_builder_text(builder, value.as.boolean ? "True" : "False");
        return true;
    case PITH_KIND_INT:
        pith_builder_bytes(builder, text, pith_int_text(value.as.integer, text), false);
        return true;
    case PITH_KIND_FLOAT:
        if (!pith_heap_charge(builder->heap, PITH_FLOAT_STEPS)) return true;
        pith_builder_bytes(builder, text, pith_float_repr(value.as.real, text), false);
        return true;
    default: return false;
    }
}

static bool repr_at(pith_render *render, pith_builder *builder, pith_value value, int depth) {
    if (depth > PITH_TEMPLATE_MAX_DEPTH) pith_heap_fail(&render->heap, PITH_FAULT_OVER_DEPTH);
    if (!pith_heap_charge(&render->heap, 1)) return false;
    if (append_scalar(builder, value)) return true;
    switch (value.kind) {
    case PITH_KIND_ABSENT: return false;
    case PITH_KIND_UNDEFINED: pith_builder_text(builder, "Undefined"); return true;
    case PITH_KIND_STRING: append_quoted(builder, value.as.string); return true;
    case PITH_KIND_LIST: return append_list(render, builder, value.as.list, "[]", depth + 1);
    case PITH_KIND_TUPLE: return append_list(render, builder, value.as.list, "()", depth + 1);
    case PITH_KIND_DICT: return append_dict(render, builder, value.as.dict, depth + 1);
    case PITH_KIND_VIEW: return append_view(render, builder, value, depth + 1);
    case PITH_KIND_RANGE: append_range(builder, value.as.range); return true;
    default: return append_object(render, builder, value, depth + 1);
    }
}

bool pith_value_repr(pith_render *render, pith_builder *builder, pith_value value) {
    return repr_at(render, builder, value, 0);
}

bool pith_value_print(pith_render *render, pith_builder *builder, pith_value value) {
    if (value.kind == PITH_KIND_STRING) {
        pith_builder_string(builder, value.as.string);
        return true;
    }
    if (value.kind == PITH_KIND_UNDEFINED) return true;
    return repr_at(render, builder, value, 0);
}

const pith_string *pith_value_str(pith_render *render, pith_value value) {
    pith_builder builder;
    if (value.kind == PITH_KIND_STRING) return value.as.string;
    pith_builder_init(&builder, &render->heap);
    return pith_value_print(render, &builder, value) ? pith_builder_finish(&builder) : NULL;
}
