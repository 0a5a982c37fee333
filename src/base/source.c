/* SPDX-License-Identifier: Apache-2.0
 *
 * Four kinds of source behind one face: a file (by path or descriptor), memory, and callbacks.
 *
 * Invariant: size is taken when the source is opened and never changes; every read is checked
 * against it before the system is asked. A file cut short afterwards gives PITH_ERROR_IO when
 * read; when mapped it is a fault of the process (pith.h says so). Reading changes nothing in
 * the source, so threads may read at once; pith_source_map, pith_source_begin_direct and
 * pith_source_close belong to one thread.
 *
 * It does not interpret bytes and holds no cache. Read next: os_file.c.
 */
#include "base/source.h"

#include "base/memory.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

typedef enum source_kind { SOURCE_FILE, SOURCE_MEMORY, SOURCE_READER } source_kind;

struct pith_source {
    source_kind kind;
    char *name;
    uint64_t size;
    pith_os_file file;   /* SOURCE_FILE */
    uint64_t start;      /* SOURCE_FILE: where in the file our first byte lies */
    pith_os_view view;   /* SOURCE_FILE: zero until mapped */
    pith_os_file direct; /* SOURCE_FILE: while has_direct; the view is mapped then */
    bool has_direct;
    _Atomic int refused;   /* a direct read failed once, none is tried again */
    const uint8_t *memory; /* SOURCE_MEMORY; not NULL */
    pith_reader reader;    /* SOURCE_READER */
};

static pith_status source_new(source_kind kind, const char *name, pith_source **out,
                              pith_error *error) {
    pith_source *source = pith_alloc_zero(1, sizeof *source);
    char *copy = source ? pith_copy_text(name, strlen(name)) : NULL;
    if (!copy) {
        pith_free(source);
        return pith_fail_memory(error, "a source", sizeof *source);
    }
    source->kind = kind;
    source->name = copy;
    *out = source;
    return PITH_OK;
}

pith_status pith_source_open_path(const char *path, pith_source **out, pith_error *error) {
    *out = NULL;
    if (!path || !*path) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "the path is empty; name a file");
    }
    pith_source *source = NULL;
    pith_status status = source_new(SOURCE_FILE, path, &source, error);
    if (status != PITH_OK) return status;
    status = pith_os_file_open(path, &source->file, error);
    if (status != PITH_OK) {
        pith_free(source->name);
        pith_free(source);
        return status;
    }
    source->size = source->file.size;
    *out = source;
    return PITH_OK;
}

pith_status pith_source_open_descriptor(int descriptor, uint64_t offset, uint64_t size,
                                        pith_source **out, pith_error *error) {
    *out = NULL;
    pith_source *source = NULL;
    pith_status status = source_new(SOURCE_FILE, "descriptor", &source, error);
    if (status != PITH_OK) return status;
    status = pith_os_file_duplicate(descriptor, &source->file, error);
    if (status != PITH_OK) {
        pith_free(source->name);
        pith_free(source);
        return status;
    }
    source->start = offset;
    source->size = size;
    uint64_t file_size = source->file.size;
    if (offset > file_size || size > file_size - offset) {
        pith_source_close(source);
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "descriptor %d: %" PRIu64 " bytes from offset %" PRIu64
                         " were promised, but the file has %" PRIu64,
                         descriptor, size, offset, file_size);
    }
    *out = source;
    return PITH_OK;
}

pith_status pith_source_open_memory(const void *data, uint64_t size, pith_source **out,
                                    pith_error *error) {
    *out = NULL;
    if ((!data && size) || size > SIZE_MAX) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "memory source: %" PRIu64 " bytes at %s cannot be read", size,
                         data ? "an address" : "NULL");
    }
    pith_source *source = NULL;
    pith_status status = source_new(SOURCE_MEMORY, "memory", &source, error);
    if (status != PITH_OK) return status;
    source->memory = data ? data : (const uint8_t *)"";
    source->size = size;
    *out = source;
    return PITH_OK;
}

pith_status pith_source_open_reader(const pith_reader *reader, pith_source **out,
                                    pith_error *error) {
    *out = NULL;
    if (!reader || reader->size < sizeof *reader || !reader->read_at) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "reader source: set .size = sizeof(pith_reader) and .read_at");
    }
    pith_source *source = NULL;
    pith_status status = source_new(SOURCE_READER, "reader", &source, error);
    if (status != PITH_OK) return status;
    source->reader = *reader;
    source->size = reader->total_bytes;
    *out = source;
    return PITH_OK;
}

void pith_source_close(pith_source *source) {
    if (!source) return;
    pith_os_view_close(&source->view);
    if (source->has_direct) pith_os_file_close(&source->direct);
    if (source->kind == SOURCE_FILE) pith_os_file_close(&source->file);
    pith_free(source->name);
    pith_free(source);
}

uint64_t pith_source_size(const pith_source *source) {
    return source->size;
}

uint64_t pith_source_changed(const pith_source *source) {
    return source->kind == SOURCE_FILE ? source->file.changed : 0;
}

const char *pith_source_name(const pith_source *source) {
    return source->name;
}

static pith_status read_file(const pith_source *source, uint64_t offset, void *buffer, size_t size,
                             pith_error *error) {
    int code = pith_os_file_read(&source->file, source->start + offset, buffer, size);
    if (code == 0) return PITH_OK;
    if (code < 0) {
        return pith_fail(error, PITH_ERROR_IO,
                         "%s: shorter than the %" PRIu64
                         " bytes it had when it was opened; it changed while in use",
                         source->name, source->size);
    }
    char why[96];
    pith_os_error_text(code, why, sizeof why);
    return pith_fail(error, PITH_ERROR_IO,
                     "%s: %zu bytes at offset %" PRIu64 " could not be read: %s", source->name,
                     size, offset, why);
}

pith_status pith_source_read(const pith_source *source, uint64_t offset, void *buffer, size_t size,
                             pith_error *error) {
    if (offset > source->size || size > source->size - offset) {
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "%s: %zu bytes at offset %" PRIu64 " lie past its end (%" PRIu64
                         " bytes); the file may be cut short",
                         source->name, size, offset, source->size);
    }
    if (size == 0) return PITH_OK;
    switch (source->kind) {
    case SOURCE_FILE: return read_file(source, offset, buffer, size, error);
    case SOURCE_MEMORY: memcpy(buffer, source->memory + offset, size); return PITH_OK;
    case SOURCE_READER: break;
    }
    int code = source->reader.read_at(source->reader.user, offset, buffer, size);
    if (code == 0) return PITH_OK;
    return pith_fail(error, PITH_ERROR_IO,
                     "reader: read_at returned %d for %zu bytes at offset %" PRIu64, code, size,
                     offset);
}

bool pith_source_begin_direct(pith_source *source) {
    if (source->kind != SOURCE_FILE || source->size == 0) return false;
    if (!source->has_direct && pith_source_map(source))
        source->has_direct = pith_os_file_open_direct(&source->file, &source->direct);
    return source->has_direct;
}

/* Whole units around the range; what lies in the page cache is cheaper from there. false: read it
 * otherwise. */
static bool read_direct(pith_source *source, uint64_t offset, size_t size, uint8_t *buffer,
                        const uint8_t **data) {
    if (!source->has_direct || atomic_load(&source->refused)) return false;
    if (pith_os_view_resident(&source->view, offset, size) >= 1) return false;
    uint64_t begin = source->start + offset, before = begin % PITH_SOURCE_UNIT;
    uint64_t whole = before + size + PITH_SOURCE_UNIT - 1;
    whole -= whole % PITH_SOURCE_UNIT;
    int64_t n = pith_os_file_read_direct(&source->direct, begin - before, buffer, (size_t)whole);
    if (n < 0) atomic_store(&source->refused, 1);
    *data = buffer + before;
    return n >= 0 && (uint64_t)n >= before + size;
}

pith_status pith_source_read_piece(pith_source *source, uint64_t offset, size_t size,
                                   uint8_t *buffer, const uint8_t **data, pith_error *error) {
    bool is_inside = offset <= source->size && size <= source->size - offset;
    if (is_inside && size && read_direct(source, offset, size, buffer, data)) return PITH_OK;
    *data = buffer;
    return pith_source_read(source, offset, buffer, size, error);
}

const uint8_t *pith_source_map(pith_source *source) {
    if (source->kind == SOURCE_MEMORY) return source->memory;
    if (source->kind == SOURCE_READER) return NULL;
    if (source->size == 0) return (const uint8_t *)"";
    if (!source->view.data &&
        !pith_os_view_open(&source->file, source->start, source->size, &source->view)) {
        return NULL;
    }
    return source->view.data;
}

void pith_source_prefetch(const pith_source *source, uint64_t offset, uint64_t size) {
    if (source->kind != SOURCE_FILE || offset >= source->size) return;
    if (size > source->size - offset) size = source->size - offset;
    if (size == 0) return;
    if (source->view.data) {
        pith_os_view_prefetch(&source->view, offset, size);
    } else {
        pith_os_file_prefetch(&source->file, source->start + offset, size);
    }
}

double pith_source_resident(const pith_source *source, uint64_t offset, uint64_t size) {
    if (source->kind == SOURCE_READER) return -1;
    if (source->kind == SOURCE_MEMORY || offset >= source->size) return 1;
    if (size > source->size - offset) size = source->size - offset;
    if (source->view.data) return pith_os_view_resident(&source->view, offset, size);
    pith_os_view view;
    if (size == 0) return 1;
    if (!pith_os_view_open(&source->file, source->start + offset, size, &view)) return -1;
    double share = pith_os_view_resident(&view, 0, size);
    pith_os_view_close(&view);
    return share;
}
