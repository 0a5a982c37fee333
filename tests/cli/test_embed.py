#!/usr/bin/env python3
"""`pith embed`: vectors are the pooled final states (checked against `pith logits --trace`), of length 1 but for --raw, one for each text
in order, the same for a text alone and among others; what cannot be embedded is refused.
    tests/cli/test_embed.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import math
import os
import stat
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case_runner import ROOT, Skip, default_model, expect, given_program, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
IDS = [3, 5, 7, 11, 13, 17, 19, 23]


def run(*arguments, code=0, stdin=b""):
    result = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], capture_output=True, timeout=300, check=False, input=stdin)
    message = result.stderr.decode("utf-8", "replace")
    expect(result.returncode == code, "exit code", result.returncode, "expected", code, message)
    return result.stdout if code == 0 else message


def embed(*arguments, model=TINY, **more):
    return json.loads(run("embed", "-m", model, "--json", *arguments, **more))["embeddings"]


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def final_states(folder):
    """[n, n_embd] of IDS, from the buffers of `pith logits`."""
    run("logits", "-m", TINY, "--exact", "--ids", ",".join(map(str, IDS)), "-o", os.path.join(folder, "out.f32"), "--trace", folder)
    with open(os.path.join(folder, "index.txt"), encoding="utf-8") as file:
        for line in file:
            number, *name, rows, width = line.split()
            if name == ["output_norm"]:
                with open(os.path.join(folder, f"{number}_output_norm.f32"), "rb") as values:
                    data = floats(values.read())
                return [data[i * int(width):(i + 1) * int(width)] for i in range(int(rows))]
    return []


def case_vectors_are_pooled_states():
    with tempfile.TemporaryDirectory() as folder:
        states = final_states(folder)
        expect(len(states) == len(IDS), len(states), "states")
        expected = {"first": states[0], "last": states[-1], "mean": [sum(column) / len(IDS) for column in zip(*states)]}
        expected["auto"] = expected["mean"]
        for pooling, vector in expected.items():
            out = os.path.join(folder, "embedding.f32")
            run("embed", "-m", TINY, "--exact", "--ids", ",".join(map(str, IDS)), "--pooling", pooling, "--raw", "-o", out)
            with open(out, "rb") as file:
                got = floats(file.read())
            expect(len(got) == len(vector), pooling, len(got))
            expect(all(abs(a - b) <= 1e-6 * max(1, abs(b)) for a, b in zip(got, vector)), pooling, "is something else")


def case_vectors_have_length_one():
    for vector in embed("one text", "another, which is longer"):
        expect(abs(math.fsum(x * x for x in vector) - 1) < 1e-5, "not of length 1")


def case_each_text_has_its_vector():
    texts = ["a", "the second text", "a", "a text of a few more words than the others have"]
    together = embed("--exact", *texts)
    expect(len(together) == len(texts) and together[0] == together[2] and together[0] != together[1], "order")
    for text, vector in zip(texts, together):
        expect(embed("--exact", text) == [vector], text, "alone has another vector")
    lines = "\r\n".join(texts) + "\r\n"  # what becomes of empty ones: test_mistakes.py
    expect(embed("--exact", "-f", "-", stdin=lines.encode()) == together, "lines of a file")
    plain = run("embed", "-m", TINY, "--exact", *texts).decode().splitlines()
    for line, vector in zip(plain, together):
        expect(all(abs(float(a) - b) < 1e-7 for a, b in zip(line.split(), vector)), "plain output differs")
    expect(len(plain) == len(texts), plain)


def case_what_cannot_be_embedded():
    for arguments, code, words in (([], 2, "text"), (["--ids", "1", "x"], 2, "--ids"), (["--json", "--raw", "x"], 2, "--raw"), (["-o", "f", "x"], 2, "--raw"),
                                   (["--ids", "99999999"], 1, "vocabulary"), (["--ids", ","], 1, "no ids"), (["-f", "nowhere"], 1, "nowhere"),
                                   (["-f", "-"], 1, "no text"), (["--ctx", "4", "a text that is longer than four tokens"], 1, "context"),
                                   (["--raw", "-o", "/nowhere/x.f32", "a"], 1, "/nowhere")):
        message = run("embed", "-m", TINY, *arguments, code=code)
        expect(message.startswith("pith: ") and words in message, arguments, message)


def case_pipes_stay_pipes():
    if WINE or not hasattr(os, "mkfifo"):
        raise Skip("this system has no named pipes")
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        run("embed", "-m", TINY, "--ids", "1,2,3", "--raw", "-o", pipe)
        data, _ = reader.communicate(timeout=60)
        expect(stat.S_ISFIFO(os.stat(pipe).st_mode), "the pipe was replaced")
        expect(data == run("embed", "-m", TINY, "--ids", "1,2,3", "--raw"), len(data), "bytes came through")


def case_a_real_model_tells_alike_from_other():
    model = default_model()
    leave, holiday, water = embed("How do I apply for annual leave?", "How can I request vacation days?", "Water boils at 100 degrees.", model=model)
    alike = sum(a * b for a, b in zip(leave, holiday))
    other = sum(a * b for a, b in zip(leave, water))
    expect(alike > other, "the same question in other words", alike, "another matter", other)


if __name__ == "__main__":
    PROGRAM = given_program(__doc__)
    sys.exit(run_cases(globals(), sys.argv[2:]))
