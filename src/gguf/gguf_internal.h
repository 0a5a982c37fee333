/* SPDX-License-Identifier: Apache-2.0
 * What the files of this room share: the open file itself, its arena, and the steps of opening one.
 * Who does what: gguf_file.c opens, closes and looks up; gguf_header.c walks the header bytes and
 * keys; gguf_tensor.c reads the tensor list and checks where the data lies; gguf_split.c joins
 * shards; gguf_key.c is the typed reader; gguf_writer.c writes. Start with gguf_header.c. */
#ifndef PITH_GGUF_GGUF_INTERNAL_H
#define PITH_GGUF_GGUF_INTERNAL_H

#include "base/cursor.h"
#include "base/map.h"
#include "gguf/gguf.h"

/* Smallest records the format can express: what a count in the header costs in bytes at least. */
enum {
    PITH_GGUF_PREAMBLE_BYTES = 24, /* magic, version, n_tensors, n_kv */
    PITH_GGUF_MIN_KEY_RECORD = 14, /* u64 length, 1 byte of key, u32 kind, 1 byte of value */
    /* u64 length, 1 byte of name, u32 n_dims (0), u32 type, u64 offset */
    PITH_GGUF_MIN_TENSOR_RECORD = 25,
    PITH_GGUF_DEFAULT_ALIGNMENT = 32
};

/* Memory that is released all at once: names, keys, copies of strings, lists of spans. */
typedef struct pith_gguf_block pith_gguf_block;
typedef struct pith_gguf_arena {
    pith_gguf_block *blocks; /* newest first */
    size_t next_bytes;       /* size of the next block */
} pith_gguf_arena;           /* zero-initialised is empty */

/* 16-byte aligned; NULL without memory. */
void *pith_gguf_arena_alloc(pith_gguf_arena *arena, size_t size);
/* The bytes and a NUL; data NULL without memory. */
pith_span pith_gguf_arena_copy(pith_gguf_arena *arena, pith_span text);
/* All memory of `from` now belongs to `to`. */
void pith_gguf_arena_adopt(pith_gguf_arena *to, pith_gguf_arena *from);
void pith_gguf_arena_deinit(pith_gguf_arena *arena);

/* Text from a file made fit for a message: at most 63 bytes, no control characters. */
typedef struct pith_gguf_shown {
    char text[64];
} pith_gguf_shown;
pith_gguf_shown pith_gguf_show(pith_span text);
/* The last part of the source's path. */
pith_gguf_shown pith_gguf_label(const pith_source *source);

struct pith_gguf {
    uint32_t version, alignment;
    uint32_t n_shards;
    bool takes_header;     /* a file without (all of) its tensors' bytes is no failure */
    bool is_cut;           /* tensors' bytes are missing */
    pith_source **sources; /* [n_shards], owned */
    pith_gguf_value *values;
    size_t n_values;
    pith_gguf_tensor *tensors;
    size_t n_tensors;
    pith_map keys, names; /* to the index in values, tensors */
    pith_gguf_arena arena;
    uint8_t *window; /* the header's bytes where the source cannot be mapped, else NULL */
};

/* A walk over the bytes of one header. All reads are preceded by pith_gguf_scan_need. */
typedef struct pith_gguf_scan {
    pith_gguf *gguf;       /* what is being filled */
    pith_gguf_shown label; /* the file's name, for messages */
    pith_cursor cursor;    /* over the bytes at hand */
    uint64_t file_bytes;   /* size of the whole source */
    uint64_t wanted;       /* not 0: the walk stopped, the header goes on to this offset at least */
    pith_error *error;
} pith_gguf_scan;

/* PITH_OK when `size` more bytes are at hand; else the error, or `wanted` set when the file has
 * them. `what` names them, `name` (may be empty) the key or tensor they belong to. */
pith_status pith_gguf_scan_need(pith_gguf_scan *scan, uint64_t size, const char *what,
                                pith_span name);
/* A length-prefixed name of 1..limit bytes, UTF-8 without NUL, copied into the arena. */
pith_status pith_gguf_scan_name(pith_gguf_scan *scan, const char *what, uint64_t index,
                                uint64_t limit, pith_span *out);

/* Reads and checks the header of the only source of `gguf` (values, tensors, maps). */
pith_status pith_gguf_header_read(pith_gguf *gguf, pith_error *error);
/* Releases what pith_gguf_header_read made, keeps the sources. */
void pith_gguf_header_reset(pith_gguf *gguf);
/* The tensor list at the cursor, then the places of the data. */
pith_status pith_gguf_tensors_read(pith_gguf_scan *scan, uint64_t n_tensors);

/* split.count of an opened file; 1 when it is not split. */
pith_status pith_gguf_split_count(const pith_gguf *gguf, uint32_t *count, pith_error *error);
/* Opens the other shards of `gguf`, the first of `count`, found beside `path`. */
pith_status pith_gguf_split_join(pith_gguf *gguf, const char *path, uint32_t count,
                                 pith_error *error);

/* Bytes of one item of a kind; 0 for strings, arrays and unknown kinds. */
size_t pith_gguf_kind_bytes(uint32_t kind);
/* NULL when the text may be a key or name, else what is wrong with it. */
const char *pith_gguf_name_fault(pith_span text);

#endif
