/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of weights with rows of activations, cut into chunks that threads take.
 *
 *            panels of W0 | W1 | W2            a chunk: a block of rows x panels of one weight;
 *   rows    +------+------+--+--+--+--+        a block's activations stay in the second cache,
 *   0..TB   |  c0  |  c1  |c2|c3|c4|c5|        so weights are read once per block;
 *   TB..n   |  c6  |  c7  | ...                ranges are some 30 microseconds of work
 *           +------+------+--+--+--+--+
 *
 * With an activation, a chunk makes gate and up of 64 columns at a time in the thread's tile,
 * joins them, and quantizes the result where the next product wants int8. What adapters add, bias,
 * scale and residual follow while the chunk is in the cache.
 *
 * Invariant: k is never split and every output element is one kernel's sum, so chunks change no
 * bit. Weights that lie in rows (mmap mode) are packed 16 rows at a time into the thread's
 * panel; types without a kernel, and all quantized types at full precision, are decoded into an
 * f32 panel. Read next: kernel.h (pith_mul), experts.c.
 */
#include "backend/cpu/runner.h"

#include <string.h>

enum {
    CHUNK_US = 30,
    MACS_PER_US = 100000, /* guesses that only set the size of chunks */
    BYTES_PER_US = 8000,
    CHUNKS_PER_THREAD = 4,
    UNIT_PANELS = CPU_UNIT / PITH_PANEL_ROWS,
    MAX_CHUNK_PANELS = 1 << 16
};

/* ---- One range of panels ---- */

/* k elements from `from` on of one row of the matrix, as f32. */
static void decode_part(const pith_weight *weight, const uint8_t *slice, uint64_t row,
                        uint32_t from, uint32_t k, float *out) {
    const pith_type_info *type = pith_type_get((uint32_t)weight->type);
    size_t skip = (size_t)from / type->block_elems * type->block_bytes;
    if (row >= weight->ne[1]) {
        memset(out, 0, k * sizeof *out);
    } else if (weight->layout == PITH_LAYOUT_PANELS) {
        const uint8_t *panel = slice + row / PITH_PANEL_ROWS * weight->panel_bytes;
        weight->panel_decode(panel + skip * PITH_PANEL_ROWS, (uint32_t)(row % PITH_PANEL_ROWS), out,
                             k);
    } else {
        type->decode(slice + row * weight->row_bytes + skip, out, k);
    }
}

/* 16 rows of any type as an f32 panel [k][16], turned in pieces that stay in the first cache. */
static void decode_panel(const pith_weight *weight, uint32_t expert, uint32_t panel,
                         const cpu_scratch *scratch) {
    float *out = (float *)(void *)scratch->panel;
    const uint8_t *slice = weight->data + expert * weight->expert_bytes;
    uint32_t k = (uint32_t)weight->ne[0];
    for (uint32_t from = 0; from < k; from += CPU_DECODE_PIECE) {
        uint32_t n = k - from < CPU_DECODE_PIECE ? k - from : CPU_DECODE_PIECE;
        for (uint32_t r = 0; r < PITH_PANEL_ROWS; r++)
            decode_part(weight, slice, (uint64_t)panel * PITH_PANEL_ROWS + r, from, n,
                        scratch->row + (size_t)r * CPU_DECODE_PIECE);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t r = 0; r < PITH_PANEL_ROWS; r++)
                *out++ = scratch->row[r * CPU_DECODE_PIECE + i];
    }
}

static void pack_panel(const cpu_program *p, const pith_weight *weight, uint32_t expert,
                       uint32_t panel, const cpu_scratch *scratch) {
    uint64_t row = (uint64_t)panel * PITH_PANEL_ROWS, left = weight->ne[1] - row;
    const uint8_t *rows = weight->data + expert * weight->expert_bytes + row * weight->row_bytes;
    p->kernels.pack[weight->type](scratch->panel, rows, weight->row_bytes,
                                  left < PITH_PANEL_ROWS ? (uint32_t)left : PITH_PANEL_ROWS,
                                  (uint32_t)weight->ne[0]);
}

/* Rows [first, ...) of q8. */
static pith_q8 q8_from(const pith_q8 *q8, uint32_t first) {
    pith_q8 from = *q8;
    from.q += first * q8->q_stride;
    from.d += first * q8->d_stride;
    from.sum += first * q8->d_stride;
    from.sum16 += 2 * first * q8->d_stride;
    return from;
}

/* The tile's rows are in one contract. */
static void mul_tile(const cpu_context *context, const cpu_tile *tile, bool fast) {
    const cpu_program *p = &context->runner->program;
    const cpu_scratch *scratch = &context->runner->scratch[context->thread];
    const pith_weight *weight = tile->weight;
    bool decodes = pith_cpu_decodes(p, weight);
    const pith_mul_fn *muls =
        fast && pith_cpu_takes_fast(p, weight) ? p->kernels.mul_fast : p->kernels.mul;
    pith_mul_fn mul = muls[decodes ? PITH_TYPE_F32 : weight->type];
    pith_q8 q8;
    pith_mul args = {.k = (uint32_t)weight->ne[0],
                     .n = tile->n_row,
                     .y = tile->y,
                     .y_stride = tile->y_stride,
                     .prefetch = context->runner->prefetch};
    if (pith_cpu_takes_q8(p, weight)) {
        q8 = q8_from(&tile->x->q8, tile->row - tile->x->first_row);
        args.q8 = &q8;
    } else {
        args.x = cpu_row(tile->x, tile->row);
        args.x_stride = tile->x->stride;
    }
    if (!decodes && weight->layout == PITH_LAYOUT_PANELS) {
        args.w =
            weight->data + tile->expert * weight->expert_bytes + tile->panel * weight->panel_bytes;
        args.panel_bytes = weight->panel_bytes;
        args.n_panel = tile->n_panel;
        mul(&args);
        return;
    }
    args.w = scratch->panel;
    args.n_panel = 1;
    for (uint32_t i = 0; i < tile->n_panel; i++, args.y += PITH_PANEL_ROWS) {
        if (decodes)
            decode_panel(weight, tile->expert, tile->panel + i, scratch);
        else
            pack_panel(p, weight, tile->expert, tile->panel + i, scratch);
        mul(&args);
    }
}

void pith_cpu_tile(const cpu_context *context, const cpu_tile *tile) {
    cpu_tile part = *tile;
    for (uint32_t left = tile->n_row; left > 0; left -= part.n_row) {
        bool fast;
        part.n_row = cpu_same_contract(context->runner, tile->x, part.row, left, &fast);
        mul_tile(context, &part, fast);
        part.row += part.n_row;
        part.y += part.n_row * part.y_stride;
    }
}

/* ---- What follows a product ---- */

static void activate(const pith_kernels *kernels, pith_activation act, float *y, const float *up,
                     uint32_t n) {
    switch (act) {
    case PITH_ACT_NONE: break;
    case PITH_ACT_SILU: up ? kernels->silu_mul(y, y, up, n) : kernels->silu(y, y, n); break;
    case PITH_ACT_GELU: up ? kernels->gelu_mul(y, y, up, n) : kernels->gelu(y, y, n); break;
    case PITH_ACT_GELU_ERF:
        up ? kernels->gelu_erf_mul(y, y, up, n) : kernels->gelu_erf(y, y, n);
        break;
    case PITH_ACT_RELU2: up ? kernels->relu2_mul(y, y, up, n) : kernels->relu2(y, y, n); break;
    }
}

/* Bias, scale and residual of n columns from `column` on, for rows [row, row + n_row). */
static void finish(const cpu_context *c, const cpu_tile *tile, const pith_weight *bias,
                   uint32_t column, uint32_t n) {
    const cpu_product *product = &c->phase->product;
    const pith_kernels *kernels = &c->runner->program.kernels;
    for (uint32_t i = 0; i < tile->n_row; i++) {
        float *y = tile->y + i * tile->y_stride;
        if (bias) kernels->add(y, y, bias->values + column, n);
        if (product->act != PITH_ACT_NONE) continue; /* scale and residual come after it */
        if (product->scale != 0.0f) kernels->scale(y, y, product->scale, n);
        if (product->residual == PITH_NO_VALUE) continue;
        const float *residual = cpu_row(&c->values[product->residual], tile->row + i) + column;
        kernels->add(y, residual, y, n);
    }
    const cpu_value *value = &c->values[product->y[0]];
    if (c->runner->adapts && product->act == PITH_ACT_NONE && value->ends_layer >= 0)
        pith_cpu_adapt_end(c, value, tile, column, n);
}

/* ---- Chunks ---- */

typedef struct product_run {
    cpu_context *context;
    uint32_t n_block, block_rows;
    uint32_t n_list;   /* weights that are chunked apart: n, or 1 with an activation */
    uint32_t range[3]; /* panels of a chunk */
    uint32_t n_range[3];
    uint32_t chunks_per_block;
} product_run;

static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return (a + b - 1) / b;
}

static uint32_t panels_of(const pith_weight *weight) {
    return (uint32_t)((weight->ne[1] + PITH_PANEL_ROWS - 1) / PITH_PANEL_ROWS);
}

/* Panels of a weight that make up CHUNK_US of work with this many rows. */
static uint32_t panels_per_chunk(const pith_weight *weight, uint32_t n_row) {
    double macs = (double)weight->ne[0] * PITH_PANEL_ROWS * n_row;
    double bytes = (double)weight->row_bytes * PITH_PANEL_ROWS;
    double us = macs / MACS_PER_US, read = bytes / BYTES_PER_US;
    double n = CHUNK_US / (us > read ? us : read);
    return n < 1 ? 1 : n > MAX_CHUNK_PANELS ? MAX_CHUNK_PANELS : (uint32_t)n;
}

/* Rows whose activations fit in half of the second cache; blocks of equal size. */
static uint32_t rows_per_block(const cpu_program *p, const cpu_product *product, uint32_t n_row) {
    const pith_weight *weight = product->weight[0];
    bool in_place = weight->layout == PITH_LAYOUT_PANELS && !pith_cpu_decodes(p, weight);
    size_t row_bytes = (size_t)weight->ne[0] * (pith_cpu_takes_q8(p, weight) ? 1 : sizeof(float));
    size_t limit = in_place ? p->block_bytes / row_bytes : CPU_TOKEN_BLOCK;
    if (limit < 32) limit = 32;
    if (limit > CPU_TOKEN_BLOCK) limit = CPU_TOKEN_BLOCK;
    uint32_t n_block = ceil_div(n_row, (uint32_t)limit), rows = ceil_div(n_row, n_block);
    rows = (uint32_t)cpu_round_up(rows, 8);
    return rows < limit ? rows : (uint32_t)limit;
}

static product_run plan_chunks(cpu_context *c) {
    const cpu_program *p = &c->runner->program;
    const cpu_product *product = &c->phase->product;
    bool is_joined = product->act != PITH_ACT_NONE;
    product_run run = {.context = c, .n_list = is_joined ? 1 : product->n};
    run.block_rows = rows_per_block(p, product, c->n_row);
    run.n_block = ceil_div(c->n_row, run.block_rows);
    uint32_t total = 0, unit = is_joined ? UNIT_PANELS : 1;
    for (uint32_t i = 0; i < run.n_list; i++) total += panels_of(product->weight[i]);
    uint32_t wanted = CHUNKS_PER_THREAD * (uint32_t)p->options.n_threads;
    uint32_t most = ceil_div(total * run.n_block, wanted);
    for (uint32_t i = 0; i < run.n_list; i++) {
        uint32_t n = panels_per_chunk(product->weight[i], run.block_rows);
        if (is_joined) n = n / product->n;
        if (n > most) n = most;
        run.range[i] = (uint32_t)cpu_round_up(n ? n : 1, unit);
        run.n_range[i] = ceil_div(panels_of(product->weight[i]), run.range[i]);
        run.chunks_per_block += run.n_range[i];
    }
    return run;
}

void pith_cpu_quantize_columns(const pith_runner *runner, const cpu_value *y, const cpu_tile *tile,
                               uint32_t column, uint32_t n) {
    const pith_kernels *kernels = &runner->program.kernels;
    for (uint32_t done = 0, same; done < tile->n_row; done += same) {
        bool fast;
        same = cpu_same_contract(runner, y, tile->row + done, tile->n_row - done, &fast);
        pith_q8 q8 = q8_from(&y->q8, tile->row + done - y->first_row);
        uint32_t group = fast ? PITH_FAST_GROUP : PITH_GROUP;
        q8.q += column;
        q8.d += column / group;
        q8.sum += column / group;
        q8.sum16 += column / (PITH_GROUP / 2);
        (fast ? kernels->quantize_fast : kernels->quantize)(tile->y + done * tile->y_stride,
                                                            tile->y_stride, same, n, &q8, 0);
    }
}

/* act(gate) * up of one unit of columns. gate is a tile in the thread's scratch. */
static void joined_unit(const cpu_context *c, cpu_tile *gate, const cpu_value *y) {
    const cpu_program *p = &c->runner->program;
    const cpu_product *product = &c->phase->product;
    uint32_t column = gate->panel * PITH_PANEL_ROWS, left = y->width - column;
    uint32_t n = left < CPU_UNIT ? left : CPU_UNIT;
    cpu_tile up = *gate;
    up.weight = product->weight[1];
    up.y = gate->y + CPU_UNIT;
    pith_cpu_tile(c, gate);
    if (c->runner->adapts) pith_cpu_adapt_tile(c, gate, 0);
    finish(c, gate, product->bias[0], column, n);
    if (product->n == 2) {
        pith_cpu_tile(c, &up);
        if (c->runner->adapts) pith_cpu_adapt_tile(c, &up, 1);
        finish(c, &up, product->bias[1], column, n);
    }
    bool keep = y->needs_f32 || c->runner->trace || c->runner->adapts;
    for (uint32_t i = 0; i < gate->n_row; i++) {
        float *row = gate->y + i * gate->y_stride;
        activate(&p->kernels, product->act, row, product->n == 2 ? row + CPU_UNIT : NULL, n);
        if (product->scale != 0.0f) p->kernels.scale(row, row, product->scale, n);
        if (product->residual != PITH_NO_VALUE)
            p->kernels.add(row, cpu_row(&c->values[product->residual], gate->row + i) + column, row,
                           n);
        if (keep) memcpy(cpu_row(y, gate->row + i) + column, row, n * sizeof(float));
    }
    if (y->needs_q8) pith_cpu_quantize_columns(c->runner, y, gate, column, n);
}

/* Units of a joined product for rows [row, row + n_row): panels [panel, panel + n_panel). */
void pith_cpu_joined(const cpu_context *c, cpu_tile tile) {
    const cpu_product *product = &c->phase->product;
    const cpu_scratch *scratch = &c->runner->scratch[c->thread];
    const cpu_value *y = &c->values[product->y[0]];
    uint32_t end = tile.panel + tile.n_panel;
    tile.weight = product->weight[0];
    tile.y = scratch->tile;
    tile.y_stride = 2 * CPU_UNIT;
    for (uint32_t i = 0; c->runner->adapts && i < product->n; i++)
        pith_cpu_adapt_ahead(c, &tile, i);
    for (; tile.panel < end; tile.panel += UNIT_PANELS) {
        tile.n_panel = end - tile.panel < UNIT_PANELS ? end - tile.panel : UNIT_PANELS;
        joined_unit(c, &tile, y);
    }
}

void pith_cpu_make_before(cpu_context *c) {
    const cpu_phase *rows = c->before;
    if (!rows) return;
    pith_cpu_rows(c, rows->first_step, rows->n_step, 0, c->n_row);
    c->before = NULL;
}

static void product_chunk(void *user, uint32_t i, int thread) {
    product_run *run = user;
    cpu_context *c = run->context;
    const cpu_product *product = &c->phase->product;
    (void)thread;
    pith_cpu_make_before(c);
    if (c->runner->adapts) pith_cpu_adapt_begin(c);
    uint32_t block = i / run->chunks_per_block, range = i % run->chunks_per_block, w = 0;
    while (range >= run->n_range[w]) range -= run->n_range[w++];
    const pith_weight *weight = product->weight[w];
    uint32_t n_panel = panels_of(weight), row = block * run->block_rows;
    cpu_tile tile = {.weight = weight, .x = &c->values[product->x], .panel = range * run->range[w]};
    tile.n_panel = n_panel - tile.panel < run->range[w] ? n_panel - tile.panel : run->range[w];
    tile.n_row = c->n_row - row < run->block_rows ? c->n_row - row : run->block_rows;
    tile.row = row + c->first_row;
    if (product->act != PITH_ACT_NONE) {
        pith_cpu_joined(c, tile);
        return;
    }
    const cpu_value *y = &c->values[product->y[w]];
    uint32_t column = tile.panel * PITH_PANEL_ROWS, n = tile.n_panel * PITH_PANEL_ROWS;
    tile.y = cpu_row(y, tile.row) + column;
    tile.y_stride = y->stride;
    if (c->runner->adapts) pith_cpu_adapt_ahead(c, &tile, w);
    pith_cpu_tile(c, &tile);
    if (c->runner->adapts) pith_cpu_adapt_tile(c, &tile, w);
    finish(c, &tile, product->bias[w], column, y->width - column < n ? y->width - column : n);
}

void pith_cpu_product(cpu_context *context, uint64_t *index) {
    if (!context->n_row) return;
    if (context->runner->adapts) pith_cpu_adapt_inputs(context, index);
    product_run run = plan_chunks(context);
    pith_pool_for(context->runner->pool, (*index)++, run.n_block * run.chunks_per_block,
                  product_chunk, &run, context->thread);
}
