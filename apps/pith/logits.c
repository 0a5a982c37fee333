/* SPDX-License-Identifier: Apache-2.0
 * `pith logits`: the raw logits of given ids, float32 [n, n_vocab], row-major, no header. --trace
 * DIR also writes every named buffer of the computation as DIR/NNNNN_NAME.f32, listed in
 * DIR/index.txt as `NNNNN NAME rows width`.
 * Invariant: the output file appears whole or not at all. */
#include "base/memory.h"
#include "base/output.h"
#include "pith/reply_option.h"

#include <errno.h>
#include <string.h>

typedef struct logits_options {
    pith_cli_model model;
    const char *ids, *ids_file, *out, *trace;
    bool json;
} logits_options;

/* Where the rows go: a file that appears whole, or a stream (standard output, a device). */
typedef struct logits_writer {
    pith_output *output;
    FILE *stream;
    const char *name; /* of the stream */
    size_t n_vocab, n_rows, n_ids;
    pith_cli_progress progress;
    pith_status status; /* of the first write that failed, described in error */
    pith_error error;
    const char *trace;
    FILE *index;
    uint32_t n_traced;
} logits_writer;

/* Keeps the first failure: `what` could not be written, as errno says. */
static void fail_write(logits_writer *w, const char *what) {
    int code = errno ? errno : EIO;
    if (w->status == PITH_OK)
        w->status = pith_fail(&w->error, PITH_ERROR_IO, "%s could not be written: %s", what,
                              strerror(code));
}

static int on_rows(void *user, size_t first, size_t n, const float *logits) {
    logits_writer *w = user;
    size_t bytes = sizeof *logits * w->n_vocab * n;
    errno = 0;
    if (w->output)
        w->status = pith_output_write(w->output, logits, bytes, &w->error);
    else if (fwrite(logits, 1, bytes, w->stream) != bytes)
        fail_write(w, w->name);
    w->n_rows = first + n;
    return pith_cli_progress_step(&w->progress, (double)w->n_rows / (double)w->n_ids) ||
           w->status != PITH_OK;
}

static void on_trace(void *user, const char *name, size_t n_rows, size_t width,
                     const float *values) {
    logits_writer *w = user;
    char clean[128];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof clean; n++)
        clean[n] = strchr("/\\ :", name[n]) ? '_' : name[n];
    clean[n] = 0;
    pith_buffer path = {0};
    pith_buffer_append_format(&path, "%s/%05u_%s.f32", w->trace, (unsigned)w->n_traced, clean);
    errno = 0;
    FILE *file = path.failed ? NULL : pith_cli_open_file(path.data, "wb");
    bool ok = file && fwrite(values, sizeof *values * width, n_rows, file) == n_rows;
    if (file && fclose(file) != 0) ok = false;
    if (!ok) fail_write(w, path.failed ? w->trace : path.data);
    fprintf(w->index, "%05u %s %zu %zu\n", (unsigned)w->n_traced, name, n_rows, width);
    w->n_traced++;
    pith_buffer_deinit(&path);
}

static int open_trace(logits_writer *w) {
    pith_buffer path = {0};
    int code = pith_cli_make_folder(w->trace);
    if (code != 0)
        return pith_cli_fail_text("folder %s could not be made: %s", w->trace, strerror(code));
    pith_buffer_append_format(&path, "%s/index.txt", w->trace);
    w->index = path.failed ? NULL : pith_cli_open_file(path.data, "w");
    code = w->index ? -1
                    : pith_cli_fail_text("%s/index.txt could not be written: %s", w->trace,
                                         strerror(errno));
    pith_buffer_deinit(&path);
    return code;
}

static int open_output(const logits_options *o, logits_writer *w) {
    pith_error error = {0};
    w->name = o->out ? o->out : "standard output";
    if (!o->out)
        w->stream = stdout;
    else if (pith_cli_is_device(o->out))
        w->stream = pith_cli_open_file(o->out, "wb");
    else
        return pith_output_open(o->out, &w->output, &error) == PITH_OK ? -1 : pith_cli_fail(&error);
    return w->stream ? -1
                     : pith_cli_fail_text("%s could not be opened: %s", o->out, strerror(errno));
}

static int close_output(logits_writer *w, int code) {
    pith_error error = {0};
    if (w->index && fclose(w->index) != 0 && code < 0)
        code =
            pith_cli_fail_text("%s/index.txt could not be written: %s", w->trace, strerror(errno));
    if (w->output && code < 0 && pith_output_commit(w->output, &error) != PITH_OK)
        code = pith_cli_fail(&error);
    pith_output_close(w->output);
    if (w->stream && w->stream != stdout && fclose(w->stream) != 0 && code < 0)
        code = pith_cli_fail_text("%s could not be written: %s", w->name, strerror(errno));
    return code;
}

static int write_logits(const logits_options *o, pith_engine *engine, pith_session *session,
                        const int32_t *ids, logits_writer *w) {
    pith_error error = {0};
    pith_cli_end_watch(session); /* from the first file on there is something to clear away */
    int code = open_output(o, w);
    if (code < 0 && w->trace) code = open_trace(w);
    if (code < 0) {
        if (w->trace) pith_engine_trace(engine, on_trace, w);
        w->progress = pith_cli_progress_start("computing logits");
        pith_status status = pith_session_append_rows(session, ids, w->n_ids, on_rows, w, &error);
        pith_cli_progress_end(&w->progress);
        if (w->status != PITH_OK)
            code = pith_cli_fail(&w->error);
        else if (status != PITH_OK)
            code = pith_cli_fail(&error);
    }
    code = close_output(w, code);
    pith_cli_end_watch(NULL);
    if (code >= 0) return code;
    if (!o->json) return pith_cli_finish();
    return pith_cli_print_json(json_pack("{s:I, s:I, s:s}", "rows", (json_int_t)w->n_rows,
                                         "n_vocab", (json_int_t)w->n_vocab, "backend",
                                         pith_engine_describe(engine).backend));
}

static int run_logits(const pith_cli_command *command, const logits_options *o, const int32_t *ids,
                      size_t n_ids) {
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    int code = pith_cli_open_model(command, &o->model, false, &model);
    if (code < 0) {
        pith_model_info info = pith_model_describe(model);
        size_t wanted = n_ids > 512 ? n_ids : 512;
        if (wanted > (size_t)info.n_ctx_train && n_ids <= (size_t)info.n_ctx_train)
            wanted = (size_t)info.n_ctx_train;
        if (wanted > INT32_MAX) wanted = INT32_MAX;
        code = pith_cli_open_engine(&o->model, model, (int32_t)wanted, &engine, &session);
        logits_writer w = {.n_vocab = (size_t)info.n_vocab, .n_ids = n_ids, .trace = o->trace};
        if (code < 0) code = write_logits(o, engine, session, ids, &w);
    }
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return code;
}

/* Reads the ids and computes. */
static int run(const pith_cli_command *command, const logits_options *o) {
    pith_buffer text = {0};
    pith_error error = {0};
    size_t n_ids = 0;
    int32_t *ids = NULL;
    if (o->ids)
        pith_buffer_append_text(&text, o->ids);
    else
        pith_cli_read_file(o->ids_file, (size_t)256 << 20, &text, &error);
    if (error.status == PITH_OK)
        ids = pith_cli_parse_ids(text.data ? text.data : "", text.size, &n_ids, &error);
    int code;
    if (!ids)
        code = pith_cli_fail(&error);
    else
        code = n_ids ? run_logits(command, o, ids, n_ids)
                     : pith_cli_usage(command, "there are no ids");
    pith_free(ids);
    pith_buffer_deinit(&text);
    return code;
}

int pith_command_logits(int argc, char **argv) {
    logits_options o = {0};
    pith_cli_option table[PITH_CLI_MODEL_OPTIONS + PITH_CLI_ADAPTER_OPTIONS + 5] = {{0}};
    pith_cli_option *rest = table + PITH_CLI_MODEL_OPTIONS;
    const pith_cli_option own[] = {
        {"ids", 0, PITH_CLI_TEXT, &o.ids, "1,2,3", "the token ids", 0, 0},
        {"ids-file", 0, PITH_CLI_TEXT, &o.ids_file, "FILE",
         "ids with commas or white space between (- is standard input)", 0, 0},
        {"out", 'o', PITH_CLI_TEXT, &o.out, "OUT.f32",
         "where the logits go (default: standard output)", 0, 0},
        {"trace", 0, PITH_CLI_TEXT, &o.trace, "DIR", "also write every named buffer into DIR", 0,
         0},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "a summary on standard output (needs -o)", 0, 0},
    };
    pith_cli_model_options(&o.model, table);
    pith_cli_adapter_options(&o.model, rest);
    memcpy(rest + PITH_CLI_ADAPTER_OPTIONS, own, sizeof own);
    pith_cli_command command = {
        "pith logits -m MODEL (--ids 1,2,3 | --ids-file F) [-o OUT.f32] [options]",
        "Computes the logits of token ids: float32 [n, n_vocab], row-major, no header.", table,
        sizeof table / sizeof table[0], NULL};
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code < 0 && !o.ids == !o.ids_file)
        code = pith_cli_usage(&command, "give either --ids or --ids-file");
    if (code < 0 && o.json && !o.out)
        code = pith_cli_usage(&command, "--json needs -o, since the logits go to standard output");
    if (code < 0 && !o.out && pith_cli_is_terminal(stdout))
        code = pith_cli_usage(&command, "logits are bytes and no text for a terminal: give -o");
    return code < 0 ? run(&command, &o) : code;
}
