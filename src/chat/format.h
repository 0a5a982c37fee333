/* SPDX-License-Identifier: Apache-2.0
 * Formatting: '%s' % x, '{}'.format(x), and the specifications they share. */
#ifndef PITH_CHAT_FORMAT_H
#define PITH_CHAT_FORMAT_H

#include "chat/native.h"

/* One value's layout: [[fill]align][sign][#][0][width][,][.precision][type]. */
typedef struct pith_format_spec {
    uint32_t fill;     /* code point; ' ' */
    char align;        /* '<' '>' '^' '='; 0: by kind */
    char sign;         /* '-' '+' ' ' */
    bool is_alternate; /* # */
    char grouping;     /* ',' '_' or 0 */
    int64_t width;     /* characters */
    int64_t precision; /* -1: none */
    char type;         /* 's' 'd' 'f' ...; 0: by kind */
} pith_format_spec;

enum { PITH_FORMAT_MAX_WIDTH = 1 << 20 };

/* format % value, or format % (values). */
bool pith_format_percent(pith_render *render, const pith_string *format, pith_value value,
                         pith_value *out);
/* format.format(args). */
bool pith_format_braces(pith_render *render, const pith_string *format, const pith_call *call,
                        pith_value *out);

/* Reads a whole specification; false after a failure. */
bool pith_format_spec_read(pith_render *render, pith_span text, pith_format_spec *spec);
/* Appends a number (int, bool, float) with any type but 's', or text, laid out. */
bool pith_format_number(pith_render *render, pith_builder *builder, pith_value value,
                        const pith_format_spec *spec);
void pith_format_text(pith_builder *builder, const pith_string *string,
                      const pith_format_spec *spec);

#endif
