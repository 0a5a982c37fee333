/* SPDX-License-Identifier: Apache-2.0
 *
 * Character properties by halving, and changing the case of whole strings.
 *
 * Full mappings are used: U+00DF becomes SS in upper case, and a capital sigma becomes the final
 * one when a cased letter stands before it and none follows (both past characters that do not
 * count, such as the apostrophe). What has been seen before is carried along, so the walk is
 * linear.
 *
 * Invariant: every character of the result has the author of the character it came from. Strings of
 * one-byte characters are mapped byte by byte. A byte that is not well-formed stays as it is.
 */
#include "chat/unicode_case.h"

uint32_t pith_unicode_flags(uint32_t code) {
    if (code < 128) return pith_unicode_ascii[code];
    if (code > 0x10FFFF) return 0;
    size_t low = 0, high = pith_unicode_runs_n - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (pith_unicode_runs[middle] >> 10 <= code) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return pith_unicode_runs[low] & 0x3FF;
}

/* Sets *mapped and returns true when a range of the table holds code. */
static bool map_range(const pith_case_range *table, size_t n, uint32_t code, uint32_t *mapped) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const pith_case_range *range = &table[middle];
        if (code > range->last) {
            low = middle + 1;
        } else if (code < range->first) {
            high = middle;
        } else {
            if ((code - range->first) % (uint32_t)range->stride != 0) return false;
            *mapped = (uint32_t)((int32_t)code + range->delta);
            return true;
        }
    }
    return false;
}

static const pith_case_expansion *find_expansion(const pith_case_expansion *table, size_t n,
                                                 uint32_t code) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].code == code) return &table[middle];
        if (table[middle].code < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

uint32_t pith_unicode_to_lower(uint32_t code) {
    uint32_t mapped = code;
    map_range(pith_unicode_lower, pith_unicode_lower_n, code, &mapped);
    return mapped;
}

uint32_t pith_unicode_to_upper(uint32_t code) {
    uint32_t mapped = code;
    map_range(pith_unicode_upper, pith_unicode_upper_n, code, &mapped);
    return mapped;
}

static void append_expansion(pith_builder *builder, const pith_case_expansion *expansion,
                             bool is_user) {
    for (int i = 0; i < 3 && expansion->to[i] != 0; i++)
        pith_builder_char(builder, expansion->to[i], is_user);
}

static void append_upper(pith_builder *builder, uint32_t code, bool is_user) {
    const pith_case_expansion *full =
        find_expansion(pith_unicode_upper_full, pith_unicode_upper_full_n, code);
    if (full != NULL) {
        append_expansion(builder, full, is_user);
    } else {
        pith_builder_char(builder, pith_unicode_to_upper(code), is_user);
    }
}

static void append_title(pith_builder *builder, uint32_t code, bool is_user) {
    uint32_t mapped;
    const pith_case_expansion *full =
        find_expansion(pith_unicode_title_full, pith_unicode_title_full_n, code);
    if (full != NULL) {
        append_expansion(builder, full, is_user);
    } else if (map_range(pith_unicode_title, pith_unicode_title_n, code, &mapped)) {
        pith_builder_char(builder, mapped, is_user);
    } else {
        append_upper(builder, code, is_user);
    }
}

static bool is_word_break(uint32_t code) {
    if (code == '-' || code == '(' || code == '{' || code == '[' || code == '<') return true;
    return (pith_unicode_flags(code) & PITH_UNICODE_SPACE) != 0;
}

/* A cased letter comes after the walk's character (in the same word, when by_word). */
static bool is_cased_ahead(pith_walk walk, bool by_word) {
    while (pith_walk_next(&walk)) {
        uint32_t flags = pith_unicode_flags(walk.code);
        if (by_word && is_word_break(walk.code)) return false;
        if ((flags & PITH_UNICODE_IGNORABLE) == 0) return (flags & PITH_UNICODE_CASED) != 0;
    }
    return false;
}

static void append_lower(pith_builder *builder, const pith_walk *walk, bool cased_before,
                         bool by_word) {
    enum {
        CAPITAL_SIGMA = 0x3A3,
        SIGMA = 0x3C3,
        FINAL_SIGMA = 0x3C2,
        DOTTED_I = 0x130,
        DOT_ABOVE = 0x307
    };
    uint32_t code = walk->code;
    if (code == CAPITAL_SIGMA) {
        bool is_final = cased_before && !is_cased_ahead(*walk, by_word);
        pith_builder_char(builder, is_final ? FINAL_SIGMA : SIGMA, walk->is_user);
    } else if (code == DOTTED_I) {
        pith_builder_char(builder, 'i', walk->is_user);
        pith_builder_char(builder, DOT_ABOVE, walk->is_user);
    } else {
        pith_builder_char(builder, pith_unicode_to_lower(code), walk->is_user);
    }
}

/* What a walk has seen so far. */
typedef struct case_state {
    bool cased_before;   /* a cased letter, with nothing that counts since; for the sigma */
    bool previous_cased; /* the character before is cased; for title() */
    bool at_start;       /* of the string, or of a word for the filter `title` */
} case_state;

static void change_char(pith_builder *builder, const pith_walk *walk, pith_case_style style,
                        case_state *state) {
    uint32_t flags = pith_unicode_flags(walk->code);
    bool raise =
        style == PITH_CASE_UPPER || (style == PITH_CASE_SWAP && (flags & PITH_UNICODE_LOWER) != 0);
    bool first = style == PITH_CASE_TITLE ? !state->previous_cased : state->at_start;
    bool by_word = style == PITH_CASE_TITLE_WORD;
    if (walk->code == PITH_UTF8_INVALID) {
        pith_builder_slice(builder, walk->string, walk->at, walk->size);
    } else if (raise || (by_word && first)) {
        append_upper(builder, walk->code, walk->is_user);
    } else if ((style == PITH_CASE_TITLE || style == PITH_CASE_CAPITALIZE) && first) {
        append_title(builder, walk->code, walk->is_user);
    } else if (style == PITH_CASE_SWAP && (flags & PITH_UNICODE_UPPER) == 0) {
        pith_builder_char(builder, walk->code, walk->is_user);
    } else {
        append_lower(builder, walk, state->cased_before, by_word);
    }
    state->previous_cased = (flags & PITH_UNICODE_CASED) != 0;
    bool was_start = state->at_start;
    state->at_start = by_word && is_word_break(walk->code);
    if (by_word && (was_start || state->at_start)) {
        state->cased_before =
            false; /* the first letter of a word is not looked back at: words are lowered alone */
    } else if ((flags & PITH_UNICODE_IGNORABLE) == 0) {
        state->cased_before = state->previous_cased;
    }
}

static bool is_ascii(const pith_string *string) {
    for (size_t i = 0; i < string->size; i++) {
        if ((unsigned char)string->data[i] >= 0x80) return false;
    }
    return true;
}

static pith_string *change_ascii(pith_heap *heap, const pith_string *string,
                                 pith_case_style style) {
    char *data = pith_heap_text(heap, string->size);
    pith_string *changed = pith_string_mark_safe(heap, string, string->is_safe);
    if (data == NULL || changed == NULL) return NULL;
    char first = style == PITH_CASE_UPPER ? 'a' : 'A', last = style == PITH_CASE_UPPER ? 'z' : 'Z';
    for (size_t i = 0; i < string->size; i++) {
        char c = string->data[i];
        data[i] = c >= first && c <= last ? (char)(c ^ 0x20) : c;
    }
    changed->data = data;
    return changed;
}

pith_string *pith_unicode_change(pith_heap *heap, const pith_string *string,
                                 pith_case_style style) {
    if ((style == PITH_CASE_LOWER || style == PITH_CASE_UPPER) && is_ascii(string)) {
        return change_ascii(heap, string, style);
    }
    pith_builder builder;
    case_state state = {.at_start = style == PITH_CASE_CAPITALIZE || style == PITH_CASE_TITLE_WORD};
    pith_builder_init(&builder, heap);
    pith_builder_reserve(&builder, string->size);
    for (pith_walk walk = pith_walk_begin(string); pith_walk_next(&walk);) {
        change_char(&builder, &walk, style, &state);
    }
    pith_string *changed = pith_builder_finish(&builder);
    if (changed != NULL) changed->is_safe = string->is_safe;
    return changed;
}
