/* SPDX-License-Identifier: Apache-2.0
 * For tests: whether repetition is left out, so that each kind of case is run once. So it is where
 * only what a build is for would be repeated: under an emulator, which computes a float a hundred
 * times slower than the processor does, under another system on the same processor, and under the
 * thread sanitizer. The plain build, which runs the same source, runs all of them. */
#ifndef PITH_TESTS_BRIEF_H
#define PITH_TESTS_BRIEF_H

#include <stdbool.h>
#include <stdlib.h>

/* PITH_TEST_BRIEF is set by tests/CMakeLists.txt where the toolchain or the preset says so. */
static inline bool test_is_brief(void) {
    const char *brief = getenv("PITH_TEST_BRIEF");
    return brief && brief[0] == '1';
}

#endif
