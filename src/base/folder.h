/* SPDX-License-Identifier: Apache-2.0
 * Folders: making one, what lies in it, how much room its disk has, taking files away. Paths are
 * UTF-8, parts are divided by '/'. */
#ifndef PITH_BASE_FOLDER_H
#define PITH_BASE_FOLDER_H

#include "base/status.h"

/* Makes every part of the path that is missing, for this user alone. PITH_OK also when it is
 * there. */
pith_status pith_folder_make(const char *path, pith_error *error);
bool pith_folder_exists(const char *path);
/* Calls each(user, name) for everything in the folder, in no order, until it returns false. What
 * is made or removed meanwhile may come or not. PITH_ERROR_NOT_FOUND without such a folder. */
pith_status pith_folder_each(const char *path, bool (*each)(void *user, const char *name),
                             void *user, pith_error *error);
/* Bytes that this user may still write to the disk it is on; UINT64_MAX when unknown. */
uint64_t pith_folder_room(const char *path);
/* Removes a file; one that is not there, or cannot be removed, is no failure. */
void pith_file_remove(const char *path);

#endif
