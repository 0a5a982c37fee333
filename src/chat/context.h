/* SPDX-License-Identifier: Apache-2.0
 * The caller's JSON context -> values. */
#ifndef PITH_CHAT_CONTEXT_H
#define PITH_CHAT_CONTEXT_H

#include "chat/render.h"

/* Puts the members of `context` that the template mentions into render->root. Strings are borrowed
 * from `context`. */
bool pith_context_load(pith_render *render, const json_t *context, const char *const *trusted);

#endif
