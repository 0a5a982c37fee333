/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/rerank, in the shape of Jina's and Cohere's API: documents in the order of how much they
 * are like a query.
 * The score is the cosine of two pooled embeddings, from -1 to 1, and the answer says so
 * ("method"): a model made for ranking would read query and document together, and no such
 * architecture runs here yet. Its order is right, its numbers are no probabilities. */
#include "base/memory.h"
#include "server/embed_job.h"
#include "server/route.h"

#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    size_t index;
    double score;
} ranked;

/* The best first; of equal ones the earlier. */
static int compare(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The first vector is the query's. */
static void answer(pith_embed_job *job) {
    size_t n = job->n_texts - 1;
    const json_t *documents = json_object_get(job->fields, "documents");
    size_t most = (size_t)json_integer_value(json_object_get(job->fields, "top_n"));
    ranked *order = pith_alloc_array(n + 1, sizeof *order);
    json_t *results = json_array();
    const char *name = pith_served_name(job->served);
    for (size_t i = 0; order && i < n; i++)
        order[i] = (ranked){i, dot(job->vectors, job->vectors + (i + 1) * job->width, job->width)};
    if (order) qsort(order, n, sizeof *order, compare);
    bool ok = order && results;
    for (size_t i = 0; ok && i < n && i < most; i++) {
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)order[i].index,
                                "relevance_score", order[i].score);
        if (documents)
            ok = json_object_set_new(
                     one, "document",
                     json_pack("{s:O}", "text", json_array_get(documents, order[i].index))) == 0;
        ok = json_array_append_new(results, one) == 0 && ok;
    }
    json_t *body = json_pack("{s:s, s:o, s:s, s:o, s:{s:I, s:I}}", "object", "list", "model",
                             pith_json_text(name, strlen(name)), "method", "embedding_similarity",
                             "results", results, "usage", "prompt_tokens",
                             (json_int_t)job->n_tokens, "total_tokens", (json_int_t)job->n_tokens);
    pith_exchange_reply(job->exchange, 200, ok ? body : (json_decref(body), NULL));
    pith_free(order);
}

/* A string, or {"text"}. */
static void add_document(pith_fields *f, json_t *document, size_t at, json_t *texts) {
    char path[PITH_FIELDS_PATH];
    const char *text = NULL;
    pith_fields in;
    snprintf(path, sizeof path, "documents[%zu]", at);
    if (json_is_string(document)) {
        pith_fields_append(f, texts, json_incref(document));
        return;
    }
    if (!pith_fields_enter(f, document, path, &in)) return;
    if (pith_fields_require(&in, "text")) pith_fields_text(&in, "text", &text);
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in)) pith_fields_append(f, texts, json_string(text));
}

/* [query, document, ...] */
static json_t *read_texts(pith_fields *f) {
    const char *query = NULL;
    json_t *documents = NULL, *one, *texts = json_array();
    size_t i;
    if (pith_fields_require(f, "query") && pith_fields_text(f, "query", &query))
        pith_fields_append(f, texts, json_string(query));
    if (pith_fields_require(f, "documents")) pith_fields_array(f, "documents", &documents);
    if (documents && json_array_size(documents) == 0)
        pith_fields_wrong(f, "documents", "invalid_value", "must hold at least one document");
    json_array_foreach(documents, i, one) {
        add_document(f, one, i, texts);
    }
    return texts;
}

static json_t *without_query(const json_t *texts) {
    json_t *documents = json_deep_copy(texts); /* another thread has it */
    json_array_remove(documents, 0);
    return documents;
}

void pith_handle_rerank(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    int64_t top_n = PITH_EMBED_MAX_TEXTS;
    bool returns = false;
    pith_embed_request r = {.param = "documents", .has_query = true, .answer = answer};
    pith_fields_init(&f, body, "");
    pith_fields_text(&f, "model", &r.model);
    r.texts = read_texts(&f);
    pith_fields_int(&f, "top_n", 1, INT32_MAX, &top_n);
    pith_fields_flag(&f, "return_documents", &returns);
    r.fields = json_pack("{s:I}", "top_n", (json_int_t)top_n);
    if (!r.fields) pith_fields_short(&f);
    if (returns && !f.failed) pith_fields_set(&f, r.fields, "documents", without_query(r.texts));
    pith_embed_start(exchange, &f, body, &r);
}
