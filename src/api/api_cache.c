/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Stored prompts": what a cache folder holds. Engines read and write it (src/engine/prefix.h);
 * here it is listed and emptied. */
#include "api/api_argument.h"
#include "base/folder.h"
#include "engine/prefix_index.h"

typedef struct list_caller {
    pith_cache_visit visit;
    void *user;
} list_caller;

static bool tell(void *user, const pith_cache_entry *entry) {
    const list_caller *caller = user;
    return caller->visit(caller->user, entry) == 0;
}

pith_status pith_cache_list(const char *folder, pith_cache_visit visit, void *user,
                            pith_error *error) {
    list_caller caller = {visit, user};
    pith_prefix_index *index;
    if (!folder) return pith_fail_null(error, "folder");
    if (!visit) return pith_fail_null(error, "visit");
    if (!pith_folder_exists(folder)) return PITH_OK;
    pith_status status = pith_prefix_index_open(folder, &index, error);
    if (status != PITH_OK) return status;
    status = pith_prefix_index_each(index, tell, &caller, error);
    pith_prefix_index_close(index);
    return status;
}

pith_status pith_cache_clear(const char *folder, size_t *n_removed, pith_error *error) {
    pith_prefix_index *index;
    size_t unwanted;
    if (!n_removed) n_removed = &unwanted;
    *n_removed = 0;
    if (!folder) return pith_fail_null(error, "folder");
    if (!pith_folder_exists(folder)) return PITH_OK;
    pith_status status = pith_prefix_index_open(folder, &index, error);
    if (status != PITH_OK) return status;
    status = pith_prefix_index_clear(index, n_removed, error);
    pith_prefix_index_close(index);
    return status;
}

const char *pith_cache_miss_text(pith_cache_miss miss) {
    static const char *const texts[] = {
        [PITH_CACHE_MISS_NONE] = "",
        [PITH_CACHE_MISS_OFF] = "there is no cache folder, or it cannot be used",
        [PITH_CACHE_MISS_NEW] = "no prompt is stored that begins like this one",
        [PITH_CACHE_MISS_OTHER] = "such a prompt is stored for another model or other settings",
        [PITH_CACHE_MISS_DAMAGED] = "the stored prompt was damaged and is forgotten",
        [PITH_CACHE_MISS_WINDOW] = "what the model's windows see at this place is not stored",
    };
    return (size_t)miss < sizeof texts / sizeof *texts ? texts[miss] : "";
}

const char *pith_cache_source_text(pith_cache_source source) {
    static const char *const texts[] = {[PITH_CACHE_NONE] = "none",
                                        [PITH_CACHE_SESSION] = "session",
                                        [PITH_CACHE_SHARED] = "shared",
                                        [PITH_CACHE_DISK] = "disk"};
    return (size_t)source < sizeof texts / sizeof *texts ? texts[source] : "";
}
