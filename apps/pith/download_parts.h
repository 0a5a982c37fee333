/* SPDX-License-Identifier: Apache-2.0
 * Which bytes of a file have come, in memory and in a small file beside it (download_parts.c). */
#ifndef PITH_APPS_PITH_DOWNLOAD_PARTS_H
#define PITH_APPS_PITH_DOWNLOAD_PARTS_H

#include "pith/pull.h"

/* Of which file the parts are. */
typedef struct pith_cli_file_facts {
    uint64_t total; /* bytes; UINT64_MAX: the server does not tell */
    char etag[256], modified[64];
    char digest[65]; /* SHA-256 that it must have; "": unknown */
} pith_cli_file_facts;

typedef struct pith_cli_parts {
    pith_cli_file_facts facts;
    uint64_t size;  /* bytes of a part; the last one is shorter */
    uint64_t *done; /* [n] bytes that have come, from the start of each part on */
    size_t n;
} pith_cli_parts;

/* Nothing has come. wanted: bytes of a part, 0: chosen. false without memory. */
bool pith_cli_parts_init(pith_cli_parts *parts, const pith_cli_file_facts *facts, uint64_t wanted);
void pith_cli_parts_deinit(pith_cli_parts *parts);
uint64_t pith_cli_parts_first(const pith_cli_parts *parts, size_t i);  /* offset in the file */
uint64_t pith_cli_parts_length(const pith_cli_parts *parts, size_t i); /* bytes when whole */
uint64_t pith_cli_parts_come(const pith_cli_parts *parts);             /* bytes of all */
uint64_t pith_cli_parts_prefix(const pith_cli_parts *parts); /* bytes from 0 on without a gap */
bool pith_cli_parts_whole(const pith_cli_parts *parts);
void pith_cli_parts_reset(pith_cli_parts *parts); /* nothing has come */
/* What a file says, where it is of the same file on the server and the bytes (data_bytes: those on
 * disk) are there; else nothing has come. false without memory. */
bool pith_cli_parts_load(pith_cli_parts *parts, const char *path, uint64_t data_bytes);
/* Whole or not at all. */
bool pith_cli_parts_save(const pith_cli_parts *parts, const char *path,
                         const pith_cli_download *what);

#endif
