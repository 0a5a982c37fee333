/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/embeddings, as OpenAI's API has it: a vector of length 1 for each text, from the pooled
 * final states of the model. `dimensions` other than the model's is refused: vectors of models that
 * were not trained for it mean nothing when they are cut. */
#include "server/embed_job.h"
#include "server/route.h"

#include <string.h>

/* Floats, little-endian, as base64. */
static void write_base64(pith_buffer *out, const float *vector, size_t width) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t held = 0;
    size_t n = width * 4;
    char four[4];
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &vector[i / 4], sizeof bits);
        held = held << 8 | (bits >> (8 * (i % 4)) & 0xFF);
        if (i % 3 != 2) continue;
        for (int k = 0; k < 4; k++) four[k] = digits[held >> (18 - 6 * k) & 63];
        pith_buffer_append(out, four, 4);
        held = 0;
    }
    size_t rest = n % 3;
    if (rest == 0) return;
    held <<= 8 * (3 - rest);
    for (size_t k = 0; k < 4; k++) four[k] = k <= rest ? digits[held >> (18 - 6 * k) & 63] : '=';
    pith_buffer_append(out, four, 4);
}

static void append_json(pith_buffer *out, json_t *json) {
    char *text = pith_json_dump(json);
    if (text)
        pith_buffer_append_text(out, text);
    else
        out->failed = true;
    pith_json_release(text);
    json_decref(json);
}

static void answer(pith_embed_job *job) {
    pith_buffer out = {0};
    const char *name = pith_served_name(job->served);
    bool is_base64 = json_is_true(json_object_get(job->fields, "base64"));
    pith_buffer_append_text(&out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < job->n_texts; i++) {
        const float *vector = job->vectors + i * job->width;
        pith_buffer_append_format(&out,
                                  "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":%s",
                                  i > 0 ? "," : "", i, is_base64 ? "\"" : "");
        if (is_base64)
            write_base64(&out, vector, job->width);
        else
            pith_embed_write_vector(&out, vector, job->width);
        pith_buffer_append_text(&out, is_base64 ? "\"}" : "}");
    }
    pith_buffer_append_text(&out, "],\"model\":");
    append_json(&out, pith_json_text(name, strlen(name)));
    pith_buffer_append_format(&out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}",
                              job->n_tokens, job->n_tokens);
    if (out.failed)
        pith_exchange_reply(job->exchange, 500, NULL);
    else
        pith_exchange_reply_text(job->exchange, 200, "application/json",
                                 (pith_span){out.data, out.size});
    pith_buffer_deinit(&out);
}

void pith_handle_embeddings(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    static const char *const formats[] = {"float", "base64", NULL};
    const char *format = "float", *user = NULL;
    pith_embed_request r = {.param = "input", .takes_ids = true, .answer = answer};
    pith_fields_init(&f, body, "");
    pith_fields_text(&f, "model", &r.model);
    r.texts = pith_embed_read_input(&f, true);
    pith_fields_choice(&f, "encoding_format", formats, &format);
    pith_fields_int(&f, "dimensions", 1, 1 << 24, &r.dimensions);
    pith_fields_text(&f, "user", &user); /* vectors know no turns */
    r.fields = json_pack("{s:b}", "base64", strcmp(format, "base64") == 0);
    if (!r.fields) pith_fields_short(&f);
    pith_embed_start(exchange, &f, body, &r);
}
