/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks as bytes and back: the canonical layout, in which every vector of a head lies whole.
 *
 *   block in memory   K in panels of 16 tokens, V token by token, room for 64 tokens
 *   snapshot          per layer of the group, for n tokens, without gaps:
 *     | K of head 0: [n, head_dim] | K of head 1 | .. | V of head 0: [n, head_dim_v] | .. |
 *     | int8: scales of K head 0: [n] floats | .. | of V head 0 | .. |          next layer ..
 *
 * Invariant: the bits of the elements are copied, never computed with, so what is read back is
 * what was written. Elements are little-endian, as in memory on every machine that pith runs on.
 * Panels are drawn in docs/formats.md, "KV pages"; both directions of one panel are here.
 *
 * It keeps no files and no keys: engine/prefix.h does. Read next: kv_sequence.c.
 */
#include "kv/kv_store.h"

#include <string.h>

enum { PANEL = 16 };

static const uint32_t element_bytes[] = {
    [PITH_KV_STORE_F32] = 4, [PITH_KV_STORE_F16] = 2, [PITH_KV_STORE_I8] = 1};

uint32_t pith_kv_first_block(const pith_kv_layout *layout, uint32_t group, uint32_t position) {
    return pith_kv_first_visible(position, layout->group_window[group]) / PITH_KV_BLOCK_TOKENS;
}

/* A token's vector is a run of units that the panels of K interleave: an element of f32 or f16,
 * four of int8. */
typedef struct vector_form {
    uint32_t unit_bytes; /* 2 or 4 */
    uint32_t n_units;
    size_t bytes; /* of the vector */
} vector_form;

static vector_form form_of(pith_kv_storage storage, uint32_t dim) {
    uint32_t together = storage == PITH_KV_STORE_I8 ? 4 : 1;
    uint32_t unit_bytes = together * element_bytes[storage];
    return (vector_form){unit_bytes, dim / together, (size_t)dim * element_bytes[storage]};
}

/* Unit u of token t in the panels. */
static size_t unit_at(const vector_form *form, uint32_t t, uint32_t u) {
    return ((size_t)(t / PANEL) * form->n_units + u) * PANEL + t % PANEL;
}

static void rows_of_panels(const vector_form *form, const uint8_t *panels, uint32_t n,
                           uint8_t *rows) {
    for (uint32_t t = 0; t < n; t++, rows += form->bytes) {
        const uint8_t *at = panels + unit_at(form, t, 0) * form->unit_bytes;
        if (form->unit_bytes == 2) {
            for (uint32_t u = 0; u < form->n_units; u++)
                memcpy(rows + u * 2u, at + (size_t)u * PANEL * 2, 2);
        } else {
            for (uint32_t u = 0; u < form->n_units; u++)
                memcpy(rows + u * 4u, at + (size_t)u * PANEL * 4, 4);
        }
    }
}

static void panels_of_rows(const vector_form *form, const uint8_t *rows, uint32_t n,
                           uint8_t *panels) {
    for (uint32_t t = 0; t < n; t++, rows += form->bytes) {
        uint8_t *at = panels + unit_at(form, t, 0) * form->unit_bytes;
        if (form->unit_bytes == 2) {
            for (uint32_t u = 0; u < form->n_units; u++)
                memcpy(at + (size_t)u * PANEL * 2, rows + u * 2u, 2);
        } else {
            for (uint32_t u = 0; u < form->n_units; u++)
                memcpy(at + (size_t)u * PANEL * 4, rows + u * 4u, 4);
        }
    }
}

/* Bytes of n tokens of a layer. */
static size_t layer_bytes(const pith_kv_layout *layout, const pith_kv_layer *layer, uint32_t n) {
    size_t token = form_of(layout->storage, layer->head_dim).bytes +
                   form_of(layout->storage, layer->head_dim_v).bytes +
                   (layout->storage == PITH_KV_STORE_I8 ? 2 * sizeof(float) : 0);
    return token * layer->n_head_kv * n;
}

size_t pith_kv_snapshot_bytes(const pith_kv_layout *layout, uint32_t group, uint32_t n) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < layout->n_layer; i++) {
        if (layout->layers[i].group == group) bytes += layer_bytes(layout, &layout->layers[i], n);
    }
    return bytes;
}

/* n floats of each head: 64 of them in the block, n in the snapshot. */
static uint8_t *write_scales(const uint8_t *scales, uint32_t n_head, uint32_t n, uint8_t *out) {
    for (uint32_t h = 0; h < n_head; h++, out += n * sizeof(float))
        memcpy(out, scales + (size_t)h * PITH_KV_BLOCK_TOKENS * sizeof(float), n * sizeof(float));
    return out;
}

static uint8_t *write_layer(const pith_kv_layout *layout, const pith_kv_layer *layer,
                            const uint8_t *block, uint32_t n, uint8_t *out) {
    vector_form k = form_of(layout->storage, layer->head_dim);
    size_t v_bytes = form_of(layout->storage, layer->head_dim_v).bytes;
    for (uint32_t h = 0; h < layer->n_head_kv; h++, out += n * k.bytes)
        rows_of_panels(&k, block + layer->k + h * layer->k_head_bytes, n, out);
    for (uint32_t h = 0; h < layer->n_head_kv; h++, out += n * v_bytes)
        memcpy(out, block + layer->v + h * layer->v_head_bytes, n * v_bytes);
    if (layout->storage != PITH_KV_STORE_I8) return out;
    out = write_scales(block + layer->k_scale, layer->n_head_kv, n, out);
    return write_scales(block + layer->v_scale, layer->n_head_kv, n, out);
}

bool pith_kv_snapshot_write(const pith_kv_sequence *sequence, uint32_t group, uint32_t block,
                            uint32_t n, uint8_t *out) {
    const pith_kv_layout *layout = sequence->kv->layout;
    const pith_kv_block_table *table = &sequence->tables[group];
    if (block < table->first || block >= table->n) return false;
    for (uint32_t i = 0; i < layout->n_layer; i++) {
        const pith_kv_layer *layer = &layout->layers[i];
        if (layer->group == group) out = write_layer(layout, layer, table->blocks[block], n, out);
    }
    return true;
}

static const uint8_t *read_scales(uint8_t *scales, uint32_t n_head, uint32_t n, const uint8_t *in) {
    for (uint32_t h = 0; h < n_head; h++, in += n * sizeof(float))
        memcpy(scales + (size_t)h * PITH_KV_BLOCK_TOKENS * sizeof(float), in, n * sizeof(float));
    return in;
}

static const uint8_t *read_layer(const pith_kv_layout *layout, const pith_kv_layer *layer,
                                 uint8_t *block, uint32_t n, const uint8_t *in) {
    vector_form k = form_of(layout->storage, layer->head_dim);
    size_t v_bytes = form_of(layout->storage, layer->head_dim_v).bytes;
    for (uint32_t h = 0; h < layer->n_head_kv; h++, in += n * k.bytes)
        panels_of_rows(&k, in, n, block + layer->k + h * layer->k_head_bytes);
    for (uint32_t h = 0; h < layer->n_head_kv; h++, in += n * v_bytes)
        memcpy(block + layer->v + h * layer->v_head_bytes, in, n * v_bytes);
    if (layout->storage != PITH_KV_STORE_I8) return in;
    in = read_scales(block + layer->k_scale, layer->n_head_kv, n, in);
    return read_scales(block + layer->v_scale, layer->n_head_kv, n, in);
}

static bool read_group(pith_kv_sequence *sequence, uint32_t group, uint32_t n,
                       const pith_kv_snapshot_source *source) {
    const pith_kv_layout *layout = sequence->kv->layout;
    pith_kv_pool *pool = &sequence->kv->pools[group];
    pith_kv_block_table *table = &sequence->tables[group];
    uint32_t first = pith_kv_first_block(layout, group, n), want = pith_kv_blocks_below(n);
    pith_kv_table_keep(table, pool, first, sequence->length / PITH_KV_BLOCK_TOKENS);
    if (table->n < first) table->first = table->n = first;
    while (table->n < want) {
        uint32_t base = table->n * PITH_KV_BLOCK_TOKENS, n_read = 0;
        uint32_t least = n - base < PITH_KV_BLOCK_TOKENS ? n - base : PITH_KV_BLOCK_TOKENS;
        const uint8_t *in = source->read(source->user, group, table->n, least, &n_read);
        if (!in || n_read < least || n_read > PITH_KV_BLOCK_TOKENS) return false;
        uint8_t *block = pith_kv_block_take(pool);
        table->blocks[table->n++] = block;
        for (uint32_t i = 0; i < layout->n_layer; i++) {
            const pith_kv_layer *layer = &layout->layers[i];
            if (layer->group == group) in = read_layer(layout, layer, block, n_read, in);
        }
    }
    return true;
}

/* A table never holds more blocks than rows that see n tokens need, so the pool has one for each
 * (kv_store.c). */
bool pith_kv_snapshot_read(pith_kv_sequence *sequence, uint32_t n,
                           const pith_kv_snapshot_source *source) {
    bool good = n >= sequence->length && n <= sequence->kv->n_ctx &&
                sequence->length % PITH_KV_BLOCK_TOKENS == 0;
    for (uint32_t g = 0; good && g < sequence->kv->layout->n_group; g++)
        good = read_group(sequence, g, n, source);
    if (good)
        sequence->length = n;
    else
        pith_kv_sequence_empty(sequence);
    return good;
}
