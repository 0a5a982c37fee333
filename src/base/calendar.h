/* SPDX-License-Identifier: Apache-2.0
 * The wall clock and the civil time of this process's time zone. */
#ifndef PITH_BASE_CALENDAR_H
#define PITH_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pith_civil_time {
    int year, month, day;     /* 2026, 1..12, 1..31 */
    int hour, minute, second; /* 0..23, 0..59, 0..60 */
    int weekday;              /* 0..6, Sunday is 0 */
    int yearday;              /* 0..365 */
} pith_civil_time;

int64_t pith_calendar_now(void); /* seconds since 1970 */
/* Local time; safe to call from any thread. false: outside of what the system can tell. */
bool pith_calendar_local(int64_t seconds, pith_civil_time *out);

#endif
