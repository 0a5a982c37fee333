/* SPDX-License-Identifier: Apache-2.0
 * A stable sort of values. */
#ifndef PITH_CHAT_SORTING_H
#define PITH_CHAT_SORTING_H

#include "chat/render.h"

/* Puts into order[n] the numbers of the keys from the smallest to the largest (is_reversed: the
 * other way; equal keys keep their order in both). Fails when two keys cannot be compared. */
bool pith_sort_keys(pith_render *render, const pith_value *keys, size_t n, bool is_reversed,
                    size_t *order);

#endif
