/* SPDX-License-Identifier: Apache-2.0
 * JSON of a schema, always:  json MODEL PROMPT [TOKENS]
 * The grammar is made once and can serve any number of replies. What a schema asks that cannot be
 * enforced is refused when it is made, by its path; the last lines show that. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"type\": \"object\","
                             " \"properties\": {"
                             "   \"city\": {\"type\": \"string\", \"maxLength\": 20},"
                             "   \"size\": {\"enum\": [\"small\", \"large\"]},"
                             "   \"people\": {\"type\": \"integer\", \"minimum\": 0,"
                             "               \"maximum\": 99999999}},"
                             " \"required\": [\"city\", \"size\", \"people\"],"
                             " \"additionalProperties\": false}";

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "json: %s\n", error->text);
    exit(1);
}

static int print(void *user, int32_t id, const char *text, size_t size) {
    (void)user, (void)id;
    return fwrite(text, 1, size, stdout) != size;
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_grammar *grammar, *none;
    pith_generation made;
    int32_t ids[1024];
    size_t n = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: json MODEL PROMPT [TOKENS]\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    check(pith_engine_new(model, NULL, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    check(
        pith_grammar_new(model, PITH_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), &grammar, &error),
        &error);
    check(pith_tokenize(model, argv[2], strlen(argv[2]), PITH_TOKENIZE_ADD_SPECIAL, ids, 1024, &n,
                        &error),
          &error);
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = argc > 3 ? atoi(argv[3]) : 200,
                                     .on_text = print,
                                     .grammar = grammar};
    check(pith_generate(session, sampler, ids, n, &options, &made, &error), &error);
    /* PITH_STOP_LENGTH: a beginning of such a text, cut by max_tokens */
    printf("\n[%s]\n", made.stop == PITH_STOP_END ? "complete" : "cut");

    const char *vague = "{\"type\": \"string\", \"format\": \"no-such-format\"}";
    if (pith_grammar_new(model, PITH_GRAMMAR_JSON_SCHEMA, vague, strlen(vague), &none, &error))
        printf("refused: %s\n", error.text);
    pith_grammar_free(grammar);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return made.stop == PITH_STOP_END ? 0 : 1;
}
