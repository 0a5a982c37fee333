/* SPDX-License-Identifier: Apache-2.0
 * Unicode normalization as tokenizers need it. */
#ifndef PITH_TOKEN_NORMAL_FORM_H
#define PITH_TOKEN_NORMAL_FORM_H

#include "base/text.h"

enum { PITH_DECOMPOSED_CODES = 8 }; /* no canonical decomposition is longer than 4 */

/* The text in NFC: itself when it already is, else written into out. Ill-formed bytes stay.
 * *failed: no memory. */
pith_span pith_normal_form_c(pith_span text, pith_buffer *out, bool *failed);

/* Full canonical decomposition of one code point, Hangul too; how many codes it has. */
size_t pith_decompose(uint32_t code, int32_t codes[PITH_DECOMPOSED_CODES]);

#endif
