/* SPDX-License-Identifier: Apache-2.0
 * Small JSON files in the home folder, found by a key (kept.c). */
#ifndef PITH_APPS_PITH_KEPT_H
#define PITH_APPS_PITH_KEPT_H

#include "pith/cli.h"

/* The file of `key` in a folder of the home folder; NULL when there is none that can be read. A
 * NULL key has no file. */
json_t *pith_cli_kept_read(const char *folder, const char *key);
/* Replaces it; the JSON is released. */
void pith_cli_kept_write(const char *folder, const char *key, json_t *json);
/* A member that is a number below 1e18, or a count from -1 to 2^30; false: there is none. */
bool pith_cli_kept_number(const json_t *object, const char *name, double *out);
bool pith_cli_kept_count(const json_t *object, const char *name, int32_t *out);

#endif
