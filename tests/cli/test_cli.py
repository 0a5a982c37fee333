#!/usr/bin/env python3
"""Runs the program as a user would and compares output, messages and exit codes. Every promise of README and --help about behaviour has a
case here. Uses the tiny models of tests/data/arch; cases that need the default model are skipped where $PITH_TEST_MODELS lacks it.
    tests/cli/test_cli.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import ROOT, Skip, default_model, expect, given_program, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
TINY_Q4_0 = os.path.join(ROOT, "tests/data/arch/llama-q4_0.gguf")
TINY_GEMMA = os.path.join(ROOT, "tests/data/arch/gemma3.gguf")
COMMANDS = ["run", "chat", "serve", "inspect", "tokenize", "template", "logits", "embed", "bench", "fit", "list", "pull", "show", "rm", "cache", "doctor"]
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()


class Result:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def message(self):
        return self.err.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.out)


def pith(*arguments, stdin=b"", env=None, timeout=120):
    merged = dict(os.environ, **(env or {}))
    return Result(subprocess.run([*WINE, PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, env=merged, timeout=timeout, check=False))


def alone(home):
    """Where no other program's models are seen."""
    return {"PITH_HOME": home, "HOME": home, "USERPROFILE": home, "HF_HUB_CACHE": home, "OLLAMA_MODELS": home}


def fails(result, code, *words):
    """One sentence on stderr, nothing on stdout, the exit code, and it names the words."""
    expect(result.code == code, "exit code", result.code, "expected", code, result.message)
    expect(result.out == b"", "stdout is not empty:", result.out[:200])
    expect(result.message.startswith("pith: ") and len(result.message) < 1200, "message:", result.message)
    for word in words:
        expect(str(word) in result.message, f"the message does not name '{word}':", result.message)


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, "waited in vain")
        time.sleep(0.001)


def temporary():
    return tempfile.TemporaryDirectory(prefix="pith-cli-")


def vocabulary_size(model):
    for tensor in pith("inspect", model, "--json").json["tensors"]:
        if tensor["name"] == "token_embd.weight":
            return tensor["shape"][1]
    raise AssertionError("no token_embd.weight")


# ---- help, usage ------------------------------------------------------------------------------------------------

def case_help_of_every_command():
    top = pith("--help")
    expect(top.code == 0 and top.err == b"", top.message)
    for command in COMMANDS:
        expect(command in top.text, f"--help does not list {command}")
        result = pith(command, "--help")
        expect(result.code == 0 and f"pith {command}" in result.text, command, result.text, result.message)
        expect("--json" in result.text or command == "serve", f"{command} has no --json")
        expect(all(len(line) <= 100 for line in result.text.splitlines()), "a line has more than 100 columns:", result.text)
        for same in (pith(command, "-h"), pith("help", command)):
            expect(same.code == 0 and same.text == result.text, command, same.text, same.message)
    expect(pith("help").text == pith("-h").text == top.text, "help differs")
    fails(pith("help", "frobnicate"), 2, "frobnicate")


def case_version():
    result = pith("--version")
    expect(result.code == 0 and result.text.startswith("pith 0."), result.text)


def case_usage_errors_exit_2():
    fails(pith("frobnicate"), 2, "frobnicate")
    for command in COMMANDS:
        fails(pith(command, "--no-such-option"), 2, "--no-such-option")
    fails(pith("run", "hello"), 2, "-m")
    fails(pith("run", "-m", TINY, "--threads", "two", "x"), 2, "threads", "two")
    fails(pith("run", "-m", TINY, "--threads", "1.5", "x"), 2, "1.5")
    fails(pith("run", "-m", TINY, "--threads", "5000", "x"), 2, "5000", "512")
    fails(pith("run", "-m", TINY, "--load", "fast", "x"), 2, "auto|pack|mmap", "fast")
    fails(pith("run", "-m", TINY, "--memory", "much", "x"), 2, "much")
    fails(pith("run", "-m"), 2, "model")
    fails(pith("run", "-m", TINY, "--stop", "", "x"), 2, "--stop")
    fails(pith("run", "-m", TINY, "--temp", "nan", "x"), 2, "nan")
    fails(pith("logits", "-m", TINY), 2, "--ids")
    fails(pith("logits", "-m", TINY, "--ids", "1", "--ids-file", "x"), 2, "--ids")
    fails(pith("inspect"), 2, "FILE")
    fails(pith("run", "-m", TINY, "--raw", "--system", "be brief", "x"), 2, "--system")
    fails(pith("run", "-m", TINY, "--parse-special", "x"), 2, "--parse-special")
    fails(pith("run", "-m", TINY, "--ctx", "99999999", "x"), 2, "99999999", "16777216")
    fails(pith("template", "--file", "-", "--context", "-"), 2, "-")
    fails(pith("bench", "-m", TINY, "-p", "1,x"), 2, "-p")
    fails(pith("bench", "-m", TINY, "-t", "4096"), 2, "4096", "512")


# ---- files that are not what they should be -----------------------------------------------------------------------

def case_missing_model():
    for command in (["run", "-m", "nope.gguf", "x"], ["tokenize", "-m", "nope.gguf"], ["inspect", "nope.gguf"], ["bench", "-m", "nope.gguf"],
                    ["logits", "-m", "nope.gguf", "--ids", "1"], ["chat", "-m", "nope.gguf"]):
        fails(pith(*command), 1, "nope.gguf")


def case_foreign_and_broken_files():
    with temporary() as folder:
        def written(name, data):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            return path
        data = open(TINY, "rb").read()
        for name, bytes_, words in (("empty.gguf", b"", []), ("text.gguf", b"hello, this is no model" * 10, []), ("zip.gguf", b"PK\x03\x04" + b"\0" * 100, []),
                                    ("head.gguf", data[:100], []), ("half.gguf", data[:len(data) // 2], []), ("short.gguf", data[:-1], [])):
            path = written(name, bytes_)
            for command in (["run", "-m", path, "x"], ["inspect", path], ["logits", "-m", path, "--ids", "1"], ["run", "-m", path, "--load", "mmap", "x"]):
                fails(pith(*command), 1, name, *words)
        result = pith("inspect", path, "--json")
        expect(result.code == 1 and result.json["runs"] is False and result.json["why"], result.text)


def case_a_folder_is_no_model():
    fails(pith("run", "-m", "", "x"), 1, "empty")
    fails(pith("inspect", ""), 1, "empty")
    fails(pith("inspect", ROOT), 1)
    fails(pith("run", "-m", ROOT, "x"), 1)


def case_a_pipe_is_no_model():
    if WINE:
        raise Skip("named pipes of POSIX")
    with temporary() as folder:
        path = f"{folder}/pipe.gguf"
        os.mkfifo(path)
        for command in (["run", "-m", path, "x"], ["inspect", path], ["tokenize", "-m", path]):
            fails(pith(*command, timeout=20), 1, "pipe.gguf", "not a regular file")


def case_the_reason_is_told_however_long_the_path():
    with temporary() as folder:
        deep = folder + "".join("/" + c * 60 for c in "abcdef")
        os.makedirs(deep)
        fails(pith("run", "-m", deep, "x"), 1, folder, "ffff", "is a directory")


def case_unknown_architecture_is_named():
    data = open(TINY, "rb").read()
    with temporary() as folder:
        path = os.path.join(folder, "other.gguf")
        at = data.index(b"general.architecture") + len(b"general.architecture") + 4 + 8
        expect(data[at:at + 5] == b"llama")
        open(path, "wb").write(data[:at] + b"zzzzz" + data[at + 5:])
        fails(pith("run", "-m", path, "x"), 1, "zzzzz", "llama")
        result = pith("inspect", path, "--json")
        expect(result.code == 0 and result.json["runs"] is False and "zzzzz" in result.json["why"], result.text)


def case_a_key_of_the_wrong_type_is_told_apart_from_a_missing_one():
    gguf = tiny_gguf.Gguf(TINY)
    with temporary() as folder:
        path = os.path.join(folder, "typed.gguf")
        tiny_gguf.write(path, dict(gguf.keys, **{"general.architecture": (4, struct.pack("<I", 7))}), gguf.tensors)
        fails(pith("run", "-m", path, "x"), 1, "general.architecture", "u32", "string")


# ---- inspect, list, doctor, tokenize, template -----------------------------------------------------------------------

def case_inspect():
    result = pith("inspect", TINY, "--json")
    expect(result.code == 0 and result.json["runs"] is True and result.json["architecture"] == "llama", result.text, result.message)
    expect(any(t["name"] == "token_embd.weight" for t in result.json["tensors"]), "tensors")
    expect(result.json["metadata"]["general.architecture"]["value"] == "llama", "metadata")
    text = pith("inspect", TINY)
    expect(text.code == 0 and "token_embd.weight" in text.text and "general.architecture" in text.text, text.text)


def case_inspect_shows_hostile_names_harmlessly():
    with temporary() as folder:
        gguf = tiny_gguf.Gguf(TINY)
        keys = dict(gguf.keys)
        keys["general.name"] = (tiny_gguf.STRING, tiny_gguf.string("a\x1b[2Jb\u009bc\n" + "d" * 5000))
        path = os.path.join(folder, "h.gguf")
        tiny_gguf.write(path, keys, gguf.tensors)
        shown = pith("inspect", path)
        expect(shown.code == 0 and b"\x1b" not in shown.out and b"\xc2\x9b" not in shown.out, shown.out[:600])
        expect("a\\x1b[2Jb\\xc2\\x9bc\\nd" in shown.text and "(50" in shown.text, shown.text[:600])
        keys["general.architecture"] = (tiny_gguf.STRING, tiny_gguf.string("x\x1b[2J"))
        tiny_gguf.write(os.path.join(folder, "a.gguf"), keys, gguf.tensors)
        refused = pith("run", "-m", os.path.join(folder, "a.gguf"), "x")
        expect(refused.code == 1 and b"\x1b" not in refused.err, refused.err)
        expect(pith("inspect", path, "--json").json["metadata"]["general.name"]["value"].startswith("a\x1b[2Jb"), "JSON keeps the bytes")


def case_split_files_are_one_model():
    with temporary() as home:
        folder = os.path.join(home, "models")
        os.mkdir(folder)
        paths = tiny_gguf.split(TINY, folder, "tiny", 3)
        whole, parts = pith("inspect", TINY, "--json").json, pith("inspect", paths[0], "--json").json
        expect(parts["shards"] == 3 and parts["runs"] is True and whole["shards"] == 1, parts)
        expect({t["name"]: t["shape"] for t in parts["tensors"]} == {t["name"]: t["shape"] for t in whole["tensors"]}, "tensors")
        expect({t["shard"] for t in parts["tensors"]} == {0, 1, 2}, "shards")
        expect("of file 3" in pith("inspect", paths[0]).text, "the text does not name the file of a tensor")
        listed = pith("list", "--json", env=alone(home)).json["models"]
        expect([m["name"] for m in listed] == ["tiny-00001-of-00003"] and listed[0]["runs"] is True, listed)
        options = ["--raw", "-n", "6", "--ignore-end", "--json", "abc"]
        expect(pith("run", "-m", paths[0], *options).json["ids"] == pith("run", "-m", TINY, *options).json["ids"], "other ids")
        os.remove(paths[2])
        fails(pith("run", "-m", paths[0], "x"), 1, "00003-of-00003")


def case_list():
    with temporary() as home:
        result = pith("list", "--json", env=alone(home))
        expect(result.code == 0 and result.json["models"] == [], result.text, result.message)
        expect("put GGUF files there" in result.message, result.message)
        os.mkdir(os.path.join(home, "models"))
        shutil.copy(TINY, os.path.join(home, "models", "tiny.gguf"))
        open(os.path.join(home, "models", "broken.gguf"), "wb").write(b"GGUF")
        result = pith("list", "--json", env=alone(home))
        found = {m["name"]: m for m in result.json["models"]}
        expect(found["tiny"]["runs"] is True and found["tiny"]["architecture"] == "llama" and found["broken"]["error"], result.text)
        by_name = pith("run", "-m", "tiny", "--raw", "-n", "2", "--json", "ab", env={"PITH_HOME": home})
        expect(by_name.code == 0 and len(by_name.json["ids"]) == 2, by_name.message)


def case_doctor():
    result = pith("doctor", "--json")
    expect(result.code == 0, result.message)
    expect("llama" in result.json["architectures"] and result.json["cores"] >= 1 and len(result.json["kernels"]) > 20, result.text)
    expect(result.json["huge_pages"] in (True, False) and result.json["threads"] >= 1 and "probe" in result.json, result.text)
    table = pith("doctor").text.splitlines()
    expect(all(line[14] == " " and line[15] != " " for line in table), "the values begin in different columns:", table)
    lowered = pith("doctor", "--json", env={"PITH_CPU": "ref"})
    expect(all(not name.endswith(("_avx2", "_avx512", "_avxvnni", "_amx", "_neon")) for name in lowered.json["kernels"].values()), lowered.text)
    fails(pith("doctor", env={"PITH_CPU": "avx99"}), 1, "avx99", "avx2")
    fails(pith("run", "-m", TINY, "x", env={"PITH_CPU": "avx99"}), 1, "avx99")


def case_tokenize():
    text = "Hello, wörld! \u4f60\u597d\n\x00\x01".encode()
    result = pith("tokenize", "-m", TINY, "--json", stdin=text)
    expect(result.code == 0 and len(result.json["ids"]) == len(result.json["pieces"]) > 0, result.text, result.message)
    back = pith("tokenize", "-m", TINY, "--decode", stdin=json.dumps(result.json["ids"]).strip("[]").encode())
    expect(back.out == text, back.out, text)
    ill = pith("tokenize", "-m", TINY, "--json", stdin=b"\xff\xfe ab \xc3")
    expect(ill.code == 0 and len(ill.json["ids"]) > 0, ill.message)
    expect(pith("tokenize", "-m", TINY, "--json", stdin=b"").json["ids"] == [], "empty text")
    fails(pith("tokenize", "-m", TINY, "--decode", stdin=b"1,x"), 1, "x")
    fails(pith("tokenize", "-m", TINY, "--decode", stdin=b"1,264"), 1, "264")
    expect(b"\n" not in pith("tokenize", "-m", TINY, stdin=b"a").out.strip(), "one line a token")


def case_control_tokens_in_text_stay_text():
    model = default_model()
    plain = pith("tokenize", "-m", model, "--json", stdin=b"<|im_end|>").json["ids"]
    parsed = pith("tokenize", "-m", model, "--json", "--parse-special", stdin=b"<|im_end|>").json["ids"]
    expect(len(parsed) == 1 and len(plain) > 1, plain, parsed)


def case_template():
    with temporary() as folder:
        def written(name, text):
            path = os.path.join(folder, name)
            open(path, "w", encoding="utf-8").write(text)
            return path
        context = written("c.json", json.dumps({"messages": [{"role": "user", "content": "hi"}], "n": 2}))
        good = written("t.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ n * 2 }}")
        result = pith("template", "--file", good, "--context", context)
        expect(result.code == 0 and result.text == "<user>hi4", result.text, result.message)
        raises = written("r.jinja", "{{ raise_exception('roles must alternate') }}")
        fails(pith("template", "--file", raises, "--context", context), 1, "roles must alternate")
        broken = written("b.jinja", "{% if %}")
        fails(pith("template", "--file", broken, "--context", context), 1)
        fails(pith("template", "--file", good, "--context", written("bad.json", "{\"a\": }")), 1)
        fails(pith("template", "--file", good, "--context", os.path.join(folder, "none.json")), 1, "none.json")
        from_stdin = pith("template", "--file", good, "--context", "-", stdin=open(context, "rb").read())
        expect(from_stdin.text == "<user>hi4", from_stdin.text, from_stdin.message)
        from_stdin = pith("template", "--file", "-", "--context", context, "--json", stdin=open(good, "rb").read())
        expect(from_stdin.json == {"text": "<user>hi4"}, from_stdin.text, from_stdin.message)
        fails(pith("template", "--file", good, "--context", "-", stdin=b'{"messages": []}\0{}'), 1, "zero byte")


# ---- run ---------------------------------------------------------------------------------------------------------------

def case_run_json_fields():
    result = pith("run", "-m", TINY, "--raw", "-n", "5", "--ignore-end", "--json", "--temp", "0", "abc")
    expect(result.code == 0, result.message)
    j = result.json
    expect(set(j) >= {"text", "ids", "prompt_ids", "stop_reason", "timings", "backend", "peak_bytes", "notes"}, j.keys())
    expect(set(j["timings"]) >= {"prompt_n", "cache_n", "prompt_ms", "ttft_ms", "predicted_n", "predicted_ms", "draft_n", "draft_accepted_n"}, j["timings"])
    expect(len(j["ids"]) == 5 == j["timings"]["predicted_n"] and j["stop_reason"] == "length" and j["timings"]["prompt_n"] == len(j["prompt_ids"]), j)
    expect(j["timings"]["ttft_ms"] > 0 and j["peak_bytes"] > 1 << 20, j)


def case_run_text_is_the_json_text():
    text = pith("run", "-m", TINY, "--raw", "-n", "8", "--ignore-end", "abc")
    both = pith("run", "-m", TINY, "--raw", "-n", "8", "--ignore-end", "--json", "abc")
    expect(text.code == 0 and text.text.rstrip("\n") == both.json["text"].rstrip("\n"), text.text, both.json["text"])


def case_run_reads_prompt_from_stdin_and_file():
    with temporary() as folder:
        path = os.path.join(folder, "p.txt")
        open(path, "w", encoding="utf-8").write("abc")
        options = ["run", "-m", TINY, "--raw", "-n", "4", "--json"]
        ids = [pith(*options, "abc").json["ids"], pith(*options, stdin=b"abc").json["ids"], pith(*options, "--file", path).json["ids"]]
        expect(ids[0] == ids[1] == ids[2], ids)


def case_run_asks_about_a_file():
    with temporary() as folder:
        for content, asked in (("rules", "rules\n\na b"), ("rules\n", "rules\n\na b"), ("", "a b")):
            path = os.path.join(folder, "rules.txt")
            open(path, "w", encoding="utf-8").write(content)
            given = pith("run", "-m", TINY, "--raw", "-n", "1", "--json", "--file", path, "a", "b")
            whole = pith("run", "-m", TINY, "--raw", "-n", "1", "--json", asked)
            expect(given.code == 0 and given.json["prompt_ids"] == whole.json["prompt_ids"], given.message, given.text, whole.text)


def case_arguments_are_utf8():
    text = "wörld 你好 \U0001f600"
    given = pith("run", "-m", TINY, "--raw", "-n", "1", "--json", text)
    expect(given.code == 0 and given.json["prompt_ids"] == pith("tokenize", "-m", TINY, "--json", stdin=text.encode()).json["ids"], given.text)
    with temporary() as folder:
        path = os.path.join(folder, "mödel 你.gguf")
        shutil.copy(TINY, path)
        named = pith("run", "-m", path, "--raw", "-n", "1", "--json", "x")
        expect(named.code == 0, named.message)
        fails(pith("run", "-m", path + "x", "x"), 1, "mödel 你.ggufx")


def case_the_system_prompt_is_in_the_prompt():
    with temporary() as folder:
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
        path = tiny_gguf.with_template(TINY, os.path.join(folder, "t.gguf"), template)
        result = pith("run", "-m", path, "-n", "1", "--system", "Be brief.", "--json", "hi")
        text = pith("tokenize", "-m", path, "--decode", stdin=",".join(map(str, result.json["prompt_ids"])).encode()).text
        expect(text == "<system>Be brief.<user>hi<assistant>", text)
        fails(pith("run", "-m", TINY, "--system", "x", "y"), 1, "--system", "template")


def case_run_seed_repeats():
    def draw(seed):
        return pith("run", "-m", TINY, "--raw", "-n", "24", "--ignore-end", "--temp", "1.5", "--seed", seed, "--json", "abc").json["ids"]
    expect(draw(7) == draw(7), "the same seed gave other tokens")
    expect(draw(7) != draw(8), "another seed gave the same 24 tokens")


def case_run_stop_text_is_cut():
    whole = pith("run", "-m", TINY, "--raw", "-n", "24", "--ignore-end", "--json", "abc").json["text"]
    stop = next((c for c in whole[3:] if c.isalnum() and whole.index(c) > 0), None)
    if stop is None:
        raise Skip("the tiny model's text has no letter")
    cut = pith("run", "-m", TINY, "--raw", "-n", "24", "--ignore-end", "--json", "--stop", stop, "abc").json
    expect(cut["stop_reason"] == "text" and cut["text"] == whole[:whole.index(stop)], cut, whole)


def case_run_never_says_what_is_banned():
    options = ["run", "-m", TINY, "--raw", "-n", "24", "--ignore-end", "--json"]
    whole = pith(*options, "abc").json["text"]
    word = next((whole[i:i + 2] for i in range(3, len(whole) - 2) if whole[i:i + 2].isalnum()), None)
    if word is None:
        raise Skip("the tiny model's text has no letters")
    other = pith(*options, "--ban", word, "--ban", "never", "abc").json
    expect(word in whole and word not in other["text"], word, other)
    expect(other["timings"]["rewinds_n"] > 0 and other["timings"]["predicted_n"] == 24, other)


def case_context_limits():
    n = len(pith("tokenize", "-m", TINY, "--json", stdin=b"abcdefgh").json["ids"])
    options = ["run", "-m", TINY, "--raw", "--ignore-end", "--json"]
    fails(pith(*options, "--ctx", n - 1, "-n", "1", "abcdefgh"), 1, n, n - 1)
    exact = pith(*options, "--ctx", n, "-n", "4", "abcdefgh")
    expect(exact.code == 0 and exact.json["stop_reason"] == "context", exact.message, exact.text)
    more = pith(*options, "--ctx", n + 2, "-n", "20", "abcdefgh")
    expect(more.code == 0 and more.json["stop_reason"] == "context" and len(more.json["ids"]) == len(exact.json["ids"]) + 2, more.text)
    fails(pith(*options, "--ctx", 1 << 24, "-n", "1", "a"), 1, 1 << 24)


def case_memory_ceiling_is_refused_with_the_sum():
    fails(pith("run", "-m", TINY, "--memory", "1M", "x"), 1, "--memory allows 1.0 MiB", "MiB are needed; ", "give more memory")


def case_ids_outside_the_vocabulary():
    n_vocab = vocabulary_size(TINY)
    expect(pith("logits", "-m", TINY, "--ids", n_vocab - 1).code == 0, "the last id")
    fails(pith("logits", "-m", TINY, "--ids", n_vocab), 1, n_vocab)


def case_output_that_cannot_be_written():
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            process = subprocess.run([*WINE, PROGRAM, "run", "-m", TINY, "--raw", "-n", "4", "abc"], stdout=full, stderr=subprocess.PIPE, check=False)
        expect(process.returncode == 1 and b"standard output could not be written: " in process.stderr, process.returncode, process.stderr)
    with temporary() as folder:
        target = os.path.join(folder, "none", "out.f32")
        fails(pith("logits", "-m", TINY, "--ids", "1,2", "-o", target), 1, "out.f32")
        target = os.path.join(folder, "out.f32")
        fails(pith("logits", "-m", TINY, "--ids", "1,999999", "-o", target), 1, "999999")
        expect(os.listdir(folder) == [], "left behind:", os.listdir(folder))
        if os.path.exists("/dev/full"):
            fails(pith("logits", "-m", TINY, "--ids", "1,2", "-o", "/dev/full"), 1, "/dev/full")
            expect(pith("logits", "-m", TINY, "--ids", "1,2", "-o", "/dev/null").code == 0 and not os.path.isfile("/dev/null"), "/dev/null was replaced")


def case_logits_trace():
    with temporary() as folder:
        trace, out = os.path.join(folder, "trace"), os.path.join(folder, "x.f32")
        result = pith("logits", "-m", TINY, "--ids", "1,2,3", "-o", out, "--trace", trace, "--json")
        expect(result.code == 0 and result.json["rows"] == 3 and os.path.getsize(out) == 3 * 4 * result.json["n_vocab"], result.text, result.message)
        rows = [line.split() for line in open(os.path.join(trace, "index.txt"), encoding="utf-8")]
        expect(len(rows) > 10 and len(os.listdir(trace)) == len(rows) + 1, rows)
        for number, *_, n_rows, width in rows:
            name = next(n for n in os.listdir(trace) if n.startswith(number))
            expect(os.path.getsize(os.path.join(trace, name)) == 4 * int(n_rows) * int(width), name)


def case_closed_streams_are_not_taken_for_files():
    """A stream that the caller closed must not become the next file that is opened."""
    if WINE:
        raise Skip("closed streams of POSIX")

    def closed(number, *arguments):
        return Result(subprocess.run([PROGRAM, *arguments], input=b"hello", capture_output=True, timeout=60, check=False,
                                     preexec_fn=lambda: os.close(number)))

    for command in (["tokenize", "-m", TINY], ["run", "-m", TINY, "--raw", "-n", "1"], ["logits", "-m", TINY, "--ids-file", "-"]):
        fails(closed(0, *command), 1, "standard input could not be read")
    result = closed(1, "tokenize", "-m", TINY)
    expect(result.code == 1 and "standard output" in result.message, result.code, result.message)
    with temporary() as folder:
        out = f"{folder}/out.f32"
        expect(closed(2, "logits", "-m", TINY, "--ids", "1,2", "-o", out).code == 0)
        expect(os.path.getsize(out) == 2 * 4 * vocabulary_size(TINY), os.path.getsize(out))


def case_little_memory_never_changes_the_prompt():
    """Where the conversation does not fit into memory the run fails; it never answers a prompt that lacks a message."""
    model = default_model()
    if WINE:
        raise Skip("limits of POSIX")
    import resource

    def limited(mebibytes, *arguments):
        return Result(subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=60, check=False,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))))

    if limited(160, "--version").code != 0:
        raise Skip("a sanitized program needs more address space")
    with temporary() as folder:
        path = f"{folder}/long.txt"
        with open(path, "wb") as file:
            file.write(b"word " * (5 << 20))
        for limit in range(160, 240, 20):
            fails(limited(limit, "run", "-m", model, "--load", "mmap", "-n", "1", "--ctx", "64", "-f", path), 1)


def case_zero_bytes_are_characters():
    model = default_model()
    plain = pith("run", "-m", model, "-n", "1", "--json", stdin=b"ab").json["prompt_ids"]
    zero = pith("run", "-m", model, "-n", "1", "--json", stdin=b"a\0b")
    expect(zero.code == 0 and len(zero.json["prompt_ids"]) > len(plain) - 1 and zero.json["prompt_ids"] != plain, zero.message)
    chat = pith("chat", "-m", model, "-n", "1", "--json", stdin=b"a\0b\nnext\n")
    lines = [json.loads(line) for line in chat.text.splitlines()]
    expect(chat.code == 0 and len(lines) == 2, chat.text, chat.message)


def case_chat_input_that_never_ends_a_line():
    model = default_model()
    with open("/dev/zero", "rb") as endless:
        result = Result(subprocess.run([PROGRAM, "chat", "-m", model], stdin=endless, capture_output=True, timeout=60, check=False))
    fails(result, 1, "67108864")
    folder = os.open("/", os.O_RDONLY)
    result = Result(subprocess.run([PROGRAM, "chat", "-m", model], stdin=folder, capture_output=True, timeout=60, check=False))
    os.close(folder)
    fails(result, 1, "standard input could not be read")


def case_output_is_cleared_away_when_stopped():
    """Whatever asks the program to end, and a limit on file sizes: no half file stays, whatever its name."""
    model = default_model()
    if WINE:
        raise Skip("signals of POSIX")
    import resource
    ids = ",".join(["5"] * 500)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with temporary() as folder:
            process = subprocess.Popen([PROGRAM, "logits", "-m", model, "--ids", ids, "--step", "8", "-o", f"{folder}/out"], stderr=subprocess.PIPE)
            wait_for(lambda: os.listdir(folder))
            process.send_signal(number)
            process.communicate(timeout=60)
            expect(process.returncode == 1 and os.listdir(folder) == [], number, process.returncode, os.listdir(folder))
    with temporary() as folder:
        process = subprocess.run([PROGRAM, "logits", "-m", TINY, "--ids", "1,2,3", "-o", f"{folder}/out"], capture_output=True, timeout=60,
                                 check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        fails(Result(process), 1, "out", "larger than the system allows")
        expect(os.listdir(folder) == [], os.listdir(folder))


def case_interrupt_keeps_what_was_made():
    model = default_model()
    process = subprocess.Popen([PROGRAM, "run", "-m", model, "--raw", "--ignore-end", "-n", "4000", "--ctx", "4096", "Once upon a time"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.read(20)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=20)
    expect(process.returncode == 0 and len(first) == 20 and (first + rest).endswith(b"\n"), process.returncode, err)


def case_file_cut_short_while_mapped():
    model = default_model()
    with temporary() as folder:
        path = os.path.join(folder, "m.gguf")
        shutil.copy(model, path)
        process = subprocess.Popen([PROGRAM, "run", "-m", path, "--load", "mmap", "--raw", "--ignore-end", "-n", "4000", "--ctx", "4096", "Once upon a time"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(8)
        os.truncate(path, 4096)
        _, err = process.communicate(timeout=60)
        expect(process.returncode == 1 and b"cut short" in err, process.returncode, err)


# ---- the contracts --------------------------------------------------------------------------------------------------

def same_bits(model, ids, tiers, variants, mode=("--exact",)):
    """Logits that all tiers and variants agree on."""
    with temporary() as folder:
        path = os.path.join(folder, "ids.txt")
        open(path, "w", encoding="utf-8").write(",".join(map(str, ids)))
        reference = None
        for tier in tiers:
            for name, options in variants:
                out = os.path.join(folder, "x.f32")
                result = pith("logits", "-m", model, "--ids-file", path, *mode, "-o", out, *options, env={"PITH_CPU": tier}, timeout=600)
                expect(result.code == 0, result.message)
                data = open(out, "rb").read()
                if reference is None:
                    reference = data
                    expect(len(data) % (4 * len(ids)) == 0 and len(set(struct.unpack("<64f", data[:256]))) > 32, "logits look wrong")
                expect(data == reference, f"bits differ: tier {tier}, {name}")
    return reference


VARIANTS = [("2 threads", ["--threads", "2"]), ("1 thread", ["--threads", "1"]), ("mmap", ["--load", "mmap"]), ("pack", ["--load", "pack"]),
            ("step 1", ["--step", "1"]), ("step 7", ["--step", "7"]), ("step 64", ["--step", "64"]), ("step 256", ["--step", "256"])]


def available_tiers():
    tiers = pith("doctor", "--json").json["tiers"].split()
    return ["ref"] + [t for t in tiers if t != "ref"]


def case_exact_tiny_models():
    for model in (TINY, TINY_Q4_0, TINY_GEMMA):
        same_bits(model, [(7 * i + 3) % 250 for i in range(100)], available_tiers(), VARIANTS)
        same_bits(model, [(5 * i + 1) % 250 for i in range(40)], available_tiers(), [(kv, ["--kv", kv, "--step", s]) for kv in ("f32",) for s in ("1", "16")])


def case_exact_every_type():
    """Types that no model of the repository has; random weights serve as well."""
    tool = os.path.join(os.path.dirname(PROGRAM), "tests", "tools", "pith-random-model" + os.path.splitext(PROGRAM)[1])
    if not os.path.exists(tool):
        raise Skip("pith-random-model is not built")
    variants = [VARIANTS[i] for i in (0, 2, 4, 5)]
    with temporary() as folder:
        model = os.path.join(folder, "m.gguf")
        for kind in ("IQ4_NL IQ4_XS MXFP4 NVFP4 Q2_K Q3_K IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S TQ1_0 TQ2_0 Q1_0 Q2_0").split():
            made = subprocess.run([*WINE, tool, "--shape", "tiny", "--type", kind, "--pure", "--layers", "2", "--out", model], capture_output=True, check=False)
            expect(made.returncode == 0, kind, made.stderr)
            same_bits(model, [(7 * i + 3) % 500 for i in range(40)], available_tiers(), variants)


def case_long_prompts_have_the_same_bits_without_exact():
    """From 64 new tokens on a prompt is in the fast contract, where the tier has use for it: then too only the tier may matter."""
    tool = os.path.join(os.path.dirname(PROGRAM), "tests", "tools", "pith-random-model" + os.path.splitext(PROGRAM)[1])
    if not os.path.exists(tool):
        raise Skip("pith-random-model is not built")
    tiers, with_fast = available_tiers(), ("avxvnni", "avx512", "amx", "dotprod", "i8mm")
    with temporary() as folder:
        model = os.path.join(folder, "m.gguf")
        made = subprocess.run([*WINE, tool, "--shape", "tiny", "--type", "Q4_K", "--pure", "--layers", "2", "--out", model], capture_output=True, check=False)
        expect(made.returncode == 0, made.stderr)
        ids = [(7 * i + 3) % 500 for i in range(100)]
        exact = same_bits(model, ids, tiers, VARIANTS[:1])
        for tier in tiers:
            fast = same_bits(model, ids, [tier], VARIANTS, ())
            row = len(fast) // len(ids)
            expect(fast[: 4 * row] == exact[: 4 * row], "the first four positions are always exact")
            expect((fast != exact) == (tier in with_fast), f"tier {tier}: which contract was that?")
        for n, is_fast in ((63, False), (64, tiers[-1] in with_fast)):
            short = same_bits(model, ids[:n], tiers[-1:], VARIANTS[:1], ())
            expect((short != exact[: n * row]) == is_fast, f"a prompt of {n} tokens is in the wrong contract")


def case_exact_default_model():
    model = default_model()
    ids = pith("tokenize", "-m", model, "--json", stdin=open(os.path.join(ROOT, "README.md"), "rb").read()).json["ids"][:96]
    tiers = [t for t in available_tiers() if t != "ref"]
    if not tiers:
        raise Skip("this machine has only plain C")
    same_bits(model, ids, tiers, [VARIANTS[0], VARIANTS[2], VARIANTS[5]])


# ---- chat, bench ------------------------------------------------------------------------------------------------------------

def case_chat_piped():
    model = default_model()
    lines = "/help\nSay hello.\n/stats\nAnd again.\n/stats\n/undo\n/history\n/nonsense\n/quit\n"
    result = pith("chat", "-m", model, "-n", "12", stdin=lines.encode(), timeout=300)
    expect(result.code == 1 and len(result.text.strip()) > 0, result.message)  # because of /nonsense
    expect("/retry" in result.message and "/nonsense" in result.message and "Say hello." in result.message, result.message)
    cached = [int(line.split("tokens, ")[1].split()[0]) for line in result.message.splitlines() if "already read" in line]
    expect(len(cached) == 2 and cached[1] > 20, "the second turn read the conversation again:", result.message)


def case_chat_save_and_load():
    model = default_model()
    with temporary() as folder:
        path = os.path.join(folder, "c.json")
        first = pith("chat", "-m", model, "-n", "6", stdin=f"Hello.\n/save {path}\n".encode(), timeout=300)
        expect(first.code == 0 and len(json.load(open(path, encoding="utf-8"))) == 2, first.message)
        second = pith("chat", "-m", model, "-n", "6", stdin=f"/load {path}\n/history\n".encode(), timeout=300)
        expect("user: Hello." in second.message, second.message)


def case_chat_needs_a_template():
    fails(pith("chat", "-m", TINY, stdin=b"hi\n"), 1, "chat template")


def case_bench_measures_no_depth():
    """Eight tokens from 448 on make windows drop a page; reading the 448 again is no part of the time of the next run."""
    result = pith("bench", "-m", TINY_GEMMA, "-p", "0", "-n", "8", "-d", "432,448", "-r", "9", "-t", "1", "-o", "json")
    expect(result.code == 0 and len(result.json) == 2, result.message)
    kept, dropped = (r["percentiles_ms"]["p50"] for r in result.json)
    expect(dropped < 10 * kept, "median run with a dropped page", dropped, "ms, without", kept, "ms")


def case_bench():
    result = pith("bench", "-m", TINY, "-p", "16", "-n", "4", "-d", "0,8", "-r", "2", "-t", "1,2", "-o", "json")
    expect(result.code == 0 and len(result.json) == 8, result.message, result.text)
    for row in result.json:
        expect(row["avg_ts"] > 0 and len(row["samples_ts"]) == 2 and row["percentiles_ms"]["p50"] > 0 and len(row["cold_token_ms"]) == 16, row)
    expect({r["n_depth"] for r in result.json} == {0, 8} and {r["n_threads"] for r in result.json} == {1, 2}, result.text)
    short = pith("bench", "-m", TINY, "-p", "4", "-n", "0", "-r", "1", "--json")
    expect(short.code == 0 and [r["n_prompt"] for r in short.json] == [4], short.text)
    csv = pith("bench", "-m", TINY, "-p", "4", "-n", "2", "-r", "1", "-o", "csv")
    expect(csv.code == 0 and len(csv.text.splitlines()) == 3 and len({line.count(",") for line in csv.text.splitlines()}) == 1, csv.text)
    fails(pith("bench", "-m", TINY, "-p", "600", "-n", "0", "-r", "1"), 1, "600", "512")
    md = pith("bench", "-m", TINY, "-p", "16", "-n", "4", "-r", "1", "--profile")
    expect(md.code == 0 and "pp16" in md.text and "tg4" in md.text and "| operation " in md.text, md.text)
    profile = md.text[md.text.index("| operation "):].splitlines()
    expect(len({len(line) for line in profile}) == 1, "the profile is not aligned:", md.text)
    names = {r["operation"] for r in pith("bench", "-m", TINY, "-p", "16", "-n", "4", "-r", "1", "-t", "1,2", "--profile", "--json").json[0]["profile"]}
    expect(names and all(n.isprintable() and n.strip() == n and n for n in names) and any("attend" in n for n in names), names)


def case_default_model_answers():
    model = default_model()
    result = pith("run", "-m", model, "--raw", "--json", "-n", "4", "The capital of France is")
    expect(result.code == 0 and result.json["text"].startswith(" Paris"), result.message, result.text)
    result = pith("run", "-m", model, "-n", "40", "What is 2+2?")
    expect(result.code == 0 and "4" in result.text, result.message, result.text)


if __name__ == "__main__":
    PROGRAM = given_program(__doc__)
    sys.exit(run_cases(globals(), sys.argv[2:]))
