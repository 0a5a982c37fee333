/* SPDX-License-Identifier: Apache-2.0
 * A fixed set of threads that run one function together, and the tickets that share out its
 * work. The caller takes part as thread 0. Between regions the threads sleep; within a region
 * they meet at joins. */
#ifndef PITH_BASE_POOL_H
#define PITH_BASE_POOL_H

#include "base/status.h"

typedef struct pith_pool pith_pool;

/* n_threads, 1 to 1024, counts the caller. */
pith_status pith_pool_new(int n_threads, pith_pool **out, pith_error *error);
void pith_pool_free(pith_pool *pool);
int pith_pool_size(const pith_pool *pool);

/* Runs function(user, thread, n_threads) on all threads and returns when all have returned. All of
 * them round to nearest and flush nothing to zero meanwhile; the caller's mode is restored. Not
 * reentrant. */
void pith_pool_run(pith_pool *pool, void (*function)(void *user, int thread, int n_threads),
                   void *user);

/* The same for a function whose work is all in pith_pool_for, on the first `most` threads (0: all):
 * a thread may be left out for a while when its core is busy with something else, so that the
 * others need not wait for it. */
void pith_pool_share(pith_pool *pool, int most,
                     void (*function)(void *user, int thread, int n_threads), void *user);

/* Inside a region: an operation of n_chunks independent chunks, `index` counting the operations
 * of the region from 0, below 2^31 (every thread calls with the same sequence). Calls
 * chunk(user, i, thread) for each i exactly once over all threads: a thread starts in its own
 * region of the range and then steals. Returns when ALL chunks of this operation are done, not
 * when all threads have arrived; a late thread finds an operation finished and goes on to the
 * next. */
void pith_pool_for(pith_pool *pool, uint64_t index, uint32_t n_chunks,
                   void (*chunk)(void *user, uint32_t i, int thread), void *user, int thread);

/* Processors this process may use (affinity and cgroup quota respected), at least 1. */
int pith_cpu_count(void);
/* Threads that are worth having when nobody says how many: of those processors one a core, small
 * cores left out; at least 1. */
int pith_thread_count(void);

#endif
