/* SPDX-License-Identifier: Apache-2.0
 * How far a file has come, how fast, what is left: one line on stderr (pull_progress.c). */
#ifndef PITH_APPS_PITH_PULL_PROGRESS_H
#define PITH_APPS_PITH_PULL_PROGRESS_H

#include "pith/cli.h"

typedef struct pith_cli_pull_progress {
    const char *what;
    uint64_t start_ns, shown_ns, looked_ns, looked; /* bytes when last looked */
    double speed;                                   /* bytes a second, of the last seconds */
    int waiting_ms; /* until the next try, where the server asked for a wait or failed */
    bool begun, shown, quiet;
} pith_cli_pull_progress;

pith_cli_pull_progress pith_cli_pull_progress_start(const char *what);
/* total: UINT64_MAX: unknown. */
void pith_cli_pull_progress_step(pith_cli_pull_progress *progress, uint64_t done, uint64_t total);
/* Clears the line. */
void pith_cli_pull_progress_end(pith_cli_pull_progress *progress);
/* "98.4 MB", "1.12 GB" */
void pith_cli_bytes_text(uint64_t bytes, char *out, size_t capacity);

#endif
