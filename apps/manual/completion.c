/* SPDX-License-Identifier: Apache-2.0
 * Completions for bash, zsh and fish: commands, options, the values of options that have a list of
 * them, files, folders, and models by the names that `pith list` shows.
 * Invariant: words of help are quoted for the shell that reads them. */
#include "manual/manual.h"

#include <string.h>

/* Inside of single quotes; `also` names characters that get a backslash (zsh's _arguments). */
static void append_quoted(pith_buffer *out, const char *text, const char *also) {
    for (; *text; text++) {
        if (*text == '\'')
            pith_buffer_append_text(out, "'\\''");
        else if (*text == '\n')
            pith_buffer_append(out, " ", 1);
        else if (also[0] && strchr(also, *text))
            pith_buffer_append_format(out, "\\%c", *text);
        else
            pith_buffer_append(out, text, 1);
    }
}

static void append_names(const manual *m, pith_buffer *out) {
    json_t *command;
    size_t i;
    json_array_foreach(m->commands, i, command) {
        pith_buffer_append_format(out, "%s%s", i ? " " : "", manual_text(command, "name"));
    }
}

/* ---- bash ---- */

static void bash_value(const json_t *command, const json_t *option, pith_buffer *out) {
    static const char *const how[] = {[MANUAL_ANY] = "none",
                                      [MANUAL_FILE] = "files",
                                      [MANUAL_FOLDER] = "folders",
                                      [MANUAL_MODEL] = "models"};
    const char *name = manual_text(command, "name"), *letter = manual_text(option, "letter");
    manual_value value = manual_value_of(option);
    if (value == MANUAL_NONE) return;
    pith_buffer_append_format(out, "    \"%s --%s\"", name, manual_text(option, "name"));
    if (letter[0]) pith_buffer_append_format(out, " | \"%s -%s\"", name, letter);
    pith_buffer_append_text(out, ")");
    if (value == MANUAL_CHOICE) {
        pith_buffer_append_text(out, " words='");
        manual_append_choices(out, option);
        pith_buffer_append_text(out, "' ;;\n");
    } else {
        pith_buffer_append_format(out, " kind=%s ;;\n", how[value]);
    }
}

static void bash_options(const json_t *command, pith_buffer *out) {
    json_t *option;
    size_t i;
    pith_buffer_append_format(out, "        %s) words='", manual_text(command, "name"));
    json_array_foreach(json_object_get(command, "options"), i, option) {
        pith_buffer_append_format(out, "--%s ", manual_text(option, "name"));
    }
    pith_buffer_append_text(out, "--help' ;;\n");
}

void manual_complete_bash(const manual *m, pith_buffer *out) {
    json_t *command, *option;
    size_t i, j;
    pith_buffer_append_text(
        out, "# bash completion of pith, made from `pith help --json`\n"
             "_pith() {\n"
             "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
             "    local name=${COMP_WORDS[1]} words='' kind=files\n"
             "    COMPREPLY=()\n"
             "    if [ \"$cur\" = = ]; then\n"
             "        cur=''\n"
             "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
             "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
             "    fi\n"
             "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$COMP_CWORD\" -eq 2 ] && [ \"$name\" = "
             "help ]; }; then\n"
             "        COMPREPLY=($(compgen -W '");
    append_names(m, out);
    pith_buffer_append_text(out, " help --help --version' -- \"$cur\"))\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    case \"$name $prev\" in\n");
    json_array_foreach(m->commands, i, command) {
        json_array_foreach(json_object_get(command, "options"), j, option) {
            bash_value(command, option, out);
        }
    }
    pith_buffer_append_text(out, "    *)\n"
                                 "        case \"$cur\" in\n"
                                 "        -*) case \"$name\" in\n");
    json_array_foreach(m->commands, i, command) {
        bash_options(command, out);
    }
    pith_buffer_append_text(
        out,
        "            esac ;;\n"
        "        esac ;;\n"
        "    esac\n"
        "    if [ -n \"$words\" ]; then\n"
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "        return\n"
        "    fi\n"
        "    case \"$kind\" in\n"
        "    none) return ;;\n"
        "    models) COMPREPLY=($(compgen -W \"$(pith list 2>/dev/null | awk '{print $1}')\" -- "
        "\"$cur\")) ;;\n"
        "    esac\n"
        "    local found flag=-f\n"
        "    [ \"$kind\" = folders ] && flag=-d\n"
        "    while IFS= read -r found; do COMPREPLY+=(\"$found\"); done < <(compgen $flag -- "
        "\"$cur\")\n"
        "    compopt -o filenames 2>/dev/null\n"
        "}\n"
        "complete -F _pith pith\n");
}

/* ---- zsh ---- */

static void zsh_option(const json_t *option, pith_buffer *out) {
    const char *name = manual_text(option, "name"), *letter = manual_text(option, "letter");
    manual_value value = manual_value_of(option);
    bool repeats = strcmp(manual_text(option, "kind"), "list") == 0;
    pith_buffer_append_text(out, "        ");
    if (repeats && letter[0])
        pith_buffer_append_format(out, "'*'{-%s,--%s}", letter, name);
    else if (repeats)
        pith_buffer_append_format(out, "'*--%s'", name);
    else if (letter[0])
        pith_buffer_append_format(out, "'(-%s --%s)'{-%s,--%s}", letter, name, letter, name);
    else
        pith_buffer_append_format(out, "'--%s'", name);
    pith_buffer_append_text(out, "'[");
    append_quoted(out, manual_text(option, "help"), "[]:\\");
    pith_buffer_append_text(out, "]");
    if (value != MANUAL_NONE) {
        pith_buffer_append_text(out, ":");
        append_quoted(out, value == MANUAL_CHOICE ? name : manual_text(option, "value"), "[]:\\");
        pith_buffer_append_text(out, ":");
    }
    if (value == MANUAL_CHOICE) {
        pith_buffer_append_text(out, "(");
        manual_append_choices(out, option);
        pith_buffer_append_text(out, ")");
    }
    if (value == MANUAL_FILE) pith_buffer_append_text(out, "_files");
    if (value == MANUAL_FOLDER) pith_buffer_append_text(out, "_files -/");
    if (value == MANUAL_MODEL) pith_buffer_append_text(out, "_pith_models");
    pith_buffer_append_text(out, "' \\\n");
}

void manual_complete_zsh(const manual *m, pith_buffer *out) {
    json_t *command, *option;
    size_t i, j;
    pith_buffer_append_text(out,
                            "#compdef pith\n"
                            "# made from `pith help --json`\n"
                            "_pith_models() {\n"
                            "    local -a names\n"
                            "    names=(${(f)\"$(pith list 2>/dev/null | awk '{print $1}')\"})\n"
                            "    _alternative 'models:model:compadd -a names' 'files:file:_files'\n"
                            "}\n"
                            "_pith() {\n"
                            "    local -a commands\n"
                            "    commands=(\n");
    json_array_foreach(m->commands, i, command) {
        pith_buffer_append_format(out, "        '%s:", manual_text(command, "name"));
        append_quoted(out, manual_text(command, "short"), ":\\");
        pith_buffer_append_text(out, "'\n");
    }
    pith_buffer_append_text(out, "    )\n"
                                 "    if (( CURRENT == 2 )); then\n"
                                 "        _describe command commands\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    local name=$words[2]\n"
                                 "    shift words\n"
                                 "    (( CURRENT-- ))\n"
                                 "    case $name in\n");
    json_array_foreach(m->commands, i, command) {
        pith_buffer_append_format(out, "    %s) _arguments \\\n", manual_text(command, "name"));
        json_array_foreach(json_object_get(command, "options"), j, option) {
            zsh_option(option, out);
        }
        pith_buffer_append_text(out, "        '(-h --help)'{-h,--help}'[show the options]' \\\n"
                                     "        '*:file:_files' ;;\n");
    }
    pith_buffer_append_text(out, "    esac\n}\n_pith \"$@\"\n");
}

/* ---- fish ---- */

static void fish_option(const json_t *command, const json_t *option, pith_buffer *out) {
    const char *letter = manual_text(option, "letter");
    manual_value value = manual_value_of(option);
    pith_buffer_append_format(out, "complete -c pith -n '__fish_seen_subcommand_from %s' -l %s",
                              manual_text(command, "name"), manual_text(option, "name"));
    if (letter[0]) pith_buffer_append_format(out, " -s %s", letter);
    if (value == MANUAL_FILE || value == MANUAL_FOLDER || value == MANUAL_MODEL)
        pith_buffer_append_text(out, " -r -F");
    else if (value != MANUAL_NONE)
        pith_buffer_append_text(out, " -x");
    if (value == MANUAL_MODEL) pith_buffer_append_text(out, " -a '(__pith_models)'");
    if (value == MANUAL_CHOICE) {
        pith_buffer_append_text(out, " -a '");
        manual_append_choices(out, option);
        pith_buffer_append_text(out, "'");
    }
    pith_buffer_append_text(out, " -d '");
    for (const char *at = manual_text(option, "help"); *at; at++)
        pith_buffer_append_format(out, strchr("'\\", *at) ? "\\%c" : "%c", *at);
    pith_buffer_append_text(out, "'\n");
}

void manual_complete_fish(const manual *m, pith_buffer *out) {
    json_t *command, *option;
    size_t i, j;
    pith_buffer_append_text(out, "# fish completion of pith, made from `pith help --json`\n"
                                 "function __pith_models\n"
                                 "    pith list 2>/dev/null | awk '{print $1}'\n"
                                 "end\n");
    json_array_foreach(m->commands, i, command) {
        pith_buffer_append_format(out, "complete -c pith -f -n __fish_use_subcommand -a %s -d '",
                                  manual_text(command, "name"));
        for (const char *at = manual_text(command, "short"); *at; at++)
            pith_buffer_append_format(out, strchr("'\\", *at) ? "\\%c" : "%c", *at);
        pith_buffer_append_text(out, "'\n");
    }
    json_array_foreach(m->commands, i, command) {
        json_array_foreach(json_object_get(command, "options"), j, option) {
            fish_option(command, option, out);
        }
    }
}
