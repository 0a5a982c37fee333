/* SPDX-License-Identifier: Apache-2.0
 *
 * Laying out one value: numbers in every base and style, text with width and precision.
 *
 *   | fill | sign | prefix | zeros | digits with groups | suffix | fill |
 *
 * A number is first cut into these parts, then written with the fill that its alignment asks for
 * ('=' puts it behind the prefix; with zeros and groups the zeros are grouped too, as in
 * 0,001,234).
 *
 * Invariant: everything written here is the template's; the text given to pith_format_text keeps
 * its authors.
 */
#include "chat/format.h"

#include "chat/number_text.h"

#include <math.h>
#include <string.h>

/* ---- reading a specification ---- */

static bool is_align(uint32_t c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
}

static bool take(pith_span *text, const char *chars, char *out) {
    if (text->size == 0 || text->data[0] == 0 || strchr(chars, text->data[0]) == NULL) return false;
    *out = text->data[0];
    text->data++;
    text->size--;
    return true;
}

static bool take_number(pith_render *render, pith_span *text, int64_t *out) {
    *out = 0;
    while (text->size > 0 && text->data[0] >= '0' && text->data[0] <= '9') {
        *out = *out * 10 + (text->data[0] - '0');
        if (*out > PITH_FORMAT_MAX_WIDTH)
            return pith_render_fail(render, "a width or precision is too large");
        text->data++;
        text->size--;
    }
    return true;
}

bool pith_format_spec_read(pith_render *render, pith_span text, pith_format_spec *spec) {
    char zero = 0, dot;
    uint32_t fill = ' ';
    size_t size = text.size > 0 ? pith_utf8_decode(text.data, text.size, &fill) : 0;
    *spec = (pith_format_spec){.fill = ' ', .sign = '-', .precision = -1};
    if (size > 0 && size < text.size && is_align((unsigned char)text.data[size])) {
        spec->fill = fill;
        text.data += size;
        text.size -= size;
    }
    char ignored;
    take(&text, "<>^=", &spec->align);
    take(&text, "+- ", &spec->sign);
    take(&text, "z", &ignored);
    spec->is_alternate = take(&text, "#", &ignored);
    if (take(&text, "0", &zero) && spec->align == 0) spec->align = '=';
    if (zero != 0 && spec->fill == ' ') spec->fill = '0';
    if (!take_number(render, &text, &spec->width)) return false;
    take(&text, ",_", &spec->grouping);
    if (take(&text, ".", &dot)) {
        if (text.size == 0 || text.data[0] < '0' || text.data[0] > '9') {
            return pith_render_fail(render, "a format specification lacks its precision");
        }
        if (!take_number(render, &text, &spec->precision)) return false;
    }
    take(&text, "bcdeEfFgGnosxX%r", &spec->type);
    return text.size == 0 || pith_render_fail(render, "a format specification is not valid");
}

/* ---- writing ---- */

static void append_fill(pith_builder *builder, uint32_t fill, int64_t n) {
    for (int64_t i = 0; i < n && !builder->failed; i++) pith_builder_char(builder, fill, false);
}

/* How much fill goes before and behind something `length` long. */
static void split_fill(const pith_format_spec *spec, char align, int64_t length, int64_t *before,
                       int64_t *behind) {
    int64_t fill = spec->width > length ? spec->width - length : 0;
    *before = align == '<' ? 0 : align == '^' ? fill / 2 : fill;
    *behind = fill - *before;
}

void pith_format_text(pith_builder *builder, const pith_string *string,
                      const pith_format_spec *spec) {
    size_t n_chars = string->n_chars, size = string->size;
    int64_t before, behind;
    if (spec->precision >= 0 && (uint64_t)spec->precision < n_chars) {
        n_chars = (size_t)spec->precision;
        size = pith_string_offset(string, n_chars);
    }
    split_fill(spec, spec->align == 0 || spec->align == '=' ? '<' : spec->align, (int64_t)n_chars,
               &before, &behind);
    append_fill(builder, spec->fill, before);
    pith_builder_slice(builder, string, 0, size);
    append_fill(builder, spec->fill, behind);
}

typedef struct number_parts {
    char sign; /* 0: none */
    char prefix[3];
    char digits[PITH_FLOAT_TEXT_MAX + 8]; /* with point and exponent */
    size_t n_digits, n_whole; /* n_whole: digits before the point, the ones that are grouped */
    bool has_percent;
} number_parts;

/* Digits with separators every `every` digits, from the right, after n_zeros zeros. */
static void append_grouped(pith_builder *builder, const number_parts *parts, char separator,
                           size_t every, size_t n_zeros) {
    size_t n = parts->n_whole + n_zeros;
    for (size_t i = 0; i < n && !builder->failed; i++) {
        if (separator != 0 && i > 0 && (n - i) % every == 0)
            pith_builder_bytes(builder, &separator, 1, false);
        pith_builder_bytes(builder, i < n_zeros ? "0" : &parts->digits[i - n_zeros], 1, false);
    }
    pith_builder_bytes(builder, parts->digits + parts->n_whole, parts->n_digits - parts->n_whole,
                       false);
}

static void append_parts(pith_builder *builder, const number_parts *parts,
                         const pith_format_spec *spec) {
    size_t every =
        spec->grouping == '_' && strchr("bxXo", spec->type) != NULL && spec->type != 0 ? 4 : 3;
    size_t n_zeros = 0, n_whole = parts->n_whole, fixed;
    size_t separators = spec->grouping != 0 && n_whole > 0 ? (n_whole - 1) / every : 0;
    char align = spec->align == 0 ? '>' : spec->align;
    int64_t before, behind;
    fixed = (parts->sign != 0) + strlen(parts->prefix) + parts->n_digits + parts->has_percent;
    if (align == '=' && spec->fill == '0') {
        while ((int64_t)(fixed + n_zeros + separators) < spec->width) {
            n_zeros++;
            separators = spec->grouping != 0 ? (n_whole + n_zeros - 1) / every : 0;
        }
    }
    split_fill(spec, align, (int64_t)(fixed + n_zeros + separators), &before, &behind);
    if (align != '=') append_fill(builder, spec->fill, before);
    if (parts->sign != 0) pith_builder_bytes(builder, &parts->sign, 1, false);
    pith_builder_text(builder, parts->prefix);
    if (align == '=') append_fill(builder, spec->fill, before);
    append_grouped(builder, parts, spec->grouping, every, n_zeros);
    if (parts->has_percent) pith_builder_text(builder, "%");
    append_fill(builder, spec->fill, behind);
}

/* ---- integers ---- */

static void cut_integer(int64_t value, const pith_format_spec *spec, number_parts *parts) {
    char type = spec->type;
    uint64_t base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    const char *symbols = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char reversed[PITH_FLOAT_MAX_PRECISION];
    size_t n = 0;
    do {
        reversed[n++] = symbols[rest % base];
        rest /= base;
    } while (rest > 0);
    while ((int64_t)n < spec->precision && n < sizeof reversed) reversed[n++] = '0';
    for (size_t i = 0; i < n; i++) parts->digits[i] = reversed[n - 1 - i];
    parts->n_digits = parts->n_whole = n;
    if (value < 0) parts->sign = '-';
    if (spec->is_alternate && base != 10) {
        parts->prefix[0] = '0';
        parts->prefix[1] = type;
    }
}

/* ---- floats ---- */

/* Removes zeros at the end of a fraction (before an exponent), and a point that is left alone. */
static void strip_zeros(number_parts *parts) {
    char *point = memchr(parts->digits, '.', parts->n_digits);
    char *exponent = memchr(parts->digits, 'e', parts->n_digits);
    if (point == NULL) return;
    char *end = exponent != NULL ? exponent : parts->digits + parts->n_digits, *stop = end;
    while (stop[-1] == '0') stop--;
    if (stop[-1] == '.') stop--;
    memmove(stop, end, (size_t)(parts->digits + parts->n_digits - end));
    parts->n_digits -= (size_t)(end - stop);
}

/* A point (and perhaps a zero) where an alternate form or str() wants one; before the exponent. */
static void ensure_point(number_parts *parts, const char *text) {
    size_t n = strlen(text);
    char *exponent = memchr(parts->digits, 'e', parts->n_digits);
    size_t at = exponent != NULL ? (size_t)(exponent - parts->digits) : parts->n_digits;
    if (memchr(parts->digits, '.', parts->n_digits) != NULL) return;
    memmove(parts->digits + at + n, parts->digits + at, parts->n_digits - at);
    memcpy(parts->digits + at, text, n);
    parts->n_digits += n;
}

static int exponent_of(const char *text, size_t n) {
    const char *e = memchr(text, 'e', n);
    int sum = 0;
    for (size_t i = e == NULL ? n : (size_t)(e - text) + 2; i < n; i++)
        sum = sum * 10 + (text[i] - '0');
    return e != NULL && e[1] == '-' ? -sum : sum;
}

/* %g; as_repr: as a float without a type, which has a point or an exponent in any case. */
static void cut_general(double value, int precision, bool keeps_zeros, bool as_repr,
                        number_parts *parts) {
    if (precision == 0) precision = 1;
    parts->n_digits = pith_float_text(value, 'e', precision - 1, parts->digits);
    int exponent = exponent_of(parts->digits, parts->n_digits),
        limit = as_repr ? precision - 1 : precision;
    bool is_fixed = exponent >= -4 && exponent < limit;
    if (is_fixed)
        parts->n_digits = pith_float_text(value, 'f', precision - 1 - exponent, parts->digits);
    if (!keeps_zeros) strip_zeros(parts);
    if (as_repr && is_fixed) ensure_point(parts, ".0");
}

static void cut_float(double value, const pith_format_spec *spec, number_parts *parts) {
    char type = (char)(spec->type | 0x20); /* '%' stays itself */
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    if (precision > PITH_FLOAT_MAX_PRECISION) precision = PITH_FLOAT_MAX_PRECISION;
    bool is_special = !isfinite(value);
    if (signbit(value) && value == value) parts->sign = '-';
    if (type == '%') {
        value *= 100.0;
        parts->has_percent = true;
    }
    if (is_special) {
        memcpy(parts->digits, value != value ? "nan" : "inf", 3);
        parts->n_digits = 3;
    } else if (spec->type == 0 && spec->precision < 0) {
        parts->n_digits = pith_float_repr(fabs(value), parts->digits);
    } else if (type == 'f' || type == '%') {
        parts->n_digits = pith_float_text(value, 'f', precision, parts->digits);
    } else if (type == 'e') {
        parts->n_digits = pith_float_text(value, 'e', precision, parts->digits);
    } else {
        cut_general(value, precision, spec->is_alternate, spec->type == 0, parts);
    }
    if (spec->is_alternate && !is_special) ensure_point(parts, ".");
    while (parts->n_whole < parts->n_digits && parts->digits[parts->n_whole] >= '0' &&
           parts->digits[parts->n_whole] <= '9') {
        parts->n_whole++;
    }
    bool is_upper = spec->type == 'E' || spec->type == 'F' || spec->type == 'G';
    for (size_t i = 0; is_upper && i < parts->n_digits; i++) {
        if (parts->digits[i] >= 'a' && parts->digits[i] <= 'z')
            parts->digits[i] = (char)(parts->digits[i] - 0x20);
    }
}

bool pith_format_number(pith_render *render, pith_builder *builder, pith_value value,
                        const pith_format_spec *spec) {
    number_parts parts = {.sign = 0};
    bool is_float_type = spec->type != 0 && strchr("eEfFgG%", spec->type) != NULL;
    if (value.kind == PITH_KIND_FLOAT || is_float_type) {
        if (spec->type != 0 && !is_float_type && spec->type != 'n') {
            return pith_render_fail(render, "the format '%c' does not work for a float",
                                    spec->type);
        }
        pith_format_spec real = *spec;
        if (spec->type == 'n') real.type = 'g';
        if (!pith_heap_charge(&render->heap, PITH_FLOAT_STEPS)) return false;
        cut_float(pith_value_real(value), &real, &parts);
    } else if (spec->type == 'c') {
        pith_string *character = NULL;
        pith_builder one;
        pith_builder_init(&one, &render->heap);
        if (pith_value_integer(value) < 0 || pith_value_integer(value) > 0x10FFFF) {
            return pith_render_fail(render, "the format 'c' needs the number of a character");
        }
        pith_builder_char(&one, (uint32_t)pith_value_integer(value), false);
        character = pith_builder_finish(&one);
        if (character != NULL) pith_format_text(builder, character, spec);
        return character != NULL;
    } else if (spec->type != 0 && strchr("dnboxX", spec->type) == NULL) {
        return pith_render_fail(render, "the format '%c' does not work for an integer", spec->type);
    } else {
        cut_integer(pith_value_integer(value), spec, &parts);
    }
    if (parts.sign == 0 && spec->sign != '-') parts.sign = spec->sign;
    append_parts(builder, &parts, spec);
    return true;
}
