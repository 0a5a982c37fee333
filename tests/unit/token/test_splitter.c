/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: every pre-tokenizer cuts as its pattern says. Two witnesses: piece counts and
 * checksums of the fixture text of formats page B4, and PCRE2 against the hand-written scanners on
 * random text.
 */
#include "base/memory.h"
#include "base/rng.h"
#include "token/char_class.h"
#include "token/splitter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char fixture[] =
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n\xF0\x9F\x9A\x80 (normal) "
    "\xF0\x9F\x98\xB6\xE2\x80\x8D\xF0\x9F\x8C\xAB\xEF\xB8\x8F (multiple emojis concatenated) "
    "\xE2\x9C\x85 \xF0\x9F\xA6\x99\xF0\x9F\xA6\x99 3 33 333 3333 33333 333333 3333333 33333333 "
    "3.3 3..3 3...3 "
    "\xE1\x9E\x80\xE1\x9E\xB6\xE1\x9E\x93\xE1\x9F\x8B\xE1\x9E\x8F\xE1\x9F\x82\xE1\x9E\x96"
    "\xE1\x9E\xB7\xE1\x9E\x9F\xE1\x9F\x81\xE1\x9E\x9F\xE1\x9E\xA2\xE1\x9E\xB6\xE1\x9E\x85"
    "\xF0\x9F\x98\x81 ?\xE6\x88\x91\xE6\x83\xB3\xE5\x9C\xA8"
    "apple\xE5\xB7\xA5\xE4\xBD\x9C"
    "1314151\xE5\xA4\xA9\xEF\xBD\x9E ------======= "
    "\xD0\xBD\xD0\xB5\xD1\x89\xD0\xBE \xD0\xBD\xD0\xB0 "
    "\xD0\x91\xD1\x8A\xD0\xBB\xD0\xB3\xD0\xB0\xD1\x80\xD1\x81\xD0\xBA\xD0\xB8 "
    "''''''```````\"\"\"\"......!!!!!!?????? I've been 'told he's there, 'RE you sure? 'M not sure "
    "I'll make it, 'D you like some tea? We'Ve a'lL";

static uint32_t crc32_of(uint32_t crc, const void *data, size_t size) {
    const unsigned char *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

struct row {
    const char *name;
    size_t pieces;
    uint32_t crc;
};

/* Formats page B4, except four rows. gpt-4o, tekken and kimi-k2 stand there as another program's
 * approximation; here they are the models' own patterns (gpt-4o equals the page's
 * granite_emb_multi; tekken and kimi-k2 as Python's regex module cuts them). superbpe stands there
 * with 11 empty pieces, which are no pieces here. */
static const struct row rows[] = {
    {"default", 125, 0xf9c67e4f},        {"llama-bpe", 102, 0x51295093},
    {"dbrx", 102, 0x51295093},           {"smaug-bpe", 102, 0x51295093},
    {"chatglm-bpe", 102, 0x51295093},    {"jais-2", 102, 0x51295093},
    {"minicpm5", 102, 0x51295093},       {"deepseek-llm", 114, 0x69a3e49a},
    {"deepseek-coder", 163, 0x206b18ab}, {"falcon", 118, 0xc7d11a45},
    {"gpt-2", 91, 0x2f79bba7},           {"mpt", 91, 0x2f79bba7},
    {"starcoder", 136, 0x722da197},      {"smollm", 136, 0x722da197},
    {"qwen2", 127, 0x72ab297f},          {"bailingmoe", 127, 0x72ab297f},
    {"seed-coder", 127, 0x72ab297f},     {"bloom", 64, 0xbde40661},
    {"viking", 111, 0x59ef81e7},         {"chameleon", 221, 0x32533f49},
    {"deepseek-v3", 101, 0x6f4a7e73},    {"granite-embed-multi-97m", 91, 0xb84ed7f4},
    {"gpt-4o", 91, 0xb84ed7f4},          {"superbpe", 40, 0x3c46dc55},
    {"kimi-k2", 93, 0xc8101ffe},         {"afmoe", 102, 0x06ab9e3c},
    {"youtu", 118, 0xffc11879},          {"exaone-moe", 106, 0x8368dfbd},
    {"qwen35", 122, 0x94531012},         {"tiny_aya", 91, 0x08ab0017},
    {"gemma4", 16, 0x2bcecbaf},          {"whitespace", 94, 0xe983ef55},
    {"laguna", 141, 0xc2cb9242},         {"tekken", 122, 0x5f966a8d},
};

struct cut {
    size_t ends[2048];
    size_t n;
};

static pith_splitter *make_splitter(const pith_pre_tokenizer *pre, bool only_patterns) {
    pith_splitter *splitter = NULL;
    pith_error error = {0};
    if (pith_splitter_new(pre, only_patterns, &splitter, &error)) fail_msg("%s", error.text);
    return splitter;
}

/* Cuts, with a few ends at a time; checks that the pieces are not empty and cover the text. */
static void cut_text(const pith_splitter *splitter, pith_span text, size_t at_once,
                     struct cut *cut) {
    pith_split split;
    assert_true(pith_split_open(&split, splitter, text));
    cut->n = 0;
    for (;;) {
        size_t room = 2048 - cut->n;
        size_t n = pith_split_next(&split, cut->ends + cut->n, room < at_once ? room : at_once);
        if (!n) break;
        cut->n += n;
    }
    assert_false(split.failed);
    pith_split_close(&split);
    for (size_t i = 0, before = 0; i < cut->n; before = cut->ends[i++])
        assert_true(cut->ends[i] > before);
    assert_int_equal(cut->n ? cut->ends[cut->n - 1] : 0, text.size);
}

static uint32_t crc_of_pieces(pith_span text, const struct cut *cut) {
    uint32_t crc = 0;
    for (size_t i = 0, at = 0; i < cut->n; at = cut->ends[i++]) {
        crc = crc32_of(crc, text.data + at, cut->ends[i] - at);
        crc = crc32_of(crc, "\x1F", 1);
    }
    return crc;
}

static void fixture_is_cut_as_listed(void **state) {
    (void)state;
    pith_span text = pith_span_of(fixture);
    assert_int_equal(text.size, 431);
    assert_int_equal(crc32_of(0, text.data, text.size), 0x4ab697c8);
    static struct cut cut;
    int wrong = 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int only = 0; only < 2; only++) {
            const pith_pre_tokenizer *pre = pith_pre_tokenizer_find(pith_span_of(rows[r].name));
            assert_non_null(pre);
            pith_splitter *splitter = make_splitter(pre, only);
            cut_text(splitter, text, 7, &cut);
            pith_splitter_free(splitter);
            uint32_t crc = crc_of_pieces(text, &cut);
            if (cut.n == rows[r].pieces && crc == rows[r].crc) continue;
            print_error("%s%s: %zu pieces crc %08x, expected %zu %08x\n", rows[r].name,
                        only ? " (patterns)" : "", cut.n, crc, rows[r].pieces, rows[r].crc);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

/* Characters of every class that some pattern asks for; the last ones are ill-formed. Assigned
 * since Unicode 10, so that libraries of different age agree. */
static const char *const alphabet[] = {"a",
                                       "b",
                                       "s",
                                       "t",
                                       "re",
                                       "ve",
                                       "ll",
                                       "d",
                                       "m",
                                       "A",
                                       "B",
                                       "S",
                                       "T",
                                       "RE",
                                       "LL",
                                       "z",
                                       "Z",
                                       "'",
                                       "'",
                                       "'s",
                                       "'S",
                                       "'re",
                                       "'lL",
                                       "0",
                                       "1",
                                       "9",
                                       "77",
                                       "123456",
                                       " ",
                                       " ",
                                       "  ",
                                       "\t",
                                       "\n",
                                       "\r",
                                       "\r\n",
                                       "\v",
                                       "\f",
                                       ".",
                                       ",",
                                       "!",
                                       "?",
                                       "/",
                                       "-",
                                       "_",
                                       "(",
                                       ")",
                                       "|",
                                       "\"",
                                       "#",
                                       "$",
                                       "+",
                                       "<",
                                       "=",
                                       ">",
                                       "^",
                                       "`",
                                       "~",
                                       "{",
                                       "\\",
                                       "@",
                                       "[",
                                       "]",
                                       "<sentinel:12>",
                                       "IMGIMGABZ",
                                       "\x01",
                                       "\x1F",
                                       "\x7F",
                                       "\xC2\x85" /* next line */,
                                       "\xC2\xA0" /* no-break space */,
                                       "\xE2\x80\x83" /* em space */,
                                       "\xE3\x80\x80" /* ideographic space */,
                                       "\xE1\xA0\x8E" /* Mongolian vowel separator: no space */,
                                       "\xE2\x80\xA8" /* line separator */,
                                       "\xE2\x80\x8D" /* joiner */,
                                       "\xC3\xA9" /* e acute */,
                                       "\xC3\x89" /* E acute */,
                                       "\xC7\x85" /* title case */,
                                       "\xCA\xB0" /* modifier letter */,
                                       "\xC2\xAA" /* feminine ordinal: Lo */,
                                       "\xC5\xBF" /* long s */,
                                       "\xE4\xB8\xAD" /* Han */,
                                       "\xE6\x96\x87",
                                       "\xE3\x81\x82" /* Hiragana */,
                                       "\xE3\x83\x84" /* Katakana */,
                                       "\xED\x95\x9C" /* Hangul */,
                                       "\xE3\x80\x87" /* Han zero: Nl */,
                                       "\xE3\x80\x85" /* Han repeat: Lm */,
                                       "\xD0\xB6" /* Cyrillic */,
                                       "\xD0\x96",
                                       "\xD7\x90" /* Hebrew */,
                                       "\xE0\xB8\x81" /* Thai */,
                                       "\xE1\x9E\x80" /* Khmer */,
                                       "\xCC\x81" /* combining acute: Mn */,
                                       "\xE0\xA4\x83" /* visarga: Mc */,
                                       "\xE2\x83\x9D" /* Me */,
                                       "\xE1\x9E\xB6" /* Khmer vowel: Mc */,
                                       "\xD9\xA3" /* Arabic digit */,
                                       "\xC2\xBD" /* one half: No */,
                                       "\xE2\x85\xA7" /* Roman eight: Nl */,
                                       "\xC2\xB2" /* squared: No */,
                                       "\xC2\xAB" /* Pi */,
                                       "\xE2\x80\x99" /* Pf */,
                                       "\xE2\x80\xA6" /* ellipsis */,
                                       "\xE3\x80\x82" /* full stop */,
                                       "\xEF\xBC\x8C" /* full-width comma */,
                                       "\xE2\x82\xAC" /* Sc */,
                                       "\xE2\x88\x91" /* Sm */,
                                       "\xF0\x9F\x98\x80" /* emoji */,
                                       "\xEF\xB8\x8F" /* variation selector: Mn */,
                                       "\xEF\xBF\xBD",
                                       "\xF0\x90\x90\x80" /* Deseret Lu */,
                                       "\xF0\x9D\x9F\x99" /* mathematical one */,
                                       "\xEE\x80\x80" /* private use */,
                                       "\xE2\x96\x81" /* lower block */,
                                       "\x80",
                                       "\xC3",
                                       "\xE4\xB8",
                                       "\xF0\x9F",
                                       "\xFF",
                                       "\xED\xA0\x80",
                                       "\xC0\xAF"};

static size_t random_below(pith_rng *rng, size_t n) {
    return (size_t)(pith_rng_next(rng) % n);
}

static const char *const blanks[] = {" ", " ", " ",  "\n", "\r", "\t",
                                     "a", ".", "'s", "1",  "  ", "    "};

/* Few kinds of characters in one text make long runs of classes likely. kind: 0 any characters, 1
 * ASCII, 2 mostly white space. */
static size_t random_text(pith_rng *rng, char *text, size_t n_parts, int kind) {
    size_t size = 0, kinds = 1 + random_below(rng, 12), n_from = 0;
    const size_t n_alphabet = sizeof alphabet / sizeof *alphabet;
    const char *const *from = kind == 2 ? blanks : alphabet, *pick[12];
    if (kind == 2) n_from = sizeof blanks / sizeof *blanks;
    while (kind != 2 && n_from < n_alphabet && (!kind || (unsigned char)from[n_from][0] < 0x80))
        n_from++;
    for (size_t k = 0; k < kinds; k++) pick[k] = from[random_below(rng, n_from)];
    for (size_t i = 0; i < n_parts; i++) {
        const char *part = pick[random_below(rng, kinds)];
        memcpy(text + size, part, strlen(part));
        size += strlen(part);
    }
    return size;
}

static void print_cut(const char *what, const struct cut *cut) {
    print_error("%s:", what);
    for (size_t i = 0; i < cut->n; i++) print_error(" %zu", cut->ends[i]);
    print_error("\n");
}

static void scanners_cut_as_their_patterns(void **state) {
    (void)state;
    static struct cut fast, slow;
    char text[4096];
    const uint64_t seed = 20261129;
    pith_rng rng;
    pith_rng_init(&rng, seed);
    const pith_pre_tokenizer *pre;
    for (size_t p = 0; (pre = pith_pre_tokenizer_at(p)); p++) {
        pith_splitter *scanner = make_splitter(pre, false), *pattern = make_splitter(pre, true);
        for (int round = 0; round < 600; round++) {
            pith_span span = {text, random_text(&rng, text, random_below(&rng, 120), round % 3)};
            cut_text(scanner, span, 1 + random_below(&rng, 200), &fast);
            cut_text(pattern, span, 1 + random_below(&rng, 50), &slow);
            if (fast.n == slow.n && !memcmp(fast.ends, slow.ends, fast.n * sizeof *fast.ends))
                continue;
            print_cut("scanner", &fast);
            print_cut("pattern", &slow);
            for (size_t i = 0; i < span.size; i++) print_error("\\x%02X", (unsigned char)text[i]);
            fail_msg("\n%s, round %d, seed %llu", pre->name, round, (unsigned long long)seed);
        }
        pith_splitter_free(scanner);
        pith_splitter_free(pattern);
    }
}

/* Counting from the right has no pattern to compare with. */
static void digits_are_grouped_from_the_right(void **state) {
    (void)state;
    static struct cut cut;
    const size_t expected[] = {2, 3, 6, 9, 10, 12, 13, 16, 19, 20};
    pith_span text = pith_span_of("ab1234567x12 123456.");
    pith_splitter *splitter =
        make_splitter(pith_pre_tokenizer_find(pith_span_of("tiny_aya")), false);
    cut_text(splitter, text, 3, &cut);
    pith_splitter_free(splitter);
    assert_int_equal(cut.n, 10);
    assert_memory_equal(cut.ends, expected, sizeof expected);
}

static void unknown_names_are_unknown(void **state) {
    (void)state;
    assert_null(pith_pre_tokenizer_find(pith_span_of("gpt-22")));
    assert_null(pith_pre_tokenizer_find(pith_span_of("gpt-")));
    assert_string_equal(pith_pre_tokenizer_find((pith_span){0})->name, "default");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixture_is_cut_as_listed),
        cmocka_unit_test(scanners_cut_as_their_patterns),
        cmocka_unit_test(digits_are_grouped_from_the_right),
        cmocka_unit_test(unknown_names_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
