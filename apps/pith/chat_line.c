/* SPDX-License-Identifier: Apache-2.0
 * Line input of `pith chat`: libedit on a terminal (editing, history kept in $PITH_HOME/history),
 * plain reading otherwise.
 * Invariant: the terminal is in its usual mode whenever pith_chat_lines_read is not running, and
 * when a signal ends the program within it. A history that cannot be kept is no failure. Lines are
 * UTF-8 whatever the locale says.
 * Read next: chat.c. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE /* POSIX and BSD names under -std=c11 */
#endif

#include "base/memory.h"
#include "pith/chat_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LIMIT = 64 << 20 };

#if PITH_WITH_LIBEDIT

#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

enum { HISTORY_LINES = 1000 };

/* Set by signal handlers while a line is read. */
static volatile sig_atomic_t interrupted, continued, resized;
static volatile sig_atomic_t ending; /* the signal that asks the program to end */

static void on_signal(int signal_number) {
    if (signal_number == SIGINT)
        interrupted = 1;
    else if (signal_number == SIGCONT)
        continued = 1;
    else if (signal_number == SIGWINCH)
        resized = 1;
    else
        ending = signal_number;
}

/* What the editor is told when its reading was broken off by a signal. */
static void after_signal(EditLine *editor) {
    if (resized) el_resize(editor);
    if (continued) el_set(editor, EL_PREP_TERM, 1);
    if (resized || continued) el_set(editor, EL_REFRESH);
    resized = continued = 0;
}

/* The next byte of the terminal: 1, 0 at its end or the program's, -1 when Ctrl-C was typed. */
static int read_byte(EditLine *editor, char *out) {
    for (;;) {
        if (interrupted) return -1;
        if (ending) return 0;
        ssize_t n = read(STDIN_FILENO, out, 1);
        if (n >= 0) return (int)n;
        if (errno != EINTR) return 0;
        after_signal(editor);
    }
}

/* libedit's EL_GETCFN: one character, decoded here so that no locale is needed for it. */
static int read_character(EditLine *editor, wchar_t *out) {
    char bytes[4];
    size_t n = 0;
    uint32_t code = PITH_UTF8_INVALID;
    do {
        int got = read_byte(editor, bytes + n);
        if (got <= 0) return got;
        n++;
    } while (n < 4 && pith_utf8_incomplete(bytes, n) == n);
    bool whole = pith_utf8_decode(bytes, n, &code) == n && code != PITH_UTF8_INVALID;
    *out = whole ? (wchar_t)code : (wchar_t)0xFFFD;
    return 1;
}

static bool goes_on; /* the line continues one that ended with a backslash */

static char *prompt_text(EditLine *editor) {
    static char first[] = "> ", next[] = "... ";
    (void)editor;
    return goes_on ? next : first;
}

static void open_history(pith_chat_lines *lines) {
    HistEvent event;
    char *home = pith_cli_home_folder();
    pith_buffer path = {0};
    if (home) pith_buffer_append_format(&path, "%s/history", home);
    if (home && !path.failed && pith_cli_make_folders(home) == 0)
        lines->history_path = pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    pith_free(home);
    History *kept = history_init();
    lines->history = kept;
    if (!kept) return;
    history(kept, &event, H_SETSIZE, HISTORY_LINES);
    history(kept, &event, H_SETUNIQUE, 1);
    if (lines->history_path) history(kept, &event, H_LOAD, lines->history_path);
    el_set(lines->editor, EL_HIST, history, kept);
}

static void open_editor(pith_chat_lines *lines) {
    /* The editor writes through the locale; any that is UTF-8 will do. */
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX < 4) setlocale(LC_CTYPE, "C.UTF-8");
    EditLine *editor = el_init("pith", stdin, stdout, stderr);
    lines->editor = editor;
    if (!editor) return;
    el_set(editor, EL_PROMPT, prompt_text);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_SIGNAL, 0);
    el_set(editor, EL_GETCFN, read_character);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    open_history(lines);
    el_source(editor, NULL); /* the user's ~/.editrc */
}

/* Adds one line to the kept history, which is read anew because another chat may have added to it.
 * Written beside it and put in its place whole, so that no end of the program halves it. */
static bool keep_line(const char *path, const char *line) {
    HistEvent event;
    pith_buffer part = {0};
    History *kept = history_init();
    if (!kept) return false;
    history(kept, &event, H_SETSIZE, HISTORY_LINES);
    history(kept, &event, H_SETUNIQUE, 1);
    history(kept, &event, H_LOAD, path);
    pith_buffer_append_format(&part, "%s.%ld.part", path, (long)getpid());
    bool ok = !part.failed && history(kept, &event, H_ENTER, line) >= 0 &&
              history(kept, &event, H_SAVE, part.data) >= 0 && rename(part.data, path) == 0;
    if (!ok && !part.failed) (void)remove(part.data);
    history_end(kept);
    pith_buffer_deinit(&part);
    return ok;
}

static void enter_line(pith_chat_lines *lines, const char *line) {
    HistEvent event;
    if (!lines->history) return;
    history(lines->history, &event, H_ENTER, line);
    if (!lines->history_path || keep_line(lines->history_path, line)) return;
    fprintf(stderr, "note: the history could not be kept in %s\n", lines->history_path);
    pith_free(lines->history_path); /* told once */
    lines->history_path = NULL;
}

static void close_editor(pith_chat_lines *lines) {
    if (lines->history) history_end(lines->history);
    if (lines->editor) el_end(lines->editor);
    if (ending) raise(ending); /* the terminal is as it was: end as asked */
}

/* Handlers of ours while a line is read; the old ones come back afterwards. */
static const int watched[] = {SIGINT, SIGCONT, SIGWINCH, SIGTERM, SIGHUP};
enum { N_WATCHED = sizeof watched / sizeof watched[0] };

static void watch_signals(struct sigaction old[N_WATCHED]) {
    struct sigaction ours = {.sa_handler = on_signal}; /* no SA_RESTART: reading is broken off */
    sigemptyset(&ours.sa_mask);
    interrupted = continued = resized = 0;
    for (size_t i = 0; i < N_WATCHED; i++) {
        sigaction(watched[i], &ours, &old[i]);
        if (old[i].sa_handler == SIG_IGN) sigaction(watched[i], &old[i], NULL); /* nohup */
    }
}

static void unwatch_signals(const struct sigaction old[N_WATCHED]) {
    for (size_t i = 0; i < N_WATCHED; i++) sigaction(watched[i], &old[i], NULL);
}

typedef enum edit_result { EDIT_LINE, EDIT_END, EDIT_INTERRUPTED } edit_result;

static edit_result edit_line(pith_chat_lines *lines, pith_buffer *out) {
    struct sigaction old[N_WATCHED];
    int n = 0;
    watch_signals(old);
    el_set(lines->editor, EL_PREP_TERM, 1); /* before the prompt invites to type */
    const char *line = el_gets(lines->editor, &n);
    unwatch_signals(old);
    if (interrupted || ending || !line || n <= 0) {
        fputc('\n', stdout);
        fflush(stdout);
        return interrupted ? EDIT_INTERRUPTED : EDIT_END;
    }
    size_t size = (size_t)n;
    if (size > 1) enter_line(lines, line);
    if (line[size - 1] == '\n') size--;
    pith_buffer_append(out, line, size);
    return EDIT_LINE;
}

#endif

void pith_chat_lines_open(pith_chat_lines *lines) {
    *lines = (pith_chat_lines){0};
    lines->terminal = pith_cli_is_terminal(stdin) && pith_cli_is_terminal(stdout);
#if PITH_WITH_LIBEDIT
    if (lines->terminal) open_editor(lines);
#endif
}

void pith_chat_lines_close(pith_chat_lines *lines) {
#if PITH_WITH_LIBEDIT
    close_editor(lines);
#endif
    pith_free(lines->history_path);
    *lines = (pith_chat_lines){0};
}

/* Appends a line without its end; false at the end of input and when reading failed. */
static bool read_plain(pith_chat_lines *lines, pith_buffer *out) {
    int c;
    bool any = false;
    while ((c = getc(stdin)) != EOF) {
        any = true;
        if (c == '\n') break;
        char byte = (char)c;
        if (c == 0)
            pith_buffer_append_text(out, "\xEF\xBF\xBD");
        else
            pith_buffer_append(out, &byte, 1);
        if (out->size > LINE_LIMIT) {
            pith_cli_fail_text("a line of input is longer than %d bytes, the limit", LINE_LIMIT);
            lines->failed = true;
            return false;
        }
    }
    if (c == EOF && ferror(stdin)) {
        pith_cli_fail_text("standard input could not be read: %s", strerror(errno));
        lines->failed = true;
        return false;
    }
    if (any && out->size && out->data[out->size - 1] == '\r') out->data[--out->size] = 0;
    return any;
}

/* The whole input of one turn into *out. */
static bool read_turn(pith_chat_lines *lines, pith_buffer *out) {
    bool more = true, any = false;
    while (more) {
#if PITH_WITH_LIBEDIT
        goes_on = any;
        edit_result result = lines->editor            ? edit_line(lines, out)
                             : read_plain(lines, out) ? EDIT_LINE
                                                      : EDIT_END;
        if (result == EDIT_INTERRUPTED) {
            pith_buffer_reset(out);
            any = false;
            continue;
        }
        if (result == EDIT_END) return any && !lines->failed && !ending;
#else
        if (!read_plain(lines, out)) return any && !lines->failed;
#endif
        any = true;
        more = out->size && out->data[out->size - 1] == '\\';
        if (more) out->data[out->size - 1] = '\n';
    }
    return any;
}

char *pith_chat_lines_read(pith_chat_lines *lines) {
    pith_buffer text = {0};
    char *result = NULL;
    if (read_turn(lines, &text)) {
        result = text.failed ? NULL : pith_copy_text(text.data ? text.data : "", text.size);
        if (!result) pith_cli_fail_text("out of memory for a line of input");
        lines->failed = !result;
    }
    pith_buffer_deinit(&text);
    return result;
}
