/* SPDX-License-Identifier: Apache-2.0
 *
 * What POSIX systems say about the processor: the auxiliary vector on Linux, sysctl on macOS.
 *
 * Invariant: an instruction set is reported only when the system says that programs may use it;
 * silence means no. It decides no tiers. Read next: cpu.c; os_machine_windows.c is the other
 * body.
 */
#if !defined(_WIN32)

#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _DARWIN_C_SOURCE
#define _BSD_SOURCE
#endif

#include "base/machine.h"

#include "base/os_text.h"

#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#if defined(__linux__) && defined(__aarch64__)

uint32_t pith_machine_arm(void) { /* bit numbers: Linux, Documentation/arch/arm64/elf_hwcaps.rst */
    unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    uint32_t features = 0;
    if (first >> 1 & 1) features |= PITH_MACHINE_ARM_SIMD;
    if ((first >> 9 & 1) && (first >> 10 & 1)) features |= PITH_MACHINE_ARM_FP16;
    if (first >> 20 & 1) features |= PITH_MACHINE_ARM_DOTPROD;
    if (second >> 13 & 1) features |= PITH_MACHINE_ARM_I8MM;
    return features;
}

#elif defined(__APPLE__) && defined(__aarch64__)

static bool has(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}

uint32_t pith_machine_arm(void) {
    uint32_t features = PITH_MACHINE_ARM_SIMD;
    if (has("hw.optional.arm.FEAT_FP16")) features |= PITH_MACHINE_ARM_FP16;
    if (has("hw.optional.arm.FEAT_DotProd")) features |= PITH_MACHINE_ARM_DOTPROD;
    if (has("hw.optional.arm.FEAT_I8MM")) features |= PITH_MACHINE_ARM_I8MM;
    return features;
}

#else

uint32_t pith_machine_arm(void) {
    return 0;
}

#endif

bool pith_machine_permit_amx(void) {
#if defined(__linux__) && defined(__x86_64__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* Linux, arch/x86/xstate.rst */
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

void pith_machine_model(char *text, size_t capacity) {
    text[0] = 0;
#if defined(__APPLE__)
    size_t size = capacity;
    if (sysctlbyname("machdep.cpu.brand_string", text, &size, NULL, 0) != 0) text[0] = 0;
    text[capacity - 1] = 0;
#elif defined(__linux__)
    if (!pith_os_text_read("/sys/firmware/devicetree/base/model", text, capacity)) text[0] = 0;
    text[strcspn(text, "\n")] = 0;
#endif
}

#else
typedef int pith_os_machine_is_elsewhere;
#endif
