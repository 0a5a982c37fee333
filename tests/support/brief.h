/* SPDX-License-Identifier: Apache-2.0
 * For tests: whether repetition is left out. An emulator of another processor computes a float a
 * hundred times slower than the processor does, so there each kind of case is run once; the other
 * builds, which run the same source, run all of them. */
#ifndef PITH_TESTS_BRIEF_H
#define PITH_TESTS_BRIEF_H

#include <stdbool.h>
#include <stdlib.h>

/* PITH_TEST_BRIEF is set by tests/CMakeLists.txt where the toolchain says so. */
static inline bool test_is_brief(void) {
    const char *brief = getenv("PITH_TEST_BRIEF");
    return brief && brief[0] == '1';
}

#endif
