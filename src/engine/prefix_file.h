/* SPDX-License-Identifier: Apache-2.0
 * A stretch of a prompt's KV as a file (private to the engine room). Version 1:
 *
 *   0           8             12        16    24      28  32            40
 *   +-----------+-------------+---------+-----+-------+---+-------------+-----+------+--------+
 *   | PITHKV1\n | front bytes | n_group | key | first | n | checksum of | ids | sums | blocks |
 *   |           |             |         |     |       |   | the front   | [n] |      |        |
 *   +-----------+-------------+---------+-----+-------+---+-------------+-----+------+--------+
 *   |<--------------------------------- the front ---------------------------------->|
 *
 *   ids     i32 [n]: of the whole prompt up to n, since KV depends on all of them
 *   sums    u64 [blocks of 64 tokens in [first, n)] [n_group]: checksum of each block, 0: not kept
 *   blocks  the kept ones in the order of the sums, each a snapshot (kv.h) of 64 tokens, the last
 *           one of n % 64
 *
 * Numbers are little-endian. key: what model and settings the KV belongs to; it fixes the KV
 * layout. */
#ifndef PITH_ENGINE_PREFIX_FILE_H
#define PITH_ENGINE_PREFIX_FILE_H

#include "base/source.h"
#include "kv/kv.h"

enum { PITH_PREFIX_FILE_MAX_TOKENS = 1 << 24 };

/* What is written. */
typedef struct pith_prefix_part {
    const pith_kv_layout *layout;
    uint64_t key;
    uint32_t first, n;   /* KV of positions [first, n); first: a multiple of 64 */
    const int32_t *ids;  /* [n] */
    const uint8_t *kept; /* [blocks, n_group] 1: among `blocks` */
    const uint8_t *blocks;
} pith_prefix_part;

uint64_t pith_prefix_part_bytes(const pith_prefix_part *part); /* of the file */
/* Puts the file in place, whole and synced, or not at all. go_on is asked between writes. */
pith_status pith_prefix_part_write(const pith_prefix_part *part, const char *path,
                                   bool (*go_on)(void *user), void *user, pith_error *error);

typedef struct pith_prefix_file {
    const pith_kv_layout *layout; /* borrowed */
    pith_source *source;          /* owned; NULL: it rests */
    uint32_t first, n;
    int32_t *ids;      /* [n]; NULL: it rests */
    uint64_t *sums;    /* [blocks, n_group] */
    uint64_t *offsets; /* the same: where the block lies in the file */
} pith_prefix_file;

/* Takes the source over in every case. PITH_ERROR_FORMAT when it is no such file, is cut short, has
 * another key or does not fit the layout. */
pith_status pith_prefix_file_open(pith_source *source, const pith_kv_layout *layout, uint64_t key,
                                  pith_prefix_file *out, pith_error *error);
void pith_prefix_file_close(pith_prefix_file *file); /* a zeroed one is allowed */
/* Lets go of the source and the ids: a prompt may be in hundreds of files. What it has is known all
 * the same, and blocks can be read again once it was given a source, which it takes over: should
 * that be of another file, then the blocks' checksums are not what they were. */
void pith_prefix_file_rest(pith_prefix_file *file);
void pith_prefix_file_wake(pith_prefix_file *file, pith_source *source);
bool pith_prefix_file_has(const pith_prefix_file *file, uint32_t group, uint32_t block);
/* Tokens that a block of the file holds: 64 or, in the last one, fewer. */
uint32_t pith_prefix_file_tokens(const pith_prefix_file *file, uint32_t block);
/* Reads a block that it has, unless it rests; PITH_ERROR_FORMAT when its checksum is not what it
 * was. buffer has room for pith_kv_snapshot_bytes. */
pith_status pith_prefix_file_read(const pith_prefix_file *file, uint32_t group, uint32_t block,
                                  uint8_t *buffer, pith_error *error);

#endif
