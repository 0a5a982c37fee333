/* SPDX-License-Identifier: Apache-2.0
 * The tokenizer that a GGUF file describes: its `tokenizer.ggml.*` keys, read and checked. The
 * algorithms are src/token's, which knows no file. Read next: vocab.c. */
#ifndef PITH_MODEL_VOCAB_H
#define PITH_MODEL_VOCAB_H

#include "gguf/gguf.h"
#include "token/token.h"

/* An unknown tokenizer model is PITH_ERROR_UNSUPPORTED naming it; so is an unknown pre-tokenizer
 * unless `force`. Arrays that disagree in length or type are PITH_ERROR_FORMAT; a special id
 * outside the vocabulary is ignored with a note. A file without tokenizer keys gives a tokenizer
 * of model NONE. */
pith_status pith_vocab_load(const pith_gguf *gguf, bool force, pith_tokenizer **out,
                            pith_error *error);

#endif
