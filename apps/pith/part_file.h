/* SPDX-License-Identifier: Apache-2.0
 * A file that is filled in any order while it is fetched, and the lock that keeps a second pith
 * from filling it too (part_file.c). Functions that return int give 0 or errno. */
#ifndef PITH_APPS_PITH_PART_FILE_H
#define PITH_APPS_PITH_PART_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pith_cli_part_file {
    intptr_t handle;
    bool is_open;
} pith_cli_part_file;

/* Opens for reading and writing; made when it is not there. */
int pith_cli_part_open(const char *path, pith_cli_part_file *out);
void pith_cli_part_close(pith_cli_part_file *file); /* allowed when it is not open */
int pith_cli_part_write(const pith_cli_part_file *file, uint64_t offset, const void *data,
                        size_t size);
/* How many bytes came, fewer at the end; -1 for an error. */
int64_t pith_cli_part_read(const pith_cli_part_file *file, uint64_t offset, void *data,
                           size_t size);
/* UINT64_MAX when unknown. */
uint64_t pith_cli_part_size(const pith_cli_part_file *file);
int pith_cli_part_cut(const pith_cli_part_file *file, uint64_t size); /* bytes after it go */
/* Waits until the device has what was written. */
int pith_cli_part_sync(const pith_cli_part_file *file);
/* Locks the open file against other processes, without waiting: EWOULDBLOCK when another has it.
 * The lock ends with the file or the process. */
int pith_cli_part_lock(const pith_cli_part_file *file);
/* Renames over an older file and makes the new name durable. */
int pith_cli_move_file(const char *from, const char *to);
void pith_cli_remove_folder(const char *path); /* when it is empty */
/* Bytes of a file; UINT64_MAX when there is none. */
uint64_t pith_cli_file_bytes(const char *path);
/* The SHA-256 of a file in 64 digits; false when it cannot be read. */
bool pith_cli_file_digest(const char *path, char out[65]);

#endif
