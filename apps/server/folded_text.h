/* SPDX-License-Identifier: Apache-2.0
 * Texts in the form in which marks of private text are looked for: what a reader takes for the same
 * word has the same bytes. */
#ifndef PITH_APPS_SERVER_FOLDED_TEXT_H
#define PITH_APPS_SERVER_FOLDED_TEXT_H

#include "base/text.h"

/* Appends the text without case (of every script), in Unicode's form NFKC, any white space as one
 * space and none at the beginning, no invisible characters, one kind of quotes and hyphens. Bytes
 * that are no UTF-8 are left out. out->failed: memory was short. */
void pith_folded_text_append(pith_buffer *out, const char *text, size_t size);

#endif
