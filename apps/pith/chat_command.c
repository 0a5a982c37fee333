/* SPDX-License-Identifier: Apache-2.0
 * The lines of `pith chat` that begin with '/'. A command is one row of the table and one function;
 * what it has to say goes to stderr. It gives false when it failed and said so: where nobody reads
 * along, that decides the exit code (chat.c). A failed reply has told its code itself. */
#include "base/memory.h"
#include "pith/chat_parts.h"
#include "pith/near_word.h"

#include <stdarg.h>
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

/* "pith: TEXT" on stderr; what it quotes cannot steer the terminal. */
PITH_PRINTF(1, 2) static bool fail(const char *format, ...) {
    pith_error error = {.status = PITH_ERROR_ARGUMENT};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error.text, sizeof error.text, format, args);
    va_end(args);
    pith_cli_fail(&error);
    return false;
}

static bool command_retry(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    (void)rest;
    pith_status status = pith_chat_retry(&s->chat, &error);
    pith_chat_tell(s, status, &error);
    return true;
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

static bool command_undo(pith_chat_state *s, const char *rest) {
    (void)rest;
    char *text = pith_chat_undo(&s->chat);
    if (!text) return fail("there is nothing to take back");
    fputs("taken back: ", stderr);
    print_lines(text, strlen(text), "\n");
    pith_free(text);
    return true;
}

/* Asks for a reply, so that a failure is told as one: with --json a line is waited for. */
static bool command_edit(pith_chat_state *s, const char *rest) {
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
    return true;
}

/* Without memory for the system prompt the conversation has none, and that is told. */
static bool start_anew(pith_chat_state *s) {
    bool ok = pith_chat_clear(&s->chat, s->system);
    if (!ok) pith_cli_fail_text("out of memory for the system prompt; there is none now");
    return ok;
}

static bool command_clear(pith_chat_state *s, const char *rest) {
    (void)rest;
    if (!start_anew(s)) return false;
    fputs("note: started anew\n", stderr);
    return true;
}

static bool command_system(pith_chat_state *s, const char *rest) {
    pith_free(s->system);
    s->system = rest[0] ? pith_copy_text(rest, strlen(rest)) : NULL;
    if (!start_anew(s)) return false;
    if (!s->system && rest[0])
        return fail("out of memory for the system prompt; there is none now");
    fputs(s->system ? "note: started anew with this system prompt\n"
                    : "note: started anew without a system prompt\n",
          stderr);
    return true;
}

static bool command_history(pith_chat_state *s, const char *rest) {
    (void)rest;
    for (size_t i = 0; i < json_array_size(s->chat.messages); i++) {
        const json_t *message = json_array_get(s->chat.messages, i);
        const json_t *role = json_object_get(message, "role");
        const json_t *content = json_object_get(message, "content");
        print_lines(json_string_value(role), json_string_length(role), ": ");
        print_lines(json_string_value(content), json_string_length(content), "\n");
    }
    return true;
}

static bool command_save(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    if (!rest[0]) return fail("/save needs a FILE");
    if (pith_cli_is_device(rest)) return fail("%s is no file", rest);
    if (pith_chat_write_json(s->chat.messages, rest, &error) != PITH_OK)
        return fail("%s", error.text);
    fprintf(stderr, "saved %zu messages\n", json_array_size(s->chat.messages));
    return true;
}

/* The messages of a file; NULL with a message. */
static json_t *read_conversation(const char *path) {
    pith_buffer text = {0};
    pith_error error = {0};
    json_error_t fault = {0};
    json_t *json = NULL;
    if (!pith_cli_read_text(path, CONVERSATION_LIMIT, &text, &error))
        fail("%s", error.text);
    else if (!(json = json_loadb(text.data ? text.data : "", text.size, 0, &fault)))
        fail("%s, line %d: %s", path, fault.line, fault.text);
    pith_buffer_deinit(&text);
    if (!json || pith_chat_is_conversation(json)) return json;
    fail("%s is no list of messages with texts \"role\" and \"content\"", path);
    json_decref(json);
    return NULL;
}

static bool command_load(pith_chat_state *s, const char *rest) {
    if (!rest[0]) return fail("/load needs a FILE");
    json_t *json = read_conversation(rest);
    if (!json) return false;
    bool ok = pith_chat_load(&s->chat, json);
    if (ok)
        fprintf(stderr, "loaded %zu messages\n", json_array_size(json));
    else
        fail("out of memory for the messages of %s; there are none now", rest);
    json_decref(json);
    return ok;
}

/* The conversation so far stays under its name, if it has one; what follows is kept as NAME. */
static bool command_fork(pith_chat_state *s, const char *rest) {
    pith_error error = {0};
    if (!rest[0]) return fail("/fork needs a NAME");
    char *name = pith_copy_text(rest, strlen(rest));
    if (!name) return fail("out of memory");
    if (pith_chat_session_save(&s->chat, rest, &error) != PITH_OK) {
        pith_free(name);
        return fail("%s", error.text);
    }
    fprintf(stderr, "note: goes on as '%s'\n", rest);
    pith_free(s->name);
    s->name = name;
    return true;
}

/* Free again also lifts what --grammar and its kin asked for. */
static bool command_schema(pith_chat_state *s, const char *rest) {
    pith_cli_grammar wanted = {.schema_file = rest};
    pith_grammar *grammar = NULL;
    bool off = strcmp(rest, "off") == 0;
    if (!rest[0]) return fail("/schema needs a FILE, or off");
    bool ok = off || (pith_cli_read_grammar(NULL, &wanted, &grammar) < 0 &&
                      pith_cli_finish_grammar(&wanted, s->chat.model, &grammar) < 0);
    pith_cli_close_grammar(&wanted);
    if (!ok) return false;
    pith_grammar_free(s->grammar);
    s->chat.grammar = s->grammar = grammar;
    fputs(off ? "note: replies are free\n" : "note: replies are JSON of this schema\n", stderr);
    return true;
}

static bool command_stats(pith_chat_state *s, const char *rest) {
    (void)rest;
    if (s->chat.last.n_predicted > 0)
        pith_cli_print_stats(&s->chat.last);
    else
        fputs("note: there are no times: no reply was made yet, or the last one failed\n", stderr);
    fprintf(stderr, "context %zu of %zu\n", pith_chat_n_tokens(&s->chat), s->chat.capacity);
    return true;
}

static bool command_help(pith_chat_state *s, const char *rest) {
    (void)s, (void)rest;
    fprintf(stderr, "%s\n", pith_chat_commands_text);
    return true;
}

static bool command_quit(pith_chat_state *s, const char *rest) {
    (void)rest;
    s->quit = true;
    return true;
}

static const struct {
    const char *name;
    bool (*run)(pith_chat_state *s, const char *rest);
} commands[] = {
    {"help", command_help},       {"clear", command_clear}, {"system", command_system},
    {"retry", command_retry},     {"undo", command_undo},   {"edit", command_edit},
    {"history", command_history}, {"save", command_save},   {"load", command_load},
    {"fork", command_fork},       {"stats", command_stats}, {"quit", command_quit},
    {"schema", command_schema},   {"exit", command_quit},   {"bye", command_quit},
};

static void refuse_command(const char *name, size_t size) {
    pith_cli_near near;
    pith_cli_near_init(&near, name, size);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        pith_cli_near_offer(&near, commands[i].name);
    fail("there is no command /%.*s; %s%s%s/help lists them (a line that shall begin with / may "
         "begin with a space)",
         (int)size, name, near.best ? "did you mean /" : "", near.best ? near.best : "",
         near.best ? "? " : "");
}

void pith_chat_run_command(pith_chat_state *s, const char *line) {
    size_t size = strcspn(line + 1, " \t\n");
    const char *rest = line + 1 + size;
    rest += strspn(rest, " \t");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strlen(commands[i].name) != size || memcmp(commands[i].name, line + 1, size) != 0)
            continue;
        if (!commands[i].run(s, rest)) s->command_failed = true;
        return;
    }
    refuse_command(line + 1, size);
    s->command_failed = true;
}
