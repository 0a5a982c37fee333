/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads and gates on Windows. A gate is WaitOnAddress, looked up at run time (its import library
 * is missing in some toolchains, the function before Windows 8); else a lock and a condition.
 *
 * Invariant of a gate: as in os_thread.c, the word changes before anyone is woken and a sleeper
 * compares it after it is known to those who wake.
 *
 * Cores are counted within the process's group: at most 64.
 * Read next: pool.c.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0602

#include "base/os.h"

#include "base/machine.h"
#include "base/memory.h"

#include <process.h>
#include <windows.h>

static unsigned __stdcall thread_main(void *argument) {
    pith_os_thread_start *start = argument;
    start->function(start->user, start->thread);
    return 0;
}

bool pith_os_thread_open(pith_os_thread *thread, pith_os_thread_start *start) {
    thread->handle = _beginthreadex(NULL, 0, thread_main, start, 0, NULL);
    return thread->handle != 0;
}

void pith_os_thread_join(pith_os_thread *thread) {
    WaitForSingleObject((HANDLE)thread->handle, INFINITE);
    CloseHandle((HANDLE)thread->handle);
}

int pith_os_cpu_affinity(void) {
    DWORD_PTR ours = 0, all = 0;
    int count = 0;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)) return 1;
    for (; ours; ours &= ours - 1) count++;
    return count > 0 ? count : 1;
}

size_t pith_machine_second_cache(void) {
    return 0;
}

/* One record a core; the largest EfficiencyClass is the fastest. It is the byte after Flags, which
 * older headers have no name for. */
int pith_os_cores(const char *root) {
    DWORD_PTR ours = 0, all = 0;
    DWORD size = 0;
    int count = 0;
    BYTE fastest = 0;
    (void)root;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)) return 0;
    (void)GetLogicalProcessorInformationEx(RelationProcessorCore, NULL, &size);
    uint8_t *records = size ? pith_alloc(size) : NULL;
    if (!records) return 0;
    if (!GetLogicalProcessorInformationEx(RelationProcessorCore, (void *)records, &size)) size = 0;
    for (DWORD at = 0; at < size;) {
        const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *record = (const void *)(records + at);
        BYTE class = (&record->Processor.Flags)[1];
        at += record->Size;
        if (!(record->Processor.GroupMask[0].Mask & ours) || class < fastest) continue;
        count = class > fastest ? 1 : count + 1;
        fastest = class;
    }
    pith_free(records);
    return count;
}

typedef BOOL(WINAPI *wait_on_address)(volatile VOID *, PVOID, SIZE_T, DWORD);
typedef VOID(WINAPI *wake_by_address)(PVOID);

typedef struct gate_calls {
    wait_on_address wait; /* both NULL before Windows 8: then the lock is used */
    wake_by_address wake;
    SRWLOCK lock;
    CONDITION_VARIABLE changed;
} gate_calls;

static void find_calls(gate_calls *calls) {
    HMODULE library = GetModuleHandleW(L"kernelbase.dll");
    if (!library) return;
    void *wait = (void *)GetProcAddress(library, "WaitOnAddress");
    void *wake = (void *)GetProcAddress(library, "WakeByAddressAll");
    if (!wait || !wake) return;
    calls->wait = (wait_on_address)wait;
    calls->wake = (wake_by_address)wake;
}

bool pith_os_gate_init(pith_os_gate *gate) {
    atomic_init(&gate->word, 0);
    gate_calls *calls = pith_alloc_zero(1, sizeof *calls);
    gate->fallback = calls;
    if (!calls) return false;
    InitializeSRWLock(&calls->lock);
    InitializeConditionVariable(&calls->changed);
    find_calls(calls);
    return true;
}

void pith_os_gate_deinit(pith_os_gate *gate) {
    pith_free(gate->fallback);
    gate->fallback = NULL;
}

void pith_os_gate_wait(pith_os_gate *gate, uint32_t seen) {
    gate_calls *calls = gate->fallback;
    if (calls->wait) {
        (void)calls->wait((volatile VOID *)&gate->word, &seen, sizeof seen, INFINITE);
        return;
    }
    AcquireSRWLockExclusive(&calls->lock);
    while (atomic_load(&gate->word) == seen) {
        SleepConditionVariableSRW(&calls->changed, &calls->lock, INFINITE, 0);
    }
    ReleaseSRWLockExclusive(&calls->lock);
}

void pith_os_gate_wake(pith_os_gate *gate) {
    gate_calls *calls = gate->fallback;
    if (calls->wait) {
        atomic_fetch_add(&gate->word, 1);
        calls->wake((PVOID)&gate->word);
        return;
    }
    AcquireSRWLockExclusive(&calls->lock);
    atomic_fetch_add(&gate->word, 1);
    WakeAllConditionVariable(&calls->changed);
    ReleaseSRWLockExclusive(&calls->lock);
}

#else
typedef int pith_os_thread_windows_is_elsewhere;
#endif
