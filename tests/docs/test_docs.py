#!/usr/bin/env python3
"""What the pages say about the tree is true: every path in backticks exists, every link leads somewhere, every `function()` of
ARCHITECTURE.md's life of a token is in a file of its row, docs/kernels.md lists every slot, and no comment cites a page that is not
here. Ends with "N passed, N failed"."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", "ARCHITECTURE.md", "HACKING.md", *sorted(glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True))]
FOLDERS = ("src/", "apps/", "include/", "tests/", "script/", "cmake/", "docs/", "examples/", ".ci/")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def exists(path):
    """The path itself, a pattern, or a name with <a placeholder>."""
    pattern = re.sub(r"<[^>]*>|\bX\b", "*", path)
    return bool(glob.glob(os.path.join(ROOT, pattern)))


def named_paths(text):
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    for code in re.findall(r"`([^`\n]+)`", text):
        word = code.split()[0].rstrip(":,;") if code.split() else ""
        if word.startswith(FOLDERS) and not re.search(r"[{}$|]", word):
            yield word


def links(text):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            yield target


def life_of_a_token():
    """(files, function) of each row of the table, and of the sentence below it."""
    section = re.search(r"## The life of a token\n(.*?)\n## ", read("ARCHITECTURE.md"), re.S).group(1)
    for row in re.findall(r"^\| \d .*$", section, re.M):
        cells = row.split("|")
        for function in re.findall(r"`(\w+)\(\)`", cells[3]):
            yield re.findall(r"`([\w/.]+\.[ch])`", cells[2]), function


def kernel_slots():
    """Names of the slots of kernel_list.h; typed ones end with `[`, as in `mul[type]`."""
    text = read("src/kernel/kernel_list.h").split("#define PITH_KERNEL_LIST", 1)[1]
    return re.findall(r"PLAIN\((\w+)\)", text) + [op + "[" for op in re.findall(r"PITH_PANEL_TYPES\(TYPED, (\w+)\)", text)]


def cited_pages():
    """(source, page) of every docs/...md that a comment names."""
    for source in sorted(glob.glob("**/*.[ch]", root_dir=ROOT, recursive=True)):
        if source.startswith(("src/", "apps/", "include/", "tests/")):
            for page in re.findall(r"\bdocs/[\w./-]+\.md\b", read(source)):
                yield source, page


def main():
    passed, faults = 0, []
    for files, function in life_of_a_token():
        if any(re.search(rf"^\w[^;\n]*\b{function}\(", read(file), re.M) for file in files):
            passed += 1
        else:
            faults.append(f"ARCHITECTURE.md: {function}() is in none of {', '.join(files)}")
    if passed < 9:
        faults.append(f"ARCHITECTURE.md: the life of a token names {passed} functions that exist, at least 9 expected")
    for page in PAGES:
        text = read(page)
        for path in named_paths(text):
            if exists(path):
                passed += 1
            else:
                faults.append(f"{page} names {path}, which does not exist")
        for target in links(text):
            if exists(os.path.join(os.path.dirname(page), target)):
                passed += 1
            else:
                faults.append(f"{page} links to {target}, which does not exist")
    for slot in kernel_slots():
        if "`" + slot in read("docs/kernels.md"):
            passed += 1
        else:
            faults.append(f"docs/kernels.md does not list the slot {slot.rstrip('[')}")
    for source, page in cited_pages():
        if exists(page):
            passed += 1
        else:
            faults.append(f"{source} cites {page}, which does not exist")
    for fault in faults:
        print("FAILED  " + fault)
    print(f"{passed} passed, {len(faults)} failed")
    return 1 if faults or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
