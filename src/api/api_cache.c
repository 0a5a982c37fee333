/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Stored prompts": what a cache folder holds. Engines read and write it
 * (src/engine/prefix.h); here it is listed and emptied. */
#include "api/api_argument.h"
#include "engine/engine.h"

pith_status pith_cache_list(const char *folder, pith_cache_visit visit, void *user,
                            pith_error *error) {
    if (!folder) return pith_fail_null(error, "folder");
    if (!visit) return pith_fail_null(error, "visit");
    return pith_prefix_list(folder, visit, user, error);
}

pith_status pith_cache_clear(const char *folder, size_t *n_removed, pith_error *error) {
    size_t unwanted;
    if (n_removed) *n_removed = 0;
    if (!folder) return pith_fail_null(error, "folder");
    return pith_prefix_clear(folder, n_removed ? n_removed : &unwanted, error);
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
