/* SPDX-License-Identifier: Apache-2.0
 * Promise: every architecture gives the logits of the golden files (tests/data/arch/README.md), and
 * with LoRA adapters those of tests/data/adapter, in full precision within the strict class and in normal precision within the class of its
 * weights, whichever way it is loaded and however the tokens come in steps. Written with pith.h
 * alone.
 *
 * The files of the repository always run. Where the larger set is at hand (PITH_TEST_DATA, or
 * ../shared/data beside the sources), its files of architectures that this build runs are tried
 * too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <pith.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 512, PATH_BYTES = 1024, MAX_FILES = 256, MAX_ADAPTERS = 4 };

/* Largest absolute difference, and rms over the deviation of the expected logits. */
static const struct {
    const char *name;
    double max, rms;
} classes[] = {{"f32", 1e-3, 1e-4},
               {"gelu", 3e-2, 2e-3},
               {"f16", 5e-2, 4e-3},
               {"bf16", 4e-1, 3e-2},
               {"quant", 1.0, 6e-2}};

typedef struct golden {
    char model[PATH_BYTES];
    json_t *json;
    size_t n_tokens, n_vocab;
    int32_t tokens[MAX_TOKENS];
    float *logits; /* [n_tokens, n_vocab], of the run being judged */
    char adapters[MAX_ADAPTERS][PATH_BYTES];
    float scales[MAX_ADAPTERS];
    size_t n_adapters;
} golden;

typedef struct way {
    const char *name;
    bool full;
    pith_load load;
    int32_t step_limit, n_threads;
} way;

static double number(const json_t *json, const char *key) {
    return json_number_value(json_object_get(json, key));
}

/* ---- Running ---- */

static int keep(void *user, size_t first, size_t n, const float *logits) {
    golden *g = user;
    memcpy(g->logits + first * g->n_vocab, logits, n * g->n_vocab * sizeof *logits);
    return 0;
}

/* The session keeps what is let go here. */
static void set_adapters(const golden *g, const pith_model *model, pith_session *session) {
    pith_error error = {0};
    pith_adapter *adapters[MAX_ADAPTERS] = {0};
    for (size_t i = 0; i < g->n_adapters; i++) {
        if (pith_adapter_open(model, g->adapters[i], NULL, &adapters[i], &error) != PITH_OK)
            fail_msg("%s: %s", g->adapters[i], error.text);
    }
    if (pith_session_set_adapters(session, adapters, g->scales, g->n_adapters, &error) != PITH_OK)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < g->n_adapters; i++) pith_adapter_free(adapters[i]);
}

static void run(golden *g, const way *w) {
    pith_error error = {0};
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    pith_model_options open = {.size = sizeof open, .load = w->load, .n_threads = 2};
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = (int32_t)number(g->json, "n_ctx"),
                                   .n_threads = w->n_threads,
                                   .step_limit = w->step_limit,
                                   .kv_type = PITH_KV_F32,
                                   .exact = true,
                                   .precision =
                                       w->full ? PITH_PRECISION_FULL : PITH_PRECISION_NORMAL};
    if (pith_model_open(g->model, &open, &model, &error) != PITH_OK ||
        pith_engine_new(model, &options, &engine, &error) != PITH_OK ||
        pith_session_new(engine, &session, &error) != PITH_OK) {
        fail_msg("%s: %s", g->model, error.text);
    }
    set_adapters(g, model, session);
    if (pith_session_append_rows(session, g->tokens, g->n_tokens, keep, g, &error) != PITH_OK)
        fail_msg("%s: %s", g->model, error.text);
    assert_int_equal(pith_model_describe(model).n_vocab, g->n_vocab);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
}

/* ---- Judging ---- */

typedef struct difference {
    double max, squares, expected, expected_squares;
    size_t n;
} difference;

static void add(difference *d, double found, double expected) {
    double delta = fabs(found - expected);
    if (!(delta <= d->max)) d->max = delta; /* NaN sticks */
    d->squares += delta * delta;
    d->expected += expected;
    d->expected_squares += expected * expected;
    d->n++;
}

/* Whole rows at some positions. */
static difference compare_rows(const golden *g, const json_t *expected) {
    difference d = {0};
    size_t i;
    json_t *position;
    json_array_foreach(json_object_get(expected, "positions"), i, position) {
        size_t row = (size_t)number(position, "pos"), v;
        json_t *value;
        json_array_foreach(json_object_get(position, "logits"), v, value) {
            add(&d, (double)g->logits[row * g->n_vocab + v], json_number_value(value));
        }
    }
    return d;
}

/* A sum over every row, so that a fault at any position shows: returns the largest difference. */
static double compare_sums(const golden *g, const json_t *expected, double max, size_t *n_missed) {
    double worst = 0;
    for (size_t i = 0; i < g->n_tokens; i++) {
        const float *row = g->logits + i * g->n_vocab;
        double sum = 0, exps = 0;
        size_t best = 0;
        for (size_t v = 0; v < g->n_vocab; v++) {
            sum += (double)row[v];
            if (row[v] > row[best]) best = v;
        }
        for (size_t v = 0; v < g->n_vocab; v++) exps += exp((double)row[v] - (double)row[best]);
        double lse = (double)row[best] + log(exps);
        double off_lse = fabs(
            lse - json_number_value(json_array_get(json_object_get(expected, "logsumexp"), i)));
        double off_sum =
            fabs(sum - json_number_value(json_array_get(json_object_get(expected, "sum"), i))) /
            (double)g->n_vocab;
        if (!(off_lse <= worst)) worst = off_lse;
        if (!(off_sum <= worst)) worst = off_sum;
        double gap = json_number_value(json_array_get(json_object_get(expected, "argmax_gap"), i));
        json_int_t argmax =
            json_integer_value(json_array_get(json_object_get(expected, "argmax"), i));
        if (gap > 2 * max && (json_int_t)best != argmax) (*n_missed)++;
    }
    return worst;
}

static void judge(const golden *g, const way *w) {
    const json_t *expected = g->json;
    const char *class = json_string_value(json_object_get(g->json, "tol"));
    if (w->full) {
        const char *floats[] = {"exact_gelu", "float_activations"};
        class = "f32";
        for (int i = 0; i < 2; i++) {
            if (json_object_get(g->json, floats[i])) expected = json_object_get(g->json, floats[i]);
        }
    }
    size_t c = 0, n_missed = 0;
    while (c + 1 < sizeof classes / sizeof classes[0] && strcmp(classes[c].name, class) != 0) c++;
    assert_string_equal(classes[c].name, class);
    difference d = compare_rows(g, expected);
    assert_true(d.n > 0);
    double n = (double)d.n, mean = d.expected / n;
    double rms = sqrt(d.squares / n) / sqrt(d.expected_squares / n - mean * mean);
    double sums = compare_sums(g, expected, classes[c].max, &n_missed);
    const char *variant = json_string_value(json_object_get(g->json, "variant"));
    printf("%-28s %-18s %-6s max %.1e rms %.1e sums %.1e\n",
           g->n_adapters ? variant : strrchr(g->model, '/') + 1, w->name, class, d.max, rms, sums);
    if (!(d.max <= classes[c].max) || !(rms <= classes[c].rms) || !(sums <= classes[c].max) ||
        n_missed > 0) {
        fail_msg("%s, %s: max %g (%g), rms %g (%g), sums %g (%g), %zu best tokens differ", g->model,
                 w->name, d.max, classes[c].max, rms, classes[c].rms, sums, classes[c].max,
                 n_missed);
    }
}

/* ---- Files ---- */

static void load_adapters(golden *g, const char *folder) {
    size_t i;
    json_t *adapter;
    json_array_foreach(json_object_get(g->json, "adapters"), i, adapter) {
        const char *file = json_string_value(json_object_get(adapter, "file"));
        assert_true(i < MAX_ADAPTERS && file);
        snprintf(g->adapters[i], PATH_BYTES, "%s/%s", folder, file);
        g->scales[i] = (float)number(adapter, "scale");
        g->n_adapters = i + 1;
    }
}

static bool load(golden *g, const char *folder, const char *name) {
    char path[PATH_BYTES];
    json_error_t error;
    *g = (golden){0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    g->json = json_load_file(path, 0, &error);
    if (!g->json) fail_msg("%s: %s", path, error.text);
    const json_t *tokens = json_object_get(g->json, "tokens"),
                 *file = json_object_get(g->json, "file");
    bool is_ours = false;
    const char *arch = json_string_value(json_object_get(g->json, "arch"));
    for (size_t i = 0; arch && pith_system_architecture(i); i++) {
        if (strcmp(arch, pith_system_architecture(i)) == 0) is_ours = true;
    }
    if (!is_ours || !json_is_string(file)) return false;
    load_adapters(g, folder);
    snprintf(g->model, sizeof g->model, "%s/%s", folder, json_string_value(file));
    g->n_tokens = json_array_size(tokens);
    g->n_vocab = (size_t)number(g->json, "n_vocab");
    assert_true(g->n_tokens > 0 && g->n_tokens <= MAX_TOKENS);
    for (size_t i = 0; i < g->n_tokens; i++) {
        g->tokens[i] = (int32_t)json_integer_value(json_array_get(tokens, i));
    }
    g->logits = malloc(g->n_tokens * g->n_vocab * sizeof *g->logits);
    assert_non_null(g->logits);
    return true;
}

static void unload(golden *g) {
    json_decref(g->json);
    free(g->logits);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the JSON files in a folder, sorted. */
static size_t list(const char *folder, char **names) {
    size_t n = 0;
    DIR *directory = opendir(folder);
    if (!directory) return 0;
    for (struct dirent *entry; (entry = readdir(directory)) && n < MAX_FILES;) {
        size_t size = strlen(entry->d_name);
        if (size < 6 || strcmp(entry->d_name + size - 5, ".json") != 0) continue;
        names[n] = malloc(size + 1);
        assert_non_null(names[n]);
        memcpy(names[n++], entry->d_name, size + 1);
    }
    closedir(directory);
    qsort(names, n, sizeof *names, by_name);
    return n;
}

static size_t try_folder(const char *folder, const way *ways, size_t n_ways) {
    char *names[MAX_FILES];
    size_t n = list(folder, names), n_run = 0;
    for (size_t i = 0; i < n; i++) {
        golden g;
        if (load(&g, folder, names[i])) {
            for (size_t w = 0; w < n_ways; w++) {
                run(&g, &ways[w]);
                judge(&g, &ways[w]);
            }
            n_run++;
        }
        unload(&g);
        free(names[i]);
    }
    return n_run;
}

static const char *own_folder(const char *name, char path[PATH_BYTES]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, PATH_BYTES, "%s/tests/data/%s", root ? root : ".", name);
    return path;
}

static const way full_pack = {"full, pack", true, PITH_LOAD_PACK, 0, 2};
static const way normal_pack = {"normal, pack", false, PITH_LOAD_PACK, 0, 2};
static const way normal_mmap = {"normal, mmap", false, PITH_LOAD_MMAP, 0, 1};
static const way full_mmap = {"full, mmap", true, PITH_LOAD_MMAP, 0, 1};

static void golden_files(void **state) {
    char path[PATH_BYTES];
    const way ways[] = {full_pack, normal_pack, normal_mmap, full_mmap};
    (void)state;
    assert_true(try_folder(own_folder("arch", path), ways, 4) >= 8);
}

static void golden_adapters(void **state) {
    char path[PATH_BYTES];
    const way ways[] = {full_pack, normal_pack, normal_mmap, full_mmap};
    (void)state;
    assert_true(try_folder(own_folder("adapter", path), ways, 4) >= 4);
}

static void larger_set(void **state) {
    char path[PATH_BYTES];
    const char *data = getenv("PITH_TEST_DATA"), *root = getenv("PITH_SOURCE_DIR");
    const way ways[] = {full_pack, normal_pack};
    (void)state;
    if (data)
        snprintf(path, sizeof path, "%s/arch", data);
    else
        snprintf(path, sizeof path, "%s/../shared/data/arch", root ? root : ".");
    if (try_folder(path, ways, 2) == 0) {
        printf("%s: not there, skipped\n", path);
        skip();
    }
}

/* The exact contract: one token a step, one thread, mapped, gives the bits of all at once. */
static void check_bits(const char *folder) {
    char path[PATH_BYTES];
    char *names[MAX_FILES];
    size_t n = list(own_folder(folder, path), names);
    const way ways[] = {{"1 by 1", false, PITH_LOAD_PACK, 1, 1},
                        {"7 by 7", false, PITH_LOAD_PACK, 7, 2},
                        {"mmap", false, PITH_LOAD_MMAP, 0, 2}};
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        golden g;
        assert_true(load(&g, path, names[i]));
        size_t bytes = g.n_tokens * g.n_vocab * sizeof *g.logits;
        float *first = malloc(bytes);
        assert_non_null(first);
        run(&g, &normal_pack);
        memcpy(first, g.logits, bytes);
        for (int w = 0; w < 3; w++) {
            run(&g, &ways[w]);
            for (size_t e = 0; e < g.n_tokens * g.n_vocab; e++) {
                if (memcmp(&first[e], &g.logits[e], sizeof(float)) == 0) continue;
                fail_msg("%s, %s: token %zu, logit %zu is %.9g, expected %.9g", names[i],
                         ways[w].name, e / g.n_vocab, e % g.n_vocab, (double)g.logits[e],
                         (double)first[e]);
            }
        }
        free(first);
        unload(&g);
        free(names[i]);
    }
}

static void same_bits(void **state) {
    (void)state;
    check_bits("arch");
}

static void same_bits_with_adapters(void **state) {
    (void)state;
    check_bits("adapter");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files), cmocka_unit_test(golden_adapters),
        cmocka_unit_test(same_bits),    cmocka_unit_test(same_bits_with_adapters),
        cmocka_unit_test(larger_set),
    };
    return cmocka_run_group_tests_name("golden models", tests, NULL, NULL);
}
