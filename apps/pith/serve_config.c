/* SPDX-License-Identifier: Apache-2.0
 * The effective options of `pith serve`. Sources are read from the strongest to the weakest; each
 * fills only options that have none yet.
 * Invariant: what no option is named by is refused, in the file with its line, in the environment
 * with its name; nothing is skipped in silence. */
#include "pith/serve_config.h"

#include "base/memory.h"
#include "pith/option_value.h"

#include <string.h>

enum { FILE_LIMIT = 1 << 20, NAME_LIMIT = 80 };

#define PREFIX "PITH_SERVE_"

static int find_option(const pith_cli_command *command, const char *name) {
    for (size_t i = 0; i < command->n_options; i++)
        if (strcmp(command->options[i].name, name) == 0) return (int)i;
    return -1;
}

/* A copy that lives as long as the config; NULL without memory. */
static const char *keep(pith_serve_config *c, const char *text, size_t size) {
    json_t *copy = pith_cli_json_text(text, size);
    if (json_array_append_new(c->kept, copy) != 0) return NULL;
    return json_string_value(copy);
}

/* ---- The environment ---- */

static void variable_of(const char *option, char out[NAME_LIMIT]) {
    int n = snprintf(out, NAME_LIMIT, PREFIX "%s", option);
    for (int i = 0; i < n && i < NAME_LIMIT; i++) {
        if (out[i] >= 'a' && out[i] <= 'z') out[i] = (char)(out[i] - 'a' + 'A');
        if (out[i] == '-') out[i] = '_';
    }
}

/* Lists have commas between their items. */
static bool read_items(pith_serve_config *c, const pith_cli_option *option, const char *value,
                       pith_error *error) {
    for (const char *at = value; *at;) {
        size_t size = option->kind == PITH_CLI_LIST ? strcspn(at, ",") : strlen(at);
        const char *item = keep(c, at, size);
        if (!item) return pith_fail_memory(error, "the options", size), false;
        if (size > 0 && !pith_cli_option_read(option, item, error)) return false;
        at += size + (at[size] == ',');
    }
    return true;
}

static int read_variable(pith_serve_config *c, size_t at) {
    const pith_cli_option *option = &c->command->options[at];
    char name[NAME_LIMIT];
    pith_error error = {0};
    variable_of(option->name, name);
    char *value = pith_cli_variable(name);
    if (!value) return -1;
    c->sources[at] = PITH_SERVE_VARIABLE;
    bool ok = read_items(c, option, value, &error);
    pith_free(value);
    return ok ? -1 : pith_cli_usage(c->command, "the variable %s: %s", name, error.text);
}

/* A variable whose name is nearly right would do nothing. */
static bool check_variable(void *user, const char *name) {
    const pith_cli_command *command = user;
    char known[NAME_LIMIT];
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) return true;
    for (size_t i = 0; i < command->n_options; i++) {
        variable_of(command->options[i].name, known);
        if (strcmp(known, name) == 0) return true;
    }
    pith_cli_usage(command, "the variable %.100s names no option of serve", name);
    return false;
}

static int read_variables(pith_serve_config *c) {
    if (!pith_cli_each_variable(check_variable, (void *)(uintptr_t)c->command))
        return PITH_EXIT_USAGE;
    for (size_t i = 0; i < c->command->n_options; i++) {
        int code = c->sources[i] ? -1 : read_variable(c, i);
        if (code >= 0) return code;
    }
    return -1;
}

/* ---- The file ---- */

/* The line of a key of the outermost object, in text that is valid JSON; 0: not found (it has
 * escapes). */
static int line_of(const char *text, const char *key) {
    int line = 1, depth = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '\n') line++;
        if (*at == '{' || *at == '[') depth++;
        if (*at == '}' || *at == ']') depth--;
        if (*at != '"') continue;
        const char *begin = ++at;
        while (*at && *at != '"') at += *at == '\\' && at[1] ? 2 : 1;
        size_t size = (size_t)(at - begin);
        const char *after = *at ? at + 1 : at;
        after += strspn(after, " \t\r\n");
        if (depth == 1 && *after == ':' && strlen(key) == size && memcmp(begin, key, size) == 0)
            return line;
        if (!*at) break;
    }
    return 0;
}

static int fail_line(const pith_serve_config *c, int line, const char *text) {
    if (line > 0) return pith_cli_usage(c->command, "%s, line %d: %s", c->path, line, text);
    return pith_cli_usage(c->command, "%s: %s", c->path, text);
}

/* Numbers and booleans as they would stand on the command line. */
static const char *text_of(pith_serve_config *c, json_t *value) {
    char text[64];
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_boolean(value)) return json_is_true(value) ? "true" : "false";
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else
        snprintf(text, sizeof text, "%.17g", json_real_value(value));
    return keep(c, text, strlen(text));
}

/* Whether a value of this JSON type may stand for the option. */
static bool fits(const pith_cli_option *option, const json_t *value) {
    switch (option->kind) {
    case PITH_CLI_FLAG: return json_is_boolean(value);
    case PITH_CLI_INT:
    case PITH_CLI_FLOAT:
    case PITH_CLI_SEED: return json_is_number(value);
    case PITH_CLI_SIZE: return json_is_integer(value) || json_is_string(value);
    default: return json_is_string(value);
    }
}

static const char *wanted_type(const pith_cli_option *option) {
    switch (option->kind) {
    case PITH_CLI_FLAG: return "true or false";
    case PITH_CLI_INT:
    case PITH_CLI_FLOAT:
    case PITH_CLI_SEED: return "a number";
    case PITH_CLI_SIZE: return "a number of bytes or a text such as \"2G\"";
    case PITH_CLI_LIST: return "a text or a list of texts";
    default: return "a text";
    }
}

static int read_value(pith_serve_config *c, size_t at, json_t *value, int line) {
    const pith_cli_option *option = &c->command->options[at];
    char wrong[160];
    pith_error error = {0};
    if (!fits(option, value)) {
        snprintf(wrong, sizeof wrong, "\"%s\" must be %s", option->name, wanted_type(option));
        return fail_line(c, line, wrong);
    }
    const char *text = text_of(c, value);
    if (!text) return pith_cli_fail_text("out of memory");
    return pith_cli_option_read(option, text, &error) ? -1 : fail_line(c, line, error.text);
}

static int read_member(pith_serve_config *c, const char *key, json_t *value) {
    int line = line_of(c->text.data, key), at = find_option(c->command, key), code = -1;
    bool is_none = at < 0 || strcmp(key, "config") == 0 || strcmp(key, "print-config") == 0;
    if (is_none) {
        char wrong[200];
        snprintf(wrong, sizeof wrong, "there is no option \"%.100s\"", key);
        return fail_line(c, line, wrong);
    }
    bool is_list = c->command->options[at].kind == PITH_CLI_LIST && json_is_array(value);
    if (c->sources[at]) return -1; /* a stronger source has it */
    c->sources[at] = PITH_SERVE_FILE;
    c->lines[at] = line;
    if (!is_list) return read_value(c, (size_t)at, value, line);
    for (size_t i = 0; i < json_array_size(value) && code < 0; i++)
        code = read_value(c, (size_t)at, json_array_get(value, i), line);
    return code;
}

static int read_file(pith_serve_config *c) {
    pith_error error = {0};
    json_error_t wrong = {0};
    const char *key;
    json_t *value;
    if (!pith_cli_read_file(c->path, FILE_LIMIT, &c->text, &error)) return pith_cli_fail(&error);
    pith_span text = {c->text.data ? c->text.data : "", c->text.size};
    if (text.size >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0) /* some editors put it there */
        text = (pith_span){text.data + 3, text.size - 3};
    json_t *json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &wrong);
    if (!json) return fail_line(c, wrong.line, wrong.text);
    json_array_append_new(c->kept, json);
    if (!json_is_object(json)) return fail_line(c, 1, "the file must hold one JSON object");
    json_object_foreach(json, key, value) {
        int code = read_member(c, key, value);
        if (code >= 0) return code;
    }
    return -1;
}

/* ---- All ---- */

int pith_serve_config_read(pith_serve_config *c, const pith_cli_command *command, int argc,
                           char **argv, const char *const *path) {
    c->command = command;
    c->kept = json_array();
    if (!c->kept) return pith_cli_fail_text("out of memory");
    int code = pith_cli_parse_given(command, argc, argv, c->sources);
    if (code < 0) code = read_variables(c);
    c->path = *path;
    if (code < 0 && c->path) code = read_file(c);
    return code;
}

void pith_serve_config_release(pith_serve_config *c) {
    json_decref(c->kept);
    pith_buffer_deinit(&c->text);
}

static json_t *value_of(const pith_cli_option *option) {
    const pith_cli_list *list = option->target;
    const char *text;
    json_t *out;
    switch (option->kind) {
    case PITH_CLI_FLAG: return json_boolean(*(const bool *)option->target);
    case PITH_CLI_TEXT:
        text = *(const char *const *)option->target;
        return text ? pith_cli_json_string(text) : json_null();
    case PITH_CLI_INT: return json_integer(*(const int32_t *)option->target);
    case PITH_CLI_FLOAT: return json_real((double)*(const float *)option->target);
    case PITH_CLI_SIZE:
    case PITH_CLI_SEED: return json_integer((json_int_t) * (const uint64_t *)option->target);
    case PITH_CLI_CHOICE:
        text = option->value;
        for (int i = 0; i < *(const int *)option->target; i++) text = strchr(text, '|') + 1;
        return json_stringn(text, strcspn(text, "|"));
    case PITH_CLI_LIST:
        out = json_array();
        for (size_t i = 0; i < list->n; i++)
            json_array_append_new(out, pith_cli_json_string(list->items[i]));
        return out;
    }
    return NULL;
}

static json_t *source_of(const pith_serve_config *c, size_t at) {
    const pith_cli_option *option = &c->command->options[at];
    char name[NAME_LIMIT];
    switch (c->sources[at]) {
    case PITH_SERVE_FLAG: return json_sprintf("--%s", option->name);
    case PITH_SERVE_VARIABLE: variable_of(option->name, name); return json_string(name);
    case PITH_SERVE_FILE:
        snprintf(name, sizeof name, ":%d", c->lines[at]);
        pith_buffer text = {0};
        pith_buffer_append_format(&text, "%s%s", c->path, name);
        json_t *out = pith_cli_json_string(text.data ? text.data : "");
        pith_buffer_deinit(&text);
        return out;
    default: return json_string("default");
    }
}

int pith_serve_config_print(const pith_serve_config *c, json_t *secrets) {
    json_t *values = json_object(), *from = json_object();
    for (size_t i = 0; i < c->command->n_options; i++) {
        const pith_cli_option *option = &c->command->options[i];
        if (strcmp(option->name, "config") == 0 || strcmp(option->name, "print-config") == 0)
            continue;
        json_t *value = value_of(option);
        json_object_set_new(from, option->name, source_of(c, i));
        if (json_is_null(value)) continue; /* so that the object is a file of --config */
        json_object_set_new(values, option->name, value);
    }
    json_t *all = json_pack("{s:o, s:o, s:o}", "config", values, "from", from, "secrets", secrets);
    if (pith_cli_json_failed() || !all) {
        json_decref(all);
        return pith_cli_fail_text("out of memory");
    }
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(all);
    fputc('\n', stdout);
    return pith_cli_finish();
}
