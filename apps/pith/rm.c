/* SPDX-License-Identifier: Apache-2.0
 * `pith rm`: removes a model that pith pulled, all its files and its record, or what a broken-off
 * pull left.
 * Invariant: nothing is removed that pith did not fetch. What others keep, or somebody put into the
 * models folder, is named with its path and stays. */
#include "base/memory.h"
#include "pith/models.h"
#include "pith/pull_progress.h"

#include <string.h>

enum { SHOWN_CHOICES = 8 };

typedef struct rm_sum {
    uint64_t bytes;
    size_t n_files;
    char *failed; /* path of a file that stayed */
} rm_sum;

static void remove_one(const char *path, rm_sum *sum) {
    uint64_t bytes = pith_cli_file_bytes(path);
    if (bytes == UINT64_MAX) return;
    pith_cli_remove_file(path);
    if (pith_cli_file_bytes(path) != UINT64_MAX) {
        if (!sum->failed) sum->failed = pith_copy_text(path, strlen(path));
        return;
    }
    sum->bytes += bytes;
    sum->n_files++;
}

/* ---- A model ---- */

typedef struct rm_folder {
    const char *folder, *first; /* the folder, and the first file's path */
    rm_sum *sum;
} rm_folder;

static bool remove_part(void *user, const char *name) {
    rm_folder *in = user;
    char *path = pith_cli_join(in->folder, name);
    if (path && pith_cli_is_split_pair(in->first, path)) remove_one(path, in->sum);
    pith_free(path);
    return true;
}

/* The folders below models/hf in which nothing is left; one that holds something stays. */
static void remove_empty(char *folder) {
    char *slash;
    while (strstr(folder, "/models/hf/") && (slash = strrchr(folder, '/'))) {
        pith_cli_remove_folder(folder);
        *slash = 0;
    }
}

/* The record goes last: without it a model that is only half removed would count as whole. */
static void remove_model(const char *first, rm_sum *sum) {
    const char *slash = strrchr(first, '/');
    char *folder = slash ? pith_copy_text(first, (size_t)(slash - first)) : NULL;
    char *record = pith_cli_pulled_path(first);
    rm_folder in = {folder, first, sum};
    if (folder && pith_cli_split_count(first) > 1)
        (void)pith_cli_each_name(folder, remove_part, &in);
    remove_one(first, sum);
    if (record && !sum->failed) pith_cli_remove_file(record);
    if (folder && !sum->failed) remove_empty(folder);
    pith_free(record);
    pith_free(folder);
}

/* KEY.json -> KEY.part and KEY.json */
static void remove_partial(const char *state, rm_sum *sum) {
    char *part = pith_copy_text(state, strlen(state));
    pith_cli_part_file lock = {0};
    bool free_to_go = false;
    if (part) {
        memcpy(part + strlen(part) - 5, ".lock", 5);
        free_to_go = pith_cli_part_open(part, &lock) != 0 || pith_cli_part_lock(&lock) == 0;
        memcpy(part + strlen(part) - 5, ".part", 5);
    }
    if (free_to_go) {
        remove_one(part, sum);
        remove_one(state, sum);
    } else if (part) {
        sum->failed = pith_copy_text(part, strlen(part));
    }
    pith_cli_part_close(&lock);
    pith_free(part);
}

static void remove_found(const pith_cli_found *found, rm_sum *sum) {
    if (found->origin == PITH_CLI_ORIGIN_PARTIAL && !found->repo)
        remove_partial(found->path, sum);
    else
        remove_model(found->path, sum);
}

/* ---- The command ---- */

/* What a broken-off pull of this name left. */
static size_t remove_partials(const pith_cli_found_list *list, const char *name, rm_sum *sum) {
    const pith_cli_catalogue_entry *entry = pith_cli_catalogue_find(name);
    pith_cli_hub_name hub = {0};
    size_t n = 0;
    bool is_hub = pith_cli_is_hub_name(entry ? entry->hub : name) &&
                  pith_cli_hub_name_read(entry ? entry->hub : name, &hub, NULL) == PITH_OK;
    for (size_t i = 0; i < list->n; i++) {
        const pith_cli_found *found = &list->items[i];
        if (found->origin != PITH_CLI_ORIGIN_PARTIAL) continue;
        pith_cli_hub_name its = {0};
        bool same = pith_cli_same_name(found->name, name);
        if (!same && is_hub && pith_cli_is_hub_name(found->name) && hub.pick[0] &&
            pith_cli_hub_name_read(found->name, &its, NULL) == PITH_OK)
            same = pith_cli_same_name(its.repo, hub.repo) &&
                   pith_cli_name_picks(hub.pick, found->file);
        if (!same) continue;
        remove_found(found, sum);
        n++;
    }
    return n;
}

static int refuse(const pith_cli_found *found) {
    fputs("pith: ", stderr);
    pith_cli_print_clean(stderr, found->name, strlen(found->name), 200);
    if (found->origin == PITH_CLI_ORIGIN_FOLDER)
        fputs(" was put into the models folder, not pulled by pith", stderr);
    else
        fprintf(stderr, " is kept by another program (%s)", pith_cli_origin_text(found->origin));
    fputs("; pith removes only what it pulled. The file: ", stderr);
    pith_cli_print_clean(stderr, found->path, strlen(found->path), SIZE_MAX);
    fputc('\n', stderr);
    return PITH_EXIT_FAILURE;
}

static int tell(const char *name, const rm_sum *sum, bool json) {
    char size[32];
    if (sum->failed)
        return pith_cli_fail_text("%s could not be removed; is it in use, or its folder read-only?",
                                  sum->failed);
    if (json)
        return pith_cli_print_json(json_pack("{s:o, s:i, s:I}", "name", pith_cli_json_string(name),
                                             "files", (int)sum->n_files, "bytes",
                                             (json_int_t)sum->bytes));
    pith_cli_bytes_text(sum->bytes, size, sizeof size);
    printf("%s: %zu file%s removed, %s\n", name, sum->n_files, sum->n_files == 1 ? "" : "s", size);
    return pith_cli_finish();
}

static int remove_name(const pith_cli_found_list *list, const char *name, bool json) {
    size_t choices[SHOWN_CHOICES], n = 0;
    rm_sum sum = {0};
    const pith_cli_found *found = pith_cli_found_match(list, name, choices, SHOWN_CHOICES, &n);
    if (!found && n > 1)
        return pith_cli_fail_text("%zu models are meant by '%s'; give one by its name in `pith "
                                  "list`",
                                  n, name);
    size_t n_partial = 0;
    if (!found || found->origin == PITH_CLI_ORIGIN_PULLED)
        n_partial = remove_partials(list, name, &sum);
    if (!found && !n_partial)
        return pith_cli_fail_text("there is no model '%s'; `pith list` shows what there is", name);
    if (found && found->origin != PITH_CLI_ORIGIN_PULLED) return refuse(found);
    if (found) remove_found(found, &sum);
    int code = tell(name, &sum, json);
    pith_free(sum.failed);
    return code;
}

int pith_command_rm(int argc, char **argv) {
    bool json = false;
    pith_cli_option table[] = {{"json", 0, PITH_CLI_FLAG, &json, "", "as JSON", 0, 0}};
    pith_cli_command command = {"pith rm NAME [--json]",
                                "Removes a model that pith pulled, or what a broken-off pull left.",
                                table, 1, NULL};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words != 1)
        code = pith_cli_usage(&command, "give one NAME, as `pith list` shows it");
    if (code < 0) {
        pith_cli_found_list list;
        pith_cli_find_models(&list);
        code = list.failed ? pith_cli_fail_text("out of memory while listing models")
                           : remove_name(&list, words[0], json);
        pith_cli_found_deinit(&list);
    }
    pith_free(words);
    return code;
}
