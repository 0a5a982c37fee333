/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids with a meaning: the model's defaults (formats page 6.2), overridden by keys, completed from
 * tokens of well-known names (6.7); then the set that ends a generation, token types that follow
 * from it, BOS/EOS rules, and tokens that take white space along (6.5).
 *
 * Invariant: after this an id is -1 or a token of the vocabulary. A token that ends a generation
 * is a control token, so text of a user cannot spell it. An id outside the vocabulary is dropped
 * with a note, never used. Read next: special_match.c.
 */
#include "token/token_internal.h"

#include <string.h>

/* Names in the order in which they are tried: each with a NUL, an empty one at the end. */
#define DEEPSEEK_END                                                                               \
    "<\xEF\xBD\x9C"                                                                                \
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"
static const char eot_names[] =
    "<|eot_id|>\0<|im_end|>\0<|end|>\0<end_of_turn>\0<|endoftext|>\0"
    "<|end_of_text|>\0<EOT>\0_<EOT>\0[EOT]\0" DEEPSEEK_END "\0<end_of_utterance>\0";
static const char eom_names[] = "<|eom_id|>\0";
static const char fim_pad_names[] = "<|fim_pad|>\0<fim-pad>\0<fim_pad>\0<PAD>\0[PAD]\0";
static const char fim_repo_names[] =
    "<|fim_repo|>\0<|repo_name|>\0<fim-repo>\0<REPO>\0<reponame>\0";
static const char fim_separator_names[] = "<|file_sep|>\0";
static const char end_names[] = "<|eot_id|>\0<|im_end|>\0<|end|>\0<|return|>\0<|call|>\0<|flush|>\0"
                                "<|calls|>\0<end_of_turn>\0<|endoftext|>\0</s>\0<|eom_id|>\0<EOT>\0"
                                "_<EOT>\0[EOT]\0[EOS]\0<|end_of_text|>\0<end_of_utterance>\0<eos>\0"
                                "<turn|>\0<|tool_response>\0" DEEPSEEK_END "\0[e~[\0";
/* Parts of a reply's frame that programs look for: shown even when control tokens are not. */
static const char frame_names[] = "<|channel|>\0<|message|>\0<|start|>\0<|constrain|>\0";

static const char *next_name(const char *name) {
    return name + strlen(name) + 1;
}

static int32_t find(const pith_tokenizer *tokenizer, const char *name) {
    return pith_tokenizer_find(tokenizer, pith_span_of(name));
}

static void set_defaults(pith_tokenizer *tokenizer) {
    pith_tokenizer *t = tokenizer;
    t->bos = t->eos = t->eot = t->eom = t->unknown = t->separator = t->padding = t->mask = -1;
    t->fim_pad = t->fim_repo = t->fim_separator = -1;
    switch (t->model) {
    case PITH_TOKEN_MODEL_SPM:
        t->bos = 1;
        t->eos = 2;
        t->unknown = 0;
        t->add_bos = t->add_space_prefix = true;
        break;
    case PITH_TOKEN_MODEL_BPE:
        if (!(t->pre->flags & PITH_PRE_NO_BOS)) t->bos = 11;
        t->eos = 11;
        t->add_bos = t->pre->flags & PITH_PRE_ADD_BOS;
        if (t->pre->flags & PITH_PRE_RAW) t->bos = t->eos = -1;
        break;
    case PITH_TOKEN_MODEL_WPM:
        t->bos = 101;
        t->unknown = 100;
        t->separator = 102;
        t->padding = 0;
        t->mask = 103;
        t->add_bos = t->add_separator = true;
        t->lowercase = true;
        break;
    case PITH_TOKEN_MODEL_UGM:
        t->eos = 1;
        t->unknown = 2;
        t->padding = 0;
        t->add_space_prefix = t->add_eos = true;
        break;
    case PITH_TOKEN_MODEL_NONE: break;
    }
}

struct id_key {
    const char *name;
    int32_t given;
    int32_t *slot;
};

/* Keys over defaults. A default outside the vocabulary is dropped silently, a key with a note. */
static void apply_ids(pith_tokenizer *tokenizer, const pith_vocab_source *source) {
    pith_tokenizer *t = tokenizer;
    const struct id_key keys[] = {
        {"bos", source->bos, &t->bos},
        {"eos", source->eos, &t->eos},
        {"eot", source->eot, &t->eot},
        {"eom", source->eom, &t->eom},
        {"unknown", source->unknown, &t->unknown},
        {"seperator", source->separator, &t->separator},
        {"padding", source->padding, &t->padding},
        {"mask", source->mask, &t->mask},
        {"fim_pad", source->fim_pad, &t->fim_pad},
        {"fim_rep", source->fim_repo, &t->fim_repo},
        {"fim_sep", source->fim_separator, &t->fim_separator},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int32_t given = keys[i].given, *slot = keys[i].slot;
        if (given >= 0 && (uint32_t)given < t->n_tokens)
            *slot = given;
        else if (given >= 0)
            pith_buffer_append_format(&t->notes,
                                      "%s_token_id %d is outside the vocabulary of %u tokens: "
                                      "ignored\n",
                                      keys[i].name, given, t->n_tokens);
        if (*slot >= 0 && (uint32_t)*slot >= t->n_tokens) *slot = -1;
        /* the default of byte-level vocabularies holds for Falcon; elsewhere 11 is a comma */
        bool doubtful = t->model == PITH_TOKEN_MODEL_BPE && *slot >= 0 && *slot != given;
        if (doubtful && t->types[*slot] != PITH_TOKEN_CONTROL) *slot = -1;
    }
}

static void apply_flag(bool *flag, int8_t given) {
    if (given >= 0) *flag = given != 0;
}

static void apply_flags(pith_tokenizer *tokenizer, const pith_vocab_source *source) {
    apply_flag(&tokenizer->add_bos, source->add_bos);
    apply_flag(&tokenizer->add_eos, source->add_eos);
    apply_flag(&tokenizer->add_separator, source->add_sep);
    apply_flag(&tokenizer->add_space_prefix, source->add_space_prefix);
    apply_flag(&tokenizer->remove_extra_whitespaces, source->remove_extra_whitespaces);
    apply_flag(&tokenizer->lowercase, source->lowercase);
    tokenizer->strip_accents = tokenizer->lowercase;
    apply_flag(&tokenizer->strip_accents, source->strip_accents);
    if (tokenizer->model != PITH_TOKEN_MODEL_BPE) return;
    tokenizer->add_space_prefix = false; /* byte-level text starts as it is */
    if (pith_span_is(pith_span_of(tokenizer->pre->name), "gemma4")) tokenizer->add_bos = true;
}

/* Without a key, the first of the names that is a token. */
static void detect(pith_tokenizer *tokenizer, int32_t *slot, const char *name) {
    for (; *slot < 0 && *name; name = next_name(name)) {
        *slot = find(tokenizer, name);
        if (*slot >= 0) tokenizer->types[*slot] = PITH_TOKEN_CONTROL;
    }
}

static bool has(const pith_tokenizer *tokenizer, const char *name) {
    return find(tokenizer, name) >= 0;
}

static void unmark_end(pith_tokenizer *tokenizer, const char *name, pith_token_type type) {
    int32_t id = find(tokenizer, name);
    if (id < 0) return;
    tokenizer->marks[id] &= (uint8_t)~PITH_MARK_END;
    tokenizer->types[id] = (uint8_t)type;
}

/* Shows a control token's text when control tokens are hidden. It stays one: no user's text is
 * read as it. */
static void show(pith_tokenizer *tokenizer, const char *name) {
    int32_t id = find(tokenizer, name);
    if (id >= 0) tokenizer->marks[id] |= PITH_MARK_SHOWN;
}

static void make_end_set(pith_tokenizer *tokenizer) {
    pith_tokenizer *t = tokenizer;
    for (const char *name = end_names; *name; name = next_name(name)) {
        int32_t id = find(t, name);
        if (id < 0) continue;
        t->marks[id] |= PITH_MARK_END;
        t->types[id] = PITH_TOKEN_CONTROL;
    }
    const int32_t ids[] = {t->fim_pad, t->fim_repo, t->fim_separator, t->eos, t->eot, t->eom};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] >= 0) t->marks[ids[i]] |= PITH_MARK_END;
    /* Formats in which <|end|> only ends a message of a longer reply. */
    bool calls = has(t, "<|call|>") || has(t, "<|calls|>");
    bool harmony = has(t, "<|return|>") && calls, solar = calls && has(t, "<|flush|>");
    if (harmony || solar) {
        unmark_end(t, "<|end|>", PITH_TOKEN_CONTROL);
        show(t, "<|end|>");
    }
    if (has(t, "<|tool_response>") && has(t, "</s>")) unmark_end(t, "</s>", PITH_TOKEN_NORMAL);
    for (const char *name = frame_names; *name; name = next_name(name)) show(t, name);
}

/* Whether `text`, in lower case, contains `part`. */
static bool contains(pith_span text, const char *part) {
    size_t size = strlen(part);
    for (size_t at = 0; at + size <= text.size; at++) {
        size_t i = 0;
        while (i < size) {
            char c = text.data[at + i];
            if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
            if (c != part[i]) break;
            i++;
        }
        if (i == size) return true;
    }
    return false;
}

static void mark_strip(pith_tokenizer *tokenizer, const char *name, uint8_t mark) {
    int32_t id = find(tokenizer, name);
    if (id >= 0) tokenizer->marks[id] |= mark;
}

/* GGUF does not say which tokens take white space along; these models are known to. */
static void mark_strips(pith_tokenizer *tokenizer, const pith_vocab_source *source) {
    bool jina = tokenizer->pre && (tokenizer->pre->flags & PITH_PRE_MASK_STRIPS);
    bool mask = jina || pith_span_is(source->architecture, "nomic-bert-moe") ||
                pith_span_is(source->architecture, "jina-bert-v3");
    if (mask) mark_strip(tokenizer, "<mask>", PITH_MARK_LSTRIP);
    if (contains(source->model_name, "modern-bert"))
        mark_strip(tokenizer, "[MASK]", PITH_MARK_LSTRIP);
    if (!contains(source->model_name, "phi-3") && !contains(source->model_name, "phi3")) return;
    const int32_t except[] = {find(tokenizer, "<unk>"), find(tokenizer, "<s>"),
                              find(tokenizer, "<|endoftext|>")};
    for (uint32_t i = 0; i < tokenizer->n_tokens; i++) {
        uint8_t type = tokenizer->types[i];
        bool special = type == PITH_TOKEN_CONTROL || type == PITH_TOKEN_UNKNOWN ||
                       type == PITH_TOKEN_USER_DEFINED;
        bool excepted =
            (int32_t)i == except[0] || (int32_t)i == except[1] || (int32_t)i == except[2];
        if (special && !excepted) tokenizer->marks[i] |= PITH_MARK_RSTRIP;
    }
    mark_strip(tokenizer, "</s>", PITH_MARK_RSTRIP);
}

/* SmolLM2's file names its end token as the unknown one too; its own tokenizer drops such bytes,
 * and a user's text must not become a control token. */
static void set_text_unknown(pith_tokenizer *tokenizer) {
    int32_t id = tokenizer->unknown;
    bool ends = id >= 0 && (tokenizer->marks[id] & PITH_MARK_END);
    tokenizer->text_unknown = ends || id == tokenizer->bos || id == tokenizer->eos ? -1 : id;
}

void pith_special_ids_resolve(pith_tokenizer *tokenizer, const pith_vocab_source *source) {
    set_defaults(tokenizer);
    apply_ids(tokenizer, source);
    apply_flags(tokenizer, source);
    detect(tokenizer, &tokenizer->eot, eot_names);
    detect(tokenizer, &tokenizer->eom, eom_names);
    detect(tokenizer, &tokenizer->fim_pad, fim_pad_names);
    detect(tokenizer, &tokenizer->fim_repo, fim_repo_names);
    detect(tokenizer, &tokenizer->fim_separator, fim_separator_names);
    make_end_set(tokenizer);
    set_text_unknown(tokenizer);
    mark_strips(tokenizer, source);
}
