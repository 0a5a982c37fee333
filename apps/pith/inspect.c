/* SPDX-License-Identifier: Apache-2.0
 * `pith inspect`: metadata, tensors, sizes and chat template of a GGUF file (all parts of a split
 * one), without loading it. On a broken file it says where.
 * Invariant: names and values from the file cannot steer the terminal or break the JSON. */
#include "base/memory.h"
#include "pith/cli.h"

#include <string.h>

typedef struct inspect_options {
    bool json, tensors, metadata, template_only;
    int32_t items;
} inspect_options;

/* Value of key as text in *out (reset first). */
static void value_text(const pith_file *file, uint64_t index, size_t items, pith_buffer *out) {
    char small[256];
    size_t size = pith_file_value_text(file, index, items, small, sizeof small);
    pith_buffer_reset(out);
    if (size < sizeof small) {
        pith_buffer_append(out, small, size);
        return;
    }
    char *large = pith_alloc(size + 1);
    if (!large) {
        out->failed = true;
        return;
    }
    pith_file_value_text(file, index, items, large, size + 1);
    pith_buffer_append(out, large, size);
    pith_free(large);
}

enum { VALUE_SHOWN = 200, NAME_SHOWN = 400 };

/* A name in a column that is `width` wide. */
static void print_name(const char *name, int width) {
    size_t size = strlen(name);
    pith_cli_print_clean(stdout, name, size, NAME_SHOWN);
    for (int i = (int)(size < NAME_SHOWN ? size : NAME_SHOWN); i < width; i++) putchar(' ');
}

static void print_value(const char *key, const char *type, const pith_buffer *text) {
    fputs("  ", stdout);
    print_name(key, 44);
    printf(" %-9s ", type);
    pith_cli_print_clean(stdout, text->data ? text->data : "", text->size, VALUE_SHOWN);
    putchar('\n');
}

static void print_tensors(const pith_file *file) {
    uint32_t n_shards = pith_file_summarize(file).n_shards;
    pith_file_tensor t;
    for (uint64_t i = 0; pith_file_tensor_at(file, i, &t); i++) {
        char shape[96];
        int n = 0;
        for (uint32_t d = 0; d < t.n_dims && n < 80; d++)
            n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%llu", d ? " x " : "",
                          (unsigned long long)t.shape[d]);
        fputs("  ", stdout);
        print_name(t.name, 44);
        printf(" %-8s %-24s %14llu at %llu", t.type, n ? shape : "1", (unsigned long long)t.bytes,
               (unsigned long long)t.offset);
        if (n_shards > 1) printf(" of file %u", (unsigned)t.shard + 1);
        putchar('\n');
    }
}

static void print_summary(const pith_file *file, const char *path) {
    pith_error error = {0};
    pith_file_summary s = pith_file_summarize(file);
    bool runs = pith_file_check(file, &error) == PITH_OK;
    printf("%s\n  GGUF version %u, %u file%s, %.1f MB, %llu tensors, %.1f M parameters, %.2f bits "
           "each\n  architecture ",
           path, (unsigned)s.version, (unsigned)s.n_shards, s.n_shards == 1 ? "" : "s",
           (double)s.total_bytes * 1e-6, (unsigned long long)s.n_tensors,
           (double)s.n_parameters * 1e-6,
           s.n_parameters ? (double)s.tensor_bytes * 8 / (double)s.n_parameters : 0.0);
    print_name(s.architecture, 0);
    fputs(runs ? ": runs" : ": does not run: ", stdout);
    if (!runs) pith_cli_print_clean(stdout, error.text, strlen(error.text), NAME_SHOWN);
    putchar('\n');
}

static int print_text(const inspect_options *o, const pith_file *file, const char *path) {
    pith_file_summary s = pith_file_summarize(file);
    pith_buffer text = {0};
    print_summary(file, path);
    if (o->metadata) printf("metadata (%llu)\n", (unsigned long long)s.n_metadata);
    for (uint64_t i = 0; o->metadata && i < s.n_metadata; i++) {
        value_text(file, i, (size_t)o->items, &text);
        print_value(pith_file_key(file, i), pith_file_value_type(file, i), &text);
    }
    if (o->tensors) printf("tensors (%llu)\n", (unsigned long long)s.n_tensors);
    if (o->tensors) print_tensors(file);
    bool failed = text.failed;
    pith_buffer_deinit(&text);
    return failed ? pith_cli_fail_text("out of memory for a value of %s", path) : pith_cli_finish();
}

static int print_template(const pith_file *file) {
    pith_file_summary s = pith_file_summarize(file);
    for (uint64_t i = 0; i < s.n_metadata; i++) {
        if (strcmp(pith_file_key(file, i), "tokenizer.chat_template") != 0) continue;
        pith_buffer text = {0};
        value_text(file, i, 1, &text);
        fwrite(text.data ? text.data : "", 1, text.size, stdout);
        bool failed = text.failed;
        pith_buffer_deinit(&text);
        return failed ? pith_cli_fail_text("out of memory for the template") : pith_cli_finish();
    }
    return pith_cli_fail_text("the file has no chat template (key tokenizer.chat_template)");
}

static json_t *json_tensors(const pith_file *file) {
    json_t *list = json_array();
    pith_file_tensor t;
    for (uint64_t i = 0; pith_file_tensor_at(file, i, &t); i++) {
        json_t *shape = json_array();
        for (uint32_t d = 0; d < t.n_dims; d++)
            json_array_append_new(shape, json_integer((json_int_t)t.shape[d]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:I, s:I, s:i}", "name",
                                              pith_cli_json_string(t.name), "type", t.type, "shape",
                                              shape, "offset", (json_int_t)t.offset, "bytes",
                                              (json_int_t)t.bytes, "shard", (int)t.shard));
    }
    return list;
}

static int print_json(const inspect_options *o, const pith_file *file) {
    pith_error error = {0};
    pith_file_summary s = pith_file_summarize(file);
    bool runs = pith_file_check(file, &error) == PITH_OK;
    json_t *metadata = json_object();
    pith_buffer text = {0};
    for (uint64_t i = 0; i < s.n_metadata; i++) {
        value_text(file, i, (size_t)o->items, &text);
        pith_cli_json_set(metadata, pith_file_key(file, i),
                          json_pack("{s:s, s:o}", "type", pith_file_value_type(file, i), "value",
                                    pith_cli_json_text(text.data ? text.data : "", text.size)));
    }
    bool failed = text.failed;
    pith_buffer_deinit(&text);
    if (failed) {
        json_decref(metadata);
        return pith_cli_fail_text("out of memory for a value of the metadata");
    }
    return pith_cli_print_json(
        json_pack("{s:b, s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:o, s:o}", "runs", runs, "why",
                  pith_cli_json_string(runs ? "" : error.text), "architecture",
                  pith_cli_json_string(s.architecture), "version", (int)s.version, "shards",
                  (int)s.n_shards, "total_bytes", (json_int_t)s.total_bytes, "tensor_bytes",
                  (json_int_t)s.tensor_bytes, "parameters", (json_int_t)s.n_parameters, "tensors",
                  json_tensors(file), "metadata", metadata));
}

static int inspect_broken(const inspect_options *o, const pith_error *error) {
    if (!o->json) return pith_cli_fail(error);
    pith_cli_print_json(json_pack("{s:b, s:o, s:s, s:[], s:{}}", "runs", 0, "why",
                                  pith_cli_json_string(error->text), "architecture", "", "tensors",
                                  "metadata"));
    return PITH_EXIT_FAILURE;
}

int pith_command_inspect(int argc, char **argv) {
    inspect_options o = {.items = 8};
    pith_cli_option table[] = {
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "one JSON object", 0, 0},
        {"metadata", 0, PITH_CLI_FLAG, &o.metadata, "", "only the metadata", 0, 0},
        {"tensors", 0, PITH_CLI_FLAG, &o.tensors, "", "only the tensors", 0, 0},
        {"template", 0, PITH_CLI_FLAG, &o.template_only, "", "print the chat template as it stands",
         0, 0},
        {"items", 0, PITH_CLI_INT, &o.items, "N", "items of arrays to show (default: 8)", 0,
         1 << 26},
    };
    pith_cli_command command = {"pith inspect FILE [options]",
                                "Shows what is in a GGUF file, and whether it runs here.", table,
                                sizeof table / sizeof table[0], NULL};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words != 1) code = pith_cli_usage(&command, "give one FILE");
    if (!o.metadata && !o.tensors) o.metadata = o.tensors = true;
    pith_error error = {0};
    pith_file *file = NULL;
    char *path = code < 0 ? pith_cli_find_model(words[0], &error) : NULL;
    if (code < 0 && !path) code = inspect_broken(&o, &error);
    if (code < 0 && pith_file_open(path, &file, &error) != PITH_OK)
        code = inspect_broken(&o, &error);
    if (code < 0)
        code = o.template_only ? print_template(file)
               : o.json        ? print_json(&o, file)
                               : print_text(&o, file, path);
    pith_file_close(file);
    pith_free(path);
    pith_free(words);
    return code;
}
