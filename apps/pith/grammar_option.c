/* SPDX-License-Identifier: Apache-2.0
 * `--grammar FILE`, `--schema FILE`, `--regex R`, `--choices a|b|c`: what a reply may be; one of
 * them at a time. */
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

int pith_cli_open_grammar(const pith_cli_command *command, const pith_cli_grammar *values,
                          const pith_model *model, pith_grammar **out) {
    const char *given[] = {values->gbnf_file, values->schema_file, values->regex, values->choices};
    static const pith_grammar_kind kinds[] = {PITH_GRAMMAR_GBNF, PITH_GRAMMAR_JSON_SCHEMA,
                                              PITH_GRAMMAR_REGEX, PITH_GRAMMAR_CHOICES};
    pith_error error = {0};
    pith_buffer text = {0};
    int which = -1, code = -1;
    for (int i = 0; i < PITH_CLI_GRAMMAR_OPTIONS; i++) {
        if (given[i] && which >= 0)
            return pith_cli_usage(
                command, "give one of --grammar, --schema, --regex and --choices, not several");
        if (given[i]) which = i;
    }
    if (which < 0) return -1;
    if (which < 2 && !pith_cli_read_file(given[which], GRAMMAR_LIMIT, &text, &error))
        code = pith_cli_fail(&error);
    else if (which == 3)
        add_choices(given[which], &text);
    else if (which == 2)
        pith_buffer_append_text(&text, given[which]);
    if (code < 0 && text.failed) code = pith_cli_fail_text("out of memory for the grammar");
    if (code < 0 && pith_grammar_new(model, kinds[which], text.data ? text.data : "", text.size,
                                     out, &error) != PITH_OK)
        code = pith_cli_fail(&error);
    pith_buffer_deinit(&text);
    return code;
}
