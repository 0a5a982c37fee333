/* SPDX-License-Identifier: Apache-2.0
 * One line on stderr, redrawn, for work that takes longer than a second: share done and time left.
 * Silent when stderr is not a terminal.
 * Invariant: after pith_cli_progress_end the line is gone and stays away, so that nothing else is
 * overwritten by it. */
#include "base/clock.h"
#include "pith/cli.h"

enum { FIRST_SHOWN_NS = 1000 * 1000 * 1000, REDRAW_NS = 100 * 1000 * 1000 };

pith_cli_progress pith_cli_progress_start(const char *what) {
    return (pith_cli_progress){
        .what = what, .start_ns = pith_clock_ns(), .quiet = !pith_cli_is_terminal(stderr)};
}

int pith_cli_progress_step(void *user, double fraction) {
    pith_cli_progress *progress = user;
    uint64_t now = pith_clock_ns();
    if (progress->quiet || now - progress->start_ns < FIRST_SHOWN_NS ||
        now - progress->shown_ns < REDRAW_NS)
        return 0;
    double spent = (double)(now - progress->start_ns) * 1e-9;
    fprintf(stderr, "\r\033[K%s: %3.0f %%", progress->what, fraction * 100);
    if (fraction > 0.02) fprintf(stderr, ", %.0f s left", spent / fraction - spent);
    fflush(stderr);
    progress->shown_ns = now;
    progress->shown = true;
    return 0;
}

void pith_cli_progress_end(pith_cli_progress *progress) {
    if (progress->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->shown = false;
    progress->quiet = true;
}
