/* SPDX-License-Identifier: Apache-2.0
 * The server of a build without libmicrohttpd: it says so. */
#include "server/server.h"

#include "base/status.h"

pith_status pith_server_run(const pith_server_options *options, const volatile sig_atomic_t *stop,
                            pith_error *error) {
    (void)options;
    (void)stop;
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     "this build has no server: install libmicrohttpd (script/bootstrap does) and "
                     "build again");
}

const char *pith_server_library(void) {
    return NULL;
}
