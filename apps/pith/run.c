/* SPDX-License-Identifier: Apache-2.0
 * `pith run`: one prompt, one answer, streamed; or several answers to it (--n). The prompt comes
 * from the command line, a file or standard input; it is wrapped by the model's chat template
 * unless --raw. Statistics go to stderr with --stats, everything to --json.
 * Ctrl-C ends the reply and keeps what was made: exit code 0. Before the first token there is
 * nothing to keep: exit code 1.
 * Here: options, the prompt and its ids. Read next: run_reply.c. */
#include "pith/run_parts.h"

#include "base/memory.h"

#include <string.h>

enum {
    PROMPT_LIMIT = 64 << 20,
    OWN_OPTIONS = 17,
    N_OPTIONS = PITH_CLI_MODEL_OPTIONS + PITH_CLI_SAMPLER_OPTIONS + PITH_CLI_ADAPTER_OPTIONS +
                PITH_CLI_GRAMMAR_OPTIONS + PITH_CLI_TOOL_OPTIONS + OWN_OPTIONS
};

static void fill_options(pith_run_options *o, pith_cli_option table[N_OPTIONS]) {
    const pith_cli_option own[OWN_OPTIONS] = {
        {"predict", 'n', PITH_CLI_INT, &o->max_tokens, "N",
         "tokens to make at most (default: 0, until the reply ends)", 0, 1 << 24},
        {"system", 's', PITH_CLI_TEXT, &o->system, "TEXT", "system prompt", 0, 0},
        {"file", 'f', PITH_CLI_TEXT, &o->file, "FILE",
         "prompt from FILE (- is standard input); PROMPT follows it", 0, 0},
        {"raw", 0, PITH_CLI_FLAG, &o->raw, "",
         "continue the prompt as it stands, without the chat template", 0, 0},
        {"parse-special", 0, PITH_CLI_FLAG, &o->parse_special, "",
         "with --raw: control tokens in the prompt are control tokens", 0, 0},
        {"stop", 0, PITH_CLI_TEXT, &o->stop, "TEXT", "end the reply before this text", 0, 0},
        {"ignore-end", 0, PITH_CLI_FLAG, &o->ignore_end, "", "go on at end tokens", 0, 0},
        {"show-control", 0, PITH_CLI_FLAG, &o->show_control, "", "show control tokens in the reply",
         0, 0},
        {"stats", 0, PITH_CLI_FLAG, &o->stats, "", "show times and speeds afterwards", 0, 0},
        {"json", 0, PITH_CLI_FLAG, &o->json, "", "one JSON object instead of text", 0, 0},
        {"logprobs", 0, PITH_CLI_INT, &o->n_logprobs, "N",
         "with --json: log-probabilities, of the N likeliest too", 0, PITH_LOGPROBS_MAX},
        {"no-record", 0, PITH_CLI_FLAG, &o->no_record, "",
         "do not keep times and memory for `pith fit`", 0, 0},
        pith_cli_draft_option(&o->draft),
        pith_cli_cache_option(&o->model),
        {"overflow", 0, PITH_CLI_CHOICE, &o->overflow, "error|shift|truncate-middle|summarise",
         "when the context is full (default: error)", 0, 0},
        {"keep", 0, PITH_CLI_INT, &o->n_keep, "N", "first tokens that --overflow keeps", 0,
         1 << 30},
        {"n", 0, PITH_CLI_INT, &o->n_choices, "N",
         "N replies made together, with seeds from --seed on", 1, PITH_RUN_MAX_CHOICES},
    };
    pith_cli_model_options(&o->model, table);
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    pith_cli_option *rest = table + PITH_CLI_MODEL_OPTIONS + OWN_OPTIONS;
    pith_cli_adapter_options(&o->model, rest);
    rest += PITH_CLI_ADAPTER_OPTIONS;
    pith_cli_grammar_options(&o->grammar, rest);
    rest += PITH_CLI_GRAMMAR_OPTIONS;
    pith_cli_tool_options(&o->tools, rest);
    pith_cli_sampler_options(&o->sampler, rest + PITH_CLI_TOOL_OPTIONS);
}

/* ---- The prompt ---- */

/* The file, a blank line, the words: small models answer best what was asked last, and a file that
 * comes first is the same prefix for every question about it. */
static bool read_prompt(const pith_run_options *o, const char **words, int n_words,
                        pith_buffer *prompt, pith_error *error) {
    if (o->file) {
        if (!pith_cli_read_file(o->file, PROMPT_LIMIT, prompt, error)) return false;
        if (n_words > 0 && prompt->size > 0 && prompt->data[prompt->size - 1] != '\n')
            pith_buffer_append_text(prompt, "\n");
        if (n_words > 0 && prompt->size > 0) pith_buffer_append_text(prompt, "\n");
    }
    for (int i = 0; i < n_words; i++) {
        if (i) pith_buffer_append_text(prompt, " ");
        pith_buffer_append_text(prompt, words[i]);
    }
    if (o->file || n_words > 0) {
        if (prompt->failed) pith_fail_memory(error, "the prompt", prompt->size);
        return !prompt->failed;
    }
    if (pith_cli_is_terminal(stdin))
        fputs("note: reading the prompt from the terminal; Ctrl-D ends it\n", stderr);
    return pith_cli_read_all(stdin, "standard input", PROMPT_LIMIT, prompt, error);
}

/* The chat that consists of the system prompt and this one message. */
static bool make_messages(const pith_run_options *o, pith_run_state *s, pith_span text,
                          pith_error *error) {
    s->messages = json_array();
    if ((!o->system || pith_cli_add_message(s->messages, "system", pith_span_of(o->system))) &&
        pith_cli_add_message(s->messages, "user", text))
        return true;
    pith_fail_memory(error, "the conversation", text.size);
    return false;
}

/* The ids of the messages as they are now, and at first the grammar of the tools. Exit code, or -1.
 */
static int take_messages(pith_run_options *o, pith_run_state *s) {
    pith_error error = {0};
    pith_prompt *prompt = pith_cli_render_tools(s->model, s->messages, o->tools.list, &error);
    if (!prompt) return pith_cli_fail(&error);
    size_t size = 0;
    pith_prompt_text(prompt, &size);
    pith_free(s->ids);
    s->ids = pith_alloc_array(size + 2, sizeof *s->ids);
    if (!s->ids) pith_fail_memory(&error, "token ids", (size + 2) * sizeof *s->ids);
    bool ok = s->ids && pith_prompt_tokenize(s->model, prompt, s->ids, size + 2, &s->n_ids,
                                             &error) == PITH_OK;
    int code = ok ? -1 : pith_cli_fail(&error);
    if (ok && !s->grammar) code = pith_cli_open_tools(&o->tools, s->model, prompt, &s->grammar);
    pith_prompt_free(prompt);
    if (ok) s->shared = pith_cli_shared_ids(s->model, s->messages, s->ids, s->n_ids);
    return code;
}

/* What this needs a chat template for; NULL: nothing. */
static const char *needs_template(const pith_run_options *o) {
    if (o->system) return "--system";
    if (o->tools.list) return "--tools";
    return o->overflow == PITH_RUN_SUMMARISE ? "--overflow summarise" : NULL;
}

/* Exit code, or -1. */
static int take_prompt(pith_run_options *o, pith_run_state *s, const pith_buffer *prompt) {
    pith_error error = {0};
    pith_span text = {prompt->data ? prompt->data : "", prompt->size};
    if (!o->raw && pith_model_chat_template(s->model))
        return make_messages(o, s, text, &error) ? take_messages(o, s) : pith_cli_fail(&error);
    if (needs_template(o))
        return pith_cli_fail_text("%s needs a chat template, and the model has none",
                                  needs_template(o));
    if (!o->raw)
        fputs("note: the model has no chat template; the prompt is continued as it stands\n",
              stderr);
    unsigned flags =
        PITH_TOKENIZE_ADD_SPECIAL | (o->raw && o->parse_special ? PITH_TOKENIZE_PARSE_SPECIAL : 0u);
    s->ids = pith_cli_tokenize(s->model, text.data, text.size, flags, &s->n_ids, &error);
    return s->ids ? -1 : pith_cli_fail(&error);
}

/* A prompt that leaves the reply no room becomes shorter. Exit code, or -1. */
static int summarise(pith_run_options *o, pith_run_state *s) {
    pith_error error = {0};
    if (o->overflow != PITH_RUN_SUMMARISE) return -1;
    pith_cli_talk talk = {s->session, s->messages, o->tools.list};
    pith_conversation_options options = {.size = sizeof options,
                                         .max_tokens = o->max_tokens,
                                         .n_keep = o->n_keep,
                                         .draft = o->draft.mode,
                                         .draft_session = o->draft.session};
    pith_status status = pith_cli_shorten(&talk, &options, &s->shorter, &error);
    if (status != PITH_OK) return pith_cli_fail(&error);
    return s->shorter.n_dropped > 0 ? take_messages(o, s) : -1;
}

/* ---- The command ---- */

/* Tokens of context that are enough where --ctx says nothing; 0: the usual ones. Each of several
 * replies has a context of its own, so it is no larger than it must be. */
static int32_t wanted_context(const pith_run_options *o, const pith_run_state *s) {
    int32_t usual = pith_model_describe(s->model).n_ctx_train;
    usual = usual < 4096 ? usual : 4096;
    if (o->n_choices < 2 || o->max_tokens == 0) return 0;
    uint64_t wanted = s->n_ids + (uint64_t)o->max_tokens;
    return wanted < (uint64_t)usual ? (int32_t)wanted : 0;
}

static int open_draft(const pith_cli_command *command, pith_run_options *o,
                      const pith_run_state *s) {
    const pith_cli_draft_target target = {s->model, s->engine, s->session};
    return pith_cli_draft_open(command, &o->model, &target, &o->draft);
}

static int check_keep(const pith_cli_command *command, const pith_run_options *o,
                      const pith_run_state *s) {
    int32_t n_ctx = pith_engine_describe(s->engine).n_ctx;
    if (o->n_keep <= n_ctx / 2) return -1;
    return pith_cli_usage(command, "--keep %d is more than half of the context of %d tokens",
                          (int)o->n_keep, (int)n_ctx);
}

static int run_model(const pith_cli_command *command, pith_run_options *o,
                     const pith_buffer *prompt) {
    pith_run_state s = {0};
    int code = pith_cli_read_tools(command, &o->tools);
    if (code < 0) code = pith_cli_read_grammar(command, &o->grammar, &s.grammar);
    if (code < 0) code = pith_cli_check_draft(&o->draft);
    if (code < 0) code = pith_cli_open_model(command, &o->model, false, &s.model);
    if (code < 0) pith_cli_prefer_tell(&o->model, s.model);
    if (code < 0) code = take_prompt(o, &s, prompt);
    if (code < 0)
        code =
            pith_cli_open_engine(&o->model, s.model, wanted_context(o, &s), &s.engine, &s.session);
    if (code < 0) code = check_keep(command, o, &s);
    if (code < 0) code = pith_cli_sampler_open(command, &o->sampler, s.model, &s.sampler);
    if (code < 0) code = open_draft(command, o, &s);
    if (code < 0 && !o->tools.list)
        code = pith_cli_finish_grammar(&o->grammar, s.model, &s.grammar);
    if (code < 0) code = summarise(o, &s);
    if (code < 0) code = o->n_choices > 1 ? pith_run_choices(o, &s) : pith_run_reply(o, &s);
    pith_grammar_free(s.grammar);
    pith_cli_close_grammar(&o->grammar);
    pith_cli_close_tools(&o->tools);
    pith_cli_draft_close(&o->draft);
    pith_sampler_free(s.sampler);
    pith_session_free(s.session);
    pith_engine_free(s.engine);
    pith_model_close(s.model);
    json_decref(s.messages);
    pith_free(s.ids);
    pith_run_output_close(&s.output);
    return code;
}

/* -1, or the usage exit code. */
static int check_options(const pith_cli_command *command, const pith_run_options *o) {
    if (!o->model.model)
        return pith_cli_usage(command, "which model? Give -m MODEL (`pith list` shows them)");
    if (o->raw && o->system)
        return pith_cli_usage(command, "--system has no place in a --raw prompt");
    if (o->raw && o->overflow == PITH_RUN_SUMMARISE)
        return pith_cli_usage(command, "--overflow summarise needs messages, not a --raw prompt");
    const pith_cli_grammar *g = &o->grammar;
    bool has_grammar = g->gbnf_file || g->schema_file || g->regex || g->choices;
    if (o->tools.file && (o->raw || has_grammar || o->n_choices > 1))
        return pith_cli_usage(command, "--tools has no place %s",
                              o->raw        ? "in a --raw prompt"
                              : has_grammar ? "beside another grammar"
                                            : "beside --n");
    if (o->stop && !o->stop[0])
        return pith_cli_usage(command, "--stop needs a text, not an empty one");
    if (o->parse_special && !o->raw)
        return pith_cli_usage(command, "--parse-special is for --raw prompts");
    if (o->n_logprobs >= 0 && !o->json) return pith_cli_usage(command, "--logprobs is for --json");
    int code = pith_cli_check_sampler(command, &o->sampler);
    if (code >= 0) return code;
    if (o->n_choices > 1 && pith_cli_draft_is_model(&o->draft))
        return pith_cli_usage(command, "--draft MODEL guesses for one reply, not for --n %d",
                              (int)o->n_choices);
    return -1;
}

int pith_command_run(int argc, char **argv) {
    pith_run_options o = {.n_logprobs = -1};
    pith_cli_option table[N_OPTIONS];
    fill_options(&o, table);
    pith_cli_command command = {
        "pith run -m MODEL [options] [PROMPT]", "Answers one prompt.", table, N_OPTIONS,
        "Without PROMPT and --file the prompt is read from standard input. Ctrl-C ends the reply\n"
        "and keeps what was made; before the first token it is a failure. A second one ends pith."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    pith_buffer prompt = {0};
    pith_error error = {0};
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0) code = check_options(&command, &o);
    if (code < 0 && !read_prompt(&o, words, n_words, &prompt, &error)) code = pith_cli_fail(&error);
    o.model.n_sessions = o.n_choices;
    if (code < 0) code = pith_cli_prefer(&o.model, &o.draft);
    if (code < 0) code = run_model(&command, &o, &prompt);
    pith_buffer_deinit(&prompt);
    pith_free(words);
    return code;
}
