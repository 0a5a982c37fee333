/* SPDX-License-Identifier: Apache-2.0
 * Making the nodes of a grammar, and the order of its building.
 *
 * Owns: the builder, equal nodes being one node, classes being sorted ranges.
 * Invariant: the first thing that goes wrong is kept and told by pith_grammar_build; from then on
 * every call gives 0, so that callers check once. Parts of a node have lower numbers than it.
 * Does not: look at what the nodes mean together. Read next: grammar_check.c,
 * grammar_compile.c. */
#include "sample/grammar_builder.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 256, NAME_BYTES = 120 };

void *pith_grammar_grow(void *array, uint32_t *capacity, size_t element_bytes, uint32_t needed) {
    if (needed <= *capacity && array != NULL) return array;
    uint32_t wanted = *capacity < 16 ? 16 : *capacity;
    while (wanted < needed) wanted = wanted > UINT32_MAX / 2 ? needed : wanted * 2;
    size_t bytes;
    if (!pith_size_mul(wanted, element_bytes, &bytes)) return NULL;
    void *grown = pith_realloc(array, bytes);
    if (grown != NULL) *capacity = wanted;
    return grown;
}

pith_status pith_grammar_builder_new(pith_grammar_builder **out, pith_error *error) {
    *out = NULL;
    pith_grammar_builder *builder = pith_alloc_zero(1, sizeof *builder);
    uint32_t *buckets = pith_alloc_zero(FIRST_BUCKETS, sizeof *buckets);
    if (builder == NULL || buckets == NULL) {
        pith_free(builder);
        pith_free(buckets);
        return pith_fail_memory(error, "a grammar builder", sizeof *builder);
    }
    builder->buckets = buckets;
    builder->n_buckets = FIRST_BUCKETS;
    builder->n_items = 1; /* 0 means: none */
    *out = builder;
    return PITH_OK;
}

void pith_grammar_builder_free(pith_grammar_builder *builder) {
    if (builder == NULL) return;
    for (uint32_t i = 0; i < builder->n_rules; i++) pith_free(builder->rules[i].name);
    pith_free(builder->items);
    pith_free(builder->parts);
    pith_free(builder->ranges);
    pith_free(builder->bytes);
    pith_free(builder->rules);
    pith_free(builder->buckets);
    pith_free(builder);
}

static uint32_t refuse_memory(pith_grammar_builder *builder) {
    if (builder->error.status == PITH_OK)
        (void)pith_fail_memory(&builder->error, "a grammar",
                               (uint64_t)builder->n_items * sizeof(pith_item));
    return 0;
}

static uint32_t refuse_limit(pith_grammar_builder *builder, const char *what, uint32_t limit) {
    if (builder->error.status == PITH_OK)
        (void)pith_fail(&builder->error, PITH_ERROR_LIMIT,
                        "grammar: more than %u %s; make it smaller", limit, what);
    return 0;
}

static bool broken(const pith_grammar_builder *builder) {
    return builder->error.status != PITH_OK;
}

/* ---- equal nodes are one ---- */

static uint64_t item_hash(const pith_grammar_builder *b, const pith_item *item) {
    const uint32_t head[4] = {item->kind, item->n, item->min, item->max};
    uint64_t hash = pith_hash(head, sizeof head, 1);
    if (item->kind == PITH_ITEM_BYTES || item->kind == PITH_ITEM_UNTIL)
        return item->n ? pith_hash(b->bytes + item->first, item->n, hash) : hash;
    if (item->kind == PITH_ITEM_CLASS)
        return item->n ? pith_hash(b->ranges + item->first, item->n * sizeof *b->ranges, hash)
                       : hash;
    if (item->kind == PITH_ITEM_SEQUENCE || item->kind == PITH_ITEM_CHOICE)
        return item->n ? pith_hash(b->parts + item->first, item->n * sizeof *b->parts, hash) : hash;
    return pith_hash(&item->first, sizeof item->first, hash);
}

static bool item_equal(const pith_grammar_builder *b, const pith_item *x, const pith_item *y) {
    if (x->kind != y->kind || x->n != y->n || x->min != y->min || x->max != y->max) return false;
    switch ((pith_item_kind)x->kind) {
    case PITH_ITEM_BYTES:
    case PITH_ITEM_UNTIL:
        return x->n == 0 || memcmp(b->bytes + x->first, b->bytes + y->first, x->n) == 0;
    case PITH_ITEM_CLASS:
        return x->n == 0 ||
               memcmp(b->ranges + x->first, b->ranges + y->first, x->n * sizeof *b->ranges) == 0;
    case PITH_ITEM_SEQUENCE:
    case PITH_ITEM_CHOICE:
        return x->n == 0 ||
               memcmp(b->parts + x->first, b->parts + y->first, x->n * sizeof *b->parts) == 0;
    case PITH_ITEM_REPEAT:
    case PITH_ITEM_REFER:
    case PITH_ITEM_TOKEN: return x->first == y->first;
    }
    return false;
}

static bool more_buckets(pith_grammar_builder *b) {
    uint32_t n = b->n_buckets * 2;
    uint32_t *buckets = pith_alloc_zero(n, sizeof *buckets);
    if (buckets == NULL) return false;
    for (uint32_t i = 1; i < b->n_items; i++) {
        uint32_t at = (uint32_t)item_hash(b, &b->items[i]) & (n - 1);
        b->items[i].next = buckets[at];
        buckets[at] = i;
    }
    pith_free(b->buckets);
    b->buckets = buckets;
    b->n_buckets = n;
    return true;
}

/* The item's content lies at the end of its array; it is taken back where an equal item exists. */
static uint32_t add_item(pith_grammar_builder *b, pith_item item, uint32_t *end) {
    uint32_t at = (uint32_t)item_hash(b, &item) & (b->n_buckets - 1);
    for (uint32_t i = b->buckets[at]; i != 0; i = b->items[i].next) {
        if (!item_equal(b, &b->items[i], &item)) continue;
        if (end != NULL) *end = item.first;
        return i;
    }
    if (b->n_items >= PITH_GRAMMAR_MAX_NODES)
        return refuse_limit(b, "nodes", PITH_GRAMMAR_MAX_NODES);
    void *grown = pith_grammar_grow(b->items, &b->items_capacity, sizeof *b->items, b->n_items + 1);
    if (grown == NULL) return refuse_memory(b);
    b->items = grown;
    item.next = b->buckets[at];
    b->items[b->n_items] = item;
    b->buckets[at] = b->n_items++;
    if (b->n_items > b->n_buckets && !more_buckets(b)) return refuse_memory(b);
    return b->n_items - 1;
}

/* ---- literals ---- */

static bool add_bytes(pith_grammar_builder *b, const char *bytes, size_t size) {
    if (size > PITH_GRAMMAR_MAX_BYTES - b->n_bytes)
        return refuse_limit(b, "bytes of literals", PITH_GRAMMAR_MAX_BYTES) != 0;
    void *grown = pith_grammar_grow(b->bytes, &b->bytes_capacity, 1, b->n_bytes + (uint32_t)size);
    if (grown == NULL) return refuse_memory(b) != 0;
    b->bytes = grown;
    if (size > 0) memcpy(b->bytes + b->n_bytes, bytes, size);
    b->n_bytes += (uint32_t)size;
    return true;
}

static uint32_t add_text(pith_grammar_builder *b, pith_item_kind kind, const char *bytes,
                         size_t size) {
    if (broken(b)) return 0;
    pith_item item = {.kind = (uint8_t)kind, .first = b->n_bytes, .n = (uint32_t)size};
    if (!add_bytes(b, bytes, size)) return 0;
    return add_item(b, item, &b->n_bytes);
}

pith_grammar_node pith_grammar_bytes(pith_grammar_builder *builder, const char *bytes,
                                     size_t size) {
    if (size == 0) return pith_grammar_sequence(builder, NULL, 0);
    return add_text(builder, PITH_ITEM_BYTES, bytes, size);
}

pith_grammar_node pith_grammar_until(pith_grammar_builder *builder, const char *end, size_t size) {
    if (size > PITH_GRAMMAR_MAX_UNTIL)
        return broken(builder) ? 0
                               : refuse_limit(builder, "bytes end a text", PITH_GRAMMAR_MAX_UNTIL);
    return add_text(builder, PITH_ITEM_UNTIL, end, size);
}

/* ---- classes ---- */

static bool add_range(pith_grammar_builder *b, uint32_t first, uint32_t last) {
    if (first > last) return true;
    if (b->n_ranges >= PITH_GRAMMAR_MAX_PARTS)
        return refuse_limit(b, "ranges of characters", PITH_GRAMMAR_MAX_PARTS) != 0;
    void *grown =
        pith_grammar_grow(b->ranges, &b->ranges_capacity, sizeof *b->ranges, b->n_ranges + 1);
    if (grown == NULL) return refuse_memory(b) != 0;
    b->ranges = grown;
    b->ranges[b->n_ranges++] = (pith_code_range){first, last};
    return true;
}

/* Without the surrogates, which no UTF-8 writes. */
static bool add_codes(pith_grammar_builder *b, uint32_t first, uint32_t last) {
    if (last > 0x10FFFF) last = 0x10FFFF;
    if (first > 0xDFFF || last < 0xD800) return add_range(b, first, last);
    return (first >= 0xD800 || add_range(b, first, 0xD7FF)) && add_range(b, 0xE000, last);
}

static int by_first(const void *a, const void *b) {
    const pith_code_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* list: sorted here. Adds what it covers, or what it leaves out, as ranges that do not touch. */
static bool add_class(pith_grammar_builder *b, pith_code_range *list, size_t n, bool negated) {
    qsort(list, n, sizeof *list, by_first);
    uint32_t from = 0; /* what lies below is done */
    for (size_t i = 0; i < n;) {
        uint32_t first = list[i].first, last = list[i].last;
        for (i++; i < n && list[i].first <= (last < UINT32_MAX ? last + 1 : last); i++)
            if (list[i].last > last) last = list[i].last;
        if (negated ? first > from && !add_codes(b, from, first - 1) : !add_codes(b, first, last))
            return false;
        if (last >= 0x10FFFF) return true;
        from = last + 1;
    }
    return !negated || add_codes(b, from, 0x10FFFF);
}

pith_grammar_node pith_grammar_class(pith_grammar_builder *builder, const pith_code_range *ranges,
                                     size_t n, bool negated) {
    if (broken(builder)) return 0;
    pith_item item = {.kind = PITH_ITEM_CLASS, .first = builder->n_ranges};
    pith_code_range *list = pith_alloc_array(n, sizeof *list);
    if (list == NULL) return refuse_memory(builder);
    size_t n_list = 0;
    for (size_t i = 0; i < n; i++)
        if (ranges[i].first <= ranges[i].last) list[n_list++] = ranges[i];
    bool added = add_class(builder, list, n_list, negated);
    pith_free(list);
    if (!added) return 0;
    item.n = builder->n_ranges - item.first;
    return add_item(builder, item, &builder->n_ranges);
}

/* ---- wholes ---- */

static uint32_t add_whole(pith_grammar_builder *b, pith_item_kind kind,
                          const pith_grammar_node *nodes, size_t n) {
    if (broken(b)) return 0;
    if (n > PITH_GRAMMAR_MAX_PARTS - b->n_parts)
        return refuse_limit(b, "parts of nodes", PITH_GRAMMAR_MAX_PARTS);
    for (size_t i = 0; i < n; i++)
        if (nodes[i] == 0 || nodes[i] >= b->n_items) return 0;
    pith_item item = {.kind = (uint8_t)kind, .first = b->n_parts, .n = (uint32_t)n};
    void *grown =
        pith_grammar_grow(b->parts, &b->parts_capacity, sizeof *b->parts, b->n_parts + (uint32_t)n);
    if (grown == NULL) return refuse_memory(b);
    b->parts = grown;
    if (n > 0) memcpy(b->parts + b->n_parts, nodes, n * sizeof *nodes);
    b->n_parts += (uint32_t)n;
    return add_item(b, item, &b->n_parts);
}

pith_grammar_node pith_grammar_sequence(pith_grammar_builder *builder,
                                        const pith_grammar_node *nodes, size_t n) {
    return n == 1 ? nodes[0] : add_whole(builder, PITH_ITEM_SEQUENCE, nodes, n);
}

pith_grammar_node pith_grammar_choice(pith_grammar_builder *builder, const pith_grammar_node *nodes,
                                      size_t n) {
    return n == 1 ? nodes[0] : add_whole(builder, PITH_ITEM_CHOICE, nodes, n);
}

pith_grammar_node pith_grammar_repeat(pith_grammar_builder *builder, pith_grammar_node node,
                                      uint32_t min, uint32_t max) {
    if (broken(builder) || node == 0 || node >= builder->n_items) return 0;
    uint32_t largest = max == PITH_GRAMMAR_UNBOUNDED ? min : max;
    if (largest > PITH_GRAMMAR_MAX_COUNT || min > PITH_GRAMMAR_MAX_COUNT)
        return refuse_limit(builder, "repetitions", PITH_GRAMMAR_MAX_COUNT);
    if (min > max) {
        (void)pith_fail(&builder->error, PITH_ERROR_ARGUMENT,
                        "grammar: a repetition of at least %u and at most %u", min, max);
        return 0;
    }
    if (max == 0) return pith_grammar_sequence(builder, NULL, 0);
    if (min == 1 && max == 1) return node;
    pith_item item = {.kind = PITH_ITEM_REPEAT, .first = node, .min = min, .max = max};
    return add_item(builder, item, NULL);
}

pith_grammar_node pith_grammar_token(pith_grammar_builder *builder, uint32_t id, bool negated) {
    if (broken(builder)) return 0;
    return add_item(builder, (pith_item){.kind = PITH_ITEM_TOKEN, .first = id, .n = negated}, NULL);
}

/* ---- rules ---- */

pith_grammar_rule pith_grammar_declare(pith_grammar_builder *builder, const char *name) {
    if (broken(builder)) return 0;
    if (builder->n_rules >= PITH_GRAMMAR_MAX_RULES)
        return refuse_limit(builder, "rules", PITH_GRAMMAR_MAX_RULES);
    void *grown = pith_grammar_grow(builder->rules, &builder->rules_capacity,
                                    sizeof *builder->rules, builder->n_rules + 1);
    if (grown == NULL) return refuse_memory(builder);
    builder->rules = grown;
    size_t size = strlen(name);
    char *copy = pith_copy_text(name, size < NAME_BYTES ? size : NAME_BYTES);
    if (copy == NULL) return refuse_memory(builder);
    builder->rules[builder->n_rules] = (pith_rule){.name = copy};
    return builder->n_rules++;
}

void pith_grammar_place(pith_grammar_builder *builder, pith_grammar_rule rule, uint32_t line,
                        uint32_t column) {
    if (rule >= builder->n_rules) return;
    builder->rules[rule].line = line;
    builder->rules[rule].column = column;
}

pith_grammar_node pith_grammar_refer(pith_grammar_builder *builder, pith_grammar_rule rule) {
    if (broken(builder) || rule >= builder->n_rules) return 0;
    return add_item(builder, (pith_item){.kind = PITH_ITEM_REFER, .first = rule}, NULL);
}

void pith_grammar_define(pith_grammar_builder *builder, pith_grammar_rule rule,
                         pith_grammar_node node) {
    if (broken(builder) || rule >= builder->n_rules || node >= builder->n_items) return;
    builder->rules[rule].node = node;
}

pith_status pith_grammar_build(pith_grammar_builder *builder, pith_grammar_node root,
                               pith_grammar **out, pith_error *error) {
    *out = NULL;
    if (broken(builder)) return pith_fail(error, builder->error.status, "%s", builder->error.text);
    if (root == 0 || root >= builder->n_items)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "grammar: it has no root");
    pith_grammar_facts facts = {0};
    pith_status status = pith_grammar_check(builder, root, &facts, error);
    if (status == PITH_OK) status = pith_grammar_compile(builder, &facts, root, out, error);
    pith_grammar_facts_deinit(&facts);
    return status;
}

pith_status pith_grammar_from_part(pith_grammar_add *add, const char *text, size_t size,
                                   pith_grammar **out, pith_error *error) {
    pith_grammar_builder *builder;
    pith_error reason = {0};
    *out = NULL;
    pith_status status = pith_grammar_builder_new(&builder, error);
    if (status != PITH_OK) return status;
    pith_grammar_node root = add(builder, text, size, &reason);
    if (reason.status != PITH_OK) {
        status = pith_fail(error, reason.status, "%s", reason.text);
    } else {
        status = pith_grammar_build(builder, root, out, error);
    }
    pith_grammar_builder_free(builder);
    return status;
}
