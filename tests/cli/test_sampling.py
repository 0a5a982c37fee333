#!/usr/bin/env python3
"""The sampling options of `pith run` and `pith chat`: each one reaches the sampler, is refused by its name at its limits, and
--logprobs tells what the model gave each token (checked against `pith logits`).
    tests/cli/test_sampling.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case_runner import ROOT, expect, given_program, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
RUN = ["run", "-m", TINY, "--raw", "--ignore-end", "--no-record", "--json"]


def pith(*arguments, code=0):
    result = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    message = result.stderr.decode("utf-8", "replace")
    expect(result.returncode == code, "exit code", result.returncode, "expected", code, message)
    return json.loads(result.stdout) if code == 0 else message


def draw(*options, n=24, seed=1):
    return pith(*RUN, "-n", n, "--seed", seed, *options, "abc")["ids"]


def refused(*options, words):
    message = pith(*RUN, "-n", 1, *options, "abc", code=2)
    expect(message.startswith("pith: ") and len(message) < 1200, message)
    for word in words:
        expect(str(word) in message, f"the message does not name '{word}':", message)


HOT = ["--temp", 1.5]


def case_each_stage_changes_what_is_drawn():
    plain = draw(*HOT)
    expect(plain == draw(*HOT), "the same seed gave other tokens")
    for options in (["--top-k", 3], ["--top-p", 0.3], ["--min-p", 0.5], ["--typical", 0.3], ["--top-n-sigma", 0.5],
                    ["--dynatemp-range", 1.4], ["--dynatemp-range", 1.4, "--dynatemp-exp", 3], ["--xtc-probability", 1, "--xtc-threshold", 0.01],
                    ["--mirostat", 1, "--mirostat-tau", 1], ["--mirostat", 2, "--mirostat-tau", 1], ["--repeat-penalty", 3],
                    ["--frequency-penalty", 3], ["--presence-penalty", 5]):
        other = draw(*HOT, *options)
        expect(other != plain, options, "changed nothing", other)
        expect(other == draw(*HOT, *options), options, "is not repeatable")


def case_off_is_off():
    plain = draw(*HOT)
    for options in (["--top-k", 0], ["--top-p", 1], ["--top-p", 0], ["--min-p", 0], ["--typical", 1], ["--top-n-sigma", 0], ["--dynatemp-range", 0],
                    ["--xtc-probability", 0], ["--mirostat", 0], ["--repeat-penalty", 1], ["--dry-multiplier", 0],
                    ["--samplers", "penalties;dry;top_n_sigma;top_k;typical;top_p;min_p;xtc;temperature"]):
        expect(draw(*HOT, *options) == plain, options, "changed something")


def case_greedy_keeps_the_likeliest():
    plain = draw()
    expect(draw("--top-k", 3, "--top-p", 0.5, "--min-p", 0.1, "--top-n-sigma", 1, seed=7) == plain, "a cut changed a greedy reply")
    expect(draw(*HOT, "--top-k", 1, seed=9) == plain, "one candidate is the greedy reply")


def case_passages_are_not_repeated():
    """The tiny model falls into a loop when greedy or is driven into one by a bias; DRY ends it."""
    loop = draw("--logit-bias", "70+100", "--logit-bias", "71+100", n=24)
    expect(set(loop) <= {70, 71}, loop)
    free = draw("--logit-bias", "70+100", "--logit-bias", "71+100", "--dry-multiplier", 90, "--dry-sequence-breaker", "none", n=24)
    expect(set(free) - {70, 71}, free)
    for options in (["--dry-allowed-length", 30], ["--dry-window", 1]):
        kept = draw("--logit-bias", "70+100", "--logit-bias", "71+100", "--dry-multiplier", 90, "--dry-sequence-breaker", "none", *options, n=24)
        expect(kept == loop, options, kept)


def case_an_order_is_followed():
    """Hot first, then top-p: more tokens are left than the other way round, so another text."""
    options = [*HOT, "--top-p", 0.6]
    expect(draw(*options) == draw(*options, "--samplers", "top_p;temperature"), "the default order has top-p before temperature")
    expect(draw(*options) != draw(*options, "--samplers", "temperature,top_p"), "the order changed nothing")
    refused(*options, "--samplers", "temperature", words=["order", "top_p"])
    refused(*HOT, "--samplers", "top_k", words=["order", "temperature"])
    refused(*HOT, "--samplers", "temperature;temperature", words=["temperature", "twice"])
    refused(*HOT, "--samplers", "temperature;typ_p", words=["typ_p", "typical"])


def case_limits_are_named():
    for option, low, high in (("top-p", 0, 1), ("min-p", 0, 1), ("typical", 0, 1), ("xtc-probability", 0, 1), ("xtc-threshold", 0, 1),
                              ("mirostat-eta", 0.0001, 1), ("mirostat", 0, 2), ("top-n-sigma", 0, 100), ("dynatemp-range", 0, 100), ("dry-base", 1, 100),
                              ("dry-multiplier", 0, 100), ("dry-allowed-length", 1, 1 << 24), ("dry-window", 1, 1 << 24),
                              ("penalty-window", 1, 1 << 24), ("top-k", 0, 1 << 24)):
        step = 1 if isinstance(low, int) and high != 1 else 1e-5
        for value in (low, high):
            draw(f"--{option}", value, n=1)
        for value in (low - step, high + step, "nan", "x", ""):
            refused(f"--{option}={value}", words=[f"--{option}"])


def case_a_bias_moves_or_bans():
    first = draw(n=1)[0]
    expect(draw("--logit-bias", f"{first}-inf", n=1) != [first], "a banned token was drawn")
    expect(first not in draw("--logit-bias", f"{first}-inf", n=40), "a banned token was drawn")
    expect(draw("--logit-bias", "70+1000", n=5) == [70] * 5, "a bias of 1000 changed nothing")
    expect(draw("--logit-bias", "70+1000", "--logit-bias", "71+1e3", "--logit-bias", "70-1e3", n=3) == [71] * 3, "biases of an id add up")
    token = pith("run", "-m", TINY, "--raw", "-n", 1, "--no-record", "--json", "a")["prompt_ids"][-1]
    for text in ("a+1000", "\"a\"+1e3"):
        expect(draw("--logit-bias", text, n=3) == [token] * 3, text)
    refused("--logit-bias", "70", words=["--logit-bias", "70"])
    for word in ("70+", "70+x", "70+inf", "70+nan", "+3", "", "-inf"):
        refused(f"--logit-bias={word}", words=["--logit-bias"])
    refused("--logit-bias", "100000-1", words=["100000", "vocabulary"])
    refused("--logit-bias", "99999999999999999999-1", words=["99999999999999999999", "vocabulary"])
    refused("--logit-bias", "abcd efg hij-1", words=["abcd efg hij", "tokens", "ids"])
    refused(*["--logit-bias", "1+1"] * 257, words=["--logit-bias", "256"])
    refused(*["--dry-multiplier", 1], *["--dry-sequence-breaker", "x" * 65], words=["dry_breakers", "65", "64"])
    refused(*["--dry-multiplier", 1], *["--dry-sequence-breaker", "x"] * 65, words=["n_dry_breakers", "64"])


def case_logprobs_are_the_models():
    """Against log-softmax of the rows that `pith logits` writes; the stages in use do not matter."""
    prompt = "abc"
    for options in ([], [*HOT, "--top-k", 4, "--repeat-penalty", 1.5, "--logit-bias", "70+3"]):
        made = pith(*RUN, "--exact", "-n", 6, "--logprobs", 4, *options, prompt)
        ids = made["prompt_ids"] + made["ids"]
        with tempfile.TemporaryDirectory(prefix="pith-cli-") as folder:
            path = os.path.join(folder, "rows.f32")
            result = subprocess.run([*WINE, PROGRAM, "logits", "-m", TINY, "--exact", "--ids", ",".join(map(str, ids)), "-o", path],
                                    capture_output=True, timeout=120, check=False)
            expect(result.returncode == 0, result.stderr)
            with open(path, "rb") as file:
                data = file.read()
        n_vocab = len(data) // 4 // len(ids)
        expect(len(made["logprobs"]) == len(made["ids"]) == 6, made["logprobs"])
        for i, one in enumerate(made["logprobs"]):
            at = len(made["prompt_ids"]) - 1 + i
            row = struct.unpack_from(f"<{n_vocab}f", data, at * n_vocab * 4)
            total = math.log(math.fsum(math.exp(x - max(row)) for x in row)) + max(row)
            order = sorted(range(n_vocab), key=lambda k: (-row[k], k))[:4]
            expect(one["id"] == made["ids"][i] and set(one) == {"id", "text", "logprob", "top"}, one)
            expect(abs(one["logprob"] - (row[one["id"]] - total)) < 1e-6, one, row[one["id"]] - total)
            expect([t["id"] for t in one["top"]] == order and all(set(t) == {"id", "text", "logprob"} for t in one["top"]), one, order)
            expect(all(abs(t["logprob"] - (row[t["id"]] - total)) < 1e-6 for t in one["top"]), one)


def case_logprobs_limits():
    expect("logprobs" not in pith(*RUN, "-n", 1, "abc"), "nobody asked")
    expect(pith(*RUN, "-n", 1, "--logprobs", 0, "abc")["logprobs"][0]["top"] == [], "none were asked for")
    expect(len(pith(*RUN, "-n", 1, "--logprobs", 20, "abc")["logprobs"][0]["top"]) == 20, "20 were asked for")
    refused("--logprobs", 21, words=["--logprobs", 20])
    refused("--logprobs", -1, words=["--logprobs"])
    message = pith("run", "-m", TINY, "--raw", "-n", 1, "--logprobs", 2, "abc", code=2)
    expect("--json" in message, message)


if __name__ == "__main__":
    PROGRAM = given_program(__doc__)
    sys.exit(run_cases(globals(), sys.argv[2:]))
