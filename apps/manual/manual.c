/* SPDX-License-Identifier: Apache-2.0
 * pith-manual FOLDER <help.jsonl: writes pages into FOLDER/man and FOLDER/complete/{pith, _pith,
 * pith.fish}. Folders exist. Ends with status 1 and a sentence when anything is missing.
 * Read next: manual_page.c, completion.c. */
#include "manual/manual.h"

#include <stdio.h>
#include <string.h>

enum { LINE_LIMIT = 1 << 18 };

const char *manual_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

manual_value manual_value_of(const json_t *option) {
    const char *kind = manual_text(option, "kind"), *value = manual_text(option, "value");
    if (strcmp(kind, "flag") == 0) return MANUAL_NONE;
    if (strcmp(kind, "choice") == 0) return MANUAL_CHOICE;
    if (strncmp(value, "MODEL", 5) == 0) return MANUAL_MODEL;
    if (strstr(value, "FILE") || strstr(value, "ADAPTER")) return MANUAL_FILE;
    if (strncmp(value, "DIR", 3) == 0) return MANUAL_FOLDER;
    return MANUAL_ANY;
}

void manual_append_choices(pith_buffer *out, const json_t *option) {
    for (const char *at = manual_text(option, "value"); *at; at++)
        pith_buffer_append(out, *at == '|' ? " " : at, 1);
}

static bool read_line(manual *m, const char *line) {
    json_t *json = json_loads(line, 0, NULL);
    if (!json_is_object(json)) {
        json_decref(json);
        return false;
    }
    if (m->program) return json_array_append_new(m->commands, json) == 0;
    m->program = json;
    return true;
}

static bool read_help(manual *m) {
    static char line[LINE_LIMIT];
    m->commands = json_array();
    while (fgets(line, sizeof line, stdin))
        if (!read_line(m, line)) return false;
    return json_array_size(m->commands) > 0;
}

static bool write_file(const char *folder, const char *name, pith_buffer *text) {
    pith_buffer path = {0};
    pith_buffer_append_format(&path, "%s/%s", folder, name);
    FILE *file = path.failed || text->failed ? NULL : fopen(path.data, "wb");
    bool ok = file && fwrite(text->data, 1, text->size, file) == text->size;
    if (file && fclose(file) != 0) ok = false;
    if (!ok) fprintf(stderr, "pith-manual: %s/%s cannot be written\n", folder, name);
    pith_buffer_deinit(&path);
    pith_buffer_deinit(text);
    return ok;
}

static bool write_pages(const manual *m, const char *folder) {
    pith_buffer text = {0};
    json_t *command;
    size_t i;
    manual_page_program(m, &text);
    bool ok = write_file(folder, "man/pith.1", &text);
    json_array_foreach(m->commands, i, command) {
        char name[80];
        snprintf(name, sizeof name, "man/pith-%.40s.1", manual_text(command, "name"));
        manual_page_command(m, command, &text);
        ok = write_file(folder, name, &text) && ok;
    }
    return ok;
}

static bool write_completions(const manual *m, const char *folder) {
    pith_buffer text = {0};
    manual_complete_bash(m, &text);
    bool ok = write_file(folder, "complete/pith", &text);
    manual_complete_zsh(m, &text);
    ok = write_file(folder, "complete/_pith", &text) && ok;
    manual_complete_fish(m, &text);
    return write_file(folder, "complete/pith.fish", &text) && ok;
}

int main(int argc, char **argv) {
    manual m = {NULL, NULL};
    if (argc != 2) return fprintf(stderr, "usage: pith-manual FOLDER <help.jsonl\n"), 2;
    bool ok = read_help(&m);
    if (!ok) fprintf(stderr, "pith-manual: standard input is not what `pith help --json` tells\n");
    ok = ok && write_pages(&m, argv[1]) && write_completions(&m, argv[1]);
    json_decref(m.program);
    json_decref(m.commands);
    return ok ? 0 : 1;
}
