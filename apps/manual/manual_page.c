/* SPDX-License-Identifier: Apache-2.0
 * Man pages in roff's man macros, from the same words as --help. No date: the same source gives the
 * same bytes. */
#include "manual/manual.h"

#include <string.h>

/* What roff would take for its own is escaped. A line's first '.' or apostrophe too. */
static void append_roff(pith_buffer *out, const char *text) {
    bool at_line = true;
    for (; *text; text++) {
        if (at_line && (*text == '.' || *text == '\'')) pith_buffer_append_text(out, "\\&");
        at_line = *text == '\n';
        switch (*text) {
        case '\\': pith_buffer_append_text(out, "\\e"); break;
        case '-': pith_buffer_append_text(out, "\\-"); break;
        case '`': pith_buffer_append_text(out, "\\(ga"); break;
        case '~': pith_buffer_append_text(out, "\\(ti"); break;
        case '^': pith_buffer_append_text(out, "\\(ha"); break;
        case '\'': pith_buffer_append_text(out, "\\(aq"); break;
        default: pith_buffer_append(out, text, 1);
        }
    }
}

static void append_head(const manual *m, const char *title, const char *name, const char *what,
                        pith_buffer *out) {
    pith_buffer_append_text(out, ".\\\" made from `pith help --json`\n.TH ");
    for (; *title; title++) {
        char c = *title >= 'a' && *title <= 'z' ? (char)(*title - 'a' + 'A') : *title;
        pith_buffer_append(out, &c, 1);
    }
    pith_buffer_append_format(out, " 1 \"\" \"pith %s\" \"pith\"\n.SH NAME\n",
                              manual_text(m->program, "version"));
    append_roff(out, name);
    pith_buffer_append_text(out, " \\- ");
    append_roff(out, what);
    pith_buffer_append_text(out, "\n");
}

static void append_option(pith_buffer *out, const json_t *option) {
    const char *letter = manual_text(option, "letter"), *value = manual_text(option, "value");
    pith_buffer_append_text(out, ".TP\n");
    if (letter[0]) pith_buffer_append_format(out, "\\fB\\-%s\\fR, ", letter);
    pith_buffer_append_text(out, "\\fB\\-\\-");
    append_roff(out, manual_text(option, "name"));
    pith_buffer_append_text(out, "\\fR");
    if (value[0]) {
        bool is_choice = manual_value_of(option) == MANUAL_CHOICE;
        pith_buffer_append_text(out, is_choice ? " \\fR" : " \\fI");
        append_roff(out, value);
        pith_buffer_append_text(out, "\\fR");
    }
    pith_buffer_append_text(out, "\n");
    append_roff(out, manual_text(option, "help"));
    pith_buffer_append_text(out, "\n");
}

void manual_page_command(const manual *m, const json_t *command, pith_buffer *out) {
    const char *name = manual_text(command, "name"), *more = manual_text(command, "more");
    char title[80];
    json_t *option;
    size_t i;
    snprintf(title, sizeof title, "pith-%.60s", name);
    append_head(m, title, title, manual_text(command, "short"), out);
    pith_buffer_append_text(out, ".SH SYNOPSIS\n");
    append_roff(out, manual_text(command, "usage"));
    pith_buffer_append_text(out, "\n.SH DESCRIPTION\n");
    append_roff(out, manual_text(command, "summary"));
    pith_buffer_append_text(out, "\n.SH OPTIONS\n");
    json_array_foreach(json_object_get(command, "options"), i, option) {
        append_option(out, option);
    }
    pith_buffer_append_text(out,
                            ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow what this page says.\n");
    if (more[0]) {
        pith_buffer_append_text(out, ".SH NOTES\n.nf\n");
        append_roff(out, more);
        pith_buffer_append_text(out, "\n.fi\n");
    }
    pith_buffer_append_text(out, ".SH EXIT STATUS\n0 success, 1 failure, 2 a wrong call.\n"
                                 ".SH SEE ALSO\n.BR pith (1)\n");
}

void manual_page_program(const manual *m, pith_buffer *out) {
    json_t *command;
    size_t i;
    append_head(m, "pith", "pith", manual_text(m->program, "summary"), out);
    pith_buffer_append_text(out, ".SH SYNOPSIS\n\\fBpith\\fR \\fICOMMAND\\fR [options]\n"
                                 ".SH COMMANDS\n");
    json_array_foreach(m->commands, i, command) {
        pith_buffer_append_text(out, ".TP\n.BR pith\\-");
        append_roff(out, manual_text(command, "name"));
        pith_buffer_append_text(out, " (1)\n");
        append_roff(out, manual_text(command, "short"));
        pith_buffer_append_text(out, "\n");
    }
    pith_buffer_append_text(out, ".SH ENVIRONMENT\n.TP\n\\fBPITH_HOME\\fR\n"
                                 "The folder of models and of all that pith keeps. Without it: "
                                 "pith below the XDG cache folder.\n"
                                 ".SH EXIT STATUS\n0 success, 1 failure, 2 a wrong call.\n");
}
