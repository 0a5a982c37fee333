/* SPDX-License-Identifier: Apache-2.0
 * GET /metrics: counters in Prometheus' text format. Names never change; more may follow. */
#include "base/clock.h"
#include "server/model_pool.h"
#include "server/route.h"

static void add(pith_buffer *out, const char *name, const char *type, const char *help,
                double value) {
    pith_buffer_append_format(out, "# HELP pith_%s %s\n# TYPE pith_%s %s\npith_%s %.17g\n", name,
                              help, name, type, name, value);
}

static double of(const atomic_ullong *count) {
    return (double)atomic_load(count);
}

typedef struct model_sums {
    int n_ready;
    double bytes;
} model_sums;

static bool add_model(void *user, const pith_served_info *info) {
    model_sums *sums = user;
    sums->n_ready += info->state == PITH_SERVED_READY;
    sums->bytes += (double)info->bytes;
    return true;
}

static void add_tokens(pith_buffer *out, const pith_server_counts *c) {
    add(out, "prompt_tokens_total", "counter", "Tokens of prompts.", of(&c->prompt_tokens));
    add(out, "cached_tokens_total", "counter", "Tokens of prompts that were not read again.",
        of(&c->cached_tokens));
    add(out, "predicted_tokens_total", "counter", "Tokens made.", of(&c->predicted_tokens));
    add(out, "drafted_tokens_total", "counter", "Guesses that were checked.",
        of(&c->drafted_tokens));
    add(out, "accepted_tokens_total", "counter", "Guesses that were right.",
        of(&c->accepted_tokens));
    add(out, "prompt_seconds_total", "counter", "Time of reading prompts, summed over replies.",
        of(&c->prompt_us) * 1e-6);
    add(out, "predicted_seconds_total", "counter", "Time of making tokens, summed over replies.",
        of(&c->predicted_us) * 1e-6);
}

void pith_handle_metrics(pith_exchange *exchange) {
    pith_server *server = pith_exchange_server(exchange);
    const pith_server_counts *c = &server->counts;
    pith_buffer out = {0};
    model_sums sums = {0};
    pith_models_each_known(server->models, add_model, &sums);
    add(&out, "requests_total", "counter", "Requests answered.", of(&c->requests));
    add(&out, "requests_refused_total", "counter", "Answered with a status 4xx.", of(&c->refused));
    add(&out, "requests_failed_total", "counter", "Answered with a status 5xx.", of(&c->failed));
    add(&out, "replies_total", "counter", "Replies that ended.", of(&c->replies));
    add(&out, "replies_cancelled_total", "counter", "Of them, those whose client left.",
        of(&c->cancelled));
    add(&out, "replies_running", "gauge", "Replies being made.", (double)atomic_load(&c->running));
    add(&out, "replies_queued", "gauge", "Replies that wait.", (double)atomic_load(&c->queued));
    add(&out, "connections", "gauge", "Open connections.", (double)atomic_load(&c->connections));
    add_tokens(&out, c);
    add(&out, "models_loaded", "gauge", "Models in memory.", sums.n_ready);
    add(&out, "model_bytes", "gauge", "Memory of loaded models.", sums.bytes);
    add(&out, "model_loads_total", "counter", "Models loaded.", of(&c->loads));
    add(&out, "model_unloads_total", "counter", "Models taken out of memory.", of(&c->unloads));
    add(&out, "upstream_requests_total", "counter", "Requests sent upstream.",
        of(&c->upstream_requests));
    add(&out, "upstream_failed_total", "counter", "Of them, those that went wrong.",
        of(&c->upstream_failed));
    add(&out, "upstream_sent_bytes_total", "counter", "Bytes of requests sent upstream.",
        of(&c->upstream_sent));
    add(&out, "resident_bytes", "gauge", "Memory of the process.", (double)pith_memory_resident());
    add(&out, "uptime_seconds", "gauge", "Since the server started.",
        (double)(pith_clock_ns() - server->started_ns) * 1e-9);
    pith_exchange_reply_text(exchange, out.failed ? 500 : 200, "text/plain; version=0.0.4",
                             (pith_span){out.data ? out.data : "", out.size});
    pith_buffer_deinit(&out);
}
