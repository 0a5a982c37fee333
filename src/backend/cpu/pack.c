/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling weights' memory: threads take pieces of about 1 MiB, read each from the source, and
 * either permute 16 rows at a time into a panel or leave the rows as they are. A cold file is read
 * by more threads than pack, so that the disk always has something to do.
 *
 *   source  | row 0 | row 1 | ... | row 15 | row 16 ...          (file blocks)
 *              \______ read into the thread's buffer ______/
 *   memory  | panel 0: 16 rows side by side | panel 1 | ...      (same number of bytes)
 *
 * Invariant: every byte of a tensor is read once and exists once; the only other memory is one
 * buffer a thread, and a memory limit has only as many threads as it leaves room for. A piece
 * never crosses an expert (a slice of ne[2]), whose last panel may be partly empty. Progress is
 * told by the calling thread only. Whether reads pass the page cache by is weight.c's decision.
 * Read next: kernel/panel.h for the permutations.
 */
#include "backend/cpu/pack.h"

#include "base/memory.h"
#include "base/pool.h"
#include "kernel/kernel.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20, MOST_EXTRA_READERS = 4, MOST_THREADS = 512 };

static uint64_t n_slices(const pith_weight *weight) {
    return weight->ne[2] * weight->ne[3];
}

static uint64_t n_panels(const pith_weight *weight) {
    return (weight->ne[1] + PITH_PANEL_ROWS - 1) / PITH_PANEL_ROWS;
}

uint64_t pith_pack_layout(pith_weight *weight, bool packed, uint32_t features) {
    pith_kernels kernels;
    pith_kernels_init(&kernels, features);
    uint64_t row_bytes = 0;
    pith_type_row_bytes(weight->type, weight->ne[0], &row_bytes);
    bool has_panels = kernels.pack[weight->type] && kernels.panel_decode[weight->type];
    weight->row_bytes = (size_t)row_bytes;
    weight->layout = PITH_LAYOUT_ROWS;
    weight->expert_bytes = (size_t)(weight->ne[1] * row_bytes);
    if (packed && has_panels && (weight->roles & PITH_WEIGHT_LINEAR)) {
        weight->layout = PITH_LAYOUT_PANELS;
        weight->panel_bytes = pith_panel_bytes(weight->type, (uint32_t)weight->ne[0]);
        weight->panel_decode = kernels.panel_decode[weight->type];
        weight->expert_bytes = (size_t)(n_panels(weight) * weight->panel_bytes);
    }
    return n_slices(weight) * weight->expert_bytes;
}

/* ---- Pieces ---- */

typedef struct piece {
    const pith_pack_item *item;
    uint64_t slice, first_row;
    uint32_t n_row;
} piece;

typedef struct packing {
    piece *pieces;
    uint32_t n_piece;
    const pith_weights_options *options;
    const pith_pack_way *way;
    pith_kernels kernels;
    pith_pool *pool;
    pith_region buffers; /* [n_threads][buffer_bytes] */
    size_t buffer_bytes; /* a multiple of PITH_SOURCE_UNIT; 0: every piece is read where it stays */
    uint64_t total_bytes;
    _Atomic uint64_t done_bytes;
    _Atomic int stop;   /* a thread failed or the caller cancelled */
    pith_error *errors; /* [n_threads] */
} packing;

/* Rows of a piece: whole panels, about 1 MiB. */
static uint32_t piece_rows(const pith_weight *weight) {
    uint64_t panel = (uint64_t)weight->row_bytes * PITH_PANEL_ROWS, n = PIECE_BYTES / panel;
    return (uint32_t)(n ? n : 1) * PITH_PANEL_ROWS;
}

static bool is_moved(const pith_pack_item *item, const pith_weights_options *options) {
    return !item->in_place || options->check_tensors;
}

/* Rows that are kept as they are need no buffer, unless the reads are direct: those want an
 * alignment that a tensor's place does not have. */
static bool is_buffered(const pith_pack_item *item, const pith_pack_way *way) {
    bool packs = item->weight->layout == PITH_LAYOUT_PANELS;
    return !item->in_place && (packs || way->is_direct);
}

static uint64_t count_pieces(const pith_weight *weight) {
    uint32_t rows = piece_rows(weight);
    return n_slices(weight) * ((weight->ne[1] + rows - 1) / rows);
}

static uint32_t cut_item(const pith_pack_item *item, piece *pieces) {
    const pith_weight *weight = item->weight;
    uint32_t rows = piece_rows(weight), n = 0;
    for (uint64_t slice = 0; slice < n_slices(weight); slice++)
        for (uint64_t row = 0; row < weight->ne[1]; row += rows) {
            uint64_t left = weight->ne[1] - row;
            pieces[n++] = (piece){item, slice, row, left < rows ? (uint32_t)left : rows};
        }
    return n;
}

static pith_status cut_all(packing *p, const pith_pack_item *items, size_t n_item,
                           pith_error *error) {
    uint64_t n = 0;
    for (size_t i = 0; i < n_item; i++)
        if (is_moved(&items[i], p->options)) n += count_pieces(items[i].weight);
    p->pieces = n <= UINT32_MAX ? pith_alloc_array((size_t)n, sizeof *p->pieces) : NULL;
    if (!p->pieces) return pith_fail_memory(error, "loading", n * sizeof *p->pieces);
    for (size_t i = 0; i < n_item; i++) {
        if (!is_moved(&items[i], p->options)) continue;
        const pith_weight *weight = items[i].weight;
        size_t bytes = (size_t)piece_rows(weight) * weight->row_bytes + 3 * PITH_SOURCE_UNIT;
        bytes -= bytes % PITH_SOURCE_UNIT;
        p->n_piece += cut_item(&items[i], p->pieces + p->n_piece);
        p->total_bytes += weight->bytes;
        if (is_buffered(&items[i], p->way) && bytes > p->buffer_bytes) p->buffer_bytes = bytes;
    }
    return PITH_OK;
}

/* ---- What a thread does with a piece ---- */

static pith_status check_rows(const piece *at, const uint8_t *rows, pith_error *error) {
    const pith_weight *weight = at->item->weight;
    for (uint32_t r = 0; r < at->n_row; r++) {
        int64_t bad =
            pith_type_validate(weight->type, rows + r * weight->row_bytes, (size_t)weight->ne[0]);
        if (bad >= 0)
            return pith_fail(error, PITH_ERROR_FORMAT,
                             "tensor %s: block %" PRId64 " of row %" PRIu64
                             " holds inf or NaN; the file is damaged, fetch it again",
                             weight->name, bad, at->slice * weight->ne[1] + at->first_row + r);
    }
    return PITH_OK;
}

static void pack_rows(const packing *p, const piece *at, const uint8_t *rows) {
    const pith_weight *weight = at->item->weight;
    uint8_t *slice = at->item->memory + at->slice * weight->expert_bytes;
    for (uint32_t r = 0; r < at->n_row; r += PITH_PANEL_ROWS) {
        uint64_t panel = (at->first_row + r) / PITH_PANEL_ROWS;
        uint32_t left = at->n_row - r;
        p->kernels.pack[weight->type](slice + panel * weight->panel_bytes,
                                      rows + (size_t)r * weight->row_bytes, weight->row_bytes,
                                      left < PITH_PANEL_ROWS ? left : PITH_PANEL_ROWS,
                                      (uint32_t)weight->ne[0]);
    }
}

/* Reads a piece into the thread's buffer or to where it stays; *rows: where it lies. */
static pith_status read_piece(packing *p, const piece *at, int thread, const uint8_t **rows,
                              pith_error *error) {
    const pith_pack_item *item = at->item;
    size_t row_bytes = item->weight->row_bytes, size = at->n_row * row_bytes;
    uint64_t begin = (at->slice * item->weight->ne[1] + at->first_row) * row_bytes;
    *rows = item->memory + begin;
    if (item->in_place) return PITH_OK;
    if (!is_buffered(item, p->way))
        return pith_source_read(item->source, item->offset + begin, item->memory + begin, size,
                                error);
    uint8_t *buffer = p->buffers.data + (size_t)thread * p->buffer_bytes;
    pith_status status =
        pith_source_read_piece(item->source, item->offset + begin, size, buffer, rows, error);
    if (status || item->weight->layout == PITH_LAYOUT_PANELS) return status;
    memcpy(item->memory + begin, *rows, size);
    return PITH_OK;
}

static pith_status move_piece(packing *p, const piece *at, int thread, pith_error *error) {
    const pith_weight *weight = at->item->weight;
    const uint8_t *rows = NULL;
    pith_status status = read_piece(p, at, thread, &rows, error);
    if (!status && p->options->check_tensors) status = check_rows(at, rows, error);
    if (status) return status;
    if (weight->layout == PITH_LAYOUT_PANELS) pack_rows(p, at, rows);
    atomic_fetch_add(&p->done_bytes, at->n_row * weight->row_bytes);
    return PITH_OK;
}

static void piece_chunk(void *user, uint32_t i, int thread) {
    packing *p = user;
    if (atomic_load(&p->stop)) return;
    if (move_piece(p, &p->pieces[i], thread, &p->errors[thread])) atomic_store(&p->stop, 1);
    if (thread != 0 || !p->options->progress) return;
    double fraction = (double)atomic_load(&p->done_bytes) / (double)p->total_bytes;
    if (p->options->progress(p->options->progress_user, fraction)) {
        if (!p->errors[0].status)
            pith_fail(&p->errors[0], PITH_ERROR_CANCELLED, "loading was cancelled");
        atomic_store(&p->stop, 1);
    }
}

static void pack_region(void *user, int thread, int n_threads) {
    packing *p = user;
    (void)n_threads;
    pith_pool_for(p->pool, 0, p->n_piece, piece_chunk, p, thread);
}

/* Threads of a load: no more than there are pieces, up to as many again that read meanwhile, and
 * no more than the limit leaves buffers for. */
static int count_threads(const packing *p, bool with_readers) {
    const pith_weights_options *options = p->options;
    int n = options->n_threads > 0 ? options->n_threads : pith_thread_count();
    if ((uint32_t)n > p->n_piece) n = p->n_piece ? (int)p->n_piece : 1;
    if (with_readers && n <= MOST_THREADS) n += n < MOST_EXTRA_READERS ? n : MOST_EXTRA_READERS;
    if (!options->memory_limit || !p->buffer_bytes) return n;
    uint64_t room =
        options->memory_limit > p->total_bytes ? options->memory_limit - p->total_bytes : 0;
    uint64_t fitting = room / p->buffer_bytes;
    return fitting >= (uint64_t)n ? n : fitting > 1 ? (int)fitting : 1;
}

static pith_status run_pieces(packing *p, pith_error *error) {
    /* A system that is short of threads need not give the readers. */
    pith_status status = PITH_ERROR_MEMORY;
    if (p->way->is_cold) status = pith_pool_new(count_threads(p, true), &p->pool, NULL);
    if (status) status = pith_pool_new(count_threads(p, false), &p->pool, error);
    if (status) return status;
    int n = pith_pool_size(p->pool);
    size_t bytes = 0;
    p->errors = pith_alloc_zero((size_t)n, sizeof *p->errors);
    if (!p->errors || !pith_size_mul(p->buffer_bytes, (size_t)n, &bytes) ||
        (bytes && !pith_region_open(&p->buffers, bytes, false)))
        return pith_fail_memory(error, "loading", bytes);
    pith_pool_run(p->pool, pack_region, p);
    for (int i = 0; i < n; i++)
        if (p->errors[i].status)
            return pith_fail(error, p->errors[i].status, "%s", p->errors[i].text);
    if (p->options->progress && p->options->progress(p->options->progress_user, 1.0))
        return pith_fail(error, PITH_ERROR_CANCELLED, "loading was cancelled");
    return PITH_OK;
}

pith_status pith_pack_run(const pith_pack_item *items, size_t n_item,
                          const pith_weights_options *options, const pith_pack_way *way,
                          pith_error *error) {
    packing p = {.options = options, .way = way};
    pith_kernels_init(&p.kernels, options->features);
    pith_status status = cut_all(&p, items, n_item, error);
    if (!status) status = run_pieces(&p, error);
    pith_pool_free(p.pool);
    pith_region_close(&p.buffers);
    pith_free(p.errors);
    pith_free(p.pieces);
    return status;
}
