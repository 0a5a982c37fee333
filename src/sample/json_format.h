/* SPDX-License-Identifier: Apache-2.0
 * The values of `format` that are enforced, as regular expressions of the whole string. */
#ifndef PITH_SAMPLE_JSON_FORMAT_H
#define PITH_SAMPLE_JSON_FORMAT_H

#include <stdbool.h>

/* NULL: no format of strings that is enforced. */
const char *pith_json_format_pattern(const char *name);
/* Formats of integers: how many bits they have, 0 for others. */
int pith_json_format_bits(const char *name);
/* One of either, or one that every number that is written has (float, double). */
bool pith_json_format_is_known(const char *name);

#endif
