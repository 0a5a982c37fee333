/* SPDX-License-Identifier: Apache-2.0
 * The sampling options, the same for every command that makes text. What they mean is said in
 * pith.h at pith_sampler_options. */
#include "pith/cli.h"

#include <string.h>

void pith_cli_sampler_options(pith_sampler_options *values,
                              pith_cli_option out[PITH_CLI_SAMPLER_OPTIONS]) {
    const pith_cli_option options[PITH_CLI_SAMPLER_OPTIONS] = {
        {"temp", 0, PITH_CLI_FLOAT, &values->temperature, "T",
         "temperature (default: 0, always the likeliest token)", 0, 100},
        {"top-k", 0, PITH_CLI_INT, &values->top_k, "K",
         "sample from the K likeliest tokens (default: off)", 0, 1 << 24},
        {"top-p", 0, PITH_CLI_FLOAT, &values->top_p, "P",
         "sample from the likeliest tokens with sum P (default: off)", 0, 1},
        {"min-p", 0, PITH_CLI_FLOAT, &values->min_p, "P",
         "drop tokens below P times the likeliest (default: off)", 0, 1},
        {"repeat-penalty", 0, PITH_CLI_FLOAT, &values->repeat_penalty, "X",
         "weaken recent tokens (default: 1, off)", 0, 100},
        {"frequency-penalty", 0, PITH_CLI_FLOAT, &values->frequency_penalty, "X",
         "subtract X per recent use (default: 0)", -100, 100},
        {"presence-penalty", 0, PITH_CLI_FLOAT, &values->presence_penalty, "X",
         "subtract X once when used (default: 0)", -100, 100},
        {"seed", 0, PITH_CLI_SEED, &values->seed, "N",
         "the same seed gives the same draws (default: 0)", 0, 0},
    };
    values->size = sizeof *values;
    memcpy(out, options, sizeof options);
}
