/* SPDX-License-Identifier: Apache-2.0
 * Guesses of a smaller model with the same vocabulary (Leviathan et al., "Fast Inference from
 * Transformers via Speculative Decoding", 2023).
 *
 * Its session follows the text: what both have in common stays, the rest is computed before it
 * guesses, so a rejected guess costs nothing but its own step. It guesses its most likely token and
 * goes on while that is worth it: with c the chance that all guesses so far are right, another one
 * wins c p T(1) and costs its own time and a row. p is what guesses of such a probability turned
 * out to be worth, not the probability itself. */
#include "base/clock.h"
#include "engine/draft.h"

#include <math.h>
#include <string.h>

/* Kinds by the probability of the guess. */
static uint32_t kind_of_probability(double p) {
    static const double least[] = {0.3, 0.45, 0.6, 0.75, 0.87, 0.95, 0.99};
    uint32_t kind = 0;
    while (kind < sizeof least / sizeof *least && p >= least[kind]) kind++;
    return PITH_DRAFT_MODEL_KIND + kind;
}

/* The most likely id and its probability. */
static int32_t most_likely(const float *logits, uint32_t n_vocab, double *probability) {
    int32_t best = 0;
    float sum[16] = {0};
    for (uint32_t i = 1; i < n_vocab; i++) {
        if (logits[i] > logits[best]) best = (int32_t)i;
    }
    for (uint32_t i = 0; i < n_vocab; i++) {
        float below = logits[i] - logits[best];
        if (below > -20) sum[i % 16] += expf(below);
    }
    double total = 0;
    for (int i = 0; i < 16; i++) total += (double)sum[i];
    *probability = total > 0 ? 1 / total : 0; /* 0: the row is not finite */
    return best;
}

/* Brings the model's session to ids [n_ids]. */
static bool follow(pith_session *session, const int32_t *ids, size_t n_ids) {
    size_t same = 0;
    while (same < n_ids && same < session->length && session->ids[same] == ids[same]) same++;
    if (same == n_ids) same--; /* its logits are needed */
    if (n_ids > session->engine->n_ctx) return false;
    pith_session_cut(session, same);
    return pith_session_feed(session, ids + same, n_ids - same, NULL, NULL) == PITH_OK;
}

uint32_t pith_draft_model_guess(pith_drafter *drafter, const pith_pace *pace, const int32_t *ids,
                                size_t n_ids, uint32_t most, int32_t *guesses) {
    pith_session *session = drafter->model;
    uint32_t n = 0, n_vocab = session->engine->model->hparams.n_vocab;
    double one = pith_pace_ns(pace, 1), chance = 1;
    uint64_t begun = pith_clock_ns();
    bool first =
        drafter->guess_ns <= 0; /* it has the whole prompt to read: no measure of a guess */
    if (!follow(session, ids, n_ids)) return 0;
    while (n < most) {
        double probability;
        guesses[n] = most_likely(session->logits, n_vocab, &probability);
        uint32_t kind = kind_of_probability(probability);
        chance *= pith_draft_share(drafter, kind);
        double row = pith_pace_ns(pace, n + 2) - pith_pace_ns(pace, n + 1);
        if (chance * one <= row) break;
        drafter->kinds[n++] = (uint8_t)kind;
        if (n == most || chance * pith_draft_share(drafter, kind) * one <= row + drafter->guess_ns)
            break;
        if (pith_session_feed(session, &guesses[n - 1], 1, NULL, NULL) != PITH_OK) break;
    }
    double ns = (double)(pith_clock_ns() - begun), each = ns / (n > 0 ? n : 1);
    if (first) {
        drafter->guess_ns =
            1; /* it has read the prompt; what a guess takes is measured next time */
        return n;
    }
    drafter->guess_ns = drafter->guess_ns > 1 ? 0.75 * drafter->guess_ns + 0.25 * each : each;
    drafter->made_ns = ns;
    return n;
}

pith_status pith_draft_check(const pith_model *model, const pith_model *draft, pith_error *error) {
    const pith_tokenizer *a = model->tokenizer, *b = draft->tokenizer;
    uint32_t n = model->hparams.n_vocab, n_draft = draft->hparams.n_vocab;
    if (!a || !b || n != n_draft) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the draft model has %u tokens, the model %u: they must have the same "
                         "vocabulary",
                         n_draft, n);
    }
    for (uint32_t i = 0; i < n && i < pith_tokenizer_size(a); i++) {
        pith_span x = pith_tokenizer_piece(a, (int32_t)i), y = pith_tokenizer_piece(b, (int32_t)i);
        if (x.size == y.size && (x.size == 0 || memcmp(x.data, y.data, x.size) == 0)) continue;
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "token %u of the draft model is another than the model's: they must have "
                         "the same vocabulary",
                         i);
    }
    return PITH_OK;
}
