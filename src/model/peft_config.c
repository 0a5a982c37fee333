/* SPDX-License-Identifier: Apache-2.0
 * adapter_config.json of a PEFT folder: the fields that change the numbers.
 *
 *   factor of a pair = alpha / rank, with use_rslora alpha / sqrt(rank) (Kalajdzievski 2023,
 *   arXiv:2312.03732); alpha_pattern and rank_pattern give modules numbers of their own
 *
 * Invariant: a field that would change what the adapter computes is obeyed or refused by name;
 * fields that say how it was trained are not looked at. The config is held as JSON and asked for
 * each module. */
#include "base/memory.h"
#include "model/adapter.h"
#include "model/peft_json.h"

#include <math.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

struct pith_peft_config {
    json_t *json;
    double alpha;
    uint32_t rank;
    bool is_rslora;
};

void pith_peft_config_close(pith_peft_config *config) {
    if (!config) return;
    json_decref(config->json);
    pith_free(config);
}

static pith_status fail_field(const char *field, const char *what, pith_error *error) {
    return pith_fail(error, PITH_ERROR_UNSUPPORTED, "adapter_config.json: %s %s", field, what);
}

/* ---- Fields ---- */

/* Those that must be absent, null or false. */
static pith_status check_switches(const json_t *json, pith_error *error) {
    static const struct {
        const char *field, *what;
    } switches[] = {{"use_dora", "(DoRA: magnitudes beside the pairs) is not supported"},
                    {"use_qalora", "(grouped inputs) is not supported"},
                    {"lora_bias", "(a bias behind B) is not supported"},
                    {"layer_replication", "(layers used twice) is not supported"}};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        const json_t *value = json_object_get(json, switches[i].field);
        if (value && !json_is_null(value) && !json_is_false(value))
            return fail_field(switches[i].field, switches[i].what, error);
    }
    return PITH_OK;
}

/* Ways to begin the training that change the base weights: the pairs add to other weights than the
 * model's. */
static pith_status check_start(const json_t *json, pith_error *error) {
    static const char *const starts[] = {"pissa", "olora", "corda", "loftq"};
    const char *start = json_string_value(json_object_get(json, "init_lora_weights"));
    for (size_t i = 0; start && i < sizeof starts / sizeof *starts; i++)
        if (strncmp(start, starts[i], strlen(starts[i])) == 0)
            return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                             "adapter_config.json: init_lora_weights \"%.20s\" changed the base "
                             "weights: save the adapter converted to plain LoRA",
                             start);
    return PITH_OK;
}

static pith_status check_kind(const json_t *json, pith_error *error) {
    const char *kind = json_string_value(json_object_get(json, "peft_type"));
    if (kind && strcmp(kind, "LORA") == 0) return PITH_OK;
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     "adapter_config.json: peft_type is \"%.20s\"; pith reads LORA",
                     kind ? kind : "");
}

/* A whole number of ranks; false for anything else. */
static bool read_rank(const json_t *value, uint32_t *rank) {
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || number > PITH_DELTA_MAX_RANK) return false;
    *rank = (uint32_t)number;
    return true;
}

static bool read_alpha(const json_t *value, double *alpha) {
    *alpha = json_number_value(value);
    return json_is_number(value) && fabs(*alpha) <= 1e9;
}

static pith_status read_fields(pith_peft_config *config, pith_error *error) {
    const json_t *json = config->json, *rslora = json_object_get(json, "use_rslora");
    pith_status status = check_kind(json, error);
    if (status == PITH_OK) status = check_switches(json, error);
    if (status == PITH_OK) status = check_start(json, error);
    if (status != PITH_OK) return status;
    if (!read_rank(json_object_get(json, "r"), &config->rank))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "adapter_config.json: r must be a whole number from 1 to %d",
                         PITH_DELTA_MAX_RANK);
    if (!read_alpha(json_object_get(json, "lora_alpha"), &config->alpha))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "adapter_config.json: lora_alpha must be a number of at most 1e9");
    if (rslora && !json_is_boolean(rslora) && !json_is_null(rslora))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "adapter_config.json: use_rslora must be true or false");
    config->is_rslora = json_is_true(rslora);
    return PITH_OK;
}

/* ---- The file ---- */

static pith_status read_text(const char *path, char **text, size_t *size, pith_error *error) {
    pith_source *source = NULL;
    pith_status status = pith_source_open_path(path, &source, error);
    if (status != PITH_OK) return status;
    uint64_t bytes = pith_source_size(source);
    *size = (size_t)bytes;
    if (bytes > MAX_BYTES)
        status = pith_fail(error, PITH_ERROR_LIMIT, "%.120s has %llu bytes; at most %d are read",
                           path, (unsigned long long)bytes, MAX_BYTES);
    if (status == PITH_OK && !(*text = pith_alloc(*size)))
        status = pith_fail_memory(error, path, bytes);
    if (status == PITH_OK) status = pith_source_read(source, 0, *text, *size, error);
    pith_source_close(source);
    return status;
}

pith_status pith_peft_config_open(const char *path, pith_peft_config **out, pith_error *error) {
    char *text = NULL;
    size_t size = 0;
    *out = NULL;
    pith_peft_config *config = pith_alloc_zero(1, sizeof *config);
    if (!config) return pith_fail_memory(error, "an adapter", sizeof *config);
    pith_status status = read_text(path, &text, &size, error);
    if (status == PITH_OK)
        status = pith_json_text_parse((pith_span){text, size}, "adapter_config.json", &config->json,
                                      error);
    pith_free(text);
    if (status == PITH_OK) status = read_fields(config, error);
    if (status != PITH_OK) {
        pith_peft_config_close(config);
        return status;
    }
    *out = config;
    return PITH_OK;
}

/* ---- Numbers of a module ---- */

/* Keys of patterns are regular expressions that match the end of a module's path. Those without
 * special characters are read; a dot is a dot. */
static bool is_plain(const char *key) {
    for (; *key; key++) {
        char c = *key;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '.';
        if (!plain) return false;
    }
    return true;
}

static bool is_end_of(pith_span module, const char *key) {
    size_t n = strlen(key);
    if (n > module.size || memcmp(module.data + module.size - n, key, n) != 0) return false;
    return n == module.size || module.data[module.size - n - 1] == '.';
}

/* The first value of a pattern whose key fits the module; NULL: none. */
static pith_status find_pattern(const pith_peft_config *config, const char *field, pith_span module,
                                const json_t **found, pith_error *error) {
    json_t *pattern = json_object_get(config->json, field);
    const char *key;
    json_t *value;
    *found = NULL;
    json_object_foreach(pattern, key, value) {
        if (!is_plain(key))
            return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                             "adapter_config.json: %s has the key \"%.60s\": pith reads names of "
                             "modules, no expressions",
                             field, key);
        if (!*found && is_end_of(module, key)) *found = value;
    }
    return PITH_OK;
}

pith_status pith_peft_config_scale(const pith_peft_config *config, pith_span module, uint32_t *rank,
                                   float *scale, pith_error *error) {
    const json_t *own_rank, *own_alpha;
    double alpha = config->alpha;
    *rank = config->rank;
    pith_status status = find_pattern(config, "rank_pattern", module, &own_rank, error);
    if (status == PITH_OK)
        status = find_pattern(config, "alpha_pattern", module, &own_alpha, error);
    if (status != PITH_OK) return status;
    if (own_rank && !read_rank(own_rank, rank))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "adapter_config.json: a rank in rank_pattern is no whole number from 1 to "
                         "%d",
                         PITH_DELTA_MAX_RANK);
    if (own_alpha && !read_alpha(own_alpha, &alpha))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "adapter_config.json: an alpha in alpha_pattern is no number");
    double divisor = config->is_rslora ? sqrt((double)*rank) : (double)*rank;
    *scale = (float)(alpha / divisor);
    return PITH_OK;
}

/* ---- Activated LoRA ---- */

static pith_status copy_ids(const json_t *list, uint32_t n_vocab, int32_t **ids, size_t *n,
                            pith_error *error) {
    size_t size = json_array_size(list);
    if (!json_is_array(list) || size < 1 || size > PITH_ADAPTER_MAX_INVOCATION)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "adapter_config.json: alora_invocation_tokens must hold 1 to %d ids",
                         PITH_ADAPTER_MAX_INVOCATION);
    *ids = pith_alloc_array(size, sizeof **ids);
    if (!*ids) return pith_fail_memory(error, "an adapter", size * sizeof **ids);
    for (size_t i = 0; i < size; i++) {
        const json_t *value = json_array_get(list, i);
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || id >= (json_int_t)n_vocab)
            return pith_fail(error, PITH_ERROR_FORMAT,
                             "adapter_config.json: id %zu of alora_invocation_tokens is outside "
                             "the vocabulary of %u",
                             i, n_vocab);
        (*ids)[i] = (int32_t)id;
    }
    *n = size;
    return PITH_OK;
}

static pith_status tokenize(const json_t *text, const pith_model *model, int32_t **ids, size_t *n,
                            pith_error *error) {
    pith_ids list = {0};
    pith_text_span span = {{json_string_value(text), json_string_length(text)}, true};
    if (!json_is_string(text) || !model->tokenizer)
        return fail_field("alora_invocation_string", "cannot be read as ids of this model", error);
    pith_status status = pith_tokenizer_encode(model->tokenizer, &span, 1, false, &list, error);
    if (status == PITH_OK && (list.size < 1 || list.size > PITH_ADAPTER_MAX_INVOCATION))
        status = pith_fail(error, PITH_ERROR_FORMAT,
                           "adapter_config.json: alora_invocation_string makes %zu ids; 1 to %d "
                           "are possible",
                           list.size, PITH_ADAPTER_MAX_INVOCATION);
    if (status == PITH_OK && !(*ids = pith_alloc_array(list.size, sizeof **ids)))
        status = pith_fail_memory(error, "an adapter", list.size * sizeof **ids);
    if (status == PITH_OK) {
        memcpy(*ids, list.data, list.size * sizeof **ids);
        *n = list.size;
    }
    pith_ids_deinit(&list);
    return status;
}

pith_status pith_peft_config_invocation(const pith_peft_config *config, const pith_model *model,
                                        int32_t **ids, size_t *n, pith_error *error) {
    const json_t *list = json_object_get(config->json, "alora_invocation_tokens");
    const json_t *text = json_object_get(config->json, "alora_invocation_string");
    *n = 0;
    if (list && !json_is_null(list)) return copy_ids(list, model->hparams.n_vocab, ids, n, error);
    if (text && !json_is_null(text)) return tokenize(text, model, ids, n, error);
    return PITH_OK;
}
