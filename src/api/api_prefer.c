/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Preferences": one goal, all settings. The choices are a table; why they are these, and
 * which settings were tried and gain nothing, is in docs/decisions/0069. Pure: nothing here looks
 * at the machine. Read next: src/backend/thread_choice.c. */
#include "api/api_argument.h"

#include <stdio.h>

/* Of the best reading rate: what fewer threads must still give to decode with them. */
static const double enough_to_save = 0.75;

typedef struct goal {
    pith_load load;
    pith_kv_type kv_type;
    pith_draft draft;
    bool saves_threads;
    const char *why;
} goal;

static const goal goals[] = {
    [PITH_PREFER_NONE] = {.why = ""},
    [PITH_PREFER_TTFT] = {.load = PITH_LOAD_MMAP,
                          .why = "the file is used in place: the first token comes without "
                                 "packing, all tokens are slower"},
    [PITH_PREFER_TPS] = {.draft = PITH_DRAFT_AUTO,
                         .why = "weights are packed where memory allows it, tokens are guessed "
                                "ahead"},
    [PITH_PREFER_MEMORY] = {.load = PITH_LOAD_MMAP,
                            .kv_type = PITH_KV_INT8,
                            .why = "the file is used in place, KV takes half: tokens are slower, "
                                   "long contexts a little less exact"},
    [PITH_PREFER_BATTERY] = {.draft = PITH_DRAFT_AUTO,
                             .saves_threads = true,
                             .why = "tokens are guessed ahead, and threads that memory keeps "
                                    "waiting are left out where a probe is known"},
};

/* The smallest number of threads that reads enough; 0: unknown. */
static int32_t thrifty_threads(const pith_thread_probe *probe) {
    double best = 0;
    size_t n = probe ? probe->n : 0;
    if (n > PITH_THREAD_RATES) n = PITH_THREAD_RATES;
    for (size_t i = 0; i < n; i++)
        if (probe->rates[i].bandwidth > best) best = probe->rates[i].bandwidth;
    for (size_t i = 0; i < n && best > 0; i++)
        if (probe->rates[i].bandwidth >= best * enough_to_save) return probe->rates[i].n_threads;
    return 0;
}

pith_status pith_prefer_choose(pith_prefer prefer, const pith_thread_probe *probe,
                               pith_preference *out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_preference){.load = PITH_LOAD_AUTO};
    if ((unsigned)prefer >= sizeof goals / sizeof goals[0])
        return pith_fail(error, PITH_ERROR_ARGUMENT, "prefer %d is no preference", (int)prefer);
    const goal *g = &goals[prefer];
    out->load = g->load;
    out->kv_type = g->kv_type;
    out->draft = g->draft;
    out->decode_threads = g->saves_threads ? thrifty_threads(probe) : 0;
    snprintf(out->why, sizeof out->why, "%s", g->why);
    return PITH_OK;
}
