/* SPDX-License-Identifier: Apache-2.0
 * Functions that templates call and that are written in C: filters, tests, methods, global
 * functions. They never call back into the template. */
#ifndef PITH_CHAT_NATIVE_H
#define PITH_CHAT_NATIVE_H

#include "chat/render.h"

typedef struct pith_call {
    const char *name;       /* for messages */
    pith_value self;        /* a filter's or test's subject, a method's object */
    const pith_value *args; /* [n_args] */
    size_t n_args;
    const pith_value *keywords; /* [2 * n_keywords] name (a string), value, name, value, ... */
    size_t n_keywords;
} pith_call;

/* Sets *out and returns true, or returns false after pith_render_fail or a fault of the heap. */
typedef bool pith_native(pith_render *render, const pith_call *call, pith_value *out);

struct pith_function {
    const char *name;
    pith_native *native;
};

/* Lists end with a NULL name. */
extern const pith_function pith_filters[], pith_tests[], pith_globals[];
extern const pith_function pith_joiner_call; /* what calling a joiner does */
const pith_function *pith_function_find(const pith_function *list,
                                        pith_span name); /* NULL: not there */
/* The method of a string, list, tuple, dict, ...; NULL when the kind has none of that name.
 * *is_unsafe: the kind has it in Python, but it changes the object, and templates may not. */
const pith_function *pith_methods_find(pith_kind kind, pith_span name, bool *is_unsafe);

/* Arguments by position and name into values[n] (ABSENT where not given); n_required: how many must
 * be there. */
bool pith_call_bind(pith_render *render, const pith_call *call, const char *const *names, size_t n,
                    size_t n_required, pith_value *values);
/* For functions without arguments. */
bool pith_call_bind_nothing(pith_render *render, const pith_call *call);

/* Typed arguments: false after a failure that names the argument; absent gives the default. */
bool pith_argument_int(pith_render *render, const pith_call *call, const char *name,
                       pith_value value, int64_t absent, int64_t *out);
bool pith_argument_string(pith_render *render, const pith_call *call, const char *name,
                          pith_value value, const pith_string **out);

/* The subject as str(subject). NULL after a failure. */
const pith_string *pith_call_text(pith_render *render, const pith_call *call);
/* The subject's items; fails when it has none. NULL after a failure. */
pith_list *pith_call_items(pith_render *render, const pith_call *call);

/* Calls a filter or test by name on `subject` with the arguments of `call` from `first` on (map,
 * select, ...). */
bool pith_call_filter(pith_render *render, const pith_call *call, size_t first, pith_value subject,
                      pith_value *out);
bool pith_call_test(pith_render *render, const pith_call *call, size_t first, pith_value subject,
                    bool *out);

/* value at "a.b.0" or at an integer: how `attribute=` arguments name a place. */
bool pith_attribute_path(pith_render *render, pith_value value, pith_value path, pith_value *out);

#endif
