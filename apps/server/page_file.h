/* SPDX-License-Identifier: Apache-2.0
 * The page of `pith serve` as bytes in the program. The build makes the one object of this type
 * from apps/web (page_data.c, in the build folder); where it cannot, absence says why. */
#ifndef PITH_APPS_SERVER_PAGE_FILE_H
#define PITH_APPS_SERVER_PAGE_FILE_H

#include <stddef.h>

typedef struct pith_page_file {
    const unsigned char *plain, *packed; /* HTML, and the same as gzip; NULL: there is none */
    size_t plain_size, packed_size;
    const char *policy;  /* Content-Security-Policy, with the hashes of its script and style */
    const char *absence; /* why there is none: a part of a sentence; NULL */
} pith_page_file;

extern const pith_page_file pith_page;

#endif
