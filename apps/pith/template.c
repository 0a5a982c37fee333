/* SPDX-License-Identifier: Apache-2.0
 * `pith template`: renders a chat template (a model's own or a file's) for a context in JSON. */
#include "base/memory.h"
#include "pith/cli.h"

typedef struct template_options {
    pith_cli_model model;
    const char *file, *context;
    bool json;
} template_options;

enum { INPUT_LIMIT = 64 << 20 };

static int render(const template_options *o, const pith_model *model, const pith_buffer *text,
                  const pith_buffer *context) {
    pith_error error = {0};
    pith_prompt *prompt = NULL;
    if (pith_prompt_render(model, o->file ? (text->data ? text->data : "") : NULL,
                           context->data ? context->data : "", &prompt, &error) != PITH_OK)
        return pith_cli_fail(&error);
    size_t size = 0;
    const char *result = pith_prompt_text(prompt, &size);
    int code;
    if (o->json) {
        code = pith_cli_print_json(json_pack("{s:o}", "text", pith_cli_json_text(result, size)));
    } else {
        fwrite(result, 1, size, stdout);
        code = pith_cli_finish();
    }
    pith_prompt_free(prompt);
    return code;
}

int pith_command_template(int argc, char **argv) {
    template_options o = {0};
    pith_cli_option table[] = {
        {"model", 'm', PITH_CLI_TEXT, &o.model.model, "MODEL", "whose template", 0, 0},
        {"file", 0, PITH_CLI_TEXT, &o.file, "T.jinja", "a template in a file instead", 0, 0},
        {"context", 0, PITH_CLI_TEXT, &o.context, "C.json",
         "the variables: an object with \"messages\" and what else it reads (- is standard input)",
         0, 0},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "{\"text\"}", 0, 0},
    };
    pith_cli_command command = {
        "pith template (-m MODEL | --file T.jinja) --context C.json", "Renders a chat template.",
        table, sizeof table / sizeof table[0],
        "Exit code 1 with the template's message when the template raises."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    pith_error error = {0};
    pith_buffer text = {0}, context = {0};
    pith_model *model = NULL;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words > 0) code = pith_cli_usage(&command, "what is '%s'?", words[0]);
    if (code < 0 && !o.context)
        code = pith_cli_usage(&command, "which context? Give --context C.json");
    if (code < 0 && !o.file && !o.model.model)
        code = pith_cli_usage(&command, "which template? Give -m MODEL or --file T.jinja");
    bool from_stdin = o.context && o.context[0] == '-' && o.context[1] == 0;
    if (code < 0 && o.file && !pith_cli_read_file(o.file, INPUT_LIMIT, &text, &error))
        code = pith_cli_fail(&error);
    if (code < 0 &&
        !(from_stdin ? pith_cli_read_all(stdin, "standard input", INPUT_LIMIT, &context, &error)
                     : pith_cli_read_file(o.context, INPUT_LIMIT, &context, &error)))
        code = pith_cli_fail(&error);
    if (code < 0 && o.model.model) code = pith_cli_open_model(&command, &o.model, true, &model);
    if (code < 0) code = render(&o, model, &text, &context);
    pith_model_close(model);
    pith_buffer_deinit(&text);
    pith_buffer_deinit(&context);
    pith_free(words);
    return code;
}
