/* SPDX-License-Identifier: Apache-2.0
 *
 * Where everything of a running program lies: one arena, measured before it is made.
 *
 *   | values and routing, overlaid by lifetime | angles | partials | adapters | scratch of threads
 *
 * A value has up to two parts with the same lifetime: its floats, and its int8 rows (codes,
 * scales, sums, half sums one after the other). Parts are placed largest first at the lowest
 * offset where nothing lives at the same time.
 *
 * Invariant: parts whose phases overlap don't overlap in memory; every part starts at a multiple
 * of 64 bytes and has SLACK bytes behind it that a kernel's last wide load may read. Read next:
 * runner.c, which makes the arena.
 */
#include "backend/cpu/cpu_program.h"

#include <stdlib.h>

enum { ALIGN = 64, SLACK = 256, PAGE_ALIGN = 4096 };

/* ---- Sizes ---- */

size_t pith_cpu_q8_bytes(size_t rows, size_t width) {
    size_t q = cpu_odd_multiple(width, ALIGN), d = cpu_round_up((width + 31) / 32, 16);
    return cpu_round_up(rows * (q + d * (sizeof(float) + 2 * sizeof(int32_t))) + SLACK, ALIGN);
}

pith_q8 pith_cpu_q8_at(uint8_t *memory, size_t rows, size_t width) {
    pith_q8 q8 = {.q_stride = cpu_odd_multiple(width, ALIGN),
                  .d_stride = cpu_round_up((width + 31) / 32, 16)};
    size_t scales = rows * q8.d_stride * sizeof(float);
    q8.q = (int8_t *)memory;
    q8.d = (float *)(void *)(memory + rows * q8.q_stride);
    q8.sum = (int32_t *)(void *)((uint8_t *)q8.d + scales);
    q8.sum16 = (int16_t *)(void *)((uint8_t *)q8.sum + scales);
    return q8;
}

size_t pith_cpu_value_rows(const cpu_program *program, const cpu_value *value) {
    size_t rows = value->in_tail ? program->tail_rows : program->options.step_limit;
    return rows * value->multiple;
}

/* The floats of so many rows, or their int8 form. */
size_t pith_cpu_part_bytes(const cpu_value *value, size_t rows, bool is_q8) {
    if (is_q8) return pith_cpu_q8_bytes(rows, value->width);
    return cpu_round_up(rows * value->stride * sizeof(float) + SLACK, ALIGN);
}

/* Bytes of a mixture's arrays, in the order of cpu_moe. */
static size_t moe_bytes(const cpu_program *program, const cpu_moe *moe) {
    size_t rows = program->options.step_limit, used = rows * moe->op->n_used;
    return cpu_round_up((4 * used + 2 * (size_t)moe->op->n_expert + 2) * 4 + SLACK, ALIGN);
}

/* ---- Placing ---- */

typedef struct part {
    size_t bytes, *offset;
    uint32_t first, last;
} part;

static int larger_first(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first; /* the same order everywhere */
}

/* placed[0..n) is sorted by offset; returns where `item` was inserted. */
static void place_part(part *placed, size_t n, part item) {
    size_t at = 0, i = 0;
    for (; i < n; i++) {
        if (placed[i].last < item.first || item.last < placed[i].first) continue;
        if (at + item.bytes <= *placed[i].offset) break;
        size_t end = *placed[i].offset + placed[i].bytes;
        if (end > at) at = end;
    }
    *item.offset = at;
    for (i = n; i > 0 && *placed[i - 1].offset > at; i--) placed[i] = placed[i - 1];
    placed[i] = item;
}

/* All parts of values and mixtures; parts may be NULL to count only. */
static size_t list_parts(cpu_program *program, part *parts) {
    size_t n = 0;
    for (uint32_t i = 0; i < program->n_value; i++) {
        cpu_value *v = &program->values[i];
        v->stride = cpu_odd_multiple(v->width, PITH_PANEL_ROWS);
        if (v->first_phase == UINT32_MAX) continue;
        size_t rows = pith_cpu_value_rows(program, v);
        if (parts)
            parts[n] = (part){pith_cpu_part_bytes(v, rows, false), &v->offset, v->first_phase,
                              v->last_phase};
        n++;
        if (!v->needs_q8) continue;
        if (parts)
            parts[n] = (part){pith_cpu_part_bytes(v, rows, true), &v->q8_offset, v->first_phase,
                              v->last_phase};
        n++;
    }
    for (uint32_t i = 0; i < program->n_moe; i++, n++) {
        cpu_moe *m = &program->moes[i];
        if (parts)
            parts[n] = (part){moe_bytes(program, m), &m->offset, m->first_phase, m->last_phase};
    }
    return n;
}

static pith_status place_values(cpu_program *program, pith_error *error) {
    size_t n = list_parts(program, NULL), end = 0;
    part *parts = pith_alloc_array(2 * n, sizeof *parts), *placed;
    if (!parts) return pith_fail_memory(error, "a program", 2 * n * sizeof *parts);
    placed = parts + n;
    list_parts(program, parts);
    qsort(parts, n, sizeof *parts, larger_first);
    for (size_t i = 0; i < n; i++) {
        place_part(placed, i, parts[i]);
        if (*parts[i].offset + parts[i].bytes > end) end = *parts[i].offset + parts[i].bytes;
    }
    pith_free(parts);
    program->arena_bytes = cpu_round_up(end, PAGE_ALIGN);
    return PITH_OK;
}

/* ---- Scratch ---- */

static void grow(size_t *size, size_t wanted) {
    if (wanted > *size) *size = wanted;
}

static void measure_weight(cpu_program *program, const pith_weight *weight) {
    cpu_scratch_sizes *s = &program->sizes;
    uint64_t row_bytes = 0;
    size_t k = (size_t)weight->ne[0];
    pith_type_row_bytes(weight->type, k, &row_bytes);
    grow(&s->panel, (size_t)row_bytes * PITH_PANEL_ROWS + SLACK);
    if (!pith_cpu_decodes(program, weight)) return;
    grow(&s->panel, k * PITH_PANEL_ROWS * sizeof(float) + SLACK);
    grow(&s->row, (size_t)CPU_DECODE_PIECE * PITH_PANEL_ROWS * sizeof(float) + SLACK);
}

static void measure_attend(cpu_program *program, const pith_attend_op *op) {
    cpu_scratch_sizes *s = &program->sizes;
    size_t rows = program->block_rows * (size_t)(op->n_head / op->n_head_kv);
    grow(&s->attend_rows, rows);
    grow(&s->q, rows * cpu_round_up(op->head_dim, 16) * sizeof(float) + SLACK);
    grow(&s->o, rows * cpu_round_up(op->head_dim_v, 16) * sizeof(float) + SLACK);
    grow(&s->q8_row, op->head_dim);
    grow(&program->split_stride, cpu_round_up(op->head_dim_v, 16));
    grow(&program->split_rows, ((size_t)program->split_pages + CPU_SPLIT_ROWS) * op->n_head);
}

/* What one thread's own copies of the values of repeated phases take. */
static size_t own_bytes(const cpu_program *program, const cpu_phase *phase) {
    size_t bytes = 0;
    for (uint32_t s = 0; phase->repeatable && s < phase->n_step; s++) {
        const cpu_row_step *step = &program->steps[phase->first_step + s];
        bool is_q8 = step->kind == CPU_STEP_QUANTIZE;
        const cpu_value *v = &program->values[is_q8 ? step->value : step->op->first_result];
        bytes += pith_cpu_part_bytes(v, CPU_REPEAT_ROWS, is_q8);
    }
    return bytes;
}

static void measure_phase(cpu_program *program, const cpu_phase *phase) {
    cpu_scratch_sizes *s = &program->sizes;
    const cpu_product *p = &phase->product;
    for (uint32_t i = 0; i < p->n; i++) measure_weight(program, p->weight[i]);
    size_t rows = program->options.step_limit;
    if (rows > CPU_TOKEN_BLOCK) rows = CPU_TOKEN_BLOCK;
    if (p->act != PITH_ACT_NONE) grow(&s->tile, rows * 2 * CPU_UNIT * sizeof(float) + SLACK);
    if (phase->kind == CPU_PHASE_ATTEND) measure_attend(program, &phase->op->attend);
    grow(&s->own_values, own_bytes(program, phase));
}

static void measure_adapters(cpu_program *program) {
    size_t rank = program->options.adapter_rank;
    if (!rank) return;
    program->sizes.low = 3 * CPU_ADAPT_FEW * rank * sizeof(float) + SLACK;
    program->sizes.addition = 2 * CPU_ADAPT_FLOATS * sizeof(float) + SLACK;
    program->sums_offset = program->arena_bytes;
    program->arena_bytes +=
        cpu_round_up(pith_cpu_adapt_floats(program) * sizeof(float) + SLACK, PAGE_ALIGN);
}

static size_t scratch_bytes(const cpu_program *program) {
    const cpu_scratch_sizes *s = &program->sizes;
    size_t words = 6 * cpu_round_up(s->attend_rows * sizeof(float) + SLACK, ALIGN);
    return cpu_round_up(s->panel, ALIGN) + cpu_round_up(s->row, ALIGN) +
           cpu_round_up(s->tile, ALIGN) + cpu_round_up(s->q, ALIGN) +
           2 * cpu_round_up(s->o, ALIGN) + cpu_round_up(s->low, ALIGN) +
           cpu_round_up(s->addition, ALIGN) + words + pith_cpu_q8_bytes(s->attend_rows, s->q8_row) +
           cpu_round_up(s->own_values, ALIGN);
}

pith_status pith_cpu_place(cpu_program *program, pith_error *error) {
    pith_status status = place_values(program, error);
    if (status) return status;
    uint32_t n_page = program->options.n_ctx / PITH_PAGE_TOKENS + 1;
    program->split_pages = n_page < CPU_SPLIT_PAGES ? n_page : CPU_SPLIT_PAGES;
    if (program->split_pages < CPU_SPLIT_PAGES / 2) program->split_pages = CPU_SPLIT_PAGES / 2;
    for (uint32_t i = 0; i < program->n_phase; i++) measure_phase(program, &program->phases[i]);
    for (uint32_t i = 0; i < program->n_moe; i++)
        grow(&program->sizes.row, program->moes[i].op->n_expert * 2 * sizeof(float) + SLACK);
    program->angles_offset = program->arena_bytes;
    program->arena_bytes += cpu_round_up(
        (size_t)program->options.step_limit * 2 * program->n_pair * sizeof(float) + SLACK,
        PAGE_ALIGN);
    program->split_offset = program->arena_bytes;
    program->arena_bytes += cpu_round_up(
        program->split_rows * (program->split_stride + 2) * sizeof(float) + SLACK, PAGE_ALIGN);
    measure_adapters(program);
    program->scratch_offset = program->arena_bytes;
    program->scratch_bytes = cpu_round_up(scratch_bytes(program), PAGE_ALIGN);
    program->arena_bytes += program->scratch_bytes * (size_t)program->options.n_threads;
    return PITH_OK;
}
