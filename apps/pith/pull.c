/* SPDX-License-Identifier: Apache-2.0
 * `pith pull`: fetches a model by name or address into the models folder, whole and checked, and
 * writes down what it is. What another program keeps on this machine already is used where it lies.
 * Read next: pull_plan.c (which files), download.c (one file). */
#include "pith/pull.h"

#include "base/calendar.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/memory.h"
#include "pith/pull_plan.h"
#include "pith/pull_progress.h"

#include <string.h>

typedef struct pull_options {
    const char *name;
    int32_t n_connections, tries, timeout;
    uint64_t part_bytes;
    bool json, catalogue, own;
} pull_options;

typedef struct pull_sum {
    uint64_t bytes, transferred, resumed, start_ns;
    size_t n_there, n_verified;
} pull_sum;

/* ---- The catalogue ---- */

static int print_catalogue(bool json) {
    json_t *list = json_array();
    const pith_cli_catalogue_entry *entry;
    for (size_t i = 0; (entry = pith_cli_catalogue_at(i)); i++) {
        char size[32];
        pith_cli_bytes_text(entry->bytes, size, sizeof size);
        if (!json) printf("%-20s %9s  %-11s %s\n", entry->name, size, entry->licence, entry->about);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:I, s:s?}", "name",
                                              entry->name, "source", entry->hub, "about",
                                              entry->about, "licence", entry->licence, "bytes",
                                              (json_int_t)entry->bytes, "sha256", entry->digest));
    }
    if (json) return pith_cli_print_json(json_pack("{s:o}", "models", list));
    json_decref(list);
    return pith_cli_finish();
}

/* ---- What is there already ---- */

static bool is_same_file(const pith_cli_found *found, const pith_cli_plan *plan) {
    const pith_cli_plan_file *file = &plan->files[0];
    char digest[65];
    bool elsewhere =
        found->origin == PITH_CLI_ORIGIN_HUB || found->origin == PITH_CLI_ORIGIN_LM_STUDIO;
    if (!file->bytes || pith_cli_file_bytes(found->path) != file->bytes) return false;
    if (elsewhere && found->repo && plan->repo && pith_cli_same_name(found->repo, plan->repo) &&
        strcmp(found->file, file->file) == 0)
        return true;
    return found->origin == PITH_CLI_ORIGIN_FOLDER && plan->n == 1 && file->digest[0] &&
           pith_cli_file_digest(found->path, digest) && strcmp(digest, file->digest) == 0;
}

/* A copy that somebody else keeps, or NULL. */
static const pith_cli_found *find_copy(const pith_cli_found_list *list, const pith_cli_plan *plan) {
    for (size_t i = 0; i < list->n; i++)
        if (is_same_file(&list->items[i], plan)) return &list->items[i];
    return NULL;
}

static int tell_copy(const pull_options *o, const pith_cli_found *found,
                     const pith_cli_plan *plan) {
    if (o->json)
        return pith_cli_print_json(json_pack(
            "{s:o, s:o, s:s, s:I, s:b, s:i}", "name", pith_cli_json_string(plan->name), "path",
            pith_cli_json_string(found->path), "source", pith_cli_origin_text(found->origin),
            "bytes", (json_int_t)plan->files[0].bytes, "was_there", 1, "transferred_bytes", 0));
    printf("%s is on this machine already (%s) and is used where it lies:\n  %s\n", plan->name,
           pith_cli_origin_text(found->origin), found->path);
    return pith_cli_finish();
}

/* ---- Fetching ---- */

static const char *kept_etag(const json_t *record, const char *file) {
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(record, "files"), i, entry) {
        const char *name = json_string_value(json_object_get(entry, "file"));
        const char *etag = json_string_value(json_object_get(entry, "etag"));
        if (name && etag && strcmp(name, file) == 0) return etag;
    }
    return "";
}

static pith_status make_folder_of(const char *path, pith_error *error) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? pith_copy_text(path, (size_t)(slash - path)) : NULL;
    pith_status status =
        folder ? pith_folder_make(folder, error) : pith_fail_memory(error, "a path", 0);
    pith_free(folder);
    return status;
}

/* A file that somebody put there is not ours to replace. */
static pith_status refuse_foreign(const pith_cli_plan *plan, const json_t *record,
                                  pith_error *error) {
    if (plan->repo || record || pith_cli_file_bytes(plan->files[0].target) == UINT64_MAX)
        return PITH_OK;
    return pith_fail(error, PITH_ERROR_ARGUMENT,
                     "%.160s is there and was not pulled by pith; choose another name with --name",
                     plan->files[0].target);
}

static pith_status fetch_file(const pull_options *o, const pith_cli_plan *plan, size_t i,
                              const json_t *record, json_t *files, pull_sum *sum,
                              pith_error *error) {
    const pith_cli_plan_file *file = &plan->files[i];
    char *models = pith_cli_models_folder(),
         *folder = models ? pith_cli_join(models, ".pull") : NULL;
    pith_cli_downloaded done;
    pith_status status = folder ? pith_folder_make(folder, error) : pith_fail_memory(error, "", 0);
    if (status == PITH_OK) status = make_folder_of(file->target, error);
    char *token = status == PITH_OK ? pith_cli_hub_token(file->url) : NULL;
    pith_cli_download what = {.url = file->url,
                              .token = token,
                              .name = plan->name,
                              .file = file->file,
                              .target = file->target,
                              .folder = folder,
                              .digest = file->digest,
                              .etag = kept_etag(record, file->file),
                              .bytes = file->bytes,
                              .part_bytes = o->part_bytes,
                              .n_connections = o->n_connections,
                              .tries = o->tries,
                              .timeout = o->timeout,
                              .alone = plan->n == 1};
    if (status == PITH_OK) status = pith_cli_download_file(&what, &done, error);
    pith_free(token);
    pith_free(folder);
    pith_free(models);
    if (status) return status;
    sum->bytes += done.bytes;
    sum->transferred += done.transferred;
    sum->resumed += done.resumed;
    sum->n_there += done.was_there;
    sum->n_verified += done.verified;
    json_array_append_new(
        files, json_pack("{s:o, s:I, s:s, s:b, s:o}", "file", pith_cli_json_string(file->file),
                         "bytes", (json_int_t)done.bytes, "sha256", done.digest, "verified",
                         done.verified, "etag", pith_cli_json_string(done.etag)));
    return PITH_OK;
}

static pith_status write_record(const pith_cli_plan *plan, json_t *files, pith_error *error) {
    json_t *record =
        json_pack("{s:o, s:o, s:s?, s:I, s:O}", "name", pith_cli_json_string(plan->name), "source",
                  pith_cli_json_string(plan->source), "licence", plan->licence, "pulled",
                  (json_int_t)pith_calendar_now(), "files", files);
    if (pith_cli_pulled_write(plan->files[0].target, record)) return PITH_OK;
    return pith_fail(error, PITH_ERROR_IO, "%.160s.json cannot be written; is the disk full?",
                     plan->files[0].target);
}

/* Whether the files are one model that this pith runs: a note where it is not. */
static pith_status check_whole(const pith_cli_plan *plan, pith_error *error) {
    pith_file *file = NULL;
    pith_error why = {0};
    pith_status status = pith_file_open(plan->files[0].target, &file, &why);
    if (status && plan->n > 1)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "the parts of %.60s are no model together: %.150s", plan->name, why.text);
    if (status == PITH_OK) status = pith_file_check(file, &why);
    pith_file_close(file);
    if (status == PITH_OK) return PITH_OK;
    fprintf(stderr, "note: %s does not run with this pith: ", plan->name);
    pith_cli_print_clean(stderr, why.text, strlen(why.text), 400);
    fputc('\n', stderr);
    return PITH_OK;
}

static int tell(const pull_options *o, const pith_cli_plan *plan, const pull_sum *sum,
                json_t *files) {
    double seconds = (double)(pith_clock_ns() - sum->start_ns) * 1e-9;
    const char *path = plan->files[0].target;
    bool verified = sum->n_verified == plan->n;
    char size[32];
    if (o->json)
        return pith_cli_print_json(
            json_pack("{s:o, s:o, s:o, s:I, s:b, s:I, s:I, s:f, s:b, s:O}", "name",
                      pith_cli_json_string(plan->name), "path", pith_cli_json_string(path),
                      "source", pith_cli_json_string(plan->source), "bytes", (json_int_t)sum->bytes,
                      "was_there", sum->n_there == plan->n, "transferred_bytes",
                      (json_int_t)sum->transferred, "resumed_bytes", (json_int_t)sum->resumed,
                      "seconds", seconds, "verified", verified, "files", files));
    pith_cli_bytes_text(sum->bytes, size, sizeof size);
    if (sum->n_there == plan->n)
        printf("%s is there already and up to date: %s\n  %s\n", plan->name, size, path);
    else
        printf("%s: %s in %.1f s%s\n  %s\n", plan->name, size, seconds,
               verified ? ", SHA-256 as published" : ", no digest was published", path);
    return pith_cli_finish();
}

static int pull_files(const pull_options *o, const pith_cli_plan *plan) {
    pith_error error = {0};
    json_t *record = pith_cli_pulled_read(plan->files[0].target), *files = json_array();
    pull_sum sum = {.start_ns = pith_clock_ns()};
    pith_status status = refuse_foreign(plan, record, &error);
    for (size_t i = 0; i < plan->n && status == PITH_OK; i++)
        status = fetch_file(o, plan, i, record, files, &sum, &error);
    if (status == PITH_OK) status = check_whole(plan, &error);
    if (status == PITH_OK && (!record || sum.n_there < plan->n))
        status = write_record(plan, files, &error);
    int code = status ? pith_cli_fail(&error) : tell(o, plan, &sum, files);
    json_decref(files);
    json_decref(record);
    return code;
}

static int pull(const pull_options *o, const char *word) {
    pith_error error = {0};
    pith_cli_plan plan;
    pith_cli_found_list list = {0};
    if (!pith_cli_has_home())
        return pith_cli_fail_text("there is no folder for models: " PITH_CLI_NO_HOME);
    if (!pith_cli_network_open(&error)) return pith_cli_fail(&error);
    pith_status status = pith_cli_plan_make(word, o->name, o->timeout, &plan, &error);
    int code = status ? pith_cli_fail(&error) : -1;
    if (code < 0 && !o->own) pith_cli_find_models(&list);
    const pith_cli_found *found = code < 0 ? find_copy(&list, &plan) : NULL;
    if (code < 0) code = found ? tell_copy(o, found, &plan) : pull_files(o, &plan);
    pith_cli_found_deinit(&list);
    pith_cli_plan_deinit(&plan);
    pith_cli_network_close();
    return code;
}

int pith_command_pull(int argc, char **argv) {
    pull_options o = {.n_connections = 4, .tries = 12, .timeout = 30};
    pith_cli_option table[] = {
        {"name", 0, PITH_CLI_TEXT, &o.name, "NAME", "how the model of an address is called here", 0,
         0},
        {"catalogue", 0, PITH_CLI_FLAG, &o.catalogue, "", "list the short names", 0, 0},
        {"own", 0, PITH_CLI_FLAG, &o.own, "", "fetch it even where another program's folder has it",
         0, 0},
        {"connections", 0, PITH_CLI_INT, &o.n_connections, "N", "ranges at once (default: 4)", 1,
         16},
        {"part", 0, PITH_CLI_SIZE, &o.part_bytes, "SIZE",
         "bytes of a range (default: a 32nd of the file, 4M to 128M)", 0, 0},
        {"tries", 0, PITH_CLI_INT, &o.tries, "N",
         "failures in a row that are waited out (default: 12)", 0, 1000},
        {"timeout", 0, PITH_CLI_INT, &o.timeout, "S",
         "seconds of silence until a connection is given up (default: 30)", 1, 3600},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "as JSON", 0, 0},
    };
    pith_cli_command command = {
        "pith pull hf:USER/REPO[:QUANTIZATION]|ADDRESS|NAME [options]",
        "Fetches a model into the models folder; a broken-off pull goes on where it was.", table,
        sizeof table / sizeof table[0],
        "HF_TOKEN is sent to the hub alone, HF_ENDPOINT names another hub; http_proxy, "
        "https_proxy\n"
        "and no_proxy are respected. After a pull, -m takes the same name."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words != (o.catalogue ? 0 : 1))
        code = pith_cli_usage(&command, "give one name or address, or --catalogue");
    if (code < 0) code = o.catalogue ? print_catalogue(o.json) : pull(&o, words[0]);
    pith_free(words);
    return code;
}
