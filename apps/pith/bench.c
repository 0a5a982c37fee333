/* SPDX-License-Identifier: Apache-2.0
 * `pith bench`: prefill and decode speed at given lengths and depths. Field names are those of
 * llama-bench, with more behind them: percentiles, cold latencies of the first 16 tokens, time to
 * first token, peak memory, content key.
 * Invariant: each test warms up once, then repeats; nothing else runs within one. Printing is in
 * bench_print.c. */
#include "pith/bench.h"

#include "base/clock.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/rng.h"
#include "pith/machine_record.h"
#include "pith/record.h"
#include "pith/reply_option.h"

#include <math.h>
#include <string.h>

typedef struct bench_options {
    pith_cli_model model;
    const char *prompts, *predicts, *depths, *threads;
    int32_t repetitions, format;
    bool profile, no_warmup, json, roofline, no_record;
} bench_options;

enum { LIST_MAX = 16, MOST_THREADS = 512 };

typedef struct number_list {
    int32_t items[LIST_MAX];
    size_t n;
} number_list;

/* "0,4096" -> items; false when it is no list of whole numbers from 0 to 2^24. */
static bool read_list(const char *text, number_list *out) {
    size_t n_ids = 0;
    pith_error error = {0};
    int32_t *ids = pith_cli_parse_ids(text, strlen(text), &n_ids, &error);
    bool ok = ids && n_ids > 0 && n_ids <= LIST_MAX;
    for (size_t i = 0; ok && i < n_ids; i++) {
        ok = ids[i] <= 1 << 24;
        out->items[i] = ids[i];
    }
    out->n = ok ? n_ids : 0;
    pith_free(ids);
    return ok;
}

static int32_t largest(const number_list *list) {
    int32_t most = 0;
    for (size_t i = 0; i < list->n; i++) most = list->items[i] > most ? list->items[i] : most;
    return most;
}

/* ---- Statistics ---- */

double pith_bench_percentile(const double *sorted, size_t n, double share) {
    if (n == 0) return 0;
    double at = share * (double)(n - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (at - (double)low);
}

static void summarize(pith_bench_row *row) {
    double sum = 0, square = 0, sum_ts = 0, square_ts = 0;
    double tokens = (double)(row->n_prompt + row->n_gen);
    for (size_t i = 0; i < row->n_samples; i++) {
        double ns = row->samples_ns[i], ts = tokens / ns * 1e9;
        sum += ns, square += ns * ns, sum_ts += ts, square_ts += ts * ts;
    }
    double n = (double)row->n_samples;
    row->avg_ns = sum / n, row->avg_ts = sum_ts / n;
    row->stddev_ns = n > 1 ? sqrt(fmax(0, (square - sum * sum / n) / (n - 1))) : 0;
    row->stddev_ts = n > 1 ? sqrt(fmax(0, (square_ts - sum_ts * sum_ts / n) / (n - 1))) : 0;
    memcpy(row->sorted_ns, row->samples_ns, row->n_samples * sizeof *row->sorted_ns);
    pith_sort_doubles(row->sorted_ns, row->n_samples);
    pith_sort_doubles(row->token_ns, row->n_tokens);
}

/* ---- Running ---- */

typedef struct bench_state {
    pith_bench_report report;
    pith_engine *engine;
    pith_session *session;
    int32_t *ids; /* [n_ids] random ids */
    size_t n_ids;
    size_t n_runs, n_runs_done;
    pith_cli_progress progress; /* drawn between runs, never within one */
    pith_error error;
} bench_state;

static bool append(bench_state *s, size_t first, size_t n) {
    return n == 0 ||
           pith_session_append(s->session, s->ids + first, n, NULL, NULL, &s->error) == PITH_OK;
}

/* Back to the row's depth, ready for the next token: what a window has dropped is computed again
 * when a token asks for it, and that is the last one of the depth, not one that is measured. */
static bool rewind_to(bench_state *s, size_t depth) {
    size_t n_keep = depth ? depth - 1 : 0;
    return pith_session_truncate(s->session, n_keep, &s->error) == PITH_OK &&
           append(s, n_keep, depth - n_keep);
}

/* One repetition at the row's depth; nanoseconds, or a negative number. token_ns gets each decode
 * step's time. */
static double one_run(bench_state *s, const pith_bench_row *row, double *token_ns) {
    size_t depth = (size_t)row->n_depth;
    if (!rewind_to(s, depth)) return -1;
    uint64_t start = pith_clock_ns();
    if (!append(s, depth, (size_t)row->n_prompt)) return -1;
    for (int32_t i = 0; i < row->n_gen; i++) {
        uint64_t before = pith_clock_ns();
        if (!append(s, depth + (size_t)(row->n_prompt + i), 1)) return -1;
        if (token_ns) token_ns[i] = (double)(pith_clock_ns() - before);
    }
    double ns = (double)(pith_clock_ns() - start);
    pith_cli_progress_step(&s->progress, (double)++s->n_runs_done / (double)s->n_runs);
    return ns;
}

/* Memory for the row's samples. */
static bool make_room(bench_state *s, pith_bench_row *row, size_t n_repetitions) {
    size_t n_tokens = n_repetitions * (size_t)row->n_gen;
    row->samples_ns = pith_alloc_array(n_repetitions * 2, sizeof *row->samples_ns);
    row->token_ns = pith_alloc_array(n_tokens + 1, sizeof *row->token_ns);
    if (row->samples_ns && row->token_ns) return true;
    pith_fail_memory(&s->error, "the samples of a test",
                     (n_repetitions * 2 + n_tokens + 1) * sizeof *row->token_ns);
    return false;
}

static bool run_row(bench_state *s, pith_bench_row *row, const bench_options *o) {
    if (!make_room(s, row, (size_t)o->repetitions)) return false;
    row->sorted_ns = row->samples_ns + o->repetitions;
    if (pith_session_truncate(s->session, 0, &s->error) != PITH_OK ||
        !append(s, 0, (size_t)row->n_depth))
        return false;
    if (!o->no_warmup && one_run(s, row, NULL) < 0) return false;
    for (int32_t i = 0; i < o->repetitions; i++) {
        double ns = one_run(s, row, row->token_ns + (size_t)i * (size_t)row->n_gen);
        if (ns < 0) return false;
        row->samples_ns[row->n_samples++] = ns;
        row->n_tokens += (size_t)row->n_gen;
    }
    summarize(row);
    return true;
}

/* The first 16 tokens of a fresh engine, one by one: what a user waits for after the start. */
static bool run_cold(bench_state *s) {
    for (size_t i = 0; i < PITH_BENCH_COLD; i++) {
        uint64_t before = pith_clock_ns();
        if (!append(s, i, 1)) return false;
        s->report.cold_ms[i] = (double)(pith_clock_ns() - before) * 1e-6;
    }
    return pith_session_truncate(s->session, 0, &s->error) == PITH_OK;
}

static bool random_ids(bench_state *s, int32_t n_vocab) {
    pith_rng rng;
    pith_rng_init(&rng, 1);
    s->ids = pith_alloc_array(s->n_ids, sizeof *s->ids);
    for (size_t i = 0; s->ids && i < s->n_ids; i++)
        s->ids[i] = (int32_t)(pith_rng_next(&rng) % (uint64_t)n_vocab);
    if (!s->ids) pith_fail_memory(&s->error, "token ids", s->n_ids * sizeof *s->ids);
    return s->ids != NULL;
}

static bool add_rows(bench_state *s, const bench_options *o, const number_list *lengths,
                     int32_t depth, bool prompt) {
    for (size_t i = 0; i < lengths->n; i++) {
        if (lengths->items[i] == 0) continue;
        pith_bench_report *report = &s->report;
        pith_bench_row *rows = pith_realloc(report->rows, (report->n_rows + 1) * sizeof *rows);
        if (!rows) return pith_fail_memory(&s->error, "results", 0), false;
        report->rows = rows;
        pith_bench_row *row = &rows[report->n_rows++];
        pith_engine_info engine = pith_engine_describe(s->engine);
        *row = (pith_bench_row){.n_prompt = prompt ? lengths->items[i] : 0,
                                .n_gen = prompt ? 0 : lengths->items[i],
                                .n_depth = depth,
                                .n_threads = prompt ? engine.n_threads : engine.decode_threads};
        if (!run_row(s, row, o)) return false;
    }
    return true;
}

/* Copies the profile: its names live as long as the engine. */
static bool take_profile(bench_state *s) {
    pith_bench_report *report = &s->report;
    for (size_t i = 0; i < report->n_profile; i++) pith_free(report->names[i]);
    pith_free(report->names);
    pith_free(report->profile);
    size_t n = pith_engine_profile_rows(s->engine, NULL, 0);
    report->n_profile = 0;
    report->profile = pith_alloc_zero(n + 1, sizeof *report->profile);
    report->names = pith_alloc_zero(n + 1, sizeof *report->names);
    bool made = report->profile && report->names;
    if (made) pith_engine_profile_rows(s->engine, report->profile, n);
    for (size_t i = 0; made && i < n; i++) {
        const char *name = report->profile[i].operation;
        report->names[i] = pith_copy_text(name, strlen(name));
        report->profile[i].operation = report->names[i];
        made = report->names[i] != NULL;
        report->n_profile += made;
    }
    if (!made) pith_fail_memory(&s->error, "the profile", n * sizeof *report->profile);
    return made;
}

typedef struct bench_lists {
    number_list prompts, predicts, depths, threads;
} bench_lists;

static size_t n_used(const number_list *lengths) {
    size_t n = 0;
    for (size_t i = 0; i < lengths->n; i++) n += lengths->items[i] != 0;
    return n;
}

/* What this run tells `pith fit`: the first prompt and the first decode row of the engine. */
static void keep_record(const bench_state *s, size_t first_row, const pith_model *model) {
    pith_cli_measure measure = {
        .model = model, .engine = s->engine, .peak_bytes = s->report.peak_bytes};
    for (size_t i = s->report.n_rows; i-- > first_row;) {
        const pith_bench_row *row = &s->report.rows[i];
        double p50 = pith_bench_percentile(row->sorted_ns, row->n_samples, 0.5) * 1e-6;
        if (row->n_prompt > 0) {
            measure.n_prompt = row->n_prompt;
            measure.prompt_depth = row->n_depth;
            measure.prompt_ms = p50;
        } else {
            measure.n_token = row->n_gen;
            measure.token_depth = row->n_depth + row->n_gen / 2;
            measure.token_ms = pith_bench_percentile(row->token_ns, row->n_tokens, 0.5) * 1e-6;
        }
    }
    pith_cli_record_run(&measure);
}

/* What the machine gives, just after the rows of an engine. The memory that this takes comes after
 * the peak was read. */
static bool measure_machine(bench_state *s, size_t first_row, bool is_kept) {
    pith_machine_rates rates;
    if (pith_system_measure(pith_engine_describe(s->engine).n_threads, s->report.model.weight_bytes,
                            &rates, &s->error) != PITH_OK)
        return false;
    for (size_t i = first_row; i < s->report.n_rows; i++) {
        s->report.rows[i].bandwidth = rates.bandwidth;
        s->report.rows[i].int8_macs = rates.int8_macs;
    }
    pith_cli_machine machine;
    pith_cli_speed speed = {rates.n_threads, rates.bandwidth_low, rates.bandwidth,
                            rates.bandwidth_high};
    if (!is_kept) return true;
    pith_cli_machine_load(&machine);
    pith_cli_machine_add(&machine, &speed);
    pith_cli_machine_save(&machine);
    if (pith_cli_machine_wants_look(&machine)) (void)pith_cli_machine_probe(&machine, NULL);
    return true;
}

/* All tests with one number of threads. */
static int run_threads(bench_state *s, const bench_options *o, const bench_lists *l,
                       int32_t n_threads, const pith_model *model) {
    pith_cli_model values = o->model;
    values.n_threads = n_threads;
    int code = pith_cli_open_engine(&values, model, (int32_t)s->n_ids, &s->engine, &s->session);
    if (code >= 0) return code;
    size_t first_row = s->report.n_rows;
    bool ok = first_row > 0 || run_cold(s);
    if (ok && o->profile) pith_engine_profile(s->engine, true);
    for (size_t d = 0; ok && d < l->depths.n; d++)
        ok = add_rows(s, o, &l->prompts, l->depths.items[d], true) &&
             add_rows(s, o, &l->predicts, l->depths.items[d], false);
    if (ok && o->profile) ok = take_profile(s);
    if (first_row == 0 || !o->roofline) s->report.peak_bytes = pith_memory_peak();
    if (first_row == 0) s->report.huge_bytes = pith_memory_huge();
    bool is_usual = !o->profile && pith_cli_record_is_for(&o->model); /* a profile takes time */
    if (ok && is_usual && !o->no_record) keep_record(s, first_row, model);
    if (ok && o->roofline) ok = measure_machine(s, first_row, !o->no_record);
    pith_engine_info info = pith_engine_describe(s->engine);
    snprintf(s->report.backend, sizeof s->report.backend, "%s", info.backend);
    snprintf(s->report.kv_type, sizeof s->report.kv_type, "%s", info.kv_type);
    s->report.step_limit = info.step_limit;
    pith_session_free(s->session);
    pith_engine_free(s->engine);
    s->session = NULL, s->engine = NULL;
    return ok ? -1 : pith_cli_fail(&s->error);
}

static int run_all(const pith_cli_command *command, bench_options *o, const bench_lists *l) {
    bench_state s = {0};
    pith_model *model = NULL;
    pith_cli_model values = o->model;
    int32_t longest =
        largest(&l->prompts) > largest(&l->predicts) ? largest(&l->prompts) : largest(&l->predicts);
    s.n_ids = (size_t)largest(&l->depths) +
              (size_t)(longest > PITH_BENCH_COLD ? longest : PITH_BENCH_COLD);
    values.n_ctx_wanted = (int32_t)s.n_ids;
    uint64_t start = pith_clock_ns();
    int code = pith_cli_open_model(command, &values, false, &model);
    if (code >= 0) return code;
    pith_cli_prefer_tell(&o->model, model);
    s.report.load_ms = (double)(pith_clock_ns() - start) * 1e-6;
    s.report.file = o->model.model;
    s.report.model = pith_model_describe(model);
    if (!random_ids(&s, s.report.model.n_vocab)) code = pith_cli_fail(&s.error);
    s.n_runs = l->threads.n * l->depths.n * (n_used(&l->prompts) + n_used(&l->predicts)) *
               ((size_t)o->repetitions + !o->no_warmup);
    s.progress = pith_cli_progress_start("measuring");
    for (size_t i = 0; code < 0 && i < l->threads.n; i++)
        code = run_threads(&s, o, l, l->threads.items[i], model);
    pith_cli_progress_end(&s.progress);
    if (code < 0 && o->roofline &&
        !pith_bench_count_work(o->model.model, s.report.kv_type, &s.report.work, &s.error))
        code = pith_cli_fail(&s.error);
    if (code < 0) code = pith_bench_print(&s.report, (pith_bench_format)o->format);
    for (size_t i = 0; i < s.report.n_rows; i++) {
        pith_free(s.report.rows[i].samples_ns);
        pith_free(s.report.rows[i].token_ns);
    }
    for (size_t i = 0; i < s.report.n_profile; i++) pith_free(s.report.names[i]);
    pith_free(s.report.names);
    pith_free(s.report.rows);
    pith_free(s.report.profile);
    pith_free(s.ids);
    pith_model_close(model);
    return code;
}

enum {
    OWN_OPTIONS = 11,
    N_OPTIONS = PITH_CLI_MODEL_OPTIONS - 1 + OWN_OPTIONS + PITH_CLI_ADAPTER_OPTIONS
};

/* The common options without --threads, which is a list here, and bench's own. */
static void fill_options(bench_options *o, pith_cli_option table[N_OPTIONS]) {
    const pith_cli_option own[OWN_OPTIONS] = {
        {"prompt", 'p', PITH_CLI_TEXT, &o->prompts, "N,...",
         "prompt lengths (default: 512; 0: none)", 0, 0},
        {"gen", 'n', PITH_CLI_TEXT, &o->predicts, "N,...",
         "tokens to decode (default: 128; 0: none)", 0, 0},
        {"depth", 'd', PITH_CLI_TEXT, &o->depths, "N,...",
         "tokens already in the context (default: 0)", 0, 0},
        {"threads", 't', PITH_CLI_TEXT, &o->threads, "N,...",
         "threads (default: what `pith doctor` shows)", 0, 0},
        {"repetitions", 'r', PITH_CLI_INT, &o->repetitions, "N",
         "repetitions after one warm-up (default: 5)", 1, 1000},
        {"output", 'o', PITH_CLI_CHOICE, &o->format, "md|json|csv", "format (default: md)", 0, 0},
        {"json", 0, PITH_CLI_FLAG, &o->json, "", "the same as -o json", 0, 0},
        {"no-warmup", 0, PITH_CLI_FLAG, &o->no_warmup, "", "no run before the measured ones", 0, 0},
        {"profile", 0, PITH_CLI_FLAG, &o->profile, "", "time per operation", 0, 0},
        {"roofline", 0, PITH_CLI_FLAG, &o->roofline, "",
         "shares of what this machine reads and multiplies", 0, 0},
        {"no-record", 0, PITH_CLI_FLAG, &o->no_record, "",
         "do not keep times and memory for `pith fit`", 0, 0},
    };
    pith_cli_option common[PITH_CLI_MODEL_OPTIONS];
    size_t n = 0;
    pith_cli_model_options(&o->model, common);
    for (size_t i = 0; i < PITH_CLI_MODEL_OPTIONS; i++)
        if (strcmp(common[i].name, "threads") != 0) table[n++] = common[i];
    memcpy(table + n, own, sizeof own);
    pith_cli_adapter_options(&o->model, table + n + OWN_OPTIONS);
}

int pith_command_bench(int argc, char **argv) {
    bench_options o = {.prompts = "512",
                       .predicts = "128",
                       .depths = "0",
                       .threads = "0",
                       .repetitions = 5,
                       .format = PITH_BENCH_MD};
    pith_cli_option table[N_OPTIONS];
    fill_options(&o, table);
    pith_cli_command command = {"pith bench -m MODEL [options]",
                                "Measures prefill and decode speed.", table, N_OPTIONS,
                                "Measure on a quiet machine; compare medians of alternating runs."};
    int code = pith_cli_parse_alone(&command, argc, argv);
    bench_lists l;
    if (code < 0 && !(read_list(o.prompts, &l.prompts) && read_list(o.predicts, &l.predicts) &&
                      read_list(o.depths, &l.depths) && read_list(o.threads, &l.threads)))
        code = pith_cli_usage(
            &command, "-p, -n, -d and -t take up to %d whole numbers such as 128,512", LIST_MAX);
    if (code < 0 && largest(&l.threads) > MOST_THREADS)
        code = pith_cli_usage(&command, "-t takes up to %d threads, not %d", MOST_THREADS,
                              (int)largest(&l.threads));
    if (o.json) o.format = PITH_BENCH_JSON;
    if (code < 0) code = pith_cli_prefer(&o.model, NULL);
    return code < 0 ? run_all(&command, &o, &l) : code;
}
