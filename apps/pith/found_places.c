/* SPDX-License-Identifier: Apache-2.0
 * Models that other programs keep on this machine: where, and under which names. They are read in
 * place and never changed.
 *   Hugging Face: $HF_HUB_CACHE, else $HF_HOME/hub, else huggingface/hub in the user's cache;
 *       models--USER--REPO/snapshots/COMMIT/FILE (huggingface.co/docs/hub/local-cache). Of several
 *       commits the one in refs/main counts.
 *   LM Studio: ~/.lmstudio/models, or ~/.cache/lm-studio/models: PUBLISHER/MODEL/FILE
 *       (lmstudio.ai/docs/basics/import-model).
 *   Ollama: $OLLAMA_MODELS, else ~/.ollama/models, else the service's folder:
 *       manifests/HOST/NAMESPACE/MODEL/TAG is JSON whose layer of type
 *       application/vnd.ollama.image.model has the digest of a file in blobs/sha256-DIGEST.
 * Read next: found_models.c. */
#include "base/folder.h"
#include "base/memory.h"
#include "pith/models.h"

#include <string.h>

enum { MANIFEST_LIMIT = 1 << 20, HUB_DEPTH = 5, STUDIO_DEPTH = 2, MANIFEST_DEPTH = 3 };

/* $VARIABLE/below; NULL when the variable is not set. */
static char *below_variable(const char *variable, const char *below) {
    char *value = pith_cli_variable(variable);
    char *path = value && below[0] ? pith_cli_join(value, below) : NULL;
    if (!value || below[0]) {
        pith_free(value);
        return path;
    }
    return value;
}

static char *below_home(const char *below) {
    char *path = below_variable("HOME", below);
    return path ? path : below_variable("USERPROFILE", below);
}

static bool is_model_file(const char *path) {
    size_t size = strlen(path);
    return size > 5 && strcmp(path + size - 5, ".gguf") == 0 && !pith_cli_is_later_part(path);
}

/* ---- Hugging Face ---- */

typedef struct hub_search {
    pith_cli_found_list *list;
    char *root;
    char *snapshots;
    char repo[PITH_CLI_REPO_LIMIT];
    char commit[65]; /* of refs/main */
} hub_search;

/* "models--user--repo" -> "user/repo" */
static bool read_repo(const char *name, char out[PITH_CLI_REPO_LIMIT]) {
    const char *user = name + 8, *dashes = NULL;
    if (strncmp(name, "models--", 8) != 0 || strlen(user) >= PITH_CLI_REPO_LIMIT) return false;
    dashes = strstr(user, "--");
    if (!dashes || dashes == user || !dashes[2]) return false;
    size_t n = (size_t)(dashes - user);
    memcpy(out, user, n);
    out[n] = '/';
    memcpy(out + n + 1, dashes + 2, strlen(dashes + 2) + 1);
    return true;
}

static void read_main_commit(const char *folder, char out[65]) {
    char *path = pith_cli_join(folder, "refs/main");
    pith_buffer text = {0};
    out[0] = 0;
    if (path && pith_cli_try_read(path) == 0 && !pith_cli_is_device(path) &&
        pith_cli_read_file(path, 64, &text, NULL) && text.data) {
        size_t n = strcspn(text.data, "\r\n");
        memcpy(out, text.data, n);
        out[n] = 0;
    }
    pith_buffer_deinit(&text);
    pith_free(path);
}

/* The same file of another commit, or NULL. */
static pith_cli_found *find_same(pith_cli_found_list *list, const char *repo, const char *file) {
    for (size_t i = list->n; i-- > 0;) {
        pith_cli_found *item = &list->items[i];
        if (item->origin != PITH_CLI_ORIGIN_HUB || strcmp(item->repo, repo) != 0) return NULL;
        if (strcmp(item->file, file) == 0) return item;
    }
    return NULL;
}

static bool add_snapshot(void *user, const char *path) {
    hub_search *search = user;
    const char *file = strchr(path, '/');
    if (!file || !is_model_file(path)) return true;
    char *whole = pith_cli_join(search->snapshots, path);
    pith_cli_found *same = find_same(search->list, search->repo, file + 1);
    bool is_main = strncmp(path, search->commit, (size_t)(file - path)) == 0;
    pith_cli_found item = {PITH_CLI_ORIGIN_HUB, NULL, whole, search->repo, (char *)file + 1};
    bool is_there = whole && pith_cli_file_bytes(whole) != UINT64_MAX;
    if (is_there && !same) {
        pith_cli_found_add(search->list, &item);
    } else if (is_there && same && is_main) {
        pith_free(same->path);
        same->path = whole;
        return true;
    }
    pith_free(whole);
    return !search->list->failed;
}

static bool add_repo(void *user, const char *name) {
    hub_search *search = user;
    if (!read_repo(name, search->repo)) return true;
    char *folder = pith_cli_join(search->root, name);
    search->snapshots = folder ? pith_cli_join(folder, "snapshots") : NULL;
    if (search->snapshots) {
        read_main_commit(folder, search->commit);
        (void)pith_cli_walk(search->snapshots, HUB_DEPTH, add_snapshot, search);
    }
    pith_free(search->snapshots);
    pith_free(folder);
    return true;
}

void pith_cli_find_in_hub(pith_cli_found_list *list) {
    static const char *const places[][2] = {{"HF_HUB_CACHE", ""},
                                            {"HUGGINGFACE_HUB_CACHE", ""},
                                            {"HF_HOME", "hub"},
                                            {"XDG_CACHE_HOME", "huggingface/hub"}};
    hub_search search = {.list = list};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !search.root; i++)
        search.root = below_variable(places[i][0], places[i][1]);
    if (!search.root) search.root = below_home(".cache/huggingface/hub");
    if (search.root) (void)pith_cli_each_name(search.root, add_repo, &search);
    pith_free(search.root);
}

/* ---- LM Studio ---- */

typedef struct studio_search {
    pith_cli_found_list *list;
    const char *root;
} studio_search;

static bool add_studio(void *user, const char *path) {
    studio_search *search = user;
    const char *model = strchr(path, '/'), *file = model ? strchr(model + 1, '/') : NULL;
    if (!file || !is_model_file(path) || pith_cli_is_projector(path)) return true;
    char *whole = pith_cli_join(search->root, path);
    char *repo = pith_copy_text(path, (size_t)(file - path));
    pith_cli_found item = {PITH_CLI_ORIGIN_LM_STUDIO, NULL, whole, repo, (char *)file + 1};
    if (whole && repo) pith_cli_found_add(search->list, &item);
    pith_free(whole);
    pith_free(repo);
    return true;
}

void pith_cli_find_in_lm_studio(pith_cli_found_list *list) {
    static const char *const places[] = {".lmstudio/models", ".cache/lm-studio/models"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *root = below_home(places[i]);
        studio_search search = {list, root};
        if (root && pith_folder_exists(root))
            (void)pith_cli_walk(root, STUDIO_DEPTH, add_studio, &search);
        pith_free(root);
    }
}

/* ---- Ollama ---- */

typedef struct ollama_search {
    pith_cli_found_list *list;
    char *root, *manifests;
} ollama_search;

/* blobs/sha256-DIGEST of a manifest's model layer; NULL: there is none. */
static char *blob_of(const ollama_search *search, const char *manifest) {
    pith_buffer text = {0}, path = {0};
    json_t *json = NULL, *layer;
    size_t i;
    char *found = NULL;
    if (!pith_cli_is_device(manifest) && pith_cli_read_file(manifest, MANIFEST_LIMIT, &text, NULL))
        json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    json_array_foreach(json_object_get(json, "layers"), i, layer) {
        const char *type = json_string_value(json_object_get(layer, "mediaType"));
        const char *digest = json_string_value(json_object_get(layer, "digest"));
        if (!type || !digest || strcmp(type, "application/vnd.ollama.image.model") != 0) continue;
        if (strncmp(digest, "sha256:", 7) != 0 || !pith_cli_is_digest(digest + 7)) continue;
        pith_buffer_append_format(&path, "%s/blobs/sha256-%s", search->root, digest + 7);
        if (!path.failed && pith_cli_file_bytes(path.data) != UINT64_MAX)
            found = pith_copy_text(path.data, path.size);
        break;
    }
    json_decref(json);
    pith_buffer_deinit(&text);
    pith_buffer_deinit(&path);
    return found;
}

/* registry.ollama.ai/library/qwen2.5/0.5b -> ollama:qwen2.5:0.5b; other parts stay. */
static void append_ollama_name(pith_buffer *out, const char *path, const char *tag) {
    static const char *const usual[] = {"registry.ollama.ai/", "ollama.com/", "library/"};
    size_t size = (size_t)(tag - path) - 1;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        size_t n = strlen(usual[i]);
        if (size <= n || strncmp(path, usual[i], n) != 0) continue;
        path += n;
        size -= n;
    }
    pith_buffer_append_text(out, "ollama:");
    pith_buffer_append(out, path, size);
    pith_buffer_append_format(out, ":%s", tag);
}

/* hf.co/user/repo/Q4_K_M: Ollama's name for a model of the hub. NULL: it is none. */
static char *hub_repo(const char *path, const char *tag) {
    static const char *const hosts[] = {"hf.co/", "huggingface.co/"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        size_t n = strlen(hosts[i]);
        if (strncmp(path, hosts[i], n) == 0)
            return pith_copy_text(path + n, (size_t)(tag - path) - n - 1);
    }
    return NULL;
}

static bool add_manifest(void *user, const char *path) {
    ollama_search *search = user;
    const char *tag = strrchr(path, '/');
    if (!tag) return true;
    char *manifest = pith_cli_join(search->manifests, path);
    char *blob = manifest ? blob_of(search, manifest) : NULL;
    char *repo = hub_repo(path, tag + 1);
    pith_buffer name = {0};
    append_ollama_name(&name, path, tag + 1);
    pith_cli_found item = {PITH_CLI_ORIGIN_OLLAMA, name.data, blob, repo, (char *)tag + 1};
    if (blob && !name.failed) pith_cli_found_add(search->list, &item);
    pith_buffer_deinit(&name);
    pith_free(repo);
    pith_free(blob);
    pith_free(manifest);
    return true;
}

void pith_cli_find_in_ollama(pith_cli_found_list *list) {
    static const char service[] = "/usr/share/ollama/.ollama/models";
    char *root = below_variable("OLLAMA_MODELS", "");
    if (!root) root = below_home(".ollama/models");
    if (root && !pith_folder_exists(root)) {
        pith_free(root);
        root = pith_copy_text(service, sizeof service - 1);
    }
    ollama_search search = {list, root, root ? pith_cli_join(root, "manifests") : NULL};
    if (search.manifests)
        (void)pith_cli_walk(search.manifests, MANIFEST_DEPTH, add_manifest, &search);
    pith_free(search.manifests);
    pith_free(root);
}
