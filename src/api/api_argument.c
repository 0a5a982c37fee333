/* SPDX-License-Identifier: Apache-2.0
 * Checks of arguments: the sentences for NULL, and option structs that carry their size.
 *
 * Invariant: of a caller's struct exactly min(its size, ours) bytes are read, so programs built
 * against an older or a newer pith.h both work. The rules are in api_argument.h. */
#include "api/api_argument.h"

#include <string.h>

pith_status pith_fail_null(pith_error *error, const char *name) {
    return pith_fail(error, PITH_ERROR_ARGUMENT, "%s is NULL", name);
}

pith_status pith_copy_options(void *full, size_t full_size, const void *given, const char *name,
                              pith_error *error) {
    size_t size = 0;
    memset(full, 0, full_size);
    if (given) {
        memcpy(&size, given, sizeof size);
        if (size < sizeof size) {
            return pith_fail(error, PITH_ERROR_ARGUMENT, "%s.size is %zu: set it to sizeof(%s)",
                             name, size, name);
        }
        memcpy(full, given, size < full_size ? size : full_size);
    }
    memcpy(full, &full_size, sizeof full_size);
    return PITH_OK;
}
