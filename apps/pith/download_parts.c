/* SPDX-License-Identifier: Apache-2.0
 * The parts of a file that is being fetched. A part is a range; what has come of it is counted from
 * its start, so that a connection that is cut off loses nothing. The counts are kept in a file
 *     {"name", "file", "url", "bytes", "etag", "modified", "sha256", "part": 4194304, "done": [..]}
 * which is believed only when it is of the same file: the same length, and the same digest or the
 * same ETag (or date, where there is no ETag).
 * Invariant: parts of two versions of a file are never counted together; the file of counts holds
 * no token and no query of an address.
 * Read next: download_run.c. */
#include "pith/download_parts.h"

#include "base/memory.h"

#include <string.h>

enum { STATE_LIMIT = 1 << 20, PART_COUNT = 32, PART_COUNT_LIMIT = 8192 };

static const uint64_t smallest_part = 4u << 20, largest_part = 128u << 20;

static uint64_t choose_size(uint64_t total, uint64_t wanted) {
    uint64_t size = total / PART_COUNT;
    if (size < smallest_part) size = smallest_part;
    if (size > largest_part) size = largest_part;
    if (wanted) size = wanted;
    if (total / size >= PART_COUNT_LIMIT) size = total / (PART_COUNT_LIMIT - 1) + 1;
    return size;
}

static bool set_size(pith_cli_parts *parts, uint64_t size) {
    uint64_t total = parts->facts.total;
    bool known = total != UINT64_MAX;
    pith_free(parts->done);
    parts->size = known ? size : UINT64_MAX;
    parts->n = known && total ? (size_t)((total - 1) / size + 1) : 1;
    parts->done = pith_alloc_zero(parts->n, sizeof *parts->done);
    return parts->done != NULL;
}

bool pith_cli_parts_init(pith_cli_parts *parts, const pith_cli_file_facts *facts, uint64_t wanted) {
    *parts = (pith_cli_parts){.facts = *facts};
    return set_size(parts, choose_size(facts->total, wanted));
}

void pith_cli_parts_deinit(pith_cli_parts *parts) {
    pith_free(parts->done);
    parts->done = NULL;
}

uint64_t pith_cli_parts_first(const pith_cli_parts *parts, size_t i) {
    return i * parts->size;
}

uint64_t pith_cli_parts_length(const pith_cli_parts *parts, size_t i) {
    uint64_t left = parts->facts.total - pith_cli_parts_first(parts, i);
    return left < parts->size ? left : parts->size;
}

uint64_t pith_cli_parts_come(const pith_cli_parts *parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->n; i++) sum += parts->done[i];
    return sum;
}

uint64_t pith_cli_parts_prefix(const pith_cli_parts *parts) {
    size_t i = 0;
    while (i + 1 < parts->n && parts->done[i] == pith_cli_parts_length(parts, i)) i++;
    return pith_cli_parts_first(parts, i) + parts->done[i];
}

bool pith_cli_parts_whole(const pith_cli_parts *parts) {
    return parts->facts.total != UINT64_MAX && pith_cli_parts_come(parts) == parts->facts.total;
}

void pith_cli_parts_reset(pith_cli_parts *parts) {
    memset(parts->done, 0, parts->n * sizeof *parts->done);
}

/* ---- On disk ---- */

static bool same_member(const json_t *json, const char *key, const char *value) {
    const char *kept = json_string_value(json_object_get(json, key));
    return value[0] && kept && strcmp(kept, value) == 0;
}

static bool is_same_file(const pith_cli_file_facts *facts, const json_t *json) {
    json_int_t total = json_integer_value(json_object_get(json, "bytes"));
    if (total < 0 || (uint64_t)total != facts->total) return false;
    if (facts->digest[0] && same_member(json, "sha256", facts->digest)) return true;
    if (facts->etag[0]) return same_member(json, "etag", facts->etag);
    return same_member(json, "modified", facts->modified);
}

/* Counts that cannot be, or bytes that are not there: false. */
static bool read_counts(pith_cli_parts *parts, const json_t *json, uint64_t data_bytes) {
    const json_t *done = json_object_get(json, "done");
    if (json_array_size(done) != parts->n) return false;
    for (size_t i = 0; i < parts->n; i++) {
        json_int_t count = json_integer_value(json_array_get(done, i));
        uint64_t end = pith_cli_parts_first(parts, i) + (uint64_t)count;
        if (count < 0 || (uint64_t)count > pith_cli_parts_length(parts, i)) return false;
        if (count > 0 && end > data_bytes) return false;
        parts->done[i] = (uint64_t)count;
    }
    return true;
}

bool pith_cli_parts_load(pith_cli_parts *parts, const char *path, uint64_t data_bytes) {
    pith_buffer text = {0};
    json_t *json = NULL;
    uint64_t chosen = parts->size;
    if (pith_cli_try_read(path) == 0 && !pith_cli_is_device(path) &&
        pith_cli_read_file(path, STATE_LIMIT, &text, NULL))
        json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    pith_buffer_deinit(&text);
    json_int_t size = json_integer_value(json_object_get(json, "part"));
    bool usable = json && data_bytes != UINT64_MAX && size > 0 &&
                  parts->facts.total / (uint64_t)size < PART_COUNT_LIMIT &&
                  is_same_file(&parts->facts, json);
    bool whole = !usable || set_size(parts, (uint64_t)size);
    if (whole && usable && !read_counts(parts, json, data_bytes)) whole = set_size(parts, chosen);
    json_decref(json);
    return whole;
}

bool pith_cli_parts_save(const pith_cli_parts *parts, const char *path,
                         const pith_cli_download *what) {
    char shown[1024];
    json_t *done = json_array();
    for (size_t i = 0; i < parts->n; i++)
        json_array_append_new(done, json_integer((json_int_t)parts->done[i]));
    pith_cli_url_shown(what->url, shown, sizeof shown);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:I, s:o, s:o, s:s, s:I, s:o}", "name", pith_cli_json_string(what->name),
        "file", pith_cli_json_string(what->file), "url", pith_cli_json_string(shown), "bytes",
        (json_int_t)parts->facts.total, "etag", pith_cli_json_string(parts->facts.etag), "modified",
        pith_cli_json_string(parts->facts.modified), "sha256", parts->facts.digest, "part",
        (json_int_t)parts->size, "done", done);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    bool written =
        text && !pith_cli_json_failed() && pith_cli_replace_file(path, text, strlen(text));
    pith_free(text);
    json_decref(json);
    return written;
}
