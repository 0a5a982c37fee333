/* SPDX-License-Identifier: Apache-2.0
 * Where the options of `pith serve` come from: flags, else variables PITH_SERVE_<OPTION>, else the
 * file of --config, else defaults. All three know every option by the same name and read values
 * with the same code. Private to serve.c. */
#ifndef PITH_APPS_PITH_SERVE_CONFIG_H
#define PITH_APPS_PITH_SERVE_CONFIG_H

#include "pith/cli.h"

enum { PITH_SERVE_OPTIONS_MAX = 64 };

typedef enum pith_serve_source {
    PITH_SERVE_DEFAULT,
    PITH_SERVE_FLAG,
    PITH_SERVE_VARIABLE,
    PITH_SERVE_FILE
} pith_serve_source;

/* Zero at first. Texts of options live until it is released. */
typedef struct pith_serve_config {
    const pith_cli_command *command;
    unsigned char sources[PITH_SERVE_OPTIONS_MAX]; /* [n_options] pith_serve_source */
    int lines[PITH_SERVE_OPTIONS_MAX];             /* of the file */
    const char *path;                              /* of the file, or NULL */
    pith_buffer text;
    json_t *kept; /* every text that an option points into */
} pith_serve_config;

/* Fills the options' targets, which hold defaults; path: the target of --config. Exit code, or
 * -1. */
int pith_serve_config_read(pith_serve_config *config, const pith_cli_command *command, int argc,
                           char **argv, const char *const *path);
void pith_serve_config_release(pith_serve_config *config);
/* {"config": {option: value}, "from": {option: source}, "secrets"} on stdout. secrets: {name: "from
 * where"}, never a secret itself; released. */
int pith_serve_config_print(const pith_serve_config *config, json_t *secrets);

#endif
