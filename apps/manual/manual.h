/* SPDX-License-Identifier: Apache-2.0
 * The tool that makes man pages and shell completions at build time from what `pith help --json`
 * tells: lines of JSON, the program first, then its commands. Nothing of it is installed but what
 * it writes. */
#ifndef PITH_APPS_MANUAL_MANUAL_H
#define PITH_APPS_MANUAL_MANUAL_H

#include "base/text.h"

#include <jansson.h>

typedef struct manual {
    json_t *program;  /* {"version", "summary", "more"} */
    json_t *commands; /* [{"name", "short", "usage", "summary", "more", "options": [{"name",
                         "letter", "kind", "value", "help"}]}] */
} manual;

const char *manual_text(const json_t *object, const char *key); /* "" when absent */
/* What the value of an option is, for completion. */
typedef enum manual_value {
    MANUAL_NONE,   /* a flag */
    MANUAL_ANY,    /* a number, a text */
    MANUAL_CHOICE, /* one of "a|b|c" */
    MANUAL_FILE,
    MANUAL_FOLDER,
    MANUAL_MODEL /* a file, or a name that `pith list` shows */
} manual_value;
manual_value manual_value_of(const json_t *option);
/* The choices with spaces between them. */
void manual_append_choices(pith_buffer *out, const json_t *option);

/* pith.1, and pith-NAME.1 of a command. */
void manual_page_program(const manual *m, pith_buffer *out);
void manual_page_command(const manual *m, const json_t *command, pith_buffer *out);

void manual_complete_bash(const manual *m, pith_buffer *out);
void manual_complete_zsh(const manual *m, pith_buffer *out);
void manual_complete_fish(const manual *m, pith_buffer *out);

#endif
