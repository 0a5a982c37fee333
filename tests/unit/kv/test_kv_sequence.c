/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of src/kv/kv_sequence.c and kv_store.c: what a sequence wrote is what it sees,
 * whatever was forked, truncated and dropped meanwhile; limits hold at +-1; a refused reserve
 * changes nothing; no block leaks.
 */
#include "base/rng.h"
#include "kv/kv_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOW = 100, N_CTX = 700, STEP = 130, N_SEQUENCE = 4 };

static const pith_kv_shape shapes[] = {
    {2, 16, 16, 0}, {2, 16, 16, WINDOW}, {1, 8, 24, 0}, {2, 16, 16, 64}};

typedef struct fixture {
    pith_kv_layout layout;
    pith_kv *kv;
} fixture;

static void open_fixture(fixture *f, uint32_t n_ctx, uint32_t n_sequences, uint32_t step) {
    assert_int_equal(pith_kv_layout_init(&f->layout, PITH_KV_STORE_F16, shapes, 4, NULL), PITH_OK);
    assert_int_equal(pith_kv_new(&f->layout, n_ctx, n_sequences, step, &f->kv, NULL), PITH_OK);
}

static void close_fixture(fixture *f) {
    pith_kv_free(f->kv);
    pith_kv_layout_deinit(&f->layout);
}

/* What the test believes a sequence holds: a tag for each position. */
typedef struct belief {
    pith_kv_sequence *sequence;
    uint32_t tags[N_CTX];
    uint32_t n;
    uint32_t oldest; /* no position before max(0, oldest - window + 1) is promised */
} belief;

static uint32_t *slot(const fixture *f, const belief *b, uint32_t group, uint32_t position) {
    pith_kv_table tables[4];
    pith_kv_sequence_tables(b->sequence, tables);
    assert_true(position / 64 < tables[group].n_blocks);
    uint8_t *block = tables[group].blocks[position / 64];
    if (!block) return NULL;
    assert_true(block >= f->kv->region.data);
    assert_true(block + f->layout.block_bytes[group] <= f->kv->region.data + f->kv->region.size);
    return (uint32_t *)(void *)block + position % 64;
}

static void check_belief(const fixture *f, const belief *b, uint64_t seed) {
    assert_int_equal(pith_kv_sequence_length(b->sequence), b->n);
    for (uint32_t g = 0; g < f->layout.n_group; g++) {
        uint32_t first = pith_kv_first_visible(b->n, f->layout.group_window[g]);
        for (uint32_t p = first; p < b->n; p++) {
            uint32_t *at = slot(f, b, g, p);
            if (!at || *at != b->tags[p])
                fail_msg("seed %llu: group %u position %u of %u holds %u, expected %u",
                         (unsigned long long)seed, g, p, b->n, at ? *at : 0, b->tags[p]);
        }
    }
}

/* Reserve, write as a step would, perhaps keep only a part (a rejected draft), commit. */
static void append(fixture *f, belief *b, uint32_t n, uint32_t keep, uint32_t *next_tag) {
    pith_error error;
    pith_status status = pith_kv_sequence_reserve(b->sequence, n, &error);
    if (b->n + n > N_CTX) {
        assert_int_equal(status, PITH_ERROR_LIMIT);
        return;
    }
    assert_int_equal(status, PITH_OK);
    for (uint32_t i = 0; i < n; i++) {
        b->tags[b->n + i] = ++*next_tag;
        for (uint32_t g = 0; g < f->layout.n_group; g++) *slot(f, b, g, b->n + i) = *next_tag;
    }
    if (n) b->oldest = b->n;
    pith_kv_sequence_commit(b->sequence, n);
    b->n += n;
    if (keep < n) {
        uint32_t want = b->n - n + keep;
        assert_int_equal(pith_kv_sequence_truncate(b->sequence, want), want);
        b->n = want;
    }
}

static void truncate_belief(belief *b, uint32_t n_keep, uint64_t seed) {
    uint32_t kept = pith_kv_sequence_truncate(b->sequence, n_keep);
    uint32_t want = n_keep > b->n ? b->n : n_keep;
    /* From the last reserve's first row on everything is kept; before that, all or nothing. */
    if (kept != want && (kept != 0 || want >= b->oldest))
        fail_msg("seed %llu: truncate(%u) of %u kept %u, the last reserve was at %u",
                 (unsigned long long)seed, n_keep, b->n, kept, b->oldest);
    b->n = kept;
    if (b->oldest > kept) b->oldest = kept;
}

static void fork_belief(belief *dst, const belief *src, uint32_t n, uint64_t seed) {
    pith_error error;
    pith_status status = pith_kv_sequence_fork(dst->sequence, src->sequence, n, &error);
    if (status) {
        assert_int_equal(status, PITH_ERROR_LIMIT);
        if (n >= src->oldest)
            fail_msg("seed %llu: fork at %u refused, last reserve at %u: %s",
                     (unsigned long long)seed, n, src->oldest, error.text);
        return;
    }
    memcpy(dst->tags, src->tags, n * sizeof *dst->tags);
    dst->n = n;
    dst->oldest = n;
}

static void random_step(fixture *f, belief *beliefs, pith_rng *rng, uint64_t seed, uint32_t *tag) {
    belief *b = &beliefs[pith_rng_next(rng) % N_SEQUENCE];
    uint32_t n = (uint32_t)(pith_rng_next(rng) % (STEP + 1));
    switch (pith_rng_next(rng) % 8) {
    case 0: truncate_belief(b, b->n ? (uint32_t)(pith_rng_next(rng) % (b->n + 2)) : 0, seed); break;
    case 1: {
        belief *src = &beliefs[pith_rng_next(rng) % N_SEQUENCE];
        if (src == b) break;
        truncate_belief(b, 0, seed);
        fork_belief(b, src, src->n - (uint32_t)(pith_rng_next(rng) % (src->n / 4 + 1)), seed);
        break;
    }
    case 2: append(f, b, n, (uint32_t)(pith_rng_next(rng) % (n + 1)), tag); break;
    case 3: append(f, b, n, n, tag); break;
    default: append(f, b, n % 4, n % 4, tag); break;
    }
}

static void random_operations_keep_what_is_visible(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fixture f;
        open_fixture(&f, N_CTX, N_SEQUENCE, STEP);
        belief beliefs[N_SEQUENCE] = {0};
        pith_rng rng;
        pith_rng_init(&rng, seed);
        uint32_t tag = 0;
        for (int i = 0; i < N_SEQUENCE; i++)
            assert_int_equal(pith_kv_sequence_new(f.kv, &beliefs[i].sequence, NULL), PITH_OK);
        for (int i = 0; i < 300; i++) {
            random_step(&f, beliefs, &rng, seed, &tag);
            for (int j = 0; j < N_SEQUENCE; j++) check_belief(&f, &beliefs[j], seed);
        }
        for (int i = 0; i < N_SEQUENCE; i++) pith_kv_sequence_free(beliefs[i].sequence);
        for (uint32_t g = 0; g < f.layout.n_group; g++)
            assert_int_equal(f.kv->pools[g].n_free, f.kv->pools[g].n_block);
        close_fixture(&f);
    }
}

static void limits_hold_at_plus_minus_one(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 129, 1, 129);
    pith_kv_sequence *sequence, *second;
    pith_error error;
    assert_int_equal(pith_kv_sequence_new(f.kv, &sequence, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_new(f.kv, &second, &error), PITH_ERROR_LIMIT);
    assert_null(second);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 130, &error), PITH_ERROR_LIMIT);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 129, NULL), PITH_OK);
    pith_kv_sequence_commit(sequence, 128);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 2, &error), PITH_ERROR_LIMIT);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 1, NULL), PITH_OK);
    pith_kv_sequence_commit(sequence, 1);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 0, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 1, &error), PITH_ERROR_LIMIT);
    assert_int_equal(pith_kv_sequence_reserve(sequence, UINT32_MAX, &error), PITH_ERROR_LIMIT);
    pith_kv_sequence_free(sequence);
    assert_int_equal(pith_kv_sequence_new(f.kv, &second, NULL), PITH_OK);
    pith_kv_sequence_free(second);
    close_fixture(&f);
}

static void a_step_larger_than_the_limit_is_refused(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 640, 1, 64);
    pith_kv_sequence *sequence;
    pith_error error;
    assert_int_equal(pith_kv_sequence_new(f.kv, &sequence, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 65, &error), PITH_ERROR_LIMIT);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 64, NULL), PITH_OK);
    pith_kv_sequence_free(sequence);
    close_fixture(&f);
}

static void windows_hold_few_blocks_and_tell_what_can_be_kept(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 6400, 1, 64);
    assert_int_equal(f.layout.n_group, 3);
    assert_int_equal(f.kv->pools[0].per_sequence, 100);
    assert_int_equal(f.kv->pools[1].per_sequence, (WINDOW + 64 + 64 + 63) / 64);
    pith_kv_sequence *sequence;
    assert_int_equal(pith_kv_sequence_new(f.kv, &sequence, NULL), PITH_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pith_kv_sequence_reserve(sequence, 64, NULL), PITH_OK);
        pith_kv_sequence_commit(sequence, 64);
    }
    pith_kv_table tables[3];
    pith_kv_sequence_tables(sequence, tables);
    assert_non_null(tables[0].blocks[0]);
    assert_null(tables[1].blocks[0]);
    assert_int_equal(pith_kv_sequence_truncate(sequence, 6400 - 64), 6400 - 64);
    assert_int_equal(pith_kv_sequence_truncate(sequence, 3000), 0);
    assert_int_equal(pith_kv_sequence_length(sequence), 0);
    assert_int_equal(f.kv->pools[0].n_free, 100);
    pith_kv_sequence_free(sequence);
    close_fixture(&f);
}

static void forks_share_whole_blocks_and_copy_the_tail(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 640, 3, 640);
    pith_kv_sequence *a, *b;
    pith_error error;
    assert_int_equal(pith_kv_sequence_new(f.kv, &a, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_new(f.kv, &b, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_reserve(a, 100, NULL), PITH_OK);
    pith_kv_sequence_commit(a, 100);
    assert_int_equal(pith_kv_sequence_fork(b, a, 101, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_kv_sequence_fork(a, a, 1, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_kv_sequence_fork(b, a, 100, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_fork(b, a, 10, &error), PITH_ERROR_ARGUMENT);
    pith_kv_table ta[3], tb[3];
    pith_kv_sequence_tables(a, ta);
    pith_kv_sequence_tables(b, tb);
    assert_ptr_equal(ta[0].blocks[0], tb[0].blocks[0]);
    assert_ptr_equal(ta[0].blocks[1], tb[0].blocks[1]);
    assert_int_equal(f.kv->pools[0].n_free, 28);
    assert_int_equal(pith_kv_sequence_reserve(b, 1, NULL), PITH_OK);
    assert_ptr_equal(ta[0].blocks[0], tb[0].blocks[0]);
    assert_ptr_not_equal(ta[0].blocks[1], tb[0].blocks[1]);
    assert_int_equal(f.kv->pools[0].n_free, 27);
    pith_kv_sequence_free(a);
    assert_int_equal(f.kv->pools[0].n_free, 28);
    pith_kv_sequence_free(b);
    assert_int_equal(f.kv->pools[0].n_free, 30);
    close_fixture(&f);
}

static void a_refused_reserve_changes_nothing(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 640, 1, 640);
    pith_kv_sequence *sequence;
    pith_error error;
    assert_int_equal(pith_kv_sequence_new(f.kv, &sequence, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_reserve(sequence, 300, NULL), PITH_OK);
    pith_kv_sequence_commit(sequence, 300);
    uint32_t taken = f.kv->pools[1].n_free;
    f.kv->pools[1].n_free = 0; /* as if others held them; a drop would free block 0 and 1 */
    assert_int_equal(pith_kv_sequence_reserve(sequence, 340, &error), PITH_ERROR_LIMIT);
    pith_kv_table tables[3];
    pith_kv_sequence_tables(sequence, tables);
    assert_int_equal(tables[0].n_blocks, 5);
    assert_non_null(tables[1].blocks[0]);
    f.kv->pools[1].n_free = taken;
    assert_int_equal(pith_kv_sequence_reserve(sequence, 340, NULL), PITH_OK);
    pith_kv_sequence_free(sequence);
    close_fixture(&f);
}

static void the_memory_that_is_told_is_the_memory_that_is_taken(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 1000, 3, 64);
    uint64_t bytes;
    pith_error error;
    assert_int_equal(pith_kv_bytes(&f.layout, 1000, 3, 64, &bytes, NULL), PITH_OK);
    assert_true(bytes >= f.kv->region.size);
    assert_true(bytes < f.kv->region.size + 16384);
    uint64_t expected = 0;
    for (uint32_t g = 0; g < 3; g++)
        expected += (uint64_t)f.kv->pools[g].n_block * f.layout.block_bytes[g];
    assert_true(f.kv->region.size >= expected);
    assert_int_equal(pith_kv_bytes(&f.layout, 0, 3, 64, &bytes, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_kv_bytes(&f.layout, INT32_MAX, UINT32_MAX, 64, &bytes, &error),
                     PITH_ERROR_LIMIT);
    close_fixture(&f);
}

static void layouts_are_aligned_and_disjoint(void **state) {
    (void)state;
    for (int storage = PITH_KV_STORE_F32; storage <= PITH_KV_STORE_I8; storage++) {
        const pith_kv_shape all[] = {
            {2, 64, 64, 0}, {3, 32, 96, 0}, {1, 128, 128, 512}, {0, 0, 0, 0}, {1, 32, 32, 512}};
        pith_kv_layout layout;
        assert_int_equal(pith_kv_layout_init(&layout, (pith_kv_storage)storage, all, 5, NULL),
                         PITH_OK);
        assert_int_equal(layout.n_group, 2);
        size_t element = storage == PITH_KV_STORE_F32 ? 4 : storage == PITH_KV_STORE_F16 ? 2 : 1;
        size_t total[2] = {0, 0};
        for (int i = 0; i < 5; i++) {
            const pith_kv_layer *l = &layout.layers[i];
            assert_int_equal(l->group, all[i].window ? 1 : 0);
            assert_int_equal((l->k | l->v | l->k_head_bytes | l->v_head_bytes) % 64, 0);
            assert_int_equal(l->k, total[l->group]);
            assert_int_equal(l->v, l->k + all[i].n_head_kv * 64 * element * all[i].head_dim);
            total[l->group] = l->v + all[i].n_head_kv * 64 * element * all[i].head_dim_v;
            if (storage == PITH_KV_STORE_I8) total[l->group] += all[i].n_head_kv * 2 * 64 * 4;
        }
        assert_int_equal(layout.block_bytes[0], total[0]);
        assert_int_equal(layout.block_bytes[1], total[1]);
        pith_kv_layout_deinit(&layout);
    }
}

static void shapes_that_cannot_be_stored_are_refused(void **state) {
    (void)state;
    pith_kv_layout layout;
    pith_error error;
    const pith_kv_shape odd = {2, 80, 80, 0}, empty = {2, 0, 64, 0};
    const pith_kv_shape huge = {UINT32_MAX, UINT32_MAX, UINT32_MAX, 0};
    assert_int_equal(pith_kv_layout_init(&layout, PITH_KV_STORE_I8, &odd, 1, &error),
                     PITH_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "80"));
    assert_int_equal(pith_kv_layout_init(&layout, PITH_KV_STORE_F16, &odd, 1, &error), PITH_OK);
    pith_kv_layout_deinit(&layout);
    assert_int_equal(pith_kv_layout_init(&layout, PITH_KV_STORE_F16, &empty, 1, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_kv_layout_init(&layout, PITH_KV_STORE_F32, &huge, 1, &error),
                     PITH_ERROR_LIMIT);
    assert_null(layout.layers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_keep_what_is_visible),
        cmocka_unit_test(limits_hold_at_plus_minus_one),
        cmocka_unit_test(a_step_larger_than_the_limit_is_refused),
        cmocka_unit_test(windows_hold_few_blocks_and_tell_what_can_be_kept),
        cmocka_unit_test(forks_share_whole_blocks_and_copy_the_tail),
        cmocka_unit_test(a_refused_reserve_changes_nothing),
        cmocka_unit_test(the_memory_that_is_told_is_the_memory_that_is_taken),
        cmocka_unit_test(layouts_are_aligned_and_disjoint),
        cmocka_unit_test(shapes_that_cannot_be_stored_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
