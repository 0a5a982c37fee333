#!/usr/bin/env python3
"""Performs the recipes of HACKING.md on dummies, so that they stay true: an architecture, a kernel, a tensor type and a command are
added to a copy of the tree with exactly the edits that the recipes name, the copy is built once, and each addition is used.
    tests/recipes/test_recipes.py PITH_PROGRAM SCRATCH_FOLDER [COMPILER]
Ends with "N passed, N failed, N skipped"."""
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "tests/data/arch/llama-yarn.gguf")  # weights in F32
DUMMY_ID = 0  # id of the dummy type: what PITH_TYPE_COUNT was
PROGRAM = ""  # built from the tree as it is


class Skip(Exception):
    pass


def expect(condition, *shown):
    if not condition:
        raise AssertionError(" | ".join(str(s)[:600] for s in shown))


def run(*command, code=0):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, check=False)
    expect(result.returncode == code, " ".join(map(str, command)), f"exit {result.returncode}, expected {code}",
           (result.stdout + result.stderr)[-600:])
    return result.stdout + result.stderr


class Tree:
    """A copy of the sources with the edits of the recipes."""

    def __init__(self, folder, compiler):
        self.source, self.build = os.path.join(folder, "source"), os.path.join(folder, "build")
        self.compiler = compiler
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(self.source)
        for name in ("src", "apps", "include", "cmake", "examples", "tests"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.source, name), ignore=shutil.ignore_patterns("data", "corpus"))
        for name in ("CMakeLists.txt", "README.md"):
            shutil.copy(os.path.join(ROOT, name), self.source)

    def read(self, path):
        with open(os.path.join(self.source, path), encoding="utf-8") as file:
            return file.read()

    def write(self, path, text):
        with open(os.path.join(self.source, path), "w", encoding="utf-8") as file:
            file.write(text)

    def insert(self, path, anchor, line):
        """Puts `line` after the last line that matches `anchor`."""
        lines = self.read(path).split("\n")
        places = [i for i, text in enumerate(lines) if re.search(anchor, text)]
        expect(places, f"{path} has no line like {anchor}; HACKING.md's recipe needs a change")
        lines.insert(places[-1] + 1, line)
        self.write(path, "\n".join(lines))

    def replace(self, path, pattern, text):
        old = self.read(path)
        new, n = re.subn(pattern, text, old, count=1, flags=re.M)
        expect(n == 1, f"{path} has no text like {pattern}; HACKING.md's recipe needs a change")
        self.write(path, new)

    def make(self, *targets):
        if not os.path.exists(self.build):
            run("cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DPITH_TESTS=ON",
                *([f"-DCMAKE_C_COMPILER={self.compiler}"] if self.compiler else []))
        run("cmake", "--build", self.build, "--target", *targets)

    @property
    def program(self):
        return os.path.join(self.build, "pith")


# ---- Files with dummy contents ----------------------------------------------------------------------------------------

def text(data):
    return struct.pack("<Q", len(data)) + data


def dummy_architecture_model(path):
    """The tiny llama model under another architecture's name (of the same length, so that no offset moves)."""
    data = open(MODEL, "rb").read()
    named = text(b"general.architecture") + struct.pack("<I", 8)
    expect(data.count(named + text(b"llama")) == 1, "the model does not say that it is a llama")
    data = data.replace(named + text(b"llama"), named + text(b"dummy"))
    data = re.sub(rb"(.\0\0\0\0\0\0\0)llama\.(?=[a-z_.]+)", rb"\1dummy.", data, flags=re.S)
    with open(path, "wb") as file:
        file.write(data)


def dummy_type_model(path):
    """The tiny llama model with one F32 tensor stored in the dummy type: each byte inverted."""
    data = bytearray(open(MODEL, "rb").read())
    tensor = next(t for t in json.loads(run(PROGRAM, "inspect", MODEL, "--json"))["tensors"] if t["name"] == "blk.0.ffn_down.weight")
    expect(tensor["type"] == "F32", tensor)
    name = text(tensor["name"].encode())
    at = data.index(name) + len(name)
    at += 4 + 8 * len(tensor["shape"])
    data[at:at + 4] = struct.pack("<I", DUMMY_ID)
    start, end = tensor["offset"], tensor["offset"] + tensor["bytes"]
    data[start:end] = bytes(255 - b for b in data[start:end])
    with open(path, "wb") as file:
        file.write(data)


# ---- Recipes: an edit before the build, a check after it ----------------------------------------------------------

def add_architecture(tree):
    dummy = tree.read("src/model/arch_llama.c").replace("pith_arch_llama", "pith_arch_dummy").replace('"llama"', '"dummy"')
    tree.write("src/model/arch_dummy.c", dummy)
    tree.insert("src/model/architecture.c", r"^    &pith_arch_\w+,$", "    &pith_arch_dummy,")
    tree.replace("src/model/architecture.h", r"^(extern const pith_arch .*);", r"\1, pith_arch_dummy;")


def logits(program, model, out):
    run(program, "logits", "-m", model, "--ids", "1,2,3,5,8,13", "--exact", "-o", out)
    return open(out, "rb").read()


def check_architecture(tree, folder):
    model = os.path.join(folder, "dummy-architecture.gguf")
    dummy_architecture_model(model)
    refusal = run(PROGRAM, "logits", "-m", model, "--ids", "1", code=1)
    expect("dummy" in refusal, "the program without the recipe does not name the architecture:", refusal)
    ours = logits(tree.program, model, os.path.join(folder, "dummy.f32"))
    expect(ours and ours == logits(tree.program, MODEL, os.path.join(folder, "llama.f32")), "the dummy's logits are not the llama's")


KERNEL = """/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/x86/x86.h"

void pith_scale_dummy_avx2(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = s * x[i];
}
"""


def add_kernel(tree):
    tree.write("src/kernel/x86/dummy_avx2.c", KERNEL)
    tree.insert("src/kernel/x86/x86.h", r"_avx2;$", "pith_scale_kernel pith_scale_dummy_avx2;")
    tree.insert("src/kernel/table.c", r"^    SET\(.*_avx2\);$", "    SET(scale, pith_scale_dummy_avx2);")


def check_kernel(tree, _folder):
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise Skip("the dummy kernel is one for x86")
    checker = os.path.join(tree.build, "tests/check/check_kernels")
    found = run(checker, "--verbose", "--filter", "pith_scale_dummy_avx2")
    if "avx2" not in json.loads(run(tree.program, "doctor", "--json"))["tiers"]:
        raise Skip("this machine has no AVX2")
    expect(re.search(r"pith_scale_dummy_avx2 .* ok", found), found)
    tree.write("src/kernel/x86/dummy_avx2.c", KERNEL.replace("i = 0", "i = 1"))
    tree.make("check_kernels")
    broken = run(checker, "--filter", "pith_scale_dummy_avx2", code=1)
    expect(re.search(r"pith_scale_dummy_avx2 .*FAILED", broken), "a wrong kernel was not found:", broken)


DECODER = """
/* Each byte of an F32 inverted. */
void pith_decode_dummy(const void *src, float *dst, size_t n) {
    const uint8_t *from = src;
    uint8_t *to = (uint8_t *)dst;
    for (size_t i = 0; i < 4 * n; i++) to[i] = (uint8_t)~from[i];
}
"""


def add_type(tree):
    global DUMMY_ID
    DUMMY_ID = int(re.search(r"PITH_TYPE_COUNT = (\d+)", tree.read("src/quant/quant.h")).group(1))
    tree.replace("src/quant/quant.h", r"^    PITH_TYPE_COUNT = \d+", f"    PITH_TYPE_DUMMY = {DUMMY_ID},\n    PITH_TYPE_COUNT = {DUMMY_ID + 1}")
    tree.insert("src/quant/codec.h", r"^pith_decode ", "pith_decode pith_decode_dummy;")
    tree.write("src/quant/decode_scalar.c", tree.read("src/quant/decode_scalar.c") + DECODER)
    tree.replace("src/quant/type_table.c", r"^(    \[PITH_TYPE_F16\])", r'    [PITH_TYPE_DUMMY] = {"DUMMY", 1, 4, false, true, pith_decode_dummy, NULL},' + r"\n\1")


def check_type(tree, folder):
    model = os.path.join(folder, "dummy-type.gguf")
    dummy_type_model(model)
    refusal = run(PROGRAM, "logits", "-m", model, "--ids", "1", code=1)
    expect(str(DUMMY_ID) in refusal, "the program without the recipe does not name the type's id:", refusal)
    shown = json.loads(run(tree.program, "inspect", model, "--json"))
    expect("DUMMY" in [t["type"] for t in shown["tensors"]], "inspect does not name the type")
    ours = logits(tree.program, model, os.path.join(folder, "dummy.f32"))
    expect(ours and ours == logits(tree.program, MODEL, os.path.join(folder, "llama.f32")), "the dummy type's logits are not those of F32")


COMMAND = """/* SPDX-License-Identifier: Apache-2.0 */
#include "pith/cli.h"

int pith_command_greet(int argc, char **argv) {
    bool loud = false;
    const pith_cli_option options[] = {
        {.name = "loud", .kind = PITH_CLI_FLAG, .target = &loud, .help = "greet loudly"}};
    const pith_cli_command command = {"pith greet [options]", "Greets.", options, 1, NULL};
    int code = pith_cli_parse_alone(&command, argc, argv);
    if (code >= 0) return code;
    printf("%s\\n", loud ? "HELLO" : "hello");
    return pith_cli_finish();
}
"""


def add_command(tree):
    tree.write("apps/pith/greet.c", COMMAND)
    tree.insert("apps/pith/main.c", r'^    \{"\w+", pith_command_\w+, ', '    {"greet", pith_command_greet, "a dummy"},')
    tree.insert("apps/pith/cli.h", r"^int pith_command_\w+\(", "int pith_command_greet(int argc, char **argv);")


def check_command(tree, _folder):
    expect("greet" in run(tree.program, "--help"), "--help does not list the command")
    expect("--loud" in run(tree.program, "greet", "--help"), "no help")
    expect(run(tree.program, "greet", "--loud") == "HELLO\n", "the command did not run")
    run(tree.program, "greet", "--quiet", code=2)


RECIPES = (("architecture", add_architecture, check_architecture), ("kernel", add_kernel, check_kernel),
           ("tensor type", add_type, check_type), ("command", add_command, check_command))


def main():
    global PROGRAM
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    PROGRAM, folder = sys.argv[1], os.path.join(sys.argv[2], "recipes")
    tree = Tree(folder, sys.argv[3] if len(sys.argv) > 3 else "")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    try:
        for _, add, _ in RECIPES:
            add(tree)
        tree.make("pith-program", "check_kernels")
    except AssertionError as problem:
        print(f"FAILED  building with all recipes: {problem}\n0 passed, {len(RECIPES)} failed")
        return 1
    for name, _, check in RECIPES:
        try:
            check(tree, folder)
            counts["passed"] += 1
        except Skip as why:
            counts["skipped"] += 1
            print(f"skipped {name}: {why}")
        except (AssertionError, KeyError, ValueError, StopIteration, subprocess.TimeoutExpired) as problem:
            counts["failed"] += 1
            print(f"FAILED  {name}: {problem}")
    if not counts["failed"]:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
