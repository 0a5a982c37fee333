/* SPDX-License-Identifier: Apache-2.0
 * The options of `pith serve` that name a bigger engine and say what may go there. Private to
 * serve.c. */
#ifndef PITH_APPS_PITH_SERVE_UPSTREAM_H
#define PITH_APPS_PITH_SERVE_UPSTREAM_H

#include "pith/cli.h"
#include "server/server.h"

typedef struct pith_serve_upstream {
    const char *url, *model, *key_env, *words_file;
    int policy; /* a pith_server_policy */
    int32_t over_tokens, timeout;
    bool tools;
    pith_cli_list models;
} pith_serve_upstream;

typedef struct pith_serve_upstream_parts {
    char *key, *words, *log_path, *authorities;
} pith_serve_upstream_parts;

enum { PITH_SERVE_UPSTREAM_OPTIONS = 9 };
void pith_serve_upstream_table(pith_serve_upstream *options,
                               pith_cli_option out[PITH_SERVE_UPSTREAM_OPTIONS]);
/* Checks the options and reads what they name. Exit code, or -1. */
int pith_serve_upstream_open(const pith_cli_command *command, const pith_serve_upstream *options,
                             pith_serve_upstream_parts *parts);
void pith_serve_upstream_release(pith_serve_upstream_parts *parts);
pith_server_upstream pith_serve_upstream_server(const pith_serve_upstream *options,
                                                const pith_serve_upstream_parts *parts);

#endif
