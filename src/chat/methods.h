/* SPDX-License-Identifier: Apache-2.0
 * The methods of values by file; method_table.c lists them by kind and name. */
#ifndef PITH_CHAT_METHODS_H
#define PITH_CHAT_METHODS_H

#include "chat/native.h"

/* method_string.c */
pith_native pith_method_capitalize, pith_method_lower, pith_method_swapcase, pith_method_title,
    pith_method_upper;
pith_native pith_method_center, pith_method_ljust, pith_method_rjust, pith_method_zfill;
pith_native pith_method_strip, pith_method_lstrip, pith_method_rstrip, pith_method_format;
pith_native pith_method_isalnum, pith_method_isalpha, pith_method_isascii, pith_method_isdecimal;
pith_native pith_method_isdigit, pith_method_islower, pith_method_isnumeric,
    pith_method_isprintable;
pith_native pith_method_isspace, pith_method_istitle, pith_method_isupper;
/* method_search.c */
pith_native pith_method_count, pith_method_find, pith_method_index, pith_method_rfind,
    pith_method_rindex;
pith_native pith_method_startswith, pith_method_endswith, pith_method_removeprefix,
    pith_method_removesuffix;
/* method_split.c */
pith_native pith_method_split, pith_method_rsplit, pith_method_splitlines, pith_method_partition;
pith_native pith_method_rpartition, pith_method_join, pith_method_replace;
/* method_container.c */
pith_native pith_method_dict_get, pith_method_dict_items, pith_method_dict_keys,
    pith_method_dict_values;
pith_native pith_method_dict_copy, pith_method_list_copy, pith_method_list_count,
    pith_method_list_index;
pith_native pith_method_cycler_next, pith_method_cycler_reset;

#endif
