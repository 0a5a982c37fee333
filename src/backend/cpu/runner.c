/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a program: one parallel region walks the phases of a step; every thread keeps the same
 * count of operations, so that a thread which comes late finds what is finished and goes on.
 *
 *   step -> region: phase 0 .. head -> on_logits            (a step with few outputs)
 *        -> region: phase 0 .. head, block 0 -> on_logits -> region: head, block 1 -> on_logits ...
 *
 * on_logits is always called by the thread that called pith_runner_run, outside of a region.
 *
 * Invariant: running allocates nothing; the step is checked before anything is written. With a
 * trace, each step of a group is a region of its own, so that every value is told before it is
 * overwritten. Read next: rows.c, product.c, attention.c, experts.c.
 */
#include "backend/cpu/runner.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_PER_CHUNK = 16, CHUNKS_PER_THREAD = 4, SLACK = 256, TOUCH_BYTES = 4096 };

/* ---- Making ---- */

static uint64_t heap_bytes(const cpu_program *p) {
    uint64_t n_thread = (uint64_t)p->options.n_threads;
    return sizeof(pith_runner) + p->value_capacity * sizeof(cpu_value) +
           p->step_capacity * sizeof(cpu_row_step) + p->phase_capacity * sizeof(cpu_phase) +
           p->n_moe * sizeof(cpu_moe) + p->n_pair * sizeof(double) +
           n_thread * (sizeof(cpu_scratch) + p->n_value * sizeof(cpu_value)) +
           p->options.step_limit * sizeof(cpu_block) + p->n_phase * sizeof(cpu_profile);
}

pith_status pith_runner_bytes(const pith_plan *plan, const pith_backend_options *options,
                              uint64_t *bytes, pith_error *error) {
    cpu_program program;
    *bytes = 0;
    pith_status status = pith_cpu_compile(&program, plan, options, error);
    if (!status) *bytes = program.arena_bytes + heap_bytes(&program);
    pith_cpu_program_deinit(&program);
    return status;
}

static pith_status check_loaded(const pith_weight *weight, pith_error *error) {
    if (!weight) return PITH_OK;
    unsigned tensor = PITH_WEIGHT_LINEAR | PITH_WEIGHT_ROWS;
    bool lacks = ((weight->roles & tensor) && !weight->data) ||
                 ((weight->roles & PITH_WEIGHT_VECTOR) && !weight->values);
    if (!lacks) return PITH_OK;
    return pith_fail(error, PITH_ERROR_INTERNAL, "tensor %s is not loaded", weight->name);
}

static pith_status check_weights(const pith_plan *plan, pith_error *error) {
    pith_status status = PITH_OK;
    for (uint32_t i = 0; i < plan->n_op && !status; i++) {
        const pith_op *op = &plan->ops[i];
        const pith_weight *list[6] = {NULL};
        if (op->kind == PITH_OP_EMBED) {
            list[0] = op->embed.table;
        } else if (op->kind == PITH_OP_NORM) {
            list[0] = op->norm.weight;
            list[1] = op->norm.bias;
        } else if (op->kind == PITH_OP_LINEAR) {
            memcpy(list, op->linear.weight, sizeof op->linear.weight);
            memcpy(list + 3, op->linear.bias, sizeof op->linear.bias);
            for (uint32_t j = op->linear.n; j < 3; j++) list[j] = list[3 + j] = NULL;
        } else if (op->kind == PITH_OP_MOE) {
            list[0] = op->moe.router;
            list[1] = op->moe.gate;
            list[2] = op->moe.up;
            list[3] = op->moe.down;
        }
        for (int j = 0; j < 6 && !status; j++) status = check_loaded(list[j], error);
    }
    return status;
}

/* Cuts the next part of a scratch; the sum of all is what place.c measured. */
static uint8_t *cut(uint8_t **at, size_t bytes) {
    uint8_t *here = *at;
    *at += cpu_round_up(bytes, 64);
    return here;
}

static float *cut_floats(uint8_t **at, size_t bytes) {
    return (float *)(void *)cut(at, bytes);
}

/* Own copies of the values of repeated phases. */
static void own_values(const cpu_program *p, cpu_value *values, uint8_t *memory) {
    memcpy(values, p->values, p->n_value * sizeof *values);
    for (uint32_t i = 0; i < p->n_phase; i++) {
        const cpu_phase *phase = &p->phases[i];
        uint8_t *at = memory;
        for (uint32_t s = 0; phase->repeatable && s < phase->n_step; s++) {
            const cpu_row_step *step = &p->steps[phase->first_step + s];
            bool is_q8 = step->kind == CPU_STEP_QUANTIZE;
            cpu_value *v = &values[is_q8 ? step->value : step->op->first_result];
            size_t bytes = pith_cpu_part_bytes(v, CPU_REPEAT_ROWS, is_q8);
            if (is_q8)
                v->q8 = pith_cpu_q8_at(cut(&at, bytes), CPU_REPEAT_ROWS, v->width);
            else
                v->data = cut_floats(&at, bytes);
        }
    }
}

static void cut_scratch(pith_runner *runner, int thread) {
    const cpu_program *p = &runner->program;
    const cpu_scratch_sizes *s = &p->sizes;
    cpu_scratch *scratch = &runner->scratch[thread];
    uint8_t *at = runner->region.data + p->scratch_offset + p->scratch_bytes * (size_t)thread;
    size_t words = s->attend_rows * sizeof(float) + SLACK;
    scratch->panel = cut(&at, s->panel);
    scratch->row = cut_floats(&at, s->row);
    scratch->tile = cut_floats(&at, s->tile);
    scratch->q = cut_floats(&at, s->q);
    scratch->o = cut_floats(&at, s->o);
    scratch->sum_o = cut_floats(&at, s->o);
    scratch->m = cut_floats(&at, words);
    scratch->l = cut_floats(&at, words);
    scratch->sum_m = cut_floats(&at, words);
    scratch->sum_l = cut_floats(&at, words);
    scratch->begin = (int32_t *)(void *)cut(&at, words);
    scratch->end = (int32_t *)(void *)cut(&at, words);
    scratch->low = cut_floats(&at, s->low);
    scratch->addition = cut_floats(&at, s->addition);
    scratch->q8 = pith_cpu_q8_at(cut(&at, pith_cpu_q8_bytes(s->attend_rows, s->q8_row)),
                                 s->attend_rows, s->q8_row);
    own_values(p, scratch->values, cut(&at, s->own_values));
}

static void cut_moe(pith_runner *runner, cpu_moe *moe) {
    uint8_t *at = runner->region.data + moe->offset;
    size_t used = (size_t)runner->program.options.step_limit * moe->op->n_used;
    moe->choice = (int32_t *)(void *)at;
    moe->share = (float *)(void *)(moe->choice + used);
    moe->place = (uint32_t *)(void *)(moe->share + used);
    moe->source = moe->place + used;
    moe->start = moe->source + used;
    moe->active = (int32_t *)(void *)(moe->start + moe->op->n_expert + 1);
}

static void cut_arena(pith_runner *runner) {
    cpu_program *p = &runner->program;
    uint8_t *data = runner->region.data;
    for (uint32_t i = 0; i < p->n_value; i++) {
        cpu_value *v = &p->values[i];
        v->data = (float *)(void *)(data + v->offset);
        if (v->needs_q8)
            v->q8 = pith_cpu_q8_at(data + v->q8_offset, pith_cpu_value_rows(p, v), v->width);
    }
    for (uint32_t i = 0; i < p->n_moe; i++) cut_moe(runner, &p->moes[i]);
    runner->angles = (float *)(void *)(data + p->angles_offset);
    runner->split_o = (float *)(void *)(data + p->split_offset);
    runner->split_m = runner->split_o + p->split_rows * p->split_stride;
    runner->split_l = runner->split_m + p->split_rows;
    runner->sums = (float *)(void *)(data + p->sums_offset);
    for (int32_t t = 0; t < p->options.n_threads; t++) cut_scratch(runner, t);
}

static pith_status allocate(pith_runner *runner, pith_error *error) {
    cpu_program *p = &runner->program;
    size_t n_thread = (size_t)p->options.n_threads;
    runner->scratch = pith_alloc_zero(n_thread, sizeof *runner->scratch);
    runner->blocks = pith_alloc_array(p->options.step_limit, sizeof *runner->blocks);
    runner->profile = pith_alloc_zero(p->n_phase, sizeof *runner->profile);
    bool made = runner->scratch && runner->blocks && runner->profile;
    for (size_t t = 0; made && t < n_thread; t++) {
        runner->scratch[t].values = pith_alloc_array(p->n_value, sizeof(cpu_value));
        made = runner->scratch[t].values != NULL;
    }
    if (!made || !pith_region_open(&runner->region, p->arena_bytes, true))
        return pith_fail_memory(error, "the engine's workspace", p->arena_bytes);
    for (size_t i = 0; i < p->arena_bytes; i += TOUCH_BYTES) /* no step can lack it later */
        *(volatile uint8_t *)(runner->region.data + i) = 0;
    cut_arena(runner);
    return PITH_OK;
}

static void name_runner(pith_runner *runner) {
    static const struct {
        uint32_t tier;
        const char *name;
    } tiers[] = {{PITH_CPU_AMX, "amx"},         {PITH_CPU_AVX512, "avx512"},
                 {PITH_CPU_AVXVNNI, "avxvnni"}, {PITH_CPU_AVX2, "avx2"},
                 {PITH_CPU_I8MM, "i8mm"},       {PITH_CPU_DOTPROD, "dotprod"},
                 {PITH_CPU_NEON, "neon"},       {0, "ref"}};
    uint32_t i = 0;
    while (tiers[i].tier && !(runner->program.options.features & tiers[i].tier)) i++;
    snprintf(runner->name, sizeof runner->name, "cpu %s", tiers[i].name);
}

pith_status pith_runner_new(const pith_plan *plan, const pith_backend_options *options,
                            pith_runner **out, pith_error *error) {
    *out = NULL;
    pith_runner *runner = pith_alloc_zero(1, sizeof *runner);
    if (!runner) return pith_fail_memory(error, "a runner", sizeof *runner);
    pith_status status = pith_cpu_compile(&runner->program, plan, options, error);
    if (!status) status = check_weights(plan, error);
    if (!status) status = allocate(runner, error);
    if (!status) status = pith_pool_new(runner->program.options.n_threads, &runner->pool, error);
    if (status) {
        pith_runner_free(runner);
        return status;
    }
    name_runner(runner);
    *out = runner;
    return PITH_OK;
}

void pith_runner_free(pith_runner *runner) {
    if (!runner) return;
    pith_pool_free(runner->pool);
    for (int32_t t = 0; runner->scratch && t < runner->program.options.n_threads; t++)
        pith_free(runner->scratch[t].values);
    pith_free(runner->scratch);
    pith_free(runner->blocks);
    pith_free(runner->profile);
    pith_region_close(&runner->region);
    pith_cpu_program_deinit(&runner->program);
    pith_free(runner);
}

/* ---- Phases ---- */

static void rows_chunk(void *user, uint32_t i, int thread) {
    const cpu_context *c = user;
    const pith_runner *runner = c->runner;
    uint32_t begin = i * c->rows_per_chunk, end = begin + c->rows_per_chunk;
    uint32_t first = c->phase->first_step, n = c->phase->n_step;
    (void)thread;
    if (end > c->n_row) end = c->n_row;
    if (runner->n_step) {
        first = runner->first_step;
        n = runner->n_step;
    }
    pith_cpu_rows(c, first, n, begin + c->first_row, end + c->first_row);
}

static void run_rows(cpu_context *c, uint64_t *index) {
    uint32_t wanted = CHUNKS_PER_THREAD * (uint32_t)c->runner->program.options.n_threads;
    c->rows_per_chunk = (c->n_row + wanted - 1) / wanted;
    if (c->rows_per_chunk > ROWS_PER_CHUNK) c->rows_per_chunk = ROWS_PER_CHUNK;
    if (!c->n_row) return;
    uint32_t n_chunk = (c->n_row + c->rows_per_chunk - 1) / c->rows_per_chunk;
    pith_pool_for(c->runner->pool, (*index)++, n_chunk, rows_chunk, c, c->thread);
}

static void run_phase(cpu_context *c, uint64_t *index) {
    switch (c->phase->kind) {
    case CPU_PHASE_ROWS: run_rows(c, index); break;
    case CPU_PHASE_PRODUCT: pith_cpu_product(c, index); break;
    case CPU_PHASE_ATTEND: pith_cpu_attend(c, index); break;
    case CPU_PHASE_GROUP:
    case CPU_PHASE_EXPERTS_UP:
    case CPU_PHASE_EXPERTS_DOWN: pith_cpu_experts(c, index); break;
    }
}

/* Whether the next phase's chunks make what these rows would. */
static bool is_deferred(const pith_runner *runner, const cpu_phase *phase) {
    if (runner->trace) return false;
    if (phase->repeatable) return runner->is_small;
    return phase->by_head && pith_cpu_attend_is_whole(runner, phase + 1);
}

/* Every thread's walk. */
static void run_region(void *user, int thread, int n_threads) {
    pith_runner *runner = user;
    const cpu_program *p = &runner->program;
    uint64_t index = 0, begun = 0;
    const cpu_phase *before = NULL;
    bool is_timed = runner->profiling && thread == 0;
    (void)n_threads;
    for (uint32_t i = runner->first_phase; i < runner->end_phase; i++) {
        const cpu_phase *phase = &p->phases[i];
        if (is_deferred(runner, phase)) {
            before = phase;
            continue;
        }
        if (is_timed) begun = pith_clock_ns();
        cpu_context context = {
            .runner = runner,
            .phase = phase,
            .values = before && before->repeatable ? runner->scratch[thread].values : p->values,
            .before = before,
            .thread = thread,
            .first_row = phase->is_out ? runner->first_out : 0,
            .n_row = phase->is_out ? runner->n_out : runner->step->n};
        run_phase(&context, &index);
        before = NULL;
        if (!is_timed) continue;
        runner->profile[i].ns += pith_clock_ns() - begun;
        runner->profile[i].n_calls++;
    }
}

void pith_cpu_run_phases(pith_runner *runner, uint32_t first, uint32_t end) {
    runner->first_phase = first;
    runner->end_phase = end;
    int most = runner->is_small ? runner->program.options.decode_threads : 0;
    pith_pool_share(runner->pool, most, run_region, runner);
}

/* ---- Steps ---- */

static pith_status check_row(const pith_runner *runner, const pith_step *step, uint32_t row,
                             pith_error *error) {
    const cpu_program *p = &runner->program;
    int32_t token = step->tokens[row], position = step->positions[row];
    int32_t sequence = step->sequence[row];
    if (token < 0 || (uint64_t)token >= p->n_vocab)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "token %d is not in the vocabulary of %u",
                         (int)token, p->n_vocab);
    if (sequence < 0 || (uint32_t)sequence >= step->n_sequence)
        return pith_fail(error, PITH_ERROR_INTERNAL, "row %u: sequence %d of %u", row,
                         (int)sequence, step->n_sequence);
    if (position < 0 || (uint32_t)position >= p->options.n_ctx)
        return pith_fail(error, PITH_ERROR_INTERNAL, "row %u: position %d, the context is %u", row,
                         (int)position, p->options.n_ctx);
    bool follows = row > 0 && step->sequence[row - 1] == sequence;
    for (uint32_t i = 0; !follows && i < row; i++)
        if (step->sequence[i] == sequence)
            return pith_fail(error, PITH_ERROR_INTERNAL,
                             "row %u: rows of sequence %d are not neighbours", row, (int)sequence);
    if (follows && step->positions[row - 1] + 1 != position)
        return pith_fail(error, PITH_ERROR_INTERNAL, "row %u: position %d follows %d", row,
                         (int)position, (int)step->positions[row - 1]);
    return PITH_OK;
}

/* Every page that a row reads or writes is there. */
static pith_status check_pages(const pith_runner *runner, const pith_step *step, uint32_t row,
                               pith_error *error) {
    const pith_kv_layout *kv = runner->program.options.kv;
    uint32_t position = (uint32_t)step->positions[row];
    for (uint32_t g = 0; kv && g < kv->n_group; g++) {
        const pith_kv_table *table = &step->tables[(size_t)step->sequence[row] * kv->n_group + g];
        uint32_t window = kv->group_window[g], page = position / PITH_PAGE_TOKENS;
        uint32_t first = window && position >= window ? position - window + 1 : 0;
        bool is_new = row == 0 || step->sequence[row - 1] != step->sequence[row];
        uint32_t from = is_new ? first / PITH_PAGE_TOKENS : page;
        bool there = page < table->n_blocks;
        for (; there && from <= page; from++) there = table->blocks[from] != NULL;
        if (!there)
            return pith_fail(error, PITH_ERROR_INTERNAL,
                             "row %u: the KV page of position %u is missing", row, position);
    }
    return PITH_OK;
}

/* What a sequence's adapters take fits; *adapts: there are any. */
static pith_status check_adapters(const pith_runner *runner, const pith_step *step, bool *adapts,
                                  pith_error *error) {
    uint32_t limit = runner->program.options.adapter_rank;
    *adapts = false;
    for (uint32_t s = 0; step->adapters && s < step->n_sequence; s++) {
        const pith_adapter_set *set = step->adapters[s];
        uint64_t rank = 0;
        if (!set || !set->n) continue;
        for (uint32_t i = 0; i < set->n && set->n <= PITH_ADAPTERS_MAX; i++)
            rank += pith_delta_rank_room(set->delta[i]);
        if (set->n > PITH_ADAPTERS_MAX || rank > limit || !limit)
            return pith_fail(error, PITH_ERROR_LIMIT,
                             "sequence %u: %u adapters of rank %u together; the limits are %d and "
                             "%u",
                             s, set->n, (unsigned)rank, PITH_ADAPTERS_MAX, limit);
        *adapts = true;
    }
    return PITH_OK;
}

static pith_status check_step(const pith_runner *runner, const pith_step *step, pith_error *error) {
    uint32_t limit = runner->program.options.step_limit;
    if (step->n < 1 || step->n > limit || step->n_out > step->n)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "a step of %u rows with %u outputs; the limit is %u", step->n, step->n_out,
                         limit);
    if (step->n_out && !step->on_logits)
        return pith_fail(error, PITH_ERROR_INTERNAL, "a step with outputs needs on_logits");
    pith_status status = PITH_OK;
    for (uint32_t i = 0; i < step->n && !status; i++) {
        status = check_row(runner, step, i, error);
        if (!status) status = check_pages(runner, step, i, error);
    }
    for (uint32_t i = 0; i < step->n_out && !status; i++) {
        int32_t row = step->out_rows[i], least = i ? step->out_rows[i - 1] + 1 : 0;
        if (row < least || (uint32_t)row >= step->n)
            status = pith_fail(error, PITH_ERROR_INTERNAL, "output %u is row %d of %u", i, (int)row,
                               step->n);
    }
    return status;
}

/* Rows of one sequence, in pieces that attend together. */
static void cut_blocks(pith_runner *runner, const pith_step *step) {
    runner->n_block = runner->max_pages = 0;
    runner->is_single = true;
    for (uint32_t row = 0; row < step->n;) {
        cpu_block *block = &runner->blocks[runner->n_block++];
        *block = (cpu_block){row, 0, step->sequence[row]};
        while (row < step->n && step->sequence[row] == block->sequence &&
               block->n_row < runner->program.block_rows) {
            block->n_row++;
            row++;
        }
        if (block->first_row && step->sequence[block->first_row - 1] == block->sequence)
            runner->is_single = false;
        uint32_t n_page = (uint32_t)step->positions[row - 1] / PITH_PAGE_TOKENS + 1;
        if (n_page > runner->max_pages) runner->max_pages = n_page;
    }
}

static void run_range(pith_runner *runner, uint32_t first, uint32_t end) {
    if (runner->trace)
        pith_cpu_trace_phases(runner, first, end);
    else
        pith_cpu_run_phases(runner, first, end);
}

/* Values of the head hold rows from `first` on. */
static void move_tail(pith_runner *runner, uint32_t first, uint32_t n) {
    cpu_program *p = &runner->program;
    runner->first_out = first;
    runner->n_out = n;
    for (uint32_t i = 0; i < p->n_value; i++)
        if (p->values[i].in_tail) p->values[i].first_row = first;
}

static pith_status run_checked(pith_runner *runner, const pith_step *step, pith_error *error) {
    const cpu_program *p = &runner->program;
    const cpu_value *output = &p->values[p->plan->output];
    uint32_t first = 0, done = 0;
    bool has_tail = p->tail_phase < p->n_phase;
    move_tail(runner, 0, step->n_out);
    if (!has_tail || step->n_out == 0 || step->n_out > p->tail_rows) {
        first = p->tail_phase;
        run_range(runner, 0, first);
    }
    while (done < step->n_out) {
        uint32_t n = step->n_out - done < p->tail_rows ? step->n_out - done : p->tail_rows;
        if (has_tail) {
            move_tail(runner, done, n);
            run_range(runner, first, p->n_phase);
        }
        first = p->tail_phase;
        const float *logits = output->data + (size_t)(done - output->first_row) * output->stride;
        if (step->on_logits(step->user, done, n, logits, output->stride))
            return pith_fail(error, PITH_ERROR_CANCELLED, "stopped by the caller");
        done += n;
    }
    return PITH_OK;
}

pith_status pith_runner_run(pith_runner *runner, const pith_step *step, pith_error *error) {
    bool adapts;
    pith_status status = check_step(runner, step, error);
    if (!status) status = check_adapters(runner, step, &adapts, error);
    if (status) return status;
    runner->step = step;
    runner->adapts = adapts;
    runner->is_small = step->n <= CPU_REPEAT_ROWS;
    runner->prefetch = pith_cpu_trial_prefetches(&runner->trial);
    cut_blocks(runner, step);
    uint64_t begun = pith_clock_ns();
    status = run_checked(runner, step, error);
    if (step->n == 1 && step->n_out == 1 && !runner->trace)
        pith_cpu_trial_add(&runner->trial, pith_clock_ns() - begun);
    runner->step = NULL;
    return status;
}

bool pith_runner_prefetched(const pith_runner *runner) {
    return runner->prefetch;
}

const char *pith_runner_name(const pith_runner *runner) {
    return runner->name;
}

int32_t pith_runner_threads(const pith_runner *runner) {
    return runner->program.options.n_threads;
}
