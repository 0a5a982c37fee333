/* SPDX-License-Identifier: Apache-2.0
 * Split models: a good set, the largest one, and sets that are wrong in one way each. */
#define _XOPEN_SOURCE 700 /* mkdir, getpid */

#include "gguf_bytes.h"
#include "support/failing_memory.h"

#include <unistd.h>

static char folder[400];

static int make_folder(void **state) {
    (void)state;
    return make_scratch_folder("gguf-split", folder, sizeof folder) ? 0 : 1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static const char *shard_path(char buffer[512], uint32_t number, uint32_t count) {
    snprintf(buffer, 512, "%s/m-%05u-of-%05u.gguf", folder, number + 1, count);
    return buffer;
}

typedef struct shard {
    uint32_t number, count, total; /* as the keys say; count UINT32_MAX: no such key */
    const char *name;              /* of its one tensor */
    uint32_t alignment;            /* 0: no key */
} shard;

/* Each shard holds one tensor of one f32, the value 100 + number. */
static void write_shard(const char *path, const shard *s) {
    pith_buffer f = {0};
    bool has_count = s->count != UINT32_MAX, has_number = s->number != UINT32_MAX,
         has_total = s->total != UINT32_MAX;
    put_preamble(&f, 3, 1, 1u + has_count + has_number + has_total + (s->alignment != 0));
    put_u32(&f, "some.key", 40 + s->number);
    if (has_number) put_u16(&f, "split.no", (uint16_t)s->number);
    if (has_count) put_u16(&f, "split.count", (uint16_t)s->count);
    if (has_total) {
        put_key(&f, "split.tensors.count", PITH_GGUF_I32);
        put(&f, s->total, 4);
    }
    if (s->alignment) put_u32(&f, "general.alignment", s->alignment);
    put_tensor(&f, s->name, (dims){1, {1}}, PITH_TYPE_F32, 0);
    put_padding(&f, s->alignment ? s->alignment : 32);
    float value = 100.0f + (float)s->number;
    pith_buffer_append(&f, &value, 4);
    write_file(path, f.data, f.size);
    pith_buffer_deinit(&f);
}

static void write_set(const shard *shards, uint32_t count) {
    char path[512];
    for (uint32_t i = 0; i < count; i++) write_shard(shard_path(path, i, count), &shards[i]);
}

static void remove_set(uint32_t count) {
    char path[512];
    for (uint32_t i = 0; i < count; i++) remove(shard_path(path, i, count));
}

static const shard good[3] = {{0, 3, 3, "a", 0}, {1, 3, 3, "b", 64}, {2, 3, 3, "c", 0}};

static void a_set_reads_as_one_file(void **state) {
    (void)state;
    char path[512];
    write_set(good, 3);
    pith_gguf *gguf;
    pith_error error;
    assert_int_equal(pith_gguf_open_path(shard_path(path, 0, 3), &gguf, &error), PITH_OK);
    assert_int_equal(pith_gguf_n_shards(gguf), 3);
    assert_int_equal(pith_gguf_n_tensors(gguf), 3);
    assert_int_equal(pith_gguf_n_values(gguf), 4); /* of the first alone */
    assert_true(pith_gguf_item_number(pith_gguf_value_find(gguf, "some.key"), 0) == 40.0);
    for (uint32_t i = 0; i < 3; i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_find(gguf, good[i].name);
        assert_ptr_equal(tensor, pith_gguf_tensor_at(gguf, i));
        assert_int_equal(tensor->shard, i);
        assert_string_equal(tensor->name.data, good[i].name);
        float value = 0;
        assert_int_equal(pith_gguf_tensor_read(gguf, tensor, 0, &value, 4, &error), PITH_OK);
        assert_true(value == 100.0f + (float)i);
        assert_non_null(strstr(pith_source_name(pith_gguf_source(gguf, i)),
                               i == 2 ? "-00003-of-" : "-of-00003"));
    }
    pith_gguf_close(gguf);
    remove_set(3);
}

static void one_shard_opens_alone_from_a_source(void **state) {
    (void)state;
    char path[512];
    write_set(good, 3);
    pith_source *source;
    pith_gguf *gguf;
    pith_error error;
    assert_int_equal(pith_source_open_path(shard_path(path, 1, 3), &source, &error), PITH_OK);
    assert_int_equal(pith_gguf_open_source(source, &gguf, &error), PITH_OK);
    assert_int_equal(pith_gguf_n_shards(gguf), 1);
    assert_non_null(pith_gguf_tensor_find(gguf, "b"));
    pith_gguf_close(gguf);
    remove_set(3);
}

/* Opens the set at shard `number` and expects a refusal. */
static void expect_broken_at(uint32_t number, uint32_t count, pith_status status,
                             const char *text) {
    char path[512];
    pith_gguf *gguf;
    pith_error error = {PITH_OK, ""};
    assert_int_equal(pith_gguf_open_path(shard_path(path, number, count), &gguf, &error), status);
    assert_null(gguf);
    if (!strstr(error.text, text)) {
        print_error("expected \"%s\"\n     got \"%s\"\n", text, error.text);
        fail();
    }
}

static void expect_broken_set(const shard shards[3], pith_status status, const char *text) {
    write_set(shards, 3);
    expect_broken_at(0, 3, status, text);
    remove_set(3);
}

static void broken_sets_are_refused(void **state) {
    (void)state;
    char path[512];
    const shard wrong_number[3] = {good[0], {2, 3, 3, "b", 0}, good[2]};
    expect_broken_set(wrong_number, PITH_ERROR_FORMAT,
                      "m-00002-of-00003.gguf says it is shard 3, its name and place say 2");
    const shard wrong_count[3] = {good[0], good[1], {2, 4, 3, "c", 0}};
    expect_broken_set(wrong_count, PITH_ERROR_FORMAT,
                      "m-00003-of-00003.gguf says it is one of 4 shards, the first shard says 3");
    const shard no_count[3] = {good[0], {1, UINT32_MAX, 3, "b", 0}, good[2]};
    expect_broken_set(no_count, PITH_ERROR_FORMAT,
                      "m-00002-of-00003.gguf is a shard without the key split.count");
    const shard no_number[3] = {good[0], {UINT32_MAX, 3, 3, "b", 0}, good[2]};
    expect_broken_set(no_number, PITH_ERROR_FORMAT,
                      "m-00002-of-00003.gguf is a shard without the key split.no");
    const shard no_first_number[3] = {{UINT32_MAX, 3, 3, "a", 0}, good[1], good[2]};
    expect_broken_set(no_first_number, PITH_ERROR_FORMAT,
                      "m-00001-of-00003.gguf is a shard without the key split.no");
    const shard duplicate[3] = {good[0], good[1], {2, 3, 3, "a", 0}};
    expect_broken_set(duplicate, PITH_ERROR_FORMAT,
                      "tensor name \"a\" is there twice, in shards 1 and 3");
    const shard total_high[3] = {{0, 3, 4, "a", 0}, good[1], good[2]};
    expect_broken_set(total_high, PITH_ERROR_FORMAT, "promises 4 tensors, the 3 shards have 3");
    const shard total_low[3] = {{0, 3, 2, "a", 0}, good[1], good[2]};
    expect_broken_set(total_low, PITH_ERROR_FORMAT, "promises 2 tensors, the 3 shards have 3");
    const shard no_total[3] = {{0, 3, UINT32_MAX, "a", 0}, good[1], good[2]};
    expect_broken_set(no_total, PITH_ERROR_FORMAT,
                      "is the first of 3 shards without the key split.tensors.count");

    write_set(good, 3);
    expect_broken_at(1, 3, PITH_ERROR_ARGUMENT,
                     "m-00002-of-00003.gguf is shard 2 of 3: name the first one");
    remove(shard_path(path, 2, 3));
    expect_broken_at(0, 3, PITH_ERROR_NOT_FOUND, "m-00003-of-00003.gguf");
    write_file(shard_path(path, 2, 3), "GGUF", 4);
    expect_broken_at(0, 3, PITH_ERROR_FORMAT,
                     "m-00003-of-00003.gguf: the version at byte 4 needs 4 bytes, 0 are left");
    remove_set(3);
}

static void a_first_shard_under_another_name_says_what_it_needs(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/renamed.gguf", folder);
    write_shard(path, &good[0]);
    pith_gguf *gguf;
    pith_error error;
    assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "its name must end in -00001-of-00003.gguf"));
    remove(path);
}

static void counts_of_none_and_one_are_no_split(void **state) {
    (void)state;
    for (uint32_t count = 0; count < 2; count++) {
        char path[512];
        snprintf(path, sizeof path, "%s/merged.gguf", folder);
        const shard merged = {0, count, 1, "a", 0};
        write_shard(path, &merged);
        pith_gguf *gguf;
        pith_error error;
        assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_OK);
        assert_int_equal(pith_gguf_n_shards(gguf), 1);
        pith_gguf_close(gguf);
        remove(path);
    }
}

static void the_number_of_shards_is_limited(void **state) {
    (void)state;
    enum { MOST = PITH_GGUF_MAX_SHARDS };
    char path[512], name[16];
    for (uint32_t i = 0; i < MOST; i++) {
        snprintf(name, sizeof name, "t%u", i);
        write_shard(shard_path(path, i, MOST), &(shard){i, MOST, MOST, name, 0});
    }
    pith_gguf *gguf;
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_gguf_open_path(shard_path(path, 0, MOST), &gguf, &error);
    remove_set(MOST);
    if (status == PITH_ERROR_IO && strstr(error.text, "too many files"))
        skip(); /* ulimit -n below 1000 */
    assert_int_equal(status, PITH_OK);
    assert_int_equal(pith_gguf_n_shards(gguf), MOST);
    assert_int_equal(pith_gguf_tensor_find(gguf, "t999")->shard, 999);
    pith_gguf_close(gguf);
    write_shard(shard_path(path, 0, MOST + 1), &(shard){0, MOST + 1, MOST + 1, "a", 0});
    expect_broken_at(0, MOST + 1, PITH_ERROR_FORMAT,
                     "key \"split.count\" holds 1001 (item 0), allowed are 0 to 1000");
    remove_set(MOST + 1);
}

static void each_allocation_refused(void **state) {
    (void)state;
    char path[512];
    write_set(good, 3);
    pith_status status = PITH_ERROR_MEMORY;
    uint64_t n = 0;
    while (status != PITH_OK) {
        pith_gguf *gguf;
        pith_error error = {PITH_OK, ""};
        memory_watch_reset(++n);
        status = pith_gguf_open_path(shard_path(path, 0, 3), &gguf, &error);
        memory_watch_reset(0);
        assert_true(status == PITH_OK || status == PITH_ERROR_MEMORY);
        pith_gguf_close(gguf);
    }
    assert_true(n > 25);
    remove_set(3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_reads_as_one_file),
        cmocka_unit_test(one_shard_opens_alone_from_a_source),
        cmocka_unit_test(broken_sets_are_refused),
        cmocka_unit_test(a_first_shard_under_another_name_says_what_it_needs),
        cmocka_unit_test(counts_of_none_and_one_are_no_split),
        cmocka_unit_test(the_number_of_shards_is_limited),
        cmocka_unit_test(each_allocation_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
