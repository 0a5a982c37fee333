/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that look at one string alone: case, padding, stripping, what its characters
 * are, format.
 */
#include "chat/format.h"
#include "chat/methods.h"
#include "chat/string_edit.h"
#include "chat/unicode_case.h"

static bool give(const pith_string *string, pith_value *out) {
    return pith_render_give(pith_value_string(string), out);
}

/* ---- case ---- */

static bool change_case(pith_render *render, const pith_call *call, pith_case_style style,
                        pith_value *out) {
    const pith_string *self = call->self.as.string;
    if (!pith_call_bind_nothing(render, call) || !pith_heap_charge(&render->heap, self->size / 4))
        return false;
    return give(pith_unicode_change(&render->heap, self, style), out);
}

bool pith_method_capitalize(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_CAPITALIZE, out);
}

bool pith_method_lower(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_LOWER, out);
}

bool pith_method_swapcase(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_SWAP, out);
}

bool pith_method_title(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_TITLE, out);
}

bool pith_method_upper(pith_render *render, const pith_call *call, pith_value *out) {
    return change_case(render, call, PITH_CASE_UPPER, out);
}

/* ---- padding ---- */

/* (width, fillchar=' ') */
static bool take_width(pith_render *render, const pith_call *call, size_t *width, uint32_t *fill) {
    static const char *const names[] = {"width", "fillchar"};
    pith_value arguments[2];
    const pith_string *text;
    int64_t n;
    *fill = ' ';
    if (!pith_call_bind(render, call, names, 2, 1, arguments) ||
        !pith_argument_int(render, call, "width", arguments[0], 0, &n)) {
        return false;
    }
    if (n > PITH_FORMAT_MAX_WIDTH)
        return pith_render_fail(render, "%s's width is too large", call->name);
    *width = n > 0 ? (size_t)n : 0;
    if (arguments[1].kind == PITH_KIND_ABSENT) return true;
    if (!pith_argument_string(render, call, "fillchar", arguments[1], &text)) return false;
    if (text->n_chars != 1)
        return pith_render_fail(render, "%s's fill is not one character", call->name);
    pith_utf8_decode(text->data, text->size, fill);
    return true;
}

static size_t lacking(const pith_string *string, size_t width) {
    return width > string->n_chars ? width - string->n_chars : 0;
}

bool pith_method_center(pith_render *render, const pith_call *call, pith_value *out) {
    size_t width = 0;
    uint32_t fill = 0;
    if (!take_width(render, call, &width, &fill)) return false;
    return give(pith_string_center(&render->heap, call->self.as.string, width, fill), out);
}

bool pith_method_ljust(pith_render *render, const pith_call *call, pith_value *out) {
    size_t width = 0;
    uint32_t fill = 0;
    if (!take_width(render, call, &width, &fill)) return false;
    const pith_string *self = call->self.as.string;
    return give(pith_string_pad(&render->heap, self, 0, lacking(self, width), fill), out);
}

bool pith_method_rjust(pith_render *render, const pith_call *call, pith_value *out) {
    size_t width = 0;
    uint32_t fill = 0;
    if (!take_width(render, call, &width, &fill)) return false;
    const pith_string *self = call->self.as.string;
    return give(pith_string_pad(&render->heap, self, lacking(self, width), 0, fill), out);
}

/* Zeros behind the sign. */
bool pith_method_zfill(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *self = call->self.as.string;
    size_t width = 0;
    uint32_t fill = 0;
    pith_builder builder;
    if (call->n_args > 1) return pith_render_fail(render, "zfill takes one argument");
    if (!take_width(render, call, &width, &fill)) return false;
    size_t n_sign = self->size > 0 && (self->data[0] == '+' || self->data[0] == '-') ? 1 : 0;
    pith_builder_init(&builder, &render->heap);
    pith_builder_slice(&builder, self, 0, n_sign);
    for (size_t i = lacking(self, width); i > 0 && !builder.failed; i--)
        pith_builder_text(&builder, "0");
    pith_builder_slice(&builder, self, n_sign, self->size - n_sign);
    return give(pith_builder_finish(&builder), out);
}

/* ---- stripping ---- */

static bool strip(pith_render *render, const pith_call *call, int sides, pith_value *out) {
    static const char *const names[] = {"chars"};
    pith_value argument;
    const pith_string *chars = NULL;
    if (!pith_call_bind(render, call, names, 1, 0, &argument)) return false;
    if (argument.kind != PITH_KIND_ABSENT && argument.kind != PITH_KIND_NONE &&
        !pith_argument_string(render, call, "chars", argument, &chars)) {
        return false;
    }
    return give(pith_string_strip(&render->heap, call->self.as.string, chars, sides), out);
}

bool pith_method_strip(pith_render *render, const pith_call *call, pith_value *out) {
    return strip(render, call, PITH_STRIP_BOTH, out);
}

bool pith_method_lstrip(pith_render *render, const pith_call *call, pith_value *out) {
    return strip(render, call, PITH_STRIP_LEFT, out);
}

bool pith_method_rstrip(pith_render *render, const pith_call *call, pith_value *out) {
    return strip(render, call, PITH_STRIP_RIGHT, out);
}

bool pith_method_format(pith_render *render, const pith_call *call, pith_value *out) {
    return pith_format_braces(render, call->self.as.string, call, out);
}

/* ---- what the characters are ---- */

/* Every character has one of the flags; an empty string gives `if_empty`. */
static bool all_have(pith_render *render, const pith_call *call, uint32_t flags, bool if_empty,
                     pith_value *out) {
    const pith_string *self = call->self.as.string;
    bool result = self->size > 0 || if_empty;
    for (pith_walk walk = pith_walk_begin(self); result && pith_walk_next(&walk);) {
        result = (pith_unicode_flags(walk.code) & flags) != 0;
    }
    *out = pith_bool(result);
    return pith_call_bind_nothing(render, call) && pith_heap_charge(&render->heap, self->size / 4);
}

bool pith_method_isalnum(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call,
                    PITH_UNICODE_ALPHA | PITH_UNICODE_DECIMAL | PITH_UNICODE_DIGIT |
                        PITH_UNICODE_NUMERIC,
                    false, out);
}

bool pith_method_isalpha(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call, PITH_UNICODE_ALPHA, false, out);
}

bool pith_method_isdecimal(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call, PITH_UNICODE_DECIMAL, false, out);
}

bool pith_method_isdigit(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call, PITH_UNICODE_DIGIT, false, out);
}

bool pith_method_isnumeric(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call, PITH_UNICODE_NUMERIC, false, out);
}

bool pith_method_isprintable(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call, PITH_UNICODE_PRINTABLE, true, out);
}

bool pith_method_isspace(pith_render *render, const pith_call *call, pith_value *out) {
    return all_have(render, call, PITH_UNICODE_SPACE, false, out);
}

bool pith_method_isascii(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *self = call->self.as.string;
    bool result = true;
    for (size_t i = 0; i < self->size && result; i++) result = (unsigned char)self->data[i] < 0x80;
    *out = pith_bool(result);
    return pith_call_bind_nothing(render, call) && pith_heap_charge(&render->heap, self->size / 64);
}

/* A cased letter, and none that has one of the cases in `without`. */
static bool is_cased(pith_render *render, const pith_call *call, uint32_t with, uint32_t without,
                     pith_value *out) {
    const pith_string *self = call->self.as.string;
    bool found = false, spoiled = false;
    for (pith_walk walk = pith_walk_begin(self); !spoiled && pith_walk_next(&walk);) {
        uint32_t flags = pith_unicode_flags(walk.code);
        found = found || (flags & with) != 0;
        spoiled = (flags & without) != 0;
    }
    *out = pith_bool(found && !spoiled);
    return pith_call_bind_nothing(render, call) && pith_heap_charge(&render->heap, self->size / 4);
}

bool pith_method_islower(pith_render *render, const pith_call *call, pith_value *out) {
    return is_cased(render, call, PITH_UNICODE_LOWER, PITH_UNICODE_UPPER | PITH_UNICODE_TITLE, out);
}

bool pith_method_isupper(pith_render *render, const pith_call *call, pith_value *out) {
    return is_cased(render, call, PITH_UNICODE_UPPER, PITH_UNICODE_LOWER | PITH_UNICODE_TITLE, out);
}

/* Capitals (or title-case letters) only where no cased letter stands before, small letters only
 * where one does. */
bool pith_method_istitle(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *self = call->self.as.string;
    bool found = false, spoiled = false, after_cased = false;
    for (pith_walk walk = pith_walk_begin(self); !spoiled && pith_walk_next(&walk);) {
        uint32_t flags = pith_unicode_flags(walk.code);
        bool is_capital = (flags & (PITH_UNICODE_UPPER | PITH_UNICODE_TITLE)) != 0;
        bool is_small = !is_capital && (flags & PITH_UNICODE_LOWER) != 0;
        spoiled = (is_capital && after_cased) || (is_small && !after_cased);
        found = found || is_capital || is_small;
        after_cased = is_capital || is_small;
    }
    *out = pith_bool(found && !spoiled);
    return pith_call_bind_nothing(render, call) && pith_heap_charge(&render->heap, self->size / 4);
}
