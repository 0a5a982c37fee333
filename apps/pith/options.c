/* SPDX-License-Identifier: Apache-2.0
 * Command line options from one table per command: parsing, --help, and sentences for what is
 * wrong. `--name value`, `--name=value` and `-n value` are understood; `--` ends the options.
 * Numbers are checked whole. */
#include "base/memory.h"
#include "pith/near_word.h"
#include "pith/option_value.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int pith_cli_fail(const pith_error *error) {
    const char *text = error->text[0] ? error->text : pith_status_text(error->status);
    fputs("pith: ", stderr);
    pith_cli_print_clean(stderr, text, strlen(text), SIZE_MAX);
    fputc('\n', stderr);
    return PITH_EXIT_FAILURE;
}

int pith_cli_fail_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("pith: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return PITH_EXIT_FAILURE;
}

int pith_cli_usage(const pith_cli_command *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("pith: ", stderr);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nUsage: %s  (--help tells more)\n", command->usage);
    va_end(args);
    return PITH_EXIT_USAGE;
}

/* Of the command whose help is told as JSON; NULL: it is told as text. */
static const char *short_line;

void pith_cli_help_json(const char *summary) {
    short_line = summary;
}

static void print_help_json(const pith_cli_command *command) {
    static const char *const kinds[] = {
        [PITH_CLI_FLAG] = "flag",     [PITH_CLI_TEXT] = "text", [PITH_CLI_INT] = "number",
        [PITH_CLI_FLOAT] = "number",  [PITH_CLI_SIZE] = "size", [PITH_CLI_SEED] = "number",
        [PITH_CLI_CHOICE] = "choice", [PITH_CLI_LIST] = "list"};
    const char *name = strchr(command->usage, ' ') + 1;
    json_t *options = json_array();
    for (size_t i = 0; i < command->n_options; i++) {
        const pith_cli_option *o = &command->options[i];
        json_t *one = json_pack("{s:s, s:s, s:s, s:s}", "name", o->name, "kind", kinds[o->kind],
                                "value", o->value, "help", o->help);
        if (o->letter) json_object_set_new(one, "letter", json_stringn(&o->letter, 1));
        json_array_append_new(options, one);
    }
    pith_cli_print_json(json_pack("{s:s%, s:s, s:s, s:s, s:s*, s:o}", "name", name,
                                  strcspn(name, " "), "short", short_line, "usage", command->usage,
                                  "summary", command->summary, "more", command->more, "options",
                                  options));
}

enum { HELP_COLUMN = 34 };

/* A name that leaves its sentence no room stands on a line of its own. */
static void print_option(const char *name, const char *help) {
    bool is_long = strlen(name) > HELP_COLUMN;
    if (is_long) printf("  %s\n", name);
    printf("  %-*s %s\n", HELP_COLUMN, is_long ? "" : name, help);
}

static void print_help(const pith_cli_command *command) {
    if (short_line) {
        print_help_json(command);
        return;
    }
    printf("%s\n\nUsage: %s\n\n", command->summary, command->usage);
    for (size_t i = 0; i < command->n_options; i++) {
        const pith_cli_option *option = &command->options[i];
        char left[128];
        snprintf(left, sizeof left, "%c%c%s --%s%s%s", option->letter ? '-' : ' ',
                 option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name,
                 option->kind == PITH_CLI_FLAG ? "" : " ",
                 option->kind == PITH_CLI_FLAG ? "" : option->value);
        print_option(left, option->help);
    }
    print_option("-h, --help", "this text");
    if (command->more) printf("\n%s\n", command->more);
}

static const pith_cli_option *find_option(const pith_cli_command *command, const char *word,
                                          size_t size) {
    for (size_t i = 0; i < command->n_options; i++) {
        const pith_cli_option *option = &command->options[i];
        if (word[1] == '-') {
            if (strlen(option->name) == size - 2 && memcmp(option->name, word + 2, size - 2) == 0)
                return option;
        } else if (size == 2 && option->letter == word[1]) {
            return option;
        }
    }
    return NULL;
}

static bool read_number(const char *text, double *out) {
    char *end = NULL;
    errno = 0;
    *out = strtod(text, &end);
    return end != text && *end == 0 && fabs(*out) <= DBL_MAX;
}

static bool read_u64(const char *text, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0;
}

static bool read_size(const char *text, uint64_t *out) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || !(value >= 0 && value <= DBL_MAX)) return false;
    double unit = 1;
    if (*end == 'k' || *end == 'K') unit = 1024;
    if (*end == 'm' || *end == 'M') unit = 1024.0 * 1024;
    if (*end == 'g' || *end == 'G') unit = 1024.0 * 1024 * 1024;
    if (unit > 1) end++;
    if (*end == 'i') end++;
    if (*end == 'B' || *end == 'b') end++;
    if (*end != 0 || value * unit >= 9.2e18) return false; /* 2^63: JSON has signed numbers */
    *out = (uint64_t)(value * unit);
    return *out > 0 || value <= 0; /* less than a byte is not "no limit" */
}

static bool fail(pith_error *error, const char *format, ...) PITH_PRINTF(2, 3);

static bool fail(pith_error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    error->status = PITH_ERROR_ARGUMENT;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return false;
}

static int choice_index(const char *choices, const char *text) {
    size_t size = strlen(text);
    int index = 0;
    for (const char *at = choices; *at; index++) {
        const char *bar = strchr(at, '|');
        size_t n = bar ? (size_t)(bar - at) : strlen(at);
        if (n == size && memcmp(at, text, n) == 0) return index;
        at += n + (bar ? 1 : 0);
    }
    return -1;
}

static bool append_value(const pith_cli_option *option, const char *value, pith_error *error) {
    pith_cli_list *list = option->target;
    if (list->n == PITH_CLI_LIST_MAX)
        return fail(error, "--%s may be given %d times", option->name, PITH_CLI_LIST_MAX);
    list->items[list->n++] = value;
    return true;
}

static bool read_bounded(const pith_cli_option *option, const char *value, pith_error *error) {
    bool is_int = option->kind == PITH_CLI_INT;
    double number;
    if (!read_number(value, &number) || (is_int && number != floor(number)))
        return fail(error, "--%s needs a %s, not '%.200s'", option->name,
                    is_int ? "whole number" : "number", value);
    if (number < option->min || number > option->max)
        return fail(error, "--%s must be between %.10g and %.10g, not %.100s", option->name,
                    option->min, option->max, value);
    if (is_int)
        *(int32_t *)option->target = (int32_t)number;
    else
        *(float *)option->target = (float)number;
    return true;
}

static bool read_flag(const pith_cli_option *option, const char *value, pith_error *error) {
    bool yes = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    if (!yes && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
        return fail(error, "--%s is true or false, not '%.100s'", option->name, value);
    *(bool *)option->target = yes;
    return true;
}

bool pith_cli_option_read(const pith_cli_option *option, const char *value, pith_error *error) {
    switch (option->kind) {
    case PITH_CLI_FLAG: return read_flag(option, value, error);
    case PITH_CLI_TEXT: *(const char **)option->target = value; return true;
    case PITH_CLI_INT:
    case PITH_CLI_FLOAT: return read_bounded(option, value, error);
    case PITH_CLI_SIZE:
        if (read_size(value, option->target)) return true;
        return fail(error, "--%s needs a size such as 800M or 2G, not '%.200s'", option->name,
                    value);
    case PITH_CLI_SEED:
        if (read_u64(value, option->target)) return true;
        return fail(error, "--%s needs a number from 0 to 2^64-1, not '%.200s'", option->name,
                    value);
    case PITH_CLI_CHOICE:
        *(int *)option->target = choice_index(option->value, value);
        if (*(int *)option->target >= 0) return true;
        return fail(error, "--%s is one of %s, not '%.200s'", option->name, option->value, value);
    case PITH_CLI_LIST: return append_value(option, value, error);
    }
    return false;
}

/* Stores the value; -1 or the usage exit code. */
static int store(const pith_cli_command *command, const pith_cli_option *option,
                 const char *value) {
    pith_error error = {0};
    if (pith_cli_option_read(option, value, &error)) return -1;
    return pith_cli_usage(command, "%s", error.text);
}

static int refuse_option(const pith_cli_command *command, const char *word, size_t size) {
    pith_cli_near near;
    pith_cli_near_init(&near, word, size);
    for (size_t i = 0; i < command->n_options; i++)
        pith_cli_near_offer(&near, command->options[i].name);
    return pith_cli_usage(command, "unknown option '%.*s'%s%s%s", (int)size, word,
                          near.best ? "; did you mean --" : "", near.best ? near.best : "",
                          near.best ? "?" : "");
}

/* Handles argv[*at] (an option), moving *at over its value. */
static int take_option(const pith_cli_command *command, int argc, char **argv, int *at,
                       unsigned char *given) {
    const char *word = argv[*at];
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t size = equals ? (size_t)(equals - word) : strlen(word);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(command);
        return pith_cli_finish();
    }
    const pith_cli_option *option = find_option(command, word, size);
    if (!option) return refuse_option(command, word, size);
    if (given) given[option - command->options] = 1;
    if (option->kind == PITH_CLI_FLAG) {
        if (equals) return pith_cli_usage(command, "--%s takes no value", option->name);
        return store(command, option, "true");
    }
    const char *value = equals ? equals + 1 : NULL;
    if (!value) {
        if (*at + 1 >= argc)
            return pith_cli_usage(command, "--%s needs a value: %s", option->name, option->value);
        value = argv[++*at];
    }
    return store(command, option, value);
}

static int parse(const pith_cli_command *command, int argc, char **argv, const char **words,
                 int *n_words, unsigned char *given) {
    bool only_words = false;
    *n_words = 0;
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        if (only_words || word[0] != '-' || word[1] == 0) {
            words[(*n_words)++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_words = true;
        } else {
            int code = take_option(command, argc, argv, &at, given);
            if (code >= 0) return code;
        }
    }
    return -1;
}

int pith_cli_parse(const pith_cli_command *command, int argc, char **argv, const char **words,
                   int *n_words) {
    return parse(command, argc, argv, words, n_words, NULL);
}

/* A word where only options may be. */
static int refuse_word(const pith_cli_command *command, const char *word) {
    if (find_option(command, "--model", strlen("--model")))
        return pith_cli_usage(command, "'%s' belongs to no option; a model is given by -m %s", word,
                              word);
    return pith_cli_usage(command, "'%s' belongs to no option", word);
}

int pith_cli_parse_given(const pith_cli_command *command, int argc, char **argv,
                         unsigned char *given) {
    const char **words = pith_alloc_array((size_t)argc, sizeof *words);
    if (!words) return pith_cli_fail_text("out of memory");
    int n_words = 0;
    int code = parse(command, argc, argv, words, &n_words, given);
    if (code < 0 && n_words > 0) code = refuse_word(command, words[0]);
    pith_free(words);
    return code;
}

int pith_cli_parse_alone(const pith_cli_command *command, int argc, char **argv) {
    return pith_cli_parse_given(command, argc, argv, NULL);
}
