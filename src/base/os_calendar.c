/* SPDX-License-Identifier: Apache-2.0
 *
 * The wall clock and local time, on POSIX systems and on Windows.
 *
 * Invariant: only the re-entrant conversion is used, so threads do not share a buffer. The two
 * systems differ in one call, so both bodies are here.
 *
 * It does not format: chat/strftime.c does, without a locale.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "base/calendar.h"

#include <time.h>

int64_t pith_calendar_now(void) {
    return (int64_t)time(NULL);
}

bool pith_calendar_local(int64_t seconds, pith_civil_time *out) {
    time_t when = (time_t)seconds;
    struct tm parts;
    if ((int64_t)when != seconds) return false;
#if defined(_WIN32)
    if (localtime_s(&parts, &when) != 0) return false;
#else
    if (localtime_r(&when, &parts) == NULL) return false;
#endif
    *out = (pith_civil_time){.year = parts.tm_year + 1900,
                             .month = parts.tm_mon + 1,
                             .day = parts.tm_mday,
                             .hour = parts.tm_hour,
                             .minute = parts.tm_min,
                             .second = parts.tm_sec,
                             .weekday = parts.tm_wday,
                             .yearday = parts.tm_yday};
    return true;
}
