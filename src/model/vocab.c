/* SPDX-License-Identifier: Apache-2.0
 * GGUF -> tokenizer: reads the `tokenizer.ggml.*` keys with the typed reader, checks that arrays
 * agree in length, and hands everything to src/token as plain arrays. Numbers that are stored in
 * another width are converted into arrays of the room's own; nothing here outlives the call.
 * Special ids and texts are checked by src/token, which knows the defaults. Read next:
 * token/token.h. */
#include "model/vocab.h"

#include "base/memory.h"

#define PREFIX "tokenizer.ggml."

typedef struct vocab_arrays {
    float *scores;
    int32_t *types;
} vocab_arrays;

/* The array under key, which must have `kind` items ("str" or numbers) and count of them when
 * count > 0; NULL in *out when the key is absent. */
static pith_status find_array(const pith_gguf *gguf, const char *key, bool strings, uint64_t count,
                              const pith_gguf_value **out, pith_error *error) {
    const pith_gguf_value *value = pith_gguf_value_find(gguf, key);
    *out = NULL;
    if (!value) return PITH_OK;
    bool fits = value->kind == PITH_GGUF_ARRAY && (value->item_kind == PITH_GGUF_STRING) == strings;
    if (!fits)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key %s holds %s, but a list of %s belongs there", key,
                         pith_gguf_kind_text(value), strings ? "strings" : "numbers");
    if (count && value->n_items != count)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key %s has %llu items, but the vocabulary has %llu tokens", key,
                         (unsigned long long)value->n_items, (unsigned long long)count);
    *out = value;
    return PITH_OK;
}

static pith_status read_scores(const pith_gguf *gguf, pith_vocab_source *source,
                               vocab_arrays *arrays, pith_error *error) {
    const pith_gguf_value *value;
    pith_status status = find_array(gguf, PREFIX "scores", false, source->n_tokens, &value, error);
    if (status != PITH_OK || !value) return status;
    arrays->scores = pith_alloc_array(source->n_tokens, sizeof *arrays->scores);
    if (!arrays->scores) return pith_fail_memory(error, "token scores", source->n_tokens * 4ull);
    for (uint32_t i = 0; i < source->n_tokens; i++)
        arrays->scores[i] = (float)pith_gguf_item_number(value, i);
    source->scores = arrays->scores;
    return PITH_OK;
}

static pith_status read_types(const pith_gguf *gguf, pith_vocab_source *source,
                              vocab_arrays *arrays, pith_error *error) {
    const pith_gguf_value *value;
    pith_status status =
        find_array(gguf, PREFIX "token_type", false, source->n_tokens, &value, error);
    if (status != PITH_OK || !value) return status;
    arrays->types = pith_alloc_array(source->n_tokens, sizeof *arrays->types);
    if (!arrays->types) return pith_fail_memory(error, "token types", source->n_tokens * 4ull);
    for (uint32_t i = 0; i < source->n_tokens; i++) {
        double type = pith_gguf_item_number(value, i);
        if (!(type >= PITH_TOKEN_UNDEFINED && type <= PITH_TOKEN_BYTE))
            return pith_fail(error, PITH_ERROR_FORMAT,
                             "token %u has type %g, but types go from 0 to 6", (unsigned)i, type);
        arrays->types[i] = (int32_t)type;
    }
    source->types = arrays->types;
    return PITH_OK;
}

/* An id outside the vocabulary is ignored with a note by the tokenizer. */
static pith_status read_id(const pith_gguf *gguf, const char *key, int32_t *out,
                           pith_error *error) {
    uint32_t id = 0;
    bool found = false;
    pith_status status = pith_gguf_get_u32(gguf, key, 0, UINT32_MAX, &id, &found, error);
    if (status == PITH_OK && found) *out = id > INT32_MAX ? INT32_MAX : (int32_t)id;
    return status;
}

static pith_status read_ids(const pith_gguf *gguf, pith_vocab_source *s, pith_error *error) {
    const struct {
        const char *key;
        int32_t *target;
    } ids[] = {
        {PREFIX "bos_token_id", &s->bos},
        {PREFIX "eos_token_id", &s->eos},
        {PREFIX "eot_token_id", &s->eot},
        {PREFIX "eom_token_id", &s->eom},
        {PREFIX "unknown_token_id", &s->unknown},
        {PREFIX "seperator_token_id", &s->separator},
        {PREFIX "padding_token_id", &s->padding},
        {PREFIX "mask_token_id", &s->mask},
        {PREFIX "fim_pad_token_id", &s->fim_pad},
        {PREFIX "fim_rep_token_id", &s->fim_repo},
        {PREFIX "fim_sep_token_id", &s->fim_separator},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        pith_status status = read_id(gguf, ids[i].key, ids[i].target, error);
        if (status != PITH_OK) return status;
    }
    if (s->model == PITH_TOKEN_MODEL_WPM && s->bos < 0) /* [CLS] is BERT's first token */
        return read_id(gguf, PREFIX "cls_token_id", &s->bos, error);
    return PITH_OK;
}

static pith_status read_flags(const pith_gguf *gguf, pith_vocab_source *s, pith_error *error) {
    const struct {
        const char *key;
        int8_t *target;
    } flags[] = {
        {PREFIX "add_bos_token", &s->add_bos},
        {PREFIX "add_eos_token", &s->add_eos},
        {PREFIX "add_sep_token", &s->add_sep},
        {PREFIX "add_space_prefix", &s->add_space_prefix},
        {PREFIX "remove_extra_whitespaces", &s->remove_extra_whitespaces},
        {PREFIX "normalizer.lowercase", &s->lowercase},
        {PREFIX "normalizer.strip_accents", &s->strip_accents},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool value = false, found = false;
        pith_status status = pith_gguf_get_bool(gguf, flags[i].key, &value, &found, error);
        if (status != PITH_OK) return status;
        if (found) *flags[i].target = value;
    }
    return PITH_OK;
}

static pith_status read_texts(const pith_gguf *gguf, pith_vocab_source *s, pith_error *error) {
    const pith_gguf_value *value;
    pith_status status = find_array(gguf, PREFIX "tokens", true, 0, &value, error);
    if (status != PITH_OK) return status;
    if (!value || value->n_items == 0 || value->n_items > INT32_MAX)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key " PREFIX "tokens is missing or empty, so there is no vocabulary");
    s->texts = value->strings;
    s->n_tokens = (uint32_t)value->n_items;
    status = find_array(gguf, PREFIX "merges", true, 0, &value, error);
    if (status != PITH_OK || !value) return status;
    if (value->n_items > INT32_MAX)
        return pith_fail(error, PITH_ERROR_LIMIT, "key " PREFIX "merges has %llu items",
                         (unsigned long long)value->n_items);
    s->merges = value->strings;
    s->n_merges = (uint32_t)value->n_items;
    return PITH_OK;
}

static pith_status read_model(const pith_gguf *gguf, pith_vocab_source *s, pith_error *error) {
    static const struct {
        char name[11];
        pith_token_model model;
        char pre[11]; /* what the model implies, else the key decides */
    } models[] = {{"llama", PITH_TOKEN_MODEL_SPM, ""},
                  {"gpt2", PITH_TOKEN_MODEL_BPE, ""},
                  {"gemma4", PITH_TOKEN_MODEL_BPE, "gemma4"},
                  {"whitespace", PITH_TOKEN_MODEL_BPE, "whitespace"},
                  {"bert", PITH_TOKEN_MODEL_WPM, ""},
                  {"t5", PITH_TOKEN_MODEL_UGM, ""},
                  {"none", PITH_TOKEN_MODEL_NONE, ""},
                  {"no_vocab", PITH_TOKEN_MODEL_NONE, ""}};
    pith_span name = {0};
    bool found = false;
    pith_status status = pith_gguf_get_string(gguf, PREFIX "model", &name, &found, error);
    if (status != PITH_OK) return status;
    if (!found) name = pith_span_of("none");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        if (!pith_span_is(name, models[i].name)) continue;
        s->model = models[i].model;
        if (*models[i].pre) s->pre = pith_span_of(models[i].pre);
        return PITH_OK;
    }
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     "tokenizer model '%.40s' is not known here; llama, gpt2, bert and t5 are",
                     name.data);
}

static pith_status read_names(const pith_gguf *gguf, pith_vocab_source *s, pith_error *error) {
    bool found;
    pith_status status = PITH_OK;
    if (!s->pre.size) status = pith_gguf_get_string(gguf, PREFIX "pre", &s->pre, &found, error);
    if (status == PITH_OK)
        status = pith_gguf_get_string(gguf, "general.name", &s->model_name, &found, error);
    if (status == PITH_OK)
        status =
            pith_gguf_get_string(gguf, "general.architecture", &s->architecture, &found, error);
    if (status != PITH_OK) return status;
    const pith_gguf_value *map = pith_gguf_value_find(gguf, PREFIX "precompiled_charsmap");
    bool bytes = map && map->kind == PITH_GGUF_ARRAY &&
                 (map->item_kind == PITH_GGUF_U8 || map->item_kind == PITH_GGUF_I8);
    if (map && !bytes)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key " PREFIX "precompiled_charsmap holds %s, but bytes belong there",
                         pith_gguf_kind_text(map));
    if (map) s->charsmap = (pith_span){(const char *)map->bytes, (size_t)map->size};
    return PITH_OK;
}

static pith_status read_all(const pith_gguf *gguf, pith_vocab_source *s, vocab_arrays *arrays,
                            pith_error *error) {
    pith_status status = read_model(gguf, s, error);
    if (status == PITH_OK) status = read_names(gguf, s, error);
    if (status != PITH_OK || s->model == PITH_TOKEN_MODEL_NONE) return status;
    status = read_texts(gguf, s, error);
    if (status == PITH_OK) status = read_scores(gguf, s, arrays, error);
    if (status == PITH_OK) status = read_types(gguf, s, arrays, error);
    if (status == PITH_OK) status = read_ids(gguf, s, error);
    if (status == PITH_OK) status = read_flags(gguf, s, error);
    return status;
}

pith_status pith_vocab_load(const pith_gguf *gguf, bool force, pith_tokenizer **out,
                            pith_error *error) {
    pith_vocab_source source;
    vocab_arrays arrays = {0};
    pith_vocab_source_init(&source);
    source.force = force;
    *out = NULL;
    pith_status status = read_all(gguf, &source, &arrays, error);
    if (status == PITH_OK) status = pith_tokenizer_new(&source, out, error);
    pith_free(arrays.scores);
    pith_free(arrays.types);
    return status;
}
