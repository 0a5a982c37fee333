/* SPDX-License-Identifier: Apache-2.0
 * `pith run`: one prompt, one answer, streamed. The prompt comes from the command line or from
 * standard input; it is
 * wrapped by the model's chat template unless --raw. Statistics go to stderr with --stats,
 * everything to --json. */
#include "base/clock.h"
#include "base/memory.h"
#include "pith/cli.h"

#include <string.h>

enum { PROMPT_LIMIT = 64 << 20 };

typedef struct run_options {
    pith_cli_model model;
    pith_sampler_options sampler;
    bool raw, json, stats, ignore_end, show_control, parse_special;
    int32_t max_tokens;
    const char *system, *file, *stop;
} run_options;

typedef struct run_output {
    bool streaming;
    bool failed; /* stdout is gone */
    pith_buffer text;
} run_output;

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    run_output *output = user;
    (void)id;
    pith_buffer_append(&output->text, text, size);
    if (!output->streaming) return 0;
    if (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0) output->failed = true;
    return output->failed;
}

static int parse(run_options *o, int argc, char **argv, pith_cli_command *command,
                 pith_cli_option *table, const char **words, int *n_words) {
    pith_cli_option own[] = {
        {"predict", 'n', PITH_CLI_INT, &o->max_tokens, "N",
         "tokens to make at most (default: until the reply ends)", 0, 1 << 24},
        {"system", 's', PITH_CLI_TEXT, &o->system, "TEXT", "system prompt", 0, 0},
        {"file", 'f', PITH_CLI_TEXT, &o->file, "FILE", "read the prompt from a file", 0, 0},
        {"raw", 0, PITH_CLI_FLAG, &o->raw, "",
         "continue the prompt as it stands, without the chat template", 0, 0},
        {"parse-special", 0, PITH_CLI_FLAG, &o->parse_special, "",
         "with --raw: control tokens in the prompt are control tokens", 0, 0},
        {"stop", 0, PITH_CLI_TEXT, &o->stop, "TEXT", "end the reply before this text", 0, 0},
        {"temp", 0, PITH_CLI_FLOAT, &o->sampler.temperature, "T",
         "temperature (default: 0, always the likeliest token)", 0, 100},
        {"top-k", 0, PITH_CLI_INT, &o->sampler.top_k, "K",
         "sample from the K likeliest tokens (default: off)", 0, 1 << 24},
        {"top-p", 0, PITH_CLI_FLOAT, &o->sampler.top_p, "P",
         "sample from the likeliest tokens with sum P (default: off)", 0, 1},
        {"min-p", 0, PITH_CLI_FLOAT, &o->sampler.min_p, "P",
         "drop tokens below P times the likeliest (default: off)", 0, 1},
        {"repeat-penalty", 0, PITH_CLI_FLOAT, &o->sampler.repeat_penalty, "X",
         "weaken recent tokens (default: 1, off)", 0, 100},
        {"frequency-penalty", 0, PITH_CLI_FLOAT, &o->sampler.frequency_penalty, "X",
         "subtract X per recent use (default: 0)", -100, 100},
        {"presence-penalty", 0, PITH_CLI_FLOAT, &o->sampler.presence_penalty, "X",
         "subtract X once when used (default: 0)", -100, 100},
        {"seed", 0, PITH_CLI_SEED, &o->sampler.seed, "N",
         "the same seed gives the same reply (default: 0)", 0, 0},
        {"ignore-end", 0, PITH_CLI_FLAG, &o->ignore_end, "", "go on at end tokens", 0, 0},
        {"show-control", 0, PITH_CLI_FLAG, &o->show_control, "", "show control tokens in the reply",
         0, 0},
        {"stats", 0, PITH_CLI_FLAG, &o->stats, "", "show times and speeds afterwards", 0, 0},
        {"json", 0, PITH_CLI_FLAG, &o->json, "", "one JSON object instead of text", 0, 0},
    };
    pith_cli_model_options(&o->model, table);
    memcpy(table + PITH_CLI_MODEL_OPTIONS, own, sizeof own);
    *command =
        (pith_cli_command){"pith run -m MODEL [options] [PROMPT]", "Answers one prompt.", table,
                           PITH_CLI_MODEL_OPTIONS + sizeof own / sizeof own[0],
                           "Without PROMPT and --file the prompt is read from standard input."};
    return pith_cli_parse(command, argc, argv, words, n_words);
}

static bool read_prompt(const run_options *o, const char **words, int n_words, pith_buffer *prompt,
                        pith_error *error) {
    for (int i = 0; i < n_words; i++) {
        if (i) pith_buffer_append_text(prompt, " ");
        pith_buffer_append_text(prompt, words[i]);
    }
    if (n_words > 0 && o->file) pith_buffer_append_text(prompt, "\n\n");
    if (o->file) return pith_cli_read_file(o->file, PROMPT_LIMIT, prompt, error);
    if (n_words == 0)
        return pith_cli_read_all(stdin, "standard input", PROMPT_LIMIT, prompt, error);
    return true;
}

static int32_t *prompt_ids(const run_options *o, const pith_model *model, const pith_buffer *prompt,
                           size_t *n_ids, pith_error *error) {
    const char *text = prompt->data ? prompt->data : "";
    if (o->raw || !pith_model_chat_template(model))
        return pith_cli_tokenize(model, text, prompt->size,
                                 PITH_TOKENIZE_ADD_SPECIAL |
                                     (o->parse_special ? PITH_TOKENIZE_PARSE_SPECIAL : 0),
                                 n_ids, error);
    json_t *messages = json_array();
    if (o->system)
        json_array_append_new(messages,
                              json_pack("{s:s, s:o}", "role", "system", "content",
                                        pith_cli_json_text(o->system, strlen(o->system))));
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content",
                                              pith_cli_json_text(text, prompt->size)));
    int32_t *ids = pith_cli_chat_ids(model, messages, n_ids, error);
    json_decref(messages);
    return ids;
}

static json_t *json_ids(const int32_t *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static const char *stop_text(pith_stop stop) {
    static const char *const names[] = {"end",  "length",   "context",
                                        "text", "callback", "cancelled"};
    return names[stop];
}

typedef struct run_state {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    int32_t *ids;
    size_t n_ids;
    run_output output;
    pith_generation made;
} run_state;

static int print_result(const run_options *o, const run_state *s) {
    const pith_generation *g = &s->made;
    if (o->stats)
        fprintf(stderr,
                "prompt %zu tokens (%zu cached) in %.0f ms (%.1f tok/s), first token after %.0f "
                "ms, %zu tokens at %.1f tok/s\n",
                g->n_prompt, g->n_cached, g->prompt_ms,
                (double)(g->n_prompt - g->n_cached) / (g->prompt_ms > 0 ? g->prompt_ms * 1e-3 : 1),
                g->ttft_ms, g->n_predicted,
                g->predicted_ms > 0 ? (double)(g->n_predicted - 1) / g->predicted_ms * 1e3 : 0.0);
    if (!o->json) {
        if (s->output.text.size && s->output.text.data[s->output.text.size - 1] != '\n')
            fputc('\n', stdout);
        return pith_cli_finish();
    }
    const int32_t *all = pith_session_ids(s->session);
    size_t length = pith_session_length(s->session);
    const char *notes = pith_model_describe(s->model).notes;
    json_t *note_list = json_array();
    if (notes && notes[0])
        json_array_append_new(note_list, pith_cli_json_text(notes, strlen(notes)));
    return pith_cli_print_json(json_pack(
        "{s:o, s:o, s:o, s:s, s:{s:I, s:I, s:f, s:f, s:I, s:f, s:i, s:i}, s:s, s:I, s:o}", "text",
        pith_cli_json_text(s->output.text.data ? s->output.text.data : "", s->output.text.size),
        "ids", json_ids(all + (length - g->n_predicted), g->n_predicted), "prompt_ids",
        json_ids(s->ids, s->n_ids), "stop_reason", stop_text(g->stop), "timings", "prompt_n",
        (json_int_t)(g->n_prompt - g->n_cached), "cache_n", (json_int_t)g->n_cached, "prompt_ms",
        g->prompt_ms, "ttft_ms", g->ttft_ms, "predicted_n", (json_int_t)g->n_predicted,
        "predicted_ms", g->predicted_ms, "draft_n", 0, "draft_accepted_n", 0, "backend",
        pith_engine_describe(s->engine).backend, "peak_bytes", (json_int_t)pith_memory_peak(),
        "notes", note_list));
}

static int generate(const run_options *o, run_state *s) {
    pith_error error = {0};
    const char *stops[1] = {o->stop};
    pith_cli_progress progress = pith_cli_progress_start("reading the prompt", o->json);
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = o->max_tokens,
                                     .stops = stops,
                                     .n_stops = o->stop ? 1 : 0,
                                     .ignore_end = o->ignore_end,
                                     .show_control = o->show_control,
                                     .on_text = on_text,
                                     .user = &s->output,
                                     .on_prompt = pith_cli_progress_step,
                                     .prompt_user = &progress};
    s->output.streaming = !o->json;
    pith_cli_interrupt_watch(s->session);
    pith_status status =
        pith_generate(s->session, s->sampler, s->ids, s->n_ids, &options, &s->made, &error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&progress);
    if (status != PITH_OK) return pith_cli_fail(&error);
    if (s->output.failed) return pith_cli_fail_text("standard output could not be written");
    return print_result(o, s);
}

static int run_model(const pith_cli_command *command, const run_options *o,
                     const pith_buffer *prompt) {
    pith_error error = {0};
    run_state s = {0};
    int code = pith_cli_open_model(command, &o->model, false, &s.model);
    if (code < 0) {
        s.ids = prompt_ids(o, s.model, prompt, &s.n_ids, &error);
        code = s.ids ? pith_cli_open_engine(&o->model, s.model, 0, &s.engine, &s.session)
                     : pith_cli_fail(&error);
    }
    if (code < 0 && pith_sampler_new(s.model, &o->sampler, &s.sampler, &error) != PITH_OK)
        code = pith_cli_fail(&error);
    if (code < 0) code = generate(o, &s);
    pith_sampler_free(s.sampler);
    pith_session_free(s.session);
    pith_engine_free(s.engine);
    pith_model_close(s.model);
    pith_free(s.ids);
    pith_buffer_deinit(&s.output.text);
    return code;
}

int pith_command_run(int argc, char **argv) {
    run_options o = {.sampler.size = sizeof o.sampler};
    pith_cli_option table[PITH_CLI_MODEL_OPTIONS + 18];
    pith_cli_command command;
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    pith_buffer prompt = {0};
    pith_error error = {0};
    int code = parse(&o, argc, argv, &command, table, words, &n_words);
    if (code < 0 && !o.model.model) code = pith_cli_usage(&command, "which model? Give -m MODEL");
    if (code < 0 && !read_prompt(&o, words, n_words, &prompt, &error)) code = pith_cli_fail(&error);
    if (code < 0) code = run_model(&command, &o, &prompt);
    pith_buffer_deinit(&prompt);
    pith_free(words);
    return code;
}
