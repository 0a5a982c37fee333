/* SPDX-License-Identifier: Apache-2.0
 *
 * \p{...}: the code points of a Unicode property, asked of PCRE2, whose tables are in the program
 * already (token uses them). The characters of the assigned planes are written into one text, and
 * PCRE2 finds the runs that have the property.
 *
 *   planes 0-3 and 14     asked, 64 KiB of characters at a time
 *   planes 4-13           nothing is assigned there: they are what U+4FFFF is
 *   planes 15, 16         private use: what U+F0000 is (their last two characters: as U+4FFFF)
 *
 * Names are those that ECMA-262 allows: General_Category in its short and long form (alone or after
 * gc= or General_Category=), Script and Script_Extensions after sc=, scx=, and a few binary
 * properties. A name that PCRE2 of this machine does not know is refused.
 */
#include "sample/code_set.h"

#include "base/memory.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 48, CHUNK = 0x4000 };

/* Long names of ECMA-262, and the binary properties that are spelt in PCRE2 syntax. */
static const struct {
    const char *name, *pattern;
} long_names[] = {
    {"Cased_Letter", "L&"},
    {"LC", "L&"},
    {"Close_Punctuation", "Pe"},
    {"Connector_Punctuation", "Pc"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Currency_Symbol", "Sc"},
    {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},
    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},
    {"Letter", "L"},
    {"Letter_Number", "Nl"},
    {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Math_Symbol", "Sm"},
    {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},
    {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},
    {"Open_Punctuation", "Ps"},
    {"Other_Letter", "Lo"},
    {"Other_Number", "No"},
    {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},
    {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},
    {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},
    {"Uppercase_Letter", "Lu"},
    {"Any", "Any"},
    {"Alphabetic", "Alphabetic"},
    {"Alpha", "Alphabetic"},
    {"Emoji", "Emoji"},
    {"ID_Continue", "ID_Continue"},
    {"ID_Start", "ID_Start"},
    {"Ideographic", "Ideographic"},
    {"Lowercase", "Lowercase"},
    {"Uppercase", "Uppercase"},
    {"White_Space", "White_Space"},
};

static const char *const short_names[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc",
                                          "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps",
                                          "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So",
                                          "Z",  "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn"};

static bool starts_with(pith_span name, const char *start) {
    size_t size = strlen(start);
    return name.size > size && memcmp(name.data, start, size) == 0;
}

static pith_span after(pith_span name, const char *start) {
    size_t size = strlen(start);
    return (pith_span){name.data + size, name.size - size};
}

/* The name in PCRE2's spelling; false where ECMA-262 has none such. */
static bool spell(pith_span name, char out[NAME_BYTES]) {
    static const char *const category_keys[] = {"gc=", "General_Category="};
    static const char *const script_keys[] = {"sc=", "Script=", "scx=", "Script_Extensions="};
    for (size_t i = 0; i < 4; i++) {
        if (!starts_with(name, script_keys[i])) continue;
        pith_span script = after(name, script_keys[i]);
        if (script.size + 5 > NAME_BYTES || script.size < 2) return false;
        for (size_t k = 0; k < script.size; k++) {
            char c = script.data[k];
            bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
            if (!letter) return false;
        }
        (void)snprintf(out, NAME_BYTES, "%s:%.*s", i < 2 ? "sc" : "scx", (int)script.size,
                       script.data);
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        if (starts_with(name, category_keys[i])) name = after(name, category_keys[i]);
    }
    for (size_t i = 0; i < sizeof long_names / sizeof *long_names; i++) {
        if (!pith_span_is(name, long_names[i].name)) continue;
        (void)snprintf(out, NAME_BYTES, "%s", long_names[i].pattern);
        return true;
    }
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++) {
        if (!pith_span_is(name, short_names[i])) continue;
        (void)snprintf(out, NAME_BYTES, "%s", short_names[i]);
        return true;
    }
    return false;
}

/* One question: the compiled class and what finding needs. */
typedef struct question {
    pcre2_general_context *memory;
    pcre2_code *code;
    pcre2_match_data *match;
    char *text; /* [4 * CHUNK] */
} question;

static void question_deinit(question *q) {
    pcre2_match_data_free(q->match);
    pcre2_code_free(q->code);
    pcre2_general_context_free(q->memory);
    pith_free(q->text);
}

static pith_status question_init(question *q, const char *name, pith_error *error) {
    char pattern[NAME_BYTES + 8];
    int reason = 0;
    PCRE2_SIZE at = 0;
    *q = (question){0};
    (void)snprintf(pattern, sizeof pattern, "\\p{%s}+", name);
    q->memory = pcre2_general_context_create(pith_alloc_hook, pith_free_hook, NULL);
    q->text = pith_alloc((size_t)4 * CHUNK);
    pcre2_compile_context *context = q->memory ? pcre2_compile_context_create(q->memory) : NULL;
    if (context == NULL || q->text == NULL) {
        pcre2_compile_context_free(context);
        return pith_fail_memory(error, "a Unicode property", (uint64_t)4 * CHUNK);
    }
    q->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &reason, &at, context);
    pcre2_compile_context_free(context);
    if (q->code == NULL) {
        if (reason == PCRE2_ERROR_HEAP_FAILED) {
            return pith_fail_memory(error, "a Unicode property", 0);
        }
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "no Unicode property is called %s", name);
    }
    (void)pcre2_jit_compile(q->code, PCRE2_JIT_COMPLETE); /* faster where it is there */
    q->match = pcre2_match_data_create(1, q->memory);
    if (q->match == NULL) return pith_fail_memory(error, "a Unicode property", 0);
    return PITH_OK;
}

/* Code points first..first + n, none of them a surrogate. */
static pith_status ask(question *q, uint32_t first, uint32_t n, pith_code_set *set,
                       pith_error *error) {
    size_t size = 0, at = 0, counted = 0;
    uint32_t code = first;
    for (uint32_t i = 0; i < n; i++) size += pith_utf8_encode(first + i, q->text + size);
    for (;;) {
        int found =
            pcre2_match(q->code, (PCRE2_SPTR)q->text, size, at, PCRE2_NO_UTF_CHECK, q->match, NULL);
        if (found == PCRE2_ERROR_NOMATCH) return PITH_OK;
        if (found < 0) {
            return pith_fail(
                error, found == PCRE2_ERROR_NOMEMORY ? PITH_ERROR_MEMORY : PITH_ERROR_INTERNAL,
                "a Unicode property could not be listed (PCRE2 error %d)", found);
        }
        const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(q->match);
        for (; counted < offsets[0]; counted++) code += (q->text[counted] & 0xC0) != 0x80;
        uint32_t run = code;
        for (; counted < offsets[1]; counted++) code += (q->text[counted] & 0xC0) != 0x80;
        pith_code_set_add(set, run, code - 1);
        at = offsets[1];
    }
}

/* The planes that are not asked one by one. */
static pith_status ask_rest(question *q, pith_code_set *set, pith_error *error) {
    pith_code_set one = {0};
    pith_status status = ask(q, 0x4FFFF, 1, &one, error);
    if (status == PITH_OK && one.n > 0) {
        pith_code_set_add(set, 0x40000, 0xDFFFF);
        pith_code_set_add(set, 0xFFFFE, 0xFFFFF);
        pith_code_set_add(set, 0x10FFFE, 0x10FFFF);
    }
    one.n = 0;
    if (status == PITH_OK) status = ask(q, 0xF0000, 1, &one, error);
    if (status == PITH_OK && one.n > 0) {
        pith_code_set_add(set, 0xF0000, 0xFFFFD);
        pith_code_set_add(set, 0x100000, 0x10FFFD);
    }
    pith_code_set_deinit(&one);
    return status;
}

pith_status pith_code_set_add_property(pith_code_set *set, pith_span name, pith_error *error) {
    char spelt[NAME_BYTES];
    question q;
    if (pith_span_is(name, "ASCII")) {
        pith_code_set_add(set, 0, 0x7F);
        return PITH_OK;
    }
    if (!spell(name, spelt)) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "no Unicode property is called %.*s",
                         (int)(name.size < NAME_BYTES ? name.size : NAME_BYTES), name.data);
    }
    pith_status status = question_init(&q, spelt, error);
    for (uint32_t first = 0; first < 0xF0000 && status == PITH_OK; first += CHUNK) {
        if (first == 0xC000) {
            status = ask(&q, first, 0x1800, set, error); /* up to the surrogates */
            if (status == PITH_OK) status = ask(&q, 0xE000, 0x2000, set, error);
        } else if (first < 0x40000 || first >= 0xE0000) {
            status = ask(&q, first, CHUNK, set, error);
        }
    }
    if (status == PITH_OK) status = ask_rest(&q, set, error);
    question_deinit(&q);
    return status;
}
