#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random regular expressions against Python's re.

    test_pattern.py PITH-GRAMMAR-WALK [FIRST_SEED]      PITH_TEST_LONG=1: 20 times as many

- For a whole reply (re.fullmatch): what the grammar writes matches, and it allows exactly those of many short texts that match.
- As `pattern` of a JSON schema (re.search), alone and with lengths, two at once, and negated, which takes automata instead of trees.

The two dialects differ: expressions are drawn from what they share, and texts with line ends are
left out (Python's dot takes most of them, its $ stands before one too)."""
import itertools
import json
import os
import random
import re
import subprocess
import sys

N = 150 * (20 if os.environ.get("PITH_TEST_LONG") else 1)
LONGEST = 12
LINE_ENDS = set("\n\r\u2028\u2029")
LETTERS = "abé0"
TEXTS = [""] + ["".join(each) for n in range(1, 5) for each in itertools.product(LETTERS, repeat=n)]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def atom(self, depth):
        r = self.random
        simple = ["a", "b", "é", "0", ".", "[ab]", "[^a]", "\\d", "\\D", "\\w", "[^\\d]", "[a-c0-5]", "\\x61", "\\u00e9", "[\\w]", "(?:)"]
        if depth == 0 or r.random() < 0.6:
            return r.choice(simple)
        return r.choice(["(", "(?:"]) + self.choice(depth - 1) + ")"

    def item(self, depth):
        r = self.random
        atom = self.atom(depth)
        if r.random() < 0.35:
            atom = (atom if len(atom) == 1 or atom[0] in "([" else f"(?:{atom})") + r.choice(["*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}", "{2,}", "{0}"])
        return atom

    def sequence(self, depth):
        return "".join(self.item(depth) for _ in range(self.random.randint(0, 3)))

    def choice(self, depth):
        return "|".join(self.sequence(depth) for _ in range(self.random.choice([1, 1, 1, 2, 3])))

    def anchored(self):
        r = self.random
        parts = []
        for _ in range(r.choice([1, 1, 2])):
            parts.append(r.choice(["", "^", "^"]) + self.sequence(2) + r.choice(["", "$", "$"]))
        whole = "|".join(parts)
        return r.choice([whole, whole, f"({whole}){self.item(1)}", f"a?({whole})", f"^(?:{self.choice(2)})$"])


class Run:
    def __init__(self, program):
        self.process = subprocess.Popen([*os.environ.get("PITH_CLI_WRAPPER", "").split(), program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.failures, self.counts = [], {"grammars": 0, "refused": 0, "written": 0, "unended": 0, "texts": 0}

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"FAILED: the program ended on {json.dumps(request)}")
        return json.loads(line)

    def compare(self, seed, request, expected, spell):
        """expected(text) tells whether the text belongs."""
        answer = self.ask(**request, samples=6, seed=seed, texts=[spell(text) for text in TEXTS])
        if "error" in answer:
            self.counts["refused"] += 1
            if any(expected(text) for text in TEXTS) and "stands where the text cannot" not in answer["error"]:
                self.failures.append(f"seed {seed}: {request}: refused: {answer['error']}")
            return
        self.counts["grammars"] += 1
        for text, allowed in zip(TEXTS, answer["allowed"]):
            self.counts["texts"] += 1
            if allowed != expected(text):
                self.failures.append(f"seed {seed}: {request}: {text!r}: allowed {allowed}, expected {expected(text)}")
                break
        for sample in answer["samples"]:
            if sample is None:
                self.counts["unended"] += 1
                continue
            self.counts["written"] += 1
            text = sample if spell is plain else json.loads(sample)
            # Python's search takes exponential time on longer ones
            if not LINE_ENDS & set(text) and len(text) <= LONGEST and not expected(text):
                self.failures.append(f"seed {seed}: {request}: wrote {text!r}")

    def check(self, seed):
        maker = Maker(seed)
        whole = maker.choice(3)
        full = re.compile(whole, re.ASCII)
        self.compare(seed, {"regex": whole}, lambda text: full.fullmatch(text) is not None, plain)
        one, two = maker.anchored(), maker.anchored()
        first, second = re.compile(one, re.ASCII), re.compile(two, re.ASCII)
        low = maker.random.randint(0, 2)
        high = low + maker.random.randint(0, 2)
        self.compare(seed, {"schema": {"type": "string", "pattern": one}}, lambda text: first.search(text) is not None, quoted)
        self.compare(seed, {"schema": {"type": "string", "pattern": one, "minLength": low, "maxLength": high}},
                     lambda text: first.search(text) is not None and low <= len(text) <= high, quoted)
        self.compare(seed, {"schema": {"type": "string", "allOf": [{"pattern": one}, {"pattern": two}]}},
                     lambda text: first.search(text) is not None and second.search(text) is not None, quoted)
        self.compare(seed, {"schema": {"type": "string", "pattern": one, "not": {"pattern": two}}},
                     lambda text: first.search(text) is not None and second.search(text) is None, quoted)


def plain(text):
    return text


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def main():
    run = Run(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for seed in range(first, first + N):
        run.check(seed)
    print(", ".join(f"{count} {name}" for name, count in run.counts.items()))
    for failure in run.failures[:20]:
        print("FAILED: " + failure)
    print(f"{len(run.failures)} failed")
    return 1 if run.failures or run.counts["grammars"] < N else 0


if __name__ == "__main__":
    sys.exit(main())
