/* SPDX-License-Identifier: Apache-2.0
 * The upstream's thread: libcurl's multi interface over all transfers.
 *
 *   desk -> inbox -> start -> connecting -> sent -> answer -> upstream_reply.c -> client
 *                             \-> not within the time: back to the desk, local
 *
 * Whether it is there: UNKNOWN at first, AWAY after a failure, THERE after any answer. While it is
 * AWAY nothing is sent; a request then makes the thread look again in the background
 * (GET /models, which holds nothing of anybody), at most once in a while that doubles. How long a
 * connection may take follows from how long the last one took, so that an upstream in the house
 * costs at most PITH_UPSTREAM_CONNECT_MS when it is away and one far off is not given up too soon.
 * Without TLS every request has a connection of its own, which costs little there; with it they are
 * used again, but for those that were open when an answer was wrong.
 * Invariant: transfers and handles are touched by this thread alone. A request is sent to the host
 * of --upstream and nowhere else: redirects are not followed.
 * Read next: upstream_reply.c. */
#define _GNU_SOURCE

#include "server/upstream.h"

#if PITH_WITH_UPSTREAM

#include "base/clock.h"
#include "base/memory.h"
#include "server/exchange_state.h"
#include "server/upstream_address.h"
#include "server/upstream_log.h"
#include "server/upstream_reply.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTING_MS = 4,     /* between looks at connections that do not stand yet */
    CHECK_MS = 25,         /* between looks at clients and times */
    IDLE_MS = 10000,       /* without transfers */
    FAR_CONNECT_MS = 2000, /* at most, for an upstream that was slow to connect to */
    PROBE_CONNECT_MS = 5000,
    PROBE_MS = 10000,
    PROBE_BYTES = 4 << 20,
    FIRST_WAIT_MS = 1000, /* between looks at one that is away */
    WAIT_LIMIT_MS = 30000,
    UNACKED_MS = 3000,      /* bytes that the network swallowed */
    SLOW_CLIENT_MS = 60000, /* that takes nothing */
    LAST_WORDS_MS = 500,    /* after a stream's [DONE] */
    IDLE_CONNECTION_S = 30,
    MOST_TRANSFERS = 256,
    HEAD_LIMIT = 256 << 10, /* bytes of an answer's heads */
    VIA_LIMIT = 400
};

#define MS 1000000u /* nanoseconds */

typedef enum upstream_state { UNKNOWN, THERE, AWAY } upstream_state;

typedef struct transfer {
    pith_exchange *exchange; /* NULL: a probe */
    CURL *handle;
    struct curl_slist *headers;
    char *body; /* of json_dumps */
    char id[64];
    pith_upstream_reply reply;
    uint64_t begun_ns, connect_by_ns, paused_ns, complete_ns;
    uint64_t n_probed; /* bytes of a probe's answer */
    uint64_t n_head;   /* bytes of heads */
    bool is_connected, is_paused;
    struct transfer *next;
} transfer;

struct pith_upstream {
    pith_server *server;
    const pith_server_upstream *options;
    pith_upstream_address address;
    char via[32]; /* our name in the header of those that a request has passed */
    pith_upstream_log *log;
    CURLM *multi;
    pthread_t thread;
    bool has_thread;
    transfer *running;    /* the thread's */
    pthread_mutex_t lock; /* of what follows */
    transfer *inbox;
    int n_transfers; /* inbox and running, probes too */
    upstream_state state;
    uint64_t fresh_ns; /* until then connections that were used before are not used again */
    bool wants_probe, is_probing, told_away, is_cancelled, stop;
    uint64_t look_ns; /* not before */
    int wait_ms, connect_ms;
};

bool pith_upstream_is_via(const pith_upstream *u, const char *via) {
    return strstr(via, u->via) || strlen(via) > VIA_LIMIT;
}

const char *pith_upstream_origin(const pith_upstream *u) {
    return u->address.origin;
}

/* ---- Whether it is there (under the lock, but for the last) ---- */

static void mark_there(pith_upstream *u) {
    u->state = THERE;
    u->wait_ms = FIRST_WAIT_MS;
    u->told_away = false;
}

/* soon: the connection was only slow, so a look that has more time is worth while. */
static void mark_away(pith_upstream *u, bool soon) {
    uint64_t now = pith_clock_ns();
    bool more = u->state == AWAY && now >= u->look_ns;
    if (more && u->wait_ms < WAIT_LIMIT_MS) u->wait_ms *= 2;
    u->state = AWAY;
    u->look_ns = now + (soon ? 0 : (uint64_t)u->wait_ms * MS);
    if (soon) u->wants_probe = true;
}

bool pith_upstream_is_there(pith_upstream *u) {
    pthread_mutex_lock(&u->lock);
    bool there = u->state != AWAY;
    bool looks = !there && !u->is_probing && !u->wants_probe && pith_clock_ns() >= u->look_ns;
    if (looks) u->wants_probe = true;
    pthread_mutex_unlock(&u->lock);
    if (looks) curl_multi_wakeup(u->multi);
    return there;
}

static void tell_away(pith_upstream *u, const char *why) {
    pthread_mutex_lock(&u->lock);
    bool told = u->told_away;
    u->told_away = true;
    pthread_mutex_unlock(&u->lock);
    if (!told)
        pith_server_log_line(u->server, PITH_SERVER_LOG_INFO,
                             "the upstream %.150s cannot be reached: %.150s", u->address.origin,
                             why);
}

/* ---- Handles ---- */

static size_t on_header(char *line, size_t one, size_t size, void *user) {
    transfer *t = user;
    t->n_head += one * size;
    if (t->exchange) pith_upstream_reply_line(&t->reply, line, one * size);
    if (t->n_head <= HEAD_LIMIT) return one * size;
    pith_upstream_reply_wrong(&t->reply, "upstream_too_large",
                              "the head of the upstream's answer is larger than %d KiB",
                              HEAD_LIMIT >> 10);
    return 0;
}

static size_t on_data(char *data, size_t one, size_t size, void *user) {
    transfer *t = user;
    size_t n = one * size;
    if (!t->exchange) {
        t->n_probed += n;
        return t->n_probed > PROBE_BYTES ? 0 : n;
    }
    switch (pith_upstream_reply_data(&t->reply, data, n)) {
    case PITH_UPSTREAM_TAKEN: return n;
    case PITH_UPSTREAM_LATER:
        t->is_paused = true;
        t->paused_ns = pith_clock_ns();
        return CURL_WRITEFUNC_PAUSE;
    default: return 0;
    }
}

/* A network that is gone without a word is noticed by what it does not acknowledge. */
static int on_socket(void *user, curl_socket_t fd, curlsocktype purpose) {
    (void)user;
    (void)purpose;
#if defined(TCP_USER_TIMEOUT)
    unsigned ms = UNACKED_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
#else
    (void)fd;
#endif
    return CURL_SOCKOPT_OK;
}

static bool add_line(transfer *t, const char *line) {
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (longer) t->headers = longer;
    return longer != NULL;
}

static bool add_key(transfer *t, const char *key) {
    pith_buffer line = {0};
    pith_buffer_append_format(&line, "Authorization: Bearer %s", key);
    bool ok = !line.failed && add_line(t, line.data);
    if (line.data) memset(line.data, 0, line.size);
    pith_buffer_deinit(&line);
    return ok;
}

/* Who was asked before, and we: two servers that name each other as upstream notice it so. */
static bool add_via(const pith_upstream *u, transfer *t) {
    char line[VIA_LIMIT + 64];
    const char *before = pith_exchange_header(t->exchange, "Via");
    snprintf(line, sizeof line, "Via: %s%s%s", before ? before : "", before ? ", " : "", u->via);
    return add_line(t, line);
}

static void set_limits(const pith_upstream *u, CURL *h) {
    int seconds = u->options->timeout_seconds > 0 ? u->options->timeout_seconds : 120;
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)seconds);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_S);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(h, CURLOPT_SOCKOPTFUNCTION, on_socket);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(h, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(h, CURLOPT_QUICK_EXIT, 1L); /* a name that is looked up is not waited for */
#endif
    if (u->address.is_loopback) curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
    if (!u->address.is_tls) curl_easy_setopt(h, CURLOPT_FORBID_REUSE, 1L);
}

/* false: memory is short. path: "/models" */
static bool set_up(const pith_upstream *u, transfer *t, const char *path) {
    pith_buffer url = {0};
    t->handle = curl_easy_init();
    pith_buffer_append_format(&url, "%s%s", u->address.base, path);
    bool ok = t->handle && !url.failed;
    if (ok && u->options->key) ok = add_key(t, u->options->key);
    if (ok && t->body) ok = add_line(t, "Content-Type: application/json") && add_line(t, "Expect:");
    if (ok && t->exchange) ok = add_via(u, t);
    if (ok) {
        curl_easy_setopt(t->handle, CURLOPT_URL, url.data);
        curl_easy_setopt(t->handle, CURLOPT_USERAGENT, "pith");
        curl_easy_setopt(t->handle, CURLOPT_PRIVATE, t);
        curl_easy_setopt(t->handle, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(t->handle, CURLOPT_HEADERDATA, t);
        curl_easy_setopt(t->handle, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(t->handle, CURLOPT_WRITEDATA, t);
        if (t->headers) curl_easy_setopt(t->handle, CURLOPT_HTTPHEADER, t->headers);
        if (u->options->authorities)
            curl_easy_setopt(t->handle, CURLOPT_CAINFO, u->options->authorities);
        set_limits(u, t->handle);
    }
    if (ok && t->body) {
        curl_easy_setopt(t->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(t->body));
        curl_easy_setopt(t->handle, CURLOPT_POSTFIELDS, t->body); /* lives as long as the handle */
    }
    pith_buffer_deinit(&url);
    return ok;
}

static void transfer_free(transfer *t) {
    if (!t) return;
    if (t->handle) curl_easy_cleanup(t->handle);
    for (struct curl_slist *at = t->headers; at; at = at->next)
        memset(at->data, 0, strlen(at->data)); /* one may be the key */
    curl_slist_free_all(t->headers);
    pith_json_release(t->body);
    pith_exchange_release(t->exchange);
    pith_free(t);
}

/* ---- From the desk ---- */

static bool may_begin(pith_upstream *u, pith_error *error) {
    pthread_mutex_lock(&u->lock);
    bool over = u->is_cancelled, full = u->n_transfers >= MOST_TRANSFERS;
    if (!over && !full) u->n_transfers++;
    pthread_mutex_unlock(&u->lock);
    if (over) pith_fail(error, PITH_ERROR_CANCELLED, "the server is being stopped");
    if (!over && full)
        pith_fail(error, PITH_ERROR_LIMIT, "%d requests are upstream already", MOST_TRANSFERS);
    return !over && !full;
}

static bool list_departure(pith_upstream *u, const transfer *t, pith_error *error) {
    const pith_departure what = {.id = t->id,
                                 .path = t->exchange->path,
                                 .reason = t->exchange->routing.reason,
                                 .upstream = u->address.origin,
                                 .model = u->options->model,
                                 .body = pith_span_of(t->body)};
    pith_error why = {0};
    if (pith_upstream_log_departure(u->log, &what, &why)) return true;
    pith_server_log_line(u->server, PITH_SERVER_LOG_ERROR, "%s", why.text);
    pith_fail(error, why.status, "the list of what leaves cannot be written");
    return false;
}

bool pith_upstream_send(pith_upstream *u, pith_exchange *e, char *body, bool wants_stream,
                        pith_error *error) {
    transfer *t = pith_alloc_zero(1, sizeof *t);
    bool counted = t && may_begin(u, error);
    if (!t) {
        pith_json_release(body);
        pith_fail_memory(error, "a request for the upstream", sizeof *t);
        return false;
    }
    t->body = body;
    t->exchange = e;
    pith_exchange_retain(e);
    t->reply.exchange = e;
    t->reply.key_name = u->options->key ? u->options->key_name : NULL;
    t->reply.wants_stream = wants_stream;
    t->begun_ns = pith_clock_ns();
    pith_server_name_reply(u->server, "up-", t->id);
    bool ok = counted && list_departure(u, t, error);
    if (ok && !set_up(u, t, e->path + sizeof "/v1" - 1)) {
        pith_fail_memory(error, "a request for the upstream", 0);
        ok = false;
    }
    pthread_mutex_lock(&u->lock);
    if (ok) {
        if (t->begun_ns < u->fresh_ns) curl_easy_setopt(t->handle, CURLOPT_FRESH_CONNECT, 1L);
        t->connect_by_ns = t->begun_ns + (uint64_t)u->connect_ms * MS;
        t->next = u->inbox;
        u->inbox = t;
    } else if (counted) {
        u->n_transfers--;
    }
    pthread_mutex_unlock(&u->lock);
    if (ok)
        curl_multi_wakeup(u->multi);
    else
        transfer_free(t);
    return ok;
}

/* ---- Ends ---- */

static void list_return(pith_upstream *u, transfer *t, const char *error) {
    curl_off_t sent = 0;
    curl_easy_getinfo(t->handle, CURLINFO_SIZE_UPLOAD_T, &sent);
    const pith_return what = {.id = t->id,
                              .status = t->reply.status,
                              .sent = sent > 0 ? (uint64_t)sent : 0,
                              .received = t->reply.n_bytes,
                              .ms = (double)(pith_clock_ns() - t->begun_ns) / 1e6,
                              .error = error};
    pith_upstream_log_return(u->log, &what);
    atomic_fetch_add(&u->server->counts.upstream_requests, 1);
    atomic_fetch_add(&u->server->counts.upstream_sent, what.sent);
    if (error) atomic_fetch_add(&u->server->counts.upstream_failed, 1);
}

/* Nothing of an answer came: it is given back, or told where there is no way back. */
static void give_back(pith_upstream *u, transfer *t, const char *why, bool soon) {
    pthread_mutex_lock(&u->lock);
    mark_away(u, soon);
    pthread_mutex_unlock(&u->lock);
    tell_away(u, why);
    list_return(u, t, why);
    pith_routing_take_back(t->exchange, why);
}

/* Whether the failure means that the upstream could not be reached, rather than that it erred. */
static bool is_unreachable(CURLcode code, const transfer *t) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION: return true;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return t->reply.status == 0;
    case CURLE_OPERATION_TIMEDOUT: return !t->is_connected;
    default: return false;
    }
}

static void record_failure(const pith_upstream *u, transfer *t, CURLcode code) {
    int seconds = u->options->timeout_seconds > 0 ? u->options->timeout_seconds : 120;
    if (code == CURLE_OPERATION_TIMEDOUT)
        pith_upstream_reply_wrong(&t->reply, "upstream_timeout",
                                  "the upstream sent nothing for %d seconds", seconds);
    else if (code == CURLE_PARTIAL_FILE)
        pith_upstream_reply_wrong(&t->reply, "upstream_cut",
                                  "the upstream's answer is shorter than it said");
    else if (code != CURLE_OK)
        pith_upstream_reply_wrong(&t->reply, "upstream_cut",
                                  "the upstream broke its answer off (%s)",
                                  curl_easy_strerror(code));
}

/* More may come over a connection than its answer said; it must not begin the next one. */
static void distrust_connections(pith_upstream *u) {
    uint64_t seconds = IDLE_CONNECTION_S + 1;
    pthread_mutex_lock(&u->lock);
    u->fresh_ns = pith_clock_ns() + seconds * 1000 * MS;
    pthread_mutex_unlock(&u->lock);
}

static void end_request(pith_upstream *u, transfer *t, CURLcode code) {
    if (!t->reply.is_complete && (t->reply.is_gone || pith_exchange_is_gone(t->exchange))) {
        list_return(u, t, "the client left");
        pith_upstream_reply_wrong(&t->reply, "client", "the client left");
    } else if (is_unreachable(code, t)) {
        give_back(u, t, curl_easy_strerror(code), false);
        return;
    } else {
        pthread_mutex_lock(&u->lock);
        mark_there(u);
        pthread_mutex_unlock(&u->lock);
        if (!t->reply.is_complete) record_failure(u, t, code);
        pith_upstream_reply_judge(&t->reply);
        if (t->reply.code) distrust_connections(u);
        list_return(u, t, t->reply.code ? t->reply.wrong : NULL);
    }
    if (t->reply.code)
        pith_server_log_line(u->server, PITH_SERVER_LOG_DEBUG, "upstream: %s", t->reply.wrong);
    pith_upstream_reply_end(&t->reply);
}

/* How long connections may take, by how long this one took. */
static int patience_of(CURL *handle) {
    curl_off_t us = 0;
    curl_easy_getinfo(handle, CURLINFO_PRETRANSFER_TIME_T, &us);
    int ms = (int)(us / 1000) * 2 + 50;
    if (ms < PITH_UPSTREAM_CONNECT_MS) return PITH_UPSTREAM_CONNECT_MS;
    return ms < FAR_CONNECT_MS ? ms : FAR_CONNECT_MS;
}

static void end_probe(pith_upstream *u, transfer *t, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status);
    pthread_mutex_lock(&u->lock);
    bool cancelled = u->is_cancelled;
    u->is_probing = false;
    if (status > 0) {
        mark_there(u);
        u->connect_ms = patience_of(t->handle);
    } else {
        mark_away(u, false);
    }
    pthread_mutex_unlock(&u->lock);
    if (status == 0 && !cancelled) tell_away(u, curl_easy_strerror(code));
    if (status == 401 || status == 403)
        pith_server_log_line(u->server, PITH_SERVER_LOG_ERROR,
                             "the upstream %.150s refuses the key (status %ld)", u->address.origin,
                             status);
}

/* After its client has its answer: this may wait for a name's lookup. */
static void drop(pith_upstream *u, transfer *t) {
    transfer **at = &u->running;
    while (*at && *at != t) at = &(*at)->next;
    if (*at) *at = t->next;
    curl_multi_remove_handle(u->multi, t->handle);
    transfer_free(t);
    pthread_mutex_lock(&u->lock);
    u->n_transfers--;
    pthread_mutex_unlock(&u->lock);
}

static void end_transfer(pith_upstream *u, transfer *t, CURLcode code) {
    if (t->exchange)
        end_request(u, t, code);
    else
        end_probe(u, t, code);
    drop(u, t);
}

/* ---- The loop ---- */

static void start_probe(pith_upstream *u) {
    transfer *t = pith_alloc_zero(1, sizeof *t);
    bool ok = t && set_up(u, t, "/models");
    if (ok) {
        curl_easy_setopt(t->handle, CURLOPT_CONNECTTIMEOUT_MS, (long)PROBE_CONNECT_MS);
        curl_easy_setopt(t->handle, CURLOPT_TIMEOUT_MS, (long)PROBE_MS);
        ok = curl_multi_add_handle(u->multi, t->handle) == CURLM_OK;
    }
    pthread_mutex_lock(&u->lock);
    u->is_probing = ok;
    u->n_transfers += ok;
    pthread_mutex_unlock(&u->lock);
    if (ok) {
        t->next = u->running;
        u->running = t;
    } else {
        transfer_free(t);
    }
}

static void take_inbox(pith_upstream *u) {
    pthread_mutex_lock(&u->lock);
    transfer *list = u->inbox;
    bool probe = u->wants_probe && !u->is_probing && !u->is_cancelled;
    u->inbox = NULL;
    u->wants_probe = false;
    pthread_mutex_unlock(&u->lock);
    if (probe) start_probe(u);
    while (list) {
        transfer *t = list;
        list = t->next;
        t->next = u->running;
        u->running = t;
        if (curl_multi_add_handle(u->multi, t->handle) != CURLM_OK)
            end_transfer(u, t, CURLE_COULDNT_CONNECT);
    }
}

static bool is_connected(transfer *t) {
    curl_off_t us = 0;
    if (!t->is_connected)
        t->is_connected =
            curl_easy_getinfo(t->handle, CURLINFO_PRETRANSFER_TIME_T, &us) == CURLE_OK && us > 0;
    return t->is_connected;
}

static void end_slow_connection(pith_upstream *u, transfer *t) {
    char why[80];
    int ms = (int)((t->connect_by_ns - t->begun_ns) / MS);
    snprintf(why, sizeof why, "no connection within %d ms", ms);
    give_back(u, t, why, true);
    drop(u, t);
}

/* Its client did not take what came. */
static void check_paused(pith_upstream *u, transfer *t, uint64_t now) {
    if (pith_exchange_unsent(t->exchange) <= PITH_UPSTREAM_UNSENT_MAX / 2) {
        t->is_paused = false;
        curl_easy_pause(t->handle, CURLPAUSE_CONT);
    } else if (now - t->paused_ns >= (uint64_t)SLOW_CLIENT_MS * MS) {
        pith_upstream_reply_wrong(&t->reply, "client", "the client takes nothing");
        end_transfer(u, t, CURLE_OK);
    }
}

/* Its client has all; a connection that is at its end soon may be used again. */
static void check_complete(pith_upstream *u, transfer *t, uint64_t now) {
    if (!t->complete_ns) t->complete_ns = now;
    if (now - t->complete_ns >= (uint64_t)LAST_WORDS_MS * MS) end_transfer(u, t, CURLE_OK);
}

static void check(pith_upstream *u, transfer *t, uint64_t now) {
    if (!t->exchange) return;
    if (!is_connected(t) && now >= t->connect_by_ns) {
        end_slow_connection(u, t);
    } else if (t->reply.is_complete) {
        check_complete(u, t, now);
    } else if (pith_exchange_is_gone(t->exchange)) {
        t->reply.is_gone = true;
        end_transfer(u, t, CURLE_ABORTED_BY_CALLBACK);
    } else if (t->is_paused) {
        check_paused(u, t, now);
    }
}

/* Milliseconds until the next look. */
static int check_all(pith_upstream *u) {
    uint64_t now = pith_clock_ns();
    int wait = IDLE_MS;
    for (transfer *t = u->running, *next; t; t = next) {
        next = t->next;
        check(u, t, now);
    }
    for (const transfer *t = u->running; t; t = t->next) {
        int most = t->exchange && !t->is_connected ? CONNECTING_MS : CHECK_MS;
        if (most < wait) wait = most;
    }
    return wait;
}

static void end_done(pith_upstream *u) {
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(u->multi, &left));) {
        transfer *t = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        is_connected(t);
        end_transfer(u, t, code);
    }
}

static void cancel_all(pith_upstream *u) {
    while (u->running) {
        transfer *t = u->running;
        pith_upstream_reply_wrong(&t->reply, "stopping", "the server is being stopped");
        end_transfer(u, t, CURLE_OK);
    }
}

static void *work(void *user) {
    pith_upstream *u = user;
    for (bool stop = false; !stop;) {
        int n_running = 0;
        take_inbox(u);
        curl_multi_perform(u->multi, &n_running);
        end_done(u);
        int wait = check_all(u);
        pthread_mutex_lock(&u->lock);
        bool cancelled = u->is_cancelled;
        stop = u->stop && !u->inbox;
        bool waits = !u->inbox && !u->wants_probe && !stop;
        pthread_mutex_unlock(&u->lock);
        if (cancelled) cancel_all(u);
        if (waits) curl_multi_poll(u->multi, NULL, 0, wait, NULL);
    }
    return NULL;
}

/* ---- Life ---- */

pith_upstream *pith_upstream_new(pith_server *server, pith_error *error) {
    pith_upstream *u = pith_alloc_zero(1, sizeof *u);
    if (!u) {
        pith_fail_memory(error, "the upstream", sizeof *u);
        return NULL;
    }
    u->server = server;
    u->options = &server->options->upstream;
    snprintf(u->via, sizeof u->via, "1.1 pith-%016llx",
             (unsigned long long)pith_hash(&server->started_ns, sizeof server->started_ns,
                                           (uint64_t)getpid()));
    u->wait_ms = FIRST_WAIT_MS;
    u->connect_ms = PITH_UPSTREAM_CONNECT_MS;
    u->wants_probe = true;
    pthread_mutex_init(&u->lock, NULL);
    bool ok = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
              pith_upstream_address_read(u->options->url, &u->address, error);
    if (ok) ok = (u->log = pith_upstream_log_open(u->options->log_path, error)) != NULL;
    if (ok && !(u->multi = curl_multi_init())) {
        pith_fail_memory(error, "the upstream", 0);
        ok = false;
    }
    if (ok && pthread_create(&u->thread, NULL, work, u) != 0) {
        pith_fail(error, PITH_ERROR_MEMORY, "the system has no more threads for us");
        ok = false;
    }
    u->has_thread = ok;
    if (ok) return u;
    pith_upstream_free(u);
    return NULL;
}

void pith_upstream_cancel(pith_upstream *u) {
    if (!u) return;
    pthread_mutex_lock(&u->lock);
    u->is_cancelled = true;
    pthread_mutex_unlock(&u->lock);
    curl_multi_wakeup(u->multi);
}

void pith_upstream_stop(pith_upstream *u) {
    if (!u || !u->has_thread) return;
    pthread_mutex_lock(&u->lock);
    u->is_cancelled = u->stop = true;
    pthread_mutex_unlock(&u->lock);
    curl_multi_wakeup(u->multi);
    pthread_join(u->thread, NULL);
    u->has_thread = false;
}

void pith_upstream_free(pith_upstream *u) {
    if (!u) return;
    pith_upstream_stop(u);
    if (u->multi) curl_multi_cleanup(u->multi);
    pith_upstream_log_close(u->log);
    pthread_mutex_destroy(&u->lock);
    curl_global_cleanup();
    pith_free(u);
}

#else
typedef int pith_upstream_has_no_network;
#endif
