/* SPDX-License-Identifier: Apache-2.0
 *
 *   offset  size  meaning
 *   0       4     S, bytes of the node array
 *   4       S     nodes, u32 little-endian
 *   4+S     -     replacements, NUL-terminated UTF-8
 *
 *   node  bits 31..10 base, 9 base is shifted by 8, 8 a leaf hangs below, 7..0 label
 *         (with bit 31: no label fits)
 *
 * A leaf is the node at the base of its parent; bits 30..0 are the offset of its replacement.
 * Invariant: every index is checked against the array, so a broken blob gives no match, never a
 * read outside. Read next: unigram.c.
 */
#include "token/charsmap.h"

#include "base/cursor.h"
#include "base/memory.h"

#include <string.h>

pith_status pith_charsmap_copy(pith_charsmap *map, pith_span blob, pith_error *error) {
    *map = (pith_charsmap){0};
    if (!blob.size) return PITH_OK;
    pith_cursor cursor = pith_cursor_over(blob.data, blob.size);
    uint32_t bytes = pith_cursor_read_u32(&cursor);
    if (cursor.failed || bytes % 4 || bytes >= pith_cursor_remaining(&cursor))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "precompiled_charsmap: %u bytes of nodes do not fit a blob of %zu bytes",
                         bytes, blob.size);
    map->n_nodes = bytes / 4;
    map->n_texts = pith_cursor_remaining(&cursor) - bytes;
    map->nodes = pith_alloc_array(map->n_nodes, sizeof *map->nodes);
    map->texts = pith_alloc(map->n_texts + 1);
    if (!map->nodes || !map->texts) return pith_fail_memory(error, "the character map", blob.size);
    for (size_t i = 0; i < map->n_nodes; i++) map->nodes[i] = pith_cursor_read_u32(&cursor);
    memcpy(map->texts, blob.data + 4 + bytes, map->n_texts);
    map->texts[map->n_texts++] = 0;
    return PITH_OK;
}

void pith_charsmap_deinit(pith_charsmap *map) {
    pith_free(map->nodes);
    pith_free(map->texts);
    *map = (pith_charsmap){0};
}

static uint32_t base_of(uint32_t node) {
    return (node >> 10) << ((node & 1u << 9) >> 6);
}

size_t pith_charsmap_match(const pith_charsmap *map, pith_span text, size_t at, pith_span *with) {
    size_t longest = 0;
    if (!map->n_nodes) return 0;
    uint32_t index = base_of(map->nodes[0]);
    for (size_t to = at; to < text.size && text.data[to]; to++) {
        unsigned char byte = (unsigned char)text.data[to];
        index ^= byte;
        if (index >= map->n_nodes || (map->nodes[index] & 0x800000FFu) != byte) break;
        bool leaf = map->nodes[index] >> 8 & 1;
        index ^= base_of(map->nodes[index]);
        if (!leaf || index >= map->n_nodes) continue;
        uint32_t offset = map->nodes[index] & 0x7FFFFFFFu;
        if (offset >= map->n_texts) continue;
        longest = to + 1 - at;
        *with = pith_span_of(map->texts + offset);
    }
    return longest;
}
