/* SPDX-License-Identifier: Apache-2.0
 * A rehearsal: runs the model's own plan, on the threads and kernels that will run it, with
 * made-up weights in the layout that a load would give them. So an estimate follows whatever plan
 * and kernels do, without a second description of them.
 *
 *   layers of the model   0 1 2 3 4 5 6 7 ...        those that are timed: as many as fit in
 *   timed                 0   2     5                MOST_BYTES, with the average bytes of all
 *
 * What is timed is scaled: layers by bytes (decode) or multiply-adds (prompts), a shortened output
 * layer by its rows; its share of the time comes from the profile. A context before the step is
 * made of zeros. Limits: a mixture keeps as many experts as memory allows, so its prompts group
 * better than they will; heat and neighbours of a later run are not seen.
 *
 * Read next: estimate.c, which decides when; backend/pretend.c for the weights. */
#include "engine/rehearsal.h"

#include "backend/rehearse.h"
#include "base/clock.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cpu/cpu.h"

#include <string.h>

#define MOST_BYTES ((uint64_t)448 << 20) /* more than any last cache, less than 0.3 s to fill */

enum {
    MEMORY_SHARE = 4, /* of what is free, at most a quarter */
    DEPTH = 2048,     /* tokens before a step, where the model takes as many */
    SHORT_ROWS = 32,  /* a short prompt */
    LEAST_ROWS = 4,   /* of it, on a slow machine */
    MAX_SAMPLES = 40,
    SPARE_TOKENS = 2 * MAX_SAMPLES,
    TOKEN_MS = 220, /* for tokens at one depth */
    STEP_MS = 110,  /* a full step; layers are chosen for it */
    SLOW_MS = 800,  /* a step of a slow machine: it has fewer rows then */
    MOST_MS = 1500  /* of all timing: past it one sample is enough */
};

/* ---- Timing ---- */

typedef struct stage {
    const pith_model_part *part;
    const pith_model *whole;
    pith_engine *engine;
    pith_session *session;
    pith_layer_cost timed; /* of its layers */
    uint64_t deadline;     /* ns */
    int32_t *ids;          /* [n_ids] */
    uint32_t n_ids;
} stage;

static void close_stage(stage *s) {
    pith_session_close(s->session);
    pith_engine_close(s->engine);
    pith_free(s->ids);
}

static pith_status open_stage(stage *s, const pith_engine_options *options, pith_error *error) {
    const pith_model_part *p = s->part;
    *s = (stage){
        .part = p, .whole = s->whole, .deadline = s->deadline, .timed = pith_model_cost(&p->model)};
    pith_status status = pith_engine_open(&p->model, options, &s->engine, error);
    if (status == PITH_OK) status = pith_session_open(s->engine, &s->session, error);
    if (status != PITH_OK) return status;
    s->n_ids = s->engine->step_limit;
    s->ids = pith_alloc_array(s->n_ids, sizeof *s->ids);
    if (!s->ids) return pith_fail_memory(error, "a rehearsal", s->n_ids);
    for (uint32_t i = 0; i < s->n_ids; i++)
        s->ids[i] = (int32_t)((uint64_t)i * 2654435761u % p->n_token);
    return PITH_OK;
}

/* The session holds `depth` tokens that nobody computed. */
static pith_status go_to(stage *s, uint32_t depth, pith_error *error) {
    pith_session_cut(s->session, 0);
    memset(s->session->ids, 0, depth * sizeof *s->session->ids);
    pith_status status = PITH_OK;
    for (uint32_t at = 0; at < depth && status == PITH_OK;) {
        uint32_t n = depth - at < s->engine->step_limit ? depth - at : s->engine->step_limit;
        status = pith_kv_sequence_reserve(s->session->kv, n, error);
        if (status == PITH_OK) pith_kv_sequence_commit(s->session->kv, n);
        at += n;
    }
    s->session->length = depth;
    return status;
}

/* How much more of each part the whole model has. */
typedef struct scales {
    double attention, ffn, output;
} scales;

static scales token_scales(const stage *s) {
    double ratio = s->part->all.bytes / s->timed.bytes;
    return (scales){ratio, ratio, s->part->output_scale};
}

/* In a prompt's step the last layer's feed-forward has one row, in the whole as in the part. */
static scales prompt_scales(const stage *s) {
    const pith_layer_cost *all = &s->part->all, *timed = &s->timed;
    double ffn = timed->ffn_macs - timed->last_ffn_macs;
    return (scales){all->attention_macs / timed->attention_macs,
                    ffn > 0 ? (all->ffn_macs - all->last_ffn_macs) / ffn : 1,
                    s->part->output_scale};
}

/* A time of the part -> of the whole model, by what the profile says of its operations. */
static double whole_time(const stage *s, double ns, scales scale) {
    pith_profile_row rows[64];
    double all = 0, scaled = 0;
    size_t n = pith_runner_profile_rows(s->engine->runner, rows, 64);
    for (size_t i = 0; i < n && i < 64; i++) {
        const char *name = rows[i].operation;
        double by = strcmp(name, "linear output") == 0 ? scale.output
                    : strstr(name, "ffn")              ? scale.ffn
                                                       : scale.attention;
        all += rows[i].ms;
        scaled += rows[i].ms * by;
    }
    return all > 0 ? ns * scaled / all : ns * scale.attention;
}

typedef struct timing {
    uint32_t depth, rows;
    double budget_ms;
    uint32_t least; /* samples */
    bool is_warm;   /* no step before the first that counts */
} timing;

/* Back to the depth where steps start: before each of several rows, and where single tokens, which
 * follow each other, have come to the end of a short context. */
static pith_status go_back(stage *s, const timing *t, pith_error *error) {
    bool is_full = s->session->length + t->rows > s->engine->n_ctx;
    return t->rows > 1 || is_full ? go_to(s, t->depth, error) : PITH_OK;
}

/* Times of steps, those without and those with weights asked for ahead. */
typedef struct step_times {
    double ns[2][MAX_SAMPLES];
    size_t n[2];
} step_times;

/* An engine tries both ways on its first tokens and goes on with the faster, most of which a
 * rehearsal does not live to see: the median of the way that will be taken. */
static double settled_time(step_times *t) {
    double plain = t->n[0] ? pith_median(t->ns[0], t->n[0]) : 0;
    double ahead = t->n[1] ? pith_median(t->ns[1], t->n[1]) : 0;
    if (plain <= 0 || ahead <= 0) return plain + ahead;
    return plain < ahead ? plain : ahead;
}

/* Median time of a step of `rows` tokens at a depth. */
static pith_status time_steps(stage *s, const timing *t, double *ns, pith_error *error) {
    step_times samples = {0};
    size_t n = 0;
    uint64_t end = 0;
    pith_status status = go_to(s, t->depth, error);
    for (uint32_t i = t->is_warm ? 1 : 0; status == PITH_OK && n < MAX_SAMPLES; i++) {
        status = go_back(s, t, error);
        if (i == 1) {
            pith_runner_profile(s->engine->runner, true); /* resets */
            end = pith_clock_ns() + (uint64_t)(t->budget_ms * 1e6);
        }
        const int32_t *ids = s->ids + (t->rows == 1 ? i % s->n_ids : 0);
        uint64_t begun = pith_clock_ns();
        if (status == PITH_OK) status = pith_session_feed(s->session, ids, t->rows, NULL, error);
        uint64_t now = pith_clock_ns();
        if (i > 0) {
            int way = t->rows == 1 && pith_runner_prefetched(s->engine->runner);
            samples.ns[way][samples.n[way]++] = (double)(now - begun);
            n++;
        }
        if (n >= t->least && now > end) break;
        if (n >= 1 && now > s->deadline) break;
    }
    if (status == PITH_OK) *ns = settled_time(&samples);
    return status;
}

/* Tokens of context that the layers of a model see at a depth, weighted by their heads. */
static double seen(const pith_model *model, double depth) {
    pith_kv_shape shapes[PITH_MODEL_MAX_LAYERS];
    double sum = 0;
    pith_model_kv_shapes(model, shapes);
    for (uint32_t i = 0; i < model->hparams.n_layer; i++) {
        double window = shapes[i].window, n = window > 0 && depth > window ? window : depth;
        sum += n * shapes[i].n_head_kv * (shapes[i].head_dim + shapes[i].head_dim_v);
    }
    return sum;
}

/* From what a depth adds to a step of the part to what one token of context adds to the whole. */
static double per_token(const pith_model_part *p, const pith_model *whole, double ns,
                        double depth) {
    double more = seen(&p->model, depth), all = seen(whole, 1);
    return more > 0 && ns > 0 ? ns / more * all : 0;
}

/* A row costs at most what a token alone does, so the step takes SLOW_MS at most. */
static uint32_t short_rows(const stage *s, double token_ns) {
    double most = SLOW_MS * 1e6 / token_ns;
    uint32_t rows = most < LEAST_ROWS   ? LEAST_ROWS
                    : most < SHORT_ROWS ? (uint32_t)most
                                        : SHORT_ROWS;
    return s->engine->step_limit < rows ? s->engine->step_limit : rows;
}

static pith_status rehearse_tokens(stage *s, uint32_t depth, pith_speed_model *out,
                                   pith_error *error) {
    double near = 0, far = 0, few = 0;
    timing t = {.rows = 1, .budget_ms = TOKEN_MS, .least = 5};
    pith_status status = time_steps(s, &t, &near, error);
    if (status != PITH_OK) return status;
    out->token_ns = whole_time(s, near, token_scales(s));
    if (depth > 0) {
        t.depth = depth;
        t.budget_ms = TOKEN_MS / 2.0;
        status = time_steps(s, &t, &far, error);
        if (status == PITH_OK) out->token_kv_ns = per_token(s->part, s->whole, far - near, depth);
    }
    if (status != PITH_OK) return status;
    t = (timing){.rows = short_rows(s, near), .least = 2, .is_warm = true};
    status = time_steps(s, &t, &few, error);
    out->short_rows = (int32_t)t.rows;
    out->short_ns = whole_time(s, few, prompt_scales(s));
    return status;
}

/* Rows of a full step: fewer where even a few layers would take long. There products decide, and a
 * row costs the same in any step. */
static uint32_t full_rows(const stage *s, uint32_t depth, const pith_speed_model *speed) {
    double share = (double)s->part->model.hparams.n_layer / s->part->n_all;
    double row_ns = share * (speed->short_ns / speed->short_rows + speed->token_kv_ns * depth);
    uint32_t rows = s->engine->step_limit, least = (uint32_t)speed->short_rows;
    double most = row_ns > 0 ? SLOW_MS * 1e6 / row_ns : rows;
    return most >= rows ? rows : most > least ? (uint32_t)most : least;
}

static pith_status rehearse_prompts(stage *s, uint32_t depth, pith_speed_model *out,
                                    pith_error *error) {
    double full = 0, deep = 0;
    uint32_t rows = full_rows(s, depth, out);
    timing t = {.rows = rows, .least = 3, .is_warm = true}; /* the median leaves a cold one out */
    pith_status status = time_steps(s, &t, &full, error);
    if (status != PITH_OK) return status;
    out->step_rows = (int32_t)rows;
    out->step_ns = whole_time(s, full, prompt_scales(s));
    if (depth == 0) return PITH_OK;
    t = (timing){.rows = rows, .depth = depth, .least = 1, .is_warm = true};
    status = time_steps(s, &t, &deep, error);
    out->row_kv_ns = per_token(s->part, s->whole, (deep - full) / rows, depth);
    return status;
}

/* The context inside the step is part of row_kv_ns, which the caller of the model adds. */
static void take_out_own_context(pith_speed_model *speed) {
    double step = speed->row_kv_ns * speed->step_rows * (speed->step_rows - 1) / 2;
    double few = speed->row_kv_ns * speed->short_rows * (speed->short_rows - 1) / 2;
    speed->step_ns = speed->step_ns > 2 * step ? speed->step_ns - step : speed->step_ns / 2;
    speed->short_ns = speed->short_ns > 2 * few ? speed->short_ns - few : speed->short_ns / 2;
}

static pith_status pretend(pith_model_part *p, int32_t n_threads, double *fill_rate,
                           pith_error *error) {
    pith_plan *plan = pith_plan_new();
    if (!plan) return pith_fail_memory(error, "plan", 0);
    pith_status status = pith_model_record(&p->model, plan, error);
    if (status == PITH_OK)
        status = pith_weights_pretend(p->model.weights, plan, n_threads, fill_rate, error);
    pith_plan_free(plan);
    return status;
}

/* Layers that a full step can take in STEP_MS, going by the short step; at least three, because
 * types differ between layers. */
static uint32_t prompt_layers(const pith_model_part *p, uint32_t rows,
                              const pith_speed_model *speed) {
    uint32_t n_layer = p->model.hparams.n_layer, least = n_layer < 3 ? n_layer : 3;
    double layer_ns = speed->short_ns / p->n_all * rows / speed->short_rows;
    double n = layer_ns > 0 ? STEP_MS * 1e6 / layer_ns : least;
    return n < least ? least : n < n_layer ? (uint32_t)n : n_layer;
}

static pith_status time_part(pith_model_part *p, const pith_model *whole,
                             const pith_engine_options *options, pith_speed_model *out,
                             pith_error *error) {
    stage s = {.part = p, .whole = whole};
    s.deadline = pith_clock_ns() + (uint64_t)MOST_MS * 1000000u;
    uint32_t room = p->model.hparams.n_ctx_train, rows = (uint32_t)options->step_limit;
    pith_engine_options own = *options;
    if (rows == 0) rows = PITH_ENGINE_DEFAULT_STEP;
    uint32_t depth = room > rows + SPARE_TOKENS ? room - rows - SPARE_TOKENS : 0;
    if (depth > DEPTH) depth = DEPTH;
    uint32_t n_ctx = depth + rows + SPARE_TOKENS;
    own.n_ctx = (int32_t)(n_ctx < room ? n_ctx : room);
    own.n_sessions = 1;
    own.memory_limit = 0;
    pith_status status = open_stage(&s, &own, error);
    if (status == PITH_OK) status = rehearse_tokens(&s, depth, out, error);
    close_stage(&s);
    if (status != PITH_OK) return status;
    p->model.hparams.n_layer = prompt_layers(p, rows, out);
    status = open_stage(&s, &own, error);
    if (status == PITH_OK) status = rehearse_prompts(&s, depth, out, error);
    close_stage(&s);
    if (status == PITH_OK) take_out_own_context(out);
    return status;
}

static void describe_windows(const pith_model *whole, pith_speed_model *speed) {
    pith_kv_shape shapes[PITH_MODEL_MAX_LAYERS];
    uint32_t n = 0, window = 0;
    pith_model_kv_shapes(whole, shapes);
    for (uint32_t i = 0; i < whole->hparams.n_layer; i++) {
        if (shapes[i].window == 0) continue;
        n++;
        window = shapes[i].window;
    }
    speed->window = (int32_t)(window < INT32_MAX ? window : INT32_MAX);
    speed->window_layers_share = (double)n / whole->hparams.n_layer;
}

static uint64_t memory_for_part(void) {
    uint64_t available = pith_memory_available();
    return available && available / MEMORY_SHARE < MOST_BYTES ? available / MEMORY_SHARE
                                                              : MOST_BYTES;
}

pith_status pith_rehearse(const pith_model *outline, pith_load load,
                          const pith_engine_options *options, pith_rehearsal *out,
                          pith_error *error) {
    pith_model_part part;
    uint32_t features = 0;
    *out = (pith_rehearsal){0};
    int32_t n_threads = options->n_threads > 0 ? options->n_threads : pith_thread_count();
    pith_status status = pith_cpu_features(&features, error);
    if (status != PITH_OK) return status;
    status = pith_model_part_init(&part, outline, memory_for_part(), error);
    pith_weights_lay_out(outline->weights, load, features);
    if (status == PITH_OK) status = pretend(&part, n_threads, &out->fill_rate, error);
    if (status == PITH_OK) status = time_part(&part, outline, options, &out->speed, error);
    describe_windows(outline, &out->speed);
    pith_model_part_deinit(&part);
    return status;
}
