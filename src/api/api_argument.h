/* SPDX-License-Identifier: Apache-2.0
 * Checks of arguments that every function of pith.h makes (private to the api room).
 *
 * The room's rule: a NULL that is not allowed, or an option struct without a size, is
 * PITH_ERROR_ARGUMENT with the name of the argument; getters of NULL give nothing (0, "", NULL).
 * After these checks the rooms below trust their callers. Option structs: exactly min(size, ours)
 * bytes are read, what is absent is zero, an unknown tail is ignored. */
#ifndef PITH_API_API_ARGUMENT_H
#define PITH_API_API_ARGUMENT_H

#include "base/status.h"

/* PITH_ERROR_ARGUMENT saying that `name` is NULL. */
pith_status pith_fail_null(pith_error *error, const char *name);
/* Copies the option struct `given` (NULL: all defaults), which begins with its size, into
 * `full` of full_size bytes. */
pith_status pith_copy_options(void *full, size_t full_size, const void *given, const char *name,
                              pith_error *error);

#endif
