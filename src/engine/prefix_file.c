/* SPDX-License-Identifier: Apache-2.0
 * Files of stored prefixes, written and read (the picture is in prefix_file.h).
 *
 * Invariant: a file is trusted for nothing. Its front is read through a bounded cursor and must
 * have its checksum; the front's numbers must give exactly the size that the file has; a block is
 * used only with its checksum. The sums protect against damage and against files of something else;
 * whoever can write the folder can forge them, as he could replace the program.
 *
 * It knows no folder and no index: prefix.c does. Read next: src/kv/kv_snapshot.c. */
#include "engine/prefix_file.h"

#include "base/cursor.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"

#include <string.h>

enum { FIXED_BYTES = 40, SUM_AT = 32, WRITE_BYTES = 1 << 20 };

static const char magic[8] = {'P', 'I', 'T', 'H', 'K', 'V', '1', '\n'};

static uint32_t blocks_in(uint32_t first, uint32_t n) {
    return (n + PITH_KV_BLOCK_TOKENS - 1) / PITH_KV_BLOCK_TOKENS - first / PITH_KV_BLOCK_TOKENS;
}

/* Tokens below n in a block. */
static uint32_t tokens_in(uint32_t block, uint32_t n) {
    uint32_t left = n - block * PITH_KV_BLOCK_TOKENS;
    return left < PITH_KV_BLOCK_TOKENS ? left : PITH_KV_BLOCK_TOKENS;
}

static uint64_t front_bytes(uint32_t first, uint32_t n, uint32_t n_group) {
    return FIXED_BYTES + (uint64_t)n * 4 + (uint64_t)blocks_in(first, n) * n_group * 8;
}

/* 0 says that a block is not kept. */
static uint64_t sum_of(const uint8_t *data, size_t size) {
    uint64_t sum = pith_checksum(data, size);
    return sum ? sum : 1;
}

/* ---- Writing ---- */

static size_t part_block_bytes(const pith_prefix_part *part, uint32_t group, uint32_t i) {
    uint32_t block = part->first / PITH_KV_BLOCK_TOKENS + i;
    return pith_kv_snapshot_bytes(part->layout, group, tokens_in(block, part->n));
}

static uint64_t kept_bytes(const pith_prefix_part *part) {
    uint32_t n_group = part->layout->n_group, n_block = blocks_in(part->first, part->n);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_block * n_group; i++) {
        if (part->kept[i]) bytes += part_block_bytes(part, i % n_group, i / n_group);
    }
    return bytes;
}

uint64_t pith_prefix_part_bytes(const pith_prefix_part *part) {
    return front_bytes(part->first, part->n, part->layout->n_group) + kept_bytes(part);
}

static uint8_t *put(uint8_t *at, uint64_t value, int n) {
    for (int i = 0; i < n; i++) *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

static void fill_front(const pith_prefix_part *part, uint8_t *front, size_t size) {
    uint32_t n_group = part->layout->n_group, n_block = blocks_in(part->first, part->n);
    const uint8_t *block = part->blocks;
    memcpy(front, magic, sizeof magic);
    uint8_t *at = put(front + sizeof magic, size, 4);
    at = put(at, n_group, 4);
    at = put(at, part->key, 8);
    at = put(at, part->first, 4);
    at = put(at, part->n, 4);
    at = put(at, 0, 8);
    for (uint32_t i = 0; i < part->n; i++) at = put(at, (uint32_t)part->ids[i], 4);
    for (uint32_t i = 0; i < n_block * n_group; i++) {
        size_t bytes = part->kept[i] ? part_block_bytes(part, i % n_group, i / n_group) : 0;
        at = put(at, bytes ? sum_of(block, bytes) : 0, 8);
        block += bytes;
    }
    put(front + SUM_AT, pith_checksum(front, size), 8);
}

static pith_status write_slices(pith_output *output, const uint8_t *data, uint64_t size,
                                bool (*go_on)(void *user), void *user, pith_error *error) {
    pith_status status = PITH_OK;
    for (uint64_t at = 0; at < size && status == PITH_OK; at += WRITE_BYTES) {
        size_t n = size - at < WRITE_BYTES ? (size_t)(size - at) : WRITE_BYTES;
        if (!go_on(user)) return pith_fail(error, PITH_ERROR_CANCELLED, "writing was given up");
        status = pith_output_write(output, data + at, n, error);
    }
    return status;
}

pith_status pith_prefix_part_write(const pith_prefix_part *part, const char *path,
                                   bool (*go_on)(void *user), void *user, pith_error *error) {
    size_t size = (size_t)front_bytes(part->first, part->n, part->layout->n_group);
    uint8_t *front = pith_alloc(size);
    pith_output *output = NULL;
    if (!front) return pith_fail_memory(error, "a stored prefix", size);
    fill_front(part, front, size);
    pith_status status = pith_output_open(path, &output, error);
    if (status == PITH_OK) status = write_slices(output, front, size, go_on, user, error);
    if (status == PITH_OK)
        status = write_slices(output, part->blocks, kept_bytes(part), go_on, user, error);
    if (status == PITH_OK && !go_on(user))
        status = pith_fail(error, PITH_ERROR_CANCELLED, "writing was given up");
    if (status == PITH_OK) status = pith_output_commit(output, error);
    pith_output_close(output);
    pith_free(front);
    return status;
}

/* ---- Reading ---- */

static pith_status not_ours(const pith_prefix_file *file, const char *why, pith_error *error) {
    return pith_fail(error, PITH_ERROR_FORMAT, "%.120s: %s", pith_source_name(file->source), why);
}

/* The front's numbers, and its size; nothing is allocated before they are plausible. */
static pith_status read_numbers(pith_prefix_file *file, uint64_t key, uint32_t *front,
                                pith_error *error) {
    uint8_t fixed[FIXED_BYTES];
    uint64_t size = pith_source_size(file->source);
    if (size < FIXED_BYTES) return not_ours(file, "too short for a stored prefix", error);
    pith_status status = pith_source_read(file->source, 0, fixed, sizeof fixed, error);
    if (status != PITH_OK) return status;
    pith_cursor cursor = pith_cursor_over(fixed, sizeof fixed);
    pith_span begin = pith_cursor_read_bytes(&cursor, sizeof magic);
    *front = pith_cursor_read_u32(&cursor);
    uint32_t n_group = pith_cursor_read_u32(&cursor);
    uint64_t its_key = pith_cursor_read_u64(&cursor);
    file->first = pith_cursor_read_u32(&cursor);
    file->n = pith_cursor_read_u32(&cursor);
    if (memcmp(begin.data, magic, sizeof magic) != 0)
        return not_ours(file, "no stored prefix of this version", error);
    if (its_key != key) return not_ours(file, "of another model or other settings", error);
    bool plausible = n_group == file->layout->n_group && file->first < file->n &&
                     file->first % PITH_KV_BLOCK_TOKENS == 0 &&
                     file->n <= PITH_PREFIX_FILE_MAX_TOKENS && *front <= size &&
                     front_bytes(file->first, file->n, n_group) == *front;
    return plausible ? PITH_OK : not_ours(file, "its numbers contradict each other", error);
}

/* Where the blocks lie; they must end where the file ends. */
static pith_status place_blocks(pith_prefix_file *file, uint32_t front, pith_error *error) {
    uint32_t n_group = file->layout->n_group, n_block = blocks_in(file->first, file->n);
    uint64_t at = front;
    for (uint32_t i = 0; i < n_block * n_group; i++) {
        uint32_t block = file->first / PITH_KV_BLOCK_TOKENS + i / n_group;
        file->offsets[i] = at;
        if (file->sums[i] == 0) continue;
        at += pith_kv_snapshot_bytes(file->layout, i % n_group, tokens_in(block, file->n));
    }
    if (at == pith_source_size(file->source)) return PITH_OK;
    return not_ours(file, "its size is not what its front says", error);
}

static pith_status read_front(pith_prefix_file *file, uint8_t *front, uint32_t size,
                              pith_error *error) {
    pith_status status = pith_source_read(file->source, 0, front, size, error);
    if (status != PITH_OK) return status;
    uint32_t n_sums = blocks_in(file->first, file->n) * file->layout->n_group;
    pith_cursor cursor = pith_cursor_over(front, size);
    pith_cursor_skip(&cursor, SUM_AT);
    uint64_t sum = pith_cursor_read_u64(&cursor);
    memset(front + SUM_AT, 0, 8);
    if (pith_checksum(front, size) != sum) return not_ours(file, "damaged", error);
    for (uint32_t i = 0; i < file->n; i++) file->ids[i] = (int32_t)pith_cursor_read_u32(&cursor);
    for (uint32_t i = 0; i < n_sums; i++) file->sums[i] = pith_cursor_read_u64(&cursor);
    return place_blocks(file, size, error);
}

static pith_status open_file(pith_prefix_file *file, uint64_t key, pith_error *error) {
    uint32_t size = 0;
    pith_status status = read_numbers(file, key, &size, error);
    if (status != PITH_OK) return status;
    size_t n_sums = (size_t)blocks_in(file->first, file->n) * file->layout->n_group;
    uint8_t *front = pith_alloc(size);
    file->ids = pith_alloc_array(file->n, sizeof *file->ids);
    file->sums = pith_alloc_array(n_sums, sizeof *file->sums);
    file->offsets = pith_alloc_array(n_sums, sizeof *file->offsets);
    status = front && file->ids && file->sums && file->offsets
                 ? read_front(file, front, size, error)
                 : pith_fail_memory(error, "a stored prefix", size);
    pith_free(front);
    return status;
}

pith_status pith_prefix_file_open(pith_source *source, const pith_kv_layout *layout, uint64_t key,
                                  pith_prefix_file *out, pith_error *error) {
    *out = (pith_prefix_file){.layout = layout, .source = source};
    pith_status status = open_file(out, key, error);
    if (status != PITH_OK) pith_prefix_file_close(out);
    return status;
}

void pith_prefix_file_close(pith_prefix_file *file) {
    pith_source_close(file->source);
    pith_free(file->ids);
    pith_free(file->sums);
    pith_free(file->offsets);
    *file = (pith_prefix_file){0};
}

void pith_prefix_file_rest(pith_prefix_file *file) {
    pith_source_close(file->source);
    pith_free(file->ids);
    file->source = NULL;
    file->ids = NULL;
}

void pith_prefix_file_wake(pith_prefix_file *file, pith_source *source) {
    pith_source_close(file->source);
    file->source = source;
}

static size_t sum_index(const pith_prefix_file *file, uint32_t group, uint32_t block) {
    return (size_t)(block - file->first / PITH_KV_BLOCK_TOKENS) * file->layout->n_group + group;
}

bool pith_prefix_file_has(const pith_prefix_file *file, uint32_t group, uint32_t block) {
    if (block < file->first / PITH_KV_BLOCK_TOKENS) return false;
    if (block >= file->first / PITH_KV_BLOCK_TOKENS + blocks_in(file->first, file->n)) return false;
    if (pith_kv_snapshot_bytes(file->layout, group, 1) == 0) return true; /* layers without KV */
    return file->sums[sum_index(file, group, block)] != 0;
}

uint32_t pith_prefix_file_tokens(const pith_prefix_file *file, uint32_t block) {
    return tokens_in(block, file->n);
}

pith_status pith_prefix_file_read(const pith_prefix_file *file, uint32_t group, uint32_t block,
                                  uint8_t *buffer, pith_error *error) {
    size_t i = sum_index(file, group, block);
    size_t bytes = pith_kv_snapshot_bytes(file->layout, group, tokens_in(block, file->n));
    if (bytes == 0) return PITH_OK;
    pith_status status = pith_source_read(file->source, file->offsets[i], buffer, bytes, error);
    if (status != PITH_OK) return status;
    return sum_of(buffer, bytes) == file->sums[i] ? PITH_OK : not_ours(file, "damaged", error);
}
