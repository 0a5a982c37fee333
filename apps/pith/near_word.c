/* SPDX-License-Identifier: Apache-2.0
 * The name that was likely meant by one that is not there: mistyped ("--temprature"), or known from
 * another program ("--ctx-size"). The nearest by edits counts (insertion, removal, replacement, two
 * neighbours swapped; at most one in four letters), else one that holds the other. Upper and lower
 * case are the same, '-' and '_' are left out. A guess is told, never acted on. */
#include "pith/near_word.h"

enum { SHORTEST = 3 };

static size_t plain_letters(const char *word, size_t size, char out[PITH_CLI_NEAR_LETTERS]) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        char c = word[i];
        if (c == '-' || c == '_') continue;
        if (n == PITH_CLI_NEAR_LETTERS) return 0;
        out[n++] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    return n;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Edits from a to b; row[i % 3][j] are those from a[0..i) to b[0..j). */
static size_t count_edits(const char *a, size_t n_a, const char *b, size_t n_b) {
    size_t row[3][PITH_CLI_NEAR_LETTERS + 1];
    for (size_t j = 0; j <= n_b; j++) row[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *now = row[i % 3];
        const size_t *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            now[j] =
                smaller(smaller(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], before[j - 2] + 1);
        }
    }
    return row[n_a % 3][n_b];
}

static bool holds(const char *text, size_t n_text, const char *part, size_t n_part) {
    for (size_t i = 0; i + n_part <= n_text; i++)
        if (memcmp(text + i, part, n_part) == 0) return true;
    return false;
}

void pith_cli_near_init(pith_cli_near *near, const char *word, size_t size) {
    *near = (pith_cli_near){.best_cost = SIZE_MAX};
    near->n = plain_letters(word, size, near->letters);
}

void pith_cli_near_offer(pith_cli_near *near, const char *name) {
    char letters[PITH_CLI_NEAR_LETTERS];
    size_t n = plain_letters(name, strlen(name), letters);
    size_t shorter = smaller(n, near->n), longer = n + near->n - shorter;
    if (shorter < SHORTEST) return;
    size_t cost = count_edits(near->letters, near->n, letters, n);
    if (cost > (longer + 1) / 4) { /* behind all that are near */
        bool is_part = n < near->n ? holds(near->letters, near->n, letters, n)
                                   : holds(letters, n, near->letters, near->n);
        if (!is_part) return;
        cost = PITH_CLI_NEAR_LETTERS + longer - shorter;
    }
    if (cost >= near->best_cost) return;
    near->best_cost = cost;
    near->best = name;
}
