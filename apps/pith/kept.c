/* SPDX-License-Identifier: Apache-2.0
 * Small JSON files that pith keeps for itself: $PITH_HOME/<folder>/<hash of the key>.json, less
 * than FILE_LIMIT, written beside their place and renamed, without waiting for the disk: a lost one
 * costs what it said and nothing else. Writing one takes some tenths of a millisecond.
 * Nothing here fails: a folder that can't be written keeps nothing, a broken file counts as none
 * and is replaced. Whose files they are: record.c, machine_record.c. */
#include "pith/kept.h"

#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

enum { FILE_LIMIT = 64 << 10 };

/* Where a key's file lies. */
typedef struct kept_place {
    char *folder; /* NULL: there is none */
    pith_buffer path;
} kept_place;

static kept_place find_place(const char *name, const char *key) {
    kept_place place = {NULL, {0}};
    char *home = key ? pith_cli_home_folder() : NULL;
    pith_buffer folder = {0};
    if (!home) return place;
    pith_buffer_append_format(&folder, "%s/%s", home, name);
    if (!folder.failed)
        pith_buffer_append_format(&place.path, "%s/%016" PRIx64 ".json", folder.data,
                                  pith_hash(key, strlen(key), 0));
    if (place.path.data && !place.path.failed)
        place.folder = pith_copy_text(folder.data, folder.size);
    pith_buffer_deinit(&folder);
    pith_free(home);
    return place;
}

static void release_place(kept_place *place) {
    pith_free(place->folder);
    pith_buffer_deinit(&place->path);
}

/* A pipe or a device in the file's place would be waited for, or read without an end. */
static bool is_readable(const char *path) {
    return pith_cli_try_read(path) == 0 && !pith_cli_is_device(path);
}

json_t *pith_cli_kept_read(const char *folder, const char *key) {
    kept_place place = find_place(folder, key);
    pith_buffer text = {0};
    json_t *json = NULL;
    if (place.folder && is_readable(place.path.data) &&
        pith_cli_read_file(place.path.data, FILE_LIMIT, &text, NULL))
        json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    pith_buffer_deinit(&text);
    release_place(&place);
    return json;
}

/* What a program that was killed left behind; another's that is just being written is lost too. */
static bool remove_part(void *user, const char *name) {
    const char *folder = user;
    size_t size = strlen(name);
    pith_buffer path = {0};
    if (size < 5 || strcmp(name + size - 5, ".part") != 0) return true;
    pith_buffer_append_format(&path, "%s/%s", folder, name);
    if (!path.failed) pith_cli_remove_file(path.data);
    pith_buffer_deinit(&path);
    return true;
}

void pith_cli_kept_write(const char *folder, const char *key, json_t *json) {
    kept_place place = find_place(folder, key);
    char *text =
        json && place.folder ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    bool is_there = text && pith_cli_make_folders(place.folder) == 0;
    if (is_there) (void)pith_cli_each_name(place.folder, remove_part, place.folder);
    if (is_there) (void)pith_cli_replace_file(place.path.data, text, strlen(text));
    pith_free(text);
    json_decref(json);
    release_place(&place);
    (void)pith_cli_json_failed(); /* a file that lacks memory is no failure of the command */
}

bool pith_cli_kept_number(const json_t *object, const char *name, double *out) {
    const json_t *member = json_object_get(object, name);
    double value = json_number_value(member), most = 1e18;
    if (!json_is_number(member) || !(value > -most && value < most)) return false;
    *out = value;
    return true;
}

bool pith_cli_kept_count(const json_t *object, const char *name, int32_t *out) {
    double value = 0;
    if (!pith_cli_kept_number(object, name, &value) || value < -1 || value > 1 << 30) return false;
    *out = (int32_t)value;
    return true;
}
