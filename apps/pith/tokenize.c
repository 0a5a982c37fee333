/* SPDX-License-Identifier: Apache-2.0
 * `pith tokenize`: text from standard input (or words) to token ids; --decode goes the other way.
 * Invariant: the text is taken byte for byte; nothing is added or special unless asked. */
#include "base/memory.h"
#include "pith/cli.h"

#include <string.h>

typedef struct tokenize_options {
    pith_cli_model model;
    bool add_special, parse_special, json, decode;
} tokenize_options;

static json_t *pieces_of(const pith_model *model, const int32_t *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const char *piece = pith_token_piece(model, ids[i]);
        json_array_append_new(list, piece ? pith_cli_json_string(piece) : json_null());
    }
    return list;
}

static int encode(const tokenize_options *o, const pith_model *model, const pith_buffer *text) {
    pith_error error = {0};
    size_t n = 0;
    unsigned flags = (o->add_special ? PITH_TOKENIZE_ADD_SPECIAL : 0u) |
                     (o->parse_special ? PITH_TOKENIZE_PARSE_SPECIAL : 0u);
    int32_t *ids =
        pith_cli_tokenize(model, text->data ? text->data : "", text->size, flags, &n, &error);
    if (!ids) return pith_cli_fail(&error);
    int code;
    if (o->json) {
        code = pith_cli_print_json(json_pack("{s:o, s:o}", "ids", pith_cli_json_ids(ids, n),
                                             "pieces", pieces_of(model, ids, n)));
    } else {
        for (size_t i = 0; i < n; i++) {
            const char *piece = pith_token_piece(model, ids[i]);
            printf("%6d  ", (int)ids[i]);
            if (piece) pith_cli_print_clean(stdout, piece, strlen(piece), SIZE_MAX);
            putchar('\n');
        }
        code = pith_cli_finish();
    }
    pith_free(ids);
    return code;
}

/* Appends the text of the ids; false with a message when one is outside the vocabulary. */
static bool append_text(const pith_model *model, pith_detokenizer *detokenizer, const int32_t *ids,
                        size_t n, pith_buffer *out) {
    for (size_t i = 0; i <= n; i++) {
        size_t size = 0;
        if (i < n && !pith_token_piece(model, ids[i])) {
            pith_cli_fail_text("id %d at index %zu is outside the vocabulary of %d", (int)ids[i], i,
                               (int)pith_model_describe(model).n_vocab);
            return false;
        }
        const char *piece = pith_detokenizer_push(detokenizer, i < n ? ids[i] : -1, &size);
        pith_buffer_append(out, piece, size);
    }
    if (out->failed) pith_cli_fail_text("out of memory for the text of %zu ids", n);
    return !out->failed;
}

static int print_text(const pith_buffer *text) {
    fwrite(text->data ? text->data : "", 1, text->size, stdout);
    return pith_cli_finish();
}

static int decode(const tokenize_options *o, const pith_model *model, const pith_buffer *text) {
    pith_error error = {0};
    size_t n = 0;
    pith_detokenizer *detokenizer = NULL;
    int32_t *ids = pith_cli_parse_ids(text->data ? text->data : "", text->size, &n, &error);
    pith_buffer out = {0};
    int code = PITH_EXIT_FAILURE;
    if (!ids || pith_detokenizer_new(model, true, &detokenizer, &error) != PITH_OK) {
        code = pith_cli_fail(&error);
    } else if (append_text(model, detokenizer, ids, n, &out)) {
        if (o->json)
            code = pith_cli_print_json(
                json_pack("{s:o}", "text", pith_cli_json_text(out.data ? out.data : "", out.size)));
        else
            code = print_text(&out);
    }
    pith_detokenizer_free(detokenizer);
    pith_buffer_deinit(&out);
    pith_free(ids);
    return code;
}

int pith_command_tokenize(int argc, char **argv) {
    tokenize_options o = {0};
    pith_cli_option table[] = {
        {"model", 'm', PITH_CLI_TEXT, &o.model.model, "MODEL", "whose tokenizer", 0, 0},
        {"add-special", 0, PITH_CLI_FLAG, &o.add_special, "", "add BOS/EOS as the vocabulary asks",
         0, 0},
        {"parse-special", 0, PITH_CLI_FLAG, &o.parse_special, "",
         "control tokens written in the text count as such", 0, 0},
        {"decode", 0, PITH_CLI_FLAG, &o.decode, "", "ids to text", 0, 0},
        {"force", 0, PITH_CLI_FLAG, &o.model.force, "", "go on with an unknown pre-tokenizer", 0,
         0},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "{\"ids\", \"pieces\"} (with --decode {\"text\"})",
         0, 0},
    };
    pith_cli_command command = {
        "pith tokenize -m MODEL [options] < TEXT", "Turns text into token ids.", table,
        sizeof table / sizeof table[0],
        "The text is taken as it is: nothing is added and nothing in it is special unless asked."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    pith_buffer text = {0};
    pith_error error = {0};
    pith_model *model = NULL;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words > 0)
        code = pith_cli_usage(&command, "the text comes from standard input, not '%s'", words[0]);
    if (code < 0) code = pith_cli_open_model(&command, &o.model, true, &model);
    if (code < 0 && !pith_cli_read_all(stdin, "standard input", (size_t)1 << 30, &text, &error))
        code = pith_cli_fail(&error);
    if (code < 0) code = o.decode ? decode(&o, model, &text) : encode(&o, model, &text);
    pith_model_close(model);
    pith_buffer_deinit(&text);
    pith_free(words);
    return code;
}
