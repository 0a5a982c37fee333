/* SPDX-License-Identifier: Apache-2.0
 * The daemon: connections, heads and bodies under limits, and who may ask. One thread serves all
 * connections and never waits: what may take a while goes to the desk, and the connection is
 * suspended meanwhile.
 *
 * Invariant: a request is refused as early as it can be: by its head before its body is read. A
 * connection has a deadline for each part of a request, so that a client which sends byte by byte
 * is cut whatever it sends; an answered one may stay for the next request.
 * Read next: exchange.c, desk.c. */
#define _GNU_SOURCE

#include "base/clock.h"
#include "base/memory.h"
#include "server/exchange_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#if !defined(POLLRDHUP)
#define POLLRDHUP 0
#endif

enum { BACKLOG = 1024, BODIES_LIMIT = 512 << 20 };

typedef enum awaited_part { FIRST_HEAD, NEXT_HEAD, BODY, ANSWER } awaited_part;

/* A connection, from accept to close. */
typedef struct watched {
    struct watched *before, *after;
    int descriptor;
    uint64_t since_ns; /* when the part of a request that is awaited began */
    awaited_part awaited;
    pith_exchange *exchange; /* being read or answered; NULL: none */
} watched;

struct pith_http {
    pith_server *server;
    struct MHD_Daemon *daemon;
    int port;
    int quiet_socket;     /* that listened; -1: it does */
    pthread_mutex_t lock; /* of the list */
    watched *first;
    unsigned n_ticks;
    atomic_ullong body_bytes; /* of all exchanges */
    atomic_int n_answers;     /* requests whose answer is not wholly sent */
};

static const pith_server_options *options_of(const pith_http *http) {
    return http->server->options;
}

static int32_t seconds_or(int32_t given, int32_t otherwise) {
    return given > 0 ? given : otherwise;
}

/* ---- Connections ---- */

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
    pith_http *http = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        watched *w = pith_alloc_zero(1, sizeof *w);
        *context = w;
        if (!w) return;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        w->descriptor = info ? info->connect_fd : -1;
        w->since_ns = pith_clock_ns();
        pthread_mutex_lock(&http->lock);
        w->after = http->first;
        if (w->after) w->after->before = w;
        http->first = w;
        pthread_mutex_unlock(&http->lock);
        atomic_fetch_add(&http->server->counts.connections, 1);
        return;
    }
    watched *w = *context;
    if (!w) return;
    pthread_mutex_lock(&http->lock);
    if (w->before) w->before->after = w->after;
    if (w->after) w->after->before = w->before;
    if (http->first == w) http->first = w->after;
    pthread_mutex_unlock(&http->lock);
    atomic_fetch_sub(&http->server->counts.connections, 1);
    pith_free(w);
    *context = NULL;
}

static watched *watched_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void await(pith_http *http, struct MHD_Connection *connection, awaited_part part) {
    watched *w = watched_of(connection);
    if (!w) return;
    pthread_mutex_lock(&http->lock);
    w->awaited = part;
    w->since_ns = pith_clock_ns();
    pthread_mutex_unlock(&http->lock);
}

/* Remembers what the connection is about, for pith_http_abort. */
static void note_exchange(pith_http *http, struct MHD_Connection *connection, pith_exchange *e) {
    watched *w = watched_of(connection);
    if (!w) return;
    pthread_mutex_lock(&http->lock);
    w->exchange = e;
    pthread_mutex_unlock(&http->lock);
}

/* The daemon does not see an end that came together with a part of a request (its edge-triggered
 * epoll tells both at once). */
static bool has_left(const watched *w) {
    struct pollfd asked = {.fd = w->descriptor, .events = POLLRDHUP};
    return poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void pith_http_tick(pith_http *http) {
    const pith_server_options *o = options_of(http);
    uint64_t now = pith_clock_ns();
    const int32_t most[] = {[FIRST_HEAD] = seconds_or(o->header_seconds, 20),
                            [NEXT_HEAD] = seconds_or(o->idle_seconds, 60),
                            [BODY] = seconds_or(o->body_seconds, 60)};
    bool asks = ++http->n_ticks % 8 == 0; /* a call of the system for each */
    pthread_mutex_lock(&http->lock);
    for (watched *w = http->first; w; w = w->after) {
        if (w->awaited == ANSWER || w->descriptor < 0) continue;
        if (now - w->since_ns > (uint64_t)most[w->awaited] * 1000000000u || (asks && has_left(w)))
            shutdown(w->descriptor, SHUT_RDWR);
    }
    pthread_mutex_unlock(&http->lock);
}

/* ---- Requests ---- */

/* Answers before the body is read. */
static enum MHD_Result refuse(pith_exchange *e, int status, const char *code, const char *text) {
    const pith_http_error what = {
        status, status == 401 ? "authentication_error" : "invalid_request_error", code, NULL, text};
    e->phase = PITH_EXCHANGE_HANDED;
    atomic_fetch_add(&e->server->n_handed, 1);
    pith_exchange_fail(e, &what);
    return pith_exchange_answer(e);
}

static bool has_key(pith_exchange *e, const char *key) {
    const char *bearer = pith_exchange_header(e, "Authorization");
    const char *plain = pith_exchange_header(e, "x-api-key");
    bool ok = false;
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0) ok = pith_guard_same(bearer + 7, key);
    if (plain) ok = pith_guard_same(plain, key) || ok;
    return ok;
}

/* The answer to a browser that asks whether a page of another origin may ask. */
static enum MHD_Result answer_preflight(pith_exchange *e) {
    pith_exchange_add_header(e, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
    const char *wanted = pith_exchange_header(e, "Access-Control-Request-Headers");
    pith_exchange_add_header(e, "Access-Control-Allow-Headers",
                             wanted ? wanted
                                    : "authorization, content-type, x-api-key, x-pith-route, "
                                      "x-pith-private");
    pith_exchange_add_header(e, "Access-Control-Max-Age", "600");
    e->phase = PITH_EXCHANGE_HANDED;
    atomic_fetch_add(&e->server->n_handed, 1);
    pith_exchange_reply_text(e, 204, "text/plain", (pith_span){"", 0});
    return pith_exchange_answer(e);
}

static enum MHD_Result refuse_path(pith_exchange *e, const char *allow) {
    pith_buffer text = {0};
    if (allow[0]) pith_exchange_add_header(e, "Allow", allow);
    if (allow[0])
        pith_buffer_append_format(&text, "%.200s takes %s, not %.20s", e->path, allow, e->method);
    else
        pith_buffer_append_format(&text, "there is nothing at %.200s", e->path);
    enum MHD_Result result = refuse(e, allow[0] ? 405 : 404, allow[0] ? "method" : "not_found",
                                    text.data ? text.data : "out of memory");
    pith_buffer_deinit(&text);
    return result;
}

typedef struct head_counts {
    int n_hosts, n_lengths, n_codings;
} head_counts;

static enum MHD_Result count_header(void *user, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    head_counts *n = user;
    (void)kind;
    (void)value;
    n->n_hosts += strcasecmp(name, "Host") == 0;
    n->n_lengths += strcasecmp(name, "Content-Length") == 0;
    n->n_codings += strcasecmp(name, "Transfer-Encoding") == 0;
    return MHD_YES;
}

/* A head that others may read in another way; NULL: there is nothing wrong. */
static const char *find_ambiguity(struct MHD_Connection *connection, const char *version) {
    head_counts n = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &n);
    if (n.n_hosts > 1) return "there is more than one Host header";
    if (n.n_hosts == 0 && strcmp(version, "HTTP/1.1") == 0) return "HTTP/1.1 needs a Host header";
    if (n.n_lengths > 1) return "there is more than one Content-Length";
    if (n.n_lengths > 0 && n.n_codings > 0)
        return "Content-Length and Transfer-Encoding do not go together";
    return NULL;
}

static enum MHD_Result refuse_size(pith_exchange *e) {
    char text[120];
    snprintf(text, sizeof text, "the body is larger than this server takes (%.4g MiB)",
             (double)e->body_limit / (1 << 20));
    return refuse(e, 413, "too_large", text);
}

/* What a page of another site includes: an image, a script, a frame. */
static bool is_included(pith_exchange *e) {
    return !pith_guard_site(pith_exchange_header(e, "Sec-Fetch-Site"),
                            pith_exchange_header(e, "Sec-Fetch-Mode"),
                            pith_exchange_header(e, "Sec-Fetch-Dest"));
}

/* The head is there. */
static enum MHD_Result begin(pith_http *http, pith_exchange *e) {
    const pith_server_options *o = options_of(http);
    const char *host = pith_exchange_header(e, "Host"), *origin = pith_exchange_header(e, "Origin");
    const char *length = pith_exchange_header(e, "Content-Length");
    char allow[64];
    if (!pith_guard_host(o, host))
        return refuse(e, 403, "host",
                      "the Host header names no address of this server: use its address, localhost "
                      "or the name given with --host");
    if (origin ? !pith_guard_origin(o, origin, host) : is_included(e))
        return refuse(e, 403, "origin",
                      "this origin may not ask; --cors ORIGIN lists those that may");
    if (origin) {
        pith_exchange_add_header(e, "Access-Control-Allow-Origin", origin);
        pith_exchange_add_header(e, "Vary", "Origin");
        pith_exchange_add_header(e, "Access-Control-Expose-Headers",
                                 "X-Pith-Answered-By, X-Pith-Reason");
    }
    if (origin && strcmp(e->method, "OPTIONS") == 0) return answer_preflight(e);
    e->route = pith_route_find(e->method, e->path, allow);
    if (o->key && !(e->route && (e->route->flags & PITH_ROUTE_OPEN)) && !has_key(e, o->key))
        return refuse(e, 401, "invalid_api_key",
                      "the key is missing or wrong: send it as \"Authorization: Bearer KEY\"");
    if (!e->route) return refuse_path(e, allow);
    e->shape = e->route->error_shape;
    if (atomic_load(&e->server->is_stopping))
        return refuse(e, 503, "stopping", "the server is being stopped");
    pith_routing_read_headers(e);
    e->body_limit = o->body_limit ? o->body_limit : 16u << 20;
    if (length && (strlen(length) > 18 || strtoull(length, NULL, 10) > e->body_limit))
        return refuse_size(e);
    await(http, e->connection, BODY);
    return MHD_YES;
}

static void take_body(pith_http *http, pith_exchange *e, const char *data, size_t size) {
    e->body_seen += size;
    if (e->body_seen > e->body_limit || e->body.failed) return;
    if (atomic_fetch_add(&http->body_bytes, size) + size > BODIES_LIMIT) {
        atomic_fetch_sub(&http->body_bytes, size);
        e->body.failed = true;
        return;
    }
    e->body_counted += size; /* also where the next fails */
    pith_buffer_append(&e->body, data, size);
}

/* The body is there. */
static enum MHD_Result hand_over(pith_http *http, pith_exchange *e) {
    if (e->body_seen > e->body_limit) return refuse_size(e);
    if (e->body.failed)
        return refuse(e, 503, "memory", "there is no memory for this body now; try again");
    await(http, e->connection, ANSWER);
    atomic_fetch_add(&http->n_answers, 1);
    e->is_counted = true;
    e->phase = PITH_EXCHANGE_HANDED;
    atomic_fetch_add(&e->server->n_handed, 1);
    if (e->route->flags & PITH_ROUTE_QUICK) {
        e->route->handle(e);
    } else if (!pith_desk_push(e)) {
        const pith_http_error busy = {429, "rate_limit_error", "busy", NULL,
                                      "too many requests wait; try again in a moment"};
        pith_exchange_fail(e, &busy);
    }
    return pith_exchange_wait(e);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **context) {
    pith_http *http = user;
    pith_exchange *e = *context;
    if (!e) {
        e = pith_exchange_new(http->server, method, url);
        if (!e) return MHD_NO;
        e->connection = connection;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        e->descriptor = info ? info->connect_fd : -1;
        *context = e;
        note_exchange(http, connection, e);
        const char *why = find_ambiguity(connection, version);
        return why ? refuse(e, 400, "head", why) : begin(http, e);
    }
    if (*size > 0) {
        take_body(http, e, data, *size);
        *size = 0;
        /* far past the limit nobody waits for the answer */
        return e->body_seen > 4 * e->body_limit ? MHD_NO : MHD_YES;
    }
    if (e->phase == PITH_EXCHANGE_READING) return hand_over(http, e);
    return pith_exchange_wait(e);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code) {
    pith_http *http = user;
    pith_exchange *e = *context;
    if (!e) return;
    *context = NULL;
    note_exchange(http, connection, NULL);
    if (e->is_counted) atomic_fetch_sub(&http->n_answers, 1);
    pthread_mutex_lock(&e->lock);
    e->connection = NULL;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK) e->is_gone = true;
    pthread_mutex_unlock(&e->lock);
    atomic_fetch_sub(&http->body_bytes, e->body_counted);
    await(http, connection, NEXT_HEAD);
    pith_exchange_release(e);
}

/* ---- The daemon ---- */

/* A socket that listens; -1 with a message. */
static int open_socket(pith_http *http, pith_error *error) {
    const pith_server_options *o = options_of(http);
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[16];
    const char *host = strcmp(o->host, "localhost") == 0 ? "127.0.0.1" : o->host;
    snprintf(port, sizeof port, "%d", (int)o->port);
    if (getaddrinfo(host, port, &hints, &found) != 0 || !found) {
        pith_fail(error, PITH_ERROR_ARGUMENT,
                  "--host needs an address such as 127.0.0.1 or ::1, not '%.100s'", o->host);
        return -1;
    }
    int on = 1, fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool ok =
        fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    if (!ok)
        pith_fail(error, PITH_ERROR_IO,
                  "%.100s port %d cannot be listened on: %s (--port 0 takes any)", o->host,
                  (int)o->port, strerror(errno));
    freeaddrinfo(found);
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    ok = ok && getsockname(fd, (struct sockaddr *)&bound, &size) == 0;
    if (!ok && fd >= 0) close(fd);
    if (!ok) return -1;
    http->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                   : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

/* How many connections there can be: as many descriptors as the system gives, less our own. */
static unsigned connection_limit(const pith_server_options *o) {
    enum { OWN = 64, MOST = 16384, LEAST = 16 };
    struct rlimit files;
    unsigned most = o->n_connections > 0 ? (unsigned)o->n_connections : MOST;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return most < 512 ? most : 512;
    rlim_t wanted = most + OWN;
    if (files.rlim_cur < wanted) {
        files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur >= wanted) return most;
    return files.rlim_cur > OWN + LEAST ? (unsigned)files.rlim_cur - OWN : LEAST;
}

/* A path ends at a NUL for whoever looks at it; one that is spelled out stays as it is spelled, and
 * so is nowhere. */
static size_t decode_path(void *user, struct MHD_Connection *connection, char *text) {
    (void)user;
    (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static struct MHD_Daemon *start_daemon(pith_http *http, int fd) {
    const pith_server_options *o = options_of(http);
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    flags |= MHD_is_feature_supported(MHD_FEATURE_EPOLL) ? MHD_USE_EPOLL : MHD_USE_POLL;
    if (strchr(o->host, ':')) flags |= MHD_USE_IPv6;
    if (o->certificate) flags |= MHD_USE_TLS;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->certificate_key},
        {MHD_OPTION_END, 0, NULL}};
    if (!o->certificate) tls[0] = tls[2];
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, http, MHD_OPTION_CONNECTION_LIMIT, connection_limit(o),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)seconds_or(o->idle_seconds, 60),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768, MHD_OPTION_UNESCAPE_CALLBACK,
        decode_path, NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

pith_http *pith_http_new(pith_server *server, pith_error *error) {
    pith_http *http = pith_alloc_zero(1, sizeof *http);
    if (!http) {
        pith_fail_memory(error, "the HTTP server", sizeof *http);
        return NULL;
    }
    http->server = server;
    http->quiet_socket = -1;
    pthread_mutex_init(&http->lock, NULL);
    if (server->options->certificate && !MHD_is_feature_supported(MHD_FEATURE_TLS)) {
        pith_fail(error, PITH_ERROR_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    } else {
        int fd = open_socket(http, error);
        if (fd >= 0) http->daemon = start_daemon(http, fd);
        if (fd >= 0 && !http->daemon) {
            close(fd);
            pith_fail(error, PITH_ERROR_IO, "the HTTP server does not start%s",
                      server->options->certificate ? ": are certificate and key right?" : "");
        }
    }
    if (http->daemon) return http;
    pthread_mutex_destroy(&http->lock);
    pith_free(http);
    return NULL;
}

int pith_http_n_answers(const pith_http *http) {
    return atomic_load(&http->n_answers);
}

int pith_http_port(const pith_http *http) {
    return http->port;
}

void pith_http_quiesce(pith_http *http) {
    http->quiet_socket = MHD_quiesce_daemon(http->daemon);
    /* closed when the daemon's thread is gone, which may look at it until then */
    if (http->quiet_socket >= 0) shutdown(http->quiet_socket, SHUT_RDWR);
}

void pith_http_abort(pith_http *http) {
    pith_exchange *held = NULL;      /* by `aborted`: answered without the lock */
    pthread_mutex_lock(&http->lock); /* the daemon's thread lets go of an exchange under it */
    for (watched *w = http->first; w; w = w->after) {
        if (!w->exchange) continue;
        pith_exchange_retain(w->exchange);
        w->exchange->aborted = held;
        held = w->exchange;
    }
    pthread_mutex_unlock(&http->lock);
    for (pith_exchange *e; (e = held);) {
        held = e->aborted;
        pith_exchange_abort(e);
        pith_exchange_release(e);
    }
}

void pith_http_free(pith_http *http) {
    if (!http) return;
    MHD_stop_daemon(http->daemon);
    if (http->quiet_socket >= 0) close(http->quiet_socket);
    pthread_mutex_destroy(&http->lock);
    pith_free(http);
}
