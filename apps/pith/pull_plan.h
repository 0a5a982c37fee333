/* SPDX-License-Identifier: Apache-2.0
 * What `pith pull` is to fetch: a name or an address made into files with addresses, places and
 * digests (pull_plan.c). */
#ifndef PITH_APPS_PITH_PULL_PLAN_H
#define PITH_APPS_PITH_PULL_PLAN_H

#include "pith/pull.h"

typedef struct pith_cli_plan_file {
    char *url, *target;
    char *file; /* in the repository, or its name */
    uint64_t bytes;
    char digest[65];
} pith_cli_plan_file;

typedef struct pith_cli_plan {
    char *name;          /* what -m takes afterwards */
    char *source;        /* where it comes from, as it may be shown */
    const char *repo;    /* within `hub`; NULL: an address */
    const char *licence; /* of the catalogue; NULL: unknown */
    pith_cli_hub_name hub;
    pith_cli_plan_file *files; /* [n], the first file of a split model first */
    size_t n;
} pith_cli_plan;

/* word: a short name, hf:USER/REPO[:WHICH], or an address; as: the name for an address, NULL: its
 * file's. Asks the hub where that is needed. */
pith_status pith_cli_plan_make(const char *word, const char *as, int32_t timeout,
                               pith_cli_plan *out, pith_error *error);
void pith_cli_plan_deinit(pith_cli_plan *plan);

#endif
