/* SPDX-License-Identifier: Apache-2.0
 * `pith template`: renders a chat template (a model's own or a file's) for a context in JSON. The
 * text goes to stdout as it is, without a newline of our own; a template that raises gives exit
 * code 1 and its message. Rendering is src/chat's, reached through pith_prompt_render. */
#include "base/memory.h"
#include "pith/cli.h"

#include <string.h>

typedef struct template_options {
    pith_cli_model model;
    const char *file, *context;
    bool json;
} template_options;

enum { INPUT_LIMIT = 64 << 20 };

/* A text that pith.h takes as a C string must not end before its end. */
static bool has_zero_byte(const char *name, const pith_buffer *text) {
    const char *zero = text->size ? memchr(text->data, 0, text->size) : NULL;
    if (zero) pith_cli_fail_text("%s has a zero byte at %zu", name, (size_t)(zero - text->data));
    return zero != NULL;
}

static int render(const template_options *o, const pith_model *model, const pith_buffer *text,
                  const pith_buffer *context) {
    pith_error error = {0};
    pith_prompt *prompt = NULL;
    if ((o->file && has_zero_byte(o->file, text)) || has_zero_byte(o->context, context))
        return PITH_EXIT_FAILURE;
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
        {"file", 0, PITH_CLI_TEXT, &o.file, "T.jinja",
         "a template in a file instead (- is standard input)", 0, 0},
        {"context", 0, PITH_CLI_TEXT, &o.context, "C.json",
         "the variables, {\"messages\": [...], ...} (- is standard input)", 0, 0},
        {"json", 0, PITH_CLI_FLAG, &o.json, "", "{\"text\"}", 0, 0},
    };
    pith_cli_command command = {
        "pith template (-m MODEL | --file T.jinja) --context C.json", "Renders a chat template.",
        table, sizeof table / sizeof table[0],
        "Exit code 1 with the template's message when the template raises."};
    pith_error error = {0};
    pith_buffer text = {0}, context = {0};
    pith_model *model = NULL;
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code < 0 && !o.context)
        code = pith_cli_usage(&command, "which context? Give --context C.json");
    if (code < 0 && !o.file && !o.model.model)
        code = pith_cli_usage(&command, "which template? Give -m MODEL or --file T.jinja");
    if (code < 0 && o.file && strcmp(o.file, "-") == 0 && strcmp(o.context, "-") == 0)
        code = pith_cli_usage(&command, "only one of --file and --context can be -");
    if (code < 0 && o.file && !pith_cli_read_file(o.file, INPUT_LIMIT, &text, &error))
        code = pith_cli_fail(&error);
    if (code < 0 && !pith_cli_read_file(o.context, INPUT_LIMIT, &context, &error))
        code = pith_cli_fail(&error);
    if (code < 0 && o.model.model) code = pith_cli_open_model(&command, &o.model, true, &model);
    if (code < 0) code = render(&o, model, &text, &context);
    pith_model_close(model);
    pith_buffer_deinit(&text);
    pith_buffer_deinit(&context);
    return code;
}
