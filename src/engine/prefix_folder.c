/* SPDX-License-Identifier: Apache-2.0
 * A cache folder as a whole: what it holds, and emptying it. Works beside engines that use the
 * folder, in this process or in others. A folder that no engine has used yet holds nothing, and
 * stays as it is. Read next: prefix_index.c; how engines use the folder: prefix.c. */
#include "base/folder.h"
#include "engine/engine.h"
#include "engine/prefix_index.h"

typedef struct list_caller {
    pith_cache_visit visit;
    void *user;
} list_caller;

static bool tell(void *user, const pith_cache_entry *entry) {
    const list_caller *caller = user;
    return caller->visit(caller->user, entry) == 0;
}

pith_status pith_prefix_list(const char *folder, pith_cache_visit visit, void *user,
                             pith_error *error) {
    list_caller caller = {visit, user};
    pith_prefix_index *index;
    if (!pith_folder_exists(folder) || !pith_prefix_index_exists(folder)) return PITH_OK;
    pith_status status = pith_prefix_index_open(folder, &index, error);
    if (status != PITH_OK) return status;
    status = pith_prefix_index_each(index, tell, &caller, error);
    pith_prefix_index_close(index);
    return status;
}

pith_status pith_prefix_clear(const char *folder, size_t *n_removed, pith_error *error) {
    pith_prefix_index *index;
    *n_removed = 0;
    if (!pith_folder_exists(folder) || !pith_prefix_index_exists(folder)) return PITH_OK;
    pith_status status = pith_prefix_index_open(folder, &index, error);
    if (status != PITH_OK) return status;
    status = pith_prefix_index_clear(index, n_removed, error);
    pith_prefix_index_close(index);
    return status;
}

const char *pith_prefix_library(void) {
    return pith_prefix_index_library();
}
