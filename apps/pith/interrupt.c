/* SPDX-License-Identifier: Apache-2.0
 * Signals. Ctrl-C: the first one stops the running reply (its text is kept), the second one within
 * it ends the program. SIGBUS: a mapped model file that was cut short becomes a sentence.
 * Ctrl-C while a line is typed is chat_line.c's. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE /* POSIX and BSD names under -std=c11 */
#endif

#include "pith/cli.h"

#include <signal.h>
#include <stdlib.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

/* A signal handler can only reach file scope; these are the program's, not the library's. */
static pith_session *const *volatile watched;
static pith_session *watched_one;
static volatile sig_atomic_t n_watched, n_interrupts;
static volatile sig_atomic_t is_counted; /* by work that looks at pith_cli_interrupted */

static void on_interrupt(int signal_number) {
    pith_session *const *sessions = watched;
    n_interrupts = n_interrupts + 1;
    if ((n_watched > 0 || is_counted) && n_interrupts == 1) {
        signal(signal_number, on_interrupt); /* some systems forget the handler */
        for (int i = 0; i < n_watched; i++) pith_session_cancel(sessions[i]);
        return;
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void pith_cli_interrupt_watch_all(pith_session *const *sessions, size_t n) {
    n_watched = 0;
    watched = sessions;
    n_watched = (sig_atomic_t)n;
    n_interrupts = 0;
    signal(SIGINT, n > 0 ? on_interrupt : SIG_DFL);
}

void pith_cli_interrupt_watch(pith_session *session) {
    n_watched = 0;
    watched_one = session;
    pith_cli_interrupt_watch_all(&watched_one, session ? 1 : 0);
}

void pith_cli_end_watch(pith_session *session) {
    pith_cli_interrupt_watch(session);
    static const int ends[] = {
        SIGTERM,
#if defined(SIGHUP)
        SIGHUP,
#endif
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (signal(ends[i], session ? on_interrupt : SIG_DFL) == SIG_IGN)
            signal(ends[i], SIG_IGN); /* nohup */
}

void pith_cli_interrupt_count(bool on) {
    n_interrupts = 0;
    is_counted = on;
    signal(SIGINT, on ? on_interrupt : SIG_DFL);
}

bool pith_cli_interrupted(void) {
    return is_counted && n_interrupts > 0;
}

#if defined(SIGBUS)
static void on_bus_error(int signal_number) {
    static const char text[] = "\npith: the model file was cut short or its disk failed while it "
                               "was in use (--load pack reads it into memory first)\n";
    (void)signal_number;
    ssize_t ignored = write(2, text, sizeof text - 1);
    (void)ignored;
    _exit(PITH_EXIT_FAILURE);
}
#endif

void pith_cli_watch_faults(void) {
#if defined(SIGBUS)
    signal(SIGBUS, on_bus_error);
#endif
}
