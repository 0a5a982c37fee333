/* SPDX-License-Identifier: Apache-2.0
 * The models that are on this machine, under the names that -m takes: those in pith's own folder
 * here, those of others in found_places.c. Nothing is copied or moved.
 * What lies in the models folder:
 *     NAME.gguf                     put there by somebody, or pulled from an address
 *     hf/USER/REPO/FILE.gguf        pulled from the hub
 *     FILE.gguf.json                record of a pulled model (pulled.c)
 *     .pull/KEY.part, .json, .lock  what is being pulled (download.c)
 * Invariant: the list is sorted by origin, then by name; a name that two models would share becomes
 * the name of the file. Read next: model_name.c. */
#include "base/memory.h"
#include "pith/models.h"

#include <stdlib.h>
#include <string.h>

enum { OWN_DEPTH = 6, STATE_LIMIT = 1 << 20 };

const char *pith_cli_origin_text(pith_cli_origin origin) {
    static const char *const texts[] = {"pith",      "models folder", "Hugging Face cache",
                                        "LM Studio", "Ollama",        "partly pulled"};
    return texts[origin];
}

static char *copy(const char *text) {
    return text ? pith_copy_text(text, strlen(text)) : NULL;
}

static void release(pith_cli_found *item) {
    pith_free(item->name);
    pith_free(item->path);
    pith_free(item->repo);
    pith_free(item->file);
}

static bool make_room(pith_cli_found_list *list) {
    if (list->n < list->capacity) return true;
    size_t capacity = list->capacity ? 2 * list->capacity : 32;
    pith_cli_found *grown = pith_realloc(list->items, capacity * sizeof *grown);
    if (!grown) return false;
    list->items = grown;
    list->capacity = capacity;
    return true;
}

/* "hf:user/repo:Q4_K_M", or with the file where that is no name. */
static char *hub_name(const pith_cli_found *item, bool by_file) {
    char quant[PITH_CLI_QUANT_LIMIT];
    pith_buffer name = {0};
    pith_cli_name_quant(item->file, quant);
    pith_buffer_append_format(&name, "%s:%s:%s",
                              item->origin == PITH_CLI_ORIGIN_LM_STUDIO ? "lmstudio" : "hf",
                              item->repo, quant[0] && !by_file ? quant : item->file);
    char *text = name.failed ? NULL : pith_copy_text(name.data, name.size);
    pith_buffer_deinit(&name);
    return text;
}

/* What turns pictures into vectors for a model beside it: none by itself. */
static bool is_projector(const pith_cli_found *item) {
    const char *name = item->path ? item->path : "";
    for (const char *at = name; *at; at++)
        if (*at == '/' || *at == '\\') name = at + 1;
    return strstr(name, "mmproj") != NULL;
}

void pith_cli_found_add(pith_cli_found_list *list, const pith_cli_found *item) {
    if (is_projector(item)) return;
    pith_cli_found added = {item->origin, NULL, copy(item->path), copy(item->repo),
                            copy(item->file)};
    bool whole = added.path && added.file && (added.repo || !item->repo);
    if (whole) added.name = item->name ? copy(item->name) : hub_name(&added, false);
    if (whole && added.name && make_room(list)) {
        list->items[list->n++] = added;
        return;
    }
    release(&added);
    list->failed = true;
}

void pith_cli_found_deinit(pith_cli_found_list *list) {
    for (size_t i = 0; i < list->n; i++) release(&list->items[i]);
    pith_free(list->items);
    *list = (pith_cli_found_list){0};
}

/* ---- The models folder ---- */

typedef struct own_search {
    pith_cli_found_list *list;
    const char *folder;
} own_search;

/* hf/USER/REPO/FILE: splits the path; the file is path + *file. */
static bool read_hub_path(const char *path, char repo[PITH_CLI_REPO_LIMIT], size_t *file) {
    const char *user = path + 3, *slash = NULL;
    if (strncmp(path, "hf/", 3) != 0) return false;
    slash = strchr(user, '/');
    slash = slash ? strchr(slash + 1, '/') : NULL;
    if (!slash || (size_t)(slash - user) >= PITH_CLI_REPO_LIMIT) return false;
    memcpy(repo, user, (size_t)(slash - user));
    repo[slash - user] = 0;
    *file = (size_t)(slash + 1 - path);
    return true;
}

static bool add_own(void *user, const char *path) {
    own_search *search = user;
    size_t size = strlen(path), file = 0;
    char repo[PITH_CLI_REPO_LIMIT];
    bool is_hub = read_hub_path(path, repo, &file);
    if (size < 6 || strcmp(path + size - 5, ".gguf") != 0 || pith_cli_is_later_part(path))
        return true;
    if (!is_hub && strchr(path, '/')) return true;
    char *whole = pith_cli_join(search->folder, path), *record = NULL;
    char *name = is_hub ? NULL : pith_copy_text(path, size - 5);
    if (whole) record = pith_cli_pulled_path(whole);
    bool is_pulled = record && pith_cli_file_bytes(record) != UINT64_MAX;
    pith_cli_found item = {is_pulled ? PITH_CLI_ORIGIN_PULLED
                           : is_hub  ? PITH_CLI_ORIGIN_PARTIAL
                                     : PITH_CLI_ORIGIN_FOLDER,
                           name, whole, is_hub ? repo : NULL, (char *)path + file};
    if (record && (is_hub || name)) pith_cli_found_add(search->list, &item);
    search->list->failed = search->list->failed || !record || (!is_hub && !name);
    pith_free(name);
    pith_free(record);
    pith_free(whole);
    return !search->list->failed;
}

/* The state of a download names the model it belongs to. */
static bool add_partial(void *user, const char *name) {
    own_search *search = user;
    size_t size = strlen(name);
    pith_buffer text = {0};
    json_t *json = NULL;
    if (size < 6 || strcmp(name + size - 5, ".json") != 0) return true;
    char *path = pith_cli_join(search->folder, name);
    if (path && !pith_cli_is_device(path) && pith_cli_read_file(path, STATE_LIMIT, &text, NULL))
        json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    const char *model = json_string_value(json_object_get(json, "name"));
    const char *file = json_string_value(json_object_get(json, "file"));
    pith_cli_found item = {PITH_CLI_ORIGIN_PARTIAL, (char *)model, path, NULL, (char *)file};
    if (model && file) pith_cli_found_add(search->list, &item);
    json_decref(json);
    pith_buffer_deinit(&text);
    pith_free(path);
    return true;
}

static void find_own(pith_cli_found_list *list) {
    char *models = pith_cli_models_folder(), *pull = NULL;
    own_search search = {list, models};
    if (models && !pith_cli_walk(models, OWN_DEPTH, add_own, &search)) list->failed = true;
    if (models) pull = pith_cli_join(models, ".pull");
    search.folder = pull;
    if (pull) (void)pith_cli_each_name(pull, add_partial, &search);
    list->failed = list->failed || (models && !pull);
    pith_free(pull);
    pith_free(models);
}

static int compare_found(const void *a, const void *b) {
    const pith_cli_found *x = a, *y = b;
    if (x->origin != y->origin) return x->origin < y->origin ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->file, y->file);
}

static bool shares_name(const pith_cli_found_list *list, size_t i, size_t other) {
    const pith_cli_found *a = &list->items[i];
    return other < list->n && list->items[other].origin == a->origin && a->repo &&
           strcmp(list->items[other].name, a->name) == 0;
}

/* In a sorted list those that share a name are neighbours. */
static void part_names(pith_cli_found_list *list) {
    bool *shared = pith_alloc_zero(list->n + 1, sizeof *shared);
    if (!shared) list->failed = true;
    for (size_t i = 0; shared && i < list->n; i++)
        shared[i] = shares_name(list, i, i + 1) || (i && shares_name(list, i, i - 1));
    for (size_t i = 0; shared && i < list->n; i++) {
        char *name = shared[i] ? hub_name(&list->items[i], true) : NULL;
        if (!name) continue;
        pith_free(list->items[i].name);
        list->items[i].name = name;
    }
    pith_free(shared);
}

void pith_cli_find_models(pith_cli_found_list *list) {
    *list = (pith_cli_found_list){0};
    find_own(list);
    pith_cli_find_in_hub(list);
    pith_cli_find_in_lm_studio(list);
    pith_cli_find_in_ollama(list);
    if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, compare_found);
    part_names(list);
}

/* ---- Looking a name up ---- */

/* Whether the plain word means this one: the file without ending, or the name without "ollama:". */
static bool is_called(const pith_cli_found *item, const char *word) {
    const char *colon = strchr(item->name, ':');
    char *stem = pith_cli_name_stem(item->file);
    bool same = stem && item->origin != PITH_CLI_ORIGIN_OLLAMA && pith_cli_same_name(stem, word);
    pith_free(stem);
    if (same || !colon) return same;
    size_t size = strlen(word);
    if (pith_cli_same_name(colon + 1, word)) return true;
    return item->origin == PITH_CLI_ORIGIN_OLLAMA && pith_cli_same_text(word, size, colon + 1) &&
           strcmp(colon + 1 + size, ":latest") == 0;
}

static bool is_meant(const pith_cli_found *item, const char *name, const pith_cli_hub_name *hub) {
    if (item->origin == PITH_CLI_ORIGIN_PARTIAL) return false;
    if (!hub) return is_called(item, name);
    return item->repo && pith_cli_same_name(item->repo, hub->repo) &&
           !pith_cli_is_projector(item->file) &&
           (!hub->pick[0] || pith_cli_name_picks(hub->pick, item->file));
}

/* Without a quantization, the one that most people take. */
static const pith_cli_found *usual_choice(const pith_cli_found_list *list, const size_t *choices,
                                          size_t n) {
    for (size_t i = 0; i < n; i++) {
        char quant[PITH_CLI_QUANT_LIMIT];
        pith_cli_name_quant(list->items[choices[i]].file, quant);
        if (strcmp(quant, "Q4_K_M") == 0) return &list->items[choices[i]];
    }
    return NULL;
}

/* A file of the catalogue that script/bootstrap fetched. */
static const pith_cli_found *find_fetched(const pith_cli_found_list *list,
                                          const pith_cli_catalogue_entry *entry) {
    for (size_t i = 0; entry->stem && i < list->n; i++)
        if (list->items[i].origin == PITH_CLI_ORIGIN_FOLDER &&
            strcmp(list->items[i].name, entry->stem) == 0 &&
            pith_cli_file_bytes(list->items[i].path) == entry->bytes)
            return &list->items[i];
    return NULL;
}

const pith_cli_found *pith_cli_found_match(const pith_cli_found_list *list, const char *name,
                                           size_t *choices, size_t limit, size_t *n) {
    const pith_cli_catalogue_entry *entry = pith_cli_catalogue_find(name);
    pith_cli_hub_name hub;
    *n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].origin != PITH_CLI_ORIGIN_PARTIAL &&
            pith_cli_same_name(list->items[i].name, name))
            return &list->items[i];
    if (entry) name = entry->hub;
    bool is_hub = pith_cli_is_hub_name(name);
    if (is_hub && pith_cli_hub_name_read(name, &hub, NULL) != PITH_OK) return NULL;
    pith_cli_origin first = PITH_CLI_ORIGIN_PARTIAL;
    for (size_t i = 0; i < list->n; i++) {
        const pith_cli_found *item = &list->items[i];
        if (!is_meant(item, name, is_hub ? &hub : NULL)) continue;
        if (*n == 0) first = item->origin;
        if (item->origin != first) break; /* the origins stand in order of preference */
        if (*n < limit) choices[*n] = i;
        ++*n;
    }
    if (*n == 0) return entry ? find_fetched(list, entry) : NULL;
    size_t shown = *n < limit ? *n : limit;
    const pith_cli_found *usual =
        is_hub && !hub.pick[0] ? usual_choice(list, choices, shown) : NULL;
    if (usual || *n == 1) {
        *n = 1;
        return usual ? usual : &list->items[choices[0]];
    }
    return NULL;
}
