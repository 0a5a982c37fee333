/* SPDX-License-Identifier: Apache-2.0
 * One thread for work that nobody waits for. It sleeps until it is woken; what is to be done, and
 * how it is handed over, is the business of those who wake it. */
#ifndef PITH_BASE_WORKER_H
#define PITH_BASE_WORKER_H

#include "base/status.h"

typedef struct pith_worker pith_worker;

/* The thread calls run(user) once, and at least once more after each wake. */
pith_status pith_worker_new(void (*run)(void *user), void *user, pith_worker **out,
                            pith_error *error);
void pith_worker_wake(pith_worker *worker); /* from any thread */
/* Waits until run has returned, and was called after every wake. NULL is allowed. */
void pith_worker_free(pith_worker *worker);

#endif
