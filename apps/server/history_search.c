/* SPDX-License-Identifier: Apache-2.0
 * Finding messages and titles by words.
 *
 * A word is found wherever it stands, also inside of longer ones: Chinese is written without
 * spaces. The index knows three characters at a time; where a word of the query is shorter, or
 * SQLite has no such index, all texts are read. Case does not matter (of ASCII letters alone, where
 * texts are read).
 * Invariant: a query is words, never an expression: whatever it spells, it is looked for. */
#include "server/fields.h"
#include "server/history_parts.h"

#include "base/memory.h"

#include <string.h>

enum { MOST_WORDS = 6, LEAST_INDEXED = 3, MOST_TITLES = 20 };

typedef struct search_words {
    char *words[MOST_WORDS];
    size_t n;
    bool has_short; /* one that the index cannot find */
} search_words;

static size_t count_characters(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* false without memory. Words after the sixth are part of it. */
static bool split(const char *query, search_words *out) {
    for (const char *at = query; *at && out->n < MOST_WORDS;) {
        while (pith_is_space(*at)) at++;
        const char *end = at;
        while (*end && (!pith_is_space(*end) || out->n == MOST_WORDS - 1)) end++;
        while (end > at && pith_is_space(end[-1])) end--;
        if (end == at) break;
        char *word = pith_copy_text(at, (size_t)(end - at));
        if (!word) return false;
        out->words[out->n++] = word;
        out->has_short = out->has_short || count_characters(word) < LEAST_INDEXED;
        at = end;
    }
    return true;
}

static void release(search_words *words) {
    for (size_t i = 0; i < words->n; i++) pith_free(words->words[i]);
}

/* "a" AND "b", with quotes doubled: no operator is left. */
static void write_match(const search_words *words, pith_buffer *out) {
    for (size_t i = 0; i < words->n; i++) {
        pith_buffer_append_text(out, i > 0 ? " AND \"" : "\"");
        for (const char *at = words->words[i]; *at; at++)
            pith_buffer_append(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
        pith_buffer_append_text(out, "\"");
    }
}

static void write_pattern(const char *word, pith_buffer *out) {
    pith_buffer_append_text(out, "%");
    for (; *word; word++) {
        if (strchr("%_\\", *word)) pith_buffer_append_text(out, "\\");
        pith_buffer_append(out, word, 1);
    }
    pith_buffer_append_text(out, "%");
}

/* The rest of a query whose ?2 ... are patterns for the column. */
static void write_conditions(const search_words *words, const char *name, pith_buffer *sql) {
    for (size_t i = 0; i < words->n; i++)
        pith_buffer_append_format(sql, "%s%s LIKE ?%d ESCAPE '\\'", i > 0 ? " AND " : " WHERE ",
                                  name, (int)i + 2);
}

static json_t *text_at(sqlite3_stmt *s, int at) {
    const char *text = (const char *)sqlite3_column_text(s, at);
    return text ? pith_json_text(text, strlen(text)) : json_null();
}

static int add_hits(pith_chat_history *h, const pith_chat_history_query *query, json_t *hits,
                    pith_error *error) {
    sqlite3_stmt *s = pith_chat_history_prepare(h, query, error);
    int more = s ? 1 : -1;
    while (more == 1 && (more = pith_chat_history_step(h, s, error)) == 1)
        json_array_append_new(hits,
                              json_pack("{s:o, s:o, s:o, s:o, s:o}", "conversation", text_at(s, 0),
                                        "title", text_at(s, 1), "message", text_at(s, 2), "role",
                                        text_at(s, 3), "text", text_at(s, 4)));
    sqlite3_finalize(s);
    return more;
}

/* Of a message: some characters around the first word. */
#define MESSAGE_COLUMNS                                                                            \
    "SELECT c.id, c.title, m.id, m.role, substr(m.text, max(1, instr(lower(m.text), lower(?1)) - " \
    "40), 160) FROM "

static pith_status find_locked(pith_chat_history *h, const search_words *words, json_t *hits,
                               pith_error *error) {
    pith_chat_history_query query = {.n_values = 2};
    pith_buffer patterns[MOST_WORDS] = {{0}}, match = {0}, sql = {0}, titles = {0};
    bool indexed = h->has_index && !words->has_short, failed = false;
    query.values[0] = pith_chat_history_string(words->words[0]);
    for (size_t i = 0; i < words->n; i++) {
        write_pattern(words->words[i], &patterns[i]);
        query.values[i + 1] = pith_chat_history_string(patterns[i].data);
        failed = failed || patterns[i].failed;
    }
    query.n_values = (int)words->n + 1;
    pith_buffer_append_text(&titles, "SELECT c.id, c.title, NULL, NULL, substr(c.title, 1, 160), "
                                     "?1 FROM conversations c");
    write_conditions(words, "c.title", &titles);
    pith_buffer_append_format(&titles, " ORDER BY c.changed DESC LIMIT %d", MOST_TITLES);
    pith_buffer_append_text(&sql, MESSAGE_COLUMNS);
    if (indexed)
        pith_buffer_append_text(&sql, "found JOIN messages m ON m.row = found.rowid JOIN "
                                      "conversations c ON c.row = m.conversation WHERE found "
                                      "MATCH ?2");
    else
        pith_buffer_append_text(&sql, "messages m JOIN conversations c ON c.row = m.conversation");
    if (!indexed) write_conditions(words, "m.text", &sql);
    pith_buffer_append_format(&sql, " ORDER BY m.row DESC LIMIT %d", PITH_CHAT_HISTORY_HITS);
    write_match(words, &match);
    failed = failed || match.failed || sql.failed || titles.failed;
    int code = failed ? -1 : 0;
    if (failed) pith_fail_memory(error, "a search", 0);
    query.sql = titles.data;
    if (code == 0) code = add_hits(h, &query, hits, error);
    query.sql = sql.data;
    if (indexed) query.values[1] = pith_chat_history_string(match.data), query.n_values = 2;
    if (code == 0) code = add_hits(h, &query, hits, error);
    for (size_t i = 0; i < words->n; i++) pith_buffer_deinit(&patterns[i]);
    pith_buffer_deinit(&match);
    pith_buffer_deinit(&sql);
    pith_buffer_deinit(&titles);
    return code == 0 ? PITH_OK : PITH_ERROR_IO;
}

pith_status pith_chat_history_search(pith_chat_history *h, const char *query, json_t **out,
                                     pith_error *error) {
    search_words words = {.n = 0};
    json_t *hits = json_array();
    *out = NULL;
    pith_status status = pith_chat_history_enter(h, error);
    if (status == PITH_OK) {
        if (!split(query, &words))
            status = pith_fail_memory(error, "a search", strlen(query));
        else if (words.n > 0)
            status = find_locked(h, &words, hits, error);
        pith_chat_history_leave(h);
    }
    release(&words);
    if (status == PITH_OK) *out = json_pack("{s:O}", "hits", hits);
    json_decref(hits);
    return status == PITH_OK && !*out ? pith_fail_memory(error, "a search", 0) : status;
}
