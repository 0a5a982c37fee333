/* SPDX-License-Identifier: Apache-2.0
 * `pith list`: the models in the models folder, with what their headers say. A broken file is
 * listed with its fault; a split model is one line, under the name of its first file. */
#include "base/memory.h"
#include "pith/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct list_names {
    char **items;
    size_t n;
    bool failed;
} list_names;

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "NAME-00002-of-00003.gguf": a part that the first one brings along. */
static bool is_later_part(const char *name, size_t size) {
    unsigned part = 0, parts = 0;
    int used = 0;
    enum { ENDING = sizeof "-00002-of-00003.gguf" - 1 };
    if (size < ENDING) return false;
    const char *end = name + size - ENDING;
    return sscanf(end, "-%5u-of-%5u.gguf%n", &part, &parts, &used) == 2 && used == ENDING &&
           part > 1 && part <= parts;
}

static bool add_name(void *user, const char *name) {
    list_names *names = user;
    size_t size = strlen(name);
    if (size < 6 || strcmp(name + size - 5, ".gguf") != 0) return true;
    if (is_later_part(name, size)) return true;
    char **grown = pith_realloc(names->items, (names->n + 1) * sizeof *grown);
    if (grown) names->items = grown;
    if (grown) grown[names->n] = pith_copy_text(name, size);
    names->failed = !grown || !grown[names->n];
    if (!names->failed) names->n++;
    return !names->failed;
}

/* Names of the .gguf files of the folder, sorted; a missing folder has none. */
static int read_folder(const char *folder, list_names *names) {
    int error = pith_cli_each_name(folder, add_name, names);
    if (error == ENOENT) return -1;
    if (error) return pith_cli_fail_text("%s could not be read: %s", folder, strerror(error));
    if (names->failed) return pith_cli_fail_text("out of memory while listing %s", folder);
    if (names->n > 1) qsort(names->items, names->n, sizeof *names->items, compare_names);
    return -1;
}

void pith_cli_each_model(bool (*each)(void *user, const char *name, const char *path), void *user) {
    char *folder = pith_cli_models_folder();
    list_names names = {0};
    bool more = folder && pith_cli_each_name(folder, add_name, &names) == 0;
    for (size_t i = 0; i < names.n; i++) {
        pith_buffer path = {0};
        pith_buffer_append_format(&path, "%s/%s", folder, names.items[i]);
        names.items[i][strlen(names.items[i]) - 5] = 0; /* .gguf */
        if (more && !path.failed) more = each(user, names.items[i], path.data);
        pith_buffer_deinit(&path);
        pith_free(names.items[i]);
    }
    pith_free(names.items);
    pith_free(folder);
}

static void print_row(const char *name, uint64_t bytes, const char *what, const char *why) {
    printf("%-36s %8.1f MB  ", name, (double)bytes * 1e-6);
    pith_cli_print_clean(stdout, what, strlen(what), 64);
    if (why[0]) fputs(": ", stdout);
    pith_cli_print_clean(stdout, why, strlen(why), 400);
    putchar('\n');
}

static json_t *describe(const char *folder, const char *name, bool show) {
    pith_buffer path = {0};
    pith_error error = {0};
    pith_file *file = NULL;
    pith_buffer_append_format(&path, "%s/%s", folder, name);
    json_t *json = json_pack("{s:o, s:o}", "name", pith_cli_json_text(name, strlen(name) - 5),
                             "path", pith_cli_json_text(path.data ? path.data : "", path.size));
    if (path.failed || pith_file_open(path.data, &file, &error) != PITH_OK) {
        json_object_set_new(json, "error", pith_cli_json_string(error.text));
        if (show) print_row(name, 0, "broken", error.text);
    } else {
        pith_file_summary s = pith_file_summarize(file);
        bool runs = pith_file_check(file, &error) == PITH_OK;
        json_object_set_new(json, "architecture", pith_cli_json_string(s.architecture));
        json_object_set_new(json, "bytes", json_integer((json_int_t)s.total_bytes));
        json_object_set_new(json, "parameters", json_integer((json_int_t)s.n_parameters));
        json_object_set_new(json, "runs", json_boolean(runs));
        json_object_set_new(json, "why", pith_cli_json_string(runs ? "" : error.text));
        if (show) print_row(name, s.total_bytes, s.architecture, runs ? "" : error.text);
    }
    pith_file_close(file);
    pith_buffer_deinit(&path);
    return json;
}

int pith_command_list(int argc, char **argv) {
    bool json = false;
    pith_cli_option table[] = {{"json", 0, PITH_CLI_FLAG, &json, "", "as JSON", 0, 0}};
    pith_cli_command command = {
        "pith list [--json]", "Lists the models in the models folder.", table, 1,
        "The folder is $PITH_HOME/models, else pith/models below the user's cache folder."};
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code >= 0) return code;
    char *folder = pith_cli_models_folder();
    list_names names = {0};
    code = folder ? read_folder(folder, &names) : pith_cli_fail_text("out of memory");
    json_t *models = json_array();
    for (size_t i = 0; i < names.n; i++) {
        if (code < 0) json_array_append_new(models, describe(folder, names.items[i], !json));
        pith_free(names.items[i]);
    }
    if (code < 0 && names.n == 0)
        fprintf(stderr,
                "note: there are no models in %s; put GGUF files there, or give -m a path\n",
                folder);
    if (code < 0)
        code = json ? pith_cli_print_json(json_pack("{s:o, s:O}", "folder",
                                                    pith_cli_json_string(folder), "models", models))
                    : pith_cli_finish();
    json_decref(models);
    pith_free(names.items);
    pith_free(folder);
    return code;
}
