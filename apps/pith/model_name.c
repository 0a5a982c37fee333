/* SPDX-License-Identifier: Apache-2.0
 * Names of models, their files and addresses: what is a name, which file a quantization picks, what
 * may become a path on this machine.
 * Invariant: nothing that a server or a user calls a file leads out of the folder it is meant for.
 * Read next: found_models.c, which looks names up. */
#include "base/memory.h"
#include "pith/models.h"

#include <string.h>

static char small_letter(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return small_letter(c) >= 'a' && small_letter(c) <= 'z';
}

bool pith_cli_same_text(const char *text, size_t size, const char *other) {
    for (size_t i = 0; i < size; i++) {
        if (small_letter(text[i]) != small_letter(other[i])) return false;
        if (!text[i]) return false;
    }
    return true;
}

bool pith_cli_same_name(const char *a, const char *b) {
    size_t size = strlen(a);
    return size == strlen(b) && pith_cli_same_text(a, size, b);
}

bool pith_cli_is_digest(const char *text) {
    size_t n = 0;
    while (is_digit(text[n]) || (text[n] >= 'a' && text[n] <= 'f')) n++;
    return n == 64 && !text[n];
}

/* ---- Hub names ---- */

bool pith_cli_is_hub_name(const char *text) {
    return strncmp(text, "hf:", 3) == 0;
}

/* One of the two names of a repository: letters, digits, '.', '_', '-', at most 96, as the hub has
 * them. */
static bool is_repo_part(const char *text, size_t size) {
    if (size == 0 || size > 96 || text[0] == '.' || text[0] == '-') return false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (!is_letter(c) && !is_digit(c) && c != '.' && c != '_' && c != '-') return false;
        if (i && text[i - 1] == c && (c == '.' || c == '-')) return false;
    }
    return true;
}

static bool is_pick(const char *text) {
    size_t size = strlen(text);
    if (size >= 5 && strcmp(text + size - 5, ".gguf") == 0) return pith_cli_is_safe_path(text);
    for (size_t i = 0; i < size; i++)
        if (!is_letter(text[i]) && !is_digit(text[i]) && text[i] != '_' && text[i] != '-')
            return false;
    return size > 0 && size < PITH_CLI_QUANT_LIMIT;
}

pith_status pith_cli_hub_name_read(const char *text, pith_cli_hub_name *out, pith_error *error) {
    const char *user = text + 3, *slash = strchr(user, '/');
    const char *repo = slash ? slash + 1 : user, *colon = strchr(repo, ':');
    size_t repo_size = colon ? (size_t)(colon - repo) : strlen(repo);
    memset(out, 0, sizeof *out);
    if (!slash || !is_repo_part(user, (size_t)(slash - user)) || !is_repo_part(repo, repo_size))
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "'%.100s' names no model of the hub: it is hf:USER/REPO or "
                         "hf:USER/REPO:QUANTIZATION, with letters, digits and . _ -",
                         text);
    if (colon && (strlen(colon + 1) >= sizeof out->pick || !is_pick(colon + 1)))
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "'%.60s' in '%.100s' is neither a quantization (Q4_K_M) nor a .gguf file "
                         "within the repository",
                         colon + 1, text);
    memcpy(out->repo, user, (size_t)(repo - user) + repo_size);
    if (colon) memcpy(out->pick, colon + 1, strlen(colon + 1));
    return PITH_OK;
}

/* ---- Files ---- */

/* One name of a path: nothing hidden, nothing that a system takes for a device, drive or
 * wildcard. */
static bool is_safe_part(const char *text, size_t size) {
    if (size == 0 || size > 200 || text[0] == '.' || text[0] == '-' || text[0] == ' ') return false;
    if (text[size - 1] == '.' || text[size - 1] == ' ') return false;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7F || strchr("\\:*?\"<>|", c)) return false;
    }
    return true;
}

bool pith_cli_is_safe_path(const char *path) {
    size_t size = strlen(path), from = 0;
    int n_parts = 0;
    if (size < 6 || size >= PITH_CLI_FILE_LIMIT || strcmp(path + size - 5, ".gguf") != 0)
        return false;
    for (size_t i = 0; i <= size; i++) {
        if (path[i] && path[i] != '/') continue;
        if (!is_safe_part(path + from, i - from) || ++n_parts > 4) return false;
        from = i + 1;
    }
    return true;
}

enum { SPLIT_ENDING = sizeof "-00002-of-00003.gguf" - 1 };

static bool read_five(const char *text, unsigned *out) {
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (!is_digit(text[i])) return false;
        *out = *out * 10 + (unsigned)(text[i] - '0');
    }
    return true;
}

/* "…-00002-of-00003.gguf" */
static bool read_split(const char *name, unsigned *part, unsigned *parts) {
    size_t size = strlen(name);
    const char *end = name + size - SPLIT_ENDING;
    return size > SPLIT_ENDING && end[0] == '-' && read_five(end + 1, part) &&
           strncmp(end + 6, "-of-", 4) == 0 && read_five(end + 10, parts) &&
           strcmp(end + 15, ".gguf") == 0 && *part >= 1 && *part <= *parts;
}

bool pith_cli_is_later_part(const char *name) {
    unsigned part, parts;
    return read_split(name, &part, &parts) && part > 1;
}

bool pith_cli_is_split_pair(const char *first, const char *part) {
    unsigned a, b, n_a, n_b;
    size_t size = strlen(first);
    return size == strlen(part) && read_split(first, &a, &n_a) && read_split(part, &b, &n_b) &&
           n_a == n_b && strncmp(first, part, size - SPLIT_ENDING) == 0;
}

size_t pith_cli_split_count(const char *first) {
    unsigned part, parts;
    return read_split(first, &part, &parts) ? parts : 1;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool pith_cli_is_projector(const char *path) {
    const char *name = base_name(path);
    for (; *name; name++)
        if (pith_cli_same_text("mmproj", 6, name)) return true;
    return false;
}

char *pith_cli_name_stem(const char *path) {
    const char *name = base_name(path);
    unsigned part, parts;
    size_t size = strlen(name);
    if (read_split(name, &part, &parts))
        size -= SPLIT_ENDING;
    else if (size > 5 && strcmp(name + size - 5, ".gguf") == 0)
        size -= 5;
    return pith_copy_text(name, size);
}

/* ---- Quantizations ---- */

static bool is_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}

/* Whether a word that begins like this is a quantization: Q4_K_M, IQ2_XXS, TQ1_0, F16, BF16,
 * MXFP4. */
static bool begins_quant(const char *word, size_t size) {
    static const char *const whole[] = {"F16", "F32", "BF16", "FP16", "FP32", "MXFP4", "NVFP4"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        size_t n = strlen(whole[i]);
        if (size >= n && pith_cli_same_text(whole[i], n, word) && (size == n || word[n] == '_'))
            return true;
    }
    size_t at = size > 1 && strchr("iItT", word[0]) ? 1 : 0;
    return size > at + 1 && small_letter(word[at]) == 'q' && is_digit(word[at + 1]) &&
           (size == at + 2 || word[at + 2] == '_');
}

/* The next word of text[*at ..] that may be a quantization; words also begin after '_'. */
static bool next_quant(const char *text, size_t size, size_t *at, size_t *word_size) {
    for (; *at < size; ++*at) {
        if (*at && is_word(text[*at - 1]) && text[*at - 1] != '_') continue;
        size_t end = *at;
        while (end < size && is_word(text[end])) end++;
        *word_size = end - *at;
        if (begins_quant(text + *at, *word_size)) return true;
    }
    return false;
}

void pith_cli_name_quant(const char *path, char out[PITH_CLI_QUANT_LIMIT]) {
    char *stem = pith_cli_name_stem(path);
    size_t at = 0, n = 0;
    out[0] = 0;
    while (stem && next_quant(stem, strlen(stem), &at, &n)) {
        if (n < PITH_CLI_QUANT_LIMIT) { /* the last one: names of models may hold others */
            for (size_t i = 0; i < n; i++) {
                char c = stem[at + i];
                out[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
            }
            out[n] = 0;
        }
        at += n;
    }
    pith_free(stem);
}

bool pith_cli_name_picks(const char *pick, const char *path) {
    size_t size = strlen(pick);
    if (pith_cli_same_name(pick, path) || pith_cli_same_name(pick, base_name(path))) return true;
    for (const char *at = path; size && *at; at++) { /* a whole word of it: UD-Q4_K_XL too */
        if (at > path && is_word(at[-1]) && at[-1] != '_') continue;
        if (strlen(at) > size && pith_cli_same_text(pick, size, at) && !is_word(at[size]))
            return true;
    }
    return false;
}

/* ---- Addresses ---- */

/* The host and port within an address; size 0: there are none. */
static pith_span host_of(const char *url) {
    const char *from = strstr(url, "://");
    if (!from) return (pith_span){NULL, 0};
    from += 3;
    size_t size = strcspn(from, "/?#");
    for (size_t i = 0; i < size; i++)
        if (from[i] == '@') return (pith_span){from + i + 1, size - i - 1};
    return (pith_span){from, size};
}

void pith_cli_url_origin(const char *url, char *out, size_t capacity) {
    pith_span host = host_of(url);
    size_t scheme = host.size ? (size_t)(strstr(url, "://") - url) + 3 : 0;
    out[0] = 0;
    if (!host.size || scheme + host.size >= capacity) return;
    memcpy(out, url, scheme);
    memcpy(out + scheme, host.data, host.size);
    out[scheme + host.size] = 0;
}

void pith_cli_url_shown(const char *url, char *out, size_t capacity) {
    pith_span host = host_of(url);
    pith_cli_url_origin(url, out, capacity);
    if (!host.size) return;
    const char *path = host.data + host.size;
    size_t used = strlen(out), size = strcspn(path, "?#");
    if (size >= capacity - used) size = capacity - used - 1;
    memcpy(out + used, path, size);
    out[used + size] = 0;
}
