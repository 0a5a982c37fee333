/* SPDX-License-Identifier: Apache-2.0
 * A file that appears whole or not at all. Bytes go into a temporary file beside `path`; commit
 * makes them durable and puts the file in its place (over an older one). Whatever ends earlier, a
 * failure, close or a crash, leaves `path` as it was; only a crash leaves the temporary file
 * (PATH.xxxxxxxx.part) behind. */
#ifndef PITH_BASE_OUTPUT_H
#define PITH_BASE_OUTPUT_H

#include "base/status.h"

typedef struct pith_output pith_output;

pith_status pith_output_open(const char *path, pith_output **out, pith_error *error);
/* Small writes are gathered. After a failure the temporary file is gone, later calls fail too. */
pith_status pith_output_write(pith_output *output, const void *data, size_t size,
                              pith_error *error);
/* Writes what is gathered, waits until the device has it, renames. Then only close is left. */
pith_status pith_output_commit(pith_output *output, pith_error *error);
/* Removes the temporary file unless it was committed; NULL is allowed. */
void pith_output_close(pith_output *output);

#endif
