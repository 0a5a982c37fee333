#!/usr/bin/env python3
"""What a user gives wrongly is told in the words of the option, with exit code 2 where the command line is at fault, and before a model is
loaded where that takes no model: such cases name a model that does not exist. Also what failed commands of a piped chat do to the exit
code, and what is kept where the environment names no folder.
    tests/cli/test_mistakes.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import ROOT, Skip, expect, given_program, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
ADAPTERS = os.path.join(ROOT, "tests/data/adapter")
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
BOM = b"\xef\xbb\xbf"


def pith(*arguments, stdin=b"", code=0, **kwargs):
    """stdout and stderr as texts."""
    result = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, timeout=300, check=False, **kwargs)
    out, message = (data.decode("utf-8", "replace").replace("\r\n", "\n") for data in (result.stdout, result.stderr))
    expect(result.returncode == code, "exit code", result.returncode, "expected", code, message)
    return out, message


def refused(code, *arguments, words):
    _, message = pith(*arguments, code=code)
    expect(message.startswith("pith: ") and all(word in message for word in words), words, message)


def written(name, data):
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def tiny():
    path = os.path.join(FOLDER, "tiny.gguf")
    return path if os.path.exists(path) else tiny_gguf.with_template(TINY, path, TEMPLATE)


def chat(*lines, code):
    return pith("chat", "-m", tiny(), "-n", 4, "--cache", "off", "--no-record", stdin="".join(l + "\n" for l in lines).encode(), code=code)


# ---- Chats through a pipe ----

def case_a_failed_command_shows_in_the_exit_code():
    there = os.path.join(FOLDER, "conversation.json")
    chat("Hi", f"/save {there}", "/clear", f"/load {there}", "/history", code=0)
    for line, word in ((f"/save {FOLDER}/none/c.json", "none"), (f"/load {FOLDER}/none.json", "none.json"), ("/save", "FILE"), ("/load", "FILE"),
                       ("/fork", "NAME"), ("/schema", "FILE"), (f"/schema {FOLDER}/none.json", "none.json"), ("/undo", "take back"),
                       ("/nonsense", "/nonsense")):
        _, message = chat(line, "Hi", code=1)
        expect(word in message and message.count("pith: ") == 1, line, message)


def case_a_mistyped_command_is_told_the_near_one():
    for line, meant in (("/histroy", "/history"), ("/Quit", "/quit"), ("/nonsense", None)):
        _, message = chat(line, code=1)
        expect(f"there is no command {line};" in message and (f"did you mean {meant}?" in message if meant else "did you mean" not in message), message)


def case_times_are_those_of_a_reply():
    _, message = chat("/stats", "Hi", code=0)
    expect("there are no times" in message and "tok/s" not in message, message)
    _, message = chat("Hi", "/stats", code=0)
    expect("there are no times" not in message and "tok/s" in message, message)


def case_a_full_context_is_told_what_makes_room():
    options = ["chat", "-m", tiny(), "-n", 4, "-c", 64, "--cache", "off", "--no-record"]
    for more, told in (([], True), (["--overflow", "shift"], False)):
        _, message = pith(*options, *more, stdin=b"word " * 200 + b"\n", code=1)
        expect(("--overflow summarise" in message) == told, more, message)


# ---- Files ----

def case_a_byte_order_mark_is_no_text():
    options = ["-m", tiny(), "-n", 30, "--cache", "off", "--no-record", "x"]
    out, _ = pith("run", "--grammar", written("bom.gbnf", BOM + b'root ::= "yes"'), *options)
    expect(out.strip() == "yes", out)
    out, _ = pith("run", "--schema", written("bom.json", BOM + b'{"const": "yes"}'), *options)
    expect(json.loads(out) == "yes", out)
    tools = written("tools.json", BOM + b'{"tools": 1}')
    refused(1, "run", "--tools", tools, *options, words=["no list of tools", '"type": "function"'])
    conversation = written("talk.json", BOM + b'[{"role": "user", "content": "Hi"}]')
    chat(f"/load {conversation}", code=0)


def case_each_line_of_a_file_is_a_text():
    """Where the tokenizer adds nothing an empty line has no tokens, so it is named; where it adds one the line has a vector."""
    lines = written("lines.txt", b"one\n\nthree\r\n\r\nfive")
    model = tiny_gguf.Gguf(TINY)
    keys = {key: value for key, value in model.keys.items() if key != "tokenizer.ggml.add_bos_token"}
    for adds in (b"\x00", b"\x01"):
        path = os.path.join(FOLDER, f"bos{adds[0]}.gguf")
        tiny_gguf.write(path, {**keys, "tokenizer.ggml.add_bos_token": (7, adds)}, model.tensors)
        if adds == b"\x00":
            refused(1, "embed", "-m", path, "-f", lines, words=["text 2 has no tokens", "line 2 of"])
        else:
            out, _ = pith("embed", "-m", path, "-f", lines, "--json")
            expect(len(json.loads(out)["embeddings"]) == 5, out)


def case_files_are_looked_at_before_a_model_is_loaded():
    none = ["-m", os.path.join(FOLDER, "nowhere.gguf"), "x"]
    refused(1, "run", "--grammar", written("bad.gbnf", b"root = "), *none, words=["--grammar"])
    refused(1, "run", "--grammar", os.path.join(FOLDER, "none.gbnf"), *none, words=["--grammar", "none.gbnf"])
    refused(1, "run", "--schema", written("bad.json", b'{"type": "number", "multipleOf": -1}'), *none, words=["--schema"])
    refused(1, "run", "--regex", "(", *none, words=["--regex"])
    refused(1, "run", "--draft", os.path.join(FOLDER, "none.gguf"), *none, words=["--draft", "none.gguf"])
    refused(1, "run", "--draft", written("no.gguf", b"no GGUF"), *none, words=["--draft"])
    refused(1, "run", "--lora", os.path.join(FOLDER, "none.gguf"), *none, words=["--lora", "none.gguf"])
    refused(1, "run", "--control-vector", os.path.join(FOLDER, "none.gguf:0.5:1-2"), *none, words=["--control-vector", "none.gguf could"])
    refused(1, "chat", "--schema", os.path.join(FOLDER, "bad.json"), *none[:2], words=["--schema"])


def case_a_grammar_may_name_tokens_of_the_model():
    """It waits for the model, which must have the token."""
    grammar = written("token.gbnf", b"root ::= <[65]> <nosuchtoken>")
    refused(1, "run", "-m", tiny(), "--grammar", grammar, "x", words=["column 17", "not one token"])
    out, _ = pith("run", "-m", tiny(), "--cache", "off", "--no-record", "--grammar", written("token.gbnf", b'root ::= <[65]> "x"'), "x")
    expect(out.strip().endswith("x"), out)


# ---- Options ----

def case_a_scale_is_a_finite_number():
    lora = os.path.join(ADAPTERS, "lora-a.gguf")
    for scale in ("nan", "inf", "-inf", "1e99", "half"):
        refused(2, "run", "-m", "nowhere.gguf", "--lora", f"{lora}:{scale}", "x", words=["--lora", f"'{scale}' is no scale"])
    refused(2, "run", "-m", "nowhere.gguf", "--control-vector", f"{lora}:nan", "x", words=["--control-vector", "'nan' is no scale"])


def case_limits_of_options_are_usage():
    run = ["run", "-m", tiny(), "--cache", "off", "--no-record", "-n", 2]
    refused(2, *run, "--ban", "", "x", words=["--ban", "1 to 256 bytes"])
    refused(2, *run, "--ban", "y" * 257, "x", words=["--ban", "257"])
    refused(2, *run, *[word for i in range(65) for word in ("--ban", f"z{i}")], "x", words=["--ban", "64"])
    refused(2, "chat", "-m", tiny(), "--ban", "", words=["--ban"])
    refused(2, *run, "--ctx", 64, "--overflow", "shift", "--keep", 33, "x", words=["--keep 33", "64 tokens"])
    pith(*run, "--ctx", 64, "--overflow", "shift", "--keep", 32, "x")


def case_a_name_that_is_nearly_right_is_guessed():
    """Told and never acted on; a name that is near to none is told without a guess."""
    for command, given, meant in (("run", "--temprature", "--temp"), ("run", "--ctx-size", "--ctx"), ("run", "--top_k", "--top-k"), ("run", "-temp", "--temp"),
                                  ("chat", "--sytsem", "--system"), ("serve", "--prot=80", "--port")):
        refused(2, command, given, words=[f"unknown option '{given.split('=')[0]}'", f"did you mean {meant}?"])
    for given in ("--zzzzzz", "-z", "--", "--" + "x" * 300):
        _, message = pith("run", given, code=2)
        expect("did you mean" not in message, message)
    for given, meant in (("chta", "chat"), ("Serve", "serve"), ("rnu", "run"), ("ls", None), ("quantize", None)):
        _, message = pith(given, code=2)
        expect(f"there is no command '{given}'" in message and (f"did you mean `pith {meant}`?" in message if meant else "did you mean" not in message), message)
    with tempfile.TemporaryDirectory(prefix="pith-near-") as place:
        os.makedirs(os.path.join(place, "models"))
        tiny_gguf.with_template(TINY, os.path.join(place, "models", "tiny-llama-q4_k.gguf"), TEMPLATE)
        env = dict(os.environ, PITH_HOME=place)
        for given in ("tiny-lama-q4_k", "TinyLlama"):
            _, message = pith("run", "-m", given, "x", env=env, code=1)
            expect(f"there is no model '{given}'; did you mean tiny-llama-q4_k?" in message, message)
        _, message = pith("run", "-m", "something", "x", env=env, code=1)
        expect("there is no model 'something'" in message and "did you mean" not in message, message)


def case_a_model_that_is_no_option_is_told_the_way():
    refused(2, "chat", "smollm2", words=["'smollm2' belongs to no option", "-m smollm2"])
    refused(2, "serve", "smollm2", words=["-m smollm2"])
    _, message = pith("doctor", "smollm2", code=2)
    expect("'smollm2' belongs to no option" in message and "-m" not in message, message)
    refused(1, "run", "-m", "nowhere.gguf", "--tools", os.path.join(FOLDER, "none.json"), "x", words=["--tools: ", "none.json"])


def case_an_address_has_a_host():
    out, message = pith("doctor", "--json")
    if "libcurl" not in json.loads(out)["libraries"]:
        raise Skip("this build has no libcurl")
    for address in ("http://", "https://", "https:///m.gguf"):
        refused(1, "pull", address, words=["no host", "https://HOST/PATH"])


def case_options_stand_within_100_columns():
    for command in ("run", "chat", "serve", "bench"):
        out, _ = pith(command, "--help")
        lines = out.split("\n")
        expect(all(len(line) <= 100 for line in lines), [line for line in lines if len(line) > 100])
        options = [i for i, line in enumerate(lines) if line.startswith("  ") and line.strip().startswith("-")]
        for i in options:
            text = lines[i] if lines[i][36:37] == " " else lines[i + 1]  # a long name has a line of its own
            expect(text[36] == " " and text[37] != " ", "where the sentence begins:", lines[i], lines[i + 1])
        expect(len(options) > 5, out)


# ---- Machine ----

def case_kernels_in_short():
    short, _ = pith("doctor")
    whole, _ = pith("doctor", "--kernels")
    out, _ = pith("doctor", "--json")
    kernels = json.loads(out)["kernels"]
    expect(len(short.split("\n")) < 30 and all(len(l) <= 100 or l.startswith(("threads", "libraries", "models", "prompts")) for l in short.split("\n")), short)
    expect(all(name in whole and value in whole for name, value in kernels.items()), whole)
    families = {(name.split("[")[0], value.rsplit("_", 1)[1]) for name, value in kernels.items()}
    told = short[short.index("kernels"):]
    for family, tier in families:
        n = sum(1 for name, value in kernels.items() if name.split("[")[0] == family and value.rsplit("_", 1)[1] == tier)
        expect((f" {family} ({n})" if n > 1 else f" {family}") in told and f"\n  {tier} " in told, family, tier, told)


def case_nothing_is_kept_where_no_folder_is_named():
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "PITH_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE")}
    if WINE:
        raise Skip("wine needs a home")
    with tempfile.TemporaryDirectory(prefix="pith-nowhere-") as place:
        out, message = pith("run", "-m", tiny(), "--no-record", "-n", 2, "abc " * 60, env=env, cwd=place)
        expect(message.count("prompts are not kept") == 1 and "PITH_HOME" in message, message)
        _, message = pith("run", "-m", tiny(), "--no-record", "--cache", "off", "-n", 2, "x", env=env, cwd=place)
        expect("PITH_HOME" not in message, message)
        _, message = pith("list", env=env, cwd=place)
        expect("PITH_HOME" in message, message)
        _, message = pith("run", "-m", "smollm2", "x", env=env, cwd=place, code=1)
        out, _ = pith("doctor", env=env, cwd=place)
        expect(out.count("not kept: none of PITH_HOME") == 2, out)
        expect(os.listdir(place) == [], os.listdir(place))


def case_memory_counts_adapters():
    lora = os.path.join(ADAPTERS, "lora-a.gguf")
    size = os.path.getsize(lora)
    refused(1, "run", "-m", os.path.join(ADAPTERS, "llama.gguf"), "--lora", lora, "--memory", size, "x", words=["adapters alone need", str(size)])
    refused(1, "run", "-m", os.path.join(ADAPTERS, "llama.gguf"), "--raw", "--lora", lora, "--memory", size + 200000, "x", words=[" + adapters ", "MiB are needed"])


def case_a_reply_that_goes_round_is_told():
    options = ["run", "-m", tiny(), "--cache", "off", "--no-record", "-n", 80]
    out, message = pith(*options, "--regex", "(ab){200}", "x")
    expect(out.strip() == "ab" * 40 and "note: the reply ends with the same" in message and "--dry-multiplier" in message and "-n" in message, message)
    out, _ = pith(*options, "--json", "--regex", "(ab){200}", "x")
    expect(any("the reply ends with the same" in note for note in json.loads(out)["notes"]), out)
    _, message = pith(*options, "--regex", "abcdefghijklmnopqrstuvwxyz" * 2, "x")
    expect("the reply ends" not in message, message)


def case_statistics_tell_of_guesses():
    _, message = pith("run", "-m", tiny(), "--cache", "off", "--no-record", "--stats", "-n", 60, "--choices", "abcdefgh" * 6, "x")
    expect("guessed" in message and "forced by the grammar" in message, message)


if __name__ == "__main__":
    PROGRAM = given_program(__doc__)
    with tempfile.TemporaryDirectory(prefix="pith-mistakes-") as FOLDER:
        sys.exit(run_cases(globals(), sys.argv[2:]))
