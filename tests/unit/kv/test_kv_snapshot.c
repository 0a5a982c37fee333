/* SPDX-License-Identifier: Apache-2.0
 * Promise of kv_snapshot.c: what is read back is what was written, bit for bit, for every storage,
 * window and length; in a snapshot each vector lies whole, whatever the panels of the kernels are;
 * a source that fails leaves an empty sequence and no lost block. */
#include "base/float16.h"
#include "base/rng.h"
#include "kernel/kernel.h"
#include "kernel/ref/ref.h"
#include "kv/kv_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N_CTX = 500, STEP = 90, WINDOW = 100, N_LAYER = 4, MOST_BYTES = 1 << 17, MOST_BLOCKS = 8 };

static const pith_kv_shape shapes[N_LAYER] = {
    {2, 32, 64, 0}, {1, 64, 32, WINDOW}, {0, 0, 0, 0}, {3, 32, 32, 0}};
static const pith_kv_storage storages[] = {PITH_KV_STORE_F32, PITH_KV_STORE_F16, PITH_KV_STORE_I8};

/* A store with one sequence of n tokens whose blocks hold random bytes. */
typedef struct fixture {
    pith_kv_layout layout;
    pith_kv *kv;
    pith_kv_sequence *sequence;
} fixture;

static void open_fixture(fixture *f, pith_kv_storage storage) {
    assert_int_equal(pith_kv_layout_init(&f->layout, storage, shapes, N_LAYER, NULL), PITH_OK);
    assert_int_equal(pith_kv_new(&f->layout, N_CTX, 2, STEP, &f->kv, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_new(f->kv, &f->sequence, NULL), PITH_OK);
}

static void close_fixture(fixture *f) {
    pith_kv_sequence_free(f->sequence);
    for (uint32_t g = 0; g < f->layout.n_group; g++)
        assert_int_equal(f->kv->pools[g].n_free, f->kv->pools[g].n_block);
    pith_kv_free(f->kv);
    pith_kv_layout_deinit(&f->layout);
}

static void fill(fixture *f, uint32_t n, uint64_t seed) {
    pith_rng rng;
    pith_rng_init(&rng, seed);
    while (pith_kv_sequence_length(f->sequence) < n) {
        uint32_t left = n - pith_kv_sequence_length(f->sequence);
        uint32_t rows = left < STEP ? left : STEP;
        assert_int_equal(pith_kv_sequence_reserve(f->sequence, rows, NULL), PITH_OK);
        pith_kv_sequence_commit(f->sequence, rows);
    }
    for (uint32_t g = 0; g < f->layout.n_group; g++) {
        const pith_kv_block_table *table = &f->sequence->tables[g];
        for (uint32_t i = table->first; i < table->n; i++)
            for (size_t b = 0; b < f->layout.block_bytes[g]; b++)
                table->blocks[i][b] = (uint8_t)pith_rng_next(&rng);
    }
}

/* Snapshots of a sequence, by group and block. */
typedef struct shelf {
    uint8_t data[3][MOST_BLOCKS][MOST_BYTES];
    bool has[3][MOST_BLOCKS];
    uint32_t n; /* tokens */
} shelf;
static shelf shelf_a, shelf_b;

static uint32_t tokens_of(uint32_t n, uint32_t block) {
    return n - block * 64 < 64 ? n - block * 64 : 64;
}

static void put_away(const fixture *f, shelf *s) {
    memset(s, 0, sizeof *s);
    s->n = pith_kv_sequence_length(f->sequence);
    for (uint32_t g = 0; g < f->layout.n_group; g++) {
        for (uint32_t b = 0; b < pith_kv_blocks_below(s->n); b++) {
            size_t bytes = pith_kv_snapshot_bytes(&f->layout, g, tokens_of(s->n, b));
            assert_true(bytes < MOST_BYTES);
            memset(s->data[g][b] + bytes, 0xA5, 16);
            s->has[g][b] =
                pith_kv_snapshot_write(f->sequence, g, b, tokens_of(s->n, b), s->data[g][b]);
            for (int i = 0; i < 16; i++) assert_int_equal(s->data[g][b][bytes + (size_t)i], 0xA5);
        }
    }
}

static const uint8_t *take_down(void *user, uint32_t group, uint32_t block, uint32_t least,
                                uint32_t *n) {
    const shelf *s = user;
    if (!s->has[group][block]) return NULL;
    *n = tokens_of(s->n, block);
    return *n >= least ? s->data[group][block] : NULL;
}

/* The blocks that rows from n on see are the same in both. */
static void assert_same(const fixture *f, uint32_t n) {
    for (uint32_t g = 0; g < f->layout.n_group; g++) {
        for (uint32_t b = pith_kv_first_block(&f->layout, g, n); b < pith_kv_blocks_below(n); b++) {
            size_t bytes = pith_kv_snapshot_bytes(&f->layout, g, tokens_of(n, b));
            assert_true(shelf_b.has[g][b]);
            if (tokens_of(shelf_a.n, b) == tokens_of(n, b))
                assert_memory_equal(shelf_a.data[g][b], shelf_b.data[g][b], bytes);
        }
    }
}

static void what_is_read_is_what_was_written(void **state) {
    static const uint32_t lengths[] = {1, 15, 63, 64, 65, 128, 200, 256, 257, N_CTX};
    (void)state;
    for (size_t s = 0; s < 3; s++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            fixture from, to;
            const pith_kv_snapshot_source source = {take_down, &shelf_a};
            open_fixture(&from, storages[s]);
            open_fixture(&to, storages[s]);
            fill(&from, lengths[i], 7 * i + s);
            put_away(&from, &shelf_a);
            assert_true(pith_kv_snapshot_read(to.sequence, lengths[i], &source));
            assert_int_equal(pith_kv_sequence_length(to.sequence), lengths[i]);
            put_away(&to, &shelf_b);
            assert_same(&to, lengths[i]);
            if (lengths[i] < N_CTX) /* it can go on, and keeps what is visible */
                assert_int_equal(pith_kv_sequence_reserve(to.sequence, 1, NULL), PITH_OK);
            close_fixture(&from);
            close_fixture(&to);
        }
    }
}

/* A beginning that is there stays, the rest comes from the source; a window's blocks before go. */
static void sequences_are_lengthened(void **state) {
    (void)state;
    fixture from, to;
    const pith_kv_snapshot_source source = {take_down, &shelf_a};
    open_fixture(&from, PITH_KV_STORE_F16);
    open_fixture(&to, PITH_KV_STORE_F16);
    fill(&from, 300, 1);
    put_away(&from, &shelf_a);
    for (uint32_t held = 64; held <= 256; held += 64) {
        for (uint32_t n = held; n <= 300; n += 53) {
            const shelf *const all = &shelf_a;
            pith_kv_sequence_truncate(to.sequence, 0);
            if (!pith_kv_snapshot_read(to.sequence, held, &source)) {
                assert_true(held < all->n - WINDOW); /* blocks have left the window */
                continue;
            }
            assert_int_equal(pith_kv_snapshot_read(to.sequence, n, &source), true);
            put_away(&to, &shelf_b);
            assert_same(&to, n);
        }
    }
    close_fixture(&from);
    close_fixture(&to);
}

static void a_failing_source_leaves_nothing(void **state) {
    (void)state;
    fixture from, to;
    const pith_kv_snapshot_source source = {take_down, &shelf_a};
    open_fixture(&from, PITH_KV_STORE_I8);
    open_fixture(&to, PITH_KV_STORE_I8);
    fill(&from, 300, 3);
    put_away(&from, &shelf_a);
    for (uint32_t g = 0; g < from.layout.n_group; g++) {
        for (uint32_t b = 0; b < MOST_BLOCKS; b++) {
            if (!shelf_a.has[g][b] || b < pith_kv_first_block(&from.layout, g, 300)) continue;
            shelf_a.has[g][b] = false;
            assert_false(pith_kv_snapshot_read(to.sequence, 300, &source));
            assert_int_equal(pith_kv_sequence_length(to.sequence), 0);
            shelf_a.has[g][b] = true;
            assert_true(pith_kv_snapshot_read(to.sequence, 300, &source));
            pith_kv_sequence_truncate(to.sequence, 0);
        }
    }
    close_fixture(&from);
    close_fixture(&to);
}

static void lengths_are_refused_at_plus_minus_one(void **state) {
    (void)state;
    fixture f, to;
    const pith_kv_snapshot_source source = {take_down, &shelf_a};
    open_fixture(&f, PITH_KV_STORE_F32);
    open_fixture(&to, PITH_KV_STORE_F32);
    fill(&f, N_CTX, 4);
    put_away(&f, &shelf_a);
    assert_false(pith_kv_snapshot_read(to.sequence, N_CTX + 1, &source));
    assert_true(pith_kv_snapshot_read(to.sequence, N_CTX, &source));
    pith_kv_sequence_truncate(to.sequence, N_CTX - 1); /* no multiple of 64 */
    assert_false(pith_kv_snapshot_read(to.sequence, N_CTX, &source));
    assert_int_equal(pith_kv_sequence_length(to.sequence), 0);
    close_fixture(&f);
    close_fixture(&to);
}

/* Tokens that a kernel puts into the pages lie in the snapshot one vector after the other. */
static void vectors_lie_whole(void **state) {
    enum { N = 37, D = 32 };
    (void)state;
    for (size_t s = 0; s < 3; s++) {
        fixture f;
        float rows[N][D];
        open_fixture(&f, storages[s]);
        fill(&f, N, 5);
        const pith_kv_layer *layer = &f.layout.layers[3];
        uint8_t *block = f.sequence->tables[layer->group].blocks[0];
        for (uint32_t t = 0; t < N; t++) {
            for (uint32_t d = 0; d < D; d++)
                rows[t][d] = (float)((int)(t * 31 + d * 7) % 63 - 31) / 8;
            rows[t][t % D] = 127.0f / 8; /* an int8 scale of 1/8 */
            pith_kv_put put = {.head_dim = D,
                               .head_dim_v = D,
                               .t = t,
                               .k_row = rows[t],
                               .v_row = rows[t],
                               .k = block + layer->k + layer->k_head_bytes,
                               .v = block + layer->v + layer->v_head_bytes,
                               .k_scale = (float *)(void *)(block + layer->k_scale) + 64,
                               .v_scale = (float *)(void *)(block + layer->v_scale) + 64};
            if (s == 0) pith_kv_put_f32_ref(&put);
            if (s == 1) pith_kv_put_f16_ref(&put);
            if (s == 2) pith_kv_put_i8_ref(&put);
        }
        put_away(&f, &shelf_a);
        static const size_t element[] = {4, 2, 1};
        const uint8_t *snapshot = shelf_a.data[layer->group][0];
        /* layer 0 lies in front: 2 heads of 32 and 64; then K of head 0, K of head 1 */
        size_t scales = s == 2 ? 8 : 0;
        const uint8_t *k =
            snapshot + (size_t)N * 2 * (96 * element[s] + scales) + (size_t)N * D * element[s];
        for (uint32_t i = 0; i < N * D; i++) {
            float value = 0;
            uint16_t half;
            if (s == 0) memcpy(&value, k + 4 * i, 4);
            if (s == 1) memcpy(&half, k + 2 * i, 2), value = pith_f32_of_f16(half);
            if (s == 2) value = (float)(int8_t)k[i] / 8;
            if (value != rows[i / D][i % D])
                fail_msg("storage %zu token %u element %u: %g, expected %g", s, i / D, i % D,
                         (double)value, (double)rows[i / D][i % D]);
        }
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(sequences_are_lengthened),
        cmocka_unit_test(a_failing_source_leaves_nothing),
        cmocka_unit_test(lengths_are_refused_at_plus_minus_one),
        cmocka_unit_test(vectors_lie_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
