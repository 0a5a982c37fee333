/* SPDX-License-Identifier: Apache-2.0
 * `pith fit`: whether a model fits and how fast it will be, before loading it, on this machine or
 * on a device by name or by figures; and the inverse, which sizes reach a wanted speed.
 *
 * Invariant: only headers are read; a file that holds nothing else is enough. Every figure is told
 * with what it rests on (probe, device, or a share of a nominal figure), and an estimate that a run
 * has tested is shown with its error (record.h). Printing: fit_print.c; the inverse: fit_want.c. */
#include "pith/fit.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fit_options {
    int32_t n_ctx, n_threads, n_prompt, depth;
    int load, kv;
    uint64_t memory, ram;
    const char *device, *bandwidth, *ops, *want, *params;
    float share;
    bool json, devices, no_probe, no_record;
    int prefer; /* a pith_prefer */
} fit_options;

/* ---- Numbers with units ---- */

static const double least_tokens = 1e-6, most_rate = 1e24;

/* "60GB/s", "2TOPS", "20tok/s": a number, an optional decimal prefix, an optional unit. */
static bool read_rate(const char *text, const char *const units[], double least, double *out) {
    static const struct {
        char letter;
        double factor;
    } prefixes[] = {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
    char *end = NULL;
    double value = strtod(text, &end), factor = 1;
    if (end == text) return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (*end != prefixes[i].letter) continue;
        factor = prefixes[i].factor;
        end++;
        break;
    }
    bool known = *end == 0;
    for (size_t i = 0; units[i] && !known; i++) known = strcmp(end, units[i]) == 0;
    *out = value * factor;
    return known && *out >= least && *out <= most_rate;
}

/* Parameters: B and M count, as in "3B" and "270M". */
static bool read_params(const char *text, double *out) {
    char *end = NULL;
    double value = strtod(text, &end), factor = 1;
    if (*end == 'B' || *end == 'b')
        factor = 1e9, end++;
    else if (*end == 'M' || *end == 'm')
        factor = 1e6, end++;
    *out = value * factor;
    return end != text && *end == 0 && *out >= 1 && *out < 1e16;
}

/* ---- Devices ---- */

static bool find_device(const char *name, pith_device *out) {
    for (size_t i = 0; pith_device_at(i, out); i++)
        if (strcmp(out->name, name) == 0) return true;
    return false;
}

static int list_devices(bool json) {
    json_t *list = json_array();
    pith_device d;
    for (size_t i = 0; pith_device_at(i, &d); i++) {
        if (json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:f, s:f, s:I, s:f, s:s}", "name", d.name,
                                            "title", d.title, "bandwidth", d.bandwidth, "int8_ops",
                                            d.int8_ops, "memory_bytes", (json_int_t)d.memory_bytes,
                                            "app_share", d.app_share, "source", d.source));
        else
            printf("%-19s %7.1f GB/s %5.0f GiB, %2.0f %% for an app  %s (%s)\n", d.name,
                   d.bandwidth * 1e-9, (double)d.memory_bytes / 1073741824.0, d.app_share * 100,
                   d.title, d.source);
    }
    if (json) return pith_cli_print_json(list);
    json_decref(list);
    return pith_cli_finish();
}

/* The device asked about in *out; *is_here: this machine. -1 to go on. */
static int choose_device(const pith_cli_command *command, const fit_options *o, pith_device *out,
                         bool *is_here) {
    static const char *const bytes[] = {"B/s", "b/s", "", NULL};
    static const char *const ops[] = {"OPS", "OP/s", "ops", "", NULL};
    *is_here = !o->device && !o->bandwidth && !o->ops && !o->ram;
    *out = (pith_device){.size = sizeof *out, .name = "", .title = "figures", .source = "given"};
    if (o->device && !find_device(o->device, out))
        return pith_cli_usage(command, "there is no device '%s'; --devices lists them", o->device);
    if (o->bandwidth && !read_rate(o->bandwidth, bytes, 1, &out->bandwidth))
        return pith_cli_usage(command, "--bandwidth needs a rate such as 60GB/s, not '%s'",
                              o->bandwidth);
    if (o->ops && !read_rate(o->ops, ops, 1, &out->int8_ops))
        return pith_cli_usage(command, "--ops needs a rate such as 2TOPS, not '%s'", o->ops);
    if (o->ram) out->memory_bytes = o->ram;
    if (o->share > 0) out->bandwidth_share = (double)o->share;
    if (!*is_here && out->bandwidth <= 0)
        return pith_cli_usage(command, "--ops and --ram describe a device together with "
                                       "--bandwidth or --device");
    return -1;
}

/* ---- One model ---- */

static pith_cli_record_key record_key(const pith_file *file, const fit_options *o,
                                      const pith_fit *fit, int32_t decode_threads) {
    return (pith_cli_record_key){
        .content_key = o->no_record || !fit->measured ? 0 : pith_file_content_key(file),
        .n_threads = fit->n_threads,
        .decode_threads = decode_threads,
        .load = (int)fit->load,
        .kv_type = fit->kv_type};
}

/* What is kept of this machine; the first times it is measured. Threads that were asked for leave
 * nothing to choose. A probe that lacks threads or memory costs its look, not the estimate. */
static void know_machine(const fit_options *o, pith_cli_machine *machine) {
    pith_cli_machine_load(machine);
    if (!pith_cli_machine_wants_look(machine) || o->n_threads > 0 || o->no_probe || o->no_record)
        return;
    (void)pith_cli_machine_probe(machine, NULL);
}

/* How memory was seen now and before; what was seen now is kept. */
static void remember_speed(const fit_options *o, pith_fit_answer *answer) {
    const pith_fit *fit = &answer->fit;
    pith_cli_speed now = {fit->n_threads, fit->bandwidth_low, fit->bandwidth, fit->bandwidth_high};
    pith_cli_machine machine;
    if (!fit->measured || !(now.low > 0)) return;
    answer->memory = now;
    if (o->no_record) return;
    answer->memory = pith_cli_machine_range(&answer->question->machine, &now);
    pith_cli_machine_load(&machine);
    pith_cli_machine_add(&machine, &now);
    pith_cli_machine_save(&machine);
}

/* For the record: what memory's speed explains. */
static void set_token_range(pith_fit_answer *answer) {
    double usual = pith_fit_token_ms(&answer->fit, 0, 0);
    double fast = pith_fit_token_ms(&answer->fit, 0, answer->memory.high);
    double slow = pith_fit_token_ms(&answer->fit, 0, answer->memory.low);
    answer->record.token_fast = answer->record.token_slow = 1;
    if (usual <= 0 || !pith_fit_range_is_wide(1 / slow, 1 / fast)) return;
    answer->record.token_fast = fast < usual ? fast / usual : 1;
    answer->record.token_slow = slow > usual ? slow / usual : 1;
}

/* What --prefer chooses where nothing is given; the answer shows it. */
static void prefer(const fit_options *o, const pith_fit_answer *answer, pith_fit_options *options) {
    pith_preference choice;
    pith_prefer_choose((pith_prefer)o->prefer, &answer->question->machine.probe, &choice, NULL);
    if (options->load == PITH_LOAD_AUTO) options->load = choice.load;
    if (options->kv_type == PITH_KV_AUTO) options->kv_type = choice.kv_type;
    if (choice.decode_threads > 0 && o->n_threads == 0 && !answer->question->device)
        options->decode_threads = choice.decode_threads;
}

static bool estimate(const char *path, const fit_options *o, pith_fit_answer *answer,
                     pith_file **file, pith_error *error) {
    pith_cli_thread_numbers kept = answer->question->threads;
    pith_fit_options options = {.size = sizeof options,
                                .n_ctx = o->n_ctx,
                                .n_threads = o->n_threads ? o->n_threads : kept.n_threads,
                                .decode_threads = o->n_threads ? 0 : kept.decode_threads,
                                .load = (pith_load)o->load,
                                .kv_type = (pith_kv_type)o->kv,
                                .memory_limit = o->memory,
                                .device = answer->question->device,
                                .no_probe = o->no_probe};
    if (pith_file_open_header(path, file, error) != PITH_OK) return false;
    prefer(o, answer, &options);
    pith_status status = pith_file_fit(*file, &options, &answer->fit, error);
    if (status == PITH_ERROR_UNSUPPORTED && o->kv == PITH_KV_AUTO && options.kv_type) {
        options.kv_type = PITH_KV_AUTO; /* the model does not allow what was chosen */
        status = pith_file_fit(*file, &options, &answer->fit, error);
    }
    if (status != PITH_OK) return false;
    remember_speed(o, answer);
    pith_cli_record_key key = record_key(*file, o, &answer->fit, options.decode_threads);
    pith_cli_record_load(&key, &answer->record);
    set_token_range(answer);
    if (answer->fit.measured) pith_cli_record_estimate(&key, &answer->fit, &answer->record);
    return true;
}

/* Answers for one model: JSON into list, or text. Exit code, or -1. */
static int fit_one(const char *name, const fit_options *o, const pith_fit_question *question,
                   json_t *list) {
    pith_error error = {0};
    pith_fit_answer answer = {.question = question};
    pith_file *file = NULL;
    char *path = pith_cli_find_model(name, &error);
    bool ok = path && estimate(path, o, &answer, &file, &error);
    answer.path = path;
    if (ok && o->json)
        json_array_append_new(list, pith_fit_json(&answer));
    else if (ok)
        pith_fit_print(&answer);
    pith_file_close(file);
    pith_free(path);
    return ok ? -1 : pith_cli_fail(&error);
}

/* The inverse without a model. */
static int want_alone(const fit_options *o, const pith_fit_question *question) {
    const pith_device *d = question->device;
    pith_machine_rates rates = {0};
    pith_error error = {0};
    if (!d && o->no_probe)
        return pith_cli_fail_text("--want without --device asks how fast this machine is, and "
                                  "--no-probe forbids to measure it: leave one of them out");
    if (!d && pith_system_measure(o->n_threads, 0, &rates, &error) != PITH_OK)
        return pith_cli_fail(&error);
    double app = d && d->app_share > 0 ? d->app_share : 0.7;
    pith_fit_wanted wanted = {.want = question->want,
                              .bandwidth = d ? d->bandwidth : rates.bandwidth,
                              .share = d && d->bandwidth_share > 0 ? d->bandwidth_share
                                       : d                         ? 0.7
                                                                   : 0.9,
                              .n_all = question->n_parameters,
                              .n_active = question->n_parameters,
                              .memory = d ? (uint64_t)((double)d->memory_bytes * app) : 0};
    if (o->json) return pith_cli_print_json(pith_fit_want_json(&wanted));
    pith_fit_want_print(&wanted);
    return pith_cli_finish();
}

static int answer_all(const pith_cli_command *command, const fit_options *o, const char **words,
                      int n_words) {
    static const char *const tokens[] = {"tok/s", "t/s", "", NULL};
    pith_device device;
    bool is_here = true;
    pith_fit_question question = {.n_prompt = o->n_prompt, .depth = o->depth};
    int code = choose_device(command, o, &device, &is_here);
    question.device = is_here ? NULL : &device;
    if (code < 0 && o->want && !read_rate(o->want, tokens, least_tokens, &question.want))
        code = pith_cli_usage(command, "--want needs a speed such as 20tok/s, not '%s'", o->want);
    if (code < 0 && o->params && !read_params(o->params, &question.n_parameters))
        code = pith_cli_usage(command, "--params needs a number such as 3B, not '%s'", o->params);
    if (code < 0 && n_words == 0 && question.n_parameters <= 0)
        code = pith_cli_usage(command, "give a MODEL, or --params with --want");
    if (code < 0 && n_words == 0 && question.want <= 0)
        code = pith_cli_usage(command, "--params alone says nothing: give --want too");
    if (code >= 0) return code;
    if (n_words == 0) return want_alone(o, &question);
    if (is_here) know_machine(o, &question.machine);
    if (is_here) question.threads = pith_cli_thread_defaults(o->n_threads);
    json_t *list = o->json ? json_array() : NULL;
    for (int i = 0; i < n_words && code < 0; i++) {
        if (i > 0 && !o->json) putchar('\n');
        code = fit_one(words[i], o, &question, list);
    }
    if (code >= 0) {
        json_decref(list);
        return code;
    }
    return o->json ? pith_cli_print_json(list) : pith_cli_finish();
}

enum { N_OPTIONS = 19 };

static void fill_options(fit_options *o, pith_cli_option table[N_OPTIONS]) {
    const pith_cli_option options[N_OPTIONS] = {
        {"ctx", 'c', PITH_CLI_INT, &o->n_ctx, "N",
         "tokens of context (default: the model's, at most 4096)", 0, 1 << 24},
        {"prompt", 'p', PITH_CLI_INT, &o->n_prompt, "N",
         "tokens of the prompt for prefill and first token (default: 512)", 1, 1 << 24},
        {"depth", 'd', PITH_CLI_INT, &o->depth, "N",
         "tokens before, for the decode speed (default: 0)", 0, 1 << 24},
        {"threads", 't', PITH_CLI_INT, &o->n_threads, "N",
         "threads (default: what `pith doctor` shows)", 0, 512},
        {"load", 0, PITH_CLI_CHOICE, &o->load, "auto|pack|mmap",
         "pack weights into memory, or use the mapped file in place", 0, 0},
        {"kv", 0, PITH_CLI_CHOICE, &o->kv, "auto|f32|f16|int8",
         "storage of the KV cache (default: f16)", 0, 0},
        {"memory", 0, PITH_CLI_SIZE, &o->memory, "SIZE",
         "ceiling for weights, KV and workspace, e.g. 2G", 0, 0},
        {"device", 0, PITH_CLI_TEXT, &o->device, "NAME",
         "a device of the built-in table instead of this machine", 0, 0},
        {"devices", 0, PITH_CLI_FLAG, &o->devices, "", "list the devices with their sources", 0, 0},
        {"bandwidth", 0, PITH_CLI_TEXT, &o->bandwidth, "RATE",
         "a device by figures: memory bandwidth, e.g. 60GB/s", 0, 0},
        {"ops", 0, PITH_CLI_TEXT, &o->ops, "RATE", "its int8 operations, e.g. 2TOPS", 0, 0},
        {"ram", 0, PITH_CLI_SIZE, &o->ram, "SIZE", "its memory, e.g. 8GB", 0, 0},
        {"share", 0, PITH_CLI_FLOAT, &o->share, "X",
         "share of a bandwidth that decoding reaches (default: 0.7)", 0.01, 1},
        {"want", 0, PITH_CLI_TEXT, &o->want, "RATE",
         "which bits and sizes reach this speed, e.g. 20tok/s", 0, 0},
        {"params", 0, PITH_CLI_TEXT, &o->params, "N", "with --want: parameters, e.g. 3B", 0, 0},
        {"no-probe", 0, PITH_CLI_FLAG, &o->no_probe, "", "sizes only, nothing is measured", 0, 0},
        {"no-record", 0, PITH_CLI_FLAG, &o->no_record, "",
         "neither use nor keep records of estimates and runs", 0, 0},
        {"prefer", 0, PITH_CLI_CHOICE, &o->prefer, "none|ttft|tps|memory|battery",
         "load mode, KV and threads of `pith run --prefer`", 0, 0},
        {"json", 0, PITH_CLI_FLAG, &o->json, "", "as JSON", 0, 0},
    };
    memcpy(table, options, sizeof options);
}

int pith_command_fit(int argc, char **argv) {
    fit_options o = {.n_prompt = 512};
    pith_cli_option table[N_OPTIONS];
    fill_options(&o, table);
    pith_cli_command command = {
        "pith fit MODEL... [options]", "Says before loading whether a model fits and how fast.",
        table, N_OPTIONS,
        "A MODEL may be the first megabytes of a GGUF file: only its header is read. This machine\n"
        "is probed for up to two seconds, the first three times for two more; run it when nothing\n"
        "else is running. Speeds of devices are nominal figures times a share."};
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = pith_cli_parse(&command, argc, argv, words, &n_words);
    if (code < 0)
        code = o.devices ? list_devices(o.json) : answer_all(&command, &o, words, n_words);
    pith_free(words);
    return code;
}
