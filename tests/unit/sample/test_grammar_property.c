/* SPDX-License-Identifier: Apache-2.0
 * The promise of constrained output, on random grammars, vocabularies and texts: an id is allowed exactly when the text with its
 * bytes behind is the start of a text of the grammar.
 *
 * `begins` and `ends_at` below are an independent recogniser: they read the grammar's tree directly, position by position,
 * without automata. Texts are short, so that it may be slow. */
#include "sample/grammar.h"

#include "base/rng.h"
#include "support/brief.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NODES = 1000,
    MAX_KIDS = 4,
    MAX_TEXT = 62,
    N_RULES = 4,
    MAX_VOCAB = 120,
    BUILD_DEPTH = 4
};

typedef enum kind { BYTES, CLASS, SEQUENCE, CHOICE, REPEAT, UNTIL, REFER } kind;
typedef struct node {
    kind kind;
    char bytes[8];
    size_t size;
    pith_code_range ranges[3];
    size_t n_ranges;
    bool negated;
    int kids[MAX_KIDS], n_kids;
    uint32_t min, max;
    int rule;
    pith_grammar_node built;
} node;

static struct {
    node nodes[MAX_NODES];
    int n_nodes;
    int rules[N_RULES]; /* to nodes */
    pith_grammar_rule built[N_RULES];
    pith_grammar_builder *builder;
    bool has_strings;
    pith_rng rng;
    uint64_t seed;
} g;

static uint32_t below(uint32_t n) {
    return (uint32_t)(pith_rng_uniform(&g.rng) * n);
}

/* ---- the recogniser ---- */

static struct {
    char bytes[MAX_TEXT];
    size_t n;
    uint8_t known[MAX_NODES][MAX_TEXT + 1]; /* 1: ends known, 2: begins known, 4: begins */
    uint64_t ends[MAX_NODES][MAX_TEXT + 1]; /* bit j: the node matches [i, j) */
    int depth;
} t;

static void set_text(const char *bytes, size_t n) {
    memcpy(t.bytes, bytes, n);
    t.n = n;
    memset(t.known, 0, sizeof t.known);
    t.depth = 0;
}

static bool in_class(const node *x, uint32_t code) {
    bool inside = false;
    if ((code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return false;
    for (size_t i = 0; i < x->n_ranges; i++)
        inside |= code >= x->ranges[i].first && code <= x->ranges[i].last;
    return inside != x->negated;
}

/* Is [i, n) the beginning, not the whole, of the form of a character of the class? */
static bool begins_character(const node *x, size_t i) {
    const uint8_t first = (uint8_t)t.bytes[i];
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1, have = t.n - i;
    const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (have >= length || first > 0xF4) return false;
    uint32_t code = first & (0x7Fu >> length);
    for (size_t k = 1; k < have; k++) {
        if (((uint8_t)t.bytes[i + k] & 0xC0) != 0x80) return false;
        code = code << 6 | ((uint8_t)t.bytes[i + k] & 0x3Fu);
    }
    unsigned shift = 6 * (unsigned)(length - have);
    for (uint32_t c = code << shift; c <= (code << shift) + (1u << shift) - 1; c++)
        if (c >= least[length] && in_class(x, c)) return true;
    return false;
}

static bool holds_end(const char *text, size_t n, const node *x) {
    for (size_t i = 0; i + x->size <= n; i++)
        if (memcmp(text + i, x->bytes, x->size) == 0) return true;
    return false;
}

/* w of [i, j): does the end first appear behind it in w + end? */
static bool until_ends(const node *x, size_t i, size_t j) {
    char whole[MAX_TEXT + 8];
    memcpy(whole, t.bytes + i, j - i);
    memcpy(whole + (j - i), x->bytes, x->size);
    return x->size == 0 || !holds_end(whole, j - i + x->size - 1, x);
}

static uint64_t ends_at(int number, size_t i);
static bool begins(int number, size_t i);

static uint64_t all_ends(int kid, uint64_t from) {
    uint64_t to = 0;
    for (size_t p = 0; p <= t.n; p++)
        if (from >> p & 1) to |= ends_at(kid, p);
    return to;
}
static bool any_begins(int kid, uint64_t from) {
    for (size_t p = 0; p <= t.n; p++)
        if ((from >> p & 1) && begins(kid, p)) return true;
    return false;
}

/* Ends after min..max rounds from i; *may_begin: the rest of the text is the start of some round. */
static uint64_t rounds(const node *x, size_t i, bool *may_begin) {
    uint64_t from = (uint64_t)1 << i, ends = x->min == 0 ? from : 0;
    for (uint32_t round = 0; round < x->max && round < x->min + 100 && from != 0; round++) {
        *may_begin = *may_begin || any_begins(x->kids[0], from);
        from = all_ends(x->kids[0], from);
        if (round + 1 >= x->min) ends |= from;
    }
    return ends;
}

static uint64_t find_ends(const node *x, size_t i) {
    uint64_t ends = 0;
    uint32_t code;
    bool unused = false;
    switch (x->kind) {
    case BYTES:
        return i + x->size <= t.n && memcmp(t.bytes + i, x->bytes, x->size) == 0
                   ? (uint64_t)1 << (i + x->size)
                   : 0;
    case CLASS:
        if (i == t.n) return 0;
        size_t length = pith_utf8_decode(t.bytes + i, t.n - i, &code);
        return code != PITH_UTF8_INVALID && in_class(x, code) ? (uint64_t)1 << (i + length) : 0;
    case SEQUENCE:
        ends = (uint64_t)1 << i;
        for (int k = 0; k < x->n_kids; k++) ends = all_ends(x->kids[k], ends);
        return ends;
    case CHOICE:
        for (int k = 0; k < x->n_kids; k++) ends |= ends_at(x->kids[k], i);
        return ends;
    case REPEAT: return rounds(x, i, &unused);
    case UNTIL:
        for (size_t j = i; j <= t.n; j++)
            if (until_ends(x, i, j)) ends |= (uint64_t)1 << j;
        return ends;
    case REFER: return ends_at(g.rules[x->rule], i);
    }
    return 0;
}

static uint64_t ends_at(int number, size_t i) {
    if (t.known[number][i] & 1) return t.ends[number][i];
    assert_true(++t.depth < 20000); /* else the grammar is left recursive */
    uint64_t ends = find_ends(&g.nodes[number], i);
    t.depth--;
    t.known[number][i] |= 1;
    t.ends[number][i] = ends;
    return ends;
}

static bool find_begins(const node *x, size_t i) {
    bool found = false;
    if (i == t.n) return true;
    switch (x->kind) {
    case BYTES: return t.n - i <= x->size && memcmp(t.bytes + i, x->bytes, t.n - i) == 0;
    case CLASS: return (find_ends(x, i) >> t.n & 1) || begins_character(x, i);
    case SEQUENCE: {
        uint64_t from = (uint64_t)1 << i;
        for (int k = 0; k < x->n_kids && !found; k++) {
            found = any_begins(x->kids[k], from);
            from = all_ends(x->kids[k], from);
        }
        return found;
    }
    case CHOICE:
        for (int k = 0; k < x->n_kids && !found; k++) found = begins(x->kids[k], i);
        return found;
    case REPEAT: (void)rounds(x, i, &found); return found;
    case UNTIL: return x->size == 0 || !holds_end(t.bytes + i, t.n - i, x);
    case REFER: return begins(g.rules[x->rule], i);
    }
    return false;
}

/* Is [i, n) the start of a text of the node? */
static bool begins(int number, size_t i) {
    if (t.known[number][i] & 2) return (t.known[number][i] & 4) != 0;
    assert_true(++t.depth < 20000);
    bool found = find_begins(&g.nodes[number], i);
    t.depth--;
    t.known[number][i] |= found ? 6 : 2;
    return found;
}

/* ---- random grammars ---- */

static const char *const letters[] = {
    "a", "b", "c", "\xC3\xA9", "\xC3\xA8", "\xE2\x82\xAC", "\xF0\x9F\x99\x82", "d"};
enum { N_LETTERS = 8 };

static int new_node(kind of) {
    assert_true(g.n_nodes < MAX_NODES);
    g.nodes[g.n_nodes] = (node){.kind = of};
    return g.n_nodes++;
}

static void random_class(node *x) {
    static const pith_code_range ranges[] = {{'a', 'b'},       {'b', 'b'},         {'c', 'z'},
                                             {0xE0, 0xFF},     {0xE9, 0xE9},       {0x2000, 0x20FF},
                                             {0x80, 0x10FFFF}, {0x1F600, 0x1F64F}, {0, 0x7FF},
                                             {0xD000, 0xE100}, {'a', 0xFFFFF}};
    x->n_ranges = 1 + below(3);
    for (size_t i = 0; i < x->n_ranges; i++)
        x->ranges[i] = ranges[below(sizeof ranges / sizeof *ranges)];
    x->negated = below(4) == 0;
    bool any = false;
    for (uint32_t c = 0; c <= 0x10FFFF && !any; c += 1) any = in_class(x, c);
    if (!any) x->negated = !x->negated;
}

static void random_bytes(node *x, uint32_t most) {
    for (uint32_t i = below(most); x->size < 4 && i > 0; i--) {
        const char *letter = letters[below(N_LETTERS)];
        if (x->size + strlen(letter) > sizeof x->bytes) break;
        memcpy(x->bytes + x->size, letter, strlen(letter));
        x->size += strlen(letter);
    }
}

static void random_counts(node *x) {
    static const uint32_t counts[][2] = {{0, 1},  {0, UINT32_MAX}, {1, UINT32_MAX}, {0, 3},
                                         {2, 2},  {2, 5},          {3, UINT32_MAX}, {0, 1000000},
                                         {1, 30}, {20, 22},        {0, 18},         {17, 40}};
    size_t which = below(sizeof counts / sizeof *counts);
    x->min = counts[which][0];
    x->max = counts[which][1];
}

static pith_grammar_node built(const node *x) {
    pith_grammar_node kids[MAX_KIDS];
    for (int k = 0; k < x->n_kids; k++) kids[k] = g.nodes[x->kids[k]].built;
    switch (x->kind) {
    case BYTES: return pith_grammar_bytes(g.builder, x->bytes, x->size);
    case CLASS: return pith_grammar_class(g.builder, x->ranges, x->n_ranges, x->negated);
    case SEQUENCE: return pith_grammar_sequence(g.builder, kids, (size_t)x->n_kids);
    case CHOICE: return pith_grammar_choice(g.builder, kids, (size_t)x->n_kids);
    case REPEAT: return pith_grammar_repeat(g.builder, kids[0], x->min, x->max);
    case UNTIL: return pith_grammar_until(g.builder, x->bytes, x->size);
    case REFER: return pith_grammar_refer(g.builder, g.built[x->rule]);
    }
    return 0;
}

/* What strings are: characters but one, so and so often, then that one. Few marks and counts, so
 * that several strings share their rounds. */
static int random_string(void) {
    int number = new_node(SEQUENCE), repeat = new_node(REPEAT), inside = new_node(CLASS),
        mark = new_node(BYTES);
    const char *letter = letters[below(4) == 0 ? 3 : 1];
    uint32_t code = 0;
    (void)pith_utf8_decode(letter, strlen(letter), &code);
    node *class = &g.nodes[inside], *end = &g.nodes[mark];
    class->negated = true;
    class->n_ranges = 1;
    class->ranges[0] = (pith_code_range){code, code};
    end->size = strlen(letter);
    memcpy(end->bytes, letter, end->size);
    class->built = built(class);
    end->built = built(end);
    random_counts(&g.nodes[repeat]);
    g.nodes[repeat].n_kids = 1;
    g.nodes[repeat].kids[0] = inside;
    g.nodes[repeat].built = built(&g.nodes[repeat]);
    g.nodes[number].n_kids = 1 + (below(8) != 0);
    g.nodes[number].kids[0] = repeat;
    g.nodes[number].kids[1] = mark;
    g.nodes[number].built = built(&g.nodes[number]);
    return number;
}

static int random_node(int depth) {
    static const kind kinds[] = {BYTES,  BYTES,  CLASS,  SEQUENCE, SEQUENCE, CHOICE,
                                 CHOICE, REPEAT, REPEAT, REFER,    REFER,    UNTIL};
    if (g.has_strings && below(3) == 0) return random_string();
    kind of = depth == 0 ? (kind)below(2) : kinds[below(sizeof kinds / sizeof *kinds)];
    int number = new_node(of);
    node *x = &g.nodes[number];
    if (of == BYTES) random_bytes(x, 4);
    if (of == UNTIL) random_bytes(x, 4);
    if (of == CLASS) random_class(x);
    if (of == REFER) x->rule = (int)below(N_RULES);
    if (of == REPEAT) random_counts(x);
    if (of == SEQUENCE || of == CHOICE) x->n_kids = 1 + (int)below(MAX_KIDS);
    if (of == REPEAT) x->n_kids = 1;
    for (int k = 0; k < x->n_kids; k++)
        x->kids[k] = k > 0 && below(6) == 0
                         ? x->kids[0]
                         : random_node(depth - 1); /* some parts are used twice */
    x->built = built(x);
    return number;
}

static pith_grammar *random_grammar(void) {
    pith_grammar *grammar = NULL;
    pith_error error = {0};
    g.n_nodes = 0;
    g.has_strings = below(2) == 0;
    assert_int_equal(pith_grammar_builder_new(&g.builder, &error), PITH_OK);
    for (int i = 0; i < N_RULES; i++) g.built[i] = pith_grammar_declare(g.builder, "rule");
    for (int i = 0; i < N_RULES; i++) {
        g.rules[i] = random_node(1 + (int)below(BUILD_DEPTH));
        pith_grammar_define(g.builder, g.built[i], g.nodes[g.rules[i]].built);
    }
    pith_status status =
        pith_grammar_build(g.builder, pith_grammar_refer(g.builder, g.built[0]), &grammar, &error);
    assert_true(status == PITH_OK ||
                status == PITH_ERROR_FORMAT); /* left recursion, or never ends */
    pith_grammar_builder_free(g.builder);
    return grammar;
}

/* ---- random vocabularies ---- */

static struct {
    char bytes[MAX_VOCAB][32];
    pith_span pieces[MAX_VOCAB];
    bool is_end[MAX_VOCAB];
    int32_t n;
} v;

static void add_piece(const char *bytes, size_t size, bool is_end) {
    memcpy(v.bytes[v.n], bytes, size);
    v.pieces[v.n] = (pith_span){v.bytes[v.n], size};
    v.is_end[v.n++] = is_end;
}

static pith_token_trie *random_vocabulary(void) {
    v.n = 0;
    add_piece("</s>", 4, true);
    add_piece("", 0, false);
    for (int i = 0; i < N_LETTERS; i++) { /* whole characters and their bytes */
        add_piece(letters[i], strlen(letters[i]), false);
        for (size_t k = 0; letters[i][1] != 0 && k < strlen(letters[i]); k++)
            add_piece(letters[i] + k, 1, false);
    }
    for (uint32_t i = 0; i < 4; i++) { /* long ones, of many characters */
        char bytes[32];
        size_t n = 0, most = 17 + below(6);
        while (n < most) bytes[n++] = below(4) == 0 ? 'b' : "abcd"[i];
        add_piece(bytes, n, false);
    }
    while (v.n < MAX_VOCAB - 1) {
        char bytes[16];
        size_t n = 0;
        for (uint32_t k = 2 + below(3); k > 0; k--) {
            const char *letter = letters[below(N_LETTERS)];
            size_t from = below(5) == 0 ? below((uint32_t)strlen(letter)) : 0, to = strlen(letter);
            if (k == 1 && below(3) == 0) to = from + below((uint32_t)(to - from)) + (n == 0);
            memcpy(bytes + n, letter + from, to - from);
            n += to - from;
            if (n > 11) break;
        }
        if (n > 0) add_piece(bytes, n, false);
    }
    add_piece("", 0, true);
    pith_token_trie *trie = NULL;
    assert_int_equal(pith_token_trie_new(v.pieces, v.is_end, v.n, &trie, NULL), PITH_OK);
    return trie;
}

/* ---- the promise ---- */

static void print_node(int number) {
    const node *x = &g.nodes[number];
    static const char *const signs[] = {"", "", " ", " | ", "", "", ""};
    if (x->kind == BYTES) print_message("\"%.*s\"", (int)x->size, x->bytes);
    if (x->kind == UNTIL) print_message("until(\"%.*s\")", (int)x->size, x->bytes);
    if (x->kind == REFER) print_message("rule%d", x->rule);
    if (x->kind == CLASS) print_message(x->negated ? "[^" : "[");
    for (size_t i = 0; i < x->n_ranges; i++)
        print_message("%X-%X ", x->ranges[i].first, x->ranges[i].last);
    if (x->kind == CLASS) print_message("]");
    if (x->n_kids > 0) print_message("(");
    for (int k = 0; k < x->n_kids; k++) {
        if (k > 0) print_message("%s", signs[x->kind]);
        print_node(x->kids[k]);
    }
    if (x->n_kids > 0) print_message(")");
    if (x->kind == REPEAT) print_message("{%u,%d}", x->min, (int)x->max);
}

static void print_case(const char *text, size_t n, int32_t id) {
    for (int i = 0; i < N_RULES; i++) {
        print_message("rule%d ::= ", i);
        print_node(g.rules[i]);
        print_message("\n");
    }
    print_message("seed %llu, text", (unsigned long long)g.seed);
    for (size_t i = 0; i < n; i++) print_message(" %02X", (uint8_t)text[i]);
    print_message(", id %d:", id);
    for (size_t i = 0; i < v.pieces[id].size; i++)
        print_message(" %02X", (uint8_t)v.pieces[id].data[i]);
    print_message("\n");
}

static bool is_complete(const char *text, size_t n) {
    set_text(text, n);
    return (ends_at(g.rules[0], 0) >> n & 1) != 0;
}

static bool is_start(const char *text, size_t n) {
    set_text(text, n);
    return begins(g.rules[0], 0);
}

static int n_given_up, n_single, n_known; /* places with one id; of them, those it knew */

static int32_t check_ids(pith_matcher *matcher, char *text, size_t n) {
    int32_t allowed[MAX_VOCAB], n_allowed = 0, n_bits = 0, last = -1;
    bool complete = is_complete(text, n);
    assert_int_equal(pith_matcher_may_end(matcher), complete);
    const uint32_t *mask = pith_matcher_mask(matcher);
    if (pith_matcher_failed(matcher) !=
        NULL) { /* too ambiguous: nothing is allowed, and nothing is wrong */
        for (int32_t word = 0; word < (v.n + 31) / 32; word++) assert_int_equal(mask[word], 0);
        n_given_up++;
        return -1;
    }
    for (int32_t id = 0; id < v.n; id++) {
        const pith_span piece = v.pieces[id];
        bool bit = (mask[id / 32] >> (id % 32) & 1) != 0, expected = false;
        memcpy(text + n, piece.data, piece.size);
        if (v.is_end[id])
            expected = complete;
        else if (piece.size > 0)
            expected = is_start(text, n + piece.size);
        if (bit != expected) {
            print_case(text, n, id);
            print_message("asked alone: %d\n", pith_matcher_allows(matcher, id));
        }
        assert_int_equal(bit, expected);
        if (!v.is_end[id] && expected) allowed[n_allowed++] = id;
        if (expected) n_bits++, last = id;
    }
    for (int32_t id = 0; id < v.n; id++) { /* after the mask's pointer is no longer needed */
        bool bit = (mask[id / 32] >> (id % 32) & 1) != 0;
        bool alone = pith_matcher_allows(matcher, id);
        if (pith_matcher_failed(matcher) != NULL) { /* a longer way than the mask's */
            n_given_up++;
            return -1;
        }
        assert_int_equal(alone, bit);
    }
    int32_t only = pith_matcher_only(matcher);
    assert_true(only < 0 || (n_bits == 1 && only == last));
    n_single += n_bits == 1;
    n_known += only >= 0;
    return n_allowed > 0 ? allowed[below((uint32_t)n_allowed)] : -1;
}

static void check_forced(pith_matcher *matcher, char *text, size_t n) {
    char forced[8];
    bool is_whole;
    size_t n_forced = pith_matcher_forced(matcher, forced, sizeof forced, &is_whole);
    for (size_t i = 0; i <= n_forced && i < sizeof forced; i++) {
        int n_next = 0, next = 0;
        bool complete = is_complete(text, n + i);
        for (int byte = 0; byte < 256; byte++) {
            text[n + i] = (char)byte;
            if (!is_start(text, n + i + 1)) continue;
            n_next++;
            next = byte;
        }
        bool must = n_next == 1 && !complete;
        if (i < n_forced) assert_true(must && (uint8_t)forced[i] == next);
        if (i == n_forced) assert_false(must);
        if (i == n_forced) assert_int_equal(is_whole, complete && n_next == 0);
        text[n + i] = (char)next;
    }
}

static void check_text(pith_matcher *matcher) {
    char text[MAX_TEXT + 32];
    size_t lengths[MAX_TEXT + 1] = {0}, n = 0;
    for (int step = 0; step < 12; step++) {
        size_t at = lengths[n];
        if (at > MAX_TEXT - 24) break;
        int32_t id = check_ids(matcher, text, at);
        if (pith_matcher_failed(matcher) != NULL) break;
        check_forced(matcher, text, at);
        if (n > 0 && below(4) == 0) { /* back, and another way */
            size_t back = 1 + below((uint32_t)n);
            pith_matcher_rewind(matcher, back);
            n -= back;
            assert_int_equal(pith_matcher_length(matcher), n);
            continue;
        }
        if (id < 0) break;
        assert_true(pith_matcher_accept(matcher, id));
        memcpy(text + at, v.pieces[id].data, v.pieces[id].size);
        lengths[++n] = at + v.pieces[id].size;
    }
}

static void check_seed(uint64_t seed, size_t memory, int *n_grammars) {
    g.seed = seed;
    pith_rng_init(&g.rng, seed);
    pith_grammar *grammar = random_grammar();
    if (grammar == NULL) return;
    ++*n_grammars;
    pith_token_trie *trie = random_vocabulary();
    pith_matcher *matcher = NULL;
    pith_error error = {0};
    assert_int_equal(pith_matcher_new(grammar, trie, memory, &matcher, &error), PITH_OK);
    pith_grammar_drop(grammar); /* the matcher shares it */
    for (int i = 0; i < 3; i++) {
        check_text(matcher);
        pith_matcher_reset(matcher);
        assert_int_equal(pith_matcher_length(matcher), 0);
    }
    pith_matcher_free(matcher);
    pith_token_trie_free(trie);
}

static void test_allowed_is_start_of_language(void **state) {
    (void)state;
    int n_grammars = 0;
    const char *only = getenv("PITH_TEST_SEED"), *many = getenv("PITH_TEST_SEEDS");
    if (only != NULL) {
        check_seed(strtoull(only, NULL, 10), 1 << 22, &n_grammars);
        return;
    }
    uint64_t n = many != NULL ? strtoull(many, NULL, 10) : test_is_brief() ? 120 : 700;
    for (uint64_t seed = 1; seed <= n; seed++) check_seed(seed, 1 << 22, &n_grammars);
    print_message("%d of %d grammars were accepted, %d times the matcher gave up; it knew %d of %d "
                  "single ids\n",
                  n_grammars, (int)n, n_given_up, n_known, n_single);
    assert_true(n_known > n_single / 2);
    assert_true((uint64_t)n_grammars > n / 7 && n_given_up <= n_grammars / 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allowed_is_start_of_language),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
