#!/usr/bin/env python3
"""Writes src/chat/unicode_tables.c from the Unicode data of the Python that runs it (the reference engine's own):
    python3 src/chat/unicode_tables.py > src/chat/unicode_tables.c && clang-format -i src/chat/unicode_tables.c
Run with a Python of Unicode 14 (3.11) to get the committed file."""
import unicodedata

LIMIT = 0x110000
FLAGS = ["ALPHA", "DECIMAL", "DIGIT", "NUMERIC", "SPACE", "PRINTABLE", "UPPER", "LOWER", "TITLE", "IGNORABLE"]


def flags_of(code):
    c = chr(code)
    if 0xD800 <= code < 0xE000:
        return 0
    final = ("A" + c + "\u03a3").lower().endswith("\u03c2")
    final_alone = ("." + c + "\u03a3").lower().endswith("\u03c2")
    tests = [c.isalpha(), c.isdecimal(), c.isdigit(), c.isnumeric(), c.isspace(), c.isprintable(), c.isupper(),
             c.islower(), unicodedata.category(c) == "Lt", final and not final_alone]
    return sum(1 << i for i, yes in enumerate(tests) if yes)


def property_runs():
    runs, last = [], None
    for code in range(LIMIT):
        flags = flags_of(code)
        if flags != last:
            runs.append((code, flags))
            last = flags
    return runs


def mapping(function):
    """simple: {code: code}; full: {code: text} for those of several characters."""
    simple, full = {}, {}
    for code in range(LIMIT):
        if 0xD800 <= code < 0xE000:
            continue
        mapped = function(chr(code))
        if len(mapped) != 1:
            full[code] = mapped
        elif mapped != chr(code):
            simple[code] = ord(mapped)
    return simple, full


def case_ranges(simple):
    """(first, last, stride, delta) with stride 1 or 2."""
    ranges = []
    for code in sorted(simple):
        delta = simple[code] - code
        if ranges:
            first, last, stride, d = ranges[-1]
            step = code - last
            if d == delta and (step == stride or (first == last and step in (1, 2))):
                ranges[-1] = (first, code, step, d)
                continue
        ranges.append((code, code, 1, delta))
    return ranges


def print_ranges(name, ranges):
    print(f"const pith_case_range {name}[] = {{")
    for i in range(0, len(ranges), 4):
        print("    " + " ".join("{0x%04x, 0x%04x, %d, %d}," % r for r in ranges[i:i + 4]))
    print("};")
    print(f"const size_t {name}_n = sizeof {name} / sizeof *{name};\n")


def print_full(name, full):
    print(f"const pith_case_expansion {name}[] = {{")
    items = ["{0x%04x, {%s}}," % (c, ", ".join("0x%04x" % ord(x) for x in t)) for c, t in sorted(full.items())]
    for i in range(0, len(items), 3):
        print("    " + " ".join(items[i:i + 3]))
    print("};")
    print(f"const size_t {name}_n = sizeof {name} / sizeof *{name};\n")


def main():
    upper, upper_full = mapping(str.upper)
    lower, lower_full = mapping(str.lower)
    title, title_full = mapping(str.title)
    assert lower_full == {0x130: "i\u0307"}
    different = {c: t for c, t in title.items() if upper.get(c, c) != t or c in upper_full}
    different.update({c: c for c in upper if c not in title and c not in title_full})
    title_only = {c: t for c, t in title_full.items() if upper_full.get(c) != t}
    print(f"""/* SPDX-License-Identifier: Apache-2.0
 *
 * Character properties and case mappings of Unicode {unicodedata.unidata_version}.
 *
 * Made by unicode_tables.py from Python's own data, so that upper(), title(), isalpha() and repr() agree with the engine
 * that templates are written for. Tables only; unicode_case.h explains them, unicode_case.c reads them.
 */
#include "chat/unicode_case.h"
""")
    runs = property_runs()
    print("/* clang-format off */")
    print("/* first code of a run << 10 | its flags */")
    print("const uint32_t pith_unicode_runs[] = {")
    for i in range(0, len(runs), 8):
        print("    " + " ".join("0x%08xu," % (code << 10 | flags) for code, flags in runs[i:i + 8]))
    print("};")
    print("const size_t pith_unicode_runs_n = sizeof pith_unicode_runs / sizeof *pith_unicode_runs;\n")
    print("const uint16_t pith_unicode_ascii[128] = {")
    for i in range(0, 128, 16):
        print("    " + " ".join("0x%03x," % flags_of(code) for code in range(i, i + 16)))
    print("};\n")
    print_ranges("pith_unicode_upper", case_ranges(upper))
    print_ranges("pith_unicode_lower", case_ranges(lower))
    print_ranges("pith_unicode_title", case_ranges(different))
    print_full("pith_unicode_upper_full", upper_full)
    print_full("pith_unicode_title_full", title_only)
    print("/* clang-format on */")


main()
