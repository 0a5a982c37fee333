/* SPDX-License-Identifier: Apache-2.0
 * What constrained output costs: time of a mask, of asking for one id and of accepting one, over real vocabularies and texts that
 * fit the grammars.
 *   bench_grammar MODEL.gguf [-v]          -v: every mask with its text
 * Each text is followed three times by one matcher: "first" learns everything, "again" knows the grammar's states. */
#include "base/clock.h"
#include "engine/engine.h"
#include "sample/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IDS = 8192, N_CHOICES = 1000, MEMORY = 64 << 20 };

static const char *const json_grammar =
    "root   ::= object\n"
    "value  ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws (pair (\",\" ws pair)*)? ws \"}\"\n"
    "pair   ::= string ws \":\" ws value ws\n"
    "array  ::= \"[\" ws (value ws (\",\" ws value ws)*)? \"]\"\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char   ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?\n"
    "ws     ::= [ \\t\\n]{0,20}\n";
static const char *const json_text =
    "{\n  \"name\": \"Ada Lovelace\",\n  \"born\": 1815,\n  \"fields\": [\"mathematics\", "
    "\"computing\", \"poetical science\"],\n"
    "  \"about\": \"An English mathematician and writer, known for her work on Charles Babbage's "
    "\\\"Analytical Engine\\\". She was the "
    "first to recognise that the machine had applications beyond pure calculation \\u2014 and "
    "wrote the first algorithm.\",\n"
    "  \"address\": {\"city\": \"London\", \"zip\": null, \"position\": [51.5072, -0.1276]},\n  "
    "\"alive\": false,\n"
    "  \"sch\xC3\xB6n\": "
    "\"\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE3\x81\xAE\xE3\x83\x86\xE3\x82\xAD\xE3\x82\xB9\xE3\x83"
    "\x88, \xD0\xBF\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82, caf\xC3\xA9 \xF0\x9F\x99\x82\"\n}";
/* A schema's shape: fixed keys in order, strings of limited length. */
static const char *const schema_grammar =
    "root   ::= \"{\" ws \"\\\"name\\\":\" ws short \",\" ws \"\\\"age\\\":\" ws age \",\" ws "
    "\"\\\"kind\\\":\" ws kind \",\" ws "
    "\"\\\"tags\\\":\" ws \"[\" (short (\",\" ws short){0,9})? \"]\" \",\" ws \"\\\"text\\\":\" ws "
    "long ws \"}\"\n"
    "short  ::= \"\\\"\" char{1,40} \"\\\"\"\n"
    "long   ::= \"\\\"\" char{0,4000} \"\\\"\"\n"
    "age    ::= \"0\" | [1-9] [0-9]{0,2}\n"
    "kind   ::= \"\\\"person\\\"\" | \"\\\"place\\\"\" | \"\\\"thing\\\"\"\n"
    "char   ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n"
    "ws     ::= \" \"?\n";
static const char *const schema_text =
    "{\"name\": \"Ada Lovelace\", \"age\": 36, \"kind\": \"person\", \"tags\": [\"mathematics\", "
    "\"analytical engine\", \"poetical science\"], "
    "\"text\": \"An English mathematician and writer, chiefly known for her work on the proposed "
    "mechanical general-purpose computer. "
    "She was the first to recognise that the machine had applications beyond pure calculation. "
    "Between 1842 and 1843 she translated an "
    "article by the military engineer Luigi Menabrea about the Analytical Engine, supplementing it "
    "with seven long notes.\"}";
static const char *const string_grammar =
    "root ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]{0,1000} \"\\\"\"\n";

typedef struct times {
    double mask[MAX_IDS], allows[MAX_IDS], accept[MAX_IDS];
    size_t n;
} times;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *what, double *us, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += us[i];
    qsort(us, n, sizeof *us, by_value);
    printf("  %-7s mean %8.2f  median %8.2f  p99 %8.2f  max %8.2f us\n", what, sum / (double)n,
           us[n / 2], us[n * 99 / 100], us[n - 1]);
}

static double us_since(uint64_t start) {
    return (double)(pith_clock_ns() - start) / 1e3;
}

static void follow(pith_matcher *matcher, const pith_model *model, const int32_t *ids, size_t n,
                   bool verbose, times *t) {
    pith_matcher_reset(matcher);
    t->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t start = pith_clock_ns();
        bool allowed = pith_matcher_allows(matcher, ids[i]);
        t->allows[i] = us_since(start);
        start = pith_clock_ns();
        const uint32_t *mask = pith_matcher_mask(matcher);
        t->mask[i] = us_since(start);
        bool bit = (mask[ids[i] / 32] >> (ids[i] % 32) & 1) != 0;
        start = pith_clock_ns();
        bool accepted = pith_matcher_accept(matcher, ids[i]);
        t->accept[i] = us_since(start);
        if (verbose) printf("    %8.2f us  %s\n", t->mask[i], pith_token_piece(model, ids[i]));
        if (!allowed || !bit || !accepted) {
            printf("  id %zu (%s) is not allowed %s\n", i, pith_token_piece(model, ids[i]),
                   pith_matcher_failed(matcher) ? pith_matcher_failed(matcher) : "");
            exit(1);
        }
        t->n++;
    }
    if (!pith_matcher_may_end(matcher)) printf("  the text is not complete\n");
}

static void bench(const char *name, pith_grammar *grammar, const pith_model *model,
                  const pith_token_trie *trie, const char *text, bool verbose) {
    static times t;
    static int32_t ids[MAX_IDS];
    size_t n = 0;
    pith_matcher *matcher = NULL;
    pith_error error;
    uint64_t start = pith_clock_ns();
    if (pith_tokenize(model, text, strlen(text), 0, ids, MAX_IDS, &n, &error) != PITH_OK ||
        pith_matcher_new(grammar, trie, MEMORY, &matcher, &error) != PITH_OK) {
        printf("%s: %s\n", name, error.text);
        exit(1);
    }
    printf("%s: %zu bytes, %zu ids, matcher made in %.0f us\n", name, strlen(text), n,
           us_since(start));
    for (int round = 0; round < 3; round++) {
        follow(matcher, model, ids, n, verbose && round != 1, &t);
        if (round == 1) continue;
        printf(" %s\n", round == 0 ? "first" : "again");
        print_times("mask", t.mask, t.n);
        print_times("allows", t.allows, t.n);
        print_times("accept", t.accept, t.n);
    }
    pith_matcher_free(matcher);
    pith_grammar_drop(grammar);
}

static pith_grammar *gbnf(const char *text) {
    pith_grammar *grammar = NULL;
    pith_error error;
    uint64_t start = pith_clock_ns();
    if (pith_grammar_from_gbnf(text, strlen(text), NULL, &grammar, &error) != PITH_OK) {
        printf("%s\n", error.text);
        exit(1);
    }
    printf("grammar made in %.0f us; ", us_since(start));
    return grammar;
}

static pith_grammar *choices(void) {
    static char texts[N_CHOICES][64];
    const char *list[N_CHOICES];
    size_t sizes[N_CHOICES];
    pith_grammar *grammar = NULL;
    for (int i = 0; i < N_CHOICES; i++) {
        sizes[i] = (size_t)snprintf(texts[i], sizeof texts[i], "%s %s number %d",
                                    i % 3 ? "the" : "a", i % 7 ? "river" : "mountain", i);
        list[i] = texts[i];
    }
    if (pith_grammar_from_choices(list, sizes, N_CHOICES, &grammar, NULL) != PITH_OK) exit(1);
    return grammar;
}

int main(int argc, char **argv) {
    static char string_text[1100];
    pith_model_options options = {.size = sizeof options, .vocab_only = true};
    pith_model *model = NULL;
    pith_error error;
    bool verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
    if (argc < 2 || pith_model_open(argv[1], &options, &model, &error) != PITH_OK) {
        fprintf(stderr, "bench_grammar MODEL.gguf [-v]: %s\n", argc < 2 ? "no model" : error.text);
        return 2;
    }
    const pith_token_trie *trie = NULL;
    uint64_t start = pith_clock_ns();
    if (pith_model_get_trie(model, &trie, &error) != PITH_OK) return 1;
    printf("vocabulary of %d, trie made in %.0f us\n", pith_model_describe(model).n_vocab,
           us_since(start));
    for (size_t i = 0; i < 1002; i++)
        string_text[i] = (char)(i % 7 == 6 ? ' ' : 'a' + (char)(i * i % 26));
    string_text[0] = string_text[1001] = '"';
    bench("JSON object", gbnf(json_grammar), model, trie, json_text, verbose);
    bench("schema", gbnf(schema_grammar), model, trie, schema_text, verbose);
    bench("string of at most 1000", gbnf(string_grammar), model, trie, string_text, verbose);
    bench("1000 choices", choices(), model, trie, "the mountain number 994", verbose);
    pith_model_close(model);
    return 0;
}
