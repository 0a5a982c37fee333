/* SPDX-License-Identifier: Apache-2.0
 * The files below a folder. The folders still to be read wait on a list, so that depth costs
 * memory, not stack; depth and number have limits, so that a link that leads back ends too. Hidden
 * names are passed over. */
#include "base/folder.h"
#include "base/memory.h"
#include "pith/models.h"

#include <string.h>

enum { ENTRY_LIMIT = 200000, FOLDER_LIMIT = 20000 };

typedef struct walk_folder {
    char *path; /* below the root; "" is the root */
    int depth;
} walk_folder;

typedef struct walk_state {
    const char *root;
    walk_folder *waiting; /* [n_waiting] */
    size_t n_waiting, capacity;
    size_t n_entries, n_folders;
    walk_folder now;
    int depth_limit;
    bool (*each)(void *user, const char *path);
    void *user;
    bool failed, stopped;
} walk_state;

char *pith_cli_join(const char *folder, const char *name) {
    pith_buffer path = {0};
    pith_buffer_append_format(&path, "%s%s%s", folder, folder[0] ? "/" : "", name);
    char *text = path.failed ? NULL : pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    return text;
}

/* Takes over `path`. */
static void push(walk_state *walk, char *path, int depth) {
    if (path && walk->n_waiting == walk->capacity) {
        size_t capacity = walk->capacity ? 2 * walk->capacity : 64;
        walk_folder *grown = pith_realloc(walk->waiting, capacity * sizeof *grown);
        if (grown) walk->waiting = grown;
        if (grown) walk->capacity = capacity;
    }
    if (!path || walk->n_waiting == walk->capacity) {
        walk->failed = true;
        pith_free(path);
        return;
    }
    walk->waiting[walk->n_waiting++] = (walk_folder){path, depth};
    walk->n_folders++;
}

static bool on_name(void *user, const char *name) {
    walk_state *walk = user;
    if (name[0] == '.') return true;
    char *path = pith_cli_join(walk->now.path, name);
    char *whole = path ? pith_cli_join(walk->root, path) : NULL;
    if (!whole) walk->failed = true;
    if (whole && pith_folder_exists(whole)) {
        if (walk->now.depth < walk->depth_limit && walk->n_folders < FOLDER_LIMIT) {
            push(walk, path, walk->now.depth + 1);
            path = NULL;
        }
    } else if (whole) {
        walk->stopped = !walk->each(walk->user, path);
    }
    pith_free(path);
    pith_free(whole);
    return !walk->failed && !walk->stopped && ++walk->n_entries < ENTRY_LIMIT;
}

bool pith_cli_walk(const char *folder, int depth, bool (*each)(void *user, const char *path),
                   void *user) {
    walk_state walk = {.root = folder, .depth_limit = depth, .each = each, .user = user};
    push(&walk, pith_copy_text("", 0), 0);
    while (walk.n_waiting > 0 && !walk.failed && !walk.stopped) {
        walk.now = walk.waiting[--walk.n_waiting];
        char *whole = walk.now.path[0] ? pith_cli_join(folder, walk.now.path)
                                       : pith_copy_text(folder, strlen(folder));
        if (whole) (void)pith_cli_each_name(whole, on_name, &walk);
        walk.failed = walk.failed || !whole;
        pith_free(whole);
        pith_free(walk.now.path);
    }
    while (walk.n_waiting > 0) pith_free(walk.waiting[--walk.n_waiting].path);
    pith_free(walk.waiting);
    return !walk.failed;
}
