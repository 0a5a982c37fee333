/* SPDX-License-Identifier: Apache-2.0
 * Ctrl-C: the first one stops the running reply (its text is kept), the second one within it ends
 * the program. */
#include "pith/cli.h"

#include <signal.h>

/* A signal handler can only reach file scope; these are the program's, not the library's. */
static pith_session *volatile watched;
static volatile sig_atomic_t n_interrupts;

static void on_interrupt(int signal_number) {
    pith_session *session = watched;
    n_interrupts = n_interrupts + 1;
    if (session && n_interrupts == 1) {
        pith_session_cancel(session);
        return;
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void pith_cli_interrupt_watch(pith_session *session) {
    watched = session;
    n_interrupts = 0;
    signal(SIGINT, session ? on_interrupt : SIG_DFL);
}

bool pith_cli_interrupted(void) {
    bool was = n_interrupts > 0;
    n_interrupts = 0;
    return was;
}
