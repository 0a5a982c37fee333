/* SPDX-License-Identifier: Apache-2.0
 * The history of a build without SQLite: it says so. */
#include "server/chat_history.h"

#include "base/memory.h"

struct pith_chat_history {
    bool is_wanted;
};

pith_chat_history *pith_chat_history_new(const char *path) {
    pith_chat_history *h = pith_alloc_zero(1, sizeof *h);
    if (h) h->is_wanted = path != NULL;
    return h;
}

void pith_chat_history_free(pith_chat_history *h) {
    pith_free(h);
}

const char *pith_chat_history_library(void) {
    return NULL;
}

pith_status pith_chat_history_check(pith_chat_history *h, pith_error *error) {
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     h->is_wanted ? "conversations are not kept: this build is without SQLite "
                                    "(script/bootstrap installs it; then build again)"
                                  : "conversations are not kept: the server was started with "
                                    "--history off");
}

pith_status pith_chat_history_list(pith_chat_history *h, json_t **out, pith_error *error) {
    *out = NULL;
    return pith_chat_history_check(h, error);
}

pith_status pith_chat_history_read(pith_chat_history *h, const char *id, json_t **out,
                                   pith_error *error) {
    (void)id;
    return pith_chat_history_list(h, out, error);
}

pith_status pith_chat_history_write(pith_chat_history *h, const char *id,
                                    const pith_chat_history_head *head, pith_error *error) {
    (void)id, (void)head;
    return pith_chat_history_check(h, error);
}

pith_status pith_chat_history_write_message(pith_chat_history *h, const char *conversation,
                                            const pith_chat_history_message *message,
                                            pith_error *error) {
    (void)conversation, (void)message;
    return pith_chat_history_check(h, error);
}

pith_status pith_chat_history_remove(pith_chat_history *h, const char *id, pith_error *error) {
    (void)id;
    return pith_chat_history_check(h, error);
}

pith_status pith_chat_history_search(pith_chat_history *h, const char *query, json_t **out,
                                     pith_error *error) {
    (void)query;
    return pith_chat_history_list(h, out, error);
}

pith_status pith_chat_history_export(pith_chat_history *h, json_t **out, pith_error *error) {
    return pith_chat_history_list(h, out, error);
}

pith_status pith_chat_history_add(pith_chat_history *h, const pith_chat_history_import *items,
                                  size_t n, size_t *n_added, pith_error *error) {
    (void)items, (void)n, (void)n_added;
    return pith_chat_history_check(h, error);
}
