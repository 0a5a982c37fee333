/* SPDX-License-Identifier: Apache-2.0
 * One line on stderr, redrawn, for work that takes longer than a second: share done and time left.
 * Silent when stderr
 * is not a terminal or JSON was asked for. */
#include "base/clock.h"
#include "pith/cli.h"

#if defined(_WIN32)
#include <io.h>
#define STDERR_IS_TERMINAL() (_isatty(2) != 0)
#else
#include <unistd.h>
#define STDERR_IS_TERMINAL() (isatty(2) != 0)
#endif

pith_cli_progress pith_cli_progress_start(const char *what, bool quiet) {
    pith_cli_progress progress = {what, pith_clock_ns(), 0, false, quiet || !STDERR_IS_TERMINAL()};
    return progress;
}

int pith_cli_progress_step(void *user, double fraction) {
    pith_cli_progress *progress = user;
    uint64_t now = pith_clock_ns();
    if (progress->quiet || now - progress->start_ns < 1000000000u ||
        now - progress->shown_ns < 100000000u)
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
    if (progress->shown) fputs("\r\033[K", stderr);
    progress->shown = false;
}
