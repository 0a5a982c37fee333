/* SPDX-License-Identifier: Apache-2.0
 *
 * What Windows says about the processor.
 *
 * Invariant: silence means no. Half arithmetic and I8MM are told since Windows 11 24H2; on older
 * systems an ARM processor is plain NEON to us. AMX must be switched on for the process.
 *
 * Read next: cpu.c; os_machine.c is the other body.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN

#include "base/machine.h"

#include <windows.h>

uint32_t pith_machine_arm(void) {
    uint32_t features = 0;
#if defined(__aarch64__)
    enum { DOTPROD = 43, I8MM = 66, FP16 = 67 }; /* winnt.h, PF_ARM_V82_..._AVAILABLE */
    features = PITH_MACHINE_ARM_SIMD;            /* part of the platform */
    if (IsProcessorFeaturePresent(DOTPROD)) features |= PITH_MACHINE_ARM_DOTPROD;
    if (IsProcessorFeaturePresent(FP16)) features |= PITH_MACHINE_ARM_FP16;
    if (IsProcessorFeaturePresent(I8MM)) features |= PITH_MACHINE_ARM_I8MM;
#endif
    return features;
}

bool pith_machine_permit_amx(void) {
    typedef BOOL(WINAPI * enable_features)(DWORD64);
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    void *address =
        kernel ? (void *)GetProcAddress(kernel, "EnableProcessOptionalXStateFeatures") : NULL;
    DWORD64 tile_config_and_data = (DWORD64)3 << 17;
    return address && ((enable_features)address)(tile_config_and_data);
}

void pith_machine_model(char *text, size_t capacity) {
    DWORD size = capacity < 4096 ? (DWORD)capacity : 4096;
    text[0] = 0;
    LSTATUS status =
        RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                     "ProcessorNameString", RRF_RT_REG_SZ, NULL, text, &size);
    if (status != ERROR_SUCCESS) text[0] = 0;
}

#else
typedef int pith_os_machine_windows_is_elsewhere;
#endif
