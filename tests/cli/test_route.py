#!/usr/bin/env python3
"""`pith serve` with an upstream: what leaves and what stays, who answers and why, upstreams that are away or misbehave, and what the list of
what left says. The upstream is recording_upstream.py; the model here is the tiny one of test_serve.py.
    tests/cli/test_route.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import contextlib
import hashlib
import json
import os
import shutil
import socket
import ssl
import stat
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording_upstream
import test_serve as serve
from case_runner import Skip, expect, run_cases
from test_serve import CHAT, PLAIN, chat, long_reply, plain, request, send_raw, tiny_model

KEY = "sk-very-secret-key-0123456789"
WRAPPER = os.environ.get("PITH_CLI_WRAPPER", "").split()
UP = {"X-Pith-Route": "upstream"}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}


@contextlib.contextmanager
def upstream():
    up = recording_upstream.Upstream()
    try:
        yield up
    finally:
        up.close()


@contextlib.contextmanager
def routing(url, *arguments, policy="local-first", env=None, ready=True, model=None):
    """A server in a home of its own, its model loaded."""
    home = tempfile.mkdtemp(dir=serve.FOLDER)
    env = dict({"UP_KEY": KEY, "PITH_HOME": home}, **(env or {}))
    with serve.serving("--upstream", url, "--upstream-model", "big", "--upstream-key-env", "UP_KEY", "--route", policy, *arguments, env=env,
                       model=model) as server:
        server.home = home
        while ready and server.ask("GET", "/health")[0] != 200:
            time.sleep(0.01)
        yield server
    expect(KEY not in server.log, "the key is in the log", server.log)


def listed(server):
    with open(os.path.join(server.home, "upstream.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ask(server, body, headers=None, path=CHAT, status=200):
    """(who answered, reason, parsed answer)"""
    got, head, text = server.ask("POST", path, body, headers)
    expect(got == status, "status", got, "expected", status, head["X-Pith-Reason"], text)
    expect(text.startswith(b"{"), head, text)
    answer = json.loads(text)
    if got == 200:
        expect(answer["pith"] == {"answered_by": head["X-Pith-Answered-By"], "reason": head["X-Pith-Reason"]}, answer, head)
    return head["X-Pith-Answered-By"], head["X-Pith-Reason"], answer


WORDS = "# words that stay\nProject Heron\nÜbergabe\nre:\\<K-[0-9]{6}\\>\nŽižek\nO'Brien\n77310042\nre:Z.rich [0-9]+\nre:gr[öü]ße\n"


def words_file(text=WORDS):
    path = os.path.join(serve.FOLDER, "words.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# ---- Who answers ----------------------------------------------------------------------------------------------------------------------

def case_nothing_leaves_unless_the_user_said_so():
    with upstream() as up:
        with routing(up.url, policy="local-only") as server:
            who, why, _ = ask(server, chat("hello"))
            expect(who == "local" and "local-only" in why, who, why)
            for body, headers in ((chat("x"), UP), (chat("x", pith={"route": "upstream"}), None), (plain("x"), UP)):
                _, _, answer = ask(server, body, headers, CHAT if "messages" in body else PLAIN, 403)
                expect(answer["error"]["code"] == "upstream_not_allowed", answer)
            ask(server, chat("x" * 40000), status=400)
            ask(server, chat("x", model="big"), status=404)
        expect(up.take() == [] and up.looks == 0, "an upstream that is not to be used was asked")
        expect(not os.path.exists(os.path.join(server.home, "upstream.jsonl")))
    with serve.serving() as server:
        ask(server, chat("x"), UP, status=403)
        expect(ask(server, chat("x"))[0] == "local")


def case_the_caller_chooses():
    with upstream() as up, routing(up.url) as server:
        for headers, field, who in ((UP, None, "upstream"), (None, {"route": "upstream"}, "upstream"), ({"X-Pith-Route": "LOCAL"}, None, "local"),
                                    (None, {"route": "local"}, "local"), (UP, {"route": "local"}, "local"), ({"X-Pith-Route": "local"}, {"route": "upstream"}, "local"),
                                    (None, None, "local"), (None, {}, "local")):
            body = chat("choose") if field is None else chat("choose", pith=field)
            got, why, answer = ask(server, body, headers)
            expect(got == who, headers, field, got, why)
            sent = up.take()
            expect(len(sent) == (who == "upstream"), sent)
            if sent:
                got = json.loads(sent[0])
                expect(got == dict(chat("choose"), model="big"), "what arrived is not what was asked", got)
                expect(answer["choices"][0]["message"]["content"] == "The bigger engine answers.", answer)
        for body, headers, param in ((chat("x"), {"X-Pith-Route": "cloud"}, "pith.route"), (chat("x", pith={"route": "cloud"}), None, "pith.route"),
                                     (chat("x", pith={"private": "yes"}), None, "pith.private"), (chat("x", pith={"more": 1}), None, "pith.more"),
                                     (chat("x", pith=1), None, "pith")):
            _, _, answer = ask(server, body, headers, status=400)
            expect(answer["error"]["param"] == param, answer)
        expect(up.take() == [])
        for path, body in (("/tokenize", {"content": "x"}), ("/apply-template", {"messages": [{"role": "user", "content": "x"}]})):
            status, _, text = server.ask("POST", path, body, UP)
            expect(status == 400 and b"/v1/chat/completions" in text, status, text)
        expect(up.take() == [])


def case_the_model_asked_for_chooses():
    with upstream() as up:
        with routing(up.url) as server:
            expect(ask(server, chat("x", model="big"))[0] == "upstream" and ask(server, chat("x", model="tiny"))[0] == "local")
            ask(server, chat("x", model="biggest"), status=404)
            listed = {m["id"]: m["owned_by"] for m in json.loads(server.get("/v1/models"))["data"]}
            expect(listed == {"tiny": "pith", "big": "upstream"} and json.loads(server.get("/v1/models/big"))["status"] == "upstream", listed)
        with routing(up.url, "--route-model", "gpt-4o", "--route-model", "large", policy="rules") as server:
            for model, who in (("gpt-4o", "upstream"), ("large", "upstream"), ("big", "upstream"), ("tiny", "local")):
                up.take()
                expect(ask(server, chat("x", model=model))[0] == who, model)
                expect([json.loads(b)["model"] for b in up.take()] == ["big"] * (who == "upstream"))


def case_rules_choose():
    with upstream() as up, routing(up.url, "--route-tokens", 100, "--route-tools", policy="rules") as server:
        base = server.post(CHAT, chat("", max_tokens=1), headers={"X-Pith-Route": "local"})["usage"]["prompt_tokens"]
        for body, path, who, reason in ((chat("short"), CHAT, "local", "no rule"), (chat("x" * (100 - base)), CHAT, "local", "no rule"),
                                        (chat("x" * (101 - base)), CHAT, "upstream", "101 tokens"), (plain("x" * 101), PLAIN, "upstream", "101 tokens"),
                                        (plain("x" * 100), PLAIN, "local", "no rule"), (chat("t", tools=[WEATHER]), CHAT, "upstream", "tools"),
                                        (chat("t", tools=[]), CHAT, "local", "no rule")):
            up.take()
            got, why, _ = ask(server, body, path=path)
            expect(got == who and reason in why and len(up.take()) == (who == "upstream"), body, got, why)
        for headers in ({"X-Pith-Route": "local"}, {"X-Pith-Private": "1"}):
            expect(ask(server, chat("x" * 300), headers)[0] == "local" and up.take() == [])


def case_what_the_local_model_cannot_is_handed_over():
    with upstream() as up, routing(up.url, "--ctx", 256, "--parallel", 1, "--queue", 1) as server:
        who, why, _ = ask(server, chat("x" * 300))
        expect(who == "upstream" and "context" in why, who, why)
        ask(server, chat("x" * 300), {"X-Pith-Route": "local"}, status=400)
        _, why, answer = ask(server, chat("x" * 300), {"X-Pith-Private": "true"}, status=400)
        expect(answer["error"]["code"] == "context_length_exceeded" and why.startswith("private"), answer, why)
        expect(len(up.take()) == 1)
    with upstream() as up, routing(up.url, "--ctx", serve.CONTEXT, "--parallel", 1, "--queue", 1) as server:
        running = send_raw(server, request(PLAIN, long_reply(stream=True)))
        server.wait_for("replies_running", lambda n: n == 1)
        waiting = send_raw(server, request(PLAIN, plain("abc")))
        server.wait_for("replies_queued", lambda n: n == 1)
        who, why, _ = ask(server, chat("one too many"))
        expect(who == "upstream" and "queue" in why, who, why)
        up.take()
        ask(server, chat("one too many"), {"X-Pith-Private": "true"}, status=429)
        ask(server, chat("one too many", pith={"route": "local"}), status=429)
        expect(up.take() == [])
        running.close()
        waiting.close()


def case_a_model_that_is_not_loaded_is_not_waited_for():
    tiny_model("other")
    shutil.copy(tiny_model("other"), os.path.join(serve.FOLDER, "broken.gguf"))
    with upstream() as up, routing(up.url, "--memory", "60M") as server:
        os.makedirs(os.path.join(server.home, "models"))
        shutil.copy(tiny_model("other"), os.path.join(server.home, "models", "absent.gguf"))
        with open(os.path.join(server.home, "models", "bad.gguf"), "wb") as file:
            file.write(b"GGUF\3\0\0\0nothing")
        who, why, _ = ask(server, chat("mine", model="absent"), {"X-Pith-Private": "yes"})
        expect(who == "local" and up.take() == [], who, why)
        for _ in range(2):
            who, why, _ = ask(server, chat("x", model="bad"))
            expect(who == "upstream" and "not loaded" in why, who, why)
        up.take()
        _, _, answer = ask(server, chat("mine", model="bad"), {"X-Pith-Private": "yes"}, status=503)
        expect(answer["error"]["code"] == "model_failed" and up.take() == [], answer)


# ---- Private --------------------------------------------------------------------------------------------------------------------------

def private_ways(secret):
    """Requests that must stay, each by another mark: (name, path, body, headers). secret is in every one."""
    user, say = {"role": "user", "content": f"about {secret}"}, lambda text: [{"role": "user", "content": f"{text} {secret}"}]
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {
        "name": "find", "arguments": json.dumps({"who": f"{secret} \u00dcbergabe"})}}]}
    body = lambda messages, **more: dict({"messages": messages, "max_tokens": 4, "temperature": 0}, **more)
    yield "header", CHAT, body([user]), {"X-Pith-Private": "1"}
    yield "header of another word", CHAT, body([user]), {"X-Pith-Private": "please"}
    yield "field", CHAT, body([user], pith={"private": True}), None
    yield "field and wish", CHAT, body([user], pith={"private": True, "route": "upstream"}), None
    yield "word", CHAT, body(say("on project heron")), None
    yield "word in capitals", CHAT, body(say("PROJECT HERON")), None
    yield "word over lines", CHAT, body(say("the project\n\t heron plan")), None
    yield "word with invisible characters", CHAT, body(say("pro\u00adject her\u200bon")), None
    yield "word in full width", CHAT, body(say("\uff30\uff32\uff2f\uff2a\uff25\uff23\uff34 heron")), None
    yield "word with another alphabet's case", CHAT, body(say("die ÜBERGABE morgen")), None
    yield "inside a longer word", CHAT, body(say("subproject herons")), None
    yield "expression", CHAT, body(say("customer k-123456, please")), None
    yield "system prompt", CHAT, body([{"role": "system", "content": "You work for Project Heron"}, user]), None
    yield "an old message", CHAT, body([{"role": "user", "content": "project heron?"}, {"role": "assistant", "content": "yes"}, user]), None
    yield "an answer of the assistant", CHAT, body([{"role": "user", "content": "who?"}, {"role": "assistant", "content": "Project Heron"}, user]), None
    yield "arguments of a call", CHAT, body([user, call, {"role": "tool", "tool_call_id": "c1", "content": "none"}]), None
    yield "result of a tool", CHAT, body([user, dict(call, tool_calls=[dict(call["tool_calls"][0], function={"name": "find", "arguments": "{}"})]),
                                          {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"name": "Übergabe"})}]), None
    yield "JSON in JSON", CHAT, body([{"role": "user", "content": json.dumps({"a": json.dumps({"b": f"Übergabe {secret}"})})}]), None
    yield "description of a tool", CHAT, body([user], tools=[dict(WEATHER, function=dict(WEATHER["function"], description="of Project Heron"))]), None
    yield "cut into parts", CHAT, body([{"role": "user", "content": [{"type": "text", "text": f"{secret} project he"}, {"type": "text", "text": "ron"}]}]), None
    yield "stop text", CHAT, body([user], stop=["K-654321"]), None
    yield "prompt", PLAIN, {"prompt": f"Project Heron {secret}", "max_tokens": 4}, None
    yield "prompt and header", PLAIN, {"prompt": secret, "max_tokens": 4}, {"X-Pith-Private": "true"}
    yield "user name", CHAT, body([user], user="project heron team"), None
    yield "decomposed letters", CHAT, body(say("die U\u0308bergabe")), None
    yield "capitals of another alphabet", CHAT, body(say("wrote \u017dI\u017dEK")), None
    yield "a curly apostrophe", CHAT, body(say("Mrs O\u2019Brien")), None
    yield "bold letters", CHAT, body(say("\U0001d429\U0001d42b\U0001d428\U0001d423\U0001d41e\U0001d41c\U0001d42d heron")), None
    yield "characters that are no marks", CHAT, body(say("pro\U000e0061ject heron")), None
    yield "expression over a letter", CHAT, body(say("Z\u00fcrich 8001")), None
    yield "expression with letters", CHAT, body(say("Gr\u00f6\u00dfe")), None
    yield "number in a schema", CHAT, body([user], tools=[dict(WEATHER, function=dict(WEATHER["function"], parameters={"type": "object", "properties": {
        "account": {"const": 77310042}}}))]), None
    yield "cut between messages", CHAT, body([{"role": "user", "content": f"{secret} the project"}, {"role": "user", "content": "heron, please"}]), None
    yield "a file in letters", CHAT, body([{"role": "user", "content": f"{secret} data"}, {"role": "user", "content": "data:text/plain;base64,cHJvamVjdA=="}]), None
    yield "upstream's model", CHAT, body(say("project heron"), model="big"), None


def case_200_labelled_prompts_every_marked_one_stays():
    topics = ["the weather", "a poem", "prime numbers", "herons in general", "projects", "a recipe", "the number K-12", "K-1234567", "tomorrow"]
    prompts = []
    i = 0
    while len(prompts) < 200:
        for name, path, body, headers in private_ways(f"secret-{i:04d}"):
            if len(prompts) >= 200:
                break
            prompts.append((True, name, path, body, headers))
            prompts.append((False, "plain", CHAT, chat(f"public-{i:04d} {topics[i % len(topics)]}", max_tokens=4), None))
            i += 1
    marked = sum(p[0] for p in prompts)
    with upstream() as up, routing(up.url, "--private-words", words_file(), "--route-tools", policy="rules") as server:
        for at, (is_private, name, path, body, headers) in enumerate(prompts):
            who, why, _ = ask(server, body, dict(headers or {}, **UP), path)
            expect((who == "local" and why.startswith("private")) if is_private else who == "upstream", at, name, who, why)
        sent = up.take()
        expect(len(prompts) == 200 and marked == 100 and len(sent) == 100, len(prompts), marked, len(sent))
        bytes_of_marked = sum(len(b) for b in sent if b"secret-" in b or b"eron " in b.lower().replace(b"herons", b""))
        expect(bytes_of_marked == 0, bytes_of_marked, "bytes of marked prompts went upstream")
        expect(sum(len(b) for b in sent) == sum(line["bytes"] for line in listed(server) if line["event"] == "sending"))
        expect(server.metric("upstream_sent_bytes_total") == sum(len(b) for b in sent))


def case_a_talk_that_was_marked_stays_marked():
    with upstream() as up, routing(up.url) as server:
        first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "I have a rare illness."}]
        answer = ask(server, {"messages": first, "max_tokens": 4}, {"X-Pith-Private": "1"})[2]
        follow = first + [answer["choices"][0]["message"], {"role": "user", "content": "Which?"}]
        for messages in (follow, [{"role": "system", "content": "Another."}] + follow[1:], follow[1:]):
            who, why, _ = ask(server, {"messages": messages, "max_tokens": 4}, UP)
            expect(who == "local" and "conversation" in why, who, why)
        ask(server, {"messages": follow + [{"role": "user", "content": "hm"}], "max_tokens": 4}, UP)
        expect(up.take() == [])
        expect(ask(server, {"messages": first[:1] + [{"role": "user", "content": "Something else."}], "max_tokens": 4}, UP)[0] == "upstream")


def case_a_prompt_that_goes_on_with_a_marked_one_stays():
    with upstream() as up, routing(up.url) as server:
        first = "User: I have a rare illness.\nBot:"
        ask(server, plain(first), {"X-Pith-Private": "1"}, PLAIN)
        who, why, _ = ask(server, plain(first + " Which?\nUser: the one\nBot:"), UP, PLAIN)
        expect(who == "local" and "conversation" in why and up.take() == [], who, why)
        expect(ask(server, plain("User: Something else.\nBot:"), UP, PLAIN)[0] == "upstream")


def case_of_headers_that_come_twice_the_safer_counts():
    with upstream() as up, routing(up.url) as server:
        for lines, who in (("X-Pith-Private: 0\r\nX-Pith-Private: 1\r\nX-Pith-Route: upstream\r\n", b"local"),
                           ("X-Pith-Private: 1\r\nX-Pith-Private: 0\r\nX-Pith-Route: upstream\r\n", b"local"),
                           ("X-Pith-Private:\r\nX-Pith-Route: upstream\r\n", b"local"), ("X-Pith-Private: 0, 1\r\nX-Pith-Route: upstream\r\n", b"local"),
                           ("X-Pith-Route: upstream\r\nX-Pith-Route: local\r\n", b"local"), ("X-Pith-Route: local\r\nX-Pith-Route: upstream\r\n", b"local"),
                           ("X-Pith-Private: 0\r\nX-Pith-Route: upstream\r\n", b"upstream")):
            data = json.dumps(chat(f"twice {lines!r}", max_tokens=4)).encode()
            answer = serve.read_all(send_raw(server, serve.head(CHAT, len(data), lines + "Connection: close\r\n") + data))
            expect(b"X-Pith-Answered-By: " + who in answer, lines, answer)
            expect(len(up.take()) == (who == b"upstream"), lines)


def case_what_is_for_the_model_here_stays():
    with upstream() as up, routing(up.url, "--route-tools", "--ctx", 256, policy="rules") as server:
        for more in ({"logit_bias": {"2": -100}}, {"lora": [{"id": "legal"}]}):
            _, why, _ = ask(server, chat("x" * 300, tools=[WEATHER], **more), status=400)
            expect("here" in why and up.take() == [], more, why)
        status, _, text = server.ask("POST", CHAT, chat("x", lora=[], deadline_ms=5000, return_progress=True, stream=True, top_k=3), UP)
        expect(status == 200 and json.loads(up.take()[0]) == dict(chat("x", stream=True, top_k=3), model="big"), status, text)


def case_what_cannot_be_searched_stays():
    image = chat("x")
    image["messages"][0]["content"] = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    with upstream() as up, routing(up.url, "--private-words", words_file()) as server:
        _, why, _ = ask(server, image, UP, status=400)  # the model here takes no pictures
        expect(why.startswith("private") and up.take() == [], why)
        who, why, _ = ask(server, plain([1, 2, 3]), UP, PLAIN)
        expect(who == "local" and "token ids" in why and up.take() == [], who, why)
    with upstream() as up, routing(up.url) as server:
        expect(ask(server, image, UP)[0] == "upstream")


def case_a_wrong_list_of_words_is_refused():
    for text, wrong in (("", "no word"), ("# only this\n\n", "no word"), ("ok\nre:(", "line 2"), ("re:a*", "every text"), ("re:(a)\\1", "backreferences"),
                        ("x" * 600, "line 1"), ("a\0b", "no text")):
        result = subprocess.run([serve.PROGRAM, "serve", "-m", tiny_model(), "--port", "0", "--private-words", words_file(text)], capture_output=True,
                                timeout=60, check=False)
        expect(result.returncode == 1 and wrong in result.stderr.decode(), text[:20], result)


# ---- Away -----------------------------------------------------------------------------------------------------------------------------

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def times(server, n, headers=None, **more):
    spent = []
    for i in range(n):
        start = time.monotonic()
        who, why, _ = ask(server, chat(f"time {i}", max_tokens=4, **more), headers)
        spent.append(time.monotonic() - start)
        expect(who == "local", who, why)
    return spent


@contextlib.contextmanager
def black_hole():
    """A port that takes no connection and refuses none: its backlog is full."""
    with socket.socket() as listener, contextlib.ExitStack() as held:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            one = held.enter_context(socket.socket())
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(listener.getsockname())
        yield listener.getsockname()[1]


def case_an_upstream_that_is_away_costs_at_most_100_ms():
    with serve.serving() as server:
        times(server, 3)
        usual = statistics.median(times(server, 15))
    with black_hole() as hole:
        for url in (f"http://127.0.0.1:{free_port()}/v1", f"http://127.0.0.1:{hole}/v1", "http://no-such-host.invalid/v1"):
            with routing(url, "--route-tools", policy="rules", ready=False) as server:
                while server.ask("GET", "/health")[0] != 200:
                    time.sleep(0.01)
                spent = times(server, 12, UP) + times(server, 4, tools=[WEATHER]) + times(server, 4)
                slow = sorted(spent)[-2]  # another process may hold the machine up once
                expect(slow < usual + 0.1, url, "local answers take", slow, "usually", usual, spent)
                expect(statistics.median(spent) < usual + 0.03, url, statistics.median(spent), usual)
            expect(server.log.count("cannot be reached") == 1, server.log)


def case_an_upstream_that_comes_back_is_used_again():
    port = free_port()
    with routing(f"http://127.0.0.1:{port}/v1") as server:
        expect(ask(server, chat("x"), UP)[0] == "local")
        up = recording_upstream.Upstream(port)
        try:
            end = time.monotonic() + 20
            while ask(server, chat("x"), UP)[0] != "upstream":
                expect(time.monotonic() < end, "the upstream is not used again")
                time.sleep(0.1)
            expect(ask(server, chat("y"), UP)[0] == "upstream")
        finally:
            up.close()


@contextlib.contextmanager
def forwarder():
    """(port, one more function: where it leads to). Counts the connections that it passed on."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    target, passed = [], []

    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", target[0]))
                passed.append(1)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()
    try:
        yield listener.getsockname()[1], target, passed, threading.Thread(target=accept, daemon=True)
    finally:
        listener.close()


def case_an_upstream_that_leads_back_is_noticed():
    """A server that is its own upstream, or two that name each other, send a request on once."""
    with forwarder() as (port, target, passed, thread), routing(f"http://127.0.0.1:{port}/v1") as server:
        target.append(server.port)
        thread.start()
        for body, headers in ((chat("round", model="big"), None), (chat("round"), UP), (chat("round", model="big"), UP)):
            before = len(listed(server)) if os.path.exists(os.path.join(server.home, "upstream.jsonl")) else 0
            status, head, text = server.ask("POST", CHAT, body, headers)
            expect(status == 200 and head["X-Pith-Answered-By"] == "upstream", status, head, text)
            expect(json.loads(text)["choices"][0]["message"]["role"] == "assistant", text)
            expect(len([line for line in listed(server)[before:] if line["event"] == "sending"]) == 1, listed(server)[before:])
        expect(len(passed) < 10, len(passed))


def case_a_request_for_the_upstreams_model_is_answered_here_when_it_is_away():
    with routing(f"http://127.0.0.1:{free_port()}/v1") as server:
        who, why, answer = ask(server, chat("x", model="big"))
        expect(who == "local" and answer["model"] == "tiny" and "cannot be reached" in why or "connect" in why, who, why, answer)
        _, why, answer = ask(server, chat("x" * 40000), status=400)
        expect(answer["error"]["code"] == "context_length_exceeded" and "upstream" in why, why, answer)


# ---- What passes ----------------------------------------------------------------------------------------------------------------------

def case_streams_pass_byte_by_byte():
    with upstream() as up, routing(up.url) as server:
        status, head, text = server.ask("POST", CHAT, chat("s", stream=True), UP)
        expect(status == 200 and head["Content-Type"] == "text/event-stream" and head["X-Pith-Answered-By"] == "upstream", status, head)
        expect(text == b"".join(recording_upstream.events("big")), text)
        status, _, text = server.ask("POST", PLAIN, plain("s", stream=True), UP)
        expect(text == b"".join(recording_upstream.events("big")), text)
        expect([p for p, _ in up.heads] == [CHAT, PLAIN], up.heads)
        head = up.heads[0][1]
        expect(head["Authorization"] == f"Bearer {KEY}" and head["Content-Type"] == "application/json", head)
        expect(not [h for h in head if h.lower().startswith("x-")] and "Cookie" not in head, head)


def case_answers_and_errors_pass_unchanged():
    def fails(status, **headers):
        return lambda handler, _: handler.send_text(status, '{"error": {"message": "no",  "code": 7}}', **headers)
    with upstream() as up, routing(up.url, "--log-level", "debug", "--cors", "https://app.example") as server:
        answer = ask(server, chat("x", tools=[WEATHER], tool_choice="required", unknown_to_us=[1, {"a": 1.5}]), UP)[2]
        expect({k: v for k, v in answer.items() if k != "pith"} == recording_upstream.whole("big"), answer)
        expect(json.loads(up.take()[0])["unknown_to_us"] == [1, {"a": 1.5}])
        call = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"K\u00f6ln\"}"}}]}
        up.mode = lambda handler, _: handler.send_text(200, json.dumps(recording_upstream.whole("big", choices=[{"message": call}], pith={"answered_by": "local"})))
        answer = ask(server, chat("x"), UP)[2]
        expect(answer["choices"][0]["message"] == call and answer["pith"]["answered_by"] == "upstream", answer)
        for status, headers in ((400, {}), (404, {}), (429, {"Retry_After": "17"}), (500, {}), (503, {})):
            up.mode = fails(status, **headers)
            for stream in (False, True):
                got, head, text = server.ask("POST", CHAT, chat("x", stream=stream), UP)
                expect(got == status and text == b'{"error": {"message": "no",  "code": 7}}', got, text)
                expect(head["Retry-After"] == headers.get("Retry_After"), head)
        up.mode = lambda handler, _: handler.send_text(401, json.dumps({"error": {"message": f"Incorrect key {KEY}"}}))
        _, _, answer = ask(server, chat("x"), UP, status=502)
        expect("UP_KEY" in answer["error"]["message"] and KEY not in json.dumps(answer), answer)
        up.mode = "well"
        status, head, _ = server.ask("POST", CHAT, chat("x"), dict(UP, Origin="https://app.example"))
        expect(status == 200 and "X-Pith-Answered-By" in head["Access-Control-Expose-Headers"], status, head)


def case_an_upstream_that_misbehaves_gives_one_clear_error():
    both, told = (False, True), {}
    cases = (("html", both, 502, "text/html"), ("html_503", both, 502, "503"), ("no_json", both, 502, ""), ("no_choices", (False,), 502, "choices"),
             ("too_long", (False,), 502, "shorter"), ("too_short", (False,), 502, "JSON"), ("drops", (False,), 502, "broke"),
             ("ends_early", (False,), 502, "JSON"), ("redirects", both, 502, "307"), ("wrong_kind", both, 502, ""), ("hangs", both, 504, "1 seconds"),
             ("large", (False,), 502, "32 MiB"), ("many_values", (False,), 502, "values"), ("compressed", both, 502, ""), ("endless_head", both, 502, "head"))
    with upstream() as up, routing(up.url, "--upstream-timeout", 1) as server:
        for mode, streams, status, words in cases:
            for stream in streams:
                up.mode = mode
                start = time.monotonic()
                _, _, answer = ask(server, chat("x", stream=stream), UP, status=status)
                error = answer["error"]
                expect(error["type"] == "upstream_error" and error["code"] and words in error["message"], mode, stream, error)
                expect(time.monotonic() - start < 10, mode, "took", time.monotonic() - start)
                told[error["message"]] = mode
                expect(ask(server, chat("meanwhile"))[0] == "local", mode)
        for mode in ("too_long", "too_short", "drops", "ends_early"):
            up.mode = mode
            status, _, text = server.ask("POST", CHAT, chat("x", stream=True), UP)
            blocks = [b for b in text.decode().split("\n\n") if b]
            expect(blocks[-1].startswith("data: {"), mode, status, text[-300:])
            last = json.loads(blocks[-1][len("data: "):])
            expect(status == 200 and last["error"]["type"] == "upstream_error" and b"[DONE]" not in text, mode, text[-300:])
        up.mode = "well"
        expect(ask(server, chat("x"), UP)[0] == "upstream" and server.metric("upstream_failed_total") > 15)
        errors = [line["error"] for line in listed(server) if "error" in line]
        expect(len(errors) == server.metric("upstream_failed_total") and not any("meanwhile" in e for e in errors), errors)


def case_a_stream_is_over_with_its_last_event():
    with upstream() as up, routing(up.url, "--upstream-timeout", 30) as server:
        for mode in ("done_and_hangs", "goes_on", "early_hints"):
            up.mode = mode
            start = time.monotonic()
            status, _, text = server.ask("POST", CHAT, chat("x", stream=True), UP)
            expect(status == 200 and text == b"".join(recording_upstream.events("big")), mode, status, text)
            expect(time.monotonic() - start < 5, mode, "took", time.monotonic() - start)
        end = time.monotonic() + 10
        while len([line for line in listed(server) if line["event"] == "ended"]) < 3:
            expect(time.monotonic() < end, listed(server))
            time.sleep(0.05)
        expect(not any("error" in line for line in listed(server)), listed(server))


def case_a_client_that_leaves_ends_the_transfer():
    with upstream() as up, routing(up.url) as server:
        up.mode = "slowly"
        client = send_raw(server, b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Pith-Route: upstream\r\n" + request(CHAT, chat("x", stream=True)).split(b"\r\n", 2)[2])
        expect(client.recv(100).startswith(b"HTTP/1.1 200"))
        client.recv(1000)
        client.close()
        expect(up.ended.wait(5), "the upstream goes on for a client that left")
        up.mode, up.released = "hangs", threading.Event()
        client = send_raw(server, request(CHAT, chat("x", pith={"route": "upstream"})))
        while not up.bodies[1:]:
            time.sleep(0.01)
        client.close()
        end = time.monotonic() + 5
        while len([line for line in listed(server) if line.get("error") == "the client left"]) < 2:
            expect(time.monotonic() < end, listed(server))
            time.sleep(0.02)


def case_a_client_that_reads_slowly_loses_nothing():
    size = 8 << 20
    def burst(handler, _):
        handler.begin_stream()
        for i in range(size >> 14):
            handler.chunk(b"data: " + b"%08d" % i + b"x" * ((1 << 14) - 16) + b"\n\n")
        handler.chunk(b"data: [DONE]\n\n")
        handler.chunk(b"")
    with upstream() as up, routing(up.url) as server:
        up.mode = burst
        client = server.connect()
        client.request("POST", CHAT, json.dumps(chat("x", stream=True)), UP)
        time.sleep(1)
        before = server.metric("resident_bytes")
        text = client.getresponse().read()
        client.close()
        expect(text.count(b"data: 0000") == size >> 14 and b"[DONE]" in text, len(text), text[-100:])
        expect(server.metric("resident_bytes") - before < 4 << 20)


def case_a_stop_ends_transfers():
    with upstream() as up:
        with routing(up.url, "--stop-timeout", 1) as server:
            up.mode = "slowly"
            client = send_raw(server, request(CHAT, chat("x", stream=True, pith={"route": "upstream"})))
            expect(client.recv(100).startswith(b"HTTP/1.1 200"))
            server.process.terminate()
            text = serve.read_all(client)
            server.process.wait(30)
            expect(b"being stopped" in text, text[-300:])


def case_many_at_once_get_their_own_answers():
    def echo(handler, body):
        said = json.loads(body)["messages"][0]["content"]
        handler.send_text(200, json.dumps(recording_upstream.whole("big", choices=[{"message": {"content": said}}])))
    with upstream() as up, routing(up.url) as server:
        up.mode = echo
        wrong = []

        def work(i):
            for j in range(10):
                answer = server.post(CHAT, chat(f"{i}:{j}", max_tokens=4), headers=UP if j % 2 else None)
                if j % 2 and answer["choices"][0]["message"]["content"] != f"{i}:{j}":
                    wrong.append(answer)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(not wrong and len(up.take()) == 80, wrong[:1])


# ---- The list, the options ------------------------------------------------------------------------------------------------------------

def case_the_list_says_what_left_and_nothing_else():
    with upstream() as up, routing(up.url) as server:
        text = "a sentence that the list must not hold"
        ask(server, chat(text), UP)
        ask(server, chat("stays"))
        path = os.path.join(server.home, "upstream.jsonl")
        expect(stat.S_IMODE(os.stat(path).st_mode) == 0o600, oct(os.stat(path).st_mode))
        with open(path, encoding="utf-8") as file:
            raw = file.read()
        sending, ended = listed(server)
        body = up.take()[0]
        expect(sending["bytes"] == ended["sent"] == len(body) and sending["sha256"] == hashlib.sha256(body).hexdigest(), sending, ended)
        expect(sending["reason"] == "the caller chose upstream" and sending["path"] == CHAT and sending["upstream"] + "/v1" == up.url, sending)
        expect(sending["id"] == ended["id"] and ended["status"] == 200 and ended["received"] > 100 and sending["time"].endswith("Z"), ended)
        expect(text not in raw and KEY not in raw and "stays" not in raw, raw)
        with open(path, "a", encoding="utf-8") as file:
            file.write("x" * (4 << 20) + "\n")
        ask(server, chat(text), UP)
        expect(os.path.getsize(path) < 2000 and os.path.getsize(path + ".1") > 4 << 20, "the list was not turned over")
        expect(len(listed(server)) == 2 and stat.S_IMODE(os.stat(path).st_mode) == 0o600)
        os.remove(path)
        os.mkdir(path)
        up.take()
        who, why, _ = ask(server, chat(text), UP)
        expect(who == "local" and "list" in why and up.take() == [], "what could not be listed left", who, why)


def case_options_that_cannot_be_meant_are_refused():
    run = lambda *words, **env: subprocess.run([serve.PROGRAM, "serve", "-m", tiny_model(), "--port", "0", *words], capture_output=True, timeout=60, check=False,
                                               env=dict(os.environ, PITH_HOME=serve.FOLDER, **env))
    url = ["--upstream", "http://127.0.0.1:9/v1", "--upstream-model", "big"]
    for words, code, told in ((["--route", "rules"], 2, "--upstream"), (url[:2], 2, "--upstream-model"), ([*url, "--route-tools"], 2, "--route rules"),
                              ([*url, "--route", "rules"], 2, "rule"), ([*url, "--upstream-key-env", KEY], 2, "name of a variable"),
                              ([*url, "--upstream-key-env", "NO_SUCH_KEY_HERE"], 1, "not set"), ([*url, "--route", "sometimes"], 2, "local-first"),
                              (["--upstream", "http://me:pw@host/v1", "--upstream-model", "m", "--route", "local-first"], 1, "--upstream"),
                              (["--upstream", "ftp://host/v1", "--upstream-model", "m", "--route", "local-first"], 1, "--upstream"),
                              (["--upstream", "https:///v1", "--upstream-model", "m", "--route", "local-first"], 1, "--upstream"),
                              (["--upstream", "https://host/v1?key=1", "--upstream-model", "m", "--route", "local-first"], 1, "--upstream")):
        result = run(*words)
        expect(result.returncode == code and told in result.stderr.decode(), words, result)
        expect(KEY not in result.stderr.decode() and "pw" not in result.stderr.decode(), result.stderr)
    result = run(*url, "--upstream-key-env", "UP_KEY", "--route", "local-first", UP_KEY="a b")
    expect(result.returncode == 1 and b"no key" in result.stderr and b"a b" not in result.stderr, result)


def case_tls_is_checked():
    if not shutil.which("openssl"):
        raise Skip("openssl is not installed")
    cert, key = (os.path.join(serve.FOLDER, name) for name in ("up.pem", "up.key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    with upstream() as up:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        up.socket = context.wrap_socket(up.socket, server_side=True)
        url = up.url.replace("http://127.0.0.1", "https://localhost")
        with routing(url) as server:
            expect(ask(server, chat("x"), UP)[0] == "local" and up.take() == [], "a certificate that nobody signed was accepted")
        with routing(url, env={"SSL_CERT_FILE": cert}) as server:
            who, why, _ = ask(server, chat("x"), UP)
            end = time.monotonic() + 10
            while who != "upstream" and time.monotonic() < end:  # the first connection may take longer than a local answer waits
                who, why, _ = ask(server, chat("x"), UP)
                time.sleep(0.05)
            expect(who == "upstream", who, why)


if __name__ == "__main__":
    serve.program_of(__doc__)
    none = subprocess.run([*WRAPPER, serve.PROGRAM, "serve", "--upstream", "x://", "--upstream-model", "m", "--route", "local-first"], capture_output=True,
                          timeout=60, check=False)
    if b"this build has no" in none.stderr:
        print("0 passed, 0 failed, 1 skipped: this build has no upstream")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as serve.FOLDER:
        sys.exit(run_cases(globals(), sys.argv[2:]))
