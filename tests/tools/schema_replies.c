/* SPDX-License-Identifier: Apache-2.0
 * Replies of a model that must fit JSON schemas, for scripts that check them:
 *   pith-schema-replies MODEL N_SESSIONS MAX_TOKENS TEMPERATURE N_SEEDS < LINES
 * A line is {"schema": ANY, "prompt": TEXT}. Answers come as lines, in any order:
 *   {"line": N, "error": TEXT}                                   the schema was refused
 *   {"line": N, "seed": S, "text": TEXT, "stop": "end"|"length", "n": TOKENS}
 * Sessions take schemas one after the other and make the replies of all seeds to each, so that a
 * prompt is read once; all sessions share the engine's steps. Speaks to pith.h only. */
#include <jansson.h>
#include <pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SESSIONS = 32, CONTEXT = 2048, TEXT_BYTES = 1 << 16 };

typedef struct job {
    pith_session *session;
    pith_sampler *sampler;
    pith_reply *reply;
    pith_grammar *grammar; /* NULL: the job takes the next line */
    int line, seed;
    int32_t ids[CONTEXT];
    size_t n_ids, size;
    char text[TEXT_BYTES];
} job;

typedef struct work {
    pith_model *model;
    pith_engine *engine;
    int max_tokens, n_seeds, n_lines, n_ctx;
    float temperature;
    job *jobs;
} work;

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "schema replies: %s\n", error->text);
    exit(1);
}

static void print(json_t *answer) {
    char *line = json_dumps(answer, 0);
    puts(line ? line : "null");
    free(line);
    json_decref(answer);
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    job *j = user;
    (void)id;
    if (size > sizeof j->text - j->size) return 1;
    memcpy(j->text + j->size, text, size);
    j->size += size;
    return 0;
}

static void tokenize_prompt(const work *w, job *j, const json_t *prompt) {
    pith_error error = {0};
    pith_prompt *rendered = NULL;
    if (pith_model_chat_template(w->model) == NULL) {
        check(pith_tokenize(w->model, json_string_value(prompt), json_string_length(prompt),
                            PITH_TOKENIZE_ADD_SPECIAL, j->ids, CONTEXT, &j->n_ids, &error),
              &error);
        return;
    }
    json_t *context = json_pack("{s:[{s:s, s:O}], s:b}", "messages", "role", "user", "content",
                                prompt, "add_generation_prompt", 1);
    char *text = json_dumps(context, 0);
    check(pith_prompt_render(w->model, NULL, text, &rendered, &error), &error);
    check(pith_prompt_tokenize(w->model, rendered, j->ids, CONTEXT, &j->n_ids, &error), &error);
    pith_prompt_free(rendered);
    free(text);
    json_decref(context);
}

/* At most as many ids as leave room for the reply. */
static void read_prompt(const work *w, job *j, const json_t *prompt) {
    tokenize_prompt(w, j, prompt);
    const size_t most = (size_t)(w->n_ctx > w->max_tokens ? w->n_ctx - w->max_tokens : 1);
    if (j->n_ids > most) j->n_ids = most;
}

/* The next schema that is not refused; false: there is none. */
static bool next_schema(work *w, job *j) {
    while (j->grammar == NULL) {
        pith_error error = {0};
        json_t *request = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);
        if (request == NULL) return false;
        char *schema = json_dumps(json_object_get(request, "schema"), JSON_ENCODE_ANY);
        j->line = w->n_lines++;
        j->seed = 0;
        if (pith_grammar_new(w->model, PITH_GRAMMAR_JSON_SCHEMA, schema, strlen(schema),
                             &j->grammar, &error) == PITH_OK)
            read_prompt(w, j, json_object_get(request, "prompt"));
        else
            print(json_pack("{s:i, s:s}", "line", j->line, "error", error.text));
        free(schema);
        json_decref(request);
    }
    return true;
}

/* Begins the job's next reply; false: all is done. */
static bool start(work *w, job *j) {
    pith_error error = {0};
    if (!next_schema(w, j)) return false;
    pith_sampler_options sampling = {.size = sizeof sampling,
                                     .temperature = w->temperature,
                                     .seed =
                                         (uint64_t)(j->seed + 1) * 1000003u + (uint64_t)j->line};
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = w->max_tokens,
                                     .draft = PITH_DRAFT_OFF,
                                     .on_text = on_text,
                                     .user = j,
                                     .grammar = j->grammar};
    j->size = 0;
    check(pith_sampler_new(w->model, &sampling, &j->sampler, &error), &error);
    check(pith_reply_new(j->session, j->sampler, j->ids, j->n_ids, &options, &j->reply, &error),
          &error);
    return true;
}

static void finish(const work *w, job *j) {
    pith_generation made = {0};
    pith_error error = {0};
    pith_status status = pith_reply_result(j->reply, &made, &error);
    const char *stop = made.stop == PITH_STOP_END ? "end" : "length";
    if (status == PITH_OK)
        print(json_pack("{s:i, s:i, s:s#, s:s, s:i}", "line", j->line, "seed", j->seed, "text",
                        j->text, (int)j->size, "stop", stop, "n", (int)made.n_predicted));
    else
        print(json_pack("{s:i, s:i, s:s#, s:s}", "line", j->line, "seed", j->seed, "text", j->text,
                        (int)j->size, "stop", error.text));
    pith_reply_free(j->reply);
    pith_sampler_free(j->sampler);
    j->reply = NULL;
    j->sampler = NULL;
    if (++j->seed < w->n_seeds) return;
    pith_grammar_free(j->grammar);
    j->grammar = NULL;
}

static void run(work *w, int n_jobs) {
    pith_error error = {0};
    size_t n_running = 1;
    for (int i = 0; i < n_jobs; i++) {
        check(pith_session_new(w->engine, &w->jobs[i].session, &error), &error);
        (void)start(w, &w->jobs[i]);
    }
    while (n_running > 0) {
        check(pith_engine_step(w->engine, &n_running, &error), &error);
        for (int i = 0; i < n_jobs; i++) {
            job *j = &w->jobs[i];
            if (j->reply == NULL || !pith_reply_is_done(j->reply)) continue;
            finish(w, j);
            n_running += start(w, j);
        }
    }
    for (int i = 0; i < n_jobs; i++) pith_session_free(w->jobs[i].session);
}

int main(int argc, char **argv) {
    pith_error error = {0};
    if (argc != 6) return 2;
    const int n_jobs = atoi(argv[2]);
    work w = {
        .max_tokens = atoi(argv[3]), .temperature = (float)atof(argv[4]), .n_seeds = atoi(argv[5])};
    if (n_jobs < 1 || n_jobs > MOST_SESSIONS || w.max_tokens < 1 || w.n_seeds < 1) return 2;
    w.jobs = calloc((size_t)n_jobs, sizeof *w.jobs);
    if (w.jobs == NULL) return 1;
    check(pith_model_open(argv[1], NULL, &w.model, &error), &error);
    const int32_t n_ctx_train = pith_model_describe(w.model).n_ctx_train;
    w.n_ctx = n_ctx_train < CONTEXT ? n_ctx_train : CONTEXT;
    pith_engine_options options = {.size = sizeof options, .n_ctx = w.n_ctx, .n_sessions = n_jobs};
    check(pith_engine_new(w.model, &options, &w.engine, &error), &error);
    run(&w, n_jobs);
    pith_engine_free(w.engine);
    pith_model_close(w.model);
    free(w.jobs);
    return 0;
}
