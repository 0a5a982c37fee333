/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking into a running program: named values after each operation (trace), time by operation
 * (profile).
 *
 * A traced step is walked operation by operation, each in a region of its own, so that every
 * value is told before something else takes its memory; logits are told block by block. The
 * profile times phases on the calling thread and sums them by the name that all layers share;
 * what a phase does along (a norm that every thread repeats, the quantization of a result)
 * counts as that phase.
 */
#include "backend/cpu/runner.h"

#include <stdio.h>
#include <string.h>

/* Rows are padded in memory and dense for the callback: they are moved together and apart again. */
static void tell(const pith_runner *runner, const pith_op *op, pith_value value, uint32_t index) {
    const cpu_value *v = &runner->program.values[value];
    uint32_t n = v->is_out ? runner->n_out : runner->step->n;
    size_t bytes = v->width * sizeof(float);
    char name[160];
    if (op->n_result > 1)
        snprintf(name, sizeof name, "%s.%u", op->name, index);
    else
        snprintf(name, sizeof name, "%s", op->name);
    float *first = cpu_row(v, v->is_out ? runner->first_out : 0);
    for (uint32_t i = 1; i < n; i++)
        memmove(first + (size_t)i * v->width, first + (size_t)i * v->stride, bytes);
    runner->trace(runner->trace_user, name, n, v->width, first);
    for (uint32_t i = n; i-- > 1;)
        memmove(first + (size_t)i * v->stride, first + (size_t)i * v->width, bytes);
}

static void tell_op(const pith_runner *runner, const pith_op *op) {
    if (op->kind == PITH_OP_ROPE) tell(runner, op, op->rope.x, 0);
    for (uint32_t i = 0; i < op->n_result; i++)
        tell(runner, op, op->first_result + (pith_value)i, i);
}

static void trace_rows(pith_runner *runner, uint32_t index) {
    const cpu_program *p = &runner->program;
    const cpu_phase *phase = &p->phases[index];
    for (uint32_t s = 0; s < phase->n_step; s++) {
        const cpu_row_step *step = &p->steps[phase->first_step + s];
        runner->first_step = phase->first_step + s;
        runner->n_step = 1;
        pith_cpu_run_phases(runner, index, index + 1);
        runner->n_step = 0;
        if (step->kind == CPU_STEP_OP || step->kind == CPU_STEP_SUM_EXPERTS)
            tell_op(runner, step->op);
    }
}

void pith_cpu_trace_phases(pith_runner *runner, uint32_t first, uint32_t end) {
    const cpu_program *p = &runner->program;
    for (uint32_t i = first; i < end; i++) {
        const cpu_phase *phase = &p->phases[i];
        if (phase->kind == CPU_PHASE_ROWS) {
            trace_rows(runner, i);
            continue;
        }
        pith_cpu_run_phases(runner, i, i + 1);
        bool is_router = phase->op->kind == PITH_OP_MOE;
        if (!is_router) tell_op(runner, phase->op);
    }
}

void pith_runner_trace(pith_runner *runner, pith_trace trace, void *user) {
    runner->trace = trace;
    runner->trace_user = user;
}

/* ---- Profile ---- */

static void name_phase(const cpu_phase *phase, char name[64]) {
    static const char *const parts[] = {
        [CPU_PHASE_ROWS] = " rows",     [CPU_PHASE_PRODUCT] = " router",
        [CPU_PHASE_ATTEND] = "",        [CPU_PHASE_GROUP] = " group",
        [CPU_PHASE_EXPERTS_UP] = " up", [CPU_PHASE_EXPERTS_DOWN] = " down"};
    const char *part = phase->op->kind == PITH_OP_MOE ? parts[phase->kind] : "";
    snprintf(name, 64, "%s %s%s", phase->label, phase->op->short_name, part);
}

void pith_runner_profile(pith_runner *runner, bool enable) {
    const cpu_program *p = &runner->program;
    runner->profiling = enable;
    for (uint32_t i = 0; i < p->n_phase; i++) {
        cpu_profile *profile = &runner->profile[i];
        profile->ns = profile->n_calls = 0;
        name_phase(&p->phases[i], profile->name);
        profile->row = 0;
        while (strcmp(runner->profile[profile->row].name, profile->name) != 0) profile->row++;
    }
}

size_t pith_runner_profile_rows(const pith_runner *runner, pith_profile_row *rows,
                                size_t capacity) {
    const cpu_program *p = &runner->program;
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_phase; i++) {
        if (runner->profile[i].row != i || !runner->profile[i].name[0]) continue;
        pith_profile_row row = {.operation = runner->profile[i].name};
        uint64_t ns = 0;
        for (uint32_t j = i; j < p->n_phase; j++) {
            if (runner->profile[j].row != i) continue;
            ns += runner->profile[j].ns;
            row.n_calls += runner->profile[j].n_calls;
        }
        row.ms = (double)ns / 1e6;
        if (n < capacity) rows[n] = row;
        n++;
    }
    return n;
}
