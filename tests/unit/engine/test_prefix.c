/* SPDX-License-Identifier: Apache-2.0
 * Promise: an engine with a cache folder gives what it gives without one. KV that comes from the
 * disk has the bits of KV that was computed, for every storage, contract and length that is common;
 * a damaged file, a damaged index and a folder that cannot be used cost time, nothing else; and a
 * reply says where its tokens came from, or why from nowhere. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/output.h"
#include "base/source.h"
#include "engine/prefix.h"
#include "engine/prefix_index.h"
#include "support/brief.h"
#include "support/cache_entries.h"
#include "support/open_engine.h"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

enum { N_CTX = 500, N_TOKENS = 6 };

/* ---- Folders ---- */

static int clean_folder(void **state) {
    (void)state;
    empty_folder("test_prefix");
    return 0;
}

typedef struct file_names {
    char name[64][64];
    size_t n;
} file_names;

static bool add_name(void *user, const char *name) {
    file_names *names = user;
    if (name[0] == 'e' && names->n < 64)
        snprintf(names->name[names->n++], sizeof names->name[0], "%s", name);
    return true;
}

static file_names entry_files(void) {
    file_names names;
    names.n = 0;
    assert_int_equal(pith_folder_each(folder, add_name, &names, NULL), PITH_OK);
    return names;
}

/* Changes one byte of a file of the folder; at: from the end when negative. cut: the file ends
 * there. */
static void spoil(const char *name, long at, bool cut) {
    char path[1400];
    pith_source *source;
    pith_output *output;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    size_t size = (size_t)pith_source_size(source);
    uint8_t *data = pith_alloc(size);
    assert_int_equal(pith_source_read(source, 0, data, size, NULL), PITH_OK);
    pith_source_close(source);
    size_t where = at < 0 ? size - (size_t)-at : (size_t)at;
    assert_true(where < size);
    data[where] ^= 0x10;
    assert_int_equal(pith_output_open(path, &output, NULL), PITH_OK);
    assert_int_equal(pith_output_write(output, data, cut ? where : size, NULL), PITH_OK);
    assert_int_equal(pith_output_commit(output, NULL), PITH_OK);
    pith_output_close(output);
    pith_free(data);
}

/* ---- Engines ---- */

typedef struct fixture {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
} fixture;

typedef struct kind {
    const char *golden;
    pith_kv_type kv;
    bool exact;
} kind;

static const kind kinds[] = {
    {"llama-q4_0.gguf", PITH_KV_F16, true},  {"llama-q4_0.gguf", PITH_KV_F32, true},
    {"llama-q4_0.gguf", PITH_KV_INT8, true}, {"llama-q4_0.gguf", PITH_KV_F16, false},
    {"gemma3.gguf", PITH_KV_F16, true},      {"gemma3.gguf", PITH_KV_F32, false},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };
static const kind plain = {"llama-q4_0.gguf", PITH_KV_F16, true};

/* The golden model; gemma3 with a window of 100 tokens, so that it spans blocks. */
static const char *model_path(const kind *k, char path[1024]) {
    char from[1024];
    const change window[] = {{SET_U32, "gemma3.attention.sliding_window", 100, NULL}};
    if (strcmp(k->golden, "gemma3.gguf") != 0) return golden_path(k->golden, path);
    scratch_path("test_prefix.gguf", path);
    static bool is_written; /* once: a file that is written again is another model */
    if (!is_written)
        assert_true(changed_model_write(golden_path(k->golden, from), path, window, 1));
    is_written = true;
    return path;
}

static void open_with(fixture *f, const kind *k, const pith_engine_options *more) {
    char path[1024];
    pith_engine_options options = *more;
    options.n_ctx = N_CTX;
    options.n_threads = 1;
    options.kv_type = k->kv;
    options.exact = k->exact;
    if (!options.step_limit) options.step_limit = 48;
    *f = (fixture){.model = open_model_at(model_path(k, path))};
    f->engine = open_engine_as(f->model, options);
    f->session = open_session(f->engine);
    f->sampler = open_sampler(f->model, (pith_sampler_options){0});
}

static void open_fixture(fixture *f, const kind *k, const char *cache) {
    const pith_engine_options options = {.cache_folder = cache, .n_sessions = 2};
    open_with(f, k, &options);
}

static void close_fixture(fixture *f) {
    pith_sample_free(f->sampler);
    pith_engine_close(f->engine);
    pith_model_free(f->model);
}

/* n ids, of which the first `common` are the same for every `which`. */
static pith_id_span prompt_of(size_t n, size_t common, int which) {
    static int32_t ids[N_CTX];
    for (size_t i = 0; i < n; i++) {
        size_t other = i < common ? 0 : (size_t)which;
        ids[i] = (int32_t)(40 + (i * 7 + i * i % 11 + other * 13) % 60);
    }
    return (pith_id_span){ids, n};
}

static pith_generation say_with(fixture *f, pith_session *session, pith_id_span prompt,
                                const pith_generate_options *more) {
    pith_generate_options options = *more;
    pith_reply *reply = NULL;
    pith_generation made;
    pith_error error = {0};
    options.size = sizeof options;
    options.max_tokens = N_TOKENS;
    options.ignore_end = true;
    if (pith_reply_open(session, f->sampler, prompt, &options, &reply, &error) != PITH_OK)
        fail_msg("%s", error.text);
    while (!pith_reply_is_made(reply)) pith_engine_advance(f->engine);
    assert_int_equal(pith_reply_outcome(reply, &made, NULL), PITH_OK);
    pith_reply_close(reply);
    return made;
}

static pith_generation say(fixture *f, pith_id_span prompt) {
    const pith_generate_options options = {.draft = PITH_DRAFT_OFF};
    return say_with(f, f->session, prompt, &options);
}

/* What a session that never saw the disk has after the same prompt. */
static void assert_as_computed(const fixture *f, const kind *k, pith_id_span prompt) {
    static uint8_t a[1 << 17], b[1 << 17];
    fixture cold;
    open_fixture(&cold, k, NULL);
    pith_generation made = say(&cold, prompt);
    assert_int_equal(made.n_cached, 0);
    assert_int_equal(f->session->length, cold.session->length);
    assert_memory_equal(f->session->ids, cold.session->ids, cold.session->length * sizeof(int32_t));
    assert_memory_equal(f->session->logits, cold.session->logits,
                        f->model->hparams.n_vocab * sizeof(float));
    const pith_kv_layout *layout = &f->engine->layout;
    uint32_t n = pith_kv_sequence_length(f->session->kv);
    assert_int_equal(n, pith_kv_sequence_length(cold.session->kv));
    for (uint32_t g = 0; g < layout->n_group; g++) {
        for (uint32_t block = pith_kv_first_block(layout, g, n); block * 64 < n; block++) {
            uint32_t rows = n - block * 64 < 64 ? n - block * 64 : 64;
            size_t bytes = pith_kv_snapshot_bytes(layout, g, rows);
            assert_true(bytes <= sizeof a);
            assert_true(pith_kv_snapshot_write(f->session->kv, g, block, rows, a));
            assert_true(pith_kv_snapshot_write(cold.session->kv, g, block, rows, b));
            if (memcmp(a, b, bytes) != 0)
                fail_msg("%s: KV of group %u, block %u is not what is computed", k->golden, g,
                         block);
        }
    }
    close_fixture(&cold);
}

/* Stores the prompt and waits until it can be found. */
static void store(const kind *k, pith_id_span prompt, size_t n_entries) {
    fixture f;
    open_fixture(&f, k, folder);
    say(&f, prompt);
    wait_for_entries(n_entries);
    close_fixture(&f);
}

/* ---- Promises ---- */

static void what_is_read_is_what_is_computed(void **state) {
    static const struct {
        size_t n, common, cached; /* of the second prompt */
    } cases[] = {
        {300, 300, 299}, /* the same: the last token gives the logits */
        {300, 200, 200}, /* in the middle of a block */
        {330, 256, 256}, {330, 300, 300}, {301, 300, 300},
        {200, 200, 199}, {66, 66, 65},    {129, 128, 128},
    };
    (void)state;
    for (size_t i = 0; i < N_KINDS; i++) {
        clean_folder(state);
        store(&kinds[i], prompt_of(300, 300, 0), 1);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c += test_is_brief() ? 3 : 1) {
            fixture f;
            pith_id_span prompt = prompt_of(cases[c].n, cases[c].common, 1);
            open_fixture(&f, &kinds[i], folder);
            assert_string_equal(pith_engine_get_info(f.engine).cache_note, "");
            pith_generation made = say(&f, prompt);
            if (made.n_cached != cases[c].cached || made.cache_source != PITH_CACHE_DISK)
                fail_msg("kind %zu, case %zu: %zu tokens from %d", i, c, made.n_cached,
                         (int)made.cache_source);
            assert_int_equal(made.cache_miss, PITH_CACHE_MISS_NONE);
            assert_as_computed(&f, &kinds[i], prompt);
            close_fixture(&f);
        }
    }
}

/* A prompt that grew is stored from where the stored one ends; parts join. */
static void parts_join(void **state) {
    fixture f;
    (void)state;
    for (size_t i = 0; i < N_KINDS; i++) {
        clean_folder(state);
        store(&kinds[i], prompt_of(150, 150, 0), 1);
        store(&kinds[i], prompt_of(300, 300, 0), 2);
        store(&kinds[i], prompt_of(450, 450, 0), 3);
        assert_int_equal(list().first, 256); /* the prompt's last part was used last */
        assert_int_equal(list().end, 450);
        open_fixture(&f, &kinds[i], folder);
        pith_generation made = say(&f, prompt_of(460, 440, 2));
        assert_int_equal(made.n_cached, 440);
        assert_as_computed(&f, &kinds[i], prompt_of(460, 440, 2));
        close_fixture(&f);
    }
}

#if !defined(_WIN32)
/* However many parts a prompt has, a process needs one more descriptor to read it. */
static void parts_are_opened_one_at_a_time(void **state) {
    fixture f;
    struct rlimit usual, few;
    (void)state;
    store(&plain, prompt_of(150, 150, 0), 1);
    store(&plain, prompt_of(300, 300, 0), 2);
    store(&plain, prompt_of(450, 450, 0), 3);
    open_fixture(&f, &plain, folder);
    int next = open("/dev/null", O_RDONLY);
    assert_true(next >= 0);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = usual;
    few.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    pith_generation made = say(&f, prompt_of(450, 450, 0));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(made.n_cached, 449);
    assert_as_computed(&f, &plain, prompt_of(450, 450, 0));
    close_fixture(&f);
}
#endif

/* A part in the middle that is gone leaves the parts before it, and is stored again. */
static void a_missing_part_ends_the_chain(void **state) {
    fixture f;
    (void)state;
    store(&plain, prompt_of(150, 150, 0), 1);
    store(&plain, prompt_of(300, 300, 0), 2);
    store(&plain, prompt_of(450, 450, 0), 3);
    pith_prefix_index *index;
    assert_int_equal(pith_prefix_index_open(folder, &index, NULL), PITH_OK);
    pith_prefix_index_remove(index, 2);
    pith_prefix_index_close(index);
    open_fixture(&f, &plain, folder);
    pith_generation made = say(&f, prompt_of(450, 450, 0));
    assert_int_equal(made.n_cached, 150);
    assert_as_computed(&f, &plain, prompt_of(450, 450, 0));
    wait_for_entries(3);
    close_fixture(&f);
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(450, 450, 0)).n_cached, 449);
    close_fixture(&f);
}

static void the_source_is_told(void **state) {
    fixture f;
    pith_session *other;
    const pith_generate_options options = {.draft = PITH_DRAFT_OFF};
    (void)state;
    open_fixture(&f, &plain, folder);
    pith_generation made = say(&f, prompt_of(300, 300, 0));
    assert_int_equal(made.cache_source, PITH_CACHE_NONE);
    assert_int_equal(made.cache_miss, PITH_CACHE_MISS_NEW);
    made = say(&f, prompt_of(310, 300, 1));
    assert_int_equal(made.n_cached, 300);
    assert_int_equal(made.cache_source, PITH_CACHE_SESSION);
    assert_int_equal(made.cache_miss, PITH_CACHE_MISS_NONE); /* too little for the disk */
    assert_int_equal(pith_session_open(f.engine, &other, NULL), PITH_OK);
    made = say_with(&f, other, prompt_of(310, 300, 2), &options);
    assert_int_equal(made.n_cached, 300);
    assert_int_equal(made.cache_source, PITH_CACHE_SHARED);
    close_fixture(&f);
    open_fixture(&f, &plain, NULL);
    made = say(&f, prompt_of(300, 300, 0));
    assert_int_equal(made.cache_miss, PITH_CACHE_MISS_OFF);
    assert_int_equal(say(&f, prompt_of(20, 0, 5)).cache_miss, PITH_CACHE_MISS_NONE);
    close_fixture(&f);
}

/* The disk lengthens what the session has. */
static void a_session_is_lengthened(void **state) {
    fixture f;
    (void)state;
    for (size_t i = 0; i < N_KINDS; i++) {
        if (!kinds[i].exact) continue; /* what the session has was fed in another way */
        clean_folder(state);
        store(&kinds[i], prompt_of(400, 400, 0), 1);
        open_fixture(&f, &kinds[i], folder);
        say(&f, prompt_of(100, 100, 0));
        pith_generation made = say(&f, prompt_of(400, 380, 3));
        assert_int_equal(made.n_cached, 380);
        assert_int_equal(made.cache_source, PITH_CACHE_DISK);
        assert_as_computed(&f, &kinds[i], prompt_of(400, 380, 3));
        close_fixture(&f);
    }
}

static void other_settings_are_told_apart(void **state) {
    static const kind others[] = {{"llama-q4_0.gguf", PITH_KV_F32, true},
                                  {"llama-q4_0.gguf", PITH_KV_F16, false},
                                  {"llama-moe.gguf", PITH_KV_F16, true}};
    fixture f;
    (void)state;
    store(&plain, prompt_of(200, 200, 0), 1);
    for (size_t i = 0; i < 3; i++) {
        open_fixture(&f, &others[i], folder);
        pith_generation made = say(&f, prompt_of(200, 200, 0));
        assert_int_equal(made.n_cached, 0);
        assert_int_equal(made.cache_miss, PITH_CACHE_MISS_OTHER);
        wait_for_entries(2 + i);
        close_fixture(&f);
    }
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(200, 200, 0)).n_cached, 199);
    close_fixture(&f);
}

/* Threads and the length of steps are no settings of KV in the exact contract. */
static void steps_and_threads_share(void **state) {
    fixture f;
    const pith_engine_options options = {.cache_folder = folder, .n_sessions = 1, .step_limit = 7};
    (void)state;
    store(&plain, prompt_of(200, 200, 0), 1);
    open_with(&f, &plain, &options);
    assert_int_equal(say(&f, prompt_of(200, 200, 0)).n_cached, 199);
    assert_as_computed(&f, &plain, prompt_of(200, 200, 0));
    close_fixture(&f);
}

static void short_prompts_are_not_stored(void **state) {
    (void)state;
    store(&plain, prompt_of(127, 127, 0), 0);
    assert_int_equal(list().n, 0);
    store(&plain, prompt_of(128, 128, 0), 1);
    store(&plain, prompt_of(255, 255, 0), 1);
    assert_int_equal(list().n, 1);
    store(&plain, prompt_of(256, 256, 0), 2);
}

/* Any byte of a file that is changed, and any length that it is cut to, is a miss. */
static void damaged_files_are_forgotten(void **state) {
    static const long places[] = {0, 9, 13, 20, 25, 30, 35, 41, 500, 1300, -1, -2000};
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        for (size_t i = 0; i < sizeof places / sizeof *places; i += test_is_brief() ? 3 : 1) {
            fixture f;
            clean_folder(state);
            store(&plain, prompt_of(300, 300, 0), 1);
            spoil(entry_files().name[0], places[i], cut);
            open_fixture(&f, &plain, folder);
            pith_generation made = say(&f, prompt_of(300, 300, 0));
            if (made.n_cached != 0 || made.cache_miss != PITH_CACHE_MISS_DAMAGED)
                fail_msg("byte %ld: %zu tokens cached, miss %d", places[i], made.n_cached,
                         (int)made.cache_miss);
            assert_as_computed(&f, &plain, prompt_of(300, 300, 0));
            wait_for_entries(1);
            close_fixture(&f);
            open_fixture(&f, &plain, folder); /* stored anew */
            assert_int_equal(say(&f, prompt_of(300, 300, 0)).n_cached, 299);
            assert_int_equal(entry_files().n, 1);
            close_fixture(&f);
        }
    }
}

/* Of a prompt in parts the whole ones before the damaged one are taken. */
static void whole_parts_are_taken(void **state) {
    fixture f;
    (void)state;
    store(&plain, prompt_of(150, 150, 0), 1);
    store(&plain, prompt_of(300, 300, 0), 2);
    spoil("e2.kv1", -5, false);
    open_fixture(&f, &plain, folder);
    pith_generation made = say(&f, prompt_of(300, 300, 0));
    assert_int_equal(made.n_cached, 150);
    assert_int_equal(made.cache_source, PITH_CACHE_DISK);
    assert_as_computed(&f, &plain, prompt_of(300, 300, 0));
    close_fixture(&f);
}

static void missing_files_are_forgotten(void **state) {
    fixture f;
    (void)state;
    store(&plain, prompt_of(300, 300, 0), 1);
    remove_one(NULL, entry_files().name[0]);
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(300, 300, 0)).cache_miss, PITH_CACHE_MISS_DAMAGED);
    wait_for_entries(1);
    close_fixture(&f);
}

/* Another prompt's file in the place of this one's: ids are compared. */
static void swapped_files_are_no_answer(void **state) {
    fixture f;
    char a[1400], b[1400], c[1400];
    (void)state;
    store(&plain, prompt_of(300, 0, 1), 1);
    store(&plain, prompt_of(300, 0, 2), 2);
    snprintf(a, sizeof a, "%s/e1.kv1", folder);
    snprintf(b, sizeof b, "%s/e2.kv1", folder);
    snprintf(c, sizeof c, "%s/swap", folder);
    assert_int_equal(rename(a, c) + rename(b, a) + rename(c, b), 0);
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(300, 0, 1)).n_cached, 0);
    assert_as_computed(&f, &plain, prompt_of(300, 0, 1));
    close_fixture(&f);
}

static void a_damaged_index_is_made_anew(void **state) {
    static const long places[] = {0, 20, 100, 60, 5000, -100};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i += test_is_brief() ? 3 : 1) {
        for (int cut = 0; cut < 2; cut++) {
            fixture f;
            clean_folder(state);
            store(&plain, prompt_of(300, 300, 0), 1);
            spoil("pith-prompts.db", places[i], cut);
            for (int again = 0; again < 3; again++) {
                open_fixture(&f, &plain, folder);
                say(&f, prompt_of(300, 300, 0));
                assert_as_computed(&f, &plain, prompt_of(300, 300, 0));
                close_fixture(&f);
            }
        }
    }
}

static void garbage_in_place_of_the_index(void **state) {
    fixture f;
    pith_output *output;
    char path[1400];
    (void)state;
    store(&plain, prompt_of(300, 300, 0), 1);
    snprintf(path, sizeof path, "%s/pith-prompts.db", folder);
    assert_int_equal(pith_output_open(path, &output, NULL), PITH_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(pith_output_write(output, "not a database ", 15, NULL), PITH_OK);
    assert_int_equal(pith_output_commit(output, NULL), PITH_OK);
    pith_output_close(output);
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(300, 300, 0)).cache_miss, PITH_CACHE_MISS_NEW);
    wait_for_entries(1);
    close_fixture(&f);
    assert_int_equal(entry_files().n, 1); /* the one without a row is gone */
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(300, 300, 0)).n_cached, 299);
    close_fixture(&f);
}

static void the_quota_is_kept(void **state) {
    fixture f;
    (void)state;
    store(&plain, prompt_of(128, 0, 1), 1);
    uint64_t one = list().bytes;
    const pith_engine_options options = {
        .cache_folder = folder, .n_sessions = 1, .cache_quota = 3 * one + one / 2};
    clean_folder(state);
    open_with(&f, &plain, &options);
    for (int i = 1; i <= 3; i++) {
        say(&f, prompt_of(128, 0, i));
        wait_for_entries((size_t)i);
    }
    close_fixture(&f);
    open_with(&f, &plain, &options);
    assert_int_equal(say(&f, prompt_of(128, 0, 1)).n_cached, 127); /* used: the second is oldest */
    close_fixture(&f);                                             /* and that is noted */
    open_with(&f, &plain, &options);
    say(&f, prompt_of(128, 0, 4));
    uint64_t end = pith_clock_ns() + 20000000000ull;
    bool exchanged = false;
    while (!exchanged && pith_clock_ns() < end) {
        file_names names = entry_files();
        exchanged = names.n == 3;
        for (size_t i = 0; i < names.n; i++)
            exchanged = exchanged && strcmp(names.name[i], "e2.kv1") != 0 &&
                        strchr(names.name[i], 'p') == NULL;
    }
    assert_true(exchanged);
    assert_true(list().bytes <= options.cache_quota);
    close_fixture(&f);
    open_with(&f, &plain, &options);
    assert_int_equal(say(&f, prompt_of(128, 0, 1)).n_cached, 127);
    pith_session_cut(f.session, 0);
    assert_int_equal(say(&f, prompt_of(128, 0, 2)).n_cached, 0);
    close_fixture(&f);
}

/* A prompt larger than half the quota is stored as far as that goes. */
static void a_prompt_never_drives_out_its_own_beginning(void **state) {
    fixture f;
    (void)state;
    store(&plain, prompt_of(256, 256, 0), 1);
    const pith_engine_options options = {
        .cache_folder = folder, .n_sessions = 1, .cache_quota = list().bytes};
    clean_folder(state);
    open_with(&f, &plain, &options);
    say(&f, prompt_of(400, 400, 0));
    wait_for_entries(1);
    close_fixture(&f);
    assert_true(list().end > 64 && list().end <= 140);
}

static void cache_at_saves_what_no_place_sees(void **state) {
    const kind gemma = {"gemma3.gguf", PITH_KV_F16, true};
    const size_t places[] = {210, 100000};
    const pith_generate_options options = {
        .draft = PITH_DRAFT_OFF, .cache_at = places, .n_cache_at = 2};
    fixture f;
    (void)state;
    store(&gemma, prompt_of(480, 480, 0), 1);
    uint64_t all = list().bytes;
    clean_folder(state);
    open_fixture(&f, &gemma, folder);
    say_with(&f, f.session, prompt_of(480, 480, 0), &options);
    wait_for_entries(1);
    assert_true(list().bytes < all);
    close_fixture(&f);
    open_fixture(&f, &gemma, folder); /* at the place, a little behind it, at the end */
    assert_int_equal(say(&f, prompt_of(400, 210, 1)).n_cached, 210);
    assert_as_computed(&f, &gemma, prompt_of(400, 210, 1));
    close_fixture(&f);
    open_fixture(&f, &gemma, folder);
    assert_int_equal(say(&f, prompt_of(500 - N_TOKENS, 470, 2)).n_cached, 470);
    close_fixture(&f);
    open_fixture(&f, &gemma, folder); /* where the window lacks a block: as far as it goes */
    pith_generation made = say(&f, prompt_of(400, 360, 3));
    assert_int_equal(made.n_cached, 256);
    assert_as_computed(&f, &gemma, prompt_of(400, 360, 3));
    close_fixture(&f);
}

static void folders_that_cannot_be_used_are_told(void **state) {
    char path[1500], file[1400];
    fixture f;
    pith_output *output;
    (void)state;
    assert_int_equal(pith_folder_make(folder, NULL), PITH_OK);
    snprintf(file, sizeof file, "%s/file", folder);
    assert_int_equal(pith_output_open(file, &output, NULL), PITH_OK);
    assert_int_equal(pith_output_commit(output, NULL), PITH_OK);
    pith_output_close(output);
    snprintf(path, sizeof path, "%s/below", file);
    const char *const bad[] = {file, path, "", "/proc/self/nothing/here"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        open_fixture(&f, &plain, bad[i]);
        assert_non_null(strstr(pith_engine_get_info(f.engine).cache_note, "not kept"));
        assert_int_equal(say(&f, prompt_of(200, 200, 0)).cache_miss, PITH_CACHE_MISS_OFF);
        assert_as_computed(&f, &plain, prompt_of(200, 200, 0));
        close_fixture(&f);
    }
}

/* Two engines at once, each storing and reading what the other stores. */
static void two_engines_share_a_folder(void **state) {
    fixture a, b;
    (void)state;
    open_fixture(&a, &plain, folder);
    open_fixture(&b, &plain, folder);
    for (int i = 1; i <= 6; i++) {
        fixture *one = i % 2 ? &a : &b, *other = i % 2 ? &b : &a;
        pith_session_cut(one->session, 0);
        pith_session_cut(other->session, 0);
        say(one, prompt_of(200, 0, i));
        wait_for_entries((size_t)i);
        assert_int_equal(say(other, prompt_of(200, 0, i)).n_cached, 199);
        assert_as_computed(other, &plain, prompt_of(200, 0, i));
    }
    close_fixture(&a);
    close_fixture(&b);
}

/* Left-overs of writers that died: files without a row go, a row without a file is no answer. */
static void left_overs_are_swept(void **state) {
    fixture f;
    pith_output *output;
    char path[1400];
    static const char *const names[] = {"e77.kv1", "e78.kv1.0badf00d.part", "e1.kv1.0badf00d.part"};
    (void)state;
    store(&plain, prompt_of(128, 128, 0), 1);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(pith_output_open(path, &output, NULL), PITH_OK);
        assert_int_equal(pith_output_commit(output, NULL), PITH_OK);
        pith_output_close(output);
    }
    assert_int_equal(entry_files().n, 4);
    open_fixture(&f, &plain, folder);
    say(&f, prompt_of(300, 300, 0));
    wait_for_entries(2);
    assert_int_equal(entry_files().n, 2);
    close_fixture(&f);
}

/* A prompt that is broken off is stored as far as it was read. */
static void broken_off_prompts_are_stored_in_part(void **state) {
    fixture f;
    pith_reply *reply;
    const pith_generate_options options = {.size = sizeof options, .max_tokens = 1};
    (void)state;
    open_fixture(&f, &plain, folder);
    assert_int_equal(
        pith_reply_open(f.session, f.sampler, prompt_of(400, 400, 0), &options, &reply, NULL),
        PITH_OK);
    for (int i = 0; i < 5; i++) pith_engine_advance(f.engine); /* 240 tokens */
    pith_reply_close(reply);
    wait_for_entries(1);
    assert_int_equal(list().end, 192);
    close_fixture(&f);
    open_fixture(&f, &plain, folder);
    assert_int_equal(say(&f, prompt_of(400, 400, 0)).n_cached, 192);
    assert_as_computed(&f, &plain, prompt_of(400, 400, 0));
    close_fixture(&f);
}

/* A ceiling that has no room for the buffers is kept all the same: prompts are not. */
static void memory_is_accounted_for(void **state) {
    pith_engine_options options = {.cache_folder = folder, .n_sessions = 1};
    fixture f;
    (void)state;
    open_with(&f, &plain, &options);
    pith_engine_info info = pith_engine_get_info(f.engine);
    assert_int_equal(info.cache_bytes, pith_prefix_bytes(&f.engine->layout, N_CTX));
    close_fixture(&f);
    uint64_t all = info.kv_bytes + info.workspace_bytes + info.cache_bytes;
    for (int less = 0; less < 2; less++) {
        options.memory_limit = all - (uint64_t)less;
        open_with(&f, &plain, &options);
        info = pith_engine_get_info(f.engine);
        assert_int_equal(info.cache_bytes == 0, less);
        assert_int_equal(strstr(info.cache_note, "no memory") != NULL, less);
        assert_int_equal(say(&f, prompt_of(200, 200, 0)).cache_miss,
                         less ? PITH_CACHE_MISS_OFF : PITH_CACHE_MISS_NEW);
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_read_is_what_is_computed, clean_folder),
        cmocka_unit_test_setup(parts_join, clean_folder),
#if !defined(_WIN32)
        cmocka_unit_test_setup(parts_are_opened_one_at_a_time, clean_folder),
#endif
        cmocka_unit_test_setup(a_missing_part_ends_the_chain, clean_folder),
        cmocka_unit_test_setup(the_source_is_told, clean_folder),
        cmocka_unit_test_setup(a_session_is_lengthened, clean_folder),
        cmocka_unit_test_setup(other_settings_are_told_apart, clean_folder),
        cmocka_unit_test_setup(steps_and_threads_share, clean_folder),
        cmocka_unit_test_setup(short_prompts_are_not_stored, clean_folder),
        cmocka_unit_test_setup(damaged_files_are_forgotten, clean_folder),
        cmocka_unit_test_setup(whole_parts_are_taken, clean_folder),
        cmocka_unit_test_setup(missing_files_are_forgotten, clean_folder),
        cmocka_unit_test_setup(swapped_files_are_no_answer, clean_folder),
        cmocka_unit_test_setup(a_damaged_index_is_made_anew, clean_folder),
        cmocka_unit_test_setup(garbage_in_place_of_the_index, clean_folder),
        cmocka_unit_test_setup(the_quota_is_kept, clean_folder),
        cmocka_unit_test_setup(a_prompt_never_drives_out_its_own_beginning, clean_folder),
        cmocka_unit_test_setup(cache_at_saves_what_no_place_sees, clean_folder),
        cmocka_unit_test_setup(folders_that_cannot_be_used_are_told, clean_folder),
        cmocka_unit_test_setup(two_engines_share_a_folder, clean_folder),
        cmocka_unit_test_setup(left_overs_are_swept, clean_folder),
        cmocka_unit_test_setup(broken_off_prompts_are_stored_in_part, clean_folder),
        cmocka_unit_test_setup(memory_is_accounted_for, clean_folder),
    };
    if (!pith_prefix_index_library()) {
        print_message("skipped: this build has no SQLite\n");
        return 0;
    }
    return cmocka_run_group_tests_name("prompts on disk", tests, NULL, NULL);
}
