/* SPDX-License-Identifier: Apache-2.0
 * `pith show`: what a person wants to know of a model, in some ten lines: architecture, parameters,
 * context, quantization, template, licence, size, whether it runs. `pith inspect` shows everything.
 * Invariant: what a file says of itself cannot steer the terminal. */
#include "base/calendar.h"
#include "base/memory.h"
#include "pith/models.h"
#include "pith/pull_progress.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_LIMIT = 256, TYPES_SHOWN = 4 };

typedef struct show_type {
    const char *name;
    uint64_t bytes;
} show_type;

typedef struct show_facts {
    const char *path;
    pith_file_summary summary;
    char model[VALUE_LIMIT], licence[VALUE_LIMIT], context[32], layers[32], quant[32];
    char types[VALUE_LIMIT]; /* "Q4_K 62 %, Q6_K 38 %" */
    size_t template_bytes;   /* of the chat template; 0: none */
    const char *source;
    char from[VALUE_LIMIT]; /* where it was pulled from */
    int64_t used;
    bool runs;
    pith_error why;
} show_facts;

/* The text of a key's value; "" without the key. The whole length is returned. */
static size_t value_of(const pith_file *file, const char *key, char *out, size_t capacity) {
    const char *name;
    out[0] = 0;
    for (uint64_t i = 0; (name = pith_file_key(file, i)); i++)
        if (strcmp(name, key) == 0) return pith_file_value_text(file, i, 4, out, capacity);
    return 0;
}

static size_t value_below(const pith_file *file, const char *architecture, const char *key,
                          char *out, size_t capacity) {
    char whole[128];
    snprintf(whole, sizeof whole, "%.60s.%s", architecture, key);
    return value_of(file, whole, out, capacity);
}

static int compare_types(const void *a, const void *b) {
    const show_type *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* Which types hold how much of the weights, the largest first. */
static void describe_types(const pith_file *file, char *out, size_t capacity) {
    show_type types[64] = {{0}};
    size_t n = 0, used = 0;
    uint64_t total = 0;
    pith_file_tensor tensor;
    out[0] = 0;
    for (uint64_t i = 0; pith_file_tensor_at(file, i, &tensor); i++) {
        size_t at = 0;
        while (at < n && strcmp(types[at].name, tensor.type) != 0) at++;
        if (at == sizeof types / sizeof types[0]) continue;
        if (at == n) types[n++].name = tensor.type;
        types[at].bytes += tensor.bytes;
        total += tensor.bytes;
    }
    qsort(types, n, sizeof *types, compare_types);
    for (size_t i = 0; i < n && i < TYPES_SHOWN && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%s %.0f %%", i ? ", " : "",
                                 types[i].name,
                                 total ? (double)types[i].bytes * 100 / (double)total : 0.0);
}

static void read_record(show_facts *facts) {
    json_t *record = pith_cli_pulled_read(facts->path);
    const char *from = json_string_value(json_object_get(record, "source"));
    const char *licence = json_string_value(json_object_get(record, "licence"));
    snprintf(facts->from, sizeof facts->from, "%s", from ? from : "");
    if (!facts->licence[0] && licence)
        snprintf(facts->licence, sizeof facts->licence, "%s", licence);
    json_decref(record);
}

static void read_facts(const pith_file *file, show_facts *facts) {
    char text[VALUE_LIMIT];
    facts->summary = pith_file_summarize(file);
    const char *architecture = facts->summary.architecture;
    value_of(file, "general.name", facts->model, sizeof facts->model);
    value_of(file, "general.license", facts->licence, sizeof facts->licence);
    value_below(file, architecture, "context_length", facts->context, sizeof facts->context);
    value_below(file, architecture, "block_count", facts->layers, sizeof facts->layers);
    facts->template_bytes = value_of(file, "tokenizer.chat_template", text, sizeof text);
    describe_types(file, facts->types, sizeof facts->types);
    pith_cli_name_quant(facts->path, facts->quant);
    facts->runs = pith_file_check(file, &facts->why) == PITH_OK;
    facts->used = pith_cli_last_used(facts->path);
    read_record(facts);
}

static void print_line(const char *label, const char *text) {
    printf("%-14s ", label);
    pith_cli_print_clean(stdout, text, strlen(text), 400);
    putchar('\n');
}

static int print_text(const show_facts *f) {
    char size[32], line[600];
    const pith_file_summary *s = &f->summary;
    double bits = s->n_parameters ? (double)s->tensor_bytes * 8 / (double)s->n_parameters : 0;
    print_line("name", f->model[0] ? f->model : "not told");
    print_line("file", f->path);
    snprintf(line, sizeof line, "%s%s%s", f->source, f->from[0] ? ", from " : "", f->from);
    print_line("source", line);
    snprintf(line, sizeof line, "%s, %s layers", s->architecture,
             f->layers[0] ? f->layers : "unknown number of");
    print_line("architecture", line);
    printf("%-14s %.1f M\n", "parameters", (double)s->n_parameters * 1e-6);
    snprintf(line, sizeof line, "%s tokens", f->context[0] ? f->context : "unknown number of");
    print_line("context", line);
    snprintf(line, sizeof line, "%s%s%s, %.2f bits a weight", f->quant, f->quant[0] ? ": " : "",
             f->types, bits);
    print_line("quantization", line);
    snprintf(line, sizeof line, f->template_bytes ? "yes, %zu bytes" : "none: no chat model",
             f->template_bytes);
    print_line("chat template", line);
    print_line("licence", f->licence[0] ? f->licence : "not told; see the publisher's page");
    pith_cli_bytes_text(s->total_bytes, size, sizeof size);
    printf("%-14s %s in %u file%s\n", "size", size, (unsigned)s->n_shards,
           s->n_shards == 1 ? "" : "s");
    snprintf(line, sizeof line, "%s%s", f->runs ? "yes" : "no: ", f->runs ? "" : f->why.text);
    print_line("runs", line);
    return pith_cli_finish();
}

static int print_json(const show_facts *f) {
    const pith_file_summary *s = &f->summary;
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:I}", "name", pith_cli_json_string(f->model), "path",
        pith_cli_json_string(f->path), "source", f->source, "from", pith_cli_json_string(f->from),
        "architecture", pith_cli_json_string(s->architecture), "parameters",
        (json_int_t)s->n_parameters, "layers", (json_int_t)strtoll(f->layers, NULL, 10), "context",
        (json_int_t)strtoll(f->context, NULL, 10));
    json_t *more = json_pack("{s:s, s:o, s:b, s:o, s:I, s:i, s:b, s:o}", "quant", f->quant, "types",
                             pith_cli_json_string(f->types), "template", f->template_bytes > 0,
                             "licence", pith_cli_json_string(f->licence), "bytes",
                             (json_int_t)s->total_bytes, "files", (int)s->n_shards, "runs", f->runs,
                             "why", pith_cli_json_string(f->runs ? "" : f->why.text));
    json_object_set_new(json, "used", f->used ? json_integer(f->used) : json_null());
    json_object_update(json, more);
    json_decref(more);
    return pith_cli_print_json(json);
}

/* Who keeps the file. */
static const char *source_of(const char *path) {
    pith_cli_found_list list;
    const char *source = "file";
    pith_cli_find_models(&list);
    for (size_t i = 0; i < list.n; i++) {
        const pith_cli_found *found = &list.items[i];
        if (found->origin != PITH_CLI_ORIGIN_PARTIAL && strcmp(found->path, path) == 0)
            source = pith_cli_origin_text(found->origin);
    }
    pith_cli_found_deinit(&list);
    return source;
}

static int show(const char *name, bool json) {
    pith_error error = {0};
    pith_file *file = NULL;
    char *path = pith_cli_find_model(name, &error);
    if (!path || pith_file_open(path, &file, &error) != PITH_OK) {
        pith_free(path);
        return pith_cli_fail(&error);
    }
    show_facts *facts = pith_alloc_zero(1, sizeof *facts);
    int code;
    if (facts) {
        facts->path = path;
        facts->source = source_of(path);
        read_facts(file, facts);
        code = json ? print_json(facts) : print_text(facts);
    } else {
        code = pith_cli_fail_text("out of memory");
    }
    pith_free(facts);
    pith_file_close(file);
    pith_free(path);
    return code;
}

int pith_command_show(int argc, char **argv) {
    bool json = false;
    pith_cli_option table[] = {{"json", 0, PITH_CLI_FLAG, &json, "", "as JSON", 0, 0}};
    pith_cli_command command = {"pith show NAME|FILE [--json]",
                                "Shows what a model is and whether it runs here.", table, 1,
                                "`pith inspect` shows all metadata and tensors."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words != 1) code = pith_cli_usage(&command, "give one NAME or FILE");
    if (code < 0) code = show(words[0], json);
    pith_free(words);
    return code;
}
