/* SPDX-License-Identifier: Apache-2.0
 * Dates as text, in English whatever the locale. */
#ifndef PITH_CHAT_STRFTIME_H
#define PITH_CHAT_STRFTIME_H

#include "base/calendar.h"
#include "chat/string_value.h"

/* Appends time as `format` says; false: it has a conversion that is not known. The author is that
 * of the format. */
bool pith_strftime(pith_builder *builder, const pith_string *format, const pith_civil_time *time);

#endif
