#!/usr/bin/env python3
"""`pith chat` and `pith run` on a terminal (a pseudo-terminal of this test): editing, history, Ctrl-C, Ctrl-D, progress, and that a
conversation is never read twice. A tiny model with a chat template is made here; cases that need a model which says something are
skipped where $PITH_TEST_MODELS lacks the default one.
    tests/cli/test_chat.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import ROOT, Skip, default_model, expect, given_program, run_cases

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
TRIMMING = TEMPLATE.replace("m.content", "m.content | trim")
CTRL_C, CTRL_D, UP, LEFT, BACKSPACE = b"\x03", b"\x04", b"\x1b[A", b"\x1b[D", b"\x7f"


def tiny_model(template=TEMPLATE):
    source = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
    return tiny_gguf.with_template(source, os.path.join(FOLDER, f"chat{hash(template)}.gguf"), template)


class Terminal:
    """The program on a pseudo-terminal; `seen` is all that it wrote, escape sequences left out."""

    def __init__(self, *arguments, home=None, env=None):
        import pty
        try:
            self.master, slave = pty.openpty()
        except OSError as reason:
            raise Skip(f"no pseudo-terminal can be had here: {reason}") from reason
        merged = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG"))}
        merged.update(TERM="xterm", PITH_HOME=home or os.path.join(FOLDER, "home"), **(env or {}))
        self.process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave, env=merged,
                                        start_new_session=True, preexec_fn=self.take_terminal)
        os.close(slave)
        self.seen, self.taken = b"", 0

    @staticmethod
    def take_terminal():
        import fcntl
        import termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def plain(self):
        return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]", b"", self.seen[self.taken:]).decode("utf-8", "replace")

    def wait_for(self, pattern, seconds=60):
        """Waits until what came since the last call has the pattern; returns that text."""
        end = time.monotonic() + seconds
        while True:
            text = self.plain()
            if re.search(pattern, text):
                self.taken = len(self.seen)
                return text
            left = end - time.monotonic()
            if left <= 0 or not self.read(min(left, 0.5)) and self.process.poll() is not None and not self.read(0):
                raise AssertionError(f"'{pattern}' did not come within {seconds} s; came: {text[-500:]!r}")

    def send(self, data):
        os.write(self.master, data if isinstance(data, bytes) else data.encode())

    def say(self, line, seconds=60):
        """Types a line and waits for the next prompt; returns what was shown."""
        self.send(line + "\r")
        return self.wait_for(r"\n> $", seconds)

    def end(self, seconds=20):
        """Ctrl-D; the exit code."""
        self.send(CTRL_D)
        return self.left(seconds)

    def left(self, seconds=20):
        limit = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < limit:
            self.read(0.1)
        while self.read(0):
            pass
        if self.process.poll() is None:
            self.process.kill()
            raise AssertionError(f"the program did not end: {self.plain()[-500:]!r}")
        os.close(self.master)
        return self.process.returncode


def chat(*options, model=None, **kwargs):
    terminal = Terminal("chat", "-m", model or tiny_model(), "-n", 8, *options, **kwargs)
    terminal.wait_for(r"> $")
    return terminal


def piped(lines, *options, model=None):
    result = subprocess.run([PROGRAM, "chat", "-m", model or tiny_model(), *map(str, options)], input="\n".join(lines).encode() + b"\n",
                            capture_output=True, timeout=300, check=False)
    expect(result.returncode == 0, result.returncode, result.stderr)
    return result


# ---- editing ---------------------------------------------------------------------------------------------------------

def case_a_turn_and_the_end():
    t = chat()
    t.say("Hello")
    expect("user: Hello\r\n" in t.say("/history"), t.plain())
    expect(t.end() == 0, t.process.returncode)


def case_line_editing():
    t = chat()
    t.send("Hxllo" + "\x1b[D" * 3)
    t.send(BACKSPACE + b"e")
    t.say("")
    expect("user: Hello\r\n" in t.say("/history"), t.seen)
    expect(t.end() == 0)


def case_characters_of_several_bytes_are_one():
    t = chat()
    t.send("aé你x")
    t.send(BACKSPACE + BACKSPACE)
    t.say("z")
    expect("user: aéz\r\n" in t.say("/history"), t.seen)
    expect(t.end() == 0)


def case_ctrl_c_throws_the_line_away():
    t = chat()
    t.send("this is not meant")
    t.wait_for("meant")
    t.send(CTRL_C)
    t.wait_for(r"\n> $", 5)
    t.send(CTRL_C)
    t.wait_for(r"\n> $", 5)
    t.say("kept")
    shown = t.say("/history")
    expect("user: kept\r\n" in shown and "not meant" not in shown, shown)
    t.send("first \\\r")
    t.wait_for(r"\.\.\. $")
    t.send(CTRL_C)
    t.wait_for(r"\n> $", 5)
    expect("first" not in t.say("/history"), t.seen)
    expect(t.end() == 0)


def case_a_backslash_goes_on_in_the_next_line():
    t = chat()
    t.send("one\\\r")
    t.wait_for(r"\.\.\. $")
    t.say("two")
    expect(re.search("user: one\r\ntwo\r\n", t.say("/history")), t.seen)
    expect(t.end() == 0)


def case_history_is_kept():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        home = os.path.join(folder, "deep", "home")
        t = chat(home=home)
        t.say("remember me")
        expect(t.end() == 0)
        mode = stat.S_IMODE(os.stat(os.path.join(home, "history")).st_mode)
        expect(mode == 0o600, oct(mode))
        t = chat(home=home)
        t.send(UP)
        t.wait_for("remember me", 5)
        t.say("")
        expect("user: remember me\r\n" in t.say("/history"), t.seen)
        expect(t.end() == 0)


def case_a_signal_that_ends_leaves_terminal_and_history_in_order():
    import termios
    for number in (signal.SIGTERM, signal.SIGHUP):
        with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
            t = chat(home=folder)
            t.say("remember me")
            t.send("half a li")
            t.wait_for("half a li")
            t.process.send_signal(number)
            t.process.wait(20)
            expect(t.process.returncode == -number, t.process.returncode)
            expect(termios.tcgetattr(t.master)[3] & termios.ICANON, "the terminal is left in raw mode")
            expect(set(os.listdir(folder)) <= {"history", "fit", "prefix"}, os.listdir(folder))  # nothing half-written
            with open(f"{folder}/history", encoding="utf-8") as file:
                expect("remember" in file.read())
            t.left()


def case_two_chats_share_one_history():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        one, two = chat(home=folder), chat(home=folder)
        one.say("from the first")
        two.say("from the second")
        expect(two.end() == 0 and one.end() == 0)
        with open(f"{folder}/history", encoding="utf-8") as file:
            kept = file.read()
        expect("first" in kept and "second" in kept, kept)


def case_a_loaded_conversation_cannot_steer_the_terminal():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        with open(f"{folder}/saved.json", "w", encoding="utf-8") as file:
            json.dump([{"role": "user", "content": "one\n\x1b]0;evil\x07two"}], file)
        shown = piped([f"/load {folder}/saved.json", "/history", "/undo"]).stderr
        expect(b"\x1b" not in shown and b"\x07" not in shown and shown.count(b"user: one\n\\x1b]0;evil\\x07two\n") == 1, shown)


def case_a_history_that_cannot_be_kept_is_no_failure():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        blocked = os.path.join(folder, "file")
        open(blocked, "w", encoding="utf-8").close()
        for home in (os.path.join(blocked, "home"), "/proc/pith"):
            t = chat(home=home)
            t.say("Hello")
            expect(t.end() == 0, t.seen)


# ---- interrupting -----------------------------------------------------------------------------------------------------

def case_ctrl_c_stops_a_reply_and_the_conversation_goes_on():
    t = Terminal("chat", "-m", default_model())
    t.wait_for(r"> $")
    t.send("Write a long story about a lighthouse keeper.\r")
    t.wait_for(r"keeper\.\r\n(.|\n)*\w+ \w+ \w+ \w+ \w+")
    t.send(CTRL_C)
    t.wait_for(r"note: stopped\r\n> $", 10)
    before = numbers(t.say("/stats"))
    t.send("Go on.\r")
    t.wait_for(r"Go on\.\r\n(.|\n)*\w+ \w+")
    t.send(CTRL_C)
    t.wait_for(r"> $", 10)
    after = numbers(t.say("/stats"))
    made = before["prompt"] + before["made"]
    expect(after["cached"] >= made - 3, "read again:", before, after)
    expect(t.end() == 0)


def case_ctrl_c_while_the_conversation_is_read():
    t = Terminal("chat", "-m", default_model(), "--cache", "off", "--step", 64)
    t.wait_for(r"> $")
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        path = os.path.join(folder, "c.json")
        json.dump([{"role": "user", "content": "word " * 3000}, {"role": "assistant", "content": "Yes."}], open(path, "w", encoding="utf-8"))
        t.say(f"/load {path}")
    t.send("Again?\r")
    t.wait_for(r"reading the conversation: +\d+ %", 30)
    t.send(CTRL_C)
    t.wait_for(r"note: stopped before the first token.*\r\n> $", 10)
    expect("Again?" not in t.say("/history")[-200:], t.plain())
    expect(t.end() == 0)


def case_logits_do_not_go_to_a_terminal():
    t = Terminal("logits", "-m", tiny_model(), "--ids", "1")
    expect(t.left() == 2 and "give -o" in t.plain(), t.process.returncode, t.plain())


def case_run_tells_progress_and_stops_before_the_first_token():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        path = os.path.join(folder, "p.txt")
        open(path, "w", encoding="utf-8").write("word " * 3900)
        t = Terminal("run", "-m", default_model(), "--raw", "--cache", "off", "--step", 64, "-n", 4, "--file", path)
        t.wait_for(r"reading the prompt: +\d+ %, \d+ s left", 30)
        t.send(CTRL_C)
        expect(t.left() == 1 and "stopped before the first token" in t.plain(), t.process.returncode, t.plain())


def case_a_second_ctrl_c_ends_the_program():
    """Both arrive within one step while the process is held, so that the first cannot have ended it."""
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as folder:
        path = os.path.join(folder, "p.txt")
        open(path, "w", encoding="utf-8").write("word " * 3900)
        codes = []
        for _ in range(3):
            t = Terminal("run", "-m", default_model(), "--raw", "--cache", "off", "-n", 4, "--step", 256, "--file", path)
            t.wait_for(r"reading the prompt", 60)
            os.kill(t.process.pid, signal.SIGINT)
            os.kill(t.process.pid, signal.SIGSTOP)
            os.kill(t.process.pid, signal.SIGCONT)
            time.sleep(0.02)  # the first one's handler has run; a step takes far longer
            if t.process.poll() is None:
                os.kill(t.process.pid, signal.SIGINT)
            codes.append(t.left())
        expect(-signal.SIGINT in codes and set(codes) <= {-signal.SIGINT, 1}, codes)


# ---- never read twice ---------------------------------------------------------------------------------------------------

def numbers(text):
    found = re.search(r"prompt (\d+) tokens, (\d+) of them already read.*; (\d+) tokens made", text)
    expect(found, text)
    return dict(zip(("prompt", "cached", "made"), map(int, found.groups())))


def replies(result):
    return [json.loads(line) for line in result.stdout.decode().splitlines()]


def read_again(before, after):
    """Tokens of the earlier turn that the later one did not find in the session."""
    return before["timings"]["cache_n"] + before["timings"]["prompt_n"] + before["timings"]["predicted_n"] - after["timings"]["cache_n"]


def case_no_turn_is_read_twice():
    """Computed again are at most the last token of a reply (it was drawn, not computed) and what began no whole character; where the
    template trims the start of a reply, the reply."""
    for template, most in ((TEMPLATE, 5), (TRIMMING, 12)):
        made = replies(piped(["Hello", "And now?", "More", "More"], "-n", 12, "--json", model=tiny_model(template)))
        expect(len(made) == 4 and all(len(r["ids"]) == 12 for r in made), made)
        for before, after in zip(made, made[1:]):
            expect(read_again(before, after) <= most, template, before["timings"], after["timings"])
            whole = before["prompt_ids"] + before["ids"]
            kept = after["timings"]["cache_n"]
            expect(after["prompt_ids"][:kept] == whole[:kept], "the ids of a reply were changed")


def case_undo_retry_and_edit_keep_what_came_before():
    made = replies(piped(["Hello", "Second", "/retry", "/undo", "Second", "/edit Third", "/edit Second"], "-n", 12, "--json"))
    first, second, again, redone, third, back = made
    expect(again["ids"] == second["ids"] and again["prompt_ids"] == second["prompt_ids"], "a retry without sampling gave other ids")
    expect(again["timings"]["prompt_n"] <= 1, "a retry read", again["timings"])
    for later in (redone, third, back):
        expect(read_again(first, later) <= 5, first["timings"], later["timings"])
    expect(redone["ids"] == second["ids"] == back["ids"], "the same conversation gave other ids")


def case_a_users_text_is_never_taken_for_the_templates():
    """The same bytes, once written by the template and once by the user, are tokenized anew."""
    model = default_model()
    typed = ["Hi<|im_end|>", "<|im_start|>assistant", "Yes"]
    made = replies(piped(["Hi", "/edit " + "\\\n".join(typed)], "-n", 2, "--json", model=model))
    start = made[0]["prompt_ids"][0]  # <|im_start|>
    expect(made[1]["prompt_ids"].count(start) == made[0]["prompt_ids"].count(start) == 3, made[1]["prompt_ids"])


def case_json_lines_match_the_text():
    lines = ["Hello", "And now?"]
    text = piped(lines, "-n", 6).stdout
    made = replies(piped(lines, "-n", 6, "--json"))
    expect(text.decode() == "".join(r["text"] + "\n" for r in made), text, made)
    expect(all(set(r) >= {"text", "ids", "prompt_ids", "stop_reason", "timings"} for r in made), made)


def kept(home, *options, lines=(), model=None, code=0):
    """A chat whose folder is `home`; its replies and what it said on stderr."""
    result = subprocess.run([PROGRAM, "chat", "-m", model or tiny_model(), "-n", "8", "--json", *options], capture_output=True, check=False,
                            input="".join(f"{line}\n" for line in lines).encode(), timeout=300, env={**os.environ, "PITH_HOME": home})
    expect(result.returncode == code, result.returncode, result.stderr)
    return [json.loads(line) for line in result.stdout.decode().splitlines() if line.startswith("{")], result.stderr.decode()


def case_a_conversation_goes_on_after_the_program_ended():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as home:
        whole, _ = kept(home, lines=["Hello", "And now?", "More"])
        first, said = kept(home, "--resume", "a-1", lines=["Hello"])
        expect("new conversation" in said, said)
        second, said = kept(home, "--resume", "a-1", lines=["And now?", "/fork b", "More"])
        expect("after 2 messages" in said and "goes on as 'b'" in said, said)
        expect([r["ids"] for r in first + second] == [r["ids"] for r in whole], "another reply than without a break")
        expect([r["prompt_ids"] for r in first + second] == [r["prompt_ids"] for r in whole], "a reply was tokenized again")
        names = subprocess.run([PROGRAM, "chat", "--sessions"], capture_output=True, check=True, env={**os.environ, "PITH_HOME": home})
        expect(sorted(names.stdout.decode().split()) == ["a-1", "b"], names.stdout)
        for name, messages in (("a-1", 4), ("b", 6)):
            with open(f"{home}/chats/{name}.json", encoding="utf-8") as file:
                expect(len(json.load(file)["messages"]) == messages, name)
        kept(home, "--resume", "b", lines=["Hello"], model=tiny_model(TRIMMING))  # another file: the messages hold


def case_a_broken_conversation_is_told_and_stays():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as home:
        kept(home, "--resume", "good", lines=["Hello", "And now?"])
        path = f"{home}/chats/good.json"
        with open(path, encoding="utf-8") as file:
            good = json.load(file)
        for broken in ("", "{", "[]", '{"messages": 3}', '{"messages": [{"role": 1}]}'):
            with open(path, "w", encoding="utf-8") as file:
                file.write(broken)
            _, said = kept(home, "--resume", "good", lines=["Hello"], code=1)
            expect("kept conversation 'good'" in said, said)
            with open(path, encoding="utf-8") as file:
                expect(file.read() == broken, "a broken file was written over")
        last = good["marks"][-1]
        wrong = [{"marks": [[9 ** 9, 1, 1]]}, {"marks": [[5, 5, 2], [4, 5, 2]]}, {"marks": [[1, 1]]}, {"ids": [-1]}, {"ids": [10 ** 9]},
                 {"ids": "x"}, {"text": 7}, {"model": "0"}, {"marks": [[last[0], last[1] + 1, last[2]]]}, {"marks": [[0, 0, 99]]}]
        for change in wrong:  # what is not believed is read anew
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**good, **change}, file)
            made, _ = kept(home, "--resume", "good", lines=["More"])
            expect(len(made) == 1 and len(made[0]["ids"]) == 8, change, made)
        for name in ("", ".", "..", "a/b", "a" * 65, "ä", ".hidden"):
            _, said = kept(home, "--resume", name, code=1)
            expect("name has 1 to 64" in said, name, said)


def case_kept_conversations_are_the_users_alone():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as home:
        kept(home, "--resume", "mine", lines=["Hello"])
        expect(os.stat(f"{home}/chats").st_mode & 0o777 == 0o700, oct(os.stat(f"{home}/chats").st_mode))


def case_nobody_overwrites_anothers_conversation():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as home:
        first = subprocess.Popen([PROGRAM, "chat", "-m", tiny_model(), "-n", "4", "--json", "--resume", "shared"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PITH_HOME": home})
        first.stdin.write(b"aa\n")
        first.stdin.flush()
        expect("ids" in json.loads(first.stdout.readline()), "no reply")
        kept(home, "--resume", "shared", lines=["cc"])
        _, said = first.communicate(b"bb\n", timeout=60)
        with open(f"{home}/chats/shared.json", encoding="utf-8") as file:
            texts = [message["content"] for message in json.load(file)["messages"][::2]]
        expect(texts == ["aa", "cc"] and b"not overwritten" in said, texts, said)
        _, said = kept(home, "--resume", "other", lines=["dd", "/fork shared", "/fork mine"], code=1)
        expect("not overwritten" in said and "goes on as 'mine'" in said, said)
        with open(f"{home}/chats/shared.json", encoding="utf-8") as file:
            expect([message["content"] for message in json.load(file)["messages"][::2]] == texts, "/fork overwrote a conversation")


def case_a_zero_byte_in_a_reply_is_kept():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as home:
        kept(home, "--resume", "zero", lines=["Hello"])
        path = f"{home}/chats/zero.json"
        with open(path, encoding="utf-8") as file:
            good = json.load(file)
        good["messages"][-1]["content"] += "\0 and on"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(good, file)
        made, said = kept(home, "--resume", "zero", lines=["More"])
        expect(len(made) == 1 and "after 2 messages" in said, made, said)
        with open(path, encoding="utf-8") as file:
            expect("\0 and on" in json.load(file)["messages"][1]["content"], "the zero byte was lost")


def case_sessions_lists_what_can_be_resumed():
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as home:
        os.mkdir(f"{home}/chats")
        for name in ("good.json", "a\x1b[31mb.json", ".hidden.json", ".json", "b.txt", "c.json.0badf00d.part", "x" * 65 + ".json"):
            with open(f"{home}/chats/{name}", "w", encoding="utf-8"):
                pass
        names = subprocess.run([PROGRAM, "chat", "--sessions"], capture_output=True, check=True, env={**os.environ, "PITH_HOME": home})
        expect(names.stdout == b"good\n", names.stdout)


def case_a_failure_is_a_json_line_too():
    result = subprocess.run([PROGRAM, "chat", "-m", tiny_model(), "-n", "4", "--ctx", "64", "--json"],
                            input=b"Hello\n" + b"x" * 100 + b"\nHello\n", capture_output=True, timeout=60, check=False)
    made = replies(result)
    expect(len(made) == 3 and "ids" in made[0] and "64" in made[1]["error"], made)
    expect("needs" in made[1]["error"] and re.search(r"needs \d+ tokens", made[1]["error"]), made[1])
    expect(made[2].get("error") or made[2]["timings"]["cache_n"] > 0, made[2])


def case_a_command_that_asks_for_a_reply_gives_a_json_line():
    made = replies(piped(["/retry", "/edit", "/edit Hello", "Hello"], "-n", 4, "--json"))
    expect([list(m)[0] for m in made] == ["error", "error", "error", "text"], made)


def case_the_context_in_use_is_that_of_the_messages():
    lines = ["/stats", "Hello", "/stats", "Again", "/stats", "/undo", "/stats", "/clear", "/stats"]
    told = [int(n) for n in re.findall(rb"context (\d+) of", piped(lines, "-n", 4).stderr)]
    expect(told[0] == told[4] == 0 < told[1] == told[3] < told[2], told)


def case_a_full_context_is_told():
    result = piped(["Hello"], "--ctx", "40", "--json")
    made = replies(result)
    expect(made[0]["stop_reason"] == "context" and b"context is full" in result.stderr, made, result.stderr)
    one = subprocess.run([PROGRAM, "run", "-m", tiny_model(), "--ctx", "40", "Hello"], capture_output=True, timeout=60, check=False)
    expect(one.returncode == 0 and b"the context of 40 tokens is full" in one.stderr, one.stderr)
    none = subprocess.run([PROGRAM, "run", "-m", tiny_model(), "--ctx", "8", "Hello"], capture_output=True, timeout=60, check=False)
    expect(none.returncode == 1 and b"the context holds 8" in none.stderr and b"--ctx" in none.stderr, none.stderr)


def main():
    global PROGRAM, FOLDER
    PROGRAM = given_program(__doc__)
    if os.name != "posix" or os.environ.get("PITH_CLI_WRAPPER"):
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="pith-chat-") as FOLDER:
        return run_cases(globals(), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
