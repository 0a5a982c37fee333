/* SPDX-License-Identifier: Apache-2.0
 * Small text files of the system (/proc, /sys), for the os_*.c files alone. */
#ifndef PITH_BASE_OS_TEXT_H
#define PITH_BASE_OS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads at most capacity - 1 bytes, NUL-terminated; false when the file cannot be read or is
 * empty. */
bool pith_os_text_read(const char *path, char *text, size_t capacity);
/* The number after `key` at the start of a line ("MemTotal:   123 kB" -> 123); false when there
 * is none. */
bool pith_os_text_find(const char *text, const char *key, uint64_t *value);

#endif
