#!/usr/bin/env python3
"""`pith serve` as its clients see it: routes, streams, errors, and clients that misbehave. A tiny model with a chat template is made here;
cases that need a model which says something are skipped where $PITH_TEST_MODELS lacks the default one.
    tests/cli/test_serve.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
Ends with "N passed, N failed, N skipped"."""
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from case_runner import MODELS, ROOT, Skip, default_model, expect, given_program, run_cases

TEMPLATE = ("{% for m in messages %}<s>{{ m.role }}:{{ m.content }}</s>\n{% endfor %}"
            "{% if tools %}{{ tools | tojson }}{% endif %}<s>assistant:")
CONTEXT = 32768
WRAPPER = os.environ.get("PITH_CLI_WRAPPER", "").split()  # of cross builds, which have no server


def tiny_model(name="tiny", context=CONTEXT):
    path = os.path.join(FOLDER, "models", name + ".gguf")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        gguf = tiny_gguf.Gguf(os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf"))
        keys = dict(gguf.keys)
        keys["tokenizer.chat_template"] = (tiny_gguf.STRING, tiny_gguf.string(TEMPLATE))
        keys["llama.context_length"] = (4, struct.pack("<I", context))
        tiny_gguf.write(path, keys, gguf.tensors)
    return path


def wait_until(test, tell, seconds=30):
    """tell(): what is shown when the time is over."""
    end = time.monotonic() + seconds
    while not test():
        expect(time.monotonic() < end, tell(), "after", seconds, "s")
        time.sleep(0.02)


class Server:
    """`pith serve` on a free port; what it tells on stderr is in `log`."""

    def __init__(self, *arguments, env=None):
        merged = {k: v for k, v in os.environ.items() if k != "PITH_API_KEY"}
        merged.update({"PITH_HOME": FOLDER, **(env or {})})
        self.process = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--cache", "off", *map(str, arguments)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=merged)
        self.log, self.port = "", None
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        if not self.listening.wait(60):
            self.process.kill()
            raise AssertionError(f"the server does not listen: {self.log}")

    def read_log(self):
        for line in self.process.stderr:
            self.log += line.decode("utf-8", "replace")
            found = re.search(r"listening on https?://\S+:(\d+)", self.log)
            if found and not self.port:
                self.port = int(found.group(1))
                self.listening.set()
        self.listening.set()

    def connect(self, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, text)"""
        connection = self.connect()
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, data, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, answer.headers, text

    def post(self, path, body, status=200, headers=None):
        got, _, text = self.ask("POST", path, body, headers)
        expect(got == status, path, body, "answered", got, "expected", status, text)
        return json.loads(text)

    def get(self, path, status=200):
        got, _, text = self.ask("GET", path)
        expect(got == status, path, "answered", got, "expected", status, text)
        return text.decode()

    def stream(self, path, body):
        """The events of a stream, [DONE] checked and left out."""
        got, headers, text = self.ask("POST", path, dict(body, stream=True))
        expect(got == 200 and headers["Content-Type"] == "text/event-stream", got, text)
        blocks = text.decode().split("\n\n")
        blocks = [block for block in blocks if not block.startswith(":")]  # comments: the prompt is being read
        expect(blocks[-1] == "" and blocks[-2] == "data: [DONE]", "the stream does not end with [DONE]", text[-300:])
        return [json.loads(block[6:]) for block in blocks[:-2]]

    def metric(self, name):
        return float(re.search(rf"^pith_{name} (\S+)$", self.get("/metrics"), re.M).group(1))

    def wait_for(self, name, test, seconds=30):
        wait_until(lambda: test(self.metric(name)), lambda: f"{name} is {self.metric(name)}", seconds)

    def stop(self, number=signal.SIGTERM, code=0):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join(10)
        self.process.stderr.close()
        expect(self.process.returncode == code, "exit code", self.process.returncode, "expected", code, self.log)


@contextlib.contextmanager
def serving(*arguments, env=None, model=None):
    server = Server("-m", model or tiny_model(), *arguments, env=env)
    try:
        yield server
        server.stop()
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


CHAT, PLAIN = "/v1/chat/completions", "/v1/completions"


def chat(text, **more):
    return dict({"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 24}, **more)


def plain(text, **more):
    return dict({"prompt": text, "temperature": 0, "max_tokens": 24, "ignore_eos": True}, **more)


def long_reply(**more):
    return plain("abc", max_tokens=30000, **more)


def fold_chat(events):
    """The choices that a stream's events make, as the whole answer has them."""
    choices = {}
    for event in events:
        for part in event["choices"]:
            choice = choices.setdefault(part["index"], {"index": part["index"], "message": {"role": "assistant", "content": ""}, "logprobs": None})
            delta = part["delta"]
            for key in ("content", "reasoning_content"):
                if key in delta:
                    choice["message"][key] = choice["message"].get(key, "") + delta[key]
            for call in delta.get("tool_calls", []):
                choice["message"].setdefault("tool_calls", []).append({k: v for k, v in call.items() if k != "index"})
            if part["logprobs"]:
                choice["logprobs"] = choice["logprobs"] or {"content": []}
                choice["logprobs"]["content"] += part["logprobs"]["content"]
            if part["finish_reason"]:
                choice["finish_reason"] = part["finish_reason"]
    return [choices[index] for index in sorted(choices)]


# ---- Routes ---------------------------------------------------------------------------------------------------------------------------

def case_every_route_answers():
    with serving() as server:
        answer = server.post(CHAT, chat("hello"))
        expect(answer["object"] == "chat.completion" and answer["choices"][0]["message"]["role"] == "assistant", answer)
        usage = answer["usage"]
        expect(usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"] and usage["completion_tokens"] <= 24, usage)
        for key in ("cache_n", "draft_n", "draft_accepted_n", "prompt_ms", "predicted_ms", "device"):
            expect(key in answer["timings"], key, answer["timings"])
        expect(server.post(PLAIN, plain("hello"))["object"] == "text_completion")
        models = json.loads(server.get("/v1/models"))["data"]
        expect([m["id"] for m in models] == ["tiny"] and models[0]["status"] == "ready", models)
        expect(json.loads(server.get("/v1/models/tiny"))["id"] == "tiny")
        expect(json.loads(server.get("/v1/models/nobody", 404))["error"]["code"] == "model_not_found")
        ids = server.post("/tokenize", {"content": "abc"})["tokens"]
        expect(server.post("/detokenize", {"tokens": ids})["content"] == "abc", ids)
        expect(server.post("/detokenize", {"tokens": [99999]}, 400)["error"]["message"])
        expect(server.post("/apply-template", {"messages": [{"role": "user", "content": "x"}]})["prompt"] == "<s>user:x</s>\n<s>assistant:")
        expect(json.loads(server.get("/health")) == {"status": "ok"})
        expect(server.metric("requests_total") > 5 and server.metric("models_loaded") == 1)


def case_a_wrong_path_or_method_is_named():
    with serving() as server:
        expect("/nowhere" in json.loads(server.get("/nowhere", 404))["error"]["message"])
        status, headers, _ = server.ask("GET", CHAT)
        expect(status == 405 and headers["Allow"] == "POST", status, headers)
        status, headers, _ = server.ask("POST", "/health", "{}")
        expect(status == 405 and headers["Allow"] == "GET", status, headers)
        server.post(CHAT, chat("loaded now"))
        status, _, text = server.ask("HEAD", "/health")
        expect(status == 200 and text == b"", status, text)


def case_a_stream_folds_to_the_whole_answer():
    with serving("--exact") as server:
        for more in ({}, {"logprobs": True, "top_logprobs": 3}, {"n": 3, "temperature": 1.5, "seed": 7}, {"stop": ["e", "a"]},
                     {"response_format": {"type": "json_object"}, "max_tokens": 60}, {"logit_bias": {"97": 100}}):
            whole = server.post(CHAT, chat("fold me", **more))
            events = server.stream(CHAT, chat("fold me", **more))
            expect(fold_chat(events) == whole["choices"], more, fold_chat(events), whole["choices"])
        for more in ({}, {"n": 2, "temperature": 1, "seed": 3}, {"echo": True}, {"stop": "z"}):
            whole = server.post(PLAIN, plain("fold me", **more))
            events = server.stream(PLAIN, plain("fold me", **more))
            for i, choice in enumerate(whole["choices"]):
                text = "".join(c["text"] for e in events for c in e["choices"] if c["index"] == i)
                expect(text == choice["text"], more, text, choice["text"])


def case_usage_comes_at_the_end_of_a_stream_when_asked_for():
    with serving() as server:
        events = server.stream(CHAT, chat("usage", stream_options={"include_usage": True}))
        expect(events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] > 0, events[-1])
        for path, body in ((CHAT, chat("usage", n=2)), (PLAIN, plain("usage", n=2))):
            events = server.stream(path, body)
            expect(all(len(e["choices"]) == 1 for e in events), "a chunk without a choice", [e for e in events if not e["choices"]])
            expect(events[-1]["choices"][0]["finish_reason"] and events[-1]["timings"]["predicted_n"] > 0 and "usage" not in events[-1], events[-1])
            expect(sum(bool(e["choices"][0]["finish_reason"]) for e in events) == 2 and not any("timings" in e for e in events[:-1]), events)


def case_a_cached_call_gives_the_same_text():
    with serving("--exact") as server:
        text = "the same words again and again " * 20
        first, second = server.post(CHAT, chat(text)), server.post(CHAT, chat(text))
        expect(first["choices"] == second["choices"], first["choices"], second["choices"])
        cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
        expect(first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0 and cached > 500, second["usage"])
        expect(second["timings"]["cache_n"] == cached, second["timings"])


def case_choices_differ_and_a_seed_repeats_them():
    with serving() as server:
        ask = plain("abc", n=4, temperature=2, seed=5)
        first, second = server.post(PLAIN, ask)["choices"], server.post(PLAIN, ask)["choices"]
        expect(len({c["text"] for c in first}) == 4 and first == second, first, second)
        other = server.post(PLAIN, dict(ask, seed=6))["choices"]
        expect(other != first)
        del ask["seed"]
        expect(server.post(PLAIN, ask)["choices"] != server.post(PLAIN, ask)["choices"], "without a seed two draws were the same")


def case_logprobs_have_the_api_s_shape():
    with serving() as server:
        answer = server.post(CHAT, chat("abc", logprobs=True, top_logprobs=4, max_tokens=5))
        for token in answer["choices"][0]["logprobs"]["content"]:
            expect(token["logprob"] <= 0 and len(token["top_logprobs"]) == 4 and isinstance(token["bytes"], list), token)
            expect(token["top_logprobs"][0]["logprob"] >= token["top_logprobs"][3]["logprob"], token)
        old = server.post(PLAIN, plain("abc", logprobs=2, max_tokens=5))["choices"][0]["logprobs"]
        expect([len(old[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")] == [5] * 4, old)


def case_a_schema_holds():
    with serving() as server:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"], "additionalProperties": False}
        answer = server.post(CHAT, chat("x", max_tokens=100, response_format={"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}))
        value = json.loads(answer["choices"][0]["message"]["content"])
        expect(list(value) == ["n"] and value["n"] in range(10), value)
        bad = server.post(CHAT, chat("x", response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "nothing"}}}), 400)
        expect(bad["error"]["param"] == "response_format", bad)


def case_prompt_ids_are_taken():
    with serving() as server:
        ids = server.post("/tokenize", {"content": "hello"})["tokens"]
        expect(server.post(PLAIN, plain(ids))["choices"] == server.post(PLAIN, plain("hello"))["choices"])
        expect("vocabulary" in server.post(PLAIN, plain([99999]), 400)["error"]["message"])


def case_progress_of_reading_comes_when_asked_for():
    with serving("--step", 64) as server:
        events = server.stream(CHAT, chat("word " * 200, return_progress=True))
        seen = [e["prompt_progress"]["processed"] for e in events if "prompt_progress" in e]
        expect(len(seen) >= 3 and seen == sorted(seen), seen)


# ---- What is refused ------------------------------------------------------------------------------------------------------------------

def case_a_field_is_heeded_or_refused_by_its_path():
    with serving() as server:
        user = {"role": "user", "content": "x"}
        for path, body, param, code in (
                (CHAT, chat("x", frobnicate=1), "frobnicate", "unknown_field"),
                (CHAT, chat("x", temperature="hot"), "temperature", "invalid_type"),
                (CHAT, chat("x", temperature=2.01), "temperature", "out_of_range"),
                (CHAT, chat("x", top_p=-0.01), "top_p", "out_of_range"),
                (CHAT, chat("x", n=17), "n", "out_of_range"),
                (CHAT, chat("x", n=0), "n", "out_of_range"),
                (CHAT, chat("x", max_tokens=0), "max_tokens", "out_of_range"),
                (CHAT, chat("x", max_tokens=1.5), "max_tokens", "invalid_type"),
                (CHAT, chat("x", stop=["a"] * 17), "stop", "out_of_range"),
                (CHAT, chat("x", stop=[""]), "stop", "invalid_value"),
                (CHAT, chat("x", logit_bias={"x": 1}), "logit_bias", "invalid_value"),
                (CHAT, chat("x", logit_bias={"1": 101}), "logit_bias", "out_of_range"),
                (CHAT, chat("x", top_logprobs=2), "top_logprobs", "invalid_value"),
                (CHAT, chat("x", logprobs=True, top_logprobs=21), "top_logprobs", "out_of_range"),
                (CHAT, chat("x", store=True), "store", "unsupported"),
                (CHAT, chat("x", stream="yes"), "stream", "invalid_type"),
                (CHAT, chat("x", stream_options={"include_usage": True}), "stream_options", "invalid_value"),
                (CHAT, chat("x", stream=True, stream_options={"more": True}), "stream_options.more", "unknown_field"),
                (CHAT, chat("x", response_format={"type": "xml"}), "response_format.type", "invalid_value"),
                (CHAT, chat("x", tool_choice="required"), "tool_choice", "invalid_value"),
                (CHAT, chat("x", tools=[{"type": "function", "function": {"name": "f"}}], tool_choice="always"), "tool_choice", "unsupported"),
                (CHAT, chat("x", tool_choice="auto"), "tool_choice", "invalid_value"),
                (CHAT, chat("x", tools=[{"type": "web"}]), "tools[0].type", "unsupported"),
                (CHAT, {}, "messages", "missing"),
                (CHAT, {"messages": []}, "messages", "invalid_value"),
                (CHAT, {"messages": "x"}, "messages", "invalid_type"),
                (CHAT, {"messages": [user, "x"]}, "messages[1]", "invalid_type"),
                (CHAT, {"messages": [user, {"role": "user"}]}, "messages[1].content", "missing"),
                (CHAT, {"messages": [{"role": "boss", "content": "x"}]}, "messages[0].role", "invalid_value"),
                (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content[0].type", "unsupported"),
                (CHAT, {"messages": [dict(user, more=1)]}, "messages[0].more", "unknown_field"),
                (PLAIN, {}, "prompt", "missing"), (PLAIN, plain(["a", "b"]), "prompt", "invalid_value"), (PLAIN, plain("a", suffix="b"), "suffix", "unknown_field"),
                ("/tokenize", {"content": 1}, "content", "invalid_type"), ("/tokenize", {"content": "", "path": "/etc"}, "path", "unknown_field")):
            error = server.post(path, body, 400)["error"]
            expect(error["param"] == param and error["code"] == code, body, error)
        harmless = chat("x", user="me", metadata={"a": "b"}, store=False, top_k=None, service_tier="auto")
        server.post(CHAT, harmless)


def case_bad_json_is_refused():
    with serving() as server:
        for body in (b"", b"{", b"[]", b"1", b'{"a":1,"a":2}', b'{"messages":[{"role":"user","content":"\xff"}]}', b'{"a":"\\u0000"}', b"{}x",
                     b"[" * 5000, b"[" + b"1," * (1 << 20) + b"1]", b'{"a":' * 200 + b"1" + b"}" * 200):
            error = server.post(CHAT, body, 400)["error"]
            expect(error["code"] == "invalid_json", body[:30], error)
        server.post(CHAT, chat("still here"))


def case_a_prompt_longer_than_the_context_is_refused():
    with serving("--ctx", 256) as server:
        error = server.post(PLAIN, plain("a" * 256), 400)["error"]
        expect(error["code"] == "context_length_exceeded" and "256" in error["message"], error)
        answer = server.post(PLAIN, plain("a" * 255, max_tokens=9))
        expect(answer["choices"][0]["finish_reason"] == "length", answer)


def case_no_name_of_a_model_leads_to_a_file():
    with serving() as server:
        for name in ("../models/tiny", tiny_model(), "./tiny", "tiny.gguf", "/etc/passwd", "", "tiny\u0001"):
            error = server.post(CHAT, chat("x", model=name), 404)["error"]
            expect(error["code"] == "model_not_found", name, error)
        server.post(CHAT, chat("x", model="tiny"))


def case_a_users_text_never_becomes_control_tokens():
    with serving() as server:
        plain_n = len(server.post("/tokenize", {"content": "</s>"})["tokens"])
        control = server.post("/tokenize", {"content": "</s>", "parse_special": True})["tokens"]
        base = server.post(CHAT, chat("", max_tokens=1))["usage"]["prompt_tokens"]
        for content in ("</s>", [{"type": "text", "text": "</s>"}]):
            ask = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
            n = server.post(CHAT, ask)["usage"]["prompt_tokens"]
            expect(len(control) == 1 and plain_n == 4 and n == base + 4, content, n, base, control)
        n = server.post(PLAIN, plain("</s>", max_tokens=1))["usage"]["prompt_tokens"]
        expect(n == 4, n)


# ---- Who may ask ----------------------------------------------------------------------------------------------------------------------

def case_a_key_is_needed_where_one_is_set():
    key = "correct-horse-battery"
    path = os.path.join(FOLDER, "key")
    with open(path, "w", encoding="utf-8") as file:
        file.write(key + "\n")
    for arguments, env in ((["--key-file", path], None), ([], {"PITH_API_KEY": key})):
        with serving(*arguments, "--log-level", "debug", env=env) as server:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": key}, {"x-api-key": key[:-1]}, {"Authorization": f"Bearer {key}x"}):
                status, answer, text = server.ask("POST", CHAT, chat("x"), headers)
                expect(status == 401 and answer["WWW-Authenticate"] == "Bearer", headers, status, text)
            expect(server.ask("GET", "/metrics")[0] == 401 and server.ask("GET", "/nowhere")[0] == 401)
            for headers in ({"Authorization": f"Bearer {key}"}, {"x-api-key": key}):
                server.post(CHAT, chat("x"), headers=headers)
            expect(server.ask("GET", "/health")[0] == 200, "health needs no key")
            server.stop()
            expect(key not in server.log, "the key is in the log", server.log)


def case_another_address_needs_a_key():
    run = lambda *words: subprocess.run([PROGRAM, "serve", "-m", tiny_model(), *words], capture_output=True, timeout=60, check=False)
    result = run("--host", "0.0.0.0")
    expect(result.returncode == 2 and b"needs a key" in result.stderr, result)
    result = run("--host", "example.org")
    expect(result.returncode == 2, result)
    expect(run("--port", "70000").returncode == 2 and run("--cors", "example.org").returncode == 2 and run("--cert", "x").returncode == 2)


def case_a_taken_port_and_a_bad_model_are_told():
    with serving() as server:
        result = subprocess.run([PROGRAM, "serve", "-m", tiny_model(), "--port", str(server.port)], capture_output=True, timeout=60, check=False)
        expect(result.returncode == 1 and b"cannot be listened on" in result.stderr, result)
    path = os.path.join(FOLDER, "bad.gguf")
    with open(path, "wb") as file:
        file.write(b"GGUF\3\0\0\0nothing")
    result = subprocess.run([PROGRAM, "serve", "-m", path, "--port", "0"], capture_output=True, timeout=60, check=False)
    expect(result.returncode == 1 and result.stderr.count(b"pith: ") >= 1, result)


def case_other_hosts_and_origins_are_refused():
    with serving("--cors", "https://app.example") as server:
        for host, status in (("localhost", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403),
                             ("localhost.evil.example:80", 403), ("", 403), ("localhost:x", 403)):
            got, _, text = server.ask("POST", PLAIN, plain("x", max_tokens=1), {"Host": host})
            expect(got == status, host, got, text)
        own = f"127.0.0.1:{server.port}"
        for origin, status in (("https://app.example", 200), (f"http://{own}", 200), ("https://evil.example", 403), ("null", 403),
                               ("https://app.example.evil", 403), (f"http://{own}.evil", 403), ("https://APP.example", 403)):
            got, headers, text = server.ask("POST", PLAIN, plain("x", max_tokens=1), {"Host": own, "Origin": origin})
            expect(got == status, origin, got, text)
            expect((headers["Access-Control-Allow-Origin"] == origin) == (status == 200), origin, headers)
        got, headers, _ = server.ask("OPTIONS", CHAT, headers={"Host": own, "Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
        expect(got == 204 and "content-type" in headers["Access-Control-Allow-Headers"], got, headers)
        expect(server.ask("OPTIONS", CHAT, headers={"Host": own, "Origin": "https://evil.example"})[0] == 403)


def case_what_a_page_of_another_site_includes_is_refused():
    """Images, scripts and frames have no Origin; browsers say whose they are."""
    fetch = lambda site, mode, dest: {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    with serving() as server:
        for headers, status in ((fetch("cross-site", "no-cors", "image"), 403), (fetch("same-site", "no-cors", "script"), 403),
                                (fetch("cross-site", "navigate", "iframe"), 403), (fetch("cross-site", "navigate", "document"), 200),
                                (fetch("same-origin", "cors", "empty"), 200), (fetch("none", "navigate", "document"), 200), (fetch("", "", ""), 403)):
            for path in ("/v1/models", "/v1/adapters", "/health"):
                got, _, text = server.ask("GET", path, headers=headers)
                expect(got == status or (path == "/health" and got == 503), path, headers, got, text)


# ---- Clients that misbehave -----------------------------------------------------------------------------------------------------------

def send_raw(server, data, timeout=60):
    client = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
    client.sendall(data)
    return client


def read_all(client):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while True:
            part = client.recv(65536)
            if not part:
                break
            data += part
    client.close()
    return data


def head(path, length, more=""):
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{more}\r\n".encode()


def request(path, body):
    data = json.dumps(body).encode()
    return head(path, len(data)) + data


def case_a_huge_body_is_refused_before_it_is_read():
    with serving() as server:
        client = send_raw(server, head(CHAT, 100 << 20))
        expect(client.recv(100).startswith(b"HTTP/1.1 413"))
        client.close()
        client = send_raw(server, f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        block = b"%x\r\n" % (1 << 20) + b" " * (1 << 20) + b"\r\n"
        before = server.metric("resident_bytes")
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(300):
                client.sendall(block)
        expect(server.metric("resident_bytes") - before < 150 << 20, before, server.metric("resident_bytes"))
        client.close()
        server.post(CHAT, chat("still here"))


def case_slow_and_half_requests_disturb_nobody():
    with serving("--request-timeout", 1) as server:
        clients = [send_raw(server, b"POST /v1/chat"), send_raw(server, head(CHAT, 1000) + b'{"mess'), send_raw(server, b"")]
        gone = send_raw(server, head(CHAT, 1000) + b'{"mess')
        gone.close()
        start = time.monotonic()
        while time.monotonic() - start < 5 and server.metric("connections") > 1:
            with contextlib.suppress(OSError):
                clients[0].sendall(b"x")  # a byte now and then keeps it no longer
            server.post(CHAT, chat("meanwhile"))
            time.sleep(0.2)
        expect(server.metric("connections") == 1, server.metric("connections"), "connections are open")
        expect(time.monotonic() - start < 5)


def case_half_requests_are_closed_with_their_clients():
    with serving() as server:
        server.post(PLAIN, plain("x"))
        data = request(PLAIN, plain("x" * 1000))
        for size in (40, data.index(b"\r\n\r\n") + 4, data.index(b"\r\n\r\n") + 5, len(data) - 1):
            for _ in range(40):
                send_raw(server, data[:size]).close()
        server.wait_for("connections", lambda n: n <= 1, 5)


def case_random_leavers_leave_nothing_behind():
    with serving("--parallel", 4, "--queue", 1000) as server:
        chance = random.Random(7)
        bodies = [(PLAIN, long_reply(stream=True)), (PLAIN, long_reply()), (CHAT, chat("hello", n=3, stream=True)), (PLAIN, plain("x" * 2000))]
        for _ in range(300):
            data = request(*chance.choice(bodies))
            client = send_raw(server, data[:chance.choice([len(data), len(data), chance.randrange(len(data))])])
            time.sleep(chance.random() * 0.01)
            if chance.random() < 0.3:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        for name in ("replies_running", "replies_queued"):
            server.wait_for(name, lambda n: n == 0, 10)
        server.wait_for("connections", lambda n: n <= 1, 10)
        server.post(CHAT, chat("still here"))


def case_a_long_reply_outlives_the_limits_of_requests():
    with serving("--ctx", CONTEXT, "--parallel", 1, "--request-timeout", 1) as server:
        server.post(PLAIN, plain("warm"))
        start = time.monotonic()
        server.post(PLAIN, plain("abc", max_tokens=500))
        n = min(12000, int(500 * 5 / (time.monotonic() - start)))  # idle connections are closed after 3 s
        whole = server.post(PLAIN, plain("abc", max_tokens=n))
        text = "".join(c["text"] for e in server.stream(PLAIN, plain("abc", max_tokens=n)) for c in e["choices"])
        expect(text == whole["choices"][0]["text"], len(text))


def case_what_is_no_http_is_refused():
    with serving("--request-timeout", 1) as server:
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, b"\r\n\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                     b"GET /%00%ff%2e%2e HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
            client = send_raw(server, data)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
            answer = read_all(client)
            expect(answer == b"" or re.match(rb"HTTP/1\.[01] [45]", answer), data[:40], answer[:100])
        server.post(CHAT, chat("still here"))


def case_a_client_that_leaves_ends_its_reply():
    with serving() as server:
        for streams in (True, False):
            before = server.metric("replies_cancelled_total")
            client = send_raw(server, request(PLAIN, long_reply(stream=streams)))
            server.wait_for("replies_running", lambda n: n == 1)
            if streams:
                client.recv(1000)
            client.close()
            start = time.monotonic()
            server.wait_for("replies_running", lambda n: n == 0, 5)
            expect(time.monotonic() - start < 2, "it went on for", time.monotonic() - start)
            expect(server.metric("replies_cancelled_total") == before + 1)


def case_clients_that_leave_at_any_moment_free_their_places():
    """Clients that leave at random moments, four at a time, of all routes that answer: nobody else is disturbed, no place stays taken.
    PITH_TEST_LEAVES: how many."""
    rng, n_left = random.Random(5), int(os.environ.get("PITH_TEST_LEAVES", "60"))
    bodies = [(PLAIN, long_reply(stream=True)), (PLAIN, long_reply()), (CHAT, chat("x" * 300, max_tokens=400, stream=True)), (CHAT, chat("y", max_tokens=400, n=3)),
              ("/v1/responses", {"model": "tiny", "input": "z", "max_output_tokens": 400, "stream": True}),
              ("/v1/messages", {"model": "tiny", "max_tokens": 400, "messages": [{"role": "user", "content": "z"}]}),
              ("/api/chat", {"model": "tiny", "messages": [{"role": "user", "content": "z"}]}), ("/v1/embeddings", {"model": "tiny", "input": ["a" * 200] * 8})]
    lock, left, slowest = threading.Lock(), [0], [0.0]

    def leave(server):
        while True:
            with lock:
                if left[0] >= n_left:
                    return
                left[0] += 1
                path, body = rng.choice(bodies)
                moment, part = rng.expovariate(20), rng.random()
            data = request(path, body)
            client = send_raw(server, data if part < 0.8 else data[:int(len(data) * rng.random())])
            time.sleep(moment)
            if part < 0.4:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends by a reset
            client.close()

    with serving("--parallel", 4) as server:
        threads = [threading.Thread(target=leave, args=(server,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            start = time.monotonic()
            server.post(CHAT, chat("stays", max_tokens=1))
            slowest[0] = max(slowest[0], time.monotonic() - start)
        start = time.monotonic()
        for name in ("replies_running", "replies_queued"):
            server.wait_for(name, lambda n: n == 0, 10)
        freed = time.monotonic() - start
        print(f"        {n_left} left; the slowest of those that stayed took {slowest[0] * 1e3:.0f} ms; all places were free {freed * 1e3:.0f} ms after the last")
        expect(freed < 2, freed)
        expect(server.metric("requests_failed_total") == 0, server.metric("requests_failed_total"))
        server.post(CHAT, chat("still here"))


def case_a_client_that_waits_in_the_queue_may_leave():
    with serving("--parallel", 1) as server:
        running = send_raw(server, request(PLAIN, long_reply(stream=True)))
        server.wait_for("replies_running", lambda n: n == 1)
        waiting = send_raw(server, request(PLAIN, long_reply()))
        server.wait_for("replies_queued", lambda n: n == 1)
        waiting.close()
        server.wait_for("replies_queued", lambda n: n == 0, 5)
        expect(server.metric("replies_running") == 1)
        running.close()
        server.wait_for("replies_running", lambda n: n == 0, 5)


def case_a_client_that_never_reads_holds_nobody_up():
    with serving("--ctx", CONTEXT, "--parallel", 2) as server:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request(PLAIN, long_reply(stream=True, logprobs=20)))
        server.wait_for("replies_running", lambda n: n == 1)
        for i in range(5):
            server.post(CHAT, chat(f"meanwhile {i}"))
        server.wait_for("replies_running", lambda n: n == 0, 60)
        expect(server.metric("replies_cancelled_total") == 1)
        client.close()


def case_a_full_queue_is_told_and_drains():
    with serving("--parallel", 1, "--queue", 1) as server:
        running = send_raw(server, request(PLAIN, long_reply(stream=True)))
        server.wait_for("replies_running", lambda n: n == 1)
        waiting = send_raw(server, request(PLAIN, plain("abc")))
        server.wait_for("replies_queued", lambda n: n == 1)
        status, headers, text = server.ask("POST", PLAIN, plain("abc"))
        expect(status == 429 and int(headers["Retry-After"]) > 0, status, text)
        running.close()
        expect(waiting.recv(100).startswith(b"HTTP/1.1 200"))
        waiting.close()


def case_many_idle_connections_hold_nobody_up():
    with serving() as server:
        idle = [send_raw(server, b"" if i % 2 else b"GET /health HTTP/1.1\r\n") for i in range(300)]
        answer = server.post(CHAT, chat("hello"))
        expect(answer["choices"] and server.metric("connections") >= 300)
        threads = len(os.listdir(f"/proc/{server.process.pid}/task")) if os.path.isdir("/proc") else 0
        expect(threads < 20, threads, "threads")
        for client in idle:
            client.close()


def case_clients_at_once_get_the_texts_they_get_alone():
    with serving("--exact", "--parallel", 4) as server:
        asks = [chat(f"client {i} asks", max_tokens=80, **({"temperature": 1, "seed": i} if i % 2 else {})) for i in range(8)]
        alone = [server.post(CHAT, ask)["choices"] for ask in asks]
        together = [None] * 8

        def work(i):
            together[i] = [server.post(CHAT, asks[i])["choices"] for _ in range(3)]
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(8):
            expect(together[i] == [alone[i]] * 3, i, together[i], alone[i])
        expect(server.metric("replies_running") == 0 and server.metric("replies_queued") == 0)


# ---- Stopping, models -----------------------------------------------------------------------------------------------------------------

def case_a_stop_lets_replies_end_and_cancels_the_rest():
    for number in (signal.SIGTERM, signal.SIGINT):
        with serving("--stop-timeout", 1) as server:
            client = send_raw(server, request(PLAIN, long_reply(stream=True)))
            whole = send_raw(server, request(PLAIN, long_reply()))
            server.wait_for("replies_running", lambda n: n == 2)
            start = time.monotonic()
            server.process.send_signal(number)
            text, other = read_all(client), read_all(whole)
            server.process.wait(60)
            expect(time.monotonic() - start < 20)
            expect(text.startswith(b"HTTP/1.1 200") and (b"[DONE]" in text or b"being stopped" in text), text[-300:])
            expect(other.startswith((b"HTTP/1.1 503", b"HTTP/1.1 200")), other[:300])


def case_models_are_loaded_swapped_and_taken_out():
    for name in ("one", "two"):
        tiny_model(name)
    server = Server("--ctx", 512, "--parallel", 1, "--idle-unload", 1)
    try:
        expect(server.post(CHAT, chat("x"), 400)["error"]["param"] == "model")
        listed = {m["id"]: m["status"] for m in json.loads(server.get("/v1/models"))["data"]}
        expect(listed.get("one") == listed.get("two") == "absent", listed)
        expect(server.post(CHAT, chat("x", model="one"))["model"] == "one" and server.post(CHAT, chat("x", model="two"))["model"] == "two")
        one = server.metric("model_bytes") / server.metric("models_loaded")
        server.wait_for("models_loaded", lambda n: n == 0, 20)
        expect(server.metric("model_bytes") == 0)
        server.post(CHAT, chat("x", model="one"))
    finally:
        server.stop()
    server = Server("--ctx", 512, "--parallel", 1, "--memory", int(one * 1.9))
    try:
        for name in ("one", "two", "one"):
            expect(server.post(CHAT, chat("x", model=name))["model"] == name)
            expect(server.metric("models_loaded") == 1, name)
        done = []
        threads = [threading.Thread(target=lambda n=name: done.append(server.post(CHAT, chat("x", model=n))["model"])) for name in ("one", "two") * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(sorted(done) == ["one"] * 4 + ["two"] * 4, done)
    finally:
        server.stop()
    server = Server("--ctx", 512, "--memory", "100K")
    try:
        status, _, text = server.ask("POST", CHAT, chat("x", model="one"))
        expect(status == 503 and b"ceiling" in text, status, text)
    finally:
        server.stop()


def slow_copy(name):
    """A model whose load takes a while."""
    path = os.path.join(FOLDER, "models", name + ".gguf")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(default_model(), path)
    return path


def case_requests_for_models_that_do_not_fit_together_are_all_answered():
    for name in ("first", "second"):
        slow_copy(name)
    try:
        server = Server("--ctx", 512, "--parallel", 1)
        server.post(PLAIN, plain("x", model="first", max_tokens=1))
        one = server.metric("model_bytes")
        server.stop()
        server = Server("--ctx", 512, "--parallel", 1, "--memory", int(one * 1.5))
        done = []
        threads = [threading.Thread(target=lambda n=name: done.append(server.post(PLAIN, plain("x", model=n, max_tokens=1))["model"]), daemon=True)
                   for name in ("first", "second") * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        expect(sorted(done) == ["first"] * 3 + ["second"] * 3, done, server.metric("model_loads_total"))
        expect(server.metric("model_loads_total") <= 6, server.metric("model_loads_total"))
        server.stop()
    finally:
        server.process.kill()
        for name in ("first", "second"):
            os.unlink(slow_copy(name))


def case_a_stop_ends_choices_that_only_wait():
    with serving("--parallel", 1, "--queue", 6400, "--stop-timeout", 1) as server:
        server.post(PLAIN, plain("x", max_tokens=1))
        clients = [send_raw(server, request(PLAIN, plain(f"{i} word" * 300, n=16, max_tokens=1, temperature=1))) for i in range(200)]
        server.wait_for("replies_queued", lambda n: n > 100)
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        texts = [read_all(client) for client in clients]
        server.process.wait(90)
        expect(time.monotonic() - start < 20, "the stop took", time.monotonic() - start)
        expect({t[:12] for t in texts} <= {b"HTTP/1.1 503", b"HTTP/1.1 200"}, {t[:40] for t in texts})
        expect(any(b"being stopped" in t for t in texts), "nothing was left to stop")


def case_heads_that_can_be_read_in_two_ways_are_refused():
    with serving() as server:
        for more in (b"", b"Host: localhost\r\nHost: localhost\r\n", b"Host: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
                     b"Host: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n"):
            answer = read_all(send_raw(server, b"POST /tokenize HTTP/1.1\r\n" + more + b"Connection: close\r\n\r\n{}"))
            expect(answer.startswith(b"HTTP/1.1 400") and b"\"content\"" not in answer, more, answer)
        expect(read_all(send_raw(server, b"GET /health HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1."))


def case_tokens_of_a_large_text_take_little_memory():
    with serving() as server:
        def resident():
            with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
                return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) >> 10
        server.post("/tokenize", {"content": "x"})
        before = resident()
        ids = server.post("/tokenize", {"content": "\U0001F600" * 200000, "with_pieces": True})["tokens"]
        expect(len(ids) >= 200000 and "piece" in ids[0], len(ids))
        expect(resident() - before < 250, before, resident())
        expect(server.post("/tokenize", {"content": "x" * 1100000}, 400)["error"]["code"] == "too_large")


def case_models_come_and_go_with_their_files():
    """A removed file is no model any more, and one that lies elsewhere now (another snapshot of the hub's cache) is found there."""
    home = tempfile.mkdtemp(dir=FOLDER)
    name, hub = "hf:user/repo:Q4_K_M", os.path.join(home, "hub")

    def place(snapshot):
        path = os.path.join(hub, "models--user--repo", "snapshots", snapshot, "guest-Q4_K_M.gguf")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(tiny_model(), path)
        return path
    with serving("--idle-unload", 1, env={"PITH_HOME": home, "HF_HUB_CACHE": hub}) as server:
        names = lambda: [m["id"] for m in json.loads(server.get("/v1/models"))["data"]]
        expect(name not in names(), names())
        server.post(PLAIN, plain("x", model=name, max_tokens=1), 404)
        path = place("a" * 40)
        expect(name in names(), names())
        os.unlink(path)
        expect(name not in names(), "a removed model is listed", names())
        expect(server.post(PLAIN, plain("x", model=name, max_tokens=1), 404)["error"]["code"] == "model_not_found")
        path = place("a" * 40)
        server.post(PLAIN, plain("x", model=name, max_tokens=1))
        os.unlink(path)
        expect(name in names(), "it is in memory", names())
        wait_until(lambda: name not in names(), names)
        place("b" * 40)
        expect(server.post(PLAIN, plain("x", model=name, max_tokens=1))["model"] == name)


def case_projectors_are_no_models():
    path = os.path.join(FOLDER, "models", "mmproj-tiny-f16.gguf")
    shutil.copyfile(tiny_model(), path)
    try:
        with serving() as server:
            expect("mmproj" not in server.get("/v1/models") and "mmproj" not in server.get("/api/tags"))
    finally:
        os.unlink(path)


def case_a_preflight_allows_the_headers_that_are_asked_for():
    with serving("--cors", "https://app.example") as server:
        names = "authorization, x-stainless-os, x-other"
        _, headers, _ = server.ask("OPTIONS", CHAT, headers={"Origin": "https://app.example", "Access-Control-Request-Headers": names})
        expect(headers["Access-Control-Allow-Headers"] == names, headers)


def case_vectors_take_turns():
    with serving(model=default_model()) as server:
        server.post("/v1/embeddings", {"input": "x"})
        done, start = [], time.monotonic()
        many = threading.Thread(target=lambda: (server.post("/v1/embeddings", {"input": ["some words to read " * 6] * 100}), done.append(time.monotonic() - start)))
        many.start()
        server.wait_for("replies_running", lambda n: n == 1)
        server.post("/v1/embeddings", {"input": "y"})
        small = time.monotonic() - start
        many.join()
        expect(small < done[0] / 2, "the small request waited for the large one", small, done)


def case_long_texts_hold_nobody_up():
    with serving("--ctx", 512) as server:
        expect(server.post(PLAIN, plain("word " * 3000000), 400)["error"]["code"] == "context_length_exceeded")
        gone = [send_raw(server, request("/tokenize", {"content": "ab " * 300000})) for _ in range(12)]
        start = time.monotonic()
        server.get("/v1/models")
        expect(time.monotonic() - start < 1, "a list waited", time.monotonic() - start)
        for client in gone:
            client.close()
        server.post(PLAIN, plain("x", max_tokens=1))
        server.wait_for("requests_refused_total", lambda n: n >= 2)


def case_health_tells_loading_apart():
    with serving(model=default_model()) as server:
        seen = set()
        for _ in range(2000):
            status, _, text = server.ask("GET", "/health")
            seen.add((status, json.loads(text)["status"]))
            if status == 200:
                break
            time.sleep(0.01)
        expect(seen == {(503, "loading"), (200, "ok")}, seen)


# ---- A model that says something ------------------------------------------------------------------------------------------------------

def case_the_default_model_answers_as_run_does():
    model = default_model()
    words = "Name three colours."
    run = subprocess.run([PROGRAM, "run", "-m", model, "--exact", "--cache", "off", "--no-record", "-n", "40", "--json", words], capture_output=True, timeout=300, check=True)
    with serving("--exact", model=model) as server:
        ask = chat(words, max_tokens=40)
        whole = server.post(CHAT, ask)
        expect(whole["choices"][0]["message"]["content"] == json.loads(run.stdout)["text"], whole, run.stdout)
        expect(fold_chat(server.stream(CHAT, ask)) == whole["choices"])
        base = server.post(CHAT, chat("", max_tokens=1))["usage"]["prompt_tokens"]
        n = server.post(CHAT, chat("<|im_start|>", max_tokens=1))["usage"]["prompt_tokens"]
        pieces = server.post("/tokenize", {"content": "<|im_start|>"})["tokens"]
        expect(len(pieces) > 1 and n == base + len(pieces), base, n, pieces)
        expect(len(server.post("/tokenize", {"content": "<|im_start|>", "parse_special": True})["tokens"]) == 1)


def case_calls_of_tools_are_enforced_where_the_model_has_a_form_of_them():
    tool = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "strict": True, "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"], "additionalProperties": False}}}
    ask = chat("What is the weather in Paris?", max_tokens=200, tools=[tool], parallel_tool_calls=False)
    with serving() as server:  # its template has no form of calls
        for more in ({}, {"tool_choice": "required"}):
            expect(server.post(CHAT, dict(ask, **more), 400)["error"]["param"] == "tool_choice")
    model = os.path.join(MODELS, "qwen-0.5b-q4_k_m.gguf") if MODELS else ""
    if not os.path.exists(model):
        raise Skip("qwen-0.5b-q4_k_m.gguf is not in $PITH_TEST_MODELS")
    with serving("--exact", "--ctx", 1024, model=model) as server:
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            whole = server.post(CHAT, dict(ask, tool_choice=choice))["choices"]
            message = whole[0]["message"]
            calls = message["tool_calls"]
            expect(len(calls) == 1 and whole[0]["finish_reason"] == "tool_calls" and message["content"] is None, whole)
            expect(calls[0]["function"]["name"] == "get_weather" and list(json.loads(calls[0]["function"]["arguments"])) == ["city"], calls)
            folded = fold_chat(server.stream(CHAT, dict(ask, tool_choice=choice)))
            expect([c["function"] for c in folded[0]["message"]["tool_calls"]] == [c["function"] for c in calls], folded)
        back = ask["messages"] + [message, {"role": "tool", "tool_call_id": calls[0]["id"], "content": "17 degrees, rain"}]
        answer = server.post(CHAT, dict(ask, messages=back, tool_choice="none"))["choices"][0]
        expect(answer["message"]["content"] and "tool_calls" not in answer["message"], answer)


def case_calls_without_the_marks_of_the_model_count_where_the_tool_was_offered():
    tool = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}
    model = os.path.join(MODELS, "qwen-0.5b-q4_k_m.gguf") if MODELS else ""
    if not os.path.exists(model):
        raise Skip("qwen-0.5b-q4_k_m.gguf is not in $PITH_TEST_MODELS")
    ask = chat("What is the weather in Tokyo for the next 3 days?", max_tokens=200, temperature=0, tools=[tool])
    with serving("--exact", "--ctx", 1024, model=model) as server:  # a model of Qwen2.5-Coder: it fences its calls
        whole = server.post(CHAT, ask)["choices"][0]
        call = whole["message"]["tool_calls"][0]["function"]
        expect(call["name"] == "get_weather" and json.loads(call["arguments"])["city"] == "Tokyo", whole)
        expect(whole["finish_reason"] == "tool_calls" and not whole["message"]["content"], whole)
        folded = fold_chat(server.stream(CHAT, ask))
        expect([c["function"] for c in folded[0]["message"]["tool_calls"]] == [call], folded)
        parameters = dict(tool["function"]["parameters"], required=["city", "days"], additionalProperties=False)
        strict = dict(tool["function"], strict=True, parameters=parameters)
        choice = server.post(CHAT, dict(ask, tools=[dict(tool, function=strict)]))["choices"][0]
        arguments = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
        expect(arguments == {"city": "Tokyo", "days": 3} and choice["finish_reason"] == "tool_calls", choice)
        for promised in (True, False):  # values that the schema does not have are no call
            narrow = dict(parameters, properties=dict(parameters["properties"], city={"enum": ["Rome", "Oslo"]}))
            none = server.post(CHAT, dict(ask, tools=[dict(tool, function=dict(strict, strict=promised, parameters=narrow))]))["choices"][0]["message"]
            expect("tool_calls" not in none or json.loads(none["tool_calls"][0]["function"]["arguments"])["city"] in ("Rome", "Oslo"), none)
            expect("tool_calls" in none or "get_weather" in none["content"], none)
        line = json.dumps({"name": "get_weather", "arguments": {"city": "Rome"}})
        other = dict(tool, function=dict(tool["function"], name="get_time"))
        message = server.post(CHAT, chat("Repeat this line, and nothing else:\n" + line, max_tokens=60, temperature=0, tools=[other]))["choices"][0]["message"]
        expect("tool_calls" not in message and line in message["content"], message)


def case_the_official_client_works():
    try:
        import openai
    except ImportError as reason:
        raise Skip("the package openai is not installed") from reason
    with serving(model=default_model()) as server:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
        name = client.models.list().data[0].id
        messages = [{"role": "user", "content": "Say hello."}]
        whole = client.chat.completions.create(model=name, messages=messages, temperature=0, max_tokens=20, logprobs=True, top_logprobs=2)
        expect(whole.usage.completion_tokens > 0 and whole.choices[0].logprobs.content[0].top_logprobs, whole)
        text, usage = "", None
        for chunk in client.chat.completions.create(model=name, messages=messages, temperature=0, max_tokens=20, stream=True, stream_options={"include_usage": True}):
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            usage = chunk.usage or usage
        expect(text == whole.choices[0].message.content and usage.total_tokens == whole.usage.total_tokens, text, whole)
        expect(client.completions.create(model=name, prompt="Once", max_tokens=5).choices[0].text)
        for broken in ({"model": "none"}, {"temperature": 9}):
            try:
                client.chat.completions.create(**dict({"model": name, "messages": messages}, **broken))
                raise AssertionError(f"{broken} was accepted")
            except (openai.NotFoundError, openai.BadRequestError) as error:
                expect(error.param in broken, error)


def program_of(usage, at=1):
    """The program named by the command line's first word, of `at` words that must be there; ends the script where it has no server."""
    global PROGRAM
    PROGRAM = given_program(usage, at)
    run = subprocess.run([*WRAPPER, PROGRAM, "serve"], capture_output=True, timeout=60, check=False, env=dict(os.environ, PITH_API_KEY="short"))
    if b"no server" in run.stderr:
        print("0 passed, 0 failed, 1 skipped: this build has no server")
        sys.exit(0)
    return PROGRAM


if __name__ == "__main__":
    PROGRAM = program_of(__doc__)
    with tempfile.TemporaryDirectory() as FOLDER:
        sys.exit(run_cases(globals(), sys.argv[2:]))
