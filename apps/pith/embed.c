/* SPDX-License-Identifier: Apache-2.0
 * `pith embed`: a vector for each text, from the model's final states. JSON and plain output give
 * vectors of length 1, whose dot product is their likeness; --raw gives float32 as pooled.
 * Invariant: texts are tokenized before the engine is made, so that its context is that of the
 * longest; the output file appears whole or not at all. */
#include "base/memory.h"
#include "base/output.h"
#include "pith/cli.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { MOST_BYTES = 256 << 20, MOST_TEXTS = 1 << 20 };

typedef struct embed_options {
    pith_cli_model model;
    const char *file, *ids, *out;
    int pooling;
    bool json, raw;
} embed_options;

typedef struct embed_text {
    int32_t *ids; /* owned, [n] */
    size_t n;
} embed_text;

typedef struct embed_job {
    const embed_options *options;
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    embed_text *texts; /* [n_texts] */
    size_t n_texts, longest;
    size_t width;
    float *vectors; /* [n_texts, width] */
} embed_job;

/* ---- Texts ---- */

static int add_text(embed_job *job, const char *text, size_t size) {
    pith_error error = {0};
    embed_text *t = &job->texts[job->n_texts];
    t->ids = pith_cli_tokenize(job->model, text, size, PITH_TOKENIZE_ADD_SPECIAL, &t->n, &error);
    if (!t->ids) return pith_cli_fail(&error);
    job->n_texts++;
    if (t->n == 0) return pith_cli_fail_text("text %zu has no tokens", job->n_texts);
    if (t->n > job->longest) job->longest = t->n;
    return -1;
}

static int add_ids(embed_job *job, const char *list) {
    pith_error error = {0};
    embed_text *t = &job->texts[0];
    t->ids = pith_cli_parse_ids(list, strlen(list), &t->n, &error);
    if (!t->ids) return pith_cli_fail(&error);
    job->n_texts = 1;
    job->longest = t->n;
    return t->n > 0 ? -1 : pith_cli_fail_text("there are no ids");
}

/* Each line of the file is a text, also an empty one: vectors and lines stay in step. */
static int add_lines(embed_job *job, const pith_buffer *file) {
    int code = -1;
    size_t number = 0;
    for (size_t at = 0; at < file->size && code < 0;) {
        const char *line = file->data + at, *end = memchr(line, '\n', file->size - at);
        size_t size = end ? (size_t)(end - line) : file->size - at;
        at += size + 1;
        if (size > 0 && line[size - 1] == '\r') size--;
        number++;
        code = add_text(job, line, size);
        if (code >= 0)
            fprintf(stderr, "note: that is line %zu of %s\n", number, job->options->file);
    }
    return code;
}

static size_t count_lines(const pith_buffer *file) {
    size_t n = 1;
    for (size_t i = 0; i < file->size; i++) n += file->data[i] == '\n';
    return n;
}

static int collect(embed_job *job, const char *const *words, size_t n_words) {
    pith_buffer file = {0};
    pith_error error = {0};
    const char *name = job->options->file;
    if (name && !pith_cli_read_file(name, MOST_BYTES, &file, &error)) {
        pith_buffer_deinit(&file);
        return pith_cli_fail(&error);
    }
    size_t n = n_words + (name ? count_lines(&file) : 0) + 1;
    int code = -1;
    if (n > MOST_TEXTS)
        code = pith_cli_fail_text("%zu texts are over %d, the limit", n, MOST_TEXTS);
    if (code < 0) job->texts = pith_alloc_zero(n, sizeof *job->texts);
    if (code < 0 && !job->texts) code = pith_cli_fail_text("out of memory for %zu texts", n);
    if (code < 0 && job->options->ids) code = add_ids(job, job->options->ids);
    for (size_t i = 0; i < n_words && code < 0; i++)
        code = add_text(job, words[i], strlen(words[i]));
    if (code < 0 && name) code = add_lines(job, &file);
    if (code < 0 && job->n_texts == 0) code = pith_cli_fail_text("there is no text in %s", name);
    pith_buffer_deinit(&file);
    return code;
}

/* ---- Vectors ---- */

/* To length 1; a vector of zeros stays. */
static void normalise(float *vector, size_t n) {
    double square = 0;
    for (size_t i = 0; i < n; i++) square += (double)vector[i] * (double)vector[i];
    if (!(square > 0)) return;
    double scale = 1 / sqrt(square);
    for (size_t i = 0; i < n; i++) vector[i] = (float)((double)vector[i] * scale);
}

static bool is_finite(const float *vector, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(vector[i])) return false;
    return true;
}

static int compute(embed_job *job) {
    pith_error error = {0};
    pith_cli_progress progress = pith_cli_progress_start("reading");
    int code = -1;
    job->vectors = pith_alloc_zero(job->n_texts * job->width, sizeof *job->vectors);
    if (!job->vectors) return pith_cli_fail_text("out of memory for %zu vectors", job->n_texts);
    for (size_t i = 0; i < job->n_texts && code < 0; i++) {
        float *vector = job->vectors + i * job->width;
        pith_status status =
            pith_session_embed(job->session, job->texts[i].ids, job->texts[i].n,
                               (pith_pooling)job->options->pooling, vector, &error);
        if (status == PITH_OK && !is_finite(vector, job->width))
            status = pith_fail(&error, PITH_ERROR_FORMAT,
                               "the vector of text %zu has values that are no numbers: the "
                               "model's weights are damaged",
                               i + 1);
        if (status == PITH_OK)
            pith_cli_progress_step(&progress, (double)(i + 1) / (double)job->n_texts);
        else
            code = PITH_EXIT_FAILURE;
        if (!job->options->raw) normalise(vector, job->width);
    }
    pith_cli_progress_end(&progress);
    return code < 0 ? code : pith_cli_fail(&error);
}

/* ---- Output ---- */

static json_t *vectors_json(const embed_job *job) {
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_texts; i++) {
        json_t *vector = json_array();
        for (size_t k = 0; k < job->width; k++)
            json_array_append_new(vector, json_real((double)job->vectors[i * job->width + k]));
        json_array_append_new(list, vector);
    }
    return list;
}

static int print_json(const embed_job *job) {
    size_t n_tokens = 0;
    for (size_t i = 0; i < job->n_texts; i++) n_tokens += job->texts[i].n;
    return pith_cli_print_json(json_pack(
        "{s:o, s:I, s:I, s:s}", "embeddings", vectors_json(job), "width", (json_int_t)job->width,
        "prompt_n", (json_int_t)n_tokens, "backend", pith_engine_describe(job->engine).backend));
}

static int print_lines(const embed_job *job) {
    for (size_t i = 0; i < job->n_texts; i++)
        for (size_t k = 0; k < job->width; k++)
            printf("%.9g%c", (double)job->vectors[i * job->width + k],
                   k + 1 < job->width ? ' ' : '\n');
    return pith_cli_finish();
}

/* A pipe or a device keeps its place. */
static int write_device(const char *path, const void *data, size_t bytes) {
    FILE *file = pith_cli_open_file(path, "wb");
    if (!file) return pith_cli_fail_text("%s could not be opened: %s", path, strerror(errno));
    bool ok = fwrite(data, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !ok)
        return pith_cli_fail_text("%s could not be written: %s", path, strerror(errno));
    return PITH_EXIT_OK;
}

static int write_raw(const embed_job *job) {
    pith_error error = {0};
    pith_output *output = NULL;
    const size_t bytes = job->n_texts * job->width * sizeof *job->vectors;
    const char *path = job->options->out;
    if (!path) {
        fwrite(job->vectors, 1, bytes, stdout);
        return pith_cli_finish();
    }
    if (pith_cli_is_device(path)) return write_device(path, job->vectors, bytes);
    pith_status status = pith_output_open(path, &output, &error);
    if (status == PITH_OK) status = pith_output_write(output, job->vectors, bytes, &error);
    if (status == PITH_OK) status = pith_output_commit(output, &error);
    pith_output_close(output);
    return status == PITH_OK ? PITH_EXIT_OK : pith_cli_fail(&error);
}

/* ---- The command ---- */

static int embed(const pith_cli_command *command, const embed_options *o, const char *const *words,
                 size_t n_words) {
    embed_job job = {.options = o};
    int code = pith_cli_open_model(command, &o->model, false, &job.model);
    if (code < 0) code = collect(&job, words, n_words);
    if (code < 0) {
        job.width = (size_t)pith_model_describe(job.model).n_embd;
        const int32_t wanted = job.longest > INT32_MAX ? INT32_MAX : (int32_t)job.longest;
        code = pith_cli_open_engine(&o->model, job.model, wanted, &job.engine, &job.session);
    }
    if (code < 0) code = compute(&job);
    if (code < 0) code = o->raw ? write_raw(&job) : o->json ? print_json(&job) : print_lines(&job);
    for (size_t i = 0; i < job.n_texts; i++) pith_free(job.texts[i].ids);
    pith_free(job.texts);
    pith_free(job.vectors);
    pith_session_free(job.session);
    pith_engine_free(job.engine);
    pith_model_close(job.model);
    return code;
}

static int check(const pith_cli_command *command, const embed_options *o, int n_words) {
    if (o->ids && (n_words > 0 || o->file))
        return pith_cli_usage(command, "give either --ids or texts");
    if (!o->ids && n_words == 0 && !o->file)
        return pith_cli_usage(command, "give a text, --file or --ids");
    if (o->json && o->raw) return pith_cli_usage(command, "give either --json or --raw");
    if (o->out && !o->raw) return pith_cli_usage(command, "-o needs --raw");
    if (o->raw && !o->out && pith_cli_is_terminal(stdout))
        return pith_cli_usage(command, "--raw gives bytes and no text for a terminal: give -o");
    return -1;
}

int pith_command_embed(int argc, char **argv) {
    embed_options o = {0};
    pith_cli_option table[PITH_CLI_MODEL_OPTIONS + 6] = {{0}};
    const pith_cli_option own[] = {
        {"file", 'f', PITH_CLI_TEXT, &o.file, "FILE",
         "a text from each line of FILE, empty ones too (- is stdin)", 0, 0},
        {"ids", 0, PITH_CLI_TEXT, &o.ids, "1,2,3", "token ids instead of texts", 0, 0},
        {"pooling", 0, PITH_CLI_CHOICE, &o.pooling, "auto|mean|first|last",
         "how states become a vector (default: the model's, else mean)", 0, 0},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "{\"embeddings\"} instead of lines", 0, 0},
        {"raw", 0, PITH_CLI_FLAG, &o.raw, "", "float32 as pooled, not brought to length 1", 0, 0},
        {"out", 'o', PITH_CLI_TEXT, &o.out, "OUT.f32", "with --raw: where they go", 0, 0},
    };
    pith_cli_model_options(&o.model, table);
    o.model.embeds = true;
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    pith_cli_command command = {
        "pith embed -m MODEL [options] TEXT ...", "Turns texts into vectors (embeddings).", table,
        sizeof table / sizeof table[0],
        "Vectors have length 1: the dot product of two tells how alike their texts are."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0) code = check(&command, &o, n_words);
    if (code < 0) code = embed(&command, &o, words, (size_t)n_words);
    pith_free(words);
    return code;
}
