/* SPDX-License-Identifier: Apache-2.0
 * `pith list`: the models on this machine, whoever keeps them, with what their headers say. A
 * broken file is listed with its fault; a split model is one line, under the name of its first
 * file; what is only partly pulled is listed as such. */
#include "base/calendar.h"
#include "base/memory.h"
#include "pith/models.h"
#include "pith/pull_progress.h"

#include <stdlib.h>
#include <string.h>

typedef struct list_row {
    const pith_cli_found *found;
    pith_file_summary summary;
    char quant[PITH_CLI_QUANT_LIMIT];
    int64_t used;
    uint64_t come; /* bytes, of one that is partly pulled */
    bool is_open, runs;
    char architecture[64];
    pith_error error;
} list_row;

/* The type that holds most bytes, for files whose name does not tell. */
static void main_type(const pith_file *file, char out[PITH_CLI_QUANT_LIMIT]) {
    struct {
        const char *type;
        uint64_t bytes;
    } sums[64] = {{0}};
    size_t n = 0, best = 0;
    pith_file_tensor tensor;
    for (uint64_t i = 0; pith_file_tensor_at(file, i, &tensor); i++) {
        size_t at = 0;
        while (at < n && strcmp(sums[at].type, tensor.type) != 0) at++;
        if (at == sizeof sums / sizeof sums[0]) continue;
        if (at == n) sums[n++].type = tensor.type;
        sums[at].bytes += tensor.bytes;
        if (sums[at].bytes > sums[best].bytes) best = at;
    }
    if (n) snprintf(out, PITH_CLI_QUANT_LIMIT, "%s", sums[best].type);
}

static void read_header(list_row *row) {
    pith_file *file = NULL;
    if (pith_file_open(row->found->path, &file, &row->error) != PITH_OK) return;
    row->is_open = true;
    row->summary = pith_file_summarize(file);
    snprintf(row->architecture, sizeof row->architecture, "%s", row->summary.architecture);
    row->runs = pith_file_check(file, &row->error) == PITH_OK;
    pith_cli_name_quant(row->found->file, row->quant);
    if (!row->quant[0]) main_type(file, row->quant);
    pith_file_close(file);
}

/* The counts of a download (download_parts.c), or the first file of a split model without the
 * rest. */
static void read_counts(list_row *row) {
    pith_buffer text = {0};
    json_t *json = NULL, *count;
    size_t i;
    pith_cli_name_quant(row->found->file, row->quant);
    if (row->found->repo) {
        row->come = pith_cli_file_bytes(row->found->path);
        return;
    }
    if (pith_cli_read_file(row->found->path, 1 << 20, &text, NULL))
        json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    json_int_t total = json_integer_value(json_object_get(json, "bytes"));
    row->summary.total_bytes = total > 0 ? (uint64_t)total : 0;
    json_array_foreach(json_object_get(json, "done"), i, count) {
        json_int_t n = json_integer_value(count);
        row->come += n > 0 ? (uint64_t)n : 0;
    }
    json_decref(json);
    pith_buffer_deinit(&text);
}

static list_row make_row(const pith_cli_found *found) {
    list_row row = {.found = found};
    if (found->origin == PITH_CLI_ORIGIN_PARTIAL)
        read_counts(&row);
    else
        read_header(&row);
    row.used = pith_cli_last_used(found->path);
    return row;
}

static void print_cell(const char *text, int width) {
    size_t size = strlen(text);
    pith_cli_print_clean(stdout, text, size, 200);
    for (int i = (int)(size < 200 ? size : 200); i < width; i++) putchar(' ');
    putchar(' ');
}

static void print_used(int64_t used) {
    pith_civil_time t;
    if (used && pith_calendar_local(used, &t))
        printf("  used %04d-%02d-%02d", t.year, t.month, t.day);
}

static void print_row(const list_row *row) {
    char size[32];
    bool partial = row->found->origin == PITH_CLI_ORIGIN_PARTIAL;
    pith_cli_bytes_text(partial ? row->come : row->summary.total_bytes, size, sizeof size);
    print_cell(row->found->name, 44);
    printf("%9s  ", size);
    print_cell(row->quant[0] ? row->quant : "-", 9);
    print_cell(partial ? "partly pulled" : row->is_open ? row->architecture : "broken", 8);
    fputs(partial ? "" : pith_cli_origin_text(row->found->origin), stdout);
    print_used(row->used);
    if (partial && row->summary.total_bytes) {
        pith_cli_bytes_text(row->summary.total_bytes, size, sizeof size);
        printf("of %s; pull it again to go on", size);
    }
    if (row->error.text[0]) fputs(": ", stdout);
    pith_cli_print_clean(stdout, row->error.text, strlen(row->error.text), 400);
    putchar('\n');
}

static json_t *row_json(const list_row *row) {
    const pith_cli_found *found = row->found;
    bool partial = found->origin == PITH_CLI_ORIGIN_PARTIAL;
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:s, s:b}", "name", pith_cli_json_string(found->name), "path",
                  pith_cli_json_string(found->path), "source", pith_cli_origin_text(found->origin),
                  "quant", row->quant, "partial", partial);
    json_object_set_new(json, "used", row->used ? json_integer(row->used) : json_null());
    json_object_set_new(json, "bytes", json_integer((json_int_t)row->summary.total_bytes));
    if (partial) {
        json_object_set_new(json, "pulled_bytes", json_integer((json_int_t)row->come));
    } else if (!row->is_open) {
        json_object_set_new(json, "error", pith_cli_json_string(row->error.text));
    } else {
        json_object_set_new(json, "architecture", pith_cli_json_string(row->architecture));
        json_object_set_new(json, "parameters",
                            json_integer((json_int_t)row->summary.n_parameters));
        json_object_set_new(json, "runs", json_boolean(row->runs));
        json_object_set_new(json, "why", pith_cli_json_string(row->error.text));
    }
    return json;
}

/* Parts that wait to be joined, where a model is only partly there, are not models of their own. */
static int print_list(const pith_cli_found_list *list, const char *folder, bool json) {
    json_t *models = json_array();
    for (size_t i = 0; i < list->n; i++) {
        list_row row = make_row(&list->items[i]);
        if (json)
            json_array_append_new(models, row_json(&row));
        else
            print_row(&row);
    }
    if (list->n == 0 && !folder)
        fputs("note: there is no folder for models: " PITH_CLI_NO_HOME ", or give -m a path\n",
              stderr);
    else if (list->n == 0)
        fprintf(
            stderr,
            "note: there are no models in %s; `pith pull` fetches one (--catalogue lists some), "
            "or put GGUF files there, or give -m a path\n",
            folder);
    if (json)
        return pith_cli_print_json(json_pack("{s:o, s:o}", "folder",
                                             folder ? pith_cli_json_string(folder) : json_null(),
                                             "models", models));
    json_decref(models);
    return pith_cli_finish();
}

int pith_command_list(int argc, char **argv) {
    bool json = false;
    pith_cli_option table[] = {{"json", 0, PITH_CLI_FLAG, &json, "", "as JSON", 0, 0}};
    pith_cli_command command = {
        "pith list [--json]", "Lists the models on this machine.", table, 1,
        "The models folder is $PITH_HOME/models, else pith/models below the user's cache folder.\n"
        "Models of Hugging Face's cache, LM Studio and Ollama are used where they lie."};
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code >= 0) return code;
    char *folder = pith_cli_models_folder();
    pith_cli_found_list list;
    pith_cli_find_models(&list);
    if (list.failed || (!folder && pith_cli_has_home()))
        code = pith_cli_fail_text("out of memory while listing models");
    else
        code = print_list(&list, folder, json);
    pith_cli_found_deinit(&list);
    pith_free(folder);
    return code;
}
