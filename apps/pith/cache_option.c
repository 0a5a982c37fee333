/* SPDX-License-Identifier: Apache-2.0
 * `--cache DIR|off`: where prompts that were read are kept, so that another start reads on from
 * there. On where nothing is said: prefix/ in the folder of everything that pith keeps. */
#include "base/memory.h"
#include "pith/cli.h"

#include <string.h>

pith_cli_option pith_cli_cache_option(pith_cli_model *values) {
    values->use_cache = true;
    return (pith_cli_option){"cache",
                             0,
                             PITH_CLI_TEXT,
                             &values->cache,
                             "DIR|off",
                             "folder that keeps prompts for the next start (default: on)",
                             0,
                             0};
}

char *pith_cli_cache_folder(const char *source) {
    if (source && (strcmp(source, "off") == 0 || !source[0])) return NULL;
    if (source) return pith_copy_text(source, strlen(source));
    char *home = pith_cli_home_folder();
    pith_buffer path = {0};
    if (home) pith_buffer_append_format(&path, "%s/prefix", home);
    char *folder = home && !path.failed ? pith_copy_text(path.data, path.size) : NULL;
    pith_buffer_deinit(&path);
    pith_free(home);
    return folder;
}

void pith_cli_cache_note(const pith_engine *engine) {
    const char *note = pith_engine_describe(engine).cache_note;
    if (!note[0]) return;
    fputs("note: ", stderr);
    pith_cli_print_clean(stderr, note, strlen(note), SIZE_MAX);
    fputc('\n', stderr);
}
