#!/usr/bin/env python3
"""The binary interface that docs/abi.md promises, as far as a machine can check it: the library's visible symbols are the functions of
pith.h, and what abi.txt records of public structs and enums (offsets, sizes, values) still holds.
    tests/api/test_abi.py CC LIBPITH.A            checks; needs no program to run, so it works for other machines too
    tests/api/test_abi.py CC LIBPITH.A --update   records what pith.h has now
abi.txt holds for 64-bit machines. Ends with "N passed, N failed"."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER = os.path.join(ROOT, "include/pith.h")
RECORD = os.path.join(ROOT, "tests/api/abi.txt")
TITLE = ("# What programs built against pith.h rely on, for 64-bit machines (docs/abi.md): made by tests/api/test_abi.py --update.\n"
         "# struct: NAME size, growing ones (first field `size`) as far as is known here; field: offset and size; value: of an enum.\n")


def header():
    with open(HEADER, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)


def declarator_name(text):
    """The name that a declarator declares: `*(*x)(void *)`, `*y[4]`, `z`."""
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", text)
    return pointer.group(1) if pointer else re.findall(r"\w+", re.sub(r"\[.*?\]", "", text))[-1]


def split_declarators(text):
    """At commas outside brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def structs():
    """{name: [field, ...]} of public structs."""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\}\s*\1;", header(), re.S):
        found[name] = [declarator_name(d) for line in body.split(";") if line.strip() for d in split_declarators(line)]
    return found


def enum_values():
    names = []
    for body in re.findall(r"\benum(?: \w+)? \{(.*?)\}", header(), re.S):
        names += [re.match(r"\s*(\w+)", item).group(1) for item in body.split(",") if item.strip()]
    return names


def functions():
    return set(re.findall(r"PITH_API[^;{]*?\b(pith_\w+)\(", header()))


def subjects():
    """C expressions by the key under which they are recorded."""
    found = {}
    for name, fields in structs().items():
        found[f"struct {name}"] = f"sizeof({name})"
        for field in fields:
            found[f"offset {name}.{field}"] = f"offsetof({name}, {field})"
            found[f"size {name}.{field}"] = f"sizeof((({name} *)0)->{field})"
    for name in enum_values():
        found[f"value {name}"] = name
    return found


def grows(name):
    return structs().get(name, [""])[0] == "size"


def recorded():
    with open(RECORD, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {f"{kind} {name}": int(value) for kind, name, value in lines}


def compile_c(source, *arguments):
    return subprocess.run([*CC, "-std=c11", f"-I{ROOT}/include", "-x", "c", source, *arguments], capture_output=True, text=True, check=False)


def update():
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w", encoding="utf-8") as file:
            lines = "".join(f'    printf("{key} %lld\\n", (long long)({value}));\n' for key, value in subjects().items())
            file.write(f"#include <pith.h>\n#include <stdio.h>\nint main(void) {{\n{lines}    return 0;\n}}\n")
        result = compile_c(source, "-o", program)
        if result.returncode:
            sys.exit(result.stderr)
        text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    with open(RECORD, "w", encoding="utf-8") as file:
        file.write(TITLE + text)
    print(f"{len(text.splitlines())} lines recorded")


def check_layout():
    """Faults of what is recorded: each line becomes an assertion that the compiler checks."""
    record, known = recorded(), subjects()
    faults = [f"{key} is recorded, but pith.h has it no more" for key in record if key not in known]
    faults += [f"{key} is new: record it with tests/api/test_abi.py --update" for key in known if key not in record]
    checks = {key: value for key, value in record.items() if key in known}
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "abi.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <pith.h>\n_Static_assert(sizeof(void *) == 8, \"another machine\");\n")
            for key, value in checks.items():
                kind, name = key.split()
                compare = ">=" if kind == "struct" and grows(name) else "=="
                file.write(f'_Static_assert((long long)({known[key]}) {compare} {value}, "<{key} was {value}>");\n')
        result = compile_c(source, "-fsyntax-only")
    if "another machine" in result.stderr:
        print("skipped: abi.txt is for 64-bit machines")
        return 0, []
    faults += [f"{text}: programs built before would break" for text in re.findall(r"error:.*?<([^>]*)>", result.stderr)]
    if result.returncode and not faults:
        faults.append(result.stderr[-2000:])
    return len(checks), faults


def visible_symbols(library):
    """Names that a shared library made of the objects would export; None where no tool tells."""
    tool = shutil.which("readelf")
    if not tool:
        return None
    result = subprocess.run([tool, "-Ws", library], capture_output=True, text=True, check=False)
    rows = [line.split() for line in result.stdout.split("\n")]
    names = {row[7] for row in rows if len(row) == 8 and row[4] in ("GLOBAL", "WEAK") and row[5] == "DEFAULT" and row[6] != "UND"}
    return {name for name in names if not name.startswith("_")} or None  # a sanitizer's


def check_symbols(library):
    visible, declared = visible_symbols(library), functions()
    if visible is None:
        print("skipped: no ELF symbols to look at")
        return 0, []
    faults = [f"{name} is declared in pith.h, but not visible in the library" for name in sorted(declared - visible)]
    faults += [f"{name} is visible, but not declared in pith.h" for name in sorted(visible - declared)]
    return len(declared & visible), faults


def main():
    if "--update" in sys.argv:
        update()
        return 0
    passed, faults = 0, []
    for n, found in (check_layout(), check_symbols(LIBRARY)):
        passed += n
        faults += found
    for fault in faults:
        print(fault)
    print(f"{passed} passed, {len(faults)} failed")
    return 1 if faults or passed == 0 else 0


if __name__ == "__main__":
    CC, LIBRARY = sys.argv[1].split(), sys.argv[2]
    sys.exit(main())
