/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats of strings.
 *
 *   date, time, date-time   RFC 3339: days that the month has (29 February in leap years), years
 *                           0001..9999, seconds up to 59 (leap seconds are not written), offsets
 *                           in minutes or Z
 *   duration                RFC 3339, appendix A
 *   uuid                    RFC 9562, either case
 *   ipv4, ipv6              RFC 2673 without leading zeros; RFC 4291, also with an IPv4 tail
 *   hostname                RFC 1123: labels of at most 63, here at most three of them, or ten of
 *                           at most 24: then never longer than 253 in all
 *   email                   RFC 5321: up to three atoms of at most 20 with dots between, "@", a
 *                           hostname; no quotes, no []
 *   uri                     RFC 3986: scheme, then // host and path, or a path; no [] hosts
 *   json-pointer            RFC 6901
 *
 * Numbers: int32 and int64 as OpenAPI has them; float and double hold every number that is written.
 */
#include "sample/json_format.h"

#include <stddef.h>
#include <string.h>

#define YEAR      "(?:[1-9]\\d{3}|0[1-9]\\d{2}|00[1-9]\\d|000[1-9])"
#define LEAP_YEAR "(?:\\d{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
#define DATE                                                                                       \
    "(?:" YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])"                                   \
    "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)"                                                         \
    "|02-(?:0[1-9]|1\\d|2[0-8]))"                                                                  \
    "|" LEAP_YEAR "-02-29)"
#define HOUR        "(?:[01]\\d|2[0-3])"
#define TIME        HOUR ":[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-]" HOUR ":[0-5]\\d)"
#define BYTE        "(?:25[0-5]|2[0-4]\\d|1\\d{2}|[1-9]?\\d)"
#define IPV4        BYTE "(?:\\." BYTE "){3}"
#define H16         "[0-9a-fA-F]{1,4}"
#define LS32        "(?:" H16 ":" H16 "|" IPV4 ")"
#define LABEL       "[0-9a-zA-Z](?:[0-9a-zA-Z-]{0,61}[0-9a-zA-Z])?"
#define SHORT_LABEL "[0-9a-zA-Z](?:[0-9a-zA-Z-]{0,22}[0-9a-zA-Z])?"
#define HOSTNAME    "(?:" LABEL "(?:\\." LABEL "){0,2}|" SHORT_LABEL "(?:\\." SHORT_LABEL "){3,9})"
#define ATOM        "[0-9a-zA-Z!#$%&'*+/=?^_`{|}~-]"
#define PERCENT     "%[0-9a-fA-F]{2}"
#define PCHAR       "(?:[0-9a-zA-Z._~!$&'()*+,;=:@-]|" PERCENT ")"
#define PATH        "(?:/" PCHAR "*)*"
#define PORT        "(?::\\d{1,5})?"
#define USER        "(?:(?:[0-9a-zA-Z._~!$&'()*+,;=:-]|" PERCENT ")*@)?"
#define TAIL        "(?:\\?(?:" PCHAR "|[/?])*)?(?:#(?:" PCHAR "|[/?])*)?"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration", "P(?:\\d{1,9}W|(?:\\d{1,9}D|\\d{1,9}M(?:\\d{1,9}D)?|\\d{1,9}Y(?:\\d{1,9}M"
                 "(?:\\d{1,9}D)?)?)(?:T(?:\\d{1,9}H(?:\\d{1,9}M(?:\\d{1,9}S)?)?"
                 "|\\d{1,9}M(?:\\d{1,9}S)?|\\d{1,9}S))?|T(?:\\d{1,9}H(?:\\d{1,9}M(?:\\d{1,9}S)?)?"
                 "|\\d{1,9}M(?:\\d{1,9}S)?|\\d{1,9}S))"},
    {"uuid", "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
    {"ipv4", IPV4},
    {"ipv6", "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16
             ":){4}" LS32 "|(?:(?:" H16 ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32 "|(?:(?:" H16
             ":){0,2}" H16 ")?::(?:" H16 ":){2}" LS32 "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16
             ":" LS32 "|(?:(?:" H16 ":){0,4}" H16 ")?::" LS32 "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16
             "|(?:(?:" H16 ":){0,6}" H16 ")?::)"},
    {"hostname", HOSTNAME},
    {"email", ATOM "{1,20}(?:\\." ATOM "{1,20}){0,2}@" HOSTNAME},
    {"uri", "[a-zA-Z][0-9a-zA-Z+.-]*:(?://" USER HOSTNAME PORT PATH "|/" PCHAR "+" PATH "|" PCHAR
            "+" PATH ")" TAIL},
    {"json-pointer", "(?:/(?:[^/~]|~[01])*)*"},
};

const char *pith_json_format_pattern(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(name, formats[i].name) == 0) return formats[i].pattern;
    }
    return NULL;
}

int pith_json_format_bits(const char *name) {
    if (strcmp(name, "int32") == 0) return 32;
    return strcmp(name, "int64") == 0 ? 64 : 0;
}

bool pith_json_format_is_known(const char *name) {
    return pith_json_format_pattern(name) != NULL || pith_json_format_bits(name) != 0 ||
           strcmp(name, "float") == 0 || strcmp(name, "double") == 0;
}
