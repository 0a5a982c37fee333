/* SPDX-License-Identifier: Apache-2.0
 * `pith cache list|clear`: the prompts that are kept on disk. A prompt is kept in parts, which are
 * summed up here by model and settings; --json tells each part. */
#include "base/calendar.h"
#include "base/memory.h"
#include "pith/cli.h"

#include <string.h>

/* Parts of one model and its settings. */
typedef struct cache_sum {
    uint64_t key;
    char *model, *settings;
    size_t n_parts, n_tokens;
    uint64_t bytes;
    int64_t used; /* the last time */
} cache_sum;

typedef struct cache_listing {
    cache_sum *sums;
    size_t n_sums;
    uint64_t bytes;
    json_t *entries;
    bool failed;
} cache_listing;

static cache_sum *sum_of(cache_listing *listing, const pith_cache_entry *entry) {
    for (size_t i = 0; i < listing->n_sums; i++)
        if (listing->sums[i].key == entry->key) return &listing->sums[i];
    cache_sum *grown = pith_realloc(listing->sums, (listing->n_sums + 1) * sizeof *grown);
    if (!grown) return NULL;
    listing->sums = grown;
    cache_sum *sum = &grown[listing->n_sums++];
    *sum = (cache_sum){.key = entry->key,
                       .model = pith_copy_text(entry->model, strlen(entry->model)),
                       .settings = pith_copy_text(entry->settings, strlen(entry->settings))};
    return sum->model && sum->settings ? sum : NULL;
}

/* pith_cache_visit */
static int add_entry(void *user, const pith_cache_entry *entry) {
    cache_listing *listing = user;
    cache_sum *sum = sum_of(listing, entry);
    char key[24];
    listing->failed = !sum;
    if (!sum) return 1;
    sum->n_parts++;
    sum->n_tokens += entry->n - entry->first;
    sum->bytes += entry->bytes;
    if (entry->used > sum->used) sum->used = entry->used;
    listing->bytes += entry->bytes;
    snprintf(key, sizeof key, "%016llx", (unsigned long long)entry->key);
    json_array_append_new(listing->entries,
                          json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:I}", "model",
                                    pith_cli_json_string(entry->model), "settings",
                                    pith_cli_json_string(entry->settings), "key", key, "first",
                                    (json_int_t)entry->first, "n", (json_int_t)entry->n, "bytes",
                                    (json_int_t)entry->bytes, "used", (json_int_t)entry->used));
    return 0;
}

static void print_sums(const cache_listing *listing, const char *folder) {
    for (size_t i = 0; i < listing->n_sums; i++) {
        const cache_sum *sum = &listing->sums[i];
        pith_civil_time t = {0};
        (void)pith_calendar_local(sum->used, &t);
        printf("%7zu tokens in %4zu parts %9.1f MB  used %04d-%02d-%02d %02d:%02d  ", sum->n_tokens,
               sum->n_parts, (double)sum->bytes * 1e-6, t.year, t.month, t.day, t.hour, t.minute);
        pith_cli_print_clean(stdout, sum->model, strlen(sum->model), 80);
        fputs(" (", stdout);
        pith_cli_print_clean(stdout, sum->settings, strlen(sum->settings), 80);
        fputs(")\n", stdout);
    }
    if (listing->n_sums == 0) fprintf(stderr, "note: no prompts are kept in %s\n", folder);
}

static int list_cache(const char *folder, bool json) {
    pith_error error = {0};
    cache_listing listing = {.entries = json_array()};
    pith_status status = pith_cache_list(folder, add_entry, &listing, &error);
    int code = -1;
    if (listing.failed) code = pith_cli_fail_text("out of memory while listing %s", folder);
    if (code < 0 && status != PITH_OK) code = pith_cli_fail(&error);
    if (code < 0 && json)
        code = pith_cli_print_json(
            json_pack("{s:o, s:I, s:O}", "folder", pith_cli_json_string(folder), "bytes",
                      (json_int_t)listing.bytes, "entries", listing.entries));
    if (code < 0) {
        print_sums(&listing, folder);
        code = pith_cli_finish();
    }
    for (size_t i = 0; i < listing.n_sums; i++) {
        pith_free(listing.sums[i].model);
        pith_free(listing.sums[i].settings);
    }
    pith_free(listing.sums);
    json_decref(listing.entries);
    return code;
}

static int clear_cache(const char *folder, bool json) {
    pith_error error = {0};
    size_t n_removed = 0;
    if (pith_cache_clear(folder, &n_removed, &error) != PITH_OK) return pith_cli_fail(&error);
    if (json)
        return pith_cli_print_json(json_pack("{s:o, s:I}", "folder", pith_cli_json_string(folder),
                                             "removed", (json_int_t)n_removed));
    fprintf(stderr, "note: %zu parts of prompts were removed from %s\n", n_removed, folder);
    return pith_cli_finish();
}

int pith_command_cache(int argc, char **argv) {
    bool json = false;
    const char *source = NULL;
    pith_cli_option table[] = {{"cache", 0, PITH_CLI_TEXT, &source, "DIR",
                                "the folder (`pith doctor` shows the default)", 0, 0},
                               {"json", 0, PITH_CLI_FLAG, &json, "", "as JSON", 0, 0}};
    pith_cli_command command = {"pith cache list|clear [--cache DIR] [--json]",
                                "Lists or removes the prompts that are kept on disk.", table, 2,
                                "`pith run` and `pith chat` keep prompts of 128 tokens and more, "
                                "up to 1 GiB together; what\n"
                                "was not used for longest goes first."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    bool list = n_words == 1 && strcmp(words[0], "list") == 0;
    bool clear = n_words == 1 && strcmp(words[0], "clear") == 0;
    pith_free(words);
    if (code >= 0) return code;
    if (!list && !clear) return pith_cli_usage(&command, "say `list` or `clear`");
    char *folder = pith_cli_cache_folder(source);
    if (!folder) return pith_cli_usage(&command, "--cache needs a folder here");
    code = list ? list_cache(folder, json) : clear_cache(folder, json);
    pith_free(folder);
    return code;
}
