/* SPDX-License-Identifier: Apache-2.0
 * A reply that may call tools:  tools MODEL [PROMPT] [FORMAT]
 * The tools go into the prompt by the model's chat template, and into a grammar; the reply is taken
 * apart while it is made. FORMAT (hermes, ...) is for models whose template does not say how tools
 * are called. Prints what the model says, then its calls. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDS = 4096, MOST_TOKENS = 200 };

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": "
    "\"the weather of a city\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": "
    "{\"enum\": [\"Paris\", \"Tokyo\", \"Lima\"]}, \"days\": {\"type\": \"integer\", \"minimum\": "
    "1, "
    "\"maximum\": 7}}, \"required\": [\"city\", \"days\"]}}}]";

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "tools: %s\n", error->text);
    exit(1);
}

static pith_tool_format find_format(const pith_model *model, const char *name) {
    pith_tool_format format;
    pith_error error = {0};
    for (size_t i = 0; name && pith_tool_format_at(i, &format); i++)
        if (strcmp(format.name, name) == 0) return format;
    check(pith_model_tool_format(model, &format, &error), &error);
    return format;
}

/* question: text without quotes and backslashes, for the sake of brevity. */
static size_t make_prompt(const pith_model *model, const char *question, int32_t *ids) {
    static char context[8192];
    pith_error error = {0};
    pith_prompt *prompt = NULL;
    size_t n_ids = 0;
    if (!pith_model_chat_template(model)) {
        check(pith_tokenize(model, question, strlen(question), PITH_TOKENIZE_ADD_SPECIAL, ids,
                            MOST_IDS, &n_ids, &error),
              &error);
        return n_ids;
    }
    snprintf(context, sizeof context,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}], \"tools\": %s, "
             "\"add_generation_prompt\": true}",
             question, tools);
    check(pith_prompt_render(model, NULL, context, &prompt, &error), &error);
    check(pith_prompt_tokenize(model, prompt, ids, MOST_IDS, &n_ids, &error), &error);
    pith_prompt_free(prompt);
    return n_ids;
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    pith_message_part part;
    if (pith_message_push(user, id, text, size, &part, NULL) != PITH_OK) return 1;
    fwrite(part.content, 1, part.content_size, stdout);
    return 0;
}

static void answer(const pith_model *model, const char *question, const char *name) {
    static int32_t ids[MOST_IDS];
    pith_error error = {0};
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    pith_sampler *sampler = NULL;
    pith_grammar *grammar = NULL;
    pith_message *message = NULL;
    pith_message_part part;
    pith_tool_call call;
    pith_tool_format format = find_format(model, name);
    pith_tool_options options = {.size = sizeof options, .format = &format, .parallel = true};
    options.tools_json = tools; /* calls without marks count as well */
    options.tools_json_size = sizeof tools - 1;
    size_t n_ids = make_prompt(model, question, ids);
    check(pith_grammar_new_tools(model, tools, sizeof tools - 1, &options, &grammar, &error),
          &error);
    check(pith_message_new(model, &options, &message, &error), &error);
    check(pith_engine_new(model, NULL, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    pith_generate_options generate = {.size = sizeof generate,
                                      .max_tokens = MOST_TOKENS,
                                      .grammar = grammar,
                                      .show_control = true, /* marks of calls are among them */
                                      .on_text = on_text,
                                      .user = message};
    check(pith_generate(session, sampler, ids, n_ids, &generate, NULL, &error), &error);
    check(pith_message_finish(message, &part, &error), &error);
    printf("%.*s\n", (int)part.content_size, part.content);
    for (size_t i = 0; pith_message_call_at(message, i, &call); i++)
        printf("%s %s\n", call.name, call.arguments);
    pith_message_free(message);
    pith_grammar_free(grammar);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
}

int main(int argc, char **argv) {
    pith_model *model = NULL;
    pith_error error = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: tools MODEL [PROMPT] [FORMAT]\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    answer(model, argc > 2 ? argv[2] : "What is the weather in Tokyo for the next 3 days?",
           argc > 3 ? argv[3] : NULL);
    pith_model_close(model);
    return 0;
}
