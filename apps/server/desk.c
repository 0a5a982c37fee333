/* SPDX-License-Identifier: Apache-2.0
 * The desk: a few threads that run handlers which may take a while (templates, tokens, grammars),
 * in the order in which requests came. A handler that has to wait for a model does not: it parks
 * the exchange and returns.
 * Lists have a desk of their own, so that they never wait behind long texts, and so has the
 * history, whose file may be slow or held by another program. What a client that has left had sent
 * is not worked on.
 * Invariant: the desk holds an exchange from push until its handler has returned. */
#include "base/memory.h"
#include "server/exchange_state.h"

enum { MOST_THREADS = 8 };

struct pith_desk {
    pith_server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pith_exchange *first, *last;
    size_t n, limit;
    bool stop;
    pthread_t threads[MOST_THREADS];
    int n_threads;
};

static pith_exchange *take(pith_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    while (!desk->first && !desk->stop) pthread_cond_wait(&desk->changed, &desk->lock);
    pith_exchange *e = desk->first;
    if (e) {
        desk->first = e->next;
        if (!desk->first) desk->last = NULL;
        e->next = NULL;
        desk->n--;
    }
    pthread_mutex_unlock(&desk->lock);
    return e;
}

static void drop(pith_exchange *e) {
    const pith_http_error left = {499, "invalid_request_error", "left", NULL, "the client left"};
    pith_exchange_fail(e, &left);
}

static void *work(void *user) {
    pith_desk *desk = user;
    for (pith_exchange *e; (e = take(desk));) {
        if (pith_exchange_is_gone(e))
            drop(e);
        else if (!pith_routing_take(e))
            e->route->handle(e);
        pith_exchange_release(e);
    }
    return NULL;
}

static pith_desk *desk_of(const pith_exchange *e) {
    if (e->route->flags & PITH_ROUTE_HISTORY) return e->server->history_desk;
    return e->route->flags & PITH_ROUTE_LIST ? e->server->list_desk : e->server->desk;
}

static bool push(pith_exchange *e, bool always) {
    pith_desk *desk = desk_of(e);
    pthread_mutex_lock(&desk->lock);
    bool ok = always || desk->n < desk->limit;
    if (ok) {
        e->next = NULL;
        if (desk->last)
            desk->last->next = e;
        else
            desk->first = e;
        desk->last = e;
        desk->n++;
        pthread_cond_signal(&desk->changed);
    }
    pthread_mutex_unlock(&desk->lock);
    return ok;
}

bool pith_desk_push(pith_exchange *e) {
    pith_exchange_retain(e);
    bool ok = push(e, false);
    if (!ok) pith_exchange_release(e);
    return ok;
}

void pith_desk_push_again(pith_exchange *e) {
    push(e, true);
}

pith_desk *pith_desk_new(pith_server *server, int n_threads, size_t limit, pith_error *error) {
    pith_desk *desk = pith_alloc_zero(1, sizeof *desk);
    if (!desk) {
        pith_fail_memory(error, "the server's desk", sizeof *desk);
        return NULL;
    }
    desk->server = server;
    desk->limit = limit;
    pthread_mutex_init(&desk->lock, NULL);
    pthread_cond_init(&desk->changed, NULL);
    for (int i = 0; i < n_threads && i < MOST_THREADS; i++) {
        if (pthread_create(&desk->threads[i], NULL, work, desk) != 0) break;
        desk->n_threads++;
    }
    if (desk->n_threads > 0) return desk;
    pith_fail(error, PITH_ERROR_MEMORY, "the system has no more threads for us");
    pith_desk_free(desk);
    return NULL;
}

void pith_desk_free(pith_desk *desk) {
    if (!desk) return;
    pthread_mutex_lock(&desk->lock);
    desk->stop = true;
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->lock);
    for (int i = 0; i < desk->n_threads; i++) pthread_join(desk->threads[i], NULL);
    pthread_cond_destroy(&desk->changed);
    pthread_mutex_destroy(&desk->lock);
    pith_free(desk);
}
