/* SPDX-License-Identifier: Apache-2.0
 * For tests: one LoRA written in both of its formats, a GGUF file and a PEFT folder, by code that
 * shares nothing with what reads them. Values are random and fit F16, BF16 and F32 alike.
 *
 * B's rows are kept as GGUF has them; the PEFT writer puts those of q and k of a permuting family
 * back into the original order, and turns A of embeddings. */
#ifndef PITH_TESTS_ADAPTER_FILES_H
#define PITH_TESTS_ADAPTER_FILES_H

#include "base/rng.h"
#include "base/text.h"
#include "gguf/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <direct.h>
#else
#include <sys/stat.h>
#endif

enum { MADE_PAIRS_MAX = 32 };

typedef struct made_pair {
    const char *name;   /* "blk.0.attn_q.weight" */
    const char *module; /* "model.layers.0.self_attn.q_proj"; of experts with %d for the number */
    uint32_t n_in, n_out, n_slice; /* slices: experts; 1: none */
    uint32_t head_dim;             /* of q and k whose rows are permuted; 0: they are not */
    bool is_lookup;
    float *a, *b; /* [slice][rank][in], [slice][out][rank]; lookup: a [in][rank] */
} made_pair;

typedef struct made_adapter {
    made_pair pairs[MADE_PAIRS_MAX];
    size_t n;
    uint32_t rank;
    float alpha;
    pith_type type; /* F32, F16, BF16; of GGUF alone also others that encode */
    const char *arch;
    uint64_t seed;
} made_adapter;

/* Eight significant bits: exact in F16 and BF16. */
static float made_value(pith_rng *rng) {
    int whole = (int)(pith_rng_next(rng) % 255) - 127;
    return (float)whole / 512.0f;
}

static inline void made_fill(made_adapter *made) {
    pith_rng rng;
    pith_rng_init(&rng, made->seed);
    for (size_t i = 0; i < made->n; i++) {
        made_pair *p = &made->pairs[i];
        size_t n_a = (size_t)p->n_slice * p->n_in * made->rank;
        size_t n_b = (size_t)p->n_slice * p->n_out * made->rank;
        p->a = malloc(n_a * sizeof *p->a);
        p->b = malloc(n_b * sizeof *p->b);
        for (size_t j = 0; j < n_a; j++) p->a[j] = made_value(&rng);
        for (size_t j = 0; j < n_b; j++) p->b[j] = made_value(&rng);
    }
}

static inline void made_free(made_adapter *made) {
    for (size_t i = 0; i < made->n; i++) {
        free(made->pairs[i].a);
        free(made->pairs[i].b);
    }
    made->n = 0;
}

static size_t made_bytes(const made_adapter *made, uint32_t k, size_t rows) {
    uint64_t row = 0;
    pith_type_row_bytes(made->type, k, &row);
    return (size_t)row * rows;
}

/* Rows of k values as the adapter's type has them. */
static uint8_t *made_encode(const made_adapter *made, const float *values, uint32_t k,
                            size_t rows) {
    size_t bytes = made_bytes(made, k, rows);
    uint8_t *out = malloc(bytes);
    for (size_t r = 0; r < rows; r++)
        pith_type_get((uint32_t)made->type)
            ->encode(values + r * k, out + r * (bytes / rows), k, NULL);
    return out;
}

/* ---- GGUF ---- */

static inline pith_status made_declare(pith_gguf_writer *writer, const made_adapter *made) {
    pith_status status = PITH_OK;
    char name[128];
    for (size_t i = 0; i < made->n && status == PITH_OK; i++) {
        const made_pair *p = &made->pairs[i];
        uint32_t n_dims = p->n_slice > 1 ? 3 : 2, rank = made->rank;
        const uint64_t a[] = {p->is_lookup ? rank : p->n_in, p->is_lookup ? p->n_in : rank,
                              p->n_slice, 1};
        const uint64_t b[] = {rank, p->n_out, p->n_slice, 1};
        snprintf(name, sizeof name, "%s.lora_a", p->name);
        status = pith_gguf_write_tensor(writer, name, made->type, n_dims, a, NULL);
        snprintf(name, sizeof name, "%s.lora_b", p->name);
        if (status == PITH_OK)
            status = pith_gguf_write_tensor(writer, name, made->type, n_dims, b, NULL);
    }
    return status;
}

static inline pith_status made_send(pith_gguf_writer *writer, const made_adapter *made,
                                    const float *values, uint32_t k, size_t rows) {
    uint8_t *bytes = made_encode(made, values, k, rows);
    pith_status status = pith_gguf_write_data(writer, bytes, made_bytes(made, k, rows), NULL);
    free(bytes);
    return status;
}

static inline bool made_write_gguf(const made_adapter *made, const char *path) {
    pith_gguf_writer *writer = NULL;
    pith_status status = pith_gguf_writer_new(path, 3, 32, &writer, NULL);
    const char *const texts[][2] = {{"general.type", "adapter"},
                                    {"general.architecture", made->arch},
                                    {"adapter.type", "lora"}};
    for (int i = 0; i < 3 && status == PITH_OK; i++)
        status = pith_gguf_write_string(writer, texts[i][0], texts[i][1], NULL);
    if (status == PITH_OK)
        status = pith_gguf_write_f32(writer, "adapter.lora.alpha", made->alpha, NULL);
    if (status == PITH_OK) status = made_declare(writer, made);
    for (size_t i = 0; i < made->n && status == PITH_OK; i++) {
        const made_pair *p = &made->pairs[i];
        uint32_t k = p->is_lookup ? made->rank : p->n_in;
        size_t rows = (size_t)p->n_slice * (p->is_lookup ? p->n_in : made->rank);
        status = made_send(writer, made, p->a, k, rows);
        if (status == PITH_OK)
            status = made_send(writer, made, p->b, made->rank, (size_t)p->n_slice * p->n_out);
    }
    if (status == PITH_OK) status = pith_gguf_writer_finish(writer, NULL);
    if (writer) pith_gguf_writer_free(writer);
    return status == PITH_OK;
}

/* ---- PEFT ---- */

typedef struct made_peft {
    pith_buffer header, data;
} made_peft;

static inline void made_tensor(made_peft *out, const made_adapter *made, const char *name,
                               const float *values, const uint32_t shape[2]) {
    size_t begin = out->data.size, bytes = made_bytes(made, shape[1], shape[0]);
    uint8_t *encoded = made_encode(made, values, shape[1], shape[0]);
    pith_buffer_append(&out->data, encoded, bytes);
    free(encoded);
    pith_buffer_append_format(&out->header,
                              "%s\"base_model.model.%s\":{\"dtype\":\"%s\",\"shape\":[%u,%u],"
                              "\"data_offsets\":[%zu,%zu]}",
                              out->header.size > 1 ? "," : "", name,
                              pith_type_get((uint32_t)made->type)->name, shape[0], shape[1], begin,
                              begin + bytes);
}

/* One slice of a pair. */
static inline void made_slice(made_peft *out, const made_adapter *made, const made_pair *p,
                              uint32_t slice) {
    uint32_t rank = made->rank, half = p->head_dim / 2;
    const uint32_t shape_a[] = {rank, p->n_in}, shape_b[] = {p->n_out, rank};
    const float *a = p->a + (size_t)slice * rank * p->n_in;
    const float *b = p->b + (size_t)slice * rank * p->n_out;
    float *turned = malloc((size_t)rank * p->n_in * sizeof *turned);
    float *rows = malloc((size_t)rank * p->n_out * sizeof *rows);
    for (uint32_t i = 0; i < p->n_in; i++)
        for (uint32_t r = 0; r < rank; r++)
            turned[(size_t)r * p->n_in + i] = a[p->is_lookup ? i * rank + r : r * p->n_in + i];
    for (uint32_t row = 0; row < p->n_out; row++) {
        uint32_t to = row;
        if (p->head_dim) {
            uint32_t in_head = row % p->head_dim; /* 2 j + p goes to p half + j */
            to = row - in_head + in_head % 2 * half + in_head / 2;
        }
        memcpy(rows + (size_t)to * rank, b + (size_t)row * rank, rank * sizeof *rows);
    }
    char module[96], name[160];
    const char *number = strstr(p->module, "%d");
    if (number)
        snprintf(module, sizeof module, "%.*s%u%s", (int)(number - p->module), p->module, slice,
                 number + 2);
    else
        snprintf(module, sizeof module, "%s", p->module);
    snprintf(name, sizeof name, "%s.lora_%s", module, p->is_lookup ? "embedding_A" : "A.weight");
    made_tensor(out, made, name, turned, shape_a);
    snprintf(name, sizeof name, "%s.lora_%s", module, p->is_lookup ? "embedding_B" : "B.weight");
    made_tensor(out, made, name, rows, shape_b);
    free(turned);
    free(rows);
}

static inline void made_folder(const char *path) {
#ifdef _WIN32
    _mkdir(path);
#else
    mkdir(path, 0700);
#endif
}

static inline bool made_write_file(const char *folder, const char *name, const void *data,
                                   size_t size) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && ok;
}

/* header: NULL: the adapter's own. */
static inline bool made_write_safetensors(const char *folder, const char *header, size_t size,
                                          const pith_buffer *data) {
    pith_buffer file = {0};
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)size >> 8 * i);
    pith_buffer_append(&file, length, sizeof length);
    pith_buffer_append(&file, header, size);
    if (data->size) pith_buffer_append(&file, data->data, data->size);
    bool ok = made_write_file(folder, "adapter_model.safetensors", file.data, file.size);
    pith_buffer_deinit(&file);
    return ok;
}

/* config: NULL: what belongs to the adapter. */
static inline bool made_write_peft(const made_adapter *made, const char *folder,
                                   const char *config) {
    char own[256];
    made_peft out = {0};
    snprintf(own, sizeof own,
             "{\"peft_type\":\"LORA\",\"r\":%u,\"lora_alpha\":%g,\"bias\":\"none\"}", made->rank,
             (double)made->alpha);
    made_folder(folder);
    pith_buffer_append_text(&out.header, "{");
    for (size_t i = 0; i < made->n; i++)
        for (uint32_t s = 0; s < made->pairs[i].n_slice; s++)
            made_slice(&out, made, &made->pairs[i], s);
    pith_buffer_append_text(&out.header, ",\"__metadata__\":{\"format\":\"pt\"}}  ");
    if (!config) config = own;
    bool ok = made_write_file(folder, "adapter_config.json", config, strlen(config)) &&
              made_write_safetensors(folder, out.header.data, out.header.size, &out.data);
    pith_buffer_deinit(&out.header);
    pith_buffer_deinit(&out.data);
    return ok;
}

static inline void made_remove_peft(const char *folder) {
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors",
                                        "adapter_model.bin"};
    char path[1100];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
#ifdef _WIN32
    _rmdir(folder);
#else
    remove(folder);
#endif
}

#endif
