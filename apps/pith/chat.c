/* SPDX-License-Identifier: Apache-2.0
 * `pith chat`: a conversation in the terminal or through a pipe. Ctrl-C stops the reply and keeps
 * what was made; lines that begin with `/` are commands. With --json a reply is one JSON line on
 * stdout, and a failure is one as well, so that a program on the other side keeps in step.
 * Here: options, the loop, printing replies. Read next: chat_turn.c. */
#include "pith/chat_parts.h"

#include "base/memory.h"
#include "pith/record.h"

#include <string.h>

typedef struct chat_options {
    pith_cli_model model;
    pith_cli_sampler sampler;
    const char *system;
    int32_t max_tokens;
    bool json, no_record;
    pith_cli_draft draft;
    const char *resume;
    bool sessions;
    pith_cli_grammar grammar;
    int overflow;
    int32_t n_keep, n_logprobs; /* -1: no log-probabilities */
} chat_options;

static void print_reply(pith_chat_state *s) {
    const pith_chat *chat = &s->chat;
    if (!s->json) {
        fputc('\n', stdout);
        fflush(stdout);
        return;
    }
    const int32_t *end = pith_session_ids(chat->session) + pith_session_length(chat->session);
    pith_cli_reply reply = {.model = chat->model,
                            .engine = s->engine,
                            .session = chat->session,
                            .ids = end - chat->last.n_predicted,
                            .prompt_ids = chat->ids,
                            .text = pith_chat_last_text(chat),
                            .made = &chat->last,
                            .shorter = &chat->shorter,
                            .prefer = s->prefer,
                            .logprobs = json_incref(chat->logprobs)};
    s->code = pith_cli_print_json(pith_cli_reply_json(&reply));
}

static void tell_loop(const pith_chat *chat) {
    size_t n = chat->last.n_predicted, length = pith_session_length(chat->session);
    char text[160] = "";
    if (n <= length) /* else a part of the reply was shifted away */
        pith_cli_describe_loop(pith_session_ids(chat->session) + length - n, n, text, sizeof text);
    if (text[0]) fprintf(stderr, "note: %s\n", text);
}

void pith_chat_tell(pith_chat_state *s, pith_status status, const pith_error *error) {
    const pith_generation *last = &s->chat.last;
    char text[160];
    pith_cli_shorten_describe(&s->chat.shorter, text, sizeof text);
    if (status == PITH_OK) {
        print_reply(s);
        pith_chat_keep(s);
        if (s->keep_record) pith_cli_record_reply(s->chat.model, s->engine, last);
        if (text[0]) fprintf(stderr, "note: %s\n", text);
        if (last->stop == PITH_STOP_CONTEXT)
            fprintf(stderr,
                    "note: the context is full; /clear starts anew, --ctx makes it longer%s\n",
                    pith_chat_overflow_hint(&s->chat));
        if (last->stop == PITH_STOP_CANCELLED) fputs("note: stopped\n", stderr);
        tell_loop(&s->chat);
        return;
    }
    if (status == PITH_ERROR_CANCELLED) {
        fputs("\nnote: stopped before the first token; the conversation is as it was\n", stderr);
        s->code = PITH_EXIT_OK;
    } else {
        s->code = pith_cli_fail(error);
    }
    pith_cli_json_failed(); /* told already, and the line must be printed all the same */
    if (s->json)
        pith_cli_print_json(json_pack("{s:o}", "error", pith_cli_json_string(error->text)));
}

void pith_chat_keep(pith_chat_state *s) {
    pith_error error = {0};
    if (s->name && pith_chat_session_save(&s->chat, s->name, &error) != PITH_OK)
        fprintf(stderr, "note: the conversation is not kept: %s\n", error.text);
}

/* --resume: what is kept under the name, or a new conversation. */
static int resume(pith_chat_state *s, const char *name, const char *system) {
    pith_error error = {0};
    s->name = pith_copy_text(name, strlen(name));
    if (!s->name) return pith_cli_fail_text("out of memory");
    pith_status status = pith_chat_session_load(&s->chat, name, &error);
    if (status == PITH_ERROR_NOT_FOUND) {
        fprintf(stderr, "note: '%s' is a new conversation\n", name);
        return -1;
    }
    if (status != PITH_OK) return pith_cli_fail(&error);
    if (system) fputs("note: --system is for new conversations; this one keeps its own\n", stderr);
    fprintf(stderr, "note: '%s' goes on after %zu messages\n", name,
            json_array_size(s->chat.messages));
    return -1;
}

void pith_chat_exchange(pith_chat_state *s, const char *text) {
    pith_error error = {0};
    pith_status status = pith_chat_say(&s->chat, text, &error);
    pith_chat_tell(s, status, &error);
}

static void loop(pith_chat_state *s) {
    while (!s->quit) {
        char *line = pith_chat_lines_read(&s->lines);
        if (!line) {
            if (s->lines.failed) s->code = PITH_EXIT_FAILURE;
            break;
        }
        if (line[0] == '/')
            pith_chat_run_command(s, line);
        else if (line[strspn(line, " \t\n")] != 0)
            pith_chat_exchange(s, line);
        pith_free(line);
        if (ferror(stdout)) s->quit = true;
    }
}

static int talk(pith_chat_state *s, const chat_options *o) {
    if (o->system) s->system = pith_copy_text(o->system, strlen(o->system));
    if ((o->system && !s->system) || !pith_chat_clear(&s->chat, s->system))
        return pith_cli_fail_text("out of memory for the system prompt");
    int code = o->resume ? resume(s, o->resume, o->system) : -1;
    if (code >= 0) return code;
    pith_chat_lines_open(&s->lines);
    if (s->lines.terminal) {
        const char *name = pith_model_describe(s->chat.model).name;
        pith_cli_print_clean(stderr, name, strlen(name), 80);
        fprintf(stderr, ", context %zu. /help lists commands.\n", s->chat.capacity);
    }
    loop(s);
    pith_chat_lines_close(&s->lines);
    pith_cli_cache_note(s->engine);
    code = s->code ? s->code : pith_cli_finish();
    /* a person has read it; a program learns it by the exit code */
    if (code == PITH_EXIT_OK && s->command_failed && !s->lines.terminal) code = PITH_EXIT_FAILURE;
    return code;
}

static int run_chat(const pith_cli_command *command, chat_options *o) {
    pith_error error = {0};
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    pith_chat_state s = {.json = o->json,
                         .keep_record = !o->no_record && pith_cli_record_is_for(&o->model) &&
                                        !pith_cli_draft_is_model(&o->draft)};
    int code = pith_cli_read_grammar(command, &o->grammar, &s.grammar);
    if (code < 0) code = pith_cli_check_draft(&o->draft);
    if (code < 0) code = pith_cli_open_model(command, &o->model, false, &model);
    if (code < 0 && !pith_model_chat_template(model))
        code =
            pith_cli_fail_text("this model has no chat template; `pith run --raw` continues text");
    if (code < 0) pith_cli_prefer_tell(&o->model, model);
    if (code < 0) code = pith_cli_open_engine(&o->model, model, 0, &engine, &session);
    const pith_cli_draft_target target = {model, engine, session};
    if (code < 0) code = pith_cli_draft_open(command, &o->model, &target, &o->draft);
    if (code < 0) {
        size_t n_ctx = (size_t)pith_engine_describe(engine).n_ctx;
        if (!pith_chat_init(&s.chat, model, session, n_ctx, &error)) code = pith_cli_fail(&error);
    }
    if (code < 0) code = pith_cli_sampler_open(command, &o->sampler, model, &s.chat.sampler);
    if (code < 0) code = pith_cli_finish_grammar(&o->grammar, model, &s.grammar);
    s.engine = engine;
    s.prefer = o->model.prefer_text;
    s.chat.grammar = s.grammar;
    s.chat.overflow = (pith_chat_overflow)o->overflow;
    s.chat.n_keep = o->n_keep;
    s.chat.n_logprobs = o->n_logprobs;
    s.chat.max_tokens = o->max_tokens;
    s.chat.draft = &o->draft;
    s.chat.banned = &o->sampler.banned;
    s.chat.quiet = o->json;
    if (code < 0) code = talk(&s, o);
    pith_sampler_free(s.chat.sampler);
    pith_chat_deinit(&s.chat);
    pith_grammar_free(s.grammar);
    pith_cli_close_grammar(&o->grammar);
    pith_free(s.system);
    pith_free(s.name);
    pith_cli_draft_close(&o->draft);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return code;
}

enum {
    OWN_OPTIONS = 11,
    N_OPTIONS = PITH_CLI_MODEL_OPTIONS + OWN_OPTIONS + PITH_CLI_ADAPTER_OPTIONS +
                PITH_CLI_GRAMMAR_OPTIONS + PITH_CLI_SAMPLER_OPTIONS
};

static void fill_options(chat_options *o, pith_cli_option table[N_OPTIONS]) {
    const pith_cli_option own[OWN_OPTIONS] = {
        {"system", 's', PITH_CLI_TEXT, &o->system, "TEXT", "system prompt", 0, 0},
        {"predict", 'n', PITH_CLI_INT, &o->max_tokens, "N",
         "tokens a reply has at most (default: 0, until it ends)", 0, 1 << 24},
        {"json", 0, PITH_CLI_FLAG, &o->json, "",
         "one JSON line a reply, {\"error\"} when there is none", 0, 0},
        {"no-record", 0, PITH_CLI_FLAG, &o->no_record, "",
         "do not keep times and memory for `pith fit`", 0, 0},
        pith_cli_draft_option(&o->draft),
        pith_cli_cache_option(&o->model),
        {"resume", 0, PITH_CLI_TEXT, &o->resume, "NAME",
         "go on with the conversation NAME, or begin it, and keep it", 0, 0},
        {"sessions", 0, PITH_CLI_FLAG, &o->sessions, "", "list the names of kept conversations", 0,
         0},
        {"overflow", 0, PITH_CLI_CHOICE, &o->overflow, "error|shift|summarise",
         "what to do when the context is full (default: error)", 0, 0},
        {"keep", 0, PITH_CLI_INT, &o->n_keep, "N",
         "exchanges within the first N tokens that --overflow keeps", 0, 1 << 30},
        {"logprobs", 0, PITH_CLI_INT, &o->n_logprobs, "N",
         "with --json: log-probabilities, of the N likeliest too", 0, PITH_LOGPROBS_MAX},
    };
    pith_cli_model_options(&o->model, table);
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    pith_cli_option *rest = table + PITH_CLI_MODEL_OPTIONS + OWN_OPTIONS;
    pith_cli_adapter_options(&o->model, rest);
    rest += PITH_CLI_ADAPTER_OPTIONS;
    pith_cli_grammar_options(&o->grammar, rest);
    pith_cli_sampler_options(&o->sampler, rest + PITH_CLI_GRAMMAR_OPTIONS);
}

int pith_command_chat(int argc, char **argv) {
    chat_options o = {.n_logprobs = -1};
    pith_cli_option table[N_OPTIONS];
    fill_options(&o, table);
    pith_cli_command command = {"pith chat -m MODEL [options]",
                                "Talks with a model in the terminal.", table, N_OPTIONS,
                                pith_chat_commands_text};
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code < 0 && o.sessions) return pith_chat_session_list();
    if (code < 0 && o.n_logprobs >= 0 && !o.json)
        code = pith_cli_usage(&command, "--logprobs is for --json");
    if (code < 0) code = pith_cli_check_sampler(&command, &o.sampler);
    if (code < 0) code = pith_cli_prefer(&o.model, &o.draft);
    return code < 0 ? run_chat(&command, &o) : code;
}
