/* SPDX-License-Identifier: Apache-2.0
 * `pith chat`: a conversation in the terminal. Ctrl-C stops the reply and keeps what was made;
 * lines that begin with `/` are commands.
 * Here: options, the loop, the commands. The conversation itself is chat_turn.c, line input
 * chat_line.c. */
#include "pith/chat.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct chat_options {
    pith_cli_model model;
    pith_sampler_options sampler;
    const char *system;
    int32_t max_tokens;
    bool json;
} chat_options;

typedef struct chat_state {
    chat_options *options;
    pith_chat chat;
    pith_chat_lines lines;
    char *system; /* owned; NULL: none */
    bool quit;
    int code;
} chat_state;

static const char commands_text[] =
    "/help            this text\n"
    "/clear           start anew (the system prompt stays)\n"
    "/system [TEXT]   set or remove the system prompt and start anew\n"
    "/retry           make the last reply again\n"
    "/undo            take back the last exchange\n"
    "/edit TEXT       take back the last exchange and say TEXT instead\n"
    "/history         show the conversation\n"
    "/save FILE       write the conversation as JSON\n"
    "/load FILE       continue a saved conversation\n"
    "/stats           times of the last reply, context in use\n"
    "/quit            end (as does Ctrl-D)\n"
    "A line that ends with \\ goes on in the next line. Ctrl-C stops a reply.\n";

static void tell(chat_state *s, pith_status status, const pith_error *error) {
    if (status == PITH_OK) {
        fputs("\n", stdout);
        fflush(stdout);
        if (s->chat.last.stop == PITH_STOP_CONTEXT)
            fputs("note: the context is full; /clear starts anew\n", stderr);
        if (s->chat.last.stop == PITH_STOP_CANCELLED) fputs("note: stopped\n", stderr);
        return;
    }
    s->code = pith_cli_fail(error);
}

static void say(chat_state *s, const char *text) {
    pith_error error = {0};
    tell(s, pith_chat_say(&s->chat, text, &error), &error);
}

static void command_retry(chat_state *s, const char *rest) {
    pith_error error = {0};
    (void)rest;
    tell(s, pith_chat_retry(&s->chat, &error), &error);
}

static void command_undo(chat_state *s, const char *rest) {
    (void)rest;
    char *text = pith_chat_undo(&s->chat);
    if (text)
        fprintf(stderr, "taken back: %s\n", text);
    else
        fputs("note: there is nothing to take back\n", stderr);
    pith_free(text);
}

static void command_edit(chat_state *s, const char *rest) {
    char *text = pith_chat_undo(&s->chat);
    if (!text)
        fputs("note: there is nothing to edit\n", stderr);
    else if (rest[0])
        say(s, rest);
    pith_free(text);
}

static void command_clear(chat_state *s, const char *rest) {
    (void)rest;
    pith_chat_clear(&s->chat, s->system);
}

static void command_system(chat_state *s, const char *rest) {
    pith_free(s->system);
    s->system = rest[0] ? pith_copy_text(rest, strlen(rest)) : NULL;
    pith_chat_clear(&s->chat, s->system);
}

static void command_history(chat_state *s, const char *rest) {
    size_t i;
    json_t *message;
    (void)rest;
    json_array_foreach(s->chat.messages, i, message)
        fprintf(stderr, "%s: %s\n", json_string_value(json_object_get(message, "role")),
                json_string_value(json_object_get(message, "content")));
}

static void command_save(chat_state *s, const char *rest) {
    if (!rest[0])
        fputs("note: /save needs a FILE\n", stderr);
    else if (json_dump_file(s->chat.messages, rest, JSON_INDENT(1)) != 0)
        fprintf(stderr, "pith: %s could not be written: %s\n", rest, strerror(errno));
    else
        fprintf(stderr, "saved %zu messages\n", json_array_size(s->chat.messages));
}

static bool is_conversation(const json_t *json) {
    size_t i;
    json_t *message;
    if (!json_is_array(json)) return false;
    json_array_foreach((json_t *)(uintptr_t)json, i, message) {
        if (!json_is_string(json_object_get(message, "role")) ||
            !json_is_string(json_object_get(message, "content")))
            return false;
    }
    return true;
}

static void command_load(chat_state *s, const char *rest) {
    json_error_t error;
    json_t *json = rest[0] ? json_load_file(rest, 0, &error) : NULL;
    if (!rest[0])
        fputs("note: /load needs a FILE\n", stderr);
    else if (!json)
        fprintf(stderr, "pith: %s, line %d: %s\n", rest, error.line, error.text);
    else if (!is_conversation(json))
        fprintf(stderr, "pith: %s is no list of {\"role\", \"content\"}\n", rest);
    if (!json || !is_conversation(json)) {
        json_decref(json);
        return;
    }
    pith_chat_clear(&s->chat, NULL);
    json_array_extend(s->chat.messages, json);
    fprintf(stderr, "loaded %zu messages\n", json_array_size(json));
    json_decref(json);
}

static void command_stats(chat_state *s, const char *rest) {
    const pith_generation *g = &s->chat.last;
    (void)rest;
    fprintf(stderr,
            "prompt %zu tokens, %zu of them already read; %.0f ms; first token after %.0f ms\n%zu "
            "tokens at %.1f tok/s; context %zu of %zu\n",
            g->n_prompt, g->n_cached, g->prompt_ms, g->ttft_ms, g->n_predicted,
            g->predicted_ms > 0 && g->n_predicted > 1
                ? (double)(g->n_predicted - 1) / g->predicted_ms * 1e3
                : 0.0,
            pith_session_length(s->chat.session), s->chat.capacity);
}

static void command_help(chat_state *s, const char *rest) {
    (void)s, (void)rest;
    fputs(commands_text, stderr);
}

static void command_quit(chat_state *s, const char *rest) {
    (void)rest;
    s->quit = true;
}

static const struct {
    const char *name;
    void (*run)(chat_state *s, const char *rest);
} slash_commands[] = {
    {"help", command_help},       {"clear", command_clear}, {"system", command_system},
    {"retry", command_retry},     {"undo", command_undo},   {"edit", command_edit},
    {"history", command_history}, {"save", command_save},   {"load", command_load},
    {"stats", command_stats},     {"quit", command_quit},   {"exit", command_quit},
    {"bye", command_quit},
};

static void run_slash(chat_state *s, const char *line) {
    const char *space = strchr(line, ' ');
    size_t size = space ? (size_t)(space - line) - 1 : strlen(line) - 1;
    const char *rest = space ? space + 1 : "";
    for (size_t i = 0; i < sizeof slash_commands / sizeof slash_commands[0]; i++) {
        if (strlen(slash_commands[i].name) != size ||
            memcmp(slash_commands[i].name, line + 1, size) != 0)
            continue;
        slash_commands[i].run(s, rest);
        return;
    }
    fprintf(stderr,
            "pith: there is no command %.*s; /help lists them (a line that shall begin with / may "
            "begin with a space)\n",
            (int)size + 1, line);
}

static void loop(chat_state *s) {
    while (!s->quit) {
        char *line = pith_chat_lines_read(&s->lines, "> ");
        if (!line) break;
        s->code = PITH_EXIT_OK;
        if (line[0] == '/')
            run_slash(s, line);
        else if (line[strspn(line, " \t")] != 0)
            say(s, line);
        pith_free(line);
        if (ferror(stdout)) s->quit = true;
    }
    if (s->lines.terminal) fputc('\n', stderr);
}

static int run_chat(const pith_cli_command *command, chat_options *o) {
    pith_error error = {0};
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    chat_state s = {.options = o};
    int code = pith_cli_open_model(command, &o->model, false, &model);
    if (code < 0 && !pith_model_chat_template(model))
        code =
            pith_cli_fail_text("this model has no chat template; `pith run --raw` continues text");
    if (code < 0) code = pith_cli_open_engine(&o->model, model, 0, &engine, &session);
    if (code < 0 && !pith_chat_init(&s.chat, model, session,
                                    (size_t)pith_engine_describe(engine).n_ctx, &error))
        code = pith_cli_fail(&error);
    if (code < 0 && pith_sampler_new(model, &o->sampler, &s.chat.sampler, &error) != PITH_OK)
        code = pith_cli_fail(&error);
    if (code < 0) {
        s.chat.max_tokens = o->max_tokens;
        s.system = o->system ? pith_copy_text(o->system, strlen(o->system)) : NULL;
        pith_chat_clear(&s.chat, s.system);
        pith_chat_lines_open(&s.lines);
        if (s.lines.terminal)
            fprintf(stderr, "%s, context %zu. /help lists commands.\n",
                    pith_model_describe(model).name, s.chat.capacity);
        loop(&s);
        pith_chat_lines_close(&s.lines);
        code = s.code ? s.code : pith_cli_finish();
    }
    pith_sampler_free(s.chat.sampler);
    pith_chat_deinit(&s.chat);
    pith_free(s.system);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return code;
}

int pith_command_chat(int argc, char **argv) {
    chat_options o = {.sampler.size = sizeof o.sampler};
    pith_cli_option table[PITH_CLI_MODEL_OPTIONS + 10] = {{0}};
    pith_cli_option own[] = {
        {"system", 's', PITH_CLI_TEXT, &o.system, "TEXT", "system prompt", 0, 0},
        {"predict", 'n', PITH_CLI_INT, &o.max_tokens, "N",
         "tokens a reply has at most (default: until it ends)", 0, 1 << 24},
        {"temp", 0, PITH_CLI_FLOAT, &o.sampler.temperature, "T",
         "temperature (default: 0, always the likeliest token)", 0, 100},
        {"top-k", 0, PITH_CLI_INT, &o.sampler.top_k, "K",
         "sample from the K likeliest tokens (default: off)", 0, 1 << 24},
        {"top-p", 0, PITH_CLI_FLOAT, &o.sampler.top_p, "P",
         "sample from the likeliest tokens with sum P (default: off)", 0, 1},
        {"min-p", 0, PITH_CLI_FLOAT, &o.sampler.min_p, "P",
         "drop tokens below P times the likeliest (default: off)", 0, 1},
        {"repeat-penalty", 0, PITH_CLI_FLOAT, &o.sampler.repeat_penalty, "X",
         "weaken recent tokens (default: 1, off)", 0, 100},
        {"frequency-penalty", 0, PITH_CLI_FLOAT, &o.sampler.frequency_penalty, "X",
         "subtract X per recent use (default: 0)", -100, 100},
        {"presence-penalty", 0, PITH_CLI_FLOAT, &o.sampler.presence_penalty, "X",
         "subtract X once when used (default: 0)", -100, 100},
        {"seed", 0, PITH_CLI_SEED, &o.sampler.seed, "N",
         "the same seed gives the same replies (default: 0)", 0, 0},
    };
    pith_cli_model_options(&o.model, table);
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    pith_cli_command command = {"pith chat -m MODEL [options]",
                                "Talks with a model in the terminal.", table,
                                sizeof table / sizeof table[0], commands_text};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0 && n_words > 0) code = pith_cli_usage(&command, "what is '%s'?", words[0]);
    if (code < 0) code = run_chat(&command, &o);
    pith_free(words);
    return code;
}
