/* SPDX-License-Identifier: Apache-2.0
 * What output.c asks of the operating system: os_output.c (POSIX) and os_output_windows.c. Private
 * to base. Functions that return int give 0 or an error code of the system for
 * pith_os_output_error_text. */
#ifndef PITH_BASE_OS_OUTPUT_H
#define PITH_BASE_OS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes a file that must not exist yet. *exists tells that case apart. */
int pith_os_output_open(const char *path, intptr_t *handle, bool *exists);
int pith_os_output_write(intptr_t handle, const void *data, size_t size);
int pith_os_output_sync(intptr_t handle); /* returns when the device has all bytes */
int pith_os_output_close(intptr_t handle);
/* Renames over an existing file and makes the new name durable. */
int pith_os_output_rename(const char *from, const char *to);
void pith_os_output_remove(const char *path);
void pith_os_output_error_text(int code, char *text, size_t capacity);

#endif
