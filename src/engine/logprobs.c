/* SPDX-License-Identifier: Apache-2.0
 * Log-probabilities of the tokens of a reply: taken from the model's logits when a token is drawn,
 * told when it is taken. Between the two its logits may be gone, since a step draws from several
 * rows.
 *
 * Invariant: those of token t of the reply are at t % n, n being more than the tokens that are
 * drawn or wait to be told. Allocated with the reply, and only where asked for.
 *
 * Does not: compute them (src/sample/log_softmax.c). Read next: reply.c. */
#include "base/memory.h"
#include "engine/reply.h"

struct pith_drawn_logprobs {
    double own; /* of the token that was drawn */
    size_t n_top;
    pith_logprob top[PITH_LOGPROBS_MAX];
};

static size_t n_places(const pith_reply *reply) {
    return reply->n_slots + PITH_DRAFT_MAX;
}

pith_status pith_logprobs_prepare(pith_reply *reply, pith_error *error) {
    const size_t n = n_places(reply);
    if (!reply->options.on_logprobs) return PITH_OK;
    reply->logprobs = pith_alloc_array(n, sizeof *reply->logprobs);
    if (reply->logprobs) return PITH_OK;
    return pith_fail_memory(error, "log-probabilities", n * sizeof *reply->logprobs);
}

void pith_logprobs_note(pith_reply *reply, const float *logits, int32_t id) {
    if (!reply->logprobs) return;
    size_t token = reply->out.n_predicted + reply->n_drawn;
    pith_drawn_logprobs *drawn = &reply->logprobs[token % n_places(reply)];
    size_t n_vocab = reply->session->engine->model->hparams.n_vocab;
    drawn->n_top = pith_sample_logprobs(logits, n_vocab, id, &drawn->own, drawn->top,
                                        (size_t)reply->options.n_logprobs);
}

void pith_logprobs_tell(const pith_reply *reply, size_t token, int32_t id) {
    if (!reply->logprobs) return;
    const pith_drawn_logprobs *drawn = &reply->logprobs[token % n_places(reply)];
    reply->options.on_logprobs(reply->options.logprobs_user, id, drawn->own, drawn->top,
                               drawn->n_top);
}
