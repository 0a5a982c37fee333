/* SPDX-License-Identifier: Apache-2.0
 * Promises of folder.h, worker.h and pith_checksum: folders are made with all their parts and
 * listed; a worker runs after every wake and before it is freed; a changed word changes the sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/folder.h"
#include "base/output.h"
#include "base/text.h"
#include "base/worker.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[1024];

static void path_in(char out[1200], const char *more) {
    snprintf(out, 1200, "%s%s", root, more);
}

static bool count(void *user, const char *name) {
    int *n = user;
    *n += name[0] != '.';
    return *n < 2; /* stops at the second */
}

static void put_file(const char *path) {
    pith_output *output;
    assert_int_equal(pith_output_open(path, &output, NULL), PITH_OK);
    assert_int_equal(pith_output_commit(output, NULL), PITH_OK);
    pith_output_close(output);
}

static void folders_are_made_and_listed(void **state) {
    char path[1200], file[1200];
    pith_error error = {0};
    int n = 0;
    (void)state;
    path_in(path, "/a/b/c");
    assert_int_equal(pith_folder_make(path, &error), PITH_OK);
    assert_int_equal(pith_folder_make(path, &error), PITH_OK);
    assert_true(pith_folder_exists(path));
    assert_true(pith_folder_room(path) > 0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"/a/b/c/x", "/a/b/c/y", "/a/b/c/z"};
        path_in(file, names[i]);
        put_file(file);
    }
    assert_int_equal(pith_folder_each(path, count, &n, &error), PITH_OK);
    assert_int_equal(n, 2);
    pith_file_remove(file);
    pith_file_remove(file); /* gone: no failure */
}

static void what_is_no_folder_is_told(void **state) {
    char path[1200];
    pith_error error = {0};
    int n = 0;
    (void)state;
    path_in(path, "/a/b/c/x/below");
    assert_false(pith_folder_exists(path));
    assert_true(pith_folder_make(path, &error) != PITH_OK);
    assert_non_null(strstr(error.text, "below"));
    path_in(path, "/a/b/c/x");
    assert_false(pith_folder_exists(path));
    assert_true(pith_folder_make(path, &error) != PITH_OK);
    path_in(path, "/nothing");
    assert_int_equal(pith_folder_each(path, count, &n, &error), PITH_ERROR_NOT_FOUND);
    assert_int_equal(n, 0);
}

typedef struct mailbox {
    atomic_int sent, seen;
} mailbox;

static void look(void *user) {
    mailbox *box = user;
    atomic_store(&box->seen, atomic_load(&box->sent));
}

static void a_worker_sees_what_was_sent_before_a_wake(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        mailbox box = {0};
        pith_worker *worker;
        assert_int_equal(pith_worker_new(look, &box, &worker, NULL), PITH_OK);
        for (int i = 1; i <= round % 5; i++) {
            atomic_store(&box.sent, i);
            pith_worker_wake(worker);
            while (i % 2 && atomic_load(&box.seen) < i) {}
        }
        atomic_store(&box.sent, 99);
        pith_worker_free(worker);
        assert_int_equal(atomic_load(&box.seen), 99);
    }
    pith_worker_free(NULL);
}

static void every_change_changes_the_sum(void **state) {
    uint8_t data[200];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37);
    for (size_t size = 0; size < sizeof data; size++) {
        uint64_t sum = pith_checksum(data, size);
        assert_true(sum != pith_checksum(data, size + 1));
        for (size_t i = 0; i < size; i++) {
            data[i] ^= 1u << (i % 8);
            assert_true(sum != pith_checksum(data, size));
            data[i] ^= 1u << (i % 8);
        }
        assert_true(sum == pith_checksum(data, size));
    }
    /* the same on every machine: stored sums outlive builds */
    assert_true(pith_checksum(data, 200) == 0x464445f515ae8d7cu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_made_and_listed),
        cmocka_unit_test(what_is_no_folder_is_told),
        cmocka_unit_test(a_worker_sees_what_was_sent_before_a_wake),
        cmocka_unit_test(every_change_changes_the_sum),
    };
    const char *build = getenv("PITH_BINARY_DIR");
    snprintf(root, sizeof root, "%s/test_folder.files", build ? build : ".");
    return cmocka_run_group_tests_name("folders", tests, NULL, NULL);
}
