/* SPDX-License-Identifier: Apache-2.0
 * `pith logits`: the raw logits of given ids, float32 [n, n_vocab], row-major, no header. --trace
 * DIR also writes every named buffer of
 * the computation as DIR/NNNN_NAME.f32 with an index. The output file appears whole or not at all.
 * */
#include "base/memory.h"
#include "pith/cli.h"

#include <errno.h>
#include <string.h>
#if defined(_WIN32)
#include <direct.h>
#define MAKE_FOLDER(path) _mkdir(path)
#else
#include <sys/stat.h>
#define MAKE_FOLDER(path) mkdir(path, 0777)
#endif

typedef struct logits_options {
    pith_cli_model model;
    const char *ids, *ids_file, *out, *trace;
    bool json;
} logits_options;

typedef struct logits_writer {
    FILE *file;
    size_t n_vocab, n_rows;
    int write_error; /* errno of the first failed write */
    pith_cli_progress progress;
    size_t n_ids;
    const char *trace;
    FILE *index;
    uint32_t n_traced;
} logits_writer;

static int on_rows(void *user, size_t first, size_t n, const float *logits) {
    logits_writer *w = user;
    if (fwrite(logits, sizeof *logits * w->n_vocab, n, w->file) != n) {
        w->write_error = errno ? errno : EIO;
        return 1;
    }
    w->n_rows = first + n;
    return pith_cli_progress_step(&w->progress, (double)w->n_rows / (double)w->n_ids);
}

static void on_trace(void *user, const char *name, size_t n_rows, size_t width,
                     const float *values) {
    logits_writer *w = user;
    char path[1024], clean[128];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof clean; n++)
        clean[n] = strchr("/\\ :", name[n]) ? '_' : name[n];
    clean[n] = 0;
    snprintf(path, sizeof path, "%s/%05u_%s.f32", w->trace, (unsigned)w->n_traced, clean);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(values, sizeof *values * width, n_rows, file) != n_rows)
        w->write_error = errno ? errno : EIO;
    if (file && fclose(file) != 0) w->write_error = errno;
    fprintf(w->index, "%05u %s %zu %zu\n", (unsigned)w->n_traced, name, n_rows, width);
    w->n_traced++;
}

static int write_logits(const logits_options *o, pith_engine *engine, pith_session *session,
                        const int32_t *ids, logits_writer *w) {
    pith_error error = {0};
    if (o->trace) pith_engine_trace(engine, on_trace, w);
    w->progress = pith_cli_progress_start("computing logits", o->json);
    pith_status status = pith_session_append_rows(session, ids, w->n_ids, on_rows, w, &error);
    pith_cli_progress_end(&w->progress);
    if (w->write_error)
        return pith_cli_fail_text("the logits could not be written: %s", strerror(w->write_error));
    return status == PITH_OK ? -1 : pith_cli_fail(&error);
}

static int open_trace(logits_writer *w) {
    char path[1024];
    if (MAKE_FOLDER(w->trace) != 0 && errno != EEXIST)
        return pith_cli_fail_text("folder %s could not be made: %s", w->trace, strerror(errno));
    snprintf(path, sizeof path, "%s/index.txt", w->trace);
    w->index = fopen(path, "w");
    return w->index ? -1 : pith_cli_fail_text("%s could not be written: %s", path, strerror(errno));
}

/* Computes into a file beside the wanted one and renames it; without -o into stdout. */
static int to_output(const logits_options *o, pith_engine *engine, pith_session *session,
                     const int32_t *ids, logits_writer *w) {
    pith_buffer part = {0};
    int code = -1;
    w->file = stdout;
    if (o->out) {
        pith_buffer_append_format(&part, "%s.part", o->out);
        w->file = part.failed ? NULL : fopen(part.data, "wb");
        if (!w->file)
            code = pith_cli_fail_text("%s could not be written: %s", o->out, strerror(errno));
    }
    if (code < 0 && o->trace) code = open_trace(w);
    if (code < 0) code = write_logits(o, engine, session, ids, w);
    if (w->index && fclose(w->index) != 0 && code < 0)
        code = pith_cli_fail_text("the trace could not be written");
    if (o->out && w->file) {
        if (fclose(w->file) != 0 && code < 0)
            code = pith_cli_fail_text("%s could not be written: %s", o->out, strerror(errno));
        if (code < 0 && rename(part.data, o->out) != 0)
            code = pith_cli_fail_text("%s could not be renamed: %s", part.data, strerror(errno));
        if (code >= 0) remove(part.data);
    }
    pith_buffer_deinit(&part);
    if (code >= 0) return code;
    if (o->json)
        return pith_cli_print_json(json_pack("{s:I, s:I, s:s}", "rows", (json_int_t)w->n_rows,
                                             "n_vocab", (json_int_t)w->n_vocab, "backend",
                                             pith_engine_describe(engine).backend));
    return pith_cli_finish();
}

static int run_logits(const pith_cli_command *command, const logits_options *o, const int32_t *ids,
                      size_t n_ids) {
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    int code = pith_cli_open_model(command, &o->model, false, &model);
    if (code < 0) {
        pith_model_info info = pith_model_describe(model);
        int32_t wanted = n_ids > 512 ? (int32_t)n_ids : 512;
        if (wanted > info.n_ctx_train && (int32_t)n_ids <= info.n_ctx_train)
            wanted = info.n_ctx_train;
        code = pith_cli_open_engine(&o->model, model, wanted, &engine, &session);
        logits_writer w = {.n_vocab = (size_t)info.n_vocab, .n_ids = n_ids, .trace = o->trace};
        if (code < 0) code = to_output(o, engine, session, ids, &w);
    }
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return code;
}

int pith_command_logits(int argc, char **argv) {
    logits_options o = {0};
    pith_cli_option table[PITH_CLI_MODEL_OPTIONS + 5] = {{0}};
    pith_cli_option own[] = {
        {"ids", 0, PITH_CLI_TEXT, &o.ids, "1,2,3", "the token ids", 0, 0},
        {"ids-file", 0, PITH_CLI_TEXT, &o.ids_file, "FILE",
         "ids in a file, separated by commas or white space", 0, 0},
        {"out", 'o', PITH_CLI_TEXT, &o.out, "OUT.f32",
         "where the logits go (default: standard output)", 0, 0},
        {"trace", 0, PITH_CLI_TEXT, &o.trace, "DIR", "also write every named buffer into DIR", 0,
         0},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "a summary on standard output (needs -o)", 0, 0},
    };
    pith_cli_model_options(&o.model, table);
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    pith_cli_command command = {
        "pith logits -m MODEL (--ids 1,2,3 | --ids-file F) [-o OUT.f32] [options]",
        "Computes the logits of token ids: float32 [n, n_vocab], row-major, no header.", table,
        sizeof table / sizeof table[0], NULL};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    size_t n_ids = 0;
    pith_buffer text = {0};
    pith_error error = {0};
    int32_t *ids = NULL;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words > 0) code = pith_cli_usage(&command, "what is '%s'?", words[0]);
    if (code < 0 && !o.ids == !o.ids_file)
        code = pith_cli_usage(&command, "give either --ids or --ids-file");
    if (code < 0 && o.json && !o.out)
        code = pith_cli_usage(&command, "--json needs -o, since the logits go to standard output");
    if (code < 0 && o.ids) pith_buffer_append_text(&text, o.ids);
    if (code < 0 && o.ids_file && !pith_cli_read_file(o.ids_file, (size_t)256 << 20, &text, &error))
        code = pith_cli_fail(&error);
    if (code < 0) {
        ids = pith_cli_parse_ids(text.data ? text.data : "", text.size, &n_ids, &error);
        if (!ids)
            code = pith_cli_fail(&error);
        else if (n_ids == 0)
            code = pith_cli_usage(&command, "there are no ids");
    }
    if (code < 0) code = run_logits(&command, &o, ids, n_ids);
    pith_free(ids);
    pith_buffer_deinit(&text);
    pith_free(words);
    return code;
}
