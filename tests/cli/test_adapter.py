#!/usr/bin/env python3
"""Adapters as a user gives them: --lora and --control-vector with `pith logits` and `pith run`. Uses the tiny model of tests/data/adapter.
    tests/cli/test_adapter.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import ROOT, expect, given_program, run_cases

DATA = os.path.join(ROOT, "tests/data/adapter")
MODEL, LORA_A, LORA_B = (os.path.join(DATA, name) for name in ("llama.gguf", "lora-a.gguf", "lora-b.gguf"))
PEFT_A = os.path.join(DATA, "peft-a")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
IDS = ",".join(str((i * 37 + i // 5) % 250) for i in range(70))
N_VOCAB, N_EMBD = 288, 64


def pith(*arguments, stdin=b""):
    process = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, timeout=120, check=False)
    process.message = process.stderr.decode("utf-8", "replace")
    return process


def logits(*options, ids=IDS):
    result = pith("logits", "-m", MODEL, "--ids", ids, *options)
    expect(result.returncode == 0, result.message)
    return result.stdout


def fails(result, code, *words):
    expect(result.returncode == code and result.stdout == b"", "exit code", result.returncode, result.message)
    expect(all(str(word) in result.message for word in words), words, result.message)


def lora(*specs):
    return [part for spec in specs for part in ("--lora", spec)]


def control_file(path, vectors):
    """A control vector for each {layer: [N_EMBD floats]}."""
    text = lambda value: (8, tiny_gguf.string(value))
    tiny_gguf.write(path, {"general.architecture": text("controlvector"), "controlvector.model_hint": text("llama")},
                    [(f"direction.{layer}", (N_EMBD,), 0, struct.pack(f"<{N_EMBD}f", *values)) for layer, values in vectors.items()])


def case_golden_logits():
    with open(os.path.join(DATA, "lora-ab-0.5-0.7.json"), encoding="utf-8") as file:
        golden = json.load(file)
    raw = logits(*lora(LORA_A + ":0.5", LORA_B + ":0.7"), "--kv", "f32", ids=",".join(map(str, golden["tokens"])))
    for position in golden["positions"]:
        row = struct.unpack_from(f"<{N_VOCAB}f", raw, position["pos"] * N_VOCAB * 4)
        worst = max(abs(a - b) for a, b in zip(row, position["logits"]))
        expect(worst < 1e-3, "position", position["pos"], "differs by", worst)


def case_a_peft_folder_gives_the_bits_of_its_gguf():
    expect(logits(*lora(LORA_A)) == logits(*lora(PEFT_A)) != logits(), "bits differ")
    expect(logits(*lora(LORA_A + ":-0.25")) == logits(*lora(PEFT_A + "/:-0.25")), "bits differ")


def case_scale_0_gives_the_models_own_bits():
    expect(logits(*lora(LORA_A + ":0", LORA_B + ":0.0")) == logits(), "bits differ")
    expect(logits(*lora(LORA_A + ":0", LORA_B)) == logits(*lora(LORA_B)), "bits differ")


def case_the_same_bits_for_threads_steps_and_loading():
    both = lora(LORA_A + ":0.5", LORA_B)
    expected = logits("--exact", *both)
    for options in (["-t", "1"], ["-t", "2"], ["--step", "1"], ["--step", "7"], ["--step", "64"], ["--load", "mmap"], ["--load", "pack"]):
        expect(logits("--exact", *both, *options) == expected, options)


def case_paths_may_hold_colons():
    with tempfile.TemporaryDirectory(prefix="pith-adapter-") as folder:
        if WINE:
            return
        for name in ("a:b.gguf", "a:1", "c:1-2"):
            shutil.copy(LORA_A, os.path.join(folder, name))
        once, half = logits(*lora(LORA_A)), logits(*lora(LORA_A + ":0.5"))
        expect(logits(*lora(f"{folder}/a:b.gguf")) == once, "a:b.gguf")
        expect(logits(*lora(f"{folder}/a:b.gguf:0.5")) == half, "a:b.gguf:0.5")
        expect(logits(*lora(f"{folder}/a:1")) == once, "a name that is there as it stands")
        expect(logits(*lora(f"{folder}/a:1:.5")) == half, "a:1:.5")
        expect(logits(*lora(f"{folder}/c:1-2:5e-1")) == half, "c:1-2:5e-1")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--lora", f"{folder}/a:2"), 1, "/a")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--lora", f"{folder}/no.gguf:nan"), 1, "no.gguf:nan")


def case_control_vectors():
    with tempfile.TemporaryDirectory(prefix="pith-adapter-") as folder:
        one, two, zero = (os.path.join(folder, name + ".gguf") for name in ("one", "two", "zero"))
        values = [((i * 29) % 17 - 8) / 16 for i in range(N_EMBD)]
        control_file(one, {1: values})
        control_file(two, {1: [2 * v for v in values]})
        control_file(zero, {1: [0] * N_EMBD})
        plain = logits()
        expect(logits("--control-vector", one) != plain, "no effect")
        expect(logits("--control-vector", one + ":2") == logits("--control-vector", two), "2 x one is two")
        expect(logits("--control-vector", one + ":2:1-1") == logits("--control-vector", two + ":1-1"), "with a range")
        expect(logits("--control-vector", one + ":0") == plain == logits("--control-vector", zero), "nothing to add")
        expect(logits("--control-vector", one, *lora(LORA_A)) != logits(*lora(LORA_A)), "beside a LoRA")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--control-vector", one + ":1:2-1"), 1, "layers 2 to 1")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--control-vector", one + ":1:1-2"), 1, "0 to 1")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--control-vector", one + ":0-1"), 2, "layer 1")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--control-vector", one + ":0-0"), 2, "layer 1")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--control-vector", LORA_A), 1, "--lora")
        fails(pith("logits", "-m", MODEL, "--ids", "1", "--lora", one), 1, "--control-vector")


def case_run_tells_its_adapters():
    result = pith("run", "-m", MODEL, "--raw", "--no-record", "--temp", "0", "-n", "8", "--ignore-end", "--json", *lora(LORA_A, LORA_B + ":0.5"), "Hello")
    expect(result.returncode == 0, result.message)
    notes = json.loads(result.stdout)["notes"]
    told = [note for note in notes if note.startswith("adapter ")]
    expect(len(told) == 2 and "rank 4, scale 1," in told[0] and "rank 8, scale 0.5," in told[1], notes)
    plain = pith("run", "-m", MODEL, "--raw", "--no-record", "--temp", "0", "-n", "8", "--ignore-end", "--json", "Hello")
    expect(json.loads(plain.stdout)["ids"] != json.loads(result.stdout)["ids"], "the reply is the model's own")


def case_adapters_are_not_the_draft_models():
    command = ["run", "-m", MODEL, "--raw", "--no-record", "--temp", "0", "-n", "24", "--ignore-end", "--json", *lora(LORA_A), "Hello"]
    alone, drafted = pith(*command), pith(*command, "--draft", MODEL)
    expect(drafted.returncode == 0, drafted.message)
    expect(json.loads(alone.stdout)["ids"] == json.loads(drafted.stdout)["ids"], "guesses changed the reply")


def case_results_that_are_no_numbers_are_no_reply():
    for more in ([], ["--temp", "1"], ["--regex", "[a-z]+"]):
        result = pith("run", "-m", MODEL, "--raw", "--no-record", "-n", "4", "--json", *more, *lora(LORA_A + ":1e30"), "Hello")
        fails(result, 1, "no numbers", "adapter")


def case_memory_is_one_ceiling_with_a_draft_model():
    command = ["run", "-m", MODEL, "--raw", "--no-record", "--temp", "0", "-n", "4", "--ignore-end", "--ctx", "256", "--json", "--memory"]
    least = next(mib for mib in range(1, 64) if pith(*command, f"{mib}M", "Hello").returncode == 0)
    fails(pith(*command, f"{least}M", "--draft", MODEL, "Hello"), 1, "--memory")
    both = pith(*command, f"{2 * least + 1}M", "--draft", MODEL, "Hello")
    expect(both.returncode == 0, both.message)


def case_what_does_not_fit_is_refused():
    other = os.path.join(ROOT, "tests/data/arch/gemma3.gguf")
    fails(pith("logits", "-m", other, "--ids", "1", "--lora", LORA_A), 1, "llama", "gemma3")
    fails(pith("logits", "-m", MODEL, "--ids", "1", "--lora", MODEL), 1, "general.type")
    fails(pith("logits", "-m", MODEL, "--ids", "1", "--lora", "nowhere.gguf:0.5"), 1, "nowhere.gguf")
    fails(pith("logits", "-m", MODEL, "--ids", "1", "--lora", DATA), 1, "data/adapter")
    fails(pith("logits", "-m", MODEL, "--ids", "1", *lora(*[LORA_A] * 33)), 2, "32 adapters")
    fails(pith("logits", "-m", MODEL, "--ids", "1", "--memory", "420000", "--load", "mmap", "--lora", LORA_A), 1, "MiB")
    expect(len(logits(*lora(*[LORA_A + ":0.01"] * 32), ids="1,2")) == 2 * N_VOCAB * 4, "32 at once")


if __name__ == "__main__":
    PROGRAM = given_program(__doc__)
    sys.exit(run_cases(globals(), sys.argv[2:]))
