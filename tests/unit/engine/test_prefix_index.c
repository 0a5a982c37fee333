/* SPDX-License-Identifier: Apache-2.0
 * Promises of prefix_index.c that an engine alone does not show: a quota that became smaller is
 * reached whatever it takes, the writer that could not publish leaves no row, a database of
 * somebody else in the folder is neither read, changed nor removed, and looking at a folder makes
 * nothing in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/folder.h"
#include "base/source.h"
#include "engine/engine.h"
#include "engine/prefix_index.h"
#include "support/cache_folder.h"

enum { KEY = 5, ENTRY_BYTES = 1000 };

static int clean_folder(void **state) {
    (void)state;
    empty_folder("test_prefix_index");
    return 0;
}

static bool count_name(void *user, const char *name) {
    if (name[0] != '.') ++*(size_t *)user;
    return true;
}

static size_t count_files(void) {
    size_t n = 0;
    assert_int_equal(pith_folder_each(folder, count_name, &n, NULL), PITH_OK);
    return n;
}

static pith_prefix_index *open_index(void) {
    pith_prefix_index *index = NULL;
    pith_error error = {0};
    if (pith_prefix_index_open(folder, &index, &error) != PITH_OK) fail_msg("%s", error.text);
    return index;
}

static void write_file(const char *name, const char *text) {
    char path[1400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(pith_folder_make(folder, NULL), PITH_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* A row for 64 tokens that `which` stands for; 0: none was made. */
static int64_t reserve(pith_prefix_index *index, uint64_t which, uint64_t quota) {
    const pith_prefix_entry entry = {.key = KEY,
                                     .n = 64,
                                     .ids_hash = which,
                                     .bytes = ENTRY_BYTES,
                                     .model = "m",
                                     .settings = "s"};
    return pith_prefix_index_reserve(index, &entry, quota);
}

static bool publish(pith_prefix_index *index, int64_t id, uint64_t which) {
    const pith_prefix_places places = {&which, 1, 0};
    return pith_prefix_index_publish(index, id, KEY, &places);
}

static void store(pith_prefix_index *index, uint64_t which, uint64_t quota) {
    char name[40];
    int64_t id = reserve(index, which, quota);
    assert_true(id > 0);
    snprintf(name, sizeof name, "e%d.kv1", (int)id);
    write_file(name, "x");
    assert_true(publish(index, id, which));
}

static bool add_bytes(void *user, const pith_cache_entry *entry) {
    *(uint64_t *)user += entry->bytes;
    return true;
}

static uint64_t bytes_kept(pith_prefix_index *index) {
    uint64_t bytes = 0;
    assert_int_equal(pith_prefix_index_each(index, add_bytes, &bytes, NULL), PITH_OK);
    return bytes;
}

/* More entries have to go than one transaction takes away. */
static void a_quota_that_became_smaller_is_reached(void **state) {
    enum { MANY = 700, FEW = 3 };
    (void)state;
    pith_prefix_index *index = open_index();
    for (uint64_t i = 1; i <= MANY; i++) store(index, i, UINT64_MAX);
    assert_true(bytes_kept(index) == (uint64_t)MANY * ENTRY_BYTES);
    store(index, MANY + 1, FEW * ENTRY_BYTES);
    assert_true(bytes_kept(index) == FEW * ENTRY_BYTES);
    assert_true(count_files() <= FEW + 3); /* and the database's three */
    pith_prefix_row row;
    assert_int_equal(pith_prefix_index_find(index, KEY, MANY + 1, &row, 1), 1);
    assert_int_equal(pith_prefix_index_find(index, KEY, 1, &row, 1), 0);
    pith_prefix_index_close(index);
}

/* What is larger than the quota takes nothing else away. */
static void what_is_too_large_drives_nothing_out(void **state) {
    (void)state;
    pith_prefix_index *index = open_index();
    store(index, 1, UINT64_MAX);
    assert_int_equal(reserve(index, 2, ENTRY_BYTES - 1), 0);
    assert_true(bytes_kept(index) == ENTRY_BYTES);
    store(index, 3, ENTRY_BYTES); /* exactly as large: takes its place */
    assert_true(bytes_kept(index) == ENTRY_BYTES);
    pith_prefix_index_close(index);
}

static void rows_that_are_gone_are_not_published(void **state) {
    (void)state;
    pith_prefix_index *index = open_index();
    int64_t id = reserve(index, 1, UINT64_MAX);
    assert_true(id > 0);
    assert_int_equal(reserve(index, 1, UINT64_MAX), 0); /* somebody is at it */
    pith_prefix_index_remove(index, id);
    assert_false(publish(index, id, 1));
    pith_prefix_row row;
    assert_int_equal(pith_prefix_index_find(index, KEY, 1, &row, 1), 0);
    assert_true(reserve(index, 1, UINT64_MAX) > id); /* an id never comes twice */
    pith_prefix_index_close(index);
}

/* A folder of the user's that holds an index.db of its own, given by mistake. */
static void files_of_others_stay_as_they_are(void **state) {
    static const char text[] = "what somebody else keeps here";
    static const char *const names[] = {"index.db", "index.db-wal", "e.kv1", "ex1.kv1", "e1.kv2"};
    enum { N_NAMES = sizeof names / sizeof names[0] };
    size_t n_removed = 7;
    pith_error error;
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) write_file(names[i], text);
    pith_prefix_index *index = open_index();
    store(index, 1, UINT64_MAX);
    pith_prefix_index_sweep(index);
    pith_prefix_index_close(index);
    assert_int_equal(pith_prefix_clear(folder, &n_removed, &error), PITH_OK);
    assert_int_equal(n_removed, 1);
    for (size_t i = 0; i < N_NAMES; i++) {
        char path[1400], found[sizeof text] = "";
        pith_source *source;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (pith_source_open_path(path, &source, &error) != PITH_OK) fail_msg("%s", error.text);
        assert_int_equal(pith_source_size(source), sizeof text - 1);
        assert_int_equal(pith_source_read(source, 0, found, sizeof text - 1, NULL), PITH_OK);
        assert_string_equal(found, text);
        pith_source_close(source);
    }
}

static int visit_none(void *user, const pith_cache_entry *entry) {
    (void)user;
    fail_msg("an entry of %s", entry->model);
    return 1;
}

static void looking_at_a_folder_makes_nothing_in_it(void **state) {
    size_t n_removed = 7;
    (void)state;
    write_file("mine.txt", "text");
    assert_int_equal(pith_prefix_list(folder, visit_none, NULL, NULL), PITH_OK);
    assert_int_equal(pith_prefix_clear(folder, &n_removed, NULL), PITH_OK);
    assert_int_equal(n_removed, 0);
    assert_int_equal(count_files(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_quota_that_became_smaller_is_reached, clean_folder),
        cmocka_unit_test_setup(what_is_too_large_drives_nothing_out, clean_folder),
        cmocka_unit_test_setup(rows_that_are_gone_are_not_published, clean_folder),
        cmocka_unit_test_setup(files_of_others_stay_as_they_are, clean_folder),
        cmocka_unit_test_setup(looking_at_a_folder_makes_nothing_in_it, clean_folder),
    };
    if (!pith_prefix_index_library()) {
        print_message("skipped: this build has no SQLite\n");
        return 0;
    }
    return cmocka_run_group_tests_name("index of stored prompts", tests, NULL, NULL);
}
