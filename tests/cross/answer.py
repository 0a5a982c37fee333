#!/usr/bin/env python3
"""Runs a cross-built program through its emulator on a real model, as a user of that system would.
    tests/cross/answer.py MODEL HOST_PROGRAM EMULATOR... PROGRAM
Promises: --version and doctor work; a path and a prompt beyond ASCII arrive as they are; the reply is right. Where HOST_PROGRAM (this
machine's own build) exists, the exact contract gives the same prompt and reply ids on both. Ends with "N passed, N failed"."""
import json
import os
import re
import subprocess
import sys
import tempfile

QUESTION = "What is the capital of France?"
BEGINNING = "The capital of France is"
BEYOND_ASCII = "Où est 東京 \U0001F980?"


def output(command, stdin=b"", seconds=200):
    result = subprocess.run(command, input=stdin, capture_output=True, timeout=seconds, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command[-8:])}: exit {result.returncode}: {result.stderr.decode('utf-8', 'replace')[-400:]}")
    return result.stdout


def reply(program, model, prompt, *more):
    return json.loads(output([*program, "run", "-m", model, "--exact", "--temp", "0", "-t", "2", "--json", *more, prompt]))


def expect(condition, *shown):
    if not condition:
        raise AssertionError(" | ".join(str(s) for s in shown))


def version(program, _model, _host):
    text = output([*program, "--version"]).decode()
    expect(re.fullmatch(r"pith \d+\.\d+\.\d+\r?\n", text), repr(text))


def doctor(program, _model, _host):
    found = json.loads(output([*program, "doctor", "--json"]))
    expect(found["tiers"] and found["cpu"], found)


def answers(program, model, host):
    ours = reply(program, model, BEGINNING, "--raw", "-n", "4")
    expect(ours["text"].startswith(" Paris"), ours["text"])
    ours = reply(program, model, QUESTION, "-n", "8")
    expect(ours["text"] and len(ours["ids"]) <= 8, ours)
    if host:
        theirs = reply(host, model, QUESTION, "-n", "8")
        expect(ours["ids"] == theirs["ids"], "ids", ours["ids"], "this machine:", theirs["ids"])


def keeps_every_character(program, model, _host):
    typed = reply(program, model, BEYOND_ASCII, "--raw", "-n", "1")["prompt_ids"]
    piped = json.loads(output([*program, "tokenize", "-m", model, "--json"], stdin=BEYOND_ASCII.encode()))["ids"]
    expect(typed[-len(piped):] == piped and len(piped) > 8, "typed", typed, "piped", piped)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    model, host, program = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    host = [host] if os.path.exists(host) else None
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="pith-modèle-模型-") as folder:
        link = os.path.join(folder, "modèle 模型.gguf")
        os.symlink(model, link)
        for test in (version, doctor, answers, keeps_every_character):
            try:
                test(program, link, host)
                passed += 1
            except (AssertionError, KeyError, ValueError, subprocess.TimeoutExpired) as problem:
                failed += 1
                print(f"answer: {test.__name__}: {problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
