/* SPDX-License-Identifier: Apache-2.0
 * What needs a network: fetching files, asking the hub what a repository holds. Built with libcurl;
 * without it network_absent.c says so.
 * Read next: pull.c, then download.c. */
#ifndef PITH_APPS_PITH_PULL_H
#define PITH_APPS_PITH_PULL_H

#include "pith/models.h"

/* ---- The network (fetch.c, network_absent.c) ---- */
/* Once before anything is fetched; false with a sentence. */
bool pith_cli_network_open(pith_error *error);
void pith_cli_network_close(void);
const char *pith_cli_network_version(void); /* of libcurl; NULL: this build has no network */

/* ---- One file (download.c) ---- */
typedef struct pith_cli_download {
    const char *url;
    const char *token;   /* for the host of `url` alone; NULL: none */
    const char *name;    /* of the model that the file belongs to */
    const char *file;    /* for people: which file of it */
    const char *target;  /* where it is to be; its folder is there */
    const char *folder;  /* of what is not finished yet; it is there */
    const char *digest;  /* SHA-256 that it must have; "": the server's, if it tells one */
    const char *etag;    /* of the file that lies in `target` now; "": unknown */
    uint64_t bytes;      /* that it must have; 0: unknown */
    uint64_t part_bytes; /* of the ranges that are fetched at once; 0: chosen */
    int32_t n_connections, tries, timeout;
    bool alone; /* no part of a split model: it is opened before it counts as whole */
} pith_cli_download;

typedef struct pith_cli_downloaded {
    char digest[65]; /* SHA-256 of the file */
    char etag[256];
    bool verified;                        /* it is what the hub or the catalogue says */
    bool was_there;                       /* nothing was fetched */
    uint64_t bytes, transferred, resumed; /* of the file, over the network, kept from before */
} pith_cli_downloaded;

/* Returns when the file lies whole in its place, or with a sentence; what came so far is kept for
 * the next time, unless it is wrong. */
pith_status pith_cli_download_file(const pith_cli_download *what, pith_cli_downloaded *done,
                                   pith_error *error);

/* ---- The hub (hub.c) ---- */
typedef struct pith_cli_hub_file {
    char *path; /* in the repository */
    uint64_t bytes;
    char digest[65]; /* "": not told */
} pith_cli_hub_file;
typedef struct pith_cli_hub_list {
    pith_cli_hub_file *items; /* [n] GGUF files, sorted by path */
    size_t n;
} pith_cli_hub_list;
/* The GGUF files of a repository. */
pith_status pith_cli_hub_list_fetch(const char *repo, int32_t timeout, pith_cli_hub_list *out,
                                    pith_error *error);
void pith_cli_hub_list_deinit(pith_cli_hub_list *list);
/* $HF_ENDPOINT, else https://huggingface.co, without '/' at the end; pith_free. NULL with a
 * sentence. */
char *pith_cli_hub_endpoint(pith_error *error);
/* $HF_TOKEN, when `url` is the hub's and nobody can listen; pith_free. NULL: none. */
char *pith_cli_hub_token(const char *url);
/* Where a file of a repository is fetched; pith_free. NULL without memory. */
char *pith_cli_hub_address(const char *endpoint, const char *repo, const char *path);

#endif
