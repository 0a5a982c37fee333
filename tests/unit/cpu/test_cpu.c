/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: PITH_CPU lowers the machine to a tier and what it includes; a wrong name is refused
 * with the names that exist; what is detected agrees with what the compiler's own runtime and
 * the kernel say.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"

#if defined(_WIN32)
static void set_tier(const char *name) {
    _putenv_s("PITH_CPU", name);
}
#else
static void set_tier(const char *name) {
    setenv("PITH_CPU", name, 1);
}
#endif

static const uint32_t x86_all = PITH_CPU_AVX2 | PITH_CPU_AVXVNNI | PITH_CPU_AVX512 | PITH_CPU_AMX;

static void test_limit_keeps_what_a_tier_includes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t kept;
    } rows[] = {
        {"ref", 0},
        {"avx2", PITH_CPU_AVX2},
        {"avxvnni", PITH_CPU_AVX2 | PITH_CPU_AVXVNNI},
        {"avx512", PITH_CPU_AVX2 | PITH_CPU_AVX512},
        {"amx", PITH_CPU_AVX2 | PITH_CPU_AVX512 | PITH_CPU_AMX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t out = 99;
        assert_int_equal(pith_cpu_limit(x86_all, rows[i].name, &out, NULL), PITH_OK);
        assert_int_equal(out, rows[i].kept);
    }
    uint32_t arm = PITH_CPU_NEON | PITH_CPU_DOTPROD | PITH_CPU_I8MM, out;
    assert_int_equal(pith_cpu_limit(arm, "dotprod", &out, NULL), PITH_OK);
    assert_int_equal(out, PITH_CPU_NEON | PITH_CPU_DOTPROD);
    assert_int_equal(pith_cpu_limit(arm, "i8mm", &out, NULL), PITH_OK);
    assert_int_equal(out, arm);
}

static void test_no_name_leaves_the_machine(void **state) {
    (void)state;
    uint32_t out = 99;
    assert_int_equal(pith_cpu_limit(x86_all, NULL, &out, NULL), PITH_OK);
    assert_int_equal(out, x86_all);
    assert_int_equal(pith_cpu_limit(PITH_CPU_AVX2, "", &out, NULL), PITH_OK);
    assert_int_equal(out, PITH_CPU_AVX2);
}

static void test_unknown_name_lists_the_known_ones(void **state) {
    (void)state;
    static const char *const wrong[] = {"AVX2", "avx2 ", "avx", "sse", "avx512,amx", "reff"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pith_error error = {0};
        uint32_t out = 99;
        assert_int_equal(pith_cpu_limit(x86_all, wrong[i], &out, &error), PITH_ERROR_ARGUMENT);
        assert_int_equal(out, 0);
        assert_non_null(strstr(error.text, wrong[i]));
        assert_non_null(strstr(error.text, "ref avx2 avxvnni avx512 amx neon dotprod i8mm"));
    }
    char endless[4096];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    pith_error error = {0};
    uint32_t out;
    assert_int_equal(pith_cpu_limit(x86_all, endless, &out, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "ref avx2"));
}

static void test_missing_tier_is_refused(void **state) {
    (void)state;
    pith_error error = {0};
    uint32_t out = 99;
    pith_status status = pith_cpu_limit(PITH_CPU_AVX2 | PITH_CPU_AVX512, "amx", &out, &error);
    assert_int_equal(status, PITH_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "`amx`"));
    assert_non_null(strstr(error.text, "ref avx2 avx512"));
    assert_int_equal(pith_cpu_limit(PITH_CPU_NEON, "avx2", &out, NULL), PITH_ERROR_UNSUPPORTED);
}

static void test_text_fits_its_buffer(void **state) {
    (void)state;
    char text[32];
    pith_cpu_text(PITH_CPU_AVX2 | PITH_CPU_AVX512, text, sizeof text);
    assert_string_equal(text, "ref avx2 avx512");
    pith_cpu_text(0, text, sizeof text);
    assert_string_equal(text, "ref");
    for (size_t capacity = 0; capacity <= 16; capacity++) {
        memset(text, '#', sizeof text);
        pith_cpu_text(PITH_CPU_AVX2 | PITH_CPU_AVX512, text, capacity);
        const char *expected = capacity > 15  ? "ref avx2 avx512"
                               : capacity > 8 ? "ref avx2"
                               : capacity > 3 ? "ref"
                                              : "";
        if (capacity) assert_string_equal(text, expected);
        for (size_t i = capacity; i < sizeof text; i++) assert_int_equal(text[i], '#');
    }
}

static void test_environment_lowers_the_machine(void **state) {
    (void)state;
    uint32_t machine = pith_cpu_detect(), out = 99;
    set_tier("");
    assert_int_equal(pith_cpu_features(&out, NULL), PITH_OK);
    assert_int_equal(out, machine);
    set_tier("ref");
    assert_int_equal(pith_cpu_features(&out, NULL), PITH_OK);
    assert_int_equal(out, 0);
    set_tier("pentium");
    pith_error error = {0};
    assert_int_equal(pith_cpu_features(&out, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "PITH_CPU"));
    set_tier("");
}

static void test_detection_agrees_with_the_compiler(void **state) {
    (void)state;
#if defined(__x86_64__)
    uint32_t machine = pith_cpu_detect();
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512vnni");
    assert_int_equal((machine & PITH_CPU_AVX2) != 0, avx2);
    assert_int_equal((machine & PITH_CPU_AVX512) != 0, avx512);
    assert_int_equal(machine & (PITH_CPU_NEON | PITH_CPU_DOTPROD | PITH_CPU_I8MM), 0);
#else
    skip();
#endif
}

/* True when /proc/cpuinfo has `flag` as a word; *known false where there is no such list. */
static bool kernel_says(const char *flag, bool *known) {
    char line[8192], word[64];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    *known = false;
    while (file && !*known && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) != 0) continue;
        *known = true;
        char *end = strchr(line, '\n');
        if (end) *end = ' ';
        snprintf(word, sizeof word, " %s ", flag);
        found = strstr(line, word) != NULL;
    }
    if (file) fclose(file);
    return found;
}

static void test_detection_agrees_with_the_kernel(void **state) {
    (void)state;
#if !defined(__x86_64__)
    skip(); /* an emulator may show its host's list */
#endif
    bool known;
    bool vnni = kernel_says("avx_vnni", &known), avx512 = kernel_says("avx512_vnni", &known);
    bool amx = kernel_says("amx_int8", &known);
    if (!known) skip();
    uint32_t machine = pith_cpu_detect();
    assert_int_equal((machine & PITH_CPU_AVXVNNI) != 0, vnni);
    assert_int_equal((machine & PITH_CPU_AVX512) != 0, avx512);
    if (!amx) assert_int_equal(machine & PITH_CPU_AMX, 0);
    assert_int_equal(pith_cpu_detect(), machine); /* asking twice changes nothing */
}

static void test_model_is_named(void **state) {
    (void)state;
    char text[128], small[6];
    pith_cpu_model(text, sizeof text);
    assert_true(strlen(text) > 0);
    assert_true(text[0] != ' ' && text[strlen(text) - 1] != ' ');
    memset(small, '#', sizeof small);
    pith_cpu_model(small, 5);
    assert_memory_equal(small, text, strlen(text) < 4 ? strlen(text) : 4);
    assert_true(memchr(small, 0, 5) != NULL);
    assert_int_equal(small[5], '#');
    pith_cpu_model(small, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_keeps_what_a_tier_includes),
        cmocka_unit_test(test_no_name_leaves_the_machine),
        cmocka_unit_test(test_unknown_name_lists_the_known_ones),
        cmocka_unit_test(test_missing_tier_is_refused),
        cmocka_unit_test(test_text_fits_its_buffer),
        cmocka_unit_test(test_environment_lowers_the_machine),
        cmocka_unit_test(test_detection_agrees_with_the_compiler),
        cmocka_unit_test(test_detection_agrees_with_the_kernel),
        cmocka_unit_test(test_model_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
