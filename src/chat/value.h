/* SPDX-License-Identifier: Apache-2.0
 * Values of the template engine, with the meaning that Python gives them. A value is 16 bytes and
 * copied freely; what it points to lives in the heap of the rendering (or, for constants, of the
 * template) and is never freed on its own.
 *
 * Lists, tuples and dicts do not change once a template can see them: like the sandbox that
 * templates are written for, the engine has no operation that changes one. Only namespaces, loops,
 * joiners, cyclers and iterators have state. */
#ifndef PITH_CHAT_VALUE_H
#define PITH_CHAT_VALUE_H

#include "chat/string_value.h"

typedef enum pith_kind {
    PITH_KIND_ABSENT, /* no value: an argument not given, a variable not set */
    PITH_KIND_UNDEFINED,
    PITH_KIND_NONE,
    PITH_KIND_BOOL,
    PITH_KIND_INT,
    PITH_KIND_FLOAT,
    PITH_KIND_STRING,
    PITH_KIND_LIST,
    PITH_KIND_TUPLE,
    PITH_KIND_DICT,
    PITH_KIND_RANGE,
    PITH_KIND_VIEW,     /* what dict.keys(), .values() and .items() give */
    PITH_KIND_ITERATOR, /* what map, select, ... give: can be read once */
    PITH_KIND_NAMESPACE,
    PITH_KIND_MACRO,
    PITH_KIND_FUNCTION, /* range, namespace, ... */
    PITH_KIND_METHOD,   /* a function bound to a value */
    PITH_KIND_LOOP,
    PITH_KIND_JOINER,
    PITH_KIND_CYCLER
} pith_kind;

typedef struct pith_value pith_value;
typedef struct pith_list pith_list;
typedef struct pith_dict pith_dict;
typedef struct pith_undefined pith_undefined;
typedef struct pith_range pith_range;
typedef struct pith_view pith_view;
typedef struct pith_iterator pith_iterator;
typedef struct pith_macro pith_macro;       /* machine.h */
typedef struct pith_loop pith_loop;         /* machine.h */
typedef struct pith_function pith_function; /* native.h */
typedef struct pith_method pith_method;
typedef struct pith_cycler pith_cycler;

struct pith_value {
    pith_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const pith_string *string;
        pith_list *list; /* LIST and TUPLE */
        pith_dict *dict; /* DICT and NAMESPACE */
        const pith_undefined *undefined;
        const pith_range *range;
        const pith_view *view;
        pith_iterator *iterator;
        pith_macro *macro;
        const pith_function *function;
        const pith_method *method;
        pith_loop *loop;
        pith_cycler *cycler; /* CYCLER and JOINER */
    } as;
};

struct pith_list {
    pith_value *items; /* [n] */
    size_t n, capacity;
    bool is_group; /* a tuple that groupby made: has .grouper and .list */
};

/* Why there is no value: the sentence is made when it is needed. */
typedef enum pith_absence {
    PITH_ABSENCE_NAME,      /* a variable `name` */
    PITH_ABSENCE_ATTRIBUTE, /* `name` of `owner` */
    PITH_ABSENCE_UNSAFE,    /* `name` of `owner`, which the sandbox refuses */
    PITH_ABSENCE_TEXT       /* `name` is the sentence */
} pith_absence;
struct pith_undefined {
    pith_absence absence;
    pith_value name;
    pith_kind owner;
};

struct pith_range {
    int64_t start, stop, step; /* step is not 0 */
    size_t n;
};

typedef enum pith_view_part { PITH_VIEW_KEYS, PITH_VIEW_VALUES, PITH_VIEW_ITEMS } pith_view_part;
struct pith_view {
    const pith_dict *dict;
    pith_view_part part;
};

struct pith_iterator {
    const pith_list *list;
    size_t position; /* what is before it has been read */
};

struct pith_method {
    pith_value self;
    const pith_function *function;
};

struct pith_cycler {
    const pith_list *values; /* joiner: one, the separator */
    size_t position;
};

/* An ordered dict. `slots` is a hash table of entry numbers + 1, made from 9 entries on. */
typedef struct pith_entry {
    pith_value key, value;
    uint64_t hash;
} pith_entry;
struct pith_dict {
    pith_entry *entries; /* [n] in order of insertion */
    size_t n, capacity;
    uint32_t *slots; /* [n_slots], a power of two; 0: free */
    size_t n_slots;
};

/* ---- making ---- */

static inline pith_value pith_none(void) {
    return (pith_value){.kind = PITH_KIND_NONE};
}
static inline pith_value pith_bool(bool boolean) {
    return (pith_value){PITH_KIND_BOOL, {.boolean = boolean}};
}
static inline pith_value pith_int(int64_t integer) {
    return (pith_value){PITH_KIND_INT, {.integer = integer}};
}
static inline pith_value pith_float(double real) {
    return (pith_value){PITH_KIND_FLOAT, {.real = real}};
}
/* These take what an allocation gave: NULL makes ABSENT, which a caller can test once. */
pith_value pith_value_string(const pith_string *string);
pith_value pith_value_list(pith_list *list);
pith_value pith_value_tuple(pith_list *list);
pith_value pith_value_dict(pith_dict *dict);
pith_value pith_value_iterator(pith_heap *heap, const pith_list *list);
pith_value pith_value_undefined(pith_heap *heap, pith_absence absence, pith_value name,
                                pith_kind owner);
pith_value pith_value_text(pith_heap *heap, const char *text); /* copied, the template's */

pith_list *pith_list_new(pith_heap *heap, size_t capacity);
bool pith_list_append(pith_heap *heap, pith_list *list, pith_value value);

pith_dict *pith_dict_new(pith_heap *heap, size_t capacity);
/* Keys must be hashable (pith_value_hash). Replaces the value of an equal key, which keeps its
 * place. */
bool pith_dict_set(pith_heap *heap, pith_dict *dict, pith_value key, pith_value value);
const pith_value *pith_dict_find(pith_heap *heap, const pith_dict *dict,
                                 pith_value key); /* NULL: not there */

/* ---- asking ---- */

bool pith_value_truth(pith_value value);
const char *pith_kind_name(pith_kind kind);   /* Python's: "int", "NoneType" */
bool pith_value_is_number(pith_value value);  /* int, float or bool */
int64_t pith_value_integer(pith_value value); /* of an INT or BOOL */
double pith_value_real(pith_value value);     /* of a number */
bool pith_value_is_integer(pith_value value); /* int or bool */
/* false for values that cannot be keys: lists, dicts and what holds them. */
bool pith_value_hash(pith_heap *heap, pith_value value, uint64_t *hash);

typedef enum pith_order {
    PITH_ORDER_LESS,
    PITH_ORDER_EQUAL,
    PITH_ORDER_GREATER,
    PITH_ORDER_NONE
} pith_order;
/* Equality as Python has it. Each compared value costs a step of the heap; nesting beyond
 * PITH_TEMPLATE_MAX_DEPTH is a fault of the heap. */
bool pith_value_equal(pith_heap *heap, pith_value a, pith_value b);
/* NONE where the kinds cannot be ordered (or a NaN is involved). */
pith_order pith_value_compare(pith_heap *heap, pith_value a, pith_value b);

/* ---- going through ---- */

/* Items one after another of: list, tuple, dict (keys), string (characters), range, view, iterator,
 * undefined. */
typedef struct pith_items {
    pith_value source;
    size_t position; /* bytes of a string, else items */
} pith_items;
bool pith_items_begin(pith_items *items, pith_value source); /* false: not iterable */
/* true with *item, or false at the end. *item is ABSENT when memory ran out (the heap says so). */
bool pith_items_next(pith_items *items, pith_heap *heap, pith_value *item);
/* The number of items of anything iterable but an iterator. */
bool pith_value_length(pith_value value, size_t *length); /* false: has none */
int64_t pith_range_at(const pith_range *range, size_t index);
/* The items as a list: shared where the value is one; NULL: not iterable, or no memory. */
pith_list *pith_value_to_list(pith_heap *heap, pith_value value);

#endif
