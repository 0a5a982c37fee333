#!/usr/bin/env python3
"""`pith fit`, the records that runs leave for it, `pith bench --roofline`, and --memory as a ceiling over everything.
    tests/cli/test_fit.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case_runner import ROOT, Skip, default_model, expect, given_program, run_cases
from memory_group import MemoryGroup

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
TINY_Q4_0 = os.path.join(ROOT, "tests/data/arch/llama-q4_0.gguf")
TINY_QWEN = os.path.join(ROOT, "tests/data/arch/qwen2-q8_0.gguf")
TINY_GEMMA = os.path.join(ROOT, "tests/data/arch/gemma3.gguf")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()


def pith(*arguments, home=None, timeout=120, before=None):
    env = dict(os.environ)
    if home:
        env["PITH_HOME"] = home
    done = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=timeout,
                          check=False, preexec_fn=before)
    done.text, done.message = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return done


def answer(*arguments, **kwargs):
    done = pith(*arguments, "--json", **kwargs)
    expect(done.returncode == 0, done.message)
    return json.loads(done.stdout)


def fails(done, code, *words):
    expect(done.returncode == code, "exit code", done.returncode, "expected", code, done.message)
    expect(done.stdout == b"" and "pith: " in done.message, done.message)
    for word in words:
        expect(str(word) in done.message, f"the message does not name '{word}':", done.message)


def near(value, expected, within, what):
    expect(abs(value - expected) <= within, what, value, "expected", expected)


# ---- figures ------------------------------------------------------------------------------------------------------

def case_course_a_3b_at_20_tokens():
    want = answer("fit", "--want", "20tok/s", "--bandwidth", "60GB/s", "--params", "3B")
    near(want["max_token_bytes"], 2.1e9, 1e6, "bytes")
    types = {row["type"]: row for row in want["types"]}
    near(types["Q4_0"]["bytes"], 1.7e9, 0.02e9, "4.5 bits")
    expect(types["Q4_0"]["fast_enough"] and not types["Q8_0"]["fast_enough"], types)
    near(types["Q8_0"]["tokens_per_second"], 13, 0.3, "8 bits and a scale")
    text = pith("fit", "--want", "20tok/s", "--bandwidth", "60GB/s", "--params", "3B")
    expect(text.returncode == 0 and "2.10 GB" in text.text and "too slow" in text.text, text.text)


def case_course_sizes_of_a_7b():
    want = answer("fit", "--want", "10", "--bandwidth", "60GB/s", "--params", "7B", "--ram", "8GB")
    sizes = {row["type"]: row for row in want["types"]}
    for name, size in (("F32", 28), ("F16", 14), ("8 bits", 7), ("4 bits", 3.5)):
        near(sizes[name]["bytes"], size * 1e9, 1, name)
    expect(not sizes["F16"]["fits"] and sizes["4 bits"]["fits"], sizes)


def case_devices_by_name():
    devices = answer("fit", "--devices")
    expect(len(devices) >= 25 and all(d["source"] and d["bandwidth"] > 1e9 for d in devices), devices)
    expect(len({d["name"] for d in devices}) == len(devices), "names")
    fit = answer("fit", TINY, "--device", "rtx-4090")[0]
    expect(fit["device"] == "rtx-4090" and not fit["speed"]["measured"], fit)
    near(fit["speed"]["decode_tps"] / fit["speed"]["decode_ceiling_tps"], 0.7, 1e-6, "share")
    expect(fit["speed"]["prefill_tps"] > 0, fit)
    expect(answer("fit", TINY, "--device", "phone")[0]["speed"]["ttft_ms"] is None, "no operations are published")
    half = answer("fit", TINY, "--device", "rtx-4090", "--share", "0.35")[0]
    near(half["speed"]["decode_tps"] * 2 / fit["speed"]["decode_tps"], 1, 1e-5, "share 0.35")
    fails(pith("fit", TINY, "--device", "toaster"), 2, "toaster", "--devices")
    fails(pith("fit", TINY, "--bandwidth", "fast"), 2, "fast")
    fails(pith("fit", TINY, "--ops", "2TOPS"), 2, "--bandwidth")
    fails(pith("fit", "--params", "3B"), 2, "--want")
    fails(pith("fit"), 2, "MODEL")
    fails(pith("fit", TINY, "--want", "-1"), 2, "--want")


def case_figures_say_what_does_not_fit():
    fit = answer("fit", TINY_Q4_0, "--bandwidth", "60GB/s", "--ram", "1M", "--load", "pack")[0]
    expect(not fit["memory"]["fits"], fit)
    text = pith("fit", TINY_Q4_0, "--bandwidth", "60GB/s", "--ram", "1M", "--load", "pack")
    expect("DOES NOT FIT" in text.text, text.text)


# ---- headers and this machine -------------------------------------------------------------------------------------

def case_a_header_is_enough():
    whole = answer("fit", TINY, "--no-probe")[0]
    with tempfile.TemporaryDirectory() as folder:
        cut = os.path.join(folder, "cut.gguf")
        with open(TINY, "rb") as source, open(cut, "wb") as target:
            target.write(source.read(os.path.getsize(TINY) * 2 // 3))
        fit = answer("fit", cut, "--no-probe")[0]
        expect(whole["whole"] and not fit["whole"] and fit["runs"], fit)
        for part in ("weight_bytes", "kv_bytes", "workspace_bytes", "total_bytes"):
            expect(fit["memory"][part] == whole["memory"][part], part, fit, whole)
        expect(fit["file_bytes"] == whole["file_bytes"], fit)
        expect(answer("fit", cut, home=folder)[0]["speed"]["decode_tps"] > 0, "a cut file is rehearsed")
        expect(not os.path.exists(os.path.join(folder, "fit")), "no record without the whole file")
        fails(pith("run", "-m", cut, "x"), 1, "cut short")


def case_this_machine_is_probed():
    with tempfile.TemporaryDirectory() as home:
        start = time.monotonic()
        fits = answer("fit", TINY, TINY_GEMMA, "-t", "1", "-p", "64", "-d", "32", home=home)
        expect(len(fits) == 2 and time.monotonic() - start < 30, time.monotonic() - start)
        for fit in fits:
            speed = fit["speed"]
            expect(fit["runs"] and speed["measured"] and fit["n_threads"] == 1, fit)
            for key in ("bandwidth", "int8_macs", "decode_tps", "decode_ceiling_tps", "prefill_tps", "ttft_ms", "token_bytes"):
                expect(speed[key] > 0, key, speed)
            expect(fit["memory"]["contexts"] and fit["record"] is None, fit)
        text = pith("fit", TINY, "-t", "1", "--want", "5tok/s", home=home)
        expect("decode" in text.text and "prefill" in text.text and "fast enough" in text.text, text.text)


def case_figures_without_sense():
    """Every number of the answer is one, or the figure is refused."""
    for options in (["--bandwidth", "1e-300"], ["--bandwidth", "1e29"], ["--bandwidth", "nan"], ["--bandwidth", "0"],
                    ["--bandwidth", "1", "--ops", "1e-300"], ["--device", "a100", "--want", "1e-300"], ["--ram", "9.3e18", "--bandwidth", "1"],
                    ["--memory", "1e-5"], ["--memory", "9.3e18"], ["--memory", "-1"], ["--memory", "nan"]):
        fails(pith("fit", TINY, "--no-probe", *options), 2, options[-1] if options[0] != "--ram" else "9.3e18")
    for options in (["--bandwidth", "1"], ["--bandwidth", "1e24", "--ops", "1"], ["--bandwidth", "1", "--ops", "1e24", "--want", "1e-6"],
                    ["--bandwidth", "1", "--ram", "9e18", "--want", "1e24"], ["--bandwidth", "1", "--ops", "1", "-p", 1 << 24, "-d", 1 << 24]):
        done = pith("fit", TINY, *options)
        expect(done.returncode == 0 and "nan" not in done.text and "inf" not in done.text, done.text)
        fit = answer("fit", TINY, *options)[0]
        expect(("want" in fit) == ("--want" in options) and fit["speed"]["decode_tps"] > 0, fit)
        expect(fit["memory"]["limit_bytes"] >= 0, fit["memory"])


def case_contexts_of_a_few_tokens():
    """A rehearsal goes back where a model's own context is shorter than the tokens that are timed."""
    key = b"llama.context_length" + (4).to_bytes(4, "little")
    data = open(TINY, "rb").read()
    at = data.index(key) + len(key)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "short.gguf")
        for n_ctx in (1, 2, 16, 40, 41, 63, 255, 256, 257):
            with open(path, "wb") as file:
                file.write(data[:at] + n_ctx.to_bytes(4, "little") + data[at + 4:])
            fit = answer("fit", path, "-t", "1", home=folder)[0]
            expect(fit["n_ctx"] == n_ctx and fit["speed"]["measured"] and fit["speed"]["decode_tps"] > 0, n_ctx, fit)


def string(text):
    return len(text).to_bytes(8, "little") + text.encode()


def case_sizes_beyond_any_memory():
    """Keys of an architecture that is not run may claim anything: sums stay numbers, and say that nothing fits."""
    most = (1 << 32) - 1
    keys = [string("general.architecture") + (8).to_bytes(4, "little") + string("odd")]
    for name in ("block_count", "embedding_length", "context_length", "attention.kv_lora_rank", "rope.dimension_count"):
        keys.append(string("odd." + name) + (4).to_bytes(4, "little") + most.to_bytes(4, "little"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "odd.gguf")
        with open(path, "wb") as file:
            file.write(b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + len(keys).to_bytes(8, "little") + b"".join(keys))
        for options in (["--no-probe"], ["--device", "phone", "--want", "20"]):
            fit = answer("fit", path, *options)[0]
            memory = fit["memory"]
            expect(not memory["fits"] and memory["kv_bytes"] > 1 << 62 and memory["total_bytes"] > 1 << 62, memory)
            expect(all(not row["fits"] and row["kv_bytes"] > 1 << 62 for row in memory["contexts"]) and "want" not in fit, memory)


def case_a_part_of_a_split_model_is_said_to_be_one():
    for count in (2, 1001, (1 << 32) - 1):  # 1000 parts are the limit
        keys = [string("general.architecture") + (8).to_bytes(4, "little") + string("odd"),
                string("split.count") + (4).to_bytes(4, "little") + count.to_bytes(4, "little")]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "odd-00001-of-00002.gguf")
            with open(path, "wb") as file:
                file.write(b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + len(keys).to_bytes(8, "little") + b"".join(keys))
            fit = answer("fit", path, "--no-probe")[0]
            expect(not fit["whole"] and any("one part of a split" in note for note in fit["notes"]), count, fit)


def case_a_slow_machine_is_timed_with_fewer_rows():
    """One thread of plain C takes some 0.1 s for a token; steps of 256 rows would make the probe take half a minute."""
    model = default_model()
    with tempfile.TemporaryDirectory() as home:
        os.environ["PITH_CPU"] = "ref"
        try:
            fit = answer("fit", model, "-t", "1", home=home)[0]
        finally:
            del os.environ["PITH_CPU"]
        steps = json.load(open(records(home)[0], encoding="utf-8"))["estimate"]
        expect(4 <= steps["short_rows"] < 32 and steps["short_rows"] <= steps["step_rows"] < 256, steps)
        expect(fit["speed"]["prefill_tps"] > 0.3 * fit["speed"]["decode_tps"], fit["speed"])


def case_what_is_no_model():
    with tempfile.TemporaryDirectory() as folder:
        junk = os.path.join(folder, "junk.gguf")
        with open(junk, "wb") as file:
            file.write(b"GGUF" + bytes(60))
        fails(pith("fit", junk), 1, "junk.gguf")
        fails(pith("fit", os.path.join(folder, "none.gguf")), 1, "none.gguf")
        fails(pith("fit", TINY, "--ctx", "513"), 1, "512")


# ---- records ------------------------------------------------------------------------------------------------------

def records(home):
    folder = os.path.join(home, "fit")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []


def bench(home, *more):
    return pith("bench", "-m", TINY, "-t", "1", "-p", "32", "-n", "16", "-r", "2", "--json", *more, home=home)


def case_runs_are_kept_and_correct_the_estimate():
    with tempfile.TemporaryDirectory() as home:
        before = answer("fit", TINY, "-t", "1", "-p", "32", home=home)[0]
        expect(len(records(home)) == 1 and before["record"] is None, before)
        expect(bench(home).returncode == 0, "bench")
        record = json.load(open(records(home)[0], encoding="utf-8"))
        expect(len(records(home)) == 1 and record["runs"] == 1, record)
        expect(record["token_ms"] > 0 and record["prompt_ms"] > 0 and record["token_error"] != 0, record)
        told = min(max(1 + record["token_error"], record["token_fast"]), record["token_slow"])  # by the range of memory's speed
        near(record["token_factor"], min(10, max(0.1, (1 + record["token_error"]) / told)) ** 0.5, 1e-3, "half of the way")
        after = answer("fit", TINY, "-t", "1", "-p", "32", home=home)[0]
        expect(after["record"]["runs"] == 1, after)
        near(after["record"]["decode_error"], record["token_error"], 1e-6, "error")
        text = pith("fit", TINY, "-t", "1", home=home)
        expect("record  1 run" in text.text, text.text)
        done = pith("run", "-m", TINY, "-t", "1", "--raw", "--ignore-end", "-n", "20", "a long enough prompt " * 5, home=home)
        expect(done.returncode == 0 and json.load(open(records(home)[0], encoding="utf-8"))["runs"] == 2, done.message)
        expect(bench(home, "--no-record").returncode == 0, "bench")
        expect(json.load(open(records(home)[0], encoding="utf-8"))["runs"] == 2, "--no-record wrote")
        other = answer("fit", TINY, "-t", "1", "--no-record", home=home)[0]
        expect(other["record"] is None, other)


def machine_file(home):
    folder = os.path.join(home, "machine")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    expect(len(names) <= 1, "one file a machine", names)
    return os.path.join(folder, names[0]) if names else None


def rates(threads, read, macs):
    return {"threads": threads, "bandwidth": read * 6e10, "int8_macs": macs * 3e11}


def case_threads_by_default_come_from_what_was_measured():
    """Invented measurements: what is kept decides, --threads overrides it, what cannot be believed counts as nothing."""
    doctor = answer("doctor")
    usual, cores = doctor["threads"], doctor["cores"]
    most = min(cores, 512)
    few = [rates(1, 0.98, 0.4), rates(2, 1.0, 1.0)] if most > 1 else [rates(1, 1.0, 1.0)]  # one thread reads enough, two multiply more
    with tempfile.TemporaryDirectory() as home:
        expect(answer("doctor", home=home)["probe"] is None, "nothing is kept yet")
        expect("pith doctor --probe" in pith("doctor", home=home).text, "how to measure")
        answer("fit", TINY, "-t", "1", home=home)
        path = machine_file(home)
        kept = json.load(open(path, encoding="utf-8"))
        expect(kept["threads"] == [] and len(kept["speeds"]) == 1, "-t leaves nothing to choose", kept)

        def put(threads, looks=3, speeds=None):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**kept, "looks": looks, "threads": threads, "speeds": speeds or kept["speeds"]}, file)

        def runs(*more):
            rows = json.loads(pith("bench", "-m", TINY, "-p", "4", "-n", "4", "-r", "1", "--no-record", "--json", *more, home=home).stdout)
            return [row["n_threads"] for row in rows]

        expect(runs() == [usual, usual], "nothing was measured", runs())
        put(few)
        expect(runs() == [len(few), 1] and runs("-t", "2") == [2, 2], runs(), runs("-t", "2"))
        fit = answer("fit", TINY, "--no-probe", home=home)[0]
        expect(fit["n_threads"] == len(few), fit)
        probe = answer("doctor", home=home)["probe"]
        expect(probe["threads"] == len(few) and probe["decode_threads"] == 1 and len(probe["rates"]) == len(few), probe)
        text = pith("doctor", home=home).text
        expect(f"{len(few)} by default, 1 of them for decoding" in text and f"{len(few)} to multiply, 1 to read" in text, text)
        put(few, 2)  # memory may have been slow
        expect(runs() == [max(usual, len(few)), usual], "fewer than usual after two looks", runs())
        probe = answer("doctor", home=home)["probe"]
        expect(probe["decode_threads"] == usual and probe["enough_decode_threads"] == 1 and probe["looks"] == 2, probe)
        put([rates(most, 1, 1)], 1)
        expect(runs() == [most, most], "more than usual at once", runs())
        speed = {"threads": usual, "low": 3e10, "median": 3e10, "high": 3e10}
        put([rates(1, 1, 1)], 2, [speed])
        expect(f"30.0 to 30.0 GB/s with {usual} threads" in pith("doctor", home=home).text, "speed of the threads that are used")
        put(few)
        ids = {answer("run", "-m", TINY, "--raw", "--temp", "0", "-n", "8", *more, "some words", home=home)["text"] for more in ([], ["-t", "1"])}
        expect(len(ids) == 1, "threads changed the text", ids)
        for broken in ([rates(2, 1, 1), rates(1, 1, 1)], [rates(0, 1, 1)], [rates(513, 1, 1)], [rates(1, 1, -1)], [rates(1, 0, 1)],
                       [rates(n, 1, 1) for n in range(1, 14)], ["x"], [rates(1, 1, 1), rates(cores + 1, 2, 2)], [rates(1, 1e-200, 1)],
                       [rates(1, 1, 1e300)]):
            put(broken)
            expect(runs() == [usual, usual], broken, runs())
        put([rates(1, 1, 1)], 0)
        expect(runs() == [usual, usual], "rates that nobody saw", runs())
        put([], 0)
        answer("doctor", "--probe", home=home)  # a busy machine keeps nothing new
        probe = answer("doctor", home=home)["probe"]
        expect(probe is None or (1 <= probe["decode_threads"] <= probe["threads"] and probe["looks"] == 1), probe)
        counts = [row["threads"] for row in probe["rates"]] if probe else []
        if counts:
            put([rates(n, 1000 * n, 1e-6) for n in counts], 7)  # of two looks the best rates are kept
            answer("doctor", "--probe", home=home)
            probe = answer("doctor", home=home)["probe"]
            expect(probe["looks"] in (7, 8) and probe["rates"][0]["bandwidth"] == 6e13, probe)
            expect(probe["looks"] == 7 or probe["rates"][0]["int8_macs"] > 3e6, probe)
        os.remove(path)
        expect(pith("run", "-m", TINY, "--raw", "-n", "2", "x", home=home).returncode == 0 and not machine_file(home), "run measures nothing")
        expect(pith("fit", TINY, "--no-record", home=home).returncode == 0 and not machine_file(home), "--no-record keeps nothing")


def case_a_range_where_memory_speed_changes():
    with tempfile.TemporaryDirectory() as home:
        first = answer("fit", TINY, "-t", "1", home=home)[0]["speed"]
        expect(first["bandwidth_low"] <= first["bandwidth"] <= first["bandwidth_high"], first)
        expect(first["decode_tps_low"] <= first["decode_tps"] <= first["decode_tps_high"], first)
        path = machine_file(home)
        kept = json.load(open(path, encoding="utf-8"))
        slow = {"threads": 1, "low": 1e6, "median": 1e7, "high": 1e7}  # below what a crowded machine reads
        other = {"threads": 2, "low": 1e5, "median": 1e5, "high": 1e5}  # says nothing about one thread
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**kept, "speeds": [other, slow]}, file)
        speed = answer("fit", TINY, "-t", "1", home=home)[0]["speed"]
        near(speed["bandwidth_low"], 1e7, 1, "the slowest middle that was kept")
        expect(speed["decode_tps_low"] < speed["decode_tps"], speed)
        expect("memory speed changes" in pith("fit", TINY, "-t", "1", home=home).text, "the range is told")
        record = json.load(open(records(home)[0], encoding="utf-8"))
        expect(record["token_slow"] > 1.15 and 0 < record["token_fast"] <= 1, record)
        record["estimate"]["token_ns"] = 1e9  # a run is faster than that memory ever was
        record["estimate"]["token_kv_ns"] = 0
        record["token_fast"] = 0.25
        with open(records(home)[0], "w", encoding="utf-8") as file:
            json.dump(record, file)
        expect(bench(home).returncode == 0, "bench")
        after = json.load(open(records(home)[0], encoding="utf-8"))
        near(after["token_factor"], max(0.1, (1 + after["token_error"]) / 0.25) ** 0.5, 1e-3, "what memory's speed does not explain")
        last = answer("fit", TINY, "-t", "1", "--no-record", home=home)[0]["speed"]
        expect(last["bandwidth_low"] > 1e7, "--no-record uses no former runs", last)
        expect(len(json.load(open(path, encoding="utf-8"))["speeds"]) == 4, "--no-record keeps none")
        for median in (1e-200, 1e17):  # no such memory: it must not make a record that can't be believed
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**kept, "speeds": [{"threads": 1, "low": median, "median": median, "high": median}]}, file)
            answer("fit", TINY, "-t", "1", home=home)
            record = json.load(open(records(home)[0], encoding="utf-8"))
            expect(record["runs"] == after["runs"] and record["token_slow"] < 1e6, "an odd speed cost a record", record)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**kept, "speeds": [slow] * 16}, file)
        answer("fit", TINY, "-t", "1", home=home)
        speeds = json.load(open(path, encoding="utf-8"))["speeds"]
        expect(len(speeds) == 16 and speeds[-1]["median"] > 1e7, "the latest sixteen", len(speeds))


def case_a_run_before_any_estimate():
    with tempfile.TemporaryDirectory() as home:
        expect(bench(home).returncode == 0 and len(records(home)) == 1, "a record of a run alone")
        fit = answer("fit", TINY, "-t", "1", "-p", "32", home=home)[0]
        expect(fit["record"]["runs"] == 1 and fit["record"]["decode_error"] != 0, fit["record"])


def case_a_broken_record_is_replaced():
    with tempfile.TemporaryDirectory() as home:
        expect(bench(home).returncode == 0, "bench")
        path = records(home)[0]
        good = open(path, encoding="utf-8").read()
        for text in ("", "{", "[]", '{"version": 1}', good.replace('"runs": 1', '"runs": -5'), good.replace('"token_factor": 1', '"token_factor": 1e9'),
                     "\0" * 100, "[" * 5000, good.replace('"version": 2', '"version": 3'), good.replace('"token_slow"', '"slow"'), '{"version":1,' + '"x":"' + "y" * 200000 + '"}'):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            expect(answer("fit", TINY, "-t", "1", "--device", "phone", home=home)[0]["record"] is None, text[:40])
            expect(bench(home).returncode == 0, text[:40])
            expect(json.load(open(path, encoding="utf-8"))["runs"] == 1, text[:40])
        expect(records(home) == [path], records(home))


def case_a_record_of_nonsense_is_not_believed():
    """Well-formed, but nothing a run could have measured."""
    with tempfile.TemporaryDirectory() as home:
        expect(bench(home).returncode == 0 and answer("fit", TINY, "-t", "1", home=home)[0]["record"]["runs"] == 1, "a record")
        path = records(home)[0]
        good = json.load(open(path, encoding="utf-8"))
        for name, value in (("other_more", 1e9 + 1), ("other_more", -9e17), ("window_layers_share", -0.1), ("window_layers_share", 1.01),
                            ("window", -2), ("step_rows", 0), ("token_ns", -1)):
            bad = json.loads(json.dumps(good))
            (bad if name in bad else bad["estimate"])[name] = value
            with open(path, "w", encoding="utf-8") as file:
                json.dump(bad, file)
            fit = answer("fit", TINY, "-t", "1", home=home)[0]
            expect(fit["record"] is None and 0 < fit["memory"]["total_bytes"] < 1e9, name, value, fit)


def case_a_correction_is_bounded_by_what_was_measured():
    """Runs and estimates that something disturbed may have taught a factor of five: nothing is told that the machine cannot read or multiply."""
    model = default_model()
    with tempfile.TemporaryDirectory() as home:
        answer("fit", model, home=home)
        path = records(home)[0]
        record = json.load(open(path, encoding="utf-8"))
        record.update(runs=9, token_factor=0.2, prompt_factor=0.2)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file)
        fit = answer("fit", model, home=home)[0]
        speed = fit["speed"]
        expect(fit["record"]["decode_factor"] == 0.2, fit["record"])
        expect(0 < speed["decode_tps"] <= speed["decode_ceiling_tps"] * 1.001, speed)
        expect(0 < speed["prefill_tps"] * speed["token_macs"] * 0.7 <= speed["int8_macs"], speed)  # without the output layer


def case_a_record_that_is_no_file():
    """A pipe would be waited for, a device read without an end."""
    if WINE or not hasattr(os, "mkfifo"):
        raise Skip("no pipes with names here")
    with tempfile.TemporaryDirectory() as home:
        expect(bench(home).returncode == 0, "bench")
        path = records(home)[0]
        for make in (os.mkfifo, lambda name: os.symlink("/dev/zero", name), lambda name: os.symlink(name, name), os.mkdir):
            os.remove(path)
            make(path)
            expect(answer("fit", TINY, "-t", "1", home=home, timeout=60)[0]["record"] is None, make)
            expect(bench(home).returncode == 0, make)
        os.rmdir(path)


def case_what_a_killed_program_left_is_removed():
    with tempfile.TemporaryDirectory() as home:
        expect(bench(home).returncode == 0, "bench")
        path = records(home)[0]
        for name in (path + ".17.part", path + ".99999.part", os.path.join(home, "fit", "other.json.5.part")):
            with open(name, "w", encoding="utf-8") as file:
                file.write('{"version"')
        kept = os.path.join(home, "fit", "part")
        with open(kept, "w", encoding="utf-8"):
            pass
        expect(bench(home).returncode == 0, "bench")
        expect(records(home) == sorted([path, kept]), records(home))


def case_other_ways_of_running_are_not_recorded():
    """The estimate is about the usual contract and steps: what ran otherwise would correct it wrongly."""
    with tempfile.TemporaryDirectory() as home:
        for options in (["--exact"], ["--precision", "full"], ["--step", "16"], ["--profile"]):
            expect(bench(home, *options).returncode == 0 and not records(home), options, records(home))
        done = pith("run", "-m", TINY, "-t", "1", "--raw", "--exact", "--ignore-end", "-n", "20", "a long enough prompt " * 5, home=home)
        expect(done.returncode == 0 and not records(home), done.message)


def case_a_folder_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "fit"), "w", encoding="utf-8"):
            pass  # a file where the folder should be
        done = bench(home)
        expect(done.returncode == 0 and b"avg_ts" in done.stdout and done.message == "", done.message)
        expect(answer("fit", TINY, "-t", "1", home=home)[0]["record"] is None, "no record")
        done = bench(os.path.join(home, "fit", "below"))
        expect(done.returncode == 0, done.message)


# ---- roofline -----------------------------------------------------------------------------------------------------

def case_roofline():
    with tempfile.TemporaryDirectory() as home:
        rows = json.loads(bench(home, "--roofline").stdout)
        for row in rows:
            roof = row["roofline"]
            expect(roof["read_bandwidth"] > 0 and roof["int8_macs"] > 0, roof)
            near(roof["macs_share"] * roof["int8_macs"], roof["macs_per_second"], 1e-6 * roof["macs_per_second"], "share")
            if row["n_gen"]:
                near(roof["bandwidth_share"], roof["bytes_per_second"] / roof["read_bandwidth"], 1e-6, "share")
                expect(roof["bytes_per_second"] >= roof["token_bytes"] * row["avg_ts"] * 0.999, roof)
        text = pith("bench", "-m", TINY, "-t", "1", "-p", "16", "-n", "4", "-r", "1", "--roofline", home=home)
        expect("roofline:" in text.text and "of GB/s" in text.text, text.text)
        expect("roofline" not in json.loads(bench(home).stdout)[0], "not asked for")


# ---- memory -------------------------------------------------------------------------------------------------------

def need(model, *options):
    memory = answer("fit", model, "--no-probe", "-t", "1", *options)[0]["memory"]
    return memory["weight_bytes"] + memory["kv_bytes"] + memory["workspace_bytes"], memory


def run_with(memory, *options):
    return pith("run", "-m", TINY_Q4_0, "-t", "1", "--no-record", "--raw", "--memory", memory, *options, "-n", "2", "hello")


def case_memory_is_one_ceiling():
    sum_, memory = need(TINY_Q4_0, "--load", "pack")
    expect(run_with(sum_, "--load", "pack").returncode == 0, "the sum fits")
    refused = run_with(sum_ - 1, "--load", "pack")
    tenths = sum_ * 10 // (1 << 20)  # of MiB: allowed is told rounded down, needed rounded up
    fails(refused, 1, f"allows {tenths / 10:.1f} MiB", f"= {(tenths + 1) / 10:.1f} MiB", "weights", "KV of 512 tokens", "workspace", "--ctx", "--load mmap")
    context = memory["kv_bytes"] // 512
    fitting = answer("fit", TINY_Q4_0, "--no-probe", "-t", "1", "--load", "pack", "--memory", sum_ - 64 * context)[0]["memory"]["allowed"]["longest_ctx"]
    expect(0 < fitting < 512, fitting)
    expect(run_with(sum_ - 64 * context, "--load", "pack", "--ctx", fitting).returncode == 0, fitting)
    fails(run_with(sum_ - 64 * context, "--load", "pack", "--ctx", fitting + 64), 1, "KV")


def case_auto_maps_the_file_below_the_ceiling():
    sum_, memory = need(TINY_Q4_0, "--load", "pack")
    packed = run_with(sum_)
    mapped = run_with(sum_ - 1)
    expect(packed.returncode == 0 and "mapped" not in packed.message, packed.message)
    expect(mapped.returncode == 0 and "mapped" in mapped.message and mapped.stdout == packed.stdout, mapped.message)
    mapped_need, memory = need(TINY_Q4_0, "--load", "mmap")
    least = memory["kv_bytes"] + memory["workspace_bytes"]
    expect(run_with(least).returncode == 0, "KV and workspace alone")
    fails(run_with(least - 1), 1, "weights 0.0", "--ctx")


def case_full_precision_needs_what_was_said():
    """Refused before a weight is read, to the byte."""
    for load in ("pack", "mmap"):
        least, most = 1, 1 << 30
        while most - least > 1:
            middle = (least + most) // 2
            done = pith("run", "-m", TINY_QWEN, "-t", "1", "--no-record", "--raw", "--memory", middle, "--load", load, "--precision", "full",
                        "-n", "2", "hello")
            expect(done.returncode == 0 or "--memory allows" in done.message, load, middle, done.message)
            least, most = (least, middle) if done.returncode == 0 else (middle, most)


def case_auto_maps_the_file_when_the_system_has_less():
    """A limit on the address space: packed weights cannot be had, the mapping is there already."""
    try:
        import resource
    except ImportError:
        raise Skip("no limits of processes here") from None
    model = default_model()
    if WINE:
        raise Skip("the wrapper needs its own memory")
    command = ["run", "-m", model, "-t", "1", "--no-record", "--ctx", "256", "--step", "32", "-n", "4", "hello"]
    for spare in range(192, 0, -4):  # how much the program itself takes differs between systems
        limit = 3 * os.path.getsize(model) // 2 + (spare << 20)
        limits = (limit, limit)
        packed = pith(*command, "--load", "pack", before=lambda: resource.setrlimit(resource.RLIMIT_AS, limits))
        if packed.returncode != 0:
            break
    expect(packed.returncode == 1 and re.search(r"memory|MiB are free", packed.message), packed.message)  # weights, or what comes after
    done = pith(*command, before=lambda: resource.setrlimit(resource.RLIMIT_AS, limits))
    expect(done.returncode == 0 and "mapped" in done.message, done.message)


def random_model(folder, *shape):
    """A model of random weights from the program of tests/tools that lies beside the one under test."""
    maker = os.path.join(os.path.dirname(PROGRAM), "tests/tools/pith-random-model")
    if not os.path.exists(maker):
        raise Skip("pith-random-model was not built")
    path = os.path.join(folder, "random.gguf")
    done = subprocess.run([maker, "--arch", "llama", *shape, "--out", path], capture_output=True, check=False)
    expect(done.returncode == 0, done.stderr.decode())
    return path


def evict(path):
    """Out of the page cache, whose pages count for the group that read them first."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def case_a_group_with_less_memory_than_the_file():
    """Half the file is allowed: mmap answers as without a limit, auto takes it by itself, pack is refused."""
    if WINE or not hasattr(os, "posix_fadvise"):
        raise Skip("the wrapper needs its own memory" if WINE else "no page cache to evict from")
    with tempfile.TemporaryDirectory() as folder:
        model = random_model(folder, "--type", "Q8_0", "--layers", "8", "--embd", "1024", "--ff", "4096", "--heads", "16", "--kv-heads", "4",
                             "--head-dim", "64", "--vocab", "4000", "--ctx", "512")
        size = os.path.getsize(model)
        command = ["run", "-m", model, "-t", "2", "--no-record", "--raw", "--temp", "0", "--ignore-end", "-n", "6", "hello"]
        expected = pith(*command, "--load", "pack")
        expect(expected.returncode == 0 and expected.stdout, expected.message)
        with MemoryGroup(size // 2) as group:
            evict(model)
            mapped = pith(*command, "--load", "mmap", before=group.enter)
            expect(mapped.returncode == 0 and mapped.stdout == expected.stdout, mapped.returncode, mapped.message, mapped.text, expected.text)
            expect(group.times_reached() > 0, "the limit was never reached: the case shows nothing")
            chosen = pith(*command, before=group.enter)
            expect(chosen.returncode == 0 and "mapped" in chosen.message and chosen.stdout == expected.stdout, chosen.returncode, chosen.message)
            fails(pith(*command, "--load", "pack", before=group.enter), 1, "weights", "mmap")


if __name__ == "__main__":
    PROGRAM = given_program(__doc__)
    sys.exit(run_cases(globals(), sys.argv[2:]))
