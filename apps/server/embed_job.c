/* SPDX-License-Identifier: Apache-2.0
 * From the texts of a request to a job for vectors.
 * Invariant: all that can be wrong with a request is found here; a job owns its ids. */
#include "server/embed_job.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

void pith_embed_job_free(pith_embed_job *job) {
    if (!job) return;
    for (size_t i = 0; i < job->n_texts; i++) pith_free(job->texts[i].ids);
    pith_free(job->texts);
    pith_free(job->vectors);
    json_decref(job->fields);
    pith_models_give_back(job->served);
    pith_exchange_release(job->exchange);
    pith_free(job);
}

/* ---- Texts ---- */

static bool add_string(pith_embed_job *job, const json_t *text, bool cuts, pith_error *error) {
    pith_embed_text *out = &job->texts[job->n_texts++];
    size_t size = json_string_length(text), limit = pith_served_text_limit(job->served);
    if (size > limit && !cuts)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "text %zu has %zu bytes, more than any %d tokens of the context: shorten "
                         "it, or start the server with a larger --ctx",
                         job->n_texts - 1, size, (int)pith_served_n_ctx(job->served)) == PITH_OK;
    if (size > limit) {
        const char *bytes = json_string_value(text);
        for (size = limit; size > 0 && ((unsigned char)bytes[size] & 0xC0) == 0x80;) size--;
    }
    out->ids = pith_alloc_array(size + 2, sizeof *out->ids);
    if (!out->ids) return pith_fail_memory(error, "the ids of a text", size) == PITH_OK;
    return pith_tokenize(pith_served_model(job->served), json_string_value(text), size,
                         PITH_TOKENIZE_ADD_SPECIAL, out->ids, size + 2, &out->n, error) == PITH_OK;
}

static bool add_ids(pith_embed_job *job, const json_t *list, pith_error *error) {
    pith_embed_text *out = &job->texts[job->n_texts++];
    int32_t n_vocab = pith_model_describe(pith_served_model(job->served)).n_vocab;
    json_t *one;
    size_t i, n = json_array_size(list);
    out->ids = pith_alloc_array(n + 1, sizeof *out->ids);
    if (!out->ids) return pith_fail_memory(error, "the ids of a text", n) == PITH_OK;
    json_array_foreach(list, i, one) {
        json_int_t id = json_integer_value(one);
        if (!json_is_integer(one) || id < 0 || id >= n_vocab)
            return pith_fail(error, PITH_ERROR_ARGUMENT, "a token must be an id below %d",
                             (int)n_vocab) == PITH_OK;
        out->ids[out->n++] = (int32_t)id;
    }
    return true;
}

/* "input", "query", or "documents[1]" where texts are told apart. */
static const char *name_text(const pith_embed_request *r, size_t at, char out[PITH_FIELDS_PATH]) {
    if (r->has_query && at == 0) return "query";
    if (json_array_size(r->texts) == 1) return r->param;
    snprintf(out, PITH_FIELDS_PATH, "%s[%zu]", r->param, at - r->has_query);
    return out;
}

static bool check_length(pith_embed_job *job, const pith_embed_request *r, const char *name,
                         pith_error *error) {
    pith_embed_text *text = &job->texts[job->n_texts - 1];
    size_t n_ctx = (size_t)(r->wanted_ctx > 0 ? r->wanted_ctx : pith_served_n_ctx(job->served));
    if (text->n == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "%s has no tokens", name) == PITH_OK;
    if (text->n > n_ctx && !r->cuts)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "%s has %zu tokens, the context holds %zu: shorten it, or start the "
                         "server with a larger --ctx",
                         name, text->n, n_ctx) == PITH_OK;
    if (text->n > n_ctx) text->n = n_ctx;
    job->n_tokens += text->n;
    return true;
}

/* What was asked for and this model, or the server, does not have. */
static bool check_request(pith_embed_job *job, const pith_embed_request *r, size_t n,
                          pith_job_refusal *why) {
    int32_t n_ctx = pith_served_n_ctx(job->served);
    if (r->dimensions > 0 && (size_t)r->dimensions != job->width) {
        why->param = "dimensions";
        pith_fail(&why->error, PITH_ERROR_UNSUPPORTED,
                  "dimensions must be %zu, the width of this model's vectors: they are not cut",
                  job->width);
        return false;
    }
    if (r->wanted_ctx > n_ctx) {
        why->param = "options.num_ctx";
        pith_fail(&why->error, PITH_ERROR_LIMIT,
                  "options.num_ctx is %lld, the server's context holds %d tokens: ask for less, or "
                  "start it with a larger --ctx",
                  (long long)r->wanted_ctx, (int)n_ctx);
        return false;
    }
    if (n <= PITH_EMBED_MAX_TEXTS && n * job->width <= PITH_EMBED_MAX_VALUES) return true;
    pith_fail(&why->error, PITH_ERROR_LIMIT,
              "%zu vectors of %zu values are over the limit of %d texts and %d values", n,
              job->width, PITH_EMBED_MAX_TEXTS, PITH_EMBED_MAX_VALUES);
    return false;
}

/* path: room for the name of the text that is wrong. */
static bool add_texts(pith_embed_job *job, const pith_embed_request *r, char path[PITH_FIELDS_PATH],
                      pith_job_refusal *why) {
    json_t *one;
    size_t i, n = json_array_size(r->texts);
    job->width = (size_t)pith_model_describe(pith_served_model(job->served)).n_embd;
    if (!check_request(job, r, n, why)) return false;
    job->texts = pith_alloc_zero(n + 1, sizeof *job->texts);
    job->vectors = pith_alloc_zero(n + 1, job->width * sizeof *job->vectors);
    if (!job->texts || !job->vectors)
        return pith_fail_memory(&why->error, "vectors", n * job->width * sizeof *job->vectors) ==
               PITH_OK;
    json_array_foreach(r->texts, i, one) {
        bool ok = json_is_string(one) ? add_string(job, one, r->cuts, &why->error)
                                      : add_ids(job, one, &why->error);
        why->param = name_text(r, i, path);
        if (!ok || !check_length(job, r, why->param, &why->error)) return false;
    }
    return true;
}

/* ---- The request ---- */

static void start(pith_exchange *exchange, const pith_embed_request *r) {
    pith_models *models = pith_exchange_server(exchange)->models;
    pith_served *served = NULL;
    char path[PITH_FIELDS_PATH];
    pith_job_refusal why = {.param = r->param};
    if (pith_models_lease(models, r->model, exchange, &served) != PITH_LEASE_OK) {
        json_decref(r->fields);
        return;
    }
    pith_embed_job *job = pith_alloc_zero(1, sizeof *job);
    if (!job) {
        pith_fail_memory(&why.error, "a request", sizeof *job);
        pith_job_refuse(exchange, &why);
        json_decref(r->fields);
        pith_models_give_back(served);
        return;
    }
    pith_exchange_retain(exchange);
    *job = (pith_embed_job){.served = served,
                            .exchange = exchange,
                            .begun_ns = pith_clock_ns(),
                            .answer = r->answer,
                            .fields = r->fields};
    if (r->keeps) pith_served_keep(served, r->keep_seconds);
    bool ok = add_texts(job, r, path, &why);
    pith_embed_thread *thread = ok ? pith_served_embed_thread(served, &why.error) : NULL;
    if (thread && pith_embed_thread_push(thread, job)) return;
    why.is_busy = thread != NULL;
    if (why.is_busy)
        pith_fail(&why.error, PITH_ERROR_LIMIT, "too many requests wait; try again in a moment");
    pith_job_refuse(exchange, &why);
    pith_embed_job_free(job);
}

void pith_embed_start(pith_exchange *exchange, pith_fields *fields, json_t *body,
                      const pith_embed_request *r) {
    if (pith_fields_close(fields)) {
        start(exchange, r);
    } else {
        json_decref(r->fields);
        pith_fields_refuse(fields, exchange);
    }
    json_decref(r->texts);
    json_decref(body);
}

static bool is_all(const json_t *list, json_type type) {
    json_t *one;
    size_t i;
    json_array_foreach(list, i, one) {
        if (json_typeof(one) != type) return false;
    }
    return true;
}

static json_t *list_of(pith_fields *f, json_t *one) {
    json_t *list = json_pack("[O]", one);
    if (!list) pith_fields_short(f);
    return list;
}

json_t *pith_embed_read_input(pith_fields *f, bool with_ids) {
    static const char *const wanted[] = {"must be a string or an array of strings",
                                         "must be a string, an array of strings, or token ids"};
    if (!pith_fields_require(f, "input")) return NULL;
    json_t *input = pith_fields_any(f, "input");
    if (json_is_string(input)) return list_of(f, input);
    bool is_ids = with_ids && is_all(input, JSON_INTEGER);
    if (json_is_array(input) && json_array_size(input) == 0)
        pith_fields_wrong(f, "input", "invalid_value", "must hold at least one text");
    else if (json_is_array(input) && is_ids)
        return list_of(f, input);
    else if (json_is_array(input) &&
             (is_all(input, JSON_STRING) || (with_ids && is_all(input, JSON_ARRAY))))
        return json_incref(input);
    else
        pith_fields_wrong(f, "input", "invalid_type", "%s", wanted[with_ids]);
    return NULL;
}

void pith_embed_write_vector(pith_buffer *out, const float *vector, size_t width) {
    for (size_t i = 0; i < width; i++)
        pith_buffer_append_format(out, "%c%.9g", i == 0 ? '[' : ',', (double)vector[i]);
    pith_buffer_append_text(out, "]");
}
