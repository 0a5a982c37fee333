/* SPDX-License-Identifier: Apache-2.0
 *
 * Which methods which values have.
 *
 * The lists of refused names are the methods of Python's lists and dicts that change them. They are
 * there (so the name is not looked for among a dict's keys), but no template may use them.
 */
#include "chat/methods.h"

static const pith_function string_methods[] = {
    {"capitalize", pith_method_capitalize},
    {"center", pith_method_center},
    {"count", pith_method_count},
    {"endswith", pith_method_endswith},
    {"find", pith_method_find},
    {"format", pith_method_format},
    {"index", pith_method_index},
    {"isalnum", pith_method_isalnum},
    {"isalpha", pith_method_isalpha},
    {"isascii", pith_method_isascii},
    {"isdecimal", pith_method_isdecimal},
    {"isdigit", pith_method_isdigit},
    {"islower", pith_method_islower},
    {"isnumeric", pith_method_isnumeric},
    {"isprintable", pith_method_isprintable},
    {"isspace", pith_method_isspace},
    {"istitle", pith_method_istitle},
    {"isupper", pith_method_isupper},
    {"join", pith_method_join},
    {"ljust", pith_method_ljust},
    {"lower", pith_method_lower},
    {"lstrip", pith_method_lstrip},
    {"partition", pith_method_partition},
    {"removeprefix", pith_method_removeprefix},
    {"removesuffix", pith_method_removesuffix},
    {"replace", pith_method_replace},
    {"rfind", pith_method_rfind},
    {"rindex", pith_method_rindex},
    {"rjust", pith_method_rjust},
    {"rpartition", pith_method_rpartition},
    {"rsplit", pith_method_rsplit},
    {"rstrip", pith_method_rstrip},
    {"split", pith_method_split},
    {"splitlines", pith_method_splitlines},
    {"startswith", pith_method_startswith},
    {"strip", pith_method_strip},
    {"swapcase", pith_method_swapcase},
    {"title", pith_method_title},
    {"upper", pith_method_upper},
    {"zfill", pith_method_zfill},
    {NULL, NULL},
};

static const pith_function dict_methods[] = {
    {"copy", pith_method_dict_copy},     {"get", pith_method_dict_get},
    {"items", pith_method_dict_items},   {"keys", pith_method_dict_keys},
    {"values", pith_method_dict_values}, {NULL, NULL},
};
static const char *const dict_refused[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};

static const pith_function list_methods[] = {
    {"copy", pith_method_list_copy},
    {"count", pith_method_list_count},
    {"index", pith_method_list_index},
    {NULL, NULL},
};
static const char *const list_refused[] = {"append", "clear",   "extend", "insert", "pop",
                                           "remove", "reverse", "sort",   NULL};

static const pith_function tuple_methods[] = {
    {"count", pith_method_list_count},
    {"index", pith_method_list_index},
    {NULL, NULL},
};

static const pith_function cycler_methods[] = {
    {"next", pith_method_cycler_next},
    {"reset", pith_method_cycler_reset},
    {NULL, NULL},
};

const pith_function *pith_methods_find(pith_kind kind, pith_span name, bool *is_unsafe) {
    const pith_function *methods = NULL;
    const char *const *refused = NULL;
    *is_unsafe = false;
    switch (kind) {
    case PITH_KIND_STRING: methods = string_methods; break;
    case PITH_KIND_DICT:
        methods = dict_methods;
        refused = dict_refused;
        break;
    case PITH_KIND_LIST:
        methods = list_methods;
        refused = list_refused;
        break;
    case PITH_KIND_TUPLE:
    case PITH_KIND_RANGE: methods = tuple_methods; break;
    case PITH_KIND_CYCLER: methods = cycler_methods; break;
    default: return NULL;
    }
    for (; refused != NULL && *refused != NULL; refused++) {
        if (name.size == 0 || **refused != name.data[0] || !pith_span_is(name, *refused)) continue;
        *is_unsafe = true;
        return NULL;
    }
    return pith_function_find(methods, name);
}
