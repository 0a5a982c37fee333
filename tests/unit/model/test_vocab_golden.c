/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: ids of real vocabularies are those of the models' own tokenizers. Sources, none of
 * them in the repository:
 *   data/vocab/       cases and ids of eight vocabularies (plain text, nothing added)
 *   data/reference/   ids of prompts, chats and whole texts of real models (PITH_TEST_MODELS: their folder)
 * Each is skipped with a message where it is absent.
 */
#include "base/memory.h"
#include "model/vocab.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the two above first */
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void data_path(char *path, size_t size, const char *folder, const char *name) {
    const char *data = getenv("PITH_TEST_DATA"), *root = getenv("PITH_SOURCE_DIR");
    if (data)
        snprintf(path, size, "%s/%s/%s", data, folder, name);
    else
        snprintf(path, size, "%s/../shared/data/%s/%s", root ? root : ".", folder, name);
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long end = ftell(file);
    rewind(file);
    char *data = malloc((size_t)end + 1);
    assert_non_null(data);
    *size = fread(data, 1, (size_t)end, file);
    data[*size] = 0;
    fclose(file);
    return data;
}

/* NULL: the file is not there. */
static pith_tokenizer *load(const char *path) {
    pith_gguf *gguf;
    pith_tokenizer *tokenizer = NULL;
    pith_error error = {0};
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fclose(file);
    if (pith_gguf_open_path(path, &gguf, &error)) fail_msg("%s: %s", path, error.text);
    if (pith_vocab_load(gguf, false, &tokenizer, &error)) fail_msg("%s: %s", path, error.text);
    pith_gguf_close(gguf);
    assert_string_equal(pith_tokenizer_notes(tokenizer), "");
    return tokenizer;
}

static void print_ids(const char *what, const int32_t *ids, size_t n) {
    print_error("%s:", what);
    for (size_t i = 0; i < n; i++) print_error(" %d", ids[i]);
    print_error("\n");
}

/* at_least: expected is only the beginning. Returns the number of faults: 0 or 1. */
static int compare(const pith_tokenizer *tokenizer, pith_span text, bool parse_special,
                   bool add_special, const pith_ids *expected, bool at_least) {
    pith_text_span span = {text, parse_special};
    pith_ids ids = {0};
    pith_error error = {0};
    if (pith_tokenizer_encode(tokenizer, &span, 1, add_special, &ids, &error))
        fail_msg("%s", error.text);
    bool size = at_least ? ids.size >= expected->size : ids.size == expected->size;
    bool same = size && (!expected->size ||
                         !memcmp(ids.data, expected->data, expected->size * sizeof *ids.data));
    if (!same) {
        print_error("text \"%.*s\"\n", (int)(text.size < 200 ? text.size : 200), text.data);
        print_ids("expected", expected->data, expected->size);
        print_ids("got     ", ids.data,
                  at_least && ids.size > expected->size ? expected->size : ids.size);
    }
    pith_ids_deinit(&ids);
    return !same;
}

/* Streamed back, the ids of a plain text are the text. */
static int compare_back(const pith_tokenizer *tokenizer, pith_span text) {
    pith_text_span span = {text, false};
    pith_ids ids = {0};
    pith_buffer back = {0};
    pith_detok detok;
    assert_int_equal(pith_tokenizer_encode(tokenizer, &span, 1, true, &ids, NULL), PITH_OK);
    pith_detok_init(&detok, tokenizer, false);
    for (size_t i = 0; i <= ids.size; i++) {
        pith_span part = pith_detok_push(&detok, i < ids.size ? ids.data[i] : -1);
        pith_buffer_append(&back, part.data, part.size);
    }
    bool same = pith_span_equal((pith_span){back.data, back.size}, text);
    if (!same) print_error("text \"%.200s\"\nback \"%.200s\"\n", text.data, back.data);
    pith_detok_deinit(&detok);
    pith_buffer_deinit(&back);
    pith_ids_deinit(&ids);
    return !same;
}

/* ---- data/vocab ---- */

static void read_line_of_ids(const char **at, pith_ids *ids) {
    ids->size = 0;
    while (**at && **at != '\n') {
        char *end;
        long id = strtol(*at, &end, 10);
        if (end == *at) { /* blanks before the end of the line */
            ++*at;
            continue;
        }
        assert_true(pith_ids_append(ids, (int32_t)id));
        *at = end;
        while (**at == ' ') ++*at;
    }
    if (**at) ++*at;
}

static void check_cases(const char *name, const char *model_path) {
    static const char border[] = "\n__ggml_vocab_test__\n";
    char path[4096], file[256];
    size_t in_size, out_size;
    pith_tokenizer *tokenizer = load(model_path);
    snprintf(file, sizeof file, "%s.gguf.inp", name);
    data_path(path, sizeof path, "vocab", file);
    char *in = read_file(path, &in_size);
    snprintf(file, sizeof file, "%s.gguf.out", name);
    data_path(path, sizeof path, "vocab", file);
    char *out = read_file(path, &out_size);
    if (!tokenizer || !in || !out) {
        print_message("%s: %s is not there, skipped\n", name, tokenizer ? path : model_path);
        free(in);
        free(out);
        pith_tokenizer_free(tokenizer);
        return;
    }
    pith_ids expected = {0};
    const char *ids = out;
    int wrong = 0, cases = 0;
    for (const char *at = in; at; cases++) {
        const char *end = strstr(at, border);
        size_t size = end ? (size_t)(end - at) : strlen(at);
        if (!end && size && at[size - 1] == '\n') size--;
        read_line_of_ids(&ids, &expected);
        wrong += compare(tokenizer, (pith_span){at, size}, false, false, &expected, false);
        if (strcmp(name, "bert-bge") != 0) /* lower case and cleaning cannot be undone */
            wrong += compare_back(tokenizer, (pith_span){at, size});
        at = end ? end + strlen(border) : NULL;
    }
    print_message("%s: %d cases\n", name, cases);
    free(in);
    free(out);
    pith_ids_deinit(&expected);
    pith_tokenizer_free(tokenizer);
    assert_int_equal(wrong, 0);
    assert_true(cases > 40);
}

static void model_path(char *path, size_t size, const char *file) {
    const char *models = getenv("PITH_TEST_MODELS"), *root = getenv("PITH_SOURCE_DIR");
    if (models)
        snprintf(path, size, "%s/%s", models, file);
    else
        snprintf(path, size, "%s/../models/%s", root ? root : ".", file);
}

static void vocabulary_cases(void **state) {
    (void)state;
    static const char *const names[] = {"bert-bge",  "deepseek-coder", "falcon",   "gpt-2",
                                        "llama-spm", "phi-3",          "starcoder"};
    char path[4096], file[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s.gguf", names[i]);
        data_path(path, sizeof path, "vocab", file);
        check_cases(names[i], path);
    }
    /* the cases of a vocabulary whose own file is not there, on a model that has the same one */
    model_path(path, sizeof path, "qwen-0.5b-q4_k_m.gguf");
    check_cases("qwen2", path);
}

/* ---- data/reference ---- */

static json_t *load_json(const char *name) {
    char path[4096];
    json_error_t error;
    data_path(path, sizeof path, "reference", name);
    json_t *json = json_load_file(path, 0, &error);
    if (!json) print_message("%s is not there, skipped\n", path);
    return json;
}

static void ids_of_json(const json_t *array, pith_ids *ids) {
    size_t i;
    json_t *item;
    ids->size = 0;
    assert_true(json_is_array(array));
    json_array_foreach((json_t *)array, i, item)
        assert_true(pith_ids_append(ids, (int32_t)json_integer_value(item)));
}

/* Prompts are plain text; rendered chats have control tokens. BOS as the vocabulary asks. */
static int check_prompts(const pith_tokenizer *tokenizer, const char *name, bool parse_special) {
    json_t *json = load_json(name), *item;
    pith_ids expected = {0};
    size_t i;
    int wrong = 0;
    if (!json) return 0;
    json_t *items = json_object_get(json, "items");
    assert_true(json_array_size(items) > 0);
    json_array_foreach(items, i, item) {
        const json_t *prompt = json_object_get(item, "prompt");
        assert_non_null(prompt);
        pith_span text = {json_string_value(prompt), json_string_length(prompt)};
        ids_of_json(json_object_get(item, "prompt_ids"), &expected);
        wrong += compare(tokenizer, text, parse_special, true, &expected, false);
    }
    print_message("%s: %zu prompts\n", name, i);
    json_decref(json);
    pith_ids_deinit(&expected);
    return wrong;
}

static int check_text(const pith_tokenizer *tokenizer, const char *model, const char *text_name) {
    char file[256], path[4096];
    size_t size;
    pith_ids expected = {0};
    snprintf(file, sizeof file, "%s.%s.json", model, text_name);
    json_t *json = load_json(file);
    snprintf(path, sizeof path, "%s.txt", text_name);
    data_path(path, sizeof path, "text", strcpy(file, path));
    char *text = read_file(path, &size);
    int wrong = 0;
    if (json && text) {
        ids_of_json(json_object_get(json, "ids"), &expected);
        assert_int_equal(expected.size, 256);
        wrong = compare(tokenizer, (pith_span){text, size}, false, true, &expected, true);
        wrong += compare_back(tokenizer, (pith_span){text, size});
        print_message("%s: %s\n", model, text_name);
    }
    pith_ids_deinit(&expected);
    json_decref(json);
    free(text);
    return wrong;
}

static void reference_ids(void **state) {
    (void)state;
    static const struct {
        const char *name, *file;
    } models[] = {{"smollm2", "smollm2-135m-q4_1.gguf"},
                  {"gemma3", "gemma3-270m-q4_k_m.gguf"},
                  {"qwen", "qwen-0.5b-q4_k_m.gguf"}};
    static const char *const texts[] = {"prose_en", "handbook_zh", "code"};
    int wrong = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[4096], file[256];
        model_path(path, sizeof path, models[i].file);
        pith_tokenizer *tokenizer = load(path);
        if (!tokenizer) {
            print_message("%s is not there, skipped\n", path);
            continue;
        }
        snprintf(file, sizeof file, "greedy.%s.json", models[i].name);
        wrong += check_prompts(tokenizer, file, false);
        snprintf(file, sizeof file, "chat.%s.json", models[i].name);
        if (strcmp(models[i].name, "gemma3") != 0) wrong += check_prompts(tokenizer, file, true);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            wrong += check_text(tokenizer, models[i].name, texts[k]);
        pith_tokenizer_free(tokenizer);
    }
    assert_int_equal(wrong, 0);
}

/* MiniLM has bert-bge's vocabulary: uncased WordPiece with [CLS] and [SEP]. */
static void sentence_ids(void **state) {
    (void)state;
    char path[4096];
    data_path(path, sizeof path, "vocab", "bert-bge.gguf");
    pith_tokenizer *tokenizer = load(path);
    json_t *json = load_json("minilm.json"), *item;
    size_t i;
    int wrong = 0;
    pith_ids expected = {0};
    if (tokenizer && json) {
        json_array_foreach(json_object_get(json, "sentences"), i, item) {
            const json_t *sentence = json_object_get(item, "sentence");
            assert_non_null(sentence);
            pith_span text = {json_string_value(sentence), json_string_length(sentence)};
            ids_of_json(json_object_get(item, "ids"), &expected);
            wrong += compare(tokenizer, text, false, true, &expected, false);
        }
        print_message("minilm: %zu sentences\n", i);
    }
    pith_ids_deinit(&expected);
    json_decref(json);
    pith_tokenizer_free(tokenizer);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabulary_cases),
        cmocka_unit_test(reference_ids),
        cmocka_unit_test(sentence_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
