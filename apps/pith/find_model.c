/* SPDX-License-Identifier: Apache-2.0
 * From what -m says to a file: a path, a file of the models folder, or any name of `pith list`. The
 * folders of others are searched only when the first two are not meant. */
#include "base/memory.h"
#include "pith/models.h"
#include "pith/near_word.h"

#include <errno.h>
#include <string.h>

enum { CHOICES_SHOWN = 6 };

/* folder/name or folder/name.gguf, whichever can be opened; NULL when neither can. */
static char *find_in_folder(const char *folder, const char *name) {
    static const char *const endings[] = {".gguf", ""};
    pith_buffer path = {0};
    char *found = NULL;
    for (size_t i = 0; i < 2 && !found; i++) {
        pith_buffer_reset(&path);
        pith_buffer_append_format(&path, "%s/%s%s", folder, name, endings[i]);
        if (!path.failed && pith_cli_try_read(path.data) == 0)
            found = pith_copy_text(path.data, path.size);
    }
    pith_buffer_deinit(&path);
    return found;
}

static void fail_choices(const pith_cli_found_list *list, const char *name, const size_t *choices,
                         size_t n, pith_error *error) {
    pith_buffer text = {0};
    for (size_t i = 0; i < n && i < CHOICES_SHOWN; i++)
        pith_buffer_append_format(&text, "%s%s", i ? ", " : "", list->items[choices[i]].name);
    pith_fail(error, PITH_ERROR_ARGUMENT, "'%.60s' means %zu models: %.150s", name, n,
              text.data ? text.data : "");
    pith_buffer_deinit(&text);
}

/* folder may be NULL: there is none. */
static void fail_unknown(const pith_cli_found_list *list, const char *name, const char *folder,
                         pith_error *error) {
    pith_cli_near near;
    pith_cli_near_init(&near, name, strlen(name));
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].origin != PITH_CLI_ORIGIN_PARTIAL)
            pith_cli_near_offer(&near, list->items[i].name);
    bool may_pull = pith_cli_is_hub_name(name) || pith_cli_catalogue_find(name);
    if (may_pull)
        pith_fail(error, PITH_ERROR_NOT_FOUND,
                  "%.100s is not on this machine; `pith pull %.100s` fetches it", name, name);
    else if (strchr(name, '/'))
        pith_fail(error, PITH_ERROR_NOT_FOUND, "there is no file %s", name);
    else if (near.best)
        pith_fail(error, PITH_ERROR_NOT_FOUND,
                  "there is no model '%.80s'; did you mean %.80s? (`pith list` shows all)", name,
                  near.best);
    else
        pith_fail(error, PITH_ERROR_NOT_FOUND,
                  "there is no model '%s': neither a file here nor in %s (`pith list` shows them)",
                  name, folder ? folder : "a models folder, for " PITH_CLI_NO_HOME);
}

/* A name of `pith list`; NULL with a message. */
static char *find_by_name(const char *name, const char *folder, pith_error *error) {
    pith_cli_found_list list;
    size_t choices[CHOICES_SHOWN], n = 0;
    char *path = NULL;
    pith_cli_find_models(&list);
    const pith_cli_found *found = pith_cli_found_match(&list, name, choices, CHOICES_SHOWN, &n);
    if (found) path = pith_copy_text(found->path, strlen(found->path));
    if (list.failed || (found && !path))
        pith_fail_memory(error, "the list of models", 0);
    else if (!found && n > 1)
        fail_choices(&list, name, choices, n, error);
    else if (!found)
        fail_unknown(&list, name, folder, error);
    pith_cli_found_deinit(&list);
    return path;
}

char *pith_cli_find_model(const char *name, pith_error *error) {
    if (!name[0]) {
        pith_fail(error, PITH_ERROR_ARGUMENT, "the model's name is empty");
        return NULL;
    }
    int code = pith_cli_try_read(name);
    if (code == 0) {
        char *same = pith_copy_text(name, strlen(name));
        if (!same) pith_fail_memory(error, "a path", strlen(name));
        return same;
    }
    /* names with ':' are none of a file on some systems, which say something else than "none" */
    bool is_name = code == ENOENT || code == ENOTDIR || strchr(name, ':');
    char *folder = pith_cli_models_folder(), *found = NULL;
    if (folder && !strchr(name, '/')) found = find_in_folder(folder, name);
    if (!found && is_name)
        found = find_by_name(name, folder, error);
    else if (!found)
        pith_fail(error, PITH_ERROR_IO, "%s could not be opened: %s", name, strerror(code));
    if (found) pith_cli_mark_used(found);
    pith_free(folder);
    return found;
}
