/* SPDX-License-Identifier: Apache-2.0
 * What a pith_file is (private to the api room): api_file.c opens it, api_fit.c estimates it. */
#ifndef PITH_API_API_FILE_H
#define PITH_API_API_FILE_H

#include "model/model.h"

struct pith_file {
    pith_gguf *gguf;
    const char *architecture;
};

#endif
