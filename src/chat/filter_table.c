/* SPDX-License-Identifier: Apache-2.0
 *
 * The filters by name.
 *
 * These are Jinja's, less the ones that no prompt can want: random (a prompt is a function of its
 * context), urlize, wordwrap and pprint. `tojson` is the one that transformers puts in its place:
 * json.dumps without HTML escapes.
 */
#include "chat/filters.h"

const pith_function pith_filters[] = {
    {"abs", pith_filter_abs},
    {"attr", pith_filter_attr},
    {"batch", pith_filter_batch},
    {"capitalize", pith_filter_capitalize},
    {"center", pith_filter_center},
    {"count", pith_filter_length},
    {"d", pith_filter_default},
    {"default", pith_filter_default},
    {"dictsort", pith_filter_dictsort},
    {"e", pith_filter_escape},
    {"escape", pith_filter_escape},
    {"filesizeformat", pith_filter_filesizeformat},
    {"first", pith_filter_first},
    {"float", pith_filter_float},
    {"forceescape", pith_filter_forceescape},
    {"format", pith_filter_format},
    {"groupby", pith_filter_groupby},
    {"indent", pith_filter_indent},
    {"int", pith_filter_int},
    {"items", pith_filter_items},
    {"join", pith_filter_join},
    {"last", pith_filter_last},
    {"length", pith_filter_length},
    {"list", pith_filter_list},
    {"lower", pith_filter_lower},
    {"map", pith_filter_map},
    {"max", pith_filter_max},
    {"min", pith_filter_min},
    {"reject", pith_filter_reject},
    {"rejectattr", pith_filter_rejectattr},
    {"replace", pith_filter_replace},
    {"reverse", pith_filter_reverse},
    {"round", pith_filter_round},
    {"safe", pith_filter_safe},
    {"select", pith_filter_select},
    {"selectattr", pith_filter_selectattr},
    {"slice", pith_filter_slice},
    {"sort", pith_filter_sort},
    {"string", pith_filter_string},
    {"striptags", pith_filter_striptags},
    {"sum", pith_filter_sum},
    {"title", pith_filter_title},
    {"tojson", pith_filter_tojson},
    {"trim", pith_filter_trim},
    {"truncate", pith_filter_truncate},
    {"unique", pith_filter_unique},
    {"upper", pith_filter_upper},
    {"urlencode", pith_filter_urlencode},
    {"wordcount", pith_filter_wordcount},
    {"xmlattr", pith_filter_xmlattr},
    {NULL, NULL},
};
