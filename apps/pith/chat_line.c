/* SPDX-License-Identifier: Apache-2.0
 * Line input of `pith chat`: libedit on a terminal (editing, history kept in $PITH_HOME/history),
 * plain reading
 * otherwise. */
#include "base/memory.h"
#include "pith/chat.h"

#include <stdlib.h>
#include <string.h>
#if PITH_WITH_LIBEDIT
#include <editline/readline.h>
#include <unistd.h>
#endif

enum { HISTORY_LINES = 1000 };

#if PITH_WITH_LIBEDIT
static char *history_path(void) {
    char *folder = pith_cli_models_folder();
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) *slash = 0; /* beside the models folder */
    pith_buffer path = {0};
    if (folder) pith_buffer_append_format(&path, "%s/history", folder);
    char *text = path.failed || !path.data ? NULL : pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    pith_free(folder);
    return text;
}
#endif

void pith_chat_lines_open(pith_chat_lines *lines) {
    *lines = (pith_chat_lines){0};
#if PITH_WITH_LIBEDIT
    lines->terminal = isatty(0) && isatty(1);
    if (!lines->terminal) return;
    using_history();
    stifle_history(HISTORY_LINES);
    lines->history = history_path();
    if (lines->history) read_history(lines->history);
#endif
}

void pith_chat_lines_close(pith_chat_lines *lines) {
#if PITH_WITH_LIBEDIT
    if (lines->terminal && lines->history) write_history(lines->history);
#endif
    pith_free(lines->history);
    *lines = (pith_chat_lines){0};
}

/* One line without its newline appended to *out; false at the end of input. */
static bool read_plain(pith_buffer *out) {
    char block[4096];
    bool any = false;
    while (fgets(block, sizeof block, stdin)) {
        any = true;
        size_t size = strlen(block);
        bool ended = size > 0 && block[size - 1] == '\n';
        pith_buffer_append(out, block, ended ? size - 1 : size);
        if (ended) break;
    }
    return any;
}

static bool read_line(pith_chat_lines *lines, const char *prompt, pith_buffer *out) {
#if PITH_WITH_LIBEDIT
    if (lines->terminal) {
        char *line = readline(prompt);
        if (!line) return false;
        if (line[0]) add_history(line);
        pith_buffer_append_text(out, line);
        free(line);
        return true;
    }
#endif
    (void)lines;
    (void)prompt;
    return read_plain(out);
}

char *pith_chat_lines_read(pith_chat_lines *lines, const char *prompt) {
    pith_buffer text = {0};
    bool more = read_line(lines, prompt, &text);
    bool any = more;
    while (more && text.size && text.data[text.size - 1] == '\\') {
        text.data[text.size - 1] = '\n';
        more = read_line(lines, "... ", &text);
    }
    char *result =
        any && !text.failed ? pith_copy_text(text.data ? text.data : "", text.size) : NULL;
    pith_buffer_deinit(&text);
    return result;
}
