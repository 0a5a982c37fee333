/* SPDX-License-Identifier: Apache-2.0
 * Answers: replies, streams, errors. From any thread.
 *
 * Invariant: every public function takes the exchange's lock and leaves without it; the connection
 * is resumed in the same moment in which there is something to send. What a slow client does not
 * take is bounded: past PITH_EXCHANGE_MAX_UNSENT it counts as gone.
 * Does not decide what is answered. Read next: http.c. */
#define _GNU_SOURCE /* POLLRDHUP */

#include "server/exchange_state.h"

#include "base/clock.h"
#include "base/memory.h"
#include "server/fields.h"
#include "server/model_pool.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#if !defined(POLLRDHUP)
#define POLLRDHUP 0
#endif

enum { LARGE_ANSWER = 1 << 20, HELD_LIMIT = 256 << 20 }; /* bytes */

pith_exchange *pith_exchange_new(pith_server *server, const char *method, const char *path) {
    pith_exchange *e = pith_alloc_zero(1, sizeof *e);
    if (!e) return NULL;
    e->method = pith_copy_text(method, strlen(method));
    e->path = pith_copy_text(path, strlen(path));
    if (!e->method || !e->path || pthread_mutex_init(&e->lock, NULL) != 0) {
        pith_free(e->method);
        pith_free(e->path);
        pith_free(e);
        return NULL;
    }
    e->server = server;
    atomic_init(&e->n_holders, 1);
    e->begun_ns = pith_clock_ns();
    e->descriptor = -1;
    e->shape = pith_route_shape(path);
    return e;
}

void pith_exchange_retain(pith_exchange *e) {
    atomic_fetch_add(&e->n_holders, 1);
}

void pith_exchange_release(pith_exchange *e) {
    if (!e || atomic_fetch_sub(&e->n_holders, 1) != 1) return;
    if (e->claim) pith_models_drop_claim(e->server->models, e);
    atomic_fetch_sub(&e->server->held_bytes, e->n_held);
    for (int i = 0; i < e->n_headers; i++) {
        pith_free(e->header_names[i]);
        pith_free(e->header_values[i]);
    }
    pith_buffer_deinit(&e->body);
    pith_buffer_deinit(&e->out);
    pthread_mutex_destroy(&e->lock);
    pith_free(e->method);
    pith_free(e->path);
    pith_free(e);
}

pith_server *pith_exchange_server(const pith_exchange *e) {
    return e->server;
}

const char *pith_exchange_path(const pith_exchange *e) {
    return e->path;
}

uint64_t pith_exchange_client(pith_exchange *e) {
    static const char *const names[] = {"Authorization", "x-api-key", "User-Agent"};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = pith_exchange_header(e, names[i]);
        hash = pith_hash(value ? value : "", value ? strlen(value) : 0, hash + i);
    }
    pthread_mutex_lock(&e->lock);
    const union MHD_ConnectionInfo *info =
        e->connection ? MHD_get_connection_info(e->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
                      : NULL;
    const struct sockaddr *address = info ? info->client_addr : NULL;
    if (address && address->sa_family == AF_INET)
        hash = pith_hash(&((const struct sockaddr_in *)(const void *)address)->sin_addr,
                         sizeof(struct in_addr), hash);
    if (address && address->sa_family == AF_INET6)
        hash = pith_hash(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                         sizeof(struct in6_addr), hash);
    pthread_mutex_unlock(&e->lock);
    return hash;
}

uint64_t pith_exchange_begun_ns(const pith_exchange *e) {
    return e->begun_ns;
}

pith_span pith_exchange_body(const pith_exchange *e) {
    return (pith_span){e->body.data ? e->body.data : "", e->body.size};
}

const char *pith_exchange_header(pith_exchange *e, const char *name) {
    pthread_mutex_lock(&e->lock);
    const char *value =
        e->connection ? MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name) : NULL;
    pthread_mutex_unlock(&e->lock);
    return value;
}

void pith_exchange_add_header(pith_exchange *e, const char *name, const char *value) {
    pthread_mutex_lock(&e->lock);
    if (e->n_headers < PITH_EXCHANGE_HEADERS) {
        char *a = pith_copy_text(name, strlen(name)), *b = pith_copy_text(value, strlen(value));
        if (a && b) {
            e->header_names[e->n_headers] = a;
            e->header_values[e->n_headers++] = b;
        } else {
            pith_free(a);
            pith_free(b);
        }
    }
    pthread_mutex_unlock(&e->lock);
}

/* Under the lock. */
static void wake(pith_exchange *e) {
    if (!e->is_suspended || !e->connection) return;
    e->is_suspended = false;
    MHD_resume_connection(e->connection);
}

static void count_answer(pith_exchange *e, int status) {
    pith_server_counts *counts = &e->server->counts;
    atomic_fetch_add(&counts->requests, 1);
    if (status >= 400 && status < 500) atomic_fetch_add(&counts->refused, 1);
    if (status >= 500 && !e->is_gone) atomic_fetch_add(&counts->failed, 1);
    pith_server_log_line(e->server, PITH_SERVER_LOG_DEBUG, "%s %s %d %.1f ms", e->method, e->path,
                         status, (double)(pith_clock_ns() - e->begun_ns) / 1e6);
}

/* Large answers wait in memory until their clients have taken them; together they have a limit. */
static bool may_hold(pith_exchange *e, size_t size) {
    if (size < LARGE_ANSWER) return true;
    e->n_held = size;
    return atomic_fetch_add(&e->server->held_bytes, size) + size <= HELD_LIMIT;
}

void pith_exchange_reply_text(pith_exchange *e, int status, const char *type, pith_span text) {
    static const char full[] =
        "{\"error\":{\"message\":\"large answers wait for slow clients; try again in a moment\","
        "\"type\":\"server_error\",\"code\":\"memory\"}}";
    pthread_mutex_lock(&e->lock);
    if (e->phase == PITH_EXCHANGE_HANDED && !may_hold(e, text.size)) {
        status = 503;
        type = "application/json";
        text = pith_span_of(full);
    }
    if (e->phase == PITH_EXCHANGE_HANDED) {
        pith_buffer_reset(&e->out);
        pith_buffer_append(&e->out, text.data, text.size);
        e->status = e->out.failed ? 500 : status;
        e->type = type;
        e->phase = PITH_EXCHANGE_REPLIED;
        atomic_fetch_sub(&e->server->n_handed, 1);
        count_answer(e, e->status);
        wake(e);
    }
    pthread_mutex_unlock(&e->lock);
}

void pith_exchange_reply(pith_exchange *e, int status, json_t *body) {
    static const char short_of[] =
        "{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\"}}";
    char *text = body ? pith_json_dump(body) : NULL;
    json_decref(body);
    pith_exchange_reply_text(e, text ? status : 500, "application/json",
                             pith_span_of(text ? text : short_of));
    pith_json_release(text);
}

json_t *pith_exchange_error_body(const pith_exchange *e, const pith_http_error *what) {
    return e->shape(what);
}

void pith_exchange_fail(pith_exchange *e, const pith_http_error *what) {
    if (what->status == 429 || what->status == 503)
        pith_exchange_add_header(e, "Retry-After", what->status == 429 ? "2" : "5");
    if (what->status == 401) pith_exchange_add_header(e, "WWW-Authenticate", "Bearer");
    pith_exchange_reply(e, what->status, e->shape(what));
}

pith_http_error pith_http_error_of(const pith_error *error) {
    pith_http_error out = {500, "server_error", NULL, NULL, error->text};
    switch (error->status) {
    case PITH_ERROR_ARGUMENT:
    case PITH_ERROR_FORMAT:
    case PITH_ERROR_UNSUPPORTED:
    case PITH_ERROR_LIMIT:
    case PITH_ERROR_TEMPLATE:
        out.status = 400;
        out.type = "invalid_request_error";
        break;
    case PITH_ERROR_NOT_FOUND:
        out.status = 404;
        out.type = "invalid_request_error";
        break;
    case PITH_ERROR_MEMORY:
    case PITH_ERROR_CANCELLED: out.status = 503; break;
    default: break;
    }
    return out;
}

/* ---- Streams ---- */

void pith_exchange_stream_begin(pith_exchange *e, const char *type) {
    pthread_mutex_lock(&e->lock);
    if (e->phase == PITH_EXCHANGE_HANDED) {
        e->phase = PITH_EXCHANGE_STREAMING;
        e->status = 200;
        e->type = type;
        count_answer(e, 200);
        wake(e);
    }
    pthread_mutex_unlock(&e->lock);
}

/* Forgets what was sent once that is most of the buffer. */
static void compact(pith_exchange *e) {
    if (e->n_sent == 0 || e->n_sent * 2 < e->out.size) return;
    memmove(e->out.data, e->out.data + e->n_sent, e->out.size - e->n_sent);
    e->out.size -= e->n_sent;
    e->n_sent = 0;
}

/* Nothing more is sent; a connection that waits for its client is cut. Under the lock. */
static void give_up(pith_exchange *e) {
    e->is_gone = true;
    if (e->connection && e->descriptor >= 0) shutdown(e->descriptor, SHUT_RDWR);
    wake(e);
}

bool pith_exchange_stream_write(pith_exchange *e, const char *text, size_t size) {
    pthread_mutex_lock(&e->lock);
    if (!e->connection) e->is_gone = true;
    if (!e->is_gone) {
        compact(e);
        pith_buffer_append(&e->out, text, size);
        if (e->out.failed || e->out.size - e->n_sent > PITH_EXCHANGE_MAX_UNSENT) give_up(e);
        wake(e);
    }
    bool ok = !e->is_gone;
    pthread_mutex_unlock(&e->lock);
    return ok;
}

void pith_exchange_stream_end(pith_exchange *e) {
    pthread_mutex_lock(&e->lock);
    if (e->phase == PITH_EXCHANGE_STREAMING && !e->is_ended) {
        e->is_ended = true;
        atomic_fetch_sub(&e->server->n_handed, 1);
        wake(e);
    }
    pthread_mutex_unlock(&e->lock);
}

/* One event of a stream. An event that memory was short for ends the stream: one that goes on
 * without it would tell less than was made. */
static bool write_event(pith_exchange *e, pith_buffer *event, bool is_whole) {
    bool ok = is_whole && !event->failed;
    if (ok) {
        ok = pith_exchange_stream_write(e, event->data, event->size);
    } else {
        pthread_mutex_lock(&e->lock);
        give_up(e);
        pthread_mutex_unlock(&e->lock);
    }
    pith_buffer_deinit(event);
    return ok;
}

bool pith_exchange_stream_event(pith_exchange *e, const char *event, json_t *data) {
    char *text = data ? pith_json_dump(data) : NULL;
    json_decref(data);
    pith_buffer line = {0};
    if (event) pith_buffer_append_format(&line, "event: %s\n", event);
    pith_buffer_append_text(&line, "data: ");
    pith_buffer_append_text(&line, text ? text : "");
    pith_buffer_append_text(&line, "\n\n");
    bool ok = write_event(e, &line, text != NULL);
    pith_json_release(text);
    return ok;
}

bool pith_exchange_stream_line(pith_exchange *e, json_t *data) {
    char *text = data ? pith_json_dump(data) : NULL;
    json_decref(data);
    pith_buffer line = {0};
    pith_buffer_append_text(&line, text ? text : "");
    pith_buffer_append_text(&line, "\n");
    bool ok = write_event(e, &line, text != NULL);
    pith_json_release(text);
    return ok;
}

size_t pith_exchange_unsent(pith_exchange *e) {
    pthread_mutex_lock(&e->lock);
    size_t unsent = e->out.size - e->n_sent;
    pthread_mutex_unlock(&e->lock);
    return unsent;
}

bool pith_exchange_is_gone(pith_exchange *e) {
    pthread_mutex_lock(&e->lock);
    if (!e->connection) e->is_gone = true;
    if (!e->is_gone && e->descriptor >= 0) {
        struct pollfd asked = {.fd = e->descriptor, .events = POLLRDHUP};
        if (poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)))
            e->is_gone = true;
    }
    bool gone = e->is_gone;
    pthread_mutex_unlock(&e->lock);
    return gone;
}

void pith_exchange_abort(pith_exchange *e) {
    const pith_http_error stopping = {503, "server_error", "stopping", NULL,
                                      "the server is being stopped"};
    pith_exchange_fail(e, &stopping);
    pthread_mutex_lock(&e->lock);
    if (e->phase == PITH_EXCHANGE_STREAMING && !e->is_ended) {
        e->is_ended = true;
        atomic_fetch_sub(&e->server->n_handed, 1);
        give_up(e);
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- For the daemon's thread ---- */

/* The daemon asks for more of a stream. Nothing there: the connection sleeps until there is. */
static ssize_t read_stream(void *user, uint64_t position, char *out, size_t capacity) {
    pith_exchange *e = user;
    ssize_t n = 0;
    (void)position;
    pthread_mutex_lock(&e->lock);
    size_t unsent = e->out.size - e->n_sent;
    if (e->is_gone || e->out.failed) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (unsent > 0) {
        size_t take = unsent < capacity ? unsent : capacity;
        memcpy(out, e->out.data + e->n_sent, take);
        e->n_sent += take;
        n = (ssize_t)take;
    } else if (e->is_ended) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        e->is_suspended = true;
        MHD_suspend_connection(e->connection);
    }
    pthread_mutex_unlock(&e->lock);
    return n;
}

static void add_headers(const pith_exchange *e, struct MHD_Response *response) {
    MHD_add_response_header(response, "Content-Type", e->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (e->routing.answered_by) {
        MHD_add_response_header(response, "X-Pith-Answered-By", e->routing.answered_by);
        MHD_add_response_header(response, "X-Pith-Reason", e->routing.reason);
    }
    for (int i = 0; i < e->n_headers; i++)
        MHD_add_response_header(response, e->header_names[i], e->header_values[i]);
}

enum MHD_Result pith_exchange_answer(pith_exchange *e) {
    enum { BLOCK = 16384 };
    struct MHD_Response *response =
        e->phase == PITH_EXCHANGE_STREAMING
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, e, NULL)
            : MHD_create_response_from_buffer(e->out.size, e->out.data ? e->out.data : (char[]){""},
                                              MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    add_headers(e, response);
    enum MHD_Result result = MHD_queue_response(e->connection, (unsigned)e->status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result pith_exchange_wait(pith_exchange *e) {
    pthread_mutex_lock(&e->lock);
    bool waits = e->phase == PITH_EXCHANGE_HANDED;
    if (waits) {
        e->is_suspended = true;
        MHD_suspend_connection(e->connection);
    }
    pthread_mutex_unlock(&e->lock);
    return waits ? MHD_YES : pith_exchange_answer(e); /* an answered phase stays */
}
