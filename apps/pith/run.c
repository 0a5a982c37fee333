/* SPDX-License-Identifier: Apache-2.0
 * `pith run`: one prompt, one answer, streamed. The prompt comes from the command line, a file or
 * standard input; it is wrapped by the model's chat template unless --raw. Statistics go to stderr
 * with --stats, everything to --json.
 * Ctrl-C ends the reply and keeps what was made: exit code 0. Before the first token there is
 * nothing to keep: exit code 1.
 * Read next: src/api/api_engine.c (pith_generate), then src/engine/reply.c. */
#include "base/memory.h"
#include "pith/record.h"
#include "pith/reply_option.h"

#include <errno.h>
#include <string.h>

enum { PROMPT_LIMIT = 64 << 20 };

typedef struct run_options {
    pith_cli_model model;
    pith_cli_sampler sampler;
    bool raw, json, stats, ignore_end, show_control, parse_special, no_record;
    int32_t max_tokens, n_logprobs; /* -1: no log-probabilities */
    const char *system, *file, *stop;
    pith_cli_draft draft;
    pith_cli_grammar grammar;
    pith_cli_tools tools;
    int overflow;
    int32_t n_keep;
} run_options;

typedef struct run_output {
    bool streaming;
    int failure; /* errno of the write after which stdout is gone; 0: none */
    pith_buffer text;
    pith_buffer ids; /* int32_t, of the tokens made */
    pith_cli_progress progress;
    const pith_model *model;
    json_t *logprobs;      /* NULL: not asked for */
    pith_message *message; /* of tools; NULL: the text goes out as it is */
    bool lacks_memory;
} run_output;

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    run_output *output = user;
    pith_cli_progress_end(&output->progress);
    if (id >= 0) pith_buffer_append(&output->ids, (const char *)&id, sizeof id);
    if (output->message) {
        pith_message_part part;
        output->lacks_memory =
            pith_message_push(output->message, id, text, size, &part, NULL) != PITH_OK;
        if (output->lacks_memory) return 1;
        text = part.content;
        size = part.content_size;
    }
    pith_buffer_append(&output->text, text, size);
    if (!output->streaming) return 0;
    if (fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0) return 0;
    output->failure = errno ? errno : EIO;
    return output->failure;
}

/* The end of a message: what it held back. */
static bool finish_message(run_output *output) {
    pith_message_part part;
    if (!output->message) return true;
    if (output->lacks_memory || pith_message_finish(output->message, &part, NULL) != PITH_OK)
        return false;
    pith_buffer_append(&output->text, part.content, part.content_size);
    if (output->streaming) fwrite(part.content, 1, part.content_size, stdout);
    return true;
}

static void on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    run_output *output = user;
    pith_cli_add_logprobs(output->logprobs, output->model, (pith_logprob){id, logprob}, top, n_top);
}

enum {
    OWN_OPTIONS = 16,
    N_OPTIONS = PITH_CLI_MODEL_OPTIONS + PITH_CLI_SAMPLER_OPTIONS + PITH_CLI_ADAPTER_OPTIONS +
                PITH_CLI_GRAMMAR_OPTIONS + PITH_CLI_TOOL_OPTIONS + OWN_OPTIONS
};

static void fill_options(run_options *o, pith_cli_option table[N_OPTIONS]) {
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
        {"overflow", 0, PITH_CLI_CHOICE, &o->overflow, "error|shift|truncate-middle",
         "what to do when the context is full (default: error)", 0, 0},
        {"keep", 0, PITH_CLI_INT, &o->n_keep, "N", "first tokens that --overflow keeps", 0,
         1 << 30},
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

/* The file, a blank line, the words: small models answer best what was asked last, and a file that
 * comes first is the same prefix for every question about it. */
static bool read_prompt(const run_options *o, const char **words, int n_words, pith_buffer *prompt,
                        pith_error *error) {
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

/* The chat that consists of the system prompt and this one message; NULL with a message. */
static pith_prompt *render_chat(const run_options *o, const pith_model *model, pith_span text,
                                pith_error *error) {
    json_t *messages = json_array();
    pith_prompt *prompt = NULL;
    if ((!o->system || pith_cli_add_message(messages, "system", pith_span_of(o->system))) &&
        pith_cli_add_message(messages, "user", text))
        prompt = pith_cli_render_tools(model, messages, o->tools.list, error);
    else
        pith_fail_memory(error, "the conversation", text.size);
    json_decref(messages);
    return prompt;
}

static int32_t *chat_ids(const pith_model *model, const pith_prompt *prompt, size_t *n_ids,
                         pith_error *error) {
    size_t size = 0;
    pith_prompt_text(prompt, &size);
    int32_t *ids = pith_alloc_array(size + 2, sizeof *ids);
    if (!ids) pith_fail_memory(error, "token ids", (size + 2) * sizeof *ids);
    if (ids && pith_prompt_tokenize(model, prompt, ids, size + 2, n_ids, error) != PITH_OK) {
        pith_free(ids);
        ids = NULL;
    }
    return ids;
}

typedef struct run_state {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_grammar *grammar;
    int32_t *ids;
    size_t n_ids;
    run_output output;
    pith_generation made;
} run_state;

/* Ids of the prompt, and the grammar of its tools. Exit code, or -1. */
static int take_prompt(run_options *o, run_state *s, const pith_buffer *given) {
    pith_error error = {0};
    pith_span text = {given->data ? given->data : "", given->size};
    if (!o->raw && pith_model_chat_template(s->model)) {
        pith_prompt *prompt = render_chat(o, s->model, text, &error);
        if (!prompt) return pith_cli_fail(&error);
        s->ids = chat_ids(s->model, prompt, &s->n_ids, &error);
        int code = s->ids ? pith_cli_open_tools(&o->tools, s->model, prompt, &s->grammar)
                          : pith_cli_fail(&error);
        pith_prompt_free(prompt);
        return code;
    }
    if (o->system || o->tools.list)
        return pith_cli_fail_text("%s needs a chat template, and the model has none",
                                  o->system ? "--system" : "--tools");
    if (!o->raw)
        fputs("note: the model has no chat template; the prompt is continued as it stands\n",
              stderr);
    unsigned flags =
        PITH_TOKENIZE_ADD_SPECIAL | (o->raw && o->parse_special ? PITH_TOKENIZE_PARSE_SPECIAL : 0u);
    s->ids = pith_cli_tokenize(s->model, text.data, text.size, flags, &s->n_ids, &error);
    return s->ids ? -1 : pith_cli_fail(&error);
}

static int print_result(const run_options *o, const run_state *s) {
    const pith_buffer *text = &s->output.text;
    if (o->stats) pith_cli_print_stats(&s->made);
    pith_cli_cache_note(s->engine);
    if (s->made.n_dropped > 0)
        fprintf(stderr, "note: %zu tokens were dropped to stay within the context of %d\n",
                s->made.n_dropped, (int)pith_engine_describe(s->engine).n_ctx);
    if (!o->json) {
        if (s->output.message)
            pith_cli_print_calls(s->output.message);
        else if (text->size && text->data[text->size - 1] != '\n')
            fputc('\n', stdout);
        int code = pith_cli_finish();
        if (s->made.stop == PITH_STOP_CONTEXT)
            fprintf(stderr, "note: the context of %d tokens is full; --ctx makes it longer\n",
                    (int)pith_engine_describe(s->engine).n_ctx);
        return code;
    }
    pith_cli_reply reply = {.model = s->model,
                            .engine = s->engine,
                            .session = s->session,
                            .ids = (const int32_t *)(const void *)s->output.ids.data,
                            .prompt_ids = s->ids,
                            .text = {text->data, text->size},
                            .message = s->output.message,
                            .made = &s->made,
                            .logprobs = json_incref(s->output.logprobs)};
    return pith_cli_print_json(pith_cli_reply_json(&reply));
}

static int generate(const run_options *o, run_state *s) {
    pith_error error = {0};
    const char *stops[1] = {o->stop};
    s->output.progress = pith_cli_progress_start("reading the prompt");
    s->output.streaming = !o->json;
    s->output.message = o->tools.message;
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = o->max_tokens,
                                     .stops = stops,
                                     .n_stops = o->stop ? 1 : 0,
                                     .ignore_end = o->ignore_end,
                                     .show_control = o->show_control || o->tools.message,
                                     .on_text = on_text,
                                     .user = &s->output,
                                     .on_prompt = pith_cli_progress_step,
                                     .prompt_user = &s->output.progress,
                                     .draft = o->draft.mode,
                                     .draft_session = o->draft.session,
                                     .overflow = (pith_overflow)o->overflow,
                                     .n_keep = o->n_keep,
                                     .grammar = s->grammar};
    if (o->n_logprobs >= 0) {
        s->output.model = s->model;
        s->output.logprobs = json_array();
        options.on_logprobs = on_logprobs;
        options.logprobs_user = &s->output;
        options.n_logprobs = o->n_logprobs;
    }
    pith_cli_interrupt_watch(s->session);
    pith_status status =
        pith_generate(s->session, s->sampler, s->ids, s->n_ids, &options, &s->made, &error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&s->output.progress);
    int32_t n_ctx = pith_engine_describe(s->engine).n_ctx;
    if (status == PITH_ERROR_LIMIT && s->n_ids > (size_t)n_ctx)
        return pith_cli_fail_text(
            "the prompt has %zu tokens, the context holds %d: shorten it or give a larger --ctx",
            s->n_ids, (int)n_ctx);
    if (status != PITH_OK) return pith_cli_fail(&error);
    if (s->output.failure)
        return pith_cli_fail_text("standard output could not be written: %s",
                                  strerror(s->output.failure));
    if (!finish_message(&s->output) || s->output.text.failed || s->output.ids.failed)
        return pith_cli_fail_text("out of memory for the reply's text");
    if (s->made.stop == PITH_STOP_CANCELLED && s->made.n_predicted == 0)
        return pith_cli_fail_text("stopped before the first token");
    if (!o->no_record && pith_cli_record_is_for(&o->model))
        pith_cli_record_reply(s->model, s->engine, &s->made);
    return print_result(o, s);
}

static int run_model(const pith_cli_command *command, run_options *o, const pith_buffer *prompt) {
    run_state s = {0};
    int code = pith_cli_read_tools(command, &o->tools);
    if (code < 0) code = pith_cli_open_model(command, &o->model, false, &s.model);
    if (code < 0) code = take_prompt(o, &s, prompt);
    if (code < 0) code = pith_cli_open_engine(&o->model, s.model, 0, &s.engine, &s.session);
    if (code < 0) code = pith_cli_sampler_open(command, &o->sampler, s.model, &s.sampler);
    if (code < 0) code = pith_cli_draft_open(command, &o->model, s.engine, &o->draft);
    if (code < 0 && !o->tools.list)
        code = pith_cli_open_grammar(command, &o->grammar, s.model, &s.grammar);
    if (code < 0) code = generate(o, &s);
    pith_grammar_free(s.grammar);
    pith_cli_close_tools(&o->tools);
    pith_cli_draft_close(&o->draft);
    pith_sampler_free(s.sampler);
    pith_session_free(s.session);
    pith_engine_free(s.engine);
    pith_model_close(s.model);
    pith_free(s.ids);
    pith_buffer_deinit(&s.output.text);
    pith_buffer_deinit(&s.output.ids);
    json_decref(s.output.logprobs);
    return code;
}

int pith_command_run(int argc, char **argv) {
    run_options o = {.n_logprobs = -1};
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
    if (code < 0 && !o.model.model) code = pith_cli_usage(&command, "which model? Give -m MODEL");
    if (code < 0 && o.raw && o.system)
        code = pith_cli_usage(&command, "--system has no place in a --raw prompt");
    const pith_cli_grammar *g = &o.grammar;
    bool has_grammar = g->gbnf_file || g->schema_file || g->regex || g->choices;
    if (code < 0 && o.tools.file && (o.raw || has_grammar))
        code = pith_cli_usage(&command, "--tools has no place %s",
                              o.raw ? "in a --raw prompt" : "beside another grammar");
    if (code < 0 && o.stop && !o.stop[0])
        code = pith_cli_usage(&command, "--stop needs a text, not an empty one");
    if (code < 0 && o.parse_special && !o.raw)
        code = pith_cli_usage(&command, "--parse-special is for --raw prompts");
    if (code < 0 && o.n_logprobs >= 0 && !o.json)
        code = pith_cli_usage(&command, "--logprobs is for --json");
    if (code < 0 && !read_prompt(&o, words, n_words, &prompt, &error)) code = pith_cli_fail(&error);
    if (code < 0) code = run_model(&command, &o, &prompt);
    pith_buffer_deinit(&prompt);
    pith_free(words);
    return code;
}
