/* SPDX-License-Identifier: Apache-2.0
 * From a name to files: a short name is one of the catalogue, a name of the hub is held against the
 * list of its repository, an address is taken as it is. All parts of a split model are planned.
 * Invariant: every target lies in the models folder: hf/USER/REPO/FILE or FILE.gguf.
 * Read next: pull.c. */
#include "pith/pull_plan.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { PART_LIMIT = 999 };

void pith_cli_plan_deinit(pith_cli_plan *plan) {
    for (size_t i = 0; i < plan->n; i++) {
        pith_free(plan->files[i].url);
        pith_free(plan->files[i].target);
        pith_free(plan->files[i].file);
    }
    pith_free(plan->files);
    pith_free(plan->name);
    pith_free(plan->source);
    *plan = (pith_cli_plan){0};
}

static char *copy(const char *text) {
    return pith_copy_text(text, strlen(text));
}

/* below: folders below the models folder, "" for none. Takes over `url`. */
static bool add_file(pith_cli_plan *plan, char *url, const char *below, const char *file) {
    char *models = pith_cli_models_folder();
    char *folder = models && below[0] ? pith_cli_join(models, below) : NULL;
    pith_cli_plan_file *grown = pith_realloc(plan->files, (plan->n + 1) * sizeof *grown);
    if (grown) plan->files = grown;
    pith_cli_plan_file added = {.url = url, .file = copy(file)};
    if (models && (folder || !below[0]))
        added.target = pith_cli_join(folder ? folder : models, file);
    pith_free(models);
    pith_free(folder);
    if (grown && url && added.target && added.file) {
        plan->files[plan->n++] = added;
        return true;
    }
    pith_free(url);
    pith_free(added.target);
    pith_free(added.file);
    return false;
}

/* ---- Hub ---- */

static bool is_choice(const pith_cli_hub_file *file) {
    return !pith_cli_is_later_part(file->path) && !pith_cli_is_projector(file->path);
}

/* How many files the name means; *index: the last of them. The whole path means one alone. */
static size_t count_choices(const pith_cli_hub_list *list, const char *pick, size_t *index) {
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (!is_choice(&list->items[i])) continue;
        if (pick[0] && !pith_cli_name_picks(pick, list->items[i].path)) continue;
        *index = i;
        n++;
        if (pick[0] && strcmp(pick, list->items[i].path) == 0) return 1;
    }
    return n;
}

/* What to give after hf:USER/REPO: for this file: its quantization where no other has it. */
static void short_pick(const pith_cli_hub_list *list, size_t index, pith_buffer *out) {
    char quant[PITH_CLI_QUANT_LIMIT];
    size_t last = 0;
    pith_cli_name_quant(list->items[index].path, quant);
    bool alone = quant[0] && count_choices(list, quant, &last) == 1 && last == index;
    pith_buffer_append_text(out, alone ? quant : list->items[index].path);
}

static pith_status fail_choices(const pith_cli_hub_list *list, const pith_cli_hub_name *hub,
                                size_t n, pith_error *error) {
    pith_buffer choices = {0};
    size_t index = 0, all = count_choices(list, "", &index);
    const char *pick = n > 0 ? hub->pick : ""; /* none fits: show what there is */
    if (all == 0)
        return pith_fail(error, PITH_ERROR_NOT_FOUND,
                         "hf:%s holds no GGUF file; many models have a repository of GGUF files "
                         "beside them, whose name ends with -GGUF",
                         hub->repo);
    for (size_t i = 0; i < list->n && choices.size < 400; i++) {
        if (!is_choice(&list->items[i])) continue;
        if (pick[0] && !pith_cli_name_picks(pick, list->items[i].path)) continue;
        pith_buffer_append_text(&choices, choices.size ? ", " : "");
        short_pick(list, i, &choices);
    }
    fprintf(stderr, "note: hf:%s has ", hub->repo);
    pith_cli_print_clean(stderr, choices.data ? choices.data : "", choices.size, 400);
    fputc('\n', stderr);
    pith_buffer_deinit(&choices);
    if (n == 0)
        return pith_fail(error, PITH_ERROR_NOT_FOUND, "hf:%s has no '%.80s'; say one that it has",
                         hub->repo, hub->pick);
    return pith_fail(error, PITH_ERROR_ARGUMENT,
                     "hf:%s has %zu models that are meant; say which: hf:%s:WHICH", hub->repo, n,
                     hub->repo);
}

static pith_status choose(const pith_cli_hub_list *list, const pith_cli_hub_name *hub,
                          size_t *index, pith_error *error) {
    size_t n = count_choices(list, hub->pick, index), usual = 0;
    if (n == 1) return PITH_OK;
    if (n > 1 && !hub->pick[0] && count_choices(list, "Q4_K_M", &usual) == 1) {
        *index = usual;
        return PITH_OK;
    }
    return fail_choices(list, hub, n, error);
}

static pith_status add_hub_file(pith_cli_plan *plan, const pith_cli_hub_file *file,
                                const char *endpoint, pith_error *error) {
    pith_buffer below = {0};
    pith_buffer_append_format(&below, "hf/%s", plan->hub.repo);
    char *url = pith_cli_hub_address(endpoint, plan->hub.repo, file->path);
    bool added = !below.failed && add_file(plan, url, below.data, file->path);
    pith_buffer_deinit(&below);
    if (!added) return pith_fail_memory(error, "a plan", 0);
    plan->files[plan->n - 1].bytes = file->bytes;
    memcpy(plan->files[plan->n - 1].digest, file->digest, sizeof file->digest);
    return PITH_OK;
}

/* The chosen file and, of a split model, all others. */
static pith_status add_hub_files(pith_cli_plan *plan, const pith_cli_hub_list *list, size_t index,
                                 pith_error *error) {
    const char *first = list->items[index].path;
    char *endpoint = pith_cli_hub_endpoint(error);
    pith_status status = endpoint ? PITH_OK : PITH_ERROR_ARGUMENT;
    for (size_t i = index; i < list->n && status == PITH_OK; i++)
        if (i == index || pith_cli_is_split_pair(first, list->items[i].path))
            status = add_hub_file(plan, &list->items[i], endpoint, error);
    pith_free(endpoint);
    if (status) return status;
    size_t wanted = pith_cli_split_count(first);
    if (plan->n == wanted) return PITH_OK;
    return pith_fail(error, PITH_ERROR_NOT_FOUND, "hf:%s has %zu of the %zu parts of %s",
                     plan->hub.repo, plan->n, wanted, first);
}

static pith_status plan_hub(const char *word, int32_t timeout, pith_cli_plan *plan,
                            pith_error *error) {
    pith_cli_hub_list list = {0};
    pith_buffer name = {0};
    size_t index = 0;
    pith_status status = pith_cli_hub_name_read(word, &plan->hub, error);
    if (status == PITH_OK) status = pith_cli_hub_list_fetch(plan->hub.repo, timeout, &list, error);
    if (status == PITH_OK) status = choose(&list, &plan->hub, &index, error);
    if (status == PITH_OK) status = add_hub_files(plan, &list, index, error);
    if (status == PITH_OK) {
        pith_buffer_append_format(&name, "hf:%s:", plan->hub.repo);
        short_pick(&list, index, &name);
        plan->name = name.failed ? NULL : copy(name.data);
        plan->source = name.failed ? NULL : copy(name.data);
        plan->repo = plan->hub.repo;
        if (!plan->name || !plan->source) status = pith_fail_memory(error, "a name", name.size);
    }
    pith_buffer_deinit(&name);
    pith_cli_hub_list_deinit(&list);
    return status;
}

/* ---- Addresses ---- */

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The last name of an address's path, with its escapes resolved. */
static void append_file_name(pith_buffer *out, const char *url) {
    size_t end = strcspn(url, "?#"), from = end;
    while (from > 0 && url[from - 1] != '/') from--;
    for (size_t i = from; i < end; i++) {
        char c = url[i];
        if (c == '%' && i + 2 < end && hex_value(url[i + 1]) >= 0 && hex_value(url[i + 2]) >= 0) {
            c = (char)(hex_value(url[i + 1]) * 16 + hex_value(url[i + 2]));
            i += 2;
        }
        pith_buffer_append(out, &c, 1);
    }
}

/* https://HUB/USER/REPO, or .../blob/main/FILE or .../resolve/main/FILE of the hub, as its pages
 * give them: a name of the hub. false: another address. */
static bool read_hub_page(const char *url, pith_buffer *out) {
    char origin[300], hub[300];
    char *endpoint = pith_cli_hub_endpoint(NULL);
    pith_cli_url_origin(url, origin, sizeof origin);
    pith_cli_url_origin(endpoint ? endpoint : "", hub, sizeof hub);
    pith_free(endpoint);
    if (!origin[0] || strcmp(origin, hub) != 0) return false;
    const char *user = url + strlen(origin), *repo = NULL, *rest = NULL;
    size_t size = strcspn(user, "?#");
    if (*user == '/') repo = memchr(++user, '/', --size);
    if (!repo) return false;
    size_t repo_size = strcspn(repo + 1, "/?#");
    rest = repo + 1 + repo_size;
    pith_buffer_append_text(out, "hf:");
    pith_buffer_append(out, user, (size_t)(rest - user));
    if (*rest != '/' || !rest[1]) return !out->failed;
    size_t skip = strncmp(rest, "/blob/main/", 11) == 0      ? 11
                  : strncmp(rest, "/resolve/main/", 14) == 0 ? 14
                                                             : 0;
    if (!skip) return false;
    pith_buffer_append_text(out, ":");
    pith_buffer_append(out, rest + skip, size - (size_t)(rest + skip - user));
    return !out->failed && !strchr(out->data, '%');
}

/* The address of part `number` of a split model whose first address this is; NULL: no memory. */
static char *part_address(const char *url, unsigned number) {
    char digits[8];
    char *text = copy(url), *at = NULL;
    for (char *next = text; next && (next = strstr(next, "-00001-of-")); next++) at = next;
    snprintf(digits, sizeof digits, "%05u", number);
    if (at) memcpy(at + 1, digits, 5);
    return text;
}

static bool add_address(pith_cli_plan *plan, const char *url, const char *file) {
    size_t parts = pith_cli_split_count(file);
    bool added = parts <= PART_LIMIT;
    for (size_t i = 1; i <= parts && added; i++) {
        char *name = part_address(file, (unsigned)i);
        added = name && add_file(plan, part_address(url, (unsigned)i), "", name);
        pith_free(name);
    }
    return added;
}

static pith_status plan_address(const char *url, const char *as, pith_cli_plan *plan,
                                pith_error *error) {
    char shown[1024], origin[300];
    pith_buffer file = {0};
    pith_cli_url_shown(url, shown, sizeof shown);
    pith_cli_url_origin(url, origin, sizeof origin);
    if (!origin[0])
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "'%.*s' is followed by no host: an address is https://HOST/PATH",
                         (int)(strstr(url, "://") + 3 - url), url);
    if (memchr(url, '@', strcspn(url, "?#")))
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "%.150s: an address has a host and no name or password before it", shown);
    if (as)
        pith_buffer_append_text(&file, as);
    else
        append_file_name(&file, url);
    if (as && !(file.size > 5 && strcmp(file.data + file.size - 5, ".gguf") == 0))
        pith_buffer_append_text(&file, ".gguf");
    pith_status status = PITH_OK;
    bool plain = file.data && strlen(file.data) == file.size && pith_cli_is_safe_path(file.data) &&
                 !strchr(file.data, '/');
    if (!plain)
        status = pith_fail(error, PITH_ERROR_ARGUMENT,
                           "'%.100s' cannot be the name of a model's file here; choose one with "
                           "--name NAME",
                           file.data ? file.data : "");
    else if (pith_cli_is_later_part(file.data))
        status = pith_fail(error, PITH_ERROR_ARGUMENT,
                           "%.100s is a later part of a split model; give the address of the first",
                           file.data);
    else if (!add_address(plan, url, file.data))
        status = pith_fail_memory(error, "a plan", 0);
    plan->name = status == PITH_OK ? pith_copy_text(file.data, file.size - 5) : NULL;
    plan->source = copy(shown);
    pith_buffer_deinit(&file);
    if (status == PITH_OK && (!plan->name || !plan->source))
        status = pith_fail_memory(error, "a name", 0);
    return status;
}

static pith_status plan_word(const char *word, const char *as, int32_t timeout, pith_cli_plan *plan,
                             pith_error *error) {
    const pith_cli_catalogue_entry *entry = pith_cli_catalogue_find(word);
    pith_buffer page = {0};
    pith_status status;
    bool is_web = strncmp(word, "https://", 8) == 0 || strncmp(word, "http://", 7) == 0;
    if (entry) {
        plan->licence = entry->licence;
        status = plan_hub(entry->hub, timeout, plan, error);
        if (status == PITH_OK && entry->digest)
            memcpy(plan->files[0].digest, entry->digest, sizeof plan->files[0].digest);
        if (status == PITH_OK) plan->files[0].bytes = entry->bytes;
        return status;
    }
    if (pith_cli_is_hub_name(word)) return plan_hub(word, timeout, plan, error);
    if (!is_web)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "'%.100s' is no model to pull: give hf:USER/REPO:QUANTIZATION, an address "
                         "(https://...), or a short name of `pith pull --catalogue`",
                         word);
    if (!as && read_hub_page(word, &page))
        status = plan_hub(page.data, timeout, plan, error);
    else
        status = plan_address(word, as, plan, error);
    pith_buffer_deinit(&page);
    return status;
}

pith_status pith_cli_plan_make(const char *word, const char *as, int32_t timeout,
                               pith_cli_plan *out, pith_error *error) {
    *out = (pith_cli_plan){0};
    pith_status status = plan_word(word, as, timeout, out, error);
    if (status) pith_cli_plan_deinit(out);
    return status;
}
