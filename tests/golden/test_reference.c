/* SPDX-License-Identifier: Apache-2.0
 * Promise: on real models the distributions are those of the exact computation: with float
 * activations to 1e-5 nats, with int8 activations no further away than twice what llama.cpp is,
 * and greedy paths are the exact ones as long as the gap between the two best tokens is clear.
 * Written with pith.h alone.
 *
 * Needs the models (PITH_TEST_MODELS) and the references (PITH_TEST_DATA/reference, or
 * ../shared/data/reference beside the sources); without them it is skipped. Full precision is
 * slow: it reads the first 32 tokens of each text, and all of them with PITH_TEST_LONG=1, which
 * also adds the long text and the 1.5B model. PITH_TEST_ONLY=qwen takes one model.
 *
 * KLD16: divergence in nats from the exact distribution, everything outside its 16 best tokens in
 * one bucket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <pith.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, MAX_TOKENS = 1024, SHORT_TOKENS = 32 };

static const struct {
    const char *name, *file;
    bool is_long; /* only with PITH_TEST_LONG */
    /* positions in front of it are not judged: int8 activations lose there, llama.cpp too */
    size_t first;
    double clear_gap; /* greedy steps with a larger gap must be the exact ones */
} models[] = {{"smollm2", "smollm2-135m-q4_1.gguf", false, 0, 0.5},
              {"gemma3", "gemma3-270m-q4_k_m.gguf", false, 0, 1.0},
              {"qwen", "qwen-0.5b-q4_k_m.gguf", false, 0, 0.5},
              {"qwen1.5b", "qwen-1.5b-q4_k_m.gguf", true, 1, 0.5}};
enum { N_MODELS = sizeof models / sizeof models[0] };

static const struct {
    const char *name;
    bool is_long;
} texts[] = {{"prose_en", false}, {"handbook_zh", false}, {"code", false}, {"licence_long", true}};
enum { N_TEXTS = sizeof texts / sizeof texts[0] };

static bool is_long_run(void) {
    return getenv("PITH_TEST_LONG") != NULL;
}

static json_t *reference(const char *name) {
    char path[PATH_BYTES];
    const char *data = getenv("PITH_TEST_DATA"), *root = getenv("PITH_SOURCE_DIR");
    if (data)
        snprintf(path, sizeof path, "%s/reference/%s", data, name);
    else
        snprintf(path, sizeof path, "%s/../shared/data/reference/%s", root ? root : ".", name);
    return json_load_file(path, 0, NULL);
}

static double number(const json_t *json, const char *key) {
    return json_number_value(json_object_get(json, key));
}

static double item(const json_t *list, size_t index) {
    return json_number_value(json_array_get(list, index));
}

/* ---- Judging rows ---- */

typedef struct verdict {
    const json_t *positions;
    const json_t *ids;
    size_t n_vocab, first, n; /* n: rows judged */
    double kld[MAX_TOKENS];
    size_t n_agree, n_clear, n_clear_agree, n_sure_missed;
    double nll;
    size_t n_scored;
} verdict;

static double log_of_sum(const float *logits, size_t n_vocab, size_t *best) {
    double sum = 0;
    *best = 0;
    for (size_t i = 1; i < n_vocab; i++) {
        if (logits[i] > logits[*best]) *best = i;
    }
    for (size_t i = 0; i < n_vocab; i++) sum += exp((double)logits[i] - (double)logits[*best]);
    return (double)logits[*best] + log(sum);
}

static void judge_row(verdict *v, size_t position, const float *logits) {
    const json_t *row = json_array_get(v->positions, position), *top = json_object_get(row, "top");
    size_t best, n_top = json_array_size(top);
    double lse = log_of_sum(logits, v->n_vocab, &best), kld = 0, p_rest = 1, q_rest = 1;
    if (json_is_number(json_object_get(row, "next"))) {
        size_t next = (size_t)item(v->ids, position + 1);
        v->nll -= (double)logits[next] - lse;
        v->n_scored++;
    }
    if (position < v->first) return;
    for (size_t i = 0; i < n_top; i++) {
        const json_t *pair = json_array_get(top, i);
        double p = item(pair, 1), q = (double)logits[(size_t)item(pair, 0)] - lse;
        kld += exp(p) * (p - q);
        p_rest -= exp(p);
        q_rest -= exp(q);
    }
    if (p_rest < 1e-12) p_rest = 1e-12;
    if (q_rest < 1e-12) q_rest = 1e-12;
    v->kld[v->n++] = kld + p_rest * log(p_rest / q_rest);
    bool agrees = best == (size_t)item(json_array_get(top, 0), 0);
    double gap = item(json_array_get(top, 0), 1) - item(json_array_get(top, 1), 1);
    v->n_agree += agrees;
    v->n_clear += gap > 0.5;
    v->n_clear_agree += gap > 0.5 && agrees;
    v->n_sure_missed += gap > 0.02 && !agrees;
}

static int take_rows(void *user, size_t first, size_t n, const float *logits) {
    verdict *v = user;
    for (size_t i = 0; i < n; i++) judge_row(v, first + i, logits + i * v->n_vocab);
    return 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void figures(verdict *v, double *mean, double *p99, double *max) {
    double sum = 0;
    for (size_t i = 0; i < v->n; i++) sum += v->kld[i];
    qsort(v->kld, v->n, sizeof *v->kld, by_value);
    *mean = sum / (double)v->n;
    *p99 = v->kld[(size_t)(0.99 * (double)(v->n - 1))];
    *max = v->kld[v->n - 1];
}

/* ---- Running ---- */

typedef struct subject {
    size_t index; /* in models */
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_precision precision;
} subject;

static bool open_subject(subject *s, size_t index, pith_precision precision) {
    char path[PATH_BYTES];
    pith_error error = {PITH_OK, ""};
    const char *folder = getenv("PITH_TEST_MODELS"), *only = getenv("PITH_TEST_ONLY");
    pith_engine_options options = {
        .size = sizeof options, .n_ctx = MAX_TOKENS, .precision = precision};
    *s = (subject){.index = index, .precision = precision};
    if (!folder || (models[index].is_long && !is_long_run())) return false;
    if (only && strcmp(only, models[index].name) != 0) return false;
    snprintf(path, sizeof path, "%s/%s", folder, models[index].file);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    fclose(file);
    if (pith_model_open(path, NULL, &s->model, &error) != PITH_OK ||
        pith_engine_new(s->model, &options, &s->engine, &error) != PITH_OK ||
        pith_session_new(s->engine, &s->session, &error) != PITH_OK) {
        fail_msg("%s: %s", path, error.text);
    }
    return true;
}

static void close_subject(subject *s) {
    pith_session_free(s->session);
    pith_engine_free(s->engine);
    pith_model_close(s->model);
}

static size_t ids_of(const json_t *list, int32_t *ids) {
    size_t n = json_array_size(list);
    assert_true(n <= MAX_TOKENS);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)item(list, i);
    return n;
}

/* What llama.cpp reaches on this text. */
static double peer_mean(const subject *s, const char *text) {
    json_t *all = reference(models[s->index].first > 0 ? "without_position0.json"
                                                       : "llamacpp_compare16.json");
    const json_t *one = json_object_get(json_object_get(all, models[s->index].name), text);
    if (models[s->index].first > 0) one = json_object_get(one, "compare16");
    double mean = number(one, "kld16_mean");
    json_decref(all);
    return mean;
}

static void check_text(const subject *s, const char *text) {
    char name[128];
    int32_t ids[MAX_TOKENS];
    verdict v = {.n_vocab = (size_t)pith_model_describe(s->model).n_vocab};
    pith_error error = {PITH_OK, ""};
    double mean, p99, max;
    snprintf(name, sizeof name, "%s.%s.json", models[s->index].name, text);
    json_t *json = reference(name);
    if (!json) fail_msg("%s cannot be read", name);
    bool full = s->precision == PITH_PRECISION_FULL;
    size_t n_all = ids_of(json_object_get(json, "ids"), ids);
    size_t n = full && !is_long_run() && n_all > SHORT_TOKENS ? SHORT_TOKENS : n_all;
    v.positions = json_object_get(json, "positions");
    v.ids = json_object_get(json, "ids");
    if (!full) v.first = models[s->index].first;
    assert_int_equal(pith_session_truncate(s->session, 0, NULL), PITH_OK);
    if (pith_session_append_rows(s->session, ids, n, take_rows, &v, &error) != PITH_OK) {
        fail_msg("%s: %s", name, error.text);
    }
    figures(&v, &mean, &p99, &max);
    double ppl = exp(v.nll / (double)v.n_scored), ppl_exact = number(json, "perplexity");
    double agree = (double)v.n_agree / (double)v.n;
    double clear = v.n_clear ? (double)v.n_clear_agree / (double)v.n_clear : 1;
    printf("%-28s %-6s %4zu of %zu tokens: KLD16 mean %.2e p99 %.2e max %.2e, best token %.1f %%",
           name, full ? "full" : "normal", n, n_all, mean, p99, max, 100 * agree);
    if (n == n_all) printf(", perplexity %.4f (%.4f)", ppl, ppl_exact);
    printf("\n");
    double limit = full ? 1e-5 : 2 * peer_mean(s, text);
    if (!(mean < limit)) fail_msg("%s: mean KLD16 %g, limit %g", name, mean, limit);
    if (full) {
        if (!(max < 1e-4)) fail_msg("%s: largest KLD16 %g, limit 1e-4", name, max);
        if (v.n_sure_missed) fail_msg("%s: %zu clear best tokens differ", name, v.n_sure_missed);
    } else {
        if (!(p99 < 0.09)) fail_msg("%s: p99 of KLD16 %g, limit 0.09", name, p99);
        if (agree < 0.92 || clear < 0.99) {
            fail_msg("%s: best tokens agree in %g and, where clear, %g", name, agree, clear);
        }
    }
    double tolerance = full ? 5e-4 : 0.03;
    if (n == n_all && models[s->index].first == 0 && fabs(ppl / ppl_exact - 1) > tolerance) {
        fail_msg("%s: perplexity %g, exact %g", name, ppl, ppl_exact);
    }
    json_decref(json);
}

static size_t check_models(pith_precision precision) {
    size_t n = 0;
    for (size_t m = 0; m < N_MODELS; m++) {
        subject s;
        if (!open_subject(&s, m, precision)) continue;
        for (size_t t = 0; t < N_TEXTS; t++) {
            if (texts[t].is_long && !is_long_run()) continue;
            check_text(&s, texts[t].name);
            n++;
        }
        close_subject(&s);
    }
    return n;
}

/* ---- Greedy paths ---- */

static void check_path(const subject *s, const json_t *path) {
    int32_t prompt[MAX_TOKENS], expected[MAX_TOKENS];
    pith_generate_options options = {.size = sizeof options, .ignore_end = true};
    pith_sampler *sampler = NULL;
    pith_generation made;
    pith_error error = {PITH_OK, ""};
    const json_t *gaps = json_object_get(path, "exact_gaps");
    size_t n_prompt = ids_of(json_object_get(path, "prompt_ids"), prompt);
    size_t n_expected = ids_of(json_object_get(path, "exact_out_ids"), expected), n = 0;
    double limit = s->precision == PITH_PRECISION_FULL ? 0.02 : models[s->index].clear_gap;
    while (n < n_expected && item(gaps, n) > limit) n++;
    if (n == 0) return;
    options.max_tokens = (int32_t)n;
    assert_int_equal(pith_sampler_new(s->model, NULL, &sampler, NULL), PITH_OK);
    if (pith_generate(s->session, sampler, prompt, n_prompt, &options, &made, &error) != PITH_OK) {
        fail_msg("%s", error.text);
    }
    pith_sampler_free(sampler);
    const int32_t *ids = pith_session_ids(s->session) + n_prompt;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == expected[i]) continue;
        fail_msg("%s, %s: step %zu is %d, expected %d (gap %g)", models[s->index].name,
                 json_string_value(json_object_get(path, "name")), i, ids[i], expected[i],
                 item(gaps, i));
    }
    printf("%-10s %-10s %zu steps of %zu\n", models[s->index].name,
           json_string_value(json_object_get(path, "name")), n, n_expected);
}

static void greedy_paths(void **state) {
    const char *kinds[] = {"greedy", "chat"};
    size_t n = 0;
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        subject s;
        if (!open_subject(&s, m, PITH_PRECISION_NORMAL)) continue;
        for (int k = 0; k < 2; k++) {
            char name[128];
            snprintf(name, sizeof name, "%s.%s.json", kinds[k], models[m].name);
            json_t *json = reference(name);
            const json_t *items = json_object_get(json, "items");
            for (size_t i = 0; i < json_array_size(items); i++, n++) {
                check_path(&s, json_array_get(items, i));
            }
            json_decref(json);
        }
        close_subject(&s);
    }
    if (n == 0) skip();
}

static void normal_precision(void **state) {
    (void)state;
    if (check_models(PITH_PRECISION_NORMAL) == 0) skip();
}

static void full_precision(void **state) {
    (void)state;
    if (check_models(PITH_PRECISION_FULL) == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_precision),
        cmocka_unit_test(greedy_paths),
        cmocka_unit_test(full_precision),
    };
    json_t *there = reference("llamacpp_compare16.json");
    if (!there || !getenv("PITH_TEST_MODELS")) {
        printf("skipped: PITH_TEST_MODELS or the references are not there\n");
        return 0;
    }
    json_decref(there);
    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
