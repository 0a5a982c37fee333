/* SPDX-License-Identifier: Apache-2.0
 * Looking a prompt up in the cache folder, and reading KV from there (prefix.h has the picture).
 *
 * The deepest place whose hash the index knows gives candidates; the one whose ids agree with the
 * prompt furthest is taken, then those before it, back to the first token. Then the length is cut
 * to where every block is kept that rows behind it see. Only then anything of the session changes.
 * One file is open at a time, however many parts a prompt has.
 *
 * Invariant: KV comes from files whose ids were compared with the prompt and whose blocks had their
 * checksums. A file that is damaged is forgotten and the prompt looked up again.
 *
 * It stores nothing: prefix_record.c does. */
#include "engine/prefix.h"

#include "base/memory.h"
#include "base/text.h"
#include "engine/prefix_file.h"
#include "engine/prefix_index.h"

#include <stdio.h>
#include <string.h>

enum {
    KV_BITS = 2, /* to be raised by whatever changes the bits that a prompt leaves in KV, or what
                    files of before may hold (before 2: shared beginnings with others' ids) */
    CANDIDATES = 8,
    TRIES = 8,
    DEFAULT_QUOTA_MIB = 1024
};

/* One file's share of what is read. It rests until its blocks are read. */
typedef struct piece {
    pith_prefix_file file;
    int64_t id;
} piece;

struct pith_prefix {
    const pith_engine *engine;
    pith_prefix_index *index; /* of the thread that uses the engine */
    pith_prefix_recorder *recorder;
    char *folder;
    char settings[48];
    uint64_t quota, key; /* key: without adapters */
    uint64_t *hashes;    /* [n_ctx / 64] of the prompt that is looked up */
    piece *pieces;       /* [n_pieces], from the last part of the prompt to the first */
    uint32_t n_pieces, capacity;
    piece *awake;   /* the one whose file is open; NULL: none */
    uint8_t *block; /* a snapshot */
    bool damaged;   /* something was found and forgotten */
};

/* ---- Keys ---- */

static uint64_t mix(uint64_t key, uint64_t value) {
    return pith_hash(&value, sizeof value, key);
}

static uint64_t mix_float(uint64_t key, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(key, bits);
}

static uint64_t mix_rope(uint64_t key, const pith_rope *rope) {
    const float numbers[] = {rope->base,      rope->freq_scale, rope->ext_factor,
                             rope->beta_fast, rope->beta_slow,  rope->attn_factor};
    key = mix(mix(mix(key, rope->n_rot), rope->neox), rope->n_ctx_orig);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) key = mix_float(key, numbers[i]);
    for (uint32_t i = 0; rope->factors && i < rope->n_rot / 2; i++)
        key = mix_float(key, rope->factors[i]);
    return key;
}

static uint64_t mix_layout(uint64_t key, const pith_kv_layout *layout) {
    key = mix(mix(key, layout->storage), layout->n_layer);
    for (uint32_t i = 0; i < layout->n_layer; i++) {
        const pith_kv_layer *layer = &layout->layers[i];
        key = mix(mix(key, layer->n_head_kv), layer->head_dim);
        key = mix(mix(key, layer->head_dim_v), layer->window);
    }
    return key;
}

/* Everything but ids and adapters that decides a bit of KV. In the fast contract these are also the
 * tier and the form of the weights; and how ids were fed, which is left out: rows that were exact
 * then come back as exact ones (docs/decisions/0066). */
static uint64_t key_of(const pith_engine *engine) {
    static const uint64_t version =
        (uint64_t)PITH_VERSION_MAJOR << 32 | PITH_VERSION_MINOR << 16 | PITH_VERSION_PATCH;
    const pith_model *model = engine->model;
    uint64_t key = mix(mix(mix(version, KV_BITS), model->content_key), engine->exact);
    /* The content key samples: a file that was changed in place since is another model too. */
    for (uint32_t i = 0; model->gguf && i < pith_gguf_n_shards(model->gguf); i++)
        key = mix(key, pith_source_changed(pith_gguf_source(model->gguf, i)));
    key = mix(key, engine->backend.full_precision);
    if (!engine->exact) {
        key = mix(key, engine->backend.features);
        key = mix(key, (uint64_t)pith_model_get_info(model).load);
    }
    key = mix_rope(mix_rope(key, &model->hparams.rope), &model->hparams.rope_window);
    return mix_layout(key, &engine->layout);
}

void pith_prefix_hash_places(const int32_t *ids, size_t n, uint64_t *hashes) {
    uint64_t hash = 0;
    for (size_t i = 0; i < n / PITH_KV_BLOCK_TOKENS; i++) {
        hash = pith_hash(ids + i * PITH_KV_BLOCK_TOKENS, PITH_KV_BLOCK_TOKENS * sizeof *ids, hash);
        hashes[i] = hash;
    }
}

/* ---- Making it ---- */

static size_t largest_block(const pith_kv_layout *layout) {
    size_t largest = 0;
    for (uint32_t g = 0; g < layout->n_group; g++) {
        size_t bytes = pith_kv_snapshot_bytes(layout, g, PITH_KV_BLOCK_TOKENS);
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

/* Bytes of a token in all layers. */
static uint64_t token_bytes(const pith_kv_layout *layout) {
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < layout->n_group; g++) bytes += pith_kv_snapshot_bytes(layout, g, 1);
    return bytes;
}

static uint32_t places_of(uint32_t n_ctx) {
    return n_ctx / PITH_KV_BLOCK_TOKENS + 1;
}

uint64_t pith_prefix_bytes(const pith_kv_layout *layout, uint32_t n_ctx) {
    return sizeof(pith_prefix) + largest_block(layout) +
           places_of(n_ctx) * (sizeof(uint64_t) + sizeof(piece)) +
           pith_prefix_recorder_bytes(layout, n_ctx);
}

static void describe_settings(const pith_engine *engine, char *text, size_t capacity) {
    static const char *const names[] = {
        [PITH_KV_STORE_F32] = "f32", [PITH_KV_STORE_F16] = "f16", [PITH_KV_STORE_I8] = "int8"};
    snprintf(text, capacity, "%s%s%s", names[engine->storage], engine->exact ? ", exact" : "",
             engine->backend.full_precision ? ", full precision" : "");
}

static pith_status open_prefix(pith_prefix *p, pith_error *error) {
    const pith_engine *engine = p->engine;
    const pith_model *model = engine->model;
    p->capacity = places_of(engine->n_ctx);
    p->hashes = pith_alloc_array(p->capacity, sizeof *p->hashes);
    p->pieces = pith_alloc_zero(p->capacity, sizeof *p->pieces);
    p->block = pith_alloc(largest_block(&engine->layout));
    if (!p->folder || !p->hashes || !p->pieces || !p->block) {
        return pith_fail_memory(error, "stored prompts",
                                pith_prefix_bytes(&engine->layout, engine->n_ctx));
    }
    pith_status status = pith_prefix_index_open(p->folder, &p->index, error);
    if (status != PITH_OK || !pith_prefix_index_may_write(p->index)) return status;
    pith_prefix_setting setting = {.layout = &engine->layout,
                                   .n_ctx = engine->n_ctx,
                                   .quota = p->quota,
                                   .folder = p->folder,
                                   .model = model->name[0] ? model->name : model->architecture,
                                   .settings = p->settings};
    return pith_prefix_recorder_new(&setting, &p->recorder, error);
}

pith_prefix *pith_prefix_open(const pith_engine *engine, const char *folder, uint64_t quota,
                              pith_error *error) {
    pith_prefix *p = pith_alloc_zero(1, sizeof *p);
    if (!p) {
        pith_fail_memory(error, "stored prompts", sizeof *p);
        return NULL;
    }
    p->engine = engine;
    p->folder = pith_copy_text(folder, strlen(folder));
    p->quota = quota ? quota : (uint64_t)DEFAULT_QUOTA_MIB << 20;
    p->key = key_of(engine);
    describe_settings(engine, p->settings, sizeof p->settings);
    if (open_prefix(p, error) == PITH_OK) return p;
    pith_prefix_close(p);
    return NULL;
}

static void close_pieces(pith_prefix *p) {
    for (uint32_t i = 0; i < p->n_pieces; i++) pith_prefix_file_close(&p->pieces[i].file);
    p->n_pieces = 0;
    p->awake = NULL;
}

void pith_prefix_close(pith_prefix *prefix) {
    if (!prefix) return;
    close_pieces(prefix);
    pith_prefix_recorder_free(prefix->recorder);
    pith_prefix_index_close(prefix->index);
    pith_free(prefix->hashes);
    pith_free(prefix->pieces);
    pith_free(prefix->block);
    pith_free(prefix->folder);
    pith_free(prefix);
}

const char *pith_prefix_note(const pith_prefix *prefix) {
    if (!prefix->recorder) return "the cache folder may only be read: prompts are not kept";
    return pith_prefix_recorder_note(prefix->recorder);
}

/* ---- Lookup ---- */

/* A prompt being looked up. */
typedef struct lookup {
    uint64_t key;
    pith_id_span prompt;
    uint32_t most; /* tokens that may come from the disk: the last one gives the logits */
} lookup;

static uint32_t agreeing(const lookup *l, const pith_prefix_file *file) {
    uint32_t n = 0, most = file->n < l->most ? file->n : l->most;
    while (n < most && file->ids[n] == l->prompt.data[n]) n++;
    return n;
}

/* An entry's file, open. */
static pith_status open_source(pith_prefix *p, int64_t id, pith_source **out) {
    char *path = pith_prefix_index_path(p->index, id);
    if (!path) return PITH_ERROR_MEMORY;
    pith_status status = pith_source_open_path(path, out, NULL);
    pith_free(path);
    return status;
}

/* What is damaged or gone is a miss, now and later. */
static void forget_entry(pith_prefix *p, int64_t id) {
    pith_prefix_index_remove(p->index, id);
    p->damaged = true;
}

/* Opens an entry as the next piece. Returns how many tokens of the prompt agree; 0 when it is of no
 * use, which a damaged file tells for good. */
static uint32_t open_piece(pith_prefix *p, const lookup *l, const pith_prefix_row *row) {
    pith_source *source = NULL;
    if (p->n_pieces == p->capacity) return 0;
    piece *next = &p->pieces[p->n_pieces];
    pith_status status = open_source(p, row->id, &source);
    if (status == PITH_OK)
        status = pith_prefix_file_open(source, &p->engine->layout, l->key, &next->file, NULL);
    if (status == PITH_OK && (next->file.first != row->first || next->file.n != row->n)) {
        pith_prefix_file_close(&next->file);
        status = PITH_ERROR_FORMAT;
    }
    if (status == PITH_ERROR_FORMAT || status == PITH_ERROR_NOT_FOUND) forget_entry(p, row->id);
    if (status != PITH_OK) return 0;
    next->id = row->id;
    p->n_pieces++;
    uint32_t n = agreeing(l, &next->file);
    pith_prefix_file_rest(&next->file);
    return n;
}

static void drop_piece(pith_prefix *p) {
    pith_prefix_file_close(&p->pieces[--p->n_pieces].file);
}

/* The deepest place (in blocks, at most `most`) that the index knows. A place is known only if
 * those before it are, unless parts of a prompt have gone: then any known one will do. */
static uint32_t deepest_place(pith_prefix *p, const lookup *l, uint32_t most) {
    uint32_t low = 0, high = most;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        pith_prefix_row row;
        if (pith_prefix_index_find(p->index, l->key, p->hashes[middle - 1], &row, 1) > 0)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Adds the pieces before the last one. Returns 0, or the place where one is missing. */
static uint32_t chain_back(pith_prefix *p, const lookup *l) {
    uint32_t at;
    while ((at = p->pieces[p->n_pieces - 1].file.first) > 0) {
        pith_prefix_row rows[CANDIDATES];
        uint64_t hash = p->hashes[at / PITH_KV_BLOCK_TOKENS - 1];
        size_t n = pith_prefix_index_find(p->index, l->key, hash, rows, CANDIDATES);
        bool found = false;
        for (size_t i = 0; i < n && !found; i++) {
            if (rows[i].first >= at || rows[i].n < at) continue;
            uint32_t before = p->n_pieces;
            found = open_piece(p, l, &rows[i]) >= at;
            if (!found && p->n_pieces > before) drop_piece(p);
        }
        if (!found) return at / PITH_KV_BLOCK_TOKENS;
    }
    return 0;
}

/* The piece that gives a block: the last that begins before it. NULL: none has it. */
static piece *piece_of(const pith_prefix *p, uint32_t group, uint32_t block) {
    for (uint32_t i = 0; i < p->n_pieces; i++) {
        piece *at = &p->pieces[i];
        if (at->file.first / PITH_KV_BLOCK_TOKENS > block) continue;
        return pith_prefix_file_has(&at->file, group, block) ? at : NULL;
    }
    return NULL;
}

/* The last block of the group that rows behind n see and that is not kept; UINT32_MAX: none. */
static uint32_t missing_block(const pith_prefix *p, uint32_t group, uint32_t n) {
    uint32_t first = pith_kv_first_block(&p->engine->layout, group, n);
    uint32_t end = (n + PITH_KV_BLOCK_TOKENS - 1) / PITH_KV_BLOCK_TOKENS;
    for (uint32_t block = end; block > first; block--) {
        if (!piece_of(p, group, block - 1)) return block - 1;
    }
    return UINT32_MAX;
}

/* The most tokens, up to n, behind which rows find all that they see. */
static uint32_t fit_windows(const pith_prefix *p, uint32_t n) {
    for (uint32_t g = 0; g < p->engine->layout.n_group && n > 0;) {
        uint32_t missing = missing_block(p, g, n);
        g++;
        if (missing == UINT32_MAX) continue;
        n = missing * PITH_KV_BLOCK_TOKENS;
        g = 0;
    }
    return n;
}

/* What a lookup came to. */
typedef struct found {
    uint32_t n;     /* tokens that the pieces give */
    uint32_t agree; /* tokens that are stored, if windows did not matter */
    uint32_t hole;  /* of an entry: place before which a part is missing, 0: none */
} found;

/* Pieces that end with this entry. */
static found try_entry(pith_prefix *p, const lookup *l, const pith_prefix_row *row) {
    found f = {0};
    close_pieces(p);
    f.agree = open_piece(p, l, row);
    if (f.agree <= row->first) return (found){0}; /* other ids with the same hash, or damaged */
    f.hole = chain_back(p, l);
    if (f.hole == 0) f.n = fit_windows(p, f.agree);
    return f;
}

/* The best of the entries at a place; its pieces are open. */
static found try_place(pith_prefix *p, const lookup *l, uint32_t place) {
    pith_prefix_row rows[CANDIDATES];
    uint64_t hash = p->hashes[place - 1];
    size_t n = pith_prefix_index_find(p->index, l->key, hash, rows, CANDIDATES), best = 0;
    found all = {.hole = place};
    for (size_t i = 0; i < n; i++) {
        found f = try_entry(p, l, &rows[i]);
        if (f.hole && f.hole < all.hole) all.hole = f.hole;
        if (f.hole == 0 && f.agree > all.agree) all.agree = f.agree;
        if (f.n > all.n) {
            all.n = f.n;
            best = i;
        }
    }
    /* The pieces that are open are the last entry's. */
    if (all.n > 0 && best + 1 < n) all.n = try_entry(p, l, &rows[best]).n;
    return all;
}

/* Where a part is missing the prompt is looked up again before that place. */
static found look_up(pith_prefix *p, const lookup *l) {
    uint32_t most = l->most / PITH_KV_BLOCK_TOKENS, agree = 0;
    for (int i = 0; i < TRIES && most > 0; i++) {
        uint32_t place = deepest_place(p, l, most);
        if (place == 0) break;
        found f = try_place(p, l, place);
        if (f.agree < agree) f.agree = agree;
        if (f.n > 0) return f;
        agree = f.agree;
        most = f.hole < place ? f.hole : place - 1;
    }
    close_pieces(p);
    return (found){.agree = agree};
}

/* ---- Reading ---- */

/* Opens the piece's file in the place of the one that is open. */
static pith_status wake(pith_prefix *p, piece *wanted) {
    pith_source *source = NULL;
    if (p->awake == wanted) return PITH_OK;
    if (p->awake) pith_prefix_file_rest(&p->awake->file);
    p->awake = NULL;
    pith_status status = open_source(p, wanted->id, &source);
    if (status != PITH_OK) return status;
    pith_prefix_file_wake(&wanted->file, source);
    p->awake = wanted;
    return PITH_OK;
}

/* pith_kv_snapshot_source.read */
static const uint8_t *read_block(void *user, uint32_t group, uint32_t block, uint32_t least,
                                 uint32_t *n) {
    pith_prefix *p = user;
    piece *from = piece_of(p, group, block);
    if (!from) return NULL;
    *n = pith_prefix_file_tokens(&from->file, block);
    if (*n < least) return NULL;
    pith_status status = wake(p, from);
    if (status == PITH_OK)
        status = pith_prefix_file_read(&from->file, group, block, p->block, NULL);
    if (status == PITH_ERROR_FORMAT || status == PITH_ERROR_NOT_FOUND) forget_entry(p, from->id);
    return status == PITH_OK ? p->block : NULL;
}

/* Whether the session's KV has the n tokens now; otherwise it is empty. */
static bool read_pieces(pith_prefix *p, pith_session *session, uint32_t n) {
    uint32_t whole = pith_kv_sequence_length(session->kv);
    const pith_kv_snapshot_source source = {read_block, p};
    pith_kv_sequence_truncate(session->kv, whole - whole % PITH_KV_BLOCK_TOKENS);
    bool good = pith_kv_snapshot_read(session->kv, n, &source);
    close_pieces(p);
    return good;
}

static pith_cache_miss why_missed(pith_prefix *p, const lookup *l, const found *f, uint32_t least) {
    if (p->damaged) return PITH_CACHE_MISS_DAMAGED;
    if (f->agree >= least) return PITH_CACHE_MISS_WINDOW;
    if (f->agree == 0 && pith_prefix_index_find_other(p->index, l->key, p->hashes[0]))
        return PITH_CACHE_MISS_OTHER;
    return PITH_CACHE_MISS_NEW;
}

/* Returns how many tokens of the prompt are stored. */
static uint32_t take(pith_prefix *p, pith_session *session, const lookup *l, pith_generation *out) {
    p->damaged = false;
    pith_prefix_hash_places(l->prompt.data, l->most, p->hashes);
    for (int i = 0; i < TRIES; i++) {
        uint32_t least = pith_kv_sequence_length(session->kv) + PITH_PREFIX_LEAST_READ;
        found f = look_up(p, l);
        if (f.n < least) {
            out->cache_miss = why_missed(p, l, &f, least);
            close_pieces(p);
            return f.n;
        }
        if (!read_pieces(p, session, f.n)) continue;
        out->cache_source = PITH_CACHE_DISK;
        if (p->recorder)
            pith_prefix_record_use(p->recorder, l->key, p->hashes, f.n / PITH_KV_BLOCK_TOKENS);
        return f.n;
    }
    out->cache_miss = PITH_CACHE_MISS_DAMAGED;
    return 0;
}

void pith_prefix_take(pith_prefix *prefix, pith_session *session, pith_id_span prompt,
                      const pith_generate_options *options, pith_generation *out) {
    uint64_t variant = pith_session_variant(session, &prompt.size);
    uint32_t n = (uint32_t)prompt.size, held = pith_kv_sequence_length(session->kv);
    if (n < held + PITH_PREFIX_LEAST_READ + 1) return;
    if (!prefix) {
        out->cache_miss = PITH_CACHE_MISS_OFF;
        return;
    }
    const lookup l = {variant ? mix(prefix->key, variant) : prefix->key, prompt, n - 1};
    uint32_t stored = take(prefix, session, &l, out);
    if (!prefix->recorder || n - stored < PITH_PREFIX_LEAST_STORED) return;
    /* More than half of the quota would drive out its own beginning. */
    uint64_t token = token_bytes(&prefix->engine->layout);
    uint64_t most = token ? prefix->quota / 2 / token : 0;
    const pith_prefix_task task = {.session = session,
                                   .key = l.key,
                                   .first = stored - stored % PITH_KV_BLOCK_TOKENS,
                                   .end = n <= most ? n : (uint32_t)most,
                                   .places = options->cache_at,
                                   .n_places = options->n_cache_at};
    pith_prefix_record_begin(prefix->recorder, &task);
}

void pith_prefix_follow(pith_prefix *prefix, const pith_session *session, uint32_t most) {
    if (prefix && prefix->recorder) pith_prefix_record_follow(prefix->recorder, session, most);
}

void pith_prefix_leave(pith_prefix *prefix, const pith_session *session) {
    if (prefix && prefix->recorder) pith_prefix_record_end(prefix->recorder, session);
}
