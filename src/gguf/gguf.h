/* SPDX-License-Identifier: Apache-2.0
 * GGUF files, read and written (drawn in docs/formats.md): versions 2 and 3, every metadata
 * type, split files (read only). Reading is the first line against hostile files: every size is
 * checked before it is allocated, every offset before it is used, and the limits below are
 * published. */
#ifndef PITH_GGUF_GGUF_H
#define PITH_GGUF_GGUF_H

#include "base/source.h"
#include "base/text.h"
#include "quant/quant.h"

/* Published limits. */
enum {
    PITH_GGUF_MAX_KEYS = 65536,
    PITH_GGUF_MAX_TENSORS = 1 << 20,
    PITH_GGUF_MAX_KEY_BYTES = 65535,
    PITH_GGUF_MAX_NAME_BYTES = 127, /* tensor names; llama.cpp takes 63, forks write more */
    PITH_GGUF_MAX_ARRAY = 1 << 26,  /* elements */
    PITH_GGUF_MAX_SHARDS = 1000,
    PITH_GGUF_MAX_ALIGNMENT = 1 << 20 /* bytes */
};
#define PITH_GGUF_MAX_STRING_BYTES (UINT64_C(1) << 28)
#define PITH_GGUF_MAX_HEADER_BYTES (UINT64_C(1) << 30) /* everything before the tensor data */

typedef enum pith_gguf_kind {
    /* clang-format off */
    PITH_GGUF_U8 = 0, PITH_GGUF_I8, PITH_GGUF_U16, PITH_GGUF_I16, PITH_GGUF_U32,
    PITH_GGUF_I32, PITH_GGUF_F32, PITH_GGUF_BOOL, PITH_GGUF_STRING, PITH_GGUF_ARRAY,
    PITH_GGUF_U64, PITH_GGUF_I64, PITH_GGUF_F64
    /* clang-format on */
} pith_gguf_kind;

typedef struct pith_gguf_value {
    pith_span key; /* also NUL-terminated */
    pith_gguf_kind kind;
    pith_gguf_kind item_kind; /* of arrays */
    uint64_t n_items;         /* of arrays; 1 otherwise */
    const uint8_t *bytes;     /* as stored: little-endian; a STRING without its length */
    uint64_t size;            /* of bytes */
    const pith_span *strings; /* [n_items] for arrays of strings, else NULL */
} pith_gguf_value;

typedef struct pith_gguf_tensor {
    pith_span name; /* also NUL-terminated */
    pith_type type;
    uint32_t n_dims;
    uint64_t ne[4];  /* missing dimensions are 1 */
    uint64_t offset; /* absolute, in its shard's source */
    uint64_t bytes;  /* without padding; offset + bytes <= size of the shard, checked */
    uint32_t shard;
} pith_gguf_tensor;

typedef struct pith_gguf pith_gguf;

/* Opens a file; when it is the first of a split set (split.count > 1) the other shards too. */
pith_status pith_gguf_open_path(const char *path, pith_gguf **out, pith_error *error);
/* Takes ownership of source, also on failure. Of a split set only this shard is opened. */
pith_status pith_gguf_open_source(pith_source *source, pith_gguf **out, pith_error *error);
/* The same for a file that may hold its header alone (its first bytes, up to somewhere in the
 * tensor data): tensors are described, and those whose bytes are missing cannot be read. Of a split
 * set whose other shards are not there only this shard is opened. */
pith_status pith_gguf_open_header(const char *path, pith_gguf **out, pith_error *error);
void pith_gguf_close(pith_gguf *gguf);

/* false: bytes of tensors are missing (pith_gguf_open_header). */
bool pith_gguf_is_whole(const pith_gguf *gguf);
/* Bytes that the files have when they are whole: to the end of the last tensor of each shard, or
 * the source's size where that is more. */
uint64_t pith_gguf_total_bytes(const pith_gguf *gguf);

uint32_t pith_gguf_version(const pith_gguf *gguf);
uint32_t pith_gguf_alignment(const pith_gguf *gguf);
uint32_t pith_gguf_n_shards(const pith_gguf *gguf);
pith_source *pith_gguf_source(const pith_gguf *gguf, uint32_t shard);

size_t pith_gguf_n_values(const pith_gguf *gguf);
const pith_gguf_value *pith_gguf_value_at(const pith_gguf *gguf, size_t index);
const pith_gguf_value *pith_gguf_value_find(const pith_gguf *gguf, const char *key);
/* Over all shards, in file order. */
size_t pith_gguf_n_tensors(const pith_gguf *gguf);
const pith_gguf_tensor *pith_gguf_tensor_at(const pith_gguf *gguf, size_t index);
const pith_gguf_tensor *pith_gguf_tensor_find(const pith_gguf *gguf, const char *name);
/* Reads the tensor's bytes [offset, offset + size) within the tensor. */
pith_status pith_gguf_tensor_read(const pith_gguf *gguf, const pith_gguf_tensor *tensor,
                                  uint64_t offset, void *buffer, size_t size, pith_error *error);

/* The one typed reader for keys (ARCHITECTURE.md, "Errors"). *found (found may be NULL) is
 * false: the key is absent and *out untouched. A value of another type or out of range is an error
 * that names the key, what it holds and what is allowed. Integers of any width and signedness are
 * accepted where the value fits; floats accept F32 and F64. */
pith_status pith_gguf_get_u32(const pith_gguf *gguf, const char *key, uint32_t min, uint32_t max,
                              uint32_t *out, bool *found, pith_error *error);
/* Finite numbers only. */
pith_status pith_gguf_get_f32(const pith_gguf *gguf, const char *key, float *out, bool *found,
                              pith_error *error);
pith_status pith_gguf_get_bool(const pith_gguf *gguf, const char *key, bool *out, bool *found,
                               pith_error *error);
/* out->data is NUL-terminated. The text itself may hold NUL bytes and need not be UTF-8. */
pith_status pith_gguf_get_string(const pith_gguf *gguf, const char *key, pith_span *out,
                                 bool *found, pith_error *error);
/* A scalar is repeated, an array must have exactly n items. Accepts integers (bools too: 0, 1). */
pith_status pith_gguf_get_u32_each(const pith_gguf *gguf, const char *key, uint32_t min,
                                   uint32_t max, uint32_t *out, size_t n, bool *found,
                                   pith_error *error);
/* Item i of a value (i < n_items) as number; strings give 0. */
double pith_gguf_item_number(const pith_gguf_value *value, uint64_t index);
/* "u32", "arr[str]". */
const char *pith_gguf_kind_text(const pith_gguf_value *value);

/* Writing: keys and tensors are declared first, then the header goes out, then each tensor's bytes
 * in order. The file is written beside `path` and renamed into place by finish; free without finish
 * removes it. */
typedef struct pith_gguf_writer pith_gguf_writer;
pith_status pith_gguf_writer_new(const char *path, uint32_t version, uint32_t alignment,
                                 pith_gguf_writer **out, pith_error *error);
void pith_gguf_writer_free(pith_gguf_writer *writer);
/* bytes: the value as stored (little-endian). Arrays of strings through pith_gguf_write_strings.
 * An alignment other than 32 becomes the key general.alignment by itself. */
pith_status pith_gguf_write_value(pith_gguf_writer *writer, const char *key, pith_gguf_kind kind,
                                  const void *bytes, size_t size, pith_error *error);
pith_status pith_gguf_write_array(pith_gguf_writer *writer, const char *key, pith_gguf_kind item,
                                  const void *bytes, uint64_t n_items, pith_error *error);
pith_status pith_gguf_write_strings(pith_gguf_writer *writer, const char *key,
                                    const pith_span *items, uint64_t n_items, pith_error *error);
pith_status pith_gguf_write_string(pith_gguf_writer *writer, const char *key, const char *text,
                                   pith_error *error);
pith_status pith_gguf_write_u32(pith_gguf_writer *writer, const char *key, uint32_t value,
                                pith_error *error);
pith_status pith_gguf_write_f32(pith_gguf_writer *writer, const char *key, float value,
                                pith_error *error);
pith_status pith_gguf_write_bool(pith_gguf_writer *writer, const char *key, bool value,
                                 pith_error *error);
/* Declares a tensor of 1 to 4 dimensions. */
pith_status pith_gguf_write_tensor(pith_gguf_writer *writer, const char *name, pith_type type,
                                   uint32_t n_dims, const uint64_t *ne, pith_error *error);
/* The declared tensors' bytes, in order, in pieces of any size. The first call sends the header. */
pith_status pith_gguf_write_data(pith_gguf_writer *writer, const void *bytes, size_t size,
                                 pith_error *error);
/* All declared data must have come. */
pith_status pith_gguf_writer_finish(pith_gguf_writer *writer, pith_error *error);

#endif
