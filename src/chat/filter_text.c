/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters that change a text. The subject is turned into a string first, so `5 | trim` is '5'.
 *
 * Invariant: bytes that stay keep their author (string_edit.c, unicode_case.c); what a filter adds
 * is the template's, or the author's of the argument it comes from.
 */
#include "chat/filters.h"
#include "chat/format.h"
#include "chat/string_edit.h"
#include "chat/unicode_case.h"

static bool change_case(pith_render *render, const pith_call *call, pith_case_style style,
                        pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    if (text == NULL || !pith_call_bind_nothing(render, call)) return false;
    if (!pith_heap_charge(&render->heap, text->size / 4)) return false;
    return pith_render_give(pith_value_string(pith_unicode_change(&render->heap, text, style)),
                            out);
}

bool pith_filter_capitalize(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_CAPITALIZE, out);
}

bool pith_filter_lower(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_LOWER, out);
}

bool pith_filter_title(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_TITLE_WORD, out);
}

bool pith_filter_upper(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_UPPER, out);
}

bool pith_filter_trim(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"chars"};
    const pith_string *text = pith_call_text(render, call), *chars = NULL;
    pith_value argument;
    if (text == NULL || !pith_call_bind(render, call, names, 1, 0, &argument)) return false;
    if (argument.kind != PITH_KIND_ABSENT && argument.kind != PITH_KIND_NONE &&
        !pith_argument_string(render, call, "chars", argument, &chars)) {
        return false;
    }
    return pith_render_give(
        pith_value_string(pith_string_strip(&render->heap, text, chars, PITH_STRIP_BOTH)), out);
}

bool pith_filter_replace(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"old", "new", "count"};
    const pith_string *text = pith_call_text(render, call);
    pith_value arguments[3];
    int64_t limit = -1;
    if (text == NULL || !pith_call_bind(render, call, names, 3, 2, arguments)) return false;
    if (arguments[2].kind != PITH_KIND_NONE &&
        !pith_argument_int(render, call, "count", arguments[2], -1, &limit)) {
        return false;
    }
    const pith_string *old = pith_value_str(render, arguments[0]),
                      *with = pith_value_str(render, arguments[1]);
    if (old == NULL || with == NULL) return false;
    const pith_string *replaced = pith_string_replace(&render->heap, text, old, with, limit);
    if (replaced != NULL && replaced->is_safe)
        replaced = pith_string_mark_safe(&render->heap, replaced, false);
    return pith_render_give(pith_value_string(replaced), out);
}

/* ---- indent ---- */

/* The indentation: a number of blanks, or a string. */
static const pith_string *indentation(pith_render *render, const pith_call *call,
                                      pith_value width) {
    int64_t n;
    if (width.kind == PITH_KIND_STRING) return width.as.string;
    if (!pith_argument_int(render, call, "width", width, 4, &n)) return NULL;
    if (n > PITH_FORMAT_MAX_WIDTH) {
        pith_render_fail(render, "indent's width is too large");
        return NULL;
    }
    pith_string *blank = pith_string_borrow(&render->heap, " ", 1, false);
    pith_builder builder;
    pith_builder_init(&builder, &render->heap);
    if (blank != NULL && n > 0) pith_builder_repeat(&builder, blank, (size_t)n);
    return pith_builder_finish(&builder);
}

/* Line ends become \n and keep their author. The first line is not indented here. */
static void indent_lines(pith_builder *builder, const pith_string *text, const pith_string *indent,
                         bool blank_lines) {
    size_t from = 0;
    for (size_t at = 0; at <= text->size && !builder->failed; at++) {
        size_t end = at < text->size ? pith_string_line_end(text, at) : 0;
        if (end == 0 && at < text->size) continue;
        bool is_first = from == 0, is_blank = at == from;
        if (!is_first && (!is_blank || blank_lines)) pith_builder_string(builder, indent);
        pith_builder_slice(builder, text, from, at - from);
        if (end == 0) break;
        pith_builder_bytes(builder, "\n", 1, pith_string_user_at(text, at));
        from = at + end;
        at = from - 1;
        if (from == text->size) { /* a last, empty line */
            if (blank_lines) pith_builder_string(builder, indent);
            break;
        }
    }
}

bool pith_filter_indent(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"width", "first", "blank"};
    const pith_string *text, *indent;
    pith_value arguments[3];
    pith_builder builder;
    if (!pith_call_bind(render, call, names, 3, 0, arguments)) return false;
    if (call->self.kind == PITH_KIND_UNDEFINED)
        return pith_render_fail_undefined(render, call->self);
    if (call->self.kind != PITH_KIND_STRING) {
        return pith_render_fail(render, "indent needs a string, not %s",
                                pith_kind_name(call->self.kind));
    }
    text = call->self.as.string;
    indent = indentation(render, call, arguments[0]);
    if (indent == NULL || !pith_heap_charge(&render->heap, text->size / 4)) return false;
    pith_builder_init(&builder, &render->heap);
    if (pith_value_truth(arguments[1])) pith_builder_string(&builder, indent);
    indent_lines(&builder, text, indent, pith_value_truth(arguments[2]));
    pith_string *indented = pith_builder_finish(&builder);
    if (indented == NULL) return false;
    indented->is_safe = text->is_safe;
    return pith_render_give(pith_value_string(indented), out);
}

/* ---- the rest ---- */

bool pith_filter_center(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"width"};
    const pith_string *text = pith_call_text(render, call);
    pith_value argument;
    int64_t width;
    if (text == NULL || !pith_call_bind(render, call, names, 1, 0, &argument) ||
        !pith_argument_int(render, call, "width", argument, 80, &width)) {
        return false;
    }
    if (width > PITH_FORMAT_MAX_WIDTH)
        return pith_render_fail(render, "center's width is too large");
    size_t wanted = width > 0 ? (size_t)width : 0;
    return pith_render_give(pith_value_string(pith_string_center(&render->heap, text, wanted, ' ')),
                            out);
}

/* The first `n_chars` characters of text, up to the last blank among them unless words may be cut,
 * then `end`. */
static const pith_string *cut_text(pith_heap *heap, const pith_string *text, size_t n_chars,
                                   bool cuts_words, const pith_string *end) {
    size_t size = pith_string_offset(text, n_chars < text->n_chars ? n_chars : text->n_chars),
           blank = size;
    while (!cuts_words && blank > 0 && text->data[blank - 1] != ' ') blank--;
    if (blank > 0 && !cuts_words) size = blank - 1;
    pith_builder builder;
    pith_builder_init(&builder, heap);
    pith_builder_slice(&builder, text, 0, size);
    pith_builder_string(&builder, end);
    return pith_builder_finish(&builder);
}

/* (length=255, killwords=False, end='...', leeway=5) */
static bool take_truncation(pith_render *render, const pith_call *call, int64_t *length,
                            uint64_t *limit, bool *cuts_words, const pith_string **end) {
    static const char *const names[] = {"length", "killwords", "end", "leeway"};
    pith_value arguments[4];
    int64_t leeway;
    if (!pith_call_bind(render, call, names, 4, 0, arguments)) return false;
    if (arguments[3].kind == PITH_KIND_NONE) arguments[3].kind = PITH_KIND_ABSENT;
    if (!pith_argument_int(render, call, "length", arguments[0], 255, length) ||
        !pith_argument_int(render, call, "leeway", arguments[3], 5, &leeway)) {
        return false;
    }
    if (arguments[2].kind == PITH_KIND_ABSENT) arguments[2] = pith_value_text(&render->heap, "...");
    if (!pith_argument_string(render, call, "end", arguments[2], end)) return false;
    if (*length < (int64_t)(*end)->n_chars || leeway < 0) {
        return pith_render_fail(render, "truncate's length must be at least that of its end, and "
                                        "its leeway not negative");
    }
    *cuts_words = pith_value_truth(arguments[1]);
    *limit = (uint64_t)*length + (uint64_t)leeway;
    return true;
}

bool pith_filter_truncate(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *end = NULL;
    int64_t length = 0;
    uint64_t limit = 0;
    size_t n;
    bool cuts_words = false;
    if (!take_truncation(render, call, &length, &limit, &cuts_words, &end)) return false;
    if (!pith_value_length(call->self, &n)) {
        return pith_render_fail(render, "a %s has no length", pith_kind_name(call->self.kind));
    }
    *out = call->self;
    if (n <= limit) return true;
    if (call->self.kind != PITH_KIND_STRING) {
        return pith_render_fail(render, "truncate needs a string, not %s",
                                pith_kind_name(call->self.kind));
    }
    size_t kept = (size_t)length - end->n_chars;
    const pith_string *cut = cut_text(&render->heap, call->self.as.string, kept, cuts_words, end);
    return pith_render_give(pith_value_string(cut), out);
}

bool pith_filter_wordcount(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    int64_t n = 0;
    bool inside = false;
    if (text == NULL || !pith_call_bind_nothing(render, call)) return false;
    for (pith_walk walk = pith_walk_begin(text); pith_walk_next(&walk);) {
        uint32_t flags = pith_unicode_flags(walk.code);
        bool is_word =
            walk.code == '_' || (flags & (PITH_UNICODE_ALPHA | PITH_UNICODE_NUMERIC)) != 0;
        n += is_word && !inside;
        inside = is_word;
    }
    *out = pith_int(n);
    return pith_heap_charge(&render->heap, text->size / 4);
}

bool pith_filter_string(pith_render *render, const pith_call *call, pith_value *out) {
    if (!pith_call_bind_nothing(render, call)) return false;
    return pith_render_give(pith_value_string(pith_call_text(render, call)), out);
}

bool pith_filter_format(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *format = pith_call_text(render, call);
    if (format == NULL) return false;
    if (call->n_args > 0 && call->n_keywords > 0) {
        return pith_render_fail(render, "format takes values or keywords, not both");
    }
    if (call->n_keywords > 0) {
        pith_dict *dict = pith_dict_new(&render->heap, call->n_keywords);
        for (size_t i = 0; i < call->n_keywords && dict != NULL; i++) {
            if (!pith_dict_set(&render->heap, dict, call->keywords[2 * i],
                               call->keywords[2 * i + 1]))
                return false;
        }
        return dict != NULL && pith_format_percent(render, format, pith_value_dict(dict), out);
    }
    pith_list *values = pith_list_new(&render->heap, call->n_args);
    if (values == NULL) return false;
    for (size_t i = 0; i < call->n_args; i++) values->items[i] = call->args[i];
    values->n = call->n_args;
    return pith_format_percent(render, format, pith_value_tuple(values), out);
}
