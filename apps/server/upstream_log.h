/* SPDX-License-Identifier: Apache-2.0
 * What left the device, as lines of JSON in a file for its owner alone: one before a request is
 * sent, one when it ended. What cannot be written down does not leave. Never holds text of a
 * request, keys or the query of an address.
 *
 *   {"time": "2026-11-30T12:00:00.123Z", "id": "up-...", "event": "sending", "path", "reason",
 *    "upstream", "model", "bytes", "sha256"}
 *   {"time", "id", "event": "ended", "status", "sent", "received", "ms", "error"}
 *
 * At PITH_UPSTREAM_LOG_MAX bytes the file becomes NAME.1 and a new one begins. */
#ifndef PITH_APPS_SERVER_UPSTREAM_LOG_H
#define PITH_APPS_SERVER_UPSTREAM_LOG_H

#include "base/text.h"

enum { PITH_UPSTREAM_LOG_MAX = 4 << 20 };

typedef struct pith_upstream_log pith_upstream_log;

typedef struct pith_departure {
    const char *id, *path, *reason, *upstream, *model;
    pith_span body;
} pith_departure;

typedef struct pith_return {
    const char *id;
    long status; /* 0: none came */
    uint64_t sent, received;
    double ms;
    const char *error; /* NULL: it went well */
} pith_return;

pith_upstream_log *pith_upstream_log_open(const char *path, pith_error *error);
void pith_upstream_log_close(pith_upstream_log *log);
/* From any thread. false with a message: it was not written. */
bool pith_upstream_log_departure(pith_upstream_log *log, const pith_departure *what,
                                 pith_error *error);
void pith_upstream_log_return(pith_upstream_log *log, const pith_return *what);

#endif
