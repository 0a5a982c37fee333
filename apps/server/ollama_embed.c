/* SPDX-License-Identifier: Apache-2.0
 * POST /api/embed, and the older /api/embeddings with one text: vectors as Ollama's API has them.
 * Texts that are too long are cut unless truncate is false. */
#include "server/ollama.h"

#include "base/clock.h"

#include <string.h>

static void reply(pith_embed_job *job, pith_buffer *out) {
    if (out->failed)
        pith_exchange_reply(job->exchange, 500, NULL);
    else
        pith_exchange_reply_text(job->exchange, 200, "application/json",
                                 (pith_span){out->data, out->size});
    pith_buffer_deinit(out);
}

static void answer(pith_embed_job *job) {
    pith_buffer out = {0};
    const char *name = pith_served_name(job->served);
    uint64_t begun = pith_exchange_begun_ns(job->exchange), now = pith_clock_ns();
    json_t *model = pith_json_text(name, strlen(name));
    char *text = pith_json_dump(model);
    if (!text) out.failed = true;
    pith_buffer_append_format(&out, "{\"model\":%s,\"embeddings\":[", text ? text : "");
    for (size_t i = 0; i < job->n_texts; i++) {
        if (i > 0) pith_buffer_append_text(&out, ",");
        pith_embed_write_vector(&out, job->vectors + i * job->width, job->width);
    }
    pith_buffer_append_format(&out,
                              "],\"total_duration\":%llu,\"load_duration\":%llu,"
                              "\"prompt_eval_count\":%zu}",
                              (unsigned long long)(now - begun),
                              (unsigned long long)(job->begun_ns - begun), job->n_tokens);
    pith_json_release(text);
    json_decref(model);
    reply(job, &out);
}

static void answer_one(pith_embed_job *job) {
    pith_buffer out = {0};
    pith_buffer_append_text(&out, "{\"embedding\":");
    pith_embed_write_vector(&out, job->vectors, job->width);
    pith_buffer_append_text(&out, "}");
    reply(job, &out);
}

/* Options of sampling change no vector: they are refused by name, but for the context. */
static void read_options(pith_fields *f, pith_embed_request *r) {
    json_t *options = NULL;
    pith_fields in;
    if (!pith_fields_object(f, "options", &options)) return;
    pith_fields_init(&in, options, "options");
    pith_fields_int(&in, "num_ctx", 1, INT32_MAX, &r->wanted_ctx);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

static void handle(pith_exchange *exchange, bool is_old) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    const char *prompt = NULL;
    pith_embed_request r = {
        .param = is_old ? "prompt" : "input", .cuts = true, .answer = is_old ? answer_one : answer};
    pith_fields_init(&f, body, "");
    if (pith_fields_require(&f, "model")) pith_fields_text(&f, "model", &r.model);
    if (!is_old)
        r.texts = pith_embed_read_input(&f, false);
    else if (pith_fields_require(&f, "prompt") && pith_fields_text(&f, "prompt", &prompt))
        r.texts = json_pack("[s]", prompt);
    if (!r.texts && !f.failed) pith_fields_short(&f);
    if (!is_old) pith_fields_flag(&f, "truncate", &r.cuts);
    if (!is_old) pith_fields_int(&f, "dimensions", 1, 1 << 24, &r.dimensions);
    r.keeps = pith_ollama_read_keep(&f, &r.keep_seconds);
    read_options(&f, &r);
    pith_embed_start(exchange, &f, body, &r);
}

void pith_handle_ollama_embed(pith_exchange *exchange) {
    handle(exchange, false);
}

void pith_handle_ollama_embeddings(pith_exchange *exchange) {
    handle(exchange, true);
}
