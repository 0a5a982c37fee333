/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the small text files in which Linux tells about itself. On other systems the files are
 * absent and every question is answered with false, which callers take as "unknown".
 *
 * Read next: os_cgroup.c and os_clock.c, which ask.
 */
#include "base/os_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pith_os_text_read(const char *path, char *text, size_t capacity) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t size = fread(text, 1, capacity - 1, file);
    fclose(file);
    text[size] = 0;
    return size > 0;
}

bool pith_os_text_find(const char *text, const char *key, uint64_t *value) {
    size_t key_size = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, key_size) != 0) continue;
        const char *at = line + key_size;
        while (*at == ' ' || *at == '\t' || *at == ':') at++;
        if (*at < '0' || *at > '9') return false;
        *value = strtoull(at, NULL, 10);
        return true;
    }
    return false;
}
