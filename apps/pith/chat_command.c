/* SPDX-License-Identifier: Apache-2.0
 * The lines of `pith chat` that begin with '/'. A command is one row of the table and one function;
 * what it has to say goes to stderr. */
#include "base/memory.h"
#include "pith/chat_parts.h"

#include <string.h>

enum { CONVERSATION_LIMIT = 64 << 20 };

const char pith_chat_commands_text[] =
    "/help            this text\n"
    "/clear           start anew (the system prompt stays)\n"
    "/system [TEXT]   set or remove the system prompt and start anew\n"
    "/retry           make the last reply again\n"
    "/undo            take back the last exchange\n"
    "/edit TEXT       take back the last exchange and say TEXT instead\n"
    "/history         show the conversation\n"
    "/save FILE       write the conversation as JSON\n"
    "/load FILE       continue a saved conversation\n"
    "/fork NAME       go on in a copy that is kept as NAME (see --resume)\n"
    "/schema FILE|off replies are JSON of this schema, or free again\n"
    "/stats           times of the last reply, context in use\n"
    "/quit            end (as does Ctrl-D)\n"
    "A line that ends with \\ goes on in the next line. Ctrl-C stops a reply, or throws the line\n"
    "away that is being typed.";

static void command_retry(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    (void)rest;
    pith_status status = pith_chat_retry(&s->chat, &error);
    pith_chat_tell(s, status, &error);
}

/* A saved conversation is text that a file brought: its lines stay lines, the rest is harmless. */
static void print_lines(const char *text, size_t size, const char *end) {
    size_t at = 0;
    while (at < size) {
        const char *line_end = memchr(text + at, '\n', size - at);
        size_t n = line_end ? (size_t)(line_end - text) - at : size - at;
        pith_cli_print_clean(stderr, text + at, n, SIZE_MAX);
        if (line_end) fputc('\n', stderr);
        at += n + (line_end ? 1 : 0);
    }
    fputs(end, stderr);
}

static void command_undo(pith_chat_state *s, const char *rest) {
    (void)rest;
    char *text = pith_chat_undo(&s->chat);
    if (text) {
        fputs("taken back: ", stderr);
        print_lines(text, strlen(text), "\n");
    } else {
        fputs("note: there is nothing to take back\n", stderr);
    }
    pith_free(text);
}

/* Asks for a reply, so that a failure is told as one: with --json a line is waited for. */
static void command_edit(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    char *text = rest[0] ? pith_chat_undo(&s->chat) : NULL;
    if (text)
        pith_chat_exchange(s, rest);
    else if (rest[0])
        pith_chat_tell(s, pith_fail(&error, PITH_ERROR_NOT_FOUND, "there is nothing to edit"),
                       &error);
    else
        pith_chat_tell(s, pith_fail(&error, PITH_ERROR_ARGUMENT, "/edit needs a TEXT"), &error);
    pith_free(text);
}

/* Without memory for the system prompt the conversation has none, and that is told. */
static bool start_anew(pith_chat_state *s) {
    bool ok = pith_chat_clear(&s->chat, s->system);
    if (!ok) pith_cli_fail_text("out of memory for the system prompt; there is none now");
    return ok;
}

static void command_clear(pith_chat_state *s, const char *rest) {
    (void)rest;
    if (start_anew(s)) fputs("note: started anew\n", stderr);
}

static void command_system(pith_chat_state *s, const char *rest) {
    pith_free(s->system);
    s->system = rest[0] ? pith_copy_text(rest, strlen(rest)) : NULL;
    bool ok = start_anew(s);
    if (ok && !s->system && rest[0])
        pith_cli_fail_text("out of memory for the system prompt; there is none now");
    else if (ok)
        fputs(s->system ? "note: started anew with this system prompt\n"
                        : "note: started anew without a system prompt\n",
              stderr);
}

static void command_history(pith_chat_state *s, const char *rest) {
    (void)rest;
    for (size_t i = 0; i < json_array_size(s->chat.messages); i++) {
        const json_t *message = json_array_get(s->chat.messages, i);
        const json_t *role = json_object_get(message, "role");
        const json_t *content = json_object_get(message, "content");
        print_lines(json_string_value(role), json_string_length(role), ": ");
        print_lines(json_string_value(content), json_string_length(content), "\n");
    }
}

static void command_save(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    if (!rest[0])
        fputs("note: /save needs a FILE\n", stderr);
    else if (pith_cli_is_device(rest))
        pith_cli_fail_text("%s is no file", rest);
    else if (pith_chat_write_json(s->chat.messages, rest, &error) != PITH_OK)
        pith_cli_fail(&error);
    else
        fprintf(stderr, "saved %zu messages\n", json_array_size(s->chat.messages));
}

static void command_load(pith_chat_state *s, const char *rest) {
    pith_buffer text = {0};
    pith_error error = {0};
    json_error_t fault = {0};
    json_t *json = NULL;
    if (!rest[0]) {
        fputs("note: /load needs a FILE\n", stderr);
        return;
    }
    if (!pith_cli_read_file(rest, CONVERSATION_LIMIT, &text, &error)) {
        pith_cli_fail(&error);
    } else if (!(json = json_loadb(text.data ? text.data : "", text.size, 0, &fault))) {
        pith_cli_fail_text("%s, line %d: %s", rest, fault.line, fault.text);
    } else if (!pith_chat_is_conversation(json)) {
        pith_cli_fail_text("%s is no list of messages with texts \"role\" and \"content\"", rest);
    } else {
        if (pith_chat_load(&s->chat, json))
            fprintf(stderr, "loaded %zu messages\n", json_array_size(json));
        else
            pith_cli_fail_text("out of memory for the messages of %s; there are none now", rest);
    }
    json_decref(json);
    pith_buffer_deinit(&text);
}

/* The conversation so far stays under its name, if it has one; what follows is kept as NAME. */
static void command_fork(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    char *name = pith_copy_text(rest, strlen(rest));
    if (!rest[0])
        fputs("note: /fork needs a NAME\n", stderr);
    else if (!name)
        pith_cli_fail_text("out of memory");
    else if (pith_chat_session_save(&s->chat, rest, &error) != PITH_OK)
        pith_cli_fail(&error);
    else {
        fprintf(stderr, "note: goes on as '%s'\n", rest);
        pith_free(s->name);
        s->name = name;
        return;
    }
    pith_free(name);
}

/* Free again also lifts what --grammar and its kin asked for. */
static void command_schema(pith_chat_state *s, const char *rest) {
    pith_cli_grammar wanted = {.schema_file = rest};
    pith_grammar *grammar = NULL;
    bool off = strcmp(rest, "off") == 0;
    if (!rest[0]) {
        fputs("note: /schema needs a FILE, or off\n", stderr);
        return;
    }
    if (!off && pith_cli_open_grammar(NULL, &wanted, s->chat.model, &grammar) >= 0) return;
    pith_grammar_free(s->grammar);
    s->chat.grammar = s->grammar = grammar;
    fputs(off ? "note: replies are free\n" : "note: replies are JSON of this schema\n", stderr);
}

static void command_stats(pith_chat_state *s, const char *rest) {
    (void)rest;
    pith_cli_print_stats(&s->chat.last);
    fprintf(stderr, "context %zu of %zu\n", pith_chat_n_tokens(&s->chat), s->chat.capacity);
}

static void command_help(pith_chat_state *s, const char *rest) {
    (void)s, (void)rest;
    fprintf(stderr, "%s\n", pith_chat_commands_text);
}

static void command_quit(pith_chat_state *s, const char *rest) {
    (void)rest;
    s->quit = true;
}

static const struct {
    const char *name;
    void (*run)(pith_chat_state *s, const char *rest);
} commands[] = {
    {"help", command_help},       {"clear", command_clear}, {"system", command_system},
    {"retry", command_retry},     {"undo", command_undo},   {"edit", command_edit},
    {"history", command_history}, {"save", command_save},   {"load", command_load},
    {"fork", command_fork},       {"stats", command_stats}, {"quit", command_quit},
    {"schema", command_schema},   {"exit", command_quit},   {"bye", command_quit},
};

void pith_chat_run_command(pith_chat_state *s, const char *line) {
    size_t size = strcspn(line + 1, " \t\n");
    const char *rest = line + 1 + size;
    rest += strspn(rest, " \t");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strlen(commands[i].name) != size || memcmp(commands[i].name, line + 1, size) != 0)
            continue;
        commands[i].run(s, rest);
        return;
    }
    fprintf(stderr,
            "pith: there is no command %.*s; /help lists them (a line that shall begin with / may "
            "begin with a space)\n",
            (int)size + 1, line);
}
