/* SPDX-License-Identifier: Apache-2.0
 * A server from start to stop: makes the parts, watches over deadlines, and takes all down in an
 * order in which nobody is left waiting.
 * Read next: http.c. */
#define _DEFAULT_SOURCE /* POSIX and BSD names under -std=c11 */

#include "server/server.h"

#include "base/calendar.h"
#include "base/clock.h"
#include "base/memory.h"
#include "server/chat_history.h"
#include "server/model_pool.h"
#include "server/notify.h"
#include "server/routing.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DESK_THREADS = 2, LIST_THREADS = 1, HISTORY_THREADS = 1 };
enum { DESK_LIMIT = 4096, TICK_MS = 100 };

void pith_server_log_line(const pith_server *server, pith_server_log level, const char *format,
                          ...) {
    char text[400];
    if (level > server->options->log) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F) *at = '?'; /* paths come from clients */
    fprintf(stderr, "pith: %s\n", text);
}

void pith_server_name_reply(pith_server *server, const char *prefix, char out[64]) {
    uint64_t number = atomic_fetch_add(&server->n_ids, 1);
    uint64_t seed = server->started_ns ^ ((uint64_t)pith_calendar_now() << 20);
    uint64_t mixed = pith_hash(&number, sizeof number, seed);
    snprintf(out, 64, "%.32s%08llx%016llx", prefix, (unsigned long long)number,
             (unsigned long long)mixed);
}

const char *pith_server_library(void) {
    return MHD_get_version();
}

static void sleep_ms(int ms) {
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static void print_address(const pith_server *server) {
    const pith_server_options *o = server->options;
    bool v6 = strchr(o->host, ':') != NULL;
    fprintf(stderr, "listening on %s://%s%s%s:%d\n", o->certificate ? "https" : "http",
            v6 ? "[" : "", o->host, v6 ? "]" : "", pith_http_port(server->http));
    fflush(stderr);
}

static bool wait_for_answers(pith_server *server, int seconds) {
    for (int i = 0; i < seconds * 1000 / TICK_MS; i++) {
        if (atomic_load(&server->n_handed) == 0) return true;
        pith_http_tick(server->http);
        sleep_ms(TICK_MS);
    }
    return atomic_load(&server->n_handed) == 0;
}

/* Replies that run get their time, then they are cancelled; every exchange is answered before the
 * daemon ends. */
static void stop_all(pith_server *server) {
    enum { PATIENCE = 10, FLUSH_MS = 2000 };
    int seconds = server->options->stop_seconds > 0 ? server->options->stop_seconds : 5;
    pith_notify("STOPPING=1\nSTATUS=letting replies end");
    atomic_store(&server->is_stopping, true);
    pith_http_quiesce(server->http);
    wait_for_answers(server, seconds);
    pith_models_cancel(server->models);
    pith_routing_cancel(server->routing);
    if (!wait_for_answers(server, PATIENCE)) pith_http_abort(server->http);
    for (int i = 0; i < FLUSH_MS / 10 && pith_http_n_answers(server->http) > 0; i++) sleep_ms(10);
}

/* A history that is not to be had is told, and is no reason not to serve. */
static bool open_history(pith_server *server, pith_error *error) {
    const char *path = server->options->history;
    pith_error why = {0};
    server->history = pith_chat_history_new(path);
    if (!server->history) {
        pith_fail_memory(error, "the history", 0);
        return false;
    }
    if (path && pith_chat_history_check(server->history, &why) != PITH_OK)
        pith_server_log_line(server, PITH_SERVER_LOG_ERROR, "history %.150s: %s", path, why.text);
    return true;
}

static pith_status serve(pith_server *server, const volatile sig_atomic_t *stop,
                         pith_error *error) {
    pith_status status = PITH_OK;
    pith_error failed = {0};
    print_address(server);
    pith_notify("READY=1\nSTATUS=serving");
    pith_models_start(server->models);
    while (!*stop && status == PITH_OK) {
        sleep_ms(TICK_MS);
        pith_http_tick(server->http);
        pith_models_tick(server->models);
        if (pith_models_failed(server->models, &failed))
            status = pith_fail(error, failed.status, "%s", failed.text);
    }
    stop_all(server);
    return status;
}

pith_status pith_server_run(const pith_server_options *options, const volatile sig_atomic_t *stop,
                            pith_error *error) {
    pith_server *server = pith_alloc_zero(1, sizeof *server);
    pith_status status = PITH_OK;
    pith_error own = {0};
    if (!server) return pith_fail_memory(error, "the server", sizeof *server);
    if (!error) error = &own;
    json_object_seed(0); /* before there are threads that would do it at once */
    server->options = options;
    server->started_ns = pith_clock_ns();
    if (open_history(server, error))
        server->desk = pith_desk_new(server, DESK_THREADS, DESK_LIMIT, error);
    if (server->desk) server->list_desk = pith_desk_new(server, LIST_THREADS, DESK_LIMIT, error);
    if (server->list_desk)
        server->history_desk = pith_desk_new(server, HISTORY_THREADS, DESK_LIMIT, error);
    if (server->history_desk) server->models = pith_models_new(server, error);
    /* that the address is taken is told before a model is loaded */
    if (server->models) server->routing = pith_routing_new(server, error);
    if (server->routing) server->http = pith_http_new(server, error);
    if (server->http)
        status = serve(server, stop, error);
    else
        status = error->status;
    pith_http_free(server->http);
    pith_routing_stop(server->routing);
    pith_desk_free(server->desk);
    pith_desk_free(server->list_desk);
    pith_desk_free(server->history_desk);
    pith_models_free(server->models);
    pith_chat_history_free(server->history);
    pith_routing_free(server->routing);
    pith_free(server);
    return status;
}
