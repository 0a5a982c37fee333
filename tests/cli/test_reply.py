#!/usr/bin/env python3
"""What shapes replies and is told of them: --prefer, --n, constrained chats, --overflow summarise and shift, the fields of --json. A tiny model
with a chat template is made here; the case that needs a model which says something is skipped where $PITH_TEST_MODELS lacks it.
    tests/cli/test_reply.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import MODELS, ROOT, Skip, expect, given_program, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
STRICT = ("{% set rest = messages[1:] if messages[0].role == 'system' else messages %}{% for m in rest %}"
          "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must take turns') }}{% endif %}{% endfor %}" + TEMPLATE)
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
CHAT = ["--json", "--no-record", "--cache", "off", "-n", 12, "--seed", 3]
PIECES = []
SCHEMA = '{"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": false}'


def tiny(template=STRICT):
    path = os.path.join(FOLDER, f"tiny{len(template)}.gguf")
    return path if os.path.exists(path) else tiny_gguf.with_template(TINY, path, template)


def pith(*arguments, lines=None, code=0):
    """(stdout, stderr); lines go to standard input."""
    data = None if lines is None else "".join(line + "\n" for line in lines).encode()
    result = subprocess.run([*WINE, PROGRAM, *map(str, arguments)], input=data, capture_output=True, timeout=300, check=False,
                            stdin=subprocess.DEVNULL if data is None else None)
    message = result.stderr.decode("utf-8", "replace").replace("\r\n", "\n")
    expect(result.returncode == code, "exit code", result.returncode, "expected", code, message)
    return result.stdout.decode("utf-8", "replace").replace("\r\n", "\n"), message


def run(*options, code=0, prompt="abc"):
    """JSON of `pith run` on the tiny model, or the message of a failure."""
    out, message = pith("run", "-m", tiny(), "--json", "--no-record", "--cache", "off", *options, prompt, code=code)
    return json.loads(out) if code == 0 else message


def chat(*options, lines, model=None, code=0):
    """The JSON lines of a conversation, and stderr."""
    out, message = pith("chat", "-m", model or tiny(), *CHAT, *options, lines=lines, code=code)
    return [json.loads(line) for line in out.splitlines()], message


def text_of(ids):
    """What the tiny model's tokens stand for; bytes that are no ASCII as dots."""
    if not PIECES:
        _, data = tiny_gguf.Gguf(TINY).keys["tokenizer.ggml.tokens"]
        at, n = 12, int.from_bytes(data[4:12], "little")
        for _ in range(n):
            size = int.from_bytes(data[at:at + 8], "little")
            PIECES.append(data[at + 8:at + 8 + size].decode().replace("\u0120", " ").replace("\u010a", "\n"))
            at += 8 + size
    return "".join(c if c.isascii() else "." for i in ids for c in PIECES[i])


def written(file, text):
    path = os.path.join(FOLDER, file)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


# ---- --prefer ----

def note_of(result):
    return next((n for n in result["notes"] if n.startswith("prefer ")), "")


def case_a_preference_says_what_it_chose():
    expect(note_of(run("-n", 1)) == note_of(run("-n", 1, "--prefer", "none")) == "", "nobody asked for a preference")
    for goal, words in {"ttft": ["load mmap"], "tps": ["guessed"], "memory": ["load mmap", "kv int8"], "battery": ["guessed"]}.items():
        note = note_of(run("-n", 1, "--prefer", goal))
        expect(note.startswith(f"prefer {goal}: ") and all(word in note for word in words) and "given" not in note, note)
    _, message = pith("run", "-m", tiny(), "--no-record", "--cache", "off", "-n", 1, "--prefer", "memory", "abc")
    expect("note: prefer memory: load mmap, kv int8" in message, message)
    out, _ = pith("bench", "-m", tiny(), "-p", 8, "-n", 2, "-r", 1, "--json", "--no-record", "--prefer", "memory")
    expect("int8" in out, out)
    out, _ = pith("fit", tiny(), "--no-probe", "--no-record", "--json", "--prefer", "memory")
    expect(json.loads(out)[0]["kv_type"] == "int8" and json.loads(out)[0]["load"] == "mmap", out)
    replies, message = chat("--prefer", "memory", lines=["Hi"])
    expect("kv int8" in note_of(replies[0]) and "note: prefer memory" in message, message)


def case_a_preference_is_only_for_what_the_model_allows():
    """KV in int8 needs heads of multiples of 32."""
    model = os.path.join(ROOT, "tests/data/arch/gemma3.gguf")
    out, message = pith("run", "-m", model, "--raw", "--json", "--no-record", "--cache", "off", "-n", 1, "--prefer", "memory", "--draft", model, "abc")
    expect("kv f16, as the model allows no int8" in note_of(json.loads(out)), out)
    _, message = pith("run", "-m", model, "--raw", "--json", "--no-record", "--cache", "off", "-n", 1, "--kv", "int8", "abc", code=1)
    expect("int8" in message, message)


def case_what_is_given_wins_over_a_preference():
    note = note_of(run("-n", 1, "--prefer", "memory", "--kv", "f32", "--load", "pack"))
    expect("load pack as given" in note and "kv f32 as given" in note, note)
    plain = run("-n", 16, "--ignore-end", "--kv", "f32")["ids"]
    expect(run("-n", 16, "--ignore-end", "--kv", "f32", "--prefer", "memory")["ids"] == plain, "another KV type was used than was given")
    expect("draft off as given" in note_of(run("-n", 1, "--prefer", "tps", "--draft", "off")), "the draft")
    message = run("-n", 1, "--prefer", "speed", code=2)
    expect("--prefer" in message and "ttft" in message, message)


# ---- --n ----

def case_several_replies_are_those_of_their_seeds():
    how = ["-n", 12, "--exact", "--temp", 1.2, "--ignore-end", "--logprobs", 2]
    together = run(*how, "--n", 3, "--seed", 5)
    expect([c["seed"] for c in together["choices"]] == [5, 6, 7] and [c["index"] for c in together["choices"]] == [0, 1, 2], together["choices"])
    for one in together["choices"]:
        alone = run(*how, "--seed", one["seed"])
        expect(all(one[key] == alone[key] for key in ("text", "ids", "stop_reason", "logprobs")), one, alone)
    expect(together["ids"] == together["choices"][0]["ids"] and "choices" not in run(*how, "--n", 1), "the first is the reply")
    expect(len({tuple(c["ids"]) for c in together["choices"]}) == 3, "seeds differ, replies do not")


def case_several_replies_are_printed_apart():
    out, _ = pith("run", "-m", tiny(), "--no-record", "--cache", "off", "--n", 2, "--seed", 8, "--choices", "yes", "abc")
    expect(out == "--- 1 of 2, seed 8\nyes\n--- 2 of 2, seed 9\nyes\n", out)


def case_limits_of_n():
    for n in (0, 65, "x"):
        expect("--n" in run("-n", 1, "--n", n, code=2), n)
    expect("--draft" in run("-n", 1, "--n", 2, "--draft", tiny(), code=2), "a draft model")
    expect(len(run("-n", 2, "--n", 64)["choices"]) == 64, "64 are allowed")


# ---- --json ----

def case_json_tells_of_every_feature():
    lora = os.path.join(ROOT, "tests/data/adapter/lora-a.gguf")
    model = os.path.join(ROOT, "tests/data/adapter/llama.gguf")
    out, _ = pith("run", "-m", model, "--raw", "--json", "--no-record", "--cache", os.path.join(FOLDER, "kept"), "--lora", lora + ":0.5", "--lora",
                  lora, "-c", 256, "-n", 100, "--ignore-end", "--overflow", "shift", "x" * 250)
    made = json.loads(out)
    expect(made["timings"]["adapter_n"] == 2 and made["timings"]["dropped_n"] > 0 and made["timings"]["summary_n"] == 0, made["timings"])
    for word in ("adapter ", "dropped", "nothing came from disk: no prompt is stored"):
        expect(any(word in note for note in made["notes"]), word, made["notes"])
    expect({"cache_n", "draft_n", "draft_accepted_n", "summary_ms"} <= set(made["timings"]), made["timings"])


# ---- Constrained chats ----

def case_every_reply_of_a_chat_is_constrained():
    replies, _ = chat("--choices", "yes|no", "--logprobs", 1, lines=["Hi", "And you?", "/retry"])
    expect(len(replies) == 3 and all(r["text"] in ("yes", "no") for r in replies), replies)
    expect(all(len(r["logprobs"]) == r["timings"]["predicted_n"] and len(r["logprobs"][0]["top"]) == 1 for r in replies), replies[0])
    for option, value, pattern in (("--regex", "[ab]{3}", "[ab]{3}"), ("--grammar", written("g.gbnf", 'root ::= "x" [0-9]'), "x[0-9]"),
                                   ("--schema", written("s.json", SCHEMA), r'\{\s*"a":\s*[12]\s*\}')):
        replies, _ = chat(option, value, "-n", 60, lines=["Hi", "And you?"])
        expect(all(re.fullmatch(pattern, r["text"]) for r in replies), option, replies)
    _, message = pith("chat", "-m", tiny(), "--choices", "a", "--regex", "a", lines=[], code=2)
    expect("--regex" in message, message)
    _, message = pith("chat", "-m", tiny(), "--logprobs", 1, lines=[], code=2)
    expect("--json" in message, message)


def case_a_schema_comes_and_goes():
    path = written("s.json", SCHEMA)
    lines = ["Hi", f"/schema {path}", "One", "/schema off", "Two", "/schema", f"/schema {FOLDER}/none.json", "Three"]
    replies, message = chat("-n", 40, lines=lines, code=1)
    expect(json.loads(replies[1]["text"]) in ({"a": 1}, {"a": 2}), replies[1])
    free, _ = chat("-n", 40, lines=["Hi"])
    expect(free[0]["text"] == replies[0]["text"] and not replies[2]["text"].startswith('{"a"'), "a free reply was constrained")
    expect(len(replies) == 4 and "could not be opened" in message and "/schema needs a FILE" in message, message)


# ---- --overflow in a conversation ----

SYSTEM = "Be kind to everybody."
TALK = [f"Question {i}: tell me more about the heron, please." for i in range(14)]


def case_an_older_part_becomes_a_summary():
    """Whatever the tiny model writes stands in the next prompt, asked for by a message; the system prompt and the last message are whole."""
    replies, message = chat("--overflow", "summarise", "-s", SYSTEM, lines=TALK + ["/history"])
    expect(len(replies) == len(TALK) and all("text" in r for r in replies), message)
    made = [r["timings"] for r in replies]
    cut = [i for i, t in enumerate(made) if t["summary_n"] > 0]
    expect(cut and all(made[i]["dropped_n"] > 0 and made[i]["summary_ms"] > 0 for i in cut), made)
    expect(all(t["dropped_n"] == 0 for i, t in enumerate(made) if i not in cut), made)
    for i, r in enumerate(replies):
        text = text_of(r["prompt_ids"])
        expect(text.startswith(f"<system>{SYSTEM}\n<user>") and text.endswith(f"<user>{TALK[i]}\n<assistant>"), i, text)
        expect(len(r["prompt_ids"]) + 12 <= 512, "no room was left")
        expect(("<user>Summarize our conversation" in text) == (i >= cut[0]), i, text)
        expect(any("replaced by a summary" in n for n in r["notes"]) == (i in cut), i, r["notes"])
    expect(message.count("replaced by a summary") == len(cut) and "user: Summarize our conversation" in message, message)
    again, _ = chat("--overflow", "summarise", "-s", SYSTEM, lines=TALK)
    expect([r["ids"] for r in again] == [r["ids"] for r in replies], "summaries are not repeatable")


def case_older_exchanges_are_left_out():
    replies, message = chat("--overflow", "shift", "-s", SYSTEM, lines=TALK)
    made = [r["timings"] for r in replies]
    expect(len(replies) == len(TALK) and any(t["dropped_n"] for t in made) and not any(t["summary_n"] for t in made), made)
    expect(all(text_of(r["prompt_ids"]).startswith(f"<system>{SYSTEM}\n<user>Question") for r in replies), "the system prompt is lost")
    expect("were left out" in message, message)


def case_first_exchanges_are_kept():
    replies, _ = chat("--overflow", "shift", "--keep", 190, "-s", SYSTEM, lines=TALK)
    text = text_of(replies[-1]["prompt_ids"])
    expect(text.startswith(f"<system>{SYSTEM}\n<user>{TALK[0]}\n<assistant>") and TALK[1] not in text and TALK[-2] in text, text)


def case_without_overflow_a_full_context_is_an_error():
    replies, message = chat(lines=TALK, code=1)
    expect("error" in replies[-1] and "--ctx" in replies[-1]["error"] and not any(r.get("timings", {}).get("dropped_n") for r in replies), message)


def case_what_does_not_fit_with_a_summary_is_an_error():
    """The conversation is as it was then."""
    for how, words in (("summarise", "do not fit"), ("shift", "do not fit")):
        replies, message = chat("--overflow", how, "-s", SYSTEM * 23, lines=["Hi", "/history"], code=1)
        expect(len(replies) == 1 and words in replies[0]["error"] and "512" in replies[0]["error"], replies)
        expect("user: " not in message, message)
    replies, _ = chat("--overflow", "shift", "-s", SYSTEM, lines=["One", "x" * 600, "Two"])
    expect("error" in replies[1] and "<user>One\n" in text_of(replies[2]["prompt_ids"]) and "xxx" not in text_of(replies[2]["prompt_ids"]), replies)


def case_a_loaded_conversation_is_read_in_pieces():
    """It has several times what the context holds; roles that the template refuses are an error, and the chat goes on."""
    talk = [{"role": role, "content": f"{role} {i}: herons are patient birds."} for i in range(40) for role in ("user", "assistant")]
    path = written("long.json", json.dumps([{"role": "system", "content": SYSTEM}] + talk))
    replies, message = chat("--overflow", "summarise", lines=[f"/load {path}", "And now?", "/history"])
    text = text_of(replies[0]["prompt_ids"])
    expect(replies[0]["timings"]["summary_n"] > 0 and replies[0]["timings"]["dropped_n"] > 1000, replies[0]["timings"])
    expect(text.startswith(f"<system>{SYSTEM}\n<user>Summarize") and text.endswith("<user>And now?\n<assistant>"), text)
    expect("assistant 39: herons" in text and "user 3:" not in text and "replaced by a summary" in message, text)
    path = written("odd.json", json.dumps([{"role": "assistant", "content": "x" * 300}] * 3))
    replies, message = chat("--overflow", "summarise", lines=[f"/load {path}", "And now?", "/clear", "Hi"])
    expect("error" in replies[0] and "take turns" in replies[0]["error"] and "text" in replies[1], replies)


def case_a_long_prompt_keeps_its_end():
    words = " ".join(f"word{i}" for i in range(300))
    for n in (12, 100):
        made = run("--overflow", "summarise", "-s", SYSTEM, "-n", n, prompt=words + " What is this?")
        text = text_of(made["prompt_ids"])
        expect(made["timings"]["summary_n"] > 0 and made["timings"]["dropped_n"] > 1000, made["timings"])
        expect(text.startswith(f"<system>{SYSTEM}\n<user>Summary of what comes before: ") and text.endswith("word299 What is this?\n<assistant>"), text)
        expect(len(made["prompt_ids"]) + n <= 512, len(made["prompt_ids"]))
        expect(any("replaced by a summary" in note for note in made["notes"]), made["notes"])
    expect("do not fit" in run("--overflow", "summarise", "-s", "y" * 480, code=1, prompt=words), "no room for a summary")
    expect(run("--overflow", "summarise", "-n", 4)["timings"]["summary_n"] == 0, "a short prompt was summarised")


def case_a_summary_needs_messages():
    expect("--raw" in run("--raw", "--overflow", "summarise", code=2), "raw")
    _, message = pith("run", "-m", TINY, "--overflow", "summarise", "abc", code=1)
    expect("chat template" in message, message)


def case_a_real_model_goes_on_from_its_summary():
    """A name told at the beginning is in the summary that the model writes."""
    model = os.path.join(MODELS, "qwen-0.5b-q4_k_m.gguf") if MODELS else ""
    if not os.path.exists(model):
        raise Skip("qwen-0.5b-q4_k_m.gguf is not in $PITH_TEST_MODELS")
    lines = ["Hello! My name is Zelda and I have a dog called Biscuit. Please remember that.", "Tell me about lighthouses in four sentences.",
             "And about herons, in four sentences.", "And about trains, in four sentences.", "What is the name of my dog?"]
    out, message = pith("chat", "-m", model, "-c", 400, "-n", 100, "--json", "--no-record", "--cache", "off", "--overflow", "summarise", lines=lines)
    replies = [json.loads(line) for line in out.splitlines()]
    expect(len(replies) == 5 and any(r["timings"]["summary_n"] > 0 for r in replies), message)
    _, history = pith("chat", "-m", model, "-c", 400, "-n", 100, "--json", "--no-record", "--cache", "off", "--overflow", "summarise",
                      lines=lines + ["/history"])
    summary = history.split("user: Summarize our conversation", 1)[1].split("assistant: ", 1)[1].split("\nuser: ")[0]
    expect("Biscuit" in summary or "Zelda" in summary, summary)


def main():
    global PROGRAM, FOLDER
    PROGRAM = given_program(__doc__)
    with tempfile.TemporaryDirectory() as FOLDER:
        return run_cases(globals(), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
