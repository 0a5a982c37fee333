#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replies of a model to random JSON schemas, each held to its schema, against the Python package jsonschema (skipped without it).

    test_replies.py PITH-SCHEMA-REPLIES MODEL [--count 300] [--seeds 5] [--tokens 256] [--sessions 8] [--temp 0.8] [--first 1] [--keep FILE]

Every reply that ended by itself is JSON and valid by its schema; every reply that was cut at the limit is the beginning of one as far
as JSON goes; none is made without its grammar: a schema is enforced, or refused with the path of what is refused."""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import random_schema

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python package jsonschema is missing (pip install jsonschema)")
    sys.exit(77)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def prompt_of(schema):
    return "Write one JSON value that fits this JSON schema, and nothing else:\n" + json.dumps(schema, ensure_ascii=False)[:700]


def fault_of(schema, text):
    """Why the whole reply is wrong; None: it is valid."""
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except ValueError as error:
        return f"not JSON: {error}"
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    try:
        first = next(validator.iter_errors(value), None)
    except RecursionError:
        return "the validator gave up"
    return None if first is None else f"not valid: {first.message}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    for name, default in (("count", 300), ("seeds", 5), ("tokens", 256), ("sessions", 8), ("first", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--temp", type=float, default=0.8)
    parser.add_argument("--keep", help="all answers as JSON lines")
    o = parser.parse_args()
    if not os.path.exists(o.model):
        o.model = os.path.join(os.environ.get("PITH_TEST_MODELS", ""), o.model)
    if not os.path.exists(o.model):
        print("SKIPPED: the model is neither a file nor in $PITH_TEST_MODELS")
        return 77
    schemas = [random_schema.Maker(seed).make() for seed in range(o.first, o.first + o.count)]
    lines = "".join(json.dumps({"schema": schema, "prompt": prompt_of(schema)}) + "\n" for schema in schemas)
    started = time.monotonic()
    command = [*os.environ.get("PITH_CLI_WRAPPER", "").split(), o.program, o.model, str(o.sessions), str(o.tokens), str(o.temp), str(o.seeds)]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="surrogateescape")
    seconds = time.monotonic() - started
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    if o.keep:
        with open(o.keep, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    failures, n = [], {"refused": 0, "outputs": 0, "complete": 0, "valid": 0, "cut": 0, "failed": 0, "tokens": 0}
    if done.returncode != 0:
        failures.append(f"the program ended with {done.returncode}")
    for answer in answers:
        schema, place = schemas[answer["line"]], f"schema {o.first + answer['line']}"
        if "error" in answer:
            n["refused"] += 1
            if not re.match(r"JSON schema, #", answer["error"]):
                failures.append(f"{place}: refused without a path: {answer['error']}")
            continue
        n["outputs"] += 1
        n["tokens"] += answer.get("n", 0)
        if answer["stop"] == "length":
            n["cut"] += 1
        elif answer["stop"] != "end":
            n["failed"] += 1
            failures.append(f"{place}, seed {answer['seed']}: {answer['stop']}\n    {json.dumps(schema)}\n    {answer['text']}")
        else:
            n["complete"] += 1
            fault = fault_of(schema, answer["text"])
            n["valid"] += fault is None
            if fault is not None:
                failures.append(f"{place}, seed {answer['seed']}: {fault}\n    {json.dumps(schema)}\n    {answer['text']}")
    expected = (o.count - n["refused"]) * o.seeds
    if n["outputs"] != expected:
        failures.append(f"{n['outputs']} outputs, expected {expected}")
    print(f"{o.count} schemas, {n['refused']} of them refused by their path; {n['outputs']} outputs: {n['complete']} complete, {n['valid']} of these valid; "
          f"{n['cut']} cut at {o.tokens} tokens; {n['failed']} failed; {n['tokens']} tokens in {seconds:.0f} s")
    for failure in failures[:20]:
        print("FAILED: " + failure)
    print(f"{len(failures)} failed")
    return 1 if failures or n["complete"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
