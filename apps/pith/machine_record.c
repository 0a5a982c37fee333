/* SPDX-License-Identifier: Apache-2.0
 * The record of this machine (machine_record.h): reading and writing it, what follows from it, and
 * how `pith doctor` shows it. Invariant: the choice of threads is made anew from the kept figures,
 * so a file says what was measured and not what was thought of it. Read next: kept.c. */
#include "pith/machine_record.h"

#include "pith/kept.h"

#include <string.h>

enum { RECORD_VERSION = 1, MOST_THREADS = 512 };

static const char *const folder = "machine";
/* Bytes or multiply-adds a second that a machine can have: others were not measured, and what is
 * estimated from them would be no number. */
static const double least_rate = 1e3, most_rate = 1e15;

/* The text that names this machine, and what it was made of; false without memory. */
static bool name_machine(pith_buffer *text, pith_system_info *info) {
    if (pith_system_describe(info, NULL) != PITH_OK) return false;
    pith_buffer_append_format(text, "%s|%s|%d|%d", info->cpu, info->features, (int)info->n_cores,
                              (int)info->n_threads);
    return !text->failed;
}

static bool read_threads(const json_t *json, int32_t *out) {
    return pith_cli_kept_count(json, "threads", out) && *out >= 1 && *out <= MOST_THREADS;
}

static bool read_rate(const json_t *json, const char *name, double *out) {
    return pith_cli_kept_number(json, name, out) && *out >= least_rate && *out <= most_rate;
}

static bool read_rates(const json_t *json, pith_thread_rates *r) {
    return read_threads(json, &r->n_threads) && read_rate(json, "bandwidth", &r->bandwidth) &&
           read_rate(json, "int8_macs", &r->int8_macs);
}

/* No probe tries more threads than there are processors. */
static bool read_probe(const json_t *json, int32_t n_cores, pith_thread_probe *probe) {
    size_t n = json_array_size(json_object_get(json, "threads"));
    if (n > PITH_THREAD_RATES) return false;
    for (size_t i = 0; i < n; i++) {
        pith_thread_rates *rates = &probe->rates[i];
        if (!read_rates(json_array_get(json_object_get(json, "threads"), i), rates)) return false;
        if (rates->n_threads > n_cores) return false;
        if (i > 0 && rates->n_threads <= rates[-1].n_threads) return false;
    }
    probe->n = n;
    pith_thread_probe_choose(probe);
    return true;
}

static bool read_speed(const json_t *json, pith_cli_speed *s) {
    return read_threads(json, &s->n_threads) && read_rate(json, "low", &s->low) &&
           read_rate(json, "median", &s->median) && read_rate(json, "high", &s->high) &&
           s->median >= s->low && s->high >= s->median;
}

static bool read_machine(const json_t *json, int32_t n_cores, pith_cli_machine *m) {
    double version = 0;
    const json_t *speeds = json_object_get(json, "speeds");
    if (!pith_cli_kept_number(json, "version", &version) || version != RECORD_VERSION ||
        !read_probe(json, n_cores, &m->probe) || !pith_cli_kept_count(json, "looks", &m->n_looks) ||
        m->n_looks < (m->probe.n > 0) || json_array_size(speeds) > PITH_CLI_SPEEDS)
        return false;
    m->n_speeds = json_array_size(speeds);
    for (size_t i = 0; i < m->n_speeds; i++)
        if (!read_speed(json_array_get(speeds, i), &m->speeds[i])) return false;
    return true;
}

/* *info is all 0 where the machine can't be described. */
static void load(pith_cli_machine *out, pith_system_info *info) {
    pith_buffer name = {0};
    *out = (pith_cli_machine){.n_speeds = 0};
    json_t *json = name_machine(&name, info) ? pith_cli_kept_read(folder, name.data) : NULL;
    if (json && !read_machine(json, info->n_cores, out)) *out = (pith_cli_machine){.n_speeds = 0};
    json_decref(json);
    pith_buffer_deinit(&name);
}

void pith_cli_machine_load(pith_cli_machine *out) {
    pith_system_info info;
    load(out, &info);
}

static json_t *rates_json(const pith_thread_probe *probe) {
    json_t *list = json_array();
    for (size_t i = 0; i < probe->n; i++) {
        const pith_thread_rates *r = &probe->rates[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:f, s:f}", "threads", (int)r->n_threads,
                                        "bandwidth", r->bandwidth, "int8_macs", r->int8_macs));
    }
    return list;
}

static json_t *speeds_json(const pith_cli_machine *m) {
    json_t *list = json_array();
    for (size_t i = 0; i < m->n_speeds; i++) {
        const pith_cli_speed *s = &m->speeds[i];
        json_array_append_new(list, json_pack("{s:i, s:f, s:f, s:f}", "threads", (int)s->n_threads,
                                              "low", s->low, "median", s->median, "high", s->high));
    }
    return list;
}

void pith_cli_machine_save(const pith_cli_machine *m) {
    pith_buffer name = {0};
    pith_system_info info;
    if (name_machine(&name, &info))
        pith_cli_kept_write(folder, name.data,
                            json_pack("{s:i, s:o, s:i, s:o, s:o}", "version", RECORD_VERSION,
                                      "machine", pith_cli_json_string(name.data), "looks",
                                      (int)m->n_looks, "threads", rates_json(&m->probe), "speeds",
                                      speeds_json(m)));
    pith_buffer_deinit(&name);
}

/* The best of both, where the same numbers were tried. */
static void join(pith_cli_machine *m, const pith_thread_probe *probe) {
    bool is_same = m->probe.n == probe->n;
    for (size_t i = 0; is_same && i < probe->n; i++)
        is_same = m->probe.rates[i].n_threads == probe->rates[i].n_threads;
    m->n_looks = is_same ? m->n_looks + 1 : 1;
    if (!is_same) m->probe = *probe;
    for (size_t i = 0; i < probe->n; i++) {
        pith_thread_rates *kept = &m->probe.rates[i];
        const pith_thread_rates *now = &probe->rates[i];
        if (now->bandwidth > kept->bandwidth) kept->bandwidth = now->bandwidth;
        if (now->int8_macs > kept->int8_macs) kept->int8_macs = now->int8_macs;
    }
    pith_thread_probe_choose(&m->probe);
}

pith_status pith_cli_machine_probe(pith_cli_machine *machine, pith_error *error) {
    pith_thread_probe probe;
    pith_status status = pith_system_probe_threads(&probe, error);
    if (status != PITH_OK || probe.n_threads == 0) return status;
    join(machine, &probe);
    pith_cli_machine_save(machine);
    return status;
}

bool pith_cli_machine_wants_look(const pith_cli_machine *machine) {
    return machine->n_looks < PITH_CLI_LOOKS;
}

void pith_cli_machine_add(pith_cli_machine *m, const pith_cli_speed *speed) {
    if (m->n_speeds == PITH_CLI_SPEEDS)
        memmove(m->speeds, m->speeds + 1, --m->n_speeds * sizeof *m->speeds);
    m->speeds[m->n_speeds++] = *speed;
}

pith_cli_speed pith_cli_machine_range(const pith_cli_machine *m, const pith_cli_speed *speed) {
    pith_cli_speed range = *speed;
    for (size_t i = 0; i < m->n_speeds; i++) {
        if (m->speeds[i].n_threads != speed->n_threads) continue;
        if (m->speeds[i].median < range.low) range.low = m->speeds[i].median;
        if (m->speeds[i].median > range.high) range.high = m->speeds[i].median;
    }
    return range;
}

pith_cli_thread_numbers pith_cli_machine_threads(const pith_cli_machine *m, int32_t usual) {
    pith_cli_thread_numbers out = {m->probe.n_threads, m->probe.decode_threads};
    if (out.n_threads == 0 || m->n_looks >= PITH_CLI_LOOKS) return out;
    if (usual > MOST_THREADS) usual = MOST_THREADS; /* as the library does by default */
    if (out.n_threads < usual) out.n_threads = usual;
    if (out.decode_threads < usual) out.decode_threads = usual;
    return out;
}

pith_cli_thread_numbers pith_cli_thread_defaults(int32_t asked) {
    pith_cli_machine machine;
    pith_system_info info;
    if (asked > 0) return (pith_cli_thread_numbers){asked, asked};
    load(&machine, &info);
    return pith_cli_machine_threads(&machine, info.n_threads);
}

json_t *pith_cli_machine_json(const pith_cli_machine *m, int32_t usual) {
    pith_cli_thread_numbers used = pith_cli_machine_threads(m, usual);
    if (m->probe.n == 0) return json_null();
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "threads", (int)used.n_threads,
                     "decode_threads", (int)used.decode_threads, "enough_threads",
                     (int)m->probe.n_threads, "enough_decode_threads", (int)m->probe.decode_threads,
                     "looks", (int)m->n_looks, "rates", rates_json(&m->probe), "speeds",
                     speeds_json(m));
}

/* Slowest and fastest of the kept speeds of the threads that are used. */
static void print_speeds(const pith_cli_machine *m, int32_t n_threads) {
    double low = 0, high = 0;
    int n = 0;
    for (size_t i = 0; i < m->n_speeds; i++) {
        const pith_cli_speed *s = &m->speeds[i];
        if (s->n_threads != n_threads) continue;
        low = n == 0 || s->median < low ? s->median : low;
        high = s->median > high ? s->median : high;
        n++;
    }
    if (n > 0)
        printf("memory speed   %.1f to %.1f GB/s with %d threads in the last %d looks\n",
               low * 1e-9, high * 1e-9, (int)n_threads, n);
}

void pith_cli_machine_print(const pith_cli_machine *m, int32_t usual) {
    const pith_thread_probe *p = &m->probe;
    if (p->n == 0) {
        printf(
            "threads        %d by default: one for each core that is not a small one; nothing is "
            "kept of a probe (`pith doctor --probe` or `pith fit` measures)\n",
            (int)usual);
        return;
    }
    pith_cli_thread_numbers used = pith_cli_machine_threads(m, usual);
    printf("threads        %d by default, %d of them for decoding\n", (int)used.n_threads,
           (int)used.decode_threads);
    for (size_t i = 0; i < p->n; i++)
        printf("  %4d         reads %6.1f GB/s, multiplies %7.1f GMAC/s\n",
               (int)p->rates[i].n_threads, p->rates[i].bandwidth * 1e-9,
               p->rates[i].int8_macs * 1e-9);
    printf("enough         %d to multiply, %d to read: within 3 %% of the best (%d look%s%s)\n",
           (int)p->n_threads, (int)p->decode_threads, (int)m->n_looks, m->n_looks == 1 ? "" : "s",
           pith_cli_machine_wants_look(m) ? "; fewer are used from 3 on" : "");
    print_speeds(m, used.n_threads);
}
