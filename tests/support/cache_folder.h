/* SPDX-License-Identifier: Apache-2.0
 * For tests: one folder of prompts in the build folder, emptied before each test. */
#ifndef PITH_TESTS_CACHE_FOLDER_H
#define PITH_TESTS_CACHE_FOLDER_H

#include "base/folder.h"
#include "base/source.h"
#include "support/changed_model.h"

static char folder[1100];

static inline bool remove_one(void *user, const char *name) {
    char path[1400];
    (void)user;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    pith_file_remove(path);
    return true;
}

/* name: of the test. */
static inline void empty_folder(const char *name) {
    char base[1024];
    snprintf(folder, sizeof folder, "%s.cache", scratch_path(name, base));
    (void)pith_folder_each(folder, remove_one, NULL, NULL);
}

#endif
