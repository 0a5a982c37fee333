/* SPDX-License-Identifier: Apache-2.0
 * Times of steps (pace.h): running means, new ones weighing an eighth, so that they follow a
 * deepening context and a machine that slows down. Numbers of rows not seen yet are estimated
 * from their neighbours: times grow with rows, at most in proportion. */
#include "engine/pace.h"

static const double new_weight = 0.125;
/* Of T(1), for one more row, before two numbers of rows were seen: the usual growth where memory
 * bounds decoding. */
static const double first_slope = 0.12;

static void blend(double *mean, double value) {
    /* A step that was held up (another process, a page fault) says nothing: it counts as twice. */
    if (*mean > 0 && value > 2 * *mean) value = 2 * *mean;
    *mean = *mean > 0 ? *mean + new_weight * (value - *mean) : value;
}

void pith_pace_add(pith_pace *pace, uint32_t n_made, uint32_t n_read, double ns) {
    if (n_read == 0 && n_made <= PITH_PACE_ROWS) {
        blend(&pace->ns[n_made], ns);
        return;
    }
    double base = n_made > 0 ? pith_pace_ns(pace, n_made) : 0;
    if (n_read > 0 && ns > base) blend(&pace->row_ns, (ns - base) / n_read);
}

double pith_pace_ns(const pith_pace *pace, uint32_t n) {
    if (n == 0) return 0;
    uint32_t below = 0, above = 0;
    for (uint32_t i = 1; i <= PITH_PACE_ROWS; i++) {
        if (pace->ns[i] <= 0) continue;
        if (i <= n) below = i;
        if (i >= n && !above) above = i;
    }
    if (below == n) return pace->ns[n];
    if (below && above) {
        double share = (double)(n - below) / (above - below);
        return pace->ns[below] + share * (pace->ns[above] - pace->ns[below]);
    }
    if (above) {
        return pace->ns[above] * (1 + first_slope * (n - 1)) / (1 + first_slope * (above - 1));
    }
    if (!below) return 0;
    /* Beyond all that was seen: on from the last two, or with the usual slope. */
    double slope = first_slope * pace->ns[below] / (1 + first_slope * (below - 1));
    for (uint32_t i = below; i-- > 1;) {
        if (pace->ns[i] <= 0) continue;
        double seen = (pace->ns[below] - pace->ns[i]) / (below - i);
        if (seen > slope) slope = seen;
        break;
    }
    return pace->ns[below] + slope * (n - below);
}

uint32_t pith_pace_rows(const pith_pace *pace, uint32_t n_made, uint32_t least) {
    double base = pith_pace_ns(pace, n_made);
    if (base <= 0 || pace->row_ns <= 0) return least;
    double rows = base / pace->row_ns;
    return rows > 65536 ? 65536 : rows < least ? least : (uint32_t)rows;
}
