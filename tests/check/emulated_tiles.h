/* SPDX-License-Identifier: Apache-2.0
 * The tile instructions of AMX in plain C, put in place of the macros of kernel/x86/tiles_amx.h when
 * the AMX kernels are compiled for the kernel check (CMakeLists.txt here). Facts: Intel SDM, vol. 2A
 * (LDTILECFG, TILELOADD, TILESTORED, TDPBSSD). Invariant: whatever would fault on a processor
 * (no configuration, a bad one, shapes that do not fit) is an illegal instruction here too, which
 * the check reports. Each source that includes this has tiles of its own; the check has one thread. */
#ifndef PITH_TESTS_CHECK_EMULATED_TILES_H
#define PITH_TESTS_CHECK_EMULATED_TILES_H

#define PITH_EMULATE_AMX

#include "kernel/x86/tiles_amx.h"

#include <stdbool.h>
#include <string.h>

typedef struct emulated_tile {
    int rows, bytes;
    uint8_t row[TILE_ROWS][TILE_BYTES];
} emulated_tile;

static emulated_tile emulated_tiles[N_TILES];
static bool emulated_is_configured;

static inline void emulated_need(bool is_right) {
    if (!is_right) __builtin_trap();
}

static inline void emulated_configure(const tile_config *config) {
    emulated_need(config->palette == 1 && config->start_row == 0);
    for (int i = 0; i < 14; i++) emulated_need(config->reserved[i] == 0);
    for (int t = 0; t < 16; t++) {
        int rows = config->rows[t], bytes = config->bytes[t];
        emulated_need(rows <= TILE_ROWS && bytes <= TILE_BYTES && !rows == !bytes);
        emulated_need(t < N_TILES || rows == 0);
        if (t < N_TILES) emulated_tiles[t] = (emulated_tile){.rows = rows, .bytes = bytes};
    }
    emulated_is_configured = true;
}

static inline void emulated_release(void) {
    memset(emulated_tiles, 0, sizeof emulated_tiles);
    emulated_is_configured = false;
}

static inline emulated_tile *emulated_at(int t) {
    emulated_need(emulated_is_configured && emulated_tiles[t].rows > 0);
    return &emulated_tiles[t];
}

static inline void emulated_zero(int t) {
    memset(emulated_at(t)->row, 0, sizeof emulated_tiles[t].row);
}

static inline void emulated_load(int t, const void *at, size_t stride) {
    emulated_tile *tile = emulated_at(t);
    emulated_zero(t);
    for (int r = 0; r < tile->rows; r++)
        memcpy(tile->row[r], (const uint8_t *)at + (size_t)r * stride, (size_t)tile->bytes);
}

static inline void emulated_store(int t, void *at, size_t stride) {
    const emulated_tile *tile = emulated_at(t);
    for (int r = 0; r < tile->rows; r++)
        memcpy((uint8_t *)at + (size_t)r * stride, tile->row[r], (size_t)tile->bytes);
}

static inline int32_t emulated_byte(uint8_t byte) {
    return byte < 128 ? byte : byte - 256;
}

/* c += a b: 4 signed bytes at a time. */
static inline void emulated_dot(int to, int from, int with) {
    emulated_tile *c = emulated_at(to);
    const emulated_tile *a = emulated_at(from), *b = emulated_at(with);
    emulated_need(to != from && to != with && from != with);
    emulated_need(c->rows == a->rows && c->bytes == b->bytes && a->bytes == 4 * b->rows);
    for (int m = 0; m < c->rows; m++)
        for (int k = 0; k < b->rows; k++)
            for (int n = 0; n < c->bytes / 4; n++) {
                uint32_t sum;
                memcpy(&sum, c->row[m] + 4 * n, sizeof sum);
                for (int i = 0; i < 4; i++)
                    sum += (uint32_t)(emulated_byte(a->row[m][4 * k + i]) *
                                      emulated_byte(b->row[k][4 * n + i]));
                memcpy(c->row[m] + 4 * n, &sum, sizeof sum);
            }
}

#define TILES_LOAD(config)         emulated_configure(config)
#define TILES_RELEASE()            emulated_release()
#define TILE_ZERO(t)               emulated_zero(t)
#define TILE_LOAD(t, at, stride)   emulated_load(t, at, stride)
#define TILE_STORE(t, sums)        emulated_store(t, sums, TILE_BYTES)
#define TILE_DOT(c, tokens, codes) emulated_dot(c, tokens, codes)

#endif
