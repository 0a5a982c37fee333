/* SPDX-License-Identifier: Apache-2.0
 * The store of conversations without HTTP: what a tree may be, that a refused change leaves
 * nothing, that any text is searched for as words, files that are not ours. tests/cli/
 * test_history.py has the rest: HTTP, killed servers, full disks. */
#define _DEFAULT_SOURCE /* mkdtemp */

#include "server/chat_history.h"
/* cmocka needs these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
/* in this order */
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/pith-history-XXXXXX";
static char path[64];

static void empty_folder(void) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(name);
    }
    if (dir) closedir(dir);
}

static int set_up(void **state) {
    empty_folder();
    *state = pith_chat_history_new(path);
    return *state ? 0 : -1;
}

static int tear_down(void **state) {
    pith_chat_history_free(*state);
    return 0;
}

static pith_status say(pith_chat_history *h, const char *id, const char *parent, const char *text) {
    const pith_chat_history_message message = {
        .id = id, .parent = parent, .role = "user", .text = text};
    return pith_chat_history_write_message(h, "c", &message, NULL);
}

static size_t n_messages(pith_chat_history *h) {
    json_t *whole = NULL;
    assert_int_equal(pith_chat_history_read(h, "c", &whole, NULL), PITH_OK);
    size_t n = json_array_size(json_object_get(whole, "messages"));
    json_decref(whole);
    return n;
}

static size_t n_hits(pith_chat_history *h, const char *query) {
    json_t *found = NULL;
    assert_int_equal(pith_chat_history_search(h, query, &found, NULL), PITH_OK);
    size_t n = json_array_size(json_object_get(found, "hits"));
    json_decref(found);
    return n;
}

static void test_parents_come_first(void **state) {
    pith_chat_history *h = *state;
    const pith_chat_history_head head = {.title = "t"};
    assert_int_equal(say(h, "a", NULL, "x"), PITH_ERROR_NOT_FOUND);
    assert_int_equal(pith_chat_history_write(h, "c", &head, NULL), PITH_OK);
    assert_int_equal(say(h, "a", NULL, "x"), PITH_OK);
    assert_int_equal(say(h, "b", "a", "y"), PITH_OK);
    assert_int_equal(say(h, "a", "b", "x"), PITH_ERROR_ARGUMENT); /* it would be a circle */
    assert_int_equal(say(h, "d", "e", "x"), PITH_ERROR_ARGUMENT);
    assert_int_equal(say(h, "b", "a", "changed"), PITH_OK);
    assert_int_equal(n_messages(h), 2);
    assert_int_equal(n_hits(h, "changed"), 1);
}

static void test_import_is_all_or_nothing(void **state) {
    pith_chat_history *h = *state;
    const pith_chat_history_message good[] = {
        {.id = "a", .role = "user", .text = "x"},
        {.id = "b", .parent = "a", .role = "user", .text = "y"}};
    const pith_chat_history_message bad[] = {
        {.id = "a", .parent = "z", .role = "user", .text = "x"}};
    pith_chat_history_import items[] = {{.id = "c", .messages = good, .n_messages = 2},
                                        {.id = "d", .messages = bad, .n_messages = 1}};
    pith_error error = {0};
    size_t n = 0;
    assert_int_equal(pith_chat_history_add(h, items, 2, &n, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "the parent z"));
    json_t *whole = NULL;
    assert_int_equal(pith_chat_history_read(h, "c", &whole, &error), PITH_ERROR_NOT_FOUND);
    assert_int_equal(pith_chat_history_add(h, items, 1, &n, &error), PITH_OK);
    assert_int_equal(n, 2);
    assert_int_equal(pith_chat_history_add(h, items, 1, &n, &error), PITH_OK);
    assert_int_equal(n, 0);
}

static void test_sizes_are_limited(void **state) {
    pith_chat_history *h = *state;
    const pith_chat_history_head head = {.title = "t"};
    pith_error error = {0};
    assert_int_equal(pith_chat_history_write(h, "c", &head, NULL), PITH_OK);
    char *text = malloc(PITH_CHAT_HISTORY_BYTES + 1);
    assert_non_null(text);
    memset(text, 'x', PITH_CHAT_HISTORY_BYTES);
    text[PITH_CHAT_HISTORY_BYTES] = 0; /* with "{}" beside it two bytes too many */
    pith_chat_history_message message = {.id = "a", .role = "user", .text = text};
    assert_int_equal(pith_chat_history_write_message(h, "c", &message, &error), PITH_ERROR_LIMIT);
    assert_int_equal(n_messages(h), 0);
    text[PITH_CHAT_HISTORY_BYTES - 2] = 0;
    assert_int_equal(pith_chat_history_write_message(h, "c", &message, &error), PITH_OK);
    assert_int_equal(say(h, "b", "a", "y"), PITH_ERROR_LIMIT);
    assert_int_equal(say(h, "a", NULL, "short"), PITH_OK);
    assert_int_equal(say(h, "b", "a", "y"), PITH_OK);
    free(text);
}

/* A query is words, whatever it spells: no text of 1 to 12 signs fails. */
static void test_any_query(void **state) {
    static const char *const parts[] = {
        "\"", "'",  "*",  "%",   "_", "\\", " OR ", " NEAR(", "(", ")", "^",  "text:", "-",
        "世", "界", "ab", "abc", " ", "+",  "AND",  "{",      "}", ";", "\n", "?1",    "é"};
    pith_chat_history *h = *state;
    const pith_chat_history_head head = {.title = "t"};
    unsigned seed = 7;
    assert_int_equal(pith_chat_history_write(h, "c", &head, NULL), PITH_OK);
    for (int i = 0; i < 3000; i++) {
        char query[128] = "", id[16];
        for (int j = 0, n = 1 + i % 12; j < n; j++) {
            seed = seed * 1664525u + 1013904223u;
            const char *part = parts[(seed >> 16) % (sizeof parts / sizeof parts[0])];
            memcpy(query + strlen(query), part, strlen(part) + 1);
        }
        snprintf(id, sizeof id, "m%d", i);
        if (i % 50 == 0) assert_int_equal(say(h, id, NULL, query), PITH_OK);
        size_t n = n_hits(h, query);
        if (i % 50 == 0 && strspn(query, " \n") < strlen(query) && n == 0) /* it finds itself */
            fail_msg("'%s' (query %d) is not found", query, i);
    }
}

static void test_foreign_files_are_left_alone(void **state) {
    pith_chat_history *h = *state;
    static const char diary[] = "dear diary, this is no database at all; it has some lines\n";
    char got[sizeof diary] = "";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(diary, file);
    fclose(file);
    assert_int_equal(pith_chat_history_check(h, NULL), PITH_ERROR_IO);
    file = fopen(path, "r");
    assert_non_null(fgets(got, sizeof got, file));
    fclose(file);
    assert_string_equal(got, diary);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pith_chat_history_check(h, NULL), PITH_OK); /* tried again */
}

static void test_off(void **state) {
    pith_chat_history *h = pith_chat_history_new(NULL);
    pith_error error = {0};
    json_t *out = NULL;
    (void)state;
    assert_non_null(h);
    assert_int_equal(pith_chat_history_list(h, &out, &error), PITH_ERROR_UNSUPPORTED);
    assert_null(out);
    assert_non_null(strstr(error.text, "--history off"));
    pith_chat_history_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parents_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_import_is_all_or_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sizes_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_query, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign_files_are_left_alone, set_up, tear_down),
        cmocka_unit_test(test_off),
    };
    if (!pith_chat_history_library()) {
        printf("0 passed, 0 failed, 1 skipped: this build keeps no history\n");
        return 0;
    }
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/c.db", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    empty_folder();
    rmdir(folder);
    return failed;
}
