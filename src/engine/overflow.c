/* SPDX-License-Identifier: Apache-2.0
 * What stays when prompt and reply are more than the context holds (pith_overflow of pith.h).
 *
 *   a full session   [ keep ][ older half of the rest ][ newer half ]  ->  [ keep ][ newer half ]
 *   a long prompt    [ keep ][ middle ][ last ]                        ->  [ keep ][ last ] room
 *
 * The first tokens stay because every later one attends to them (Xiao et al., "Efficient Streaming
 * Language Models with Attention Sinks", 2023), and because instructions stand there. Only ids are
 * chosen here: what stays is read again by the reply, never moved within KV, so that a session's KV
 * is always what its ids give (docs/decisions/0065). */
#include "engine/reply.h"

#include <string.h>

enum { SINKS = 4 }; /* first tokens that later ones lean on, whatever they say */

size_t pith_overflow_keep(size_t n_ctx, const pith_generate_options *options) {
    size_t usual = options->overflow == PITH_OVERFLOW_SHIFT ? SINKS : n_ctx / 8;
    size_t keep = options->n_keep > 0 ? (size_t)options->n_keep : usual;
    return keep < n_ctx / 2 ? keep : n_ctx / 2;
}

size_t pith_overflow_drop(int32_t *ids, size_t n_ids, size_t keep) {
    if (n_ids <= keep) return 0;
    size_t drop = (n_ids - keep) / 2;
    memmove(ids + keep, ids + keep + drop, (n_ids - keep - drop) * sizeof *ids);
    return drop;
}

size_t pith_overflow_shorten(size_t n_ctx, const pith_generate_options *options,
                             pith_id_span prompt, int32_t *ids) {
    size_t room = options->max_tokens > 0 ? (size_t)options->max_tokens : n_ctx / 4;
    if (room > n_ctx / 2) room = n_ctx / 2;
    if (room == 0 && n_ctx > 1) room = 1;
    size_t keep = pith_overflow_keep(n_ctx, options), last = n_ctx - room - keep;
    memcpy(ids, prompt.data, keep * sizeof *ids);
    memcpy(ids + keep, prompt.data + prompt.size - last, last * sizeof *ids);
    return keep + last;
}
