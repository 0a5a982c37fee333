/* SPDX-License-Identifier: Apache-2.0
 * Models that are on this machine: their names, where they lie, what pith knows of those that it
 * pulled. One section a file. Nothing here needs a network.
 * Read next: found_models.c. */
#ifndef PITH_APPS_PITH_MODELS_H
#define PITH_APPS_PITH_MODELS_H

#include "pith/cli.h"
#include "pith/part_file.h"

/* ---- Names (model_name.c) ---- */
enum { PITH_CLI_REPO_LIMIT = 200, PITH_CLI_FILE_LIMIT = 512, PITH_CLI_QUANT_LIMIT = 32 };

/* hf:user/repo, hf:user/repo:Q4_K_M or hf:user/repo:path/in/repo.gguf */
typedef struct pith_cli_hub_name {
    char repo[PITH_CLI_REPO_LIMIT]; /* "user/repo" */
    char pick[PITH_CLI_FILE_LIMIT]; /* a quantization or a file; "": none */
} pith_cli_hub_name;
/* PITH_ERROR_ARGUMENT with a sentence for a name that is none. */
pith_status pith_cli_hub_name_read(const char *text, pith_cli_hub_name *out, pith_error *error);
bool pith_cli_is_hub_name(const char *text); /* begins with hf: */
/* Compares `size` letters, large and small alike; false when text is shorter. */
bool pith_cli_same_text(const char *text, size_t size, const char *other);
bool pith_cli_same_name(const char *a, const char *b); /* the whole, large and small alike */
bool pith_cli_is_digest(const char *text);             /* 64 small hexadecimal digits */
/* A relative path of plain names that ends with .gguf: no "..", no folder above, no drive, nothing
 * hidden, no control characters. */
bool pith_cli_is_safe_path(const char *path);
bool pith_cli_is_later_part(const char *name); /* NAME-00002-of-00003.gguf: not the first */
bool pith_cli_is_split_pair(const char *first, const char *part); /* of one split model */
size_t pith_cli_split_count(const char *first); /* files of the model: 1 where it is not split */
bool pith_cli_is_projector(const char *path);   /* mmproj: belongs to a model, is none */
/* The quantization that a file's name tells ("Q4_K_M"), in capitals; "" when it tells none. */
void pith_cli_name_quant(const char *path, char out[PITH_CLI_QUANT_LIMIT]);
/* Whether `pick` means this file of a repository: its path, its name, or its quantization. */
bool pith_cli_name_picks(const char *pick, const char *path);
/* The file's name without folders, .gguf and -00001-of-00003. NULL without memory. */
char *pith_cli_name_stem(const char *path);
/* "scheme://host[:port]" of an address; "" when it has none, or does not fit. */
void pith_cli_url_origin(const char *url, char *out, size_t capacity);
/* The address as it may be shown and kept: without password, query and fragment, cut to fit. */
void pith_cli_url_shown(const char *url, char *out, size_t capacity);

/* ---- Short names (catalogue.c) ---- */
typedef struct pith_cli_catalogue_entry {
    const char *name, *hub; /* "smollm2-135m", "hf:user/repo:file.gguf" */
    const char *about, *licence;
    uint64_t bytes;
    const char *digest; /* SHA-256; NULL: the server's is taken */
    const char *stem;   /* as script/bootstrap calls the file in the models folder; NULL: not */
} pith_cli_catalogue_entry;
const pith_cli_catalogue_entry *pith_cli_catalogue_at(size_t index); /* NULL past the end */
const pith_cli_catalogue_entry *pith_cli_catalogue_find(const char *name);

/* ---- What is on this machine (found_models.c) ---- */
typedef enum pith_cli_origin {
    PITH_CLI_ORIGIN_PULLED, /* by pith */
    PITH_CLI_ORIGIN_FOLDER, /* put into the models folder by somebody */
    PITH_CLI_ORIGIN_HUB,    /* Hugging Face's cache */
    PITH_CLI_ORIGIN_LM_STUDIO,
    PITH_CLI_ORIGIN_OLLAMA,
    PITH_CLI_ORIGIN_PARTIAL /* begun by pith and not finished */
} pith_cli_origin;
const char *pith_cli_origin_text(pith_cli_origin origin); /* "pith", "Hugging Face cache" */

typedef struct pith_cli_found {
    pith_cli_origin origin;
    char *name; /* what -m takes */
    char *path; /* of the first file; of the record for PARTIAL */
    char *repo; /* "user/repo"; NULL: unknown */
    char *file; /* path in the repository, or the file's name */
} pith_cli_found;
typedef struct pith_cli_found_list {
    pith_cli_found *items; /* [n], by origin, then by name */
    size_t n, capacity;
    bool failed; /* memory was short */
} pith_cli_found_list;
/* Everything; what cannot be read is left out. pith_cli_found_deinit also when failed. */
void pith_cli_find_models(pith_cli_found_list *list);
void pith_cli_found_deinit(pith_cli_found_list *list);
/* The one that a name means, among items of any origin but PARTIAL; NULL: none, or *n of them are
 * equally meant and marked by their indices in choices[0 .. min(*n, limit)). */
const pith_cli_found *pith_cli_found_match(const pith_cli_found_list *list, const char *name,
                                           size_t *choices, size_t limit, size_t *n);
/* For found_places.c: adds one, copying the texts. */
void pith_cli_found_add(pith_cli_found_list *list, const pith_cli_found *item);
/* The folders of others (found_places.c). */
void pith_cli_find_in_hub(pith_cli_found_list *list);
void pith_cli_find_in_lm_studio(pith_cli_found_list *list);
void pith_cli_find_in_ollama(pith_cli_found_list *list);

/* Files below a folder, at most `depth` folders deep, in no order (folder_walk.c): each(user, path
 * below the folder). false: memory was short. */
bool pith_cli_walk(const char *folder, int depth, bool (*each)(void *user, const char *path),
                   void *user);
/* a/b in memory of its own; NULL without memory. */
char *pith_cli_join(const char *folder, const char *name);

/* ---- What pith pulled (pulled.c): NAME.gguf.json beside the first file ---- */
/* {"name", "source", "licence", "pulled", "files": [{"file", "bytes", "sha256", "verified"}]};
 * NULL when there is none that can be read. */
json_t *pith_cli_pulled_read(const char *model_path);
/* Replaces it; the JSON is released. false: it could not be written. */
bool pith_cli_pulled_write(const char *model_path, json_t *json);
char *pith_cli_pulled_path(const char *model_path); /* of the record; NULL without memory */
/* When a model was used last, seconds since 1970; 0: unknown. Kept in the home folder for models
 * of every origin. */
int64_t pith_cli_last_used(const char *model_path);
void pith_cli_mark_used(const char *model_path);

#endif
