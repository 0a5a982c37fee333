/* SPDX-License-Identifier: Apache-2.0
 * Options beyond the command line: values from other sources (serve_config.c), and --help for other
 * programs (main.c). */
#ifndef PITH_APPS_PITH_OPTION_VALUE_H
#define PITH_APPS_PITH_OPTION_VALUE_H

#include "pith/cli.h"

/* ---- options.c ---- */
/* pith_cli_parse_alone that tells which options were given: given[i] is set to 1; may be NULL. */
int pith_cli_parse_given(const pith_cli_command *command, int argc, char **argv,
                         unsigned char *given);
/* The option's value from text, which lives as long as the target; of a flag "true" or "false".
 * false with a sentence. */
bool pith_cli_option_read(const pith_cli_option *option, const char *value, pith_error *error);
/* --help is told as a line of JSON from now on, with this short summary beside the command's own;
 * NULL: as text. For man pages and completions (apps/manual). */
void pith_cli_help_json(const char *summary);

/* ---- host.c ---- */
/* Calls each(user, name) for the names of all variables until it returns false; whether all
 * returned true. */
bool pith_cli_each_variable(bool (*each)(void *user, const char *name), void *user);

#endif
