/* SPDX-License-Identifier: Apache-2.0
 * What stands for the network in a build without libcurl: each function says so. The others are in
 * fetch.c, download.c and hub.c. */
#include "pith/pull.h"

#if !PITH_WITH_CURL

static pith_status fail_absent(pith_error *error) {
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     "this build of pith has no network: libcurl was not there when it was built; "
                     "fetch the GGUF file with another program and give its path");
}

bool pith_cli_network_open(pith_error *error) {
    fail_absent(error);
    return false;
}

void pith_cli_network_close(void) {}

const char *pith_cli_network_version(void) {
    return NULL;
}

pith_status pith_cli_download_file(const pith_cli_download *what, pith_cli_downloaded *done,
                                   pith_error *error) {
    (void)what;
    *done = (pith_cli_downloaded){0};
    return fail_absent(error);
}

pith_status pith_cli_hub_list_fetch(const char *repo, int32_t timeout, pith_cli_hub_list *out,
                                    pith_error *error) {
    (void)repo;
    (void)timeout;
    *out = (pith_cli_hub_list){0};
    return fail_absent(error);
}

#else
typedef int pith_network_is_elsewhere;
#endif
