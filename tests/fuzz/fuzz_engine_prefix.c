/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a file of a stored prefix, for a small layout with a window. The sums
 * are made right for the bytes, so that what lies behind them is reached. What opens is read block
 * by block, into a buffer of exactly the promised size. Seeds: corpus/engine_prefix/. */
#include "base/memory.h"
#include "base/text.h"
#include "engine/prefix_file.h"

#include <string.h>

enum { KEY = 77, SUM_AT = 32 };

static const pith_kv_shape shapes[] = {{1, 32, 32, 0}, {1, 32, 32, 70}};

/* Sets the front's own sum, where its size is plausible. */
static void seal(uint8_t *data, size_t size) {
    uint32_t front = 0;
    if (size < 40) return;
    memcpy(&front, data + 8, 4);
    if (front > size || front < 40) return;
    memset(data + SUM_AT, 0, 8);
    uint64_t sum = pith_checksum(data, front);
    memcpy(data + SUM_AT, &sum, 8);
}

static void read_all(const pith_prefix_file *file) {
    for (uint32_t block = file->first / 64; block * 64 < file->n; block++) {
        uint32_t tokens = pith_prefix_file_tokens(file, block);
        if (tokens == 0 || tokens > 64) __builtin_trap();
        for (uint32_t g = 0; g < file->layout->n_group; g++) {
            if (!pith_prefix_file_has(file, g, block)) continue;
            uint8_t *buffer = pith_alloc(pith_kv_snapshot_bytes(file->layout, g, tokens));
            if (buffer) (void)pith_prefix_file_read(file, g, block, buffer, NULL);
            pith_free(buffer);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_kv_layout layout;
    pith_source *source;
    pith_prefix_file file;
    pith_error error;
    uint8_t *copy = pith_alloc(size);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    seal(copy, size);
    if (pith_kv_layout_init(&layout, PITH_KV_STORE_F16, shapes, 2, NULL) != PITH_OK) return 0;
    if (pith_source_open_memory(copy, size, &source, NULL) == PITH_OK) {
        pith_status status = pith_prefix_file_open(source, &layout, KEY, &file, &error);
        if (status == PITH_OK)
            read_all(&file);
        else if (file.ids || file.source || error.text[0] == '\0')
            __builtin_trap();
        pith_prefix_file_close(&file);
    }
    pith_kv_layout_deinit(&layout);
    pith_free(copy);
    return 0;
}
