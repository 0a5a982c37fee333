/* SPDX-License-Identifier: Apache-2.0
 * `--grammar FILE`, `--schema FILE`, `--regex R`, `--choices a|b|c`: what a reply may be; one of
 * them at a time. What is wrong with it is told before a model is loaded; only a GBNF grammar that
 * names tokens waits for the model that has them. */
#include "base/memory.h"
#include "pith/reply_option.h"

enum { GRAMMAR_LIMIT = 1 << 20 };

void pith_cli_grammar_options(pith_cli_grammar *values,
                              pith_cli_option out[PITH_CLI_GRAMMAR_OPTIONS]) {
    out[0] = (pith_cli_option){"grammar",
                               0,
                               PITH_CLI_TEXT,
                               &values->gbnf_file,
                               "FILE",
                               "the reply is a text of this GBNF grammar",
                               0,
                               0};
    out[1] = (pith_cli_option){"schema",
                               0,
                               PITH_CLI_TEXT,
                               &values->schema_file,
                               "FILE",
                               "the reply is JSON of this schema",
                               0,
                               0};
    out[2] = (pith_cli_option){
        "regex", 0, PITH_CLI_TEXT, &values->regex, "R", "the reply matches this regular expression",
        0,       0};
    out[3] = (pith_cli_option){
        "choices", 0, PITH_CLI_TEXT, &values->choices, "a|b|c", "the reply is one of these", 0, 0};
}

/* The lines of PITH_GRAMMAR_CHOICES. */
static void add_choices(const char *choices, pith_buffer *text) {
    for (const char *at = choices; *at; at++) pith_buffer_append(text, *at == '|' ? "\n" : at, 1);
}

static const char *const option_names[] = {"grammar", "schema", "regex", "choices"};
static const pith_grammar_kind kinds[] = {PITH_GRAMMAR_GBNF, PITH_GRAMMAR_JSON_SCHEMA,
                                          PITH_GRAMMAR_REGEX, PITH_GRAMMAR_CHOICES};

/* Which of the options is given; -1: none. *n: how many are. */
static int given_option(const pith_cli_grammar *values, int *n) {
    const char *given[] = {values->gbnf_file, values->schema_file, values->regex, values->choices};
    int which = -1;
    *n = 0;
    for (int i = 0; i < PITH_CLI_GRAMMAR_OPTIONS; i++) {
        if (!given[i]) continue;
        which = i;
        ++*n;
    }
    return which;
}

static bool read_given(pith_cli_grammar *values, int which, pith_error *error) {
    const char *file = which == 0 ? values->gbnf_file : which == 1 ? values->schema_file : NULL;
    if (file) return pith_cli_read_text(file, GRAMMAR_LIMIT, &values->text, error);
    if (which == 2) pith_buffer_append_text(&values->text, values->regex);
    if (which == 3) add_choices(values->choices, &values->text);
    if (values->text.failed) pith_fail_memory(error, "the grammar", 0);
    return !values->text.failed;
}

static pith_status make(const pith_cli_grammar *values, int which, const pith_model *model,
                        pith_grammar **out, pith_error *error) {
    const pith_buffer *text = &values->text;
    return pith_grammar_new(model, kinds[which], text->data ? text->data : "", text->size, out,
                            error);
}

int pith_cli_read_grammar(const pith_cli_command *command, pith_cli_grammar *values,
                          pith_grammar **out) {
    pith_error error = {0};
    int n = 0, which = given_option(values, &n);
    *out = NULL;
    if (n == 0) return -1;
    if (n > 1)
        return pith_cli_usage(
            command, "give one of --grammar, --schema, --regex and --choices, not several");
    if (!read_given(values, which, &error))
        return pith_cli_fail_text("--%s: %s", option_names[which], error.text);
    pith_status status = make(values, which, NULL, out, &error);
    bool names_tokens = status == PITH_ERROR_NOT_FOUND && kinds[which] == PITH_GRAMMAR_GBNF;
    if (status == PITH_OK || names_tokens) return -1;
    return pith_cli_fail_text("--%s: %s", option_names[which], error.text);
}

int pith_cli_finish_grammar(pith_cli_grammar *values, const pith_model *model, pith_grammar **out) {
    pith_error error = {0};
    int n = 0, which = given_option(values, &n);
    pith_status status = PITH_OK;
    if (n > 0 && !*out) status = make(values, which, model, out, &error);
    pith_cli_close_grammar(values);
    return status == PITH_OK ? -1 : pith_cli_fail(&error);
}

void pith_cli_close_grammar(pith_cli_grammar *values) {
    pith_buffer_deinit(&values->text);
}
