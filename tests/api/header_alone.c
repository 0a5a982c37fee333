/* SPDX-License-Identifier: Apache-2.0
 * Compiled as C11, C17 and C++17: pith.h needs nothing before it, may be included twice, and its
 * option structs can be filled without a warning. */
#include <pith.h>

int header_alone(void);
int header_alone(void) {
    pith_engine_options options;
    pith_error error;
    options.size = sizeof options;
    error.status = PITH_OK;
    return pith_version() == (const char *)0 || error.status != PITH_OK || options.size == 0;
}
