/* SPDX-License-Identifier: Apache-2.0
 * Log-probabilities of the tokens of a reply: taken from the model's logits when a token is drawn,
 * told when it is taken. Between the two its logits may be gone, since a step draws from several
 * rows.
 *
 * Invariant: logprobs[i] belongs to drawn[i]. Allocated with the reply, and only where asked for.
 *
 * Does not: compute them (src/sample/log_softmax.c). Read next: reply.c. */
#include "base/memory.h"
#include "engine/reply.h"

struct pith_drawn_logprobs {
    double own; /* of the token that was drawn */
    size_t n_top;
    pith_logprob top[PITH_LOGPROBS_MAX];
};

pith_status pith_logprobs_prepare(pith_reply *reply, pith_error *error) {
    const size_t n = PITH_DRAFT_MAX + 1;
    if (!reply->options.on_logprobs) return PITH_OK;
    reply->logprobs = pith_alloc_array(n, sizeof *reply->logprobs);
    if (reply->logprobs) return PITH_OK;
    return pith_fail_memory(error, "log-probabilities", n * sizeof *reply->logprobs);
}

void pith_logprobs_note(pith_reply *reply, const float *logits, int32_t id) {
    if (!reply->logprobs) return;
    pith_drawn_logprobs *drawn = &reply->logprobs[reply->n_drawn];
    size_t n_vocab = reply->session->engine->model->hparams.n_vocab;
    drawn->n_top = pith_sample_logprobs(logits, n_vocab, id, &drawn->own, drawn->top,
                                        (size_t)reply->options.n_logprobs);
}

void pith_logprobs_tell(const pith_reply *reply, uint32_t i) {
    if (!reply->logprobs) return;
    const pith_drawn_logprobs *drawn = &reply->logprobs[i];
    reply->options.on_logprobs(reply->options.logprobs_user, reply->drawn[i], drawn->own,
                               drawn->top, drawn->n_top);
}
