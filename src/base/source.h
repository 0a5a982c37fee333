/* SPDX-License-Identifier: Apache-2.0
 * Where a file's bytes come from: a path, a descriptor with offset, memory, or callbacks.
 * Everything above reads through pith_source and cannot tell the difference. Reads are checked
 * against the size. */
#ifndef PITH_BASE_SOURCE_H
#define PITH_BASE_SOURCE_H

#include "base/status.h"

typedef struct pith_source pith_source;

pith_status pith_source_open_path(const char *path, pith_source **out, pith_error *error);
pith_status pith_source_open_descriptor(int descriptor, uint64_t offset, uint64_t size,
                                        pith_source **out, pith_error *error);
pith_status pith_source_open_memory(const void *data, uint64_t size, pith_source **out,
                                    pith_error *error);
pith_status pith_source_open_reader(const pith_reader *reader, pith_source **out,
                                    pith_error *error);
void pith_source_close(pith_source *source); /* unmaps; NULL is allowed */

uint64_t pith_source_size(const pith_source *source);
/* Of a file: when it was last changed, to be compared alone; 0: memory, or callbacks. */
uint64_t pith_source_changed(const pith_source *source);
const char *pith_source_name(const pith_source *source); /* for messages: the path, "memory", ... */
/* Reads exactly size bytes (several threads may read at once). PITH_ERROR_FORMAT past the end,
 * PITH_ERROR_IO otherwise. */
pith_status pith_source_read(const pith_source *source, uint64_t offset, void *buffer, size_t size,
                             pith_error *error);
/* From here on pith_source_read_piece passes the page cache by for what does not lie in it (why:
 * docs/decisions/0050-direct-reads.md). false, and nothing changes, where the system cannot. Before
 * other threads read. */
bool pith_source_begin_direct(pith_source *source);
/* As pith_source_read, but the bytes lie at *data somewhere in `buffer`, which starts at a multiple
 * of PITH_SOURCE_UNIT and has room for size + 2 * PITH_SOURCE_UNIT. */
enum { PITH_SOURCE_UNIT = 4096 };
pith_status pith_source_read_piece(pith_source *source, uint64_t offset, size_t size,
                                   uint8_t *buffer, const uint8_t **data, pith_error *error);
/* All bytes in place, mapped read-only on first call; NULL where that is impossible (callbacks).
 * Lives until close. */
const uint8_t *pith_source_map(pith_source *source);
/* Hint: this range will be needed soon (mapped sources). */
void pith_source_prefetch(const pith_source *source, uint64_t offset, uint64_t size);
/* Share of a range (cut to the source) that lies in the page cache, 0..1; 1 for memory, -1 when
 * unknown. */
double pith_source_resident(const pith_source *source, uint64_t offset, uint64_t size);

#endif
