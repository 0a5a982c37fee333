/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights: declared one by one from file tensors, then loaded all at once.
 *
 *   pack:  one region, 2 MiB aligned, huge pages; each tensor starts at a multiple of 64 bytes
 *          | tensor 0 (panels) | tensor 1 (panels) | embeddings (rows) | ...
 *   mmap:  every tensor stays where the file's mapping has it
 *   vectors (norm weights, biases) are small and become f32 arrays in both modes
 *
 * Invariant: after a successful load every declared weight has data, and values where it has the
 * VECTOR role; nothing changes until free. A load that fails leaves the weights declared and
 * without data. How bytes move is cpu/pack.c's business; what the engine allocates is not
 * counted here.
 */
#include "backend/weight_store.h"

#include "backend/cpu/pack.h"
#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

enum { TENSOR_ALIGNMENT = 64, VALUES_PADDING = 16, MIB = 1 << 20 };
#define WARM_SHARE 0.9 /* of a file in the page cache: the disk is no matter any more */

pith_status pith_weights_new(pith_weights **out, pith_error *error) {
    *out = pith_alloc_zero(1, sizeof **out);
    return *out ? PITH_OK : pith_fail_memory(error, "weights", sizeof **out);
}

void pith_weights_free(pith_weights *weights) {
    if (!weights) return;
    for (size_t i = 0; i < weights->n; i++) {
        pith_free_aligned(weights->entries[i]->values);
        pith_free(weights->entries[i]->name);
        pith_free(weights->entries[i]);
    }
    pith_free(weights->entries);
    pith_map_deinit(&weights->names);
    pith_region_close(&weights->region);
    pith_free(weights);
}

/* ---- Declaring ---- */

static bool same_shape(const pith_weight_entry *entry, const pith_weight_source *source) {
    return entry->weight.type == source->type && entry->source == source->source &&
           entry->offset == source->offset &&
           memcmp(entry->weight.ne, source->ne, sizeof source->ne) == 0;
}

/* Sizes that later code multiplies without checks: rows and bytes fit, the file holds what the
 * shape says. */
static pith_status check_shape(const pith_weight_source *source, pith_error *error) {
    uint64_t bytes, count = 1;
    if (!pith_type_get((uint32_t)source->type))
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "tensor %s: type %d is not known",
                         source->name, (int)source->type);
    bool fits = pith_type_row_bytes(source->type, source->ne[0], &bytes);
    for (int i = 0; i < 4; i++)
        fits = fits && source->ne[i] && source->ne[i] <= INT32_MAX &&
               pith_u64_mul(count, source->ne[i], &count);
    for (int i = 1; i < 4; i++) fits = fits && pith_u64_mul(bytes, source->ne[i], &bytes);
    if (!fits || bytes > SIZE_MAX / 32)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "tensor %s: a shape of %" PRIu64 " x %" PRIu64 " x %" PRIu64
                         " is not possible for its type",
                         source->name, source->ne[0], source->ne[1], source->ne[2]);
    if (bytes != source->bytes)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "tensor %s: its shape needs %" PRIu64 " bytes, the file gives %" PRIu64,
                         source->name, bytes, source->bytes);
    if (!source->source) return PITH_OK;
    uint64_t end, size = pith_source_size(source->source);
    if (!pith_u64_add(source->offset, bytes, &end) || end > size)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "tensor %s ends at byte %" PRIu64 ", but %s has only %" PRIu64
                         "; the file was cut short, fetch it again",
                         source->name, end, pith_source_name(source->source), size);
    return PITH_OK;
}

static pith_weight_entry *entry_new(const pith_weight_source *source, unsigned roles) {
    pith_weight_entry *entry = pith_alloc_zero(1, sizeof *entry);
    char *name = pith_copy_text(source->name, strlen(source->name));
    if (!entry || !name) {
        pith_free(entry);
        pith_free(name);
        return NULL;
    }
    entry->name = name;
    entry->source = source->source;
    entry->offset = source->offset;
    entry->weight = (pith_weight){.name = name,
                                  .type = source->type,
                                  .n_dims = source->n_dims,
                                  .bytes = source->bytes,
                                  .roles = roles};
    memcpy(entry->weight.ne, source->ne, sizeof source->ne);
    return entry;
}

static bool has_room(pith_weights *weights) {
    if (weights->n < weights->capacity) return true;
    size_t capacity = weights->capacity ? weights->capacity * 2 : 64, bytes;
    if (!pith_size_mul(capacity, sizeof(void *), &bytes)) return false;
    pith_weight_entry **entries = pith_realloc(weights->entries, bytes);
    if (!entries) return false;
    weights->entries = entries;
    weights->capacity = capacity;
    return true;
}

pith_status pith_weights_add(pith_weights *weights, const pith_weight_source *source,
                             unsigned roles, const pith_weight **out, pith_error *error) {
    *out = NULL;
    if (weights->is_loaded)
        return pith_fail(error, PITH_ERROR_INTERNAL, "tensor %s was declared after loading",
                         source->name);
    int32_t at;
    if (pith_map_find(&weights->names, pith_span_of(source->name), &at)) {
        pith_weight_entry *entry = weights->entries[at];
        if (!same_shape(entry, source))
            return pith_fail(error, PITH_ERROR_FORMAT, "tensor %s exists twice", source->name);
        entry->weight.roles |= roles;
        *out = &entry->weight;
        return PITH_OK;
    }
    pith_status status = check_shape(source, error);
    if (status) return status;
    pith_weight_entry *entry =
        weights->n < INT32_MAX && has_room(weights) ? entry_new(source, roles) : NULL;
    if (!entry ||
        pith_map_insert(&weights->names, pith_span_of(entry->name), (int32_t)weights->n, &at) < 0) {
        if (entry) pith_free(entry->name);
        pith_free(entry);
        return pith_fail_memory(error, "the list of weights", sizeof *entry);
    }
    entry->weight.index = (uint32_t)weights->n;
    weights->entries[weights->n++] = entry;
    *out = &entry->weight;
    return PITH_OK;
}

const pith_weight *pith_weights_find(const pith_weights *weights, pith_span name) {
    int32_t at;
    return pith_map_find(&weights->names, name, &at) ? &weights->entries[at]->weight : NULL;
}

/* ---- Deciding where tensors go ---- */

static uint64_t round_up(uint64_t n, uint64_t unit) {
    return (n + unit - 1) / unit * unit;
}

uint64_t pith_weight_values_bytes(const pith_weight_entry *entry) {
    const uint64_t *ne = entry->weight.ne;
    return round_up(ne[0] * ne[1] * ne[2] * ne[3], VALUES_PADDING) * sizeof(float);
}

void pith_weights_lay_out(pith_weights *weights, pith_load mode, uint32_t features) {
    bool packed = mode == PITH_LOAD_PACK;
    weights->mode = mode;
    weights->tensor_bytes = weights->vector_bytes = 0;
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight_entry *entry = weights->entries[i];
        if (pith_weight_is_vector(entry)) weights->vector_bytes += pith_weight_values_bytes(entry);
        if (!pith_weight_is_tensor(entry)) continue;
        entry->memory_offset = weights->tensor_bytes;
        uint64_t bytes = pith_pack_layout(&entry->weight, packed, features);
        weights->tensor_bytes += round_up(bytes, TENSOR_ALIGNMENT);
    }
}

static pith_status refuse(uint64_t need, uint64_t have, const char *whose, const char *advice,
                          pith_error *error) {
    return pith_fail(error, PITH_ERROR_MEMORY,
                     "the weights need %" PRIu64 " bytes (%" PRIu64 " MiB), %s %" PRIu64
                     " bytes; %s",
                     need, (need + MIB - 1) / MIB, whose, have, advice);
}

static const char pack_advice[] =
    "load with mmap, raise the limit, or take a model with smaller weights";

bool pith_weights_leave_room(double bytes, double available) {
    double left = available - bytes;
    return left >= 0.3 * available && left >= 96.0 * MIB;
}

/* Whether packed weights may be made: against the caller's limit and what the system has. */
static pith_status check_memory(uint64_t need, const pith_weights_options *options, bool leave_room,
                                pith_error *error) {
    if (options->memory_limit && need > options->memory_limit)
        return refuse(need, options->memory_limit, "the limit is", pack_advice, error);
    uint64_t available = pith_memory_available();
    bool fits =
        leave_room ? pith_weights_leave_room((double)need, (double)available) : need <= available;
    if (available && !fits) return refuse(need, available, "the system has", pack_advice, error);
    return PITH_OK;
}

static pith_status map_all(pith_weights *weights, pith_error *error) {
    for (size_t i = 0; i < weights->n; i++) {
        pith_source *source = weights->entries[i]->source;
        if (!pith_weight_is_tensor(weights->entries[i]) || pith_source_map(source)) continue;
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "%s cannot be mapped into memory; load with pack instead",
                         pith_source_name(source));
    }
    return PITH_OK;
}

static pith_status choose_pack(pith_weights *weights, const pith_weights_options *options,
                               bool leave_room, pith_error *error) {
    pith_weights_lay_out(weights, PITH_LOAD_PACK, options->features);
    uint64_t need = weights->tensor_bytes + weights->vector_bytes;
    pith_status status = check_memory(need, options, leave_room, error);
    if (status) return status;
    if (weights->tensor_bytes && !pith_region_open(&weights->region, weights->tensor_bytes, true))
        return pith_fail(error, PITH_ERROR_MEMORY,
                         "no memory for the weights: %" PRIu64 " bytes could not be had; %s",
                         weights->tensor_bytes, pack_advice);
    weights->mode = PITH_LOAD_PACK;
    return PITH_OK;
}

static pith_status choose_mmap(pith_weights *weights, const pith_weights_options *options,
                               pith_error *error) {
    pith_weights_lay_out(weights, PITH_LOAD_MMAP, options->features);
    if (options->memory_limit && weights->vector_bytes > options->memory_limit)
        return refuse(weights->vector_bytes, options->memory_limit, "the limit is",
                      "raise the limit", error);
    pith_status status = map_all(weights, error);
    if (!status) weights->mode = PITH_LOAD_MMAP;
    return status;
}

/* AUTO packs what leaves room. Past that mmap, and where the sources cannot be mapped, pack up to
 * what there is. */
static pith_status choose_mode(pith_weights *weights, const pith_weights_options *options,
                               pith_error *error) {
    if (options->load == PITH_LOAD_PACK) return choose_pack(weights, options, false, error);
    if (options->load == PITH_LOAD_MMAP) return choose_mmap(weights, options, error);
    if (choose_pack(weights, options, true, error) == PITH_OK) return PITH_OK;
    if (choose_mmap(weights, options, error) == PITH_OK) return PITH_OK;
    return choose_pack(weights, options, false, error);
}

/* ---- Loading ---- */

static pith_status load_vector(pith_weight_entry *entry, bool check, pith_error *error) {
    pith_weight *weight = &entry->weight;
    size_t bytes = (size_t)pith_weight_values_bytes(entry);
    size_t n = (size_t)(weight->ne[0] * weight->ne[1] * weight->ne[2] * weight->ne[3]);
    const pith_type_info *type = pith_type_get((uint32_t)weight->type);
    float *values = pith_alloc_aligned(bytes);
    uint8_t *raw = pith_alloc((size_t)weight->bytes);
    pith_status status = PITH_OK;
    if (!values || !raw) status = pith_fail_memory(error, weight->name, bytes);
    if (!status)
        status = pith_source_read(entry->source, entry->offset, raw, (size_t)weight->bytes, error);
    if (!status && !type->decode)
        status = pith_fail(error, PITH_ERROR_UNSUPPORTED, "tensor %s: type %s has no float values",
                           weight->name, type->name);
    if (!status && check && pith_type_validate(weight->type, raw, n) >= 0)
        status = pith_fail(error, PITH_ERROR_FORMAT,
                           "tensor %s holds inf or NaN; the file is damaged, fetch it again",
                           weight->name);
    if (!status) {
        memset(values, 0, bytes);
        type->decode(raw, values, n);
        entry->values = values;
        weight->values = values;
    } else {
        pith_free_aligned(values);
    }
    pith_free(raw);
    return status;
}

static pith_status load_vectors(pith_weights *weights, bool check, pith_error *error) {
    pith_status status = PITH_OK;
    for (size_t i = 0; i < weights->n && !status; i++)
        if (pith_weight_is_vector(weights->entries[i]))
            status = load_vector(weights->entries[i], check, error);
    return status;
}

/* Share of the tensors' bytes that need no disk; -1: unknown. */
static double resident_share(const pith_pack_item *items, size_t n) {
    double all = 0, resident = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = items[i].weight->bytes;
        double share = pith_source_resident(items[i].source, items[i].offset, bytes);
        if (share < 0) return -1;
        all += (double)bytes;
        resident += share * (double)bytes;
    }
    return all > 0 ? resident / all : 1;
}

/* A file that the page cache can keep beside its packed copy is read through it, and the next start
 * finds it there. One that it cannot keep would push out others' data and be gone by then. */
static pith_pack_way settle_reading(const pith_weights *weights, pith_reading reading,
                                    const pith_pack_item *items, size_t n) {
    if (weights->mode == PITH_LOAD_MMAP) return (pith_pack_way){false, false};
    double share = resident_share(items, n), available = (double)pith_memory_available();
    pith_pack_way way = {.is_cold = share >= 0 && share < WARM_SHARE};
    double twice = 2 * (double)weights->tensor_bytes;
    bool keeps = available <= 0 || pith_weights_leave_room(twice, available);
    way.is_direct =
        reading == PITH_READ_DIRECT || (reading == PITH_READ_AUTO && way.is_cold && !keeps);
    for (size_t i = 0; i < n && way.is_direct; i++) (void)pith_source_begin_direct(items[i].source);
    return way;
}

static pith_status load_tensors(pith_weights *weights, const pith_weights_options *options,
                                pith_error *error) {
    pith_pack_item *items = pith_alloc_array(weights->n, sizeof *items);
    if (!items) return pith_fail_memory(error, "loading", weights->n * sizeof *items);
    size_t n = 0;
    bool mapped = weights->mode == PITH_LOAD_MMAP;
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight_entry *entry = weights->entries[i];
        if (!pith_weight_is_tensor(entry)) continue;
        uint8_t *memory = weights->region.data + entry->memory_offset;
        if (mapped) /* never written: in_place */
            memory = (uint8_t *)(uintptr_t)(pith_source_map(entry->source) + entry->offset);
        if (mapped) pith_source_prefetch(entry->source, entry->offset, entry->weight.bytes);
        items[n++] = (pith_pack_item){&entry->weight, entry->source, entry->offset, memory, mapped};
    }
    pith_pack_way way = settle_reading(weights, options->reading, items, n);
    pith_status status = pith_pack_run(items, n, options, &way, error);
    for (size_t i = 0; i < n && !status; i++) items[i].weight->data = items[i].memory;
    pith_free(items);
    return status;
}

static void unload(pith_weights *weights) {
    pith_region_close(&weights->region);
    weights->region = (pith_region){0};
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight_entry *entry = weights->entries[i];
        pith_free_aligned(entry->values);
        entry->values = NULL;
        entry->weight.values = NULL;
        entry->weight.data = NULL;
    }
}

pith_status pith_weights_load(pith_weights *weights, const pith_weights_options *options,
                              pith_error *error) {
    if (weights->is_loaded)
        return pith_fail(error, PITH_ERROR_INTERNAL, "the weights are loaded already");
    pith_status status = choose_mode(weights, options, error);
    if (!status) status = load_vectors(weights, options->check_tensors, error);
    if (!status) status = load_tensors(weights, options, error);
    if (status)
        unload(weights);
    else
        weights->is_loaded = true;
    return status;
}

pith_load pith_weights_mode(const pith_weights *weights) {
    return weights->mode;
}

uint64_t pith_weights_bytes(const pith_weights *weights) {
    return weights->tensor_bytes + weights->vector_bytes;
}

void pith_weight_decode_row(const pith_weight *weight, uint64_t row, float *out) {
    size_t k = (size_t)weight->ne[0];
    if (weight->layout == PITH_LAYOUT_PANELS) {
        const uint8_t *panel = weight->data + row / 16 * weight->panel_bytes;
        weight->panel_decode(panel, (uint32_t)(row % 16), out, (uint32_t)k);
    } else {
        pith_type_get((uint32_t)weight->type)
            ->decode(weight->data + row * weight->row_bytes, out, k);
    }
}
