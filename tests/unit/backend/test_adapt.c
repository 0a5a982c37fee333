/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of adapters in the CPU backend: what they add agrees with the naive plan for every
 * operation that can be adapted; the same bits for any batch, thread count, tier and load mode;
 * sequences with different adapters in one step do not see each other; sequences without are not
 * touched; what does not fit is refused before anything runs.
 */
#include "cpu/cpu.h"
#include "naive_plan.h"
#include "support/brief.h"
#include "toy_model.h"

enum { N = 96, RANK = 64 };

static const pith_backend_options base_options = {
    .n_threads = 2, .step_limit = 256, .adapter_rank = RANK};

/* ---- Adapters with random values ---- */

typedef struct random_adapter {
    pith_delta *delta;
    pith_rng rng;
    uint32_t rank;
    pith_type type;
} random_adapter;

static void *random_rows(random_adapter *r, size_t n, double size) {
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = (float)(size * pith_rng_normal(&r->rng));
    if (r->type == PITH_TYPE_F32) return values;
    uint8_t *out = malloc(n * 2);
    pith_type_get((uint32_t)r->type)->encode(values, out, n, NULL);
    free(values);
    return out;
}

static void add_pair(random_adapter *r, const pith_weight *weight, bool is_lookup) {
    pith_error error = {0};
    uint32_t n_in = (uint32_t)weight->ne[is_lookup ? 1 : 0], slices = (uint32_t)weight->ne[2];
    uint32_t n_out = (uint32_t)weight->ne[is_lookup ? 0 : 1], rank = r->rank;
    pith_delta_source source = {.weight = weight, .is_lookup = is_lookup, .scale = 0.75f};
    source.a = is_lookup ? (pith_delta_rows){r->type, rank, n_in, slices, NULL}
                         : (pith_delta_rows){r->type, n_in, rank, slices, NULL};
    source.b = (pith_delta_rows){r->type, rank, n_out, slices, NULL};
    double size = is_lookup ? 0.3 : 1 / sqrt((double)n_in);
    void *a = random_rows(r, (size_t)n_in * rank * slices, size);
    void *b = random_rows(r, (size_t)n_out * rank * slices, 0.5 / sqrt((double)rank));
    source.a.data = a;
    source.b.data = b;
    if (pith_delta_add_pair(r->delta, &source, &error)) fail_msg("%s", error.text);
    free(a);
    free(b);
}

static void add_vector(random_adapter *r, uint32_t layer) {
    pith_error error = {0};
    float v[TOY_EMBD];
    for (int i = 0; i < TOY_EMBD; i++) v[i] = (float)(0.2 * pith_rng_normal(&r->rng));
    if (pith_delta_add_vector(r->delta, layer, v, TOY_EMBD, &error)) fail_msg("%s", error.text);
}

enum { WITH_ATTENTION = 1, WITH_FFN = 2, WITH_TABLES = 4, WITH_VECTORS = 8, WITH_ALL = 15 };

static pith_delta *random_delta(const toy *t, uint32_t features, uint64_t seed, uint32_t rank,
                                pith_type type, int what) {
    random_adapter r = {.rank = rank, .type = type};
    pith_rng_init(&r.rng, seed);
    assert_int_equal(pith_delta_new(features, &r.delta, NULL), PITH_OK);
    for (int i = 0; i < TOY_LAYERS; i++) {
        const pith_weight *attention[] = {t->q[i], t->k[i], t->v[i], t->o[i]};
        const pith_weight *ffn[] = {t->gate[i], t->up[i], t->down[i]};
        for (int j = 0; j < 4 && (what & WITH_ATTENTION); j++) add_pair(&r, attention[j], false);
        for (int j = 0; j < 3 && (what & WITH_FFN); j++) add_pair(&r, ffn[j], false);
    }
    if (what & WITH_FFN) add_pair(&r, t->router, false);
    if (what & WITH_TABLES) {
        add_pair(&r, t->embd, true);
        add_pair(&r, t->embd, false);
    }
    for (uint32_t i = 0; i <= TOY_LAYERS && (what & WITH_VECTORS); i++) add_vector(&r, i);
    return r.delta;
}

/* Also the sum in the middle of layer 1, which is an operation of its own, takes vectors: those of
 * layer TOY_LAYERS. */
static void mark_sum(toy *t) {
    for (uint32_t i = 0; i < t->plan->n_op; i++)
        if (t->plan->ops[i].kind == PITH_OP_ADD)
            t->plan->values[t->plan->ops[i].first_result].ends_layer = TOY_LAYERS;
}

typedef struct kit {
    toy model;
    toy_run run;
    pith_delta *delta[3];
    pith_adapter_set set[3];
} kit;

/* Three adapters of different ranks and types, and a set for each. */
static void kit_open(kit *k, pith_load load, uint32_t features,
                     const pith_backend_options *options) {
    pith_backend_options o = *options;
    o.features = features;
    toy_open(&k->model, load, o.full_precision ? PITH_KV_STORE_F32 : PITH_KV_STORE_F16, features);
    mark_sum(&k->model);
    toy_run_open(&k->run, &k->model, &o);
    const struct {
        uint32_t rank;
        pith_type type;
        int what;
    } kinds[] = {{16, PITH_TYPE_F16, WITH_ALL},
                 {5, PITH_TYPE_F32, WITH_ATTENTION | WITH_FFN | WITH_VECTORS},
                 {20, PITH_TYPE_BF16, WITH_FFN | WITH_TABLES}};
    for (int i = 0; i < 3; i++) {
        k->delta[i] = random_delta(&k->model, features, 20 + (uint64_t)i, kinds[i].rank,
                                   kinds[i].type, kinds[i].what);
        k->set[i] = (pith_adapter_set){.n = 1, .delta = {k->delta[i]}, .scale = {1.0f}};
    }
}

static void kit_close(kit *k) {
    for (int i = 0; i < 3; i++) pith_delta_free(k->delta[i]);
    toy_run_close(&k->run);
    toy_close(&k->model);
}

/* All three together. */
static pith_adapter_set sum_of(const kit *k) {
    return (pith_adapter_set){
        .n = 3, .delta = {k->delta[0], k->delta[1], k->delta[2]}, .scale = {0.5f, -0.75f, 1.25f}};
}

/* ---- Against the naive plan ---- */

enum { N_NAIVE = 70 }; /* more than a block of KV */

/* [N_NAIVE, TOY_VOCAB] with the set, NULL: without adapters. Freed by the caller. */
static double *naive_logits(const kit *k, const pith_adapter_set *set, const int32_t *tokens) {
    naive *reference = naive_new(k->model.plan);
    double *logits = malloc((size_t)N_NAIVE * TOY_VOCAB * sizeof *logits);
    reference->set = set;
    for (uint32_t i = 0; i < N_NAIVE; i++)
        memcpy(logits + (size_t)i * TOY_VOCAB, naive_step(reference, tokens[i]),
               TOY_VOCAB * sizeof *logits);
    naive_free(reference);
    return logits;
}

/* batch2: the same in other batches; 0: not. */
static void expect_naive(kit *k, const pith_adapter_set *set, const double *plain,
                         uint32_t batch2) {
    int32_t tokens[N_NAIVE];
    const uint32_t batches[] = {40, batch2};
    float *logits = malloc((size_t)N_NAIVE * TOY_VOCAB * sizeof *logits);
    toy_fill_tokens(tokens, N_NAIVE, 1);
    double *expected = naive_logits(k, set, tokens), least = HUGE_VAL;
    k->run.adapters[0] = set;
    for (int b = 0; b < 2 && batches[b] > 0; b++) {
        k->run.length[0] = 0;
        toy_prefill(&k->run, tokens, N_NAIVE, batches[b], logits);
        for (uint32_t i = 0; i < N_NAIVE; i++) {
            size_t at = (size_t)i * TOY_VOCAB;
            double d = toy_distance(logits + at, expected + at);
            if (!(d < 2e-5)) fail_msg("row %u, batch %u: distance %g", i, batches[b], d);
            least = fmin(least, toy_distance(logits + at, plain + at));
        }
    }
    if (!(least > 0.02)) fail_msg("the adapters hardly change anything: %g", least);
    free(expected);
    free(logits);
}

static void additions_agree_with_the_naive_plan(void **state) {
    (void)state;
    kit k;
    pith_backend_options options = base_options;
    options.full_precision = true;
    kit_open(&k, PITH_LOAD_PACK, pith_cpu_detect(), &options);
    int32_t tokens[N_NAIVE];
    toy_fill_tokens(tokens, N_NAIVE, 1);
    pith_adapter_set all = sum_of(&k);
    double *plain = naive_logits(&k, NULL, tokens);
    for (int i = 0; i < 3 && !test_is_brief(); i++) expect_naive(&k, &k.set[i], plain, 0);
    expect_naive(&k, &all, plain, test_is_brief() ? 0 : 1);
    free(plain);
    kit_close(&k);
}

/* ---- The exact contract ---- */

static const toy_variant variants[] = {
    {"one at a time, 1 thread", PITH_LOAD_PACK, 1, 1, NULL},
    {"one at a time, 2 threads", PITH_LOAD_PACK, 2, 1, NULL},
    {"batches of 2, 3 threads", PITH_LOAD_PACK, 3, 2, NULL},
    {"batches of 7, 3 threads", PITH_LOAD_PACK, 3, 7, NULL},
    {"batches of 9, 2 threads", PITH_LOAD_PACK, 2, 9, NULL},
    {"batches of 64, 2 threads", PITH_LOAD_PACK, 2, 64, NULL},
    {"mapped, batches of 7", PITH_LOAD_MMAP, 2, 7, NULL},
    {"one batch, 1 thread", PITH_LOAD_PACK, 1, 256, NULL},
    {"ref", PITH_LOAD_PACK, 2, 64, "ref"},
    {"avx2", PITH_LOAD_PACK, 2, 64, "avx2"},
    {"avxvnni", PITH_LOAD_PACK, 2, 3, "avxvnni"},
    {"avx512", PITH_LOAD_PACK, 2, 64, "avx512"},
    {"amx", PITH_LOAD_PACK, 2, 64, "amx"},
    {"neon", PITH_LOAD_PACK, 2, 64, "neon"},
    {"dotprod", PITH_LOAD_PACK, 2, 3, "dotprod"},
    {"i8mm", PITH_LOAD_PACK, 2, 64, "i8mm"},
};

/* A tier's own, and every other of the rest. */
static bool is_left_out(size_t i) {
    return test_is_brief() && !variants[i].tier && i % 2 == 1;
}

static void run_variant(const toy_variant *v, uint32_t features, bool mixed, float *logits) {
    kit k;
    int32_t tokens[N];
    pith_backend_options options = base_options;
    options.n_threads = v->n_threads;
    toy_fill_tokens(tokens, N, 3);
    kit_open(&k, v->load, features, &options);
    pith_adapter_set all = sum_of(&k);
    k.run.adapters[0] = &all;
    k.run.mixed = mixed;
    toy_prefill(&k.run, tokens, N, v->batch, logits);
    kit_close(&k);
}

static void the_same_bits_everywhere(void **state) {
    (void)state;
    size_t bytes = (size_t)N * TOY_VOCAB * sizeof(float);
    float *first = malloc(bytes), *other = malloc(bytes);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        uint32_t features;
        if (is_left_out(i)) continue;
        if (pith_cpu_limit(pith_cpu_detect(), variants[i].tier, &features, NULL)) {
            printf("%s: this machine lacks it\n", variants[i].name);
            continue;
        }
        run_variant(&variants[i], features, false, i ? other : first);
        if (i) toy_expect_same(variants[i].name, first, other, N);
    }
    free(first);
    free(other);
}

static void fast_rows_take_the_same_additions_in_any_batch(void **state) {
    (void)state;
    size_t bytes = (size_t)N * TOY_VOCAB * sizeof(float);
    float *first = malloc(bytes), *other = malloc(bytes);
    for (size_t i = 0; !variants[i].tier; i++) {
        if (is_left_out(i)) continue;
        run_variant(&variants[i], pith_cpu_detect(), true, i ? other : first);
        if (i) toy_expect_same(variants[i].name, first, other, N);
    }
    free(first);
    free(other);
}

/* Values that fit 16 bits are kept in 16 bits; nobody can tell. */
static void halves_kept_as_halves_give_the_bits_of_floats(void **state) {
    (void)state;
    const pith_type types[] = {PITH_TYPE_F16, PITH_TYPE_BF16};
    toy model;
    uint32_t features = pith_cpu_detect();
    toy_open(&model, PITH_LOAD_PACK, PITH_KV_STORE_F16, features);
    for (int i = 0; i < 2; i++) {
        enum { RANK_HERE = 8, K = TOY_EMBD, ROWS = 256 };
        uint16_t half[RANK_HERE * K + ROWS * RANK_HERE];
        float wide[RANK_HERE * K + ROWS * RANK_HERE];
        pith_delta *narrow, *floats;
        pith_rng rng;
        pith_rng_init(&rng, 5);
        for (size_t j = 0; j < sizeof half / sizeof *half; j++)
            wide[j] = j % 9 ? 0.01f + fabsf((float)pith_rng_normal(&rng)) : 0;
        pith_type_get((uint32_t)types[i])->encode(wide, half, sizeof half / sizeof *half, NULL);
        pith_type_get((uint32_t)types[i])->decode(half, wide, sizeof half / sizeof *half);
        wide[0] = -0.0f;
        half[0] = 0x8000;
        assert_int_equal(pith_delta_new(features, &narrow, NULL), PITH_OK);
        assert_int_equal(pith_delta_new(features, &floats, NULL), PITH_OK);
        pith_delta_source source = {.weight = model.q[0], .scale = 1};
        source.a = (pith_delta_rows){types[i], K, RANK_HERE, 1, half};
        source.b = (pith_delta_rows){types[i], RANK_HERE, ROWS, 1, half + RANK_HERE * K};
        assert_int_equal(pith_delta_add_pair(narrow, &source, NULL), PITH_OK);
        source.a.type = source.b.type = PITH_TYPE_F32;
        source.a.data = wide;
        source.b.data = wide + RANK_HERE * K;
        assert_int_equal(pith_delta_add_pair(floats, &source, NULL), PITH_OK);
        const pith_delta_pair *a = &narrow->pairs[0], *b = &floats->pairs[0];
        assert_int_equal(b->a.type, types[i]);
        assert_int_equal(pith_delta_bytes(narrow), pith_delta_bytes(floats));
        assert_memory_equal(a->a.data, b->a.data, a->a.bytes);
        assert_memory_equal(a->b.data, b->b.data, a->b.bytes);
        wide[1] = 1.0f + 0x1p-20f; /* one value that needs all bits */
        source.weight = model.k[0];
        source.b.n_row = 128;
        assert_int_equal(pith_delta_add_pair(floats, &source, NULL), PITH_OK);
        assert_int_equal(floats->pairs[1].a.type, PITH_TYPE_F32);
        assert_int_equal(floats->pairs[1].b.type, types[i]);
        pith_delta_free(narrow);
        pith_delta_free(floats);
    }
    toy_close(&model);
}

/* ---- Many sequences ---- */

/* Sequence 0: adapter 0. 1: the model alone. 2: adapters 1 and 2. */
static void sequences_with_different_adapters_do_not_see_each_other(void **state) {
    (void)state;
    kit k, alone;
    uint32_t features = pith_cpu_detect(), length[TOY_SEQUENCES] = {41, 1, 33};
    int32_t tokens[TOY_SEQUENCES][80], step_tokens[256], sequence[256];
    kit_open(&k, PITH_LOAD_PACK, features, &base_options);
    kit_open(&alone, PITH_LOAD_PACK, features, &base_options);
    pith_adapter_set two = {.n = 2, .delta = {k.delta[1], k.delta[2]}, .scale = {0.5f, 1.0f}};
    pith_adapter_set same = {
        .n = 2, .delta = {alone.delta[1], alone.delta[2]}, .scale = {0.5f, 1.0f}};
    k.run.adapters[0] = &k.set[0];
    k.run.adapters[2] = &two;
    const pith_adapter_set *const own[] = {&alone.set[0], NULL, &same};
    float *logits = malloc((size_t)80 * TOY_VOCAB * sizeof *logits);
    for (uint32_t s = 0; s < TOY_SEQUENCES; s++) toy_fill_tokens(tokens[s], 80, 10 + s);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < TOY_SEQUENCES; s++)
            for (uint32_t i = 0; i < (round ? 1 : length[s]); i++, n++) {
                step_tokens[n] = tokens[s][k.run.length[s] + i];
                sequence[n] = (int32_t)s;
            }
        toy_step(&k.run, step_tokens, sequence, n);
    }
    for (uint32_t s = 0; s < TOY_SEQUENCES; s++) {
        alone.run.length[0] = 0;
        alone.run.adapters[0] = own[s];
        toy_prefill(&alone.run, tokens[s], length[s] + 3, 256, logits);
        toy_expect_same(s == 1 ? "without"
                        : s    ? "two"
                               : "one",
                        logits + (size_t)(length[s] + 2) * TOY_VOCAB,
                        k.run.logits + (size_t)s * TOY_VOCAB, 1);
    }
    free(logits);
    kit_close(&k);
    kit_close(&alone);
}

static void an_empty_set_gives_the_bits_of_none(void **state) {
    (void)state;
    kit k;
    int32_t tokens[N];
    size_t bytes = (size_t)N * TOY_VOCAB * sizeof(float);
    float *first = malloc(bytes), *other = malloc(bytes);
    pith_adapter_set empty = {.n = 0};
    toy_fill_tokens(tokens, N, 3);
    kit_open(&k, PITH_LOAD_PACK, pith_cpu_detect(), &base_options);
    toy_prefill(&k.run, tokens, N, 20, first);
    k.run.length[0] = 0;
    k.run.adapters[0] = &empty;
    toy_prefill(&k.run, tokens, N, 20, other);
    toy_expect_same("empty", first, other, N);
    free(first);
    free(other);
    kit_close(&k);
}

/* Rows before `from` are the model's alone, those from it on see adapters, and keys of both. */
static void rows_before_from_are_the_models_alone(void **state) {
    (void)state;
    enum { FROM = 37 };
    kit k;
    int32_t tokens[N];
    size_t bytes = (size_t)N * TOY_VOCAB * sizeof(float);
    float *plain = malloc(bytes), *parted = malloc(bytes), *stepped = malloc(bytes);
    toy_fill_tokens(tokens, N, 3);
    kit_open(&k, PITH_LOAD_PACK, pith_cpu_detect(), &base_options);
    toy_prefill(&k.run, tokens, N, 20, plain);
    k.set[0].from = FROM;
    k.run.adapters[0] = &k.set[0];
    k.run.length[0] = 0;
    toy_prefill(&k.run, tokens, N, 20, parted);
    toy_expect_same("before", plain, parted, FROM);
    assert_memory_not_equal(plain + FROM * TOY_VOCAB, parted + FROM * TOY_VOCAB,
                            TOY_VOCAB * sizeof(float));
    k.run.adapters[0] = NULL;
    k.run.length[0] = 0;
    toy_prefill(&k.run, tokens, FROM, 20, stepped);
    k.set[0].from = 0;
    k.run.adapters[0] = &k.set[0];
    toy_prefill(&k.run, tokens + FROM, N - FROM, 20, stepped + FROM * TOY_VOCAB);
    toy_expect_same("switched on", stepped, parted, N);
    free(plain);
    free(parted);
    free(stepped);
    kit_close(&k);
}

/* ---- Limits ---- */

static pith_status try_step(toy_run *run, const pith_adapter_set *set, pith_error *error) {
    const int32_t zero[1] = {0};
    const pith_adapter_set *sets[TOY_SEQUENCES] = {set};
    pith_step step = {.n = 1,
                      .n_out = 1,
                      .n_sequence = TOY_SEQUENCES,
                      .tokens = zero,
                      .positions = zero,
                      .sequence = zero,
                      .out_rows = zero,
                      .tables = run->tables,
                      .adapters = sets,
                      .on_logits = toy_on_logits,
                      .user = run};
    return pith_runner_run(run->runner, &step, error);
}

static void ranks_over_the_limit_are_refused(void **state) {
    (void)state;
    kit k;
    pith_error error;
    pith_backend_options options = base_options;
    options.adapter_rank = 48; /* 16 and 16 for 5, but 32 for 20 are over it together */
    kit_open(&k, PITH_LOAD_PACK, pith_cpu_detect(), &options);
    pith_adapter_set two = {.n = 2, .delta = {k.delta[0], k.delta[2]}, .scale = {1, 1}};
    pith_adapter_set all = sum_of(&k);
    assert_int_equal(try_step(&k.run, &two, &error), PITH_OK);
    assert_int_equal(try_step(&k.run, &all, &error), PITH_ERROR_LIMIT);
    assert_string_equal(error.text,
                        "sequence 0: 3 adapters of rank 64 together; the limits are 32 and 48");
    all.n = PITH_ADAPTERS_MAX + 1;
    assert_int_equal(try_step(&k.run, &all, &error), PITH_ERROR_LIMIT);
    kit_close(&k);
    options.adapter_rank = 0;
    kit_open(&k, PITH_LOAD_PACK, pith_cpu_detect(), &options);
    assert_int_equal(try_step(&k.run, &k.set[0], &error), PITH_ERROR_LIMIT);
    assert_int_equal(try_step(&k.run, NULL, &error), PITH_OK);
    kit_close(&k);
}

static void what_is_no_pair_is_refused(void **state) {
    (void)state;
    toy model;
    pith_delta *delta;
    float values[TOY_EMBD * 4] = {0};
    toy_open(&model, PITH_LOAD_PACK, PITH_KV_STORE_F16, pith_cpu_detect());
    assert_int_equal(pith_delta_new(pith_cpu_detect(), &delta, NULL), PITH_OK);
    pith_delta_source source = {.weight = model.k[0], .scale = 1};
    source.a = (pith_delta_rows){PITH_TYPE_F32, TOY_EMBD, 4, 1, values};
    source.b = (pith_delta_rows){PITH_TYPE_F32, 4, 127, 1, values};
    assert_int_equal(pith_delta_add_pair(delta, &source, NULL), PITH_ERROR_INTERNAL);
    source.b.n_row = 128;
    source.scale = NAN;
    assert_int_equal(pith_delta_add_pair(delta, &source, NULL), PITH_ERROR_INTERNAL);
    source.scale = 1;
    values[7] = INFINITY;
    assert_int_equal(pith_delta_add_pair(delta, &source, NULL), PITH_ERROR_FORMAT);
    values[7] = NAN;
    assert_int_equal(pith_delta_add_vector(delta, 0, values, TOY_EMBD, NULL), PITH_ERROR_FORMAT);
    values[7] = 0;
    assert_int_equal(pith_delta_add_pair(delta, &source, NULL), PITH_OK);
    assert_int_equal(pith_delta_add_pair(delta, &source, NULL), PITH_ERROR_INTERNAL);
    assert_int_equal(pith_delta_add_vector(delta, 2, values, TOY_EMBD, NULL), PITH_OK);
    assert_int_equal(pith_delta_add_vector(delta, 2, values, TOY_EMBD, NULL), PITH_ERROR_INTERNAL);
    assert_int_equal(pith_delta_add_vector(delta, 1, values, 16, NULL), PITH_ERROR_INTERNAL);
    assert_int_equal(pith_delta_rank(delta), 4);
    assert_int_equal(pith_delta_rank_room(delta), 16);
    pith_delta_free(delta);
    toy_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additions_agree_with_the_naive_plan),
        cmocka_unit_test(the_same_bits_everywhere),
        cmocka_unit_test(fast_rows_take_the_same_additions_in_any_batch),
        cmocka_unit_test(halves_kept_as_halves_give_the_bits_of_floats),
        cmocka_unit_test(sequences_with_different_adapters_do_not_see_each_other),
        cmocka_unit_test(an_empty_set_gives_the_bits_of_none),
        cmocka_unit_test(rows_before_from_are_the_models_alone),
        cmocka_unit_test(ranks_over_the_limit_are_refused),
        cmocka_unit_test(what_is_no_pair_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
