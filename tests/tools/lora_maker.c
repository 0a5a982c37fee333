/* SPDX-License-Identifier: Apache-2.0
 * pith-random-adapter: writes a LoRA with random values for the linear layers of a GGUF model. Same options, same bytes.
 *
 *     pith-random-adapter --model 0.5b.gguf --rank 16 --type F16 --out lora.gguf
 *
 * The values are small, so that the model still answers: for measuring time and memory, and for tests. */
#include "base/memory.h"
#include "base/rng.h"
#include "gguf/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 1024, NAME_BYTES = 160 };

typedef struct options {
    const char *model, *out;
    uint32_t rank;
    pith_type type;
    uint64_t seed;
} options;

static int usage(const char *what) {
    fprintf(stderr,
            "pith-random-adapter: %s\nusage: pith-random-adapter --model M.gguf --out L.gguf "
            "[--rank 16] [--type F16] [--seed 1]\n",
            what);
    return 2;
}

/* NULL, or what is wrong. */
static const char *read_options(int argc, char **argv, options *o) {
    *o = (options){.rank = 16, .type = PITH_TYPE_F16, .seed = 1};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value) return "an option needs a value";
        if (strcmp(argv[i], "--model") == 0)
            o->model = value;
        else if (strcmp(argv[i], "--out") == 0)
            o->out = value;
        else if (strcmp(argv[i], "--rank") == 0)
            o->rank = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--type") != 0 || !pith_type_find(value, &o->type))
            return "unknown option or type";
    }
    if (!o->model || !o->out) return "--model and --out are needed";
    if (o->rank < 1 || o->rank > MAX_RANK) return "--rank is 1 to 1024";
    return NULL;
}

/* A matrix of a layer, attention or feed forward; no router. */
static bool is_linear(const pith_gguf_tensor *tensor) {
    static const char *const parts[] = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                        "ffn_gate", "ffn_up", "ffn_down"};
    const char *name = tensor->name.data,
               *at = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
    for (size_t i = 0; at && i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(at + 1, parts[i], n) == 0 &&
            (strcmp(at + 1 + n, ".weight") == 0 || strcmp(at + 1 + n, "_exps.weight") == 0))
            return true;
    }
    return false;
}

/* A: {in, rank}, B: {rank, out}, of each expert. */
static void shape_of(const pith_gguf_tensor *tensor, const options *o, bool is_b, uint64_t ne[4]) {
    ne[0] = is_b ? o->rank : tensor->ne[0];
    ne[1] = is_b ? tensor->ne[1] : o->rank;
    ne[2] = tensor->ne[2];
    ne[3] = 1;
}

static pith_status declare(pith_gguf_writer *writer, const pith_gguf_tensor *tensor,
                           const options *o, bool is_b, pith_error *error) {
    char name[NAME_BYTES];
    uint64_t ne[4];
    shape_of(tensor, o, is_b, ne);
    snprintf(name, sizeof name, "%s.lora_%c", tensor->name.data, is_b ? 'b' : 'a');
    return pith_gguf_write_tensor(writer, name, o->type, ne[2] > 1 ? 3 : 2, ne, error);
}

static pith_status send(pith_gguf_writer *writer, const pith_gguf_tensor *tensor, const options *o,
                        bool is_b, pith_rng *rng, pith_error *error) {
    uint64_t ne[4], row_bytes = 0;
    shape_of(tensor, o, is_b, ne);
    if (!pith_type_row_bytes(o->type, ne[0], &row_bytes))
        return pith_fail(error, PITH_ERROR_ARGUMENT, "rows of %llu do not fit the type",
                         (unsigned long long)ne[0]);
    size_t n = (size_t)ne[0];
    float *row = pith_alloc_array(n, sizeof *row);
    uint8_t *bytes = pith_alloc((size_t)row_bytes);
    pith_status status = row && bytes ? PITH_OK : pith_fail_memory(error, "a row", row_bytes);
    double size = (is_b ? 0.02 : 1.0) / sqrt((double)ne[0]);
    for (uint64_t r = 0; r < ne[1] * ne[2] && status == PITH_OK; r++) {
        for (size_t i = 0; i < n; i++) row[i] = (float)(size * (2 * pith_rng_uniform(rng) - 1));
        pith_type_get((uint32_t)o->type)->encode(row, bytes, n, NULL);
        status = pith_gguf_write_data(writer, bytes, (size_t)row_bytes, error);
    }
    pith_free(row);
    pith_free(bytes);
    return status;
}

static pith_status write_keys(pith_gguf_writer *writer, const pith_gguf *gguf, const options *o,
                              pith_error *error) {
    pith_span arch = {"", 0};
    pith_status status = pith_gguf_get_string(gguf, "general.architecture", &arch, NULL, error);
    if (status == PITH_OK)
        status = pith_gguf_write_string(writer, "general.type", "adapter", error);
    if (status == PITH_OK)
        status = pith_gguf_write_string(writer, "general.architecture", arch.data, error);
    if (status == PITH_OK) status = pith_gguf_write_string(writer, "adapter.type", "lora", error);
    if (status == PITH_OK)
        status = pith_gguf_write_f32(writer, "adapter.lora.alpha", (float)(2 * o->rank), error);
    return status;
}

static pith_status write_all(pith_gguf_writer *writer, const pith_gguf *gguf, const options *o,
                             pith_error *error) {
    pith_rng rng;
    pith_rng_init(&rng, o->seed);
    pith_status status = write_keys(writer, gguf, o, error);
    for (int pass = 0; pass < 2; pass++) /* declared, then sent */
        for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
            const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
            for (int half = 0; half < 2 && is_linear(tensor) && status == PITH_OK; half++)
                status = pass ? send(writer, tensor, o, half, &rng, error)
                              : declare(writer, tensor, o, half, error);
        }
    return status == PITH_OK ? pith_gguf_writer_finish(writer, error) : status;
}

int main(int argc, char **argv) {
    options o;
    pith_gguf *gguf = NULL;
    pith_gguf_writer *writer = NULL;
    pith_error error = {0};
    const char *fault = read_options(argc, argv, &o);
    if (fault) return usage(fault);
    pith_status status = pith_gguf_open_path(o.model, &gguf, &error);
    if (status == PITH_OK) status = pith_gguf_writer_new(o.out, 3, 32, &writer, &error);
    if (status == PITH_OK) status = write_all(writer, gguf, &o, &error);
    if (writer) pith_gguf_writer_free(writer);
    pith_gguf_close(gguf);
    if (status != PITH_OK) fprintf(stderr, "pith-random-adapter: %s\n", error.text);
    return status == PITH_OK ? 0 : 1;
}
