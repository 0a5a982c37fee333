#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speeds of generation as a user meets them: `pith run` with and without something, by turns, with medians and bootstrap intervals.

    generation.py copy MODEL           guesses from the text, on a reply that copies a C file with one change
    generation.py prose MODEL          guesses on prose, where they seldom help: must not be slower
    generation.py code MODEL --draft D guesses of a smaller model, on code
    generation.py same MODEL           greedy ids of many prompts, with and without guesses
    generation.py second-start MODEL   time to first token of a start that finds its system prompt on the disk
    generation.py adapter MODEL --lora F   decoding and reading a prompt with an adapter and without

PITH_PROGRAM names the program (default: build/release/pith). Ids of a pair must be the same, else the exit code is 1.
Quote ratios, with the processor and tier, never single times: machines are noisy."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PITH = os.environ.get("PITH_PROGRAM", os.path.join(ROOT, "build/release/pith"))
THINGS = ["a lighthouse", "a mountain village", "the first snow", "an old clock", "a river crossing", "a market in spring", "a night train",
          "a lost letter", "the sea at dawn", "a garden wall", "a clever fox", "an empty theatre", "a long winter", "a baker", "two brothers",
          "a broken bridge", "a storm", "a library", "a small island", "the last bus", "a violin", "a wooden boat", "a desert well", "a map",
          "a school", "a harvest", "a forgotten key", "a kite", "a red door", "an orchard", "a song", "a blind painter", "a stone", "a mirror",
          "a shepherd", "a postman", "a power cut", "a birthday", "a queue", "a window"]
TASKS = ["reverses a linked list", "sorts an array with merge sort", "counts the words of a text", "checks whether a string is a palindrome",
         "computes Fibonacci numbers", "finds the longest common prefix", "parses a line of CSV", "implements a stack", "implements a queue",
         "multiplies two matrices", "finds prime numbers with a sieve", "searches a sorted array", "removes duplicates from a list",
         "converts Roman numerals", "computes a checksum", "walks a binary tree", "finds the shortest path in a grid", "merges two sorted lists",
         "rotates an array", "computes the greatest common divisor"]
LANGUAGES = ["Python", "C", "JavaScript", "Go"]
CHINESE = ["年假", "春节", "长城", "茶", "月亮", "高铁", "书店", "公司报销", "远程办公", "加班", "图书馆", "天气", "城市", "米饭", "电脑", "手机", "学校", "医院",
           "足球", "音乐", "河流", "森林", "冬天", "故事", "朋友", "家庭", "旅行", "电影", "历史", "数学"]


def prompts(kind, count):
    if kind == "prose":
        forms = ["Write a short story about {}.", "Describe {} in one paragraph.", "Write a letter that mentions {}.", "Why do people remember {}?"]
        made = [f.format(t) for f in forms for t in THINGS]
    elif kind == "code":
        made = [f"Write a function in {l} that {t}, with a short example." for t in TASKS for l in LANGUAGES]
    else:
        made = [f.format(t) for f in ("请用一段话介绍{}。", "{}为什么重要？", "写一个关于{}的小故事。") for t in CHINESE]
    if count > len(made):
        sys.exit(f"generation: there are {len(made)} prompts of the kind {kind}, not {count}")
    return made[:count]


def run(model, prompt, *options):
    """What `pith run --json` tells of one reply."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(prompt)
        file.flush()
        command = [PITH, "run", "-m", model, "--json", "--no-record", *options, "-f", file.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"generation: {' '.join(command)} failed: {result.stderr.strip()[-300:]}")
    return json.loads(result.stdout)


def speed(reply):
    return reply["timings"]["predicted_n"] / reply["timings"]["predicted_ms"] * 1e3


def interval(values, draws=10000):
    """95 % bootstrap interval of the median."""
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(draws * 0.025)], medians[int(draws * 0.975) - 1]


def told(name, ratios):
    low, high = interval(ratios)
    print(f"{name}: median {statistics.median(ratios):.3f}, bootstrap interval {low:.3f} to {high:.3f}, {len(ratios)} pairs", flush=True)


def guesses(a, texts, plain, guessing):
    """Pairs of runs: speed with guesses over speed without, whichever first by turns."""
    ratios, differ = [], 0
    for number, text in enumerate(texts):
        order = [plain, guessing] if number % 2 == 0 else [guessing, plain]
        replies = [run(a.model, text, *options) for options in order]
        if order[0] is guessing:
            replies.reverse()
        without, having = replies
        differ += without["ids"] != having["ids"]
        ratios.append(speed(having) / speed(without))
        timings = having["timings"]
        print(f"{number}: {speed(without):.1f} -> {speed(having):.1f} tok/s, {ratios[-1]:.3f}, {timings['predicted_n']} tokens, "
              f"{timings['draft_n']} guesses, {timings['draft_accepted_n']} right{'' if without['ids'] == having['ids'] else ', IDS DIFFER'}", flush=True)
    told(f"{a.what}, {os.path.basename(a.model)}, temperature {a.temp}", ratios)
    print(f"same ids in {len(texts) - differ} of {len(texts)} pairs")
    return differ == 0


def options_of(a, draft):
    return ["--cache", "off", "-n", str(a.n), "--temp", str(a.temp), "--seed", "7", "--draft", draft]


def copy(a):
    with open(a.file or os.path.join(ROOT, "src/base/sha256.c"), encoding="utf-8") as file:
        source = file.read()
    text = f"Here is a C file:\n```c\n{source}\n```\nRename its first function to `renamed` everywhere and write the whole file again, with nothing else changed.\n"
    print(f"prompt of {run(a.model, text, '--cache', 'off', '-n', '1')['timings']['prompt_n']} tokens")
    return guesses(a, [text] * a.pairs, options_of(a, "off"), options_of(a, "ngram"))


def prose(a):
    return guesses(a, prompts("prose", a.pairs), options_of(a, "off"), options_of(a, "ngram"))


def code(a):
    return guesses(a, prompts("code", a.pairs), options_of(a, "off"), options_of(a, a.draft))


def same(a):
    texts = prompts("prose", a.pairs // 5 * 2) + prompts("code", a.pairs // 5 * 2) + prompts("chinese", a.pairs - a.pairs // 5 * 4)
    differ, drafted, right = 0, 0, 0
    for text in texts:
        without, having = run(a.model, text, *options_of(a, "off")), run(a.model, text, *options_of(a, a.draft or "ngram"))
        differ += without["ids"] != having["ids"]
        drafted += having["timings"]["draft_n"]
        right += having["timings"]["draft_accepted_n"]
    print(f"{len(texts) - differ} of {len(texts)} prompts have the same ids with guesses; {drafted} guesses, {right} right")
    return differ == 0


def second_start(a):
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        system = file.read()[: a.characters]
    shares, same_ids = [], True
    for _ in range(a.pairs):
        with tempfile.TemporaryDirectory() as folder:
            def start(question, cache, system=system):
                return run(a.model, question, "--exact", "--cache", cache, "-s", system, "-n", "16")
            first, second, off = start("Name one room.", folder), start("What is a plan?", folder), start("What is a plan?", "off")
        share = second["timings"]["ttft_ms"] / first["timings"]["ttft_ms"]
        same_ids = same_ids and second["ids"] == off["ids"]
        shares.append(share)
        print(f"first {first['timings']['ttft_ms']:.0f} ms for {first['timings']['prompt_n']} tokens, second {second['timings']['ttft_ms']:.1f} ms "
              f"with {second['timings']['cache_n']} from the disk: {share:.4f}; ids {'the same' if second['ids'] == off['ids'] else 'DIFFER'}", flush=True)
    told(f"second start, {os.path.basename(a.model)}", shares)
    return same_ids


def adapter(a):
    decode, reading = [], []
    text = " ".join(prompts("prose", 40))
    for _ in range(a.pairs):
        plain = run(a.model, text, *options_of(a, "off"))
        having = run(a.model, text, *options_of(a, "off"), "--lora", a.lora)
        decode.append(speed(plain) / speed(having))
        reading.append(having["timings"]["prompt_ms"] / plain["timings"]["prompt_ms"])
    told("decoding with an adapter, times as long", decode)
    told("reading a prompt with an adapter, times as long", reading)
    return True


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    whats = {"copy": (copy, 5, 400, 0), "prose": (prose, 24, 128, 0.8), "code": (code, 8, 128, 0), "same": (same, 200, 48, 0),
             "second-start": (second_start, 5, 16, 0), "adapter": (adapter, 5, 64, 0)}
    parser.add_argument("what", choices=whats)
    parser.add_argument("model")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("-n", type=int)
    parser.add_argument("--temp", type=float)
    parser.add_argument("--draft", default="")
    parser.add_argument("--lora", default="")
    parser.add_argument("--file", default="")
    parser.add_argument("--characters", type=int, default=6600)
    a = parser.parse_args()
    measure, pairs, n, temp = whats[a.what]
    a.pairs, a.n, a.temp = a.pairs or pairs, a.n or n, temp if a.temp is None else a.temp
    if (a.what == "code" and not a.draft) or (a.what == "adapter" and not a.lora):
        parser.error(f"{a.what} needs --draft or --lora")
    doctor = json.loads(subprocess.run([PITH, "doctor", "--json"], capture_output=True, text=True, check=True).stdout)
    print(f"{doctor['cpu']}, tiers {doctor['tiers']}")
    return 0 if measure(a) else 1


if __name__ == "__main__":
    sys.exit(main())
