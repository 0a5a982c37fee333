/* SPDX-License-Identifier: Apache-2.0
 *
 * strftime without a locale: %a %A %b %B %c %C %d %D %e %F %g %G %h %H %I %j %k %l %m %M %n %p %P
 * %r %R %S %t %T %u %U %V %w %W %x %X %y %Y %Z %z %%, each also as %-d (no padding). A local time
 * without zone, as Python's datetime.now() has: %Z and %z are empty.
 *
 * Weeks: %U counts from the first Sunday, %W from the first Monday, %V and %G are those of ISO
 * 8601.
 */
#include "chat/strftime.h"

#include <stdio.h>
#include <string.h>

static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

static bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* ISO 8601: the week, and the year it belongs to. */
static int iso_week(const pith_civil_time *time, int *year) {
    int weekday = (time->weekday + 6) % 7; /* Monday is 0 */
    int week = (time->yearday - weekday + 10) / 7;
    *year = time->year;
    if (week < 1) { /* the last week of the year before */
        --*year;
        int days = is_leap(*year) ? 366 : 365;
        return (time->yearday + days - weekday + 10) / 7;
    }
    int days = is_leap(time->year) ? 366 : 365;
    if (week == 53 &&
        days - time->yearday + weekday <= 3) { /* the Thursday lies in the next year */
        ++*year;
        return 1;
    }
    return week;
}

/* The number that a conversion stands for and how many digits it has; false: it is no number. */
static bool number_of(const pith_civil_time *time, char letter, int *value, int *digits) {
    int year, hour12 = time->hour % 12 == 0 ? 12 : time->hour % 12;
    *digits = 2;
    switch (letter) {
    case 'C': *value = time->year / 100; return true;
    case 'd':
    case 'e': *value = time->day; return true;
    case 'g':
        (void)iso_week(time, &year);
        *value = year % 100;
        return true;
    case 'G':
        (void)iso_week(time, value);
        *digits = 4;
        return true;
    case 'H':
    case 'k': *value = time->hour; return true;
    case 'I':
    case 'l': *value = hour12; return true;
    case 'j':
        *value = time->yearday + 1;
        *digits = 3;
        return true;
    case 'm': *value = time->month; return true;
    case 'M': *value = time->minute; return true;
    case 'S': *value = time->second; return true;
    case 'u':
        *value = time->weekday == 0 ? 7 : time->weekday;
        *digits = 1;
        return true;
    case 'U': *value = (time->yearday + 7 - time->weekday) / 7; return true;
    case 'V': *value = iso_week(time, &year); return true;
    case 'w':
        *value = time->weekday;
        *digits = 1;
        return true;
    case 'W': *value = (time->yearday + 7 - (time->weekday + 6) % 7) / 7; return true;
    case 'y': *value = time->year % 100; return true;
    case 'Y':
        *value = time->year;
        *digits = 4;
        return true;
    default: return false;
    }
}

/* Conversions that stand for other conversions. */
static const char *composition_of(char letter) {
    switch (letter) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'r': return "%I:%M:%S %p";
    case 'R': return "%H:%M";
    case 'T':
    case 'X': return "%H:%M:%S";
    default: return NULL;
    }
}

/* A conversion that is a word or a sign; NULL: there is none. */
static const char *word_of(const pith_civil_time *time, char letter, size_t *size) {
    const char *word = NULL;
    *size = SIZE_MAX;
    switch (letter) {
    case 'a':
        *size = 3;
        word = weekdays[time->weekday % 7];
        break;
    case 'A': word = weekdays[time->weekday % 7]; break;
    case 'b':
    case 'h':
        *size = 3;
        word = months[(time->month + 11) % 12];
        break;
    case 'B': word = months[(time->month + 11) % 12]; break;
    case 'n': word = "\n"; break;
    case 'p': word = time->hour < 12 ? "AM" : "PM"; break;
    case 'P': word = time->hour < 12 ? "am" : "pm"; break;
    case 't': word = "\t"; break;
    case 'z':
    case 'Z': word = ""; break;
    case '%': word = "%"; break;
    default: return NULL;
    }
    if (*size == SIZE_MAX) *size = strlen(word);
    return word;
}

/* One simple conversion, not a composition. */
static bool append_simple(pith_builder *builder, const pith_civil_time *time, char letter,
                          bool unpadded, bool is_user) {
    int value, digits;
    size_t size;
    char text[16];
    const char *word = word_of(time, letter, &size);
    if (word != NULL) {
        pith_builder_bytes(builder, word, size, is_user);
        return true;
    }
    if (!number_of(time, letter, &value, &digits)) return false;
    bool blank = letter == 'e' || letter == 'k' || letter == 'l';
    int n = unpadded ? snprintf(text, sizeof text, "%d", value)
            : blank  ? snprintf(text, sizeof text, "%*d", digits, value)
                     : snprintf(text, sizeof text, "%0*d", digits, value);
    pith_builder_bytes(builder, text, (size_t)n, is_user);
    return true;
}

bool pith_strftime(pith_builder *builder, const pith_string *format, const pith_civil_time *time) {
    for (size_t at = 0; at < format->size; at++) {
        bool is_user = pith_string_user_at(format, at);
        size_t plain = at;
        while (plain < format->size && (format->data[plain] != '%' || plain + 1 == format->size))
            plain++;
        if (plain > at) {
            pith_builder_slice(builder, format, at, plain - at);
            at = plain - 1;
            continue;
        }
        bool unpadded = format->data[at + 1] == '-' && at + 2 < format->size;
        at += unpadded ? 2 : 1;
        const char *composition = composition_of(format->data[at]);
        for (const char *p = composition; p != NULL && *p != 0; p++) {
            if (*p == '%') {
                if (!append_simple(builder, time, *++p, false, is_user)) return false;
            } else {
                pith_builder_bytes(builder, p, 1, is_user);
            }
        }
        if (composition == NULL &&
            !append_simple(builder, time, format->data[at], unpadded, is_user))
            return false;
    }
    return true;
}
