/* SPDX-License-Identifier: Apache-2.0
 * The filters by file; filter_table.c lists them by name. */
#ifndef PITH_CHAT_FILTERS_H
#define PITH_CHAT_FILTERS_H

#include "chat/native.h"

/* filter_text.c */
pith_native pith_filter_capitalize, pith_filter_lower, pith_filter_title, pith_filter_upper;
pith_native pith_filter_trim, pith_filter_replace, pith_filter_indent, pith_filter_center,
    pith_filter_truncate;
pith_native pith_filter_wordcount, pith_filter_string, pith_filter_format;
/* filter_html.c */
pith_native pith_filter_escape, pith_filter_forceescape, pith_filter_safe, pith_filter_striptags;
pith_native pith_filter_urlencode, pith_filter_xmlattr;
/* filter_number.c */
pith_native pith_filter_abs, pith_filter_float, pith_filter_int, pith_filter_round,
    pith_filter_filesizeformat;
/* filter_sequence.c */
pith_native pith_filter_batch, pith_filter_first, pith_filter_items, pith_filter_join,
    pith_filter_last;
pith_native pith_filter_length, pith_filter_list, pith_filter_reverse, pith_filter_slice,
    pith_filter_sum;
pith_native pith_filter_default, pith_filter_attr;
/* filter_choose.c */
pith_native pith_filter_map, pith_filter_select, pith_filter_reject, pith_filter_selectattr,
    pith_filter_rejectattr;
/* filter_sort.c */
pith_native pith_filter_dictsort, pith_filter_groupby, pith_filter_max, pith_filter_min,
    pith_filter_sort;
pith_native pith_filter_unique;
/* json_write.c */
pith_native pith_filter_tojson;

#endif
