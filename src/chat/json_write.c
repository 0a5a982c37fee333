/* SPDX-License-Identifier: Apache-2.0
 *
 * tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False): what Python's
 * json.dumps writes.
 *
 * Invariants: the characters of a user's string are the user's, also as escapes; quotes, brackets,
 * numbers and the names true, false, null are the template's. Nested values are walked by recursion
 * of at most PITH_TEMPLATE_MAX_DEPTH levels. An iterator is written as a list, where Python would
 * refuse it: the templates that write `map(...) | tojson` mean that.
 */
#include "chat/filters.h"
#include "chat/format.h"
#include "chat/number_text.h"
#include "chat/sorting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct json_writer {
    pith_render *render;
    pith_builder builder;
    const pith_string *indent; /* NULL: all on one line */
    const pith_string *item_separator, *key_separator;
    bool ensure_ascii, sort_keys;
} json_writer;

/* ---- strings ---- */

static void write_unicode(json_writer *writer, uint32_t code, bool is_user) {
    char text[16];
    int n;
    if (code >= 0x10000) {
        uint32_t rest = code - 0x10000;
        n = snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xD800u + (rest >> 10),
                     0xDC00u + (rest & 0x3FF));
    } else {
        n = snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    }
    pith_builder_bytes(&writer->builder, text, (size_t)n, is_user);
}

static bool needs_escape(const json_writer *writer, unsigned char c) {
    return c < 0x20 || c == '"' || c == '\\' || (writer->ensure_ascii && c >= 0x7F);
}

static void write_escape(json_writer *writer, const pith_walk *walk) {
    static const char specials[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    char escaped[2] = {'\\', 0};
    const char *special =
        walk->code != 0 && walk->code < 0x80 ? strchr(specials, (int)walk->code) : NULL;
    if (special != NULL) {
        escaped[1] = letters[special - specials];
        pith_builder_bytes(&writer->builder, escaped, 2, walk->is_user);
    } else if (walk->code == PITH_UTF8_INVALID) { /* as Python keeps such bytes in a string */
        write_unicode(writer, 0xDC00u + (unsigned char)walk->string->data[walk->at], walk->is_user);
    } else {
        write_unicode(writer, walk->code, walk->is_user);
    }
}

static void write_string(json_writer *writer, const pith_string *string) {
    pith_walk walk = pith_walk_begin(string);
    size_t plain = 0; /* what is before it has been written */
    pith_builder_text(&writer->builder, "\"");
    while (pith_walk_next(&walk)) {
        if (!needs_escape(writer, (unsigned char)string->data[walk.at])) continue;
        pith_builder_slice(&writer->builder, string, plain, walk.at - plain);
        write_escape(writer, &walk);
        plain = walk.at + walk.size;
    }
    pith_builder_slice(&writer->builder, string, plain, string->size - plain);
    pith_builder_text(&writer->builder, "\"");
}

/* ---- scalars ---- */

/* None, booleans and numbers; false for anything else. */
static bool write_scalar(json_writer *writer, pith_value value) {
    char text[PITH_NUMBER_MAX];
    size_t n;
    switch (value.kind) {
    case PITH_KIND_NONE: pith_builder_text(&writer->builder, "null"); return true;
    case PITH_KIND_BOOL:
        pith_builder_text(&writer->builder, value.as.boolean ? "true" : "false");
        return true;
    case PITH_KIND_INT: n = pith_int_text(value.as.integer, text); break;
    case PITH_KIND_FLOAT:
        if (!isfinite(value.as.real)) {
            const char *name = value.as.real != value.as.real ? "NaN"
                               : value.as.real < 0            ? "-Infinity"
                                                              : "Infinity";
            pith_builder_text(&writer->builder, name);
            return true;
        }
        if (!pith_heap_charge(writer->builder.heap, PITH_FLOAT_STEPS)) return true;
        n = pith_float_repr(value.as.real, text);
        break;
    default: return false;
    }
    pith_builder_bytes(&writer->builder, text, n, false);
    return true;
}

static bool write_key(json_writer *writer, pith_value key) {
    if (key.kind == PITH_KIND_STRING) {
        write_string(writer, key.as.string);
        return true;
    }
    pith_builder_text(&writer->builder, "\"");
    if (!write_scalar(writer, key)) {
        return pith_render_fail(writer->render, "tojson cannot write a %s as a key",
                                pith_kind_name(key.kind));
    }
    pith_builder_text(&writer->builder, "\"");
    return true;
}

/* ---- containers ---- */

static bool write_value(json_writer *writer, pith_value value, int depth);

static void write_newline(json_writer *writer, int depth) {
    if (writer->indent == NULL) return;
    pith_builder_text(&writer->builder, "\n");
    pith_builder_repeat(&writer->builder, writer->indent, (size_t)depth);
}

static bool write_list(json_writer *writer, const pith_list *list, size_t from, int depth) {
    if (from >= list->n) {
        pith_builder_text(&writer->builder, "[]");
        return true;
    }
    pith_builder_text(&writer->builder, "[");
    for (size_t i = from; i < list->n; i++) {
        if (i > from) pith_builder_string(&writer->builder, writer->item_separator);
        write_newline(writer, depth + 1);
        if (!write_value(writer, list->items[i], depth + 1)) return false;
    }
    write_newline(writer, depth);
    pith_builder_text(&writer->builder, "]");
    return true;
}

/* The order in which a dict's entries are written; NULL after a failure. */
static size_t *entry_order(json_writer *writer, const pith_dict *dict) {
    pith_heap *heap = &writer->render->heap;
    size_t *order = pith_heap_array(heap, dict->n, sizeof *order);
    if (order == NULL) return NULL;
    for (size_t i = 0; i < dict->n; i++) order[i] = i;
    if (!writer->sort_keys) return order;
    pith_value *keys = pith_heap_array(heap, dict->n, sizeof *keys);
    if (keys == NULL) return NULL;
    for (size_t i = 0; i < dict->n; i++) keys[i] = dict->entries[i].key;
    return pith_sort_keys(writer->render, keys, dict->n, false, order) ? order : NULL;
}

static bool write_dict(json_writer *writer, const pith_dict *dict, int depth) {
    if (dict->n == 0) {
        pith_builder_text(&writer->builder, "{}");
        return true;
    }
    size_t *order = entry_order(writer, dict);
    if (order == NULL) return false;
    pith_builder_text(&writer->builder, "{");
    for (size_t i = 0; i < dict->n; i++) {
        const pith_entry *entry = &dict->entries[order[i]];
        if (i > 0) pith_builder_string(&writer->builder, writer->item_separator);
        write_newline(writer, depth + 1);
        if (!write_key(writer, entry->key)) return false;
        pith_builder_string(&writer->builder, writer->key_separator);
        if (!write_value(writer, entry->value, depth + 1)) return false;
    }
    write_newline(writer, depth);
    pith_builder_text(&writer->builder, "}");
    return true;
}

static bool write_value(json_writer *writer, pith_value value, int depth) {
    pith_heap *heap = &writer->render->heap;
    if (depth > PITH_TEMPLATE_MAX_DEPTH) pith_heap_fail(heap, PITH_FAULT_OVER_DEPTH);
    if (!pith_heap_charge(heap, 1)) return false;
    if (write_scalar(writer, value)) return true;
    switch (value.kind) {
    case PITH_KIND_STRING: write_string(writer, value.as.string); return true;
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE: return write_list(writer, value.as.list, 0, depth);
    case PITH_KIND_DICT: return write_dict(writer, value.as.dict, depth);
    case PITH_KIND_ITERATOR: {
        pith_iterator *iterator = value.as.iterator;
        size_t from = iterator->position;
        iterator->position = iterator->list->n;
        return write_list(writer, iterator->list, from, depth);
    }
    default:
        return pith_render_fail(writer->render, "tojson cannot write a %s",
                                pith_kind_name(value.kind));
    }
}

/* ---- arguments ---- */

static bool take_indent(json_writer *writer, pith_value indent) {
    pith_builder builder;
    if (indent.kind == PITH_KIND_ABSENT || indent.kind == PITH_KIND_NONE) return true;
    if (indent.kind == PITH_KIND_STRING) {
        writer->indent = indent.as.string;
        return true;
    }
    if (!pith_value_is_integer(indent)) {
        return pith_render_fail(writer->render, "tojson's indent is a number or a string, not %s",
                                pith_kind_name(indent.kind));
    }
    int64_t n = pith_value_integer(indent);
    if (n > PITH_FORMAT_MAX_WIDTH)
        return pith_render_fail(writer->render, "tojson's indent is too large");
    pith_builder_init(&builder, &writer->render->heap);
    for (int64_t i = 0; i < n && !builder.failed; i++) pith_builder_text(&builder, " ");
    writer->indent = pith_builder_finish(&builder);
    return writer->indent != NULL;
}

static bool take_separators(json_writer *writer, pith_value separators) {
    pith_heap *heap = &writer->render->heap;
    if (separators.kind == PITH_KIND_ABSENT || separators.kind == PITH_KIND_NONE) {
        size_t n = writer->indent != NULL ? 1 : 2; /* no blank at the end of a line */
        writer->item_separator = pith_string_borrow(heap, ", ", n, false);
        writer->key_separator = pith_string_borrow(heap, ": ", 2, false);
        return writer->item_separator != NULL && writer->key_separator != NULL;
    }
    bool is_pair = (separators.kind == PITH_KIND_TUPLE || separators.kind == PITH_KIND_LIST) &&
                   separators.as.list->n == 2 &&
                   separators.as.list->items[0].kind == PITH_KIND_STRING &&
                   separators.as.list->items[1].kind == PITH_KIND_STRING;
    if (!is_pair) return pith_render_fail(writer->render, "tojson's separators are two strings");
    writer->item_separator = separators.as.list->items[0].as.string;
    writer->key_separator = separators.as.list->items[1].as.string;
    return true;
}

bool pith_filter_tojson(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"ensure_ascii", "indent", "separators", "sort_keys"};
    pith_value arguments[4];
    json_writer writer = {.render = render};
    if (!pith_call_bind(render, call, names, 4, 0, arguments)) return false;
    if (!take_indent(&writer, arguments[1]) || !take_separators(&writer, arguments[2]))
        return false;
    writer.ensure_ascii = pith_value_truth(arguments[0]);
    writer.sort_keys = pith_value_truth(arguments[3]);
    pith_builder_init(&writer.builder, &render->heap);
    if (!write_value(&writer, call->self, 0)) return false;
    return pith_render_give(pith_value_string(pith_builder_finish(&writer.builder)), out);
}
