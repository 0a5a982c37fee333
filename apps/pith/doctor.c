/* SPDX-License-Identifier: Apache-2.0
 * `pith doctor`: what pith sees of this machine (processor, tiers, memory), how many threads it
 * will use and what that rests on, which kernel it will use for what, and which libraries are
 * built in. Kernels are told in short, as families by tier, unless --kernels asks for all of them;
 * --json has all. Everything comes from pith.h, "Looking inside", and from what is kept of this
 * machine (machine_record.h); nothing is measured without --probe. A PITH_CPU that names no tier is
 * told as a failure. */
#include "base/clock.h"
#include "base/memory.h"
#include "pith/machine_record.h"
#include "pith/pull.h"
#include "server/server.h"

#include <string.h>

/* Whether memory comes in huge pages when they are asked for, as weights ask: a few are taken and
 * looked at. Bytes in huge pages of PROBE_BYTES; 0 also where the system does not tell. */
enum { PROBE_BYTES = 8 << 20 };

static uint64_t huge_bytes(void) {
    pith_region region;
    if (!pith_region_open(&region, PROBE_BYTES, true)) return 0;
    uint64_t before = pith_memory_huge();
    memset(region.data, 1, PROBE_BYTES);
    uint64_t after = pith_memory_huge();
    pith_region_close(&region);
    return after > before ? after - before : 0;
}

static json_t *describe(const pith_system_info *info, const pith_cli_machine *machine) {
    json_t *kernels = json_object(), *libraries = json_object(), *architectures = json_array();
    const char *name, *value;
    for (size_t i = 0; pith_system_kernel(i, &name, &value); i++)
        json_object_set_new(kernels, name, json_string(value));
    for (size_t i = 0; pith_system_library(i, &name, &value); i++)
        json_object_set_new(libraries, name, json_string(value));
    if (pith_cli_network_version())
        json_object_set_new(libraries, "libcurl", json_string(pith_cli_network_version()));
    if (pith_server_library())
        json_object_set_new(libraries, "libmicrohttpd", json_string(pith_server_library()));
    for (size_t i = 0; (name = pith_system_architecture(i)); i++)
        json_array_append_new(architectures, json_string(name));
    return json_pack(
        "{s:s, s:o, s:s, s:i, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:b}", "version", pith_version(),
        "cpu", pith_cli_json_string(info->cpu), "tiers", info->features, "cores", info->n_cores,
        "threads", info->n_threads, "memory_bytes", (json_int_t)info->memory_bytes,
        "memory_available_bytes", (json_int_t)info->memory_available_bytes, "architectures",
        architectures, "libraries", libraries, "kernels", kernels, "probe",
        pith_cli_machine_json(machine, info->n_threads), "huge_pages", huge_bytes() > 0);
}

static bool has_library(const char *wanted) {
    const char *name, *version;
    for (size_t i = 0; pith_system_library(i, &name, &version); i++)
        if (strcmp(name, wanted) == 0) return true;
    return false;
}

/* A kernel's family, "mul" of mul[Q4_K], and its tier, "avx512" of pith_mul_q4_k_avx512. */
static pith_span family_of(const char *slot) {
    return (pith_span){slot, strcspn(slot, "[")};
}

static const char *tier_of(const char *function) {
    const char *last = strrchr(function, '_');
    return last ? last + 1 : function;
}

/* How many of the first `most` kernels are of this tier; family: of it alone, NULL: of any. */
static size_t count_kernels(size_t most, const pith_span *family, const char *tier) {
    const char *name, *value;
    size_t n = 0;
    for (size_t i = 0; i < most && pith_system_kernel(i, &name, &value); i++) {
        pith_span other = family_of(name);
        bool is_wanted = !family || (other.size == family->size &&
                                     memcmp(other.data, family->data, other.size) == 0);
        n += is_wanted && strcmp(tier_of(value), tier) == 0;
    }
    return n;
}

/* "mul (28)": a family of a tier with the number of its kernels, where it has several. */
static void print_family(pith_span family, const char *tier, size_t *column) {
    char text[64];
    size_t n = count_kernels(SIZE_MAX, &family, tier);
    int size = n > 1 ? snprintf(text, sizeof text, " %.*s (%zu)", (int)family.size, family.data, n)
                     : snprintf(text, sizeof text, " %.*s", (int)family.size, family.data);
    if (*column + (size_t)size > 98) *column = (size_t)printf("\n%-14s", "") - 1;
    fputs(text, stdout);
    *column += (size_t)size;
}

/* A line a tier, which families of kernels are its. */
static void print_families(void) {
    const char *name, *value, *tier;
    for (size_t i = 0; pith_system_kernel(i, &name, &tier); i++) {
        tier = tier_of(tier);
        if (count_kernels(i, NULL, tier) > 0) continue; /* told by an earlier line */
        size_t column = (size_t)printf("  %-12s", tier);
        for (size_t k = i; pith_system_kernel(k, &name, &value); k++) {
            pith_span family = family_of(name);
            if (strcmp(tier_of(value), tier) == 0 && count_kernels(k, &family, tier) == 0)
                print_family(family, tier, &column);
        }
        fputc('\n', stdout);
    }
}

static void print_kernels(bool all) {
    const char *name, *value;
    puts(all ? "kernels" : "kernels        by tier; --kernels lists them");
    if (!all) print_families();
    for (size_t i = 0; all && pith_system_kernel(i, &name, &value); i++)
        printf("  %-24s %s\n", name, value);
}

/* Where something is kept. */
static void print_folder(const char *what, char *folder) {
    printf("%-14s %s\n", what, folder ? folder : "not kept: " PITH_CLI_NO_HOME);
    pith_free(folder);
}

static int print_text(const pith_system_info *info, const pith_cli_machine *machine, bool kernels) {
    const char *name, *value;
    printf("pith           %s\ncpu            %s\ntiers          %s\ncores          %d usable\n"
           "memory         %.1f GiB, %.1f GiB available\n",
           pith_version(), info->cpu, info->features, (int)info->n_cores,
           (double)info->memory_bytes / 1073741824.0,
           (double)info->memory_available_bytes / 1073741824.0);
    uint64_t huge = huge_bytes();
    printf("huge pages     %s (%.0f of %.0f MiB asked for)\n",
           huge ? "given to weights" : "not given, or this system does not tell",
           (double)huge / 1048576.0, PROBE_BYTES / 1048576.0);
    pith_cli_machine_print(machine, info->n_threads);
    print_folder("models", pith_cli_models_folder());
    if (has_library("SQLite"))
        print_folder("prompts", pith_cli_cache_folder(NULL));
    else
        puts("prompts        not kept on disk: this build has no SQLite");
    fputs("architectures ", stdout);
    for (size_t i = 0; (name = pith_system_architecture(i)); i++) printf(" %s", name);
    printf("\nlibraries     ");
    for (size_t i = 0; pith_system_library(i, &name, &value); i++)
        printf("%s %s %s", i ? "," : "", name, value);
    value = pith_cli_network_version();
    printf(", %s%s", value ? "libcurl " : "no libcurl: pith pull has no network",
           value ? value : "");
    value = pith_server_library();
    printf(", %s%s\n", value ? "libmicrohttpd " : "no libmicrohttpd: there is no pith serve",
           value ? value : "");
    print_kernels(kernels);
    return pith_cli_finish();
}

/* What is kept, with another look where that is asked for. Exit code, or -1. */
static int know_machine(bool probe, pith_cli_machine *machine) {
    pith_error error = {0};
    pith_cli_machine_load(machine);
    int32_t n_looks = machine->n_looks;
    if (!probe) return -1;
    if (pith_cli_machine_probe(machine, &error) != PITH_OK) return pith_cli_fail(&error);
    if (machine->n_looks == n_looks)
        fputs("note: other work took the processors' time, so nothing new was kept\n", stderr);
    return -1;
}

int pith_command_doctor(int argc, char **argv) {
    bool json = false, probe = false, kernels = false;
    pith_cli_option table[] = {
        {"json", 0, PITH_CLI_FLAG, &json, "", "as JSON", 0, 0},
        {"probe", 0, PITH_CLI_FLAG, &probe, "",
         "measure how many threads are worth having, and keep it", 0, 0},
        {"kernels", 0, PITH_CLI_FLAG, &kernels, "", "list which kernel is used for what", 0, 0}};
    pith_cli_command command = {
        "pith doctor [--probe] [--kernels] [--json]",
        "Shows processor, memory, threads, kernels and libraries in use.", table, 3,
        "PITH_CPU=ref|avx2|avxvnni|avx512|amx|neon|... lowers the machine for a test."};
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code >= 0) return code;
    pith_system_info info = {0};
    pith_error error = {0};
    if (pith_system_describe(&info, &error) != PITH_OK) return pith_cli_fail(&error);
    pith_cli_machine machine;
    code = know_machine(probe, &machine);
    if (code >= 0) return code;
    return json ? pith_cli_print_json(describe(&info, &machine))
                : print_text(&info, &machine, kernels);
}
