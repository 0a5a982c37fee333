/* SPDX-License-Identifier: Apache-2.0
 * A conversation that outgrows the context:  long_conversation MODEL [CONTEXT]
 * Questions are asked until the context is full several times over. What is older becomes a summary
 * that the model writes itself; each line says what the prompt took, and what gave way for it. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JSON = 1 << 16, MOST_IDS = 8192, ROOM = 24 };

/* For models that have no chat template of their own. */
static const char plain[] = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                            "{% if add_generation_prompt %}assistant:{% endif %}";

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "long_conversation: %s\n", error->text);
    exit(1);
}

/* Puts a message behind the others in {"messages":[...],...}. A program that knows JSON would do it
 * with its library; this one leaves out what would need an escape. */
static void add_message(char *context, const char *role, const char *text) {
    char *end = strrchr(context, ']'), tail[64];
    size_t left = MOST_JSON - (size_t)(end - context), n = 0;
    if (left < strlen(text) + 128 || strlen(end) >= sizeof tail) exit(1);
    memcpy(tail, end, strlen(end) + 1);
    n += (size_t)snprintf(end, left, "%s{\"role\":\"%s\",\"content\":\"", end[-1] == '[' ? "" : ",",
                          role);
    for (; *text; text++)
        if ((unsigned char)*text >= 32 && *text != '"' && *text != '\\') end[n++] = *text;
    snprintf(end + n, left - n, "\"}%s", tail);
}

typedef struct text {
    char data[4096];
    size_t size;
} text;

static int keep(void *user, int32_t id, const char *data, size_t size) {
    text *reply = user;
    (void)id;
    if (reply->size + size >= sizeof reply->data) return 1;
    memcpy(reply->data + reply->size, data, size);
    reply->size += size;
    reply->data[reply->size] = 0;
    return 0;
}

int main(int argc, char **argv) {
    static char context[MOST_JSON] = "{\"messages\":[],\"add_generation_prompt\":true}";
    static const char *const questions[] = {
        "My name is Zelda, and my dog is called Biscuit.", "How many days of leave do I have?",
        "And how do I apply for it?", "What is the name of my dog?"};
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    static int32_t ids[MOST_IDS];
    int32_t n_ctx = argc > 2 ? atoi(argv[2]) : 256;
    if (argc < 2 || n_ctx < 128 || n_ctx > MOST_IDS) {
        fprintf(stderr, "usage: long_conversation MODEL [CONTEXT of 128 to %d]\n", MOST_IDS);
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    pith_engine_options engine_options = {.size = sizeof engine_options, .n_ctx = n_ctx};
    check(pith_engine_new(model, &engine_options, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    const char *template_text = pith_model_chat_template(model) ? NULL : plain;
    add_message(context, "system", "Answer briefly.");
    for (int turn = 0; turn < 8; turn++) {
        pith_conversation *shorter;
        pith_prompt *prompt;
        pith_generation made;
        size_t n = 0, size;
        text reply = {0};
        add_message(context, "user", questions[turn % 4]);
        pith_conversation_options options = {
            .size = sizeof options, .template_text = template_text, .max_tokens = ROOM};
        check(pith_conversation_fit(session, context, &options, &shorter, &error), &error);
        pith_conversation_info info = pith_conversation_describe(shorter);
        const char *fitting = pith_conversation_json(shorter, &size);
        if (size >= sizeof context) return 1;
        memcpy(context, fitting, size + 1);
        pith_conversation_free(shorter);

        check(pith_prompt_render(model, template_text, context, &prompt, &error), &error);
        check(pith_prompt_tokenize(model, prompt, ids, MOST_IDS, &n, &error), &error);
        pith_prompt_free(prompt);
        pith_generate_options generate = {
            .size = sizeof generate, .max_tokens = ROOM, .on_text = keep, .user = &reply};
        check(pith_generate(session, sampler, ids, n, &generate, &made, &error), &error);
        add_message(context, "assistant", reply.data);
        printf("turn %d: %zu tokens of %d", turn + 1, info.n_prompt, n_ctx);
        if (info.n_dropped > 0)
            printf("; %zu messages, %zu tokens, became a summary of %zu", info.n_messages,
                   info.n_dropped, info.n_summary);
        printf("\n");
        if (info.n_prompt != n || n + ROOM > (size_t)n_ctx) return 1;
    }
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return 0;
}
