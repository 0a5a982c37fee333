/* SPDX-License-Identifier: Apache-2.0
 * The sampling options, the same for every command that makes text. What they mean is said in
 * pith.h at pith_sampler_options; here are their names, and --logit-bias, whose texts become ids
 * once the model is open. */
#include "base/memory.h"
#include "pith/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 11, PENALTIES = 9, MORE = 6 };
_Static_assert(CUTS + PENALTIES + MORE == PITH_CLI_SAMPLER_OPTIONS, "all options are copied");

static void fill_cuts(pith_sampler_options *o, pith_cli_option out[CUTS]) {
    const pith_cli_option options[CUTS] = {
        {"temp", 0, PITH_CLI_FLOAT, &o->temperature, "T",
         "temperature (default: 0, always the likeliest token)", 0, 100},
        {"dynatemp-range", 0, PITH_CLI_FLOAT, &o->dynamic_range, "X",
         "temperature from T-X to T+X by entropy (default: 0, off)", 0, 100},
        {"dynatemp-exp", 0, PITH_CLI_FLOAT, &o->dynamic_exponent, "X",
         "exponent of the entropy (default: 1)", 0, 100},
        {"top-k", 0, PITH_CLI_INT, &o->top_k, "K",
         "sample from the K likeliest tokens (default: off)", 0, 1 << 24},
        {"top-p", 0, PITH_CLI_FLOAT, &o->top_p, "P",
         "sample from the likeliest tokens with sum P (default: off)", 0, 1},
        {"min-p", 0, PITH_CLI_FLOAT, &o->min_p, "P",
         "drop tokens below P times the likeliest (default: off)", 0, 1},
        {"typical", 0, PITH_CLI_FLOAT, &o->typical_p, "P",
         "sample from the most typical tokens with sum P (default: off)", 0, 1},
        {"top-n-sigma", 0, PITH_CLI_FLOAT, &o->top_n_sigma, "N",
         "drop logits N deviations below the largest (default: off)", 0, 100},
        {"xtc-probability", 0, PITH_CLI_FLOAT, &o->xtc_probability, "P",
         "how often the top choices are excluded (default: 0, off)", 0, 1},
        {"xtc-threshold", 0, PITH_CLI_FLOAT, &o->xtc_threshold, "P",
         "probability of a top choice (default: 0.1)", 0, 1},
        {"samplers", 0, PITH_CLI_TEXT, &o->order, "A;B;..",
         "order of the stages, such as temperature;top_k;top_p", 0, 0},
    };
    memcpy(out, options, sizeof options);
}

static void fill_penalties(pith_cli_sampler *values, pith_cli_option out[PENALTIES]) {
    pith_sampler_options *o = &values->options;
    const pith_cli_option options[PENALTIES] = {
        {"repeat-penalty", 0, PITH_CLI_FLOAT, &o->repeat_penalty, "X",
         "weaken recent tokens (default: 1, off)", 0, 100},
        {"frequency-penalty", 0, PITH_CLI_FLOAT, &o->frequency_penalty, "X",
         "subtract X per recent use (default: 0)", -100, 100},
        {"presence-penalty", 0, PITH_CLI_FLOAT, &o->presence_penalty, "X",
         "subtract X once when used (default: 0)", -100, 100},
        {"penalty-window", 0, PITH_CLI_INT, &o->penalty_window, "N",
         "tokens that count as recent (default: 64)", 1, 1 << 24},
        {"dry-multiplier", 0, PITH_CLI_FLOAT, &o->dry_multiplier, "X",
         "weaken what repeats a passage (default: 0, off)", 0, 100},
        {"dry-base", 0, PITH_CLI_FLOAT, &o->dry_base, "X",
         "each further token counts X times as much (default: 1.75)", 1, 100},
        {"dry-allowed-length", 0, PITH_CLI_INT, &o->dry_allowed_length, "N",
         "tokens from which on a passage counts (default: 2)", 1, 1 << 24},
        {"dry-window", 0, PITH_CLI_INT, &o->dry_window, "N",
         "tokens in which it is looked for (default: 4096)", 1, 1 << 24},
        {"dry-sequence-breaker", 0, PITH_CLI_LIST, &values->breakers, "TEXT",
         "no passage goes across TEXT; repeatable, or none", 0, 0},
    };
    memcpy(out, options, sizeof options);
}

static void fill_more(pith_cli_sampler *values, pith_cli_option out[MORE]) {
    pith_sampler_options *o = &values->options;
    const pith_cli_option options[MORE] = {
        {"mirostat", 0, PITH_CLI_INT, &o->mirostat, "V",
         "keep the surprise steady, version 1 or 2 (default: 0, off)", 0, 2},
        {"mirostat-tau", 0, PITH_CLI_FLOAT, &o->mirostat_tau, "BITS", "the surprise (default: 5)",
         0.001, 100},
        {"mirostat-eta", 0, PITH_CLI_FLOAT, &o->mirostat_eta, "X",
         "how fast it is corrected (default: 0.1)", 0.0001, 1},
        {"logit-bias", 0, PITH_CLI_LIST, &values->biases, "TOKEN+B",
         "add B to a token's logit: 15043-inf, ' yes'+2; repeatable", 0, 0},
        {"ban", 0, PITH_CLI_LIST, &values->banned, "TEXT",
         "TEXT never appears in a reply; repeatable", 0, 0},
        {"seed", 0, PITH_CLI_SEED, &o->seed, "N", "the same seed gives the same draws (default: 0)",
         0, 0},
    };
    memcpy(out, options, sizeof options);
}

void pith_cli_sampler_options(pith_cli_sampler *values,
                              pith_cli_option out[PITH_CLI_SAMPLER_OPTIONS]) {
    values->options.size = sizeof values->options;
    fill_cuts(&values->options, out);
    fill_penalties(values, out + CUTS);
    fill_more(values, out + CUTS + PENALTIES);
}

/* ---- --ban ---- */

int pith_cli_check_sampler(const pith_cli_command *command, const pith_cli_sampler *values) {
    const pith_cli_list *banned = &values->banned;
    if (banned->n > PITH_BANNED_MAX)
        return pith_cli_usage(command, "--ban may be given %d times, not %zu", PITH_BANNED_MAX,
                              banned->n);
    for (size_t i = 0; i < banned->n; i++) {
        size_t size = strlen(banned->items[i]);
        if (size == 0 || size > PITH_BANNED_MAX_BYTES)
            return pith_cli_usage(command, "--ban needs a text of 1 to %d bytes, not of %zu",
                                  PITH_BANNED_MAX_BYTES, size);
    }
    return -1;
}

/* ---- --logit-bias ---- */

/* Where the number begins: the first sign from which on the rest is one. 0: there is none. */
static size_t find_number(const char *word, float *bias) {
    for (size_t at = 1; word[0] && word[at]; at++) {
        char *end = NULL;
        if (word[at] != '+' && word[at] != '-') continue;
        double value = strtod(word + at, &end);
        if (*end != 0 || end == word + at) continue;
        *bias = (float)value;
        bool is_ban = value <= -HUGE_VAL;
        return is_ban || fabs(value) <= 1e30 ? at : 0;
    }
    return 0;
}

static bool is_id(const char *word, size_t size, int32_t *id) {
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (word[i] < '0' || word[i] > '9') return false;
        if (value <= INT32_MAX) value = value * 10 + (word[i] - '0');
    }
    *id = value <= INT32_MAX ? (int32_t)value : INT32_MAX;
    return true;
}

/* The token that the text is; -1, or the exit code. */
static int find_token(const pith_cli_command *command, const pith_model *model, pith_span text,
                      int32_t *id) {
    pith_error error = {0};
    size_t n = 0;
    int32_t *ids = pith_cli_tokenize(model, text.data, text.size, 0, &n, &error);
    if (!ids) return pith_cli_fail(&error);
    *id = n == 1 ? ids[0] : -1;
    int code = -1;
    if (n != 1)
        code = pith_cli_usage(command,
                              "--logit-bias: '%.*s' is %zu tokens, not one: give ids (`pith "
                              "tokenize` tells them)",
                              text.size < 60 ? (int)text.size : 60, text.data, n);
    pith_free(ids);
    return code;
}

static int read_bias(const pith_cli_command *command, const pith_model *model, const char *word,
                     pith_logit_bias *out) {
    size_t size = find_number(word, &out->bias);
    if (size == 0)
        return pith_cli_usage(command,
                              "--logit-bias needs TOKEN+B or TOKEN-B, B a number (-inf bans the "
                              "token), not '%s'",
                              word);
    if (is_id(word, size, &out->id)) {
        int32_t n_vocab = pith_model_describe(model).n_vocab;
        if (out->id < n_vocab) return -1;
        return pith_cli_usage(command, "--logit-bias: id %.*s is outside the vocabulary of %d",
                              (int)size, word, (int)n_vocab);
    }
    bool is_quoted = size > 2 && word[0] == '"' && word[size - 1] == '"';
    pith_span text = {word, size};
    if (is_quoted) text = (pith_span){word + 1, size - 2};
    return find_token(command, model, text, &out->id);
}

int pith_cli_sampler_open(const pith_cli_command *command, const pith_cli_sampler *values,
                          const pith_model *model, pith_sampler **sampler) {
    pith_sampler_options options = values->options;
    pith_logit_bias biases[PITH_CLI_LIST_MAX];
    pith_error error = {0};
    for (size_t i = 0; i < values->biases.n; i++) {
        int code = read_bias(command, model, values->biases.items[i], &biases[i]);
        if (code >= 0) return code;
    }
    options.biases = biases;
    options.n_biases = values->biases.n;
    if (values->breakers.n > 0) {
        bool none = values->breakers.n == 1 && strcmp(values->breakers.items[0], "none") == 0;
        options.dry_breakers = values->breakers.items;
        options.n_dry_breakers = none ? 0 : values->breakers.n;
    }
    if (pith_sampler_new(model, &options, sampler, &error) == PITH_OK) return -1;
    return error.status == PITH_ERROR_ARGUMENT ? pith_cli_usage(command, "%s", error.text)
                                               : pith_cli_fail(&error);
}
