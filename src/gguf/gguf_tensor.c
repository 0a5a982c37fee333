/* SPDX-License-Identifier: Apache-2.0
 * The tensor list of a GGUF file and where the tensors' bytes lie.
 *
 *     record: u64 length, name | u32 n_dims | u64 ne[n_dims] | u32 type | u64 offset in the data
 *     data start = end of the last record, rounded up to the alignment
 *
 * Invariant: every tensor that leaves this file has a known type, whole blocks, a size that fits 63
 * bits, lies inside its file and shares no byte with another one. Gaps and any order are accepted
 * (ggml's reader wants neither), because they harm nobody; offsets must still be multiples of the
 * alignment. A dimension of 0 makes a tensor without bytes.
 * Not here: which tensors a model needs (src/model). */
#include "base/memory.h"
#include "gguf/gguf_internal.h"

#include <inttypes.h>

static pith_status fail_tensor(pith_gguf_scan *scan, const pith_gguf_tensor *tensor,
                               const char *what, uint64_t value, const char *allowed) {
    return pith_fail(scan->error, PITH_ERROR_FORMAT,
                     "%s: tensor \"%s\" before byte %zu %s %" PRIu64 ", %s", scan->label.text,
                     pith_gguf_show(tensor->name).text, scan->cursor.position, what, value,
                     allowed);
}

static pith_status read_dims(pith_gguf_scan *scan, pith_gguf_tensor *tensor) {
    pith_status status = pith_gguf_scan_need(scan, 4, "the record", tensor->name);
    if (status) return status;
    tensor->n_dims = pith_cursor_read_u32(&scan->cursor);
    if (tensor->n_dims > 4)
        return fail_tensor(scan, tensor, "has a number of dimensions of", tensor->n_dims,
                           "at most 4 are allowed");
    status =
        pith_gguf_scan_need(scan, tensor->n_dims * UINT64_C(8) + 12, "the record", tensor->name);
    if (status) return status;
    uint64_t elements =
        1; /* over the dimensions that are not 0, so that no product of some overflows */
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t n = i < tensor->n_dims ? pith_cursor_read_u64(&scan->cursor) : 1;
        tensor->ne[i] = n;
        if (n > INT64_MAX)
            return fail_tensor(scan, tensor, "has a dimension of", n,
                               "at most 2^63 - 1 is allowed");
        if (n != 0 && (!pith_u64_mul(elements, n, &elements) || elements > INT64_MAX))
            return fail_tensor(scan, tensor, "has too many elements with its dimension of", n,
                               "at most 2^63 - 1 are allowed together");
    }
    return PITH_OK;
}

static pith_status read_type(pith_gguf_scan *scan, pith_gguf_tensor *tensor) {
    uint32_t id = pith_cursor_read_u32(&scan->cursor);
    const pith_type_info *info = pith_type_get(id);
    if (!info)
        return pith_fail(
            scan->error, PITH_ERROR_UNSUPPORTED,
            "%s: tensor \"%s\" at byte %zu has type %" PRIu32 ", which %s", scan->label.text,
            pith_gguf_show(tensor->name).text, scan->cursor.position - 4, id,
            id < PITH_TYPE_COUNT ? "was removed from the format: convert the model again"
                                 : "pith does not know");
    tensor->type = (pith_type)id;
    if (tensor->ne[0] % info->block_elems != 0)
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s: tensor \"%s\" has rows of %" PRIu64
                         " elements, %s needs a multiple of %" PRIu32,
                         scan->label.text, pith_gguf_show(tensor->name).text, tensor->ne[0],
                         info->name, info->block_elems);
    uint64_t bytes;
    bool fits = pith_type_row_bytes(tensor->type, tensor->ne[0], &bytes);
    for (int i = 1; i < 4; i++) fits = fits && pith_u64_mul(bytes, tensor->ne[i], &bytes);
    if (!fits || bytes > INT64_MAX)
        return fail_tensor(scan, tensor, "is too large with rows of", tensor->ne[0],
                           "at most 2^63 - 1 bytes are allowed");
    tensor->bytes = bytes;
    return PITH_OK;
}

/* tensor->offset is relative to the data until place_all. */
static pith_status read_tensor(pith_gguf_scan *scan, uint64_t index, pith_gguf_tensor *tensor) {
    pith_status status =
        pith_gguf_scan_name(scan, "tensor name", index, PITH_GGUF_MAX_NAME_BYTES, &tensor->name);
    if (status == PITH_OK) status = read_dims(scan, tensor);
    if (status == PITH_OK) status = read_type(scan, tensor);
    if (status) return status;
    tensor->offset = pith_cursor_read_u64(&scan->cursor);
    if (tensor->offset % scan->gguf->alignment != 0)
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s: tensor \"%s\" has offset %" PRIu64
                         ", no multiple of the alignment %" PRIu32,
                         scan->label.text, pith_gguf_show(tensor->name).text, tensor->offset,
                         scan->gguf->alignment);
    return PITH_OK;
}

/* Makes offsets absolute and finds the tensor that ends last: the one to name when bytes lack. */
static pith_status place_all(pith_gguf_scan *scan, uint64_t data_start) {
    pith_gguf *gguf = scan->gguf;
    const pith_gguf_tensor *last = NULL;
    uint64_t last_end = 0;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        pith_gguf_tensor *tensor = &gguf->tensors[i];
        uint64_t end;
        if (!pith_u64_add(tensor->offset, data_start, &tensor->offset) ||
            !pith_u64_add(tensor->offset, tensor->bytes, &end))
            return pith_fail(scan->error, PITH_ERROR_FORMAT,
                             "%s: tensor \"%s\" of %" PRIu64
                             " bytes ends beyond 2^64, the file has %" PRIu64 " bytes",
                             scan->label.text, pith_gguf_show(tensor->name).text, tensor->bytes,
                             scan->file_bytes);
        if (last && end <= last_end) continue;
        last = tensor;
        last_end = end;
    }
    gguf->is_cut = last_end > scan->file_bytes;
    if (gguf->is_cut && !gguf->takes_header)
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s: tensor \"%s\" ends at byte %" PRIu64 ", the file has %" PRIu64
                         " bytes: it is cut short (fetch it again) or broken",
                         scan->label.text, pith_gguf_show(last->name).text, last_end,
                         scan->file_bytes);
    return PITH_OK;
}

/* ---- Overlaps -------------------------------------------------------------------------------- */

/* By offset, and as the file lists them where that is the same. */
static bool lies_before(const pith_gguf_tensor *tensors, uint32_t a, uint32_t b) {
    if (tensors[a].offset != tensors[b].offset) return tensors[a].offset < tensors[b].offset;
    return a < b;
}

static void sift_down(uint32_t *order, const pith_gguf_tensor *tensors, size_t root, size_t count) {
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && lies_before(tensors, order[child], order[child + 1])) child++;
        if (!lies_before(tensors, order[root], order[child])) return;
        uint32_t swapped = order[root];
        order[root] = order[child];
        order[child] = swapped;
        root = child;
    }
}

/* Heap sort by offset: n log n for every order a file may choose. */
static void sort_by_offset(uint32_t *order, const pith_gguf_tensor *tensors, size_t count) {
    for (size_t i = count / 2; i-- > 0;) sift_down(order, tensors, i, count);
    for (size_t end = count; end-- > 1;) {
        uint32_t largest = order[0];
        order[0] = order[end];
        order[end] = largest;
        sift_down(order, tensors, 0, end);
    }
}

static pith_status check_neighbours(pith_gguf_scan *scan, const uint32_t *order, size_t count) {
    const pith_gguf_tensor *tensors = scan->gguf->tensors;
    for (size_t i = 1; i < count; i++) {
        const pith_gguf_tensor *before = &tensors[order[i - 1]], *after = &tensors[order[i]];
        if (after->offset >= before->offset + before->bytes) continue;
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s: tensor \"%s\" starts at byte %" PRIu64
                         ", inside tensor \"%s\" which ends at %" PRIu64,
                         scan->label.text, pith_gguf_show(after->name).text, after->offset,
                         pith_gguf_show(before->name).text, before->offset + before->bytes);
    }
    return PITH_OK;
}

static pith_status check_overlap(pith_gguf_scan *scan) {
    const pith_gguf *gguf = scan->gguf;
    uint32_t *order = pith_alloc_array(gguf->n_tensors, sizeof *order);
    if (!order)
        return pith_fail_memory(scan->error, "the order of tensors",
                                gguf->n_tensors * sizeof *order);
    size_t count = 0;
    uint64_t end = 0;
    bool in_order = true;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const pith_gguf_tensor *tensor = &gguf->tensors[i];
        if (tensor->bytes == 0) continue; /* occupies nothing */
        order[count++] = (uint32_t)i;
        in_order = in_order && tensor->offset >= end;
        end = tensor->offset + tensor->bytes;
    }
    if (!in_order) sort_by_offset(order, gguf->tensors, count);
    pith_status status = check_neighbours(scan, order, count);
    pith_free(order);
    return status;
}

pith_status pith_gguf_tensors_read(pith_gguf_scan *scan, uint64_t n_tensors) {
    const pith_span none = {NULL, 0};
    pith_gguf *gguf = scan->gguf;
    pith_status status = pith_gguf_scan_need(scan, n_tensors * PITH_GGUF_MIN_TENSOR_RECORD,
                                             "the list of tensors", none);
    if (status) return status;
    size_t count = (size_t)n_tensors; /* at most PITH_GGUF_MAX_TENSORS */
    gguf->tensors = pith_alloc_zero(count, sizeof *gguf->tensors);
    if (!gguf->tensors || !pith_map_reserve(&gguf->names, count))
        return pith_fail_memory(scan->error, "the list of tensors", count * sizeof *gguf->tensors);
    for (size_t i = 0; i < count; i++) {
        pith_gguf_tensor *tensor = &gguf->tensors[i];
        status = read_tensor(scan, i, tensor);
        if (status) return status;
        gguf->n_tensors = i + 1;
        int32_t first;
        int inserted = pith_map_insert(&gguf->names, tensor->name, (int32_t)i, &first);
        if (inserted < 0) return pith_fail_memory(scan->error, "the index of tensors", count);
        if (inserted == 0)
            return pith_fail(scan->error, PITH_ERROR_FORMAT,
                             "%s: tensor name \"%s\" is there twice, as tensors %" PRId32
                             " and %zu",
                             scan->label.text, pith_gguf_show(tensor->name).text, first, i);
    }
    uint64_t mask = gguf->alignment - 1, data_start = (scan->cursor.position + mask) & ~mask;
    status = place_all(scan, data_start);
    return status ? status : check_overlap(scan);
}
