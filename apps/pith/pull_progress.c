/* SPDX-License-Identifier: Apache-2.0
 * One redrawn line on stderr for a file that is being fetched. The speed is that of the last
 * seconds: half of its weight is younger than HALF_SECONDS. Silent when stderr is no terminal.
 * progress.c is for work whose speed does not change. */
#include "pith/pull_progress.h"

#include "base/clock.h"

#include <string.h>

enum { FIRST_SHOWN_NS = 500 * 1000 * 1000, REDRAW_NS = 200 * 1000 * 1000 };

static const double half_seconds = 3;

void pith_cli_bytes_text(uint64_t bytes, char *out, size_t capacity) {
    if (bytes >= 1000000000u)
        snprintf(out, capacity, "%.2f GB", (double)bytes * 1e-9);
    else
        snprintf(out, capacity, "%.1f MB", (double)bytes * 1e-6);
}

pith_cli_pull_progress pith_cli_pull_progress_start(const char *what) {
    return (pith_cli_pull_progress){
        .what = what, .start_ns = pith_clock_ns(), .quiet = !pith_cli_is_terminal(stderr)};
}

static void measure(pith_cli_pull_progress *progress, uint64_t now, uint64_t done) {
    double seconds = (double)(now - progress->looked_ns) * 1e-9;
    double latest = done > progress->looked ? (double)(done - progress->looked) / seconds : 0;
    double weight = seconds / (seconds + half_seconds);
    if (progress->speed <= 0) weight = 1;
    if (progress->begun) progress->speed += weight * (latest - progress->speed);
    progress->begun = true;
    progress->looked_ns = now;
    progress->looked = done;
}

static void print_left(double seconds) {
    if (seconds < 100)
        fprintf(stderr, ", %.0f s left", seconds);
    else if (seconds < 6000)
        fprintf(stderr, ", %.0f min left", seconds / 60);
    else
        fprintf(stderr, ", %.1f h left", seconds / 3600);
}

void pith_cli_pull_progress_step(pith_cli_pull_progress *progress, uint64_t done, uint64_t total) {
    char size[32], speed[32];
    uint64_t now = pith_clock_ns();
    if (progress->quiet || (progress->begun && now - progress->looked_ns < REDRAW_NS)) return;
    measure(progress, now, done);
    if (now - progress->start_ns < FIRST_SHOWN_NS) return;
    pith_cli_bytes_text(total == UINT64_MAX ? done : total, size, sizeof size);
    pith_cli_bytes_text((uint64_t)progress->speed, speed, sizeof speed);
    fputs("\r\033[K", stderr);
    pith_cli_print_clean(stderr, progress->what, strlen(progress->what), 60);
    if (total == UINT64_MAX)
        fprintf(stderr, ": %s, %s/s", size, speed);
    else
        fprintf(stderr, ": %3.0f %% of %s, %s/s", (double)done * 100 / (double)(total ? total : 1),
                size, speed);
    if (progress->waiting_ms > 1500)
        fprintf(stderr, ", trying again in %d s", (progress->waiting_ms + 999) / 1000);
    else if (progress->speed > 1 && total != UINT64_MAX && total > done)
        print_left((double)(total - done) / progress->speed);
    fflush(stderr);
    progress->shown = true;
}

void pith_cli_pull_progress_end(pith_cli_pull_progress *progress) {
    if (progress->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->shown = false;
    progress->quiet = true;
}
