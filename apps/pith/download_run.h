/* SPDX-License-Identifier: Apache-2.0
 * One run of fetching what is missing of a file (download_run.c), for download.c. */
#ifndef PITH_APPS_PITH_DOWNLOAD_RUN_H
#define PITH_APPS_PITH_DOWNLOAD_RUN_H

#include "base/sha256.h"
#include "pith/download_parts.h"
#include "pith/fetch.h"

typedef enum pith_cli_run_end {
    PITH_CLI_RUN_WHOLE,
    PITH_CLI_RUN_CHANGED,   /* the file on the server is another now: begin again */
    PITH_CLI_RUN_NO_RANGES, /* the server sends the whole where a range was asked for */
    PITH_CLI_RUN_FAILED     /* with a sentence */
} pith_cli_run_end;

typedef struct pith_cli_run {
    const pith_cli_download *what;
    pith_cli_parts *parts;
    const pith_cli_part_file *file;
    const char *state_path; /* where the counts are kept */
    bool ranges;            /* the server knows them, and the file's versions can be told apart */
    bool conditional;       /* ranges are asked for with If-Range */
    uint64_t transferred;   /* bytes that came over the network */
    pith_sha256 hash;       /* of the first `hashed` bytes; whole at the end of a whole run */
    uint64_t hashed;
} pith_cli_run;

pith_cli_run_end pith_cli_run_parts(pith_cli_run *run, pith_error *error);

#endif
