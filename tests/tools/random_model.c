/* SPDX-License-Identifier: Apache-2.0
 * pith-random-model: writes a GGUF model of a real shape with random weights. Same options, same bytes.
 *
 *     pith-random-model --arch llama --shape 1b --type Q4_K_M --out 1b.gguf
 *     pith-random-model --arch llama --layers 4 --embd 512 --ff 1024 --heads 8 --kv-heads 2 --head-dim 64 --vocab 1000 ...
 *
 * A shape is the base, explicit numbers replace its own. Progress goes to stderr. Read next: random_shape.c. */
#include "random_model.h"

#include "base/clock.h"
#include "base/float16.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 4 << 20, VECTOR_LIMIT = 1 << 20 };

typedef struct options {
    random_shape shape;
    const random_recipe *recipe;
    const char *out;
    uint64_t seed;
    bool pure;
} options;

typedef struct progress {
    uint64_t done, total, started, shown; /* bytes, bytes, ns, ns */
} progress;

static int usage(const char *what, const char *which) {
    if (what) {
        fprintf(stderr, "pith-random-model: %s%s (--help lists what there is)\n", what,
                which ? which : "");
        return 2;
    }
    fprintf(stderr,
            "usage: pith-random-model [--arch A] [--shape S] [--type T] [--layers N] [--embd N]\n"
            "         [--ff N] [--heads N] [--kv-heads N] [--head-dim N] [--vocab N] [--ctx N]\n"
            "         [--tied 0|1] [--pure] [--seed N] --out FILE\n");
    random_shape_print_all();
    return 0;
}

/* ---- Options ------------------------------------------------------------------------------------------------ */

static const char *find_option(int argc, char **argv, const char *name) {
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return NULL;
}

/* Every argument must be an option we know; a misspelt one must not be ignored. */
static const char *find_unknown(int argc, char **argv) {
    static const char *const known[] = {"--arch", "--shape", "--type",     "--layers",   "--embd",
                                        "--ff",   "--heads", "--kv-heads", "--head-dim", "--vocab",
                                        "--ctx",  "--tied",  "--seed",     "--out"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--pure") == 0) continue;
        size_t k = 0, n = sizeof known / sizeof *known;
        while (k < n && strcmp(argv[i], known[k]) != 0) k++;
        if (k == n || i + 1 == argc) return argv[i];
        i++; /* its value */
    }
    return NULL;
}

static bool read_number(int argc, char **argv, const char *name, uint32_t *value) {
    const char *text = find_option(argc, argv, name);
    if (!text) return true;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number > UINT32_MAX) return false;
    *value = (uint32_t)number;
    return true;
}

static const char *read_numbers(int argc, char **argv, options *o) {
    uint32_t tied = o->shape.tied, seed = 1;
    const struct {
        const char *name;
        uint32_t *value;
    } numbers[] = {
        {"--layers", &o->shape.n_layer},
        {"--embd", &o->shape.n_embd},
        {"--ff", &o->shape.n_ff},
        {"--heads", &o->shape.n_head},
        {"--kv-heads", &o->shape.n_head_kv},
        {"--head-dim", &o->shape.head_dim},
        {"--vocab", &o->shape.n_vocab},
        {"--ctx", &o->shape.n_ctx},
        {"--tied", &tied},
        {"--seed", &seed},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!read_number(argc, argv, numbers[i].name, numbers[i].value)) return numbers[i].name;
    o->shape.tied = tied != 0;
    o->seed = seed;
    return NULL;
}

static const char *check_shape(const random_shape *s) {
    if (s->n_layer < 1 || s->n_layer > 512) return "--layers must be 1 to 512";
    if (s->n_embd < 32 || s->n_embd > VECTOR_LIMIT || s->n_embd % 32)
        return "--embd must be a multiple of 32, at most 1048576";
    if (s->n_ff < 32 || s->n_ff > VECTOR_LIMIT || s->n_ff % 32)
        return "--ff must be a multiple of 32, at most 1048576";
    if (s->head_dim < 2 || s->head_dim > 1024 || s->head_dim % 2)
        return "--head-dim must be even, at most 1024";
    if (s->n_head < 1 || s->n_head > 1024 || s->n_head_kv < 1 || s->n_head % s->n_head_kv)
        return "--heads must be at most 1024 and a multiple of --kv-heads";
    if (s->n_vocab < RANDOM_MIN_VOCAB || s->n_vocab > 1 << 20)
        return "--vocab must be 264 to 1048576";
    if (s->n_ctx < 1) return "--ctx must be at least 1";
    return NULL;
}

/* NULL, or what is wrong; *which is the argument that is. */
static const char *read_options(int argc, char **argv, options *o, const char **which) {
    *which = find_unknown(argc, argv);
    if (*which) return "unknown option, or its value is missing: ";
    const char *arch_name = find_option(argc, argv, "--arch"),
               *shape_name = find_option(argc, argv, "--shape");
    const char *type_name = find_option(argc, argv, "--type");
    random_arch arch = RANDOM_LLAMA;
    while (arch_name && arch < RANDOM_ARCH_COUNT && strcmp(arch_name, random_arch_name(arch)) != 0)
        arch++;
    *which = arch_name;
    if (arch == RANDOM_ARCH_COUNT) return "unknown architecture ";
    const random_shape *shape = random_shape_find(arch, shape_name ? shape_name : "tiny");
    *which = shape_name;
    if (!shape) return "this architecture has no shape ";
    o->shape = *shape;
    *which = type_name;
    o->recipe = random_recipe_find(type_name ? type_name : "Q4_K_M");
    if (!o->recipe) return "unknown type ";
    *which = read_numbers(argc, argv, o);
    if (*which) return "a number is needed after ";
    const char *fault = check_shape(&o->shape);
    if (fault) return fault;
    for (int i = 1; i < argc; i++) o->pure = o->pure || strcmp(argv[i], "--pure") == 0;
    o->out = find_option(argc, argv, "--out");
    return o->out ? NULL : "--out FILE is needed";
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

static void show(progress *p, bool last) {
    uint64_t now = pith_clock_ns();
    if (!last && now - p->shown < 500000000u) return;
    p->shown = now;
    double seconds = (double)(now - p->started) / 1e9, megabytes = (double)p->done / 1e6;
    fprintf(stderr, "\r%5.1f %%  %.0f of %.0f MB, %.0f MB/s%s",
            100.0 * (double)p->done / (double)p->total, megabytes, (double)p->total / 1e6,
            seconds > 0 ? megabytes / seconds : 0.0, last ? "\n" : "  ");
}

/* The divisors of llama3 rope scaling. */
static float rope_divisor(const random_shape *shape, uint64_t i) {
    double frequency = pow((double)shape->rope_base, -2.0 * (double)i / shape->head_dim);
    double wavelength = 2 * 3.14159265358979323846 / frequency, original = 8192;
    if (wavelength < original / 4) return 1.0f;
    if (wavelength > original) return shape->rope_factor;
    double smooth = (original / wavelength - 1) / 3;
    return (float)(1 / ((1 - smooth) / (double)shape->rope_factor + smooth));
}

static void fill_vector(const random_tensor *tensor, const random_shape *shape, pith_rng *rng,
                        uint8_t *bytes) {
    for (uint64_t i = 0; i < tensor->ne[0]; i++) {
        float value = tensor->fill == RANDOM_ONES ? 1.0f
                      : tensor->fill == RANDOM_ROPE_FREQS
                          ? rope_divisor(shape, i)
                          : (float)(pith_rng_uniform(rng) - 0.5) * 0.2f;
        uint32_t bits = pith_bits_of_f32(value);
        for (size_t b = 0; b < 4; b++) bytes[4 * i + b] = (uint8_t)(bits >> 8 * b);
    }
}

static pith_status write_weight(pith_gguf_writer *writer, const random_tensor *tensor,
                                pith_rng *rng, uint8_t *piece, progress *p, pith_error *error) {
    random_filler filler;
    if (!random_filler_init(&filler, tensor->type, tensor->deviation))
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "type %s cannot be filled",
                         pith_type_get((uint32_t)tensor->type)->name);
    uint64_t whole = PIECE_BYTES / filler.block_bytes * filler.block_bytes;
    for (uint64_t at = 0; at < tensor->bytes; at += whole) {
        size_t size = (size_t)(tensor->bytes - at < whole ? tensor->bytes - at : whole);
        random_filler_run(&filler, rng, piece, size);
        pith_status status = pith_gguf_write_data(writer, piece, size, error);
        if (status) return status;
        p->done += size;
        show(p, false);
    }
    return PITH_OK;
}

static pith_status write_tensors(pith_gguf_writer *writer, const random_tensor *tensors, size_t n,
                                 const options *o, pith_error *error) {
    pith_status status = PITH_OK;
    progress p = {.started = pith_clock_ns()};
    pith_rng rng;
    pith_rng_init(&rng, o->seed);
    for (size_t i = 0; i < n && !status; i++) {
        p.total += tensors[i].bytes;
        status = pith_gguf_write_tensor(writer, tensors[i].name, tensors[i].type, tensors[i].n_dims,
                                        tensors[i].ne, error);
    }
    uint8_t *piece = malloc(PIECE_BYTES);
    if (!piece) return pith_fail_memory(error, "a buffer", PIECE_BYTES);
    for (size_t i = 0; i < n && !status; i++) {
        if (tensors[i].fill == RANDOM_WEIGHT) {
            status = write_weight(writer, &tensors[i], &rng, piece, &p, error);
            continue;
        }
        fill_vector(&tensors[i], &o->shape, &rng, piece);
        status = pith_gguf_write_data(writer, piece, (size_t)tensors[i].bytes, error);
        p.done += tensors[i].bytes;
    }
    free(piece);
    if (!status) show(&p, true);
    return status;
}

static pith_status write_model(const options *o, pith_error *error) {
    pith_gguf_writer *writer;
    size_t n = 0;
    random_tensor *tensors = random_tensor_list(&o->shape, o->recipe, o->pure, &n);
    if (!tensors) return pith_fail_memory(error, "the list of tensors", 0);
    pith_status status = pith_gguf_writer_new(o->out, 3, 32, &writer, error);
    if (!status) {
        pith_rng rng;
        pith_rng_init(&rng, o->seed + 1);
        status = random_write_keys(writer, &o->shape, o->recipe, error);
        if (!status) status = random_write_vocab(writer, &o->shape, &rng, error);
        if (!status) status = write_tensors(writer, tensors, n, o, error);
        if (!status) status = pith_gguf_writer_finish(writer, error);
        pith_gguf_writer_free(writer);
    }
    free(tensors);
    return status;
}

int main(int argc, char **argv) {
    options o = {0};
    const char *which = NULL;
    if (argc == 1 || strcmp(argv[1], "--help") == 0) return usage(NULL, NULL);
    const char *fault = read_options(argc, argv, &o, &which);
    if (fault) return usage(fault, which);
    pith_error error = {PITH_OK, ""};
    pith_status status = write_model(&o, &error);
    if (status) fprintf(stderr, "\npith-random-model: %s\n", error.text);
    return status ? 1 : 0;
}
