/* SPDX-License-Identifier: Apache-2.0
 * What api_text.c and api_prompt.c share (private to the api room). */
#ifndef PITH_API_API_TEXT_H
#define PITH_API_API_TEXT_H

#include "model/model.h"

/* The capacity rule of pith_tokenize. */
pith_status pith_copy_ids(const pith_ids *from, int32_t *ids, size_t capacity, size_t *n_ids,
                          pith_error *error);
/* PITH_OK for a model that is not NULL and has a vocabulary. */
pith_status pith_check_vocabulary(const pith_model *model, pith_error *error);

#endif
