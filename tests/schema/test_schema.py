#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random JSON schemas against an independent validator (the Python package jsonschema; skipped without it).

    test_schema.py PITH-GRAMMAR-WALK [FIRST_SEED]      PITH_TEST_LONG=1: 20 times as many schemas

- Every text that a grammar made of a schema can write is valid JSON and valid by that schema, whatever was refused aside.
- Values that are valid and in the form that is written (docs/schema.md) are allowed; values that are not valid never are.
- A check of values without a grammar says of each what the validator says, and takes all that is written."""
import json
import os
import subprocess
import sys

import random_schema

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python package jsonschema is missing (pip install jsonschema)")
    sys.exit(77)

N_SCHEMAS = 300 * (20 if os.environ.get("PITH_TEST_LONG") else 1)
SAMPLES, DRAWN = 8, 12
checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
# what the validator does not check here, or checks loosely: nothing follows from its yes
FORMATS_UNKNOWN = {name for name in random_schema.FORMATS if name not in checker.checkers} | {"email"}


class Walk:
    def __init__(self, program):
        self.process = subprocess.Popen([*os.environ.get("PITH_CLI_WRAPPER", "").split(), program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"FAILED: the program ended on {json.dumps(request)}")
        return json.loads(line)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def has_twice(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise KeyError("a key twice")
    return dict(pairs)


def words_of(schema):
    """Every keyword and key that occurs."""
    if isinstance(schema, dict):
        return set(schema).union(*[words_of(value) for value in schema.values()])
    if isinstance(schema, list):
        return set().union(*[words_of(value) for value in schema])
    return set()


def formats_of(schema):
    """Every format that occurs."""
    if isinstance(schema, dict):
        mine = {schema["format"]} if isinstance(schema.get("format"), str) else set()
        return mine.union(*[formats_of(value) for value in schema.values()])
    return set().union(*[formats_of(value) for value in schema]) if isinstance(schema, list) else set()


def ends_a_line(value):
    """Does a string in it end with a line end? Python's $ stands before that one, too."""
    if isinstance(value, (dict, list)):
        return any(ends_a_line(each) for each in (*value, *(value.values() if isinstance(value, dict) else ())))
    return isinstance(value, str) and value.endswith("\n")


def is_valid(validator, value):
    """None: nobody knows."""
    if ends_a_line(value):
        return None
    try:
        return validator.is_valid(value)
    except RecursionError:
        return None


def fits_form(value):
    """Numbers that are written: at most 15 digits on each side, no -0."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return True
    if isinstance(value, (int, float)):
        text = json.dumps(value)
        return "e" not in text and len(text) < 14 and text != "-0.0" and not text.endswith(".0")
    return all(fits_form(each) for each in (value.values() if isinstance(value, dict) else value))


def mutate(random, value):
    """Something near the value."""
    choice = random.randrange(6)
    if isinstance(value, dict) and value and choice < 4:
        key = random.choice(list(value))
        copy = dict(value)
        if choice == 0:
            del copy[key]
        elif choice == 1:
            copy["extra"] = 1
        else:
            copy[key] = mutate(random, copy[key])
        return copy
    if isinstance(value, list) and value and choice < 4:
        copy = list(value)
        at = random.randrange(len(copy))
        if choice == 0:
            del copy[at]
        elif choice == 1:
            copy.append(copy[at])
        else:
            copy[at] = mutate(random, copy[at])
        return copy
    if isinstance(value, str) and choice < 3:
        return value + "x" if choice else value[1:]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and choice < 4:
        return random.choice([value + 1, value - 1, value + 0.5, -value, value * 10])
    return random.choice([None, True, 0, "x", [], {}, 2.5])


def spell(value):
    return json.dumps(value, ensure_ascii=False)


class Run:
    def __init__(self, program):
        self.walk = Walk(program)
        self.refused, self.failures = {}, []
        self.counts = dict.fromkeys(["schemas", "written", "unended", "twice", "allowed", "missed", "denied", "unchecked", "valid", "invalid"], 0)
        self.slowest = 0.0

    def fail(self, seed, what, schema, text):
        self.failures.append(f"seed {seed}: {what}\n    schema {json.dumps(schema, ensure_ascii=False)}\n    text   {text}")

    def check_written(self, seed, schema, validator, text):
        if text is None:
            self.counts["unended"] += 1
            return
        self.counts["written"] += 1
        try:
            value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=has_twice)
        except KeyError:
            self.counts["twice"] += 1  # a key that nobody described may come twice
            value = json.loads(text)
        except ValueError as error:
            self.fail(seed, f"not JSON: {error}", schema, text)
            return
        if is_valid(validator, value) is False:
            self.fail(seed, "written but not valid", schema, text)

    def check_drawn(self, seed, schema, validator, answer, values):
        # what is written is narrower where alternatives are kept apart
        narrowed = {"oneOf", "not", "if", "dependentRequired"} & words_of(schema) or FORMATS_UNKNOWN & formats_of(schema)
        for value, allowed in zip(values, answer["allowed"]):
            valid = is_valid(validator, value)
            if allowed and valid is False:
                self.fail(seed, "allowed but not valid", schema, spell(value))
            if valid and not allowed and not narrowed and fits_form(value) and "extra" not in words_of(value):
                self.counts["missed"] += 1
                self.missed(seed, schema, value)
            self.counts["allowed"] += bool(allowed)
            self.counts["denied"] += not allowed

    def missed(self, seed, schema, value):
        self.fail(seed, "valid but not allowed", schema, spell(value))

    def check_values(self, seed, schema, validator, answer, values):
        """What is said of values without a grammar; formats are narrower than the validator's."""
        if "unchecked" in answer:
            self.counts["unchecked"] += 1
            if "error" not in answer:
                self.fail(seed, f"written but not checked: {answer['unchecked']}", schema, "")
            return
        narrowed = formats_of(schema)
        for value, said in zip(values, answer["valid"]):
            valid = is_valid(validator, value)
            self.counts["valid" if said else "invalid"] += 1
            if said and valid is False:
                self.fail(seed, "taken for valid", schema, spell(value))
            if valid and not said and not narrowed:
                self.fail(seed, "taken for not valid", schema, spell(value))
        for text, said in zip(answer.get("samples", []), answer.get("valid_samples", [])):
            if text is None or said:
                continue
            try:
                json.loads(text, object_pairs_hook=has_twice)
                self.fail(seed, "written but taken for not valid", schema, text)
            except KeyError:
                pass  # a key that nobody described may be written twice

    def check(self, seed):
        schema = random_schema.Maker(seed).make()
        validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
        drawer = random_schema.Drawer(schema, seed)
        values = [drawer.draw() for _ in range(DRAWN)]
        values += [mutate(drawer.random, value) for value in values]
        answer = self.walk.ask(schema=schema, samples=SAMPLES, seed=seed, texts=[spell(value) for value in values])
        self.counts["schemas"] += 1
        self.check_values(seed, schema, validator, answer, values)
        if "error" in answer:
            why = answer["error"].split(": ", 1)[-1]
            self.refused.setdefault(why, []).append(seed)
            if not answer["error"].startswith("JSON schema, #"):
                self.fail(seed, "refused without its path", schema, answer["error"])
            return
        self.slowest = max(self.slowest, answer["compile_ms"])
        if "failed" in answer:
            self.fail(seed, f"the matcher gave up: {answer['failed']}", schema, "")
        for text in answer["samples"]:
            self.check_written(seed, schema, validator, text)
        self.check_drawn(seed, schema, validator, answer, values)


def main():
    run = Run(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for seed in range(first, first + N_SCHEMAS):
        run.check(seed)
    for why, seeds in sorted(run.refused.items(), key=lambda each: -len(each[1])):
        print(f"refused {len(seeds)}: {why} (seed {seeds[0]})")
    print(", ".join(f"{count} {name}" for name, count in run.counts.items()) + f"; slowest compilation {run.slowest:.1f} ms")
    for failure in run.failures[:20]:
        print("FAILED: " + failure)
    if run.counts["written"] < N_SCHEMAS:
        run.failures.append("too little was written")
        print("FAILED: too little was written")
    if min(run.counts["valid"], run.counts["invalid"]) < N_SCHEMAS:
        run.failures.append("too little was checked")
        print("FAILED: too little was checked")
    print(f"{len(run.failures)} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
